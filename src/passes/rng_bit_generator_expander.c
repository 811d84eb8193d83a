/* rng-bit-generator-expander: a few random bits, in plain operations.
 *
 * A generator is a stage of its own: it computes four words (Philox) or two
 * (ThreeFry) at a time and stores them where they belong, so what reads them
 * is another kernel. For a handful of elements that costs more than the
 * arithmetic. Here every element is a formula of its own index (which block,
 * which word of it; docs/numerics.md 9, src/lib/rng.c), each block computed
 * once a word: that is fused with anything, at two to four times the
 * arithmetic. Hence the limit.
 *
 * All arrays are flat, u64[n] and u32[n], and get the result's shape at the
 * end. Only states of whole u64 words, as JAX passes them.
 */
#include <stdlib.h>

#include "hlo/fold.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

static const lw_pass_option options[] = {
    {"limit", "1024", "elements of the largest result that is expanded"},
    {NULL, NULL, NULL}};

typedef struct {
  lw_rw *r;
  const lw_shape *bits;          /* the result's */
  const lw_shape *w32, *w64;     /* u32[n], u64[n] */
  const lw_shape *one;           /* u64[] */
  lw_inst *key, *counter, *high; /* u64[] */
  int64_t blocks;
} rng;

static lw_inst *bin(rng *g, lw_opcode op, lw_inst *a, lw_inst *b) {
  return lw_rw_bin(g->r, op, a->shape, a, b);
}

/* With a constant of x's shape. */
static lw_inst *with(rng *g, lw_opcode op, lw_inst *x, int64_t v) {
  return bin(g, op, x, lw_rw_const_int(g->r, x->shape, v));
}

static lw_inst *spread(rng *g, lw_inst *scalar) {
  const lw_shape *s = scalar->shape->type == LW_U64 ? g->w64 : g->w32;
  return lw_rw_broadcast(g->r, scalar, s, 0, NULL);
}

static lw_inst *convert(rng *g, lw_inst *x, lw_prim t) {
  const lw_shape *s = lw_mk_array(g->r->m, t, x->shape->rank, x->shape->dims);
  return lw_rw_un(g->r, LW_OP_CONVERT, s, x);
}
static lw_inst *low(rng *g, lw_inst *x) { return convert(g, x, LW_U32); }
static lw_inst *high(rng *g, lw_inst *x) {
  return low(g, with(g, LW_OP_SHIFT_RIGHT_LOGICAL, x, 32));
}

static lw_inst *rotate(rng *g, lw_inst *x, int64_t by) {
  lw_inst *up = with(g, LW_OP_SHIFT_LEFT, x, by);
  lw_inst *down = with(g, LW_OP_SHIFT_RIGHT_LOGICAL, x, 32 - by);
  return bin(g, LW_OP_OR, up, down);
}

/* ---- the two block functions, words in place ---- */

static void threefry(rng *g, lw_inst **x) {
  static const int turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  lw_inst *k[3] = {low(g, g->key), high(g, g->key), NULL};
  k[2] = with(g, LW_OP_XOR, bin(g, LW_OP_XOR, k[0], k[1]), 0x1bd11bda);
  for (int i = 0; i < 3; i++) k[i] = spread(g, k[i]);
  x[0] = bin(g, LW_OP_ADD, x[0], k[0]);
  x[1] = bin(g, LW_OP_ADD, x[1], k[1]);
  for (int round = 0; round < 5; round++) {
    for (int j = 0; j < 4; j++) {
      x[0] = bin(g, LW_OP_ADD, x[0], x[1]);
      x[1] = rotate(g, x[1], turns[round % 2][j]);
      x[1] = bin(g, LW_OP_XOR, x[1], x[0]);
    }
    x[0] = bin(g, LW_OP_ADD, x[0], k[(round + 1) % 3]);
    lw_inst *add = with(g, LW_OP_ADD, k[(round + 2) % 3], round + 1);
    x[1] = bin(g, LW_OP_ADD, x[1], add);
  }
}

/* high(m * a) ^ b ^ key in *hi, low(m * a) in *lo. */
static void multiply(rng *g, lw_inst *a, int64_t m, lw_inst *b, lw_inst *key,
                     lw_inst **hi, lw_inst **lo) {
  lw_inst *p = with(g, LW_OP_MULTIPLY, convert(g, a, LW_U64), m);
  lw_inst *v = bin(g, LW_OP_XOR, high(g, p), b);
  *hi = bin(g, LW_OP_XOR, v, key);
  *lo = low(g, p);
}

