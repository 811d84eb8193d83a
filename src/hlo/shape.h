/* Shapes and layouts, interned in a context: equal ones are one pointer. */
#ifndef LW_HLO_SHAPE_H
#define LW_HLO_SHAPE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "hlo/types.h"

enum { LW_MAX_RANK = 64 };

#define LW_TILE_COMBINE INT64_MIN /* '*' in a tile */
#define LW_UNBOUNDED INT64_MIN    /* dims[i] of '?' */

typedef struct {
  int32_t rank;
  const int64_t *dims;
} lw_tile;

typedef struct {
  int64_t dim;
  int32_t n;
  const int64_t *indices;
} lw_split_config;

struct lw_shape;

typedef struct lw_layout {
  int32_t rank;
  const int64_t *minor_to_major;
  int32_t n_tiles;
  const lw_tile *tiles;
  int32_t n_levels;       /* 0 or rank */
  const char *dim_levels; /* one of D C S H a dim, then "+" / "~" kept */
  lw_prim index_type, pointer_type; /* #(t) *(t); INVALID when absent */
  int64_t tail_padding_elements;    /* L(n); 1 when absent */
  int64_t element_size_bits;        /* E(n); 0 when absent */
  int64_t memory_space;             /* S(n) */
  int32_t n_splits;
  const lw_split_config *splits;         /* SC(...) */
  const struct lw_shape *physical_shape; /* P(...) */
  int64_t metadata_prefix_bytes;         /* M(n) */
} lw_layout;

typedef struct lw_shape {
  lw_prim type; /* array type, TUPLE, TOKEN, OPAQUE or BUFFER */
  int32_t rank;
  const int64_t *dims; /* sizes, or bounds of dynamic dims, or LW_UNBOUNDED */
  const bool *dynamic; /* NULL when no dim is dynamic */
  const lw_layout *layout; /* NULL when none was given */
  int32_t n_elems;         /* TUPLE: elements; BUFFER: 1 */
  const struct lw_shape *const *elems;
  const struct lw_shape *no_layout; /* the layout-free twin (may be itself) */
  int64_t
      elements; /* product of dims; 0 for non-arrays; saturates at INT64_MAX */
} lw_shape;

/* Interned strings, shapes, layouts. One thread at a time. */
typedef struct lw_context lw_context;
lw_context *lw_context_new(void);
void lw_context_free(lw_context *ctx);
lw_arena *lw_context_arena(lw_context *ctx);
const char *lw_context_str(lw_context *ctx, const char *s, size_t len);
const char *lw_context_cstr(lw_context *ctx, const char *s);

/* Array shape without layout. */
const lw_shape *lw_shape_array(lw_context *ctx, lw_prim type, int32_t rank,
                               const int64_t *dims);
const lw_shape *lw_shape_tuple(lw_context *ctx, int32_t n,
                               const lw_shape *const *elems);
/* TOKEN or OPAQUE. */
const lw_shape *lw_shape_other(lw_context *ctx, lw_prim type);
const lw_shape *lw_shape_buffer(lw_context *ctx, const lw_shape *inner);
/* The full constructor: any field as in proto (pointers are copied). */
const lw_shape *lw_shape_intern(lw_context *ctx, const lw_shape *proto);
const lw_layout *lw_layout_intern(lw_context *ctx, const lw_layout *proto);
/* {rank-1, ..., 0}, everything else default. */
const lw_layout *lw_layout_descending(lw_context *ctx, int32_t rank);
/* Same shape with this layout (NULL: none). */
const lw_shape *lw_shape_with_layout(lw_context *ctx, const lw_shape *s,
                                     const lw_layout *layout);
/* Descending layouts wherever one is missing, tuple leaves included. */
const lw_shape *lw_shape_fill_layouts(lw_context *ctx, const lw_shape *s);
/* Same dims, dynamic flags and layout, another element type. */
const lw_shape *lw_shape_with_type(lw_context *ctx, const lw_shape *s,
                                   lw_prim type);

static inline bool lw_shape_is_array(const lw_shape *s) {
  return lw_prim_is_array(s->type);
}
static inline bool lw_shape_is_tuple(const lw_shape *s) {
  return s->type == LW_TUPLE;
}
/* Equal but for layouts. */
static inline bool lw_shape_compatible(const lw_shape *a, const lw_shape *b) {
  return a->no_layout == b->no_layout;
}
bool lw_shape_same_dims(const lw_shape *a, const lw_shape *b);
static inline bool lw_shape_is_scalar(const lw_shape *s) {
  return lw_shape_is_array(s) && s->rank == 0;
}
/* One element, whatever the rank. */
static inline bool lw_shape_is_effective_scalar(const lw_shape *s) {
  return lw_shape_is_array(s) && s->elements == 1;
}
/* Bytes in Lawson's buffers: elements * lw_prim_bytes, tuples summed, tokens 0.
 * Saturates at INT64_MAX. */
int64_t lw_shape_bytes(const lw_shape *s);
/* Array leaves (and tokens/opaques) of a shape in order; arrays are 1 leaf. */
int64_t lw_shape_leaf_count(const lw_shape *s);
const lw_shape *lw_shape_leaf(const lw_shape *s, int64_t i);
bool lw_shape_has_dynamic(const lw_shape *s);
/* Row-major strides in elements, whatever the layout; strides: rank of them. */
void lw_shape_strides(const lw_shape *s, int64_t *strides);
/* True for a NULL layout or {rank-1..0} without tiles. */
bool lw_layout_is_descending(const lw_layout *l);

/* "f32[2,3]{1,0}"; with_layout=false leaves layouts out. */
void lw_shape_print(lw_buf *b, const lw_shape *s, bool with_layout);
void lw_layout_print(lw_buf *b, const lw_layout *l);
/* Into the context's arena, for messages. */
const char *lw_shape_str(lw_context *ctx, const lw_shape *s);

#endif
