/* The evaluator's spine: computations, control flow and the opcode table.
 *
 * A computation is evaluated in post order, the instructions that the root and
 * the side effects need. Values are reference counted; an operand slot that is
 * a value's last use hands its reference over, so that an update of a loop's
 * array happens in place and a loop of any length holds one iteration's values.
 *
 * Bounded dynamic dimensions need no case of their own: a value's shape holds
 * its present sizes, and every family works from its operands' sizes. Results
 * are padded with zeros to the declared bounds when they leave.
 */
#include "interp/interp.h"

#include <stdlib.h>
#include <unistd.h>

#include "interp/eval.h"
#include "lib/rng.h"

enum {
  MAX_CALL_DEPTH = 500,
  MAX_START = 16 /* elements of a start's tuple */
};

struct lw_frame_plan {
  int32_t n;
  lw_inst **insts;
  int32_t *uses; /* operand slots that read it, plus one for the root */
  int32_t root;  /* slot */
};

/* ---- plans ---- */

static void mark_needed(lw_inst *const *order, int32_t n, const lw_comp *c,
                        bool *needed, const int32_t *pos) {
  for (int32_t k = n; k-- > 0;) {
    lw_inst *i = order[k];
    bool need = needed[k] || i == c->root || lw_inst_has_side_effect(i) ||
                i->opcode == LW_OP_PARAMETER;
    if (!need) continue;
    needed[k] = true;
    for (int32_t o = 0; o < i->n_operands; o++)
      needed[pos[lw_inst_operand(i, o)->id]] = true;
  }
}

static lw_frame_plan *plan_new(lw_eval *e, const lw_comp *c) {
  lw_frame_plan *p = LW_NEW(e->arena, lw_frame_plan);
  int32_t n = 0;
  lw_inst **order = lw_comp_post_order(c, e->arena, &n);
  bool *needed = LW_NEW_ARRAY(e->arena, bool, n + 1);
  for (int32_t k = 0; k < n; k++) e->slot_of[order[k]->id] = k;
  mark_needed(order, n, c, needed, e->slot_of);
  p->insts = LW_NEW_ARRAY(e->arena, lw_inst *, n + 1);
  p->uses = LW_NEW_ARRAY(e->arena, int32_t, n + 1);
  for (int32_t k = 0; k < n; k++) {
    if (!needed[k]) continue;
    e->slot_of[order[k]->id] = p->n;
    p->insts[p->n++] = order[k];
  }
  for (int32_t k = 0; k < p->n; k++)
    for (int32_t o = 0; o < p->insts[k]->n_operands; o++)
      p->uses[e->slot_of[lw_inst_operand(p->insts[k], o)->id]]++;
  p->root = e->slot_of[c->root->id];
  p->uses[p->root]++;
  return p;
}

/* Folding one constant must not cost a walk over the module, so the tables
 * come with the first computation. */
static const lw_frame_plan *plan_of(lw_eval *e, const lw_comp *c) {
  if (!e->plans) {
    e->plans = LW_NEW_ARRAY(e->arena, lw_frame_plan *, e->m->n_comp_ids + 1);
    e->slot_of = LW_NEW_ARRAY(e->arena, int32_t, e->m->n_inst_ids + 1);
  }
  if (!e->plans[c->id]) e->plans[c->id] = plan_new(e, c);
  return e->plans[c->id];
}

/* ---- computations ---- */

typedef struct {
  const lw_frame_plan *plan;
  lw_val **vals;
  int32_t *left; /* uses still to come */
} frame;

/* A last use hands its reference over, another one adds a reference. */
static lw_val *frame_take(frame *f, int32_t slot) {
  lw_val *v = f->vals[slot];
  if (--f->left[slot] > 0) return lw_val_retain(v);
  f->vals[slot] = NULL;
  return v;
}

static lw_status eval_slot(lw_eval *e, frame *f, int32_t k) {
  lw_inst *i = f->plan->insts[k];
  lw_val *few[8], **ops = few;
  if (i->n_operands > 8) {
    ops = malloc(lw_array_bytes((size_t)i->n_operands, sizeof *ops));
    if (!ops) lw_oom((size_t)i->n_operands * sizeof *ops);
  }
  for (int32_t o = 0; o < i->n_operands; o++)
    ops[o] = frame_take(f, e->slot_of[lw_inst_operand(i, o)->id]);
  lw_status s = lw_eval_inst(e, i, ops, &f->vals[k]);
  for (int32_t o = 0; o < i->n_operands; o++) lw_val_release(e, ops[o]);
  if (ops != few) free(ops);
  return s;
}

