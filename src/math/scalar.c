/* Which operations exist (HLO's typing rules for elementwise opcodes), and the
 * choice of the compiled loops for this machine. */
#include "math/elementwise.h"
#include "math/narrow.h"
#include "math/variant.h"

static const lw_elem_variant *variant(void) {
#ifdef LW_MATH_HAVE_V3
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return &lw_elem_v3;
#endif
  return &lw_elem_base;
}

lw_elem_op lw_elem_make(lw_opcode op, lw_prim a, lw_prim b, lw_prim c,
                        lw_prim out) {
  int arity = lw_opcode_table[op].arity;
  lw_elem_op r = {.op = op, .out = out};
  r.in[0] = a;
  r.in[1] = arity > 1 ? b : LW_PRIM_INVALID;
  r.in[2] = arity > 2 ? c : LW_PRIM_INVALID;
  return r;
}

typedef enum { MIX_PRED = 1, MIX_INT = 2, MIX_FLOAT = 4, MIX_COMPLEX = 8 } mix;

static mix mix_of(lw_prim t) {
  switch (lw_prim_class(t)) {
    case LW_CLASS_PRED:
      return MIX_PRED;
    case LW_CLASS_SINT:
    case LW_CLASS_UINT:
      return MIX_INT;
    case LW_CLASS_FLOAT:
      return MIX_FLOAT;
    case LW_CLASS_COMPLEX:
      return MIX_COMPLEX;
    case LW_CLASS_OTHER:
      break;
  }
  return 0;
}

/* The classes of operands of the operations whose operands and result are all
 * of one type; 0 for other operations. */
static int same_type_mix(lw_opcode op) {
  switch ((int)op) {
    case LW_OP_ADD:
    case LW_OP_MULTIPLY:
      return MIX_PRED | MIX_INT | MIX_FLOAT | MIX_COMPLEX;
    case LW_OP_SUBTRACT:
    case LW_OP_DIVIDE:
    case LW_OP_POWER:
    case LW_OP_NEGATE:
    case LW_OP_SIGN:
      return MIX_INT | MIX_FLOAT | MIX_COMPLEX;
    case LW_OP_MAXIMUM:
    case LW_OP_MINIMUM:
    case LW_OP_CLAMP:
      return MIX_PRED | MIX_INT | MIX_FLOAT;
    case LW_OP_REMAINDER:
      return MIX_INT | MIX_FLOAT;
    case LW_OP_AND:
    case LW_OP_OR:
    case LW_OP_XOR:
    case LW_OP_NOT:
      return MIX_PRED | MIX_INT;
    case LW_OP_CLZ:
    case LW_OP_POPCNT:
    case LW_OP_MULHI:
    case LW_OP_SHIFT_LEFT:
    case LW_OP_SHIFT_RIGHT_ARITHMETIC:
    case LW_OP_SHIFT_RIGHT_LOGICAL:
      return MIX_INT;
    case LW_OP_ACOS:
    case LW_OP_ACOSH:
    case LW_OP_ASIN:
    case LW_OP_ASINH:
    case LW_OP_ATAN2:
    case LW_OP_ATANH:
    case LW_OP_CBRT:
    case LW_OP_CEIL:
    case LW_OP_COSH:
    case LW_OP_ERF:
    case LW_OP_FLOOR:
    case LW_OP_REDUCE_PRECISION:
    case LW_OP_ROUND_AFZ:
    case LW_OP_ROUND_EVEN:
    case LW_OP_SINH:
      return MIX_FLOAT;
    case LW_OP_COSINE:
    case LW_OP_EXPONENTIAL:
    case LW_OP_EXPM1:
    case LW_OP_LOG:
    case LW_OP_LOG1P:
    case LW_OP_LOGISTIC:
    case LW_OP_RSQRT:
    case LW_OP_SINE:
    case LW_OP_SQRT:
    case LW_OP_TAN:
    case LW_OP_TANH:
      return MIX_FLOAT | MIX_COMPLEX;
  }
  return 0;
}

static bool same_types(const lw_elem_op *op) {
  int arity = lw_opcode_table[op->op].arity;
  for (int i = 0; i < arity; i++)
    if (op->in[i] != op->out) return false;
  return true;
}

