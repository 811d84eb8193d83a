/* Inference for what contracts or indexes, and for map and scan. */
#include <stdlib.h>
#include <string.h>

#include "hlo/infer_impl.h"

/* The type asked for (preferred), when it can hold the inferred one: XLA lets
 * integer and float products widen. */
static lw_prim preferred_type(const infer *f, lw_prim inferred) {
  const lw_shape *given = f->inst->shape;
  if (!given || !lw_shape_is_array(given)) return inferred;
  lw_prim t = given->type;
  if (t == inferred) return t;
  bool int_ok = lw_prim_is_int(inferred) &&
                (lw_prim_is_float(t) ||
                 (lw_prim_is_int(t) &&
                  lw_prim_table[t].bits >= lw_prim_table[inferred].bits));
  bool float_ok = lw_prim_is_float(inferred) && lw_prim_is_float(t);
  bool complex_ok = lw_prim_is_complex(inferred) && lw_prim_is_complex(t) &&
                    lw_prim_table[t].bits >= lw_prim_table[inferred].bits;
  return int_ok || float_ok || complex_ok ? t : inferred;
}

/* The type of products of a's and b's elements. */
lw_status infer_product_type(const infer *f, const lw_shape *a,
                             const lw_shape *b, lw_prim *out) {
  lw_prim x = a->type, y = b->type, t;
  if (x == y)
    t = x;
  else if (lw_prim_is_float(x) && lw_prim_is_float(y))
    t = lw_prim_higher_precision(x, y);
  else if (lw_prim_is_int(x) && lw_prim_is_int(y))
    t = lw_prim_table[y].bits > lw_prim_table[x].bits ? y : x;
  else if (lw_prim_is_float(x) != lw_prim_is_float(y) &&
           (lw_prim_is_int(x) || lw_prim_is_int(y)))
    t = lw_prim_is_float(x) ? x : y;
  else
    return LW_BAD("operands must have the same element type; got %s and %s",
                  infer_str(f, a), infer_str(f, b));
  *out = preferred_type(f, t);
  return NULL;
}

/* ---- dot ---- */

typedef struct {
  const int64_t *lb, *lc, *rb, *rc;
  int32_t nlb, nlc, nrb, nrc;
} dot_dims;

static dot_dims get_dot_dims(const lw_inst *i) {
  dot_dims d;
  d.lb = lw_inst_i64s(i, LW_ATTR_LHS_BATCH_DIMS, &d.nlb);
  d.lc = lw_inst_i64s(i, LW_ATTR_LHS_CONTRACTING_DIMS, &d.nlc);
  d.rb = lw_inst_i64s(i, LW_ATTR_RHS_BATCH_DIMS, &d.nrb);
  d.rc = lw_inst_i64s(i, LW_ATTR_RHS_CONTRACTING_DIMS, &d.nrc);
  return d;
}

static lw_status check_side(const char *side, const lw_shape *s,
                            const int64_t *b, int32_t nb, const int64_t *c,
                            int32_t nc) {
  char what[48];
  const char *names[2] = {"batch_dims", "contracting_dims"};
  const int64_t *lists[2] = {b, c};
  int32_t counts[2] = {nb, nc};
  for (int k = 0; k < 2; k++) {
    what[0] = 0;
    strcat(strcat(strcat(what, side), "_"), names[k]);
    LW_TRY(infer_check_dims(what, lists[k], counts[k], s->rank, false));
  }
  for (int32_t i = 0; i < nc; i++)
    if (infer_contains(b, nb, c[i]))
      return LW_BAD("dimension %lld of the %s is both batch and contracting",
                    (long long)c[i], side);
  return NULL;
}

