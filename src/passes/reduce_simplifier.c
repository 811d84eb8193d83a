/* reduce-simplifier: reduces and windows that fold one element, or nothing.
 *
 * numerics.md 5: a reduce is f(init, fold of x(0) ... x(N-1)). So with N = 1 it
 * is the elementwise f(init, x), which fuses everywhere; with N = 0 it is init.
 * The init value is applied and not dropped: 0 + x is not x for x = -0. (When
 * it is neutral, algebraic-simplifier sees max(x, -inf) and the like.)
 *
 * Folds whose result does not depend on the order (numerics.md 5: integers,
 * and, or, max, min) may also look through broadcasts, transposes and inner
 * reduces. Others would need another order, and stay.
 */
#include "hlo/fold.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

/* add, multiply, max, min, and, or, xor: they commute, so that which of the
 * reducer's parameters comes first does not matter. */
static lw_opcode reducer_op(const lw_inst *i) {
  lw_comp *c = lw_inst_comp(i, LW_ATTR_TO_APPLY);
  lw_opcode op = c ? lw_comp_binary_op(c) : LW_OPCODE_COUNT;
  return op != LW_OPCODE_COUNT && lw_fold_op_is_simple(op) ? op
                                                           : LW_OPCODE_COUNT;
}

static bool contains(const int64_t *v, int32_t n, int64_t x) {
  for (int32_t k = 0; k < n; k++)
    if (v[k] == x) return true;
  return false;
}

/* Any order, any bracketing: the same bits. */
static bool order_free(lw_opcode op, lw_prim t) {
  switch ((int)op) {
    case LW_OP_MAXIMUM:
    case LW_OP_MINIMUM:
    case LW_OP_AND:
    case LW_OP_OR:
    case LW_OP_XOR:
      return !lw_prim_is_complex(t);
    case LW_OP_ADD:
    case LW_OP_MULTIPLY:
      return lw_prim_is_int(t) || t == LW_PRED;
    default:
      return false;
  }
}

static bool idempotent(lw_opcode op) {
  return op == LW_OP_MAXIMUM || op == LW_OP_MINIMUM || op == LW_OP_AND ||
         op == LW_OP_OR;
}

static lw_inst *combine(lw_rw *r, lw_opcode op, const lw_shape *s,
                        lw_inst *init, lw_inst *x) {
  lw_inst *b = lw_rw_broadcast(r, init, s, 0, NULL);
  return lw_rw_bin(r, op, s, b, x);
}

/* ---- through the operand, order-free folds alone ---- */

static lw_inst *again(lw_rw *r, lw_inst *i, lw_inst *x, int32_t n,
                      const int64_t *dims) {
  lw_inst *ops[2] = {x, lw_op(i, 1)};
  lw_inst *v = lw_rw_make(r, LW_OP_REDUCE, i->shape, 2, ops);
  lw_inst_set_comp(v, LW_ATTR_TO_APPLY, lw_inst_comp(i, LW_ATTR_TO_APPLY));
  lw_inst_set_i64s(v, LW_ATTR_DIMENSIONS, n, dims);
  return v;
}

static lw_inst *of_transpose(lw_rw *r, lw_inst *i, lw_inst *t) {
  int32_t n, rank;
  const int64_t *dims = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  const int64_t *perm = lw_inst_i64s(t, LW_ATTR_DIMENSIONS, &rank);
  int64_t to[LW_MAX_RANK], last = -1;
  for (int32_t d = 0; d < rank; d++) { /* what is left keeps its order */
    if (contains(dims, n, d)) continue;
    if (perm[d] < last) return NULL;
    last = perm[d];
  }
  for (int32_t k = 0; k < n; k++) to[k] = perm[dims[k]];
  for (int32_t k = 1; k < n; k++)
    for (int32_t j = k; j > 0 && to[j] < to[j - 1]; j--) {
      int64_t swap = to[j];
      to[j] = to[j - 1];
      to[j - 1] = swap;
    }
  if (!lw_rw_go(r, "reduce of transpose")) return NULL;
  return again(r, i, lw_op(t, 0), n, to);
}

