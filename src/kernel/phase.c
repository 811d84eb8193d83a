/* Stages into phases, values into memory.
 *
 * A phase is a parallel loop over points; stages join the phase before them
 * when the points they share are enough for the threads and whatever they read
 * of the phase's own values lies in the same point: then a whole row goes
 * through all stages while it is hot (softmax is one phase). A kernel too small
 * for threads is one phase of one point. A phase of one group of maps, or of
 * one reduce, is flat: its points are runs of elements.
 */
#include "kernel/dot_plan.h"
#include "kernel/kernel_impl.h"

#define SMALL_WORK 24576.0 /* additions (and 4-byte words): a few us */
#define LEAST_POINTS 8
#define LEAST_INNER 16
#define MOST_GROUP 16

typedef struct {
  int32_t first, n; /* stages */
  int32_t k;        /* leading dims they can be cut along */
} group;

static lw_stage *stage(lw_builder *b, int32_t s) { return &b->stages.data[s]; }

static int32_t dim_attr(const lw_inst *i) {
  int32_t n;
  const int64_t *d = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  return n ? (int32_t)d[0] : 0;
}

/* How many leading dims of its domain a stage can be cut along. */
static int32_t tileable(const lw_stage *s) {
  int32_t rank = s->domain->rank, n = 0;
  switch (s->kind) {
    case LW_STAGE_MAP:
    case LW_STAGE_REDUCE:
    case LW_STAGE_WINDOW:
    case LW_STAGE_UPDATE_SLICE:
    case LW_STAGE_REDUCE_PART:
    case LW_STAGE_REDUCE_FOLD:
      return rank;
    case LW_STAGE_SORT:
      return dim_attr(s->inst);
    case LW_STAGE_SCAN: {
      bool reverse;
      if (s->inst->opcode == LW_OP_SCAN) return 0;
      lw_window_is_scan(s->inst, &n, &reverse);
      return n;
    }
    case LW_STAGE_TOPK:
      return rank - 1;
    case LW_STAGE_DOT: {
      if (s->inst->opcode != LW_OP_DOT) return 0;
      int32_t nb, nc;
      lw_inst_i64s(s->inst, LW_ATTR_RHS_BATCH_DIMS, &nb);
      lw_inst_i64s(s->inst, LW_ATTR_RHS_CONTRACTING_DIMS, &nc);
      return rank - (lw_inst_operand(s->inst, 1)->shape->rank - nb - nc);
    }
    case LW_STAGE_CONV: {
      const lw_dim_labels *dl =
          lw_inst_attr(s->inst, LW_ATTR_DIM_LABELS)->u.dim_labels;
      return lw_conv_feature_points(s->inst) ? (int32_t)dl->output_feature + 1
                                             : rank - 1;
    }
    case LW_STAGE_SCATTER:
    case LW_STAGE_SELECT_SCATTER:
    case LW_STAGE_RNG_BITS:
    case LW_STAGE_RNG:
      return 0;
  }
  return 0;
}

/* Any run of elements can be a point. */
static bool can_be_flat(const lw_stage *s) {
  switch (s->kind) {
    case LW_STAGE_MAP:
    case LW_STAGE_REDUCE:
    case LW_STAGE_WINDOW:
    case LW_STAGE_UPDATE_SLICE:
    case LW_STAGE_REDUCE_PART:
    case LW_STAGE_REDUCE_FOLD:
      return true;
    case LW_STAGE_SCAN:
    case LW_STAGE_DOT:
    case LW_STAGE_CONV:
    case LW_STAGE_SCATTER:
    case LW_STAGE_SELECT_SCATTER:
    case LW_STAGE_SORT:
    case LW_STAGE_TOPK:
    case LW_STAGE_RNG_BITS:
    case LW_STAGE_RNG:
      return false;
  }
  return false;
}

/* ---- work ---- */

