/* Tokens of HLO text.
 *
 * The lexer is a plain struct: copying it saves the place, assigning the copy
 * back returns there. It never allocates; a string token keeps its raw text,
 * and lw_text_unescape makes the value.
 */
#ifndef LW_READER_TEXT_LEX_H
#define LW_READER_TEXT_LEX_H

#include "hlo/shape.h"

typedef enum {
  TOK_END,
  TOK_ERROR, /* message says what is wrong */
  TOK_EQUAL,
  TOK_COMMA,
  TOK_COLON,
  TOK_STAR,
  TOK_HASH,
  TOK_PLUS,
  TOK_TILDE,
  TOK_QUESTION,
  TOK_LSQUARE,
  TOK_RSQUARE,
  TOK_LBRACE,
  TOK_RBRACE,
  TOK_LPAREN,
  TOK_RPAREN,
  TOK_ARROW,
  TOK_LEQ,
  TOK_DOTS,
  TOK_TYPE,   /* f32 ...; prim */
  TOK_NAME,   /* %x or x: */
  TOK_ATTR,   /* x= (no space) */
  TOK_IDENT,  /* any other word, keywords too */
  TOK_STRING, /* "..." or '...'; text is what stands between the quotes */
  TOK_INT,
  TOK_FLOAT, /* also inf, nan, and their negatives */
  TOK_DIM_LABELS,
  TOK_DXD, /* 3x3 */
  TOK_PAD  /* 0_1x2_3 */
} lw_tok_kind;

typedef struct {
  lw_tok_kind kind;
  const char *text; /* names without %, : and = */
  size_t len;
  const char *start; /* first byte of the token, % and quotes included */
  int32_t line, column;
  int64_t i;        /* INT; the bits of a uint64 when big */
  bool big;         /* INT: above INT64_MAX */
  bool negative;    /* INT, FLOAT: a minus sign was there (so -0 is known) */
  double f;         /* FLOAT */
  uint64_t payload; /* FLOAT: a nan's payload when it had one, else 0 */
  lw_prim prim;     /* TYPE */
} lw_token;

typedef struct {
  const char *p, *end;
  const char *line_start;
  int32_t line;
  const char *message; /* of a TOK_ERROR */
  lw_token tok;        /* the current token */
} lw_lexer;

void lw_lex_init(lw_lexer *lx, const char *text, size_t len);
/* Moves on to the next token. */
void lw_lex(lw_lexer *lx);
/* The kind of the token after the current one. */
lw_tok_kind lw_lex_peek(const lw_lexer *lx);
/* The current token is '{': takes everything to its matching brace (strings
 * respected) as one TOK_STRING-like span, braces included, and moves on to the
 * token after it. False when the brace is never closed. */
bool lw_lex_braces(lw_lexer *lx, const char **text, size_t *len);
/* True when the current token is this word (a keyword or identifier). */
bool lw_tok_is(const lw_token *t, const char *word);

/* The value of a string token's text: C escapes replaced. NULL when an escape
 * is malformed. In the arena. */
char *lw_text_unescape(lw_arena *a, const char *s, size_t len, size_t *out_len);

const char *lw_tok_describe(const lw_token *t); /* "',' ", "a name", ... */

#endif
