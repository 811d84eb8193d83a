/* dynamic-padder: bounded dynamic dimensions become static arrays and sizes.
 *
 * A value f32[<=4] is held as f32[4] and a scalar s64 size; elements beyond the
 * size are anything. Sizes follow the values: elementwise operations,
 * broadcasts, transposes, slices and dots hand them on, set-dimension-size
 * makes them, get-dimension-size reads them. Where an operation would see the
 * padding it is masked:
 *   reduce     over a dynamic dimension: the padding becomes the reducer's
 *              neutral element (lw_fold_neutral: exact for every other
 *              operand), so the fold keeps the rule of the declared bounds
 *              (docs/numerics.md 5) and the interpreter's bits.
 *   reshape    elements are dense in their sizes: a gather computes where each
 *              comes from.
 *   results    zeros, as the interpreter gives them.
 * What is left (sorts, windows, concatenations along a dynamic dimension, loop
 * state, ...) is refused by name. A size that does not fit its bound, which the
 * interpreter reports, is not noticed here: the caller's arrays hold no more
 * than the bound.
 */
#include "hlo/fold.h"
#include "passes/inline.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

typedef lw_inst **sizes; /* a scalar s64 a dimension, NULL where static */

typedef struct {
  lw_rw r;
  lw_map known; /* inst -> sizes[leaves]; NULL entries: all static */
  lw_status error;
} padder;

/* ---- shapes ---- */

static const lw_shape *bounds_only(padder *p, const lw_shape *s) {
  lw_context *ctx = p->r.m->ctx;
  if (!lw_shape_has_dynamic(s)) return s;
  if (lw_shape_is_tuple(s)) {
    const lw_shape **v =
        LW_NEW_ARRAY(p->r.env->scratch, const lw_shape *, s->n_elems + 1);
    for (int32_t k = 0; k < s->n_elems; k++) v[k] = bounds_only(p, s->elems[k]);
    return lw_shape_tuple(ctx, s->n_elems, v);
  }
  return lw_shape_with_layout(
      ctx, lw_shape_array(ctx, s->type, s->rank, s->dims), s->layout);
}

static bool has_unbounded(const lw_shape *s) {
  for (int32_t k = 0; k < s->n_elems; k++)
    if (has_unbounded(s->elems[k])) return true;
  for (int32_t d = 0; d < s->rank; d++)
    if (s->dims[d] == LW_UNBOUNDED) return true;
  return false;
}

static void refuse(padder *p, const lw_inst *i, const char *what) {
  if (!p->error)
    p->error = lw_error(LW_UNIMPLEMENTED, "%s: no code for %s %s", i->name,
                        lw_opcode_name(i->opcode), what);
}

/* ---- sizes ---- */

static sizes get(padder *p, const lw_inst *i, int64_t leaf) {
  sizes *v = lw_map_ptr(&p->known, i);
  return v ? v[leaf] : NULL;
}

static void put(padder *p, const lw_inst *i, int64_t leaf, sizes s) {
  if (!s) return;
  sizes *v = lw_map_ptr(&p->known, i);
  int64_t n = lw_shape_leaf_count(i->shape);
  if (!v) {
    v = LW_NEW_ARRAY(p->r.env->scratch, sizes, n + 1);
    lw_map_set_ptr(&p->known, i, v);
  }
  v[leaf] = s;
}

static bool is_dynamic(padder *p, const lw_inst *i) {
  return lw_map_ptr(&p->known, i) != NULL;
}

static sizes none(padder *p, int32_t rank) {
  return LW_NEW_ARRAY(p->r.env->scratch, lw_inst *, rank + 1);
}

static bool any(sizes s, int32_t rank) {
  for (int32_t d = 0; s && d < rank; d++)
    if (s[d]) return true;
  return false;
}

static const lw_shape *index_shape(padder *p) {
  return lw_mk_array(p->r.m, LW_S64, 0, NULL);
}

