/* dot, ragged-dot and scaled-dot (docs/numerics.md 7). Operands are brought to
 * [batch][m][k] and [batch][k][n] in the accumulation type; a row of the
 * result is then one call into chain.c. Complex dots are four real ones. */
#include <stdlib.h>

#include "interp/chain.h"

typedef struct {
  int32_t n;
  const int64_t *v;
} dims;

static dims get(const lw_inst *i, lw_attr_id id) {
  dims d;
  d.v = lw_inst_i64s(i, id, &d.n);
  return d;
}

static bool has(dims d, int64_t x) {
  for (int32_t k = 0; k < d.n; k++)
    if (d.v[k] == x) return true;
  return false;
}

static lw_status bad(void) {
  return lw_error(LW_INVALID_ARGUMENT,
                  "the dimension numbers do not fit the operands");
}

static bool in_range(dims d, int32_t rank) {
  for (int32_t k = 0; k < d.n; k++)
    if (d.v[k] < 0 || d.v[k] >= rank) return false;
  return true;
}

/* perm = first, then batch, then the free dims and the contracting ones in the
 * wanted order. first is a group dimension or -1. */
static bool make_perm(int32_t rank, dims batch, dims contract, int64_t first,
                      bool contract_last, int64_t *perm) {
  int32_t n = 0;
  if (!in_range(batch, rank) || !in_range(contract, rank)) return false;
  if (first >= 0) perm[n++] = first;
  for (int32_t k = 0; k < batch.n; k++) perm[n++] = batch.v[k];
  for (int pass = 0; pass < 2; pass++) {
    if ((pass == 0) != contract_last) {
      for (int32_t k = 0; k < contract.n; k++) perm[n++] = contract.v[k];
      continue;
    }
    for (int32_t d = 0; d < rank; d++)
      if (d != first && !has(batch, d) && !has(contract, d)) perm[n++] = d;
  }
  return n == rank;
}

/* An operand in canonical order and accumulation type; parts 1 is NULL for
 * real types. */
typedef struct {
  void *part[2];
} operand;

static void operand_free(operand *o) {
  free(o->part[0]);
  free(o->part[1]);
}

static lw_status operand_load(lw_eval *e, const lw_val *v, const int64_t *perm,
                              lw_acc acc, operand *o) {
  lw_val *moved = NULL;
  LW_TRY(lw_val_new(e, v->lit.shape, &moved));
  lw_permute(v, perm, moved->lit.data);
  lw_status s = NULL;
  int parts = lw_prim_is_complex(v->lit.shape->type) ? 2 : 1;
  for (int k = 0; k < parts && !s; k++) {
    o->part[k] = malloc((size_t)lw_elems(v) * lw_acc_size(acc) + 8);
    if (!o->part[k])
      s = lw_error(LW_RESOURCE_EXHAUSTED, "no memory for a dot's operand");
    else
      s = lw_acc_load(e, acc, moved, k, o->part[k]);
  }
  lw_val_release(e, moved);
  return s;
}

typedef struct {
  lw_eval *e;
  lw_dot_fold_t f;
  lw_acc acc;
  void *row;    /* scratch of n accumulators */
  char *masked; /* scratch of one batch element's operands, else NULL */
} dot;

/* One row of the result over k terms. */
static void dot_row(const dot *d, int64_t k, const void *a, const void *b,
                    void *c) {
  size_t size = lw_acc_size(d->acc);
  if (!d->f.skinny) {
    lw_chain_row(d->acc, k, d->f.n, a, b, c, d->row);
    return;
  }
  for (int64_t j = 0; j < d->f.n; j++)
    lw_chain_skinny(d->acc, k, a, (const char *)b + (size_t)j * size, d->f.n,
                    (char *)c + (size_t)j * size);
}

static void dot_all(const dot *d, const void *a, const void *b, void *c) {
  size_t size = lw_acc_size(d->acc);
  for (int64_t p = 0; p < d->f.batch; p++)
    for (int64_t i = 0; i < d->f.m; i++)
      dot_row(d, d->f.k,
              (const char *)a + (size_t)((p * d->f.m + i) * d->f.k) * size,
              (const char *)b + (size_t)(p * d->f.k * d->f.n) * size,
              (char *)c + (size_t)((p * d->f.m + i) * d->f.n) * size);
}

