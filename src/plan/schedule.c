/* The order of a computation's instructions: post order (the module's own
 * order when it is scheduled), except that an instruction which would like to
 * overwrite a value waits while others still have to read that value and can
 * run. A loop that updates one element of its state in place and reads the old
 * state as well would copy the whole state a step otherwise. Ties: the lower
 * post-order number. */
#include "plan/plan_impl.h"

typedef struct {
  builder *b;
  lw_inst **order;
  int32_t n;
  lw_map rank;             /* inst -> rank + 1 */
  lw_map values;           /* leaf key -> wanted value + 1 */
  int_list left;           /* by wanted value: readers not scheduled yet */
  int_list *wants;         /* by rank: values it would overwrite */
  int_list *reads;         /* by rank: wanted values it reads */
  int32_t *blockers;       /* operands and control predecessors left */
  int_list ready, waiting; /* min-heaps of ranks */
} scheduler;

static void heap_push(int_list *h, int32_t x) {
  lw_vec_push(h, x);
  for (size_t i = h->len - 1; i > 0;) {
    size_t up = (i - 1) / 2;
    if (h->data[up] <= h->data[i]) break;
    int32_t t = h->data[up];
    h->data[up] = h->data[i];
    h->data[i] = t;
    i = up;
  }
}

static int32_t heap_pop(int_list *h) {
  int32_t top = h->data[0];
  h->data[0] = h->data[--h->len];
  for (size_t i = 0;;) {
    size_t k = 2 * i + 1;
    if (k >= h->len) return top;
    if (k + 1 < h->len && h->data[k + 1] < h->data[k]) k++;
    if (h->data[i] <= h->data[k]) return top;
    int32_t t = h->data[k];
    h->data[k] = h->data[i];
    h->data[i] = t;
    i = k;
  }
}

static uint64_t leaf_key(leaf_ref r) {
  return ((uint64_t)(uint32_t)r.inst->id << 32) | (uint32_t)r.leaf;
}

static bool has(const int_list *l, int32_t x) {
  for (size_t k = 0; k < l->len; k++) {
    if (l->data[k] == x) return true;
  }
  return false;
}

static int32_t rank_of(const scheduler *s, const lw_inst *i) {
  uint64_t *v = lw_map_get(&s->rank, (uint64_t)(uintptr_t)i);
  return v ? (int32_t)*v - 1 : -1;
}

static bool reads_values(const lw_inst *i) {
  return !plan_is_name(i) && i->opcode != LW_OP_TUPLE &&
         i->opcode != LW_OP_GET_TUPLE_ELEMENT;
}

static void add_reads(scheduler *s, int32_t rank) {
  const lw_inst *i = s->order[rank];
  if (!reads_values(i)) return;
  for (int32_t k = 0; k < i->n_operands; k++) {
    const lw_inst *op = lw_inst_operand(i, k);
    int64_t n = lw_shape_leaf_count(op->shape);
    for (int32_t leaf = 0; leaf < n; leaf++) {
      uint64_t key = leaf_key(plan_resolve(s->b, op, leaf));
      uint64_t *at = lw_map_get(&s->values, key);
      if (!at || has(&s->reads[rank], (int32_t)*at - 1)) continue;
      lw_vec_push(&s->reads[rank], (int32_t)*at - 1);
      s->left.data[*at - 1]++;
    }
  }
}

static void add_want(scheduler *s, int32_t rank, leaf_ref r) {
  if (r.inst->opcode == LW_OP_CONSTANT) return;
  uint64_t *at = lw_map_put(&s->values, leaf_key(r));
  if (*at == 0) {
    lw_vec_push(&s->left, 0);
    *at = s->left.len;
  }
  int32_t v = (int32_t)*at - 1;
  if (!has(&s->wants[rank], v)) lw_vec_push(&s->wants[rank], v);
}

/* The operand leaf behind kernel parameter p. */
static leaf_ref kernel_operand(builder *b, const lw_inst *fusion, int32_t p) {
  for (int32_t k = 0; k < fusion->n_operands; k++) {
    const lw_inst *op = lw_inst_operand(fusion, k);
    int64_t n = lw_shape_leaf_count(op->shape);
    for (int32_t leaf = 0; leaf < n; leaf++) {
      if (!lw_shape_is_array(lw_shape_leaf(op->shape, leaf))) continue;
      if (p-- == 0) return plan_resolve(b, op, leaf);
    }
  }
  return (leaf_ref){fusion, 0};
}

/* Would this output be best in the buffer of operand leaf r? Always when the
 * kernel updates in place; when it merely may, only for a loop's state that is
 * replaced by this output. */
static bool wants_buffer(builder *b, const lw_comp *c, const lw_inst *fusion,
                         int32_t output, leaf_ref r) {
  if (r.inst->opcode != LW_OP_PARAMETER || c == b->module->entry) return false;
  if (r.leaf >= lw_shape_leaf_count(c->root->shape)) return false;
  leaf_ref next = plan_resolve(b, c->root, r.leaf);
  return next.inst == fusion && next.leaf == output;
}

static lw_status add_kernel_wants(scheduler *s, int32_t rank) {
  const lw_inst *i = s->order[rank];
  int32_t index;
  LW_TRY(plan_kernel(s->b, i, &index));
  const lw_kernel *k = s->b->kernels.data[index];
  for (int32_t p = 0; p < k->n_params; p++) {
    for (int32_t o = 0; o < k->n_outputs; o++) {
      bool must = k->must_alias && k->must_alias[p * k->n_outputs + o];
      bool may = k->may_alias && k->may_alias[p * k->n_outputs + o];
      if (!must && !may) continue;
      leaf_ref r = kernel_operand(s->b, i, p);
      if (must || wants_buffer(s->b, i->parent, i, o, r)) add_want(s, rank, r);
    }
  }
  return NULL;
}

