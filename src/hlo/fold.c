#include "hlo/fold.h"

#include <math.h>

/* Sizes come from the module's text: a product stops at INT64_MAX, where no
 * array could exist, instead of wrapping. */
static int64_t times(int64_t a, int64_t b) {
  int64_t p;
  return __builtin_mul_overflow(a, b, &p) ? INT64_MAX : p;
}

bool lw_fold_op_is_simple(lw_opcode op) {
  return op == LW_OP_ADD || op == LW_OP_MULTIPLY || op == LW_OP_MAXIMUM ||
         op == LW_OP_MINIMUM || op == LW_OP_AND || op == LW_OP_OR ||
         op == LW_OP_XOR;
}

/* Among all codes of a byte: these types differ in what they have. */
static void set_extreme_code(lw_literal *e, bool least) {
  uint8_t *code = e->data, best = 0;
  double most = 0;
  for (int k = 0; k < 1 << lw_prim_table[e->shape->type].bits; k++) {
    *code = (uint8_t)k;
    double v = lw_literal_get_f64(e, 0, 0);
    if (v != v || (k > 0 && (least ? v >= most : v <= most))) continue;
    most = v;
    best = (uint8_t)k;
  }
  *code = best;
}

/* The type's least (or greatest) value; infinities where it has them. */
static void set_extreme(lw_literal *e, bool least) {
  lw_prim t = e->shape->type;
  int bits = lw_prim_table[t].bits;
  if (lw_prim_is_float(t) && bits <= 8) {
    set_extreme_code(e, least);
  } else if (lw_prim_is_float(t)) {
    lw_literal_set_f64(e, 0, 0, least ? -INFINITY : INFINITY);
  } else if (t == LW_PRED) {
    lw_literal_set_int(e, 0, !least);
  } else if (lw_prim_is_signed(t)) {
    int64_t high = (int64_t)(UINT64_MAX >> 1 >> (64 - bits));
    lw_literal_set_int(e, 0, least ? -high - 1 : high);
  } else {
    lw_literal_set_int(e, 0, least ? 0 : (int64_t)(UINT64_MAX >> (64 - bits)));
  }
}

bool lw_fold_neutral(lw_opcode op, lw_literal *e) {
  lw_prim t = e->shape->type;
  lw_class c = lw_prim_class(t);
  bool real = c == LW_CLASS_FLOAT;
  switch ((int)op) {
    case LW_OP_ADD:
      if (t == LW_F8E8M0FNU) return false; /* has no zero */
      /* x + -0 = x for -0 too; a type without -0 gets 0 */
      if (real || c == LW_CLASS_COMPLEX) {
        lw_literal_set_f64(e, 0, 0, -0.0);
        if (c == LW_CLASS_COMPLEX) lw_literal_set_f64(e, 0, 1, -0.0);
        return true;
      }
      lw_literal_set_int(e, 0, 0);
      return true;
    case LW_OP_MULTIPLY: /* complex: (a + bi) * 1 loses signs of zeros */
      if (c == LW_CLASS_COMPLEX) return false;
      if (real)
        lw_literal_set_f64(e, 0, 0, 1);
      else
        lw_literal_set_int(e, 0, 1);
      return true;
    case LW_OP_MAXIMUM:
    case LW_OP_MINIMUM:
      if (c == LW_CLASS_COMPLEX) return false;
      set_extreme(e, op == LW_OP_MAXIMUM);
      return true;
    case LW_OP_AND:
      lw_literal_set_int(e, 0, t == LW_PRED ? 1 : -1);
      return true;
    case LW_OP_OR:
    case LW_OP_XOR:
      lw_literal_set_int(e, 0, 0);
      return true;
    default:
      return false;
  }
}

static bool has_dim(int32_t n, const int64_t *dims, int64_t d) {
  for (int32_t i = 0; i < n; i++)
    if (dims[i] == d) return true;
  return false;
}

/* "Let T be the product of the trailing run of reduced dims, and O the product
 * of the other reduced dims." */
lw_fold lw_fold_of(const lw_shape *shape, int32_t n_dims, const int64_t *dims,
                   lw_opcode op, int32_t operands) {
  lw_fold f = {.op = lw_fold_op_is_simple(op) ? op : LW_OPCODE_COUNT,
               .n = 1,
               .run = 1,
               .outer = 1};
  bool trailing = true;
  for (int32_t d = shape->rank; d-- > 0;) {
    bool reduced = has_dim(n_dims, dims, d);
    trailing = trailing && reduced;
    if (!reduced) continue;
    int64_t *part = trailing ? &f.run : &f.outer;
    f.n = times(f.n, shape->dims[d]);
    *part = times(*part, shape->dims[d]);
  }
  bool last = shape->rank > 0 && has_dim(n_dims, dims, shape->rank - 1);
  if (operands != 1 || f.op == LW_OPCODE_COUNT)
    f.rule = LW_FOLD_SEQ;
  else
    f.rule = last ? LW_FOLD_ROW : LW_FOLD_COL;
  if (f.rule != LW_FOLD_ROW) {
    f.run = 1;
    f.outer = f.n;
  }
  f.init_first = f.rule == LW_FOLD_SEQ;
  return f;
}

