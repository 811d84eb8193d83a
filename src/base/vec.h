/* Typed growable arrays.
 *   LW_VEC(int) v = {0};
 *   lw_vec_push(&v, 3);   v.data[i], v.len   lw_vec_free(&v);
 */
#ifndef LW_BASE_VEC_H
#define LW_BASE_VEC_H

#include <stdlib.h>

#include "base/status.h"

#define LW_VEC(T)    \
  struct {           \
    T *data;         \
    size_t len, cap; \
  }

void *lw_vec_grow_(void *data, size_t *cap, size_t need, size_t size);

#define lw_vec_reserve(v, n)                                                   \
  ((n) > (v)->cap ? (void)((v)->data = lw_vec_grow_((v)->data, &(v)->cap, (n), \
                                                    sizeof *(v)->data))        \
                  : (void)0)
#define lw_vec_push(v, x) \
  (lw_vec_reserve((v), (v)->len + 1), (void)((v)->data[(v)->len++] = (x)))
#define lw_vec_pop(v) ((v)->data[--(v)->len])
#define lw_vec_free(v) \
  (free((v)->data), (v)->data = NULL, (v)->len = (v)->cap = 0)

#endif
