/* Inputs and outputs of programs as .npz files: the leaves of the parameters
 * are p0, p1, ..., those of the result o0, o1, ..., in order. Tokens and opaque
 * leaves have no array. */
#ifndef LW_LAB_ARRAYS_H
#define LW_LAB_ARRAYS_H

#include "hlo/hlo.h"

/* One literal an entry parameter, all in the arena. Errors name the file. */
LW_MUST_USE lw_status lw_arrays_read(const char *path, const lw_module *m,
                                     lw_arena *a, lw_literal ***args,
                                     int32_t *n_args);
/* prefix: 'p' or 'o'; n values, whose leaves are counted through. */
LW_MUST_USE lw_status lw_arrays_write(const char *path, char prefix,
                                      const lw_literal *const *values,
                                      int32_t n);

#endif
