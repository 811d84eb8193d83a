/* cse: one instruction for every distinct expression.
 *
 * Equal opcode, shape, attributes and operands give equal bits, so the later
 * instruction's users take the earlier one. add, multiply, and, or, xor, max
 * and min are looked up with their operands in either order: they commute bit
 * for bit (NaN results are canonical, and max/min order -0 below +0).
 *
 * Constants, and computations by structure: JAX writes a reducer of its own for
 * every reduce. Not merged: side effects, random state, collectives, custom
 * calls, barriers.
 */
#include "passes/passes.h"
#include "passes/rewrite.h"
#include "passes/same.h"

static bool is_candidate(const lw_inst *i) {
  unsigned flags = lw_opcode_table[i->opcode].flags;
  if (flags & (LW_OPF_SIDE | LW_OPF_COLL | LW_OPF_ASYNC)) return false;
  if (i->n_control_preds) return false;
  switch ((int)i->opcode) {
    case LW_OP_PARAMETER:
    case LW_OP_CUSTOM_CALL:
    case LW_OP_OPT_BARRIER:
    case LW_OP_DOMAIN:
    case LW_OP_AFTER_ALL:
    case LW_OP_ADD_DEPENDENCY:
    case LW_OP_COPY:
      return false;
    default:
      return !lw_inst_has_side_effect(i);
  }
}

static bool commutes(lw_opcode op) {
  switch ((int)op) {
    case LW_OP_ADD:
    case LW_OP_MULTIPLY:
    case LW_OP_AND:
    case LW_OP_OR:
    case LW_OP_XOR:
    case LW_OP_MAXIMUM:
    case LW_OP_MINIMUM:
      return true;
    default:
      return false;
  }
}

static uint64_t hash(const lw_inst *i) {
  uint64_t h = lw_hash_mix((uint64_t)i->opcode, (uintptr_t)i->shape->no_layout);
  uint64_t ops = 0;
  for (int32_t k = 0; k < i->n_operands; k++) {
    uint64_t x = (uint64_t)i->operands[k].def->id + 1;
    ops = commutes(i->opcode) ? ops + lw_hash_mix(17, x) : lw_hash_mix(ops, x);
  }
  h = lw_hash_mix(h, ops);
  uint64_t attrs = 0; /* in any order */
  for (int32_t k = 0; k < i->n_attrs; k++)
    if (i->attrs[k].id != LW_ATTR_ORIGIN)
      attrs += lw_attr_hash(&i->attrs[k], 29);
  return lw_hash_mix(h, attrs);
}

static bool operands_same(const lw_inst *a, const lw_inst *b) {
  bool same = true;
  for (int32_t k = 0; k < a->n_operands && same; k++)
    same = lw_op(a, k) == lw_op(b, k);
  if (!same && commutes(a->opcode))
    same = lw_op(a, 0) == lw_op(b, 1) && lw_op(a, 1) == lw_op(b, 0);
  return same;
}

static bool same(const lw_inst *a, const lw_inst *b) {
  return a->opcode == b->opcode && lw_shape_compatible(a->shape, b->shape) &&
         a->n_operands == b->n_operands && operands_same(a, b) &&
         (!b->sharding || a->sharding == b->sharding) &&
         lw_inst_attrs_same(a, b);
}

/* The hash's chain: the map holds the last instruction, chain the one before
 * by id. */
static lw_inst *find(const lw_map *table, const lw_map *chain, uint64_t h,
                     const lw_inst *i) {
  uint64_t *v = lw_map_get(table, h);
  for (lw_inst *a = v ? (lw_inst *)(uintptr_t)*v : NULL; a;
       a = lw_map_ptr(chain, a))
    if (same(a, i)) return a;
  return NULL;
}

static bool sweep(lw_comp *c, lw_pass_env *env) {
  lw_map table = {0}, chain = {0};
  bool changed = false;
  for (lw_inst *i = c->first, *next; i; i = next) {
    next = i->next;
    if (!is_candidate(i)) continue;
    uint64_t h = hash(i);
    lw_inst *first = find(&table, &chain, h, i);
    if (!first) {
      lw_map_set_ptr(&chain, i, lw_map_ptr(&table, (void *)(uintptr_t)h));
      lw_map_set_ptr(&table, (void *)(uintptr_t)h, i);
      continue;
    }
    if (!lw_pass_fuel(env)) break;
    lw_inst_replace_uses(i, first);
    if (lw_is_dead(i)) lw_inst_remove(i); /* its operands serve first */
    lw_pass_count(env, "merged", 1);
    changed = true;
  }
  lw_map_free(&table);
  lw_map_free(&chain);
  return changed;
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  int32_t n;
  lw_comp **comps = lw_control_comps(m, env->scratch, &n);
  for (int32_t k = 0; k < n; k++)
    if (sweep(comps[k], env)) *changed = true;
  return NULL;
}

const lw_pass lw_pass_cse = {"cse", "merges equal instructions", NULL, run};
