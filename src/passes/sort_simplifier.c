/* sort-simplifier: a sort of a dim of at most one element is its operands; an
 * operand of a variadic sort that neither the comparator looks at nor anybody
 * uses is left out. The comparator sees the same keys, so the order is the
 * same. */
#include "passes/passes.h"
#include "passes/rewrite.h"

static lw_inst *whole_as_is(lw_rw *r, lw_inst *i) {
  if (lw_shape_is_array(i->shape)) return lw_op(i, 0);
  lw_inst **v = LW_NEW_ARRAY(r->env->scratch, lw_inst *, i->n_operands);
  for (int32_t k = 0; k < i->n_operands; k++) v[k] = lw_op(i, k);
  return lw_rw_make(r, LW_OP_TUPLE, i->shape, i->n_operands, v);
}

static bool element_used(const lw_inst *i, int32_t k) {
  for (const lw_use *u = i->uses; u; u = u->next) {
    const lw_inst *g = u->user;
    if (g->opcode != LW_OP_GET_TUPLE_ELEMENT) return true;
    if (lw_inst_i64(g, LW_ATTR_INDEX, -1) == k &&
        (g->n_uses || lw_inst_is_root(g)))
      return true;
  }
  return lw_inst_is_root(i);
}

static bool compared(const lw_comp *c, int32_t k) {
  const lw_inst *a = c->params.data[2 * k], *b = c->params.data[2 * k + 1];
  return a->n_uses || b->n_uses || lw_inst_is_root(a) || lw_inst_is_root(b);
}

static lw_comp *smaller_comparator(lw_rw *r, const lw_inst *i,
                                   const bool *kept) {
  const lw_comp *c = lw_inst_comp(i, LW_ATTR_TO_APPLY);
  lw_comp *to = lw_comp_clone(r->m, c, NULL, NULL, NULL);
  LW_VEC(lw_inst *) params = {0};
  for (size_t k = 0; k < to->params.len; k++)
    lw_vec_push(&params, to->params.data[k]);
  int64_t n = 0;
  for (size_t k = 0; k < params.len; k++) {
    if (!kept[k / 2]) {
      lw_inst_remove(params.data[k]);
      continue;
    }
    lw_inst_set_i64(params.data[k], LW_ATTR_PARAMETER_NUMBER, n);
    to->params.data[n++] = params.data[k];
  }
  to->params.len = (size_t)n;
  lw_vec_free(&params);
  return to;
}

/* Other element numbers for the users: the tuple they expect, rebuilt. */
static lw_inst *expected(lw_rw *r, lw_inst *i, lw_inst *s, const bool *kept,
                         int32_t n) {
  lw_inst **v = LW_NEW_ARRAY(r->env->scratch, lw_inst *, i->n_operands);
  int32_t at = 0;
  for (int32_t k = 0; k < i->n_operands; k++) {
    v[k] = lw_op(i, k); /* unused: any value of the shape */
    if (!kept[k]) continue;
    v[k] = s;
    if (n > 1) {
      v[k] = lw_rw_un(r, LW_OP_GET_TUPLE_ELEMENT, lw_op(i, k)->shape, s);
      lw_inst_set_i64(v[k], LW_ATTR_INDEX, at);
    }
    at++;
  }
  return lw_rw_make(r, LW_OP_TUPLE, i->shape, i->n_operands, v);
}

static lw_inst *without_unused(lw_rw *r, lw_inst *i) {
  const lw_comp *c = lw_inst_comp(i, LW_ATTR_TO_APPLY);
  bool *kept = LW_NEW_ARRAY(r->env->scratch, bool, i->n_operands);
  const lw_shape **shapes =
      LW_NEW_ARRAY(r->env->scratch, const lw_shape *, i->n_operands);
  lw_inst **ops = LW_NEW_ARRAY(r->env->scratch, lw_inst *, i->n_operands);
  int32_t n = 0;
  if ((int32_t)c->params.len != 2 * i->n_operands) return NULL;
  for (int32_t k = 0; k < i->n_operands; k++) {
    kept[k] = element_used(i, k) || compared(c, k);
    if (!kept[k]) continue;
    shapes[n] = i->shape->elems[k];
    ops[n++] = lw_op(i, k);
  }
  if (n == 0 || n == i->n_operands) return NULL;
  if (!lw_rw_go(r, "sort of fewer operands")) return NULL;
  const lw_shape *s = n == 1 ? shapes[0] : lw_shape_tuple(r->m->ctx, n, shapes);
  lw_inst *to = lw_rw_make(r, LW_OP_SORT, s, n, ops);
  for (int32_t k = 0; k < i->n_attrs; k++) lw_inst_set_attr(to, &i->attrs[k]);
  lw_inst_set_comp(to, LW_ATTR_TO_APPLY, smaller_comparator(r, i, kept));
  return expected(r, i, to, kept, n);
}

static lw_inst *sort(lw_rw *r, lw_inst *i) {
  int32_t n;
  const int64_t *dims = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  if (lw_op(i, 0)->shape->dims[dims[0]] <= 1)
    return lw_rw_go(r, "sort of one") ? whole_as_is(r, i) : NULL;
  return lw_shape_is_tuple(i->shape) ? without_unused(r, i) : NULL;
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {[LW_OP_SORT] = sort};
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_sort_simplifier = {
    "sort-simplifier", "sorts of one element, operands nobody looks at", NULL,
    run};
