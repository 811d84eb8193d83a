/* The parser's state and the pieces its files share:
 *
 *   text_parse.c     computations, errors and recovery, the whole
 *   text_header.c    the HloModule line, stack tables
 *   text_inst.c      one instruction: operands, async sugar, making it
 *   text_attr.c      attributes by kind
 *   text_config.c    sharding, metadata, replica groups, frontend attributes
 *   text_shape.c     shapes and layouts
 *   text_literal.c   constants
 *   text_names.c     unique names
 *
 * Parse functions return false after having reported a diagnostic (or when the
 * fault was inherited from something already reported); the instruction list
 * then skips to the next instruction and goes on, so that one run shows every
 * problem. Names whose definition failed are poisoned: uses of them fail
 * without a further message.
 */
#ifndef LW_READER_TEXT_PARSER_H
#define LW_READER_TEXT_PARSER_H

#include "base/diag.h"
#include "hlo/hlo.h"
#include "reader/text_lex.h"

enum {
  LW_TEXT_MAX_DEPTH = 1000,     /* nested shapes, operands, bodies */
  LW_TEXT_MAX_PARAMS = 1 << 20, /* a larger parameter number is a typo */
};

/* An instruction whose name is chosen once all names of the text are known. */
typedef struct {
  lw_inst *inst;
  const char *base;
} lw_text_unnamed;

/* The names of the computation that is being read. */
typedef struct lw_text_scope {
  struct lw_text_scope *outer;
  lw_comp *comp;
  lw_map names; /* interned name -> lw_inst*, or POISON */
  lw_map gtes;  /* (tuple id, index) -> the get-tuple-element of %t#i */
} lw_text_scope;

#define LW_TEXT_POISON 1 /* in name maps: defined, but wrong */

typedef struct {
  lw_lexer lx;
  lw_context *ctx;
  lw_diags *diags;
  lw_module *module;
  lw_arena *arena; /* the module's */
  lw_map comps;    /* interned name -> lw_comp*, or POISON */
  lw_text_scope *scope;
  LW_VEC(lw_text_unnamed) unnamed;
  int depth;
  bool make_missing; /* a lone instruction: operands become parameters */
  bool failed;       /* since the last recovery */
} lw_text_parser;

/* ---- tokens (text_parse.c) ---- */

/* Reports at the current token; always false. */
bool lw_text_error(lw_text_parser *ps, const char *fmt, ...) LW_PRINTF(2, 3);
bool lw_text_error_at(lw_text_parser *ps, const lw_token *at, const char *fmt,
                      ...) LW_PRINTF(3, 4);
bool lw_text_eat(lw_text_parser *ps, lw_tok_kind kind);
bool lw_text_expect(lw_text_parser *ps, lw_tok_kind kind, const char *where);
bool lw_text_eat_word(lw_text_parser *ps, const char *word);
bool lw_text_int(lw_text_parser *ps, int64_t *out);
bool lw_text_double(lw_text_parser *ps, double *out);
bool lw_text_bool(lw_text_parser *ps, bool *out);
/* A name or word, interned. */
bool lw_text_name(lw_text_parser *ps, const char **out);
/* A string's value; len may be NULL. Kept in the module's arena. */
bool lw_text_string(lw_text_parser *ps, const char **out);
/* A string, or {...} kept verbatim. */
bool lw_text_string_or_braces(lw_text_parser *ps, const char **out);
/* start ints separated by sep end, e.g. {1,2}. In the module's arena. */
bool lw_text_ints(lw_text_parser *ps, lw_tok_kind start, lw_tok_kind sep,
                  lw_tok_kind end, int32_t *n, const int64_t **out);
/* Nothing but blanks before the current token on its line. */
bool lw_text_first_on_line(const lw_lexer *lx);
/* Nesting guard: false (reported) when too deep. Pair with leave. */
bool lw_text_enter(lw_text_parser *ps);
static inline void lw_text_leave(lw_text_parser *ps) { ps->depth--; }

/* ---- module, computations, instructions ---- */

/* From HloModule to the first computation. */
void lw_text_module_header(lw_text_parser *ps);

/* Gives every instruction and computation of the module a name of its own, by
 * XLA's rule: of equal names the first in the list keeps it; first, when not
 * NULL, comes before all. */
void lw_text_make_unique(lw_module *m, lw_comp *first);

/* '{' instructions '}' into a new computation. NULL when it failed. */
lw_comp *lw_text_body(lw_text_parser *ps, const char *name);
/* A computation's name, or an inline body. */
bool lw_text_comp_ref(lw_text_parser *ps, lw_comp **out);
/* From behind "name =" to the last attribute. name NULL: an operand written in
 * place, without attributes. Adds it to the scope's computation. */
bool lw_text_inst_rest(lw_text_parser *ps, const lw_token *at, const char *name,
                       lw_inst **out);
/* The instruction of that name in the scope; reports unless found. */
bool lw_text_find_inst(lw_text_parser *ps, const lw_token *at, const char *name,
                       lw_inst **out);

/* ---- attributes ---- */

/* What an instruction carries besides opcode, shape and operands, while it is
 * read. */
typedef struct {
  lw_opcode op;     /* whose attributes are allowed */
  bool async_start; /* op is wrapped: async_execution_thread and aliasing too */
  bool async_rest;  /* -update or -done: async_execution_thread alone */
  LW_VEC(lw_attr) attrs;
  LW_VEC(const char *) seen;
  const lw_metadata *metadata;
  const lw_sharding *sharding;
  lw_frontend_attrs frontend;
  const char *backend_config;
  LW_VEC(lw_inst *) preds;
} lw_text_attrs;

/* (',' attribute)*. */
bool lw_text_attributes(lw_text_parser *ps, lw_text_attrs *out);
void lw_text_attrs_free(lw_text_attrs *a);
const lw_attr *lw_text_attrs_get(const lw_text_attrs *a, lw_attr_id id);
/* {{0}: (1, {2}), ...} */
bool lw_text_aliasing(lw_text_parser *ps, lw_attr *out);
bool lw_text_shape_index(lw_text_parser *ps, int32_t *n, const int64_t **out);
/* {...} with blanks and comments between tokens taken out; validated no
 * further than its brackets. */
bool lw_text_raw_braces(lw_text_parser *ps, const char **out);

bool lw_text_sharding(lw_text_parser *ps, const lw_sharding **out);
bool lw_text_metadata(lw_text_parser *ps, lw_metadata *out);
bool lw_text_frontend(lw_text_parser *ps, lw_frontend_attrs *out);
bool lw_text_replica_groups(lw_text_parser *ps, const lw_replica_groups **out);

/* ---- shapes, literals ---- */

bool lw_text_can_be_shape(const lw_text_parser *ps);
/* Layouts that are not written become descending, as in XLA. */
bool lw_text_shape(lw_text_parser *ps, const lw_shape **out);
bool lw_text_literal(lw_text_parser *ps, const lw_shape *shape,
                     lw_literal **out);

#endif