/* skip_contract: a scaled operand's own extents may differ. */
static lw_status check_dot(const infer *f, const lw_shape *a, const lw_shape *b,
                           const dot_dims *d) {
  LW_TRY(check_side("lhs", a, d->lb, d->nlb, d->lc, d->nlc));
  LW_TRY(check_side("rhs", b, d->rb, d->nrb, d->rc, d->nrc));
  if (d->nlb != d->nrb || d->nlc != d->nrc)
    return LW_BAD(
        "lhs and rhs must have as many batch (%d, %d) and contracting "
        "(%d, %d) dimensions",
        d->nlb, d->nrb, d->nlc, d->nrc);
  for (int32_t i = 0; i < d->nlb; i++)
    if (a->dims[d->lb[i]] != b->dims[d->rb[i]])
      return LW_BAD(
          "batch dimensions %lld and %lld of %s and %s differ in size",
          (long long)d->lb[i], (long long)d->rb[i], infer_str(f, a),
          infer_str(f, b));
  for (int32_t i = 0; i < d->nlc; i++)
    if (a->dims[d->lc[i]] != b->dims[d->rc[i]])
      return LW_BAD(
          "contracting dimensions %lld and %lld of %s and %s differ "
          "in size",
          (long long)d->lc[i], (long long)d->rc[i], infer_str(f, a),
          infer_str(f, b));
  return NULL;
}

/* Dimensions of s that are neither in x nor in y. */
static bool push_free(dim_list *d, const lw_shape *s, const int64_t *x,
                      int32_t nx, const int64_t *y, int32_t ny) {
  for (int32_t i = 0; i < s->rank; i++)
    if (!infer_contains(x, nx, i) && !infer_contains(y, ny, i) &&
        !dim_push(d, s->dims[i], infer_dyn(s, i)))
      return false;
  return true;
}

static lw_status dot_result(const infer *f, const lw_shape *a,
                            const lw_shape *b, const dot_dims *d,
                            const lw_shape **out) {
  dim_list r = {.rank = 0};
  for (int32_t i = 0; i < d->nlb; i++)
    dim_push(&r, a->dims[d->lb[i]], infer_dyn(a, (int32_t)d->lb[i]));
  if (!push_free(&r, a, d->lb, d->nlb, d->lc, d->nlc) ||
      !push_free(&r, b, d->rb, d->nrb, d->rc, d->nrc))
    return LW_BAD("the result would have more than %d dimensions", LW_MAX_RANK);
  lw_prim type;
  LW_TRY(infer_product_type(f, a, b, &type));
  *out = infer_make(f, type, &r, NULL);
  return NULL;
}

lw_status infer_dot(const infer *f, const lw_shape **out) {
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(infer_want_array(f, 1));
  dot_dims d = get_dot_dims(f->inst);
  LW_TRY(check_dot(f, infer_op(f, 0), infer_op(f, 1), &d));
  return dot_result(f, infer_op(f, 0), infer_op(f, 1), &d, out);
}

/* Scales have the operands' dimensions, each extent dividing the operand's; a
 * scalar scale stands for 1. */
static lw_status check_scale(const infer *f, int32_t op, int32_t scale) {
  const lw_shape *s = infer_op(f, scale), *a = infer_op(f, op);
  LW_TRY(infer_want_array(f, scale));
  if (s->rank == 0) return NULL;
  bool ok = s->rank == a->rank;
  for (int32_t i = 0; ok && i < a->rank; i++)
    ok = s->dims[i] > 0 ? a->dims[i] % s->dims[i] == 0
                        : s->dims[i] == a->dims[i];
  if (ok) return NULL;
  return LW_BAD(
      "the scale of operand %d must divide %s dimension by dimension; "
      "it is %s",
      op, infer_str(f, a), infer_str(f, s));
}

lw_status infer_scaled_dot(const infer *f, const lw_shape **out) {
  LW_TRY(infer_dot(f, out));
  LW_TRY(check_scale(f, 0, 2));
  return check_scale(f, 1, 3);
}

/* The three modes: the ragged dimension is a free one of the lhs (the groups
 * dimension of the rhs goes away), a contracting one (groups lead the result),
 * or a batch one (a plain dot). */
