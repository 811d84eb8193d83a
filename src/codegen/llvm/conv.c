/* Convolutions (docs/numerics.md 7): dots whose contracting index runs over the
 * kernel's spatial dims and the input features of the group, in blocks of 256.
 * Positions that fall into padding or into holes of the lhs dilation are
 * skipped in the chain; block boundaries count them all the same.
 *
 * Lanes run along the last dim of the result: output features (the kernel is
 * then read in consecutive elements and the input as one broadcast element;
 * bounds are uniform) or a spatial dim (the kernel is broadcast; bounds are per
 * lane). Up to four vectors of features
 * share one broadcast.
 */
#include "codegen/llvm/dot.h"

enum { BLOCK = LW_FOLD_DOT_BLOCK, MAX_UNROLL = 4 };

typedef struct {
  lw_dot d;
  const lw_inst *inst;
  const lw_dim_labels *dl;
  const lw_window *w;
  const lw_shape *in, *ker, *out;
  int64_t in_stride[LW_MAX_RANK], ker_stride[LW_MAX_RANK];
  int64_t out_stride[LW_MAX_RANK];
  int64_t features, group_features; /* output features; those of one group */
  int64_t in_features;              /* of one group: the kernel's */
  int64_t batch_groups, batch;      /* output batch */
  int64_t spatial_size, k;          /* kernel positions; contracting extent */
  int32_t lane_dim;                 /* spatial dim of the lanes, -1: features */
  int width, unroll;
  LLVMValueRef b, pos[LW_MAX_RANK], feature; /* of the chunk */
  LLVMValueRef lane_mask;
  lw_acc_slot total[MAX_UNROLL], part[MAX_UNROLL];
  bool by_points;      /* lw_conv_feature_points */
  bool depthwise;      /* a lane's features are its own input feature */
  LLVMValueRef packed; /* the kernel of the chunk's features, or NULL */
} conv;

static LLVMValueRef add(conv *c, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildAdd(c->d.f->b, a, b, "");
}
static LLVMValueRef sub(conv *c, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildSub(c->d.f->b, a, b, "");
}
static LLVMValueRef mul(conv *c, LLVMValueRef a, int64_t k) {
  return LLVMBuildMul(c->d.f->b, a, lw_i64(c->d.f, k), "");
}
static LLVMValueRef cmp(conv *c, LLVMIntPredicate p, LLVMValueRef a,
                        LLVMValueRef b) {
  return LLVMBuildICmp(c->d.f->b, p, a, b, "");
}

/* ---- loads, converted to the accumulator's type ---- */

static lw_operand operand(conv *c, int s, LLVMValueRef at, int width,
                          int64_t stride, LLVMValueRef mask) {
  lw_fn *f = c->d.f;
  lw_prim t = c->d.type[s];
  int old = lw_width(f, width);
  lw_cgval v;
  if (width == 1 || stride == 1) {
    v = lw_load(f, t, lw_at(f, c->d.base[s], at, lw_prim_bytes(t)), width,
                mask);
  } else {
    LLVMValueRef lanes =
        LLVMBuildMul(f->b, lw_lanes(f, f->em->i64, width),
                     lw_splat(f, lw_i64(f, stride), width), "");
    LLVMValueRef offs = LLVMBuildAdd(f->b, lw_splat(f, at, width), lanes, "");
    v = lw_load_gather(f, t, c->d.base[s], offs, width, mask);
  }
  lw_operand o = lw_dot_operand(&c->d, t, v, width);
  lw_width(f, old);
  return o;
}

static lw_operand splat(conv *c, lw_operand o) {
  if (c->width == 1) return o;
  o.re = lw_splat(c->d.f, o.re, c->width);
  if (o.im) o.im = lw_splat(c->d.f, o.im, c->width);
  return o;
}

/* ---- where the window meets the input ----
 * *inside: uniform condition, or NULL; *mask: per lane, or NULL. The returned
 * offset is that of lane 0; *stride the lanes' distance. */

