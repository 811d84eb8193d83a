/* Measuring (bench.h).
 *
 * A round starts a fresh process a side, in random order: a, b, and c, the
 * control, which runs a's program again (an A/A pair in every round shows what
 * this machine calls a difference when there is none). In a block each side
 * gives one sample in a random order and one more in the mirrored order, so a
 * steady drift cancels out of every pair of sides. One process works at a
 * time; the others wait for their turn. The environment's size is random too:
 * where a process's stack starts moves its times (Mytkowicz et al. 2009).
 */
#include "lab/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/worker.h"

enum { SIDES = 3, PADDING = 4096 };

typedef struct {
  const lw_bench *b;
  lw_run_data *d;
  lw_arena *a;
  lw_rng64 rng;
  int32_t round;
  lw_worker *worker[SIDES];
} session;

static const char letters[SIDES] = {'a', 'b', 'c'};

/* c runs a's program. */
static const lw_bench_side *program(const lw_bench *b, int side) {
  return &b->side[side == 1];
}

static void shuffle(lw_rng64 *g, int *x, int n) {
  for (int k = n - 1; k > 0; k--) {
    int j = lw_rng64_below(g, k + 1), v = x[k];
    x[k] = x[j];
    x[j] = v;
  }
}

/* ---- processes ---- */

static double number_in(const cJSON *j, const char *name) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(j, name);
  return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

static lw_status kept(lw_status st) {
  if (lw_status_code(st) != LW_ALREADY_EXISTS) return st;
  lw_status_free(st);
  return lw_error(LW_ALREADY_EXISTS, "another bench continues this run");
}

/* Versions and devices of a side stay what they were in its first process. */
static lw_status check_unmoved(const session *s, char side, const cJSON *now) {
  static const char *const names[] = {"compiler", "jax",      "jaxlib",
                                      "device",   "platform", "threads"};
  const lw_run_process *p = NULL;
  for (size_t k = 0; k < s->d->processes.len && !p; k++)
    if (s->d->processes.data[k].side == side) p = &s->d->processes.data[k];
  if (!p || !p->info) return NULL;
  cJSON *then = cJSON_Parse(p->info);
  lw_status st = NULL;
  for (size_t k = 0; k < sizeof names / sizeof *names && !st; k++) {
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(then, names[k]);
    const cJSON *y = cJSON_GetObjectItemCaseSensitive(now, names[k]);
    if ((x || y) && !cJSON_Compare(x, y, true))
      st = lw_error(LW_FAILED_PRECONDITION, "its %s is not what it was",
                    names[k]);
  }
  cJSON_Delete(then);
  return st;
}

static lw_status keep_process(session *s, int side, int32_t position,
                              const char *ready) {
  cJSON *j = cJSON_Parse(ready);
  if (!j)
    return lw_error(LW_INVALID_ARGUMENT, "side %c: the worker said '%.80s'",
                    letters[side], ready);
  lw_run_process p = {.round = s->round,
                      .side = letters[side],
                      .position = position,
                      .load_ms = number_in(j, "load_ms"),
                      .compile_ms = number_in(j, "compile_ms"),
                      .first_ms = number_in(j, "first_ms"),
                      .steady_ms = number_in(j, "steady_ms")};
  p.info = lw_arena_strdup(s->a, ready, strlen(ready));
  lw_status st = check_unmoved(s, letters[side], j);
  cJSON_Delete(j);
  if (st) return st;
  LW_TRY(kept(lw_store_add_process(s->b->store, s->d->run.id, &p)));
  lw_vec_push(&s->d->processes, p);
  return NULL;
}

static lw_status start_one(session *s, int side, int32_t position) {
  static const char name[] = "LAWSON_PADDING=";
  char pad[sizeof name + PADDING];
  size_t n = (size_t)lw_rng64_below(&s->rng, PADDING);
  memcpy(pad, name, sizeof name - 1);
  memset(pad + sizeof name - 1, 'x', n);
  pad[sizeof name - 1 + n] = 0;
  const char *env[] = {pad, NULL};
  lw_buf ready = {0};
  lw_status st = lw_worker_start(program(s->b, side)->argv, env,
                                 s->b->timeout_ms, &s->worker[side], &ready);
  if (!st) st = keep_process(s, side, position, lw_buf_cstr(&ready));
  lw_buf_free(&ready);
  return st ? lw_status_annotate(st, "side %c", letters[side]) : NULL;
}

