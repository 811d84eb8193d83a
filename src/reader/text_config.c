/* The small languages inside attributes: metadata, shardings, replica groups,
 * frontend attributes. */
#include <stdlib.h>
#include <string.h>

#include "reader/text_parser.h"

static bool attr_is(const lw_token *t, const char *name) {
  return t->kind == TOK_ATTR && strlen(name) == t->len &&
         !memcmp(t->text, name, t->len);
}

/* ---- metadata={op_name="..." source_line=3} ---- */

typedef struct {
  const char *name;
  size_t offset; /* in lw_metadata */
  bool is_string;
} metadata_field;

#define STR(f) {#f, offsetof(lw_metadata, f), true}
#define INT(f) {#f, offsetof(lw_metadata, f), false}
static const metadata_field metadata_fields[] = {
    STR(op_type),
    STR(op_name),
    STR(source_file),
    INT(source_line),
    INT(source_end_line),
    INT(source_column),
    INT(source_end_column),
    INT(stack_frame_id),
    INT(size_of_generated_code_bytes),
    INT(size_of_memory_working_set_bytes),
    STR(deduplicated_name),
    STR(scheduling_name),
    {"metadata_payload", offsetof(lw_metadata, payload), true},
};
#undef STR
#undef INT

enum { N_METADATA = sizeof metadata_fields / sizeof metadata_fields[0] };

static bool unknown_metadata(lw_text_parser *ps) {
  const char *names[N_METADATA + 1];
  for (int i = 0; i < N_METADATA; i++) names[i] = metadata_fields[i].name;
  names[N_METADATA] = "profile_type";
  const lw_token *t = &ps->lx.tok;
  char *word = lw_arena_strdup(ps->arena, t->text, t->len);
  const char *near = lw_nearest_name(word, names, N_METADATA + 1);
  if (near)
    return lw_text_error(ps, "metadata has no field '%s'; did you mean '%s'?",
                         word, near);
  return lw_text_error(ps, "metadata has no field '%s'", word);
}

static bool metadata_field_value(lw_text_parser *ps, lw_metadata *out) {
  if (attr_is(&ps->lx.tok, "profile_type")) {
    lw_lex(&ps->lx);
    return lw_text_ints(ps, TOK_LBRACE, TOK_COMMA, TOK_RBRACE,
                        &out->n_profile_types, &out->profile_types);
  }
  for (int i = 0; i < N_METADATA; i++) {
    const metadata_field *f = &metadata_fields[i];
    if (!attr_is(&ps->lx.tok, f->name)) continue;
    lw_lex(&ps->lx);
    void *p = (char *)out + f->offset;
    if (f->is_string) return lw_text_string(ps, p);
    lw_token at = ps->lx.tok;
    if (!lw_text_int(ps, p)) return false;
    if (at.i != (int32_t)at.i)
      return lw_text_error_at(ps, &at, "this does not fit 32 bits");
    return true;
  }
  return unknown_metadata(ps);
}

bool lw_text_metadata(lw_text_parser *ps, lw_metadata *out) {
  *out = (lw_metadata){0};
  if (!lw_text_expect(ps, TOK_LBRACE, "before metadata")) return false;
  while (ps->lx.tok.kind != TOK_RBRACE) {
    (void)lw_text_eat(ps, TOK_COMMA);
    if (ps->lx.tok.kind != TOK_ATTR)
      return lw_text_error(ps, "expected a field of the metadata, found %s",
                           lw_tok_describe(&ps->lx.tok));
    if (!metadata_field_value(ps, out)) return false;
  }
  lw_lex(&ps->lx);
  return true;
}

/* {..} or {{..}, {..}} */
static bool metadata_list(lw_text_parser *ps, lw_sharding *sh) {
  LW_VEC(lw_metadata) v = {0};
  bool many =
      ps->lx.tok.kind == TOK_LBRACE && lw_lex_peek(&ps->lx) == TOK_LBRACE;
  bool ok = true;
  if (many) lw_lex(&ps->lx);
  do {
    lw_metadata m;
    ok = lw_text_metadata(ps, &m);
    lw_vec_push(&v, m);
  } while (ok && many && lw_text_eat(ps, TOK_COMMA));
  if (ok && many) ok = lw_text_expect(ps, TOK_RBRACE, "after metadata");
  sh->n_metadata = (int32_t)v.len;
  sh->metadata = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok;
}

/* ---- tile assignments: [2,1]<=[2]T(0) or [2,1]0,1 ---- */

static bool perm_ok(const int64_t *v, int32_t n) {
  for (int32_t i = 0; i < n; i++)
    for (int32_t j = 0; j <= i; j++)
      if (v[i] < 0 || v[i] >= n || (j < i && v[i] == v[j])) return false;
  return true;
}

