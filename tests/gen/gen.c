#include "gen.h"

#include <string.h>

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

/* ---- state ---- */

enum { MAX_RANK = 4, POOL = 256 };

typedef struct {
  lw_context *ctx;
  lw_module *m;
  lw_comp *c; /* where instructions go */
  lw_rand *r;
  lw_gen_options o;
  lw_inst *pool[POOL];
  int n_pool;
  bool in_body; /* no new parameters here */
  int depth;
} gen;

static int64_t below(gen *g, int64_t n) { return lw_rand_below(g->r, n); }
static bool chance(gen *g, int percent) { return below(g, 100) < percent; }

static const lw_prim all_types[] = {
    LW_F32,        LW_F32,        LW_F32,       LW_S32,
    LW_BF16,       LW_F16,        LW_F64,       LW_PRED,
    LW_S8,         LW_U8,         LW_S16,       LW_U16,
    LW_U32,        LW_S64,        LW_U64,       LW_C64,
    LW_C128,       LW_F8E5M2,     LW_F8E4M3FN,  LW_S4,
    LW_U4,         LW_F8E4M3,     LW_F8E3M4,    LW_F8E4M3B11FNUZ,
    LW_F8E5M2FNUZ, LW_F8E4M3FNUZ, LW_F8E8M0FNU, LW_F4E2M1FN};
enum { N_TYPES = sizeof all_types / sizeof all_types[0], N_XLA_TYPES = 19 };

static lw_prim any_type(gen *g) {
  return all_types[below(g, g->o.xla_runnable ? N_XLA_TYPES : N_TYPES)];
}

static const lw_shape *shape(gen *g, lw_prim t, int32_t rank,
                             const int64_t *dims) {
  const lw_shape *s = lw_shape_array(g->ctx, t, rank, dims);
  return lw_shape_fill_layouts(g->ctx, s);
}

static const lw_shape *like(gen *g, const lw_shape *s, lw_prim t) {
  return shape(g, t, s->rank, s->dims);
}

static int64_t some_dim(gen *g) {
  static const int64_t sizes[] = {1,  2,  3,  4,  5,  7,  8,   13,
                                  16, 17, 31, 33, 64, 65, 100, 130};
  return sizes[below(g, sizeof sizes / sizeof sizes[0])];
}

static const lw_shape *some_shape(gen *g, lw_prim t) {
  int64_t dims[MAX_RANK], n = 1;
  int32_t rank = (int32_t)below(g, MAX_RANK + 1);
  for (int32_t i = 0; i < rank; i++) {
    dims[i] = chance(g, 2) ? 0 : some_dim(g);
    if (n * dims[i] > g->o.max_elements) dims[i] = 1;
    n *= dims[i];
  }
  return shape(g, t, rank, dims);
}

static lw_inst *op(gen *g, lw_opcode o, const lw_shape *s, int n,
                   lw_inst *const *ops) {
  return lw_inst_new(g->c, o, s, NULL, n, ops);
}
static lw_inst *op1(gen *g, lw_opcode o, const lw_shape *s, lw_inst *a) {
  return op(g, o, s, 1, &a);
}
static lw_inst *op2(gen *g, lw_opcode o, const lw_shape *s, lw_inst *a,
                    lw_inst *b) {
  return op(g, o, s, 2, (lw_inst *[]){a, b});
}

static lw_inst *scalar_const(gen *g, lw_prim t, double v) {
  lw_literal *l;
  lw_status st = lw_literal_new(g->m->arena, shape(g, t, 0, NULL), &l);
  LW_ASSERT(!st);
  lw_literal_set_f64(l, 0, 0, v);
  return lw_inst_constant(g->c, l);
}

static lw_inst *splat(gen *g, lw_inst *scalar, const lw_shape *s) {
  lw_inst *b = op1(g, LW_OP_BROADCAST, like(g, s, scalar->shape->type), scalar);
  lw_inst_set_i64s(b, LW_ATTR_DIMENSIONS, 0, NULL);
  return b;
}

/* A value of this shape: one of the pool, a parameter, or a splat constant. */
static lw_inst *value(gen *g, const lw_shape *s) {
  for (int tries = 0; tries < 12 && g->n_pool; tries++) {
    lw_inst *v = g->pool[below(g, g->n_pool)];
    if (v->shape->no_layout == s->no_layout) return v;
  }
  if (!g->in_body && chance(g, 70)) {
    lw_inst *p = lw_inst_parameter(g->c, (int64_t)g->c->params.len, s, "p");
    if (g->n_pool < POOL) g->pool[g->n_pool++] = p;
    return p;
  }
  static const double values[] = {0, 1, -1, 2, 0.5, 3, -0.75, 10};
  lw_inst *k = scalar_const(g, s->type, values[below(g, 8)]);
  return s->rank ? splat(g, k, s) : k;
}