lw_status infer_ragged_dot(const infer *f, const lw_shape **out) {
  for (int32_t k = 0; k < 3; k++) LW_TRY(infer_want_array(f, k));
  const lw_shape *a = infer_op(f, 0), *b = infer_op(f, 1), *g = infer_op(f, 2);
  dot_dims d = get_dot_dims(f->inst);
  LW_TRY(check_dot(f, a, b, &d));
  int32_t n_ragged, n_group;
  const int64_t *ragged =
      lw_inst_i64s(f->inst, LW_ATTR_LHS_RAGGED_DIMS, &n_ragged);
  const int64_t *group =
      lw_inst_i64s(f->inst, LW_ATTR_RHS_GROUP_DIMS, &n_group);
  if (n_ragged != 1) return LW_BAD("lhs_ragged_dims must name one dimension");
  LW_TRY(infer_check_dims("lhs_ragged_dims", ragged, 1, a->rank, false));
  LW_TRY(infer_check_dims("rhs_group_dims", group, n_group, b->rank, false));
  if (!lw_prim_is_int(g->type) || g->rank < 1)
    return LW_BAD("group sizes must be an integer vector; it is %s",
                  infer_str(f, g));
  bool batch = infer_contains(d.lb, d.nlb, ragged[0]);
  bool contract = infer_contains(d.lc, d.nlc, ragged[0]);
  if (n_group != (batch || contract ? 0 : 1))
    return LW_BAD("rhs_group_dims must name %s dimension here",
                  batch || contract ? "no" : "one");
  dim_list r = {.rank = 0};
  if (contract) dim_push(&r, g->dims[g->rank - 1], false);
  for (int32_t i = 0; i < d.nlb; i++)
    if (!dim_push(&r, a->dims[d.lb[i]], infer_dyn(a, (int32_t)d.lb[i])))
      return LW_BAD("the result has too many dimensions");
  int64_t drop[LW_MAX_RANK];
  int32_t n_drop = 0;
  for (int32_t i = 0; i < d.nrb; i++) drop[n_drop++] = d.rb[i];
  for (int32_t i = 0; i < n_group; i++) {
    if (infer_contains(d.rb, d.nrb, group[i]) ||
        infer_contains(d.rc, d.nrc, group[i]))
      return LW_BAD("the group dimension must be a free one of the rhs");
    if (b->dims[group[i]] != g->dims[g->rank - 1])
      return LW_BAD("the group dimension of %s must have %lld groups as %s",
                    infer_str(f, b), (long long)g->dims[g->rank - 1],
                    infer_str(f, g));
    drop[n_drop++] = group[i];
  }
  if (!push_free(&r, a, d.lb, d.nlb, d.lc, d.nlc) ||
      !push_free(&r, b, drop, n_drop, d.rc, d.nrc))
    return LW_BAD("the result has too many dimensions");
  lw_prim type;
  LW_TRY(infer_product_type(f, a, b, &type));
  *out = infer_make(f, type, &r, NULL);
  return NULL;
}

/* ---- gather and scatter ---- */

typedef struct {
  const int64_t *window, *removed, *index_map, *op_batch, *idx_batch;
  int32_t n_window, n_removed, n_map, n_op_batch, n_idx_batch;
  int64_t vector_dim;
  const char *window_name, *removed_name, *map_name, *batch_name;
} index_dims;

static index_dims gather_dims(const lw_inst *i) {
  index_dims d;
  d.window = lw_inst_i64s(i, LW_ATTR_OFFSET_DIMS, &d.n_window);
  d.removed = lw_inst_i64s(i, LW_ATTR_COLLAPSED_SLICE_DIMS, &d.n_removed);
  d.index_map = lw_inst_i64s(i, LW_ATTR_START_INDEX_MAP, &d.n_map);
  d.op_batch = lw_inst_i64s(i, LW_ATTR_OPERAND_BATCHING_DIMS, &d.n_op_batch);
  d.idx_batch =
      lw_inst_i64s(i, LW_ATTR_START_INDICES_BATCHING_DIMS, &d.n_idx_batch);
  d.vector_dim = lw_inst_i64(i, LW_ATTR_INDEX_VECTOR_DIM, -1);
  d.window_name = "offset_dims";
  d.removed_name = "collapsed_slice_dims";
  d.map_name = "start_index_map";
  d.batch_name = "operand_batching_dims";
  return d;
}

