/* lawson results: the store of measurements, shown and moved about. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "judge_options.h"
#include "lab/results_json.h"
#include "lab/results_page.h"

typedef struct {
  const cli_args *a;
  lw_arena *arena;
  lw_store *store;
} session;

/* ---- runs by name ---- */

static int load(session *s, const char *name, lw_run_data *out) {
  int64_t id;
  lw_status st = lw_store_find(s->store, name, &id);
  if (!st) st = lw_store_load(s->store, id, s->arena, out);
  return st ? cli_fail(st) : CLI_YES;
}

static int list_runs(session *s, lw_runs *out) {
  lw_status st = lw_store_list(s->store, s->arena, out);
  return st ? cli_fail(st) : CLI_YES;
}

typedef int (*run_fn)(session *s, const lw_run_data *d, void *ctx);

/* The runs named on the command line; all of them when none is. */
static int each_run(session *s, run_fn f, void *ctx) {
  lw_runs all = {0};
  int code = CLI_YES;
  bool every = s->a->n_positional < 2;
  if (every) code = list_runs(s, &all);
  size_t n = every ? all.len : (size_t)s->a->n_positional - 1;
  for (size_t k = 0; k < n && !code; k++) {
    lw_run_data d = {0};
    code = load(s, every ? all.data[k].uid : s->a->positional[k + 1], &d);
    if (!code) code = f(s, &d, ctx);
    lw_run_data_free(&d);
  }
  lw_vec_free(&all);
  return code;
}

/* ---- list ---- */

static const char *summary_text(const cJSON *summary, const char *name,
                                const char *dflt) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(summary, name);
  return cJSON_IsString(v) ? v->valuestring : dflt;
}

static void print_row(const lw_run *r) {
  cJSON *summary = r->summary ? cJSON_Parse(r->summary) : NULL;
  const cJSON *steady = cJSON_GetObjectItemCaseSensitive(summary, "steady");
  const cJSON *e = cJSON_GetObjectItemCaseSensitive(steady, "b_over_a");
  const cJSON *ratio = cJSON_GetObjectItemCaseSensitive(e, "ratio");
  char text[24] = "-";
  if (cJSON_IsNumber(ratio))
    snprintf(text, sizeof text, "%.4f", ratio->valuedouble);
  printf("%4lld  %s  %-8s %-13s %-8s %s\n", (long long)r->id, r->created,
         r->kind, summary_text(summary, "verdict", r->status), text, r->title);
  cJSON_Delete(summary);
}

static void add_row(cJSON *list, const lw_run *r) {
  cJSON *o = lw_run_head_to_json(r);
  cJSON *summary = r->summary ? cJSON_Parse(r->summary) : NULL;
  cJSON_AddItemToObject(o, "summary", summary ? summary : cJSON_CreateNull());
  cJSON_AddItemToArray(list, o);
}

static int results_list(session *s) {
  lw_runs runs = {0};
  int code = list_runs(s, &runs);
  cJSON *j = code ? NULL : cli_json(s->a);
  cJSON *list = j ? cJSON_AddArrayToObject(j, "runs") : NULL;
  for (size_t k = 0; k < runs.len && !code; k++) {
    if (list) {
      add_row(list, &runs.data[k]);
    } else {
      print_row(&runs.data[k]);
    }
  }
  if (j) cli_json_print(j);
  if (!j && !code && !runs.len) cli_note("no results yet");
  lw_vec_free(&runs);
  return code;
}

/* ---- show ---- */

static void print_json_lines(lw_buf *b, const cJSON *o, int indent) {
  const cJSON *v;
  cJSON_ArrayForEach(v, o) {
    lw_buf_printf(b, "%*s%s:", indent, "", v->string ? v->string : "-");
    if (cJSON_IsObject(v)) {
      lw_buf_chr(b, '\n');
      print_json_lines(b, v, indent + 2);
      continue;
    }
    char *text = cJSON_IsString(v) ? NULL : cJSON_PrintUnformatted(v);
    lw_buf_printf(b, " %s\n", text ? text : v->valuestring);
    cJSON_free(text);
  }
}

static void print_looks(lw_buf *b, const lw_run_data *d) {
  for (size_t k = 0; k < d->looks.len; k++) {
    const lw_look_record *l = &d->looks.data[k];
    lw_buf_printf(b, "  after %3d processes: %.4f in %.4f..%.4f  %s\n",
                  l->rounds, exp(l->center), exp(l->low), exp(l->high),
                  l->verdict);
  }
}

