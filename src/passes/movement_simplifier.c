/* movement-simplifier: reshape, transpose, broadcast, reverse and copy.
 *
 * JAX lowers broadcast_in_dim to chains of reshape and broadcast that add and
 * drop dimensions of size 1; keepdims adds more. All rules here compose index
 * maps: the elements that come out are the same ones, moved once instead of
 * twice. No arithmetic, so bits cannot change; only the order in which dims
 * are named does.
 *
 * Canonical forms this pass aims at:
 *   a uniform array is broadcast(scalar constant);
 *   a broadcast is as close to the user as it can be: reshape(broadcast),
 *   transpose(broadcast), reverse(broadcast) become broadcast;
 *   a transpose that only moves dims of size 1 is a reshape;
 *   no reshape of reshape, transpose of transpose, broadcast of broadcast.
 */
#include <string.h>

#include "passes/passes.h"
#include "passes/rewrite.h"

static const int64_t *dims_attr(const lw_inst *i, int32_t *n) {
  return lw_inst_i64s(i, LW_ATTR_DIMENSIONS, n);
}

static bool same_shape(const lw_inst *a, const lw_inst *b) {
  return lw_shape_compatible(a->shape, b->shape);
}

/* ---- groups of dims that a reshape keeps apart ----
 * Walking both shapes from the left, a group ends where the products agree:
 * [2,3,4] to [6,4] has groups {2,3|6} and {4|4}. Dims of size 1 join the group
 * before them, or make one of their own with an empty other side. */

typedef struct {
  int32_t in_lo, in_hi, out_lo, out_hi; /* half open */
} group;

static int32_t common_groups(const lw_shape *in, const lw_shape *out,
                             group *g) {
  int32_t i = 0, o = 0, n = 0;
  while (i < in->rank || o < out->rank) {
    group *x = &g[n++];
    *x = (group){i, i, o, o};
    /* 1-dims that line up are their own group. */
    if (i < in->rank && o < out->rank && in->dims[i] == out->dims[o]) {
      i++;
      o++;
    } else {
      int64_t pi = i < in->rank ? in->dims[i++] : 1;
      int64_t po = 1;
      if (pi == 1 && x->in_lo < in->rank) {
        /* dropped 1-dim */
      } else {
        if (o < out->rank) po = out->dims[o++];
        while (pi != po) {
          if (pi < po && i < in->rank)
            pi *= in->dims[i++];
          else if (o < out->rank)
            po *= out->dims[o++];
          else
            pi *= in->dims[i++];
        }
      }
    }
    x->in_hi = i;
    x->out_hi = o;
  }
  return n;
}

/* ---- reshape(broadcast(x)) ----
 * Group by group: a group without broadcast-from dims larger than 1 is new
 * dims on both sides; a group with one dim that counts on either side maps it.
 * Dims of size 1 of x are dropped by a reshape of x. */

typedef struct {
  int64_t x_dims[LW_MAX_RANK];   /* x without 1-dims, in x's order */
  int64_t out_dims[LW_MAX_RANK]; /* where each lands in the result */
  int32_t n;
} plan;

/* The only dim in [lo, hi) with size > 1; -1: none, -2: several. */
static int32_t only_big(const lw_shape *s, int32_t lo, int32_t hi) {
  int32_t at = -1;
  for (int32_t d = lo; d < hi; d++) {
    if (s->dims[d] == 1) continue;
    if (at >= 0) return -2;
    at = d;
  }
  return at;
}

static int32_t index_of(const int64_t *v, int32_t n, int64_t x) {
  for (int32_t k = 0; k < n; k++)
    if (v[k] == x) return k;
  return -1;
}

/* Fills map[x dim] with the result dim, -1 for dropped 1-dims. */
static bool map_group(const lw_inst *b, const lw_shape *out, const group *g,
                      int64_t *map) {
  int32_t n, from = 0, last = -1;
  const int64_t *dims = dims_attr(b, &n);
  const lw_shape *x = lw_op(b, 0)->shape;
  for (int32_t d = g->in_lo; d < g->in_hi; d++) {
    int32_t k = index_of(dims, n, d);
    if (k < 0) continue;
    map[k] = -1;
    if (x->dims[k] == 1) continue;
    from++;
    last = d;
  }
  if (from == 0) return true;
  int32_t big = only_big(out, g->out_lo, g->out_hi);
  if (from > 1 || only_big(b->shape, g->in_lo, g->in_hi) != last || big < 0)
    return false;
  map[index_of(dims, n, last)] = big;
  return true;
}

