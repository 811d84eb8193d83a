/* Values, nodes, boxes and edges of an x-ray; see xray_impl.h for the words. */
#include <string.h>

#include "fusion/fuse.h"
#include "lab/xray_impl.h"

enum { DEEPEST = 256 };

typedef LW_VEC(int32_t) int_list;

/* ---- values: the module before ---- */

static int32_t source_of(lw_xray *x, lw_map *seen, const lw_inst *i) {
  lw_explain_source s = lw_source_of(x->before, i->metadata);
  if (!s.file[0] && !s.op_name[0]) return -1;
  uint64_t h = lw_hash_mix(xray_hash(s.file), (uint64_t)s.line);
  uint64_t *slot = lw_map_put(seen, lw_hash_mix(h, xray_hash(s.op_name)));
  if (!*slot) {
    lw_vec_push(&x->sources, s);
    *slot = x->sources.len;
  }
  return (int32_t)*slot - 1;
}

void xray_list_values(lw_xray *x) {
  int32_t n;
  lw_map seen = {0};
  lw_comp **comps = lw_comps_to_fuse(x->before, x->arena, &n);
  for (int32_t k = n - 1; k >= 0; k--)
    for (const lw_inst *i = comps[k]->first; i; i = i->next) {
      lw_vec_push(&x->values, ((xray_value){i, source_of(x, &seen, i), -1}));
      *lw_map_put(&x->value_of, (uintptr_t)i) = x->values.len;
      uint64_t *slot = lw_map_put(&x->value_at, xray_hash(i->name));
      if (!*slot) *slot = x->values.len;
    }
  lw_map_free(&seen);
}

/* ---- boxes and nodes: the module after ---- */

static int32_t value_of(const lw_xray *x, const lw_inst *i) {
  const uint64_t *v = lw_map_get(&x->origin, (uintptr_t)i);
  if (v) return (int32_t)*v - 1;
  if (x->origin.len) return -1;
  const lw_trace *t = lw_compiled_trace(x->fused);
  return xray_value_named(x, lw_trace_origin(t, i->name));
}

static void add_node(lw_xray *x, const lw_inst *i, int32_t value) {
  int32_t box = (int32_t)x->boxes.len - 1;
  lw_vec_push(&x->nodes, ((xray_node){i, box, value, -1, -1, false}));
  *lw_map_put(&x->node_of, (uintptr_t)i) = x->nodes.len;
  x->boxes.data[box].n++;
}

static bool is_part(const lw_comp *body, const lw_inst *i) {
  bool outputs = i == body->root && i->opcode == LW_OP_TUPLE;
  return i->opcode != LW_OP_PARAMETER && !outputs;
}

static void add_body(lw_xray *x, const lw_inst *fusion) {
  const lw_comp *body = lw_fusion_body(fusion);
  lw_map_set_ptr(&x->caller, body, fusion);
  for (const lw_inst *i = body->first; i; i = i->next) {
    if (!is_part(body, i)) continue;
    int32_t v = value_of(x, i);
    if (v < 0 && i == body->root) v = value_of(x, fusion);
    add_node(x, i, v);
  }
}

/* An element of a fusion's results is the node inside. */
static bool is_element(const lw_inst *i) {
  return i->opcode == LW_OP_GET_TUPLE_ELEMENT &&
         lw_inst_is_fusion(lw_inst_operand(i, 0));
}

static void add_box(lw_xray *x, const lw_inst *i) {
  xray_box b = {.inst = i,
                .first = (int32_t)x->nodes.len,
                .comp = (int32_t)x->comps.len - 1,
                .wall = -1,
                .line = -1,
                .runs = !lw_runs_nothing(i)};
  lw_vec_push(&x->boxes, b);
  *lw_map_put(&x->box_of, (uintptr_t)i) = x->boxes.len;
  if (lw_inst_is_fusion(i)) {
    int32_t v = value_of(x, i);
    add_body(x, i);
    x->boxes.data[x->boxes.len - 1].given =
        v >= 0 && lw_inst_is_fusion(x->values.data[v].inst);
  } else
    add_node(x, i, value_of(x, i));
}

