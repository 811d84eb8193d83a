/* Inference for what folds and what slides windows: reduce, reduce-window,
 * select-and-scatter, convolution, with the reducers they apply. */
#include <stdlib.h>

#include "hlo/infer_impl.h"

/* ---- applied computations ---- */

/* The k-th of n results of a computation root: the root itself when n is 1. */
const lw_shape *infer_result_of(const lw_shape *root, int32_t n, int32_t k) {
  if (n == 1 && !lw_shape_is_tuple(root)) return root;
  return lw_shape_is_tuple(root) && k < root->n_elems ? root->elems[k] : NULL;
}

lw_status infer_want_scalar(const infer *f, const char *what, int32_t k,
                            const lw_shape *s, lw_prim like, bool exact) {
  bool ok = lw_shape_is_array(s) && s->rank == 0 &&
            (exact ? s->type == like : lw_prim_same_kind(s->type, like));
  if (ok) return NULL;
  return LW_BAD("%s %d of to_apply must be a %s[] scalar; it is %s", what, k,
                lw_prim_name(like), infer_str(f, s));
}

/* A reducer of n values: 2n scalar parameters (accumulators first), n scalar
 * results of the accumulators' types. init: operand number of the first start
 * value; types[k] is what result k has. */
static lw_status check_reducer(const infer *f, const lw_comp *c, int32_t n,
                               int32_t init, lw_prim *types) {
  const lw_shape *root;
  LW_TRY(infer_root("to_apply", c, 2 * (int64_t)n, &root));
  if (lw_shape_is_tuple(root) ? root->n_elems != n : n != 1)
    return LW_BAD("to_apply=%s must return %d value%s; it returns %s", c->name,
                  n, n == 1 ? "" : "s", infer_str(f, root));
  for (int32_t k = 0; k < n; k++) {
    const lw_shape *r = infer_result_of(root, n, k), *v = infer_op(f, init + k);
    if (!lw_shape_is_array(r) || r->rank)
      return LW_BAD("to_apply=%s must return scalars; it returns %s", c->name,
                    infer_str(f, root));
    if (!lw_shape_is_array(v) || v->rank)
      return LW_BAD("start value %d must be a scalar; it is %s", k,
                    infer_str(f, v));
    types[k] = r->type;
    LW_TRY(infer_want_scalar(f, "parameter", k, infer_param(c, k), r->type,
                             false));
    LW_TRY(infer_want_scalar(f, "parameter", n + k, infer_param(c, n + k),
                             infer_op(f, k)->type, false));
    if (!lw_prim_same_kind(v->type, r->type))
      return LW_BAD("start value %d is %s, but to_apply=%s returns %s", k,
                    infer_str(f, v), c->name, infer_str(f, r));
  }
  return NULL;
}

/* n arrays then n start values; all arrays of equal dimensions. */
static lw_status fold_operands(const infer *f, int32_t *n) {
  int32_t total = f->inst->n_operands;
  if (total < 2 || total % 2)
    return LW_BAD("needs as many start values as arrays; got %d operands",
                  total);
  *n = total / 2;
  for (int32_t k = 0; k < *n; k++) {
    LW_TRY(infer_want_array(f, k));
    if (!lw_shape_same_dims(infer_op(f, 0), infer_op(f, k)))
      return LW_BAD("arrays must have equal dimensions; got %s and %s",
                    infer_str(f, infer_op(f, 0)), infer_str(f, infer_op(f, k)));
  }
  return NULL;
}

/* One shape for n == 1, else the tuple of n, which differ in type only. */
static lw_status fold_result(const infer *f, const dim_list *d, int32_t n,
                             const lw_prim *types, bool tuple,
                             const lw_shape **out) {
  if (n == 1 && !tuple) {
    *out = infer_make(f, types[0], d, NULL);
    return NULL;
  }
  const lw_shape **elems = malloc(lw_array_bytes((size_t)n, sizeof *elems));
  if (!elems) lw_oom((size_t)n * sizeof *elems);
  for (int32_t k = 0; k < n; k++) elems[k] = infer_make(f, types[k], d, NULL);
  *out = lw_shape_tuple(f->ctx, n, elems);
  free(elems);
  return NULL;
}

