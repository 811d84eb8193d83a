/* Dispatch, helpers, and elementwise opcodes. What moves elements, calls
 * computations or factorises is in infer_ops.c, windows in infer_window.c, what
 * contracts or indexes in infer_dims.c, and what cannot be inferred but only
 * checked in infer_given.c.
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

lw_compare_type lw_default_compare_type(const lw_inst *i) {
  const lw_inst *a = i->n_operands ? lw_inst_operand(i, 0) : NULL;
  if (!a || !a->shape) return LW_CT_NONE;
  switch (lw_prim_class(a->shape->type)) {
    case LW_CLASS_SINT:
      return LW_CT_SIGNED;
    case LW_CLASS_UINT:
    case LW_CLASS_PRED:
      return LW_CT_UNSIGNED;
    case LW_CLASS_FLOAT:
    case LW_CLASS_COMPLEX:
      return LW_CT_FLOAT;
    case LW_CLASS_OTHER:
      break;
  }
  return LW_CT_NONE;
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

static const char *const takes_text[] = {"any",
                                         "floating-point",
                                         "floating-point or complex",
                                         "integer",
                                         "integer or pred",
                                         "numeric",
                                         "signed numeric",
                                         "non-complex"};

static bool takes_type(takes t, lw_prim p) {
  switch (t) {
    case TAKES_ANY:
      return true;
    case TAKES_FLOAT:
      return lw_prim_is_float(p);
    case TAKES_FLOAT_OR_COMPLEX:
      return lw_prim_is_float(p) || lw_prim_is_complex(p);
    case TAKES_INT:
      return lw_prim_is_int(p);
    case TAKES_INT_OR_PRED:
      return lw_prim_is_int(p) || p == LW_PRED;
    case TAKES_NUMBER:
      return p != LW_PRED;
    case TAKES_SIGNED_NUMBER:
      return p != LW_PRED && lw_prim_class(p) != LW_CLASS_UINT;
    case TAKES_NO_COMPLEX:
      return !lw_prim_is_complex(p);
  }
  return false;
}

static takes op_takes(lw_opcode op) {
  switch ((int)op) {
    case LW_OP_CEIL:
    case LW_OP_FLOOR:
    case LW_OP_ROUND_AFZ:
    case LW_OP_ROUND_EVEN:
    case LW_OP_CBRT:
    case LW_OP_ERF:
    case LW_OP_IS_FINITE:
    case LW_OP_COMPLEX:
      return TAKES_FLOAT;
    case LW_OP_ACOS:
    case LW_OP_ACOSH:
    case LW_OP_ASIN:
    case LW_OP_ASINH:
    case LW_OP_ATANH:
    case LW_OP_COSINE:
    case LW_OP_COSH:
    case LW_OP_EXPONENTIAL:
    case LW_OP_EXPM1:
    case LW_OP_LOG:
    case LW_OP_LOG1P:
    case LW_OP_LOGISTIC:
    case LW_OP_RSQRT:
    case LW_OP_SINE:
    case LW_OP_SINH:
    case LW_OP_SQRT:
    case LW_OP_TAN:
    case LW_OP_TANH:
    case LW_OP_ATAN2:
    case LW_OP_REAL:
    case LW_OP_IMAG:
      return TAKES_FLOAT_OR_COMPLEX;
    case LW_OP_CLZ:
    case LW_OP_POPCNT:
    case LW_OP_SHIFT_LEFT:
    case LW_OP_MULHI:
    case LW_OP_SHIFT_RIGHT_ARITHMETIC:
    case LW_OP_SHIFT_RIGHT_LOGICAL:
      return TAKES_INT;
    case LW_OP_NOT:
    case LW_OP_AND:
    case LW_OP_OR:
    case LW_OP_XOR:
      return TAKES_INT_OR_PRED;
    case LW_OP_ABS:
    case LW_OP_SIGN:
      return TAKES_SIGNED_NUMBER;
    case LW_OP_NEGATE:
    case LW_OP_DIVIDE:
    case LW_OP_POWER:
    case LW_OP_REMAINDER:
    case LW_OP_SUBTRACT:
      return TAKES_NUMBER;
    default:
      return TAKES_ANY; /* copy, add, multiply, maximum, compare ... */
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
    case LW_OP_IS_FINITE:
      *out = retype(f, s, LW_PRED);
      break;
    case LW_OP_ABS:
    case LW_OP_REAL:
    case LW_OP_IMAG:
      *out = retype(f, s, lw_prim_part(s->type));
      break;
    default:
      *out = s;
  }
  return NULL;
}

