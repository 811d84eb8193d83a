/* gpu-priority-fusion's queue.
 *
 * The unit is a producer with all its readers: its priority is what its kernel
 * and theirs take apart, less what theirs take when each computes a copy of it.
 * The highest is fused first, the younger instruction of equals; nothing below
 * zero. Bitcasts come before everything, constants after everything. A producer
 * that one of its readers cannot take is fused into none (a bitcast that reads
 * it is no obstacle: the producer stays for it).
 *
 * Fusing changes what the operands of the new kernel may save. Their priorities
 * are corrected by the difference (what the new readers give, less what the old
 * ones gave), as XLA does it, and not computed anew; the difference is the same
 * except for rounding and for entries XLA keeps longer than it should. Both
 * decide ties, so both caches are kept as XLA keeps them.
 */
#include "fusion/gpu_queue.h"

#include <string.h>

enum { LAUNCH = 4000 /* 1 us */, MAX_NAMES = 512 };
#define TICKS_NEVER INT64_MIN

typedef struct {
  uint32_t can_epoch, time_epoch; /* valid when they are the producer's */
  gpu_refusal can;
  lw_ticks fused;
} edge;

typedef struct {
  lw_inst *inst;
  bool queued, has_exec, has_times, updating, has_old;
  bool forced, forbidden; /* by --force-edge, --forbid-edge */
  lw_ticks priority, exec;
  uint32_t stamp, can_epoch, time_epoch;
  LW_VEC(lw_inst *) fresh; /* readers made in this round */
  lw_gpu_times old;        /* what the readers of before gave */
} node;

typedef struct {
  lw_ticks priority;
  int64_t unique_id;
  node *n;
  uint32_t stamp;
} entry;

struct gpu_queue {
  gpu_graph g;
  lw_pass_env *env;
  const gpu_oracle *oracle;
  lw_map nodes, edges;
  LW_VEC(node *) all;
  LW_VEC(edge) edge_list;
  LW_VEC(entry) heap;
  LW_VEC(node *) updates, touched;
  lw_inst *producer;
  lw_inst **consumers;
  int32_t n_consumers;
  bool changed;
};

/* ---- ticks ---- */

static lw_ticks plus(lw_ticks a, lw_ticks b) {
  lw_ticks r;
  if (a == LW_TICKS_INF || b == LW_TICKS_INF) return LW_TICKS_INF;
  return __builtin_add_overflow(a, b, &r) ? LW_TICKS_INF : r;
}

static lw_ticks minus(lw_ticks a, lw_ticks b) {
  lw_ticks r;
  if (a == LW_TICKS_INF) return a;
  if (b == LW_TICKS_INF) return TICKS_NEVER;
  return __builtin_sub_overflow(a, b, &r) ? TICKS_NEVER : r;
}

/* ---- nodes and edges ---- */

static node *node_of(gpu_queue *q, const lw_inst *i) {
  node *n = lw_map_ptr(&q->nodes, i);
  if (n) return n;
  n = LW_NEW(q->env->scratch, node);
  n->inst = (lw_inst *)(uintptr_t)i;
  n->can_epoch = n->time_epoch = 1;
  lw_map_set_ptr(&q->nodes, i, n);
  lw_vec_push(&q->all, n);
  return n;
}

static edge *edge_of(gpu_queue *q, const lw_inst *producer,
                     const lw_inst *consumer) {
  uint64_t key = (uint64_t)producer->id << 32 | (uint32_t)consumer->id;
  uint64_t *at = lw_map_put(&q->edges, key);
  if (!*at) {
    lw_vec_push(&q->edge_list, (edge){0});
    *at = q->edge_list.len;
  }
  return &q->edge_list.data[*at - 1];
}

static gpu_refusal can_fuse(gpu_queue *q, const lw_inst *producer,
                            const lw_inst *consumer) {
  node *n = node_of(q, producer);
  edge *e = edge_of(q, producer, consumer);
  if (e->can_epoch == n->can_epoch) return e->can;
  gpu_refusal r = q->oracle->can_fuse(q->oracle->state, producer, consumer);
  e = edge_of(q, producer, consumer);
  e->can_epoch = n->can_epoch;
  return e->can = r;
}

