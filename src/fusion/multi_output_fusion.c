/* multi-output-fusion: kernels that run over the same elements become one.
 *
 * Two forms. Siblings read a value both: one kernel reads it once. A producer
 * and its consumer: the producer's value must stay in memory for somebody else,
 * yet the consumer need not wait for it there; one kernel writes it and uses
 * it from a register (an elementwise value that is output and reduced at once
 * is of this form).
 *
 * Legal when the result is one loop: both run over the same space. A loop's
 * space is its elements; a reduce's is its result's elements, each with a run
 * of folded ones; a loop over a row reduce's operand fits it (the rows are its
 * outer loop). The producer's value must be read at the kernel's own element,
 * and no path may lead from the first to the second through a third kernel: it
 * would have to run in between.
 *
 * Kernels that update a buffer in place stay alone: two of them in one kernel,
 * or one beside a reader of its buffer, is where in-place goes wrong.
 *
 * Order: values in the order of the computation, their readers likewise; each
 * reader joins the nearest fitting one before it.
 */
#include "fusion/fuse.h"
#include "fusion/fusion.h"
#include "fusion/groups.h"

/* Bounds on a kernel (arguments, instructions) and on the search: readers of
 * one value that are looked at, and how far back a reader looks for company. */
enum { MAX_BUFFERS = 256, MAX_OPS = 500, MAX_READERS = 4096, MAX_BACK = 24 };
#define SERIAL_ELEMENTS 4096.0
#define ORDER_STEP 64u /* gaps for what joins bring */

/* The space of a kernel. points == 0: not one of ours. */
typedef struct {
  double points; /* elements of the outer loop (a loop: all of them) */
  double wide;   /* row reduces: elements of the operand; else 0 */
  bool reduces;
  const lw_shape *shape; /* of the outer loop */
} space;

typedef struct {
  lw_pass_env *env;
  lw_comp *comp;
  LW_VEC(uint32_t) order; /* by id: rises along the list; 0: elsewhere */
  LW_VEC(uint64_t) stamp; /* by id: search that saw it */
  LW_VEC(space) spaces;   /* by id; points < 0: not asked yet */
  uint64_t search;
  bool changed;
} run;

/* ---- spaces ---- */

static bool is_row_reduce(const lw_inst *r) {
  int32_t n;
  const int64_t *d = lw_inst_i64s(r, LW_ATTR_DIMENSIONS, &n);
  int32_t rank = lw_inst_operand(r, 0)->shape->rank, first = rank;
  for (int32_t k = 0; k < n; k++)
    if (d[k] < first) first = (int32_t)d[k];
  return n > 0 && rank - first == n;
}

static space space_of_op(const lw_inst *i) {
  if (i->opcode == LW_OP_REDUCE)
    return (space){
        (double)lw_shape_leaf(i->shape, 0)->elements,
        is_row_reduce(i) ? (double)lw_inst_operand(i, 0)->shape->elements : 0,
        true, lw_shape_leaf(i->shape, 0)};
  if (i->opcode == LW_OP_DYNAMIC_UPDATE_SLICE || i->opcode == LW_OP_CONSTANT ||
      i->opcode == LW_OP_BITCAST || i->opcode == LW_OP_RESHAPE ||
      !lw_inst_is_loop(i))
    return (space){0};
  return (space){(double)i->shape->elements, 0, false, i->shape};
}

/* Outputs of one fusion agree already: the smallest, and any reduce, tell. */
static space space_of_fusion(const lw_inst *i) {
  if (lw_inst_i64(i, LW_ATTR_KIND, 0) == LW_FUSION_CUSTOM) return (space){0};
  const lw_inst *root = lw_fusion_body(i)->root;
  space s = {0};
  int32_t n = root->opcode == LW_OP_TUPLE ? root->n_operands : 1;
  for (int32_t k = 0; k < n; k++) {
    const lw_inst *out =
        root->opcode == LW_OP_TUPLE ? lw_inst_operand(root, k) : root;
    const lw_shape *shape = lw_shape_leaf(out->shape, 0);
    if (!shape || !lw_shape_is_array(shape) ||
        out->opcode == LW_OP_DYNAMIC_UPDATE_SLICE)
      return (space){0};
    double e = (double)shape->elements;
    if (k == 0 || e < s.points) {
      s.points = e;
      s.shape = shape;
    }
  }
  for (const lw_inst *j = lw_fusion_body(i)->first; j; j = j->next) {
    if (j->opcode == LW_OP_REDUCE) {
      space r = space_of_op(j);
      if (r.points != s.points) return (space){0};
      s.reduces = true;
      if (r.wide > s.wide) s.wide = r.wide;
    } else if (j->opcode != LW_OP_PARAMETER && j->opcode != LW_OP_CONSTANT &&
               j->opcode != LW_OP_TUPLE &&
               j->opcode != LW_OP_GET_TUPLE_ELEMENT && !lw_inst_is_loop(j)) {
      return (space){0};
    }
  }
  return s;
}