static lw_inst *number(padder *p, int64_t v) {
  return lw_rw_const_int(&p->r, index_shape(p), v);
}

static lw_inst *calc(padder *p, lw_opcode op, lw_inst *a, lw_inst *b) {
  return lw_rw_bin(&p->r, op, a->shape, a, b);
}

static lw_inst *size_or_bound(padder *p, lw_inst *x, sizes s, int32_t d) {
  return s && s[d] ? s[d] : number(p, x->shape->dims[d]);
}

/* ---- masks ---- */

static lw_inst *count(padder *p, const lw_shape *s, int32_t dim) {
  const lw_shape *t = lw_mk_array(p->r.m, LW_S64, s->rank, s->dims);
  lw_inst *at = lw_rw_make(&p->r, LW_OP_IOTA, t, 0, NULL);
  lw_inst_set_i64(at, LW_ATTR_IOTA_DIMENSION, dim);
  return at;
}

/* x where every listed dimension is inside its size, else fill. */
static lw_inst *masked(padder *p, lw_inst *x, sizes s, lw_inst *fill) {
  lw_inst *inside = NULL;
  const lw_shape *t =
      lw_mk_array(p->r.m, LW_PRED, x->shape->rank, x->shape->dims);
  for (int32_t d = 0; s && d < x->shape->rank; d++) {
    if (!s[d]) continue;
    lw_inst *at = count(p, x->shape, d);
    lw_inst *end = lw_rw_broadcast(&p->r, s[d], at->shape, 0, NULL);
    lw_inst *in = lw_rw_compare(&p->r, t, at, end, LW_CMP_LT, -1);
    inside = inside ? calc(p, LW_OP_AND, inside, in) : in;
  }
  if (!inside) return x;
  lw_inst *ops[3] = {inside, x,
                     lw_rw_broadcast(&p->r, fill, x->shape, 0, NULL)};
  return lw_rw_make(&p->r, LW_OP_SELECT, x->shape, 3, ops);
}

static lw_inst *zero(padder *p, lw_prim t) {
  const lw_shape *s = lw_mk_array(p->r.m, t, 0, NULL);
  lw_class c = lw_prim_class(t);
  bool real = c == LW_CLASS_FLOAT || c == LW_CLASS_COMPLEX;
  return real ? lw_rw_const_f64(&p->r, s, 0) : lw_rw_const_int(&p->r, s, 0);
}

/* ---- operations that hand sizes on ---- */

static void like_operands(padder *p, lw_inst *i) {
  sizes s = none(p, i->shape->rank);
  for (int32_t k = 0; k < i->n_operands; k++) {
    sizes o = get(p, lw_op(i, k), 0);
    for (int32_t d = 0; o && d < i->shape->rank; d++)
      if (!s[d] && lw_op(i, k)->shape->rank == i->shape->rank) s[d] = o[d];
  }
  if (any(s, i->shape->rank)) put(p, i, 0, s);
}

/* Result dimension d is operand dimension from[d], or -1. */
static void renamed(padder *p, lw_inst *i, const int64_t *from) {
  sizes o = get(p, lw_op(i, 0), 0), s = none(p, i->shape->rank);
  for (int32_t d = 0; d < i->shape->rank; d++)
    if (from[d] >= 0) s[d] = o[from[d]];
  if (any(s, i->shape->rank)) put(p, i, 0, s);
}

static void broadcast(padder *p, lw_inst *i) {
  int64_t from[LW_MAX_RANK];
  int32_t n;
  const int64_t *map = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  for (int32_t d = 0; d < i->shape->rank; d++) from[d] = -1;
  for (int32_t k = 0; k < n; k++) from[map[k]] = k;
  renamed(p, i, from);
}

static void transpose(padder *p, lw_inst *i) {
  int32_t n;
  renamed(p, i, lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n));
}