static index_dims scatter_dims(const lw_inst *i) {
  index_dims d;
  d.window = lw_inst_i64s(i, LW_ATTR_UPDATE_WINDOW_DIMS, &d.n_window);
  d.removed = lw_inst_i64s(i, LW_ATTR_INSERTED_WINDOW_DIMS, &d.n_removed);
  d.index_map = lw_inst_i64s(i, LW_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, &d.n_map);
  d.op_batch = lw_inst_i64s(i, LW_ATTR_INPUT_BATCHING_DIMS, &d.n_op_batch);
  d.idx_batch =
      lw_inst_i64s(i, LW_ATTR_SCATTER_INDICES_BATCHING_DIMS, &d.n_idx_batch);
  d.vector_dim = lw_inst_i64(i, LW_ATTR_INDEX_VECTOR_DIM, -1);
  d.window_name = "update_window_dims";
  d.removed_name = "inserted_window_dims";
  d.map_name = "scatter_dims_to_operand_dims";
  d.batch_name = "input_batching_dims";
  return d;
}

/* Rules gather and scatter share: operand s, indices idx. */
static lw_status check_index_dims(const infer *f, const index_dims *d,
                                  const lw_shape *s, const lw_shape *idx) {
  if (!lw_prim_is_int(idx->type))
    return LW_BAD("indices must be integers; they are %s", infer_str(f, idx));
  if (d->vector_dim < 0 || d->vector_dim > idx->rank)
    return LW_BAD("index_vector_dim %lld is out of range for indices %s",
                  (long long)d->vector_dim, infer_str(f, idx));
  LW_TRY(infer_check_dims(d->removed_name, d->removed, d->n_removed, s->rank,
                          true));
  LW_TRY(infer_check_dims(d->batch_name, d->op_batch, d->n_op_batch, s->rank,
                          true));
  LW_TRY(infer_check_dims(d->map_name, d->index_map, d->n_map, s->rank, false));
  LW_TRY(infer_check_dims("indices batching dims", d->idx_batch, d->n_idx_batch,
                          idx->rank, false));
  int64_t vector = d->vector_dim == idx->rank ? 1 : idx->dims[d->vector_dim];
  if (d->n_map != vector)
    return LW_BAD("%s has %d entries, but an index vector of %s has %lld",
                  d->map_name, d->n_map, infer_str(f, idx), (long long)vector);
  if (d->n_op_batch != d->n_idx_batch)
    return LW_BAD(
        "operand and indices must have as many batching dimensions; "
        "got %d and %d",
        d->n_op_batch, d->n_idx_batch);
  for (int32_t i = 0; i < d->n_op_batch; i++) {
    if (infer_contains(d->removed, d->n_removed, d->op_batch[i]) ||
        infer_contains(d->index_map, d->n_map, d->op_batch[i]))
      return LW_BAD("batching dimension %lld is also in %s or %s",
                    (long long)d->op_batch[i], d->removed_name, d->map_name);
    if (d->idx_batch[i] == d->vector_dim)
      return LW_BAD("index_vector_dim cannot be a batching dimension");
    if (s->dims[d->op_batch[i]] != idx->dims[d->idx_batch[i]])
      return LW_BAD(
          "batching dimensions %lld of %s and %lld of %s differ in "
          "size",
          (long long)d->op_batch[i], infer_str(f, s),
          (long long)d->idx_batch[i], infer_str(f, idx));
  }
  return NULL;
}

static bool removed_dim(const index_dims *d, int64_t i) {
  return infer_contains(d->removed, d->n_removed, i) ||
         infer_contains(d->op_batch, d->n_op_batch, i);
}

static lw_status check_slices(const infer *f, const index_dims *d,
                              const lw_shape *s, const int64_t *sizes,
                              int32_t n) {
  if (n != s->rank)
    return LW_BAD(
        "slice_sizes has %d numbers, the operand %s has %d "
        "dimensions",
        n, infer_str(f, s), s->rank);
  for (int32_t i = 0; i < n; i++) {
    if (sizes[i] < 0 || (s->dims[i] >= 0 && sizes[i] > s->dims[i]))
      return LW_BAD("slice size %lld of dimension %d is out of bounds for %s",
                    (long long)sizes[i], i, infer_str(f, s));
    if (removed_dim(d, i) && sizes[i] > 1)
      return LW_BAD(
          "dimension %d is collapsed or batching, so its slice size "
          "must be at most 1; it is %lld",
          i, (long long)sizes[i]);
  }
  return NULL;
}

/* The next dimension of idx that is not the index vector, from *at on. */
static int32_t next_index_dim(const index_dims *d, int32_t *at) {
  if (*at == d->vector_dim) ++*at;
  return (*at)++;
}

