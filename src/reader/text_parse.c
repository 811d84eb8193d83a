/* HLO text: the module and its computations.
 *
 * A recursive-descent parser over the lexer's tokens. Computations and
 * instructions must be defined before they are used, as XLA's parser demands
 * (so that neither can form a cycle); the module is built as it is read, in
 * text order. What can only be known at the end (names of instructions that
 * were written without one, the entry, its layout) is settled in finish().
 *
 * Errors are collected: an instruction that does not parse is reported and
 * skipped, its name poisoned, and reading goes on behind it.
 */
#include <stdarg.h>
#include <string.h>

#include "reader/reader.h"
#include "reader/text_parser.h"

enum { MAX_ERRORS = 1000 }; /* beyond, the text is not HLO at all */

/* ---- diagnostics ---- */

bool lw_text_error_at(lw_text_parser *ps, const lw_token *at, const char *fmt,
                      ...) {
  va_list ap;
  va_start(ap, fmt);
  lw_buf b = {0};
  lw_buf_vprintf(&b, fmt, ap);
  va_end(ap);
  lw_diag_add(ps->diags, at->line, at->column, "%s", lw_buf_cstr(&b));
  lw_buf_free(&b);
  ps->failed = true;
  if (ps->diags->count > MAX_ERRORS) ps->lx.p = ps->lx.end;
  return false;
}

bool lw_text_error(lw_text_parser *ps, const char *fmt, ...) {
  const lw_token *t = &ps->lx.tok;
  if (t->kind == TOK_ERROR)
    return lw_text_error_at(ps, t, "%s", ps->lx.message);
  va_list ap;
  va_start(ap, fmt);
  lw_buf b = {0};
  lw_buf_vprintf(&b, fmt, ap);
  va_end(ap);
  lw_text_error_at(ps, t, "%s", lw_buf_cstr(&b));
  lw_buf_free(&b);
  return false;
}

bool lw_text_enter(lw_text_parser *ps) {
  if (ps->depth >= LW_TEXT_MAX_DEPTH)
    return lw_text_error(ps, "nested more than %d levels deep",
                         LW_TEXT_MAX_DEPTH);
  ps->depth++;
  return true;
}

/* ---- tokens ---- */

bool lw_text_eat(lw_text_parser *ps, lw_tok_kind kind) {
  if (ps->lx.tok.kind != kind) return false;
  lw_lex(&ps->lx);
  return true;
}

bool lw_text_eat_word(lw_text_parser *ps, const char *word) {
  if (!lw_tok_is(&ps->lx.tok, word)) return false;
  lw_lex(&ps->lx);
  return true;
}

bool lw_text_expect(lw_text_parser *ps, lw_tok_kind kind, const char *where) {
  if (lw_text_eat(ps, kind)) return true;
  lw_token want = {.kind = kind};
  return lw_text_error(ps, "expected %s %s, found %s", lw_tok_describe(&want),
                       where, lw_tok_describe(&ps->lx.tok));
}

bool lw_text_int(lw_text_parser *ps, int64_t *out) {
  if (ps->lx.tok.kind != TOK_INT)
    return lw_text_error(ps, "expected an integer, found %s",
                         lw_tok_describe(&ps->lx.tok));
  *out = ps->lx.tok.i;
  lw_lex(&ps->lx);
  return true;
}

bool lw_text_double(lw_text_parser *ps, double *out) {
  const lw_token *t = &ps->lx.tok;
  if (t->kind == TOK_INT)
    *out = t->big ? (double)(uint64_t)t->i : (double)t->i;
  else if (t->kind == TOK_FLOAT)
    *out = t->f;
  else
    return lw_text_error(ps, "expected a number, found %s", lw_tok_describe(t));
  lw_lex(&ps->lx);
  return true;
}

bool lw_text_bool(lw_text_parser *ps, bool *out) {
  *out = lw_tok_is(&ps->lx.tok, "true");
  if (!*out && !lw_tok_is(&ps->lx.tok, "false"))
    return lw_text_error(ps, "expected true or false, found %s",
                         lw_tok_describe(&ps->lx.tok));
  lw_lex(&ps->lx);
  return true;
}

