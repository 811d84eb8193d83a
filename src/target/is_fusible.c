/* The CPU backend's rule for an edge, by opcodes and shapes.
 *
 * A consumer takes a producer into its kernel when the consumer is a loop over
 * its result (or a reduce: a loop over its operand) that reads the operand at
 * an index it computes, and the producer's value at an index is computed by
 * such a loop. Dots, windows, convolutions and scatters are stages that the
 * kernel runs before or after such loops; whether a kernel is small enough for
 * that is the pass's question. Everything else (sorts, library calls, control
 * flow) takes its operands from memory and leaves its result there.
 */
#include "target/target.h"

static lw_fusible no(lw_reason r) { return (lw_fusible){false, r}; }

bool lw_inst_is_loop(const lw_inst *i) {
  if (!lw_shape_is_array(i->shape)) return false;
  switch ((int)i->opcode) {
    case LW_OP_BITCAST:
    case LW_OP_BROADCAST:
    case LW_OP_CONCATENATE:
    case LW_OP_CONSTANT:
    case LW_OP_COPY:
    case LW_OP_DYNAMIC_SLICE:
    case LW_OP_DYNAMIC_UPDATE_SLICE:
    case LW_OP_GATHER:
    case LW_OP_IOTA:
    case LW_OP_PAD:
    case LW_OP_RESHAPE:
    case LW_OP_REVERSE:
    case LW_OP_SLICE:
    case LW_OP_TRANSPOSE:
      return true;
    case LW_OP_BITCAST_CONVERT: /* changes of width move bytes, not elements */
      return lw_shape_same_dims(i->shape, lw_inst_operand(i, 0)->shape);
    default:
      return lw_opcode_is_elementwise(i->opcode);
  }
}

bool lw_inst_is_lone_stage(const lw_inst *i) {
  if (!lw_shape_is_array(i->shape)) return false;
  return i->opcode == LW_OP_DOT || i->opcode == LW_OP_CONVOLUTION ||
         i->opcode == LW_OP_REDUCE_WINDOW || i->opcode == LW_OP_SCATTER;
}

static bool has_dynamic(const lw_inst *i) {
  if (lw_shape_has_dynamic(i->shape)) return true;
  for (int32_t k = 0; k < i->n_operands; k++)
    if (lw_shape_has_dynamic(lw_inst_operand(i, k)->shape)) return true;
  return false;
}

lw_fusible lw_cpu_is_fusible(const lw_inst *producer, const lw_inst *consumer,
                             const lw_target *target) {
  (void)target;
  if (lw_inst_has_side_effect(producer) || lw_inst_has_side_effect(consumer))
    return no(LW_REASON_SIDE_EFFECT);
  if (!lw_inst_is_loop(consumer) && consumer->opcode != LW_OP_REDUCE &&
      !lw_inst_is_lone_stage(consumer))
    return no(LW_REASON_CONSUMER_KIND);
  bool reduce =
      producer->opcode == LW_OP_REDUCE && lw_shape_is_array(producer->shape);
  if (!lw_inst_is_loop(producer) && !reduce && !lw_inst_is_lone_stage(producer))
    return no(LW_REASON_PRODUCER_KIND);
  if (producer->opcode == LW_OP_CONSTANT && producer->shape->elements != 1)
    return no(LW_REASON_LARGE_CONSTANT);
  if (has_dynamic(producer) || has_dynamic(consumer))
    return no(LW_REASON_DYNAMIC_SHAPE);
  return (lw_fusible){true, LW_REASON_FUSIBLE};
}
