/* From the module to the node tree.
 *
 * Every computation is lowered where it is called, with an environment that
 * maps its instructions to values, one a leaf. Where control flow joins, the
 * value gets a place of its own and each way in copies into it:
 *
 *   while        state leaf i is one place for operand, parameters and result
 *                (unless the body hands it on unchanged: then it is the
 *                operand's value). Copies before the loop and at the end of
 *                the body; the latter happen at once, so sources that are
 *                other state leaves go through temporaries.
 *   conditional  parameters are the operands' values; each branch copies its
 *                root into the result.
 *   entry        each output leaf is a place; a donated parameter and its
 *                output are one place. The copies happen at once as well.
 *   in place     a kernel that updates operand p in output o gets a copy of
 *                the operand, merged with o.
 *
 * Nearly all of these copies disappear when live.c merges source and place. */
#include "hlo/trip_count.h"
#include "kernel/observe.h"
#include "plan/plan_impl.h"

/* One invocation of a computation. */
typedef struct {
  builder *b;
  lw_map vals; /* inst -> int32_t[leaves] */
  block *where;
  node_list nodes;
} scope;

/* ---- values, positions, events ---- */

static int32_t new_val(scope *s, val_kind kind, const lw_inst *inst,
                       int32_t leaf, int64_t bytes) {
  builder *b = s->b;
  int32_t id = (int32_t)b->vals.len;
  if (bytes == 0 && kind == VAL_TEMP) kind = VAL_NONE;
  val v = {.kind = kind, .bytes = bytes, .inst = inst, .leaf = leaf};
  v.home = s->where;
  v.parent = id;
  v.slice = -1;
  lw_vec_push(&b->vals, v);
  return id;
}

static int32_t leaf_val(scope *s, val_kind kind, const lw_inst *inst,
                        int32_t leaf) {
  const lw_shape *l = lw_shape_leaf(inst->shape, leaf);
  int64_t bytes = lw_shape_is_array(l) ? lw_shape_bytes(l) : 0;
  return new_val(s, kind, inst, leaf, bytes);
}

static val *at(builder *b, int32_t v) { return &b->vals.data[v]; }

static int32_t position(builder *b, lw_node *n) {
  lw_vec_push(&b->steps, n);
  return (int32_t)b->steps.len - 1;
}

static void add_use(scope *s, int32_t v, int32_t pos) {
  use u = {v, s->where, pos};
  lw_vec_push(&s->b->uses, u);
}

static void add_segment(builder *b, int32_t v, int32_t first, int32_t last) {
  segment g = {first, last};
  lw_vec_push(&at(b, v)->segments, g);
}

static lw_node *new_node(scope *s, lw_node_kind kind, const lw_inst *inst,
                         int32_t n_slices) {
  lw_node *n = LW_NEW(s->b->arena, lw_node);
  n->kind = kind;
  n->inst = inst;
  n->trip_count = -1;
  n->kernel = -1;
  n->n_slices = n_slices;
  n->slices = LW_NEW_ARRAY(s->b->arena, int32_t, n_slices + 1);
  return n;
}

/* Returns its position. The caller adds what it means for dst's life. */
static int32_t add_copy(scope *s, copy_role role, const lw_inst *inst,
                        int32_t src, int32_t dst) {
  lw_node *n = new_node(s, LW_NODE_COPY, inst, 2);
  n->slices[0] = src;
  n->slices[1] = dst;
  int32_t pos = position(s->b, n);
  add_use(s, src, pos);
  copy_step c = {pos, src, dst, s->where->depth, at(s->b, dst)->bytes, role, n};
  lw_vec_push(&s->b->copies, c);
  lw_vec_push(&s->nodes, n);
  return pos;
}

static void define(scope *s, int32_t v, int32_t pos) {
  val *p = at(s->b, v);
  p->home = s->where;
  p->def = 2 * pos + 1;
  add_segment(s->b, v, p->def, p->def);
}

/* ---- environments ---- */

static int32_t *leaves_of(scope *s, const lw_inst *i) {
  int32_t *l = lw_map_ptr(&s->vals, i);
  LW_ASSERT(l != NULL);
  return l;
}

