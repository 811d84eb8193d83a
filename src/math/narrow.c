/* The narrow float formats. */
#include "math/narrow.h"

bool lw_narrow_get(lw_prim t, lw_narrow_format *out) {
  static const struct {
    lw_prim type;
    lw_narrow_format f;
  } table[] = {
      {LW_BF16, {LW_NARROW_IEEE, 8, 7, -126, 0x7f7f0000, 0x7fc0}},
      {LW_F16, {LW_NARROW_IEEE, 5, 10, -14, 0x477fe000, 0x7e00}},
      {LW_F8E5M2, {LW_NARROW_IEEE, 5, 2, -14, 0x47600000, 0x7e}},
      {LW_F8E4M3, {LW_NARROW_IEEE, 4, 3, -6, 0x43700000, 0x7c}},
      {LW_F8E3M4, {LW_NARROW_IEEE, 3, 4, -2, 0x41780000, 0x78}},
      {LW_F8E4M3FN, {LW_NARROW_FN, 4, 3, -6, 0x43e00000, 0x7f}},
      {LW_F8E4M3B11FNUZ, {LW_NARROW_FNUZ, 4, 3, -10, 0x41f00000, 0x80}},
      {LW_F8E5M2FNUZ, {LW_NARROW_FNUZ, 5, 2, -15, 0x47600000, 0x80}},
      {LW_F8E4M3FNUZ, {LW_NARROW_FNUZ, 4, 3, -7, 0x43700000, 0x80}},
      {LW_F8E8M0FNU, {LW_NARROW_E8M0, 8, 0, -127, 0x7f000000, 0xff}},
      {LW_F6E3M2FN, {LW_NARROW_SATURATE, 3, 2, -2, 0x41e00000, 0x20}},
      {LW_F6E2M3FN, {LW_NARROW_SATURATE, 2, 3, 0, 0x40f00000, 0x20}},
      {LW_F4E2M1FN, {LW_NARROW_SATURATE, 2, 1, 0, 0x40c00000, 0x8}}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].type == t) {
      *out = table[i].f;
      return true;
    }
  return false;
}
