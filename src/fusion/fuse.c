/* The mechanics of fusions. */
#include "fusion/fuse.h"

#include <string.h>

/* ---- parameters of a body ---- */

typedef struct {
  char text[32];
} param_name;

/* "param_N"; made tens of thousands of times. */
static param_name name_of_param(int64_t n) {
  param_name p = {"param_"};
  char digits[24];
  size_t len = 0, at = 6;
  do {
    digits[len++] = (char)('0' + n % 10);
  } while (n /= 10);
  while (len > 0) p.text[at++] = digits[--len];
  return p;
}

static lw_inst *add_param(lw_comp *body, const lw_shape *shape, lw_inst *pos) {
  int64_t n = (int64_t)body->params.len;
  lw_inst *p = lw_inst_parameter(body, n, shape, name_of_param(n).text);
  if (pos) lw_inst_move_before(p, pos);
  return p;
}

/* Bodies with more parameters keep the old names: naming hundreds anew for each
 * producer is most of XLA's time then. */
enum { MAX_RENAMED = 256 };

/* Takes parameter n out; later ones move down and are named anew, as XLA
 * does. */
static void remove_param(lw_comp *body, int32_t n) {
  lw_inst_remove(body->params.data[n]);
  for (size_t k = (size_t)n + 1; k < body->params.len; k++) {
    lw_inst *p = body->params.data[k];
    body->params.data[k - 1] = p;
    lw_inst_set_i64(p, LW_ATTR_PARAMETER_NUMBER, (int64_t)k - 1);
    if (body->params.len <= MAX_RENAMED)
      lw_inst_rename(p, name_of_param((int64_t)k - 1).text);
  }
  body->params.len--;
}

int32_t lw_fusion_slot(const lw_inst *fusion, const lw_inst *def) {
  for (int32_t k = 0; k < fusion->n_operands; k++)
    if (lw_inst_operand(fusion, k) == def) return k;
  return -1;
}

/* The parameter that stands for def, made when there is none. */
static lw_inst *param_for(lw_inst *fusion, lw_inst *def, lw_inst *pos) {
  lw_comp *body = lw_fusion_body(fusion);
  int32_t slot = lw_fusion_slot(fusion, def);
  if (slot >= 0) {
    lw_inst *p = body->params.data[slot];
    if (pos && p->parent == body) lw_inst_move_before(p, body->first);
    return p;
  }
  lw_inst_append_operand(fusion, def);
  return add_param(body, def->shape, pos);
}

/* ---- making ---- */

lw_inst *lw_fusion_new(lw_inst *root, lw_fusion_kind kind, const char *name,
                       const char *body_name) {
  lw_comp *c = root->parent, *body = lw_comp_new(c->module, body_name);
  lw_inst *f = lw_inst_new(c, LW_OP_FUSION, root->shape, name, 0, NULL);
  lw_inst_set_i64(f, LW_ATTR_KIND, kind);
  lw_inst_set_comp(f, LW_ATTR_CALLS, body);
  lw_inst_move_before(f, root);
  lw_inst **ops = LW_NEW_ARRAY(c->module->arena, lw_inst *, root->n_operands);
  for (int32_t k = 0; k < root->n_operands; k++)
    ops[k] = param_for(f, lw_inst_operand(root, k), NULL);
  body->root = lw_inst_clone(body, root, ops, NULL);
  body->root->sharding = NULL;
  f->metadata = root->metadata;
  f->frontend_attrs = root->frontend_attrs;
  f->line = root->line;
  f->column = root->column;
  lw_inst_replace_uses(root, f);
  lw_inst_remove(root);
  return f;
}

static lw_inst *take_one(lw_inst *fusion, lw_inst *producer) {
  lw_comp *body = lw_fusion_body(fusion);
  int32_t slot = lw_fusion_slot(fusion, producer);
  LW_ASSERT(slot >= 0);
  lw_inst *param = body->params.data[slot];
  lw_inst **none =
      LW_NEW_ARRAY(body->module->arena, lw_inst *, producer->n_operands);
  lw_inst *clone = lw_inst_clone(body, producer, none, NULL);
  clone->sharding = NULL;
  lw_inst_move_before(clone, param);
  lw_inst_replace_uses(param, clone);
  remove_param(body, slot);
  lw_inst_drop_operand(fusion, slot);
  for (int32_t k = 0; k < producer->n_operands; k++)
    lw_inst_set_operand(clone, k,
                        param_for(fusion, lw_inst_operand(producer, k), clone));
  return clone;
}

