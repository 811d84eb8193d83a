/* lawson explain: edges in queue order, values left in memory, the wall. */
#include <stdio.h>
#include <string.h>

#include "common.h"
#include "driver/explain.h"
#include "lab/explain_json.h"

/* ---- which edges ---- */

typedef struct {
  const char *producer, *consumer; /* NULL: any */
  const char *file;                /* NULL: no --at */
  long line;
  const char *op;
} filter;

static bool is_filtered(const filter *f) {
  return f->producer || f->consumer || f->file || f->op;
}

static const char *bare(const char *name) {
  return *name == '%' ? name + 1 : name;
}

static int read_edge(const char *text, lw_arena *a, filter *f) {
  const char *comma = strchr(text, ',');
  size_t n = comma ? (size_t)(comma - text) : strlen(text);
  if (n) f->producer = bare(lw_arena_strdup(a, text, n));
  if (comma && comma[1]) f->consumer = bare(comma + 1);
  if (f->producer || f->consumer) return CLI_YES;
  cli_error("--edge=%s: PRODUCER,CONSUMER, or one of them, is needed", text);
  return CLI_USAGE;
}

static int read_at(const char *text, lw_arena *a, filter *f) {
  const char *colon = strrchr(text, ':');
  char *end = NULL;
  if (colon) f->line = strtol(colon + 1, &end, 10);
  if (!colon || colon == text || !colon[1] || *end || f->line < 1) {
    cli_error("--at=%s: FILE:LINE is needed, as in attend.py:12", text);
    return CLI_USAGE;
  }
  f->file = lw_arena_strdup(a, text, (size_t)(colon - text));
  return CLI_YES;
}

static int read_filter(const cli_args *a, lw_arena *arena, filter *f) {
  int code = CLI_YES;
  f->op = a->value[OPT_OP];
  if (a->value[OPT_EDGE]) code = read_edge(a->value[OPT_EDGE], arena, f);
  if (!code && a->value[OPT_AT]) code = read_at(a->value[OPT_AT], arena, f);
  return code;
}

/* The whole path, or its last parts. */
static bool is_file(const char *path, const char *wanted) {
  size_t n = strlen(path), w = strlen(wanted);
  return n >= w && !strcmp(path + n - w, wanted) &&
         (n == w || path[n - w - 1] == '/');
}

/* All of it, or whole parts between slashes. */
static bool is_op(const char *name, const char *wanted) {
  size_t w = strlen(wanted);
  for (const char *p = strstr(name, wanted); w && p;
       p = strstr(p + 1, wanted)) {
    bool starts = p == name || p[-1] == '/';
    if (starts && (!p[w] || p[w] == '/')) return true;
  }
  return false;
}

static bool source_passes(const filter *f, const lw_explain_source *s) {
  if (f->file && !(s->line == f->line && is_file(s->file, f->file)))
    return false;
  return !f->op || is_op(s->op_name, f->op);
}

static bool is_name(const char *wanted, const char *now, const char *was) {
  return !wanted || !strcmp(wanted, now) || !strcmp(wanted, was);
}

/* Several consumers stand in one field, with commas. */
static bool edge_passes(const filter *f, const lw_explain_edge *e) {
  const lw_decision *d = e->d;
  if (!is_name(f->producer, d->producer, d->value)) return false;
  if (!is_name(f->consumer, d->consumer, d->reader) &&
      !lw_str_listed(d->consumer, f->consumer))
    return false;
  return source_passes(f, &e->producer) || source_passes(f, &e->consumer);
}

static bool value_passes(const filter *f, const char *name, const char *value,
                         const lw_explain_source *s) {
  if (f->consumer && !f->producer) return false;
  return is_name(f->producer, name, value) && source_passes(f, s);
}

/* ---- text ---- */

/* The names of the module before fusing; what they have become, when it is
 * something else, in brackets. */
static void edge_text(lw_buf *b, const lw_decision *d) {
  lw_buf_printf(b, "%s > %s", d->value, d->reader[0] ? d->reader : "(all)");
  if (strcmp(d->reader, d->consumer) && d->consumer[0])
    lw_buf_printf(b, " [%s]", d->consumer);
}

static int edge_width(const lw_explain *e, const filter *f) {
  size_t w = 4;
  for (size_t k = 0; k < e->edges.len; k++) {
    lw_buf b = {0};
    if (!edge_passes(f, &e->edges.data[k])) continue;
    edge_text(&b, e->edges.data[k].d);
    if (b.len > w) w = b.len;
    lw_buf_free(&b);
  }
  return w > 60 ? 60 : (int)w;
}

