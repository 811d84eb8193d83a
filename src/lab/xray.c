/* The two roads to an x-ray, and its short forms; see xray.h. */
#include "lab/xray.h"

#include <string.h>

#include "lab/xray_impl.h"

uint64_t xray_hash(const char *name) {
  return lw_hash_bytes(name, strlen(name), 11);
}

int32_t xray_value_named(const lw_xray *x, const char *name) {
  const uint64_t *v = name ? lw_map_get(&x->value_at, xray_hash(name)) : NULL;
  return v ? (int32_t)*v - 1 : -1;
}

const char *xray_keep(lw_xray *x, const char *s) {
  return lw_arena_strdup(x->arena, s, strlen(s));
}

const char *xray_shape(lw_xray *x, const lw_shape *s) {
  lw_buf b = {0};
  lw_shape_print(&b, s, false);
  const char *text = xray_keep(x, lw_buf_cstr(&b));
  lw_buf_free(&b);
  return text;
}

static lw_xray *new_xray(void) {
  lw_xray *x = calloc(1, sizeof *x);
  if (!x) lw_oom(sizeof *x);
  x->arena = lw_arena_new();
  return x;
}

static void free_layout(xray_layout *l) { lw_vec_free(&l->curves); }

void lw_xray_free(lw_xray *x) {
  if (!x) return;
  lw_explain_free(&x->e);
  lw_explain_free(&x->rules_explain);
  lw_compiled_free(x->planned);
  lw_compiled_free(x->unfused);
  lw_compiled_free(x->fused);
  lw_compiled_free(x->rules);
  lw_vec_free(&x->sources);
  lw_vec_free(&x->values);
  lw_vec_free(&x->nodes);
  lw_vec_free(&x->edges);
  lw_vec_free(&x->boxes);
  lw_vec_free(&x->comps);
  lw_vec_free(&x->text_before);
  lw_vec_free(&x->text_after);
  lw_map_free(&x->origin);
  lw_map_free(&x->value_at);
  lw_map_free(&x->value_of);
  lw_map_free(&x->node_of);
  lw_map_free(&x->box_of);
  lw_map_free(&x->caller);
  free_layout(&x->by_box);
  free_layout(&x->by_node);
  free_layout(&x->by_value);
  lw_arena_free(x->arena);
  free(x);
}

/* ---- the ends of both roads ---- */

static bool any_recorded(const lw_xray *x) {
  for (size_t k = 0; k < x->e.edges.len; k++)
    if (!x->support || x->support[k] == XRAY_RECORDED) return true;
  return !x->support;
}

static void finish(lw_xray *x) {
  x->report_before = lw_fusion_report_of(x->before);
  x->report_after = lw_fusion_report_of(x->after);
  x->recorded = any_recorded(x);
  xray_build(x);
  xray_list_lines(x);
}

/* The plan of the same module. Devices that we do not run on have none. */
static void make_plan(lw_xray *x, const lw_module *m,
                      const lw_compile_options *o) {
  if (!strcmp(x->machine->backend_name, "gpu")) {
    x->no_plan = "Lawson plans no memory for a GPU";
    return;
  }
  if (o->only_fusion) {
    x->no_plan = "with --only-fusion there is no plan";
    return;
  }
  lw_compile_options plain = *o;
  plain.dump_passes = NULL;
  lw_status st = lw_compile_to_plan(m, &plain, &x->planned);
  if (st)
    x->no_plan = xray_keep(x, lw_status_message(st));
  else
    x->plan = lw_compiled_plan(x->planned);
  lw_status_free(st);
}

/* ---- Lawson's own decisions ---- */

/* The module as the fusion passes meet it. */
static lw_status compile_unfused(lw_xray *x, const lw_module *m,
                                 const lw_compile_options *o) {
  x->before = m;
  if (o->only_fusion) return NULL;
  lw_compile_options plain = *o;
  plain.fusion = "none";
  plain.disable =
      lw_arena_printf(x->arena, "fusion-wrapper%s%s", o->disable ? "," : "",
                      o->disable ? o->disable : "");
  plain.fuel = plain.dump_passes = NULL;
  plain.force_edges = plain.forbid_edges = NULL;
  LW_TRY(lw_optimize(m, &plain, &x->unfused));
  x->before = lw_compiled_module(x->unfused);
  return NULL;
}

/* XLA:GPU's queue records the names that fusions get on the way: which value a
 * node is is found by what it computes. */
static void follow_gpu_record(lw_xray *x) {
  (void)xray_match(x);
  xray_follow_names(x);
}

static bool is_gpu(const lw_xray *x) {
  return !strcmp(x->machine->backend_name, "gpu");
}

static lw_status build_lawson(lw_xray *x, const lw_module *m,
                              const lw_compile_options *o) {
  LW_TRY(lw_explain_module(m, o, &x->fused, &x->e));
  x->after = lw_compiled_module(x->fused);
  x->machine = lw_compiled_target(x->fused);
  x->compiler = "lawson";
  x->target = x->e.target;
  x->strategy = x->e.strategy;
  LW_TRY(compile_unfused(x, m, o));
  make_plan(x, m, o);
  xray_list_values(x);
  if (is_gpu(x) && !strcmp(x->strategy, "xla")) follow_gpu_record(x);
  finish(x);
  return NULL;
}