static int32_t *new_leaves(scope *s, const lw_inst *i, int32_t *n) {
  *n = (int32_t)lw_shape_leaf_count(i->shape);
  int32_t *l = LW_NEW_ARRAY(s->b->arena, int32_t, *n + 1);
  lw_map_set_ptr(&s->vals, i, l);
  return l;
}

static lw_status lower_comp(scope *s, const lw_comp *c);

static lw_node *take_seq(scope *s, const lw_inst *inst) {
  lw_node *n = new_node(s, LW_NODE_SEQ, inst, 0);
  n->n_children = (int32_t)s->nodes.len;
  n->children = lw_arena_memdup(s->b->arena, s->nodes.data,
                                s->nodes.len * sizeof *s->nodes.data);
  lw_vec_free(&s->nodes);
  lw_map_free(&s->vals);
  return n;
}

/* ---- constants ---- */

static int32_t constant_number(builder *b, const lw_literal *l) {
  uint64_t h = lw_literal_hash(l, 0);
  for (;; h++) {
    uint64_t *e = lw_map_put(&b->const_hashes, h);
    if (*e == 0) {
      lw_vec_push(&b->constants, l);
      *e = b->constants.len;
    }
    const lw_literal *have = b->constants.data[*e - 1];
    if (lw_literal_equal(have, l)) return (int32_t)*e - 1;
  }
}

static int32_t constant_val(scope *s, const lw_literal *l, const lw_inst *i,
                            int32_t leaf) {
  int32_t v = new_val(s, VAL_CONST, i, leaf, lw_literal_bytes(l));
  at(s->b, v)->index = constant_number(s->b, l);
  return v;
}

static void constant_leaves(scope *s, const lw_literal *l, const lw_inst *i,
                            int32_t *out, int32_t *n) {
  if (!lw_shape_is_tuple(l->shape)) {
    out[*n] = lw_shape_is_array(l->shape) ? constant_val(s, l, i, *n)
                                          : new_val(s, VAL_NONE, i, *n, 0);
    ++*n;
    return;
  }
  for (int32_t k = 0; k < l->n_elems; k++) {
    constant_leaves(s, l->elems[k], i, out, n);
  }
}

/* ---- copies that happen at once ---- */

static bool overwritten(builder *b, const int32_t *dst, int32_t n, int32_t i,
                        int32_t src) {
  for (int32_t k = 0; k < n; k++) {
    if (k != i && dst[k] >= 0 && plan_class(b, dst[k]) == plan_class(b, src)) {
      return true;
    }
  }
  return false;
}

/* dst[i] <- src[i] for all i together (dst[i] < 0: nothing to do). Each dst
 * lives from its copy to end, which is known later: pos[i] says where it was
 * written, -1 when src is dst already. */
static void parallel_copy(scope *s, copy_role role, const lw_inst *inst,
                          const int32_t *dst, int32_t *src, int32_t n,
                          int32_t *pos) {
  builder *b = s->b;
  for (int32_t i = 0; i < n; i++) {
    pos[i] = -1;
    if (dst[i] < 0 || at(b, src[i])->bytes == 0 ||
        plan_class(b, dst[i]) == plan_class(b, src[i]) ||
        !overwritten(b, dst, n, i, src[i]) ||
        b->options->kernel.fault == LW_FAULT_LOOP_COPY) {
      continue;
    }
    int32_t t = new_val(s, VAL_TEMP, at(b, src[i])->inst, at(b, src[i])->leaf,
                        at(b, src[i])->bytes);
    define(s, t, add_copy(s, COPY_PARALLEL_TEMP, inst, src[i], t));
    src[i] = t;
  }
  for (int32_t i = 0; i < n; i++) {
    if (dst[i] < 0 || at(b, dst[i])->bytes == 0) continue;
    if (plan_class(b, dst[i]) == plan_class(b, src[i])) continue;
    pos[i] = add_copy(s, role, inst, src[i], dst[i]);
  }
}

/* ---- while ---- */

static void open_block(scope *s, block_kind kind, block *parent,
                       int32_t owner_first) {
  block *k = LW_NEW(s->b->arena, block);
  k->kind = kind;
  k->parent = parent;
  k->depth = parent ? parent->depth : 0;
  if (kind == BLOCK_BODY || kind == BLOCK_CONDITION) k->depth++;
  k->owner_first = owner_first;
  k->first = position(s->b, NULL);
  s->where = k;
}

