/* gather and scatter: one walk over the index array, a strided window each. */
#include <stdlib.h>

#include "interp/eval.h"

/* The dims of a gather or scatter in the words of gather; for scatter, slice
 * means update window and collapsed means inserted. */
typedef struct {
  const int64_t *offset, *collapsed, *map, *op_batch, *ix_batch;
  int32_t n_offset, n_collapsed, n_map, n_op_batch, n_ix_batch;
  int64_t vector_dim;
  const lw_shape *whole, *indices,
      *outer;                           /* operand; indices; result/updates */
  int64_t window[LW_MAX_RANK];          /* slice size by operand dim */
  bool skip[LW_MAX_RANK];               /* collapsed or batching */
  int64_t batch_dims[LW_MAX_RANK];      /* index dims without vector_dim */
  int64_t batch_ix_stride[LW_MAX_RANK]; /* their strides in the indices */
  int64_t batch_out[LW_MAX_RANK];       /* their byte strides outside */
  int64_t win_dims[LW_MAX_RANK], win_whole[LW_MAX_RANK],
      win_outer[LW_MAX_RANK]; /* of the window: sizes and byte strides */
  int32_t n_batch, n_win;
  int64_t vector_stride, vector_len;
} index_plan;

static bool in_range(const int64_t *v, int32_t n, int64_t rank) {
  for (int32_t k = 0; k < n; k++)
    if (v[k] < 0 || v[k] >= rank) return false;
  return true;
}

static bool has(const int64_t *v, int32_t n, int64_t d) {
  for (int32_t k = 0; k < n; k++)
    if (v[k] == d) return true;
  return false;
}

static lw_status bad_dims(void) {
  return lw_error(LW_INVALID_ARGUMENT,
                  "the dimension numbers do not fit the operands");
}

static lw_status check_plan(const index_plan *p) {
  int64_t rank = p->whole->rank, ix_rank = p->indices->rank;
  bool ok = in_range(p->offset, p->n_offset, p->outer->rank) &&
            in_range(p->collapsed, p->n_collapsed, rank) &&
            in_range(p->map, p->n_map, rank) &&
            in_range(p->op_batch, p->n_op_batch, rank) &&
            in_range(p->ix_batch, p->n_ix_batch, ix_rank) &&
            p->n_op_batch == p->n_ix_batch &&
            !has(p->ix_batch, p->n_ix_batch, p->vector_dim);
  int64_t batch = ix_rank - (p->vector_dim < ix_rank);
  ok = ok && p->outer->rank == batch + p->n_offset &&
       rank == p->n_offset + p->n_collapsed + p->n_op_batch &&
       p->n_map == p->vector_len;
  return ok ? NULL : bad_dims();
}

/* Fills strides and sizes. window must be set. */
static lw_status finish_plan(index_plan *p) {
  int64_t ix[LW_MAX_RANK], whole[LW_MAX_RANK], outer[LW_MAX_RANK];
  lw_shape_strides(p->indices, ix);
  lw_byte_strides(p->whole, whole);
  lw_byte_strides(p->outer, outer);
  if (p->vector_dim < 0 || p->vector_dim > p->indices->rank) return bad_dims();
  bool implicit = p->vector_dim >= p->indices->rank;
  p->vector_len = implicit ? 1 : p->indices->dims[p->vector_dim];
  p->vector_stride = implicit ? 0 : ix[p->vector_dim];
  LW_TRY(check_plan(p));
  for (int32_t d = 0, o = 0; d < p->indices->rank; d++) {
    if (d == p->vector_dim) continue;
    while (o < p->outer->rank && has(p->offset, p->n_offset, o)) o++;
    if (o >= p->outer->rank || p->outer->dims[o] != p->indices->dims[d])
      return bad_dims();
    p->batch_dims[p->n_batch] = p->indices->dims[d];
    p->batch_ix_stride[p->n_batch] = ix[d];
    p->batch_out[p->n_batch++] = outer[o++];
  }
  for (int32_t d = 0, k = 0; d < p->whole->rank; d++) {
    p->skip[d] = has(p->collapsed, p->n_collapsed, d) ||
                 has(p->op_batch, p->n_op_batch, d);
    if (p->skip[d]) continue;
    if (k >= p->n_offset) return bad_dims();
    p->win_dims[p->n_win] = p->window[d];
    p->win_whole[p->n_win] = whole[d];
    p->win_outer[p->n_win++] = outer[p->offset[k++]];
  }
  return NULL;
}

/* The start of the window of batch index b, unclamped. */
static void window_start(const index_plan *p, const lw_val *indices,
                         const int64_t *b, int64_t *start) {
  int64_t at = 0;
  memset(start, 0, sizeof(int64_t) * (size_t)p->whole->rank);
  for (int32_t k = 0; k < p->n_batch; k++) at += b[k] * p->batch_ix_stride[k];
  for (int32_t k = 0; k < p->n_map; k++) {
    int64_t v = lw_literal_get_int(&indices->lit, at + k * p->vector_stride);
    if (indices->lit.shape->type == LW_U64 && v < 0) v = INT64_MAX;
    start[p->map[k]] = v;
  }
  for (int32_t k = 0; k < p->n_op_batch; k++) {
    int64_t d = p->ix_batch[k];
    start[p->op_batch[k]] = b[d - (d > p->vector_dim)];
  }
}

