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
#include "trace/trace.h"

typedef struct {
  lw_comp *comp;
  lw_arena *arena;
  lw_map users; /* inst -> user_list */
  int64_t next_unique_id;
  int64_t cloned;  /* instructions of merged bodies so far */
  lw_trace *trace; /* learns what each new name computes; may be NULL */
} gpu_graph;

/* How many clones a computation's fusions may take in XLA's way, names and all
 * (nine times what any program of the corpus needs). */
enum { GPU_CLONES = 50000 };

/* Users in the order in which the computation lists them, as when XLA loads it;
 * those of constants, bitcasts and tuple elements by their numbers: XLA's cse
 * and its layout passes make and unite these in that order. What else passes
 * moved is in no file. */
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
/* gpu_splice.c: merging by moving the body; see there. The producer has no
 * other reader. Use records of the graph are the caller's. */
bool gpu_can_splice(const gpu_graph *g, const lw_inst *producer);
void gpu_splice(lw_inst *fusion, lw_inst *producer);
/* A fusion holding just that instruction, in its place. */
lw_inst *gpu_fusion_of(gpu_graph *g, lw_inst *i, lw_fusion_kind kind);
/* No users left. */
void gpu_remove(gpu_graph *g, lw_inst *i);

/* The fusion takes other's outputs as further outputs of its own; other goes.
 * Other is a sibling, or the fusion's producer. */
void gpu_fuse_outputs(gpu_graph *g, lw_inst *fusion, lw_inst *other);

/* The computations that GPU passes fuse in, callees first. */
lw_comp **gpu_comps_to_fuse(const lw_module *m, lw_arena *a, int32_t *n);
/* All of them but the bodies of fusions. */
lw_comp **gpu_comps_outside(const lw_module *m, lw_arena *a, int32_t *n);

static inline bool gpu_is_custom_fusion(const lw_inst *i) {
  return i->opcode == LW_OP_FUSION &&
         lw_inst_i64(i, LW_ATTR_KIND, 0) == LW_FUSION_CUSTOM;
}
static inline bool gpu_is_multi_output(const lw_inst *i) {
  return i->opcode == LW_OP_FUSION &&
         lw_fusion_body(i)->root->opcode == LW_OP_TUPLE;
}

#endif