/* Names of types (s1, u4) are taken too; XLA wants them written with %. */
bool lw_text_name(lw_text_parser *ps, const char **out) {
  const lw_token *t = &ps->lx.tok;
  if (t->kind != TOK_NAME && t->kind != TOK_IDENT && t->kind != TOK_TYPE)
    return lw_text_error(ps, "expected a name, found %s", lw_tok_describe(t));
  *out = lw_context_str(ps->ctx, t->text, t->len);
  lw_lex(&ps->lx);
  return true;
}

bool lw_text_string(lw_text_parser *ps, const char **out) {
  const lw_token *t = &ps->lx.tok;
  if (t->kind != TOK_STRING)
    return lw_text_error(ps, "expected a string, found %s", lw_tok_describe(t));
  size_t len;
  char *s = lw_text_unescape(ps->arena, t->text, t->len, &len);
  if (!s) return lw_text_error(ps, "a malformed \\ escape in this string");
  if (strlen(s) != len) return lw_text_error(ps, "a NUL byte in this string");
  *out = s;
  lw_lex(&ps->lx);
  return true;
}

bool lw_text_string_or_braces(lw_text_parser *ps, const char **out) {
  if (ps->lx.tok.kind != TOK_LBRACE) return lw_text_string(ps, out);
  const char *s;
  size_t len;
  lw_token at = ps->lx.tok;
  if (!lw_lex_braces(&ps->lx, &s, &len))
    return lw_text_error_at(ps, &at, "this '{' is never closed");
  if (memchr(s, 0, len))
    return lw_text_error_at(ps, &at, "a NUL byte in the text");
  *out = lw_arena_strdup(ps->arena, s, len);
  return true;
}

bool lw_text_ints(lw_text_parser *ps, lw_tok_kind start, lw_tok_kind sep,
                  lw_tok_kind end, int32_t *n, const int64_t **out) {
  LW_VEC(int64_t) v = {0};
  bool ok = lw_text_expect(ps, start, "before integers");
  while (ok && ps->lx.tok.kind != end) {
    int64_t i = 0;
    ok = lw_text_int(ps, &i);
    lw_vec_push(&v, i);
    if (!lw_text_eat(ps, sep)) break;
  }
  *n = (int32_t)v.len;
  *out = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok && lw_text_expect(ps, end, "after integers");
}

/* ---- getting back on the road after an error ---- */

bool lw_text_first_on_line(const lw_lexer *lx) {
  const char *p = lx->tok.start - (lx->tok.column - 1);
  while (p < lx->tok.start && (*p == ' ' || *p == '\t')) p++;
  return p == lx->tok.start;
}

static bool begins_instruction(const lw_lexer *lx) {
  const lw_token *t = &lx->tok;
  if (lw_tok_is(t, "ROOT") || t->kind == TOK_RBRACE) return true;
  if (t->kind != TOK_NAME && t->kind != TOK_IDENT && t->kind != TOK_TYPE)
    return false;
  return lw_lex_peek(lx) == TOK_EQUAL;
}

/* To the next line that starts an instruction or ends the body. */
static void skip_instruction(lw_text_parser *ps, int32_t line) {
  while (ps->lx.tok.kind != TOK_END &&
         !(ps->lx.tok.line > line && lw_text_first_on_line(&ps->lx) &&
           begins_instruction(&ps->lx)))
    lw_lex(&ps->lx);
}

/* Behind the next '}' that stands first on its line. */
static void skip_computation(lw_text_parser *ps) {
  while (ps->lx.tok.kind != TOK_END &&
         !(ps->lx.tok.kind == TOK_RBRACE && lw_text_first_on_line(&ps->lx)))
    lw_lex(&ps->lx);
  (void)lw_text_eat(ps, TOK_RBRACE);
}

/* ---- the body of a computation ---- */

static void define_inst(lw_text_parser *ps, const char *name, lw_inst *inst) {
  uint64_t *slot = lw_map_put(&ps->scope->names, (uintptr_t)name);
  *slot = inst ? (uintptr_t)inst : LW_TEXT_POISON;
}

/* False (reported) when the name is taken. */
static bool name_is_free(lw_text_parser *ps, const lw_token *at,
                         const char *name) {
  uint64_t *old = lw_map_get(&ps->scope->names, (uintptr_t)name);
  if (!old) return true;
  if (*old == LW_TEXT_POISON)
    return lw_text_error_at(ps, at, "instruction '%s' is defined twice", name);
  const lw_inst *i = (const lw_inst *)(uintptr_t)*old;
  return lw_text_error_at(ps, at,
                          "instruction '%s' is defined twice; the first "
                          "time in line %d",
                          name, i->line);
}

