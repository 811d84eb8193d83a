/* Offsets in the arena. Classes are placed largest first, each into the
 * smallest gap between the classes that live at the same time (ties: lowest
 * offset, then lowest number). All offsets are multiples of 64. */
#include "plan/plan_impl.h"

enum { ALIGNMENT = 64 };

typedef struct {
  int32_t id;
  int64_t bytes, offset;
  int32_t first, last; /* steps */
} item;

static int larger_first(const void *x, const void *y) {
  const item *a = x, *c = y;
  if (a->bytes != c->bytes) return a->bytes > c->bytes ? -1 : 1;
  return a->id < c->id ? -1 : 1;
}

static int by_offset(const void *x, const void *y) {
  const item *const *a = x, *const *c = y;
  if ((*a)->offset != (*c)->offset) {
    return (*a)->offset < (*c)->offset ? -1 : 1;
  }
  return (*a)->id < (*c)->id ? -1 : 1;
}

/* Steps, both ends included: at one step everything it touches is alive. */
static bool together(const builder *b, const item *x, const item *y) {
  if (x->first > y->last || y->first > x->last) return false;
  const segment_list *a = &b->vals.data[x->id].class_segments;
  const segment_list *c = &b->vals.data[y->id].class_segments;
  size_t i = 0, j = 0;
  while (i < a->len && j < c->len) {
    segment s = a->data[i], t = c->data[j];
    if (s.first / 2 <= t.last / 2 && t.first / 2 <= s.last / 2) return true;
    if (s.last < t.last) {
      i++;
    } else {
      j++;
    }
  }
  return false;
}

static int64_t best_gap(item **near, size_t n, int64_t bytes) {
  int64_t end = 0, best = -1, best_size = INT64_MAX;
  for (size_t k = 0; k < n; k++) {
    int64_t gap = near[k]->offset - end;
    if (gap >= bytes && gap < best_size) {
      best = end;
      best_size = gap;
    }
    int64_t e = near[k]->offset + near[k]->bytes;
    if (e > end) end = e;
  }
  return best >= 0 ? best : end;
}

static lw_status collect(builder *b, item *items, size_t *n) {
  int64_t total = 0;
  for (size_t k = 0; k < b->vals.len; k++) {
    val *v = &b->vals.data[k];
    if (v->parent != (int32_t)k || v->class_kind != VAL_TEMP) continue;
    if (v->class_segments.len == 0 || v->class_bytes == 0) continue;
    int64_t bytes;
    if (__builtin_add_overflow(v->class_bytes, ALIGNMENT - 1, &bytes) ||
        __builtin_add_overflow(total, bytes, &total)) {
      return lw_error(LW_RESOURCE_EXHAUSTED,
                      "the module's intermediates do not fit an address space");
    }
    const segment_list *l = &v->class_segments;
    items[(*n)++] = (item){(int32_t)k, bytes / ALIGNMENT * ALIGNMENT, 0,
                           l->data[0].first / 2, l->data[l->len - 1].last / 2};
  }
  return NULL;
}

lw_status plan_place(builder *b) {
  item *items = LW_NEW_ARRAY(b->arena, item, b->vals.len + 1);
  item **near = LW_NEW_ARRAY(b->arena, item *, b->vals.len + 1);
  size_t n = 0;
  LW_TRY(collect(b, items, &n));
  qsort(items, n, sizeof *items, larger_first);
  for (size_t k = 0; k < n; k++) {
    size_t n_near = 0;
    for (size_t j = 0; j < k; j++) {
      if (b->options->no_alias || together(b, &items[j], &items[k])) {
        near[n_near++] = &items[j];
      }
    }
    qsort(near, n_near, sizeof *near, by_offset);
    items[k].offset = best_gap(near, n_near, items[k].bytes);
    b->vals.data[items[k].id].offset = items[k].offset;
    int64_t end = items[k].offset + items[k].bytes;
    if (end > b->plan->temp_bytes) b->plan->temp_bytes = end;
  }
  return NULL;
}
