/* The small messages: shapes and layouts, shardings, metadata, frontend
 * attributes. Each is read and written next to each other, so that field
 * numbers stand in pairs. */
#include <stdlib.h>
#include <string.h>

#include "reader/proto_impl.h"

/* ---- access with errors ---- */

void proto_fail(proto_in *in, pb_msg at, const char *fmt, ...) {
  if (in->err) return;
  lw_buf b = {0};
  va_list ap;
  va_start(ap, fmt);
  lw_buf_vprintf(&b, fmt, ap);
  va_end(ap);
  in->err =
      lw_error(LW_INVALID_ARGUMENT, "at byte %zu: %s", at.at, lw_buf_cstr(&b));
  lw_buf_free(&b);
}

static pb_msg checked(proto_in *in, pb_msg m) {
  if (in->err) return (pb_msg){0};
  in->err = pb_check(m);
  return in->err ? (pb_msg){0} : m;
}

pb_msg proto_sub(proto_in *in, pb_msg m, uint32_t number) {
  pb_msg s = pb_bytes(m, number);
  return s.p ? checked(in, s) : s;
}

bool proto_next(proto_in *in, pb_iter *it, uint32_t number, pb_msg *out) {
  if (in->err || !pb_each(it, number, PB_LEN)) return false;
  *out = checked(in, it->bytes);
  return !in->err;
}

const char *proto_str_or(proto_in *in, pb_msg m, uint32_t number,
                         const char *dflt) {
  pb_msg s = pb_bytes(m, number);
  if (!pb_size(s)) return dflt;
  return lw_context_str(in->ctx, (const char *)s.p,
                        strnlen((const char *)s.p, pb_size(s)));
}

const char *proto_str(proto_in *in, pb_msg m, uint32_t number) {
  return proto_str_or(in, m, number, NULL);
}

const int64_t *proto_i64s(proto_in *in, pb_msg m, uint32_t number, int32_t *n) {
  pb_i64s v = {0};
  pb_get_i64s(m, number, &v);
  if (v.len > INT32_MAX) {
    proto_fail(in, m, "a list is too long");
    v.len = 0;
  }
  *n = (int32_t)v.len;
  int64_t *copy = lw_arena_memdup(in->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return copy;
}

const int32_t *proto_i32s(proto_in *in, pb_msg m, uint32_t number, int32_t *n) {
  const int64_t *v = proto_i64s(in, m, number, n);
  int32_t *w = LW_NEW_ARRAY(in->arena, int32_t, *n);
  for (int32_t i = 0; i < *n; i++) w[i] = (int32_t)v[i];
  return w;
}

const char *proto_payload(proto_in *in, pb_msg m, uint32_t number) {
  pb_msg p = proto_sub(in, m, number);
  if (!pb_has(p, 2)) return proto_str(in, p, 1);
  int64_t id = pb_i64(p, 2, 0), k = 0;
  for (pb_iter it = pb_begin(in->payloads); pb_each(&it, 22, PB_LEN); k++)
    if (k == id)
      return lw_context_str(
          in->ctx, (const char *)it.bytes.p,
          strnlen((const char *)it.bytes.p, pb_size(it.bytes)));
  proto_fail(in, p, "payload %lld is not in the module's table", (long long)id);
  return NULL;
}

/* ---- layouts ---- */

enum {
  LAYOUT_MINOR_TO_MAJOR = 1,
  LAYOUT_TILES = 6,
  LAYOUT_ELEMENT_BITS = 7,
  LAYOUT_MEMORY_SPACE = 8,
  LAYOUT_LEVELS = 9,
  LAYOUT_PHYSICAL = 10,
  LAYOUT_INDEX_TYPE = 11,
  LAYOUT_POINTER_TYPE = 12,
  LAYOUT_UNIQUE = 13,
  LAYOUT_ORDERED = 14,
  LAYOUT_PREFIX = 15,
  LAYOUT_TAIL = 16,
  LAYOUT_SPLITS = 17
};

static lw_prim read_prim(proto_in *in, pb_msg m, uint32_t number) {
  int64_t t = pb_i64(m, number, 0);
  if (t >= 0 && t < LW_PRIM_COUNT) return (lw_prim)t;
  proto_fail(in, m, "unknown primitive type %lld", (long long)t);
  return LW_PRIM_INVALID;
}

static bool is_permutation(const int64_t *v, int32_t n) {
  bool seen[LW_MAX_RANK] = {false};
  for (int32_t i = 0; i < n; i++) {
    if (v[i] < 0 || v[i] >= n || seen[v[i]]) return false;
    seen[v[i]] = true;
  }
  return true;
}

static void read_tiles(proto_in *in, pb_msg m, lw_layout *l) {
  LW_VEC(lw_tile) v = {0};
  pb_msg t;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, LAYOUT_TILES, &t);) {
    lw_tile tile = {0};
    tile.dims = proto_i64s(in, t, 1, &tile.rank);
    lw_vec_push(&v, tile);
  }
  l->n_tiles = (int32_t)v.len;
  l->tiles = lw_arena_memdup(in->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
}

