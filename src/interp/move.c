/* Opcodes that move elements: everything is an odometer over the result (or
 * the operand) with strides into the other side. */
#include <stdlib.h>

#include "interp/eval.h"

/* ---- a strided copy behind most of them ---- */

/* dst and src are walked over dims with byte strides. The innermost dimension
 * is a tight loop. */
void lw_copy_strided(int32_t rank, const int64_t *dims, int64_t esize,
                     char *dst, const int64_t *dst_strides, const char *src,
                     const int64_t *src_strides) {
  int64_t idx[LW_MAX_RANK] = {0};
  for (int32_t d = 0; d < rank; d++)
    if (dims[d] <= 0) return;
  int64_t n = rank ? dims[rank - 1] : 1;
  int64_t ds = rank ? dst_strides[rank - 1] : 0;
  int64_t ss = rank ? src_strides[rank - 1] : 0;
  int32_t outer = rank ? rank - 1 : 0;
  do {
    int64_t d_at = 0, s_at = 0;
    for (int32_t d = 0; d < outer; d++) {
      d_at += idx[d] * dst_strides[d];
      s_at += idx[d] * src_strides[d];
    }
    char *dp = dst + d_at;
    const char *sp = src + s_at;
    if (ds == esize && ss == esize) {
      memcpy(dp, sp, (size_t)(n * esize));
    } else if (esize == 4) {
      for (int64_t k = 0; k < n; k++, dp += ds, sp += ss) memcpy(dp, sp, 4);
    } else {
      for (int64_t k = 0; k < n; k++, dp += ds, sp += ss)
        memcpy(dp, sp, (size_t)esize);
    }
  } while (lw_next_index(outer, dims, idx));
}

void lw_byte_strides(const lw_shape *s, int64_t *strides) {
  lw_shape_strides(s, strides);
  for (int32_t d = 0; d < s->rank; d++) strides[d] *= lw_prim_bytes(s->type);
}

void lw_permute_raw(int32_t rank, const int64_t *dims, const int64_t *perm,
                    int esize, const void *src, void *dst) {
  int64_t strides[LW_MAX_RANK], out_dims[LW_MAX_RANK], from[LW_MAX_RANK],
      to[LW_MAX_RANK], n = esize;
  for (int32_t d = rank; d-- > 0;) {
    strides[d] = n;
    n *= dims[d];
  }
  n = esize;
  for (int32_t d = rank; d-- > 0;) {
    out_dims[d] = dims[perm[d]];
    from[d] = strides[perm[d]];
    to[d] = n;
    n *= out_dims[d];
  }
  lw_copy_strided(rank, out_dims, esize, dst, to, src, from);
}

void lw_permute(const lw_val *v, const int64_t *perm, void *out) {
  lw_permute_raw(v->lit.shape->rank, v->lit.shape->dims, perm, lw_esize(v),
                 v->lit.data, out);
}

/* ---- iota, broadcast, transpose, reshape ---- */

lw_status lw_eval_iota(lw_eval *e, const lw_inst *i, lw_val **ops,
                       lw_val **out) {
  (void)ops;
  const lw_shape *s = i->shape;
  int64_t dim = lw_inst_i64(i, LW_ATTR_IOTA_DIMENSION, 0);
  if (dim < 0 || dim >= s->rank)
    return lw_error(LW_INVALID_ARGUMENT, "iota_dimension is out of range");
  LW_TRY(lw_val_new(e, s, out));
  int64_t strides[LW_MAX_RANK];
  lw_shape_strides(s, strides);
  bool real = lw_prim_is_float(s->type) || lw_prim_is_complex(s->type);
  for (int64_t k = 0; k < s->elements; k++) {
    int64_t v = k / strides[dim] % s->dims[dim];
    if (real) {
      lw_literal_set_f64(&(*out)->lit, k, 0, (double)v);
      if (lw_prim_is_complex(s->type))
        lw_literal_set_f64(&(*out)->lit, k, 1, 0);
    } else {
      lw_literal_set_int(&(*out)->lit, k, v);
    }
  }
  return NULL;
}

