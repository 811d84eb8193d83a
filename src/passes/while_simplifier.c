/* while-simplifier: loops carry what they need and no more.
 *
 * JAX's scan and fori_loop put everything a body reads into the loop's tuple.
 * Five rewrites, on every loop:
 *   1. an element the body hands through unchanged is, outside, what it was
 *      before the loop;
 *   2. if that is a constant (or a broadcast constant, or an iota), body and
 *      condition get it as their own;
 *   3. an element that neither the outside, nor the condition, nor a live
 *      element, nor a side effect depends on is dropped;
 *   4. two elements that start equal and are computed alike are one;
 *   5. a loop known to run no round is its initial value; one round is its
 *      body.
 * No value that anybody sees is computed differently. A loop that never ends
 * is kept by 3 as long as somebody uses a result of it.
 */
#include <string.h>

#include "hlo/trip_count.h"
#include "passes/inline.h"
#include "passes/passes.h"
#include "passes/rewrite.h"
#include "passes/same.h"

typedef struct {
  lw_module *m;
  lw_pass_env *env;
  lw_inst *w, *init, *body_param, *cond_param;
  lw_comp *body, *cond;
  int32_t n;        /* elements */
  int32_t *callers; /* of each computation, by id */
} loop;

static int64_t index_of(const lw_inst *gte) {
  return lw_inst_i64(gte, LW_ATTR_INDEX, -1);
}

static bool only_elements_used(const lw_inst *x) {
  if (lw_inst_is_root(x)) return false;
  for (const lw_use *u = x->uses; u; u = u->next)
    if (u->user->opcode != LW_OP_GET_TUPLE_ELEMENT) return false;
  return true;
}

static bool take_apart(lw_inst *w, loop *l) {
  l->w = w;
  l->init = lw_op(w, 0);
  l->body = lw_inst_comp(w, LW_ATTR_BODY);
  l->cond = lw_inst_comp(w, LW_ATTR_CONDITION);
  if (l->body->params.len != 1 || l->cond->params.len != 1) return false;
  l->body_param = l->body->params.data[0];
  l->cond_param = l->cond->params.data[0];
  l->n = w->shape->n_elems;
  return lw_shape_is_tuple(w->shape) && l->body->root->opcode == LW_OP_TUPLE &&
         only_elements_used(l->body_param) &&
         (only_elements_used(l->cond_param) || !l->cond_param->n_uses);
}

static bool hands_through(const loop *l, int32_t k) {
  const lw_inst *x = lw_op(l->body->root, k);
  return x->opcode == LW_OP_GET_TUPLE_ELEMENT && lw_op(x, 0) == l->body_param &&
         index_of(x) == k;
}

/* ---- 1: outside uses ---- */

static bool outside_uses(loop *l, int32_t k) {
  bool changed = false;
  for (lw_use *u = l->w->uses, *next; u; u = next) {
    next = u->next;
    lw_inst *g = u->user;
    if (g->opcode != LW_OP_GET_TUPLE_ELEMENT || index_of(g) != k) continue;
    if (g->n_uses == 0 && !lw_inst_is_root(g)) continue;
    if (!lw_pass_fuel(l->env)) break;
    lw_inst *before = lw_tuple_element(l->init, k, l->w);
    lw_inst_replace_uses(g, before);
    lw_pass_count(l->env, "elements handed through", 1);
    changed = true;
  }
  return changed;
}

/* ---- 2: constants sink ---- */

/* A larger constant is one value in memory rather than one in each place. */
enum { SINK_BYTES = 65536 };

static bool is_sinkable(const lw_inst *x) {
  for (int depth = 0; depth < 8 && x->opcode == LW_OP_BROADCAST; depth++)
    x = lw_op(x, 0);
  if (x->opcode == LW_OP_CONSTANT)
    return lw_shape_is_array(x->shape) &&
           lw_shape_bytes(x->shape) <= SINK_BYTES;
  return x->opcode == LW_OP_IOTA;
}

static lw_inst *sink(lw_comp *c, const lw_inst *x, lw_inst *at) {
  lw_inst *op = x->n_operands ? sink(c, lw_op(x, 0), at) : NULL;
  lw_inst *i = lw_inst_clone(c, x, op ? &op : NULL, NULL);
  lw_inst_move_before(i, at);
  return i;
}

