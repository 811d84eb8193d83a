/* Why a module's kernels are what they are: the decision records as a table of
 * edges in queue order, the values that stay in memory with their class, and
 * the wall.
 *
 * Names: an edge carries the names its pass saw (fusions have new ones) and, as
 * value and reader, what both were called before fusing. Sources come from the
 * instructions' metadata; a stack_frame_id is looked up in the module's tables.
 */
#ifndef LW_DRIVER_EXPLAIN_H
#define LW_DRIVER_EXPLAIN_H

#include "driver/driver.h"

typedef struct {
  const char *op_name, *file; /* "" when unknown */
  int64_t line;               /* 0 when unknown */
} lw_explain_source;

typedef struct {
  int64_t order; /* the record's place among all questions */
  int64_t fused; /* 1, 2, ... in the order of fusing; 0: not fused */
  int64_t asked; /* how often this edge was asked about */
  const lw_decision *d;
  /* Modelled kernel times. modelled is false where the strategy asks no
   * model. */
  bool modelled;
  double unfused_ns, fused_ns, saved_ns;
  lw_explain_source producer, consumer;
} lw_explain_edge;

typedef enum {
  LW_LEFT_RULE,      /* the fusibility gate refused an edge of it */
  LW_LEFT_NOT_WORTH, /* the profitability gate did */
  LW_LEFT_WALL,      /* needed again after a whole run of it was folded */
  LW_LEFT_LIBRARY,   /* a library call makes it or takes it */
  LW_LEFT_UNASKED    /* no edge of it is a gate's business (loops, tuples) */
} lw_left_class;

/* "refused-by-rule", "not-worth-it", "wall", "library", "not-asked" */
const char *lw_left_class_name(lw_left_class c);

typedef struct {
  const char *name, *value; /* in the fused module; before fusing */
  const char *shape;
  int64_t bytes;
  const char *level; /* where its reader finds it: "L2", "DRAM" */
  double trip_ns;    /* to write it once and read it once a kernel, modelled */
  lw_left_class class;
  int32_t n_readers;
  const char *const *readers; /* kernels */
  const lw_decision *d;       /* the refusal that left it; may be NULL */
  lw_explain_source source;
} lw_explain_left;

/* A value that is needed again once a whole run of it has been folded. */
typedef struct {
  const char *value,
      *name; /* before fusing; where it lives (kernel or value) */
  const char *shape;
  int64_t bytes;
  const char *needs; /* "the whole row (64 elements) before sub.7" */
  /* "DRAM", "L3", "L2", "L1"; "nothing" while a row in a kernel fits L2. */
  const char *crosses;
  const char *strategy;
  bool in_memory;    /* between kernels; else one kernel holds rows of it */
  bool input;        /* in memory, and no kernel writes it: read twice */
  int64_t run;       /* elements folded before the next use */
  int64_t row_bytes; /* of all the kernel holds for one row; 0 in memory */
  /* The run from which it crosses DRAM (in memory) or leaves the row block's
   * L2 (in a kernel), other dims as they are; 0: not modelled. */
  int64_t extent;
  lw_explain_source source;
} lw_explain_wall;

typedef struct {
  lw_arena *arena;
  const char *module, *strategy, *target;
  LW_VEC(lw_explain_edge) edges; /* queue order */
  LW_VEC(lw_explain_left) left;  /* module order */
  LW_VEC(lw_explain_wall) walls; /* module order */
} lw_explain;

/* The options as for lw_optimize, which it calls; *c keeps the records alive
 * and is the caller's to free after e. */
LW_MUST_USE lw_status lw_explain_module(const lw_module *m,
                                        const lw_compile_options *o,
                                        lw_compiled **c, lw_explain *e);
void lw_explain_free(lw_explain *e);

/* The innermost frame of an instruction's metadata. */
lw_explain_source lw_source_of(const lw_module *m, const lw_metadata *md);

#endif
