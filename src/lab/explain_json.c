/* Decision records as JSON (explain_json.h). */
#include "lab/explain_json.h"

static void json_source(cJSON *j, const char *key, const lw_explain_source *s) {
  cJSON *o = cJSON_AddObjectToObject(j, key);
  cJSON_AddStringToObject(o, "op_name", s->op_name);
  cJSON_AddStringToObject(o, "file", s->file);
  cJSON_AddNumberToObject(o, "line", (double)s->line);
}

static void json_number(cJSON *j, const char *key, bool known, double v) {
  if (known)
    cJSON_AddNumberToObject(j, key, v);
  else
    cJSON_AddNullToObject(j, key);
}

cJSON *lw_explain_edge_json(const lw_explain_edge *e) {
  const lw_decision *d = e->d;
  cJSON *j = cJSON_CreateObject();
  cJSON_AddNumberToObject(j, "seq", (double)e->order);
  json_number(j, "order", e->fused > 0, (double)e->fused);
  cJSON_AddStringToObject(j, "pass", d->pass);
  cJSON_AddStringToObject(j, "computation", d->computation);
  cJSON_AddStringToObject(j, "producer", d->producer);
  cJSON_AddStringToObject(j, "consumer", d->consumer);
  cJSON_AddStringToObject(j, "value", d->value);
  cJSON_AddStringToObject(j, "reader", d->reader);
  cJSON_AddStringToObject(j, "gate", lw_gate_name(d->gate));
  cJSON_AddStringToObject(j, "verdict", d->yes ? "fused" : "refused");
  cJSON_AddStringToObject(j, "reason", lw_reason_table[d->reason].code);
  json_number(j, "unfused_us", e->modelled, e->unfused_ns / 1e3);
  json_number(j, "fused_us", e->modelled, e->fused_ns / 1e3);
  json_number(j, "saved_us", e->modelled, e->saved_ns / 1e3);
  json_number(j, "threshold_us", e->modelled, d->threshold / 1e3);
  cJSON_AddNumberToObject(j, "bytes", (double)d->bytes);
  cJSON_AddNumberToObject(j, "asked", (double)e->asked);
  cJSON_AddStringToObject(j, "flip", d->flip);
  json_source(j, "producer_source", &e->producer);
  json_source(j, "consumer_source", &e->consumer);
  return j;
}

cJSON *lw_explain_left_json(const lw_explain_left *l) {
  cJSON *j = cJSON_CreateObject();
  cJSON_AddStringToObject(j, "name", l->name);
  cJSON_AddStringToObject(j, "value", l->value);
  cJSON_AddStringToObject(j, "shape", l->shape);
  cJSON_AddNumberToObject(j, "bytes", (double)l->bytes);
  cJSON_AddStringToObject(j, "level", l->level);
  cJSON_AddNumberToObject(j, "trip_us", l->trip_ns / 1e3);
  cJSON_AddStringToObject(j, "class", lw_left_class_name(l->class));
  cJSON *readers = cJSON_AddArrayToObject(j, "readers");
  for (int32_t k = 0; k < l->n_readers; k++)
    cJSON_AddItemToArray(readers, cJSON_CreateString(l->readers[k]));
  if (l->d) {
    cJSON_AddStringToObject(j, "gate", lw_gate_name(l->d->gate));
    cJSON_AddStringToObject(j, "reason", lw_reason_table[l->d->reason].code);
  } else {
    cJSON_AddNullToObject(j, "gate");
    cJSON_AddNullToObject(j, "reason");
  }
  json_source(j, "source", &l->source);
  return j;
}

cJSON *lw_explain_wall_json(const lw_explain_wall *w) {
  cJSON *j = cJSON_CreateObject();
  cJSON_AddStringToObject(j, "value", w->value);
  cJSON_AddStringToObject(j, "name", w->name);
  cJSON_AddStringToObject(j, "shape", w->shape);
  cJSON_AddNumberToObject(j, "bytes", (double)w->bytes);
  cJSON_AddStringToObject(j, "needs", w->needs);
  cJSON_AddStringToObject(j, "crosses", w->crosses);
  cJSON_AddStringToObject(j, "strategy", w->strategy);
  cJSON_AddBoolToObject(j, "in_memory", w->in_memory);
  cJSON_AddBoolToObject(j, "input", w->input);
  cJSON_AddNumberToObject(j, "run", (double)w->run);
  json_number(j, "row_bytes", w->row_bytes > 0, (double)w->row_bytes);
  json_number(j, "extent", w->extent > 0, (double)w->extent);
  json_source(j, "source", &w->source);
  return j;
}

cJSON *lw_explain_json(const lw_explain *e) {
  cJSON *j = cJSON_CreateObject();
  cJSON_AddStringToObject(j, "schema", "lawson.explain/1");
  cJSON_AddStringToObject(j, "module", e->module);
  cJSON_AddStringToObject(j, "fusion", e->strategy);
  cJSON_AddStringToObject(j, "target", e->target);
  cJSON *edges = cJSON_AddArrayToObject(j, "edges");
  for (size_t k = 0; k < e->edges.len; k++)
    cJSON_AddItemToArray(edges, lw_explain_edge_json(&e->edges.data[k]));
  cJSON *left = cJSON_AddArrayToObject(j, "left_in_memory");
  for (size_t k = 0; k < e->left.len; k++)
    cJSON_AddItemToArray(left, lw_explain_left_json(&e->left.data[k]));
  cJSON *walls = cJSON_AddArrayToObject(j, "walls");
  for (size_t k = 0; k < e->walls.len; k++)
    cJSON_AddItemToArray(walls, lw_explain_wall_json(&e->walls.data[k]));
  return j;
}