static void stop_all(session *s) {
  for (int k = 0; k < SIDES; k++) {
    lw_worker_stop(s->worker[k]);
    s->worker[k] = NULL;
  }
}

/* ---- samples ---- */

static lw_status take_sample(session *s, int side, lw_sample *out) {
  char question[40];
  snprintf(question, sizeof question, "sample %lld",
           (long long)program(s->b, side)->runs);
  lw_buf answer = {0};
  lw_status st =
      lw_worker_ask(s->worker[side], question, s->b->timeout_ms, &answer);
  long long runs = 0;
  if (!st && (sscanf(lw_buf_cstr(&answer), "%lf %lf %lf %lld", &out->median_ns,
                     &out->min_ns, &out->max_ns, &runs) != 4 ||
              !(out->median_ns > 0)))
    st = lw_error(LW_INVALID_ARGUMENT, "the worker answered '%.80s'",
                  lw_buf_cstr(&answer));
  lw_buf_free(&answer);
  out->side = letters[side];
  out->runs = runs;
  return st ? lw_status_annotate(st, "side %c", letters[side]) : NULL;
}

static lw_status run_block(session *s, int32_t number, const int *order,
                           int32_t n) {
  char now[32];
  lw_now_text(now);
  lw_block block = {
      .round = s->round, .number = number, .load = lw_load_now(), .n = n};
  block.started = lw_arena_strdup(s->a, now, strlen(now));
  block.samples = LW_NEW_ARRAY(s->a, lw_sample, n);
  for (int32_t k = 0; k < n; k++) {
    block.samples[k].slot = k;
    LW_TRY(take_sample(s, order[k], &block.samples[k]));
  }
  LW_TRY(kept(lw_store_add_block(s->b->store, s->d->run.id, &block)));
  lw_vec_push(&s->d->blocks, block);
  return NULL;
}

static lw_status run_round(session *s) {
  int sides[SIDES] = {0, 1, 2}, order[2 * SIDES];
  int n = s->b->control ? 3 : 2;
  shuffle(&s->rng, sides, n);
  for (int k = 0; k < n; k++) LW_TRY(start_one(s, sides[k], k));
  for (int32_t block = 1; block <= s->b->rule.blocks_a_process; block++) {
    shuffle(&s->rng, sides, n);
    for (int k = 0; k < n; k++) order[k] = order[2 * n - 1 - k] = sides[k];
    LW_TRY(run_block(s, block, order, 2 * n));
  }
  return NULL;
}

/* ---- rounds and looks ---- */

int32_t lw_run_rounds(const lw_run_data *d) {
  int32_t n = 0;
  for (size_t k = 0; k < d->blocks.len; k++)
    n += k == 0 || d->blocks.data[k].round != d->blocks.data[k - 1].round;
  return n;
}

static int32_t last_round(const lw_run_data *d) {
  int32_t last = 0;
  for (size_t k = 0; k < d->blocks.len; k++)
    if (d->blocks.data[k].round > last) last = d->blocks.data[k].round;
  for (size_t k = 0; k < d->processes.len; k++)
    if (d->processes.data[k].round > last) last = d->processes.data[k].round;
  return last;
}

/* The stage that has work left after so many rounds. */
static int32_t stage_of(const lw_stop_rule *r, int32_t rounds) {
  int32_t stage = 0;
  for (int64_t end = r->max_processes; rounds >= end && stage < 20; end *= 2)
    stage++;
  return stage;
}

static lw_status judge_run(const lw_run_data *d, char side, double alpha,
                           double margin, lw_judgement *out) {
  lw_timings t = {0};
  lw_run_timings(d, side, &t);
  lw_status st = lw_judge(&t, alpha, margin, out);
  lw_vec_free(&t);
  return st;
}

static const lw_look *next_look(const lw_look *looks, int32_t n,
                                int32_t rounds) {
  for (int32_t k = 0; k < n; k++)
    if (looks[k].processes >= rounds) return &looks[k];
  return &looks[n - 1];
}

