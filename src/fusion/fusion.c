/* fusion: what jaxlib 0.10.2's XLA:CPU pass of this name does.
 *
 * Instruction fusion works on edges. A queue holds a computation's instructions
 * in reverse post order, so that consumers come before their producers. For
 * each consumer its operands are tried, nearest first (highest post-order
 * position); the first that both gates allow is taken into the consumer: the
 * consumer becomes a fusion (or is one), the producer is cloned into it, and
 * the fusion goes back on the queue, to be tried with its new operands next. A
 * producer with other readers stays for them: that is duplication, and the
 * rules in xla_rules.c say when it is allowed.
 *
 * Names, operand order and the kind of each fusion follow XLA, so that the
 * result can be compared with XLA's own, instruction by instruction.
 */
#include "fusion/fusion.h"

#include <stdlib.h>

#include "fusion/fuse.h"
#include "fusion/gates.h"
#include "fusion/gpu_fuse.h"
#include "fusion/xla_rules.h"

typedef struct {
  int64_t position;
  int32_t slot;
} candidate;

typedef struct {
  lw_pass_env *env;
  xla_rules *rules;
  lw_gates gates;
  LW_VEC(lw_inst *) queue;      /* popped from the back; NULL: removed */
  LW_VEC(uint32_t) position;    /* by id: position + 1, 0: not queued */
  LW_VEC(candidate) candidates; /* of the consumer in hand */
  bool changed;
} run;

static void enqueue(run *r, lw_inst *i) {
  lw_vec_push(&r->queue, i);
  while (r->position.len <= (size_t)i->id) lw_vec_push(&r->position, 0);
  r->position.data[i->id] = (uint32_t)r->queue.len;
}

static int64_t position_of(const run *r, const lw_inst *i) {
  return (size_t)i->id < r->position.len ? r->position.data[i->id] : 0;
}

static lw_inst *dequeue(run *r) {
  while (r->queue.len) {
    lw_inst *i = lw_vec_pop(&r->queue);
    if (!i) continue;
    return i;
  }
  return NULL;
}

static int by_position(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->position != y->position) return x->position > y->position ? -1 : 1;
  return (x->slot > y->slot) - (x->slot < y->slot);
}

/* Slots of fusible operands that are queued, highest position first; equal ones
 * in slot order. */
static void list_candidates(run *r, const lw_inst *i) {
  r->candidates.len = 0;
  for (int32_t k = 0; k < i->n_operands; k++) {
    const lw_inst *o = lw_inst_operand(i, k);
    int64_t at = position_of(r, o);
    if (!at || !xla_is_fusible(o)) continue;
    lw_vec_push(&r->candidates, ((candidate){at, k}));
  }
  if (r->candidates.len)
    qsort(r->candidates.data, r->candidates.len, sizeof *r->candidates.data,
          by_position);
}

static void drop_if_dead(run *r, lw_inst *producer) {
  if (producer->n_uses || lw_inst_is_root(producer)) return;
  xla_rules_forget(r->rules, producer);
  int64_t at = position_of(r, producer);
  if (at && (size_t)at <= r->queue.len && r->queue.data[at - 1] == producer)
    r->queue.data[at - 1] = NULL;
  if (at) r->position.data[producer->id] = 0;
  lw_inst_remove(producer);
  lw_pass_count(r->env, "moved", 1);
}

static lw_inst *fuse(run *r, lw_inst *producer, lw_inst *consumer) {
  lw_fusion_kind kind = xla_is_output_fusion(producer, consumer)
                            ? LW_FUSION_OUTPUT
                            : LW_FUSION_LOOP;
  lw_inst *f = consumer;
  if (!lw_inst_is_fusion(consumer)) {
    const char *name = lw_arena_printf(r->env->scratch, "%s_%s_fusion",
                                       lw_opcode_name(producer->opcode),
                                       lw_opcode_name(consumer->opcode));
    const char *was = consumer->name;
    xla_rules_forget(r->rules, consumer);
    f = lw_fusion_new(consumer, kind, name, "fused_computation");
    xla_rules_created(r->rules, f);
    lw_trace_rename(r->env->trace, f->name, was);
    lw_trace_rename(r->env->trace, lw_fusion_body(f)->root->name, was);
    lw_pass_count(r->env, "fusions", 1);
  } else if (lw_inst_i64(f, LW_ATTR_KIND, -1) != kind) {
    lw_inst_set_i64(f, LW_ATTR_KIND, kind);
  }
  lw_inst *clone = lw_fusion_take(f, producer);
  xla_rules_taken(r->rules, f, producer, clone);
  lw_trace_rename(r->env->trace, clone->name, producer->name);
  enqueue(r, f);
  drop_if_dead(r, producer);
  if (producer->parent) lw_pass_count(r->env, "duplicated", 1);
  r->changed = true;
  return f;
}

