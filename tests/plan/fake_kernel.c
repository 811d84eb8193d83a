#include "fake_kernel.h"

static const lw_shape **array_leaves(lw_arena *a, const lw_shape *s,
                                     const lw_shape **to, int32_t *n) {
  (void)a;
  for (int64_t k = 0; k < lw_shape_leaf_count(s); k++) {
    const lw_shape *l = lw_shape_leaf(s, k);
    if (lw_shape_is_array(l)) to[(*n)++] = l;
  }
  return to;
}

static int32_t count_operands(const lw_inst *f) {
  int32_t n = 0;
  for (int32_t k = 0; k < f->n_operands; k++) {
    n += lw_plan_array_leaves(lw_inst_operand(f, k)->shape);
  }
  return n;
}

/* The fusion parameter that an updating root updates, or -1. */
static int64_t updated_param(const lw_inst *root) {
  if (root->opcode != LW_OP_DYNAMIC_UPDATE_SLICE &&
      root->opcode != LW_OP_SCATTER) {
    return -1;
  }
  const lw_inst *op = lw_inst_operand(root, 0);
  return op->opcode == LW_OP_PARAMETER ? lw_inst_param_number(op) : -1;
}

static void set_sharing(lw_kernel *k, const lw_inst *fusion) {
  const lw_inst *root = lw_inst_comp(fusion, LW_ATTR_CALLS)->root;
  int64_t updated = updated_param(root);
  for (int32_t p = 0; p < k->n_params; p++) {
    for (int32_t o = 0; o < k->n_outputs; o++) {
      int32_t e = p * k->n_outputs + o;
      k->must_alias[e] = p == updated && o == 0;
      k->may_alias[e] = updated < 0 && lw_shape_bytes(k->param_shapes[p]) ==
                                           lw_shape_bytes(k->output_shapes[o]);
    }
  }
}

lw_status fake_kernel_build(lw_arena *a, const lw_inst *fusion,
                            const lw_kernel_options *options, lw_kernel **out) {
  (void)options;
  lw_kernel *k = LW_NEW(a, lw_kernel);
  k->inst = fusion;
  k->body = lw_inst_comp(fusion, LW_ATTR_CALLS);
  int32_t n_in = count_operands(fusion), n = 0;
  k->param_shapes = LW_NEW_ARRAY(a, const lw_shape *, n_in + 1);
  for (int32_t p = 0; p < fusion->n_operands; p++) {
    array_leaves(a, lw_inst_operand(fusion, p)->shape, k->param_shapes, &n);
  }
  k->n_params = n;
  int32_t n_out = lw_plan_array_leaves(fusion->shape);
  k->output_shapes = LW_NEW_ARRAY(a, const lw_shape *, n_out + 1);
  array_leaves(a, fusion->shape, k->output_shapes, &k->n_outputs);
  k->may_alias = LW_NEW_ARRAY(a, bool, n_in *n_out + 1);
  k->must_alias = LW_NEW_ARRAY(a, bool, n_in *n_out + 1);
  set_sharing(k, fusion);
  k->n_phases = 1;
  k->phases = LW_NEW(a, lw_phase);
  k->phases[0].n_tiles = 1;
  *out = k;
  return NULL;
}
