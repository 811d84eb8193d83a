/* Running folds over arrays (reduce.c), for reduce, windows and batch norm. */
#ifndef LW_INTERP_FOLD_RUN_H
#define LW_INTERP_FOLD_RUN_H

#include "hlo/fold.h"
#include "interp/eval.h"

enum { LW_FOLD_MAX_OPERANDS = 30 };

/* Folds xs[0, operands) over dims into outs (the kept dims, already made). */
LW_MUST_USE lw_status lw_fold_arrays(lw_eval *e, lw_prog *p, const lw_fold *f,
                                     int32_t operands, lw_val **xs,
                                     lw_val **inits, int32_t n_dims,
                                     const int64_t *dims, lw_val **outs);
/* ops = operands, then as many init values; their types are p's. */
LW_MUST_USE lw_status lw_check_reducer(const lw_inst *i, const lw_prog *p,
                                       lw_val **ops, int32_t operands);
/* Result values of these dims, one an operand; what was made before an error
 * stays in outs. */
LW_MUST_USE lw_status lw_new_results(lw_eval *e, const lw_inst *i, lw_val **ops,
                                     int32_t n, int32_t rank,
                                     const int64_t *dims, lw_val **outs);
/* outs[0], or the tuple of all when the instruction's shape is one. */
lw_val *lw_pack_results(const lw_inst *i, int32_t n, lw_val **outs);

#endif
