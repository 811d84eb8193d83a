/* convolution (docs/numerics.md 7): the standard rule over the contracting
 * index (kernel spatial dims in the order of the labels, input feature of the
 * group), a chain for each output; terms in padding or in holes of the lhs
 * dilation are skipped, blocks are counted all the same.
 *
 * Operands are brought to [batch][spatial][feature], [spatial][input
 * feature][output feature]; a step runs over a group's output features.
 */
#include <stdlib.h>

#include "interp/chain.h"

typedef struct {
  lw_eval *e;
  lw_acc acc;
  const lw_window *w;
  int32_t n_spatial;
  int64_t in_dims[LW_MAX_RANK], k_dims[LW_MAX_RANK], out_dims[LW_MAX_RANK];
  int64_t batch, in_features; /* of the whole input */
  int64_t group_in, group_out, feature_groups, batch_groups;
  int64_t out_batch, out_features, out_spatial, k_spatial, in_spatial;
} conv;

static lw_status bad(const char *what) {
  return lw_error(LW_INVALID_ARGUMENT, "%s", what);
}

static void perm_of(int32_t n, const int64_t *spatial, int64_t first,
                    int64_t last, bool kernel, int64_t *perm) {
  int32_t k = 0;
  if (!kernel) perm[k++] = first;
  for (int32_t d = 0; d < n; d++) perm[k++] = spatial[d];
  if (kernel) perm[k++] = first;
  perm[k] = last;
}

static bool is_perm(const int64_t *perm, int32_t n) {
  uint64_t seen = 0;
  for (int32_t k = 0; k < n; k++) {
    if (perm[k] < 0 || perm[k] >= n || (seen >> perm[k] & 1)) return false;
    seen |= 1ull << perm[k];
  }
  return true;
}

static int64_t dilated(int64_t n, int64_t by) {
  return n > 0 ? (n - 1) * by + 1 : 0;
}

static lw_status conv_sizes(conv *c, const lw_shape *in, const lw_shape *ker,
                            const lw_dim_labels *l) {
  c->batch = in->dims[l->input_batch];
  c->in_features = in->dims[l->input_feature];
  c->group_in = ker->dims[l->kernel_input_feature];
  c->out_features = ker->dims[l->kernel_output_feature];
  c->in_spatial = c->k_spatial = c->out_spatial = 1;
  for (int32_t d = 0; d < c->n_spatial; d++) {
    const lw_window_dim *w = &c->w->dims[d];
    c->in_dims[d] = in->dims[l->input_spatial[d]];
    c->k_dims[d] = ker->dims[l->kernel_spatial[d]];
    if (w->size != c->k_dims[d] || w->stride < 1 || w->lhs_dilation < 1 ||
        w->rhs_dilation < 1)
      return bad("the window does not fit the kernel");
    int64_t n = dilated(c->in_dims[d], w->lhs_dilation) + w->pad_lo +
                w->pad_hi - dilated(w->size, w->rhs_dilation);
    c->out_dims[d] = n < 0 ? 0 : n / w->stride + 1;
    c->in_spatial *= c->in_dims[d];
    c->k_spatial *= c->k_dims[d];
    c->out_spatial *= c->out_dims[d];
  }
  int64_t fg = c->feature_groups, bg = c->batch_groups;
  if (fg < 1 || bg < 1 || c->group_in * fg != c->in_features ||
      c->out_features % (fg * bg) || c->batch % bg)
    return bad("the group counts do not fit the operands");
  c->group_out = c->out_features / (fg * bg);
  c->out_batch = c->batch / bg;
  return NULL;
}

/* The linear input position under output position o and kernel index k, or -1
 * in padding and holes. */
static int64_t input_at(const conv *c, const int64_t *o, const int64_t *k) {
  int64_t at = 0;
  for (int32_t d = 0; d < c->n_spatial; d++) {
    const lw_window_dim *w = &c->w->dims[d];
    int64_t pos = w->reversed ? w->size - 1 - k[d] : k[d];
    int64_t p = o[d] * w->stride + pos * w->rhs_dilation - w->pad_lo;
    if (p < 0 || p % w->lhs_dilation) return -1;
    p /= w->lhs_dilation;
    if (p >= c->in_dims[d]) return -1;
    at = at * c->in_dims[d] + p;
  }
  return at;
}