static void bind_param(scope *s, const lw_comp *c, int32_t number,
                       const int32_t *vals) {
  if ((size_t)number >= c->params.len) return;
  int32_t n;
  int32_t *l = new_leaves(s, c->params.data[number], &n);
  for (int32_t k = 0; k < n; k++) l[k] = vals[k];
}

/* The values that stand for the loop's state inside one of its blocks. */
static void bind_state(scope *in, const lw_inst *loop, const lw_comp *c,
                       const int32_t *operand, const int32_t *result,
                       const bool *same, int32_t *state) {
  int32_t n = (int32_t)lw_shape_leaf_count(loop->shape);
  for (int32_t k = 0; k < n; k++) {
    if (same[k]) {
      state[k] = operand[k];
      continue;
    }
    state[k] = leaf_val(in, VAL_TEMP, c->params.data[0], k);
    if (at(in->b, state[k])->kind == VAL_NONE) continue;
    at(in->b, state[k])->def = 2 * in->where->first;
    add_segment(in->b, state[k], 2 * in->where->first, 2 * in->where->first);
    plan_force_merge(in->b, result[k], state[k]);
  }
  bind_param(in, c, 0, state);
}

static lw_status lower_condition(scope *s, const lw_inst *loop, lw_node *node,
                                 scope *in, const int32_t *operand,
                                 const int32_t *result, int32_t *state,
                                 int32_t owner_first) {
  builder *b = s->b;
  const lw_comp *c = lw_inst_comp(loop, LW_ATTR_CONDITION);
  open_block(in, BLOCK_CONDITION, s->where, owner_first);
  bind_state(in, loop, c, operand, result, plan_invariants(b, loop), state);
  node->trip_count = lw_while_trip_count(loop);
  if (node->trip_count >= 0) {
    node->n_slices = 0; /* nobody asks the condition */
    in->where->last = position(b, NULL);
    return NULL;
  }
  LW_TRY(lower_comp(in, c));
  node->slices[0] = leaves_of(in, c->root)[0];
  in->where->last = position(b, NULL);
  add_use(in, node->slices[0], in->where->last);
  return NULL;
}

static lw_status lower_body(scope *s, const lw_inst *loop, scope *in,
                            const int32_t *operand, const int32_t *result,
                            int32_t *state, int32_t owner_first) {
  builder *b = s->b;
  const bool *same = plan_invariants(b, loop);
  const lw_comp *c = lw_inst_comp(loop, LW_ATTR_BODY);
  int32_t n = (int32_t)lw_shape_leaf_count(loop->shape);
  open_block(in, BLOCK_BODY, s->where, owner_first);
  bind_state(in, loop, c, operand, result, same, state);
  LW_TRY(lower_comp(in, c));
  int32_t *src = LW_NEW_ARRAY(b->arena, int32_t, n + 1);
  int32_t *dst = LW_NEW_ARRAY(b->arena, int32_t, n + 1);
  int32_t *pos = LW_NEW_ARRAY(b->arena, int32_t, n + 1);
  for (int32_t k = 0; k < n; k++) {
    src[k] = leaves_of(in, c->root)[k];
    dst[k] = same[k] ? -1 : state[k];
  }
  parallel_copy(in, COPY_LOOP_NEXT, loop, dst, src, n, pos);
  in->where->last = position(b, NULL);
  for (int32_t k = 0; k < n; k++) {
    if (pos[k] >= 0) {
      add_segment(b, state[k], 2 * pos[k] + 1, 2 * in->where->last + 1);
    }
  }
  return NULL;
}

/* The operand's leaves go to the state's place. */
static void enter_loop(scope *s, const lw_inst *i, const bool *same,
                       const int32_t *operand, int32_t *result, int32_t n,
                       int32_t *pos) {
  for (int32_t k = 0; k < n; k++) {
    pos[k] = -1;
    if (same[k]) {
      result[k] = operand[k];
      continue;
    }
    result[k] = leaf_val(s, VAL_TEMP, i, k);
    if (at(s->b, result[k])->kind == VAL_NONE) continue;
    pos[k] = add_copy(s, COPY_LOOP_START, i, operand[k], result[k]);
  }
}

