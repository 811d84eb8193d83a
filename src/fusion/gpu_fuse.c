/* Fusing with XLA's order of users and XLA's names. */
#include "fusion/gpu_fuse.h"

typedef LW_VEC(lw_inst *) user_list;

/* ---- users ---- */

static user_list *list_of(gpu_graph *g, const lw_inst *i) {
  user_list *l = lw_map_ptr(&g->users, i);
  if (!l) {
    l = LW_NEW(g->arena, user_list);
    lw_map_set_ptr(&g->users, i, l);
  }
  return l;
}

static size_t place_of(const user_list *l, const lw_inst *user) {
  for (size_t k = 0; k < l->len; k++)
    if (l->data[k] == user) return k;
  return l->len;
}

static void add_user(gpu_graph *g, const lw_inst *def, lw_inst *user) {
  user_list *l = list_of(g, def);
  if (place_of(l, user) == l->len) lw_vec_push(l, user);
}

static void drop_user(gpu_graph *g, const lw_inst *def, const lw_inst *user) {
  user_list *l = list_of(g, def);
  size_t at = place_of(l, user);
  if (at == l->len) return;
  l->data[at] = l->data[l->len - 1];
  l->len--;
}

lw_inst *const *gpu_users(const gpu_graph *g, const lw_inst *i, int32_t *n) {
  const user_list *l = lw_map_ptr(&g->users, i);
  *n = l ? (int32_t)l->len : 0;
  return l ? l->data : NULL;
}

void gpu_graph_init(gpu_graph *g, lw_comp *c, lw_arena *a) {
  *g = (gpu_graph){.comp = c, .arena = a};
  for (lw_inst *i = c->first; i; i = i->next) {
    if (i->unique_id >= g->next_unique_id) g->next_unique_id = i->unique_id + 1;
    for (const lw_use *u = i->uses; u; u = u->next) add_user(g, i, u->user);
  }
}

void gpu_graph_free(gpu_graph *g) {
  for (size_t k = 0; k < g->users.len; k++)
    lw_vec_free((user_list *)(uintptr_t)g->users.values[k]);
  lw_map_free(&g->users);
}

/* ---- making ---- */

lw_inst *gpu_fusion_of(gpu_graph *g, lw_inst *i, lw_fusion_kind kind) {
  int32_t n, n_ops = i->n_operands;
  lw_inst **ops = LW_NEW_ARRAY(g->arena, lw_inst *, n_ops);
  for (int32_t k = 0; k < n_ops; k++) ops[k] = lw_inst_operand(i, k);
  lw_inst *f = lw_fusion_new(i, kind, "fusion", "fused_computation");
  f->unique_id = g->next_unique_id++;
  for (int32_t k = 0; k < n_ops; k++) add_user(g, ops[k], f);
  lw_inst *const *users = gpu_users(g, i, &n);
  for (int32_t k = 0; k < n; k++) add_user(g, f, users[k]);
  list_of(g, i)->len = 0;
  for (int32_t k = 0; k < n_ops; k++) drop_user(g, ops[k], i);
  return f;
}

void gpu_remove(gpu_graph *g, lw_inst *i) {
  for (int32_t k = 0; k < i->n_operands; k++)
    drop_user(g, lw_inst_operand(i, k), i);
  lw_inst_remove(i);
}

/* ---- taking a producer ---- */

/* A new parameter for a further operand; its place in the list is before
 * pos. */
static lw_inst *param_for(gpu_graph *g, lw_inst *fusion, lw_inst *def,
                          lw_inst *pos) {
  lw_comp *body = lw_fusion_body(fusion);
  int32_t slot = lw_fusion_slot(fusion, def);
  if (slot >= 0) {
    lw_inst *p = body->params.data[slot];
    lw_inst_move_before(p, body->first);
    return p;
  }
  int64_t n = (int64_t)body->params.len;
  lw_inst_append_operand(fusion, def);
  if (def->parent == fusion->parent) add_user(g, def, fusion);
  lw_inst *p = lw_inst_parameter(
      body, n, def->shape, lw_arena_printf(g->arena, "param_%lld", (long long)n));
  lw_inst_move_before(p, pos);
  return p;
}

/* Takes operand `slot` out; later parameters are made anew, with new names. */
static void drop_param(gpu_graph *g, lw_inst *fusion, int32_t slot) {
  lw_comp *body = lw_fusion_body(fusion);
  lw_inst *def = lw_inst_operand(fusion, slot);
  lw_inst_remove(body->params.data[slot]);
  for (size_t k = (size_t)slot + 1; k < body->params.len; k++) {
    lw_inst *old = body->params.data[k];
    body->params.data[k] = NULL;
    lw_inst *p = lw_inst_parameter(
        body, (int64_t)k - 1, old->shape,
        lw_arena_printf(g->arena, "param_%lld", (long long)k - 1));
    lw_inst_move_before(p, old);
    lw_inst_replace_uses(old, p);
    lw_inst_remove(old);
    body->params.data[k - 1] = p;
  }
  body->params.len--;
  lw_inst_drop_operand(fusion, slot);
  if (lw_fusion_slot(fusion, def) < 0) drop_user(g, def, fusion);
}

/* One instruction, an operand of the fusion: in this computation, or of the
 * body of a fusion that is being merged. name: its clone's before numbering.
 * ops: what the clone reads, as operands of the fusion. */
