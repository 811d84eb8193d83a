/* lawson bench: which of two is faster, and how sure is that?
 *
 * The road: both sides are started once (do they compile, to the same program?
 * are their outputs equal?), a run is opened in the store with all that is
 * needed to continue it, then lab/bench.c measures until the stop rule is done.
 */
#define _GNU_SOURCE /* realpath */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "bench.h"
#include "judge_options.h"
#include "lab/arrays.h"
#include "lab/provenance.h"
#include "lab/scratch.h"
#include "lib/compare.h"
#include "lib/npz.h"
#include "version.h"

enum { BLOCKS = 4, DEFAULT_PAIRS = 480, SAME_RUNS = 10, SAME_SAMPLES = 4 };
static const double SAMPLE_MS = 10;

typedef struct {
  const cli_args *a;
  lw_arena *arena;
  bench_side side[2];
  int n_sides;
  char *folder; /* temporary */
  const char *inputs, *inputs_from;
  char inputs_hash[24];
  int64_t seed;
  lw_stop_rule rule;
  int32_t same; /* processes; 0: a comparison */
  uint64_t order_seed;
  lw_store *store;
  lw_run_data data;
  cJSON *outputs; /* what was found about them */
  cJSON *json;
} session;

/* ---- inputs ---- */

static lw_status write_random(session *s, const char *path) {
  lw_context *ctx = lw_context_new();
  lw_module *m = NULL;
  lw_literal **args;
  int32_t n;
  lw_status st = lw_load_module(ctx, s->side[0].module,
                                s->side[0].args->value[OPT_MODULE], NULL, &m);
  if (!st) {
    st =
        lw_random_inputs(m, (uint64_t)s->seed, s->arena, &args, &n, NULL, NULL);
    if (!st)
      st = lw_arrays_write(path, 'p', (const lw_literal *const *)args, n);
    lw_module_free(m);
  }
  lw_context_free(ctx);
  return st;
}

/* Every process of both sides reads one and the same file. */
static int find_inputs(session *s, const char *given) {
  if (given) {
    char full[PATH_MAX];
    s->inputs = realpath(given, full)
                    ? lw_arena_strdup(s->arena, full, strlen(full))
                    : given;
    s->inputs_from = s->inputs;
  } else {
    s->inputs = lw_arena_printf(s->arena, "%s/inputs.npz", s->folder);
    s->inputs_from = "random";
    lw_status st = write_random(s, s->inputs);
    if (st) return cli_fail(st);
  }
  return bench_hash_file(s->inputs, s->inputs_hash);
}

/* ---- are the outputs equal? ---- */

typedef struct {
  lw_arena *arena;
  lw_npz *of[2];
  const lw_module *m;
  int number;
  int64_t different, elements, max_ulp;
  bool close;
} output_check;

static lw_status check_leaves(output_check *c, const lw_shape *s) {
  if (lw_shape_is_tuple(s)) {
    for (int32_t k = 0; k < s->n_elems; k++)
      LW_TRY(check_leaves(c, s->elems[k]));
    return NULL;
  }
  if (!lw_shape_is_array(s)) return NULL;
  char key[16];
  snprintf(key, sizeof key, "o%d", c->number++);
  lw_literal *x, *y;
  LW_TRY(lw_npz_read(c->of[0], key, s, c->arena, &x));
  LW_TRY(lw_npz_read(c->of[1], key, s, c->arena, &y));
  lw_value_diff d;
  LW_TRY(lw_literal_diff(x, y, false, &d));
  lw_prim t = lw_prim_part(s->type), narrow = cli_narrowest_float(c->m);
  c->close &= lw_close_to_peer(t, narrow == LW_PRIM_INVALID ? t : narrow, &d);
  c->different += d.different;
  c->elements += d.elements;
  if (d.max_ulp > c->max_ulp) c->max_ulp = d.max_ulp;
  return NULL;
}

static lw_status compare_outputs(session *s, output_check *c) {
  lw_context *ctx = lw_context_new();
  lw_module *m = NULL;
  lw_status st = lw_load_module(ctx, s->side[0].module,
                                s->side[0].args->value[OPT_MODULE], NULL, &m);
  c->m = m;
  for (int k = 0; k < 2 && !st; k++)
    st = lw_npz_open(s->side[k].outputs, &c->of[k]);
  if (!st) st = check_leaves(c, m->entry->root->shape);
  for (int k = 0; k < 2; k++)
    if (c->of[k]) lw_npz_close(c->of[k]);
  if (m) lw_module_free(m);
  lw_context_free(ctx);
  return st;
}

