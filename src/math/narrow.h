/* The formats of the narrow float types, for both instantiations. */
#ifndef LW_MATH_NARROW_H
#define LW_MATH_NARROW_H

#include "hlo/types.h"

typedef enum {
  LW_NARROW_IEEE,     /* infinities and NaNs at the top exponent */
  LW_NARROW_FN,       /* no infinity, NaN is all ones; overflow gives NaN */
  LW_NARROW_FNUZ,     /* NaN is what would be -0; overflow gives NaN */
  LW_NARROW_SATURATE, /* neither; overflow gives the largest number */
  LW_NARROW_E8M0      /* exponent alone; zero and negatives become NaN */
} lw_narrow_kind;

typedef struct {
  lw_narrow_kind kind;
  int exp_bits, man_bits;
  int min_exp;       /* exponent of the least normal number */
  uint32_t max_bits; /* largest finite number, as f32 bits */
  uint32_t nan;      /* canonical NaN's payload (SATURATE: the value's, -0) */
} lw_narrow_format;

/* The format of a narrow type; false for other types. */
bool lw_narrow_get(lw_prim t, lw_narrow_format *out);

#endif
