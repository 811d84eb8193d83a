/* Opcodes whose result shape the text or proto must give: what the operands and
 * attributes say about it is checked, and the given shape returned. */
#include <string.h>

#include "hlo/infer_impl.h"

static const lw_shape *given(const infer *f) { return f->inst->shape; }

static lw_status want_given_array(const infer *f) {
  if (lw_shape_is_array(given(f)) && given(f)->rank <= LW_MAX_RANK) return NULL;
  return LW_BAD(
      "the result must be an array of at most %d dimensions; it is %s",
      LW_MAX_RANK, infer_str(f, given(f)));
}

static lw_status want_type(const infer *f, lw_prim want) {
  if (lw_prim_same_kind(given(f)->type, want)) return NULL;
  return LW_BAD("the result must have %s elements; it is %s",
                lw_prim_name(want), infer_str(f, given(f)));
}

/* The result has exactly this shape (precision of floats aside). */
static lw_status want_shape(const infer *f, const lw_shape *want) {
  if (lw_shape_compatible_mixed(given(f), want)) return NULL;
  return LW_BAD("the result must be %s; it is %s", infer_str(f, want),
                infer_str(f, given(f)));
}

static lw_status want_dims_of(const infer *f, const lw_shape *s) {
  if (lw_shape_same_dims(given(f), s)) return NULL;
  return LW_BAD("the result must have the dimensions of %s; it is %s",
                infer_str(f, s), infer_str(f, given(f)));
}

/* ---- one operand, one array ---- */

static lw_status given_broadcast(const infer *f) {
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(want_given_array(f));
  const lw_shape *s = infer_op(f, 0), *r = given(f);
  int32_t n;
  const int64_t *dims = lw_inst_i64s(f->inst, LW_ATTR_DIMENSIONS, &n);
  if (n != s->rank)
    return LW_BAD("dimensions has %d entries, the operand %s has %d dimensions",
                  n, infer_str(f, s), s->rank);
  LW_TRY(infer_check_dims("dimensions", dims, n, r->rank, false));
  for (int32_t i = 0; i < n; i++)
    if (s->dims[i] != r->dims[dims[i]] && s->dims[i] != LW_UNBOUNDED)
      return LW_BAD(
          "operand dimension %d of %s is mapped to dimension %lld of "
          "%s, which differs in size",
          i, infer_str(f, s), (long long)dims[i], infer_str(f, r));
  return want_type(f, s->type);
}

static lw_status given_reshape(const infer *f) {
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(want_given_array(f));
  const lw_shape *s = infer_op(f, 0);
  if (s->elements != given(f)->elements)
    return LW_BAD("the element counts of %s (%lld) and %s (%lld) differ",
                  infer_str(f, s), (long long)s->elements,
                  infer_str(f, given(f)), (long long)given(f)->elements);
  return want_type(f, s->type);
}

static lw_status given_dynamic_reshape(const infer *f) {
  if (f->inst->n_operands < 1) return LW_BAD("needs an operand");
  LW_TRY(given_reshape(f));
  if (f->inst->n_operands - 1 != given(f)->rank)
    return LW_BAD("needs a size operand for each of the %d dimensions; got %d",
                  given(f)->rank, f->inst->n_operands - 1);
  for (int32_t k = 1; k < f->inst->n_operands; k++)
    if (infer_op(f, k)->type != LW_S32 || infer_op(f, k)->rank)
      return LW_BAD("operand %d must be s32[]; it is %s", k,
                    infer_str(f, infer_op(f, k)));
  return NULL;
}

/* Bits of the whole array, for bitcasts. */
static bool total_bits(const lw_shape *s, int64_t *out) {
  return !__builtin_mul_overflow(s->elements, lw_prim_table[s->type].bits, out);
}

static lw_status given_bitcast(const infer *f) {
  const lw_shape *s = infer_op(f, 0), *r = given(f);
  if (!lw_shape_is_array(s) || !lw_shape_is_array(r)) {
    if (lw_shape_compatible(s, r)) return NULL;
    return LW_BAD("operand %s and result %s must be arrays of one size",
                  infer_str(f, s), infer_str(f, r));
  }
  int64_t a, b;
  if (!total_bits(s, &a) || !total_bits(r, &b) || a != b)
    return LW_BAD("operand %s and result %s differ in size", infer_str(f, s),
                  infer_str(f, r));
  return NULL;
}