static LLVMValueRef input_offset(conv *c, LLVMValueRef *win, LLVMValueRef b,
                                 LLVMValueRef *inside, LLVMValueRef *mask,
                                 int64_t *stride) {
  lw_fn *f = c->d.f;
  LLVMValueRef at = mul(c, b, c->in_stride[c->dl->input_batch]);
  *inside = LLVMConstInt(f->em->i1, 1, 0);
  *mask = c->lane_mask;
  *stride = 0;
  for (int32_t i = 0; i < c->dl->n_spatial; i++) {
    const lw_window_dim *w = &c->w->dims[i];
    int64_t dim = c->dl->input_spatial[i], size = c->in->dims[dim];
    LLVMValueRef tap =
        w->reversed ? sub(c, lw_i64(f, w->size - 1), win[i]) : win[i];
    LLVMValueRef p =
        add(c, mul(c, c->pos[i], w->stride), mul(c, tap, w->rhs_dilation));
    p = sub(c, p, lw_i64(f, w->pad_lo));
    if (i == c->lane_dim) {
      int64_t step = c->in_stride[dim] * w->stride;
      LLVMValueRef v = lw_splat(f, p, c->width);
      LLVMValueRef lanes =
          LLVMBuildMul(f->b, lw_lanes(f, f->em->i64, c->width),
                       lw_splat(f, lw_i64(f, w->stride), c->width), "");
      v = LLVMBuildAdd(f->b, v, lanes, "");
      LLVMValueRef ok = LLVMBuildAnd(
          f->b,
          LLVMBuildICmp(f->b, LLVMIntSGE, v, LLVMConstNull(LLVMTypeOf(v)), ""),
          LLVMBuildICmp(f->b, LLVMIntSLT, v,
                        lw_splat(f, lw_i64(f, size), c->width), ""),
          "");
      *mask = *mask ? LLVMBuildAnd(f->b, *mask, ok, "") : ok;
      *stride = step;
      at = add(c, at, mul(c, p, c->in_stride[dim]));
      continue;
    }
    LLVMValueRef end = lw_i64(f, (size - 1) * w->lhs_dilation + 1);
    LLVMValueRef ok = LLVMBuildAnd(f->b, cmp(c, LLVMIntSGE, p, lw_i64(f, 0)),
                                   cmp(c, LLVMIntSLT, p, end), "");
    if (size == 0) ok = LLVMConstNull(f->em->i1);
    if (w->lhs_dilation > 1) {
      LLVMValueRef dil = lw_i64(f, w->lhs_dilation);
      LLVMValueRef rem = LLVMBuildSRem(f->b, p, dil, "");
      ok = LLVMBuildAnd(f->b, ok, cmp(c, LLVMIntEQ, rem, lw_i64(f, 0)), "");
      p = LLVMBuildSDiv(f->b, p, dil, "");
    }
    *inside = LLVMBuildAnd(f->b, *inside, ok, "");
    at = add(c, at, mul(c, p, c->in_stride[dim]));
  }
  return at;
}

/* win is the kernel's own index: a reversed dim is reversed where the input is
 * read, so that the chain's order is the kernel's. */
static LLVMValueRef kernel_offset(conv *c, LLVMValueRef *win) {
  LLVMValueRef at =
      mul(c, c->feature, c->ker_stride[c->dl->kernel_output_feature]);
  for (int32_t i = 0; i < c->dl->n_spatial; i++) {
    int64_t dim = c->dl->kernel_spatial[i];
    at = add(c, at, mul(c, win[i], c->ker_stride[dim]));
  }
  return at;
}

/* ---- the packed kernel: at [(position * input features + feature) * lanes],
 * lanes = unroll * width, in the accumulator's type ---- */

static LLVMValueRef packed_at(conv *c, LLVMValueRef at) {
  return lw_at(c->d.f, c->packed, at, lw_prim_bytes(c->d.acc));
}

static lw_operand packed_kernel(conv *c, LLVMValueRef at) {
  LLVMValueRef v = LLVMBuildLoad2(c->d.f->b, lw_dot_acc_type(&c->d, c->width),
                                  packed_at(c, at), "");
  LLVMSetAlignment(v, (unsigned)lw_prim_bytes(c->d.acc));
  return (lw_operand){v, NULL};
}

