/* sort-iota-fusion: a sort makes the indices that it carries itself.
 *
 * An iota that is sorted along needs no buffer: the sort kernel knows each
 * element's position. XLA:GPU puts the sort and its iotas into a custom fusion
 * before everything else, and the fusion is opaque to priority fusion.
 */
#include "fusion/fusion.h"
#include "fusion/gpu_fuse.h"

static lw_inst *iota_among(const lw_inst *i) {
  for (int32_t k = 0; k < i->n_operands; k++)
    if (lw_inst_operand(i, k)->opcode == LW_OP_IOTA)
      return lw_inst_operand(i, k);
  return NULL;
}

static bool fuse_sort(gpu_graph *g, lw_inst *sort, lw_pass_env *env) {
  if (!iota_among(sort) || !lw_pass_fuel(env)) return false;
  lw_inst *f = sort;
  for (lw_inst *iota; (iota = iota_among(f));) {
    f = gpu_fuse(g, iota, f, LW_FUSION_CUSTOM);
    if (iota->n_uses == 0) gpu_remove(g, iota);
  }
  lw_pass_count(env, "fusions", 1);
  return true;
}

static lw_status run_pass(lw_module *m, lw_pass_env *env, bool *changed) {
  int32_t n, n_order;
  lw_comp **comps = gpu_comps_outside(m, env->scratch, &n);
  for (int32_t k = 0; k < n; k++) {
    lw_inst **order = lw_comp_post_order(comps[k], env->scratch, &n_order);
    gpu_graph g;
    gpu_graph_init(&g, comps[k], env->scratch);
    for (int32_t j = 0; j < n_order; j++)
      if (order[j]->opcode == LW_OP_SORT)
        *changed |= fuse_sort(&g, order[j], env);
    gpu_graph_free(&g);
  }
  return NULL;
}

const lw_pass lw_pass_sort_iota_fusion = {
    "sort-iota-fusion", "sorts make their own indices", NULL, run_pass};