static int64_t outer_offset(const index_plan *p, const int64_t *b) {
  int64_t at = 0;
  for (int32_t k = 0; k < p->n_batch; k++) at += b[k] * p->batch_out[k];
  return at;
}

static int64_t whole_offset(const index_plan *p, const int64_t *start) {
  int64_t strides[LW_MAX_RANK], at = 0;
  lw_byte_strides(p->whole, strides);
  for (int32_t d = 0; d < p->whole->rank; d++) at += start[d] * strides[d];
  return at;
}

static bool nothing(const index_plan *p) {
  for (int32_t k = 0; k < p->n_batch; k++)
    if (!p->batch_dims[k]) return true;
  for (int32_t k = 0; k < p->n_win; k++)
    if (!p->win_dims[k]) return true;
  return false;
}

/* ---- gather ---- */

lw_status lw_eval_gather(lw_eval *e, const lw_inst *i, lw_val **ops,
                         lw_val **out) {
  index_plan p = {.whole = ops[0]->lit.shape,
                  .indices = ops[1]->lit.shape,
                  .outer = i->shape};
  int32_t n = 0;
  p.offset = lw_inst_i64s(i, LW_ATTR_OFFSET_DIMS, &p.n_offset);
  p.collapsed = lw_inst_i64s(i, LW_ATTR_COLLAPSED_SLICE_DIMS, &p.n_collapsed);
  p.map = lw_inst_i64s(i, LW_ATTR_START_INDEX_MAP, &p.n_map);
  p.op_batch = lw_inst_i64s(i, LW_ATTR_OPERAND_BATCHING_DIMS, &p.n_op_batch);
  p.ix_batch =
      lw_inst_i64s(i, LW_ATTR_START_INDICES_BATCHING_DIMS, &p.n_ix_batch);
  p.vector_dim = lw_inst_i64(i, LW_ATTR_INDEX_VECTOR_DIM, p.indices->rank);
  const int64_t *sizes = lw_inst_i64s(i, LW_ATTR_SLICE_SIZES, &n);
  if (n != p.whole->rank) return bad_dims();
  for (int32_t d = 0; d < n; d++) {
    if (sizes[d] < 0 || sizes[d] > p.whole->dims[d]) return bad_dims();
    p.window[d] = sizes[d];
  }
  LW_TRY(finish_plan(&p));
  for (int32_t k = 0; k < p.n_offset; k++)
    if (p.win_dims[k] != p.outer->dims[p.offset[k]]) return bad_dims();
  LW_TRY(lw_val_new(e, i->shape, out));
  if (nothing(&p)) return NULL;
  int64_t b[LW_MAX_RANK] = {0}, start[LW_MAX_RANK];
  do {
    window_start(&p, ops[1], b, start);
    for (int32_t d = 0; d < p.whole->rank; d++) {
      int64_t room = p.whole->dims[d] - p.window[d];
      start[d] = start[d] < 0 ? 0 : start[d] > room ? room : start[d];
    }
    lw_copy_strided(p.n_win, p.win_dims, lw_esize(*out),
                    (char *)(*out)->lit.data + outer_offset(&p, b), p.win_outer,
                    (const char *)ops[0]->lit.data + whole_offset(&p, start),
                    p.win_whole);
  } while (lw_next_index(p.n_batch, p.batch_dims, b));
  return NULL;
}

/* ---- scatter ---- */

enum { MAX_SCATTER = 16 };

typedef struct {
  lw_eval *e;
  lw_prog *f;
  int32_t n;
  char *whole[MAX_SCATTER];
  const char *updates[MAX_SCATTER];
  int64_t esize[MAX_SCATTER];
  int64_t scale; /* the plan's byte strides are those of operand 0's type */
} scatterer;

static lw_status combine_run(const scatterer *s, int64_t n, int64_t whole_at,
                             int64_t outer_at) {
  const void *in[2 * MAX_SCATTER];
  void *out[MAX_SCATTER];
  for (int32_t k = 0; k < s->n; k++) {
    out[k] = s->whole[k] + whole_at / s->scale * s->esize[k];
    in[k] = out[k];
    in[s->n + k] = s->updates[k] + outer_at / s->scale * s->esize[k];
  }
  return lw_prog_run(s->e, s->f, n, in, out);
}

/* "Updates in row-major order of the update's scatter indices, then of its
 * window." Windows have distinct targets, so rows go at once. */
