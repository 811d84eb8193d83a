/* Names: instructions that compute nothing. A buffer holds its elements in
 * row-major order whatever the shape, so a reshape or copy of a value is the
 * value. Tuples are lists of leaves. A loop hands a leaf on unchanged when its
 * body's root has its own parameter's leaf there: then operand, parameters and
 * result are one value, and a weight that a scan reads is never copied. */
#include "plan/plan_impl.h"

static bool same_order(const lw_inst *i) {
  const lw_shape *to = i->shape, *from = lw_inst_operand(i, 0)->shape;
  return lw_shape_is_array(to) && lw_shape_is_array(from) &&
         lw_layout_is_descending(to->layout) &&
         lw_layout_is_descending(from->layout) &&
         lw_shape_bytes(to) == lw_shape_bytes(from);
}

bool plan_is_name(const lw_inst *i) {
  if (i->opcode == LW_OP_OPT_BARRIER || i->opcode == LW_OP_DOMAIN ||
      i->opcode == LW_OP_ADD_DEPENDENCY || i->opcode == LW_OP_COPY) {
    return true;
  }
  if (i->opcode == LW_OP_RESHAPE) return true;
  return i->opcode == LW_OP_BITCAST && same_order(i);
}

int32_t plan_leaf_offset(const lw_shape *tuple, int64_t k) {
  int64_t n = 0;
  for (int64_t e = 0; e < k; e++) n += lw_shape_leaf_count(tuple->elems[e]);
  return (int32_t)n;
}

static leaf_ref tuple_leaf(const lw_inst *tuple, int32_t leaf) {
  for (int32_t k = 0; k < tuple->n_operands; k++) {
    const lw_inst *op = lw_inst_operand(tuple, k);
    int32_t n = (int32_t)lw_shape_leaf_count(op->shape);
    if (leaf < n) return (leaf_ref){op, leaf};
    leaf -= n;
  }
  return (leaf_ref){tuple, leaf};
}

leaf_ref plan_resolve(builder *b, const lw_inst *i, int32_t leaf) {
  leaf_ref r = {i, leaf};
  for (;;) {
    leaf_ref next = r;
    if (r.inst->opcode == LW_OP_TUPLE) {
      next = tuple_leaf(r.inst, r.leaf);
    } else if (r.inst->opcode == LW_OP_GET_TUPLE_ELEMENT) {
      const lw_inst *op = lw_inst_operand(r.inst, 0);
      int64_t k = lw_inst_i64(r.inst, LW_ATTR_INDEX, 0);
      next = (leaf_ref){op, plan_leaf_offset(op->shape, k) + r.leaf};
    } else if (plan_is_name(r.inst) || (r.inst->opcode == LW_OP_WHILE &&
                                        plan_invariants(b, r.inst)[r.leaf])) {
      next.inst = lw_inst_operand(r.inst, 0);
    }
    if (next.inst == r.inst) return r;
    r = next;
  }
}

const bool *plan_invariants(builder *b, const lw_inst *loop) {
  bool *known = lw_map_ptr(&b->invariants, loop);
  if (known) return known;
  int32_t n = (int32_t)lw_shape_leaf_count(loop->shape);
  known = LW_NEW_ARRAY(b->arena, bool, n > 0 ? n : 1);
  const lw_comp *body = lw_inst_comp(loop, LW_ATTR_BODY);
  const lw_inst *param = body->params.data[0];
  for (int32_t k = 0; k < n; k++) {
    leaf_ref r = plan_resolve(b, body->root, k);
    known[k] = r.inst == param && r.leaf == k;
  }
  lw_map_set_ptr(&b->invariants, loop, known);
  return known;
}