/* Sizes of result dims that come from the operand follow it. */
lw_status lw_eval_broadcast(lw_eval *e, const lw_inst *i, lw_val **ops,
                            lw_val **out) {
  int32_t n = 0;
  const int64_t *map = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  const lw_shape *s = i->shape, *from = ops[0]->lit.shape;
  int64_t dims[LW_MAX_RANK], src[LW_MAX_RANK], dst[LW_MAX_RANK],
      own[LW_MAX_RANK];
  for (int32_t d = 0; d < s->rank; d++) dims[d] = s->dims[d];
  memset(src, 0, sizeof src);
  lw_byte_strides(from, own);
  if (n != from->rank)
    return lw_error(LW_INVALID_ARGUMENT, "dimensions do not fit the operand");
  for (int32_t k = 0; k < n; k++) {
    if (map[k] < 0 || map[k] >= s->rank ||
        (from->dims[k] != 1 && from->dims[k] > dims[map[k]]))
      return lw_error(LW_INVALID_ARGUMENT, "dimensions do not fit the operand");
    if (from->dims[k] == 1 && dims[map[k]] != 1) continue; /* implicit */
    dims[map[k]] = from->dims[k];
    src[map[k]] = own[k];
  }
  LW_TRY(lw_val_new(e, lw_result_shape(e, s, dims), out));
  lw_byte_strides((*out)->lit.shape, dst);
  lw_copy_strided(s->rank, dims, lw_esize(ops[0]), (*out)->lit.data, dst,
                  ops[0]->lit.data, src);
  return NULL;
}

lw_status lw_eval_transpose(lw_eval *e, const lw_inst *i, lw_val **ops,
                            lw_val **out) {
  int32_t n = 0;
  const int64_t *perm = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  const lw_shape *from = ops[0]->lit.shape;
  int64_t dims[LW_MAX_RANK];
  uint64_t seen = 0;
  for (int32_t d = 0; d < n && n == from->rank; d++) {
    if (perm[d] < 0 || perm[d] >= n || (seen >> perm[d] & 1)) n = -1;
    if (n < 0) break;
    seen |= 1ull << perm[d];
    dims[d] = from->dims[perm[d]];
  }
  if (n != from->rank || i->shape->rank != n)
    return lw_error(LW_INVALID_ARGUMENT, "dimensions are no permutation");
  LW_TRY(lw_val_new(e, lw_result_shape(e, i->shape, dims), out));
  lw_permute(ops[0], perm, (*out)->lit.data);
  return NULL;
}

/* A dynamic operand that shrank keeps its elements dense: the result's dynamic
 * dims are found by matching sizes from the left. */
static bool match_dynamic(const lw_shape *want, int64_t elements,
                          int64_t *dims) {
  int64_t fixed = 1, free_dim = -1;
  for (int32_t d = 0; d < want->rank; d++) {
    dims[d] = want->dims[d];
    if (want->dynamic && want->dynamic[d] && free_dim < 0)
      free_dim = d;
    else
      fixed *= want->dims[d];
  }
  if (free_dim < 0 || !fixed || elements % fixed) return false;
  dims[free_dim] = elements / fixed;
  return dims[free_dim] <= want->dims[free_dim];
}

lw_status lw_eval_reshape(lw_eval *e, const lw_inst *i, lw_val **ops,
                          lw_val **out) {
  const lw_shape *s = i->shape;
  int64_t dims[LW_MAX_RANK];
  if (lw_elems(ops[0]) != s->elements) {
    if (!match_dynamic(s, lw_elems(ops[0]), dims))
      return lw_error(LW_INVALID_ARGUMENT, "reshape of %lld elements to %lld",
                      (long long)lw_elems(ops[0]), (long long)s->elements);
    s = lw_result_shape(e, s, dims);
  }
  *out = lw_val_view(s, ops[0]);
  return NULL;
}

