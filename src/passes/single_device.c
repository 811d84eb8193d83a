/* single-device: what talks about other devices, on one.
 *
 * With one replica and one partition a collective's only participant gets its
 * own operand back, partition-id and replica-id are 0, and the custom calls
 * that only carry shardings (Sharding, SPMDFullToShardShape, xla.sdy.*) are the
 * identity. A module for several devices is left alone.
 */
#include <string.h>

#include "passes/passes.h"
#include "passes/rewrite.h"

static bool carries_sharding(const char *target) {
  return !strcmp(target, "Sharding") ||
         !strcmp(target, "SPMDFullToShardShape") ||
         !strcmp(target, "SPMDShardToFullShape") ||
         !strncmp(target, "xla.sdy.", 8);
}

/* The operands where the results are expected; shapes must agree. */
static lw_inst *as_result(lw_rw *r, lw_inst *i, const char *stat) {
  if (i->n_operands == 1 && lw_shape_compatible(i->shape, lw_op(i, 0)->shape))
    return lw_rw_go(r, stat) ? lw_op(i, 0) : NULL;
  if (!lw_shape_is_tuple(i->shape) || i->shape->n_elems != i->n_operands)
    return NULL;
  for (int32_t k = 0; k < i->n_operands; k++)
    if (!lw_shape_compatible(i->shape->elems[k], lw_op(i, k)->shape))
      return NULL;
  if (!lw_rw_go(r, stat)) return NULL;
  lw_inst **v = LW_NEW_ARRAY(r->env->scratch, lw_inst *, i->n_operands);
  for (int32_t k = 0; k < i->n_operands; k++) v[k] = lw_op(i, k);
  return lw_rw_make(r, LW_OP_TUPLE, i->shape, i->n_operands, v);
}

static lw_inst *custom_call(lw_rw *r, lw_inst *i) {
  const char *t = lw_inst_str(i, LW_ATTR_CUSTOM_CALL_TARGET);
  if (!t || !carries_sharding(t)) return NULL;
  return as_result(r, i, "sharding calls");
}

/* Every group has one member (no groups: all devices, and there is one). */
static bool groups_of_one(const lw_inst *i) {
  const lw_attr *a = lw_inst_attr(i, LW_ATTR_REPLICA_GROUPS);
  if (!a) return true;
  const lw_replica_groups *g = a->u.groups;
  if (g->kind == LW_RG_IOTA) return g->iota_group_size == 1;
  if (g->kind == LW_RG_MESH) return false;
  for (int32_t k = 0; k < g->n_groups; k++)
    if (g->group_sizes[k] != 1) return false;
  return true;
}

static lw_inst *collective(lw_rw *r, lw_inst *i) {
  if (!groups_of_one(i)) return NULL;
  return as_result(r, i, "collectives of one");
}

static lw_inst *device_id(lw_rw *r, lw_inst *i) {
  return lw_rw_go(r, "device ids") ? lw_rw_const_int(r, i->shape, 0) : NULL;
}

/* {{0,0}} sends to itself; without a pair for this device the result is 0. */
static lw_inst *permute(lw_rw *r, lw_inst *i) {
  const lw_attr *a = lw_inst_attr(i, LW_ATTR_SOURCE_TARGET_PAIRS);
  if (i->n_operands != 1 || !a || !lw_shape_is_array(i->shape)) return NULL;
  if (a->u.list.n == 2 && a->u.list.v[0] == 0 && a->u.list.v[1] == 0)
    return collective(r, i);
  if (a->u.list.n != 0 || !lw_rw_go(r, "collectives of one")) return NULL;
  lw_class c = lw_prim_class(i->shape->type);
  bool real = c == LW_CLASS_FLOAT || c == LW_CLASS_COMPLEX;
  return real ? lw_rw_const_f64(r, i->shape, 0)
              : lw_rw_const_int(r, i->shape, 0);
}

/* ---- ragged-all-to-all: rows of the input over rows of the output ---- */

enum { MOST_PARTS = 256 };

/* Element k of a vector operand over s64[n]. */
static lw_inst *entry_of(lw_rw *r, lw_inst *v, int64_t k, const lw_shape *n) {
  int64_t at[3] = {k, k + 1, 1};
  const lw_shape *s = lw_mk_array(r->m, v->shape->type, 0, NULL);
  v = lw_rw_reshape(r, lw_rw_slice(r, v, at), s);
  if (s->type != LW_S64)
    v = lw_rw_un(r, LW_OP_CONVERT, lw_mk_array(r->m, LW_S64, 0, NULL), v);
  return lw_rw_broadcast(r, v, n, 0, NULL);
}

