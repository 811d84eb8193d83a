/* The mechanics of XLA:GPU's fusions: what fuse.h does, with what priority
 * fusion and multi-output fusion depend on besides.
 *
 * Users are kept in XLA's order: a new one goes to the end, and the last one
 * takes the place of one that goes. Fusions are numbered after everything that
 * was there (the number breaks ties between priorities), and every name XLA
 * would use up on the way is used up here as well, so that fusions, clones and
 * parameters have XLA's names.
 */
#ifndef LW_FUSION_GPU_FUSE_H
#define LW_FUSION_GPU_FUSE_H

#include "fusion/fuse.h"

typedef struct {
  lw_comp *comp;
  lw_arena *arena;
  lw_map users; /* inst -> user_list */
  int64_t next_unique_id;
} gpu_graph;

/* Users in the order of their numbers, that is, in which XLA made them. */
void gpu_graph_init(gpu_graph *g, lw_comp *c, lw_arena *a);
/* Users in the order that gpu_graph_keep left in the instructions. */
void gpu_graph_init_kept(gpu_graph *g, lw_comp *c, lw_arena *a);
void gpu_graph_keep(gpu_graph *g);
void gpu_graph_free(gpu_graph *g);

/* Puts lists that gpu_fuse_outputs left as they were into post order. */
void gpu_graph_sort(gpu_graph *g);
void gpu_sort_list(lw_comp *c, lw_arena *a);
/* Puts what nobody reads in XLA's order; at the end of a pass. */
void gpu_graph_settle(gpu_graph *g);

/* Distinct users, in XLA's order; valid until the next change. */
lw_inst *const *gpu_users(const gpu_graph *g, const lw_inst *i, int32_t *n);
static inline int32_t gpu_user_count(const gpu_graph *g, const lw_inst *i) {
  int32_t n;
  (void)gpu_users(g, i, &n);
  return n;
}

/* The consumer becomes a fusion of its own (or is one already), of that kind,
 * and takes a copy of the producer. The producer stays. */
lw_inst *gpu_fuse(gpu_graph *g, lw_inst *producer, lw_inst *consumer,
                  lw_fusion_kind kind);
/* A fusion holding just that instruction, in its place. */
lw_inst *gpu_fusion_of(gpu_graph *g, lw_inst *i, lw_fusion_kind kind);
/* No users left. */
void gpu_remove(gpu_graph *g, lw_inst *i);

/* The fusion takes other's outputs as further outputs of its own; other goes.
 * Other is a sibling, or the fusion's producer. */
void gpu_fuse_outputs(gpu_graph *g, lw_inst *fusion, lw_inst *other);

/* The computations that GPU passes fuse in, callees first. */
lw_comp **gpu_comps_to_fuse(const lw_module *m, lw_arena *a, int32_t *n);

static inline bool gpu_is_custom_fusion(const lw_inst *i) {
  return i->opcode == LW_OP_FUSION &&
         lw_inst_i64(i, LW_ATTR_KIND, 0) == LW_FUSION_CUSTOM;
}
static inline bool gpu_is_multi_output(const lw_inst *i) {
  return i->opcode == LW_OP_FUSION &&
         lw_fusion_body(i)->root->opcode == LW_OP_TUPLE;
}

#endif
