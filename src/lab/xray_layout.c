/* Where things are drawn: Graphviz's dot, run as a process on three graphs at
 * once (boxes closed, boxes open, the module before), its plain output read
 * back. Names never reach dot: nodes are numbers of a fixed size.
 *
 * Boxes open and the module before are drawn up to XRAY_MOST_OPEN nodes; larger
 * modules are shown as boxes, and each box opens in a list.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fusion/fuse.h"
#include "lab/process.h"
#include "lab/xray_impl.h"

static const double PX = 72; /* an inch */

bool xray_value_is_drawn(const lw_inst *i) {
  return i->opcode != LW_OP_GET_TUPLE_ELEMENT;
}

/* Width of a label of n characters of our 11 px monospace, padded. */
static double width_of(size_t n) {
  if (n > 34) n = 34;
  return 18 + 6.7 * (double)(n < 7 ? 7 : n);
}

static void add_node(lw_buf *b, size_t k, double w, double h) {
  lw_buf_printf(b, "%zu [width=%.3f,height=%.3f];\n", k, w / PX, h / PX);
}

/* dot's own search for short edges and few crossings takes minutes on
 * thousands of nodes: there it is cut short. */
static void start(lw_buf *b, double ranksep, size_t n) {
  bool large = n > 300;
  lw_buf_printf(b,
                "digraph {\ngraph [nodesep=0.22,ranksep=%.2f%s];\n"
                "node [shape=box,fixedsize=true,label=\"\"];\n"
                "edge [dir=none];\n",
                ranksep, large ? ",nslimit=0.2,nslimit1=0.5,mclimit=0.3" : "");
}

/* ---- the three graphs ---- */

static size_t longer(size_t a, size_t b) { return a > b ? a : b; }

static size_t label_of(const lw_xray *x, const lw_inst *i) {
  return longer(strlen(i->name), strlen(xray_shape((lw_xray *)x, i->shape)));
}

static void box_nodes(lw_buf *b, const lw_xray *x, int32_t comp) {
  for (size_t k = 0; k < x->boxes.len; k++) {
    const xray_box *box = &x->boxes.data[k];
    if (box->comp != comp) continue;
    bool small = !box->runs;
    add_node(b, k, width_of(label_of(x, box->inst)), small ? 26 : 46);
  }
}

static void draw_boxes(lw_buf *b, const lw_xray *x) {
  start(b, 0.55, x->boxes.len);
  for (size_t c = 0; c < x->comps.len; c++) {
    if (x->comps.len > 1)
      lw_buf_printf(b, "subgraph cluster_%zu {margin=14;\n", c);
    box_nodes(b, x, (int32_t)c);
    if (x->comps.len > 1) lw_buf_str(b, "}\n");
  }
  lw_map seen = {0};
  for (size_t k = 0; k < x->edges.len; k++) {
    const xray_edge *e = &x->edges.data[k];
    uint32_t from = (uint32_t)x->nodes.data[e->from].box,
             to = (uint32_t)x->nodes.data[e->to].box;
    uint64_t *had = lw_map_put(&seen, ((uint64_t)from << 32) | to);
    if (from != to && !*had) lw_buf_printf(b, "%u -> %u;\n", from, to);
    *had = 1;
  }
  lw_map_free(&seen);
  lw_buf_str(b, "}\n");
}

static void draw_nodes(lw_buf *b, const lw_xray *x) {
  start(b, 0.35, x->nodes.len);
  for (size_t k = 0; k < x->boxes.len; k++) {
    const xray_box *box = &x->boxes.data[k];
    bool cluster = lw_inst_is_fusion(box->inst);
    if (cluster) lw_buf_printf(b, "subgraph cluster_%zu {margin=14;\n", k);
    for (int32_t j = box->first; j < box->first + box->n; j++)
      add_node(b, (size_t)j, width_of(label_of(x, x->nodes.data[j].inst)), 32);
    if (cluster) lw_buf_str(b, "}\n");
  }
  for (size_t k = 0; k < x->edges.len; k++)
    lw_buf_printf(b, "%d -> %d;\n", x->edges.data[k].from, x->edges.data[k].to);
  lw_buf_str(b, "}\n");
}