/* Element counts: equal widths keep the dims, a narrower result has one more
 * (minor) dimension of the ratio, a wider one less. */
static lw_status given_bitcast_convert(const infer *f) {
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(want_given_array(f));
  const lw_shape *s = infer_op(f, 0), *r = given(f);
  int a = lw_prim_table[s->type].bits, b = lw_prim_table[r->type].bits;
  if (lw_prim_is_complex(s->type) != lw_prim_is_complex(r->type))
    return LW_BAD("cannot turn %s into %s: complex and real types do not mix",
                  infer_str(f, s), infer_str(f, r));
  const lw_shape *few = a >= b ? s : r, *many = a >= b ? r : s;
  int64_t ratio = a >= b ? a / b : b / a;
  bool ok = a % b == 0 || b % a == 0;
  ok = ok && many->rank == few->rank + (ratio > 1);
  for (int32_t i = 0; ok && i < few->rank; i++)
    ok = few->dims[i] == many->dims[i];
  if (ok && ratio > 1) ok = many->dims[many->rank - 1] == ratio;
  if (ok) return NULL;
  return LW_BAD("%s and %s do not have the same bits in matching dimensions",
                infer_str(f, s), infer_str(f, r));
}

static lw_status given_convert(const infer *f) {
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(want_given_array(f));
  const lw_shape *s = infer_op(f, 0);
  if (lw_prim_is_complex(s->type) && !lw_prim_is_complex(given(f)->type))
    return LW_BAD("cannot convert complex %s to %s (use real or imag)",
                  infer_str(f, s), infer_str(f, given(f)));
  return want_dims_of(f, s);
}

static lw_status given_stochastic_convert(const infer *f) {
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(infer_want_array(f, 1));
  LW_TRY(want_given_array(f));
  const lw_shape *s = infer_op(f, 0), *r = infer_op(f, 1);
  if (!lw_prim_is_float(s->type))
    return LW_BAD("operand 0 must be floating-point; it is %s",
                  infer_str(f, s));
  if (lw_prim_class(r->type) != LW_CLASS_UINT ||
      lw_prim_table[r->type].bits != lw_prim_table[s->type].bits)
    return LW_BAD("the random bits %s must be unsigned and as wide as %s",
                  infer_str(f, r), infer_str(f, s));
  if (!lw_shape_same_dims(s, r))
    return LW_BAD("operands must have equal dimensions; got %s and %s",
                  infer_str(f, s), infer_str(f, r));
  return want_dims_of(f, s);
}

static lw_status given_reduce_precision(const infer *f) {
  LW_TRY(infer_want_array(f, 0));
  const lw_shape *s = infer_op(f, 0);
  int64_t e = lw_inst_i64(f->inst, LW_ATTR_EXPONENT_BITS, 0);
  int64_t m = lw_inst_i64(f->inst, LW_ATTR_MANTISSA_BITS, 0);
  if (!lw_prim_is_float(s->type))
    return LW_BAD("the operand must be floating-point; it is %s",
                  infer_str(f, s));
  if (e < 1) return LW_BAD("exponent_bits must be at least 1");
  if (m < 0) return LW_BAD("mantissa_bits must not be negative");
  return want_shape(f, s);
}

static lw_status given_iota(const infer *f) {
  LW_TRY(want_given_array(f));
  int64_t d = lw_inst_i64(f->inst, LW_ATTR_IOTA_DIMENSION, -1);
  const lw_shape *r = given(f);
  if (r->rank == 0) return LW_BAD("the result cannot be a scalar");
  if (d < 0 || d >= r->rank)
    return LW_BAD("iota_dimension %lld is out of range for %s", (long long)d,
                  infer_str(f, r));
  if (r->type == LW_PRED)
    return LW_BAD("the result must be numeric; it is %s", infer_str(f, r));
  return NULL;
}

