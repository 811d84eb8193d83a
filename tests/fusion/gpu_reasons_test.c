/* The reason codes that a GPU target gives: each by some program, each named
 * flip applied, and the profitability gate asked of legal edges alone. And how
 * often anybody is asked: the work of deciding is counted here, where times
 * would tell of the machine. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "fusion/gpu_queue.h"
#include "fusion_unit.h"
#include "reader/reader.h"

#define PRIORITY "gpu-priority-fusion"
#define OUTPUTS "gpu-priority-fusion,gpu-multi-output-fusion"
#define ADD_COMP                                                               \
  "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, " \
  "b) }\n"

typedef struct {
  const char *code, *passes, *text;
} reason_case;

static const reason_case cases[] = {
    {"saves-time", PRIORITY,
     "ENTRY e { p = f32[1024] parameter(0) n = f32[1024] negate(p) "
     "ROOT a = f32[1024] abs(n) }"},
    {"rule-allows", PRIORITY,
     "ENTRY e { p = f32[1024] parameter(0) n = f32[1024] negate(p) "
     "a = f32[1024] abs(n) ROOT b = f32[1024] floor(a) }"},
    {"rule-allows", PRIORITY, /* a bitcast and a constant, by rule alone */
     "ENTRY e { p = f32[32,32] parameter(0) b = f32[1024] bitcast(p) "
     "c = f32[] constant(2) d = f32[1024] broadcast(c), dimensions={} "
     "ROOT a = f32[1024] multiply(b, d) }"},
    {"producer-is-root", PRIORITY,
     "ENTRY e { p = f32[8] parameter(0) ROOT a = f32[8] abs(p) "
     "n = f32[8] negate(a) }"},
    {"producer-kind", PRIORITY,
     "ENTRY e { p = f32[64,64] parameter(0) d = f32[64,64] dot(p, p), "
     "lhs_contracting_dims={1}, rhs_contracting_dims={0} "
     "ROOT a = f32[64,64] negate(d) }"},
    {"consumer-kind", PRIORITY,
     "ENTRY e { p = f32[64,64] parameter(0) n = f32[64,64] negate(p) "
     "ROOT d = f32[64,64] dot(n, p), lhs_contracting_dims={1}, "
     "rhs_contracting_dims={0} }"},
    {"in-place-conflict", PRIORITY,
     "ENTRY e { p = f32[8] parameter(0) c = s32[] constant(1) "
     "o = f32[] constant(1) b = f32[7] broadcast(o), dimensions={} "
     "s = f32[7] slice(p), slice={[0:7]} t = f32[7] add(s, b) "
     "ROOT u = f32[8] dynamic-update-slice(p, t, c) }"},
    {"reduce-count", PRIORITY,
     ADD_COMP "ENTRY e { p = f32[64,64,64] parameter(0) z = f32[] constant(0) "
              "r = f32[64,64] reduce(p, z), dimensions={2}, to_apply=add "
              "ROOT s = f32[64] reduce(r, z), dimensions={1}, to_apply=add }"},
    {"kernel-phases", PRIORITY,
     ADD_COMP "ENTRY e { p = f32[512,512] parameter(0) z = f32[] constant(0) "
              "r = f32[512] reduce(p, z), dimensions={1}, to_apply=add "
              "b = f32[512,512] broadcast(r), dimensions={0} "
              "ROOT s = f32[512,512] subtract(p, b) }"},
    {"recompute-loses", PRIORITY,
     "ENTRY e { p = f32[1024] parameter(0) x = f32[1024] power(p, p) "
     "y = f32[1024] power(x, p) z = f32[1024] power(y, p) "
     "ROOT b = f32[4096,1024] broadcast(z), dimensions={1} }"},
    {"cycle", OUTPUTS,
     ADD_COMP "ENTRY e { p = f32[512,512] parameter(0) z = f32[] constant(0) "
              "n = f32[512,512] negate(p) "
              "r = f32[512] reduce(n, z), dimensions={1}, to_apply=add "
              "b = f32[512,512] broadcast(r), dimensions={0} "
              "s = f32[512,512] subtract(p, b) "
              "ROOT t = (f32[512,512]) tuple(s) }"},
    {"spaces-differ", OUTPUTS,
     ADD_COMP "ENTRY e { p = f32[512,512] parameter(0) z = f32[] constant(0) "
              "r = f32[512] reduce(p, z), dimensions={1}, to_apply=add "
              "c = f32[512] reduce(p, z), dimensions={0}, to_apply=add "
              "x = f32[512] negate(r) y = f32[512] negate(c) "
              "ROOT t = (f32[512], f32[512]) tuple(x, y) }"},
    {"rule-allows", OUTPUTS, /* siblings */
     ADD_COMP "ENTRY e { p = f32[512,512] parameter(0) z = f32[] constant(0) "
              "n = f32[512,512] negate(p) a = f32[512,512] abs(p) "
              "r = f32[512] reduce(n, z), dimensions={1}, to_apply=add "
              "c = f32[512] reduce(a, z), dimensions={1}, to_apply=add "
              "ROOT t = (f32[512], f32[512]) tuple(r, c) }"},
    {"saves-time", OUTPUTS, /* a result that its reader writes as well */
     "ENTRY e { p = f32[512,512] parameter(0) x = f32[512,512] tanh(p) "
     "y = f32[512,512] negate(x) "
     "ROOT t = (f32[512,512], f32[512,512]) tuple(x, y) }"},
};

