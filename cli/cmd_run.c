/* lawson run: compile, run, report; compare and save the outputs. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "common.h"
#include "fusion/report.h"
#include "hlo/print.h"
#include "interp/interp.h"
#include "lib/compare.h"
#include "lib/npz.h"

typedef struct {
  const cli_args *a;
  cli_input in;
  cJSON *json;
  lw_literal **args;
  int32_t n_args;
  int64_t threads, repeat, seed;
  lw_literal *result;
  LW_VEC(const lw_literal *) outputs; /* array leaves */
  double compile_ms, compile_cpu_ms, run_cpu_ms;
  lw_compile_times compile;
  LW_VEC(double) times; /* ms, sorted */
  int64_t peak_bytes, kernels, fusions, launched;
  int code; /* of the comparison */
} session;

/* ---- running ---- */

static int by_value(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return a < b ? -1 : a > b;
}

static void collect_outputs(session *s, const lw_literal *l) {
  if (lw_shape_is_tuple(l->shape)) {
    for (int32_t k = 0; k < l->n_elems; k++) collect_outputs(s, l->elems[k]);
  } else if (lw_shape_is_array(l->shape)) {
    lw_vec_push(&s->outputs, l);
  }
}

static int64_t input_bytes(const session *s) {
  int64_t n = 0;
  for (int32_t k = 0; k < s->n_args; k++)
    n += lw_shape_bytes(s->args[k]->shape);
  return n;
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Of all threads: what a compile costs, whoever else uses the machine. */
static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static lw_status run_interp(session *s) {
  const char *d = s->a->value[OPT_DENORMALS];
  lw_interp_options o = {.flush_denormals = d && !strcmp(d, "flush"),
                         .rng_seed = (uint64_t)s->seed};
  for (int64_t k = 0; k < s->repeat; k++) {
    double start = now_ms();
    LW_TRY(lw_interp_run(s->in.module, (const lw_literal *const *)s->args,
                         s->n_args, &o, s->in.arena, &s->result));
    lw_vec_push(&s->times, now_ms() - start);
  }
  struct rusage u;
  if (getrusage(RUSAGE_SELF, &u) == 0) s->peak_bytes = u.ru_maxrss * 1024;
  return NULL;
}

/* With several runs the first one, on cold memory, is not counted. */
static lw_status run_often(session *s, lw_compiled *c, lw_pool *pool) {
  lw_run_options o = {.pool = pool, .seed = (uint64_t)s->seed};
  o.flush_denormals = cli_compile_options(s->a).flush_denormals;
  lw_bound *b;
  LW_TRY(lw_bound_new(c, (const lw_literal *const *)s->args, s->n_args, &b));
  lw_run_stats stats = {0};
  lw_status st = NULL;
  int64_t warm = s->repeat > 1 ? 1 : 0;
  double cpu = 0;
  for (int64_t k = 0; k < s->repeat + warm && !st; k++) {
    int64_t ns;
    if (k == warm) cpu = cpu_ms();
    cli_progress("run %lld of %lld", (long long)(k - warm + 1),
                 (long long)s->repeat);
    st = lw_bound_run(b, &o, &stats, &ns);
    if (k >= warm) lw_vec_push(&s->times, (double)ns / 1e6);
  }
  s->run_cpu_ms = (cpu_ms() - cpu) / (double)s->repeat;
  if (!st) st = lw_bound_result(b, s->in.arena, &s->result);
  s->peak_bytes = stats.temp_bytes + stats.output_bytes + stats.constant_bytes +
                  input_bytes(s);
  s->launched = stats.kernels_launched;
  lw_bound_free(b);
  return st;
}

static int run_native(session *s) {
  lw_compile_options o = cli_compile_options(s->a);
  lw_compiled *c;
  cli_progress("compiling %s", s->in.module->name);
  double cpu = cpu_ms();
  lw_status st = lw_compile(s->in.module, &o, &c);
  if (st) return cli_fail_compile(s->a, st);
  s->compile_cpu_ms = cpu_ms() - cpu;
  s->compile_ms = lw_compiled_ms(c);
  s->compile = lw_compiled_times(c);
  lw_fusion_report r = lw_fusion_report_of(lw_compiled_module(c));
  s->fusions = r.fusions;
  s->kernels = r.kernels;
  lw_pool *pool = NULL;
  st = lw_pool_new((int)s->threads, &pool);
  if (!st) {
    s->threads = lw_pool_threads(pool);
    st = run_often(s, c, pool);
    lw_pool_free(pool);
  }
  lw_compiled_free(c);
  return st ? cli_fail(st) : CLI_YES;
}

/* ---- comparing with what was expected ---- */

typedef struct {
  lw_value_diff diff;
  bool has_reference, close;
  lw_ref_error ours, theirs;
} comparison;

static lw_status compare_reference(session *s, lw_npz *z, const char *key,
                                   const lw_literal *got,
                                   const lw_literal *want, comparison *c) {
  lw_prim t = got->shape->type;
  bool real = lw_prim_is_float(t) || lw_prim_is_complex(t);
  if (!real || !lw_npz_has(z, key)) return NULL;
  lw_prim wide = lw_prim_is_complex(t) ? LW_C128 : LW_F64;
  lw_literal *r;
  LW_TRY(lw_npz_read(z, key,
                     lw_shape_with_type(s->in.ctx, got->shape->no_layout, wide),
                     s->in.arena, &r));
  LW_TRY(lw_literal_error(got, r, &c->ours));
  LW_TRY(lw_literal_error(want, r, &c->theirs));
  c->has_reference = true;
  c->close = lw_close_to_reference(lw_prim_part(t), &c->ours, &c->theirs);
  return NULL;
}

static lw_status compare_one(session *s, lw_npz *z, int k,
                             const lw_literal **want, comparison *c) {
  char o[16], r[16];
  snprintf(o, sizeof o, "o%d", k);
  snprintf(r, sizeof r, "r%d", k);
  const lw_literal *got = s->outputs.data[k];
  lw_literal *w;
  LW_TRY(lw_npz_read(z, o, got->shape, s->in.arena, &w));
  *want = w;
  LW_TRY(lw_literal_diff(got, w, false, &c->diff));
  lw_prim t = lw_prim_part(got->shape->type);
  lw_prim narrow = cli_narrowest_float(s->in.module);
  c->close =
      lw_close_to_peer(t, narrow == LW_PRIM_INVALID ? t : narrow, &c->diff);
  if (c->close) return NULL;
  return compare_reference(s, z, r, got, w, c);
}

static void report_comparison(session *s, int k, const lw_literal *want,
                              const comparison *c, cJSON *list) {
  lw_buf b = {0};
  lw_value_diff_print(&b, s->outputs.data[k], want, &c->diff);
  if (c->has_reference) {
    lw_buf_printf(&b, "; error against float64: rms %.3g, XLA's %.3g",
                  c->ours.rms, c->theirs.rms);
  }
  if (list) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddBoolToObject(o, "close", c->close);
    cJSON_AddNumberToObject(o, "different", (double)c->diff.different);
    cJSON_AddNumberToObject(o, "max_ulp", (double)c->diff.max_ulp);
    cJSON_AddStringToObject(o, "text", lw_buf_cstr(&b));
    cJSON_AddItemToArray(list, o);
  } else {
    printf("o%d against expected: %s%s%s (%s)\n", k,
           c->close ? cli_green(1) : cli_red(1), c->close ? "close" : "FAR",
           cli_plain(1), lw_buf_cstr(&b));
  }
  lw_buf_free(&b);
}

