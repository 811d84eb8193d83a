/* zero-sized-elimination: an array without elements has no bits to compute; it
 * becomes an empty constant. Side effects stay. */
#include "passes/passes.h"
#include "passes/rewrite.h"

static lw_inst *empty(lw_rw *r, lw_inst *i) {
  if (!lw_shape_is_array(i->shape) || i->shape->elements != 0) return NULL;
  if (lw_inst_has_side_effect(i) || i->n_control_preds) return NULL;
  lw_literal *l;
  if (!lw_rw_go(r, "empty arrays")) return NULL;
  r->error = lw_literal_new(r->m->arena, i->shape, &l);
  if (r->error) return NULL;
  lw_inst *c = lw_inst_constant(i->parent, l);
  lw_inst_move_before(c, i);
  return c;
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  lw_rule rules[LW_OPCODE_COUNT];
  for (int op = 0; op < LW_OPCODE_COUNT; op++) rules[op] = empty;
  rules[LW_OP_CONSTANT] = rules[LW_OP_PARAMETER] = NULL;
  rules[LW_OP_GET_TUPLE_ELEMENT] = NULL;
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_zero_sized_elimination = {
    "zero-sized-elimination", "arrays without elements become constants", NULL,
    run};
