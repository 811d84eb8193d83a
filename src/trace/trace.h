/* Decision records: every question that a gate is asked leaves one.
 *
 * X-ray, explain, ablate and the tests read these records and nothing else.
 * The list is append-only and indexable; strings are copied into the trace's
 * arena, so records outlive the module they speak of.
 */
#ifndef LW_TRACE_TRACE_H
#define LW_TRACE_TRACE_H

#include "hlo/hlo.h"

typedef enum { LW_GATE_FUSIBILITY, LW_GATE_PROFITABILITY } lw_gate;

typedef enum {
#define R(e, code, gate, line) LW_REASON_##e,
#include "trace/reasons.def"
#undef R
  LW_REASON_COUNT
} lw_reason;

typedef struct {
  const char *code; /* also the page docs/reasons/CODE.md */
  lw_gate gate;
  const char *line;
} lw_reason_info;

extern const lw_reason_info lw_reason_table[LW_REASON_COUNT];
/* LW_REASON_COUNT when unknown. */
lw_reason lw_reason_from_code(const char *code);
const char *lw_gate_name(lw_gate gate);

typedef struct lw_decision {
  int64_t seq;      /* its index */
  const char *pass; /* who asked */
  const char *computation;
  const char *producer; /* instruction names */
  const char *consumer;
  /* What they were called before fusing: the producer's value, and the
   * instruction of the consumer that reads it. lw_trace_add fills both from
   * lw_trace_rename's table where they are NULL. */
  const char *value, *reader;
  lw_gate gate;
  bool yes;
  lw_reason reason;
  /* Profitability: kernel times of the two apart and as one, and what one
   * saves. 0 where the strategy asks no model. */
  double unfused_ns, fused_ns, saved_ns;
  int64_t bytes;    /* the edge's value */
  double threshold; /* the verdict is yes when saved_ns exceeds it */
  const char *flip; /* the smallest change that turns the verdict */
  /* The strategy's own words ("" when none): why it refused, or the name of
   * the fusion that it made. */
  const char *text;
} lw_decision;

typedef struct lw_trace lw_trace;

lw_trace *lw_trace_new(void);
void lw_trace_free(lw_trace *t);
/* Copies d (its strings too) and gives it the next seq. t NULL: nothing. A
 * flip of NULL becomes "nothing: rule". Refuses (LW_ASSERT) a gate that is not
 * the reason's. */
void lw_trace_add(lw_trace *t, const lw_decision *d);
size_t lw_trace_count(const lw_trace *t);
const lw_decision *lw_trace_at(const lw_trace *t, size_t i);
/* The last record on an edge (names without %), or NULL. */
const lw_decision *lw_trace_find(const lw_trace *t, const char *producer,
                                 const char *consumer);
/* Passes give fusions and the copies inside them new names: `now` computes what
 * `was` computed. origin follows them back to the first; an unknown name is
 * its own. */
void lw_trace_rename(lw_trace *t, const char *now, const char *was);
const char *lw_trace_origin(const lw_trace *t, const char *name);
/* One line a record, columns aligned, a head line. */
void lw_trace_print(lw_buf *b, const lw_trace *t);

#endif
