/* XLA:GPU's fusibility. */
#include "fusion/gpu_rules.h"

#include "fusion/gpu_fuse.h"

static gpu_refusal no(lw_reason r, const char *text) {
  return (gpu_refusal){r, text};
}
static const gpu_refusal yes = {LW_REASON_FUSIBLE, NULL};

bool gpu_is_fusible_bitcast(const lw_inst *i) {
  return lw_gpu_is_fusible_bitcast(i);
}

/* Triton's fusions are taken by another road in XLA. */
bool gpu_is_fusible(const lw_inst *i) {
  return lw_gpu_priority_fusible(i) && !lw_gpu_is_triton(i);
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

/* The instructions of one, or of its body, that pass the test; the last. */
static int32_t count_inside(const lw_inst *i, bool (*test)(const lw_inst *),
                            const lw_inst **last) {
  int32_t n = 0;
  const lw_inst *j = i->opcode == LW_OP_FUSION ? lw_fusion_body(i)->first : i;
  for (; j; j = i->opcode == LW_OP_FUSION ? j->next : NULL)
    if (test(j)) {
      *last = j;
      n++;
    }
  return n;
}

static bool moves(const lw_inst *i) {
  return i->opcode != LW_OP_FUSION && i->opcode != LW_OP_BITCAST &&
         i->opcode != LW_OP_PARAMETER && !lw_inst_is_elementwise(i);
}

static bool updates(const lw_inst *i) {
  return i->opcode == LW_OP_DYNAMIC_UPDATE_SLICE;
}

static const char *window_text(const lw_inst *op, const lw_inst *consumer,
                               const lw_inst *update) {
  bool slice = op->opcode == LW_OP_SLICE;
  if (!slice && op->opcode != LW_OP_DYNAMIC_SLICE)
    return "unrecognized inplace update non-elementwise output pair";
  if (op->shape != lw_inst_operand(update, 1)->shape)
    return slice ? "Slice op has a different shape than the update shape of "
                   "the dus op, bailing."
                 : "Dynamic slice op has a different shape than the update "
                   "shape of the dus op, bailing.";
  if (!lw_reads_the_window(op, consumer, update))
    return slice ? "DUS and slice index mismatch" : "DUS and DS index mismatch";
  return slice ? "Fusing slice into DUS will also fuse another non-elementwise "
                 "op with shared operand as DUS."
               : "Fusing DS into DUS will also fuse another non-elementwise op "
                 "with shared operand as DUS.";
}

/* XLA's words for what lw_gate_in_place refused. */
static const char *in_place_text(const lw_inst *producer,
                                 const lw_inst *consumer) {
  const lw_inst *op = NULL, *update = NULL;
  for (int32_t k = 1; k < consumer->n_operands; k++)
    if (lw_inst_operand(consumer, k) == lw_inst_operand(consumer, 0) &&
        consumer->opcode != LW_OP_FUSION)
      return "The consumer is an in-place operation that has an additional "
             "operand that has the same value as the in-place buffer";
  int32_t n = count_inside(producer, moves, &op);
  if (n > 1)
    return "Producer fusion has multiple non-elementwise ops, bailing.";
  if (n == 0)
    return "Non-elementwise ops in consumer lead to inplace conflict after "
           "fusion.";
  n = count_inside(consumer, updates, &update);
  if (n != 1) return "multiple dus ops, bailing.";
  return window_text(op, consumer, update);
}

static gpu_refusal in_place(const lw_inst *producer, const lw_inst *consumer) {
  if (lw_gate_in_place(producer, consumer).yes) return yes;
  return no(LW_REASON_IN_PLACE_CONFLICT, in_place_text(producer, consumer));
}

/* ---- budgets ---- */

static gpu_refusal budget(lw_gpu_model *m, const lw_inst *producer,
                          const lw_inst *consumer) {
  switch (lw_gpu_budget_of(m, consumer, producer, true)) {
    case LW_GPU_FITS:
      return yes;
    case LW_GPU_OVER_SHARED_MEMORY:
      return no(LW_REASON_KERNEL_TOO_LARGE, lw_gpu_shared_memory_text(m));
    case LW_GPU_OVER_REDUCTIONS:
      return no(LW_REASON_KERNEL_TOO_LARGE,
                "over 8 unnested reductions in fusion");
    case LW_GPU_OVER_PARAMETERS:
      break;
  }
  return no(LW_REASON_KERNEL_TOO_LARGE,
            "Number of operands and output buffers is larger than allowed "
            "budget per fusion");
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
  if (lw_gpu_holds_significant_reduce(m, producer) &&
      lw_gpu_holds_significant_reduce(m, consumer))
    return no(LW_REASON_REDUCE_COUNT,
              "both the producer and the consumer contain a reduce");
  if (makes_a_loop(m, producer, consumer, a))
    return no(
        LW_REASON_KERNEL_PHASES,
        "fusion into output of a reduce fusion would create a loop fusion");
  r = budget(m, producer, consumer);
  if (r.text) return r;
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