static void read_splits(proto_in *in, pb_msg m, lw_layout *l) {
  LW_VEC(lw_split_config) v = {0};
  pb_msg t;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, LAYOUT_SPLITS, &t);) {
    lw_split_config s = {.dim = pb_i64(t, 1, 0)};
    s.indices = proto_i64s(in, t, 2, &s.n);
    lw_vec_push(&v, s);
  }
  l->n_splits = (int32_t)v.len;
  l->splits = lw_arena_memdup(in->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
}

/* Levels as in text: a letter a dimension, '+' for not unique, '~' for not
 * ordered. */
static void read_levels(proto_in *in, pb_msg m, lw_layout *l) {
  int32_t n, n_unique, n_ordered;
  const int64_t *v = proto_i64s(in, m, LAYOUT_LEVELS, &n);
  const int64_t *unique = proto_i64s(in, m, LAYOUT_UNIQUE, &n_unique);
  const int64_t *ordered = proto_i64s(in, m, LAYOUT_ORDERED, &n_ordered);
  bool any = false;
  for (int32_t i = 0; i < n; i++) any |= v[i] != 0;
  if (!any || n != l->rank) return;
  lw_buf b = {0};
  for (int32_t i = 0; i < n; i++) {
    lw_buf_chr(&b, v[i] >= 0 && v[i] < 4 ? "DCSH"[v[i]] : 'D');
    if (i < n_unique && !unique[i]) lw_buf_chr(&b, '+');
    if (i < n_ordered && !ordered[i]) lw_buf_chr(&b, '~');
  }
  l->n_levels = n;
  l->dim_levels = lw_context_str(in->ctx, b.data, b.len);
  lw_buf_free(&b);
}

static const lw_layout *read_layout(proto_in *in, pb_msg m, int32_t rank,
                                    int depth) {
  lw_layout l = {0};
  l.minor_to_major = proto_i64s(in, m, LAYOUT_MINOR_TO_MAJOR, &l.rank);
  if (l.rank != rank || !is_permutation(l.minor_to_major, rank)) {
    proto_fail(in, m, "a layout of %d dimensions is not a permutation of %d",
               l.rank, rank);
    return NULL;
  }
  read_tiles(in, m, &l);
  read_splits(in, m, &l);
  read_levels(in, m, &l);
  l.tail_padding_elements = pb_i64(m, LAYOUT_TAIL, 1);
  if (!l.tail_padding_elements) l.tail_padding_elements = 1;
  l.element_size_bits = pb_i64(m, LAYOUT_ELEMENT_BITS, 0);
  l.memory_space = pb_i64(m, LAYOUT_MEMORY_SPACE, 0);
  l.index_type = read_prim(in, m, LAYOUT_INDEX_TYPE);
  l.pointer_type = read_prim(in, m, LAYOUT_POINTER_TYPE);
  l.metadata_prefix_bytes = pb_i64(m, LAYOUT_PREFIX, 0);
  pb_msg physical = proto_sub(in, m, LAYOUT_PHYSICAL);
  if (physical.p) l.physical_shape = proto_read_shape(in, physical, depth + 1);
  return in->err ? NULL : lw_layout_intern(in->ctx, &l);
}

