/* lawson bench --worker: a program under test, which answers on standard output
 * (lab/worker.h). bench starts it; nobody else needs to. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "bench.h"
#include "hlo/print.h"
#include "lab/arrays.h"

typedef struct {
  const cli_args *a;
  cli_input in;
  lw_compiled *c;
  lw_pool *pool;
  lw_bound *bound;
  lw_run_options options;
  double load_ms, first_ms, steady_ms;
} worker;

enum { WARM_RUNS = 1000, MOST_RUNS = 100000 };
static const double WARM_MS = 20;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static lw_status one_run(worker *w, double *ms) {
  int64_t ns;
  LW_TRY(lw_bound_run(w->bound, &w->options, NULL, &ns));
  *ms = (double)ns / 1e6;
  return NULL;
}

static lw_status make_ready(worker *w) {
  lw_compile_options o = cli_compile_options(w->a);
  LW_TRY(lw_compile(w->in.module, &o, &w->c));
  lw_literal **args;
  int32_t n;
  LW_TRY(lw_arrays_read(w->a->value[OPT_INPUTS], w->in.module, w->in.arena,
                        &args, &n));
  LW_TRY(lw_bound_new(w->c, (const lw_literal *const *)args, n, &w->bound));
  w->options.pool = w->pool;
  w->options.flush_denormals = o.flush_denormals;
  return one_run(w, &w->first_ms);
}

/* Until it is warm; a slow program is after one more run. */
static lw_status warm_up(worker *w) {
  LW_VEC(double) times = {0};
  double start = now_ms(), ms = 0;
  lw_status st = NULL;
  do {
    st = one_run(w, &ms);
    lw_vec_push(&times, ms);
  } while (!st && now_ms() - start < WARM_MS && times.len < WARM_RUNS);
  w->steady_ms = lw_median_of(times.data, (int32_t)times.len);
  lw_vec_free(&times);
  return st;
}

static void say_ready(const worker *w) {
  cJSON *j = cJSON_CreateObject();
  lw_compile_times t = lw_compiled_times(w->c);
  cJSON_AddStringToObject(j, "compiler", "lawson");
  cJSON_AddNumberToObject(j, "load_ms", w->load_ms);
  cJSON_AddNumberToObject(j, "compile_ms", lw_compiled_ms(w->c));
  cJSON_AddNumberToObject(j, "passes_ms", t.passes_ms);
  cJSON_AddNumberToObject(j, "first_ms", w->first_ms);
  cJSON_AddNumberToObject(j, "steady_ms", w->steady_ms);
  cJSON_AddNumberToObject(j, "threads", lw_pool_threads(w->pool));
  char *s = cJSON_PrintUnformatted(j);
  printf("ready %s\n", s ? s : "{}");
  cJSON_free(s);
  cJSON_Delete(j);
}

static lw_status answer_sample(worker *w, const char *rest) {
  int64_t n = strtoll(rest, NULL, 10);
  if (n < 1 || n > MOST_RUNS)
    return lw_error(LW_INVALID_ARGUMENT, "sample: 1 to %d runs", MOST_RUNS);
  LW_VEC(double) ns = {0};
  lw_status st = NULL;
  double ms = 0;
  for (int64_t k = 0; k < n && !st; k++) {
    st = one_run(w, &ms);
    lw_vec_push(&ns, ms * 1e6);
  }
  lw_sort_doubles(ns.data, (int32_t)ns.len);
  double least = ns.data[0], most = ns.data[ns.len - 1];
  double median = lw_median_of(ns.data, (int32_t)ns.len);
  if (!st)
    printf("sample %.9g %.9g %.9g %lld\n", median, least, most, (long long)n);
  lw_vec_free(&ns);
  return st;
}

static lw_status answer_module(worker *w, const char *path) {
  lw_buf b = {0};
  lw_module_print(&b, lw_compiled_module(w->c), &lw_print_default);
  lw_status st = lw_file_write(path, b.data, b.len);
  lw_buf_free(&b);
  if (!st) printf("module\n");
  return st;
}

static lw_status answer_save(worker *w, const char *path) {
  lw_literal *result;
  LW_TRY(lw_bound_result(w->bound, w->in.arena, &result));
  const lw_literal *one = result;
  LW_TRY(lw_arrays_write(path, 'o', &one, 1));
  printf("save\n");
  return NULL;
}

static lw_status answer(worker *w, char *line) {
  char *rest = line + strcspn(line, " ");
  if (*rest) *rest++ = 0;
  if (!strcmp(line, "sample")) return answer_sample(w, rest);
  if (!strcmp(line, "module")) return answer_module(w, rest);
  if (!strcmp(line, "save")) return answer_save(w, rest);
  return lw_error(LW_INVALID_ARGUMENT, "unknown question '%s'", line);
}

static lw_status serve(worker *w) {
  char line[8192];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    LW_TRY(answer(w, line));
    fflush(stdout);
  }
  return NULL;
}

int cli_bench_worker(const cli_args *a) {
  worker w = {.a = a};
  int64_t threads, seed;
  int code = cli_number(a, OPT_THREADS, 0, 1024, 0, &threads);
  if (!code) code = cli_number(a, OPT_SEED, 0, INT64_MAX, 0, &seed);
  double start = now_ms();
  if (!code) code = cli_load(a, 0, true, &w.in);
  if (code) return code;
  w.load_ms = now_ms() - start;
  w.options.seed = (uint64_t)seed;
  lw_status st = lw_pool_new((int)threads, &w.pool);
  if (!st) st = make_ready(&w);
  if (!st) st = warm_up(&w);
  if (!st) {
    say_ready(&w);
    fflush(stdout);
    st = serve(&w);
  }
  if (st) code = cli_fail_compile(a, st);
  if (w.bound) lw_bound_free(w.bound);
  if (w.c) lw_compiled_free(w.c);
  if (w.pool) lw_pool_free(w.pool);
  cli_close(&w.in);
  return code;
}
