/* ragged-dot-expander: a ragged-dot is one dot a group.
 *
 * Where the ragged dimension lies decides the kind (docs/numerics.md 7):
 *   batch        an ordinary dot: the sizes say nothing.
 *   lhs free     dot g takes the rhs of group g and all rows; a row belongs to
 *                the first group g with row < end(g), the running sum of the
 *                sizes. Selecting from the last group to the first lets the
 *                first win; rows outside every group stay 0. m and n are those
 *                of the ragged dot, so the fold rule is too.
 *   contracting  dot g runs over the whole k, with -0 * 0 outside of the group:
 *                fma(-0, 0, s) is s for every s, so these terms are skipped as
 *                the law asks, and block boundaries count by k all the same.
 *                Operands narrower than f32 are widened first (exact): not all
 *                of their types have a -0.
 */
#include "hlo/fold.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

enum { MOST_GROUPS = 256 };

typedef struct {
  int32_t n;
  const int64_t *v;
} dims;

typedef struct {
  lw_rw *r;
  lw_inst *i;
  dims lb, lc, rb, rc;
  int64_t ragged, group; /* group: the rhs' dimension, -1 when it has none */
  int64_t groups, rows;  /* the sizes as [rows, groups] */
  lw_inst *sizes;        /* s64[rows, groups] */
} ragged;

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

static void set(lw_inst *i, lw_attr_id id, dims d) {
  if (d.n > 0) lw_inst_set_i64s(i, id, d.n, d.v);
}

static const lw_shape *like(lw_rw *r, const lw_shape *s, lw_prim t) {
  return lw_mk_array(r->m, t, s->rank, s->dims);
}

static lw_inst *bin(ragged *g, lw_opcode op, lw_inst *a, lw_inst *b) {
  return lw_rw_bin(g->r, op, a->shape, a, b);
}

/* ---- dots ---- */

/* rhs without its group dimension: the other dims move down. */
static dims renumber(ragged *g, dims d, int64_t *out) {
  for (int32_t k = 0; k < d.n; k++)
    out[k] = d.v[k] - (g->group >= 0 && d.v[k] > g->group);
  return (dims){d.n, out};
}

static lw_inst *make_dot(ragged *g, const lw_shape *s, lw_inst *a, lw_inst *b) {
  int64_t rb[LW_MAX_RANK], rc[LW_MAX_RANK];
  lw_inst *dot = lw_rw_bin(g->r, LW_OP_DOT, s, a, b);
  set(dot, LW_ATTR_LHS_BATCH_DIMS, g->lb);
  set(dot, LW_ATTR_LHS_CONTRACTING_DIMS, g->lc);
  set(dot, LW_ATTR_RHS_BATCH_DIMS, renumber(g, g->rb, rb));
  set(dot, LW_ATTR_RHS_CONTRACTING_DIMS, renumber(g, g->rc, rc));
  return dot;
}

/* ---- group ends and masks ---- */

/* Column k of the sizes: s64[rows]. */
static lw_inst *size_of(ragged *g, int64_t k) {
  int64_t v[6] = {0, g->rows, 1, k, k + 1, 1};
  lw_inst *c = lw_rw_slice(g->r, g->sizes, v);
  return lw_rw_reshape(g->r, c, lw_mk_array(g->r->m, LW_S64, 1, &g->rows));
}

static lw_inst *constant(ragged *g, int64_t v) {
  return lw_rw_const_int(g->r, lw_mk_array(g->r->m, LW_S64, 1, &g->rows), v);
}

/* s64[rows] over an array: its batch dims are numbered by `batch`. One row
 * serves every batch element. */
static lw_inst *over(ragged *g, lw_inst *x, const lw_shape *s, dims batch) {
  int64_t sizes[LW_MAX_RANK], perm[LW_MAX_RANK], to[LW_MAX_RANK];
  if (g->rows == 1) {
    x = lw_rw_reshape(g->r, x, lw_mk_array(g->r->m, LW_S64, 0, NULL));
    return lw_rw_broadcast(g->r, x, s, 0, NULL);
  }
  for (int32_t k = 0; k < batch.n; k++) sizes[k] = s->dims[batch.v[k]];
  x = lw_rw_reshape(g->r, x, lw_mk_array(g->r->m, LW_S64, batch.n, sizes));
  int32_t n = 0;
  for (int32_t d = 0; d < s->rank; d++) /* increasing dimension numbers */
    for (int32_t k = 0; k < batch.n; k++)
      if (batch.v[k] == d) {
        perm[n] = k;
        to[n++] = d;
      }
  return lw_rw_broadcast(g->r, lw_rw_transpose(g->r, x, perm), s, n, to);
}