static lw_status scatter_window(const scatterer *s, const index_plan *p,
                                int64_t whole_at, int64_t outer_at) {
  int64_t w[LW_MAX_RANK] = {0};
  int32_t last = p->n_win - 1;
  bool rows = p->n_win > 0 && p->win_whole[last] == s->scale &&
              p->win_outer[last] == s->scale;
  int32_t walked = rows ? last : p->n_win;
  do {
    int64_t a = whole_at, b = outer_at;
    for (int32_t k = 0; k < walked; k++) {
      a += w[k] * p->win_whole[k];
      b += w[k] * p->win_outer[k];
    }
    LW_TRY(combine_run(s, rows ? p->win_dims[last] : 1, a, b));
  } while (lw_next_index(walked, p->win_dims, w));
  return NULL;
}

static bool window_fits(const index_plan *p, const int64_t *start) {
  for (int32_t d = 0; d < p->whole->rank; d++)
    if (start[d] < 0 || start[d] > p->whole->dims[d] - p->window[d])
      return false;
  return true;
}

static lw_status scatter_all(const scatterer *s, const index_plan *p,
                             const lw_val *indices) {
  int64_t b[LW_MAX_RANK] = {0}, start[LW_MAX_RANK];
  if (nothing(p)) return NULL;
  do {
    window_start(p, indices, b, start);
    if (window_fits(p, start))
      LW_TRY(scatter_window(s, p, whole_offset(p, start), outer_offset(p, b)));
  } while (lw_next_index(p->n_batch, p->batch_dims, b));
  return NULL;
}

static lw_status scatter_plan(const lw_inst *i, lw_val **ops, int32_t n,
                              index_plan *p) {
  p->whole = ops[0]->lit.shape;
  p->indices = ops[n]->lit.shape;
  p->outer = ops[n + 1]->lit.shape;
  p->offset = lw_inst_i64s(i, LW_ATTR_UPDATE_WINDOW_DIMS, &p->n_offset);
  p->collapsed = lw_inst_i64s(i, LW_ATTR_INSERTED_WINDOW_DIMS, &p->n_collapsed);
  p->map = lw_inst_i64s(i, LW_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, &p->n_map);
  p->op_batch = lw_inst_i64s(i, LW_ATTR_INPUT_BATCHING_DIMS, &p->n_op_batch);
  p->ix_batch =
      lw_inst_i64s(i, LW_ATTR_SCATTER_INDICES_BATCHING_DIMS, &p->n_ix_batch);
  p->vector_dim = lw_inst_i64(i, LW_ATTR_INDEX_VECTOR_DIM, p->indices->rank);
  if (!in_range(p->offset, p->n_offset, p->outer->rank)) return bad_dims();
  for (int32_t d = 0, k = 0; d < p->whole->rank; d++) {
    bool skip = has(p->collapsed, p->n_collapsed, d) ||
                has(p->op_batch, p->n_op_batch, d);
    if (!skip && k >= p->n_offset) return bad_dims();
    p->window[d] = skip ? 1 : p->outer->dims[p->offset[k++]];
  }
  return finish_plan(p);
}

lw_status lw_eval_scatter(lw_eval *e, const lw_inst *i, lw_val **ops,
                          lw_val **out) {
  int32_t n = (i->n_operands - 1) / 2;
  if (n < 1 || n > MAX_SCATTER || i->n_operands != 2 * n + 1)
    return lw_error(LW_INVALID_ARGUMENT, "scatter takes up to %d operands",
                    MAX_SCATTER);
  index_plan p = {0};
  LW_TRY(scatter_plan(i, ops, n, &p));
  scatterer s = {.e = e, .n = n, .scale = lw_esize(ops[0])};
  LW_TRY(lw_prog_get(e, lw_inst_comp(i, LW_ATTR_TO_APPLY), &s.f));
  bool ok = lw_prog_params(s.f) == 2 * n && lw_prog_results(s.f) == n;
  for (int32_t k = 0; ok && k < n; k++)
    ok = lw_shape_same_dims(ops[k]->lit.shape, p.whole) &&
         lw_shape_same_dims(ops[n + 1 + k]->lit.shape, p.outer) &&
         lw_prog_result_type(s.f, k) == ops[k]->lit.shape->type &&
         ops[n + 1 + k]->lit.shape->type == ops[k]->lit.shape->type;
  if (!ok)
    return lw_error(LW_INVALID_ARGUMENT,
                    "the combiner does not fit operands and updates");
  lw_val *outs[MAX_SCATTER] = {0};
  lw_status st = NULL;
  for (int32_t k = 0; k < n && !st; k++) {
    st = lw_val_own(e, ops[k], &outs[k]);
    if (st) break;
    ops[k] = NULL;
    s.whole[k] = outs[k]->lit.data;
    s.updates[k] = ops[n + 1 + k]->lit.data;
    s.esize[k] = lw_esize(outs[k]);
  }
  if (!st) st = scatter_all(&s, &p, ops[n]);
  if (st) {
    for (int32_t k = 0; k < n; k++) lw_val_release(e, outs[k]);
    return st;
  }
  *out =
      lw_shape_is_tuple(i->shape) ? lw_val_tuple(i->shape, n, outs) : outs[0];
  return NULL;
}