static bool returns_tuple(const lw_comp *c) {
  return c && c->root && c->root->shape && lw_shape_is_tuple(c->root->shape);
}

lw_status infer_reduce(const infer *f, const lw_shape **out) {
  int32_t n, n_dims;
  LW_TRY(fold_operands(f, &n));
  const lw_shape *s = infer_op(f, 0);
  const int64_t *dims = lw_inst_i64s(f->inst, LW_ATTR_DIMENSIONS, &n_dims);
  LW_TRY(infer_check_dims("dimensions", dims, n_dims, s->rank, false));
  const lw_comp *c = lw_inst_comp(f->inst, LW_ATTR_TO_APPLY);
  lw_prim *types = malloc(lw_array_bytes((size_t)n, sizeof *types));
  if (!types) lw_oom((size_t)n * sizeof *types);
  lw_status st = check_reducer(f, c, n, n, types);
  dim_list d = {.rank = 0};
  for (int32_t i = 0; i < s->rank; i++)
    if (!infer_contains(dims, n_dims, i))
      dim_push(&d, s->dims[i], infer_dyn(s, i));
  if (!st) st = fold_result(f, &d, n, types, returns_tuple(c), out);
  free(types);
  return st;
}

/* ---- windows ---- */

/* (n - 1) * step + 1, 0 for n == 0. */
static bool dilated(int64_t n, int64_t step, int64_t *out) {
  if (n <= 0) {
    *out = 0;
    return n == 0;
  }
  return !__builtin_mul_overflow(n - 1, step, out) &&
         !__builtin_add_overflow(*out, 1, out);
}

bool lw_window_output_size(const lw_window_dim *w, int64_t size, int64_t *out) {
  if (w->size < 1 || w->stride < 1 || w->lhs_dilation < 1 ||
      w->rhs_dilation < 1 || size < 0)
    return false;
  int64_t base, window;
  if (!dilated(size, w->lhs_dilation, &base) ||
      !dilated(w->size, w->rhs_dilation, &window) ||
      __builtin_add_overflow(base, w->pad_lo, &base) ||
      __builtin_add_overflow(base, w->pad_hi, &base))
    return false;
  *out = base <= 0 || window > base ? 0 : (base - window) / w->stride + 1;
  return true;
}

static lw_status window_dim(const lw_window_dim *w, int32_t i, int64_t size,
                            int64_t *out) {
  if (w->size < 1) return LW_BAD("window size of dimension %d must be > 0", i);
  if (w->stride < 1)
    return LW_BAD("window stride of dimension %d must be > 0", i);
  if (w->lhs_dilation < 1 || w->rhs_dilation < 1)
    return LW_BAD("window dilation of dimension %d must be > 0", i);
  if (size == LW_UNBOUNDED) {
    *out = size;
    return NULL;
  }
  if (!lw_window_output_size(w, size, out))
    return LW_BAD("window of dimension %d overflows", i);
  return NULL;
}

static const lw_window no_window;

static const lw_window *window_of(const infer *f) {
  const lw_window *w = lw_inst_window(f->inst);
  return w ? w : &no_window;
}

/* The window's output over all dimensions of s. */
static lw_status window_output(const infer *f, const lw_shape *s, dim_list *d) {
  const lw_window *w = window_of(f);
  if (w->rank != s->rank)
    return LW_BAD("the window has %d dimensions, the operand %s has %d",
                  w->rank, infer_str(f, s), s->rank);
  d->rank = s->rank;
  for (int32_t i = 0; i < s->rank; i++) {
    LW_TRY(window_dim(&w->dims[i], i, s->dims[i], &d->dims[i]));
    d->dynamic[i] = infer_dyn(s, i);
  }
  return NULL;
}

