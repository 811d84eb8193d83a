/* The lexer. Numbers follow XLA's order of tries: float, dimension labels, DxD,
 * padding, integer, so that 1x2, 0_1 and 01bf_01io->01bf are single tokens. */
#include "reader/text_lex.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void lw_lex_init(lw_lexer *lx, const char *text, size_t len) {
  *lx = (lw_lexer){.p = text, .end = text + len, .line_start = text, .line = 1};
}

static bool digit(char c) { return c >= '0' && c <= '9'; }
static bool word_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool word_char(char c) {
  return word_start(c) || digit(c) || c == '.' || c == '-';
}

static void newline(lw_lexer *lx, const char *at) {
  lx->line++;
  lx->line_start = at + 1;
}

static lw_tok_kind bad(lw_lexer *lx, const char *message) {
  lx->message = message;
  return TOK_ERROR;
}

/* ---- blanks and comments ---- */

static bool skip_block_comment(lw_lexer *lx) {
  for (const char *q = lx->p + 2; q + 1 < lx->end; q++) {
    if (*q == '\n') newline(lx, q);
    if (q[0] == '*' && q[1] == '/') {
      lx->p = q + 2;
      return true;
    }
  }
  return false;
}

/* False at a comment that never ends. */
static bool skip_blanks(lw_lexer *lx) {
  while (lx->p < lx->end) {
    char c = *lx->p;
    if (c == '\n') {
      newline(lx, lx->p++);
    } else if (c == ' ' || c == '\t' || c == '\r') {
      lx->p++;
    } else if (c == '/' && lx->p + 1 < lx->end && lx->p[1] == '/') {
      while (lx->p < lx->end && *lx->p != '\n' && *lx->p != '\r') lx->p++;
    } else if (c == '/' && lx->p + 1 < lx->end && lx->p[1] == '*') {
      if (!skip_block_comment(lx)) return false;
    } else {
      break;
    }
  }
  return true;
}

/* ---- patterns: the end of a match, or NULL ---- */

static const char *match_digits(const char *p, const char *end) {
  const char *q = p;
  while (q < end && digit(*q)) q++;
  return q > p ? q : NULL;
}

static const char *match_set(const char *p, const char *end, const char *set) {
  const char *q = p;
  while (q < end && (digit(*q) || (*q && strchr(set, *q)))) q++;
  return q - p >= 2 ? q : NULL;
}

static const char *match_dim_labels(const char *p, const char *end) {
  p = match_set(p, end, "bf?");
  if (!p || p == end || *p != '_') return NULL;
  p = match_set(p + 1, end, "io?");
  if (!p || end - p < 2 || p[0] != '-' || p[1] != '>') return NULL;
  return match_set(p + 2, end, "bf?");
}

static const char *match_dxd(const char *p, const char *end) {
  const char *q = match_digits(p, end), *last = NULL;
  while (q && q < end && *q == 'x') {
    q = match_digits(q + 1, end);
    if (q) last = q;
  }
  return last;
}

static const char *match_int(const char *p, const char *end) {
  if (p < end && *p == '-') p++;
  return match_digits(p, end);
}

/* -?d+_-?d+(_d+)? */
static const char *match_pad_dim(const char *p, const char *end) {
  p = match_int(p, end);
  if (!p || p == end || *p != '_') return NULL;
  p = match_int(p + 1, end);
  if (!p || p == end || *p != '_') return p;
  const char *interior = match_digits(p + 1, end);
  return interior ? interior : p;
}

static const char *match_pad(const char *p, const char *end) {
  const char *q = match_pad_dim(p, end);
  while (q && q < end && *q == 'x') {
    const char *next = match_pad_dim(q + 1, end);
    if (!next) break;
    q = next;
  }
  return q;
}

/* Needs a point or an exponent, else it is an integer. */
static const char *match_float(const char *p, const char *end) {
  if (p < end && *p == '-') p++;
  const char *whole = match_digits(p, end), *q = whole ? whole : p;
  bool point = q < end && *q == '.';
  if (point) {
    const char *fraction = match_digits(q + 1, end);
    if (!fraction && !whole) return NULL;
    q = fraction ? fraction : q + 1;
  }
  if (!whole && !point) return NULL;
  if (q < end && (*q == 'e' || *q == 'E')) {
    const char *e = q + 1;
    if (e < end && (*e == '+' || *e == '-')) e++;
    e = match_digits(e, end);
    if (e) return e;
  }
  return point ? q : NULL;
}

/* ---- numbers ---- */