/* One output position of one group: group_out sums. x is the batch element's
 * input, from the group's first feature on; ker from the group's first output
 * feature on. */
static void conv_point(const conv *c, const int64_t *o, const char *x,
                       const char *ker, char *sum, char *s) {
  size_t size = lw_acc_size(c->acc);
  int64_t k[LW_MAX_RANK] = {0}, term = 0, total = c->k_spatial * c->group_in;
  memset(s, 0, (size_t)c->group_out * size);
  memset(sum, 0, (size_t)c->group_out * size);
  if (!total) return;
  do {
    int64_t at = input_at(c, o, k);
    for (int64_t f = 0; f < c->group_in; f++, term++) {
      if (at >= 0)
        lw_chain_step(c->acc, c->group_out,
                      x + (size_t)(at * c->in_features + f) * size,
                      ker + (size_t)(term * c->out_features) * size, s);
      if ((term + 1) % LW_FOLD_DOT_BLOCK == 0 || term + 1 == total)
        lw_chain_end_block(c->acc, c->group_out, term < LW_FOLD_DOT_BLOCK, s,
                           sum);
    }
  } while (lw_next_index(c->n_spatial, c->k_dims, k));
}

/* out is [out_batch][out spatial][out features]. */
static void conv_all(const conv *c, const char *x, const char *ker, char *out,
                     char *s) {
  size_t size = lw_acc_size(c->acc);
  if (!c->out_batch || !c->out_spatial || !c->group_out) return;
  for (int64_t b = 0; b < c->out_batch; b++) {
    int64_t o[LW_MAX_RANK] = {0}, at = 0;
    do {
      char *row =
          out + (size_t)((b * c->out_spatial + at++) * c->out_features) * size;
      for (int64_t g = 0; g < c->feature_groups * c->batch_groups; g++) {
        int64_t bg = c->batch_groups > 1 ? g : 0;
        int64_t fg = c->batch_groups > 1 ? 0 : g;
        int64_t in_b = bg * c->out_batch + b;
        conv_point(c, o,
                   x + (size_t)(in_b * c->in_spatial * c->in_features +
                                fg * c->group_in) *
                           size,
                   ker + (size_t)(g * c->group_out) * size,
                   row + (size_t)(g * c->group_out) * size, s);
      }
    } while (lw_next_index(c->n_spatial, c->out_dims, o));
  }
}

static lw_status load(lw_eval *e, const lw_val *v, const int64_t *perm,
                      lw_acc acc, int part, char **out) {
  lw_val *moved = NULL;
  LW_TRY(lw_val_new(e, v->lit.shape, &moved));
  lw_permute(v, perm, moved->lit.data);
  *out = malloc((size_t)lw_elems(v) * lw_acc_size(acc) + 8);
  lw_status s = *out ? lw_acc_load(e, acc, moved, part, *out)
                     : lw_error(LW_RESOURCE_EXHAUSTED,
                                "no memory for a convolution's operand");
  lw_val_release(e, moved);
  return s;
}

typedef struct {
  char *x[2], *ker[2], *sum[4], *s;
} buffers;

static lw_status run(const conv *c, lw_val **ops, const int64_t *xp,
                     const int64_t *kp, buffers *b, lw_val *canonical) {
  bool complex = lw_prim_is_complex(canonical->lit.shape->type);
  size_t size = lw_acc_size(c->acc);
  int64_t n = lw_elems(canonical);
  for (int k = 0; k < (complex ? 2 : 1); k++) {
    LW_TRY(load(c->e, ops[0], xp, c->acc, k, &b->x[k]));
    LW_TRY(load(c->e, ops[1], kp, c->acc, k, &b->ker[k]));
  }
  b->s = malloc((size_t)c->group_out * size + 8);
  lw_flush_state fl = lw_flush_begin(c->e);
  lw_status st = NULL;
  for (int k = 0; k < (complex ? 4 : 1); k++) { /* rr, ri, ii, ir */
    b->sum[k] = malloc((size_t)n * size + 8);
    if (!b->sum[k] || !b->s) {
      st = lw_error(LW_RESOURCE_EXHAUSTED, "no memory for a convolution");
      break;
    }
    conv_all(c, b->x[k >> 1], b->ker[k >> 1 ? !(k & 1) : k & 1], b->sum[k],
             b->s);
  }
  if (complex && !st) {
    lw_acc_sub(c->acc, n, b->sum[0], b->sum[2]);
    lw_acc_add(c->acc, n, b->sum[1], b->sum[3]);
  }
  if (!st)
    st = lw_acc_store(c->e, c->acc, b->sum[0], complex ? b->sum[1] : NULL,
                      canonical);
  lw_flush_end(fl);
  return st;
}

