/* sort-iota-fusion: a sort makes the indices that it carries itself.
 *
 * An iota along the sorted dimension needs no buffer: the sort kernel knows each
 * element's position. XLA:GPU puts the sort and such iotas into a custom fusion
 * before everything else, and the fusion is opaque to priority fusion.
 */
#include "fusion/fusion.h"
#include "fusion/gpu_fuse.h"

static bool is_position(const lw_inst *sort, const lw_inst *i) {
  int32_t n;
  const int64_t *dims = lw_inst_i64s(sort, LW_ATTR_DIMENSIONS, &n);
  return i->opcode == LW_OP_IOTA && n == 1 &&
         lw_inst_i64(i, LW_ATTR_IOTA_DIMENSION, -1) == dims[0];
}

static lw_inst *position_of(const lw_inst *sort) {
  for (int32_t k = 0; k < sort->n_operands; k++)
    if (is_position(sort, lw_inst_operand(sort, k)))
      return lw_inst_operand(sort, k);
  return NULL;
}

static bool fuse_sort(gpu_graph *g, lw_inst *sort, lw_pass_env *env) {
  lw_inst *iota = position_of(sort);
  if (!iota || !lw_pass_fuel(env)) return false;
  lw_inst *f = gpu_fuse(g, iota, sort, LW_FUSION_CUSTOM);
  const lw_inst *inner = lw_fusion_body(f)->root;
  for (int32_t k = 0; k < f->n_operands; k++)
    while (k < f->n_operands && is_position(inner, lw_inst_operand(f, k))) {
      lw_inst *more = lw_inst_operand(f, k);
      gpu_fuse(g, more, f, LW_FUSION_CUSTOM);
      if (more->n_uses == 0) gpu_remove(g, more);
    }
  if (iota->n_uses == 0) gpu_remove(g, iota);
  lw_pass_count(env, "fusions", 1);
  return true;
}

static lw_status run_pass(lw_module *m, lw_pass_env *env, bool *changed) {
  int32_t n, n_order;
  lw_comp **comps = gpu_comps_to_fuse(m, env->scratch, &n);
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
