/* The model as JSON; docs/xray.md describes the form. */
#include <math.h>
#include <string.h>

#include "lab/xray_impl.h"
#include "target/cost.h"

static void str(cJSON *o, const char *key, const char *s) {
  cJSON_AddStringToObject(o, key, s ? s : "");
}

static void num(cJSON *o, const char *key, double v) {
  cJSON_AddNumberToObject(o, key, v);
}

/* Indices that are not there are left out. */
static void idx(cJSON *o, const char *key, int32_t v) {
  if (v >= 0) num(o, key, v);
}

static cJSON *add_object(cJSON *list) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddItemToArray(list, o);
  return o;
}

static void add_number(cJSON *list, double v) {
  cJSON_AddItemToArray(list, cJSON_CreateNumber(v));
}

/* ---- the head ---- */

static bool off_dram(const lw_xray *x, double bytes) {
  if (x->foreign) return false;
  if (!strcmp(x->machine->backend_name, "gpu"))
    return 2 * bytes > x->machine->gpu.l2_cache_bytes;
  return !strcmp(lw_level_name(lw_cost_level(x->machine, bytes)), "DRAM");
}

/* Values that are computed and read in one box only. *dram: of them, those
 * that are too large for the caches. */
static int64_t kept_inside(const lw_xray *x, int64_t *dram) {
  uint8_t *out = calloc(x->nodes.len + 1, 1), *in = calloc(x->nodes.len + 1, 1);
  int64_t sum = 0;
  *dram = 0;
  if (!out || !in) lw_oom(x->nodes.len);
  for (size_t k = 0; k < x->edges.len; k++)
    (x->edges.data[k].inside ? in : out)[x->edges.data[k].from] = 1;
  for (size_t k = 0; k < x->nodes.len; k++) {
    const xray_node *n = &x->nodes.data[k];
    if (!in[k] || out[k] || !n->primary || n->inst->opcode == LW_OP_CONSTANT)
      continue;
    int64_t bytes = lw_shape_bytes(n->inst->shape);
    sum += bytes;
    if (off_dram(x, (double)bytes)) *dram += bytes;
  }
  free(out);
  free(in);
  return sum;
}

static void json_head(cJSON *j, const lw_xray *x) {
  cJSON *h = cJSON_AddObjectToObject(j, "head");
  int64_t dram, kept = kept_inside(x, &dram);
  num(h, "kernels_before", (double)x->report_before.kernels);
  num(h, "kernels_after", (double)x->report_after.kernels);
  num(h, "instructions_before", (double)x->report_before.instructions);
  num(h, "instructions_after", (double)x->report_after.instructions);
  num(h, "bytes_before", (double)x->report_before.intermediate_bytes);
  num(h, "bytes_after", (double)x->report_after.intermediate_bytes);
  num(h, "kept_bytes", (double)kept);
  if (!x->foreign) num(h, "off_dram_bytes", (double)dram);
  num(h, "walls", (double)x->e.walls.len);
}

/* ---- the graph ---- */

static void json_values(cJSON *j, const lw_xray *x) {
  cJSON *list = cJSON_AddArrayToObject(j, "values");
  for (size_t k = 0; k < x->values.len; k++) {
    const xray_value *v = &x->values.data[k];
    cJSON *o = add_object(list);
    str(o, "name", v->inst->name);
    str(o, "opcode", lw_opcode_name(v->inst->opcode));
    str(o, "shape", xray_shape((lw_xray *)x, v->inst->shape));
    num(o, "bytes", (double)lw_shape_bytes(v->inst->shape));
    idx(o, "source", v->source);
    idx(o, "line", v->line);
    cJSON *operands = cJSON_AddArrayToObject(o, "operands");
    for (int32_t s = 0; s < v->inst->n_operands; s++) {
      const uint64_t *at =
          lw_map_get(&x->value_of, (uintptr_t)lw_inst_operand(v->inst, s));
      if (at) add_number(operands, (double)*at - 1);
    }
  }
}

static void json_nodes(cJSON *j, const lw_xray *x) {
  cJSON *list = cJSON_AddArrayToObject(j, "nodes");
  for (size_t k = 0; k < x->nodes.len; k++) {
    const xray_node *n = &x->nodes.data[k];
    cJSON *o = add_object(list);
    const lw_inst *i = n->value >= 0 ? x->values.data[n->value].inst : n->inst;
    str(o, "name", i->name);
    str(o, "opcode", lw_opcode_name(n->inst->opcode));
    str(o, "shape", xray_shape((lw_xray *)x, n->inst->shape));
    num(o, "bytes", (double)lw_shape_bytes(n->inst->shape));
    num(o, "box", n->box);
    idx(o, "value", n->value);
    idx(o, "left", n->left);
    idx(o, "wall", n->wall);
    if (!n->primary) cJSON_AddTrueToObject(o, "copy");
    if (!lw_runs_nothing(n->inst)) cJSON_AddTrueToObject(o, "runs");
  }
}