static lw_ticks exec_of(gpu_queue *q, const lw_inst *i) {
  node *n = node_of(q, i);
  if (!n->has_exec) {
    n->exec = q->oracle->exec(q->oracle->state, i);
    n->has_exec = true;
  }
  return n->exec;
}

static lw_ticks fused_of(gpu_queue *q, const lw_inst *producer,
                         const lw_inst *consumer) {
  node *n = node_of(q, producer);
  edge *e = edge_of(q, producer, consumer);
  n->has_times = true;
  if (e->time_epoch == n->time_epoch) return e->fused;
  lw_ticks t = q->oracle->exec_fused(q->oracle->state, producer, consumer);
  e->time_epoch = n->time_epoch;
  return e->fused = t;
}

/* The instruction changed: what was known of it, and of it as a reader of its
 * operands, is forgotten. */
static void forget(gpu_queue *q, const lw_inst *i) {
  node *n = node_of(q, i);
  n->can_epoch++;
  n->time_epoch++;
  n->has_exec = n->has_times = false;
  if (!i->parent) return; /* gone: nothing of it is known any more */
  for (int32_t k = 0; k < i->n_operands; k++) {
    edge *e = edge_of(q, lw_inst_operand(i, k), i);
    e->can_epoch = e->time_epoch = 0;
  }
}

/* ---- the heap ---- */

static bool before(const entry *a, const entry *b) {
  if (a->priority != b->priority) return a->priority > b->priority;
  return a->unique_id > b->unique_id;
}

static void heap_push(gpu_queue *q, entry e) {
  lw_vec_push(&q->heap, e);
  size_t k = q->heap.len - 1;
  for (entry *h = q->heap.data; k > 0 && before(&h[k], &h[(k - 1) / 2]);
       k = (k - 1) / 2) {
    entry t = h[k];
    h[k] = h[(k - 1) / 2];
    h[(k - 1) / 2] = t;
  }
}

static entry heap_pop(gpu_queue *q) {
  entry top = q->heap.data[0], *h = q->heap.data;
  h[0] = h[--q->heap.len];
  for (size_t k = 0, n = q->heap.len;;) {
    size_t best = k;
    for (size_t c = 2 * k + 1; c <= 2 * k + 2; c++)
      if (c < n && before(&h[c], &h[best])) best = c;
    if (best == k) return top;
    entry t = h[k];
    h[k] = h[best];
    h[best] = t;
    k = best;
  }
}

static void unqueue(node *n) {
  n->queued = false;
  n->stamp++;
}

static void set_priority(gpu_queue *q, node *n, lw_ticks priority) {
  if (n->queued && n->priority == priority && !n->forbidden) return;
  unqueue(n);
  if (n->forbidden || (priority < 0 && !n->forced)) return;
  n->queued = true;
  n->priority = priority;
  if (priority < 0) priority = 0; /* forced: after all that pays */
  heap_push(q, (entry){priority, n->inst->unique_id, n, n->stamp});
}

/* ---- records ---- */

/* A value that everything reads would fill the record with names alone. */
static const char *names_of(gpu_queue *q, const lw_inst *producer) {
  int32_t n;
  lw_inst *const *users = gpu_users(&q->g, producer, &n);
  lw_buf b = {0};
  for (int32_t k = 0; k < n && k < MAX_NAMES; k++) {
    if (k) lw_buf_chr(&b, ',');
    lw_buf_str(&b, users[k]->name);
  }
  if (n > MAX_NAMES) lw_buf_str(&b, ",...");
  const char *s = lw_arena_strdup(q->env->scratch, lw_buf_cstr(&b), b.len);
  lw_buf_free(&b);
  return s;
}

/* What reads the producer: the consumer, or an instruction inside it, by its
 * name before fusing. */
