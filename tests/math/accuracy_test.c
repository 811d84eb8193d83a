/* Errors of the functions against MPFR, in units in the last place of the
 * exact result, with the bounds docs/math.md declares.
 *
 *   test_math_accuracy                 sampled, seconds
 *   test_math_accuracy --soak NAME     a unary f32 function on all 2^32 inputs
 *   test_math_accuracy --points N      samples a function, prints every maximum
 */
#include <complex.h>
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "math/elementwise.h"

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#ifndef CMPLX /* glibc's header gives it to gcc only */
#define CMPLX(re, im) __builtin_complex((double)(re), (double)(im))
#endif

typedef int (*exact1)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
typedef int (*exact2)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

static int exact_logistic(mpfr_ptr r, mpfr_srcptr x, mpfr_rnd_t rnd) {
  mpfr_t t;
  mpfr_init2(t, 2000);
  mpfr_neg(t, x, rnd);
  mpfr_exp(t, t, rnd);
  mpfr_add_ui(t, t, 1, rnd);
  int k = mpfr_ui_div(r, 1, t, rnd);
  mpfr_clear(t);
  return k;
}

/* MPFR has +inf at -0; 1 / sqrt(-0) is -inf. */
static int exact_rsqrt(mpfr_ptr r, mpfr_srcptr x, mpfr_rnd_t rnd) {
  int k = mpfr_rec_sqrt(r, x, rnd);
  if (mpfr_zero_p(x)) mpfr_set_inf(r, mpfr_signbit(x) ? -1 : 1);
  return k;
}

static const struct {
  lw_opcode op;
  exact1 f1;
  exact2 f2;
  double ulp32, ulp64;
} cases[] = {
    {LW_OP_SQRT, mpfr_sqrt, NULL, 0.5, 0.5},
    {LW_OP_RSQRT, exact_rsqrt, NULL, 0.52, 0.52},
    {LW_OP_CBRT, mpfr_cbrt, NULL, 0.51, 0.52},
    {LW_OP_EXPONENTIAL, mpfr_exp, NULL, 0.9, 0.6},
    {LW_OP_EXPM1, mpfr_expm1, NULL, 1.5, 0.75},
    {LW_OP_LOG, mpfr_log, NULL, 0.9, 0.52},
    {LW_OP_LOG1P, mpfr_log1p, NULL, 1.0, 0.65},
    {LW_OP_LOGISTIC, exact_logistic, NULL, 0.9, 2.0},
    {LW_OP_TANH, mpfr_tanh, NULL, 1.5, 2.0},
    {LW_OP_ERF, mpfr_erf, NULL, 1.5, 1.5},
    {LW_OP_SINE, mpfr_sin, NULL, 0.8, 0.8},
    {LW_OP_COSINE, mpfr_cos, NULL, 0.8, 0.8},
    {LW_OP_TAN, mpfr_tan, NULL, 0.51, 2.0},
    {LW_OP_ASIN, mpfr_asin, NULL, 0.51, 0.6},
    {LW_OP_ACOS, mpfr_acos, NULL, 0.51, 0.6},
    {LW_OP_SINH, mpfr_sinh, NULL, 0.51, 0.65},
    {LW_OP_COSH, mpfr_cosh, NULL, 0.51, 0.65},
    {LW_OP_ASINH, mpfr_asinh, NULL, 0.51, 1.75},
    {LW_OP_ACOSH, mpfr_acosh, NULL, 0.51, 2.0},
    {LW_OP_ATANH, mpfr_atanh, NULL, 0.51, 2.0},
    {LW_OP_POWER, NULL, mpfr_pow, 0.51, 0.8},
    {LW_OP_ATAN2, NULL, mpfr_atan2, 0.51, 0.95},
    {LW_OP_REMAINDER, NULL, mpfr_fmod, 0, 0},
};
enum { CASES = sizeof cases / sizeof *cases };

static uint64_t state = 88172645463325252;
static uint64_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

