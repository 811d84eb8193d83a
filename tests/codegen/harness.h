/* Native code against the interpreter: a module's entry computation becomes one
 * fusion, its kernel runs in pieces with odd boundaries, and every output must
 * have the interpreter's bits (NaN equals NaN). */
#ifndef LW_TESTS_CODEGEN_HARNESS_H
#define LW_TESTS_CODEGEN_HARNESS_H

#include "codegen/codegen.h"

/* NULL when all ISAs agree with the interpreter; else what differs. */
lw_status lw_check_text(const char *text, uint64_t seed);
lw_status lw_check_text_isa(const char *text, uint64_t seed, const char *isa);
/* lw_kernel_print of the entry as one fusion. */
lw_status lw_kernel_text(const char *text, lw_buf *out);
/* Prints timings when not 0. */
extern int lw_harness_verbose;

#endif