static int64_t level_of(char c) {
  return c == 'C' ? 1 : c == 'S' ? 2 : c == 'H' ? 3 : 0;
}

static void write_levels(lw_buf *b, const lw_layout *l) {
  int64_t level[LW_MAX_RANK], unique[LW_MAX_RANK], ordered[LW_MAX_RANK];
  int32_t n = 0;
  bool all_unique = true, all_ordered = true;
  for (const char *p = l->dim_levels; *p && n < LW_MAX_RANK; n++) {
    level[n] = level_of(*p++);
    unique[n] = *p != '+';
    p += *p == '+';
    ordered[n] = *p != '~';
    p += *p == '~';
    all_unique &= unique[n] != 0;
    all_ordered &= ordered[n] != 0;
  }
  if (n) pb_put_i64s(b, LAYOUT_LEVELS, level, n);
  if (!all_unique) pb_put_i64s(b, LAYOUT_UNIQUE, unique, n);
  if (!all_ordered) pb_put_i64s(b, LAYOUT_ORDERED, ordered, n);
}

static void write_layout(lw_buf *b, uint32_t number, const lw_layout *l) {
  lw_buf m = {0};
  pb_put_i64s(&m, LAYOUT_MINOR_TO_MAJOR, l->minor_to_major, l->rank);
  for (int32_t i = 0; i < l->n_tiles; i++) {
    lw_buf t = {0};
    pb_put_i64s(&t, 1, l->tiles[i].dims, l->tiles[i].rank);
    pb_put_msg(&m, LAYOUT_TILES, &t);
  }
  pb_put_i64(&m, LAYOUT_ELEMENT_BITS, l->element_size_bits);
  pb_put_i64(&m, LAYOUT_MEMORY_SPACE, l->memory_space);
  if (l->n_levels) write_levels(&m, l);
  if (l->physical_shape)
    proto_write_shape(&m, LAYOUT_PHYSICAL, l->physical_shape);
  pb_put_i64(&m, LAYOUT_INDEX_TYPE, l->index_type);
  pb_put_i64(&m, LAYOUT_POINTER_TYPE, l->pointer_type);
  pb_put_i64(&m, LAYOUT_PREFIX, l->metadata_prefix_bytes);
  pb_put_i64(&m, LAYOUT_TAIL,
             l->tail_padding_elements ? l->tail_padding_elements : 1);
  for (int32_t i = 0; i < l->n_splits; i++) {
    lw_buf s = {0};
    pb_put_i64(&s, 1, l->splits[i].dim);
    pb_put_i64s(&s, 2, l->splits[i].indices, l->splits[i].n);
    pb_put_msg(&m, LAYOUT_SPLITS, &s);
  }
  pb_put_msg(b, number, &m);
}

/* ---- shapes ---- */

enum {
  SHAPE_TYPE = 2,
  SHAPE_DIMENSIONS = 3,
  SHAPE_TUPLE = 4,
  SHAPE_LAYOUT = 5,
  SHAPE_DYNAMIC = 6
};

