/* reduce-window, select-and-scatter and the scan opcode (docs/numerics.md 6).
 *
 * A general window goes window index by window index: for each, all outputs
 * whose input element exists are gathered in batches and folded with one call
 * of the reducer. Every output thus sees its elements in window order.
 */
#include <stdlib.h>

#include "interp/fold_run.h"

enum { BATCH = 256 };

/* The input index of output o and window index w in one dimension, or -1 when
 * it is padding or a hole of the base dilation. */
static int64_t window_input(const lw_window_dim *w, int64_t extent, int64_t o,
                            int64_t k) {
  if (w->reversed) k = w->size - 1 - k;
  int64_t p = o * w->stride + k * w->rhs_dilation - w->pad_lo;
  if (p < 0 || p % w->lhs_dilation) return -1;
  p /= w->lhs_dilation;
  return p < extent ? p : -1;
}

static int64_t dilated(int64_t n, int64_t by) {
  return n > 0 ? (n - 1) * by + 1 : 0;
}

static lw_status check_window(const lw_window *w, const lw_shape *s) {
  if (!w || w->rank != s->rank)
    return lw_error(LW_INVALID_ARGUMENT, "the window does not fit the operand");
  for (int32_t d = 0; d < w->rank; d++)
    if (w->dims[d].size < 1 || w->dims[d].stride < 1 ||
        w->dims[d].lhs_dilation < 1 || w->dims[d].rhs_dilation < 1)
      return lw_error(LW_INVALID_ARGUMENT,
                      "window sizes, strides and dilations are at least 1");
  return NULL;
}

static void window_out_dims(const lw_window *w, const lw_shape *s,
                            int64_t *dims) {
  for (int32_t d = 0; d < s->rank; d++) {
    const lw_window_dim *v = &w->dims[d];
    int64_t n = dilated(s->dims[d], v->lhs_dilation) + v->pad_lo + v->pad_hi -
                dilated(v->size, v->rhs_dilation);
    dims[d] = n < 0 ? 0 : n / v->stride + 1;
  }
}

/* ---- batches of (output, input) pairs ---- */

typedef struct {
  lw_eval *e;
  lw_prog *f;
  int32_t operands, n;
  int64_t out_at[BATCH], in_at[BATCH];
  size_t size[LW_FOLD_MAX_OPERANDS];
  const char *x[LW_FOLD_MAX_OPERANDS];
  char *acc[LW_FOLD_MAX_OPERANDS];
  uint8_t *seen; /* outputs that hold an element already */
  char *buf;     /* 2 * operands * BATCH * 16 bytes */
} batch;

static char *batch_buf(const batch *b, int32_t k) {
  return b->buf + (size_t)k * BATCH * 16;
}

static lw_status batch_flush(batch *b) {
  const void *in[2 * LW_FOLD_MAX_OPERANDS];
  void *out[LW_FOLD_MAX_OPERANDS];
  for (int32_t k = 0; k < b->operands; k++) {
    size_t s = b->size[k];
    char *acc = batch_buf(b, k), *x = batch_buf(b, b->operands + k);
    for (int32_t i = 0; i < b->n; i++) {
      memcpy(acc + (size_t)i * s, b->acc[k] + (size_t)b->out_at[i] * s, s);
      memcpy(x + (size_t)i * s, b->x[k] + (size_t)b->in_at[i] * s, s);
    }
    in[k] = out[k] = acc;
    in[b->operands + k] = x;
  }
  if (b->n) LW_TRY(lw_prog_run(b->e, b->f, b->n, in, out));
  for (int32_t k = 0; k < b->operands; k++) {
    size_t s = b->size[k];
    for (int32_t i = 0; i < b->n; i++)
      memcpy(b->acc[k] + (size_t)b->out_at[i] * s,
             batch_buf(b, k) + (size_t)i * s, s);
  }
  b->n = 0;
  return NULL;
}

static lw_status batch_add(batch *b, int64_t out, int64_t in) {
  if (!b->seen[out]) {
    b->seen[out] = 1;
    for (int32_t k = 0; k < b->operands; k++)
      memcpy(b->acc[k] + (size_t)out * b->size[k],
             b->x[k] + (size_t)in * b->size[k], b->size[k]);
    return NULL;
  }
  b->out_at[b->n] = out;
  b->in_at[b->n++] = in;
  return b->n == BATCH ? batch_flush(b) : NULL;
}

