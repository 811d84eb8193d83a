/* XLA as a subject: python/lawson/subject.py does the work, one start of it for
 * all jobs of a target. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "lab/process.h"
#include "lab/subject_impl.h"

enum { MAX_WIDTH = 4 };

/* ---- the request ---- */

/* Compiles at a time. TPU: one, since each may take several cores. */
static int width_of(const lw_xla_target *t) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  if (!strcmp(t->backend, "tpu") || cores < 2) return 1;
  return cores < MAX_WIDTH ? (int)cores : MAX_WIDTH;
}

static void add_words(cJSON *o, const char *key, const char *const *words,
                      int32_t n) {
  cJSON *list = cJSON_AddArrayToObject(o, key);
  for (int32_t k = 0; k < n; k++)
    cJSON_AddItemToArray(list, cJSON_CreateString(words[k]));
}

static cJSON *request_job(const lw_subject_job *j) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "folder", j->out_dir);
  add_words(o, "flags", j->subject->options, j->subject->n_options);
  add_words(o, "disable", j->subject->disable, j->subject->n_disable);
  if (j->inputs) cJSON_AddStringToObject(o, "inputs", j->inputs);
  return o;
}

/* NULL when there is nothing to do. number[k]: the job behind place k. */
static char *request_text(const lw_subject_job *jobs, int32_t n,
                          lw_xla_target *t, int32_t *number) {
  cJSON *r = cJSON_CreateObject();
  const char *version = lw_subject_version(jobs[0].subject->compiler);
  cJSON_AddStringToObject(r, "backend", t->backend);
  cJSON_AddStringToObject(r, "device", lw_buf_cstr(&t->device));
  cJSON_AddNumberToObject(r, "width", width_of(t));
  if (version) cJSON_AddStringToObject(r, "version", version);
  cJSON *list = cJSON_AddArrayToObject(r, "jobs");
  int32_t count = 0;
  for (int32_t k = 0; k < n; k++) {
    if (jobs[k].status) continue;
    cJSON_AddItemToArray(list, request_job(&jobs[k]));
    number[count++] = k;
  }
  char *text = count ? cJSON_PrintUnformatted(r) : NULL;
  cJSON_Delete(r);
  return text;
}

/* ---- the answer ---- */

static const char *text_of(const cJSON *o, const char *key) {
  const char *s = cJSON_GetStringValue(cJSON_GetObjectItem(o, key));
  return s ? s : "";
}

static void print_versions(lw_buf *b, const cJSON *versions) {
  const cJSON *v;
  cJSON_ArrayForEach(v, versions) {
    const char *s = cJSON_GetStringValue(v);
    lw_buf_printf(b, "%s%s %s", b->len ? ", " : "", v->string, s ? s : "?");
  }
}

/* xla.json becomes part of meta.json. */
static lw_status take_answer(lw_subject_job *j) {
  lw_buf path = {0}, versions = {0}, lost = {0};
  char *text;
  size_t len;
  lw_buf_printf(&path, "%s/xla.json", j->out_dir);
  lw_status st = lw_file_read(lw_buf_cstr(&path), &text, &len);
  if (!st) {
    cJSON *o = cJSON_ParseWithLength(text, len);
    print_versions(&versions, cJSON_GetObjectItem(o, "versions"));
    const cJSON *l;
    cJSON_ArrayForEach(l, cJSON_GetObjectItem(o, "not_kept")) {
      const char *s = cJSON_GetStringValue(l);
      lw_buf_printf(&lost, "%s%s", lost.len ? ", " : "", s ? s : "?");
    }
    const char *failed = text_of(o, "run_error");
    if (*failed) j->run_error = strdup(failed);
    const cJSON *ms = cJSON_GetObjectItem(o, "compile_ms");
    st = lw_subject_write_meta(j, lw_buf_cstr(&versions),
                               cJSON_IsNumber(ms) ? ms->valuedouble : 0,
                               lw_buf_cstr(&lost));
    cJSON_Delete(o);
    free(text);
    unlink(lw_buf_cstr(&path));
  }
  lw_buf_free(&path);
  lw_buf_free(&versions);
  lw_buf_free(&lost);
  return st;
}

static lw_status refused(const lw_subject_job *j, const char *words) {
  return lw_error(LW_INVALID_ARGUMENT, "%s refuses %s: %s",
                  j->subject->compiler, j->module_path, words);
}

