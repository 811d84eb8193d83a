/* Counting kernels and bytes. */
#include "fusion/report.h"

#include "fusion/fuse.h"

bool lw_runs_nothing(const lw_inst *i) {
  switch ((int)i->opcode) {
    case LW_OP_PARAMETER:
    case LW_OP_CONSTANT:
    case LW_OP_TUPLE:
    case LW_OP_GET_TUPLE_ELEMENT:
    case LW_OP_BITCAST:
    case LW_OP_WHILE:
    case LW_OP_CONDITIONAL:
    case LW_OP_CALL:
    case LW_OP_AFTER_ALL:
    case LW_OP_ADD_DEPENDENCY:
    case LW_OP_DOMAIN:
    case LW_OP_OPT_BARRIER:
      return true;
    default:
      return false;
  }
}

static bool is_library(const lw_inst *i) {
  return i->opcode == LW_OP_FFT || i->opcode == LW_OP_CUSTOM_CALL ||
         i->opcode == LW_OP_CHOLESKY || i->opcode == LW_OP_TRIANGULAR_SOLVE;
}

/* Calls only name memory: what flows into one is read by the callee, what its
 * root holds is read behind it. caller: computation -> its call. */
typedef struct {
  lw_map caller;
} names;

static bool is_read(const names *n, const lw_inst *i, int depth);

/* Element k of a call's result (k < 0: all of it) is read. */
static bool call_is_read(const names *n, const lw_inst *call, int64_t k,
                         int depth) {
  for (const lw_use *u = call->uses; u; u = u->next) {
    bool element = u->user->opcode == LW_OP_GET_TUPLE_ELEMENT;
    if (element && k >= 0 && lw_inst_i64(u->user, LW_ATTR_INDEX, -1) != k)
      continue;
    if (element ? is_read(n, u->user, depth + 1) : !lw_runs_nothing(u->user))
      return true;
  }
  return false;
}

static bool use_reads(const names *n, const lw_use *u, int depth) {
  const lw_inst *i = u->user;
  const lw_inst *call = lw_map_ptr(&n->caller, i->parent);
  switch ((int)i->opcode) {
    case LW_OP_GET_TUPLE_ELEMENT:
    case LW_OP_BITCAST:
    case LW_OP_OPT_BARRIER:
      return is_read(n, i, depth + 1);
    case LW_OP_CALL: {
      const lw_comp *c = lw_inst_comp(i, LW_ATTR_TO_APPLY);
      return is_read(n, c->params.data[u->slot], depth + 1);
    }
    case LW_OP_TUPLE:
      return call && lw_inst_is_root(i) &&
             call_is_read(n, call, u->slot, depth);
    default:
      return !lw_runs_nothing(i);
  }
}

/* Some kernel reads it, directly or by another name. */
static bool is_read(const names *n, const lw_inst *i, int depth) {
  if (depth > 64) return false;
  for (const lw_use *u = i->uses; u; u = u->next)
    if (use_reads(n, u, depth)) return true;
  const lw_inst *call = lw_map_ptr(&n->caller, i->parent);
  return call && lw_inst_is_root(i) && call_is_read(n, call, -1, depth);
}

/* A tuple's elements count one by one. */
static int64_t read_bytes(const names *n, const lw_inst *i) {
  if (!lw_shape_is_tuple(i->shape))
    return is_read(n, i, 0) ? lw_shape_bytes(i->shape) : 0;
  const lw_inst *call = lw_map_ptr(&n->caller, i->parent);
  int64_t bytes = 0;
  for (const lw_use *u = i->uses; u; u = u->next)
    if (u->user->opcode == LW_OP_GET_TUPLE_ELEMENT && is_read(n, u->user, 0))
      bytes += lw_shape_bytes(u->user->shape);
  if (call && lw_inst_is_root(i)) /* the callee is this kernel alone */
    for (int32_t k = 0; k < i->shape->n_elems; k++)
      if (call_is_read(n, call, k, 0))
        bytes += lw_shape_bytes(i->shape->elems[k]);
  return bytes;
}

static names find_calls(lw_comp *const *comps, int32_t n) {
  names r = {0};
  for (int32_t k = 0; k < n; k++)
    for (const lw_inst *i = comps[k]->first; i; i = i->next)
      if (i->opcode == LW_OP_CALL)
        lw_map_set_ptr(&r.caller, lw_inst_comp(i, LW_ATTR_TO_APPLY), i);
  return r;
}

static void count_body(const lw_comp *body, lw_fusion_report *r) {
  int64_t ops = 0;
  for (const lw_inst *i = body->first; i; i = i->next) {
    r->instructions++;
    if (i->opcode == LW_OP_PARAMETER) continue;
    r->fused_ops++;
    bool output = i == body->root;
    for (const lw_use *u = i->uses; u; u = u->next)
      output |= u->user == body->root && u->user->opcode == LW_OP_TUPLE;
    if (!output && i->opcode != LW_OP_CONSTANT && lw_shape_is_array(i->shape))
      r->kept_bytes += lw_shape_bytes(i->shape);
    ops += i->opcode != LW_OP_CONSTANT && i->opcode != LW_OP_TUPLE;
  }
  r->fusions += ops > 1;
}

lw_fusion_report lw_fusion_report_of(const lw_module *m) {
  lw_fusion_report r = {0};
  lw_arena *a = lw_arena_new();
  int32_t n;
  lw_comp **comps = lw_comps_to_fuse(m, a, &n);
  names calls = find_calls(comps, n);
  for (int32_t k = 0; k < n; k++)
    for (const lw_inst *i = comps[k]->first; i; i = i->next) {
      r.instructions++;
      if (lw_inst_is_fusion(i)) count_body(lw_fusion_body(i), &r);
      if (lw_runs_nothing(i)) continue;
      r.kernels++;
      r.library += is_library(i);
      r.intermediate_bytes += read_bytes(&calls, i);
    }
  lw_map_free(&calls.caller);
  lw_arena_free(a);
  return r;
}

void lw_fusion_report_print(lw_buf *b, const lw_fusion_report *r) {
  lw_buf_printf(b,
                "instructions=%lld kernels=%lld fusions=%lld library=%lld "
                "fused_ops=%lld intermediate_bytes=%lld kept_bytes=%lld\n",
                (long long)r->instructions, (long long)r->kernels,
                (long long)r->fusions, (long long)r->library,
                (long long)r->fused_ops, (long long)r->intermediate_bytes,
                (long long)r->kept_bytes);
}
