/* compile(): the only place that sees every stage. */
#ifndef LW_DRIVER_DRIVER_H
#define LW_DRIVER_DRIVER_H

#include "codegen/codegen.h"
#include "hlo/hlo.h"
#include "passes/manager.h"
#include "plan/plan.h"
#include "runtime/runtime.h"
#include "target/target.h"
#include "trace/trace.h"

typedef struct {
  const char *fusion;       /* "none", "xla", "priority" (default) */
  const char *target;       /* "cpu" (by CPUID) or a target file's path */
  const char *passes;       /* comma list: run just these; NULL: the pipeline */
  const char *disable;      /* comma list */
  const char *fuel;         /* "PASS=N[,PASS=N]" */
  const char *pass_options; /* "PASS.option=value,..." */
  const char *allow_inexact; /* comma list of rewrite names */
  const char *dump_passes;   /* directory */
  const char *force_edges;   /* "P,C;P,C...": see trace/override.h */
  const char *forbid_edges;
  bool keep_fusions; /* do not inline incoming fusions */
  /* The module is as it stands right before XLA's fusion pipeline: run that
   * (fusion "xla" only), and nothing before or after it. passes may name some
   * of its steps. */
  bool only_fusion;
  bool verify_each; /* checker after every pass that changed */
  bool flush_denormals;
  const char *isa; /* NULL: native */
  bool keep_llvm, keep_asm;
  bool no_alias;
  int opt_level; /* of the machine code, 1 to 3; 0: 2 */
  /* Code goes there (its ISA and level hold), so that equal kernels of several
   * modules are compiled once; it must outlive them. NULL: one's own. */
  lw_codegen *codegen;
  lw_fault planted_fault; /* by the property test only */
  bool unguarded;         /* "priority" as it decides, not held against "xla" */
} lw_compile_options;

typedef struct lw_compiled lw_compiled;

/* Takes over nothing: the module is cloned first; the caller frees its own.
 * Errors name the module. NOT_FOUND: an unknown strategy, pass or target;
 * FAILED_PRECONDITION: this CPU lacks the ISA. */
LW_MUST_USE lw_status lw_compile(const lw_module *m,
                                 const lw_compile_options *options,
                                 lw_compiled **out);
/* Only the passes: the optimised module (owned by the result). */
LW_MUST_USE lw_status lw_optimize(const lw_module *m,
                                  const lw_compile_options *options,
                                  lw_compiled **out);
/* Passes, kernels and plan, no machine code. */
LW_MUST_USE lw_status lw_compile_to_plan(const lw_module *m,
                                         const lw_compile_options *options,
                                         lw_compiled **out);
void lw_compiled_free(lw_compiled *c);
const lw_module *lw_compiled_module(const lw_compiled *c);
/* Shapes as they were before the passes (dynamic dimensions and all). */
const lw_shape *lw_compiled_result_shape(const lw_compiled *c);
const lw_plan *lw_compiled_plan(const lw_compiled *c);
const lw_codegen *lw_compiled_codegen(const lw_compiled *c);
const lw_pipeline_report *lw_compiled_report(const lw_compiled *c);
const lw_trace *lw_compiled_trace(const lw_compiled *c);
const lw_target *lw_compiled_target(const lw_compiled *c);
double lw_compiled_ms(const lw_compiled *c);

typedef struct {
  double passes_ms, plan_ms, code_ms;
} lw_compile_times;
lw_compile_times lw_compiled_times(const lw_compiled *c);

/* Literals in (one an entry parameter, tuples as tuples), a literal out. */
LW_MUST_USE lw_status lw_compiled_run(lw_compiled *c,
                                      const lw_literal *const *args,
                                      int32_t n_args,
                                      const lw_run_options *options,
                                      lw_arena *out_arena, lw_literal **result,
                                      lw_run_stats *stats);
lw_executable *lw_compiled_executable(lw_compiled *c);

