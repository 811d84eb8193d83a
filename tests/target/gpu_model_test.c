/* The GPU model by hand: XLA's own check vectors
 * (gpu_performance_model_test.cc, its cases restated), two sums worked out from
 * a recorded run, and what a kernel may hold. gpu_truth.c has the recorded
 * runs. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/reader.h"
#include "target/gpu.h"

typedef struct {
  lw_context *ctx;
  lw_module *module;
  lw_target *target;
  lw_gpu_device device;
  lw_gpu_model *model;
  lw_arena *arena;
} world;

static void check(lw_status s) {
  if (s) print_error("%s\n", lw_status_message(s));
  assert_null(s);
}

static world open_world(const char *device, const char *text) {
  world w = {.ctx = lw_context_new(), .arena = lw_arena_new()};
  check(lw_target_load(device, &w.target));
  check(lw_gpu_device_of(w.target, &w.device));
  check(lw_read_text(w.ctx, text, strlen(text), "test", NULL, &w.module));
  w.model = lw_gpu_model_new(w.module->entry, &w.device);
  return w;
}

/* XLA's test device: an RTX A6000 at 1.41 GHz. */
static world open_a6000(const char *text) {
  world w = open_world("a6000", text);
  lw_gpu_model_free(w.model);
  w.device.clock_ghz = 1.41;
  w.model = lw_gpu_model_new(w.module->entry, &w.device);
  return w;
}

static void close_world(world *w) {
  lw_gpu_model_free(w->model);
  lw_module_free(w->module);
  lw_target_free(w->target);
  lw_arena_free(w->arena);
  lw_context_free(w->ctx);
}

static lw_inst *named(world *w, const char *name) {
  for (lw_inst *i = w->module->entry->first; i; i = i->next)
    if (!strcmp(i->name, name)) return i;
  fail_msg("no instruction %s", name);
  return NULL;
}

static lw_gpu_kernel kernel(world *w, const char *producer,
                            const char *consumer) {
  return lw_gpu_kernel_of(w->model, producer ? named(w, producer) : NULL,
                          named(w, consumer), w->arena);
}

static double ns(lw_ticks t) { return (double)t / 4; }

/* ---- XLA's check vectors ---- */

static const char add_fusion[] =
    "HloModule m\n"
    "f { p0 = f32[%s] parameter(0)\n p1 = f32[%s] parameter(1)\n"
    " ROOT a = f32[%s] add(p0, p1) }\n"
    "ENTRY e { p0 = f32[%s] parameter(0)\n p1 = f32[%s] parameter(1)\n"
    " ROOT r = f32[%s] fusion(p0, p1), kind=kLoop, calls=f }\n";

static world add_of(const char *n) {
  char text[1024];
  snprintf(text, sizeof text, add_fusion, n, n, n, n, n, n);
  return open_a6000(text);
}

static void small_reads_and_writes(void **state) {
  (void)state;
  world w = add_of("1000");
  lw_gpu_kernel k = kernel(&w, NULL, "r");
  assert_int_equal(k.blocks, 8);
  assert_int_equal(k.threads, 128);
  assert_true(ns(lw_gpu_exec(w.model, named(&w, "r"))) == 27.25);
  close_world(&w);
}

static void large_reads_and_writes(void **state) {
  (void)state;
  world w = add_of("10000000");
  lw_gpu_kernel k = kernel(&w, NULL, "r");
  assert_int_equal(k.blocks, 19532);
  double cycles = ns(lw_gpu_exec(w.model, named(&w, "r"))) * 1.41;
  assert_true(cycles > 220284 - 100 && cycles < 220284 + 100);
  close_world(&w);
}

static void a_broadcast_is_written_once(void **state) {
  (void)state;
  world w = open_a6000(
      "HloModule m\nENTRY e { p = f32[] parameter(0)\n"
      " b = f32[10000000] broadcast(p), dimensions={}\n"
      " ROOT n = f32[10000000] negate(b) }\n");
  double us = lw_ticks_us(lw_gpu_exec(w.model, named(&w, "b")));
  assert_true(us > 43 && us < 63);
  close_world(&w);
}

