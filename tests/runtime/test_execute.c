/* Plan and runtime without a code generator: fusions are run by the reference
 * evaluator through hand-made phase functions, and the whole must give what
 * the evaluator gives for the whole module. */
#include <pthread.h>
#include <string.h>

#include "../plan/fake_kernel.h"
#include "../unit.h"
#include "driver/driver.h"
#include "interp/interp.h"
#include "reader/reader.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* ---- code for fake kernels ---- */

enum { MAX_KERNELS = 16 };
static const lw_kernel *kernels[MAX_KERNELS];
static _Atomic unsigned seen_mode;

static void copy_in(lw_literal *l, void *const *buffers, int32_t *n) {
  if (lw_shape_is_tuple(l->shape)) {
    for (int32_t k = 0; k < l->n_elems; k++) copy_in(l->elems[k], buffers, n);
  } else {
    memcpy(l->data, buffers[(*n)++], (size_t)lw_literal_bytes(l));
  }
}

static void copy_out(const lw_literal *l, void *const *buffers, int32_t *n) {
  if (lw_shape_is_tuple(l->shape)) {
    for (int32_t k = 0; k < l->n_elems; k++) copy_out(l->elems[k], buffers, n);
  } else {
    memcpy(buffers[(*n)++], l->data, (size_t)lw_literal_bytes(l));
  }
}

static void run_fake(int number, const lw_kernel_args *args) {
#if defined(__x86_64__)
  seen_mode = _mm_getcsr() & 0xffc0;
#endif
  const lw_inst *f = kernels[number]->inst;
  lw_arena *a = lw_arena_new();
  const lw_literal **ops = LW_NEW_ARRAY(a, const lw_literal *, f->n_operands);
  int32_t n = 0;
  for (int32_t k = 0; k < f->n_operands; k++) {
    lw_literal *l;
    assert_null(lw_literal_new(a, lw_inst_operand(f, k)->shape, &l));
    copy_in(l, args->buffers, &n);
    ops[k] = l;
  }
  lw_literal *out;
  lw_status st = lw_interp_eval_inst(f, ops, NULL, a, &out);
  if (st) fail_msg("%s", lw_status_message(st));
  copy_out(out, args->buffers, &n);
  lw_arena_free(a);
}

#define FAKE(n)                                                            \
  static void fake_##n(const lw_kernel_args *args, int64_t b, int64_t e) { \
    (void)b;                                                               \
    (void)e;                                                               \
    run_fake(n, args);                                                     \
  }
/* clang-format off */
FAKE(0) FAKE(1) FAKE(2) FAKE(3) FAKE(4) FAKE(5) FAKE(6) FAKE(7)
    /* clang-format on */
    static const lw_phase_fn fakes[] = {fake_0, fake_1, fake_2, fake_3,
                                        fake_4, fake_5, fake_6, fake_7};

/* ---- a module, both ways ---- */

typedef struct {
  lw_context *ctx;
  lw_module *m;
  lw_arena *a;
  lw_plan *p;
  lw_kernel_code code[MAX_KERNELS];
  lw_executable *e;
  lw_literal **args;
  int32_t n_args;
} fixture;

static void check_status(lw_status st) {
  if (st) fail_msg("%s", lw_status_message(st));
}

static void setup(fixture *f, const char *text, bool no_alias) {
  f->ctx = lw_context_new();
  f->a = lw_arena_new();
  check_status(lw_read_text(f->ctx, text, strlen(text), "test", NULL, &f->m));
  lw_plan_options o = {.no_alias = no_alias, .build_kernel = fake_kernel_build};
  check_status(lw_plan_build(f->a, f->m, &o, &f->p));
  check_status(lw_plan_check(f->p));
  assert_in_range(f->p->n_kernels, 0, 8);
  for (int32_t k = 0; k < f->p->n_kernels; k++) {
    kernels[k] = f->p->kernels[k];
    f->code[k] = (lw_kernel_code){1, &fakes[k]};
  }
  check_status(lw_executable_new(f->p, f->code, &f->e));
  check_status(
      lw_random_inputs(f->m, 7, f->a, &f->args, &f->n_args, NULL, NULL));
}

