/* reduce and scan: docs/numerics.md 5, executed literally.
 *
 * The operands are brought into the order of the rule first (reduced dims last
 * for rows, first for columns and sequences), so that a fold step is one call
 * of the reducer's program over 64 lanes or over all outputs.
 */
#include "interp/eval.h"
#include "interp/fold_run.h"

/* ---- the row rule: one output's sequence x = [outer][run] ---- */

typedef struct {
  lw_eval *e;
  lw_prog *f;
  size_t size;    /* bytes an element */
  char *lanes;    /* 64 elements */
  int64_t filled; /* lanes that exist */
  char *acc;      /* one element */
  bool any;       /* acc holds something */
} row;

static lw_status combine(row *r, int64_t n, void *acc, const void *x) {
  const void *in[2] = {acc, x};
  void *out[1] = {acc};
  return lw_prog_run(r->e, r->f, n, in, out);
}

/* x[0, n) onto lanes 0, 1, ... n <= 64. */
static lw_status row_feed(row *r, int64_t n, const char *x) {
  if (r->filled == 0) {
    memcpy(r->lanes, x, (size_t)n * r->size);
    r->filled = n;
    return NULL;
  }
  return combine(r, n, r->lanes, x);
}

/* "Lanes are combined by halving; block results are folded in order." */
static lw_status row_end_block(row *r) {
  for (int64_t w = LW_FOLD_LANES / 2; w > 0; w /= 2) {
    int64_t n = r->filled - w < w ? r->filled - w : w;
    if (n <= 0) continue;
    LW_TRY(combine(r, n, r->lanes, r->lanes + (size_t)w * r->size));
    r->filled = w;
  }
  r->filled = 0;
  if (r->any) return combine(r, 1, r->acc, r->lanes);
  memcpy(r->acc, r->lanes, r->size);
  r->any = true;
  return NULL;
}

static lw_status row_run(row *r, const char *x, int64_t from, int64_t to) {
  for (int64_t t = from; t < to; t += LW_FOLD_LANES) {
    int64_t n = to - t < LW_FOLD_LANES ? to - t : LW_FOLD_LANES;
    LW_TRY(row_feed(r, n, x + (size_t)t * r->size));
  }
  return NULL;
}

static lw_status row_fold(row *r, const char *x, const lw_fold *f) {
  int64_t t_len = f->run;
  for (int64_t o = 0; o < f->outer; o++) {
    const char *p = x + (size_t)(o * t_len) * r->size;
    if (t_len > LW_FOLD_ROW_BLOCK) {
      for (int64_t t = 0; t < t_len; t += LW_FOLD_ROW_BLOCK) {
        int64_t to = t + LW_FOLD_ROW_BLOCK;
        LW_TRY(row_run(r, p, t, to < t_len ? to : t_len));
        LW_TRY(row_end_block(r));
      }
      continue;
    }
    LW_TRY(row_run(r, p, 0, t_len));
    if ((o + 1) % LW_FOLD_OUTER_BLOCK == 0 || o + 1 == f->outer)
      LW_TRY(row_end_block(r));
  }
  return NULL;
}

static lw_status fold_rows(lw_eval *e, lw_prog *p, const lw_fold *f,
                           int64_t outputs, size_t size, const char *x,
                           const void *init, char *out) {
  char lanes[LW_FOLD_LANES * 16], acc[16];
  for (int64_t k = 0; k < outputs; k++, out += size) {
    row r = {.e = e, .f = p, .size = size, .lanes = lanes, .acc = acc};
    LW_TRY(row_fold(&r, x + (size_t)(k * f->n) * size, f));
    const void *in[2] = {init, acc};
    void *res[1] = {out};
    LW_TRY(lw_prog_run(e, p, 1, in, res));
  }
  return NULL;
}

/* ---- the column and sequence rules: x[k] = [n][outputs] ---- */

typedef struct {
  lw_eval *e;
  lw_prog *f;
  int32_t operands;
  int64_t outputs;
  size_t size[LW_FOLD_MAX_OPERANDS];
} seq;

static lw_status seq_combine(const seq *s, char *const *a, char *const *b,
                             char *const *out) {
  const void *in[2 * LW_FOLD_MAX_OPERANDS];
  void *to[LW_FOLD_MAX_OPERANDS];
  for (int32_t k = 0; k < s->operands; k++) {
    in[k] = a[k];
    in[s->operands + k] = b[k];
    to[k] = out[k];
  }
  return lw_prog_run(s->e, s->f, s->outputs, in, to);
}

static void seq_copy(const seq *s, char *const *from, char *const *to) {
  for (int32_t k = 0; k < s->operands; k++)
    memcpy(to[k], from[k], (size_t)s->outputs * s->size[k]);
}

