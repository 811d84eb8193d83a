/* Runs as JSON (lawson.results/1) and CSV: what export writes and import
 * reads. docs/results-schema.md has the fields. */
#ifndef LW_LAB_RESULTS_JSON_H
#define LW_LAB_RESULTS_JSON_H

#include "lab/bench.h"

/* What names a run: id, uid, kind, created, status, title. */
cJSON *lw_run_head_to_json(const lw_run *r);
/* All of a run; its result too, which import does not read. */
cJSON *lw_run_to_json(const lw_run_data *d);
/* Texts in the arena. INVALID_ARGUMENT names what is wrong. The caller frees
 * out with lw_run_data_free, also after an error. */
LW_MUST_USE lw_status lw_run_from_json(const cJSON *j, lw_arena *a,
                                       lw_run_data *out);
/* One row a sample; the header line too when asked. */
void lw_run_to_csv(const lw_run_data *d, bool header, lw_buf *out);
/* pair,side,value,process: what judge reads. */
void lw_run_to_judge_csv(const lw_run_data *d, lw_buf *out);
/* Timings from elsewhere as a run of kind "samples". */
void lw_run_from_timings(const lw_timings *t, const char *name, uint64_t hash,
                         double margin, lw_arena *a, lw_run_data *out);

#endif
