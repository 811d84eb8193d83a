#include "kernel/dot_plan.h"

#include "kernel/index.h"

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

/* ---- convolutions ---- */

static lw_prim conv_accumulator(const lw_inst *conv) {
  return lw_dot_accumulator(lw_value_shape(lw_value_operand(conv, 0))->type,
                            lw_value_shape(lw_value_operand(conv, 1))->type,
                            conv->shape->type);
}

/* Of the contracting index: kernel positions times input features. */
static int64_t conv_bytes(const lw_inst *conv) {
  const lw_dim_labels *dl =
      lw_inst_attr(conv, LW_ATTR_DIM_LABELS)->u.dim_labels;
  const lw_shape *ker = lw_value_shape(lw_value_operand(conv, 1));
  int64_t features = ker->dims[dl->kernel_output_feature];
  return features ? ker->elements / features * LW_CONV_LANE_BYTES : 0;
}

/* Lanes along a last dim that is spatial are good when it is long; they cannot
 * be where the input has holes along it. Lanes along features cost a store an
 * element at the end, which long chains pay for. */
bool lw_conv_feature_points(const lw_inst *conv) {
  const lw_dim_labels *dl =
      lw_inst_attr(conv, LW_ATTR_DIM_LABELS)->u.dim_labels;
  const lw_window *w = lw_inst_window(conv);
  const lw_shape *ker = lw_value_shape(lw_value_operand(conv, 1));
  int64_t last = conv->shape->rank - 1;
  int64_t features = ker->dims[dl->kernel_output_feature];
  if (dl->output_feature == last || features < 4) return false;
  if (lw_prim_is_complex(conv->shape->type) || conv->shape->elements == 0)
    return false;
  if (lw_inst_i64(conv, LW_ATTR_FEATURE_GROUP_COUNT, 1) > 1 ||
      lw_inst_i64(conv, LW_ATTR_BATCH_GROUP_COUNT, 1) > 1 ||
      conv_bytes(conv) > LW_CONV_MOST_WORK)
    return false;
  bool narrow =
      conv->shape->dims[last] < LW_CONV_NARROW || last == dl->output_batch;
  for (int32_t i = 0; i < dl->n_spatial; i++)
    narrow |= dl->output_spatial[i] == last && w->dims[i].lhs_dilation > 1;
  return narrow || (features >= LW_CONV_FEATURES &&
                    ker->elements / features >= LW_CONV_LEAST_K);
}

bool lw_conv_packs(const lw_inst *conv) {
  if (lw_conv_feature_points(conv)) return true;
  const lw_dim_labels *dl =
      lw_inst_attr(conv, LW_ATTR_DIM_LABELS)->u.dim_labels;
  const lw_shape *ker = lw_value_shape(lw_value_operand(conv, 1));
  if (dl->output_feature != conv->shape->rank - 1) return false;
  if (lw_prim_is_complex(conv->shape->type) || conv->shape->elements == 0)
    return false;
  int64_t groups = lw_inst_i64(conv, LW_ATTR_FEATURE_GROUP_COUNT, 1) *
                   lw_inst_i64(conv, LW_ATTR_BATCH_GROUP_COUNT, 1);
  if (ker->dims[dl->kernel_output_feature] / groups < 2) return false;
  if (conv_bytes(conv) > LW_CONV_MOST_WORK) return false;
  return dl->kernel_output_feature != ker->rank - 1 ||
         ker->type != conv_accumulator(conv);
}

int64_t lw_conv_work_bytes(const lw_inst *conv) {
  return lw_conv_packs(conv) ? conv_bytes(conv) : 0;
}