static const char *reader_in(gpu_queue *q, const lw_inst *producer,
                             const lw_inst *consumer) {
  const lw_trace *t = q->env->trace;
  int32_t slot = lw_inst_is_fusion(consumer) && t
                     ? lw_fusion_slot(consumer, producer)
                     : -1;
  if (slot < 0) return lw_trace_origin(t, consumer->name);
  const lw_use *u = lw_fusion_body(consumer)->params.data[slot]->uses;
  return lw_trace_origin(t, u ? u->user->name : consumer->name);
}

/* reader: NULL where consumer says it. */
static void record(gpu_queue *q, const lw_inst *producer, const char *consumer,
                   const char *reader, lw_verdict v, const char *text) {
  if (!q->env->trace) return;
  lw_decision d = {.pass = "gpu-priority-fusion",
                   .computation = q->g.comp->name,
                   .producer = producer->name,
                   .consumer = consumer,
                   .reader = reader,
                   .gate = lw_reason_table[v.reason].gate,
                   .yes = v.yes,
                   .reason = v.reason,
                   .unfused_ns = v.unfused_ns,
                   .fused_ns = v.fused_ns,
                   .saved_ns = v.saved_ns,
                   .bytes = lw_shape_bytes(producer->shape),
                   .flip = v.flip,
                   .text = text};
  lw_trace_add(q->env->trace, &d);
}

/* ---- what the user decides ---- */

/* A producer goes into all its readers or into none: an entry on any of its
 * edges decides for all. */
static lw_override *override_on(gpu_queue *q, const lw_inst *producer) {
  const lw_overrides *o = q->env->overrides;
  int32_t n;
  if (!o || !o->list.len) return NULL;
  lw_inst *const *users = gpu_users(&q->g, producer, &n);
  for (int32_t k = 0; k < n; k++) {
    lw_override *e = lw_override_on(o, q->env->trace, producer, users[k],
                                    lw_fusion_slot(users[k], producer));
    if (e) return e;
  }
  return NULL;
}

static const char *flip_to(gpu_queue *q, bool yes, const char *producer,
                           const char *consumer) {
  if (!q->env->trace) return NULL;
  return lw_arena_printf(q->env->scratch, "--%s-edge=%s,%s",
                         yes ? "forbid" : "force", producer, consumer);
}

/* Bitcasts and constants are taken edge by edge, by rule. */
static bool edge_forbidden(gpu_queue *q, const lw_inst *producer,
                           const lw_inst *consumer) {
  if (!q->env->overrides || !q->env->overrides->list.len) return false;
  lw_override *e = lw_override_on(q->env->overrides, q->env->trace, producer,
                                  consumer, lw_fusion_slot(consumer, producer));
  lw_verdict v = lw_override_verdict(e, lw_verdict_yes(LW_REASON_RULE_ALLOWS));
  if (!v.yes)
    record(q, producer, consumer->name, reader_in(q, producer, consumer), v,
           "");
  return !v.yes;
}

static void judge(gpu_queue *q, node *p, lw_gpu_times t, lw_ticks priority) {
  const lw_inst *producer = p->inst;
  bool yes = priority >= 0;
  lw_verdict v = {
      .yes = yes,
      .reason = yes ? LW_REASON_SAVES_TIME : LW_REASON_RECOMPUTE_LOSES,
      .unfused_ns = (double)t.unfused / 4,
      .fused_ns = (double)t.fused / 4,
      .saved_ns = (double)priority / 4};
  int32_t n;
  lw_inst *const *users = gpu_users(&q->g, producer, &n);
  v.flip = flip_to(q, yes, producer->name, users[0]->name);
  v = lw_override_verdict(override_on(q, producer), v);
  p->forced = v.reason == LW_REASON_FORCED;
  p->forbidden = v.reason == LW_REASON_FORBIDDEN;
  if (q->env->trace) record(q, producer, names_of(q, producer), NULL, v, "");
}

/* ---- priorities ---- */

