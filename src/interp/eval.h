/* Inside the evaluator: values, the evaluation state, and one function an
 * opcode family. */
#ifndef LW_INTERP_EVAL_H
#define LW_INTERP_EVAL_H

#include <string.h>

#include "hlo/hlo.h"
#include "interp/interp.h"
#include "math/elementwise.h"

/* A reference-counted literal. The literal comes first, so that a tuple's
 * elems are values as well. Data is shared by views (reshape, copy ...) and
 * never written while anyone else can see it (lw_val_writable). */
typedef struct lw_val {
  lw_literal lit;
  int32_t refs;
  void *mem;           /* our own block, or NULL */
  int64_t mem_bytes;   /* its size */
  struct lw_val *base; /* whose block lit.data lies in, or NULL */
} lw_val;

typedef struct lw_prog lw_prog;
enum { LW_PROG_MAX_PARAMS = 64 };
typedef struct lw_frame_plan lw_frame_plan;

typedef struct lw_eval {
  const lw_module *m;
  lw_interp_options opt;
  lw_arena *arena; /* plans and programs, for the whole run */
  int64_t steps, live_bytes;
  int32_t depth;
  lw_frame_plan **plans; /* by computation id; NULL until needed */
  lw_prog **progs;       /* by computation id; NULL until needed */
  int32_t *slot_of;      /* by instruction id; with plans */
  uint64_t rng_state[2]; /* rng-get-and-update-state, low word first */
} lw_eval;

/* ---- values (value.c) ---- */
LW_MUST_USE lw_status lw_val_new(lw_eval *e, const lw_shape *s, lw_val **out);
/* Takes over one reference to each element. */
lw_val *lw_val_tuple(const lw_shape *s, int32_t n, lw_val *const *elems);
/* Another shape over the same elements; keeps its own reference to v. */
lw_val *lw_val_view(const lw_shape *s, lw_val *v);
/* A value over a literal that outlives it; its data is never written. */
lw_val *lw_val_borrow(const lw_literal *l);
static inline lw_val *lw_val_retain(lw_val *v) { return v->refs++, v; }
void lw_val_release(lw_eval *e, lw_val *v); /* NULL is fine */
static inline lw_val *lw_val_elem(const lw_val *v, int64_t i) {
  return (lw_val *)v->lit.elems[i];
}
/* Nobody else sees the data: the holder of the one reference may write it. */
bool lw_val_writable(const lw_val *v);
/* v itself (one reference taken over) when writable, else a copy. */
LW_MUST_USE lw_status lw_val_own(lw_eval *e, lw_val *v, lw_val **out);
LW_MUST_USE lw_status lw_val_export(lw_arena *a, const lw_shape *declared,
                                    const lw_val *v, lw_literal **out);

/* ---- shapes of values ---- */
static inline int64_t lw_dim(const lw_val *v, int64_t d) {
  return v->lit.shape->dims[d];
}
static inline int64_t lw_elems(const lw_val *v) {
  return v->lit.shape->elements;
}
static inline int lw_esize(const lw_val *v) {
  return lw_prim_bytes(v->lit.shape->type);
}
/* The result shape of inst with these dims: the declared shape when equal, an
 * interned one where a dynamic dimension makes it smaller. */
const lw_shape *lw_result_shape(const lw_eval *e, const lw_shape *declared,
                                const int64_t *dims);
/* Row-major odometer step over dims; false after the last index. */
static inline bool lw_next_index(int32_t rank, const int64_t *dims,
                                 int64_t *idx) {
  for (int32_t d = rank; d-- > 0;) {
    if (++idx[d] < dims[d]) return true;
    idx[d] = 0;
  }
  return false;
}

/* ---- computations (interp.c) ---- */
/* Evaluates c; takes over one reference to each argument. */
LW_MUST_USE lw_status lw_eval_comp(lw_eval *e, const lw_comp *c, lw_val **args,
                                   int n_args, lw_val **out);
/* Evaluates one instruction. Operands keep their references unless a function
 * takes one by setting the slot to NULL (in-place updates). Functions of a
 * family report plain errors; this one puts the instruction's name before. */
LW_MUST_USE lw_status lw_eval_inst(lw_eval *e, const lw_inst *i, lw_val **ops,
                                   lw_val **out);

/* ---- scalar programs (prog.c) ---- */
/* A computation over scalars as straight-line steps, run over n lanes at once.
 * Computations that do not fit (control flow, reduces inside) are evaluated a
 * lane at a time through lw_eval_comp; callers need not know. */