/* ragged-dot: group g covers [start(g), start(g) + size(g)) of the ragged
 * dimension; the sizes of batch element p are row p, or one row for all. */
typedef struct {
  const lw_val *sizes;
  int64_t groups;
  int64_t ragged_stride, ragged_dim; /* of the lhs' free index: r = m / stride
                                        % dim */
  bool contracting;
} ragged;

static int64_t group_size(const ragged *r, int64_t p, int64_t g) {
  int64_t rows = r->groups ? lw_elems(r->sizes) / r->groups : 1;
  return lw_literal_get_int(&r->sizes->lit,
                            (rows > 1 ? p % rows : 0) * r->groups + g);
}

static int64_t group_of(const ragged *r, int64_t p, int64_t at) {
  uint64_t end = 0; /* wraps as s64 sums do */
  for (int64_t g = 0; g < r->groups; g++) {
    end += (uint64_t)group_size(r, p, g);
    if (at < (int64_t)end) return g;
  }
  return -1;
}

/* b is [group][batch][k][n]; rows outside all groups are zero. */
static void ragged_rows(const dot *d, const ragged *r, const void *a,
                        const void *b, void *c) {
  size_t size = lw_acc_size(d->acc);
  for (int64_t p = 0; p < d->f.batch; p++)
    for (int64_t i = 0; i < d->f.m; i++) {
      int64_t g = group_of(r, p, i / r->ragged_stride % r->ragged_dim);
      char *row = (char *)c + (size_t)((p * d->f.m + i) * d->f.n) * size;
      if (g < 0)
        memset(row, 0, (size_t)d->f.n * size);
      else
        dot_row(d, d->f.k,
                (const char *)a + (size_t)((p * d->f.m + i) * d->f.k) * size,
                (const char *)b +
                    (size_t)((g * d->f.batch + p) * d->f.k * d->f.n) * size,
                row);
    }
}

/* Elements outside of [from, to) become `other`: -0 in the lhs and +0 in the
 * rhs make fma(a, b, s) give s, so the term is skipped. */
static void keep_range(lw_acc acc, int64_t outer, int64_t k, int64_t inner,
                       int64_t from, int64_t to, bool minus, char *x) {
  size_t size = lw_acc_size(acc);
  float f = minus ? -0.0f : 0;
  double d = minus ? -0.0 : 0;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t j = 0; j < k; j++)
      for (int64_t n = 0; n < inner && (j < from || j >= to); n++) {
        char *at = x + (size_t)((o * k + j) * inner + n) * size;
        memset(at, 0, size);
        if (acc == LW_ACC_F32) memcpy(at, &f, sizeof f);
        if (acc == LW_ACC_F64) memcpy(at, &d, sizeof d);
      }
}

/* One group of one batch element: the whole k, terms outside of the group
 * skipped. ab has room for both operands. */
static void ragged_group(const dot *d, int64_t from, int64_t to, const char *a,
                         const char *b, char *ab, char *c) {
  size_t size = lw_acc_size(d->acc);
  int64_t m = d->f.m, n = d->f.n, k = d->f.k;
  char *bb = ab + (size_t)(m * k) * size;
  memcpy(ab, a, (size_t)(m * k) * size);
  memcpy(bb, b, (size_t)(k * n) * size);
  keep_range(d->acc, m, k, 1, from, to, true, ab);
  keep_range(d->acc, 1, k, n, from, to, false, bb);
  for (int64_t i = 0; i < m; i++)
    dot_row(d, k, ab + (size_t)(i * k) * size, bb, c + (size_t)(i * n) * size);
}