static lw_status eval_frame(lw_eval *e, frame *f, lw_val **args, int n_args) {
  for (int32_t k = 0; k < f->plan->n; k++) {
    lw_inst *i = f->plan->insts[k];
    if (i->opcode == LW_OP_PARAMETER) {
      int64_t number = lw_inst_param_number(i);
      if (number < 0 || number >= n_args)
        return lw_error(LW_INVALID_ARGUMENT,
                        "parameter %lld of %s has no argument",
                        (long long)number, i->parent->name);
      f->vals[k] = lw_val_retain(args[number]);
      lw_val_release(e, args[number]);
      args[number] = NULL;
    } else {
      LW_TRY(eval_slot(e, f, k));
    }
    if (f->left[k] == 0) {
      lw_val_release(e, f->vals[k]);
      f->vals[k] = NULL;
    }
  }
  return NULL;
}

lw_status lw_eval_comp(lw_eval *e, const lw_comp *c, lw_val **args, int n_args,
                       lw_val **out) {
  lw_status s = NULL;
  if (e->depth >= MAX_CALL_DEPTH)
    s = lw_error(LW_INVALID_ARGUMENT,
                 "computation %s: calls nest deeper than "
                 "%d",
                 c->name, MAX_CALL_DEPTH);
  frame f = {0};
  if (!s) {
    f.plan = plan_of(e, c);
    size_t n = (size_t)f.plan->n;
    f.vals = calloc(n + 1, sizeof(lw_val *) + sizeof(int32_t));
    if (!f.vals) lw_oom(n * sizeof(lw_val *));
    f.left = (int32_t *)(f.vals + n);
    memcpy(f.left, f.plan->uses, n * sizeof(int32_t));
    e->depth++;
    s = eval_frame(e, &f, args, n_args);
    e->depth--;
    if (!s) {
      *out = f.vals[f.plan->root];
      f.vals[f.plan->root] = NULL;
    }
    for (size_t k = 0; k < n; k++) lw_val_release(e, f.vals[k]);
    free(f.vals);
  }
  for (int k = 0; k < n_args; k++) {
    lw_val_release(e, args[k]);
    args[k] = NULL;
  }
  return s;
}

/* ---- control flow and tuples ---- */

static lw_status eval_call(lw_eval *e, const lw_inst *i, lw_val **ops,
                           lw_val **out) {
  return lw_eval_comp(e, lw_inst_called(i, 0), ops, i->n_operands, out);
}

static lw_status eval_pred(lw_eval *e, const lw_comp *c, lw_val *arg,
                           bool *result) {
  lw_val *v = NULL;
  lw_val *args[1] = {lw_val_retain(arg)};
  LW_TRY(lw_eval_comp(e, c, args, 1, &v));
  bool ok = v->lit.shape->type == LW_PRED && lw_elems(v) == 1;
  if (ok) *result = *(const uint8_t *)v->lit.data != 0;
  lw_val_release(e, v);
  if (ok) return NULL;
  return lw_error(LW_INVALID_ARGUMENT, "condition %s must return pred[]",
                  c->name);
}

static lw_status eval_while(lw_eval *e, const lw_inst *i, lw_val **ops,
                            lw_val **out) {
  const lw_comp *cond = lw_inst_comp(i, LW_ATTR_CONDITION);
  const lw_comp *body = lw_inst_comp(i, LW_ATTR_BODY);
  lw_val *state = ops[0];
  ops[0] = NULL;
  for (;;) {
    bool go = false;
    lw_status s = eval_pred(e, cond, state, &go);
    if (!s && go) {
      lw_val *args[1] = {state}, *next = NULL;
      state = NULL;
      s = lw_eval_comp(e, body, args, 1, &next);
      state = next;
    }
    if (s) {
      lw_val_release(e, state);
      return s;
    }
    if (!go) break;
  }
  *out = state;
  return NULL;
}