/* ---- small computations ---- */

static lw_comp *binary_comp(gen *g, lw_opcode o, lw_prim t) {
  lw_comp *c = lw_comp_new(g->m, "reducer");
  const lw_shape *s = shape(g, t, 0, NULL);
  lw_inst *a = lw_inst_parameter(c, 0, s, "a");
  lw_inst *b = lw_inst_parameter(c, 1, s, "b");
  c->root = lw_inst_new(c, o, s, NULL, 2, (lw_inst *[]){a, b});
  return c;
}

static lw_comp *compare_comp(gen *g, lw_prim t, lw_cmp_dir dir, int n_pairs,
                             const lw_prim *types) {
  lw_comp *c = lw_comp_new(g->m, "comparator");
  lw_inst *first[2] = {NULL, NULL};
  for (int k = 0; k < 2 * n_pairs; k++) {
    lw_inst *p = lw_inst_parameter(
        c, k, shape(g, k < 2 ? t : types[k / 2], 0, NULL), "p");
    if (k < 2) first[k] = p;
  }
  c->root =
      lw_inst_new(c, LW_OP_COMPARE, shape(g, LW_PRED, 0, NULL), NULL, 2, first);
  lw_inst_set_i64(c->root, LW_ATTR_DIRECTION, dir);
  if (lw_prim_is_float(t))
    lw_inst_set_i64(c->root, LW_ATTR_COMPARE_TYPE, LW_CT_TOTALORDER);
  return c;
}

static lw_opcode monoid(gen *g, lw_prim t, double *init) {
  static const lw_opcode arith[] = {LW_OP_ADD, LW_OP_MULTIPLY, LW_OP_MAXIMUM,
                                    LW_OP_MINIMUM};
  if (t == LW_PRED) {
    *init = (double)below(g, 2);
    return chance(g, 50) ? LW_OP_AND : LW_OP_OR;
  }
  int k = (int)below(g, lw_prim_is_complex(t) ? 2 : 4);
  *init = k == 1 ? 1 : 0;
  return arith[k];
}

/* ---- opcode families ---- */

static bool is_fp(lw_prim t) { return lw_prim_is_float(t); }
static bool is_cx(lw_prim t) { return lw_prim_is_complex(t); }
static bool is_int(lw_prim t) { return lw_prim_is_int(t); }

/* Whether an elementwise opcode takes operands of type t. */
static bool takes(lw_opcode o, lw_prim t) {
  switch ((int)o) {
    case LW_OP_ABS:
    case LW_OP_NEGATE:
      return t != LW_PRED && t != LW_F8E8M0FNU &&
             !(o == LW_OP_ABS && lw_prim_class(t) == LW_CLASS_UINT);
    case LW_OP_SIGN:
      return t != LW_PRED && t != LW_F8E8M0FNU &&
             lw_prim_class(t) != LW_CLASS_UINT;
    case LW_OP_NOT:
    case LW_OP_AND:
    case LW_OP_OR:
    case LW_OP_XOR:
      return is_int(t) || t == LW_PRED;
    case LW_OP_POPCNT:
    case LW_OP_CLZ:
    case LW_OP_SHIFT_LEFT:
    case LW_OP_SHIFT_RIGHT_ARITHMETIC:
    case LW_OP_SHIFT_RIGHT_LOGICAL:
    case LW_OP_MULHI:
      return is_int(t) && lw_prim_table[t].bits >= (o == LW_OP_MULHI ? 8 : 4);
    case LW_OP_CEIL:
    case LW_OP_FLOOR:
    case LW_OP_ROUND_AFZ:
    case LW_OP_ROUND_EVEN:
    case LW_OP_IS_FINITE:
    case LW_OP_ATAN2:
    case LW_OP_CBRT:
    case LW_OP_ERF:
    case LW_OP_REDUCE_PRECISION:
      return is_fp(t) && t != LW_F8E8M0FNU;
    case LW_OP_REMAINDER:
    case LW_OP_MAXIMUM:
    case LW_OP_MINIMUM:
    case LW_OP_CLAMP:
      return (is_fp(t) || is_int(t)) && t != LW_F8E8M0FNU;
    case LW_OP_ADD:
    case LW_OP_SUBTRACT:
    case LW_OP_MULTIPLY:
    case LW_OP_DIVIDE:
      return t != LW_PRED && t != LW_F8E8M0FNU;
    case LW_OP_POWER:
      return (is_fp(t) || is_cx(t) || is_int(t)) && t != LW_F8E8M0FNU;
    case LW_OP_REAL:
    case LW_OP_IMAG:
      return is_cx(t);
    case LW_OP_COMPLEX:
      return t == LW_F32 || t == LW_F64;
    case LW_OP_ACOS:
    case LW_OP_ACOSH:
    case LW_OP_ASIN:
    case LW_OP_ASINH:
    case LW_OP_ATANH:
    case LW_OP_COSH:
    case LW_OP_SINH:
      return is_fp(t) && t != LW_F8E8M0FNU;
    default: /* the other transcendental ones */
      return (is_fp(t) || is_cx(t)) && t != LW_F8E8M0FNU;
  }
}