static int show_one(session *s, const lw_run_data *d, void *ctx) {
  (void)s;
  (void)ctx;
  lw_run_results r;
  lw_status st = lw_run_results_of(d, &r);
  if (st) return cli_fail(st);
  lw_buf b = {0};
  lw_buf_printf(&b, "run %lld (%s), %s, %s\n%s\n\n", (long long)d->run.id,
                d->run.uid, d->run.created, d->run.status, d->run.title);
  lw_run_results_print(&b, d, &r);
  if (d->looks.len) {
    lw_buf_str(&b, "\nlooks:\n");
    print_looks(&b, d);
  }
  cJSON *config = cJSON_Parse(d->run.config);
  cJSON *from = cJSON_Parse(d->run.provenance);
  lw_buf_str(&b, "\nsettings:\n");
  print_json_lines(&b, config, 2);
  lw_buf_str(&b, "\nprovenance:\n");
  print_json_lines(&b, from, 2);
  cJSON_Delete(config);
  cJSON_Delete(from);
  cli_out(lw_buf_cstr(&b));
  lw_buf_free(&b);
  return CLI_YES;
}

static int add_one(session *s, const lw_run_data *d, void *ctx) {
  (void)s;
  cJSON_AddItemToArray(ctx, lw_run_to_json(d));
  return CLI_YES;
}

static int results_show(session *s) {
  if (s->a->n_positional < 2) {
    cli_error("lawson results show needs a run's ID");
    return CLI_USAGE;
  }
  cJSON *j = cli_json(s->a);
  if (!j) return each_run(s, show_one, NULL);
  int code = each_run(s, add_one, cJSON_AddArrayToObject(j, "runs"));
  if (code) {
    cJSON_Delete(j);
  } else {
    cli_json_print(j);
  }
  return code;
}

/* ---- compare ---- */

/* The ratio of two runs' ratios. The runs are independent: each end of the
 * interval joins the two distances that lie its way (Zou and Donner 2008). */
static lw_estimate ratio_of_ratios(const lw_estimate *x, const lw_estimate *y) {
  lw_estimate e = {.alpha = fmax(x->alpha, y->alpha)};
  e.center = y->center - x->center;
  e.low = e.center - hypot(y->center - y->low, x->high - x->center);
  e.high = e.center + hypot(y->high - y->center, x->center - x->low);
  e.processes = x->processes < y->processes ? x->processes : y->processes;
  return e;
}

/* What differs in where two runs come from. */
static void list_moved(const cJSON *x, const cJSON *y, const char *prefix,
                       lw_arena *arena, cJSON *out) {
  const cJSON *v;
  cJSON_ArrayForEach(v, x) {
    if (!v->string || !strcmp(v->string, "time") || !strcmp(v->string, "load"))
      continue;
    const cJSON *w = cJSON_GetObjectItemCaseSensitive(y, v->string);
    const char *name = lw_arena_printf(arena, "%s%s", prefix, v->string);
    if (!strcmp(v->string, "worker")) continue;
    if (cJSON_IsObject(v) && cJSON_IsObject(w)) {
      list_moved(v, w, lw_arena_printf(arena, "%s.", name), arena, out);
    } else if (!w || !cJSON_Compare(v, w, true)) {
      cJSON_AddItemToArray(out, cJSON_CreateString(name));
    }
  }
}

static cJSON *moved_between(const lw_run_data *d, lw_arena *arena) {
  cJSON *out = cJSON_CreateArray();
  cJSON *x = cJSON_Parse(d[0].run.provenance);
  cJSON *y = cJSON_Parse(d[1].run.provenance);
  list_moved(x, y, "", arena, out);
  cJSON_Delete(x);
  cJSON_Delete(y);
  return out;
}

static void compare_json(session *s, const lw_run_data *d,
                         const lw_run_results *r, const lw_estimate *e,
                         const char *verdict, cJSON *moved) {
  cJSON *j = cli_json(s->a);
  cJSON *list = cJSON_AddArrayToObject(j, "runs");
  for (int k = 0; k < 2; k++) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "id", (double)d[k].run.id);
    cJSON_AddItemToObject(o, "result", lw_run_results_json(&d[k], &r[k]));
    cJSON_AddItemToArray(list, o);
  }
  if (e) {
    cJSON_AddItemToObject(j, "ratio_of_ratios", lw_estimate_json(e));
    cJSON_AddStringToObject(j, "verdict", verdict);
  }
  cJSON_AddItemToObject(j, "differs", moved);
  cli_json_print(j);
}