static lw_status eval_conditional(lw_eval *e, const lw_inst *i, lw_val **ops,
                                  lw_val **out) {
  int32_t n = lw_inst_called_count(i);
  const lw_shape *s = ops[0]->lit.shape;
  if (!lw_shape_is_array(s) || s->elements != 1 || n < 1 ||
      i->n_operands != n + 1)
    return lw_error(LW_INVALID_ARGUMENT, "the branches do not fit");
  int64_t k = lw_literal_get_int(&ops[0]->lit, 0);
  if (s->type == LW_PRED) k = k ? 0 : 1;
  if (k < 0 || k >= n) k = n - 1;
  lw_val *args[1] = {ops[k + 1]};
  ops[k + 1] = NULL;
  return lw_eval_comp(e, lw_inst_called(i, (int32_t)k), args, 1, out);
}

static lw_status eval_tuple(lw_eval *e, const lw_inst *i, lw_val **ops,
                            lw_val **out) {
  (void)e;
  *out = lw_val_tuple(i->shape, i->n_operands, ops);
  for (int32_t k = 0; k < i->n_operands; k++) ops[k] = NULL;
  return NULL;
}

static lw_status take_elem(lw_val *tuple, int64_t index, lw_val **out) {
  if (index < 0 || index >= tuple->lit.n_elems)
    return lw_error(LW_INVALID_ARGUMENT, "tuple element %lld of %d",
                    (long long)index, tuple->lit.n_elems);
  *out = lw_val_retain(lw_val_elem(tuple, index));
  return NULL;
}

/* The operand itself, handed over. */
static lw_status eval_identity(lw_val **ops, lw_val **out) {
  *out = ops[0];
  ops[0] = NULL;
  return NULL;
}

/* ---- start/done pairs, run at once ---- */

/* A zero value of any shape, for the context elements of a start's tuple. */
static lw_status zero_value(lw_eval *e, const lw_shape *s, lw_val **out) {
  if (lw_shape_is_array(s)) {
    LW_TRY(lw_val_new(e, s, out));
    memset((*out)->lit.data, 0, (size_t)lw_shape_bytes(s));
    return NULL;
  }
  if (lw_shape_is_tuple(s) && s->n_elems)
    return lw_error(LW_UNIMPLEMENTED, "a start's context is a tuple");
  *out = lw_val_tuple(s, 0, NULL);
  return NULL;
}

/* The tuple a start returns: {operands, result, contexts...}. Takes over the
 * two references. */
static lw_status start_tuple(lw_eval *e, const lw_shape *s, lw_val *operands,
                             lw_val *result, lw_val **out) {
  lw_val *elems[MAX_START] = {operands, result};
  lw_status st = NULL;
  int32_t n = s->n_elems;
  if (!lw_shape_is_tuple(s) || n < 2 || n > MAX_START) {
    st = lw_error(LW_INVALID_ARGUMENT,
                  "a start's shape is {operands, result, ...}");
    n = 2;
  }
  for (int32_t k = 2; k < n && !st; k++)
    st = zero_value(e, s->elems[k], &elems[k]);
  if (!st) {
    *out = lw_val_tuple(s, n, elems);
    return NULL;
  }
  for (int32_t k = 0; k < n; k++) lw_val_release(e, elems[k]);
  return st;
}

static lw_status eval_async_start(lw_eval *e, const lw_inst *i, lw_val **ops,
                                  lw_val **out) {
  if (!lw_shape_is_tuple(i->shape) || i->shape->n_elems < 2)
    return lw_error(LW_INVALID_ARGUMENT,
                    "async-start's shape is {operands, result, ...}");
  for (int32_t k = 0; k < i->n_operands; k++) lw_val_retain(ops[k]);
  lw_val *operands = lw_val_tuple(i->shape->elems[0], i->n_operands, ops);
  lw_val *result = NULL;
  lw_status s = eval_call(e, i, ops, &result);
  if (s) {
    lw_val_release(e, operands);
    return s;
  }
  return start_tuple(e, i->shape, operands, result, out);
}

static lw_status eval_copy_start(lw_eval *e, const lw_inst *i, lw_val **ops,
                                 lw_val **out) {
  return start_tuple(e, i->shape, lw_val_retain(ops[0]), lw_val_retain(ops[0]),
                     out);
}

/* {operand(s), result(s), ...}: with several operands, tuples of them. */
static lw_status eval_collective_start(lw_eval *e, const lw_inst *i,
                                       lw_val **ops, lw_val **out) {
  lw_val *result = NULL, *operands;
  LW_TRY(lw_eval_collective(e, i, ops, &result));
  if (i->n_operands == 1) {
    operands = lw_val_retain(ops[0]);
  } else {
    for (int32_t k = 0; k < i->n_operands; k++) lw_val_retain(ops[k]);
    operands = lw_val_tuple(i->shape->elems[0], i->n_operands, ops);
  }
  return start_tuple(e, i->shape, operands, result, out);
}