static const lw_shape *elem_result(gen *g, lw_opcode o, const lw_shape *s) {
  switch ((int)o) {
    case LW_OP_IS_FINITE:
      return like(g, s, LW_PRED);
    case LW_OP_REAL:
    case LW_OP_IMAG:
      return like(g, s, lw_prim_part(s->type));
    case LW_OP_ABS:
      return like(g, s, lw_prim_part(s->type));
    case LW_OP_COMPLEX:
      return like(g, s, s->type == LW_F32 ? LW_C64 : LW_C128);
    default:
      return s;
  }
}

static lw_inst *make_unary(gen *g, lw_opcode o, lw_inst *a) {
  if (!takes(o, a->shape->type)) return NULL;
  lw_inst *i = op1(g, o, elem_result(g, o, a->shape), a);
  if (o == LW_OP_REDUCE_PRECISION) {
    lw_inst_set_i64(i, LW_ATTR_EXPONENT_BITS, 2 + below(g, 7));
    lw_inst_set_i64(i, LW_ATTR_MANTISSA_BITS, 1 + below(g, 10));
  }
  return i;
}

static lw_inst *make_binary(gen *g, lw_opcode o, lw_inst *a) {
  if (!takes(o, a->shape->type)) return NULL;
  lw_inst *b = value(g, a->shape);
  const lw_shape *s = elem_result(g, o, a->shape);
  return chance(g, 50) ? op2(g, o, s, a, b) : op2(g, o, s, b, a);
}

static lw_inst *make_compare(gen *g, lw_inst *a) {
  lw_inst *i =
      op2(g, LW_OP_COMPARE, like(g, a->shape, LW_PRED), a, value(g, a->shape));
  bool order = !is_cx(a->shape->type);
  lw_inst_set_i64(i, LW_ATTR_DIRECTION, below(g, order ? 6 : 2));
  if (is_fp(a->shape->type) && chance(g, 20))
    lw_inst_set_i64(i, LW_ATTR_COMPARE_TYPE, LW_CT_TOTALORDER);
  return i;
}

static lw_inst *make_select(gen *g, lw_inst *a) {
  if (a->shape->type == LW_PRED && chance(g, 60)) {
    const lw_shape *s = like(g, a->shape, any_type(g));
    return op(g, LW_OP_SELECT, s, 3,
              (lw_inst *[]){a, value(g, s), value(g, s)});
  }
  lw_inst *p = value(g, like(g, a->shape, LW_PRED)), *b = value(g, a->shape);
  bool first = chance(g, 50);
  return op(g, LW_OP_SELECT, a->shape, 3,
            (lw_inst *[]){p, first ? a : b, first ? b : a});
}

static lw_inst *make_clamp(gen *g, lw_inst *a) {
  if (!takes(LW_OP_CLAMP, a->shape->type)) return NULL;
  lw_inst *lo = value(g, a->shape), *hi = value(g, a->shape);
  return op(g, LW_OP_CLAMP, a->shape, 3, (lw_inst *[]){lo, a, hi});
}

static lw_inst *make_convert(gen *g, lw_inst *a) {
  lw_prim t = any_type(g);
  if (is_cx(a->shape->type) && !is_cx(t)) t = LW_C64;
  return op1(g, LW_OP_CONVERT, like(g, a->shape, t), a);
}

static lw_inst *make_bitcast_convert(gen *g, lw_inst *a) {
  lw_prim t = a->shape->type;
  if (t == LW_PRED || is_cx(t) || lw_prim_table[t].bits < 8) return NULL;
  for (int k = 0; k < 40; k++) {
    lw_prim to = any_type(g);
    if (lw_prim_table[to].bits == lw_prim_table[t].bits && to != LW_PRED &&
        !is_cx(to))
      return op1(g, LW_OP_BITCAST_CONVERT, like(g, a->shape, to), a);
  }
  return NULL;
}

/* ---- movement ---- */

