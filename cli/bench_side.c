/* One side of a comparison: from its options to a worker's command line. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "bench.h"
#include "hlo/fingerprint.h"
#include "hlo/print.h"
#include "lab/passlog.h"
#include "lab/setup.h"
#include "lab/subject_jobs.h"
#include "lab/worker.h"

/* What a side may be given. */
static const int allowed[] = {
    OPT_FUSION,      OPT_COMPILER,     OPT_TARGET,        OPT_ISA,
    OPT_PASSES,      OPT_DISABLE,      OPT_FORCE_EDGE,    OPT_FORBID_EDGE,
    OPT_FUEL,        OPT_PASS_OPTION,  OPT_ALLOW_INEXACT, OPT_VERIFY_EACH,
    OPT_NO_ALIAS,    OPT_KEEP_FUSIONS, OPT_DENORMALS,     OPT_THREADS,
    OPT_ONLY_FUSION, OPT_MODULE,       OPT_SEED};
/* What makes other code of the same module. */
static const int beyond_module[] = {OPT_COMPILER, OPT_TARGET,    OPT_ISA,
                                    OPT_NO_ALIAS, OPT_DENORMALS, OPT_THREADS};

#define COUNT(x) (sizeof(x) / sizeof *(x))

bool bench_is_xla(const bench_side *s) {
  return lw_subject_is_xla(s->args->value[OPT_COMPILER]);
}

static void add_word(bench_side *s, lw_arena *arena, int id, const char *value,
                     size_t len) {
  const cli_option *o = &cli_options[id];
  lw_vec_push(&s->words, o->value ? lw_arena_printf(arena, "--%s=%.*s", o->name,
                                                    (int)len, value)
                                  : lw_arena_printf(arena, "--%s", o->name));
}

void bench_common_words(const cli_args *a, lw_arena *arena, bench_side *s) {
  for (size_t k = 0; k < COUNT(allowed); k++) {
    const char *v = a->value[allowed[k]];
    bool joined = allowed[k] == OPT_FORCE_EDGE || allowed[k] == OPT_FORBID_EDGE;
    while (v) {
      size_t n = joined ? strcspn(v, ";") : strlen(v);
      add_word(s, arena, allowed[k], v, n);
      v = v[n] ? v + n + 1 : NULL;
    }
  }
}

/* The next word as a shell cuts it: quotes of both kinds, backslashes. NULL at
 * the end; *open is set when a quote is. */
static const char *next_word(const char **at, lw_arena *arena, bool *open) {
  const char *p = *at;
  while (isspace((unsigned char)*p)) p++;
  if (!*p) return NULL;
  lw_buf b = {0};
  char quote = 0;
  for (; *p && (quote || !isspace((unsigned char)*p)); p++) {
    if (quote ? *p == quote : *p == '\'' || *p == '"') {
      quote = quote ? 0 : *p;
    } else {
      if (*p == '\\' && quote != '\'' && p[1]) p++;
      lw_buf_chr(&b, *p);
    }
  }
  *open = quote != 0;
  *at = p;
  const char *word = lw_arena_strdup(arena, lw_buf_cstr(&b), b.len);
  lw_buf_free(&b);
  return word;
}

int bench_split_words(const char *opts, lw_arena *arena, bench_side *s) {
  bool open = false;
  const char *word;
  while (opts && (word = next_word(&opts, arena, &open)))
    lw_vec_push(&s->words, word);
  if (!open) return CLI_YES;
  cli_error("--%c: a quote is not closed", s->letter);
  return CLI_USAGE;
}

static bool is_allowed(int id) {
  for (size_t k = 0; k < COUNT(allowed); k++)
    if (allowed[k] == id) return true;
  return false;
}

