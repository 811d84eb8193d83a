/* The two gates, and what both strategies share of them. */
#include "fusion/gates.h"

#include "fusion/fuse.h"

/* The instruction that reads the operand: the consumer, or one inside it. */
static const lw_inst *reader_of(const lw_inst *consumer, int32_t slot) {
  if (slot < 0 || !lw_inst_is_fusion(consumer)) return consumer;
  const lw_comp *body = lw_fusion_body(consumer);
  if ((size_t)slot >= body->params.len) return consumer;
  const lw_use *u = body->params.data[slot]->uses;
  return u ? u->user : consumer;
}

static void record(lw_trace *t, const char *pass, const lw_inst *producer,
                   const lw_inst *consumer, int32_t slot, lw_verdict v) {
  if (!t) return;
  const lw_inst *reader = reader_of(consumer, slot);
  lw_decision d = {.pass = pass,
                   .computation = consumer->parent->name,
                   .producer = producer->name,
                   .consumer = consumer->name,
                   .reader = lw_trace_origin(t, reader->name),
                   .gate = lw_reason_table[v.reason].gate,
                   .yes = v.yes,
                   .reason = v.reason,
                   .unfused_ns = v.unfused_ns,
                   .fused_ns = v.fused_ns,
                   .saved_ns = v.saved_ns,
                   .bytes = lw_shape_bytes(producer->shape),
                   .threshold = v.threshold,
                   .flip = v.flip};
  lw_trace_add(t, &d);
}

void lw_gate_record(lw_trace *t, const char *pass, const lw_inst *producer,
                    const lw_inst *consumer, lw_verdict v) {
  int32_t slot = lw_fusion_slot(consumer, producer);
  record(t, pass, producer, consumer, slot, v);
}

/* ---- what the user decides ---- */

static lw_override *by_reader(const lw_overrides *o, const lw_trace *t,
                              const char *producer, const lw_inst *consumer,
                              int32_t slot) {
  if (slot < 0 || !lw_inst_is_fusion(consumer)) return NULL;
  const lw_comp *body = lw_fusion_body(consumer);
  const lw_use *u = body->params.data[slot]->uses;
  lw_override *e = NULL;
  for (; u && !e; u = u->next)
    e = lw_overrides_find(o, producer, lw_trace_origin(t, u->user->name));
  return e;
}

lw_override *lw_override_on(const lw_overrides *o, const lw_trace *t,
                            const lw_inst *producer, const lw_inst *consumer,
                            int32_t slot) {
  if (!o || !o->list.len) return NULL;
  const char *was = lw_trace_origin(t, producer->name);
  lw_override *e = lw_overrides_find(o, producer->name, consumer->name);
  if (!e) e = lw_overrides_find(o, was, consumer->name);
  if (!e) e = lw_overrides_find(o, was, lw_trace_origin(t, consumer->name));
  return e ? e : by_reader(o, t, was, consumer, slot);
}

lw_verdict lw_override_verdict(lw_override *e, lw_verdict v) {
  if (!e) return v;
  bool legal = v.yes || lw_reason_table[v.reason].gate != LW_GATE_FUSIBILITY;
  e->asked = true;
  if (!legal) {
    e->refused = true;
    e->refusal = v.reason;
  }
  if (!legal || v.reason == LW_REASON_FUSIBLE) return v;
  e->obeyed = true;
  if (v.yes == e->force) return v;
  v.yes = e->force;
  v.reason = e->force ? LW_REASON_FORCED : LW_REASON_FORBIDDEN;
  v.flip = e->force ? "without --force-edge" : "without --forbid-edge";
  return v;
}

const char *lw_flip_edge(lw_arena *a, const char *other, bool yes,
                         const lw_inst *producer, const lw_inst *consumer) {
  return lw_arena_printf(a, "%s%s--%s-edge=%s,%s", other ? other : "",
                         other ? ", or " : "", yes ? "forbid" : "force",
                         producer->name, consumer->name);
}

/* ---- asking ---- */

/* Rules have the user's word for a flip: it turns any of them. */
static void record_asked(const lw_gates *g, const lw_inst *producer,
                         const lw_inst *consumer, int32_t slot, lw_verdict v) {
  lw_buf flip = {0};
  if (!g->trace) return;
  if (lw_reason_table[v.reason].gate == LW_GATE_PROFITABILITY &&
      v.reason != LW_REASON_FORCED && v.reason != LW_REASON_FORBIDDEN) {
    lw_buf_printf(&flip, "%s%s--%s-edge=%s,%s", v.flip ? v.flip : "",
                  v.flip ? ", or " : "", v.yes ? "forbid" : "force",
                  producer->name, consumer->name);
    v.flip = lw_buf_cstr(&flip);
  }
  record(g->trace, g->pass, producer, consumer, slot, v);
  lw_buf_free(&flip);
}

