/* scaled-dot-expander: a scaled-dot is a dot of scaled operands.
 *
 * Each operand becomes convert(f32, x) * broadcast(convert(f32, scale)): the
 * exact product rounded once to f32, as docs/numerics.md 7 asks. A scale covers
 * a block of equal size in each dimension: [c0, c1, ..] is reshaped to
 * [c0, 1, c1, 1, ..], broadcast over the blocks and reshaped to the operand's
 * dims. Shapes and dimension numbers of the dot stay, so its fold rule does.
 */
#include "hlo/fold.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

static lw_inst *convert(lw_rw *r, lw_inst *x, lw_prim t) {
  if (x->shape->type == t) return x;
  const lw_shape *s = lw_mk_array(r->m, t, x->shape->rank, x->shape->dims);
  return lw_rw_un(r, LW_OP_CONVERT, s, x);
}

/* "Scale dims divide the operand's": what the interpreter takes. */
static bool fits(const lw_shape *x, const lw_shape *scale) {
  if (scale->rank == 0) return true;
  if (scale->rank != x->rank || x->rank > LW_MAX_RANK / 2) return false;
  for (int32_t d = 0; d < x->rank; d++)
    if (scale->dims[d] ? x->dims[d] % scale->dims[d] : x->dims[d]) return false;
  return true;
}

static lw_inst *spread(lw_rw *r, lw_inst *scale, const lw_shape *x) {
  int64_t dims[LW_MAX_RANK], map[LW_MAX_RANK];
  int32_t n = 0;
  if (scale->shape->rank == 0) return lw_rw_broadcast(r, scale, x, 0, NULL);
  if (lw_shape_same_dims(scale->shape, x)) return scale;
  for (int32_t d = 0; d < x->rank; d++) {
    int64_t c = scale->shape->dims[d];
    map[d] = n;
    dims[n++] = c;
    if (c != x->dims[d]) dims[n++] = x->dims[d] / c;
  }
  const lw_shape *blocks = lw_mk_array(r->m, x->type, n, dims);
  return lw_rw_reshape(r, lw_rw_broadcast(r, scale, blocks, x->rank, map), x);
}

/* f64 operands (XLA has none) are multiplied in f64 and rounded to f32. */
static lw_inst *scaled(lw_rw *r, lw_inst *x, lw_inst *scale, lw_prim acc) {
  bool wide = x->shape->type == LW_F64 || scale->shape->type == LW_F64;
  lw_prim t = wide ? LW_F64 : LW_F32;
  const lw_shape *s = lw_mk_array(r->m, t, x->shape->rank, x->shape->dims);
  lw_inst *value = convert(r, x, t);
  lw_inst *factor = spread(r, convert(r, scale, t), s);
  lw_inst *v = lw_rw_bin(r, LW_OP_MULTIPLY, s, value, factor);
  return convert(r, convert(r, v, LW_F32), acc);
}

static bool is_real(const lw_inst *x) {
  return lw_prim_is_float(x->shape->type);
}

static lw_inst *expand(lw_rw *r, lw_inst *i) {
  static const lw_attr_id kept[] = {
      LW_ATTR_LHS_BATCH_DIMS, LW_ATTR_LHS_CONTRACTING_DIMS,
      LW_ATTR_RHS_BATCH_DIMS, LW_ATTR_RHS_CONTRACTING_DIMS};
  for (int32_t k = 0; k < 2; k++)
    if (!is_real(lw_op(i, k)) || !is_real(lw_op(i, k + 2)) ||
        !fits(lw_op(i, k)->shape, lw_op(i, k + 2)->shape))
      return NULL;
  if (!lw_rw_go(r, "scaled dots")) return NULL;
  lw_prim acc = lw_dot_accumulator(lw_op(i, 0)->shape->type,
                                   lw_op(i, 1)->shape->type, i->shape->type);
  lw_inst *lhs = scaled(r, lw_op(i, 0), lw_op(i, 2), acc);
  lw_inst *rhs = scaled(r, lw_op(i, 1), lw_op(i, 3), acc);
  lw_inst *dot = lw_rw_bin(r, LW_OP_DOT, i->shape, lhs, rhs);
  for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
    int32_t n;
    const int64_t *v = lw_inst_i64s(i, kept[k], &n);
    if (n > 0) lw_inst_set_i64s(dot, kept[k], n, v);
  }
  return dot;
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {[LW_OP_SCALED_DOT] = expand};
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_scaled_dot_expander = {
    "scaled-dot-expander", "scaled dots become dots of scaled operands", NULL,
    run};