/* ---- run.c: a compiled module with its inputs in buffers, to run often ----
 */
typedef struct lw_bound lw_bound;
LW_MUST_USE lw_status lw_bound_new(lw_compiled *c,
                                   const lw_literal *const *args,
                                   int32_t n_args, lw_bound **out);
/* Donated inputs are restored first, outside the time taken. stats and time_ns
 * may be NULL. */
LW_MUST_USE lw_status lw_bound_run(lw_bound *b, const lw_run_options *options,
                                   lw_run_stats *stats, int64_t *time_ns);
/* The last run's result. */
LW_MUST_USE lw_status lw_bound_result(const lw_bound *b, lw_arena *a,
                                      lw_literal **result);
void lw_bound_free(lw_bound *b);

/* ---- load.c: modules from files ---- */

/* path: a file of HLO text or proto (told apart by content), "-" for standard
 * input, or a folder of dumps. which: part of a file's name in a folder, NULL
 * when there is one; several matches are an error (FAILED_PRECONDITION) that
 * lists them. Log prefixes in front of lines are dropped. diags may be NULL;
 * the text lives as long as the context. */
LW_MUST_USE lw_status lw_load_module(lw_context *ctx, const char *path,
                                     const char *which, lw_diags *diags,
                                     lw_module **out);
/* HLO text in memory. */
LW_MUST_USE lw_status lw_load_text(lw_context *ctx, const char *text,
                                   size_t len, lw_module **out);

/* ---- random_inputs.c ---- */

/* Which integers a parameter leaf gets, and why. */
typedef struct {
  int32_t param, leaf;
  const lw_shape *shape;
  double low, high; /* integers: inclusive; floats: normal, mean 0, sd 1 */
  bool is_index;    /* low..high keeps some index in range */
} lw_input_range;

/* args: one literal an entry parameter. ranges (may be NULL): one a leaf. All
 * in the arena; the same seed gives the same values. */
LW_MUST_USE lw_status lw_random_inputs(const lw_module *m, uint64_t seed,
                                       lw_arena *a, lw_literal ***args,
                                       int32_t *n_args, lw_input_range **ranges,
                                       int32_t *n_ranges);

/* ---- verify.c: the bits question ---- */

typedef enum {
  LW_ROAD_SAME,
  LW_ROAD_DIFFERS,
  LW_ROAD_FAILED,    /* an error on this road */
  LW_ROAD_NOT_TESTED /* this machine cannot */
} lw_road_verdict;

typedef struct {
  const char *name; /* "fusion=priority threads=2 isa=avx512" */
  lw_road_verdict verdict;
  const char *detail; /* where it differs, or the error; NULL */
} lw_road;

typedef struct {
  int32_t n;
  lw_road *roads; /* [0] is the interpreter */
  int32_t n_library;
  const char **library; /* ops whose bits come from a library */
  bool same;            /* every road that was tested */
} lw_verify_report;

typedef struct {
  uint64_t seed;
  int threads; /* of the many-threads roads; 0: all cores, at least 2 */
  const char *target;
  bool flush_denormals;
  bool first_only;        /* stop at the first road that differs */
  lw_fault planted_fault; /* in all roads but the interpreter; tests only */
  /* Called before each road with its number and name; may be NULL. */
  void (*progress)(void *ctx, int32_t k, int32_t n, const char *name);
  void *progress_ctx;
} lw_verify_options;

/* Errors only when the interpreter itself fails. */
LW_MUST_USE lw_status lw_verify(const lw_module *m,
                                const lw_literal *const *args, int32_t n_args,
                                const lw_verify_options *options, lw_arena *a,
                                lw_verify_report *out);

/* Same bits, any NaN equal to any NaN of its type. Else *where is a text in
 * the arena: leaf, index, both values. */
bool lw_literal_same_bits(const lw_literal *a, const lw_literal *b,
                          lw_arena *arena, const char **where);

#endif
