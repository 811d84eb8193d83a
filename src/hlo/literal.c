#include "hlo/literal.h"

#include <math.h>
#include <string.h>

lw_status lw_literal_new(lw_arena *a, const lw_shape *shape, lw_literal **out) {
  lw_literal *l = LW_NEW(a, lw_literal);
  l->shape = shape;
  if (lw_shape_is_tuple(shape)) {
    l->n_elems = shape->n_elems;
    l->elems = LW_NEW_ARRAY(a, lw_literal *, l->n_elems);
    for (int32_t i = 0; i < l->n_elems; i++)
      LW_TRY(lw_literal_new(a, shape->elems[i], &l->elems[i]));
  } else if (lw_shape_is_array(shape)) {
    int64_t bytes = lw_shape_bytes(shape);
    if (bytes == INT64_MAX)
      return lw_error(LW_RESOURCE_EXHAUSTED, "a literal's size overflows");
    if (bytes <= 1024)
      l->data = lw_arena_alloc(a, (size_t)bytes);
    else
      LW_TRY(lw_arena_alloc_large(a, (size_t)bytes, &l->data));
  }
  *out = l;
  return NULL;
}

lw_status lw_literal_clone(lw_arena *a, const lw_literal *src,
                           lw_literal **out) {
  LW_TRY(lw_literal_new(a, src->shape, out));
  if (src->data) memcpy((*out)->data, src->data, lw_literal_bytes(src));
  for (int32_t i = 0; i < src->n_elems; i++)
    LW_TRY(lw_literal_clone(a, src->elems[i], &(*out)->elems[i]));
  return NULL;
}

int64_t lw_literal_bytes(const lw_literal *l) {
  return lw_shape_is_array(l->shape) ? lw_shape_bytes(l->shape) : 0;
}

bool lw_literal_equal(const lw_literal *a, const lw_literal *b) {
  if (!lw_shape_compatible(a->shape, b->shape)) return false;
  for (int32_t i = 0; i < a->n_elems; i++)
    if (!lw_literal_equal(a->elems[i], b->elems[i])) return false;
  size_t n = (size_t)lw_literal_bytes(a);
  return n == 0 || !memcmp(a->data, b->data, n);
}

uint64_t lw_literal_hash(const lw_literal *l, uint64_t seed) {
  uint64_t h = lw_hash_mix(seed, (uint64_t)l->shape->type);
  for (int32_t i = 0; i < l->n_elems; i++) h = lw_literal_hash(l->elems[i], h);
  if (!l->data) return h;
  h = lw_hash_bytes(l->shape->dims, (size_t)l->shape->rank * 8, h);
  return lw_hash_bytes(l->data, (size_t)lw_literal_bytes(l), h);
}

/* ---- elements ---- */

int64_t lw_literal_get_int(const lw_literal *l, int64_t i) {
  const void *p = l->data;
  bool sign = lw_prim_is_signed(l->shape->type);
  switch (lw_prim_bytes(l->shape->type)) {
    case 1:
      if (sign) return ((const int8_t *)p)[i];
      return ((const uint8_t *)p)[i];
    case 2:
      if (sign) return ((const int16_t *)p)[i];
      return ((const uint16_t *)p)[i];
    case 4:
      if (sign) return ((const int32_t *)p)[i];
      return ((const uint32_t *)p)[i];
    default:
      return ((const int64_t *)p)[i];
  }
}

/* Sub-byte integers are kept sign- or zero-extended in their byte. */
static int64_t wrap_small(lw_prim t, int64_t v) {
  int bits = lw_prim_table[t].bits;
  if (bits >= 8) return v;
  uint64_t mask = (1u << bits) - 1, u = (uint64_t)v & mask;
  bool neg = lw_prim_is_signed(t) && (u >> (bits - 1));
  return neg ? (int64_t)(u | ~mask) : (int64_t)u;
}

