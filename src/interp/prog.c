/* Scalar programs: reducers, comparators and map bodies.
 *
 * A computation over scalars becomes a list of steps over registers. A
 * register is an array of up to LANES elements, and a step is one call of an
 * elementwise function over all lanes, so that a fold over many outputs or
 * lanes costs no more than the arithmetic. Tuples exist only while compiling.
 */
#include <stdlib.h>

#include "interp/eval.h"

enum { LANES = 256, MAX_REGS = 4096, MAX_INLINE = 32 };

typedef struct {
  lw_elem_op op;
  lw_elem_fn fn;
  int32_t in[3], out; /* registers; in is -1 beyond the arity */
} step;

/* What an instruction is while compiling: a register or a tuple of them. */
typedef struct bound {
  int32_t reg; /* -1: a tuple */
  int32_t n;
  struct bound **elems;
} bound;

struct lw_prog {
  const lw_comp *comp;
  bool scalar; /* false: through lw_eval_comp, a lane at a time */
  int32_t n_params, n_results;
  lw_prim *param_types, *result_types;
  int32_t *result_regs;
  int32_t n_regs;
  LW_VEC(lw_prim) reg_types;
  LW_VEC(void *) consts; /* by register; NULL where computed */
  LW_VEC(step) steps;
  char **regs; /* LANES elements each */
  void **ptrs; /* where each register is in this call */
};

/* ---- compiling ---- */

typedef struct {
  lw_eval *e;
  lw_prog *p;
  lw_map bounds; /* instruction -> bound of the innermost inlining */
  int depth;
  bool fits;
  lw_status status;
} builder;

static bound *new_reg(builder *b, lw_prim type, void *constant) {
  bound *r = LW_NEW(b->e->arena, bound);
  r->reg = b->p->n_regs++;
  lw_vec_push(&b->p->reg_types, type);
  lw_vec_push(&b->p->consts, constant);
  if (b->p->n_regs > MAX_REGS) b->fits = false;
  return r;
}

static bound *bind_comp(builder *b, const lw_comp *c, bound **args, int n);

static bound *bind_elementwise(builder *b, const lw_inst *i, bound **ops) {
  lw_prim in[3] = {LW_PRIM_INVALID, LW_PRIM_INVALID, LW_PRIM_INVALID};
  step s = {.in = {-1, -1, -1}};
  for (int32_t k = 0; k < i->n_operands && k < 3; k++) {
    if (ops[k]->reg < 0) return NULL;
    in[k] = lw_inst_operand(i, k)->shape->type;
    s.in[k] = ops[k]->reg;
  }
  if (i->opcode == LW_OP_BITCAST_CONVERT &&
      lw_prim_table[in[0]].bits != lw_prim_table[i->shape->type].bits)
    return NULL;
  s.op = lw_elem_of_inst(b->e, i, in);
  b->status = lw_elem_resolve(&s.op, &s.fn);
  if (b->status) return NULL;
  bound *r = new_reg(b, i->shape->type, NULL);
  s.out = r->reg;
  lw_vec_push(&b->p->steps, s);
  return r;
}

static bound *bind_tuple(builder *b, bound **ops, int32_t n) {
  bound *r = LW_NEW(b->e->arena, bound);
  r->reg = -1;
  r->n = n;
  r->elems = ops;
  return r;
}

