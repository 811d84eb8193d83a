/* Which fusions split, merged, moved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "driver/driver.h"
#include "lab/fusion_diff.h"

/* Four operations in kernels: groups names the kernel of each, as in "aabb".
 * A kernel of one is no fusion. */
static void write_module(const char *groups, const char *prefix, lw_buf *b) {
  static const char *const ops[] = {"negate", "exponential", "tanh", "cosine"};
  lw_buf entry = {0};
  lw_buf_str(b, "HloModule m\n");
  lw_buf_str(&entry, "ENTRY e {\n  v0 = f32[8] parameter(0)\n");
  for (int k = 0; k < 4;) {
    int end = k;
    while (end < 4 && groups[end] == groups[k]) end++;
    if (end - k > 1) {
      lw_buf_printf(b, "%s%c { x%d = f32[8] parameter(0)\n", prefix, groups[k],
                    k);
      for (int i = k; i < end; i++)
        lw_buf_printf(b,
                      "  %sx%d = f32[8] %s(x%d), "
                      "metadata={op_name=\"f/%s\"}\n",
                      i + 1 == end ? "ROOT " : "", i + 1, ops[i], i, ops[i]);
      lw_buf_str(b, "}\n");
      lw_buf_printf(&entry,
                    "  %sv%d = f32[8] fusion(v%d), kind=kLoop, calls=%s%c\n",
                    end == 4 ? "ROOT " : "", end, k, prefix, groups[k]);
    } else {
      lw_buf_printf(&entry,
                    "  %sv%d = f32[8] %s(v%d), metadata={op_name=\"f/%s\"}\n",
                    end == 4 ? "ROOT " : "", end, ops[k], k, ops[k]);
    }
    k = end;
  }
  lw_buf_printf(b, "%s}\n", lw_buf_cstr(&entry));
  lw_buf_free(&entry);
}

/* "SPLIT 1>2 SAME 1>1" */
static void compare(const char *a, const char *b, const char *expected) {
  lw_context *ctx = lw_context_new();
  lw_module *m[2];
  const char *groups[] = {a, b};
  for (int k = 0; k < 2; k++) {
    lw_buf text = {0};
    write_module(groups[k], k ? "q" : "p", &text);
    lw_status st = lw_load_text(ctx, lw_buf_cstr(&text), text.len, &m[k]);
    if (st) fail_msg("%s", lw_status_message(st));
    lw_buf_free(&text);
  }
  lw_fusion_diff d;
  lw_fusion_diff_of(m[0], m[1], &d);
  lw_buf said = {0};
  for (size_t k = 0; k < d.parts.len; k++)
    lw_buf_printf(&said, "%s%s %d>%d", k ? " " : "",
                  lw_fusion_change_name(d.parts.data[k].change),
                  d.parts.data[k].n_a, d.parts.data[k].n_b);
  assert_string_equal(lw_buf_cstr(&said), expected);
  assert_int_equal(d.anchors, 4);
  assert_true(d.by_op_name);
  lw_buf_free(&said);
  lw_fusion_diff_free(&d);
  lw_module_free(m[0]);
  lw_module_free(m[1]);
  lw_context_free(ctx);
}

static void changes(void **state) {
  (void)state;
  compare("aabb", "aabb", "SAME 1>1 SAME 1>1");
  compare("aaaa", "aabb", "SPLIT 1>2");
  compare("aabb", "aaaa", "MERGED 2>1");
  compare("aaab", "abbb", "MOVED 2>2");
  compare("aabc", "aabb", "SAME 1>1 MERGED 2>1");
  compare("abcd", "abcd", ""); /* no fusion anywhere */
}

/* An operation that the other side does not have. */
static void lacks(void **state) {
  (void)state;
  static const char two[] =
      "HloModule m\n"
      "f { p = f32[8] parameter(0)\n  x = f32[8] negate(p)\n"
      "  ROOT y = f32[8] %s(x) }\n"
      "ENTRY e { v = f32[8] parameter(0)\n"
      "  ROOT r = f32[8] fusion(v), kind=kLoop, calls=f }\n";
  lw_context *ctx = lw_context_new();
  lw_module *m[2];
  for (int k = 0; k < 2; k++) {
    lw_buf text = {0};
    const char *hole = strstr(two, "%s");
    lw_buf_add(&text, two, (size_t)(hole - two));
    lw_buf_str(&text, k ? "tanh" : "cosine");
    lw_buf_str(&text, hole + 2);
    assert_null(lw_load_text(ctx, lw_buf_cstr(&text), text.len, &m[k]));
    lw_buf_free(&text);
  }
  lw_fusion_diff d;
  lw_fusion_diff_of(m[0], m[1], &d);
  assert_int_equal(d.parts.len, 1);
  assert_int_equal(d.parts.data[0].change, LW_FUSION_CHANGED);
  assert_false(d.by_op_name);
  lw_buf b = {0};
  lw_fusion_diff_print(&b, &d);
  assert_non_null(strstr(lw_buf_cstr(&b), "CHANGED  r > r"));
  lw_buf_free(&b);
  lw_fusion_diff_free(&d);
  lw_module_free(m[0]);
  lw_module_free(m[1]);
  lw_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(changes),
                                     cmocka_unit_test(lacks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
