/* Folds: reduces, windows, dots, scatters, sorts. */
#include "gen_impl.h"

/* ---- small computations ---- */

lw_comp *gen_binary_comp(gen *g, lw_opcode o, lw_prim t) {
  lw_comp *c = lw_comp_new(g->m, "reducer");
  const lw_shape *s = gen_shape(g, t, 0, NULL);
  lw_inst *a = lw_inst_parameter(c, 0, s, "a");
  lw_inst *b = lw_inst_parameter(c, 1, s, "b");
  const lw_shape *r = o == LW_OP_COMPARE ? gen_shape(g, LW_PRED, 0, NULL) : s;
  c->root = lw_inst_new(c, o, r, NULL, 2, (lw_inst *[]){a, b});
  return c;
}

static lw_comp *compare_comp(gen *g, lw_prim t, lw_cmp_dir dir, int n_pairs,
                             const lw_prim *types) {
  lw_comp *c = lw_comp_new(g->m, "comparator");
  lw_inst *first[2] = {NULL, NULL};
  for (int k = 0; k < 2 * n_pairs; k++) {
    lw_inst *p = lw_inst_parameter(
        c, k, gen_shape(g, k < 2 ? t : types[k / 2], 0, NULL), "p");
    if (k < 2) first[k] = p;
  }
  c->root = lw_inst_new(c, LW_OP_COMPARE, gen_shape(g, LW_PRED, 0, NULL), NULL,
                        2, first);
  lw_inst_set_i64(c->root, LW_ATTR_DIRECTION, dir);
  if (lw_prim_is_float(t))
    lw_inst_set_i64(c->root, LW_ATTR_COMPARE_TYPE, LW_CT_TOTALORDER);
  return c;
}

static lw_opcode monoid(gen *g, lw_prim t, double *init) {
  static const lw_opcode arith[] = {LW_OP_ADD, LW_OP_MULTIPLY, LW_OP_MAXIMUM,
                                    LW_OP_MINIMUM};
  if (t == LW_PRED) {
    *init = (double)gen_below(g, 2);
    return gen_chance(g, 50) ? LW_OP_AND : LW_OP_OR;
  }
  int k = (int)gen_below(g, lw_prim_is_complex(t) ? 2 : 4);
  *init = k == 1 ? 1 : 0;
  return arith[k];
}

/* ---- folds ---- */

/* A reducer that is no simple op: x + y * y, or of pairs. */
static lw_comp *odd_comp(gen *g, lw_prim t) {
  lw_comp *c = lw_comp_new(g->m, "reducer");
  const lw_shape *s = gen_shape(g, t, 0, NULL);
  lw_inst *a = lw_inst_parameter(c, 0, s, "a");
  lw_inst *b = lw_inst_parameter(c, 1, s, "b");
  lw_inst *sq = lw_inst_new(c, LW_OP_MULTIPLY, s, NULL, 2, (lw_inst *[]){b, b});
  c->root = lw_inst_new(c, LW_OP_ADD, s, NULL, 2, (lw_inst *[]){a, sq});
  return c;
}

/* The larger of two values and what goes with it. */
static lw_comp *arg_comp(gen *g, const lw_prim *t) {
  lw_comp *c = lw_comp_new(g->m, "reducer");
  const lw_shape *s[] = {gen_shape(g, t[0], 0, NULL),
                         gen_shape(g, t[1], 0, NULL)};
  lw_inst *p[4];
  for (int k = 0; k < 4; k++) p[k] = lw_inst_parameter(c, k, s[k % 2], "p");
  lw_inst *first = lw_inst_new(c, LW_OP_COMPARE, gen_shape(g, LW_PRED, 0, NULL),
                               NULL, 2, (lw_inst *[]){p[0], p[2]});
  lw_inst_set_i64(first, LW_ATTR_DIRECTION, LW_CMP_GE);
  lw_inst *r[2];
  for (int k = 0; k < 2; k++)
    r[k] = lw_inst_new(c, LW_OP_SELECT, s[k], NULL, 3,
                       (lw_inst *[]){first, p[k], p[2 + k]});
  c->root =
      lw_inst_new(c, LW_OP_TUPLE, lw_shape_tuple(g->ctx, 2, s), NULL, 2, r);
  return c;
}

