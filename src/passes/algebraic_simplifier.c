/* algebraic-simplifier: arithmetic, logic, comparisons, selects and converts.
 *
 * Only rewrites that keep every bit are here (docs/numerics.md 11); each rule
 * says why it does. What XLA does and this pass does not, since it changes
 * floats: x+0 (turns -0 to +0), x*0, x-x, x/x, a/b as a*(1/b), reassociation,
 * pow(x,2), log/exp identities, the dropping of f32->bf16->f32.
 *
 * A word on NaN: an identity such as x*1 = x keeps x's payload where the
 * multiply would have given the canonical NaN. NaNs that arithmetic made are
 * canonical already, and outputs are compared with NaN == NaN.
 *
 * The last rule of every elementwise opcode is hoisting: if all operands are
 * broadcasts of the same smaller shape (or of constants), f works on the small
 * shape and the result is broadcast. The same f sees the same operands, once
 * instead of many times.
 */
#include <math.h>

#include "passes/passes.h"
#include "passes/rewrite.h"

static bool plain_float(lw_prim t) {
  return t == LW_F16 || t == LW_BF16 || t == LW_F32 || t == LW_F64;
}

/* IEEE formats. The f8, f6 and f4 kinds differ in zeros, infinities and NaN;
 * identities of signs and limits are not claimed for them. */
static bool is_float(const lw_inst *i) { return plain_float(i->shape->type); }
/* An operation on i's type may be left out: it would not flush subnormals. */
static bool may_drop(const lw_rw *r, const lw_inst *i) {
  return !r->env->flush_denormals || !lw_prim_is_float(i->shape->type);
}

static bool is_pred(const lw_inst *i) { return i->shape->type == LW_PRED; }
static bool same_shape(const lw_inst *a, const lw_inst *b) {
  return lw_shape_compatible(a->shape, b->shape);
}

/* ---- hoisting above broadcasts ---- */

static bool is_scalar_fill(const lw_inst *x) {
  return x->opcode == LW_OP_BROADCAST && lw_op(x, 0)->shape->rank == 0;
}

static bool same_broadcast(const lw_inst *a, const lw_inst *b) {
  int32_t na, nb;
  const int64_t *da = lw_inst_i64s(a, LW_ATTR_DIMENSIONS, &na);
  const int64_t *db = lw_inst_i64s(b, LW_ATTR_DIMENSIONS, &nb);
  if (na != nb || !lw_shape_same_dims(lw_op(a, 0)->shape, lw_op(b, 0)->shape))
    return false;
  for (int32_t k = 0; k < na; k++)
    if (da[k] != db[k]) return false;
  return true;
}

/* The operand whose source has the shape to compute in, or NULL. */
static lw_inst *hoist_frame(const lw_inst *i) {
  lw_inst *frame = NULL;
  for (int32_t k = 0; k < i->n_operands; k++) {
    lw_inst *x = lw_op(i, k);
    if (x->opcode != LW_OP_BROADCAST) return NULL;
    if (!lw_shape_same_dims(x->shape, i->shape)) return NULL;
    if (is_scalar_fill(x)) {
      frame = frame ? frame : x;
      continue;
    }
    if (frame && !is_scalar_fill(frame) && !same_broadcast(frame, x))
      return NULL;
    frame = x;
  }
  return frame;
}

static lw_inst *small_operand(lw_rw *r, lw_inst *x, const lw_inst *frame) {
  lw_inst *src = lw_op(x, 0);
  const lw_shape *f = lw_op(frame, 0)->shape;
  if (f->rank == 0 || !is_scalar_fill(x)) return src;
  const lw_shape *s = lw_mk_array(r->m, src->shape->type, f->rank, f->dims);
  return lw_rw_broadcast(r, src, s, 0, NULL);
}

static lw_inst *hoist(lw_rw *r, lw_inst *i) {
  if (i->n_operands == 0 || i->shape->rank == 0) return NULL;
  lw_inst *frame = hoist_frame(i);
  if (!frame) return NULL;
  const lw_shape *f = lw_op(frame, 0)->shape;
  if (f->elements >= i->shape->elements) return NULL;
  if (!lw_rw_go(r, "hoisted above a broadcast")) return NULL;
  lw_inst *ops[3];
  for (int32_t k = 0; k < i->n_operands; k++)
    ops[k] = small_operand(r, lw_op(i, k), frame);
  const lw_shape *s = lw_mk_array(r->m, i->shape->type, f->rank, f->dims);
  lw_inst *small = lw_rw_make(r, i->opcode, s, i->n_operands, ops);
  for (int32_t k = 0; k < i->n_attrs; k++)
    lw_inst_set_attr(small, &i->attrs[k]);
  int32_t n;
  const int64_t *dims = lw_inst_i64s(frame, LW_ATTR_DIMENSIONS, &n);
  return lw_rw_broadcast(r, small, i->shape, n, dims);
}

