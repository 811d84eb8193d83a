/* Constants. The nest of braces is read with a loop and a counter a dimension,
 * never recursively. A literal cannot have more elements than its text has
 * bytes, so a shape that lies about its size costs nothing. */
#include <math.h>
#include <string.h>

#include "reader/text_parser.h"

typedef struct {
  lw_text_parser *ps;
  lw_literal *lit;
  const lw_shape *shape;
  int32_t level;             /* open braces */
  int64_t seen[LW_MAX_RANK]; /* elements or sub-arrays of each dimension */
  int64_t next;              /* linear index */
} dense;

/* ---- storing one value ---- */

static bool out_of_range(lw_text_parser *ps, const lw_token *at,
                         const lw_shape *s) {
  return lw_text_error_at(ps, at, "%.*s is out of range for %s", (int)at->len,
                          at->text, lw_prim_name(s->type));
}

static bool store_int(dense *d, const lw_token *at) {
  lw_prim t = d->shape->type;
  int bits = t == LW_PRED ? 1 : lw_prim_table[t].bits;
  int64_t v = at->i;
  bool ok;
  if (lw_prim_is_signed(t))
    ok = !at->big && (bits == 64 || (v >= -((int64_t)1 << (bits - 1)) &&
                                     v < (int64_t)1 << (bits - 1)));
  else
    ok = (at->big || v >= 0) &&
         (bits == 64 || (!at->big && v < (int64_t)1 << bits));
  if (!ok) return out_of_range(d->ps, at, d->shape);
  lw_literal_set_int(d->lit, d->next, v);
  return true;
}

/* Puts sign and payload of a nan; types without payloads refuse one. */
static bool store_nan(dense *d, const lw_token *at, int part) {
  lw_prim t = lw_prim_part(d->shape->type);
  int bits = lw_prim_table[t].bits, man = lw_prim_table[t].man_bits;
  bool payloads = t == LW_F32 || t == LW_F64 || t == LW_F16 || t == LW_BF16 ||
                  t == LW_F8E5M2 || t == LW_F8E4M3 || t == LW_F8E3M4;
  if (!payloads) {
    if (at->payload)
      return lw_text_error_at(d->ps, at, "%s has no nan payloads",
                              lw_prim_name(t));
    lw_literal_set_f64(d->lit, d->next, part, at->f);
    if (t == LW_F8E4M3FN && at->negative) /* it has two nans */
      ((uint8_t *)d->lit->data)[d->next] |= 0x80;
    return true;
  }
  uint64_t payload = at->payload ? at->payload : (uint64_t)1 << (man - 1);
  if (payload >> man)
    return lw_text_error_at(d->ps, at, "the nan payload does not fit %s",
                            lw_prim_name(t));
  uint64_t code = ((uint64_t)1 << (bits - 1 - man)) - 1; /* exponent ones */
  code = code << man | payload;
  if (at->negative) code |= (uint64_t)1 << (bits - 1);
  size_t size = (size_t)bits / 8;
  size_t parts = lw_prim_is_complex(d->shape->type) ? 2 : 1;
  memcpy((char *)d->lit->data + ((size_t)d->next * parts + (size_t)part) * size,
         &code, size); /* little-endian */
  return true;
}

static bool store_float(dense *d, const lw_token *at, int part) {
  double v = at->f;
  if (at->kind == TOK_INT) {
    v = at->big ? (double)(uint64_t)at->i : (double)at->i;
    if (at->i == 0 && at->negative) v = -0.0; /* what XLA prints for it */
  }
  if (isnan(v)) return store_nan(d, at, part);
  if (isinf(v) && at->len && (at->text[at->len - 1] != 'f'))
    return out_of_range(d->ps, at, d->shape); /* overflowed double */
  lw_literal_set_f64(d->lit, d->next, part, v);
  if (isfinite(v) && !isfinite(lw_literal_get_f64(d->lit, d->next, part)))
    return out_of_range(d->ps, at, d->shape);
  return true;
}

static bool number_token(const lw_token *t) {
  return t->kind == TOK_INT || t->kind == TOK_FLOAT;
}

static bool store_complex(dense *d) {
  lw_text_parser *ps = d->ps;
  lw_lex(&ps->lx); /* '(' */
  for (int part = 0; part < 2; part++) {
    lw_token at = ps->lx.tok;
    if (!number_token(&at))
      return lw_text_error(ps, "expected a number in a complex literal");
    if (!store_float(d, &at, part)) return false;
    lw_lex(&ps->lx);
    if (!lw_text_expect(ps, part ? TOK_RPAREN : TOK_COMMA,
                        "in a complex literal"))
      return false;
  }
  return true;
}

/* ---- the nest ---- */

static bool count_element(dense *d) {
  const lw_shape *s = d->shape;
  if (d->level != s->rank)
    return lw_text_error(d->ps,
                         "this element stands in %d braces, but a %s "
                         "literal has %d",
                         d->level, lw_shape_str(d->ps->ctx, s->no_layout),
                         s->rank);
  if (s->rank && ++d->seen[s->rank - 1] > s->dims[s->rank - 1])
    return lw_text_error(d->ps, "more than %lld elements in the last dimension",
                         (long long)s->dims[s->rank - 1]);
  return true;
}

static bool open_brace(dense *d) {
  const lw_shape *s = d->shape;
  if (++d->level > s->rank)
    return lw_text_error(d->ps, "too many braces for rank %d", s->rank);
  int32_t dim = d->level - 2;
  if (dim >= 0 && ++d->seen[dim] > s->dims[dim])
    return lw_text_error(d->ps, "more than %lld sub-arrays in dimension %d",
                         (long long)s->dims[dim], dim);
  return true;
}