lw_status infer_not_equal(const infer *f, int32_t a, int32_t b) {
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

lw_status infer_same_kind(const infer *f, int32_t a, int32_t b) {
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
  LW_TRY(infer_same_kind(f, 0, 1));
  LW_TRY(check_takes(f, 0));
  if (!lw_shape_same_dims(a, b)) return infer_not_equal(f, 0, 1);
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
  LW_TRY(infer_same_kind(f, 1, 2));
  if (!lw_shape_same_dims(t, e)) return infer_not_equal(f, 1, 2);
  if (p->rank && !lw_shape_same_dims(p, t)) return infer_not_equal(f, 0, 1);
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
  LW_TRY(infer_same_kind(f, 0, 1));
  LW_TRY(infer_same_kind(f, 2, 1));
  for (int32_t k = 0; k < 3; k += 2)
    if (infer_op(f, k)->rank && !lw_shape_same_dims(infer_op(f, k), s))
      return infer_not_equal(f, k, 1);
  *out = s;
  return NULL;
}

/* ---- dispatch ---- */

static lw_status infer_inferable(const infer *f, const lw_shape **out) {
  switch ((int)f->inst->opcode) {
    case LW_OP_SELECT:
      return infer_select(f, out);
    case LW_OP_CLAMP:
      return infer_clamp(f, out);
    case LW_OP_CONCATENATE:
      return infer_concatenate(f, out);
    case LW_OP_TRANSPOSE:
      return infer_transpose(f, out);
    case LW_OP_REVERSE:
      return infer_reverse(f, out);
    case LW_OP_PAD:
      return infer_pad(f, out);
    case LW_OP_TUPLE:
      return infer_tuple(f, out);
    case LW_OP_GET_TUPLE_ELEMENT:
      return infer_get_tuple_element(f, out);
    case LW_OP_WHILE:
      return infer_while(f, out);
    case LW_OP_CONDITIONAL:
      return infer_conditional(f, out);
    case LW_OP_CALL:
      return infer_call(f, out);
    case LW_OP_MAP:
      return infer_map(f, out);
    case LW_OP_SCAN:
      return infer_scan(f, out);
    case LW_OP_REDUCE:
      return infer_reduce(f, out);
    case LW_OP_REDUCE_WINDOW:
      return infer_reduce_window(f, out);
    case LW_OP_SELECT_AND_SCATTER:
      return infer_select_and_scatter(f, out);
    case LW_OP_CONVOLUTION:
      return infer_convolution(f, out);
    case LW_OP_DOT:
      return infer_dot(f, out);
    case LW_OP_RAGGED_DOT:
      return infer_ragged_dot(f, out);
    case LW_OP_SCALED_DOT:
      return infer_scaled_dot(f, out);
    case LW_OP_GATHER:
      return infer_gather(f, out);
    case LW_OP_SCATTER:
      return infer_scatter(f, out);
    case LW_OP_SORT:
      return infer_sort(f, out);
    case LW_OP_TOPK:
      return infer_topk(f, out);
    case LW_OP_FFT:
      return infer_fft(f, out);
    case LW_OP_CHOLESKY:
      return infer_cholesky(f, out);
    case LW_OP_TRIANGULAR_SOLVE:
      return infer_triangular_solve(f, out);
    case LW_OP_BATCH_NORM_GRAD:
    case LW_OP_BATCH_NORM_INFERENCE:
    case LW_OP_BATCH_NORM_TRAINING:
      return infer_batch_norm(f, out);
    case LW_OP_GET_DIMENSION_SIZE:
      return infer_get_dimension_size(f, out);
    case LW_OP_SET_DIMENSION_SIZE:
      return infer_set_dimension_size(f, out);
    case LW_OP_COPY:
    case LW_OP_OPT_BARRIER:
    case LW_OP_DOMAIN:
    case LW_OP_ADD_DEPENDENCY:
      return infer_first_operand(f, out);
    case LW_OP_AFTER_ALL:
      return infer_after_all(f, out);
    case LW_OP_REPLICA_ID:
    case LW_OP_PARTITION_ID:
      return infer_id(f, out);
    default:
      break;
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