static void check_outputs(session *s) {
  output_check c = {.arena = s->arena, .close = true};
  lw_status st = compare_outputs(s, &c);
  s->outputs = cJSON_CreateObject();
  if (st) {
    cli_note("outputs cannot be compared: %s", lw_status_message(st));
    cJSON_AddStringToObject(s->outputs, "error", lw_status_message(st));
    lw_status_free(st);
    return;
  }
  cJSON_AddNumberToObject(s->outputs, "elements", (double)c.elements);
  cJSON_AddNumberToObject(s->outputs, "different", (double)c.different);
  cJSON_AddNumberToObject(s->outputs, "max_ulp", (double)c.max_ulp);
  cJSON_AddBoolToObject(s->outputs, "close", c.close);
  if (!c.close)
    cli_note(
        "the outputs are FAR apart (%lld of %lld differ): the sides do "
        "not compute the same",
        (long long)c.different, (long long)c.elements);
}

/* ---- what is kept with the run ---- */

static cJSON *words_json(const bench_side *s) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "module", s->module);
  cJSON *list = cJSON_AddArrayToObject(o, "options");
  for (size_t k = 0; k < s->words.len; k++)
    cJSON_AddItemToArray(list, cJSON_CreateString(s->words.data[k]));
  cJSON_AddNumberToObject(o, "runs_a_sample", (double)s->runs);
  return o;
}

static char *config_text(const session *s) {
  cJSON *o = cJSON_CreateObject();
  cJSON *rule = cJSON_AddObjectToObject(o, "rule");
  cJSON_AddNumberToObject(rule, "alpha", s->rule.alpha);
  cJSON_AddNumberToObject(rule, "margin", s->rule.margin);
  cJSON_AddNumberToObject(rule, "max_processes", s->rule.max_processes);
  cJSON_AddNumberToObject(rule, "blocks_a_process", s->rule.blocks_a_process);
  char seed[24];
  snprintf(seed, sizeof seed, "%llu", (unsigned long long)s->order_seed);
  cJSON_AddStringToObject(o, "order_seed", seed);
  cJSON_AddStringToObject(o, "inputs", s->inputs_from);
  cJSON_AddNumberToObject(o, "seed", (double)s->seed);
  if (s->same) cJSON_AddNumberToObject(o, "same", s->same);
  for (int k = 0; k < s->n_sides; k++)
    cJSON_AddItemToObject(o, k ? "b" : "a", words_json(&s->side[k]));
  char *text = cJSON_PrintUnformatted(o);
  cJSON_Delete(o);
  return text;
}

static char *provenance_text(const session *s) {
  cJSON *o = lw_provenance_now(LW_VERSION);
  cJSON *inputs = cJSON_AddObjectToObject(o, "inputs");
  cJSON_AddStringToObject(inputs, "from", s->inputs_from);
  cJSON_AddStringToObject(inputs, "hash", s->inputs_hash);
  if (s->outputs)
    cJSON_AddItemToObject(o, "outputs", cJSON_Duplicate(s->outputs, true));
  for (int k = 0; k < s->n_sides; k++) {
    const bench_side *x = &s->side[k];
    cJSON *side = cJSON_AddObjectToObject(o, k ? "b" : "a");
    cJSON_AddStringToObject(side, "module", x->module);
    cJSON_AddStringToObject(side, "module_hash", x->file_hash);
    cJSON_AddStringToObject(side, "optimised_fingerprint", x->fingerprint);
    cJSON *ready = cJSON_Parse(x->ready);
    if (ready) cJSON_AddItemToObject(side, "worker", ready);
  }
  char *text = cJSON_PrintUnformatted(o);
  cJSON_Delete(o);
  return text;
}

static void side_title(lw_buf *b, const bench_side *s) {
  const char *slash = strrchr(s->module, '/');
  lw_buf_str(b, slash ? slash + 1 : s->module);
  for (size_t k = 0; k < s->words.len; k++)
    lw_buf_printf(b, " %s", s->words.data[k]);
}

static int open_store(session *s) {
  lw_buf path = {0};
  lw_status st = lw_store_path(s->a->value[OPT_DB], &path);
  if (!st) st = lw_store_open(lw_buf_cstr(&path), &s->store);
  lw_buf_free(&path);
  return st ? cli_fail(st) : CLI_YES;
}