static lw_status given_constant(const infer *f) {
  const lw_literal *l = lw_inst_literal(f->inst);
  if (!l) return LW_BAD("has no value");
  if (lw_shape_compatible(l->shape, given(f))) return NULL;
  return LW_BAD("the value has shape %s, the instruction %s",
                infer_str(f, l->shape), infer_str(f, given(f)));
}

/* ---- slices ---- */

static lw_status given_slice(const infer *f) {
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(want_given_array(f));
  const lw_shape *s = infer_op(f, 0), *r = given(f);
  int32_t n;
  const int64_t *v = lw_inst_i64s(f->inst, LW_ATTR_SLICE, &n);
  if (n != 3 * s->rank)
    return LW_BAD("slice has %d dimensions, the operand %s has %d", n / 3,
                  infer_str(f, s), s->rank);
  if (r->rank != s->rank)
    return LW_BAD("the result %s must have as many dimensions as %s",
                  infer_str(f, r), infer_str(f, s));
  for (int32_t i = 0; i < s->rank; i++) {
    int64_t lo = v[3 * i], hi = v[3 * i + 1], step = v[3 * i + 2];
    if (lo < 0 || hi < lo || (s->dims[i] >= 0 && hi > s->dims[i]))
      return LW_BAD("slice [%lld:%lld] of dimension %d is out of bounds for %s",
                    (long long)lo, (long long)hi, i, infer_str(f, s));
    if (step < 1) return LW_BAD("stride of dimension %d must be positive", i);
    int64_t size = hi == lo ? 0 : (hi - lo - 1) / step + 1;
    if (size != r->dims[i])
      return LW_BAD(
          "slice [%lld:%lld:%lld] of dimension %d has %lld elements, "
          "but the result is %s",
          (long long)lo, (long long)hi, (long long)step, i, (long long)size,
          infer_str(f, r));
  }
  return want_type(f, s->type);
}

/* Start indices from operand first on: one integer scalar a dimension, all of
 * one type (or one vector, the old form). */
static lw_status start_indices(const infer *f, int32_t first, int32_t rank) {
  int32_t n = f->inst->n_operands - first;
  for (int32_t k = first; k < f->inst->n_operands; k++)
    if (!lw_prim_is_int(infer_op(f, k)->type))
      return LW_BAD("start index %d must be an integer; it is %s", k - first,
                    infer_str(f, infer_op(f, k)));
  if (n == 1 && infer_op(f, first)->rank == 1 &&
      infer_op(f, first)->dims[0] == rank)
    return NULL;
  if (n != rank)
    return LW_BAD("needs one start index for each of %d dimensions; got %d",
                  rank, n);
  for (int32_t k = first; k < f->inst->n_operands; k++) {
    if (infer_op(f, k)->rank)
      return LW_BAD("start index %d must be a scalar; it is %s", k - first,
                    infer_str(f, infer_op(f, k)));
    if (infer_op(f, k)->type != infer_op(f, first)->type)
      return LW_BAD("start indices must have one type; got %s and %s",
                    infer_str(f, infer_op(f, first)),
                    infer_str(f, infer_op(f, k)));
  }
  return NULL;
}

static lw_status given_dynamic_slice(const infer *f) {
  if (f->inst->n_operands < 1) return LW_BAD("needs an operand");
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(want_given_array(f));
  const lw_shape *s = infer_op(f, 0), *r = given(f);
  int32_t n;
  const int64_t *v = lw_inst_i64s(f->inst, LW_ATTR_DYNAMIC_SLICE_SIZES, &n);
  if (n != s->rank || r->rank != s->rank)
    return LW_BAD(
        "dynamic_slice_sizes (%d) and the result %s must have as many "
        "dimensions as %s",
        n, infer_str(f, r), infer_str(f, s));
  for (int32_t i = 0; i < n; i++) {
    if (v[i] < 0 || (s->dims[i] >= 0 && v[i] > s->dims[i]))
      return LW_BAD("slice size %lld of dimension %d is out of bounds for %s",
                    (long long)v[i], i, infer_str(f, s));
    if (v[i] != r->dims[i])
      return LW_BAD(
          "slice size %lld of dimension %d differs from the result %s",
          (long long)v[i], i, infer_str(f, r));
  }
  LW_TRY(start_indices(f, 1, s->rank));
  return want_type(f, s->type);
}

