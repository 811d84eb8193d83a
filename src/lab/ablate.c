/* Ablation (ablate.h).
 *
 * One batch: the full compile, the full compile once more (the control), then
 * one compile a name. Names come from the full compile's own log; one that did
 * not run there is looked for among all that the compiler is seen to know
 * (passlog.h) before it is called unknown, and an unknown one ends the whole:
 * compilers take such a flag in silence and change nothing.
 */
#include "lab/ablate.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/file.h"
#include "fusion/report.h"
#include "lab/ablate_impl.h"
#include "lab/passlog.h"
#include "lab/subject_jobs.h"

typedef struct {
  const lw_ablate_options *o;
  lw_ablation *out;
  lw_arena *a;
  lw_pass_log log;             /* of the full compile */
  const char *full, *control;  /* folders */
  LW_VEC(lw_subject) subjects; /* parallel to rows; pointers are taken late */
} ablating;

const char *lw_ablate_verdict_name(lw_ablate_verdict v) {
  static const char *const names[] = {"NOT RUN", "RAN and moved nothing",
                                      "MOVED", "REFUSED"};
  return names[v];
}

/* ---- the full compile ---- */

static lw_subject_job job_of(const ablating *x, const lw_subject *s,
                             const char *folder) {
  return (lw_subject_job){.subject = s,
                          .module_path = x->o->module_path,
                          .which = x->o->which,
                          .out_dir = folder,
                          .inputs = x->o->inputs};
}

static lw_status compile_full(ablating *x) {
  x->full = lw_arena_printf(x->a, "%s/full", x->o->scratch);
  x->control = lw_arena_printf(x->a, "%s/control", x->o->scratch);
  lw_subject_job jobs[2] = {job_of(x, &x->o->subject, x->full),
                            job_of(x, &x->o->subject, x->control)};
  lw_status st = lw_subject_compile_all(jobs, 2);
  for (int k = 0; k < 2 && !st; k++) {
    st = jobs[k].status;
    jobs[k].status = NULL;
  }
  lw_subject_jobs_free(jobs, 2);
  if (st) return st;
  return lw_pass_log_read(x->full, &x->log);
}

/* ---- which names ---- */

/* The subject with one more pass left out. */
static lw_subject without_pass(const ablating *x, const char *name) {
  lw_subject s = x->o->subject;
  const char **v = LW_NEW_ARRAY(x->a, const char *, s.n_disable + 1);
  for (int32_t k = 0; k < s.n_disable; k++) v[k] = s.disable[k];
  v[s.n_disable++] = name;
  s.disable = v;
  return s;
}

/* The subject with one more option. */
static lw_subject with_option(const ablating *x, const char *option) {
  lw_subject s = x->o->subject;
  const char **v = LW_NEW_ARRAY(x->a, const char *, s.n_options + 1);
  for (int32_t k = 0; k < s.n_options; k++) v[k] = s.options[k];
  v[s.n_options++] = option;
  s.options = v;
  return s;
}

static void add_row(ablating *x, lw_ablate_row r, lw_subject s) {
  r.folder = lw_arena_printf(x->a, "%s/%zu", x->o->scratch, x->out->rows.len);
  lw_vec_push(&x->out->rows, r);
  lw_vec_push(&x->subjects, s);
}

static bool is_listed(const ablating *x, const char *name) {
  for (size_t k = 0; k < x->out->rows.len; k++)
    if (!strcmp(x->out->rows.data[k].name, name)) return true;
  return false;
}

/* All runs of the name in the full compile. */
static void add_pass(ablating *x, const lw_pass_row *first) {
  if (is_listed(x, first->name)) return;
  lw_ablate_row r = {.name = lw_arena_printf(x->a, "%s", first->name),
                     .verdict = LW_ABLATE_RAN,
                     .pipeline = first->pipeline};
  for (size_t k = 0; k < x->log.rows.len; k++) {
    const lw_pass_row *p = &x->log.rows.data[k];
    if (strcmp(p->name, first->name)) continue;
    r.runs++;
    r.changed_runs += p->changed;
    if (p->ms > 0) r.pass_ms += p->ms;
  }
  r.word = lw_arena_printf(x->a, "--disable=%s", r.name);
  add_row(x, r, without_pass(x, r.name));
}

/* XLA's flag takes pipelines too (those inside others; libtpu's, all). */
static bool is_name(const ablating *x, const lw_pass_row *r) {
  return !r->pipeline || lw_subject_is_xla(x->o->subject.compiler);
}

static lw_status unknown(const ablating *x, const char *name,
                         lw_name_list *known) {
  for (size_t k = 0; k < x->log.rows.len; k++)
    if (is_name(x, &x->log.rows.data[k]))
      lw_vec_push(known, x->log.rows.data[k].name);
  const char *near = lw_nearest_name(name, known->data, known->len);
  return lw_error(LW_NOT_FOUND,
                  "unknown pass \"%s\": %s for %s has none of that name%s%s%s "
                  "(lawson passes --compiler=%s lists them)",
                  name, x->out->compiler, x->out->target,
                  near ? "; did you mean \"" : "", near ? near : "",
                  near ? "\"?" : "", x->out->compiler);
}

