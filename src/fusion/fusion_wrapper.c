/* fusion-wrapper: every computing instruction that is left becomes a fusion of
 * one.
 *
 * The plan and the code generator then see four kinds of thing only: fusions,
 * library ops, control flow, and names for memory (parameters, constants,
 * tuples). `--fusion=none` is this pass alone, so fused and unfused code go
 * through the same emitter. A reshape that is left only gives the same bytes
 * other dims: it becomes a bitcast, which is a name. Constants that a kernel
 * can hold as immediates go inside.
 */
#include "fusion/fuse.h"
#include "fusion/fusion.h"
#include "fusion/groups.h"
#include "trace/trace.h"

/* What stays as it is: memory's names, control flow, library calls, and what
 * talks to other devices or the host. */
static bool stays(const lw_inst *i) {
  if (lw_opcode_table[i->opcode].flags & (LW_OPF_COLL | LW_OPF_ASYNC))
    return true;
  switch ((int)i->opcode) {
    case LW_OP_PARAMETER:
    case LW_OP_CONSTANT:
    case LW_OP_TUPLE:
    case LW_OP_GET_TUPLE_ELEMENT:
    case LW_OP_BITCAST:
    case LW_OP_FUSION:
    case LW_OP_WHILE:
    case LW_OP_CONDITIONAL:
    case LW_OP_CALL:
    case LW_OP_CUSTOM_CALL:
    case LW_OP_FFT:
    case LW_OP_RNG:
    case LW_OP_RNG_GET_AND_UPDATE_STATE:
    case LW_OP_CHOLESKY:
    case LW_OP_TRIANGULAR_SOLVE:
    case LW_OP_AFTER_ALL:
    case LW_OP_ADD_DEPENDENCY:
    case LW_OP_DOMAIN:
    case LW_OP_OPT_BARRIER:
    case LW_OP_INFEED:
    case LW_OP_OUTFEED:
    case LW_OP_PARTITION_ID:
    case LW_OP_REPLICA_ID:
      return true;
    default:
      return false;
  }
}

/* Adds dims of one element only: dims in rising order. */
static bool broadcast_keeps_order(const lw_inst *i) {
  int32_t n;
  const int64_t *d = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  for (int32_t k = 1; k < n; k++)
    if (d[k] <= d[k - 1]) return false;
  return true;
}

/* Row-major bytes that only get other dims: no kernel, another name. */
static bool only_renames(const lw_inst *i) {
  const lw_inst *o = i->n_operands ? lw_inst_operand(i, 0) : NULL;
  if (!o || i->n_control_preds || !lw_shape_is_array(i->shape) ||
      !lw_shape_is_array(o->shape) || i->shape->type != o->shape->type ||
      i->shape->elements != o->shape->elements ||
      !lw_layout_is_descending(i->shape->layout) ||
      !lw_layout_is_descending(o->shape->layout) ||
      lw_shape_has_dynamic(i->shape) || lw_shape_has_dynamic(o->shape))
    return false;
  if (i->opcode == LW_OP_RESHAPE) return true;
  return i->opcode == LW_OP_BROADCAST && broadcast_keeps_order(i);
}

static lw_fusion_kind kind_of(const lw_inst *i) {
  return i->opcode == LW_OP_REDUCE || i->opcode == LW_OP_SCATTER
             ? LW_FUSION_INPUT
             : LW_FUSION_LOOP;
}

/* Those that waited for `from` wait for `to`. */
static void move_waiters(lw_comp *c, const lw_inst *from, lw_inst *to) {
  for (lw_inst *i = c->first; i; i = i->next)
    for (int32_t k = 0; k < i->n_control_preds; k++)
      if (i->control_preds[k] == from) i->control_preds[k] = to;
}

/* The users of i read a bitcast of its operand. */
static void make_bitcast(lw_comp *c, lw_inst *i, lw_trace *trace) {
  lw_inst *o = lw_inst_operand(i, 0);
  lw_inst *b = lw_inst_new(c, LW_OP_BITCAST, i->shape, NULL, 1, &o);
  lw_inst_copy_source(b, i);
  lw_trace_rename(trace, b->name, i->name);
  lw_inst_move_before(b, i);
  lw_inst_replace_uses(i, b);
  lw_inst_remove(i);
}

static void wrap(lw_comp *c, lw_inst *i, bool control, lw_pass_env *env) {
  const char *op = lw_opcode_name(i->opcode);
  const char *name = lw_arena_printf(env->scratch, "wrapped_%s", op);
  const char *body =
      lw_arena_printf(env->scratch, "wrapped_%s_computation", op);
  const char *was = i->name;
  int32_t n_preds = i->n_control_preds;
  lw_inst **preds = i->control_preds;
  lw_inst *f = lw_fusion_new(i, kind_of(i), name, body);
  lw_trace_rename(env->trace, f->name, was);
  lw_trace_rename(env->trace, lw_fusion_body(f)->root->name, was);
  for (int32_t k = 0; k < n_preds; k++) lw_inst_add_control_pred(f, preds[k]);
  if (control) move_waiters(c, i, f);
  for (int32_t k = 0; k < f->n_operands; k++)
    if (lw_is_immediate(lw_inst_operand(f, k)))
      (void)lw_fusion_take(f, lw_inst_operand(f, k--));
}

static void remove_dead_constants(lw_comp *c) {
  for (lw_inst *i = c->first, *next; i; i = next) {
    next = i->next;
    if (i->opcode == LW_OP_CONSTANT && !i->n_uses && !lw_inst_is_root(i))
      lw_inst_remove(i);
  }
}

static lw_status run_pass(lw_module *m, lw_pass_env *env, bool *changed) {
  int32_t n;
  lw_comp **comps = lw_comps_to_fuse(m, env->scratch, &n);
  for (int32_t k = 0; k < n; k++) {
    uint8_t *control = lw_control_touched(comps[k], env->scratch);
    for (lw_inst *i = comps[k]->first, *next; i; i = next) {
      next = i->next;
      if (stays(i) || !lw_pass_fuel(env)) continue;
      if (!control[i->id] && only_renames(i)) {
        make_bitcast(comps[k], i, env->trace);
        lw_pass_count(env, "bitcasts", 1);
      } else {
        wrap(comps[k], i, control[i->id], env);
        lw_pass_count(env, "wrapped", 1);
      }
      *changed = true;
    }
    if (*changed) remove_dead_constants(comps[k]);
  }
  return NULL;
}

const lw_pass lw_pass_fusion_wrapper = {
    "fusion-wrapper", "makes a fusion of one from every computing instruction",
    NULL, run_pass};