/* Folds rows [from, to) into block, which starts as start or (NULL) as the
 * first row. */
static lw_status seq_block(const seq *s, char *const *x, int64_t from,
                           int64_t to, char *const *start, char *const *block) {
  char *row_at[LW_FOLD_MAX_OPERANDS];
  if (start) seq_copy(s, start, block);
  for (int64_t i = from; i < to; i++) {
    for (int32_t k = 0; k < s->operands; k++)
      row_at[k] = x[k] + (size_t)i * (size_t)s->outputs * s->size[k];
    if (i == from && !start)
      seq_copy(s, row_at, block);
    else
      LW_TRY(seq_combine(s, block, row_at, block));
  }
  return NULL;
}

static lw_status seq_fold(const seq *s, const lw_fold *f, char *const *x,
                          char *const *block, char *const *acc,
                          char *const *init) {
  int64_t n = f->n;
  for (int64_t at = 0; at < n; at += LW_FOLD_SEQ_BLOCK) {
    int64_t to = at + LW_FOLD_SEQ_BLOCK < n ? at + LW_FOLD_SEQ_BLOCK : n;
    char *const *start = at == 0 && f->init_first ? init : NULL;
    LW_TRY(seq_block(s, x, at, to, start, at ? block : acc));
    if (at) LW_TRY(seq_combine(s, acc, block, acc));
  }
  return f->init_first ? NULL : seq_combine(s, init, acc, acc);
}

/* Rows of at most 64 elements fill their lanes once: with x as [run][outputs]
 * a halving step joins whole planes, for all outputs at once. x is used up. */
static lw_status fold_short_rows(lw_eval *e, lw_prog *p, int64_t run,
                                 int64_t outputs, size_t size, char *x,
                                 const void *init, char *out) {
  size_t plane = (size_t)outputs * size;
  for (int64_t w = LW_FOLD_LANES / 2, filled = run; w > 0; w /= 2) {
    int64_t n = filled - w < w ? filled - w : w;
    if (n <= 0) continue;
    const void *in[2] = {x, x + (size_t)w * plane};
    void *to[1] = {x};
    LW_TRY(lw_prog_run(e, p, n * outputs, in, to));
    filled = w;
  }
  for (int64_t k = 0; k < outputs; k++)
    memcpy(out + (size_t)k * size, init, size);
  const void *in[2] = {out, x};
  void *to[1] = {out};
  return lw_prog_run(e, p, outputs, in, to);
}

/* ---- a fold of arrays over dims, whatever the rule ---- */

/* Kept dims in order, and the reduced ones in increasing order, as a
 * permutation; kept ones first for rows. */
static int64_t fold_perm(const lw_shape *s, int32_t n, const int64_t *dims,
                         bool kept_first, int64_t *perm, int64_t *kept_dims,
                         int32_t *n_kept) {
  bool reduced[LW_MAX_RANK] = {false};
  int32_t at = 0;
  int64_t outputs = 1;
  *n_kept = 0;
  for (int32_t k = 0; k < n; k++) reduced[dims[k]] = true;
  for (int pass = 0; pass < 2; pass++)
    for (int32_t d = 0; d < s->rank; d++)
      if (reduced[d] == ((pass == 0) != kept_first)) perm[at++] = d;
  for (int32_t d = 0; d < s->rank; d++) {
    if (reduced[d]) continue;
    kept_dims[(*n_kept)++] = s->dims[d];
    outputs *= s->dims[d];
  }
  return outputs;
}

static lw_status init_only(int32_t operands, int64_t outputs, lw_val **inits,
                           lw_val **outs) {
  for (int32_t k = 0; k < operands; k++) {
    size_t size = (size_t)lw_esize(inits[k]);
    for (int64_t i = 0; i < outputs; i++)
      memcpy((char *)outs[k]->lit.data + (size_t)i * size, inits[k]->lit.data,
             size);
  }
  return NULL;
}

