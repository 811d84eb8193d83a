/* variadic-op-splitter: no concatenate of more than 128 operands.
 *
 * A kernel's parameter space is limited. Each full group of 128 operands
 * becomes a concatenate of its own; the rest is read directly.
 */
#include "fusion/fusion.h"
#include "fusion/gpu_fuse.h"
#include "hlo/shape.h"

enum { MAX_OPERANDS = 128 };

static const lw_shape *group_shape(lw_context *ctx, const lw_inst *i,
                                   int64_t dim, lw_inst *const *ops) {
  int64_t dims[LW_MAX_RANK];
  for (int32_t d = 0; d < i->shape->rank; d++) dims[d] = i->shape->dims[d];
  dims[dim] = 0;
  for (int32_t k = 0; k < MAX_OPERANDS; k++)
    dims[dim] += ops[k]->shape->dims[dim];
  lw_shape shape = *i->shape;
  shape.dims = dims;
  return lw_shape_intern(ctx, &shape);
}

static bool split(lw_inst *i, lw_pass_env *env) {
  int32_t n_dims, n = i->n_operands, kept = 0;
  const int64_t *dim = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n_dims);
  if (n <= MAX_OPERANDS || n_dims != 1 || !lw_pass_fuel(env)) return false;
  lw_inst **ops = LW_NEW_ARRAY(env->scratch, lw_inst *, n);
  for (int32_t k = 0; k < n; k++) ops[k] = lw_inst_operand(i, k);
  for (int32_t k = 0; k < n;) {
    if (n - k < MAX_OPERANDS) {
      ops[kept++] = ops[k++];
      continue;
    }
    const lw_shape *shape =
        group_shape(i->parent->module->ctx, i, dim[0], ops + k);
    lw_inst *g = lw_inst_new(i->parent, LW_OP_CONCATENATE, shape, i->name,
                             MAX_OPERANDS, ops + k);
    lw_inst_set_i64s(g, LW_ATTR_DIMENSIONS, 1, dim);
    g->metadata = i->metadata;
    lw_inst_move_before(g, i);
    ops[kept++] = g;
    k += MAX_OPERANDS;
  }
  for (int32_t k = 0; k < kept; k++) lw_inst_set_operand(i, k, ops[k]);
  while (i->n_operands > kept) lw_inst_drop_operand(i, i->n_operands - 1);
  lw_pass_count(env, "split", 1);
  return true;
}

static lw_status run_pass(lw_module *m, lw_pass_env *env, bool *changed) {
  int32_t n;
  lw_comp **comps = gpu_comps_to_fuse(m, env->scratch, &n);
  for (int32_t k = 0; k < n; k++)
    for (lw_inst *i = comps[k]->first; i; i = i->next)
      if (i->opcode == LW_OP_CONCATENATE)
        while (split(i, env)) *changed = true;
  return NULL;
}

const lw_pass lw_pass_variadic_op_splitter = {
    "variadic-op-splitter", "no concatenate of more than 128 operands", NULL,
    run_pass};