/* at OP end, over s; at counts along dim. */
static lw_inst *compare(ragged *g, lw_inst *end, const lw_shape *s, int64_t dim,
                        dims batch, lw_cmp_dir dir) {
  const lw_shape *t = like(g->r, s, LW_S64);
  lw_inst *at = lw_rw_make(g->r, LW_OP_IOTA, t, 0, NULL);
  lw_inst_set_i64(at, LW_ATTR_IOTA_DIMENSION, dim);
  return lw_rw_compare(g->r, like(g->r, s, LW_PRED), at, over(g, end, t, batch),
                       dir, -1);
}

static lw_inst *zero(lw_rw *r, const lw_shape *s, bool minus) {
  lw_class c = lw_prim_class(s->type);
  if (c == LW_CLASS_COMPLEX) { /* minus: both parts */
    lw_inst *p = zero(r, like(r, s, lw_prim_part(s->type)), minus);
    return lw_rw_bin(r, LW_OP_COMPLEX, s, p, p);
  }
  if (c == LW_CLASS_FLOAT) return lw_rw_const_f64(r, s, minus ? -0.0 : 0.0);
  return lw_rw_const_int(r, s, 0);
}

static lw_inst *choose(ragged *g, lw_inst *p, lw_inst *a, lw_inst *b) {
  return lw_rw_make(g->r, LW_OP_SELECT, a->shape, 3, (lw_inst *[]){p, a, b});
}

/* ---- the ragged dimension is a free one of the lhs ---- */

static lw_inst *rhs_of_group(ragged *g, int64_t k) {
  lw_inst *b = lw_op(g->i, 1);
  int64_t v[3 * LW_MAX_RANK], left[LW_MAX_RANK];
  int32_t n = 0;
  for (int32_t d = 0; d < b->shape->rank; d++) {
    v[3 * d] = d == g->group ? k : 0;
    v[3 * d + 1] = d == g->group ? k + 1 : b->shape->dims[d];
    v[3 * d + 2] = 1;
    if (d != g->group) left[n++] = b->shape->dims[d];
  }
  return lw_rw_reshape(g->r, lw_rw_slice(g->r, b, v),
                       lw_mk_array(g->r->m, b->shape->type, n, left));
}

static lw_inst *expand_rows(ragged *g) {
  const lw_shape *s = like(g->r, g->i->shape, g->i->shape->type);
  int64_t batch[LW_MAX_RANK], row = g->lb.n;
  for (int32_t k = 0; k < g->lb.n; k++) batch[k] = k;
  for (int64_t d = 0; d < g->ragged; d++)
    row += !has(g->lb, d) && !has(g->lc, d);
  lw_inst *end[MOST_GROUPS], *sum = NULL, *out = zero(g->r, s, false);
  for (int64_t k = 0; k < g->groups; k++)
    end[k] = sum = sum ? bin(g, LW_OP_ADD, sum, size_of(g, k)) : size_of(g, k);
  for (int64_t k = g->groups; k-- > 0;) {
    lw_inst *in = compare(g, end[k], s, row, (dims){g->lb.n, batch}, LW_CMP_LT);
    lw_inst *dot = make_dot(g, s, lw_op(g->i, 0), rhs_of_group(g, k));
    out = choose(g, in, dot, out);
  }
  return out;
}

/* ---- it is a contracting one ---- */

static lw_inst *widen(ragged *g, lw_inst *x, lw_prim acc) {
  bool narrow = lw_prim_is_float(x->shape->type) && x->shape->type != acc;
  if (!narrow) return x;
  return lw_rw_un(g->r, LW_OP_CONVERT, like(g->r, x->shape, acc), x);
}

static lw_inst *masked(ragged *g, lw_inst *x, lw_inst *from, lw_inst *to,
                       int64_t dim, dims batch, bool minus) {
  lw_inst *p = compare(g, from, x->shape, dim, batch, LW_CMP_GE);
  lw_inst *q = compare(g, to, x->shape, dim, batch, LW_CMP_LT);
  lw_inst *in = bin(g, LW_OP_AND, p, q);
  return choose(g, in, x, zero(g->r, x->shape, minus));
}

