/* FFT against the defining sum, LAPACK against reconstruction, random bits
 * against published vectors, the comparison rules. */
#include "lib/lib.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "lib/compare.h"
#include "lib/rng.h"

static lw_context *ctx;
static lw_arena *arena;

static int setup(void **state) {
  (void)state;
  ctx = lw_context_new();
  arena = lw_arena_new();
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lw_arena_free(arena);
  lw_context_free(ctx);
  return 0;
}

static const lw_shape *shape(lw_prim t, int32_t rank, int64_t a, int64_t b) {
  int64_t dims[2] = {a, b};
  return lw_shape_array(ctx, t, rank, dims);
}

/* ---- fft ---- */

static void fft_case(int n, bool wide) {
  lw_prim t = wide ? LW_C128 : LW_C64;
  const lw_shape *s = shape(t, 1, n, 0);
  lw_literal *x = NULL, *y = NULL, *back = NULL;
  assert_null(lw_literal_new(arena, s, &x));
  assert_null(lw_literal_new(arena, s, &y));
  assert_null(lw_literal_new(arena, s, &back));
  for (int k = 0; k < n; k++) {
    lw_literal_set_f64(x, k, 0, sin(k * 1.7) + 0.25);
    lw_literal_set_f64(x, k, 1, cos(k * k * 0.3));
  }
  int64_t len = n;
  assert_null(lw_lib_fft(LW_FFT, 1, &len, s, x->data, s, y->data));
  assert_null(lw_lib_fft(LW_IFFT, 1, &len, s, y->data, s, back->data));
  double eps = (wide ? 1e-14 : 1e-6) * (n + 4);
  for (int k = 0; k < n; k++) {
    double re = 0, im = 0;
    for (int j = 0; j < n; j++) {
      double a = -6.283185307179586 * (double)((int64_t)j * k % n) / n;
      double xr = lw_literal_get_f64(x, j, 0), xi = lw_literal_get_f64(x, j, 1);
      re += xr * cos(a) - xi * sin(a);
      im += xr * sin(a) + xi * cos(a);
    }
    assert_true(fabs(lw_literal_get_f64(y, k, 0) - re) < eps);
    assert_true(fabs(lw_literal_get_f64(y, k, 1) - im) < eps);
    assert_true(fabs(lw_literal_get_f64(back, k, 0) -
                     lw_literal_get_f64(x, k, 0)) < eps);
  }
}

static void fft_lengths(void **state) {
  (void)state;
  static const int lengths[] = {1, 2, 3, 4, 5, 7, 11, 12, 30, 64, 97, 100};
  for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
    fft_case(lengths[k], false);
    fft_case(lengths[k], true);
  }
}

/* ---- lapack ---- */

/* The real Schur form of a 3 x 3 matrix: Z T Z' = A, Z orthogonal. */
static void schur(void **state) {
  (void)state;
  double a[9] = {1, 2, 3, 4, 5, 6, 7, 8, 10}, t[9], z[9], wr[3], wi[3];
  int32_t sdim, info = -1;
  const lw_shape *m = shape(LW_F64, 2, 3, 3), *v = shape(LW_F64, 1, 3, 0),
                 *i = lw_shape_array(ctx, LW_S32, 0, NULL);
  lw_lib_buffer in[1] = {{m, a}}, out[6] = {{m, t},  {m, z},     {v, wr},
                                            {v, wi}, {i, &sdim}, {i, &info}};
  lw_lib_call c = {.target = "lapack_dgees_ffi",
                   .config = "{mode = 86 : ui8, sort = 78 : ui8}",
                   .n_operands = 1,
                   .n_results = 6,
                   .operands = in,
                   .results = out};
  assert_null(lw_lib_run(&c));
  assert_int_equal(info, 0);
  for (int r = 0; r < 3; r++)
    for (int q = 0; q < 3; q++) {
      double sum = 0;
      for (int k = 0; k < 3; k++)
        for (int l = 0; l < 3; l++)
          sum += z[r * 3 + k] * t[k * 3 + l] * z[q * 3 + l];
      assert_true(fabs(sum - a[r * 3 + q]) < 1e-13);
    }
  assert_true(t[3] == 0 && t[6] == 0);
}

static void failed_cholesky(void **state) {
  (void)state;
  float a[4] = {1, 2, 2, 1}, l[4];
  int32_t info = 0;
  const lw_shape *m = shape(LW_F32, 2, 2, 2),
                 *i = lw_shape_array(ctx, LW_S32, 0, NULL);
  lw_lib_buffer in[1] = {{m, a}}, out[2] = {{m, l}, {i, &info}};
  lw_lib_call c = {"lapack_spotrf_ffi", "{uplo = 76 : ui8}", 1, 2, in, out};
  assert_null(lw_lib_run(&c));
  assert_int_equal(info, 2);
  assert_null(lw_lib_cholesky(m, true, a, l));
  assert_true(isnan(l[0]) && isnan(l[3]));
}

static void wrong_calls(void **state) {
  (void)state;
  float a[6] = {0}, l[6];
  int32_t info = 0;
  const lw_shape *m = shape(LW_F32, 2, 2, 3),
                 *i = lw_shape_array(ctx, LW_S32, 0, NULL);
  lw_lib_buffer in[1] = {{m, a}}, out[2] = {{m, l}, {i, &info}};
  lw_lib_call c = {"lapack_spotrf_ffi", NULL, 1, 2, in, out};
  lw_status s = lw_lib_run(&c);
  assert_int_equal(lw_status_code(s), LW_INVALID_ARGUMENT);
  lw_status_free(s);
  c.n_results = 1;
  s = lw_lib_run(&c);
  assert_int_equal(lw_status_code(s), LW_INVALID_ARGUMENT);
  lw_status_free(s);
  c.target = "lapack_dpotrf_ffi"; /* f32 data */
  c.n_results = 2;
  s = lw_lib_run(&c);
  assert_int_equal(lw_status_code(s), LW_INVALID_ARGUMENT);
  lw_status_free(s);
}

