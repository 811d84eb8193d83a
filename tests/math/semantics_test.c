/* Rules that another implementation would state differently: conversions to
 * and from narrow floats against a table of values and a nearest-neighbour
 * search, and hand-written cases of integer, NaN, total-order and subnormal
 * semantics. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "math/elementwise.h"

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* ---- narrow floats from first principles ---- */

typedef enum { IEEE, FN, FNUZ, SAT, E8M0 } rules;

static const struct {
  lw_prim type;
  rules kind;
  int exp_bits, man_bits, bias;
  double max;
} formats[] = {
    {LW_F16, IEEE, 5, 10, 15, 65504},
    {LW_BF16, IEEE, 8, 7, 127, 0x1.fep127},
    {LW_F8E5M2, IEEE, 5, 2, 15, 57344},
    {LW_F8E4M3, IEEE, 4, 3, 7, 240},
    {LW_F8E3M4, IEEE, 3, 4, 3, 15.5},
    {LW_F8E4M3FN, FN, 4, 3, 7, 448},
    {LW_F8E4M3B11FNUZ, FNUZ, 4, 3, 11, 30},
    {LW_F8E5M2FNUZ, FNUZ, 5, 2, 16, 57344},
    {LW_F8E4M3FNUZ, FNUZ, 4, 3, 8, 240},
    {LW_F8E8M0FNU, E8M0, 8, 0, 127, 0x1p127},
    {LW_F6E3M2FN, SAT, 3, 2, 3, 28},
    {LW_F6E2M3FN, SAT, 2, 3, 1, 7.5},
    {LW_F4E2M1FN, SAT, 2, 1, 1, 6},
};
enum { FORMATS = sizeof formats / sizeof *formats };

static double values[32768];
static int value_count; /* finite, not negative, ascending by payload */

static void make_values(int f) {
  value_count = 0;
  int m = formats[f].man_bits;
  for (int p = 0; p < 1 << (formats[f].exp_bits + m); p++) {
    int e = p >> m, frac = p & ((1 << m) - 1);
    double v = e ? ldexp((1 << m) + frac, e - formats[f].bias - m)
                 : ldexp(frac, 1 - formats[f].bias - m);
    if (formats[f].kind == E8M0) v = ldexp(1, p - 127);
    if (v > formats[f].max) break;
    values[value_count++] = v;
  }
}

static unsigned nan_code(int f) {
  int bits = formats[f].exp_bits + formats[f].man_bits;
  switch (formats[f].kind) {
    case IEEE:
      return (unsigned)(((1 << formats[f].exp_bits) - 1)
                            << formats[f].man_bits |
                        1 << (formats[f].man_bits - 1));
    case FN:
      return (1u << bits) - 1;
    case FNUZ:
    case SAT:
      return 1u << bits;
    case E8M0:
      return 0xff;
  }
  return 0;
}

static unsigned overflow_code(int f, unsigned sign) {
  if (formats[f].kind == IEEE)
    return sign |
           (unsigned)(((1 << formats[f].exp_bits) - 1) << formats[f].man_bits);
  if (formats[f].kind == SAT) return sign | (unsigned)(value_count - 1);
  return nan_code(f);
}

static unsigned expect_e8m0(double x) {
  if (!(x > 0) || isinf(x)) return 0xff;
  if (x <= values[0]) return 0;
  if (x <= values[1]) return 1;
  int e;
  double m = frexp(x, &e); /* [1/2, 1) */
  int p = e - 1 + 127 + (m >= 0.75);
  return p >= 255 ? 0xff : (unsigned)p;
}

/* The payload nearest to x, halves to the even payload. */
static unsigned expect(int f, double x) {
  if (isnan(x)) return nan_code(f);
  if (formats[f].kind == E8M0) return expect_e8m0(x);
  int bits = formats[f].exp_bits + formats[f].man_bits;
  unsigned sign = signbit(x) ? 1u << bits : 0;
  double a = fabs(x);
  int lo = 0, hi = value_count; /* values[lo] <= a < values[hi] */
  while (hi - lo > 1) {
    int mid = (lo + hi) / 2;
    if (values[mid] <= a)
      lo = mid;
    else
      hi = mid;
  }
  double next = hi < value_count ? values[hi] : 2 * values[lo] - values[lo - 1];
  double half = values[lo] + (next - values[lo]) / 2;
  bool up = a > half || (a == half && lo % 2);
  if (up && hi == value_count) return overflow_code(f, sign);
  unsigned p = (unsigned)(up ? hi : lo);
  if (formats[f].kind == FNUZ && p == 0) return 0;
  return sign | p;
}

