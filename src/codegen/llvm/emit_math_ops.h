/* The abstract operations of the .inc files of src/math as LLVM builder calls
 * (the scalar ones are in math/scalar_ops.h). A value of any of the types F, D,
 * I, L, M, T is an LLVMValueRef: a scalar at width 1, else a vector. Included
 * by emit_math.c alone. No fast-math flag is ever set. */
#ifndef LW_CODEGEN_LLVM_EMIT_MATH_OPS_H
#define LW_CODEGEN_LLVM_EMIT_MATH_OPS_H

#include <math.h>
#include <string.h>

#include "codegen/llvm/emit_math.h"

#define FN static inline __attribute__((unused))
#define GP lw_mathgen *g __attribute__((unused)),
#define GA g,
#define GV lw_mathgen *g
#define BLD (g->b) /* for macros with a parameter b */

typedef LLVMValueRef F;
typedef LLVMValueRef D;
typedef LLVMValueRef I;
typedef LLVMValueRef L;
typedef LLVMValueRef M;
typedef LLVMValueRef T;

/* ---- types and constants ---- */

FN LLVMTypeRef op_vec(GP LLVMTypeRef t) {
  return g->width == 1 ? t : LLVMVectorType(t, (unsigned)g->width);
}
FN LLVMTypeRef op_int_type(GP int bits) {
  return op_vec(g, LLVMIntTypeInContext(g->ctx, (unsigned)bits));
}
FN LLVMTypeRef op_float_type(GV) {
  return op_vec(g, LLVMFloatTypeInContext(g->ctx));
}
FN LLVMTypeRef op_double_type(GV) {
  return op_vec(g, LLVMDoubleTypeInContext(g->ctx));
}

FN LLVMValueRef op_splat(GP LLVMValueRef c) {
  if (g->width == 1) return c;
  LLVMValueRef v[64];
  for (int i = 0; i < g->width; i++) v[i] = c;
  return LLVMConstVector(v, (unsigned)g->width);
}
FN LLVMValueRef op_int(GP int bits, int64_t x) {
  uint64_t u =
      bits < 64 ? (uint64_t)x & (((uint64_t)1 << bits) - 1) : (uint64_t)x;
  LLVMTypeRef t = LLVMIntTypeInContext(g->ctx, (unsigned)bits);
  return op_splat(g, LLVMConstInt(t, u, 0));
}
FN F op_float(GP double x) {
  LLVMTypeRef t = LLVMFloatTypeInContext(g->ctx);
  return op_splat(g, LLVMConstReal(t, (double)(float)x));
}
FN D op_double(GP double x) {
  LLVMTypeRef t = LLVMDoubleTypeInContext(g->ctx);
  return op_splat(g, LLVMConstReal(t, x));
}
#define FC(x) op_float(g, (x))
#define DC(x) op_double(g, (x))
#define IC(x) op_int(g, 32, (int64_t)(x))
#define LC(x) op_int(g, 64, (int64_t)(x))

FN LLVMTypeRef op_elem(LLVMValueRef v) {
  LLVMTypeRef t = LLVMTypeOf(v);
  return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
}
FN bool op_is_fp(LLVMValueRef v) {
  return LLVMGetTypeKind(op_elem(v)) != LLVMIntegerTypeKind;
}
FN int op_bits(LLVMValueRef v) { return (int)LLVMGetIntTypeWidth(op_elem(v)); }

/* ---- intrinsics ---- */

