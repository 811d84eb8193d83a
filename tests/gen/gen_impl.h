/* Shared by the files of tests/gen only: the state of a module being made, and
 * the makers. A maker consumes a by one opcode; NULL where that is not legal.
 * Its result is an array: of an op that gives a tuple it is an element. */
#ifndef LW_TESTS_GEN_IMPL_H
#define LW_TESTS_GEN_IMPL_H

#include <string.h>

#include "gen.h"

enum { GEN_MAX_RANK = 4, GEN_POOL = 256 };

typedef struct {
  lw_context *ctx;
  lw_module *m;
  lw_comp *c; /* where instructions go */
  lw_rand *r;
  lw_gen_options o;
  lw_inst *pool[GEN_POOL];
  int n_pool;
  bool in_body; /* no new parameters here */
  int depth;
} gen;

static inline int64_t gen_below(gen *g, int64_t n) {
  return lw_rand_below(g->r, n);
}
static inline bool gen_chance(gen *g, int percent) {
  return gen_below(g, 100) < percent;
}
static inline bool gen_is_fp(lw_prim t) { return lw_prim_is_float(t); }
static inline bool gen_is_cx(lw_prim t) { return lw_prim_is_complex(t); }
static inline bool gen_is_int(lw_prim t) { return lw_prim_is_int(t); }

/* ---- gen.c ---- */
lw_prim gen_any_type(gen *g);
const lw_shape *gen_shape(gen *g, lw_prim t, int32_t rank, const int64_t *dims);
const lw_shape *gen_like(gen *g, const lw_shape *s, lw_prim t);
int64_t gen_some_dim(gen *g);
lw_inst *gen_op(gen *g, lw_opcode o, const lw_shape *s, int n,
                lw_inst *const *ops);
lw_inst *gen_op1(gen *g, lw_opcode o, const lw_shape *s, lw_inst *a);
lw_inst *gen_op2(gen *g, lw_opcode o, const lw_shape *s, lw_inst *a,
                 lw_inst *b);
lw_inst *gen_gte(lw_comp *c, lw_inst *tuple, int64_t k);
lw_inst *gen_scalar_const(gen *g, lw_prim t, double v);
lw_inst *gen_array_const(gen *g, const lw_shape *s);
/* A value of this shape: of the pool, a parameter, or a constant. */
lw_inst *gen_value(gen *g, const lw_shape *s);
lw_inst *gen_step(gen *g, lw_inst *a);

/* ---- gen_elem.c ---- */
bool gen_takes(lw_opcode o, lw_prim t);
lw_inst *gen_make_unary(gen *g, lw_opcode o, lw_inst *a);
lw_inst *gen_make_binary(gen *g, lw_opcode o, lw_inst *a);
lw_inst *gen_make_compare(gen *g, lw_inst *a);
lw_inst *gen_make_select(gen *g, lw_inst *a);
lw_inst *gen_make_clamp(gen *g, lw_inst *a);
lw_inst *gen_make_convert(gen *g, lw_inst *a);
lw_inst *gen_make_bitcast_convert(gen *g, lw_inst *a);
lw_inst *gen_make_stochastic(gen *g, lw_inst *a);

/* ---- gen_move.c ---- */
lw_inst *gen_make_broadcast(gen *g, lw_inst *a);
lw_inst *gen_make_reshape(gen *g, lw_inst *a);
lw_inst *gen_make_transpose(gen *g, lw_inst *a);
lw_inst *gen_make_slice(gen *g, lw_inst *a);
lw_inst *gen_make_pad(gen *g, lw_inst *a);
lw_inst *gen_make_concatenate(gen *g, lw_inst *a);
lw_inst *gen_make_reverse(gen *g, lw_inst *a);
lw_inst *gen_make_dynamic_slice(gen *g, lw_inst *a);
lw_inst *gen_make_update_slice(gen *g, lw_inst *a);
lw_inst *gen_make_gather(gen *g, lw_inst *a);
lw_inst *gen_make_iota(gen *g, lw_inst *a);
/* A constant of a's shape, its values written out. */
lw_inst *gen_make_constant(gen *g, lw_inst *a);

/* ---- gen_fold.c ---- */
lw_comp *gen_binary_comp(gen *g, lw_opcode o, lw_prim t);
lw_inst *gen_make_reduce(gen *g, lw_inst *a);
lw_inst *gen_make_window(gen *g, lw_inst *a);
lw_inst *gen_make_select_scatter(gen *g, lw_inst *a);
lw_inst *gen_make_dot(gen *g, lw_inst *a);
lw_inst *gen_make_convolution(gen *g, lw_inst *a);
lw_inst *gen_make_scatter(gen *g, lw_inst *a);
lw_inst *gen_make_sort(gen *g, lw_inst *a);
lw_inst *gen_make_topk(gen *g, lw_inst *a);

/* ---- gen_flow.c ---- */
lw_inst *gen_make_while(gen *g, lw_inst *a);
lw_inst *gen_make_conditional(gen *g, lw_inst *a);
lw_inst *gen_make_call(gen *g, lw_inst *a);
lw_inst *gen_make_map(gen *g, lw_inst *a);
lw_inst *gen_make_barrier(gen *g, lw_inst *a);
lw_inst *gen_make_tuple_element(gen *g, lw_inst *a);
lw_inst *gen_make_batch_norm(gen *g, lw_opcode o, lw_inst *a);
lw_inst *gen_make_fft(gen *g, lw_inst *a);
lw_inst *gen_make_cholesky(gen *g, lw_inst *a);
lw_inst *gen_make_triangular_solve(gen *g, lw_inst *a);
lw_inst *gen_make_random_bits(gen *g, lw_inst *a);
lw_inst *gen_make_dimension_size(gen *g, lw_inst *a);

#endif