void lw_literal_set_int(lw_literal *l, int64_t i, int64_t v) {
  void *p = l->data;
  if (l->shape->type == LW_PRED) v = v != 0;
  v = wrap_small(l->shape->type, v);
  switch (lw_prim_bytes(l->shape->type)) {
    case 1:
      ((uint8_t *)p)[i] = (uint8_t)v;
      break;
    case 2:
      ((uint16_t *)p)[i] = (uint16_t)v;
      break;
    case 4:
      ((uint32_t *)p)[i] = (uint32_t)v;
      break;
    default:
      ((int64_t *)p)[i] = v;
  }
}

double lw_literal_get_f64(const lw_literal *l, int64_t i, int part) {
  lw_prim t = l->shape->type;
  switch (t) {
    case LW_F32:
      return ((const float *)l->data)[i];
    case LW_F64:
      return ((const double *)l->data)[i];
    case LW_C64:
      return ((const float *)l->data)[2 * i + part];
    case LW_C128:
      return ((const double *)l->data)[2 * i + part];
    case LW_U64:
      return (double)((const uint64_t *)l->data)[i];
    default:
      break;
  }
  if (!lw_prim_is_float(t)) return (double)lw_literal_get_int(l, i);
  return lw_float_decode(t, lw_prim_bytes(t) == 2
                                ? ((const uint16_t *)l->data)[i]
                                : ((const uint8_t *)l->data)[i]);
}

/* Saturating, as HLO's convert does. */
static int64_t to_int(lw_prim t, double v) {
  if (isnan(v)) return 0;
  if (t == LW_U64)
    return v >= 18446744073709551616.0 ? -1 : v <= 0 ? 0 : (int64_t)(uint64_t)v;
  int bits = lw_prim_table[t].bits;
  bool sign = lw_prim_is_signed(t);
  double hi = ldexp(1, sign ? bits - 1 : bits), lo = sign ? -hi : 0;
  if (v >= hi) return t == LW_S64 ? INT64_MAX : (int64_t)(hi - 1);
  return v < lo ? (int64_t)lo : (int64_t)v;
}

void lw_literal_set_f64(lw_literal *l, int64_t i, int part, double v) {
  lw_prim t = l->shape->type;
  switch (t) {
    case LW_PRED:
      ((uint8_t *)l->data)[i] = v != 0;
      return;
    case LW_F32:
      ((float *)l->data)[i] = (float)v;
      return;
    case LW_F64:
      ((double *)l->data)[i] = v;
      return;
    case LW_C64:
      ((float *)l->data)[2 * i + part] = (float)v;
      return;
    case LW_C128:
      ((double *)l->data)[2 * i + part] = v;
      return;
    default:
      break;
  }
  if (!lw_prim_is_float(t))
    lw_literal_set_int(l, i, to_int(t, v));
  else if (lw_prim_bytes(t) == 2)
    ((uint16_t *)l->data)[i] = (uint16_t)lw_float_encode(t, v);
  else
    ((uint8_t *)l->data)[i] = (uint8_t)lw_float_encode(t, v);
}

bool lw_literal_is_uniform(const lw_literal *l) {
  if (!l->data || l->shape->elements < 1) return false;
  size_t size = (size_t)lw_prim_bytes(l->shape->type);
  size_t n = (size_t)l->shape->elements * size;
  return !memcmp(l->data, (char *)l->data + size, n - size);
}

/* ---- narrow floats ----
 * Three families by how the top codes are spent: IEEE (inf and nan), FN (no
 * inf; nan where stated), FNUZ (no inf, no -0, nan is 0x80, bias one higher).
 */

typedef struct {
  int eb, mb, bias;
  bool ieee, fnuz;
  int nan_code; /* positive nan code without sign; -1: no nan at all */
  int max_code; /* largest finite code without sign */
} narrow;

