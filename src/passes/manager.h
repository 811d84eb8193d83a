/* The pass manager: runs a pipeline over a module, holds every pass to its
 * claim, and says afterwards what each one did.
 *
 * A pipeline is a plain list of names that reads like a table of contents:
 *   "call-inliner", "{", "cse", "dce", "}*", "@fusion", NULL
 * {…}* repeats until a round changes nothing, at most LW_FIXPOINT_LIMIT times;
 * @fusion stands for the steps the driver hands in, so that this folder does
 * not know src/fusion.
 *
 * After each pass the module's fingerprint is compared with what the pass
 * claimed. A pass that changed the module and says it did not, or the other
 * way round, stops the run with LW_INTERNAL.
 */
#ifndef LW_PASSES_MANAGER_H
#define LW_PASSES_MANAGER_H

#include "base/buf.h"
#include "passes/pass.h"

enum { LW_FIXPOINT_LIMIT = 25 };

typedef struct {
  const char *name;
  const char *const *steps; /* ends with NULL */
} lw_pipeline;

typedef struct {
  const lw_pass *const *extra; /* passes from other folders */
  int32_t n_extra;
  const char *const
      *fusion_steps;         /* for @fusion; ends with NULL; may be NULL */
  const char *passes;        /* comma list: just these, in order */
  const char *disable;       /* comma list */
  const char *fuel;          /* PASS=N[,PASS=N] */
  const char *pass_options;  /* PASS.option=value[,...] */
  const char *allow_inexact; /* comma list of rewrite names */
  const char *dump_dir;      /* NNNN.<pipeline>.after_<pass>.hlo; NULL: none */
  bool keep_fusions;         /* leaves fusion-inliner out */
  bool verify_each;          /* run the checker after every pass that changed */
  bool flush_denormals;      /* the run will: constant folding must as well */
  const struct lw_target *target;
  struct lw_trace *trace;
  struct lw_overrides *overrides; /* of single decisions; NULL: none */
} lw_pipeline_options;

typedef enum {
  LW_PASS_NOT_RUN, /* not in the pipeline, or disabled */
  LW_PASS_RAN,     /* ran and moved nothing */
  LW_PASS_MOVED
} lw_pass_verdict;

typedef struct {
  const char *name;
  int64_t count;
} lw_pass_stat;

typedef struct {
  const lw_pass *pass;
  lw_pass_verdict verdict;
  int32_t runs, moved_runs;
  int64_t insts_before, insts_after; /* first run's before, last run's after */
  int64_t inst_delta;                /* this pass's own, all runs together */
  int64_t time_ns;
  int32_t n_stats;
  const lw_pass_stat *stats;
} lw_pass_result;

typedef struct {
  const lw_pass *pass;
  bool changed;
  int64_t time_ns;
} lw_pass_run;

typedef struct {
  const char *pipeline;
  int32_t n;
  const lw_pass_result *v; /* registry order, every known pass */
  int64_t insts_before, insts_after, time_ns;
  int32_t rounds; /* of fixpoint groups, all together */
  int32_t n_runs;
  const lw_pass_run *runs; /* each run of a pass, in order */
} lw_pipeline_report;

/* Runs the pipeline (or just options->passes). The report lives in arena;
 * report may be NULL. Errors: NOT_FOUND for unknown pass names (with the
 * nearest), INVALID_ARGUMENT for malformed options, INTERNAL for lies. */
LW_MUST_USE lw_status lw_pipeline_run(lw_module *m, const lw_pipeline *pipeline,
                                      const lw_pipeline_options *options,
                                      lw_arena *arena,
                                      lw_pipeline_report *report);

/* Two pipelines that ran one after the other over a module, as one report
 * (r's name): both list the same passes, that is, had the same extra ones. */
void lw_pipeline_report_add(lw_pipeline_report *r,
                            const lw_pipeline_report *then, lw_arena *arena);

/* A table: pass, verdict, instructions, time, statistics. */
void lw_pipeline_report_print(lw_buf *b, const lw_pipeline_report *r);
const char *lw_pass_verdict_name(lw_pass_verdict v); /* "MOVED" ... */

/* Instructions of the computations the entry reaches. */
int64_t lw_module_inst_count(const lw_module *m);

/* pipelines.c: the ones we ship. */
extern const lw_pipeline lw_pipeline_cpu;
extern const lw_pipeline lw_pipeline_fusion; /* @fusion alone */
/* By name ("cpu", "clean-up"); NULL when unknown. */
const lw_pipeline *lw_pipeline_find(const char *name);

#endif