/* c[i,j] = p0[i] + p1[i,j] with p0 read once an element of p1. */
static double cached_read_us(const char *n, const char *m) {
  char text[1024];
  snprintf(text, sizeof text,
           "HloModule m\nf { p0 = f32[%s] parameter(0)\n"
           " p1 = f32[%s,%s] parameter(1)\n"
           " b = f32[%s,%s] broadcast(p0), dimensions={0}\n"
           " ROOT a = f32[%s,%s] add(b, p1) }\n"
           "ENTRY e { p0 = f32[%s] parameter(0)\n"
           " p1 = f32[%s,%s] parameter(1)\n"
           " ROOT r = f32[%s,%s] fusion(p0, p1), kind=kLoop, calls=f }\n",
           n, n, m, n, m, n, m, n, n, m, n, m);
  world w = open_a6000(text);
  double us = lw_ticks_us(lw_gpu_exec(w.model, named(&w, "r")));
  close_world(&w);
  return us;
}

static void repeated_reads_come_from_caches(void **state) {
  (void)state;
  double l1 = cached_read_us("10000", "1000"),
         l2 = cached_read_us("1000000", "10");
  assert_true(l1 > 118 - 12 && l1 < 118 + 12);
  assert_true(l2 > 123 - 12 && l2 < 123 + 12);
}

/* ---- worked by hand: naive attention's softmax, 64 x 64, on an H100 ---- */

static const char attention[] =
    "HloModule m\n"
    "add { left = f32[] parameter(0)\n right = f32[] parameter(1)\n"
    " ROOT sum = f32[] add(left, right) }\n"
    "ENTRY e { s = f32[64,64] parameter(0)\n m = f32[64] parameter(1)\n"
    " zero = f32[] constant(0)\n"
    " b = f32[64,64] broadcast(m), dimensions={0}\n"
    " d = f32[64,64] subtract(s, b)\n"
    " x = f32[64,64] exponential(d)\n"
    " t = f32[64] reduce(x, zero), dimensions={1}, to_apply=add\n"
    " c = f32[64,64] broadcast(t), dimensions={0}\n"
    " ROOT q = f32[64,64] divide(x, c) }\n";

static void a_broadcast_into_a_subtract(void **state) {
  (void)state;
  world w = open_world("h100", attention);
  const lw_inst *d = named(&w, "d");
  lw_gpu_times t = lw_gpu_run_times(w.model, named(&w, "b"), 1, &d);
  assert_true(ns(lw_gpu_exec(w.model, named(&w, "b"))) == 13.25);
  assert_true(ns(lw_gpu_exec(w.model, d)) == 21.0);
  assert_true(lw_ticks_us(t.unfused) == 2.03425);
  assert_true(lw_ticks_us(t.fused) == 1.02125);
  close_world(&w);
}

static void an_exponential_with_two_readers(void **state) {
  (void)state;
  world w = open_world("h100", attention);
  const lw_inst *readers[] = {named(&w, "t"), named(&w, "q")};
  lw_gpu_times t = lw_gpu_run_times(w.model, named(&w, "x"), 2, readers);
  assert_true(ns(lw_gpu_exec(w.model, named(&w, "x"))) == 20.75);
  assert_true(ns(lw_gpu_exec(w.model, readers[0])) == 33.0);
  assert_true(ns(lw_gpu_exec(w.model, readers[1])) == 21.25);
  assert_true(lw_ticks_us(t.unfused) == 3.075);
  lw_gpu_kernel k = kernel(&w, NULL, "t");
  assert_int_equal(k.emitter, LW_GPU_REDUCTION);
  assert_int_equal(k.blocks, 8);
  assert_int_equal(k.threads, 256);
  close_world(&w);
}

/* ---- decisions of XLA's tests ---- */

