/* instruction-fusion: a second copy of what stays in memory anyway.
 *
 * priority-fusion makes a value inline in all its readers or in none. A value
 * that a dot, a loop or a tuple needs in memory stays there, and its other
 * readers read it. Where computing it again is cheaper than reading it (a
 * broadcast scalar, an iota, a mask, a conversion to a wider type), this pass
 * takes a copy into those readers, one edge at a time; the value itself stays
 * for the reader that must have it, or goes if nobody is left.
 *
 * The model: reading costs the value's bytes at its level; computing costs the
 * instruction's arithmetic and the bytes of operands that the reader does not
 * read yet.
 *
 * Memory decides what time leaves open. A few words that one kernel reads and
 * beyond it only tuples name (the start of a loop) are computed again even when
 * that loses up to give-up-ns: no kernel reads them from memory then, and the
 * record says how many bytes that is. Such a value may be a small fusion.
 */
#include <stdlib.h>

#include "fusion/fuse.h"
#include "fusion/fusion.h"
#include "fusion/groups.h"

/* A small value: so few bytes, made by so few instructions. */
enum { SMALL_BYTES = 64, SMALL_OPS = 8 };

typedef struct {
  lw_pass_env *env;
  double give_up_ns;
  uint8_t *pinned;
  int32_t n_ids; /* pinned covers ids below */
  lw_gates gates;
} run;

static bool is_pinned(const run *r, const lw_inst *i) {
  return i->id < r->n_ids && r->pinned[i->id];
}

/* A loop over a few words: cheap to have twice. */
static bool is_small_fusion(const lw_inst *i) {
  if (!lw_inst_is_fusion(i) || !lw_shape_is_array(i->shape) ||
      lw_inst_i64(i, LW_ATTR_KIND, 0) != LW_FUSION_LOOP ||
      lw_shape_bytes(i->shape) > SMALL_BYTES)
    return false;
  int32_t n = 0;
  for (const lw_inst *k = lw_fusion_body(i)->first; k; k = k->next) {
    if (k->opcode == LW_OP_PARAMETER || k->opcode == LW_OP_CONSTANT) continue;
    if (!lw_inst_is_loop(k) || lw_shape_bytes(k->shape) > SMALL_BYTES ||
        ++n > SMALL_OPS)
      return false;
  }
  return true;
}

/* The consumer is the only kernel that reads it; tuples name it, for which it
 * stays in memory. */
static bool is_read_here_only(const lw_inst *p, const lw_inst *consumer) {
  bool named = false;
  for (const lw_use *u = p->uses; u; u = u->next) {
    named |= u->user->opcode == LW_OP_TUPLE;
    if (u->user != consumer && u->user->opcode != LW_OP_TUPLE) return false;
  }
  return named && !lw_inst_is_root(p);
}

/* Every reader of the operand inside the consumer takes the producer. */
static lw_verdict edge_allows(const run *r, const lw_inst *producer,
                              const lw_inst *consumer, int32_t slot) {
  const lw_target *t = r->env->target;
  if (lw_inst_is_fusion(producer)) producer = lw_fusion_body(producer)->root;
  if (!lw_inst_is_fusion(consumer)) {
    lw_fusible f = t->backend->is_fusible(producer, consumer, t);
    return f.yes ? lw_verdict_yes(LW_REASON_FUSIBLE) : lw_verdict_no(f.reason);
  }
  const lw_inst *param = lw_fusion_body(consumer)->params.data[slot];
  for (const lw_use *u = param->uses; u; u = u->next) {
    if (u->user->opcode == LW_OP_TUPLE)
      return lw_verdict_no(LW_REASON_CONSUMER_KIND);
    lw_fusible f = t->backend->is_fusible(producer, u->user, t);
    if (!f.yes) return lw_verdict_no(f.reason);
  }
  return lw_verdict_yes(LW_REASON_FUSIBLE);
}

static lw_verdict fusibility(void *state, const lw_inst *consumer,
                             int32_t slot) {
  const run *r = state;
  const lw_inst *producer = lw_inst_operand(consumer, slot);
  if (is_pinned(r, producer) || is_pinned(r, consumer))
    return lw_verdict_no(LW_REASON_CONTROL_EDGE);
  if (producer->opcode == LW_OP_REDUCE ||
      (lw_inst_is_fusion(producer) && !is_small_fusion(producer)))
    return lw_verdict_no(LW_REASON_PRODUCER_IS_FUSION);
  lw_verdict v = edge_allows(r, producer, consumer, slot);
  return v.yes ? lw_gate_in_place(producer, consumer) : v;
}

static double compute_ns(const lw_target *t, const lw_inst *p) {
  if (!lw_inst_is_fusion(p)) return lw_cost_compute_ns(t, p) / t->v.cores;
  double ns = 0;
  for (const lw_inst *k = lw_fusion_body(p)->first; k; k = k->next)
    if (k->opcode != LW_OP_PARAMETER && k->opcode != LW_OP_CONSTANT)
      ns += lw_cost_compute_ns(t, k);
  return ns;
}

/* Time says no: is it little, for a value nobody need read? */
static void weigh_memory(const run *r, const lw_inst *p,
                         const lw_inst *consumer, lw_verdict *v) {
  if (-v->saved_ns > r->give_up_ns || lw_shape_bytes(p->shape) > SMALL_BYTES ||
      !is_read_here_only(p, consumer))
    return;
  v->yes = true;
  v->reason = LW_REASON_SAVES_MEMORY;
  v->threshold = -r->give_up_ns;
  v->flip = "--pass-option=instruction-fusion.give-up-ns=0";
}