static lw_status lower_while(scope *s, const lw_inst *i) {
  builder *b = s->b;
  const bool *same = plan_invariants(b, i);
  int32_t n, *result = new_leaves(s, i, &n);
  const int32_t *operand = leaves_of(s, lw_inst_operand(i, 0));
  int32_t *pos = LW_NEW_ARRAY(b->arena, int32_t, n + 1);
  int32_t *state = LW_NEW_ARRAY(b->arena, int32_t, n + 1);
  enter_loop(s, i, same, operand, result, n, pos);

  lw_node *node = new_node(s, LW_NODE_WHILE, i, 1);
  int32_t first = position(b, NULL);
  scope cond = {.b = b}, body = {.b = b};
  lw_status st =
      lower_condition(s, i, node, &cond, operand, result, state, first);
  if (!st) st = lower_body(s, i, &body, operand, result, state, first);
  node->n_children = 2;
  node->children = LW_NEW_ARRAY(b->arena, lw_node *, 2);
  node->children[0] = take_seq(&cond, NULL);
  node->children[1] = take_seq(&body, NULL);
  if (st) return st;

  int32_t last = position(b, NULL);
  cond.where->owner_last = body.where->owner_last = last;
  for (int32_t k = 0; k < n; k++) {
    if (pos[k] < 0) continue;
    add_segment(b, result[k], 2 * pos[k] + 1, 2 * cond.where->last + 1);
    at(b, result[k])->home = s->where;
    at(b, result[k])->def = 2 * last;
    add_segment(b, result[k], 2 * last, 2 * last);
  }
  lw_vec_push(&s->nodes, node);
  return NULL;
}

/* ---- conditional ---- */

static int32_t branch_count(const lw_inst *i) {
  const lw_attr *a = lw_inst_attr(i, LW_ATTR_BRANCH_COMPUTATIONS);
  return a ? a->u.comps.n : 2;
}

static lw_comp *branch(const lw_inst *i, int32_t k) {
  const lw_attr *a = lw_inst_attr(i, LW_ATTR_BRANCH_COMPUTATIONS);
  if (a) return a->u.comps.v[k];
  return lw_inst_comp(
      i, k == 0 ? LW_ATTR_TRUE_COMPUTATION : LW_ATTR_FALSE_COMPUTATION);
}

static lw_status lower_branch(scope *s, const lw_inst *i, int32_t k, scope *in,
                              int32_t owner_first, const int32_t *result,
                              int32_t n) {
  builder *b = s->b;
  const lw_comp *c = branch(i, k);
  open_block(in, BLOCK_BRANCH, s->where, owner_first);
  bind_param(in, c, 0, leaves_of(s, lw_inst_operand(i, k + 1)));
  LW_TRY(lower_comp(in, c));
  int32_t *src = LW_NEW_ARRAY(b->arena, int32_t, n + 1);
  int32_t *pos = LW_NEW_ARRAY(b->arena, int32_t, n + 1);
  for (int32_t l = 0; l < n; l++) src[l] = leaves_of(in, c->root)[l];
  parallel_copy(in, COPY_BRANCH_RESULT, i, result, src, n, pos);
  in->where->last = position(b, NULL);
  for (int32_t l = 0; l < n; l++) {
    if (pos[l] >= 0) {
      add_segment(b, result[l], 2 * pos[l] + 1, 2 * in->where->last + 1);
    }
  }
  return NULL;
}

static lw_status lower_conditional(scope *s, const lw_inst *i) {
  builder *b = s->b;
  int32_t n, *result = new_leaves(s, i, &n);
  for (int32_t k = 0; k < n; k++) result[k] = leaf_val(s, VAL_TEMP, i, k);
  const lw_inst *select = lw_inst_operand(i, 0);
  lw_node *node = new_node(s, LW_NODE_CONDITIONAL, i, 1);
  node->slices[0] = leaves_of(s, select)[0];
  node->predicated = select->shape->type == LW_PRED;
  node->n_children = branch_count(i);
  node->children = LW_NEW_ARRAY(b->arena, lw_node *, node->n_children);
  int32_t first = position(b, NULL);
  add_use(s, node->slices[0], first);
  for (int32_t k = 0; k < node->n_children; k++) {
    scope in = {.b = b};
    lw_status st = lower_branch(s, i, k, &in, first, result, n);
    node->children[k] = take_seq(&in, NULL);
    if (st) return st;
  }
  int32_t last = position(b, NULL);
  for (int32_t k = 0; k < n; k++) define(s, result[k], last);
  lw_vec_push(&s->nodes, node);
  return NULL;
}

