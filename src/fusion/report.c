/* Counting kernels and bytes. */
#include "fusion/report.h"

#include "fusion/fuse.h"

/* Only names memory, or says what runs when. */
static bool runs_nothing(const lw_inst *i) {
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

/* Some kernel reads it, directly or by another name. */
static bool is_read(const lw_inst *i, int depth) {
  for (const lw_use *u = i->uses; u; u = u->next) {
    if (!runs_nothing(u->user)) return true;
    bool renames = u->user->opcode == LW_OP_GET_TUPLE_ELEMENT ||
                   u->user->opcode == LW_OP_BITCAST ||
                   u->user->opcode == LW_OP_OPT_BARRIER;
    if (renames && depth < 64 && is_read(u->user, depth + 1)) return true;
  }
  return false;
}

/* A tuple's elements count one by one. */
static int64_t read_bytes(const lw_inst *i) {
  if (!lw_shape_is_tuple(i->shape))
    return is_read(i, 0) ? lw_shape_bytes(i->shape) : 0;
  int64_t n = 0;
  for (const lw_use *u = i->uses; u; u = u->next)
    if (u->user->opcode == LW_OP_GET_TUPLE_ELEMENT && is_read(u->user, 0))
      n += lw_shape_bytes(u->user->shape);
  return n;
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
  for (int32_t k = 0; k < n; k++)
    for (const lw_inst *i = comps[k]->first; i; i = i->next) {
      r.instructions++;
      if (lw_inst_is_fusion(i)) count_body(lw_fusion_body(i), &r);
      if (runs_nothing(i)) continue;
      r.kernels++;
      r.library += is_library(i);
      r.intermediate_bytes += read_bytes(i);
    }
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
