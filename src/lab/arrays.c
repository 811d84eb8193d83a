/* Programs' arrays in .npz files (arrays.h). */
#include "lab/arrays.h"

#include <stdio.h>

#include "base/vec.h"
#include "lib/npz.h"

static lw_status read_leaves(lw_npz *z, const lw_shape *s, int *number,
                             lw_arena *a, lw_literal **out) {
  if (!lw_shape_is_tuple(s)) {
    if (!lw_shape_is_array(s)) return lw_literal_new(a, s, out);
    char key[16];
    snprintf(key, sizeof key, "p%d", (*number)++);
    return lw_npz_read(z, key, s, a, out);
  }
  lw_literal *t = LW_NEW(a, lw_literal);
  t->shape = s;
  t->n_elems = s->n_elems;
  t->elems = LW_NEW_ARRAY(a, lw_literal *, s->n_elems + 1);
  for (int32_t k = 0; k < s->n_elems; k++)
    LW_TRY(read_leaves(z, s->elems[k], number, a, &t->elems[k]));
  *out = t;
  return NULL;
}

lw_status lw_arrays_read(const char *path, const lw_module *m, lw_arena *a,
                         lw_literal ***args, int32_t *n_args) {
  const lw_comp *e = m->entry;
  int32_t n = (int32_t)e->params.len;
  lw_literal **v = LW_NEW_ARRAY(a, lw_literal *, n + 1);
  lw_npz *z;
  LW_TRY(lw_npz_open(path, &z));
  int number = 0;
  lw_status st = NULL;
  for (int32_t k = 0; k < n && !st; k++)
    st = read_leaves(z, e->params.data[k]->shape, &number, a, &v[k]);
  lw_npz_close(z);
  if (st) return lw_status_annotate(st, "%s", path);
  *args = v;
  *n_args = n;
  return NULL;
}

typedef LW_VEC(const lw_literal *) leaf_list;

static void collect(leaf_list *leaves, const lw_literal *l) {
  if (lw_shape_is_tuple(l->shape))
    for (int32_t k = 0; k < l->n_elems; k++) collect(leaves, l->elems[k]);
  else if (lw_shape_is_array(l->shape))
    lw_vec_push(leaves, l);
}

lw_status lw_arrays_write(const char *path, char prefix,
                          const lw_literal *const *values, int32_t n) {
  leaf_list leaves = {0};
  for (int32_t k = 0; k < n; k++) collect(&leaves, values[k]);
  lw_arena *a = lw_arena_new();
  const char **keys = LW_NEW_ARRAY(a, const char *, leaves.len + 1);
  for (size_t k = 0; k < leaves.len; k++)
    keys[k] = lw_arena_printf(a, "%c%zu", prefix, k);
  lw_status st = lw_npz_write(path, (int)leaves.len, keys, leaves.data);
  lw_arena_free(a);
  lw_vec_free(&leaves);
  return st;
}
