/* The narrow float formats. */
#include "math/narrow.h"

bool lw_narrow_get(lw_prim t, lw_narrow_format *out) {
  switch ((int)t) {
#define X(E, lane, ...)                     \
  case LW_##E:                              \
    *out = (lw_narrow_format){__VA_ARGS__}; \
    return true;
    LW_NARROW_TYPES(X)
#undef X
  }
  return false;
}
