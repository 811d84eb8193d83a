/* Opcodes that move elements. */
#include "gen_impl.h"

lw_inst *gen_make_broadcast(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (s->rank >= GEN_MAX_RANK) return NULL;
  int64_t dims[GEN_MAX_RANK + 1], map[GEN_MAX_RANK];
  int32_t at = (int32_t)gen_below(g, s->rank + 1), n = 0;
  int64_t extra = gen_some_dim(g);
  if (s->elements * extra > g->o.max_elements) extra = 1;
  for (int32_t i = 0; i <= s->rank; i++) {
    if (i == at)
      dims[i] = extra;
    else {
      map[n] = i;
      dims[i] = s->dims[n++];
    }
  }
  lw_inst *b =
      gen_op1(g, LW_OP_BROADCAST, gen_shape(g, s->type, s->rank + 1, dims), a);
  lw_inst_set_i64s(b, LW_ATTR_DIMENSIONS, n, map);
  return b;
}

lw_inst *gen_make_reshape(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  int64_t dims[GEN_MAX_RANK + 1];
  int32_t n = 0, k = s->rank ? (int32_t)gen_below(g, s->rank) : 0;
  int how = (int)gen_below(g, 3);
  for (int32_t i = 0; i < s->rank; i++) {
    if (how == 0 && i == k && i + 1 < s->rank) { /* merge i and i+1 */
      dims[n++] = s->dims[i] * s->dims[i + 1];
      i++;
    } else if (how == 1 && i == k && s->dims[i] % 2 == 0 &&
               s->rank < GEN_MAX_RANK) {
      dims[n++] = 2;
      dims[n++] = s->dims[i] / 2;
    } else {
      dims[n++] = s->dims[i];
    }
  }
  if (how == 2 && n < GEN_MAX_RANK) dims[n++] = 1;
  return gen_op1(g, LW_OP_RESHAPE, gen_shape(g, s->type, n, dims), a);
}

lw_inst *gen_make_transpose(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (s->rank < 2) return NULL;
  int64_t perm[GEN_MAX_RANK + 1], dims[GEN_MAX_RANK + 1];
  for (int32_t i = 0; i < s->rank; i++) perm[i] = i;
  for (int32_t i = s->rank - 1; i > 0; i--) {
    int32_t j = (int32_t)gen_below(g, i + 1);
    int64_t t = perm[i];
    perm[i] = perm[j];
    perm[j] = t;
  }
  for (int32_t i = 0; i < s->rank; i++) dims[i] = s->dims[perm[i]];
  lw_inst *i =
      gen_op1(g, LW_OP_TRANSPOSE, gen_shape(g, s->type, s->rank, dims), a);
  lw_inst_set_i64s(i, LW_ATTR_DIMENSIONS, s->rank, perm);
  return i;
}

lw_inst *gen_make_slice(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank) return NULL;
  int64_t dims[GEN_MAX_RANK], v[3 * GEN_MAX_RANK];
  for (int32_t i = 0; i < s->rank; i++) {
    bool empty = s->dims[i] == 0 || gen_chance(g, 2);
    int64_t lo = gen_below(g, s->dims[i] + (empty ? 1 : 0));
    int64_t stride = gen_chance(g, 25) ? 2 : 1;
    int64_t hi = empty ? lo : lo + 1 + gen_below(g, s->dims[i] - lo);
    if (gen_chance(g, 50)) lo = 0;
    if (gen_chance(g, 50)) hi = s->dims[i];
    v[3 * i] = lo, v[3 * i + 1] = hi, v[3 * i + 2] = stride;
    dims[i] = (hi - lo + stride - 1) / stride;
  }
  lw_inst *i = gen_op1(g, LW_OP_SLICE, gen_shape(g, s->type, s->rank, dims), a);
  lw_inst_set_i64s(i, LW_ATTR_SLICE, 3 * s->rank, v);
  return i;
}

lw_inst *gen_make_pad(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank) return NULL;
  int64_t dims[GEN_MAX_RANK], v[3 * GEN_MAX_RANK], n = 1;
  for (int32_t i = 0; i < s->rank; i++) {
    int64_t lo = gen_below(g, 4) - 1, hi = gen_below(g, 4) - 1;
    int64_t in = gen_chance(g, 20) ? 1 : 0;
    int64_t d = s->dims[i] + (s->dims[i] > 0 ? in * (s->dims[i] - 1) : 0);
    if (d + lo + hi < 0) lo = hi = 0;
    v[3 * i] = lo, v[3 * i + 1] = hi, v[3 * i + 2] = in;
    dims[i] = d + lo + hi;
    n *= dims[i];
  }
  if (n > g->o.max_elements) return NULL;
  lw_inst *fill = gen_value(g, gen_shape(g, s->type, 0, NULL));
  lw_inst *i =
      gen_op2(g, LW_OP_PAD, gen_shape(g, s->type, s->rank, dims), a, fill);
  lw_inst_set_i64s(i, LW_ATTR_PADDING, 3 * s->rank, v);
  return i;
}

