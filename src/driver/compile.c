/* Clone, check, passes, plan, code: the whole road in one place. */
#include <string.h>
#include <time.h>

#include "base/deep.h"
#include "driver/choose.h"
#include "driver/driver.h"
#include "fusion/fusion.h"
#include "hlo/check.h"
#include "lib/rng.h"
#include "trace/override.h"

struct lw_compiled {
  lw_arena *arena;
  lw_module *module;
  const lw_shape *result; /* before the passes */
  lw_target *target;
  lw_trace *trace;
  lw_overrides overrides;
  lw_pipeline_report report;
  lw_plan *plan;
  lw_codegen *codegen;
  bool borrowed; /* the codegen */
  lw_kernel_code *code;
  lw_executable *executable;
  lw_compile_times times;
};

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double since_ms(double start) { return now_ms() - start; }

/* ---- passes ---- */

static lw_status fusion_steps(const char *strategy, const char *const **steps) {
  static const char *const known[] = {"none", "xla", "priority"};
  if (!strategy) strategy = "priority";
  *steps = lw_fusion_pipeline(strategy);
  if (*steps) return NULL;
  const char *near = lw_nearest_name(strategy, known, 3);
  return lw_error(LW_NOT_FOUND,
                  "unknown fusion strategy \"%s\"; did you mean \"%s\"? (none, "
                  "xla, priority)",
                  strategy, near ? near : "priority");
}

/* Computations that nobody calls any more. */
static void drop_unreachable(lw_module *m) {
  lw_arena *a = lw_arena_new();
  lw_map reached = {0};
  int32_t n;
  lw_comp **comps = lw_module_post_order(m, a, &n, true);
  for (int32_t k = 0; k < n; k++) lw_map_set_ptr(&reached, comps[k], comps[k]);
  for (lw_comp *c = m->first_comp, *next; c; c = next) {
    next = c->next;
    if (!lw_map_ptr(&reached, c)) lw_module_remove_comp(m, c);
  }
  lw_map_free(&reached);
  lw_arena_free(a);
}

static bool is_gpu(const lw_target *t) {
  return !strcmp(t->backend_name, "gpu");
}

/* XLA's own fusion pipeline, and nothing else. */
static lw_status run_only_fusion(lw_compiled *c, const lw_compile_options *o,
                                 const lw_pipeline_options *p) {
  if (!o->fusion || strcmp(o->fusion, "xla"))
    return lw_error(LW_FAILED_PRECONDITION,
                    "only XLA's own fusion pipeline runs alone: --only-fusion "
                    "goes with --fusion=xla");
  lw_pipeline steps = {"fusion", lw_fusion_only(is_gpu(c->target))};
  return lw_pipeline_run(c->module, &steps, p, c->arena, &c->report);
}

/* Compared with XLA's decisions: the default strategy, where nobody picks
 * passes, decisions or fuel. */
static bool is_guarded(const lw_compiled *c, const lw_compile_options *o) {
  bool priority = !o->fusion || !strcmp(o->fusion, "priority");
  return priority && !o->unguarded && !o->passes && !o->disable && !o->fuel &&
         !o->pass_options && !o->dump_passes && !o->no_alias &&
         !c->overrides.list.len;
}

static lw_plan_options plan_options(const lw_compiled *c,
                                    const lw_compile_options *o) {
  return (lw_plan_options){
      .kernel = {.l1_bytes = (int64_t)c->target->v.l1_bytes,
                 .l2_bytes = (int64_t)c->target->v.l2_bytes,
                 .flush_denormals = o->flush_denormals,
                 .fault = o->planted_fault},
      .no_alias = o->no_alias,
  };
}

