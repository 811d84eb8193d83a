/* One compiled set of scalar loops; the sets differ in the instructions they
 * may use and in nothing else. */
#ifndef LW_MATH_VARIANT_H
#define LW_MATH_VARIANT_H

#include "math/elementwise.h"

typedef struct {
  /* The loop of an operation that lw_elem_resolve accepts; NULL when the types
   * do not have it. */
  lw_elem_fn (*pick)(const lw_elem_op *op);
} lw_elem_variant;

extern const lw_elem_variant lw_elem_base;
extern const lw_elem_variant lw_elem_v3; /* with AVX2 and FMA */

#endif
