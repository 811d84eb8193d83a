#include "common.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "hlo/check.h"
#include "lab.h"
#include "lab/arrays.h"

/* ---- messages ---- */

static const char *color_mode = "auto";

void cli_color_mode(const char *mode) {
  if (mode) color_mode = mode;
}

static bool color(int stream) {
  if (!strcmp(color_mode, "always")) return true;
  if (!strcmp(color_mode, "never")) return false;
  const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
  if (no && *no) return false;
  if (term && !strcmp(term, "dumb")) return false;
  return isatty(stream) != 0;
}

const char *cli_red(int s) { return color(s) ? "\033[31m" : ""; }
const char *cli_green(int s) { return color(s) ? "\033[32m" : ""; }
const char *cli_bold(int s) { return color(s) ? "\033[1m" : ""; }
const char *cli_plain(int s) { return color(s) ? "\033[0m" : ""; }

static bool progress_shown;

static void clear_progress(void) {
  if (progress_shown) fputs("\r\033[K", stderr);
  progress_shown = false;
}

void cli_progress(const char *fmt, ...) {
  if (!isatty(2)) return;
  clear_progress();
  if (!*fmt) return;
  va_list ap;
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fflush(stderr);
  progress_shown = true;
}

static void message(const char *kind, const char *start, const char *fmt,
                    va_list ap) {
  clear_progress();
  fflush(stdout);
  fprintf(stderr, "lawson: %s%s%s", start, kind, cli_plain(2));
  vfprintf(stderr, fmt, ap);
  fputc('\n', stderr);
}

void cli_error(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  message("error: ", cli_red(2), fmt, ap);
  va_end(ap);
}

void cli_note(const char *fmt, ...) {
  clear_progress();
  va_list ap;
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fputc('\n', stderr);
}

static int exit_code(lw_code code) {
  switch (code) {
    case LW_OK:
      return CLI_YES;
    case LW_INTERNAL:
      return CLI_INTERNAL;
    case LW_UNAVAILABLE:
      return CLI_MISSING;
    default:
      return CLI_BAD_INPUT;
  }
}

static int fail_as(lw_status st, int code) {
  const char *m = lw_status_message(st);
  bool rendered = strstr(m, ": error: ") != NULL; /* diagnostics: as they are */
  if (rendered) {
    clear_progress();
    fprintf(stderr, "%s%s", m, m[strlen(m) - 1] == '\n' ? "" : "\n");
  } else {
    cli_error("%s", m);
  }
  lw_status_free(st);
  return code;
}

int cli_fail(lw_status st) {
  return fail_as(st, exit_code(lw_status_code(st)));
}

int cli_fail_compile(const cli_args *a, lw_status st) {
  lw_code c = lw_status_code(st);
  bool spelled = a->value[OPT_FUEL] || a->value[OPT_PASS_OPTION] ||
                 a->value[OPT_FORCE_EDGE] || a->value[OPT_FORBID_EDGE];
  if (c == LW_NOT_FOUND || (c == LW_INVALID_ARGUMENT && spelled)) {
    return fail_as(st, CLI_USAGE);
  }
  if (c == LW_FAILED_PRECONDITION) return fail_as(st, CLI_MISSING);
  return cli_fail(st);
}

/* ---- input ---- */

int cli_number(const cli_args *a, cli_option_id id, int64_t low, int64_t high,
               int64_t dflt, int64_t *out) {
  *out = dflt;
  const char *s = a->value[id];
  if (!s) return CLI_YES;
  char *end;
  errno = 0;
  long long v = strtoll(s, &end, 0);
  if (errno || end == s || *end || v < low || v > high) {
    cli_error("--%s=%s: a whole number from %lld to %lld is needed",
              cli_options[id].name, s, (long long)low, (long long)high);
    return CLI_USAGE;
  }
  *out = v;
  return CLI_YES;
}

/* Commands that take any compiler. The others show what is Lawson's own. */
static bool takes_any(const cli_command *c) {
  static const char *const names[] = {"ablate", "bench", "diff", "passes",
                                      "xray"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (!strcmp(names[k], c->name)) return true;
  return false;
}

int cli_check_compiler(const cli_args *a) {
  const char *c = a->value[OPT_COMPILER];
  lw_status st = lw_subject_check(c, a->value[OPT_TARGET]);
  if (st) return fail_as(st, CLI_USAGE);
  if (!lw_subject_is_xla(c) || takes_any(a->command)) return CLI_YES;
  cli_error(
      "lawson %s is about lawson; --compiler=%s goes with ablate, bench, "
      "diff, passes and xray",
      a->command->name, c);
  return CLI_USAGE;
}

static lw_status check_module(const cli_input *in, lw_diags *d) {
  lw_check_module(in->module, (lw_check_options){0}, d);
  return lw_diags_status(d);
}

int cli_load(const cli_args *a, int k, bool check, cli_input *in) {
  *in = (cli_input){.ctx = lw_context_new(), .arena = lw_arena_new()};
  lw_diags d = {0};
  lw_status st = lw_load_module(in->ctx, a->positional[k], a->value[OPT_MODULE],
                                &d, &in->module);
  bool choose = lw_status_code(st) == LW_FAILED_PRECONDITION;
  if (!st && check) {
    if (!d.file) d.file = a->positional[k];
    st = check_module(in, &d);
  }
  lw_diags_free(&d);
  if (!st) return CLI_YES;
  cli_close(in);
  return choose ? fail_as(st, CLI_USAGE) : cli_fail(st);
}

void cli_close(cli_input *in) {
  if (in->module) lw_module_free(in->module);
  if (in->arena) lw_arena_free(in->arena);
  if (in->ctx) lw_context_free(in->ctx);
  *in = (cli_input){0};
}

static void say_range(const lw_input_range *r, cJSON *report) {
  lw_buf b = {0};
  lw_shape_print(&b, r->shape->no_layout, false);
  bool whole = lw_prim_is_int(r->shape->type) || r->shape->type == LW_PRED;
  if (report) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "parameter", r->param);
    cJSON_AddNumberToObject(o, "leaf", r->leaf);
    cJSON_AddStringToObject(o, "shape", lw_buf_cstr(&b));
    if (whole) {
      cJSON_AddNumberToObject(o, "low", r->low);
      cJSON_AddNumberToObject(o, "high", r->high);
      cJSON_AddBoolToObject(o, "index", r->is_index);
    } else {
      cJSON_AddStringToObject(o, "distribution", "normal");
    }
    cJSON_AddItemToArray(report, o);
  } else if (whole) {
    cli_note("  p%d %s: %.0f..%.0f%s", r->param, lw_buf_cstr(&b), r->low,
             r->high, r->is_index ? " (an index)" : "");
  } else {
    cli_note("  p%d %s: normal", r->param, lw_buf_cstr(&b));
  }
  lw_buf_free(&b);
}