static lw_status fold_seqs(lw_eval *e, lw_prog *p, const lw_fold *f,
                           int32_t operands, int64_t outputs, char *const *x,
                           lw_val **inits, lw_val **outs) {
  seq s = {.e = e, .f = p, .operands = operands, .outputs = outputs};
  char *block[LW_FOLD_MAX_OPERANDS], *acc[LW_FOLD_MAX_OPERANDS],
      *init[LW_FOLD_MAX_OPERANDS];
  lw_val *tmp[2 * LW_FOLD_MAX_OPERANDS] = {0};
  lw_status st = NULL;
  for (int32_t k = 0; k < operands && !st; k++) {
    s.size[k] = (size_t)lw_esize(inits[k]);
    st = lw_val_new(e, outs[k]->lit.shape, &tmp[2 * k]);
    if (!st) st = lw_val_new(e, outs[k]->lit.shape, &tmp[2 * k + 1]);
    if (st) break;
    block[k] = tmp[2 * k]->lit.data;
    init[k] = tmp[2 * k + 1]->lit.data;
    acc[k] = outs[k]->lit.data;
  }
  if (!st) {
    lw_val *spread[LW_FOLD_MAX_OPERANDS];
    for (int32_t k = 0; k < operands; k++) spread[k] = tmp[2 * k + 1];
    st = init_only(operands, outputs, inits, spread);
  }
  if (!st) st = seq_fold(&s, f, x, block, acc, init);
  for (int32_t k = 0; k < 2 * operands; k++) lw_val_release(e, tmp[k]);
  return st;
}

lw_status lw_fold_arrays(lw_eval *e, lw_prog *p, const lw_fold *f,
                         int32_t operands, lw_val **xs, lw_val **inits,
                         int32_t n_dims, const int64_t *dims, lw_val **outs) {
  int64_t perm[LW_MAX_RANK], kept[LW_MAX_RANK];
  int32_t n_kept;
  bool rows = f->rule == LW_FOLD_ROW;
  bool is_short = rows && f->outer == 1 && f->run <= LW_FOLD_LANES;
  int64_t outputs = fold_perm(xs[0]->lit.shape, n_dims, dims, rows && !is_short,
                              perm, kept, &n_kept);
  if (f->n == 0 || outputs == 0)
    return init_only(operands, outputs, inits, outs);
  lw_val *moved[LW_FOLD_MAX_OPERANDS] = {0};
  char *x[LW_FOLD_MAX_OPERANDS];
  lw_status s = NULL;
  for (int32_t k = 0; k < operands && !s; k++) {
    s = lw_val_new(e, xs[k]->lit.shape, &moved[k]);
    if (s) break;
    lw_permute(xs[k], perm, moved[k]->lit.data);
    x[k] = moved[k]->lit.data;
  }
  if (!s && is_short)
    s = fold_short_rows(e, p, f->run, outputs, (size_t)lw_esize(xs[0]), x[0],
                        inits[0]->lit.data, outs[0]->lit.data);
  else if (!s && rows)
    s = fold_rows(e, p, f, outputs, (size_t)lw_esize(xs[0]), x[0],
                  inits[0]->lit.data, outs[0]->lit.data);
  else if (!s)
    s = fold_seqs(e, p, f, operands, outputs, x, inits, outs);
  for (int32_t k = 0; k < operands; k++) lw_val_release(e, moved[k]);
  return s;
}

/* ---- reduce ---- */

lw_status lw_check_reducer(const lw_inst *i, const lw_prog *p, lw_val **ops,
                           int32_t operands) {
  bool ok = operands >= 1 && i->n_operands == 2 * operands &&
            lw_prog_params(p) == 2 * operands && lw_prog_results(p) == operands;
  for (int32_t k = 0; ok && k < operands; k++)
    ok = lw_shape_same_dims(ops[k]->lit.shape, ops[0]->lit.shape) &&
         ops[operands + k]->lit.shape->elements == 1 &&
         lw_prog_result_type(p, k) == ops[k]->lit.shape->type &&
         lw_prog_param_type(p, k) == ops[k]->lit.shape->type &&
         lw_prog_param_type(p, operands + k) == ops[k]->lit.shape->type &&
         ops[operands + k]->lit.shape->type == ops[k]->lit.shape->type;
  if (!ok)
    return lw_error(LW_INVALID_ARGUMENT,
                    "the reducer does not fit operands and init values");
  if (operands > LW_FOLD_MAX_OPERANDS)
    return lw_error(LW_UNIMPLEMENTED, "more than %d operands",
                    LW_FOLD_MAX_OPERANDS);
  return NULL;
}

lw_status lw_new_results(lw_eval *e, const lw_inst *i, lw_val **ops, int32_t n,
                         int32_t rank, const int64_t *dims, lw_val **outs) {
  bool tuple = lw_shape_is_tuple(i->shape);
  if (tuple ? i->shape->n_elems != n : n != 1)
    return lw_error(LW_INVALID_ARGUMENT, "the result does not fit");
  for (int32_t k = 0; k < n; k++) {
    const lw_shape *s = tuple ? i->shape->elems[k] : i->shape;
    if (s->rank != rank || s->type != ops[k]->lit.shape->type)
      return lw_error(LW_INVALID_ARGUMENT, "the result does not fit");
    LW_TRY(lw_val_new(e, lw_result_shape(e, s, dims), &outs[k]));
  }
  return NULL;
}

