/* The fusion x-ray: what became of every edge of a module, as one model that
 * the page, the SVG and the terminal summary are made from.
 *
 * Two roads lead to it. Lawson's own: the module is compiled and the decision
 * records are the verdicts (RECORDED). A pair of modules that any compiler
 * dumped: which edges ended inside one fusion is read off the pair, and the
 * reasons are those of our rules where they agree with what happened
 * (INFERRED).
 *
 * The model's form is docs/xray.md.
 */
#ifndef LW_LAB_XRAY_H
#define LW_LAB_XRAY_H

#include "base/buf.h"
#include "driver/driver.h"

typedef struct lw_xray lw_xray;

/* A reason's page ("code" of trace/reasons.def -> Markdown), or NULL. */
typedef const char *(*lw_xray_page_of)(const char *reason_code);

/* m and what o points to must outlive the result. */
LW_MUST_USE lw_status lw_xray_lawson(const lw_module *m,
                                     const lw_compile_options *o,
                                     lw_xray **out);

typedef struct {
  const char *compiler; /* "xla", "unknown": for the head line */
  const char *target;   /* a target file or name; NULL: "cpu" */
  /* A device that we have no target file of (a TPU): then target only says
   * which rules are asked, and nothing is said about caches and times. */
  const char *foreign_target;
  /* XLA:GPU's own record (decisions.tsv) as text, or NULL: then INFERRED. */
  const char *decisions;
} lw_xray_pair;

/* before: as close before fusion as there is; after: the optimised module.
 * Both must outlive the result. INVALID_ARGUMENT: nothing in common. */
LW_MUST_USE lw_status lw_xray_of_pair(const lw_module *before,
                                      const lw_module *after,
                                      const lw_xray_pair *p, lw_xray **out);
void lw_xray_free(lw_xray *x);

/* Runs Graphviz; the page and the SVG need it. UNAVAILABLE: not installed, the
 * message names the package. */
LW_MUST_USE lw_status lw_xray_layout(lw_xray *x);
/* A lesson's text stands above the graph (plain text; paragraphs end with an
 * empty line); NULL: none. */
void lw_xray_lesson(lw_xray *x, const char *title, const char *text);

/* One self-contained page. */
void lw_xray_html(lw_buf *b, const lw_xray *x, lw_xray_page_of pages);
/* The model alone, one JSON object. */
void lw_xray_json(lw_buf *b, const lw_xray *x, lw_xray_page_of pages);
/* The graph after fusion alone. */
void lw_xray_svg(lw_buf *b, const lw_xray *x);
/* A few lines for a terminal. */
void lw_xray_summary(lw_buf *b, const lw_xray *x);

/* Numbers that lists of pages show. */
typedef struct {
  const char *module, *compiler, *target, *label; /* "RECORDED", "INFERRED" */
  int64_t kernels_before, kernels_after;
  int64_t kept_bytes; /* between kernels before fusing, no longer after */
  int64_t left_bytes; /* still between kernels */
  int32_t walls;
} lw_xray_head;
lw_xray_head lw_xray_head_of(const lw_xray *x);

#endif
