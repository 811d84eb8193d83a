/* A dry run of a stage's code: from the stage's value down through everything
 * that would be inline, with the index expressions the emitter will use. It
 * finds how often each value would be computed, what is read where, and at
 * which strides the flat element number has to be taken apart.
 */
#include "kernel/kernel_impl.h"

static void walk_value(lw_builder *b, lw_value v, const lw_expr *const *idx);
static void walk_inst(lw_builder *b, const lw_inst *i,
                      const lw_expr *const *idx);

/* ---- expressions ---- */

static void add_bound(lw_builder *b, int64_t x) {
  for (size_t i = 0; i < b->bounds.len; i++)
    if (b->bounds.data[i] == x) return;
  lw_vec_push(&b->bounds, x);
}

static bool is_domain_var(const lw_expr *e) {
  return e->n == 1 && e->c == 0 && e->t[0].k == 1 &&
         e->t[0].a->kind == LW_ATOM_VAR && e->t[0].a->var == LW_AV_DOMAIN;
}

/* The digits and run-time values an expression needs. */
static void walk_expr(lw_builder *b, const lw_expr *e) {
  for (int32_t i = 0; i < e->n; i++) {
    const lw_atom *a = e->t[i].a;
    if (a->kind == LW_ATOM_VALUE) {
      walk_value(b, (lw_value){a->inst, a->leaf}, a->idx);
    } else if (a->kind == LW_ATOM_DIGIT) {
      if (is_domain_var(a->e)) {
        if (a->div > 1) add_bound(b, a->div);
        if (a->mod) add_bound(b, a->div * a->mod);
      } else {
        walk_expr(b, a->e);
      }
    }
  }
}

/* The smallest step of the domain variable that changes e, INT64_MAX when none
 * does; *others gets the extents of the folded variables it uses. */
static int64_t domain_step(const lw_expr *e, double *others, unsigned *used) {
  int64_t step = INT64_MAX;
  for (int32_t i = 0; i < e->n; i++) {
    const lw_atom *a = e->t[i].a;
    int64_t s = INT64_MAX;
    if (a->kind == LW_ATOM_VAR) {
      if (a->var == LW_AV_DOMAIN) {
        s = 1;
      } else if (!(*used & 1u << (a->var & 31))) {
        *used |= 1u << (a->var & 31);
        *others *= (double)a->extent;
      }
    } else if (a->kind == LW_ATOM_DIGIT) {
      s = domain_step(a->e, others, used);
      if (s != INT64_MAX && is_domain_var(a->e)) s = a->div;
    } else {
      for (int32_t j = 0; j < a->n_idx; j++) {
        int64_t x = domain_step(a->idx[j], others, used);
        if (x < s) s = x;
      }
    }
    if (s < step) step = s;
  }
  return step;
}

static double trips(lw_builder *b, int32_t rank, const lw_expr *const *idx) {
  double others = 1;
  unsigned used = 0;
  int64_t step = INT64_MAX;
  for (int32_t d = 0; d < rank; d++) {
    int64_t s = domain_step(idx[d], &others, &used);
    if (s < step) step = s;
  }
  if (step == INT64_MAX) return others;
  double n = (double)b->stages.data[b->stage].domain->elements;
  return others * n / (double)step;
}

/* ---- values ---- */

/* True the first time this stage reads v at idx. */
static bool first_read(lw_builder *b, lw_value v, int32_t rank,
                       const lw_expr *const *idx) {
  uint64_t h = lw_hash_mix((uint64_t)b->stage + 1, (uint64_t)(uintptr_t)v.inst);
  h = lw_hash_mix(h, (uint64_t)v.leaf + 0x7777);
  for (int32_t d = 0; d < rank; d++)
    h = lw_hash_mix(h, (uint64_t)(uintptr_t)idx[d]);
  uint64_t *slot = lw_map_put(&b->seen, h);
  if (*slot) return false;
  *slot = 1;
  return true;
}

static const lw_expr *const *keep_idx(lw_builder *b, int32_t rank,
                                      const lw_expr *const *idx) {
  static const lw_expr *none[1];
  if (rank == 0) return none;
  return lw_arena_memdup(b->a, idx, (size_t)rank * sizeof *idx);
}

static void record_read(lw_builder *b, lw_value v, const lw_expr *const *idx) {
  const lw_shape *s = lw_value_shape(v);
  if (idx) walk_expr(b, lw_ex_linear(&b->ix, s->rank, s->dims, idx));
  lw_vec_push(&b->reads,
              ((lw_read){b->stage, v, idx ? keep_idx(b, s->rank, idx) : NULL}));
}

