/* What XLA:GPU does before its fusion pipeline, and Lawson does not. */
#ifndef LW_DRIVER_APPROXIMATE_H
#define LW_DRIVER_APPROXIMATE_H

#include "hlo/hlo.h"

/* Steps of XLA:GPU that could have touched this module (as it was read, before
 * any pass), in XLA's order: their static texts into names, their count. */
enum { LW_APPROXIMATE_MAX = 24 };
int32_t lw_approximate_steps(const lw_module *m,
                             const char *names[LW_APPROXIMATE_MAX]);
/* The same as HLO comment lines headed APPROXIMATE. */
void lw_approximate_print(lw_buf *b, const lw_module *m);

#endif