static void try_consumer(run *r, lw_inst *consumer) {
  list_candidates(r, consumer);
  for (size_t k = 0; k < r->candidates.len; k++) {
    int32_t slot = r->candidates.data[k].slot;
    lw_inst *producer = lw_inst_operand(consumer, slot);
    if (!lw_gates_ask(&r->gates, consumer, slot)) continue;
    if (!lw_pass_fuel(r->env)) return;
    fuse(r, producer, consumer);
    return;
  }
}

static void fuse_computation(run *r, lw_comp *c) {
  int32_t n;
  lw_inst **order = lw_comp_post_order(c, r->env->scratch, &n);
  uint8_t *pinned = lw_control_touched(c, r->env->scratch);
  xla_rules_find_unique(r->rules, order, n, &r->gates);
  r->queue.len = 0;
  for (int32_t k = 0; k < n; k++)
    if (!pinned[order[k]->id]) enqueue(r, order[k]);
  for (lw_inst *i; (i = dequeue(r));)
    if (i->parent && (xla_is_fusible(i) || lw_inst_is_fusion(i)))
      try_consumer(r, i);
}

/* The first caller applies the computation to elements (or calls a library):
 * what is inside is that caller's business. */
static bool is_embedding(lw_opcode op) {
  switch ((int)op) {
    case LW_OP_ALL_REDUCE:
    case LW_OP_REDUCE_SCATTER:
    case LW_OP_ALL_REDUCE_START:
    case LW_OP_MAP:
    case LW_OP_REDUCE:
    case LW_OP_REDUCE_WINDOW:
    case LW_OP_SCAN:
    case LW_OP_SCATTER:
    case LW_OP_SELECT_AND_SCATTER:
    case LW_OP_SORT:
    case LW_OP_FUSION:
    case LW_OP_CUSTOM_CALL:
      return true;
    default:
      return false;
  }
}

/* XLA's choice: every computation that no instruction embeds, those that
 * nobody calls included. Callees first. */
static lw_comp **comps_to_visit(const lw_module *m, lw_arena *a, int32_t *n) {
  lw_comp **all = lw_fusion_listed_order(m, a, n);
  const lw_inst **caller = LW_NEW_ARRAY(a, const lw_inst *, m->n_comp_ids + 1);
  for (const lw_comp *c = m->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next)
      for (int32_t k = 0; k < lw_inst_called_count(i); k++) {
        const lw_comp *d = lw_inst_called(i, k);
        if (d && !caller[d->id]) caller[d->id] = i;
      }
  int32_t kept = 0;
  for (int32_t k = 0; k < *n; k++) {
    const lw_inst *i = caller[all[k]->id];
    if (!i || !is_embedding(i->opcode)) all[kept++] = all[k];
  }
  *n = kept;
  return all;
}

/* XLA prints instructions in post order: so do we what came of them. */
static void list_as_xla(lw_module *m, lw_arena *a) {
  for (lw_comp *c = m->first_comp; c; c = c->next) gpu_sort_list(c, a);
}

static lw_status run_pass(lw_module *m, lw_pass_env *env, bool *changed) {
  run r = {.env = env, .rules = xla_rules_new(env->scratch)};
  r.gates = (lw_gates){"fusion", env->trace,     env->overrides,
                       r.rules,  xla_fusibility, xla_profitability};
  int32_t n;
  lw_comp **comps = comps_to_visit(m, env->scratch, &n);
  for (int32_t k = 0; k < n; k++) fuse_computation(&r, comps[k]);
  if (r.changed) list_as_xla(m, env->scratch);
  lw_vec_free(&r.queue);
  lw_vec_free(&r.position);
  lw_vec_free(&r.candidates);
  xla_rules_free(r.rules);
  *changed = r.changed;
  return NULL;
}

const lw_pass lw_pass_fusion = {
    "fusion", "instruction fusion as XLA:CPU 0.10.2 does it", NULL, run_pass};