static lw_verdict profitability(void *state, const lw_inst *consumer,
                                int32_t slot) {
  const run *r = state;
  const lw_target *t = r->env->target;
  const lw_inst *p = lw_inst_operand(consumer, slot);
  double whole = (double)lw_shape_bytes(p->shape);
  lw_verdict v = {.unfused_ns = lw_cost_value_ns(t, whole, whole)};
  v.fused_ns = compute_ns(t, p);
  for (int32_t k = 0; k < p->n_operands; k++) {
    const lw_inst *o = lw_inst_operand(p, k);
    double bytes = (double)lw_shape_bytes(o->shape);
    if (!lw_is_immediate(o) && lw_fusion_slot(consumer, o) < 0)
      v.fused_ns += lw_cost_value_ns(t, bytes < whole ? bytes : whole, bytes);
  }
  v.saved_ns = v.unfused_ns - v.fused_ns;
  v.yes = v.saved_ns > 0;
  v.reason = v.yes ? LW_REASON_SAVES_TIME : LW_REASON_RECOMPUTE_LOSES;
  v.flip = v.yes ? "a faster memory, or a dearer operation"
                 : "a slower memory, or a cheaper operation";
  if (!v.yes && r->give_up_ns > 0) weigh_memory(r, p, consumer, &v);
  return v;
}

/* Worth a question: a loop op whose reader is a kernel. */
static bool is_candidate(const lw_inst *producer, const lw_inst *consumer) {
  if (producer->opcode == LW_OP_CONSTANT ||
      !(lw_inst_is_loop(producer) || is_small_fusion(producer)))
    return false;
  if (producer->opcode == LW_OP_BITCAST || producer->opcode == LW_OP_RESHAPE)
    return false;
  return lw_inst_is_loop(consumer) || consumer->opcode == LW_OP_REDUCE ||
         (lw_inst_is_fusion(consumer) &&
          lw_inst_i64(consumer, LW_ATTR_KIND, 0) != LW_FUSION_CUSTOM);
}

static lw_inst *take(run *r, lw_inst *producer, lw_inst *consumer) {
  lw_inst *f = consumer;
  if (!lw_inst_is_fusion(f)) {
    const char *name = lw_arena_printf(r->env->scratch, "%s_%s_fusion",
                                       lw_opcode_name(producer->opcode),
                                       lw_opcode_name(consumer->opcode));
    const char *was = consumer->name;
    f = lw_fusion_new(
        consumer,
        consumer->opcode == LW_OP_REDUCE ? LW_FUSION_INPUT : LW_FUSION_LOOP,
        name, "fused_computation");
    lw_trace_rename(r->env->trace, f->name, was);
    lw_trace_rename(r->env->trace, lw_fusion_body(f)->root->name, was);
  }
  const lw_inst *copy = lw_fusion_take(f, producer);
  lw_trace_rename(r->env->trace, copy->name, producer->name);
  for (int32_t k = 0; k < f->n_operands; k++)
    if (lw_is_immediate(lw_inst_operand(f, k)))
      lw_fusion_take(f, lw_inst_operand(f, k--));
  lw_pass_count(r->env, "duplicated", 1);
  return f;
}

static bool try_operands(run *r, lw_inst *i) {
  bool changed = false;
  for (int32_t k = 0; k < i->n_operands; k++) {
    lw_inst *p = lw_inst_operand(i, k);
    if (!is_candidate(p, i) || !lw_gates_ask(&r->gates, i, k)) continue;
    if (!lw_pass_fuel(r->env)) return changed;
    i = take(r, p, i);
    changed = true;
    k = -1; /* its operands are others now */
  }
  return changed;
}

/* What the copies left without a reader. */
static void remove_dead(lw_comp *c) {
  for (lw_inst *i = c->last, *prev; i; i = prev) {
    prev = i->prev;
    if (i->n_uses || lw_inst_is_root(i) || i->opcode == LW_OP_PARAMETER)
      continue;
    if (i->opcode == LW_OP_CONSTANT || lw_inst_is_loop(i)) lw_inst_remove(i);
  }
}

static bool fuse_computation(run *r, lw_comp *c) {
  bool changed = false;
  r->pinned = lw_control_touched(c, r->env->scratch);
  r->n_ids = c->module->n_inst_ids;
  for (lw_inst *i = c->last, *prev; i; i = prev) {
    prev = i->prev;
    if (i->n_operands && i->opcode != LW_OP_TUPLE)
      changed |= try_operands(r, i);
  }
  if (changed) remove_dead(c);
  return changed;
}

static lw_status run_pass(lw_module *m, lw_pass_env *env, bool *changed) {
  int32_t n;
  run r = {.env = env, .n_ids = m->n_inst_ids};
  r.give_up_ns = strtod(lw_pass_option_value(env, "give-up-ns"), NULL);
  r.gates = (lw_gates){"instruction-fusion", env->trace,   env->overrides, &r,
                       fusibility,           profitability};
  lw_comp **comps = lw_comps_to_fuse(m, env->scratch, &n);
  for (int32_t k = 0; k < n; k++) *changed |= fuse_computation(&r, comps[k]);
  return NULL;
}

static const lw_pass_option options[] = {
    {"give-up-ns", "2", "time lost at most to spare a small value's reading"},
    {NULL, NULL, NULL}};

const lw_pass lw_pass_instruction_fusion = {
    "instruction-fusion", "computes again what is cheaper computed than read",
    options, run_pass};