static bool sink_into(loop *l, lw_comp *c, lw_inst *param, int32_t k,
                      const lw_inst *x) {
  lw_inst *copy = NULL;
  for (lw_use *u = param->uses; u; u = u->next) {
    lw_inst *g = u->user;
    if (index_of(g) != k) continue;
    for (lw_use *v = g->uses, *next; v; v = next) {
      next = v->next;
      if (v->user == l->body->root && v->slot == k) continue;
      if (!copy) {
        if (!lw_pass_fuel(l->env)) return false;
        copy = sink(c, x, c->first);
        lw_pass_count(l->env, "constants sunk", 1);
      }
      lw_inst_set_operand(v->user, v->slot, copy);
    }
    if (copy && c->root == g) c->root = copy;
  }
  return copy != NULL;
}

static bool sink_constants(loop *l, int32_t k) {
  if (l->init->opcode != LW_OP_TUPLE) return false;
  const lw_inst *x = lw_op(l->init, k);
  if (!is_sinkable(x)) return false;
  bool a = sink_into(l, l->body, l->body_param, k, x);
  bool b = sink_into(l, l->cond, l->cond_param, k, x);
  return a || b;
}

/* ---- 3: dead elements ---- */

typedef struct {
  bool *live;
  LW_VEC(int32_t) todo;
  lw_map seen;
} liveness;

static void element_lives(liveness *v, int64_t k) {
  if (v->live[k]) return;
  v->live[k] = true;
  lw_vec_push(&v->todo, (int32_t)k);
}

/* Every element that x is computed from. */
static void reach(liveness *v, lw_inst *x, const lw_inst *param) {
  LW_VEC(lw_inst *) stack = {0};
  lw_vec_push(&stack, x);
  while (stack.len) {
    lw_inst *i = lw_vec_pop(&stack);
    uint64_t *seen = lw_map_put(&v->seen, (uintptr_t)i);
    if (*seen) continue;
    *seen = 1;
    if (i->opcode == LW_OP_GET_TUPLE_ELEMENT && lw_op(i, 0) == param) {
      element_lives(v, index_of(i));
      continue;
    }
    for (int32_t k = 0; k < i->n_operands; k++)
      lw_vec_push(&stack, lw_op(i, k));
    for (int32_t k = 0; k < i->n_control_preds; k++)
      lw_vec_push(&stack, i->control_preds[k]);
  }
  lw_vec_free(&stack);
}

static void find_live(loop *l, liveness *v) {
  bool all = !only_elements_used(l->w);
  for (int32_t k = 0; all && k < l->n; k++) element_lives(v, k);
  for (lw_use *u = l->w->uses; !all && u; u = u->next)
    if (u->user->n_uses || lw_inst_is_root(u->user))
      element_lives(v, index_of(u->user));
  reach(v, l->cond->root, l->cond_param);
  for (lw_inst *i = l->cond->first; i; i = i->next)
    if (lw_inst_has_side_effect(i)) reach(v, i, l->cond_param);
  for (lw_inst *i = l->body->first; i; i = i->next)
    if (lw_inst_has_side_effect(i)) reach(v, i, l->body_param);
  while (v->todo.len)
    reach(v, lw_op(l->body->root, lw_vec_pop(&v->todo)), l->body_param);
}

static void sweep_dead(lw_comp *c) {
  for (lw_inst *i = c->last, *prev; i; i = prev) {
    prev = i->prev;
    if (lw_is_dead(i)) lw_inst_remove(i);
  }
}

static const lw_shape *kept_shape(loop *l, const bool *live) {
  const lw_shape **v = LW_NEW_ARRAY(l->env->scratch, const lw_shape *, l->n);
  int32_t n = 0;
  for (int32_t k = 0; k < l->n; k++)
    if (live[k]) v[n++] = l->w->shape->elems[k];
  return lw_shape_tuple(l->m->ctx, n, v);
}

static lw_inst *kept_tuple(loop *l, lw_inst *from, const bool *live,
                           const lw_shape *s, lw_inst *before) {
  lw_inst **v = LW_NEW_ARRAY(l->env->scratch, lw_inst *, l->n);
  int32_t n = 0;
  for (int32_t k = 0; k < l->n; k++)
    if (live[k]) v[n++] = lw_tuple_element(from, k, before);
  lw_inst *t = lw_inst_new(from->parent, LW_OP_TUPLE, s, NULL, n, v);
  t->metadata = from->metadata;
  lw_inst_move_before(t, before);
  return t;
}

/* Elements of param are renumbered; those of dead elements are unused. */
static void renumber(lw_inst *param, const bool *live) {
  for (lw_use *u = param->uses, *next; u; u = next) {
    next = u->next;
    int64_t old = index_of(u->user), k = 0;
    for (int64_t j = 0; j < old; j++) k += live[j];
    if (live[old])
      lw_inst_set_i64(u->user, LW_ATTR_INDEX, k);
    else
      lw_inst_remove(u->user);
  }
}

