/* Modules: making, order of computations, copies. */
#include <stdlib.h>
#include <string.h>

#include "hlo/hlo.h"

lw_module *lw_module_new(lw_context *ctx, const char *name) {
  lw_arena *a = lw_arena_new();
  lw_module *m = LW_NEW(a, lw_module);
  m->ctx = ctx;
  m->arena = a;
  m->name = lw_context_cstr(ctx, name);
  m->replica_count = m->num_partitions = 1;
  return m;
}

void lw_module_free(lw_module *m) {
  if (!m) return;
  for (lw_comp *c = m->first_comp; c; c = c->next) lw_vec_free(&c->params);
  lw_map_free(&m->names);
  lw_map_free(&m->comp_names);
  lw_arena_free(m->arena);
}

void lw_module_remove_comp(lw_module *m, lw_comp *c) {
  lw_comp **p = &m->first_comp, *prev = NULL;
  while (*p && *p != c) {
    prev = *p;
    p = &prev->next;
  }
  if (!*p) return;
  *p = c->next;
  if (m->last_comp == c) m->last_comp = prev;
  lw_vec_free(&c->params);
}

/* ---- post order of computations ----
 * Callees before callers, in the order a depth-first walk over each
 * computation's instructions (its own post order is not needed: XLA walks the
 * instruction list) meets them. Roots, the entry among them, come in insertion
 * order, as in XLA. */

typedef struct {
  uint8_t *color;
  lw_comp **out;
  int32_t n;
} comp_walk;

typedef struct {
  lw_comp *c;
  lw_inst *at;
  int32_t k;
} frame;

static lw_comp *next_callee(frame *f) {
  for (; f->at; f->at = f->at->next, f->k = 0) {
    int32_t n = lw_inst_called_count(f->at);
    if (f->k < n) return lw_inst_called(f->at, f->k++);
  }
  return NULL;
}

static void visit(comp_walk *w, lw_comp *start) {
  LW_VEC(frame) stack = {0};
  if (w->color[start->id]) return;
  w->color[start->id] = 1;
  lw_vec_push(&stack, ((frame){start, start->first, 0}));
  while (stack.len) {
    frame *f = &stack.data[stack.len - 1];
    lw_comp *callee = next_callee(f);
    if (callee) {
      if (w->color[callee->id]) continue;
      w->color[callee->id] = 1;
      lw_vec_push(&stack, ((frame){callee, callee->first, 0}));
      continue;
    }
    w->out[w->n++] = f->c;
    stack.len--;
  }
  lw_vec_free(&stack);
}

lw_comp **lw_module_post_order(const lw_module *m, lw_arena *a, int32_t *n,
                               bool reachable_only) {
  comp_walk w = {0};
  w.color = calloc((size_t)m->n_comp_ids + 1, 1);
  if (!w.color) lw_oom((size_t)m->n_comp_ids);
  w.out = LW_NEW_ARRAY(a, lw_comp *, m->n_comp_ids);
  if (!reachable_only) {
    uint8_t *called = calloc((size_t)m->n_comp_ids + 1, 1);
    if (!called) lw_oom((size_t)m->n_comp_ids);
    for (lw_comp *c = m->first_comp; c; c = c->next)
      for (lw_inst *i = c->first; i; i = i->next)
        for (int32_t k = 0; k < lw_inst_called_count(i); k++)
          if (lw_inst_called(i, k)) called[lw_inst_called(i, k)->id] = 1;
    for (lw_comp *c = m->first_comp; c; c = c->next)
      if (!called[c->id] || c == m->entry) visit(&w, c);
    free(called);
  }
  if (m->entry) visit(&w, m->entry);
  if (!reachable_only) /* recursion, in wrong modules only */
    for (lw_comp *c = m->first_comp; c; c = c->next) visit(&w, c);
  free(w.color);
  *n = w.n;
  return w.out;
}

/* ---- copies ---- */

static void fix_ids(const lw_module *m, lw_map *inst_map) {
  for (lw_comp *c = m->first_comp; c; c = c->next)
    for (lw_inst *i = c->first; i; i = i->next) {
      lw_inst *to = lw_map_ptr(inst_map, i);
      to->name = i->name;
      to->unique_id = i->unique_id;
    }
}

static lw_status copy_literals(lw_module *to) {
  for (lw_comp *c = to->first_comp; c; c = c->next)
    for (lw_inst *i = c->first; i; i = i->next)
      for (int32_t k = 0; k < i->n_attrs; k++)
        if (i->attrs[k].id == LW_ATTR_LITERAL) {
          lw_literal *copy;
          LW_TRY(lw_literal_clone(to->arena, i->attrs[k].u.literal, &copy));
          i->attrs[k].u.literal = copy;
        }
  return NULL;
}

/* Metadata, windows, strings that live in the source's arena are shared: the
 * source must outlive its copy. Literals are copied, since passes may drop the
 * big ones of the source. */
lw_status lw_module_clone(const lw_module *m, lw_module **out) {
  lw_module *to = lw_module_new(m->ctx, m->name);
  lw_map comps = {0}, insts = {0};
  lw_arena *scratch = lw_arena_new();
  int32_t n;
  lw_comp **order = lw_module_post_order(m, scratch, &n, false);
  for (int32_t k = 0; k < n; k++)
    lw_map_set_ptr(&comps, order[k],
                   lw_comp_clone(to, order[k], NULL, &comps, &insts));
  lw_comp *first = to->first_comp, *last = to->last_comp;
  int32_t comp_ids = to->n_comp_ids, inst_ids = to->n_inst_ids;
  lw_map names = to->names, comp_names = to->comp_names;
  lw_arena *arena = to->arena;
  *to = *m;
  to->arena = arena;
  to->names = names;
  to->comp_names = comp_names;
  to->n_comp_ids = comp_ids;
  to->n_inst_ids = inst_ids;
  to->first_comp = first;
  to->last_comp = last;
  to->entry = m->entry ? lw_map_ptr(&comps, m->entry) : NULL;
  lw_comp **link = &to->first_comp; /* in m's own order */
  for (lw_comp *c = m->first_comp; c; c = c->next) {
    lw_comp *d = lw_map_ptr(&comps, c);
    d->name = c->name;
    d->next = NULL;
    *link = to->last_comp = d;
    link = &d->next;
  }
  fix_ids(m, &insts);
  lw_names_copy(&to->names, &m->names); /* also those of what is gone */
  lw_names_copy(&to->comp_names, &m->comp_names);
  lw_status s = copy_literals(to);
  lw_map_free(&comps);
  lw_map_free(&insts);
  lw_arena_free(scratch);
  if (s) lw_module_free(to);
  *out = s ? NULL : to;
  return s;
}