/* ---- what --allow-inexact=NAME turns on ----
 * Each changes float bits, says so in its statistic, and is off by default. */

static bool inexact(lw_rw *r, const char *name, const char *stat) {
  return lw_pass_allows_inexact(r->env, name) && lw_rw_go(r, stat);
}

/* x + 0 loses the sign of -0; x * 0 loses NaN, infinities and signs. */
static lw_inst *zero_identity(lw_rw *r, lw_inst *i) {
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  if (!is_float(i) || !(lw_is_all(b, 0.0) || lw_is_all(b, -0.0))) return NULL;
  if (i->opcode == LW_OP_MULTIPLY)
    return inexact(r, "multiply-zero", "inexact: multiply-zero") ? b : NULL;
  return inexact(r, "add-zero", "inexact: add-zero") ? a : NULL;
}

/* x / y as x * (1 / y), where the reciprocals are fewer: rounds twice. */
static lw_inst *reciprocal(lw_rw *r, lw_inst *i) {
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  if (!is_float(i) || b->opcode != LW_OP_BROADCAST) return NULL;
  lw_inst *y = lw_op(b, 0);
  int32_t n;
  const int64_t *dims = lw_inst_i64s(b, LW_ATTR_DIMENSIONS, &n);
  if (y->shape->elements >= i->shape->elements) return NULL;
  if (!inexact(r, "reciprocal", "inexact: reciprocal")) return NULL;
  lw_inst *one = lw_rw_const_f64(r, y->shape, 1);
  lw_inst *inv = lw_rw_bin(r, LW_OP_DIVIDE, y->shape, one, y);
  lw_inst *wide = lw_rw_broadcast(r, inv, b->shape, n, dims);
  return lw_rw_bin(r, LW_OP_MULTIPLY, i->shape, a, wide);
}

/* Powers by a small constant as products and roots: other roundings. */
static lw_inst *float_power(lw_rw *r, lw_inst *i) {
  static const double known[] = {1, 2, 3, 0.5, -1};
  lw_inst *x = lw_op(i, 0);
  size_t k = 0;
  while (k < 5 && !lw_is_all(lw_op(i, 1), known[k])) k++;
  if (k == 5 || !is_float(i)) return NULL;
  if (!inexact(r, "power", "inexact: power")) return NULL;
  if (known[k] == 0.5) return lw_rw_un(r, LW_OP_SQRT, i->shape, x);
  if (known[k] == -1) {
    lw_inst *one = lw_rw_const_f64(r, i->shape, 1);
    return lw_rw_bin(r, LW_OP_DIVIDE, i->shape, one, x);
  }
  if (known[k] == 1) return x;
  lw_inst *square = lw_rw_bin(r, LW_OP_MULTIPLY, i->shape, x, x);
  return known[k] == 2 ? square
                       : lw_rw_bin(r, LW_OP_MULTIPLY, i->shape, square, x);
}

/* ---- sums ---- */

/* Constants go right: add and multiply commute bit for bit. */
static bool const_left(const lw_inst *i) {
  return lw_uniform(lw_op(i, 0)) && !lw_uniform(lw_op(i, 1));
}

static lw_inst *swap(lw_rw *r, lw_inst *i) {
  if (!lw_rw_go(r, "constant moved right")) return NULL;
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  return lw_rw_bin(r, i->opcode, i->shape, b, a);
}

/* (x op c1) op c2 = x op (c1 op c2): wrapping integers, min, max, and, or, xor
 * are associative exactly (numerics.md 5: any order). */
static lw_inst *reassociate(lw_rw *r, lw_inst *i) {
  lw_inst *x = lw_op(i, 0), *c2 = lw_op(i, 1);
  if (x->opcode != i->opcode || x->n_uses != 1) return NULL;
  if (!lw_uniform(c2) || !lw_uniform(lw_op(x, 1))) return NULL;
  if (lw_uniform(lw_op(x, 0))) return NULL;
  if (!lw_rw_go(r, "constants combined")) return NULL;
  lw_inst *c = lw_rw_bin(r, i->opcode, i->shape, lw_op(x, 1), c2);
  return lw_rw_bin(r, i->opcode, i->shape, lw_op(x, 0), c);
}

static lw_inst *add(lw_rw *r, lw_inst *i) {
  if (const_left(i)) return swap(r, i);
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  bool ints = lw_type_is_int(i);
  /* x + 0 = x for integers; x + (-0) = x for floats, -0 and NaN included. */
  if (may_drop(r, i) &&
      (ints ? lw_is_all_int(b, 0) : is_float(i) && lw_is_all(b, -0.0)))
    return lw_rw_go(r, "x+0") ? a : NULL;
  lw_inst *s = ints ? reassociate(r, i) : zero_identity(r, i);
  if (s) return s;
  /* IEEE 754 defines x - y as x + (-y). */
  if ((ints || is_float(i)) && b->opcode == LW_OP_NEGATE &&
      lw_rw_go(r, "x+(-y)"))
    return lw_rw_bin(r, LW_OP_SUBTRACT, i->shape, a, lw_op(b, 0));
  if ((ints || is_float(i)) && a->opcode == LW_OP_NEGATE &&
      lw_rw_go(r, "x+(-y)"))
    return lw_rw_bin(r, LW_OP_SUBTRACT, i->shape, b, lw_op(a, 0));
  return hoist(r, i);
}