enum { N_CASES = sizeof cases / sizeof *cases };

static fused fuse_gpu(const reason_case *c) {
  return fuse_text(c->text, c->passes, "h100");
}

static void each_reason_is_given(void **state) {
  (void)state;
  int wrong = 0;
  for (int k = 0; k < N_CASES; k++) {
    fused f = fuse_gpu(&cases[k]);
    if (!has_reason(f.trace, cases[k].code)) {
      print_error("%d: %s is not given\n", k, cases[k].code);
      wrong++;
    }
    assert_same_bits(cases[k].text, &f);
    fused_free(&f);
  }
  assert_int_equal(wrong, 0);
}

/* ---- programs that are too long to write down ---- */

static void expect_reason(lw_buf *b, const char *code) {
  fused f = fuse_text(lw_buf_cstr(b), PRIORITY, "h100");
  assert_true(has_reason(f.trace, code));
  fused_free(&f);
  lw_buf_free(b);
}

/* A kernel takes 96 operands and results. */
static void many_operands_are_refused(void **state) {
  (void)state;
  lw_buf b = {0};
  lw_buf_str(&b, "ENTRY e {\n");
  for (int k = 0; k < 120; k++)
    lw_buf_printf(&b, "p%d = f32[64] parameter(%d)\n", k, k);
  lw_buf_str(&b, "a0 = f32[64] negate(p0)\n");
  for (int k = 1; k < 120; k++)
    lw_buf_printf(&b, "%sa%d = f32[64] add(a%d, p%d)\n",
                  k == 119 ? "ROOT " : "", k, k - 1, k);
  lw_buf_str(&b, "}\n");
  expect_reason(&b, "kernel-too-large");
}

/* Two windows of each value: the code doubles with each step. */
static void doubling_is_refused(void **state) {
  (void)state;
  lw_buf b = {0};
  lw_buf_str(&b, "ENTRY e {\nv0 = f32[64] parameter(0)\n");
  for (int k = 0; k < 20; k++) {
    int n = 64 - k;
    lw_buf_printf(&b,
                  "l%d = f32[%d] slice(v%d), slice={[0:%d]}\n"
                  "h%d = f32[%d] slice(v%d), slice={[1:%d]}\n"
                  "%sv%d = f32[%d] add(l%d, h%d)\n",
                  k, n - 1, k, n - 1, k, n - 1, k, n, k == 19 ? "ROOT " : "",
                  k + 1, n - 1, k, k);
  }
  lw_buf_str(&b, "}\n");
  expect_reason(&b, "code-duplication");
}

/* ---- flips ---- */

static bool has_record(const lw_trace *t, const char *producer, lw_reason r) {
  for (size_t k = 0; k < lw_trace_count(t); k++)
    if (!strcmp(lw_trace_at(t, k)->producer, producer) &&
        lw_trace_at(t, k)->reason == r)
      return true;
  return false;
}

/* Applies the option that a profitability record names, and looks for the
 * verdict that it asks for. */
