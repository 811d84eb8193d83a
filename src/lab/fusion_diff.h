/* Which fusions of one optimised module split, merged or moved in another of
 * the same program.
 *
 * Operations are matched by op_name (by their own name where they have none)
 * with opcode and dimensions; those that are alone with theirs in both modules
 * are anchors. Two kernels that hold an anchor in common belong together; the
 * connected parts of that relation are the changes:
 *
 *   one to one     SAME, or CHANGED when one holds an anchor that the other
 * lacks one to many    SPLIT many to one    MERGED many to many   MOVED:
 * operations went from one kernel to another
 *
 * Kernels are fusions, and single operations outside them; a part of single
 * operations only is no fusion and is left out. */
#ifndef LW_LAB_FUSION_DIFF_H
#define LW_LAB_FUSION_DIFF_H

#include "hlo/hlo.h"

typedef enum {
  LW_FUSION_SAME,
  LW_FUSION_CHANGED,
  LW_FUSION_SPLIT,
  LW_FUSION_MERGED,
  LW_FUSION_MOVED
} lw_fusion_change;

typedef struct {
  lw_fusion_change change;
  int32_t n_a, n_b;
  const lw_inst **a, **b; /* kernels, in module order */
  int32_t anchors;
} lw_fusion_part;

typedef struct {
  lw_arena *arena;
  LW_VEC(lw_fusion_part) parts; /* by A's order */
  int64_t operations_a, operations_b, anchors;
  bool by_op_name; /* some operation of A has one */
} lw_fusion_diff;

/* Both modules must outlive it. The caller frees *out. */
void lw_fusion_diff_of(const lw_module *a, const lw_module *b,
                       lw_fusion_diff *out);
void lw_fusion_diff_free(lw_fusion_diff *d);
const char *lw_fusion_change_name(lw_fusion_change c);
/* One line a part that is not SAME; a line that counts those. */
void lw_fusion_diff_print(lw_buf *b, const lw_fusion_diff *d);

#endif