static void compare_text(const lw_run_data *d, const lw_run_results *r,
                         const lw_estimate *e, const char *verdict,
                         cJSON *moved) {
  lw_buf b = {0};
  for (int k = 0; k < 2; k++) {
    lw_buf_printf(&b, "run %lld, %s: %s\n", (long long)d[k].run.id,
                  d[k].run.created, d[k].run.title);
    lw_run_results_print(&b, &d[k], &r[k]);
    lw_buf_chr(&b, '\n');
  }
  if (e)
    lw_buf_printf(&b,
                  "b/a of run %lld over b/a of run %lld: %.4f, %.4f..%.4f: "
                  "%s\n",
                  (long long)d[1].run.id, (long long)d[0].run.id,
                  exp(e->center), exp(e->low), exp(e->high), verdict);
  const cJSON *v;
  cJSON_ArrayForEach(v, moved)
      lw_buf_printf(&b, "differs: %s\n", v->valuestring);
  cJSON_Delete(moved);
  cli_out(lw_buf_cstr(&b));
  lw_buf_free(&b);
}

static int compare_two(session *s, lw_run_data *d) {
  lw_run_results r[2];
  for (int k = 0; k < 2; k++) {
    lw_status st = lw_run_results_of(&d[k], &r[k]);
    if (st) return cli_fail(st);
  }
  bool both =
      r[0].main.estimate.processes > 1 && r[1].main.estimate.processes > 1;
  lw_estimate e = {0};
  const char *verdict = NULL;
  if (both) {
    e = ratio_of_ratios(&r[0].main.estimate, &r[1].main.estimate);
    verdict =
        lw_verdict_name(lw_verdict_of(&e, fmin(r[0].margin, r[1].margin)));
  }
  cJSON *moved = moved_between(d, s->arena);
  if (s->a->value[OPT_JSON]) {
    compare_json(s, d, r, both ? &e : NULL, verdict, moved);
  } else {
    compare_text(d, r, both ? &e : NULL, verdict, moved);
  }
  return CLI_YES;
}

static int results_compare(session *s) {
  if (s->a->n_positional != 3) {
    cli_error("lawson results compare needs two IDs");
    return CLI_USAGE;
  }
  lw_run_data d[2] = {0};
  int code = load(s, s->a->positional[1], &d[0]);
  if (!code) code = load(s, s->a->positional[2], &d[1]);
  if (!code) code = compare_two(s, d);
  lw_run_data_free(&d[0]);
  lw_run_data_free(&d[1]);
  return code;
}

/* ---- export, import ---- */

typedef struct {
  lw_buf text;
  cJSON *list;
  bool judge;
} export_to;

static int export_one(session *s, const lw_run_data *d, void *ctx) {
  (void)s;
  export_to *e = ctx;
  if (e->list) {
    cJSON_AddItemToArray(e->list, lw_run_to_json(d));
  } else if (e->judge) {
    lw_run_to_judge_csv(d, &e->text);
  } else {
    lw_run_to_csv(d, e->text.len == 0, &e->text);
  }
  return CLI_YES;
}

static int results_export(session *s) {
  const char *format = s->a->value[OPT_FORMAT];
  bool json = !format || !strcmp(format, "json");
  export_to e = {.judge = !json && !strcmp(format, "judge")};
  if (e.judge && s->a->n_positional != 2) {
    cli_error("--format=judge takes one run");
    return CLI_USAGE;
  }
  cJSON *j = json ? cJSON_CreateObject() : NULL;
  if (j) {
    cJSON_AddStringToObject(j, "schema", "lawson.results/1");
    e.list = cJSON_AddArrayToObject(j, "runs");
  }
  int code = each_run(s, export_one, &e);
  if (!code && j) {
    char *text = cJSON_PrintUnformatted(j);
    lw_buf_printf(&e.text, "%s\n", text);
    cJSON_free(text);
  }
  if (!code) code = cli_product(s->a, lw_buf_cstr(&e.text), e.text.len);
  cJSON_Delete(j);
  lw_buf_free(&e.text);
  return code;
}

static int keep(session *s, lw_run_data *d, const char *file) {
  int64_t id;
  lw_status st = lw_store_add_all(s->store, d, &id);
  if (lw_status_code(st) == LW_ALREADY_EXISTS && d->run.uid) {
    lw_status_free(st);
    cli_note("%s: run %s is here already, and stays as it is", file,
             d->run.uid);
    return CLI_YES;
  }
  if (st) return cli_fail(st);
  printf("run %lld: %s\n", (long long)id, d->run.title);
  return CLI_YES;
}