static bound *bind_inst(builder *b, const lw_inst *i, bound **args, int n_args,
                        bound **ops) {
  if (lw_shape_is_array(i->shape) && i->shape->elements != 1) return NULL;
  if (lw_opcode_is_elementwise(i->opcode)) return bind_elementwise(b, i, ops);
  int64_t k;
  switch ((int)i->opcode) {
    case LW_OP_PARAMETER:
      k = lw_inst_param_number(i);
      return k >= 0 && k < n_args ? args[k] : NULL;
    case LW_OP_CONSTANT:
      if (!lw_shape_is_array(i->shape)) return NULL;
      return new_reg(b, i->shape->type, lw_inst_literal(i)->data);
    case LW_OP_TUPLE:
      return bind_tuple(b, ops, i->n_operands);
    case LW_OP_GET_TUPLE_ELEMENT:
      k = lw_inst_i64(i, LW_ATTR_INDEX, -1);
      return k >= 0 && k < ops[0]->n ? ops[0]->elems[k] : NULL;
    case LW_OP_CALL:
    case LW_OP_FUSION:
      return bind_comp(b, lw_inst_called(i, 0), ops, i->n_operands);
    case LW_OP_BROADCAST:
    case LW_OP_COPY:
    case LW_OP_OPT_BARRIER:
    case LW_OP_RESHAPE:
    case LW_OP_TRANSPOSE:
      return ops[0];
    default: /* everything else does not fit */
      return NULL;
  }
}

/* Inlines c. NULL (or b->fits false) when it is not a scalar program. */
static bound *bind_comp(builder *b, const lw_comp *c, bound **args, int n) {
  if (++b->depth > MAX_INLINE) return NULL;
  int32_t count = 0;
  lw_inst **order = lw_comp_post_order(c, b->e->arena, &count);
  for (int32_t k = 0; k < count && b->fits; k++) {
    const lw_inst *i = order[k];
    bound **ops = LW_NEW_ARRAY(b->e->arena, bound *, i->n_operands + 1);
    for (int32_t o = 0; o < i->n_operands; o++)
      ops[o] = lw_map_ptr(&b->bounds, lw_inst_operand(i, o));
    bound *r = bind_inst(b, i, args, n, ops);
    if (!r) return NULL;
    lw_map_set_ptr(&b->bounds, i, r);
  }
  b->depth--;
  return b->fits ? lw_map_ptr(&b->bounds, c->root) : NULL;
}

static void alloc_regs(lw_eval *e, lw_prog *p) {
  p->regs = LW_NEW_ARRAY(e->arena, char *, p->n_regs + 1);
  p->ptrs = LW_NEW_ARRAY(e->arena, void *, p->n_regs + 1);
  for (int32_t r = 0; r < p->n_regs; r++) {
    size_t size = (size_t)lw_prim_bytes(p->reg_types.data[r]);
    p->regs[r] = lw_arena_alloc(e->arena, size * LANES);
    for (int k = 0; p->consts.data[r] && k < LANES; k++)
      memcpy(p->regs[r] + (size_t)k * size, p->consts.data[r], size);
    p->ptrs[r] = p->regs[r];
  }
}

static bool set_results(lw_eval *e, lw_prog *p, const bound *root) {
  p->n_results = root->reg >= 0 ? 1 : root->n;
  p->result_regs = LW_NEW_ARRAY(e->arena, int32_t, p->n_results + 1);
  for (int32_t k = 0; k < p->n_results; k++) {
    p->result_regs[k] = root->reg >= 0 ? root->reg : root->elems[k]->reg;
    if (p->result_regs[k] < 0) return false;
  }
  return true;
}

/* Parameter and result types by the computation's shapes, for both kinds. */
static lw_status set_types(lw_eval *e, lw_prog *p) {
  const lw_comp *c = p->comp;
  const lw_shape *r = c->root->shape;
  bool tuple = lw_shape_is_tuple(r);
  p->n_params = (int32_t)c->params.len;
  p->n_results = tuple ? r->n_elems : 1;
  p->param_types = LW_NEW_ARRAY(e->arena, lw_prim, p->n_params + 1);
  p->result_types = LW_NEW_ARRAY(e->arena, lw_prim, p->n_results + 1);
  for (int32_t k = 0; k < p->n_params + p->n_results; k++) {
    bool param = k < p->n_params;
    const lw_shape *s = param   ? c->params.data[k]->shape
                        : tuple ? r->elems[k - p->n_params]
                                : r;
    if (!lw_shape_is_array(s) || s->elements != 1)
      return lw_error(LW_INVALID_ARGUMENT,
                      "computation %s must take and return scalars", c->name);
    *(param ? &p->param_types[k] : &p->result_types[k - p->n_params]) = s->type;
  }
  return NULL;
}

