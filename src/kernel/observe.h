/* Who sees a NaN's bits (docs/numerics.md 1): code leaves an arithmetic NaN's
 * sign and payload open where nobody can see them. */
#ifndef LW_KERNEL_OBSERVE_H
#define LW_KERNEL_OBSERVE_H

#include "hlo/hlo.h"

/* By instruction id, in the arena: the bits of this value's NaNs may reach a
 * bitcast-convert, a total order, or a program outside. Linear in the module's
 * size. */
bool *lw_nan_observed(const lw_module *m, lw_arena *a);
/* Some arithmetic in the fusion's body makes a value that is observed. */
bool lw_fusion_observes_nans(const lw_inst *fusion, const bool *observed);

#endif