/* The result's dims in canonical order, and the way back. */
static lw_status make_result(conv *c, const lw_inst *i, const int64_t *op,
                             lw_val **canonical, lw_val **out, int64_t *back) {
  int64_t canon[LW_MAX_RANK], dims[LW_MAX_RANK];
  int32_t rank = c->n_spatial + 2;
  canon[0] = c->out_batch;
  for (int32_t d = 0; d < c->n_spatial; d++) canon[d + 1] = c->out_dims[d];
  canon[rank - 1] = c->out_features;
  for (int32_t d = 0; d < rank; d++) {
    back[op[d]] = d;
    dims[op[d]] = canon[d];
  }
  const lw_shape *s = lw_shape_array(c->e->m->ctx, i->shape->type, rank, canon);
  LW_TRY(lw_val_new(c->e, s, canonical));
  return lw_val_new(c->e, lw_result_shape(c->e, i->shape, dims), out);
}

lw_status lw_eval_convolution(lw_eval *e, const lw_inst *i, lw_val **ops,
                              lw_val **out) {
  const lw_attr *a = lw_inst_attr(i, LW_ATTR_DIM_LABELS);
  const lw_dim_labels *l = a ? a->u.dim_labels : NULL;
  static const lw_window none = {0};
  conv c = {.e = e, .w = lw_inst_window(i)};
  const lw_shape *in = ops[0]->lit.shape, *ker = ops[1]->lit.shape;
  if (!c.w) c.w = &none;
  if (!l || c.w->rank != l->n_spatial || in->rank != l->n_spatial + 2 ||
      ker->rank != in->rank || i->shape->rank != in->rank)
    return bad("the dimension labels do not fit the operands");
  c.n_spatial = l->n_spatial;
  c.feature_groups = lw_inst_i64(i, LW_ATTR_FEATURE_GROUP_COUNT, 1);
  c.batch_groups = lw_inst_i64(i, LW_ATTR_BATCH_GROUP_COUNT, 1);
  int64_t xp[LW_MAX_RANK], kp[LW_MAX_RANK], op[LW_MAX_RANK], back[LW_MAX_RANK];
  perm_of(l->n_spatial, l->input_spatial, l->input_batch, l->input_feature,
          false, xp);
  perm_of(l->n_spatial, l->kernel_spatial, l->kernel_input_feature,
          l->kernel_output_feature, true, kp);
  perm_of(l->n_spatial, l->output_spatial, l->output_batch, l->output_feature,
          false, op);
  if (!is_perm(xp, in->rank) || !is_perm(kp, in->rank) ||
      !is_perm(op, in->rank))
    return bad("the dimension labels name a dimension twice");
  LW_TRY(conv_sizes(&c, in, ker, l));
  c.acc = lw_acc_of(lw_dot_accumulator(in->type, ker->type, i->shape->type));
  LW_TRY(lw_acc_check(c.acc, ops[0], ops[1], i->shape->type));
  lw_val *canonical = NULL;
  buffers b = {0};
  lw_status s = make_result(&c, i, op, &canonical, out, back);
  if (!s) s = run(&c, ops, xp, kp, &b, canonical);
  if (!s) lw_permute(canonical, back, (*out)->lit.data);
  lw_val_release(e, canonical);
  for (int k = 0; k < 2; k++) {
    free(b.x[k]);
    free(b.ker[k]);
  }
  for (int k = 0; k < 4; k++) free(b.sum[k]);
  free(b.s);
  if (s) {
    lw_val_release(e, *out);
    *out = NULL;
  }
  return s;
}
