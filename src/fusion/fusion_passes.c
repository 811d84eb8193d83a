/* The fusion passes and the strategies made of them. */
#include <string.h>

#include "fusion/fusion.h"

static const lw_pass *const passes[] = {
    &lw_pass_fusion,
    &lw_pass_priority_fusion,
    &lw_pass_instruction_fusion,
    &lw_pass_multi_output_fusion,
    &lw_pass_fusion_wrapper,
    &lw_pass_variadic_op_splitter,
    &lw_pass_sort_iota_fusion,
    &lw_pass_gpu_priority_fusion,
    &lw_pass_fusion_cse,
    &lw_pass_gpu_multi_output_fusion,
};

const lw_pass *const *lw_fusion_passes(int *n) {
  *n = (int)(sizeof passes / sizeof *passes);
  return passes;
}

const char *const *lw_fusion_pipeline(const char *strategy) {
  static const char *const none[] = {"fusion-wrapper", NULL};
  static const char *const xla[] = {"fusion", "fusion-wrapper", NULL};
  static const char *const priority[] = {
      "priority-fusion", "instruction-fusion", "multi-output-fusion",
      "fusion-wrapper", NULL};
  if (!strcmp(strategy, "none")) return none;
  if (!strcmp(strategy, "xla")) return xla;
  if (!strcmp(strategy, "priority")) return priority;
  return NULL;
}

const char *const *lw_fusion_only(bool gpu) {
  static const char *const cpu[] = {"fusion", NULL};
  static const char *const xla_gpu[] = {"variadic-op-splitter",
                                        "sort-iota-fusion",
                                        "gpu-priority-fusion",
                                        "fusion-cse",
                                        "dce",
                                        "gpu-multi-output-fusion",
                                        "fusion-cse",
                                        "dce",
                                        NULL};
  return gpu ? xla_gpu : cpu;
}

const char *const *lw_fusion_own_gpu(void) {
  static const char *const steps[] = {"variadic-op-splitter",
                                      "sort-iota-fusion",
                                      "gpu-priority-fusion",
                                      "fusion-cse",
                                      "dce",
                                      "gpu-multi-output-fusion",
                                      "fusion-cse",
                                      "dce",
                                      "gpu-priority-fusion",
                                      "fusion-cse",
                                      "dce",
                                      NULL};
  return steps;
}

const char *const *lw_fusion_lean(bool gpu) {
  static const char *const cpu[] = {"priority-fusion", "instruction-fusion",
                                    "fusion-wrapper", NULL};
  static const char *const lean_gpu[] = {"variadic-op-splitter",
                                         "sort-iota-fusion",
                                         "gpu-priority-fusion",
                                         "fusion-cse",
                                         "dce",
                                         NULL};
  return gpu ? lean_gpu : cpu;
}