static const lw_shape *read_array(proto_in *in, pb_msg m, lw_shape *s,
                                  int depth) {
  s->dims = proto_i64s(in, m, SHAPE_DIMENSIONS, &s->rank);
  if (s->rank > LW_MAX_RANK) {
    proto_fail(in, m, "a shape has %d dimensions; at most %d are supported",
               s->rank, LW_MAX_RANK);
    return NULL;
  }
  for (int32_t i = 0; i < s->rank; i++)
    if (s->dims[i] < 0 && s->dims[i] != LW_UNBOUNDED) {
      proto_fail(in, m, "dimension %d has the negative size %lld", i,
                 (long long)s->dims[i]);
      return NULL;
    }
  int32_t n;
  const int64_t *dyn = proto_i64s(in, m, SHAPE_DYNAMIC, &n);
  bool *flags = LW_NEW_ARRAY(in->arena, bool, s->rank);
  for (int32_t i = 0; i < n && i < s->rank; i++) flags[i] = dyn[i] != 0;
  s->dynamic = flags;
  pb_msg layout = proto_sub(in, m, SHAPE_LAYOUT);
  if (layout.p) s->layout = read_layout(in, layout, s->rank, depth);
  return in->err ? NULL : lw_shape_intern(in->ctx, s);
}

/* A tuple's elements, or the one array in a buffer. */
static const lw_shape *read_elems(proto_in *in, pb_msg m, lw_shape *s,
                                  int depth) {
  LW_VEC(const lw_shape *) v = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, SHAPE_TUPLE, &e);) {
    const lw_shape *elem = proto_read_shape(in, e, depth + 1);
    lw_vec_push(&v, elem);
  }
  s->n_elems = (int32_t)v.len;
  s->elems = v.data;
  if (s->type == LW_BUFFER && v.len != 1)
    proto_fail(in, m, "a buffer shape must hold one shape");
  const lw_shape *r = in->err ? NULL : lw_shape_intern(in->ctx, s);
  lw_vec_free(&v);
  return r;
}

const lw_shape *proto_read_shape(proto_in *in, pb_msg m, int depth) {
  lw_shape s = {.type = read_prim(in, m, SHAPE_TYPE)};
  if (depth > PROTO_MAX_DEPTH)
    proto_fail(in, m, "shapes are nested more than %d deep", PROTO_MAX_DEPTH);
  if (s.type == LW_PRIM_INVALID) proto_fail(in, m, "a shape has no type");
  if (in->err) return NULL;
  if (lw_prim_is_array(s.type)) return read_array(in, m, &s, depth);
  if (s.type == LW_TUPLE || s.type == LW_BUFFER)
    return read_elems(in, m, &s, depth);
  return lw_shape_intern(in->ctx, &s);
}

static void write_dims(lw_buf *b, const lw_shape *s) {
  int64_t dyn[LW_MAX_RANK];
  for (int32_t i = 0; i < s->rank; i++) dyn[i] = s->dynamic && s->dynamic[i];
  pb_put_i64s(b, SHAPE_DIMENSIONS, s->dims, s->rank);
  pb_put_i64s(b, SHAPE_DYNAMIC, dyn, s->rank);
}

void proto_write_shape(lw_buf *b, uint32_t number, const lw_shape *s) {
  lw_buf m = {0};
  pb_put_i64(&m, SHAPE_TYPE, s->type);
  write_dims(&m, s);
  for (int32_t i = 0; i < s->n_elems; i++)
    proto_write_shape(&m, SHAPE_TUPLE, s->elems[i]);
  if (s->layout) write_layout(&m, SHAPE_LAYOUT, s->layout);
  pb_put_msg(b, number, &m);
}

/* ---- metadata ---- */

enum {
  META_OP_TYPE = 1,
  META_OP_NAME = 2,
  META_SOURCE_FILE = 3,
  META_SOURCE_LINE = 4,
  META_PROFILE_TYPE = 5,
  META_CODE_BYTES = 8,
  META_WORKING_SET = 9,
  META_DEDUPLICATED = 12,
  META_STACK_FRAME = 15,
  META_SCHEDULING = 16,
  META_END_LINE = 17,
  META_COLUMN = 18,
  META_END_COLUMN = 19,
  META_PAYLOAD = 20
};

