/* Dispatch and the opcodes that look at one or two operands at a time. What
 * windows over, contracts or indexes is in infer_dims.c, what cannot be
 * inferred but only checked in infer_given.c.
 *
 * One deliberate difference from XLA: its inference still knows the client
 * builder's implicit broadcasts (f32[2,1] + f32[1,3]), which its verifier then
 * refuses. Here they are errors at once.
 */
#include "hlo/infer.h"

#include <string.h>

#include "hlo/infer_impl.h"

/* ---- helpers ---- */

enum { MAX_SHAPE_TEXT = 400 };

static void print_bounded(lw_buf *b, const lw_shape *s) {
  if (b->len > MAX_SHAPE_TEXT) return;
  if (!lw_shape_is_tuple(s)) {
    lw_shape_print(b, s, false);
    return;
  }
  lw_buf_chr(b, '(');
  for (int32_t i = 0; i < s->n_elems && b->len <= MAX_SHAPE_TEXT; i++) {
    if (i) lw_buf_str(b, ", ");
    print_bounded(b, s->elems[i]);
  }
  if (b->len <= MAX_SHAPE_TEXT) lw_buf_chr(b, ')');
}

const char *lw_infer_shape_str(lw_context *ctx, const lw_shape *s) {
  lw_buf b = {0};
  print_bounded(&b, s);
  if (b.len > MAX_SHAPE_TEXT) {
    b.len = MAX_SHAPE_TEXT;
    lw_buf_str(&b, " ...");
  }
  const char *r =
      lw_arena_strdup(lw_context_arena(ctx), lw_buf_cstr(&b), b.len);
  lw_buf_free(&b);
  return r;
}

void dim_list_of(dim_list *d, const lw_shape *s) {
  d->rank = s->rank;
  for (int32_t i = 0; i < s->rank; i++) {
    d->dims[i] = s->dims[i];
    d->dynamic[i] = infer_dyn(s, i);
  }
}

const lw_shape *infer_make(const infer *f, lw_prim type, const dim_list *d,
                           const lw_layout *layout) {
  lw_shape s = {.type = type,
                .rank = d->rank,
                .dims = d->dims,
                .dynamic = d->dynamic,
                .layout = layout};
  if (!layout) s.layout = lw_layout_descending(f->ctx, d->rank);
  return lw_shape_intern(f->ctx, &s);
}

lw_status infer_want_array(const infer *f, int32_t k) {
  const lw_shape *s = infer_op(f, k);
  if (lw_shape_is_array(s)) return NULL;
  return LW_BAD("operand %d must be an array; it is %s", k, infer_str(f, s));
}