static bool close_brace(dense *d) {
  const lw_shape *s = d->shape;
  if (d->level == 0) return lw_text_error(d->ps, "unexpected '}'");
  int32_t dim = --d->level;
  if (d->seen[dim] != s->dims[dim])
    return lw_text_error(d->ps,
                         "expected %lld elements in dimension %d, found "
                         "%lld",
                         (long long)s->dims[dim], dim, (long long)d->seen[dim]);
  d->seen[dim] = 0;
  return true;
}

static bool elided(lw_text_parser *ps) {
  return lw_text_error(
      ps,
      "the values of this constant were left out of the text ({...}), so "
      "the program cannot be run; dump it again with them "
      "(--xla_dump_large_constants, or print_large_constants = True in "
      "HloPrintOptions)");
}

static bool element(dense *d) {
  lw_text_parser *ps = d->ps;
  lw_token at = ps->lx.tok;
  lw_prim t = d->shape->type;
  if (!count_element(d)) return false;
  if (at.kind == TOK_LPAREN) {
    if (!lw_prim_is_complex(t))
      return lw_text_error(ps, "'(' is for complex literals only");
    if (!store_complex(d)) return false;
    d->next++;
    return true;
  }
  bool truth = lw_tok_is(&at, "true");
  if (truth || lw_tok_is(&at, "false")) {
    if (t != LW_PRED)
      return lw_text_error(ps, "true and false are for pred literals only");
    lw_literal_set_int(d->lit, d->next, truth);
  } else if (lw_prim_is_int(t) || t == LW_PRED) {
    if (at.kind != TOK_INT)
      return lw_text_error(ps, "expected an integer for %s", lw_prim_name(t));
    if (!store_int(d, &at)) return false;
  } else if (lw_prim_is_float(t)) {
    if (!store_float(d, &at, 0)) return false;
  } else {
    return lw_text_error(ps, "expected (real, imaginary) for %s",
                         lw_prim_name(t));
  }
  d->next++;
  lw_lex(&ps->lx);
  return true;
}

static bool step(dense *d) {
  lw_text_parser *ps = d->ps;
  switch (ps->lx.tok.kind) {
    case TOK_LBRACE:
      if (!open_brace(d)) return false;
      lw_lex(&ps->lx);
      return true;
    case TOK_RBRACE:
      if (!close_brace(d)) return false;
      lw_lex(&ps->lx);
      return true;
    case TOK_COMMA:
      lw_lex(&ps->lx);
      return true;
    case TOK_DOTS:
      return elided(ps);
    case TOK_INT:
    case TOK_FLOAT:
    case TOK_LPAREN:
      return element(d);
    case TOK_IDENT:
      if (lw_tok_is(&ps->lx.tok, "true") || lw_tok_is(&ps->lx.tok, "false"))
        return element(d);
      break;
    default:
      break;
  }
  return lw_text_error(ps, "unexpected %s in a literal",
                       lw_tok_describe(&ps->lx.tok));
}

static bool dense_literal(lw_text_parser *ps, const lw_shape *shape,
                          lw_literal **out) {
  if (ps->lx.tok.kind == TOK_LBRACE && lw_lex_peek(&ps->lx) == TOK_DOTS)
    return elided(ps);
  if (shape->elements > 1 && shape->elements > ps->lx.end - ps->lx.p)
    return lw_text_error(ps,
                         "a %s literal needs %lld elements, more than this "
                         "text has bytes left",
                         lw_shape_str(ps->ctx, shape->no_layout),
                         (long long)shape->elements);
  lw_status st = lw_literal_new(ps->arena, shape, out);
  if (st) {
    lw_text_error(ps, "%s", lw_status_message(st));
    lw_status_free(st);
    return false;
  }
  dense d = {.ps = ps, .lit = *out, .shape = shape};
  do {
    if (!step(&d)) return false;
  } while (d.level > 0);
  return true;
}

static bool tuple_literal(lw_text_parser *ps, const lw_shape *shape,
                          lw_literal **out) {
  lw_literal *l = LW_NEW(ps->arena, lw_literal);
  l->shape = shape;
  l->n_elems = shape->n_elems;
  l->elems = LW_NEW_ARRAY(ps->arena, lw_literal *, shape->n_elems);
  *out = l;
  if (!lw_text_expect(ps, TOK_LPAREN, "before a tuple literal")) return false;
  for (int32_t i = 0; i < l->n_elems; i++) {
    if (i && !lw_text_expect(ps, TOK_COMMA, "in a tuple literal")) return false;
    if (!lw_text_literal(ps, shape->elems[i], &l->elems[i])) return false;
  }
  return lw_text_expect(ps, TOK_RPAREN, "after a tuple literal");
}

bool lw_text_literal(lw_text_parser *ps, const lw_shape *shape,
                     lw_literal **out) {
  if (lw_shape_is_tuple(shape)) {
    if (!lw_text_enter(ps)) return false;
    bool ok = tuple_literal(ps, shape, out);
    lw_text_leave(ps);
    return ok;
  }
  if (!lw_shape_is_array(shape))
    return lw_text_error(ps, "a constant cannot be a %s",
                         lw_prim_name(shape->type));
  if (lw_shape_has_dynamic(shape))
    for (int32_t i = 0; i < shape->rank; i++)
      if (shape->dims[i] == LW_UNBOUNDED)
        return lw_text_error(ps, "a constant needs known sizes");
  return dense_literal(ps, shape, out);
}
