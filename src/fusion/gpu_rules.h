/* XLA:GPU's structural rules for a fusion edge (jaxlib 0.10.2), in the order in
 * which it asks them, with its own words for each refusal. */
#ifndef LW_FUSION_GPU_RULES_H
#define LW_FUSION_GPU_RULES_H

#include "fusion/gates.h"
#include "target/gpu.h"

typedef struct {
  lw_reason reason; /* FUSIBLE: nothing stands in the way */
  const char *text; /* XLA's words; NULL when FUSIBLE */
} gpu_refusal;

/* Priority fusion's own list of ops it can put into kernels. */
bool gpu_is_fusible(const lw_inst *i);
/* A bitcast between types of one width: a change of index, no code. */
bool gpu_is_fusible_bitcast(const lw_inst *i);
/* What stands in the way of taking the producer into the consumer. */
gpu_refusal gpu_can_fuse(lw_gpu_model *m, const lw_inst *producer,
                         const lw_inst *consumer, lw_arena *a);
/* Scatters: which producers one may take. */
gpu_refusal gpu_scatter_takes(const lw_inst *producer, const lw_inst *consumer);
/* A constant of one element goes into every reader that can hold it. */
bool gpu_takes_constant(const lw_inst *constant, const lw_inst *user);
lw_fusion_kind gpu_kind_of(lw_gpu_emitter e);

#endif
