/* Inference for what moves elements, builds tuples, calls computations, and for
 * the library operations: sort, topk, fft, cholesky, triangular-solve, batch
 * norms, dimension sizes. */
#include <stdlib.h>

#include "hlo/infer_impl.h"

/* ---- moving elements ---- */

lw_status infer_concatenate(const infer *f, const lw_shape **out) {
  int32_t n;
  const int64_t *dims = lw_inst_i64s(f->inst, LW_ATTR_DIMENSIONS, &n);
  if (f->inst->n_operands < 1) return LW_BAD("needs at least one operand");
  for (int32_t k = 0; k < f->inst->n_operands; k++)
    LW_TRY(infer_want_array(f, k));
  const lw_shape *a = infer_op(f, 0);
  if (n != 1) return LW_BAD("dimensions must name one dimension");
  LW_TRY(infer_check_dims("dimensions", dims, n, a->rank, false));
  dim_list d;
  dim_list_of(&d, a);
  lw_prim type = a->type;
  int64_t along = dims[0];
  for (int32_t k = 1; k < f->inst->n_operands; k++) {
    const lw_shape *b = infer_op(f, k);
    LW_TRY(infer_same_kind(f, 0, k));
    bool same = a->rank == b->rank;
    for (int32_t i = 0; same && i < a->rank; i++)
      same = i == along || a->dims[i] == b->dims[i];
    if (!same)
      return LW_BAD(
          "operands must agree in all dimensions but %lld; got %s and %s",
          (long long)along, infer_str(f, a), infer_str(f, b));
    if (d.dims[along] != LW_UNBOUNDED && b->dims[along] != LW_UNBOUNDED &&
        __builtin_add_overflow(d.dims[along], b->dims[along], &d.dims[along]))
      return LW_BAD("dimension %lld overflows", (long long)along);
    for (int32_t i = 0; i < a->rank; i++) d.dynamic[i] |= infer_dyn(b, i);
    if (lw_prim_is_float(type)) type = lw_prim_higher_precision(type, b->type);
  }
  *out = infer_make(f, type, &d, NULL);
  return NULL;
}

lw_status infer_transpose(const infer *f, const lw_shape **out) {
  LW_TRY(infer_want_array(f, 0));
  const lw_shape *s = infer_op(f, 0);
  int32_t n;
  const int64_t *perm = lw_inst_i64s(f->inst, LW_ATTR_DIMENSIONS, &n);
  if (n != s->rank)
    return LW_BAD("dimensions must be a permutation of the %d dimensions of %s",
                  s->rank, infer_str(f, s));
  LW_TRY(infer_check_dims("dimensions", perm, n, s->rank, false));
  dim_list d = {.rank = n};
  int64_t inverse[LW_MAX_RANK], order[LW_MAX_RANK];
  for (int32_t i = 0; i < n; i++) {
    d.dims[i] = s->dims[perm[i]];
    d.dynamic[i] = infer_dyn(s, (int32_t)perm[i]);
    inverse[perm[i]] = i;
  }
  const lw_layout *layout = NULL;
  if (s->layout && s->layout->rank == n) { /* the same bytes, renamed */
    lw_layout l = *s->layout;
    for (int32_t i = 0; i < n; i++)
      order[i] = inverse[s->layout->minor_to_major[i]];
    l.minor_to_major = order;
    layout = lw_layout_intern(f->ctx, &l);
  }
  *out = infer_make(f, s->type, &d, layout);
  return NULL;
}

lw_status infer_reverse(const infer *f, const lw_shape **out) {
  LW_TRY(infer_want_array(f, 0));
  int32_t n;
  const int64_t *dims = lw_inst_i64s(f->inst, LW_ATTR_DIMENSIONS, &n);
  LW_TRY(infer_check_dims("dimensions", dims, n, infer_op(f, 0)->rank, false));
  *out = infer_op(f, 0);
  return NULL;
}

/* size + low + high + (size - 1) * interior. */
static bool padded_size(int64_t size, const int64_t *p, int64_t *out) {
  int64_t gaps = 0;
  return !(size > 0 && __builtin_mul_overflow(size - 1, p[2], &gaps)) &&
         !__builtin_add_overflow(size, gaps, out) &&
         !__builtin_add_overflow(*out, p[0], out) &&
         !__builtin_add_overflow(*out, p[1], out);
}

