/* fusion_tool STRATEGY FILE [report|print|trace|phases|bits]: runs one
 * strategy's fusion passes over a module text, for the parity script, the
 * corpus comparison and the lit tests. `plain` as the strategy runs nothing.
 * With LW_FULL set the whole CPU pipeline runs, with the strategy's passes in
 * their place. LW_TARGET names the target (default: the generic one, so that
 * decisions are the same on every machine). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "fusion/fusion.h"
#include "fusion/report.h"
#include "hlo/print.h"
#include "interp/interp.h"
#include "kernel/kernel.h"
#include "passes/manager.h"
#include "reader/reader.h"
#include "target/target.h"
#include "trace/trace.h"

/* A strategy, or pass names joined by commas; FULL: the whole CPU pipeline with
 * the strategy inside. */
static lw_status run_all(lw_module *m, const char *what, bool full,
                         const lw_target *t, lw_trace *trace) {
  int n;
  lw_pipeline_options o = {
      .target = t, .trace = trace, .pass_options = getenv("LW_OPTIONS")};
  static const char *const empty[] = {NULL};
  o.extra = lw_fusion_passes(&n);
  o.n_extra = n;
  lw_pipeline p = {"fusion", lw_fusion_pipeline(what)};
  if (full) {
    o.fusion_steps = p.steps ? p.steps : empty;
    p = lw_pipeline_cpu;
  } else if (!p.steps) {
    p.steps = empty;
    o.passes = strcmp(what, "plain") ? what : NULL;
  }
  lw_arena *a = lw_arena_new();
  lw_status s = lw_pipeline_run(m, &p, &o, a, NULL);
  lw_arena_free(a);
  return s;
}

/* One line a fusion whose kernel has several phases, or none; then a sum. */
static void show_phases(const lw_module *m, lw_buf *b) {
  int kernels = 0, many = 0, failed = 0;
  lw_kernel_options o = {.l1_bytes = 32768, .l2_bytes = 1 << 20};
  for (const lw_comp *c = m->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next) {
      lw_kernel *k = NULL;
      if (i->opcode != LW_OP_FUSION) continue;
      lw_arena *a = lw_arena_new();
      lw_status s = lw_kernel_build(a, i, &o, &k);
      kernels++;
      if (s) {
        failed++;
        lw_buf_printf(b, "%s: %s\n", i->name, lw_status_message(s));
        lw_status_free(s);
      } else if (k->n_phases > 1) {
        many++;
        lw_buf_printf(b, "%s: %d phases\n", i->name, k->n_phases);
      }
      lw_arena_free(a);
    }
  lw_buf_printf(b, "kernels=%d several_phases=%d failed=%d\n", kernels, many,
                failed);
}

/* ---- bits: the module before and after, by the interpreter ---- */

static void fill(lw_literal *l, uint64_t *seed) {
  for (int32_t k = 0; k < l->n_elems; k++) fill(l->elems[k], seed);
  for (int64_t k = 0; lw_shape_is_array(l->shape) && k < l->shape->elements;
       k++) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    double u = (double)(*seed >> 40) / (double)(1 << 24);
    lw_prim t = l->shape->type;
    if (lw_prim_is_int(t) || t == LW_PRED) {
      lw_literal_set_int(l, k, (int64_t)(u * (t == LW_PRED ? 2 : 4)));
    } else {
      lw_literal_set_f64(l, k, 0, 3 * u - 1);
      if (lw_prim_is_complex(t)) lw_literal_set_f64(l, k, 1, 1 - u);
    }
  }
}

static lw_status run_bits(const lw_module *before, const lw_module *after,
                          lw_arena *a) {
  int32_t n = (int32_t)before->entry->params.len;
  lw_literal **args = LW_NEW_ARRAY(a, lw_literal *, n + 1), *x, *y;
  uint64_t seed = 42;
  for (int32_t k = 0; k < n; k++) {
    LW_TRY(lw_literal_new(a, before->entry->params.data[k]->shape, &args[k]));
    fill(args[k], &seed);
  }
  const lw_literal *const *v = (const lw_literal *const *)args;
  LW_TRY(lw_interp_run(before, v, n, NULL, a, &x));
  LW_TRY(lw_interp_run(after, v, n, NULL, a, &y));
  bool same = lw_literal_equal(x, y);
  puts(same ? "bits: equal" : "bits: DIFFERENT");
  return same ? NULL : lw_error(LW_INTERNAL, "bits differ");
}

static void show(const lw_module *m, const lw_trace *trace, const char *what) {
  lw_buf b = {0};
  lw_fusion_report r = lw_fusion_report_of(m);
  if (!strcmp(what, "report")) lw_fusion_report_print(&b, &r);
  if (!strcmp(what, "print")) lw_module_print(&b, m, &lw_print_default);
  if (!strcmp(what, "phases")) show_phases(m, &b);
  if (!strcmp(what, "trace")) lw_trace_print(&b, trace);
  fputs(lw_buf_cstr(&b), stdout);
  lw_buf_free(&b);
}

// What one run holds; freed whole however far the run came.
typedef struct {
  char *text;
  lw_context *ctx;
  lw_module *m, *before;
  lw_target *t;
  lw_trace *trace;
  lw_arena *scratch;
} job;

static lw_status work(job *j, char **argv, const char *what) {
  size_t len;
  LW_TRY(lw_file_read(argv[2], &j->text, &len));
  j->ctx = lw_context_new();
  j->scratch = lw_arena_new();
  LW_TRY(lw_read_text(j->ctx, j->text, len, argv[2], NULL, &j->m));
  const char *target = getenv("LW_TARGET");
  LW_TRY(lw_target_load(target ? target : "cpu-generic", &j->t));
  j->trace = lw_trace_new();
  LW_TRY(lw_module_clone(j->m, &j->before));
  clock_t start = clock();
  LW_TRY(run_all(j->m, argv[1], getenv("LW_FULL") != NULL, j->t, j->trace));
  fprintf(stderr, "%.1f ms\n",
          (double)(clock() - start) * 1000 / CLOCKS_PER_SEC);
  show(j->m, j->trace, what);
  return strcmp(what, "bits") ? NULL : run_bits(j->before, j->m, j->scratch);
}

static void job_free(job *j) {
  if (j->trace) lw_trace_free(j->trace);
  if (j->t) lw_target_free(j->t);
  if (j->before) lw_module_free(j->before);
  if (j->m) lw_module_free(j->m);
  if (j->ctx) lw_context_free(j->ctx);
  if (j->scratch) lw_arena_free(j->scratch);
  free(j->text);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  job j = {0};
  lw_status s = work(&j, argv, argc > 3 ? argv[3] : "report");
  if (s) fprintf(stderr, "%s\n", lw_status_message(s));
  job_free(&j);
  int rc = s ? 1 : 0;
  lw_status_free(s);
  return rc;
}
