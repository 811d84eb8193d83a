/* How often each instruction of a fusion is evaluated, and each parameter read
 * (GpuHloCostAnalysis::FusionCalculateUtilizations).
 *
 * The body is walked from the root up. What an elementwise op computes is read
 * by exactly the element that asks for it, so the op hands on to its operands
 * the values it was itself asked from, its elementwise-use roots. Any other op
 * makes each operand such a root: asked for utilization times operand_util
 * times, rounded up to whole elements, and emitted once more for each time the
 * op itself is emitted (ir_size, which bounds the code). An instruction's
 * utilization is the sum over its roots: two different roots evaluate it
 * twice.
 *
 * Two parameters read elementwise from a common root are read together; that
 * is lw_gpu_common_utilization, by which a fused pair saves reads.
 */
#include <math.h>
#include <string.h>

#include "target/gpu_impl.h"

/* ---- storage ---- */

gpu_state *lw_gpu_state(lw_gpu_model *m, const lw_inst *i) {
  size_t id = (size_t)i->id;
  while (m->states.len <= id) lw_vec_push(&m->states, NULL);
  if (!m->states.data[id]) m->states.data[id] = LW_NEW(m->arena, gpu_state);
  return m->states.data[id];
}

static void make_room(lw_gpu_model *m, const lw_inst *i, gpu_cost *c) {
  if (c->cap >= i->n_operands) return;
  c->cap = i->n_operands + 2;
  c->operand_bytes = LW_NEW_ARRAY(m->arena, float, c->cap);
  c->operand_util = LW_NEW_ARRAY(m->arena, float, c->cap);
}

const gpu_cost *lw_gpu_cost(lw_gpu_model *m, const lw_inst *i) {
  gpu_cost *c = &lw_gpu_state(m, i)->cost;
  if (c->ok) return c;
  make_room(m, i, c);
  c->ok = true;
  if (lw_gpu_is_fusion(i))
    lw_gpu_cost_fusion(m, i, c);
  else
    lw_gpu_cost_plain(m, i, c);
  return c;
}

static gpu_cost *cost_of(lw_gpu_model *m, const lw_inst *i) {
  return &lw_gpu_state(m, i)->cost;
}

/* ---- roots ---- */

static void add_root(lw_gpu_model *m, gpu_cost *c, const lw_inst *root) {
  for (int32_t k = 0; k < c->n_ew_roots; k++)
    if (c->ew_roots[k] == root) return;
  if (c->n_ew_roots == c->cap_ew_roots) {
    int32_t cap = c->cap_ew_roots ? 2 * c->cap_ew_roots : 4;
    const lw_inst **v = LW_NEW_ARRAY(m->arena, const lw_inst *, cap);
    if (c->n_ew_roots)
      memcpy(v, c->ew_roots, (size_t)c->n_ew_roots * sizeof *v);
    c->ew_roots = v;
    c->cap_ew_roots = cap;
  }
  c->ew_roots[c->n_ew_roots++] = root;
}

static bool hands_on(const lw_inst *i) {
  if (lw_inst_is_elementwise(i)) return true;
  if (i->opcode == LW_OP_BITCAST)
    return lw_gpu_equal_but_type(lw_inst_operand(i, 0)->shape, i->shape);
  return i->opcode == LW_OP_TUPLE || i->opcode == LW_OP_GET_TUPLE_ELEMENT;
}

/* The operand becomes a root. */
static void ask(lw_gpu_model *m, const gpu_cost *c, const lw_inst *operand,
                float operand_util, float times_emitted) {
  gpu_cost *o = cost_of(m, operand);
  add_root(m, o, operand);
  float util = c->utilization * operand_util;
  int64_t n = lw_gpu_elements(operand->shape);
  util = n ? ceilf(util * (float)n) / (float)n : 0;
  o->root_util += util;
  o->root_ir = (int64_t)((float)o->root_ir + times_emitted);
}

static void spread(lw_gpu_model *m, const lw_inst *i) {
  gpu_cost *c = cost_of(m, i);
  c->utilization = c->ir_size = 0;
  for (int32_t k = 0; k < c->n_ew_roots; k++) {
    const gpu_cost *r = cost_of(m, c->ew_roots[k]);
    c->utilization += r->root_util;
    c->ir_size += (float)r->root_ir;
  }
  bool on = hands_on(i);
  for (int32_t k = 0; k < i->n_operands; k++) {
    const lw_inst *o = lw_inst_operand(i, k);
    if (!on) {
      ask(m, c, o, c->operand_util[k], c->ir_size);
      continue;
    }
    for (int32_t r = 0; r < c->n_ew_roots; r++)
      add_root(m, cost_of(m, o), c->ew_roots[r]);
  }
}

/* ---- a fusion's own numbers ---- */

/* What one result writes: an update in place writes the update. */
static int64_t written_by(const lw_inst *root, const lw_shape *s) {
  if (root->opcode == LW_OP_DYNAMIC_UPDATE_SLICE)
    return lw_gpu_shape_size(lw_inst_operand(root, 1)->shape);
  return lw_gpu_shape_size(s);
}

static float written_tuple(const lw_inst *root, const lw_shape *s) {
  float sum = 0;
  for (int32_t k = 0; k < s->n_elems; k++) {
    const lw_inst *r =
        root->opcode == LW_OP_TUPLE ? lw_inst_operand(root, k) : root;
    if (lw_shape_is_tuple(s->elems[k]))
      sum += written_tuple(r, s->elems[k]);
    else if (lw_shape_is_array(s->elems[k]))
      sum += (float)written_by(r, s->elems[k]);
  }
  return sum;
}