static lw_status compare_all(session *s, const char *path) {
  lw_npz *z;
  LW_TRY(lw_npz_open(path, &z));
  cJSON *list = s->json ? cJSON_AddArrayToObject(s->json, "expect") : NULL;
  lw_status st = NULL;
  for (size_t k = 0; k < s->outputs.len && !st; k++) {
    const lw_literal *want;
    comparison c = {0};
    st = compare_one(s, z, (int)k, &want, &c);
    if (st) break;
    report_comparison(s, (int)k, want, &c, list);
    if (!c.close) s->code = CLI_NO;
  }
  lw_npz_close(z);
  return st ? lw_status_annotate(st, "%s", path) : NULL;
}

static lw_status save(session *s, const char *path) {
  int n = (int)s->outputs.len;
  const char **keys = LW_NEW_ARRAY(s->in.arena, const char *, n + 1);
  for (int k = 0; k < n; k++) keys[k] = lw_arena_printf(s->in.arena, "o%d", k);
  return lw_npz_write(path, n, keys, s->outputs.data);
}

/* ---- the report ---- */

enum { SHOWN = 8 };

static void print_output(const lw_literal *l, size_t k) {
  lw_buf b = {0};
  lw_buf_printf(&b, "o%zu ", k);
  lw_shape_print(&b, l->shape->no_layout, false);
  lw_buf_str(&b, " {");
  int64_t n = l->shape->elements < SHOWN ? l->shape->elements : SHOWN;
  for (int64_t e = 0; e < n; e++) {
    if (e) lw_buf_str(&b, ", ");
    lw_literal_print_value(&b, l, e);
  }
  lw_buf_str(&b, l->shape->elements > SHOWN ? ", ...}\n" : "}\n");
  cli_out(lw_buf_cstr(&b));
  lw_buf_free(&b);
}