/* The entry first: it is what the reader knows. */
static void list_boxes(lw_xray *x) {
  int32_t n;
  lw_comp **comps = lw_comps_to_fuse(x->after, x->arena, &n);
  for (int32_t k = n - 1; k >= 0; k--) {
    lw_vec_push(&x->comps, comps[k]);
    for (const lw_inst *i = comps[k]->first; i; i = i->next)
      if (!is_element(i)) add_box(x, i);
  }
}

static void mark_primary(lw_xray *x) {
  uint8_t *seen = LW_NEW_ARRAY(x->arena, uint8_t, x->values.len + 1);
  for (size_t k = 0; k < x->nodes.len; k++) {
    xray_node *n = &x->nodes.data[k];
    n->primary = n->value < 0 || !seen[n->value];
    if (n->value >= 0) seen[n->value] = 1;
  }
}

/* ---- edges ---- */

/* The node that computes what i stands for: through a fusion's results, their
 * elements, and a body's parameters. A fusion in a body is a node. -1: none (a
 * fusion with no node). */
static int32_t node_behind(const lw_xray *x, const lw_inst *i, int64_t element,
                           int depth) {
  if (depth > DEEPEST) return -1;
  const uint64_t *n = lw_map_get(&x->node_of, (uintptr_t)i);
  if (n) return (int32_t)*n - 1;
  if (is_element(i))
    return node_behind(x, lw_inst_operand(i, 0),
                       lw_inst_i64(i, LW_ATTR_INDEX, 0), depth + 1);
  if (lw_inst_is_fusion(i)) {
    const lw_inst *root = lw_fusion_body(i)->root;
    if (root->opcode == LW_OP_TUPLE && root->n_operands > 0)
      root = lw_inst_operand(root, element >= 0 && element < root->n_operands
                                       ? (int32_t)element
                                       : 0);
    return node_behind(x, root, -1, depth + 1);
  }
  const lw_inst *caller = lw_map_ptr(&x->caller, i->parent);
  if (caller && i->opcode == LW_OP_PARAMETER) {
    int64_t k = lw_inst_param_number(i);
    return k >= 0 && k < caller->n_operands
               ? node_behind(x, lw_inst_operand(caller, (int32_t)k), -1,
                             depth + 1)
               : -1;
  }
  return -1;
}

static uint64_t edge_key(const char *value, const char *reader) {
  return lw_hash_mix(xray_hash(value), xray_hash(reader));
}

/* Two values have nodes in one box. */
static bool share_box(const lw_map *box_values, int32_t a, int32_t b) {
  const int_list *x = lw_map_ptr(box_values, (void *)(uintptr_t)(a + 1));
  const int_list *y = lw_map_ptr(box_values, (void *)(uintptr_t)(b + 1));
  for (size_t k = 0; x && y && k < x->len; k++)
    for (size_t j = 0; j < y->len; j++)
      if (x->data[k] == y->data[j]) return true;
  return false;
}

/* The boxes of each value. */
static lw_map find_boxes(const lw_xray *x) {
  lw_map m = {0};
  for (size_t k = 0; k < x->nodes.len; k++) {
    const xray_node *n = &x->nodes.data[k];
    if (n->value < 0) continue;
    const void *key = (void *)(uintptr_t)(n->value + 1);
    int_list *l = lw_map_ptr(&m, key);
    if (!l) {
      l = LW_NEW(x->arena, int_list);
      lw_map_set_ptr(&m, key, l);
    }
    lw_vec_push(l, n->box);
  }
  return m;
}

static void free_boxes(lw_map *m) {
  for (size_t k = 0; k < m->len; k++)
    lw_vec_free((int_list *)(uintptr_t)m->values[k]);
  lw_map_free(m);
}

