/* Index expressions: where, inside a fused body, each value is read.
 *
 * An index is one expression a dimension: a constant plus a sum of
 * coefficient * atom. Atoms are loop variables, digits of an expression
 * (floor(e / div) mod m: what reshapes make), and clamped run-time values (the
 * starts of dynamic slices and gathers). Expressions are interned, so equal
 * indices are equal pointers; ranges are known, so that a reshape that does
 * not mix dims divides away and digits that belong together merge again: a
 * flat loop over all elements reads a parameter of any rank at its own
 * variable. Nothing here knows LLVM; the stage analysis and the emitters use
 * the same maps.
 */
#ifndef LW_KERNEL_INDEX_H
#define LW_KERNEL_INDEX_H

#include "hlo/hlo.h"

typedef struct lw_expr lw_expr;

typedef enum { LW_ATOM_VAR, LW_ATOM_DIGIT, LW_ATOM_VALUE } lw_atom_kind;

typedef struct lw_atom {
  lw_atom_kind kind;
  int32_t id;       /* order of creation: terms are sorted by it */
  int64_t extent;   /* 0 <= value < extent */
  int32_t var;      /* VAR */
  const lw_expr *e; /* DIGIT: floor(e / div) mod `mod` (0: no modulus) */
  int64_t div, mod;
  const lw_inst *inst; /* VALUE: integer element of a value, clamped to */
  int32_t leaf;        /*   [0, extent - 1] */
  int32_t n_idx;
  const lw_expr *const *idx;
} lw_atom;

typedef struct {
  int64_t k;
  const lw_atom *a;
} lw_term;

struct lw_expr {
  int64_t c;
  int32_t n;
  int64_t lo, hi; /* inclusive range of the value */
  uint64_t hash;
  const lw_expr *next; /* hash chain */
  lw_term t[];
};

typedef struct {
  lw_arena *arena;
  lw_map exprs, atoms; /* hash -> chain head */
  int32_t n_atoms;
} lw_index;

void lw_index_init(lw_index *ix, lw_arena *a);
void lw_index_free(lw_index *ix); /* the maps; memory is the arena's */

const lw_expr *lw_ex_const(lw_index *ix, int64_t c);
const lw_expr *lw_ex_var(lw_index *ix, int32_t var, int64_t extent);
const lw_expr *lw_ex_value(lw_index *ix, const lw_inst *inst, int32_t leaf,
                           int32_t n_idx, const lw_expr *const *idx,
                           int64_t extent);
const lw_expr *lw_expr_of_atom(lw_index *ix, const lw_atom *a);
const lw_expr *lw_ex_add(lw_index *ix, const lw_expr *a, const lw_expr *b);
const lw_expr *lw_ex_addc(lw_index *ix, const lw_expr *a, int64_t c);
const lw_expr *lw_ex_mul(lw_index *ix, const lw_expr *a, int64_t k);
/* floor(e / s), e mod s; s > 0. */
const lw_expr *lw_ex_div(lw_index *ix, const lw_expr *e, int64_t s);
const lw_expr *lw_ex_mod(lw_index *ix, const lw_expr *e, int64_t s);
static inline bool lw_ex_is_const(const lw_expr *e) { return e->n == 0; }
/* The expression with variable var replaced by r. */
const lw_expr *lw_ex_subst(lw_index *ix, const lw_expr *e, int32_t var,
                           const lw_expr *r);
bool lw_ex_uses_var(const lw_expr *e, int32_t var);
/* Row-major: sum of idx * stride, and back. */
const lw_expr *lw_ex_linear(lw_index *ix, int32_t rank, const int64_t *dims,
                            const lw_expr *const *idx);
void lw_ex_delinear(lw_index *ix, const lw_expr *lin, int32_t rank,
                    const int64_t *dims, const lw_expr **idx);
void lw_ex_print(lw_buf *b, const lw_expr *e);

/* lo <= e <= hi, and (e - lo) mod `mod` = 0 when mod > 1. */
typedef struct {
  const lw_expr *e;
  int64_t lo, hi, mod;
} lw_cond;

/* A value of a body: tuples are looked through (tuple, get-tuple-element,
 * opt-barrier, add-dependency), so inst makes an array or several. */
typedef struct {
  const lw_inst *inst;
  int32_t leaf;
} lw_value;
lw_value lw_value_of(const lw_inst *inst, int32_t leaf);
static inline lw_value lw_value_operand(const lw_inst *i, int32_t slot) {
  return lw_value_of(lw_inst_operand(i, slot), 0);
}
static inline const lw_shape *lw_value_shape(lw_value v) {
  return lw_shape_leaf(v.inst->shape, v.leaf);
}

/* Movers and elementwise operations: for element idx of inst, the element of
 * operand slot it is made from. n_conds conditions must hold for that operand
 * to be the one (pad, concatenate, dynamic-update-slice); conds known to hold
 * are left out; false when one can never hold. out has the operand's rank and
 * conds LW_MAX_RANK * 2 room. */
bool lw_index_map(lw_index *ix, const lw_inst *inst, int32_t slot,
                  const lw_expr *const *idx, const lw_expr **out,
                  lw_cond *conds, int32_t *n_conds);
/* Instructions lw_index_map knows. */
bool lw_index_maps(const lw_inst *inst);

#endif
