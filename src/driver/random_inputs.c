/* Seeded inputs for a module that came without any.
 *
 * Floats are normal. Integers are small, unless the parameter ends up as the
 * index of a gather, scatter, dynamic-slice or dynamic-update-slice: then they
 * stay inside what is indexed. Where a parameter's values go is followed
 * through moves, converts, selects and calls; arithmetic on the way is
 * ignored, so such a range is a good guess, not a proof (XLA clamps or drops
 * what is out of range; nothing can go wrong but the test's point). */
#include <math.h>
#include <string.h>

#include "driver/driver.h"

typedef struct {
  const lw_module *m;
  lw_arena *arena;
  lw_map bounds; /* inst -> int64_t[leaves]: largest index, or INT64_MAX */
  bool changed;
} flow;

/* ---- where indices come from ---- */

static int64_t *bounds_of(flow *f, const lw_inst *i) {
  int64_t *b = lw_map_ptr(&f->bounds, i);
  if (b) return b;
  int64_t n = lw_shape_leaf_count(i->shape);
  b = LW_NEW_ARRAY(f->arena, int64_t, n > 0 ? n : 1);
  for (int64_t k = 0; k < n; k++) b[k] = INT64_MAX;
  lw_map_set_ptr(&f->bounds, i, b);
  return b;
}

static void limit(flow *f, const lw_inst *i, int64_t leaf, int64_t bound) {
  int64_t *b = bounds_of(f, i);
  if (leaf >= lw_shape_leaf_count(i->shape) || bound >= b[leaf]) return;
  b[leaf] = bound;
  f->changed = true;
}

static int64_t room(int64_t dim, int64_t size) {
  return dim > size ? dim - size : 0;
}

/* The tightest of the dims that an index vector goes into. */
static int64_t map_bound(const lw_shape *s, const int64_t *map, int32_t n,
                         const int64_t *sizes, int32_t n_sizes) {
  int64_t best = INT64_MAX;
  for (int32_t k = 0; k < n; k++) {
    if (map[k] < 0 || map[k] >= s->rank) continue;
    int64_t size = map[k] < n_sizes ? sizes[map[k]] : 1;
    int64_t r = room(s->dims[map[k]], size);
    if (r < best) best = r;
  }
  return best;
}

static void seed_gather(flow *f, const lw_inst *i) {
  int32_t n, n_sizes;
  const int64_t *map = lw_inst_i64s(i, LW_ATTR_START_INDEX_MAP, &n);
  const int64_t *sizes = lw_inst_i64s(i, LW_ATTR_SLICE_SIZES, &n_sizes);
  const lw_shape *s = lw_inst_operand(i, 0)->shape;
  limit(f, lw_inst_operand(i, 1), 0, map_bound(s, map, n, sizes, n_sizes));
}

/* Operands, indices, updates: as many operands as updates. */
static void seed_scatter(flow *f, const lw_inst *i) {
  int32_t n;
  const int64_t *map =
      lw_inst_i64s(i, LW_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, &n);
  int32_t indices = i->n_operands / 2;
  limit(f, lw_inst_operand(i, indices), 0,
        map_bound(lw_inst_operand(i, 0)->shape, map, n, NULL, 0));
}

/* Starts are scalars, one a dim, from operand `first` on; or one vector. */
static void seed_starts(flow *f, const lw_inst *i, int32_t first,
                        const int64_t *sizes) {
  const lw_shape *s = lw_inst_operand(i, 0)->shape;
  for (int32_t k = first; k < i->n_operands; k++) {
    const lw_inst *op = lw_inst_operand(i, k);
    bool vector = op->shape->rank == 1;
    for (int32_t d = 0; d < s->rank; d++) {
      if (vector || d == k - first) {
        limit(f, op, 0, room(s->dims[d], sizes[d]));
      }
    }
  }
}

/* Sizes of dynamic dimensions: any up to the bound, but a dynamic-reshape's
 * must multiply to what it is given. A bound below 0 means exactly -1 - it. */
static void seed_sizes(flow *f, const lw_inst *i) {
  const lw_shape *s = i->shape;
  if (i->opcode == LW_OP_SET_DIMENSION_SIZE) {
    int32_t n;
    const int64_t *dim = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
    if (n == 1 && dim[0] >= 0 && dim[0] < s->rank)
      limit(f, lw_inst_operand(i, 1), 0, s->dims[dim[0]]);
    return;
  }
  bool exact = s->elements == lw_inst_operand(i, 0)->shape->elements;
  for (int32_t d = 0; d < s->rank && d + 1 < i->n_operands; d++)
    limit(f, lw_inst_operand(i, d + 1), 0,
          exact ? -1 - s->dims[d] : s->dims[d]);
}