static void print_times(const lw_explain_edge *e) {
  char both[40] = "-", saved[24] = "-";
  if (e->unfused_ns != 0 || e->fused_ns != 0)
    snprintf(both, sizeof both, "%.3f > %.3f", e->unfused_ns / 1e3,
             e->fused_ns / 1e3);
  if (e->modelled) snprintf(saved, sizeof saved, "%.3f", e->saved_ns / 1e3);
  printf(" %19s %10s", both, saved);
}

static void print_edge(const lw_explain_edge *e, int width, bool more) {
  const lw_decision *d = e->d;
  lw_buf b = {0};
  edge_text(&b, d);
  char order[24] = "-";
  if (e->fused) snprintf(order, sizeof order, "%lld", (long long)e->fused);
  printf("%5s  %-*s  %s%-7s%s %-13s %-20s", order, width, lw_buf_cstr(&b),
         d->yes ? cli_green(1) : cli_red(1), d->yes ? "fused" : "refused",
         cli_plain(1), lw_gate_name(d->gate), lw_reason_table[d->reason].code);
  print_times(e);
  printf(" %12lld  %s\n", (long long)d->bytes, d->flip);
  lw_buf_free(&b);
  if (!more) return;
  printf("       %s (lawson help %s)\n", lw_reason_table[d->reason].line,
         lw_reason_table[d->reason].code);
  if (e->producer.op_name[0] || e->consumer.op_name[0])
    printf("       %s (%s:%lld) > %s (%s:%lld)\n", e->producer.op_name,
           e->producer.file, (long long)e->producer.line, e->consumer.op_name,
           e->consumer.file, (long long)e->consumer.line);
}

static void print_edges(const lw_explain *e, const filter *f) {
  int width = edge_width(e, f);
  printf("%s%5s  %-*s  %-7s %-13s %-20s %19s %10s %12s  %s%s\n", cli_bold(1),
         "order", width, "edge", "verdict", "gate", "reason",
         "unfused > fused us", "saved us", "bytes", "what would flip it",
         cli_plain(1));
  for (size_t k = 0; k < e->edges.len; k++)
    if (edge_passes(f, &e->edges.data[k]))
      print_edge(&e->edges.data[k], width, is_filtered(f));
}

static void print_left(const lw_explain_left *l) {
  printf("%12lld  %-4s %9.3f  %-15s  %s %s", (long long)l->bytes, l->level,
         l->trip_ns / 1e3, lw_left_class_name(l->class), l->value, l->shape);
  if (strcmp(l->value, l->name)) printf(" [%s]", l->name);
  printf(", read by");
  for (int32_t k = 0; k < l->n_readers; k++) printf(" %s", l->readers[k]);
  if (l->d && l->class != LW_LEFT_LIBRARY)
    printf("; %s by the %s gate", lw_reason_table[l->d->reason].code,
           lw_gate_name(l->d->gate));
  putchar('\n');
}

static int64_t print_lefts(const lw_explain *e, const filter *f) {
  int64_t sum = 0;
  printf("\n%s%12s  %-4s %9s  %-15s  %s%s\n", cli_bold(1), "bytes", "in", "us",
         "class", "value left in memory", cli_plain(1));
  for (size_t k = 0; k < e->left.len; k++) {
    const lw_explain_left *l = &e->left.data[k];
    if (!value_passes(f, l->name, l->value, &l->source)) continue;
    print_left(l);
    sum += l->bytes;
  }
  printf("%12lld  in all\n", (long long)sum);
  return sum;
}

static void print_wall(const lw_explain_wall *w) {
  printf("the wall: %s %s, %lld bytes, needs %s\n", w->value, w->shape,
         (long long)w->bytes, w->needs);
  bool nothing = !strcmp(w->crosses, "nothing");
  printf("  under --fusion=%s ", w->strategy);
  if (w->in_memory)
    printf("it is %s: ",
           w->input ? "an input, read twice" : "written and read again");
  printf("it crosses %s%s%s", nothing ? cli_green(1) : cli_red(1), w->crosses,
         cli_plain(1));
  if (!w->in_memory) printf(": %s holds it row by row", w->name);
  if (w->row_bytes && !w->in_memory)
    printf(", %lld bytes a row", (long long)w->row_bytes);
  if (w->extent && w->in_memory)
    printf("; from runs of %lld on, DRAM", (long long)w->extent);
  else if (w->extent)
    printf("; from runs of %lld on a row outgrows L2", (long long)w->extent);
  putchar('\n');
}

