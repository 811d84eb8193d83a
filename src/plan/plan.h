/* The plan: a tree of what is run, over buffers that are already assigned.
 *
 * Values are flattened to leaves (tuples are nothing but names for their
 * leaves). Each leaf of each instruction is in a slice of an allocation. A
 * loop's operand, parameter, body root and result share their slices unless
 * they interfere; where they do, copies are nodes with a reason.
 */
#ifndef LW_PLAN_PLAN_H
#define LW_PLAN_PLAN_H

#include "hlo/hlo.h"
#include "kernel/kernel.h"

typedef enum {
  LW_ALLOC_PARAM,    /* entry parameter leaf: given by the caller, read only
                        unless donated */
  LW_ALLOC_OUTPUT,   /* entry result leaf: a fresh buffer of the caller's, or a
                        donated parameter (alias_param >= 0) */
  LW_ALLOC_CONSTANT, /* a literal, read only */
  LW_ALLOC_TEMP      /* offset into the run's arena */
} lw_alloc_kind;

typedef struct {
  lw_alloc_kind kind;
  int32_t index;         /* PARAM/OUTPUT: leaf number; CONSTANT: literal */
  int64_t offset, bytes; /* TEMP: offset in the arena (64-byte aligned) */
} lw_slice;

typedef enum {
  LW_NODE_SEQ,
  LW_NODE_KERNEL,
  LW_NODE_COPY, /* bytes from one slice to another */
  LW_NODE_WHILE,
  LW_NODE_CONDITIONAL,
  LW_NODE_LIBRARY /* fft, custom-call: src/lib */
} lw_node_kind;

typedef struct lw_node lw_node;
struct lw_node {
  lw_node_kind kind;
  const lw_inst *inst; /* what it runs, for names and profiles */
  /* SEQ */
  int32_t n_children;
  lw_node **children;
  /* KERNEL, LIBRARY: slices of params, then outputs, then scratch, then consts,
   * in lw_kernel's buffer order (LIBRARY: operand leaves, then result leaves)
   */
  int32_t kernel; /* index in plan->kernels */
  int32_t n_slices;
  int32_t *slices; /* indices in plan->slices */
  /* COPY: slices[0] -> slices[1] */
  const char *reason;
  /* WHILE: children[0] = condition, children[1] = body; slices[0] = predicate;
   * trip_count >= 0 when known: then there is no predicate (n_slices is 0) and
   * children[0] is empty */
  int64_t trip_count;
  /* CONDITIONAL: slices[0] = index or predicate; children = branches in order
   * (predicate form: true, false); an index out of range takes the last */
  bool predicated;
};

typedef struct {
  int32_t slice;
  const lw_inst *inst;
  int32_t leaf;
  int32_t first, last; /* positions in the schedule where it lives */
} lw_live_range;

typedef struct {
  const lw_module *module;
  lw_arena *arena;
  int32_t n_kernels;
  lw_kernel **kernels;
  int32_t n_slices;
  lw_slice *slices;
  lw_node *root;
  int32_t n_params, n_outputs; /* leaves */
  const lw_shape **param_shapes, **output_shapes;
  int32_t *output_alias; /* output leaf -> donated parameter leaf, or -1 */
  int32_t n_constants;
  const lw_literal **constants;
  int64_t temp_bytes; /* the arena's size: planned peak of intermediates */
  int32_t n_live;
  lw_live_range *live; /* for --dump-plan */
} lw_plan;

/* lw_kernel_build's form. */
typedef lw_status (*lw_kernel_builder)(lw_arena *a, const lw_inst *fusion,
                                       const lw_kernel_options *options,
                                       lw_kernel **out);

typedef struct {
  lw_kernel_options kernel;
  bool no_alias; /* every value its own buffer (debugging and verify) */
  lw_kernel_builder build_kernel; /* NULL: lw_kernel_build */
} lw_plan_options;

/* module: every computing instruction is a fusion, a library op or control
 * flow (driver/pipelines guarantee it). */
LW_MUST_USE lw_status lw_plan_build(lw_arena *a, const lw_module *m,
                                    const lw_plan_options *options,
                                    lw_plan **out);
void lw_plan_print(lw_buf *b, const lw_plan *p); /* tree, slices, live ranges */

/* The array leaves of a shape that a kernel or library node has slices for. */
int32_t lw_plan_array_leaves(const lw_shape *s);

/* Runs the plan symbolically, with nothing taken from the builder but the tree:
 * every slice that is read must hold the value the module says, outputs
 * included, and no output of a kernel may be in an operand's buffer unless the
 * kernel allows it. LW_INTERNAL names the node, the leaf and the slice. */
LW_MUST_USE lw_status lw_plan_check(const lw_plan *p);

#endif