/* Half any bits, half of moderate size, with special values among them. */
static double sample(bool wide) {
  static const double special[] = {
      0,     -0.0,  1,      -1,       2,        -2,        0.5,  -0.5,
      3,     1e-40, 1e-310, 0x1p-149, INFINITY, -INFINITY, NAN,  3.4e38,
      1e308, 709.5, 88.6,   -103.9,   -745.1,   M_PI_2,    M_PI, 1e22};
  uint64_t r = next();
  if (r % 16 == 0)
    return special[(r >> 8) % (sizeof special / sizeof *special)];
  double u = (double)(int64_t)next() * 0x1p-63;
  if (r % 16 < 4) return u * 30;
  if (r % 16 < 8) return ldexp(u, (int)((r >> 8) % 64) - 32);
  if (r % 16 == 8) return rint(u * 100);
  if (r % 16 == 9) return 1 + u * 0x1p-6;
  uint64_t bits = next();
  double d;
  float f;
  memcpy(&d, &bits, 8);
  memcpy(&f, &bits, 4);
  return wide ? d : f;
}

typedef struct {
  mpfr_t x, y, r, e;
} reals;

static void reals_init(reals *m) {
  mpfr_init2(m->x, 53);
  mpfr_init2(m->y, 53);
  mpfr_init2(m->r, 140);
  mpfr_init2(m->e, 140);
}

static void reals_clear(reals *m) {
  mpfr_clear(m->x);
  mpfr_clear(m->y);
  mpfr_clear(m->r);
  mpfr_clear(m->e);
}

/* |got - m->r| in ulps; an overflow of the exact result counts from the first
 * number past the range. */
static double ulps(reals *m, double got, bool wide) {
  int p = wide ? 53 : 24, emin = wide ? -1073 : -148, emax = wide ? 1024 : 128;
  if (mpfr_nan_p(m->r)) return isnan(got) ? 0 : INFINITY;
  if (isnan(got)) return INFINITY;
  if (mpfr_inf_p(m->r))
    return isinf(got) && (got > 0) == (mpfr_sgn(m->r) > 0) ? 0 : INFINITY;
  if (mpfr_zero_p(m->r))
    return got == 0 && signbit(got) == (mpfr_signbit(m->r) != 0) ? 0 : INFINITY;
  if (got == 0 && signbit(got) != (mpfr_signbit(m->r) != 0)) return INFINITY;
  long e = mpfr_get_exp(m->r);
  if (isinf(got)) {
    if (e < emax - 1) return INFINITY;
    mpfr_set_ui_2exp(m->e, 1, emax, MPFR_RNDN);
    if (got < 0) mpfr_neg(m->e, m->e, MPFR_RNDN);
    if (e > emax) return (got > 0) == (mpfr_sgn(m->r) > 0) ? 0 : INFINITY;
    mpfr_sub(m->e, m->e, m->r, MPFR_RNDN);
  } else {
    mpfr_set_d(m->e, got, MPFR_RNDN);
    mpfr_sub(m->e, m->e, m->r, MPFR_RNDN);
  }
  long u = e - p < emin - 1 ? emin - 1 : e - p;
  mpfr_mul_2si(m->e, m->e, -u, MPFR_RNDN);
  return fabs(mpfr_get_d(m->e, MPFR_RNDN));
}

static double one(int c, reals *m, bool wide, double x, double y, double *got) {
  lw_prim t = wide ? LW_F64 : LW_F32;
  lw_elem_op op = lw_elem_make(cases[c].op, t, t, t, t);
  lw_elem_fn fn;
  assert_null(lw_elem_resolve(&op, &fn));
  float xf = (float)x, yf = (float)y, of;
  if (wide)
    fn(&op, 1, &x, &y, NULL, got);
  else
    fn(&op, 1, &xf, &yf, NULL, &of), *got = of;
  mpfr_set_d(m->x, wide ? x : xf, MPFR_RNDN);
  mpfr_set_d(m->y, wide ? y : yf, MPFR_RNDN);
  if (cases[c].f1)
    cases[c].f1(m->r, m->x, MPFR_RNDN);
  else
    cases[c].f2(m->r, m->x, m->y, MPFR_RNDN);
  return ulps(m, *got, wide);
}

