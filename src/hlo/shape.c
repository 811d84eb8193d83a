/* Interning: a shape's key is the hash of its fields, with layouts and element
 * shapes by pointer since they are interned before it. Buckets are chains
 * through side records, so that lw_shape itself stays plain data. */
#include "hlo/shape.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

typedef struct entry {
  struct entry *next;
  const void *value;
} entry;

struct lw_context {
  lw_arena *arena;
  lw_intern *strings;
  lw_map shapes, layouts; /* hash -> entry chain */
};

lw_context *lw_context_new(void) {
  lw_context *ctx = calloc(1, sizeof *ctx);
  if (!ctx) lw_oom(sizeof *ctx);
  ctx->arena = lw_arena_new();
  ctx->strings = lw_intern_new(ctx->arena);
  return ctx;
}

void lw_context_free(lw_context *ctx) {
  if (!ctx) return;
  lw_map_free(&ctx->shapes);
  lw_map_free(&ctx->layouts);
  lw_intern_free(ctx->strings);
  lw_arena_free(ctx->arena);
  free(ctx);
}

lw_arena *lw_context_arena(lw_context *ctx) { return ctx->arena; }

const char *lw_context_str(lw_context *ctx, const char *s, size_t len) {
  return lw_intern_str(ctx->strings, s, len);
}

const char *lw_context_cstr(lw_context *ctx, const char *s) {
  return lw_intern_str(ctx->strings, s, strlen(s));
}

/* ---- layouts ---- */

static uint64_t layout_hash(const lw_layout *l) {
  uint64_t h = lw_hash_mix(1, (uint64_t)l->rank);
  h = lw_hash_bytes(l->minor_to_major, (size_t)l->rank * 8, h);
  for (int i = 0; i < l->n_tiles; i++)
    h = lw_hash_bytes(l->tiles[i].dims, (size_t)l->tiles[i].rank * 8, h);
  h = lw_hash_mix(h, (uint64_t)l->index_type << 8 | l->pointer_type);
  h = lw_hash_mix(h, (uint64_t)l->tail_padding_elements);
  h = lw_hash_mix(h, (uint64_t)l->element_size_bits);
  h = lw_hash_mix(h, (uint64_t)l->memory_space);
  for (int i = 0; i < l->n_splits; i++)
    h = lw_hash_bytes(l->splits[i].indices, (size_t)l->splits[i].n * 8,
                      h ^ (uint64_t)l->splits[i].dim);
  h = lw_hash_mix(h, (uintptr_t)l->physical_shape);
  return lw_hash_mix(h, (uint64_t)l->metadata_prefix_bytes);
}

static bool same_i64s(const int64_t *a, const int64_t *b, int32_t n) {
  return n == 0 || !memcmp(a, b, (size_t)n * sizeof *a);
}

static bool same_tiles(const lw_layout *a, const lw_layout *b) {
  if (a->n_tiles != b->n_tiles) return false;
  for (int i = 0; i < a->n_tiles; i++)
    if (a->tiles[i].rank != b->tiles[i].rank ||
        !same_i64s(a->tiles[i].dims, b->tiles[i].dims, a->tiles[i].rank))
      return false;
  return true;
}

static bool same_splits(const lw_layout *a, const lw_layout *b) {
  if (a->n_splits != b->n_splits) return false;
  for (int i = 0; i < a->n_splits; i++)
    if (a->splits[i].dim != b->splits[i].dim ||
        a->splits[i].n != b->splits[i].n ||
        !same_i64s(a->splits[i].indices, b->splits[i].indices, a->splits[i].n))
      return false;
  return true;
}

static bool layout_equal(const lw_layout *a, const lw_layout *b) {
  return a->rank == b->rank &&
         same_i64s(a->minor_to_major, b->minor_to_major, a->rank) &&
         same_tiles(a, b) && a->n_levels == b->n_levels &&
         (!a->n_levels || !strcmp(a->dim_levels, b->dim_levels)) &&
         a->index_type == b->index_type && a->pointer_type == b->pointer_type &&
         a->tail_padding_elements == b->tail_padding_elements &&
         a->element_size_bits == b->element_size_bits &&
         a->memory_space == b->memory_space && same_splits(a, b) &&
         a->physical_shape == b->physical_shape &&
         a->metadata_prefix_bytes == b->metadata_prefix_bytes;
}