static lw_inst *make_broadcast(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (s->rank >= MAX_RANK) return NULL;
  int64_t dims[MAX_RANK + 1], map[MAX_RANK];
  int32_t at = (int32_t)below(g, s->rank + 1), n = 0;
  int64_t extra = some_dim(g);
  if (s->elements * extra > g->o.max_elements) extra = 1;
  for (int32_t i = 0; i <= s->rank; i++) {
    if (i == at)
      dims[i] = extra;
    else {
      map[n] = i;
      dims[i] = s->dims[n++];
    }
  }
  lw_inst *b = op1(g, LW_OP_BROADCAST, shape(g, s->type, s->rank + 1, dims), a);
  lw_inst_set_i64s(b, LW_ATTR_DIMENSIONS, n, map);
  return b;
}

static lw_inst *make_reshape(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  int64_t dims[MAX_RANK + 1];
  int32_t n = 0, k = s->rank ? (int32_t)below(g, s->rank) : 0;
  int how = (int)below(g, 3);
  for (int32_t i = 0; i < s->rank; i++) {
    if (how == 0 && i == k && i + 1 < s->rank) { /* merge i and i+1 */
      dims[n++] = s->dims[i] * s->dims[i + 1];
      i++;
    } else if (how == 1 && i == k && s->dims[i] % 2 == 0 &&
               s->rank < MAX_RANK) {
      dims[n++] = 2;
      dims[n++] = s->dims[i] / 2;
    } else {
      dims[n++] = s->dims[i];
    }
  }
  if (how == 2 && n < MAX_RANK) dims[n++] = 1;
  return op1(g, LW_OP_RESHAPE, shape(g, s->type, n, dims), a);
}

static lw_inst *make_transpose(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (s->rank < 2) return NULL;
  int64_t perm[MAX_RANK + 1], dims[MAX_RANK + 1];
  for (int32_t i = 0; i < s->rank; i++) perm[i] = i;
  for (int32_t i = s->rank - 1; i > 0; i--) {
    int32_t j = (int32_t)below(g, i + 1);
    int64_t t = perm[i];
    perm[i] = perm[j];
    perm[j] = t;
  }
  for (int32_t i = 0; i < s->rank; i++) dims[i] = s->dims[perm[i]];
  lw_inst *i = op1(g, LW_OP_TRANSPOSE, shape(g, s->type, s->rank, dims), a);
  lw_inst_set_i64s(i, LW_ATTR_DIMENSIONS, s->rank, perm);
  return i;
}

static lw_inst *make_slice(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank) return NULL;
  int64_t dims[MAX_RANK], v[3 * MAX_RANK];
  for (int32_t i = 0; i < s->rank; i++) {
    bool empty = s->dims[i] == 0 || chance(g, 2);
    int64_t lo = below(g, s->dims[i] + (empty ? 1 : 0));
    int64_t stride = chance(g, 25) ? 2 : 1;
    int64_t hi = empty ? lo : lo + 1 + below(g, s->dims[i] - lo);
    if (chance(g, 50)) lo = 0;
    if (chance(g, 50)) hi = s->dims[i];
    v[3 * i] = lo, v[3 * i + 1] = hi, v[3 * i + 2] = stride;
    dims[i] = (hi - lo + stride - 1) / stride;
  }
  lw_inst *i = op1(g, LW_OP_SLICE, shape(g, s->type, s->rank, dims), a);
  lw_inst_set_i64s(i, LW_ATTR_SLICE, 3 * s->rank, v);
  return i;
}

static lw_inst *make_pad(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank) return NULL;
  int64_t dims[MAX_RANK], v[3 * MAX_RANK], n = 1;
  for (int32_t i = 0; i < s->rank; i++) {
    int64_t lo = below(g, 4) - 1, hi = below(g, 4) - 1;
    int64_t in = chance(g, 20) ? 1 : 0;
    int64_t d = s->dims[i] + (s->dims[i] > 0 ? in * (s->dims[i] - 1) : 0);
    if (d + lo + hi < 0) lo = hi = 0;
    v[3 * i] = lo, v[3 * i + 1] = hi, v[3 * i + 2] = in;
    dims[i] = d + lo + hi;
    n *= dims[i];
  }
  if (n > g->o.max_elements) return NULL;
  lw_inst *fill = value(g, shape(g, s->type, 0, NULL));
  lw_inst *i = op2(g, LW_OP_PAD, shape(g, s->type, s->rank, dims), a, fill);
  lw_inst_set_i64s(i, LW_ATTR_PADDING, 3 * s->rank, v);
  return i;
}

static lw_inst *make_concatenate(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || s->elements * 2 > g->o.max_elements) return NULL;
  int64_t dims[MAX_RANK], d = below(g, s->rank);
  memcpy(dims, s->dims, (size_t)s->rank * 8);
  dims[d] *= 2;
  lw_inst *b = value(g, s);
  bool swap = chance(g, 50);
  lw_inst *i = op2(g, LW_OP_CONCATENATE, shape(g, s->type, s->rank, dims),
                   swap ? b : a, swap ? a : b);
  lw_inst_set_i64s(i, LW_ATTR_DIMENSIONS, 1, &d);
  return i;
}

