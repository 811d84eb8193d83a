/* conditional-simplifier: a conditional whose branch is known is that branch.
 *
 * Known means: a constant selector (an index outside the branches takes the
 * last one, as HLO defines), a single branch, or branches that are the same
 * computation on the same operand. */
#include "passes/inline.h"
#include "passes/passes.h"
#include "passes/rewrite.h"
#include "passes/same.h"

static int32_t branch_count(const lw_inst *i) { return i->n_operands - 1; }

static lw_comp *branch(const lw_inst *i, int32_t k) {
  if (lw_inst_attr(i, LW_ATTR_TRUE_COMPUTATION))
    return lw_inst_comp(
        i, k == 0 ? LW_ATTR_TRUE_COMPUTATION : LW_ATTR_FALSE_COMPUTATION);
  const lw_attr *a = lw_inst_attr(i, LW_ATTR_BRANCH_COMPUTATIONS);
  return a->u.comps.v[k];
}

static bool all_same(const lw_inst *i) {
  for (int32_t k = 1; k < branch_count(i); k++)
    if (lw_op(i, 1 + k) != lw_op(i, 1) ||
        !lw_comp_same(branch(i, 0), branch(i, k)))
      return false;
  return true;
}

/* -1: not known. */
static int32_t taken(const lw_inst *i) {
  const lw_inst *s = lw_op(i, 0);
  const lw_literal *l = lw_uniform(s);
  int32_t n = branch_count(i);
  if (l) {
    int64_t v = lw_literal_get_int(l, 0);
    if (s->shape->type == LW_PRED) return v ? 0 : 1;
    return v < 0 || v >= n ? n - 1 : (int32_t)v;
  }
  return n == 1 || all_same(i) ? 0 : -1;
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  int32_t n;
  lw_comp **comps = lw_control_comps(m, env->scratch, &n);
  for (int32_t k = n - 1; k >= 0; k--)
    for (lw_inst *i = comps[k]->first, *next; i; i = next) {
      next = i->next;
      if (i->opcode != LW_OP_CONDITIONAL) continue;
      int32_t t = taken(i);
      if (t < 0 || t >= branch_count(i)) continue;
      if (!lw_pass_fuel(env)) return NULL;
      lw_inst *arg = lw_op(i, 1 + t);
      lw_inline_at(i, branch(i, t), &arg, 1, lw_module_has_control_edges(m));
      lw_pass_count(env, "branches decided", 1);
      *changed = true;
    }
  return NULL;
}

const lw_pass lw_pass_conditional_simplifier = {
    "conditional-simplifier", "replaces conditionals whose branch is known",
    NULL, run};
