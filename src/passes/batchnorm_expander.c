/* batchnorm-expander: batch norms in plain operations.
 *
 * The formulas are the law's (numerics.md 8); the interpreter evaluates the
 * same steps in the same order, each rounded:
 *   training:  mean = sum(x)/N; d = x - mean; var = sum(d*d)/N;
 *              y = (d / sqrt(var + eps)) * scale + offset
 *   inference: y = ((x - mean) / sqrt(var + eps)) * scale + offset
 *   grad:      s = sqrt(var + eps); h = (x - mean) / s;
 *              d_offset = sum(dy); d_scale = sum(dy * h);
 *              dx = (scale / s) * ((dy - d_offset/N) - h * (d_scale/N))
 */
#include "passes/passes.h"
#include "passes/rewrite.h"

typedef struct {
  lw_rw *r;
  lw_inst *i;
  const lw_shape *full, *feature;
  int64_t dim;
  lw_comp *add; /* made when first needed */
} norm;

static lw_inst *bin(norm *b, lw_opcode op, lw_inst *x, lw_inst *y) {
  return lw_rw_bin(b->r, op, x->shape, x, y);
}

static lw_inst *spread(norm *b, lw_inst *x) {
  return lw_rw_broadcast(b->r, x, b->full, 1, &b->dim);
}

static lw_comp *adder(norm *b) {
  if (b->add) return b->add;
  lw_comp *c = lw_comp_new(b->r->m, "batch_norm_sum");
  const lw_shape *s = lw_mk_array(b->r->m, b->full->type, 0, NULL);
  lw_inst *ops[2] = {lw_inst_parameter(c, 0, s, "x"),
                     lw_inst_parameter(c, 1, s, "y")};
  c->root = lw_inst_new(c, LW_OP_ADD, s, NULL, 2, ops);
  return b->add = c;
}

static lw_inst *sum(norm *b, lw_inst *x) {
  int64_t dims[LW_MAX_RANK];
  int32_t n = 0;
  for (int32_t d = 0; d < b->full->rank; d++)
    if (d != b->dim) dims[n++] = d;
  const lw_shape *s = lw_mk_array(b->r->m, b->full->type, 0, NULL);
  lw_inst *zero = lw_rw_const_f64(b->r, s, 0);
  lw_inst *v = lw_rw_bin(b->r, LW_OP_REDUCE, b->feature, x, zero);
  lw_inst_set_i64s(v, LW_ATTR_DIMENSIONS, n, dims);
  lw_inst_set_comp(v, LW_ATTR_TO_APPLY, adder(b));
  return v;
}

static lw_inst *by_count(norm *b, lw_inst *x) {
  int64_t f = b->full->dims[b->dim];
  double n = f ? (double)(b->full->elements / f) : 0;
  return bin(b, LW_OP_DIVIDE, x, lw_rw_const_f64(b->r, b->feature, n));
}

static lw_inst *deviation(norm *b, lw_inst *var) {
  const lw_attr *a = lw_inst_attr(b->i, LW_ATTR_EPSILON);
  /* XLA's attribute is a float. */
  lw_inst *eps =
      lw_rw_const_f64(b->r, b->feature, a ? (double)(float)a->u.f : 0);
  lw_inst *v = bin(b, LW_OP_ADD, var, eps);
  return lw_rw_un(b->r, LW_OP_SQRT, b->feature, v);
}

static lw_inst *affine(norm *b, lw_inst *d, lw_inst *s) {
  lw_inst *h = bin(b, LW_OP_DIVIDE, d, spread(b, s));
  lw_inst *y = bin(b, LW_OP_MULTIPLY, h, spread(b, lw_op(b->i, 1)));
  return bin(b, LW_OP_ADD, y, spread(b, lw_op(b->i, 2)));
}

static norm begin(lw_rw *r, lw_inst *i) {
  norm b = {.r = r, .i = i};
  const lw_shape *x = lw_op(i, 0)->shape;
  b.dim = lw_inst_i64(i, LW_ATTR_FEATURE_INDEX, 0);
  b.full = lw_mk_array(r->m, x->type, x->rank, x->dims);
  b.feature = lw_mk_array(r->m, x->type, 1, &x->dims[b.dim]);
  return b;
}

static lw_inst *training(lw_rw *r, lw_inst *i) {
  if (!lw_rw_go(r, "batch norms expanded")) return NULL;
  norm b = begin(r, i);
  lw_inst *x = lw_op(i, 0), *out[3];
  out[1] = by_count(&b, sum(&b, x));
  lw_inst *d = bin(&b, LW_OP_SUBTRACT, x, spread(&b, out[1]));
  out[2] = by_count(&b, sum(&b, bin(&b, LW_OP_MULTIPLY, d, d)));
  out[0] = affine(&b, d, deviation(&b, out[2]));
  return lw_rw_make(r, LW_OP_TUPLE, i->shape, 3, out);
}

static lw_inst *inference(lw_rw *r, lw_inst *i) {
  if (!lw_rw_go(r, "batch norms expanded")) return NULL;
  norm b = begin(r, i);
  lw_inst *d = bin(&b, LW_OP_SUBTRACT, lw_op(i, 0), spread(&b, lw_op(i, 3)));
  return affine(&b, d, deviation(&b, lw_op(i, 4)));
}

/* Operands: x, scale, mean, variance, dy. */
static lw_inst *grad(lw_rw *r, lw_inst *i) {
  if (!lw_rw_go(r, "batch norms expanded")) return NULL;
  norm b = begin(r, i);
  lw_inst *dy = lw_op(i, 4), *out[3];
  lw_inst *s = deviation(&b, lw_op(i, 3));
  lw_inst *d = bin(&b, LW_OP_SUBTRACT, lw_op(i, 0), spread(&b, lw_op(i, 2)));
  lw_inst *h = bin(&b, LW_OP_DIVIDE, d, spread(&b, s));
  out[2] = sum(&b, dy);
  out[1] = sum(&b, bin(&b, LW_OP_MULTIPLY, dy, h));
  lw_inst *t = bin(&b, LW_OP_SUBTRACT, dy, spread(&b, by_count(&b, out[2])));
  lw_inst *u = bin(&b, LW_OP_MULTIPLY, h, spread(&b, by_count(&b, out[1])));
  lw_inst *q = bin(&b, LW_OP_DIVIDE, lw_op(i, 1), s);
  lw_inst *scale = spread(&b, q), *rest = bin(&b, LW_OP_SUBTRACT, t, u);
  out[0] = bin(&b, LW_OP_MULTIPLY, scale, rest);
  return lw_rw_make(r, LW_OP_TUPLE, i->shape, 3, out);
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {
      [LW_OP_BATCH_NORM_TRAINING] = training,
      [LW_OP_BATCH_NORM_INFERENCE] = inference,
      [LW_OP_BATCH_NORM_GRAD] = grad,
  };
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_batchnorm_expander = {
    "batchnorm-expander", "batch norms in plain operations", NULL, run};