/* strtod wants a NUL; numbers are short, but a hostile one may not be. */
static double parse_double(const char *p, const char *end) {
  char small[64];
  size_t n = (size_t)(end - p);
  if (n < sizeof small) {
    memcpy(small, p, n);
    small[n] = 0;
    return strtod(small, NULL);
  }
  char *big = malloc(n + 1);
  if (!big) lw_oom(n + 1);
  memcpy(big, p, n);
  big[n] = 0;
  double v = strtod(big, NULL);
  free(big);
  return v;
}

/* The current token ends here. */
static lw_tok_kind finish(lw_lexer *lx, const char *end, lw_tok_kind kind) {
  lx->tok.text = lx->tok.start;
  lx->tok.len = (size_t)(end - lx->tok.start);
  lx->p = end;
  return kind;
}

/* XLA's range: int64 when negative, uint64 otherwise. */
static lw_tok_kind lex_int(lw_lexer *lx, const char *end) {
  lw_token *t = &lx->tok;
  bool neg = *t->start == '-';
  uint64_t v = 0, limit = neg ? (uint64_t)INT64_MAX + 1 : UINT64_MAX;
  for (const char *p = t->start + neg; p < end; p++) {
    uint64_t d = (uint64_t)(*p - '0');
    if (v > (limit - d) / 10) return bad(lx, "this integer is out of range");
    v = v * 10 + d;
  }
  t->i = neg ? (int64_t)(0 - v) : (int64_t)v;
  t->big = !neg && v > INT64_MAX;
  t->negative = neg;
  return finish(lx, end, TOK_INT);
}

/* (0x123) after nan. Returns false when malformed. */
static bool lex_payload(lw_lexer *lx) {
  lx->tok.payload = 0;
  if (lx->p == lx->end || *lx->p != '(') return true;
  const char *p = lx->p + 1;
  if (lx->end - p < 3 || p[0] != '0' || p[1] != 'x') return false;
  uint64_t v = 0;
  for (p += 2; p < lx->end && isxdigit((unsigned char)*p); p++) {
    if (v >> 56) return false;
    v = v << 4 | (uint64_t)(digit(*p) ? *p - '0' : (*p | 32) - 'a' + 10);
  }
  if (p == lx->end || *p != ')' || v == 0 || v >> 52) return false;
  lx->tok.payload = v;
  lx->p = p + 1;
  return true;
}

static lw_tok_kind lex_nan(lw_lexer *lx, bool negative) {
  lx->tok.f = negative ? -NAN : NAN;
  lx->tok.negative = negative;
  if (!lex_payload(lx)) return bad(lx, "malformed payload; expected nan(0x1)");
  return TOK_FLOAT;
}

static bool starts(const char *p, const char *end, const char *word) {
  size_t n = strlen(word);
  return (size_t)(end - p) >= n && !memcmp(p, word, n);
}

static lw_tok_kind lex_number(lw_lexer *lx) {
  const char *s = lx->tok.start, *end = lx->end, *q;
  if ((q = match_float(s, end))) {
    lx->tok.f = parse_double(s, q);
    lx->tok.negative = *s == '-';
    return finish(lx, q, TOK_FLOAT);
  }
  if ((q = match_int(s, end)) &&
      (q == end ||
       (*q != 'x' && *q != '_' && *q != 'b' && *q != 'f' && *q != '?')))
    return lex_int(lx, q);
  if ((q = match_dim_labels(s, end))) return finish(lx, q, TOK_DIM_LABELS);
  if ((q = match_dxd(s, end))) return finish(lx, q, TOK_DXD);
  if ((q = match_pad(s, end))) return finish(lx, q, TOK_PAD);
  if ((q = match_int(s, end))) return lex_int(lx, q);
  if (starts(s, end, "-inf")) {
    lx->tok.f = -INFINITY;
    lx->tok.negative = true;
    return finish(lx, s + 4, TOK_FLOAT);
  }
  if (starts(s, end, "-nan")) {
    (void)finish(lx, s + 4, TOK_FLOAT);
    return lex_nan(lx, true);
  }
  if (*s == '?') return finish(lx, s + 1, TOK_QUESTION);
  return bad(lx, "a lone '-'");
}

/* ---- words and strings ---- */

