/* The statistics of timings: paired log ratios, an interval, a verdict.
 *
 * Two programs a and b are timed in processes of their own, side by side. A
 * block (a b b a, or its mirror) gives one log ratio, log(b/a); some blocks
 * come from one pair of processes. Ratios are of times: below 1, b is faster.
 * docs/measurement.md has the reasons and what simulation says about them.
 */
#ifndef LW_LAB_STATS_H
#define LW_LAB_STATS_H

#include "base/status.h"

/* ---- numbers ---- */
typedef struct {
  uint64_t state;
} lw_rng64; /* splitmix64: any seed will do */
uint64_t lw_rng64_next(lw_rng64 *r);
double lw_rng64_unit(lw_rng64 *r);              /* in (0, 1) */
int32_t lw_rng64_below(lw_rng64 *r, int32_t n); /* in [0, n) */
double lw_rng64_normal(lw_rng64 *r);            /* mean 0, sd 1 */
double lw_normal_cdf(double z);
double lw_normal_quantile(double p);                  /* p in (0, 1) */
double lw_student_quantile(double p, double freedom); /* freedom > 0 */
void lw_sort_doubles(double *x, int32_t n);
double lw_median_of(const double *x, int32_t n); /* n > 0; x stays as it is */

/* ---- paired log ratios ---- */
typedef struct {
  int32_t n;            /* processes (pairs of processes) */
  const int32_t *first; /* n + 1: the blocks of process i start at first[i] */
  const double *ratio;  /* log(b/a) of each block */
} lw_log_ratios;

typedef struct {
  double center, low, high; /* logs; low..high at level 1 - alpha */
  double alpha;
  double process_sd, block_sd; /* of processes' means; of blocks in one */
  int32_t processes, blocks;
} lw_estimate;

/* false: fewer than two processes, so no interval (center is set when there is
 * one). The same seed gives the same interval. */
bool lw_estimate_of(const lw_log_ratios *r, double alpha, uint64_t seed,
                    lw_estimate *out);

typedef enum {
  LW_FASTER, /* b is */
  LW_SLOWER,
  LW_SAME, /* the interval lies within +-margin */
  LW_UNDECIDED,
  LW_NO_COMPARISON /* one side only */
} lw_verdict;
const char *lw_verdict_name(lw_verdict v); /* "FASTER" */

/* margin is a ratio minus one: 0.03. */
lw_verdict lw_verdict_of(const lw_estimate *e, double margin);

/* How many processes would decide with a chance of 80 %, from this spread and
 * if the truth is where the estimate is; at least e->processes + 1. alpha: of
 * the interval that will decide. 0: no spread to tell from. */
int64_t lw_processes_needed(const lw_estimate *e, double margin, double alpha);

/* ---- one program alone ---- */
typedef struct {
  int32_t n;
  double min, median, max;
  double over_min, over_median; /* (max - min) over the one and the other */
  double log_sd;                /* 0 when n < 2 */
  double first_off; /* the first against the median of the rest, minus one */
  double trend;     /* rank correlation of time and position, -1..1 */
  double trend_p;   /* how often a random order has one at least as strong */
  /* The least difference (a ratio minus one) that n such runs a side would
   * find in 80 % of experiments at 5 %; 0 when n < 2. */
  double resolves;
} lw_spread;
void lw_spread_of(const double *x, int32_t n, lw_spread *out);

#endif