static lw_inst *subtract(lw_rw *r, lw_inst *i) {
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  bool ints = lw_type_is_int(i);
  /* x - (+0) = x: -0 - +0 is -0. */
  if (may_drop(r, i) &&
      ((ints && lw_is_all_int(b, 0)) || (is_float(i) && lw_is_all(b, 0.0))))
    return lw_rw_go(r, "x-0") ? a : NULL;
  if (ints && a == b && lw_rw_go(r, "x-x"))
    return lw_rw_const_int(r, i->shape, 0);
  lw_inst *s = zero_identity(r, i);
  if (s) return s;
  if ((ints || is_float(i)) && b->opcode == LW_OP_NEGATE &&
      lw_rw_go(r, "x-(-y)"))
    return lw_rw_bin(r, LW_OP_ADD, i->shape, a, lw_op(b, 0));
  if (ints && lw_uniform(b) && !lw_uniform(a) && lw_rw_go(r, "x-c as x+(-c)")) {
    uint64_t v = (uint64_t)lw_literal_get_int(lw_uniform(b), 0);
    lw_inst *c = lw_rw_const_int(r, i->shape, (int64_t)(0 - v));
    return lw_rw_bin(r, LW_OP_ADD, i->shape, a, c);
  }
  return hoist(r, i);
}

static lw_inst *negate(lw_rw *r, lw_inst *i) {
  lw_inst *a = lw_op(i, 0);
  if (a->opcode == LW_OP_NEGATE) /* two sign flips; wrapping for integers */
    return lw_rw_go(r, "-(-x)") ? lw_op(a, 0) : NULL;
  if (lw_type_is_int(i) && a->opcode == LW_OP_SUBTRACT && a->n_uses == 1 &&
      lw_rw_go(r, "-(x-y)"))
    return lw_rw_bin(r, LW_OP_SUBTRACT, i->shape, lw_op(a, 1), lw_op(a, 0));
  return hoist(r, i);
}

/* ---- products ---- */

static lw_inst *multiply(lw_rw *r, lw_inst *i) {
  if (const_left(i)) return swap(r, i);
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  bool ints = lw_type_is_int(i), real = ints || is_float(i);
  if (real && may_drop(r, i) && lw_is_all(b, 1))
    return lw_rw_go(r, "x*1") ? a : NULL;
  if (ints && lw_is_all_int(b, 0)) return lw_rw_go(r, "x*0") ? b : NULL;
  if (is_float(i) && may_drop(r, i) && lw_is_all(b, -1) &&
      lw_rw_go(r, "x*(-1)"))
    return lw_rw_un(r, LW_OP_NEGATE, i->shape, a);
  if (real && a->opcode == LW_OP_NEGATE && b->opcode == LW_OP_NEGATE &&
      lw_rw_go(r, "(-x)*(-y)")) /* signs xor; magnitudes are the same */
    return lw_rw_bin(r, i->opcode, i->shape, lw_op(a, 0), lw_op(b, 0));
  lw_inst *s = ints ? reassociate(r, i) : zero_identity(r, i);
  return s ? s : hoist(r, i);
}

/* 1/c is a normal number of the type and exact: c is a power of two whose
 * reciprocal is normal. Then x/c and x*(1/c) round the same real number. */
static bool exact_reciprocal(const lw_inst *b, double *inv) {
  const lw_literal *l = lw_uniform(b);
  if (!l || !lw_prim_is_float(l->shape->type)) return false;
  const lw_prim_info *t = &lw_prim_table[l->shape->type];
  int e, bias = (1 << (t->exp_bits - 1)) - 1;
  double c = lw_literal_get_f64(l, 0, 0);
  if (t->exp_bits < 5 || !isfinite(c) || fabs(frexp(c, &e)) != 0.5)
    return false;
  int p = e - 1; /* c = +-2^p */
  if (-p < 1 - bias || -p > bias) return false;
  *inv = 1 / c;
  return true;
}

static int log2_of(const lw_inst *b) {
  const lw_literal *l = lw_uniform(b);
  if (!l) return -1;
  int64_t v = lw_literal_get_int(l, 0);
  return v > 0 && (v & (v - 1)) == 0 ? __builtin_ctzll((uint64_t)v) : -1;
}

static bool is_unsigned(const lw_inst *i) {
  return lw_prim_class(i->shape->type) == LW_CLASS_UINT;
}

