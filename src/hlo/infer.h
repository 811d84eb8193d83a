/* Shape inference: the result shape of an instruction from its opcode, operand
 * shapes, attributes and called computations; XLA's rules.
 *
 * Layouts are those XLA's text parser gives: elementwise results keep the
 * layout of their first array operand, moved dimensions take theirs along,
 * everything else is descending. For opcodes whose shape the text must give
 * (LW_OPF_SHAPE) inst->shape is read as well: it is checked against what the
 * operands and attributes allow, and returned. For the others inst->shape may
 * be NULL.
 *
 * Errors are INVALID_ARGUMENT and one sentence beginning with the opcode. No
 * input makes it crash; operands must have shapes, called computations roots
 * with shapes (an error otherwise).
 */
#ifndef LW_HLO_INFER_H
#define LW_HLO_INFER_H

#include "hlo/hlo.h"

LW_MUST_USE lw_status lw_infer_shape(lw_context *ctx, const lw_inst *inst,
                                     const lw_shape **out);

/* Output extent of one window dimension over an input of size extents:
 * dilation, padding and stride applied; 0 when the window never fits. False on
 * overflow or a nonsensical window (size, stride or a dilation below 1). */
bool lw_window_output_size(const lw_window_dim *w, int64_t size, int64_t *out);

/* The float type that holds the other's values best (XLA's order: wider
 * exponent, then wider mantissa); both must be floats or both the same. */
lw_prim lw_prim_higher_precision(lw_prim a, lw_prim b);

/* What a compare without type= means, by its operand's element type. */
lw_compare_type lw_default_compare_type(const lw_inst *compare);

/* Equal element types, or both floating point (mixed precision). */
static inline bool lw_prim_same_kind(lw_prim a, lw_prim b) {
  return a == b || (lw_prim_is_float(a) && lw_prim_is_float(b));
}

/* Equal but for layouts and floating-point precision, tuples by element. */
bool lw_shape_compatible_mixed(const lw_shape *a, const lw_shape *b);

/* A shape without layouts for messages, cut after some hundred bytes: shared
 * tuples can be exponentially long. In the context's arena. */
const char *lw_infer_shape_str(lw_context *ctx, const lw_shape *s);

#endif