/* [4]T(..) behind <=. perm is NULL when it is not written. */
static bool iota(lw_text_parser *ps, int32_t *n, const int64_t **dims,
                 const int32_t **perm) {
  *perm = NULL;
  lw_token at = ps->lx.tok;
  if (!lw_text_ints(ps, TOK_LSQUARE, TOK_COMMA, TOK_RSQUARE, n, dims))
    return false;
  if (*n < 1 || *n > LW_MAX_RANK)
    return lw_text_error_at(ps, &at, "expected 1 to %d dimensions here",
                            LW_MAX_RANK);
  if (!lw_text_eat_word(ps, "T")) {
    if (*n == 1) return true;
    return lw_text_error(ps, "expected T(...), the order of the dimensions");
  }
  int32_t m;
  const int64_t *order;
  at = ps->lx.tok;
  if (!lw_text_ints(ps, TOK_LPAREN, TOK_COMMA, TOK_RPAREN, &m, &order))
    return false;
  if (m != *n || !perm_ok(order, m))
    return lw_text_error_at(ps, &at, "T(...) must permute %d dimensions", *n);
  int32_t *p = LW_NEW_ARRAY(ps->arena, int32_t, m);
  for (int32_t i = 0; i < m; i++) p[i] = (int32_t)order[i];
  *perm = p;
  return true;
}

/* The product of positive extents; -1 when one is not, or on overflow. */
static int64_t product(const int64_t *v, int32_t n) {
  int64_t p = 1;
  for (int32_t i = 0; i < n; i++)
    if (v[i] < 1 || __builtin_mul_overflow(p, v[i], &p)) return -1;
  return p;
}

static bool device_list(lw_text_parser *ps, lw_sharding *sh) {
  LW_VEC(int64_t) v = {0};
  bool ok = true;
  do {
    int64_t d = 0;
    ok = lw_text_int(ps, &d);
    lw_vec_push(&v, d);
  } while (ok && lw_text_eat(ps, TOK_COMMA));
  sh->n_devices = (int32_t)v.len;
  sh->devices = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok;
}

static bool tile_assignment(lw_text_parser *ps, lw_sharding *sh) {
  lw_token at = ps->lx.tok;
  if (!lw_text_ints(ps, TOK_LSQUARE, TOK_COMMA, TOK_RSQUARE, &sh->n_tile_dims,
                    &sh->tile_dims))
    return false;
  int64_t tiles = product(sh->tile_dims, sh->n_tile_dims);
  if (tiles < 0)
    return lw_text_error_at(ps, &at, "the tile dimensions must be positive");
  int64_t devices;
  if (lw_text_eat(ps, TOK_LEQ)) {
    if (!iota(ps, &sh->n_iota_dims, &sh->iota_dims, &sh->iota_perm))
      return false;
    devices = product(sh->iota_dims, sh->n_iota_dims);
  } else {
    if (!device_list(ps, sh)) return false;
    devices = sh->n_devices;
  }
  if (devices != tiles)
    return lw_text_error_at(ps, &at, "%lld tiles, but %lld devices",
                            (long long)tiles, (long long)devices);
  return true;
}

/* ---- shardings ---- */

static const struct {
  const char *word;
  int type;
} sharding_words[] = {{"replicated", LW_SH_REPLICATED},
                      {"maximal", LW_SH_MAXIMAL},
                      {"manual", LW_SH_MANUAL},
                      {"unknown", LW_SH_UNKNOWN},
                      {"unreduced", LW_SH_UNREDUCED}};

/* -1 when the current token is none of them. */
static int sharding_word(lw_text_parser *ps) {
  for (int i = 0; i < 5; i++)
    if (lw_text_eat_word(ps, sharding_words[i].word))
      return sharding_words[i].type;
  return -1;
}

