/* Fusing with XLA's order of users and XLA's names. */
#include "fusion/gpu_fuse.h"

#include <stdlib.h>

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

static int by_number(const void *a, const void *b) {
  int64_t x = (*(lw_inst *const *)a)->unique_id;
  int64_t y = (*(lw_inst *const *)b)->unique_id;
  return (x > y) - (x < y);
}

/* What XLA's passes make or unite late. */
static bool is_late(const lw_inst *i) {
  return i->opcode == LW_OP_CONSTANT || i->opcode == LW_OP_BITCAST ||
         i->opcode == LW_OP_GET_TUPLE_ELEMENT;
}

void gpu_graph_init(gpu_graph *g, lw_comp *c, lw_arena *a) {
  *g = (gpu_graph){.comp = c, .arena = a};
  for (lw_inst *i = c->first; i; i = i->next) {
    if (i->unique_id >= g->next_unique_id) g->next_unique_id = i->unique_id + 1;
    for (int32_t k = 0; k < i->n_operands; k++)
      add_user(g, lw_inst_operand(i, k), i);
  }
  for (lw_inst *i = c->first; i; i = i->next) {
    if (!is_late(i) || i->n_uses < 2) continue;
    user_list *l = list_of(g, i);
    qsort(l->data, l->len, sizeof *l->data, by_number);
  }
}

void gpu_graph_init_kept(gpu_graph *g, lw_comp *c, lw_arena *a) {
  *g = (gpu_graph){.comp = c, .arena = a};
  for (lw_inst *i = c->first; i; i = i->next) {
    if (i->unique_id >= g->next_unique_id) g->next_unique_id = i->unique_id + 1;
    for (const lw_use *u = i->uses; u; u = u->next) add_user(g, i, u->user);
  }
}

/* Moves every use of def by user to the end of def's list. */
static void uses_to_end(lw_inst *def, const lw_inst *user) {
  for (int32_t k = 0; k < user->n_operands; k++) {
    lw_use *u = &user->operands[k];
    if (u->def != def || u == def->last_use) continue;
    if (u->prev)
      u->prev->next = u->next;
    else
      def->uses = u->next;
    u->next->prev = u->prev;
    u->prev = def->last_use;
    u->next = NULL;
    def->last_use->next = u;
    def->last_use = u;
  }
}

