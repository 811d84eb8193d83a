/* lawson targets, doctor, help: what there is. */
#include <stdio.h>
#include <string.h>

#include "driver/probe.h"
#include "fusion/fusion.h"
#include "lab.h"
#include "lib/lib.h"
#include "pages.h"
#include "passes/passes.h"

/* ---- passes ---- */

int cli_pass_count(void) {
  int n;
  (void)lw_fusion_passes(&n);
  return lw_clean_up_pass_count + n;
}

const lw_pass *cli_pass_at(int k) {
  int n;
  const lw_pass *const *fusion = lw_fusion_passes(&n);
  return k < lw_clean_up_pass_count ? lw_clean_up_passes[k]
                                    : fusion[k - lw_clean_up_pass_count];
}

void cli_print_pass(const lw_pass *p) {
  printf("%-30s %s\n", p->name, p->summary);
  for (const lw_pass_option *o = p->options; o && o->name; o++) {
    printf("    %s.%s=%s: %s\n", p->name, o->name, o->dflt ? o->dflt : "",
           o->summary);
  }
}

/* ---- targets ---- */

static int print_target(cJSON *j, const char *name) {
  lw_target *t;
  lw_status st = lw_target_load(name, &t);
  if (st) {
    cli_error("%s", lw_status_message(st));
    lw_status_free(st);
    return CLI_USAGE;
  }
  lw_buf b = {0};
  lw_target_print(&b, t);
  if (j) {
    cJSON_AddStringToObject(j, "name", t->name);
    cJSON_AddStringToObject(j, "text", lw_buf_cstr(&b));
  } else {
    cli_out(lw_buf_cstr(&b));
  }
  lw_buf_free(&b);
  lw_target_free(t);
  return CLI_YES;
}

static void list_targets(cJSON *j) {
  const char *host = lw_target_host_name();
  cJSON *list = j ? cJSON_AddArrayToObject(j, "targets") : NULL;
  for (int k = 0; k < lw_target_builtin_count(); k++) {
    const char *name = lw_target_builtin_name(k);
    bool here = host && !strcmp(host, name);
    if (list) {
      cJSON *o = cJSON_CreateObject();
      cJSON_AddStringToObject(o, "name", name);
      cJSON_AddBoolToObject(o, "host", here);
      cJSON_AddItemToArray(list, o);
    } else {
      printf("%-24s%s\n", name, here ? "  what --target=cpu means here" : "");
    }
  }
}

static void show_progress(const char *what) {
  cli_progress("measuring: %s", what);
}

static int probe_machine(const cli_args *a, cJSON *j) {
  const char *out = a->value[OPT_OUTPUT];
  lw_buf command = {0}, text = {0};
  lw_buf_printf(&command, "lawson targets --probe%s%s", out ? " -o " : "",
                out ? out : "");
  lw_probe_options o = {.command = lw_buf_cstr(&command),
                        .progress = show_progress};
  lw_status st = lw_probe_machine(&o, &text);
  cli_progress("%s", "");
  int code = st ? cli_fail(st) : CLI_YES;
  if (!code && j) cJSON_AddStringToObject(j, "text", lw_buf_cstr(&text));
  if (!code && (out || !j)) code = cli_product(a, text.data, text.len);
  lw_buf_free(&command);
  lw_buf_free(&text);
  return code;
}

int cli_run_targets(const cli_args *a) {
  const char *out = a->value[OPT_OUTPUT];
  if (out && !a->value[OPT_PROBE]) {
    cli_error("-o goes with --probe: lawson targets --probe -o FILE");
    return CLI_USAGE;
  }
  if (out && !strcmp(out, "-") && a->value[OPT_JSON]) {
    cli_error("--json and -o - both want standard output");
    return CLI_USAGE;
  }
  cJSON *j = cli_json(a);
  const char *name = a->n_positional ? a->positional[0] : a->value[OPT_TARGET];
  int code = CLI_YES;
  if (a->value[OPT_PROBE]) {
    code = probe_machine(a, j);
  } else if (name) {
    code = print_target(j, name);
  } else {
    list_targets(j);
  }
  if (j && !code) {
    cli_json_print(j);
  } else {
    cJSON_Delete(j);
  }
  return code;
}

/* ---- doctor ---- */

static void finding(cJSON *list, bool good, const char *what,
                    const char *text) {
  if (list) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "what", what);
    cJSON_AddBoolToObject(o, "ok", good);
    cJSON_AddStringToObject(o, "text", text);
    cJSON_AddItemToArray(list, o);
  } else {
    printf("%s%-4s%s %-16s %s\n", good ? cli_green(1) : cli_red(1),
           good ? "ok" : "no", cli_plain(1), what, text);
  }
}

static const char trial[] =
    "HloModule trial\n"
    "ENTRY e {\n"
    "  x = f32[64] parameter(0)\n"
    "  y = f32[64] multiply(x, x)\n"
    "  ROOT z = f32[64] add(y, x)\n"
    "}\n";