/* Packs what the features from c->feature on read. */
static void pack(conv *c) {
  lw_fn *f = c->d.f;
  LLVMValueRef win[LW_MAX_RANK], lin = lw_i64(f, 0);
  lw_loop loops[LW_MAX_RANK];
  int64_t step = c->ker_stride[c->dl->kernel_output_feature];
  for (int32_t i = 0; i < c->dl->n_spatial; i++) {
    loops[i] =
        lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, c->w->dims[i].size), 1, "pw");
    win[i] = loops[i].iv;
    lin = add(c, mul(c, lin, c->w->dims[i].size), win[i]);
  }
  lw_loop l = lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, c->in_features), 1, "p");
  LLVMValueRef from =
      add(c, kernel_offset(c, win),
          mul(c, l.iv, c->ker_stride[c->dl->kernel_input_feature]));
  LLVMValueRef to = mul(c, add(c, mul(c, lin, c->in_features), l.iv),
                        (int64_t)c->unroll * c->width);
  for (int u = 0; u < c->unroll; u++) {
    int64_t k = (int64_t)u * c->width;
    lw_operand b = operand(c, 1, add(c, from, lw_i64(f, k * step)), c->width,
                           step, c->lane_mask);
    LLVMSetAlignment(
        LLVMBuildStore(f->b, b.re, packed_at(c, add(c, to, lw_i64(f, k)))),
        (unsigned)lw_prim_bytes(c->d.acc));
  }
  lw_loop_end(f, &l);
  for (int32_t i = c->dl->n_spatial - 1; i >= 0; i--) lw_loop_end(f, &loops[i]);
}

/* ---- the chain ---- */

/* The chain over input features [lo, hi) at one kernel position. */
static void features_loop(conv *c, LLVMValueRef in0, LLVMValueRef ker0,
                          LLVMValueRef lo, LLVMValueRef hi, LLVMValueRef mask,
                          int64_t in_lane_stride) {
  lw_fn *f = c->d.f;
  lw_loop l = lw_loop_begin(f, lo, hi, 1, "cf");
  LLVMValueRef in =
      add(c, in0, mul(c, l.iv, c->in_stride[c->dl->input_feature]));
  LLVMValueRef ker =
      add(c, ker0, mul(c, l.iv, c->ker_stride[c->dl->kernel_input_feature]));
  int64_t step = c->ker_stride[c->dl->kernel_output_feature];
  if (c->packed)
    ker = mul(c, add(c, ker0, l.iv), (int64_t)c->unroll * c->width);
  lw_operand a, b;
  if (c->lane_dim >= 0) {
    a = operand(c, 0, in, c->width, in_lane_stride, mask);
    b = splat(c, operand(c, 1, ker, 1, 0, NULL));
  } else if (!c->depthwise) {
    a = splat(c, operand(c, 0, in, 1, 0, NULL));
  }
  for (int u = 0; u < c->unroll; u++) {
    LLVMValueRef first = lw_i64(f, (int64_t)u * c->width);
    if (c->depthwise) {
      int64_t s = c->in_stride[c->dl->input_feature];
      a = operand(c, 0, add(c, in, mul(c, first, s)), c->width, s, mask);
    }
    if (c->packed)
      b = packed_kernel(c, add(c, ker, first));
    else if (c->lane_dim < 0)
      b = operand(c, 1, add(c, ker, lw_i64(f, (int64_t)u * c->width * step)),
                  c->width, step, mask);
    lw_acc old = lw_acc_get(&c->d, &c->part[u]),
           s = lw_acc_madd(&c->d, a, b, old);
    if (mask)
      for (int i = 0; i < c->d.n_chains; i++)
        s.v[i] = LLVMBuildSelect(f->b, mask, s.v[i], old.v[i], "");
    lw_acc_set(&c->d, &c->part[u], s);
  }
  lw_loop_end(f, &l);
}

