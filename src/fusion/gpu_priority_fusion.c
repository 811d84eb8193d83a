/* gpu-priority-fusion: what XLA:GPU's priority-fusion of jaxlib 0.10.2 does, on
 * a module as it stands right before it (layouts on every shape, library calls
 * and custom fusions opaque). The queue is gpu_queue.c, the rules gpu_rules.c,
 * the costs src/target/gpu_*.c; this file joins them.
 */
#include "fusion/fusion.h"
#include "fusion/gpu_queue.h"

typedef struct {
  lw_gpu_model *model;
} costs;

static gpu_refusal can_fuse(void *state, const lw_inst *producer,
                            const lw_inst *consumer) {
  costs *c = state;
  lw_arena *a = lw_arena_new();
  gpu_refusal r = gpu_can_fuse(c->model, producer, consumer, a);
  lw_arena_free(a);
  return r;
}

static lw_ticks exec(void *state, const lw_inst *i) {
  return lw_gpu_exec(((costs *)state)->model, i);
}

static lw_ticks exec_fused(void *state, const lw_inst *producer,
                           const lw_inst *consumer) {
  return lw_gpu_exec_fused(((costs *)state)->model, producer, consumer);
}

static lw_fusion_kind kind(void *state, const lw_inst *producer,
                           const lw_inst *consumer) {
  costs *c = state;
  lw_arena *a = lw_arena_new();
  lw_gpu_kernel k = lw_gpu_kernel_of(c->model, producer, consumer, a);
  lw_arena_free(a);
  return gpu_kind_of(k.emitter);
}

static void took(void *state, const lw_inst *fusion, const lw_inst *producer,
                 const lw_inst *consumer) {
  lw_gpu_model_took(((costs *)state)->model, fusion, producer, consumer);
}

static void removed(void *state, const lw_inst *i) {
  lw_gpu_model_remove(((costs *)state)->model, i);
}

static lw_status run_pass(lw_module *m, lw_pass_env *env, bool *changed) {
  lw_gpu_device d;
  LW_TRY(lw_gpu_device_of(env->target, &d));
  int32_t n;
  lw_comp **comps = gpu_comps_to_fuse(m, env->scratch, &n);
  for (int32_t k = 0; k < n; k++) {
    costs c = {.model = lw_gpu_model_new(comps[k], &d)};
    gpu_oracle o = {.state = &c,
                    .can_fuse = can_fuse,
                    .exec = exec,
                    .exec_fused = exec_fused,
                    .kind = kind,
                    .took = took,
                    .removed = removed};
    *changed |= gpu_queue_run(comps[k], env, &o);
    lw_gpu_model_free(c.model);
  }
  return NULL;
}

const lw_pass lw_pass_gpu_priority_fusion = {
    "gpu-priority-fusion", "priority fusion as XLA:GPU 0.10.2 does it", NULL,
    run_pass};