static void seed(flow *f, const lw_inst *i) {
  int32_t n;
  switch ((int)i->opcode) {
    case LW_OP_GATHER:
      seed_gather(f, i);
      break;
    case LW_OP_SCATTER:
      seed_scatter(f, i);
      break;
    case LW_OP_DYNAMIC_SLICE: {
      const int64_t *sizes = lw_inst_i64s(i, LW_ATTR_DYNAMIC_SLICE_SIZES, &n);
      if (n == lw_inst_operand(i, 0)->shape->rank) seed_starts(f, i, 1, sizes);
      break;
    }
    case LW_OP_DYNAMIC_UPDATE_SLICE:
      seed_starts(f, i, 2, lw_inst_operand(i, 1)->shape->dims);
      break;
    case LW_OP_SET_DIMENSION_SIZE:
    case LW_OP_DYNAMIC_RESHAPE:
      seed_sizes(f, i);
      break;
  }
}

/* ---- backwards through what only moves ---- */

static void to_callee(flow *f, const lw_inst *i, const lw_comp *c) {
  const lw_inst *r = c->root;
  int64_t n = lw_shape_leaf_count(r->shape);
  for (int64_t k = 0; k < n && k < lw_shape_leaf_count(i->shape); k++) {
    limit(f, r, k, bounds_of(f, i)[k]);
  }
}

static void to_operand(flow *f, const lw_inst *param, const lw_inst *operand) {
  int64_t n = lw_shape_leaf_count(param->shape);
  for (int64_t k = 0; k < n && k < lw_shape_leaf_count(operand->shape); k++) {
    limit(f, operand, k, bounds_of(f, param)[k]);
  }
}

static void from_params(flow *f, const lw_inst *i) {
  for (int32_t k = 0; k < lw_inst_called_count(i); k++) {
    const lw_comp *c = lw_inst_called(i, k);
    bool branch = i->opcode == LW_OP_CONDITIONAL;
    if (i->opcode == LW_OP_WHILE) to_operand(f, c->params.data[0], c->root);
    for (size_t p = 0; p < c->params.len; p++) {
      int32_t slot = branch ? k + 1 : (int32_t)p;
      if (slot < i->n_operands) {
        to_operand(f, c->params.data[p], lw_inst_operand(i, slot));
      }
    }
    to_callee(f, i, c);
  }
}

static int64_t element_offset(const lw_shape *tuple, int64_t k) {
  int64_t n = 0;
  for (int64_t e = 0; e < k; e++) n += lw_shape_leaf_count(tuple->elems[e]);
  return n;
}

static void through(flow *f, const lw_inst *i) {
  int64_t *b = bounds_of(f, i), leaf = 0;
  switch ((int)i->opcode) {
    case LW_OP_TUPLE:
      for (int32_t k = 0; k < i->n_operands; k++) {
        const lw_inst *op = lw_inst_operand(i, k);
        int64_t n = lw_shape_leaf_count(op->shape);
        for (int64_t l = 0; l < n; l++) limit(f, op, l, b[leaf++]);
      }
      break;
    case LW_OP_GET_TUPLE_ELEMENT: {
      const lw_inst *op = lw_inst_operand(i, 0);
      leaf = element_offset(op->shape, lw_inst_i64(i, LW_ATTR_INDEX, 0));
      int64_t n = lw_shape_leaf_count(i->shape);
      for (int64_t l = 0; l < n; l++) limit(f, op, leaf + l, b[l]);
      break;
    }
    case LW_OP_CALL:
    case LW_OP_FUSION:
    case LW_OP_WHILE:
    case LW_OP_CONDITIONAL:
      from_params(f, i);
      break;
    case LW_OP_SELECT:
    case LW_OP_CLAMP:
      limit(f, lw_inst_operand(i, 1), 0, b[0]);
      if (i->opcode == LW_OP_SELECT) limit(f, lw_inst_operand(i, 2), 0, b[0]);
      break;
    case LW_OP_CONCATENATE:
    case LW_OP_ADD:
    case LW_OP_MAXIMUM:
    case LW_OP_MINIMUM:
      for (int32_t k = 0; k < i->n_operands; k++) {
        limit(f, lw_inst_operand(i, k), 0, b[0]);
      }
      break;
    case LW_OP_RESHAPE:
    case LW_OP_BITCAST:
    case LW_OP_BROADCAST:
    case LW_OP_TRANSPOSE:
    case LW_OP_SLICE:
    case LW_OP_DYNAMIC_SLICE:
    case LW_OP_GATHER:
    case LW_OP_REVERSE:
    case LW_OP_CONVERT:
    case LW_OP_COPY:
    case LW_OP_PAD:
    case LW_OP_OPT_BARRIER:
      to_operand(f, i, lw_inst_operand(i, 0));
      break;
  }
}

static void find_bounds(flow *f) {
  int32_t n;
  lw_comp **comps = lw_module_post_order(f->m, f->arena, &n, true);
  for (int32_t k = 0; k < n; k++) {
    for (const lw_inst *i = comps[k]->first; i; i = i->next) seed(f, i);
  }
  /* Bounds only shrink; a few rounds see through loops. */
  f->changed = true;
  for (int round = 0; f->changed && round < 16; round++) {
    f->changed = false;
    for (int32_t k = n - 1; k >= 0; k--) {
      for (const lw_inst *i = comps[k]->last; i; i = i->prev) through(f, i);
    }
  }
}

