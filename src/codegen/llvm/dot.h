/* Shared by dots and convolutions: accumulators of one or four real chains,
 * blocks, results. */
#ifndef LW_CODEGEN_LLVM_DOT_H
#define LW_CODEGEN_LLVM_DOT_H

#include "codegen/llvm/emit.h"
#include "kernel/dot_plan.h"

typedef struct {
  lw_fn *f;
  lw_dot_plan plan;
  lw_prim acc, result, type[2]; /* type: of lhs and rhs */
  LLVMValueRef base[2], dest;
  lw_cgval scalar[2];      /* of an operand without base: a scalar */
  LLVMValueRef row0, row1; /* the tile's rows: batch * m + row, i64 */
  int n_chains; /* 4 for complex results: re re, im im, re im, im re */
  int width;    /* vector lanes of the accumulator type */
  int64_t work_offset;
} lw_dot;

/* One factor in accumulator type; im only for complex results. */
typedef struct {
  LLVMValueRef re, im;
} lw_operand;

typedef struct {
  LLVMValueRef v[4];
} lw_acc;

typedef struct {
  LLVMValueRef p[4];
  int width;
} lw_acc_slot;

/* A loaded element (or lanes) of type t in accumulator type: exact. */
lw_operand lw_dot_operand(lw_dot *d, lw_prim t, lw_cgval v, int width);
lw_acc_slot lw_acc_slot_new(lw_dot *d, int width);
void lw_acc_set(lw_dot *d, const lw_acc_slot *s, lw_acc a);
lw_acc lw_acc_get(lw_dot *d, const lw_acc_slot *s);
void lw_acc_clear(lw_dot *d, const lw_acc_slot *s);
lw_acc lw_acc_madd(lw_dot *d, lw_operand a, lw_operand b, lw_acc s);
void lw_acc_add_block(lw_dot *d, const lw_acc_slot *total, lw_acc block,
                      LLVMValueRef first);
/* Rounds once to the result type and stores at p, or width elements stride
 * apart from element first on. */
void lw_dot_store(lw_dot *d, lw_acc a, LLVMValueRef p, int width,
                  LLVMValueRef mask);
void lw_dot_store_strided(lw_dot *d, lw_acc a, LLVMValueRef first,
                          int64_t stride, int width, LLVMValueRef mask);
LLVMValueRef lw_dot_out(lw_dot *d, LLVMValueRef element);
/* The accumulator's type, a * b + s and a + b in it. */
LLVMTypeRef lw_dot_acc_type(lw_dot *d, int width);
LLVMValueRef lw_dot_madd(lw_dot *d, LLVMValueRef a, LLVMValueRef b,
                         LLVMValueRef s);
LLVMValueRef lw_dot_plus(lw_dot *d, LLVMValueRef a, LLVMValueRef b);
/* Element offset of linear position lin (i64, or a vector of them) of an axis.
 */
LLVMValueRef lw_axis_offset(lw_fn *f, const lw_axis *a, LLVMValueRef lin);
/* width elements of operand s: fixed element offset plus positions lin, lin+1,
 * ... of the axis that runs along the lanes. */
lw_operand lw_dot_lanes(lw_dot *d, int s, LLVMValueRef fixed,
                        const lw_axis *along, LLVMValueRef lin, int width,
                        LLVMValueRef mask);
/* Opens a loop over the batches that the rows [row0, row1) touch; in each its
 * rows [*lo, *hi). */
lw_loop lw_dot_batches(lw_dot *d, LLVMValueRef *lo, LLVMValueRef *hi);
/* dot_packed.c: the whole stage, for d->plan.road == LW_DOT_PACKED. */
void lw_dot_packed(lw_dot *d);

#endif
