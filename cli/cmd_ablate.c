/* lawson ablate: leave passes or edges out, one by one, and see what moved. */
#include <stdio.h>
#include <string.h>

#include "lab.h"
#include "lab/ablate.h"
#include "lab/arrays.h"
#include "lab/bisect.h"
#include "lab/scratch.h"

/* ---- what is asked ---- */

typedef struct {
  const cli_args *a;
  cli_input in;
  char *scratch;
  int64_t seed;
  lw_ablate_options o;
  lw_ablation result;
  const lw_ablate_row *bisected; /* NULL: --bisect found nothing to look at */
  lw_bisection bisection;
} session;

/* --disable=a,b,c; "all" is none. */
static void read_names(session *s) {
  const char *list = s->a->value[OPT_DISABLE];
  if (!list || !strcmp(list, "all")) return;
  const char **names =
      LW_NEW_ARRAY(s->in.arena, const char *, strlen(list) + 1);
  for (const char *p = list; *p;) {
    size_t n = strcspn(p, ",");
    if (n) names[s->o.n_names++] = lw_arena_strdup(s->in.arena, p, n);
    p += n + (p[n] == ',');
  }
  s->o.names = names;
}

/* Only a CPU's program can be run here. */
static bool is_run(const session *s) {
  const char *t = s->a->value[OPT_TARGET];
  if (!lw_subject_is_xla(s->a->value[OPT_COMPILER]))
    return !t || !strncmp(t, "cpu", 3);
  return !t || !strcmp(t, "cpu");
}

static int make_inputs(session *s) {
  if (!is_run(s)) return CLI_YES;
  if (s->a->value[OPT_INPUTS]) {
    s->o.inputs = s->a->value[OPT_INPUTS];
    return CLI_YES;
  }
  lw_literal **args;
  int32_t n;
  lw_status st = lw_random_inputs(s->in.module, (uint64_t)s->seed, s->in.arena,
                                  &args, &n, NULL, NULL);
  const char *path = lw_arena_printf(s->in.arena, "%s/inputs.npz", s->scratch);
  if (!st) st = lw_arrays_write(path, 'p', (const lw_literal *const *)args, n);
  if (st) return cli_fail(st);
  s->o.inputs = path;
  return CLI_YES;
}

static int read_session(session *s) {
  int code = cli_number(s->a, OPT_SEED, 0, INT64_MAX, 0, &s->seed);
  if (code) return code;
  lw_status st = lw_scratch_new(&s->scratch);
  if (st) return cli_fail(st);
  s->o.scratch = s->scratch;
  s->o.module_path = s->a->positional[0];
  s->o.which = s->a->value[OPT_MODULE];
  s->o.edges = s->a->value[OPT_EDGES] != NULL;
  s->o.subject = cli_subject(s->a, s->in.arena);
  read_names(s);
  return make_inputs(s);
}

/* ---- text ---- */

static void count_text(lw_buf *b, int64_t was, int64_t is) {
  if (was == is)
    lw_buf_printf(b, "%lld", (long long)is);
  else
    lw_buf_printf(b, "%lld > %lld", (long long)was, (long long)is);
}

static void print_count(int64_t was, int64_t is, int width) {
  lw_buf b = {0};
  count_text(&b, was, is);
  printf("  %*s", width, lw_buf_cstr(&b));
  lw_buf_free(&b);
}

static const char *const bits_names[] = {"-", "same", "DIFFER"};

static void print_row(const lw_ablation *r, const lw_ablate_row *w) {
  bool moved = w->verdict == LW_ABLATE_MOVED;
  printf("%-34s %s%-22s%s %4d %7d", w->name, moved ? cli_bold(1) : "",
         lw_ablate_verdict_name(w->verdict), moved ? cli_plain(1) : "", w->runs,
         w->changed_runs);
  if (moved) {
    print_count(r->full.instructions, w->without.instructions, 13);
    print_count(r->full.fusions, w->without.fusions, 8);
    print_count(r->full.custom_calls, w->without.custom_calls, 8);
    print_count(r->full.kernels, w->without.kernels, 8);
    print_count(r->full.bytes, w->without.bytes, 18);
    printf("  %-6s", bits_names[w->bits]);
  }
  putchar('\n');
  if (moved && strcmp(r->full.root, w->without.root))
    printf("  root %s > %s\n", r->full.root, w->without.root);
  if (w->bits_text && moved && w->bits != LW_BITS_SAME)
    printf("  bits: %s\n", w->bits_text);
  if (w->error) printf("  %s\n", w->error);
  if (w->time_verdict)
    printf("  time without it: %s%s%s, ratio %.3f (%.3f to %.3f)\n",
           cli_bold(1), w->time_verdict, cli_plain(1), w->ratio, w->ratio_low,
           w->ratio_high);
  if (w->time_error) printf("  time: %s\n", w->time_error);
  if (w->ignored)
    printf("  left out, it changed the module all the same, by the log\n");
}