/* Known to the compiler, or an error. */
static lw_status add_not_run(ablating *x, const char *name,
                             lw_name_list *known) {
  if (!known->len) LW_TRY(lw_pass_names_known(&x->o->subject, x->a, known));
  for (size_t k = 0; k < known->len; k++) {
    if (!lw_pass_name_is(known->data[k], name)) continue;
    lw_ablate_row r = {.name = known->data[k], .verdict = LW_ABLATE_NOT_RUN};
    add_row(x, r, x->o->subject);
    return NULL;
  }
  return unknown(x, name, known);
}

static lw_status choose_names(ablating *x) {
  lw_name_list known = {0};
  lw_status st = NULL;
  for (int32_t k = 0; k < x->o->n_names && !st; k++) {
    const lw_pass_row *r = lw_pass_log_find(&x->log, x->o->names[k]);
    if (r && is_name(x, r))
      add_pass(x, r);
    else
      st = add_not_run(x, x->o->names[k], &known);
  }
  lw_vec_free(&known);
  return st;
}

static void choose_all(ablating *x) {
  for (size_t k = 0; k < x->log.rows.len; k++)
    if (is_name(x, &x->log.rows.data[k])) add_pass(x, &x->log.rows.data[k]);
}

static void add_edge(ablating *x, const cJSON *edge) {
  const char *p = cJSON_GetStringValue(cJSON_GetObjectItem(edge, "value"));
  const char *c = cJSON_GetStringValue(cJSON_GetObjectItem(edge, "reader"));
  if (!p || !c || !*p || !*c) return;
  lw_ablate_row r = {.name = lw_arena_printf(x->a, "%s > %s", p, c),
                     .verdict = LW_ABLATE_RAN};
  if (is_listed(x, r.name)) return;
  r.word = lw_arena_printf(x->a, "--forbid-edge=%s,%s", p, c);
  add_row(x, r, with_option(x, r.word));
}

static lw_status choose_edges(ablating *x) {
  char *path = lw_arena_printf(x->a, "%s/decisions.json", x->full);
  char *text;
  size_t len;
  LW_TRY(lw_file_read(path, &text, &len));
  cJSON *j = cJSON_ParseWithLength(text, len);
  const cJSON *e;
  cJSON_ArrayForEach(
      e, cJSON_GetObjectItem(
             j, "edges")) if (cJSON_IsNumber(cJSON_GetObjectItem(e, "order")))
      add_edge(x, e);
  cJSON_Delete(j);
  free(text);
  return NULL;
}

static lw_status choose(ablating *x) {
  if (!x->o->edges && x->o->n_names) return choose_names(x);
  if (!x->o->edges) {
    choose_all(x);
    return NULL;
  }
  if (lw_subject_is_xla(x->o->subject.compiler))
    return lw_error(LW_UNIMPLEMENTED,
                    "XLA takes no word on single edges; --edges is for "
                    "--compiler=lawson");
  return choose_edges(x);
}

/* ---- numbers ---- */

static lw_module_numbers numbers_of(const lw_module *m, const lw_diff_side *s,
                                    lw_arena *a) {
  lw_fusion_report r = lw_fusion_report_of(m);
  lw_module_numbers n = {.instructions = s->instructions,
                         .computations = s->computations,
                         .fusions = s->fusions,
                         .custom_calls = s->custom_calls,
                         .kernels = r.kernels,
                         .bytes = r.intermediate_bytes,
                         .root = ""};
  if (s->root)
    n.root = lw_arena_printf(a, "%s %s", lw_opcode_name(s->root->opcode),
                             lw_shape_str(m->ctx, s->root->shape->no_layout));
  return n;
}

/* Does the log of the compile without it say that it changed something? Being
 * there says nothing: some compilers log a pass that they then skip. */
static bool is_ignored(const ablating *x, const lw_ablate_row *r) {
  lw_pass_log log;
  lw_status st = lw_pass_log_read(r->folder, &log);
  bool ignored = false;
  for (size_t k = 0; k < log.rows.len && !x->o->edges; k++)
    if (log.rows.data[k].changed && !strcmp(log.rows.data[k].name, r->name))
      ignored = true;
  lw_status_free(st);
  lw_pass_log_free(&log);
  return ignored;
}

static void compare_bits(const ablating *x, lw_ablate_row *r,
                         const lw_module *m, const lw_subject_job *job) {
  if (job->run_error) {
    r->bits_text = lw_arena_printf(x->a, "not run: %s", job->run_error);
    return;
  }
  if (!x->o->inputs) return;
  r->bits = lw_compare_outputs(m, x->full, r->folder, x->a, &r->bits_text);
}

static lw_status compare_row(ablating *x, lw_ablate_row *r,
                             const lw_module *full, const lw_subject_job *job) {
  lw_read_module b;
  LW_TRY(lw_read_module_of(r->folder, "after.hlo", &b));
  lw_diff *d = lw_diff_modules(full, b.module, LW_FP_ALL);
  if (d->moved) r->verdict = LW_ABLATE_MOVED;
  r->without = numbers_of(b.module, &d->b, x->a);
  r->added = d->added;
  r->removed = d->removed;
  r->changed = d->changed;
  r->ignored = is_ignored(x, r);
  if (d->moved) compare_bits(x, r, full, job);
  lw_diff_free(d);
  lw_read_module_free(&b);
  return NULL;
}

