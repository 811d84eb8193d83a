/* The bytes choose a random module (tests/gen); the whole pipeline, fusion and
 * all, with the checker after every pass, must keep every bit of its result in
 * the interpreter. */
#include "driver/driver.h"
#include "fuzz/fuzz.h"
#include "gen/gen.h"
#include "hlo/print.h"
#include "interp/interp.h"

typedef struct {
  lw_arena *arena;
  lw_literal **args;
  int32_t n_args;
} job;

static void fail(const lw_module *m, const char *what, const char *detail) {
  lw_buf b = {0};
  lw_module_print(&b, m, &lw_print_default);
  lw_buf_printf(&b, "%s", detail);
  fuzz_fail(what, lw_buf_cstr(&b));
}

static lw_status interpret(job *j, const lw_module *m, lw_literal **out) {
  lw_interp_options o = {.max_steps = 200000, .max_bytes = 256 << 20};
  return lw_interp_run(m, (const lw_literal *const *)j->args, j->n_args, &o,
                       j->arena, out);
}

static void optimise(job *j, const lw_module *m, const lw_literal *want,
                     const char *fusion) {
  lw_compile_options o = {
      .fusion = fusion, .target = "cpu-generic", .verify_each = true};
  lw_compiled *c;
  lw_literal *got;
  const char *where;
  lw_status st = lw_optimize(m, &o, &c);
  if (st) fail(m, fusion, lw_status_message(st));
  st = interpret(j, lw_compiled_module(c), &got);
  if (st) fail(m, "optimised, it does not run", lw_status_message(st));
  if (!lw_literal_same_bits(want, got, j->arena, &where))
    fail(m, fusion, where);
  lw_compiled_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  static const char *const fusions[] = {"none", "xla", "priority"};
  lw_context *ctx = lw_context_new();
  job j = {.arena = lw_arena_new()};
  lw_rand r = {.data = data + 1, .len = size - 1, .state = data[0]};
  lw_gen_options o = {.max_steps = 3 + data[0] % 13,
                      .max_elements = 300,
                      .control_flow = data[0] & 16,
                      .heavy = data[0] & 32};
  lw_module *m = lw_gen_module(ctx, &r, &o);
  lw_literal *want;
  if (!fuzz_is_clean(m)) fail(m, "the generator", "made an illegal module");
  lw_status st =
      lw_random_inputs(m, data[1], j.arena, &j.args, &j.n_args, NULL, NULL);
  if (!st) st = interpret(&j, m, &want);
  if (!st) optimise(&j, m, want, fusions[data[0] % 3]);
  lw_status_free(st);
  lw_module_free(m);
  lw_arena_free(j.arena);
  lw_context_free(ctx);
  return 0;
}
