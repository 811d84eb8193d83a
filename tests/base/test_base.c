/* base: arena, strings, maps, status, diagnostics, files. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/map.h"
#include "base/vec.h"
#include "unit.h"

static void arena_is_zeroed_and_aligned(void **state) {
  (void)state;
  lw_arena *a = lw_arena_new();
  for (size_t n = 1; n < 5000; n = n * 3 + 1) {
    char *p = lw_arena_alloc(a, n);
    assert_int_equal((uintptr_t)p % 16, 0);
    for (size_t i = 0; i < n; i++) assert_int_equal(p[i], 0);
    memset(p, 0xff, n);
  }
  assert_string_equal(lw_arena_printf(a, "%d-%s", 7, "x"), "7-x");
  lw_arena_free(a);
}

static void arena_refuses_absurd_sizes(void **state) {
  (void)state;
  lw_arena *a = lw_arena_new();
  void *p = NULL;
  lw_status s = lw_arena_alloc_large(a, SIZE_MAX - 64, &p);
  assert_int_equal(lw_status_code(s), LW_RESOURCE_EXHAUSTED);
  lw_status_free(s);
  s = lw_arena_alloc_large(a, 1 << 20, &p);
  assert_null(s);
  assert_non_null(p);
  lw_arena_free(a);
}

static void status_carries_code_and_context(void **state) {
  (void)state;
  lw_status s = lw_error(LW_NOT_FOUND, "no %s", "pass");
  s = lw_status_annotate(s, "compiling %s", "m");
  assert_int_equal(lw_status_code(s), LW_NOT_FOUND);
  assert_string_equal(lw_status_message(s), "compiling m: no pass");
  lw_status_free(s);
  assert_null(lw_status_annotate(NULL, "x"));
}

static void map_keeps_insertion_order(void **state) {
  (void)state;
  lw_map m = {0};
  for (uint64_t i = 0; i < 10000; i++) *lw_map_put(&m, i * 7919) = i;
  for (uint64_t i = 0; i < 10000; i++) {
    assert_int_equal(*lw_map_get(&m, i * 7919), i);
    assert_int_equal(m.keys[i], i * 7919);
  }
  assert_null(lw_map_get(&m, 1));
  lw_map_free(&m);
}

static void interned_strings_are_one_pointer(void **state) {
  (void)state;
  lw_arena *a = lw_arena_new();
  lw_intern *t = lw_intern_new(a);
  const char *x = lw_intern_str(t, "abc", 3);
  char name[16];
  for (int i = 0; i < 2000; i++) {
    int n = snprintf(name, sizeof name, "n%d", i);
    lw_intern_str(t, name, (size_t)n);
  }
  assert_ptr_equal(x, lw_intern_str(t, "abcd", 3));
  assert_ptr_not_equal(x, lw_intern_str(t, "abcd", 4));
  assert_ptr_not_equal(lw_intern_str(t, "a\0b", 3),
                       lw_intern_str(t, "a\0c", 3));
  lw_intern_free(t);
  lw_arena_free(a);
}

static void diagnostics_point_at_the_place(void **state) {
  (void)state;
  lw_diags d = {.file = "m.hlo", .text = "a\nadd(x, y)\n", .text_len = 12};
  lw_diag_add(&d, 2, 5, "unknown name '%s'", "x");
  lw_diag_add(&d, 0, 0, "no root");
  lw_buf b = {0};
  lw_diags_render(&d, &b);
  assert_string_equal(b.data,
                      "m.hlo:2:5: error: unknown name 'x'\n"
                      "  add(x, y)\n"
                      "      ^\n"
                      "m.hlo: error: no root\n");
  lw_buf_free(&b);
  lw_diags_free(&d);
}

static void diagnostics_stop_listing_but_count_on(void **state) {
  (void)state;
  lw_diags d = {.max = 3};
  for (int i = 0; i < 10; i++) lw_diag_add(&d, 0, 0, "e%d", i);
  lw_buf b = {0};
  lw_diags_render(&d, &b);
  assert_int_equal(d.count, 10);
  assert_non_null(strstr(b.data, "... and 7 more"));
  lw_buf_free(&b);
  lw_diags_free(&d);
}

static void nearest_name_is_near(void **state) {
  (void)state;
  const char *names[] = {"fusion", "dce", "cse", "call-inliner"};
  assert_string_equal(lw_nearest_name("fusoin", names, 4), "fusion");
  assert_string_equal(lw_nearest_name("call-inlier", names, 4), "call-inliner");
  assert_null(lw_nearest_name("zzzzzzzz", names, 4));
}

static void files_are_written_whole(void **state) {
  (void)state;
  char path[] = "/tmp/lawson-test-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  char *data;
  size_t len;
  assert_null(lw_file_write(path, "a\0b", 3));
  assert_null(lw_file_read(path, &data, &len));
  assert_int_equal(len, 3);
  assert_memory_equal(data, "a\0b", 4);
  free(data);
  unlink(path);
  lw_status s = lw_file_read(path, &data, &len);
  assert_int_equal(lw_status_code(s), LW_NOT_FOUND);
  assert_non_null(strstr(lw_status_message(s), path));
  lw_status_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arena_is_zeroed_and_aligned),
      cmocka_unit_test(arena_refuses_absurd_sizes),
      cmocka_unit_test(status_carries_code_and_context),
      cmocka_unit_test(map_keeps_insertion_order),
      cmocka_unit_test(interned_strings_are_one_pointer),
      cmocka_unit_test(diagnostics_point_at_the_place),
      cmocka_unit_test(diagnostics_stop_listing_but_count_on),
      cmocka_unit_test(nearest_name_is_near),
      cmocka_unit_test(files_are_written_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
