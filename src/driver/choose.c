/* Which strategy's result --fusion=priority hands on.
 *
 * A greedy ranking by time can end with more memory than XLA's rules, and a
 * model can be beaten at its own game by a rule it does not know. So both are
 * decided, both measured with one model and one planner, and the rule is: of
 * the results that are worse than XLA's neither in time nor in peak, the
 * first. XLA's own result always qualifies, so the
 * choice is never worse than it in either.
 *
 * The candidates, in order: priority (on a GPU: XLA's pipeline with a second
 * round of priority fusion over what multi-output fusion left); the same with
 * ever less multi-output fusion, which keeps several results alive at once;
 * XLA's. Where a faster result was left for its memory the record says for how
 * many bytes. */
#include "driver/choose.h"

#include <math.h>
#include <string.h>

#include "fusion/fusion.h"

/* PAGE: an arena that is larger by less takes no more than one page of the
 * system, and scalars lie in 64 bytes each: no reason to give time up. */
enum { MAX_BODY = 1000 /* instructions of a fusion */, PAGE = 4096 };

static void candidate_free(lw_candidate *c) {
  if (c->module) lw_module_free(c->module);
  lw_trace_free(c->trace);
  *c = (lw_candidate){0};
}

/* The plan's kernels are built by recursion over a body, and comparing such
 * giants would cost more than it tells. */
static bool has_giant(const lw_module *m) {
  for (const lw_comp *c = m->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next)
      if (i->opcode == LW_OP_FUSION &&
          lw_inst_comp(i, LW_ATTR_CALLS)->n_insts > MAX_BODY)
        return true;
  return false;
}

static lw_status try_steps(const lw_module *before,
                           const lw_pipeline_options *options,
                           const lw_plan_options *plan, lw_arena *a,
                           const char *const *steps, lw_candidate *out) {
  lw_pipeline_options p = *options;
  p.fusion_steps = steps;
  p.dump_dir = NULL;
  p.trace = out->trace = lw_trace_new();
  LW_TRY(lw_module_clone(before, &out->module));
  LW_TRY(
      lw_pipeline_run(out->module, &lw_pipeline_fusion, &p, a, &out->report));
  out->worth = (lw_worth){INFINITY, INT64_MAX};
  if (has_giant(out->module)) return NULL;
  return lw_worth_of(out->module, p.target, plan, &out->worth);
}

static bool is_gpu(const lw_target *t) {
  return !strcmp(t->backend_name, "gpu");
}

static bool no_worse(lw_worth a, lw_worth b) {
  bool smaller = a.peak_bytes <= b.peak_bytes;
  return a.time_ns <= b.time_ns &&
         (smaller || a.peak_bytes - b.peak_bytes < PAGE);
}

/* first was faster and larger than what is taken. */
static void record(const lw_candidate *taken, const lw_candidate *first,
                   const char *name) {
  const lw_comp *entry = taken->module->entry;
  lw_worth t = taken->worth, f = first->worth;
  bool memory = t.peak_bytes < f.peak_bytes;
  lw_arena *a = lw_arena_new();
  lw_decision d = {
      .pass = "fusion-choice",
      .computation = entry->name,
      .producer = entry->name,
      .consumer = "",
      .gate = LW_GATE_PROFITABILITY,
      .yes = true,
      .reason = memory ? LW_REASON_SAVES_MEMORY : LW_REASON_SAVES_TIME,
      .unfused_ns = f.time_ns,
      .fused_ns = t.time_ns,
      .saved_ns = f.time_ns - t.time_ns,
      .bytes = memory ? f.peak_bytes - t.peak_bytes : 0,
      .flip = memory ? "a lower peak of the first choice, by bytes"
                     : "a faster first choice"};
  d.text = lw_arena_printf(
      a, "%s: %.0f ns, %lld bytes at peak, for %.0f ns, %lld bytes", name,
      t.time_ns, (long long)t.peak_bytes, f.time_ns, (long long)f.peak_bytes);
  lw_trace_add(taken->trace, &d);
  lw_arena_free(a);
}

static void take(lw_candidate *first, lw_candidate *other, const char *name) {
  record(other, first, name);
  candidate_free(first);
  *first = *other;
  *other = (lw_candidate){0};
}

/* Multi-output fusion up to its n-th join, for falling n. */
static lw_status try_lean(const lw_module *before, const lw_pipeline_options *p,
                          const lw_plan_options *plan, lw_arena *a,
                          const lw_candidate *xla, lw_candidate *lean) {
  static const char *const fuel[] = {
      "multi-output-fusion=32", "multi-output-fusion=8",
      "multi-output-fusion=2", "multi-output-fusion=0"};
  bool gpu = is_gpu(p->target);
  if (gpu) return try_steps(before, p, plan, a, lw_fusion_lean(true), lean);
  for (size_t k = 0; k < sizeof fuel / sizeof *fuel; k++) {
    lw_pipeline_options less = *p;
    less.fuel = fuel[k];
    candidate_free(lean);
    LW_TRY(try_steps(before, &less, plan, a, lw_fusion_pipeline("priority"),
                     lean));
    if (no_worse(lean->worth, xla->worth)) return NULL;
  }
  return NULL;
}

static lw_status choose(const lw_module *before, const lw_pipeline_options *p,
                        const lw_plan_options *plan, lw_arena *a,
                        lw_candidate *first, lw_candidate *xla,
                        lw_candidate *lean) {
  bool gpu = is_gpu(p->target);
  const char *const *rules =
      gpu ? lw_fusion_only(true) : lw_fusion_pipeline("xla");
  if (has_giant(first->module)) return NULL;
  LW_TRY(lw_worth_of(first->module, p->target, plan, &first->worth));
  LW_TRY(try_steps(before, p, plan, a, rules, xla));
  if (has_giant(xla->module)) return NULL;
  if (no_worse(first->worth, xla->worth)) return NULL;
  LW_TRY(try_lean(before, p, plan, a, xla, lean));
  if (no_worse(lean->worth, xla->worth))
    take(first, lean, "less multi-output-fusion");
  else
    take(first, xla, "xla");
  return NULL;
}

/* What has no plan (several devices, an unknown library) is not compared: the
 * first result stands, and whoever plans it is told why. */
void lw_choose_fusion(const lw_module *before, const lw_pipeline_options *p,
                      const lw_plan_options *plan, lw_arena *a,
                      lw_candidate *first) {
  lw_candidate xla = {0}, lean = {0};
  lw_status st = choose(before, p, plan, a, first, &xla, &lean);
  if (st) lw_status_free(st);
  candidate_free(&xla);
  candidate_free(&lean);
}