static lw_status given_dynamic_update_slice(const infer *f) {
  if (f->inst->n_operands < 2) return LW_BAD("needs an operand and an update");
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(infer_want_array(f, 1));
  const lw_shape *s = infer_op(f, 0), *u = infer_op(f, 1);
  if (u->rank != s->rank || !lw_prim_same_kind(u->type, s->type))
    return LW_BAD("the update %s must have the element type and rank of %s",
                  infer_str(f, u), infer_str(f, s));
  for (int32_t i = 0; i < s->rank; i++)
    if (s->dims[i] >= 0 && u->dims[i] > s->dims[i])
      return LW_BAD("the update %s does not fit into %s", infer_str(f, u),
                    infer_str(f, s));
  LW_TRY(start_indices(f, 2, s->rank));
  return want_shape(f, s);
}

/* ---- fusions ---- */

static lw_status given_fusion(const infer *f) {
  const lw_comp *c = lw_inst_comp(f->inst, LW_ATTR_CALLS);
  const lw_shape *root;
  LW_TRY(infer_root("calls", c, f->inst->n_operands, &root));
  for (int32_t k = 0; k < f->inst->n_operands; k++)
    if (!lw_shape_compatible(infer_param(c, k), infer_op(f, k)))
      return LW_BAD("parameter %d of calls=%s is %s, but gets %s", k, c->name,
                    infer_str(f, infer_param(c, k)),
                    infer_str(f, infer_op(f, k)));
  if (lw_shape_compatible(root, given(f))) return NULL;
  return LW_BAD("the result is %s, but the root of calls=%s is %s",
                infer_str(f, given(f)), c->name, infer_str(f, root));
}

/* ---- random numbers ---- */

static lw_status given_rng(const infer *f) {
  LW_TRY(want_given_array(f));
  if (f->inst->n_operands != 2)
    return LW_BAD("takes 2 operands, but has %d", f->inst->n_operands);
  for (int32_t k = 0; k < 2; k++)
    if (infer_op(f, k)->rank || infer_op(f, k)->type != given(f)->type)
      return LW_BAD("operand %d must be %s[]; it is %s", k,
                    lw_prim_name(given(f)->type), infer_str(f, infer_op(f, k)));
  return NULL;
}

static lw_status given_rng_bits(const infer *f) {
  LW_TRY(infer_want_array(f, 0));
  const lw_shape *r = given(f), *state = infer_op(f, 0);
  if (!lw_shape_is_tuple(r)) return want_given_array(f);
  if (r->n_elems != 2 || !lw_shape_compatible(r->elems[0], state) ||
      !lw_shape_is_array(r->elems[1]))
    return LW_BAD("the result must be (%s, bits); it is %s",
                  infer_str(f, state), infer_str(f, r));
  return NULL;
}

/* ---- collectives ---- */

/* Devices in a group; 0 when the attribute does not say. */
static int64_t group_size(const lw_inst *i) {
  const lw_attr *a = lw_inst_attr(i, LW_ATTR_REPLICA_GROUPS);
  const lw_replica_groups *g = a ? a->u.groups : NULL;
  if (!g) return 0;
  if (g->kind == LW_RG_IOTA) return g->iota_group_size;
  if (g->kind == LW_RG_LISTS && g->n_groups) return g->group_sizes[0];
  return 0;
}

/* Element k of the result when it is a tuple, else the result (k == 0). */
static const lw_shape *result_elem(const lw_shape *r, int32_t n, int32_t k) {
  if (n == 1 && !lw_shape_is_tuple(r)) return r;
  return lw_shape_is_tuple(r) && r->n_elems == n ? r->elems[k] : NULL;
}