static void drop_elements(loop *l, const bool *live) {
  const lw_shape *s = kept_shape(l, live);
  lw_inst *root = l->body->root;
  lw_inst *init = kept_tuple(l, l->init, live, s, l->w);
  l->body->root = kept_tuple(l, root, live, s, root);
  if (root->n_uses == 0) lw_inst_remove(root);
  sweep_dead(l->body);
  sweep_dead(l->cond);
  renumber(l->body_param, live);
  renumber(l->cond_param, live);
  l->body_param->shape = l->cond_param->shape = l->w->shape = s;
  l->body_param->sharding = l->cond_param->sharding = l->w->sharding = NULL;
  renumber(l->w, live);
  lw_inst *old = l->init;
  lw_inst_set_operand(l->w, 0, init);
  lw_remove_dead(old);
}

static bool dead_elements(loop *l) {
  liveness v = {.live = LW_NEW_ARRAY(l->env->scratch, bool, l->n + 1)};
  find_live(l, &v);
  int32_t kept = 0;
  for (int32_t k = 0; k < l->n; k++) kept += v.live[k];
  bool go = kept > 0 && kept < l->n && lw_pass_fuel(l->env);
  if (go) {
    drop_elements(l, v.live);
    lw_pass_count(l->env, "elements dropped", l->n - kept);
  }
  lw_vec_free(&v.todo);
  lw_map_free(&v.seen);
  return go;
}

/* ---- 4: twins ---- */

enum { TWIN_STEPS = 64 };

/* The same expression when element j of param is taken for element k. */
static bool alike(const lw_inst *a, const lw_inst *b, const lw_inst *param,
                  int64_t j, int64_t k, int *steps) {
  if (a == b) return true;
  if (--*steps < 0 || a->opcode != b->opcode) return false;
  if (a->opcode == LW_OP_GET_TUPLE_ELEMENT && lw_op(a, 0) == param)
    return lw_op(b, 0) == param && (index_of(a) == j || index_of(a) == k) &&
           (index_of(b) == j || index_of(b) == k);
  if (a->opcode == LW_OP_PARAMETER || a->n_operands != b->n_operands ||
      a->n_control_preds || b->n_control_preds ||
      !lw_shape_compatible(a->shape, b->shape) || lw_inst_called_count(a) ||
      lw_inst_has_side_effect(a) || a->opcode == LW_OP_CUSTOM_CALL ||
      !lw_inst_attrs_same(a, b))
    return false;
  for (int32_t o = 0; o < a->n_operands; o++)
    if (!alike(lw_op(a, o), lw_op(b, o), param, j, k, steps)) return false;
  return true;
}

/* Element j, read where element k is. */
static lw_inst *read_instead(lw_inst *g, int64_t j) {
  lw_inst *x = lw_inst_clone(g->parent, g, NULL, NULL);
  lw_inst_set_i64(x, LW_ATTR_INDEX, j);
  return x;
}

static void use_instead(lw_inst *param, int32_t j, int32_t k,
                        const lw_inst *root) {
  lw_inst *first = NULL;
  for (lw_use *u = param->uses; u; u = u->next)
    if (index_of(u->user) == j && !first) first = u->user;
  for (lw_use *u = param->uses, *next; u; u = next) {
    next = u->next;
    lw_inst *g = u->user;
    if (index_of(g) != k || g == first) continue;
    for (lw_use *v = g->uses, *after; v; v = after) {
      after = v->next;
      if (v->user == root && v->slot == k) continue;
      if (!first) first = read_instead(g, j);
      lw_inst_move_before(first, param->next ? param->next : g);
      lw_inst_set_operand(v->user, v->slot, first);
    }
    if (!lw_inst_is_root(g)) continue;
    if (!first) first = read_instead(g, j);
    lw_inst_set_root(g->parent, first);
  }
}

static bool used_beyond_itself(const loop *l, int32_t k) {
  const lw_inst *params[3] = {l->w, l->body_param, l->cond_param};
  for (int p = 0; p < 3; p++)
    for (const lw_use *u = params[p]->uses; u; u = u->next) {
      const lw_inst *g = u->user;
      if (g->opcode != LW_OP_GET_TUPLE_ELEMENT || index_of(g) != k) continue;
      if (p != 1 && (g->n_uses || lw_inst_is_root(g))) return true;
      for (const lw_use *v = g->uses; p == 1 && v; v = v->next)
        if (v->user != lw_op(l->body->root, k) && v->user != l->body->root)
          return true;
    }
  return false;
}