/* A block begins: the sum of the one before joins the total. */
static void flush(conv *c, LLVMValueRef block) {
  LLVMValueRef first = cmp(c, LLVMIntEQ, block, lw_i64(c->d.f, 1));
  for (int u = 0; u < c->unroll; u++) {
    lw_acc_add_block(&c->d, &c->total[u], lw_acc_get(&c->d, &c->part[u]),
                     first);
    lw_acc_clear(&c->d, &c->part[u]);
  }
}

/* One kernel position; lin is its number. Blocks are counted over all of k. */
static void position(conv *c, LLVMValueRef *win, LLVMValueRef lin,
                     LLVMValueRef b, LLVMValueRef in_feature0) {
  lw_fn *f = c->d.f;
  LLVMValueRef inside, mask, k0 = mul(c, lin, c->in_features);
  int64_t stride;
  LLVMValueRef in = input_offset(c, win, b, &inside, &mask, &stride);
  in = add(c, in, mul(c, in_feature0, c->in_stride[c->dl->input_feature]));
  LLVMValueRef ker = c->packed ? k0 : kernel_offset(c, win);
  LLVMValueRef block_size = lw_i64(f, BLOCK);
  LLVMValueRef end = add(c, k0, lw_i64(f, c->in_features - 1));
  LLVMValueRef b0 = LLVMBuildUDiv(f->b, k0, block_size, "");
  LLVMValueRef b1 =
      add(c, LLVMBuildUDiv(f->b, end, block_size, ""), lw_i64(f, 1));
  lw_loop l = lw_loop_begin(f, b0, b1, 1, "cb");
  LLVMValueRef from = sub(c, mul(c, l.iv, BLOCK), k0);
  if (c->k > BLOCK) {
    LLVMValueRef starts =
        LLVMBuildAnd(f->b, cmp(c, LLVMIntSGE, from, lw_i64(f, 0)),
                     cmp(c, LLVMIntSGT, l.iv, lw_i64(f, 0)), "");
    lw_if i = lw_if_begin(f, starts);
    flush(c, l.iv);
    lw_if_end(f, &i);
  }
  lw_if live = lw_if_begin(f, inside);
  LLVMValueRef lo = lw_min_max(f, "llvm.smax", from, lw_i64(f, 0));
  LLVMValueRef hi = lw_min_max(f, "llvm.smin", add(c, from, block_size),
                               lw_i64(f, c->in_features));
  features_loop(c, in, ker, lo, hi, mask, stride);
  lw_if_end(f, &live);
  lw_loop_end(f, &l);
}

/* All kernel positions, then the last block joins. */
static void contract(conv *c, LLVMValueRef b, LLVMValueRef in_feature0) {
  lw_fn *f = c->d.f;
  LLVMValueRef win[LW_MAX_RANK], lin = lw_i64(f, 0);
  lw_loop loops[LW_MAX_RANK];
  for (int u = 0; u < c->unroll; u++) {
    lw_acc_clear(&c->d, &c->total[u]);
    lw_acc_clear(&c->d, &c->part[u]);
  }
  if (c->k == 0) return;
  for (int32_t i = 0; i < c->dl->n_spatial; i++) {
    loops[i] =
        lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, c->w->dims[i].size), 1, "cw");
    win[i] = loops[i].iv;
    lin = add(c, mul(c, lin, c->w->dims[i].size), win[i]);
  }
  position(c, win, lin, b, in_feature0);
  for (int32_t i = c->dl->n_spatial - 1; i >= 0; i--) lw_loop_end(f, &loops[i]);
  LLVMValueRef only = c->k <= BLOCK ? LLVMConstInt(f->em->i1, 1, 0) : NULL;
  for (int u = 0; u < c->unroll; u++)
    lw_acc_add_block(&c->d, &c->total[u], lw_acc_get(&c->d, &c->part[u]), only);
}

/* ---- the result ---- */

static LLVMValueRef out_offset(conv *c) {
  LLVMValueRef at = mul(c, c->b, c->out_stride[c->dl->output_batch]);
  at = add(c, at, mul(c, c->feature, c->out_stride[c->dl->output_feature]));
  for (int32_t i = 0; i < c->dl->n_spatial; i++)
    at = add(c, at, mul(c, c->pos[i], c->out_stride[c->dl->output_spatial[i]]));
  return at;
}

