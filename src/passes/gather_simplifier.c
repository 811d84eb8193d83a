/* gather-simplifier: gathers and scatters that are simpler operations.
 *
 * gather clamps its starts as dynamic-slice does, so one index makes a
 * dynamic-slice, and a start that can only be 0 makes a broadcast of the
 * operand. Scatter is different: an update window that leaves the operand is
 * dropped whole, so it becomes a dynamic-update-slice only where its index is
 * known to be inside. Its combiner is then one elementwise operation on what
 * was there and the update.
 */
#include "hlo/fold.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

static bool contains(const int64_t *v, int32_t n, int64_t x) {
  for (int32_t k = 0; k < n; k++)
    if (v[k] == x) return true;
  return false;
}

/* ---- shared: the one index vector as scalars ---- */

/* Component k of the only index vector of indices (one vector). */
static lw_inst *component(lw_rw *r, lw_inst *indices, int64_t k) {
  int64_t n = indices->shape->elements, v[3] = {k, k + 1, 1};
  const lw_shape *flat =
      lw_mk_array(r->m, indices->shape->type, 1, (int64_t[]){n});
  const lw_shape *scalar = lw_mk_array(r->m, indices->shape->type, 0, NULL);
  lw_inst *x = lw_rw_reshape(r, indices, flat);
  return lw_rw_reshape(r, lw_rw_slice(r, x, v), scalar);
}

static int64_t vector_length(const lw_inst *indices, int64_t vector_dim) {
  return vector_dim < indices->shape->rank ? indices->shape->dims[vector_dim]
                                           : 1;
}

/* Starts of a dynamic (update) slice: operand dim map[k] starts at component
 * k, the other dims at 0. */
static void starts(lw_rw *r, lw_inst *indices, int32_t rank, int32_t n,
                   const int64_t *map, lw_inst **out) {
  const lw_shape *s = lw_mk_array(r->m, indices->shape->type, 0, NULL);
  lw_inst *zero = NULL;
  for (int32_t d = 0; d < rank; d++) {
    out[d] = NULL;
    for (int32_t k = 0; k < n; k++)
      if (map[k] == d) out[d] = component(r, indices, k);
    if (out[d]) continue;
    if (!zero) zero = lw_rw_const_int(r, s, 0);
    out[d] = zero;
  }
}

/* ---- gather ---- */

typedef struct {
  int32_t n_offset, n_collapsed, n_map, n_batch, n_sizes;
  const int64_t *offset, *collapsed, *map, *batch, *sizes;
  int64_t vector_dim;
} gather_dims;

static gather_dims dims_of(const lw_inst *i) {
  gather_dims g;
  g.offset = lw_inst_i64s(i, LW_ATTR_OFFSET_DIMS, &g.n_offset);
  g.collapsed = lw_inst_i64s(i, LW_ATTR_COLLAPSED_SLICE_DIMS, &g.n_collapsed);
  g.map = lw_inst_i64s(i, LW_ATTR_START_INDEX_MAP, &g.n_map);
  g.batch = lw_inst_i64s(i, LW_ATTR_OPERAND_BATCHING_DIMS, &g.n_batch);
  g.sizes = lw_inst_i64s(i, LW_ATTR_SLICE_SIZES, &g.n_sizes);
  g.vector_dim = lw_inst_i64(i, LW_ATTR_INDEX_VECTOR_DIM, 0);
  return g;
}

/* Window dims in result order: the slice's dims that are not collapsed. Lists
 * the result dim of each. */
static lw_inst *place_window(lw_rw *r, lw_inst *i, const gather_dims *g,
                             lw_inst *window) {
  int64_t kept[LW_MAX_RANK];
  int32_t n = 0;
  for (int32_t d = 0; d < g->n_sizes; d++)
    if (!contains(g->collapsed, g->n_collapsed, d) &&
        !contains(g->batch, g->n_batch, d))
      kept[n++] = g->sizes[d];
  const lw_shape *s = lw_mk_array(r->m, i->shape->type, n, kept);
  lw_inst *w = lw_rw_reshape(r, window, s);
  return lw_rw_broadcast(r, w, i->shape, n, g->offset);
}

static bool offsets_sorted(const gather_dims *g) {
  for (int32_t k = 1; k < g->n_offset; k++)
    if (g->offset[k] < g->offset[k - 1]) return false;
  return true;
}

/* Every indexed dim is taken whole (or its index is known): all windows are
 * the same, whatever the indices say. */