static void print_full(const lw_ablation *r) {
  printf("%s, %s for %s (%s)\n", r->module, r->compiler, r->target, r->version);
  printf(
      "nothing left out: %lld instructions, %lld fusions, %lld custom "
      "calls, %lld kernels, %lld bytes between kernels, root %s\n",
      (long long)r->full.instructions, (long long)r->full.fusions,
      (long long)r->full.custom_calls, (long long)r->full.kernels,
      (long long)r->full.bytes, r->full.root);
  printf("control: the same compile again gives %s\n",
         r->control_same ? "the same module"
                         : "ANOTHER module; no verdict below can be trusted");
  for (size_t k = 0; k < r->replaced.len; k++)
    printf(
        "the compiler put a call in place that the program does not have: "
        "%s; another algorithm, or a library's, is not fusion\n",
        r->replaced.data[k]);
}

static bool is_shown(const session *s, const lw_ablate_row *w) {
  return s->o.n_names || s->o.edges || w->verdict == LW_ABLATE_MOVED ||
         w->verdict == LW_ABLATE_REFUSED;
}

static void print_hidden(const session *s) {
  size_t hidden = 0;
  for (size_t k = 0; k < s->result.rows.len; k++)
    hidden += !is_shown(s, &s->result.rows.data[k]);
  if (hidden) printf("%zu more ran and moved nothing\n", hidden);
}

/* Timing is bench's business: it has the controls. */
static void print_bench(const session *s) {
  bool any = false;
  for (size_t k = 0; k < s->result.rows.len; k++)
    any = any || s->result.rows.data[k].verdict == LW_ABLATE_MOVED;
  if (!any || !is_run(s) || s->a->value[OPT_REPEAT]) return;
  const char *c = s->result.compiler;
  printf(
      "\nto time what moved: lawson bench %s --a='--compiler=%s' "
      "--b='--compiler=%s --disable=PASS'\n",
      s->o.module_path, c, c);
}

static void print_bisection(const session *s) {
  const lw_bisection *b = &s->bisection;
  if (!s->bisected) {
    printf("\nbisect: nothing that moved changes a bit of the output\n");
    return;
  }
  printf("\nbisect: %s", s->bisected->name);
  if (b->rewrite) printf(", by its rewrite number %lld", (long long)b->rewrite);
  printf("; %lld of %lld instructions show it (%d compiles)\n",
         (long long)b->instructions, (long long)b->instructions_was,
         b->compiles);
  if (b->no_fuel) printf("  no number: %s\n", b->no_fuel);
  if (!s->a->value[OPT_OUTPUT]) printf("\n%s", b->text);
}

static void print_text(const session *s) {
  const lw_ablation *r = &s->result;
  print_full(r);
  printf("\n%s%-34s %-22s %4s %7s  %13s  %8s  %8s  %8s  %18s  bits%s\n",
         cli_bold(1), s->o.edges ? "edge" : "pass", "verdict", "runs",
         "changed", "instructions", "fusions", "calls", "kernels", "bytes",
         cli_plain(1));
  for (size_t k = 0; k < r->rows.len; k++)
    if (is_shown(s, &r->rows.data[k])) print_row(r, &r->rows.data[k]);
  print_hidden(s);
  if (!s->o.edges) print_bench(s);
  if (s->a->value[OPT_BISECT]) print_bisection(s);
}

/* ---- JSON ---- */

static void json_numbers(cJSON *j, const char *key,
                         const lw_module_numbers *n) {
  cJSON *o = cJSON_AddObjectToObject(j, key);
  cJSON_AddNumberToObject(o, "instructions", (double)n->instructions);
  cJSON_AddNumberToObject(o, "computations", (double)n->computations);
  cJSON_AddNumberToObject(o, "fusions", (double)n->fusions);
  cJSON_AddNumberToObject(o, "custom_calls", (double)n->custom_calls);
  cJSON_AddNumberToObject(o, "kernels", (double)n->kernels);
  cJSON_AddNumberToObject(o, "bytes", (double)n->bytes);
  cJSON_AddStringToObject(o, "root", n->root);
}

static cJSON *json_row(const lw_ablate_row *w) {
  static const char *const bits[] = {NULL, "SAME", "DIFFER"};
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "name", w->name);
  cJSON_AddStringToObject(o, "verdict", lw_ablate_verdict_name(w->verdict));
  cJSON_AddBoolToObject(o, "pipeline", w->pipeline);
  cJSON_AddNumberToObject(o, "runs", w->runs);
  cJSON_AddNumberToObject(o, "changed_runs", w->changed_runs);
  cJSON_AddNumberToObject(o, "pass_ms", w->pass_ms);
  cJSON_AddBoolToObject(o, "ignored", w->ignored);
  if (w->error) cJSON_AddStringToObject(o, "error", w->error);
  if (w->verdict != LW_ABLATE_MOVED) return o;
  json_numbers(o, "without", &w->without);
  cJSON_AddNumberToObject(o, "added", (double)w->added);
  cJSON_AddNumberToObject(o, "removed", (double)w->removed);
  cJSON_AddNumberToObject(o, "changed", (double)w->changed);
  if (w->bits)
    cJSON_AddStringToObject(o, "bits", bits[w->bits]);
  else
    cJSON_AddNullToObject(o, "bits");
  if (w->bits_text) cJSON_AddStringToObject(o, "bits_text", w->bits_text);
  if (w->time_error) cJSON_AddStringToObject(o, "time_error", w->time_error);
  if (!w->time_verdict) return o;
  cJSON *t = cJSON_AddObjectToObject(o, "time");
  cJSON_AddStringToObject(t, "verdict", w->time_verdict);
  cJSON_AddNumberToObject(t, "ratio", w->ratio);
  cJSON_AddNumberToObject(t, "low", w->ratio_low);
  cJSON_AddNumberToObject(t, "high", w->ratio_high);
  return o;
}

