/* async-to-sync: start and done pairs run at once.
 *
 * One device executes one kernel after another; a pair is its operation, at the
 * place of the done. Instructions between start and done do not see the result,
 * and the operands are values, so moving the work is not observable.
 */
#include <string.h>

#include "passes/inline.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

static lw_opcode sync_opcode(lw_opcode done) {
  switch ((int)done) {
    case LW_OP_ALL_GATHER_DONE:
      return LW_OP_ALL_GATHER;
    case LW_OP_ALL_REDUCE_DONE:
      return LW_OP_ALL_REDUCE;
    case LW_OP_COLLECTIVE_PERMUTE_DONE:
      return LW_OP_COLLECTIVE_PERMUTE;
    case LW_OP_COPY_DONE:
      return LW_OP_COPY;
    default:
      return LW_OPCODE_COUNT;
  }
}

static bool takes_attr(lw_opcode op, lw_attr_id id) {
  int n;
  const lw_op_attr *v = lw_op_attrs(op, &n);
  for (int k = 0; k < n; k++)
    if (v[k].id == id) return true;
  return false;
}

/* Start (and updates) go once nobody waits for them, side effects or not: the
 * effect has moved into the operation. */
static void drop_chain(lw_inst *i) {
  while (i && i->n_uses == 0 && !lw_inst_is_root(i) &&
         (lw_opcode_table[i->opcode].flags & LW_OPF_ASYNC)) {
    lw_inst *before = i->n_operands ? lw_op(i, 0) : NULL;
    lw_inst_remove(i);
    i = before;
  }
}

static lw_inst *start_of(lw_inst *done) {
  lw_inst *s = lw_op(done, 0);
  while (s->opcode == LW_OP_ASYNC_UPDATE) s = lw_op(s, 0);
  return s;
}

static lw_inst *sync_of(lw_inst *done, lw_inst *start) {
  lw_comp *c = done->parent;
  lw_inst **ops = LW_NEW_ARRAY(c->module->arena, lw_inst *, start->n_operands);
  for (int32_t k = 0; k < start->n_operands; k++) ops[k] = lw_op(start, k);
  if (start->opcode == LW_OP_ASYNC_START)
    return lw_inline_body(done, lw_inst_comp(start, LW_ATTR_CALLS), ops,
                          start->n_operands);
  lw_opcode op = sync_opcode(done->opcode);
  lw_inst *i = lw_inst_new(c, op, done->shape, NULL, start->n_operands, ops);
  for (int32_t k = 0; k < start->n_attrs; k++)
    if (takes_attr(op, start->attrs[k].id))
      lw_inst_set_attr(i, &start->attrs[k]);
  lw_inst_copy_source(i, start);
  lw_inst_move_before(i, done);
  return i;
}

static bool is_pair(const lw_inst *done, const lw_inst *start) {
  switch ((int)done->opcode) {
    case LW_OP_ASYNC_DONE:
      return start->opcode == LW_OP_ASYNC_START;
    case LW_OP_ALL_GATHER_DONE:
      return start->opcode == LW_OP_ALL_GATHER_START;
    case LW_OP_ALL_REDUCE_DONE:
      return start->opcode == LW_OP_ALL_REDUCE_START;
    case LW_OP_COLLECTIVE_PERMUTE_DONE:
      return start->opcode == LW_OP_COLLECTIVE_PERMUTE_START;
    case LW_OP_COPY_DONE:
      return start->opcode == LW_OP_COPY_START;
    default:
      return false;
  }
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  for (lw_comp *c = m->first_comp; c; c = c->next)
    for (lw_inst *i = c->first, *next; i; i = next) {
      next = i->next;
      if (i->n_operands != 1) continue;
      lw_inst *start = start_of(i), *last = lw_op(i, 0);
      if (!is_pair(i, start)) continue;
      if (!lw_pass_fuel(env)) return NULL;
      lw_inst_replace_uses(i, sync_of(i, start));
      lw_inst_remove(i);
      drop_chain(last);
      lw_pass_count(env, "pairs made one", 1);
      *changed = true;
    }
  return NULL;
}

const lw_pass lw_pass_async_to_sync = {
    "async-to-sync", "start and done pairs become their operation", NULL, run};
