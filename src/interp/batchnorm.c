/* batch-norm-* by their expansion (docs/numerics.md 8): each step below is one
 * HLO op with its rounding; sums follow the fold rule of a reduce over all
 * dims but the feature.
 *
 *   training:  mean = sum(x)/N; d = x - mean; var = sum(d*d)/N;
 *              y = (d / sqrt(var + eps)) * scale + offset
 *   inference: y = ((x - mean) / sqrt(var + eps)) * scale + offset
 *   grad:      s = sqrt(var + eps); h = (x - mean) / s;
 *              d_offset = sum(dy); d_scale = sum(dy * h);
 *              dx = (scale / s) * ((dy - d_offset/N) - h * (d_scale/N))
 */
#include <stdlib.h>

#include "interp/fold_run.h"

typedef struct {
  lw_eval *e;
  lw_prim t;
  const lw_shape *full, *feature; /* of x and of one value a feature */
  int64_t dim, n_reduced, dims[LW_MAX_RANK];
  lw_prog *add;
  lw_val *made[32];
  int n_made;
  lw_status status;
} norm;

/* Values are kept until the end; NULL after the first failure. */
static lw_val *fresh(norm *b, const lw_shape *s) {
  lw_val *v = NULL;
  if (b->status) return NULL;
  b->status = lw_val_new(b->e, s, &v);
  if (v) b->made[b->n_made++] = v;
  return v;
}

/* One elementwise op on values of one shape. */
static lw_val *op(norm *b, lw_opcode o, lw_val *x, lw_val *y) {
  lw_val *v = b->status ? NULL : fresh(b, x->lit.shape);
  if (b->status) return NULL;
  b->status = lw_elem_apply(b->e, o, b->t, b->t, lw_elems(x), x->lit.data,
                            y ? y->lit.data : NULL, v->lit.data);
  return v;
}

static lw_val *constant(norm *b, double c) {
  lw_val *v = fresh(b, b->feature);
  for (int64_t k = 0; v && k < lw_elems(v); k++)
    lw_literal_set_f64(&v->lit, k, 0, c);
  return v;
}

/* A feature's value at every element. */
static lw_val *spread(norm *b, lw_val *x) {
  lw_val *v = b->status ? NULL : fresh(b, b->full);
  if (!v || b->status) return NULL;
  int64_t from[LW_MAX_RANK] = {0}, to[LW_MAX_RANK];
  lw_byte_strides(b->full, to);
  from[b->dim] = lw_esize(x);
  lw_copy_strided(b->full->rank, b->full->dims, lw_esize(x), v->lit.data, to,
                  x->lit.data, from);
  return v;
}

static lw_val *sum(norm *b, lw_val *x) {
  lw_val *v = b->status ? NULL : fresh(b, b->feature);
  if (!v || b->status) return NULL;
  lw_val *zero = fresh(b, lw_shape_array(b->e->m->ctx, b->t, 0, NULL));
  if (!zero) return NULL;
  lw_literal_set_f64(&zero->lit, 0, 0, 0);
  lw_fold f = lw_fold_of(b->full, (int32_t)b->n_reduced, b->dims, LW_OP_ADD, 1);
  b->status = lw_fold_arrays(b->e, b->add, &f, 1, &x, &zero,
                             (int32_t)b->n_reduced, b->dims, &v);
  return v;
}

static lw_val *mean_of(norm *b, lw_val *x) {
  double n = b->full->dims[b->dim]
                 ? (double)(b->full->elements / b->full->dims[b->dim])
                 : 0;
  return op(b, LW_OP_DIVIDE, sum(b, x), constant(b, n));
}

static lw_val *deviation(norm *b, lw_val *var, double epsilon) {
  return op(b, LW_OP_SQRT, op(b, LW_OP_ADD, var, constant(b, epsilon)), NULL);
}

/* (d / s) * scale + offset, s, scale and offset a value a feature. */
static lw_val *affine(norm *b, lw_val *d, lw_val *s, lw_val *scale,
                      lw_val *offset) {
  lw_val *h = op(b, LW_OP_DIVIDE, d, spread(b, s));
  lw_val *y = op(b, LW_OP_MULTIPLY, h, spread(b, scale));
  return op(b, LW_OP_ADD, y, spread(b, offset));
}