/* ceil((min(hi, size) - lo) / step), at least 0. */
static void slice(padder *p, lw_inst *i) {
  int32_t n;
  const int64_t *v = lw_inst_i64s(i, LW_ATTR_SLICE, &n);
  sizes o = get(p, lw_op(i, 0), 0), s = none(p, i->shape->rank);
  for (int32_t d = 0; d < i->shape->rank; d++) {
    if (!o[d]) continue;
    lw_inst *end = calc(p, LW_OP_MINIMUM, o[d], number(p, v[3 * d + 1]));
    lw_inst *len = calc(p, LW_OP_SUBTRACT, end, number(p, v[3 * d]));
    len = calc(p, LW_OP_MAXIMUM, len, number(p, 0));
    len = calc(p, LW_OP_ADD, len, number(p, v[3 * d + 2] - 1));
    s[d] = calc(p, LW_OP_DIVIDE, len, number(p, v[3 * d + 2]));
  }
  put(p, i, 0, s);
}

static void pad(padder *p, lw_inst *i) {
  int32_t n;
  const int64_t *v = lw_inst_i64s(i, LW_ATTR_PADDING, &n);
  sizes o = get(p, lw_op(i, 0), 0);
  for (int32_t d = 0; o && d < i->shape->rank; d++)
    if (o[d] && (v[3 * d] || v[3 * d + 1] || v[3 * d + 2]))
      refuse(p, i, "along a dynamic dimension");
  put(p, i, 0, o);
}

/* concatenate, reverse: the listed dimensions are static. */
static void other_dims(padder *p, lw_inst *i) {
  int32_t n;
  const int64_t *dims = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  for (int32_t k = 0; k < i->n_operands; k++) {
    sizes o = get(p, lw_op(i, k), 0);
    for (int32_t j = 0; o && j < n; j++)
      if (o[dims[j]]) refuse(p, i, "along a dynamic dimension");
  }
  like_operands(p, i);
}

/* ---- reduce, dot ---- */

static bool has(int32_t n, const int64_t *v, int64_t x) {
  for (int32_t k = 0; k < n; k++)
    if (v[k] == x) return true;
  return false;
}

static lw_inst *neutral_of(padder *p, lw_inst *i) {
  lw_literal *l;
  lw_opcode op = lw_comp_binary_op(lw_inst_comp(i, LW_ATTR_TO_APPLY));
  const lw_shape *s = lw_mk_array(p->r.m, lw_op(i, 0)->shape->type, 0, NULL);
  p->error = lw_literal_new(p->r.m->arena, s, &l);
  if (p->error) return NULL;
  if (i->n_operands != 2 || !lw_fold_neutral(op, l)) {
    refuse(p, i, "over a dynamic dimension with this reducer");
    return NULL;
  }
  lw_inst *c = lw_inst_constant(i->parent, l);
  lw_inst_move_before(c, i);
  return c;
}

static void reduce(padder *p, lw_inst *i) {
  int32_t n, rank = lw_op(i, 0)->shape->rank, kept = 0;
  const int64_t *dims = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  sizes o = get(p, lw_op(i, 0), 0), folded = none(p, rank), s = none(p, rank);
  for (int32_t d = 0; o && d < rank; d++) {
    if (has(n, dims, d))
      folded[d] = o[d];
    else
      s[kept++] = o[d];
  }
  if (any(folded, rank)) {
    lw_inst *fill = neutral_of(p, i);
    if (fill) lw_inst_set_operand(i, 0, masked(p, lw_op(i, 0), folded, fill));
  }
  for (int64_t k = 0; any(s, kept) && k < lw_shape_leaf_count(i->shape); k++)
    put(p, i, k, s);
}

