/* NaN observation: a backward flow from the instructions that look at bits.
 *
 * Start: operands of bitcast-converts from floats, of total-order compares,
 * and of custom calls. A value that is observed makes observed whatever it was
 * moved from: operands of movers, what flows into a parameter or out of a
 * called computation's root, all of a loop's state. Arithmetic ends the flow:
 * it makes a NaN of its own.
 */
#include "kernel/observe.h"

#include <stdlib.h>

typedef struct {
  const lw_module *m;
  bool *seen;
  LW_VEC(const lw_inst *) work;
  const lw_inst **caller; /* by computation id: one caller... */
  bool *shared;           /* ... or several: all callers are searched */
} flow;

static void mark(flow *f, const lw_inst *i) {
  if (!i || f->seen[i->id]) return;
  f->seen[i->id] = true;
  lw_vec_push(&f->work, i);
}

static bool has_bits(const lw_shape *s) {
  if (lw_shape_is_tuple(s)) return true;
  return lw_prim_is_float(s->type) || lw_prim_is_complex(s->type);
}

static bool looks(const lw_inst *i) {
  switch ((int)i->opcode) {
    case LW_OP_BITCAST_CONVERT:
    case LW_OP_CUSTOM_CALL:
    case LW_OP_TOPK:
      return true;
    case LW_OP_COMPARE:
      return lw_inst_i64(i, LW_ATTR_COMPARE_TYPE, 0) == LW_CT_TOTALORDER;
    default:
      return false;
  }
}

/* The result's NaN may be an operand's, bits and all. */
static bool moves(const lw_inst *i) {
  if (lw_opcode_table[i->opcode].flags &
      (LW_OPF_MOVE | LW_OPF_COLL | LW_OPF_ASYNC))
    return true;
  switch ((int)i->opcode) {
    case LW_OP_SELECT:
    case LW_OP_ABS:
    case LW_OP_NEGATE:
    case LW_OP_REAL:
    case LW_OP_IMAG:
    case LW_OP_COMPLEX:
    case LW_OP_TUPLE:
    case LW_OP_GET_TUPLE_ELEMENT:
    case LW_OP_OPT_BARRIER:
    case LW_OP_DOMAIN:
    case LW_OP_ADD_DEPENDENCY:
    case LW_OP_SORT:
    case LW_OP_SCATTER:
    case LW_OP_SELECT_AND_SCATTER:
    case LW_OP_REDUCE: /* of one element, or by a user's selecting reducer */
    case LW_OP_REDUCE_WINDOW:
    case LW_OP_MAP:
    case LW_OP_SCAN:
    case LW_OP_WHILE:
    case LW_OP_CONDITIONAL:
    case LW_OP_CALL:
    case LW_OP_FUSION:
    case LW_OP_SET_DIMENSION_SIZE:
      return true;
    case LW_OP_CONVERT:
      return lw_inst_operand(i, 0)->shape->type == i->shape->type;
    default:
      return false;
  }
}

static void mark_operands(flow *f, const lw_inst *i) {
  for (int32_t k = 0; k < i->n_operands; k++)
    if (has_bits(lw_inst_operand(i, k)->shape)) mark(f, lw_inst_operand(i, k));
}

static void from_caller(flow *f, const lw_inst *call) {
  mark_operands(f, call);
  if (call->opcode == LW_OP_WHILE)
    mark(f, lw_inst_comp(call, LW_ATTR_BODY)->root);
}

static void from_callers(flow *f, const lw_inst *param) {
  const lw_comp *c = param->parent;
  if (!f->shared[c->id]) {
    if (f->caller[c->id]) from_caller(f, f->caller[c->id]);
    return;
  }
  for (const lw_comp *d = f->m->first_comp; d; d = d->next)
    for (const lw_inst *i = d->first; i; i = i->next)
      for (int32_t k = 0; k < lw_inst_called_count(i); k++)
        if (lw_inst_called(i, k) == c) from_caller(f, i);
}

static void spread(flow *f, const lw_inst *i) {
  if (i->opcode == LW_OP_PARAMETER) {
    from_callers(f, i);
    return;
  }
  if (!moves(i)) return;
  for (int32_t k = 0; k < lw_inst_called_count(i); k++)
    mark(f, lw_inst_called(i, k)->root);
  if (i->opcode != LW_OP_FUSION) mark_operands(f, i);
}

static void find_callers(flow *f) {
  for (const lw_comp *c = f->m->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next)
      for (int32_t k = 0; k < lw_inst_called_count(i); k++) {
        int32_t id = lw_inst_called(i, k)->id;
        if (f->caller[id] && f->caller[id] != i) f->shared[id] = true;
        f->caller[id] = i;
      }
}

bool *lw_nan_observed(const lw_module *m, lw_arena *a) {
  flow f = {.m = m};
  f.seen = LW_NEW_ARRAY(a, bool, m->n_inst_ids + 1);
  f.caller = LW_NEW_ARRAY(a, const lw_inst *, m->n_comp_ids + 1);
  f.shared = LW_NEW_ARRAY(a, bool, m->n_comp_ids + 1);
  find_callers(&f);
  for (const lw_comp *c = m->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next)
      if (looks(i)) mark_operands(&f, i);
  while (f.work.len) spread(&f, lw_vec_pop(&f.work));
  lw_vec_free(&f.work);
  return f.seen;
}

bool lw_fusion_observes_nans(const lw_inst *fusion, const bool *observed) {
  const lw_comp *c = lw_inst_comp(fusion, LW_ATTR_CALLS);
  for (const lw_inst *i = c ? c->first : NULL; i; i = i->next) {
    if (observed[i->id] && i->opcode != LW_OP_PARAMETER) return true;
    for (int32_t k = 0; k < lw_inst_called_count(i); k++) {
      const lw_comp *r = lw_inst_called(i, k);
      for (const lw_inst *j = r->first; j; j = j->next)
        if (observed[j->id] && j->opcode != LW_OP_PARAMETER) return true;
    }
  }
  return false;
}