/* All reduced dims are copies of one another: f(init, x), f idempotent. */
static lw_inst *of_broadcast(lw_rw *r, lw_inst *i, lw_inst *b, lw_opcode op) {
  int32_t n, m;
  const int64_t *dims = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  const int64_t *from = lw_inst_i64s(b, LW_ATTR_DIMENSIONS, &m);
  int64_t to[LW_MAX_RANK];
  if (!idempotent(op) || b->shape->elements == 0) return NULL;
  for (int32_t k = 0; k < m; k++) {
    if (contains(dims, n, from[k])) return NULL;
    to[k] = from[k];
    for (int32_t j = 0; j < n; j++) to[k] -= dims[j] < from[k];
  }
  if (!lw_rw_go(r, "reduce of copies")) return NULL;
  lw_inst *x = lw_rw_broadcast(r, lw_op(b, 0), i->shape, m, to);
  return combine(r, op, i->shape, lw_op(i, 1), x);
}

/* reduce(reduce(x)) by the same f: one reduce, the inner init folded in where
 * it changes nothing (idempotent f and equal init). */
static lw_inst *of_reduce(lw_rw *r, lw_inst *i, lw_inst *x, lw_opcode op) {
  if (x->n_operands != 2 || reducer_op(x) != op || x->n_uses != 1) return NULL;
  if (!idempotent(op) || lw_op(x, 1) != lw_op(i, 1)) return NULL;
  int32_t n, m, total = 0, at = 0;
  const int64_t *outer = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  const int64_t *inner = lw_inst_i64s(x, LW_ATTR_DIMENSIONS, &m);
  int64_t to[LW_MAX_RANK];
  if (lw_op(x, 0)->shape->elements == 0) return NULL;
  for (int32_t d = 0; d < lw_op(x, 0)->shape->rank; d++) {
    bool gone = contains(inner, m, d);
    if (gone || contains(outer, n, at)) to[total++] = d;
    at += !gone;
  }
  if (!lw_rw_go(r, "reduce of reduce")) return NULL;
  return again(r, i, lw_op(x, 0), total, to);
}

static lw_inst *reduce(lw_rw *r, lw_inst *i) {
  if (i->n_operands != 2 || !lw_shape_is_array(i->shape)) return NULL;
  lw_inst *x = lw_op(i, 0), *init = lw_op(i, 1);
  lw_opcode op = reducer_op(i);
  if (x->shape->elements == 0 && i->shape->elements > 0)
    return lw_rw_go(r, "reduce of nothing")
               ? lw_rw_broadcast(r, init, i->shape, 0, NULL)
               : NULL;
  if (op == LW_OPCODE_COUNT || x->shape->type != i->shape->type) return NULL;
  if (x->shape->elements == i->shape->elements && i->shape->elements > 0) {
    if (!lw_rw_go(r, "reduce of one element")) return NULL;
    return combine(r, op, i->shape, init, lw_rw_reshape(r, x, i->shape));
  }
  if (!order_free(op, i->shape->type)) return NULL;
  if (x->opcode == LW_OP_TRANSPOSE) return of_transpose(r, i, x);
  if (x->opcode == LW_OP_BROADCAST) return of_broadcast(r, i, x, op);
  if (x->opcode == LW_OP_REDUCE) return of_reduce(r, i, x, op);
  return NULL;
}

/* A window of one element, one a place: f(init, x) as well. */
static lw_inst *reduce_window(lw_rw *r, lw_inst *i) {
  const lw_window *w = lw_inst_window(i);
  lw_opcode op = reducer_op(i);
  if (i->n_operands != 2 || op == LW_OPCODE_COUNT ||
      !lw_shape_compatible(i->shape, lw_op(i, 0)->shape))
    return NULL;
  for (int32_t d = 0; w && d < w->rank; d++) {
    const lw_window_dim *x = &w->dims[d];
    if (x->size != 1 || x->stride != 1 || x->pad_lo || x->pad_hi ||
        x->lhs_dilation != 1)
      return NULL;
  }
  if (!lw_rw_go(r, "window of one element")) return NULL;
  return combine(r, op, i->shape, lw_op(i, 1), lw_op(i, 0));
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {
      [LW_OP_REDUCE] = reduce,
      [LW_OP_REDUCE_WINDOW] = reduce_window,
  };
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_reduce_simplifier = {
    "reduce-simplifier", "reduces and windows of one element or none", NULL,
    run};
