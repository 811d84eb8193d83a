/* Shape inference against XLA's: infer_cases.h. */
#include <string.h>

#include "hlo/infer.h"
#include "hlo/print.h"
#include "infer_cases.h"
#include "reader/reader.h"
#include "unit.h"

static lw_status read_with(lw_context *ctx, const char *inst, lw_module **out) {
  lw_buf b = {0};
  lw_buf_str(&b, preamble);
  lw_buf_printf(&b, " ROOT r_ = %s\n}\n", inst);
  lw_status s = lw_read_text(ctx, b.data, b.len, "case", NULL, out);
  lw_buf_free(&b);
  return s;
}

static void gives_xlas_shape(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  for (size_t i = 0; i < sizeof inferred / sizeof *inferred; i++) {
    lw_module *m;
    lw_status s = read_with(ctx, inferred[i].inst, &m);
    if (s) fail_msg("%s: %s", inferred[i].inst, lw_status_message(s));
    const char *got = lw_shape_str(ctx, m->entry->root->shape);
    if (strcmp(got, inferred[i].shape))
      fail_msg("%s: %s, not %s", inferred[i].inst, got, inferred[i].shape);
    /* And the same again, with the shape known. */
    const lw_shape *again;
    assert_null(lw_infer_shape(ctx, m->entry->root, &again));
    assert_ptr_equal(again, m->entry->root->shape);
    lw_module_free(m);
  }
  lw_context_free(ctx);
}

static void refuses(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    lw_module *m = NULL;
    lw_status s = read_with(ctx, refused[i].inst, &m);
    if (!s) fail_msg("%s was accepted", refused[i].inst);
    if (!strstr(lw_status_message(s), refused[i].message))
      fail_msg("%s: %s", refused[i].inst, lw_status_message(s));
    lw_status_free(s);
  }
  lw_context_free(ctx);
}

static void window_sizes(void **state) {
  (void)state;
  int64_t n = -1;
  lw_window_dim w = {
      .size = 3, .stride = 2, .lhs_dilation = 1, .rhs_dilation = 1};
  assert_true(lw_window_output_size(&w, 7, &n));
  assert_int_equal(n, 3);
  assert_true(lw_window_output_size(&w, 2, &n));
  assert_int_equal(n, 0);
  w.lhs_dilation = 3; /* 1 + 6 * 3 = 19 */
  w.rhs_dilation = 2; /* 1 + 2 * 2 = 5 */
  assert_true(lw_window_output_size(&w, 7, &n));
  assert_int_equal(n, 8);
  w.pad_lo = INT64_MAX;
  assert_false(lw_window_output_size(&w, 7, &n));
  w.pad_lo = 0;
  w.stride = 0;
  assert_false(lw_window_output_size(&w, 7, &n));
}

static void higher_precision(void **state) {
  (void)state;
  assert_int_equal(lw_prim_higher_precision(LW_F16, LW_BF16), LW_BF16);
  assert_int_equal(lw_prim_higher_precision(LW_F32, LW_F64), LW_F64);
  assert_int_equal(lw_prim_higher_precision(LW_F8E4M3FN, LW_F8E5M2), LW_F8E5M2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gives_xlas_shape), cmocka_unit_test(refuses),
      cmocka_unit_test(window_sizes), cmocka_unit_test(higher_precision)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
