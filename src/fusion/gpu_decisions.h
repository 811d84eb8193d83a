/* decisions.tsv: XLA:GPU's record of a priority fusion, line by line.
 *   priority  producer  consumers,...  us_fused  us_unfused
 *   fusion    producer  consumer  name-of-the-fusion
 *   refused   producer  reason
 * Times are of the difference where only some consumers changed. */
#ifndef LW_FUSION_GPU_DECISIONS_H
#define LW_FUSION_GPU_DECISIONS_H

#include "base/buf.h"
#include "trace/trace.h"

void lw_gpu_decisions_print(lw_buf *b, const lw_trace *t);

#endif
