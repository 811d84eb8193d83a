/* Random modules with inputs and native results, for peers (tests/xla):
 *   run_tool DIR SEED COUNT
 * writes DIR/SEED.hlo, DIR/SEED.in.npz (p0 ...), DIR/SEED.out.npz (o0 ...) and,
 * with subnormals flushed as XLA:CPU does, DIR/SEED.flush.npz for COUNT seeds.
 * Only what XLA:CPU compiles too. A module that does not compile or run is
 * reported and makes the exit code 1. */
#include <stdio.h>
#include <stdlib.h>

#include "driver/driver.h"
#include "gen/gen.h"
#include "hlo/print.h"
#include "lib/npz.h"

static const char *file_name(lw_arena *a, const char *dir, uint64_t seed,
                             const char *suffix) {
  return lw_arena_printf(a, "%s/%llu.%s", dir, (unsigned long long)seed,
                         suffix);
}

static lw_status write_text(const char *path, const lw_module *m) {
  FILE *f = fopen(path, "w");
  if (!f) return lw_error(LW_NOT_FOUND, "%s: cannot write", path);
  lw_buf b = {0};
  lw_module_print(&b, m, &lw_print_default);
  fputs(lw_buf_cstr(&b), f);
  lw_buf_free(&b);
  fclose(f);
  return NULL;
}

static lw_status write_arrays(lw_arena *a, const char *path, char letter, int n,
                              const lw_literal *const *arrays) {
  const char **keys = LW_NEW_ARRAY(a, const char *, n + 1);
  for (int k = 0; k < n; k++) keys[k] = lw_arena_printf(a, "%c%d", letter, k);
  return lw_npz_write(path, n, keys, arrays);
}

static lw_status run(const lw_module *m, const lw_literal *const *args,
                     int32_t n, bool flush, lw_arena *a, lw_literal **result) {
  lw_compiled *c;
  lw_pool *pool = NULL;
  lw_compile_options how = {.flush_denormals = flush};
  lw_status st = lw_compile(m, &how, &c);
  if (st) return st;
  st = lw_pool_new(2, &pool);
  lw_run_options o = {.pool = pool, .flush_denormals = flush};
  if (!st) st = lw_compiled_run(c, args, n, &o, a, result, NULL);
  lw_pool_free(pool);
  lw_compiled_free(c);
  return st;
}

/* The generator's roots are an array or a flat tuple of arrays. */
static lw_status run_and_write(const lw_module *m, const char *path,
                               const lw_literal *const *in, int32_t n,
                               bool flush, lw_arena *a) {
  lw_literal *result;
  LW_TRY(run(m, in, n, flush, a, &result));
  const lw_literal *single = result;
  bool tuple = lw_shape_is_tuple(result->shape);
  return write_arrays(
      a, path, 'o', tuple ? result->n_elems : 1,
      tuple ? (const lw_literal *const *)result->elems : &single);
}

static lw_status one(const lw_module *m, const char *dir, uint64_t seed,
                     lw_arena *a) {
  lw_literal **args;
  int32_t n;
  LW_TRY(write_text(file_name(a, dir, seed, "hlo"), m));
  LW_TRY(lw_random_inputs(m, seed, a, &args, &n, NULL, NULL));
  const lw_literal *const *in = (const lw_literal *const *)args;
  LW_TRY(write_arrays(a, file_name(a, dir, seed, "in.npz"), 'p', n, in));
  LW_TRY(
      run_and_write(m, file_name(a, dir, seed, "flush.npz"), in, n, true, a));
  return run_and_write(m, file_name(a, dir, seed, "out.npz"), in, n, false, a);
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: run_tool DIR SEED COUNT\n");
    return 2;
  }
  uint64_t from = strtoull(argv[2], NULL, 0);
  long count = strtol(argv[3], NULL, 0), bad = 0;
  lw_gen_options o = {
      .control_flow = true, .heavy = true, .xla_runnable = true};
  for (long k = 0; k < count; k++) {
    lw_context *ctx = lw_context_new();
    lw_arena *a = lw_arena_new();
    lw_rand r = {.state = from + (uint64_t)k};
    lw_module *m = lw_gen_module(ctx, &r, &o);
    lw_status st = one(m, argv[1], from + (uint64_t)k, a);
    if (st) {
      fprintf(stderr, "run_tool: seed %llu: %s\n",
              (unsigned long long)(from + (uint64_t)k), lw_status_message(st));
      bad++;
    }
    lw_status_free(st);
    lw_module_free(m);
    lw_arena_free(a);
    lw_context_free(ctx);
  }
  return bad ? 1 : 0;
}
