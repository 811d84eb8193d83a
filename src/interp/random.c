/* Random opcodes over src/lib/rng. */
#include "interp/eval.h"
#include "lib/rng.h"

lw_status lw_eval_rng(lw_eval *e, const lw_inst *i, lw_val **ops,
                      lw_val **out) {
  lw_distribution dist =
      (lw_distribution)lw_inst_i64(i, LW_ATTR_DISTRIBUTION, LW_RNG_INVALID);
  lw_prim t = i->shape->type;
  if (i->n_operands != 2 || dist == LW_RNG_INVALID ||
      !lw_shape_is_array(i->shape) || ops[0]->lit.shape->type != t ||
      ops[1]->lit.shape->type != t || lw_elems(ops[0]) != 1 ||
      lw_elems(ops[1]) != 1)
    return lw_error(LW_INVALID_ARGUMENT, "rng needs two scalars of its type");
  LW_TRY(lw_val_new(e, i->shape, out));
  return lw_rng_fill(e->opt.rng_seed, lw_rng_order(i), dist, t, lw_elems(*out),
                     ops[0]->lit.data, ops[1]->lit.data, (*out)->lit.data);
}

/* The state as u64 words; u32 states hold each word's low half first. */
static lw_status bits(const lw_inst *i, const lw_val *state, lw_val **parts) {
  int64_t bytes = lw_shape_bytes(state->lit.shape);
  uint64_t words[8], next[8] = {0};
  if (!lw_prim_is_int(state->lit.shape->type) || bytes % 8 || bytes > 24)
    return lw_error(LW_INVALID_ARGUMENT, "the state's shape does not fit");
  memcpy(words, state->lit.data, (size_t)bytes);
  LW_TRY(lw_rng_bits(
      (lw_rng_algorithm)lw_inst_i64(i, LW_ATTR_RNG_ALGORITHM, LW_RNG_DEFAULT),
      bytes / 8, words, next, parts[1]->lit.shape, parts[1]->lit.data));
  if (parts[0]) memcpy(parts[0]->lit.data, next, (size_t)bytes);
  return NULL;
}

/* {new state, bits}, or the bits alone. */
lw_status lw_eval_rng_bit_generator(lw_eval *e, const lw_inst *i, lw_val **ops,
                                    lw_val **out) {
  bool tuple = lw_shape_is_tuple(i->shape);
  if (tuple && (i->shape->n_elems != 2 ||
                !lw_shape_compatible(i->shape->elems[0], ops[0]->lit.shape)))
    return lw_error(LW_INVALID_ARGUMENT, "the result is {state, bits}");
  lw_val *parts[2] = {0};
  lw_status s = NULL;
  if (tuple) s = lw_val_new(e, i->shape->elems[0], &parts[0]);
  if (!s) s = lw_val_new(e, tuple ? i->shape->elems[1] : i->shape, &parts[1]);
  if (!s) s = bits(i, ops[0], parts);
  if (s) {
    lw_val_release(e, parts[0]);
    lw_val_release(e, parts[1]);
    return s;
  }
  *out = tuple ? lw_val_tuple(i->shape, 2, parts) : parts[1];
  return NULL;
}

/* The old 128-bit state, which then grows by delta. */
lw_status lw_eval_rng_state(lw_eval *e, const lw_inst *i, lw_val **ops,
                            lw_val **out) {
  (void)ops;
  if (i->shape->type != LW_U64 || i->shape->elements != 2)
    return lw_error(LW_INVALID_ARGUMENT, "the state is u64[2]");
  LW_TRY(lw_val_new(e, i->shape, out));
  memcpy((*out)->lit.data, e->rng_state, sizeof e->rng_state);
  uint64_t delta = (uint64_t)lw_inst_i64(i, LW_ATTR_DELTA, 0);
  e->rng_state[0] += delta;
  if (e->rng_state[0] < delta) e->rng_state[1]++;
  return NULL;
}
