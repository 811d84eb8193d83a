/* Shared by the files of src/runtime only. */
#ifndef LW_RUNTIME_RUNTIME_IMPL_H
#define LW_RUNTIME_RUNTIME_IMPL_H

#include "runtime/runtime.h"

/* The CPU's floating-point mode while generated code runs (numerics.md 2);
 * enter returns what to give leave. Nothing to do where there is no MXCSR. */
unsigned lw_fp_enter(bool flush_denormals);
void lw_fp_leave(unsigned saved);

#endif
