/* Target files: `key = value` lines, # comments. All problems are reported,
 * each with its line and column. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "target/target.h"

enum {
#define N(key, low, high, unit) F_##key,
#include "target/fields.def"
#undef N
  N_CPU_FIELDS,
  BEFORE_GPU = N_CPU_FIELDS - 1,
#define N(key, low, high, unit) G_##key,
#include "target/gpu_fields.def"
#undef N
  N_FIELDS
};

static const struct {
  const char *key;
  double low, high;
} fields[N_FIELDS] = {
#define N(key, low, high, unit) {#key, low, high},
#include "target/fields.def"
#include "target/gpu_fields.def"
#undef N
};

static const char *const words[] = {"name", "backend", "isa"};
enum { N_WORDS = 3 };

typedef struct {
  lw_diags diags;
  double value[N_FIELDS];
  bool seen[N_FIELDS];
  char *word[N_WORDS];
} parse;

typedef struct {
  const char *s;
  int len, column; /* 1-based */
} piece;

/* The text between a and b without spaces around it. */
static piece trimmed(const char *line, int a, int b) {
  while (a < b && isspace((unsigned char)line[a])) a++;
  while (b > a && isspace((unsigned char)line[b - 1])) b--;
  return (piece){line + a, b - a, a + 1};
}

static bool piece_is(piece p, const char *s) {
  return (size_t)p.len == strlen(s) && !memcmp(p.s, s, (size_t)p.len);
}

static void unknown_key(parse *p, int line, piece key) {
  const char *known[N_FIELDS + N_WORDS];
  for (int i = 0; i < N_FIELDS; i++) known[i] = fields[i].key;
  for (int i = 0; i < N_WORDS; i++) known[N_FIELDS + i] = words[i];
  char *s = strndup(key.s, (size_t)key.len);
  const char *near = lw_nearest_name(s, known, N_FIELDS + N_WORDS);
  lw_diag_add(&p->diags, line, key.column, "unknown key '%s'%s%s%s", s,
              near ? " (did you mean " : "", near ? near : "",
              near ? "?)" : "");
  free(s);
}

static void set_word(parse *p, int w, int line, piece key, piece value) {
  if (p->word[w]) {
    lw_diag_add(&p->diags, line, key.column, "%s is given twice", words[w]);
    return;
  }
  if (value.len == 0)
    lw_diag_add(&p->diags, line, value.column, "%s has no value", words[w]);
  p->word[w] = strndup(value.s, (size_t)value.len);
}

static void set_number(parse *p, int f, int line, piece key, piece value) {
  if (p->seen[f]) {
    lw_diag_add(&p->diags, line, key.column, "%s is given twice",
                fields[f].key);
    return;
  }
  p->seen[f] = true;
  char *s = strndup(value.s, (size_t)value.len), *end;
  double v = strtod(s, &end);
  if (value.len == 0 || *end)
    lw_diag_add(&p->diags, line, value.column, "'%s' is not a number", s);
  else if (!(v >= fields[f].low && v <= fields[f].high))
    lw_diag_add(&p->diags, line, value.column, "%s must lie in [%g, %g]",
                fields[f].key, fields[f].low, fields[f].high);
  p->value[f] = v;
  free(s);
}

static void parse_line(parse *p, int number, const char *line, int len) {
  const char *hash = memchr(line, '#', (size_t)len);
  if (hash) len = (int)(hash - line);
  piece all = trimmed(line, 0, len);
  if (all.len == 0) return;
  const char *eq = memchr(line, '=', (size_t)len);
  if (!eq) {
    lw_diag_add(&p->diags, number, all.column, "expected 'key = value'");
    return;
  }
  piece key = trimmed(line, 0, (int)(eq - line));
  piece value = trimmed(line, (int)(eq - line) + 1, len);
  for (int w = 0; w < N_WORDS; w++)
    if (piece_is(key, words[w])) {
      set_word(p, w, number, key, value);
      return;
    }
  for (int f = 0; f < N_FIELDS; f++)
    if (piece_is(key, fields[f].key)) {
      set_number(p, f, number, key, value);
      return;
    }
  unknown_key(p, number, key);
}

static void check_complete(parse *p) {
  for (int w = 0; w < N_WORDS; w++)
    if (!p->word[w]) lw_diag_add(&p->diags, 0, 0, "no '%s' given", words[w]);
  bool gpu = p->word[1] && !strcmp(p->word[1], "gpu");
  for (int f = 0; f < N_FIELDS; f++) {
    bool wanted = (f >= N_CPU_FIELDS) == gpu;
    if (wanted && !p->seen[f])
      lw_diag_add(&p->diags, 0, 0, "no '%s' given", fields[f].key);
    if (!wanted && p->seen[f])
      lw_diag_add(&p->diags, 0, 0, "'%s' is no key of backend %s",
                  fields[f].key, p->word[1] ? p->word[1] : "cpu");
  }
  if (p->word[1] && !lw_backend_find(p->word[1]))
    lw_diag_add(&p->diags, 0, 0, "no backend '%s' is registered", p->word[1]);
}

static lw_target *finish(parse *p, const char *text, size_t len,
                         const char *filename) {
  lw_target *t = calloc(1, sizeof *t);
  if (!t) lw_oom(sizeof *t);
  t->name = p->word[0];
  t->backend_name = p->word[1];
  t->isa = p->word[2];
  t->backend = lw_backend_find(t->backend_name);
  t->source = strdup(filename);
  t->hash = lw_hash_bytes(text, len, 0);
#define N(key, low, high, unit) t->v.key = p->value[F_##key];
#include "target/fields.def"
#undef N
#define N(key, low, high, unit) t->gpu.key = p->value[G_##key];
#include "target/gpu_fields.def"
#undef N
  return t;
}

lw_status lw_target_parse(const char *text, size_t len, const char *filename,
                          lw_target **out) {
  parse p = {.diags = {.file = filename, .text = text, .text_len = len}};
  int number = 0;
  *out = NULL;
  for (size_t at = 0; at < len; at++) {
    const char *nl = memchr(text + at, '\n', len - at);
    size_t end = nl ? (size_t)(nl - text) : len;
    number++;
    if (end - at > 4096)
      lw_diag_add(&p.diags, number, 1, "a line longer than 4096 characters");
    else
      parse_line(&p, number, text + at, (int)(end - at));
    at = end;
  }
  check_complete(&p);
  lw_status s = lw_diags_status(&p.diags);
  if (!s) *out = finish(&p, text, len, filename);
  for (int w = 0; s && w < N_WORDS; w++) free(p.word[w]);
  lw_diags_free(&p.diags);
  return s;
}
