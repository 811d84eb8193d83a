/* lawson fmt and lawson check: reading, without compiling. */
#include <stdio.h>
#include <string.h>

#include "common.h"
#include "hlo/check.h"
#include "hlo/print.h"
#include "reader/proto.h"

static int print_as(const cli_args *a, const lw_module *m) {
  lw_buf b = {0};
  int code = CLI_YES;
  cJSON *j = cli_json(a);
  if (a->value[OPT_PROTO]) {
    lw_status st = lw_write_proto(m, false, &b);
    if (st) code = cli_fail(st);
  } else {
    const lw_print_options *o = &lw_print_default;
    if (a->value[OPT_SHORT]) o = &lw_print_short;
    if (a->value[OPT_CANONICAL]) o = &lw_print_canonical;
    lw_module_print(&b, m, o);
  }
  if (j && !code) {
    cJSON_AddStringToObject(j, "module", m->name);
    if (!a->value[OPT_PROTO])
      cJSON_AddStringToObject(j, "hlo", lw_buf_cstr(&b));
    cli_json_print(j);
  } else {
    cJSON_Delete(j);
  }
  bool to_file = a->value[OPT_OUTPUT] != NULL;
  if (!code && (to_file || !j)) {
    code = cli_product(a, b.data ? b.data : "", b.len);
  }
  lw_buf_free(&b);
  return code;
}

int cli_run_fmt(const cli_args *a) {
  const char *out = a->value[OPT_OUTPUT];
  if (a->value[OPT_JSON] && out && !strcmp(out, "-")) {
    cli_error("--json and -o - both want standard output");
    return CLI_USAGE;
  }
  cli_input in;
  int code = cli_load(a, 0, false, &in);
  if (code) return code;
  code = print_as(a, in.module);
  cli_close(&in);
  return code;
}

/* ---- check ---- */

static void json_problem(cJSON *list, const char *file, const lw_diag *d) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "file", file);
  cJSON_AddNumberToObject(o, "line", d->line);
  cJSON_AddNumberToObject(o, "column", d->column);
  cJSON_AddStringToObject(o, "message", d->message);
  cJSON_AddItemToArray(list, o);
}

static void show(const lw_diags *d, const char *file, lw_status st,
                 cJSON *list) {
  if (list && d->list.len == 0) { /* a file that could not be read at all */
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "file", file);
    cJSON_AddStringToObject(o, "message", lw_status_message(st));
    cJSON_AddItemToArray(list, o);
  }
  for (size_t k = 0; list && k < d->list.len; k++) {
    json_problem(list, file, &d->list.data[k]);
  }
  if (list) return;
  if (d->list.len == 0) {
    cli_error("%s", lw_status_message(st));
    return;
  }
  lw_buf b = {0};
  lw_diags_render(d, &b);
  fputs(lw_buf_cstr(&b), stderr);
  lw_buf_free(&b);
}

static int check_one(const cli_args *a, int k, cJSON *list) {
  lw_context *ctx = lw_context_new();
  lw_diags d = {0};
  lw_module *m = NULL;
  const char *file = a->positional[k];
  lw_status st = lw_load_module(ctx, file, a->value[OPT_MODULE], &d, &m);
  int code = CLI_YES;
  if (!st) {
    if (!d.file) d.file = file;
    lw_check_module(m, (lw_check_options){0}, &d);
    st = lw_diags_status(&d);
  }
  if (st) {
    code = lw_status_code(st) == LW_FAILED_PRECONDITION ? CLI_USAGE
                                                        : CLI_BAD_INPUT;
    show(&d, file, st, list);
    lw_status_free(st);
  } else if (!list) {
    printf("%s: %s%s%s: %lld instructions\n", file, cli_green(1), "ok",
           cli_plain(1), (long long)lw_module_inst_count(m));
  }
  if (m) lw_module_free(m);
  lw_diags_free(&d);
  lw_context_free(ctx);
  return code;
}

int cli_run_check(const cli_args *a) {
  cJSON *j = cli_json(a);
  cJSON *list = j ? cJSON_AddArrayToObject(j, "problems") : NULL;
  int code = CLI_YES;
  for (int k = 0; k < a->n_positional; k++) {
    int one = check_one(a, k, list);
    if (one > code) code = one;
  }
  if (j) {
    cJSON_AddBoolToObject(j, "ok", code == CLI_YES);
    cli_json_print(j);
  }
  return code;
}
