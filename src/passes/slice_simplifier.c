/* slice-simplifier: slice, dynamic-slice, dynamic-update-slice, concatenate and
 * pad.
 *
 * All of these choose elements and copy them. Each rule composes two choices
 * into one, or turns a choice by a known index into one by constants; clamping
 * is done as the operation would (numerics.md 8: starts are clamped into
 * [0, extent - size]). No arithmetic on elements.
 */
#include "passes/passes.h"
#include "passes/rewrite.h"

static bool same_shape(const lw_inst *a, const lw_inst *b) {
  return lw_shape_compatible(a->shape, b->shape);
}

static const int64_t *slice_attr(const lw_inst *i) {
  const lw_attr *a = lw_inst_attr(i, LW_ATTR_SLICE);
  return a->u.list.v;
}

static int64_t concat_dim(const lw_inst *i) {
  int32_t n;
  return lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n)[0];
}

/* ---- slice ---- */

static lw_inst *slice_of_slice(lw_rw *r, lw_inst *i, lw_inst *x) {
  const int64_t *out = slice_attr(i), *in = slice_attr(x);
  int64_t v[3 * LW_MAX_RANK];
  for (int32_t d = 0; d < i->shape->rank; d++) {
    int64_t n = i->shape->dims[d];
    v[3 * d] = in[3 * d] + out[3 * d] * in[3 * d + 2];
    v[3 * d + 2] = out[3 * d + 2] * in[3 * d + 2];
    v[3 * d + 1] = n ? v[3 * d] + (n - 1) * v[3 * d + 2] + 1 : v[3 * d];
  }
  if (!lw_rw_go(r, "slice of slice")) return NULL;
  return lw_rw_slice(r, lw_op(x, 0), v);
}

/* The slice lies in one operand of the concatenation. */
static lw_inst *slice_of_concat(lw_rw *r, lw_inst *i, lw_inst *x) {
  const int64_t *s = slice_attr(i);
  int64_t d = concat_dim(x), at = 0;
  int64_t lo = s[3 * d], n = i->shape->dims[d], stride = s[3 * d + 2];
  if (n < 1) return NULL;
  int64_t last = lo + (n - 1) * stride;
  for (int32_t k = 0; k < x->n_operands; k++) {
    lw_inst *y = lw_op(x, k);
    int64_t size = y->shape->dims[d];
    if (lo >= at && last < at + size) {
      if (!lw_rw_go(r, "slice of concatenate")) return NULL;
      int64_t v[3 * LW_MAX_RANK];
      for (int32_t j = 0; j < 3 * i->shape->rank; j++) v[j] = s[j];
      v[3 * d] = lo - at;
      v[3 * d + 1] = last - at + 1;
      return lw_rw_slice(r, y, v);
    }
    at += size;
  }
  return NULL;
}

/* The slice stays clear of what is padded, and the pad has no holes. */
static lw_inst *slice_of_pad(lw_rw *r, lw_inst *i, lw_inst *x) {
  const int64_t *s = slice_attr(i);
  const lw_attr *pad = lw_inst_attr(x, LW_ATTR_PADDING);
  lw_inst *y = lw_op(x, 0);
  int64_t v[3 * LW_MAX_RANK];
  for (int32_t d = 0; d < i->shape->rank; d++) {
    int64_t low = pad->u.list.v[3 * d], n = i->shape->dims[d];
    if (pad->u.list.v[3 * d + 2] || n < 1) return NULL;
    v[3 * d] = s[3 * d] - low;
    v[3 * d + 2] = s[3 * d + 2];
    v[3 * d + 1] = v[3 * d] + (n - 1) * v[3 * d + 2] + 1;
    if (v[3 * d] < 0 || v[3 * d + 1] > y->shape->dims[d]) return NULL;
  }
  return lw_rw_go(r, "slice of pad") ? lw_rw_slice(r, y, v) : NULL;
}

