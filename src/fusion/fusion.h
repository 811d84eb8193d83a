/* The fusion passes. */
#ifndef LW_FUSION_FUSION_H
#define LW_FUSION_FUSION_H

#include "passes/pass.h"

extern const lw_pass lw_pass_fusion;              /* --fusion=xla */
extern const lw_pass lw_pass_priority_fusion;     /* --fusion=priority: first */
extern const lw_pass lw_pass_instruction_fusion;  /* second */
extern const lw_pass lw_pass_multi_output_fusion; /* third */
extern const lw_pass lw_pass_fusion_wrapper;      /* last, always */

/* XLA:GPU's (--fusion=xla on a GPU target), in its order. */
extern const lw_pass lw_pass_variadic_op_splitter;
extern const lw_pass lw_pass_sort_iota_fusion;
extern const lw_pass lw_pass_gpu_priority_fusion;
extern const lw_pass lw_pass_fusion_cse;
extern const lw_pass lw_pass_gpu_multi_output_fusion;

/* All of them, in the order above. */
const lw_pass *const *lw_fusion_passes(int *n);
/* The pass names of a strategy ("none", "xla", "priority"), ending with NULL;
 * NULL for an unknown one. */
const char *const *lw_fusion_pipeline(const char *strategy);
/* XLA's own fusion pipeline and nothing else, for a module as it stands right
 * before it: "fusion" for a CPU, the list above with its dce for a GPU. */
const char *const *lw_fusion_only(bool gpu);
/* --fusion=priority on a GPU: XLA's pipeline, then a second round of priority
 * fusion over what multi-output fusion left. */
const char *const *lw_fusion_own_gpu(void);
/* --fusion=priority without multi-output fusion: less is alive at once. */
const char *const *lw_fusion_lean(bool gpu);

#endif