static lw_status wrong_result(const infer *f, const lw_shape *r,
                              const char *why) {
  return LW_BAD("the result %s %s", infer_str(f, r), why);
}

/* small * group == big in dimension dim, equal elsewhere. */
static lw_status check_scaled(const infer *f, const lw_shape *small,
                              const lw_shape *big, int64_t dim, int64_t group) {
  bool ok = lw_shape_is_array(small) && lw_shape_is_array(big) &&
            small->rank == big->rank && dim >= 0 && dim < small->rank &&
            lw_prim_same_kind(small->type, big->type);
  for (int32_t i = 0; ok && i < small->rank; i++) {
    int64_t want = small->dims[i];
    if (i == dim && group && __builtin_mul_overflow(want, group, &want))
      return LW_BAD("overflow");
    if (i == dim && !group)
      ok = want == 0 ? big->dims[i] == 0 : big->dims[i] % want == 0;
    else
      ok = big->dims[i] == want;
  }
  if (ok) return NULL;
  return LW_BAD("%s must be %s with dimension %lld times the group size %lld",
                infer_str(f, big), infer_str(f, small), (long long)dim,
                (long long)group);
}

static lw_status gather_like(const infer *f, const lw_shape *r, bool scatter) {
  int32_t n, count = f->inst->n_operands;
  const int64_t *dims = lw_inst_i64s(f->inst, LW_ATTR_DIMENSIONS, &n);
  if (n != 1) return LW_BAD("dimensions must name one dimension");
  if (!count) return LW_BAD("needs at least one operand");
  for (int32_t k = 0; k < count; k++) {
    const lw_shape *e = result_elem(r, count, k), *a = infer_op(f, k);
    if (!e) return wrong_result(f, r, "must have one array an operand");
    LW_TRY(check_scaled(f, scatter ? e : a, scatter ? a : e, dims[0],
                        group_size(f->inst)));
  }
  return NULL;
}

static lw_status same_as_operands(const infer *f, const lw_shape *r) {
  int32_t count = f->inst->n_operands;
  for (int32_t k = 0; k < count; k++) {
    const lw_shape *e = result_elem(r, count, k);
    if (!e || !lw_shape_compatible_mixed(e, infer_op(f, k)))
      return LW_BAD(
          "the result %s must have the shapes of the operands; operand "
          "%d is %s",
          infer_str(f, r), k, infer_str(f, infer_op(f, k)));
  }
  if (!count && !(lw_shape_is_tuple(r) && !r->n_elems))
    return wrong_result(f, r, "needs operands");
  return NULL;
}

/* With dimensions={d}, splits and concatenates d: one shape in and out. */
static lw_status given_all_to_all(const infer *f) {
  int32_t n;
  const int64_t *dims = lw_inst_i64s(f->inst, LW_ATTR_DIMENSIONS, &n);
  LW_TRY(same_as_operands(f, given(f)));
  if (!n) return NULL;
  LW_TRY(infer_want_array(f, 0));
  LW_TRY(infer_check_dims("dimensions", dims, n, infer_op(f, 0)->rank, false));
  int64_t g = group_size(f->inst), size = infer_op(f, 0)->dims[dims[0]];
  if (g > 0 && size % g)
    return LW_BAD(
        "dimension %lld of %s must be a multiple of the group size "
        "%lld",
        (long long)dims[0], infer_str(f, infer_op(f, 0)), (long long)g);
  return NULL;
}

/* permute(input) keeps the shape; permute(input, output, starts, starts)
 * updates output in place and has its shape. */
static lw_status given_permute(const infer *f) {
  if (f->inst->n_operands == 4 && !lw_shape_is_tuple(given(f)))
    return want_shape(f, infer_op(f, 1));
  return same_as_operands(f, given(f));
}

/* ---- asynchronous pairs ---- */

static lw_status want_tuple(const infer *f, const lw_shape *s, int32_t least,
                            const char *what) {
  if (lw_shape_is_tuple(s) && s->n_elems >= least) return NULL;
  return LW_BAD("%s must be a tuple of at least %d; it is %s", what, least,
                infer_str(f, s));
}

