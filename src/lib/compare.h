/* Comparing results: with each other (ulp), and with a float64 reference. */
#ifndef LW_LIB_COMPARE_H
#define LW_LIB_COMPARE_H

#include "base/buf.h"
#include "hlo/literal.h"

/* a against b, arrays of equal type and dims. NaN equals NaN; -0 equals +0
 * only when signed_zeros is false. */
typedef struct {
  int64_t elements;
  int64_t different; /* by value */
  int64_t first;     /* index of the first different one, or -1 */
  int64_t specials;  /* NaN or infinity on one side only */
  /* Representable values between the two, saturating; integers: |a - b|.
   * Complex: the larger of the parts. Specials do not enter. */
  int64_t max_ulp, max_ulp_at;
  double max_abs; /* of finite differences */
  double scale;   /* max |b|, finite */
} lw_value_diff;

LW_MUST_USE lw_status lw_literal_diff(const lw_literal *a, const lw_literal *b,
                                      bool signed_zeros, lw_value_diff *out);

/* x against a reference of type f64 or c128 with the same dims. */
typedef struct {
  int64_t elements; /* finite on both sides; parts of complex ones count */
  int64_t specials; /* NaN or infinity where the reference has another */
  double rms, max;  /* absolute */
  int64_t max_at;
  double scale; /* max |reference| */
} lw_ref_error;

LW_MUST_USE lw_status lw_literal_error(const lw_literal *x,
                                       const lw_literal *reference,
                                       lw_ref_error *out);

/* docs/numerics.md "Against XLA": rms and maximum error against the reference
 * <= max(2 x XLA:CPU's, bound x scale), where the bound is 4 ulp at the type's
 * precision, and no new specials. */
bool lw_close_to_reference(lw_prim type, const lw_ref_error *ours,
                           const lw_ref_error *xla);
/* Without a reference: XLA's result within 64 ulp of the output's scale, or
 * within one ulp of the narrowest float type the module computes in (pass type
 * where it is none narrower), or below the smallest normal number, which XLA
 * flushes. Integers: equal. */
bool lw_close_to_peer(lw_prim type, lw_prim narrowest, const lw_value_diff *d);

/* One line about a difference: "equal", or "12 of 80 differ, first at [1,3]:
 * 1.5 vs 1.25, max 4 ulp at [0,2]". */
void lw_value_diff_print(lw_buf *out, const lw_literal *a, const lw_literal *b,
                         const lw_value_diff *d);

#endif
