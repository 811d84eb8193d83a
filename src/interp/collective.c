/* Collectives on one device: every group has one member, so that data stays
 * where it is. Groups that name more devices are refused. */
#include "interp/eval.h"

static bool one_member(const lw_inst *i) {
  const lw_attr *a = lw_inst_attr(i, LW_ATTR_REPLICA_GROUPS);
  const lw_replica_groups *g = a ? a->u.groups : NULL;
  if (!g) return true;
  if (g->kind == LW_RG_IOTA) return g->iota_group_size == 1;
  if (g->kind == LW_RG_MESH) return false;
  for (int32_t k = 0; k < g->n_groups; k++)
    if (g->group_sizes[k] > 1) return false;
  return true;
}

static const lw_shape *result_shape(const lw_inst *i, int32_t k) {
  const lw_shape *s = i->shape;
  if (i->opcode == LW_OP_ALL_GATHER_START ||
      i->opcode == LW_OP_COLLECTIVE_PERMUTE_START)
    s = lw_shape_is_tuple(s) && s->n_elems > 1 ? s->elems[1] : s;
  return lw_shape_is_tuple(s) && k < s->n_elems ? s->elems[k] : s;
}

static lw_status many(const lw_inst *i) {
  return lw_error(LW_UNIMPLEMENTED,
                  "%s over several devices; the evaluator is one device",
                  lw_opcode_name(i->opcode));
}

/* A device that is no pair's target receives zeros. */
static lw_status permute(lw_eval *e, const lw_inst *i, lw_val **ops,
                         lw_val **out) {
  int32_t n = 0;
  const int64_t *p = lw_inst_i64s(i, LW_ATTR_SOURCE_TARGET_PAIRS, &n);
  bool kept = false;
  for (int32_t k = 0; k + 1 < n; k += 2) {
    if (p[k] != p[k + 1]) return many(i);
    kept |= p[k] == e->opt.partition_id || p[k] == e->opt.replica_id;
  }
  if (i->n_operands != 1)
    return lw_error(LW_UNIMPLEMENTED, "collective-permute in place");
  if (kept) {
    *out = lw_val_retain(ops[0]);
    return NULL;
  }
  LW_TRY(lw_val_new(e, ops[0]->lit.shape, out));
  memset((*out)->lit.data, 0, (size_t)lw_shape_bytes((*out)->lit.shape));
  return NULL;
}

lw_status lw_eval_collective(lw_eval *e, const lw_inst *i, lw_val **ops,
                             lw_val **out) {
  if (i->opcode == LW_OP_COLLECTIVE_PERMUTE ||
      i->opcode == LW_OP_COLLECTIVE_PERMUTE_START)
    return permute(e, i, ops, out);
  if (i->opcode == LW_OP_RAGGED_ALL_TO_ALL) return many(i);
  if (!one_member(i)) return many(i);
  for (int32_t k = 0; k < i->n_operands; k++)
    if (!lw_shape_same_dims(result_shape(i, k), lw_inst_operand(i, k)->shape))
      return many(i);
  const lw_shape *s = i->shape;
  if (i->opcode == LW_OP_ALL_GATHER_START)
    s = lw_shape_is_tuple(s) && s->n_elems > 1 ? s->elems[1] : s;
  for (int32_t k = 0; k < i->n_operands; k++) lw_val_retain(ops[k]);
  if (lw_shape_is_tuple(s)) {
    *out = lw_val_tuple(s, i->n_operands, ops);
    return NULL;
  }
  if (i->n_operands != 1) {
    for (int32_t k = 0; k < i->n_operands; k++) lw_val_release(e, ops[k]);
    return lw_error(LW_INVALID_ARGUMENT, "several operands, one result");
  }
  *out = ops[0];
  return NULL;
}
