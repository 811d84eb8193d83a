/* Attributes, by the tables attributes.def and op_attributes.def. */
#include <string.h>

#include "reader/text_parser.h"

void lw_text_attrs_free(lw_text_attrs *a) {
  lw_vec_free(&a->attrs);
  lw_vec_free(&a->seen);
  lw_vec_free(&a->preds);
}

const lw_attr *lw_text_attrs_get(const lw_text_attrs *a, lw_attr_id id) {
  for (size_t i = 0; i < a->attrs.len; i++)
    if (a->attrs.data[i].id == id) return &a->attrs.data[i];
  return NULL;
}

/* ---- enums ---- */

/* Words such as kLoop, GE, FFT, API_VERSION_TYPED_FFI. */
static bool enum_value(lw_text_parser *ps, lw_attr_kind kind, int64_t *out) {
  const lw_token *t = &ps->lx.tok;
  if (kind == LW_AK_ENUM_TRISTATE) {
    bool v;
    if (!lw_text_bool(ps, &v)) return false;
    return lw_enum_value(kind, v ? "TRI_STATE_TRUE" : "TRI_STATE_FALSE",
                         v ? 14 : 15, out);
  }
  if (t->kind == TOK_IDENT && lw_enum_value(kind, t->text, t->len, out)) {
    lw_lex(&ps->lx);
    return true;
  }
  enum { MAX = 16 };
  const char *names[MAX];
  size_t n = 0;
  lw_buf list = {0};
  for (int64_t v = 0; v < MAX; v++) {
    const char *name = lw_enum_name(kind, v);
    if (!name) continue;
    names[n++] = name;
    lw_buf_printf(&list, "%s%s", list.len ? ", " : "", name);
  }
  char *word = lw_arena_strdup(ps->arena, t->text, t->len);
  const char *near = lw_nearest_name(word, names, n);
  if (near)
    lw_text_error(ps, "'%s' is not a value here; did you mean '%s'?", word,
                  near);
  else
    lw_text_error(ps, "'%s' is not a value here; one of: %s", word,
                  lw_buf_cstr(&list));
  lw_buf_free(&list);
  return false;
}