/* by: the reader that cannot take it (NULL when there is none). */
static gpu_refusal refusal_of(gpu_queue *q, const lw_inst *producer,
                              const lw_inst **by) {
  int32_t n, others = 0;
  *by = NULL;
  lw_inst *const *users = gpu_users(&q->g, producer, &n);
  if (n == 0) return (gpu_refusal){LW_REASON_CONSUMER_KIND, "No users to fuse"};
  for (int32_t k = 0; k < n; k++) {
    if (gpu_is_fusible_bitcast(users[k])) continue;
    others++;
    gpu_refusal r = can_fuse(q, producer, users[k]);
    if (!r.text) continue;
    *by = users[k];
    return r;
  }
  if (n) *by = users[0];
  if (others == 0)
    return (gpu_refusal){LW_REASON_CONSUMER_KIND,
                         "not fusing because there are only bitcast users"};
  return (gpu_refusal){LW_REASON_FUSIBLE, NULL};
}

static lw_gpu_times times_of(gpu_queue *q, const lw_inst *producer, int32_t n,
                             lw_inst *const *consumers) {
  lw_gpu_times t = {plus((n + 1) * (lw_ticks)LAUNCH, exec_of(q, producer)),
                    n * (lw_ticks)LAUNCH};
  for (int32_t k = 0; k < n; k++) {
    t.unfused = plus(t.unfused, exec_of(q, consumers[k]));
    t.fused = plus(t.fused, fused_of(q, producer, consumers[k]));
  }
  return t;
}

static lw_ticks priority_of(gpu_queue *q, node *p) {
  const lw_inst *producer = p->inst;
  if (gpu_is_fusible_bitcast(producer)) return LW_TICKS_INF;
  if (producer->opcode == LW_OP_CONSTANT) return TICKS_NEVER;
  const lw_inst *by;
  p->forced = p->forbidden = false;
  gpu_refusal r = refusal_of(q, producer, &by);
  if (r.text) {
    lw_verdict v = lw_verdict_no(r.reason);
    v = lw_override_verdict(override_on(q, producer), v);
    record(q, producer, by ? by->name : "",
           by ? reader_in(q, producer, by) : NULL, v, r.text);
    return TICKS_NEVER;
  }
  int32_t n;
  lw_inst *const *users = gpu_users(&q->g, producer, &n);
  if (p->has_old) {
    users = p->fresh.data;
    n = (int32_t)p->fresh.len;
  }
  lw_gpu_times t = times_of(q, producer, n, users);
  lw_ticks base = 0;
  if (p->has_old) {
    t.unfused = minus(t.unfused, p->old.unfused);
    t.fused = minus(t.fused, p->old.fused);
    base = p->priority;
  }
  lw_ticks priority = minus(plus(base, t.unfused), t.fused);
  judge(q, p, t, priority);
  return priority;
}

/* ---- one round ---- */

static void list_consumers(gpu_queue *q) {
  int32_t n;
  lw_inst *const *users = gpu_users(&q->g, q->producer, &n);
  bool bitcast = gpu_is_fusible_bitcast(q->producer);
  q->consumers = LW_NEW_ARRAY(q->env->scratch, lw_inst *, n);
  q->n_consumers = 0;
  for (int32_t k = 0; k < n; k++)
    if (!bitcast || (!can_fuse(q, q->producer, users[k]).text &&
                     !edge_forbidden(q, q->producer, users[k])))
      q->consumers[q->n_consumers++] = users[k];
}

static bool dequeue(gpu_queue *q) {
  while (q->heap.len) {
    entry e = heap_pop(q);
    if (!e.n->queued || e.stamp != e.n->stamp) continue;
    unqueue(e.n);
    q->producer = e.n->inst;
    list_consumers(q);
    if (q->n_consumers) return true;
  }
  return false;
}

static void want_update(gpu_queue *q, node *n) {
  if (n->updating) return;
  n->updating = true;
  lw_vec_push(&q->updates, n);
}