static void a_concatenate_off_the_warp_is_dear(void **state) {
  (void)state;
  const char *text =
      "HloModule m\nENTRY e { p = f32[4,%d] parameter(0)\n"
      " q = f32[4,401] parameter(1)\n"
      " c = f32[4,%d] concatenate(p, q), dimensions={1}\n"
      " ROOT n = f32[4,%d] negate(c) }\n";
  double us[2];
  for (int k = 0; k < 2; k++) {
    char s[512];
    int n = k ? 1023 : 1024;
    snprintf(s, sizeof s, text, n, n + 401, n + 401);
    world w = open_world("a6000", s);
    us[k] = lw_ticks_us(lw_gpu_exec(w.model, named(&w, "c")));
    close_world(&w);
  }
  assert_true(us[1] > 2 * us[0]);
}

static void a_reduce_into_a_scalar_stays_alone(void **state) {
  (void)state;
  world w = open_a6000(
      "HloModule m\nadd { x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
      " ROOT z = f32[] add(x, y) }\n"
      "ENTRY e { p = f32[3072] parameter(0)\n c = f32[] constant(0)\n"
      " r = f32[] reduce(p, c), dimensions={0}, to_apply=add\n"
      " b = f32[3072] broadcast(r), dimensions={}\n"
      " ROOT d = f32[3072] divide(p, b) }\n");
  const lw_inst *b = named(&w, "b");
  lw_gpu_times t = lw_gpu_run_times(w.model, named(&w, "r"), 1, &b);
  assert_true(t.unfused < t.fused);
  close_world(&w);
}

/* ---- emitters ---- */

static void heroes_choose_the_emitter(void **state) {
  (void)state;
  world w = open_world(
      "h100",
      "HloModule m\nadd { x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
      " ROOT z = f32[] add(x, y) }\n"
      "ENTRY e { p = f32[256,512] parameter(0)\n c = f32[] constant(0)\n"
      " i = s32[9,1] parameter(1)\n u = f32[9,512] parameter(2)\n"
      " t = f32[512,256] transpose(p), dimensions={1,0}\n"
      " n = f32[512,256] negate(t)\n"
      " r = f32[256] reduce(p, c), dimensions={1}, to_apply=add\n"
      " l = f32[256] sqrt(r)\n"
      " k = f32[512,512] concatenate(p, p), dimensions={0}\n"
      " s = f32[256,512] scatter(p, i, u), update_window_dims={1},"
      " inserted_window_dims={0}, scatter_dims_to_operand_dims={0},"
      " index_vector_dim=1, to_apply=add\n"
      " ROOT o = (f32[512,256], f32[256], f32[512,512], f32[256,512])"
      " tuple(n, l, k, s) }\n");
  assert_int_equal(kernel(&w, NULL, "t").emitter, LW_GPU_TRANSPOSE);
  assert_int_equal(kernel(&w, "t", "n").emitter, LW_GPU_TRANSPOSE);
  assert_ptr_equal(kernel(&w, "t", "n").heroes[0], named(&w, "t"));
  assert_int_equal(kernel(&w, NULL, "n").emitter, LW_GPU_LOOP);
  assert_int_equal(kernel(&w, "r", "l").emitter, LW_GPU_REDUCTION);
  assert_int_equal(kernel(&w, NULL, "k").emitter, LW_GPU_CONCATENATE);
  assert_int_equal(kernel(&w, NULL, "s").emitter, LW_GPU_SCATTER);
  assert_true(lw_gpu_physically_transposing(named(&w, "t")));
  assert_true(lw_gpu_holds_significant_reduce(w.model, named(&w, "r")));
  assert_true(lw_gpu_is_reduction_fusible(w.model, named(&w, "r")));
  assert_true(lw_gpu_input_fusible_scatter(named(&w, "s")));
  assert_false(lw_gpu_loop_fusible(named(&w, "r"), false));
  assert_true(lw_gpu_loop_fusible(named(&w, "r"), true));
  assert_false(
      lw_gpu_shapes_compatible(w.model, named(&w, "t"), named(&w, "r")));
  close_world(&w);
}