static bool last_tile_dims(lw_text_parser *ps, lw_sharding *sh) {
  LW_VEC(int32_t) v = {0};
  bool ok = lw_text_expect(ps, TOK_LBRACE, "after last_tile_dims=");
  while (ok && ps->lx.tok.kind != TOK_RBRACE) {
    int type = sharding_word(ps);
    if (type < 0) ok = lw_text_error(ps, "expected a kind of sharding");
    lw_vec_push(&v, type);
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  sh->n_last_tile_types = (int32_t)v.len;
  sh->last_tile_types =
      lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok && lw_text_expect(ps, TOK_RBRACE, "after last_tile_dims");
}

typedef struct {
  bool typed, tiled, device;
} sharding_seen;

static bool sharding_attr(lw_text_parser *ps, lw_sharding *sh,
                          sharding_seen *seen) {
  lw_token t = ps->lx.tok;
  lw_lex(&ps->lx);
  if (attr_is(&t, "device")) {
    seen->device = true;
    return lw_text_int(ps, &sh->maximal_device);
  }
  if (attr_is(&t, "devices")) {
    seen->tiled = true;
    return tile_assignment(ps, sh);
  }
  if (attr_is(&t, "metadata")) return metadata_list(ps, sh);
  if (attr_is(&t, "last_tile_dims")) return last_tile_dims(ps, sh);
  return lw_text_error_at(ps, &t,
                          "a sharding has device=, devices=, "
                          "last_tile_dims= and metadata=, not '%.*s='",
                          (int)t.len, t.text);
}

static bool sharding_item(lw_text_parser *ps, lw_sharding *sh,
                          sharding_seen *seen) {
  if (ps->lx.tok.kind == TOK_ATTR) return sharding_attr(ps, sh, seen);
  if (lw_text_eat_word(ps, "last_tile_dim_replicate")) {
    sh->replicate_on_last_tile_dim = true;
    return true;
  }
  if (lw_text_eat_word(ps, "shard_as")) {
    sh->group = LW_SHARD_AS;
    return lw_text_int(ps, &sh->group_id);
  }
  if (lw_text_eat_word(ps, "shard_like")) {
    sh->group = LW_SHARD_LIKE;
    return lw_text_int(ps, &sh->group_id);
  }
  int type = sharding_word(ps);
  if (type < 0)
    return lw_text_error(ps, "unexpected %s in a sharding",
                         lw_tok_describe(&ps->lx.tok));
  sh->type = type;
  seen->typed = true;
  return true;
}

/* Axis names in single quotes, as XLA prints them; up to the metadata. */
static const char *single_quotes(lw_text_parser *ps, const char *s) {
  char *t = lw_arena_strdup(ps->arena, s, strlen(s));
  char *end = strstr(t, "metadata=");
  for (char *p = t; *p && p != end; p++)
    if (*p == '"') *p = '\'';
  return t;
}

static bool named_sharding(lw_text_parser *ps, lw_sharding *sh) {
  sh->type = LW_SH_NAMED;
  if (!lw_text_raw_braces(ps, &sh->named_text)) return false;
  sh->named_text = single_quotes(ps, sh->named_text);
  return true;
}

static bool single_sharding(lw_text_parser *ps, lw_sharding *sh) {
  lw_lexer ahead = ps->lx;
  *sh = (lw_sharding){.type = LW_SH_TILED};
  if (ps->lx.tok.kind != TOK_LBRACE)
    return lw_text_error(ps, "expected '{' before a sharding");
  lw_lex(&ahead);
  if (lw_tok_is(&ahead.tok, "mesh") || lw_tok_is(&ahead.tok, "maximal_mesh"))
    return named_sharding(ps, sh);
  lw_token at = ps->lx.tok;
  sharding_seen seen = {0};
  lw_lex(&ps->lx);
  while (ps->lx.tok.kind != TOK_RBRACE)
    if (!sharding_item(ps, sh, &seen)) return false;
  lw_lex(&ps->lx);
  if (!seen.typed && !seen.tiled)
    return lw_text_error_at(ps, &at, "a tiled sharding needs devices=");
  if (seen.typed && seen.tiled)
    return lw_text_error_at(ps, &at, "this sharding cannot have devices=");
  if (sh->type == LW_SH_MAXIMAL && !seen.device)
    return lw_text_error_at(ps, &at, "a maximal sharding needs device=");
  return true;
}

static bool tuple_sharding(lw_text_parser *ps, lw_sharding *sh) {
  LW_VEC(const lw_sharding *) v = {0};
  bool ok = true;
  lw_lex(&ps->lx);
  *sh = (lw_sharding){.type = LW_SH_TUPLE};
  while (ok && ps->lx.tok.kind != TOK_RBRACE) {
    lw_sharding *e = LW_NEW(ps->arena, lw_sharding);
    ok = single_sharding(ps, e);
    lw_vec_push(&v, e);
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  sh->n_elems = (int32_t)v.len;
  sh->elems = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok && lw_text_expect(ps, TOK_RBRACE, "after a tuple sharding");
}

bool lw_text_sharding(lw_text_parser *ps, const lw_sharding **out) {
  lw_sharding *sh = LW_NEW(ps->arena, lw_sharding);
  *out = sh;
  lw_tok_kind next =
      ps->lx.tok.kind == TOK_LBRACE ? lw_lex_peek(&ps->lx) : TOK_END;
  if (next == TOK_LBRACE || next == TOK_RBRACE) return tuple_sharding(ps, sh);
  return single_sharding(ps, sh);
}

/* ---- replica groups ---- */

static bool group_lists(lw_text_parser *ps, lw_replica_groups *g) {
  LW_VEC(int32_t) sizes = {0};
  LW_VEC(int64_t) ids = {0};
  bool ok = true;
  lw_lex(&ps->lx); /* '{' */
  while (ok && ps->lx.tok.kind != TOK_RBRACE) {
    int32_t n = 0;
    const int64_t *v = NULL;
    ok = lw_text_ints(ps, TOK_LBRACE, TOK_COMMA, TOK_RBRACE, &n, &v);
    for (int32_t i = 0; ok && i < n; i++) lw_vec_push(&ids, v[i]);
    lw_vec_push(&sizes, n);
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  g->kind = LW_RG_LISTS;
  g->n_groups = (int32_t)sizes.len;
  g->group_sizes =
      lw_arena_memdup(ps->arena, sizes.data, sizes.len * sizeof *sizes.data);
  g->ids = lw_arena_memdup(ps->arena, ids.data, ids.len * sizeof *ids.data);
  lw_vec_free(&sizes);
  lw_vec_free(&ids);
  return ok && lw_text_expect(ps, TOK_RBRACE, "after replica groups");
}

static bool group_iota(lw_text_parser *ps, lw_replica_groups *g) {
  lw_sharding sh = {0};
  lw_token at = ps->lx.tok;
  if (!tile_assignment(ps, &sh)) return false;
  if (!sh.n_iota_dims || sh.n_tile_dims != 2)
    return lw_text_error_at(ps, &at, "expected replica groups like [2,4]<=[8]");
  g->kind = LW_RG_IOTA;
  g->iota_groups = sh.tile_dims[0];
  g->iota_group_size = sh.tile_dims[1];
  g->n_reshape = sh.n_iota_dims;
  g->reshape_dims = sh.iota_dims;
  g->transpose_perm = sh.iota_perm;
  return true;
}

/* mesh["a"=2,"b"=4], device_ids=(...) {"a"}: the text up to the closing brace
 * of its axis list. */
static bool group_mesh(lw_text_parser *ps, lw_replica_groups *g) {
  lw_buf b = {0};
  bool ok = true;
  lw_lex(&ps->lx);
  lw_buf_str(&b, "mesh");
  while (ok && ps->lx.tok.kind != TOK_LBRACE) {
    const lw_token *t = &ps->lx.tok;
    if (t->kind == TOK_END || t->kind == TOK_ERROR) {
      ok = lw_text_error(ps, "expected the axes of the mesh in braces");
    } else {
      lw_buf_add(&b, t->start, (size_t)(ps->lx.p - t->start));
      lw_lex(&ps->lx);
    }
  }
  const char *axes = NULL;
  ok = ok && lw_text_raw_braces(ps, &axes);
  if (ok) {
    lw_buf_chr(&b, ' ');
    lw_buf_str(&b, axes);
    g->kind = LW_RG_MESH;
    g->mesh_text = single_quotes(ps, lw_buf_cstr(&b));
  }
  lw_buf_free(&b);
  return ok;
}

bool lw_text_replica_groups(lw_text_parser *ps, const lw_replica_groups **out) {
  lw_replica_groups *g = LW_NEW(ps->arena, lw_replica_groups);
  *out = g;
  if (ps->lx.tok.kind == TOK_LBRACE) return group_lists(ps, g);
  if (lw_tok_is(&ps->lx.tok, "mesh")) return group_mesh(ps, g);
  return group_iota(ps, g);
}

/* ---- frontend_attributes={key="value",other={"json":1}} ---- */

static int by_key(const void *a, const void *b) {
  return strcmp(((const lw_kv *)a)->key, ((const lw_kv *)b)->key);
}

bool lw_text_frontend(lw_text_parser *ps, lw_frontend_attrs *out) {
  LW_VEC(lw_kv) v = {0};
  bool ok = lw_text_expect(ps, TOK_LBRACE, "before frontend attributes");
  while (ok && ps->lx.tok.kind != TOK_RBRACE) {
    const lw_token t = ps->lx.tok;
    if (t.kind != TOK_ATTR) {
      ok = lw_text_error(ps, "expected key=\"value\"");
      break;
    }
    lw_kv kv = {lw_context_str(ps->ctx, t.text, t.len), NULL};
    lw_lex(&ps->lx);
    ok = lw_text_string_or_braces(ps, &kv.value);
    lw_vec_push(&v, kv);
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  ok = ok && lw_text_expect(ps, TOK_RBRACE, "after frontend attributes");
  if (ok && v.len) {
    /* A repeated key: the last one counts, as in XLA. */
    size_t n = 0;
    for (size_t i = 0; i < v.len; i++) {
      size_t j = i + 1;
      while (j < v.len && strcmp(v.data[i].key, v.data[j].key)) j++;
      if (j == v.len) v.data[n++] = v.data[i];
    }
    qsort(v.data, n, sizeof *v.data, by_key);
    out->n = (int32_t)n;
    out->v = lw_arena_memdup(ps->arena, v.data, n * sizeof *v.data);
  }
  lw_vec_free(&v);
  return ok;
}
