/* lw_plan_build: lower, find lives, coalesce, place, and turn values into
 * slices. plan_impl.h has the map of the folder. */
#include "kernel/observe.h"
#include "plan/plan_impl.h"

typedef struct {
  builder *b;
  LW_VEC(lw_slice) slices;
  int32_t empty;      /* the slice of values without bytes, or -1 */
  int32_t *constants; /* by constant number: slice + 1 */
} finisher;

static int32_t add_slice(finisher *f, lw_alloc_kind kind, int32_t index,
                         int64_t offset, int64_t bytes) {
  lw_slice s = {kind, index, offset, bytes};
  lw_vec_push(&f->slices, s);
  return (int32_t)f->slices.len - 1;
}

static int32_t empty_slice(finisher *f) {
  if (f->empty < 0) f->empty = add_slice(f, LW_ALLOC_TEMP, -1, 0, 0);
  return f->empty;
}

static int32_t constant_slice(finisher *f, const val *v) {
  int32_t *have = &f->constants[v->index];
  if (*have == 0) {
    *have = add_slice(f, LW_ALLOC_CONSTANT, v->index, 0, v->bytes) + 1;
  }
  return *have - 1;
}

static int32_t slice_of(finisher *f, int32_t v) {
  val *c = &f->b->vals.data[plan_class(f->b, v)];
  if (c->class_kind == VAL_CONST) return constant_slice(f, c);
  if (c->class_kind == VAL_NONE) return empty_slice(f);
  if (c->slice >= 0) return c->slice;
  if (c->class_kind == VAL_PARAM) {
    c->slice = add_slice(f, LW_ALLOC_PARAM, c->class_index, 0, c->class_bytes);
  } else if (c->class_kind == VAL_OUTPUT) {
    c->slice = add_slice(f, LW_ALLOC_OUTPUT, c->class_index, 0, c->class_bytes);
  } else {
    c->slice = add_slice(f, LW_ALLOC_TEMP, -1, c->offset, c->class_bytes);
  }
  return c->slice;
}

/* Values become slices; copies within one place go. */
static void finish_node(finisher *f, lw_node *n) {
  for (int32_t k = 0; k < n->n_slices; k++) {
    n->slices[k] = slice_of(f, n->slices[k]);
  }
  int32_t kept = 0;
  for (int32_t k = 0; k < n->n_children; k++) {
    lw_node *c = n->children[k];
    finish_node(f, c);
    if (c->kind == LW_NODE_COPY && c->reason == NULL) continue;
    n->children[kept++] = c;
  }
  n->n_children = kept;
}

static void finish_live(finisher *f) {
  builder *b = f->b;
  size_t n = 0;
  for (size_t k = 0; k < b->vals.len; k++) n += b->vals.data[k].segments.len;
  lw_live_range *out = LW_NEW_ARRAY(b->arena, lw_live_range, n + 1);
  n = 0;
  for (size_t k = 0; k < b->vals.len; k++) {
    const val *v = &b->vals.data[k];
    if (!v->inst || v->kind == VAL_NONE || v->kind == VAL_CONST) continue;
    for (size_t s = 0; s < v->segments.len; s++) {
      out[n++] = (lw_live_range){slice_of(f, (int32_t)k), v->inst, v->leaf,
                                 v->segments.data[s].first / 2,
                                 v->segments.data[s].last / 2};
    }
  }
  b->plan->live = out;
  b->plan->n_live = (int32_t)n;
}

static void finish(builder *b) {
  finisher f = {.b = b, .empty = -1};
  lw_plan *p = b->plan;
  f.constants = LW_NEW_ARRAY(b->arena, int32_t, b->constants.len + 1);
  finish_node(&f, p->root);
  finish_live(&f);
  p->n_slices = (int32_t)f.slices.len;
  p->slices = lw_arena_memdup(b->arena, f.slices.data,
                              f.slices.len * sizeof *f.slices.data);
  p->n_kernels = (int32_t)b->kernels.len;
  p->kernels = lw_arena_memdup(b->arena, b->kernels.data,
                               b->kernels.len * sizeof *b->kernels.data);
  p->n_constants = (int32_t)b->constants.len;
  p->constants = lw_arena_memdup(b->arena, b->constants.data,
                                 b->constants.len * sizeof *b->constants.data);
  lw_vec_free(&f.slices);
}

static void builder_free(builder *b) {
  for (size_t k = 0; k < b->vals.len; k++) {
    lw_vec_free(&b->vals.data[k].segments);
    lw_vec_free(&b->vals.data[k].class_segments);
  }
  lw_vec_free(&b->vals);
  lw_vec_free(&b->uses);
  lw_vec_free(&b->steps);
  lw_vec_free(&b->copies);
  lw_vec_free(&b->kernels);
  lw_vec_free(&b->constants);
  lw_map_free(&b->kernel_of);
  lw_map_free(&b->invariants);
  lw_map_free(&b->const_hashes);
}

lw_status lw_plan_build(lw_arena *a, const lw_module *m,
                        const lw_plan_options *options, lw_plan **out) {
  static const lw_plan_options defaults = {0};
  builder b = {.module = m, .arena = a, .options = options};
  if (!options) b.options = &defaults;
  b.plan = LW_NEW(a, lw_plan);
  b.plan->module = m;
  b.plan->arena = a;
  b.nan_observed = lw_nan_observed(m, a);
  lw_status st = plan_lower(&b);
  if (!st) {
    plan_liveness(&b);
    plan_coalesce(&b);
    st = plan_place(&b);
  }
  if (!st) finish(&b);
  builder_free(&b);
  *out = st ? NULL : b.plan;
  return st;
}
