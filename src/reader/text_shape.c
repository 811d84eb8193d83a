/* Shapes and layouts. */
#include "reader/text_parser.h"

typedef LW_VEC(int64_t) ints;

/* ---- layouts: {1,0:T(8,128)(2,1)L(2)#(u8)*(u8)E(4)S(1)SC(1:4)M(8)} ---- */

static bool layout_int(lw_text_parser *ps, int64_t *out) {
  return lw_text_expect(ps, TOK_LPAREN, "in a layout") &&
         lw_text_int(ps, out) && lw_text_expect(ps, TOK_RPAREN, "in a layout");
}

static bool layout_type(lw_text_parser *ps, lw_prim *out) {
  if (!lw_text_expect(ps, TOK_LPAREN, "before a layout's index type"))
    return false;
  if (ps->lx.tok.kind != TOK_TYPE ||
      lw_prim_class(ps->lx.tok.prim) != LW_CLASS_UINT)
    return lw_text_error(ps, "expected an unsigned integer type");
  *out = ps->lx.tok.prim;
  lw_lex(&ps->lx);
  return lw_text_expect(ps, TOK_RPAREN, "after a layout's index type");
}

/* D(D,C+,S~): kept as the letters with their signs. */
static bool dim_levels(lw_text_parser *ps, lw_layout *l) {
  if (!lw_text_expect(ps, TOK_LPAREN, "in a layout")) return false;
  lw_buf b = {0};
  bool ok = true;
  do {
    static const char *const levels[] = {"D", "C", "S", "H"};
    int k = 0;
    while (k < 4 && !lw_tok_is(&ps->lx.tok, levels[k])) k++;
    if (k == 4) {
      ok = lw_text_error(ps, "expected a dimension level: D, C, S or H");
      break;
    }
    lw_lex(&ps->lx);
    lw_buf_str(&b, levels[k]);
    if (lw_text_eat(ps, TOK_PLUS)) lw_buf_chr(&b, '+');
    if (lw_text_eat(ps, TOK_TILDE)) lw_buf_chr(&b, '~');
    l->n_levels++;
  } while (lw_text_eat(ps, TOK_COMMA));
  l->dim_levels = lw_arena_strdup(ps->arena, lw_buf_cstr(&b), b.len);
  lw_buf_free(&b);
  return ok && lw_text_expect(ps, TOK_RPAREN, "in a layout");
}

