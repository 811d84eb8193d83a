/* The cost model.
 *
 * It ranks; it does not predict. What matters is that fusing two kernels is
 * judged by the same few quantities the machine has: bytes at the level where
 * they are found, arithmetic, and the price of starting a kernel. Numbers come
 * from the target file and from nowhere else.
 */
#include "target/cost.h"

#include <math.h>

/* A value of b bytes stays in level X when 2b fits: the kernel that reads it
 * writes or reads something of the same order at the same time. L1 and L2 are
 * a core's; all cores share the value, so both count once a core. */

const char *lw_level_name(lw_level level) {
  static const char *const names[] = {"L1", "L2", "L3", "DRAM"};
  return names[level];
}

lw_level lw_cost_level(const lw_target *t, double b) {
  if (2 * b <= t->v.l1_bytes * t->v.cores) return LW_LEVEL_L1;
  if (2 * b <= t->v.l2_bytes * t->v.cores) return LW_LEVEL_L2;
  if (2 * b <= t->v.l3_bytes) return LW_LEVEL_L3;
  return LW_LEVEL_DRAM;
}

/* bytes / (GB/s) = ns. */
double lw_cost_move_ns(const lw_target *t, lw_level level, double bytes,
                       bool all_cores) {
  const double one[] = {t->v.l1_gbps, t->v.l2_gbps, t->v.l3_gbps,
                        t->v.dram_gbps};
  const double all[] = {t->v.l1_gbps_total, t->v.l2_gbps_total,
                        t->v.l3_gbps_total, t->v.dram_gbps_total};
  return bytes / (all_cores ? all[level] : one[level]);
}

double lw_cost_value_ns(const lw_target *t, double bytes, double value_bytes) {
  return lw_cost_move_ns(t, lw_cost_level(t, value_bytes), bytes, true);
}

/* f64 has half the lanes of f32, complex twice the parts; narrow floats are
 * computed in f32 and add a conversion each way. */
static double width_factor(lw_prim type) {
  switch (lw_prim_class(type)) {
    case LW_CLASS_FLOAT:
    case LW_CLASS_SINT:
    case LW_CLASS_UINT:
      return lw_prim_bytes(type) == 8 ? 2 : 1;
    case LW_CLASS_COMPLEX:
      return lw_prim_bytes(type) == 16 ? 8 : 4;
    case LW_CLASS_PRED:
    case LW_CLASS_OTHER:
      return 1;
  }
  return 1;
}

static double division_ns(const lw_target *t, lw_prim type) {
  return lw_prim_is_int(type) ? t->v.integer_divide_ns : t->v.divide_ns;
}

/* The op class of fields.def each opcode belongs to. */
static double class_ns(const lw_target *t, const lw_inst *i) {
  switch ((int)i->opcode) {
    case LW_OP_PARAMETER:
    case LW_OP_CONSTANT:
    case LW_OP_TUPLE:
    case LW_OP_GET_TUPLE_ELEMENT:
    case LW_OP_BITCAST:
    case LW_OP_RESHAPE:
    case LW_OP_BROADCAST:
    case LW_OP_OPT_BARRIER:
    case LW_OP_SLICE:
    case LW_OP_DYNAMIC_SLICE:
      return 0;
    case LW_OP_DIVIDE:
    case LW_OP_REMAINDER:
      return division_ns(t, i->shape->type);
    case LW_OP_SQRT:
    case LW_OP_RSQRT:
    case LW_OP_CBRT:
      return t->v.sqrt_ns;
    case LW_OP_EXPONENTIAL:
    case LW_OP_EXPM1:
    case LW_OP_LOGISTIC:
      return t->v.exp_ns;
    case LW_OP_LOG:
    case LW_OP_LOG1P:
      return t->v.log_ns;
    case LW_OP_SINE:
    case LW_OP_COSINE:
    case LW_OP_TAN:
    case LW_OP_ACOS:
    case LW_OP_ASIN:
      return t->v.trig_ns;
    case LW_OP_TANH:
    case LW_OP_ERF:
    case LW_OP_SINH:
    case LW_OP_COSH:
    case LW_OP_ACOSH:
    case LW_OP_ASINH:
    case LW_OP_ATANH:
      return t->v.tanh_ns;
    case LW_OP_POWER:
    case LW_OP_ATAN2:
      return t->v.power_ns;
    case LW_OP_CONVERT:
    case LW_OP_REDUCE_PRECISION:
      return t->v.convert_ns;
    case LW_OP_GATHER:
      return t->v.gather_ns;
    case LW_OP_PAD: /* a test and a select */
      return 2 * t->v.simple_ns;
    case LW_OP_CONCATENATE: /* a test and a select an operand */
      return 2 * t->v.simple_ns * i->n_operands;
    case LW_OP_DYNAMIC_UPDATE_SLICE: /* two tests a dim and a select */
      return t->v.simple_ns * (2 * i->shape->rank + 1);
    default:
      return t->v.simple_ns;
  }
}