static void teardown(fixture *f) {
  lw_executable_free(f->e);
  lw_arena_free(f->a);
  lw_module_free(f->m);
  lw_context_free(f->ctx);
}

/* Runs with fresh aligned inputs (donated ones are overwritten). */
static lw_status run(fixture *f, const lw_run_options *o, lw_arena *a,
                     lw_literal **out) {
  void *params[8] = {0}, *outputs[8] = {0};
  for (int32_t k = 0; k < f->n_args; k++) {
    int64_t n = lw_literal_bytes(f->args[k]);
    params[k] = lw_buffer_alloc(n);
    if (n) memcpy(params[k], f->args[k]->data, (size_t)n);
  }
  lw_status st = lw_executable_run(f->e, params, outputs, o, NULL);
  if (!st) {
    check_status(lw_literal_new(a, f->m->entry->root->shape, out));
    int32_t n = 0;
    copy_in(*out, outputs, &n);
  }
  for (int32_t k = 0; k < f->p->n_outputs; k++) {
    if (f->p->output_alias[k] < 0) {
      lw_buffer_free(outputs[k], lw_shape_bytes(f->p->output_shapes[k]));
    }
  }
  for (int32_t k = 0; k < f->n_args; k++) {
    lw_buffer_free(params[k], lw_literal_bytes(f->args[k]));
  }
  return st;
}

static void both_ways(const char *text) {
  for (int no_alias = 0; no_alias < 2; no_alias++) {
    fixture f;
    setup(&f, text, no_alias != 0);
    lw_literal *want, *got;
    const char *where = "";
    check_status(lw_interp_run(f.m, (const lw_literal *const *)f.args, f.n_args,
                               NULL, f.a, &want));
    for (int again = 0; again < 3; again++) {
      check_status(run(&f, NULL, f.a, &got));
      if (!lw_literal_same_bits(want, got, f.a, &where)) fail_msg("%s", where);
    }
    teardown(&f);
  }
}

#define ADD                                   \
  "%add (a: f32[4], b: f32[4]) -> f32[4] {\n" \
  "  %a = f32[4] parameter(0)\n"              \
  "  %b = f32[4] parameter(1)\n"              \
  "  ROOT %r = f32[4] add(%a, %b)\n"          \
  "}\n"
#define INC                             \
  "%inc (ia: s32[]) -> s32[] {\n"       \
  "  %ia = s32[] parameter(0)\n"        \
  "  %one = s32[] constant(1)\n"        \
  "  ROOT %ir = s32[] add(%ia, %one)\n" \
  "}\n"
#define LESS                                              \
  "%less (la: s32[], lb: s32[]) -> pred[] {\n"            \
  "  %la = s32[] parameter(0)\n"                          \
  "  %lb = s32[] parameter(1)\n"                          \
  "  ROOT %lr = pred[] compare(%la, %lb), direction=LT\n" \
  "}\n"

