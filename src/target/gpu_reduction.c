/* Which reduces get a kernel of their own, and what they look like to it
 * (service/gpu/reduction_utils.cc).
 *
 * The operand's dims, in memory order, are merged to three. If the kept ones
 * are neighbours, they stand in the middle and the rest is folded: a row
 * reduction [a, b, c] -> [b]. If the folded ones are, they stand in the middle:
 * a column reduction [a, b, c] -> [a, c], or a row reduction when nothing is
 * more minor. A kernel of its own (an unnested reduction) needs one of the two,
 * and enough to fold: a whole warp along a row, or a length that rows can share
 * a warp by; for columns a swept rule.
 */
#include <string.h>

#include "target/gpu_impl.h"

typedef struct {
  bool reduced[LW_MAX_RANK];
  int32_t n_reduced, n_kept;
} split;

static split split_of(const lw_inst *reduce) {
  split s = {.n_kept = lw_inst_operand(reduce, 0)->shape->rank};
  int32_t n;
  const int64_t *dims = lw_inst_i64s(reduce, LW_ATTR_DIMENSIONS, &n);
  for (int32_t k = 0; k < n; k++)
    if (dims[k] >= 0 && dims[k] < LW_MAX_RANK) s.reduced[dims[k]] = true;
  s.n_reduced = n;
  s.n_kept -= n;
  return s;
}

/* The dims with reduced[d] == which are neighbours in memory. */
static bool consecutive(const lw_shape *s, const split *p, bool which) {
  int32_t first = -1, last = -1, n = 0;
  for (int32_t k = 0; k < s->rank; k++) {
    if (p->reduced[lw_gpu_minor(s, k)] != which) continue;
    if (first < 0) first = k;
    last = k;
    n++;
  }
  return n == 0 || last - first + 1 == n;
}

/* {more major, those dims, more minor}. */
static void around(const lw_shape *s, const split *p, bool which,
                   int64_t out[3]) {
  int at = 2;
  out[0] = out[1] = out[2] = 1;
  for (int32_t k = 0; k < s->rank; k++) {
    int64_t d = lw_gpu_minor(s, k);
    bool in = p->reduced[d] == which;
    if (at == 2 && in)
      at = 1;
    else if (at == 1 && !in)
      at = 0;
    out[at] *= s->dims[d];
  }
}

static gpu_reduction make(bool is_row, int64_t a, int64_t b, int64_t c) {
  return (gpu_reduction){is_row, {a, b, c}};
}

gpu_reduction lw_gpu_reduction_of(const lw_inst *reduce) {
  const lw_shape *s = lw_inst_operand(reduce, 0)->shape;
  split p = split_of(reduce);
  int64_t v[3];
  if (p.n_kept == 0) return make(true, 1, 1, s->elements);
  if (consecutive(s, &p, false)) {
    around(s, &p, false, v);
    if (v[1] == 1) return make(true, 1, 1, v[0] * v[2]);
    if (v[2] == 1) return make(false, 1, v[0], v[1]);
    return make(true, v[0], v[1], v[2]);
  }
  around(s, &p, true, v);
  if (v[2] == 1) return make(true, 1, v[0], v[1]);
  return make(false, v[0], v[1], v[2]);
}

bool lw_gpu_reduction_equal(const lw_inst *a, const lw_inst *b) {
  gpu_reduction x = lw_gpu_reduction_of(a), y = lw_gpu_reduction_of(b);
  return x.is_row == y.is_row && !memcmp(x.dims, y.dims, sizeof x.dims);
}

static bool faster_than_loop(const lw_gpu_device *d, const gpu_reduction *r) {
  int64_t warp = d->threads_per_warp;
  if (r->is_row) {
    int64_t n = r->dims[2];
    return n >= warp || (n > 0 && warp % n == 0);
  }
  int64_t major = r->dims[1], minor = r->dims[2];
  return !(major < warp || (major < 2 * warp && minor < warp) ||
           (major < 4 * warp && minor < 8) || (major < 8 * warp && minor < 3));
}

bool lw_gpu_is_unnested_reduction(const lw_gpu_device *d, const lw_inst *i) {
  if (i->opcode != LW_OP_REDUCE) return false;
  const lw_shape *s = lw_inst_operand(i, 0)->shape;
  split p = split_of(i);
  if (!consecutive(s, &p, false) && !consecutive(s, &p, true)) return false;
  gpu_reduction r = lw_gpu_reduction_of(i);
  return faster_than_loop(d, &r);
}

/* One block folds each result: no atomics. */
static bool race_free(const lw_gpu_device *d, const gpu_reduction *r) {
  if (r->is_row) return r->dims[2] <= 1024 * 16 && r->dims[0] <= 8;
  return r->dims[1] <= d->threads_per_warp * 128;
}

bool lw_gpu_is_real_reduction(const lw_gpu_device *d, const lw_inst *root,
                              const lw_inst *hero) {
  if (!lw_gpu_is_unnested_reduction(d, hero)) return false;
  gpu_reduction r = lw_gpu_reduction_of(hero);
  return root == hero || race_free(d, &r);
}