static void after_fusing(gpu_queue *q, lw_inst *fusion, lw_inst *consumer,
                         const char *consumer_name, const char *reader) {
  lw_verdict v = lw_verdict_yes(LW_REASON_RULE_ALLOWS);
  if (node_of(q, q->producer)->forced) {
    v.reason = LW_REASON_FORCED;
    v.flip = "without --force-edge";
  } else {
    v.flip = flip_to(q, true, q->producer->name, consumer_name);
  }
  record(q, q->producer, consumer_name, reader, v, fusion->name);
  if (fusion != consumer) {
    node *gone = node_of(q, consumer);
    gone->updating = false;
    unqueue(gone);
  }
  for (int32_t k = 0; k < fusion->n_operands; k++) {
    lw_inst *o = lw_inst_operand(fusion, k);
    if (o == q->producer || o->opcode == LW_OP_CONSTANT ||
        o->opcode == LW_OP_GET_TUPLE_ELEMENT || !lw_gpu_inst_is_fusible(o))
      continue;
    node *n = node_of(q, o);
    want_update(q, n);
    lw_vec_push(&n->fresh, fusion);
    lw_vec_push(&q->touched, n);
  }
  want_update(q, node_of(q, fusion));
}

static void add_old(gpu_queue *q, node *operand, const lw_inst *consumer) {
  uint64_t key = (uint64_t)operand->inst->id << 32 | (uint32_t)consumer->id;
  uint64_t *at = lw_map_get(&q->edges, key);
  const edge *e = at ? &q->edge_list.data[*at - 1] : NULL;
  if (!e || e->time_epoch != operand->time_epoch) return;
  operand->old.fused = plus(operand->old.fused, e->fused);
  operand->old.unfused = plus(operand->old.unfused, exec_of(q, consumer));
}

/* What the old readers gave: taken before anything is forgotten. */
static void sum_old(gpu_queue *q) {
  for (size_t k = 0; k < q->touched.len; k++) {
    node *n = q->touched.data[k];
    if (!n->queued || !n->has_times || n->has_old) continue;
    n->has_old = true;
    n->old = (lw_gpu_times){0, 0};
    for (int32_t j = 0; j < q->n_consumers; j++) add_old(q, n, q->consumers[j]);
    add_old(q, n, q->producer);
    n->old.unfused = plus(n->old.unfused, plus(n->exec, LAUNCH));
  }
}

static void update_priorities(gpu_queue *q) {
  for (size_t k = 0; k < q->updates.len; k++) {
    node *n = q->updates.data[k];
    if (!n->updating || !n->inst->parent) continue;
    if (gpu_is_fusible(n->inst)) (void)exec_of(q, n->inst);
  }
  for (size_t k = 0; k < q->updates.len; k++) {
    node *n = q->updates.data[k];
    if (n->updating && n->inst->parent) set_priority(q, n, priority_of(q, n));
    n->updating = false;
  }
  for (size_t k = 0; k < q->touched.len; k++) {
    q->touched.data[k]->fresh.len = 0;
    q->touched.data[k]->has_old = false;
  }
  q->updates.len = q->touched.len = 0;
}

static bool fuse_one(gpu_queue *q, lw_inst *consumer) {
  const gpu_oracle *o = q->oracle;
  const char *name = consumer->name;
  const char *reader = reader_in(q, q->producer, consumer);
  if (gpu_is_fusible_bitcast(consumer) || !lw_pass_fuel(q->env)) return false;
  lw_fusion_kind kind = o->kind(o->state, q->producer, consumer);
  lw_inst *f = gpu_fuse(&q->g, q->producer, consumer, kind);
  o->took(o->state, f, q->producer, consumer);
  if (f != consumer) {
    lw_pass_count(q->env, "fusions", 1);
    o->removed(o->state, consumer);
  }
  after_fusing(q, f, consumer, name, reader);
  lw_pass_count(q->env, "moved", 1);
  q->changed = true;
  return true;
}