lw_status infer_gather(const infer *f, const lw_shape **out) {
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(infer_want_array(f, 1));
  const lw_shape *s = infer_op(f, 0), *idx = infer_op(f, 1);
  index_dims d = gather_dims(f->inst);
  LW_TRY(check_index_dims(f, &d, s, idx));
  int32_t n;
  const int64_t *sizes = lw_inst_i64s(f->inst, LW_ATTR_SLICE_SIZES, &n);
  LW_TRY(check_slices(f, &d, s, sizes, n));
  int32_t batch = idx->rank - (d.vector_dim < idx->rank ? 1 : 0);
  int32_t rank = batch + d.n_window;
  if (rank > LW_MAX_RANK) return LW_BAD("the result has too many dimensions");
  LW_TRY(infer_check_dims(d.window_name, d.window, d.n_window, rank, true));
  if (d.n_window != s->rank - d.n_removed - d.n_op_batch)
    return LW_BAD(
        "offset_dims has %d entries, but slices of %s keep %d "
        "dimensions",
        d.n_window, infer_str(f, s), s->rank - d.n_removed - d.n_op_batch);
  dim_list r = {.rank = 0};
  for (int32_t i = 0, at = 0, op = 0; i < rank; i++) {
    if (infer_contains(d.window, d.n_window, i)) {
      while (removed_dim(&d, op)) op++;
      dim_push(&r, sizes[op], infer_dyn(s, op) && sizes[op] == s->dims[op]);
      op++;
    } else {
      int32_t k = next_index_dim(&d, &at);
      dim_push(&r, idx->dims[k], infer_dyn(idx, k));
    }
  }
  *out = infer_make(f, s->type, &r, NULL);
  return NULL;
}

static lw_status check_updates(const infer *f, const index_dims *d,
                               const lw_shape *s, const lw_shape *idx,
                               const lw_shape *up) {
  int32_t batch = idx->rank - (d->vector_dim < idx->rank ? 1 : 0);
  if (up->rank != batch + d->n_window)
    return LW_BAD("updates must have %d dimensions; they are %s",
                  batch + d->n_window, infer_str(f, up));
  LW_TRY(
      infer_check_dims(d->window_name, d->window, d->n_window, up->rank, true));
  if (d->n_window != s->rank - d->n_removed - d->n_op_batch)
    return LW_BAD(
        "update_window_dims has %d entries, but windows of %s have %d "
        "dimensions",
        d->n_window, infer_str(f, s), s->rank - d->n_removed - d->n_op_batch);
  for (int32_t i = 0, at = 0, op = 0; i < up->rank; i++) {
    if (infer_contains(d->window, d->n_window, i)) {
      while (removed_dim(d, op)) op++;
      if (s->dims[op] >= 0 && up->dims[i] > s->dims[op])
        return LW_BAD(
            "window dimension %d of the updates %s exceeds dimension "
            "%d of %s",
            i, infer_str(f, up), op, infer_str(f, s));
      op++;
    } else {
      int32_t k = next_index_dim(d, &at);
      if (up->dims[i] != idx->dims[k])
        return LW_BAD(
            "dimension %d of the updates %s must equal dimension %d "
            "of the indices %s",
            i, infer_str(f, up), k, infer_str(f, idx));
    }
  }
  return NULL;
}

/* The combiner: 2n scalars to n. */
static lw_status check_combiner(const infer *f, int32_t n) {
  const lw_comp *c = lw_inst_comp(f->inst, LW_ATTR_TO_APPLY);
  const lw_shape *root;
  LW_TRY(infer_root("to_apply", c, 2 * (int64_t)n, &root));
  if (lw_shape_is_tuple(root) ? root->n_elems != n : n != 1)
    return LW_BAD("to_apply=%s must return %d value%s; it returns %s", c->name,
                  n, n == 1 ? "" : "s", infer_str(f, root));
  for (int32_t k = 0; k < n; k++) {
    lw_prim t = infer_op(f, k)->type;
    LW_TRY(infer_want_scalar(f, "result", k, infer_result_of(root, n, k), t,
                             false));
    LW_TRY(infer_want_scalar(f, "parameter", k, infer_param(c, k), t, false));
    LW_TRY(infer_want_scalar(f, "parameter", n + k, infer_param(c, n + k), t,
                             false));
  }
  return NULL;
}