static void json_boxes(cJSON *j, const lw_xray *x) {
  cJSON *list = cJSON_AddArrayToObject(j, "boxes");
  for (size_t k = 0; k < x->boxes.len; k++) {
    const xray_box *b = &x->boxes.data[k];
    cJSON *o = add_object(list);
    str(o, "name", b->inst->name);
    str(o, "opcode", lw_opcode_name(b->inst->opcode));
    str(o, "shape", xray_shape((lw_xray *)x, b->inst->shape));
    num(o, "first", b->first);
    num(o, "count", b->n);
    num(o, "computation", b->comp);
    idx(o, "wall", b->wall);
    idx(o, "line", b->line);
    if (b->given) cJSON_AddTrueToObject(o, "given");
    if (b->runs) {
      cJSON_AddTrueToObject(o, "runs");
      num(o, "read", (double)b->read);
      num(o, "written", (double)b->written);
    }
  }
  list = cJSON_AddArrayToObject(j, "computations");
  for (size_t k = 0; k < x->comps.len; k++)
    cJSON_AddItemToArray(list, cJSON_CreateString(x->comps.data[k]->name));
}

static void json_edges(cJSON *j, const lw_xray *x) {
  cJSON *list = cJSON_AddArrayToObject(j, "edges");
  for (size_t k = 0; k < x->edges.len; k++) {
    const xray_edge *e = &x->edges.data[k];
    cJSON *o = add_object(list);
    num(o, "from", e->from);
    num(o, "to", e->to);
    num(o, "bytes", (double)e->bytes);
    if (e->inside) cJSON_AddTrueToObject(o, "inside");
    idx(o, "decision", e->decision);
  }
}

/* ---- verdicts ---- */

static void json_source(cJSON *o, const char *key, const lw_explain_source *s) {
  if (!s->file[0] && !s->op_name[0]) return;
  cJSON *v = cJSON_AddObjectToObject(o, key);
  str(v, "op_name", s->op_name);
  str(v, "file", s->file);
  num(v, "line", (double)s->line);
}

static const char *support_name(const lw_xray *x, size_t k) {
  static const char *const names[] = {"recorded", "agrees", "differs",
                                      "silent"};
  return names[x->support ? x->support[k] : XRAY_RECORDED];
}

static bool has_reason(const lw_xray *x, size_t k) {
  return !x->support || x->support[k] == XRAY_RECORDED ||
         x->support[k] == XRAY_AGREES;
}

static void json_times(cJSON *o, const lw_explain_edge *e) {
  if (!e->modelled) return;
  /* XLA:GPU's queue keeps a running total: its last line is of what changed. */
  if (fabs(e->unfused_ns - e->fused_ns - e->saved_ns) < 1) {
    num(o, "unfused_us", e->unfused_ns / 1e3);
    num(o, "fused_us", e->fused_ns / 1e3);
  }
  num(o, "saved_us", e->saved_ns / 1e3);
  num(o, "threshold_us", e->d->threshold / 1e3);
}

static void json_decision(cJSON *o, const lw_xray *x, size_t k) {
  const lw_explain_edge *e = &x->e.edges.data[k];
  const lw_decision *d = e->d;
  str(o, "pass", d->pass);
  str(o, "producer", d->producer);
  str(o, "consumer", d->consumer);
  str(o, "value", d->value);
  str(o, "reader", d->reader);
  idx(o, "from", xray_value_named(x, d->value));
  idx(o, "to", xray_value_named(x, d->reader));
  cJSON_AddBoolToObject(o, "fused", d->yes);
  if (e->fused) num(o, "order", (double)e->fused);
  str(o, "support", support_name(x, k));
  if (has_reason(x, k)) {
    str(o, "gate", lw_gate_name(d->gate));
    str(o, "reason", lw_reason_table[d->reason].code);
    str(o, "flip", d->flip);
  }
  if (d->text && *d->text) str(o, "text", d->text);
  json_times(o, e);
  num(o, "bytes", (double)d->bytes);
  num(o, "asked", (double)e->asked);
  json_source(o, "source", &e->producer);
  json_source(o, "reader_source", &e->consumer);
}

static void json_decisions(cJSON *j, const lw_xray *x) {
  cJSON *list = cJSON_AddArrayToObject(j, "decisions");
  for (size_t k = 0; k < x->e.edges.len; k++)
    json_decision(add_object(list), x, k);
}