static bool was_taken(const lw_run_data *d, int32_t rounds) {
  for (size_t k = 0; k < d->looks.len; k++)
    if (d->looks.data[k].rounds == rounds) return true;
  return false;
}

static lw_status take_look(session *s, const lw_judgement *j, int32_t rounds) {
  const lw_estimate *e = &j->estimate;
  lw_look_record l = {rounds, e->alpha, e->center,
                      e->low, e->high,  lw_verdict_name(j->verdict)};
  LW_TRY(lw_store_add_look(s->b->store, s->d->run.id, &l));
  lw_vec_push(&s->d->looks, l);
  return NULL;
}

static void report(session *s, int32_t rounds, int32_t of,
                   const lw_judgement *j) {
  if (!s->b->progress) return;
  lw_bench_progress p = {rounds, of, j ? j->pairs : 0, NULL};
  if (j && j->estimate.processes > 1) p.so_far = j;
  s->b->progress(s->b->ctx, &p);
}

/* Judges what there is; *ended when the rule says so. */
static lw_status after_round(session *s, const lw_look *looks, int32_t n,
                             bool *ended) {
  int32_t rounds = lw_run_rounds(s->d), last = looks[n - 1].processes;
  if (!rounds) return NULL;
  const lw_look *look = next_look(looks, n, rounds);
  lw_judgement j;
  LW_TRY(judge_run(s->d, 'b', look->alpha, s->b->rule.margin, &j));
  report(s, rounds, last, &j);
  if (look->processes == rounds) {
    if (!was_taken(s->d, rounds)) LW_TRY(take_look(s, &j, rounds));
    *ended = j.verdict != LW_UNDECIDED;
  }
  if (rounds >= last) *ended = true;
  return NULL;
}

lw_status lw_bench_compare(const lw_bench *b, lw_run_data *d, lw_arena *a) {
  session s = {.b = b, .d = d, .a = a};
  lw_look looks[LW_MAX_LOOKS];
  int32_t stage = stage_of(&b->rule, lw_run_rounds(d));
  int32_t n = lw_stop_looks(&b->rule, stage, looks);
  bool ended = false;
  lw_status st = after_round(&s, looks, n, &ended);
  while (!st && !ended) {
    s.round = last_round(d) + 1;
    s.rng.state = b->seed + 0x9e3779b9u * (uint64_t)s.round;
    st = run_round(&s);
    stop_all(&s);
    if (!st) st = after_round(&s, looks, n, &ended);
  }
  return st;
}

lw_status lw_bench_same(const lw_bench *b, int32_t n, int32_t samples,
                        lw_run_data *d, lw_arena *a) {
  session s = {.b = b, .d = d, .a = a};
  int *order = LW_NEW_ARRAY(a, int, samples);
  lw_status st = NULL;
  while (!st && lw_run_rounds(d) < n) {
    report(&s, lw_run_rounds(d), n, NULL);
    s.round = last_round(d) + 1;
    s.rng.state = b->seed + (uint64_t)s.round;
    st = start_one(&s, 0, 0);
    if (!st) st = run_block(&s, 1, order, samples);
    stop_all(&s);
  }
  return st;
}

/* ---- what the samples say ---- */

void lw_run_timings(const lw_run_data *d, char side, lw_timings *out) {
  for (size_t k = 0; k < d->blocks.len; k++) {
    const lw_block *b = &d->blocks.data[k];
    for (int32_t i = 0; i < b->n; i++) {
      const lw_sample *x = &b->samples[i];
      if (x->side != 'a' && x->side != side) continue;
      int64_t half = 2 * i >= b->n;
      lw_timing t = {.pair = (int64_t)(2 * k) + half,
                     .block = (int64_t)k,
                     .process = b->round,
                     .side = x->side == side,
                     .value = x->median_ns};
      lw_vec_push(out, t);
    }
  }
}

/* Timings from elsewhere: no halves, blocks may hold any number. */
static void plain_timings(const lw_run_data *d, lw_timings *out) {
  lw_run_timings(d, 'b', out);
  for (size_t k = 0; k < out->len; k++) out->data[k].pair = out->data[k].block;
}

