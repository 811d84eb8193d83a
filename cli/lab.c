/* Subjects from command lines (lab.h). */
#include "lab.h"

#include <string.h>

#include "bench.h"

/* What the command line says beside --compiler, --target and --disable, in the
 * words of `lawson opt`. */
static const int worded[] = {OPT_FUSION,        OPT_ISA,         OPT_PASSES,
                             OPT_FUEL,          OPT_PASS_OPTION, OPT_FORCE_EDGE,
                             OPT_ALLOW_INEXACT, OPT_FORBID_EDGE, OPT_DENORMALS},
                 flags[] = {OPT_KEEP_FUSIONS, OPT_ONLY_FUSION, OPT_VERIFY_EACH,
                            OPT_NO_ALIAS};
enum {
  N_WORDED = sizeof worded / sizeof *worded,
  N_FLAGS = sizeof flags / sizeof *flags
};

/* XLA's flags, between blanks. */
static int32_t split_flags(const char *text, lw_arena *arena,
                           const char **out) {
  int32_t n = 0;
  for (const char *p = text; *p;) {
    size_t len = strcspn(p, " ");
    if (len) out[n++] = lw_arena_strdup(arena, p, len);
    p += len + (p[len] == ' ');
  }
  return n;
}

lw_subject cli_subject(const cli_args *a, lw_arena *arena) {
  const char *c = a->value[OPT_COMPILER], *xla = a->value[OPT_XLA_FLAGS];
  lw_subject s = {.compiler = c ? c : "lawson", .target = a->value[OPT_TARGET]};
  size_t room = (size_t)N_WORDED + N_FLAGS + (xla ? strlen(xla) : 0);
  const char **v = LW_NEW_ARRAY(arena, const char *, room + 1);
  s.options = v;
  if (lw_subject_is_xla(c)) {
    s.n_options = xla ? split_flags(xla, arena, v) : 0;
    return s;
  }
  for (int k = 0; k < N_WORDED; k++)
    if (a->value[worded[k]])
      v[s.n_options++] = lw_arena_printf(
          arena, "--%s=%s", cli_options[worded[k]].name, a->value[worded[k]]);
  for (int k = 0; k < N_FLAGS; k++)
    if (a->value[flags[k]])
      v[s.n_options++] =
          lw_arena_printf(arena, "--%s", cli_options[flags[k]].name);
  return s;
}

/* Commas to a list. */
static void add_disabled(lw_subject *s, const char *list, lw_arena *arena) {
  const char **v = LW_NEW_ARRAY(arena, const char *,
                                (size_t)s->n_disable + strlen(list) + 1);
  for (int32_t k = 0; k < s->n_disable; k++) v[k] = s->disable[k];
  for (const char *p = list; *p;) {
    size_t n = strcspn(p, ",");
    if (n) v[s->n_disable++] = lw_arena_strdup(arena, p, n);
    p += n + (p[n] == ',');
  }
  s->disable = v;
}

static void take_word(lw_subject *s, const char *word, const char **options,
                      lw_arena *arena) {
  if (!strncmp(word, "--compiler=", 11))
    s->compiler = word + 11;
  else if (!strncmp(word, "--target=", 9))
    s->target = word + 9;
  else if (!strncmp(word, "--disable=", 10))
    add_disabled(s, word + 10, arena);
  else
    options[s->n_options++] = word;
}

int cli_side(const cli_args *a, char letter, const char *text, lw_arena *arena,
             lw_subject *s) {
  bench_side words = {.letter = letter};
  int code = bench_split_words(text, arena, &words);
  const char *c = a->value[OPT_COMPILER];
  *s = (lw_subject){.compiler = c ? c : "lawson",
                    .target = a->value[OPT_TARGET]};
  const char **options = LW_NEW_ARRAY(arena, const char *, words.words.len + 1);
  s->options = options;
  for (size_t k = 0; k < words.words.len && !code; k++)
    take_word(s, words.words.data[k], options, arena);
  lw_vec_free(&words.words);
  if (code) return code;
  lw_status st = lw_subject_check(s->compiler, s->target);
  return st ? cli_fail_subject(st) : CLI_YES;
}

int cli_fail_subject(lw_status st) {
  if (lw_status_code(st) != LW_NOT_FOUND) return cli_fail(st);
  cli_error("%s", lw_status_message(st));
  lw_status_free(st);
  return CLI_USAGE;
}