lw_status lw_eval_dynamic_reshape(lw_eval *e, const lw_inst *i, lw_val **ops,
                                  lw_val **out) {
  int64_t dims[LW_MAX_RANK], n = 1;
  if (i->n_operands != i->shape->rank + 1)
    return lw_error(LW_INVALID_ARGUMENT, "one size a dimension is needed");
  for (int32_t d = 0; d < i->shape->rank; d++) {
    if (lw_elems(ops[d + 1]) != 1)
      return lw_error(LW_INVALID_ARGUMENT, "sizes are scalars");
    dims[d] = lw_literal_get_int(&ops[d + 1]->lit, 0);
    if (dims[d] < 0 || dims[d] > i->shape->dims[d])
      return lw_error(LW_INVALID_ARGUMENT,
                      "size %lld of dimension %d exceeds its bound %lld",
                      (long long)dims[d], d, (long long)i->shape->dims[d]);
    n *= dims[d];
  }
  if (n != lw_elems(ops[0]))
    return lw_error(LW_INVALID_ARGUMENT, "reshape of %lld elements to %lld",
                    (long long)lw_elems(ops[0]), (long long)n);
  *out = lw_val_view(lw_result_shape(e, i->shape, dims), ops[0]);
  return NULL;
}

/* ---- bitcast: the same bytes in the order of the layouts ---- */

/* perm such that physical order = logical order permuted by it. */
static void physical_perm(const lw_shape *s, int64_t *perm) {
  for (int32_t d = 0; d < s->rank; d++)
    perm[d] = s->layout ? s->layout->minor_to_major[s->rank - 1 - d] : d;
}

lw_status lw_eval_bitcast(lw_eval *e, const lw_inst *i, lw_val **ops,
                          lw_val **out) {
  const lw_shape *from = lw_inst_operand(i, 0)->shape, *to = i->shape;
  if (lw_prim_table[from->type].bits != lw_prim_table[to->type].bits ||
      from->elements != to->elements || lw_elems(ops[0]) != from->elements)
    return lw_error(LW_INVALID_ARGUMENT, "bitcast changes the size");
  if (lw_layout_is_descending(from->layout) &&
      lw_layout_is_descending(to->layout)) {
    *out = lw_val_view(to, ops[0]);
    return NULL;
  }
  int64_t perm[LW_MAX_RANK], inverse[LW_MAX_RANK], dims[LW_MAX_RANK];
  lw_val *physical = NULL;
  LW_TRY(lw_val_new(e, from, &physical));
  physical_perm(from, perm);
  lw_permute_raw(from->rank, from->dims, perm, lw_esize(ops[0]),
                 ops[0]->lit.data, physical->lit.data);
  lw_status s = lw_val_new(e, to, out);
  if (!s) {
    physical_perm(to, perm);
    for (int32_t d = 0; d < to->rank; d++) {
      inverse[perm[d]] = d;
      dims[d] = to->dims[perm[d]];
    }
    lw_permute_raw(to->rank, dims, inverse, lw_prim_bytes(to->type),
                   physical->lit.data, (*out)->lit.data);
  }
  lw_val_release(e, physical);
  return s;
}

/* ---- slices ---- */

lw_status lw_eval_slice(lw_eval *e, const lw_inst *i, lw_val **ops,
                        lw_val **out) {
  int32_t n = 0;
  const int64_t *v = lw_inst_i64s(i, LW_ATTR_SLICE, &n);
  const lw_shape *from = ops[0]->lit.shape;
  if (n != 3 * from->rank || i->shape->rank != from->rank)
    return lw_error(LW_INVALID_ARGUMENT, "slice does not fit the operand");
  int64_t dims[LW_MAX_RANK], src[LW_MAX_RANK], dst[LW_MAX_RANK], at = 0;
  lw_byte_strides(from, src);
  for (int32_t d = 0; d < from->rank; d++) {
    int64_t lo = v[3 * d], hi = v[3 * d + 1], step = v[3 * d + 2];
    if (hi > from->dims[d]) hi = from->dims[d]; /* a dynamic one that shrank */
    if (lo < 0 || step < 1 ||
        (lo > hi && from->dims[d] == lw_inst_operand(i, 0)->shape->dims[d]))
      return lw_error(LW_INVALID_ARGUMENT, "slice is out of range");
    dims[d] = lo >= hi ? 0 : (hi - lo + step - 1) / step;
    at += lo * src[d];
    src[d] *= step;
  }
  LW_TRY(lw_val_new(e, lw_result_shape(e, i->shape, dims), out));
  lw_byte_strides((*out)->lit.shape, dst);
  lw_copy_strided(from->rank, dims, lw_esize(ops[0]), (*out)->lit.data, dst,
                  (const char *)ops[0]->lit.data + at, src);
  return NULL;
}

