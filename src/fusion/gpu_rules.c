/* XLA:GPU's fusibility. */
#include "fusion/gpu_rules.h"

#include "fusion/gpu_fuse.h"
#include "fusion/xla_rules.h"

static gpu_refusal no(lw_reason r, const char *text) {
  return (gpu_refusal){r, text};
}
static const gpu_refusal yes = {LW_REASON_FUSIBLE, NULL};

bool gpu_is_fusible_bitcast(const lw_inst *i) {
  return i->opcode == LW_OP_BITCAST &&
         lw_prim_table[i->shape->type].bits ==
             lw_prim_table[lw_inst_operand(i, 0)->shape->type].bits;
}

bool gpu_is_fusible(const lw_inst *i) {
  if (!xla_is_fusible(i)) return false;
  if (lw_inst_is_elementwise(i) || gpu_is_fusible_bitcast(i)) return true;
  switch ((int)i->opcode) {
    case LW_OP_FUSION:
      return !gpu_is_custom_fusion(i);
    case LW_OP_COPY:
    case LW_OP_IOTA:
    case LW_OP_CONSTANT:
    case LW_OP_REDUCE:
    case LW_OP_BROADCAST:
    case LW_OP_CONCATENATE:
    case LW_OP_DYNAMIC_SLICE:
    case LW_OP_DYNAMIC_UPDATE_SLICE:
    case LW_OP_GATHER:
    case LW_OP_PAD:
    case LW_OP_REDUCE_WINDOW:
    case LW_OP_RESHAPE:
    case LW_OP_REVERSE:
    case LW_OP_SCATTER:
    case LW_OP_SLICE:
    case LW_OP_TRANSPOSE:
      return true;
    default:
      return false;
  }
}

/* ---- scatter ---- */

gpu_refusal gpu_scatter_takes(const lw_inst *producer,
                              const lw_inst *consumer) {
  if (lw_gpu_input_fusible_scatter(producer))
    return no(LW_REASON_PRODUCER_KIND,
              "do not fuse into the output of scatter");
  if (!lw_gpu_input_fusible_scatter(consumer)) return yes;
  const lw_inst *buffer = NULL;
  if (consumer->opcode == LW_OP_FUSION) {
    const lw_inst *root = lw_fusion_body(consumer)->root;
    const lw_inst *in = lw_inst_operand(root, 0);
    if (in->opcode == LW_OP_PARAMETER)
      buffer = lw_inst_operand(consumer, (int32_t)lw_inst_param_number(in));
  } else {
    buffer = lw_inst_operand(consumer, 0);
  }
  if (!buffer) return yes;
  if (buffer == producer)
    return no(LW_REASON_IN_PLACE_CONFLICT,
              "do not fuse into the in-place operand of scatter");
  for (int32_t k = 0; k < producer->n_operands; k++)
    if (lw_inst_operand(producer, k) == buffer)
      return no(LW_REASON_IN_PLACE_CONFLICT,
                "Producer uses the in-place operand of a scatter");
  return yes;
}

/* ---- in place ---- */

static int32_t moving_ops(const lw_inst *i) {
  if (i->opcode != LW_OP_FUSION) return 1;
  int32_t n = 0;
  for (const lw_inst *j = lw_fusion_body(i)->first; j; j = j->next)
    n += j->opcode != LW_OP_FUSION && j->opcode != LW_OP_BITCAST &&
         j->opcode != LW_OP_PARAMETER && !lw_inst_is_elementwise(j);
  return n;
}

static gpu_refusal in_place(const lw_inst *producer, const lw_inst *consumer) {
  if (lw_gate_in_place(producer, consumer).yes) return yes;
  if (moving_ops(producer) > 1)
    return no(LW_REASON_IN_PLACE_CONFLICT,
              "Producer fusion has multiple non-elementwise ops, bailing.");
  return no(LW_REASON_IN_PLACE_CONFLICT,
            "unrecognized inplace update non-elementwise output pair");
}

/* ---- the edge ---- */

/* A fusion out of a reduction that no reduction emitter could write. */
static bool makes_a_loop(lw_gpu_model *m, const lw_inst *producer,
                         const lw_inst *consumer, lw_arena *a) {
  if (lw_gpu_kernel_of(m, NULL, producer, a).emitter != LW_GPU_REDUCTION)
    return false;
  return lw_gpu_kernel_of(m, producer, consumer, a).emitter == LW_GPU_LOOP;
}

gpu_refusal gpu_can_fuse(lw_gpu_model *m, const lw_inst *producer,
                         const lw_inst *consumer, lw_arena *a) {
  if (lw_inst_is_root(producer))
    return no(LW_REASON_PRODUCER_IS_ROOT,
              "not fusing into the output of the root instruction");
  if (!gpu_is_fusible(producer))
    return no(LW_REASON_PRODUCER_KIND, "the producer is not fusible");
  if (!gpu_is_fusible(consumer))
    return no(LW_REASON_CONSUMER_KIND, "the consumer is not fusible");
  if (gpu_is_fusible_bitcast(consumer))
    return no(LW_REASON_CONSUMER_KIND,
              "not fusing into a single bitcast as consumer");
  gpu_refusal r = gpu_scatter_takes(producer, consumer);
  if (r.text) return r;
  if (lw_gpu_is_significant_reduce(producer) &&
      lw_gpu_is_significant_reduce(consumer))
    return no(LW_REASON_REDUCE_COUNT,
              "both the producer and the consumer contain a reduce");
  if (makes_a_loop(m, producer, consumer, a))
    return no(
        LW_REASON_KERNEL_PHASES,
        "fusion into output of a reduce fusion would create a loop fusion");
  if (!lw_gpu_fits_budget(m, consumer, producer, true))
    return no(LW_REASON_KERNEL_TOO_LARGE,
              "the fusion would not fit the device's budget");
  if (lw_gpu_merged_too_large(m, producer, consumer))
    return no(LW_REASON_CODE_DUPLICATION,
              "the fusion would result in an overly large code duplication");
  return in_place(producer, consumer);
}

bool gpu_takes_constant(const lw_inst *constant, const lw_inst *user) {
  return !gpu_scatter_takes(constant, user).text && gpu_is_fusible(user);
}

lw_fusion_kind gpu_kind_of(lw_gpu_emitter e) {
  switch (e) {
    case LW_GPU_LOOP:
      return LW_FUSION_LOOP;
    case LW_GPU_REDUCTION:
    case LW_GPU_TRANSPOSE:
    case LW_GPU_CONCATENATE:
    case LW_GPU_SCATTER:
      return LW_FUSION_INPUT;
    case LW_GPU_TRITON:
    case LW_GPU_CUSTOM:
    case LW_GPU_SORT:
      return LW_FUSION_CUSTOM;
  }
  return LW_FUSION_LOOP;
}