/* Of two or three, in any order, of other extents. */
lw_inst *gen_make_concatenate(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || s->elements * 3 > g->o.max_elements) return NULL;
  int64_t dims[GEN_MAX_RANK], d = gen_below(g, s->rank), sum = 0;
  memcpy(dims, s->dims, (size_t)s->rank * sizeof *dims);
  int n = 2 + gen_chance(g, 30), at = (int)gen_below(g, n);
  lw_inst *ops[3];
  for (int k = 0; k < n; k++) {
    dims[d] = gen_chance(g, 30) ? gen_below(g, s->dims[d] + 1) : s->dims[d];
    ops[k] = k == at ? a : gen_value(g, gen_shape(g, s->type, s->rank, dims));
    sum += ops[k]->shape->dims[d];
  }
  dims[d] = sum;
  lw_inst *i = gen_op(g, LW_OP_CONCATENATE,
                      gen_shape(g, s->type, s->rank, dims), n, ops);
  lw_inst_set_i64s(i, LW_ATTR_DIMENSIONS, 1, &d);
  return i;
}

lw_inst *gen_make_reverse(gen *g, lw_inst *a) {
  if (!a->shape->rank) return NULL;
  int64_t d = gen_below(g, a->shape->rank);
  lw_inst *i = gen_op1(g, LW_OP_REVERSE, a->shape, a);
  lw_inst_set_i64s(i, LW_ATTR_DIMENSIONS, 1, &d);
  return i;
}

lw_inst *gen_make_dynamic_slice(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || !s->elements) return NULL;
  int64_t dims[GEN_MAX_RANK];
  lw_inst *ops[GEN_MAX_RANK + 1] = {a};
  const lw_shape *ix =
      gen_shape(g, gen_chance(g, 80) ? LW_S32 : LW_U8, 0, NULL);
  for (int32_t i = 0; i < s->rank; i++) {
    dims[i] = 1 + gen_below(g, s->dims[i]);
    ops[i + 1] = gen_value(g, ix);
  }
  lw_inst *i = gen_op(g, LW_OP_DYNAMIC_SLICE,
                      gen_shape(g, s->type, s->rank, dims), s->rank + 1, ops);
  lw_inst_set_i64s(i, LW_ATTR_DYNAMIC_SLICE_SIZES, s->rank, dims);
  return i;
}

/* A part of a itself, moved and perhaps mirrored: an update made of what it
 * goes over. */
static lw_inst *part_of(gen *g, lw_inst *a, const lw_shape *u) {
  lw_inst *ops[GEN_MAX_RANK + 1] = {a};
  const lw_shape *ix = gen_shape(g, LW_S32, 0, NULL);
  for (int32_t i = 0; i < u->rank; i++) ops[i + 1] = gen_value(g, ix);
  lw_inst *i = gen_op(g, LW_OP_DYNAMIC_SLICE, u, u->rank + 1, ops);
  lw_inst_set_i64s(i, LW_ATTR_DYNAMIC_SLICE_SIZES, u->rank, u->dims);
  return gen_chance(g, 50) ? gen_make_reverse(g, i) : i;
}

lw_inst *gen_make_update_slice(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || !s->elements) return NULL;
  int64_t dims[GEN_MAX_RANK];
  lw_inst *ops[GEN_MAX_RANK + 2] = {a};
  const lw_shape *ix = gen_shape(g, LW_S32, 0, NULL);
  for (int32_t i = 0; i < s->rank; i++) {
    dims[i] = 1 + gen_below(g, s->dims[i]);
    ops[i + 2] = gen_value(g, ix);
  }
  const lw_shape *u = gen_shape(g, s->type, s->rank, dims);
  ops[1] = gen_chance(g, 40) ? part_of(g, a, u) : gen_value(g, u);
  return gen_op(g, LW_OP_DYNAMIC_UPDATE_SLICE, s, s->rank + 2, ops);
}

/* Rows of a by a vector of indices: the shape of jnp.take. */
lw_inst *gen_make_gather(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || !s->dims[0]) return NULL;
  int64_t n = 1 + gen_below(g, 9), dims[GEN_MAX_RANK], sizes[GEN_MAX_RANK];
  int64_t offset[GEN_MAX_RANK], zero = 0;
  dims[0] = n;
  sizes[0] = 1;
  int64_t total = n;
  for (int32_t i = 1; i < s->rank; i++) {
    dims[i] = sizes[i] = s->dims[i];
    offset[i - 1] = i;
    total *= dims[i];
  }
  if (total > g->o.max_elements) return NULL;
  lw_inst *ix = gen_value(g, gen_shape(g, LW_S32, 1, &n));
  lw_inst *i =
      gen_op2(g, LW_OP_GATHER, gen_shape(g, s->type, s->rank, dims), a, ix);
  lw_inst_set_i64s(i, LW_ATTR_OFFSET_DIMS, s->rank - 1, offset);
  lw_inst_set_i64s(i, LW_ATTR_COLLAPSED_SLICE_DIMS, 1, &zero);
  lw_inst_set_i64s(i, LW_ATTR_START_INDEX_MAP, 1, &zero);
  lw_inst_set_i64(i, LW_ATTR_INDEX_VECTOR_DIM, 1);
  lw_inst_set_i64s(i, LW_ATTR_SLICE_SIZES, s->rank, sizes);
  return i;
}

lw_inst *gen_make_iota(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || s->type == LW_PRED || s->type == LW_F8E8M0FNU) return NULL;
  lw_inst *i = gen_op(g, LW_OP_IOTA, s, 0, NULL);
  lw_inst_set_i64(i, LW_ATTR_IOTA_DIMENSION, gen_below(g, s->rank));
  return i;
}

lw_inst *gen_make_constant(gen *g, lw_inst *a) {
  return a->shape->elements > 600 ? NULL : gen_array_const(g, a->shape);
}