static lw_tok_kind lex_word(lw_lexer *lx) {
  lw_token *t = &lx->tok;
  const char *q = lx->p;
  while (q < lx->end && word_char(*q)) q++;
  (void)finish(lx, q, TOK_IDENT);
  if (q < lx->end && (*q == ':' || *q == '=')) {
    lx->p++;
    return *q == ':' ? TOK_NAME : TOK_ATTR;
  }
  t->prim = lw_prim_from_name(t->text, t->len);
  if (t->prim != LW_PRIM_INVALID && t->prim != LW_TUPLE && t->prim != LW_BUFFER)
    return TOK_TYPE;
  if (t->len == 3 && !memcmp(t->text, "nan", 3)) return lex_nan(lx, false);
  if (t->len == 3 && !memcmp(t->text, "inf", 3)) {
    t->f = INFINITY;
    return TOK_FLOAT;
  }
  const char *labels = match_dim_labels(t->start, lx->end);
  return labels ? finish(lx, labels, TOK_DIM_LABELS) : TOK_IDENT;
}

static lw_tok_kind lex_percent(lw_lexer *lx) {
  const char *q = lx->p + 1;
  if (q == lx->end || !word_start(*q))
    return bad(lx, "expected a name after %");
  while (q < lx->end && word_char(*q)) q++;
  lx->tok.text = lx->p + 1;
  lx->tok.len = (size_t)(q - lx->tok.text);
  lx->p = q;
  return TOK_NAME;
}

/* The byte after a string that starts at p, or NULL when it does not end.
 * Counts its lines. */
static const char *string_end(lw_lexer *lx, const char *p) {
  char quote = *p;
  for (const char *q = p + 1; q < lx->end; q++) {
    if (*q == quote) return q + 1;
    if (*q == '\n') newline(lx, q);
    if (*q == '\\') q++;
  }
  return NULL;
}

static lw_tok_kind lex_string(lw_lexer *lx) {
  const char *q = string_end(lx, lx->p);
  if (!q) return bad(lx, "this string has no end");
  lx->tok.text = lx->p + 1;
  lx->tok.len = (size_t)(q - lx->p) - 2;
  lx->p = q;
  return TOK_STRING;
}

static lw_tok_kind lex_symbol(lw_lexer *lx) {
  static const char symbols[] = "=,:*#+~[]{}()";
  static const lw_tok_kind kinds[] = {
      TOK_EQUAL,  TOK_COMMA,  TOK_COLON,   TOK_STAR,    TOK_HASH,
      TOK_PLUS,   TOK_TILDE,  TOK_LSQUARE, TOK_RSQUARE, TOK_LBRACE,
      TOK_RBRACE, TOK_LPAREN, TOK_RPAREN};
  const char *p = lx->p;
  if (starts(p, lx->end, "->")) return finish(lx, p + 2, TOK_ARROW);
  if (starts(p, lx->end, "<=")) return finish(lx, p + 2, TOK_LEQ);
  if (starts(p, lx->end, "...")) return finish(lx, p + 3, TOK_DOTS);
  const char *s = *p ? strchr(symbols, *p) : NULL;
  if (s) return finish(lx, p + 1, kinds[s - symbols]);
  return bad(lx, *p ? "a character that HLO text does not have"
                    : "a NUL byte in the text");
}

static lw_tok_kind lex_token(lw_lexer *lx) {
  char c = *lx->p;
  if (word_start(c)) return lex_word(lx);
  if (c == '%') return lex_percent(lx);
  if (c == '"' || c == '\'') return lex_string(lx);
  if (digit(c) || c == '?' ||
      (c == '-' && !(lx->p + 1 < lx->end && lx->p[1] == '>')))
    return lex_number(lx);
  return lex_symbol(lx);
}

void lw_lex(lw_lexer *lx) {
  bool blanks = skip_blanks(lx);
  lw_token *t = &lx->tok;
  t->start = t->text = lx->p;
  t->len = 0;
  t->line = lx->line;
  t->column = (int32_t)(lx->p - lx->line_start) + 1;
  if (!blanks) {
    t->kind = bad(lx, "this comment has no end");
    lx->p = lx->end;
  } else if (lx->p == lx->end) {
    t->kind = TOK_END;
  } else {
    t->negative = t->big = false;
    t->payload = 0;
    t->kind = lex_token(lx);
    if (t->kind == TOK_ERROR && lx->p == t->start) lx->p++;
  }
}

lw_tok_kind lw_lex_peek(const lw_lexer *lx) {
  lw_lexer copy = *lx;
  lw_lex(&copy);
  return copy.tok.kind;
}

bool lw_lex_braces(lw_lexer *lx, const char **text, size_t *len) {
  const char *start = lx->tok.start, *q = start + 1;
  int64_t depth = 1;
  while (depth && q && q < lx->end) {
    char c = *q;
    if (c == '"') {
      q = string_end(lx, q);
      continue;
    }
    if (c == '\n') newline(lx, q);
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    q++;
  }
  if (depth || !q) return false;
  *text = start;
  *len = (size_t)(q - start);
  lx->p = q;
  lw_lex(lx);
  return true;
}