/* One window index over all outputs. */
static lw_status window_step(batch *b, const lw_window *w, const lw_shape *s,
                             const int64_t *out_dims, const int64_t *k) {
  int64_t o[LW_MAX_RANK] = {0}, strides[LW_MAX_RANK], out = 0;
  lw_shape_strides(s, strides);
  int32_t last = s->rank - 1;
  do {
    int64_t base = 0;
    bool in = true;
    for (int32_t d = 0; d < last && in; d++) {
      int64_t p = window_input(&w->dims[d], s->dims[d], o[d], k[d]);
      in = p >= 0;
      base += p * strides[d];
    }
    int64_t n = s->rank ? out_dims[last] : 1;
    for (int64_t j = 0; in && j < n; j++) {
      int64_t p =
          s->rank ? window_input(&w->dims[last], s->dims[last], j, k[last]) : 0;
      if (p >= 0) LW_TRY(batch_add(b, out + j, base + p));
    }
    out += n;
  } while (lw_next_index(last < 0 ? 0 : last, out_dims, o));
  return batch_flush(b);
}

/* "init last: f(init, acc). A window without any in-bounds element gives
 * init." */
static lw_status window_finish(batch *b, int64_t outputs, lw_val **inits) {
  for (int64_t at = 0; at < outputs; at++) {
    const void *in[2 * LW_FOLD_MAX_OPERANDS];
    void *out[LW_FOLD_MAX_OPERANDS];
    for (int32_t k = 0; k < b->operands; k++) {
      out[k] = b->acc[k] + (size_t)at * b->size[k];
      in[k] = inits[k]->lit.data;
      in[b->operands + k] = out[k];
      if (!b->seen[at]) memcpy(out[k], in[k], b->size[k]);
    }
    if (b->seen[at]) LW_TRY(lw_prog_run(b->e, b->f, 1, in, out));
  }
  return NULL;
}

static lw_status window_fold(batch *b, const lw_window *w, const lw_shape *s,
                             const int64_t *out_dims, int64_t outputs,
                             lw_val **inits) {
  int64_t k[LW_MAX_RANK] = {0}, sizes[LW_MAX_RANK];
  for (int32_t d = 0; d < s->rank; d++) sizes[d] = w->dims[d].size;
  do {
    LW_TRY(window_step(b, w, s, out_dims, k));
  } while (lw_next_index(s->rank, sizes, k));
  return window_finish(b, outputs, inits);
}

/* ---- windows that are scans ---- */

typedef struct {
  lw_eval *e;
  lw_prog *f;
  int64_t lines; /* lanes: all other dims */
  size_t row;    /* bytes of one step of all lines */
  char *p, *carry, *init, *tmp;
} scan;

static lw_status scan_op(const scan *s, const char *a, const char *x,
                         char *out) {
  const void *in[2] = {a, x};
  void *to[1] = {out};
  return lw_prog_run(s->e, s->f, s->lines, in, to);
}

/* "P(j) = fold in index order of the elements of j's block up to and including
 * j; carry C(0) absent, C(b) = f(C(b-1), B(b-1)) with C(1) = B(0); out(j) =
 * f(init, f(C(b), P(j)))". x and y are [extent][lines]. */
static lw_status scan_run(const scan *s, int64_t extent, bool reverse,
                          const char *x, char *y) {
  for (int64_t j = 0; j < extent; j++) {
    int64_t at = reverse ? extent - 1 - j : j, b = j / LW_FOLD_SCAN_BLOCK;
    const char *xj = x + (size_t)at * s->row;
    char *yj = y + (size_t)at * s->row;
    bool first = j % LW_FOLD_SCAN_BLOCK == 0;
    if (first && b == 1) memcpy(s->carry, s->p, s->row);
    if (first && b > 1) LW_TRY(scan_op(s, s->carry, s->p, s->carry));
    if (first)
      memcpy(s->p, xj, s->row);
    else
      LW_TRY(scan_op(s, s->p, xj, s->p));
    if (b > 0) LW_TRY(scan_op(s, s->carry, s->p, s->tmp));
    LW_TRY(scan_op(s, s->init, b > 0 ? s->tmp : s->p, yj));
  }
  return NULL;
}

