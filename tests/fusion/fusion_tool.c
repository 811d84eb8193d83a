/* fusion_tool STRATEGY FILE [report|print|trace|names]: runs one strategy's fusion
 * passes over a module text, for the parity script, the corpus comparison and
 * the lit tests. `plain` as the strategy runs nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "fusion/fusion.h"
#include "fusion/report.h"
#include "hlo/print.h"
#include "reader/reader.h"
#include "target/target.h"
#include "trace/trace.h"

static const lw_pass *find(const char *name) {
  int n;
  const lw_pass *const *all = lw_fusion_passes(&n);
  for (int k = 0; k < n; k++)
    if (!strcmp(all[k]->name, name)) return all[k];
  return NULL;
}

static lw_status run_one(lw_module *m, const char *name, const lw_target *t,
                         lw_trace *trace) {
  const lw_pass *p = find(name);
  lw_map stats = {0};
  lw_pass_env env = {.target = t, .trace = trace, .fuel = -1, .pass = p,
                     .stats = &stats};
  bool changed = false;
  if (!p) return lw_error(LW_NOT_FOUND, "no fusion pass %s", name);
  env.scratch = lw_arena_new();
  lw_status s = p->run(m, &env, &changed);
  lw_arena_free(env.scratch);
  lw_map_free(&stats);
  return s;
}

/* A strategy, or pass names joined by commas. */
static lw_status run_all(lw_module *m, char *what, const lw_target *t,
                         lw_trace *trace) {
  const char *const *steps = lw_fusion_pipeline(what);
  if (!strcmp(what, "plain")) return NULL;
  for (; steps && *steps; steps++) LW_TRY(run_one(m, *steps, t, trace));
  if (lw_fusion_pipeline(what)) return NULL;
  for (char *s = strtok(what, ","); s; s = strtok(NULL, ","))
    LW_TRY(run_one(m, s, t, trace));
  return NULL;
}

static void show(const lw_module *m, const lw_trace *trace, const char *what) {
  lw_buf b = {0};
  lw_fusion_report r = lw_fusion_report_of(m);
  if (!strcmp(what, "report")) lw_fusion_report_print(&b, &r);
  if (!strcmp(what, "print")) lw_module_print(&b, m, &lw_print_default);
  if (!strcmp(what, "trace")) lw_trace_print(&b, trace);
  fputs(lw_buf_cstr(&b), stdout);
  lw_buf_free(&b);
}

static lw_status work(char **argv, const char *what) {
  char *text;
  size_t len;
  lw_module *m;
  lw_target *t;
  LW_TRY(lw_file_read(argv[2], &text, &len));
  lw_context *ctx = lw_context_new();
  LW_TRY(lw_read_text(ctx, text, len, argv[2], NULL, &m));
  const char *target = getenv("LW_TARGET");
  LW_TRY(lw_target_load(target ? target : "cpu-generic", &t));
  lw_trace *trace = lw_trace_new();
  clock_t start = clock();
  LW_TRY(run_all(m, argv[1], t, trace));
  fprintf(stderr, "%.1f ms\n", (double)(clock() - start) * 1000 / CLOCKS_PER_SEC);
  show(m, trace, what);
  lw_trace_free(trace);
  lw_target_free(t);
  lw_module_free(m);
  lw_context_free(ctx);
  free(text);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  lw_status s = work(argv, argc > 3 ? argv[3] : "report");
  if (s) fprintf(stderr, "%s\n", lw_status_message(s));
  return s ? 1 : 0;
}
