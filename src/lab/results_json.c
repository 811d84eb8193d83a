/* Runs as JSON and CSV (results_json.h). */
#include "lab/results_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"

/* ---- out ---- */

static void add_parsed(cJSON *o, const char *name, const char *text) {
  cJSON *v = text ? cJSON_Parse(text) : NULL;
  cJSON_AddItemToObject(o, name, v ? v : cJSON_CreateNull());
}

static void add_real(cJSON *o, const char *name, double v) {
  if (isnan(v)) {
    cJSON_AddNullToObject(o, name);
  } else {
    cJSON_AddNumberToObject(o, name, v);
  }
}

static void add_side(cJSON *o, char side) {
  char text[2] = {side, 0};
  cJSON_AddStringToObject(o, "side", text);
}

static cJSON *process_json(const lw_run_process *p) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddNumberToObject(o, "round", p->round);
  add_side(o, p->side);
  cJSON_AddNumberToObject(o, "position", p->position);
  add_real(o, "load_ms", p->load_ms);
  add_real(o, "compile_ms", p->compile_ms);
  add_real(o, "first_ms", p->first_ms);
  add_real(o, "steady_ms", p->steady_ms);
  add_parsed(o, "info", p->info);
  return o;
}

static cJSON *block_json(const lw_block *b) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddNumberToObject(o, "round", b->round);
  cJSON_AddNumberToObject(o, "number", b->number);
  cJSON_AddStringToObject(o, "started", b->started);
  add_real(o, "load", b->load);
  cJSON *list = cJSON_AddArrayToObject(o, "samples");
  for (int32_t k = 0; k < b->n; k++) {
    const lw_sample *x = &b->samples[k];
    cJSON *s = cJSON_CreateObject();
    cJSON_AddNumberToObject(s, "slot", x->slot);
    add_side(s, x->side);
    cJSON_AddNumberToObject(s, "median_ns", x->median_ns);
    cJSON_AddNumberToObject(s, "min_ns", x->min_ns);
    cJSON_AddNumberToObject(s, "max_ns", x->max_ns);
    cJSON_AddNumberToObject(s, "runs", (double)x->runs);
    cJSON_AddItemToArray(list, s);
  }
  return o;
}

static cJSON *look_json(const lw_look_record *l) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddNumberToObject(o, "rounds", l->rounds);
  cJSON_AddNumberToObject(o, "alpha", l->alpha);
  cJSON_AddNumberToObject(o, "center", l->center);
  cJSON_AddNumberToObject(o, "low", l->low);
  cJSON_AddNumberToObject(o, "high", l->high);
  cJSON_AddStringToObject(o, "verdict", l->verdict);
  return o;
}

static void add_result(cJSON *o, const lw_run_data *d) {
  lw_run_results r;
  lw_status st = lw_run_results_of(d, &r);
  if (!st) cJSON_AddItemToObject(o, "result", lw_run_results_json(d, &r));
  lw_status_free(st);
}

cJSON *lw_run_head_to_json(const lw_run *r) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddNumberToObject(o, "id", (double)r->id);
  cJSON_AddStringToObject(o, "uid", r->uid);
  cJSON_AddStringToObject(o, "kind", r->kind);
  cJSON_AddStringToObject(o, "created", r->created);
  cJSON_AddStringToObject(o, "status", r->status);
  cJSON_AddStringToObject(o, "title", r->title);
  return o;
}

cJSON *lw_run_to_json(const lw_run_data *d) {
  const lw_run *r = &d->run;
  cJSON *o = lw_run_head_to_json(r);
  add_parsed(o, "config", r->config);
  add_parsed(o, "provenance", r->provenance);
  add_parsed(o, "summary", r->summary);
  add_result(o, d);
  cJSON *list = cJSON_AddArrayToObject(o, "processes");
  for (size_t k = 0; k < d->processes.len; k++)
    cJSON_AddItemToArray(list, process_json(&d->processes.data[k]));
  list = cJSON_AddArrayToObject(o, "looks");
  for (size_t k = 0; k < d->looks.len; k++)
    cJSON_AddItemToArray(list, look_json(&d->looks.data[k]));
  list = cJSON_AddArrayToObject(o, "blocks");
  for (size_t k = 0; k < d->blocks.len; k++)
    cJSON_AddItemToArray(list, block_json(&d->blocks.data[k]));
  return o;
}

void lw_run_to_csv(const lw_run_data *d, bool header, lw_buf *out) {
  if (header)
    lw_buf_str(out,
               "run,round,block,slot,side,median_ns,min_ns,max_ns,runs,"
               "started,load\n");
  for (size_t k = 0; k < d->blocks.len; k++) {
    const lw_block *b = &d->blocks.data[k];
    for (int32_t i = 0; i < b->n; i++) {
      const lw_sample *x = &b->samples[i];
      lw_buf_printf(out, "%s,%d,%d,%d,%c,%.17g,%.17g,%.17g,%lld,%s,",
                    d->run.uid, b->round, b->number, x->slot, x->side,
                    x->median_ns, x->min_ns, x->max_ns, (long long)x->runs,
                    b->started);
      if (!isnan(b->load)) lw_buf_printf(out, "%g", b->load);
      lw_buf_chr(out, '\n');
    }
  }
}

