#include "lib/compare.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- ulp distances ---- */

/* The bits of a float of any width as an integer that grows with the value:
 * neighbours differ by one, -0 and +0 are equal. */
static int64_t ladder(const lw_literal *l, int64_t i, int part) {
  lw_prim t = lw_prim_part(l->shape->type);
  int parts = lw_prim_is_complex(l->shape->type) ? 2 : 1, bits;
  int64_t at = i * parts + part;
  uint64_t u;
  if (t == LW_F64) {
    u = ((const uint64_t *)l->data)[at];
    bits = 64;
  } else if (t == LW_F32) {
    u = ((const uint32_t *)l->data)[at];
    bits = 32;
  } else {
    bits = lw_prim_table[t].bits;
    u = lw_prim_bytes(t) == 2 ? ((const uint16_t *)l->data)[at]
                              : ((const uint8_t *)l->data)[at];
  }
  if (t == LW_F8E8M0FNU) return (int64_t)u;
  uint64_t sign = 1ull << (bits - 1);
  int64_t magnitude = (int64_t)(u & (sign - 1));
  return u & sign ? -magnitude : magnitude;
}

static int64_t distance(int64_t a, int64_t b) {
  int64_t d;
  if (__builtin_sub_overflow(a, b, &d) || d == INT64_MIN) return INT64_MAX;
  return d < 0 ? -d : d;
}

static int64_t int_distance(const lw_literal *a, const lw_literal *b,
                            int64_t i) {
  int64_t x = lw_literal_get_int(a, i), y = lw_literal_get_int(b, i);
  if (a->shape->type != LW_U64) return distance(x, y);
  uint64_t u = (uint64_t)x, v = (uint64_t)y, d = u > v ? u - v : v - u;
  return d > INT64_MAX ? INT64_MAX : (int64_t)d;
}

/* One part of one element. */
static bool diff_part(const lw_literal *a, const lw_literal *b, int64_t i,
                      int part, bool signed_zeros, lw_value_diff *d) {
  double x = lw_literal_get_f64(a, i, part), y = lw_literal_get_f64(b, i, part);
  if (isfinite(y) && fabs(y) > d->scale) d->scale = fabs(y);
  if (isnan(x) && isnan(y)) return false;
  if (x == y) return signed_zeros && signbit(x) != signbit(y);
  if (!isfinite(x) || !isfinite(y)) {
    d->specials++;
    return true;
  }
  if (fabs(x - y) > d->max_abs) d->max_abs = fabs(x - y);
  int64_t ulp = distance(ladder(a, i, part), ladder(b, i, part));
  if (ulp > d->max_ulp) {
    d->max_ulp = ulp;
    d->max_ulp_at = i;
  }
  return true;
}

static bool diff_int(const lw_literal *a, const lw_literal *b, int64_t i,
                     lw_value_diff *d) {
  int64_t far = int_distance(a, b, i);
  double y = lw_literal_get_f64(b, i, 0);
  if (fabs(y) > d->scale) d->scale = fabs(y);
  if (far > d->max_ulp) {
    d->max_ulp = far;
    d->max_ulp_at = i;
    d->max_abs = (double)far;
  }
  return far != 0;
}

lw_status lw_literal_diff(const lw_literal *a, const lw_literal *b,
                          bool signed_zeros, lw_value_diff *d) {
  lw_prim t = a->shape->type;
  *d = (lw_value_diff){.first = -1, .max_ulp_at = -1};
  if (!lw_shape_is_array(a->shape) || t != b->shape->type ||
      !lw_shape_same_dims(a->shape, b->shape))
    return lw_error(LW_INVALID_ARGUMENT,
                    "results of different shapes cannot be compared");
  d->elements = a->shape->elements;
  bool real = lw_prim_is_float(t) || lw_prim_is_complex(t);
  for (int64_t i = 0; i < d->elements; i++) {
    bool differs =
        real ? diff_part(a, b, i, 0, signed_zeros, d) : diff_int(a, b, i, d);
    if (lw_prim_is_complex(t))
      differs |= diff_part(a, b, i, 1, signed_zeros, d);
    if (!differs) continue;
    d->different++;
    if (d->first < 0) d->first = i;
  }
  return NULL;
}

/* ---- against float64 ---- */

static bool same_special(double x, double r) {
  return isnan(x) ? isnan(r) : x == r;
}