static const int64_t *dup_i64s(lw_context *ctx, const int64_t *v, int32_t n) {
  return lw_arena_memdup(ctx->arena, v, (size_t)n * sizeof *v);
}

static lw_layout *layout_copy(lw_context *ctx, const lw_layout *p) {
  lw_layout *l = lw_arena_memdup(ctx->arena, p, sizeof *p);
  l->minor_to_major = dup_i64s(ctx, p->minor_to_major, p->rank);
  lw_tile *tiles = LW_NEW_ARRAY(ctx->arena, lw_tile, p->n_tiles);
  for (int i = 0; i < p->n_tiles; i++)
    tiles[i] = (lw_tile){p->tiles[i].rank,
                         dup_i64s(ctx, p->tiles[i].dims, p->tiles[i].rank)};
  l->tiles = tiles;
  if (p->n_levels)
    l->dim_levels =
        lw_arena_strdup(ctx->arena, p->dim_levels, strlen(p->dim_levels));
  lw_split_config *s = LW_NEW_ARRAY(ctx->arena, lw_split_config, p->n_splits);
  for (int i = 0; i < p->n_splits; i++) {
    s[i] = p->splits[i];
    s[i].indices = dup_i64s(ctx, s[i].indices, s[i].n);
  }
  l->splits = s;
  return l;
}

const lw_layout *lw_layout_intern(lw_context *ctx, const lw_layout *proto) {
  uint64_t *slot = lw_map_put(&ctx->layouts, layout_hash(proto));
  for (entry *e = (entry *)(uintptr_t)*slot; e; e = e->next)
    if (layout_equal(e->value, proto)) return e->value;
  entry *e = LW_NEW(ctx->arena, entry);
  e->next = (entry *)(uintptr_t)*slot;
  e->value = layout_copy(ctx, proto);
  *slot = (uintptr_t)e;
  return e->value;
}

const lw_layout *lw_layout_descending(lw_context *ctx, int32_t rank) {
  int64_t order[LW_MAX_RANK];
  LW_ASSERT(rank <= LW_MAX_RANK);
  for (int32_t i = 0; i < rank; i++) order[i] = rank - 1 - i;
  lw_layout l = {
      .rank = rank, .minor_to_major = order, .tail_padding_elements = 1};
  return lw_layout_intern(ctx, &l);
}

bool lw_layout_is_descending(const lw_layout *l) {
  if (!l) return true;
  if (l->n_tiles) return false;
  for (int32_t i = 0; i < l->rank; i++)
    if (l->minor_to_major[i] != l->rank - 1 - i) return false;
  return true;
}

/* ---- shapes ---- */

static uint64_t shape_hash(const lw_shape *s) {
  uint64_t h = lw_hash_mix((uint64_t)s->type, (uint64_t)s->rank);
  h = lw_hash_bytes(s->dims, (size_t)s->rank * 8, h);
  if (s->dynamic) h = lw_hash_bytes(s->dynamic, (size_t)s->rank, h);
  h = lw_hash_mix(h, (uintptr_t)s->layout);
  return lw_hash_bytes(s->elems, (size_t)s->n_elems * sizeof *s->elems, h);
}

static bool shape_equal(const lw_shape *a, const lw_shape *b) {
  return a->type == b->type && a->rank == b->rank &&
         same_i64s(a->dims, b->dims, a->rank) && !a->dynamic == !b->dynamic &&
         (!a->dynamic || !memcmp(a->dynamic, b->dynamic, (size_t)a->rank)) &&
         a->layout == b->layout && a->n_elems == b->n_elems &&
         (!a->n_elems ||
          !memcmp(a->elems, b->elems, (size_t)a->n_elems * sizeof *a->elems));
}