static void read_metadata(proto_in *in, pb_msg m, lw_metadata *d) {
  d->op_type = proto_str(in, m, META_OP_TYPE);
  d->op_name = proto_str(in, m, META_OP_NAME);
  d->source_file = proto_str(in, m, META_SOURCE_FILE);
  d->source_line = pb_i64(m, META_SOURCE_LINE, 0);
  d->source_end_line = pb_i64(m, META_END_LINE, 0);
  d->source_column = pb_i64(m, META_COLUMN, 0);
  d->source_end_column = pb_i64(m, META_END_COLUMN, 0);
  d->stack_frame_id = pb_i64(m, META_STACK_FRAME, 0);
  d->profile_types = proto_i64s(in, m, META_PROFILE_TYPE, &d->n_profile_types);
  d->size_of_generated_code_bytes = pb_i64(m, META_CODE_BYTES, 0);
  d->size_of_memory_working_set_bytes = pb_i64(m, META_WORKING_SET, 0);
  d->deduplicated_name = proto_str(in, m, META_DEDUPLICATED);
  d->scheduling_name = proto_str(in, m, META_SCHEDULING);
  d->payload = proto_payload(in, m, META_PAYLOAD);
}

/* Nothing is said by an empty one. */
const lw_metadata *proto_read_metadata(proto_in *in, pb_msg m) {
  if (!pb_size(m)) return NULL;
  lw_metadata *d = LW_NEW(in->arena, lw_metadata);
  read_metadata(in, m, d);
  return d;
}

void proto_write_metadata(lw_buf *b, uint32_t number, const lw_metadata *d) {
  lw_buf m = {0};
  if (d) {
    pb_put_str(&m, META_OP_TYPE, d->op_type);
    pb_put_str(&m, META_OP_NAME, d->op_name);
    pb_put_str(&m, META_SOURCE_FILE, d->source_file);
    pb_put_i64(&m, META_SOURCE_LINE, d->source_line);
    pb_put_i64s(&m, META_PROFILE_TYPE, d->profile_types, d->n_profile_types);
    pb_put_i64(&m, META_CODE_BYTES, d->size_of_generated_code_bytes);
    pb_put_i64(&m, META_WORKING_SET, d->size_of_memory_working_set_bytes);
    pb_put_str(&m, META_DEDUPLICATED, d->deduplicated_name);
    pb_put_i64(&m, META_STACK_FRAME, d->stack_frame_id);
    pb_put_str(&m, META_SCHEDULING, d->scheduling_name);
    pb_put_i64(&m, META_END_LINE, d->source_end_line);
    pb_put_i64(&m, META_COLUMN, d->source_column);
    pb_put_i64(&m, META_END_COLUMN, d->source_end_column);
    if (d->payload) {
      lw_buf p = {0};
      pb_put_str(&p, 1, d->payload);
      pb_put_msg(&m, META_PAYLOAD, &p);
    }
  }
  pb_put_msg(b, number, &m);
}

/* ---- shardings ---- */

enum {
  SHARD_TYPE = 1,
  SHARD_TILE_DIMS = 3,
  SHARD_DEVICES = 4,
  SHARD_TUPLE = 5,
  SHARD_REPLICATE_LAST = 6,
  SHARD_METADATA = 7,
  SHARD_LAST_TYPES = 8,
  SHARD_IOTA_DIMS = 9,
  SHARD_IOTA_PERM = 10,
  SHARD_IS_GROUP = 11,
  SHARD_GROUP_ID = 12,
  SHARD_GROUP_TYPE = 13,
  SHARD_NAMED = 14
};

static void read_sharding_metadata(proto_in *in, pb_msg m, lw_sharding *s) {
  LW_VEC(lw_metadata) v = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, SHARD_METADATA, &e);) {
    lw_metadata d = {0};
    read_metadata(in, e, &d);
    lw_vec_push(&v, d);
  }
  s->n_metadata = (int32_t)v.len;
  s->metadata = lw_arena_memdup(in->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
}