/* ---- the opcode table ---- */

static lw_status needs_host(const lw_inst *i) {
  return lw_error(LW_UNIMPLEMENTED,
                  "%s needs a host at the other end; Lawson runs modules "
                  "without one",
                  lw_opcode_name(i->opcode));
}

static lw_status eval_scalar_u32(lw_eval *e, const lw_inst *i, int64_t v,
                                 lw_val **out) {
  if (i->shape->elements != 1 || !lw_prim_is_int(i->shape->type))
    return lw_error(LW_INVALID_ARGUMENT, "the result is one integer");
  LW_TRY(lw_val_new(e, i->shape, out));
  lw_literal_set_int(&(*out)->lit, 0, v);
  return NULL;
}

static lw_status dispatch(lw_eval *e, const lw_inst *i, lw_val **ops,
                          lw_val **out) {
  switch (i->opcode) {
#define CASE(op, call) \
  case LW_OP_##op:     \
    return call;
    CASE(CONSTANT, (*out = lw_val_borrow(lw_inst_literal(i)), NULL))
    CASE(TUPLE, eval_tuple(e, i, ops, out))
    CASE(GET_TUPLE_ELEMENT,
         take_elem(ops[0], lw_inst_i64(i, LW_ATTR_INDEX, -1), out))
    CASE(CALL, eval_call(e, i, ops, out))
    CASE(FUSION, eval_call(e, i, ops, out))
    CASE(WHILE, eval_while(e, i, ops, out))
    CASE(CONDITIONAL, eval_conditional(e, i, ops, out))
    CASE(ASYNC_START, eval_async_start(e, i, ops, out))
    CASE(COPY_START, eval_copy_start(e, i, ops, out))
    CASE(ALL_GATHER_START, eval_collective_start(e, i, ops, out))
    CASE(COLLECTIVE_PERMUTE_START, eval_collective_start(e, i, ops, out))
    CASE(ALL_GATHER_DONE, take_elem(ops[0], 1, out))
    CASE(COLLECTIVE_PERMUTE_DONE, take_elem(ops[0], 1, out))
    CASE(ASYNC_DONE, take_elem(ops[0], 1, out))
    CASE(COPY_DONE, take_elem(ops[0], 0, out))
    CASE(AFTER_ALL, (*out = lw_val_tuple(i->shape, 0, NULL), NULL))
    CASE(PARTITION_ID, eval_scalar_u32(e, i, e->opt.partition_id, out))
    CASE(REPLICA_ID, eval_scalar_u32(e, i, e->opt.replica_id, out))
    case LW_OP_ADD_DEPENDENCY:
    case LW_OP_ALL_REDUCE_DONE:
    case LW_OP_ASYNC_UPDATE:
    case LW_OP_COPY:
    case LW_OP_DOMAIN:
    case LW_OP_OPT_BARRIER:
      return eval_identity(ops, out);
    case LW_OP_ALL_GATHER:
    case LW_OP_ALL_REDUCE:
    case LW_OP_ALL_REDUCE_START:
    case LW_OP_ALL_TO_ALL:
    case LW_OP_COLLECTIVE_BROADCAST:
    case LW_OP_COLLECTIVE_PERMUTE:
    case LW_OP_RAGGED_ALL_TO_ALL:
    case LW_OP_REDUCE_SCATTER:
      return lw_eval_collective(e, i, ops, out);
    case LW_OP_INFEED:
    case LW_OP_OUTFEED:
    case LW_OP_RECV:
    case LW_OP_RECV_DONE:
    case LW_OP_SEND:
    case LW_OP_SEND_DONE:
      return needs_host(i);
      CASE(PARAMETER,
           lw_error(LW_INTERNAL, "a parameter has no value of its own"))
      CASE(BITCAST, lw_eval_bitcast(e, i, ops, out))
      CASE(BITCAST_CONVERT, lw_eval_bitcast_convert(e, i, ops, out))
      CASE(BROADCAST, lw_eval_broadcast(e, i, ops, out))
      CASE(CHOLESKY, lw_eval_cholesky(e, i, ops, out))
      CASE(CONCATENATE, lw_eval_concatenate(e, i, ops, out))
      CASE(CONVOLUTION, lw_eval_convolution(e, i, ops, out))
      CASE(CUSTOM_CALL, lw_eval_custom_call(e, i, ops, out))
      CASE(DOT, lw_eval_dot(e, i, ops, out))
      CASE(RAGGED_DOT, lw_eval_ragged_dot(e, i, ops, out))
      CASE(SCALED_DOT, lw_eval_scaled_dot(e, i, ops, out))
      CASE(DYNAMIC_RESHAPE, lw_eval_dynamic_reshape(e, i, ops, out))
      CASE(DYNAMIC_SLICE, lw_eval_dynamic_slice(e, i, ops, out))
      CASE(DYNAMIC_UPDATE_SLICE, lw_eval_dynamic_update_slice(e, i, ops, out))
      CASE(FFT, lw_eval_fft(e, i, ops, out))
      CASE(GATHER, lw_eval_gather(e, i, ops, out))
      CASE(GET_DIMENSION_SIZE, lw_eval_get_dimension_size(e, i, ops, out))
      CASE(SET_DIMENSION_SIZE, lw_eval_set_dimension_size(e, i, ops, out))
      CASE(IOTA, lw_eval_iota(e, i, ops, out))
      CASE(MAP, lw_eval_map(e, i, ops, out))
      CASE(PAD, lw_eval_pad(e, i, ops, out))
      CASE(REDUCE, lw_eval_reduce(e, i, ops, out))
      CASE(REDUCE_WINDOW, lw_eval_reduce_window(e, i, ops, out))
      CASE(RESHAPE, lw_eval_reshape(e, i, ops, out))
      CASE(REVERSE, lw_eval_reverse(e, i, ops, out))
      CASE(RNG, lw_eval_rng(e, i, ops, out))
      CASE(RNG_BIT_GENERATOR, lw_eval_rng_bit_generator(e, i, ops, out))
      CASE(RNG_GET_AND_UPDATE_STATE, lw_eval_rng_state(e, i, ops, out))
      CASE(SCAN, lw_eval_scan(e, i, ops, out))
      CASE(SCATTER, lw_eval_scatter(e, i, ops, out))
      CASE(SELECT_AND_SCATTER, lw_eval_select_and_scatter(e, i, ops, out))
      CASE(SLICE, lw_eval_slice(e, i, ops, out))
      CASE(SORT, lw_eval_sort(e, i, ops, out))
      CASE(TOPK, lw_eval_topk(e, i, ops, out))
      CASE(TRANSPOSE, lw_eval_transpose(e, i, ops, out))
      CASE(TRIANGULAR_SOLVE, lw_eval_triangular_solve(e, i, ops, out))
    case LW_OP_BATCH_NORM_GRAD:
    case LW_OP_BATCH_NORM_INFERENCE:
    case LW_OP_BATCH_NORM_TRAINING:
      return lw_eval_batch_norm(e, i, ops, out);
    case LW_OP_ABS:
    case LW_OP_ACOS:
    case LW_OP_ACOSH:
    case LW_OP_ADD:
    case LW_OP_AND:
    case LW_OP_ASIN:
    case LW_OP_ASINH:
    case LW_OP_ATAN2:
    case LW_OP_ATANH:
    case LW_OP_CBRT:
    case LW_OP_CEIL:
    case LW_OP_CLAMP:
    case LW_OP_CLZ:
    case LW_OP_COMPARE:
    case LW_OP_COMPLEX:
    case LW_OP_CONVERT:
    case LW_OP_COSH:
    case LW_OP_COSINE:
    case LW_OP_DIVIDE:
    case LW_OP_ERF:
    case LW_OP_EXPM1:
    case LW_OP_EXPONENTIAL:
    case LW_OP_FLOOR:
    case LW_OP_IMAG:
    case LW_OP_IS_FINITE:
    case LW_OP_LOG:
    case LW_OP_LOG1P:
    case LW_OP_LOGISTIC:
    case LW_OP_MAXIMUM:
    case LW_OP_MINIMUM:
    case LW_OP_MULHI:
    case LW_OP_MULTIPLY:
    case LW_OP_NEGATE:
    case LW_OP_NOT:
    case LW_OP_OR:
    case LW_OP_POPCNT:
    case LW_OP_POWER:
    case LW_OP_REAL:
    case LW_OP_REDUCE_PRECISION:
    case LW_OP_REMAINDER:
    case LW_OP_ROUND_AFZ:
    case LW_OP_ROUND_EVEN:
    case LW_OP_RSQRT:
    case LW_OP_SELECT:
    case LW_OP_SHIFT_LEFT:
    case LW_OP_SHIFT_RIGHT_ARITHMETIC:
    case LW_OP_SHIFT_RIGHT_LOGICAL:
    case LW_OP_SIGN:
    case LW_OP_SINE:
    case LW_OP_SINH:
    case LW_OP_SQRT:
    case LW_OP_STOCHASTIC_CONVERT:
    case LW_OP_SUBTRACT:
    case LW_OP_TAN:
    case LW_OP_TANH:
    case LW_OP_XOR:
      return lw_eval_elementwise(e, i, ops, out);
#undef CASE
    case LW_OPCODE_COUNT:
      break;
  }
  return lw_error(LW_INTERNAL, "opcode %d is unknown", (int)i->opcode);
}