lw_status infer_scatter(const infer *f, const lw_shape **out) {
  int32_t total = f->inst->n_operands, n = (total - 1) / 2;
  if (total < 3 || total % 2 == 0)
    return LW_BAD("needs n operands, the indices and n updates; got %d", total);
  for (int32_t k = 0; k < total; k++) LW_TRY(infer_want_array(f, k));
  index_dims d = scatter_dims(f->inst);
  const lw_shape *idx = infer_op(f, n), *s = infer_op(f, 0);
  LW_TRY(check_index_dims(f, &d, s, idx));
  for (int32_t k = 0; k < n; k++) {
    const lw_shape *a = infer_op(f, k), *up = infer_op(f, n + 1 + k);
    if (!lw_shape_same_dims(s, a))
      return LW_BAD("operands must have equal dimensions; got %s and %s",
                    infer_str(f, s), infer_str(f, a));
    if (!lw_prim_same_kind(a->type, up->type))
      return LW_BAD("updates %s must have the element type of %s",
                    infer_str(f, up), infer_str(f, a));
    LW_TRY(check_updates(f, &d, a, idx, up));
  }
  LW_TRY(check_combiner(f, n));
  if (n == 1) {
    *out = s;
    return NULL;
  }
  const lw_shape **elems = malloc(lw_array_bytes((size_t)n, sizeof *elems));
  if (!elems) lw_oom((size_t)n * sizeof *elems);
  for (int32_t k = 0; k < n; k++) elems[k] = infer_op(f, k);
  *out = lw_shape_tuple(f->ctx, n, elems);
  free(elems);
  return NULL;
}

/* ---- map and scan ---- */

lw_status infer_map(const infer *f, const lw_shape **out) {
  int32_t n = f->inst->n_operands, n_dims;
  const int64_t *dims = lw_inst_i64s(f->inst, LW_ATTR_DIMENSIONS, &n_dims);
  if (n < 1) return LW_BAD("needs at least one operand");
  for (int32_t k = 0; k < n; k++) LW_TRY(infer_want_array(f, k));
  const lw_shape *s = infer_op(f, 0), *root;
  bool in_order = n_dims == s->rank;
  for (int32_t i = 0; in_order && i < n_dims; i++) in_order = dims[i] == i;
  if (!in_order)
    return LW_BAD("dimensions must be 0 to %d in order", s->rank - 1);
  const lw_comp *c = lw_inst_comp(f->inst, LW_ATTR_TO_APPLY);
  LW_TRY(infer_root("to_apply", c, n, &root));
  if (!lw_shape_is_array(root) || root->rank)
    return LW_BAD("to_apply=%s must return a scalar; it returns %s", c->name,
                  infer_str(f, root));
  dim_list d;
  dim_list_of(&d, s);
  for (int32_t k = 0; k < n; k++) {
    const lw_shape *a = infer_op(f, k);
    if (!lw_shape_same_dims(s, a))
      return LW_BAD("operands must have equal dimensions; got %s and %s",
                    infer_str(f, s), infer_str(f, a));
    LW_TRY(infer_want_scalar(f, "parameter", k, infer_param(c, k), a->type,
                             false));
    for (int32_t i = 0; i < d.rank; i++) d.dynamic[i] |= infer_dyn(a, i);
  }
  *out = infer_make(f, root->type, &d, NULL);
  return NULL;
}

/* A scanned array without (or with) its scan dimension. */
static bool slice_matches(const lw_shape *whole, const lw_shape *slice,
                          int64_t dim) {
  if (!lw_shape_is_array(slice) || slice->type != whole->type ||
      slice->rank != whole->rank - 1)
    return false;
  for (int32_t i = 0, k = 0; i < whole->rank; i++)
    if (i != dim && whole->dims[i] != slice->dims[k++]) return false;
  return true;
}