lw_status lw_run_rule(const lw_run *r, lw_stop_rule *out) {
  cJSON *j = cJSON_Parse(r->config);
  const cJSON *rule = cJSON_GetObjectItemCaseSensitive(j, "rule");
  double alpha = number_in(rule, "alpha"), margin = number_in(rule, "margin");
  double most = number_in(rule, "max_processes");
  double blocks = number_in(rule, "blocks_a_process");
  cJSON_Delete(j);
  bool good = alpha > 0 && alpha < 1 && margin > 0 && margin < 1 && most >= 2 &&
              most < 1e8 && blocks >= 1 && blocks < 1e6;
  if (!good)
    return lw_error(LW_INVALID_ARGUMENT, "run %lld: its config has no rule",
                    (long long)r->id);
  *out = (lw_stop_rule){alpha, margin, (int32_t)most, (int32_t)blocks};
  return NULL;
}

/* A time that each process has once: one pair a round. */
static lw_status judge_once(const lw_run_data *d, bool compile, double alpha,
                            double margin, lw_judgement *out) {
  lw_timings t = {0};
  for (size_t k = 0; k < d->processes.len; k++) {
    const lw_run_process *p = &d->processes.data[k];
    for (size_t i = 0; i < d->processes.len && p->side == 'a'; i++) {
      const lw_run_process *q = &d->processes.data[i];
      if (q->round != p->round || q->side != 'b') continue;
      double x = compile ? p->compile_ms : p->first_ms;
      double y = compile ? q->compile_ms : q->first_ms;
      if (!(x > 0 && y > 0)) continue;
      lw_timing a = {p->round, p->round, p->round, 0, x};
      lw_timing b = {p->round, p->round, p->round, 1, y};
      lw_vec_push(&t, a);
      lw_vec_push(&t, b);
    }
  }
  lw_status st = t.len ? lw_judge(&t, alpha, margin, out) : NULL;
  lw_vec_free(&t);
  return st;
}

static void spread_of_processes(const lw_run_data *d, lw_spread *out) {
  LW_VEC(double) medians = {0}, one = {0};
  for (size_t k = 0; k < d->blocks.len; k++) {
    const lw_block *b = &d->blocks.data[k];
    one.len = 0;
    for (int32_t i = 0; i < b->n; i++)
      lw_vec_push(&one, b->samples[i].median_ns);
    if (one.len)
      lw_vec_push(&medians, lw_median_of(one.data, (int32_t)one.len));
  }
  lw_spread_of(medians.data, (int32_t)medians.len, out);
  lw_vec_free(&medians);
  lw_vec_free(&one);
}

static bool is_kind(const lw_run_data *d, const char *kind) {
  return !strcmp(d->run.kind, kind);
}

static lw_status samples_results(const lw_run_data *d, lw_run_results *out) {
  lw_timings t = {0};
  plain_timings(d, &t);
  lw_status st = lw_judge(&t, out->alpha, out->margin, &out->main);
  out->at_look = true;
  lw_vec_free(&t);
  return st;
}

static lw_status compare_results(const lw_run_data *d, const lw_stop_rule *rule,
                                 lw_run_results *out) {
  lw_look looks[LW_MAX_LOOKS];
  int32_t stage =
      out->rounds > rule->max_processes ? stage_of(rule, out->rounds - 1) : 0;
  int32_t n = lw_stop_looks(rule, stage, looks);
  out->max_rounds = looks[n - 1].processes;
  if (!out->rounds) return NULL;
  const lw_look *look = next_look(looks, n, out->rounds);
  out->alpha = look->alpha;
  out->at_look = look->processes == out->rounds;
  LW_TRY(judge_run(d, 'b', look->alpha, rule->margin, &out->main));
  lw_timings t = {0};
  lw_run_timings(d, 'c', &t);
  bool control = false;
  for (size_t k = 0; k < t.len; k++) control |= t.data[k].side == 1;
  lw_status st =
      control ? lw_judge(&t, look->alpha, rule->margin, &out->control) : NULL;
  lw_vec_free(&t);
  if (!st) st = judge_once(d, true, rule->alpha, rule->margin, &out->compile);
  if (!st) st = judge_once(d, false, rule->alpha, rule->margin, &out->first);
  return st;
}