/* Never negative: division and remainder are those of the unsigned type. */
static bool non_negative(const lw_inst *x) {
  int64_t lo, hi;
  lw_int_range(x, &lo, &hi);
  return is_unsigned(x) || lo >= 0;
}

static lw_inst *divide(lw_rw *r, lw_inst *i) {
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  bool ints = lw_type_is_int(i);
  double inv;
  if ((ints || is_float(i)) && may_drop(r, i) && lw_is_all(b, 1))
    return lw_rw_go(r, "x/1") ? a : NULL;
  if (is_float(i) && exact_reciprocal(b, &inv) && lw_rw_go(r, "x/2^k")) {
    lw_inst *c = lw_rw_const_f64(r, i->shape, inv);
    return lw_rw_bin(r, LW_OP_MULTIPLY, i->shape, a, c);
  }
  if (ints && log2_of(b) >= 0 && non_negative(a) && lw_rw_go(r, "n/2^k")) {
    lw_inst *k = lw_rw_const_int(r, i->shape, log2_of(b));
    return lw_rw_bin(r, LW_OP_SHIFT_RIGHT_LOGICAL, i->shape, a, k);
  }
  lw_inst *s = hoist(r, i);
  return s ? s : reciprocal(r, i);
}

static lw_inst *remainder_op(lw_rw *r, lw_inst *i) {
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  if (!lw_type_is_int(i)) return hoist(r, i);
  if (lw_is_all_int(b, 1) && lw_rw_go(r, "n rem 1"))
    return lw_rw_const_int(r, i->shape, 0);
  int64_t alo, ahi, blo, bhi;
  lw_int_range(a, &alo, &ahi);
  lw_int_range(b, &blo, &bhi);
  bool small = alo >= 0 && ahi < blo;
  if (small && lw_rw_go(r, "n rem more than n")) return a;
  if (log2_of(b) >= 0 && non_negative(a) && lw_rw_go(r, "n rem 2^k")) {
    int64_t mask = ((int64_t)1 << log2_of(b)) - 1;
    lw_inst *k = lw_rw_const_int(r, i->shape, mask);
    return lw_rw_bin(r, LW_OP_AND, i->shape, a, k);
  }
  return hoist(r, i);
}

/* Integer powers wrap like the multiplications they stand for. */
static lw_inst *power(lw_rw *r, lw_inst *i) {
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  if (!lw_type_is_int(i)) {
    lw_inst *s = float_power(r, i);
    return s ? s : hoist(r, i);
  }
  if (lw_is_all_int(b, 0) && lw_rw_go(r, "n^0"))
    return lw_rw_const_int(r, i->shape, 1);
  if (lw_is_all_int(b, 1) && lw_rw_go(r, "n^1")) return a;
  if (lw_is_all_int(b, 2) && lw_rw_go(r, "n^2"))
    return lw_rw_bin(r, LW_OP_MULTIPLY, i->shape, a, a);
  return hoist(r, i);
}

/* ---- bits ---- */

static lw_inst *invert(lw_rw *r, lw_inst *x) {
  return lw_rw_un(r, LW_OP_NOT, x->shape, x);
}

static lw_inst *and_op(lw_rw *r, lw_inst *i) {
  if (const_left(i)) return swap(r, i);
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  if (a == b) return lw_rw_go(r, "x&x") ? a : NULL;
  if (lw_is_all_int(b, 0)) return lw_rw_go(r, "x&0") ? b : NULL;
  if (lw_is_all_ones(b)) return lw_rw_go(r, "x&~0") ? a : NULL;
  lw_inst *s = reassociate(r, i);
  return s ? s : hoist(r, i);
}

static lw_inst *or_op(lw_rw *r, lw_inst *i) {
  if (const_left(i)) return swap(r, i);
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  if (a == b) return lw_rw_go(r, "x|x") ? a : NULL;
  if (lw_is_all_int(b, 0)) return lw_rw_go(r, "x|0") ? a : NULL;
  if (lw_is_all_ones(b)) return lw_rw_go(r, "x|~0") ? b : NULL;
  lw_inst *s = reassociate(r, i);
  return s ? s : hoist(r, i);
}

static lw_inst *xor_op(lw_rw *r, lw_inst *i) {
  if (const_left(i)) return swap(r, i);
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  if (a == b && lw_rw_go(r, "x^x")) return lw_rw_const_int(r, i->shape, 0);
  if (lw_is_all_int(b, 0)) return lw_rw_go(r, "x^0") ? a : NULL;
  if (lw_is_all_ones(b) && lw_rw_go(r, "x^~0")) return invert(r, a);
  lw_inst *s = reassociate(r, i);
  return s ? s : hoist(r, i);
}

static lw_cmp_dir negated(lw_cmp_dir d) {
  static const lw_cmp_dir not[] = {
      [LW_CMP_EQ] = LW_CMP_NE, [LW_CMP_NE] = LW_CMP_EQ,
      [LW_CMP_GE] = LW_CMP_LT, [LW_CMP_GT] = LW_CMP_LE,
      [LW_CMP_LE] = LW_CMP_GT, [LW_CMP_LT] = LW_CMP_GE};
  return not[d];
}

