/* sort and topk: merge sorts of index arrays, stable always. */
#include <stdlib.h>

#include "interp/eval.h"

enum { MAX_SORT = 64 };

/* ---- sort ---- */

typedef struct {
  lw_eval *e;
  lw_prog *less;
  int32_t n;
  int64_t stride; /* elements between neighbours of a line */
  int64_t base;
  const char *x[MAX_SORT];
  int64_t esize[MAX_SORT];
  int64_t *order, *tmp;
  lw_status status;
} sorter;

/* The comparator on elements a and b of the line: (a0, b0, a1, b1, ...). */
static bool less(sorter *s, int64_t a, int64_t b) {
  const void *in[2 * MAX_SORT];
  uint8_t result = 0;
  void *out[1] = {&result};
  if (s->status) return false;
  for (int32_t k = 0; k < s->n; k++) {
    in[2 * k] = s->x[k] + (s->base + a * s->stride) * s->esize[k];
    in[2 * k + 1] = s->x[k] + (s->base + b * s->stride) * s->esize[k];
  }
  s->status = lw_prog_run(s->e, s->less, 1, in, out);
  return result != 0;
}

/* One merge of [lo, mid) and [mid, hi): a later element goes first only when
 * it is strictly less. */
static void merge(sorter *s, int64_t lo, int64_t mid, int64_t hi) {
  int64_t a = lo, b = mid, k = lo;
  while (a < mid && b < hi)
    s->tmp[k++] =
        less(s, s->order[b], s->order[a]) ? s->order[b++] : s->order[a++];
  while (a < mid) s->tmp[k++] = s->order[a++];
  while (b < hi) s->tmp[k++] = s->order[b++];
}

/* Bottom-up, runs of 1, 2, 4, ... The merges are part of the definition: a
 * comparator that is no order (NaN under LT) has a result of its own. */
static void merge_sort(sorter *s, int64_t n) {
  for (int64_t w = 1; w < n && !s->status; w *= 2) {
    for (int64_t lo = 0; lo < n; lo += 2 * w)
      merge(s, lo, lo + w < n ? lo + w : n, lo + 2 * w < n ? lo + 2 * w : n);
    int64_t *done = s->tmp;
    s->tmp = s->order;
    s->order = done;
  }
}

static void sort_line(sorter *s, int64_t len, lw_val **outs) {
  for (int64_t k = 0; k < len; k++) s->order[k] = k;
  merge_sort(s, len);
  for (int32_t o = 0; o < s->n; o++)
    for (int64_t k = 0; k < len; k++)
      memcpy(
          (char *)outs[o]->lit.data + (s->base + k * s->stride) * s->esize[o],
          s->x[o] + (s->base + s->order[k] * s->stride) * s->esize[o],
          (size_t)s->esize[o]);
}

static void sort_lines(sorter *s, const lw_shape *shape, int64_t dim,
                       lw_val **outs) {
  int64_t strides[LW_MAX_RANK], len = shape->dims[dim];
  if (!shape->elements) return;
  lw_shape_strides(shape, strides);
  s->stride = strides[dim];
  int64_t outer = shape->elements / (len * s->stride);
  for (int64_t o = 0; o < outer && !s->status; o++)
    for (int64_t j = 0; j < s->stride && !s->status; j++) {
      s->base = o * len * s->stride + j;
      sort_line(s, len, outs);
    }
}

static lw_status check_sort(const lw_inst *i, lw_val **ops, const lw_prog *p,
                            int64_t dim) {
  const lw_shape *s = ops[0]->lit.shape;
  bool ok = i->n_operands <= MAX_SORT && dim >= 0 && dim < s->rank &&
            lw_prog_params(p) == 2 * i->n_operands && lw_prog_results(p) == 1 &&
            lw_prog_result_type(p, 0) == LW_PRED;
  for (int32_t k = 0; ok && k < i->n_operands; k++)
    ok = lw_shape_same_dims(ops[k]->lit.shape, s) &&
         lw_prog_param_type(p, 2 * k) == ops[k]->lit.shape->type &&
         lw_prog_param_type(p, 2 * k + 1) == ops[k]->lit.shape->type;
  return ok ? NULL
            : lw_error(LW_INVALID_ARGUMENT,
                       "the comparator does not fit the operands");
}

