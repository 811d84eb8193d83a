/* Elementwise HLO operations on contiguous arrays: the scalar instantiation of
 * the one definition of their results (docs/math.md). The interpreter and
 * constant folding call these; src/codegen/llvm/emit_math.h emits the same
 * operations as vector code, so that both give the same bits.
 */
#ifndef LW_MATH_ELEMENTWISE_H
#define LW_MATH_ELEMENTWISE_H

#include "hlo/types.h"

/* One operation with everything its result depends on. Zero what is unused. */
typedef struct {
  lw_opcode op;         /* an opcode with UN, BIN or TERN */
  lw_prim in[3];        /* operand types, LW_PRIM_INVALID beyond arity */
  lw_prim out;          /* result type */
  lw_cmp_dir dir;       /* compare */
  bool total_order;     /* compare: comparison type TOTALORDER */
  int exponent_bits;    /* reduce-precision */
  int mantissa_bits;    /* reduce-precision */
  bool flush_denormals; /* read and write subnormals as signed zero */
  bool canonical_nan;   /* code only: someone observes the NaN's bits.
                           The scalar functions always canonicalise. */
} lw_elem_op;

/* out[i] = op(a[i], b[i], c[i]) for i in [0, n). Elements are in literal
 * format: lw_prim_bytes(type) each, sub-byte types one byte each (signed ones
 * sign-extended, others zero-extended; pred 0 or 1). out may be the same array
 * as an operand of equal element size; otherwise no overlap. */
typedef void (*lw_elem_fn)(const lw_elem_op *op, int64_t n, const void *a,
                           const void *b, const void *c, void *out);

/* The function for op; INVALID_ARGUMENT when HLO does not have the operation
 * on these types. Bitcast-convert is here only between types of equal size. */
LW_MUST_USE lw_status lw_elem_resolve(const lw_elem_op *op, lw_elem_fn *fn);

/* Fills an operation of the given types with arity taken from the opcode:
 * in[i] is LW_PRIM_INVALID beyond it. */
lw_elem_op lw_elem_make(lw_opcode op, lw_prim a, lw_prim b, lw_prim c,
                        lw_prim out);

/* Single conversions, exact or rounded once to nearest even. x is one element
 * of type t in literal format. Any real type, pred included. */
double lw_elem_to_f64(lw_prim t, const void *x);
void lw_elem_from_f64(lw_prim t, double v, void *x);

/* Part of every cache key: changes when any result's bits change. */
#define LW_MATH_VERSION 1

#endif