static lw_status prog_new(lw_eval *e, const lw_comp *c, lw_prog **out) {
  lw_prog *p = LW_NEW(e->arena, lw_prog);
  p->comp = c;
  LW_TRY(set_types(e, p));
  builder b = {.e = e, .p = p, .fits = true};
  bound **args = LW_NEW_ARRAY(e->arena, bound *, p->n_params + 1);
  for (int32_t k = 0; k < p->n_params; k++)
    args[k] = new_reg(&b, p->param_types[k], NULL);
  bound *root = bind_comp(&b, c, args, p->n_params);
  lw_map_free(&b.bounds);
  if (root && set_results(e, p, root)) {
    p->scalar = true;
    alloc_regs(e, p);
  }
  *out = p;
  return b.status;
}

/* The vectors of a program live as long as the process's run of it: they are
 * copied into the arena once compiled. */
static void settle(lw_eval *e, lw_prog *p) {
#define SETTLE(v)                                                           \
  do {                                                                      \
    void *copy =                                                            \
        lw_arena_memdup(e->arena, p->v.data, p->v.len * sizeof *p->v.data); \
    free(p->v.data);                                                        \
    p->v.data = copy;                                                       \
  } while (0)
  SETTLE(reg_types);
  SETTLE(consts);
  SETTLE(steps);
#undef SETTLE
}

lw_status lw_prog_get(lw_eval *e, const lw_comp *c, lw_prog **out) {
  if (!e->progs)
    e->progs = LW_NEW_ARRAY(e->arena, lw_prog *, e->m->n_comp_ids + 1);
  if (!e->progs[c->id]) {
    lw_prog *p = NULL;
    lw_status s = prog_new(e, c, &p);
    if (p) settle(e, p);
    if (s) return s;
    e->progs[c->id] = p;
  }
  *out = e->progs[c->id];
  return NULL;
}

lw_status lw_prog_binary(lw_eval *e, lw_opcode op, lw_prim type,
                         lw_prog **out) {
  lw_prog *p = LW_NEW(e->arena, lw_prog);
  step s = {.in = {0, 1, -1}, .out = 2};
  s.op = lw_elem_make(op, type, type, LW_PRIM_INVALID, type);
  s.op.flush_denormals = e->opt.flush_denormals;
  LW_TRY(lw_elem_resolve(&s.op, &s.fn));
  p->scalar = true;
  p->n_params = 2;
  p->n_results = 1;
  p->n_regs = 3;
  p->param_types = LW_NEW_ARRAY(e->arena, lw_prim, 3);
  p->param_types[0] = p->param_types[1] = p->param_types[2] = type;
  p->result_types = &p->param_types[2];
  p->result_regs = LW_NEW(e->arena, int32_t);
  p->result_regs[0] = 2;
  for (int k = 0; k < 3; k++) {
    lw_vec_push(&p->reg_types, type);
    lw_vec_push(&p->consts, NULL);
  }
  lw_vec_push(&p->steps, s);
  alloc_regs(e, p);
  settle(e, p);
  *out = p;
  return NULL;
}

lw_prim lw_prog_param_type(const lw_prog *p, int i) {
  return p->param_types[i];
}
int lw_prog_params(const lw_prog *p) { return p->n_params; }
int lw_prog_results(const lw_prog *p) { return p->n_results; }
lw_prim lw_prog_result_type(const lw_prog *p, int i) {
  return p->result_types[i];
}

/* ---- running ---- */