static int parse_words(bench_side *s, lw_arena *arena) {
  LW_VEC(char *) rest = {0};
  for (size_t k = 0; k < s->words.len; k++) {
    if (!strncmp(s->words.data[k], "--xla_", 6)) {
      lw_vec_push(&s->xla_flags, s->words.data[k]);
    } else {
      lw_vec_push(&rest, (char *)s->words.data[k]);
    }
  }
  lw_vec_push(&rest, (char *)s->module);
  s->args = LW_NEW(arena, cli_args);
  lw_buf error = {0};
  int code = CLI_YES;
  if (!cli_parse(cli_find("bench"), (int)rest.len, rest.data, s->args,
                 &error) ||
      s->args->n_positional != 1) {
    cli_error("--%c: %s", s->letter,
              error.len ? lw_buf_cstr(&error) : "options only");
    code = CLI_USAGE;
  }
  for (int id = 0; id < OPT_COUNT && !code; id++) {
    if (!s->args->value[id] || is_allowed(id)) continue;
    cli_error("--%c: --%s is no option of a side", s->letter,
              cli_options[id].name);
    code = CLI_USAGE;
  }
  if (!code && s->xla_flags.len && !bench_is_xla(s)) {
    cli_error("--%c: %s needs --compiler=xla", s->letter, s->xla_flags.data[0]);
    code = CLI_USAGE;
  }
  lw_buf_free(&error);
  lw_vec_free(&rest);
  return code;
}

/* ---- the worker's command ---- */

static lw_status own_path(lw_arena *arena, const char **out) {
  char path[4096];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0) return lw_error(LW_INTERNAL, "cannot find my own program");
  *out = lw_arena_strdup(arena, path, (size_t)n);
  return NULL;
}

static lw_status lawson_command(bench_side *s, const char *inputs,
                                lw_arena *arena) {
  const char *self;
  LW_TRY(own_path(arena, &self));
  lw_vec_push(&s->argv, self);
  lw_vec_push(&s->argv, "bench");
  lw_vec_push(&s->argv, "--worker");
  lw_vec_push(&s->argv, lw_arena_printf(arena, "--inputs=%s", inputs));
  for (size_t k = 0; k < s->words.len; k++)
    lw_vec_push(&s->argv, s->words.data[k]);
  lw_vec_push(&s->argv, "--");
  lw_vec_push(&s->argv, s->module);
  return NULL;
}

/* XLA reads text: whatever the module is, it gets that. */
static lw_status write_text(bench_side *s, const char *folder, lw_arena *arena,
                            const char **out) {
  lw_context *ctx = lw_context_new();
  lw_module *m = NULL;
  lw_status st =
      lw_load_module(ctx, s->module, s->args->value[OPT_MODULE], NULL, &m);
  if (!st) {
    lw_buf b = {0};
    lw_module_print(&b, m, &lw_print_default);
    *out = lw_arena_printf(arena, "%s/%c.hlo", folder, s->letter);
    st = lw_file_write(*out, b.data, b.len);
    lw_buf_free(&b);
    lw_module_free(m);
  }
  lw_context_free(ctx);
  return st;
}

/* A name that did not run here may be known all the same. */
static lw_status check_pass(const lw_subject *subject, const lw_pass_log *log,
                            const char *name, lw_arena *arena) {
  if (lw_pass_log_find(log, name)) return NULL;
  lw_name_list known = {0};
  lw_status st = lw_pass_names_known(subject, arena, &known);
  bool found = false;
  for (size_t k = 0; k < known.len; k++)
    found |= lw_pass_name_is(known.data[k], name);
  if (!st && !found) {
    const char *near = lw_nearest_name(name, known.data, known.len);
    st = lw_error(LW_NOT_FOUND, "unknown pass \"%s\"%s%s%s", name,
                  near ? "; did you mean \"" : "", near ? near : "",
                  near ? "\"?" : "");
  }
  lw_vec_free(&known);
  return st;
}

/* XLA takes any name for a pass, and a misspelt one changes nothing in
 * silence: names are looked up among those that ran, then those it knows. */
