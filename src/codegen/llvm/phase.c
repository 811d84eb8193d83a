/* A phase function: its entry, the loop over tiles, its stages in order. */
#include "codegen/llvm/module.h"

#include <string.h>

static LLVMValueRef field(lw_fn *f, size_t offset, LLVMTypeRef t,
                          const char *name) {
  LLVMValueRef off = lw_i64(f, (int64_t)offset);
  LLVMValueRef p = LLVMBuildGEP2(f->b, f->em->i8, f->args, &off, 1, "");
  return LLVMBuildLoad2(f->b, t, p, name);
}

static lw_status emit_stage(lw_fn *f, int32_t n) {
  const lw_stage *s = &f->k->stages[n];
  f->stage = n;
  f->stage_level = f->n_levels - 1;
  f->least_level = 0;
  f->group_first = -1;
  f->mask = (lw_mask){0};
  if (s->domain->elements == 0) return NULL;
  switch (s->kind) {
    case LW_STAGE_MAP:
      return s->group ? lw_emit_map_group(f, n, s->group) : NULL;
    case LW_STAGE_REDUCE:
    case LW_STAGE_REDUCE_PART:
    case LW_STAGE_REDUCE_FOLD:
      return lw_emit_reduce_stage(f, s);
    case LW_STAGE_UPDATE_SLICE:
      return lw_emit_update_stage(f, s);
    case LW_STAGE_WINDOW:
      return lw_emit_window_stage(f, s);
    case LW_STAGE_SCAN:
      return lw_emit_scan_stage(f, s);
    case LW_STAGE_DOT:
      return lw_emit_dot_stage(f, s);
    case LW_STAGE_CONV:
      return lw_emit_conv_stage(f, s);
    case LW_STAGE_SCATTER:
      return lw_emit_scatter_stage(f, s);
    case LW_STAGE_SELECT_SCATTER:
      return lw_emit_select_scatter_stage(f, s);
    case LW_STAGE_SORT:
      return lw_emit_sort_stage(f, s);
    case LW_STAGE_TOPK:
      return lw_emit_topk_stage(f, s);
    case LW_STAGE_RNG_BITS:
    case LW_STAGE_RNG:
      return lw_emit_rng_stage(f, s);
  }
  return NULL;
}

/* One group of stages goes over all the call's points at once; several go tile
 * by tile. So does a dot or convolution by itself: its scratch is its own, and
 * what it packs is packed once a call, not once a tile. */
static bool one_pass(const lw_kernel *k, const lw_phase *p) {
  lw_stage_kind kind = k->stages[p->first_stage].kind;
  if (p->n_stages == 1 && (kind == LW_STAGE_DOT || kind == LW_STAGE_CONV))
    return true;
  return p->thread_scratch_bytes == 0 &&
         k->stages[p->first_stage].group == p->n_stages;
}

static void set_points(lw_fn *f, LLVMValueRef t0, LLVMValueRef t1) {
  const lw_phase *p = f->phase;
  if (p->n_points <= 1 || p->n_tiles <= 1) {
    f->p0 = lw_i64(f, 0);
    f->p1 = lw_i64(f, p->n_points > 0 ? p->n_points : 1);
    return;
  }
  LLVMValueRef g = lw_i64(f, p->grain);
  f->p0 = LLVMBuildNSWMul(f->b, t0, g, "p0");
  f->p1 = LLVMBuildNSWMul(f->b, t1, g, "");
  f->p1 = lw_min_max(f, "llvm.smin", f->p1, lw_i64(f, p->n_points));
}

static lw_status emit_stages(lw_fn *f) {
  const lw_phase *p = f->phase;
  for (int32_t s = p->first_stage; s < p->first_stage + p->n_stages; s++)
    LW_TRY(emit_stage(f, s));
  return NULL;
}

static lw_status emit_tiles(lw_fn *f, LLVMValueRef begin, LLVMValueRef end) {
  const lw_phase *p = f->phase;
  if (p->n_tiles <= 1 || one_pass(f->k, p)) {
    lw_if i = {0};
    bool guard = p->n_tiles <= 1;
    if (guard)
      i = lw_if_begin(f, LLVMBuildICmp(f->b, LLVMIntSLT, begin, end, ""));
    set_points(f, begin, end);
    lw_status s = emit_stages(f);
    if (guard) lw_if_end(f, &i);
    return s;
  }
  lw_loop l = lw_loop_begin(f, begin, end, 1, "tile");
  set_points(f, l.iv, LLVMBuildNSWAdd(f->b, l.iv, lw_i64(f, 1), ""));
  lw_status s = emit_stages(f);
  lw_loop_end(f, &l);
  return s;
}

