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

static bool ragged_fits(const lw_inst *i, lw_val **ops) {
  const lw_shape *in = ops[0]->lit.shape, *out = ops[1]->lit.shape;
  const lw_shape *n = ops[2]->lit.shape;
  bool fits = in->rank >= 1 && in->rank == out->rank && in->type == out->type &&
              i->shape->type == out->type && n->rank == 1;
  for (int32_t d = 1; fits && d < in->rank; d++)
    fits = in->dims[d] == out->dims[d];
  for (int32_t k = 2; fits && k < 6; k++)
    fits = lw_prim_is_int(ops[k]->lit.shape->type) &&
           lw_shape_same_dims(ops[k]->lit.shape, n);
  return fits;
}

/* Operands: input, output, input offsets, sizes to send, output offsets, sizes
 * to receive. Part k: output rows [to, to + n) become input rows from `from`
 * on; row numbers are clamped to the input, s64 sums wrap. */
static void ragged_part(lw_val **ops, int64_t k, lw_val *out) {
  const lw_shape *in = ops[0]->lit.shape;
  int64_t rows = in->dims[0], room = lw_dim(out, 0);
  if (!rows || !room) return;
  int64_t bytes = lw_shape_bytes(in) / rows;
  uint64_t from = (uint64_t)lw_literal_get_int(&ops[2]->lit, k);
  uint64_t n = (uint64_t)lw_literal_get_int(&ops[3]->lit, k);
  uint64_t to = (uint64_t)lw_literal_get_int(&ops[4]->lit, k);
  for (int64_t j = 0; j < room; j++) {
    if (j < (int64_t)to || j >= (int64_t)(to + n)) continue;
    int64_t src = (int64_t)((uint64_t)j - to + from);
    src = src < 0 ? 0 : src >= rows ? rows - 1 : src;
    memcpy((char *)out->lit.data + j * bytes,
           (const char *)ops[0]->lit.data + src * bytes, (size_t)bytes);
  }
}

static lw_status ragged(lw_eval *e, const lw_inst *i, lw_val **ops,
                        lw_val **out) {
  if (!one_member(i)) return many(i);
  if (!ragged_fits(i, ops))
    return lw_error(LW_INVALID_ARGUMENT, "the operands do not fit");
  LW_TRY(lw_val_new(e, ops[1]->lit.shape, out));
  memcpy((*out)->lit.data, ops[1]->lit.data,
         (size_t)lw_shape_bytes(ops[1]->lit.shape));
  for (int64_t k = 0; k < lw_elems(ops[2]); k++) ragged_part(ops, k, *out);
  return NULL;
}

lw_status lw_eval_collective(lw_eval *e, const lw_inst *i, lw_val **ops,
                             lw_val **out) {
  if (i->opcode == LW_OP_COLLECTIVE_PERMUTE ||
      i->opcode == LW_OP_COLLECTIVE_PERMUTE_START)
    return permute(e, i, ops, out);
  if (i->opcode == LW_OP_RAGGED_ALL_TO_ALL) return ragged(e, i, ops, out);
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
