/* What a finished fusion costs on a CPU target, by the model that ranked it:
 * so that the results of two strategies can be compared. */
#ifndef LW_FUSION_OWN_COST_H
#define LW_FUSION_OWN_COST_H

#include "hlo/hlo.h"
#include "target/cost.h"

/* ns of one run of a fusion, or of any other instruction that computes. */
double lw_own_kernel_ns(const lw_target *t, const lw_inst *i);

#endif