/* A total order: integers, pred, or floats compared so. */
static bool totally_ordered(const lw_inst *cmp) {
  if (lw_inst_i64(cmp, LW_ATTR_COMPARE_TYPE, -1) == LW_CT_TOTALORDER)
    return true;
  lw_prim t = lw_op(cmp, 0)->shape->type;
  return t == LW_PRED || lw_prim_is_int(t);
}

/* not(a < b) is a >= b in a total order. For floats, NaN compares false with
 * everything but NE: only EQ and NE are each other's negation. */
static lw_inst *not_op(lw_rw *r, lw_inst *i) {
  lw_inst *a = lw_op(i, 0);
  if (a->opcode == LW_OP_NOT) return lw_rw_go(r, "~~x") ? lw_op(a, 0) : NULL;
  if (a->opcode == LW_OP_COMPARE && a->n_uses == 1) {
    lw_cmp_dir d = (lw_cmp_dir)lw_inst_i64(a, LW_ATTR_DIRECTION, 0);
    bool eq = d == LW_CMP_EQ || d == LW_CMP_NE;
    if ((eq || totally_ordered(a)) && lw_rw_go(r, "~(x<y)"))
      return lw_rw_compare(r, i->shape, lw_op(a, 0), lw_op(a, 1), negated(d),
                           lw_inst_i64(a, LW_ATTR_COMPARE_TYPE, -1));
  }
  return hoist(r, i);
}

/* Shifting zero gives zero at any distance, an arithmetic one included. */
static lw_inst *shift(lw_rw *r, lw_inst *i) {
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  if (lw_is_all_int(b, 0) || lw_is_all_int(a, 0))
    return lw_rw_go(r, "shift by or of 0") ? a : NULL;
  return hoist(r, i);
}

/* ---- comparisons ---- */

static lw_cmp_dir mirrored(lw_cmp_dir d) {
  static const lw_cmp_dir m[] = {
      [LW_CMP_EQ] = LW_CMP_EQ, [LW_CMP_NE] = LW_CMP_NE,
      [LW_CMP_GE] = LW_CMP_LE, [LW_CMP_GT] = LW_CMP_LT,
      [LW_CMP_LE] = LW_CMP_GE, [LW_CMP_LT] = LW_CMP_GT};
  return m[d];
}

/* -1: ranges do not decide. */
static int decided(lw_cmp_dir d, const lw_inst *a, const lw_inst *b) {
  int64_t alo, ahi, blo, bhi;
  lw_int_range(a, &alo, &ahi);
  lw_int_range(b, &blo, &bhi);
  if (a->shape->type == LW_U64 && (alo < 0 || blo < 0)) return -1;
  bool apart = ahi < blo || bhi < alo;
  bool one = alo == ahi && blo == bhi && alo == blo;
  switch (d) {
    case LW_CMP_EQ:
      return apart ? 0 : one ? 1 : -1;
    case LW_CMP_NE:
      return apart ? 1 : one ? 0 : -1;
    case LW_CMP_LT:
      return ahi < blo ? 1 : alo >= bhi ? 0 : -1;
    case LW_CMP_LE:
      return ahi <= blo ? 1 : alo > bhi ? 0 : -1;
    case LW_CMP_GT:
      return alo > bhi ? 1 : ahi <= blo ? 0 : -1;
    case LW_CMP_GE:
      return alo >= bhi ? 1 : ahi < blo ? 0 : -1;
  }
  return -1;
}

static lw_inst *compare_pred(lw_rw *r, lw_inst *i, lw_cmp_dir d) {
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  if (!is_pred(a) || !lw_uniform(b)) return NULL;
  bool is_true = lw_is_all_ones(b);
  if ((d == LW_CMP_EQ && is_true) || (d == LW_CMP_NE && !is_true))
    return lw_rw_go(r, "p == true") ? a : NULL;
  if ((d == LW_CMP_NE && is_true) || (d == LW_CMP_EQ && !is_true))
    return lw_rw_go(r, "p == false") ? invert(r, a) : NULL;
  return NULL;
}

static lw_inst *compare_int(lw_rw *r, lw_inst *i, lw_cmp_dir d) {
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  if (a == b && lw_rw_go(r, "x == x")) {
    bool v = d == LW_CMP_EQ || d == LW_CMP_LE || d == LW_CMP_GE;
    return lw_rw_const_int(r, i->shape, v);
  }
  int v = decided(d, a, b);
  if (v >= 0 && lw_rw_go(r, "comparison decided by ranges"))
    return lw_rw_const_int(r, i->shape, v);
  /* 0 and 1 compared with 0: what was converted from pred. */
  if (a->opcode == LW_OP_CONVERT && is_pred(lw_op(a, 0)) &&
      lw_is_all_int(b, 0) && (d == LW_CMP_NE || d == LW_CMP_EQ) &&
      lw_rw_go(r, "convert(p) != 0"))
    return d == LW_CMP_NE ? lw_op(a, 0) : invert(r, lw_op(a, 0));
  return NULL;
}