int cli_inputs(const cli_args *a, cli_input *in, lw_literal ***args, int32_t *n,
               cJSON *report) {
  const char *path = a->value[OPT_INPUTS];
  if (path) {
    lw_status st = lw_arrays_read(path, in->module, in->arena, args, n);
    return st ? cli_fail(st) : CLI_YES;
  }
  int64_t seed;
  int code = cli_number(a, OPT_SEED, 0, INT64_MAX, 0, &seed);
  if (code) return code;
  lw_input_range *ranges;
  int32_t n_ranges;
  lw_status st = lw_random_inputs(in->module, (uint64_t)seed, in->arena, args,
                                  n, &ranges, &n_ranges);
  if (st) return cli_fail(st);
  if (n_ranges && !report && !a->value[OPT_BRIEF]) {
    cli_note("random inputs, seed %lld:", (long long)seed);
  }
  for (int32_t k = 0; k < n_ranges && !a->value[OPT_BRIEF]; k++) {
    say_range(&ranges[k], report);
  }
  return CLI_YES;
}

static bool is_flush(const cli_args *a) {
  const char *s = a->value[OPT_DENORMALS];
  return s && !strcmp(s, "flush");
}

lw_compile_options cli_compile_options(const cli_args *a) {
  return (lw_compile_options){
      .fusion = a->value[OPT_FUSION],
      .target = a->value[OPT_TARGET],
      .passes = a->value[OPT_PASSES],
      .disable = a->value[OPT_DISABLE],
      .fuel = a->value[OPT_FUEL],
      .pass_options = a->value[OPT_PASS_OPTION],
      .allow_inexact = a->value[OPT_ALLOW_INEXACT],
      .dump_passes = a->value[OPT_DUMP_PASSES],
      .force_edges = a->value[OPT_FORCE_EDGE],
      .forbid_edges = a->value[OPT_FORBID_EDGE],
      .keep_fusions = a->value[OPT_KEEP_FUSIONS] != NULL,
      .only_fusion = a->value[OPT_ONLY_FUSION] != NULL,
      .verify_each = a->value[OPT_VERIFY_EACH] != NULL,
      .flush_denormals = is_flush(a),
      .isa = a->value[OPT_ISA],
      .no_alias = a->value[OPT_NO_ALIAS] != NULL,
  };
}

/* ---- output ---- */

void cli_out(const char *text) { fputs(text, stdout); }

int cli_product(const cli_args *a, const void *data, size_t len) {
  const char *path = a->value[OPT_OUTPUT];
  if (!path || !strcmp(path, "-")) {
    fwrite(data, 1, len, stdout);
    return CLI_YES;
  }
  lw_status st = lw_file_write(path, data, len);
  return st ? cli_fail(st) : CLI_YES;
}

cJSON *cli_json(const cli_args *a) {
  if (!a->value[OPT_JSON]) return NULL;
  cJSON *j = cJSON_CreateObject();
  char schema[64];
  snprintf(schema, sizeof schema, "lawson.%s/1", a->command->name);
  cJSON_AddStringToObject(j, "schema", schema);
  return j;
}

void cli_json_print(cJSON *j) {
  char *s = cJSON_Print(j);
  if (s) {
    fputs(s, stdout);
    fputc('\n', stdout);
  }
  cJSON_free(s);
  cJSON_Delete(j);
}

lw_prim cli_narrowest_float(const lw_module *m) {
  lw_prim best = LW_PRIM_INVALID;
  for (const lw_comp *c = m->first_comp; c; c = c->next) {
    for (const lw_inst *i = c->first; i; i = i->next) {
      lw_prim t = lw_prim_part(i->shape->type);
      if (!lw_prim_is_float(t)) continue;
      if (best == LW_PRIM_INVALID ||
          lw_prim_table[t].man_bits < lw_prim_table[best].man_bits) {
        best = t;
      }
    }
  }
  return best;
}