static bool plan_reshape(const lw_inst *b, const lw_shape *out, plan *p) {
  group g[2 * LW_MAX_RANK];
  int64_t map[LW_MAX_RANK];
  const lw_shape *x = lw_op(b, 0)->shape;
  if (out->elements == 0) return false;
  int32_t n = common_groups(b->shape, out, g);
  for (int32_t k = 0; k < n; k++)
    if (!map_group(b, out, &g[k], map)) return false;
  p->n = 0;
  for (int32_t k = 0; k < x->rank; k++) {
    if (map[k] < 0) continue;
    p->x_dims[p->n] = x->dims[k];
    p->out_dims[p->n++] = map[k];
  }
  return true;
}

static lw_inst *reshape_of_broadcast(lw_rw *r, lw_inst *i, lw_inst *b) {
  plan p;
  if (!plan_reshape(b, i->shape, &p)) return NULL;
  if (!lw_rw_go(r, "reshape of broadcast")) return NULL;
  const lw_shape *s = lw_mk_array(r->m, i->shape->type, p.n, p.x_dims);
  lw_inst *x = lw_rw_reshape(r, lw_op(b, 0), s);
  return lw_rw_broadcast(r, x, i->shape, p.n, p.out_dims);
}

/* ---- reshape ---- */

/* The shape without its 1-dims is the same list: only 1-dims come and go. */
static bool same_but_ones(const lw_shape *a, const lw_shape *b) {
  int32_t i = 0, j = 0;
  for (;;) {
    while (i < a->rank && a->dims[i] == 1) i++;
    while (j < b->rank && b->dims[j] == 1) j++;
    if (i == a->rank || j == b->rank) return i == a->rank && j == b->rank;
    if (a->dims[i++] != b->dims[j++]) return false;
  }
}

static bool moves_only_ones(const lw_inst *t) {
  int32_t n;
  const int64_t *perm = dims_attr(t, &n);
  const lw_shape *s = lw_op(t, 0)->shape;
  int64_t last = -1;
  for (int32_t k = 0; k < n; k++) {
    if (s->dims[perm[k]] == 1) continue;
    if (perm[k] < last) return false;
    last = perm[k];
  }
  return true;
}

/* An iota whose counted dim keeps its size and place among the others. */
static lw_inst *reshape_of_iota(lw_rw *r, lw_inst *i, lw_inst *x) {
  if (!same_but_ones(x->shape, i->shape)) return NULL;
  int64_t d = lw_inst_i64(x, LW_ATTR_IOTA_DIMENSION, 0), to = 0;
  int32_t big = 0;
  if (x->shape->dims[d] == 1) return NULL;
  for (int64_t k = 0; k < d; k++) big += x->shape->dims[k] != 1;
  for (; to < i->shape->rank; to++) {
    if (i->shape->dims[to] == 1) continue;
    if (big-- == 0) break;
  }
  if (!lw_rw_go(r, "reshape of iota")) return NULL;
  lw_inst *n = lw_rw_make(r, LW_OP_IOTA, i->shape, 0, NULL);
  lw_inst_set_i64(n, LW_ATTR_IOTA_DIMENSION, to);
  return n;
}

static lw_inst *reshape_of_constant(lw_rw *r, lw_inst *i, lw_inst *x) {
  const lw_literal *l = lw_inst_literal(x);
  if (!l || !lw_shape_is_array(l->shape) || x->shape->elements == 0)
    return NULL;
  if (!lw_rw_go(r, "reshape of constant")) return NULL;
  lw_literal *to = LW_NEW(r->m->arena, lw_literal);
  *to = (lw_literal){.shape = i->shape, .data = l->data};
  lw_inst *c = lw_inst_constant(i->parent, to);
  lw_inst_move_before(c, i);
  return c;
}

/* reshape(slice(reshape x))) and the like stay: they need arithmetic on
 * bounds, and a reshape costs nothing in a kernel. */
static lw_inst *reshape(lw_rw *r, lw_inst *i) {
  lw_inst *x = lw_op(i, 0);
  if (same_shape(x, i)) return lw_rw_go(r, "reshape to itself") ? x : NULL;
  switch ((int)x->opcode) {
    case LW_OP_RESHAPE:
      if (!lw_rw_go(r, "reshape of reshape")) return NULL;
      return lw_rw_reshape(r, lw_op(x, 0), i->shape);
    case LW_OP_BROADCAST:
      return reshape_of_broadcast(r, i, x);
    case LW_OP_IOTA:
      return reshape_of_iota(r, i, x);
    case LW_OP_CONSTANT:
      return reshape_of_constant(r, i, x);
    default:
      return NULL;
  }
}

/* ---- transpose ---- */