static lw_inst *pair_reduce(gen *g, lw_inst *a, const int64_t *dims, int32_t n,
                            const int64_t *red, int32_t k) {
  lw_prim t[] = {a->shape->type, LW_S32};
  lw_inst *b = gen_value(g, gen_like(g, a->shape, t[1]));
  lw_inst *ops[] = {a, b, gen_scalar_const(g, t[0], 0),
                    gen_scalar_const(g, t[1], 0)};
  const lw_shape *s[] = {gen_shape(g, t[0], n, dims),
                         gen_shape(g, t[1], n, dims)};
  lw_inst *i = gen_op(g, LW_OP_REDUCE, lw_shape_tuple(g->ctx, 2, s), 4, ops);
  lw_inst_set_i64s(i, LW_ATTR_DIMENSIONS, k, red);
  lw_inst_set_comp(i, LW_ATTR_TO_APPLY, arg_comp(g, t));
  return gen_gte(g->c, i, gen_below(g, 2));
}

lw_inst *gen_make_reduce(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || s->type == LW_F8E8M0FNU) return NULL;
  int64_t dims[GEN_MAX_RANK], red[GEN_MAX_RANK];
  int32_t n = 0, k = 0;
  for (int32_t i = 0; i < s->rank; i++)
    if (gen_chance(g, 50) || (i == s->rank - 1 && !k))
      red[k++] = i;
    else
      dims[n++] = s->dims[i];
  if (!gen_is_cx(s->type) && gen_chance(g, 15))
    return pair_reduce(g, a, dims, n, red, k);
  double init;
  lw_opcode o = monoid(g, s->type, &init);
  bool odd = s->type != LW_PRED && gen_chance(g, 10);
  lw_inst *i = gen_op2(g, LW_OP_REDUCE, gen_shape(g, s->type, n, dims), a,
                       gen_scalar_const(g, s->type, init));
  lw_inst_set_i64s(i, LW_ATTR_DIMENSIONS, k, red);
  lw_inst_set_comp(i, LW_ATTR_TO_APPLY,
                   odd ? odd_comp(g, s->type) : gen_binary_comp(g, o, s->type));
  return i;
}

/* How often the window fits. */
static int64_t window_extent(const lw_window_dim *d, int64_t n) {
  int64_t in = n > 0 ? (n - 1) * d->lhs_dilation + 1 : 0;
  int64_t room = in + d->pad_lo + d->pad_hi - (d->size - 1) * d->rhs_dilation;
  return room < 1 ? 0 : (room - 1) / d->stride + 1;
}

static void set_window(lw_inst *i, int32_t rank, const lw_window_dim *d) {
  lw_window w = {rank, d};
  lw_attr at = {.id = LW_ATTR_WINDOW, .u.window = &w};
  lw_inst_set_attr(i, &at);
}

lw_inst *gen_make_window(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || !s->elements || s->type == LW_F8E8M0FNU) return NULL;
  lw_window_dim d[GEN_MAX_RANK];
  int64_t dims[GEN_MAX_RANK];
  int32_t scan = gen_chance(g, 40) ? (int32_t)gen_below(g, s->rank) : -1;
  bool mirrored = gen_chance(g, 30), dilated = gen_chance(g, 30);
  for (int32_t i = 0; i < s->rank; i++) {
    d[i] = (lw_window_dim){1, 1, 0, 0, 1, 1, false};
    if (i == scan) {
      d[i].size = s->dims[i];
      d[i].pad_lo = mirrored ? 0 : s->dims[i] - 1;
      d[i].pad_hi = mirrored ? s->dims[i] - 1 : 0;
    } else if (scan < 0 && s->dims[i] > 2) {
      d[i].size = 1 + gen_below(g, 3);
      d[i].stride = 1 + gen_below(g, 2);
      d[i].pad_lo = gen_below(g, 2);
      d[i].pad_hi = gen_below(g, 3);
      if (dilated) {
        d[i].rhs_dilation = 1 + gen_below(g, 2);
        d[i].lhs_dilation = 1 + gen_below(g, 2);
      }
    }
    dims[i] = window_extent(&d[i], s->dims[i]);
    if (dims[i] < 1) return NULL;
  }
  double init;
  lw_opcode o = monoid(g, s->type, &init);
  lw_inst *i =
      gen_op2(g, LW_OP_REDUCE_WINDOW, gen_shape(g, s->type, s->rank, dims), a,
              gen_scalar_const(g, s->type, init));
  set_window(i, s->rank, d);
  lw_inst_set_comp(i, LW_ATTR_TO_APPLY, gen_binary_comp(g, o, s->type));
  return i;
}