/* A fusion's body comes as a whole: its parameters become parameters of the
 * taking fusion, its other instructions are cloned in its own order. */
static lw_inst *take_fusion(lw_inst *fusion, lw_inst *producer) {
  lw_comp *body = lw_fusion_body(fusion), *from = lw_fusion_body(producer);
  int32_t slot = lw_fusion_slot(fusion, producer);
  LW_ASSERT(slot >= 0);
  lw_inst *param = body->params.data[slot];
  lw_map map = {0};
  lw_inst *clone = NULL;
  for (lw_inst *i = from->first; i; i = i->next) {
    if (i->opcode == LW_OP_PARAMETER) {
      lw_inst *def =
          lw_inst_operand(producer, (int32_t)lw_inst_param_number(i));
      lw_map_set_ptr(&map, i, param_for(fusion, def, param));
      continue;
    }
    lw_inst **ops = LW_NEW_ARRAY(body->module->arena, lw_inst *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++)
      ops[k] = lw_map_ptr(&map, lw_inst_operand(i, k));
    lw_inst *copy = lw_inst_clone(body, i, ops, NULL);
    lw_inst_move_before(copy, param);
    lw_map_set_ptr(&map, i, copy);
    if (i == from->root) clone = copy;
  }
  if (!clone) clone = lw_map_ptr(&map, from->root);
  lw_map_free(&map);
  lw_inst_replace_uses(param, clone);
  slot = lw_fusion_slot(fusion, producer);
  remove_param(body, slot);
  lw_inst_drop_operand(fusion, slot);
  return clone;
}

lw_inst *lw_fusion_take(lw_inst *fusion, lw_inst *producer) {
  return lw_inst_is_fusion(producer) ? take_fusion(fusion, producer)
                                     : take_one(fusion, producer);
}

/* ---- several outputs ---- */

static int32_t elements_of(lw_comp *body, lw_inst *t, lw_inst **outputs) {
  int32_t n = t->shape->n_elems;
  for (int32_t k = 0; k < n; k++) {
    outputs[k] = lw_inst_new(body, LW_OP_GET_TUPLE_ELEMENT, t->shape->elems[k],
                             NULL, 1, &t);
    lw_inst_set_i64(outputs[k], LW_ATTR_INDEX, k);
  }
  return n;
}

/* Clones what an instruction computes (a body, or itself) into body and returns
 * its outputs: the root, or the operands of a root tuple. map: defs outside ->
 * values inside that are there already. */
static void bring(lw_inst *fusion, const lw_inst *src, lw_map *inside,
                  lw_inst **outputs, int32_t *n) {
  lw_comp *body = lw_fusion_body(fusion);
  lw_arena *a = body->module->arena;
  lw_map map = {0};
  const lw_comp *from = lw_inst_is_fusion(src) ? lw_fusion_body(src) : NULL;
  const lw_inst *first = from ? from->first : src;
  for (const lw_inst *i = first; i; i = from ? i->next : NULL) {
    if (from && i->opcode == LW_OP_PARAMETER) {
      lw_inst *def = lw_inst_operand(src, (int32_t)lw_inst_param_number(i));
      lw_inst *v = lw_map_ptr(inside, def);
      lw_map_set_ptr(&map, i, v ? v : param_for(fusion, def, NULL));
      continue;
    }
    if (from && i == from->root && i->opcode == LW_OP_TUPLE) continue;
    lw_inst **ops = LW_NEW_ARRAY(a, lw_inst *, i->n_operands);
    for (int32_t k = 0; k < i->n_operands; k++) {
      lw_inst *def = lw_inst_operand(i, k);
      lw_inst *v = lw_map_ptr(from ? &map : inside, def);
      ops[k] = v ? v : param_for(fusion, def, NULL);
    }
    lw_map_set_ptr(&map, i, lw_inst_clone(body, i, ops, NULL));
  }
  const lw_inst *root = from ? from->root : src;
  bool tuple = from && root->opcode == LW_OP_TUPLE;
  *n = tuple ? root->n_operands : 1;
  for (int32_t k = 0; k < *n; k++)
    outputs[k] = lw_map_ptr(&map, tuple ? lw_inst_operand(root, k) : root);
  if (!tuple && lw_shape_is_tuple(root->shape)) /* a reduce of several */
    *n = elements_of(body, outputs[0], outputs);
  lw_map_free(&map);
}

