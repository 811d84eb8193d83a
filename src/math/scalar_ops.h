/* The abstract operations of the definition files in scalar C. The
 * LLVM side of the same names is in src/codegen/llvm/emit_math.c; docs/math.md
 * lists them. Built with -fwrapv: integer ADD, SUB and MUL wrap. */
#ifndef LW_MATH_SCALAR_OPS_H
#define LW_MATH_SCALAR_OPS_H

#include <math.h>
#include <string.h>

#include "math/elementwise.h"

#define FN static inline __attribute__((unused))
#define GP /* the emitter's parameter in a definition */
#define GA /* and in a call */
#define GV void

typedef float F;
typedef double D;
typedef int32_t I;
typedef int64_t L;
typedef bool M;

#define FC(x) ((F)(x))
#define DC(x) ((D)(x))
#define IC(x) ((I)(x))
#define LC(x) ((L)(x))

#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define NEG(a) (-(a))
#define FMA(a, b, c) \
  _Generic((a), F: __builtin_fmaf, D: __builtin_fma)((a), (b), (c))
#define SQRT(a) _Generic((a), F: __builtin_sqrtf, D: __builtin_sqrt)(a)
#define FLOOR(a) _Generic((a), F: __builtin_floorf, D: __builtin_floor)(a)
#define CEIL(a) _Generic((a), F: __builtin_ceilf, D: __builtin_ceil)(a)
#define TRUNC(a) _Generic((a), F: __builtin_truncf, D: __builtin_trunc)(a)
#define RINT(a) _Generic((a), F: __builtin_rintf, D: __builtin_rint)(a)
#define ABS(a) _Generic((a), F: __builtin_fabsf, D: __builtin_fabs)(a)
#define COPYSIGN(a, b) \
  _Generic((a), F: __builtin_copysignf, D: __builtin_copysign)((a), (b))

#define EQ(a, b) ((a) == (b))
#define NE(a, b) ((a) != (b))
#define LT(a, b) ((a) < (b))
#define LE(a, b) ((a) <= (b))
#define GT(a, b) ((a) > (b))
#define GE(a, b) ((a) >= (b))
#define UNO(a, b) __builtin_isunordered((a), (b))
#define ULT(a, b) ((uint64_t)(a) < (uint64_t)(b))
#define SEL(m, a, b) ((m) ? (a) : (b))
#define MAND(a, b) ((M)((a) & (b)))
#define MOR(a, b) ((M)((a) | (b)))
#define MXOR(a, b) ((M)((a) ^ (b)))
#define MNOT(a) (!(a))

#define AND(a, b) ((a) & (b))
#define OR(a, b) ((a) | (b))
#define XOR(a, b) ((a) ^ (b))
#define SHL(a, n) ((a) << (n))
#define SAR(a, n) ((a) >> (n))
static inline I lw_shr_i(I a, I n) { return (I)((uint32_t)a >> n); }
static inline L lw_shr_l(L a, L n) { return (L)((uint64_t)a >> n); }
#define SHR(a, n) _Generic((a), I: lw_shr_i, L: lw_shr_l)((a), (n))

static inline I lw_bits_f(F x) {
  I r;
  memcpy(&r, &x, sizeof r);
  return r;
}
static inline F lw_from_bits_f(I x) {
  F r;
  memcpy(&r, &x, sizeof r);
  return r;
}
static inline L lw_bits_d(D x) {
  L r;
  memcpy(&r, &x, sizeof r);
  return r;
}
static inline D lw_from_bits_d(L x) {
  D r;
  memcpy(&r, &x, sizeof r);
  return r;
}
#define BF(x) lw_bits_f(x)
#define FB(x) lw_from_bits_f(x)
#define BD(x) lw_bits_d(x)
#define DB(x) lw_from_bits_d(x)
#define F2D(x) ((D)(x))
#define D2F(x) ((F)(x))
#define I2F(x) ((F)(x))
#define I2D(x) ((D)(x))
#define L2D(x) ((D)(x))
#define U2D(x) ((D)(uint64_t)(x)) /* L read as unsigned */
#define D2L(x) ((L)(x))           /* in range, towards zero */
#define D2U(x) ((L)(uint64_t)(x))
#define I2L(x) ((L)(x))
#define U2L(x) ((L)(uint32_t)(x))
#define L2I(x) ((I)(x))

/* State of a loop or a rare path; the condition is per lane, and every SET is
 * masked with it by a SEL, so that lanes never see each other. */
#define VAR(T, name, init) T name = (init)
#define GET(v) (v)
#define SET(v, x) ((v) = (x))
#define WHILE_ANY(cond) while (cond)
#define IF_ANY(cond) if (cond)

#endif