static void json_left(cJSON *j, const lw_xray *x) {
  cJSON *list = cJSON_AddArrayToObject(j, "left");
  for (size_t k = 0; k < x->e.left.len; k++) {
    const lw_explain_left *l = &x->e.left.data[k];
    cJSON *o = add_object(list);
    str(o, "name", l->name);
    str(o, "value", l->value);
    str(o, "shape", l->shape);
    num(o, "bytes", (double)l->bytes);
    str(o, "level", x->foreign ? "memory" : l->level);
    if (!x->foreign) num(o, "trip_us", l->trip_ns / 1e3);
    str(o, "class", lw_left_class_name(l->class));
    if (l->d) str(o, "reason", lw_reason_table[l->d->reason].code);
    cJSON *readers = cJSON_AddArrayToObject(o, "readers");
    for (int32_t r = 0; r < l->n_readers; r++)
      cJSON_AddItemToArray(readers, cJSON_CreateString(l->readers[r]));
  }
}

static void json_walls(cJSON *j, const lw_xray *x) {
  cJSON *list = cJSON_AddArrayToObject(j, "walls");
  for (size_t k = 0; k < x->e.walls.len; k++) {
    const lw_explain_wall *w = &x->e.walls.data[k];
    cJSON *o = add_object(list);
    str(o, "value", w->value);
    str(o, "name", w->name);
    str(o, "shape", w->shape);
    num(o, "bytes", (double)w->bytes);
    str(o, "needs", w->needs);
    str(o, "crosses", x->foreign && w->in_memory ? "memory" : w->crosses);
    cJSON_AddBoolToObject(o, "in_memory", w->in_memory);
    cJSON_AddBoolToObject(o, "input", w->input);
    if (w->row_bytes && !x->foreign) num(o, "row_bytes", (double)w->row_bytes);
    if (w->extent && !x->foreign) num(o, "extent", (double)w->extent);
    json_source(o, "source", &w->source);
  }
}

/* A page for each code that occurs. */
static void json_reasons(cJSON *j, const lw_xray *x, lw_xray_page_of pages) {
  bool used[LW_REASON_COUNT] = {false};
  cJSON *all = cJSON_AddObjectToObject(j, "reasons");
  for (size_t k = 0; k < x->e.edges.len; k++)
    if (has_reason(x, k)) used[x->e.edges.data[k].d->reason] = true;
  for (size_t k = 0; k < x->e.left.len; k++)
    if (x->e.left.data[k].d) used[x->e.left.data[k].d->reason] = true;
  for (int k = 0; k < LW_REASON_COUNT; k++) {
    if (!used[k]) continue;
    const lw_reason_info *r = &lw_reason_table[k];
    cJSON *o = cJSON_AddObjectToObject(all, r->code);
    str(o, "gate", lw_gate_name(r->gate));
    str(o, "line", r->line);
    const char *page = pages ? pages(r->code) : NULL;
    if (page) str(o, "page", page);
  }
}

/* ---- texts, sources ---- */

static void json_lines(cJSON *o, const char *key, const xray_line *l,
                       size_t n) {
  cJSON *list = cJSON_AddArrayToObject(o, key);
  for (size_t k = 0; k < n; k++) {
    cJSON *line = add_object(list);
    str(line, "text", l[k].text);
    idx(line, "value", l[k].value);
    idx(line, "box", l[k].box);
  }
}

static void json_texts(cJSON *j, const lw_xray *x) {
  cJSON *o = cJSON_AddObjectToObject(j, "text");
  json_lines(o, "before", x->text_before.data, x->text_before.len);
  json_lines(o, "after", x->text_after.data, x->text_after.len);
  cJSON *list = cJSON_AddArrayToObject(j, "sources");
  for (size_t k = 0; k < x->sources.len; k++) {
    const lw_explain_source *s = &x->sources.data[k];
    cJSON *v = add_object(list);
    str(v, "op_name", s->op_name);
    str(v, "file", s->file);
    num(v, "line", (double)s->line);
  }
}

/* ---- memory ---- */

static const char *slice_kind(const lw_slice *s) {
  static const char *const names[] = {"input", "output", "constant", "temp"};
  return names[s->kind];
}

static void json_live(cJSON *o, const lw_plan *p) {
  cJSON *list = cJSON_AddArrayToObject(o, "live");
  for (int32_t k = 0; k < p->n_live; k++) {
    const lw_live_range *l = &p->live[k];
    const lw_slice *s = &p->slices[l->slice];
    cJSON *v = add_object(list);
    str(v, "name", l->inst->name);
    str(v, "kind", slice_kind(s));
    num(v, "bytes", (double)s->bytes);
    if (s->kind == LW_ALLOC_TEMP) num(v, "offset", (double)s->offset);
    num(v, "first", l->first);
    num(v, "last", l->last);
  }
}

