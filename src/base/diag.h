/* Diagnostics: all problems of an input, each with file, line, column, and a
 * caret under the place. */
#ifndef LW_BASE_DIAG_H
#define LW_BASE_DIAG_H

#include "base/buf.h"
#include "base/vec.h"

typedef struct {
  int32_t line, column; /* 1-based; 0: no place */
  char *message;
} lw_diag;

typedef struct {
  const char *file; /* for printing; "<stdin>" and the like are fine */
  const char *text; /* the source, NULL for binary inputs */
  size_t text_len;
  LW_VEC(lw_diag) list;
  size_t max; /* stop recording past this many (0: 100); the count goes on */
  size_t count;
} lw_diags;

void lw_diag_add(lw_diags *d, int32_t line, int32_t column, const char *fmt,
                 ...) LW_PRINTF(4, 5);
/* "file:line:col: error: message", the line and a caret, each. */
void lw_diags_render(const lw_diags *d, lw_buf *out);
/* NULL when empty, else one INVALID_ARGUMENT status with everything rendered.
 */
lw_status lw_diags_status(const lw_diags *d);
void lw_diags_free(lw_diags *d);

/* The nearest of n names to s by edit distance (at most 3), for suggestions;
 * NULL when none is near. */
const char *lw_nearest_name(const char *s, const char *const *names, size_t n);

#endif