static lw_inst *make_reverse(gen *g, lw_inst *a) {
  if (!a->shape->rank) return NULL;
  int64_t d = below(g, a->shape->rank);
  lw_inst *i = op1(g, LW_OP_REVERSE, a->shape, a);
  lw_inst_set_i64s(i, LW_ATTR_DIMENSIONS, 1, &d);
  return i;
}

static lw_inst *make_dynamic_slice(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || !s->elements) return NULL;
  int64_t dims[MAX_RANK];
  lw_inst *ops[MAX_RANK + 1] = {a};
  const lw_shape *ix = shape(g, chance(g, 80) ? LW_S32 : LW_U8, 0, NULL);
  for (int32_t i = 0; i < s->rank; i++) {
    dims[i] = 1 + below(g, s->dims[i]);
    ops[i + 1] = value(g, ix);
  }
  lw_inst *i = op(g, LW_OP_DYNAMIC_SLICE, shape(g, s->type, s->rank, dims),
                  s->rank + 1, ops);
  lw_inst_set_i64s(i, LW_ATTR_DYNAMIC_SLICE_SIZES, s->rank, dims);
  return i;
}

static lw_inst *make_update_slice(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || !s->elements) return NULL;
  int64_t dims[MAX_RANK];
  lw_inst *ops[MAX_RANK + 2] = {a};
  const lw_shape *ix = shape(g, LW_S32, 0, NULL);
  for (int32_t i = 0; i < s->rank; i++) {
    dims[i] = 1 + below(g, s->dims[i]);
    ops[i + 2] = value(g, ix);
  }
  ops[1] = value(g, shape(g, s->type, s->rank, dims));
  return op(g, LW_OP_DYNAMIC_UPDATE_SLICE, s, s->rank + 2, ops);
}

/* Rows of a by a vector of indices: the shape of jnp.take. */
static lw_inst *make_gather(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || !s->dims[0]) return NULL;
  int64_t n = 1 + below(g, 9), dims[MAX_RANK], sizes[MAX_RANK];
  int64_t offset[MAX_RANK], zero = 0;
  dims[0] = n;
  sizes[0] = 1;
  int64_t total = n;
  for (int32_t i = 1; i < s->rank; i++) {
    dims[i] = sizes[i] = s->dims[i];
    offset[i - 1] = i;
    total *= dims[i];
  }
  if (total > g->o.max_elements) return NULL;
  lw_inst *ix = value(g, shape(g, LW_S32, 1, &n));
  lw_inst *i = op2(g, LW_OP_GATHER, shape(g, s->type, s->rank, dims), a, ix);
  lw_inst_set_i64s(i, LW_ATTR_OFFSET_DIMS, s->rank - 1, offset);
  lw_inst_set_i64s(i, LW_ATTR_COLLAPSED_SLICE_DIMS, 1, &zero);
  lw_inst_set_i64s(i, LW_ATTR_START_INDEX_MAP, 1, &zero);
  lw_inst_set_i64(i, LW_ATTR_INDEX_VECTOR_DIM, 1);
  lw_inst_set_i64s(i, LW_ATTR_SLICE_SIZES, s->rank, sizes);
  return i;
}

static lw_inst *make_iota(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || s->type == LW_PRED || s->type == LW_F8E8M0FNU) return NULL;
  lw_inst *i = op(g, LW_OP_IOTA, s, 0, NULL);
  lw_inst_set_i64(i, LW_ATTR_IOTA_DIMENSION, below(g, s->rank));
  return i;
}

/* ---- folds ---- */

static lw_inst *make_reduce(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || s->type == LW_F8E8M0FNU) return NULL;
  int64_t dims[MAX_RANK], red[MAX_RANK];
  int32_t n = 0, k = 0;
  for (int32_t i = 0; i < s->rank; i++)
    if (chance(g, 50) || (i == s->rank - 1 && !k))
      red[k++] = i;
    else
      dims[n++] = s->dims[i];
  double init;
  lw_opcode o = monoid(g, s->type, &init);
  lw_inst *i = op2(g, LW_OP_REDUCE, shape(g, s->type, n, dims), a,
                   scalar_const(g, s->type, init));
  lw_inst_set_i64s(i, LW_ATTR_DIMENSIONS, k, red);
  lw_inst_set_comp(i, LW_ATTR_TO_APPLY, binary_comp(g, o, s->type));
  return i;
}

