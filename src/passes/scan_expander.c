/* scan-expander: scan is a loop.
 *
 * Operands are the inputs, then the start values of the carries. The loop's
 * tuple is (i, outputs..., carries..., inputs...); its body takes slice i of
 * each input, does what the scan's computation does, and puts slice i of each
 * output in place. The same computation sees the same slices in the same order
 * as in the interpreter.
 */
#include "passes/inline.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

typedef struct {
  lw_module *m;
  lw_arena *scratch;
  const lw_inst *scan;
  const lw_shape *index, *tuple;
  int64_t dim, length;
  int32_t n_in, n_out, n_carry, n; /* n: elements of the tuple */
  bool reverse;
} scan;

static scan begin(lw_module *m, lw_pass_env *env, const lw_inst *i) {
  int32_t nd;
  scan s = {.m = m, .scratch = env->scratch, .scan = i};
  s.dim = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &nd)[0];
  s.n_carry = (int32_t)lw_inst_i64(i, LW_ATTR_NUM_CARRIES, 0);
  s.n_in = i->n_operands - s.n_carry;
  s.n_out = i->shape->n_elems - s.n_carry;
  s.n = 1 + s.n_out + s.n_carry + s.n_in;
  s.length = lw_op(i, 0)->shape->dims[s.dim];
  s.reverse = lw_inst_i64(i, LW_ATTR_IS_REVERSE, 0) != 0;
  s.index = lw_mk_array(m, LW_S64, 0, NULL);
  const lw_shape **v = LW_NEW_ARRAY(s.scratch, const lw_shape *, s.n);
  v[0] = s.index;
  for (int32_t k = 0; k < i->shape->n_elems; k++) v[1 + k] = i->shape->elems[k];
  for (int32_t k = 0; k < s.n_in; k++)
    v[1 + i->shape->n_elems + k] = lw_op(i, k)->shape;
  s.tuple = lw_shape_tuple(m->ctx, s.n, v);
  return s;
}

static lw_inst *index_constant(scan *s, lw_comp *c, int64_t v) {
  lw_literal *l;
  lw_status st = lw_literal_new(s->m->arena, s->index, &l);
  LW_ASSERT(!st); /* 8 bytes */
  lw_literal_set_int(l, 0, v);
  return lw_inst_constant(c, l);
}

static lw_inst *element(lw_comp *c, lw_inst *tuple, int32_t k) {
  lw_inst *g = lw_inst_new(c, LW_OP_GET_TUPLE_ELEMENT, tuple->shape->elems[k],
                           NULL, 1, &tuple);
  lw_inst_set_i64(g, LW_ATTR_INDEX, k);
  return g;
}

static lw_comp *condition(scan *s) {
  lw_comp *c = lw_comp_new(s->m, "scan_condition");
  lw_inst *p = lw_inst_parameter(c, 0, s->tuple, "state");
  lw_inst *ops[2] = {element(c, p, 0), index_constant(s, c, s->length)};
  c->root = lw_inst_new(c, LW_OP_COMPARE, lw_mk_array(s->m, LW_PRED, 0, NULL),
                        NULL, 2, ops);
  lw_inst_set_i64(c->root, LW_ATTR_DIRECTION, LW_CMP_LT);
  return c;
}

/* x[.., at, ..] of rank - 1. */
static lw_inst *slice_at(scan *s, lw_comp *c, lw_inst *x, lw_inst *at,
                         lw_inst *zero, const lw_shape *want) {
  lw_inst *ops[1 + LW_MAX_RANK];
  int64_t sizes[LW_MAX_RANK];
  ops[0] = x;
  for (int32_t d = 0; d < x->shape->rank; d++) {
    ops[1 + d] = d == s->dim ? at : zero;
    sizes[d] = d == s->dim ? 1 : x->shape->dims[d];
  }
  const lw_shape *t = lw_mk_array(s->m, x->shape->type, x->shape->rank, sizes);
  lw_inst *v = lw_inst_new(c, LW_OP_DYNAMIC_SLICE, t, NULL, 1 + t->rank, ops);
  lw_inst_set_i64s(v, LW_ATTR_DYNAMIC_SLICE_SIZES, t->rank, sizes);
  return lw_inst_new(c, LW_OP_RESHAPE, want, NULL, 1, &v);
}

static lw_inst *put_at(scan *s, lw_comp *c, lw_inst *whole, lw_inst *part,
                       lw_inst *at, lw_inst *zero) {
  lw_inst *ops[2 + LW_MAX_RANK];
  int64_t dims[LW_MAX_RANK];
  int32_t rank = whole->shape->rank;
  for (int32_t d = 0; d < rank; d++) {
    ops[2 + d] = d == s->dim ? at : zero;
    dims[d] = d == s->dim ? 1 : whole->shape->dims[d];
  }
  const lw_shape *t = lw_mk_array(s->m, whole->shape->type, rank, dims);
  ops[0] = whole;
  ops[1] = lw_inst_new(c, LW_OP_RESHAPE, t, NULL, 1, &part);
  return lw_inst_new(c, LW_OP_DYNAMIC_UPDATE_SLICE, whole->shape, NULL,
                     2 + rank, ops);
}