static lw_status add_wants(scheduler *s, int32_t rank) {
  const lw_inst *i = s->order[rank];
  if (i->opcode == LW_OP_FUSION) return add_kernel_wants(s, rank);
  if (i->opcode != LW_OP_WHILE) return NULL;
  const bool *same = plan_invariants(s->b, i);
  int64_t n = lw_shape_leaf_count(i->shape);
  for (int32_t leaf = 0; leaf < n; leaf++) {
    if (same[leaf]) continue;
    add_want(s, rank, plan_resolve(s->b, lw_inst_operand(i, 0), leaf));
  }
  return NULL;
}

/* Other readers of a wanted value are still to come. */
static bool must_wait(const scheduler *s, int32_t rank) {
  const int_list *w = &s->wants[rank];
  for (size_t k = 0; k < w->len; k++) {
    int32_t own = has(&s->reads[rank], w->data[k]) ? 1 : 0;
    if (s->left.data[w->data[k]] > own) return true;
  }
  return false;
}

static void make_ready(scheduler *s, int32_t rank) {
  heap_push(must_wait(s, rank) ? &s->waiting : &s->ready, rank);
}

static void release(scheduler *s, int32_t rank) {
  if (rank >= 0 && --s->blockers[rank] == 0) make_ready(s, rank);
}

/* Some values have a reader less: who waited for them may go. */
static void count_reads(scheduler *s, int32_t rank) {
  const int_list *r = &s->reads[rank];
  for (size_t k = 0; k < r->len; k++) s->left.data[r->data[k]]--;
  if (r->len == 0 || s->waiting.len == 0) return;
  int_list old = s->waiting;
  s->waiting = (int_list){0};
  for (size_t k = 0; k < old.len; k++) make_ready(s, old.data[k]);
  lw_vec_free(&old);
}

/* Who must run after each instruction because of a control edge. */
static int_list *control_successors(scheduler *s) {
  int_list *next = LW_NEW_ARRAY(s->b->arena, int_list, s->n);
  for (int32_t r = 0; r < s->n; r++) {
    const lw_inst *i = s->order[r];
    s->blockers[r] = i->n_operands;
    for (int32_t k = 0; k < i->n_control_preds; k++) {
      int32_t p = rank_of(s, i->control_preds[k]);
      if (p < 0) continue;
      lw_vec_push(&next[p], r);
      s->blockers[r]++;
    }
  }
  return next;
}

static void run(scheduler *s, lw_inst **out) {
  s->blockers = LW_NEW_ARRAY(s->b->arena, int32_t, s->n);
  int_list *next = control_successors(s);
  for (int32_t r = 0; r < s->n; r++) {
    if (s->blockers[r] == 0) make_ready(s, r);
  }
  for (int32_t done = 0; done < s->n; done++) {
    LW_ASSERT(s->ready.len || s->waiting.len);
    int32_t r = heap_pop(s->ready.len ? &s->ready : &s->waiting);
    out[done] = s->order[r];
    count_reads(s, r);
    for (lw_use *u = s->order[r]->uses; u; u = u->next) {
      release(s, rank_of(s, u->user));
    }
    for (size_t k = 0; k < next[r].len; k++) release(s, next[r].data[k]);
    lw_vec_free(&next[r]);
  }
}

/* The module's own order when it has one and it is topological. */
static lw_inst **first_order(builder *b, const lw_comp *c, int32_t *n) {
  if (!b->module->is_scheduled) return lw_comp_post_order(c, b->arena, n);
  lw_inst **list = LW_NEW_ARRAY(b->arena, lw_inst *, c->n_insts + 1);
  lw_map seen = {0};
  bool good = true;
  *n = 0;
  for (lw_inst *i = c->first; i; i = i->next) {
    for (int32_t k = 0; k < i->n_operands; k++) {
      good = good && lw_map_ptr(&seen, lw_inst_operand(i, k));
    }
    lw_map_set_ptr(&seen, i, i);
    list[(*n)++] = i;
  }
  lw_map_free(&seen);
  return good ? list : lw_comp_post_order(c, b->arena, n);
}

static void scheduler_free(scheduler *s) {
  for (int32_t r = 0; r < s->n; r++) {
    lw_vec_free(&s->wants[r]);
    lw_vec_free(&s->reads[r]);
  }
  lw_vec_free(&s->left);
  lw_vec_free(&s->ready);
  lw_vec_free(&s->waiting);
  lw_map_free(&s->rank);
  lw_map_free(&s->values);
}

lw_status plan_schedule(builder *b, const lw_comp *c, lw_inst ***out,
                        int32_t *n) {
  scheduler s = {.b = b};
  s.order = first_order(b, c, n);
  s.n = *n;
  s.wants = LW_NEW_ARRAY(b->arena, int_list, s.n + 1);
  s.reads = LW_NEW_ARRAY(b->arena, int_list, s.n + 1);
  for (int32_t r = 0; r < s.n; r++) {
    *lw_map_put(&s.rank, (uint64_t)(uintptr_t)s.order[r]) = (uint64_t)r + 1;
  }
  lw_status st = NULL;
  for (int32_t r = 0; r < s.n && !st; r++) st = add_wants(&s, r);
  *out = s.order;
  if (!st && s.left.len) {
    for (int32_t r = 0; r < s.n; r++) add_reads(&s, r);
    *out = LW_NEW_ARRAY(b->arena, lw_inst *, s.n);
    run(&s, *out);
  }
  scheduler_free(&s);
  return st;
}