static int bad_count;

static void check_from(int f, lw_prim from, const void *x, double v) {
  lw_prim t = formats[f].type;
  lw_elem_op op = lw_elem_make(LW_OP_CONVERT, from, 0, 0, t);
  lw_elem_fn fn;
  assert_null(lw_elem_resolve(&op, &fn));
  uint16_t got = 0;
  fn(&op, 1, x, NULL, NULL, &got);
  unsigned want = expect(f, v);
  if (got == want) return;
  if (bad_count++ < 10)
    printf("%s to %s: %a gives %x, expected %x\n", lw_prim_name(from),
           lw_prim_name(t), v, got, want);
}

static void check_value(int f, double v) {
  for (int s = 0; s < 2; s++, v = -v) {
    float x = (float)v;
    check_from(f, LW_F64, &v, v);
    check_from(f, LW_F32, &x, x);
  }
}

/* Beyond 53 bits only whether the last bits are zero matters: no format keeps
 * more than 11. */
static double as_double(uint64_t u) {
  if (u < (uint64_t)1 << 53) return (double)u;
  return (double)((u & ~(uint64_t)0xfff) | (u & 0xfff ? 0x800 : 0));
}

static void check_integer(int f, int64_t v) {
  int32_t x = (int32_t)v;
  uint64_t u = (uint64_t)v;
  check_from(f, LW_S32, &x, x);
  check_from(f, LW_S64, &v, v < 0 ? -as_double(-u) : as_double(u));
  check_from(f, LW_U64, &u, as_double(u));
}

static void test_to_narrow(void **state) {
  (void)state;
  uint64_t r = 88172645463325252;
  bad_count = 0;
  for (int f = 0; f < FORMATS; f++) {
    make_values(f);
    int step = value_count > 4096 ? 7 : 1;
    for (int i = 0; i < value_count; i += step) {
      double next =
          i + 1 < value_count ? values[i + 1] : 2 * values[i] - values[i - 1];
      double half = values[i] + (next - values[i]) / 2;
      check_value(f, values[i]);
      check_value(f, half);
      check_value(f, nextafter(half, 0));
      check_value(f, nextafter(half, INFINITY));
      check_value(f, nextafterf((float)half, 0));
      check_value(f, nextafterf((float)half, INFINITY));
    }
    for (int i = 0; i < 4000; i++) {
      r ^= r << 13, r ^= r >> 7, r ^= r << 17;
      double d;
      memcpy(&d, &r, 8);
      check_value(f, d);
      check_integer(f, (int64_t)r >> (r % 64));
    }
    static const double special[] = {0,      INFINITY, NAN,       1e300,
                                     1e-300, 0x1p-149, 0x1p-1074, 3.4e38};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
      check_value(f, special[i]);
  }
  assert_int_equal(bad_count, 0);
}

static void test_from_narrow(void **state) {
  (void)state;
  for (int f = 0; f < FORMATS; f++) {
    make_values(f);
    int bits = formats[f].exp_bits + formats[f].man_bits;
    for (int p = 0; p < value_count; p++) {
      uint16_t u = (uint16_t)p, neg = (uint16_t)(p | 1 << bits);
      assert_true(lw_elem_to_f64(formats[f].type, &u) == values[p]);
      if (formats[f].kind == E8M0 || (formats[f].kind == FNUZ && !p)) continue;
      double v = lw_elem_to_f64(formats[f].type, &neg);
      assert_true(v == -values[p] && signbit(v));
    }
    uint16_t nan = (uint16_t)nan_code(f);
    double v = lw_elem_to_f64(formats[f].type, &nan);
    if (formats[f].kind == SAT)
      assert_true(v == 0 && signbit(v));
    else
      assert_true(isnan(v));
  }
}

/* ---- cases ---- */