/* c is [group][batch][m][n]; each group contracts its own stretch of k. */
static void ragged_contracting(const dot *d, const ragged *r, const void *a,
                               const void *b, void *c) {
  size_t size = lw_acc_size(d->acc);
  int64_t m = d->f.m, n = d->f.n, k = d->f.k;
  for (int64_t p = 0; p < d->f.batch; p++) {
    int64_t start = 0;
    for (int64_t g = 0; g < r->groups; g++) {
      int64_t len = group_size(r, p, g);
      if (len < 0) len = 0;
      if (len > k - start) len = k - start;
      ragged_group(d, start, start + len,
                   (const char *)a + (size_t)(p * m * k) * size,
                   (const char *)b + (size_t)(p * k * n) * size, d->masked,
                   (char *)c + (size_t)((g * d->f.batch + p) * m * n) * size);
      start += len;
    }
  }
}

static void run_parts(const dot *d, const ragged *r, const void *a,
                      const void *b, void *c) {
  if (!r)
    dot_all(d, a, b, c);
  else if (r->contracting)
    ragged_contracting(d, r, a, b, c);
  else
    ragged_rows(d, r, a, b, c);
}

static bool operands_exist(const operand *a, const operand *b, void *const *c,
                           int n) {
  for (int k = 0; k < n; k++)
    if (!c[k]) return false;
  return a->part[0] && b->part[0];
}

/* "Complex: four real chains, each accumulated on its own: re = rr - ii (one
 * subtraction of the final sums), im = ri + ir." */
static lw_status run_dot(dot *d, const ragged *r, const operand *a,
                         const operand *b, lw_val *out) {
  bool complex = lw_prim_is_complex(out->lit.shape->type);
  size_t size = lw_acc_size(d->acc);
  int64_t n = lw_elems(out);
  void *c[4] = {0};
  int chains = complex ? 4 : 1;
  for (int k = 0; k < chains; k++) c[k] = malloc((size_t)n * size + 8);
  d->row = malloc((size_t)d->f.n * size + 8);
  bool masks = r && r->contracting;
  if (masks)
    d->masked = malloc((size_t)(d->f.k * (d->f.m + d->f.n)) * size + 8);
  lw_status s = NULL;
  if (!operands_exist(a, b, c, chains) || !d->row || (masks && !d->masked))
    s = lw_error(LW_RESOURCE_EXHAUSTED, "no memory for a dot's sums");
  lw_flush_state fl = lw_flush_begin(d->e);
  for (int k = 0; k < chains && !s; k++)
    run_parts(d, r, a->part[k >> 1], b->part[k >> 1 ? !(k & 1) : k & 1], c[k]);
  if (complex && !s) { /* rr, ri, ii, ir */
    lw_acc_sub(d->acc, n, c[0], c[2]);
    lw_acc_add(d->acc, n, c[1], c[3]);
  }
  if (!s) s = lw_acc_store(d->e, d->acc, c[0], complex ? c[1] : NULL, out);
  lw_flush_end(fl);
  for (int k = 0; k < chains; k++) free(c[k]);
  free(d->row);
  free(d->masked);
  return s;
}

/* The accumulation's sizes from the operands at hand (dynamic dims may have
 * shrunk). */
static lw_status sizes_of(const lw_inst *i, lw_val **ops, const dims *v,
                          int64_t group_dim, lw_dot_fold_t *f,
                          int64_t *result_dims, int32_t *rank) {
  const lw_shape *l = ops[0]->lit.shape, *r = ops[1]->lit.shape;
  *f = lw_dot_fold(i);
  f->k = f->m = f->n = f->batch = 1;
  for (int32_t k = 0; k < v[0].n; k++) {
    f->batch *= l->dims[v[0].v[k]];
    if (l->dims[v[0].v[k]] != r->dims[v[2].v[k]]) return bad();
    result_dims[(*rank)++] = l->dims[v[0].v[k]];
  }
  for (int32_t k = 0; k < v[1].n; k++) {
    f->k *= l->dims[v[1].v[k]];
    if (l->dims[v[1].v[k]] != r->dims[v[3].v[k]]) return bad();
  }
  for (int32_t d = 0; d < l->rank; d++) {
    if (has(v[0], d) || has(v[1], d)) continue;
    f->m *= l->dims[d];
    result_dims[(*rank)++] = l->dims[d];
  }
  for (int32_t d = 0; d < r->rank; d++) {
    if (has(v[2], d) || has(v[3], d) || d == group_dim) continue;
    f->n *= r->dims[d];
    result_dims[(*rank)++] = r->dims[d];
  }
  return *rank > LW_MAX_RANK ? bad() : NULL;
}