static int64_t count_elements(const lw_shape *s) {
  if (!lw_shape_is_array(s)) return 0;
  int64_t n = 1;
  bool huge = false;
  for (int32_t i = 0; i < s->rank; i++) {
    if (s->dims[i] == 0) return 0;
    if (s->dims[i] < 0 || __builtin_mul_overflow(n, s->dims[i], &n))
      huge = true;
  }
  return huge ? INT64_MAX : n;
}

/* The twin of the same content without any layout; s itself if it has none. */
static const lw_shape *make_twin(lw_context *ctx, lw_shape *s) {
  bool same = !s->layout;
  for (int32_t i = 0; i < s->n_elems; i++)
    if (s->elems[i]->no_layout != s->elems[i]) same = false;
  if (same) return s;
  lw_shape bare = *s;
  bare.layout = NULL;
  const lw_shape **elems =
      LW_NEW_ARRAY(ctx->arena, const lw_shape *, s->n_elems);
  for (int32_t i = 0; i < s->n_elems; i++) elems[i] = s->elems[i]->no_layout;
  bare.elems = elems;
  return lw_shape_intern(ctx, &bare);
}

const lw_shape *lw_shape_intern(lw_context *ctx, const lw_shape *proto) {
  lw_shape key = *proto;
  if (key.dynamic) { /* all-static flags are the same as none */
    bool any = false;
    for (int32_t i = 0; i < key.rank; i++) any |= key.dynamic[i];
    if (!any) key.dynamic = NULL;
  }
  uint64_t *slot = lw_map_put(&ctx->shapes, shape_hash(&key));
  for (entry *e = (entry *)(uintptr_t)*slot; e; e = e->next)
    if (shape_equal(e->value, &key)) return e->value;
  lw_shape *s = lw_arena_memdup(ctx->arena, &key, sizeof key);
  s->dims = dup_i64s(ctx, key.dims, key.rank);
  if (key.dynamic)
    s->dynamic = lw_arena_memdup(ctx->arena, key.dynamic, (size_t)key.rank);
  s->elems = lw_arena_memdup(ctx->arena, key.elems,
                             (size_t)key.n_elems * sizeof *key.elems);
  s->elements = count_elements(s);
  entry *e = LW_NEW(ctx->arena, entry);
  e->next = (entry *)(uintptr_t)*slot;
  e->value = s;
  *slot = (uintptr_t)e;
  s->no_layout = make_twin(ctx, s);
  return s;
}

const lw_shape *lw_shape_array(lw_context *ctx, lw_prim type, int32_t rank,
                               const int64_t *dims) {
  lw_shape s = {.type = type, .rank = rank, .dims = dims};
  return lw_shape_intern(ctx, &s);
}

const lw_shape *lw_shape_tuple(lw_context *ctx, int32_t n,
                               const lw_shape *const *elems) {
  lw_shape s = {.type = LW_TUPLE, .n_elems = n, .elems = elems};
  return lw_shape_intern(ctx, &s);
}

const lw_shape *lw_shape_other(lw_context *ctx, lw_prim type) {
  lw_shape s = {.type = type};
  return lw_shape_intern(ctx, &s);
}

const lw_shape *lw_shape_buffer(lw_context *ctx, const lw_shape *inner) {
  lw_shape s = {.type = LW_BUFFER, .n_elems = 1, .elems = &inner};
  return lw_shape_intern(ctx, &s);
}

const lw_shape *lw_shape_with_layout(lw_context *ctx, const lw_shape *s,
                                     const lw_layout *layout) {
  if (s->layout == layout) return s;
  lw_shape t = *s;
  t.layout = layout;
  return lw_shape_intern(ctx, &t);
}

const lw_shape *lw_shape_with_type(lw_context *ctx, const lw_shape *s,
                                   lw_prim type) {
  if (s->type == type) return s;
  lw_shape t = *s;
  t.type = type;
  return lw_shape_intern(ctx, &t);
}

