/* When a comparison stops: fixed before the first sample, kept with the run.
 *
 * Looks are taken at set numbers of processes; each has its own alpha, so that
 * the chance of any false call over all looks, those of later resumes
 * included, is at most the rule's alpha. Stage 0 ends at max_processes; each
 * resume of an undecided run doubles that.
 */
#ifndef LW_LAB_STOP_RULE_H
#define LW_LAB_STOP_RULE_H

#include "base/status.h"

typedef struct {
  double alpha;             /* of the whole run: 0.05 */
  double margin;            /* SAME within: 0.03 */
  int32_t max_processes;    /* a side, of stage 0; at least 2 */
  int32_t blocks_a_process; /* two pairs each */
} lw_stop_rule;

typedef struct {
  int32_t processes; /* when it is taken */
  int32_t stage;
  double alpha; /* of the interval at this look */
} lw_look;

enum { LW_MAX_LOOKS = 64 };

/* The looks of stages 0 to last_stage in order; out holds LW_MAX_LOOKS. */
int32_t lw_stop_looks(const lw_stop_rule *r, int32_t last_stage, lw_look *out);

#endif