static void dot(padder *p, lw_inst *i) {
  static const lw_attr_id batch[] = {LW_ATTR_LHS_BATCH_DIMS,
                                     LW_ATTR_RHS_BATCH_DIMS};
  static const lw_attr_id sum[] = {LW_ATTR_LHS_CONTRACTING_DIMS,
                                   LW_ATTR_RHS_CONTRACTING_DIMS};
  sizes s = none(p, i->shape->rank);
  int32_t at = 0;
  for (int32_t k = 0; k < 2; k++) {
    int32_t nb, nc;
    const int64_t *b = lw_inst_i64s(i, batch[k], &nb);
    const int64_t *c = lw_inst_i64s(i, sum[k], &nc);
    sizes o = get(p, lw_op(i, k), 0);
    for (int32_t j = 0; j < nb; j++)
      if (o && o[b[j]]) s[j] = o[b[j]];
    if (k == 0) at = nb;
    for (int32_t d = 0; d < lw_op(i, k)->shape->rank; d++) {
      if (has(nc, c, d) && o && o[d])
        refuse(p, i, "over a dynamic contracting dimension");
      if (!has(nb, b, d) && !has(nc, c, d)) s[at++] = o ? o[d] : NULL;
    }
  }
  if (any(s, i->shape->rank)) put(p, i, 0, s);
}

/* ---- reshape ---- */

/* Row-major strides of the sizes. */
static void strides_of(padder *p, const lw_shape *s, sizes z, lw_inst **out) {
  lw_inst *n = number(p, 1);
  for (int32_t d = s->rank; d-- > 0;) {
    out[d] = n;
    n = calc(p, LW_OP_MULTIPLY, n, z[d]);
  }
}

static lw_inst *over(padder *p, lw_inst *scalar, const lw_shape *s) {
  return lw_rw_broadcast(&p->r, scalar, s, 0, NULL);
}

/* Where each element of the result lies in x, as indices [result dims, 1, ...]
 * put side by side. from, to: sizes of every dimension. */
static lw_inst *places(padder *p, lw_inst *x, sizes from, const lw_shape *s,
                       sizes to) {
  lw_inst *outer[LW_MAX_RANK], *inner[LW_MAX_RANK], *part[LW_MAX_RANK];
  const lw_shape *t = lw_mk_array(p->r.m, LW_S64, s->rank, s->dims);
  int64_t dims[LW_MAX_RANK + 1];
  strides_of(p, s, to, outer);
  strides_of(p, x->shape, from, inner);
  lw_inst *at = over(p, number(p, 0), t);
  for (int32_t d = 0; d < s->rank; d++) {
    lw_inst *row = count(p, s, d), *stride = over(p, outer[d], t);
    at = calc(p, LW_OP_ADD, at, calc(p, LW_OP_MULTIPLY, row, stride));
  }
  for (int32_t d = 0; d < s->rank; d++) dims[d] = s->dims[d];
  dims[s->rank] = 1;
  const lw_shape *column = lw_mk_array(p->r.m, LW_S64, s->rank + 1, dims);
  for (int32_t d = 0; d < x->shape->rank; d++) {
    lw_inst *v = calc(p, LW_OP_DIVIDE, at, over(p, inner[d], t));
    v = calc(p, LW_OP_REMAINDER, v, over(p, from[d], t));
    part[d] = lw_rw_reshape(&p->r, v, column);
  }
  if (x->shape->rank == 1) return part[0];
  dims[s->rank] = x->shape->rank;
  lw_inst *all = lw_rw_make(&p->r, LW_OP_CONCATENATE,
                            lw_mk_array(p->r.m, LW_S64, s->rank + 1, dims),
                            x->shape->rank, part);
  lw_inst_set_i64s(all, LW_ATTR_DIMENSIONS, 1, (int64_t[]){s->rank});
  return all;
}

static lw_inst *pick(padder *p, lw_inst *x, lw_inst *at, const lw_shape *s) {
  int64_t list[LW_MAX_RANK], ones[LW_MAX_RANK];
  int32_t rank = x->shape->rank;
  for (int32_t d = 0; d < rank; d++) {
    list[d] = d;
    ones[d] = 1;
  }
  lw_inst *g = lw_rw_bin(&p->r, LW_OP_GATHER, s, x, at);
  lw_inst_set_i64s(g, LW_ATTR_OFFSET_DIMS, 0, list);
  lw_inst_set_i64s(g, LW_ATTR_COLLAPSED_SLICE_DIMS, rank, list);
  lw_inst_set_i64s(g, LW_ATTR_START_INDEX_MAP, rank, list);
  lw_inst_set_i64(g, LW_ATTR_INDEX_VECTOR_DIM, s->rank);
  lw_inst_set_i64s(g, LW_ATTR_SLICE_SIZES, rank, ones);
  return g;
}