static lw_status given_start(const infer *f) {
  const lw_shape *r = given(f);
  switch ((int)f->inst->opcode) {
    case LW_OP_ALL_REDUCE_START:
      return same_as_operands(f, r);
    case LW_OP_ALL_GATHER_START:
      LW_TRY(want_tuple(f, r, 2, "the result"));
      return gather_like(f, r->elems[1], false);
    case LW_OP_COLLECTIVE_PERMUTE_START:
      return want_tuple(f, r, 2, "the result");
    default: /* copy-start */
      LW_TRY(want_tuple(f, r, 2, "the result"));
      if (!lw_shape_compatible(r->elems[0], infer_op(f, 0)) ||
          !lw_shape_compatible(r->elems[1], infer_op(f, 0)))
        return wrong_result(f, r, "must hold the operand's shape twice");
      return NULL;
  }
}

static lw_status given_done(const infer *f) {
  const lw_shape *s = infer_op(f, 0);
  switch ((int)f->inst->opcode) {
    case LW_OP_ALL_REDUCE_DONE:
      return want_shape(f, s);
    case LW_OP_COPY_DONE:
      LW_TRY(want_tuple(f, s, 2, "the operand"));
      return want_shape(f, s->elems[0]);
    case LW_OP_SEND_DONE:
      return want_shape(f, lw_shape_other(f->ctx, LW_TOKEN));
    case LW_OP_RECV_DONE: {
      LW_TRY(want_tuple(f, s, 3, "the operand"));
      const lw_shape *elems[2] = {s->elems[0], s->elems[2]};
      return want_shape(f, lw_shape_tuple(f->ctx, 2, elems));
    }
    default: /* all-gather-done, collective-permute-done */
      LW_TRY(want_tuple(f, s, 2, "the operand"));
      return want_shape(f, s->elems[1]);
  }
}

/* ((operands), result, ...) */
static lw_status given_async_start(const infer *f) {
  const lw_shape *r = given(f), *root;
  LW_TRY(want_tuple(f, r, 2, "the result"));
  const lw_comp *c = lw_inst_comp(f->inst, LW_ATTR_CALLS);
  LW_TRY(infer_root("calls", c, f->inst->n_operands, &root));
  const lw_shape *ops = r->elems[0];
  bool ok = lw_shape_is_tuple(ops) && ops->n_elems == f->inst->n_operands;
  for (int32_t k = 0; ok && k < ops->n_elems; k++)
    ok = lw_shape_compatible(ops->elems[k], infer_op(f, k)) &&
         lw_shape_compatible(infer_param(c, k), infer_op(f, k));
  if (!ok)
    return wrong_result(f, r, "must begin with the tuple of operand shapes");
  if (lw_shape_compatible(r->elems[1], root)) return NULL;
  return LW_BAD("element 1 of the result %s must be what calls=%s returns, %s",
                infer_str(f, r), c->name, infer_str(f, root));
}

static lw_status given_async_rest(const infer *f) {
  if (f->inst->n_operands != 1)
    return LW_BAD("takes 1 operand, but has %d", f->inst->n_operands);
  const lw_shape *s = infer_op(f, 0);
  LW_TRY(want_tuple(f, s, 2, "the operand"));
  return want_shape(f, f->inst->opcode == LW_OP_ASYNC_UPDATE ? s : s->elems[1]);
}

/* ---- host and channels ---- */

static lw_status want_token(const infer *f, int32_t k) {
  if (infer_op(f, k)->type == LW_TOKEN) return NULL;
  return LW_BAD("operand %d must be a token; it is %s", k,
                infer_str(f, infer_op(f, k)));
}