static lw_inst *make_window(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || !s->elements || s->type == LW_F8E8M0FNU) return NULL;
  lw_window_dim d[MAX_RANK];
  int64_t dims[MAX_RANK];
  int32_t scan = chance(g, 40) ? (int32_t)below(g, s->rank) : -1;
  for (int32_t i = 0; i < s->rank; i++) {
    d[i] = (lw_window_dim){1, 1, 0, 0, 1, 1, false};
    if (i == scan) {
      d[i].size = s->dims[i];
      d[i].pad_lo = s->dims[i] - 1;
    } else if (scan < 0 && s->dims[i] > 2) {
      d[i].size = 1 + below(g, 3);
      d[i].stride = 1 + below(g, 2);
      d[i].pad_lo = below(g, 2);
    }
    dims[i] =
        (s->dims[i] + d[i].pad_lo + d[i].pad_hi - d[i].size) / d[i].stride + 1;
  }
  double init;
  lw_opcode o = monoid(g, s->type, &init);
  lw_inst *i = op2(g, LW_OP_REDUCE_WINDOW, shape(g, s->type, s->rank, dims), a,
                   scalar_const(g, s->type, init));
  lw_window w = {s->rank, d};
  lw_attr at = {.id = LW_ATTR_WINDOW, .u.window = &w};
  lw_inst_set_attr(i, &at);
  lw_inst_set_comp(i, LW_ATTR_TO_APPLY, binary_comp(g, o, s->type));
  return i;
}

static lw_inst *make_dot(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (s->rank < 1 || s->rank > 3 || s->type == LW_PRED ||
      s->type == LW_F8E8M0FNU || lw_prim_table[s->type].bits < 8)
    return NULL;
  /* [b,] m, k  x  [b,] k, n */
  int32_t nb = s->rank == 3 ? 1 : 0;
  int64_t k = s->dims[s->rank - 1], n = 1 + below(g, 20), rd[3], od[3];
  int32_t r = 0, o = 0;
  for (int32_t i = 0; i < s->rank - 1; i++) od[o++] = s->dims[i];
  if (nb) rd[r++] = s->dims[0];
  bool swap = chance(g, 50), vec = chance(g, 20);
  if (!vec && !swap) rd[r++] = k, rd[r++] = n;
  if (!vec && swap) rd[r++] = n, rd[r++] = k;
  if (vec) rd[r++] = k;
  if (!vec) od[o++] = n;
  lw_inst *b = value(g, shape(g, s->type, r, rd));
  lw_inst *i = op2(g, LW_OP_DOT, shape(g, s->type, o, od), a, b);
  int64_t zero = 0, lc = s->rank - 1, rc = vec || swap ? r - 1 : r - 2;
  if (nb) {
    lw_inst_set_i64s(i, LW_ATTR_LHS_BATCH_DIMS, 1, &zero);
    lw_inst_set_i64s(i, LW_ATTR_RHS_BATCH_DIMS, 1, &zero);
  }
  lw_inst_set_i64s(i, LW_ATTR_LHS_CONTRACTING_DIMS, 1, &lc);
  lw_inst_set_i64s(i, LW_ATTR_RHS_CONTRACTING_DIMS, 1, &rc);
  return i;
}

static lw_inst *make_scatter(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || !s->elements || s->type == LW_F8E8M0FNU) return NULL;
  int64_t n = 1 + below(g, 6), dims[MAX_RANK], window[MAX_RANK], zero = 0;
  dims[0] = n;
  for (int32_t i = 1; i < s->rank; i++) {
    dims[i] = s->dims[i];
    window[i - 1] = i;
  }
  double init;
  lw_opcode o = monoid(g, s->type, &init);
  lw_inst *ops[] = {a, value(g, shape(g, LW_S32, 1, &n)),
                    value(g, shape(g, s->type, s->rank, dims))};
  lw_inst *i = op(g, LW_OP_SCATTER, s, 3, ops);
  lw_inst_set_i64s(i, LW_ATTR_UPDATE_WINDOW_DIMS, s->rank - 1, window);
  lw_inst_set_i64s(i, LW_ATTR_INSERTED_WINDOW_DIMS, 1, &zero);
  lw_inst_set_i64s(i, LW_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, 1, &zero);
  lw_inst_set_i64(i, LW_ATTR_INDEX_VECTOR_DIM, 1);
  lw_inst_set_comp(i, LW_ATTR_TO_APPLY, binary_comp(g, o, s->type));
  return i;
}

static lw_inst *make_sort(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || is_cx(s->type)) return NULL;
  int64_t d = below(g, s->rank);
  lw_inst *i = op1(g, LW_OP_SORT, s, a);
  lw_inst_set_i64s(i, LW_ATTR_DIMENSIONS, 1, &d);
  lw_inst_set_i64(i, LW_ATTR_IS_STABLE, 1);
  lw_inst_set_comp(
      i, LW_ATTR_TO_APPLY,
      compare_comp(g, s->type, chance(g, 50) ? LW_CMP_LT : LW_CMP_GT, 1, NULL));
  return i;
}