static void fuse_round(gpu_queue *q) {
  for (int32_t k = 0; k < q->n_consumers; k++) {
    lw_inst *c = q->consumers[k];
    if (gpu_is_fusible(c)) (void)exec_of(q, c); /* known from before */
  }
  for (int32_t k = 0; k < q->n_consumers; k++) fuse_one(q, q->consumers[k]);
  sum_old(q);
  if (gpu_user_count(&q->g, q->producer) == 0) {
    forget(q, q->producer);
    node *n = node_of(q, q->producer);
    n->updating = false;
    unqueue(n);
    q->oracle->removed(q->oracle->state, q->producer);
    gpu_remove(&q->g, q->producer);
  }
  for (int32_t k = 0; k < q->n_consumers; k++) forget(q, q->consumers[k]);
  update_priorities(q);
}

/* ---- constants ---- */

static void fuse_constant(gpu_queue *q, lw_inst *c) {
  const gpu_oracle *o = q->oracle;
  int32_t n;
  lw_inst *const *users = gpu_users(&q->g, c, &n);
  lw_inst **list = LW_NEW_ARRAY(q->env->scratch, lw_inst *, n);
  if (n) memcpy(list, users, (size_t)n * sizeof *list);
  for (int32_t k = 0; k < n; k++) {
    if (!gpu_takes_constant(c, list[k]) || edge_forbidden(q, c, list[k]) ||
        !lw_pass_fuel(q->env))
      continue;
    lw_fusion_kind kind = o->kind(o->state, c, list[k]);
    lw_inst *f = gpu_fuse(&q->g, c, list[k], kind);
    o->took(o->state, f, c, list[k]);
    if (f != list[k]) o->removed(o->state, list[k]);
    q->changed = true;
  }
}

typedef LW_VEC(lw_inst *) inst_list;

static void insert_by_number(inst_list *l, lw_inst *i) {
  lw_vec_push(l, i);
  size_t k = l->len - 1;
  for (; k > 0 && l->data[k - 1]->unique_id > i->unique_id; k--)
    l->data[k] = l->data[k - 1];
  l->data[k] = i;
}

static void fuse_constants(gpu_queue *q) {
  inst_list list = {0};
  for (lw_inst *i = q->g.comp->first; i; i = i->next)
    if (i->opcode == LW_OP_CONSTANT && lw_shape_is_array(i->shape) &&
        i->shape->elements <= 1)
      insert_by_number(&list, i);
  for (size_t k = 0; k < list.len; k++) fuse_constant(q, list.data[k]);
  lw_vec_free(&list);
}

/* ---- a computation ---- */

static void fill(gpu_queue *q) {
  int32_t n;
  lw_inst **order = lw_comp_post_order(q->g.comp, q->env->scratch, &n);
  for (int32_t k = 0; k < n; k++) {
    lw_inst *i = order[k];
    if (gpu_is_fusible(i)) (void)exec_of(q, i);
    if (i->opcode == LW_OP_PARAMETER || i->n_uses == 0 ||
        !lw_gpu_inst_is_fusible(i) || i->opcode == LW_OP_TUPLE ||
        i->opcode == LW_OP_GET_TUPLE_ELEMENT)
      continue;
    want_update(q, node_of(q, i));
  }
  update_priorities(q);
}

bool gpu_queue_run(lw_comp *c, lw_pass_env *env, const gpu_oracle *oracle) {
  gpu_queue q = {.env = env, .oracle = oracle};
  gpu_graph_init(&q.g, c, env->scratch);
  q.g.trace = env->trace;
  fill(&q);
  while (dequeue(&q)) fuse_round(&q);
  fuse_constants(&q);
  gpu_graph_settle(&q.g);
  gpu_graph_keep(&q.g);
  gpu_graph_free(&q.g);
  for (size_t k = 0; k < q.all.len; k++) lw_vec_free(&q.all.data[k]->fresh);
  lw_map_free(&q.nodes);
  lw_map_free(&q.edges);
  lw_vec_free(&q.all);
  lw_vec_free(&q.edge_list);
  lw_vec_free(&q.heap);
  lw_vec_free(&q.updates);
  lw_vec_free(&q.touched);
  return q.changed;
}
