/* optimization-barrier-expander: opt-barrier is the identity.
 *
 * A barrier keeps passes from merging what jax.checkpoint wants computed
 * twice. It runs after the last of them; nothing after it merges equal work.
 */
#include "passes/passes.h"
#include "passes/rewrite.h"

static lw_inst *barrier(lw_rw *r, lw_inst *i) {
  return lw_rw_go(r, "barriers") ? lw_op(i, 0) : NULL;
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {[LW_OP_OPT_BARRIER] = barrier};
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_optimization_barrier_expander = {
    "optimization-barrier-expander", "barriers are their operands", NULL, run};
