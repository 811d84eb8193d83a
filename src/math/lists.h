/* Which opcodes exist for which class of types, and the definition that gives
 * each: X(opcode, name, long32, long64). A long definition becomes an internal
 * function in generated code (for f32 parts, for f64 parts); a short one is
 * inlined. */
#ifndef LW_MATH_LISTS_H
#define LW_MATH_LISTS_H

/* real -> the same */
#define LW_REAL_UNARY(X)        \
  X(ABS, abs, 0, 0)             \
  X(NEGATE, neg, 0, 0)          \
  X(SIGN, sign, 0, 0)           \
  X(FLOOR, floor, 0, 0)         \
  X(CEIL, ceil, 0, 0)           \
  X(ROUND_EVEN, rint, 0, 0)     \
  X(ROUND_AFZ, round_afz, 0, 0) \
  X(SQRT, sqrt, 0, 0)           \
  X(RSQRT, rsqrt, 0, 0)         \
  X(CBRT, cbrt, 1, 1)           \
  X(EXPONENTIAL, exp, 0, 1)     \
  X(EXPM1, expm1, 0, 1)         \
  X(LOG, log, 0, 1)             \
  X(LOG1P, log1p, 0, 1)         \
  X(LOGISTIC, logistic, 0, 1)   \
  X(TANH, tanh, 0, 1)           \
  X(ERF, erf, 0, 1)             \
  X(SINE, sin, 1, 1)            \
  X(COSINE, cos, 1, 1)          \
  X(TAN, tan, 1, 1)             \
  X(ASIN, asin, 1, 1)           \
  X(ACOS, acos, 1, 1)           \
  X(SINH, sinh, 1, 1)           \
  X(COSH, cosh, 1, 1)           \
  X(ASINH, asinh, 1, 1)         \
  X(ACOSH, acosh, 1, 1)         \
  X(ATANH, atanh, 1, 1)

#define LW_REAL_BINARY(X) \
  X(ADD, add, 0, 0)       \
  X(SUBTRACT, sub, 0, 0)  \
  X(MULTIPLY, mul, 0, 0)  \
  X(DIVIDE, div, 0, 0)    \
  X(MAXIMUM, max, 0, 0)   \
  X(MINIMUM, min, 0, 0)   \
  X(REMAINDER, rem, 1, 1) \
  X(POWER, pow, 1, 1)     \
  X(ATAN2, atan2, 1, 1)

#define LW_COMPLEX_UNARY(X)    \
  X(NEGATE, cneg, 0, 0)        \
  X(SIGN, csign, 1, 1)         \
  X(SQRT, csqrt, 1, 1)         \
  X(RSQRT, crsqrt, 1, 1)       \
  X(EXPONENTIAL, cexp, 1, 1)   \
  X(EXPM1, cexpm1, 1, 1)       \
  X(LOG, clog, 1, 1)           \
  X(LOG1P, clog1p, 1, 1)       \
  X(LOGISTIC, clogistic, 1, 1) \
  X(TANH, ctanh, 1, 1)         \
  X(TAN, ctan, 1, 1)           \
  X(SINE, csin, 1, 1)          \
  X(COSINE, ccos, 1, 1)

#define LW_COMPLEX_BINARY(X) \
  X(ADD, cadd, 0, 0)         \
  X(SUBTRACT, csub, 0, 0)    \
  X(MULTIPLY, cmul, 0, 0)    \
  X(DIVIDE, cdiv, 1, 1)      \
  X(POWER, cpow, 1, 1)

/* integers */
#define LW_INT_UNARY(X) \
  X(ABS, abs)           \
  X(NEGATE, neg)        \
  X(SIGN, sign)         \
  X(NOT, not)           \
  X(POPCNT, popcnt)     \
  X(CLZ, clz)

#define LW_INT_BINARY(X)         \
  X(ADD, add)                    \
  X(SUBTRACT, sub)               \
  X(MULTIPLY, mul)               \
  X(DIVIDE, div)                 \
  X(REMAINDER, rem)              \
  X(MAXIMUM, max)                \
  X(MINIMUM, min)                \
  X(AND, and)                    \
  X(OR, or)                      \
  X(XOR, xor)                    \
  X(SHIFT_LEFT, shl)             \
  X(SHIFT_RIGHT_LOGICAL, shr)    \
  X(SHIFT_RIGHT_ARITHMETIC, sar) \
  X(MULHI, mulhi)                \
  X(POWER, pow)

#endif