static bool known_window(const lw_inst *i, const gather_dims *g, int64_t *v) {
  const lw_inst *x = lw_op(i, 0);
  int64_t lo, hi;
  lw_int_range(lw_op(i, 1), &lo, &hi);
  for (int32_t d = 0; d < x->shape->rank; d++) {
    int64_t max = x->shape->dims[d] - g->sizes[d], at = 0;
    if (contains(g->map, g->n_map, d) && max > 0) {
      bool low = hi <= 0, high = lo >= max;
      if (lw_op(i, 1)->shape->type == LW_U64 && lo < 0) return false;
      if (!low && !high && !(lo == hi)) return false;
      at = low ? 0 : high ? max : lo;
    }
    v[3 * d] = at;
    v[3 * d + 1] = at + g->sizes[d];
    v[3 * d + 2] = 1;
  }
  return true;
}

/* gather(x, iota): rows 0, 1, 2 ... in order. The first n of them are a slice;
 * past the end it would clamp. */
static bool is_iota_gather(const lw_inst *i, const gather_dims *g) {
  const lw_inst *x = lw_op(i, 0), *ix = lw_op(i, 1);
  if (g->n_map != 1 || g->n_collapsed != 1 || g->map[0] != g->collapsed[0])
    return false;
  while (ix->opcode == LW_OP_RESHAPE || ix->opcode == LW_OP_CONVERT) {
    if (ix->opcode == LW_OP_CONVERT) {
      int64_t lo, hi; /* no value is lost on the way */
      lw_int_bounds(ix->shape->type, &lo, &hi);
      bool wide = lw_type_is_int(lw_op(ix, 0)) && lw_type_is_int(ix);
      if (!wide || hi < x->shape->dims[g->map[0]]) return false;
    }
    ix = lw_op(ix, 0);
  }
  if (ix->opcode != LW_OP_IOTA || ix->shape->elements == 0) return false;
  int64_t d = lw_inst_i64(ix, LW_ATTR_IOTA_DIMENSION, 0), hi, lo;
  lw_int_bounds(ix->shape->type, &lo, &hi);
  return ix->shape->dims[d] == ix->shape->elements && lw_type_is_int(ix) &&
         ix->shape->elements <= x->shape->dims[g->map[0]] &&
         (ix->shape->type == LW_U64 || hi >= ix->shape->elements);
}

/* The result's batch dims, other than those of size 1: exactly one. */
static int32_t only_batch_dim(const lw_inst *i, const gather_dims *g) {
  int32_t at = -1;
  for (int32_t d = 0; d < i->shape->rank; d++) {
    if (contains(g->offset, g->n_offset, d) || i->shape->dims[d] == 1) continue;
    if (at >= 0) return -1;
    at = d;
  }
  return at;
}

static lw_inst *iota_gather(lw_rw *r, lw_inst *i, const gather_dims *g) {
  lw_inst *x = lw_op(i, 0);
  int64_t v[3 * LW_MAX_RANK], to[LW_MAX_RANK];
  int32_t batch = only_batch_dim(i, g), rank = x->shape->rank, k = 0;
  if (batch < 0 || g->n_batch || !offsets_sorted(g)) return NULL;
  for (int32_t d = 0; d < rank; d++) {
    bool row = d == g->map[0];
    if (!row && g->sizes[d] != x->shape->dims[d]) return NULL;
    v[3 * d] = 0;
    v[3 * d + 1] = row ? i->shape->dims[batch] : g->sizes[d];
    v[3 * d + 2] = 1;
    to[d] = row ? batch : g->offset[k++];
  }
  for (int32_t d = 1; d < rank; d++)
    if (to[d] < to[d - 1]) return NULL;
  if (!lw_rw_go(r, "gather by iota")) return NULL;
  return lw_rw_broadcast(r, lw_rw_slice(r, x, v), i->shape, rank, to);
}

static lw_inst *gather(lw_rw *r, lw_inst *i) {
  lw_inst *x = lw_op(i, 0), *ix = lw_op(i, 1);
  gather_dims g = dims_of(i);
  int64_t v[3 * LW_MAX_RANK];
  if (i->shape->elements == 0 || x->shape->elements == 0) return NULL;
  if (g.n_batch || ix->shape->elements == 0) return NULL;
  if (known_window(i, &g, v)) {
    if (!lw_rw_go(r, "gather of one window")) return NULL;
    return place_window(r, i, &g, lw_rw_slice(r, x, v));
  }
  if (ix->shape->elements == vector_length(ix, g.vector_dim)) {
    if (!lw_rw_go(r, "gather by one index")) return NULL;
    lw_inst *ops[1 + LW_MAX_RANK];
    ops[0] = x;
    starts(r, ix, x->shape->rank, g.n_map, g.map, ops + 1);
    const lw_shape *s =
        lw_mk_array(r->m, i->shape->type, x->shape->rank, g.sizes);
    lw_inst *w = lw_rw_make(r, LW_OP_DYNAMIC_SLICE, s, 1 + x->shape->rank, ops);
    lw_inst_set_i64s(w, LW_ATTR_DYNAMIC_SLICE_SIZES, g.n_sizes, g.sizes);
    return place_window(r, i, &g, w);
  }
  if (is_iota_gather(i, &g)) return iota_gather(r, i, &g);
  return NULL;
}