lw_val *lw_pack_results(const lw_inst *i, int32_t n, lw_val **outs) {
  return lw_shape_is_tuple(i->shape) ? lw_val_tuple(i->shape, n, outs)
                                     : outs[0];
}

/* A dynamic operand that shrank, at its declared bounds in the reduced dims:
 * what lies beyond is the reducer's neutral element, so that the fold keeps the
 * rule of the shape that was read. NULL in *out when the reducer has none: then
 * the elements at hand are folded. */
static lw_status fill_bounds(lw_eval *e, const lw_inst *i, const lw_val *v,
                             lw_opcode op, int32_t n_dims, const int64_t *dims,
                             lw_val **out) {
  const lw_shape *s = v->lit.shape, *bound = lw_inst_operand(i, 0)->shape;
  int64_t full[LW_MAX_RANK], src[LW_MAX_RANK], dst[LW_MAX_RANK];
  char neutral[16] = {0};
  lw_literal one = {.shape = s, .data = neutral};
  *out = NULL;
  if (i->n_operands != 2 || !lw_fold_neutral(op, &one)) return NULL;
  memcpy(full, s->dims, (size_t)s->rank * sizeof *full);
  for (int32_t k = 0; k < n_dims; k++) full[dims[k]] = bound->dims[dims[k]];
  LW_TRY(lw_val_new(e, lw_shape_array(e->m->ctx, s->type, s->rank, full), out));
  char *at = (*out)->lit.data;
  for (int64_t k = 0; k < lw_elems(*out); k++, at += lw_esize(v))
    memcpy(at, neutral, (size_t)lw_esize(v));
  lw_byte_strides(s, src);
  lw_byte_strides((*out)->lit.shape, dst);
  lw_copy_strided(s->rank, s->dims, lw_esize(v), (*out)->lit.data, dst,
                  v->lit.data, src);
  return NULL;
}

static lw_status reduce_arrays(lw_eval *e, const lw_inst *i, lw_val **ops,
                               int32_t n_dims, const int64_t *dims,
                               lw_val **out) {
  int32_t operands = i->n_operands / 2, n_kept;
  const lw_shape *s = ops[0]->lit.shape;
  lw_prog *p = NULL;
  LW_TRY(lw_prog_get(e, lw_inst_comp(i, LW_ATTR_TO_APPLY), &p));
  LW_TRY(lw_check_reducer(i, p, ops, operands));
  lw_fold f = lw_reduce_fold(i);
  bool whole = true; /* in the dims that are folded */
  for (int32_t k = 0; k < n_dims; k++)
    whole = whole &&
            s->dims[dims[k]] == lw_inst_operand(i, 0)->shape->dims[dims[k]];
  if (!whole) f = lw_fold_of(s, n_dims, dims, f.op, operands);
  int64_t perm[LW_MAX_RANK], kept[LW_MAX_RANK];
  fold_perm(s, n_dims, dims, true, perm, kept, &n_kept);
  lw_val *outs[LW_FOLD_MAX_OPERANDS] = {0};
  lw_status st = lw_new_results(e, i, ops, operands, n_kept, kept, outs);
  if (!st)
    st = lw_fold_arrays(e, p, &f, operands, ops, ops + operands, n_dims, dims,
                        outs);
  if (st) {
    for (int32_t k = 0; k < operands; k++) lw_val_release(e, outs[k]);
    return st;
  }
  *out = lw_pack_results(i, operands, outs);
  return NULL;
}

lw_status lw_eval_reduce(lw_eval *e, const lw_inst *i, lw_val **ops,
                         lw_val **out) {
  int32_t n_dims = 0;
  const int64_t *dims = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n_dims);
  const lw_shape *s = ops[0]->lit.shape;
  for (int32_t k = 0; k < n_dims; k++)
    if (dims[k] < 0 || dims[k] >= s->rank)
      return lw_error(LW_INVALID_ARGUMENT, "dimensions are out of range");
  lw_val *full = NULL, *own = ops[0];
  if (!lw_shape_same_dims(s, lw_inst_operand(i, 0)->shape))
    LW_TRY(fill_bounds(e, i, own,
                       lw_comp_binary_op(lw_inst_comp(i, LW_ATTR_TO_APPLY)),
                       n_dims, dims, &full));
  if (full) ops[0] = full;
  lw_status st = reduce_arrays(e, i, ops, n_dims, dims, out);
  ops[0] = own;
  lw_val_release(e, full);
  return st;
}