static lw_inst *place_of(scan *s, lw_comp *c, lw_inst *i) {
  if (!s->reverse) return i;
  lw_inst *ops[2] = {index_constant(s, c, s->length - 1), i};
  return lw_inst_new(c, LW_OP_SUBTRACT, s->index, NULL, 2, ops);
}

static lw_comp *body(scan *s) {
  lw_comp *c = lw_comp_new(s->m, "scan_body");
  lw_comp *f = lw_inst_comp(s->scan, LW_ATTR_TO_APPLY);
  lw_inst *p = lw_inst_parameter(c, 0, s->tuple, "state");
  lw_inst *i = element(c, p, 0), *zero = index_constant(s, c, 0);
  lw_inst *at = place_of(s, c, i);
  lw_inst **args = LW_NEW_ARRAY(s->scratch, lw_inst *, s->scan->n_operands);
  lw_inst **out = LW_NEW_ARRAY(s->scratch, lw_inst *, s->n);
  for (int32_t k = 0; k < s->n_in; k++) {
    lw_inst *x = element(c, p, 1 + s->n_out + s->n_carry + k);
    args[k] = slice_at(s, c, x, at, zero, f->params.data[k]->shape);
    out[1 + s->n_out + s->n_carry + k] = x;
  }
  for (int32_t k = 0; k < s->n_carry; k++)
    args[s->n_in + k] = element(c, p, 1 + s->n_out + k);
  lw_inst *call = lw_inst_new(c, LW_OP_CALL, f->root->shape, NULL,
                              s->scan->n_operands, args);
  lw_inst *r = lw_inline_body(call, f, args, s->scan->n_operands);
  for (int32_t k = 0; k < s->n_out; k++) {
    lw_inst *to = element(c, p, 1 + k), *x = lw_tuple_element(r, k, call);
    out[1 + k] = put_at(s, c, to, x, at, zero);
  }
  for (int32_t k = s->n_out; k < s->n_out + s->n_carry; k++)
    out[1 + k] = lw_tuple_element(r, k, call);
  lw_inst *next[2] = {i, index_constant(s, c, 1)};
  out[0] = lw_inst_new(c, LW_OP_ADD, s->index, NULL, 2, next);
  c->root = lw_inst_new(c, LW_OP_TUPLE, s->tuple, NULL, s->n, out);
  lw_inst_remove(call);
  return c;
}

static lw_inst *empty_output(lw_rw *r, const lw_shape *s) {
  lw_class c = lw_prim_class(s->type);
  bool real = c == LW_CLASS_FLOAT || c == LW_CLASS_COMPLEX;
  return real ? lw_rw_const_f64(r, s, 0) : lw_rw_const_int(r, s, 0);
}

static lw_inst *expand(lw_rw *r, lw_inst *i) {
  if (!lw_rw_go(r, "scans")) return NULL;
  scan s = begin(r->m, r->env, i);
  lw_inst **init = LW_NEW_ARRAY(s.scratch, lw_inst *, s.n);
  init[0] = lw_rw_const_int(r, s.index, 0);
  for (int32_t k = 0; k < s.n_out; k++)
    init[1 + k] = empty_output(r, i->shape->elems[k]);
  for (int32_t k = 0; k < s.n_carry; k++)
    init[1 + s.n_out + k] = lw_op(i, s.n_in + k);
  for (int32_t k = 0; k < s.n_in; k++)
    init[1 + s.n_out + s.n_carry + k] = lw_op(i, k);
  lw_inst *t = lw_rw_make(r, LW_OP_TUPLE, s.tuple, s.n, init);
  lw_inst *w = lw_rw_un(r, LW_OP_WHILE, s.tuple, t);
  lw_inst_set_comp(w, LW_ATTR_CONDITION, condition(&s));
  lw_inst_set_comp(w, LW_ATTR_BODY, body(&s));
  lw_inst **out = LW_NEW_ARRAY(s.scratch, lw_inst *, i->shape->n_elems);
  for (int32_t k = 0; k < i->shape->n_elems; k++)
    out[k] = lw_tuple_element(w, 1 + k, i);
  return lw_rw_make(r, LW_OP_TUPLE, i->shape, i->shape->n_elems, out);
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {[LW_OP_SCAN] = expand};
  return lw_rewrite(m, env, rules, changed);
}

const lw_pass lw_pass_scan_expander = {"scan-expander", "scans become loops",
                                       NULL, run};