static void read_sharding_elems(proto_in *in, pb_msg m, lw_sharding *s,
                                int depth) {
  LW_VEC(const lw_sharding *) v = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, SHARD_TUPLE, &e);) {
    const lw_sharding *elem = proto_read_sharding(in, e, depth + 1);
    lw_vec_push(&v, elem);
  }
  s->n_elems = (int32_t)v.len;
  s->elems = lw_arena_memdup(in->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
}

/* NULL for the identity, which text does not print. */
static const int32_t *read_perm(proto_in *in, pb_msg m, int32_t n_dims) {
  int32_t n;
  const int32_t *perm = proto_i32s(in, m, SHARD_IOTA_PERM, &n);
  bool identity = true;
  for (int32_t i = 0; i < n; i++) {
    if (perm[i] < 0 || perm[i] >= n)
      proto_fail(in, m, "a sharding's transposition is out of range");
    identity &= perm[i] == i;
  }
  if (n && n != n_dims)
    proto_fail(in, m, "a sharding's transposition has %d of %d dimensions", n,
               n_dims);
  return identity ? NULL : perm;
}

static void read_tiled(proto_in *in, pb_msg m, lw_sharding *s) {
  s->tile_dims = proto_i64s(in, m, SHARD_TILE_DIMS, &s->n_tile_dims);
  s->devices = proto_i64s(in, m, SHARD_DEVICES, &s->n_devices);
  s->iota_dims = proto_i64s(in, m, SHARD_IOTA_DIMS, &s->n_iota_dims);
  s->iota_perm = read_perm(in, m, s->n_iota_dims);
  s->replicate_on_last_tile_dim = pb_i64(m, SHARD_REPLICATE_LAST, 0) != 0;
  s->last_tile_types =
      proto_i32s(in, m, SHARD_LAST_TYPES, &s->n_last_tile_types);
  for (int32_t i = 0; i < s->n_last_tile_types; i++)
    if (s->last_tile_types[i] < 0 || s->last_tile_types[i] > LW_SH_UNREDUCED)
      proto_fail(in, m, "unknown kind of last tile dimension");
}

const lw_sharding *proto_read_sharding(proto_in *in, pb_msg m, int depth) {
  if (depth > PROTO_MAX_DEPTH) {
    proto_fail(in, m, "shardings are nested more than %d deep",
               PROTO_MAX_DEPTH);
    return NULL;
  }
  lw_sharding *s = LW_NEW(in->arena, lw_sharding);
  int64_t type = pb_i64(m, SHARD_TYPE, 0);
  if (type < 0 || type > LW_SH_UNREDUCED) {
    proto_fail(in, m, "unknown sharding type %lld", (long long)type);
    return NULL;
  }
  *(int *)&s->type = (int)type;
  pb_msg named = proto_sub(in, m, SHARD_NAMED);
  if (named.p) {
    s->type = LW_SH_NAMED;
    s->named_text = proto_named_sharding_text(in, named);
  } else if (s->type == LW_SH_TUPLE) {
    read_sharding_elems(in, m, s, depth);
  } else if (s->type == LW_SH_MAXIMAL) {
    int32_t n;
    const int64_t *v = proto_i64s(in, m, SHARD_DEVICES, &n);
    if (n) s->maximal_device = v[0];
  } else if (s->type == LW_SH_TILED) {
    read_tiled(in, m, s);
  }
  if (pb_i64(m, SHARD_IS_GROUP, 0)) {
    s->group =
        pb_i64(m, SHARD_GROUP_TYPE, 0) == 1 ? LW_SHARD_LIKE : LW_SHARD_AS;
    s->group_id = pb_i64(m, SHARD_GROUP_ID, 0);
  }
  read_sharding_metadata(in, m, s);
  return s;
}