static lw_inst *compare(lw_rw *r, lw_inst *i) {
  lw_cmp_dir d = (lw_cmp_dir)lw_inst_i64(i, LW_ATTR_DIRECTION, 0);
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  if (const_left(i) && lw_rw_go(r, "constant moved right"))
    return lw_rw_compare(r, i->shape, b, a, mirrored(d),
                         lw_inst_i64(i, LW_ATTR_COMPARE_TYPE, -1));
  lw_inst *s = NULL;
  if (is_pred(a)) s = compare_pred(r, i, d);
  if (!s && (is_pred(a) || lw_type_is_int(a))) s = compare_int(r, i, d);
  return s ? s : hoist(r, i);
}

/* ---- selects ---- */

static lw_inst *select_pred(lw_rw *r, lw_inst *i) {
  lw_inst *p = lw_op(i, 0), *t = lw_op(i, 1), *f = lw_op(i, 2);
  if (!is_pred(i) || !same_shape(p, i)) return NULL;
  bool t1 = lw_is_all_ones(t), t0 = lw_is_all_int(t, 0);
  bool f1 = lw_is_all_ones(f), f0 = lw_is_all_int(f, 0);
  if (!(t1 || t0 || f1 || f0) || !lw_rw_go(r, "select of pred")) return NULL;
  if (t1 && f0) return p;
  if (t0 && f1) return invert(r, p);
  if (t1) return lw_rw_bin(r, LW_OP_OR, i->shape, p, f);
  if (f0) return lw_rw_bin(r, LW_OP_AND, i->shape, p, t);
  if (t0) return lw_rw_bin(r, LW_OP_AND, i->shape, invert(r, p), f);
  return lw_rw_bin(r, LW_OP_OR, i->shape, invert(r, p), t);
}

static lw_inst *select3(lw_rw *r, lw_inst *i, lw_inst *p, lw_inst *t,
                        lw_inst *f) {
  return lw_rw_make(r, LW_OP_SELECT, i->shape, 3, (lw_inst *[]){p, t, f});
}

/* select moves elements: all of these pick the same ones. */
static lw_inst *select_op(lw_rw *r, lw_inst *i) {
  lw_inst *p = lw_op(i, 0), *t = lw_op(i, 1), *f = lw_op(i, 2);
  if (!lw_shape_is_array(i->shape)) return NULL;
  if (t == f) return lw_rw_go(r, "select of equals") ? t : NULL;
  if (lw_uniform(p) && lw_rw_go(r, "select by a constant"))
    return lw_is_all_int(p, 0) ? f : t;
  if (p->opcode == LW_OP_NOT && lw_rw_go(r, "select(~p)"))
    return select3(r, i, lw_op(p, 0), f, t);
  lw_inst *s = select_pred(r, i);
  if (s) return s;
  if (t->opcode == LW_OP_SELECT && lw_op(t, 0) == p &&
      lw_rw_go(r, "select of select"))
    return select3(r, i, p, lw_op(t, 1), f);
  if (f->opcode == LW_OP_SELECT && lw_op(f, 0) == p &&
      lw_rw_go(r, "select of select"))
    return select3(r, i, p, t, lw_op(f, 2));
  return same_shape(t, i) && lw_shape_same_dims(p->shape, i->shape)
             ? hoist(r, i)
             : NULL;
}

/* ---- extremes ---- */

/* max propagates NaN and -inf is below everything else, so max(x, -inf) = x
 * (softmax writes it); integer bounds likewise. */
static bool is_lowest(const lw_inst *c) {
  int64_t lo, hi;
  if (is_float(c)) return lw_is_all(c, -(double)INFINITY);
  if (!lw_type_is_int(c) && !is_pred(c)) return false;
  if (c->shape->type == LW_U64) return lw_is_all_int(c, 0);
  lw_int_bounds(c->shape->type, &lo, &hi);
  return lw_is_all_int(c, lo);
}

static bool is_highest(const lw_inst *c) {
  int64_t lo, hi;
  if (is_float(c)) return lw_is_all(c, (double)INFINITY);
  if (lw_prim_is_int(c->shape->type) && c->shape->type == LW_U64)
    return lw_is_all_int(c, -1);
  if (!lw_type_is_int(c) && !is_pred(c)) return false;
  lw_int_bounds(c->shape->type, &lo, &hi);
  return lw_is_all_int(c, hi);
}

