/* The guard of --fusion=priority: its result is kept only where it is worse
 * than XLA's neither in modelled time nor in planned peak. */
#ifndef LW_DRIVER_CHOOSE_H
#define LW_DRIVER_CHOOSE_H

#include "passes/manager.h"
#include "plan/plan.h"
#include "target/target.h"
#include "trace/trace.h"

/* What a strategy's result is worth, by the target's own model. */
typedef struct {
  double time_ns;     /* of one run: known trip counts multiply, a loop of an
                         unknown number of rounds counts once, a conditional its
                         dearest branch */
  int64_t peak_bytes; /* of values between kernels: CPU: the plan's arena; GPU:
                         live values in post order, callees' included */
} lw_worth;

/* A module after its fusion passes. */
LW_MUST_USE lw_status lw_worth_of(const lw_module *m, const lw_target *t,
                                  const lw_plan_options *plan, lw_worth *out);

typedef struct {
  lw_module *module;
  lw_trace *trace;
  lw_pipeline_report report;
  lw_worth worth;
} lw_candidate;

/* before: as it stands right before the fusion steps; first: what
 * --fusion=priority made of it with the options p. first is replaced (and
 * freed) by another strategy's result where that is called for, and stays where
 * one of them cannot be planned; the reports live in arena a. */
void lw_choose_fusion(const lw_module *before, const lw_pipeline_options *p,
                      const lw_plan_options *plan, lw_arena *a,
                      lw_candidate *first);

#endif
