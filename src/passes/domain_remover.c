/* domain-remover: domain instructions mark where shardings meet; their value is
 * their operand. */
#include "passes/passes.h"
#include "passes/rewrite.h"

static lw_inst *domain(lw_rw *r, lw_inst *i) {
  return lw_rw_go(r, "domains") ? lw_op(i, 0) : NULL;
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {[LW_OP_DOMAIN] = domain};
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_domain_remover = {
    "domain-remover", "domains are their operands", NULL, run};
