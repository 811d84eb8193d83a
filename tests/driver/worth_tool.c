/* worth_tool TARGET FILE [OPTION]: modelled time (ns) and planned peak (bytes)
 * of the guarded default strategy, of the same unguarded, of XLA's decisions;
 * a hash of the default's records and module, and what the guard chose.
 *
 *   time peak  own_time own_peak  xla_time xla_peak  hash  choice */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "driver/choose.h"
#include "driver/driver.h"
#include "hlo/print.h"

static uint64_t hash_of(const lw_compiled *c) {
  lw_buf b = {0};
  lw_trace_print(&b, lw_compiled_trace(c));
  lw_module_print(&b, lw_compiled_module(c), &lw_print_default);
  uint64_t h = 1469598103934665603u;
  for (size_t k = 0; k < b.len; k++)
    h = (h ^ (unsigned char)b.data[k]) * 1099511628211u;
  lw_buf_free(&b);
  return h;
}

static const char *choice_of(const lw_compiled *c) {
  const lw_trace *t = lw_compiled_trace(c);
  size_t n = lw_trace_count(t);
  const lw_decision *d = n ? lw_trace_at(t, n - 1) : NULL;
  return d && !strcmp(d->pass, "fusion-choice") ? d->text : "priority";
}

static lw_status measure(const lw_module *m, const lw_compile_options *o,
                         lw_worth *w, lw_compiled **c) {
  LW_TRY(lw_optimize(m, o, c));
  const lw_target *t = lw_compiled_target(*c);
  lw_plan_options plan = {.kernel = {.l1_bytes = (int64_t)t->v.l1_bytes,
                                     .l2_bytes = (int64_t)t->v.l2_bytes}};
  return lw_worth_of(lw_compiled_module(*c), t, &plan, w);
}

static lw_status report(const lw_module *m, const char *target) {
  const char *strategy[] = {"priority", "priority", "xla"};
  uint64_t hash = 0;
  lw_buf choice = {0};
  for (int k = 0; k < 3; k++) {
    lw_compile_options o = {
        .fusion = strategy[k], .target = target, .unguarded = k == 1};
    lw_compiled *c = NULL;
    lw_worth w;
    lw_status st = measure(m, &o, &w, &c);
    if (!st) printf("%.1f %lld ", w.time_ns, (long long)w.peak_bytes);
    if (!st && k == 0) {
      hash = hash_of(c);
      lw_buf_str(&choice, choice_of(c));
    }
    lw_compiled_free(c);
    if (st) {
      lw_buf_free(&choice);
      return st;
    }
  }
  printf("%016llx %s\n", (unsigned long long)hash, lw_buf_cstr(&choice));
  lw_buf_free(&choice);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  lw_context *ctx = lw_context_new();
  lw_module *m = NULL;
  lw_status st = lw_load_module(ctx, argv[2], NULL, NULL, &m);
  if (!st) st = report(m, argv[1]);
  int code = st != NULL;
  if (st) {
    fprintf(stderr, "%s\n", lw_status_message(st));
    lw_status_free(st);
  }
  if (m) lw_module_free(m);
  lw_context_free(ctx);
  return code;
}
