/* lawson setup: the real XLAs, from PyPI. */
#include <stdio.h>
#include <stdlib.h>

#include "common.h"
#include "lab/setup.h"

static cJSON *json_entry(const lw_setup_entry *e) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "name", e->name);
  cJSON_AddBoolToObject(o, "ready", e->ready);
  cJSON_AddStringToObject(o, "folder", e->folder);
  cJSON_AddStringToObject(o, "packages", e->packages);
  return o;
}

static int list_setups(const cli_args *a) {
  lw_setup_list list = {0};
  lw_status st = lw_setup_find_all(&list);
  if (st) return cli_fail(st);
  cJSON *j = cli_json(a);
  cJSON *entries = j ? cJSON_AddArrayToObject(j, "setups") : NULL;
  for (size_t k = 0; k < list.len; k++) {
    const lw_setup_entry *e = &list.data[k];
    if (entries)
      cJSON_AddItemToArray(entries, json_entry(e));
    else
      printf("%-16s %s%-10s%s %s\n", e->name, e->ready ? cli_green(1) : "",
             e->ready ? "ready" : "not set up", e->ready ? cli_plain(1) : "",
             e->packages);
  }
  if (j) cli_json_print(j);
  lw_setup_list_free(&list);
  return CLI_YES;
}

static void say(const char *text) { cli_note("%s", text); }

static int set_up(const cli_args *a, const char *kept) {
  lw_status st =
      a->value[OPT_REMOVE] ? lw_setup_remove(kept) : lw_setup_make(kept, say);
  if (st) return cli_fail(st);
  cJSON *j = cli_json(a);
  if (!j) return CLI_YES;
  char *python = lw_setup_python(kept);
  cJSON_AddStringToObject(j, "name", kept);
  cJSON_AddBoolToObject(j, "ready", python != NULL);
  if (python) cJSON_AddStringToObject(j, "python", python);
  free(python);
  cli_json_print(j);
  return CLI_YES;
}

int cli_run_setup(const cli_args *a) {
  if (a->value[OPT_LIST] || !a->n_positional) {
    if (!a->n_positional && !a->value[OPT_REMOVE]) return list_setups(a);
    cli_error(a->value[OPT_LIST] ? "--list takes no NAME"
                                 : "--remove needs a NAME");
    return CLI_USAGE;
  }
  char *kept;
  lw_status st = lw_setup_resolve(a->positional[0], &kept);
  if (st) {
    cli_error("%s", lw_status_message(st));
    lw_status_free(st);
    return CLI_USAGE;
  }
  int code = set_up(a, kept);
  free(kept);
  return code;
}