/* Opcodes whose operands may be tuples or tokens. All others take arrays, and
 * their functions may count on data being there. */
static bool takes_anything(lw_opcode op) {
  return op == LW_OP_TUPLE || op == LW_OP_GET_TUPLE_ELEMENT ||
         op == LW_OP_CALL || op == LW_OP_FUSION || op == LW_OP_WHILE ||
         op == LW_OP_CONDITIONAL || op == LW_OP_OPT_BARRIER ||
         op == LW_OP_DOMAIN || op == LW_OP_COPY || op == LW_OP_CUSTOM_CALL ||
         op == LW_OP_AFTER_ALL || op == LW_OP_ADD_DEPENDENCY ||
         op == LW_OP_INFEED || op == LW_OP_OUTFEED || op == LW_OP_COPY_START ||
         (lw_opcode_table[op].flags & (LW_OPF_ASYNC | LW_OPF_COLL)) != 0;
}

static lw_status check_operands(const lw_inst *i, lw_val **ops) {
  const lw_opcode_info *info = &lw_opcode_table[i->opcode];
  if (info->arity >= 0 && i->n_operands != info->arity &&
      !(i->opcode == LW_OP_CONVOLUTION && i->n_operands == 2))
    return lw_error(LW_INVALID_ARGUMENT, "takes %d operands, has %d",
                    info->arity, i->n_operands);
  if (takes_anything(i->opcode)) return NULL;
  if (info->arity < 0 && i->n_operands < 1)
    return lw_error(LW_INVALID_ARGUMENT, "has no operands");
  for (int32_t k = 0; k < i->n_operands; k++)
    if (!lw_shape_is_array(ops[k]->lit.shape))
      return lw_error(LW_INVALID_ARGUMENT, "operand %d is no array", k);
  if ((info->flags & LW_OPF_MOVE) && i->n_operands > 0 &&
      i->opcode != LW_OP_BITCAST && i->shape->type != ops[0]->lit.shape->type)
    return lw_error(LW_INVALID_ARGUMENT, "the result has another type");
  return NULL;
}