lw_status lw_literal_error(const lw_literal *x, const lw_literal *r,
                           lw_ref_error *e) {
  *e = (lw_ref_error){.max_at = -1};
  bool complex = lw_prim_is_complex(x->shape->type);
  if (!lw_shape_is_array(x->shape) || !lw_shape_same_dims(x->shape, r->shape) ||
      complex != lw_prim_is_complex(r->shape->type))
    return lw_error(LW_INVALID_ARGUMENT,
                    "a result and a reference of different shapes");
  double sum = 0;
  for (int64_t i = 0; i < x->shape->elements; i++)
    for (int part = 0; part < (complex ? 2 : 1); part++) {
      double v = lw_literal_get_f64(x, i, part);
      double w = lw_literal_get_f64(r, i, part);
      if (!isfinite(v) || !isfinite(w)) {
        e->specials += !same_special(v, w);
        continue;
      }
      double err = fabs(v - w);
      e->elements++;
      sum += err * err;
      if (fabs(w) > e->scale) e->scale = fabs(w);
      if (err > e->max || e->max_at < 0) {
        e->max = err;
        e->max_at = i;
      }
    }
  e->rms = e->elements ? sqrt(sum / (double)e->elements) : 0;
  return NULL;
}

static double epsilon(lw_prim t) {
  return ldexp(1, -lw_prim_table[t].man_bits);
}

bool lw_close_to_reference(lw_prim type, const lw_ref_error *ours,
                           const lw_ref_error *xla) {
  double floor = 4 * epsilon(type) * ours->scale;
  return ours->rms <= fmax(2 * xla->rms, floor) &&
         ours->max <= fmax(2 * xla->max, floor) &&
         ours->specials <= xla->specials;
}

/* The smallest normal number. */
static double tiny(lw_prim t) {
  return ldexp(1, 2 - (1 << (lw_prim_table[t].exp_bits - 1)));
}

bool lw_close_to_peer(lw_prim type, lw_prim narrowest, const lw_value_diff *d) {
  if (!lw_prim_is_float(type) && !lw_prim_is_complex(type))
    return d->different == 0;
  double bound = 64 * epsilon(type) * d->scale;
  if (narrowest != type) bound = fmax(bound, epsilon(narrowest) * d->scale);
  return d->specials == 0 && d->max_abs <= fmax(bound, tiny(type));
}

/* ---- in words ---- */

static void print_index(lw_buf *out, const lw_shape *s, int64_t i) {
  int64_t idx[LW_MAX_RANK];
  for (int32_t d = s->rank; d-- > 0;) {
    idx[d] = s->dims[d] ? i % s->dims[d] : 0;
    i = s->dims[d] ? i / s->dims[d] : 0;
  }
  lw_buf_chr(out, '[');
  for (int32_t d = 0; d < s->rank; d++)
    lw_buf_printf(out, "%s%" PRId64, d ? "," : "", idx[d]);
  lw_buf_chr(out, ']');
}

static void print_value(lw_buf *out, const lw_literal *l, int64_t i) {
  lw_prim t = l->shape->type;
  int digits = lw_prim_part(t) == LW_F64 ? 17 : 9;
  if (lw_prim_is_complex(t))
    lw_buf_printf(out, "(%.*g, %.*g)", digits, lw_literal_get_f64(l, i, 0),
                  digits, lw_literal_get_f64(l, i, 1));
  else if (lw_prim_is_float(t))
    lw_buf_printf(out, "%.*g", digits, lw_literal_get_f64(l, i, 0));
  else if (t == LW_U64)
    lw_buf_printf(out, "%" PRIu64, (uint64_t)lw_literal_get_int(l, i));
  else
    lw_buf_i64(out, lw_literal_get_int(l, i));
}

void lw_value_diff_print(lw_buf *out, const lw_literal *a, const lw_literal *b,
                         const lw_value_diff *d) {
  if (!d->different) {
    lw_buf_str(out, "equal");
    return;
  }
  lw_buf_printf(out, "%" PRId64 " of %" PRId64 " differ, first at ",
                d->different, d->elements);
  print_index(out, a->shape, d->first);
  lw_buf_str(out, ": ");
  print_value(out, a, d->first);
  lw_buf_str(out, " vs ");
  print_value(out, b, d->first);
  if (d->specials)
    lw_buf_printf(out, ", %" PRId64 " NaN or infinite on one side",
                  d->specials);
  if (d->max_ulp_at < 0) return;
  bool real = lw_prim_table[a->shape->type].man_bits > 0;
  lw_buf_printf(out, ", max %" PRId64 "%s at ", d->max_ulp, real ? " ulp" : "");
  print_index(out, a->shape, d->max_ulp_at);
}
