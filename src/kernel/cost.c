/* What operations cost, in additions an element: for choosing what is computed
 * again and what is kept, and the size of tiles. Rough on purpose. */
#include "kernel/kernel_impl.h"

static double elementwise_cost(const lw_inst *i) {
  double c = 1;
  switch ((int)i->opcode) {
    case LW_OP_DIVIDE:
    case LW_OP_SQRT:
    case LW_OP_CBRT:
      c = 4;
      break;
    case LW_OP_REMAINDER:
      c = 12;
      break;
    case LW_OP_CONVERT:
    case LW_OP_BITCAST_CONVERT:
    case LW_OP_REAL:
    case LW_OP_IMAG:
    case LW_OP_COMPLEX:
      c = 0.5;
      break;
    case LW_OP_POWER:
    case LW_OP_ATAN2:
      c = 60;
      break;
    default:
      if (lw_opcode_table[i->opcode].flags & LW_OPF_TRANS) c = 24;
      break;
  }
  if (lw_prim_is_complex(i->shape->type)) c *= 4;
  return c;
}

double lw_op_cost(const lw_inst *i) {
  if (lw_opcode_is_elementwise(i->opcode)) return elementwise_cost(i);
  switch ((int)i->opcode) {
    case LW_OP_PAD:
      return 1;
    case LW_OP_CONCATENATE:
      return i->n_operands - 1;
    case LW_OP_DYNAMIC_UPDATE_SLICE:
      return 2;
    case LW_OP_GATHER:
      return 4;
    case LW_OP_MAP: {
      double c = 0;
      const lw_comp *body = lw_inst_comp(i, LW_ATTR_TO_APPLY);
      for (const lw_inst *x = body->first; x; x = x->next) c += lw_op_cost(x);
      return c;
    }
    default:
      return 0;
  }
}

bool lw_may_be_staged(const lw_inst *i) {
  return lw_shape_is_array(i->shape) && i->shape->elements > 1 &&
         i->opcode != LW_OP_IOTA && i->opcode != LW_OP_BROADCAST;
}

bool lw_always_staged(const lw_inst *i) {
  switch ((int)i->opcode) {
    case LW_OP_REDUCE:
    case LW_OP_REDUCE_WINDOW:
    case LW_OP_DOT:
    case LW_OP_RAGGED_DOT:
    case LW_OP_SCALED_DOT:
    case LW_OP_CONVOLUTION:
    case LW_OP_SCATTER:
    case LW_OP_SELECT_AND_SCATTER:
    case LW_OP_SORT:
    case LW_OP_TOPK:
    case LW_OP_RNG:
    case LW_OP_RNG_BIT_GENERATOR:
    case LW_OP_RNG_GET_AND_UPDATE_STATE:
      return true;
    default:
      return false;
  }
}

lw_stage_kind lw_stage_kind_of(const lw_inst *i) {
  int32_t dim;
  bool reverse;
  switch ((int)i->opcode) {
    case LW_OP_REDUCE:
      return LW_STAGE_REDUCE;
    case LW_OP_REDUCE_WINDOW:
      return lw_window_is_scan(i, &dim, &reverse) ? LW_STAGE_SCAN
                                                  : LW_STAGE_WINDOW;
    case LW_OP_SCAN:
      return LW_STAGE_SCAN;
    case LW_OP_DOT:
    case LW_OP_RAGGED_DOT:
    case LW_OP_SCALED_DOT:
      return LW_STAGE_DOT;
    case LW_OP_CONVOLUTION:
      return LW_STAGE_CONV;
    case LW_OP_SCATTER:
      return LW_STAGE_SCATTER;
    case LW_OP_SELECT_AND_SCATTER:
      return LW_STAGE_SELECT_SCATTER;
    case LW_OP_SORT:
      return LW_STAGE_SORT;
    case LW_OP_TOPK:
      return LW_STAGE_TOPK;
    case LW_OP_RNG_BIT_GENERATOR:
      return LW_STAGE_RNG_BITS;
    case LW_OP_RNG:
    case LW_OP_RNG_GET_AND_UPDATE_STATE:
      return LW_STAGE_RNG;
    default:
      return LW_STAGE_MAP;
  }
}