/* One line: {"job": k, "error": null or text}. */
static void take_line(lw_subject_job *jobs, const int32_t *number,
                      int32_t count, const char *line, size_t len, bool *seen) {
  cJSON *o = cJSON_ParseWithLength(line, len);
  const cJSON *k = cJSON_GetObjectItem(o, "job");
  const cJSON *e = cJSON_GetObjectItem(o, "error");
  if (cJSON_IsNumber(k) && k->valueint >= 0 && k->valueint < count) {
    lw_subject_job *j = &jobs[number[k->valueint]];
    if (!seen[k->valueint])
      j->status =
          cJSON_IsString(e) ? refused(j, e->valuestring) : take_answer(j);
    seen[k->valueint] = true;
  }
  cJSON_Delete(o);
}

static lw_status take_lines(lw_subject_job *jobs, const int32_t *number,
                            int32_t count, const lw_buf *out) {
  bool *seen = calloc((size_t)count + 1, sizeof *seen);
  if (!seen) return lw_error(LW_RESOURCE_EXHAUSTED, "no memory");
  const char *p = out->data;
  for (size_t left = out->len; p && left;) {
    const char *end = memchr(p, '\n', left);
    size_t len = end ? (size_t)(end - p) : left;
    take_line(jobs, number, count, p, len, seen);
    p += len + (end != NULL);
    left -= len + (end != NULL);
  }
  for (int32_t k = 0; k < count; k++)
    if (!seen[k])
      jobs[number[k]].status =
          refused(&jobs[number[k]], "its Python ended without an answer");
  free(seen);
  return NULL;
}

/* ---- the call ---- */

static lw_status no_packages(const lw_subject_job *j, const lw_xla_target *t,
                             const char *python, lw_buf *why) {
  const char *version = lw_subject_version(j->subject->compiler);
  char *kept = lw_setup_name(t->backend, version);
  while (why->len && why->data[why->len - 1] == '\n')
    why->data[--why->len] = '\0';
  lw_status st = lw_error(LW_UNAVAILABLE,
                          "%s cannot run %s for %s (%s); make it ready with: "
                          "lawson setup %s",
                          python, j->subject->compiler, t->backend,
                          lw_buf_cstr(why), kept);
  free(kept);
  return st;
}

static lw_status call(lw_subject_job *jobs, int32_t n, lw_xla_target *t,
                      const char *python, const char *script) {
  int32_t *number = calloc((size_t)n + 1, sizeof *number);
  char *request = number ? request_text(jobs, n, t, number) : NULL;
  if (!request) {
    free(number);
    return NULL;
  }
  int32_t count = 0;
  for (int32_t k = 0; k < n; k++) count += !jobs[k].status;
  const char *argv[] = {python, script, NULL};
  lw_process_result r;
  lw_status st = lw_process_run(
      &(lw_process){
          .argv = argv, .input = request, .input_len = strlen(request)},
      &r);
  if (st && lw_status_code(st) == LW_NOT_FOUND) {
    lw_buf why = {0};
    lw_buf_str(&why, lw_status_message(st));
    lw_status_free(st);
    st = no_packages(&jobs[0], t, python, &why);
    lw_buf_free(&why);
  } else if (!st && r.exit_code == 4) {
    st = no_packages(&jobs[0], t, python, &r.out);
  } else if (!st && r.exit_code) {
    const char *said = lw_buf_cstr(&r.err);
    size_t len = strlen(said);
    st = lw_error(LW_INTERNAL, "%s %s: exit status %d\n%s", python, script,
                  r.exit_code, len > 2000 ? said + len - 2000 : said);
  }
  if (!st) st = take_lines(jobs, number, count, &r.out);
  lw_process_result_free(&r);
  cJSON_free(request);
  free(number);
  return st;
}

lw_status lw_subject_xla(lw_subject_job *jobs, int32_t n) {
  const lw_subject *s = jobs[0].subject;
  char *python = NULL, *script = NULL;
  lw_xla_target t = {0};
  lw_status st = lw_subject_python(s->compiler, s->target, &python);
  if (!st) st = lw_share_path("python/lawson/subject.py", &script);
  if (!st) st = lw_xla_target_of(s->target, &t);
  if (!st) st = call(jobs, n, &t, python, script);
  lw_xla_target_free(&t);
  free(python);
  free(script);
  return st;
}