static int open_run(session *s) {
  char now[32];
  lw_now_text(now);
  lw_buf title = {0};
  side_title(&title, &s->side[0]);
  if (s->n_sides > 1) {
    lw_buf_str(&title, " vs ");
    side_title(&title, &s->side[1]);
  }
  char *config = config_text(s), *provenance = provenance_text(s);
  lw_run r = {.kind = s->same ? "same" : "compare", .status = "running"};
  r.created = lw_arena_strdup(s->arena, now, strlen(now));
  r.title = lw_arena_strdup(s->arena, lw_buf_cstr(&title), title.len);
  r.config = lw_arena_strdup(s->arena, config, strlen(config));
  r.provenance = lw_arena_strdup(s->arena, provenance, strlen(provenance));
  cJSON_free(config);
  cJSON_free(provenance);
  lw_buf_free(&title);
  lw_status st = lw_store_add_run(s->store, &r, &r.id);
  s->data = (lw_run_data){.run = r};
  return st ? cli_fail(st) : CLI_YES;
}

/* ---- measuring ---- */

static void progress(void *ctx, const lw_bench_progress *p) {
  const session *s = ctx;
  if (p->so_far) {
    const lw_estimate *e = &p->so_far->estimate;
    cli_progress("run %lld: process %d of %d, b/a %.4f in %.4f..%.4f",
                 (long long)s->data.run.id, p->rounds, p->of, exp(e->center),
                 exp(e->low), exp(e->high));
  } else {
    cli_progress("run %lld: process %d of %d", (long long)s->data.run.id,
                 p->rounds, p->of);
  }
}

static const char *status_word(const session *s, const lw_run_results *r) {
  if (s->same) return "done";
  return r->main.verdict == LW_UNDECIDED ? "undecided" : "decided";
}

static int show(session *s, const lw_run_results *r) {
  const lw_run *run = &s->data.run;
  if (s->json) {
    cJSON_AddNumberToObject(s->json, "id", (double)run->id);
    cJSON_AddItemToObject(s->json, "result", lw_run_results_json(&s->data, r));
    if (s->outputs)
      cJSON_AddItemToObject(s->json, "outputs",
                            cJSON_Duplicate(s->outputs, true));
    return CLI_YES;
  }
  lw_buf b = {0};
  lw_run_results_print(&b, &s->data, r);
  cli_out(lw_buf_cstr(&b));
  lw_buf_free(&b);
  if (!s->same && r->main.verdict == LW_UNDECIDED)
    printf("more pairs: lawson bench --resume=%lld\n", (long long)run->id);
  printf("kept as run %lld: lawson results show %lld\n", (long long)run->id,
         (long long)run->id);
  return CLI_YES;
}

static int finish(session *s) {
  lw_run_results r;
  lw_status st = lw_run_results_of(&s->data, &r);
  if (st) return cli_fail(st);
  cJSON *summary = lw_run_results_json(&s->data, &r);
  char *text = cJSON_PrintUnformatted(summary);
  st = lw_store_finish(s->store, s->data.run.id, status_word(s, &r), text);
  cJSON_free(text);
  cJSON_Delete(summary);
  if (st) return cli_fail(st);
  int code = show(s, &r);
  return code || s->same ? code : cli_verdict_code(s->a, r.main.verdict);
}

static int measure(session *s) {
  lw_bench b = {.store = s->store,
                .rule = s->rule,
                .control = true,
                .seed = s->order_seed,
                .timeout_ms = BENCH_TIMEOUT_MS,
                .progress = progress,
                .ctx = s};
  for (int k = 0; k < s->n_sides; k++) {
    b.side[k].argv = s->side[k].argv.data;
    b.side[k].runs = s->side[k].runs;
  }
  lw_status st =
      s->same ? lw_bench_same(&b, s->same, SAME_SAMPLES, &s->data, s->arena)
              : lw_bench_compare(&b, &s->data, s->arena);
  cli_progress("%s", "");
  if (st) {
    cli_note("run %lld keeps what was measured: lawson bench --resume=%lld",
             (long long)s->data.run.id, (long long)s->data.run.id);
    return cli_fail(st);
  }
  return finish(s);
}

/* ---- from a command line ---- */

static const char *absolute(session *s, const char *path) {
  char full[PATH_MAX];
  if (!realpath(path, full)) return path;
  return lw_arena_strdup(s->arena, full, strlen(full));
}

static int read_rule(session *s) {
  const cli_args *a = s->a;
  int64_t pairs;
  s->rule.alpha = 0.05;
  int code = cli_number(a, OPT_PAIRS, 4, 1000000, DEFAULT_PAIRS, &pairs);
  if (!code) code = cli_fraction(a, OPT_MARGIN, 0.03, 0.99, &s->rule.margin);
  if (!code) code = cli_fraction(a, OPT_ALPHA, 0.05, 0.5, &s->rule.alpha);
  if (!code) code = cli_check_fail_if(a);
  s->rule.blocks_a_process = pairs < 12 * BLOCKS ? 1 : BLOCKS;
  int64_t of_one = 2 * s->rule.blocks_a_process;
  s->rule.max_processes = (int32_t)((pairs + of_one - 1) / of_one);
  return code;
}

