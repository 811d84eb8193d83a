/* fusion-cse: equal instructions within a fusion's body become one.
 *
 * Fusing copies producers: two roads to one producer leave two copies of it in
 * a body. XLA:GPU's fusion pipeline merges them (its cse, held to the bodies of
 * fusions, sensitive to layouts), which also changes how many readers an
 * instruction has, and with that what counts as a transpose's hero later on.
 * Constants are compared by value, everything else by operation, shape,
 * attributes and operands, those of commutative operations in either order.
 */
#include "fusion/fusion.h"
#include "fusion/gpu_fuse.h"
#include "passes/same.h"

static bool commutes(const lw_inst *i) {
  switch ((int)i->opcode) {
    case LW_OP_ADD:
    case LW_OP_MULTIPLY:
    case LW_OP_MAXIMUM:
    case LW_OP_MINIMUM:
    case LW_OP_AND:
    case LW_OP_OR:
    case LW_OP_XOR:
      return true;
    default:
      return false;
  }
}

/* Iotas stay as they are, but their readers do not care which one they read. */
static bool same_value(const lw_inst *a, const lw_inst *b) {
  if (a == b) return true;
  return a->opcode == LW_OP_IOTA && b->opcode == LW_OP_IOTA &&
         a->shape == b->shape &&
         lw_inst_i64(a, LW_ATTR_IOTA_DIMENSION, 0) ==
             lw_inst_i64(b, LW_ATTR_IOTA_DIMENSION, 0);
}

static bool same_operands(const lw_inst *a, const lw_inst *b) {
  bool same = a->n_operands == b->n_operands;
  for (int32_t k = 0; k < a->n_operands && same; k++)
    same = same_value(lw_inst_operand(a, k), lw_inst_operand(b, k));
  if (same || a->n_operands != 2 || b->n_operands != 2 || !commutes(a))
    return same;
  return same_value(lw_inst_operand(a, 0), lw_inst_operand(b, 1)) &&
         same_value(lw_inst_operand(a, 1), lw_inst_operand(b, 0));
}

/* One instruction reads one of two equal iotas. */
static bool unite_iotas(lw_inst *i) {
  bool changed = false;
  for (int32_t k = 0; k < i->n_operands; k++)
    for (int32_t j = k + 1; j < i->n_operands; j++) {
      lw_inst *a = lw_inst_operand(i, k), *b = lw_inst_operand(i, j);
      if (a == b || !same_value(a, b)) continue;
      lw_inst_set_operand(i, j, a);
      changed = true;
    }
  return changed;
}

static bool same(const lw_inst *a, const lw_inst *b) {
  return a->opcode == b->opcode && a->shape == b->shape &&
         same_operands(a, b) && lw_inst_attrs_same(a, b);
}

static uint64_t hash(const lw_inst *i) {
  uint64_t h = lw_hash_mix((uint64_t)i->opcode + 1, (uintptr_t)i->shape);
  uint64_t sum = 0;
  for (int32_t k = 0; k < i->n_operands; k++) {
    const lw_inst *o = lw_inst_operand(i, k);
    uint64_t id = o->opcode == LW_OP_IOTA ? 0 : (uint64_t)o->id + 1;
    sum = commutes(i) ? sum + lw_hash_mix(7, id) : lw_hash_mix(sum, id);
  }
  return lw_hash_mix(h, sum);
}

/* Instructions of one hash form a chain: table holds its latest. */
static lw_inst *find(const lw_map *table, const lw_map *chain, uint64_t h,
                     const lw_inst *i) {
  uint64_t *v = lw_map_get(table, h);
  for (lw_inst *a = v ? (lw_inst *)(uintptr_t)*v : NULL; a;
       a = lw_map_ptr(chain, a))
    if (same(a, i)) return a;
  return NULL;
}

static bool sweep(lw_comp *body, lw_pass_env *env, bool constants) {
  lw_map table = {0}, chain = {0};
  bool changed = false;
  int32_t n;
  lw_inst **order = lw_comp_post_order(body, env->scratch, &n);
  for (int32_t k = 0; k < n; k++) {
    lw_inst *i = order[k];
    if (!i->parent) continue;
    if ((i->opcode == LW_OP_CONSTANT) != constants) continue;
    if (!constants && (i->n_operands == 0 || lw_inst_has_side_effect(i)))
      continue;
    uint64_t h = hash(i);
    lw_inst *first = find(&table, &chain, h, i);
    if (first && !lw_pass_fuel(env)) break;
    if (first) {
      lw_inst_replace_uses(i, first);
      lw_inst_remove(i);
      lw_pass_count(env, "merged", 1);
      changed = true;
      continue;
    }
    uint64_t *slot = lw_map_put(&table, h);
    lw_map_set_ptr(&chain, i, (void *)(uintptr_t)*slot);
    *slot = (uintptr_t)i;
    changed |= unite_iotas(i);
  }
  lw_map_free(&table);
  lw_map_free(&chain);
  return changed;
}

/* In order again, and without what only merged instructions read. */
static void tidy(lw_comp *body, lw_arena *a) {
  gpu_sort_list(body, a);
  for (lw_inst *i = body->last, *prev; i; i = prev) {
    prev = i->prev;
    if (i->n_uses == 0 && !lw_inst_is_root(i) && i->opcode != LW_OP_PARAMETER)
      lw_inst_remove(i);
  }
}

static lw_status run_pass(lw_module *m, lw_pass_env *env, bool *changed) {
  for (lw_comp *c = m->first_comp; c; c = c->next)
    for (lw_inst *i = c->first; i; i = i->next) {
      if (!lw_inst_is_fusion(i)) continue;
      bool merged = sweep(lw_fusion_body(i), env, true);
      merged |= sweep(lw_fusion_body(i), env, false);
      if (merged) tidy(lw_fusion_body(i), env->scratch);
      *changed |= merged;
    }
  return NULL;
}

const lw_pass lw_pass_fusion_cse = {
    "fusion-cse", "merges equal instructions of a fusion's body", NULL,
    run_pass};
