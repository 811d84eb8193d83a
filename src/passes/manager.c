/* Running pipelines. See manager.h. */
#include "passes/manager.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/diag.h"
#include "base/file.h"
#include "hlo/check.h"
#include "hlo/fingerprint.h"
#include "hlo/print.h"
#include "passes/passes.h"

/* ---- what a pass asks its environment ---- */

bool lw_pass_fuel(lw_pass_env *env) {
  if (env->fuel < 0) return true;
  if (env->fuel == 0) return false;
  env->fuel--;
  return true;
}

void lw_pass_count(lw_pass_env *env, const char *stat, int64_t n) {
  if (env->stats) *lw_map_put(env->stats, (uintptr_t)stat) += (uint64_t)n;
}

const char *lw_pass_option_value(const lw_pass_env *env, const char *name) {
  const lw_pass_option *o = env->pass->options;
  for (int k = 0; o && o[k].name; k++) {
    if (strcmp(o[k].name, name)) continue;
    const char *v = env->option_values ? env->option_values[k] : NULL;
    return v ? v : o[k].dflt;
  }
  return NULL;
}

bool lw_pass_allows_inexact(const lw_pass_env *env, const char *name) {
  return lw_str_listed(env->allow_inexact, name);
}

/* ---- the registry ---- */

typedef struct {
  const lw_pass *pass;
  bool disabled;
  int64_t fuel;    /* left; < 0: no limit */
  int64_t idle_at; /* the module's version at which it moved nothing */
  const char **option_values;
  lw_map stats;
  lw_pass_result result;
} slot;

typedef struct {
  lw_module *m;
  const lw_pipeline *pipeline;
  const lw_pipeline_options *o;
  lw_arena *arena;
  slot *slots;
  int32_t n_slots;
  int32_t seq; /* of dumps */
  int32_t rounds;
  int64_t version;      /* changes so far + 1 */
  uint64_t fingerprint; /* of the module as it is, and its size */
  int64_t n_insts;
  LW_VEC(lw_pass_run) runs;
} manager;

static int32_t known_count(const lw_pipeline_options *o) {
  return lw_clean_up_pass_count + o->n_extra;
}

static const lw_pass *known(const lw_pipeline_options *o, int32_t k) {
  return k < lw_clean_up_pass_count ? lw_clean_up_passes[k]
                                    : o->extra[k - lw_clean_up_pass_count];
}

static lw_status unknown_pass(const manager *mg, const char *name) {
  const char **names = LW_NEW_ARRAY(mg->arena, const char *, mg->n_slots);
  for (int32_t k = 0; k < mg->n_slots; k++) names[k] = mg->slots[k].pass->name;
  const char *near = lw_nearest_name(name, names, (size_t)mg->n_slots);
  if (near)
    return lw_error(LW_NOT_FOUND, "unknown pass \"%s\"; did you mean \"%s\"?",
                    name, near);
  return lw_error(LW_NOT_FOUND, "unknown pass \"%s\"; see lawson passes", name);
}

static lw_status find_slot(const manager *mg, const char *name, slot **out) {
  for (int32_t k = 0; k < mg->n_slots; k++)
    if (!strcmp(mg->slots[k].pass->name, name)) {
      *out = &mg->slots[k];
      return NULL;
    }
  return unknown_pass(mg, name);
}

/* ---- options ---- */

/* Calls f for every element of a comma list (a copy in the arena). */
static lw_status each(manager *mg, const char *list,
                      lw_status (*f)(manager *, char *)) {
  if (!list || !*list) return NULL;
  char *p = lw_arena_strdup(mg->arena, list, strlen(list));
  while (p) {
    char *end = strchr(p, ',');
    if (end) *end = '\0';
    if (*p) LW_TRY(f(mg, p));
    p = end ? end + 1 : NULL;
  }
  return NULL;
}

static lw_status disable_one(manager *mg, char *name) {
  slot *s;
  LW_TRY(find_slot(mg, name, &s));
  s->disabled = true;
  return NULL;
}

