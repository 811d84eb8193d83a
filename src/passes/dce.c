/* dce: what nobody uses goes.
 *
 * Instructions without users, side effects or waiters, from the end of each
 * computation backwards (the list is in topological order, so that one sweep
 * reaches everything), then computations that nothing calls. Parameters stay:
 * loops drop theirs in while-simplifier.
 */
#include "passes/passes.h"
#include "passes/rewrite.h"

static void mark_waited_for(const lw_comp *c, lw_map *waited) {
  for (const lw_inst *i = c->first; i; i = i->next)
    for (int32_t k = 0; k < i->n_control_preds; k++)
      lw_map_set_ptr(waited, i->control_preds[k], i);
}

static void sweep(lw_comp *c, lw_pass_env *env, bool *changed) {
  lw_map waited = {0};
  mark_waited_for(c, &waited);
  for (lw_inst *i = c->last, *prev; i; i = prev) {
    prev = i->prev;
    if (!lw_is_dead(i) || lw_map_get(&waited, (uintptr_t)i)) continue;
    if (!lw_pass_fuel(env)) break;
    lw_inst_remove(i);
    lw_pass_count(env, "instructions removed", 1);
    *changed = true;
  }
  lw_map_free(&waited);
}

static void drop_unreachable(lw_module *m, lw_pass_env *env, bool *changed) {
  int32_t n;
  lw_map kept = {0};
  lw_comp **comps = lw_module_post_order(m, env->scratch, &n, true);
  for (int32_t k = 0; k < n; k++) lw_map_set_ptr(&kept, comps[k], comps[k]);
  for (lw_comp *c = m->first_comp, *next; c; c = next) {
    next = c->next;
    if (lw_map_get(&kept, (uintptr_t)c)) continue;
    if (!lw_pass_fuel(env)) break;
    lw_module_remove_comp(m, c);
    lw_pass_count(env, "computations removed", 1);
    *changed = true;
  }
  lw_map_free(&kept);
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  if (!m->entry) return NULL;
  int32_t n;
  lw_comp **comps = lw_module_post_order(m, env->scratch, &n, true);
  for (int32_t k = n - 1; k >= 0; k--) sweep(comps[k], env, changed);
  drop_unreachable(m, env, changed);
  return NULL;
}

const lw_pass lw_pass_dce = {
    "dce", "removes unused instructions and computations", NULL, run};
