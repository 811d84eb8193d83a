/* lawson capture: the modules that a program compiles. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "lab/capture.h"

/* ---- where to ---- */

static bool is_empty(const char *folder) {
  DIR *d = opendir(folder);
  if (!d) return true;
  int n = 0;
  for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
  closedir(d);
  return n == 0;
}

static void make_absolute(const char *folder, lw_buf *out) {
  char here[4096];
  if (*folder != '/' && getcwd(here, sizeof here))
    lw_buf_printf(out, "%s/", here);
  lw_buf_str(out, folder);
}

/* -o DIR, which must be empty: modules of two runs would be mixed. Else the
 * first of lawson-capture, lawson-capture-2, ... that is. */
static int choose_folder(const cli_args *a, lw_buf *out) {
  const char *given = a->value[OPT_OUTPUT];
  if (given) {
    make_absolute(given, out);
    if (is_empty(lw_buf_cstr(out))) return CLI_YES;
    cli_error("%s is not empty", given);
    return CLI_USAGE;
  }
  for (int k = 1; k < 10000; k++) {
    char name[40] = "lawson-capture";
    if (k > 1) snprintf(name, sizeof name, "lawson-capture-%d", k);
    out->len = 0;
    make_absolute(name, out);
    if (is_empty(lw_buf_cstr(out))) return CLI_YES;
  }
  cli_error("no free folder lawson-capture-N; use -o DIR");
  return CLI_BAD_INPUT;
}

/* ---- what is found ---- */

static void json_module(cJSON *list, const lw_captured *c) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddNumberToObject(o, "number", (double)c->number);
  cJSON_AddStringToObject(o, "name", c->name);
  cJSON_AddStringToObject(o, "file", c->file);
  cJSON_AddNumberToObject(o, "instructions", (double)c->instructions);
  if (c->after) {
    cJSON_AddStringToObject(o, "after", c->after);
    cJSON_AddNumberToObject(o, "instructions_after",
                            (double)c->instructions_after);
    cJSON_AddNumberToObject(o, "fusions_after", (double)c->fusions_after);
  }
  if (c->error) cJSON_AddStringToObject(o, "error", c->error);
  cJSON_AddItemToArray(list, o);
}

static void print_module(const lw_captured *c) {
  char after[48] = "-", fusions[24] = "-";
  if (c->after && !c->error) {
    snprintf(after, sizeof after, "%lld", (long long)c->instructions_after);
    snprintf(fusions, sizeof fusions, "%lld", (long long)c->fusions_after);
  }
  printf("%12lld %9s %8s  %-32s %s\n", (long long)c->instructions, after,
         fusions, c->name, c->file);
  if (c->error) printf("%32s %s\n", "", c->error);
}

static int list_modules(const cli_args *a, const char *folder, int exit_code) {
  lw_capture_list list = {0};
  lw_status st = lw_capture_find(folder, &list);
  if (st) return cli_fail(st);
  cJSON *j = cli_json(a);
  if (j) {
    cJSON_AddStringToObject(j, "folder", folder);
    cJSON_AddNumberToObject(j, "exit_code", exit_code);
    cJSON *modules = cJSON_AddArrayToObject(j, "modules");
    for (size_t k = 0; k < list.len; k++) json_module(modules, &list.data[k]);
    cli_json_print(j);
  } else {
    if (list.len)
      printf("%s%12s %9s %8s  %-32s file%s\n", cli_bold(1), "instructions",
             "optimised", "fusions", "module", cli_plain(1));
    for (size_t k = 0; k < list.len; k++) print_module(&list.data[k]);
    cli_note(
        "%zu modules in %s; any command takes one: lawson explain %s "
        "--module=NAME",
        list.len, folder, folder);
  }
  int code = list.len ? CLI_YES : CLI_NO;
  lw_capture_list_free(&list);
  return code;
}

/* ---- the command ---- */

static int capture(const cli_args *a, const char *folder) {
  const char *argv[65] = {0};
  for (int k = 0; k < a->n_positional; k++) argv[k] = a->positional[k];
  int exit_code = 0;
  lw_status st = lw_capture_run(argv, folder, &exit_code);
  if (st) return cli_fail(st);
  int code = list_modules(a, folder, exit_code);
  if (!exit_code) return code;
  cli_error("%s ended with status %d", argv[0], exit_code);
  return CLI_BAD_INPUT;
}

int cli_run_capture(const cli_args *a) {
  lw_buf folder = {0};
  int code = choose_folder(a, &folder);
  if (!code) code = capture(a, lw_buf_cstr(&folder));
  lw_buf_free(&folder);
  return code;
}