FN LLVMValueRef op_intrinsic(GP const char *name, LLVMTypeRef *types,
                             int ntypes, LLVMValueRef *args, int nargs) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMValueRef f =
      LLVMGetIntrinsicDeclaration(g->mod, id, types, (size_t)ntypes);
  LLVMTypeRef t = LLVMIntrinsicGetType(g->ctx, id, types, (size_t)ntypes);
  return LLVMBuildCall2(g->b, t, f, args, (unsigned)nargs, "");
}
FN LLVMValueRef op_call1(GP const char *name, LLVMValueRef a) {
  LLVMTypeRef t = LLVMTypeOf(a);
  return op_intrinsic(g, name, &t, 1, &a, 1);
}
FN LLVMValueRef op_call2(GP const char *name, LLVMValueRef a, LLVMValueRef b) {
  LLVMTypeRef t = LLVMTypeOf(a);
  LLVMValueRef args[2] = {a, b};
  return op_intrinsic(g, name, &t, 1, args, 2);
}
FN LLVMValueRef op_fma(GP LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  LLVMTypeRef t = LLVMTypeOf(a);
  LLVMValueRef args[3] = {a, b, c};
  return op_intrinsic(g, "llvm.fma", &t, 1, args, 3);
}
FN LLVMValueRef op_ctlz(GP LLVMValueRef a) {
  LLVMTypeRef t = LLVMTypeOf(a);
  LLVMTypeRef i1 = LLVMInt1TypeInContext(g->ctx);
  LLVMValueRef args[2] = {a, LLVMConstInt(i1, 0, 0)};
  return op_intrinsic(g, "llvm.ctlz", &t, 1, args, 2);
}
#define FMA(a, b, c) op_fma(g, a, b, c)
#define SQRT(a) op_call1(g, "llvm.sqrt", a)
#define FLOOR(a) op_call1(g, "llvm.floor", a)
#define CEIL(a) op_call1(g, "llvm.ceil", a)
#define TRUNC(a) op_call1(g, "llvm.trunc", a)
#define RINT(a) op_call1(g, "llvm.rint", a)
#define ABS(a) op_call1(g, "llvm.fabs", a)
#define COPYSIGN(a, b) op_call2(g, "llvm.copysign", a, b)

/* ---- arithmetic ---- */

FN LLVMValueRef op_add(GP LLVMValueRef a, LLVMValueRef b) {
  return op_is_fp(a) ? LLVMBuildFAdd(g->b, a, b, "")
                     : LLVMBuildAdd(g->b, a, b, "");
}
FN LLVMValueRef op_sub(GP LLVMValueRef a, LLVMValueRef b) {
  return op_is_fp(a) ? LLVMBuildFSub(g->b, a, b, "")
                     : LLVMBuildSub(g->b, a, b, "");
}
FN LLVMValueRef op_mul(GP LLVMValueRef a, LLVMValueRef b) {
  return op_is_fp(a) ? LLVMBuildFMul(g->b, a, b, "")
                     : LLVMBuildMul(g->b, a, b, "");
}
#define ADD(a, b) op_add(g, a, b)
#define SUB(a, b) op_sub(g, a, b)
#define MUL(a, b) op_mul(g, a, b)
#define DIV(a, b) LLVMBuildFDiv(BLD, a, b, "")
#define NEG(a) LLVMBuildFNeg(BLD, a, "")

/* ---- comparisons and masks ---- */

FN M op_cmp(GP LLVMRealPredicate f, LLVMIntPredicate i, LLVMValueRef a,
            LLVMValueRef b) {
  return op_is_fp(a) ? LLVMBuildFCmp(g->b, f, a, b, "")
                     : LLVMBuildICmp(g->b, i, a, b, "");
}
#define EQ(a, b) op_cmp(g, LLVMRealOEQ, LLVMIntEQ, a, b)
#define NE(a, b) op_cmp(g, LLVMRealUNE, LLVMIntNE, a, b)
#define LT(a, b) op_cmp(g, LLVMRealOLT, LLVMIntSLT, a, b)
#define LE(a, b) op_cmp(g, LLVMRealOLE, LLVMIntSLE, a, b)
#define GT(a, b) op_cmp(g, LLVMRealOGT, LLVMIntSGT, a, b)
#define GE(a, b) op_cmp(g, LLVMRealOGE, LLVMIntSGE, a, b)
#define UNO(a, b) LLVMBuildFCmp(BLD, LLVMRealUNO, a, b, "")
#define ULT(a, b) LLVMBuildICmp(BLD, LLVMIntULT, a, b, "")
#define SEL(m, a, b) LLVMBuildSelect(BLD, m, a, b, "")
#define MAND(a, b) LLVMBuildAnd(BLD, a, b, "")
#define MOR(a, b) LLVMBuildOr(BLD, a, b, "")
#define MXOR(a, b) LLVMBuildXor(BLD, a, b, "")
#define MNOT(a) LLVMBuildNot(BLD, a, "")

/* ---- bits ---- */

#define AND(a, b) LLVMBuildAnd(BLD, a, b, "")
#define OR(a, b) LLVMBuildOr(BLD, a, b, "")
#define XOR(a, b) LLVMBuildXor(BLD, a, b, "")
#define SHL(a, n) LLVMBuildShl(BLD, a, n, "")
#define SHR(a, n) LLVMBuildLShr(BLD, a, n, "")
#define SAR(a, n) LLVMBuildAShr(BLD, a, n, "")
#define BF(x) LLVMBuildBitCast(BLD, x, op_int_type(g, 32), "")
#define BD(x) LLVMBuildBitCast(BLD, x, op_int_type(g, 64), "")
#define FB(x) LLVMBuildBitCast(BLD, x, op_float_type(g), "")
#define DB(x) LLVMBuildBitCast(BLD, x, op_double_type(g), "")