static lw_status fuel_one(manager *mg, char *text) {
  slot *s;
  char *eq = strchr(text, '='), *end;
  if (!eq)
    return lw_error(LW_INVALID_ARGUMENT, "fuel is PASS=N, not \"%s\"", text);
  *eq = '\0';
  LW_TRY(find_slot(mg, text, &s));
  errno = 0;
  long long n = strtoll(eq + 1, &end, 10);
  if (errno || *end || end == eq + 1 || n < 0)
    return lw_error(LW_INVALID_ARGUMENT,
                    "fuel of %s must be a count of rewrites, not \"%s\"", text,
                    eq + 1);
  s->fuel = n;
  return NULL;
}

static int option_count(const lw_pass *p) {
  int n = 0;
  while (p->options && p->options[n].name) n++;
  return n;
}

static lw_status unknown_option(const manager *mg, const lw_pass *p,
                                const char *name) {
  int n = option_count(p);
  if (n == 0) return lw_error(LW_NOT_FOUND, "pass %s has no options", p->name);
  const char **names = LW_NEW_ARRAY(mg->arena, const char *, n);
  for (int k = 0; k < n; k++) names[k] = p->options[k].name;
  const char *near = lw_nearest_name(name, names, (size_t)n);
  return lw_error(LW_NOT_FOUND, "pass %s has no option \"%s\"%s%s%s", p->name,
                  name, near ? "; did you mean \"" : "", near ? near : "",
                  near ? "\"?" : "");
}

static lw_status option_one(manager *mg, char *text) {
  slot *s;
  char *eq = strchr(text, '='), *dot = strchr(text, '.');
  if (!eq || !dot || dot > eq)
    return lw_error(LW_INVALID_ARGUMENT,
                    "a pass option is PASS.option=value, not \"%s\"", text);
  *dot = *eq = '\0';
  LW_TRY(find_slot(mg, text, &s));
  for (int k = 0; k < option_count(s->pass); k++)
    if (!strcmp(s->pass->options[k].name, dot + 1)) {
      s->option_values[k] = eq + 1;
      return NULL;
    }
  return unknown_option(mg, s->pass, dot + 1);
}

/* The rewrites that --allow-inexact names
 * (docs/passes/algebraic-simplifier.md).
 */
static const char *const inexact_names[] = {"add-zero", "multiply-zero",
                                            "power", "reciprocal"};
enum { N_INEXACT = sizeof inexact_names / sizeof *inexact_names };

static lw_status inexact_one(manager *mg, char *name) {
  (void)mg;
  for (int k = 0; k < N_INEXACT; k++)
    if (!strcmp(inexact_names[k], name)) return NULL;
  const char *near = lw_nearest_name(name, inexact_names, N_INEXACT);
  return lw_error(LW_NOT_FOUND,
                  "unknown inexact rewrite \"%s\"%s%s%s (add-zero, "
                  "multiply-zero, power, reciprocal)",
                  name, near ? "; did you mean \"" : "", near ? near : "",
                  near ? "\"?" : "");
}

static lw_status configure(manager *mg) {
  mg->n_slots = known_count(mg->o);
  mg->slots = LW_NEW_ARRAY(mg->arena, slot, mg->n_slots);
  for (int32_t k = 0; k < mg->n_slots; k++) {
    slot *s = &mg->slots[k];
    s->pass = s->result.pass = known(mg->o, k);
    s->fuel = -1;
    s->option_values =
        LW_NEW_ARRAY(mg->arena, const char *, option_count(s->pass) + 1);
  }
  LW_TRY(each(mg, mg->o->disable, disable_one));
  LW_TRY(each(mg, mg->o->fuel, fuel_one));
  LW_TRY(each(mg, mg->o->pass_options, option_one));
  LW_TRY(each(mg, mg->o->allow_inexact, inexact_one));
  slot *inliner;
  LW_TRY(find_slot(mg, "fusion-inliner", &inliner));
  if (mg->o->keep_fusions) inliner->disabled = true;
  return NULL;
}

/* ---- one pass ---- */

