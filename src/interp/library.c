/* Opcodes and custom calls that go to src/lib. */
#include "lib/lib.h"

#include <stdlib.h>

#include "interp/eval.h"

lw_status lw_eval_fft(lw_eval *e, const lw_inst *i, lw_val **ops,
                      lw_val **out) {
  int32_t n = 0;
  const int64_t *length = lw_inst_i64s(i, LW_ATTR_FFT_LENGTH, &n);
  LW_TRY(lw_val_new(e, i->shape, out));
  return lw_lib_fft((lw_fft_type)lw_inst_i64(i, LW_ATTR_FFT_TYPE, LW_FFT), n,
                    length, ops[0]->lit.shape, ops[0]->lit.data, i->shape,
                    (*out)->lit.data);
}

static lw_status like_operand(const lw_inst *i, const lw_val *v) {
  if (i->shape->type == v->lit.shape->type &&
      lw_shape_same_dims(i->shape, v->lit.shape))
    return NULL;
  return lw_error(LW_INVALID_ARGUMENT, "result and operand differ");
}

lw_status lw_eval_cholesky(lw_eval *e, const lw_inst *i, lw_val **ops,
                           lw_val **out) {
  LW_TRY(like_operand(i, ops[0]));
  LW_TRY(lw_val_new(e, i->shape, out));
  return lw_lib_cholesky(ops[0]->lit.shape,
                         lw_inst_i64(i, LW_ATTR_LOWER, 0) != 0,
                         ops[0]->lit.data, (*out)->lit.data);
}

lw_status lw_eval_triangular_solve(lw_eval *e, const lw_inst *i, lw_val **ops,
                                   lw_val **out) {
  lw_triangular t = {
      .left_side = lw_inst_i64(i, LW_ATTR_LEFT_SIDE, 0) != 0,
      .lower = lw_inst_i64(i, LW_ATTR_LOWER, 0) != 0,
      .unit_diagonal = lw_inst_i64(i, LW_ATTR_UNIT_DIAGONAL, 0) != 0,
      .transpose_a =
          (lw_transpose_a)lw_inst_i64(i, LW_ATTR_TRANSPOSE_A, LW_TR_NO)};
  LW_TRY(like_operand(i, ops[1]));
  LW_TRY(lw_val_new(e, i->shape, out));
  return lw_lib_triangular_solve(ops[0]->lit.shape, ops[0]->lit.data,
                                 ops[1]->lit.shape, ops[1]->lit.data, &t,
                                 (*out)->lit.data);
}

/* ---- custom calls ---- */

enum { MAX_LEAVES = 4096 }; /* of a call, both ways: far above any API */

static lw_status count_check(int64_t n) {
  return n <= MAX_LEAVES
             ? NULL
             : lw_error(LW_INVALID_ARGUMENT, "too many arrays in a call");
}

static void list_leaves(const lw_val *v, lw_lib_buffer *out, int32_t *n) {
  if (!lw_shape_is_tuple(v->lit.shape)) {
    out[(*n)++] = (lw_lib_buffer){v->lit.shape, v->lit.data};
    return;
  }
  for (int32_t k = 0; k < v->lit.n_elems; k++)
    list_leaves(lw_val_elem(v, k), out, n);
}

/* A value of fresh arrays for any shape. */
static lw_status make_room(lw_eval *e, const lw_shape *s, lw_val **out) {
  if (!lw_shape_is_tuple(s)) return lw_val_new(e, s, out);
  size_t bytes = lw_array_bytes((size_t)s->n_elems + 1, sizeof(lw_val *));
  lw_val **elems = malloc(bytes);
  if (!elems) lw_oom(bytes);
  lw_status st = NULL;
  int32_t n = 0;
  while (n < s->n_elems && !st) {
    st = make_room(e, s->elems[n], &elems[n]);
    n += !st;
  }
  if (!st) *out = lw_val_tuple(s, n, elems);
  while (st && n-- > 0) lw_val_release(e, elems[n]);
  free(elems);
  return st;
}

static lw_status run_call(const lw_inst *i, lw_val **ops, lw_val *result,
                          const char *target) {
  int64_t n_in = 0, n_out = lw_shape_leaf_count(i->shape);
  for (int32_t k = 0; k < i->n_operands; k++)
    n_in += lw_shape_leaf_count(ops[k]->lit.shape);
  LW_TRY(count_check(n_in + n_out));
  lw_lib_buffer *b = malloc((size_t)(n_in + n_out + 1) * sizeof *b);
  if (!b) lw_oom((size_t)n_in);
  lw_lib_call call = {.target = target,
                      .config = i->backend_config,
                      .operands = b,
                      .results = b + n_in};
  for (int32_t k = 0; k < i->n_operands; k++)
    list_leaves(ops[k], b, &call.n_operands);
  list_leaves(result, call.results, &call.n_results);
  lw_status s = lw_lib_run(&call);
  free(b);
  return s;
}

/* Shardings on one device: the operands are the results, as long as their
 * shapes agree (they do not when a mesh has more devices). */
static lw_status identity_call(const lw_inst *i, lw_val **ops,
                               const char *target, lw_val **out) {
  bool tuple = lw_shape_is_tuple(i->shape) &&
               !(i->n_operands == 1 && lw_shape_is_tuple(ops[0]->lit.shape));
  int32_t n = tuple ? i->shape->n_elems : 1;
  bool fits = i->n_operands == n;
  for (int32_t k = 0; k < n && fits; k++)
    fits = lw_shape_compatible(tuple ? i->shape->elems[k] : i->shape,
                               lw_inst_operand(i, k)->shape);
  if (!fits)
    return lw_error(LW_UNIMPLEMENTED,
                    "%s splits its operands over several devices; this module "
                    "runs on one",
                    target);
  if (tuple) {
    *out = lw_val_tuple(i->shape, n, ops);
    for (int32_t k = 0; k < n; k++) ops[k] = NULL;
  } else {
    *out = ops[0];
    ops[0] = NULL;
  }
  return NULL;
}

lw_status lw_eval_custom_call(lw_eval *e, const lw_inst *i, lw_val **ops,
                              lw_val **out) {
  const char *target = lw_inst_str(i, LW_ATTR_CUSTOM_CALL_TARGET);
  if (!target)
    return lw_error(LW_INVALID_ARGUMENT, "custom_call_target is missing");
  if (lw_lib_is_identity(target)) return identity_call(i, ops, target, out);
  if (!lw_lib_find(target)) return lw_lib_unknown(target);
  lw_val *result = NULL;
  LW_TRY(make_room(e, i->shape, &result));
  lw_status s = run_call(i, ops, result, target);
  if (s) {
    lw_val_release(e, result);
    return s;
  }
  *out = result;
  return NULL;
}