static bool are_twins(const loop *l, int32_t j, int32_t k) {
  int steps = TWIN_STEPS;
  const lw_inst *a = lw_op(l->init, j), *b = lw_op(l->init, k);
  bool start =
      a == b ||
      (a->opcode == LW_OP_CONSTANT && b->opcode == LW_OP_CONSTANT &&
       lw_shape_compatible(a->shape, b->shape) && lw_inst_attrs_same(a, b));
  return start && alike(lw_op(l->body->root, j), lw_op(l->body->root, k),
                        l->body_param, j, k, &steps);
}

static bool twins(loop *l) {
  bool changed = false;
  if (l->init->opcode != LW_OP_TUPLE || l->n > 64 || !only_elements_used(l->w))
    return false;
  for (int32_t k = 1; k < l->n; k++)
    for (int32_t j = 0; j < k; j++) {
      if (!used_beyond_itself(l, k) || !are_twins(l, j, k)) continue;
      if (!lw_pass_fuel(l->env)) return changed;
      use_instead(l->body_param, j, k, l->body->root);
      use_instead(l->cond_param, j, k, NULL);
      use_instead(l->w, j, k, NULL);
      lw_pass_count(l->env, "equal elements", 1);
      changed = true;
      break;
    }
  return changed;
}

/* ---- 5: no round, one round ---- */

static bool condition_is_false(const loop *l) {
  return lw_is_all_int(l->cond->root, 0);
}

/* The inlined copy calls what the body calls. */
static void count_copied_calls(loop *l) {
  for (const lw_inst *i = l->body->first; i; i = i->next)
    for (int32_t k = 0;
         i->opcode != LW_OP_FUSION && k < lw_inst_called_count(i); k++)
      l->callers[lw_inst_called(i, k)->id]++;
}

static bool few_rounds(loop *l) {
  int64_t n = condition_is_false(l) ? 0 : lw_while_trip_count(l->w);
  if (n != 0 && n != 1) return false;
  for (lw_inst *i = l->cond->first; i; i = i->next)
    if (lw_inst_has_side_effect(i)) return false;
  if (l->w->n_control_preds || !lw_pass_fuel(l->env)) return false;
  if (n == 0) {
    lw_inst_replace_uses(l->w, l->init);
    lw_inst_remove(l->w);
    lw_pass_count(l->env, "loops of no round", 1);
  } else {
    count_copied_calls(l);
    lw_inline_at(l->w, l->body, &l->init, 1, lw_module_has_control_edges(l->m));
    lw_pass_count(l->env, "loops of one round", 1);
  }
  return true;
}

/* How many instructions call each computation, by id. */
static int32_t *caller_counts(const lw_module *m, lw_arena *a) {
  int32_t *n = LW_NEW_ARRAY(a, int32_t, m->n_comp_ids + 1);
  for (const lw_comp *d = m->first_comp; d; d = d->next)
    for (const lw_inst *i = d->first; i; i = i->next)
      for (int32_t k = 0; k < lw_inst_called_count(i); k++)
        n[lw_inst_called(i, k)->id]++;
  return n;
}

static bool simplify(lw_module *m, lw_pass_env *env, lw_inst *w,
                     int32_t *callers) {
  loop l = {.m = m, .env = env, .callers = callers};
  bool changed = false;
  if (!take_apart(w, &l)) return false;
  if (few_rounds(&l)) return true;
  if (callers[l.body->id] != 1 || callers[l.cond->id] != 1) return false;
  for (int32_t k = 0; k < l.n; k++) {
    if (!hands_through(&l, k)) continue;
    if (outside_uses(&l, k)) changed = true;
    if (sink_constants(&l, k)) changed = true;
  }
  if (twins(&l)) changed = true;
  return dead_elements(&l) || changed;
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  int32_t n;
  lw_comp **comps = lw_control_comps(m, env->scratch, &n);
  int32_t *callers = caller_counts(m, env->scratch);
  for (int32_t k = n - 1; k >= 0; k--)
    for (lw_inst *i = comps[k]->first, *next; i; i = next) {
      next = i->next;
      if (i->opcode == LW_OP_WHILE && (i->n_uses || lw_inst_is_root(i)) &&
          simplify(m, env, i, callers))
        *changed = true;
    }
  return NULL;
}

const lw_pass lw_pass_while_simplifier = {
    "while-simplifier",
    "drops loop elements nobody needs, unrolls loops of no or one round", NULL,
    run};