static void index_on(const lw_xray *x, lw_map *m, const lw_map *boxes,
                     size_t k) {
  const lw_decision *d = x->e.edges.data[k].d;
  int32_t value = xray_value_named(x, d->value),
          reader = xray_value_named(x, d->reader);
  if (value < 0 || reader < 0) return;
  const lw_inst *v = x->values.data[value].inst;
  for (const lw_use *u = v->uses; u; u = u->next) {
    const uint64_t *to = lw_map_get(&x->value_of, (uintptr_t)u->user);
    if (!to || (int32_t)*to - 1 == reader ||
        !share_box(boxes, (int32_t)*to - 1, reader))
      continue;
    uint64_t key = lw_hash_mix(edge_key(d->value, u->user->name), d->yes);
    uint64_t *slot = lw_map_put(m, key);
    if (!*slot) *slot = k + 1;
  }
}

/* Decisions by value and reader; by value alone where all readers were refused
 * at once. A yes and a no on one edge (a duplicate was fused, another not) are
 * told apart by the key's last bit. A pass may name the root of what the reader
 * is in by then: its decision is also that of the readers in the same box. */
static lw_map index_decisions(const lw_xray *x) {
  lw_map m = {0}, boxes = find_boxes(x);
  for (size_t k = 0; k < x->e.edges.len; k++) {
    const lw_decision *d = x->e.edges.data[k].d;
    uint64_t key = edge_key(d->value, d->reader);
    *lw_map_put(&m, lw_hash_mix(key, d->yes)) = k + 1;
    if (!d->yes) *lw_map_put(&m, edge_key(d->value, "*")) = k + 1;
    if (!d->yes) *lw_map_put(&m, edge_key(d->producer, "*")) = k + 1;
  }
  for (size_t k = 0; k < x->e.edges.len; k++) index_on(x, &m, &boxes, k);
  free_boxes(&boxes);
  return m;
}

static int32_t decision_on(const lw_xray *x, const lw_map *m,
                           const xray_edge *e) {
  const xray_node *from = &x->nodes.data[e->from], *to = &x->nodes.data[e->to];
  if (from->value < 0) return -1;
  const char *value = x->values.data[from->value].inst->name;
  const char *reader =
      to->value < 0 ? "" : x->values.data[to->value].inst->name;
  uint64_t key = edge_key(value, reader);
  const uint64_t *k = lw_map_get(m, lw_hash_mix(key, e->inside));
  if (!k) k = lw_map_get(m, lw_hash_mix(key, !e->inside));
  if (!k && !e->inside) k = lw_map_get(m, edge_key(value, "*"));
  return k ? (int32_t)*k - 1 : -1;
}

static void add_edge(lw_xray *x, const lw_map *decisions, lw_map *seen,
                     int32_t from, int32_t to) {
  uint64_t *had =
      lw_map_put(seen, ((uint64_t)(uint32_t)from << 32) | (uint32_t)to);
  if (*had) return;
  *had = 1;
  const xray_node *f = &x->nodes.data[from], *t = &x->nodes.data[to];
  xray_edge e = {.from = from,
                 .to = to,
                 .bytes = lw_shape_bytes(f->inst->shape),
                 .inside = f->box == t->box};
  e.decision = decision_on(x, decisions, &e);
  lw_vec_push(&x->edges, e);
}

static void list_edges(lw_xray *x) {
  lw_map decisions = index_decisions(x), seen = {0};
  for (size_t k = 0; k < x->nodes.len; k++) {
    const lw_inst *i = x->nodes.data[k].inst;
    for (int32_t s = 0; s < i->n_operands; s++) {
      int32_t from = node_behind(x, lw_inst_operand(i, s), -1, 0);
      if (from >= 0 && from != (int32_t)k)
        add_edge(x, &decisions, &seen, from, (int32_t)k);
    }
  }
  lw_map_free(&decisions);
  lw_map_free(&seen);
}

/* ---- values left in memory, walls ---- */

/* name: of an instruction that runs or names a result in the module after. */
static void index_names(const lw_xray *x, lw_map *m) {
  for (size_t k = 0; k < x->comps.len; k++)
    for (const lw_inst *i = x->comps.data[k]->first; i; i = i->next)
      lw_map_set_ptr(m, (const void *)(uintptr_t)xray_hash(i->name), i);
}