/* ---- control flow ---- */

static lw_inst *step(gen *g, lw_inst *a);

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
    lw_inst *y = step(&inner, x);
    if (y && y->shape->no_layout == v->shape->no_layout) x = y;
    if (y && lw_shape_is_array(y->shape) && inner.n_pool < POOL)
      inner.pool[inner.n_pool++] = y;
  }
  return x;
}

static lw_inst *gte(lw_comp *c, lw_inst *t, int64_t k) {
  lw_inst *i =
      lw_inst_new(c, LW_OP_GET_TUPLE_ELEMENT, t->shape->elems[k], NULL, 1, &t);
  lw_inst_set_i64(i, LW_ATTR_INDEX, k);
  return i;
}

/* for (i = 0; i < n; i++) x = f(x) */
static lw_inst *make_while(gen *g, lw_inst *a) {
  if (g->depth > 1 || a->shape->elements > 4000) return NULL;
  const lw_shape *s32 = shape(g, LW_S32, 0, NULL);
  const lw_shape *elems[] = {s32, a->shape};
  const lw_shape *state = lw_shape_tuple(g->ctx, 2, elems);
  lw_comp *cond = lw_comp_new(g->m, "cond"), *body = lw_comp_new(g->m, "body");
  gen in = *g;
  in.c = cond;
  lw_inst *p = lw_inst_parameter(cond, 0, state, "state");
  cond->root = lw_inst_new(
      cond, LW_OP_COMPARE, shape(g, LW_PRED, 0, NULL), NULL, 2,
      (lw_inst *[]){gte(cond, p, 0),
                    scalar_const(&in, LW_S32, (double)below(g, 5))});
  lw_inst_set_i64(cond->root, LW_ATTR_DIRECTION, LW_CMP_LT);
  in.c = body;
  p = lw_inst_parameter(body, 0, state, "state");
  lw_inst *i = gte(body, p, 0), *x = gte(body, p, 1);
  lw_inst *next = lw_inst_new(body, LW_OP_ADD, s32, NULL, 2,
                              (lw_inst *[]){i, scalar_const(&in, LW_S32, 1)});
  lw_inst *y = body_chain(g, body, x);
  body->root =
      lw_inst_new(body, LW_OP_TUPLE, state, NULL, 2, (lw_inst *[]){next, y});
  lw_inst *init = op2(g, LW_OP_TUPLE, state, scalar_const(g, LW_S32, 0), a);
  lw_inst *w = op1(g, LW_OP_WHILE, state, init);
  lw_inst_set_comp(w, LW_ATTR_CONDITION, cond);
  lw_inst_set_comp(w, LW_ATTR_BODY, body);
  return gte(g->c, w, 1);
}

static lw_comp *branch_comp(gen *g, const lw_shape *s) {
  lw_comp *c = lw_comp_new(g->m, "branch");
  c->root = body_chain(g, c, lw_inst_parameter(c, 0, s, "x"));
  return c;
}

static lw_inst *make_conditional(gen *g, lw_inst *a) {
  if (g->depth > 1) return NULL;
  lw_inst *p = value(g, shape(g, LW_PRED, 0, NULL));
  lw_comp *t = branch_comp(g, a->shape), *f = branch_comp(g, a->shape);
  lw_inst *i = op(g, LW_OP_CONDITIONAL, a->shape, 3, (lw_inst *[]){p, a, a});
  lw_inst_set_comp(i, LW_ATTR_TRUE_COMPUTATION, t);
  lw_inst_set_comp(i, LW_ATTR_FALSE_COMPUTATION, f);
  return i;
}

static lw_inst *make_call(gen *g, lw_inst *a) {
  if (g->depth > 1) return NULL;
  lw_comp *c = branch_comp(g, a->shape);
  lw_inst *i = op1(g, LW_OP_CALL, a->shape, a);
  lw_inst_set_comp(i, LW_ATTR_TO_APPLY, c);
  return i;
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
  return o == LW_OP_DOT || o == LW_OP_SORT || o == LW_OP_REDUCE_WINDOW ||
         o == LW_OP_SCATTER;
}