/* [ROOT] name = ... */
static bool instruction(lw_text_parser *ps) {
  lw_token at = ps->lx.tok;
  bool root = lw_text_eat_word(ps, "ROOT");
  lw_token name_at = ps->lx.tok;
  const char *name = NULL;
  bool glued = name_at.kind == TOK_ATTR; /* x=... */
  if (glued) {
    name = lw_context_str(ps->ctx, name_at.text, name_at.len);
    lw_lex(&ps->lx);
  } else if (!lw_text_name(ps, &name) ||
             !lw_text_expect(ps, TOK_EQUAL, "after the instruction's name")) {
    return false;
  }
  bool free = name_is_free(ps, &name_at, name);
  lw_inst *inst = NULL;
  bool ok = lw_text_inst_rest(ps, &name_at, name, &inst);
  if (free) define_inst(ps, name, ok ? inst : NULL);
  if (root && ok && ps->scope->comp->root)
    return lw_text_error_at(ps, &at, "a second ROOT in one computation");
  if (root && ok) ps->scope->comp->root = inst;
  return ok && free;
}

/* Parameters 0 to n-1, each once. */
static bool check_params(lw_text_parser *ps, const lw_token *at,
                         const lw_comp *c) {
  for (size_t i = 0; i < c->params.len; i++)
    if (!c->params.data[i])
      return lw_text_error_at(ps, at,
                              "the computation has parameter(%zu), but "
                              "no parameter(%zu)",
                              c->params.len - 1, i);
  return true;
}

static bool instructions(lw_text_parser *ps) {
  bool ok = true;
  while (ps->lx.tok.kind != TOK_RBRACE && ps->lx.tok.kind != TOK_END) {
    const char *before = ps->lx.p;
    int32_t line = ps->lx.tok.line;
    if (instruction(ps)) continue;
    ok = false;
    skip_instruction(ps, line);
    if (ps->lx.p == before) lw_lex(&ps->lx);
  }
  return ok;
}

static bool body(lw_text_parser *ps, lw_comp *c) {
  lw_token at = ps->lx.tok;
  if (!lw_text_expect(ps, TOK_LBRACE, "before the instructions")) return false;
  if (ps->lx.tok.kind == TOK_RBRACE) {
    lw_text_error(ps, "a computation needs at least one instruction");
    lw_lex(&ps->lx);
    return false;
  }
  lw_text_scope scope = {.outer = ps->scope, .comp = c};
  ps->scope = &scope;
  bool ok = instructions(ps);
  ps->scope = scope.outer;
  lw_map_free(&scope.names);
  lw_map_free(&scope.gtes);
  if (ps->lx.tok.kind == TOK_END && scope.outer) return false;
  if (ps->lx.tok.kind == TOK_END)
    return lw_text_error(ps,
                         "the text ends inside the computation that begins "
                         "in line %d",
                         at.line);
  lw_lex(&ps->lx); /* '}' */
  if (!ok) return false;
  if (!c->root) c->root = c->last;
  return check_params(ps, &at, c);
}

/* Puts c behind the computations that were written inside it: definitions come
 * before uses in the module's list as well. prev stood before c. */
static void move_behind_inner(lw_module *m, lw_comp *c, lw_comp *prev) {
  if (m->last_comp == c) return;
  if (prev)
    prev->next = c->next;
  else
    m->first_comp = c->next;
  m->last_comp->next = c;
  m->last_comp = c;
  c->next = NULL;
}

lw_comp *lw_text_body(lw_text_parser *ps, const char *name) {
  if (!lw_text_enter(ps)) return NULL;
  lw_comp *prev = ps->module->last_comp;
  lw_comp *c = lw_comp_new(ps->module, name);
  c->name = name;
  c->line = ps->lx.tok.line;
  c->column = ps->lx.tok.column;
  bool ok = body(ps, c);
  move_behind_inner(ps->module, c, prev);
  lw_text_leave(ps);
  return ok ? c : NULL;
}

/* ---- references to computations ---- */

