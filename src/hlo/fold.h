/* Fold orders as data (docs/numerics.md 5, 6, 7): the one place that decides in
 * which order the terms of a reduce, a window or a dot are combined. The
 * interpreter executes these rules, the code generator emits them. */
#ifndef LW_HLO_FOLD_H
#define LW_HLO_FOLD_H

#include "hlo/hlo.h"

enum {
  LW_FOLD_LANES = 64,        /* row rule: lane = t mod 64 */
  LW_FOLD_ROW_BLOCK = 4096,  /* row rule, T > 4096: elements of t a block */
  LW_FOLD_OUTER_BLOCK = 256, /* row rule, T <= 4096: o's a block */
  LW_FOLD_SEQ_BLOCK = 256,   /* column and sequence rules */
  LW_FOLD_SCAN_BLOCK = 1024, /* windows that are scans */
  LW_FOLD_DOT_BLOCK = 256,   /* dots, convolutions */
  LW_FOLD_SKINNY_LANES = 16, /* skinny dots */
  LW_FOLD_SKINNY_BELOW = 4   /* skinny: min(m, n) below this */
};

/* "Row rule: one operand, f is a simple binary op, and the last logical dim of
 * the operand is reduced. Column rule: one operand, simple f, the last logical
 * dim is not reduced. Sequence rule: everything else." */
typedef enum { LW_FOLD_ROW, LW_FOLD_COL, LW_FOLD_SEQ } lw_fold_rule;

typedef struct {
  lw_fold_rule rule;
  lw_opcode op;    /* the simple reducer, LW_OPCODE_COUNT when there is none */
  int64_t n;       /* elements folded into each output: O * T */
  int64_t run;     /* T: product of the trailing run of reduced dims (ROW) */
  int64_t outer;   /* O: product of the other reduced dims (ROW); n else */
  bool init_first; /* SEQ: block 0 starts from init; else init enters last */
} lw_fold;

/* The rule of a reduce: its lawson.fold attribute when a pass pinned one, else
 * by the operand's logical shape. dims may be in any order and are taken as
 * increasing. */
lw_fold lw_reduce_fold(const lw_inst *reduce);
/* The same by parts: a reduce of `shape` over `dims` by op (LW_OPCODE_COUNT:
 * user-defined) with `operands` operands. */
lw_fold lw_fold_of(const lw_shape *shape, int32_t n_dims, const int64_t *dims,
                   lw_opcode op, int32_t operands);
/* add, multiply, maximum, minimum, and, or, xor. */
bool lw_fold_op_is_simple(lw_opcode op);
/* Element 0 of the literal becomes e with f(x, e) = f(e, x) = x for every x,
 * bit for bit (NaN aside). False where a type has none, or f is not simple. */
bool lw_fold_neutral(lw_opcode op, lw_literal *e);
/* The attribute that keeps a reduce's present rule through a change of its
 * dims or its operand's shape. */
void lw_reduce_pin_fold(lw_inst *reduce);

typedef struct {
  bool skinny;         /* 16 lanes a block; else one chain a block */
  lw_prim accumulator; /* F32, F64, or the integer result type; of one part for
                          complex results */
  int64_t k, m, n, batch;
} lw_dot_fold_t;

/* dot, ragged-dot and scaled-dot, by logical shapes (m and n exclude batch
 * dims). */
lw_dot_fold_t lw_dot_fold(const lw_inst *dot);
/* "f32 for f32 and narrower floats; f64 for f64; integers and pred wrap in the
 * result type." */
lw_prim lw_dot_accumulator(lw_prim lhs, lw_prim rhs, lw_prim result);

/* "A reduce-window with one operand and a simple reducer whose window has size
 * > 1 in exactly one dim d, unit strides and dilations, window size = extent E
 * of d, padding (E-1, 0) or (0, E-1)." *dim gets d, *reverse is true for the
 * suffix form (0, E-1). */
bool lw_window_is_scan(const lw_inst *reduce_window, int32_t *dim,
                       bool *reverse);

/* The dim of a ThreeFry rng-bit-generator's result whose neighbours share one
 * block: the first even one, else the first of the largest (section 9; XLA's
 * choice). Rank 0: 0. */
int32_t lw_threefry_dim(const lw_shape *s);

#endif
