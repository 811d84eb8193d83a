/* lawson passes: what there is, or what ran. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "fusion/fusion.h"
#include "lab.h"
#include "lab/passlog.h"
#include "lab/scratch.h"

/* ---- Lawson's registry ---- */

static void print_steps(const char *const *steps) {
  for (; *steps; steps++) printf(" %s", *steps);
  putchar('\n');
}

static void print_pipelines(void) {
  static const char *const strategies[] = {"none", "xla", "priority"};
  printf("\npipeline cpu ({...}* runs until nothing changes):\n ");
  print_steps(lw_pipeline_cpu.steps);
  for (int k = 0; k < 3; k++) {
    printf("@fusion for --fusion=%s:", strategies[k]);
    print_steps(lw_fusion_pipeline(strategies[k]));
  }
}

static void json_pass(cJSON *list, const lw_pass *p) {
  cJSON *j = cJSON_CreateObject();
  cJSON_AddStringToObject(j, "name", p->name);
  cJSON_AddStringToObject(j, "summary", p->summary);
  cJSON *options = cJSON_AddArrayToObject(j, "options");
  for (const lw_pass_option *o = p->options; o && o->name; o++) {
    cJSON *e = cJSON_CreateObject();
    cJSON_AddStringToObject(e, "name", o->name);
    cJSON_AddStringToObject(e, "default", o->dflt ? o->dflt : "");
    cJSON_AddStringToObject(e, "summary", o->summary);
    cJSON_AddItemToArray(options, e);
  }
  cJSON_AddItemToArray(list, j);
}

static void json_steps(cJSON *j, const char *name, const char *const *steps) {
  cJSON *list = cJSON_AddArrayToObject(j, name);
  for (; *steps; steps++) {
    cJSON_AddItemToArray(list, cJSON_CreateString(*steps));
  }
}

static const char *part_of(const cli_args *a) {
  return a->value[OPT_GREP] ? a->value[OPT_GREP] : "";
}

static int list_registry(const cli_args *a) {
  cJSON *j = cli_json(a);
  cJSON *list = j ? cJSON_AddArrayToObject(j, "passes") : NULL;
  for (int k = 0; k < cli_pass_count(); k++) {
    const lw_pass *p = cli_pass_at(k);
    if (!lw_pass_name_has(p->name, part_of(a))) continue;
    if (list)
      json_pass(list, p);
    else
      cli_print_pass(p);
  }
  if (!j) {
    if (!a->value[OPT_GREP]) print_pipelines();
    return CLI_YES;
  }
  json_steps(j, "pipeline", lw_pipeline_cpu.steps);
  json_steps(j, "none", lw_fusion_pipeline("none"));
  json_steps(j, "xla", lw_fusion_pipeline("xla"));
  json_steps(j, "priority", lw_fusion_pipeline("priority"));
  cli_json_print(j);
  return CLI_YES;
}

/* ---- a compile's log ---- */

static void json_row(cJSON *list, const lw_pass_row *r) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddNumberToObject(o, "order", (double)r->order);
  cJSON_AddNumberToObject(o, "depth", r->depth);
  cJSON_AddStringToObject(o, "kind", r->pipeline ? "pipeline" : "pass");
  cJSON_AddStringToObject(o, "name", r->name);
  cJSON_AddBoolToObject(o, "changed", r->changed);
  if (r->ms >= 0)
    cJSON_AddNumberToObject(o, "ms", r->ms);
  else
    cJSON_AddNullToObject(o, "ms");
  cJSON_AddItemToArray(list, o);
}

static void print_row(const lw_pass_row *r) {
  char ms[32] = "-";
  if (r->ms >= 0) snprintf(ms, sizeof ms, "%.3f", r->ms);
  printf("%5lld  %-8s  %s%-7s%s %10s  %*s%s\n", (long long)r->order,
         r->pipeline ? "pipeline" : "pass", r->changed ? cli_green(1) : "",
         r->changed ? "yes" : "no", r->changed ? cli_plain(1) : "", ms,
         2 * r->depth, "", r->name);
}

static int print_log(const cli_args *a, const lw_pass_log *log) {
  cJSON *j = cli_json(a);
  cJSON *list = j ? cJSON_AddArrayToObject(j, "passes") : NULL;
  if (!j)
    printf("%s%5s  %-8s  %-7s %10s  name%s\n", cli_bold(1), "order", "kind",
           "changed", "ms", cli_plain(1));
  for (size_t k = 0; k < log->rows.len; k++) {
    const lw_pass_row *r = &log->rows.data[k];
    if (!lw_pass_name_has(r->name, part_of(a))) continue;
    if (list)
      json_row(list, r);
    else
      print_row(r);
  }
  if (j) cli_json_print(j);
  return CLI_YES;
}

static lw_status compile_for_log(const cli_args *a, const char *scratch,
                                 lw_pass_log *log) {
  lw_buf path = {0}, out = {0};
  lw_buf_printf(&path, "%s/attention.hlo", scratch);
  lw_buf_printf(&out, "%s/out", scratch);
  lw_arena *arena = lw_arena_new();
  lw_subject s = cli_subject(a, arena);
  lw_subject_job job = {.subject = &s,
                        .module_path = lw_buf_cstr(&path),
                        .which = a->value[OPT_MODULE],
                        .out_dir = lw_buf_cstr(&out)};
  lw_status st = NULL;
  if (a->n_positional)
    job.module_path = a->positional[0];
  else
    st = lw_file_write(lw_buf_cstr(&path), lw_pass_probe_attention,
                       strlen(lw_pass_probe_attention));
  if (!st) st = lw_subject_compile_all(&job, 1);
  if (!st) {
    st = job.status;
    job.status = NULL;
  }
  if (!st) st = lw_pass_log_read(lw_buf_cstr(&out), log);
  lw_subject_jobs_free(&job, 1);
  lw_arena_free(arena);
  lw_buf_free(&path);
  lw_buf_free(&out);
  return st;
}

static int list_log(const cli_args *a) {
  char *scratch;
  lw_pass_log log = {0};
  lw_status st = lw_scratch_new(&scratch);
  if (!st) st = compile_for_log(a, scratch, &log);
  int code = st ? cli_fail_subject(st) : print_log(a, &log);
  lw_pass_log_free(&log);
  lw_scratch_free(scratch);
  return code;
}

int cli_run_passes(const cli_args *a) {
  bool xla = lw_subject_is_xla(a->value[OPT_COMPILER]);
  return xla || a->n_positional ? list_log(a) : list_registry(a);
}