/* The largest error over n samples; reports where. */
static double worst(int c, bool wide, int n, bool print) {
  reals m;
  reals_init(&m);
  double max = 0, at = 0, at2 = 0, value = 0;
  for (int i = 0; i < n; i++) {
    double x = sample(wide), y = sample(wide), got;
    if (!wide) x = (float)x, y = (float)y;
    double e = one(c, &m, wide, x, y, &got);
    if (e > max || isnan(e)) max = e, at = x, at2 = y, value = got;
  }
  double bound = wide ? cases[c].ulp64 : cases[c].ulp32;
  if (print || !(max <= bound))
    printf("%-22s %s %8.4f ulp (bound %.2f) at %a %a: %a\n",
           lw_opcode_name(cases[c].op), wide ? "f64" : "f32", max, bound, at,
           at2, value);
  reals_clear(&m);
  return max;
}

static int points = 6000;
static bool verbose;

static void test_f32(void **s) {
  (void)s;
  int bad = 0;
  for (int c = 0; c < CASES; c++)
    bad += !(worst(c, false, points, verbose) <= cases[c].ulp32);
  assert_int_equal(bad, 0);
}

static void test_f64(void **s) {
  (void)s;
  int bad = 0;
  for (int c = 0; c < CASES; c++)
    bad += !(worst(c, true, points, verbose) <= cases[c].ulp64);
  assert_int_equal(bad, 0);
}

/* ---- complex, normwise: c64 against C's double complex functions ---- */

typedef double complex cplx;

static cplx exact_mul(cplx a, cplx b) { return a * b; }
static cplx exact_div(cplx a, cplx b) { return a / b; }
static cplx exact_cabs(cplx a, cplx b) { return (void)b, cabs(a); }
static cplx exact_csign(cplx a, cplx b) { return (void)b, a / cabs(a); }
static cplx exact_csqrt(cplx a, cplx b) { return (void)b, csqrt(a); }
static cplx exact_crsqrt(cplx a, cplx b) { return (void)b, 1 / csqrt(a); }
static cplx exact_cexp(cplx a, cplx b) { return (void)b, cexp(a); }
static cplx exact_clog(cplx a, cplx b) { return (void)b, clog(a); }
static cplx exact_ctanh(cplx a, cplx b) { return (void)b, ctanh(a); }
static cplx exact_ctan(cplx a, cplx b) { return (void)b, ctan(a); }
static cplx exact_csin(cplx a, cplx b) { return (void)b, csin(a); }
static cplx exact_ccos(cplx a, cplx b) { return (void)b, ccos(a); }

/* e^a - 1 and log(1 + a), accurate for small a. */
static cplx exact_cexpm1(cplx a, cplx b) {
  (void)b;
  double s = sin(cimag(a) / 2), e = exp(creal(a));
  double re = expm1(creal(a)) * cos(cimag(a)) - 2 * s * s;
  return CMPLX(re, e * sin(cimag(a)));
}
static cplx exact_clog1p(cplx a, cplx b) {
  (void)b;
  double x = creal(a), y = cimag(a), t = x * (2 + x) + y * y;
  return CMPLX(log1p(t) / 2, atan2(y, 1 + x));
}

static const struct {
  lw_opcode op;
  cplx (*f)(cplx, cplx);
  double bound; /* in 2^-24 |result| */
} complex_cases[] = {
    {LW_OP_MULTIPLY, exact_mul, 2.5},   {LW_OP_DIVIDE, exact_div, 5},
    {LW_OP_ABS, exact_cabs, 2},         {LW_OP_SIGN, exact_csign, 2.5},
    {LW_OP_SQRT, exact_csqrt, 3},       {LW_OP_RSQRT, exact_crsqrt, 5},
    {LW_OP_EXPONENTIAL, exact_cexp, 3}, {LW_OP_EXPM1, exact_cexpm1, 5},
    {LW_OP_LOG, exact_clog, 4},         {LW_OP_LOG1P, exact_clog1p, 6},
    {LW_OP_TANH, exact_ctanh, 6},       {LW_OP_TAN, exact_ctan, 6},
    {LW_OP_SINE, exact_csin, 4},        {LW_OP_COSINE, exact_ccos, 4},
};