lw_inst *gen_make_select_scatter(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  lw_prim t = s->type;
  if (!s->rank || !s->elements || s->elements > 6000 || t == LW_PRED ||
      t == LW_F8E8M0FNU || gen_is_cx(t))
    return NULL;
  lw_window_dim d[GEN_MAX_RANK];
  int64_t dims[GEN_MAX_RANK];
  for (int32_t i = 0; i < s->rank; i++) {
    d[i] = (lw_window_dim){1, 1, 0, 0, 1, 1, false};
    if (s->dims[i] > 2) {
      d[i].size = 1 + gen_below(g, 3);
      d[i].stride = 1 + gen_below(g, 2);
      d[i].pad_lo = d[i].size > 1 ? gen_below(g, 2) : 0;
    }
    dims[i] = window_extent(&d[i], s->dims[i]);
    if (dims[i] < 1) return NULL;
  }
  lw_inst *ops[] = {a, gen_value(g, gen_shape(g, t, s->rank, dims)),
                    gen_value(g, gen_shape(g, t, 0, NULL))};
  lw_inst *i = gen_op(g, LW_OP_SELECT_AND_SCATTER, s, 3, ops);
  lw_comp *select = gen_binary_comp(g, LW_OP_COMPARE, t);
  lw_inst_set_i64(select->root, LW_ATTR_DIRECTION, LW_CMP_GE);
  set_window(i, s->rank, d);
  lw_inst_set_comp(i, LW_ATTR_SELECT, select);
  lw_inst_set_comp(i, LW_ATTR_SCATTER, gen_binary_comp(g, LW_OP_ADD, t));
  return i;
}

/* ---- dots ---- */

/* Everything contracted. */
static lw_inst *whole_dot(gen *g, lw_inst *a) {
  static const int64_t dims[] = {0, 1, 2};
  lw_inst *b = gen_value(g, a->shape);
  lw_inst *i =
      gen_op2(g, LW_OP_DOT, gen_shape(g, a->shape->type, 0, NULL), a, b);
  lw_inst_set_i64s(i, LW_ATTR_LHS_CONTRACTING_DIMS, a->shape->rank, dims);
  lw_inst_set_i64s(i, LW_ATTR_RHS_CONTRACTING_DIMS, a->shape->rank, dims);
  return i;
}

/* m, k, l  x  k, l [, n]: the two last dims are contracted, so that k grows
 * beyond one block. */
static lw_inst *long_dot(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (gen_chance(g, 40)) return whole_dot(g, a);
  int32_t r = s->rank, free = r - 2;
  int64_t k = s->dims[r - 2], l = s->dims[r - 1];
  int64_t most = g->o.max_elements / (k * l), n = 1 + gen_below(g, 9);
  if (n > most) n = most < 1 ? 1 : most;
  bool vec = gen_chance(g, 30);
  int64_t rd[] = {k, l, n}, od[] = {0, 0};
  if (free) od[0] = s->dims[0];
  if (!vec) od[free] = n;
  lw_inst *b = gen_value(g, gen_shape(g, s->type, vec ? 2 : 3, rd));
  lw_inst *i =
      gen_op2(g, LW_OP_DOT, gen_shape(g, s->type, free + !vec, od), a, b);
  int64_t lc[] = {r - 2, r - 1}, rc[] = {0, 1};
  lw_inst_set_i64s(i, LW_ATTR_LHS_CONTRACTING_DIMS, 2, lc);
  lw_inst_set_i64s(i, LW_ATTR_RHS_CONTRACTING_DIMS, 2, rc);
  return i;
}

