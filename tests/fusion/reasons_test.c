/* Every reason code is given by some program. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "fusion_unit.h"

typedef struct {
  const char *code, *passes, *text;
} reason_case;

#define ADD_COMP                                                               \
  "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, " \
  "b) }\n"

static const reason_case cases[] = {
    {"fusible", "priority-fusion",
     "ENTRY e { p = f32[8] parameter(0) n = f32[8] negate(p) "
     "ROOT a = f32[8] abs(n) }"},
    {"saves-time", "priority-fusion",
     "ENTRY e { p = f32[8] parameter(0) n = f32[8] negate(p) "
     "ROOT a = f32[8] abs(n) }"},
    {"saves-memory", "instruction-fusion",
     "ENTRY e { p = s32[] parameter(0) a = s32[] add(p, p) "
     "n = s32[] negate(a) ROOT t = (s32[], s32[]) tuple(a, n) }"},
    {"rule-allows", "fusion",
     "ENTRY e { p = f32[8] parameter(0) n = f32[8] negate(p) "
     "ROOT a = f32[8] abs(n) }"},
    {"producer-is-root", "fusion",
     "ENTRY e { p = f32[8] parameter(0) ROOT a = f32[8] abs(p) "
     "n = f32[8] negate(a) }"},
    {"producer-kind", "fusion",
     "ENTRY e { p = f32[19,50] parameter(0) q = f32[50,19] parameter(1) "
     "d = f32[19,19] dot(p, q), lhs_contracting_dims={1}, "
     "rhs_contracting_dims={0} ROOT a = f32[19,19] negate(d) }"},
    {"consumer-kind", "priority-fusion",
     "ENTRY e { p = f32[8] parameter(0) n = f32[8] negate(p) "
     "ROOT a = (f32[8]) tuple(n) }"},
    {"side-effect", "priority-fusion",
     "ENTRY e { p = f32[8] parameter(0) n = f32[8] negate(p) "
     "ROOT a = f32[8] custom-call(n), custom_call_target=\"x\", "
     "custom_call_has_side_effect=true }"},
    {"control-edge", "priority-fusion",
     "ENTRY e { p = f32[8] parameter(0) n = f32[8] negate(p) "
     "m = f32[8] abs(p), control-predecessors={n} "
     "ROOT a = f32[8] add(n, m) }"},
    {"dynamic-shape", "priority-fusion",
     "ENTRY e { p = f32[<=8] parameter(0) n = f32[<=8] negate(p) "
     "ROOT a = f32[<=8] abs(n) }"},
    {"skipped-computation", "fusion",
     "body { p = f32[8] parameter(0) ROOT n = f32[8] negate(p) }\n"
     "ENTRY e { p = f32[8] parameter(0) n = f32[8] negate(p) "
     "ROOT a = f32[8] fusion(n), kind=kCustom, calls=body }"},
    {"large-constant", "fusion",
     "ENTRY e { p = f32[2] parameter(0) c = f32[2] constant({1, 2}) "
     "ROOT a = f32[2] add(p, c) }"},
    {"lone-constant", "fusion",
     "ENTRY e { c = f32[] constant(1) "
     "ROOT a = f32[8] broadcast(c), dimensions={} }"},
    {"producer-is-fusion", "fusion",
     "body { p = f32[8] parameter(0) ROOT n = f32[8] negate(p) }\n"
     "ENTRY e { p = f32[8] parameter(0) "
     "f = f32[8] fusion(p), kind=kLoop, calls=body "
     "ROOT a = f32[8] abs(f) }"},
    {"output-fusion-first", "fusion",
     "ENTRY e { p = f32[50] parameter(0) q = f32[50,19] parameter(1) "
     "r = f32[19] parameter(2) d = f32[19] dot(p, q), "
     "lhs_contracting_dims={0}, rhs_contracting_dims={0} "
     "s = f32[19] add(d, r) ROOT a = f32[19] negate(s) }"},
    {"concat-shape", "fusion",
     "ENTRY e { p = f32[4,64] parameter(0) n = f32[4,64] negate(p) "
     "ROOT a = f32[4,128] concatenate(n, p), dimensions={1} }"},
    {"reduce-count", "fusion",
     ADD_COMP "ENTRY e { p = f32[8,4] parameter(0) z = f32[] constant(0) "
              "a = f32[8] reduce(p, z), dimensions={1}, to_apply=add "
              "b = f32[8] reduce(p, z), dimensions={1}, to_apply=add "
              "c = f32[8] reduce(p, z), dimensions={1}, to_apply=add "
              "d = f32[8] reduce(p, z), dimensions={1}, to_apply=add "
              "f = f32[8] reduce(p, z), dimensions={1}, to_apply=add "
              "g = f32[8] reduce(p, z), dimensions={1}, to_apply=add "
              "h = f32[8] reduce(p, z), dimensions={1}, to_apply=add "
              "i = f32[8] reduce(p, z), dimensions={1}, to_apply=add "
              "s = f32[8] add(a, b) t = f32[8] add(s, c) u = f32[8] add(t, d) "
              "v = f32[8] add(u, f) w = f32[8] add(v, g) x = f32[8] add(w, h) "
              "ROOT y = f32[8] add(x, i) }"},
    {"in-place-conflict", "fusion",
     "ENTRY e { p = f32[8] parameter(0) c = s32[] constant(1) "
     "o = f32[] constant(1) b = f32[7] broadcast(o), dimensions={} "
     "s = f32[7] slice(p), slice={[0:7]} t = f32[7] add(s, b) "
     "ROOT u = f32[8] dynamic-update-slice(p, t, c) }"},
    {"reduce-read-moved", "priority-fusion",
     ADD_COMP "ENTRY e { p = f32[512,512] parameter(0) z = f32[] constant(0) "
              "r = f32[512] reduce(p, z), dimensions={0}, to_apply=add "
              "b = f32[512,512] broadcast(r), dimensions={1} "
              "ROOT s = f32[512,512] subtract(p, b) }"},
    {"spaces-differ", "multi-output-fusion",
     "ENTRY e { p = f32[64,64] parameter(0) x = f32[64,64] tanh(p) "
     "t = f32[64,64] transpose(x), dimensions={1,0} "
     "ROOT r = (f32[64,64], f32[64,64]) tuple(x, t) }"},
    {"cycle", "multi-output-fusion",
     "ENTRY e { p = f32[64,64] parameter(0) x = f32[64,64] tanh(p) "
     "d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, "
     "rhs_contracting_dims={0} ROOT r = f32[64,64] add(x, d) }"},
    {"code-duplication", "fusion",
     "ENTRY e { p = f32[8] parameter(0) z = f32[] constant(0) "
     "x = f32[10] pad(p, z), padding=1_1 a = f32[9] slice(x), slice={[0:9]} "
     "b = f32[9] slice(x), slice={[1:10]} ROOT r = f32[9] add(a, b) }"},
    {"kernel-phases", "priority-fusion",
     "ENTRY e { p = f32[64,64] parameter(0) d = f32[64,64] dot(p, p), "
     "lhs_contracting_dims={1}, rhs_contracting_dims={0} "
     "ROOT a = f32[64,64] negate(d) }"},
    {"expensive-reused", "fusion",
     "ENTRY e { p = f32[8] parameter(0) x = f32[8] exponential(p) "
     "ROOT b = f32[8,4] broadcast(x), dimensions={0} }"},
    {"expensive-duplicated", "fusion",
     "ENTRY e { p = f32[8] parameter(0) x = f32[8] exponential(p) "
     "n = f32[8] negate(x) a = f32[8] abs(x) "
     "ROOT t = (f32[8], f32[8]) tuple(n, a) }"},
    {"wide-duplicated", "fusion",
     "ENTRY e { p = f32[8,8] parameter(0) q = f32[8,8] parameter(1) "
     "x = f32[8,8] add(p, q) n = f32[8,8] negate(x) "
     "d = f32[8,8] dot(x, x), lhs_contracting_dims={1}, "
     "rhs_contracting_dims={0} ROOT t = (f32[8,8], f32[8,8]) tuple(n, d) }"},
    {"recompute-loses", "priority-fusion",
     "ENTRY e { p = f32[65536] parameter(0) x = f32[65536] tanh(p) "
     "y = f32[65536] sine(x) z = f32[65536] power(y, y) "
     "n = f32[65536] negate(z) a = f32[65536] abs(z) "
     "ROOT t = (f32[65536], f32[65536]) tuple(n, a) }"},
    {"saves-nothing", "priority-fusion",
     "ENTRY e { p = f32[64,64] parameter(0) x = f32[64,64] negate(p) "
     "b = f32[4096] bitcast(x) ROOT t = (f32[4096]) tuple(b) }"},
};

enum { N_CASES = sizeof cases / sizeof *cases };

static void each_reason_is_given(void **state) {
  (void)state;
  int wrong = 0;
  for (int k = 0; k < N_CASES; k++) {
    fused f = fuse_text(cases[k].text, cases[k].passes, "cpu-generic");
    if (!has_reason(f.trace, cases[k].code)) {
      print_error("%s is not given\n", cases[k].code);
      wrong++;
    }
    fused_free(&f);
  }
  assert_int_equal(wrong, 0);
}

/* 300 operands and one operation each. */
static void large_kernels_are_refused(void **state) {
  (void)state;
  lw_buf b = {0};
  lw_buf_str(&b, "ENTRY e {\n");
  for (int k = 0; k < 300; k++)
    lw_buf_printf(&b, "p%d = f32[64] parameter(%d)\n", k, k);
  lw_buf_str(&b, "a0 = f32[64] negate(p0)\n");
  for (int k = 1; k < 300; k++)
    lw_buf_printf(&b, "%sa%d = f32[64] add(a%d, p%d)\n",
                  k == 299 ? "ROOT " : "", k, k - 1, k);
  lw_buf_str(&b, "}\n");
  fused f = fuse_text(lw_buf_cstr(&b), "priority-fusion", "cpu-generic");
  assert_true(has_reason(f.trace, "kernel-too-large"));
  fused_free(&f);
  lw_buf_free(&b);
}