static lw_inst *slice_of_broadcast(lw_rw *r, lw_inst *i, lw_inst *x) {
  int32_t n;
  const int64_t *dims = lw_inst_i64s(x, LW_ATTR_DIMENSIONS, &n);
  const int64_t *s = slice_attr(i);
  int64_t v[3 * LW_MAX_RANK];
  for (int32_t k = 0; k < n; k++)
    for (int32_t j = 0; j < 3; j++) v[3 * k + j] = s[3 * dims[k] + j];
  if (!lw_rw_go(r, "slice of broadcast")) return NULL;
  lw_inst *y = lw_rw_slice(r, lw_op(x, 0), v);
  return lw_rw_broadcast(r, y, i->shape, n, dims);
}

/* An iota counted along a dim the slice leaves whole. */
static lw_inst *slice_of_iota(lw_rw *r, lw_inst *i, lw_inst *x) {
  int64_t d = lw_inst_i64(x, LW_ATTR_IOTA_DIMENSION, 0);
  const int64_t *s = slice_attr(i);
  if (s[3 * d] != 0 || (s[3 * d + 2] != 1 && i->shape->dims[d] > 1))
    return NULL;
  if (!lw_rw_go(r, "slice of iota")) return NULL;
  lw_inst *n = lw_rw_make(r, LW_OP_IOTA, i->shape, 0, NULL);
  lw_inst_set_i64(n, LW_ATTR_IOTA_DIMENSION, d);
  return n;
}

/* slice(reshape x) where the reshape only adds or drops 1-dims: slice x. */
static lw_inst *slice_of_reshape(lw_rw *r, lw_inst *i, lw_inst *x) {
  lw_inst *y = lw_op(x, 0);
  const lw_shape *in = y->shape, *mid = x->shape;
  const int64_t *s = slice_attr(i);
  int64_t v[3 * LW_MAX_RANK];
  int32_t d = 0;
  if (y->opcode != LW_OP_SLICE && y->opcode != LW_OP_CONCATENATE) return NULL;
  for (int32_t k = 0; k < in->rank; k++) {
    if (in->dims[k] == 1) {
      v[3 * k] = 0;
      v[3 * k + 1] = v[3 * k + 2] = 1;
      continue;
    }
    while (d < mid->rank && mid->dims[d] == 1) d++;
    if (d == mid->rank || mid->dims[d] != in->dims[k]) return NULL;
    for (int j = 0; j < 3; j++) v[3 * k + j] = s[3 * d + j];
    d++;
  }
  for (; d < mid->rank; d++)
    if (mid->dims[d] != 1) return NULL;
  for (d = 0; d < mid->rank; d++)
    if (i->shape->dims[d] == 0) return NULL;
  if (!lw_rw_go(r, "slice of reshape")) return NULL;
  return lw_rw_reshape(r, lw_rw_slice(r, y, v), i->shape);
}

static lw_inst *slice(lw_rw *r, lw_inst *i) {
  lw_inst *x = lw_op(i, 0);
  if (same_shape(x, i)) return lw_rw_go(r, "slice of everything") ? x : NULL;
  switch ((int)x->opcode) {
    case LW_OP_SLICE:
      return slice_of_slice(r, i, x);
    case LW_OP_CONCATENATE:
      return slice_of_concat(r, i, x);
    case LW_OP_PAD:
      return slice_of_pad(r, i, x);
    case LW_OP_BROADCAST:
      return slice_of_broadcast(r, i, x);
    case LW_OP_IOTA:
      return slice_of_iota(r, i, x);
    case LW_OP_RESHAPE:
      return slice_of_reshape(r, i, x);
    default:
      return NULL;
  }
}

/* ---- concatenate ---- */

