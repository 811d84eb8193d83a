/* Integer ranges: what every element of an array lies between, by looking at
 * its producers. JAX guards each index (negative ones get the extent added,
 * take() masks what is out of bounds); with iota, clamp, remainder and
 * constants as sources most guards are decided here.
 *
 * Every answer is a true statement about all elements: an operation that may
 * wrap gives the type's bounds. */
#include "passes/rewrite.h"

enum { MAX_SCAN = 4096 }; /* elements of a constant that are looked at */

void lw_int_bounds(lw_prim t, int64_t *lo, int64_t *hi) {
  int bits = t == LW_PRED ? 1 : lw_prim_table[t].bits;
  if (lw_prim_is_signed(t)) {
    *lo = bits == 64 ? INT64_MIN : -(INT64_C(1) << (bits - 1));
    *hi = bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - 1)) - 1;
  } else if (bits == 64) {
    *lo = INT64_MIN;
    *hi = INT64_MAX;
  } else {
    *lo = 0;
    *hi = (INT64_C(1) << bits) - 1;
  }
}

typedef struct {
  int64_t lo, hi;
} range;

static range full(const lw_inst *x) {
  range r;
  lw_int_bounds(x->shape->type, &r.lo, &r.hi);
  return r;
}

static bool is_integral(const lw_inst *x) {
  lw_prim t = x->shape->type;
  return lw_shape_is_array(x->shape) && (t == LW_PRED || lw_prim_is_int(t));
}

/* Within the type: nothing wrapped. u64 beyond s63 is never claimed. */
static range checked(const lw_inst *x, bool overflow, int64_t lo, int64_t hi) {
  range f = full(x);
  if (x->shape->type == LW_U64 && lo < 0) return f;
  return overflow || lo < f.lo || hi > f.hi ? f : (range){lo, hi};
}

static range of(const lw_inst *x, int depth);

static range constant(const lw_inst *x) {
  const lw_literal *l = lw_inst_literal(x);
  range f = full(x);
  if (!l || l->shape->elements < 1 || l->shape->elements > MAX_SCAN) return f;
  range r = {lw_literal_get_int(l, 0), lw_literal_get_int(l, 0)};
  for (int64_t k = 1; k < l->shape->elements; k++) {
    int64_t v = lw_literal_get_int(l, k);
    if (v < r.lo) r.lo = v;
    if (v > r.hi) r.hi = v;
  }
  return x->shape->type == LW_U64 && r.lo < 0 ? f : r;
}