static void walk_value(lw_builder *b, lw_value v, const lw_expr *const *idx) {
  const lw_place *p = &b->k->places[lw_b_at(b, v.inst)];
  if (p->kind == LW_PLACE_CONST && p->buffer < 0) return;
  if (p->kind == LW_PLACE_INLINE) {
    walk_inst(b, v.inst, idx);
    return;
  }
  if (first_read(b, v, lw_value_shape(v)->rank, idx)) record_read(b, v, idx);
}

static void walk_inst(lw_builder *b, const lw_inst *i,
                      const lw_expr *const *idx) {
  int32_t at = lw_b_at(b, i);
  /* once a stage for its reads and bounds, once an index for the counts */
  uint64_t h =
      lw_hash_mix(0x5151u + (uint64_t)b->stage, (uint64_t)(uintptr_t)i);
  uint64_t pure = lw_hash_mix(b->stages.data[b->stage].kind == LW_STAGE_MAP
                                  ? 0
                                  : (uint64_t)b->stage + 1,
                              (uint64_t)(uintptr_t)i);
  for (int32_t d = 0; d < i->shape->rank; d++) {
    h = lw_hash_mix(h, (uint64_t)(uintptr_t)idx[d]);
    pure = lw_hash_mix(pure, (uint64_t)(uintptr_t)idx[d]);
  }
  uint64_t *slot = lw_map_put(&b->seen, h);
  if (*slot) return;
  *slot = 1;
  slot = lw_map_put(&b->seen, pure);
  if (!*slot) {
    *slot = 1;
    b->visits[at]++;
    b->executions[at] += trips(b, i->shape->rank, idx);
  }
  if (b->visits[at] > 32 && lw_may_be_staged(i)) return; /* it will be */
  if (i->opcode == LW_OP_IOTA) {
    walk_expr(b, idx[lw_inst_i64(i, LW_ATTR_IOTA_DIMENSION, 0)]);
    return;
  }
  for (int32_t slot_i = 0; slot_i < i->n_operands; slot_i++) {
    const lw_expr *out[LW_MAX_RANK];
    lw_cond conds[2 * LW_MAX_RANK];
    int32_t n_conds;
    if ((i->opcode == LW_OP_DYNAMIC_SLICE && slot_i > 0) ||
        (i->opcode == LW_OP_GATHER && slot_i > 0) ||
        (i->opcode == LW_OP_DYNAMIC_UPDATE_SLICE && slot_i > 1))
      continue; /* read through VALUE atoms */
    if (!lw_index_map(&b->ix, i, slot_i, idx, out, conds, &n_conds)) continue;
    lw_value v = lw_value_operand(i, slot_i);
    if (!lw_shape_is_array(lw_value_shape(v))) continue;
    for (int32_t c = 0; c < n_conds; c++) walk_expr(b, conds[c].e);
    walk_value(b, v, out);
  }
}

/* ---- stages ---- */

const lw_expr **lw_domain_index(lw_builder *b, const lw_shape *s) {
  const lw_expr **idx = LW_NEW_ARRAY(b->a, const lw_expr *, s->rank + 1);
  const lw_expr *g = lw_ex_var(&b->ix, LW_AV_DOMAIN, s->elements);
  lw_ex_delinear(&b->ix, g, s->rank, s->dims, idx);
  return idx;
}

static void read_whole(lw_builder *b, lw_value v) {
  const lw_place *p = &b->k->places[lw_b_at(b, v.inst)];
  if (p->kind == LW_PLACE_CONST && p->buffer < 0) return;
  if (lw_value_shape(v)->rank == 0 && p->kind == LW_PLACE_INLINE) {
    walk_value(b, v, NULL);
    return;
  }
  lw_vec_push(&b->reads, ((lw_read){b->stage, v, NULL}));
}

static bool is_reduced(const int64_t *dims, int32_t n, int32_t d) {
  for (int32_t i = 0; i < n; i++)
    if (dims[i] == d) return true;
  return false;
}