/* The next operand carries on where this slice of the same array ended. */
static bool adjacent(const lw_inst *a, const lw_inst *b, int64_t d) {
  if (a->opcode != LW_OP_SLICE || b->opcode != LW_OP_SLICE) return false;
  if (lw_op(a, 0) != lw_op(b, 0)) return false;
  const int64_t *s = slice_attr(a), *t = slice_attr(b);
  for (int32_t k = 0; k < a->shape->rank; k++) {
    if (s[3 * k + 2] != 1 || t[3 * k + 2] != 1) return false;
    if (k == d ? s[3 * k + 1] != t[3 * k]
               : s[3 * k] != t[3 * k] || s[3 * k + 1] != t[3 * k + 1])
      return false;
  }
  return true;
}

static lw_inst *joined(lw_rw *r, lw_inst *a, lw_inst *b, int64_t d) {
  int64_t v[3 * LW_MAX_RANK];
  for (int32_t k = 0; k < 3 * a->shape->rank; k++) v[k] = slice_attr(a)[k];
  v[3 * d + 1] = slice_attr(b)[3 * d + 1];
  return lw_rw_slice(r, lw_op(a, 0), v);
}

static bool same_fill(const lw_inst *a, const lw_inst *b) {
  const lw_literal *la = lw_uniform(a), *lb = lw_uniform(b);
  if (!la || !lb) return false;
  int64_t n = lw_prim_bytes(la->shape->type);
  return !__builtin_memcmp(la->data, lb->data, (size_t)n);
}

/* Operands flattened into v: empty ones left out, nested concatenations of the
 * same dim opened, neighbours merged. How many. */
static int32_t flatten(lw_inst *i, int64_t d, lw_inst **v, bool *moved) {
  int32_t n = 0;
  for (int32_t k = 0; k < i->n_operands; k++) {
    lw_inst *x = lw_op(i, k);
    if (x->shape->dims[d] == 0) {
      *moved = true;
    } else if (x->opcode == LW_OP_CONCATENATE && concat_dim(x) == d &&
               x->n_uses == 1) {
      for (int32_t j = 0; j < x->n_operands; j++) v[n++] = lw_op(x, j);
      *moved = true;
    } else {
      v[n++] = x;
    }
  }
  return n;
}

static int32_t flat_size(const lw_inst *i) {
  int32_t n = i->n_operands;
  for (int32_t k = 0; k < i->n_operands; k++) n += lw_op(i, k)->n_operands;
  return n;
}

static bool merges(const lw_inst *a, const lw_inst *b, int64_t d) {
  return adjacent(a, b, d) || same_fill(a, b);
}

static lw_inst *merge(lw_rw *r, lw_inst *a, lw_inst *b, int64_t d) {
  if (adjacent(a, b, d)) return joined(r, a, b, d);
  int64_t dims[LW_MAX_RANK];
  const lw_shape *s = a->shape;
  for (int32_t k = 0; k < s->rank; k++) dims[k] = s->dims[k];
  dims[d] += b->shape->dims[d];
  lw_inst *scalar = a;
  while (scalar->shape->rank > 0 && scalar->opcode != LW_OP_CONSTANT)
    scalar = lw_op(scalar, 0);
  if (scalar->shape->rank > 0) return NULL; /* the movement pass comes first */
  return lw_rw_broadcast(r, scalar, lw_mk_array(r->m, s->type, s->rank, dims),
                         0, NULL);
}

static lw_inst *concatenate(lw_rw *r, lw_inst *i) {
  int64_t d = concat_dim(i);
  if (i->shape->elements == 0) return NULL;
  if (i->n_operands == 1)
    return lw_rw_go(r, "concatenate of one") ? lw_op(i, 0) : NULL;
  lw_inst **v = LW_NEW_ARRAY(r->env->scratch, lw_inst *, flat_size(i));
  bool moved = false;
  int32_t n = flatten(i, d, v, &moved), pair = 0;
  while (pair + 1 < n && !merges(v[pair], v[pair + 1], d)) pair++;
  bool found = pair + 1 < n;
  if (!moved && !found) return NULL;
  if (!lw_rw_go(r, "concatenate merged")) return NULL;
  if (found) {
    lw_inst *one = merge(r, v[pair], v[pair + 1], d);
    if (!one && !moved) return NULL;
    if (one) {
      v[pair] = one;
      for (int32_t k = pair + 1; k + 1 < n; k++) v[k] = v[k + 1];
      n--;
    }
  }
  if (n == 1) return v[0];
  lw_inst *c = lw_rw_make(r, LW_OP_CONCATENATE, i->shape, n, v);
  lw_inst_set_i64s(c, LW_ATTR_DIMENSIONS, 1, &d);
  return c;
}