/* Asked often: kept by id. */
static space space_of(run *r, const lw_inst *i) {
  size_t id = (size_t)i->id;
  if (!lw_inst_is_fusion(i)) return space_of_op(i);
  if (id >= r->spaces.len) {
    lw_vec_reserve(&r->spaces, id + 1);
    while (r->spaces.len <= id)
      r->spaces.data[r->spaces.len++] = (space){.points = -1};
  }
  if (r->spaces.data[id].points < 0) r->spaces.data[id] = space_of_fusion(i);
  return r->spaces.data[id];
}

/* Rows few and long leave cores idle: a loop that could be cut anywhere must
 * not be tied to them. */
static bool rows_are_enough(const run *r, space reduce) {
  return reduce.wide <= SERIAL_ELEMENTS ||
         reduce.points >= 4 * r->env->target->v.cores;
}

/* The loops share leading dims enough to be cut along them together; small ones
 * need not be cut. */
static bool cut_alike(space a, space b) {
  double points = 1;
  int32_t k = 0;
  while (k < a.shape->rank && k < b.shape->rank &&
         a.shape->dims[k] == b.shape->dims[k])
    points *= (double)a.shape->dims[k++];
  return points >= LW_LEAST_POINTS || points == a.points ||
         (a.points <= SERIAL_ELEMENTS && b.points <= SERIAL_ELEMENTS &&
          a.wide <= SERIAL_ELEMENTS && b.wide <= SERIAL_ELEMENTS);
}

static bool same_space(const run *r, space a, space b) {
  if (a.points <= 0 || b.points <= 0 || !cut_alike(a, b)) return false;
  if (a.points == b.points)
    return a.reduces == b.reduces || rows_are_enough(r, a.reduces ? a : b);
  if (b.reduces) return a.points == b.wide && rows_are_enough(r, b);
  if (a.reduces && !b.reduces)
    return b.points == a.wide && rows_are_enough(r, a);
  return false;
}

/* ---- how a consumer reads a value ---- */

static bool keeps_element(const lw_inst *i) {
  return lw_inst_is_elementwise(i) || i->opcode == LW_OP_RESHAPE ||
         i->opcode == LW_OP_BITCAST ||
         (i->opcode == LW_OP_BROADCAST &&
          i->shape->elements == lw_inst_operand(i, 0)->shape->elements);
}

/* One step from value to the outputs: through what keeps the element number,
 * or into a row reduce as its operand. *on: the walk goes on from the user. */
static bool step_keeps(const lw_use *u, bool *on) {
  const lw_inst *i = u->user;
  *on = false;
  if (i->opcode == LW_OP_TUPLE) return true;
  if (i->opcode == LW_OP_REDUCE && u->slot < i->n_operands / 2 &&
      is_row_reduce(i))
    return true;
  *on = true;
  return keeps_element(i) && i->shape->elements == u->def->shape->elements;
}

static bool reads_own_element(const lw_inst *value) {
  LW_VEC(const lw_inst *) stack = {0};
  lw_map seen = {0};
  bool own = true, on;
  lw_vec_push(&stack, value);
  while (stack.len && own) {
    const lw_inst *i = lw_vec_pop(&stack);
    for (const lw_use *u = i->uses; u && own; u = u->next) {
      own = step_keeps(u, &on);
      uint64_t *s = lw_map_put(&seen, (uintptr_t)u->user);
      if (on && !*s) lw_vec_push(&stack, u->user);
      *s = 1;
    }
  }
  lw_vec_free(&stack);
  lw_map_free(&seen);
  return own;
}