lw_inst *gen_make_dot(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (s->rank < 1 || s->rank > 3 || s->type == LW_PRED ||
      s->type == LW_F8E8M0FNU || lw_prim_table[s->type].bits < 8)
    return NULL;
  if (s->rank > 1 && s->elements && gen_chance(g, 30)) return long_dot(g, a);
  /* [b,] m, k  x  [b,] k, n */
  int32_t nb = s->rank == 3 ? 1 : 0;
  int64_t k = s->dims[s->rank - 1], n = 1 + gen_below(g, 20), rd[3], od[3];
  int32_t r = 0, o = 0;
  for (int32_t i = 0; i < s->rank - 1; i++) od[o++] = s->dims[i];
  if (nb) rd[r++] = s->dims[0];
  bool swap = gen_chance(g, 50), vec = gen_chance(g, 20);
  if (!vec && !swap) rd[r++] = k, rd[r++] = n;
  if (!vec && swap) rd[r++] = n, rd[r++] = k;
  if (vec) rd[r++] = k;
  if (!vec) od[o++] = n;
  lw_inst *b = gen_value(g, gen_shape(g, s->type, r, rd));
  lw_inst *i = gen_op2(g, LW_OP_DOT, gen_shape(g, s->type, o, od), a, b);
  int64_t zero = 0, lc = s->rank - 1, rc = vec || swap ? r - 1 : r - 2;
  if (nb) {
    lw_inst_set_i64s(i, LW_ATTR_LHS_BATCH_DIMS, 1, &zero);
    lw_inst_set_i64s(i, LW_ATTR_RHS_BATCH_DIMS, 1, &zero);
  }
  lw_inst_set_i64s(i, LW_ATTR_LHS_CONTRACTING_DIMS, 1, &lc);
  lw_inst_set_i64s(i, LW_ATTR_RHS_CONTRACTING_DIMS, 1, &rc);
  return i;
}

/* Batch first, features last; the kernel spatial, in, out. */
static const lw_dim_labels *conv_labels(gen *g, int32_t n) {
  static const int64_t spatial[] = {1, 2}, kernel[] = {0, 1};
  lw_dim_labels l = {n, 0, n + 1, n, n + 1, 0, n + 1, spatial, kernel, spatial};
  return lw_arena_memdup(g->m->arena, &l, sizeof l);
}

lw_inst *gen_make_convolution(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  lw_prim t = s->type;
  bool fits = (gen_is_fp(t) && lw_prim_table[t].bits >= 16) || t == LW_S32 ||
              t == LW_S8 || t == LW_C64;
  if (!fits || s->rank < 3 || !s->elements || s->elements > 3000) return NULL;
  int32_t n = s->rank - 2;
  int64_t in = s->dims[n + 1];
  int64_t groups = in % 2 == 0 && gen_chance(g, 25) ? 2 : 1;
  int64_t kd[GEN_MAX_RANK], od[GEN_MAX_RANK];
  lw_window_dim d[2];
  for (int32_t i = 0; i < n; i++) {
    d[i] = (lw_window_dim){1 + gen_below(g, 3),   1 + gen_below(g, 2),
                           gen_below(g, 3),       gen_below(g, 3),
                           1 + gen_chance(g, 15), 1 + gen_chance(g, 15),
                           gen_chance(g, 15)};
    kd[i] = d[i].size;
    od[i + 1] = window_extent(&d[i], s->dims[i + 1]);
    if (od[i + 1] < 1) return NULL;
  }
  kd[n] = in / groups;
  kd[n + 1] = groups * (1 + gen_below(g, 9));
  od[0] = s->dims[0];
  od[n + 1] = kd[n + 1];
  lw_inst *w = gen_value(g, gen_shape(g, t, s->rank, kd));
  lw_inst *i =
      gen_op2(g, LW_OP_CONVOLUTION, gen_shape(g, t, s->rank, od), a, w);
  lw_attr at = {.id = LW_ATTR_DIM_LABELS, .u.dim_labels = conv_labels(g, n)};
  lw_inst_set_attr(i, &at);
  if (groups > 1) lw_inst_set_i64(i, LW_ATTR_FEATURE_GROUP_COUNT, groups);
  set_window(i, n, d);
  return i;
}