static bool turns(const reason_case *c, const lw_decision *d) {
  const char *at = strstr(d->flip, d->yes ? "--forbid-edge=" : "--force-edge=");
  if (!at) return false;
  const char *edge = strchr(at, '=') + 1;
  fused f = fuse_edges(c->text, c->passes, "h100", d->yes ? NULL : edge,
                       d->yes ? edge : NULL);
  bool turned = has_record(f.trace, d->producer,
                           d->yes ? LW_REASON_FORBIDDEN : LW_REASON_FORCED);
  lw_status st = lw_overrides_status(&f.overrides, f.trace);
  if (st) print_error("%s\n", lw_status_message(st));
  turned &= st == NULL;
  lw_status_free(st);
  assert_same_bits(c->text, &f);
  fused_free(&f);
  return turned;
}

static void flips_turn_verdicts(void **state) {
  (void)state;
  int turned = 0, wrong = 0;
  for (int k = 0; k < N_CASES; k++) {
    fused f = fuse_gpu(&cases[k]);
    for (size_t i = 0; i < lw_trace_count(f.trace); i++) {
      const lw_decision *d = lw_trace_at(f.trace, i);
      if (d->gate != LW_GATE_PROFITABILITY) {
        assert_string_equal(d->flip, "nothing: rule");
        continue;
      }
      if (turns(&cases[k], d)) {
        turned++;
        continue;
      }
      wrong++;
      print_error("%d: %s > %s (%s): %s does not turn it\n", k, d->producer,
                  d->consumer, lw_reason_table[d->reason].code, d->flip);
    }
    fused_free(&f);
  }
  assert_int_equal(wrong, 0);
  assert_true(turned >= 15);
}

/* Forcing what the gate calls a loss makes the fusion. */
static void forced_edges_are_fused(void **state) {
  (void)state;
  const reason_case *c = NULL;
  for (int k = 0; k < N_CASES; k++)
    if (!strcmp(cases[k].code, "recompute-loses")) c = &cases[k];
  fused f = fuse_gpu(c);
  const lw_decision *lost = NULL;
  for (size_t k = 0; k < lw_trace_count(f.trace); k++)
    if (lw_trace_at(f.trace, k)->reason == LW_REASON_RECOMPUTE_LOSES)
      lost = lw_trace_at(f.trace, k);
  assert_non_null(lost);
  int kernels = (int)f.report.kernels;
  const char *edge = strchr(strstr(lost->flip, "--force-edge="), '=') + 1;
  fused g = fuse_edges(c->text, c->passes, "h100", edge, NULL);
  assert_true(g.report.kernels < kernels);
  assert_same_bits(c->text, &g);
  fused_free(&g);
  fused_free(&f);
}

/* Legality is not overridden, and the message names the reason. */
static void legality_stands(void **state) {
  (void)state;
  fused f = fuse_edges(
      "ENTRY e { p = f32[64,64] parameter(0) d = f32[64,64] dot(p, p), "
      "lhs_contracting_dims={1}, rhs_contracting_dims={0} "
      "ROOT a = f32[64,64] negate(d) }",
      PRIORITY, "h100", "d,a", NULL);
  lw_status st = lw_overrides_status(&f.overrides, f.trace);
  assert_int_equal(lw_status_code(st), LW_PERMISSION_DENIED);
  assert_non_null(strstr(lw_status_message(st), "producer-kind"));
  lw_status_free(st);
  fused_free(&f);
}

/* Names from before fusing reach an edge whose ends are fusions by now. */
static void edges_keep_their_names(void **state) {
  (void)state;
  const char *text =
      "ENTRY e { p = f32[1024] parameter(0) n = f32[1024] negate(p) "
      "a = f32[1024] abs(n) b = f32[1024] floor(a) "
      "ROOT c = f32[1024] ceil(b) }";
  fused f = fuse_edges(text, PRIORITY, "h100", NULL, "n,a");
  assert_null(lw_overrides_status(&f.overrides, f.trace));
  assert_true(has_record(f.trace, "n", LW_REASON_FORBIDDEN));
  assert_int_equal(f.report.kernels, 2);
  for (size_t k = 0; k < lw_trace_count(f.trace); k++) {
    const lw_decision *d = lw_trace_at(f.trace, k);
    assert_null(strstr(d->value, "fusion"));
    assert_null(strstr(d->reader, "fusion"));
  }
  fused_free(&f);
}