static range hull(range a, range b) {
  return (range){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

static range binary(const lw_inst *x, int depth) {
  range a = of(lw_op(x, 0), depth), b = of(lw_op(x, 1), depth), f = full(x);
  int64_t lo, hi;
  bool bad;
  bool unknown64 = x->shape->type == LW_U64 && (a.lo < 0 || b.lo < 0);
  if (unknown64) return f;
  switch ((int)x->opcode) {
    case LW_OP_ADD:
      bad = __builtin_add_overflow(a.lo, b.lo, &lo);
      bad = __builtin_add_overflow(a.hi, b.hi, &hi) || bad;
      return x->shape->type == LW_PRED ? f : checked(x, bad, lo, hi);
    case LW_OP_SUBTRACT:
      bad = __builtin_sub_overflow(a.lo, b.hi, &lo);
      bad = __builtin_sub_overflow(a.hi, b.lo, &hi) || bad;
      return checked(x, bad, lo, hi);
    case LW_OP_MULTIPLY:
      if (a.lo < 0 || b.lo < 0) return f;
      bad = __builtin_mul_overflow(a.lo, b.lo, &lo);
      bad = __builtin_mul_overflow(a.hi, b.hi, &hi) || bad;
      return checked(x, bad, lo, hi);
    case LW_OP_MAXIMUM:
      return (range){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
    case LW_OP_MINIMUM:
      return (range){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
    case LW_OP_REMAINDER: /* the sign is the dividend's; |r| < |divisor| */
      if (b.lo < 1) return f;
      hi = a.hi < 0 ? 0 : (a.hi < b.hi - 1 ? a.hi : b.hi - 1);
      lo = a.lo >= 0 ? 0 : (a.lo > -(b.hi - 1) ? a.lo : -(b.hi - 1));
      return (range){lo, hi};
    case LW_OP_DIVIDE:
      if (a.lo < 0 || b.lo < 1) return f;
      return (range){a.lo / b.hi, a.hi / b.lo};
    case LW_OP_AND: /* never above either non-negative operand */
      if (a.lo < 0 && b.lo < 0) return f;
      if (a.lo < 0) return (range){0, b.hi};
      if (b.lo < 0) return (range){0, a.hi};
      return (range){0, a.hi < b.hi ? a.hi : b.hi};
    case LW_OP_SHIFT_RIGHT_LOGICAL:
      return a.lo < 0 ? f
                      : (range){0, b.lo == b.hi && b.lo >= 0 && b.lo < 63
                                       ? a.hi >> b.lo
                                       : a.hi};
    default:
      return f;
  }
}

static range clamp(const lw_inst *x, int depth) {
  range lo = of(lw_op(x, 0), depth), v = of(lw_op(x, 1), depth);
  range hi = of(lw_op(x, 2), depth);
  if (lo.hi > hi.lo) return full(x); /* bounds may cross */
  range r = v;
  if (r.lo < lo.lo) r.lo = lo.lo;
  if (r.lo > hi.lo) r.lo = hi.lo;
  if (r.hi > hi.hi) r.hi = hi.hi;
  if (r.hi < lo.hi) r.hi = lo.hi;
  return r;
}

static range iota(const lw_inst *x) {
  int64_t d = lw_inst_i64(x, LW_ATTR_IOTA_DIMENSION, 0);
  int64_t n = x->shape->dims[d];
  return n < 1 ? full(x) : checked(x, false, 0, n - 1);
}

/* Wide nodes cost more of the depth, so that a query stays small. */
static range concatenated(const lw_inst *x, int depth) {
  depth /= 3;
  range r = of(lw_op(x, 0), depth);
  for (int32_t k = 1; k < x->n_operands && k < 16; k++)
    r = hull(r, of(lw_op(x, k), depth));
  return x->n_operands > 16 ? full(x) : r;
}

static range of(const lw_inst *x, int depth) {
  if (!is_integral(x)) return (range){INT64_MIN, INT64_MAX};
  range f = full(x), r;
  if (depth == 0) return f;
  depth--;
  switch ((int)x->opcode) {
    case LW_OP_CONSTANT:
      return constant(x);
    case LW_OP_IOTA:
      return iota(x);
    case LW_OP_CONVERT:
      if (!is_integral(lw_op(x, 0))) return f;
      r = of(lw_op(x, 0), depth);
      if (lw_op(x, 0)->shape->type == LW_U64 && r.lo < 0) return f;
      return checked(x, false, r.lo, r.hi);
    case LW_OP_BROADCAST:
    case LW_OP_RESHAPE:
    case LW_OP_TRANSPOSE:
    case LW_OP_SLICE:
    case LW_OP_DYNAMIC_SLICE:
    case LW_OP_REVERSE:
    case LW_OP_COPY:
    case LW_OP_GATHER:
      return of(lw_op(x, 0), depth);
    case LW_OP_CONCATENATE:
      return concatenated(x, depth);
    case LW_OP_SELECT:
      return hull(of(lw_op(x, 1), depth), of(lw_op(x, 2), depth));
    case LW_OP_PAD:
    case LW_OP_DYNAMIC_UPDATE_SLICE:
      return hull(of(lw_op(x, 0), depth), of(lw_op(x, 1), depth));
    case LW_OP_CLAMP:
      return clamp(x, depth);
    default:
      return x->n_operands == 2 ? binary(x, depth) : f;
  }
}

void lw_int_range(const lw_inst *x, int64_t *lo, int64_t *hi) {
  range r = of(x, 8);
  *lo = r.lo;
  *hi = r.hi;
}