static double operands_cone(lw_builder *b, const lw_inst *i, int32_t n) {
  double c = 0;
  for (int32_t j = 0; j < n; j++) {
    lw_value v = lw_value_operand(i, j);
    if (b->k->places[lw_b_at(b, v.inst)].kind == LW_PLACE_INLINE)
      c += b->cone[lw_b_at(b, v.inst)];
  }
  return c;
}

static double stage_flops(lw_builder *b, const lw_stage *s) {
  const lw_inst *i = s->inst;
  double d = (double)s->domain->elements, n = 1;
  const lw_shape *in =
      i->n_operands ? lw_value_shape(lw_value_operand(i, 0)) : s->domain;
  switch (s->kind) {
    case LW_STAGE_MAP:
      return d * (1 + b->cone[lw_b_at(b, i)]);
    case LW_STAGE_REDUCE:
    case LW_STAGE_REDUCE_PART:
      return (double)in->elements *
             (1 + operands_cone(b, i, i->n_operands / 2)) * (i->n_operands / 2);
    case LW_STAGE_REDUCE_FOLD:
      return 64 * d;
    case LW_STAGE_UPDATE_SLICE:
      return d * (2 + operands_cone(b, i, 2));
    case LW_STAGE_WINDOW:
    case LW_STAGE_SELECT_SCATTER: {
      const lw_window *w = lw_inst_window(i);
      for (int32_t k = 0; w && k < w->rank; k++) n *= (double)w->dims[k].size;
      if (s->kind == LW_STAGE_SELECT_SCATTER)
        return (double)lw_value_shape(lw_value_operand(i, 1))->elements * n * 4;
      return d * n * (1 + operands_cone(b, i, 1));
    }
    case LW_STAGE_SCAN:
      return 4 * (double)in->elements;
    case LW_STAGE_DOT: {
      lw_dot_fold_t f = lw_dot_fold(i);
      return 2 * d * (double)(f.k > 0 ? f.k : 1);
    }
    case LW_STAGE_CONV: {
      const lw_shape *w = lw_value_shape(lw_value_operand(i, 1));
      const lw_dim_labels *dl =
          lw_inst_attr(i, LW_ATTR_DIM_LABELS)->u.dim_labels;
      int64_t features = w->dims[dl->kernel_output_feature];
      return 2 * d * (double)w->elements / (double)(features ? features : 1);
    }
    case LW_STAGE_SCATTER:
      return 8 * (double)lw_value_shape(lw_value_operand(i, i->n_operands - 1))
                     ->elements +
             d;
    case LW_STAGE_SORT:
    case LW_STAGE_TOPK:
      return 40 * (double)in->elements;
    case LW_STAGE_RNG_BITS:
    case LW_STAGE_RNG:
      return 40 * d;
  }
  return d;
}

static double stage_bytes(lw_builder *b, int32_t n) {
  const lw_stage *s = stage(b, n);
  double bytes = 0;
  for (int32_t r = 0; r < s->n_results; r++)
    bytes += (double)lw_shape_bytes(s->shapes[r]);
  for (size_t r = 0; r < b->reads.len; r++) {
    const lw_read *rd = &b->reads.data[r];
    if (rd->stage != n) continue;
    double all = (double)lw_shape_bytes(lw_value_shape(rd->value));
    double most = (double)s->domain->elements * 8;
    bytes += s->kind == LW_STAGE_MAP && most < all ? most : all;
  }
  return bytes;
}

/* ---- the innermost loop ---- */

/* The shortest run that is long enough and that the longer bounds respect. */
static int64_t choose_inner(lw_builder *b, int64_t elements) {
  int64_t best = 0;
  for (size_t i = 0; i < b->bounds.len; i++) {
    int64_t x = b->bounds.data[i];
    if (x < LEAST_INNER || x >= elements || elements % x) continue;
    bool nests = true;
    for (size_t j = 0; j < b->bounds.len; j++) {
      int64_t y = b->bounds.data[j];
      if (y >= LEAST_INNER && y < elements && y > x && y % x) nests = false;
    }
    if (nests && (!best || x < best)) best = x;
  }
  if (!best) return elements;
  return best;
}