static bool stochastic_ok(const lw_elem_op *op) {
  return mix_of(op->in[0]) == MIX_FLOAT &&
         lw_prim_class(op->in[1]) == LW_CLASS_UINT &&
         lw_prim_table[op->in[0]].bits == lw_prim_table[op->in[1]].bits &&
         lw_prim_is_signed(op->out);
}

static bool complex_ok(const lw_elem_op *op) {
  return op->in[0] == op->in[1] && lw_prim_is_complex(op->out) &&
         lw_prim_part(op->out) == op->in[0];
}

/* The operations with types of their own. */
static bool mixed_ok(const lw_elem_op *op) {
  lw_prim a = op->in[0], out = op->out;
  int m = mix_of(a);
  switch ((int)op->op) {
    case LW_OP_ABS:
      return m == MIX_COMPLEX ? out == lw_prim_part(a)
                              : m != MIX_PRED && out == a;
    case LW_OP_REAL:
    case LW_OP_IMAG:
      return (m == MIX_COMPLEX || m == MIX_FLOAT) && out == lw_prim_part(a);
    case LW_OP_COMPLEX:
      return complex_ok(op);
    case LW_OP_IS_FINITE:
      return m == MIX_FLOAT && out == LW_PRED;
    case LW_OP_COMPARE: {
      bool ordered = op->dir != LW_CMP_EQ && op->dir != LW_CMP_NE;
      return a == op->in[1] && out == LW_PRED && m != 0 &&
             !(m == MIX_COMPLEX && (ordered || op->total_order));
    }
    case LW_OP_SELECT:
      return a == LW_PRED && op->in[1] == out && op->in[2] == out;
    case LW_OP_CONVERT:
      return m != 0 && mix_of(out) != 0;
    case LW_OP_BITCAST_CONVERT:
      return m != 0 && mix_of(out) != 0 &&
             lw_prim_table[a].bits == lw_prim_table[out].bits;
    case LW_OP_STOCHASTIC_CONVERT:
      return stochastic_ok(op);
  }
  return false;
}

static lw_status check(const lw_elem_op *op) {
  const char *name = lw_opcode_name(op->op);
  if (!lw_opcode_is_elementwise(op->op))
    return lw_error(LW_INVALID_ARGUMENT, "%s is not an elementwise operation",
                    name);
  if (!lw_prim_is_array(op->in[0]) || !lw_prim_is_array(op->out))
    return lw_error(LW_INVALID_ARGUMENT, "%s needs array types", name);
  int allowed = same_type_mix(op->op);
  bool ok = allowed ? same_types(op) && (allowed & mix_of(op->in[0])) != 0
                    : mixed_ok(op);
  bool bits = op->op != LW_OP_REDUCE_PRECISION ||
              (op->exponent_bits >= 1 && op->mantissa_bits >= 0);
  if (ok && bits) return NULL;
  if (ok)
    return lw_error(LW_INVALID_ARGUMENT,
                    "reduce-precision needs at least one exponent bit and no "
                    "negative mantissa bits, not e%dm%d",
                    op->exponent_bits, op->mantissa_bits);
  int arity = lw_opcode_table[op->op].arity;
  return lw_error(
      LW_INVALID_ARGUMENT, "%s does not take %s%s%s%s%s to give %s", name,
      lw_prim_name(op->in[0]), arity > 1 ? ", " : "",
      arity > 1 ? lw_prim_name(op->in[1]) : "", arity > 2 ? ", " : "",
      arity > 2 ? lw_prim_name(op->in[2]) : "", lw_prim_name(op->out));
}

lw_status lw_elem_resolve(const lw_elem_op *op, lw_elem_fn *fn) {
  LW_TRY(check(op));
  *fn = variant()->pick(op);
  if (*fn) return NULL;
  return lw_error(LW_INVALID_ARGUMENT, "%s is not defined for %s",
                  lw_opcode_name(op->op), lw_prim_name(op->in[0]));
}

static void convert_one(lw_prim from, lw_prim to, const void *a, void *o) {
  lw_elem_op op = lw_elem_make(LW_OP_CONVERT, from, 0, 0, to);
  variant()->pick (&op)(&op, 1, a, NULL, NULL, o);
}

double lw_elem_to_f64(lw_prim t, const void *x) {
  double r;
  convert_one(t, LW_F64, x, &r);
  return r;
}

void lw_elem_from_f64(lw_prim t, double v, void *x) {
  convert_one(LW_F64, t, &v, x);
}
