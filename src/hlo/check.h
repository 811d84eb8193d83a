/* The checker: every rule a module must keep, all violations at once.
 *
 * Rules: structure (names, parents, parameters, roots, cycles), attributes,
 * shapes (re-inferred by infer.h and compared), fusions, calls, shardings,
 * aliasing, entry layout, schedule. Never crashes on a module a reader made,
 * however wrong, nor on a pass's wrong rewrite; near-linear time. Each message
 * is placed at its instruction (line and column of the text it came from) and
 * says what to do where that is known. */
#ifndef LW_HLO_CHECK_H
#define LW_HLO_CHECK_H

#include "base/diag.h"
#include "hlo/hlo.h"

typedef struct {
  bool layout_sensitive;      /* elementwise operations keep layouts */
  bool allow_mixed_precision; /* f32 + bf16 */
} lw_check_options;

/* Adds to d. d->count unchanged: the module is clean. */
void lw_check_module(const lw_module *m, lw_check_options o, lw_diags *d);
/* As one status (without a source text to show). what names the moment:
 * "after pass algebraic-simplifier"; NULL: nothing. */
LW_MUST_USE lw_status lw_check_status(const lw_module *m, lw_check_options o,
                                      const char *what);

#endif