lw_status infer_pad(const infer *f, const lw_shape **out) {
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(infer_want_array(f, 1));
  const lw_shape *s = infer_op(f, 0), *v = infer_op(f, 1);
  if (v->rank)
    return LW_BAD("the padding value must be a scalar; it is %s",
                  infer_str(f, v));
  LW_TRY(infer_same_kind(f, 0, 1));
  int32_t n;
  const int64_t *p = lw_inst_i64s(f->inst, LW_ATTR_PADDING, &n);
  if (n != 3 * s->rank)
    return LW_BAD("padding has %d dimensions, the operand %s has %d", n / 3,
                  infer_str(f, s), s->rank);
  dim_list d;
  dim_list_of(&d, s);
  for (int32_t i = 0; i < s->rank; i++) {
    if (p[3 * i + 2] < 0)
      return LW_BAD("interior padding of dimension %d is negative", i);
    if (s->dims[i] == LW_UNBOUNDED) continue;
    if (!padded_size(s->dims[i], p + 3 * i, &d.dims[i]))
      return LW_BAD("padding of dimension %d overflows", i);
    if (d.dims[i] < 0)
      return LW_BAD("padding makes dimension %d of %s negative (%lld)", i,
                    infer_str(f, s), (long long)d.dims[i]);
  }
  lw_prim type = lw_prim_is_float(s->type)
                     ? lw_prim_higher_precision(s->type, v->type)
                     : s->type;
  *out = infer_make(f, type, &d, NULL);
  return NULL;
}

/* ---- tuples and control flow ---- */

lw_status infer_tuple(const infer *f, const lw_shape **out) {
  int32_t n = f->inst->n_operands;
  const lw_shape **elems = malloc(lw_array_bytes((size_t)n + 1, sizeof *elems));
  if (!elems) lw_oom((size_t)n * sizeof *elems);
  for (int32_t k = 0; k < n; k++) elems[k] = infer_op(f, k);
  *out = lw_shape_tuple(f->ctx, n, elems);
  free(elems);
  return NULL;
}

lw_status infer_get_tuple_element(const infer *f, const lw_shape **out) {
  const lw_shape *s = infer_op(f, 0);
  int64_t index = lw_inst_i64(f->inst, LW_ATTR_INDEX, -1);
  if (!lw_shape_is_tuple(s))
    return LW_BAD("the operand must be a tuple; it is %s", infer_str(f, s));
  if (index < 0 || index >= s->n_elems)
    return LW_BAD("index %lld is out of range: the operand %s has %d elements",
                  (long long)index, infer_str(f, s), s->n_elems);
  *out = s->elems[index];
  return NULL;
}

static lw_status want_param(const infer *f, const char *what, const lw_comp *c,
                            int32_t param, const lw_shape *given) {
  const lw_shape *p = infer_param(c, param);
  if (lw_shape_compatible(p, given)) return NULL;
  return LW_BAD("parameter %d of %s=%s is %s, but gets %s", param, what,
                c->name, infer_str(f, p), infer_str(f, given));
}

lw_status infer_while(const infer *f, const lw_shape **out) {
  const lw_shape *init = infer_op(f, 0), *cond, *body;
  const lw_comp *c = lw_inst_comp(f->inst, LW_ATTR_CONDITION);
  const lw_comp *b = lw_inst_comp(f->inst, LW_ATTR_BODY);
  LW_TRY(infer_root("condition", c, 1, &cond));
  LW_TRY(infer_root("body", b, 1, &body));
  if (cond->type != LW_PRED || cond->rank)
    return LW_BAD("condition=%s must return pred[]; it returns %s", c->name,
                  infer_str(f, cond));
  LW_TRY(want_param(f, "condition", c, 0, init));
  LW_TRY(want_param(f, "body", b, 0, init));
  if (!lw_shape_compatible(body, init))
    return LW_BAD("body=%s returns %s, but the loop carries %s", b->name,
                  infer_str(f, body), infer_str(f, init));
  *out = init;
  return NULL;
}