static lw_inst *extreme(lw_rw *r, lw_inst *i) {
  if (const_left(i)) return swap(r, i);
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  bool max = i->opcode == LW_OP_MAXIMUM;
  if (a == b && may_drop(r, i)) return lw_rw_go(r, "max(x,x)") ? a : NULL;
  if (!may_drop(r, i)) return hoist(r, i);
  if (max ? is_lowest(b) : is_highest(b))
    return lw_rw_go(r, "max(x,lowest)") ? a : NULL;
  if (lw_type_is_int(i) && i->shape->type != LW_U64) {
    int64_t alo, ahi, blo, bhi;
    lw_int_range(a, &alo, &ahi);
    lw_int_range(b, &blo, &bhi);
    if ((max ? alo >= bhi : ahi <= blo) && lw_rw_go(r, "max decided by ranges"))
      return a;
    if ((max ? ahi <= blo : alo >= bhi) && lw_rw_go(r, "max decided by ranges"))
      return b;
  }
  lw_inst *s = lw_prim_is_complex(i->shape->type) ? NULL : reassociate(r, i);
  return s ? s : hoist(r, i);
}

static lw_inst *clamp(lw_rw *r, lw_inst *i) {
  lw_inst *lo = lw_op(i, 0), *x = lw_op(i, 1), *hi = lw_op(i, 2);
  if (!lw_type_is_int(i) || i->shape->type == LW_U64) return NULL;
  int64_t l0, l1, x0, x1, h0, h1;
  lw_int_range(lo, &l0, &l1);
  lw_int_range(x, &x0, &x1);
  lw_int_range(hi, &h0, &h1);
  if (l1 <= x0 && x1 <= h0 && lw_rw_go(r, "clamp of what is inside")) return x;
  return NULL;
}

static lw_inst *abs_op(lw_rw *r, lw_inst *i) {
  lw_inst *a = lw_op(i, 0);
  if (!same_shape(a, i)) return hoist(r, i);
  bool inner = a->opcode == LW_OP_ABS && same_shape(lw_op(a, 0), a);
  if (inner && is_float(i)) return lw_rw_go(r, "abs(abs)") ? a : NULL;
  if (a->opcode == LW_OP_NEGATE && is_float(i) && lw_rw_go(r, "abs(-x)"))
    return lw_rw_un(r, LW_OP_ABS, i->shape, lw_op(a, 0));
  return hoist(r, i);
}

/* ---- converts ---- */

/* Every value of a is a value of b. */
static bool holds(lw_prim b, lw_prim a) {
  const lw_prim_info *x = &lw_prim_table[a], *y = &lw_prim_table[b];
  if (a == b) return true;
  if (a == LW_PRED)
    return lw_prim_is_int(b) ? x->bits > 0 && y->bits > 1 : plain_float(b);
  if (lw_prim_is_int(a) && lw_prim_is_int(b))
    return x->cls == y->cls ? y->bits >= x->bits
                            : y->cls == LW_CLASS_SINT && y->bits > x->bits;
  if (lw_prim_is_int(a) && plain_float(b)) /* and the exponent: f16 to 65504 */
    return y->man_bits + 1 >= x->bits - (x->cls == LW_CLASS_SINT) &&
           (b != LW_F16 || x->bits <= 8);
  if (lw_prim_is_float(a) && plain_float(b))
    return y->exp_bits >= x->exp_bits && y->man_bits >= x->man_bits &&
           (plain_float(a) || y->exp_bits > x->exp_bits);
  return false;
}

/* Of integers: floats saturate where integers wrap. */
static bool saturates(lw_prim src, lw_prim from, lw_prim t) {
  return lw_prim_is_int(src) && lw_prim_is_float(from) && lw_prim_is_int(t) &&
         !holds(t, src);
}

/* A -> B -> C is A -> C when B holds all of A: the second conversion sees the
 * very value and rounds, saturates or wraps it once. */
static lw_inst *convert(lw_rw *r, lw_inst *i) {
  lw_inst *a = lw_op(i, 0);
  lw_prim t = i->shape->type, from = a->shape->type;
  if (t == from) return lw_rw_go(r, "convert to the same type") ? a : NULL;
  if (a->opcode == LW_OP_CONVERT && may_drop(r, a)) {
    lw_inst *x = lw_op(a, 0);
    lw_prim src = x->shape->type;
    bool ints = lw_prim_is_int(src) && lw_prim_is_int(from) &&
                lw_prim_is_int(t) && /* low bits of low bits */
                lw_prim_table[t].bits <= lw_prim_table[from].bits;
    if ((holds(from, src) || ints) && !saturates(src, from, t) &&
        lw_rw_go(r, "convert of convert"))
      return src == t ? x : lw_rw_un(r, LW_OP_CONVERT, i->shape, x);
  }
  return hoist(r, i);
}

