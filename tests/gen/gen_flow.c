/* Control flow, tuples, and operations that others define. */
#include "gen_impl.h"

/* ---- control flow ---- */

/* A few steps on scalars or arrays of one shape inside a fresh computation,
 * whose result has the shape of v again. */
static lw_inst *body_chain(gen *g, lw_comp *c, lw_inst *v) {
  gen inner = *g;
  inner.c = c;
  inner.in_body = true;
  inner.n_pool = 0;
  inner.depth++;
  inner.pool[inner.n_pool++] = v;
  lw_inst *x = v;
  for (int k = 0; k < 4; k++) {
    lw_inst *y = gen_step(&inner, x);
    if (y && y->shape->no_layout == v->shape->no_layout) x = y;
    if (y && lw_shape_is_array(y->shape) && inner.n_pool < GEN_POOL)
      inner.pool[inner.n_pool++] = y;
  }
  return x;
}

/* i < n, or i < n and i < a value nobody knows before: the state's last. */
static lw_comp *loop_condition(gen *g, const lw_shape *state, bool unknown) {
  lw_comp *c = lw_comp_new(g->m, "cond");
  gen in = *g;
  in.c = c;
  lw_inst *p = lw_inst_parameter(c, 0, state, "state"), *i = gen_gte(c, p, 0);
  const lw_shape *pred = gen_shape(g, LW_PRED, 0, NULL);
  lw_inst *n = gen_scalar_const(&in, LW_S32, (double)gen_below(g, 5));
  c->root = gen_op2(&in, LW_OP_COMPARE, pred, i, n);
  lw_inst_set_i64(c->root, LW_ATTR_DIRECTION, LW_CMP_LT);
  if (!unknown) return c;
  lw_inst *k = gen_gte(c, p, state->n_elems - 1);
  lw_inst *also = gen_op2(&in, LW_OP_COMPARE, pred, i, k);
  lw_inst_set_i64(also, LW_ATTR_DIRECTION, LW_CMP_LT);
  c->root = gen_op2(&in, LW_OP_AND, pred, c->root, also);
  return c;
}

/* for (i = 0; i < n; i++) x = f(x); with a third value of x's shape, they
 * change places each time round; a fourth is an unknown bound. */
lw_inst *gen_make_while(gen *g, lw_inst *a) {
  if (g->depth > 1 || a->shape->elements > 4000) return NULL;
  bool swap = gen_chance(g, 50), unknown = swap && gen_chance(g, 50);
  int n = 2 + swap + unknown;
  const lw_shape *s32 = gen_shape(g, LW_S32, 0, NULL);
  const lw_shape *elems[] = {s32, a->shape, a->shape, s32};
  const lw_shape *state = lw_shape_tuple(g->ctx, n, elems);
  lw_comp *cond = loop_condition(g, state, unknown);
  lw_comp *body = lw_comp_new(g->m, "body");
  gen in = *g;
  in.c = body;
  lw_inst *p = lw_inst_parameter(body, 0, state, "state");
  lw_inst *x = gen_gte(body, p, 1);
  lw_inst *y = swap ? gen_gte(body, p, 2) : x;
  lw_inst *next[] = {gen_op2(&in, LW_OP_ADD, s32, gen_gte(body, p, 0),
                             gen_scalar_const(&in, LW_S32, 1)),
                     gen_chance(g, 30) && swap ? y : body_chain(g, body, y), x,
                     unknown ? gen_gte(body, p, 3) : NULL};
  body->root = gen_op(&in, LW_OP_TUPLE, state, n, next);
  lw_inst *first[4] = {gen_scalar_const(g, LW_S32, 0), a};
  if (swap) first[2] = gen_value(g, a->shape);
  if (unknown) first[3] = gen_value(g, s32);
  lw_inst *w =
      gen_op1(g, LW_OP_WHILE, state, gen_op(g, LW_OP_TUPLE, state, n, first));
  lw_inst_set_comp(w, LW_ATTR_CONDITION, cond);
  lw_inst_set_comp(w, LW_ATTR_BODY, body);
  return gen_gte(g->c, w, 1 + (swap && gen_chance(g, 50)));
}

static lw_comp *branch_comp(gen *g, const lw_shape *s) {
  lw_comp *c = lw_comp_new(g->m, "branch");
  c->root = body_chain(g, c, lw_inst_parameter(c, 0, s, "x"));
  return c;
}