bool lw_gates_ask(const lw_gates *g, const lw_inst *consumer, int32_t slot) {
  const lw_inst *producer = lw_inst_operand(consumer, slot);
  lw_override *e =
      lw_override_on(g->overrides, g->trace, producer, consumer, slot);
  lw_verdict v = g->fusibility(g->state, consumer, slot);
  (void)lw_override_verdict(e, v);
  record(g->trace, g->pass, producer, consumer, slot, v);
  if (!v.yes) return false;
  v = lw_override_verdict(e, g->profitability(g->state, consumer, slot));
  record_asked(g, producer, consumer, slot, v);
  return v.yes;
}

/* The user overrides the decision, not the rules' looking ahead. */
bool lw_gates_peek(const lw_gates *g, const lw_inst *consumer, int32_t slot) {
  return g->fusibility(g->state, consumer, slot).yes &&
         g->profitability(g->state, consumer, slot).yes;
}

/* ---- in-place updates ---- */

static const lw_inst *through_bitcasts(const lw_inst *i) {
  while (i->opcode == LW_OP_BITCAST) i = lw_inst_operand(i, 0);
  return i;
}

/* The operand slot that output k of an instruction may be written over, or -1.
 * root receives the updating instruction. */
static int32_t in_place_slot(const lw_inst *i, int32_t k,
                             const lw_inst **root) {
  *root = i;
  if (i->opcode == LW_OP_DYNAMIC_UPDATE_SLICE) return k == 0 ? 0 : -1;
  if (i->opcode == LW_OP_SCATTER) return k < (i->n_operands - 1) / 2 ? k : -1;
  if (i->opcode != LW_OP_FUSION) return -1;
  const lw_comp *body = lw_fusion_body(i);
  const lw_inst *out = body->root;
  if (out->opcode == LW_OP_TUPLE)
    out = k < out->n_operands ? lw_inst_operand(out, k) : NULL;
  else if (k > 0)
    out = NULL;
  if (!out) return -1;
  out = through_bitcasts(out);
  const lw_inst *inner;
  int32_t slot =
      out->opcode == LW_OP_FUSION ? -1 : in_place_slot(out, 0, &inner);
  if (slot < 0) return -1;
  *root = out;
  const lw_inst *in = through_bitcasts(lw_inst_operand(out, slot));
  return in->opcode == LW_OP_PARAMETER ? (int32_t)lw_inst_param_number(in) : -1;
}

static int32_t output_count(const lw_inst *i) {
  if (i->opcode == LW_OP_SCATTER) return (i->n_operands - 1) / 2;
  if (i->opcode == LW_OP_FUSION &&
      lw_fusion_body(i)->root->opcode == LW_OP_TUPLE)
    return lw_fusion_body(i)->root->n_operands;
  return 1;
}

static bool counts_as_moving(const lw_inst *i) {
  return i->opcode != LW_OP_FUSION && i->opcode != LW_OP_BITCAST &&
         i->opcode != LW_OP_PARAMETER && !lw_inst_is_elementwise(i);
}

/* How many moving (not elementwise) instructions a value is made of; the last
 * one in *which. */
static int32_t moving_ops(const lw_inst *i, const lw_inst **which) {
  int32_t n = 0;
  if (i->opcode != LW_OP_FUSION) {
    if (!counts_as_moving(i)) return 0;
    *which = i;
    return 1;
  }
  for (const lw_inst *j = lw_fusion_body(i)->first; j; j = j->next)
    if (counts_as_moving(j)) {
      *which = j;
      n++;
    }
  return n;
}

static int32_t updates_in(const lw_inst *i, const lw_inst **which) {
  int32_t n = 0;
  if (i->opcode == LW_OP_DYNAMIC_UPDATE_SLICE) {
    *which = i;
    return 1;
  }
  if (i->opcode != LW_OP_FUSION) return 0;
  for (const lw_inst *j = lw_fusion_body(i)->first; j; j = j->next)
    if (j->opcode == LW_OP_DYNAMIC_UPDATE_SLICE) {
      *which = j;
      n++;
    }
  return n;
}