static void philox(rng *g, lw_inst **x) {
  lw_inst *k0 = low(g, g->key), *k1 = high(g, g->key);
  for (int round = 0; round < 10; round++) {
    lw_inst *y[4];
    multiply(g, x[2], 0xcd9e8d57, x[1], spread(g, k0), &y[0], &y[1]);
    multiply(g, x[0], 0xd2511f53, x[3], spread(g, k1), &y[2], &y[3]);
    for (int i = 0; i < 4; i++) x[i] = y[i];
    if (round == 9) break;
    k0 = with(g, LW_OP_ADD, k0, 0x9e3779b9);
    k1 = with(g, LW_OP_ADD, k1, 0xbb67ae85);
  }
}

/* ---- where an element comes from ---- */

static lw_inst *index_of(rng *g) {
  lw_inst *i = lw_rw_make(g->r, LW_OP_IOTA, g->w64, 0, NULL);
  lw_inst_set_i64(i, LW_ATTR_IOTA_DIMENSION, 0);
  return i;
}

/* a where index is v, else b. */
static lw_inst *pick(rng *g, lw_inst *index, int64_t v, lw_inst *a,
                     lw_inst *b) {
  const lw_shape *p = lw_mk_array(g->r->m, LW_PRED, 1, g->w64->dims);
  lw_inst *k = lw_rw_const_int(g->r, index->shape, v);
  lw_inst *ops[3] = {lw_rw_compare(g->r, p, index, k, LW_CMP_EQ, -1), a, b};
  return lw_rw_make(g->r, LW_OP_SELECT, a->shape, 3, ops);
}

static lw_inst *join(rng *g, lw_inst *lo, lw_inst *hi) {
  lw_inst *up = convert(g, hi, LW_U64);
  up = with(g, LW_OP_SHIFT_LEFT, up, 32);
  return bin(g, LW_OP_OR, convert(g, lo, LW_U64), up);
}

static lw_inst *threefry_bits(rng *g) {
  const lw_shape *s = g->bits;
  bool wide = lw_prim_bytes(s->type) == 8;
  lw_inst *block = index_of(g), *row = NULL;
  g->blocks = s->elements;
  if (!wide) { /* rows 2j, 2j + 1 of one dimension are a block's two words */
    int32_t dim = lw_threefry_dim(s);
    int64_t extent = s->rank ? s->dims[dim] : 1, half = (extent + 1) / 2;
    int64_t inner = 1;
    for (int32_t d = dim + 1; d < s->rank; d++) inner *= s->dims[d];
    lw_inst *i = with(g, LW_OP_REMAINDER, block, inner);
    lw_inst *line = with(g, LW_OP_DIVIDE, block, inner);
    row = with(g, LW_OP_REMAINDER, line, extent);
    lw_inst *pair = with(g, LW_OP_DIVIDE, row, 2);
    lw_inst *outer = with(g, LW_OP_DIVIDE, line, extent);
    block = bin(g, LW_OP_ADD, with(g, LW_OP_MULTIPLY, outer, half), pair);
    block = bin(g, LW_OP_ADD, with(g, LW_OP_MULTIPLY, block, inner), i);
    row = with(g, LW_OP_REMAINDER, row, 2);
    g->blocks = s->elements / extent * half;
  }
  lw_inst *at = bin(g, LW_OP_ADD, spread(g, g->counter), block);
  lw_inst *x[2] = {low(g, at), NULL};
  x[1] = high(g, at);
  threefry(g, x);
  return wide ? join(g, x[0], x[1]) : pick(g, row, 0, x[0], x[1]);
}

/* Blocks of four words; 64-bit elements take two words, low first. */
static lw_inst *philox_bits(rng *g) {
  bool wide = lw_prim_bytes(g->bits->type) == 8;
  int64_t per = wide ? 2 : 4;
  lw_inst *i = index_of(g), *from = spread(g, g->counter);
  lw_inst *at = bin(g, LW_OP_ADD, from, with(g, LW_OP_DIVIDE, i, per));
  lw_inst *word = with(g, LW_OP_REMAINDER, i, per);
  const lw_shape *p = lw_mk_array(g->r->m, LW_PRED, 1, g->w64->dims);
  lw_inst *carry = lw_rw_compare(g->r, p, at, from, LW_CMP_LT, -1);
  carry = convert(g, carry, LW_U64);
  lw_inst *top = bin(g, LW_OP_ADD, spread(g, g->high), carry);
  lw_inst *x[4];
  x[0] = low(g, at);
  x[1] = high(g, at);
  x[2] = low(g, top);
  x[3] = high(g, top);
  philox(g, x);
  g->blocks = (g->bits->elements + per - 1) / per;
  if (wide) {
    lw_inst *first = join(g, x[0], x[1]), *second = join(g, x[2], x[3]);
    return pick(g, word, 0, first, second);
  }
  lw_inst *v = pick(g, word, 2, x[2], x[3]);
  v = pick(g, word, 1, x[1], v);
  return pick(g, word, 0, x[0], v);
}

