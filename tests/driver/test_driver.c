/* Loading, random inputs, comparing, running often. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "base/file.h"
#include "driver/driver.h"

static void check_status(lw_status st) {
  if (st) fail_msg("%s", lw_status_message(st));
}

static lw_module *read_text(lw_context *ctx, const char *text) {
  lw_module *m;
  check_status(lw_load_text(ctx, text, strlen(text), &m));
  return m;
}

static const char square[] =
    "HloModule square\n"
    "ENTRY e {\n"
    "  x = f32[8] parameter(0)\n"
    "  ROOT y = f32[8] multiply(x, x)\n"
    "}\n";

/* ---- files and folders ---- */

static void write_file(const char *dir, const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  check_status(lw_file_write(path, text, strlen(text)));
}

static lw_code load_code(const char *path, const char *which) {
  lw_context *ctx = lw_context_new();
  lw_module *m;
  lw_status st = lw_load_module(ctx, path, which, NULL, &m);
  lw_code code = lw_status_code(st);
  lw_status_free(st);
  if (m) lw_module_free(m);
  lw_context_free(ctx);
  return code;
}

static void test_folders(void **state) {
  (void)state;
  char dir[] = "/tmp/lawson-test-XXXXXX", one[64];
  assert_non_null(mkdtemp(dir));
  assert_int_equal(load_code(dir, NULL), LW_NOT_FOUND);
  write_file(dir, "module_0001.a.before.txt", square);
  write_file(dir, "module_0001.a.before-buffer-assignment.txt", "no module");
  assert_int_equal(load_code(dir, NULL), LW_OK);
  write_file(dir, "module_0002.b.before.txt", square);
  assert_int_equal(load_code(dir, NULL), LW_FAILED_PRECONDITION);
  assert_int_equal(load_code(dir, "0002"), LW_OK);
  assert_int_equal(load_code(dir, "0003"), LW_NOT_FOUND);
  snprintf(one, sizeof one, "%s/bytecode", dir);
  write_file(dir, "bytecode", "ML\xefR....");
  assert_int_equal(load_code(one, NULL), LW_UNIMPLEMENTED);
  static const char *const names[] = {
      "module_0001.a.before.txt", "module_0001.a.before-buffer-assignment.txt",
      "module_0002.b.before.txt", "bytecode"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    snprintf(one, sizeof one, "%s/%s", dir, names[k]);
    unlink(one);
  }
  rmdir(dir);
}

/* ---- random inputs ---- */

static void test_index_ranges(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_arena *a = lw_arena_new();
  lw_module *m = read_text(
      ctx,
      "HloModule m\n"
      "f {\n"
      "  b = f32[10,4] parameter(0)\n"
      "  k = s32[] parameter(1)\n"
      "  z = s32[] constant(0)\n"
      "  ROOT s = f32[3,4] dynamic-slice(b, k, z), dynamic_slice_sizes={3,4}\n"
      "}\n"
      "ENTRY e {\n"
      "  x = f32[10,4] parameter(0)\n"
      "  i = s64[5,1] parameter(1)\n"
      "  j = s32[] parameter(2)\n"
      "  n = s32[7] parameter(3)\n"
      "  i2 = s32[5,1] convert(i)\n"
      "  g = f32[5,4] gather(x, i2), offset_dims={1}, "
      "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
      "slice_sizes={1,4}\n"
      "  c = f32[3,4] call(x, j), to_apply=f\n"
      "  ROOT t = (f32[5,4], f32[3,4], s32[7]) tuple(g, c, n)\n"
      "}\n");
  lw_literal **args;
  lw_input_range *r;
  int32_t n_args, n;
  check_status(lw_random_inputs(m, 3, a, &args, &n_args, &r, &n));
  assert_int_equal(n, 4);
  assert_true(r[1].is_index && r[1].low == 0 && r[1].high == 9);
  assert_true(r[2].is_index && r[2].high == 7);
  assert_false(r[0].is_index || r[3].is_index);
  for (int64_t k = 0; k < 5; k++) {
    assert_in_range(lw_literal_get_int(args[1], k), 0, 9);
  }
  lw_literal **again;
  check_status(lw_random_inputs(m, 3, a, &again, &n_args, NULL, NULL));
  for (int32_t k = 0; k < 4; k++) {
    assert_true(lw_literal_equal(args[k], again[k]));
  }
  check_status(lw_random_inputs(m, 4, a, &again, &n_args, NULL, NULL));
  assert_false(lw_literal_equal(args[0], again[0]));
  lw_module_free(m);
  lw_arena_free(a);
  lw_context_free(ctx);
}

/* ---- bits ---- */

