/* tuple-simplifier: get-tuple-element of a tuple is its operand; a tuple of all
 * elements of a value, in order, is that value. Tuples hold references, so no
 * element is touched. */
#include "passes/passes.h"
#include "passes/rewrite.h"

static lw_inst *element(lw_rw *r, lw_inst *i) {
  lw_inst *t = lw_op(i, 0);
  if (t->opcode != LW_OP_TUPLE) return NULL;
  lw_inst *x = lw_op(t, (int32_t)lw_inst_i64(i, LW_ATTR_INDEX, 0));
  if (!lw_shape_compatible(x->shape, i->shape)) return NULL;
  return lw_rw_go(r, "element of a tuple") ? x : NULL;
}

static lw_inst *tuple(lw_rw *r, lw_inst *i) {
  lw_inst *whole = NULL;
  for (int32_t k = 0; k < i->n_operands; k++) {
    lw_inst *g = lw_op(i, k);
    if (g->opcode != LW_OP_GET_TUPLE_ELEMENT ||
        lw_inst_i64(g, LW_ATTR_INDEX, -1) != k)
      return NULL;
    if (whole && lw_op(g, 0) != whole) return NULL;
    whole = lw_op(g, 0);
  }
  /* The entry's result stays a tuple of its own: the parameter it may be a
   * copy of belongs to the caller. */
  if (!whole || whole->opcode == LW_OP_PARAMETER) return NULL;
  if (!lw_shape_compatible(whole->shape, i->shape)) return NULL;
  return lw_rw_go(r, "tuple of all elements") ? whole : NULL;
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {
      [LW_OP_GET_TUPLE_ELEMENT] = element,
      [LW_OP_TUPLE] = tuple,
  };
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_tuple_simplifier = {
    "tuple-simplifier", "elements of tuples, tuples of elements", NULL, run};
