/* Elementwise opcodes, and the types each takes. */
#include "gen_impl.h"

/* ---- opcode families ---- */

/* Whether an elementwise opcode takes operands of type t. */
bool gen_takes(lw_opcode o, lw_prim t) {
  switch ((int)o) {
    case LW_OP_ABS:
    case LW_OP_NEGATE:
      return t != LW_PRED && t != LW_F8E8M0FNU &&
             !(o == LW_OP_ABS && lw_prim_class(t) == LW_CLASS_UINT);
    case LW_OP_SIGN:
      return t != LW_PRED && t != LW_F8E8M0FNU &&
             lw_prim_class(t) != LW_CLASS_UINT;
    case LW_OP_NOT:
    case LW_OP_AND:
    case LW_OP_OR:
    case LW_OP_XOR:
      return gen_is_int(t) || t == LW_PRED;
    case LW_OP_POPCNT:
    case LW_OP_CLZ:
    case LW_OP_SHIFT_LEFT:
    case LW_OP_SHIFT_RIGHT_ARITHMETIC:
    case LW_OP_SHIFT_RIGHT_LOGICAL:
    case LW_OP_MULHI:
      return gen_is_int(t) &&
             lw_prim_table[t].bits >= (o == LW_OP_MULHI ? 8 : 4);
    case LW_OP_CEIL:
    case LW_OP_FLOOR:
    case LW_OP_ROUND_AFZ:
    case LW_OP_ROUND_EVEN:
    case LW_OP_IS_FINITE:
    case LW_OP_ATAN2:
    case LW_OP_CBRT:
    case LW_OP_ERF:
    case LW_OP_REDUCE_PRECISION:
      return gen_is_fp(t) && t != LW_F8E8M0FNU;
    case LW_OP_REMAINDER:
    case LW_OP_MAXIMUM:
    case LW_OP_MINIMUM:
    case LW_OP_CLAMP:
      return (gen_is_fp(t) || gen_is_int(t)) && t != LW_F8E8M0FNU;
    case LW_OP_ADD:
    case LW_OP_SUBTRACT:
    case LW_OP_MULTIPLY:
    case LW_OP_DIVIDE:
      return t != LW_PRED && t != LW_F8E8M0FNU;
    case LW_OP_POWER:
      return (gen_is_fp(t) || gen_is_cx(t) || gen_is_int(t)) &&
             t != LW_F8E8M0FNU;
    case LW_OP_REAL:
    case LW_OP_IMAG:
      return gen_is_cx(t);
    case LW_OP_COMPLEX:
      return t == LW_F32 || t == LW_F64;
    case LW_OP_ACOS:
    case LW_OP_ACOSH:
    case LW_OP_ASIN:
    case LW_OP_ASINH:
    case LW_OP_ATANH:
    case LW_OP_COSH:
    case LW_OP_SINH:
      return gen_is_fp(t) && t != LW_F8E8M0FNU;
    default: /* the other transcendental ones */
      return (gen_is_fp(t) || gen_is_cx(t)) && t != LW_F8E8M0FNU;
  }
}

static const lw_shape *elem_result(gen *g, lw_opcode o, const lw_shape *s) {
  switch ((int)o) {
    case LW_OP_IS_FINITE:
      return gen_like(g, s, LW_PRED);
    case LW_OP_REAL:
    case LW_OP_IMAG:
      return gen_like(g, s, lw_prim_part(s->type));
    case LW_OP_ABS:
      return gen_like(g, s, lw_prim_part(s->type));
    case LW_OP_COMPLEX:
      return gen_like(g, s, s->type == LW_F32 ? LW_C64 : LW_C128);
    default:
      return s;
  }
}

lw_inst *gen_make_unary(gen *g, lw_opcode o, lw_inst *a) {
  if (!gen_takes(o, a->shape->type)) return NULL;
  lw_inst *i = gen_op1(g, o, elem_result(g, o, a->shape), a);
  if (o == LW_OP_REDUCE_PRECISION) {
    lw_inst_set_i64(i, LW_ATTR_EXPONENT_BITS, 2 + gen_below(g, 7));
    lw_inst_set_i64(i, LW_ATTR_MANTISSA_BITS, 1 + gen_below(g, 10));
  }
  return i;
}