static lw_status check_passes(const bench_side *s, const char *text,
                              const char *folder, lw_arena *arena) {
  const char *list = s->args->value[OPT_DISABLE];
  if (!list) return NULL;
  lw_subject subject = {.compiler = s->args->value[OPT_COMPILER],
                        .target = s->args->value[OPT_TARGET]};
  const char *out = lw_arena_printf(arena, "%s/%c.passes", folder, s->letter);
  LW_TRY(lw_subject_compile(&subject, text, out));
  lw_pass_log log;
  lw_status st = lw_pass_log_read(out, &log);
  for (const char *p = list; p && !st;) {
    size_t n = strcspn(p, ",");
    st = check_pass(&subject, &log, lw_arena_strdup(arena, p, n), arena);
    p = p[n] ? p + n + 1 : NULL;
  }
  lw_pass_log_free(&log);
  return st;
}

static lw_status xla_command(bench_side *s, const char *inputs,
                             const char *folder, lw_arena *arena) {
  const char *compiler = s->args->value[OPT_COMPILER];
  const char *target = s->args->value[OPT_TARGET];
  LW_TRY(lw_subject_python(compiler, target, &s->python));
  LW_TRY(lw_share_path("python/lawson/worker.py", &s->script));
  const char *text = NULL;
  LW_TRY(write_text(s, folder, arena, &text));
  LW_TRY(check_passes(s, text, folder, arena));
  lw_vec_push(&s->argv, s->python);
  lw_vec_push(&s->argv, s->script);
  lw_vec_push(&s->argv, text);
  lw_vec_push(&s->argv, lw_arena_printf(arena, "--inputs=%s", inputs));
  static const int passed[] = {OPT_TARGET, OPT_DISABLE, OPT_THREADS};
  for (size_t k = 0; k < COUNT(passed); k++) {
    const char *v = s->args->value[passed[k]];
    if (v)
      lw_vec_push(&s->argv, lw_arena_printf(arena, "--%s=%s",
                                            cli_options[passed[k]].name, v));
  }
  for (size_t k = 0; k < s->xla_flags.len; k++)
    lw_vec_push(&s->argv, s->xla_flags.data[k]);
  return NULL;
}

/* Options that only Lawson has would be ignored by XLA: no experiment. */
static int check_xla_options(const bench_side *s) {
  static const int fine[] = {OPT_COMPILER, OPT_TARGET, OPT_DISABLE,
                             OPT_THREADS,  OPT_MODULE, OPT_SEED};
  for (size_t k = 0; k < COUNT(allowed); k++) {
    bool known = false;
    for (size_t i = 0; i < COUNT(fine); i++) known |= fine[i] == allowed[k];
    if (known || !s->args->value[allowed[k]]) continue;
    cli_error(
        "--%c: --%s is Lawson's alone; with --compiler=xla give XLA's "
        "own flags (--xla_...)",
        s->letter, cli_options[allowed[k]].name);
    return CLI_USAGE;
  }
  return CLI_YES;
}

int bench_hash_file(const char *path, char out[24]) {
  char *data;
  size_t len;
  out[0] = 0;
  if (lw_dir_exists(path)) return CLI_YES;
  lw_status st = lw_file_read(path, &data, &len);
  if (st) return cli_fail(st);
  snprintf(out, 24, "%016llx", (unsigned long long)lw_hash_bytes(data, len, 0));
  free(data);
  return CLI_YES;
}

int bench_prepare(bench_side *s, const char *inputs, const char *folder,
                  lw_arena *arena) {
  int code = s->args ? CLI_YES : parse_words(s, arena);
  if (code || !inputs) return code;
  bool xla = bench_is_xla(s);
  code = xla ? check_xla_options(s) : cli_check_compiler(s->args);
  if (!code) code = bench_hash_file(s->module, s->file_hash);
  if (code) return code;
  lw_status st = xla ? xla_command(s, inputs, folder, arena)
                     : lawson_command(s, inputs, arena);
  lw_vec_push(&s->argv, NULL);
  if (!st) return CLI_YES;
  bool wrong = lw_status_code(st) == LW_NOT_FOUND;
  code = cli_fail(lw_status_annotate(st, "--%c", s->letter));
  return wrong ? CLI_USAGE : code;
}