double lw_cost_element_ns(const lw_target *t, const lw_inst *i) {
  lw_prim type = i->shape->type;
  double ns = class_ns(t, i) * width_factor(type);
  if (ns > 0 && lw_prim_is_float(type) && lw_prim_bytes(type) < 4)
    ns += 2 * t->v.convert_ns;
  return ns;
}

/* m * n * k multiply-adds. */
static double dot_flops(const lw_inst *i) {
  int32_t n;
  const int64_t *k = lw_inst_i64s(i, LW_ATTR_LHS_CONTRACTING_DIMS, &n);
  const lw_shape *lhs = lw_inst_operand(i, 0)->shape;
  double contracted = 1;
  for (int32_t d = 0; d < n; d++)
    if (k[d] >= 0 && k[d] < lhs->rank) contracted *= (double)lhs->dims[k[d]];
  return 2 * (double)i->shape->elements * contracted;
}

/* Output elements times the kernel's elements for one output feature. */
static double conv_flops(const lw_inst *i) {
  const lw_attr *a = lw_inst_attr(i, LW_ATTR_DIM_LABELS);
  const lw_shape *k = lw_inst_operand(i, 1)->shape;
  double per = (double)k->elements;
  if (a && a->u.dim_labels->kernel_output_feature < k->rank) {
    int64_t out = k->dims[a->u.dim_labels->kernel_output_feature];
    if (out > 0) per /= (double)out;
  }
  return 2 * (double)i->shape->elements * per;
}

static double window_elements(const lw_inst *i) {
  const lw_window *w = lw_inst_window(i);
  double n = 1;
  for (int32_t d = 0; w && d < w->rank; d++) n *= (double)w->dims[d].size;
  return n;
}

static double result_elements(const lw_inst *i) {
  const lw_shape *s = i->shape;
  while (lw_shape_is_tuple(s) && s->n_elems > 0) s = s->elems[0];
  return lw_shape_is_array(s) ? (double)s->elements : 0;
}

double lw_cost_flops(const lw_inst *i) {
  switch ((int)i->opcode) {
    case LW_OP_DOT:
    case LW_OP_RAGGED_DOT:
    case LW_OP_SCALED_DOT:
      return dot_flops(i);
    case LW_OP_CONVOLUTION:
      return conv_flops(i);
    case LW_OP_REDUCE:
      return (double)lw_inst_operand(i, 0)->shape->elements;
    case LW_OP_REDUCE_WINDOW:
    case LW_OP_SELECT_AND_SCATTER:
      return result_elements(i) * window_elements(i);
    default:
      return lw_opcode_is_elementwise(i->opcode) ? result_elements(i) : 0;
  }
}

/* n log2 n comparisons, each about four simple ops in scalar code (16 lanes
 * lost). */
static double sort_ns(const lw_target *t, const lw_inst *i) {
  double n = lw_inst_operand(i, 0)->shape ? result_elements(i) : 0;
  return n * log2(n + 2) * 64 * t->v.simple_ns;
}

double lw_cost_compute_ns(const lw_target *t, const lw_inst *i) {
  switch ((int)i->opcode) {
    case LW_OP_DOT:
    case LW_OP_RAGGED_DOT:
    case LW_OP_SCALED_DOT:
    case LW_OP_CONVOLUTION:
      return lw_cost_flops(i) / t->v.fma_gflops * width_factor(i->shape->type);
    case LW_OP_REDUCE:
    case LW_OP_REDUCE_WINDOW:
    case LW_OP_SELECT_AND_SCATTER:
      return lw_cost_flops(i) * t->v.simple_ns *
             width_factor(lw_inst_operand(i, 0)->shape->type);
    case LW_OP_SORT:
    case LW_OP_TOPK:
      return sort_ns(t, i);
    case LW_OP_SCATTER:
      return (double)lw_shape_bytes(
                 lw_inst_operand(i, i->n_operands - 1)->shape) *
             t->v.gather_ns;
    default:
      return result_elements(i) * lw_cost_element_ns(t, i);
  }
}

/* The kernel runs on one core when that is quicker than waking the pool:
 *   one = launch + max(compute, memory * total rate / one core's rate)
 *   all = launch + fork_join + max(compute / cores, memory)
 * compute and memory overlap (out-of-order cores, prefetch), so the larger of
 * the two counts. One core's rate is taken at DRAM's ratio, the least. */
double lw_cost_kernel_ns(const lw_target *t, lw_cost c) {
  double ratio = t->v.dram_gbps_total / t->v.dram_gbps;
  double one = fmax(c.compute_ns, c.memory_ns * ratio);
  double all = t->v.fork_join_ns + fmax(c.compute_ns / t->v.cores, c.memory_ns);
  return t->v.launch_ns + fmin(one, all);
}