static double median(const session *s) {
  size_t n = s->times.len;
  if (n == 0) return 0;
  return n % 2 ? s->times.data[n / 2]
               : (s->times.data[n / 2 - 1] + s->times.data[n / 2]) / 2;
}

static void json_outputs(session *s) {
  cJSON *list = cJSON_AddArrayToObject(s->json, "outputs");
  for (size_t k = 0; k < s->outputs.len; k++) {
    const lw_literal *l = s->outputs.data[k];
    cJSON *o = cJSON_CreateObject();
    char name[24];
    snprintf(name, sizeof name, "o%zu", k);
    cJSON_AddStringToObject(o, "name", name);
    cJSON_AddStringToObject(o, "type", lw_prim_name(l->shape->type));
    cJSON *dims = cJSON_AddArrayToObject(o, "dims");
    for (int32_t d = 0; d < l->shape->rank; d++) {
      cJSON_AddItemToArray(dims, cJSON_CreateNumber((double)l->shape->dims[d]));
    }
    cJSON *first = cJSON_AddArrayToObject(o, "first");
    for (int64_t e = 0; e < l->shape->elements && e < SHOWN; e++) {
      lw_buf b = {0};
      lw_literal_print_value(&b, l, e);
      cJSON_AddItemToArray(first, cJSON_CreateString(lw_buf_cstr(&b)));
      lw_buf_free(&b);
    }
    cJSON_AddItemToArray(list, o);
  }
}

