/* Lawson as a subject: in this process, through src/driver. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "driver/explain.h"
#include "fusion/fusion.h"
#include "fusion/gpu_decisions.h"
#include "hlo/print.h"
#include "lab/arrays.h"
#include "lab/explain_json.h"
#include "lab/subject_impl.h"

/* ---- options ---- */

/* Words as `lawson opt` takes them. */
static bool set_word(lw_compile_options *o, const char *name, size_t len,
                     const char *value) {
  const struct {
    const char *name;
    const char **field;
  } words[] = {
      {"--fusion", &o->fusion},
      {"--isa", &o->isa},
      {"--passes", &o->passes},
      {"--disable", &o->disable},
      {"--fuel", &o->fuel},
      {"--pass-option", &o->pass_options},
      {"--allow-inexact", &o->allow_inexact},
      {"--force-edge", &o->force_edges},
      {"--forbid-edge", &o->forbid_edges},
  };
  for (size_t k = 0; k < sizeof words / sizeof *words; k++)
    if (strlen(words[k].name) == len && !memcmp(words[k].name, name, len)) {
      *words[k].field = value;
      return true;
    }
  return false;
}

static bool set_flag(lw_compile_options *o, const char *name) {
  const struct {
    const char *name;
    bool *field;
  } flags[] = {
      {"--keep-fusions", &o->keep_fusions},
      {"--only-fusion", &o->only_fusion},
      {"--verify-each", &o->verify_each},
      {"--no-alias", &o->no_alias},
      {"--denormals=flush", &o->flush_denormals},
  };
  for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
    if (!strcmp(flags[k].name, name)) return *flags[k].field = true;
  return !strcmp(name, "--denormals=keep");
}

static lw_status read_options(const lw_subject *s, lw_arena *a,
                              lw_compile_options *o) {
  *o = (lw_compile_options){.target = s->target};
  for (int32_t k = 0; k < s->n_options; k++) {
    const char *w = s->options[k], *eq = strchr(w, '=');
    if (set_flag(o, w)) continue;
    if (!eq || !set_word(o, w, (size_t)(eq - w), eq + 1))
      return lw_error(LW_INVALID_ARGUMENT, "%s is no option of lawson opt", w);
  }
  lw_buf b = {0};
  if (o->disable) lw_buf_str(&b, o->disable);
  for (int32_t k = 0; k < s->n_disable; k++)
    lw_buf_printf(&b, "%s%s", b.len ? "," : "", s->disable[k]);
  if (b.len) o->disable = lw_arena_strdup(a, b.data, b.len);
  lw_buf_free(&b);
  return NULL;
}

/* ---- files ---- */

static lw_status write_text(const lw_subject_job *j, const char *name,
                            lw_buf *text) {
  lw_buf path = {0};
  lw_buf_printf(&path, "%s/%s", j->out_dir, name);
  lw_status st =
      lw_file_write(lw_buf_cstr(&path), lw_buf_cstr(text), text->len);
  lw_buf_free(&path);
  return st;
}

static lw_status write_after(const lw_subject_job *j, const lw_compiled *c) {
  lw_buf b = {0};
  lw_module_print(&b, lw_compiled_module(c), &lw_print_default);
  lw_status st = write_text(j, "after.hlo", &b);
  lw_buf_free(&b);
  return st;
}

static lw_status write_passes(const lw_subject_job *j, const lw_compiled *c) {
  const lw_pipeline_report *r = lw_compiled_report(c);
  lw_buf b = {0};
  bool any = false;
  for (int32_t k = 0; k < r->n_runs; k++) any = any || r->runs[k].changed;
  lw_buf_printf(&b,
                "order\tdepth\tkind\tname\tchanged\tms\n"
                "0\t0\tpipeline\t%s\t%s\t%.3f\n",
                r->pipeline, any ? "yes" : "no", (double)r->time_ns / 1e6);
  for (int32_t k = 0; k < r->n_runs; k++)
    lw_buf_printf(&b, "%d\t1\tpass\t%s\t%s\t%.3f\n", k + 1,
                  r->runs[k].pass->name, r->runs[k].changed ? "yes" : "no",
                  (double)r->runs[k].time_ns / 1e6);
  lw_status st = write_text(j, "passes.tsv", &b);
  lw_buf_free(&b);
  return st;
}

static lw_status write_decisions(const lw_subject_job *j, const lw_compiled *c,
                                 const lw_explain *e) {
  if (!strcmp(lw_compiled_target(c)->backend_name, "gpu")) {
    lw_buf b = {0};
    lw_gpu_decisions_print(&b, lw_compiled_trace(c));
    lw_status st = b.len ? write_text(j, "decisions.tsv", &b) : NULL;
    lw_buf_free(&b);
    if (st) return st;
  }
  cJSON *json = lw_explain_json(e);
  char *text = cJSON_Print(json);
  lw_buf b = {0};
  if (text) lw_buf_str(&b, text);
  lw_status st = write_text(j, "decisions.json", &b);
  lw_buf_free(&b);
  cJSON_free(text);
  cJSON_Delete(json);
  return st;
}

/* ---- the module before fusion ---- */

