/* --force-edge and --forbid-edge: single decisions that the user takes.
 *
 * Only profitability can be overridden. Each entry remembers what became of
 * it, so that one that could do nothing is an error afterwards, with the reason
 * in its words. */
#ifndef LW_TRACE_OVERRIDE_H
#define LW_TRACE_OVERRIDE_H

#include "trace/trace.h"

typedef struct {
  const char *producer, *consumer;
  bool force;  /* else: forbid */
  bool asked;  /* by some gate */
  bool obeyed; /* the verdict was, or was made, what it wants */
  bool refused;
  lw_reason refusal; /* of the fusibility gate, when refused */
} lw_override;

typedef struct lw_overrides {
  lw_arena *arena;
  LW_VEC(lw_override) list;
} lw_overrides;

/* list: "P,C" or "P,C;P,C..."; NULL adds nothing. Names may carry a %. Errors:
 * INVALID_ARGUMENT with the option's name. The strings go into the arena. */
LW_MUST_USE lw_status lw_overrides_add(lw_overrides *o, const char *list,
                                       bool force);
/* The entry on an edge, or NULL; names are compared as they are. */
lw_override *lw_overrides_find(const lw_overrides *o, const char *producer,
                               const char *consumer);
/* What the entries were not able to do: NOT_FOUND for an edge that no gate was
 * asked about, PERMISSION_DENIED for one that legality refused. */
LW_MUST_USE lw_status lw_overrides_status(const lw_overrides *o,
                                          const lw_trace *t);
void lw_overrides_free(lw_overrides *o); /* the list; the arena is not its */

#endif