static void run_chunk(lw_prog *p, int64_t n, int64_t at, void *const *out) {
  for (size_t k = 0; k < p->steps.len; k++) {
    const step *s = &p->steps.data[k];
    s->fn(&s->op, n, p->ptrs[s->in[0]], s->in[1] < 0 ? NULL : p->ptrs[s->in[1]],
          s->in[2] < 0 ? NULL : p->ptrs[s->in[2]], p->ptrs[s->out]);
  }
  for (int32_t r = 0; r < p->n_results; r++) {
    int64_t size = lw_prim_bytes(p->result_types[r]);
    char *dst = (char *)out[r] + at * size;
    memmove(dst, p->ptrs[p->result_regs[r]], (size_t)(n * size));
  }
}

/* Results that are parameters must be read before another result overwrites
 * them: such programs (swaps) read copies. */
static bool returns_params(const lw_prog *p) {
  for (int32_t r = 0; r < p->n_results; r++)
    if (p->result_regs[r] < p->n_params && p->n_results > 1) return true;
  return false;
}

static void point_params(lw_prog *p, int64_t n, int64_t at, bool copy,
                         const void *const *in) {
  for (int32_t k = 0; k < p->n_params; k++) {
    int64_t size = lw_prim_bytes(p->param_types[k]);
    p->ptrs[k] = (char *)(uintptr_t)in[k] + at * size;
    if (!copy) continue;
    memcpy(p->regs[k], p->ptrs[k], (size_t)(n * size));
    p->ptrs[k] = p->regs[k];
  }
}

/* A lane through the general evaluator. */
static lw_status run_lane(lw_eval *e, lw_prog *p, int64_t lane,
                          const void *const *in, void *const *out) {
  lw_val *args[LW_PROG_MAX_PARAMS], *r = NULL;
  for (int32_t k = 0; k < p->n_params; k++) {
    size_t size = (size_t)lw_prim_bytes(p->param_types[k]);
    LW_TRY(lw_val_new(e, p->comp->params.data[k]->shape, &args[k]));
    memcpy(args[k]->lit.data, (const char *)in[k] + (size_t)lane * size, size);
  }
  LW_TRY(lw_eval_comp(e, p->comp, args, p->n_params, &r));
  for (int32_t k = 0; k < p->n_results; k++) {
    size_t size = (size_t)lw_prim_bytes(p->result_types[k]);
    const lw_val *v = lw_shape_is_tuple(r->lit.shape) ? lw_val_elem(r, k) : r;
    memcpy((char *)out[k] + (size_t)lane * size, v->lit.data, size);
  }
  lw_val_release(e, r);
  return NULL;
}

lw_status lw_prog_run(lw_eval *e, lw_prog *p, int64_t n, const void *const *in,
                      void *const *out) {
  if (p->n_params > LW_PROG_MAX_PARAMS)
    return lw_error(LW_UNIMPLEMENTED,
                    "computation %s has more than %d parameters", p->comp->name,
                    LW_PROG_MAX_PARAMS);
  if (!p->scalar) {
    for (int64_t k = 0; k < n; k++) LW_TRY(run_lane(e, p, k, in, out));
    return NULL;
  }
  if (p->steps.len == 1 && p->n_results == 1 &&
      p->result_regs[0] == p->steps.data[0].out && p->n_params == 2 &&
      p->steps.data[0].in[0] < 2 && p->steps.data[0].in[1] < 2 &&
      p->steps.data[0].in[1] >= 0 && p->steps.data[0].in[2] < 0) {
    const step *s = &p->steps.data[0]; /* one binary op: straight through */
    s->fn(&s->op, n, in[s->in[0]], in[s->in[1]], NULL, out[0]);
    return NULL;
  }
  bool swaps = returns_params(p);
  for (int64_t at = 0; at < n; at += LANES) {
    int64_t m = n - at < LANES ? n - at : LANES;
    point_params(p, m, at, swaps, in);
    run_chunk(p, m, at, out);
  }
  return NULL;
}
