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

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {
      [LW_OP_CUSTOM_CALL] = custom_call,
      [LW_OP_ALL_REDUCE] = collective,
      [LW_OP_ALL_GATHER] = collective,
      [LW_OP_ALL_TO_ALL] = collective,
      [LW_OP_REDUCE_SCATTER] = collective,
      [LW_OP_COLLECTIVE_BROADCAST] = collective,
      [LW_OP_COLLECTIVE_PERMUTE] = permute,
      [LW_OP_PARTITION_ID] = device_id,
      [LW_OP_REPLICA_ID] = device_id,
  };
  if (m->replica_count != 1 || m->num_partitions != 1) return NULL;
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_single_device = {
    "single-device", "collectives and shardings of a one-device module", NULL,
    run};