bool lw_tok_is(const lw_token *t, const char *word) {
  return t->kind == TOK_IDENT && strlen(word) == t->len &&
         !memcmp(t->text, word, t->len);
}

/* ---- C escapes ---- */

static int hex_value(char c) {
  if (digit(c)) return c - '0';
  c |= 32;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t put_utf8(char *out, uint32_t u) {
  if (u < 0x80) {
    out[0] = (char)u;
    return 1;
  }
  int more = u < 0x800 ? 1 : u < 0x10000 ? 2 : 3;
  static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
  out[0] = (char)(lead[more] | u >> (6 * more));
  for (int k = 1; k <= more; k++)
    out[k] = (char)(0x80 | (u >> (6 * (more - k)) & 0x3f));
  return (size_t)more + 1;
}

/* \x takes every hex digit that follows, as in C; \u four and \U eight. */
static const char *unescape_hex(const char *p, const char *end, int digits,
                                uint32_t *v) {
  int n = 0;
  *v = 0;
  for (; p < end && hex_value(*p) >= 0 && (digits == 0 || n < digits);
       p++, n++) {
    if (*v >> 28) return NULL;
    *v = *v << 4 | (uint32_t)hex_value(*p);
  }
  return n == 0 || n < digits ? NULL : p;
}

/* One escape, p just behind the backslash. NULL when malformed. */
static const char *unescape_one(const char *p, const char *end, char **out) {
  static const char from[] = "abfnrtv\\'\"?", to[] = "\a\b\f\n\r\t\v\\'\"?";
  const char *s = *p ? strchr(from, *p) : NULL;
  uint32_t v = 0;
  if (s) {
    *(*out)++ = to[s - from];
    return p + 1;
  }
  if (*p >= '0' && *p <= '7') {
    for (int n = 0; n < 3 && p < end && *p >= '0' && *p <= '7'; n++)
      v = v * 8 + (uint32_t)(*p++ - '0');
    if (v > 255) return NULL;
    *(*out)++ = (char)v;
    return p;
  }
  if (*p == 'x' || *p == 'X') {
    p = unescape_hex(p + 1, end, 0, &v);
    if (!p || v > 255) return NULL;
    *(*out)++ = (char)v;
    return p;
  }
  if (*p != 'u' && *p != 'U') return NULL;
  p = unescape_hex(p + 1, end, *p == 'u' ? 4 : 8, &v);
  if (!p || v > 0x10ffff) return NULL;
  *out += put_utf8(*out, v);
  return p;
}

char *lw_text_unescape(lw_arena *a, const char *s, size_t len,
                       size_t *out_len) {
  char *buf = lw_arena_alloc(a, len + 1), *out = buf;
  const char *end = s + len;
  while (s < end) {
    if (*s != '\\') {
      *out++ = *s++;
    } else {
      if (s + 1 == end) return NULL;
      s = unescape_one(s + 1, end, &out);
      if (!s) return NULL;
    }
  }
  *out = 0;
  *out_len = (size_t)(out - buf);
  return buf;
}

const char *lw_tok_describe(const lw_token *t) {
  static const char *const names[] = {[TOK_END] = "the end of the text",
                                      [TOK_ERROR] = "an invalid token",
                                      [TOK_EQUAL] = "'='",
                                      [TOK_COMMA] = "','",
                                      [TOK_COLON] = "':'",
                                      [TOK_STAR] = "'*'",
                                      [TOK_HASH] = "'#'",
                                      [TOK_PLUS] = "'+'",
                                      [TOK_TILDE] = "'~'",
                                      [TOK_QUESTION] = "'?'",
                                      [TOK_LSQUARE] = "'['",
                                      [TOK_RSQUARE] = "']'",
                                      [TOK_LBRACE] = "'{'",
                                      [TOK_RBRACE] = "'}'",
                                      [TOK_LPAREN] = "'('",
                                      [TOK_RPAREN] = "')'",
                                      [TOK_ARROW] = "'->'",
                                      [TOK_LEQ] = "'<='",
                                      [TOK_DOTS] = "'...'",
                                      [TOK_TYPE] = "a type",
                                      [TOK_NAME] = "a name",
                                      [TOK_ATTR] = "an attribute",
                                      [TOK_IDENT] = "a word",
                                      [TOK_STRING] = "a string",
                                      [TOK_INT] = "an integer",
                                      [TOK_FLOAT] = "a number",
                                      [TOK_DIM_LABELS] = "dimension labels",
                                      [TOK_DXD] = "sizes like 2x3",
                                      [TOK_PAD] = "padding like 0_1x2_3"};
  return names[t->kind];
}