static lw_inst *transpose_of_broadcast(lw_rw *r, lw_inst *i, lw_inst *b) {
  int32_t n, rank;
  const int64_t *dims = dims_attr(b, &n), *perm = dims_attr(i, &rank);
  int64_t to[LW_MAX_RANK];
  for (int32_t k = 0; k < n; k++) to[k] = index_of(perm, rank, dims[k]);
  /* Sources stay in order: the transpose moves down to the smaller x. */
  int64_t order[LW_MAX_RANK], sorted[LW_MAX_RANK];
  for (int32_t k = 0; k < n; k++) {
    int32_t at = k;
    for (; at > 0 && sorted[at - 1] > to[k]; at--) {
      sorted[at] = sorted[at - 1];
      order[at] = order[at - 1];
    }
    sorted[at] = to[k];
    order[at] = k;
  }
  if (!lw_rw_go(r, "transpose of broadcast")) return NULL;
  lw_inst *x = lw_rw_transpose(r, lw_op(b, 0), order);
  return lw_rw_broadcast(r, x, i->shape, n, sorted);
}

static lw_inst *transpose(lw_rw *r, lw_inst *i) {
  lw_inst *x = lw_op(i, 0);
  int32_t rank;
  const int64_t *perm = dims_attr(i, &rank);
  if (lw_is_iota_list(rank, perm))
    return lw_rw_go(r, "transpose in place") ? x : NULL;
  if (moves_only_ones(i) && lw_rw_go(r, "transpose of 1-dims"))
    return lw_rw_reshape(r, x, i->shape);
  if (x->opcode == LW_OP_TRANSPOSE) {
    const int64_t *inner = dims_attr(x, &rank);
    int64_t both[LW_MAX_RANK];
    for (int32_t k = 0; k < rank; k++) both[k] = inner[perm[k]];
    if (!lw_rw_go(r, "transpose of transpose")) return NULL;
    return lw_rw_transpose(r, lw_op(x, 0), both);
  }
  if (x->opcode == LW_OP_BROADCAST) return transpose_of_broadcast(r, i, x);
  if (x->opcode == LW_OP_IOTA && lw_rw_go(r, "transpose of iota")) {
    int64_t d = lw_inst_i64(x, LW_ATTR_IOTA_DIMENSION, 0);
    lw_inst *n = lw_rw_make(r, LW_OP_IOTA, i->shape, 0, NULL);
    lw_inst_set_i64(n, LW_ATTR_IOTA_DIMENSION, index_of(perm, rank, d));
    return n;
  }
  return NULL;
}

/* ---- broadcast ---- */

static lw_inst *broadcast_of_iota(lw_rw *r, lw_inst *i, lw_inst *x) {
  int32_t n;
  const int64_t *dims = dims_attr(i, &n);
  int64_t d = lw_inst_i64(x, LW_ATTR_IOTA_DIMENSION, 0);
  if (!lw_rw_go(r, "broadcast of iota")) return NULL;
  lw_inst *iota = lw_rw_make(r, LW_OP_IOTA, i->shape, 0, NULL);
  lw_inst_set_i64(iota, LW_ATTR_IOTA_DIMENSION, dims[d]);
  return iota;
}

/* A broadcast that only adds 1-dims, in order, is a reshape. */
static bool adds_only_ones(const lw_inst *i, const lw_inst *x) {
  int32_t n;
  const int64_t *dims = dims_attr(i, &n);
  for (int32_t k = 1; k < n; k++)
    if (dims[k] < dims[k - 1]) return false;
  return x->shape->elements == i->shape->elements && i->shape->elements > 0;
}

/* broadcast(reshape x) where the reshape only adds or drops 1-dims: broadcast
 * x without its 1-dims. */
static lw_inst *broadcast_of_reshape(lw_rw *r, lw_inst *i, lw_inst *x) {
  int32_t n, kept = 0;
  const int64_t *dims = dims_attr(i, &n);
  const lw_shape *s = x->shape, *in = lw_op(x, 0)->shape;
  int64_t to[LW_MAX_RANK], sizes[LW_MAX_RANK];
  for (int32_t k = 0; k < n; k++) {
    if (s->dims[k] == 1) continue;
    sizes[kept] = s->dims[k];
    to[kept++] = dims[k];
  }
  bool gains = kept < n || in->rank > kept;
  if (!same_but_ones(s, in) || !gains || kept == n) return NULL;
  if (!lw_rw_go(r, "broadcast of 1-dims")) return NULL;
  const lw_shape *t = lw_mk_array(r->m, s->type, kept, sizes);
  return lw_rw_broadcast(r, lw_rw_reshape(r, lw_op(x, 0), t), i->shape, kept,
                         to);
}

