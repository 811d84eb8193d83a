#include "passes/rewrite.h"

#include <stdlib.h>
#include <string.h>

/* ---- which computations ---- */

static bool is_control(const lw_inst *i) {
  return i->opcode == LW_OP_CALL || i->opcode == LW_OP_WHILE ||
         i->opcode == LW_OP_CONDITIONAL;
}

static void mark_control(lw_comp *c, uint8_t *mark) {
  LW_VEC(lw_comp *) stack = {0};
  mark[c->id] = 1;
  lw_vec_push(&stack, c);
  while (stack.len) {
    lw_comp *d = lw_vec_pop(&stack);
    for (lw_inst *i = d->first; i; i = i->next) {
      if (!is_control(i)) continue;
      for (int32_t k = 0; k < lw_inst_called_count(i); k++) {
        lw_comp *e = lw_inst_called(i, k);
        if (mark[e->id]) continue;
        mark[e->id] = 1;
        lw_vec_push(&stack, e);
      }
    }
  }
  lw_vec_free(&stack);
}

lw_comp **lw_control_comps(const lw_module *m, lw_arena *a, int32_t *n) {
  uint8_t *mark = LW_NEW_ARRAY(a, uint8_t, m->n_comp_ids + 1);
  int32_t total, kept = 0;
  lw_comp **all = lw_module_post_order(m, a, &total, true);
  if (m->entry) mark_control(m->entry, mark);
  for (int32_t k = 0; k < total; k++)
    if (mark[all[k]->id]) all[kept++] = all[k];
  *n = kept;
  return all;
}

/* ---- removal ---- */

bool lw_is_dead(const lw_inst *i) {
  return i->parent && i->n_uses == 0 && !lw_inst_is_root(i) &&
         i->opcode != LW_OP_PARAMETER && !lw_inst_has_side_effect(i);
}

/* Nobody waits for it: control edges keep an instruction alive. */
static bool is_control_pred(const lw_inst *i) {
  for (const lw_inst *j = i->parent->first; j; j = j->next)
    for (int32_t k = 0; k < j->n_control_preds; k++)
      if (j->control_preds[k] == i) return true;
  return false;
}

static bool comp_has_control_edges(const lw_comp *c) {
  for (const lw_inst *j = c->first; j; j = j->next)
    if (j->n_control_preds) return true;
  return false;
}

int32_t lw_remove_dead(lw_inst *i) {
  if (!lw_is_dead(i)) return 0;
  bool edges = comp_has_control_edges(i->parent);
  LW_VEC(lw_inst *) stack = {0};
  int32_t n = 0;
  lw_vec_push(&stack, i);
  while (stack.len) {
    lw_inst *d = lw_vec_pop(&stack);
    if (!lw_is_dead(d) || (edges && is_control_pred(d))) continue;
    for (int32_t k = 0; k < d->n_operands; k++)
      lw_vec_push(&stack, d->operands[k].def);
    lw_inst_remove(d);
    n++;
  }
  lw_vec_free(&stack);
  return n;
}

/* ---- the worklist ---- */

static void enqueue(lw_rw *r, lw_inst *i) {
  if (i->id >= r->queued_cap) {
    int32_t cap = r->m->n_inst_ids + r->m->n_inst_ids / 2 + 16;
    uint8_t *q = realloc(r->queued, (size_t)cap);
    if (!q) lw_oom((size_t)cap);
    memset(q + r->queued_cap, 0, (size_t)(cap - r->queued_cap));
    r->queued = q;
    r->queued_cap = cap;
  }
  if (r->queued[i->id]) return;
  r->queued[i->id] = 1;
  lw_vec_push(&r->work, i);
}

/* The replaced instruction goes (its side effect, if it had one, is in what
 * replaced it), then what that leaves dead. Operands left with fewer users are
 * looked at again: some rules wait for a single user. */
static void remove_dead_requeue(lw_rw *r, lw_inst *i, bool edges) {
  LW_VEC(lw_inst *) stack = {0};
  lw_vec_push(&stack, i);
  while (stack.len) {
    lw_inst *d = lw_vec_pop(&stack);
    if (!d->parent) continue;
    bool goes =
        d == i ? i->n_uses == 0 && i->opcode != LW_OP_PARAMETER : lw_is_dead(d);
    if (!goes || (edges && is_control_pred(d))) {
      if (d != i) enqueue(r, d);
      continue;
    }
    for (int32_t k = 0; k < d->n_operands; k++)
      lw_vec_push(&stack, d->operands[k].def);
    lw_inst_remove(d);
  }
  lw_vec_free(&stack);
}

static bool touches_dynamic(const lw_inst *i) {
  if (lw_shape_has_dynamic(i->shape)) return true;
  for (int32_t k = 0; k < i->n_operands; k++)
    if (lw_shape_has_dynamic(i->operands[k].def->shape)) return true;
  return false;
}