lw_status infer_conditional(const infer *f, const lw_shape **out) {
  const lw_inst *i = f->inst;
  int32_t n = lw_inst_called_count(i);
  if (i->n_operands < 1) return LW_BAD("needs a predicate or branch index");
  const lw_shape *sel = infer_op(f, 0);
  bool pred = sel->type == LW_PRED && sel->rank == 0;
  if (!pred && !(sel->type == LW_S32 && sel->rank == 0))
    return LW_BAD("operand 0 must be pred[] or s32[]; it is %s",
                  infer_str(f, sel));
  if (n < 1) return LW_BAD("needs at least one branch computation");
  if (pred && n != 2)
    return LW_BAD("a pred[] conditional has 2 branches; this one has %d", n);
  if (i->n_operands != n + 1)
    return LW_BAD("%d branches need %d operands after operand 0; got %d", n, n,
                  i->n_operands - 1);
  const lw_shape *first = NULL;
  for (int32_t k = 0; k < n; k++) {
    const lw_comp *c = lw_inst_called(i, k);
    const lw_shape *r;
    LW_TRY(infer_root("branch", c, 1, &r));
    LW_TRY(want_param(f, "branch", c, 0, infer_op(f, k + 1)));
    if (!first) first = r;
    if (!lw_shape_compatible(first, r))
      return LW_BAD(
          "branches must return one shape; branch 0 returns %s, "
          "branch %d (%s) %s",
          infer_str(f, first), k, c->name, infer_str(f, r));
  }
  *out = first;
  return NULL;
}

lw_status infer_call(const infer *f, const lw_shape **out) {
  const lw_comp *c = lw_inst_comp(f->inst, LW_ATTR_TO_APPLY);
  LW_TRY(infer_root("to_apply", c, f->inst->n_operands, out));
  for (int32_t k = 0; k < f->inst->n_operands; k++)
    LW_TRY(want_param(f, "to_apply", c, k, infer_op(f, k)));
  return NULL;
}

/* ---- linear algebra, sorting, norms, sizes ---- */

lw_status infer_sort(const infer *f, const lw_shape **out) {
  int32_t n, n_ops = f->inst->n_operands;
  const int64_t *dims = lw_inst_i64s(f->inst, LW_ATTR_DIMENSIONS, &n);
  if (n_ops < 1) return LW_BAD("needs at least one operand");
  for (int32_t k = 0; k < n_ops; k++) LW_TRY(infer_want_array(f, k));
  const lw_shape *s = infer_op(f, 0), *r;
  if (n != 1) return LW_BAD("dimensions must name one dimension");
  LW_TRY(infer_check_dims("dimensions", dims, n, s->rank, false));
  const lw_comp *c = lw_inst_comp(f->inst, LW_ATTR_TO_APPLY);
  LW_TRY(infer_root("to_apply", c, 2 * (int64_t)n_ops, &r));
  if (r->type != LW_PRED || r->rank)
    return LW_BAD("to_apply=%s must return pred[]; it returns %s", c->name,
                  infer_str(f, r));
  for (int32_t k = 0; k < n_ops; k++) {
    if (!lw_shape_same_dims(s, infer_op(f, k))) return infer_not_equal(f, 0, k);
    for (int32_t h = 0; h < 2; h++) {
      const lw_shape *p = infer_param(c, 2 * k + h);
      if (p->rank || p->type != infer_op(f, k)->type)
        return LW_BAD("parameter %d of to_apply=%s must be %s[]; it is %s",
                      2 * k + h, c->name, lw_prim_name(infer_op(f, k)->type),
                      infer_str(f, p));
    }
  }
  if (n_ops == 1) {
    *out = s;
    return NULL;
  }
  return infer_tuple(f, out);
}

lw_status infer_topk(const infer *f, const lw_shape **out) {
  LW_TRY(infer_want_array(f, 0));
  const lw_shape *s = infer_op(f, 0);
  int64_t k = lw_inst_i64(f->inst, LW_ATTR_K, -1);
  if (s->rank < 1) return LW_BAD("the operand must not be a scalar");
  if (k < 0 || k > s->dims[s->rank - 1])
    return LW_BAD("k=%lld must be between 0 and the last dimension of %s",
                  (long long)k, infer_str(f, s));
  dim_list d;
  dim_list_of(&d, s);
  d.dims[s->rank - 1] = k;
  d.dynamic[s->rank - 1] = false;
  const lw_shape *elems[2] = {infer_make(f, s->type, &d, NULL),
                              infer_make(f, LW_S32, &d, NULL)};
  *out = lw_shape_tuple(f->ctx, 2, elems);
  return NULL;
}