/* An in-place root does not read what it overwrites. */
static void forget_overwritten(lw_gpu_model *m, const lw_inst *root) {
  if (root->opcode == LW_OP_TUPLE) {
    for (int32_t k = 0; k < root->n_operands; k++)
      if (lw_inst_operand(root, k)->opcode == LW_OP_DYNAMIC_UPDATE_SLICE)
        cost_of(m, lw_inst_operand(root, k))->operand_util[0] = 0;
  } else if (root->opcode == LW_OP_DYNAMIC_UPDATE_SLICE) {
    cost_of(m, root)->operand_util[0] = 0;
  }
}

static int64_t read_bytes(const lw_shape *s, float utilization) {
  return llroundf((float)lw_gpu_shape_size(s) * utilization);
}

/* Of a parameter that is a tuple, each element that is taken out. */
static int64_t read_tuple(lw_gpu_model *m, const lw_inst *param) {
  int64_t sum = 0;
  for (const lw_use *u = param->uses; u; u = u->next)
    if (u->user->opcode == LW_OP_GET_TUPLE_ELEMENT)
      sum += read_bytes(u->user->shape, cost_of(m, u->user)->utilization);
  return sum;
}

static void fusion_operands(lw_gpu_model *m, const lw_inst *fusion,
                            gpu_cost *c) {
  const lw_comp *body = lw_gpu_body(fusion);
  for (int32_t k = 0; k < fusion->n_operands; k++) {
    const lw_inst *p =
        (size_t)k < body->params.len ? body->params.data[k] : NULL;
    if (!p) continue;
    const gpu_cost *pc = cost_of(m, p);
    c->operand_util[k] = pc->utilization;
    c->operand_bytes[k] = (float)(lw_shape_is_tuple(p->shape)
                                      ? read_tuple(m, p)
                                      : read_bytes(p->shape, pc->utilization));
  }
}

static uint32_t *stamp_of(lw_gpu_model *m, const lw_inst *i) {
  while (m->stamps.len <= (size_t)i->id) lw_vec_push(&m->stamps, 0);
  return &m->stamps.data[i->id];
}

/* Depth first from one instruction, operands before what reads them. Stamps:
 * stamp - 1 while it waits for its operands, stamp when it is listed. */
static void list_from(lw_gpu_model *m, const lw_inst *start) {
  lw_vec_push(&m->stack, start);
  while (m->stack.len) {
    const lw_inst *i = m->stack.data[m->stack.len - 1];
    uint32_t *s = stamp_of(m, i);
    if (*s >= m->stamp - 1) {
      if (*s == m->stamp - 1) lw_vec_push(&m->order, i);
      *s = m->stamp;
      (void)lw_vec_pop(&m->stack);
      continue;
    }
    *s = m->stamp - 1;
    for (int32_t k = i->n_operands - 1; k >= 0; k--) {
      const lw_inst *o = lw_inst_operand(i, k);
      if (o->parent == i->parent && *stamp_of(m, o) < m->stamp - 1)
        lw_vec_push(&m->stack, o);
    }
  }
}

/* The body's post order (as lw_comp_post_order has it; bodies hold no control
 * edges), in m->order: asked for after each fusion, without allocating. */
static void list_body(lw_gpu_model *m, const lw_comp *body) {
  m->order.len = 0;
  m->stamp += 2;
  for (const lw_inst *i = body->first; i; i = i->next)
    if (i->n_uses == 0) list_from(m, i);
}

/* Shapes of a body's instructions never change, so that their own costs stay;
 * but see forget_overwritten. */
static void begin_body(lw_gpu_model *m) {
  m->walked += (int64_t)m->order.len;
  for (size_t k = 0; k < m->order.len; k++) {
    gpu_cost *c = &lw_gpu_state(m, m->order.data[k])->cost;
    if (m->order.data[k]->opcode == LW_OP_DYNAMIC_UPDATE_SLICE) c->ok = false;
    lw_gpu_cost(m, m->order.data[k]);
    c->utilization = c->ir_size = 0;
    c->n_ew_roots = 0;
    c->root_util = 0;
    c->root_ir = 0;
  }
}

void lw_gpu_cost_fusion(lw_gpu_model *m, const lw_inst *i, gpu_cost *c) {
  const lw_comp *body = lw_gpu_body(i);
  const gpu_inst_list outer = m->order;
  if (m->pricing++) m->order = (gpu_inst_list){0};
  list_body(m, body);
  begin_body(m);
  forget_overwritten(m, body->root);
  gpu_cost *root = cost_of(m, body->root);
  root->root_util = 1;
  root->root_ir = 1;
  add_root(m, root, body->root);
  c->flops = c->ir_size = 0;
  for (size_t k = m->order.len; k-- > 0;) {
    const lw_inst *inner = m->order.data[k];
    spread(m, inner);
    const gpu_cost *f = cost_of(m, inner);
    c->flops += f->utilization * f->flops;
    c->ir_size += f->ir_size;
  }
  c->out_bytes = lw_shape_is_tuple(i->shape)
                     ? written_tuple(body->root, i->shape)
                     : (float)written_by(body->root, i->shape);
  fusion_operands(m, i, c);
  if (--m->pricing) {
    lw_vec_free(&m->order);
    m->order = outer;
  }
}

int64_t lw_gpu_model_walked(const lw_gpu_model *m) { return m->walked; }

float lw_gpu_common_utilization(lw_gpu_model *m, const lw_inst *a,
                                const lw_inst *b) {
  const gpu_cost *ca = cost_of(m, a), *cb = cost_of(m, b);
  float sum = 0;
  for (int32_t k = 0; k < ca->n_ew_roots; k++)
    for (int32_t r = 0; r < cb->n_ew_roots; r++)
      if (ca->ew_roots[k] == cb->ew_roots[r])
        sum += cost_of(m, ca->ew_roots[k])->root_util;
  return sum;
}
