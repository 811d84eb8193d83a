/* The cost of finished kernels.
 *
 * A fusion's body is read as the groups that the strategy itself ranks
 * (groups.h): every instruction that is no output is put inline, from the end,
 * and what is left is one group an output. Their arithmetic adds up; a value
 * that several outputs read is read once; an output that another one reads is
 * in a register. */
#include "fusion/own_cost.h"

#include <math.h>

#include "fusion/fuse.h"
#include "fusion/groups.h"

#define SMALL_WORK 10000.0 /* as priority-fusion.small-work */

static double bytes_of(const lw_shape *s) { return (double)lw_shape_bytes(s); }

/* One operation: its arithmetic, its operands and its result. */
static double plain_ns(const lw_target *t, const lw_inst *i) {
  double out = bytes_of(i->shape);
  lw_cost c = {lw_cost_compute_ns(t, i), lw_cost_value_ns(t, out, out)};
  for (int32_t k = 0; k < i->n_operands; k++) {
    double in = bytes_of(lw_inst_operand(i, k)->shape);
    c.memory_ns += lw_cost_value_ns(t, in, in);
  }
  return lw_cost_kernel_ns(t, c);
}

static bool is_output(const lw_inst *i) {
  if (lw_inst_is_root(i)) return true;
  for (const lw_use *u = i->uses; u; u = u->next)
    if (u->user->opcode == LW_OP_TUPLE ||
        u->user->opcode == LW_OP_GET_TUPLE_ELEMENT)
      return true;
  return false;
}

static void inline_all(lw_groups *g) {
  for (int32_t k = g->n; k-- > 0;)
    if (g->groups[k] && !is_output(g->insts[k])) lw_groups_inline(g, k);
}

/* The most that one group reads of each parameter. */
static double reads_ns(const lw_groups *g, const lw_target *t) {
  double *most = calloc((size_t)g->n + 1, sizeof *most), ns = 0;
  if (!most) lw_oom((size_t)g->n);
  for (int32_t k = 0; k < g->n; k++)
    for (size_t j = 0; g->groups[k] && j < g->groups[k]->nodes.len; j++) {
      const lw_group_node *n = &g->groups[k]->nodes.data[j];
      if (!n->inside) most[n->pos] = fmax(most[n->pos], n->evals);
    }
  for (int32_t k = 0; k < g->n; k++) {
    const lw_inst *i = g->insts[k];
    if (i->opcode != LW_OP_PARAMETER || !lw_shape_is_array(i->shape)) continue;
    double whole = bytes_of(i->shape);
    double read = whole / fmax(1, (double)i->shape->elements) * most[k];
    ns += lw_cost_value_ns(t, fmin(whole, read), whole);
  }
  free(most);
  return ns;
}

static double write_ns(const lw_target *t, const lw_inst *out) {
  const lw_inst *written = out;
  if (out->opcode == LW_OP_DYNAMIC_UPDATE_SLICE)
    written = lw_inst_operand(out, 1);
  return lw_cost_value_ns(t, bytes_of(written->shape), bytes_of(out->shape));
}

static double body_ns(const lw_target *t, lw_comp *body) {
  lw_arena *a = lw_arena_new();
  lw_groups *g = lw_groups_new(body, t, SMALL_WORK, a);
  inline_all(g);
  lw_cost c = {0};
  for (int32_t k = 0; k < g->n; k++) {
    if (!g->groups[k]) continue;
    c.compute_ns += g->groups[k]->cost.compute_ns;
    if (is_output(g->insts[k])) c.memory_ns += write_ns(t, g->insts[k]);
  }
  c.memory_ns += reads_ns(g, t);
  lw_groups_free(g);
  lw_arena_free(a);
  return lw_cost_kernel_ns(t, c);
}

/* The only operation of a body, or NULL. */
static const lw_inst *lone_op(const lw_comp *body) {
  const lw_inst *op = NULL;
  for (const lw_inst *i = body->first; i; i = i->next) {
    if (i->opcode == LW_OP_PARAMETER || i->opcode == LW_OP_CONSTANT) continue;
    if (op) return NULL;
    op = i;
  }
  return op;
}

double lw_own_kernel_ns(const lw_target *t, const lw_inst *i) {
  if (!lw_inst_is_fusion(i)) return plain_ns(t, i);
  lw_comp *body = lw_fusion_body(i);
  const lw_inst *op = lone_op(body);
  if (op && op->opcode != LW_OP_DYNAMIC_UPDATE_SLICE &&
      op->opcode != LW_OP_SLICE && op->opcode != LW_OP_DYNAMIC_SLICE &&
      op->opcode != LW_OP_GATHER)
    return plain_ns(t, op);
  return body_ns(t, body);
}