/* ---- the algorithm ---- */

static const char *target_of(const lw_inst *i) {
  const char *t = lw_inst_str(i, LW_ATTR_CUSTOM_CALL_TARGET);
  return t ? t : "";
}

static bool calls(const lw_module *m, const char *target) {
  for (const lw_comp *c = m->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next)
      if (i->opcode == LW_OP_CUSTOM_CALL && !strcmp(target_of(i), target))
        return true;
  return false;
}

static void find_replaced(ablating *x, const lw_module *before,
                          const lw_module *after) {
  for (const lw_comp *c = after->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next) {
      if (i->opcode != LW_OP_CUSTOM_CALL || calls(before, target_of(i)))
        continue;
      const char *text =
          lw_arena_printf(x->a, "%s (%s)%s", i->name, target_of(i),
                          i == after->entry->root ? ", the root" : "");
      lw_vec_push(&x->out->replaced, text);
    }
}

/* ---- all together ---- */

static lw_status look_at_full(ablating *x, const lw_module *full) {
  lw_read_module m;
  LW_TRY(lw_read_module_of(x->control, "after.hlo", &m));
  lw_diff *d = lw_diff_modules(full, m.module, LW_FP_ALL);
  x->out->control_same = !d->moved;
  x->out->full = numbers_of(full, &d->a, x->a);
  x->out->module = lw_arena_printf(x->a, "%s", full->name);
  lw_diff_free(d);
  lw_read_module_free(&m);
  LW_TRY(lw_read_module_of(x->full, "before.hlo", &m));
  find_replaced(x, m.module, full);
  lw_read_module_free(&m);
  return NULL;
}

/* Jobs of the rows that are compiled; row[k] is the row behind job k. */
static int32_t make_jobs(ablating *x, lw_subject_job *jobs, int32_t *row) {
  int32_t n = 0;
  for (size_t k = 0; k < x->out->rows.len; k++) {
    const lw_ablate_row *r = &x->out->rows.data[k];
    if (r->verdict == LW_ABLATE_NOT_RUN) continue;
    jobs[n] = job_of(x, &x->subjects.data[k], r->folder);
    row[n++] = (int32_t)k;
  }
  return n;
}

static lw_status compare_rows(ablating *x, const lw_module *full) {
  size_t n_rows = x->out->rows.len;
  lw_subject_job *jobs = LW_NEW_ARRAY(x->a, lw_subject_job, n_rows + 1);
  int32_t *row = LW_NEW_ARRAY(x->a, int32_t, n_rows + 1);
  int32_t n = make_jobs(x, jobs, row);
  lw_status st = lw_subject_compile_all(jobs, n);
  for (int32_t k = 0; k < n && !st; k++) {
    lw_ablate_row *r = &x->out->rows.data[row[k]];
    if (!jobs[k].status) {
      st = compare_row(x, r, full, &jobs[k]);
      continue;
    }
    r->verdict = LW_ABLATE_REFUSED;
    r->error = lw_arena_printf(x->a, "%s", lw_status_message(jobs[k].status));
  }
  lw_subject_jobs_free(jobs, n);
  return st;
}

static void read_version(ablating *x) {
  char *path = lw_arena_printf(x->a, "%s/meta.json", x->full), *text;
  size_t len;
  x->out->version = "";
  lw_status st = lw_file_read(path, &text, &len);
  if (st) {
    lw_status_free(st);
    return;
  }
  cJSON *j = cJSON_ParseWithLength(text, len);
  const char *v = cJSON_GetStringValue(cJSON_GetObjectItem(j, "version"));
  if (v) x->out->version = lw_arena_printf(x->a, "%s", v);
  cJSON_Delete(j);
  free(text);
}

static lw_status ablate(ablating *x) {
  LW_TRY(compile_full(x));
  read_version(x);
  LW_TRY(choose(x));
  lw_read_module full;
  LW_TRY(lw_read_module_of(x->full, "after.hlo", &full));
  lw_status st = look_at_full(x, full.module);
  if (!st) st = compare_rows(x, full.module);
  lw_read_module_free(&full);
  return st;
}

lw_status lw_ablate(const lw_ablate_options *o, lw_ablation *out) {
  *out = (lw_ablation){.arena = lw_arena_new()};
  ablating x = {.o = o, .out = out, .a = out->arena};
  out->compiler = o->subject.compiler ? o->subject.compiler : "lawson";
  out->target = o->subject.target ? o->subject.target : "cpu";
  lw_status st = ablate(&x);
  lw_pass_log_free(&x.log);
  lw_vec_free(&x.subjects);
  return st;
}

void lw_ablation_free(lw_ablation *a) {
  lw_vec_free(&a->replaced);
  lw_vec_free(&a->rows);
  if (a->arena) lw_arena_free(a->arena);
  *a = (lw_ablation){0};
}
