/* Child processes: output, input, exit codes, environment, time limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/process.h"

static lw_process_result run(const char *script, lw_process p) {
  const char *argv[] = {"/bin/sh", "-c", script, NULL};
  p.argv = argv;
  lw_process_result r;
  assert_null(lw_process_run(&p, &r));
  return r;
}

static void says(void **state) {
  (void)state;
  lw_process_result r = run("echo out; echo err >&2; exit 3", (lw_process){0});
  assert_string_equal(lw_buf_cstr(&r.out), "out\n");
  assert_string_equal(lw_buf_cstr(&r.err), "err\n");
  assert_int_equal(r.exit_code, 3);
  lw_process_result_free(&r);
}

static void hears(void **state) {
  (void)state;
  size_t n = 1 << 20;
  char *big = malloc(n);
  memset(big, 'x', n);
  lw_process_result r = run("cat", (lw_process){.input = big, .input_len = n});
  assert_int_equal(r.out.len, n);
  assert_memory_equal(r.out.data, big, n);
  lw_process_result_free(&r);
  r = run("exit 0", (lw_process){.input = big, .input_len = n});
  assert_int_equal(r.exit_code, 0);
  lw_process_result_free(&r);
  free(big);
}

static void environment(void **state) {
  (void)state;
  const char *env[] = {"LW_TEST_WORD=here", "HOME=/nowhere", NULL};
  lw_process_result r =
      run("echo $LW_TEST_WORD $HOME", (lw_process){.env = env});
  assert_string_equal(lw_buf_cstr(&r.out), "here /nowhere\n");
  lw_process_result_free(&r);
}

static void ends(void **state) {
  (void)state;
  lw_process_result r =
      run("sleep 60 & sleep 60", (lw_process){.timeout_ms = 100});
  assert_true(r.timed_out);
  assert_int_equal(r.exit_code, 128 + 9);
  assert_true(r.wall_ms < 30000);
  lw_process_result_free(&r);
  r = run("kill -TERM $$", (lw_process){0});
  assert_int_equal(r.exit_code, 128 + 15);
  assert_false(r.timed_out);
  lw_process_result_free(&r);
}

static void missing(void **state) {
  (void)state;
  const char *argv[] = {"no-such-program-anywhere", NULL};
  lw_process_result r;
  lw_status s = lw_process_run(&(lw_process){.argv = argv}, &r);
  assert_non_null(s);
  assert_int_equal(lw_status_code(s), LW_NOT_FOUND);
  lw_status_free(s);
  lw_process_result_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(says), cmocka_unit_test(hears),
      cmocka_unit_test(environment), cmocka_unit_test(ends),
      cmocka_unit_test(missing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