static bool precisions(lw_text_parser *ps, lw_attr *out) {
  LW_VEC(int64_t) v = {0};
  bool ok = lw_text_expect(ps, TOK_LBRACE, "before precisions");
  while (ok && ps->lx.tok.kind != TOK_RBRACE) {
    int64_t p = 0;
    ok = enum_value(ps, LW_AK_ENUMS_PRECISION, &p);
    lw_vec_push(&v, p);
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  out->u.list.n = (int32_t)v.len;
  out->u.list.v = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok && lw_text_expect(ps, TOK_RBRACE, "after precisions");
}

/* ---- windows and padding ---- */

/* "3x3" or "3". values may be NULL to count. Text is a checked token. */
static int32_t split_ints(const lw_token *t, int64_t *values, int32_t max) {
  int32_t n = 0;
  const char *p = t->text, *end = p + t->len;
  while (p < end && n < max) {
    bool neg = *p == '-';
    uint64_t v = 0;
    for (p += neg; p < end && *p >= '0' && *p <= '9'; p++)
      v = v > (UINT64_MAX >> 5) ? v : v * 10 + (uint64_t)(*p - '0');
    if (v > INT64_MAX) v = INT64_MAX;
    values[n++] = neg ? -(int64_t)v : (int64_t)v;
    p++; /* x or _ */
  }
  return n;
}

static bool dxd(lw_text_parser *ps, int64_t *v, int32_t *n) {
  const lw_token *t = &ps->lx.tok;
  if (*n) return lw_text_error(ps, "this part of the window is given twice");
  if (t->kind != TOK_INT && t->kind != TOK_DXD)
    return lw_text_error(ps, "expected sizes like 2x3");
  *n = split_ints(t, v, LW_MAX_RANK);
  lw_lex(&ps->lx);
  return true;
}

typedef struct {
  int64_t size[LW_MAX_RANK], stride[LW_MAX_RANK], lhs[LW_MAX_RANK],
      rhs[LW_MAX_RANK], reversal[LW_MAX_RANK], pad[2 * LW_MAX_RANK];
  int32_t n_size, n_stride, n_lhs, n_rhs, n_reversal, n_pad;
} window_parts;

static bool window_pad(lw_text_parser *ps, window_parts *w) {
  const lw_token *t = &ps->lx.tok;
  if (w->n_pad) return lw_text_error(ps, "pad= is given twice");
  if (t->kind != TOK_PAD)
    return lw_text_error(ps, "expected padding like 0_1x2_3");
  w->n_pad = split_ints(t, w->pad, 2 * LW_MAX_RANK);
  lw_lex(&ps->lx);
  return true;
}

static bool window_part(lw_text_parser *ps, window_parts *w) {
  lw_token t = ps->lx.tok;
  if (t.kind != TOK_ATTR)
    return lw_text_error(ps, "expected a part of the window, found %s",
                         lw_tok_describe(&t));
  lw_lex(&ps->lx);
  char *name = lw_arena_strdup(ps->arena, t.text, t.len);
  if (!strcmp(name, "size")) return dxd(ps, w->size, &w->n_size);
  if (!strcmp(name, "stride")) return dxd(ps, w->stride, &w->n_stride);
  if (!strcmp(name, "lhs_dilate")) return dxd(ps, w->lhs, &w->n_lhs);
  if (!strcmp(name, "rhs_dilate")) return dxd(ps, w->rhs, &w->n_rhs);
  if (!strcmp(name, "rhs_reversal"))
    return dxd(ps, w->reversal, &w->n_reversal);
  if (!strcmp(name, "pad")) return window_pad(ps, w);
  return lw_text_error_at(ps, &t,
                          "a window has size, stride, pad, lhs_dilate, "
                          "rhs_dilate and rhs_reversal, not '%s'",
                          name);
}

static bool window_sizes_agree(const window_parts *w) {
  int32_t n = w->n_size;
  return (!w->n_stride || w->n_stride == n) && (!w->n_lhs || w->n_lhs == n) &&
         (!w->n_rhs || w->n_rhs == n) && (!w->n_pad || w->n_pad == 2 * n) &&
         (!w->n_reversal || w->n_reversal == n);
}

static const lw_window *make_window(lw_text_parser *ps, const window_parts *w) {
  lw_window_dim *d = LW_NEW_ARRAY(ps->arena, lw_window_dim, w->n_size);
  for (int32_t i = 0; i < w->n_size; i++)
    d[i] = (lw_window_dim){
        .size = w->size[i],
        .stride = w->n_stride ? w->stride[i] : 1,
        .pad_lo = w->n_pad ? w->pad[2 * i] : 0,
        .pad_hi = w->n_pad ? w->pad[2 * i + 1] : 0,
        .lhs_dilation = w->n_lhs ? w->lhs[i] : 1,
        .rhs_dilation = w->n_rhs ? w->rhs[i] : 1,
        .reversed = w->n_reversal && w->reversal[i] == 1,
    };
  lw_window *out = LW_NEW(ps->arena, lw_window);
  out->rank = w->n_size;
  out->dims = d;
  return out;
}

static bool window(lw_text_parser *ps, lw_attr *out) {
  lw_token at = ps->lx.tok;
  window_parts w = {0};
  if (!lw_text_expect(ps, TOK_LBRACE, "before a window")) return false;
  while (ps->lx.tok.kind != TOK_RBRACE)
    if (!window_part(ps, &w)) return false;
  lw_lex(&ps->lx);
  if (!window_sizes_agree(&w))
    return lw_text_error_at(ps, &at,
                            "the parts of the window have different "
                            "ranks");
  out->u.window = make_window(ps, &w);
  return true;
}

/* low_high or low_high_interior, x between dimensions */
static bool padding(lw_text_parser *ps, lw_attr *out) {
  const lw_token *t = &ps->lx.tok;
  if (t->kind != TOK_PAD)
    return lw_text_error(ps, "expected padding like 0_1 or 0_1_2x0_0_0");
  int64_t v[3 * LW_MAX_RANK];
  int32_t n = 0;
  lw_token part = *t;
  const char *end = t->text + t->len;
  while (part.text < end && n < 3 * LW_MAX_RANK) {
    const char *x = memchr(part.text, 'x', (size_t)(end - part.text));
    part.len = (size_t)((x ? x : end) - part.text);
    v[n + 2] = 0;
    (void)split_ints(&part, &v[n], 3);
    n += 3;
    part.text += part.len + 1;
  }
  out->u.list.n = n;
  out->u.list.v = lw_arena_memdup(ps->arena, v, (size_t)n * sizeof *v);
  lw_lex(&ps->lx);
  return true;
}

/* {[0:4], [1:9:2]} */
static bool slice(lw_text_parser *ps, lw_attr *out) {
  LW_VEC(int64_t) v = {0};
  bool ok = lw_text_expect(ps, TOK_LBRACE, "before slice ranges");
  while (ok && ps->lx.tok.kind != TOK_RBRACE) {
    lw_token at = ps->lx.tok;
    int32_t n = 0;
    const int64_t *r = NULL;
    ok = lw_text_ints(ps, TOK_LSQUARE, TOK_COLON, TOK_RSQUARE, &n, &r);
    if (ok && n != 2 && n != 3)
      ok = lw_text_error_at(ps, &at,
                            "expected [start:limit] or "
                            "[start:limit:stride]");
    if (!ok) break;
    lw_vec_push(&v, r[0]);
    lw_vec_push(&v, r[1]);
    lw_vec_push(&v, n == 3 ? r[2] : 1);
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  out->u.list.n = (int32_t)v.len;
  out->u.list.v = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok && lw_text_expect(ps, TOK_RBRACE, "after slice ranges");
}

/* ---- dimension labels: b01f_01io->b01f ---- */

/* Splits one of the three words: the index of each of the two letters, and of
 * each digit. */
static bool labels(lw_text_parser *ps, const char *s, size_t n,
                   const char *letters, int64_t *first, int64_t *second,
                   int64_t *spatial, int32_t *n_spatial) {
  int32_t digits = 0;
  uint64_t seen = 0;
  *first = *second = -1;
  for (size_t i = 0; i < n; i++) digits += s[i] >= '0' && s[i] <= '9';
  if (*n_spatial >= 0 && digits != *n_spatial)
    return lw_text_error(ps,
                         "input, kernel and output need the same number of "
                         "spatial dimensions");
  *n_spatial = digits;
  for (size_t i = 0; i < n; i++) {
    int64_t d = s[i] - '0';
    if (s[i] == '?') continue;
    int64_t *slot = s[i] == letters[0]   ? first
                    : s[i] == letters[1] ? second
                    : d < digits         ? &spatial[d]
                                         : NULL;
    uint64_t bit = (uint64_t)1 << ((s[i] - '0') & 63);
    if (!slot || seen & bit)
      return lw_text_error(ps,
                           "dimension labels need %c, %c and 0 to %d once "
                           "each",
                           letters[0], letters[1], digits - 1);
    seen |= bit;
    *slot = (int64_t)i;
  }
  if (*first < 0 || *second < 0)
    return lw_text_error(ps, "dimension labels need %c and %c", letters[0],
                         letters[1]);
  return true;
}

static bool dim_labels(lw_text_parser *ps, lw_attr *out) {
  lw_token t = ps->lx.tok;
  if (t.kind != TOK_DIM_LABELS)
    return lw_text_error(ps, "expected dimension labels like b01f_01io->b01f");
  const char *kernel = (const char *)memchr(t.text, '_', t.len) + 1;
  const char *output = (const char *)memchr(t.text, '>', t.len) + 1;
  int64_t v[3][10];
  lw_dim_labels d = {.n_spatial = -1};
  if (!labels(ps, t.text, (size_t)(kernel - 1 - t.text), "bf", &d.input_batch,
              &d.input_feature, v[0], &d.n_spatial) ||
      !labels(ps, kernel, (size_t)(output - 2 - kernel), "io",
              &d.kernel_input_feature, &d.kernel_output_feature, v[1],
              &d.n_spatial) ||
      !labels(ps, output, (size_t)(t.text + t.len - output), "bf",
              &d.output_batch, &d.output_feature, v[2], &d.n_spatial))
    return false;
  size_t bytes = (size_t)d.n_spatial * sizeof(int64_t);
  d.input_spatial = lw_arena_memdup(ps->arena, v[0], bytes);
  d.kernel_spatial = lw_arena_memdup(ps->arena, v[1], bytes);
  d.output_spatial = lw_arena_memdup(ps->arena, v[2], bytes);
  out->u.dim_labels = lw_arena_memdup(ps->arena, &d, sizeof d);
  lw_lex(&ps->lx);
  return true;
}

/* ---- aliasing, pairs, shapes, computations ---- */

bool lw_text_shape_index(lw_text_parser *ps, int32_t *n, const int64_t **out) {
  return lw_text_ints(ps, TOK_LBRACE, TOK_COMMA, TOK_RBRACE, n, out);
}

bool lw_text_aliasing(lw_text_parser *ps, lw_attr *out) {
  LW_VEC(lw_alias) v = {0};
  bool ok = lw_text_expect(ps, TOK_LBRACE, "before aliases");
  while (ok && ps->lx.tok.kind != TOK_RBRACE) {
    lw_alias a = {0};
    ok = lw_text_shape_index(ps, &a.n_output_index, &a.output_index) &&
         lw_text_expect(ps, TOK_COLON, "in an alias {out}: (operand, {in})") &&
         lw_text_expect(ps, TOK_LPAREN, "in an alias {out}: (operand, {in})") &&
         lw_text_int(ps, &a.operand) &&
         lw_text_expect(ps, TOK_COMMA, "in an alias {out}: (operand, {in})") &&
         lw_text_shape_index(ps, &a.n_operand_index, &a.operand_index) &&
         lw_text_expect(ps, TOK_RPAREN, "in an alias {out}: (operand, {in})");
    lw_vec_push(&v, a);
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  out->u.aliasing.n = (int32_t)v.len;
  out->u.aliasing.v =
      lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok && lw_text_expect(ps, TOK_RBRACE, "after aliases");
}

/* {{0,1},{1,0}} */
static bool pairs(lw_text_parser *ps, lw_attr *out) {
  LW_VEC(int64_t) v = {0};
  bool ok = lw_text_expect(ps, TOK_LBRACE, "before pairs");
  while (ok && ps->lx.tok.kind != TOK_RBRACE) {
    lw_token at = ps->lx.tok;
    int32_t n = 0;
    const int64_t *p = NULL;
    ok = lw_text_ints(ps, TOK_LBRACE, TOK_COMMA, TOK_RBRACE, &n, &p);
    if (ok && n != 2) ok = lw_text_error_at(ps, &at, "expected a pair {a,b}");
    if (!ok) break;
    lw_vec_push(&v, p[0]);
    lw_vec_push(&v, p[1]);
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  out->u.list.n = (int32_t)v.len;
  out->u.list.v = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok && lw_text_expect(ps, TOK_RBRACE, "after pairs");
}

static bool bools(lw_text_parser *ps, lw_attr *out) {
  LW_VEC(int64_t) v = {0};
  bool ok = lw_text_expect(ps, TOK_LBRACE, "before true or false");
  while (ok && ps->lx.tok.kind != TOK_RBRACE) {
    bool b = false;
    ok = lw_text_bool(ps, &b);
    lw_vec_push(&v, b);
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  out->u.list.n = (int32_t)v.len;
  out->u.list.v = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok && lw_text_expect(ps, TOK_RBRACE, "after true or false");
}

static bool shapes(lw_text_parser *ps, lw_attr *out) {
  LW_VEC(const lw_shape *) v = {0};
  bool ok = lw_text_expect(ps, TOK_LBRACE, "before shapes");
  while (ok && ps->lx.tok.kind != TOK_RBRACE) {
    const lw_shape *s = NULL;
    ok = lw_text_shape(ps, &s);
    lw_vec_push(&v, s);
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  out->u.shapes.n = (int32_t)v.len;
  out->u.shapes.v = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok && lw_text_expect(ps, TOK_RBRACE, "after shapes");
}

static bool comps(lw_text_parser *ps, lw_attr *out) {
  LW_VEC(lw_comp *) v = {0};
  bool ok = lw_text_expect(ps, TOK_LBRACE, "before computations");
  while (ok && ps->lx.tok.kind != TOK_RBRACE) {
    lw_comp *c = NULL;
    ok = lw_text_comp_ref(ps, &c);
    lw_vec_push(&v, c);
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  out->u.comps.n = (int32_t)v.len;
  out->u.comps.v = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok && lw_text_expect(ps, TOK_RBRACE, "after computations");
}

static bool literal(lw_text_parser *ps, lw_attr *out) {
  const lw_shape *shape;
  lw_literal *l = NULL;
  if (!lw_text_shape(ps, &shape) || !lw_text_literal(ps, shape, &l))
    return false;
  out->u.literal = l;
  return true;
}

static bool bare_word(lw_text_parser *ps, lw_attr *out) {
  const lw_token *t = &ps->lx.tok;
  if (t->kind != TOK_IDENT)
    return lw_text_error(ps, "expected a word, found %s", lw_tok_describe(t));
  out->u.s = lw_context_str(ps->ctx, t->text, t->len);
  lw_lex(&ps->lx);
  return true;
}

/* ---- verbatim braces ---- */

bool lw_text_raw_braces(lw_text_parser *ps, const char **out) {
  if (ps->lx.tok.kind != TOK_LBRACE)
    return lw_text_error(ps, "expected '{', found %s",
                         lw_tok_describe(&ps->lx.tok));
  lw_token at = ps->lx.tok;
  lw_buf b = {0};
  int64_t depth = 0;
  const char *after = ps->lx.tok.start;
  do {
    const lw_token *t = &ps->lx.tok;
    depth += t->kind == TOK_LBRACE ? 1 : t->kind == TOK_RBRACE ? -1 : 0;
    if (t->kind == TOK_END || t->kind == TOK_ERROR) break;
    if (t->start != after) lw_buf_chr(&b, ' ');
    lw_buf_add(&b, t->start, (size_t)(ps->lx.p - t->start));
    after = ps->lx.p;
    lw_lex(&ps->lx);
  } while (depth);
  *out = lw_arena_strdup(ps->arena, lw_buf_cstr(&b), b.len);
  lw_buf_free(&b);
  return !depth || lw_text_error_at(ps, &at, "this '{' is never closed");
}

/* ---- one attribute ---- */

static bool computation(lw_text_parser *ps, lw_attr *out) {
  return lw_text_comp_ref(ps, &out->u.comp);
}

static bool boolean(lw_text_parser *ps, lw_attr *out) {
  bool v;
  if (!lw_text_bool(ps, &v)) return false;
  out->u.i = v;
  return true;
}

static bool value(lw_text_parser *ps, lw_attr *out) {
  lw_attr_kind kind = lw_attr_table[out->id].kind;
  switch (kind) {
    case LW_AK_I64:
      return lw_text_int(ps, &out->u.i);
    case LW_AK_BOOL:
      return boolean(ps, out);
    case LW_AK_F64:
      return lw_text_double(ps, &out->u.f);
    case LW_AK_STR:
      return lw_text_string(ps, &out->u.s);
    case LW_AK_STR_BARE:
      return bare_word(ps, out);
    case LW_AK_RAW:
    case LW_AK_SLICE_SIZES_LIST:
      return lw_text_raw_braces(ps, &out->u.s);
    case LW_AK_I64S:
      return lw_text_ints(ps, TOK_LBRACE, TOK_COMMA, TOK_RBRACE, &out->u.list.n,
                          &out->u.list.v);
    case LW_AK_BOOLS:
      return bools(ps, out);
    case LW_AK_SLICE:
      return slice(ps, out);
    case LW_AK_PADDING:
      return padding(ps, out);
    case LW_AK_WINDOW:
      return window(ps, out);
    case LW_AK_DIM_LABELS:
      return dim_labels(ps, out);
    case LW_AK_COMP:
      return computation(ps, out);
    case LW_AK_COMPS:
      return comps(ps, out);
    case LW_AK_ALIASING:
      return lw_text_aliasing(ps, out);
    case LW_AK_SHAPE:
      return lw_text_shape(ps, &out->u.shape);
    case LW_AK_SHAPES:
      return shapes(ps, out);
    case LW_AK_LITERAL:
      return literal(ps, out);
    case LW_AK_REPLICA_GROUPS:
      return lw_text_replica_groups(ps, &out->u.groups);
    case LW_AK_PAIRS:
      return pairs(ps, out);
    case LW_AK_ENUMS_PRECISION:
      return precisions(ps, out);
    case LW_AK_CMP_DIR:
    case LW_AK_ENUM_COMPARE_TYPE:
    case LW_AK_ENUM_FUSION_KIND:
    case LW_AK_ENUM_FFT_TYPE:
    case LW_AK_ENUM_TRANSPOSE:
    case LW_AK_ENUM_DISTRIBUTION:
    case LW_AK_ENUM_RNG_ALGORITHM:
    case LW_AK_ENUM_API_VERSION:
    case LW_AK_ENUM_CUSTOM_CALL_SCHEDULE:
    case LW_AK_ENUM_PADDING_TYPE:
    case LW_AK_ENUM_TRISTATE:
      return enum_value(ps, kind, &out->u.i);
  }
  return false;
}

/* lawson.fold="rule,run", our own note among the frontend attributes. */
static bool take_fold(lw_text_parser *ps, lw_text_attrs *a) {
  for (int32_t i = 0; i < a->frontend.n; i++) {
    const lw_kv *kv = &a->frontend.v[i];
    if (strcmp(kv->key, lw_attr_table[LW_ATTR_FOLD].name)) continue;
    char *rest;
    int64_t v[2];
    v[0] = strtoll(kv->value, &rest, 10);
    v[1] = *rest == ',' ? strtoll(rest + 1, &rest, 10) : 0;
    if (*rest || rest == kv->value)
      return lw_text_error(ps, "expected lawson.fold=\"rule,run\"");
    lw_attr at = {.id = LW_ATTR_FOLD};
    at.u.list.n = 2;
    at.u.list.v = lw_arena_memdup(ps->arena, v, sizeof v);
    lw_vec_push(&a->attrs, at);
    lw_kv *left = LW_NEW_ARRAY(ps->arena, lw_kv, a->frontend.n);
    for (int32_t j = 0, n = 0; j < a->frontend.n; j++)
      if (j != i) left[n++] = a->frontend.v[j];
    a->frontend = (lw_frontend_attrs){a->frontend.n - 1, left};
    return true;
  }
  return true;
}

static bool predecessors(lw_text_parser *ps, lw_text_attrs *a) {
  if (!lw_text_expect(ps, TOK_LBRACE, "before control predecessors"))
    return false;
  do {
    lw_token at = ps->lx.tok;
    const char *name;
    lw_inst *pred;
    if (!lw_text_name(ps, &name) || !lw_text_find_inst(ps, &at, name, &pred))
      return false;
    lw_vec_push(&a->preds, pred);
  } while (lw_text_eat(ps, TOK_COMMA));
  return lw_text_expect(ps, TOK_RBRACE, "after control predecessors");
}

static bool metadata(lw_text_parser *ps, lw_text_attrs *a) {
  lw_metadata *m = LW_NEW(ps->arena, lw_metadata);
  a->metadata = m;
  return lw_text_metadata(ps, m);
}

static const char *const common[] = {"metadata", "sharding",
                                     "frontend_attributes", "backend_config",
                                     "control-predecessors"};
/* Table attributes that any opcode takes. */
static const lw_attr_id anywhere[] = {LW_ATTR_PARAMETER_REPLICATION,
                                      LW_ATTR_STATISTICS, LW_ATTR_ORIGIN};

static bool common_value(lw_text_parser *ps, lw_text_attrs *a, int which) {
  switch (which) {
    case 0:
      return metadata(ps, a);
    case 1:
      return lw_text_sharding(ps, &a->sharding);
    case 2:
      return lw_text_frontend(ps, &a->frontend) && take_fold(ps, a);
    case 3:
      return lw_text_string_or_braces(ps, &a->backend_config);
    default:
      return predecessors(ps, a);
  }
}

/* XLA allows it on these unary opcodes. */
static bool takes_accuracy(lw_opcode op) {
  unsigned flags = lw_opcode_table[op].flags;
  return (flags & LW_OPF_UN) && (flags & LW_OPF_TRANS);
}

enum { MAX_NAMES = 48 };

/* Every name allowed here, for look-ups and suggestions. */
static size_t allowed(const lw_text_attrs *a, const char **names,
                      lw_attr_id *ids) {
  size_t n = 0;
  int k = 0;
  const lw_op_attr *list = a->async_rest ? NULL : lw_op_attrs(a->op, &k);
#define ADD(id_) (ids[n] = (id_), names[n++] = lw_attr_table[id_].name)
  for (int i = 0; i < k; i++)
    if (list[i].id != LW_ATTR_FOLD && list[i].id != LW_ATTR_PARAMETER_NUMBER &&
        !(a->op == LW_OP_CONSTANT && list[i].id == LW_ATTR_LITERAL))
      ADD(list[i].id);
  if (a->async_start || a->async_rest) ADD(LW_ATTR_ASYNC_EXECUTION_THREAD);
  if (a->async_start && a->op != LW_OP_FUSION && a->op != LW_OP_CUSTOM_CALL)
    ADD(LW_ATTR_OUTPUT_TO_OPERAND_ALIASING);
  for (int i = 0; i < 3; i++) ADD(anywhere[i]);
  if (takes_accuracy(a->op)) ADD(LW_ATTR_RESULT_ACCURACY);
#undef ADD
  for (int i = 0; i < 5; i++) {
    ids[n] = LW_ATTR_COUNT;
    names[n++] = common[i];
  }
  return n;
}

static bool unknown_attr(lw_text_parser *ps, const lw_token *at,
                         const lw_text_attrs *a, const char *name) {
  const char *names[MAX_NAMES];
  lw_attr_id ids[MAX_NAMES];
  size_t n = allowed(a, names, ids);
  const char *op = lw_opcode_name(a->op);
  const char *near = lw_nearest_name(name, names, n);
  if (near)
    return lw_text_error_at(ps, at,
                            "%s has no attribute '%s'; did you mean "
                            "'%s'?",
                            op, name, near);
  lw_buf b = {0};
  for (size_t i = 0; i < n; i++)
    lw_buf_printf(&b, "%s%s", i ? ", " : "", names[i]);
  lw_text_error_at(ps, at, "%s has no attribute '%s'; it takes: %s", op, name,
                   lw_buf_cstr(&b));
  lw_buf_free(&b);
  return false;
}

static bool attribute(lw_text_parser *ps, lw_text_attrs *a) {
  lw_token at = ps->lx.tok;
  if (at.kind != TOK_ATTR)
    return lw_text_error(ps, "expected an attribute (name=value), found %s",
                         lw_tok_describe(&at));
  const char *name = lw_context_str(ps->ctx, at.text, at.len);
  for (size_t i = 0; i < a->seen.len; i++)
    if (a->seen.data[i] == name)
      return lw_text_error(ps, "attribute '%s' is given twice", name);
  lw_vec_push(&a->seen, name);
  const char *names[MAX_NAMES];
  lw_attr_id ids[MAX_NAMES];
  size_t n = allowed(a, names, ids), i = 0;
  while (i < n && strcmp(names[i], name)) i++;
  if (i == n) return unknown_attr(ps, &at, a, name);
  lw_lex(&ps->lx);
  if (ids[i] == LW_ATTR_COUNT) return common_value(ps, a, (int)(i - (n - 5)));
  lw_attr v = {.id = ids[i]};
  if (!value(ps, &v)) return false;
  lw_vec_push(&a->attrs, v);
  return true;
}

bool lw_text_attributes(lw_text_parser *ps, lw_text_attrs *out) {
  while (lw_text_eat(ps, TOK_COMMA))
    if (!attribute(ps, out)) return false;
  return true;
}