static lw_fusible refuse_all(const lw_inst *p, const lw_inst *c,
                             const lw_target *t) {
  (void)p;
  (void)c;
  (void)t;
  return (lw_fusible){false, LW_REASON_TARGET_REFUSES};
}

static void a_backend_may_refuse(void **state) {
  (void)state;
  lw_backend own = {"cpu", "says no", refuse_all};
  lw_backend usual = *lw_backend_find("cpu");
  assert_true(lw_backend_register(&own));
  fused f = fuse_text(cases[0].text, "priority-fusion", "cpu-generic");
  assert_true(lw_backend_register(&usual));
  assert_true(has_reason(f.trace, "target-refuses"));
  assert_int_equal(f.report.fusions, 0);
  fused_free(&f);
}

static const char chain[] =
    "ENTRY e { p = f32[8] parameter(0) n = f32[8] negate(p) "
    "ROOT a = f32[8] abs(n) }";
static const char twice[] = /* refused by both strategies' profitability */
    "ENTRY e { p = f32[65536] parameter(0) x = f32[65536] tanh(p) "
    "y = f32[65536] sine(x) z = f32[65536] power(y, y) "
    "n = f32[65536] negate(z) a = f32[65536] abs(z) "
    "ROOT t = (f32[65536], f32[65536]) tuple(n, a) }";

