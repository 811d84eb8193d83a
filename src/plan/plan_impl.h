/* Shared by the files of src/plan only.
 *
 * The road: lower.c walks the module and makes the node tree over values (one
 * a leaf), with a copy wherever a value must reach a place of its own: loop
 * state, branch results, module outputs, in-place operands. live.c turns
 * definitions and uses into live segments and coalesces copies away. place.c
 * gives what is left offsets in the arena. plan.c ties them together.
 */
#ifndef LW_PLAN_PLAN_IMPL_H
#define LW_PLAN_PLAN_IMPL_H

#include "plan/plan.h"

typedef enum {
  VAL_NONE,  /* token, opaque or no bytes: needs no place */
  VAL_TEMP,  /* the arena, unless merged with an output */
  VAL_PARAM, /* a parameter of the caller's that nobody may write */
  VAL_CONST, /* a literal */
  VAL_OUTPUT /* a module output, or a donated parameter on its way to one */
} val_kind;

/* Time is counted in half steps: a step at position p reads at 2p and writes
 * at 2p + 1. Both ends belong to the segment. */
typedef struct {
  int32_t first, last;
} segment;

typedef LW_VEC(segment) segment_list;
typedef LW_VEC(int32_t) int_list;

typedef enum {
  BLOCK_ENTRY,
  BLOCK_CONDITION,
  BLOCK_BODY,
  BLOCK_BRANCH
} block_kind;

typedef struct block block;
struct block {
  block_kind kind;
  block *parent;
  int32_t depth;       /* loops around it */
  int32_t first, last; /* marker positions */
  int32_t owner_first; /* markers of the while or conditional it belongs to */
  int32_t owner_last;
};

typedef struct {
  val_kind kind;
  int32_t index; /* parameter, output or constant number */
  int64_t bytes;
  const lw_inst *inst;
  int32_t leaf;
  block *home;
  int32_t def; /* half step */
  segment_list segments;
  /* Coalescing: union-find; the fields below belong to the root. */
  int32_t parent;
  segment_list class_segments;
  int64_t class_bytes;
  val_kind class_kind;
  int32_t class_index;
  int64_t offset; /* TEMP: in the arena */
  int32_t slice;  /* -1: none yet */
} val;

typedef struct {
  int32_t val;
  block *where;
  int32_t position;
} use;

typedef enum {
  COPY_LOOP_START,
  COPY_LOOP_NEXT,
  COPY_BRANCH_RESULT,
  COPY_OUTPUT,
  COPY_IN_PLACE,
  COPY_PARALLEL_TEMP
} copy_role;

typedef struct {
  int32_t position, src, dst, depth;
  int64_t bytes;
  copy_role role;
  lw_node *node;
} copy_step;

typedef LW_VEC(lw_node *) node_list;

typedef struct {
  const lw_module *module;
  lw_arena *arena;
  const lw_plan_options *options;
  lw_plan *plan;
  LW_VEC(val) vals;
  LW_VEC(use) uses;
  LW_VEC(lw_node *) steps; /* by position; NULL for markers */
  LW_VEC(copy_step) copies;
  LW_VEC(lw_kernel *) kernels;
  LW_VEC(const lw_literal *) constants;
  lw_map kernel_of;         /* fusion -> kernel index + 1 */
  const bool *nan_observed; /* by instruction id: kernel/observe.h */
  lw_map invariants;        /* while -> bool a leaf */
  lw_map const_hashes;      /* hash -> constant index + 1 */
} builder;

/* ---- names.c: values behind tuples, barriers, reshapes ---- */
typedef struct {
  const lw_inst *inst;
  int32_t leaf;
} leaf_ref;

/* The instruction's result is its operand's value under another name (leaf
 * counts equal): reshape, copy, bitcast and the like. */
bool plan_is_name(const lw_inst *i);
/* First leaf of a tuple shape's element k. */
int32_t plan_leaf_offset(const lw_shape *tuple, int64_t k);
/* Follows names inside the computation, through loops that hand a leaf on
 * unchanged. */
leaf_ref plan_resolve(builder *b, const lw_inst *i, int32_t leaf);
/* One flag a leaf: the loop's body hands it on unchanged. */
const bool *plan_invariants(builder *b, const lw_inst *loop);

/* ---- schedule.c ---- */
LW_MUST_USE lw_status plan_schedule(builder *b, const lw_comp *c,
                                    lw_inst ***out, int32_t *n);

/* ---- lower.c ---- */
LW_MUST_USE lw_status plan_kernel(builder *b, const lw_inst *fusion,
                                  int32_t *index);
LW_MUST_USE lw_status plan_lower(builder *b);

/* ---- live.c ---- */
int32_t plan_class(builder *b, int32_t v);
/* Merges without asking (loop state, donated parameters). */
void plan_force_merge(builder *b, int32_t a, int32_t c);
void plan_liveness(builder *b);
void plan_coalesce(builder *b);

/* ---- place.c ---- */
LW_MUST_USE lw_status plan_place(builder *b);

#endif