/* ---- who is asked what ---- */

typedef struct {
  lw_gpu_model *model;
  lw_map verdicts; /* edge -> 1: yes, 2: no */
  int asked, early, questions;
  int64_t walked;
} witness;

static uint64_t edge_key(const lw_inst *producer, const lw_inst *consumer) {
  return (uint64_t)producer->id << 32 | (uint32_t)consumer->id;
}

static gpu_refusal can_fuse(void *state, const lw_inst *producer,
                            const lw_inst *consumer) {
  witness *w = state;
  w->questions++;
  lw_arena *a = lw_arena_new();
  gpu_refusal r = gpu_can_fuse(w->model, producer, consumer, a);
  *lw_map_put(&w->verdicts, edge_key(producer, consumer)) = r.text ? 2 : 1;
  lw_arena_free(a);
  return r;
}

static lw_ticks exec(void *state, const lw_inst *i) {
  ((witness *)state)->questions++;
  return lw_gpu_exec(((witness *)state)->model, i);
}

static lw_ticks exec_fused(void *state, const lw_inst *producer,
                           const lw_inst *consumer) {
  witness *w = state;
  const uint64_t *v = lw_map_get(&w->verdicts, edge_key(producer, consumer));
  w->asked++;
  w->questions++;
  /* A bitcast that reads the producer takes no copy, and is no obstacle. */
  if (!gpu_is_fusible_bitcast(consumer)) w->early += !v || *v != 1;
  return lw_gpu_exec_fused(w->model, producer, consumer);
}

static lw_fusion_kind kind(void *state, const lw_inst *producer,
                           const lw_inst *consumer) {
  lw_arena *a = lw_arena_new();
  lw_gpu_kernel k =
      lw_gpu_kernel_of(((witness *)state)->model, producer, consumer, a);
  lw_arena_free(a);
  return gpu_kind_of(k.emitter);
}

static void took(void *state, const lw_inst *fusion, const lw_inst *producer,
                 const lw_inst *consumer) {
  lw_gpu_model_took(((witness *)state)->model, fusion, producer, consumer);
}

static void removed(void *state, const lw_inst *i) {
  lw_gpu_model_remove(((witness *)state)->model, i);
}

static void watch(const char *text, witness *w) {
  lw_context *ctx = lw_context_new();
  lw_module *m;
  lw_target *t;
  lw_gpu_device d;
  assert_null(lw_read_text(ctx, text, strlen(text), "test", NULL, &m));
  assert_null(lw_target_load("h100", &t));
  assert_null(lw_gpu_device_of(t, &d));
  lw_arena *a = lw_arena_new();
  lw_pass_env env = {.scratch = a, .target = t, .fuel = -1};
  w->model = lw_gpu_model_new(m->entry, &d);
  gpu_oracle o = {w, can_fuse, exec, exec_fused, kind, took, removed};
  gpu_queue_run(m->entry, &env, &o);
  w->walked = lw_gpu_model_walked(w->model);
  lw_gpu_model_free(w->model);
  lw_map_free(&w->verdicts);
  lw_arena_free(a);
  lw_target_free(t);
  lw_module_free(m);
  lw_context_free(ctx);
}

/* The cost model is never asked about an edge that the rules refused. */
static void gates_are_asked_in_order(void **state) {
  (void)state;
  int asked = 0;
  for (int k = 0; k < N_CASES; k++) {
    witness w = {0};
    watch(cases[k].text, &w);
    assert_int_equal(w.early, 0);
    asked += w.asked;
  }
  assert_true(asked > 10);
}

/* ---- how often ---- */

typedef enum { CHAIN, STEPS, DIAMONDS, WIDE, N_SHAPES } graph_shape;

#define T "f32[1024,64]"

static const char *const unary[] = {"negate", "abs", "floor", "tanh"};