static void write_tiled(lw_buf *m, const lw_sharding *s) {
  pb_put_i64s(m, SHARD_TILE_DIMS, s->tile_dims, s->n_tile_dims);
  pb_put_i64s(m, SHARD_DEVICES, s->devices, s->n_devices);
  pb_put_i64(m, SHARD_REPLICATE_LAST, s->replicate_on_last_tile_dim);
  pb_put_i32s(m, SHARD_LAST_TYPES, s->last_tile_types, s->n_last_tile_types);
  if (s->n_devices || !s->n_iota_dims) return;
  pb_put_i64s(m, SHARD_IOTA_DIMS, s->iota_dims, s->n_iota_dims);
  if (s->iota_perm) {
    pb_put_i32s(m, SHARD_IOTA_PERM, s->iota_perm, s->n_iota_dims);
    return;
  }
  pb_i64s perm = {0};
  for (int32_t i = 0; i < s->n_iota_dims; i++) lw_vec_push(&perm, (int64_t)i);
  pb_put_i64s(m, SHARD_IOTA_PERM, perm.data, s->n_iota_dims);
  lw_vec_free(&perm);
}

void proto_write_sharding(lw_buf *b, uint32_t number, const lw_sharding *s) {
  lw_buf m = {0};
  if (s->type == LW_SH_NAMED) {
    /* Text that is not a mesh sharding cannot come from our readers. */
    lw_status_free(proto_write_named_sharding(&m, SHARD_NAMED, s->named_text));
  } else {
    pb_put_i64(&m, SHARD_TYPE, (int64_t)s->type);
  }
  if (s->type == LW_SH_MAXIMAL)
    pb_put_i64s(&m, SHARD_DEVICES, &s->maximal_device, 1);
  if (s->type == LW_SH_TILED) write_tiled(&m, s);
  for (int32_t i = 0; i < s->n_elems; i++)
    proto_write_sharding(&m, SHARD_TUPLE, s->elems[i]);
  for (int32_t i = 0; i < s->n_metadata; i++)
    proto_write_metadata(&m, SHARD_METADATA, &s->metadata[i]);
  if (s->group != LW_SHARD_NONE) {
    pb_put_i64(&m, SHARD_IS_GROUP, 1);
    pb_put_i64(&m, SHARD_GROUP_ID, s->group_id);
    pb_put_i64(&m, SHARD_GROUP_TYPE, s->group == LW_SHARD_LIKE);
  }
  pb_put_msg(b, number, &m);
}

/* ---- frontend attributes ---- */

static int by_key(const void *a, const void *b) {
  return strcmp(((const lw_kv *)a)->key, ((const lw_kv *)b)->key);
}

lw_frontend_attrs proto_read_frontend(proto_in *in, pb_msg m) {
  LW_VEC(lw_kv) v = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, 1, &e);) {
    lw_kv kv = {proto_str_or(in, e, 1, ""), proto_str_or(in, e, 2, "")};
    lw_vec_push(&v, kv);
  }
  if (v.len) qsort(v.data, v.len, sizeof *v.data, by_key);
  lw_frontend_attrs f = {(int32_t)v.len, NULL};
  f.v = lw_arena_memdup(in->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return f;
}

static void write_entry(lw_buf *b, const char *key, const char *value) {
  lw_buf e = {0};
  pb_put_str(&e, 1, key);
  pb_put_str(&e, 2, value);
  pb_put_msg(b, 1, &e);
}

void proto_write_frontend(lw_buf *b, uint32_t number,
                          const lw_frontend_attrs *f, const char *extra_key,
                          const char *extra_value) {
  lw_buf m = {0};
  for (int32_t i = 0; i < f->n; i++)
    write_entry(&m, f->v[i].key, f->v[i].value);
  if (extra_key) write_entry(&m, extra_key, extra_value);
  pb_put_msg(b, number, &m);
}