static bool no_such_comp(lw_text_parser *ps, const lw_token *at,
                         const char *name) {
  const char *near = NULL;
  if (ps->comps.len && ps->diags->count < 20)
    near = lw_nearest_name(name, (const char *const *)ps->comps.keys,
                           ps->comps.len);
  if (near)
    return lw_text_error_at(ps, at,
                            "no computation '%s' is defined above; did "
                            "you mean '%s'?",
                            name, near);
  return lw_text_error_at(ps, at, "no computation '%s' is defined above", name);
}

bool lw_text_comp_ref(lw_text_parser *ps, lw_comp **out) {
  if (ps->lx.tok.kind == TOK_LBRACE) {
    *out = lw_text_body(ps, lw_context_cstr(ps->ctx, "_"));
    return *out != NULL;
  }
  lw_token at = ps->lx.tok;
  const char *name = NULL;
  if (!lw_text_name(ps, &name)) return false;
  uint64_t *slot = lw_map_get(&ps->comps, (uintptr_t)name);
  if (!slot) return no_such_comp(ps, &at, name);
  if (*slot == LW_TEXT_POISON) return false; /* reported where it is defined */
  *out = (lw_comp *)(uintptr_t)*slot;
  return true;
}

/* ---- computations ---- */

/* (a: f32[], b: f32[]) -> f32[]; only the result is checked, as in XLA. */
static bool program_shape(lw_text_parser *ps, const lw_shape **result) {
  lw_lex(&ps->lx); /* '(' */
  while (ps->lx.tok.kind != TOK_RPAREN) {
    const char *name;
    const lw_shape *shape;
    if (!lw_text_name(ps, &name)) return false;
    (void)lw_text_eat(ps, TOK_COLON);
    if (!lw_text_shape(ps, &shape)) return false;
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  return lw_text_expect(ps, TOK_RPAREN, "after the parameters") &&
         lw_text_expect(ps, TOK_ARROW, "before the result shape") &&
         lw_text_shape(ps, result);
}

static bool execution_thread(lw_text_parser *ps, lw_comp *c) {
  const lw_token *t = &ps->lx.tok;
  if (t->kind != TOK_ATTR || t->len != 16 ||
      memcmp(t->text, "execution_thread", 16))
    return lw_text_error(ps, "expected execution_thread=\"...\"");
  lw_lex(&ps->lx);
  const char *name;
  if (!lw_text_string(ps, &name)) return false;
  if (c && strcmp(name, "main")) c->execution_thread = name;
  return true;
}

typedef struct {
  lw_token at;
  bool entry;
  const char *name;
  const lw_shape *result; /* NULL: not written */
} comp_header;

static bool header(lw_text_parser *ps, comp_header *h) {
  *h = (comp_header){.at = ps->lx.tok};
  if (lw_tok_is(&ps->lx.tok, "HloModule"))
    return lw_text_error(ps, "a second HloModule; one text holds one module");
  h->entry = lw_text_eat_word(ps, "ENTRY");
  h->at = ps->lx.tok;
  if (!lw_text_name(ps, &h->name)) return false;
  return ps->lx.tok.kind != TOK_LPAREN || program_shape(ps, &h->result);
}

static void define_comp(lw_text_parser *ps, const comp_header *h, lw_comp *c) {
  uint64_t *old = lw_map_get(&ps->comps, (uintptr_t)h->name);
  if (old) {
    lw_text_error_at(ps, &h->at, "computation '%s' is defined twice", h->name);
    return;
  }
  *lw_map_put(&ps->comps, (uintptr_t)h->name) =
      c ? (uintptr_t)c : LW_TEXT_POISON;
}

static void check_result(lw_text_parser *ps, const comp_header *h,
                         const lw_comp *c) {
  if (!h->result || lw_shape_compatible(h->result, c->root->shape)) return;
  lw_text_error_at(ps, &h->at,
                   "computation '%s' is declared to return %s, but "
                   "its root '%s' is %s",
                   h->name, lw_shape_str(ps->ctx, h->result->no_layout),
                   c->root->name,
                   lw_shape_str(ps->ctx, c->root->shape->no_layout));
}

static void computation(lw_text_parser *ps) {
  comp_header h;
  if (!header(ps, &h)) {
    if (h.name) define_comp(ps, &h, NULL);
    skip_computation(ps);
    return;
  }
  lw_comp *c = lw_text_body(ps, h.name);
  if (c) {
    c->line = h.at.line;
    c->column = h.at.column;
    check_result(ps, &h, c);
  }
  define_comp(ps, &h, c);
  if (lw_text_eat(ps, TOK_COMMA)) (void)execution_thread(ps, c);
  if (!h.entry || !c) return;
  if (ps->module->entry)
    lw_text_error_at(ps, &h.at, "a second ENTRY computation");
  ps->module->entry = c;
}

static void computations(lw_text_parser *ps) {
  if (ps->lx.tok.kind == TOK_END)
    lw_text_error(ps, "the text has no computations");
  while (ps->lx.tok.kind != TOK_END) {
    const char *before = ps->lx.p;
    computation(ps);
    if (ps->lx.p == before) lw_lex(&ps->lx);
  }
}

/* ---- a lone instruction ---- */

/* The module is its entry; operands that are not defined become parameters. */
static void lone_instruction(lw_text_parser *ps) {
  lw_comp *c = lw_comp_new(ps->module, "_");
  lw_comp *prev = NULL;
  lw_text_scope scope = {.comp = c};
  ps->scope = &scope;
  ps->make_missing = true;
  lw_token at = ps->lx.tok;
  lw_inst *inst = NULL;
  if (lw_text_can_be_shape(ps)) {
    if (lw_text_inst_rest(ps, &at, "_", &inst)) c->root = inst;
  } else if (instruction(ps)) {
    c->root = c->last;
  }
  move_behind_inner(ps->module, c, prev);
  ps->scope = NULL;
  lw_map_free(&scope.names);
  lw_map_free(&scope.gtes);
  ps->module->is_scheduled = true;
  ps->module->entry = c;
  if (!ps->failed && ps->lx.tok.kind != TOK_END)
    lw_text_error(ps,
                  "expected the end of the text after a lone instruction; a "
                  "module begins with HloModule or ENTRY");
}

/* ---- the whole ---- */

/* Computations without a header line: a name, then '{' or '('. */
static bool bare_computation(const lw_text_parser *ps) {
  const lw_token *t = &ps->lx.tok;
  if (lw_tok_is(t, "ENTRY")) return true;
  if (t->kind != TOK_NAME && t->kind != TOK_IDENT) return false;
  lw_tok_kind next = lw_lex_peek(&ps->lx);
  return next == TOK_LBRACE || next == TOK_LPAREN;
}

/* Text of the other kind that compilers hand around. */
static bool looks_like_mlir(const lw_text_parser *ps) {
  static const char *const starts[] = {"module @", "module {", "module attr",
                                       "#loc", "func.func"};
  const char *p = ps->lx.tok.start;
  for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
    size_t n = strlen(starts[i]);
    if ((size_t)(ps->lx.end - p) > n && !memcmp(p, starts[i], n)) return true;
  }
  return false;
}

