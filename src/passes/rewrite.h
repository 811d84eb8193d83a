/* Peephole rewriting: the worklist behind every simplifier, and the small
 * builders their rules use.
 *
 * A simplifier is a table of rules, one an opcode. A rule looks at one
 * instruction and returns what its uses shall use instead (an existing or a
 * newly made instruction of the same shape), or NULL. Before it changes or
 * makes anything it asks lw_rw_go, which spends fuel and counts a statistic.
 *
 * The instruction list of a computation stays in topological order: what a
 * rule makes is placed right before the instruction it looks at. New
 * instructions, and the users of replaced ones, are looked at again, so that a
 * run ends in a fixpoint of its table. Work is linear in the number of
 * rewrites.
 */
#ifndef LW_PASSES_REWRITE_H
#define LW_PASSES_REWRITE_H

#include "hlo/hlo.h"
#include "passes/pass.h"

typedef struct lw_rw {
  lw_module *m;
  lw_pass_env *env;
  lw_inst *at;  /* the instruction looked at */
  bool changed; /* something moved, by replacement or in place */
  lw_status error;
  LW_VEC(lw_inst *) work;
  uint8_t *queued; /* by instruction id */
  int32_t queued_cap;
} lw_rw;

typedef lw_inst *(*lw_rule)(lw_rw *r, lw_inst *i);

/* Runs rules[opcode] over the control computations (see below) until nothing
 * fires. */
LW_MUST_USE lw_status lw_rewrite(lw_module *m, lw_pass_env *env,
                                 const lw_rule rules[LW_OPCODE_COUNT],
                                 bool *changed);

/* About to rewrite: false when the fuel is used up. */
bool lw_rw_go(lw_rw *r, const char *stat);

/* ---- computations ---- */
/* The entry and what it calls by call, while and conditional, transitively;
 * callees first. Reducers, comparators and fusion bodies are not among them. */
lw_comp **lw_control_comps(const lw_module *m, lw_arena *a, int32_t *n);

/* ---- building, right before r->at, with its metadata ---- */
lw_inst *lw_rw_make(lw_rw *r, lw_opcode op, const lw_shape *s, int32_t n,
                    lw_inst *const *operands);
lw_inst *lw_rw_un(lw_rw *r, lw_opcode op, const lw_shape *s, lw_inst *a);
lw_inst *lw_rw_bin(lw_rw *r, lw_opcode op, const lw_shape *s, lw_inst *a,
                   lw_inst *b);
/* Shape with descending layout. */
const lw_shape *lw_mk_array(lw_module *m, lw_prim t, int32_t rank,
                            const int64_t *dims);
/* Reshape to the shape; x itself when equal. */
lw_inst *lw_rw_reshape(lw_rw *r, lw_inst *x, const lw_shape *s);
lw_inst *lw_rw_broadcast(lw_rw *r, lw_inst *x, const lw_shape *s, int32_t n,
                         const int64_t *dims);
lw_inst *lw_rw_transpose(lw_rw *r, lw_inst *x, const int64_t *perm);
/* v: start, limit, stride a dimension. */
lw_inst *lw_rw_slice(lw_rw *r, lw_inst *x, const int64_t *v);
/* A constant of that shape, every element v (integers, pred, floats). */
lw_inst *lw_rw_const_f64(lw_rw *r, const lw_shape *s, double v);
lw_inst *lw_rw_const_int(lw_rw *r, const lw_shape *s, int64_t v);
lw_inst *lw_rw_compare(lw_rw *r, const lw_shape *s, lw_inst *a, lw_inst *b,
                       lw_cmp_dir dir, int64_t type);

/* ---- asking ---- */
static inline lw_inst *lw_op(const lw_inst *i, int32_t k) {
  return lw_inst_operand(i, k);
}
/* The scalar constant that fills every element of x (through broadcasts,
 * reshapes, transposes, copies), or NULL. Its element 0 is the value. */
const lw_literal *lw_uniform(const lw_inst *x);
/* Every element is v, bit for bit (-0 is not 0; complex: v + 0i). */
bool lw_is_all(const lw_inst *x, double v);
bool lw_is_all_int(const lw_inst *x, int64_t v);
/* All bits set, in the type (pred: true). */
bool lw_is_all_ones(const lw_inst *x);
bool lw_type_is_int(const lw_inst *x);
/* Smallest and largest value of an integer type. False for s64/u64 bounds
 * that do not fit. */
void lw_int_bounds(lw_prim t, int64_t *lo, int64_t *hi);
/* Bounds on every element of an integer (or pred) array, by its producers.
 * Always a true statement; the type's own bounds at worst (u64's upper half is
 * given as [INT64_MIN, INT64_MAX], meaning unknown). */
void lw_int_range(const lw_inst *x, int64_t *lo, int64_t *hi);
/* Is the list 0, 1, ..., n-1? */
bool lw_is_iota_list(int32_t n, const int64_t *v);
/* Nothing uses it, it is no root, and taking it away changes nothing. */
bool lw_is_dead(const lw_inst *i);
/* Removes i when dead, then whatever that made dead. How many went. */
int32_t lw_remove_dead(lw_inst *i);

#endif