/* ---- values ---- */

static uint64_t next_u64(uint64_t *s) {
  uint64_t z = (*s += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

static double next_unit(uint64_t *s) {
  return ((double)(next_u64(s) >> 11) + 0.5) * 0x1p-53;
}

static double next_normal(uint64_t *s) {
  double u = next_unit(s), v = next_unit(s);
  return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static void set_range(lw_input_range *r, int64_t bound) {
  lw_prim t = r->shape->type;
  r->is_index = bound != INT64_MAX && lw_prim_is_int(t);
  int bits = lw_prim_table[t].bits;
  if (r->is_index) {
    int64_t most = bits >= 63 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
    if (bound < 0) r->low = (double)(-1 - bound);
    if (bound < 0) bound = -1 - bound;
    r->high = (double)(bound < most ? bound : most);
  } else if (t == LW_PRED) {
    r->high = 1;
  } else if (lw_prim_is_int(t)) {
    int64_t most =
        bits == 1 ? 0 : ((int64_t)1 << (bits < 5 ? bits - 1 : 4)) - 1;
    r->high = (double)(most > 10 ? 10 : most);
    r->low = lw_prim_is_signed(t) ? -r->high : 0;
  }
}

static void fill(lw_literal *l, const lw_input_range *r, uint64_t *s) {
  lw_prim t = l->shape->type;
  bool whole = lw_prim_is_int(t) || t == LW_PRED;
  uint64_t width = (uint64_t)(r->high - r->low) + 1;
  for (int64_t k = 0; k < l->shape->elements; k++) {
    if (whole) {
      int64_t v = (int64_t)r->low + (int64_t)(next_u64(s) % width);
      lw_literal_set_int(l, k, v);
    } else {
      lw_literal_set_f64(l, k, 0, next_normal(s));
      if (lw_prim_is_complex(t)) lw_literal_set_f64(l, k, 1, next_normal(s));
    }
  }
}

static void fill_leaves(flow *f, lw_literal *l, const lw_inst *param,
                        int32_t *leaf, lw_input_range *ranges, int32_t *n,
                        uint64_t *s) {
  if (lw_shape_is_tuple(l->shape)) {
    for (int32_t k = 0; k < l->n_elems; k++) {
      fill_leaves(f, l->elems[k], param, leaf, ranges, n, s);
    }
    return;
  }
  lw_input_range *r = &ranges[(*n)++];
  *r = (lw_input_range){
      (int32_t)lw_inst_param_number(param), *leaf, l->shape, 0, 0, false};
  if (lw_shape_is_array(l->shape)) {
    set_range(r, bounds_of(f, param)[*leaf]);
    fill(l, r, s);
  }
  ++*leaf;
}

static bool is_unbounded(const lw_shape *s) {
  for (int32_t k = 0; k < s->n_elems; k++)
    if (is_unbounded(s->elems[k])) return true;
  for (int32_t d = 0; d < s->rank; d++)
    if (s->dims[d] == LW_UNBOUNDED) return true;
  return false;
}

static lw_status check_bounds(const lw_module *m) {
  for (size_t k = 0; k < m->entry->params.len; k++) {
    const lw_inst *p = m->entry->params.data[k];
    if (is_unbounded(p->shape))
      return lw_error(LW_UNIMPLEMENTED,
                      "%s: %s has a dimension without a bound; Lawson needs "
                      "one (<=N)",
                      p->name, lw_shape_str(m->ctx, p->shape));
  }
  return NULL;
}

lw_status lw_random_inputs(const lw_module *m, uint64_t seed_value, lw_arena *a,
                           lw_literal ***args, int32_t *n_args,
                           lw_input_range **ranges, int32_t *n_ranges) {
  LW_TRY(check_bounds(m));
  flow f = {.m = m, .arena = lw_arena_new()};
  find_bounds(&f);
  const lw_comp *e = m->entry;
  int64_t leaves = 0;
  for (size_t k = 0; k < e->params.len; k++) {
    leaves += lw_shape_leaf_count(e->params.data[k]->shape);
  }
  lw_literal **out = LW_NEW_ARRAY(a, lw_literal *, e->params.len + 1);
  lw_input_range *r = LW_NEW_ARRAY(a, lw_input_range, leaves + 1);
  int32_t n = 0;
  lw_status st = NULL;
  for (size_t k = 0; k < e->params.len && !st; k++) {
    uint64_t s = seed_value * 0x2545f4914f6cdd1dull + k;
    int32_t leaf = 0;
    st = lw_literal_new(a, e->params.data[k]->shape, &out[k]);
    if (!st) fill_leaves(&f, out[k], e->params.data[k], &leaf, r, &n, &s);
  }
  lw_map_free(&f.bounds);
  lw_arena_free(f.arena);
  *args = out;
  *n_args = (int32_t)e->params.len;
  if (ranges) *ranges = r;
  if (n_ranges) *n_ranges = n;
  return st;
}