static lw_inst *repacked(padder *p, lw_inst *i, sizes to) {
  lw_inst *x = lw_op(i, 0);
  int32_t rank = i->shape->rank;
  sizes o = get(p, x, 0), from = none(p, x->shape->rank), all = none(p, rank);
  if (x->shape->rank == 0 || rank >= LW_MAX_RANK) {
    refuse(p, i, "of this rank");
    return NULL;
  }
  for (int32_t d = 0; d < x->shape->rank; d++)
    from[d] = size_or_bound(p, x, o, d);
  for (int32_t d = 0; d < rank; d++)
    all[d] = to[d] ? to[d] : number(p, i->shape->dims[d]);
  return pick(p, x, places(p, x, from, i->shape, all), i->shape);
}

static lw_inst *widen(padder *p, lw_inst *x) {
  x = lw_rw_reshape(&p->r, x, lw_mk_array(p->r.m, x->shape->type, 0, NULL));
  if (x->shape->type == LW_S64) return x;
  return lw_rw_un(&p->r, LW_OP_CONVERT, index_shape(p), x);
}

static lw_inst *dynamic_reshape(padder *p, lw_inst *i, sizes *out) {
  sizes s = none(p, i->shape->rank);
  for (int32_t d = 0; d < i->shape->rank; d++) s[d] = widen(p, lw_op(i, d + 1));
  *out = s;
  return repacked(p, i, s);
}

/* The first dimension that was declared dynamic takes what is left, as in the
 * interpreter. */
static lw_inst *reshape(padder *p, lw_inst *i, const lw_shape *declared,
                        sizes *out) {
  lw_inst *x = lw_op(i, 0), *total = number(p, 1);
  sizes o = get(p, x, 0), s = none(p, i->shape->rank);
  int64_t fixed = 1, free_dim = -1;
  for (int32_t d = 0; d < declared->rank; d++) {
    bool dynamic = declared->dynamic && declared->dynamic[d];
    if (dynamic && free_dim < 0)
      free_dim = d;
    else
      fixed *= declared->dims[d];
  }
  if (free_dim < 0 || fixed < 1) {
    refuse(p, i, "that hides a dynamic dimension");
    return NULL;
  }
  for (int32_t d = 0; d < x->shape->rank; d++)
    total = calc(p, LW_OP_MULTIPLY, total, size_or_bound(p, x, o, d));
  s[free_dim] = calc(p, LW_OP_DIVIDE, total, number(p, fixed));
  *out = s;
  return repacked(p, i, s);
}

/* ---- sizes made and read ---- */

static lw_inst *set_size(padder *p, lw_inst *i, sizes *out) {
  int32_t n, rank = i->shape->rank;
  int64_t dim = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n)[0];
  lw_inst *x = lw_op(i, 0);
  sizes o = get(p, x, 0), s = none(p, rank), old = none(p, rank);
  for (int32_t d = 0; o && d < rank; d++) s[d] = o[d];
  old[dim] = s[dim]; /* growing uncovers zeros */
  s[dim] = widen(p, lw_op(i, 1));
  *out = s;
  return masked(p, x, old, zero(p, x->shape->type));
}

static lw_inst *get_size(padder *p, lw_inst *i) {
  int32_t n;
  int64_t dim = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n)[0];
  lw_inst *v =
      size_or_bound(p, lw_op(i, 0), get(p, lw_op(i, 0), 0), (int32_t)dim);
  if (v->shape->type != i->shape->type)
    v = lw_rw_un(&p->r, LW_OP_CONVERT,
                 lw_mk_array(p->r.m, i->shape->type, 0, NULL), v);
  return lw_rw_reshape(&p->r, v, i->shape);
}