static void replace(lw_rw *r, lw_inst *i, lw_inst *def, bool edges) {
  LW_ASSERT(lw_shape_compatible(i->shape, def->shape));
  LW_ASSERT(def != i && def->parent == i->parent);
  r->changed = true;
  for (lw_use *u = i->uses; u; u = u->next) enqueue(r, u->user);
  lw_inst_replace_uses(i, def);
  enqueue(r, def);
  remove_dead_requeue(r, i, edges);
}

static void rewrite_comp(lw_rw *r, lw_comp *c, const lw_rule *rules) {
  bool edges = comp_has_control_edges(c);
  int64_t budget = 256 * (int64_t)c->n_insts + 65536;
  for (lw_inst *i = c->last; i; i = i->prev)
    if (rules[i->opcode]) enqueue(r, i);
  while (r->work.len && !r->error) {
    if (budget-- == 0) {
      r->error = lw_error(LW_INTERNAL, "rules undo each other in %s", c->name);
      return;
    }
    lw_inst *i = lw_vec_pop(&r->work);
    r->queued[i->id] = 0;
    if (!i->parent || !rules[i->opcode] || touches_dynamic(i)) continue;
    if (i->n_uses == 0 && !lw_inst_is_root(i)) continue; /* dead: dce's */
    r->at = i;
    lw_inst *def = rules[i->opcode](r, i);
    if (def) replace(r, i, def, edges);
  }
}

lw_status lw_rewrite(lw_module *m, lw_pass_env *env,
                     const lw_rule rules[LW_OPCODE_COUNT], bool *changed) {
  lw_rw r = {.m = m, .env = env};
  int32_t n;
  lw_comp **comps = lw_control_comps(m, env->scratch, &n);
  for (int32_t k = 0; k < n && !r.error; k++) rewrite_comp(&r, comps[k], rules);
  if (r.changed) *changed = true;
  free(r.queued);
  lw_vec_free(&r.work);
  return r.error;
}

bool lw_rw_go(lw_rw *r, const char *stat) {
  if (!lw_pass_fuel(r->env)) return false;
  lw_pass_count(r->env, stat, 1);
  return true;
}

/* ---- building ---- */

const lw_shape *lw_mk_array(lw_module *m, lw_prim t, int32_t rank,
                            const int64_t *dims) {
  const lw_shape *s = lw_shape_array(m->ctx, t, rank, dims);
  return lw_shape_with_layout(m->ctx, s, lw_layout_descending(m->ctx, rank));
}

static lw_inst *place(lw_rw *r, lw_inst *i) {
  lw_inst_copy_source(i, r->at);
  i->sharding = NULL;
  lw_inst_move_before(i, r->at);
  enqueue(r, i);
  return i;
}

lw_inst *lw_rw_make(lw_rw *r, lw_opcode op, const lw_shape *s, int32_t n,
                    lw_inst *const *operands) {
  return place(r, lw_inst_new(r->at->parent, op, s, NULL, n, operands));
}

lw_inst *lw_rw_un(lw_rw *r, lw_opcode op, const lw_shape *s, lw_inst *a) {
  return lw_rw_make(r, op, s, 1, &a);
}

lw_inst *lw_rw_bin(lw_rw *r, lw_opcode op, const lw_shape *s, lw_inst *a,
                   lw_inst *b) {
  return lw_rw_make(r, op, s, 2, (lw_inst *[]){a, b});
}

lw_inst *lw_rw_reshape(lw_rw *r, lw_inst *x, const lw_shape *s) {
  if (lw_shape_compatible(x->shape, s)) return x;
  return lw_rw_un(r, LW_OP_RESHAPE, s, x);
}

lw_inst *lw_rw_broadcast(lw_rw *r, lw_inst *x, const lw_shape *s, int32_t n,
                         const int64_t *dims) {
  if (n == s->rank && lw_shape_compatible(x->shape, s) &&
      lw_is_iota_list(n, dims))
    return x;
  lw_inst *b = lw_rw_un(r, LW_OP_BROADCAST, s, x);
  lw_inst_set_i64s(b, LW_ATTR_DIMENSIONS, n, dims);
  return b;
}

lw_inst *lw_rw_transpose(lw_rw *r, lw_inst *x, const int64_t *perm) {
  int32_t rank = x->shape->rank;
  if (lw_is_iota_list(rank, perm)) return x;
  int64_t dims[LW_MAX_RANK];
  for (int32_t d = 0; d < rank; d++) dims[d] = x->shape->dims[perm[d]];
  const lw_shape *s = lw_mk_array(r->m, x->shape->type, rank, dims);
  lw_inst *t = lw_rw_un(r, LW_OP_TRANSPOSE, s, x);
  lw_inst_set_i64s(t, LW_ATTR_DIMENSIONS, rank, perm);
  return t;
}