/* ---- kernels and libraries ---- */

lw_status plan_kernel(builder *b, const lw_inst *fusion, int32_t *index) {
  uint64_t *known = lw_map_put(&b->kernel_of, (uint64_t)(uintptr_t)fusion);
  if (*known == 0) {
    lw_kernel *k = NULL;
    lw_kernel_builder build = b->options->build_kernel;
    lw_kernel_options o = b->options->kernel;
    o.observe_nans =
        o.observe_nans || lw_fusion_observes_nans(fusion, b->nan_observed);
    LW_TRY((build ? build : lw_kernel_build)(b->arena, fusion, &o, &k));
    lw_vec_push(&b->kernels, k);
    *known = b->kernels.len;
  }
  *index = (int32_t)*known - 1;
  return NULL;
}

int32_t lw_plan_array_leaves(const lw_shape *s) {
  int32_t n = 0;
  for (int64_t k = 0; k < lw_shape_leaf_count(s); k++) {
    n += lw_shape_is_array(lw_shape_leaf(s, k));
  }
  return n;
}

static int32_t operand_leaf_count(const lw_inst *i) {
  int32_t n = 0;
  for (int32_t k = 0; k < i->n_operands; k++) {
    n += lw_plan_array_leaves(lw_inst_operand(i, k)->shape);
  }
  return n;
}

static int32_t put_operands(scope *s, const lw_inst *i, int32_t *slices) {
  int32_t n = 0;
  for (int32_t k = 0; k < i->n_operands; k++) {
    const lw_inst *op = lw_inst_operand(i, k);
    int64_t leaves = lw_shape_leaf_count(op->shape);
    for (int32_t l = 0; l < leaves; l++) {
      if (lw_shape_is_array(lw_shape_leaf(op->shape, l))) {
        slices[n++] = leaves_of(s, op)[l];
      }
    }
  }
  return n;
}

static int32_t put_results(scope *s, const lw_inst *i, int32_t *slices) {
  int32_t n, count = 0, *l = new_leaves(s, i, &n);
  for (int32_t k = 0; k < n; k++) {
    l[k] = leaf_val(s, VAL_TEMP, i, k);
    if (lw_shape_is_array(lw_shape_leaf(i->shape, k))) slices[count++] = l[k];
  }
  return count;
}

/* Operand p must be in output o's buffer: hand the kernel a copy of its own,
 * merged with the output. */
static void make_in_place(scope *s, const lw_kernel *k, lw_node *n) {
  for (int32_t o = 0; k->must_alias && o < k->n_outputs; o++) {
    for (int32_t p = 0; p < k->n_params; p++) {
      if (!k->must_alias[p * k->n_outputs + o]) continue;
      int32_t out = n->slices[k->n_params + o], v = n->slices[p];
      if (at(s->b, v)->kind == VAL_NONE) continue;
      if (s->b->options->kernel.fault == LW_FAULT_UPDATE &&
          at(s->b, v)->kind == VAL_TEMP) {
        plan_force_merge(s->b, v, out);
        continue;
      }
      int32_t t = new_val(s, VAL_TEMP, at(s->b, v)->inst, at(s->b, v)->leaf,
                          at(s->b, v)->bytes);
      define(s, t, add_copy(s, COPY_IN_PLACE, n->inst, v, t));
      plan_force_merge(s->b, t, out);
      n->slices[p] = t;
    }
  }
}