/* One value, n readers, added up one after another. */
static void print_wide(lw_buf *b, int n) {
  lw_buf_printf(b, "v0 = " T " negate(p)\nw0 = " T " abs(v0)\n");
  for (int k = 1; k < n / 2; k++)
    lw_buf_printf(b, "r%d = " T " %s(v0)\n%sw%d = " T " add(w%d, r%d)\n", k,
                  unary[k % 4], k + 1 == n / 2 ? "ROOT " : "", k, k - 1, k);
}

static void print_graph(lw_buf *b, graph_shape shape, int n) {
  lw_buf_printf(b, "ENTRY e {\np = " T " parameter(0)\n");
  if (shape == WIDE) {
    print_wide(b, n);
    lw_buf_str(b, "}\n");
    return;
  }
  lw_buf_printf(b, "v0 = " T " negate(p)\n");
  int last = shape == DIAMONDS ? n / 3 : n;
  for (int k = 1; k < last; k++) {
    const char *root = k + 1 == last ? "ROOT " : "";
    if (shape == CHAIN || (shape == STEPS && k % 2))
      lw_buf_printf(b, "%sv%d = " T " %s(v%d)\n", root, k, unary[k % 4], k - 1);
    else if (shape == STEPS)
      lw_buf_printf(b, "%sv%d = " T " add(v%d, p)\n", root, k, k - 1);
    else
      lw_buf_printf(b,
                    "a%d = " T " negate(v%d)\nb%d = " T
                    " abs(v%d)\n"
                    "%sv%d = " T " add(a%d, b%d)\n",
                    k, k - 1, k, k - 1, root, k, k, k);
  }
  lw_buf_str(b, "}\n");
}

static double gpu_questions(graph_shape shape, int n) {
  lw_buf b = {0};
  witness w = {0};
  print_graph(&b, shape, n);
  watch(lw_buf_cstr(&b), &w);
  lw_buf_free(&b);
  return (double)w.questions / n;
}

static double records(graph_shape shape, int n, const char *passes) {
  lw_buf b = {0};
  print_graph(&b, shape, n);
  fused f = fuse_text(lw_buf_cstr(&b), passes, "cpu-generic");
  double each = (double)lw_trace_count(f.trace) / n;
  fused_free(&f);
  lw_buf_free(&b);
  return each;
}

/* Questions to the rules and to the cost model, an instruction: the same in a
 * graph four times as large, which they would be four times as many in if each
 * fusion asked about everything again. */
static void questions_grow_with_edges(void **state) {
  (void)state;
  static const char *const cpu[] = {"fusion", "priority-fusion"};
  for (graph_shape s = 0; s < N_SHAPES; s++) {
    double few = gpu_questions(s, 300), many = gpu_questions(s, 1200);
    if (many >= 1.5 * few)
      print_error("shape %d: %.1f, then %.1f questions each\n", s, few, many);
    assert_true(few > 0 && many < 1.5 * few);
    for (int k = 0; k < 2; k++) {
      few = records(s, 300, cpu[k]);
      many = records(s, 1200, cpu[k]);
      if (many >= 1.5 * few)
        print_error("shape %d, %s: %.1f, then %.1f\n", s, cpu[k], few, many);
      assert_true(few > 0 && many < 1.5 * few);
    }
  }
}

/* Instructions inside kernels that are priced again when a kernel grows: far
 * fewer than when one kernel grew by one instruction at a time. */
static void bodies_are_seldom_walked(void **state) {
  (void)state;
  enum { N = 1200 };
  for (graph_shape s = 0; s < N_SHAPES; s++) {
    lw_buf b = {0};
    witness w = {0};
    print_graph(&b, s, N);
    watch(lw_buf_cstr(&b), &w);
    assert_true(w.walked > 0);
    assert_true(w.walked / N < N / 4);
    lw_buf_free(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_reason_is_given),
      cmocka_unit_test(many_operands_are_refused),
      cmocka_unit_test(doubling_is_refused),
      cmocka_unit_test(flips_turn_verdicts),
      cmocka_unit_test(forced_edges_are_fused),
      cmocka_unit_test(legality_stands),
      cmocka_unit_test(edges_keep_their_names),
      cmocka_unit_test(gates_are_asked_in_order),
      cmocka_unit_test(questions_grow_with_edges),
      cmocka_unit_test(bodies_are_seldom_walked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