/* Contiguous from one run to the next, with a stride inside: a transpose. */
static bool is_strided(const lw_expr *lin, int64_t inner) {
  bool across = false, along = false;
  for (int32_t i = 0; i < lin->n; i++) {
    const lw_term t = lin->t[i];
    if (t.a->kind != LW_ATOM_DIGIT) continue;
    if (t.a->div == 1 && t.a->mod == inner) along = t.k >= 8 || t.k <= -8;
    if (t.a->div == inner) across = t.k == 1;
  }
  return across && along;
}

static bool read_strided(lw_builder *b, const lw_read *r, int64_t inner) {
  const lw_shape *s = lw_value_shape(r->value);
  return r->idx &&
         is_strided(lw_ex_linear(&b->ix, s->rank, s->dims, r->idx), inner);
}

static void set_inner(lw_builder *b, int32_t first, int32_t n) {
  LW_VEC(int64_t) all = {0};
  for (int32_t s = first; s < first + n; s++) {
    lw_map_free(&b->seen);
    memset(b->visits, 0, (size_t)b->k->n_places * sizeof *b->visits);
    size_t reads = b->reads.len;
    lw_walk_stage(b, s);
    b->reads.len = reads;
    for (size_t i = 0; i < b->bounds.len; i++)
      lw_vec_push(&all, b->bounds.data[i]);
  }
  b->bounds.len = 0;
  for (size_t i = 0; i < all.len; i++) lw_vec_push(&b->bounds, all.data[i]);
  lw_vec_free(&all);
  const lw_stage *st = stage(b, first);
  bool part = st->kind == LW_STAGE_REDUCE_PART;
  int64_t inner =
      choose_inner(b, part ? lw_shape_leaf(st->inst->shape, 0)->elements
                           : st->domain->elements);
  bool strided = false;
  for (size_t r = 0; r < b->reads.len; r++)
    if (b->reads.data[r].stage >= first && b->reads.data[r].stage < first + n)
      strided |= read_strided(b, &b->reads.data[r], inner);
  for (int32_t s = first; s < first + n; s++) {
    stage(b, s)->inner = inner;
    stage(b, s)->strided = strided && stage(b, s)->kind == LW_STAGE_MAP;
  }
}

/* ---- groups of maps ---- */

static const lw_place *staged_at(lw_builder *b, lw_value v) {
  const lw_place *p = &b->k->places[lw_b_at(b, v.inst)];
  return p->kind == LW_PLACE_STAGED ? p : NULL;
}

static bool same_dims(const lw_stage *x, const lw_stage *y, int32_t k) {
  for (int32_t d = 0; d < k; d++)
    if (x->domain->dims[d] != y->domain->dims[d]) return false;
  return true;
}

/* The read is of exactly the element the reader makes. */
static bool reads_own_element(lw_builder *b, const lw_read *r) {
  const lw_shape *s = lw_value_shape(r->value);
  const lw_shape *d = stage(b, r->stage)->domain;
  return r->idx && s->elements == d->elements &&
         lw_ex_linear(&b->ix, s->rank, s->dims, r->idx) ==
             lw_ex_var(&b->ix, LW_AV_DOMAIN, d->elements);
}

static bool can_group(lw_builder *b, const group *g, int32_t s) {
  const lw_stage *x = stage(b, g->first), *y = stage(b, s);
  if (x->kind != LW_STAGE_MAP || y->kind != LW_STAGE_MAP) return false;
  if (x->domain->rank != y->domain->rank || g->n >= MOST_GROUP) return false;
  if (!same_dims(x, y, x->domain->rank)) return false;
  for (size_t r = 0; r < b->reads.len; r++) {
    const lw_read *rd = &b->reads.data[r];
    const lw_place *p = staged_at(b, rd->value);
    if (rd->stage != s || !p || p->stage < g->first) continue;
    if (!reads_own_element(b, rd)) return false;
  }
  return true;
}

/* ---- phases ---- */