/* Groups follow each other and end at K at the latest. */
static lw_inst *end_after(ragged *g, lw_inst *start, int64_t group, int64_t k) {
  lw_inst *ops[3] = {constant(g, 0), size_of(g, group), constant(g, k)};
  lw_inst *len = lw_rw_make(g->r, LW_OP_CLAMP, start->shape, 3, ops);
  lw_inst *end = bin(g, LW_OP_ADD, start, len);
  return bin(g, LW_OP_MINIMUM, end, constant(g, k));
}

static lw_inst *expand_contracting(ragged *g) {
  const lw_shape *whole = g->i->shape;
  int64_t one[LW_MAX_RANK] = {1}, k = lw_op(g->i, 0)->shape->dims[g->ragged];
  for (int32_t d = 1; d < whole->rank; d++) one[d] = whole->dims[d];
  const lw_shape *s =
      lw_mk_array(g->r->m, whole->type, whole->rank - 1, one + 1);
  const lw_shape *lead = lw_mk_array(g->r->m, whole->type, whole->rank, one);
  lw_prim acc = lw_dot_fold(g->i).accumulator;
  lw_inst *a = widen(g, lw_op(g->i, 0), acc);
  lw_inst *b = widen(g, lw_op(g->i, 1), acc);
  lw_inst *part[MOST_GROUPS], *from = constant(g, 0);
  for (int64_t n = 0; n < g->groups; n++) {
    lw_inst *to = end_after(g, from, n, k);
    lw_inst *lhs = masked(g, a, from, to, g->ragged, g->lb, true);
    lw_inst *rhs = masked(g, b, from, to, g->rc.v[0], g->rb, false);
    lw_inst *dot = make_dot(g, s, lhs, rhs);
    part[n] = lw_rw_reshape(g->r, dot, lead);
    from = to;
  }
  if (g->groups == 1) return part[0];
  lw_inst *out =
      lw_rw_make(g->r, LW_OP_CONCATENATE, whole, (int32_t)g->groups, part);
  lw_inst_set_i64s(out, LW_ATTR_DIMENSIONS, 1, (int64_t[]){0});
  return out;
}

/* ---- the rule ---- */

static ragged begin(lw_rw *r, lw_inst *i) {
  ragged g = {.r = r,
              .i = i,
              .lb = get(i, LW_ATTR_LHS_BATCH_DIMS),
              .lc = get(i, LW_ATTR_LHS_CONTRACTING_DIMS),
              .rb = get(i, LW_ATTR_RHS_BATCH_DIMS),
              .rc = get(i, LW_ATTR_RHS_CONTRACTING_DIMS)};
  dims group = get(i, LW_ATTR_RHS_GROUP_DIMS);
  const lw_shape *s = lw_op(i, 2)->shape;
  g.ragged = get(i, LW_ATTR_LHS_RAGGED_DIMS).v[0];
  g.group = group.n ? group.v[0] : -1;
  g.groups = s->dims[s->rank - 1];
  g.rows = g.groups ? s->elements / g.groups : 1;
  return g;
}

/* The sizes are one row, or one a batch element. */
static bool is_expandable(const ragged *g) {
  bool contracting = has(g->lc, g->ragged);
  return g->groups <= MOST_GROUPS && g->groups > 0 &&
         (g->rows == 1 || g->rows == lw_dot_fold(g->i).batch) &&
         !(contracting && g->lc.n != 1);
}

static lw_inst *expand(lw_rw *r, lw_inst *i) {
  ragged g = begin(r, i);
  bool batch = has(g.lb, g.ragged);
  if (!batch && !is_expandable(&g)) return NULL;
  if (!lw_rw_go(r, "ragged dots")) return NULL;
  if (batch) return make_dot(&g, i->shape, lw_op(i, 0), lw_op(i, 1));
  lw_inst *n = lw_op(i, 2);
  int64_t two[2] = {g.rows, g.groups};
  n = lw_rw_reshape(r, n, lw_mk_array(r->m, n->shape->type, 2, two));
  if (n->shape->type != LW_S64)
    n = lw_rw_un(r, LW_OP_CONVERT, like(r, n->shape, LW_S64), n);
  g.sizes = n;
  return has(g.lc, g.ragged) ? expand_contracting(&g) : expand_rows(&g);
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {[LW_OP_RAGGED_DOT] = expand};
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_ragged_dot_expander = {
    "ragged-dot-expander", "ragged dots become one dot a group", NULL, run};