static bool consumer_reads_own(const lw_inst *consumer, const lw_inst *def) {
  if (!lw_inst_is_fusion(consumer)) {
    if (consumer->opcode == LW_OP_REDUCE)
      return is_row_reduce(consumer) &&
             lw_inst_operand(consumer, consumer->n_operands - 1) != def;
    return keeps_element(consumer) &&
           consumer->shape->elements == def->shape->elements;
  }
  int32_t slot = lw_fusion_slot(consumer, def);
  return slot < 0 ||
         reads_own_element(lw_fusion_body(consumer)->params.data[slot]);
}

/* ---- order and paths ---- */

static void cover_ids(run *r) {
  size_t ids = (size_t)r->comp->module->n_inst_ids;
  lw_vec_reserve(&r->order, ids);
  lw_vec_reserve(&r->stamp, ids);
  while (r->order.len < ids) r->order.data[r->order.len++] = 0;
  while (r->stamp.len < ids) r->stamp.data[r->stamp.len++] = 0;
}

static void number(run *r) {
  uint32_t k = 0;
  cover_ids(r);
  for (lw_inst *i = r->comp->first; i; i = i->next)
    r->order.data[i->id] = k += ORDER_STEP;
}

static uint32_t at(const run *r, const lw_inst *i) {
  return (size_t)i->id < r->order.len ? r->order.data[i->id] : 0;
}

/* After a join only the stretch from behind `before` to what was last is in
 * another order: it is numbered again where the gaps allow, else everything. */
static void number_from(run *r, const lw_inst *before, uint32_t last) {
  uint32_t low = before ? at(r, before) : 0, n = 0;
  lw_inst *first = before ? before->next : r->comp->first, *end = first;
  cover_ids(r);
  while (end && at(r, end) <= last) {
    end = end->next;
    n++;
  }
  uint32_t high = end ? at(r, end) : low + (n + 2) * ORDER_STEP;
  uint32_t step = n ? (high - low) / (n + 1) : 0;
  if (step == 0) {
    number(r);
    return;
  }
  for (lw_inst *i = first; i != end; i = i->next)
    r->order.data[i->id] = low += step;
}

/* i is an element of a's result, or a. */
static bool belongs_to(const lw_inst *i, const lw_inst *a) {
  return i == a ||
         (i->opcode == LW_OP_GET_TUPLE_ELEMENT && lw_inst_operand(i, 0) == a);
}

/* A path from a to b that does not go straight from a's result into b. */
static bool path_around(run *r, lw_inst *a, const lw_inst *b) {
  LW_VEC(lw_inst *) stack = {0};
  uint32_t limit = at(r, b);
  uint64_t seen = ++r->search;
  bool found = false;
  lw_vec_push(&stack, a);
  while (stack.len && !found) {
    lw_inst *i = lw_vec_pop(&stack);
    bool own = belongs_to(i, a);
    for (const lw_use *u = i->uses; u && !found; u = u->next) {
      if (u->user == b) {
        found = !own;
        continue;
      }
      uint64_t *s = &r->stamp.data[u->user->id];
      if (*s == seen || at(r, u->user) > limit) continue;
      *s = seen;
      lw_vec_push(&stack, u->user);
    }
  }
  lw_vec_free(&stack);
  return found;
}

static bool reads_result_of(const lw_inst *b, const lw_inst *a) {
  for (int32_t k = 0; k < b->n_operands; k++)
    if (belongs_to(lw_inst_operand(b, k), a)) return true;
  return false;
}

static int32_t op_count(const lw_inst *i) {
  return lw_inst_is_fusion(i) ? lw_fusion_body(i)->n_insts : 1;
}

/* ---- the gates: a comes before b in the list ---- */

static lw_verdict fusibility(run *r, lw_inst *a, lw_inst *b) {
  if (a->n_control_preds || b->n_control_preds)
    return lw_verdict_no(LW_REASON_CONTROL_EDGE);
  if (!same_space(r, space_of(r, a), space_of(r, b)))
    return lw_verdict_no(LW_REASON_SPACES_DIFFER);
  for (int32_t k = 0; k < b->n_operands; k++) {
    lw_inst *def = lw_inst_operand(b, k);
    if (!belongs_to(def, a)) continue;
    if (space_of(r, a).reduces && !space_of(r, b).reduces &&
        space_of(r, a).points != space_of(r, b).points)
      return lw_verdict_no(LW_REASON_REDUCE_READ_MOVED);
    if (!consumer_reads_own(b, def))
      return lw_verdict_no(LW_REASON_SPACES_DIFFER);
  }
  if (a->n_operands + b->n_operands > MAX_BUFFERS ||
      op_count(a) + op_count(b) > MAX_OPS)
    return lw_verdict_no(LW_REASON_KERNEL_TOO_LARGE);
  if (path_around(r, a, b)) return lw_verdict_no(LW_REASON_CYCLE);
  return lw_verdict_yes(LW_REASON_FUSIBLE);
}