LW_MUST_USE lw_status lw_prog_get(lw_eval *e, const lw_comp *c, lw_prog **out);
int lw_prog_params(const lw_prog *p);
int lw_prog_results(const lw_prog *p);
lw_prim lw_prog_result_type(const lw_prog *p, int i);
lw_prim lw_prog_param_type(const lw_prog *p, int i);
/* The program of one binary op on scalars of one type. */
LW_MUST_USE lw_status lw_prog_binary(lw_eval *e, lw_opcode op, lw_prim type,
                                     lw_prog **out);
/* in[k]: n contiguous elements of parameter k's type; out[r] likewise, and may
 * be one of the inputs. */
LW_MUST_USE lw_status lw_prog_run(lw_eval *e, lw_prog *p, int64_t n,
                                  const void *const *in, void *const *out);

/* ---- opcode families ---- */
lw_elem_op lw_elem_of_inst(const lw_eval *e, const lw_inst *i,
                           const lw_prim in[3]);
#define LW_EVAL_FN(name)                                                 \
  LW_MUST_USE lw_status name(lw_eval *e, const lw_inst *i, lw_val **ops, \
                             lw_val **out)
/* elementwise.c */
LW_EVAL_FN(lw_eval_elementwise);
LW_EVAL_FN(lw_eval_bitcast_convert);
LW_EVAL_FN(lw_eval_map);
/* move.c */
LW_EVAL_FN(lw_eval_iota);
LW_EVAL_FN(lw_eval_broadcast);
LW_EVAL_FN(lw_eval_reshape);
LW_EVAL_FN(lw_eval_bitcast);
LW_EVAL_FN(lw_eval_transpose);
LW_EVAL_FN(lw_eval_slice);
LW_EVAL_FN(lw_eval_dynamic_slice);
LW_EVAL_FN(lw_eval_dynamic_update_slice);
LW_EVAL_FN(lw_eval_concatenate);
LW_EVAL_FN(lw_eval_pad);
LW_EVAL_FN(lw_eval_reverse);
LW_EVAL_FN(lw_eval_get_dimension_size);
LW_EVAL_FN(lw_eval_set_dimension_size);
LW_EVAL_FN(lw_eval_dynamic_reshape);
/* gather.c */
LW_EVAL_FN(lw_eval_gather);
LW_EVAL_FN(lw_eval_scatter);
/* reduce.c; window.c */
LW_EVAL_FN(lw_eval_reduce);
LW_EVAL_FN(lw_eval_scan);
LW_EVAL_FN(lw_eval_reduce_window);
LW_EVAL_FN(lw_eval_select_and_scatter);
/* dot.c, conv.c */
LW_EVAL_FN(lw_eval_dot);
LW_EVAL_FN(lw_eval_ragged_dot);
LW_EVAL_FN(lw_eval_scaled_dot);
LW_EVAL_FN(lw_eval_convolution);
/* sort.c */
LW_EVAL_FN(lw_eval_sort);
LW_EVAL_FN(lw_eval_topk);
/* library.c */
LW_EVAL_FN(lw_eval_fft);
LW_EVAL_FN(lw_eval_cholesky);
LW_EVAL_FN(lw_eval_triangular_solve);
LW_EVAL_FN(lw_eval_custom_call);
/* batchnorm.c */
LW_EVAL_FN(lw_eval_batch_norm);
/* random.c */
LW_EVAL_FN(lw_eval_rng);
LW_EVAL_FN(lw_eval_rng_bit_generator);
LW_EVAL_FN(lw_eval_rng_state);
/* collective.c */
LW_EVAL_FN(lw_eval_collective);

/* ---- shared helpers ---- */
/* Elements of v as the given row-major permutation of its dims: out has dims
 * dims[perm[0]], dims[perm[1]] ... */
void lw_permute(const lw_val *v, const int64_t *perm, void *out);
void lw_permute_raw(int32_t rank, const int64_t *dims, const int64_t *perm,
                    int esize, const void *src, void *dst);
/* Copies an array walked over dims with byte strides on both sides. */
void lw_copy_strided(int32_t rank, const int64_t *dims, int64_t esize,
                     char *dst, const int64_t *dst_strides, const char *src,
                     const int64_t *src_strides);
/* lw_shape_strides in bytes. */
void lw_byte_strides(const lw_shape *s, int64_t *strides);
/* One elementwise operation over n elements: types as given. */
LW_MUST_USE lw_status lw_elem_apply(lw_eval *e, lw_opcode op, lw_prim in,
                                    lw_prim out, int64_t n, const void *a,
                                    const void *b, void *dst);

#endif
