/* Pipelines, as tables of contents. manager.h says what the signs mean. */
#include <string.h>

#include "passes/manager.h"
#include "passes/passes.h"

const lw_pass *const lw_clean_up_passes[] = {
#define P(name, record) &lw_pass_##record,
#include "passes/passes.def"
#undef P
};
const int lw_clean_up_pass_count =
    (int)(sizeof lw_clean_up_passes / sizeof *lw_clean_up_passes);

/* One flat graph of plain HLO. */
#define OPEN_UP                                                            \
  "fusion-inliner", "call-inliner", "async-to-sync", "flatten-call-graph", \
      "dce", "single-device", "domain-remover", "layout-normalization"

/* Operations that are defined by others. */
#define EXPAND                                                            \
  "dynamic-padder", "map-inliner", "scan-expander", "batchnorm-expander", \
      "scaled-dot-expander", "ragged-dot-expander",                       \
      "rng-bit-generator-expander"

/* Until nothing moves. */
#define SIMPLIFY                                                               \
  "{", "zero-sized-elimination", "tuple-simplifier", "while-simplifier",       \
      "conditional-simplifier", "algebraic-simplifier", "movement-simplifier", \
      "slice-simplifier", "gather-simplifier", "reduce-simplifier",            \
      "dot-simplifier", "sort-simplifier", "constant-folding", "cse", "dce",   \
      "}*"

/* Barriers have done their work once nothing merges any more. */
#define FINISH "optimization-barrier-expander", "tuple-simplifier", "dce"

static const char *const cpu[] = {OPEN_UP, EXPAND,    SIMPLIFY,
                                  FINISH,  "@fusion", NULL};
const lw_pipeline lw_pipeline_cpu = {"cpu", cpu};

static const char *const fusion[] = {"@fusion", NULL};
const lw_pipeline lw_pipeline_fusion = {"fusion", fusion};

static const char *const clean_up[] = {OPEN_UP, EXPAND, SIMPLIFY, FINISH, NULL};
static const lw_pipeline clean_up_pipeline = {"clean-up", clean_up};

const lw_pipeline *lw_pipeline_find(const char *name) {
  if (!strcmp(name, lw_pipeline_cpu.name)) return &lw_pipeline_cpu;
  if (!strcmp(name, clean_up_pipeline.name)) return &clean_up_pipeline;
  return NULL;
}