bool infer_contains(const int64_t *v, int32_t n, int64_t x) {
  for (int32_t i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

lw_status infer_check_dims(const char *what, const int64_t *v, int32_t n,
                           int32_t rank, bool sorted) {
  for (int32_t i = 0; i < n; i++) {
    if (v[i] < 0 || v[i] >= rank)
      return LW_BAD("%s names dimension %lld, but the shape has %d dimensions",
                    what, (long long)v[i], rank);
    if (infer_contains(v, i, v[i]))
      return LW_BAD("%s names dimension %lld twice", what, (long long)v[i]);
    if (sorted && i && v[i] < v[i - 1])
      return LW_BAD("%s must be in ascending order", what);
  }
  return NULL;
}

lw_status infer_root(const char *what, const lw_comp *c, int64_t n_params,
                     const lw_shape **root) {
  if (!c) return LW_BAD("%s is missing", what);
  if (!c->root || !c->root->shape)
    return LW_BAD("%s=%s has no root", what, c->name);
  if (n_params >= 0 && (int64_t)c->params.len != n_params)
    return LW_BAD("%s=%s must have %lld parameters; it has %zu", what, c->name,
                  (long long)n_params, c->params.len);
  for (size_t i = 0; i < c->params.len; i++)
    if (!c->params.data[i] || !c->params.data[i]->shape)
      return LW_BAD("%s=%s lacks parameter %zu", what, c->name, i);
  *root = c->root->shape;
  return NULL;
}

const lw_shape *infer_param(const lw_comp *c, int32_t k) {
  return c->params.data[k]->shape;
}

lw_prim lw_prim_higher_precision(lw_prim a, lw_prim b) {
  const lw_prim_info *x = &lw_prim_table[a], *y = &lw_prim_table[b];
  if (x->exp_bits != y->exp_bits) return x->exp_bits > y->exp_bits ? a : b;
  return y->man_bits > x->man_bits ? b : a;
}

bool lw_shape_compatible_mixed(const lw_shape *a, const lw_shape *b) {
  if (lw_shape_compatible(a, b)) return true;
  if (a->n_elems) {
    if (a->type != b->type || a->n_elems != b->n_elems) return false;
    for (int32_t i = 0; i < a->n_elems; i++)
      if (!lw_shape_compatible_mixed(a->elems[i], b->elems[i])) return false;
    return true;
  }
  return lw_prim_same_kind(a->type, b->type) && lw_shape_same_dims(a, b) &&
         !a->dynamic == !b->dynamic &&
         (!a->dynamic || !memcmp(a->dynamic, b->dynamic, (size_t)a->rank));
}

/* ---- elementwise ---- */

static lw_status want_class(const infer *f, int32_t k, bool ok,
                            const char *wanted) {
  if (ok) return NULL;
  return LW_BAD("operand %d must have %s elements; it is %s", k, wanted,
                infer_str(f, infer_op(f, k)));
}

typedef enum {
  TAKES_ANY,
  TAKES_FLOAT,
  TAKES_FLOAT_OR_COMPLEX,
  TAKES_INT,
  TAKES_INT_OR_PRED,
  TAKES_NUMBER,        /* everything but pred */
  TAKES_SIGNED_NUMBER, /* without unsigned integers */
  TAKES_NO_COMPLEX
} takes;

static const char *const takes_text[] = {
    "any",          "floating-point", "floating-point or complex",
    "integer",      "integer or pred", "numeric",
    "signed numeric", "non-complex"};

static bool takes_type(takes t, lw_prim p) {
  switch (t) {
    case TAKES_ANY: return true;
    case TAKES_FLOAT: return lw_prim_is_float(p);
    case TAKES_FLOAT_OR_COMPLEX:
      return lw_prim_is_float(p) || lw_prim_is_complex(p);
    case TAKES_INT: return lw_prim_is_int(p);
    case TAKES_INT_OR_PRED: return lw_prim_is_int(p) || p == LW_PRED;
    case TAKES_NUMBER: return p != LW_PRED;
    case TAKES_SIGNED_NUMBER:
      return p != LW_PRED && lw_prim_class(p) != LW_CLASS_UINT;
    case TAKES_NO_COMPLEX: return !lw_prim_is_complex(p);
  }
  return false;
}

static takes op_takes(lw_opcode op) {
  switch ((int)op) {
    case LW_OP_CEIL: case LW_OP_FLOOR: case LW_OP_ROUND_AFZ:
    case LW_OP_ROUND_EVEN: case LW_OP_CBRT: case LW_OP_ERF:
    case LW_OP_IS_FINITE: case LW_OP_COMPLEX:
      return TAKES_FLOAT;
    case LW_OP_ACOS: case LW_OP_ACOSH: case LW_OP_ASIN: case LW_OP_ASINH:
    case LW_OP_ATANH: case LW_OP_COSINE: case LW_OP_COSH:
    case LW_OP_EXPONENTIAL: case LW_OP_EXPM1: case LW_OP_LOG: case LW_OP_LOG1P:
    case LW_OP_LOGISTIC: case LW_OP_RSQRT: case LW_OP_SINE: case LW_OP_SINH:
    case LW_OP_SQRT: case LW_OP_TAN: case LW_OP_TANH: case LW_OP_ATAN2:
    case LW_OP_REAL: case LW_OP_IMAG:
      return TAKES_FLOAT_OR_COMPLEX;
    case LW_OP_CLZ: case LW_OP_POPCNT: case LW_OP_SHIFT_LEFT: case LW_OP_MULHI:
    case LW_OP_SHIFT_RIGHT_ARITHMETIC: case LW_OP_SHIFT_RIGHT_LOGICAL:
      return TAKES_INT;
    case LW_OP_NOT: case LW_OP_AND: case LW_OP_OR: case LW_OP_XOR:
      return TAKES_INT_OR_PRED;
    case LW_OP_ABS: case LW_OP_SIGN: return TAKES_SIGNED_NUMBER;
    case LW_OP_NEGATE: case LW_OP_DIVIDE: case LW_OP_POWER:
    case LW_OP_REMAINDER: case LW_OP_SUBTRACT:
      return TAKES_NUMBER;
    default: return TAKES_ANY; /* copy, add, multiply, maximum, compare ... */
  }
}

static lw_status check_takes(const infer *f, int32_t k) {
  takes t = op_takes(f->inst->opcode);
  return want_class(f, k, takes_type(t, infer_op(f, k)->type), takes_text[t]);
}

static const lw_shape *retype(const infer *f, const lw_shape *s, lw_prim t) {
  return lw_shape_with_type(f->ctx, s, t);
}

static lw_status infer_unary(const infer *f, const lw_shape **out) {
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(check_takes(f, 0));
  const lw_shape *s = infer_op(f, 0);
  switch ((int)f->inst->opcode) {
    case LW_OP_IS_FINITE: *out = retype(f, s, LW_PRED); break;
    case LW_OP_ABS: case LW_OP_REAL: case LW_OP_IMAG:
      *out = retype(f, s, lw_prim_part(s->type));
      break;
    default: *out = s;
  }
  return NULL;
}

static lw_status not_equal(const infer *f, int32_t a, int32_t b) {
  return LW_BAD(
      "operands must have equal dimensions; got %s and %s (there is no "
      "implicit broadcast; add a broadcast instruction)",
      infer_str(f, infer_op(f, a)), infer_str(f, infer_op(f, b)));
}

/* Operand a with b's dynamic dimensions added and the element type given. */
static const lw_shape *merge_dynamic(const infer *f, const lw_shape *a,
                                     const lw_shape *b, lw_prim type) {
  if (!b->dynamic || a->dynamic == b->dynamic) return retype(f, a, type);
  dim_list d;
  dim_list_of(&d, a);
  for (int32_t i = 0; i < d.rank; i++) d.dynamic[i] |= infer_dyn(b, i);
  return infer_make(f, type, &d, a->layout);
}

static lw_status same_kind(const infer *f, int32_t a, int32_t b) {
  if (lw_prim_same_kind(infer_op(f, a)->type, infer_op(f, b)->type))
    return NULL;
  return LW_BAD(
      "operands must have the same element type; got %s and %s (add a convert)",
      infer_str(f, infer_op(f, a)), infer_str(f, infer_op(f, b)));
}

static lw_status infer_binary(const infer *f, const lw_shape **out) {
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(infer_want_array(f, 1));
  const lw_shape *a = infer_op(f, 0), *b = infer_op(f, 1);
  lw_opcode op = f->inst->opcode;
  LW_TRY(same_kind(f, 0, 1));
  LW_TRY(check_takes(f, 0));
  if (!lw_shape_same_dims(a, b)) return not_equal(f, 0, 1);
  lw_prim type = lw_prim_is_float(a->type)
                     ? lw_prim_higher_precision(a->type, b->type)
                     : a->type;
  if (op == LW_OP_COMPARE) type = LW_PRED;
  if (op == LW_OP_COMPLEX) {
    if (a->type != b->type || (a->type != LW_F32 && a->type != LW_F64))
      return LW_BAD("operands must both be f32 or both f64; got %s and %s",
                    infer_str(f, a), infer_str(f, b));
    type = a->type == LW_F32 ? LW_C64 : LW_C128;
  }
  *out = merge_dynamic(f, a, b, type);
  return NULL;
}

static lw_status infer_select(const infer *f, const lw_shape **out) {
  for (int32_t k = 0; k < 3; k++) LW_TRY(infer_want_array(f, k));
  const lw_shape *p = infer_op(f, 0), *t = infer_op(f, 1), *e = infer_op(f, 2);
  if (p->type != LW_PRED)
    return LW_BAD("the predicate must have pred elements; it is %s",
                  infer_str(f, p));
  LW_TRY(same_kind(f, 1, 2));
  if (!lw_shape_same_dims(t, e)) return not_equal(f, 1, 2);
  if (p->rank && !lw_shape_same_dims(p, t)) return not_equal(f, 0, 1);
  lw_prim type = lw_prim_is_float(t->type)
                     ? lw_prim_higher_precision(t->type, e->type)
                     : t->type;
  const lw_shape *r = merge_dynamic(f, t, e, type);
  if (p->rank) {
    r = merge_dynamic(f, r, p, type);
    if (p->layout) r = lw_shape_with_layout(f->ctx, r, p->layout);
  }
  *out = r;
  return NULL;
}

static lw_status infer_clamp(const infer *f, const lw_shape **out) {
  for (int32_t k = 0; k < 3; k++) LW_TRY(infer_want_array(f, k));
  const lw_shape *s = infer_op(f, 1);
  LW_TRY(same_kind(f, 0, 1));
  LW_TRY(same_kind(f, 2, 1));
  for (int32_t k = 0; k < 3; k += 2)
    if (infer_op(f, k)->rank && !lw_shape_same_dims(infer_op(f, k), s))
      return not_equal(f, k, 1);
  *out = s;
  return NULL;
}

/* ---- moving elements ---- */

static lw_status infer_concatenate(const infer *f, const lw_shape **out) {
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
    LW_TRY(same_kind(f, 0, k));
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

static lw_status infer_transpose(const infer *f, const lw_shape **out) {
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

static lw_status infer_reverse(const infer *f, const lw_shape **out) {
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

static lw_status infer_pad(const infer *f, const lw_shape **out) {
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(infer_want_array(f, 1));
  const lw_shape *s = infer_op(f, 0), *v = infer_op(f, 1);
  if (v->rank)
    return LW_BAD("the padding value must be a scalar; it is %s",
                  infer_str(f, v));
  LW_TRY(same_kind(f, 0, 1));
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

static lw_status infer_tuple(const infer *f, const lw_shape **out) {
  int32_t n = f->inst->n_operands;
  const lw_shape **elems =
      malloc(lw_array_bytes((size_t)n + 1, sizeof *elems));
  if (!elems) lw_oom((size_t)n * sizeof *elems);
  for (int32_t k = 0; k < n; k++) elems[k] = infer_op(f, k);
  *out = lw_shape_tuple(f->ctx, n, elems);
  free(elems);
  return NULL;
}

static lw_status infer_get_tuple_element(const infer *f, const lw_shape **out) {
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

static lw_status infer_while(const infer *f, const lw_shape **out) {
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

static lw_status infer_conditional(const infer *f, const lw_shape **out) {
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
      return LW_BAD("branches must return one shape; branch 0 returns %s, "
                    "branch %d (%s) %s",
                    infer_str(f, first), k, c->name, infer_str(f, r));
  }
  *out = first;
  return NULL;
}

static lw_status infer_call(const infer *f, const lw_shape **out) {
  const lw_comp *c = lw_inst_comp(f->inst, LW_ATTR_TO_APPLY);
  LW_TRY(infer_root("to_apply", c, f->inst->n_operands, out));
  for (int32_t k = 0; k < f->inst->n_operands; k++)
    LW_TRY(want_param(f, "to_apply", c, k, infer_op(f, k)));
  return NULL;
}

/* ---- linear algebra, sorting, norms, sizes ---- */

static lw_status infer_sort(const infer *f, const lw_shape **out) {
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
    if (!lw_shape_same_dims(s, infer_op(f, k))) return not_equal(f, 0, k);
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

static lw_status infer_topk(const infer *f, const lw_shape **out) {
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

static lw_status infer_fft(const infer *f, const lw_shape **out) {
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
    return LW_BAD("the two minor dimensions of operand 0 must be equal; it is "
                  "%s",
                  infer_str(f, s));
  if (!lw_prim_is_float(s->type) && !lw_prim_is_complex(s->type))
    return LW_BAD("operand 0 must be floating-point or complex; it is %s",
                  infer_str(f, s));
  return NULL;
}

static lw_status infer_cholesky(const infer *f, const lw_shape **out) {
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(want_square(f, infer_op(f, 0)));
  *out = infer_op(f, 0);
  return NULL;
}

static lw_status infer_triangular_solve(const infer *f, const lw_shape **out) {
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
    return LW_BAD("the shared dimension of %s and %s does not match "
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
      return LW_BAD("operand %d must be a vector of the %lld features of %s; it "
                    "is %s",
                    k, (long long)s->dims[feature], infer_str(f, s),
                    infer_str(f, v));
  }
  return NULL;
}

static lw_status infer_batch_norm(const infer *f, const lw_shape **out) {
  bool training = f->inst->opcode == LW_OP_BATCH_NORM_TRAINING;
  bool grad = f->inst->opcode == LW_OP_BATCH_NORM_GRAD;
  LW_TRY(norm_operands(f, training ? 2 : grad ? 3 : 4));
  const lw_shape *s = infer_op(f, 0);
  if (grad) {
    LW_TRY(infer_want_array(f, 4));
    if (!lw_shape_same_dims(s, infer_op(f, 4))) return not_equal(f, 0, 4);
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

static lw_status infer_get_dimension_size(const infer *f,
                                          const lw_shape **out) {
  int64_t dim = 0;
  LW_TRY(size_dim(f, &dim));
  dim_list d = {.rank = 0};
  *out = infer_make(f, LW_S32, &d, NULL);
  return NULL;
}

static lw_status infer_set_dimension_size(const infer *f,
                                          const lw_shape **out) {
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

static lw_status infer_first_operand(const infer *f, const lw_shape **out) {
  if (f->inst->opcode == LW_OP_ADD_DEPENDENCY &&
      infer_op(f, 1)->type != LW_TOKEN)
    return LW_BAD("operand 1 must be a token; it is %s",
                  infer_str(f, infer_op(f, 1)));
  *out = infer_op(f, 0);
  return NULL;
}

static lw_status infer_after_all(const infer *f, const lw_shape **out) {
  for (int32_t k = 0; k < f->inst->n_operands; k++)
    if (infer_op(f, k)->type != LW_TOKEN)
      return LW_BAD("operand %d must be a token; it is %s", k,
                    infer_str(f, infer_op(f, k)));
  *out = lw_shape_other(f->ctx, LW_TOKEN);
  return NULL;
}

static lw_status infer_id(const infer *f, const lw_shape **out) {
  dim_list d = {.rank = 0};
  *out = infer_make(f, LW_U32, &d, NULL);
  return NULL;
}

/* ---- dispatch ---- */

static lw_status infer_inferable(const infer *f, const lw_shape **out) {
  switch ((int)f->inst->opcode) {
    case LW_OP_SELECT: return infer_select(f, out);
    case LW_OP_CLAMP: return infer_clamp(f, out);
    case LW_OP_CONCATENATE: return infer_concatenate(f, out);
    case LW_OP_TRANSPOSE: return infer_transpose(f, out);
    case LW_OP_REVERSE: return infer_reverse(f, out);
    case LW_OP_PAD: return infer_pad(f, out);
    case LW_OP_TUPLE: return infer_tuple(f, out);
    case LW_OP_GET_TUPLE_ELEMENT: return infer_get_tuple_element(f, out);
    case LW_OP_WHILE: return infer_while(f, out);
    case LW_OP_CONDITIONAL: return infer_conditional(f, out);
    case LW_OP_CALL: return infer_call(f, out);
    case LW_OP_MAP: return infer_map(f, out);
    case LW_OP_SCAN: return infer_scan(f, out);
    case LW_OP_REDUCE: return infer_reduce(f, out);
    case LW_OP_REDUCE_WINDOW: return infer_reduce_window(f, out);
    case LW_OP_SELECT_AND_SCATTER: return infer_select_and_scatter(f, out);
    case LW_OP_CONVOLUTION: return infer_convolution(f, out);
    case LW_OP_DOT: return infer_dot(f, out);
    case LW_OP_RAGGED_DOT: return infer_ragged_dot(f, out);
    case LW_OP_SCALED_DOT: return infer_scaled_dot(f, out);
    case LW_OP_GATHER: return infer_gather(f, out);
    case LW_OP_SCATTER: return infer_scatter(f, out);
    case LW_OP_SORT: return infer_sort(f, out);
    case LW_OP_TOPK: return infer_topk(f, out);
    case LW_OP_FFT: return infer_fft(f, out);
    case LW_OP_CHOLESKY: return infer_cholesky(f, out);
    case LW_OP_TRIANGULAR_SOLVE: return infer_triangular_solve(f, out);
    case LW_OP_BATCH_NORM_GRAD: case LW_OP_BATCH_NORM_INFERENCE:
    case LW_OP_BATCH_NORM_TRAINING:
      return infer_batch_norm(f, out);
    case LW_OP_GET_DIMENSION_SIZE: return infer_get_dimension_size(f, out);
    case LW_OP_SET_DIMENSION_SIZE: return infer_set_dimension_size(f, out);
    case LW_OP_COPY: case LW_OP_OPT_BARRIER: case LW_OP_DOMAIN:
    case LW_OP_ADD_DEPENDENCY:
      return infer_first_operand(f, out);
    case LW_OP_AFTER_ALL: return infer_after_all(f, out);
    case LW_OP_REPLICA_ID: case LW_OP_PARTITION_ID: return infer_id(f, out);
    default: break;
  }
  unsigned flags = lw_opcode_table[f->inst->opcode].flags;
  if (flags & LW_OPF_UN) return infer_unary(f, out);
  if (flags & LW_OPF_BIN) return infer_binary(f, out);
  return LW_BAD("the result shape cannot be inferred");
}

static lw_status check_operands(const lw_inst *inst) {
  if ((unsigned)inst->opcode >= LW_OPCODE_COUNT)
    return LW_BAD("unknown opcode %d", (int)inst->opcode);
  if (inst->shape && inst->shape->rank > LW_MAX_RANK)
    return LW_BAD("the result has more than %d dimensions", LW_MAX_RANK);
  int arity = lw_opcode_table[inst->opcode].arity;
  if (arity >= 0 && inst->n_operands != arity)
    return LW_BAD("takes %d operand%s, but has %d", arity,
                  arity == 1 ? "" : "s", inst->n_operands);
  for (int32_t k = 0; k < inst->n_operands; k++)
    if (!inst->operands[k].def || !inst->operands[k].def->shape)
      return LW_BAD("operand %d has no shape", k);
  for (int32_t k = 0; k < inst->n_operands; k++)
    if (inst->operands[k].def->shape->rank > LW_MAX_RANK)
      return LW_BAD("operand %d has more than %d dimensions", k, LW_MAX_RANK);
  return NULL;
}

lw_status lw_infer_shape(lw_context *ctx, const lw_inst *inst,
                         const lw_shape **out) {
  infer f = {ctx, inst};
  *out = NULL;
  lw_status s = check_operands(inst);
  if (!s)
    s = lw_opcode_table[inst->opcode].flags & LW_OPF_SHAPE
            ? infer_given(&f, out)
            : infer_inferable(&f, out);
  if (!s && lw_shape_is_array(*out)) *out = lw_shape_fill_layouts(ctx, *out);
  return lw_status_annotate(s, "%s",
                            (unsigned)inst->opcode < LW_OPCODE_COUNT
                                ? lw_opcode_name(inst->opcode)
                                : "instruction");
}