void gpu_graph_keep(gpu_graph *g) {
  for (lw_inst *i = g->comp->first; i; i = i->next) {
    int32_t n;
    lw_inst *const *users = gpu_users(g, i, &n);
    for (int32_t k = 0; k < n; k++) uses_to_end(i, users[k]);
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
  lw_trace_rename(g->trace, f->name, i->name);
  lw_trace_rename(g->trace, lw_fusion_body(f)->root->name, i->name);
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
  lw_inst *p =
      lw_inst_parameter(body, n, def->shape,
                        lw_arena_printf(g->arena, "param_%lld", (long long)n));
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
                     const char *name, lw_inst *const *ops) {
  lw_comp *body = lw_fusion_body(fusion);
  lw_inst **none = LW_NEW_ARRAY(g->arena, lw_inst *, def->n_operands);
  lw_inst *clone = lw_inst_clone(body, def, none, name);
  clone->sharding = NULL;
  lw_trace_rename(g->trace, clone->name, def->name);
  int32_t slot = lw_fusion_slot(fusion, def);
  if (slot >= 0) {
    lw_inst *param = body->params.data[slot];
    lw_inst_move_before(clone, param);
    lw_inst_replace_uses(param, clone);
    drop_param(g, fusion, slot);
  } /* else it is a further output: at the end, where the new root will be */
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
 * one by one, root first. Cloning uses a name up for each instruction, and a
 * constant stands in for the clone's root meanwhile. */
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
  bool computes = false;
  for (int32_t k = 0; k < l.n; k++) {
    const char *name = l.order[k]->name;
    l.names[k] = lw_module_take_name(from->module, name);
    computes |= l.order[k]->opcode != LW_OP_PARAMETER;
  }
  if (computes) (void)lw_module_take_name(from->module, "constant");
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

static void splice(gpu_graph *g, lw_inst *fusion, lw_inst *producer) {
  gpu_splice(fusion, producer);
  drop_user(g, producer, fusion);
  for (int32_t k = 0; k < producer->n_operands; k++)
    add_user(g, lw_inst_operand(producer, k), fusion);
}

static void merge(gpu_graph *g, lw_inst *fusion, lw_inst *producer) {
  g->cloned += lw_fusion_body(producer)->n_insts;
  if (g->cloned > GPU_CLONES && gpu_can_splice(g, producer)) {
    splice(g, fusion, producer);
    return;
  }
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
    take(g, fusion, i, l.names[k], inner_operands(g, producer, i));
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
    take(g, f, producer, NULL, operands_of(g, producer));
  return f;
}

/* ---- further outputs ---- */

static void move_to_end(lw_inst *i) {
  lw_inst *last = i->parent->last;
  if (i == last) return;
  lw_inst_move_before(i, last);
  lw_inst_move_before(last, i);
}

static void move_users(gpu_graph *g, lw_inst *from, lw_inst *to) {
  int32_t n;
  lw_trace_rename(g->trace, to->name, from->name);
  lw_inst *const *users = gpu_users(g, from, &n);
  for (int32_t k = 0; k < n; k++)
    if (users[k] != to) add_user(g, to, users[k]);
  list_of(g, from)->len = 0;
  for (int32_t k = 0; k < to->n_operands; k++)
    if (lw_inst_operand(to, k) == from) add_user(g, from, to);
  lw_inst_replace_uses(from, to);
}

static lw_inst *element_of(gpu_graph *g, lw_inst *fusion, const lw_shape *shape,
                           int64_t index) {
  lw_inst *e = lw_inst_new(fusion->parent, LW_OP_GET_TUPLE_ELEMENT, shape, NULL,
                           1, &fusion);
  lw_inst_set_i64(e, LW_ATTR_INDEX, index);
  e->unique_id = g->next_unique_id++;
  add_user(g, fusion, e);
  return e;
}

/* The root becomes a tuple of what it was and the new outputs. Returns the
 * index of the first new one. */
static int32_t widen_root(gpu_graph *g, lw_inst *fusion, lw_inst *const *more,
                          int32_t n_more) {
  lw_comp *body = lw_fusion_body(fusion);
  lw_inst *root = body->root;
  bool was_tuple = root->opcode == LW_OP_TUPLE;
  int32_t n = was_tuple ? root->n_operands : 1;
  lw_inst **outs = LW_NEW_ARRAY(g->arena, lw_inst *, n + n_more);
  const lw_shape **shapes =
      LW_NEW_ARRAY(g->arena, const lw_shape *, n + n_more);
  for (int32_t k = 0; k < n + n_more; k++) {
    outs[k] = k >= n      ? more[k - n]
              : was_tuple ? lw_inst_operand(root, k)
                          : root;
    shapes[k] = outs[k]->shape;
  }
  const lw_shape *shape = lw_shape_tuple(body->module->ctx, n + n_more, shapes);
  body->root = lw_inst_new(body, LW_OP_TUPLE, shape, NULL, n + n_more, outs);
  fusion->shape = shape;
  if (was_tuple) {
    lw_inst_remove(root);
  } else {
    lw_inst *e = element_of(g, fusion, shapes[0], 0);
    move_users(g, fusion, e);
  }
  return n;
}

/* Which result of the fusion an instruction of its body is; -1: none. */
static int32_t result_of(const lw_inst *fusion, const lw_inst *inner) {
  const lw_inst *root = lw_fusion_body(fusion)->root;
  for (int32_t k = 0; k < root->n_operands && root->opcode == LW_OP_TUPLE; k++)
    if (lw_inst_operand(root, k) == inner) return k;
  return -1;
}

/* The fusion computes i as well, as one more result when others read it. What
 * was a result already (the parameter in i's place was one) is not added. */
static void take_output(gpu_graph *g, lw_inst *fusion, lw_inst *i) {
  bool read = lw_fusion_slot(fusion, i) >= 0;
  lw_inst *clone = take(g, fusion, i, NULL, operands_of(g, i));
  if (read && i->n_uses == 0 && !lw_inst_is_root(i)) return;
  int32_t at = result_of(fusion, clone);
  if (at < 0) at = widen_root(g, fusion, &clone, 1);
  lw_inst *e = element_of(g, fusion, clone->shape, at);
  move_users(g, i, e);
}

/* A body's instructions as instructions of the computation, in post order.
 * result: it is one of the kernel's. */
typedef struct {
  lw_inst **inst;
  bool *result;
  int32_t n;
  lw_map map; /* of the body -> here */
} parts;

static lw_inst *clone_outside(gpu_graph *g, parts *p, const lw_inst *i) {
  lw_inst **ops = operands_of(g, i);
  for (int32_t k = 0; k < i->n_operands; k++)
    ops[k] = lw_map_ptr(&p->map, ops[k]);
  lw_inst *clone = lw_inst_clone(
      g->comp, i, ops, lw_arena_printf(g->arena, "%s.clone", i->name));
  clone->unique_id = g->next_unique_id++;
  for (int32_t k = 0; k < i->n_operands; k++) add_user(g, ops[k], clone);
  return clone;
}

static parts unpack(gpu_graph *g, lw_inst *other) {
  parts p = {0};
  int32_t n;
  lw_comp *body = lw_fusion_body(other);
  lw_inst **order = lw_comp_post_order(body, g->arena, &n);
  p.inst = LW_NEW_ARRAY(g->arena, lw_inst *, n);
  p.result = LW_NEW_ARRAY(g->arena, bool, n);
  for (int32_t k = 0; k < n; k++) {
    lw_inst *i = order[k], *as;
    if (i == body->root && i->opcode == LW_OP_TUPLE) continue;
    if (i->opcode == LW_OP_PARAMETER)
      as = lw_inst_operand(other, (int32_t)lw_inst_param_number(i));
    else
      as = p.inst[p.n++] = clone_outside(g, &p, i);
    lw_map_set_ptr(&p.map, i, as);
  }
  return p;
}

static void mark_result(parts *p, const lw_inst *i) {
  for (int32_t k = 0; k < p->n; k++)
    if (p->inst[k] == i) p->result[k] = true;
}

static bool read_besides(const gpu_graph *g, const lw_inst *i,
                         const lw_inst *fusion) {
  int32_t n;
  lw_inst *const *users = gpu_users(g, i, &n);
  for (int32_t k = 0; k < n; k++)
    if (users[k] != fusion) return true;
  return lw_inst_is_root(i);
}

/* The readers of other's results read the clones. */
static void redirect(gpu_graph *g, lw_inst *fusion, lw_inst *other, parts *p) {
  const lw_inst *root = lw_fusion_body(other)->root;
  if (root->opcode != LW_OP_TUPLE) {
    lw_inst *as = lw_map_ptr(&p->map, root);
    mark_result(p, as);
    move_users(g, other, as);
    return;
  }
  int32_t n;
  lw_inst *const *users = gpu_users(g, other, &n);
  lw_inst **list = LW_NEW_ARRAY(g->arena, lw_inst *, n);
  for (int32_t k = 0; k < n; k++) list[k] = users[k];
  for (int32_t k = 0; k < n; k++) {
    int64_t index = lw_inst_i64(list[k], LW_ATTR_INDEX, 0);
    lw_inst *as = lw_map_ptr(&p->map, lw_inst_operand(root, (int32_t)index));
    if (read_besides(g, list[k], fusion)) mark_result(p, as);
    move_users(g, list[k], as);
    gpu_remove(g, list[k]);
  }
}

static void take_all(gpu_graph *g, lw_inst *fusion, const parts *p) {
  for (int32_t k = p->n; k-- > 0;) {
    lw_inst *i = p->inst[k];
    if (p->result[k])
      take_output(g, fusion, i);
    else if (lw_fusion_slot(fusion, i) >= 0)
      take(g, fusion, i, NULL, operands_of(g, i));
    gpu_remove(g, i);
  }
}

void gpu_fuse_outputs(gpu_graph *g, lw_inst *fusion, lw_inst *other) {
  if (!lw_inst_is_fusion(other)) {
    take_output(g, fusion, other);
    gpu_remove(g, other);
    return;
  }
  lw_comp *body = lw_fusion_body(other);
  parts p = unpack(g, other);
  redirect(g, fusion, other, &p);
  gpu_remove(g, other);
  lw_module_remove_comp(body->module, body);
  take_all(g, fusion, &p);
  lw_map_free(&p.map);
}

/* Lists stay topological: everything in post order. */
void gpu_sort_list(lw_comp *c, lw_arena *a) {
  int32_t n;
  lw_inst **order = lw_comp_post_order(c, a, &n);
  for (int32_t k = 0; k < n; k++) move_to_end(order[k]);
}

void gpu_graph_sort(gpu_graph *g) {
  gpu_sort_list(g->comp, g->arena);
  for (lw_inst *i = g->comp->first; i; i = i->next)
    if (gpu_is_multi_output(i)) gpu_sort_list(lw_fusion_body(i), g->arena);
}

/* ---- leaving ---- */

/* XLA keeps instructions in the order of their numbers, and prints and numbers
 * in post order, from the first that nobody reads to the last. */
void gpu_graph_settle(gpu_graph *g) {
  LW_VEC(lw_inst *) ends = {0};
  for (lw_inst *i = g->comp->first; i; i = i->next)
    if (i->n_uses == 0) lw_vec_push(&ends, i);
  if (ends.len > 1) qsort(ends.data, ends.len, sizeof *ends.data, by_number);
  for (size_t k = 0; k < ends.len; k++) move_to_end(ends.data[k]);
  lw_vec_free(&ends);
  gpu_sort_list(g->comp, g->arena);
}

/* ---- which computations ---- */

lw_comp **gpu_comps_to_fuse(const lw_module *m, lw_arena *a, int32_t *n) {
  uint8_t *skip = LW_NEW_ARRAY(a, uint8_t, m->n_comp_ids + 1);
  lw_comp **all = lw_fusion_listed_order(m, a, n);
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

lw_comp **gpu_comps_outside(const lw_module *m, lw_arena *a, int32_t *n) {
  uint8_t *body = LW_NEW_ARRAY(a, uint8_t, m->n_comp_ids + 1);
  lw_comp **all = lw_fusion_listed_order(m, a, n);
  for (int32_t k = 0; k < *n; k++)
    for (const lw_inst *i = all[k]->first; i; i = i->next)
      if (lw_inst_is_fusion(i)) body[lw_fusion_body(i)->id] = 1;
  int32_t kept = 0;
  for (int32_t k = 0; k < *n; k++)
    if (!body[all[k]->id]) all[kept++] = all[k];
  *n = kept;
  return all;
}