static lw_status lower_kernel(scope *s, const lw_inst *i) {
  builder *b = s->b;
  int32_t index;
  LW_TRY(plan_kernel(b, i, &index));
  const lw_kernel *k = b->kernels.data[index];
  int32_t n_in = operand_leaf_count(i), n_out = lw_plan_array_leaves(i->shape);
  if (k->n_params != n_in || k->n_outputs != n_out) {
    return lw_error(LW_INTERNAL,
                    "%s: its kernel has %d parameters and %d outputs; the "
                    "fusion has %d and %d",
                    i->name, k->n_params, k->n_outputs, n_in, n_out);
  }
  lw_node *n =
      new_node(s, LW_NODE_KERNEL, i, n_in + n_out + k->n_scratch + k->n_consts);
  n->kernel = index;
  int32_t *at_slice = n->slices + put_operands(s, i, n->slices);
  at_slice += put_results(s, i, at_slice);
  make_in_place(s, k, n);
  int32_t pos = position(b, n);
  for (int32_t p = 0; p < n_in; p++) add_use(s, n->slices[p], pos);
  for (int32_t o = 0; o < n_out; o++) define(s, n->slices[n_in + o], pos);
  for (int32_t c = 0; c < k->n_scratch; c++) {
    int32_t v = new_val(s, VAL_TEMP, NULL, c, k->scratch_bytes[c]);
    at(b, v)->def = 2 * pos;
    add_segment(b, v, 2 * pos, 2 * pos + 1);
    *at_slice++ = v;
  }
  for (int32_t c = 0; c < k->n_consts; c++) {
    *at_slice++ = constant_val(s, k->consts[c], NULL, c);
  }
  lw_vec_push(&s->nodes, n);
  return NULL;
}

static lw_status lower_library(scope *s, const lw_inst *i) {
  int32_t n_in = operand_leaf_count(i), n_out = lw_plan_array_leaves(i->shape);
  lw_node *n = new_node(s, LW_NODE_LIBRARY, i, n_in + n_out);
  put_operands(s, i, n->slices);
  put_results(s, i, n->slices + n_in);
  int32_t pos = position(s->b, n);
  for (int32_t p = 0; p < n_in; p++) add_use(s, n->slices[p], pos);
  for (int32_t o = 0; o < n_out; o++) define(s, n->slices[n_in + o], pos);
  lw_vec_push(&s->nodes, n);
  return NULL;
}

/* ---- the walk ---- */

static void lower_name(scope *s, const lw_inst *i) {
  lw_map_set_ptr(&s->vals, i, leaves_of(s, lw_inst_operand(i, 0)));
}

static void lower_tuple(scope *s, const lw_inst *i) {
  int32_t total, n = 0, *l = new_leaves(s, i, &total);
  for (int32_t k = 0; k < i->n_operands; k++) {
    const lw_inst *op = lw_inst_operand(i, k);
    int64_t leaves = lw_shape_leaf_count(op->shape);
    for (int32_t e = 0; e < leaves; e++) l[n++] = leaves_of(s, op)[e];
  }
}

static void lower_element(scope *s, const lw_inst *i) {
  const lw_inst *op = lw_inst_operand(i, 0);
  int64_t k = lw_inst_i64(i, LW_ATTR_INDEX, 0);
  lw_map_set_ptr(&s->vals, i,
                 leaves_of(s, op) + plan_leaf_offset(op->shape, k));
}

static void lower_constant(scope *s, const lw_inst *i) {
  int32_t n, count = 0, *l = new_leaves(s, i, &n);
  constant_leaves(s, lw_inst_literal(i), i, l, &count);
}

static void lower_token(scope *s, const lw_inst *i) {
  int32_t n, *l = new_leaves(s, i, &n);
  for (int32_t k = 0; k < n; k++) l[k] = new_val(s, VAL_NONE, i, k, 0);
}

/* A call's body is lowered in place, as a sequence of its own. */
static lw_status lower_call(scope *s, const lw_inst *i) {
  const lw_comp *c = lw_inst_comp(i, LW_ATTR_TO_APPLY);
  scope in = {.b = s->b, .where = s->where};
  for (int32_t k = 0; k < i->n_operands; k++) {
    bind_param(&in, c, k, leaves_of(s, lw_inst_operand(i, k)));
  }
  lw_status st = lower_comp(&in, c);
  if (!st) lw_map_set_ptr(&s->vals, i, leaves_of(&in, c->root));
  lw_node *seq = take_seq(&in, i);
  lw_vec_push(&s->nodes, seq);
  return st;
}