static lw_status eval_dot(lw_eval *e, const lw_inst *i, lw_val **ops,
                          int64_t group_dim, ragged *r, lw_val **out) {
  dims v[4] = {
      get(i, LW_ATTR_LHS_BATCH_DIMS), get(i, LW_ATTR_LHS_CONTRACTING_DIMS),
      get(i, LW_ATTR_RHS_BATCH_DIMS), get(i, LW_ATTR_RHS_CONTRACTING_DIMS)};
  int64_t lp[LW_MAX_RANK], rp[LW_MAX_RANK], rd[2 * LW_MAX_RANK];
  int32_t rank = 0;
  if (v[0].n != v[2].n || v[1].n != v[3].n ||
      !make_perm(ops[0]->lit.shape->rank, v[0], v[1], -1, true, lp) ||
      !make_perm(ops[1]->lit.shape->rank, v[2], v[3], group_dim, false, rp))
    return bad();
  dot d = {.e = e};
  if (r && r->contracting) rd[rank++] = r->groups;
  LW_TRY(sizes_of(i, ops, v, group_dim, &d.f, rd, &rank));
  if (rank != i->shape->rank) return bad();
  d.acc = lw_acc_of(d.f.accumulator);
  LW_TRY(lw_acc_check(d.acc, ops[0], ops[1], i->shape->type));
  operand a = {0}, b = {0};
  LW_TRY(lw_val_new(e, lw_result_shape(e, i->shape, rd), out));
  lw_status s = operand_load(e, ops[0], lp, d.acc, &a);
  if (!s) s = operand_load(e, ops[1], rp, d.acc, &b);
  if (!s) s = run_dot(&d, r, &a, &b, *out);
  operand_free(&a);
  operand_free(&b);
  if (s) {
    lw_val_release(e, *out);
    *out = NULL;
  }
  return s;
}

lw_status lw_eval_dot(lw_eval *e, const lw_inst *i, lw_val **ops,
                      lw_val **out) {
  return eval_dot(e, i, ops, -1, NULL, out);
}

/* Where the ragged dimension lies decides the kind: among the lhs' free dims
 * (the rhs then has a group dimension), contracting (the result gets one), or
 * batch (an ordinary dot). */
lw_status lw_eval_ragged_dot(lw_eval *e, const lw_inst *i, lw_val **ops,
                             lw_val **out) {
  dims rag = get(i, LW_ATTR_LHS_RAGGED_DIMS),
       group = get(i, LW_ATTR_RHS_GROUP_DIMS),
       batch = get(i, LW_ATTR_LHS_BATCH_DIMS),
       contract = get(i, LW_ATTR_LHS_CONTRACTING_DIMS);
  const lw_shape *l = ops[0]->lit.shape, *sizes = ops[2]->lit.shape;
  if (rag.n != 1 || !in_range(rag, l->rank) || group.n > 1 ||
      !in_range(group, ops[1]->lit.shape->rank) || sizes->rank < 1 ||
      !lw_prim_is_int(sizes->type))
    return bad();
  ragged r = {.sizes = ops[2],
              .groups = sizes->dims[sizes->rank - 1],
              .contracting = has(contract, rag.v[0])};
  if (has(batch, rag.v[0])) return eval_dot(e, i, ops, -1, NULL, out);
  if (r.groups && sizes->elements != r.groups &&
      sizes->elements / r.groups != lw_dot_fold(i).batch)
    return bad();
  if (r.contracting) {
    if (contract.n != 1 || group.n)
      return lw_error(LW_UNIMPLEMENTED,
                      "a ragged contracting dimension beside others");
    return eval_dot(e, i, ops, -1, &r, out);
  }
  if (group.n != 1 || ops[1]->lit.shape->dims[group.v[0]] != r.groups)
    return bad();
  r.ragged_dim = l->dims[rag.v[0]];
  r.ragged_stride = 1;
  for (int32_t d = (int32_t)rag.v[0] + 1; d < l->rank; d++)
    if (!has(batch, d) && !has(contract, d)) r.ragged_stride *= l->dims[d];
  return eval_dot(e, i, ops, group.v[0], &r, out);
}