/* Eight column reductions of f32 take 8 x 16512 bytes: too much at 48 KiB. */
static void shared_memory_bounds_a_kernel(void **state) {
  (void)state;
  world w = open_world(
      "h100",
      "HloModule m\nadd { x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
      " ROOT z = f32[] add(x, y) }\n"
      "f { p = f32[4096,512] parameter(0)\n c = f32[] constant(0)\n"
      " a = f32[512] reduce(p, c), dimensions={0}, to_apply=add\n"
      " n = f32[4096,512] negate(p)\n"
      " b = f32[512] reduce(n, c), dimensions={0}, to_apply=add\n"
      " ROOT t = (f32[512], f32[512]) tuple(a, b) }\n"
      "ENTRY e { p = f32[4096,512] parameter(0)\n c = f32[] constant(0)\n"
      " r = f32[512] reduce(p, c), dimensions={0}, to_apply=add\n"
      " s = (f32[512], f32[512]) fusion(p), kind=kInput, calls=f\n"
      " ROOT o = (f32[512], (f32[512], f32[512])) tuple(r, s) }\n");
  assert_true(
      lw_gpu_fits_budget(w.model, named(&w, "r"), named(&w, "r"), false));
  assert_int_equal(
      lw_gpu_budget_of(w.model, named(&w, "s"), named(&w, "r"), false),
      LW_GPU_OVER_SHARED_MEMORY);
  assert_true(lw_gpu_mof_root_able(w.model, named(&w, "s")));
  assert_true(
      lw_gpu_shapes_compatible(w.model, named(&w, "s"), named(&w, "r")));
  close_world(&w);
}

/* ---- devices ---- */

static void every_gpu_has_a_file(void **state) {
  (void)state;
  int gpus = 0;
  for (int k = 0; k < lw_target_builtin_count(); k++) {
    lw_target *t, *again;
    check(lw_target_load(lw_target_builtin_name(k), &t));
    lw_gpu_device d;
    lw_status s = lw_gpu_device_of(t, &d);
    if (!strcmp(t->backend_name, "gpu")) {
      check(s);
      gpus++;
      assert_true(d.core_count > 0 && d.memory_bandwidth > 1e11);
      lw_buf b = {0};
      lw_target_print(&b, t);
      check(lw_target_parse(b.data, b.len, "again", &again));
      assert_true(memcmp(&t->gpu, &again->gpu, sizeof t->gpu) == 0);
      lw_target_free(again);
      lw_buf_free(&b);
    } else {
      assert_int_equal(lw_status_code(s), LW_INVALID_ARGUMENT);
      lw_status_free(s);
    }
    lw_target_free(t);
  }
  assert_int_equal(gpus, 19);
}

static void keys_belong_to_a_backend(void **state) {
  (void)state;
  const char *text = "name = x\nbackend = gpu\nisa = sm_90\nl1_gbps = 3\n";
  lw_target *t;
  lw_status s = lw_target_parse(text, strlen(text), "x.target", &t);
  assert_non_null(s);
  assert_non_null(strstr(lw_status_message(s), "'l1_gbps' is no key of"));
  assert_non_null(strstr(lw_status_message(s), "no 'core_count' given"));
  assert_null(strstr(lw_status_message(s), "no 'l1_bytes' given"));
  lw_status_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(small_reads_and_writes),
      cmocka_unit_test(large_reads_and_writes),
      cmocka_unit_test(a_broadcast_is_written_once),
      cmocka_unit_test(repeated_reads_come_from_caches),
      cmocka_unit_test(a_broadcast_into_a_subtract),
      cmocka_unit_test(an_exponential_with_two_readers),
      cmocka_unit_test(a_concatenate_off_the_warp_is_dear),
      cmocka_unit_test(a_reduce_into_a_scalar_stays_alone),
      cmocka_unit_test(heroes_choose_the_emitter),
      cmocka_unit_test(shared_memory_bounds_a_kernel),
      cmocka_unit_test(every_gpu_has_a_file),
      cmocka_unit_test(keys_belong_to_a_backend),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