static void set_attr(lw_emit *em, LLVMValueRef fn, const char *k,
                     const char *v) {
  LLVMAttributeRef a = LLVMCreateStringAttribute(
      em->ctx, k, (unsigned)strlen(k), v, (unsigned)strlen(v));
  LLVMAddAttributeAtIndex(fn, LLVMAttributeFunctionIndex, a);
}

static LLVMValueRef declare(lw_emit *em, const char *name) {
  LLVMTypeRef ps[3] = {em->ptr, em->i64, em->i64};
  LLVMTypeRef t = LLVMFunctionType(em->void_t, ps, 3, 0);
  LLVMValueRef fn = LLVMAddFunction(em->mod, name, t);
  set_attr(em, fn, "target-cpu", em->cpu);
  set_attr(em, fn, "target-features", em->features);
  set_attr(em, fn, "prefer-vector-width", em->vec_bytes == 64 ? "512" : "256");
  set_attr(em, fn, "min-legal-vector-width", "512");
  unsigned kind = LLVMGetEnumAttributeKindForName("nounwind", 8);
  LLVMAddAttributeAtIndex(fn, LLVMAttributeFunctionIndex,
                          LLVMCreateEnumAttribute(em->ctx, kind, 0));
  return fn;
}

lw_status lw_emit_phase(lw_emit *em, const lw_kernel *k, int32_t phase,
                        const char *name) {
  lw_fn *f = calloc(1, sizeof *f);
  if (!f) lw_oom(sizeof *f);
  lw_index ix;
  f->em = em;
  f->k = k;
  f->phase = &k->phases[phase];
  f->arena = lw_arena_new();
  lw_index_init(&ix, f->arena);
  f->ix = &ix;
  f->flush = k->options.flush_denormals;
  f->canonical = k->options.observe_nans && k->options.fault != LW_FAULT_NAN;
  f->width = 1;
  f->fn = declare(em, name);
  f->b = LLVMCreateBuilderInContext(em->ctx);
  f->g = (lw_mathgen){.ctx = em->ctx,
                      .mod = em->mod,
                      .b = f->b,
                      .width = 1,
                      .has_avx2 = em->has_avx2,
                      .has_avx512 = em->has_avx512,
                      .has_f16c = em->has_f16c,
                      .has_fma = em->has_fma,
                      .target_cpu = em->cpu,
                      .target_features = em->features,
                      .fault = k->options.fault};
  int32_t n = k->n_params + k->n_outputs + k->n_scratch + k->n_consts;
  f->buffer_ptrs = LW_NEW_ARRAY(f->arena, LLVMValueRef, n + 1);
  f->entry = LLVMAppendBasicBlockInContext(em->ctx, f->fn, "entry");
  LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(em->ctx, f->fn, "go");
  LLVMPositionBuilderAtEnd(f->b, f->entry);
  f->args = LLVMGetParam(f->fn, 0);
  f->buffers = field(f, offsetof(lw_kernel_args, buffers), em->ptr, "buffers");
  f->scratch = field(f, offsetof(lw_kernel_args, scratch), em->ptr, "scratch");
  LLVMBuildBr(f->b, body);
  LLVMPositionBuilderAtEnd(f->b, body);
  f->n_levels = 1;
  f->levels[0].open = true;
  f->cur = body;
  lw_status s = emit_tiles(f, LLVMGetParam(f->fn, 1), LLVMGetParam(f->fn, 2));
  LLVMBuildRetVoid(f->b);
  if (!s) s = f->error, f->error = NULL;
  lw_status_free(f->error);
  for (int i = 0; i < f->n_levels; i++) lw_map_free(&f->levels[i].memo);
  LLVMDisposeBuilder(f->b);
  lw_index_free(&ix);
  lw_arena_free(f->arena);
  free(f);
  return s;
}
