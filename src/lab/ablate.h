/* Ablation: a program compiled as it is and with one thing left out, and what
 * that moved. Habit: compile both ways, diff the modules, run and time only
 * what moved. A flag that names a pass which is not there is no experiment. */
#ifndef LW_LAB_ABLATE_H
#define LW_LAB_ABLATE_H

#include "base/arena.h"
#include "base/vec.h"
#include "lab/subject.h"

/* UNKNOWN is an error: see lw_ablate. */
typedef enum {
  LW_ABLATE_NOT_RUN, /* a pass of this compiler; not one of this compile's */
  LW_ABLATE_RAN,     /* ran; the module is the same without it */
  LW_ABLATE_MOVED,
  LW_ABLATE_REFUSED /* the compiler fails without it */
} lw_ablate_verdict;

typedef enum {
  LW_BITS_UNKNOWN, /* not run; the row says why */
  LW_BITS_SAME,
  LW_BITS_DIFFER
} lw_bits;

/* An optimised module in numbers. bytes: between kernels (fusion/report.h). */
typedef struct {
  int64_t instructions, computations, fusions, custom_calls, kernels, bytes;
  const char *root; /* "custom-call bf16[2048,128]" */
} lw_module_numbers;

typedef struct {
  const char *name; /* a pass, or an edge "producer > consumer" */
  lw_ablate_verdict verdict;
  bool pipeline;
  int32_t runs, changed_runs; /* in the full compile, by its own log */
  double pass_ms;             /* of those runs; 0 for an edge */
  bool ignored; /* left out, it changed the module all the same, by the log */
  lw_module_numbers without;
  int64_t added, removed, changed; /* instructions, by the diff */
  lw_bits bits;
  const char *bits_text; /* where they differ, or why they are not known */
  const char *error;     /* REFUSED: its words; else NULL */
  const char *folder;    /* the compile without it, while scratch lives */
  const char *word;      /* the option that leaves it out: --disable=NAME */
  /* By lw_ablate_time: bench's verdict on the program without it ("FASTER",
   * ...; NULL: not timed), the ratio of times without / with and its interval;
   * time_error: why there is none. */
  const char *time_verdict, *time_error;
  double ratio, ratio_low, ratio_high;
} lw_ablate_row;

typedef struct {
  lw_arena *arena;
  const char *module, *compiler, *version, *target;
  lw_module_numbers full;
  /* The full compile done twice gives the same module: else no verdict here
   * says anything. */
  bool control_same;
  /* Custom calls of the optimised module that the program did not have: the
   * compiler put another algorithm or a library in place, which is not fusion.
   * "online-softmax (tpu_custom_call)". */
  LW_VEC(const char *) replaced;
  LW_VEC(lw_ablate_row) rows;
} lw_ablation;

typedef struct {
  lw_subject subject;
  const char *module_path, *which;
  const char *const *names; /* passes; none and not edges: all that ran */
  int32_t n_names;
  bool edges;         /* Lawson's fused edges, each forbidden, in their place */
  const char *inputs; /* an .npz; NULL: the bits are not compared */
  const char *scratch; /* a folder for the compiles */
} lw_ablate_options;

/* NOT_FOUND: a name that this compiler does not know, with the nearest; errors
 * of the full compile as in subject.h. The caller frees *out in any case. */
LW_MUST_USE lw_status lw_ablate(const lw_ablate_options *o, lw_ablation *out);
void lw_ablation_free(lw_ablation *a);

/* Times what moved, and nothing else: `program bench` (this very command), at
 * most that many pairs each. say may be NULL. What cannot be timed has its
 * time_error; the result is an error only when the command cannot be run. */
LW_MUST_USE lw_status lw_ablate_time(const lw_ablate_options *o, lw_ablation *a,
                                     const char *program, int64_t pairs,
                                     void (*say)(const char *name));

/* "NOT RUN", "RAN and moved nothing", "MOVED", "REFUSED" */
const char *lw_ablate_verdict_name(lw_ablate_verdict v);

#endif