/* The chunk whose batch, positions and first feature are set. */
static void chunk(conv *c) {
  lw_fn *f = c->d.f;
  LLVMValueRef b = c->b, group = lw_i64(f, 0);
  if (c->batch_groups > 1) {
    int64_t per = c->features / c->batch_groups;
    LLVMValueRef g = LLVMBuildUDiv(f->b, c->feature, lw_i64(f, per), "");
    b = add(c, mul(c, g, c->batch), b);
  } else if (c->group_features < c->features) {
    group = LLVMBuildUDiv(f->b, c->feature, lw_i64(f, c->group_features), "");
  }
  contract(c, b, mul(c, group, c->in_features));
  LLVMValueRef at = out_offset(c);
  int64_t step = c->by_points ? c->out_stride[c->dl->output_feature] : 1;
  for (int u = 0; u < c->unroll; u++) {
    LLVMValueRef first = add(c, at, lw_i64(f, (int64_t)u * c->width * step));
    lw_dot_store_strided(&c->d, lw_acc_get(&c->d, &c->total[u]), first, step,
                         c->width, c->lane_mask);
  }
}

/* [0, n) in chunks of width * unroll, then of width, then one masked. *at is
 * where the chunk's first index goes. */
static void chunks(conv *c, LLVMValueRef base, int64_t n, LLVMValueRef *at,
                   int max_unroll, void (*body)(conv *c)) {
  lw_fn *f = c->d.f;
  int64_t done = 0;
  for (int u = max_unroll; u >= 1; u = u > 1 ? 1 : 0) {
    int64_t step = (int64_t)c->width * u,
            whole = done + (n - done) / step * step;
    if (whole > done) {
      c->unroll = u;
      c->lane_mask = NULL;
      lw_loop l =
          lw_loop_begin(f, lw_i64(f, done), lw_i64(f, whole), step, "co");
      *at = add(c, base, l.iv);
      body(c);
      lw_loop_end(f, &l);
    }
    done = whole;
  }
  if (done == n) return;
  c->unroll = 1;
  c->lane_mask = lw_mask_first(f, n - done, c->width);
  *at = add(c, base, lw_i64(f, done));
  body(c);
}

/* The lanes run along the result's last dim, whose role this is. */
static void choose_lanes(conv *c) {
  int64_t last = c->out->rank - 1, n = c->out->dims[last];
  c->lane_dim = -1;
  c->width = c->d.width;
  if (c->by_points) {
    while (c->width > 1 && c->width / 2 >= c->features) c->width /= 2;
    return;
  }
  for (int32_t i = 0; i < c->dl->n_spatial; i++)
    if (c->dl->output_spatial[i] == last) c->lane_dim = i;
  if (c->lane_dim >= 0 && c->w->dims[c->lane_dim].lhs_dilation > 1) {
    c->lane_dim = -1;
    c->width = 1;
  } else if (c->lane_dim < 0 && c->dl->output_feature != last) {
    c->width = 1;
  } else if (c->lane_dim < 0) {
    n = c->batch_groups > 1 ? c->features / c->batch_groups : c->group_features;
    c->depthwise = n == 1 && c->in_features == 1 && c->batch_groups == 1 &&
                   c->features > 1;
    if (c->depthwise) n = c->features;
  }
  while (c->width > 1 && c->width / 2 >= n) c->width /= 2;
}

/* Where the position along result dim d is kept. */
static LLVMValueRef *coordinate(conv *c, int64_t d) {
  if (d == c->dl->output_batch) return &c->b;
  if (d == c->dl->output_feature) return &c->feature;
  for (int32_t i = 0; i < c->dl->n_spatial; i++)
    if (c->dl->output_spatial[i] == d) return &c->pos[i];
  LW_ASSERT(false); /* every dim has a role */
  return NULL;
}

static bool features_last(const conv *c) {
  return c->lane_dim < 0 && c->dl->output_feature == c->out->rank - 1;
}

/* One point: its leading dims are digits of p, the rest are loops, the last dim
 * is cut into chunks. */