/* A value may be smaller than declared in dynamic dims, and only there. All
 * that follows relies on types and ranks being as declared. */
static bool value_fits(const lw_val *v, const lw_shape *s) {
  const lw_shape *have = v->lit.shape;
  if (have == s && !lw_shape_is_tuple(s)) return true;
  if (have->type != s->type || have->rank != s->rank) return false;
  if (lw_shape_is_tuple(s)) {
    if (v->lit.n_elems != s->n_elems) return false;
    for (int32_t k = 0; k < s->n_elems; k++)
      if (!value_fits(lw_val_elem(v, k), s->elems[k])) return false;
    return true;
  }
  for (int32_t d = 0; d < s->rank; d++)
    if (s->dynamic && s->dynamic[d] ? have->dims[d] > s->dims[d]
                                    : have->dims[d] != s->dims[d])
      return false;
  return true;
}

static lw_status check_result(lw_eval *e, const lw_inst *i, lw_val **out) {
  if (value_fits(*out, i->shape)) return NULL;
  lw_status s = lw_error(LW_INVALID_ARGUMENT, "is declared %s but gives %s",
                         lw_shape_str(e->m->ctx, i->shape),
                         lw_shape_str(e->m->ctx, (*out)->lit.shape));
  lw_val_release(e, *out);
  *out = NULL;
  return s;
}

/* Errors inside called computations carry their own instruction's name. */
static bool only_calls(lw_opcode op) {
  return op == LW_OP_CALL || op == LW_OP_FUSION || op == LW_OP_WHILE ||
         op == LW_OP_CONDITIONAL || op == LW_OP_ASYNC_START;
}