lw_status infer_reduce_window(const infer *f, const lw_shape **out) {
  int32_t n;
  LW_TRY(fold_operands(f, &n));
  dim_list d;
  LW_TRY(window_output(f, infer_op(f, 0), &d));
  const lw_comp *c = lw_inst_comp(f->inst, LW_ATTR_TO_APPLY);
  lw_prim *types = malloc(lw_array_bytes((size_t)n, sizeof *types));
  if (!types) lw_oom((size_t)n * sizeof *types);
  lw_status st = check_reducer(f, c, n, n, types);
  if (!st) st = fold_result(f, &d, n, types, returns_tuple(c), out);
  free(types);
  return st;
}

lw_status infer_select_and_scatter(const infer *f, const lw_shape **out) {
  for (int32_t k = 0; k < 3; k++) LW_TRY(infer_want_array(f, k));
  const lw_shape *s = infer_op(f, 0), *src = infer_op(f, 1), *r;
  const lw_shape *init = infer_op(f, 2);
  const lw_comp *sel = lw_inst_comp(f->inst, LW_ATTR_SELECT);
  const lw_comp *sca = lw_inst_comp(f->inst, LW_ATTR_SCATTER);
  LW_TRY(infer_root("select", sel, 2, &r));
  if (r->type != LW_PRED || r->rank)
    return LW_BAD("select=%s must return pred[]; it returns %s", sel->name,
                  infer_str(f, r));
  LW_TRY(infer_root("scatter", sca, 2, &r));
  if (!lw_shape_is_array(r) || r->rank)
    return LW_BAD("scatter=%s must return a scalar; it returns %s", sca->name,
                  infer_str(f, r));
  for (int32_t k = 0; k < 2; k++)
    LW_TRY(infer_want_scalar(f, "select parameter", k, infer_param(sel, k),
                             s->type, false));
  if (init->rank || !lw_prim_same_kind(init->type, s->type))
    return LW_BAD("the start value must be %s[]; it is %s",
                  lw_prim_name(s->type), infer_str(f, init));
  dim_list d;
  LW_TRY(window_output(f, s, &d));
  bool same = d.rank == src->rank;
  for (int32_t i = 0; same && i < d.rank; i++) same = d.dims[i] == src->dims[i];
  if (!same)
    return LW_BAD("the source must have the shape of the windows, %s; it is %s",
                  infer_str(f, infer_make(f, src->type, &d, NULL)),
                  infer_str(f, src));
  *out = s;
  return NULL;
}

/* ---- convolution ---- */

static bool conv_role_ok(int64_t v, int32_t rank, bool *seen) {
  if (v < 0 || v >= rank || seen[v]) return false;
  return seen[v] = true;
}

/* Each of the three dimension lists must be a permutation of 0..rank-1. */
static bool conv_labels_ok(const lw_dim_labels *l, int32_t rank) {
  const int64_t *spatial[3] = {l->input_spatial, l->kernel_spatial,
                               l->output_spatial};
  int64_t roles[3][2] = {{l->input_batch, l->input_feature},
                         {l->kernel_input_feature, l->kernel_output_feature},
                         {l->output_batch, l->output_feature}};
  if (l->n_spatial + 2 != rank) return false;
  for (int k = 0; k < 3; k++) {
    bool seen[LW_MAX_RANK] = {false};
    if (!conv_role_ok(roles[k][0], rank, seen) ||
        !conv_role_ok(roles[k][1], rank, seen))
      return false;
    for (int32_t i = 0; i < l->n_spatial; i++)
      if (!conv_role_ok(spatial[k][i], rank, seen)) return false;
  }
  return true;
}

typedef struct {
  const lw_shape *in, *kernel;
  const lw_dim_labels *l;
  int64_t features, batches; /* group counts */
} conv;