static int32_t output_count(const lw_inst *i) {
  return lw_shape_is_tuple(i->shape) ? i->shape->n_elems : 1;
}

/* Users of a side now read element base + k of the joined fusion. */
static void redirect(lw_inst *side, lw_inst *joined, int32_t base) {
  lw_comp *c = joined->parent;
  lw_arena *a = c->module->arena;
  if (!lw_shape_is_tuple(side->shape)) {
    lw_inst *g =
        lw_inst_new(c, LW_OP_GET_TUPLE_ELEMENT, side->shape, NULL, 1, &joined);
    lw_inst_set_i64(g, LW_ATTR_INDEX, base);
    lw_inst_move_before(g, joined->next);
    lw_inst_replace_uses(side, g);
    return;
  }
  int32_t n_users;
  lw_inst **users = lw_inst_users(side, a, &n_users);
  for (int32_t k = 0; k < n_users; k++) {
    LW_ASSERT(users[k]->opcode == LW_OP_GET_TUPLE_ELEMENT);
    lw_inst_set_operand(users[k], 0, joined);
    lw_inst_set_i64(users[k], LW_ATTR_INDEX,
                    base + lw_inst_i64(users[k], LW_ATTR_INDEX, 0));
  }
}

/* a and what b reads of it must precede the new fusion, their users follow:
 * what stands between a and b and depends on a is moved behind b. */
static void sink_users(lw_inst *a, lw_inst *b) {
  lw_comp *c = a->parent;
  lw_map moved = {0};
  lw_map_set_ptr(&moved, a, a);
  lw_inst *after = b->next;
  for (lw_inst *i = a->next, *next; i && i != b; i = next) {
    next = i->next;
    bool depends = false;
    for (int32_t k = 0; k < i->n_operands && !depends; k++)
      depends = lw_map_ptr(&moved, lw_inst_operand(i, k)) != NULL;
    if (!depends) continue;
    lw_map_set_ptr(&moved, i, i);
    if (after) {
      lw_inst_move_before(i, after);
    } else { /* to the end: before the last, then the last before it */
      lw_inst *last = c->last;
      lw_inst_move_before(i, last);
      lw_inst_move_before(last, i);
    }
  }
  lw_map_free(&moved);
}

static const lw_inst *read_from(lw_inst *a, const lw_inst *def) {
  if (def == a) return a;
  if (def->opcode == LW_OP_GET_TUPLE_ELEMENT && lw_inst_operand(def, 0) == a)
    return def;
  return NULL;
}

/* The fusion that will be both: a's body and operands where a is a fusion, a
 * clone of a otherwise. outs: its outputs so far. */
static lw_inst *start_join(lw_inst *a, const char *name, lw_inst **outs,
                           int32_t *n) {
  lw_module *m = a->parent->module;
  lw_inst *f = lw_inst_new(a->parent, LW_OP_FUSION, a->shape, name, 0, NULL);
  lw_inst_set_i64(f, LW_ATTR_KIND, LW_FUSION_LOOP);
  if (!lw_inst_is_fusion(a)) {
    lw_map none = {0};
    lw_inst_set_comp(f, LW_ATTR_CALLS, lw_comp_new(m, "fused_computation"));
    bring(f, a, &none, outs, n);
    return f;
  }
  lw_comp *body = lw_fusion_body(a);
  lw_inst *root = body->root;
  lw_inst_set_comp(f, LW_ATTR_CALLS, body);
  for (int32_t k = 0; k < a->n_operands; k++)
    lw_inst_append_operand(f, lw_inst_operand(a, k));
  *n = 1;
  outs[0] = root;
  if (root->opcode == LW_OP_TUPLE) {
    *n = root->n_operands;
    for (int32_t k = 0; k < *n; k++) outs[k] = lw_inst_operand(root, k);
    lw_inst_set_root(body, outs[0]);
    lw_inst_remove(root);
  } else if (lw_shape_is_tuple(root->shape)) {
    *n = elements_of(body, root, outs);
  }
  return f;
}

