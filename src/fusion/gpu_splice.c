/* Merging a fusion into its only reader by moving its body.
 *
 * XLA clones the producer's body, instruction by instruction, and each clone
 * takes new names, as do the parameters after each. A fusion that keeps
 * swallowing the one before it is cloned again at every step: quadratic, and
 * most of XLA's time on long chains. The result is the same graph when the body
 * is moved instead, whichever of the two bodies is shorter into the other. Only
 * names and the order of parameters are not XLA's then, which is why gpu_fuse
 * clones while a computation has had less than GPU_CLONES of it.
 */
#include "fusion/gpu_fuse.h"

static void renumber(lw_comp *body) {
  for (size_t k = 0; k < body->params.len; k++)
    lw_inst_set_i64(body->params.data[k], LW_ATTR_PARAMETER_NUMBER, (int64_t)k);
}

static void move(lw_inst *i, lw_inst *pos) {
  lw_inst_move_before(i, pos);
  i->parent = pos->parent;
}

/* All of `from`: to the front of `to`, or to its end. */
static void move_all(lw_comp *from, lw_comp *to, bool front) {
  lw_inst *first = to->first, *last;
  for (lw_inst *i = from->first, *next; i; i = next) {
    next = i->next;
    if (front) {
      move(i, first);
      continue;
    }
    last = to->last;
    move(i, last);
    lw_inst_move_before(last, i);
  }
}

/* One body of two; the fusion has the other one's shell no longer, the producer
 * does. Returns the body that now holds everything. */
static lw_comp *join_lists(lw_inst *fusion, lw_inst *producer) {
  lw_comp *own = lw_fusion_body(fusion), *other = lw_fusion_body(producer);
  lw_inst *root = own->root;
  if (own->n_insts >= other->n_insts) {
    move_all(other, own, true);
    return own;
  }
  const char *name = own->name;
  move_all(own, other, false);
  own->name = other->name;
  other->name = name;
  lw_inst_set_comp(fusion, LW_ATTR_CALLS, other);
  lw_inst_set_comp(producer, LW_ATTR_CALLS, own);
  lw_inst_set_root(other, root);
  return other;
}

typedef LW_VEC(lw_inst *) inst_list;

/* The producer's operands become the fusion's, those that are there already
 * once. */
static void join_operands(lw_inst *fusion, const lw_inst *producer,
                          const inst_list *theirs, inst_list *params) {
  for (int32_t k = 0; k < producer->n_operands; k++) {
    lw_inst *def = lw_inst_operand(producer, k), *p = theirs->data[k];
    int32_t slot = lw_fusion_slot(fusion, def);
    if (slot < 0) {
      lw_inst_append_operand(fusion, def);
      lw_vec_push(params, p);
      continue;
    }
    lw_inst_replace_uses(p, params->data[slot]);
    lw_inst_move_before(params->data[slot], p->parent->first);
    lw_inst_set_i64(p, LW_ATTR_PARAMETER_NUMBER, -1);
    lw_inst_remove(p);
  }
}

static void copy_params(inst_list *to, const lw_comp *body) {
  for (size_t k = 0; k < body->params.len; k++)
    lw_vec_push(to, body->params.data[k]);
}

bool gpu_can_splice(const gpu_graph *g, const lw_inst *producer) {
  lw_opcode root = lw_fusion_body(producer)->root->opcode;
  return gpu_user_count(g, producer) == 1 && !lw_inst_is_root(producer) &&
         root != LW_OP_PARAMETER && root != LW_OP_TUPLE;
}

void gpu_splice(lw_inst *fusion, lw_inst *producer) {
  int32_t slot = lw_fusion_slot(fusion, producer);
  lw_inst *result = lw_fusion_body(producer)->root;
  inst_list params = {0}, theirs = {0};
  copy_params(&params, lw_fusion_body(fusion));
  copy_params(&theirs, lw_fusion_body(producer));
  lw_comp *body = join_lists(fusion, producer);
  join_operands(fusion, producer, &theirs, &params);
  lw_inst *gone = params.data[slot];
  lw_inst_replace_uses(gone, result);
  lw_inst_set_i64(gone, LW_ATTR_PARAMETER_NUMBER, -1);
  lw_inst_remove(gone);
  lw_inst_drop_operand(fusion, slot);
  body->params.len = 0;
  for (size_t k = 0; k < params.len; k++)
    if (k != (size_t)slot) lw_vec_push(&body->params, params.data[k]);
  renumber(body);
  lw_vec_free(&params);
  lw_vec_free(&theirs);
}
