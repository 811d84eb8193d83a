/* What the strategies make of small programs. */
#include "unit.h"

#include <string.h>

#include "fusion_unit.h"

#define ADD_COMP                                                               \
  "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, " \
  "b) }\n"
#define MAX_COMP                                         \
  "max { a = f32[] parameter(0) b = f32[] parameter(1) " \
  "ROOT c = f32[] maximum(a, b) }\n"

static const char softmax[] = ADD_COMP MAX_COMP
    "ENTRY e { x = f32[64,128] parameter(0) i = f32[] constant(-inf) "
    "z = f32[] constant(0) "
    "m = f32[64] reduce(x, i), dimensions={1}, to_apply=max "
    "b = f32[64,128] broadcast(m), dimensions={0} "
    "s = f32[64,128] subtract(x, b) y = f32[64,128] exponential(s) "
    "t = f32[64] reduce(y, z), dimensions={1}, to_apply=add "
    "c = f32[64,128] broadcast(t), dimensions={0} "
    "ROOT d = f32[64,128] divide(y, c) }";

static void check_kernels(const char *text, const char *strategy,
                          int64_t kernels) {
  fused f = fuse_text(text, strategy, "cpu-generic");
  assert_int_equal(f.report.kernels, kernels);
  assert_same_bits(text, &f);
  fused_free(&f);
}

static void a_row_goes_through_softmax_at_once(void **state) {
  (void)state;
  check_kernels(softmax, "none", 7);
  check_kernels(softmax, "priority", 1);
}

static void nothing_is_left_alone(void **state) {
  (void)state;
  fused f = fuse_text(softmax, "none", "cpu-generic");
  for (const lw_inst *i = f.m->entry->first; i; i = i->next)
    assert_true(i->opcode == LW_OP_PARAMETER || i->opcode == LW_OP_FUSION);
  assert_int_equal(f.report.fusions, 0);
  fused_free(&f);
}

static void cheap_producers_are_duplicated(void **state) {
  (void)state;
  check_kernels(
      "ENTRY e { p = f32[64,64] parameter(0) "
      "n = f32[64,64] negate(p) "
      "a = f32[64,64] slice(n), slice={[0:64],[0:64]} "
      "t = f32[64,64] transpose(n), dimensions={1,0} "
      "d = f32[64,64] dot(a, p), lhs_contracting_dims={1}, "
      "rhs_contracting_dims={0} "
      "ROOT r = (f32[64,64], f32[64,64]) tuple(d, t) }",
      "priority-fusion,fusion-wrapper", 3);
}

static void siblings_share_a_kernel(void **state) {
  (void)state;
  check_kernels(ADD_COMP MAX_COMP
                "ENTRY e { p = f32[64,512] parameter(0) z = f32[] constant(0) "
                "a = f32[64] reduce(p, z), dimensions={1}, to_apply=add "
                "b = f32[64] reduce(p, z), dimensions={1}, to_apply=max "
                "ROOT r = (f32[64], f32[64]) tuple(a, b) }",
                "priority", 1);
}

static void a_value_is_output_and_reduced_at_once(void **state) {
  (void)state;
  check_kernels(ADD_COMP
                "ENTRY e { p = f32[64,512] parameter(0) z = f32[] constant(0) "
                "x = f32[64,512] tanh(p) "
                "a = f32[64] reduce(x, z), dimensions={1}, to_apply=add "
                "ROOT r = (f32[64,512], f32[64]) tuple(x, a) }",
                "priority", 1);
}

static const char around[] =
    "ENTRY e { p = f32[64,64] parameter(0) x = f32[64,64] tanh(p) "
    "d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, "
    "rhs_contracting_dims={0} ROOT r = f32[64,64] add(x, d) }";

static void no_kernel_waits_for_itself(void **state) {
  (void)state;
  check_kernels(around, "priority", 3);
}

/* The window that is read is the window that is written; the buffer stays. */
static void updates_take_their_window(void **state) {
  (void)state;
  static const char text[] =
      "ENTRY e { p = f32[512,64] parameter(0) i = s32[] parameter(1) "
      "z = s32[] constant(0) q = f32[512,64] negate(p) "
      "s = f32[1,64] dynamic-slice(q, i, z), dynamic_slice_sizes={1,64} "
      "t = f32[1,64] tanh(s) "
      "u = f32[512,64] dynamic-update-slice(q, t, i, z) "
      "ROOT r = (f32[512,64]) tuple(u) }";
  fused f = fuse_text(text, "priority", "cpu-generic");
  assert_true(f.report.kernels <= 2);
  assert_same_bits(text, &f);
  fused_free(&f);
}