#define STATE "(s32[], s32[], f32[4], f32[4], f32[4])"
/* The state's leaves 2..4 become A, B, C a step; five steps. */
#define LOOP(A, B, C)                                                       \
  "HloModule m\n" ADD INC LESS "%cond (cp: " STATE                          \
  ") -> pred[] {\n"                                                         \
  "  %cp = " STATE                                                          \
  " parameter(0)\n"                                                         \
  "  %ci = s32[] get-tuple-element(%cp), index=0\n"                         \
  "  %cn = s32[] get-tuple-element(%cp), index=1\n"                         \
  "  ROOT %cl = pred[] fusion(%ci, %cn), kind=kLoop, calls=%less\n"         \
  "}\n"                                                                     \
  "%body (bp: " STATE ") -> " STATE                                         \
  " {\n"                                                                    \
  "  %bp = " STATE                                                          \
  " parameter(0)\n"                                                         \
  "  %i = s32[] get-tuple-element(%bp), index=0\n"                          \
  "  %n = s32[] get-tuple-element(%bp), index=1\n"                          \
  "  %x = f32[4] get-tuple-element(%bp), index=2\n"                         \
  "  %y = f32[4] get-tuple-element(%bp), index=3\n"                         \
  "  %z = f32[4] get-tuple-element(%bp), index=4\n"                         \
  "  %j = s32[] fusion(%i), kind=kLoop, calls=%inc\n"                       \
  "  %s = f32[4] fusion(%x, %y), kind=kLoop, calls=%add\n"                  \
  "  %t = f32[4] fusion(%s, %z), kind=kLoop, calls=%add\n"                  \
  "  ROOT %bt = " STATE " tuple(%j, %n, " A ", " B ", " C                   \
  ")\n"                                                                     \
  "}\n"                                                                     \
  "ENTRY %e (p: f32[4], q: f32[4]) -> (f32[4], f32[4], f32[4], f32[4]) {\n" \
  "  %p = f32[4] parameter(0)\n"                                            \
  "  %q = f32[4] parameter(1)\n"                                            \
  "  %zero = s32[] constant(0)\n"                                           \
  "  %five = s32[] constant(5)\n"                                           \
  "  %c = f32[4] constant({1, 2, 3, 4})\n"                                  \
  "  %init = " STATE                                                        \
  " tuple(%zero, %five, %p, %q, %c)\n"                                      \
  "  %w = " STATE                                                           \
  " while(%init), condition=%cond, body=%body\n"                            \
  "  %o2 = f32[4] get-tuple-element(%w), index=2\n"                         \
  "  %o3 = f32[4] get-tuple-element(%w), index=3\n"                         \
  "  %o4 = f32[4] get-tuple-element(%w), index=4\n"                         \
  "  ROOT %r = (f32[4], f32[4], f32[4], f32[4]) tuple(%o2, %o3, %o4, %p)\n" \
  "}\n"

/* Every way to hand leaves on: kept, moved, doubled, made anew. */
static void test_loops(void **state) {
  (void)state;
  both_ways(LOOP("%s", "%y", "%z"));
  both_ways(LOOP("%s", "%x", "%z"));
  both_ways(LOOP("%y", "%x", "%z"));
  both_ways(LOOP("%y", "%z", "%x"));
  both_ways(LOOP("%z", "%x", "%y"));
  both_ways(LOOP("%t", "%s", "%x"));
  both_ways(LOOP("%x", "%t", "%s"));
  both_ways(LOOP("%t", "%t", "%t"));
  both_ways(LOOP("%y", "%y", "%s"));
  both_ways(LOOP("%x", "%x", "%x"));
  both_ways(LOOP("%z", "%s", "%t"));
  both_ways(LOOP("%x", "%z", "%t"));
}