static lw_status given_channel(const infer *f) {
  const lw_shape *r = given(f);
  switch ((int)f->inst->opcode) {
    case LW_OP_INFEED:
      LW_TRY(want_token(f, 0));
      if (lw_shape_is_tuple(r) && r->n_elems == 2 &&
          r->elems[1]->type == LW_TOKEN)
        return NULL;
      return wrong_result(f, r, "must be (data, token[])");
    case LW_OP_OUTFEED:
      LW_TRY(want_token(f, 1));
      return want_shape(f, lw_shape_other(f->ctx, LW_TOKEN));
    case LW_OP_SEND: {
      LW_TRY(want_token(f, 1));
      LW_TRY(want_tuple(f, r, 3, "the result"));
      if (lw_shape_compatible(r->elems[0], infer_op(f, 0)) &&
          r->elems[2]->type == LW_TOKEN)
        return NULL;
      return wrong_result(f, r, "must be (operand, u32[], token[])");
    }
    default: /* recv */
      LW_TRY(want_token(f, 0));
      LW_TRY(want_tuple(f, r, 3, "the result"));
      if (r->elems[2]->type == LW_TOKEN) return NULL;
      return wrong_result(f, r, "must be (data, u32[], token[])");
  }
}

static lw_status check_given(const infer *f) {
  switch ((int)f->inst->opcode) {
    case LW_OP_BROADCAST:
      return given_broadcast(f);
    case LW_OP_RESHAPE:
      return given_reshape(f);
    case LW_OP_DYNAMIC_RESHAPE:
      return given_dynamic_reshape(f);
    case LW_OP_BITCAST:
      return given_bitcast(f);
    case LW_OP_BITCAST_CONVERT:
      return given_bitcast_convert(f);
    case LW_OP_CONVERT:
      return given_convert(f);
    case LW_OP_STOCHASTIC_CONVERT:
      return given_stochastic_convert(f);
    case LW_OP_REDUCE_PRECISION:
      return given_reduce_precision(f);
    case LW_OP_IOTA:
      return given_iota(f);
    case LW_OP_CONSTANT:
      return given_constant(f);
    case LW_OP_SLICE:
      return given_slice(f);
    case LW_OP_DYNAMIC_SLICE:
      return given_dynamic_slice(f);
    case LW_OP_DYNAMIC_UPDATE_SLICE:
      return given_dynamic_update_slice(f);
    case LW_OP_FUSION:
      return given_fusion(f);
    case LW_OP_RNG:
      return given_rng(f);
    case LW_OP_RNG_BIT_GENERATOR:
      return given_rng_bits(f);
    case LW_OP_RNG_GET_AND_UPDATE_STATE:
      return want_given_array(f);
    case LW_OP_ALL_REDUCE:
    case LW_OP_COLLECTIVE_BROADCAST:
      return same_as_operands(f, given(f));
    case LW_OP_ALL_GATHER:
      return gather_like(f, given(f), false);
    case LW_OP_REDUCE_SCATTER:
      return gather_like(f, given(f), true);
    case LW_OP_ALL_TO_ALL:
      return given_all_to_all(f);
    case LW_OP_COLLECTIVE_PERMUTE:
      return given_permute(f);
    case LW_OP_RAGGED_ALL_TO_ALL:
      return want_shape(f, infer_op(f, 1));
    case LW_OP_ALL_REDUCE_START:
    case LW_OP_ALL_GATHER_START:
    case LW_OP_COLLECTIVE_PERMUTE_START:
    case LW_OP_COPY_START:
      return given_start(f);
    case LW_OP_ALL_REDUCE_DONE:
    case LW_OP_ALL_GATHER_DONE:
    case LW_OP_COLLECTIVE_PERMUTE_DONE:
    case LW_OP_COPY_DONE:
    case LW_OP_SEND_DONE:
    case LW_OP_RECV_DONE:
      return given_done(f);
    case LW_OP_ASYNC_START:
      return given_async_start(f);
    case LW_OP_ASYNC_UPDATE:
    case LW_OP_ASYNC_DONE:
      return given_async_rest(f);
    case LW_OP_INFEED:
    case LW_OP_OUTFEED:
    case LW_OP_SEND:
    case LW_OP_RECV:
      return given_channel(f);
    default:
      return NULL; /* parameter, custom-call: the shape is what it is */
  }
}

lw_status infer_given(const infer *f, const lw_shape **out) {
  if (!given(f)) return LW_BAD("the result shape must be given");
  LW_TRY(check_given(f));
  *out = given(f);
  return NULL;
}
