/* What a module's kernels are and what they leave in memory: the measure of a
 * fusion strategy, on Lawson's modules and on XLA's alike. */
#ifndef LW_FUSION_REPORT_H
#define LW_FUSION_REPORT_H

#include "hlo/hlo.h"

typedef struct {
  int64_t instructions; /* all, bodies of fusions too */
  int64_t kernels;      /* instructions that run something: fusions, single ops,
                           library calls; not parameters, constants, tuples,
                           tuple elements, bitcasts, control flow */
  int64_t fusions;      /* of them: fusions of two or more operations */
  int64_t library;      /* of them: fft, custom calls, LAPACK */
  int64_t fused_ops;    /* instructions inside fusions */
  /* Values that one kernel writes and another reads, each counted once a static
   * instruction (a loop's body once). */
  int64_t intermediate_bytes;
  /* Values computed and read inside fusions that never are in memory. */
  int64_t kept_bytes;
} lw_fusion_report;

/* Only names memory, or says what runs when: no kernel of its own. */
bool lw_runs_nothing(const lw_inst *i);
lw_fusion_report lw_fusion_report_of(const lw_module *m);
/* One line, "kernels=.. fusions=.. ..". */
void lw_fusion_report_print(lw_buf *b, const lw_fusion_report *r);

#endif