static void whole(lw_text_parser *ps) {
  lw_lex(&ps->lx);
  if (ps->lx.tok.kind == TOK_END) {
    lw_text_error(ps, "the text is empty");
  } else if (looks_like_mlir(ps)) {
    lw_text_error(ps,
                  "this is MLIR, not HLO text; JAX writes HLO with "
                  "jax.jit(f).lower(...).as_text(dialect=\"hlo\")");
  } else if (lw_tok_is(&ps->lx.tok, "HloModule")) {
    lw_text_module_header(ps);
    computations(ps);
  } else if (bare_computation(ps)) {
    computations(ps);
  } else {
    lone_instruction(ps);
  }
}

/* entry_computation_layout, when it is not written: the entry's own layouts.
 * In a header that configures the run, XLA's parser loses them: there
 * descending layouts stand for what was left out. */
static void fill_entry_layout(lw_module *m) {
  lw_comp *c = m->entry;
  if (m->entry_result) return;
  bool plain = m->alias_passthrough_params || m->num_partitions != 1 ||
               m->replica_count != 1 || m->n_prop_params || m->n_prop_output;
  int32_t n = (int32_t)c->params.len;
  const lw_shape **v = LW_NEW_ARRAY(m->arena, const lw_shape *, n);
  for (int32_t i = 0; i <= n; i++) {
    const lw_shape *s = i < n ? c->params.data[i]->shape : c->root->shape;
    if (plain) s = lw_shape_fill_layouts(m->ctx, s->no_layout);
    if (i < n)
      v[i] = s;
    else
      m->entry_result = s;
  }
  m->entry_params = v;
  m->n_entry_params = n;
}

