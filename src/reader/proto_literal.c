/* LiteralProto. Values lie in the order of the shape's layout there and in
 * row-major order in lw_literal; sub-byte values take a byte each in both, with
 * the upper bits cleared there and sign-extended here. */
#include <string.h>

#include "reader/proto_impl.h"

enum { LIT_SHAPE = 1, LIT_TUPLE = 10 };

typedef enum {
  AS_VARINTS, /* packed varints: pred, s32, s64, u32, u64 */
  AS_FIXED,   /* packed float or double, two for complex */
  AS_BYTES    /* bytes, little-endian, or one a value */
} coding;

static uint32_t field_of(lw_prim t, coding *c) {
  *c = AS_BYTES;
  switch ((int)t) {
    case LW_PRED:
      *c = AS_VARINTS;
      return 2;
    case LW_S32:
      *c = AS_VARINTS;
      return 4;
    case LW_S64:
      *c = AS_VARINTS;
      return 5;
    case LW_U32:
      *c = AS_VARINTS;
      return 6;
    case LW_U64:
      *c = AS_VARINTS;
      return 7;
    case LW_F32:
      *c = AS_FIXED;
      return 8;
    case LW_F64:
      *c = AS_FIXED;
      return 9;
    case LW_C64:
      *c = AS_FIXED;
      return 12;
    case LW_C128:
      *c = AS_FIXED;
      return 18;
    case LW_U8:
      return 3;
    case LW_F16:
      return 11;
    case LW_BF16:
      return 13;
    case LW_S8:
      return 15;
    case LW_U16:
      return 16;
    case LW_S16:
      return 17;
    case LW_F8E5M2:
      return 19;
    case LW_F8E4M3FN:
      return 20;
    case LW_S4:
      return 21;
    case LW_U4:
      return 22;
    case LW_F8E4M3B11FNUZ:
      return 23;
    case LW_F8E5M2FNUZ:
      return 24;
    case LW_F8E4M3FNUZ:
      return 25;
    case LW_S2:
      return 26;
    case LW_U2:
      return 27;
    case LW_F8E4M3:
      return 28;
    case LW_F8E3M4:
      return 29;
    case LW_S1:
      return 30;
    case LW_U1:
      return 31;
    case LW_F4E2M1FN:
      return 32;
    case LW_F8E8M0FNU:
      return 33;
    case LW_F6E3M2FN:
      return 35;
    case LW_F6E2M3FN:
      return 36;
    default:
      return 0;
  }
}

/* ---- order ---- */

/* Copies between row-major order and the layout's. */
static void reorder(const lw_shape *s, char *dst, const char *src, size_t size,
                    bool to_row_major) {
  int64_t n = s->elements, at[LW_MAX_RANK] = {0}, stride[LW_MAX_RANK], step = 1;
  int64_t phys = 0;
  for (int32_t i = 0; i < s->rank; i++) {
    int64_t d = s->layout->minor_to_major[i];
    stride[d] = step;
    step *= s->dims[d];
  }
  for (int64_t i = 0; i < n; i++) {
    memcpy(dst + (size_t)(to_row_major ? i : phys) * size,
           src + (size_t)(to_row_major ? phys : i) * size, size);
    for (int32_t d = s->rank - 1; d >= 0; d--) {
      phys += stride[d];
      if (++at[d] < s->dims[d]) break;
      phys -= stride[d] * s->dims[d];
      at[d] = 0;
    }
  }
}

static bool in_order(const lw_shape *s) {
  if (!s->layout) return true;
  for (int32_t i = 0; i < s->rank; i++)
    if (s->layout->minor_to_major[i] != s->rank - 1 - i) return false;
  return true;
}

/* ---- reading ---- */

/* Sign-extends or masks sub-byte values. */
static void widen(lw_literal *l) {
  if (lw_prim_table[l->shape->type].bits >= 8) return;
  int bits = lw_prim_table[l->shape->type].bits;
  bool sign = lw_prim_is_signed(l->shape->type);
  uint8_t *p = l->data, mask = (uint8_t)((1 << bits) - 1);
  for (int64_t i = 0; i < l->shape->elements; i++) {
    p[i] &= mask;
    if (sign && p[i] >> (bits - 1)) p[i] |= (uint8_t)~mask;
  }
}

/* The raw bytes of a fixed-width field, packed or not. */
static void fixed_bytes(pb_msg m, uint32_t number, size_t width, lw_buf *out) {
  pb_iter it = pb_begin(m);
  while (pb_next(&it)) {
    if (it.number != number) continue;
    if (it.wire == PB_LEN) lw_buf_add(out, it.bytes.p, pb_size(it.bytes));
    if (it.wire == (width == 4 ? PB_I32 : PB_I64))
      lw_buf_add(out, &it.value, width);
  }
}

static void varint_bytes(const lw_shape *s, pb_msg m, uint32_t number,
                         lw_buf *out) {
  pb_i64s v = {0};
  pb_get_i64s(m, number, &v);
  size_t size = (size_t)lw_prim_bytes(s->type);
  for (size_t i = 0; i < v.len; i++) {
    int64_t x = s->type == LW_PRED ? v.data[i] != 0 : v.data[i];
    lw_buf_add(out, &x, size);
  }
  lw_vec_free(&v);
}

static void raw_values(const lw_shape *s, pb_msg m, lw_buf *out) {
  coding c;
  uint32_t number = field_of(s->type, &c);
  bool is_double = s->type == LW_F64 || s->type == LW_C128;
  if (c == AS_VARINTS) {
    varint_bytes(s, m, number, out);
  } else if (c == AS_FIXED) {
    fixed_bytes(m, number, is_double ? 8 : 4, out);
  } else {
    pb_msg b = pb_bytes(m, number);
    lw_buf_add(out, b.p, pb_size(b));
  }
}