/* The read stays inside the reader's point when the first k dims are points. */
static bool read_aligned(lw_builder *b, const lw_read *r, int32_t k) {
  if (k == 0) return false;
  const lw_stage *s = stage(b, r->stage);
  const lw_shape *v = lw_value_shape(r->value);
  if (v->rank < k) return false;
  for (int32_t d = 0; d < k; d++)
    if (v->dims[d] != s->domain->dims[d]) return false;
  if (!r->idx) /* whole rows of sorts, scans and top-ks */
    return s->kind == LW_STAGE_SORT || s->kind == LW_STAGE_TOPK ||
           s->kind == LW_STAGE_SCAN;
  const lw_expr **own = lw_domain_index(b, s->domain);
  for (int32_t d = 0; d < k; d++)
    if (r->idx[d] != own[d]) return false;
  return true;
}

static int32_t param_of(lw_builder *b, lw_value v) {
  const lw_place *p = &b->k->places[lw_b_at(b, v.inst)];
  return p->kind == LW_PLACE_PARAM ? p->buffer + v.leaf : -1;
}

static lw_value update_operand(const lw_stage *s) {
  lw_value v = lw_value_operand(s->inst, 0);
  while (v.inst->opcode == LW_OP_RESHAPE || v.inst->opcode == LW_OP_COPY ||
         v.inst->opcode == LW_OP_BITCAST)
    v = lw_value_operand(v.inst, 0);
  return v;
}

/* A stage that writes over a parameter must not share a phase of several points
 * with readers of it. */
static bool writes_what_phase_reads(lw_builder *b, int32_t first, int32_t s) {
  const lw_stage *x = stage(b, s);
  if (!x->in_place) return false;
  if (x->kind == LW_STAGE_SCATTER) return true;
  int32_t p = param_of(b, update_operand(x));
  for (size_t r = 0; r < b->reads.len; r++) {
    const lw_read *rd = &b->reads.data[r];
    if (rd->stage >= first && rd->stage < s && param_of(b, rd->value) == p)
      return true;
  }
  return false;
}

static bool joins_alone(const lw_stage *s) {
  return s->kind == LW_STAGE_DOT || s->kind == LW_STAGE_CONV ||
         s->kind == LW_STAGE_REDUCE_PART;
}

static int64_t points_of(const lw_shape *s, int32_t k) {
  int64_t n = 1;
  for (int32_t d = 0; d < k; d++) n *= s->dims[d];
  return n;
}

/* Leading dims the group can share with the phase's stages; 0: none. */
static int32_t shared_dims(lw_builder *b, int32_t first, int32_t k,
                           const group *g) {
  const lw_stage *x = stage(b, first), *y = stage(b, g->first);
  if (joins_alone(x) || joins_alone(y)) return 0;
  if (g->k < k) k = g->k;
  while (k > 0 && !same_dims(x, y, k)) k--;
  for (int32_t s = g->first; s < g->first + g->n; s++) {
    if (writes_what_phase_reads(b, first, s)) return 0;
    for (size_t r = 0; r < b->reads.len; r++) {
      const lw_read *rd = &b->reads.data[r];
      const lw_place *p = staged_at(b, rd->value);
      if (rd->stage != s || !p) continue;
      if (p->stage < first || p->stage >= g->first) continue;
      while (k > 0 && !read_aligned(b, rd, k)) k--;
    }
    if (stage(b, s)->kind == LW_STAGE_REDUCE_FOLD && stage(b, s)->part >= first)
      return 0;
  }
  return k;
}

typedef struct {
  int32_t first, n; /* stages */
  int32_t k;
  bool one_group, one_point;
} draft;