/* ---- tuples ---- */

static void tuple(padder *p, lw_inst *i) {
  int64_t at = 0;
  for (int32_t k = 0; k < i->n_operands; k++) {
    int64_t n = lw_shape_leaf_count(lw_op(i, k)->shape);
    for (int64_t l = 0; l < n; l++) put(p, i, at++, get(p, lw_op(i, k), l));
  }
}

static void element(padder *p, lw_inst *i) {
  const lw_inst *t = lw_op(i, 0);
  int64_t at = 0, k = lw_inst_i64(i, LW_ATTR_INDEX, 0);
  for (int64_t e = 0; e < k; e++) at += lw_shape_leaf_count(t->shape->elems[e]);
  for (int64_t l = 0; l < lw_shape_leaf_count(i->shape); l++)
    put(p, i, l, get(p, t, at + l));
}

static void same_leaves(padder *p, lw_inst *i) {
  for (int64_t l = 0; l < lw_shape_leaf_count(i->shape); l++)
    put(p, i, l, get(p, lw_op(i, 0), l));
}

/* ---- the walk ---- */

static void replace(padder *p, lw_inst *i, lw_inst *by, sizes s) {
  if (!by) return;
  if (s) put(p, by, 0, s);
  lw_inst_replace_uses(i, by);
  lw_inst_remove(i);
}

static void hand_on(padder *p, lw_inst *i) {
  switch ((int)i->opcode) {
    case LW_OP_BROADCAST:
      broadcast(p, i);
      return;
    case LW_OP_TRANSPOSE:
      transpose(p, i);
      return;
    case LW_OP_SLICE:
      slice(p, i);
      return;
    case LW_OP_PAD:
      pad(p, i);
      return;
    case LW_OP_CONCATENATE:
    case LW_OP_REVERSE:
      other_dims(p, i);
      return;
    case LW_OP_REDUCE:
      reduce(p, i);
      return;
    case LW_OP_DOT:
      dot(p, i);
      return;
    case LW_OP_TUPLE:
      tuple(p, i);
      return;
    case LW_OP_GET_TUPLE_ELEMENT:
      element(p, i);
      return;
    case LW_OP_COPY:
    case LW_OP_OPT_BARRIER:
    case LW_OP_ADD_DEPENDENCY:
      same_leaves(p, i);
      return;
    default:
      if (i->opcode == LW_OP_MAP || lw_inst_is_elementwise(i))
        like_operands(p, i);
      else
        refuse(p, i, "of dynamic dimensions");
  }
}

static void visit(padder *p, lw_inst *i) {
  const lw_shape *declared = i->shape;
  sizes s = NULL;
  bool dynamic = false;
  p->r.at = i;
  i->shape = bounds_only(p, declared);
  for (int32_t k = 0; k < i->n_operands; k++)
    dynamic = dynamic || is_dynamic(p, lw_op(i, k));
  if (i->opcode == LW_OP_SET_DIMENSION_SIZE) {
    lw_inst *by = set_size(p, i, &s);
    sizes o = get(p, by, 0);
    if (o != s && by == lw_op(i, 0)) /* a name of its own for the new size */
      by = lw_rw_un(&p->r, LW_OP_COPY, i->shape, by);
    replace(p, i, by, s);
  } else if (i->opcode == LW_OP_GET_DIMENSION_SIZE) {
    replace(p, i, get_size(p, i), NULL);
  } else if (i->opcode == LW_OP_DYNAMIC_RESHAPE) {
    lw_inst *by = dynamic_reshape(p, i, &s);
    replace(p, i, by, s);
  } else if (dynamic && i->opcode == LW_OP_RESHAPE) {
    lw_inst *by = reshape(p, i, declared, &s);
    replace(p, i, by, s);
  } else if (dynamic) {
    hand_on(p, i);
  }
}

