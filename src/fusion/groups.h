/* Kernels to be: what each would compute and cost, before anything is moved.
 *
 * Every instruction of a computation either is kept in memory or is inline in
 * the kernels that read it. A group is the kernel of one kept value: its root,
 * the inline instructions behind it, and the kept values it reads. Which values
 * are inline says everything; duplication is what happens when several groups
 * read an inline one.
 *
 * For each instruction in a group a node says at how many different indices it
 * is computed (classes) and how often in all (evals). Two readers at the same
 * element number share one computation. */
#ifndef LW_FUSION_GROUPS_H
#define LW_FUSION_GROUPS_H

#include "fusion/gates.h"

enum { LW_CLASS_ROOT = -1, LW_MAX_CLASSES = 16 };
#define LW_LEAST_POINTS 8.0 /* of a loop that is worth cutting */

typedef struct {
  int32_t pos;                 /* of the instruction */
  bool inside;                 /* computed here; else read from memory */
  int32_t n_cls;               /* LW_MAX_CLASSES + 1: too many */
  int32_t cls[LW_MAX_CLASSES]; /* sorted: positions of those that make an index
                                  of their own, or LW_CLASS_ROOT */
  int32_t align; /* leading dims whose index is the kernel's own */
  double count;  /* times it is emitted */
  double evals;  /* elements computed, or read, in all */
} lw_group_node;

typedef struct {
  int32_t root; /* position */
  LW_VEC(lw_group_node) nodes;
  lw_map index; /* position -> node + 1 */
  int32_t n_inside, n_read, n_reduces;
  int32_t n_lone;    /* stages that share a kernel only when it is small */
  int32_t tile_dims; /* leading dims along which every reduce inside can be cut
                        together with its readers */
  double code;       /* emitted operations */
  double words;      /* 4-byte words of the root and of what it reads */
  lw_cost cost;
} lw_group;

typedef LW_VEC(int32_t) lw_groups_readers;

typedef struct {
  lw_comp *comp;
  const lw_target *target;
  lw_arena *arena;
  double small_work; /* see lw_group_work */
  int32_t n;
  lw_inst **insts;   /* by position, operands first */
  int32_t *pos;      /* by instruction id; -1: not of this computation */
  lw_group **groups; /* by position; NULL: inline, or no kernel of ours */
  bool *is_inline;
  uint8_t *pinned;            /* by id: control edges */
  lw_groups_readers *readers; /* by position: roots that may read it */
} lw_groups;

lw_groups *lw_groups_new(lw_comp *c, const lw_target *t, double small_work,
                         lw_arena *a);
void lw_groups_free(lw_groups *g);
/* Roots of the groups that read a kept value, ascending. */
int32_t lw_groups_readers_of(lw_groups *g, int32_t pos, int32_t *out,
                             int32_t max);
lw_group_node *lw_group_node_of(const lw_group *k, int32_t pos);
/* The kernel's time, and what it would be with the producer's group inside. */
double lw_group_ns(const lw_groups *g, const lw_group *k);
double lw_group_ns_with(const lw_groups *g, const lw_group *k,
                        const lw_group *producer);
/* Points of the outer loop of k's kernel with a group inside that holds
 * reduces, read as node n says; 1: they do not share any. */
double lw_group_points_with(const lw_groups *g, const lw_group *k,
                            const lw_group *producer);
/* Simple operations and words moved, together: below small_work a kernel runs
 * as one point on one core, and nothing in it needs to be aligned. */
double lw_group_work(const lw_groups *g, const lw_group *k);
/* Makes a kept value inline: its group moves into every reader. */
void lw_groups_inline(lw_groups *g, int32_t pos);
/* Rewrites the computation: one fusion a group of two and more (or one with
 * constants that are immediates). Returns how many were made. The trace (may be
 * NULL) learns the new names. */
int32_t lw_groups_build(lw_groups *g, lw_trace *trace);
/* A constant that a kernel holds as an immediate. */
bool lw_is_immediate(const lw_inst *i);

#endif