static void report_json(session *s) {
  cJSON *j = s->json;
  cJSON_AddStringToObject(j, "module", s->in.module->name);
  json_outputs(s);
  cJSON_AddNumberToObject(j, "compile_ms", s->compile_ms);
  cJSON *p = cJSON_AddObjectToObject(j, "compile_parts_ms");
  cJSON_AddNumberToObject(p, "passes", s->compile.passes_ms);
  cJSON_AddNumberToObject(p, "plan", s->compile.plan_ms);
  cJSON_AddNumberToObject(p, "code", s->compile.code_ms);
  cJSON_AddNumberToObject(p, "cpu", s->compile_cpu_ms);
  cJSON *t = cJSON_AddObjectToObject(j, "time_ms");
  size_t n = s->times.len;
  cJSON_AddNumberToObject(t, "min", n ? s->times.data[0] : 0);
  cJSON_AddNumberToObject(t, "median", median(s));
  cJSON_AddNumberToObject(t, "max", n ? s->times.data[n - 1] : 0);
  cJSON_AddNumberToObject(t, "runs", (double)n);
  cJSON_AddNumberToObject(t, "cpu", s->run_cpu_ms);
  cJSON_AddNumberToObject(j, "peak_bytes", (double)s->peak_bytes);
  cJSON_AddNumberToObject(j, "threads", (double)s->threads);
  cJSON_AddNumberToObject(j, "fusions", (double)s->fusions);
  cJSON_AddNumberToObject(j, "kernels", (double)s->kernels);
  cJSON_AddNumberToObject(j, "launched", (double)s->launched);
  cJSON_AddNumberToObject(j, "seed", (double)s->seed);
}

static const char *road(const session *s) {
  return s->a->value[OPT_INTERP] ? "interpreter" : "native";
}

static void report_text(session *s) {
  size_t n = s->times.len;
  double least = n ? s->times.data[0] : 0, most = n ? s->times.data[n - 1] : 0;
  if (s->a->value[OPT_BRIEF]) {
    printf("%.4f ms (%.4f..%.4f, %zu runs), %lld kernels, %lld threads\n",
           median(s), least, most, n, (long long)s->kernels,
           (long long)s->threads);
    return;
  }
  for (size_t k = 0; k < s->outputs.len; k++) {
    print_output(s->outputs.data[k], k);
  }
  cli_note("%s: compile %.2f ms, run %.4f ms (%.4f..%.4f, %zu runs)", road(s),
           s->compile_ms, median(s), least, most, n);
  cli_note(
      "%lld fusions, %lld kernels (%lld launched), %lld threads, peak "
      "%lld bytes",
      (long long)s->fusions, (long long)s->kernels, (long long)s->launched,
      (long long)s->threads, (long long)s->peak_bytes);
}

static int after_run(session *s) {
  const char *expect = s->a->value[OPT_EXPECT], *out = s->a->value[OPT_SAVE];
  collect_outputs(s, s->result);
  qsort(s->times.data, s->times.len, sizeof *s->times.data, by_value);
  cli_progress("%s", "");
  if (s->json) {
    report_json(s);
  } else {
    report_text(s);
  }
  lw_status st = out ? save(s, out) : NULL;
  if (!st && expect) st = compare_all(s, expect);
  return st ? cli_fail(st) : s->code;
}

static int run_session(session *s) {
  cJSON *inputs = NULL;
  if (s->json && !s->a->value[OPT_INPUTS]) {
    inputs = cJSON_AddArrayToObject(s->json, "inputs");
  }
  int code = cli_inputs(s->a, &s->in, &s->args, &s->n_args, inputs);
  if (code) return code;
  if (s->a->value[OPT_INTERP]) {
    s->threads = 1;
    lw_status st = run_interp(s);
    if (st) return cli_fail(st);
  } else {
    code = run_native(s);
    if (code) return code;
  }
  return after_run(s);
}

int cli_run_run(const cli_args *a) {
  session s = {.a = a};
  int code = cli_number(a, OPT_THREADS, 0, 1024, 0, &s.threads);
  if (!code) code = cli_number(a, OPT_REPEAT, 1, 100000000, 1, &s.repeat);
  if (!code) code = cli_number(a, OPT_SEED, 0, INT64_MAX, 0, &s.seed);
  if (!code) code = cli_load(a, 0, true, &s.in);
  if (code) return code;
  s.json = cli_json(a);
  code = run_session(&s);
  if (s.json && (code == CLI_YES || code == CLI_NO)) {
    cli_json_print(s.json);
  } else {
    cJSON_Delete(s.json);
  }
  lw_vec_free(&s.outputs);
  lw_vec_free(&s.times);
  cli_close(&s.in);
  return code;
}
