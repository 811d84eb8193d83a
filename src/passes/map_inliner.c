/* map-inliner: map(f) is f's operations on whole arrays.
 *
 * map applies a scalar computation to every place. Each of its elementwise
 * operations becomes one on the map's dims; scalars of its own (constants)
 * become broadcasts. Computations that hold anything else stay maps.
 */
#include "passes/passes.h"
#include "passes/rewrite.h"

static bool is_liftable(const lw_comp *c) {
  for (const lw_inst *i = c->first; i; i = i->next) {
    if (!lw_shape_is_scalar(i->shape) || i->n_control_preds) return false;
    if (i->opcode == LW_OP_PARAMETER || i->opcode == LW_OP_CONSTANT) continue;
    if (!lw_opcode_is_elementwise(i->opcode)) return false;
  }
  return true;
}

static lw_inst *lift(lw_rw *r, lw_inst *map_inst, const lw_inst *i,
                     const lw_map *done) {
  const lw_shape *m = map_inst->shape;
  lw_inst *ops[3] = {0};
  if (i->opcode == LW_OP_PARAMETER)
    return lw_op(map_inst, (int32_t)lw_inst_param_number(i));
  const lw_shape *s = lw_mk_array(r->m, i->shape->type, m->rank, m->dims);
  if (i->opcode == LW_OP_CONSTANT) {
    lw_inst *c = lw_inst_clone(map_inst->parent, i, NULL, NULL);
    lw_inst_move_before(c, map_inst);
    return lw_rw_broadcast(r, c, s, 0, NULL);
  }
  for (int32_t k = 0; k < i->n_operands; k++)
    ops[k] = lw_map_ptr(done, lw_op(i, k));
  lw_inst *to = lw_rw_make(r, i->opcode, s, i->n_operands, ops);
  for (int32_t k = 0; k < i->n_attrs; k++) lw_inst_set_attr(to, &i->attrs[k]);
  return to;
}

static lw_inst *map(lw_rw *r, lw_inst *i) {
  const lw_comp *c = lw_inst_comp(i, LW_ATTR_TO_APPLY);
  if (!is_liftable(c) || (int32_t)c->params.len != i->n_operands) return NULL;
  if (!lw_rw_go(r, "maps inlined")) return NULL;
  lw_map done = {0};
  for (const lw_inst *j = c->first; j; j = j->next)
    lw_map_set_ptr(&done, j, lift(r, i, j, &done));
  lw_inst *root = lw_map_ptr(&done, c->root);
  lw_map_free(&done);
  return root;
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {[LW_OP_MAP] = map};
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_map_inliner = {
    "map-inliner", "maps become elementwise operations", NULL, run};