static lw_status conv_groups(const infer *f, const conv *c) {
  if (c->features < 1 || c->batches < 1)
    return LW_BAD("group counts must be positive");
  if (c->features > 1 && c->batches > 1)
    return LW_BAD(
        "feature_group_count and batch_group_count cannot both be "
        "greater than 1");
  int64_t in_f = c->in->dims[c->l->input_feature];
  int64_t in_b = c->in->dims[c->l->input_batch];
  int64_t k_in = c->kernel->dims[c->l->kernel_input_feature];
  int64_t k_out = c->kernel->dims[c->l->kernel_output_feature];
  int64_t groups = c->features > 1 ? c->features : c->batches;
  if (in_f % c->features || in_f / c->features != k_in)
    return LW_BAD(
        "input features %lld must be feature_group_count %lld times "
        "the kernel's input features %lld; got %s and %s",
        (long long)in_f, (long long)c->features, (long long)k_in,
        infer_str(f, c->in), infer_str(f, c->kernel));
  if (k_out % groups)
    return LW_BAD(
        "kernel output features %lld must be a multiple of the group "
        "count %lld",
        (long long)k_out, (long long)groups);
  if (in_b % c->batches)
    return LW_BAD(
        "input batch %lld must be a multiple of batch_group_count "
        "%lld",
        (long long)in_b, (long long)c->batches);
  return NULL;
}

static lw_status conv_dims(const infer *f, const conv *c, dim_list *d) {
  const lw_window *w = window_of(f);
  const lw_dim_labels *l = c->l;
  if (w->rank != l->n_spatial)
    return LW_BAD(
        "the window has %d dimensions, dim_labels has %d spatial ones", w->rank,
        l->n_spatial);
  *d = (dim_list){.rank = c->in->rank};
  d->dims[l->output_batch] = c->in->dims[l->input_batch] / c->batches;
  d->dims[l->output_feature] = c->kernel->dims[l->kernel_output_feature];
  d->dynamic[l->output_batch] = infer_dyn(c->in, (int32_t)l->input_batch);
  if (infer_dyn(c->kernel, (int32_t)l->kernel_output_feature))
    return LW_BAD(
        "a dynamic output feature dimension of the kernel is not "
        "supported: %s",
        infer_str(f, c->kernel));
  for (int32_t i = 0; i < l->n_spatial; i++) {
    int32_t in = (int32_t)l->input_spatial[i];
    int64_t o = l->output_spatial[i];
    if (w->dims[i].size != c->kernel->dims[l->kernel_spatial[i]])
      return LW_BAD(
          "window size %lld of spatial dimension %d differs from the "
          "kernel %s",
          (long long)w->dims[i].size, i, infer_str(f, c->kernel));
    LW_TRY(window_dim(&w->dims[i], i, c->in->dims[in], &d->dims[o]));
    d->dynamic[o] = infer_dyn(c->in, in) ||
                    infer_dyn(c->kernel, (int32_t)l->kernel_spatial[i]);
  }
  return NULL;
}

lw_status infer_convolution(const infer *f, const lw_shape **out) {
  if (f->inst->n_operands < 2) return LW_BAD("needs an input and a kernel");
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(infer_want_array(f, 1));
  const lw_attr *a = lw_inst_attr(f->inst, LW_ATTR_DIM_LABELS);
  conv c = {infer_op(f, 0), infer_op(f, 1), a ? a->u.dim_labels : NULL,
            lw_inst_i64(f->inst, LW_ATTR_FEATURE_GROUP_COUNT, 1),
            lw_inst_i64(f->inst, LW_ATTR_BATCH_GROUP_COUNT, 1)};
  if (!c.l) return LW_BAD("dim_labels is missing");
  if (c.in->rank != c.kernel->rank || !conv_labels_ok(c.l, c.in->rank))
    return LW_BAD("dim_labels does not number the dimensions of %s and %s",
                  infer_str(f, c.in), infer_str(f, c.kernel));
  LW_TRY(conv_groups(f, &c));
  dim_list d;
  LW_TRY(conv_dims(f, &c, &d));
  lw_prim type;
  LW_TRY(infer_product_type(f, c.in, c.kernel, &type));
  *out = infer_make(f, type, &d, NULL);
  return NULL;
}