static lw_status lower_inst(scope *s, const lw_inst *i) {
  switch ((int)i->opcode) {
    case LW_OP_PARAMETER:
      return NULL;
    case LW_OP_CONSTANT:
      lower_constant(s, i);
      return NULL;
    case LW_OP_TUPLE:
      lower_tuple(s, i);
      return NULL;
    case LW_OP_GET_TUPLE_ELEMENT:
      lower_element(s, i);
      return NULL;
    case LW_OP_AFTER_ALL:
      lower_token(s, i);
      return NULL;
    case LW_OP_FUSION:
      return lower_kernel(s, i);
    case LW_OP_WHILE:
      return lower_while(s, i);
    case LW_OP_CONDITIONAL:
      return lower_conditional(s, i);
    case LW_OP_CALL:
      return lower_call(s, i);
    case LW_OP_FFT:
    case LW_OP_RNG:
    case LW_OP_RNG_GET_AND_UPDATE_STATE:
    case LW_OP_CHOLESKY:
    case LW_OP_TRIANGULAR_SOLVE:
    case LW_OP_CUSTOM_CALL:
      return lower_library(s, i);
  }
  if (plan_is_name(i)) {
    lower_name(s, i);
    return NULL;
  }
  unsigned flags = lw_opcode_table[i->opcode].flags;
  const char *why = flags & LW_OPF_COLL ? "needs several devices; this module "
                                          "runs on one"
                    : flags & LW_OPF_SIDE ? "needs a host at the other end"
                                          : "has no code on this target";
  return lw_error(LW_UNIMPLEMENTED, "%s: %s %s", i->name,
                  lw_opcode_name(i->opcode), why);
}

static lw_status lower_comp(scope *s, const lw_comp *c) {
  lw_inst **order;
  int32_t n;
  LW_TRY(plan_schedule(s->b, c, &order, &n));
  for (int32_t k = 0; k < n; k++) LW_TRY(lower_inst(s, order[k]));
  return NULL;
}

/* ---- the entry ---- */

/* First parameter leaf of each entry parameter. */
static int32_t param_leaf(const lw_comp *c, int64_t param, int32_t n_index,
                          const int64_t *index) {
  int32_t leaf = 0;
  for (int64_t p = 0; p < param; p++) {
    leaf += (int32_t)lw_shape_leaf_count(c->params.data[p]->shape);
  }
  const lw_shape *s = c->params.data[param]->shape;
  for (int32_t k = 0; k < n_index; k++) {
    leaf += plan_leaf_offset(s, index[k]);
    s = s->elems[index[k]];
  }
  return leaf;
}

static int32_t output_leaf(const lw_shape *s, int32_t n, const int64_t *index) {
  int32_t leaf = 0;
  for (int32_t k = 0; k < n; k++) {
    leaf += plan_leaf_offset(s, index[k]);
    s = s->elems[index[k]];
  }
  return leaf;
}

static bool alias_fits(const lw_plan *p, int32_t out, int32_t param) {
  if (out >= p->n_outputs || param >= p->n_params) return false;
  if (p->output_alias[out] >= 0) return false;
  for (int32_t k = 0; k < p->n_outputs; k++) {
    if (p->output_alias[k] == param) return false;
  }
  return lw_shape_is_array(p->output_shapes[out]) &&
         lw_shape_bytes(p->output_shapes[out]) > 0 &&
         lw_shape_bytes(p->output_shapes[out]) ==
             lw_shape_bytes(p->param_shapes[param]);
}

/* Declared aliases first; then each donor goes to the first output of its
 * type and shape that has none. */
static void assign_donations(const lw_module *m, lw_plan *p) {
  for (int32_t k = 0; k < m->n_aliases; k++) {
    const lw_io_alias *a = &m->aliases[k];
    int32_t in =
        param_leaf(m->entry, a->param, a->n_param_index, a->param_index);
    int32_t out =
        output_leaf(m->entry->root->shape, a->n_output_index, a->output_index);
    if (alias_fits(p, out, in)) p->output_alias[out] = in;
  }
  for (int32_t k = 0; k < m->n_donors; k++) {
    const lw_donor *d = &m->donors[k];
    int32_t in = param_leaf(m->entry, d->param, d->n_index, d->index);
    for (int32_t out = 0; out < p->n_outputs; out++) {
      if (lw_shape_compatible(p->output_shapes[out], p->param_shapes[in]) &&
          alias_fits(p, out, in)) {
        p->output_alias[out] = in;
        break;
      }
    }
  }
}