static void flat_phase(lw_builder *b, lw_phase *p) {
  const lw_stage *s = stage(b, p->first_stage);
  bool row = false;
  if (s->kind == LW_STAGE_REDUCE || s->kind == LW_STAGE_REDUCE_PART ||
      s->kind == LW_STAGE_REDUCE_FOLD)
    row = s->kind == LW_STAGE_REDUCE_FOLD ||
          lw_reduce_fold(s->inst).rule == LW_FOLD_ROW;
  int64_t run = row || s->inner >= s->domain->elements ? 1 : s->inner;
  if (s->kind == LW_STAGE_REDUCE_PART && !row)
    run = lw_shape_leaf(s->inst->shape, 0)->elements;
  p->flat = true;
  p->n_tile_dims = 1;
  p->tile_dims = LW_NEW(b->a, int64_t);
  p->n_points = p->tile_dims[0] = run ? s->domain->elements / run : 0;
}

static int64_t tile_bytes_per_point(lw_builder *b, const lw_phase *p) {
  int64_t bytes = 0;
  for (int32_t s = p->first_stage; s < p->first_stage + p->n_stages; s++)
    for (int32_t r = 0; r < stage(b, s)->n_results; r++)
      bytes += lw_shape_bytes(stage(b, s)->shapes[r]) /
               (p->n_points > 0 ? p->n_points : 1);
  return bytes > 0 ? bytes : 1;
}

/* The register tile of a packed dot has 8 rows, lanes may be points of a
 * convolution: a tile of fewer computes the others in vain. */
static int64_t points_together(lw_builder *b, const lw_phase *p) {
  int64_t n = 1;
  for (int32_t s = p->first_stage; s < p->first_stage + p->n_stages; s++) {
    const lw_stage *x = stage(b, s);
    if (x->kind == LW_STAGE_DOT && x->work_bytes && n < 8) n = 8;
    if (x->kind == LW_STAGE_CONV && lw_conv_feature_points(x->inst))
      n = LW_CONV_FEATURES;
  }
  return n;
}

/* Points of one call: a few microseconds of work, at least a cache's worth of
 * vectors; whole rows of one tile stay in L1. */
static void choose_grain(lw_builder *b, lw_phase *p, bool one_group) {
  double work = p->flops + p->bytes / 4;
  int64_t n = p->n_points;
  if (n <= 1 || work < SMALL_WORK) {
    p->grain = n > 0 ? n : 1;
    if (!one_group && n > 1) {
      int64_t fit = b->opt.l2_bytes / 2 / tile_bytes_per_point(b, p);
      if (p->grain > fit) p->grain = fit < 1 ? 1 : fit;
    }
  } else {
    double per = work / (double)n;
    int64_t g = (int64_t)(4 * SMALL_WORK / per) + 1;
    if (!one_group) {
      int64_t fit = b->opt.l2_bytes / 4 / tile_bytes_per_point(b, p);
      if (g > fit) g = fit;
    }
    int64_t most = (n + 15) / 16;
    if (g > most) g = most;
    if (g < 1) g = 1;
    if (g > 64) g = (g + 63) / 64 * 64;
    p->grain = g;
  }
  bool points_are_lanes = false;
  for (int32_t s = p->first_stage; s < p->first_stage + p->n_stages; s++)
    points_are_lanes |= stage(b, s)->domain->elements == n;
  if (points_are_lanes && p->grain < 64 && p->grain < n) p->grain = 64;
  int64_t together = points_together(b, p);
  p->grain = (p->grain + together - 1) / together * together;
  if (p->grain > n && n > 0) p->grain = n;
  p->n_tiles = n > 0 ? (n + p->grain - 1) / p->grain : 0;
}

static void finish_phase(lw_builder *b, lw_phase *p, const draft *d) {
  p->first_stage = d->first;
  p->n_stages = d->n;
  const lw_stage *s = stage(b, d->first);
  for (int32_t i = d->first; i < d->first + d->n; i++) {
    p->flops += stage(b, i)->flops;
    p->bytes += stage_bytes(b, i);
  }
  if (d->one_group && can_be_flat(s)) {
    flat_phase(b, p);
  } else {
    p->n_tile_dims = d->one_point ? 0 : d->k;
    p->tile_dims = LW_NEW_ARRAY(b->a, int64_t, p->n_tile_dims + 1);
    for (int32_t i = 0; i < p->n_tile_dims; i++)
      p->tile_dims[i] = s->domain->dims[i];
    p->n_points = points_of(s->domain, p->n_tile_dims);
  }
  choose_grain(b, p, d->one_group);
}

