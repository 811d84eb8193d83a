/* Elementwise opcodes: the scalar instantiation in src/math, whole arrays at a
 * time; bitcast-convert between widths; map. */
#include <stdlib.h>

#include "interp/eval.h"

static lw_prim operand_type(const lw_inst *i, lw_val **ops, int32_t k) {
  return k < i->n_operands ? ops[k]->lit.shape->type : LW_PRIM_INVALID;
}

lw_elem_op lw_elem_of_inst(const lw_eval *e, const lw_inst *i,
                           const lw_prim in[3]) {
  lw_elem_op op = lw_elem_make(i->opcode, in[0], in[1], in[2], i->shape->type);
  op.dir = (lw_cmp_dir)lw_inst_i64(i, LW_ATTR_DIRECTION, LW_CMP_EQ);
  op.total_order =
      lw_inst_i64(i, LW_ATTR_COMPARE_TYPE, LW_CT_NONE) == LW_CT_TOTALORDER;
  op.exponent_bits = (int)lw_inst_i64(i, LW_ATTR_EXPONENT_BITS, 0);
  op.mantissa_bits = (int)lw_inst_i64(i, LW_ATTR_MANTISSA_BITS, 0);
  op.flush_denormals = e->opt.flush_denormals;
  return op;
}

/* select's predicate and clamp's bounds may be scalars beside arrays. */
static lw_status spread_scalar(lw_eval *e, const lw_shape *dims, lw_val **v) {
  lw_val *w = NULL;
  const lw_shape *s =
      lw_shape_with_type(e->m->ctx, dims, (*v)->lit.shape->type);
  LW_TRY(lw_val_new(e, s, &w));
  size_t size = (size_t)lw_esize(*v);
  for (int64_t k = 0; k < s->elements; k++)
    memcpy((char *)w->lit.data + (size_t)k * size, (*v)->lit.data, size);
  lw_val_release(e, *v);
  *v = w;
  return NULL;
}

static const lw_shape *widest(const lw_inst *i, lw_val **ops) {
  const lw_shape *s = ops[0]->lit.shape;
  for (int32_t k = 1; k < i->n_operands; k++)
    if (s->rank == 0) s = ops[k]->lit.shape;
  return s;
}

lw_status lw_eval_elementwise(lw_eval *e, const lw_inst *i, lw_val **ops,
                              lw_val **out) {
  const lw_shape *dims = widest(i, ops);
  lw_prim in[3];
  for (int32_t k = 0; k < 3; k++) in[k] = operand_type(i, ops, k);
  for (int32_t k = 0; k < i->n_operands; k++) {
    if (lw_shape_same_dims(ops[k]->lit.shape, dims)) continue;
    if (ops[k]->lit.shape->rank)
      return lw_error(LW_INVALID_ARGUMENT, "operand sizes differ");
    LW_TRY(spread_scalar(e, dims, &ops[k]));
  }
  lw_elem_op op = lw_elem_of_inst(e, i, in);
  lw_elem_fn fn = NULL;
  if (i->shape->rank != dims->rank)
    return lw_error(LW_INVALID_ARGUMENT, "result and operand differ");
  LW_TRY(lw_elem_resolve(&op, &fn));
  LW_TRY(lw_val_new(e, lw_result_shape(e, i->shape, dims->dims), out));
  const void *data[3] = {0};
  for (int32_t k = 0; k < i->n_operands && k < 3; k++)
    data[k] = ops[k]->lit.data;
  fn(&op, dims->elements, data[0], data[1], data[2], (*out)->lit.data);
  return NULL;
}

lw_status lw_elem_apply(lw_eval *e, lw_opcode opcode, lw_prim in, lw_prim out,
                        int64_t n, const void *a, const void *b, void *dst) {
  bool two = lw_opcode_table[opcode].arity == 2;
  lw_elem_op op = lw_elem_make(opcode, in, two ? in : LW_PRIM_INVALID,
                               LW_PRIM_INVALID, out);
  op.flush_denormals = e->opt.flush_denormals;
  lw_elem_fn fn = NULL;
  LW_TRY(lw_elem_resolve(&op, &fn));
  fn(&op, n, a, b, NULL, dst);
  return NULL;
}

/* ---- bitcast-convert ---- */