/* One start instead of two, and what both read is read once. */
static lw_verdict profitability(run *r, const lw_inst *a, const lw_inst *b) {
  const lw_target *t = r->env->target;
  lw_verdict v = {.saved_ns = t->v.launch_ns};
  for (int32_t k = 0; k < b->n_operands; k++) {
    const lw_inst *def = lw_inst_operand(b, k);
    double bytes = (double)lw_shape_bytes(def->shape);
    bool shared = belongs_to(def, a);
    for (int32_t j = 0; j < a->n_operands && !shared; j++)
      shared = lw_inst_operand(a, j) == def;
    if (shared) v.saved_ns += lw_cost_value_ns(t, bytes, bytes);
  }
  v.yes = true;
  v.reason = LW_REASON_SAVES_TIME;
  v.flip = lw_flip_edge(r->env->scratch, NULL, true, a, b);
  return v;
}

static bool ask(run *r, lw_inst *a, lw_inst *b) {
  lw_override *e = lw_override_on(r->env->overrides, r->env->trace, a, b, -1);
  lw_verdict v = fusibility(r, a, b);
  (void)lw_override_verdict(e, v);
  lw_gate_record(r->env->trace, "multi-output-fusion", a, b, v);
  if (!v.yes) return false;
  v = lw_override_verdict(e, profitability(r, a, b));
  lw_gate_record(r->env->trace, "multi-output-fusion", a, b, v);
  return v.yes;
}

/* ---- joining ---- */

/* Later instructions first: what only fed a dead one dies with it. */
static void sweep(lw_comp *body) {
  for (lw_inst *i = body->last, *prev; i; i = prev) {
    prev = i->prev;
    if (!i->n_uses && i != body->root && i->opcode != LW_OP_PARAMETER)
      lw_inst_remove(i);
  }
}

/* Outputs that nobody reads any more go. */
static void drop_dead_outputs(lw_inst *f) {
  lw_comp *body = lw_fusion_body(f);
  lw_module *m = body->module;
  lw_inst *root = body->root;
  int32_t n = root->n_operands, live = 0;
  lw_inst **outs = LW_NEW_ARRAY(m->arena, lw_inst *, n);
  const lw_shape **shapes = LW_NEW_ARRAY(m->arena, const lw_shape *, n);
  int32_t *to = LW_NEW_ARRAY(m->arena, int32_t, n);
  bool *used = LW_NEW_ARRAY(m->arena, bool, n);
  for (lw_use *u = f->uses, *next; u; u = next) {
    next = u->next;
    if (u->user->n_uses || lw_inst_is_root(u->user))
      used[lw_inst_i64(u->user, LW_ATTR_INDEX, 0)] = true;
    else
      lw_inst_remove(u->user);
  }
  for (int32_t k = 0; k < n; k++) {
    to[k] = live;
    if (!used[k]) continue;
    outs[live] = lw_inst_operand(root, k);
    shapes[live] = outs[live]->shape;
    live++;
  }
  if (live == n || live == 0) return;
  f->shape = lw_shape_tuple(m->ctx, live, shapes);
  body->root = lw_inst_new(body, LW_OP_TUPLE, f->shape, NULL, live, outs);
  lw_inst_remove(root);
  sweep(body);
  for (lw_use *u = f->uses; u; u = u->next)
    lw_inst_set_i64(u->user, LW_ATTR_INDEX,
                    to[lw_inst_i64(u->user, LW_ATTR_INDEX, 0)]);
}

/* Output k of the joined fusion is what `was` computed. */
static void name_output(run *r, const lw_inst *f, int32_t k, const char *was) {
  for (const lw_use *u = f->uses; u; u = u->next)
    if (lw_inst_i64(u->user, LW_ATTR_INDEX, 0) == k)
      lw_trace_rename(r->env->trace, u->user->name, was);
}