static const char *const deciding[] = {"fusion", "priority-fusion"};

static bool has_record(const lw_trace *t, const char *producer, lw_reason r) {
  for (size_t k = 0; k < lw_trace_count(t); k++)
    if (!strcmp(lw_trace_at(t, k)->producer, producer) &&
        lw_trace_at(t, k)->reason == r)
      return true;
  return false;
}

/* The user's word turns a profitability verdict, and the record says so. */
static void edges_are_forbidden_and_forced(void **state) {
  (void)state;
  for (int k = 0; k < 2; k++) {
    fused f = fuse_edges(chain, deciding[k], "cpu-generic", NULL, "n,a");
    assert_true(has_record(f.trace, "n", LW_REASON_FORBIDDEN));
    assert_int_equal(f.report.fusions, 0);
    assert_null(lw_overrides_status(&f.overrides, f.trace));
    fused_free(&f);
    f = fuse_edges(twice, deciding[k], "cpu-generic", "z,n", NULL);
    assert_true(has_record(f.trace, "z", LW_REASON_FORCED));
    assert_null(lw_overrides_status(&f.overrides, f.trace));
    assert_same_bits(twice, &f);
    fused_free(&f);
  }
}

/* Names from before fusing reach an edge whose ends are fusions by now. */
static void edges_keep_their_names(void **state) {
  (void)state;
  static const char text[] =
      "ENTRY e { p = f32[8] parameter(0) n = f32[8] negate(p) "
      "a = f32[8] abs(n) ROOT f = f32[8] floor(a) }";
  fused f = fuse_edges(text, "fusion", "cpu-generic", NULL, "n,a");
  assert_null(lw_overrides_status(&f.overrides, f.trace));
  const lw_decision *d = lw_trace_find(f.trace, "n", "abs_floor_fusion");
  assert_non_null(d);
  assert_int_equal(d->reason, LW_REASON_FORBIDDEN);
  assert_string_equal(d->value, "n");
  assert_string_equal(d->reader, "a");
  fused_free(&f);
}

/* Legality is not overridden, and the message names the reason. */
static void legality_stands(void **state) {
  (void)state;
  static const char text[] =
      "ENTRY e { p = f32[64,64] parameter(0) d = f32[64,64] dot(p, p), "
      "lhs_contracting_dims={1}, rhs_contracting_dims={0} "
      "ROOT a = f32[64,64] negate(d) }";
  for (int k = 0; k < 2; k++) {
    fused f = fuse_edges(text, deciding[k], "cpu-generic", "d,a", NULL);
    lw_status st = lw_overrides_status(&f.overrides, f.trace);
    const lw_decision *d = lw_trace_find(f.trace, "d", "a");
    assert_int_equal(lw_status_code(st), LW_PERMISSION_DENIED);
    assert_non_null(
        strstr(lw_status_message(st), lw_reason_table[d->reason].code));
    assert_int_equal(f.report.fusions, 0);
    lw_status_free(st);
    fused_free(&f);
  }
}

