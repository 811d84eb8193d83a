/* dot-simplifier: transposes move into and out of dots.
 *
 * A dot's bits depend on the sequence of products along the contracting dims
 * (in attribute order) and on min(m, n) (numerics.md 7); not on where those
 * dims lie in the operands. So dot(transpose(a), b) reads a by other dim
 * numbers, as long as the free dims come out in the same order. What is not
 * done: dots of one product as multiply (fma(a, b, +0) is not a*b for -0).
 */
#include "passes/passes.h"
#include "passes/rewrite.h"

static const lw_attr_id contracting[2] = {LW_ATTR_LHS_CONTRACTING_DIMS,
                                          LW_ATTR_RHS_CONTRACTING_DIMS};
static const lw_attr_id batch[2] = {LW_ATTR_LHS_BATCH_DIMS,
                                    LW_ATTR_RHS_BATCH_DIMS};

static bool contains(const int64_t *v, int32_t n, int64_t x) {
  for (int32_t k = 0; k < n; k++)
    if (v[k] == x) return true;
  return false;
}

static bool free_dims_in_order(const lw_inst *dot, int side,
                               const int64_t *perm) {
  int32_t nc, nb, rank = lw_op(dot, side)->shape->rank;
  const int64_t *c = lw_inst_i64s(dot, contracting[side], &nc);
  const int64_t *b = lw_inst_i64s(dot, batch[side], &nb);
  int64_t last = -1;
  for (int32_t d = 0; d < rank; d++) {
    if (contains(c, nc, d) || contains(b, nb, d)) continue;
    if (perm[d] < last) return false;
    last = perm[d];
  }
  return true;
}

static void remap(lw_inst *dot, lw_attr_id id, const int64_t *perm) {
  int32_t n;
  const int64_t *v = lw_inst_i64s(dot, id, &n);
  int64_t to[LW_MAX_RANK];
  if (n == 0) return;
  for (int32_t k = 0; k < n; k++) to[k] = perm[v[k]];
  lw_inst_set_i64s(dot, id, n, to);
}

static lw_inst *take_transpose(lw_rw *r, lw_inst *i, int side) {
  lw_inst *t = lw_op(i, side);
  int32_t n;
  const int64_t *perm = lw_inst_i64s(t, LW_ATTR_DIMENSIONS, &n);
  if (t->opcode != LW_OP_TRANSPOSE || !free_dims_in_order(i, side, perm))
    return NULL;
  if (!lw_rw_go(r, "transpose taken into a dot")) return NULL;
  lw_inst *ops[2] = {lw_op(i, 0), lw_op(i, 1)};
  ops[side] = lw_op(t, 0);
  lw_inst *d = lw_rw_bin(r, LW_OP_DOT, i->shape, ops[0], ops[1]);
  for (int32_t k = 0; k < i->n_attrs; k++) lw_inst_set_attr(d, &i->attrs[k]);
  d->backend_config = i->backend_config;
  remap(d, contracting[side], perm);
  remap(d, batch[side], perm);
  return d;
}

static lw_inst *dot(lw_rw *r, lw_inst *i) {
  if (i->n_operands != 2) return NULL;
  lw_inst *d = take_transpose(r, i, 0);
  return d ? d : take_transpose(r, i, 1);
}

/* transpose(dot(a, b)) that brings b's free dims before a's is dot(b, a): the
 * products commute, m and n change places. */
static lw_inst *transpose(lw_rw *r, lw_inst *i) {
  lw_inst *d = lw_op(i, 0);
  if (d->opcode != LW_OP_DOT || d->n_uses != 1 || d->n_operands != 2)
    return NULL;
  int32_t rank, nb, nc;
  const int64_t *perm = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &rank);
  (void)lw_inst_i64s(d, batch[0], &nb);
  (void)lw_inst_i64s(d, contracting[0], &nc);
  int32_t left = lw_op(d, 0)->shape->rank - nb - nc, right = rank - nb - left;
  for (int32_t k = 0; k < rank; k++) {
    int64_t want = k < nb ? k : k < nb + right ? k + left : k - right;
    if (perm[k] != want) return NULL;
  }
  if (!lw_rw_go(r, "transposed dot")) return NULL;
  lw_inst *s = lw_rw_bin(r, LW_OP_DOT, i->shape, lw_op(d, 1), lw_op(d, 0));
  for (int32_t k = 0; k < d->n_attrs; k++) lw_inst_set_attr(s, &d->attrs[k]);
  for (int side = 0; side < 2; side++) {
    int32_t n;
    const int64_t *v = lw_inst_i64s(d, contracting[1 - side], &n);
    if (n) lw_inst_set_i64s(s, contracting[side], n, v);
    v = lw_inst_i64s(d, batch[1 - side], &n);
    if (n) lw_inst_set_i64s(s, batch[side], n, v);
  }
  const lw_attr *p = lw_inst_attr(d, LW_ATTR_OPERAND_PRECISION);
  if (p && p->u.list.n == 2) {
    int64_t swapped[2] = {p->u.list.v[1], p->u.list.v[0]};
    lw_attr a = {.id = LW_ATTR_OPERAND_PRECISION, .u.list = {2, swapped}};
    lw_inst_set_attr(s, &a);
  }
  return s;
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {
      [LW_OP_DOT] = dot,
      [LW_OP_TRANSPOSE] = transpose,
  };
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_dot_simplifier = {
    "dot-simplifier", "takes transposes into dots", NULL, run};