static void table_is_found(void **state) {
  (void)state;
  int n = 0;
  const lw_lib_entry *e = lw_lib_entries(&n);
  for (int k = 0; k < n; k++) assert_ptr_equal(lw_lib_find(e[k].target), &e[k]);
  assert_null(lw_lib_find("nobody.home"));
  assert_true(lw_lib_is_identity("Sharding"));
}

static void config(void **state) {
  (void)state;
  const char *mlir = "{mode = 86 : ui8, uplo = 76 : ui8, left = true}";
  assert_int_equal(lw_lib_attr(mlir, "uplo", 0), 76);
  assert_int_equal(lw_lib_attr(mlir, "mode", 0), 86);
  assert_int_equal(lw_lib_attr(mlir, "left", 0), 1);
  assert_int_equal(lw_lib_attr(mlir, "lo", 5), 5);
  assert_int_equal(lw_lib_attr("{\"k\": -3}", "k", 0), -3);
  assert_int_equal(lw_lib_attr(NULL, "k", 9), 9);
  assert_int_equal(lw_lib_attr("{mode", "mode", 4), 4);
}

/* ---- random bits: the vectors of Random123's kat_vectors ---- */

static void blocks(void **state) {
  (void)state;
  uint32_t key[2] = {0, 0}, x[2] = {0, 0};
  lw_threefry(key, x);
  assert_int_equal(x[0], 0x6b200159u);
  assert_int_equal(x[1], 0x99ba4efeu);
  uint32_t k1[2] = {0x13198a2e, 0x03707344}, y[2] = {0x243f6a88, 0x85a308d3};
  lw_threefry(k1, y);
  assert_int_equal(y[0], 0xc4923a9cu);
  assert_int_equal(y[1], 0x483df7a0u);
  uint32_t p[4] = {0, 0, 0, 0};
  static const uint32_t want[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
                                   0x9b00dbd8};
  lw_philox(key, p);
  assert_memory_equal(p, want, sizeof want);
}

static void uniform_range(void **state) {
  (void)state;
  enum { N = 1000 };
  static const lw_prim types[] = {LW_F32, LW_F64, LW_BF16, LW_F16};
  for (int k = 0; k < 4; k++) {
    char lo[8] = {0}, hi[8] = {0};
    lw_shape one = {.type = types[k], .elements = 1};
    lw_literal a = {.shape = &one, .data = lo}, b = {.shape = &one, .data = hi};
    lw_literal *x = NULL;
    lw_literal_set_f64(&a, 0, 0, 1);
    lw_literal_set_f64(&b, 0, 0, 1.25);
    assert_null(lw_literal_new(arena, shape(types[k], 1, N, 0), &x));
    assert_null(
        lw_rng_fill(7, 0, LW_RNG_UNIFORM, types[k], N, lo, hi, x->data));
    double sum = 0;
    for (int i = 0; i < N; i++) {
      double v = lw_literal_get_f64(x, i, 0);
      assert_true(v >= 1 && v < 1.25);
      sum += v;
    }
    assert_true(fabs(sum / (double)N - 1.125) < 0.01);
  }
}

/* ---- comparing ---- */

static void ulps(void **state) {
  (void)state;
  const lw_shape *s = shape(LW_F32, 1, 4, 0);
  float x[4] = {1, -0.0f, NAN, 3}, y[4] = {nextafterf(1, 2), 0.0f, NAN, 3};
  lw_literal a = {.shape = s, .data = x}, b = {.shape = s, .data = y};
  lw_value_diff d;
  assert_null(lw_literal_diff(&a, &b, false, &d));
  assert_int_equal(d.different, 1);
  assert_int_equal(d.max_ulp, 1);
  assert_null(lw_literal_diff(&a, &b, true, &d));
  assert_int_equal(d.different, 2);
  y[3] = INFINITY;
  assert_null(lw_literal_diff(&a, &b, false, &d));
  assert_int_equal(d.specials, 1);
  assert_false(lw_close_to_peer(LW_F32, LW_F32, &d));
}

static void references(void **state) {
  (void)state;
  float x[2] = {1.0f, 2.0f}, y[2] = {1.0f, 2.001f}, far[2] = {1.0f, 2.01f};
  double r[2] = {1.0, 2.0005};
  const lw_shape *s = shape(LW_F32, 1, 2, 0), *w = shape(LW_F64, 1, 2, 0);
  lw_literal a = {.shape = s, .data = x}, b = {.shape = s, .data = y},
             f = {.shape = s, .data = far}, ref = {.shape = w, .data = r};
  lw_ref_error ours, xla, bad;
  assert_null(lw_literal_error(&a, &ref, &ours));
  assert_null(lw_literal_error(&b, &ref, &xla));
  assert_null(lw_literal_error(&f, &ref, &bad));
  assert_true(lw_close_to_reference(LW_F32, &ours, &xla));
  assert_false(lw_close_to_reference(LW_F32, &bad, &xla));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fft_lengths),
      cmocka_unit_test(schur),
      cmocka_unit_test(failed_cholesky),
      cmocka_unit_test(wrong_calls),
      cmocka_unit_test(table_is_found),
      cmocka_unit_test(config),
      cmocka_unit_test(blocks),
      cmocka_unit_test(uniform_range),
      cmocka_unit_test(ulps),
      cmocka_unit_test(references),
  };
  return cmocka_run_group_tests_name("lib", tests, setup, teardown);
}
