/* Computations: order, cloning. */
#include <stdlib.h>
#include <string.h>

#include "hlo/hlo.h"

lw_comp *lw_comp_new(lw_module *m, const char *name) {
  lw_comp *c = LW_NEW(m->arena, lw_comp);
  c->module = m;
  c->id = m->n_comp_ids++;
  c->name = lw_name_unique(m->ctx, &m->comp_names, name);
  if (m->last_comp)
    m->last_comp->next = c;
  else
    m->first_comp = c;
  m->last_comp = c;
  return c;
}

/* ---- post order ----
 * XLA's: for each instruction without users, in insertion order, a depth-first
 * walk that emits control predecessors, then operands, before the node. The
 * walk keeps an explicit stack: chains are as long as modules are. */

enum { WHITE, GREY, BLACK };

typedef struct {
  const lw_comp *c;
  uint8_t *color; /* by position in an id-indexed table */
  lw_inst **out;
  int32_t n;
  LW_VEC(lw_inst *) stack;
} walk;

static void push_new(walk *w, lw_inst *i) {
  if (i && i->parent == w->c && w->color[i->id] == WHITE)
    lw_vec_push(&w->stack, i);
}

static void visit(walk *w, lw_inst *start) {
  lw_vec_push(&w->stack, start);
  while (w->stack.len) {
    lw_inst *i = w->stack.data[w->stack.len - 1];
    uint8_t *color = &w->color[i->id];
    if (*color != WHITE) {
      if (*color == GREY) w->out[w->n++] = i;
      *color = BLACK;
      (void)lw_vec_pop(&w->stack);
      continue;
    }
    *color = GREY;
    /* Pushed last = visited first: the last control predecessor, as in XLA. */
    for (int32_t k = i->n_operands - 1; k >= 0; k--)
      push_new(w, i->operands[k].def);
    for (int32_t k = 0; k < i->n_control_preds; k++)
      push_new(w, i->control_preds[k]);
  }
}

lw_inst **lw_comp_post_order(const lw_comp *c, lw_arena *a, int32_t *n) {
  walk w = {.c = c};
  w.color = calloc((size_t)c->module->n_inst_ids + 1, 1);
  if (!w.color) lw_oom((size_t)c->module->n_inst_ids);
  w.out = LW_NEW_ARRAY(a, lw_inst *, c->n_insts);
  for (lw_inst *i = c->first; i; i = i->next)
    if (i->n_uses == 0) visit(&w, i);
  /* Cycles (only in wrong modules) leave nodes without a userless start. */
  for (lw_inst *i = c->first; i; i = i->next)
    if (w.color[i->id] == WHITE) visit(&w, i);
  free(w.color);
  lw_vec_free(&w.stack);
  *n = w.n;
  return w.out;
}

/* ---- cloning ---- */

static lw_comp *mapped_comp(lw_map *comp_map, lw_comp *c) {
  lw_comp *to = comp_map ? lw_map_ptr(comp_map, c) : NULL;
  return to ? to : c;
}

lw_comp *lw_comp_clone(lw_module *m, const lw_comp *c, const char *name,
                       lw_map *comp_map, lw_map *inst_map) {
  lw_comp *to = lw_comp_new(m, name ? name : c->name);
  lw_map own = {0};
  if (!inst_map) inst_map = &own;
  lw_arena *scratch = lw_arena_new();
  int32_t n;
  lw_inst **order = lw_comp_post_order(c, scratch, &n);
  for (int32_t k = 0; k < n; k++) {
    const lw_inst *src = order[k];
    lw_inst **ops = LW_NEW_ARRAY(scratch, lw_inst *, src->n_operands);
    for (int32_t j = 0; j < src->n_operands; j++)
      ops[j] = lw_map_ptr(inst_map, src->operands[j].def);
    lw_inst *i = lw_inst_clone(to, src, ops, NULL);
    for (int32_t j = 0; j < lw_inst_called_count(i); j++)
      lw_inst_set_called(i, j, mapped_comp(comp_map, lw_inst_called(i, j)));
    for (int32_t j = 0; j < src->n_control_preds; j++)
      lw_inst_add_control_pred(i, lw_map_ptr(inst_map, src->control_preds[j]));
    lw_map_set_ptr(inst_map, src, i);
  }
  /* Insertion order of the source, so that printing keeps its order. */
  for (lw_inst *src = c->first; src; src = src->next) {
    lw_inst *i = lw_map_ptr(inst_map, src);
    if (i != to->last) { /* move to the end: before nothing */
      if (i->prev)
        i->prev->next = i->next;
      else
        to->first = i->next;
      if (i->next) i->next->prev = i->prev;
      i->prev = to->last;
      i->next = NULL;
      to->last->next = i;
      to->last = i;
    }
  }
  to->root = c->root ? lw_map_ptr(inst_map, c->root) : NULL;
  to->execution_thread = c->execution_thread;
  lw_arena_free(scratch);
  lw_map_free(&own);
  return to;
}

lw_inst *lw_comp_first_caller(const lw_comp *c) {
  for (lw_comp *d = c->module->first_comp; d; d = d->next)
    for (lw_inst *i = d->first; i; i = i->next)
      for (int32_t k = 0; k < lw_inst_called_count(i); k++)
        if (lw_inst_called(i, k) == c) return i;
  return NULL;
}

lw_opcode lw_comp_binary_op(const lw_comp *c) {
  const lw_inst *r = c->root;
  if (!r || c->n_insts != 3 || c->params.len != 2 || r->n_operands != 2)
    return LW_OPCODE_COUNT;
  const lw_inst *a = lw_inst_operand(r, 0), *b = lw_inst_operand(r, 1);
  if (a->opcode != LW_OP_PARAMETER || b->opcode != LW_OP_PARAMETER || a == b)
    return LW_OPCODE_COUNT;
  if (!(lw_opcode_table[r->opcode].flags & LW_OPF_BIN)) return LW_OPCODE_COUNT;
  bool same = a->shape->no_layout == b->shape->no_layout &&
              a->shape->no_layout == r->shape->no_layout;
  return same && lw_shape_is_scalar(r->shape) ? r->opcode : LW_OPCODE_COUNT;
}

void lw_module_adopt_callees(lw_module *to, const lw_inst *i, lw_map *comps) {
  for (int32_t k = 0; k < lw_inst_called_count(i); k++) {
    lw_comp *c = lw_inst_called(i, k);
    if (lw_map_ptr(comps, c)) continue;
    for (const lw_inst *e = c->first; e; e = e->next)
      lw_module_adopt_callees(to, e, comps);
    lw_comp *copy = lw_comp_clone(to, c, c->name, comps, NULL);
    lw_map_set_ptr(comps, c, copy);
  }
}