/* ---- conversions ---- */

#define F2D(x) LLVMBuildFPExt(BLD, x, op_double_type(g), "")
#define D2F(x) LLVMBuildFPTrunc(BLD, x, op_float_type(g), "")
#define I2F(x) LLVMBuildSIToFP(BLD, x, op_float_type(g), "")
#define I2D(x) LLVMBuildSIToFP(BLD, x, op_double_type(g), "")
#define L2D(x) LLVMBuildSIToFP(BLD, x, op_double_type(g), "")
#define U2D(x) LLVMBuildUIToFP(BLD, x, op_double_type(g), "")
#define D2L(x) LLVMBuildFPToSI(BLD, x, op_int_type(g, 64), "")
#define D2U(x) LLVMBuildFPToUI(BLD, x, op_int_type(g, 64), "")
#define I2L(x) LLVMBuildSExt(BLD, x, op_int_type(g, 64), "")
#define U2L(x) LLVMBuildZExt(BLD, x, op_int_type(g, 64), "")
#define L2I(x) LLVMBuildTrunc(BLD, x, op_int_type(g, 32), "")

/* An integer to `bits` bits, extended as is_signed says. */
FN LLVMValueRef op_resize(GP LLVMValueRef x, int bits, bool is_signed) {
  LLVMTypeRef t = op_int_type(g, bits);
  int now = op_bits(x);
  if (now > bits) return LLVMBuildTrunc(g->b, x, t, "");
  if (now == bits) return x;
  return is_signed ? LLVMBuildSExt(g->b, x, t, "")
                   : LLVMBuildZExt(g->b, x, t, "");
}

/* AVX-512's vscalefps: x 2^k rounded once, as the two multiplications do. */
FN F op_scale(GP F x, I k) {
  if (!g->has_avx512 || g->width != 16) return NULL;
  LLVMTypeRef i16 = LLVMInt16TypeInContext(g->ctx);
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx);
  LLVMValueRef args[5] = {x, I2F(k), x, LLVMConstAllOnes(i16),
                          LLVMConstInt(i32, 4, 0)};
  return op_intrinsic(g, "llvm.x86.avx512.mask.scalef.ps.512", NULL, 0, args,
                      5);
}
#define SCALE_F(x, k) op_scale(g, x, k)

/* ---- loops and rare paths (internal functions only) ---- */

FN LLVMValueRef op_var(GP LLVMValueRef init) {
  LLVMValueRef v = LLVMBuildAlloca(g->b, LLVMTypeOf(init), "");
  LLVMBuildStore(g->b, init, v);
  return v;
}
FN LLVMValueRef op_get(GP LLVMValueRef v) {
  return LLVMBuildLoad2(g->b, LLVMGetAllocatedType(v), v, "");
}
FN M op_any(GP M m) {
  if (g->width == 1) return m;
  LLVMTypeRef bits = LLVMIntTypeInContext(g->ctx, (unsigned)g->width);
  LLVMValueRef u = LLVMBuildBitCast(g->b, m, bits, "");
  return LLVMBuildICmp(g->b, LLVMIntNE, u, LLVMConstNull(bits), "");
}

typedef struct {
  LLVMBasicBlockRef head, exit; /* head: NULL for a rare path */
} op_region;

FN LLVMBasicBlockRef op_block(GP const char *name) {
  LLVMValueRef f = LLVMGetBasicBlockParent(LLVMGetInsertBlock(g->b));
  return LLVMAppendBasicBlockInContext(g->ctx, f, name);
}
FN op_region op_loop_open(GV) {
  op_region r = {op_block(g, "while"), op_block(g, "done")};
  LLVMBuildBr(g->b, r.head);
  LLVMPositionBuilderAtEnd(g->b, r.head);
  return r;
}
FN op_region op_if_open(GV) { return (op_region){NULL, op_block(g, "join")}; }
FN op_region *op_region_test(GP op_region *r, M lanes) {
  LLVMBasicBlockRef body = op_block(g, "body");
  LLVMBuildCondBr(g->b, op_any(g, lanes), body, r->exit);
  LLVMPositionBuilderAtEnd(g->b, body);
  return r;
}
FN op_region *op_region_close(GP op_region *r) {
  LLVMBuildBr(g->b, r->head ? r->head : r->exit);
  LLVMPositionBuilderAtEnd(g->b, r->exit);
  return NULL;
}
#define VAR(type, name, init) LLVMValueRef name = op_var(g, init)
#define GET(v) op_get(g, v)
#define SET(v, x) LLVMBuildStore(BLD, x, v)
/* The statement that follows runs once, and emits the body. */
#define WHILE_ANY(cond)                                   \
  for (op_region reg_ = op_loop_open(g),                  \
                 *in_ = op_region_test(g, &reg_, (cond)); \
       in_; in_ = op_region_close(g, in_))