const lw_shape *lw_shape_fill_layouts(lw_context *ctx, const lw_shape *s) {
  if (lw_shape_is_array(s))
    return s->layout ? s
                     : lw_shape_with_layout(ctx, s,
                                            lw_layout_descending(ctx, s->rank));
  if (!s->n_elems) return s;
  const lw_shape **elems = calloc((size_t)s->n_elems, sizeof *elems);
  if (!elems) lw_oom((size_t)s->n_elems * sizeof *elems);
  for (int32_t i = 0; i < s->n_elems; i++)
    elems[i] = lw_shape_fill_layouts(ctx, s->elems[i]);
  lw_shape t = *s;
  t.elems = elems;
  const lw_shape *r = lw_shape_intern(ctx, &t);
  free(elems);
  return r;
}

bool lw_shape_same_dims(const lw_shape *a, const lw_shape *b) {
  return a->rank == b->rank && same_i64s(a->dims, b->dims, a->rank);
}

int64_t lw_shape_bytes(const lw_shape *s) {
  int64_t n = 0;
  if (lw_shape_is_array(s)) {
    if (__builtin_mul_overflow(s->elements, lw_prim_bytes(s->type), &n))
      return INT64_MAX;
    return n;
  }
  for (int32_t i = 0; i < s->n_elems; i++)
    if (__builtin_add_overflow(n, lw_shape_bytes(s->elems[i]), &n))
      return INT64_MAX;
  return n;
}

int64_t lw_shape_leaf_count(const lw_shape *s) {
  if (!lw_shape_is_tuple(s)) return 1;
  int64_t n = 0;
  for (int32_t i = 0; i < s->n_elems; i++)
    n += lw_shape_leaf_count(s->elems[i]);
  return n;
}

const lw_shape *lw_shape_leaf(const lw_shape *s, int64_t k) {
  while (lw_shape_is_tuple(s)) {
    int32_t i = 0;
    for (;; i++) {
      LW_ASSERT(i < s->n_elems);
      int64_t n = lw_shape_leaf_count(s->elems[i]);
      if (k < n) break;
      k -= n;
    }
    s = s->elems[i];
  }
  return s;
}

bool lw_shape_has_dynamic(const lw_shape *s) {
  if (s->dynamic) return true;
  for (int32_t i = 0; i < s->n_elems; i++)
    if (lw_shape_has_dynamic(s->elems[i])) return true;
  return false;
}

void lw_shape_strides(const lw_shape *s, int64_t *strides) {
  int64_t n = 1;
  for (int32_t d = s->rank; d-- > 0;) {
    strides[d] = n;
    /* Wraps where another dim is 0: such strides are never used. */
    n = (int64_t)((uint64_t)n * (uint64_t)s->dims[d]);
  }
}

/* ---- printing ---- */

static void print_tiles(lw_buf *b, const lw_layout *l) {
  if (!l->n_tiles) return;
  lw_buf_chr(b, 'T');
  for (int i = 0; i < l->n_tiles; i++) {
    lw_buf_chr(b, '(');
    for (int j = 0; j < l->tiles[i].rank; j++) {
      if (j) lw_buf_chr(b, ',');
      if (l->tiles[i].dims[j] == LW_TILE_COMBINE)
        lw_buf_chr(b, '*');
      else
        lw_buf_i64(b, l->tiles[i].dims[j]);
    }
    lw_buf_chr(b, ')');
  }
}

static void print_splits(lw_buf *b, const lw_layout *l) {
  if (!l->n_splits) return;
  lw_buf_str(b, "SC");
  for (int i = 0; i < l->n_splits; i++) {
    lw_buf_printf(b, "(%lld:", (long long)l->splits[i].dim);
    for (int j = 0; j < l->splits[i].n; j++) {
      if (j) lw_buf_chr(b, ',');
      lw_buf_i64(b, l->splits[i].indices[j]);
    }
    lw_buf_chr(b, ')');
  }
}