static void walk_reduce(lw_builder *b, const lw_inst *i) {
  int32_t n_dims, n_in = i->n_operands / 2;
  const int64_t *dims = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n_dims);
  const lw_shape *in = lw_value_shape(lw_value_operand(i, 0));
  const lw_shape *out = lw_shape_leaf(i->shape, 0);
  const lw_expr **kept = lw_domain_index(b, out);
  int64_t red[LW_MAX_RANK];
  const lw_expr *rest[LW_MAX_RANK], *idx[LW_MAX_RANK];
  int32_t n = 0;
  int64_t total = 1;
  for (int32_t d = 0; d < in->rank; d++)
    if (is_reduced(dims, n_dims, d)) total *= red[n++] = in->dims[d];
  int64_t run = 1;
  for (int32_t d = in->rank; d-- > 0 && is_reduced(dims, n_dims, d);)
    run *= in->dims[d];
  /* outer * run + inner: the digits are the emitter's two loops */
  const lw_expr *lin = lw_ex_var(&b->ix, LW_AV_RUN, run);
  if (run > 0 && total / run > 1)
    lin = lw_ex_add(
        &b->ix, lin,
        lw_ex_mul(&b->ix, lw_ex_var(&b->ix, LW_AV_OUTER, total / run), run));
  lw_ex_delinear(&b->ix, lin, n, red, rest);
  int32_t k = 0, r = 0;
  for (int32_t d = 0; d < in->rank; d++)
    idx[d] = is_reduced(dims, n_dims, d) ? rest[r++] : kept[k++];
  for (int32_t j = 0; j < n_in; j++) {
    if (total) walk_value(b, lw_value_operand(i, j), idx);
    walk_value(b, lw_value_operand(i, n_in + j), NULL);
  }
}

static void walk_window(lw_builder *b, const lw_inst *i) {
  const lw_window *w = lw_inst_window(i);
  int32_t n_in = i->n_operands / 2;
  const lw_shape *out = lw_shape_leaf(i->shape, 0);
  const lw_shape *in = lw_value_shape(lw_value_operand(i, 0));
  const lw_expr **at = lw_domain_index(b, out), *idx[LW_MAX_RANK];
  for (int32_t d = 0; d < out->rank; d++) {
    const lw_window_dim *x = &w->dims[d];
    const lw_expr *e = lw_ex_mul(&b->ix, at[d], x->stride);
    const lw_expr *p = lw_ex_var(&b->ix, LW_AV_WINDOW + d, x->size);
    if (x->reversed)
      p = lw_ex_addc(&b->ix, lw_ex_mul(&b->ix, p, -1), x->size - 1);
    e = lw_ex_add(&b->ix, e, lw_ex_mul(&b->ix, p, x->rhs_dilation));
    e = lw_ex_addc(&b->ix, e, -x->pad_lo);
    if (x->lhs_dilation > 1) e = lw_ex_div(&b->ix, e, x->lhs_dilation);
    idx[d] = e;
  }
  for (int32_t j = 0; j < n_in; j++) {
    if (in->elements) walk_value(b, lw_value_operand(i, j), idx);
    walk_value(b, lw_value_operand(i, n_in + j), NULL);
  }
}

static void walk_update(lw_builder *b, const lw_inst *i) {
  const lw_shape *u = lw_value_shape(lw_value_operand(i, 1));
  walk_value(b, lw_value_operand(i, 1), lw_domain_index(b, u));
  for (int32_t j = 2; j < i->n_operands; j++)
    read_whole(b, lw_value_operand(i, j));
}

void lw_walk_stage(lw_builder *b, int32_t stage) {
  b->stage = stage;
  b->bounds.len = 0;
  const lw_stage *s = &b->stages.data[stage];
  const lw_inst *i = s->inst;
  switch (s->kind) {
    case LW_STAGE_MAP: {
      const lw_place *p = &b->k->places[lw_b_at(b, i)];
      const lw_expr **idx = lw_domain_index(b, s->domain);
      if (p->kind == LW_PLACE_STAGED && p->stage == stage)
        walk_inst(b, i, idx);
      else
        walk_value(b, (lw_value){i, s->leaf}, idx);
      return;
    }
    case LW_STAGE_REDUCE:
    case LW_STAGE_REDUCE_PART:
      walk_reduce(b, i);
      return;
    case LW_STAGE_REDUCE_FOLD:
      for (int32_t j = i->n_operands / 2; j < i->n_operands; j++)
        walk_value(b, lw_value_operand(i, j), NULL);
      return;
    case LW_STAGE_WINDOW:
      walk_window(b, i);
      return;
    case LW_STAGE_UPDATE_SLICE:
      walk_update(b, i);
      return;
    case LW_STAGE_SCAN:
    case LW_STAGE_DOT:
    case LW_STAGE_CONV:
    case LW_STAGE_SCATTER:
    case LW_STAGE_SELECT_SCATTER:
    case LW_STAGE_SORT:
    case LW_STAGE_TOPK:
    case LW_STAGE_RNG_BITS:
    case LW_STAGE_RNG:
      for (int32_t j = 0; j < i->n_operands; j++) {
        if (s->kind == LW_STAGE_SCATTER && j < (i->n_operands - 1) / 2)
          continue;
        if (lw_shape_is_array(lw_inst_operand(i, j)->shape))
          read_whole(b, lw_value_operand(i, j));
      }
      return;
  }
}