/* ---- pad ---- */

static lw_inst *pad(lw_rw *r, lw_inst *i) {
  lw_inst *x = lw_op(i, 0);
  const lw_attr *p = lw_inst_attr(i, LW_ATTR_PADDING);
  bool nothing = true, cuts = true;
  for (int32_t k = 0; k < p->u.list.n; k++) {
    nothing = nothing && p->u.list.v[k] == 0;
    cuts = cuts && (k % 3 == 2 ? p->u.list.v[k] == 0 : p->u.list.v[k] <= 0);
  }
  if (nothing) return lw_rw_go(r, "pad by nothing") ? x : NULL;
  if (i->shape->elements == 0) return NULL;
  if ((x->shape->elements == 0 || same_fill(x, lw_op(i, 1))) &&
      lw_rw_go(r, "pad of padding"))
    return lw_rw_broadcast(r, lw_op(i, 1), i->shape, 0, NULL);
  if (cuts && lw_rw_go(r, "negative pad as slice")) {
    int64_t v[3 * LW_MAX_RANK];
    for (int32_t d = 0; d < x->shape->rank; d++) {
      v[3 * d] = -p->u.list.v[3 * d];
      v[3 * d + 1] = x->shape->dims[d] + p->u.list.v[3 * d + 1];
      v[3 * d + 2] = 1;
    }
    return lw_rw_slice(r, x, v);
  }
  return NULL;
}

/* ---- dynamic-slice, dynamic-update-slice ---- */

/* Start of dim d clamped into [0, extent - size], when its bounds meet there.
 * first: the operand of dim 0's start. */
static bool known_start(const lw_inst *i, int32_t first, int32_t d,
                        int64_t extent, int64_t size, int64_t *start) {
  int64_t lo, hi, max = extent - size;
  lw_int_range(lw_op(i, first + d), &lo, &hi);
  if (lw_op(i, first + d)->shape->type == LW_U64 && lo < 0) lo = 0, hi = max;
  if (lo < 0) lo = 0;
  if (hi < 0) hi = 0;
  if (lo > max) lo = max;
  if (hi > max) hi = max;
  *start = lo;
  return lo == hi;
}

static bool known_starts(const lw_inst *i, int32_t first, const lw_shape *size,
                         int64_t *starts) {
  const lw_shape *s = lw_op(i, 0)->shape;
  if (i->n_operands != first + s->rank) return false; /* vector of starts */
  for (int32_t d = 0; d < s->rank; d++)
    if (!known_start(i, first, d, s->dims[d], size->dims[d], &starts[d]))
      return false;
  return true;
}

static bool same_starts(const lw_inst *a, int32_t fa, const lw_inst *b,
                        int32_t fb) {
  if (a->n_operands - fa != b->n_operands - fb) return false;
  for (int32_t k = 0; fa + k < a->n_operands; k++)
    if (lw_op(a, fa + k) != lw_op(b, fb + k)) return false;
  return true;
}

