/* Values of the evaluator: reference-counted literals. */
#include <stdlib.h>

#include "interp/eval.h"

static lw_val *val_alloc(const lw_shape *s) {
  lw_val *v = calloc(1, sizeof *v);
  if (!v) lw_oom(sizeof *v);
  v->lit.shape = s;
  v->refs = 1;
  return v;
}

lw_status lw_val_new(lw_eval *e, const lw_shape *s, lw_val **out) {
  int64_t bytes = lw_shape_is_array(s) ? lw_shape_bytes(s) : 0;
  int64_t limit = e->opt.max_bytes;
  if (bytes < 0 || bytes > limit - e->live_bytes)
    return lw_error(LW_RESOURCE_EXHAUSTED,
                    "a value of %lld bytes exceeds the evaluator's memory "
                    "(%lld bytes)",
                    (long long)bytes, (long long)limit);
  lw_val *v = val_alloc(s);
  if (lw_shape_is_array(s)) {
    v->mem = malloc(bytes ? (size_t)bytes : 1);
    if (!v->mem) {
      free(v);
      return lw_error(LW_RESOURCE_EXHAUSTED, "no memory for %lld bytes",
                      (long long)bytes);
    }
    v->mem_bytes = bytes;
    e->live_bytes += bytes;
    v->lit.data = v->mem;
  }
  *out = v;
  return NULL;
}

lw_val *lw_val_tuple(const lw_shape *s, int32_t n, lw_val *const *elems) {
  lw_val *v = val_alloc(s);
  v->lit.n_elems = n;
  size_t bytes = lw_array_bytes((size_t)n + 1, sizeof(lw_literal *));
  v->lit.elems = malloc(bytes);
  if (!v->lit.elems) lw_oom(bytes);
  for (int32_t i = 0; i < n; i++) v->lit.elems[i] = &elems[i]->lit;
  return v;
}

lw_val *lw_val_view(const lw_shape *s, lw_val *v) {
  lw_val *w = val_alloc(s);
  w->lit.data = v->lit.data;
  w->base = lw_val_retain(v);
  return w;
}

/* A borrowed array holds no block and no base, so it is never writable. */
lw_val *lw_val_borrow(const lw_literal *l) {
  if (!lw_shape_is_tuple(l->shape)) {
    lw_val *v = val_alloc(l->shape);
    v->lit.data = l->data;
    return v;
  }
  size_t bytes = lw_array_bytes((size_t)l->n_elems + 1, sizeof(lw_val *));
  lw_val **elems = malloc(bytes);
  if (!elems) lw_oom(bytes);
  for (int32_t i = 0; i < l->n_elems; i++)
    elems[i] = lw_val_borrow(l->elems[i]);
  lw_val *v = lw_val_tuple(l->shape, l->n_elems, elems);
  free(elems);
  return v;
}

void lw_val_release(lw_eval *e, lw_val *v) {
  while (v && --v->refs == 0) {
    lw_val *base = v->base;
    for (int32_t i = 0; i < v->lit.n_elems; i++)
      lw_val_release(e, lw_val_elem(v, i));
    free(v->lit.elems);
    free(v->mem);
    e->live_bytes -= v->mem_bytes;
    free(v);
    v = base;
  }
}

bool lw_val_writable(const lw_val *v) {
  for (; v->refs == 1; v = v->base) {
    if (v->mem) return true;
    if (!v->base) return false;
  }
  return false;
}

lw_status lw_val_own(lw_eval *e, lw_val *v, lw_val **out) {
  if (lw_val_writable(v)) {
    *out = v;
    return NULL;
  }
  LW_TRY(lw_val_new(e, v->lit.shape, out));
  memcpy((*out)->lit.data, v->lit.data, (size_t)lw_shape_bytes(v->lit.shape));
  lw_val_release(e, v);
  return NULL;
}

/* Copies the elements of a smaller array to the corner of a zeroed one. */
static void pad_corner(const lw_literal *src, lw_literal *dst) {
  const lw_shape *s = src->shape, *d = dst->shape;
  if (!s->elements) return;
  int64_t ds[LW_MAX_RANK], idx[LW_MAX_RANK] = {0};
  lw_shape_strides(d, ds);
  size_t size = (size_t)lw_prim_bytes(s->type);
  const char *from = src->data;
  do {
    int64_t at = 0;
    for (int32_t k = 0; k < s->rank; k++) at += idx[k] * ds[k];
    memcpy((char *)dst->data + (size_t)at * size, from, size);
    from += size;
  } while (lw_next_index(s->rank, s->dims, idx));
}

lw_status lw_val_export(lw_arena *a, const lw_shape *declared, const lw_val *v,
                        lw_literal **out) {
  if (lw_shape_is_tuple(v->lit.shape)) {
    lw_literal *l = LW_NEW(a, lw_literal);
    l->shape = declared;
    l->n_elems = v->lit.n_elems;
    l->elems = LW_NEW_ARRAY(a, lw_literal *, l->n_elems + 1);
    for (int32_t i = 0; i < l->n_elems; i++)
      LW_TRY(lw_val_export(a, declared->elems[i], lw_val_elem(v, i),
                           &l->elems[i]));
    *out = l;
    return NULL;
  }
  LW_TRY(lw_literal_new(a, declared, out));
  if (!lw_shape_is_array(declared)) return NULL;
  if (lw_shape_same_dims(declared, v->lit.shape))
    memcpy((*out)->data, v->lit.data, (size_t)lw_shape_bytes(declared));
  else
    pad_corner(&v->lit, *out);
  return NULL;
}

const lw_shape *lw_result_shape(const lw_eval *e, const lw_shape *declared,
                                const int64_t *dims) {
  bool same = true;
  for (int32_t d = 0; d < declared->rank; d++)
    same = same && dims[d] == declared->dims[d];
  if (same) return declared;
  return lw_shape_array(e->m->ctx, declared->type, declared->rank, dims);
}
