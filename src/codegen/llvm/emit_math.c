/* The LLVM instantiation of the elementwise operations.
 *
 * The definition files of src/math are included here over LLVM values, so that
 * a call of exp_f(g, x) emits the operations that the scalar exp_f(x) does.
 * Short definitions are emitted in line. Long ones are emitted once a module
 * and width as internal functions ("lw.sin.f32.x16") and called; only those may
 * hold loops and rare paths, which are there for speed: a lane's result never
 * depends on its neighbours.
 */
#include "codegen/llvm/emit_math.h"

#include <stdio.h>
#include <string.h>

#include "codegen/llvm/emit_math_ops.h"
#include "math/lists.h"
#include "math/narrow.h"

// clang-format off: the order matters
#include "math/coef.inc"
#include "math/f64.inc"
#include "math/f32.inc"
#include "math/narrow.inc"
#include "math/convert.inc"
#include "math/real_f32.h"
#include "math/real.inc"
#include "math/complex.inc"
#include "math/real_f64.h"
#include "math/real.inc"
#include "math/complex.inc"
// clang-format on
#undef N
#define N(f) int_##f
#include "math/integer.inc"
#undef N

/* ---- which definition ---- */

typedef enum { KIND_F32, KIND_F64, KIND_C64, KIND_C128, KIND_INT } kind;

/* The values of an operation: complex operands take two. */
typedef struct {
  LLVMValueRef v[4];
  int n;
} values;

static bool emit_f32(lw_mathgen *g, lw_opcode op, values in, values *out) {
  out->n = 1;
  switch ((int)op) {
#define X(E, f, l32, l64)          \
  case LW_OP_##E:                  \
    out->v[0] = f##_f(g, in.v[0]); \
    return true;
    LW_REAL_UNARY(X)
#undef X
#define X(E, f, l32, l64)                   \
  case LW_OP_##E:                           \
    out->v[0] = f##_f(g, in.v[0], in.v[1]); \
    return true;
    LW_REAL_BINARY(X)
#undef X
  }
  return false;
}

static bool emit_f64(lw_mathgen *g, lw_opcode op, values in, values *out) {
  out->n = 1;
  switch ((int)op) {
#define X(E, f, l32, l64)          \
  case LW_OP_##E:                  \
    out->v[0] = f##_d(g, in.v[0]); \
    return true;
    LW_REAL_UNARY(X)
#undef X
#define X(E, f, l32, l64)                   \
  case LW_OP_##E:                           \
    out->v[0] = f##_d(g, in.v[0], in.v[1]); \
    return true;
    LW_REAL_BINARY(X)
#undef X
  }
  return false;
}

