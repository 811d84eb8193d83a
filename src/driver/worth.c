/* Modelled time and planned peak of a fused module. */
#include <math.h>
#include <string.h>

#include "driver/choose.h"
#include "fusion/fuse.h"
#include "fusion/own_cost.h"
#include "fusion/report.h"
#include "hlo/trip_count.h"
#include "target/gpu.h"

#define LAUNCH_NS 1000.0 /* XLA:GPU's own figure */

/* ---- CPU: the plan's tree ---- */

static double copy_ns(const lw_target *t, const lw_plan *p, const lw_node *n) {
  double bytes = (double)p->slices[n->slices[1]].bytes;
  return 2 * lw_cost_value_ns(t, bytes, bytes);
}

/* In sixteenths: sums do not depend on the order of kernels then. */
static double rounded(double ns) { return floor(ns * 16 + 0.5) / 16; }

static double node_ns(const lw_target *t, const lw_plan *p, const lw_node *n) {
  double sum = 0, most = 0;
  for (int32_t k = 0; k < n->n_children; k++) {
    double one = node_ns(t, p, n->children[k]);
    sum += one;
    most = fmax(most, one);
  }
  switch (n->kind) {
    case LW_NODE_SEQ:
      return sum;
    case LW_NODE_KERNEL:
    case LW_NODE_LIBRARY:
      return rounded(lw_own_kernel_ns(t, n->inst));
    case LW_NODE_COPY:
      return rounded(copy_ns(t, p, n));
    case LW_NODE_WHILE:
      return sum * (n->trip_count >= 0 ? (double)n->trip_count : 1);
    case LW_NODE_CONDITIONAL:
      return most;
  }
  return sum;
}

static lw_status cpu_worth(const lw_module *m, const lw_target *t,
                           const lw_plan_options *options, lw_worth *out) {
  lw_arena *a = lw_arena_new();
  lw_plan *p;
  lw_status st = lw_plan_build(a, m, options, &p);
  if (!st) *out = (lw_worth){node_ns(t, p, p->root), p->temp_bytes};
  lw_arena_free(a);
  return st;
}

/* ---- GPU ---- */

typedef struct {
  const lw_gpu_device *d;
  lw_map done; /* computation -> index + 1 in worths */
  LW_VEC(lw_worth) worths;
} gpu_walk;

static lw_worth of_callees(const gpu_walk *w, const lw_inst *i) {
  lw_worth r = {0};
  for (int32_t k = 0; k < lw_inst_called_count(i); k++) {
    const lw_comp *c = lw_inst_called(i, k);
    uint64_t *at = c ? lw_map_get(&w->done, (uintptr_t)c) : NULL;
    if (!at) continue;
    lw_worth one = w->worths.data[*at - 1];
    bool loop = i->opcode == LW_OP_WHILE;
    r.time_ns = loop ? r.time_ns + one.time_ns : fmax(r.time_ns, one.time_ns);
    if (one.peak_bytes > r.peak_bytes) r.peak_bytes = one.peak_bytes;
  }
  int64_t rounds = i->opcode == LW_OP_WHILE ? lw_while_trip_count(i) : 1;
  if (rounds > 1) r.time_ns *= (double)rounds;
  return r;
}

/* A kernel writes it; everything else only names memory. */
static bool holds_bytes(const lw_inst *i) {
  return !lw_runs_nothing(i) && !lw_inst_is_root(i);
}

/* The position of the last reader, through names. */
static int32_t last_use(const lw_inst *i, const int32_t *pos, int depth) {
  int32_t last = pos[i->id];
  for (const lw_use *u = i->uses; u; u = u->next) {
    int32_t at = pos[u->user->id];
    if (lw_runs_nothing(u->user) && depth < 64) {
      int32_t on = last_use(u->user, pos, depth + 1);
      if (on > at) at = on;
    }
    if (at > last) last = at;
  }
  return last;
}

static lw_worth gpu_comp_worth(gpu_walk *w, lw_comp *c) {
  lw_arena *a = lw_arena_new();
  lw_gpu_model *model = lw_gpu_model_new(c, w->d);
  int32_t n;
  lw_inst **order = lw_comp_post_order(c, a, &n);
  int32_t *pos = LW_NEW_ARRAY(a, int32_t, c->module->n_inst_ids + 1);
  int64_t *ends = LW_NEW_ARRAY(a, int64_t, n + 1), live = 0;
  lw_worth r = {0};
  for (int32_t k = 0; k < n; k++) pos[order[k]->id] = k;
  for (int32_t k = 0; k < n; k++) {
    const lw_inst *i = order[k];
    lw_worth inner = of_callees(w, i);
    r.time_ns += inner.time_ns;
    if (!lw_runs_nothing(i)) {
      lw_ticks ticks = lw_gpu_exec(model, i);
      r.time_ns += LAUNCH_NS;
      if (ticks != LW_TICKS_INF) r.time_ns += (double)ticks / 4;
    }
    if (holds_bytes(i)) {
      live += lw_shape_bytes(i->shape);
      ends[last_use(i, pos, 0)] += lw_shape_bytes(i->shape);
    }
    if (live + inner.peak_bytes > r.peak_bytes)
      r.peak_bytes = live + inner.peak_bytes;
    live -= ends[k];
  }
  lw_gpu_model_free(model);
  lw_arena_free(a);
  return r;
}

static lw_status gpu_worth(const lw_module *m, const lw_target *t,
                           lw_worth *out) {
  lw_gpu_device d;
  LW_TRY(lw_gpu_device_of(t, &d));
  gpu_walk w = {.d = &d};
  lw_arena *a = lw_arena_new();
  int32_t n;
  lw_comp **comps = lw_comps_to_fuse(m, a, &n);
  for (int32_t k = 0; k < n; k++) {
    lw_worth one = gpu_comp_worth(&w, comps[k]);
    lw_vec_push(&w.worths, one);
    *lw_map_put(&w.done, (uintptr_t)comps[k]) = w.worths.len;
    *out = one; /* the entry is last */
  }
  lw_vec_free(&w.worths);
  lw_map_free(&w.done);
  lw_arena_free(a);
  return NULL;
}

lw_status lw_worth_of(const lw_module *m, const lw_target *t,
                      const lw_plan_options *plan, lw_worth *out) {
  *out = (lw_worth){0};
  return strcmp(t->backend_name, "gpu") ? cpu_worth(m, t, plan, out)
                                        : gpu_worth(m, t, out);
}