lw_inst *gen_make_conditional(gen *g, lw_inst *a) {
  if (g->depth > 1) return NULL;
  if (gen_chance(g, 50)) {
    lw_inst *p = gen_value(g, gen_shape(g, LW_PRED, 0, NULL));
    lw_comp *t = branch_comp(g, a->shape), *f = branch_comp(g, a->shape);
    lw_inst *ops[] = {p, a, a};
    lw_inst *i = gen_op(g, LW_OP_CONDITIONAL, a->shape, 3, ops);
    lw_inst_set_comp(i, LW_ATTR_TRUE_COMPUTATION, t);
    lw_inst_set_comp(i, LW_ATTR_FALSE_COMPUTATION, f);
    return i;
  }
  int n = 1 + (int)gen_below(g, 4);
  lw_inst *ops[5] = {gen_value(g, gen_shape(g, LW_S32, 0, NULL))};
  lw_comp *comps[4];
  for (int k = 0; k < n; k++) {
    comps[k] = branch_comp(g, a->shape);
    ops[k + 1] = k && gen_chance(g, 30) ? gen_value(g, a->shape) : a;
  }
  lw_inst *i = gen_op(g, LW_OP_CONDITIONAL, a->shape, n + 1, ops);
  lw_attr at = {.id = LW_ATTR_BRANCH_COMPUTATIONS, .u.comps = {n, comps}};
  lw_inst_set_attr(i, &at);
  return i;
}

lw_inst *gen_make_call(gen *g, lw_inst *a) {
  if (g->depth > 1) return NULL;
  lw_comp *c = branch_comp(g, a->shape);
  lw_inst *i = gen_op1(g, LW_OP_CALL, a->shape, a);
  lw_inst_set_comp(i, LW_ATTR_TO_APPLY, c);
  return i;
}

/* f(x, y) = op(op(x, y), x) on scalars. */
lw_inst *gen_make_map(gen *g, lw_inst *a) {
  lw_prim t = a->shape->type;
  lw_opcode o = t == LW_PRED ? LW_OP_XOR : LW_OP_ADD;
  if (!gen_takes(o, t)) return NULL;
  lw_comp *c = lw_comp_new(g->m, "mapped");
  const lw_shape *s = gen_shape(g, t, 0, NULL);
  lw_inst *x = lw_inst_parameter(c, 0, s, "x");
  lw_inst *y = lw_inst_parameter(c, 1, s, "y");
  lw_inst *z = lw_inst_new(c, o, s, NULL, 2, (lw_inst *[]){x, y});
  o = t == LW_PRED ? LW_OP_OR : LW_OP_MULTIPLY;
  c->root = lw_inst_new(c, o, s, NULL, 2, (lw_inst *[]){z, x});
  lw_inst *i = gen_op2(g, LW_OP_MAP, a->shape, a, gen_value(g, a->shape));
  int64_t dims[GEN_MAX_RANK];
  for (int32_t d = 0; d < a->shape->rank; d++) dims[d] = d;
  lw_inst_set_i64s(i, LW_ATTR_DIMENSIONS, a->shape->rank, dims);
  lw_inst_set_comp(i, LW_ATTR_TO_APPLY, c);
  return i;
}

/* ---- tuples ---- */

static lw_inst *pair_of(gen *g, lw_inst *a) {
  const lw_shape *s[] = {a->shape, gen_shape(g, LW_S32, 0, NULL)};
  return gen_op2(g, LW_OP_TUPLE, lw_shape_tuple(g->ctx, 2, s), a,
                 gen_value(g, s[1]));
}

lw_inst *gen_make_barrier(gen *g, lw_inst *a) {
  if (gen_chance(g, 50)) return gen_op1(g, LW_OP_OPT_BARRIER, a->shape, a);
  lw_inst *t = pair_of(g, a);
  return gen_gte(g->c, gen_op1(g, LW_OP_OPT_BARRIER, t->shape, t), 0);
}

lw_inst *gen_make_tuple_element(gen *g, lw_inst *a) {
  return gen_gte(g->c, pair_of(g, a), 0);
}

lw_inst *gen_make_dimension_size(gen *g, lw_inst *a) {
  if (!a->shape->rank) return NULL;
  int64_t d = gen_below(g, a->shape->rank);
  lw_inst *i =
      gen_op1(g, LW_OP_GET_DIMENSION_SIZE, gen_shape(g, LW_S32, 0, NULL), a);
  lw_inst_set_i64s(i, LW_ATTR_DIMENSIONS, 1, &d);
  return i;
}

/* ---- operations that others define ---- */

static void set_f64(lw_inst *i, lw_attr_id id, double v) {
  lw_attr at = {.id = id, .u.f = v};
  lw_inst_set_attr(i, &at);
}

