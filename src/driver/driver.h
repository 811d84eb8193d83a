/* compile(): the only place that sees every stage. */
#ifndef LW_DRIVER_DRIVER_H
#define LW_DRIVER_DRIVER_H

#include "codegen/codegen.h"
#include "hlo/hlo.h"
#include "plan/plan.h"
#include "runtime/runtime.h"

typedef struct {
  const char *fusion;        /* "none", "xla", "priority" (default) */
  const char *target;        /* "cpu" (by CPUID) or a target file's path */
  const char *passes;        /* comma list: run just these; NULL: the pipeline */
  const char *disable;       /* comma list */
  const char *fuel;          /* "PASS=N[,PASS=N]" */
  const char *pass_options;  /* "PASS.option=value,..." */
  const char *allow_inexact; /* comma list of rewrite names */
  const char *dump_passes;   /* directory */
  bool keep_fusions;         /* do not inline incoming fusions */
  bool flush_denormals;
  const char *isa;
  bool keep_llvm, keep_asm;
  bool no_alias;
} lw_compile_options;

typedef struct lw_compiled lw_compiled;

/* Takes over nothing: the module is cloned first; the caller frees its own. */
LW_MUST_USE lw_status lw_compile(const lw_module *m,
                                 const lw_compile_options *options,
                                 lw_compiled **out);
/* Only the passes: the optimised module (owned by the result). */
LW_MUST_USE lw_status lw_optimize(const lw_module *m,
                                  const lw_compile_options *options,
                                  lw_compiled **out);
void lw_compiled_free(lw_compiled *c);
const lw_module *lw_compiled_module(const lw_compiled *c);
const lw_plan *lw_compiled_plan(const lw_compiled *c);
const lw_codegen *lw_compiled_codegen(const lw_compiled *c);
double lw_compiled_ms(const lw_compiled *c);

/* Literals in (one an entry parameter, tuples as tuples), a literal out. */
LW_MUST_USE lw_status lw_compiled_run(lw_compiled *c,
                                      const lw_literal *const *args,
                                      int32_t n_args,
                                      const lw_run_options *options,
                                      lw_arena *out_arena, lw_literal **result,
                                      lw_run_stats *stats);
lw_executable *lw_compiled_executable(lw_compiled *c);

#endif