/* Consume a by opcode o; NULL where that is not legal or not made here. */
static lw_inst *consume(gen *g, lw_opcode o, lw_inst *a) {
  switch ((int)o) {
    case LW_OP_COMPARE:
      return make_compare(g, a);
    case LW_OP_SELECT:
      return make_select(g, a);
    case LW_OP_CLAMP:
      return make_clamp(g, a);
    case LW_OP_CONVERT:
      return make_convert(g, a);
    case LW_OP_BITCAST_CONVERT:
      return make_bitcast_convert(g, a);
    case LW_OP_COPY:
      return op1(g, o, a->shape, a);
    case LW_OP_BROADCAST:
      return make_broadcast(g, a);
    case LW_OP_RESHAPE:
      return make_reshape(g, a);
    case LW_OP_TRANSPOSE:
      return make_transpose(g, a);
    case LW_OP_SLICE:
      return make_slice(g, a);
    case LW_OP_PAD:
      return make_pad(g, a);
    case LW_OP_CONCATENATE:
      return make_concatenate(g, a);
    case LW_OP_REVERSE:
      return make_reverse(g, a);
    case LW_OP_DYNAMIC_SLICE:
      return make_dynamic_slice(g, a);
    case LW_OP_DYNAMIC_UPDATE_SLICE:
      return make_update_slice(g, a);
    case LW_OP_GATHER:
      return make_gather(g, a);
    case LW_OP_IOTA:
      return make_iota(g, a);
    case LW_OP_REDUCE:
      return make_reduce(g, a);
    case LW_OP_REDUCE_WINDOW:
      return make_window(g, a);
    case LW_OP_DOT:
      return make_dot(g, a);
    case LW_OP_SCATTER:
      return make_scatter(g, a);
    case LW_OP_SORT:
      return make_sort(g, a);
    case LW_OP_WHILE:
      return g->o.control_flow ? make_while(g, a) : NULL;
    case LW_OP_CONDITIONAL:
      return g->o.control_flow ? make_conditional(g, a) : NULL;
    case LW_OP_CALL:
      return g->o.control_flow ? make_call(g, a) : NULL;
    case LW_OP_STOCHASTIC_CONVERT:
      return NULL;
    default:
      break;
  }
  unsigned flags = lw_opcode_table[o].flags;
  if (flags & LW_OPF_UN) return make_unary(g, o, a);
  return flags & LW_OPF_BIN ? make_binary(g, o, a) : NULL;
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
      return true;
    default:
      return false;
  }
}

/* Elementwise ops twice as often as the rest, as in real programs. */
static lw_inst *step(gen *g, lw_inst *a) {
  for (int tries = 0; tries < 30; tries++) {
    lw_opcode o = opcodes[below(g, LW_OPCODE_COUNT)];
    if (!lw_opcode_is_elementwise(o) && chance(g, 50)) continue;
    if (is_heavy(o) && (!g->o.heavy || chance(g, 50))) continue;
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
  g->c->root =
      n == 1 ? roots[0]
             : op(g, LW_OP_TUPLE, lw_shape_tuple(g->ctx, n, shapes), n, roots);
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

lw_module *lw_gen_module(lw_context *ctx, lw_rand *r,
                         const lw_gen_options *options) {
  gen g = start(ctx, r, options);
  lw_inst *a = value(&g, some_shape(&g, any_type(&g)));
  for (int k = 0; k < g.o.max_steps; k++) {
    lw_inst *i = step(&g, a);
    if (!i) {
      a = value(&g, some_shape(&g, any_type(&g)));
      continue;
    }
    if (g.n_pool < POOL) g.pool[g.n_pool++] = i;
    /* mostly go on from the newest value: chains are what fusion eats */
    a = chance(&g, 75) ? i : g.pool[below(&g, g.n_pool)];
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

static lw_inst *try_pair(gen *g, lw_opcode producer, lw_opcode consumer) {
  int64_t dims[] = {4, 6, 8};
  for (int k = 0; k < N_TYPES * 2; k++) {
    lw_inst *mark = g->c->last;
    lw_inst *a =
        value(g, shape(g, all_types[k % N_TYPES], k < N_TYPES ? 2 : 3, dims));
    lw_inst *p = consume(g, producer, a);
    lw_inst *c = p && p->opcode == producer ? consume(g, consumer, p) : NULL;
    for (int32_t s = 0; c && s < c->n_operands; s++)
      if (lw_inst_operand(c, s) == p && lw_shape_is_array(c->shape)) return c;
    drop_unused(g, mark);
  }
  return NULL;
}

lw_module *lw_gen_pairs(lw_context *ctx, lw_opcode producer,
                        const lw_opcode *consumers, int n, bool *made,
                        lw_rand *r) {
  lw_gen_options o = {.control_flow = true, .heavy = true};
  gen g = start(ctx, r, &o);
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
  g.c->root =
      op(&g, LW_OP_TUPLE, lw_shape_tuple(ctx, n_roots, shapes), n_roots, roots);
  return g.m;
}

const lw_opcode *lw_gen_opcodes(int *n) {
  *n = LW_OPCODE_COUNT;
  return opcodes;
}