static lw_inst *take(gpu_graph *g, lw_inst *fusion, lw_inst *def,
                     const char *name, lw_inst *const *ops, bool keep_operand) {
  lw_comp *body = lw_fusion_body(fusion);
  lw_inst **none = LW_NEW_ARRAY(g->arena, lw_inst *, def->n_operands);
  lw_inst *clone = lw_inst_clone(body, def, none, name);
  clone->sharding = NULL;
  int32_t slot = lw_fusion_slot(fusion, def);
  if (slot >= 0) {
    lw_inst *param = body->params.data[slot];
    lw_inst_move_before(clone, param);
    lw_inst_replace_uses(param, clone);
    drop_param(g, fusion, slot);
  } else {
    LW_ASSERT(keep_operand);
    lw_inst_move_before(clone, body->root);
  }
  for (int32_t k = 0; k < def->n_operands; k++)
    lw_inst_set_operand(clone, k, param_for(g, fusion, ops[k], clone));
  return clone;
}

static lw_inst **operands_of(gpu_graph *g, const lw_inst *i) {
  lw_inst **ops = LW_NEW_ARRAY(g->arena, lw_inst *, i->n_operands);
  for (int32_t k = 0; k < i->n_operands; k++) ops[k] = lw_inst_operand(i, k);
  return ops;
}

/* XLA merges a fusion by cloning it, and then taking the clone's instructions
 * one by one, root first. Cloning uses a name up for each instruction. */
typedef struct {
  lw_inst **order;
  const char **names;
  int32_t n;
} merge_list;

static merge_list list_merged(gpu_graph *g, const lw_inst *producer) {
  lw_comp *from = lw_fusion_body(producer);
  merge_list l = {0};
  l.order = lw_comp_post_order(from, g->arena, &l.n);
  l.names = LW_NEW_ARRAY(g->arena, const char *, l.n);
  for (int32_t k = 0; k < l.n; k++) {
    lw_inst *burnt = lw_inst_new(from, LW_OP_AFTER_ALL, l.order[k]->shape,
                                 l.order[k]->name, 0, NULL);
    l.names[k] = burnt->name;
    lw_inst_remove(burnt);
  }
  return l;
}

/* What an inner instruction reads, from outside: parameters are the producer's
 * operands, the rest stand for themselves until they are taken. */
static lw_inst **inner_operands(gpu_graph *g, const lw_inst *producer,
                                const lw_inst *i) {
  lw_inst **ops = operands_of(g, i);
  for (int32_t k = 0; k < i->n_operands; k++)
    if (ops[k]->opcode == LW_OP_PARAMETER)
      ops[k] = lw_inst_operand(producer, (int32_t)lw_inst_param_number(ops[k]));
  return ops;
}

static void merge(gpu_graph *g, lw_inst *fusion, lw_inst *producer) {
  merge_list l = list_merged(g, producer);
  lw_inst *root = lw_fusion_body(producer)->root;
  if (root->opcode == LW_OP_PARAMETER)
    root = lw_inst_operand(producer, (int32_t)lw_inst_param_number(root));
  int32_t slot = lw_fusion_slot(fusion, producer);
  LW_ASSERT(slot >= 0);
  int32_t other = lw_fusion_slot(fusion, root);
  if (other >= 0) { /* the root is an operand already */
    lw_comp *body = lw_fusion_body(fusion);
    lw_inst_replace_uses(body->params.data[slot], body->params.data[other]);
    drop_param(g, fusion, slot);
    return;
  }
  lw_inst_set_operand(fusion, slot, root);
  drop_user(g, producer, fusion);
  if (root->parent == fusion->parent) add_user(g, root, fusion);
  for (int32_t k = l.n; k-- > 0;) {
    lw_inst *i = l.order[k];
    if (i->opcode == LW_OP_PARAMETER) continue;
    if (lw_fusion_slot(fusion, i) < 0) continue; /* nobody reads it */
    take(g, fusion, i, l.names[k], inner_operands(g, producer, i), false);
  }
}

lw_inst *gpu_fuse(gpu_graph *g, lw_inst *producer, lw_inst *consumer,
                  lw_fusion_kind kind) {
  lw_inst *f = consumer;
  if (!lw_inst_is_fusion(consumer))
    f = gpu_fusion_of(g, consumer, kind);
  else if (lw_inst_i64(f, LW_ATTR_KIND, -1) != kind)
    lw_inst_set_i64(f, LW_ATTR_KIND, kind);
  if (lw_inst_is_fusion(producer))
    merge(g, f, producer);
  else
    take(g, f, producer, NULL, operands_of(g, producer), false);
  return f;
}

/* ---- which computations ---- */

lw_comp **gpu_comps_to_fuse(const lw_module *m, lw_arena *a, int32_t *n) {
  uint8_t *skip = LW_NEW_ARRAY(a, uint8_t, m->n_comp_ids + 1);
  lw_comp **all = lw_module_post_order(m, a, n, false);
  for (int32_t k = 0; k < *n; k++)
    for (const lw_inst *i = all[k]->first; i; i = i->next) {
      if (i->opcode == LW_OP_WHILE || i->opcode == LW_OP_CONDITIONAL) continue;
      for (int32_t j = 0; j < lw_inst_called_count(i); j++)
        if (lw_inst_called(i, j)) skip[lw_inst_called(i, j)->id] = 1;
    }
  int32_t kept = 0;
  for (int32_t k = 0; k < *n; k++)
    if (!skip[all[k]->id]) all[kept++] = all[k];
  *n = kept;
  return all;
}