/* A moving instruction other than root is reached from the parameter. */
static bool moved_use(const lw_inst *from, const lw_inst *root) {
  LW_VEC(const lw_inst *) stack = {0};
  lw_map seen = {0};
  bool found = false;
  lw_vec_push(&stack, from);
  while (stack.len && !found) {
    const lw_inst *i = lw_vec_pop(&stack);
    for (const lw_use *u = i->uses; u && !found; u = u->next) {
      uint64_t *s = lw_map_put(&seen, (uintptr_t)u->user);
      if (u->user == root || *s) continue;
      *s = 1;
      found = counts_as_moving(u->user);
      lw_vec_push(&stack, u->user);
    }
  }
  lw_vec_free(&stack);
  lw_map_free(&seen);
  return found;
}

static bool constant_value(const lw_inst *i, int64_t *v) {
  if (i->opcode != LW_OP_CONSTANT || !lw_prim_is_int(i->shape->type))
    return false;
  *v = lw_literal_get_int(lw_inst_literal(i), 0);
  return true;
}

/* The index operand of the update as seen outside the consumer. */
static const lw_inst *outside(const lw_inst *consumer, const lw_inst *i) {
  if (consumer->opcode == LW_OP_FUSION && i->opcode == LW_OP_PARAMETER)
    return lw_inst_operand(consumer, (int32_t)lw_inst_param_number(i));
  return i;
}

static bool same_start(const lw_inst *consumer, const lw_inst *a,
                       const lw_inst *b) {
  int64_t x, y;
  b = outside(consumer, b);
  return a == b || (constant_value(a, &x) && constant_value(b, &y) && x == y);
}

static bool slice_matches(const lw_inst *s, const lw_inst *update) {
  int32_t n;
  const int64_t *v = lw_inst_i64s(s, LW_ATTR_SLICE, &n);
  for (int32_t d = 0; d < s->shape->rank; d++) {
    int64_t at;
    if (3 * d + 2 >= n || v[3 * d + 2] != 1) return false;
    if (2 + d >= update->n_operands ||
        !constant_value(lw_inst_operand(update, 2 + d), &at) || at != v[3 * d])
      return false;
  }
  return true;
}

bool lw_reads_the_window(const lw_inst *producer_op, const lw_inst *consumer,
                         const lw_inst *update) {
  const lw_shape *window = lw_inst_operand(update, 1)->shape;
  if (!lw_shape_same_dims(producer_op->shape, window)) return false;
  if (producer_op->opcode == LW_OP_SLICE)
    return slice_matches(producer_op, update);
  if (producer_op->opcode != LW_OP_DYNAMIC_SLICE) return false;
  if (producer_op->n_operands - 1 != update->n_operands - 2) return false;
  for (int32_t d = 0; d < producer_op->n_operands - 1; d++)
    if (!same_start(consumer, lw_inst_operand(producer_op, 1 + d),
                    lw_inst_operand(update, 2 + d)))
      return false;
  return true;
}

static bool reads(const lw_inst *producer, const lw_inst *value) {
  if (producer == value) return true;
  for (int32_t k = 0; k < producer->n_operands; k++)
    if (lw_inst_operand(producer, k) == value) return true;
  return false;
}

static bool pair_allows(const lw_inst *producer, const lw_inst *consumer,
                        int32_t slot, const lw_inst *root) {
  const lw_inst *buffer = lw_inst_operand(consumer, slot);
  for (int32_t k = 0; k < consumer->n_operands; k++)
    if (k != slot && lw_inst_operand(consumer, k) == buffer) return false;
  if (!reads(producer, buffer)) return true;
  const lw_inst *param = consumer->opcode == LW_OP_FUSION
                             ? lw_fusion_body(consumer)->params.data[slot]
                             : NULL;
  const lw_inst *op = NULL, *update = NULL;
  int32_t n = moving_ops(producer, &op);
  if (n > 1) return false;
  if (n == 0) return !param || !moved_use(param, root);
  int32_t updates = updates_in(consumer, &update);
  if (updates == 0) return true;
  if (updates > 1 || !lw_reads_the_window(op, consumer, update)) return false;
  return !param || !moved_use(param, root);
}

lw_verdict lw_gate_in_place(const lw_inst *producer, const lw_inst *consumer) {
  for (int32_t k = 0, n = output_count(consumer); k < n; k++) {
    const lw_inst *root;
    int32_t slot = in_place_slot(consumer, k, &root);
    if (slot >= 0 && slot < consumer->n_operands &&
        !pair_allows(producer, consumer, slot, root))
      return lw_verdict_no(LW_REASON_IN_PLACE_CONFLICT);
  }
  return lw_verdict_yes(LW_REASON_FUSIBLE);
}
