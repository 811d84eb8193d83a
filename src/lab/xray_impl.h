/* Shared by the files of the x-ray.
 *
 * Values are the instructions before fusing; nodes are those after it, looked
 * at through the fusions (a body's instructions, single instructions; no
 * fusion, no parameter of a body); boxes are what holds nodes: a fusion, or one
 * instruction alone. A value that was duplicated has several nodes; the first
 * is its primary one.
 */
#ifndef LW_LAB_XRAY_IMPL_H
#define LW_LAB_XRAY_IMPL_H

#include <cjson/cJSON.h>

#include "driver/explain.h"
#include "fusion/report.h"
#include "lab/xray.h"

typedef struct {
  const lw_inst *inst;
  int32_t source; /* in the list of sources, or -1 */
  int32_t line;   /* of the text, from 0, or -1 */
} xray_value;

typedef struct {
  const lw_inst *inst;
  int32_t box;
  int32_t value;      /* or -1: no value of that kind before fusing */
  int32_t left, wall; /* in the explanation's lists, or -1 */
  bool primary;
} xray_node;

typedef struct {
  int32_t from, to; /* nodes */
  int32_t decision; /* in the explanation's edges, or -1 */
  int64_t bytes;
  bool inside; /* one box */
} xray_edge;

typedef struct {
  const lw_inst *inst;            /* a fusion, or its one node's */
  int32_t first, n;               /* nodes */
  int32_t comp;                   /* in the list of computations */
  int32_t wall;                   /* it holds rows of, or -1 */
  int32_t line;                   /* of the text after */
  int64_t read, written, scratch; /* bytes */
  bool runs;
  bool given; /* a fusion that was there before */
} xray_box;

typedef struct {
  const char *text;
  int32_t value, box; /* or -1 */
} xray_line;

typedef struct {
  double x, y, w, h; /* centre, px */
} xray_place;

typedef struct {
  int32_t from, to;
  int32_t n;  /* control points */
  double *xy; /* 2n numbers, px */
} xray_curve;

/* One drawing; places by what it draws (boxes, nodes, values). */
typedef struct {
  double w, h;
  int32_t n;
  xray_place *places; /* w == 0: not drawn */
  LW_VEC(xray_curve) curves;
} xray_layout;

/* How far our rules speak for a verdict read off a pair. */
typedef enum {
  XRAY_RECORDED,
  XRAY_AGREES,  /* our rules say the same: their reason */
  XRAY_DIFFERS, /* they would have said the opposite */
  XRAY_SILENT   /* they were not asked */
} xray_support;

struct lw_xray {
  lw_arena *arena;
  const char *compiler, *target, *strategy;
  const char *lesson_title, *lesson;
  bool recorded;
  bool foreign; /* no target file: no caches, no times */
  /* Owned compiles; the modules below may be theirs. */
  lw_compiled *fused, *unfused, *planned, *rules;
  lw_explain rules_explain;
  const lw_module *before, *after;
  const lw_target *machine;
  const lw_plan *plan; /* NULL: none */
  const char *no_plan; /* why */
  lw_explain e;
  xray_support *support; /* one an edge of e; NULL: all RECORDED */
  lw_map origin;         /* inst after -> its value + 1 (pairs only) */
  lw_fusion_report report_before, report_after;
  LW_VEC(lw_explain_source) sources;
  LW_VEC(xray_value) values;
  LW_VEC(xray_node) nodes;
  LW_VEC(xray_edge) edges;
  LW_VEC(xray_box) boxes;
  LW_VEC(const lw_comp *) comps;
  LW_VEC(xray_line) text_before, text_after;
  lw_map value_at; /* hash of a name -> value + 1 */
  lw_map value_of; /* inst before -> value + 1 */
  lw_map node_of;  /* inst after -> node + 1 */
  lw_map box_of;   /* inst after -> box + 1 */
  lw_map caller;   /* body -> its fusion */
  bool laid_out;
  xray_layout by_box, by_node, by_value;
};

enum { XRAY_MOST_OPEN = 400 }; /* nodes drawn with all boxes open */

uint64_t xray_hash(const char *name);
int32_t xray_value_named(const lw_xray *x, const char *name); /* or -1 */
const char *xray_keep(lw_xray *x, const char *s);
const char *xray_shape(lw_xray *x, const lw_shape *s);

/* xray_model.c: values of before (call first); the rest. */
void xray_list_values(lw_xray *x);
void xray_build(lw_xray *x);
/* xray_match.c: fills origin of a pair; the number of matched nodes. */
int32_t xray_match(lw_xray *x);
/* xray_verdicts.c: e.edges and support of a pair, or from XLA's record. */
void xray_infer(lw_xray *x);
/* Lawson's record of a GPU's queue: values for the names of fusions. */
void xray_follow_names(lw_xray *x);
void xray_read_decisions(lw_xray *x, const char *text);
/* xray_text.c */
void xray_list_lines(lw_xray *x);

bool xray_value_is_drawn(const lw_inst *i);

#endif