lw_status lw_eval_sort(lw_eval *e, const lw_inst *i, lw_val **ops,
                       lw_val **out) {
  int32_t n_dims = 0;
  const int64_t *dims = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n_dims);
  const lw_shape *shape = ops[0]->lit.shape;
  int64_t dim = n_dims ? dims[0] : shape->rank - 1;
  sorter s = {.e = e, .n = i->n_operands};
  LW_TRY(lw_prog_get(e, lw_inst_comp(i, LW_ATTR_TO_APPLY), &s.less));
  LW_TRY(check_sort(i, ops, s.less, dim));
  lw_val *outs[MAX_SORT] = {0};
  for (int32_t k = 0; k < s.n && !s.status; k++) {
    s.x[k] = ops[k]->lit.data;
    s.esize[k] = lw_esize(ops[k]);
    s.status = lw_val_new(e, ops[k]->lit.shape, &outs[k]);
  }
  size_t bytes = (size_t)shape->dims[dim] * sizeof(int64_t) + 8;
  s.order = malloc(bytes);
  s.tmp = malloc(bytes);
  if (!s.order || !s.tmp) lw_oom(bytes);
  if (!s.status) sort_lines(&s, shape, dim, outs);
  free(s.order);
  free(s.tmp);
  if (s.status) {
    for (int32_t k = 0; k < s.n; k++) lw_val_release(e, outs[k]);
    return s.status;
  }
  *out =
      lw_shape_is_tuple(i->shape) ? lw_val_tuple(i->shape, s.n, outs) : outs[0];
  return NULL;
}

/* ---- topk ---- */

/* A key that orders like the total order of the type's values. */
static int64_t sort_key(const lw_val *v, int64_t k) {
  lw_prim t = v->lit.shape->type;
  int64_t bits = lw_literal_get_int(&v->lit, k);
  if (!lw_prim_is_float(t))
    return t == LW_U64 ? (int64_t)((uint64_t)bits ^ (1ull << 63)) : bits;
  uint64_t sign = 1ull << (lw_prim_table[t].bits - 1);
  uint64_t code = (uint64_t)bits & (sign | (sign - 1));
  bool fnuz = t == LW_F8E4M3FNUZ || t == LW_F8E5M2FNUZ || t == LW_F8E4M3B11FNUZ;
  /* no signs; a NaN without a sign: above everything */
  if (t == LW_F8E8M0FNU || (fnuz && code == sign)) return (int64_t)code;
  if (code & sign) /* more magnitude is less */
    return -1 - (int64_t)(code & (sign - 1));
  return (int64_t)code;
}

static bool topk_fits(const lw_shape *result, const lw_shape *s, int64_t k) {
  int64_t len = s->dims[s->rank - 1], want = len ? s->elements / len * k : 0;
  return result->elems[0]->type == s->type &&
         result->elems[0]->elements == want &&
         lw_prim_is_int(result->elems[1]->type) &&
         result->elems[1]->elements == want;
}

typedef struct {
  int64_t key, index;
} ranked;

/* Greater keys first; of equal ones the lower index, so no two are equal. */
static int by_rank(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->key != y->key) return x->key > y->key ? -1 : 1;
  return x->index < y->index ? -1 : 1;
}

/* The k largest (or smallest) of each row of the last dimension, in order; of
 * equal ones the lower index first. */
lw_status lw_eval_topk(lw_eval *e, const lw_inst *i, lw_val **ops,
                       lw_val **out) {
  const lw_shape *s = ops[0]->lit.shape;
  int64_t k = lw_inst_i64(i, LW_ATTR_K, 0);
  bool largest = lw_inst_i64(i, LW_ATTR_LARGEST, 1) != 0;
  if (s->rank < 1 || k < 0 || k > s->dims[s->rank - 1] ||
      !lw_shape_is_tuple(i->shape) || i->shape->n_elems != 2 ||
      lw_prim_is_complex(s->type) || !topk_fits(i->shape, s, k))
    return lw_error(LW_INVALID_ARGUMENT, "topk does not fit its operand");
  int64_t len = s->dims[s->rank - 1], rows = len ? s->elements / len : 0;
  lw_val *r[2] = {0};
  LW_TRY(lw_val_new(e, i->shape->elems[0], &r[0]));
  lw_status st = lw_val_new(e, i->shape->elems[1], &r[1]);
  ranked *keys = malloc((size_t)len * sizeof *keys + 8);
  if (!keys) lw_oom((size_t)len);
  size_t size = (size_t)lw_esize(ops[0]);
  for (int64_t row = 0; row < rows && !st; row++) {
    for (int64_t j = 0; j < len; j++) {
      int64_t key = sort_key(ops[0], row * len + j);
      keys[j] = (ranked){largest ? key : ~key, j};
    }
    qsort(keys, (size_t)len, sizeof *keys, by_rank);
    for (int64_t m = 0; m < k; m++) {
      int64_t best = keys[m].index;
      memcpy((char *)r[0]->lit.data + (size_t)(row * k + m) * size,
             (char *)ops[0]->lit.data + (size_t)(row * len + best) * size,
             size);
      lw_literal_set_int(&r[1]->lit, row * k + m, best);
    }
  }
  free(keys);
  if (st) {
    lw_val_release(e, r[0]);
    return st;
  }
  *out = lw_val_tuple(i->shape, 2, r);
  return NULL;
}