static double moderate(void) {
  double u = (double)(int64_t)next() * 0x1p-63;
  uint64_t r = next() % 8;
  if (r < 4) return (float)(u * 5);
  if (r == 4) return (float)(u * 30);
  if (r == 5) return (float)(1 + u * 0x1p-8);
  return (float)ldexp(u, -(int)(next() % 24));
}

static double complex_worst(size_t c, int n) {
  lw_opcode opcode = complex_cases[c].op;
  lw_prim out = opcode == LW_OP_ABS ? LW_F32 : LW_C64;
  lw_elem_op op = lw_elem_make(opcode, LW_C64, LW_C64, 0, out);
  lw_elem_fn fn;
  assert_null(lw_elem_resolve(&op, &fn));
  double max = 0;
  for (int i = 0; i < n; i++) {
    float a[2] = {(float)moderate(), (float)moderate()}, r[2] = {0, 0};
    float b[2] = {(float)moderate(), (float)moderate()};
    fn(&op, 1, a, b, NULL, r);
    cplx w = complex_cases[c].f(CMPLX(a[0], a[1]), CMPLX(b[0], b[1]));
    double e = cabs(CMPLX(r[0], r[1]) - w) / cabs(w) * 0x1p24;
    if (!(e <= max)) max = e;
  }
  if (verbose || !(max <= complex_cases[c].bound))
    printf("%-22s c64 %6.2f u (bound %.1f)\n", lw_opcode_name(opcode), max,
           complex_cases[c].bound);
  return max;
}

static void test_c64(void **s) {
  (void)s;
  int bad = 0;
  for (size_t c = 0; c < sizeof complex_cases / sizeof *complex_cases; c++)
    bad += !(complex_worst(c, points) <= complex_cases[c].bound);
  assert_int_equal(bad, 0);
}

/* Every f32 through one unary function: arrays first, MPFR one by one. */
static int soak(const char *name) {
  enum { CHUNK = 1 << 16 };
  static float in[CHUNK], out[CHUNK];
  for (int c = 0; c < CASES; c++) {
    if (!cases[c].f1 || strcmp(lw_opcode_name(cases[c].op), name)) continue;
    lw_elem_op op = lw_elem_make(cases[c].op, LW_F32, 0, 0, LW_F32);
    lw_elem_fn fn;
    assert_null(lw_elem_resolve(&op, &fn));
    reals m;
    reals_init(&m);
    double max = 0;
    float at = 0;
    for (uint64_t base = 0; base < (uint64_t)1 << 32; base += CHUNK) {
      for (uint32_t i = 0; i < CHUNK; i++) {
        uint32_t bits = (uint32_t)base + i;
        memcpy(&in[i], &bits, 4);
      }
      fn(&op, CHUNK, in, NULL, NULL, out);
      for (int i = 0; i < CHUNK; i++) {
        mpfr_set_flt(m.x, in[i], MPFR_RNDN);
        cases[c].f1(m.r, m.x, MPFR_RNDN);
        double e = ulps(&m, out[i], false);
        if (e > max) max = e, at = in[i];
      }
    }
    printf("%s f32: %.4f ulp at %a over all inputs (bound %.2f)\n", name, max,
           at, cases[c].ulp32);
    reals_clear(&m);
    return !(max <= cases[c].ulp32);
  }
  printf("no unary function %s\n", name);
  return 2;
}

int main(int argc, char **argv) {
  if (argc == 3 && !strcmp(argv[1], "--soak")) return soak(argv[2]);
  if (argc == 3 && !strcmp(argv[1], "--points"))
    points = atoi(argv[2]), verbose = true;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_f32),
                                     cmocka_unit_test(test_f64),
                                     cmocka_unit_test(test_c64)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