static bool kernel_is_small(lw_builder *b) {
  double work = 0;
  for (int32_t s = 0; s < (int32_t)b->stages.len; s++) {
    if (stage(b, s)->kind == LW_STAGE_DOT || stage(b, s)->kind == LW_STAGE_CONV)
      work += stage(b, s)->flops / 4;
    else
      work += stage(b, s)->flops + stage_bytes(b, s) / 4;
  }
  return work < SMALL_WORK;
}

static int32_t make_groups(lw_builder *b, group *gs) {
  int32_t n = 0;
  for (int32_t s = 0; s < (int32_t)b->stages.len; s++) {
    if (n && can_group(b, &gs[n - 1], s)) {
      gs[n - 1].n++;
    } else {
      gs[n++] = (group){s, 1, tileable(stage(b, s))};
    }
  }
  for (int32_t i = 0; i < n; i++) {
    for (int32_t s = gs[i].first; s < gs[i].first + gs[i].n; s++)
      stage(b, s)->group = s == gs[i].first ? gs[i].n : 0;
    set_inner(b, gs[i].first, gs[i].n);
  }
  return n;
}

static void draft_phases(lw_builder *b, const group *gs, int32_t n, draft *ds,
                         int32_t *n_ds) {
  bool small = kernel_is_small(b);
  int32_t nd = 0;
  for (int32_t i = 0; i < n; i++) {
    draft *d = nd ? &ds[nd - 1] : NULL;
    if (d && small) {
      d->n += gs[i].n;
      d->one_group = false;
      d->one_point = true;
      d->k = 0;
      continue;
    }
    int32_t k = d ? shared_dims(b, d->first, d->k, &gs[i]) : 0;
    const lw_shape *s = d ? stage(b, d->first)->domain : NULL;
    if (k > 0 && points_of(s, k) >= LEAST_POINTS) {
      d->n += gs[i].n;
      d->one_group = false;
      d->k = k;
      continue;
    }
    ds[nd++] = (draft){gs[i].first, gs[i].n, gs[i].k, true, false};
  }
  *n_ds = nd;
}

/* ---- memory ---- */

static int32_t phase_of(const lw_kernel *k, int32_t s) {
  for (int32_t p = 0; p < k->n_phases; p++)
    if (s >= k->phases[p].first_stage &&
        s < k->phases[p].first_stage + k->phases[p].n_stages)
      return p;
  return -1;
}

static int64_t round64(int64_t x) { return (x + 63) & ~(int64_t)63; }

/* All readers (and writers, for scatters) in the stage's own phase. */
static bool stays_in_phase(lw_builder *b, int32_t s) {
  const lw_kernel *k = b->k;
  int32_t ph = phase_of(k, s);
  for (size_t r = 0; r < b->reads.len; r++) {
    const lw_read *rd = &b->reads.data[r];
    const lw_place *p = staged_at(b, rd->value);
    if (p && p->stage == s && phase_of(k, rd->stage) != ph) return false;
  }
  for (int32_t t = 0; t < (int32_t)b->stages.len; t++) {
    if (stage(b, t)->home == s && phase_of(k, t) != ph) return false;
    if (stage(b, t)->kind == LW_STAGE_REDUCE_FOLD && stage(b, t)->part == s &&
        phase_of(k, t) != ph)
      return false;
  }
  return true;
}

