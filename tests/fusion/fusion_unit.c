/* Shared by the fusion tests. */
#include "unit.h"

#include "fusion_unit.h"

#include <string.h>

#include "hlo/print.h"
#include "interp/interp.h"
#include "passes/manager.h"
#include "reader/reader.h"

static void check(lw_status s) {
  if (s) print_error("%s\n", lw_status_message(s));
  assert_null(s);
}

fused fuse_text(const char *text, const char *passes, const char *target) {
  return fuse_edges(text, passes, target, NULL, NULL);
}

fused fuse_edges(const char *text, const char *passes, const char *target,
                 const char *force, const char *forbid) {
  fused f = {.ctx = lw_context_new(),
             .trace = lw_trace_new(),
             .arena = lw_arena_new()};
  f.overrides.arena = f.arena;
  check(lw_overrides_add(&f.overrides, force, true));
  check(lw_overrides_add(&f.overrides, forbid, false));
  check(lw_read_text(f.ctx, text, strlen(text), "test", NULL, &f.m));
  check(lw_target_load(target, &f.target));
  lw_pipeline_options o = {.target = f.target, .trace = f.trace};
  static const char *const none[] = {NULL};
  lw_overrides overrides = f.overrides; /* f moves when it is returned */
  o.overrides = &overrides;
  int n;
  o.extra = lw_fusion_passes(&n);
  o.n_extra = n;
  lw_pipeline p = {"test", lw_fusion_pipeline(passes)};
  if (!p.steps) {
    p.steps = none;
    o.passes = passes;
  }
  lw_arena *a = lw_arena_new();
  lw_pipeline_report r = {0};
  check(lw_pipeline_run(f.m, &p, &o, a, &r));
  for (int32_t k = 0; k < r.n; k++) f.moved |= r.v[k].verdict == LW_PASS_MOVED;
  lw_arena_free(a);
  f.report = lw_fusion_report_of(f.m);
  f.overrides = overrides;
  return f;
}

void fused_free(fused *f) {
  lw_module_free(f->m);
  lw_overrides_free(&f->overrides);
  lw_arena_free(f->arena);
  lw_trace_free(f->trace);
  lw_target_free(f->target);
  lw_context_free(f->ctx);
}

lw_buf fused_print(const fused *f) {
  lw_buf b = {0};
  lw_module_print(&b, f->m, &lw_print_default);
  return b;
}

static void fill(lw_literal *l, uint64_t *seed) {
  for (int64_t k = 0; k < l->shape->elements; k++) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    double u = (double)(*seed >> 40) / (double)(1 << 24);
    if (lw_prim_is_float(l->shape->type))
      lw_literal_set_f64(l, k, 0, 3 * u - 1);
    else
      lw_literal_set_int(l, k, (int64_t)(u * 2));
  }
}

void assert_same_bits(const char *text, const fused *f) {
  lw_module *m;
  check(lw_read_text(f->ctx, text, strlen(text), "test", NULL, &m));
  lw_arena *a = lw_arena_new();
  int32_t n = (int32_t)m->entry->params.len;
  lw_literal **args = LW_NEW_ARRAY(a, lw_literal *, n + 1), *x, *y;
  uint64_t seed = 7;
  for (int32_t k = 0; k < n; k++) {
    check(lw_literal_new(a, m->entry->params.data[k]->shape, &args[k]));
    fill(args[k], &seed);
  }
  const lw_literal *const *v = (const lw_literal *const *)args;
  check(lw_interp_run(m, v, n, NULL, a, &x));
  check(lw_interp_run(f->m, v, n, NULL, a, &y));
  assert_true(lw_literal_equal(x, y));
  lw_arena_free(a);
  lw_module_free(m);
}

bool has_reason(const lw_trace *t, const char *code) {
  for (size_t k = 0; k < lw_trace_count(t); k++)
    if (!strcmp(lw_reason_table[lw_trace_at(t, k)->reason].code, code))
      return true;
  return false;
}