/* The scanned dimension goes first, so that a step is one row of all lines. */
static lw_status window_scan(lw_eval *e, lw_prog *p, lw_val *x, lw_val *init,
                             int32_t dim, bool reverse, lw_val *out) {
  const lw_shape *s = x->lit.shape;
  int64_t perm[LW_MAX_RANK], back[LW_MAX_RANK], dims[LW_MAX_RANK];
  perm[0] = dim;
  for (int32_t d = 0, k = 1; d < s->rank; d++)
    if (d != dim) perm[k++] = d;
  for (int32_t d = 0; d < s->rank; d++) {
    back[perm[d]] = d;
    dims[d] = s->dims[perm[d]];
  }
  int64_t extent = s->dims[dim], lines = extent ? s->elements / extent : 0;
  size_t esize = (size_t)lw_esize(x), row = (size_t)lines * esize;
  if (!s->elements) return NULL;
  char *buf = malloc(2 * (size_t)s->elements * esize + 4 * row);
  if (!buf) return lw_error(LW_RESOURCE_EXHAUSTED, "no memory for a scan");
  char *from = buf, *to = from + (size_t)s->elements * esize,
       *more = to + (size_t)s->elements * esize;
  scan sc = {e,    p,          lines,          row,
             more, more + row, more + 2 * row, more + 3 * row};
  for (int64_t k = 0; k < lines; k++)
    memcpy(sc.init + (size_t)k * esize, init->lit.data, esize);
  lw_permute(x, perm, from);
  lw_status st = scan_run(&sc, extent, reverse, from, to);
  lw_permute_raw(s->rank, dims, back, (int)esize, to, out->lit.data);
  free(buf);
  return st;
}

/* ---- reduce-window ---- */

static lw_status general_window(lw_eval *e, lw_prog *p, const lw_window *w,
                                int32_t operands, lw_val **ops,
                                const int64_t *out_dims, lw_val **outs) {
  batch *b = calloc(1, sizeof *b);
  int64_t outputs = lw_elems(outs[0]);
  uint8_t *seen = calloc((size_t)outputs + 1, 1);
  char *buf = malloc((size_t)operands * 2 * BATCH * 16);
  if (!b || !seen || !buf) lw_oom((size_t)outputs);
  b->e = e;
  b->f = p;
  b->operands = operands;
  b->seen = seen;
  b->buf = buf;
  for (int32_t k = 0; k < operands; k++) {
    b->size[k] = (size_t)lw_esize(ops[k]);
    b->x[k] = ops[k]->lit.data;
    b->acc[k] = outs[k]->lit.data;
  }
  lw_status s = NULL;
  if (outputs)
    s = window_fold(b, w, ops[0]->lit.shape, out_dims, outputs, ops + operands);
  free(seen);
  free(buf);
  free(b);
  return s;
}

lw_status lw_eval_reduce_window(lw_eval *e, const lw_inst *i, lw_val **ops,
                                lw_val **out) {
  int32_t operands = i->n_operands / 2, dim = 0;
  bool reverse = false;
  const lw_shape *s = ops[0]->lit.shape;
  const lw_window *w = lw_inst_window(i);
  static const lw_window no_window = {0};
  if (!w && s->rank == 0) w = &no_window;
  lw_prog *p = NULL;
  LW_TRY(lw_prog_get(e, lw_inst_comp(i, LW_ATTR_TO_APPLY), &p));
  LW_TRY(lw_check_reducer(i, p, ops, operands));
  LW_TRY(check_window(w, s));
  int64_t dims[LW_MAX_RANK];
  window_out_dims(w, s, dims);
  lw_val *outs[LW_FOLD_MAX_OPERANDS] = {0};
  lw_status st = lw_new_results(e, i, ops, operands, s->rank, dims, outs);
  if (!st) {
    if (lw_window_is_scan(i, &dim, &reverse) &&
        lw_shape_same_dims(s, lw_inst_operand(i, 0)->shape))
      st = window_scan(e, p, ops[0], ops[1], dim, reverse, outs[0]);
    else
      st = general_window(e, p, w, operands, ops, dims, outs);
  }
  if (st) {
    for (int32_t k = 0; k < operands; k++) lw_val_release(e, outs[k]);
    return st;
  }
  *out = lw_pack_results(i, operands, outs);
  return NULL;
}

/* ---- select-and-scatter ---- */

typedef struct {
  lw_eval *e;
  lw_prog *select, *scatter;
  const lw_window *w;
  const lw_shape *s;
  const char *x;
  size_t size;
} chooser;

/* "The first candidate first; a later one replaces it when select(current,
 * new) is false." -1 when the window holds no element. */