static int32_t node_named(const lw_xray *x, const lw_map *names,
                          const char *name) {
  const lw_inst *i =
      lw_map_ptr(names, (const void *)(uintptr_t)xray_hash(name));
  return i ? node_behind(x, i, -1, 0) : -1;
}

static void mark_held(lw_xray *x, const lw_map *names, int32_t wall) {
  const lw_explain_wall *w = &x->e.walls.data[wall];
  const lw_inst *i =
      lw_map_ptr(names, (const void *)(uintptr_t)xray_hash(w->name));
  const uint64_t *b = i ? lw_map_get(&x->box_of, (uintptr_t)i) : NULL;
  if (!b) return;
  xray_box *box = &x->boxes.data[*b - 1];
  box->wall = wall;
  int32_t value = xray_value_named(x, w->value);
  for (int32_t k = box->first; k < box->first + box->n; k++)
    if ((value >= 0 && x->nodes.data[k].value == value) ||
        !strcmp(x->nodes.data[k].inst->name, w->value))
      x->nodes.data[k].wall = wall;
}

static void mark_left(lw_xray *x) {
  lw_map names = {0};
  index_names(x, &names);
  for (size_t k = 0; k < x->e.left.len; k++) {
    int32_t n = node_named(x, &names, x->e.left.data[k].name);
    if (n >= 0) x->nodes.data[n].left = (int32_t)k;
  }
  for (size_t k = 0; k < x->e.walls.len; k++) {
    const lw_explain_wall *w = &x->e.walls.data[k];
    if (!w->in_memory) {
      mark_held(x, &names, (int32_t)k);
      continue;
    }
    int32_t n = node_named(x, &names, w->name);
    if (n >= 0) x->nodes.data[n].wall = (int32_t)k;
  }
  lw_map_free(&names);
}

/* ---- traffic ---- */

static bool is_result(const lw_inst *i) {
  return i->opcode == LW_OP_TUPLE || i->opcode == LW_OP_WHILE ||
         i->opcode == LW_OP_CONDITIONAL || i->opcode == LW_OP_CALL;
}

static void mark_once(lw_map *seen, int64_t *sum, int32_t node, int32_t box,
                      int64_t bytes) {
  uint64_t *had =
      lw_map_put(seen, ((uint64_t)(uint32_t)node << 32) | (uint32_t)box);
  if (!*had) *sum += bytes;
  *had = 1;
}

/* A kernel reads each value once and writes each once, whoever reads it. */
static void count_traffic(lw_xray *x) {
  lw_map read = {0}, written = {0};
  for (size_t k = 0; k < x->edges.len; k++) {
    const xray_edge *e = &x->edges.data[k];
    int32_t from = x->nodes.data[e->from].box, to = x->nodes.data[e->to].box;
    if (e->inside) continue;
    if (x->boxes.data[to].runs)
      mark_once(&read, &x->boxes.data[to].read, e->from, to, e->bytes);
    bool goes = x->boxes.data[to].runs || is_result(x->boxes.data[to].inst);
    if (x->boxes.data[from].runs && goes)
      mark_once(&written, &x->boxes.data[from].written, e->from, from,
                e->bytes);
  }
  for (size_t k = 0; k < x->comps.len; k++) {
    const lw_inst *root = x->comps.data[k]->root;
    int32_t n = node_behind(x, root, -1, 0);
    if (n < 0 || lw_shape_is_tuple(x->nodes.data[n].inst->shape)) continue;
    int32_t from = x->nodes.data[n].box;
    if (x->boxes.data[from].runs)
      mark_once(&written, &x->boxes.data[from].written, n, from,
                lw_shape_bytes(x->nodes.data[n].inst->shape));
  }
  lw_map_free(&read);
  lw_map_free(&written);
}

void xray_build(lw_xray *x) {
  list_boxes(x);
  mark_primary(x);
  list_edges(x);
  mark_left(x);
  count_traffic(x);
}