/* Reads, compiles and verifies a small program. */
static lw_status try_road(lw_arena *a, bool *same) {
  lw_context *ctx = lw_context_new();
  lw_module *m = NULL;
  lw_status st = lw_load_text(ctx, trial, sizeof trial - 1, &m);
  lw_literal **args;
  int32_t n;
  lw_verify_report r = {0};
  if (!st) st = lw_random_inputs(m, 1, a, &args, &n, NULL, NULL);
  if (!st) {
    st = lw_verify(m, (const lw_literal *const *)args, n, NULL, a, &r);
  }
  *same = r.same;
  if (m) lw_module_free(m);
  lw_context_free(ctx);
  return st;
}

static int check_road(cJSON *list) {
  lw_arena *a = lw_arena_new();
  bool same = false;
  lw_status st = try_road(a, &same);
  int code = !st && same ? CLI_YES : CLI_MISSING;
  finding(list, code == CLI_YES, "compile and run",
          st ? lw_status_message(st)
          : same
              ? "a small program gives the same bits on every road"
              : "a small program does NOT give the same bits; lawson verify");
  lw_status_free(st);
  lw_arena_free(a);
  return code;
}

static void check_isas(cJSON *list) {
  static const char *const isas[] = {"baseline", "avx2", "avx512"};
  for (int k = 0; k < 3; k++) {
    bool has = lw_codegen_has_isa(isas[k]);
    finding(list, has, isas[k],
            has ? "this CPU has it" : "this CPU lacks it: not tested here");
  }
}

int cli_run_doctor(const cli_args *a) {
  cJSON *j = cli_json(a);
  cJSON *list = j ? cJSON_AddArrayToObject(j, "findings") : NULL;
  char text[128];
  finding(list, true, "code generator", lw_codegen_version());
  finding(list, true, "CPU", lw_codegen_host_cpu());
  const char *host = lw_target_host_name();
  finding(list, host != NULL, "target file",
          host ? host : "none fits this CPU; cpu-generic is used");
  snprintf(text, sizeof text, "%d", lw_core_count());
  finding(list, true, "cores", text);
  check_isas(list);
  int n;
  (void)lw_lib_entries(&n);
  snprintf(text, sizeof text, "%d custom calls (FFT: KissFFT, LAPACK: LAPACKE)",
           n);
  finding(list, true, "libraries", text);
  int code = check_road(list);
  if (j) cli_json_print(j);
  return code;
}

/* ---- help ---- */

static bool help_command(const char *name) {
  const cli_command *c = cli_find(name);
  if (!c) return false;
  lw_buf b = {0};
  cli_print_command(&b, c);
  cli_out(lw_buf_cstr(&b));
  lw_buf_free(&b);
  return true;
}

static const char *page_of(const char *kind, const char *name) {
  for (const cli_page *p = cli_pages; p->name; p++) {
    if (!strcmp(p->kind, kind) && !strcmp(p->name, name)) return p->text;
  }
  return NULL;
}

static bool help_pass(const char *name) {
  for (int k = 0; k < cli_pass_count(); k++) {
    const lw_pass *p = cli_pass_at(k);
    if (strcmp(p->name, name)) continue;
    const char *page = page_of("passes", name);
    if (page) {
      cli_out(page);
    } else {
      cli_print_pass(p);
    }
    return true;
  }
  return false;
}

static bool help_reason(const char *name) {
  lw_reason r = lw_reason_from_code(name);
  if (r == LW_REASON_COUNT) return false;
  const char *page = page_of("reasons", name);
  if (page) {
    cli_out(page);
  } else {
    printf("%s (%s): %s\n", name, lw_gate_name(lw_reason_table[r].gate),
           lw_reason_table[r].line);
  }
  return true;
}

static int unknown_topic(const char *name) {
  LW_VEC(const char *) names = {0};
  for (const cli_command *const *c = cli_commands; *c; c++) {
    lw_vec_push(&names, (*c)->name);
  }
  for (int k = 0; k < cli_pass_count(); k++)
    lw_vec_push(&names, cli_pass_at(k)->name);
  for (int k = 0; k < LW_REASON_COUNT; k++) {
    lw_vec_push(&names, lw_reason_table[k].code);
  }
  const char *near = lw_nearest_name(name, names.data, names.len);
  if (near) {
    cli_error("no help on '%s'; did you mean '%s'?", name, near);
  } else {
    cli_error("no help on '%s': a command, a pass (lawson passes) or a reason",
              name);
  }
  lw_vec_free(&names);
  return CLI_USAGE;
}

int cli_run_help(const cli_args *a) {
  if (!a->n_positional) {
    lw_buf b = {0};
    cli_print_usage(&b);
    lw_buf_str(&b, "\nreasons for a refusal (lawson help REASON):\n");
    for (int k = 0; k < LW_REASON_COUNT; k++) {
      lw_buf_printf(&b, "  %-26s %s\n", lw_reason_table[k].code,
                    lw_reason_table[k].line);
    }
    cli_out(lw_buf_cstr(&b));
    lw_buf_free(&b);
    return CLI_YES;
  }
  const char *name = a->positional[0];
  if (help_command(name) || help_pass(name) || help_reason(name)) {
    return CLI_YES;
  }
  return unknown_topic(name);
}