static lw_status fft_lengths(const infer *f, const lw_shape *s, lw_fft_type t,
                             const int64_t *len, int32_t n) {
  for (int32_t i = 0; i < n; i++) {
    int64_t dim = s->dims[s->rank - n + i], want = len[i];
    if (want < 0) return LW_BAD("fft_length must not be negative");
    if (t == LW_IRFFT && i == n - 1) want = want ? want / 2 + 1 : 0;
    bool used = t == LW_RFFT || t == LW_IRFFT;
    if (used && dim != want)
      return LW_BAD("fft_length needs %lld in dimension %d of %s",
                    (long long)want, s->rank - n + i, infer_str(f, s));
  }
  return NULL;
}

lw_status infer_fft(const infer *f, const lw_shape **out) {
  LW_TRY(infer_want_array(f, 0));
  const lw_shape *s = infer_op(f, 0);
  lw_fft_type t = (lw_fft_type)lw_inst_i64(f->inst, LW_ATTR_FFT_TYPE, LW_FFT);
  int32_t n;
  const int64_t *len = lw_inst_i64s(f->inst, LW_ATTR_FFT_LENGTH, &n);
  if (n < 1 || n > 3)
    return LW_BAD("fft_length must have 1 to 3 numbers; it has %d", n);
  if (s->rank < n)
    return LW_BAD("the operand %s has fewer dimensions than fft_length",
                  infer_str(f, s));
  bool real = t == LW_RFFT;
  if (real ? s->type != LW_F32 && s->type != LW_F64
           : !lw_prim_is_complex(s->type))
    return LW_BAD("%s needs a %s operand; it is %s",
                  lw_enum_name(LW_AK_ENUM_FFT_TYPE, t),
                  real ? "f32 or f64" : "complex", infer_str(f, s));
  LW_TRY(fft_lengths(f, s, t, len, n));
  dim_list d;
  dim_list_of(&d, s);
  lw_prim type = s->type;
  if (t == LW_RFFT) {
    if (len[n - 1]) d.dims[s->rank - 1] = len[n - 1] / 2 + 1;
    type = s->type == LW_F32 ? LW_C64 : LW_C128;
  } else if (t == LW_IRFFT) {
    d.dims[s->rank - 1] = len[n - 1];
    type = lw_prim_part(s->type);
  }
  *out = infer_make(f, type, &d, s->layout);
  return NULL;
}

static lw_status want_square(const infer *f, const lw_shape *s) {
  if (s->rank < 2 || s->dims[s->rank - 1] != s->dims[s->rank - 2])
    return LW_BAD(
        "the two minor dimensions of operand 0 must be equal; it is "
        "%s",
        infer_str(f, s));
  if (!lw_prim_is_float(s->type) && !lw_prim_is_complex(s->type))
    return LW_BAD("operand 0 must be floating-point or complex; it is %s",
                  infer_str(f, s));
  return NULL;
}

lw_status infer_cholesky(const infer *f, const lw_shape **out) {
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(want_square(f, infer_op(f, 0)));
  *out = infer_op(f, 0);
  return NULL;
}

lw_status infer_triangular_solve(const infer *f, const lw_shape **out) {
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(infer_want_array(f, 1));
  const lw_shape *a = infer_op(f, 0), *b = infer_op(f, 1);
  LW_TRY(want_square(f, a));
  if (a->type != b->type)
    return LW_BAD("operands must have one element type; got %s and %s",
                  infer_str(f, a), infer_str(f, b));
  if (a->rank != b->rank)
    return LW_BAD("operands must have equal rank; got %s and %s",
                  infer_str(f, a), infer_str(f, b));
  bool left = lw_inst_i64(f->inst, LW_ATTR_LEFT_SIDE, 0);
  int32_t shared = b->rank - (left ? 2 : 1);
  if (a->dims[a->rank - 2] != b->dims[shared])
    return LW_BAD(
        "the shared dimension of %s and %s does not match "
        "(left_side=%s)",
        infer_str(f, a), infer_str(f, b), left ? "true" : "false");
  for (int32_t i = 0; i < a->rank - 2; i++)
    if (a->dims[i] != b->dims[i])
      return LW_BAD("batch dimensions of %s and %s differ", infer_str(f, a),
                    infer_str(f, b));
  *out = b;
  return NULL;
}