static void point(conv *c, LLVMValueRef p) {
  lw_fn *f = c->d.f;
  int32_t tiled = f->phase->n_tile_dims, last = c->out->rank - 1;
  lw_loop loops[LW_MAX_RANK];
  for (int32_t d = tiled - 1; d >= 0; d--) {
    LLVMValueRef n = lw_i64(f, c->out->dims[d]);
    *coordinate(c, d) = LLVMBuildURem(f->b, p, n, "");
    p = LLVMBuildUDiv(f->b, p, n, "");
  }
  for (int32_t d = tiled; d < last; d++) {
    loops[d] =
        lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, c->out->dims[d]), 1, "pos");
    *coordinate(c, d) = loops[d].iv;
  }
  if (features_last(c))
    chunk(c);
  else
    chunks(c, lw_i64(f, 0), c->out->dims[last], coordinate(c, last), 1, chunk);
  for (int32_t d = last - 1; d >= tiled; d--) lw_loop_end(f, &loops[d]);
}

/* All points of the call for the features of one chunk: what they read of the
 * kernel stays in the cache. */
static void feature_points(conv *c) {
  lw_fn *f = c->d.f;
  if (c->packed) pack(c);
  lw_loop l = lw_loop_begin(f, f->p0, f->p1, 1, "point");
  point(c, l.iv);
  lw_loop_end(f, &l);
}

/* Features of one group at a time, so that a vector never spans two. */
static void by_features(conv *c) {
  lw_fn *f = c->d.f;
  int64_t per = c->depthwise ? c->features : c->group_features;
  if (c->batch_groups > 1) per = c->features / c->batch_groups;
  lw_loop g = lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, c->features), per, "cg");
  chunks(c, g.iv, per, &c->feature, MAX_UNROLL, feature_points);
  lw_loop_end(f, &g);
}

/* ---- points that are features ---- */

/* The chunk's features at all positions behind them. */
static void feature_chunk(conv *c, LLVMValueRef feature, int unroll) {
  lw_fn *f = c->d.f;
  int32_t from = (int32_t)c->dl->output_feature + 1;
  lw_loop loops[LW_MAX_RANK];
  c->feature = feature;
  c->unroll = unroll;
  pack(c);
  for (int32_t d = from; d < c->out->rank; d++) {
    loops[d] =
        lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, c->out->dims[d]), 1, "pos");
    *coordinate(c, d) = loops[d].iv;
  }
  chunk(c);
  for (int32_t d = c->out->rank - 1; d >= from; d--) lw_loop_end(f, &loops[d]);
}

/* Features [lo, hi): whole chunks, then vectors of which the last is masked. */
static void feature_range(conv *c, LLVMValueRef lo, LLVMValueRef hi) {
  lw_fn *f = c->d.f;
  int unroll = MAX_UNROLL;
  while (unroll > 1 && (int64_t)unroll * c->width > c->features) unroll /= 2;
  int64_t step = (int64_t)unroll * c->width;
  LLVMValueRef n = LLVMBuildUDiv(f->b, sub(c, hi, lo), lw_i64(f, step), "");
  LLVMValueRef whole = add(c, lo, mul(c, n, step));
  c->lane_mask = NULL;
  lw_loop l = lw_loop_begin(f, lo, whole, step, "fc");
  feature_chunk(c, l.iv, unroll);
  lw_loop_end(f, &l);
  l = lw_loop_begin(f, whole, hi, c->width, "fv");
  c->lane_mask = lw_mask_below(f, l.iv, hi, c->width);
  feature_chunk(c, l.iv, 1);
  lw_loop_end(f, &l);
}

