#include "passes/inline.h"

static void copy_fusion_body(lw_inst *i) {
  lw_comp *body = lw_inst_comp(i, LW_ATTR_CALLS);
  if (i->opcode != LW_OP_FUSION || !body) return;
  body = lw_comp_clone(i->parent->module, body, NULL, NULL, NULL);
  lw_inst_set_comp(i, LW_ATTR_CALLS, body);
  lw_copy_fusion_bodies(body);
}

void lw_copy_fusion_bodies(lw_comp *c) {
  for (lw_inst *i = c->first; i; i = i->next) copy_fusion_body(i);
}

static lw_inst *clone_one(lw_inst *site, const lw_inst *src, lw_map *map) {
  lw_comp *c = site->parent;
  lw_inst *stack_ops[8];
  lw_inst **ops =
      src->n_operands <= 8
          ? stack_ops
          : LW_NEW_ARRAY(c->module->arena, lw_inst *, src->n_operands);
  for (int32_t k = 0; k < src->n_operands; k++)
    ops[k] = lw_map_ptr(map, src->operands[k].def);
  lw_inst *i = lw_inst_clone(c, src, ops, NULL);
  lw_inst_move_before(i, site);
  copy_fusion_body(i);
  for (int32_t k = 0; k < src->n_control_preds; k++)
    lw_inst_add_control_pred(i, lw_map_ptr(map, src->control_preds[k]));
  for (int32_t k = 0; k < site->n_control_preds; k++)
    lw_inst_add_control_pred(i, site->control_preds[k]);
  return i;
}

lw_inst *lw_inline_body(lw_inst *site, const lw_comp *callee,
                        lw_inst *const *args, int32_t n_args) {
  lw_map map = {0};
  for (const lw_inst *i = callee->first; i; i = i->next) {
    lw_inst *to;
    if (i->opcode == LW_OP_PARAMETER) {
      int64_t n = lw_inst_param_number(i);
      LW_ASSERT(n >= 0 && n < n_args);
      to = args[n];
    } else {
      to = clone_one(site, i, &map);
    }
    lw_map_set_ptr(&map, i, to);
  }
  lw_inst *root = lw_map_ptr(&map, callee->root);
  lw_map_free(&map);
  return root;
}

/* Who waited for old waits for def. */
static void move_control_successors(lw_inst *old, lw_inst *def) {
  for (lw_inst *j = old->parent->first; j; j = j->next)
    for (int32_t k = 0; k < j->n_control_preds; k++)
      if (j->control_preds[k] == old) j->control_preds[k] = def;
}

bool lw_module_has_control_edges(const lw_module *m) {
  for (const lw_comp *c = m->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next)
      if (i->n_control_preds) return true;
  return false;
}

void lw_inline_at(lw_inst *site, const lw_comp *callee, lw_inst *const *args,
                  int32_t n_args, bool control_edges) {
  lw_inst *root = lw_inline_body(site, callee, args, n_args);
  if (control_edges) move_control_successors(site, root);
  lw_inst_replace_uses(site, root);
  lw_inst_remove(site);
}

lw_inst *lw_tuple_element(lw_inst *tuple, int32_t k, lw_inst *site) {
  if (tuple->opcode == LW_OP_TUPLE) return lw_inst_operand(tuple, k);
  lw_inst *g = lw_inst_new(site->parent, LW_OP_GET_TUPLE_ELEMENT,
                           tuple->shape->elems[k], NULL, 1, &tuple);
  lw_inst_set_i64(g, LW_ATTR_INDEX, k);
  g->metadata = tuple->metadata;
  lw_inst_move_before(g, site);
  return g;
}
