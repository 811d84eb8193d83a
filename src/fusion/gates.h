/* The two gates, and the record each question leaves.
 *
 * The order is fixed: fusibility first; profitability is only ever asked for an
 * edge that may be fused. lw_gates_ask is the one place that does both. */
#ifndef LW_FUSION_GATES_H
#define LW_FUSION_GATES_H

#include "passes/pass.h"
#include "target/cost.h"
#include "trace/override.h"
#include "trace/trace.h"

typedef struct {
  bool yes;
  lw_reason reason;
  double unfused_ns, fused_ns, saved_ns, threshold;
  int64_t bytes;    /* of the edge's value */
  const char *flip; /* NULL: nothing: rule */
} lw_verdict;

static inline lw_verdict lw_verdict_no(lw_reason r) {
  return (lw_verdict){.reason = r};
}
static inline lw_verdict lw_verdict_yes(lw_reason r) {
  return (lw_verdict){.yes = true, .reason = r};
}

/* A strategy: its two gates over its own state. slot: operand of consumer. */
typedef struct {
  const char *pass;
  lw_trace *trace;         /* NULL: nobody listens */
  lw_overrides *overrides; /* NULL: none */
  void *state;
  lw_verdict (*fusibility)(void *state, const lw_inst *consumer, int32_t slot);
  lw_verdict (*profitability)(void *state, const lw_inst *consumer,
                              int32_t slot);
} lw_gates;

/* Both gates in order; every answer is recorded. */
bool lw_gates_ask(const lw_gates *g, const lw_inst *consumer, int32_t slot);
/* The same without records (rules that ask ahead). */
bool lw_gates_peek(const lw_gates *g, const lw_inst *consumer, int32_t slot);
/* One record. */
void lw_gate_record(lw_trace *t, const char *pass, const lw_inst *producer,
                    const lw_inst *consumer, lw_verdict v);

/* ---- --force-edge and --forbid-edge ---- */

/* The entry on an edge, by today's names or by those before fusing. */
lw_override *lw_override_on(const lw_overrides *o, const lw_trace *t,
                            const lw_inst *producer, const lw_inst *consumer,
                            int32_t slot);
/* What the user makes of a verdict. A fusibility no is only noted; a
 * profitability verdict that he does not want turns, numbers kept, with the
 * reason forced or forbidden. Flips of profitability verdicts name the option
 * that turns them. The entry remembers what it was asked. */
lw_verdict lw_override_verdict(lw_override *e, lw_verdict v);
/* The flip of a profitability verdict: other (may be NULL) or the option. In
 * the arena. */
const char *lw_flip_edge(lw_arena *a, const char *other, bool yes,
                         const lw_inst *producer, const lw_inst *consumer);

/* In-place updates: the rule (reference: ShouldFuseInPlaceOp, XLA 0.10.2) that
 * keeps a consumer that updates an operand's buffer from reading that buffer
 * elsewhere in the same kernel. */
lw_verdict lw_gate_in_place(const lw_inst *producer, const lw_inst *consumer);
/* A slice or dynamic-slice of the producer's reads, in the buffer, exactly the
 * window that the consumer's dynamic-update-slice writes. */
bool lw_reads_the_window(const lw_inst *producer_op, const lw_inst *consumer,
                         const lw_inst *update);

#endif
