/* Decision records. */
#include "trace/trace.h"

#include <string.h>

const lw_reason_info lw_reason_table[LW_REASON_COUNT] = {
#define R(e, code, gate, line) {code, LW_GATE_##gate, line},
#include "trace/reasons.def"
#undef R
};

lw_reason lw_reason_from_code(const char *code) {
  for (int r = 0; r < LW_REASON_COUNT; r++)
    if (!strcmp(lw_reason_table[r].code, code)) return (lw_reason)r;
  return LW_REASON_COUNT;
}

const char *lw_gate_name(lw_gate gate) {
  return gate == LW_GATE_FUSIBILITY ? "fusibility" : "profitability";
}

struct lw_trace {
  lw_arena *arena;
  LW_VEC(lw_decision) list;
  lw_intern *names;
  lw_map was; /* interned name -> interned name */
};

lw_trace *lw_trace_new(void) {
  lw_arena *a = lw_arena_new();
  lw_trace *t = LW_NEW(a, lw_trace);
  t->arena = a;
  t->names = lw_intern_new(a);
  return t;
}

void lw_trace_free(lw_trace *t) {
  if (!t) return;
  lw_vec_free(&t->list);
  lw_map_free(&t->was);
  lw_intern_free(t->names);
  lw_arena_free(t->arena);
}

static const char *keep(lw_trace *t, const char *s) {
  return s ? lw_intern_str(t->names, s, strlen(s)) : "";
}

/* ---- names ---- */

void lw_trace_rename(lw_trace *t, const char *now, const char *was) {
  if (!t || !strcmp(now, was)) return;
  lw_map_set_ptr(&t->was, keep(t, now), keep(t, lw_trace_origin(t, was)));
}

const char *lw_trace_origin(const lw_trace *t, const char *name) {
  const char *was =
      t ? lw_map_ptr(&t->was, lw_intern_str(t->names, name, strlen(name)))
        : NULL;
  return was ? was : name;
}

/* ---- records ---- */

void lw_trace_add(lw_trace *t, const lw_decision *d) {
  if (!t) return;
  LW_ASSERT(d->reason < LW_REASON_COUNT);
  LW_ASSERT(lw_reason_table[d->reason].gate == d->gate);
  lw_decision copy = *d;
  copy.seq = (int64_t)t->list.len;
  copy.pass = keep(t, d->pass);
  copy.computation = keep(t, d->computation);
  copy.producer = keep(t, d->producer);
  copy.consumer = keep(t, d->consumer);
  copy.text = keep(t, d->text);
  copy.value = keep(t, d->value ? d->value : lw_trace_origin(t, copy.producer));
  copy.reader =
      keep(t, d->reader ? d->reader : lw_trace_origin(t, copy.consumer));
  copy.flip = d->flip ? keep(t, d->flip) : "nothing: rule";
  lw_vec_push(&t->list, copy);
}

size_t lw_trace_count(const lw_trace *t) { return t ? t->list.len : 0; }

const lw_decision *lw_trace_at(const lw_trace *t, size_t i) {
  return &t->list.data[i];
}

const lw_decision *lw_trace_find(const lw_trace *t, const char *producer,
                                 const char *consumer) {
  for (size_t i = lw_trace_count(t); i-- > 0;) {
    const lw_decision *d = &t->list.data[i];
    if (!strcmp(d->producer, producer) && !strcmp(d->consumer, consumer))
      return d;
  }
  return NULL;
}

static int width_of(const lw_trace *t, bool producer) {
  size_t w = 8;
  for (size_t i = 0; i < t->list.len; i++) {
    const lw_decision *d = &t->list.data[i];
    size_t n = strlen(producer ? d->producer : d->consumer);
    if (n > w) w = n;
  }
  return w > 40 ? 40 : (int)w;
}

void lw_trace_print(lw_buf *b, const lw_trace *t) {
  if (!t) return;
  int wp = width_of(t, true), wc = width_of(t, false);
  lw_buf_printf(
      b, "%6s %-20s %-*s %-*s %-13s %-3s %-20s %12s %12s %12s %12s %s\n", "#",
      "pass", wp, "producer", wc, "consumer", "gate", "", "reason",
      "unfused_ns", "fused_ns", "saved_ns", "bytes", "flip");
  for (size_t i = 0; i < t->list.len; i++) {
    const lw_decision *d = &t->list.data[i];
    lw_buf_printf(b,
                  "%6lld %-20s %-*s %-*s %-13s %-3s %-20s %12.1f %12.1f %12.1f "
                  "%12lld %s\n",
                  (long long)d->seq, d->pass, wp, d->producer, wc, d->consumer,
                  lw_gate_name(d->gate), d->yes ? "yes" : "no",
                  lw_reason_table[d->reason].code, d->unfused_ns, d->fused_ns,
                  d->saved_ns, (long long)d->bytes, d->flip);
  }
}
