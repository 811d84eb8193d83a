/* Shared by the infer_*.c files only. */
#ifndef LW_HLO_INFER_IMPL_H
#define LW_HLO_INFER_IMPL_H

#include "hlo/infer.h"

typedef struct {
  lw_context *ctx;
  const lw_inst *inst;
} infer;

/* Dimensions under construction. */
typedef struct {
  int32_t rank;
  int64_t dims[LW_MAX_RANK];
  bool dynamic[LW_MAX_RANK];
} dim_list;

#define LW_BAD(...) lw_error(LW_INVALID_ARGUMENT, __VA_ARGS__)

static inline const lw_shape *infer_op(const infer *f, int32_t k) {
  return f->inst->operands[k].def->shape;
}
static inline const char *infer_str(const infer *f, const lw_shape *s) {
  return lw_infer_shape_str(f->ctx, s);
}
static inline bool infer_dyn(const lw_shape *s, int32_t dim) {
  return s->dynamic && s->dynamic[dim];
}

/* Appends a dimension; false past LW_MAX_RANK. */
static inline bool dim_push(dim_list *d, int64_t size, bool dynamic) {
  if (d->rank >= LW_MAX_RANK) return false;
  d->dims[d->rank] = size;
  d->dynamic[d->rank++] = dynamic;
  return true;
}

void dim_list_of(dim_list *d, const lw_shape *s);
/* layout NULL: descending. */
const lw_shape *infer_make(const infer *f, lw_prim type, const dim_list *d,
                           const lw_layout *layout);
lw_status infer_want_array(const infer *f, int32_t k);
/* Every value in [0, rank), none twice. what names the attribute. */
lw_status infer_check_dims(const char *what, const int64_t *v, int32_t n,
                           int32_t rank, bool sorted);
bool infer_contains(const int64_t *v, int32_t n, int64_t x);
/* Checks a computation's parameter count and returns its root's shape. */
lw_status infer_root(const char *what, const lw_comp *c, int64_t n_params,
                     const lw_shape **root);
const lw_shape *infer_param(const lw_comp *c, int32_t k);

/* The k-th of n results of a computation's root (the root itself when n is 1
 * and it is no tuple); NULL when there is none. */
const lw_shape *infer_result_of(const lw_shape *root, int32_t n, int32_t k);
/* s, the what k of to_apply, is a scalar of like's kind (or type, if exact). */
lw_status infer_want_scalar(const infer *f, const char *what, int32_t k,
                            const lw_shape *s, lw_prim like, bool exact);
/* The element type of products of a's and b's elements: the given result's,
 * when it can hold them. */
lw_status infer_product_type(const infer *f, const lw_shape *a,
                             const lw_shape *b, lw_prim *out);
/* Operands a and b: both floating point, or of one type. */
lw_status infer_same_kind(const infer *f, int32_t a, int32_t b);
/* The error that operands a and b differ in dimensions. */
lw_status infer_not_equal(const infer *f, int32_t a, int32_t b);

lw_status infer_concatenate(const infer *f, const lw_shape **out);
lw_status infer_transpose(const infer *f, const lw_shape **out);
lw_status infer_reverse(const infer *f, const lw_shape **out);
lw_status infer_pad(const infer *f, const lw_shape **out);
lw_status infer_tuple(const infer *f, const lw_shape **out);
lw_status infer_get_tuple_element(const infer *f, const lw_shape **out);
lw_status infer_while(const infer *f, const lw_shape **out);
lw_status infer_conditional(const infer *f, const lw_shape **out);
lw_status infer_call(const infer *f, const lw_shape **out);
lw_status infer_sort(const infer *f, const lw_shape **out);
lw_status infer_topk(const infer *f, const lw_shape **out);
lw_status infer_fft(const infer *f, const lw_shape **out);
lw_status infer_cholesky(const infer *f, const lw_shape **out);
lw_status infer_triangular_solve(const infer *f, const lw_shape **out);
lw_status infer_batch_norm(const infer *f, const lw_shape **out);
lw_status infer_get_dimension_size(const infer *f, const lw_shape **out);
lw_status infer_set_dimension_size(const infer *f, const lw_shape **out);
lw_status infer_first_operand(const infer *f, const lw_shape **out);
lw_status infer_after_all(const infer *f, const lw_shape **out);
lw_status infer_id(const infer *f, const lw_shape **out);

lw_status infer_reduce(const infer *f, const lw_shape **out);
lw_status infer_reduce_window(const infer *f, const lw_shape **out);
lw_status infer_select_and_scatter(const infer *f, const lw_shape **out);
lw_status infer_convolution(const infer *f, const lw_shape **out);
lw_status infer_dot(const infer *f, const lw_shape **out);
lw_status infer_ragged_dot(const infer *f, const lw_shape **out);
lw_status infer_scaled_dot(const infer *f, const lw_shape **out);
lw_status infer_gather(const infer *f, const lw_shape **out);
lw_status infer_scatter(const infer *f, const lw_shape **out);
lw_status infer_scan(const infer *f, const lw_shape **out);
lw_status infer_map(const infer *f, const lw_shape **out);

/* Opcodes whose shape is given: checks it and returns it. */
lw_status infer_given(const infer *f, const lw_shape **out);

#endif