static void test_same_bits(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_arena *a = lw_arena_new();
  const int64_t dims[] = {3};
  const lw_shape *s = lw_shape_array(ctx, LW_F32, 1, dims);
  lw_literal *x, *y;
  check_status(lw_literal_new(a, s, &x));
  check_status(lw_literal_clone(a, x, &y));
  const char *where = NULL;
  ((uint32_t *)x->data)[1] = 0x7fc00000; /* two NaNs */
  ((uint32_t *)y->data)[1] = 0xffc00001;
  assert_true(lw_literal_same_bits(x, y, a, &where));
  ((uint32_t *)y->data)[2] = 0x80000000; /* -0 is not 0 */
  assert_false(lw_literal_same_bits(x, y, a, &where));
  assert_non_null(strstr(where, "first at 2"));
  lw_arena_free(a);
  lw_context_free(ctx);
}

/* ---- compile and run ---- */

static void test_errors(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_module *m = read_text(ctx, square);
  static const lw_compile_options bad[] = {
      {.fusion = "fast"}, {.disable = "no-such"}, {.passes = "Dce"}};
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    lw_compiled *c;
    lw_status st = lw_compile(m, &bad[k], &c);
    assert_int_equal(lw_status_code(st), LW_NOT_FOUND);
    assert_non_null(strstr(lw_status_message(st), "module square"));
    assert_null(c);
    lw_status_free(st);
  }
  lw_module_free(m);
  lw_context_free(ctx);
}

static void test_donated_runs_again(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_arena *a = lw_arena_new();
  lw_module *m =
      read_text(ctx,
                "HloModule m, input_output_alias={ {}: (0, {}, must-alias) }\n"
                "ENTRY e {\n"
                "  x = f32[8] parameter(0)\n"
                "  ROOT y = f32[8] add(x, x)\n"
                "}\n");
  lw_literal **args, *want, *got;
  int32_t n;
  lw_compiled *c;
  lw_bound *b;
  check_status(lw_random_inputs(m, 1, a, &args, &n, NULL, NULL));
  check_status(lw_compile(m, NULL, &c));
  assert_int_equal(lw_compiled_plan(c)->output_alias[0], 0);
  check_status(lw_bound_new(c, (const lw_literal *const *)args, n, &b));
  check_status(lw_bound_run(b, NULL, NULL, NULL));
  check_status(lw_bound_result(b, a, &want));
  for (int k = 0; k < 3; k++) {
    int64_t ns;
    lw_run_stats stats;
    check_status(lw_bound_run(b, NULL, &stats, &ns));
    check_status(lw_bound_result(b, a, &got));
    assert_true(lw_literal_equal(want, got));
    assert_int_equal(stats.output_bytes, 0);
    assert_int_equal(stats.kernels_launched, 1);
  }
  lw_status st = lw_compiled_run(c, NULL, 0, NULL, a, &got, NULL);
  assert_int_equal(lw_status_code(st), LW_INVALID_ARGUMENT);
  lw_status_free(st);
  lw_bound_free(b);
  lw_compiled_free(c);
  lw_module_free(m);
  lw_arena_free(a);
  lw_context_free(ctx);
}

/* One kernel of 5,000 instructions in a row: no walk runs out of stack. */
static void test_long_chain(void **state) {
  (void)state;
  enum { N = 5000 };
  lw_buf b = {0};
  lw_buf_str(&b, "HloModule chain\nENTRY e {\n  x0 = s32[8] parameter(0)\n");
  for (int k = 1; k <= N; k++)
    lw_buf_printf(&b, "  %sx%d = s32[8] %s(x%d)\n", k == N ? "ROOT " : "", k,
                  k % 2 ? "not" : "negate", k - 1);
  lw_buf_str(&b, "}\n");
  lw_context *ctx = lw_context_new();
  lw_module *m = read_text(ctx, lw_buf_cstr(&b));
  lw_compile_options o = {.fusion = "xla", .passes = "fusion,fusion-wrapper"};
  lw_compiled *c;
  check_status(lw_compile(m, &o, &c));
  lw_arena *a = lw_arena_new();
  lw_literal *x, *y;
  check_status(lw_literal_new(a, m->entry->params.data[0]->shape, &x));
  for (int k = 0; k < 8; k++) lw_literal_set_int(x, k, k);
  const lw_literal *args[] = {x};
  check_status(lw_compiled_run(c, args, 1, NULL, a, &y, NULL));
  /* -~v is v + 1. */
  for (int k = 0; k < 8; k++)
    assert_int_equal(lw_literal_get_int(y, k), k + N / 2);
  lw_compiled_free(c);
  lw_arena_free(a);
  lw_module_free(m);
  lw_context_free(ctx);
  lw_buf_free(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_folders),
      cmocka_unit_test(test_index_ranges),
      cmocka_unit_test(test_same_bits),
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_donated_runs_again),
      cmocka_unit_test(test_long_chain),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