static void entry_shapes(builder *b) {
  lw_plan *p = b->plan;
  const lw_comp *c = b->module->entry;
  for (size_t k = 0; k < c->params.len; k++) {
    p->n_params += (int32_t)lw_shape_leaf_count(c->params.data[k]->shape);
  }
  p->n_outputs = (int32_t)lw_shape_leaf_count(c->root->shape);
  p->param_shapes = LW_NEW_ARRAY(b->arena, const lw_shape *, p->n_params + 1);
  p->output_shapes = LW_NEW_ARRAY(b->arena, const lw_shape *, p->n_outputs + 1);
  p->output_alias = LW_NEW_ARRAY(b->arena, int32_t, p->n_outputs + 1);
  int32_t n = 0;
  for (size_t k = 0; k < c->params.len; k++) {
    const lw_shape *s = c->params.data[k]->shape;
    int64_t leaves = lw_shape_leaf_count(s);
    for (int64_t l = 0; l < leaves; l++) {
      p->param_shapes[n++] = lw_shape_leaf(s, l);
    }
  }
  for (int32_t k = 0; k < p->n_outputs; k++) {
    p->output_shapes[k] = lw_shape_leaf(c->root->shape, k);
    p->output_alias[k] = -1;
  }
  assign_donations(b->module, p);
}

/* One place a donated parameter and its output. */
static int32_t entry_param(scope *s, const lw_inst *i, int32_t leaf,
                           int32_t number, int32_t *dst) {
  int32_t v = leaf_val(s, VAL_PARAM, i, leaf);
  at(s->b, v)->index = number;
  for (int32_t o = 0; o < s->b->plan->n_outputs; o++) {
    if (s->b->plan->output_alias[o] != number) continue;
    at(s->b, v)->kind = VAL_OUTPUT;
    at(s->b, v)->index = o;
    plan_force_merge(s->b, dst[o], v);
  }
  at(s->b, v)->def = 0;
  add_segment(s->b, v, 0, 0);
  return v;
}

static void bind_entry(scope *s, int32_t *dst) {
  const lw_comp *c = s->b->module->entry;
  int32_t number = 0;
  for (size_t k = 0; k < c->params.len; k++) {
    int32_t n, *l = new_leaves(s, c->params.data[k], &n);
    for (int32_t leaf = 0; leaf < n; leaf++) {
      l[leaf] = entry_param(s, c->params.data[k], leaf, number++, dst);
    }
  }
}

static void write_outputs(scope *s, const int32_t *dst) {
  builder *b = s->b;
  int32_t n = b->plan->n_outputs;
  const lw_inst *root = b->module->entry->root;
  int32_t *src = LW_NEW_ARRAY(b->arena, int32_t, n + 1);
  int32_t *pos = LW_NEW_ARRAY(b->arena, int32_t, n + 1);
  for (int32_t k = 0; k < n; k++) src[k] = leaves_of(s, root)[k];
  parallel_copy(s, COPY_OUTPUT, root, dst, src, n, pos);
  s->where->last = position(b, NULL);
  for (int32_t k = 0; k < n; k++) {
    if (pos[k] >= 0) {
      at(b, dst[k])->def = 2 * pos[k] + 1;
      add_segment(b, dst[k], 2 * pos[k] + 1, 2 * s->where->last + 1);
    } else {
      add_use(s, src[k], s->where->last); /* a parameter handed on */
    }
  }
}

lw_status plan_lower(builder *b) {
  entry_shapes(b);
  scope s = {.b = b};
  open_block(&s, BLOCK_ENTRY, NULL, 0);
  const lw_inst *root = b->module->entry->root;
  int32_t *dst = LW_NEW_ARRAY(b->arena, int32_t, b->plan->n_outputs + 1);
  for (int32_t k = 0; k < b->plan->n_outputs; k++) {
    dst[k] = leaf_val(&s, VAL_OUTPUT, root, k);
    at(b, dst[k])->index = k;
  }
  bind_entry(&s, dst);
  lw_status st = lower_comp(&s, b->module->entry);
  if (!st) write_outputs(&s, dst);
  b->plan->root = take_seq(&s, NULL);
  return st;
}
