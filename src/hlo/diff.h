/* What differs between two modules: the engine of `lawson diff A B`.
 *
 * Instructions are matched from the entries down, by what they compute first
 * (fingerprint with operands), then by op_name, opcode and shape, then by
 * opcode and attributes, then by name. What is left over was added or removed;
 * a matched pair that does not say the same, or whose operands are not each
 * other's partners, was changed. */
#ifndef LW_HLO_DIFF_H
#define LW_HLO_DIFF_H

#include "hlo/fingerprint.h"

typedef enum { LW_DIFF_ADDED, LW_DIFF_REMOVED, LW_DIFF_CHANGED } lw_diff_kind;

typedef struct {
  lw_diff_kind kind;
  const lw_inst *a, *b; /* NULL on the side where there is none */
  const char *what;     /* CHANGED: "shape f32[2] -> f32[4]; operands" */
} lw_diff_item;

typedef struct {
  int64_t computations, instructions, fusions, custom_calls;
  const lw_inst *root; /* of the entry; NULL without one */
} lw_diff_side;

typedef struct {
  bool moved; /* verdict: MOVED, else SAME (fingerprints are equal) */
  uint64_t fingerprint_a, fingerprint_b;
  lw_diff_side a, b;
  int64_t added, removed, changed;
  LW_VEC(lw_diff_item) items; /* removed and changed in A's order, then added */
  lw_arena *arena;
} lw_diff;

/* levels: LW_FP_*. Both modules must outlive the result. */
lw_diff *lw_diff_modules(const lw_module *a, const lw_module *b,
                         unsigned levels);
void lw_diff_free(lw_diff *d);
/* The verdict, the sides, then at most max items (0: all). */
void lw_diff_print(lw_buf *out, const lw_diff *d, int64_t max);

#endif
