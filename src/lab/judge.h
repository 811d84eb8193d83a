/* Timings to verdict: what bench measured, or samples from anywhere. */
#ifndef LW_LAB_JUDGE_H
#define LW_LAB_JUDGE_H

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/vec.h"
#include "lab/stats.h"

/* One timing. side 0 is a, 1 is b; the order of a list is the order in which
 * they were taken. Values of one block and side are averaged (their logs);
 * blocks of one process share process. pair is the neighbours that position
 * is judged by. */
typedef struct {
  int64_t pair, block, process;
  int side;
  double value; /* > 0, any unit */
} lw_timing;

typedef LW_VEC(lw_timing) lw_timings;

typedef struct {
  lw_verdict verdict;
  lw_estimate estimate; /* of log(b/a); processes 0 without a comparison */
  lw_estimate position; /* of log(first/second) of a pair */
  bool has_position;    /* false: one side always went first, or no pairs */
  double margin;
  int64_t pairs;
  int64_t pairs_needed; /* UNDECIDED: in all; 0: cannot be told */
  lw_spread side[2];    /* n is 0 where there are none */
} lw_judgement;

/* pair,side,value[,process] a line; a first line of those words, blank lines
 * and lines from # are skipped. INVALID_ARGUMENT lists every bad line with
 * name and number. The caller frees out->data. */
LW_MUST_USE lw_status lw_timings_parse(const char *text, const char *name,
                                       lw_timings *out);

/* Judges with an interval at 1 - alpha. INVALID_ARGUMENT: a pair that lacks a
 * side (unless all lack the same one), or no timings. */
LW_MUST_USE lw_status lw_judge(const lw_timings *t, double alpha, double margin,
                               lw_judgement *out);

/* Both views of it. unit is put behind times ("us"), scale multiplies them. */
void lw_judgement_print(lw_buf *b, const lw_judgement *j, double scale,
                        const char *unit);
void lw_judgement_json(const lw_judgement *j, cJSON *into);
void lw_spread_print(lw_buf *b, const lw_spread *s, double scale,
                     const char *unit);
cJSON *lw_spread_json(const lw_spread *s);
cJSON *lw_estimate_json(const lw_estimate *e);

#endif