lw_inst *gen_make_batch_norm(gen *g, lw_opcode o, lw_inst *a) {
  const lw_shape *s = a->shape;
  lw_prim t = s->type;
  if (t != LW_F32 && t != LW_F64 && t != LW_BF16 && t != LW_F16) return NULL;
  if (s->rank < 2 || !s->elements) return NULL;
  int64_t f = gen_below(g, s->rank);
  const lw_shape *v = gen_shape(g, t, 1, &s->dims[f]);
  bool training = o == LW_OP_BATCH_NORM_TRAINING;
  bool grad = o == LW_OP_BATCH_NORM_GRAD;
  lw_inst *ops[5] = {a};
  int n = training ? 3 : 5;
  for (int k = 1; k < n; k++) ops[k] = gen_value(g, grad && k == 4 ? s : v);
  const lw_shape *elems[] = {s, v, v};
  bool tuple = training || grad;
  lw_inst *i =
      gen_op(g, o, tuple ? lw_shape_tuple(g->ctx, 3, elems) : s, n, ops);
  set_f64(i, LW_ATTR_EPSILON, 0.001);
  lw_inst_set_i64(i, LW_ATTR_FEATURE_INDEX, f);
  return tuple ? gen_gte(g->c, i, gen_chance(g, 60) ? 0 : 1 + gen_below(g, 2))
               : i;
}

lw_inst *gen_make_fft(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  bool cx = gen_is_cx(s->type), real = s->type == LW_F32 || s->type == LW_F64;
  if (!s->rank || !s->elements || s->elements > 4000 || (!cx && !real))
    return NULL;
  int64_t dims[GEN_MAX_RANK], n = s->dims[s->rank - 1];
  memcpy(dims, s->dims, (size_t)s->rank * sizeof *dims);
  lw_fft_type kind = real ? LW_RFFT : (lw_fft_type)gen_below(g, 2);
  lw_prim t = real ? (s->type == LW_F32 ? LW_C64 : LW_C128) : s->type;
  if (cx && n > 1 && gen_chance(g, 30)) {
    kind = LW_IRFFT;
    t = lw_prim_part(t);
    n = 2 * (n - 1);
  }
  dims[s->rank - 1] = kind == LW_RFFT ? n / 2 + 1 : n;
  lw_inst *i = gen_op1(g, LW_OP_FFT, gen_shape(g, t, s->rank, dims), a);
  lw_inst_set_i64(i, LW_ATTR_FFT_TYPE, kind);
  lw_inst_set_i64s(i, LW_ATTR_FFT_LENGTH, 1, &n);
  return i;
}

static bool is_square(const lw_shape *s) {
  return s->rank >= 2 && s->elements &&
         s->dims[s->rank - 1] == s->dims[s->rank - 2] &&
         (s->type == LW_F32 || s->type == LW_F64 || gen_is_cx(s->type));
}

lw_inst *gen_make_cholesky(gen *g, lw_inst *a) {
  if (!is_square(a->shape)) return NULL;
  lw_inst *i = gen_op1(g, LW_OP_CHOLESKY, a->shape, a);
  lw_inst_set_i64(i, LW_ATTR_LOWER, gen_below(g, 2));
  return i;
}

lw_inst *gen_make_triangular_solve(gen *g, lw_inst *a) {
  if (!is_square(a->shape)) return NULL;
  lw_inst *b = gen_value(g, a->shape);
  bool swap = gen_chance(g, 50);
  lw_inst *i =
      gen_op2(g, LW_OP_TRIANGULAR_SOLVE, a->shape, swap ? b : a, swap ? a : b);
  lw_inst_set_i64(i, LW_ATTR_LEFT_SIDE, gen_below(g, 2));
  lw_inst_set_i64(i, LW_ATTR_LOWER, gen_below(g, 2));
  lw_inst_set_i64(i, LW_ATTR_UNIT_DIAGONAL, gen_below(g, 2));
  lw_inst_set_i64(i, LW_ATTR_TRANSPOSE_A, LW_TR_NO + gen_below(g, 3));
  return i;
}

/* Bits of a's shape, from a state of its own. */
lw_inst *gen_make_random_bits(gen *g, lw_inst *a) {
  static const lw_prim types[] = {LW_U32, LW_U64, LW_U8, LW_U16};
  bool philox = gen_chance(g, 50);
  int64_t words = philox && gen_chance(g, 50) ? 3 : 2;
  lw_inst *state = gen_value(g, gen_shape(g, LW_U64, 1, &words));
  const lw_shape *bits = gen_like(g, a->shape, types[gen_below(g, 4)]);
  const lw_shape *elems[] = {state->shape, bits};
  lw_inst *i = gen_op1(g, LW_OP_RNG_BIT_GENERATOR,
                       lw_shape_tuple(g->ctx, 2, elems), state);
  lw_inst_set_i64(i, LW_ATTR_RNG_ALGORITHM,
                  philox ? LW_RNG_PHILOX : LW_RNG_THREE_FRY);
  return gen_gte(g->c, i, 1);
}