/* The inputs have one extent along dim and the computation takes slices. */
static lw_status scan_inputs(const infer *f, const lw_comp *c, int32_t n_in,
                             int64_t dim, int64_t *length) {
  for (int32_t k = 0; k < n_in; k++) {
    const lw_shape *a = infer_op(f, k);
    LW_TRY(infer_check_dims("dimensions", &dim, 1, a->rank, false));
    if (k && a->dims[dim] != *length)
      return LW_BAD("inputs must have one extent in dimension %lld",
                    (long long)dim);
    *length = a->dims[dim];
    if (!slice_matches(a, infer_param(c, k), dim))
      return LW_BAD(
          "parameter %d of to_apply=%s must be a slice of %s; it is %s", k,
          c->name, infer_str(f, a), infer_str(f, infer_param(c, k)));
  }
  return NULL;
}

/* A carry has one shape: operand n_in + k, parameter, last results. */
static lw_status scan_carries(const infer *f, const lw_comp *c, int32_t n_in,
                              int32_t carries, const lw_shape *root) {
  int32_t n_out = root->n_elems - carries;
  for (int32_t k = 0; k < carries; k++) {
    const lw_shape *init = infer_op(f, n_in + k);
    if (!lw_shape_compatible(init, root->elems[n_out + k]) ||
        !lw_shape_compatible(init, infer_param(c, n_in + k)))
      return LW_BAD("carry %d of to_apply=%s does not keep its shape %s", k,
                    c->name, infer_str(f, init));
  }
  return NULL;
}

/* length slices e, stacked along dim. */
static lw_status scan_stacked(const infer *f, const lw_comp *c, int32_t k,
                              const lw_shape *e, int64_t dim, int64_t length,
                              const lw_shape **out) {
  dim_list d = {.rank = 0};
  if (!lw_shape_is_array(e) || dim > e->rank || e->rank >= LW_MAX_RANK)
    return LW_BAD("output %d of to_apply=%s cannot be stacked: %s", k, c->name,
                  infer_str(f, e));
  for (int32_t i = 0; i <= e->rank; i++) {
    if (i == dim) dim_push(&d, length, false);
    if (i < e->rank) dim_push(&d, e->dims[i], infer_dyn(e, i));
  }
  *out = infer_make(f, e->type, &d, NULL);
  return NULL;
}

/* Operands: inputs, then num_carries start values. The computation takes a
 * slice of each input and the carries, and returns slices of the outputs and
 * the new carries. */
lw_status infer_scan(const infer *f, const lw_shape **out) {
  int32_t n = f->inst->n_operands, n_dims;
  int64_t carries = lw_inst_i64(f->inst, LW_ATTR_NUM_CARRIES, 0), length = 0;
  const int64_t *dims = lw_inst_i64s(f->inst, LW_ATTR_DIMENSIONS, &n_dims);
  if (carries < 0 || carries >= n)
    return LW_BAD(
        "num_carries=%lld must leave at least one input of %d operands",
        (long long)carries, n);
  int32_t n_in = n - (int32_t)carries;
  for (int32_t k = 0; k < n; k++) LW_TRY(infer_want_array(f, k));
  if (n_dims != 1) return LW_BAD("dimensions must name one dimension");
  const lw_comp *c = lw_inst_comp(f->inst, LW_ATTR_TO_APPLY);
  const lw_shape *root;
  LW_TRY(infer_root("to_apply", c, n, &root));
  LW_TRY(scan_inputs(f, c, n_in, dims[0], &length));
  if (!lw_shape_is_tuple(root) || root->n_elems < carries)
    return LW_BAD(
        "to_apply=%s must return a tuple of outputs and %lld carries; "
        "it returns %s",
        c->name, (long long)carries, infer_str(f, root));
  LW_TRY(scan_carries(f, c, n_in, (int32_t)carries, root));
  const lw_shape **elems =
      malloc(lw_array_bytes((size_t)root->n_elems + 1, sizeof *elems));
  if (!elems) lw_oom((size_t)root->n_elems * sizeof *elems);
  lw_status st = NULL;
  for (int32_t k = 0; k < root->n_elems && !st; k++) {
    elems[k] = root->elems[k];
    if (k < root->n_elems - carries)
      st = scan_stacked(f, c, k, root->elems[k], dims[0], length, &elems[k]);
  }
  if (!st) *out = lw_shape_tuple(f->ctx, root->n_elems, elems);
  free(elems);
  return st;
}