/* Rows of x by number. */
static lw_inst *rows_at(lw_rw *r, lw_inst *x, lw_inst *at, const lw_shape *s) {
  int64_t offset[LW_MAX_RANK], sizes[LW_MAX_RANK], zero = 0;
  for (int32_t d = 1; d < s->rank; d++) {
    offset[d - 1] = d;
    sizes[d] = s->dims[d];
  }
  sizes[0] = 1;
  lw_inst *g = lw_rw_bin(r, LW_OP_GATHER, s, x, at);
  lw_inst_set_i64s(g, LW_ATTR_OFFSET_DIMS, s->rank - 1, offset);
  lw_inst_set_i64s(g, LW_ATTR_COLLAPSED_SLICE_DIMS, 1, &zero);
  lw_inst_set_i64s(g, LW_ATTR_START_INDEX_MAP, 1, &zero);
  lw_inst_set_i64(g, LW_ATTR_INDEX_VECTOR_DIM, 1);
  lw_inst_set_i64s(g, LW_ATTR_SLICE_SIZES, s->rank, sizes);
  return g;
}

/* Part k: rows [to, to + n) of out come from the input's from on. */
static lw_inst *put_part(lw_rw *r, lw_inst *i, int64_t k, lw_inst *out) {
  const lw_shape *s = i->shape, *n = lw_mk_array(r->m, LW_S64, 1, s->dims);
  const lw_shape *p = lw_mk_array(r->m, LW_PRED, 1, s->dims);
  int64_t zero = 0;
  lw_inst *at = lw_rw_make(r, LW_OP_IOTA, n, 0, NULL);
  lw_inst_set_i64(at, LW_ATTR_IOTA_DIMENSION, 0);
  lw_inst *from = entry_of(r, lw_op(i, 2), k, n);
  lw_inst *to = entry_of(r, lw_op(i, 4), k, n);
  lw_inst *end = lw_rw_bin(r, LW_OP_ADD, n, to, entry_of(r, lw_op(i, 3), k, n));
  lw_inst *after = lw_rw_compare(r, p, at, to, LW_CMP_GE, -1);
  lw_inst *before = lw_rw_compare(r, p, at, end, LW_CMP_LT, -1);
  lw_inst *in = lw_rw_bin(r, LW_OP_AND, p, after, before);
  lw_inst *src =
      lw_rw_bin(r, LW_OP_ADD, n, lw_rw_bin(r, LW_OP_SUBTRACT, n, at, to), from);
  const lw_shape *q = lw_mk_array(r->m, LW_PRED, s->rank, s->dims);
  lw_inst *ops[3] = {lw_rw_broadcast(r, in, q, 1, &zero),
                     rows_at(r, lw_op(i, 0), src, s), out};
  return lw_rw_make(r, LW_OP_SELECT, s, 3, ops);
}

static lw_inst *ragged(lw_rw *r, lw_inst *i) {
  const lw_shape *in = lw_op(i, 0)->shape, *n = lw_op(i, 2)->shape;
  if (!groups_of_one(i) || !lw_shape_is_array(i->shape) || in->rank < 1 ||
      in->rank != i->shape->rank || n->rank != 1 || n->elements > MOST_PARTS)
    return NULL;
  for (int32_t d = 1; d < in->rank; d++)
    if (in->dims[d] != i->shape->dims[d]) return NULL;
  for (int32_t k = 2; k < 6; k++)
    if (!lw_type_is_int(lw_op(i, k)) ||
        !lw_shape_same_dims(lw_op(i, k)->shape, n))
      return NULL;
  if (!lw_rw_go(r, "collectives of one")) return NULL;
  lw_inst *out = lw_op(i, 1);
  for (int64_t k = 0; in->dims[0] > 0 && k < n->elements; k++)
    out = put_part(r, i, k, out);
  return out;
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {
      [LW_OP_CUSTOM_CALL] = custom_call,
      [LW_OP_ALL_REDUCE] = collective,
      [LW_OP_ALL_GATHER] = collective,
      [LW_OP_ALL_TO_ALL] = collective,
      [LW_OP_REDUCE_SCATTER] = collective,
      [LW_OP_COLLECTIVE_BROADCAST] = collective,
      [LW_OP_COLLECTIVE_PERMUTE] = permute,
      [LW_OP_RAGGED_ALL_TO_ALL] = ragged,
      [LW_OP_PARTITION_ID] = device_id,
      [LW_OP_REPLICA_ID] = device_id,
  };
  if (m->replica_count != 1 || m->num_partitions != 1) return NULL;
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_single_device = {
    "single-device", "collectives and shardings of a one-device module", NULL,
    run};