static int read_same(session *s) {
  const char *given = s->a->value[OPT_SAME];
  if (!given) return CLI_YES;
  int64_t n = SAME_RUNS;
  if (*given) {
    int code = cli_number(s->a, OPT_SAME, 1, 10000, SAME_RUNS, &n);
    if (code) return code;
  }
  s->same = (int32_t)n;
  if (!s->a->value[OPT_B] && s->a->n_positional < 2) return CLI_YES;
  cli_error("--same takes one side: a's");
  return CLI_USAGE;
}

static int read_sides(session *s) {
  const cli_args *a = s->a;
  s->n_sides = s->same ? 1 : 2;
  for (int k = 0; k < s->n_sides; k++) {
    bench_side *x = &s->side[k];
    const char *path = a->positional[k < a->n_positional ? k : 0];
    if (!strcmp(path, "-")) {
      cli_error("every process reads the module: - cannot be one");
      return CLI_USAGE;
    }
    x->letter = (char)('a' + k);
    x->module = absolute(s, path);
    bench_common_words(a, s->arena, x);
    int code = bench_split_words(a->value[k ? OPT_B : OPT_A], s->arena, x);
    if (!code) code = bench_prepare(x, NULL, s->folder, s->arena);
    if (code) return code;
  }
  return CLI_YES;
}

static int prepare_sides(session *s, const char *inputs) {
  int code = find_inputs(s, inputs);
  for (int k = 0; k < s->n_sides && !code; k++)
    code = bench_prepare(&s->side[k], s->inputs, s->folder, s->arena);
  return code;
}

static int say_equal(session *s) {
  if (s->json) {
    cJSON_AddStringToObject(s->json, "verdict", "EQUAL MODULES");
    cJSON_AddStringToObject(s->json, "fingerprint", s->side[0].fingerprint);
  } else {
    printf(
        "EQUAL MODULES: both sides compile to one and the same program (%s); "
        "there is nothing to time (--anyway times it)\n",
        s->side[0].fingerprint);
  }
  return CLI_YES;
}

static uint64_t fresh_seed(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  uint64_t mixed = lw_hash_bytes(&t, sizeof t, (uint64_t)getpid());
  return mixed >> 12; /* JSON's numbers could hold it too */
}

static int bench_new(session *s) {
  int code = read_rule(s);
  if (!code) code = read_same(s);
  if (!code) code = cli_number(s->a, OPT_SEED, 0, INT64_MAX, 0, &s->seed);
  if (!code) code = read_sides(s);
  if (!code) code = prepare_sides(s, s->a->value[OPT_INPUTS]);
  for (int k = 0; k < s->n_sides && !code; k++)
    code = bench_try(&s->side[k], s->folder, SAMPLE_MS, s->arena);
  cli_progress("%s", "");
  if (code) return code;
  if (!s->same) {
    bool equal = bench_same_program(&s->side[0], &s->side[1]);
    if (equal && !s->a->value[OPT_ANYWAY]) return say_equal(s);
    check_outputs(s);
    /* Sides alike in time take equally many calls a sample. */
    if (equal) s->side[1].runs = s->side[0].runs;
  }
  s->order_seed = fresh_seed();
  code = open_store(s);
  if (!code) code = open_run(s);
  return code ? code : measure(s);
}

/* ---- from a run ---- */

static const char *text_in(const session *s, const cJSON *o, const char *name) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
  if (!cJSON_IsString(v)) return NULL;
  return lw_arena_strdup(s->arena, v->valuestring, strlen(v->valuestring));
}

static double number_in(const cJSON *o, const char *name) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
  return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

static int restore_side(session *s, int k, const cJSON *o) {
  bench_side *x = &s->side[k];
  x->letter = (char)('a' + k);
  x->module = text_in(s, o, "module");
  x->runs = (int64_t)number_in(o, "runs_a_sample");
  if (!x->module || x->runs < 1) return CLI_BAD_INPUT;
  const cJSON *word;
  cJSON_ArrayForEach(word, cJSON_GetObjectItemCaseSensitive(o, "options")) {
    if (!cJSON_IsString(word)) continue;
    lw_vec_push(&x->words, lw_arena_strdup(s->arena, word->valuestring,
                                           strlen(word->valuestring)));
  }
  return bench_prepare(x, NULL, s->folder, s->arena);
}

