/* The LLVM instantiation of the elementwise operations: emits at a builder, at
 * any vector width, the operations src/math/elementwise.h does on arrays, and
 * gives the same bits lane by lane (docs/math.md).
 *
 * Values live in registers in one of these forms (W lanes; W = 1 is a plain
 * scalar, not a vector of one):
 *   integers        iN, <W x iN>; s4/u4/s2/u2/s1/u1 are i8, kept normalised
 *                   (sign- or zero-extended)
 *   pred            i1, <W x i1>; in memory i8, 0 or 1
 *   f32, f64        float, double
 *   narrow floats   (bf16, f16, f8*, f6*, f4*) BITS: i16 or i8, the payload as
 *                   memory holds it; WIDE: a float whose value the type has
 *   complex         two registers of the part type (re, im)
 * Arithmetic takes narrow floats in either form and returns WIDE; operations
 * that only move bits return what they were given.
 */
#ifndef LW_CODEGEN_LLVM_EMIT_MATH_H
#define LW_CODEGEN_LLVM_EMIT_MATH_H

#include <llvm-c/Core.h>

#include "kernel/fault.h"
#include "math/elementwise.h"

typedef enum { LW_REP_BITS, LW_REP_WIDE } lw_rep;

typedef struct {
  LLVMValueRef re, im; /* im: complex types only */
  lw_prim type;
  lw_rep rep; /* WIDE only for narrow floats */
} lw_cgval;

typedef struct {
  LLVMContextRef ctx;
  LLVMModuleRef mod; /* long functions are added to it, once a width */
  LLVMBuilderRef b;  /* positioned where code is wanted; stays in its block */
  int width;         /* lanes, a power of two in [1, 64] */
  bool has_avx2, has_avx512, has_f16c, has_fma; /* speed only, never bits */
  /* Attributes "target-cpu" and "target-features" for the internal functions,
   * NULL for none: pass the same as the kernel's. */
  const char *target_cpu, *target_features;
  lw_fault fault; /* planted by tests */
  bool masked;    /* some lanes do not count: only LW_FAULT_TAIL asks */
  /* Private to emit_math.c. */
  int bits_;
  bool sgn_;
} lw_mathgen;

/* Emits op on a, b, c (ignored beyond the arity). The operation must be one
 * that lw_elem_resolve accepts. Emits no branches at the builder's block;
 * long operations are calls of internal functions "lw.NAME.xW". */
lw_cgval lw_mathgen_elem(lw_mathgen *g, const lw_elem_op *op, lw_cgval a,
                         lw_cgval b, lw_cgval c);

/* The register types of a real type t (a complex type's parts): in memory, and
 * in form rep. <W x T>, or T at width 1. */
LLVMTypeRef lw_mathgen_mem_type(lw_mathgen *g, lw_prim t);
LLVMTypeRef lw_mathgen_reg_type(lw_mathgen *g, lw_prim t, lw_rep rep);

/* From what a load of memory type gave (im: NULL unless complex, already split
 * from the interleaved pairs) to a value in BITS form, and back. */
lw_cgval lw_mathgen_from_mem(lw_mathgen *g, lw_prim t, LLVMValueRef re,
                             LLVMValueRef im);
/* The memory form of v in re (and im): narrows WIDE values, pred to i8. */
lw_cgval lw_mathgen_to_mem(lw_mathgen *g, lw_cgval v);

/* BITS -> WIDE and back for narrow floats; other values come back as they are.
 * Narrow is exact (the value is representable); NaN becomes the type's. */
lw_cgval lw_mathgen_widen(lw_mathgen *g, lw_cgval v);
lw_cgval lw_mathgen_narrow(lw_mathgen *g, lw_cgval v);

/* Replaces NaN by the canonical one of the type (float and complex types). */
lw_cgval lw_mathgen_canonical(lw_mathgen *g, lw_cgval v);

/* A constant splat from one element in literal format (complex: both parts),
 * in BITS form. */
lw_cgval lw_mathgen_const(lw_mathgen *g, lw_prim t, const void *literal);

#endif