/* ---- the instruction ---- */

static lw_inst *state_word(rng *g, lw_inst *state, int64_t k) {
  int64_t at[3] = {k, k + 1, 1};
  return lw_rw_reshape(g->r, lw_rw_slice(g->r, state, at), g->one);
}

static lw_inst *next_state(rng *g, lw_inst *state) {
  int64_t one = 1;
  const lw_shape *s = lw_mk_array(g->r->m, LW_U64, 1, &one);
  const lw_shape *p = lw_mk_array(g->r->m, LW_PRED, 0, NULL);
  lw_inst *next = with(g, LW_OP_ADD, g->counter, g->blocks);
  lw_inst *words[3] = {lw_rw_reshape(g->r, g->key, s), NULL, NULL};
  words[1] = lw_rw_reshape(g->r, next, s);
  int32_t n = (int32_t)state->shape->dims[0];
  if (n == 3) {
    lw_inst *c = lw_rw_compare(g->r, p, next, g->counter, LW_CMP_LT, -1);
    lw_inst *top = bin(g, LW_OP_ADD, g->high, convert(g, c, LW_U64));
    words[2] = lw_rw_reshape(g->r, top, s);
  }
  lw_inst *all = lw_rw_make(g->r, LW_OP_CONCATENATE, state->shape, n, words);
  lw_inst_set_i64s(all, LW_ATTR_DIMENSIONS, 1, (int64_t[]){0});
  return all;
}

/* Bits of the element's width, in its type and shape. */
static lw_inst *finish(rng *g, lw_inst *v) {
  static const lw_prim words[9] = {
      [1] = LW_U8, [2] = LW_U16, [4] = LW_U32, [8] = LW_U64};
  lw_prim t = g->bits->type, u = words[lw_prim_bytes(t)];
  if (v->shape->type != u) v = convert(g, v, u);
  if (t != u) {
    const lw_shape *s = lw_mk_array(g->r->m, t, 1, v->shape->dims);
    v = lw_rw_un(g->r, LW_OP_BITCAST_CONVERT, s, v);
  }
  return lw_rw_reshape(g->r, v, g->bits);
}

static bool is_supported(const lw_inst *i, const lw_shape *bits) {
  const lw_shape *s = lw_op(i, 0)->shape;
  if (!lw_shape_is_array(s) || s->rank != 1 || s->type != LW_U64) return false;
  bool philox =
      lw_inst_i64(i, LW_ATTR_RNG_ALGORITHM, LW_RNG_DEFAULT) != LW_RNG_THREE_FRY;
  if (s->dims[0] < 2 || s->dims[0] > (philox ? 3 : 2)) return false;
  return lw_shape_is_array(bits) && lw_prim_table[bits->type].bits >= 8 &&
         !lw_prim_is_complex(bits->type) && bits->elements > 0;
}

static lw_inst *expand(lw_rw *r, lw_inst *i) {
  const lw_shape *bits = i->shape;
  bool pair = lw_shape_is_tuple(bits);
  if (pair && bits->n_elems != 2) return NULL;
  if (pair) bits = bits->elems[1];
  int64_t limit = strtoll(lw_pass_option_value(r->env, "limit"), NULL, 10);
  if (!is_supported(i, bits) || bits->elements > limit) return NULL;
  if (!lw_rw_go(r, "generators expanded")) return NULL;
  rng g = {.r = r, .bits = bits};
  g.w32 = lw_mk_array(r->m, LW_U32, 1, &bits->elements);
  g.w64 = lw_mk_array(r->m, LW_U64, 1, &bits->elements);
  g.one = lw_mk_array(r->m, LW_U64, 0, NULL);
  g.key = state_word(&g, lw_op(i, 0), 0);
  g.counter = state_word(&g, lw_op(i, 0), 1);
  /* A state of two words takes the key as the counter's high half. */
  bool three = lw_op(i, 0)->shape->dims[0] == 3;
  g.high = three ? state_word(&g, lw_op(i, 0), 2) : g.key;
  bool is_threefry =
      lw_inst_i64(i, LW_ATTR_RNG_ALGORITHM, LW_RNG_DEFAULT) == LW_RNG_THREE_FRY;
  lw_inst *v = finish(&g, (is_threefry ? threefry_bits : philox_bits)(&g));
  if (!pair) return v;
  lw_inst *out[2] = {next_state(&g, lw_op(i, 0)), v};
  return lw_rw_make(r, LW_OP_TUPLE, i->shape, 2, out);
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {[LW_OP_RNG_BIT_GENERATOR] =
                                                     expand};
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_rng_bit_generator_expander = {
    "rng-bit-generator-expander", "a few random bits in plain operations",
    options, run};
