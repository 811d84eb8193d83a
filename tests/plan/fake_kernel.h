/* Kernels without a code generator: a fusion is one phase of one tile whose
 * code is the reference evaluator. Any output may be in the buffer of an
 * operand of its size (results are computed apart and copied last), and a
 * dynamic-update-slice or scatter root must update its first operand. */
#ifndef LW_TESTS_PLAN_FAKE_KERNEL_H
#define LW_TESTS_PLAN_FAKE_KERNEL_H

#include "lawson/kernel_abi.h"
#include "plan/plan.h"

lw_status fake_kernel_build(lw_arena *a, const lw_inst *fusion,
                            const lw_kernel_options *options, lw_kernel **out);

#endif