/* Operands 1.. (first to last-1) are vectors over the feature dimension. */
static lw_status norm_operands(const infer *f, int32_t n_vectors) {
  LW_TRY(infer_want_array(f, 0));
  const lw_shape *s = infer_op(f, 0);
  int64_t feature = lw_inst_i64(f->inst, LW_ATTR_FEATURE_INDEX, -1);
  if (feature < 0 || feature >= s->rank)
    return LW_BAD("feature_index %lld is not a dimension of %s",
                  (long long)feature, infer_str(f, s));
  if (!lw_prim_is_float(s->type))
    return LW_BAD("operand 0 must be floating-point; it is %s",
                  infer_str(f, s));
  for (int32_t k = 1; k <= n_vectors; k++) {
    LW_TRY(infer_want_array(f, k));
    const lw_shape *v = infer_op(f, k);
    if (v->rank != 1 || v->dims[0] != s->dims[feature] ||
        !lw_prim_is_float(v->type))
      return LW_BAD(
          "operand %d must be a vector of the %lld features of %s; it "
          "is %s",
          k, (long long)s->dims[feature], infer_str(f, s), infer_str(f, v));
  }
  return NULL;
}

lw_status infer_batch_norm(const infer *f, const lw_shape **out) {
  bool training = f->inst->opcode == LW_OP_BATCH_NORM_TRAINING;
  bool grad = f->inst->opcode == LW_OP_BATCH_NORM_GRAD;
  LW_TRY(norm_operands(f, training ? 2 : grad ? 3 : 4));
  const lw_shape *s = infer_op(f, 0);
  if (grad) {
    LW_TRY(infer_want_array(f, 4));
    if (!lw_shape_same_dims(s, infer_op(f, 4))) return infer_not_equal(f, 0, 4);
  }
  *out = s;
  if (!training && !grad) return NULL;
  int64_t feature = lw_inst_i64(f->inst, LW_ATTR_FEATURE_INDEX, 0);
  dim_list d = {.rank = 1};
  d.dims[0] = s->dims[feature];
  d.dynamic[0] = infer_dyn(s, (int32_t)feature);
  const lw_shape *v = infer_make(f, infer_op(f, 1)->type, &d, NULL);
  const lw_shape *elems[3] = {s, v, v};
  *out = lw_shape_tuple(f->ctx, 3, elems);
  return NULL;
}

static lw_status size_dim(const infer *f, int64_t *dim) {
  LW_TRY(infer_want_array(f, 0));
  int32_t n;
  const int64_t *dims = lw_inst_i64s(f->inst, LW_ATTR_DIMENSIONS, &n);
  if (n != 1) return LW_BAD("dimensions must name one dimension");
  LW_TRY(infer_check_dims("dimensions", dims, n, infer_op(f, 0)->rank, false));
  *dim = dims[0];
  return NULL;
}

lw_status infer_get_dimension_size(const infer *f, const lw_shape **out) {
  int64_t dim = 0;
  LW_TRY(size_dim(f, &dim));
  dim_list d = {.rank = 0};
  *out = infer_make(f, LW_S32, &d, NULL);
  return NULL;
}

lw_status infer_set_dimension_size(const infer *f, const lw_shape **out) {
  int64_t dim = 0;
  LW_TRY(size_dim(f, &dim));
  const lw_shape *s = infer_op(f, 0), *n = infer_op(f, 1);
  if (n->type != LW_S32 || n->rank)
    return LW_BAD("the size must be s32[]; it is %s", infer_str(f, n));
  dim_list d;
  dim_list_of(&d, s);
  d.dynamic[dim] = true;
  *out = infer_make(f, s->type, &d, s->layout);
  return NULL;
}

lw_status infer_first_operand(const infer *f, const lw_shape **out) {
  if (f->inst->opcode == LW_OP_ADD_DEPENDENCY &&
      infer_op(f, 1)->type != LW_TOKEN)
    return LW_BAD("operand 1 must be a token; it is %s",
                  infer_str(f, infer_op(f, 1)));
  *out = infer_op(f, 0);
  return NULL;
}

lw_status infer_after_all(const infer *f, const lw_shape **out) {
  for (int32_t k = 0; k < f->inst->n_operands; k++)
    if (infer_op(f, k)->type != LW_TOKEN)
      return LW_BAD("operand %d must be a token; it is %s", k,
                    infer_str(f, infer_op(f, k)));
  *out = lw_shape_other(f->ctx, LW_TOKEN);
  return NULL;
}

lw_status infer_id(const infer *f, const lw_shape **out) {
  dim_list d = {.rank = 0};
  *out = infer_make(f, LW_U32, &d, NULL);
  return NULL;
}