static lw_status choose(const chooser *c, const int64_t *o, int64_t *chosen) {
  int64_t k[LW_MAX_RANK] = {0}, sizes[LW_MAX_RANK], strides[LW_MAX_RANK];
  lw_shape_strides(c->s, strides);
  for (int32_t d = 0; d < c->s->rank; d++) sizes[d] = c->w->dims[d].size;
  *chosen = -1;
  do {
    int64_t at = 0;
    for (int32_t d = 0; d < c->s->rank && at >= 0; d++) {
      int64_t p = window_input(&c->w->dims[d], c->s->dims[d], o[d], k[d]);
      at = p < 0 ? -1 : at + p * strides[d];
    }
    if (at < 0) continue;
    uint8_t keep = 0;
    if (*chosen >= 0) {
      const void *in[2] = {c->x + (size_t)*chosen * c->size,
                           c->x + (size_t)at * c->size};
      void *out[1] = {&keep};
      LW_TRY(lw_prog_run(c->e, c->select, 1, in, out));
    }
    if (!keep) *chosen = at;
  } while (lw_next_index(c->s->rank, sizes, k));
  return NULL;
}

static lw_status scatter_sources(const chooser *c, const lw_val *source,
                                 char *out) {
  int64_t o[LW_MAX_RANK] = {0};
  const char *src = source->lit.data;
  if (!lw_elems(source)) return NULL;
  do {
    int64_t at = -1;
    LW_TRY(choose(c, o, &at));
    if (at >= 0) {
      char *target = out + (size_t)at * c->size;
      const void *in[2] = {target, src};
      void *to[1] = {target};
      LW_TRY(lw_prog_run(c->e, c->scatter, 1, in, to));
    }
    src += c->size;
  } while (lw_next_index(c->s->rank, source->lit.shape->dims, o));
  return NULL;
}

lw_status lw_eval_select_and_scatter(lw_eval *e, const lw_inst *i, lw_val **ops,
                                     lw_val **out) {
  chooser c = {.e = e,
               .w = lw_inst_window(i),
               .s = ops[0]->lit.shape,
               .x = ops[0]->lit.data,
               .size = (size_t)lw_esize(ops[0])};
  LW_TRY(lw_prog_get(e, lw_inst_comp(i, LW_ATTR_SELECT), &c.select));
  LW_TRY(lw_prog_get(e, lw_inst_comp(i, LW_ATTR_SCATTER), &c.scatter));
  LW_TRY(check_window(c.w, c.s));
  lw_prim t = c.s->type;
  if (lw_prog_params(c.select) != 2 || lw_prog_params(c.scatter) != 2 ||
      lw_prog_results(c.select) != 1 || lw_prog_results(c.scatter) != 1 ||
      lw_prog_result_type(c.select, 0) != LW_PRED ||
      lw_prog_result_type(c.scatter, 0) != t || ops[1]->lit.shape->type != t ||
      ops[2]->lit.shape->type != t || ops[2]->lit.shape->elements != 1 ||
      ops[1]->lit.shape->rank != c.s->rank || i->shape->rank != c.s->rank ||
      i->shape->type != t)
    return lw_error(LW_INVALID_ARGUMENT, "select or scatter does not fit");
  LW_TRY(lw_val_new(e, lw_result_shape(e, i->shape, c.s->dims), out));
  for (int64_t k = 0; k < lw_elems(*out); k++)
    memcpy((char *)(*out)->lit.data + (size_t)k * c.size, ops[2]->lit.data,
           c.size);
  return scatter_sources(&c, ops[1], (*out)->lit.data);
}

/* ---- the scan opcode ---- */

/* Slice j of dim of a whole array (dims before, the slice, dims after). */
static void move_slice(const lw_shape *whole, int64_t dim, int64_t j,
                       char *whole_data, char *slice, bool store) {
  int64_t outer = 1, inner = lw_prim_bytes(whole->type);
  for (int64_t d = 0; d < dim; d++) outer *= whole->dims[d];
  for (int32_t d = (int32_t)dim + 1; d < whole->rank; d++)
    inner *= whole->dims[d];
  for (int64_t o = 0; o < outer; o++) {
    char *w = whole_data + (o * whole->dims[dim] + j) * inner;
    char *s = slice + o * inner;
    memcpy(store ? w : s, store ? s : w, (size_t)inner);
  }
}

/* One step's slice holds one of `length` equal parts of the whole array. */
static bool slice_fits(const lw_shape *whole, const lw_shape *slice,
                       int64_t dim, int64_t length) {
  return lw_shape_is_array(whole) && lw_shape_is_array(slice) &&
         whole->type == slice->type && whole->rank > dim &&
         whole->dims[dim] == length &&
         (length == 0 || whole->elements / length == slice->elements);
}