/* A start index clamped to [0, room]; unsigned 64-bit values are huge, not
 * negative. */
static int64_t clamp_start(const lw_val *v, int64_t k, int64_t room) {
  int64_t x = lw_literal_get_int(&v->lit, k);
  if (v->lit.shape->type == LW_U64 && x < 0) x = INT64_MAX;
  return x < 0 ? 0 : x > room ? room : x;
}

/* Starts come as one scalar a dimension, or (old form) as one vector. */
static lw_status read_starts(lw_val **ops, int32_t first, int32_t n_ops,
                             const lw_shape *whole, const lw_shape *slice,
                             int64_t *starts) {
  const int64_t *part = slice->dims;
  if (slice->rank != whole->rank || slice->type != whole->type)
    return lw_error(LW_INVALID_ARGUMENT, "the slice does not fit the operand");
  for (int32_t k = first; k < n_ops; k++)
    if (!lw_prim_is_int(ops[k]->lit.shape->type) || !lw_elems(ops[k]))
      return lw_error(LW_INVALID_ARGUMENT, "starts are integers");
  bool vector = n_ops == first + 1 && ops[first]->lit.shape->rank == 1;
  if (!vector && n_ops - first != whole->rank)
    return lw_error(LW_INVALID_ARGUMENT, "one start a dimension is needed");
  if (vector && lw_elems(ops[first]) != whole->rank)
    return lw_error(LW_INVALID_ARGUMENT, "one start a dimension is needed");
  for (int32_t d = 0; d < whole->rank; d++) {
    if (part[d] > whole->dims[d])
      return lw_error(LW_INVALID_ARGUMENT, "the slice exceeds the operand");
    starts[d] = clamp_start(ops[vector ? first : first + d], vector ? d : 0,
                            whole->dims[d] - part[d]);
  }
  return NULL;
}

lw_status lw_eval_dynamic_slice(lw_eval *e, const lw_inst *i, lw_val **ops,
                                lw_val **out) {
  const lw_shape *from = ops[0]->lit.shape, *s = i->shape;
  int64_t starts[LW_MAX_RANK], src[LW_MAX_RANK], dst[LW_MAX_RANK], at = 0;
  LW_TRY(read_starts(ops, 1, i->n_operands, from, s, starts));
  lw_byte_strides(from, src);
  for (int32_t d = 0; d < from->rank; d++) at += starts[d] * src[d];
  LW_TRY(lw_val_new(e, s, out));
  lw_byte_strides(s, dst);
  lw_copy_strided(s->rank, s->dims, lw_esize(ops[0]), (*out)->lit.data, dst,
                  (const char *)ops[0]->lit.data + at, src);
  return NULL;
}

lw_status lw_eval_dynamic_update_slice(lw_eval *e, const lw_inst *i,
                                       lw_val **ops, lw_val **out) {
  const lw_shape *whole = ops[0]->lit.shape, *part = ops[1]->lit.shape;
  int64_t starts[LW_MAX_RANK], src[LW_MAX_RANK], dst[LW_MAX_RANK], at = 0;
  LW_TRY(read_starts(ops, 2, i->n_operands, whole, part, starts));
  lw_val *v = ops[0];
  ops[0] = NULL;
  lw_status s = lw_val_own(e, v, out);
  if (s) {
    lw_val_release(e, v);
    return s;
  }
  lw_byte_strides(whole, dst);
  lw_byte_strides(part, src);
  for (int32_t d = 0; d < whole->rank; d++) at += starts[d] * dst[d];
  lw_copy_strided(part->rank, part->dims, lw_esize(*out),
                  (char *)(*out)->lit.data + at, dst, ops[1]->lit.data, src);
  return NULL;
}

/* ---- concatenate, pad, reverse ---- */