static narrow narrow_of(lw_prim t) {
  int eb = lw_prim_table[t].exp_bits, mb = lw_prim_table[t].man_bits;
  int all = (1 << (eb + mb)) - 1;
  narrow n = {eb, mb, (1 << (eb - 1)) - 1, true, false, 0, 0};
  n.nan_code = ((1 << eb) - 1) << mb | 1 << (mb ? mb - 1 : 0);
  n.max_code = (((1 << eb) - 1) << mb) - 1;
  switch (t) {
    case LW_F8E4M3FN:
      n.ieee = false, n.nan_code = all, n.max_code = all - 1;
      break;
    case LW_F8E4M3B11FNUZ:
      n.ieee = false, n.fnuz = true, n.bias = 11, n.max_code = all;
      break;
    case LW_F8E5M2FNUZ:
    case LW_F8E4M3FNUZ:
      n.ieee = false, n.fnuz = true, n.bias++, n.max_code = all;
      break;
    case LW_F4E2M1FN:
    case LW_F6E2M3FN:
    case LW_F6E3M2FN:
      n.ieee = false, n.nan_code = -1, n.max_code = all;
      break;
    default:
      break;
  }
  return n;
}

double lw_float_decode(lw_prim t, uint32_t bits) {
  if (t == LW_F8E8M0FNU) return bits == 255 ? NAN : ldexp(1, (int)bits - 127);
  narrow n = narrow_of(t);
  int total = n.eb + n.mb;
  bool neg = bits >> total & 1;
  int code = (int)(bits & ((1u << total) - 1));
  if (n.fnuz && neg && code == 0) return NAN;
  int e = code >> n.mb, m = code & ((1 << n.mb) - 1);
  if (n.ieee && e == (1 << n.eb) - 1)
    return m ? NAN : neg ? -INFINITY : INFINITY;
  if (!n.ieee && !n.fnuz && code == n.nan_code) return NAN;
  double v = e ? ldexp((1 << n.mb) + m, e - n.bias - n.mb)
               : ldexp(m, 1 - n.bias - n.mb);
  return neg ? -v : v;
}

/* The code a NaN or an overflow turns into, sign included. */
static uint32_t special(const narrow *n, bool neg, bool nan) {
  uint32_t sign = (uint32_t)neg << (n->eb + n->mb);
  if (n->fnuz) return 1u << (n->eb + n->mb);
  if (n->ieee && !nan) return sign | (uint32_t)(n->max_code + 1);
  if (n->nan_code < 0) /* no nan: overflow saturates, nan is -0 as ml_dtypes */
    return nan ? 1u << (n->eb + n->mb) : sign | (uint32_t)n->max_code;
  return nan ? (uint32_t)n->nan_code : sign | (uint32_t)n->nan_code;
}

static uint32_t encode_e8m0(double v) {
  if (!(v > 0) || isinf(v)) return 255;
  int e;
  double m = frexp(v, &e); /* v = m 2^e, m in [0.5, 1) */
  int code = e - 1 + 127 + (m > 0.75 || (m == 0.75 && (e & 1)) ? 1 : 0);
  return code < 0 ? 0 : code > 254 ? 255 : (uint32_t)code;
}

uint32_t lw_float_encode(lw_prim t, double v) {
  if (t == LW_F8E8M0FNU) return encode_e8m0(v);
  narrow n = narrow_of(t);
  bool neg = signbit(v);
  if (isnan(v)) return special(&n, false, true);
  if (isinf(v)) return special(&n, neg, false);
  double a = fabs(v);
  int e;
  frexp(a, &e);
  int unit = (a > 0 && e - 1 > 1 - n.bias ? e - 1 : 1 - n.bias) - n.mb;
  double q = nearbyint(ldexp(a, -unit)); /* mantissa in units, nearest even */
  int64_t code;
  int exp_field = unit + n.mb + n.bias; /* >= 1 */
  if (q < (double)(1 << n.mb))
    code = (int64_t)q; /* subnormal */
  else
    code = ((int64_t)exp_field << n.mb) + ((int64_t)q - (1 << n.mb));
  if (code > n.max_code) return special(&n, neg, false);
  if (n.fnuz && code == 0) return 0;
  return (uint32_t)code | (uint32_t)neg << (n.eb + n.mb);
}