static lw_inst *broadcast(lw_rw *r, lw_inst *i) {
  lw_inst *x = lw_op(i, 0);
  int32_t n;
  const int64_t *dims = dims_attr(i, &n);
  if (same_shape(x, i) && lw_is_iota_list(n, dims))
    return lw_rw_go(r, "broadcast to itself") ? x : NULL;
  if (x->opcode == LW_OP_BROADCAST && lw_rw_go(r, "broadcast of broadcast")) {
    int32_t m;
    const int64_t *inner = dims_attr(x, &m);
    int64_t to[LW_MAX_RANK];
    for (int32_t k = 0; k < m; k++) to[k] = dims[inner[k]];
    return lw_rw_broadcast(r, lw_op(x, 0), i->shape, m, to);
  }
  if (adds_only_ones(i, x) && !lw_uniform(x) &&
      lw_rw_go(r, "broadcast of 1-dims as reshape"))
    return lw_rw_reshape(r, x, i->shape);
  if (x->opcode == LW_OP_IOTA) return broadcast_of_iota(r, i, x);
  if (x->opcode == LW_OP_RESHAPE) return broadcast_of_reshape(r, i, x);
  return NULL;
}

/* ---- the others ---- */

static lw_inst *reverse(lw_rw *r, lw_inst *i) {
  lw_inst *x = lw_op(i, 0);
  int32_t n, m, kept = 0;
  const int64_t *dims = dims_attr(i, &n);
  int64_t keep[LW_MAX_RANK];
  const int64_t *from = NULL;
  if (x->opcode == LW_OP_BROADCAST) from = dims_attr(x, &m);
  for (int32_t k = 0; k < n; k++) {
    if (i->shape->dims[dims[k]] <= 1) continue;
    if (from && index_of(from, m, dims[k]) < 0) continue;
    keep[kept++] = dims[k];
  }
  if (kept == 0) return lw_rw_go(r, "reverse of nothing") ? x : NULL;
  if (x->opcode == LW_OP_REVERSE) {
    const int64_t *inner = dims_attr(x, &m);
    bool same = m == n;
    for (int32_t k = 0; k < n; k++)
      same = same && index_of(inner, m, dims[k]) >= 0;
    if (same) return lw_rw_go(r, "reverse of reverse") ? lw_op(x, 0) : NULL;
  }
  if (kept == n || !lw_rw_go(r, "reverse of 1-dims")) return NULL;
  lw_inst *v = lw_rw_un(r, LW_OP_REVERSE, i->shape, x);
  lw_inst_set_i64s(v, LW_ATTR_DIMENSIONS, kept, keep);
  return v;
}

/* Values are immutable here; who needs a buffer of its own gets it from the
 * plan. */
static lw_inst *copy(lw_rw *r, lw_inst *i) {
  lw_inst *x = lw_op(i, 0);
  return same_shape(x, i) && lw_rw_go(r, "copy") ? x : NULL;
}

/* A uniform array constant is a broadcast scalar. */
static lw_inst *constant(lw_rw *r, lw_inst *i) {
  const lw_literal *l = lw_inst_literal(i);
  if (!l || !lw_shape_is_array(i->shape) || i->shape->rank == 0) return NULL;
  if (i->shape->elements < 1 || !lw_literal_is_uniform(l)) return NULL;
  if (!lw_rw_go(r, "uniform constant")) return NULL;
  lw_literal *one;
  r->error = lw_literal_new(r->m->arena,
                            lw_mk_array(r->m, i->shape->type, 0, NULL), &one);
  if (r->error) return NULL;
  memcpy(one->data, l->data, (size_t)lw_prim_bytes(i->shape->type));
  lw_inst *c = lw_inst_constant(i->parent, one);
  lw_inst_move_before(c, i);
  return lw_rw_broadcast(r, c, i->shape, 0, NULL);
}

/* iota over a dim of size 1 is zero. */
static lw_inst *iota(lw_rw *r, lw_inst *i) {
  int64_t d = lw_inst_i64(i, LW_ATTR_IOTA_DIMENSION, 0);
  if (i->shape->dims[d] != 1 || i->shape->elements == 0) return NULL;
  if (lw_prim_is_complex(i->shape->type)) return NULL;
  if (!lw_rw_go(r, "iota of one")) return NULL;
  return lw_prim_is_float(i->shape->type) ? lw_rw_const_f64(r, i->shape, 0)
                                          : lw_rw_const_int(r, i->shape, 0);
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {
      [LW_OP_RESHAPE] = reshape,     [LW_OP_TRANSPOSE] = transpose,
      [LW_OP_BROADCAST] = broadcast, [LW_OP_REVERSE] = reverse,
      [LW_OP_COPY] = copy,           [LW_OP_CONSTANT] = constant,
      [LW_OP_IOTA] = iota,
  };
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_movement_simplifier = {
    "movement-simplifier",
    "merges and removes reshapes, transposes, broadcasts, reverses, copies",
    NULL, run};