static lw_status run_guarded(lw_compiled *c, const lw_compile_options *o,
                             const lw_pipeline_options *p) {
  lw_pipeline_options clean = *p;
  lw_plan_options plan = plan_options(c, o);
  lw_candidate mine = {.module = c->module, .trace = c->trace};
  lw_module *before;
  clean.fusion_steps = NULL;
  LW_TRY(lw_pipeline_run(c->module, &lw_pipeline_cpu, &clean, c->arena,
                         &c->report));
  LW_TRY(lw_module_clone(c->module, &before));
  lw_status st = lw_pipeline_run(c->module, &lw_pipeline_fusion, p, c->arena,
                                 &mine.report);
  if (!st) {
    lw_choose_fusion(before, p, &plan, c->arena, &mine);
    c->module = mine.module;
    c->trace = mine.trace;
    lw_pipeline_report_add(&c->report, &mine.report, c->arena);
  }
  lw_module_free(before);
  return st;
}

static lw_status run_passes(lw_compiled *c, const lw_compile_options *o) {
  int n;
  lw_pipeline_options p = {
      .extra = lw_fusion_passes(&n),
      .passes = o->passes,
      .disable = o->disable,
      .fuel = o->fuel,
      .pass_options = o->pass_options,
      .allow_inexact = o->allow_inexact,
      .dump_dir = o->dump_passes,
      .keep_fusions = o->keep_fusions,
      .verify_each = o->verify_each,
      .flush_denormals = o->flush_denormals,
      .target = c->target,
      .trace = c->trace,
      .overrides = &c->overrides,
  };
  p.n_extra = n;
  if (o->only_fusion) return run_only_fusion(c, o, &p);
  LW_TRY(fusion_steps(o->fusion, &p.fusion_steps));
  if (is_gpu(c->target) && o->fusion && !strcmp(o->fusion, "xla"))
    p.fusion_steps = lw_fusion_only(true);
  if (is_gpu(c->target) && (!o->fusion || !strcmp(o->fusion, "priority")))
    p.fusion_steps = lw_fusion_own_gpu();
  if (is_guarded(c, o))
    LW_TRY(run_guarded(c, o, &p));
  else
    LW_TRY(
        lw_pipeline_run(c->module, &lw_pipeline_cpu, &p, c->arena, &c->report));
  drop_unreachable(c->module);
  return NULL;
}

/* ---- plan and code ---- */

static lw_status make_plan(lw_compiled *c, const lw_compile_options *o) {
  lw_plan_options p = plan_options(c, o);
  return lw_plan_build(c->arena, c->module, &p, &c->plan);
}

static lw_status make_code(lw_compiled *c, const lw_compile_options *o) {
  lw_codegen_options g = {.isa = o->isa ? o->isa : "native",
                          .opt_level = o->opt_level ? o->opt_level : 2,
                          .keep_llvm = o->keep_llvm,
                          .keep_asm = o->keep_asm};
  const lw_plan *p = c->plan;
  c->borrowed = o->codegen != NULL;
  c->codegen = o->codegen;
  if (!c->codegen) LW_TRY(lw_codegen_new(&g, &c->codegen));
  c->code = LW_NEW_ARRAY(c->arena, lw_kernel_code, p->n_kernels + 1);
  LW_TRY(lw_codegen_compile(c->codegen, p->kernels, p->n_kernels, c->code));
  return lw_executable_new(p, c->code, &c->executable);
}

/* ---- the road ---- */

typedef enum { TO_MODULE, TO_PLAN, TO_CODE } goal;