/* Points count the dims up to and with the features. */
static void by_feature_points(conv *c) {
  lw_fn *f = c->d.f;
  int64_t outer = 1, n = f->phase->n_points > 0 ? f->phase->n_points : 1;
  for (int32_t d = 0; d < c->dl->output_feature; d++) outer *= c->out->dims[d];
  LLVMValueRef from = mul(c, f->p0, outer * c->features / n);
  LLVMValueRef to = mul(c, f->p1, outer * c->features / n);
  LLVMValueRef all = lw_i64(f, c->features), one = lw_i64(f, 1);
  LLVMValueRef end = add(c, LLVMBuildUDiv(f->b, sub(c, to, one), all, ""), one);
  lw_loop l = lw_loop_begin(f, LLVMBuildUDiv(f->b, from, all, ""), end, 1, "o");
  LLVMValueRef base = mul(c, l.iv, c->features), p = l.iv;
  for (int32_t d = (int32_t)c->dl->output_feature - 1; d >= 0; d--) {
    LLVMValueRef extent = lw_i64(f, c->out->dims[d]);
    *coordinate(c, d) = LLVMBuildURem(f->b, p, extent, "");
    p = LLVMBuildUDiv(f->b, p, extent, "");
  }
  LLVMValueRef lo =
      lw_min_max(f, "llvm.smax", sub(c, from, base), lw_i64(f, 0));
  feature_range(c, lo, lw_min_max(f, "llvm.smin", sub(c, to, base), all));
  lw_loop_end(f, &l);
}

static void setup(conv *c, const lw_inst *i) {
  c->inst = i;
  c->dl = lw_inst_attr(i, LW_ATTR_DIM_LABELS)->u.dim_labels;
  c->w = lw_inst_window(i);
  c->in = lw_value_shape(lw_value_operand(i, 0));
  c->ker = lw_value_shape(lw_value_operand(i, 1));
  c->out = i->shape;
  lw_shape_strides(c->in, c->in_stride);
  lw_shape_strides(c->ker, c->ker_stride);
  lw_shape_strides(c->out, c->out_stride);
  c->features = c->out->dims[c->dl->output_feature];
  c->group_features =
      c->features / lw_inst_i64(i, LW_ATTR_FEATURE_GROUP_COUNT, 1);
  c->batch_groups = lw_inst_i64(i, LW_ATTR_BATCH_GROUP_COUNT, 1);
  c->batch = c->out->dims[c->dl->output_batch];
  c->in_features = c->ker->dims[c->dl->kernel_input_feature];
  c->spatial_size = 1;
  for (int32_t d = 0; d < c->dl->n_spatial; d++)
    c->spatial_size *= c->w->dims[d].size;
  c->k = c->spatial_size * c->in_features;
}

lw_status lw_emit_conv_stage(lw_fn *f, const lw_stage *s) {
  static const lw_window no_window = {0, NULL};
  conv c = {.d = {.f = f}};
  setup(&c, s->inst);
  if (!c.w) c.w = &no_window;
  c.d.type[0] = c.in->type;
  c.d.type[1] = c.ker->type;
  c.d.result = s->inst->shape->type;
  c.d.acc = lw_dot_accumulator(c.in->type, c.ker->type, c.d.result);
  c.d.n_chains = lw_prim_is_complex(c.d.result) ? 4 : 1;
  c.d.width = f->em->vec_bytes / lw_prim_bytes(c.d.acc);
  for (int i = 0; i < 2; i++)
    c.d.base[i] = lw_array_base(f, lw_value_operand(s->inst, i));
  c.d.dest = lw_dest_base(f, s, 0);
  c.by_points = lw_conv_feature_points(s->inst);
  choose_lanes(&c);
  for (int u = 0; u < MAX_UNROLL; u++) {
    c.total[u] = lw_acc_slot_new(&c.d, c.width);
    c.part[u] = lw_acc_slot_new(&c.d, c.width);
  }
  if (c.by_points) {
    c.packed = lw_at(f, f->scratch, lw_i64(f, s->work_offset), 1);
    by_feature_points(&c);
    return f->error;
  }
  if (features_last(&c)) {
    if (c.width > 1 && lw_conv_packs(s->inst))
      c.packed = lw_at(f, f->scratch, lw_i64(f, s->work_offset), 1);
    by_features(&c);
    return f->error;
  }
  lw_loop l = lw_loop_begin(f, f->p0, f->p1, 1, "point");
  point(&c, l.iv);
  lw_loop_end(f, &l);
  return f->error;
}
