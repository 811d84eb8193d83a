/* call-inliner: a call is replaced by its callee's body.
 *
 * JAX makes a function of every jit, jnp helper and custom derivative: real
 * programs have hundreds of calls, and no other pass looks across one. Callees
 * are visited first, so that a body is flat when it is copied. Composite calls
 * are inlined as well: their body is their definition. Calls into another
 * execution thread stay.
 */
#include "passes/inline.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

static lw_inst **operands_of(const lw_inst *i, lw_arena *a) {
  lw_inst **v = LW_NEW_ARRAY(a, lw_inst *, i->n_operands);
  for (int32_t k = 0; k < i->n_operands; k++) v[k] = lw_op(i, k);
  return v;
}

static bool is_inlinable(const lw_inst *i) {
  if (i->opcode != LW_OP_CALL) return false;
  const lw_comp *c = lw_inst_comp(i, LW_ATTR_TO_APPLY);
  return c && !c->execution_thread && (int32_t)c->params.len == i->n_operands;
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  int32_t n;
  bool edges = lw_module_has_control_edges(m);
  lw_comp **comps = lw_module_post_order(m, env->scratch, &n, true);
  for (int32_t k = 0; k < n; k++)
    for (lw_inst *i = comps[k]->first, *next; i; i = next) {
      next = i->next;
      if (!is_inlinable(i)) continue;
      if (!lw_pass_fuel(env)) return NULL;
      lw_inline_at(i, lw_inst_comp(i, LW_ATTR_TO_APPLY),
                   operands_of(i, env->scratch), i->n_operands, edges);
      lw_pass_count(env, "calls inlined", 1);
      *changed = true;
    }
  return NULL;
}

const lw_pass lw_pass_call_inliner = {
    "call-inliner", "replaces calls by their callees' bodies", NULL, run};