static lw_status give_homes(lw_builder *b) {
  lw_kernel *k = b->k;
  k->scratch_bytes = LW_NEW_ARRAY(b->a, int64_t, 8 * b->stages.len + 64);
  for (int32_t s = 0; s < (int32_t)b->stages.len; s++) {
    lw_stage *st = stage(b, s);
    lw_phase *p = &k->phases[phase_of(k, s)];
    bool local = stays_in_phase(b, s);
    int64_t points = p->n_points > 0 ? p->n_points : 1;
    for (int32_t r = 0; r < st->n_results && st->home < 0; r++) {
      if (st->dests[r].kind == LW_DEST_OUTPUT) continue;
      int64_t bytes = lw_shape_bytes(st->shapes[r]);
      if (local && !(p->flat && p->n_tiles != 1)) {
        st->dests[r].kind = LW_DEST_THREAD_SCRATCH;
        st->dests[r].offset_bytes = p->thread_scratch_bytes;
        p->thread_scratch_bytes += round64(bytes / points * p->grain);
      } else {
        if (k->n_scratch >= (int32_t)(8 * b->stages.len + 64))
          return lw_error(LW_UNIMPLEMENTED, "%s: too many intermediate results",
                          k->inst->name);
        st->dests[r].kind = LW_DEST_KERNEL_SCRATCH;
        st->dests[r].buffer = k->n_params + k->n_outputs + k->n_scratch;
        k->scratch_bytes[k->n_scratch++] = bytes;
      }
    }
    if (st->work_bytes) {
      st->work_offset = p->thread_scratch_bytes;
      p->thread_scratch_bytes += round64(st->work_bytes);
    }
  }
  for (int32_t s = 0; s < (int32_t)b->stages.len; s++) {
    lw_stage *st = stage(b, s);
    if (st->home >= 0)
      st->dests[0] = stage(b, st->home)->dests[st->home_result];
  }
  for (int32_t i = 0; i < k->n_places; i++)
    if (k->places[i].kind == LW_PLACE_CONST && k->places[i].buffer >= 0)
      k->places[i].buffer += k->n_params + k->n_outputs + k->n_scratch;
  return NULL;
}

static void work_room(lw_stage *s) {
  const lw_inst *i = s->inst;
  if (s->kind == LW_STAGE_SORT) {
    int64_t n = s->shapes[0]->dims[dim_attr(i)];
    s->work_bytes = 16 * n + 64; /* two index arrays */
    for (int32_t r = 0; r < s->n_results; r++)
      s->work_bytes += round64(n * lw_prim_bytes(s->shapes[r]->type));
  } else if (s->kind == LW_STAGE_DOT) {
    s->work_bytes = lw_dot_plan_of(i).work_bytes;
  } else if (s->kind == LW_STAGE_CONV) {
    s->work_bytes = lw_conv_work_bytes(i);
  } else if (s->kind == LW_STAGE_TOPK) {
    const lw_shape *in = lw_value_shape(lw_value_operand(i, 0));
    s->work_bytes = 16 * (in->rank ? in->dims[in->rank - 1] : 1) + 64;
  }
}

lw_status lw_make_phases(lw_builder *b) {
  lw_kernel *k = b->k;
  int32_t n = (int32_t)b->stages.len, n_ds = 0;
  for (int32_t s = 0; s < n; s++)
    stage(b, s)->flops = stage_flops(b, stage(b, s));
  for (int32_t s = 0; s < n; s++) work_room(stage(b, s));
  group *gs = LW_NEW_ARRAY(b->a, group, n + 1);
  draft *ds = LW_NEW_ARRAY(b->a, draft, n + 1);
  int32_t ng = make_groups(b, gs);
  draft_phases(b, gs, ng, ds, &n_ds);
  k->n_phases = n_ds;
  k->phases = LW_NEW_ARRAY(b->a, lw_phase, n_ds + 1);
  for (int32_t p = 0; p < n_ds; p++) finish_phase(b, &k->phases[p], &ds[p]);
  LW_TRY(give_homes(b));
  k->n_stages = n;
  k->stages = lw_arena_memdup(b->a, b->stages.data,
                              (size_t)(n ? n : 1) * sizeof *k->stages);
  return NULL;
}

/* ---- which outputs may be written over which parameters ---- */

static int32_t group_of(const lw_kernel *k, int32_t s) {
  while (s > 0 && k->stages[s].group == 0) s--;
  return s;
}