lw_status lw_eval_inst(lw_eval *e, const lw_inst *i, lw_val **ops,
                       lw_val **out) {
  e->steps++;
  if (e->opt.max_steps && e->steps > e->opt.max_steps)
    return lw_error(LW_DEADLINE_EXCEEDED,
                    "gave up after %lld evaluated instructions",
                    (long long)e->opt.max_steps);
  lw_status s = check_operands(i, ops);
  if (!s) {
    s = dispatch(e, i, ops, out);
    if (s && only_calls(i->opcode)) return s;
  }
  if (!s) s = check_result(e, i, out);
  if (!s) return NULL;
  if (i->line > 0)
    return lw_status_annotate(s, "%s (%s, line %d)", i->name,
                              lw_opcode_name(i->opcode), i->line);
  return lw_status_annotate(s, "%s (%s)", i->name, lw_opcode_name(i->opcode));
}

/* ---- entry points ---- */

/* Three quarters of the machine's memory. */
static int64_t default_limit(void) {
  int64_t pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? pages / 4 * 3 * size : (int64_t)4 << 30;
}

static lw_eval *eval_new(const lw_module *m, const lw_interp_options *opts) {
  lw_arena *a = lw_arena_new();
  lw_eval *e = LW_NEW(a, lw_eval);
  e->m = m;
  e->arena = a;
  if (opts) e->opt = *opts;
  if (e->opt.max_bytes <= 0) e->opt.max_bytes = default_limit();
  e->rng_state[0] = LW_RNG_STATE_LOW;
  e->rng_state[1] = LW_RNG_STATE_HIGH;
  return e;
}

static lw_status check_args(const lw_module *m, const lw_literal *const *args,
                            int n_args) {
  const lw_comp *c = m->entry;
  if (!c || !c->root)
    return lw_error(LW_INVALID_ARGUMENT, "module %s has no entry", m->name);
  if ((size_t)n_args != c->params.len)
    return lw_error(LW_INVALID_ARGUMENT,
                    "%s takes %zu arguments, %d were given", c->name,
                    c->params.len, n_args);
  for (int k = 0; k < n_args; k++) {
    const lw_shape *want = c->params.data[k]->shape;
    if (!lw_shape_compatible(want, args[k]->shape) &&
        !(want->type == args[k]->shape->type && lw_shape_is_array(want) &&
          lw_shape_same_dims(want, args[k]->shape)))
      return lw_error(LW_INVALID_ARGUMENT,
                      "argument %d of %s is %s, the parameter %s is %s", k,
                      c->name, lw_shape_str(m->ctx, args[k]->shape),
                      c->params.data[k]->name, lw_shape_str(m->ctx, want));
  }
  return NULL;
}

lw_status lw_interp_run(const lw_module *m, const lw_literal *const *args,
                        int n_args, const lw_interp_options *opts,
                        lw_arena *out_arena, lw_literal **result) {
  LW_TRY(check_args(m, args, n_args));
  lw_eval *e = eval_new(m, opts);
  lw_val **vals = LW_NEW_ARRAY(e->arena, lw_val *, n_args + 1), *root = NULL;
  for (int k = 0; k < n_args; k++) vals[k] = lw_val_borrow(args[k]);
  lw_status s = lw_eval_comp(e, m->entry, vals, n_args, &root);
  if (!s) s = lw_val_export(out_arena, m->entry->root->shape, root, result);
  lw_val_release(e, root);
  lw_arena_free(e->arena);
  return s;
}

lw_status lw_interp_eval_inst(const lw_inst *inst,
                              const lw_literal *const *operands,
                              const lw_interp_options *opts,
                              lw_arena *out_arena, lw_literal **result) {
  lw_eval *e = eval_new(inst->parent->module, opts);
  int32_t n = inst->n_operands;
  lw_val **vals = LW_NEW_ARRAY(e->arena, lw_val *, n + 1), *v = NULL;
  for (int32_t k = 0; k < n; k++) vals[k] = lw_val_borrow(operands[k]);
  lw_status s = lw_eval_inst(e, inst, vals, &v);
  if (!s) s = lw_val_export(out_arena, inst->shape, v, result);
  lw_val_release(e, v);
  for (int32_t k = 0; k < n; k++) lw_val_release(e, vals[k]);
  lw_arena_free(e->arena);
  return s;
}