/* Bits are bits: equal element widths leave dimensions alone. */
static lw_inst *bitcast_convert(lw_rw *r, lw_inst *i) {
  lw_inst *a = lw_op(i, 0);
  if (same_shape(a, i))
    return lw_rw_go(r, "bitcast-convert to the same type") ? a : NULL;
  if (a->opcode == LW_OP_BITCAST_CONVERT) {
    lw_inst *x = lw_op(a, 0);
    if (same_shape(x, i)) return lw_rw_go(r, "bitcast-convert back") ? x : NULL;
    if (lw_shape_same_dims(x->shape, i->shape) &&
        lw_shape_same_dims(x->shape, a->shape) &&
        lw_rw_go(r, "bitcast-convert of bitcast-convert"))
      return lw_rw_un(r, LW_OP_BITCAST_CONVERT, i->shape, x);
  }
  return lw_shape_same_dims(a->shape, i->shape) ? hoist(r, i) : NULL;
}

static lw_inst *real_op(lw_rw *r, lw_inst *i) {
  lw_inst *a = lw_op(i, 0);
  if (same_shape(a, i)) return lw_rw_go(r, "real of a real") ? a : NULL;
  if (a->opcode == LW_OP_COMPLEX)
    return lw_rw_go(r, "real(complex)") ? lw_op(a, 0) : NULL;
  return hoist(r, i);
}

static lw_inst *imag_op(lw_rw *r, lw_inst *i) {
  lw_inst *a = lw_op(i, 0);
  if (a->opcode == LW_OP_COMPLEX)
    return lw_rw_go(r, "imag(complex)") ? lw_op(a, 1) : NULL;
  return hoist(r, i);
}

static lw_inst *complex_op(lw_rw *r, lw_inst *i) {
  lw_inst *a = lw_op(i, 0), *b = lw_op(i, 1);
  if (a->opcode == LW_OP_REAL && b->opcode == LW_OP_IMAG &&
      lw_op(a, 0) == lw_op(b, 0) && same_shape(lw_op(a, 0), i))
    return lw_rw_go(r, "complex(real,imag)") ? lw_op(a, 0) : NULL;
  return hoist(r, i);
}

/* Rounding to a format that holds the type's every value. */
static lw_inst *reduce_precision(lw_rw *r, lw_inst *i) {
  const lw_prim_info *t = &lw_prim_table[i->shape->type];
  bool holds_all = lw_inst_i64(i, LW_ATTR_EXPONENT_BITS, 0) >= t->exp_bits &&
                   lw_inst_i64(i, LW_ATTR_MANTISSA_BITS, 0) >= t->man_bits;
  if (is_float(i) && holds_all && may_drop(r, i))
    return lw_rw_go(r, "reduce-precision to more") ? lw_op(i, 0) : NULL;
  return hoist(r, i);
}

/* Static dims are known (dynamic ones never come here). */
static lw_inst *dimension_size(lw_rw *r, lw_inst *i) {
  int32_t n;
  const int64_t *d = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  if (n != 1 || !lw_rw_go(r, "size of a static dim")) return NULL;
  return lw_rw_const_int(r, i->shape, lw_op(i, 0)->shape->dims[d[0]]);
}

/* ---- the table ---- */

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  lw_rule rules[LW_OPCODE_COUNT] = {0};
  for (int op = 0; op < LW_OPCODE_COUNT; op++)
    if (lw_opcode_is_elementwise((lw_opcode)op)) rules[op] = hoist;
  rules[LW_OP_STOCHASTIC_CONVERT] = NULL;
  rules[LW_OP_ADD] = add;
  rules[LW_OP_SUBTRACT] = subtract;
  rules[LW_OP_NEGATE] = negate;
  rules[LW_OP_MULTIPLY] = multiply;
  rules[LW_OP_DIVIDE] = divide;
  rules[LW_OP_REMAINDER] = remainder_op;
  rules[LW_OP_POWER] = power;
  rules[LW_OP_AND] = and_op;
  rules[LW_OP_OR] = or_op;
  rules[LW_OP_XOR] = xor_op;
  rules[LW_OP_NOT] = not_op;
  rules[LW_OP_SHIFT_LEFT] = shift;
  rules[LW_OP_SHIFT_RIGHT_LOGICAL] = shift;
  rules[LW_OP_SHIFT_RIGHT_ARITHMETIC] = shift;
  rules[LW_OP_COMPARE] = compare;
  rules[LW_OP_SELECT] = select_op;
  rules[LW_OP_MAXIMUM] = extreme;
  rules[LW_OP_MINIMUM] = extreme;
  rules[LW_OP_CLAMP] = clamp;
  rules[LW_OP_ABS] = abs_op;
  rules[LW_OP_CONVERT] = convert;
  rules[LW_OP_BITCAST_CONVERT] = bitcast_convert;
  rules[LW_OP_REAL] = real_op;
  rules[LW_OP_IMAG] = imag_op;
  rules[LW_OP_COMPLEX] = complex_op;
  rules[LW_OP_REDUCE_PRECISION] = reduce_precision;
  rules[LW_OP_GET_DIMENSION_SIZE] = dimension_size;
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_algebraic_simplifier = {
    "algebraic-simplifier",
    "exact identities of arithmetic, logic, selects and converts", NULL, run};