lw_status lw_xray_lawson(const lw_module *m, const lw_compile_options *o,
                         lw_xray **out) {
  lw_xray *x = new_xray();
  lw_status st = build_lawson(x, m, o);
  *out = x;
  if (!st) return NULL;
  lw_xray_free(x);
  *out = NULL;
  return st;
}

/* ---- a pair ---- */

/* What the module after leaves in memory, and its walls: no gate is asked. */
static lw_status explain_after(lw_xray *x, const lw_module *after,
                               const char *target) {
  lw_compile_options o = {.fusion = "none",
                          .passes = "dce",
                          .keep_fusions = true,
                          .target = target};
  LW_TRY(lw_explain_module(after, &o, &x->fused, &x->e));
  x->after = lw_compiled_module(x->fused);
  x->machine = lw_compiled_target(x->fused);
  x->target = x->e.target;
  return NULL;
}

/* What XLA's rules, as we have them, say on the module before. */
static void ask_rules(lw_xray *x, const char *target) {
  lw_compile_options o = {
      .fusion = "xla", .only_fusion = true, .target = target};
  lw_status st = lw_explain_module(x->before, &o, &x->rules, &x->rules_explain);
  lw_status_free(st); /* rules that cannot read it are silent */
}

static lw_status build_pair(lw_xray *x, const lw_module *before,
                            const lw_module *after, const lw_xray_pair *p) {
  x->before = before;
  x->compiler = xray_keep(x, p->compiler ? p->compiler : "unknown");
  x->strategy = "as compiled";
  LW_TRY(explain_after(x, after, p->target));
  x->foreign = p->foreign_target != NULL;
  if (x->foreign) x->target = xray_keep(x, p->foreign_target);
  ask_rules(x, p->target);
  x->no_plan = "a dumped pair holds no plan of ours";
  xray_list_values(x);
  if (xray_match(x) == 0)
    return lw_error(LW_INVALID_ARGUMENT,
                    "%s and %s have no instruction in common; are they the "
                    "same program before and after?",
                    before->name, after->name);
  xray_infer(x);
  if (p->decisions) xray_read_decisions(x, p->decisions);
  finish(x);
  return NULL;
}

lw_status lw_xray_of_pair(const lw_module *before, const lw_module *after,
                          const lw_xray_pair *p, lw_xray **out) {
  lw_xray *x = new_xray();
  lw_status st = build_pair(x, before, after, p);
  *out = x;
  if (!st) return NULL;
  lw_xray_free(x);
  *out = NULL;
  return st;
}

/* ---- short forms ---- */

void lw_xray_lesson(lw_xray *x, const char *title, const char *text) {
  x->lesson_title = title ? xray_keep(x, title) : NULL;
  x->lesson = text ? xray_keep(x, text) : NULL;
}

lw_xray_head lw_xray_head_of(const lw_xray *x) {
  return (lw_xray_head){
      .module = x->after->name,
      .compiler = x->compiler,
      .target = x->target,
      .label = x->recorded ? "RECORDED" : "INFERRED",
      .kernels_before = x->report_before.kernels,
      .kernels_after = x->report_after.kernels,
      .kept_bytes = x->report_before.intermediate_bytes -
                    x->report_after.intermediate_bytes,
      .left_bytes = x->report_after.intermediate_bytes,
      .walls = (int32_t)x->e.walls.len,
  };
}

static void summarise_edges(lw_buf *b, const lw_xray *x) {
  int64_t fused = 0, differ = 0, silent = 0;
  for (size_t k = 0; k < x->e.edges.len; k++) {
    fused += x->e.edges.data[k].d->yes;
    if (!x->support) continue;
    differ += x->support[k] == XRAY_DIFFERS;
    silent += x->support[k] == XRAY_SILENT;
  }
  lw_buf_printf(b, "edges: %zu judged, %lld fused, %lld kept apart",
                x->e.edges.len, (long long)fused,
                (long long)(int64_t)x->e.edges.len - fused);
  if (differ || silent)
    lw_buf_printf(b, "; our rules differ on %lld, are silent on %lld",
                  (long long)differ, (long long)silent);
  lw_buf_chr(b, '\n');
}

enum { SHOWN_WALLS = 8 };

void lw_xray_summary(lw_buf *b, const lw_xray *x) {
  lw_xray_head h = lw_xray_head_of(x);
  lw_buf_printf(b, "%s, compiler %s, %s, target %s: verdicts %s\n", h.module,
                h.compiler, x->strategy, h.target, h.label);
  lw_buf_printf(b, "kernels: %lld > %lld; bytes between kernels: %lld > %lld\n",
                (long long)h.kernels_before, (long long)h.kernels_after,
                (long long)x->report_before.intermediate_bytes,
                (long long)h.left_bytes);
  summarise_edges(b, x);
  for (size_t k = 0; k < x->e.walls.len && k < SHOWN_WALLS; k++) {
    const lw_explain_wall *w = &x->e.walls.data[k];
    lw_buf_printf(b, "wall: %s %s, %lld bytes, needs %s; crosses %s\n",
                  w->value, w->shape, (long long)w->bytes, w->needs,
                  x->foreign && w->in_memory ? "memory" : w->crosses);
  }
  if (x->e.walls.len > SHOWN_WALLS)
    lw_buf_printf(b, "and %zu walls more (lawson explain lists all)\n",
                  x->e.walls.len - SHOWN_WALLS);
}
