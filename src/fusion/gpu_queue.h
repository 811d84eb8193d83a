/* The queue of XLA:GPU's priority fusion (2026-06): producers by what fusing
 * them into all their readers saves. */
#ifndef LW_FUSION_GPU_QUEUE_H
#define LW_FUSION_GPU_QUEUE_H

#include "fusion/gpu_fuse.h"
#include "fusion/gpu_rules.h"
#include "fusion/xla_rules.h"

typedef struct gpu_queue gpu_queue;

/* Who says what an edge costs and whether it may be fused. */
typedef struct {
  void *state;
  gpu_refusal (*can_fuse)(void *state, const lw_inst *producer,
                          const lw_inst *consumer);
  lw_ticks (*exec)(void *state, const lw_inst *i);
  lw_ticks (*exec_fused)(void *state, const lw_inst *producer,
                         const lw_inst *consumer);
  lw_fusion_kind (*kind)(void *state, const lw_inst *producer,
                         const lw_inst *consumer);
  /* The fusion, which the consumer was or became, holds the producer now. */
  void (*took)(void *state, const lw_inst *fusion, const lw_inst *producer,
               const lw_inst *consumer);
  void (*removed)(void *state, const lw_inst *i);
} gpu_oracle;

/* Fuses one computation; records go to env's trace. True when it changed. */
bool gpu_queue_run(lw_comp *c, lw_pass_env *env, const gpu_oracle *oracle);

#endif