/* One element's code of `bits` bits from or to a byte array. Bits of sub-byte
 * elements pack low first, as in XLA's buffers. */
static uint8_t small_get(const uint8_t *packed, int64_t i, int bits) {
  int64_t at = i * bits;
  return (uint8_t)((packed[at / 8] >> (at % 8)) & ((1u << bits) - 1));
}

static void small_put(uint8_t *packed, int64_t i, int bits, uint8_t v) {
  int64_t at = i * bits;
  packed[at / 8] |= (uint8_t)((v & ((1u << bits) - 1)) << (at % 8));
}

/* Sub-byte codes sign-extend in literals when their type is signed. */
static uint8_t extend(lw_prim t, uint8_t v) {
  int bits = lw_prim_table[t].bits;
  if (lw_prim_is_signed(t) && (v >> (bits - 1)) & 1)
    v |= (uint8_t)(0xffu << bits);
  return v;
}

/* From the wide elements to several narrow ones each, or back. The bytes of
 * whole-byte types are the same either way; sub-byte ones pack. Types whose
 * bits do not divide a byte (f6) change width only to themselves. */
static void convert_packed(lw_prim from, lw_prim to, int64_t n_from,
                           int64_t n_to, const uint8_t *src, uint8_t *dst,
                           uint8_t *packed) {
  int fb = lw_prim_table[from].bits, tb = lw_prim_table[to].bits;
  const uint8_t *bytes = src;
  if (fb < 8) {
    for (int64_t k = 0; k < n_from; k++) small_put(packed, k, fb, src[k]);
    bytes = packed;
  }
  if (tb < 8)
    for (int64_t k = 0; k < n_to; k++)
      dst[k] = extend(to, small_get(bytes, k, tb));
  else
    memcpy(dst, bytes, (size_t)n_to * (size_t)lw_prim_bytes(to));
}

lw_status lw_eval_bitcast_convert(lw_eval *e, const lw_inst *i, lw_val **ops,
                                  lw_val **out) {
  lw_prim from = ops[0]->lit.shape->type, to = i->shape->type;
  int fb = lw_prim_table[from].bits, tb = lw_prim_table[to].bits;
  if (fb == tb && from != LW_PRED && to != LW_PRED)
    return lw_eval_elementwise(e, i, ops, out);
  int64_t n_from = lw_elems(ops[0]), n_to = i->shape->elements;
  if (n_from > INT64_MAX / fb || n_to > INT64_MAX / tb ||
      n_from * fb != n_to * tb)
    return lw_error(LW_INVALID_ARGUMENT,
                    "bitcast-convert between different numbers of bits");
  LW_TRY(lw_val_new(e, i->shape, out));
  uint8_t *packed = calloc((size_t)(n_from * fb / 8 + 8), 1);
  if (!packed) lw_oom((size_t)n_from);
  convert_packed(from, to, n_from, n_to, ops[0]->lit.data, (*out)->lit.data,
                 packed);
  free(packed);
  return NULL;
}

/* ---- map ---- */

lw_status lw_eval_map(lw_eval *e, const lw_inst *i, lw_val **ops,
                      lw_val **out) {
  lw_prog *p = NULL;
  LW_TRY(lw_prog_get(e, lw_inst_called(i, 0), &p));
  if (lw_prog_params(p) != i->n_operands || lw_prog_results(p) != 1 ||
      i->n_operands > LW_PROG_MAX_PARAMS ||
      i->shape->rank != ops[0]->lit.shape->rank ||
      lw_prog_result_type(p, 0) != i->shape->type)
    return lw_error(LW_INVALID_ARGUMENT, "map's computation does not fit");
  LW_TRY(lw_val_new(e, lw_result_shape(e, i->shape, ops[0]->lit.shape->dims),
                    out));
  const void *in[LW_PROG_MAX_PARAMS];
  for (int32_t k = 0; k < i->n_operands; k++) {
    if (lw_elems(ops[k]) != lw_elems(ops[0]) ||
        lw_prog_param_type(p, k) != ops[k]->lit.shape->type)
      return lw_error(LW_INVALID_ARGUMENT, "operands differ");
    in[k] = ops[k]->lit.data;
  }
  void *dst[1] = {(*out)->lit.data};
  return lw_prog_run(e, p, lw_elems(ops[0]), in, dst);
}
