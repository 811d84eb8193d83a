/* Target files, and the cost model over them. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "target/cost.h"

static lw_target *load(const char *name) {
  lw_target *t = NULL;
  lw_status s = lw_target_load(name, &t);
  if (s) print_error("%s\n", lw_status_message(s));
  assert_null(s);
  return t;
}

static void every_built_in_file_reads(void **state) {
  (void)state;
  assert_true(lw_target_builtin_count() > 3);
  for (int k = 0; k < lw_target_builtin_count(); k++) {
    lw_target *t = load(lw_target_builtin_name(k));
    assert_string_equal(t->name, lw_target_builtin_name(k));
    assert_string_equal(t->source, "built in");
    bool cpu = !strncmp(t->name, "cpu", 3);
    assert_ptr_equal(t->backend, lw_backend_find(cpu ? "cpu" : "gpu"));
    lw_target_free(t);
  }
  lw_target *t = load("cpu");
  assert_string_equal(t->name, lw_target_host_name());
  lw_target_free(t);
}

static void printing_reads_back(void **state) {
  (void)state;
  lw_target *t = load("cpu-zen4"), *u;
  lw_buf b = {0}, c = {0};
  lw_target_print(&b, t);
  assert_null(lw_target_parse(b.data, b.len, "again", &u));
  assert_true(memcmp(&t->v, &u->v, sizeof t->v) == 0);
  lw_buf_free(&b);
  lw_buf_free(&c);
  lw_target_free(t);
  lw_target_free(u);
}

static void expect_error(const char *text, const char *want) {
  lw_target *t;
  lw_status s = lw_target_parse(text, strlen(text), "my.target", &t);
  assert_non_null(s);
  assert_null(t);
  if (!strstr(lw_status_message(s), want))
    print_error("wanted '%s' in:\n%s\n", want, lw_status_message(s));
  assert_non_null(strstr(lw_status_message(s), want));
  lw_status_free(s);
}

static void errors_say_where(void **state) {
  (void)state;
  expect_error("name = x\n  l2_bites = 3\n", "my.target:2:3");
  expect_error("name = x\n  l2_bites = 3\n", "did you mean l2_bytes?");
  expect_error("cores = many\n", "my.target:1:9");
  expect_error("cores = 0\n", "must lie in");
  expect_error("cores = nan\n", "must lie in");
  expect_error("cores = 1\ncores = 2\n", "given twice");
  expect_error("cores\n", "expected 'key = value'");
  expect_error("", "no 'l1_bytes' given");
  expect_error("backend = gpu9\n", "no backend 'gpu9'");
}

static void unknown_names_get_a_suggestion(void **state) {
  (void)state;
  lw_target *t;
  lw_status s = lw_target_load("cpu-zen5", &t);
  assert_int_equal(lw_status_code(s), LW_NOT_FOUND);
  assert_non_null(strstr(lw_status_message(s), "cpu-zen4"));
  lw_status_free(s);
}

static void bigger_values_lie_further_away(void **state) {
  (void)state;
  lw_target *t = load("cpu-generic");
  assert_int_equal(lw_cost_level(t, 1024), LW_LEVEL_L1);
  assert_int_equal(lw_cost_level(t, 1e9), LW_LEVEL_DRAM);
  double before = 0;
  for (double b = 64; b < 1e10; b *= 2) {
    double ns = lw_cost_value_ns(t, b, b);
    assert_true(ns > before);
    before = ns;
  }
  /* 1 GB at 30 GB/s */
  assert_true(lw_cost_value_ns(t, 1e9, 1e9) == 1e9 / 30);
  lw_target_free(t);
}

static void small_kernels_stay_on_one_core(void **state) {
  (void)state;
  lw_target *t = load("cpu-generic");
  lw_cost small = {10, 1}, big = {1e6, 1e5};
  assert_true(lw_cost_kernel_ns(t, small) == t->v.launch_ns + 10);
  assert_true(lw_cost_kernel_ns(t, big) ==
              t->v.launch_ns + (t->v.fork_join_ns + 1e6 / t->v.cores));
  lw_target_free(t);
}

static lw_fusible never(const lw_inst *p, const lw_inst *c,
                        const lw_target *t) {
  (void)p;
  (void)c;
  (void)t;
  return (lw_fusible){false, LW_REASON_TARGET_REFUSES};
}

static void backends_can_be_added(void **state) {
  (void)state;
  lw_backend b = {"test-backend", "for a test", never};
  assert_null(lw_backend_find("test-backend"));
  assert_true(lw_backend_register(&b));
  assert_true(lw_backend_register(&b));
  assert_non_null(lw_backend_find("test-backend"));
  assert_true(lw_backend_find("test-backend")->is_fusible == never);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_built_in_file_reads),
      cmocka_unit_test(printing_reads_back),
      cmocka_unit_test(errors_say_where),
      cmocka_unit_test(unknown_names_get_a_suggestion),
      cmocka_unit_test(bigger_values_lie_further_away),
      cmocka_unit_test(small_kernels_stay_on_one_core),
      cmocka_unit_test(backends_can_be_added),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
