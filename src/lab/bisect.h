/* From "this pass changes the output" to the rewrite that does it and the
 * smallest program that still shows it. */
#ifndef LW_LAB_BISECT_H
#define LW_LAB_BISECT_H

#include "hlo/hlo.h"
#include "lab/ablate.h"

typedef struct {
  /* The first rewrite of the pass that changes the output, by fuel; 0: the
   * pass takes no fuel (or the row is an edge), and why. */
  int64_t rewrite;
  const char *no_fuel;
  const char *text;         /* the minimal module */
  int64_t instructions_was; /* of the entry, parameters not counted */
  int64_t instructions;
  int32_t compiles; /* that it took */
} lw_bisection;

/* row: one of MOVED whose bits differ; m: the program. Inputs are random, of
 * this seed. Everything in the arena. Errors as in subject.h, and NOT_FOUND
 * when the output does not differ on these inputs. */
LW_MUST_USE lw_status lw_bisect(const lw_ablate_options *o,
                                const lw_ablate_row *row, const lw_module *m,
                                uint64_t seed, lw_arena *a, lw_bisection *out);

#endif
