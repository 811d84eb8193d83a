/* How often a while loop runs, when its text says so. */
#ifndef LW_HLO_TRIP_COUNT_H
#define LW_HLO_TRIP_COUNT_H

#include "hlo/hlo.h"

/* The counter of a loop: element `index` of its tuple starts at `start`, gets
 * `step` added each round, and the condition compares it with a constant. */
typedef struct {
  int32_t index;
  int64_t start, step;
  int64_t trips; /* rounds until the condition is false */
} lw_loop_count;

/* Fills *out when the loop counts: the condition's root compares the counter
 * with a constant (or with an element that the body hands through and that
 * starts as one), the body adds a constant, and nothing wraps on the way. */
bool lw_while_count(const lw_inst *loop, lw_loop_count *out);
/* Its trips, or -1 when unknown. */
int64_t lw_while_trip_count(const lw_inst *loop);

#endif