static int64_t int_op(lw_opcode op, lw_prim t, int64_t a, int64_t b) {
  lw_elem_op o = lw_elem_make(op, t, t, 0, t);
  lw_elem_fn fn;
  assert_null(lw_elem_resolve(&o, &fn));
  int64_t r = 0;
  fn(&o, 1, &a, &b, NULL, &r);
  int drop = 64 - 8 * lw_prim_bytes(t);
  r = (int64_t)((uint64_t)r << drop);
  return lw_prim_is_signed(t) ? r >> drop : (int64_t)((uint64_t)r >> drop);
}

static void test_integers(void **state) {
  (void)state;
  static const struct {
    lw_opcode op;
    lw_prim t;
    int64_t a, b, want;
  } cases[] = {
      {LW_OP_DIVIDE, LW_S32, 7, 0, -1},
      {LW_OP_DIVIDE, LW_U32, 7, 0, 0xffffffff},
      {LW_OP_DIVIDE, LW_U4, 7, 0, 15},
      {LW_OP_DIVIDE, LW_S32, INT32_MIN, -1, INT32_MIN},
      {LW_OP_DIVIDE, LW_S8, -128, -1, -128},
      {LW_OP_DIVIDE, LW_S4, -8, -1, -8},
      {LW_OP_DIVIDE, LW_S64, INT64_MIN, -1, INT64_MIN},
      {LW_OP_DIVIDE, LW_S32, -7, 2, -3},
      {LW_OP_REMAINDER, LW_S32, 7, 0, 7},
      {LW_OP_REMAINDER, LW_S32, INT32_MIN, -1, 0},
      {LW_OP_REMAINDER, LW_S64, INT64_MIN, -1, 0},
      {LW_OP_REMAINDER, LW_S32, -7, 2, -1},
      {LW_OP_SHIFT_LEFT, LW_S32, 1, 32, 0},
      {LW_OP_SHIFT_LEFT, LW_S32, 1, -1, 0},
      {LW_OP_SHIFT_LEFT, LW_S32, 1, 31, INT32_MIN},
      {LW_OP_SHIFT_LEFT, LW_U4, 5, 2, 4},
      {LW_OP_SHIFT_RIGHT_LOGICAL, LW_S32, -1, 28, 15},
      {LW_OP_SHIFT_RIGHT_LOGICAL, LW_S32, -1, 32, 0},
      {LW_OP_SHIFT_RIGHT_LOGICAL, LW_S4, -1, 1, 7},
      {LW_OP_SHIFT_RIGHT_ARITHMETIC, LW_S32, -5, 40, -1},
      {LW_OP_SHIFT_RIGHT_ARITHMETIC, LW_S32, 5, 40, 0},
      {LW_OP_SHIFT_RIGHT_ARITHMETIC, LW_U32, 0x80000000, 31, 0xffffffff},
      {LW_OP_ABS, LW_S32, INT32_MIN, 0, INT32_MIN},
      {LW_OP_SIGN, LW_S32, -9, 0, -1},
      {LW_OP_SIGN, LW_U32, 9, 0, 1},
      {LW_OP_NOT, LW_U4, 5, 0, 10},
      {LW_OP_NOT, LW_S4, 5, 0, -6},
      {LW_OP_CLZ, LW_S32, 0, 0, 32},
      {LW_OP_CLZ, LW_U4, 1, 0, 3},
      {LW_OP_CLZ, LW_S64, 1, 0, 63},
      {LW_OP_POPCNT, LW_S4, -1, 0, 4},
      {LW_OP_POPCNT, LW_S64, -1, 0, 64},
      {LW_OP_MULHI, LW_S32, INT32_MIN, INT32_MIN, 0x40000000},
      {LW_OP_MULHI, LW_U64, -1, -1, -2},
      {LW_OP_POWER, LW_S32, 2, 10, 1024},
      {LW_OP_POWER, LW_S32, 3, 40, 0x291fe821},
      {LW_OP_POWER, LW_S32, 2, -1, 0},
      {LW_OP_POWER, LW_S32, 1, -1, 1},
      {LW_OP_POWER, LW_S32, -1, -3, -1},
      {LW_OP_POWER, LW_S32, -1, -4, 1},
      {LW_OP_POWER, LW_S32, 0, 0, 1},
      {LW_OP_ADD, LW_S4, 7, 1, -8},
      {LW_OP_MULTIPLY, LW_U2, 3, 3, 1},
      {LW_OP_MAXIMUM, LW_U8, 200, 100, 200},
      {LW_OP_MAXIMUM, LW_S8, -56, 100, 100},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t got = int_op(cases[i].op, cases[i].t, cases[i].a, cases[i].b);
    if (got != cases[i].want)
      printf("%s %s %lld %lld: %lld\n", lw_opcode_name(cases[i].op),
             lw_prim_name(cases[i].t), (long long)cases[i].a,
             (long long)cases[i].b, (long long)got);
    assert_int_equal(got, cases[i].want);
  }
}