static void test_nested_loops(void **state) {
  (void)state;
  both_ways(
      "HloModule m\n" ADD INC LESS
      "%c2 (c2p: (s32[], f32[4], f32[4])) -> pred[] {\n"
      "  %c2p = (s32[], f32[4], f32[4]) parameter(0)\n"
      "  %c2i = s32[] get-tuple-element(%c2p), index=0\n"
      "  %c2n = s32[] constant(3)\n"
      "  ROOT %c2l = pred[] fusion(%c2i, %c2n), kind=kLoop, calls=%less\n"
      "}\n"
      "%b2 (b2p: (s32[], f32[4], f32[4])) -> (s32[], f32[4], f32[4]) {\n"
      "  %b2p = (s32[], f32[4], f32[4]) parameter(0)\n"
      "  %i2 = s32[] get-tuple-element(%b2p), index=0\n"
      "  %x2 = f32[4] get-tuple-element(%b2p), index=1\n"
      "  %y2 = f32[4] get-tuple-element(%b2p), index=2\n"
      "  %j2 = s32[] fusion(%i2), kind=kLoop, calls=%inc\n"
      "  %s2 = f32[4] fusion(%x2, %y2), kind=kLoop, calls=%add\n"
      "  ROOT %t2 = (s32[], f32[4], f32[4]) tuple(%j2, %s2, %y2)\n"
      "}\n"
      "%c1 (c1p: (s32[], f32[4], f32[4])) -> pred[] {\n"
      "  %c1p = (s32[], f32[4], f32[4]) parameter(0)\n"
      "  %c1i = s32[] get-tuple-element(%c1p), index=0\n"
      "  %c1n = s32[] constant(4)\n"
      "  ROOT %c1l = pred[] fusion(%c1i, %c1n), kind=kLoop, calls=%less\n"
      "}\n"
      "%b1 (b1p: (s32[], f32[4], f32[4])) -> (s32[], f32[4], f32[4]) {\n"
      "  %b1p = (s32[], f32[4], f32[4]) parameter(0)\n"
      "  %i1 = s32[] get-tuple-element(%b1p), index=0\n"
      "  %x1 = f32[4] get-tuple-element(%b1p), index=1\n"
      "  %y1 = f32[4] get-tuple-element(%b1p), index=2\n"
      "  %z1 = s32[] constant(0)\n"
      "  %in1 = (s32[], f32[4], f32[4]) tuple(%z1, %x1, %y1)\n"
      "  %w1 = (s32[], f32[4], f32[4]) while(%in1), condition=%c2, body=%b2\n"
      "  %r1 = f32[4] get-tuple-element(%w1), index=1\n"
      "  %k1 = f32[4] get-tuple-element(%w1), index=2\n"
      "  %j1 = s32[] fusion(%i1), kind=kLoop, calls=%inc\n"
      "  %v1 = f32[4] fusion(%k1, %x1), kind=kLoop, calls=%add\n"
      "  ROOT %t1 = (s32[], f32[4], f32[4]) tuple(%j1, %v1, %r1)\n"
      "}\n"
      "ENTRY %e (p: f32[4], q: f32[4]) -> (f32[4], f32[4]) {\n"
      "  %p = f32[4] parameter(0)\n"
      "  %q = f32[4] parameter(1)\n"
      "  %zero = s32[] constant(0)\n"
      "  %init = (s32[], f32[4], f32[4]) tuple(%zero, %p, %q)\n"
      "  %w = (s32[], f32[4], f32[4]) while(%init), condition=%c1, body=%b1\n"
      "  %o1 = f32[4] get-tuple-element(%w), index=1\n"
      "  %o2 = f32[4] get-tuple-element(%w), index=2\n"
      "  ROOT %r = (f32[4], f32[4]) tuple(%o1, %o2)\n"
      "}\n");
}

#define BRANCHES                                                   \
  "%t (ta: f32[4]) -> f32[4] {\n"                                  \
  "  %ta = f32[4] parameter(0)\n"                                  \
  "  ROOT %tr = f32[4] fusion(%ta, %ta), kind=kLoop, calls=%add\n" \
  "}\n"                                                            \
  "%f (fa: f32[4]) -> f32[4] {\n"                                  \
  "  ROOT %fa = f32[4] parameter(0)\n"                             \
  "}\n"

#define CONDITIONAL(TYPE, SELECT, FORM)                    \
  "HloModule m\n" ADD BRANCHES                             \
  "ENTRY %e (x: f32[4]) -> (f32[4], f32[4]) {\n"           \
  "  %x = f32[4] parameter(0)\n"                           \
  "  %p = " TYPE " constant(" SELECT                       \
  ")\n"                                                    \
  "  %n = f32[4] fusion(%x, %x), kind=kLoop, calls=%add\n" \
  "  %c = f32[4] conditional(%p, %n, %n), " FORM           \
  "\n"                                                     \
  "  ROOT %m = (f32[4], f32[4]) tuple(%c, %n)\n"           \
  "}\n"

static void test_conditionals(void **state) {
  (void)state;
#define PRED_FORM "true_computation=%t, false_computation=%f"
#define INDEX_FORM "branch_computations={%t, %f}"
  both_ways(CONDITIONAL("pred[]", "true", PRED_FORM));
  both_ways(CONDITIONAL("pred[]", "false", PRED_FORM));
  both_ways(CONDITIONAL("s32[]", "0", INDEX_FORM));
  both_ways(CONDITIONAL("s32[]", "1", INDEX_FORM));
  both_ways(CONDITIONAL("s32[]", "7", INDEX_FORM));
  both_ways(CONDITIONAL("s32[]", "-1", INDEX_FORM));
}