/* ---- scaled-dot ---- */

static bool scale_fits(const lw_shape *s, const lw_shape *c) {
  if (c->rank && c->rank != s->rank) return false;
  for (int32_t d = 0; d < c->rank; d++)
    if (c->dims[d] ? s->dims[d] % c->dims[d] : s->dims[d]) return false;
  return lw_prim_is_float(s->type) && lw_prim_is_float(c->type);
}

static lw_status convert_to(lw_eval *e, const lw_val *v, lw_prim t,
                            lw_val **out) {
  LW_TRY(lw_val_new(e, lw_shape_with_type(e->m->ctx, v->lit.shape, t), out));
  if (v->lit.shape->type != t)
    return lw_elem_apply(e, LW_OP_CONVERT, v->lit.shape->type, t, lw_elems(v),
                         v->lit.data, NULL, (*out)->lit.data);
  memcpy((*out)->lit.data, v->lit.data, (size_t)lw_shape_bytes(v->lit.shape));
  return NULL;
}

/* scale over the dims of s, a block of equal size each. */
static lw_status spread_scale(lw_eval *e, const lw_shape *s,
                              const lw_val *scale, lw_val **out) {
  const lw_shape *c = scale->lit.shape;
  int64_t strides[LW_MAX_RANK], idx[LW_MAX_RANK] = {0};
  int size = lw_esize(scale);
  LW_TRY(lw_val_new(e, lw_shape_with_type(e->m->ctx, s, c->type), out));
  lw_shape_strides(c, strides);
  if (!s->elements) return NULL;
  char *x = (*out)->lit.data;
  do {
    int64_t at = 0;
    for (int32_t d = 0; d < c->rank; d++)
      at += idx[d] / (s->dims[d] / c->dims[d]) * strides[d];
    memcpy(x, (const char *)scale->lit.data + at * size, (size_t)size);
    x += size;
  } while (lw_next_index(s->rank, s->dims, idx));
  return NULL;
}

/* "Operands are dequantised exactly to f32 products of value and scale
 * (rounded once to f32)": scale dims divide the operand's, a scale covers a
 * block of equal size. */
static lw_status dequantise(lw_eval *e, const lw_val *v, const lw_val *scale,
                            lw_val **out) {
  if (!scale_fits(v->lit.shape, scale->lit.shape)) return bad();
  bool wide = v->lit.shape->type == LW_F64 || scale->lit.shape->type == LW_F64;
  lw_prim t = wide ? LW_F64 : LW_F32;
  lw_val *x = NULL, *y = NULL, *z = NULL;
  lw_status s = convert_to(e, v, t, &x);
  if (!s) s = convert_to(e, scale, t, &y);
  if (!s) s = spread_scale(e, v->lit.shape, y, &z);
  if (!s)
    s = lw_elem_apply(e, LW_OP_MULTIPLY, t, t, lw_elems(x), x->lit.data,
                      z->lit.data, x->lit.data);
  if (!s) s = convert_to(e, x, LW_F32, out);
  lw_val_release(e, x);
  lw_val_release(e, y);
  lw_val_release(e, z);
  return s;
}

lw_status lw_eval_scaled_dot(lw_eval *e, const lw_inst *i, lw_val **ops,
                             lw_val **out) {
  lw_val *x[2] = {0};
  lw_status s = dequantise(e, ops[0], ops[2], &x[0]);
  if (!s) s = dequantise(e, ops[1], ops[3], &x[1]);
  if (!s) s = eval_dot(e, i, x, -1, NULL, out);
  lw_val_release(e, x[0]);
  lw_val_release(e, x[1]);
  return s;
}
