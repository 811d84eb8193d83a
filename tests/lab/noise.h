/* Simulated machines: what timings look like on a shared box. A sample's time
 * is the program's, times what the process was dealt at its start, times drift
 * that wanders over the run, times noise of its own, and now and then a burst
 * of somebody else's load. */
#ifndef LW_TESTS_LAB_NOISE_H
#define LW_TESTS_LAB_NOISE_H

#include "lab/stats.h"
#include "lab/stop_rule.h"

typedef struct {
  double process_sd, sample_sd, drift_sd; /* of logs; drift a sample */
  double slow_start;        /* share of processes dealt a bad hand */
  double burst, burst_size; /* share of samples hit; mean of the log */
} noise_machine;

extern const noise_machine noise_quiet, noise_shared, noise_rough;

typedef struct {
  double drift;
  lw_rng64 rng;
} noise_state;

typedef struct {
  lw_verdict verdict;
  int32_t pairs;
  lw_estimate estimate;
} noise_outcome;

/* One whole comparison under the rule; b is slower by effect (0.03). */
noise_outcome noise_compare(const noise_machine *m, const lw_stop_rule *rule,
                            double effect, uint64_t seed);
/* Log ratios of n processes of `blocks` blocks each; ratio holds n * blocks. */
void noise_blocks(const noise_machine *m, noise_state *s, int32_t n,
                  int32_t blocks, double effect, double *ratio);

#endif