lw_status lw_eval_concatenate(lw_eval *e, const lw_inst *i, lw_val **ops,
                              lw_val **out) {
  int32_t n = 0, rank = i->shape->rank;
  const int64_t *dim = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  if (n != 1 || dim[0] < 0 || dim[0] >= rank || ops[0]->lit.shape->rank != rank)
    return lw_error(LW_INVALID_ARGUMENT, "concatenate needs one dimension");
  int64_t dims[LW_MAX_RANK], dst[LW_MAX_RANK], src[LW_MAX_RANK], at = 0;
  memcpy(dims, ops[0]->lit.shape->dims, (size_t)rank * sizeof *dims);
  for (int32_t k = 1; k < i->n_operands; k++) {
    if (ops[k]->lit.shape->rank != rank ||
        ops[k]->lit.shape->type != i->shape->type)
      return lw_error(LW_INVALID_ARGUMENT, "operands differ");
    dims[dim[0]] += lw_dim(ops[k], dim[0]);
  }
  LW_TRY(lw_val_new(e, lw_result_shape(e, i->shape, dims), out));
  lw_byte_strides((*out)->lit.shape, dst);
  for (int32_t k = 0; k < i->n_operands; k++) {
    const lw_shape *s = ops[k]->lit.shape;
    for (int32_t d = 0; d < rank; d++)
      if (d != dim[0] && s->dims[d] != dims[d])
        return lw_error(LW_INVALID_ARGUMENT, "operand sizes differ");
    lw_byte_strides(s, src);
    lw_copy_strided(rank, s->dims, lw_esize(ops[k]),
                    (char *)(*out)->lit.data + at, dst, ops[k]->lit.data, src);
    at += s->dims[dim[0]] * dst[dim[0]];
  }
  return NULL;
}

static void fill(void *data, int64_t n, int64_t esize, const void *elem) {
  char *p = data;
  for (int64_t k = 0; k < n; k++, p += esize) memcpy(p, elem, (size_t)esize);
}

/* Negative padding cuts: operand positions outside the result are skipped by
 * narrowing the copied range, so that the copy stays strided. */
lw_status lw_eval_pad(lw_eval *e, const lw_inst *i, lw_val **ops,
                      lw_val **out) {
  int32_t n = 0;
  const int64_t *p = lw_inst_i64s(i, LW_ATTR_PADDING, &n);
  const lw_shape *from = ops[0]->lit.shape;
  if (n != 3 * from->rank || i->shape->rank != from->rank ||
      ops[1]->lit.shape->elements != 1 || ops[1]->lit.shape->type != from->type)
    return lw_error(LW_INVALID_ARGUMENT, "padding does not fit the operand");
  int64_t dims[LW_MAX_RANK], src[LW_MAX_RANK], dst[LW_MAX_RANK],
      count[LW_MAX_RANK], s_at = 0, d_at = 0;
  for (int32_t d = 0; d < from->rank; d++) {
    int64_t lo = p[3 * d], hi = p[3 * d + 1], in = p[3 * d + 2] + 1;
    int64_t len = from->dims[d];
    dims[d] = lo + hi + (len > 0 ? (len - 1) * in + 1 : 0);
    if (dims[d] < 0) dims[d] = 0;
    if (in < 1) return lw_error(LW_INVALID_ARGUMENT, "padding is negative");
  }
  LW_TRY(lw_val_new(e, lw_result_shape(e, i->shape, dims), out));
  lw_byte_strides(from, src);
  lw_byte_strides((*out)->lit.shape, dst);
  fill((*out)->lit.data, lw_elems(*out), lw_esize(*out), ops[1]->lit.data);
  for (int32_t d = 0; d < from->rank; d++) {
    int64_t lo = p[3 * d], in = p[3 * d + 2] + 1;
    int64_t first = lo >= 0 ? 0 : (-lo + in - 1) / in;
    int64_t end = dims[d] - lo > 0 ? (dims[d] - lo + in - 1) / in : 0;
    if (end > from->dims[d]) end = from->dims[d];
    count[d] = end > first ? end - first : 0;
    s_at += first * src[d];
    d_at += (lo + first * in) * dst[d];
    dst[d] *= in;
  }
  lw_copy_strided(from->rank, count, lw_esize(ops[0]),
                  (char *)(*out)->lit.data + d_at, dst,
                  (const char *)ops[0]->lit.data + s_at, src);
  return NULL;
}

