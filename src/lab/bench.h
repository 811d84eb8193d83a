/* A comparison, or one program's spread, measured: rounds of fresh processes,
 * blocks inside a round, every finished block kept in the store. */
#ifndef LW_LAB_BENCH_H
#define LW_LAB_BENCH_H

#include "lab/judge.h"
#include "lab/stop_rule.h"
#include "lab/store.h"

typedef struct {
  const char *const *argv; /* of its worker (worker.h) */
  int64_t runs;            /* timed calls in a sample */
} lw_bench_side;

typedef struct {
  int32_t rounds, of; /* done, and those of this stage */
  int64_t pairs;
  const lw_judgement *so_far; /* NULL: too early; at the next look's alpha */
} lw_bench_progress;

typedef struct {
  lw_store *store;
  lw_bench_side side[2]; /* a, b; of one program: a alone */
  bool control;          /* a's program once more, as a side of its own */
  lw_stop_rule rule;
  uint64_t seed;                                           /* of the orders */
  int64_t timeout_ms;                                      /* for one answer */
  void (*progress)(void *ctx, const lw_bench_progress *p); /* may be NULL */
  void *ctx;
} lw_bench;

/* Continues the run d (from the store, or new and empty, but for its row) until
 * a look decides or the stage in which it stands ends; a run that has ended a
 * stage undecided goes on to the next. d grows with what was measured. */
LW_MUST_USE lw_status lw_bench_compare(const lw_bench *b, lw_run_data *d,
                                       lw_arena *a);
/* One program in n processes, each giving one block of `samples`. */
LW_MUST_USE lw_status lw_bench_same(const lw_bench *b, int32_t n,
                                    int32_t samples, lw_run_data *d,
                                    lw_arena *a);

/* ---- what a run's samples say; the same on every machine ---- */
typedef struct {
  double alpha; /* of main and control: the last look's */
  double margin;
  int32_t rounds, max_rounds;  /* with blocks; of the stage */
  bool at_look;                /* main's verdict is one that the rule allows */
  lw_judgement main, control;  /* b against a, c against a */
  lw_judgement compile, first; /* once a process, at the rule's alpha */
  lw_spread lone;              /* "same": of processes' medians */
} lw_run_results;

LW_MUST_USE lw_status lw_run_results_of(const lw_run_data *d,
                                        lw_run_results *out);
/* The rule in a run's config. INVALID_ARGUMENT: none there. */
LW_MUST_USE lw_status lw_run_rule(const lw_run *r, lw_stop_rule *out);
/* Timings of this side against a, as judge takes them. */
void lw_run_timings(const lw_run_data *d, char side, lw_timings *out);
int32_t lw_run_rounds(const lw_run_data *d); /* that have blocks */

cJSON *lw_run_results_json(const lw_run_data *d, const lw_run_results *r);
void lw_run_results_print(lw_buf *b, const lw_run_data *d,
                          const lw_run_results *r);
/* The verdict in a word; "SPREAD" for one program. */
const char *lw_run_verdict(const lw_run_data *d, const lw_run_results *r);

#endif