lw_status lw_run_results_of(const lw_run_data *d, lw_run_results *out) {
  *out = (lw_run_results){.rounds = lw_run_rounds(d)};
  out->main.verdict = out->control.verdict = LW_NO_COMPARISON;
  out->compile.verdict = out->first.verdict = LW_NO_COMPARISON;
  if (is_kind(d, "same")) {
    spread_of_processes(d, &out->lone);
    return NULL;
  }
  lw_stop_rule rule;
  LW_TRY(lw_run_rule(&d->run, &rule));
  out->alpha = rule.alpha;
  out->margin = rule.margin;
  return is_kind(d, "samples") ? samples_results(d, out)
                               : compare_results(d, &rule, out);
}

const char *lw_run_verdict(const lw_run_data *d, const lw_run_results *r) {
  if (is_kind(d, "same")) return "SPREAD";
  if (!r->at_look && r->rounds) return lw_verdict_name(LW_UNDECIDED);
  return lw_verdict_name(r->main.verdict);
}

/* ---- showing ---- */

static void add_judgement(cJSON *into, const char *name,
                          const lw_judgement *j) {
  if (j->verdict == LW_NO_COMPARISON && !j->side[0].n && !j->side[1].n) return;
  cJSON *o = cJSON_AddObjectToObject(into, name);
  lw_judgement_json(j, o);
}

cJSON *lw_run_results_json(const lw_run_data *d, const lw_run_results *r) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "verdict", lw_run_verdict(d, r));
  cJSON_AddNumberToObject(o, "processes", r->rounds);
  if (is_kind(d, "same")) {
    cJSON_AddItemToObject(o, "spread_ns", lw_spread_json(&r->lone));
    return o;
  }
  if (r->max_rounds)
    cJSON_AddNumberToObject(o, "processes_of_stage", r->max_rounds);
  cJSON_AddBoolToObject(o, "at_look", r->at_look);
  add_judgement(o, "steady", &r->main);
  add_judgement(o, "control", &r->control);
  add_judgement(o, "compile", &r->compile);
  add_judgement(o, "first_call", &r->first);
  return o;
}

static void print_once(lw_buf *b, const char *name, const lw_judgement *j) {
  if (j->estimate.processes < 2) return;
  const lw_estimate *e = &j->estimate;
  lw_buf_printf(b, "%s: a %.4g ms, b %.4g ms, b/a %.3f (%.3f..%.3f at %g %%)\n",
                name, j->side[0].median, j->side[1].median, exp(e->center),
                exp(e->low), exp(e->high), 100 * (1 - e->alpha));
}

static void print_control(lw_buf *b, const lw_judgement *j) {
  const lw_estimate *e = &j->estimate;
  if (e->processes < 2) return;
  bool off = j->verdict == LW_FASTER || j->verdict == LW_SLOWER;
  lw_buf_printf(b, "control (a against itself): %.4f, %.4f..%.4f%s\n",
                exp(e->center), exp(e->low), exp(e->high),
                off ? ": a difference where there is none; do not trust this "
                      "run"
                    : "");
}

void lw_run_results_print(lw_buf *b, const lw_run_data *d,
                          const lw_run_results *r) {
  if (is_kind(d, "same")) {
    lw_buf_str(b, "one program, every run in a process of its own:\n");
    lw_spread_print(b, &r->lone, 1e-6, "ms");
    return;
  }
  if (!r->rounds) {
    lw_buf_str(b, "no block is finished\n");
    return;
  }
  bool elsewhere = is_kind(d, "samples");
  if (!r->at_look)
    lw_buf_str(b, "between two looks, so no verdict yet; so far:\n");
  lw_judgement_print(b, &r->main, elsewhere ? 1 : 1e-6, elsewhere ? "" : "ms");
  if (!elsewhere)
    lw_buf_printf(b, "  %d of %d processes a side\n", r->rounds, r->max_rounds);
  print_control(b, &r->control);
  print_once(b, "compile", &r->compile);
  print_once(b, "first call", &r->first);
}