#define IF_ANY(cond)                                      \
  for (op_region reg_ = op_if_open(g),                    \
                 *in_ = op_region_test(g, &reg_, (cond)); \
       in_; in_ = op_region_close(g, in_))

/* ---- integer.inc ---- */

#define BITS (g->bits_)
#define SGN (g->sgn_)
#define LANE (g->bits_ < 8 ? 8 : g->bits_)
#define LANE_MIN ((int64_t)((uint64_t)1 << (LANE - 1)))
#define KC(x) op_int(g, LANE, (int64_t)(x))
#define TADD(a, b) LLVMBuildAdd(BLD, a, b, "")
#define TSUB(a, b) LLVMBuildSub(BLD, a, b, "")
#define TMUL(a, b) LLVMBuildMul(BLD, a, b, "")
#define TDIV(a, b) op_int_div(g, a, b)
#define TREM(a, b) op_int_rem(g, a, b)
#define TAND(a, b) AND(a, b)
#define TOR(a, b) OR(a, b)
#define TXOR(a, b) XOR(a, b)
#define TSHL(a, n) SHL(a, n)
#define TSHR(a, n) SHR(a, n)
#define TSAR(a, n) SAR(a, n)
#define TSEL(m, a, b) SEL(m, a, b)
#define TLT(a, b) LLVMBuildICmp(BLD, SGN ? LLVMIntSLT : LLVMIntULT, a, b, "")
#define TGT(a, b) LLVMBuildICmp(BLD, SGN ? LLVMIntSGT : LLVMIntUGT, a, b, "")
#define TULT(a, b) ULT(a, b)
#define TMASK(a) (BITS == LANE ? (a) : AND(a, KC(((int64_t)1 << BITS) - 1)))
#define TSEXT(a) \
  (BITS == LANE ? (a) : SAR(SHL(a, KC(LANE - BITS)), KC(LANE - BITS)))
#define NORM(x) op_norm(g, x)
#define TPOP(a) op_call1(g, "llvm.ctpop", a)
#define TCLZ(a) SUB(op_ctlz(g, a), KC(LANE - BITS))
#define TMULHI(a, b) op_mulhi(g, a, b)

/* Vectors of up to 32 bits divide as f64: the quotient of two such integers is
 * at least 2^-33 of itself away from the next integer above, so its rounding
 * never reaches it. */
FN T op_int_div(GP T a, T b) {
  if (g->width == 1 || BITS > 32)
    return SGN ? LLVMBuildSDiv(BLD, a, b, "") : LLVMBuildUDiv(BLD, a, b, "");
  LLVMTypeRef t = op_double_type(g), i = op_int_type(g, LANE);
  if (!SGN) {
    D x = LLVMBuildUIToFP(BLD, a, t, ""), y = LLVMBuildUIToFP(BLD, b, t, "");
    return LLVMBuildFPToUI(BLD, DIV(x, y), i, "");
  }
  D x = LLVMBuildSIToFP(BLD, a, t, ""), y = LLVMBuildSIToFP(BLD, b, t, "");
  return LLVMBuildFPToSI(BLD, DIV(x, y), i, "");
}
FN T op_int_rem(GP T a, T b) {
  if (g->width == 1 || BITS > 32)
    return SGN ? LLVMBuildSRem(BLD, a, b, "") : LLVMBuildURem(BLD, a, b, "");
  return SUB(a, MUL(op_int_div(g, a, b), b));
}

FN T op_norm(GP T x) { return SGN ? TSEXT(x) : TMASK(x); }
FN T op_mulhi(GP T a, T b) {
  int wide = 2 * LANE;
  LLVMValueRef x = op_resize(g, a, wide, SGN), y = op_resize(g, b, wide, SGN);
  LLVMValueRef n = LLVMConstInt(LLVMIntTypeInContext(g->ctx, (unsigned)wide),
                                (uint64_t)BITS, 0);
  return op_resize(g, SHR(MUL(x, y), op_splat(g, n)), LANE, false);
}

#endif