static lw_status travel(lw_compiled *c, const lw_module *m,
                        const lw_compile_options *o, goal to) {
  double start = now_ms();
  c->overrides.arena = c->arena;
  LW_TRY(lw_overrides_add(&c->overrides, o->force_edges, true));
  LW_TRY(lw_overrides_add(&c->overrides, o->forbid_edges, false));
  LW_TRY(lw_target_load(o->target ? o->target : "cpu", &c->target));
  if (to != TO_MODULE && is_gpu(c->target))
    return lw_error(LW_UNAVAILABLE,
                    "target %s tells decisions (lawson opt, lawson explain); "
                    "Lawson makes no code for it",
                    c->target->name);
  LW_TRY(lw_module_clone(m, &c->module));
  if (!o->only_fusion) lw_rng_number(c->module);
  if (m->entry && m->entry->root) c->result = m->entry->root->shape;
  LW_TRY(lw_check_status(c->module, (lw_check_options){0}, NULL));
  lw_status st = run_passes(c, o);
  if (!st) st = lw_overrides_status(&c->overrides, c->trace);
  c->times.passes_ms = since_ms(start);
  if (st || to == TO_MODULE) return st;
  start = now_ms();
  LW_TRY(make_plan(c, o));
  c->times.plan_ms = since_ms(start);
  if (to == TO_PLAN) return NULL;
  start = now_ms();
  st = make_code(c, o);
  c->times.code_ms = since_ms(start);
  return st;
}

static lw_status start(const lw_module *m, const lw_compile_options *options,
                       goal to, lw_compiled **out) {
  static const lw_compile_options defaults = {0};
  *out = NULL;
  lw_compiled *c = calloc(1, sizeof *c);
  if (!c) lw_oom(sizeof *c);
  c->arena = lw_arena_new();
  c->trace = lw_trace_new();
  lw_status st = travel(c, m, options ? options : &defaults, to);
  if (st) {
    lw_compiled_free(c);
    return lw_status_annotate(st, "module %s", m->name);
  }
  *out = c;
  return NULL;
}

typedef struct {
  const lw_module *m;
  const lw_compile_options *options;
  goal to;
  lw_compiled **out;
} request;

static lw_status start_here(void *arg) {
  request *r = arg;
  return start(r->m, r->options, r->to, r->out);
}

static lw_status start_deep(const lw_module *m,
                            const lw_compile_options *options, goal to,
                            lw_compiled **out) {
  return lw_run_deep(start_here, &(request){m, options, to, out});
}

lw_status lw_compile(const lw_module *m, const lw_compile_options *options,
                     lw_compiled **out) {
  return start_deep(m, options, TO_CODE, out);
}

lw_status lw_optimize(const lw_module *m, const lw_compile_options *options,
                      lw_compiled **out) {
  return start_deep(m, options, TO_MODULE, out);
}

lw_status lw_compile_to_plan(const lw_module *m,
                             const lw_compile_options *options,
                             lw_compiled **out) {
  return start_deep(m, options, TO_PLAN, out);
}

void lw_compiled_free(lw_compiled *c) {
  if (!c) return;
  lw_executable_free(c->executable);
  if (c->codegen && !c->borrowed) lw_codegen_free(c->codegen);
  if (c->module) lw_module_free(c->module);
  lw_trace_free(c->trace);
  lw_overrides_free(&c->overrides);
  if (c->target) lw_target_free(c->target);
  lw_arena_free(c->arena);
  free(c);
}

const lw_module *lw_compiled_module(const lw_compiled *c) { return c->module; }
const lw_shape *lw_compiled_result_shape(const lw_compiled *c) {
  return c->result;
}
const lw_plan *lw_compiled_plan(const lw_compiled *c) { return c->plan; }
const lw_codegen *lw_compiled_codegen(const lw_compiled *c) {
  return c->codegen;
}
const lw_pipeline_report *lw_compiled_report(const lw_compiled *c) {
  return &c->report;
}
const lw_trace *lw_compiled_trace(const lw_compiled *c) { return c->trace; }
const lw_target *lw_compiled_target(const lw_compiled *c) { return c->target; }

lw_executable *lw_compiled_executable(lw_compiled *c) { return c->executable; }
lw_compile_times lw_compiled_times(const lw_compiled *c) { return c->times; }
double lw_compiled_ms(const lw_compiled *c) {
  return c->times.passes_ms + c->times.plan_ms + c->times.code_ms;
}
