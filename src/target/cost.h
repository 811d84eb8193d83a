/* The cost model: what a kernel takes on a target, in ns. Formulas are in
 * cost.c, one comment each. */
#ifndef LW_TARGET_COST_H
#define LW_TARGET_COST_H

#include "target/target.h"

typedef enum { LW_LEVEL_L1, LW_LEVEL_L2, LW_LEVEL_L3, LW_LEVEL_DRAM } lw_level;

const char *lw_level_name(lw_level level);
/* Where a value of that size is found by the kernel after the one that wrote
 * it: the smallest level that holds it twice (it shares the level with what the
 * kernel reads or writes beside it). */
lw_level lw_cost_level(const lw_target *t, double bytes);
/* ns one core, or all of them, needs to move bytes at a level. */
double lw_cost_move_ns(const lw_target *t, lw_level level, double bytes,
                       bool all_cores);
/* ns to read, or to write, bytes of a value of value_bytes; all cores. */
double lw_cost_value_ns(const lw_target *t, double bytes, double value_bytes);
/* ns of one core for one element of an instruction's own arithmetic, operands
 * in registers: the op class's cost, scaled by the element's width. 0 for
 * parameters, constants and what only renames. */
double lw_cost_element_ns(const lw_target *t, const lw_inst *i);
/* ns of one core for everything an instruction computes: elements times their
 * cost, folds, dot and convolution flops, sort steps. */
double lw_cost_compute_ns(const lw_target *t, const lw_inst *i);
/* flops by XLA's convention (a multiply-add is two, a function is one). */
double lw_cost_flops(const lw_inst *i);

/* A kernel: compute of one core, ns of memory at all cores' rate. */
typedef struct {
  double compute_ns; /* sum over instructions, one core */
  double memory_ns;  /* sum over operands and results, all cores */
} lw_cost;
double lw_cost_kernel_ns(const lw_target *t, lw_cost c);

#endif