lw_inst *lw_rw_slice(lw_rw *r, lw_inst *x, const int64_t *v) {
  int32_t rank = x->shape->rank;
  int64_t dims[LW_MAX_RANK];
  bool whole = true;
  for (int32_t d = 0; d < rank; d++) {
    int64_t n = v[3 * d + 1] - v[3 * d];
    dims[d] = n <= 0 ? 0 : (n + v[3 * d + 2] - 1) / v[3 * d + 2];
    whole = whole && dims[d] == x->shape->dims[d];
  }
  if (whole) return x;
  const lw_shape *s = lw_mk_array(r->m, x->shape->type, rank, dims);
  lw_inst *i = lw_rw_un(r, LW_OP_SLICE, s, x);
  lw_attr a = {.id = LW_ATTR_SLICE, .u.list = {3 * rank, v}};
  lw_inst_set_attr(i, &a);
  return i;
}

static lw_inst *const_scalar(lw_rw *r, lw_prim t, lw_literal **l) {
  const lw_shape *s = lw_mk_array(r->m, t, 0, NULL);
  lw_status st = lw_literal_new(r->m->arena, s, l);
  LW_ASSERT(!st); /* 16 bytes */
  lw_inst *i = lw_inst_constant(r->at->parent, *l);
  return place(r, i);
}

static lw_inst *fill(lw_rw *r, lw_inst *scalar, const lw_shape *s) {
  return s->rank == 0 ? scalar : lw_rw_broadcast(r, scalar, s, 0, NULL);
}

lw_inst *lw_rw_const_f64(lw_rw *r, const lw_shape *s, double v) {
  lw_literal *l;
  lw_inst *i = const_scalar(r, s->type, &l);
  lw_literal_set_f64(l, 0, 0, v);
  return fill(r, i, s);
}

lw_inst *lw_rw_const_int(lw_rw *r, const lw_shape *s, int64_t v) {
  lw_literal *l;
  lw_inst *i = const_scalar(r, s->type, &l);
  lw_literal_set_int(l, 0, v);
  return fill(r, i, s);
}

lw_inst *lw_rw_compare(lw_rw *r, const lw_shape *s, lw_inst *a, lw_inst *b,
                       lw_cmp_dir dir, int64_t type) {
  lw_inst *c = lw_rw_bin(r, LW_OP_COMPARE, s, a, b);
  lw_inst_set_i64(c, LW_ATTR_DIRECTION, dir);
  if (type >= 0) lw_inst_set_i64(c, LW_ATTR_COMPARE_TYPE, type);
  return c;
}

/* ---- asking ---- */

bool lw_is_iota_list(int32_t n, const int64_t *v) {
  for (int32_t k = 0; k < n; k++)
    if (v[k] != k) return false;
  return true;
}

const lw_literal *lw_uniform(const lw_inst *x) {
  for (int depth = 0; depth < 16; depth++) {
    switch ((int)x->opcode) {
      case LW_OP_CONSTANT: {
        const lw_literal *l = lw_inst_literal(x);
        bool one = l && lw_shape_is_array(l->shape) && l->shape->elements > 0;
        return one && (l->shape->elements == 1 || lw_literal_is_uniform(l))
                   ? l
                   : NULL;
      }
      case LW_OP_BROADCAST:
      case LW_OP_RESHAPE:
      case LW_OP_TRANSPOSE:
      case LW_OP_COPY:
        x = lw_op(x, 0);
        break;
      default:
        return NULL;
    }
  }
  return NULL;
}

static bool is_value_class(lw_class c) {
  return c == LW_CLASS_PRED || c == LW_CLASS_SINT || c == LW_CLASS_UINT;
}

bool lw_type_is_int(const lw_inst *x) { return lw_prim_is_int(x->shape->type); }

bool lw_is_all(const lw_inst *x, double v) {
  const lw_literal *l = lw_uniform(x);
  if (!l) return false;
  if (is_value_class(lw_prim_class(l->shape->type)))
    return lw_literal_get_int(l, 0) == (int64_t)v && (double)(int64_t)v == v;
  double got = lw_literal_get_f64(l, 0, 0);
  if (memcmp(&got, &v, sizeof v)) return false;
  if (!lw_prim_is_complex(l->shape->type)) return true;
  double im = lw_literal_get_f64(l, 0, 1), zero = 0;
  return !memcmp(&im, &zero, sizeof im);
}

bool lw_is_all_int(const lw_inst *x, int64_t v) {
  const lw_literal *l = lw_uniform(x);
  return l && is_value_class(lw_prim_class(l->shape->type)) &&
         lw_literal_get_int(l, 0) == v;
}

bool lw_is_all_ones(const lw_inst *x) {
  const lw_literal *l = lw_uniform(x);
  if (!l) return false;
  lw_prim t = l->shape->type;
  if (t == LW_PRED) return lw_literal_get_int(l, 0) != 0;
  if (!lw_prim_is_int(t)) return false;
  uint64_t mask = ~0ull >> (64 - lw_prim_table[t].bits);
  return ((uint64_t)lw_literal_get_int(l, 0) & mask) == mask;
}
