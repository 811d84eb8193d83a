/* The clean-up passes, by record. */
#ifndef LW_PASSES_PASSES_H
#define LW_PASSES_PASSES_H

#include "passes/pass.h"

#define P(name, record) extern const lw_pass lw_pass_##record;
#include "passes/passes.def"
#undef P

extern const lw_pass *const lw_clean_up_passes[];
extern const int lw_clean_up_pass_count;

#endif
