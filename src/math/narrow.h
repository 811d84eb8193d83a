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

/* X(type, lane of the payload, kind, fields) for every narrow type. */
#define LW_NARROW_TYPES(X)                                               \
  X(BF16, uint16_t, LW_NARROW_IEEE, 8, 7, -126, 0x7f7f0000, 0x7fc0)      \
  X(F16, uint16_t, LW_NARROW_IEEE, 5, 10, -14, 0x477fe000, 0x7e00)       \
  X(F8E5M2, uint8_t, LW_NARROW_IEEE, 5, 2, -14, 0x47600000, 0x7e)        \
  X(F8E4M3, uint8_t, LW_NARROW_IEEE, 4, 3, -6, 0x43700000, 0x7c)         \
  X(F8E3M4, uint8_t, LW_NARROW_IEEE, 3, 4, -2, 0x41780000, 0x78)         \
  X(F8E4M3FN, uint8_t, LW_NARROW_FN, 4, 3, -6, 0x43e00000, 0x7f)         \
  X(F8E4M3B11FNUZ, uint8_t, LW_NARROW_FNUZ, 4, 3, -10, 0x41f00000, 0x80) \
  X(F8E5M2FNUZ, uint8_t, LW_NARROW_FNUZ, 5, 2, -15, 0x47600000, 0x80)    \
  X(F8E4M3FNUZ, uint8_t, LW_NARROW_FNUZ, 4, 3, -7, 0x43700000, 0x80)     \
  X(F8E8M0FNU, uint8_t, LW_NARROW_E8M0, 8, 0, -127, 0x7f000000, 0xff)    \
  X(F6E3M2FN, uint8_t, LW_NARROW_SATURATE, 3, 2, -2, 0x41e00000, 0x20)   \
  X(F6E2M3FN, uint8_t, LW_NARROW_SATURATE, 2, 3, 0, 0x40f00000, 0x20)    \
  X(F4E2M1FN, uint8_t, LW_NARROW_SATURATE, 2, 1, 0, 0x40c00000, 0x8)

/* The format of a narrow type; false for other types. */
bool lw_narrow_get(lw_prim t, lw_narrow_format *out);

#endif
