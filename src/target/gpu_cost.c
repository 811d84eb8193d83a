/* What one instruction reads, writes and computes, counted as XLA counts it
 * (hlo_cost_analysis.cc with the rules of gpu_hlo_cost_analysis.cc).
 *
 * "flops" are clock cycles: an elementwise op costs its table's cycles an
 * element, a reduce its body's for each element folded away. Bytes are those
 * of every operand and of the result, except where an op touches less or more:
 * slices read what they return, a broadcast reads each element as often as it
 * returns it, a dynamic-update-slice works in place. operand_util says how
 * often an average element of the operand is read.
 *
 * The values are floats, as there: sizes beyond 2^24 are rounded, and
 * priorities depend on how.
 */
#include "target/gpu_impl.h"

static void set_operand(gpu_cost *c, int32_t k, int64_t bytes) {
  c->operand_bytes[k] = (float)bytes;
}

static void set_util(gpu_cost *c, int32_t k, int64_t part, int64_t whole) {
  c->operand_util[k] = (float)(1.0 * (double)part / (double)whole);
}

static int64_t operand_size(const lw_inst *i, int32_t k) {
  return lw_gpu_shape_size(lw_inst_operand(i, k)->shape);
}

static int64_t operand_elements(const lw_inst *i, int32_t k) {
  return lw_inst_operand(i, k)->shape->elements;
}

/* Of a variadic op, one result. */
static const lw_shape *first_shape(const lw_inst *i) {
  return lw_shape_is_tuple(i->shape) ? i->shape->elems[0] : i->shape;
}

/* ---- bodies ---- */

/* Flops of a to_apply computation, once. */
static float body_flops(lw_gpu_model *m, const lw_comp *body) {
  float sum = 0;
  if (!body) return 0;
  for (const lw_inst *i = body->first; i; i = i->next)
    sum += lw_gpu_cost(m, i)->flops;
  return sum;
}

static float applied_flops(lw_gpu_model *m, const lw_inst *i, int64_t times) {
  float once = body_flops(m, lw_inst_comp(i, LW_ATTR_TO_APPLY));
  return once * (float)times;
}

/* ---- one rule an op ---- */

static void cost_free(const lw_inst *i, gpu_cost *c) {
  c->out_bytes = 0;
  for (int32_t k = 0; k < i->n_operands; k++) c->operand_bytes[k] = 0;
}

static void cost_slice(const lw_inst *i, gpu_cost *c) {
  set_operand(c, 0, lw_gpu_shape_size(i->shape));
  set_util(c, 0, i->shape->elements, operand_elements(i, 0));
}

static void cost_update_slice(const lw_inst *i, gpu_cost *c) {
  int64_t all = i->shape->elements, part = operand_elements(i, 1);
  c->out_bytes = (float)operand_size(i, 1);
  set_operand(c, 0, 0);
  set_util(c, 0, all - part, all);
}

static void cost_broadcast(const lw_inst *i, gpu_cost *c) {
  set_operand(c, 0, lw_gpu_shape_size(i->shape));
  set_util(c, 0, i->shape->elements, operand_elements(i, 0));
}

static void cost_reduce(lw_gpu_model *m, const lw_inst *i, gpu_cost *c) {
  int64_t out = first_shape(i)->elements;
  int32_t inputs = i->n_operands / 2;
  c->flops = applied_flops(m, i, operand_elements(i, 0) - out);
  for (int32_t k = inputs; k < i->n_operands; k++) {
    set_operand(c, k, out * operand_size(i, k));
    c->operand_util[k] = (float)out;
  }
}

/* A window that spans the whole dim and as much padding on both sides is a
 * reduce and a broadcast: the dim, or -1. */
static int32_t broadcast_reduce_dim(const lw_inst *i, const lw_window *w) {
  int32_t reduced = 0, padded = 0, dim = -1;
  for (int32_t k = 0; k < w->rank; k++) {
    const lw_window_dim *d = &w->dims[k];
    reduced += d->size != 1;
    padded += d->pad_lo != 0 || d->pad_hi != 0;
    if (dim < 0 && d->size != 1 && d->pad_lo != 0 && d->pad_lo == d->pad_hi &&
        d->size == 2 * d->pad_lo + 1)
      dim = k;
  }
  if (reduced != 1 || padded != 1 || dim < 0 || lw_shape_is_tuple(i->shape))
    return -1;
  return w->dims[dim].pad_lo == i->shape->dims[dim] - 1 ? dim : -1;
}

static void cost_reduce_window(lw_gpu_model *m, const lw_inst *i, gpu_cost *c) {
  const lw_window *w = lw_inst_window(i);
  int64_t out = first_shape(i)->elements, window = 1;
  for (int32_t k = 0; w && k < w->rank; k++) window *= w->dims[k].size;
  int64_t times = (window - 1) * out;
  int32_t dim = w ? broadcast_reduce_dim(i, w) : -1;
  if (dim >= 0) {
    window = i->shape->dims[dim];
    times = out / window + (window - 1);
  }
  c->operand_util[0] = (float)(1.0 * (double)out * (double)window /
                               (double)operand_elements(i, 0));
  set_operand(c, 0,
              out * window * lw_prim_bytes(lw_inst_operand(i, 0)->shape->type));
  c->flops = applied_flops(m, i, times);
}

static void cost_select_and_scatter(lw_gpu_model *m, const lw_inst *i,
                                    gpu_cost *c) {
  const lw_window *w = lw_inst_window(i);
  int64_t source = operand_elements(i, 1), window = 1;
  for (int32_t k = 0; w && k < w->rank; k++) window *= w->dims[k].size;
  c->flops = body_flops(m, lw_inst_comp(i, LW_ATTR_SELECT)) *
             (float)(source * (window - 1));
  c->flops += body_flops(m, lw_inst_comp(i, LW_ATTR_SCATTER)) * (float)source;
}