/* Elements beyond the sizes leave the module as zeros. */
static lw_inst *zeroed(padder *p, lw_inst *x, int64_t *leaf, lw_inst *root) {
  if (!lw_shape_is_tuple(x->shape)) {
    sizes s = get(p, root, (*leaf)++);
    return s ? masked(p, x, s, zero(p, x->shape->type)) : x;
  }
  lw_inst **v =
      LW_NEW_ARRAY(p->r.env->scratch, lw_inst *, x->shape->n_elems + 1);
  for (int32_t k = 0; k < x->shape->n_elems; k++)
    v[k] = zeroed(p, lw_tuple_element(x, k, p->r.at), leaf, root);
  return lw_rw_make(&p->r, LW_OP_TUPLE, x->shape, x->shape->n_elems, v);
}

static void finish_root(padder *p, lw_comp *c) {
  lw_inst *root = c->root;
  int64_t leaf = 0;
  if (!is_dynamic(p, root)) return;
  /* New instructions are placed before the last one. */
  lw_inst *end = lw_inst_new(
      c, LW_OP_AFTER_ALL, lw_shape_other(p->r.m->ctx, LW_TOKEN), NULL, 0, NULL);
  p->r.at = end;
  lw_inst_set_root(c, zeroed(p, root, &leaf, root));
  lw_inst_remove(end);
}

static bool needs_work(const lw_comp *c, const lw_inst **which) {
  for (const lw_inst *i = c->first; i; i = i->next)
    if (lw_shape_has_dynamic(i->shape) ||
        i->opcode == LW_OP_SET_DIMENSION_SIZE ||
        i->opcode == LW_OP_GET_DIMENSION_SIZE ||
        i->opcode == LW_OP_DYNAMIC_RESHAPE) {
      *which = i;
      return true;
    }
  return false;
}

static void check_unbounded(padder *p, const lw_comp *c) {
  for (const lw_inst *i = c->first; i && !p->error; i = i->next)
    if (has_unbounded(i->shape))
      p->error = lw_error(LW_UNIMPLEMENTED,
                          "%s: %s has a dimension without a bound; Lawson "
                          "needs one (<=N)",
                          i->name, lw_shape_str(p->r.m->ctx, i->shape));
}

static void pad_comp(padder *p, lw_comp *c) {
  for (lw_inst *i = c->first, *next; i && !p->error; i = next) {
    next = i->next;
    visit(p, i);
  }
  if (!p->error) finish_root(p, c);
}

static void fix_signature(padder *p) {
  lw_module *m = p->r.m;
  if (m->entry_result) m->entry_result = bounds_only(p, m->entry_result);
  const lw_shape **v =
      LW_NEW_ARRAY(m->arena, const lw_shape *, m->n_entry_params + 1);
  for (int32_t k = 0; k < m->n_entry_params; k++)
    v[k] = bounds_only(p, m->entry_params[k]);
  if (m->n_entry_params) m->entry_params = v;
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  int32_t n;
  padder p = {.r = {.m = m, .env = env}};
  lw_comp **comps = lw_control_comps(m, env->scratch, &n);
  for (int32_t k = 0; k < n && !p.error; k++) {
    const lw_inst *which;
    if (!needs_work(comps[k], &which)) continue;
    check_unbounded(&p, comps[k]);
    if (p.error) break;
    if (comps[k] != m->entry && lw_shape_has_dynamic(which->shape)) {
      refuse(&p, which, "of dynamic dimensions in a loop or branch");
      break;
    }
    if (!lw_pass_fuel(env)) break;
    lw_pass_count(env, "computations made static", 1);
    *changed = true;
    pad_comp(&p, comps[k]);
    if (comps[k] == m->entry) fix_signature(&p);
  }
  free(p.r.queued);
  lw_vec_free(&p.r.work);
  lw_map_free(&p.known);
  return p.error;
}

const lw_pass lw_pass_dynamic_padder = {
    "dynamic-padder", "bounded dynamic dimensions become static ones and sizes",
    NULL, run};
