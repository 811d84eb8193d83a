#include "hlo/trip_count.h"

__extension__ typedef __int128 wide;

static const lw_inst *element_of(const lw_inst *x, const lw_inst *param,
                                 int64_t *index) {
  if (x->opcode != LW_OP_GET_TUPLE_ELEMENT || lw_inst_operand(x, 0) != param)
    return NULL;
  *index = lw_inst_i64(x, LW_ATTR_INDEX, -1);
  return x;
}

static bool int_constant(const lw_inst *x, int64_t *v) {
  while (x->opcode == LW_OP_COPY || x->opcode == LW_OP_RESHAPE)
    x = lw_inst_operand(x, 0);
  const lw_literal *l = lw_inst_literal(x);
  if (x->opcode != LW_OP_CONSTANT || !l || !lw_prim_is_int(l->shape->type) ||
      l->shape->elements != 1)
    return false;
  *v = lw_literal_get_int(l, 0);
  return !(l->shape->type == LW_U64 && *v < 0);
}

typedef struct {
  const lw_inst *init, *body_param, *cond_param, *root;
} loop_parts;

static bool take_apart(const lw_inst *w, loop_parts *p) {
  const lw_comp *body = lw_inst_comp(w, LW_ATTR_BODY);
  const lw_comp *cond = lw_inst_comp(w, LW_ATTR_CONDITION);
  if (w->opcode != LW_OP_WHILE || !body || !cond) return false;
  if (body->params.len != 1 || cond->params.len != 1) return false;
  p->init = lw_inst_operand(w, 0);
  p->body_param = body->params.data[0];
  p->cond_param = cond->params.data[0];
  p->root = body->root;
  return p->init->opcode == LW_OP_TUPLE && p->root->opcode == LW_OP_TUPLE &&
         cond->root->opcode == LW_OP_COMPARE;
}

/* A constant, or an element that stays what it starts as. */
static bool bound_of(const loop_parts *p, const lw_inst *x, int64_t *v) {
  int64_t k, back;
  if (int_constant(x, v)) return true;
  if (!element_of(x, p->cond_param, &k)) return false;
  const lw_inst *next = lw_inst_operand(p->root, (int32_t)k);
  if (!element_of(next, p->body_param, &back) || back != k) return false;
  return int_constant(lw_inst_operand(p->init, (int32_t)k), v);
}

static bool step_of(const loop_parts *p, int64_t index, int64_t *step) {
  const lw_inst *next = lw_inst_operand(p->root, (int32_t)index);
  int64_t k;
  if (next->n_operands != 2) return false;
  const lw_inst *a = lw_inst_operand(next, 0), *b = lw_inst_operand(next, 1);
  if (next->opcode == LW_OP_ADD)
    return (element_of(a, p->body_param, &k) && k == index &&
            int_constant(b, step)) ||
           (element_of(b, p->body_param, &k) && k == index &&
            int_constant(a, step));
  if (next->opcode != LW_OP_SUBTRACT || !element_of(a, p->body_param, &k) ||
      k != index || !int_constant(b, step) || *step == INT64_MIN)
    return false;
  *step = -*step;
  return true;
}

static lw_cmp_dir mirror(lw_cmp_dir d) {
  switch (d) {
    case LW_CMP_LT:
      return LW_CMP_GT;
    case LW_CMP_GT:
      return LW_CMP_LT;
    case LW_CMP_LE:
      return LW_CMP_GE;
    case LW_CMP_GE:
      return LW_CMP_LE;
    case LW_CMP_EQ:
    case LW_CMP_NE:
      return d;
  }
  return d;
}

static wide ceil_div(wide a, wide b) { return (a + b - 1) / b; }

/* Rounds while (i dir bound), i = start, start + step, ...; -1: never ends or
 * not by this rule. */
static wide rounds(lw_cmp_dir dir, wide start, wide step, wide bound) {
  switch (dir) {
    case LW_CMP_LE:
      return rounds(LW_CMP_LT, start, step, bound + 1);
    case LW_CMP_GE:
      return rounds(LW_CMP_GT, start, step, bound - 1);
    case LW_CMP_LT:
      if (start >= bound) return 0;
      return step > 0 ? ceil_div(bound - start, step) : -1;
    case LW_CMP_GT:
      if (start <= bound) return 0;
      return step < 0 ? ceil_div(start - bound, -step) : -1;
    case LW_CMP_NE:
      if (start == bound) return 0;
      if (step == 0 || (bound - start) % step || (bound - start) / step < 0)
        return -1;
      return (bound - start) / step;
    case LW_CMP_EQ:
      return start != bound ? 0 : step != 0 ? 1 : -1;
  }
  return -1;
}

static bool fits(lw_prim t, wide v) {
  int bits = lw_prim_table[t].bits;
  wide one = 1;
  if (lw_prim_is_signed(t))
    return v >= -(one << (bits - 1)) && v < (one << (bits - 1));
  return v >= 0 && v < (one << bits);
}

bool lw_while_count(const lw_inst *w, lw_loop_count *out) {
  loop_parts p;
  int64_t index, bound;
  if (!take_apart(w, &p)) return false;
  const lw_inst *c = lw_inst_comp(w, LW_ATTR_CONDITION)->root;
  lw_cmp_dir dir = (lw_cmp_dir)lw_inst_i64(c, LW_ATTR_DIRECTION, 0);
  const lw_inst *a = lw_inst_operand(c, 0), *b = lw_inst_operand(c, 1);
  for (int side = 0; side < 2; side++) {
    if (element_of(a, p.cond_param, &index) && bound_of(&p, b, &bound) &&
        step_of(&p, index, &out->step))
      break;
    if (side == 1) return false;
    const lw_inst *t = a;
    a = b;
    b = t;
    dir = mirror(dir);
  }
  if (!int_constant(lw_inst_operand(p.init, (int32_t)index), &out->start))
    return false;
  wide n = rounds(dir, out->start, out->step, bound);
  lw_prim t = a->shape->type;
  if (n < 0 || n > INT64_MAX || !fits(t, out->start + n * (wide)out->step))
    return false;
  out->index = (int32_t)index;
  out->trips = (int64_t)n;
  return true;
}

int64_t lw_while_trip_count(const lw_inst *w) {
  lw_loop_count c;
  return lw_while_count(w, &c) ? c.trips : -1;
}