/* Blocks become pairs: both values of a side are kept, and averaged there. */
void lw_run_to_judge_csv(const lw_run_data *d, lw_buf *out) {
  lw_timings t = {0};
  lw_run_timings(d, 'b', &t);
  lw_buf_str(out, "pair,side,value,process\n");
  for (size_t k = 0; k < t.len; k++) {
    const lw_timing *x = &t.data[k];
    lw_buf_printf(out, "%lld,%c,%.17g,%lld\n", (long long)x->block + 1,
                  'a' + x->side, x->value, (long long)x->process);
  }
  lw_vec_free(&t);
}

/* ---- in ---- */

typedef struct {
  lw_arena *a;
  lw_status st; /* the first thing that was wrong */
} reader;

static void wrong(reader *r, const char *name, const char *needed) {
  if (!r->st)
    r->st = lw_error(LW_INVALID_ARGUMENT, "\"%s\": %s is needed", name, needed);
}

static const char *get_text(reader *r, const cJSON *o, const char *name) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
  if (cJSON_IsString(v))
    return lw_arena_strdup(r->a, v->valuestring, strlen(v->valuestring));
  wrong(r, name, "a text");
  return "";
}

static double get_number(reader *r, const cJSON *o, const char *name,
                         double low, double high) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
  if (cJSON_IsNumber(v) && v->valuedouble >= low && v->valuedouble <= high)
    return v->valuedouble;
  wrong(r, name, "a number in range");
  return low;
}

/* NaN where there is null, or nothing. */
static double get_optional(reader *r, const cJSON *o, const char *name) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
  return !v || cJSON_IsNull(v) ? NAN : get_number(r, o, name, -1e300, 1e300);
}

static int32_t get_count(reader *r, const cJSON *o, const char *name) {
  return (int32_t)get_number(r, o, name, 0, 1e9);
}

static char get_side(reader *r, const cJSON *o) {
  const char *s = get_text(r, o, "side");
  if (strlen(s) == 1 && *s >= 'a' && *s <= 'c') return *s;
  wrong(r, "side", "a, b or c");
  return 'a';
}

static const char *get_object(reader *r, const cJSON *o, const char *name,
                              bool needed) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
  if (!cJSON_IsObject(v)) {
    if (needed) wrong(r, name, "an object");
    return needed ? "{}" : NULL;
  }
  char *text = cJSON_PrintUnformatted(v);
  const char *copy = lw_arena_strdup(r->a, text, strlen(text));
  cJSON_free(text);
  return copy;
}

static const cJSON *get_list(reader *r, const cJSON *o, const char *name) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
  if (cJSON_IsArray(v)) return v;
  wrong(r, name, "a list");
  return NULL;
}

static void read_processes(reader *r, const cJSON *list, lw_run_data *out) {
  const cJSON *o;
  cJSON_ArrayForEach(o, list) {
    lw_run_process p = {.round = get_count(r, o, "round"),
                        .side = get_side(r, o),
                        .position = get_count(r, o, "position"),
                        .load_ms = get_optional(r, o, "load_ms"),
                        .compile_ms = get_optional(r, o, "compile_ms"),
                        .first_ms = get_optional(r, o, "first_ms"),
                        .steady_ms = get_optional(r, o, "steady_ms"),
                        .info = get_object(r, o, "info", false)};
    lw_vec_push(&out->processes, p);
  }
}

static void read_samples(reader *r, const cJSON *list, lw_block *b) {
  int32_t n = cJSON_GetArraySize(list);
  b->samples = LW_NEW_ARRAY(r->a, lw_sample, n + 1);
  const cJSON *o;
  cJSON_ArrayForEach(o, list) {
    b->samples[b->n++] =
        (lw_sample){.slot = get_count(r, o, "slot"),
                    .side = get_side(r, o),
                    .median_ns = get_number(r, o, "median_ns", 1e-300, 1e300),
                    .min_ns = get_number(r, o, "min_ns", 1e-300, 1e300),
                    .max_ns = get_number(r, o, "max_ns", 1e-300, 1e300),
                    .runs = get_count(r, o, "runs")};
  }
}

static void read_blocks(reader *r, const cJSON *list, lw_run_data *out) {
  const cJSON *o;
  cJSON_ArrayForEach(o, list) {
    lw_block b = {.round = get_count(r, o, "round"),
                  .number = get_count(r, o, "number"),
                  .started = get_text(r, o, "started"),
                  .load = get_optional(r, o, "load")};
    read_samples(r, get_list(r, o, "samples"), &b);
    lw_vec_push(&out->blocks, b);
  }
}

