#include "kernel/dot_plan.h"

void lw_axis_add(lw_axis *a, int64_t extent, int64_t stride) {
  if (!a->n && !a->total) a->total = 1;
  a->total *= extent;
  if (extent == 1) return;
  if (a->n && a->stride[a->n - 1] == stride * extent) {
    a->extent[a->n - 1] *= extent;
    a->stride[a->n - 1] = stride;
    return;
  }
  a->extent[a->n] = extent;
  a->stride[a->n++] = stride;
}

bool lw_axis_is_linear(const lw_axis *a, int64_t *stride) {
  *stride = a->n ? a->stride[0] : 0;
  return a->n <= 1;
}

/* The dims of one operand: batch and contracting in attribute order, the rest
 * in increasing order. */
static void split(const lw_inst *dot, int32_t slot, lw_attr_id batch_id,
                  lw_attr_id contract_id, lw_axis *batch, lw_axis *free_dims,
                  lw_axis *k) {
  const lw_shape *s = lw_inst_operand(dot, slot)->shape;
  int64_t stride[LW_MAX_RANK];
  bool used[LW_MAX_RANK] = {false};
  int32_t n;
  lw_shape_strides(s, stride);
  batch->total = free_dims->total = k->total = 1;
  const int64_t *d = lw_inst_i64s(dot, batch_id, &n);
  for (int32_t i = 0; i < n; i++) {
    lw_axis_add(batch, s->dims[d[i]], stride[d[i]]);
    used[d[i]] = true;
  }
  d = lw_inst_i64s(dot, contract_id, &n);
  for (int32_t i = 0; i < n; i++) {
    lw_axis_add(k, s->dims[d[i]], stride[d[i]]);
    used[d[i]] = true;
  }
  for (int32_t i = 0; i < s->rank; i++)
    if (!used[i]) lw_axis_add(free_dims, s->dims[i], stride[i]);
}

static bool unit(const lw_axis *a) {
  int64_t stride;
  return lw_axis_is_linear(a, &stride) && (stride == 1 || a->total == 1);
}

/* Lanes go where both operands are read in consecutive elements or as one
 * broadcast element. */
static lw_dot_road skinny_road(const lw_dot_plan *p) {
  if (p->fold.k < LW_FOLD_SKINNY_LANES && p->fold.n > p->fold.m)
    return LW_DOT_SKINNY_N;
  if (unit(&p->lhs_k) && unit(&p->rhs_k)) return LW_DOT_SKINNY_K;
  if (p->fold.n > p->fold.m) return LW_DOT_SKINNY_N;
  return unit(&p->lhs_m) && p->fold.m > 1 ? LW_DOT_SKINNY_M : LW_DOT_SKINNY_K;
}

lw_dot_plan lw_dot_plan_of(const lw_inst *dot) {
  lw_dot_plan p = {.fold = lw_dot_fold(dot)};
  split(dot, 0, LW_ATTR_LHS_BATCH_DIMS, LW_ATTR_LHS_CONTRACTING_DIMS,
        &p.lhs_batch, &p.lhs_m, &p.lhs_k);
  split(dot, 1, LW_ATTR_RHS_BATCH_DIMS, LW_ATTR_RHS_CONTRACTING_DIMS,
        &p.rhs_batch, &p.rhs_n, &p.rhs_k);
  p.complex = lw_prim_is_complex(dot->shape->type);
  int64_t size = lw_prim_bytes(p.fold.accumulator);
  double work = (double)p.fold.m * (double)p.fold.n * (double)p.fold.k;
  p.cols = LW_DOT_COLS_BYTES / size;
  if (p.fold.skinny)
    p.road = skinny_road(&p);
  else if (p.complex || size < 4 || work < (double)LW_DOT_PACK_WORK)
    p.road = LW_DOT_CHAIN;
  else
    p.road = LW_DOT_PACKED;
  if (p.road == LW_DOT_PACKED)
    p.work_bytes = size * (LW_DOT_ROWS * LW_FOLD_DOT_BLOCK +
                           LW_FOLD_DOT_BLOCK * p.cols + LW_DOT_ROWS * p.cols);
  return p;
}