/* What follows the ':' in a layout, in XLA's order. */
static void print_layout_extras(lw_buf *b, const lw_layout *l) {
  if (l->n_levels) lw_buf_printf(b, "D(%s)", l->dim_levels);
  print_tiles(b, l);
  if (l->tail_padding_elements > 1)
    lw_buf_printf(b, "L(%lld)", (long long)l->tail_padding_elements);
  if (l->index_type) lw_buf_printf(b, "#(%s)", lw_prim_name(l->index_type));
  if (l->pointer_type) lw_buf_printf(b, "*(%s)", lw_prim_name(l->pointer_type));
  if (l->element_size_bits)
    lw_buf_printf(b, "E(%lld)", (long long)l->element_size_bits);
  if (l->memory_space) lw_buf_printf(b, "S(%lld)", (long long)l->memory_space);
  print_splits(b, l);
  if (l->physical_shape) {
    lw_buf_str(b, "P(");
    lw_shape_print(b, l->physical_shape, true);
    lw_buf_chr(b, ')');
  }
  if (l->metadata_prefix_bytes)
    lw_buf_printf(b, "M(%lld)", (long long)l->metadata_prefix_bytes);
}

void lw_layout_print(lw_buf *b, const lw_layout *l) {
  lw_buf_chr(b, '{');
  for (int32_t i = 0; i < l->rank; i++) {
    if (i) lw_buf_chr(b, ',');
    lw_buf_i64(b, l->minor_to_major[i]);
  }
  lw_buf extras = {0};
  print_layout_extras(&extras, l);
  if (extras.len) {
    lw_buf_chr(b, ':');
    lw_buf_add(b, extras.data, extras.len);
  }
  lw_buf_free(&extras);
  lw_buf_chr(b, '}');
}

static void print_array(lw_buf *b, const lw_shape *s, bool with_layout) {
  lw_buf_str(b, lw_prim_name(s->type));
  lw_buf_chr(b, '[');
  for (int32_t i = 0; i < s->rank; i++) {
    if (i) lw_buf_chr(b, ',');
    if (s->dims[i] == LW_UNBOUNDED) {
      lw_buf_chr(b, '?');
      continue;
    }
    if (s->dynamic && s->dynamic[i]) lw_buf_str(b, "<=");
    lw_buf_i64(b, s->dims[i]);
  }
  lw_buf_chr(b, ']');
  if (!with_layout || !s->layout) return;
  if (s->rank == 0) { /* a scalar's layout prints only when it says something */
    lw_buf extras = {0};
    print_layout_extras(&extras, s->layout);
    bool any = extras.len != 0;
    lw_buf_free(&extras);
    if (!any) return;
  }
  lw_layout_print(b, s->layout);
}

/* XLA marks every fifth element of a tuple shape with a comment. */
static void print_tuple(lw_buf *b, const lw_shape *s, bool with_layout) {
  lw_buf_chr(b, '(');
  for (int32_t i = 0; i < s->n_elems; i++) {
    if (i) lw_buf_str(b, ", ");
    if (i && i % 5 == 0) lw_buf_printf(b, "/*index=%d*/", i);
    lw_shape_print(b, s->elems[i], with_layout);
  }
  lw_buf_chr(b, ')');
}

void lw_shape_print(lw_buf *b, const lw_shape *s, bool with_layout) {
  if (lw_shape_is_tuple(s)) {
    print_tuple(b, s, with_layout);
  } else if (s->type == LW_BUFFER) {
    lw_buf_str(b, "b(");
    lw_shape_print(b, s->elems[0], with_layout);
    lw_buf_chr(b, ')');
  } else {
    print_array(b, s, with_layout);
  }
}

const char *lw_shape_str(lw_context *ctx, const lw_shape *s) {
  lw_buf b = {0};
  lw_shape_print(&b, s, true);
  const char *r = lw_arena_strdup(ctx->arena, lw_buf_cstr(&b), b.len);
  lw_buf_free(&b);
  return r;
}