static void json_bisection(const session *s, cJSON *j) {
  const lw_bisection *b = &s->bisection;
  if (!s->bisected) {
    cJSON_AddNullToObject(j, "bisect");
    return;
  }
  cJSON *o = cJSON_AddObjectToObject(j, "bisect");
  cJSON_AddStringToObject(o, "name", s->bisected->name);
  if (b->rewrite)
    cJSON_AddNumberToObject(o, "rewrite", (double)b->rewrite);
  else
    cJSON_AddNullToObject(o, "rewrite");
  if (b->no_fuel) cJSON_AddStringToObject(o, "no_fuel", b->no_fuel);
  cJSON_AddNumberToObject(o, "instructions_was", (double)b->instructions_was);
  cJSON_AddNumberToObject(o, "instructions", (double)b->instructions);
  cJSON_AddNumberToObject(o, "compiles", b->compiles);
  cJSON_AddStringToObject(o, "hlo", b->text);
}

static void print_json(const session *s, cJSON *j) {
  const lw_ablation *r = &s->result;
  cJSON_AddStringToObject(j, "module", r->module);
  cJSON_AddStringToObject(j, "compiler", r->compiler);
  cJSON_AddStringToObject(j, "version", r->version);
  cJSON_AddStringToObject(j, "target", r->target);
  json_numbers(j, "full", &r->full);
  cJSON_AddStringToObject(j, "control", r->control_same ? "SAME" : "MOVED");
  cJSON *replaced = cJSON_AddArrayToObject(j, "replaced");
  for (size_t k = 0; k < r->replaced.len; k++)
    cJSON_AddItemToArray(replaced, cJSON_CreateString(r->replaced.data[k]));
  cJSON *rows = cJSON_AddArrayToObject(j, "rows");
  for (size_t k = 0; k < r->rows.len; k++)
    cJSON_AddItemToArray(rows, json_row(&r->rows.data[k]));
  if (s->a->value[OPT_BISECT]) json_bisection(s, j);
  cli_json_print(j);
}

/* ---- the command ---- */

static void say_timing(const char *name) {
  cli_progress("timing without %s ...", name);
}

static lw_status time_moved(session *s, int64_t pairs) {
  if (!pairs) return NULL;
  return lw_ablate_time(&s->o, &s->result, "/proc/self/exe", pairs, say_timing);
}

/* The first name whose absence changes the output. */
static lw_status bisect(session *s) {
  if (!s->a->value[OPT_BISECT]) return NULL;
  for (size_t k = 0; k < s->result.rows.len && !s->bisected; k++)
    if (s->result.rows.data[k].bits == LW_BITS_DIFFER)
      s->bisected = &s->result.rows.data[k];
  if (!s->bisected) return NULL;
  cli_progress("bisecting %s ...", s->bisected->name);
  return lw_bisect(&s->o, s->bisected, s->in.module, (uint64_t)s->seed,
                   s->in.arena, &s->bisection);
}

static int write_module(const session *s) {
  if (!s->bisected || !s->a->value[OPT_OUTPUT]) return CLI_YES;
  const char *text = s->bisection.text;
  return cli_product(s->a, text, strlen(text));
}

static int run(session *s) {
  int64_t pairs;
  int code = cli_number(s->a, OPT_REPEAT, 1, 100000, 0, &pairs);
  if (!code) code = read_session(s);
  if (code) return code;
  if (pairs && !is_run(s)) {
    cli_error("--repeat: only programs for this CPU can be timed here");
    return CLI_USAGE;
  }
  cli_progress("%s", "compiling ...");
  lw_status st = lw_ablate(&s->o, &s->result);
  if (!st) st = time_moved(s, pairs);
  if (!st) st = bisect(s);
  cli_progress("%s", "");
  if (st) return cli_fail_subject(st);
  cJSON *j = cli_json(s->a);
  if (j)
    print_json(s, j);
  else
    print_text(s);
  return write_module(s);
}

int cli_run_ablate(const cli_args *a) {
  session s = {.a = a};
  if (!a->value[OPT_DISABLE] == !a->value[OPT_EDGES]) {
    cli_error(
        "lawson ablate needs --disable=PASS,... (all: every pass that "
        "runs) or --edges");
    return CLI_USAGE;
  }
  int code = cli_load(a, 0, true, &s.in);
  if (code) return code;
  code = run(&s);
  lw_ablation_free(&s.result);
  lw_scratch_free(s.scratch);
  cli_close(&s.in);
  return code;
}