/* ---- a first start ---- */

static lw_status fingerprint_of(const char *path, char out[24]) {
  lw_context *ctx = lw_context_new();
  lw_module *m = NULL;
  lw_status st = lw_load_module(ctx, path, NULL, NULL, &m);
  if (!st) {
    snprintf(out, 24, "%016llx",
             (unsigned long long)lw_module_fingerprint(m, LW_FP_ALL));
    lw_module_free(m);
  }
  lw_context_free(ctx);
  return st;
}

static double steady_of(const char *ready) {
  cJSON *j = cJSON_Parse(ready);
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(j, "steady_ms");
  double ms = cJSON_IsNumber(v) ? v->valuedouble : 0;
  cJSON_Delete(j);
  return ms;
}

static lw_status ask_all(bench_side *s, lw_worker *w, const char *folder,
                         lw_arena *arena) {
  const char *module = lw_arena_printf(arena, "%s/%c.after", folder, s->letter);
  s->outputs = lw_arena_printf(arena, "%s/%c.npz", folder, s->letter);
  const char *questions[] = {lw_arena_printf(arena, "module %s", module),
                             lw_arena_printf(arena, "save %s", s->outputs)};
  for (int k = 0; k < 2; k++)
    LW_TRY(lw_worker_ask(w, questions[k], BENCH_TIMEOUT_MS, NULL));
  return fingerprint_of(module, s->fingerprint);
}

int bench_try(bench_side *s, const char *folder, double sample_ms,
              lw_arena *arena) {
  lw_worker *w;
  lw_buf ready = {0};
  cli_progress("side %c: compiling", s->letter);
  lw_status st =
      lw_worker_start(s->argv.data, NULL, BENCH_TIMEOUT_MS, &w, &ready);
  if (!st) {
    s->ready = lw_arena_strdup(arena, lw_buf_cstr(&ready), ready.len);
    st = ask_all(s, w, folder, arena);
    lw_worker_stop(w);
    double n = sample_ms / (steady_of(s->ready) + 1e-6);
    s->runs = n < 1 ? 1 : n > 1000 ? 1000 : (int64_t)n;
  }
  lw_buf_free(&ready);
  if (!st) return CLI_YES;
  bool wrong = lw_status_code(st) == LW_NOT_FOUND;
  int code = cli_fail(lw_status_annotate(st, "side %c", s->letter));
  return wrong ? CLI_USAGE : code;
}

static bool equal_value(const char *a, const char *b) {
  return !a || !b ? a == b : !strcmp(a, b);
}

bool bench_same_program(const bench_side *a, const bench_side *b) {
  if (strcmp(a->fingerprint, b->fingerprint)) return false;
  for (size_t k = 0; k < COUNT(beyond_module); k++)
    if (!equal_value(a->args->value[beyond_module[k]],
                     b->args->value[beyond_module[k]]))
      return false;
  /* XLA's flags reach beyond the module, but for the list of passes. */
  static const char passes[] = "--xla_disable_hlo_passes=";
  LW_VEC(const char *) own[2] = {{0}, {0}};
  const bench_side *sides[2] = {a, b};
  for (int s = 0; s < 2; s++)
    for (size_t k = 0; k < sides[s]->xla_flags.len; k++)
      if (strncmp(sides[s]->xla_flags.data[k], passes, sizeof passes - 1))
        lw_vec_push(&own[s], sides[s]->xla_flags.data[k]);
  bool same = own[0].len == own[1].len;
  for (size_t k = 0; same && k < own[0].len; k++)
    same = !strcmp(own[0].data[k], own[1].data[k]);
  lw_vec_free(&own[0]);
  lw_vec_free(&own[1]);
  return same;
}

void bench_side_free(bench_side *s) {
  lw_vec_free(&s->words);
  lw_vec_free(&s->xla_flags);
  lw_vec_free(&s->argv);
  free(s->python);
  free(s->script);
}
