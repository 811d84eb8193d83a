/* FMA chains (chain.c): the arithmetic of dots and convolutions. */
#ifndef LW_INTERP_CHAIN_H
#define LW_INTERP_CHAIN_H

#include "hlo/fold.h"
#include "interp/eval.h"

/* How terms accumulate: fused multiply-add in f32 or f64, or integers modulo
 * 2^64. */
typedef enum { LW_ACC_F32, LW_ACC_F64, LW_ACC_INT } lw_acc;

lw_acc lw_acc_of(lw_prim accumulator);
size_t lw_acc_size(lw_acc acc);
/* Complex results need complex operands, integer ones no floats. */
LW_MUST_USE lw_status lw_acc_check(lw_acc acc, const lw_val *a, const lw_val *b,
                                   lw_prim result);

/* s[j] = fma(*a, b[j], s[j]) for j in [0, n). */
void lw_chain_step(lw_acc acc, int64_t n, const void *a, const void *b,
                   void *s);
/* sum[j] = first ? s[j] : sum[j] + s[j]; then s[j] = 0. */
void lw_chain_end_block(lw_acc acc, int64_t n, bool first, void *s, void *sum);

/* One row c[n] = sum over k of a[k] * b[k][n]: the standard rule. s is scratch
 * of n elements. */
void lw_chain_row(lw_acc acc, int64_t k, int64_t n, const void *a,
                  const void *b, void *c, void *s);
/* One element, the skinny rule; b has stride b_stride elements. */
void lw_chain_skinny(lw_acc acc, int64_t k, const void *a, const void *b,
                     int64_t b_stride, void *c);

/* Part 0 (real) or 1 (imaginary) of v's elements as accumulator elements. */
LW_MUST_USE lw_status lw_acc_load(lw_eval *e, lw_acc acc, const lw_val *v,
                                  int part, void *out);
/* Rounds once to the type of out; re and im as accumulator elements (im NULL
 * for real types). */
LW_MUST_USE lw_status lw_acc_store(lw_eval *e, lw_acc acc, const void *re,
                                   const void *im, lw_val *out);
/* x[i] -= y[i] and x[i] += y[i]. */
void lw_acc_sub(lw_acc acc, int64_t n, void *x, const void *y);
void lw_acc_add(lw_acc acc, int64_t n, void *x, const void *y);

/* Subnormals as zero while the chains run, when the run asks for it. */
typedef unsigned lw_flush_state;
lw_flush_state lw_flush_begin(const lw_eval *e);
void lw_flush_end(lw_flush_state s);

#endif