static void read_looks(reader *r, const cJSON *list, lw_run_data *out) {
  const cJSON *o;
  cJSON_ArrayForEach(o, list) {
    lw_look_record l = {.rounds = get_count(r, o, "rounds"),
                        .alpha = get_number(r, o, "alpha", 0, 1),
                        .center = get_number(r, o, "center", -1e3, 1e3),
                        .low = get_number(r, o, "low", -1e3, 1e3),
                        .high = get_number(r, o, "high", -1e3, 1e3),
                        .verdict = get_text(r, o, "verdict")};
    lw_vec_push(&out->looks, l);
  }
}

lw_status lw_run_from_json(const cJSON *j, lw_arena *a, lw_run_data *out) {
  reader r = {.a = a};
  *out = (lw_run_data){0};
  out->run = (lw_run){.uid = get_text(&r, j, "uid"),
                      .kind = get_text(&r, j, "kind"),
                      .created = get_text(&r, j, "created"),
                      .status = get_text(&r, j, "status"),
                      .title = get_text(&r, j, "title"),
                      .config = get_object(&r, j, "config", true),
                      .provenance = get_object(&r, j, "provenance", true),
                      .summary = get_object(&r, j, "summary", false)};
  const char *kind = out->run.kind;
  if (strcmp(kind, "compare") && strcmp(kind, "same") &&
      strcmp(kind, "samples"))
    wrong(&r, "kind", "compare, same or samples");
  if (!*out->run.uid) wrong(&r, "uid", "a text that is not empty");
  read_processes(&r, get_list(&r, j, "processes"), out);
  read_blocks(&r, get_list(&r, j, "blocks"), out);
  read_looks(&r, get_list(&r, j, "looks"), out);
  return r.st;
}

/* ---- timings from elsewhere ---- */

static const char *samples_config(double margin, lw_arena *a) {
  return lw_arena_printf(a,
                         "{\"rule\":{\"alpha\":0.05,\"margin\":%.17g,"
                         "\"max_processes\":2,\"blocks_a_process\":1}}",
                         margin);
}

static const char *samples_provenance(const char *name, uint64_t hash,
                                      const char *now, lw_arena *a) {
  cJSON *o = cJSON_CreateObject();
  char text[24];
  snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
  cJSON_AddStringToObject(o, "time", now);
  cJSON_AddStringToObject(o, "file", name);
  cJSON_AddStringToObject(o, "file_hash", text);
  char *s = cJSON_PrintUnformatted(o);
  const char *copy = lw_arena_strdup(a, s, strlen(s));
  cJSON_free(s);
  cJSON_Delete(o);
  return copy;
}

/* Numbers pairs and processes by their first appearance. */
static int32_t number_of(lw_map *seen, int64_t id, int32_t *n) {
  uint64_t *slot = lw_map_put(seen, (uint64_t)id);
  if (!*slot) *slot = (uint64_t)++*n;
  return (int32_t)*slot;
}

static void add_blocks(const lw_timings *t, lw_arena *a, lw_run_data *out) {
  lw_map blocks = {0}, processes = {0};
  int32_t n_blocks = 0, n_processes = 0;
  for (size_t k = 0; k < t->len; k++) {
    const lw_timing *x = &t->data[k];
    int32_t number = number_of(&blocks, x->block, &n_blocks);
    if ((size_t)number > out->blocks.len) {
      lw_block b = {.round = number_of(&processes, x->process, &n_processes),
                    .number = number,
                    .started = out->run.created,
                    .load = NAN};
      lw_vec_push(&out->blocks, b);
    }
    out->blocks.data[number - 1].n++;
  }
  for (size_t k = 0; k < out->blocks.len; k++) {
    lw_block *b = &out->blocks.data[k];
    b->samples = LW_NEW_ARRAY(a, lw_sample, b->n);
    b->n = 0;
  }
  for (size_t k = 0; k < t->len; k++) {
    const lw_timing *x = &t->data[k];
    lw_block *b =
        &out->blocks.data[number_of(&blocks, x->block, &n_blocks) - 1];
    lw_sample one = {b->n, (char)('a' + x->side), x->value, x->value, x->value,
                     1};
    b->samples[b->n++] = one;
  }
  lw_map_free(&blocks);
  lw_map_free(&processes);
}

void lw_run_from_timings(const lw_timings *t, const char *name, uint64_t hash,
                         double margin, lw_arena *a, lw_run_data *out) {
  char now[32];
  lw_now_text(now);
  *out = (lw_run_data){0};
  out->run = (lw_run){.kind = "samples",
                      .created = lw_arena_strdup(a, now, strlen(now)),
                      .status = "done",
                      .title = name};
  out->run.config = samples_config(margin, a);
  out->run.provenance = samples_provenance(name, hash, now, a);
  add_blocks(t, a, out);
}
