/* Inside the stage builder. */
#ifndef LW_KERNEL_KERNEL_IMPL_H
#define LW_KERNEL_KERNEL_IMPL_H

#include <string.h>

#include "hlo/fold.h"
#include "kernel/index.h"
#include "kernel/kernel.h"

/* Loop variables of the analysis: var 0 counts the stage's domain, the others
 * what is folded into each element. */
enum { LW_AV_DOMAIN, LW_AV_OUTER, LW_AV_RUN, LW_AV_WINDOW };

/* A read of a buffer or a staged value by a stage. */
typedef struct {
  int32_t stage;
  lw_value value;
  const lw_expr *const *idx; /* NULL: anywhere in it */
} lw_read;

typedef struct {
  lw_arena *a;
  lw_kernel *k;
  lw_kernel_options opt;
  lw_index ix;
  const lw_inst **order; /* reachable instructions, operands first */
  int32_t n_order;
  bool *no_in_place; /* by place: an update that may not write in place */
  bool *staged;      /* by place: must be a stage */
  LW_VEC(lw_stage) stages;
  /* root leaves, looked through */
  int32_t n_outputs;
  lw_value *roots;
  /* the walk */
  lw_map seen;        /* visit keys */
  int32_t *visits;    /* by place: distinct visits */
  double *executions; /* by place: loop trips of the dearest visit, summed */
  LW_VEC(lw_read) reads;
  LW_VEC(int64_t) bounds; /* of the stage being walked */
  int32_t stage;
  double *cone; /* by place: cost an element, inline producers included */
  lw_status error;
} lw_builder;

static inline int32_t lw_b_at(const lw_builder *b, const lw_inst *i) {
  return i->id - b->k->place_base;
}

/* cost.c: flops an element of one instruction. */
double lw_op_cost(const lw_inst *i);
/* Worth keeping when it comes up often; single elements, iotas and broadcasts
 * are not. */
bool lw_may_be_staged(const lw_inst *i);
/* Kinds that never are inline. */
bool lw_always_staged(const lw_inst *i);
lw_stage_kind lw_stage_kind_of(const lw_inst *i);

/* walk.c */
void lw_walk_stage(lw_builder *b, int32_t stage);
/* The index of each dim of a shape from one linear variable. */
const lw_expr **lw_domain_index(lw_builder *b, const lw_shape *s);

/* phase.c */
lw_status lw_make_phases(lw_builder *b);
void lw_find_aliases(lw_builder *b);

#endif