static lw_inst *join(run *r, lw_inst *a, lw_inst *b) {
  const lw_inst *before = a->prev;
  uint32_t last = at(r, b);
  const lw_shape *sa = a->shape, *sb = b->shape;
  const char *name_a = a->name, *name_b = b->name;
  lw_inst *f = lw_fusion_join(a, b, "multi_output_fusion");
  if (!lw_shape_is_tuple(sa)) name_output(r, f, 0, name_a);
  if (!lw_shape_is_tuple(sb))
    name_output(r, f, lw_shape_is_tuple(sa) ? sa->n_elems : 1, name_b);
  drop_dead_outputs(f);
  if (space_of(r, f).reduces) lw_inst_set_i64(f, LW_ATTR_KIND, LW_FUSION_INPUT);
  number_from(r, before, last);
  r->changed = true;
  lw_pass_count(r->env, "joined", 1);
  return f;
}

/* ---- finding pairs ---- */

/* Distinct kernels of ours that read def, in list order. */
static int32_t kernels_reading(run *r, const lw_inst *def, lw_inst ***out) {
  lw_inst **v = LW_NEW_ARRAY(r->env->scratch, lw_inst *, def->n_uses + 1);
  int32_t n = 0;
  for (const lw_use *u = def->uses; u; u = u->next) {
    lw_inst *i = u->user;
    if (space_of(r, i).points <= 0) continue;
    int32_t k = n;
    bool twice = false;
    for (int32_t j = 0; j < n; j++) twice |= v[j] == i;
    if (twice) continue;
    for (; k > 0 && at(r, v[k - 1]) > at(r, i); k--) v[k] = v[k - 1];
    v[k] = i;
    n++;
  }
  *out = v;
  return n;
}

static bool join_siblings(run *r, const lw_inst *def) {
  lw_inst **v;
  if (def->n_uses < 2 || def->n_uses > MAX_READERS) return false;
  int32_t n = kernels_reading(r, def, &v);
  for (int32_t b = 1; b < n; b++)
    for (int32_t a = b; a-- > 0 && b - a <= MAX_BACK;) {
      if (!same_space(r, space_of(r, v[a]), space_of(r, v[b]))) continue;
      if (reads_result_of(v[b], v[a])) continue; /* the other form's */
      if (!ask(r, v[a], v[b])) continue;
      if (!lw_pass_fuel(r->env)) return false;
      (void)join(r, v[a], v[b]);
      return true;
    }
  return false;
}

static bool join_consumer(run *r, lw_inst *a) {
  lw_inst **v;
  if (space_of(r, a).points <= 0) return false;
  for (const lw_use *u = a->uses; u; u = u->next) {
    const lw_inst *def = a;
    if (lw_shape_is_tuple(a->shape)) def = u->user;
    if (!belongs_to(def, a)) continue;
    int32_t n = kernels_reading(r, def, &v);
    for (int32_t k = 0; k < n; k++) {
      if (!same_space(r, space_of(r, a), space_of(r, v[k])) || !ask(r, a, v[k]))
        continue;
      if (!lw_pass_fuel(r->env)) return false;
      (void)join(r, a, v[k]);
      return true;
    }
    if (def == a) break;
  }
  return false;
}

static void fuse_computation(run *r) {
  number(r);
  for (lw_inst *i = r->comp->first, *next; i; i = next) {
    lw_inst *prev = i->prev;
    next = i->next;
    if (i->opcode == LW_OP_CONSTANT) continue;
    if (join_siblings(r, i)) {
      next = i; /* the rest of its readers */
    } else if (join_consumer(r, i)) {
      next = prev ? prev->next : r->comp->first; /* i is gone */
    }
  }
}

static lw_status run_pass(lw_module *m, lw_pass_env *env, bool *changed) {
  int32_t n;
  lw_comp **comps = lw_comps_to_fuse(m, env->scratch, &n);
  for (int32_t k = 0; k < n; k++) {
    run r = {.env = env, .comp = comps[k]};
    fuse_computation(&r);
    lw_vec_free(&r.order);
    lw_vec_free(&r.stamp);
    lw_vec_free(&r.spaces);
    *changed |= r.changed;
  }
  return NULL;
}

const lw_pass lw_pass_multi_output_fusion = {
    "multi-output-fusion",
    "one kernel for siblings, and for a kept value and its consumer", NULL,
    run_pass};