/* ---- scatters, sorts ---- */

lw_inst *gen_make_scatter(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || !s->elements || s->type == LW_F8E8M0FNU) return NULL;
  int64_t n = 1 + gen_below(g, 6), dims[GEN_MAX_RANK], window[GEN_MAX_RANK],
          zero = 0;
  dims[0] = n;
  for (int32_t i = 1; i < s->rank; i++) {
    dims[i] = s->dims[i];
    window[i - 1] = i;
  }
  double init;
  lw_opcode o = monoid(g, s->type, &init);
  lw_inst *ops[] = {a, gen_value(g, gen_shape(g, LW_S32, 1, &n)),
                    gen_value(g, gen_shape(g, s->type, s->rank, dims))};
  lw_inst *i = gen_op(g, LW_OP_SCATTER, s, 3, ops);
  lw_inst_set_i64s(i, LW_ATTR_UPDATE_WINDOW_DIMS, s->rank - 1, window);
  lw_inst_set_i64s(i, LW_ATTR_INSERTED_WINDOW_DIMS, 1, &zero);
  lw_inst_set_i64s(i, LW_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, 1, &zero);
  lw_inst_set_i64(i, LW_ATTR_INDEX_VECTOR_DIM, 1);
  lw_inst_set_comp(i, LW_ATTR_TO_APPLY, gen_binary_comp(g, o, s->type));
  return i;
}

/* With a second operand, which goes along with the keys. */
lw_inst *gen_make_sort(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  if (!s->rank || gen_is_cx(s->type)) return NULL;
  int64_t d = gen_below(g, s->rank);
  lw_prim t[] = {s->type, gen_any_type(g)};
  int n = 1 + gen_chance(g, 40);
  lw_inst *ops[] = {a, n == 2 ? gen_value(g, gen_like(g, s, t[1])) : NULL};
  const lw_shape *shapes[] = {s, n == 2 ? ops[1]->shape : NULL};
  lw_inst *i = gen_op(g, LW_OP_SORT,
                      n == 2 ? lw_shape_tuple(g->ctx, 2, shapes) : s, n, ops);
  lw_inst_set_i64s(i, LW_ATTR_DIMENSIONS, 1, &d);
  lw_inst_set_i64(i, LW_ATTR_IS_STABLE, 1);
  lw_cmp_dir dir = gen_chance(g, 50) ? LW_CMP_LT : LW_CMP_GT;
  lw_inst_set_comp(i, LW_ATTR_TO_APPLY, compare_comp(g, t[0], dir, n, t));
  return n == 2 ? gen_gte(g->c, i, gen_below(g, 2)) : i;
}

lw_inst *gen_make_topk(gen *g, lw_inst *a) {
  const lw_shape *s = a->shape;
  lw_prim t = s->type;
  if (!s->rank || !s->elements || gen_is_cx(t) || t == LW_PRED) return NULL;
  int64_t dims[GEN_MAX_RANK], last = s->dims[s->rank - 1];
  memcpy(dims, s->dims, (size_t)s->rank * sizeof *dims);
  dims[s->rank - 1] = 1 + gen_below(g, last < 8 ? last : 8);
  const lw_shape *elems[] = {gen_shape(g, t, s->rank, dims),
                             gen_shape(g, LW_S32, s->rank, dims)};
  lw_inst *i = gen_op1(g, LW_OP_TOPK, lw_shape_tuple(g->ctx, 2, elems), a);
  lw_inst_set_i64(i, LW_ATTR_K, dims[s->rank - 1]);
  lw_inst_set_i64(i, LW_ATTR_LARGEST, 1);
  return gen_gte(g->c, i, gen_below(g, 2));
}