lw_fold lw_reduce_fold(const lw_inst *reduce) {
  int32_t n_dims = 0, n_pin = 0;
  const int64_t *dims = lw_inst_i64s(reduce, LW_ATTR_DIMENSIONS, &n_dims);
  const int64_t *pin = lw_inst_i64s(reduce, LW_ATTR_FOLD, &n_pin);
  lw_opcode op = lw_comp_binary_op(lw_inst_comp(reduce, LW_ATTR_TO_APPLY));
  lw_fold f = lw_fold_of(lw_inst_operand(reduce, 0)->shape, n_dims, dims, op,
                         reduce->n_operands / 2);
  if (n_pin == 2 && pin[0] >= LW_FOLD_ROW && pin[0] <= LW_FOLD_SEQ) {
    f.rule = (lw_fold_rule)pin[0];
    f.run = f.rule == LW_FOLD_ROW && pin[1] > 0 ? pin[1] : 1;
    f.outer = f.n / f.run;
    f.init_first = f.rule == LW_FOLD_SEQ;
  }
  return f;
}

void lw_reduce_pin_fold(lw_inst *reduce) {
  lw_fold f = lw_reduce_fold(reduce);
  int64_t v[2] = {f.rule, f.run};
  lw_inst_set_i64s(reduce, LW_ATTR_FOLD, 2, v);
}

lw_prim lw_dot_accumulator(lw_prim lhs, lw_prim rhs, lw_prim result) {
  lw_prim part = lw_prim_part(result);
  if (!lw_prim_is_float(part)) return part;
  bool wide = lw_prim_part(lhs) == LW_F64 || lw_prim_part(rhs) == LW_F64 ||
              part == LW_F64;
  return wide ? LW_F64 : LW_F32;
}

static int64_t product(const lw_shape *s, int32_t n, const int64_t *dims) {
  int64_t p = 1;
  for (int32_t i = 0; i < n; i++)
    if (dims[i] >= 0 && dims[i] < s->rank) p = times(p, s->dims[dims[i]]);
  return p;
}

/* The product of the dims in neither list. */
static int64_t free_product(const lw_shape *s, int32_t n_a, const int64_t *a,
                            int32_t n_b, const int64_t *b) {
  int64_t p = 1;
  for (int32_t d = 0; d < s->rank; d++)
    if (!has_dim(n_a, a, d) && !has_dim(n_b, b, d)) p = times(p, s->dims[d]);
  return p;
}

lw_dot_fold_t lw_dot_fold(const lw_inst *dot) {
  const lw_shape *l = lw_inst_operand(dot, 0)->shape;
  const lw_shape *r = lw_inst_operand(dot, 1)->shape;
  int32_t n_lb, n_lc, n_rb, n_rc, n_group = 0;
  const int64_t *lb = lw_inst_i64s(dot, LW_ATTR_LHS_BATCH_DIMS, &n_lb);
  const int64_t *lc = lw_inst_i64s(dot, LW_ATTR_LHS_CONTRACTING_DIMS, &n_lc);
  const int64_t *rb = lw_inst_i64s(dot, LW_ATTR_RHS_BATCH_DIMS, &n_rb);
  const int64_t *rc = lw_inst_i64s(dot, LW_ATTR_RHS_CONTRACTING_DIMS, &n_rc);
  lw_dot_fold_t f = {
      .accumulator = lw_dot_accumulator(l->type, r->type, dot->shape->type),
      .k = product(l, n_lc, lc),
      .m = free_product(l, n_lb, lb, n_lc, lc),
      .n = free_product(r, n_rb, rb, n_rc, rc),
      .batch = product(l, n_lb, lb)};
  if (dot->opcode == LW_OP_RAGGED_DOT) {
    const int64_t *g = lw_inst_i64s(dot, LW_ATTR_RHS_GROUP_DIMS, &n_group);
    int64_t groups = product(r, n_group, g);
    if (groups > 0 && n_group > 0) f.n /= groups;
  }
  int64_t least = f.m < f.n ? f.m : f.n;
  f.skinny = least < LW_FOLD_SKINNY_BELOW;
  return f;
}

bool lw_window_is_scan(const lw_inst *w, int32_t *dim, bool *reverse) {
  const lw_window *win = lw_inst_window(w);
  const lw_shape *s = lw_inst_operand(w, 0)->shape;
  lw_opcode op = lw_comp_binary_op(lw_inst_comp(w, LW_ATTR_TO_APPLY));
  int32_t wide = -1;
  if (!win || w->n_operands != 2 || !lw_fold_op_is_simple(op) ||
      win->rank != s->rank)
    return false;
  for (int32_t d = 0; d < win->rank; d++) {
    const lw_window_dim *v = &win->dims[d];
    if (v->stride != 1 || v->lhs_dilation != 1 || v->rhs_dilation != 1)
      return false;
    if (v->size == 1 && v->pad_lo == 0 && v->pad_hi == 0) continue;
    if (wide >= 0 || v->size < 2) return false;
    wide = d;
  }
  if (wide < 0) return false;
  const lw_window_dim *v = &win->dims[wide];
  int64_t e = s->dims[wide];
  bool prefix = v->pad_lo == e - 1 && v->pad_hi == 0;
  bool suffix = v->pad_lo == 0 && v->pad_hi == e - 1;
  if (v->size != e || v->reversed || !(prefix || suffix)) return false;
  *dim = wide;
  *reverse = suffix;
  return true;
}

int32_t lw_threefry_dim(const lw_shape *s) {
  int32_t best = 0;
  for (int32_t d = 0; d < s->rank; d++)
    if (s->dims[d] % 2 == 0) return d;
  for (int32_t d = 1; d < s->rank; d++)
    if (s->dims[d] > s->dims[best]) best = d;
  return best;
}