static void last_textual_entry(lw_text_parser *ps) {
  if (ps->module->entry || !ps->comps.len) return;
  ps->module->entry = (lw_comp *)(uintptr_t)ps->comps.values[ps->comps.len - 1];
}

static void finish(lw_text_parser *ps, bool headless) {
  lw_module *m = ps->module;
  last_textual_entry(ps);
  for (size_t i = 0; i < ps->unnamed.len; i++)
    ps->unnamed.data[i].inst->name =
        lw_context_cstr(ps->ctx, ps->unnamed.data[i].base);
  /* XLA adds the entry of a lone instruction before what it calls. */
  lw_text_make_unique(m, ps->make_missing ? m->entry : NULL);
  if (headless && !ps->make_missing)
    m->name = lw_arena_printf(ps->arena, "module_%s", m->entry->name);
  fill_entry_layout(m);
}

/* ---- logs ---- */

/* "I0101 10:20:30.123456   77 file.cc:12] ": the length of such a start of
 * line, or 0. */
static size_t log_prefix(const char *p, const char *end) {
  static const char form[] = "?dddd dd:dd:dd.";
  const char *q = p;
  if (end - p < 20 || !strchr("IWEF", *p) || !*p) return 0;
  for (size_t i = 0; form[i]; i++, q++) {
    bool digit = *q >= '0' && *q <= '9';
    if (form[i] == 'd' ? !digit : form[i] != '?' && form[i] != *q) return 0;
  }
  const char *line = memchr(q, '\n', (size_t)(end - q));
  const char *close = memchr(q, ']', (size_t)((line ? line : end) - q));
  if (!close || !memchr(q, ':', (size_t)(close - q))) return 0;
  q = close + 1;
  return (size_t)(q - p) + (q < end && *q == ' ');
}

/* The text without the prefixes a logger put before its lines; the same text
 * when there are none. */
static const char *strip_log(lw_context *ctx, const char *text, size_t *len) {
  const char *end = text + *len;
  bool any = log_prefix(text, end) != 0;
  for (const char *p = text; !any && p && p < end;) {
    p = memchr(p, '\n', (size_t)(end - p));
    if (p) any = log_prefix(++p, end) != 0;
  }
  if (!any) return text;
  char *out = lw_arena_alloc(lw_context_arena(ctx), *len + 1), *o = out;
  for (const char *p = text; p < end;) {
    p += log_prefix(p, end);
    const char *line = memchr(p, '\n', (size_t)(end - p));
    const char *next = line ? line + 1 : end;
    memcpy(o, p, (size_t)(next - p));
    o += next - p;
    p = next;
  }
  *len = (size_t)(o - out);
  return out;
}

/* Strings are C strings from here on, and no HLO text holds a NUL. */
static bool holds_nul(const char *text, size_t len, lw_diags *d) {
  const char *nul = len ? memchr(text, 0, len) : NULL;
  if (!nul) return false;
  int32_t line = 1;
  const char *start = text;
  for (const char *p = text; p < nul; p++)
    if (*p == '\n') {
      line++;
      start = p + 1;
    }
  lw_diag_add(d, line, (int32_t)(nul - start) + 1,
              "a NUL byte: this is not HLO text");
  return true;
}

lw_status lw_read_text(lw_context *ctx, const char *text, size_t len,
                       const char *filename, lw_diags *diags, lw_module **out) {
  lw_diags own = {0};
  lw_diags *d = diags ? diags : &own;
  text = strip_log(ctx, text, &len);
  d->file = filename;
  d->text = text;
  d->text_len = len;
  size_t before = d->count;
  lw_text_parser ps = {.ctx = ctx, .diags = d};
  ps.module = lw_module_new(ctx, "_");
  ps.arena = ps.module->arena;
  lw_lex_init(&ps.lx, text, len);
  lw_lexer first = ps.lx;
  lw_lex(&first);
  if (!holds_nul(text, len, d)) whole(&ps);
  bool ok = d->count == before && !ps.failed;
  if (ok) finish(&ps, !lw_tok_is(&first.tok, "HloModule"));
  lw_map_free(&ps.comps);
  lw_vec_free(&ps.unnamed);
  lw_status st = ok ? NULL : lw_diags_status(d);
  LW_ASSERT(ok || st);
  if (!ok) lw_module_free(ps.module);
  *out = ok ? ps.module : NULL;
  lw_diags_free(&own);
  return st;
}