/* What b calls a's values, inside. */
static void name_inside(const lw_inst *b, lw_inst *a, lw_inst **outs,
                        lw_map *inside) {
  for (int32_t k = 0; k < b->n_operands; k++) {
    lw_inst *def = lw_inst_operand(b, k);
    const lw_inst *r = read_from(a, def);
    if (r)
      lw_map_set_ptr(inside, def,
                     outs[r == a ? 0 : lw_inst_i64(r, LW_ATTR_INDEX, 0)]);
  }
}

lw_inst *lw_fusion_join(lw_inst *a, lw_inst *b, const char *name) {
  lw_module *m = a->parent->module;
  int32_t na = output_count(a), nb = output_count(b);
  lw_inst **outs = LW_NEW_ARRAY(m->arena, lw_inst *, na + nb);
  const lw_shape **shapes = LW_NEW_ARRAY(m->arena, const lw_shape *, na + nb);
  sink_users(a, b);
  lw_inst *f = start_join(a, name, outs, &na);
  lw_comp *body = lw_fusion_body(f);
  lw_inst_move_before(f, b);
  lw_map inside = {0};
  name_inside(b, a, outs, &inside);
  bring(f, b, &inside, outs + na, &nb);
  lw_map_free(&inside);
  for (int32_t k = 0; k < na + nb; k++) shapes[k] = outs[k]->shape;
  f->shape = lw_shape_tuple(m->ctx, na + nb, shapes);
  body->root = lw_inst_new(body, LW_OP_TUPLE, f->shape, NULL, na + nb, outs);
  f->metadata = b->metadata;
  f->line = b->line;
  f->column = b->column;
  redirect(b, f, na);
  lw_inst_remove(b);
  redirect(a, f, 0);
  lw_inst_remove(a);
  return f;
}

/* ---- which computations, which instructions ---- */

uint8_t *lw_control_touched(const lw_comp *c, lw_arena *a) {
  uint8_t *t = LW_NEW_ARRAY(a, uint8_t, c->module->n_inst_ids + 1);
  for (lw_inst *i = c->first; i; i = i->next)
    for (int32_t k = 0; k < i->n_control_preds; k++)
      t[i->id] = t[i->control_preds[k]->id] = 1;
  return t;
}

static bool is_control_flow(lw_opcode op) {
  return op == LW_OP_WHILE || op == LW_OP_CONDITIONAL || op == LW_OP_CALL ||
         op == LW_OP_ASYNC_START;
}

lw_comp **lw_comps_to_fuse(const lw_module *m, lw_arena *a, int32_t *n) {
  uint8_t *runs = LW_NEW_ARRAY(a, uint8_t, m->n_comp_ids + 1);
  int32_t all;
  lw_comp **order = lw_module_post_order(m, a, &all, true);
  if (m->entry) runs[m->entry->id] = 1;
  for (int32_t k = all; k-- > 0;) /* callers before callees */
    for (lw_inst *i = order[k]->first; i; i = i->next)
      if (runs[order[k]->id] && is_control_flow(i->opcode))
        for (int32_t j = 0; j < lw_inst_called_count(i); j++)
          if (lw_inst_called(i, j)) runs[lw_inst_called(i, j)->id] = 1;
  *n = 0;
  for (int32_t k = 0; k < all; k++)
    if (runs[order[k]->id]) order[(*n)++] = order[k];
  return order;
}

lw_comp **lw_fusion_listed_order(const lw_module *m, lw_arena *a, int32_t *n) {
  lw_comp **list = LW_NEW_ARRAY(a, lw_comp *, m->n_comp_ids + 1);
  uint8_t *seen = LW_NEW_ARRAY(a, uint8_t, m->n_comp_ids + 1);
  *n = 0;
  for (lw_comp *c = m->first_comp; c; c = c->next) {
    list[(*n)++] = c;
    for (const lw_inst *i = c->first; i; i = i->next)
      for (int32_t j = 0; j < lw_inst_called_count(i); j++)
        if (i->opcode != LW_OP_FUSION && lw_inst_called(i, j) &&
            !seen[lw_inst_called(i, j)->id])
          return lw_module_post_order(m, a, n, false);
    seen[c->id] = 1;
  }
  return list;
}
