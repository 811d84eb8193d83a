/* fusion-inliner: fusions that came with the module are opened.
 *
 * A dump of XLA after its own fusion pass holds kLoop, kInput, kOutput and
 * kCustom fusions. A fusion's meaning is its body; which instructions share a
 * kernel is decided anew here. --keep-fusions leaves this pass out.
 */
#include "passes/inline.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

static lw_inst **operands_of(const lw_inst *i, lw_arena *a) {
  lw_inst **v = LW_NEW_ARRAY(a, lw_inst *, i->n_operands);
  for (int32_t k = 0; k < i->n_operands; k++) v[k] = lw_op(i, k);
  return v;
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  int32_t n;
  bool edges = lw_module_has_control_edges(m);
  lw_comp **comps = lw_module_post_order(m, env->scratch, &n, true);
  for (int32_t k = 0; k < n; k++)
    for (lw_inst *i = comps[k]->first, *next; i; i = next) {
      next = i->next;
      lw_comp *body = lw_inst_comp(i, LW_ATTR_CALLS);
      if (i->opcode != LW_OP_FUSION || !body) continue;
      if ((int32_t)body->params.len != i->n_operands) continue;
      if (!lw_pass_fuel(env)) return NULL;
      lw_inline_at(i, body, operands_of(i, env->scratch), i->n_operands, edges);
      lw_pass_count(env, "fusions inlined", 1);
      m->is_scheduled = false;
      *changed = true;
    }
  return NULL;
}

const lw_pass lw_pass_fusion_inliner = {
    "fusion-inliner", "opens the fusions a module came with", NULL, run};
