#include "gen_impl.h"

/* ---- choices ---- */

uint64_t lw_rand_next(lw_rand *r) {
  uint64_t bytes = 0;
  if (r->len) {
    size_t n = r->len < 4 ? r->len : 4;
    memcpy(&bytes, r->data, n);
    r->data += n;
    r->len -= n;
  }
  uint64_t z = (r->state += 0x9e3779b97f4a7c15ull + bytes);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

int64_t lw_rand_below(lw_rand *r, int64_t n) {
  return n > 0 ? (int64_t)(lw_rand_next(r) % (uint64_t)n) : 0;
}

/* ---- values ---- */

/* The common ones first and often; XLA:CPU compiles the first N_XLA_TYPES. */
static const lw_prim all_types[] = {
    LW_F32,        LW_F32,        LW_F32,
    LW_F32,        LW_F64,        LW_F32,
    LW_F32,        LW_F32,        LW_F32,
    LW_F32,        LW_F32,        LW_F32,
    LW_F32,        LW_F32,        LW_F32,
    LW_S32,        LW_BF16,       LW_BF16,
    LW_F16,        LW_F64,        LW_F64,
    LW_S32,        LW_PRED,       LW_S8,
    LW_U8,         LW_S16,        LW_U16,
    LW_U32,        LW_S64,        LW_U64,
    LW_C64,        LW_C128,       LW_F8E5M2,
    LW_F8E4M3FN,   LW_S4,         LW_U4,
    LW_F8E4M3,     LW_F8E3M4,     LW_F8E4M3B11FNUZ,
    LW_F8E5M2FNUZ, LW_F8E4M3FNUZ, LW_F8E8M0FNU,
    LW_F4E2M1FN};
enum { N_TYPES = sizeof all_types / sizeof all_types[0], N_XLA_TYPES = 30 };

lw_prim gen_any_type(gen *g) {
  return all_types[gen_below(g, g->o.xla_runnable ? N_XLA_TYPES : N_TYPES)];
}

const lw_shape *gen_shape(gen *g, lw_prim t, int32_t rank,
                          const int64_t *dims) {
  const lw_shape *s = lw_shape_array(g->ctx, t, rank, dims);
  return lw_shape_fill_layouts(g->ctx, s);
}

const lw_shape *gen_like(gen *g, const lw_shape *s, lw_prim t) {
  return gen_shape(g, t, s->rank, s->dims);
}

int64_t gen_some_dim(gen *g) {
  static const int64_t sizes[] = {1,  2,  3,  4,  5,  7,  8,   13,
                                  16, 17, 31, 33, 64, 65, 100, 130};
  /* over the blocks of the fold orders: 256 and 4,096 */
  static const int64_t long_ones[] = {257, 300, 600, 777, 1040, 4099, 9000};
  if (gen_chance(g, 6)) return long_ones[gen_below(g, 7)];
  return sizes[gen_below(g, sizeof sizes / sizeof sizes[0])];
}

static const lw_shape *some_shape(gen *g, lw_prim t) {
  int64_t dims[GEN_MAX_RANK], n = 1;
  int32_t rank = (int32_t)gen_below(g, GEN_MAX_RANK + 1);
  for (int32_t i = 0; i < rank; i++) {
    dims[i] = gen_chance(g, 2) ? 0 : gen_some_dim(g);
    if (i && gen_chance(g, 10)) dims[i] = dims[i - 1];
    if (n * dims[i] > g->o.max_elements) dims[i] = 1;
    n *= dims[i];
  }
  return gen_shape(g, t, rank, dims);
}

lw_inst *gen_op(gen *g, lw_opcode o, const lw_shape *s, int n,
                lw_inst *const *ops) {
  return lw_inst_new(g->c, o, s, NULL, n, ops);
}
lw_inst *gen_op1(gen *g, lw_opcode o, const lw_shape *s, lw_inst *a) {
  return gen_op(g, o, s, 1, &a);
}
lw_inst *gen_op2(gen *g, lw_opcode o, const lw_shape *s, lw_inst *a,
                 lw_inst *b) {
  return gen_op(g, o, s, 2, (lw_inst *[]){a, b});
}

lw_inst *gen_scalar_const(gen *g, lw_prim t, double v) {
  lw_literal *l;
  lw_status st = lw_literal_new(g->m->arena, gen_shape(g, t, 0, NULL), &l);
  LW_ASSERT(!st);
  lw_literal_set_f64(l, 0, 0, v);
  return lw_inst_constant(g->c, l);
}

static lw_inst *splat(gen *g, lw_inst *scalar, const lw_shape *s) {
  lw_inst *b =
      gen_op1(g, LW_OP_BROADCAST, gen_like(g, s, scalar->shape->type), scalar);
  lw_inst_set_i64s(b, LW_ATTR_DIMENSIONS, 0, NULL);
  return b;
}

/* Values written out one by one: small ones, and a few that hurt. */
lw_inst *gen_array_const(gen *g, const lw_shape *s) {
  static const double values[] = {0, -0.0, 1, -1, 2, 0.5, 3, -0.75, 10, 1e-40};
  lw_literal *l;
  lw_status st = lw_literal_new(g->m->arena, s, &l);
  LW_ASSERT(!st);
  bool floats = gen_is_fp(s->type) || gen_is_cx(s->type);
  bool extreme = (s->type == LW_F32 || s->type == LW_F64) && gen_chance(g, 20);
  for (int64_t k = 0; k < s->elements; k++) {
    double v = floats ? values[gen_below(g, 10)] : (double)gen_below(g, 7);
    if (s->type == LW_PRED) v = (double)gen_below(g, 2);
    if (extreme && gen_chance(g, 10)) v = gen_chance(g, 50) ? 1e300 * 1e300 : 0;
    lw_literal_set_f64(l, k, 0, v);
    if (gen_is_cx(s->type))
      lw_literal_set_f64(l, k, 1, values[gen_below(g, 9)]);
  }
  return lw_inst_constant(g->c, l);
}

lw_inst *gen_gte(lw_comp *c, lw_inst *t, int64_t k) {
  lw_inst *i =
      lw_inst_new(c, LW_OP_GET_TUPLE_ELEMENT, t->shape->elems[k], NULL, 1, &t);
  lw_inst_set_i64(i, LW_ATTR_INDEX, k);
  return i;
}

/* A value of this shape: one of the pool, a parameter, or a constant. */
lw_inst *gen_value(gen *g, const lw_shape *s) {
  for (int tries = 0; tries < 12 && g->n_pool; tries++) {
    lw_inst *v = g->pool[gen_below(g, g->n_pool)];
    if (v->shape->no_layout == s->no_layout) return v;
  }
  if (!g->in_body && gen_chance(g, 70)) {
    lw_inst *p = lw_inst_parameter(g->c, (int64_t)g->c->params.len, s, "p");
    if (g->n_pool < GEN_POOL) g->pool[g->n_pool++] = p;
    return p;
  }
  if (s->elements <= 300 && s->rank && gen_chance(g, 30))
    return gen_array_const(g, s);
  static const double values[] = {0, 1, -1, 2, 0.5, 3, -0.75, 10};
  lw_inst *k = gen_scalar_const(g, s->type, values[gen_below(g, 8)]);
  return s->rank ? splat(g, k, s) : k;
}

/* ---- the one operation ---- */

static const lw_opcode opcodes[] = {
#define O(e, name, arity, flags) LW_OP_##e,
#define V -1
#include "hlo/opcodes.def"
#undef V
#undef O
};

static bool is_heavy(lw_opcode o) {
  switch ((int)o) {
    case LW_OP_DOT:
    case LW_OP_CONVOLUTION:
    case LW_OP_SORT:
    case LW_OP_TOPK:
    case LW_OP_REDUCE_WINDOW:
    case LW_OP_SELECT_AND_SCATTER:
    case LW_OP_SCATTER:
    case LW_OP_FFT:
    case LW_OP_CHOLESKY:
    case LW_OP_TRIANGULAR_SOLVE:
    case LW_OP_BATCH_NORM_TRAINING:
    case LW_OP_BATCH_NORM_GRAD:
    case LW_OP_RNG_BIT_GENERATOR:
      return true;
    default:
      return false;
  }
}

/* Consume a by opcode o; NULL where that is not legal or not made here. */
static lw_inst *consume(gen *g, lw_opcode o, lw_inst *a) {
  switch ((int)o) {
    case LW_OP_COMPARE:
      return gen_make_compare(g, a);
    case LW_OP_SELECT:
      return gen_make_select(g, a);
    case LW_OP_CLAMP:
      return gen_make_clamp(g, a);
    case LW_OP_CONVERT:
      return gen_make_convert(g, a);
    case LW_OP_BITCAST_CONVERT:
      return gen_make_bitcast_convert(g, a);
    case LW_OP_COPY:
      return gen_op1(g, o, a->shape, a);
    case LW_OP_BROADCAST:
      return gen_make_broadcast(g, a);
    case LW_OP_RESHAPE:
      return gen_make_reshape(g, a);
    case LW_OP_TRANSPOSE:
      return gen_make_transpose(g, a);
    case LW_OP_SLICE:
      return gen_make_slice(g, a);
    case LW_OP_PAD:
      return gen_make_pad(g, a);
    case LW_OP_CONCATENATE:
      return gen_make_concatenate(g, a);
    case LW_OP_REVERSE:
      return gen_make_reverse(g, a);
    case LW_OP_DYNAMIC_SLICE:
      return gen_make_dynamic_slice(g, a);
    case LW_OP_DYNAMIC_UPDATE_SLICE:
      return gen_make_update_slice(g, a);
    case LW_OP_GATHER:
      return gen_make_gather(g, a);
    case LW_OP_IOTA:
      return gen_make_iota(g, a);
    case LW_OP_REDUCE:
      return gen_make_reduce(g, a);
    case LW_OP_REDUCE_WINDOW:
      return gen_make_window(g, a);
    case LW_OP_DOT:
      return gen_make_dot(g, a);
    case LW_OP_SCATTER:
      return gen_make_scatter(g, a);
    case LW_OP_SORT:
      return gen_make_sort(g, a);
    case LW_OP_WHILE:
      return g->o.control_flow ? gen_make_while(g, a) : NULL;
    case LW_OP_CONDITIONAL:
      return g->o.control_flow ? gen_make_conditional(g, a) : NULL;
    case LW_OP_CALL:
      return g->o.control_flow ? gen_make_call(g, a) : NULL;
    case LW_OP_MAP:
      return g->o.control_flow ? gen_make_map(g, a) : NULL;
    case LW_OP_OPT_BARRIER:
      return gen_make_barrier(g, a);
    case LW_OP_GET_TUPLE_ELEMENT:
      return gen_make_tuple_element(g, a);
    case LW_OP_BATCH_NORM_TRAINING:
    case LW_OP_BATCH_NORM_INFERENCE:
    case LW_OP_BATCH_NORM_GRAD:
      return gen_make_batch_norm(g, o, a);
    case LW_OP_FFT:
      return gen_make_fft(g, a);
    case LW_OP_CHOLESKY:
      return gen_make_cholesky(g, a);
    case LW_OP_TRIANGULAR_SOLVE:
      return gen_make_triangular_solve(g, a);
    case LW_OP_RNG_BIT_GENERATOR:
      return gen_make_random_bits(g, a);
    case LW_OP_GET_DIMENSION_SIZE:
      return gen_make_dimension_size(g, a);
    case LW_OP_CONVOLUTION:
      return gen_make_convolution(g, a);
    case LW_OP_SELECT_AND_SCATTER:
      return gen_make_select_scatter(g, a);
    case LW_OP_TOPK:
      return gen_make_topk(g, a);
    case LW_OP_STOCHASTIC_CONVERT:
      return gen_make_stochastic(g, a);
    case LW_OP_CONSTANT:
      return gen_make_constant(g, a);
    default:
      break;
  }
  unsigned flags = lw_opcode_table[o].flags;
  if (flags & LW_OPF_UN) return gen_make_unary(g, o, a);
  return flags & LW_OPF_BIN ? gen_make_binary(g, o, a) : NULL;
}

static bool xla_lacks(lw_opcode o) {
  switch ((int)o) {
    case LW_OP_ACOS:
    case LW_OP_ACOSH:
    case LW_OP_ASIN:
    case LW_OP_ASINH:
    case LW_OP_ATANH:
    case LW_OP_COSH:
    case LW_OP_SINH:
    case LW_OP_MULHI:
    case LW_OP_TOPK:
    case LW_OP_STOCHASTIC_CONVERT:
      return true;
    default:
      return false;
  }
}

/* What real programs are made of. */
static const lw_opcode common[] = {LW_OP_ADD,
                                   LW_OP_ADD,
                                   LW_OP_ADD,
                                   LW_OP_ADD,
                                   LW_OP_MULTIPLY,
                                   LW_OP_MULTIPLY,
                                   LW_OP_MULTIPLY,
                                   LW_OP_MULTIPLY,
                                   LW_OP_SUBTRACT,
                                   LW_OP_SUBTRACT,
                                   LW_OP_DIVIDE,
                                   LW_OP_MAXIMUM,
                                   LW_OP_CONVERT,
                                   LW_OP_REDUCE,
                                   LW_OP_REDUCE,
                                   LW_OP_DOT,
                                   LW_OP_DOT,
                                   LW_OP_EXPONENTIAL,
                                   LW_OP_SELECT,
                                   LW_OP_BROADCAST,
                                   LW_OP_TRANSPOSE,
                                   LW_OP_RESHAPE,
                                   LW_OP_TANH,
                                   LW_OP_COMPARE,
                                   LW_OP_LOG,
                                   LW_OP_DYNAMIC_UPDATE_SLICE,
                                   LW_OP_DYNAMIC_UPDATE_SLICE,
                                   LW_OP_BITCAST_CONVERT};
enum { N_COMMON = sizeof common / sizeof common[0] };

/* Nearly half of the steps are common ones; of the others elementwise ops come
 * twice as often as the rest. */
lw_inst *gen_step(gen *g, lw_inst *a) {
  for (int tries = 0; tries < 30; tries++) {
    bool usual = gen_chance(g, 45);
    lw_opcode o = usual ? common[gen_below(g, N_COMMON)]
                        : opcodes[gen_below(g, LW_OPCODE_COUNT)];
    if (!usual && !lw_opcode_is_elementwise(o) && gen_chance(g, 50)) continue;
    if (is_heavy(o) && (!g->o.heavy || gen_chance(g, 50))) continue;
    if (g->o.xla_runnable && xla_lacks(o)) continue;
    lw_inst *i = consume(g, o, a);
    if (i) return i;
  }
  return NULL;
}

static void finish(gen *g) {
  lw_inst *roots[8];
  const lw_shape *shapes[8];
  int n = 0;
  for (lw_inst *i = g->c->last; i && n < 4; i = i->prev)
    if (i->n_uses == 0 && lw_shape_is_array(i->shape) &&
        i->opcode != LW_OP_PARAMETER) {
      shapes[n] = i->shape;
      roots[n++] = i;
    }
  if (!n) { /* parameters only: the last one is the result */
    g->c->root = g->c->last;
    return;
  }
  g->c->root = n == 1 ? roots[0]
                      : gen_op(g, LW_OP_TUPLE,
                               lw_shape_tuple(g->ctx, n, shapes), n, roots);
}

static gen start(lw_context *ctx, lw_rand *r, const lw_gen_options *o) {
  gen g = {.ctx = ctx, .r = r};
  if (o) g.o = *o;
  if (!g.o.max_steps) g.o.max_steps = 24;
  if (!g.o.max_elements) g.o.max_elements = 20000;
  g.m = lw_module_new(ctx, "random");
  g.c = lw_comp_new(g.m, "main");
  g.m->entry = g.c;
  return g;
}

/* A product over several blocks of numerics.md 7, to go on from. */
static lw_inst *long_product(gen *g) {
  lw_prim t = gen_chance(g, 70) ? LW_F32 : LW_F64;
  int64_t k = 520 + gen_below(g, 600), one = 1, zero = 0;
  int64_t a[] = {1 + gen_below(g, 9), k}, b[] = {k, 1 + gen_below(g, 9)};
  int64_t out[] = {a[0], b[1]};
  lw_inst *x = lw_inst_parameter(g->c, 0, gen_shape(g, t, 2, a), "p");
  lw_inst *y = lw_inst_parameter(g->c, 1, gen_shape(g, t, 2, b), "p");
  lw_inst *i = gen_op2(g, LW_OP_DOT, gen_shape(g, t, 2, out), x, y);
  lw_inst_set_i64s(i, LW_ATTR_LHS_CONTRACTING_DIMS, 1, &one);
  lw_inst_set_i64s(i, LW_ATTR_RHS_CONTRACTING_DIMS, 1, &zero);
  return i;
}

lw_module *lw_gen_module(lw_context *ctx, lw_rand *r,
                         const lw_gen_options *options) {
  gen g = start(ctx, r, options);
  bool product = g.o.heavy && g.o.max_elements >= 20000 && gen_chance(&g, 8);
  lw_inst *a = product ? long_product(&g)
                       : gen_value(&g, some_shape(&g, gen_any_type(&g)));
  for (int k = 0; k < g.o.max_steps; k++) {
    lw_inst *i = gen_step(&g, a);
    if (!i) {
      a = gen_value(&g, some_shape(&g, gen_any_type(&g)));
      continue;
    }
    if (g.n_pool < GEN_POOL) g.pool[g.n_pool++] = i;
    /* mostly go on from the newest value: chains are what fusion eats */
    a = gen_chance(&g, 75) ? i : g.pool[gen_below(&g, g.n_pool)];
  }
  finish(&g);
  return g.m;
}

/* Takes out what a failed attempt left: everything unused after mark. */
static void drop_unused(gen *g, lw_inst *mark) {
  for (lw_inst *i = g->c->last, *prev; i && i != mark; i = prev) {
    prev = i->prev;
    if (i->n_uses || i->opcode == LW_OP_PARAMETER) continue;
    int n = 0;
    for (int k = 0; k < g->n_pool; k++)
      if (g->pool[k] != i) g->pool[n++] = g->pool[k];
    g->n_pool = n;
    lw_inst_remove(i);
  }
}

/* ---- pairs ---- */

static const lw_gen_options pair_options = {
    .max_steps = 1, .control_flow = true, .heavy = true};

/* The kth of the shapes that pairs start from. */
enum { N_BASES = 4 * LW_PRIM_COUNT };
static const lw_shape *base(gen *g, int k) {
  static const int64_t dims[] = {6, 6, 6, 4};
  int32_t rank = k % 4;
  if (rank == 3) return gen_shape(g, (lw_prim)(k / 4), 3, (int64_t[]){4, 6, 6});
  return gen_shape(g, (lw_prim)(k / 4), rank, dims);
}

static bool is_made(lw_prim t) {
  for (int k = 0; k < N_TYPES; k++)
    if (all_types[k] == t) return true;
  return false;
}

/* The instruction behind a tuple's element. */
static lw_inst *behind(lw_inst *i) {
  return i->opcode == LW_OP_GET_TUPLE_ELEMENT ? lw_inst_operand(i, 0) : i;
}

static bool is_result_of(lw_inst *i, lw_opcode o) {
  return i && lw_shape_is_array(i->shape) &&
         (i->opcode == o || behind(i)->opcode == o);
}

/* c takes p, itself or in a tuple. */
static bool takes_value(lw_inst *c, const lw_inst *p) {
  if (c == p) return false;
  c = behind(c);
  for (int32_t s = 0; s < c->n_operands; s++) {
    lw_inst *x = lw_inst_operand(c, s);
    if (x == p) return true;
    for (int32_t k = 0; x->opcode == LW_OP_TUPLE && k < x->n_operands; k++)
      if (lw_inst_operand(x, k) == p) return true;
  }
  return false;
}

static uint8_t rank_bit(const lw_shape *s) {
  return s->rank <= GEN_MAX_RANK ? (uint8_t)(1u << s->rank) : 0;
}

static bool meet(const lw_gen_kinds *a, const lw_gen_kinds *b) {
  for (int t = 0; t < LW_PRIM_COUNT; t++)
    if (a->ranks[t] & b->ranks[t]) return true;
  return false;
}

bool lw_gen_pair_is_legal(const lw_gen_kinds *gives,
                          const lw_gen_kinds *takes) {
  return meet(gives, takes);
}

void lw_gen_opcode_kinds(lw_context *ctx, lw_opcode o, lw_gen_kinds *gives,
                         lw_gen_kinds *takes) {
  lw_rand r = {.state = (uint64_t)o};
  gen g = start(ctx, &r, &pair_options);
  for (int k = 0; k < N_BASES; k++) {
    if (!is_made((lw_prim)(k / 4))) continue;
    for (int tries = 0; tries < 4; tries++) {
      lw_inst *a =
          lw_inst_parameter(g.c, (int64_t)g.c->params.len, base(&g, k), "p");
      lw_inst *i = consume(&g, o, a);
      if (!is_result_of(i, o)) continue;
      gives->ranks[i->shape->type] |= rank_bit(i->shape);
      if (takes_value(i, a)) takes->ranks[a->shape->type] |= rank_bit(a->shape);
    }
  }
  lw_module_free(g.m);
}

static lw_inst *try_pair(gen *g, lw_opcode producer, lw_opcode consumer) {
  int first = (int)gen_below(g, N_BASES);
  for (int k = 0; k < 60 * N_BASES; k++) {
    int b = (first + k) % N_BASES;
    if (!is_made((lw_prim)(b / 4))) continue;
    lw_inst *mark = g->c->last;
    lw_inst *a = gen_value(g, base(g, b));
    lw_inst *p = consume(g, producer, a);
    lw_inst *c = is_result_of(p, producer) ? consume(g, consumer, p) : NULL;
    if (is_result_of(c, consumer) && takes_value(c, p)) return c;
    drop_unused(g, mark);
  }
  return NULL;
}

static void drop_uncalled(lw_module *m) {
  for (bool again = true; again;) {
    again = false;
    for (lw_comp *c = m->first_comp, *next; c; c = next) {
      next = c->next;
      if (c == m->entry || lw_comp_first_caller(c)) continue;
      lw_module_remove_comp(m, c);
      again = true;
    }
  }
}

lw_module *lw_gen_pairs(lw_context *ctx, lw_opcode producer,
                        const lw_opcode *consumers, int n, bool *made,
                        lw_rand *r) {
  gen g = start(ctx, r, &pair_options);
  lw_inst *roots[LW_OPCODE_COUNT];
  const lw_shape *shapes[LW_OPCODE_COUNT];
  int n_roots = 0;
  for (int k = 0; k < n; k++) {
    lw_inst *c = try_pair(&g, producer, consumers[k]);
    made[k] = c != NULL;
    if (!c) continue;
    shapes[n_roots] = c->shape;
    roots[n_roots++] = c;
  }
  if (!n_roots) {
    lw_module_free(g.m);
    return NULL;
  }
  g.c->root = gen_op(&g, LW_OP_TUPLE, lw_shape_tuple(ctx, n_roots, shapes),
                     n_roots, roots);
  drop_uncalled(g.m);
  return g.m;
}

const lw_opcode *lw_gen_opcodes(int *n) {
  *n = LW_OPCODE_COUNT;
  return opcodes;
}