/* Complex operations, with a and b of the type's struct (cx_f or cx_d). */
#define EMIT_COMPLEX(name, S, suffix)                                     \
  static bool name(lw_mathgen *g, lw_opcode op, values in, values *out) { \
    S a = {in.v[0], in.v[1]}, b = {in.v[2], in.v[3]}, r = {NULL, NULL};   \
    switch ((int)op) {                                                    \
      LW_COMPLEX_UNARY(UNARY_##suffix)                                    \
      LW_COMPLEX_BINARY(BINARY_##suffix)                                  \
      case LW_OP_ABS:                                                     \
        out->v[0] = cabs_##suffix(g, a);                                  \
        out->n = 1;                                                       \
        return true;                                                      \
    }                                                                     \
    if (!r.re) return false;                                              \
    *out = (values){{r.re, r.im}, 2};                                     \
    return true;                                                          \
  }
#define UNARY_f(E, f, l32, l64) \
  case LW_OP_##E:               \
    r = f##_f(g, a);            \
    break;
#define BINARY_f(E, f, l32, l64) \
  case LW_OP_##E:                \
    r = f##_f(g, a, b);          \
    break;
#define UNARY_d(E, f, l32, l64) \
  case LW_OP_##E:               \
    r = f##_d(g, a);            \
    break;
#define BINARY_d(E, f, l32, l64) \
  case LW_OP_##E:                \
    r = f##_d(g, a, b);          \
    break;
EMIT_COMPLEX(emit_c64, cx_f, f)
EMIT_COMPLEX(emit_c128, cx_d, d)

static bool emit_int(lw_mathgen *g, lw_opcode op, values in, values *out) {
  out->n = 1;
  switch ((int)op) {
#define X(E, f)                      \
  case LW_OP_##E:                    \
    out->v[0] = int_##f(g, in.v[0]); \
    return true;
    LW_INT_UNARY(X)
#undef X
#define X(E, f)                               \
  case LW_OP_##E:                             \
    out->v[0] = int_##f(g, in.v[0], in.v[1]); \
    return true;
    LW_INT_BINARY(X)
#undef X
  }
  return false;
}

static values emit_inline(lw_mathgen *g, kind k, lw_opcode op, values in) {
  values out = {{NULL}, 0};
  bool ok = false;
  switch (k) {
    case KIND_F32:
      ok = emit_f32(g, op, in, &out);
      break;
    case KIND_F64:
      ok = emit_f64(g, op, in, &out);
      break;
    case KIND_C64:
      ok = emit_c64(g, op, in, &out);
      break;
    case KIND_C128:
      ok = emit_c128(g, op, in, &out);
      break;
    case KIND_INT:
      ok = emit_int(g, op, in, &out);
      break;
  }
  LW_ASSERT(ok);
  return out;
}

static bool is_long(kind k, lw_opcode op) {
  bool wide = k == KIND_F64 || k == KIND_C128;
  if (k == KIND_INT) return op == LW_OP_POWER;
  if (k == KIND_C64 || k == KIND_C128) {
    switch ((int)op) {
#define X(E, f, l32, l64) \
  case LW_OP_##E:         \
    return wide ? l64 : l32;
      LW_COMPLEX_UNARY(X)
      LW_COMPLEX_BINARY(X)
#undef X
    }
    return op == LW_OP_ABS;
  }
  switch ((int)op) {
#define X(E, f, l32, l64) \
  case LW_OP_##E:         \
    return wide ? l64 : l32;
    LW_REAL_UNARY(X)
    LW_REAL_BINARY(X)
#undef X
  }
  return false;
}

/* ---- internal functions ---- */

static void add_attribute(lw_mathgen *g, LLVMValueRef f, const char *name) {
  unsigned id = LLVMGetEnumAttributeKindForName(name, strlen(name));
  LLVMAttributeRef a = LLVMCreateEnumAttribute(g->ctx, id, 0);
  LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, a);
}

static void add_string_attribute(lw_mathgen *g, LLVMValueRef f,
                                 const char *name, const char *value) {
  if (!value) return;
  LLVMAttributeRef a = LLVMCreateStringAttribute(
      g->ctx, name, (unsigned)strlen(name), value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, a);
}

enum { FAST_CALL = 8 };

static LLVMValueRef declare(lw_mathgen *g, const char *name, LLVMTypeRef t) {
  LLVMValueRef f = LLVMAddFunction(g->mod, name, t);
  LLVMSetLinkage(f, LLVMInternalLinkage);
  LLVMSetFunctionCallConv(f, FAST_CALL);
  add_attribute(g, f, "nounwind");
  add_attribute(g, f, "willreturn");
  add_attribute(g, f, "noinline");
  add_attribute(g, f, "memory"); /* 0: touches none */
  add_string_attribute(g, f, "target-cpu", g->target_cpu);
  add_string_attribute(g, f, "target-features", g->target_features);
  return f;
}

static void define(lw_mathgen *g, LLVMValueRef f, kind k, lw_opcode op,
                   int nin) {
  lw_mathgen sub = *g;
  sub.b = LLVMCreateBuilderInContext(g->ctx);
  LLVMPositionBuilderAtEnd(sub.b,
                           LLVMAppendBasicBlockInContext(g->ctx, f, "entry"));
  values in = {{NULL}, nin};
  for (int i = 0; i < nin; i++) in.v[i] = LLVMGetParam(f, (unsigned)i);
  values out = emit_inline(&sub, k, op, in);
  if (out.n == 1)
    LLVMBuildRet(sub.b, out.v[0]);
  else
    LLVMBuildAggregateRet(sub.b, out.v, (unsigned)out.n);
  LLVMDisposeBuilder(sub.b);
}

static void function_name(lw_mathgen *g, kind k, lw_opcode op, char *buf,
                          size_t size) {
  static const char *const names[] = {"f32", "f64", "c64", "c128", ""};
  if (k == KIND_INT)
    snprintf(buf, size, "lw.%s.%c%d.x%d", lw_opcode_name(op),
             g->sgn_ ? 's' : 'u', g->bits_, g->width);
  else
    snprintf(buf, size, "lw.%s.%s.x%d", lw_opcode_name(op), names[k], g->width);
}

static values call_long(lw_mathgen *g, kind k, lw_opcode op, values in) {
  char name[64];
  function_name(g, k, op, name, sizeof name);
  LLVMTypeRef args[4], t = LLVMTypeOf(in.v[0]), pair[2] = {t, t};
  for (int i = 0; i < in.n; i++) args[i] = t;
  bool two = (k == KIND_C64 || k == KIND_C128) && op != LW_OP_ABS;
  LLVMTypeRef ret = two ? LLVMStructTypeInContext(g->ctx, pair, 2, 0) : t;
  LLVMTypeRef ft = LLVMFunctionType(ret, args, (unsigned)in.n, 0);
  LLVMValueRef f = LLVMGetNamedFunction(g->mod, name);
  if (!f) {
    f = declare(g, name, ft);
    define(g, f, k, op, in.n);
  }
  LLVMValueRef r = LLVMBuildCall2(g->b, ft, f, in.v, (unsigned)in.n, "");
  LLVMSetInstructionCallConv(r, FAST_CALL);
  if (!two) return (values){{r}, 1};
  return (values){{LLVMBuildExtractValue(g->b, r, 0, ""),
                   LLVMBuildExtractValue(g->b, r, 1, "")},
                  2};
}

static values emit(lw_mathgen *g, kind k, lw_opcode op, values in) {
  return is_long(k, op) ? call_long(g, k, op, in) : emit_inline(g, k, op, in);
}

/* ---- forms of values ---- */

static bool is_narrow(lw_prim t) {
  lw_narrow_format f;
  return lw_narrow_get(t, &f);
}

static void set_int_type(lw_mathgen *g, lw_prim t) {
  g->bits_ = lw_prim_table[t].bits;
  g->sgn_ = lw_prim_is_signed(t);
}

LLVMTypeRef lw_mathgen_mem_type(lw_mathgen *g, lw_prim t) {
  t = lw_prim_part(t);
  if (t == LW_F32) return op_float_type(g);
  if (t == LW_F64) return op_double_type(g);
  return op_int_type(g, 8 * lw_prim_bytes(t));
}

LLVMTypeRef lw_mathgen_reg_type(lw_mathgen *g, lw_prim t, lw_rep rep) {
  if (t == LW_PRED) return op_int_type(g, 1);
  if (rep == LW_REP_WIDE && is_narrow(t)) return op_float_type(g);
  return lw_mathgen_mem_type(g, t);
}

static lw_cgval real_value(lw_prim t, LLVMValueRef v) {
  lw_rep rep = is_narrow(t) ? LW_REP_WIDE : LW_REP_BITS;
  return (lw_cgval){v, NULL, t, rep};
}

static lw_cgval bits_value(lw_prim t, LLVMValueRef re, LLVMValueRef im) {
  return (lw_cgval){re, im, t, LW_REP_BITS};
}

lw_cgval lw_mathgen_from_mem(lw_mathgen *g, lw_prim t, LLVMValueRef re,
                             LLVMValueRef im) {
  if (t == LW_PRED) re = NE(re, op_int(g, 8, 0));
  return bits_value(t, re, im);
}

lw_cgval lw_mathgen_to_mem(lw_mathgen *g, lw_cgval v) {
  lw_cgval r = lw_mathgen_narrow(g, v);
  if (v.type == LW_PRED) r.re = op_resize(g, r.re, 8, false);
  return r;
}

static LLVMTypeRef half_type(lw_mathgen *g) {
  return op_vec(g, LLVMHalfTypeInContext(g->ctx));
}

static F widen_bits(lw_mathgen *g, lw_prim t, LLVMValueRef v) {
  lw_narrow_format f;
  bool ok = lw_narrow_get(t, &f);
  LW_ASSERT(ok);
  if (t == LW_F16 && g->has_f16c)
    return LLVMBuildFPExt(g->b, LLVMBuildBitCast(g->b, v, half_type(g), ""),
                          op_float_type(g), "");
  return nf_widen(g, &f, op_resize(g, v, 32, false));
}

lw_cgval lw_mathgen_widen(lw_mathgen *g, lw_cgval v) {
  if (v.rep == LW_REP_WIDE || !is_narrow(v.type)) return v;
  return real_value(v.type, widen_bits(g, v.type, v.re));
}

lw_cgval lw_mathgen_narrow(lw_mathgen *g, lw_cgval v) {
  lw_narrow_format f;
  if (v.rep != LW_REP_WIDE || !lw_narrow_get(v.type, &f)) return v;
  int bits = 8 * lw_prim_bytes(v.type);
  LLVMValueRef r;
  if (v.type == LW_F16 && g->has_f16c)
    r = LLVMBuildBitCast(g->b, LLVMBuildFPTrunc(g->b, v.re, half_type(g), ""),
                         op_int_type(g, bits), "");
  else
    r = op_resize(g, nf_narrow(g, &f, v.re), bits, false);
  return bits_value(v.type, r, NULL);
}

/* x rounded to narrow type t. */
static F round_to(lw_mathgen *g, lw_prim t, F x) {
  lw_narrow_format f;
  bool ok = lw_narrow_get(t, &f);
  LW_ASSERT(ok);
  if (t != LW_F16 || !g->has_f16c) return nf_round(g, &f, x);
  LLVMValueRef c = canon_f(g, x);
  LLVMValueRef h = LLVMBuildFPTrunc(g->b, c, half_type(g), "");
  return LLVMBuildFPExt(g->b, h, op_float_type(g), "");
}

static LLVMValueRef canonical_part(lw_mathgen *g, lw_prim part,
                                   LLVMValueRef v) {
  return part == LW_F64 ? canon_d(g, v) : canon_f(g, v);
}

lw_cgval lw_mathgen_canonical(lw_mathgen *g, lw_cgval v) {
  lw_prim part = lw_prim_part(v.type);
  if (is_narrow(part)) {
    lw_cgval w = lw_mathgen_widen(g, v);
    w.re = round_to(g, part, w.re);
    return v.rep == LW_REP_WIDE ? w : lw_mathgen_narrow(g, w);
  }
  if (part != LW_F32 && part != LW_F64) return v;
  v.re = canonical_part(g, part, v.re);
  if (v.im) v.im = canonical_part(g, part, v.im);
  return v;
}

static LLVMValueRef literal_part(lw_mathgen *g, lw_prim t, const void *p) {
  uint64_t u = 0;
  memcpy(&u, p, (size_t)lw_prim_bytes(t)); /* little-endian hosts */
  if (t == LW_F32) return FB(IC(u));
  if (t == LW_F64) return DB(LC(u));
  return op_int(g, t == LW_PRED ? 1 : 8 * lw_prim_bytes(t), (int64_t)u);
}

lw_cgval lw_mathgen_const(lw_mathgen *g, lw_prim t, const void *literal) {
  lw_prim part = lw_prim_part(t);
  LLVMValueRef re = literal_part(g, part, literal), im = NULL;
  if (lw_prim_is_complex(t))
    im = literal_part(g, part, (const char *)literal + lw_prim_bytes(part));
  return bits_value(t, re, im);
}

/* ---- operands and results ---- */

static LLVMValueRef flush_part(lw_mathgen *g, LLVMValueRef v) {
  LLVMTypeKind k = LLVMGetTypeKind(op_elem(v));
  return k == LLVMDoubleTypeKind ? flush_d(g, v) : flush_f(g, v);
}

/* An operand for float arithmetic: WIDE, and flushed when asked. */
static lw_cgval operand(lw_mathgen *g, const lw_elem_op *op, lw_cgval v) {
  v = lw_mathgen_widen(g, v);
  lw_class c = lw_prim_class(v.type);
  if (!op->flush_denormals || (c != LW_CLASS_FLOAT && c != LW_CLASS_COMPLEX))
    return v;
  v.re = flush_part(g, v.re);
  if (v.im) v.im = flush_part(g, v.im);
  return v;
}

/* Operations whose results the type always has. */
static bool is_exact(lw_opcode op) {
  return op == LW_OP_MAXIMUM || op == LW_OP_MINIMUM || op == LW_OP_CLAMP;
}

/* A result of float arithmetic: flushed, rounded to its type, canonical. */
static lw_cgval result(lw_mathgen *g, const lw_elem_op *op, values r) {
  lw_prim part = lw_prim_part(op->out);
  lw_cgval v = {r.v[0], r.n == 2 ? r.v[1] : NULL, op->out, LW_REP_BITS};
  if (op->flush_denormals) {
    v.re = flush_part(g, v.re);
    if (v.im) v.im = flush_part(g, v.im);
  }
  if (is_narrow(part)) {
    bool keep = g->fault == LW_FAULT_NARROW && part == LW_BF16;
    if (!is_exact(op->op) && !keep) v.re = round_to(g, part, v.re);
    v.rep = LW_REP_WIDE;
    return v;
  }
  return op->canonical_nan ? lw_mathgen_canonical(g, v) : v;
}

static kind kind_of(lw_prim t) {
  if (t == LW_C64) return KIND_C64;
  if (t == LW_C128) return KIND_C128;
  return t == LW_F64 ? KIND_F64 : KIND_F32;
}

/* ---- planted faults (kernel/fault.h) ---- */

/* a * b + c of two instructions in one. */
static bool fault_contract(lw_mathgen *g, const lw_elem_op *op, values in,
                           values *out) {
  bool minus = op->op == LW_OP_SUBTRACT;
  if (in.n != 2 || (!minus && op->op != LW_OP_ADD)) return false;
  for (int k = 0; k < (minus ? 1 : 2); k++) {
    LLVMValueRef m = in.v[k], c = in.v[1 - k];
    if (!LLVMIsAInstruction(m) || LLVMGetInstructionOpcode(m) != LLVMFMul)
      continue;
    LLVMTypeRef t = LLVMTypeOf(m);
    if (minus) c = LLVMBuildFNeg(g->b, c, "");
    LLVMValueRef args[] = {LLVMGetOperand(m, 0), LLVMGetOperand(m, 1), c};
    *out = (values){{op_intrinsic(g, "llvm.fma", &t, 1, args, 3)}, 1};
    return true;
  }
  return false;
}

/* The same function by way of f64, the quotient by the reciprocal. */
static bool fault_tail(lw_mathgen *g, const lw_elem_op *op, values in,
                       values *out) {
  bool f32 = op->in[0] == LW_F32 && op->out == LW_F32;
  if (!g->masked || !f32) return false;
  if (op->op == LW_OP_DIVIDE) {
    LLVMValueRef r = LLVMBuildFDiv(g->b, FC(1), in.v[1], "");
    *out = (values){{LLVMBuildFMul(g->b, in.v[0], r, "")}, 1};
    return true;
  }
  if (!(lw_opcode_table[op->op].flags & LW_OPF_TRANS)) return false;
  for (int k = 0; k < in.n; k++)
    in.v[k] = LLVMBuildFPExt(g->b, in.v[k], op_double_type(g), "");
  *out = emit(g, KIND_F64, op->op, in);
  out->v[0] = LLVMBuildFPTrunc(g->b, out->v[0], op_float_type(g), "");
  return true;
}

static bool faulty(lw_mathgen *g, const lw_elem_op *op, values in,
                   values *out) {
  if (g->fault == LW_FAULT_CONTRACT) return fault_contract(g, op, in, out);
  return g->fault == LW_FAULT_TAIL && fault_tail(g, op, in, out);
}

static lw_cgval emit_float(lw_mathgen *g, const lw_elem_op *op, lw_cgval a,
                           lw_cgval b) {
  bool cx = lw_prim_is_complex(op->in[0]);
  values in = {{NULL}, 0};
  lw_cgval x = operand(g, op, a);
  in.v[in.n++] = x.re;
  if (cx) in.v[in.n++] = x.im;
  if (op->in[1] != LW_PRIM_INVALID) {
    lw_cgval y = operand(g, op, b);
    in.v[in.n++] = y.re;
    if (cx) in.v[in.n++] = y.im;
  }
  values out;
  if (!faulty(g, op, in, &out)) out = emit(g, kind_of(op->in[0]), op->op, in);
  return result(g, op, out);
}

static lw_cgval emit_clamp(lw_mathgen *g, const lw_elem_op *op, lw_cgval a,
                           lw_cgval b, lw_cgval c) {
  lw_prim t = op->out;
  if (t == LW_PRED) return bits_value(t, AND(OR(b.re, a.re), c.re), NULL);
  if (lw_prim_is_int(t)) {
    set_int_type(g, t);
    return bits_value(t, int_clamp(g, a.re, b.re, c.re), NULL);
  }
  a = operand(g, op, a);
  b = operand(g, op, b);
  c = operand(g, op, c);
  values r = {{NULL}, 1};
  r.v[0] =
      t == LW_F64 ? clamp_d(g, a.re, b.re, c.re) : clamp_f(g, a.re, b.re, c.re);
  return result(g, op, r);
}

/* ---- compare, select, complex parts ---- */

static LLVMValueRef compare_int(lw_mathgen *g, lw_cmp_dir d, bool is_signed,
                                LLVMValueRef a, LLVMValueRef b) {
  static const LLVMIntPredicate preds[2][6] = {
      {LLVMIntEQ, LLVMIntNE, LLVMIntUGE, LLVMIntUGT, LLVMIntULE, LLVMIntULT},
      {LLVMIntEQ, LLVMIntNE, LLVMIntSGE, LLVMIntSGT, LLVMIntSLE, LLVMIntSLT}};
  return LLVMBuildICmp(g->b, preds[is_signed][d], a, b, "");
}

static LLVMValueRef compare_float(lw_mathgen *g, lw_cmp_dir d, LLVMValueRef a,
                                  LLVMValueRef b) {
  static const LLVMRealPredicate preds[6] = {LLVMRealOEQ, LLVMRealUNE,
                                             LLVMRealOGE, LLVMRealOGT,
                                             LLVMRealOLE, LLVMRealOLT};
  return LLVMBuildFCmp(g->b, preds[d], a, b, "");
}

/* A float's bits as f32 or f64 for the total order (widened without the
 * hardware conversion, which would quiet NaNs). */
static LLVMValueRef order_of(lw_mathgen *g, lw_cgval v) {
  lw_narrow_format f;
  if (v.type == LW_F64) return order_d(g, v.re);
  if (lw_narrow_get(v.type, &f) && v.rep == LW_REP_BITS)
    v.re = nf_widen(g, &f, op_resize(g, v.re, 32, false));
  return order_f(g, v.re);
}

static lw_cgval emit_compare(lw_mathgen *g, const lw_elem_op *op, lw_cgval a,
                             lw_cgval b) {
  lw_prim t = op->in[0];
  LLVMValueRef r;
  if (t == LW_PRED || lw_prim_is_int(t)) {
    r = compare_int(g, op->dir, lw_prim_is_signed(t), a.re, b.re);
  } else if (op->total_order) {
    r = compare_int(g, op->dir, true, order_of(g, a), order_of(g, b));
  } else {
    a = operand(g, op, a);
    b = operand(g, op, b);
    r = compare_float(g, op->dir, a.re, b.re);
    if (a.im) {
      LLVMValueRef i = compare_float(g, op->dir, a.im, b.im);
      r = op->dir == LW_CMP_EQ ? AND(r, i) : OR(r, i);
    }
  }
  return bits_value(LW_PRED, r, NULL);
}

static lw_cgval emit_select(lw_mathgen *g, lw_cgval p, lw_cgval a, lw_cgval b) {
  if (a.rep != b.rep) {
    a = lw_mathgen_narrow(g, a);
    b = lw_mathgen_narrow(g, b);
  }
  a.re = SEL(p.re, a.re, b.re);
  if (a.im) a.im = SEL(p.re, a.im, b.im);
  return a;
}

static LLVMValueRef zero_part(lw_mathgen *g, lw_prim t) {
  return LLVMConstNull(lw_mathgen_mem_type(g, t));
}

static lw_cgval emit_part(lw_mathgen *g, const lw_elem_op *op, lw_cgval a) {
  if (!lw_prim_is_complex(op->in[0])) {
    if (op->op == LW_OP_REAL) return a;
    return bits_value(op->out, zero_part(g, op->out), NULL);
  }
  return bits_value(op->out, op->op == LW_OP_REAL ? a.re : a.im, NULL);
}

/* Abs and negate of a real float: the sign bit, in the form that comes. */
static lw_cgval emit_sign_bit(lw_mathgen *g, const lw_elem_op *op, lw_cgval a) {
  lw_narrow_format f;
  bool neg = op->op == LW_OP_NEGATE;
  if (!lw_narrow_get(a.type, &f)) {
    values in = {{a.re}, 1};
    a.re = emit(g, kind_of(a.type), op->op, in).v[0];
    return a;
  }
  if (a.rep == LW_REP_BITS) {
    LLVMValueRef p = op_resize(g, a.re, 32, false);
    p = neg ? nf_neg(g, &f, p) : nf_abs(g, &f, p);
    a.re = op_resize(g, p, 8 * lw_prim_bytes(a.type), false);
    return a;
  }
  if (f.kind == LW_NARROW_E8M0) {
    if (neg) a.re = FB(IC(0x7fc00000));
    return a;
  }
  LLVMValueRef r = neg ? neg_f(g, a.re) : abs_f(g, a.re);
  if (f.kind == LW_NARROW_FNUZ) r = SEL(EQ(a.re, FC(0)), a.re, r);
  a.re = r;
  return a;
}

/* ---- conversions ---- */

static LLVMValueRef int_as_wide(lw_mathgen *g, lw_prim from, LLVMValueRef v) {
  int bits = lw_prim_table[from].bits;
  bool sgn = lw_prim_is_signed(from);
  if (from == LW_PRED || !sgn)
    return bits < 64 ? LLVMBuildUIToFP(g->b, v, op_double_type(g), "")
                     : U2D(nf_sticky(g, v, false));
  return bits < 64 ? LLVMBuildSIToFP(g->b, v, op_double_type(g), "")
                   : L2D(nf_sticky(g, v, true));
}

/* An integer or pred as f32 or f64, rounded once. */
static LLVMValueRef int_to_float(lw_mathgen *g, lw_prim from, lw_prim to,
                                 LLVMValueRef v) {
  LLVMTypeRef t = to == LW_F64 ? op_double_type(g) : op_float_type(g);
  return lw_prim_is_signed(from) ? LLVMBuildSIToFP(g->b, v, t, "")
                                 : LLVMBuildUIToFP(g->b, v, t, "");
}

/* To a narrow type from anything else. */
static F to_narrow(lw_mathgen *g, const lw_elem_op *op, lw_prim from,
                   lw_prim to, LLVMValueRef v) {
  if (lw_prim_is_float(from) && from != LW_F64) return round_to(g, to, v);
  bool small = from == LW_PRED || lw_prim_table[from].bits <= 16;
  if (from != LW_F64 && small)
    return round_to(g, to, int_to_float(g, from, LW_F32, v));
  F odd = nf_odd(g, from == LW_F64 ? v : int_as_wide(g, from, v));
  if (op->flush_denormals && from == LW_F64) odd = flush_f(g, odd);
  return round_to(g, to, odd);
}

static LLVMValueRef saturate(lw_mathgen *g, lw_prim to, LLVMValueRef v) {
  int bits = lw_prim_table[to].bits, lane = bits < 8 ? 8 : bits;
  bool sgn = lw_prim_is_signed(to);
  LLVMTypeRef types[2] = {op_int_type(g, lane), LLVMTypeOf(v)};
  LLVMValueRef r = op_intrinsic(g, sgn ? "llvm.fptosi.sat" : "llvm.fptoui.sat",
                                types, 2, &v, 1);
  if (bits == lane) return r;
  LLVMValueRef hi = op_int(g, 8, (1 << (sgn ? bits - 1 : bits)) - 1);
  if (!sgn) return SEL(ULT(r, hi), r, hi);
  LLVMValueRef lo = op_int(g, 8, -(1 << (bits - 1)));
  r = SEL(LT(r, hi), r, hi);
  return SEL(GT(r, lo), r, lo);
}

static LLVMValueRef to_int(lw_mathgen *g, lw_prim from, lw_prim to,
                           LLVMValueRef v) {
  if (lw_prim_is_float(from)) return saturate(g, to, v);
  set_int_type(g, to);
  return op_norm(g, op_resize(g, v, LANE, lw_prim_is_signed(from)));
}

static LLVMValueRef to_pred(lw_mathgen *g, LLVMValueRef v) {
  return NE(v, LLVMConstNull(LLVMTypeOf(v)));
}

/* A real value of type `from` (WIDE, flushed) to type `to`. */
static lw_cgval convert_part(lw_mathgen *g, const lw_elem_op *op, lw_prim from,
                             lw_prim to, LLVMValueRef v) {
  if (to == LW_PRED)
    return bits_value(to, from == LW_PRED ? v : to_pred(g, v), NULL);
  if (lw_prim_is_int(to)) return bits_value(to, to_int(g, from, to, v), NULL);
  if (is_narrow(to)) return real_value(to, to_narrow(g, op, from, to, v));
  if (!lw_prim_is_float(from))
    return bits_value(to, int_to_float(g, from, to, v), NULL);
  if (to == LW_F64 && from != LW_F64) v = F2D(v);
  if (to == LW_F32 && from == LW_F64) {
    v = D2F(v);
    if (op->flush_denormals) v = flush_f(g, v);
  }
  lw_cgval r = bits_value(to, v, NULL);
  return op->canonical_nan ? lw_mathgen_canonical(g, r) : r;
}

static lw_cgval emit_convert(lw_mathgen *g, const lw_elem_op *op, lw_cgval a) {
  if (op->in[0] == op->out) return a;
  lw_prim from = lw_prim_part(op->in[0]), to = lw_prim_part(op->out);
  a = operand(g, op, a);
  lw_cgval r = convert_part(g, op, from, to, a.re);
  if (!lw_prim_is_complex(op->out)) return r;
  LLVMValueRef im =
      a.im ? convert_part(g, op, from, to, a.im).re : zero_part(g, to);
  return bits_value(op->out, r.re, im);
}

/* The bits of a value as an integer of the type's width (at least 8). */
static LLVMValueRef as_bits(lw_mathgen *g, lw_cgval v) {
  v = lw_mathgen_to_mem(g, v);
  if (!v.im) {
    int bits = 8 * lw_prim_bytes(v.type);
    return LLVMBuildBitCast(g->b, v.re, op_int_type(g, bits), "");
  }
  L re = U2L(BF(v.re)), im = U2L(BF(v.im));
  return OR(re, SHL(im, LC(32)));
}

static lw_cgval emit_bitcast(lw_mathgen *g, const lw_elem_op *op, lw_cgval a) {
  lw_prim to = op->out;
  if (op->in[0] == to) return a;
  LLVMValueRef u = as_bits(g, a);
  if (to == LW_C64) return bits_value(to, FB(L2I(u)), FB(L2I(SHR(u, LC(32)))));
  if (lw_prim_table[to].bits < 8) {
    set_int_type(g, to);
    u = op_norm(g, u);
  }
  LLVMTypeRef t = lw_mathgen_mem_type(g, to);
  return lw_mathgen_from_mem(g, to, LLVMBuildBitCast(g->b, u, t, ""), NULL);
}

static lw_cgval emit_stochastic(lw_mathgen *g, const lw_elem_op *op, lw_cgval a,
                                lw_cgval b) {
  a = lw_mathgen_widen(g, a);
  D x = a.type == LW_F64 ? a.re : F2D(a.re);
  int rbits = 8 * lw_prim_bytes(op->in[0]);
  L r = cv_stochastic(g, x, op_resize(g, b.re, 64, false), rbits,
                      lw_prim_table[op->out].bits);
  set_int_type(g, op->out);
  return bits_value(op->out, op_norm(g, op_resize(g, r, LANE, true)), NULL);
}

/* ---- by opcode and type ---- */

static lw_cgval emit_pred(lw_mathgen *g, lw_opcode op, lw_cgval a, lw_cgval b) {
  LLVMValueRef r = NULL;
  switch ((int)op) {
    case LW_OP_AND:
    case LW_OP_MULTIPLY:
    case LW_OP_MINIMUM:
      r = AND(a.re, b.re);
      break;
    case LW_OP_OR:
    case LW_OP_ADD:
    case LW_OP_MAXIMUM:
      r = OR(a.re, b.re);
      break;
    case LW_OP_XOR:
      r = XOR(a.re, b.re);
      break;
    case LW_OP_NOT:
      r = MNOT(a.re);
      break;
  }
  LW_ASSERT(r);
  return bits_value(LW_PRED, r, NULL);
}

static lw_cgval emit_reduce_precision(lw_mathgen *g, const lw_elem_op *op,
                                      lw_cgval a) {
  int e = op->exponent_bits, m = op->mantissa_bits;
  LLVMValueRef x = operand(g, op, a).re;
  values r = {{NULL}, 1};
  r.v[0] = a.type == LW_F64 ? reduce_precision_d(g, x, e, m)
                            : reduce_precision_f(g, x, e, m);
  return result(g, op, r);
}

static lw_cgval emit_is_finite(lw_mathgen *g, const lw_elem_op *op,
                               lw_cgval a) {
  LLVMValueRef x = operand(g, op, a).re;
  LLVMValueRef r = a.type == LW_F64 ? is_finite_d(g, x) : is_finite_f(g, x);
  return bits_value(LW_PRED, r, NULL);
}

static lw_cgval emit_typed(lw_mathgen *g, const lw_elem_op *op, lw_cgval a,
                           lw_cgval b) {
  lw_prim t = op->in[0];
  if (t == LW_PRED) return emit_pred(g, op->op, a, b);
  if (lw_prim_is_int(t)) {
    set_int_type(g, t);
    bool two = op->in[1] != LW_PRIM_INVALID;
    values in = {{a.re, two ? b.re : NULL}, two ? 2 : 1};
    return bits_value(t, emit(g, KIND_INT, op->op, in).v[0], NULL);
  }
  bool sign = op->op == LW_OP_ABS || op->op == LW_OP_NEGATE;
  if (sign && lw_prim_is_float(t)) return emit_sign_bit(g, op, a);
  if (op->op == LW_OP_NEGATE) {
    a.re = NEG(a.re);
    a.im = NEG(a.im);
    return a;
  }
  return emit_float(g, op, a, b);
}

lw_cgval lw_mathgen_elem(lw_mathgen *g, const lw_elem_op *op, lw_cgval a,
                         lw_cgval b, lw_cgval c) {
  LW_ASSERT(g->width >= 1 && g->width <= 64);
  switch ((int)op->op) {
    case LW_OP_SELECT:
      return emit_select(g, a, b, c);
    case LW_OP_CLAMP:
      return emit_clamp(g, op, a, b, c);
    case LW_OP_COMPARE:
      return emit_compare(g, op, a, b);
    case LW_OP_CONVERT:
      return emit_convert(g, op, a);
    case LW_OP_BITCAST_CONVERT:
      return emit_bitcast(g, op, a);
    case LW_OP_STOCHASTIC_CONVERT:
      return emit_stochastic(g, op, a, b);
    case LW_OP_REDUCE_PRECISION:
      return emit_reduce_precision(g, op, a);
    case LW_OP_IS_FINITE:
      return emit_is_finite(g, op, a);
    case LW_OP_REAL:
    case LW_OP_IMAG:
      return emit_part(g, op, a);
    case LW_OP_COMPLEX:
      return bits_value(op->out, a.re, b.re);
  }
  return emit_typed(g, op, a, b);
}