int64_t lw_module_inst_count(const lw_module *m) {
  lw_arena *a = lw_arena_new();
  int32_t n;
  int64_t count = 0;
  lw_comp **comps = lw_module_post_order(m, a, &n, true);
  for (int32_t k = 0; k < n; k++) count += comps[k]->n_insts;
  lw_arena_free(a);
  return count;
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static lw_status dump(manager *mg, const char *after) {
  if (!mg->o->dump_dir) return NULL;
  lw_buf text = {0};
  lw_module_print(&text, mg->m, &lw_print_default);
  char *path =
      after ? lw_arena_printf(mg->arena, "%s/%04d.%s.after_%s.hlo",
                              mg->o->dump_dir, mg->seq++, mg->pipeline->name,
                              after)
            : lw_arena_printf(mg->arena, "%s/%04d.%s.before.hlo",
                              mg->o->dump_dir, mg->seq++, mg->pipeline->name);
  lw_status s = lw_file_write(path, lw_buf_cstr(&text), text.len);
  lw_buf_free(&text);
  return s;
}

/* Lists stay in topological order: passes walk them instead of sorting. */
static lw_status verify_order(const lw_comp *c, const lw_pass *p) {
  lw_map seen = {0};
  lw_status s = NULL;
  for (const lw_inst *i = c->first; i && !s; i = i->next) {
    for (int32_t k = 0; k < i->n_operands && !s; k++)
      if (!lw_map_get(&seen, (uintptr_t)i->operands[k].def))
        s = lw_error(LW_INTERNAL,
                     "after pass %s: %s in %s comes before its "
                     "operand %d",
                     p->name, i->name, c->name, k);
    lw_map_set_ptr(&seen, i, i);
  }
  lw_map_free(&seen);
  return s;
}

static lw_status verify(manager *mg, const lw_pass *p) {
  for (const lw_comp *c = mg->m->first_comp; c; c = c->next)
    LW_TRY(verify_order(c, p));
  lw_check_options o = {.allow_mixed_precision = true};
  return lw_check_status(mg->m, o,
                         lw_arena_printf(mg->arena, "after pass %s", p->name));
}

static lw_status lie(const lw_pass *p, bool claimed) {
  return lw_error(LW_INTERNAL, "pass %s %s", p->name,
                  claimed ? "says it changed the module and did not"
                          : "changed the module and says it did not");
}

static void account(slot *s, int64_t before, int64_t after, int64_t ns,
                    bool changed) {
  lw_pass_result *r = &s->result;
  if (r->runs++ == 0) r->insts_before = before;
  r->insts_after = after;
  r->inst_delta += after - before;
  r->time_ns += ns;
  r->moved_runs += changed;
  if (changed)
    r->verdict = LW_PASS_MOVED;
  else if (r->verdict == LW_PASS_NOT_RUN)
    r->verdict = LW_PASS_RAN;
}

static lw_status run_pass(manager *mg, slot *s, bool *moved) {
  if (s->disabled) return NULL;
  if (s->idle_at == mg->version) return NULL; /* nothing new to look at */
  lw_pass_env env = {.target = mg->o->target,
                     .trace = mg->o->trace,
                     .overrides = mg->o->overrides,
                     .scratch = lw_arena_new(),
                     .fuel = s->fuel,
                     .option_values = s->option_values,
                     .allow_inexact = mg->o->allow_inexact,
                     .stats = &s->stats,
                     .pass = s->pass,
                     .flush_denormals = mg->o->flush_denormals};
  bool changed = false;
  int64_t t = now_ns();
  lw_status st = s->pass->run(mg->m, &env, &changed);
  t = now_ns() - t;
  s->fuel = env.fuel;
  lw_arena_free(env.scratch);
  if (st) return lw_status_annotate(st, "pass %s", s->pass->name);
  int64_t before = mg->n_insts;
  uint64_t now = lw_module_fingerprint(mg->m, LW_FP_ALL);
  mg->n_insts = lw_module_inst_count(mg->m);
  account(s, before, mg->n_insts, t, changed);
  lw_pass_run run = {s->pass, changed, t};
  lw_vec_push(&mg->runs, run);
  if (changed != (now != mg->fingerprint)) return lie(s->pass, changed);
  mg->fingerprint = now;
  if (!changed) {
    s->idle_at = mg->version;
    return NULL;
  }
  mg->version++;
  *moved = true;
  if (mg->o->verify_each) LW_TRY(verify(mg, s->pass));
  return dump(mg, s->pass->name);
}

/* ---- a list of steps ---- */

static lw_status run_steps(manager *mg, const char *const *steps,
                           const char *const *end, bool *moved);

static const char *const *group_end(const char *const *open,
                                    const char *const *end) {
  int depth = 0;
  for (const char *const *p = open; p != end; p++) {
    if (!strcmp(*p, "{")) depth++;
    if (!strcmp(*p, "}*") && --depth == 0) return p;
  }
  return NULL;
}

static const char *const *list_end(const char *const *steps) {
  while (*steps) steps++;
  return steps;
}

static lw_status run_fixpoint(manager *mg, const char *const *steps,
                              const char *const *end, bool *moved) {
  bool again = true;
  for (int round = 0; again && round < LW_FIXPOINT_LIMIT; round++) {
    again = false;
    mg->rounds++;
    LW_TRY(run_steps(mg, steps, end, &again));
    if (again) *moved = true;
  }
  return NULL;
}

static lw_status run_steps(manager *mg, const char *const *steps,
                           const char *const *end, bool *moved) {
  for (const char *const *p = steps; p != end; p++) {
    if (!strcmp(*p, "{")) {
      const char *const *close = group_end(p, end);
      LW_ASSERT(close);
      LW_TRY(run_fixpoint(mg, p + 1, close, moved));
      p = close;
    } else if (!strcmp(*p, "@fusion")) {
      const char *const *f = mg->o->fusion_steps;
      if (f) LW_TRY(run_steps(mg, f, list_end(f), moved));
    } else {
      slot *s;
      LW_TRY(find_slot(mg, *p, &s));
      LW_TRY(run_pass(mg, s, moved));
    }
  }
  return NULL;
}

static lw_status run_named(manager *mg, char *name) {
  slot *s;
  bool moved = false;
  LW_TRY(find_slot(mg, name, &s));
  return run_pass(mg, s, &moved);
}

static lw_status check_name(manager *mg, char *name) {
  slot *s;
  return find_slot(mg, name, &s);
}

static lw_status run_all(manager *mg) {
  bool moved = false;
  mg->fingerprint = lw_module_fingerprint(mg->m, LW_FP_ALL);
  mg->n_insts = lw_module_inst_count(mg->m);
  if (mg->o->dump_dir) LW_TRY(lw_dir_make(mg->o->dump_dir));
  LW_TRY(dump(mg, NULL));
  if (mg->o->passes) {
    LW_TRY(each(mg, mg->o->passes, check_name)); /* all, before any runs */
    return each(mg, mg->o->passes, run_named);
  }
  const char *const *steps = mg->pipeline->steps;
  return run_steps(mg, steps, list_end(steps), &moved);
}

/* ---- the report ---- */

static void collect_stats(manager *mg, slot *s) {
  lw_map *m = &s->stats;
  lw_pass_stat *v = LW_NEW_ARRAY(mg->arena, lw_pass_stat, m->len);
  for (size_t k = 0; k < m->len; k++)
    v[k] = (lw_pass_stat){(const char *)(uintptr_t)m->keys[k],
                          (int64_t)m->values[k]};
  s->result.stats = v;
  s->result.n_stats = (int32_t)m->len;
}

static void fill_report(manager *mg, lw_pipeline_report *r) {
  lw_pass_result *v = LW_NEW_ARRAY(mg->arena, lw_pass_result, mg->n_slots);
  for (int32_t k = 0; k < mg->n_slots; k++) {
    collect_stats(mg, &mg->slots[k]);
    v[k] = mg->slots[k].result;
  }
  r->pipeline = mg->pipeline->name;
  r->n = mg->n_slots;
  r->v = v;
  r->rounds = mg->rounds;
  r->n_runs = (int32_t)mg->runs.len;
  if (mg->runs.len)
    r->runs = lw_arena_memdup(mg->arena, mg->runs.data,
                              mg->runs.len * sizeof *mg->runs.data);
  r->insts_after = lw_module_inst_count(mg->m);
}

static void add_stats(lw_pass_result *x, const lw_pass_result *y, lw_arena *a) {
  lw_pass_stat *v = LW_NEW_ARRAY(a, lw_pass_stat, x->n_stats + y->n_stats);
  int32_t n = x->n_stats;
  if (n) memcpy(v, x->stats, (size_t)n * sizeof *v);
  for (int32_t k = 0; k < y->n_stats; k++) {
    int32_t at = 0;
    while (at < n && strcmp(v[at].name, y->stats[k].name)) at++;
    if (at == n) v[n++] = (lw_pass_stat){y->stats[k].name, 0};
    v[at].count += y->stats[k].count;
  }
  x->stats = v;
  x->n_stats = n;
}

static void add_result(lw_pass_result *x, const lw_pass_result *y,
                       lw_arena *a) {
  if (!y->runs) return;
  if (!x->runs) {
    *x = *y;
    return;
  }
  if (y->verdict > x->verdict) x->verdict = y->verdict;
  x->runs += y->runs;
  x->moved_runs += y->moved_runs;
  x->insts_after = y->insts_after;
  x->inst_delta += y->inst_delta;
  x->time_ns += y->time_ns;
  add_stats(x, y, a);
}

void lw_pipeline_report_add(lw_pipeline_report *r,
                            const lw_pipeline_report *then, lw_arena *arena) {
  LW_ASSERT(r->n == then->n);
  lw_pass_result *v = lw_arena_memdup(arena, r->v, (size_t)r->n * sizeof *r->v);
  for (int32_t k = 0; k < r->n; k++) add_result(&v[k], &then->v[k], arena);
  r->v = v;
  lw_pass_run *runs =
      LW_NEW_ARRAY(arena, lw_pass_run, r->n_runs + then->n_runs);
  if (r->n_runs) memcpy(runs, r->runs, (size_t)r->n_runs * sizeof *runs);
  if (then->n_runs)
    memcpy(runs + r->n_runs, then->runs, (size_t)then->n_runs * sizeof *runs);
  r->runs = runs;
  r->n_runs += then->n_runs;
  r->rounds += then->rounds;
  r->insts_after = then->insts_after;
  r->time_ns += then->time_ns;
}

lw_status lw_pipeline_run(lw_module *m, const lw_pipeline *pipeline,
                          const lw_pipeline_options *options, lw_arena *arena,
                          lw_pipeline_report *report) {
  static const lw_pipeline_options none = {0};
  manager mg = {.m = m, .pipeline = pipeline, .arena = arena, .version = 1};
  mg.o = options ? options : &none;
  int64_t start = now_ns(), before = lw_module_inst_count(m);
  lw_status s = configure(&mg);
  if (!s) s = run_all(&mg);
  if (report) {
    *report = (lw_pipeline_report){.insts_before = before};
    fill_report(&mg, report);
    report->time_ns = now_ns() - start;
  }
  for (int32_t k = 0; k < mg.n_slots; k++) lw_map_free(&mg.slots[k].stats);
  lw_vec_free(&mg.runs);
  return s;
}

const char *lw_pass_verdict_name(lw_pass_verdict v) {
  static const char *const names[] = {"NOT RUN", "RAN and moved nothing",
                                      "MOVED"};
  return names[v];
}

static void print_row(lw_buf *b, const lw_pass_result *p) {
  lw_buf_printf(b, "%-30s %-22s", p->pass->name,
                lw_pass_verdict_name(p->verdict));
  if (p->runs)
    lw_buf_printf(b, " %4d runs %+6lld insts %9.3f ms", p->runs,
                  (long long)p->inst_delta, (double)p->time_ns / 1e6);
  for (int32_t k = 0; k < p->n_stats; k++)
    lw_buf_printf(b, "%s%s: %lld", k ? ", " : "  ", p->stats[k].name,
                  (long long)p->stats[k].count);
  lw_buf_chr(b, '\n');
}

void lw_pipeline_report_print(lw_buf *b, const lw_pipeline_report *r) {
  lw_buf_printf(b, "pipeline %s: %lld instructions to %lld, %.3f ms\n",
                r->pipeline, (long long)r->insts_before,
                (long long)r->insts_after, (double)r->time_ns / 1e6);
  for (int32_t k = 0; k < r->n; k++) print_row(b, &r->v[k]);
}