/* Reads of parameter `param` by rd are done when stage w writes, or at the
 * element written. */
static bool read_allows(lw_builder *b, const lw_read *rd, int32_t w,
                        int64_t bytes) {
  const lw_kernel *k = b->k;
  int32_t pr = phase_of(k, rd->stage), pw = phase_of(k, w);
  if (pr != pw) return pr < pw;
  const lw_phase *p = &k->phases[pw];
  int32_t gr = group_of(k, rd->stage), gw = group_of(k, w);
  if (gr > gw) return false;
  const lw_stage *s = &k->stages[w];
  if (gr == gw) /* stages of a loop store in order: none may read after w */
    return s->kind == LW_STAGE_MAP && rd->stage <= w &&
           reads_own_element(b, rd) &&
           lw_prim_bytes(lw_value_shape(rd->value)->type) *
                   s->domain->elements ==
               bytes;
  if (p->n_points <= 1) return true;
  return read_aligned(b, rd, p->n_tile_dims);
}

static bool stage_writes(const lw_kernel *k, int32_t s, int32_t buffer) {
  const lw_stage *st = &k->stages[s];
  for (int32_t r = 0; r < st->n_results; r++)
    if (st->dests[r].kind == LW_DEST_OUTPUT && st->dests[r].buffer == buffer)
      return true;
  for (int32_t c = 0; c < st->n_copies; c++)
    if (st->copies[c].buffer == buffer) return true;
  return false;
}

static bool may_alias(lw_builder *b, int32_t param, int32_t out) {
  const lw_kernel *k = b->k;
  int64_t bytes = lw_shape_bytes(k->param_shapes[param]);
  if (bytes != lw_shape_bytes(k->output_shapes[out]) || bytes == 0)
    return false;
  if (!lw_shape_is_array(k->output_shapes[out])) return false;
  for (int32_t s = 0; s < k->n_stages; s++) {
    if (!stage_writes(k, s, k->n_params + out)) continue;
    const lw_stage *st = &k->stages[s];
    if (st->kind == LW_STAGE_UPDATE_SLICE ||
        (st->kind == LW_STAGE_SCATTER && st->in_place))
      return false; /* only its own operand: must_alias */
    for (size_t r = 0; r < b->reads.len; r++) {
      const lw_read *rd = &b->reads.data[r];
      if (param_of(b, rd->value) != param) continue;
      if (b->opt.fault != LW_FAULT_ALIAS && !read_allows(b, rd, s, bytes))
        return false;
    }
  }
  return true;
}

static void must_alias(lw_builder *b, int32_t s) {
  lw_kernel *k = b->k;
  const lw_stage *st = &k->stages[s];
  if (!st->in_place) return;
  int32_t n = st->kind == LW_STAGE_SCATTER ? st->n_results : 1;
  for (int32_t j = 0; j < n; j++) {
    lw_value v = lw_value_operand(st->inst, j);
    while (v.inst->opcode == LW_OP_RESHAPE || v.inst->opcode == LW_OP_COPY ||
           v.inst->opcode == LW_OP_BITCAST)
      v = lw_value_operand(v.inst, 0);
    int32_t p = param_of(b, v), o = st->dests[j].buffer - k->n_params;
    k->must_alias[p * k->n_outputs + o] = true;
    k->may_alias[p * k->n_outputs + o] = true;
  }
}

void lw_find_aliases(lw_builder *b) {
  lw_kernel *k = b->k;
  int32_t n = k->n_params * k->n_outputs;
  k->may_alias = LW_NEW_ARRAY(b->a, bool, n + 1);
  k->must_alias = LW_NEW_ARRAY(b->a, bool, n + 1);
  for (int32_t p = 0; p < k->n_params; p++)
    for (int32_t o = 0; o < k->n_outputs; o++)
      k->may_alias[p * k->n_outputs + o] = may_alias(b, p, o);
  for (int32_t s = 0; s < k->n_stages; s++) must_alias(b, s);
}