/* dynamic-slice(broadcast x): only the dims that x fills need a start. */
static lw_inst *dynamic_slice_of_broadcast(lw_rw *r, lw_inst *i, lw_inst *x) {
  int32_t n;
  const int64_t *dims = lw_inst_i64s(x, LW_ATTR_DIMENSIONS, &n);
  lw_inst *ops[1 + LW_MAX_RANK], *src = lw_op(x, 0);
  int64_t sizes[LW_MAX_RANK];
  if (i->n_operands != 1 + x->shape->rank) return NULL;
  ops[0] = src;
  for (int32_t k = 0; k < n; k++) {
    ops[1 + k] = lw_op(i, 1 + (int32_t)dims[k]);
    sizes[k] = i->shape->dims[dims[k]];
    if (src->shape->dims[k] != x->shape->dims[dims[k]]) return NULL;
  }
  if (!lw_rw_go(r, "dynamic-slice of broadcast")) return NULL;
  if (n) {
    const lw_shape *s = lw_mk_array(r->m, i->shape->type, n, sizes);
    src = lw_rw_make(r, LW_OP_DYNAMIC_SLICE, s, 1 + n, ops);
    lw_inst_set_i64s(src, LW_ATTR_DYNAMIC_SLICE_SIZES, n, sizes);
  }
  return lw_rw_broadcast(r, src, i->shape, n, dims);
}

static lw_inst *dynamic_slice(lw_rw *r, lw_inst *i) {
  lw_inst *x = lw_op(i, 0);
  int64_t starts[LW_MAX_RANK], v[3 * LW_MAX_RANK];
  if (same_shape(x, i)) /* every start clamps to 0 */
    return lw_rw_go(r, "dynamic-slice of everything") ? x : NULL;
  if (known_starts(i, 1, i->shape, starts)) {
    if (!lw_rw_go(r, "dynamic-slice at a known place")) return NULL;
    for (int32_t d = 0; d < x->shape->rank; d++) {
      v[3 * d] = starts[d];
      v[3 * d + 1] = starts[d] + i->shape->dims[d];
      v[3 * d + 2] = 1;
    }
    return lw_rw_slice(r, x, v);
  }
  if (x->opcode == LW_OP_DYNAMIC_UPDATE_SLICE && same_shape(lw_op(x, 1), i) &&
      same_starts(i, 1, x, 2))
    return lw_rw_go(r, "slice of what was just put") ? lw_op(x, 1) : NULL;
  if (x->opcode == LW_OP_BROADCAST) return dynamic_slice_of_broadcast(r, i, x);
  return NULL;
}

static lw_inst *dynamic_update_slice(lw_rw *r, lw_inst *i) {
  lw_inst *x = lw_op(i, 0), *u = lw_op(i, 1);
  if (same_shape(u, i)) return lw_rw_go(r, "update of everything") ? u : NULL;
  if (u->shape->elements == 0)
    return lw_rw_go(r, "update of nothing") ? x : NULL;
  if (u->opcode == LW_OP_DYNAMIC_SLICE && lw_op(u, 0) == x &&
      same_starts(i, 2, u, 1))
    return lw_rw_go(r, "put back what was there") ? x : NULL;
  if (x->opcode == LW_OP_DYNAMIC_UPDATE_SLICE && same_shape(lw_op(x, 1), u) &&
      same_starts(i, 2, x, 2) && lw_rw_go(r, "overwritten update")) {
    lw_inst **ops = LW_NEW_ARRAY(r->env->scratch, lw_inst *, i->n_operands);
    for (int32_t k = 1; k < i->n_operands; k++) ops[k] = lw_op(i, k);
    ops[0] = lw_op(x, 0);
    return lw_rw_make(r, i->opcode, i->shape, i->n_operands, ops);
  }
  return NULL;
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {
      [LW_OP_SLICE] = slice,
      [LW_OP_CONCATENATE] = concatenate,
      [LW_OP_PAD] = pad,
      [LW_OP_DYNAMIC_SLICE] = dynamic_slice,
      [LW_OP_DYNAMIC_UPDATE_SLICE] = dynamic_update_slice,
  };
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_slice_simplifier = {
    "slice-simplifier",
    "composes slices, concatenations, pads and dynamic (update) slices", NULL,
    run};
