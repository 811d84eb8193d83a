/* How a dot is cut: its operands as strided index spaces, the road its code
 * takes, tile sizes and the scratch they need. The bits do not depend on any of
 * it (docs/numerics.md 7). */
#ifndef LW_KERNEL_DOT_PLAN_H
#define LW_KERNEL_DOT_PLAN_H

#include "hlo/fold.h"

/* A linear index over several dims of a row-major array, in list order, the
 * first slowest. Dims that are contiguous with their successor are merged; n is
 * 0 or more. */
typedef struct {
  int32_t n;
  int64_t extent[LW_MAX_RANK], stride[LW_MAX_RANK]; /* strides in elements */
  int64_t total;                                    /* product of extents */
} lw_axis;

void lw_axis_add(lw_axis *a, int64_t extent, int64_t stride);
/* Merged into one dim (or none): then the stride is *stride. */
bool lw_axis_is_linear(const lw_axis *a, int64_t *stride);

typedef enum {
  LW_DOT_CHAIN,    /* standard rule, small: lanes along n, no packing */
  LW_DOT_PACKED,   /* standard rule: packed, register-tiled blocks */
  LW_DOT_SKINNY_K, /* skinny rule, the 16 lanes are vector lanes along k */
  LW_DOT_SKINNY_M, /* skinny rule, vector lanes along m, 16 accumulators */
  LW_DOT_SKINNY_N  /* skinny rule, vector lanes along n, 16 accumulators */
} lw_dot_road;

enum {
  LW_DOT_ROWS = 96,        /* rows of a packed block: a multiple of 8 and 6 */
  LW_DOT_COLS_BYTES = 768, /* columns of a packed block, in bytes of the
                              accumulator: a multiple of 3 and 2 vectors */
  LW_DOT_DIRECT_ROWS = 64, /* rows of a batch up to which the rhs stays where
                              it is */
  LW_DOT_PACK_WORK =
      1 << 13 /* multiply-adds of a batch from which packing pays */
};

typedef struct {
  lw_dot_fold_t fold;
  lw_dot_road road;
  lw_axis lhs_batch, lhs_m, lhs_k, rhs_batch, rhs_n, rhs_k;
  bool complex;
  int64_t cols;       /* of a packed block */
  int64_t work_bytes; /* thread scratch of the stage's own, 0 when unpacked */
} lw_dot_plan;

lw_dot_plan lw_dot_plan_of(const lw_inst *dot);

/* Convolutions with lanes along output features read the kernel packed when its
 * output features are not consecutive or not of the accumulator's type: for
 * LW_CONV_LANE_BYTES of features, all of the contracting index. */
enum { LW_CONV_LANE_BYTES = 256, LW_CONV_MOST_WORK = 64 << 20 };
bool lw_conv_packs(const lw_inst *conv);
/* The output features are not the result's last dim, and yet the lanes run
 * along them: points are the dims up to and with them, in tiles of
 * LW_CONV_FEATURES. Otherwise points are all dims but the last. */
enum { LW_CONV_FEATURES = 16, LW_CONV_LEAST_K = 64, LW_CONV_NARROW = 8 };
bool lw_conv_feature_points(const lw_inst *conv);
/* Thread scratch of the stage's own, 0 when it does not pack. */
int64_t lw_conv_work_bytes(const lw_inst *conv);

#endif