static void unknown_edges_are_named(void **state) {
  (void)state;
  static const char text[] =
      "ENTRY e { p = f32[8] parameter(0) scaled = f32[8] negate(p) "
      "ROOT a = f32[8] abs(scaled) }";
  fused f = fuse_edges(text, "priority-fusion", "cpu-generic", NULL, "scale,a");
  lw_status st = lw_overrides_status(&f.overrides, f.trace);
  assert_int_equal(lw_status_code(st), LW_NOT_FOUND);
  assert_non_null(strstr(lw_status_message(st), "did you mean scaled"));
  lw_status_free(st);
  st = lw_overrides_add(&f.overrides, "a", true);
  assert_int_equal(lw_status_code(st), LW_INVALID_ARGUMENT);
  lw_status_free(st);
  st = lw_overrides_add(&f.overrides, "%scale,%a", true); /* forbidden above */
  assert_int_equal(lw_status_code(st), LW_INVALID_ARGUMENT);
  lw_status_free(st);
  fused_free(&f);
}

/* Applies the option that a profitability record names for a flip. */
static void turn(const reason_case *c, const lw_decision *d) {
  const char *at = strstr(d->flip, d->yes ? "--forbid-edge=" : "--force-edge=");
  assert_non_null(at);
  const char *edge = strchr(at, '=') + 1;
  fused f = fuse_edges(c->text, c->passes, "cpu-generic", d->yes ? NULL : edge,
                       d->yes ? edge : NULL);
  bool turned = has_record(f.trace, d->producer,
                           d->yes ? LW_REASON_FORBIDDEN : LW_REASON_FORCED);
  if (!turned) print_error("%s: %s does not turn it\n", c->code, d->flip);
  assert_true(turned);
  assert_same_bits(c->text, &f);
  fused_free(&f);
}

static void flips_turn_verdicts(void **state) {
  (void)state;
  int turned = 0;
  for (int k = 0; k < N_CASES; k++) {
    fused f = fuse_text(cases[k].text, cases[k].passes, "cpu-generic");
    for (size_t i = 0; i < lw_trace_count(f.trace); i++) {
      const lw_decision *d = lw_trace_at(f.trace, i);
      if (d->gate != LW_GATE_PROFITABILITY) continue;
      turn(&cases[k], d);
      turned++;
    }
    fused_free(&f);
  }
  assert_true(turned >= 20);
}

/* Of the codes in reasons.def, those above and the built ones are all. */
static void no_code_is_left_out(void **state) {
  (void)state;
  for (int r = 0; r < LW_REASON_COUNT; r++) {
    const char *code = lw_reason_table[r].code;
    bool found = !strcmp(code, "kernel-too-large") ||
                 !strcmp(code, "target-refuses") || !strcmp(code, "forced") ||
                 !strcmp(code, "forbidden");
    for (int k = 0; k < N_CASES; k++) found |= !strcmp(code, cases[k].code);
    if (!found) print_error("no test for %s\n", code);
    assert_true(found);
  }
}

/* The profitability gate is never asked after a no of the fusibility gate. */
static void gates_are_asked_in_order(void **state) {
  (void)state;
  for (int k = 0; k < N_CASES; k++) {
    fused f = fuse_text(cases[k].text, cases[k].passes, "cpu-generic");
    for (size_t i = 0; i < lw_trace_count(f.trace); i++) {
      const lw_decision *d = lw_trace_at(f.trace, i);
      assert_int_equal(d->seq, i);
      if (d->gate != LW_GATE_PROFITABILITY) continue;
      assert_true(i > 0);
      const lw_decision *before = lw_trace_at(f.trace, i - 1);
      assert_string_equal(before->producer, d->producer);
      assert_int_equal(before->gate, LW_GATE_FUSIBILITY);
      assert_true(before->yes);
    }
    fused_free(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_reason_is_given),
      cmocka_unit_test(large_kernels_are_refused),
      cmocka_unit_test(a_backend_may_refuse),
      cmocka_unit_test(edges_are_forbidden_and_forced),
      cmocka_unit_test(edges_keep_their_names),
      cmocka_unit_test(legality_stands),
      cmocka_unit_test(unknown_edges_are_named),
      cmocka_unit_test(flips_turn_verdicts),
      cmocka_unit_test(no_code_is_left_out),
      cmocka_unit_test(gates_are_asked_in_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