static void loops_are_fused_inside(void **state) {
  (void)state;
  check_kernels(
      "cond { s = (s32[], f32[64]) parameter(0) "
      "i = s32[] get-tuple-element(s), index=0 n = s32[] constant(3) "
      "ROOT c = pred[] compare(i, n), direction=LT }\n"
      "body { s = (s32[], f32[64]) parameter(0) "
      "i = s32[] get-tuple-element(s), index=0 "
      "x = f32[64] get-tuple-element(s), index=1 o = s32[] constant(1) "
      "j = s32[] add(i, o) y = f32[64] negate(x) w = f32[64] add(y, x) "
      "v = f32[64] tanh(w) ROOT t = (s32[], f32[64]) tuple(j, v) }\n"
      "ENTRY e { p = f32[64] parameter(0) z = s32[] constant(0) "
      "t = (s32[], f32[64]) tuple(z, p) "
      "w = (s32[], f32[64]) while(t), condition=cond, body=body "
      "ROOT r = f32[64] get-tuple-element(w), index=1 }",
      "priority", 3);
}

static void runs_give_the_same_bytes(void **state) {
  (void)state;
  fused f = fuse_text(softmax, "priority", "cpu-generic");
  fused g = fuse_text(softmax, "priority", "cpu-generic");
  lw_buf a = fused_print(&f), b = fused_print(&g);
  assert_string_equal(lw_buf_cstr(&a), lw_buf_cstr(&b));
  lw_buf_free(&a);
  lw_buf_free(&b);
  fused_free(&f);
  fused_free(&g);
}

static void the_trace_prints(void **state) {
  (void)state;
  fused f = fuse_text(around, "priority", "cpu-generic");
  lw_buf b = {0};
  lw_trace_print(&b, f.trace);
  assert_non_null(strstr(lw_buf_cstr(&b), "producer"));
  assert_non_null(strstr(lw_buf_cstr(&b), "cycle"));
  const lw_decision *d = lw_trace_find(f.trace, "x", "d");
  assert_non_null(d);
  assert_false(d->yes);
  assert_string_equal(d->flip[0] ? "given" : "", "given");
  lw_buf_free(&b);
  fused_free(&f);
}

/* XLA's own decisions (reference 6.2): a matrix-vector dot takes its add. */
static void xla_fuses_into_a_vector_dot(void **state) {
  (void)state;
  static const char text[] =
      "ENTRY e { p = f32[50] parameter(0) q = f32[50,19] parameter(1) "
      "r = f32[19] parameter(2) d = f32[19] dot(p, q), "
      "lhs_contracting_dims={0}, rhs_contracting_dims={0} "
      "ROOT s = f32[19] add(d, r) }";
  fused f = fuse_text(text, "fusion", "cpu-generic");
  const lw_inst *root = f.m->entry->root;
  assert_int_equal(root->opcode, LW_OP_FUSION);
  assert_int_equal(lw_inst_i64(root, LW_ATTR_KIND, -1), LW_FUSION_OUTPUT);
  assert_string_equal(root->name, "dot_add_fusion");
  assert_same_bits(text, &f);
  fused_free(&f);
}

static void a_shared_add_is_computed_once_a_reader(void **state) {
  (void)state;
  static const char text[] =
      "ENTRY e { p = f32[8] parameter(0) q = f32[8] parameter(1) "
      "x = f32[8] add(p, q) a = f32[4] slice(x), slice={[0:4]} "
      "b = f32[4] slice(x), slice={[4:8]} ROOT r = f32[4] add(a, b) }";
  fused f = fuse_text(text, "fusion", "cpu-generic");
  assert_int_equal(f.report.kernels, 1);
  assert_int_equal(f.report.fused_ops, 4);
  assert_same_bits(text, &f);
  fused_free(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_row_goes_through_softmax_at_once),
      cmocka_unit_test(nothing_is_left_alone),
      cmocka_unit_test(cheap_producers_are_duplicated),
      cmocka_unit_test(siblings_share_a_kernel),
      cmocka_unit_test(a_value_is_output_and_reduced_at_once),
      cmocka_unit_test(no_kernel_waits_for_itself),
      cmocka_unit_test(updates_take_their_window),
      cmocka_unit_test(loops_are_fused_inside),
      cmocka_unit_test(runs_give_the_same_bytes),
      cmocka_unit_test(the_trace_prints),
      cmocka_unit_test(xla_fuses_into_a_vector_dot),
      cmocka_unit_test(a_shared_add_is_computed_once_a_reader),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