static void test_donation(void **state) {
  (void)state;
  both_ways(
      "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, "
      "{}, may-alias) }\n" ADD
      "ENTRY %e (x: f32[4], y: f32[4]) -> (f32[4], f32[4], f32[4]) {\n"
      "  %x = f32[4] parameter(0)\n"
      "  %y = f32[4] parameter(1)\n"
      "  %s = f32[4] fusion(%x, %y), kind=kLoop, calls=%add\n"
      "  ROOT %t = (f32[4], f32[4], f32[4]) tuple(%y, %x, %s)\n"
      "}\n");
}

static void test_update_in_place(void **state) {
  (void)state;
  both_ways(
      "HloModule m\n"
      "%upd (ub: f32[6], uv: f32[1], ui: s32[]) -> f32[6] {\n"
      "  %ub = f32[6] parameter(0)\n"
      "  %uv = f32[1] parameter(1)\n"
      "  %ui = s32[] parameter(2)\n"
      "  ROOT %ur = f32[6] dynamic-update-slice(%ub, %uv, %ui)\n"
      "}\n"
      "%neg (na: f32[6]) -> f32[6] {\n"
      "  %na = f32[6] parameter(0)\n"
      "  ROOT %nr = f32[6] negate(%na)\n"
      "}\n"
      "ENTRY %e (x: f32[6], v: f32[1], i: s32[]) -> (f32[6], f32[6]) {\n"
      "  %x = f32[6] parameter(0)\n"
      "  %v = f32[1] parameter(1)\n"
      "  %i = s32[] parameter(2)\n"
      "  %u = f32[6] fusion(%x, %v, %i), kind=kLoop, calls=%upd\n"
      "  %n = f32[6] fusion(%u), kind=kLoop, calls=%neg\n"
      "  %u2 = f32[6] fusion(%u, %v, %i), kind=kLoop, calls=%upd\n"
      "  ROOT %t = (f32[6], f32[6]) tuple(%n, %u2)\n"
      "}\n");
}

static void test_library_and_errors(void **state) {
  (void)state;
  both_ways(
      "HloModule m\n"
      "ENTRY %e (x: c64[8]) -> c64[8] {\n"
      "  %x = c64[8] parameter(0)\n"
      "  ROOT %f = c64[8] fft(%x), fft_type=FFT, fft_length={8}\n"
      "}\n");
  fixture f;
  setup(&f,
        "HloModule m\n"
        "ENTRY %e (x: f32[4]) -> f32[4] {\n"
        "  %x = f32[4] parameter(0)\n"
        "  ROOT %boom = f32[4] custom-call(%x), "
        "custom_call_target=\"no_such_call\"\n"
        "}\n",
        false);
  lw_literal *out;
  lw_status st = run(&f, NULL, f.a, &out);
  assert_int_equal(lw_status_code(st), LW_UNIMPLEMENTED);
  assert_non_null(strstr(lw_status_message(st), "no_such_call"));
  lw_status_free(st);
  teardown(&f);
}

static const char simple[] =
    "HloModule m\n" ADD
    "ENTRY %e (x: f32[4], y: f32[4]) -> f32[4] {\n"
    "  %x = f32[4] parameter(0)\n"
    "  %y = f32[4] parameter(1)\n"
    "  %s = f32[4] fusion(%x, %y), kind=kLoop, calls=%add\n"
    "  ROOT %t = f32[4] fusion(%s, %y), kind=kLoop, calls=%add\n"
    "}\n";

static void test_fp_mode(void **state) {
  (void)state;
#if defined(__x86_64__)
  fixture f;
  setup(&f, simple, false);
  lw_literal *out;
  unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);
  check_status(run(&f, NULL, f.a, &out));
  assert_int_equal(seen_mode, 0x1f80);
  assert_true((_mm_getcsr() & 0x8040) == 0x8040);
  _mm_setcsr(before);
  lw_run_options flush = {.flush_denormals = true};
  check_status(run(&f, &flush, f.a, &out));
  assert_int_equal(seen_mode, 0x1f80 | 0x8040);
  teardown(&f);
#endif
}

/* ---- tiles over threads ---- */