static void print_walls(const lw_explain *e, const filter *f) {
  bool any = false;
  for (size_t k = 0; k < e->walls.len; k++) {
    const lw_explain_wall *w = &e->walls.data[k];
    if (!value_passes(f, w->name, w->value, &w->source)) continue;
    if (!any) putchar('\n');
    any = true;
    print_wall(w);
  }
  if (any)
    printf(
        "  no fusion removes a wall: a streaming algorithm would "
        "(docs/wall.md)\n");
}

static void print_text(const lw_explain *e, const filter *f) {
  printf("%s, --fusion=%s, target %s\n\n", e->module, e->strategy, e->target);
  print_edges(e, f);
  (void)print_lefts(e, f);
  print_walls(e, f);
}

/* ---- JSON; docs/trace-format.md describes it ---- */

static void print_json(cJSON *j, const lw_explain *e, const filter *f) {
  cJSON_AddStringToObject(j, "module", e->module);
  cJSON_AddStringToObject(j, "fusion", e->strategy);
  cJSON_AddStringToObject(j, "target", e->target);
  cJSON *edges = cJSON_AddArrayToObject(j, "edges");
  for (size_t k = 0; k < e->edges.len; k++)
    if (edge_passes(f, &e->edges.data[k]))
      cJSON_AddItemToArray(edges, lw_explain_edge_json(&e->edges.data[k]));
  cJSON *left = cJSON_AddArrayToObject(j, "left_in_memory");
  for (size_t k = 0; k < e->left.len; k++) {
    const lw_explain_left *l = &e->left.data[k];
    if (value_passes(f, l->name, l->value, &l->source))
      cJSON_AddItemToArray(left, lw_explain_left_json(l));
  }
  cJSON *walls = cJSON_AddArrayToObject(j, "walls");
  for (size_t k = 0; k < e->walls.len; k++) {
    const lw_explain_wall *w = &e->walls.data[k];
    if (value_passes(f, w->name, w->value, &w->source))
      cJSON_AddItemToArray(walls, lw_explain_wall_json(w));
  }
  cli_json_print(j);
}

/* ---- the command ---- */

static bool finds_something(const lw_explain *e, const filter *f) {
  bool any = !is_filtered(f);
  for (size_t k = 0; k < e->edges.len && !any; k++)
    any = edge_passes(f, &e->edges.data[k]);
  for (size_t k = 0; k < e->left.len && !any; k++)
    any = value_passes(f, e->left.data[k].name, e->left.data[k].value,
                       &e->left.data[k].source);
  for (size_t k = 0; k < e->walls.len && !any; k++)
    any = value_passes(f, e->walls.data[k].name, e->walls.data[k].value,
                       &e->walls.data[k].source);
  return any;
}

static int nothing_found(const lw_explain *e, const filter *f) {
  LW_VEC(const char *) names = {0};
  for (size_t k = 0; k < e->edges.len; k++)
    lw_vec_push(&names, e->edges.data[k].d->value);
  const char *near =
      f->producer ? lw_nearest_name(f->producer, names.data, names.len) : NULL;
  lw_vec_free(&names);
  if (near && strcmp(near, f->producer))
    cli_error("no edge or value passes; did you mean %s?", near);
  else
    cli_error("no edge or value passes --edge, --at and --op");
  return CLI_NO;
}

static int explain(const cli_args *a, const cli_input *in) {
  filter f = {0};
  int code = read_filter(a, in->arena, &f);
  if (code) return code;
  lw_compile_options o = cli_compile_options(a);
  lw_compiled *c;
  lw_explain e;
  lw_status st = lw_explain_module(in->module, &o, &c, &e);
  if (st) {
    code = cli_fail_compile(a, st);
  } else if (!finds_something(&e, &f)) {
    code = nothing_found(&e, &f);
  } else {
    cJSON *j = cli_json(a);
    if (j)
      print_json(j, &e, &f);
    else
      print_text(&e, &f);
  }
  lw_explain_free(&e);
  lw_compiled_free(c);
  return code;
}

int cli_run_explain(const cli_args *a) {
  cli_input in;
  int code = cli_load(a, 0, true, &in);
  if (code) return code;
  code = explain(a, &in);
  cli_close(&in);
  return code;
}
