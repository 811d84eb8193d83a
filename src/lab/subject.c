/* A compiler's answer as files (subject.h): what every compiler has in common.
 *
 * The module is read by Lawson and written as before.hlo, so that each
 * compiler is given the same text whatever form it came in: proto, dump, log.
 */
#include "lab/subject.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "driver/driver.h"
#include "hlo/print.h"
#include "lab/subject_impl.h"

/* ---- who ---- */

bool lw_subject_is_xla(const char *compiler) {
  return compiler && !strncmp(compiler, "xla", 3) &&
         (!compiler[3] || compiler[3] == '@');
}

const char *lw_subject_version(const char *compiler) {
  const char *at = compiler ? strchr(compiler, '@') : NULL;
  return at ? at + 1 : NULL;
}

static bool is_lawson(const char *compiler) {
  return !compiler || !strcmp(compiler, "lawson");
}

static lw_status check_lawson_target(const char *target) {
  lw_target *t;
  LW_TRY(lw_target_load(target, &t));
  lw_target_free(t);
  return NULL;
}

lw_status lw_subject_check(const char *compiler, const char *target) {
  if (is_lawson(compiler)) return check_lawson_target(target);
  if (!lw_subject_is_xla(compiler)) {
    static const char *const names[] = {"lawson", "xla"};
    const char *near = lw_nearest_name(compiler, names, 2);
    return lw_error(LW_NOT_FOUND,
                    "unknown compiler \"%s\"%s%s%s (lawson, xla, "
                    "xla@VERSION)",
                    compiler, near ? "; did you mean \"" : "", near ? near : "",
                    near ? "\"?" : "");
  }
  if (compiler[3]) { /* a version's form */
    char *kept;
    LW_TRY(lw_setup_resolve(compiler, &kept));
    free(kept);
  }
  lw_xla_target t;
  lw_status st = lw_xla_target_of(target, &t);
  lw_xla_target_free(&t);
  return st;
}

/* ---- the files in common ---- */

static lw_status write_before(const lw_subject_job *j) {
  lw_context *ctx = lw_context_new();
  lw_module *m = NULL;
  lw_status st = lw_load_module(ctx, j->module_path, j->which, NULL, &m);
  lw_buf text = {0}, path = {0};
  if (!st) {
    lw_module_print(&text, m, &lw_print_default);
    lw_buf_printf(&path, "%s/before.hlo", j->out_dir);
    st = lw_file_write(lw_buf_cstr(&path), lw_buf_cstr(&text), text.len);
    lw_module_free(m);
  }
  lw_buf_free(&text);
  lw_buf_free(&path);
  lw_context_free(ctx);
  return st;
}

/* Rests of an earlier answer are not part of this one. */
static void remove_old(const lw_subject_job *j) {
  static const char *const names[] = {
      "after.hlo",     "fusion_in.hlo",  "passes.tsv",
      "decisions.tsv", "decisions.json", "meta.json",
      "outputs.npz",   "xla.json",       "error"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    lw_buf path = {0};
    lw_buf_printf(&path, "%s/%s", j->out_dir, names[k]);
    remove(lw_buf_cstr(&path));
    lw_buf_free(&path);
  }
}

static void add_list(cJSON *meta, const char *key, const char *const *words,
                     int32_t n) {
  cJSON *list = cJSON_AddArrayToObject(meta, key);
  for (int32_t k = 0; k < n; k++)
    cJSON_AddItemToArray(list, cJSON_CreateString(words[k]));
}

static lw_status write_json(const char *folder, const char *name,
                            const cJSON *j) {
  char *text = cJSON_Print(j);
  lw_buf path = {0};
  lw_buf_printf(&path, "%s/%s", folder, name);
  lw_status st = text ? lw_file_write(lw_buf_cstr(&path), text, strlen(text))
                      : lw_error(LW_RESOURCE_EXHAUSTED, "no memory");
  lw_buf_free(&path);
  cJSON_free(text);
  return st;
}

lw_status lw_subject_write_meta(const lw_subject_job *job, const char *version,
                                double compile_ms, const char *lost) {
  const lw_subject *s = job->subject;
  cJSON *meta = cJSON_CreateObject();
  cJSON_AddStringToObject(meta, "schema", "lawson.subject/1");
  cJSON_AddStringToObject(meta, "compiler",
                          s->compiler ? s->compiler : "lawson");
  cJSON_AddStringToObject(meta, "version", version);
  cJSON_AddStringToObject(meta, "target", s->target ? s->target : "cpu");
  add_list(meta, "options", s->options, s->n_options);
  add_list(meta, "disable", s->disable, s->n_disable);
  cJSON_AddNumberToObject(meta, "compile_ms", compile_ms);
  add_list(meta, "not_kept", &lost, lost && *lost);
  if (job->run_error)
    cJSON_AddStringToObject(meta, "run_error", job->run_error);
  lw_status st = write_json(job->out_dir, "meta.json", meta);
  cJSON_Delete(meta);
  return st;
}

/* ---- compiling ---- */

static bool is_same(const char *a, const char *b) {
  return a == b || (a && b && !strcmp(a, b));
}

/* Jobs of one compiler and target that follow each other. */
static int32_t group_length(const lw_subject_job *jobs, int32_t n) {
  int32_t k = 1;
  while (k < n &&
         is_same(jobs[k].subject->compiler, jobs[0].subject->compiler) &&
         is_same(jobs[k].subject->target, jobs[0].subject->target))
    k++;
  return k;
}

static lw_status prepare(lw_subject_job *j) {
  j->status = NULL;
  j->run_error = NULL;
  LW_TRY(lw_subject_check(j->subject->compiler, j->subject->target));
  LW_TRY(lw_dir_make(j->out_dir));
  remove_old(j);
  j->status = write_before(j);
  return NULL;
}

lw_status lw_subject_compile_all(lw_subject_job *jobs, int32_t n) {
  for (int32_t k = 0; k < n; k++) LW_TRY(prepare(&jobs[k]));
  for (int32_t k = 0, len; k < n; k += len) {
    len = group_length(jobs + k, n - k);
    LW_TRY(is_lawson(jobs[k].subject->compiler)
               ? lw_subject_lawson(jobs + k, len)
               : lw_subject_xla(jobs + k, len));
  }
  return NULL;
}

void lw_subject_jobs_free(lw_subject_job *jobs, int32_t n) {
  for (int32_t k = 0; k < n; k++) {
    lw_status_free(jobs[k].status);
    free(jobs[k].run_error);
    jobs[k].status = NULL;
    jobs[k].run_error = NULL;
  }
}

lw_status lw_subject_compile(const lw_subject *s, const char *module_path,
                             const char *out_dir) {
  lw_subject_job job = {
      .subject = s, .module_path = module_path, .out_dir = out_dir};
  lw_status st = lw_subject_compile_all(&job, 1);
  if (!st) {
    st = job.status;
    job.status = NULL;
  }
  lw_subject_jobs_free(&job, 1);
  return st;
}