/* ---- scatter ---- */

/* The combiner returns its second parameter: an overwrite. */
static bool overwrites(const lw_comp *c) {
  return c->params.len == 2 && c->root == c->params.data[1];
}

/* A combiner that is one operation, whichever parameter comes first. */
static bool combines(const lw_comp *c) {
  lw_opcode op = lw_comp_binary_op(c);
  return op != LW_OPCODE_COUNT && lw_fold_op_is_simple(op);
}

/* Window dims of the updates put among the operand's dims: inserted dims 1. */
static bool window_shape(const lw_inst *i, int64_t *dims) {
  int32_t n_win, n_ins, n_batch, k = 0;
  const int64_t *win = lw_inst_i64s(i, LW_ATTR_UPDATE_WINDOW_DIMS, &n_win);
  const int64_t *ins = lw_inst_i64s(i, LW_ATTR_INSERTED_WINDOW_DIMS, &n_ins);
  (void)lw_inst_i64s(i, LW_ATTR_INPUT_BATCHING_DIMS, &n_batch);
  const lw_shape *u = lw_op(i, 2)->shape, *x = lw_op(i, 0)->shape;
  if (n_batch) return false;
  for (int32_t j = 1; j < n_win; j++)
    if (win[j] < win[j - 1]) return false;
  for (int32_t d = 0; d < x->rank; d++)
    dims[d] = contains(ins, n_ins, d) ? 1 : u->dims[win[k++]];
  return k == n_win;
}

/* The start of every indexed dim surely lets the window fit. */
static bool surely_inside(const lw_inst *i, const int64_t *dims) {
  int32_t n;
  const int64_t *map =
      lw_inst_i64s(i, LW_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, &n);
  const lw_inst *ix = lw_op(i, 1);
  int64_t lo, hi;
  lw_int_range(ix, &lo, &hi);
  for (int32_t k = 0; k < n; k++) {
    int64_t max = lw_op(i, 0)->shape->dims[map[k]] - dims[map[k]];
    if (lo < 0 || hi > max) return false;
  }
  return true;
}

/* f(what is there, update): one element of the operand, one of the update. */
static lw_inst *combined(lw_rw *r, lw_inst *i, lw_inst *const *ops) {
  lw_inst *at[1 + LW_MAX_RANK];
  const lw_shape *s = ops[1]->shape;
  at[0] = ops[0];
  for (int32_t d = 0; d < s->rank; d++) at[1 + d] = ops[2 + d];
  lw_inst *old = lw_rw_make(r, LW_OP_DYNAMIC_SLICE, s, 1 + s->rank, at);
  lw_inst_set_i64s(old, LW_ATTR_DYNAMIC_SLICE_SIZES, s->rank, s->dims);
  lw_opcode op = lw_comp_binary_op(lw_inst_comp(i, LW_ATTR_TO_APPLY));
  return lw_rw_bin(r, op, s, old, ops[1]);
}

static lw_inst *scatter(lw_rw *r, lw_inst *i) {
  if (i->n_operands != 3 || !lw_shape_is_array(i->shape)) return NULL;
  lw_inst *x = lw_op(i, 0), *ix = lw_op(i, 1), *u = lw_op(i, 2);
  int64_t dims[LW_MAX_RANK];
  if (u->shape->elements == 0)
    return lw_rw_go(r, "scatter of nothing") ? x : NULL;
  int64_t vector_dim = lw_inst_i64(i, LW_ATTR_INDEX_VECTOR_DIM, 0);
  if (ix->shape->elements != vector_length(ix, vector_dim)) return NULL;
  const lw_comp *c = lw_inst_comp(i, LW_ATTR_TO_APPLY);
  if (!overwrites(c) && !combines(c)) return NULL;
  if (!window_shape(i, dims) || !surely_inside(i, dims)) return NULL;
  if (!lw_rw_go(r, "scatter to one known place")) return NULL;
  lw_inst *ops[2 + LW_MAX_RANK];
  int32_t n;
  const int64_t *map =
      lw_inst_i64s(i, LW_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, &n);
  ops[0] = x;
  ops[1] = lw_rw_reshape(
      r, u, lw_mk_array(r->m, x->shape->type, x->shape->rank, dims));
  starts(r, ix, x->shape->rank, n, map, ops + 2);
  if (!overwrites(c)) ops[1] = combined(r, i, ops);
  return lw_rw_make(r, LW_OP_DYNAMIC_UPDATE_SLICE, i->shape, 2 + x->shape->rank,
                    ops);
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {
      [LW_OP_GATHER] = gather,
      [LW_OP_SCATTER] = scatter,
  };
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_gather_simplifier = {
    "gather-simplifier",
    "gathers and scatters of one place become slices and updates", NULL, run};