static void read_array(proto_in *in, pb_msg m, const lw_shape *s,
                       lw_literal **out) {
  lw_buf raw = {0};
  raw_values(s, m, &raw);
  int64_t bytes = lw_shape_bytes(s);
  if (bytes == INT64_MAX || (size_t)bytes != raw.len) {
    proto_fail(in, m, "a literal of %s has %zu bytes of values",
               lw_shape_str(in->ctx, s), raw.len);
  } else {
    lw_status st = lw_literal_new(in->arena, s, out);
    if (st && !in->err)
      in->err = st;
    else
      lw_status_free(st);
    if (!st && raw.len) {
      if (in_order(s))
        memcpy((*out)->data, raw.data, raw.len);
      else
        reorder(s, (*out)->data, raw.data, (size_t)lw_prim_bytes(s->type),
                true);
      widen(*out);
    }
  }
  lw_buf_free(&raw);
}

static lw_literal *read_tuple(proto_in *in, pb_msg m, const lw_shape *s,
                              int depth) {
  LW_VEC(lw_literal *) v = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, LIT_TUPLE, &e);) {
    lw_literal *elem = proto_read_literal(in, e, depth + 1);
    if (elem) lw_vec_push(&v, elem);
  }
  lw_literal *l = NULL;
  if (in->err || v.len != (size_t)s->n_elems) {
    proto_fail(in, m, "a literal of %s has %zu elements",
               lw_shape_str(in->ctx, s), v.len);
  } else {
    l = LW_NEW(in->arena, lw_literal);
    l->shape = s;
    l->n_elems = s->n_elems;
    l->elems = lw_arena_memdup(in->arena, v.data, v.len * sizeof *v.data);
    for (int32_t i = 0; i < l->n_elems; i++)
      if (!lw_shape_compatible(l->elems[i]->shape, s->elems[i]))
        proto_fail(in, m, "element %d of a tuple literal has another shape", i);
  }
  lw_vec_free(&v);
  return l;
}

lw_literal *proto_read_literal(proto_in *in, pb_msg m, int depth) {
  if (depth > PROTO_MAX_DEPTH) {
    proto_fail(in, m, "literals are nested more than %d deep", PROTO_MAX_DEPTH);
    return NULL;
  }
  pb_msg shape = proto_sub(in, m, LIT_SHAPE);
  const lw_shape *s = proto_read_shape(in, shape, depth);
  if (!s) return NULL;
  lw_literal *l = NULL;
  if (lw_shape_is_tuple(s)) return read_tuple(in, m, s, depth);
  if (lw_shape_is_array(s)) {
    read_array(in, m, s, &l);
  } else {
    l = LW_NEW(in->arena, lw_literal);
    l->shape = s;
  }
  return in->err ? NULL : l;
}

/* ---- writing ---- */

static void write_values(lw_buf *m, const lw_shape *s, const char *raw,
                         size_t bytes) {
  coding c;
  uint32_t number = field_of(s->type, &c);
  if (!bytes || !number) return;
  if (c != AS_VARINTS) {
    pb_put_bytes(m, number, raw, bytes);
    return;
  }
  lw_buf packed = {0};
  size_t size = (size_t)lw_prim_bytes(s->type);
  for (size_t i = 0; i < bytes; i += size) {
    uint64_t v = 0;
    memcpy(&v, raw + i, size);
    if (s->type == LW_S32) v = (uint64_t)(int64_t)(int32_t)v;
    pb_put_varint(&packed, v);
  }
  pb_put_bytes(m, number, packed.data, packed.len);
  lw_buf_free(&packed);
}

static void write_array(lw_buf *m, const lw_literal *l) {
  const lw_shape *s = l->shape;
  size_t bytes = (size_t)lw_literal_bytes(l);
  int bits = lw_prim_table[s->type].bits;
  if (in_order(s) && bits >= 8) {
    write_values(m, s, l->data, bytes);
    return;
  }
  char *raw = malloc(bytes ? bytes : 1);
  if (!raw) lw_oom(bytes);
  if (in_order(s))
    memcpy(raw, l->data, bytes);
  else
    reorder(s, raw, l->data, (size_t)lw_prim_bytes(s->type), false);
  if (bits < 8)
    for (size_t i = 0; i < bytes; i++) raw[i] &= (char)((1 << bits) - 1);
  write_values(m, s, raw, bytes);
  free(raw);
}

/* XLA's literals are never packed: their layouts have no element size. */
static void write_literal_shape(lw_buf *m, const lw_shape *s) {
  if (!s->layout || !s->layout->element_size_bits) {
    proto_write_shape(m, LIT_SHAPE, s);
    return;
  }
  lw_layout layout = *s->layout;
  lw_shape plain = *s;
  layout.element_size_bits = 0;
  plain.layout = &layout;
  proto_write_shape(m, LIT_SHAPE, &plain);
}

lw_status proto_write_literal(lw_buf *b, uint32_t number, const lw_literal *l) {
  lw_buf m = {0};
  write_literal_shape(&m, l->shape);
  lw_status st = NULL;
  for (int32_t i = 0; i < l->n_elems && !st; i++)
    st = proto_write_literal(&m, LIT_TUPLE, l->elems[i]);
  if (lw_shape_is_array(l->shape)) write_array(&m, l);
  pb_put_msg(b, number, &m);
  return st;
}