static int import_json(session *s, const char *text, const char *file) {
  cJSON *j = cJSON_Parse(text);
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(j, "runs");
  const cJSON *schema = cJSON_GetObjectItemCaseSensitive(j, "schema");
  int code = CLI_YES;
  if (!cJSON_IsArray(list) || !cJSON_IsString(schema) ||
      strcmp(schema->valuestring, "lawson.results/1")) {
    cli_error("%s: not an export of lawson.results/1", file);
    code = CLI_BAD_INPUT;
  }
  const cJSON *one;
  if (!code) {
    cJSON_ArrayForEach(one, list) {
      lw_run_data d;
      lw_status st = lw_run_from_json(one, s->arena, &d);
      code =
          st ? cli_fail(lw_status_annotate(st, "%s", file)) : keep(s, &d, file);
      lw_run_data_free(&d);
      if (code) break;
    }
  }
  cJSON_Delete(j);
  return code;
}

static lw_status summarise(session *s, lw_run_data *d) {
  lw_run_results r;
  LW_TRY(lw_run_results_of(d, &r));
  cJSON *j = lw_run_results_json(d, &r);
  char *text = cJSON_PrintUnformatted(j);
  d->run.summary = lw_arena_strdup(s->arena, text, strlen(text));
  cJSON_free(text);
  cJSON_Delete(j);
  return NULL;
}

static int import_csv(session *s, const char *text, size_t len,
                      const char *file) {
  double margin;
  int code = cli_fraction(s->a, OPT_MARGIN, 0.03, 0.99, &margin);
  if (code) return code;
  lw_timings t;
  lw_judgement v;
  lw_status st = lw_timings_parse(text, file, &t);
  if (!st) {
    st = lw_judge(&t, 0.05, margin, &v);
    if (st) st = lw_status_annotate(st, "%s", file);
  }
  if (!st) {
    lw_run_data d;
    lw_run_from_timings(&t, file, lw_hash_bytes(text, len, 0), margin, s->arena,
                        &d);
    st = summarise(s, &d);
    if (!st) code = keep(s, &d, file);
    lw_run_data_free(&d);
  }
  lw_vec_free(&t);
  return st ? cli_fail(st) : code;
}

static int results_import(session *s) {
  if (s->a->n_positional < 2) {
    cli_error("lawson results import needs a file");
    return CLI_USAGE;
  }
  int code = CLI_YES;
  for (int k = 1; k < s->a->n_positional && !code; k++) {
    const char *file = s->a->positional[k];
    char *text;
    size_t len;
    lw_status st = lw_file_read(file, &text, &len);
    if (st) return cli_fail(st);
    bool json = text[strspn(text, " \t\r\n")] == '{';
    code = json ? import_json(s, text, file) : import_csv(s, text, len, file);
    free(text);
  }
  return code;
}

/* ---- page ---- */

static int page_one(session *s, const lw_run_data *d, void *ctx) {
  (void)s;
  lw_status st = lw_results_page_add(ctx, d);
  return st ? cli_fail(st) : CLI_YES;
}

static int results_page(session *s) {
  const char *folder = s->a->value[OPT_OUTPUT];
  if (!folder) {
    cli_error("lawson results page needs -o DIR");
    return CLI_USAGE;
  }
  lw_results_page *p;
  lw_status st = lw_results_page_new(folder, &p);
  if (st) return cli_fail(st);
  int code = each_run(s, page_one, p);
  st = code ? NULL : lw_results_page_end(p);
  lw_results_page_free(p);
  if (st) return cli_fail(st);
  if (!code) printf("%s/index.html\n", folder);
  return code;
}

/* ---- */

static const struct {
  const char *name;
  int (*run)(session *s);
} verbs[] = {{"list", results_list},       {"show", results_show},
             {"compare", results_compare}, {"export", results_export},
             {"import", results_import},   {"page", results_page}};

static int unknown_verb(const char *name) {
  const char *names[8];
  size_t n = sizeof verbs / sizeof *verbs;
  for (size_t k = 0; k < n; k++) names[k] = verbs[k].name;
  const char *near = lw_nearest_name(name, names, n);
  cli_error(
      "lawson results: unknown '%s'%s%s%s (list, show, compare, export, "
      "import, page)",
      name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
  return CLI_USAGE;
}

int cli_run_results(const cli_args *a) {
  int (*run)(session *s) = NULL;
  for (size_t k = 0; k < sizeof verbs / sizeof *verbs; k++)
    if (!strcmp(verbs[k].name, a->positional[0])) run = verbs[k].run;
  if (!run) return unknown_verb(a->positional[0]);
  session s = {.a = a, .arena = lw_arena_new()};
  lw_buf path = {0};
  lw_status st = lw_store_path(a->value[OPT_DB], &path);
  if (!st) st = lw_store_open(lw_buf_cstr(&path), &s.store);
  int code = st ? cli_fail(st) : run(&s);
  lw_buf_free(&path);
  lw_store_close(s.store);
  lw_arena_free(s.arena);
  return code;
}