lw_status lw_eval_reverse(lw_eval *e, const lw_inst *i, lw_val **ops,
                          lw_val **out) {
  int32_t n = 0;
  const int64_t *v = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  const lw_shape *s = ops[0]->lit.shape;
  int64_t src[LW_MAX_RANK], dst[LW_MAX_RANK], at = 0;
  if (i->shape->rank != s->rank)
    return lw_error(LW_INVALID_ARGUMENT, "result and operand differ");
  LW_TRY(lw_val_new(e, lw_result_shape(e, i->shape, s->dims), out));
  if (!s->elements) return NULL;
  lw_byte_strides(s, src);
  memcpy(dst, src, sizeof dst);
  for (int32_t k = 0; k < n; k++) {
    if (v[k] < 0 || v[k] >= s->rank)
      return lw_error(LW_INVALID_ARGUMENT, "dimensions are out of range");
    at += (s->dims[v[k]] - 1) * dst[v[k]];
    src[v[k]] = -dst[v[k]];
  }
  lw_copy_strided(s->rank, s->dims, lw_esize(ops[0]), (*out)->lit.data, dst,
                  (const char *)ops[0]->lit.data + at, src);
  return NULL;
}

/* ---- bounded dynamic dimensions ---- */

static lw_status one_dim(const lw_inst *i, const lw_val *v, int64_t *dim) {
  int32_t n = 0;
  const int64_t *d = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  if (n != 1 || d[0] < 0 || d[0] >= v->lit.shape->rank)
    return lw_error(LW_INVALID_ARGUMENT, "one dimension is needed");
  *dim = d[0];
  return NULL;
}

lw_status lw_eval_get_dimension_size(lw_eval *e, const lw_inst *i, lw_val **ops,
                                     lw_val **out) {
  int64_t dim = 0;
  LW_TRY(one_dim(i, ops[0], &dim));
  if (i->shape->elements != 1 || !lw_prim_is_int(i->shape->type))
    return lw_error(LW_INVALID_ARGUMENT, "the result is one integer");
  LW_TRY(lw_val_new(e, i->shape, out));
  lw_literal_set_int(&(*out)->lit, 0, lw_dim(ops[0], dim));
  return NULL;
}

/* Smaller: the corner is kept. Larger (up to the bound): what lies beyond is
 * zero, since elements past a dynamic size have no value. */
lw_status lw_eval_set_dimension_size(lw_eval *e, const lw_inst *i, lw_val **ops,
                                     lw_val **out) {
  const lw_shape *s = ops[0]->lit.shape;
  int64_t dim = 0, dims[LW_MAX_RANK], common[LW_MAX_RANK], src[LW_MAX_RANK],
          dst[LW_MAX_RANK];
  LW_TRY(one_dim(i, ops[0], &dim));
  if (i->shape->rank != s->rank || i->shape->type != s->type ||
      lw_elems(ops[1]) != 1)
    return lw_error(LW_INVALID_ARGUMENT, "result and operand differ");
  int64_t size = lw_literal_get_int(&ops[1]->lit, 0);
  if (size < 0 || size > i->shape->dims[dim])
    return lw_error(LW_INVALID_ARGUMENT, "size %lld exceeds the bound %lld",
                    (long long)size, (long long)i->shape->dims[dim]);
  memcpy(dims, s->dims, (size_t)s->rank * sizeof *dims);
  memcpy(common, dims, sizeof common);
  dims[dim] = size;
  common[dim] = size < s->dims[dim] ? size : s->dims[dim];
  LW_TRY(lw_val_new(e, lw_result_shape(e, i->shape, dims), out));
  memset((*out)->lit.data, 0, (size_t)lw_shape_bytes((*out)->lit.shape));
  lw_byte_strides(s, src);
  lw_byte_strides((*out)->lit.shape, dst);
  lw_copy_strided(s->rank, common, lw_esize(ops[0]), (*out)->lit.data, dst,
                  ops[0]->lit.data, src);
  return NULL;
}