static bool tile(lw_text_parser *ps, lw_tile *out) {
  ints v = {0};
  bool ok = lw_text_expect(ps, TOK_LPAREN, "before a tile");
  while (ok && ps->lx.tok.kind != TOK_RPAREN) {
    int64_t dim = LW_TILE_COMBINE;
    if (!lw_text_eat(ps, TOK_STAR)) ok = lw_text_int(ps, &dim);
    lw_vec_push(&v, dim);
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  out->rank = (int32_t)v.len;
  out->dims = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok && lw_text_expect(ps, TOK_RPAREN, "after a tile");
}

static bool tiles(lw_text_parser *ps, lw_layout *l) {
  LW_VEC(lw_tile) v = {0};
  bool ok = true;
  do {
    lw_tile t = {0};
    ok = tile(ps, &t);
    lw_vec_push(&v, t);
  } while (ok && ps->lx.tok.kind == TOK_LPAREN);
  l->n_tiles = (int32_t)v.len;
  l->tiles = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok;
}

static bool splits(lw_text_parser *ps, lw_layout *l) {
  LW_VEC(lw_split_config) v = {0};
  bool ok = true;
  do {
    lw_split_config s = {0};
    ok = lw_text_expect(ps, TOK_LPAREN, "before a split") &&
         lw_text_int(ps, &s.dim) &&
         lw_text_ints(ps, TOK_COLON, TOK_COMMA, TOK_RPAREN, &s.n, &s.indices);
    lw_vec_push(&v, s);
  } while (ok && ps->lx.tok.kind == TOK_LPAREN);
  l->n_splits = (int32_t)v.len;
  l->splits = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok;
}

/* What follows the colon, in XLA's order. */
static bool layout_extras(lw_text_parser *ps, lw_layout *l) {
  if (lw_text_eat_word(ps, "D") && !dim_levels(ps, l)) return false;
  if (lw_text_eat_word(ps, "T") && !tiles(ps, l)) return false;
  if (lw_text_eat_word(ps, "L") && !layout_int(ps, &l->tail_padding_elements))
    return false;
  if (lw_text_eat(ps, TOK_HASH) && !layout_type(ps, &l->index_type))
    return false;
  if (lw_text_eat(ps, TOK_STAR) && !layout_type(ps, &l->pointer_type))
    return false;
  if (lw_text_eat_word(ps, "E") && !layout_int(ps, &l->element_size_bits))
    return false;
  if (lw_text_eat_word(ps, "S") && !layout_int(ps, &l->memory_space))
    return false;
  if (lw_text_eat_word(ps, "SC") && !splits(ps, l)) return false;
  if (lw_text_eat_word(ps, "P"))
    return lw_text_error(ps, "a physical shape is only for sparse arrays");
  if (lw_text_eat_word(ps, "M") && !layout_int(ps, &l->metadata_prefix_bytes))
    return false;
  return true;
}

static bool is_permutation(const int64_t *v, int32_t n) {
  uint64_t seen = 0;
  for (int32_t i = 0; i < n; i++) {
    if (v[i] < 0 || v[i] >= n || seen >> v[i] & 1) return false;
    seen |= (uint64_t)1 << v[i];
  }
  return true;
}

static bool layout(lw_text_parser *ps, int32_t rank, const lw_layout **out) {
  lw_token at = ps->lx.tok;
  lw_layout l = {.tail_padding_elements = 1};
  int64_t order[LW_MAX_RANK];
  lw_lex(&ps->lx); /* '{' */
  while (ps->lx.tok.kind == TOK_INT) {
    int64_t dim;
    if (!lw_text_int(ps, &dim)) return false;
    if (l.rank < LW_MAX_RANK) order[l.rank] = dim;
    l.rank++;
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  l.minor_to_major = order;
  if (lw_text_eat(ps, TOK_COLON) && !layout_extras(ps, &l)) return false;
  if (!lw_text_expect(ps, TOK_RBRACE, "at the end of a layout")) return false;
  if (l.rank != rank)
    return lw_text_error_at(ps, &at,
                            "the layout names %d dimensions, but the "
                            "shape has %d",
                            l.rank, rank);
  if (!is_permutation(order, rank))
    return lw_text_error_at(ps, &at,
                            "the layout is not a permutation of the "
                            "dimensions");
  *out = lw_layout_intern(ps->ctx, &l);
  return true;
}

/* ---- shapes ---- */

bool lw_text_can_be_shape(const lw_text_parser *ps) {
  const lw_token *t = &ps->lx.tok;
  return t->kind == TOK_TYPE || t->kind == TOK_LPAREN ||
         (lw_tok_is(t, "b") && lw_lex_peek(&ps->lx) == TOK_LPAREN);
}

/* [2,<=3,?] */
static bool dims(lw_text_parser *ps, lw_shape *s, int64_t *sizes,
                 bool *dynamic) {
  if (!lw_text_expect(ps, TOK_LSQUARE, "after a type")) return false;
  while (ps->lx.tok.kind != TOK_RSQUARE) {
    if (s->rank == LW_MAX_RANK)
      return lw_text_error(ps, "more than %d dimensions", LW_MAX_RANK);
    int64_t *size = &sizes[s->rank];
    bool *dyn = &dynamic[s->rank++];
    *dyn = true;
    if (lw_text_eat(ps, TOK_QUESTION)) {
      *size = LW_UNBOUNDED;
    } else {
      *dyn = lw_text_eat(ps, TOK_LEQ);
      lw_token at = ps->lx.tok;
      if (!lw_text_int(ps, size)) return false;
      if (*size < 0 || at.big)
        return lw_text_error_at(ps, &at,
                                "a dimension is between 0 and 2^63 - 1");
    }
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  return lw_text_expect(ps, TOK_RSQUARE, "after the dimensions");
}

static bool array(lw_text_parser *ps, const lw_shape **out) {
  int64_t sizes[LW_MAX_RANK];
  bool dynamic[LW_MAX_RANK], any = false;
  if (ps->lx.tok.kind != TOK_TYPE)
    return lw_text_error(ps, "expected a shape, found %s",
                         lw_tok_describe(&ps->lx.tok));
  lw_shape s = {.type = ps->lx.tok.prim, .dims = sizes};
  lw_lex(&ps->lx);
  if (!dims(ps, &s, sizes, dynamic)) return false;
  for (int32_t i = 0; i < s.rank; i++) any |= dynamic[i];
  if (any) s.dynamic = dynamic;
  if (!lw_prim_is_array(s.type)) {
    if (s.rank)
      return lw_text_error(ps, "%s takes no dimensions", lw_prim_name(s.type));
    *out = lw_shape_other(ps->ctx, s.type);
    return true;
  }
  s.layout = lw_layout_descending(ps->ctx, s.rank);
  /* '{' may also begin a computation's body. */
  lw_tok_kind next =
      ps->lx.tok.kind == TOK_LBRACE ? lw_lex_peek(&ps->lx) : TOK_END;
  if ((next == TOK_INT || next == TOK_COLON) && !layout(ps, s.rank, &s.layout))
    return false;
  if (next == TOK_RBRACE && s.rank == 0) { /* f32[]{} */
    lw_lex(&ps->lx);
    lw_lex(&ps->lx);
  }
  *out = lw_shape_intern(ps->ctx, &s);
  return true;
}

static bool tuple(lw_text_parser *ps, const lw_shape **out) {
  LW_VEC(const lw_shape *) v = {0};
  bool ok = true;
  lw_lex(&ps->lx); /* '(' */
  while (ok && ps->lx.tok.kind != TOK_RPAREN) {
    const lw_shape *s = NULL;
    ok = lw_text_shape(ps, &s);
    lw_vec_push(&v, s);
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  ok = ok && lw_text_expect(ps, TOK_RPAREN, "at the end of a tuple shape");
  if (ok) *out = lw_shape_tuple(ps->ctx, (int32_t)v.len, v.data);
  lw_vec_free(&v);
  return ok;
}

static bool buffer(lw_text_parser *ps, const lw_shape **out) {
  const lw_shape *inner;
  lw_lex(&ps->lx); /* b */
  lw_lex(&ps->lx); /* ( */
  lw_token at = ps->lx.tok;
  if (!lw_text_shape(ps, &inner) ||
      !lw_text_expect(ps, TOK_RPAREN, "at the end of a buffer shape"))
    return false;
  if (!lw_shape_is_array(inner))
    return lw_text_error_at(ps, &at, "a buffer holds an array");
  *out = lw_shape_buffer(ps->ctx, inner);
  return true;
}

bool lw_text_shape(lw_text_parser *ps, const lw_shape **out) {
  if (!lw_text_enter(ps)) return false;
  bool ok;
  if (ps->lx.tok.kind == TOK_LPAREN)
    ok = tuple(ps, out);
  else if (lw_tok_is(&ps->lx.tok, "b") && lw_lex_peek(&ps->lx) == TOK_LPAREN)
    ok = buffer(ps, out);
  else
    ok = array(ps, out);
  lw_text_leave(ps);
  return ok;
}