static void fill_tiles(const lw_kernel_args *args, int64_t begin, int64_t end) {
  const float *in = args->buffers[0];
  float *out = args->buffers[1];
  *(char *)args->scratch = 1;
  for (int64_t t = begin; t < end; t++) out[t] = in[t] + (float)t;
}

static const lw_phase_fn tile_code[] = {fill_tiles};

static lw_status tiled_build(lw_arena *a, const lw_inst *fusion,
                             const lw_kernel_options *o, lw_kernel **out) {
  LW_TRY(fake_kernel_build(a, fusion, o, out));
  lw_phase *p = (*out)->phases;
  p->n_tiles = lw_shape_leaf(fusion->shape, 0)->elements;
  p->thread_scratch_bytes = 100;
  p->flops = 1e9; /* worth all threads */
  return NULL;
}

static void test_tiles(void **state) {
  (void)state;
  static const char text[] =
      "HloModule m\n"
      "%id (a: f32[1001]) -> f32[1001] {\n"
      "  %a = f32[1001] parameter(0)\n"
      "  ROOT %r = f32[1001] negate(%a)\n"
      "}\n"
      "ENTRY %e (x: f32[1001]) -> f32[1001] {\n"
      "  %x = f32[1001] parameter(0)\n"
      "  ROOT %s = f32[1001] fusion(%x), kind=kLoop, calls=%id\n"
      "}\n";
  lw_context *ctx = lw_context_new();
  lw_arena *a = lw_arena_new();
  lw_module *m;
  lw_plan *p;
  lw_executable *e;
  check_status(lw_read_text(ctx, text, strlen(text), "t", NULL, &m));
  lw_plan_options o = {.build_kernel = tiled_build};
  check_status(lw_plan_build(a, m, &o, &p));
  lw_kernel_code code = {1, tile_code};
  check_status(lw_executable_new(p, &code, &e));
  float *x = lw_buffer_alloc(1001 * 4);
  for (int k = 0; k < 1001; k++) x[k] = (float)k;
  for (int threads = 1; threads <= 5; threads++) {
    lw_pool *pool;
    check_status(lw_pool_new(threads, &pool));
    lw_run_options r = {.pool = pool};
    void *params[1] = {x}, *outputs[1];
    check_status(lw_executable_run(e, params, outputs, &r, NULL));
    const float *y = outputs[0];
    for (int k = 0; k < 1001; k++) assert_true(y[k] == (float)(2 * k));
    lw_buffer_free(outputs[0], 1001 * 4);
    lw_pool_free(pool);
  }
  lw_buffer_free(x, 1001 * 4);
  lw_executable_free(e);
  lw_module_free(m);
  lw_arena_free(a);
  lw_context_free(ctx);
}

/* ---- one executable, several threads ---- */

typedef struct {
  fixture *f;
  const lw_literal *want;
  bool good;
} runner;

static void *run_many(void *arg) {
  runner *r = arg;
  r->good = true;
  for (int k = 0; k < 50; k++) {
    lw_arena *a = lw_arena_new();
    lw_literal *got;
    lw_status st = run(r->f, NULL, a, &got);
    r->good = r->good && !st && lw_literal_equal(got, r->want);
    lw_status_free(st);
    lw_arena_free(a);
  }
  return NULL;
}

static void test_concurrent_runs(void **state) {
  (void)state;
  fixture f;
  setup(&f, simple, false);
  lw_literal *want;
  check_status(run(&f, NULL, f.a, &want));
  runner r[3];
  pthread_t t[3];
  for (int k = 0; k < 3; k++) {
    r[k] = (runner){&f, want, false};
    assert_int_equal(pthread_create(&t[k], NULL, run_many, &r[k]), 0);
  }
  for (int k = 0; k < 3; k++) {
    pthread_join(t[k], NULL);
    assert_true(r[k].good);
  }
  teardown(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_loops),
      cmocka_unit_test(test_nested_loops),
      cmocka_unit_test(test_conditionals),
      cmocka_unit_test(test_donation),
      cmocka_unit_test(test_update_in_place),
      cmocka_unit_test(test_library_and_errors),
      cmocka_unit_test(test_fp_mode),
      cmocka_unit_test(test_tiles),
      cmocka_unit_test(test_concurrent_runs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