static void add_scratch(cJSON *list, const lw_plan *p, const lw_node *n) {
  if (n->kind == LW_NODE_KERNEL) {
    const lw_kernel *k = p->kernels[n->kernel];
    int64_t bytes = 0;
    for (int32_t s = 0; s < k->n_scratch; s++)
      bytes += p->slices[n->slices[k->n_params + k->n_outputs + s]].bytes;
    if (bytes) {
      cJSON *o = add_object(list);
      str(o, "name", n->inst->name);
      str(o, "what", "buffers between a kernel's phases");
      num(o, "bytes", (double)bytes);
    }
  }
  for (int32_t k = 0; k < n->n_children; k++)
    add_scratch(list, p, n->children[k]);
}

/* A library call's results that nobody reads are its workspace (XLA:GPU's
 * custom calls). */
static void add_workspace(cJSON *list, const lw_inst *i) {
  if (i->opcode != LW_OP_CUSTOM_CALL || !lw_shape_is_tuple(i->shape)) return;
  for (int32_t k = 0; k < i->shape->n_elems; k++) {
    bool read = lw_inst_is_root(i);
    for (const lw_use *u = i->uses; u; u = u->next)
      read |= u->user->opcode != LW_OP_GET_TUPLE_ELEMENT ||
              lw_inst_i64(u->user, LW_ATTR_INDEX, -1) == k;
    int64_t bytes = lw_shape_bytes(i->shape->elems[k]);
    if (read || !bytes) continue;
    cJSON *o = add_object(list);
    str(o, "name", i->name);
    str(o, "what", "workspace of a library call");
    num(o, "bytes", (double)bytes);
  }
}

static void json_memory(cJSON *j, const lw_xray *x) {
  cJSON *o = cJSON_AddObjectToObject(j, "memory");
  cJSON *scratch = cJSON_AddArrayToObject(o, "scratch");
  if (x->plan) {
    num(o, "temp_bytes", (double)x->plan->temp_bytes);
    num(o, "constants", x->plan->n_constants);
    json_live(o, x->plan);
    add_scratch(scratch, x->plan, x->plan->root);
  } else {
    str(o, "no_plan", x->no_plan);
  }
  for (size_t k = 0; k < x->boxes.len; k++)
    add_workspace(scratch, x->boxes.data[k].inst);
}

/* ---- layouts ---- */

static double rounded(double v) { return round(v * 10) / 10; }

static void json_places(cJSON *o, const xray_layout *l) {
  cJSON *list = cJSON_AddArrayToObject(o, "places");
  for (int32_t k = 0; k < l->n; k++) {
    const xray_place *p = &l->places[k];
    cJSON *v = cJSON_CreateArray();
    if (p->w > 0) {
      add_number(v, rounded(p->x));
      add_number(v, rounded(p->y));
      add_number(v, rounded(p->w));
      add_number(v, rounded(p->h));
    }
    cJSON_AddItemToArray(list, v);
  }
}

static void json_layout(cJSON *all, const char *key, const xray_layout *l) {
  if (!l->n) return;
  cJSON *o = cJSON_AddObjectToObject(all, key);
  num(o, "width", rounded(l->w));
  num(o, "height", rounded(l->h));
  json_places(o, l);
  cJSON *list = cJSON_AddArrayToObject(o, "curves");
  for (size_t k = 0; k < l->curves.len; k++) {
    const xray_curve *c = &l->curves.data[k];
    cJSON *v = cJSON_CreateArray();
    add_number(v, c->from);
    add_number(v, c->to);
    for (int32_t m = 0; m < 2 * c->n; m++) add_number(v, rounded(c->xy[m]));
    cJSON_AddItemToArray(list, v);
  }
}

void lw_xray_json(lw_buf *b, const lw_xray *x, lw_xray_page_of pages) {
  cJSON *j = cJSON_CreateObject();
  str(j, "schema", "lawson.xray/1");
  str(j, "module", x->after->name);
  str(j, "compiler", x->compiler);
  str(j, "strategy", x->strategy);
  str(j, "target", x->target);
  str(j, "label", x->recorded ? "RECORDED" : "INFERRED");
  if (x->lesson) {
    str(j, "lesson_title", x->lesson_title);
    str(j, "lesson", x->lesson);
  }
  json_head(j, x);
  json_values(j, x);
  json_nodes(j, x);
  json_boxes(j, x);
  json_edges(j, x);
  json_decisions(j, x);
  json_left(j, x);
  json_walls(j, x);
  json_reasons(j, x, pages);
  json_texts(j, x);
  json_memory(j, x);
  cJSON *layout = cJSON_AddObjectToObject(j, "layout");
  json_layout(layout, "boxes", &x->by_box);
  json_layout(layout, "nodes", &x->by_node);
  json_layout(layout, "values", &x->by_value);
  char *s = cJSON_PrintUnformatted(j);
  cJSON_Delete(j);
  if (!s) lw_oom(0);
  lw_buf_str(b, s);
  cJSON_free(s);
}