static int restore(session *s, const cJSON *config) {
  const char *seed = text_in(s, config, "order_seed");
  s->seed = (int64_t)number_in(config, "seed");
  s->same = (int32_t)number_in(config, "same");
  s->n_sides = s->same ? 1 : 2;
  s->order_seed = seed ? strtoull(seed, NULL, 10) : 0;
  lw_status st = lw_run_rule(&s->data.run, &s->rule);
  if (st) return cli_fail(st);
  int code = CLI_YES;
  for (int k = 0; k < s->n_sides && !code; k++)
    code = restore_side(
        s, k, cJSON_GetObjectItemCaseSensitive(config, k ? "b" : "a"));
  if (code) {
    cli_error("run %lld cannot be continued: its config is incomplete",
              (long long)s->data.run.id);
    return code;
  }
  const char *from = text_in(s, config, "inputs");
  return prepare_sides(s, from && strcmp(from, "random") ? from : NULL);
}

/* More samples belong to a run only where all else is as it was. */
static int check_unmoved(session *s) {
  cJSON *then = cJSON_Parse(s->data.run.provenance);
  cJSON *now = lw_provenance_now(LW_VERSION);
  char *moved = lw_provenance_moved(then, now);
  int code = CLI_YES;
  if (*moved) {
    cli_error("run %lld was begun elsewhere: other %s; start a new one",
              (long long)s->data.run.id, moved);
    code = CLI_BAD_INPUT;
  }
  for (int k = 0; k < s->n_sides && !code; k++) {
    const cJSON *side = cJSON_GetObjectItemCaseSensitive(then, k ? "b" : "a");
    const char *hash = text_in(s, side, "module_hash");
    if (hash && !strcmp(hash, s->side[k].file_hash)) continue;
    cli_error("%s is not what it was when run %lld was begun",
              s->side[k].module, (long long)s->data.run.id);
    code = CLI_BAD_INPUT;
  }
  const char *hash =
      text_in(s, cJSON_GetObjectItemCaseSensitive(then, "inputs"), "hash");
  if (!code && hash && strcmp(hash, s->inputs_hash)) {
    cli_error("the inputs are not what they were");
    code = CLI_BAD_INPUT;
  }
  free(moved);
  cJSON_Delete(then);
  cJSON_Delete(now);
  return code;
}

static int bench_resume(session *s) {
  int64_t id;
  int code = cli_check_fail_if(s->a);
  if (!code) code = open_store(s);
  if (code) return code;
  lw_status st = lw_store_find(s->store, s->a->value[OPT_RESUME], &id);
  if (!st) st = lw_store_load(s->store, id, s->arena, &s->data);
  if (st) return cli_fail(st);
  const char *kind = s->data.run.kind;
  if (strcmp(kind, "compare") && strcmp(kind, "same")) {
    cli_error("run %lld was not measured here, but imported", (long long)id);
    return CLI_BAD_INPUT;
  }
  if (!strcmp(s->data.run.status, "decided") ||
      !strcmp(s->data.run.status, "done")) {
    cli_note("run %lld is decided: its rule takes no more pairs",
             (long long)id);
    return finish(s);
  }
  cJSON *config = cJSON_Parse(s->data.run.config);
  code = restore(s, config);
  cJSON_Delete(config);
  if (!code) code = check_unmoved(s);
  return code ? code : measure(s);
}

/* ---- */

static int check_arguments(const cli_args *a) {
  bool resume = a->value[OPT_RESUME] != NULL;
  if (resume == (a->n_positional == 0)) return CLI_YES;
  cli_error(resume ? "--resume takes no module: the run has its own"
                   : "lawson bench needs MODULE");
  return CLI_USAGE;
}

static void close_session(session *s) {
  for (int k = 0; k < 2; k++) bench_side_free(&s->side[k]);
  lw_store_close(s->store);
  lw_run_data_free(&s->data);
  cJSON_Delete(s->outputs);
  lw_arena_free(s->arena);
  lw_scratch_free(s->folder);
}

int cli_run_bench(const cli_args *a) {
  int code = check_arguments(a);
  if (code) return code;
  if (a->value[OPT_WORKER]) return cli_bench_worker(a);
  session s = {.a = a, .arena = lw_arena_new(), .json = cli_json(a)};
  lw_status st = lw_scratch_new(&s.folder);
  code = st ? cli_fail(st) : CLI_YES;
  if (!code) code = a->value[OPT_RESUME] ? bench_resume(&s) : bench_new(&s);
  if (s.json && (code == CLI_YES || code == CLI_NO)) {
    cli_json_print(s.json);
  } else {
    cJSON_Delete(s.json);
  }
  close_session(&s);
  return code;
}