static bool scan_fits(const lw_inst *i, lw_val **ops, int32_t n_in,
                      int32_t n_out, int64_t dim, int64_t length) {
  const lw_comp *c = lw_inst_comp(i, LW_ATTR_TO_APPLY);
  const lw_shape *root = c->root->shape;
  if (!lw_shape_is_tuple(root) || root->n_elems != i->shape->n_elems)
    return false;
  for (int32_t k = 0; k < n_in; k++)
    if (!slice_fits(ops[k]->lit.shape, c->params.data[k]->shape, dim, length))
      return false;
  for (int32_t k = 0; k < n_out; k++)
    if (!slice_fits(i->shape->elems[k], root->elems[k], dim, length))
      return false;
  return true;
}

static lw_status scan_step(lw_eval *e, const lw_inst *i, lw_val **ops,
                           int32_t n_in, int64_t dim, int64_t j,
                           lw_val **carries, lw_val **outs) {
  const lw_comp *c = lw_inst_comp(i, LW_ATTR_TO_APPLY);
  int32_t n = i->n_operands, n_out = i->shape->n_elems - (n - n_in);
  lw_val *args[64] = {0}, *r = NULL;
  lw_status s = NULL;
  for (int32_t k = 0; k < n_in && !s; k++) {
    s = lw_val_new(e, c->params.data[k]->shape, &args[k]);
    if (!s)
      move_slice(ops[k]->lit.shape, dim, j, ops[k]->lit.data, args[k]->lit.data,
                 false);
  }
  for (int32_t k = n_in; k < n; k++) {
    args[k] = carries[k - n_in];
    carries[k - n_in] = NULL;
  }
  if (s) {
    for (int32_t k = 0; k < n; k++) lw_val_release(e, args[k]);
    return s;
  }
  LW_TRY(lw_eval_comp(e, c, args, n, &r));
  for (int32_t k = 0; k < n_out; k++)
    move_slice(outs[k]->lit.shape, dim, j, outs[k]->lit.data,
               lw_val_elem(r, k)->lit.data, true);
  for (int32_t k = n_in; k < n; k++)
    carries[k - n_in] = lw_val_retain(lw_val_elem(r, n_out + k - n_in));
  lw_val_release(e, r);
  return NULL;
}

/* Operands: inputs, then num_carries start values; the computation takes a
 * slice of each input and the carries, and returns slices of the outputs and
 * the new carries; so does the result, with whole outputs. */
lw_status lw_eval_scan(lw_eval *e, const lw_inst *i, lw_val **ops,
                       lw_val **out) {
  int32_t n = i->n_operands, n_dims = 0;
  const int64_t *dims = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n_dims);
  int64_t carries = lw_inst_i64(i, LW_ATTR_NUM_CARRIES, 0);
  bool reverse = lw_inst_i64(i, LW_ATTR_IS_REVERSE, 0) != 0;
  const lw_comp *c = lw_inst_comp(i, LW_ATTR_TO_APPLY);
  if (n > 64 || i->shape->n_elems > 64 || n_dims != 1 || carries < 0 ||
      carries >= n || !lw_shape_is_tuple(i->shape) ||
      c->params.len != (size_t)n || i->shape->n_elems < carries ||
      dims[0] < 0 || dims[0] >= ops[0]->lit.shape->rank)
    return lw_error(LW_INVALID_ARGUMENT, "the scan does not fit its operands");
  int32_t n_in = n - (int32_t)carries;
  int32_t n_out = i->shape->n_elems - (int32_t)carries;
  int64_t length = lw_dim(ops[0], dims[0]);
  if (!scan_fits(i, ops, n_in, n_out, dims[0], length))
    return lw_error(LW_INVALID_ARGUMENT, "the scan does not fit its operands");
  lw_val *r[64 + 1] = {0};
  lw_status s = NULL;
  for (int32_t k = 0; k < n_out && !s; k++)
    s = lw_val_new(e, i->shape->elems[k], &r[k]);
  for (int32_t k = 0; k < carries; k++)
    r[n_out + k] = lw_val_retain(ops[n_in + k]);
  for (int64_t j = 0; j < length && !s; j++)
    s = scan_step(e, i, ops, n_in, dims[0], reverse ? length - 1 - j : j,
                  r + n_out, r);
  if (!s) {
    *out = lw_val_tuple(i->shape, i->shape->n_elems, r);
    return NULL;
  }
  for (int32_t k = 0; k < i->shape->n_elems; k++) lw_val_release(e, r[k]);
  return s;
}