lw_inst *gen_make_binary(gen *g, lw_opcode o, lw_inst *a) {
  if (!gen_takes(o, a->shape->type)) return NULL;
  lw_inst *b = gen_value(g, a->shape);
  const lw_shape *s = elem_result(g, o, a->shape);
  return gen_chance(g, 50) ? gen_op2(g, o, s, a, b) : gen_op2(g, o, s, b, a);
}

lw_inst *gen_make_compare(gen *g, lw_inst *a) {
  lw_inst *i = gen_op2(g, LW_OP_COMPARE, gen_like(g, a->shape, LW_PRED), a,
                       gen_value(g, a->shape));
  bool order = !gen_is_cx(a->shape->type);
  lw_inst_set_i64(i, LW_ATTR_DIRECTION, gen_below(g, order ? 6 : 2));
  if (gen_is_fp(a->shape->type) && gen_chance(g, 20))
    lw_inst_set_i64(i, LW_ATTR_COMPARE_TYPE, LW_CT_TOTALORDER);
  return i;
}

lw_inst *gen_make_select(gen *g, lw_inst *a) {
  if (a->shape->type == LW_PRED && gen_chance(g, 60)) {
    const lw_shape *s = gen_like(g, a->shape, gen_any_type(g));
    return gen_op(g, LW_OP_SELECT, s, 3,
                  (lw_inst *[]){a, gen_value(g, s), gen_value(g, s)});
  }
  lw_inst *p = gen_value(g, gen_like(g, a->shape, LW_PRED)),
          *b = gen_value(g, a->shape);
  bool first = gen_chance(g, 50);
  return gen_op(g, LW_OP_SELECT, a->shape, 3,
                (lw_inst *[]){p, first ? a : b, first ? b : a});
}

lw_inst *gen_make_clamp(gen *g, lw_inst *a) {
  if (!gen_takes(LW_OP_CLAMP, a->shape->type)) return NULL;
  lw_inst *lo = gen_value(g, a->shape), *hi = gen_value(g, a->shape);
  return gen_op(g, LW_OP_CLAMP, a->shape, 3, (lw_inst *[]){lo, a, hi});
}

lw_inst *gen_make_convert(gen *g, lw_inst *a) {
  lw_prim t = gen_any_type(g);
  if (gen_is_cx(a->shape->type) && !gen_is_cx(t)) t = LW_C64;
  return gen_op1(g, LW_OP_CONVERT, gen_like(g, a->shape, t), a);
}

lw_inst *gen_make_bitcast_convert(gen *g, lw_inst *a) {
  lw_prim t = a->shape->type;
  if (t == LW_PRED || gen_is_cx(t) || lw_prim_table[t].bits < 8) return NULL;
  for (int k = 0; k < 40; k++) {
    lw_prim to = gen_any_type(g);
    if (lw_prim_table[to].bits == lw_prim_table[t].bits && to != LW_PRED &&
        !gen_is_cx(to))
      return gen_op1(g, LW_OP_BITCAST_CONVERT, gen_like(g, a->shape, to), a);
  }
  return NULL;
}

lw_inst *gen_make_stochastic(gen *g, lw_inst *a) {
  lw_prim t = a->shape->type;
  bool bits = t == LW_U16 || t == LW_U32 || t == LW_U64;
  lw_prim from = t == LW_U16   ? LW_BF16
                 : t == LW_U32 ? LW_F32
                 : t == LW_U64 ? LW_F64
                               : t;
  lw_prim random = from == LW_F32 ? LW_U32 : from == LW_F64 ? LW_U64 : LW_U16;
  if (!bits && t != LW_F32 && t != LW_F64 && t != LW_BF16 && t != LW_F16)
    return NULL;
  lw_inst *x = bits ? gen_value(g, gen_like(g, a->shape, from)) : a;
  lw_inst *r = bits ? a : gen_value(g, gen_like(g, a->shape, random));
  static const lw_prim to[] = {LW_S8, LW_S16, LW_S32, LW_S64};
  return gen_op2(g, LW_OP_STOCHASTIC_CONVERT,
                 gen_like(g, a->shape, to[gen_below(g, 4)]), x, r);
}