static void training(norm *b, lw_val **ops, double eps, lw_val **r) {
  lw_val *mean = mean_of(b, ops[0]);
  lw_val *d = op(b, LW_OP_SUBTRACT, ops[0], spread(b, mean));
  lw_val *var = mean_of(b, op(b, LW_OP_MULTIPLY, d, d));
  r[0] = affine(b, d, deviation(b, var, eps), ops[1], ops[2]);
  r[1] = mean;
  r[2] = var;
}

static void inference(norm *b, lw_val **ops, double eps, lw_val **r) {
  lw_val *d = op(b, LW_OP_SUBTRACT, ops[0], spread(b, ops[3]));
  r[0] = affine(b, d, deviation(b, ops[4], eps), ops[1], ops[2]);
}

/* Operands: x, scale, mean, variance, dy. */
static void grad(norm *b, lw_val **ops, double eps, lw_val **r) {
  double n = b->full->dims[b->dim]
                 ? (double)(b->full->elements / b->full->dims[b->dim])
                 : 0;
  lw_val *dy = ops[4], *count = constant(b, n);
  lw_val *s = deviation(b, ops[3], eps);
  lw_val *d = op(b, LW_OP_SUBTRACT, ops[0], spread(b, ops[2]));
  lw_val *h = op(b, LW_OP_DIVIDE, d, spread(b, s));
  lw_val *d_offset = sum(b, dy);
  lw_val *d_scale = sum(b, op(b, LW_OP_MULTIPLY, dy, h));
  lw_val *t = op(b, LW_OP_SUBTRACT, dy,
                 spread(b, op(b, LW_OP_DIVIDE, d_offset, count)));
  lw_val *u =
      op(b, LW_OP_MULTIPLY, h, spread(b, op(b, LW_OP_DIVIDE, d_scale, count)));
  lw_val *q = op(b, LW_OP_DIVIDE, ops[1], s);
  r[0] = op(b, LW_OP_MULTIPLY, spread(b, q), op(b, LW_OP_SUBTRACT, t, u));
  r[1] = d_scale;
  r[2] = d_offset;
}

static lw_status begin(norm *b, const lw_inst *i, lw_val **ops) {
  b->full = ops[0]->lit.shape;
  b->t = b->full->type;
  b->dim = lw_inst_i64(i, LW_ATTR_FEATURE_INDEX, 0);
  bool ok = b->dim >= 0 && b->dim < b->full->rank && lw_prim_is_float(b->t);
  b->feature =
      ok ? lw_shape_array(b->e->m->ctx, b->t, 1, &b->full->dims[b->dim]) : NULL;
  for (int32_t k = 1; ok && k < i->n_operands; k++) {
    bool whole = i->opcode == LW_OP_BATCH_NORM_GRAD && k == 4;
    const lw_shape *want = whole ? b->full : b->feature;
    ok = ops[k]->lit.shape->type == b->t &&
         lw_shape_same_dims(ops[k]->lit.shape, want);
  }
  if (!ok) return lw_error(LW_INVALID_ARGUMENT, "the operands do not fit");
  for (int32_t d = 0; d < b->full->rank; d++)
    if (d != b->dim) b->dims[b->n_reduced++] = d;
  return lw_prog_binary(b->e, LW_OP_ADD, b->t, &b->add);
}

lw_status lw_eval_batch_norm(lw_eval *e, const lw_inst *i, lw_val **ops,
                             lw_val **out) {
  norm b = {.e = e};
  lw_val *r[3] = {0};
  double eps = 0;
  const lw_attr *a = lw_inst_attr(i, LW_ATTR_EPSILON);
  if (a) eps = (double)(float)a->u.f; /* XLA's attribute is a float */
  LW_TRY(begin(&b, i, ops));
  if (i->opcode == LW_OP_BATCH_NORM_TRAINING)
    training(&b, ops, eps, r);
  else if (i->opcode == LW_OP_BATCH_NORM_INFERENCE)
    inference(&b, ops, eps, r);
  else
    grad(&b, ops, eps, r);
  if (!b.status) {
    for (int k = 0; k < 3; k++)
      if (r[k]) lw_val_retain(r[k]);
    *out = lw_shape_is_tuple(i->shape) ? lw_val_tuple(i->shape, 3, r) : r[0];
  }
  for (int k = 0; k < b.n_made; k++) lw_val_release(e, b.made[k]);
  return b.status;
}