static bool is_fusion_pass(const lw_pass *p) {
  int n;
  const lw_pass *const *v = lw_fusion_passes(&n);
  for (int k = 0; k < n; k++)
    if (v[k] == p) return true;
  return false;
}

/* How many runs changed the module before a fusion pass first did; -1: none
 * did. Dump number n is the module after n changes. */
static int changes_before_fusion(const lw_pipeline_report *r) {
  int changes = 0;
  for (int32_t k = 0; k < r->n_runs; k++) {
    if (!r->runs[k].changed) continue;
    if (is_fusion_pass(r->runs[k].pass)) return changes;
    changes++;
  }
  return -1;
}

/* Moves the dump of that number to fusion_in.hlo and removes the others. */
static void keep_dump(const char *dumps, int number, const char *to) {
  char prefix[16];
  snprintf(prefix, sizeof prefix, "%04d.", number);
  DIR *d = opendir(dumps);
  for (struct dirent *e; d && (e = readdir(d));) {
    if (e->d_name[0] == '.') continue;
    lw_buf path = {0};
    lw_buf_printf(&path, "%s/%s", dumps, e->d_name);
    if (number >= 0 && !strncmp(e->d_name, prefix, strlen(prefix)))
      rename(lw_buf_cstr(&path), to);
    else
      remove(lw_buf_cstr(&path));
    lw_buf_free(&path);
  }
  if (d) closedir(d);
  remove(dumps);
}

static lw_status keep_fusion_in(const lw_subject_job *j, const lw_compiled *c,
                                const char *dumps) {
  int number = c ? changes_before_fusion(lw_compiled_report(c)) : -1;
  lw_buf to = {0};
  lw_buf_printf(&to, "%s/fusion_in.hlo", j->out_dir);
  keep_dump(dumps, number, lw_buf_cstr(&to));
  lw_status st = NULL;
  if (c && number < 0) {
    lw_buf b = {0};
    lw_module_print(&b, lw_compiled_module(c), &lw_print_default);
    st = lw_file_write(lw_buf_cstr(&to), lw_buf_cstr(&b), b.len);
    lw_buf_free(&b);
  }
  lw_buf_free(&to);
  return st;
}

/* ---- running ---- */

static lw_status run_on(const lw_subject_job *j, const lw_module *m,
                        const lw_compile_options *o, lw_arena *a) {
  lw_compiled *c = NULL;
  lw_literal **args, *result;
  int32_t n;
  lw_status st = lw_arrays_read(j->inputs, m, a, &args, &n);
  if (!st) st = lw_compile(m, o, &c);
  lw_run_options run = {.flush_denormals = o->flush_denormals};
  if (!st)
    st = lw_compiled_run(c, (const lw_literal *const *)args, n, &run, a,
                         &result, NULL);
  if (!st) {
    char *path = lw_arena_printf(a, "%s/outputs.npz", j->out_dir);
    st = lw_arrays_write(path, 'o', (const lw_literal *const *)&result, 1);
  }
  lw_compiled_free(c);
  return st;
}

/* A program that does not run is still compiled. */
static void run_program(lw_subject_job *j, const lw_module *m,
                        const lw_compile_options *o, lw_arena *a) {
  lw_status st = run_on(j, m, o, a);
  if (!st) return;
  lw_buf why = {0};
  lw_buf_str(&why, lw_status_message(st));
  j->run_error = why.data;
  lw_status_free(st);
}

/* ---- a job ---- */

static lw_status write_all(lw_subject_job *j, const lw_module *m,
                           lw_compile_options *o, const lw_compiled *c,
                           const lw_explain *e, lw_arena *a) {
  LW_TRY(write_after(j, c));
  LW_TRY(write_passes(j, c));
  LW_TRY(write_decisions(j, c, e));
  o->dump_passes = NULL;
  if (j->inputs) run_program(j, m, o, a);
  return lw_subject_write_meta(j, lw_codegen_version(), lw_compiled_ms(c), "");
}

static lw_status compile_one(lw_subject_job *j, lw_context *ctx, lw_arena *a) {
  lw_compile_options o;
  lw_module *m;
  LW_TRY(read_options(j->subject, a, &o));
  const char *before = lw_arena_printf(a, "%s/before.hlo", j->out_dir);
  const char *dumps = lw_arena_printf(a, "%s/dumps", j->out_dir);
  o.dump_passes = dumps;
  LW_TRY(lw_load_module(ctx, before, NULL, NULL, &m));
  lw_compiled *c;
  lw_explain e;
  lw_status st = lw_explain_module(m, &o, &c, &e);
  lw_status kept = keep_fusion_in(j, c, dumps);
  if (!st) {
    st = kept;
    kept = NULL;
  }
  lw_status_free(kept);
  if (!st) st = write_all(j, m, &o, c, &e, a);
  lw_explain_free(&e);
  lw_compiled_free(c);
  lw_module_free(m);
  return st;
}

lw_status lw_subject_lawson(lw_subject_job *jobs, int32_t n) {
  for (int32_t k = 0; k < n; k++) {
    if (jobs[k].status) continue;
    lw_context *ctx = lw_context_new();
    lw_arena *a = lw_arena_new();
    jobs[k].status = compile_one(&jobs[k], ctx, a);
    lw_arena_free(a);
    lw_context_free(ctx);
  }
  return NULL;
}