static uint32_t f32_bits_op(lw_opcode op, uint32_t a, uint32_t b, bool flush) {
  lw_elem_op o = lw_elem_make(op, LW_F32, LW_F32, 0, LW_F32);
  o.flush_denormals = flush;
  lw_elem_fn fn;
  assert_null(lw_elem_resolve(&o, &fn));
  uint32_t r;
  fn(&o, 1, &a, &b, NULL, &r);
  return r;
}

static void test_float_bits(void **state) {
  (void)state;
  static const struct {
    lw_opcode op;
    uint32_t a, b, want;
    bool flush;
  } cases[] = {
      {LW_OP_SUBTRACT, 0x7f800000, 0x7f800000, 0x7fc00000, false},
      {LW_OP_ADD, 0xffc12345, 0x3f800000, 0x7fc00000, false},
      {LW_OP_NEGATE, 0x7fc12345, 0, 0xffc12345, false},
      {LW_OP_ABS, 0xffa12345, 0, 0x7fa12345, false},
      {LW_OP_SIGN, 0xffc12345, 0, 0x7fc00000, false},
      {LW_OP_SIGN, 0x80000000, 0, 0x80000000, false},
      {LW_OP_SIGN, 0x80000001, 0, 0xbf800000, false},
      {LW_OP_SIGN, 0x80000001, 0, 0x80000000, true},
      {LW_OP_MAXIMUM, 0x80000000, 0x00000000, 0x00000000, false},
      {LW_OP_MAXIMUM, 0x00000000, 0x80000000, 0x00000000, false},
      {LW_OP_MINIMUM, 0x00000000, 0x80000000, 0x80000000, false},
      {LW_OP_MAXIMUM, 0x3f800000, 0xffc00001, 0x7fc00000, false},
      {LW_OP_ADD, 0x00000001, 0x00000001, 0x00000002, false},
      {LW_OP_ADD, 0x00000001, 0x80000001, 0x00000000, true},
      {LW_OP_MULTIPLY, 0x00800000, 0x3f000000, 0x00000000, true},
      {LW_OP_MULTIPLY, 0x80800000, 0x3f000000, 0x80000000, true},
      {LW_OP_MULTIPLY, 0x00800000, 0x3f000000, 0x00400000, false},
      {LW_OP_ROUND_AFZ, 0x3effffff, 0, 0x00000000, false},
      {LW_OP_ROUND_AFZ, 0xbf000000, 0, 0xbf800000, false},
      {LW_OP_ROUND_EVEN, 0x3f000000, 0, 0x00000000, false},
      {LW_OP_ROUND_EVEN, 0xbf000000, 0, 0x80000000, false},
      {LW_OP_POWER, 0x7fc00000, 0x00000000, 0x3f800000, false},
      {LW_OP_POWER, 0x3f800000, 0x7fc00000, 0x3f800000, false},
      {LW_OP_POWER, 0x80000000, 0xbf800000, 0xff800000, false},
      {LW_OP_POWER, 0xc0000000, 0x3f000000, 0x7fc00000, false},
      {LW_OP_REMAINDER, 0x40b00000, 0xc0000000, 0x3fc00000, false},
      {LW_OP_REMAINDER, 0x80000000, 0x3f800000, 0x80000000, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t got =
        f32_bits_op(cases[i].op, cases[i].a, cases[i].b, cases[i].flush);
    if (got != cases[i].want)
      printf("%s %08x %08x: %08x\n", lw_opcode_name(cases[i].op), cases[i].a,
             cases[i].b, got);
    assert_int_equal(got, cases[i].want);
  }
}

static void test_total_order(void **state) {
  (void)state;
  static const uint32_t ascending[] = {
      0xffffffff, 0xffc00000, 0xff800000, 0xbf800000, 0x80000001, 0x80000000,
      0x00000000, 0x00000001, 0x3f800000, 0x7f800000, 0x7fc00000, 0x7fffffff};
  enum { COUNT = sizeof ascending / sizeof *ascending };
  lw_elem_op o = lw_elem_make(LW_OP_COMPARE, LW_F32, LW_F32, 0, LW_PRED);
  o.dir = LW_CMP_LT;
  o.total_order = true;
  lw_elem_fn fn;
  assert_null(lw_elem_resolve(&o, &fn));
  for (int i = 0; i < COUNT; i++)
    for (int j = 0; j < COUNT; j++) {
      uint8_t r;
      fn(&o, 1, &ascending[i], &ascending[j], NULL, &r);
      assert_int_equal(r, i < j);
    }
}

static void test_float_to_int(void **state) {
  (void)state;
  static const struct {
    lw_prim t;
    double x;
    int64_t want;
  } cases[] = {{LW_S32, 3e9, INT32_MAX},
               {LW_S32, -3e9, INT32_MIN},
               {LW_S32, NAN, 0},
               {LW_S32, -1.9, -1},
               {LW_U8, -1, 0},
               {LW_U8, 300, 255},
               {LW_U8, 255.9, 255},
               {LW_S4, 100, 7},
               {LW_S4, -100, -8},
               {LW_U1, 5, 1},
               {LW_S1, 5, 0},
               {LW_S1, -5, -1},
               {LW_S64, 1e30, INT64_MAX},
               {LW_S64, -1e30, INT64_MIN},
               {LW_U64, 1e30, -1},
               {LW_PRED, NAN, 1},
               {LW_PRED, 0.1, 1},
               {LW_PRED, -0.0, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t r = 0;
    lw_elem_from_f64(cases[i].t, cases[i].x, &r);
    int drop = 64 - 8 * lw_prim_bytes(cases[i].t);
    r = (int64_t)((uint64_t)r << drop);
    r = lw_prim_is_signed(cases[i].t) ? r >> drop
                                      : (int64_t)((uint64_t)r >> drop);
    assert_int_equal(r, cases[i].want);
  }
}

static void test_invalid(void **state) {
  (void)state;
  lw_elem_op bad[] = {
      lw_elem_make(LW_OP_AND, LW_F32, LW_F32, 0, LW_F32),
      lw_elem_make(LW_OP_SINE, LW_S32, 0, 0, LW_S32),
      lw_elem_make(LW_OP_MAXIMUM, LW_C64, LW_C64, 0, LW_C64),
      lw_elem_make(LW_OP_ADD, LW_F32, LW_F64, 0, LW_F32),
      lw_elem_make(LW_OP_BITCAST_CONVERT, LW_F32, 0, 0, LW_F64),
      lw_elem_make(LW_OP_REDUCE, LW_F32, 0, 0, LW_F32),
      lw_elem_make(LW_OP_SUBTRACT, LW_PRED, LW_PRED, 0, LW_PRED),
      lw_elem_make(LW_OP_REDUCE_PRECISION, LW_F32, 0, 0, LW_F32),
      lw_elem_make(LW_OP_SELECT, LW_S32, LW_F32, LW_F32, LW_F32),
      lw_elem_make(LW_OP_ADD, LW_TOKEN, LW_TOKEN, 0, LW_TOKEN)};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    lw_elem_fn fn;
    lw_status s = lw_elem_resolve(&bad[i], &fn);
    assert_int_equal(lw_status_code(s), LW_INVALID_ARGUMENT);
    lw_status_free(s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_to_narrow),   cmocka_unit_test(test_from_narrow),
      cmocka_unit_test(test_integers),    cmocka_unit_test(test_float_bits),
      cmocka_unit_test(test_total_order), cmocka_unit_test(test_float_to_int),
      cmocka_unit_test(test_invalid)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