static void draw_values(lw_buf *b, const lw_xray *x) {
  start(b, 0.35, x->values.len);
  for (size_t k = 0; k < x->values.len; k++)
    if (xray_value_is_drawn(x->values.data[k].inst))
      add_node(b, k, width_of(label_of(x, x->values.data[k].inst)), 32);
  lw_map seen = {0};
  for (size_t k = 0; k < x->values.len; k++) {
    const lw_inst *i = x->values.data[k].inst;
    if (!xray_value_is_drawn(i)) continue;
    for (int32_t s = 0; s < i->n_operands; s++) {
      const lw_inst *o = lw_inst_operand(i, s);
      while (!xray_value_is_drawn(o) && o->n_operands)
        o = lw_inst_operand(o, 0);
      const uint64_t *v = lw_map_get(&x->value_of, (uintptr_t)o);
      if (!v) continue;
      uint64_t *had = lw_map_put(&seen, ((*v - 1) << 32) | k);
      if (!*had)
        lw_buf_printf(b, "%llu -> %zu;\n", (unsigned long long)*v - 1, k);
      *had = 1;
    }
  }
  lw_map_free(&seen);
  lw_buf_str(b, "}\n");
}

/* ---- plain output ---- */

static const char *number(const char *p, double *v) {
  char *end;
  *v = strtod(p, &end);
  return end;
}

static void read_node(xray_layout *l, const char *p) {
  double id, x, y, w, h;
  p = number(p, &id);
  p = number(p, &x);
  p = number(p, &y);
  p = number(p, &w);
  (void)number(p, &h);
  if (id < 0 || id >= l->n) return;
  l->places[(int32_t)id] = (xray_place){x * PX, l->h - y * PX, w * PX, h * PX};
}

static void read_edge(lw_arena *a, xray_layout *l, const char *p) {
  double from, to, n;
  p = number(p, &from);
  p = number(p, &to);
  p = number(p, &n);
  if (n < 2 || n > 1e5) return;
  xray_curve c = {(int32_t)from, (int32_t)to, (int32_t)n,
                  LW_NEW_ARRAY(a, double, 2 * (size_t)n)};
  for (int32_t k = 0; k < c.n; k++) {
    double x, y;
    p = number(p, &x);
    p = number(p, &y);
    c.xy[2 * k] = x * PX;
    c.xy[2 * k + 1] = l->h - y * PX;
  }
  lw_vec_push(&l->curves, c);
}

/* Up to its "stop"; the text behind it. */
static const char *read_graph(lw_arena *a, xray_layout *l, const char *p,
                              size_t n) {
  l->n = (int32_t)n;
  l->places = LW_NEW_ARRAY(a, xray_place, n + 1);
  while (*p) {
    size_t len = strcspn(p, "\n");
    double scale;
    if (!strncmp(p, "graph ", 6)) {
      const char *q = number(p + 6, &scale);
      q = number(q, &l->w);
      (void)number(q, &l->h);
      l->w *= PX, l->h *= PX;
    } else if (!strncmp(p, "node ", 5)) {
      read_node(l, p + 5);
    } else if (!strncmp(p, "edge ", 5)) {
      read_edge(a, l, p + 5);
    }
    bool stop = !strncmp(p, "stop", 4);
    p += len + (p[len] == '\n');
    if (stop) break;
  }
  return p;
}

static lw_status run_dot(const lw_buf *graphs, lw_process_result *r) {
  const char *const argv[] = {"dot", "-Tplain", NULL};
  lw_process p = {.argv = argv,
                  .input = graphs->data,
                  .input_len = graphs->len,
                  .timeout_ms = 120000};
  lw_status st = lw_process_run(&p, r);
  if (lw_status_code(st) == LW_NOT_FOUND) {
    lw_status_free(st);
    return lw_error(LW_UNAVAILABLE,
                    "dot, which lays graphs out, is not installed: "
                    "apt-get install graphviz");
  }
  LW_TRY(st);
  if (r->timed_out || r->exit_code)
    return lw_error(LW_INTERNAL, "dot failed on this graph: %s",
                    lw_buf_cstr(&r->err));
  return NULL;
}

lw_status lw_xray_layout(lw_xray *x) {
  lw_buf b = {0};
  lw_process_result r = {0};
  bool open = x->nodes.len <= XRAY_MOST_OPEN,
       values = x->values.len <= XRAY_MOST_OPEN;
  draw_boxes(&b, x);
  if (open) draw_nodes(&b, x);
  if (values) draw_values(&b, x);
  lw_status st = run_dot(&b, &r);
  if (!st) {
    const char *p = lw_buf_cstr(&r.out);
    p = read_graph(x->arena, &x->by_box, p, x->boxes.len);
    if (open) p = read_graph(x->arena, &x->by_node, p, x->nodes.len);
    if (values) (void)read_graph(x->arena, &x->by_value, p, x->values.len);
    x->laid_out = true;
  }
  lw_process_result_free(&r);
  lw_buf_free(&b);
  return st;
}