static void cost_gather(const lw_inst *i, gpu_cost *c) {
  set_operand(c, 0, lw_gpu_shape_size(i->shape));
  set_util(c, 0, i->shape->elements, operand_elements(i, 0));
}

static void cost_scatter(lw_gpu_model *m, const lw_inst *i, gpu_cost *c) {
  int32_t n = i->n_operands / 2;
  int64_t total = 0;
  for (int32_t k = 0; k < n; k++) {
    int64_t size = operand_size(i, n + 1 + k);
    set_operand(c, k, size);
    total += size;
  }
  c->out_bytes = (float)total;
  c->flops = applied_flops(m, i, operand_elements(i, n + 1));
}

/* A compare and a branch an element; a warp that straddles two operands runs
 * both branches, which is priced in where the seam lies off a warp. */
static void cost_concatenate(const lw_inst *i, gpu_cost *c) {
  int32_t n;
  const int64_t *dims = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  int64_t dim = n ? dims[0] : 0, cycles = 6;
  if (dim > 0 && (lw_inst_operand(i, 0)->shape->dims[dim] & 31)) cycles = 400;
  c->flops = (float)(cycles * lw_gpu_elements(i->shape));
}

static void cost_dot(const lw_inst *i, gpu_cost *c) {
  int32_t n;
  const int64_t *dims = lw_inst_i64s(i, LW_ATTR_LHS_CONTRACTING_DIMS, &n);
  int64_t width = 1;
  for (int32_t k = 0; k < n; k++)
    width *= lw_inst_operand(i, 0)->shape->dims[dims[k]];
  c->flops = (float)(2 * i->shape->elements * width);
}

static int64_t log2_ceil(int64_t n) {
  int64_t bits = 0;
  while (bits < 62 && ((int64_t)1 << bits) < n) bits++;
  return bits;
}

static void cost_sort(const lw_inst *i, gpu_cost *c) {
  int64_t n = operand_elements(i, 0);
  c->flops = (float)(n * log2_ceil(n));
}

/* What a library computes is not known: XLA writes -1 everywhere. */
static void cost_custom_call(const lw_inst *i, gpu_cost *c) {
  c->flops = c->out_bytes = -1;
  for (int32_t k = 0; k < i->n_operands; k++) c->operand_bytes[k] = -1;
}

static void cost_elementwise(lw_gpu_model *m, const lw_inst *i, gpu_cost *c) {
  lw_prim type = i->shape->type;
  int64_t cycles = m->cycles[i->opcode][type];
  c->flops = (float)(cycles * lw_gpu_elements(i->shape));
}

/* ---- choosing ---- */

static float leaf_bytes(const lw_shape *s) {
  float sum = 0;
  if (!lw_shape_is_tuple(s)) return (float)lw_gpu_shape_size(s);
  for (int32_t k = 0; k < s->n_elems; k++) sum += leaf_bytes(s->elems[k]);
  return sum;
}

/* Before the op's own rule: all operands and the result, once. */
static void cost_default(const lw_inst *i, gpu_cost *c) {
  c->flops = 0;
  c->ir_size = 1;
  c->out_bytes = leaf_bytes(i->shape);
  for (int32_t k = 0; k < i->n_operands; k++) {
    c->operand_bytes[k] = (float)operand_size(i, k);
    c->operand_util[k] = 1;
  }
}

void lw_gpu_cost_plain(lw_gpu_model *m, const lw_inst *i, gpu_cost *c) {
  cost_default(i, c);
  switch ((int)i->opcode) {
    case LW_OP_PARAMETER:
    case LW_OP_CONSTANT:
    case LW_OP_GET_TUPLE_ELEMENT:
    case LW_OP_DOMAIN:
    case LW_OP_AFTER_ALL:
    case LW_OP_ADD_DEPENDENCY:
    case LW_OP_BITCAST:
      cost_free(i, c);
      break;
    case LW_OP_TRANSPOSE:
      if (lw_gpu_transpose_is_bitcast(i)) cost_free(i, c);
      break;
    case LW_OP_TUPLE:
      cost_free(i, c);
      c->out_bytes = (float)lw_gpu_shape_size(i->shape);
      break;
    case LW_OP_SLICE:
    case LW_OP_DYNAMIC_SLICE:
      cost_slice(i, c);
      break;
    case LW_OP_DYNAMIC_UPDATE_SLICE:
      cost_update_slice(i, c);
      break;
    case LW_OP_BROADCAST:
      cost_broadcast(i, c);
      break;
    case LW_OP_REDUCE:
      cost_reduce(m, i, c);
      break;
    case LW_OP_REDUCE_WINDOW:
      cost_reduce_window(m, i, c);
      break;
    case LW_OP_SELECT_AND_SCATTER:
      cost_select_and_scatter(m, i, c);
      break;
    case LW_OP_MAP:
      c->flops = applied_flops(m, i, i->shape->elements);
      break;
    case LW_OP_GATHER:
      cost_gather(i, c);
      break;
    case LW_OP_SCATTER:
      cost_scatter(m, i, c);
      break;
    case LW_OP_CONCATENATE:
      cost_concatenate(i, c);
      break;
    case LW_OP_DOT:
      cost_dot(i, c);
      break;
    case LW_OP_SORT:
      cost_sort(i, c);
      break;
    case LW_OP_CUSTOM_CALL:
      cost_custom_call(i, c);
      break;
    case LW_OP_COPY:
      break;
    default: /* movers, and what no kernel of ours computes: bytes alone */
      if (lw_opcode_is_elementwise(i->opcode)) cost_elementwise(m, i, c);
      break;
  }
}
