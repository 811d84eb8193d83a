/* From kernels to addresses: one LLVM module a batch, a short pipeline without
 * anything that changes arithmetic, ORC's LLJIT for the memory.
 */
#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "codegen/llvm/module.h"

struct lw_codegen {
  lw_codegen_options opt;
  lw_isa isa;
  LLVMOrcLLJITRef jit;
  LLVMTargetMachineRef tm; /* of the pipeline and the assembly text */
  lw_arena *arena;
  lw_map done; /* fingerprint -> lw_kernel_code* */
  int32_t n_modules;
  lw_buf llvm, assembly;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void init_llvm(void) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
}

static lw_status of_llvm(LLVMErrorRef e, const char *what) {
  if (!e) return NULL;
  char *m = LLVMGetErrorMessage(e);
  lw_status s = lw_error(LW_INTERNAL, "%s: %s", what, m);
  LLVMDisposeErrorMessage(m);
  return s;
}

static lw_status make_machine(const lw_isa *isa, int level,
                              LLVMTargetMachineRef *out) {
  static const char triple[] = "x86_64-unknown-linux-gnu";
  LLVMTargetRef t;
  char *msg = NULL;
  if (LLVMGetTargetFromTriple(triple, &t, &msg)) {
    lw_status s = lw_error(LW_INTERNAL, "LLVM: %s", msg);
    LLVMDisposeMessage(msg);
    return s;
  }
  LLVMCodeGenOptLevel l = level == 0 ? LLVMCodeGenLevelNone
                          : level <= 2 ? LLVMCodeGenLevelLess
                                       : LLVMCodeGenLevelDefault;
  *out = LLVMCreateTargetMachine(t, triple, isa->cpu, isa->features, l,
                                 LLVMRelocPIC, LLVMCodeModelJITDefault);
  return *out ? NULL : lw_error(LW_INTERNAL, "LLVM: no target machine");
}

/* malloc'd code may call memset, fmaf ...: the process has them. */
static lw_status make_jit(lw_codegen *cg) {
  LLVMTargetMachineRef tm;
  LW_TRY(make_machine(&cg->isa, cg->opt.opt_level, &tm));
  LLVMOrcLLJITBuilderRef b = LLVMOrcCreateLLJITBuilder();
  LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(
      b, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(tm));
  LW_TRY(of_llvm(LLVMOrcCreateLLJIT(&cg->jit, b), "LLVM JIT"));
  LLVMOrcDefinitionGeneratorRef g;
  LW_TRY(of_llvm(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
                     &g, LLVMOrcLLJITGetGlobalPrefix(cg->jit), NULL, NULL),
                 "LLVM JIT"));
  LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(cg->jit), g);
  return NULL;
}

lw_status lw_codegen_new(const lw_codegen_options *options, lw_codegen **out) {
  pthread_once(&once, init_llvm);
  static const lw_codegen_options dflt = {"native", 2, false, false};
  lw_codegen *cg = calloc(1, sizeof *cg);
  if (!cg) lw_oom(sizeof *cg);
  cg->opt = options ? *options : dflt;
  cg->arena = lw_arena_new();
  lw_status s = lw_isa_find(cg->opt.isa, &cg->isa);
  if (!s) s = make_machine(&cg->isa, cg->opt.opt_level, &cg->tm);
  if (!s) s = make_jit(cg);
  if (s) {
    lw_codegen_free(cg);
    cg = NULL;
  }
  *out = cg;
  return s;
}

void lw_codegen_free(lw_codegen *cg) {
  if (!cg) return;
  if (cg->jit) LLVMConsumeError(LLVMOrcDisposeLLJIT(cg->jit));
  if (cg->tm) LLVMDisposeTargetMachine(cg->tm);
  lw_map_free(&cg->done);
  lw_buf_free(&cg->llvm);
  lw_buf_free(&cg->assembly);
  lw_arena_free(cg->arena);
  free(cg);
}

/* ---- a module ---- */

static void open_module(lw_codegen *cg, lw_emit *em, LLVMContextRef ctx) {
  char name[32];
  snprintf(name, sizeof name, "lw.%d", cg->n_modules);
  *em = (lw_emit){.ctx = ctx,
                  .mod = LLVMModuleCreateWithNameInContext(name, ctx),
                  .i1 = LLVMInt1TypeInContext(ctx),
                  .i8 = LLVMInt8TypeInContext(ctx),
                  .i32 = LLVMInt32TypeInContext(ctx),
                  .i64 = LLVMInt64TypeInContext(ctx),
                  .f32 = LLVMFloatTypeInContext(ctx),
                  .f64 = LLVMDoubleTypeInContext(ctx),
                  .ptr = LLVMPointerTypeInContext(ctx, 0),
                  .void_t = LLVMVoidTypeInContext(ctx),
                  .vec_bytes = cg->isa.vec_bytes,
                  .has_avx2 = cg->isa.avx2,
                  .has_avx512 = cg->isa.avx512,
                  .has_f16c = cg->isa.avx2,
                  .has_fma = cg->isa.avx2,
                  .cpu = cg->isa.cpu,
                  .features = cg->isa.features};
  LLVMSetTarget(em->mod, "x86_64-unknown-linux-gnu");
  LLVMTargetDataRef td = LLVMCreateTargetDataLayout(cg->tm);
  LLVMSetModuleDataLayout(em->mod, td);
  LLVMDisposeTargetData(td);
}

/* Nothing here reassociates or contracts: the arithmetic stays as written. */
static const char *pipeline(int level) {
  if (level == 0) return "function(mem2reg)";
  if (level == 1)
    return "function(mem2reg,early-cse,instsimplify,simplifycfg)";
  return "function(mem2reg,instcombine<no-verify-fixpoint>,"
         "early-cse<memssa>,simplifycfg,loop-mssa(licm),"
         "instcombine<no-verify-fixpoint>,simplifycfg)";
}

static lw_status optimise(lw_codegen *cg, LLVMModuleRef m) {
  char *msg = NULL;
  if (LLVMVerifyModule(m, LLVMReturnStatusAction, &msg)) {
    if (getenv("LW_DEBUG_LLVM")) LLVMDumpModule(m);
    lw_status s = lw_error(LW_INTERNAL, "generated code does not verify: %s",
                           msg);
    LLVMDisposeMessage(msg);
    return s;
  }
  LLVMDisposeMessage(msg);
  LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
  lw_status s = of_llvm(
      LLVMRunPasses(m, pipeline(cg->opt.opt_level), cg->tm, o), "LLVM passes");
  LLVMDisposePassBuilderOptions(o);
  return s;
}

static lw_status keep_texts(lw_codegen *cg, LLVMModuleRef m) {
  if (cg->opt.keep_llvm) {
    char *t = LLVMPrintModuleToString(m);
    lw_buf_str(&cg->llvm, t);
    LLVMDisposeMessage(t);
  }
  if (!cg->opt.keep_asm) return NULL;
  LLVMModuleRef copy = LLVMCloneModule(m);
  LLVMMemoryBufferRef out;
  char *msg = NULL;
  lw_status s = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(cg->tm, copy, LLVMAssemblyFile, &msg,
                                          &out)) {
    s = lw_error(LW_INTERNAL, "LLVM: %s", msg);
    LLVMDisposeMessage(msg);
  } else {
    lw_buf_add(&cg->assembly, LLVMGetBufferStart(out), LLVMGetBufferSize(out));
    LLVMDisposeMemoryBuffer(out);
  }
  LLVMDisposeModule(copy);
  return s;
}

static void phase_name(char *out, size_t n, uint64_t fp, int32_t p) {
  snprintf(out, n, "lw_%016llx_%d", (unsigned long long)fp, p);
}

static lw_status emit_kernels(lw_emit *em, lw_kernel *const *ks,
                              const uint64_t *fps, const bool *fresh,
                              int32_t n) {
  for (int32_t i = 0; i < n; i++) {
    if (!fresh[i]) continue;
    for (int32_t p = 0; p < ks[i]->n_phases; p++) {
      char name[40];
      phase_name(name, sizeof name, fps[i], p);
      lw_status s = lw_emit_phase(em, ks[i], p, name);
      if (s) return lw_status_annotate(s, "%s", ks[i]->inst->name);
    }
  }
  return NULL;
}

static lw_status look_up(lw_codegen *cg, const lw_kernel *k, uint64_t fp) {
  lw_kernel_code *c = LW_NEW(cg->arena, lw_kernel_code);
  lw_phase_fn *fns = LW_NEW_ARRAY(cg->arena, lw_phase_fn, k->n_phases + 1);
  for (int32_t p = 0; p < k->n_phases; p++) {
    char name[40];
    LLVMOrcExecutorAddress at = 0;
    phase_name(name, sizeof name, fp, p);
    LW_TRY(of_llvm(LLVMOrcLLJITLookup(cg->jit, &at, name), "LLVM JIT"));
    fns[p] = (lw_phase_fn)(uintptr_t)at;
  }
  c->n_phases = k->n_phases;
  c->phases = fns;
  *lw_map_put(&cg->done, fp) = (uint64_t)(uintptr_t)c;
  return NULL;
}

static lw_status compile_fresh(lw_codegen *cg, lw_kernel *const *ks,
                               const uint64_t *fps, const bool *fresh,
                               int32_t n) {
  LLVMOrcThreadSafeContextRef tsc = LLVMOrcCreateNewThreadSafeContext();
  lw_emit em;
  open_module(cg, &em, LLVMOrcThreadSafeContextGetContext(tsc));
  cg->n_modules++;
  lw_status s = emit_kernels(&em, ks, fps, fresh, n);
  if (!s) s = optimise(cg, em.mod);
  if (!s) s = keep_texts(cg, em.mod);
  if (s) {
    LLVMDisposeModule(em.mod);
  } else {
    LLVMOrcThreadSafeModuleRef tsm =
        LLVMOrcCreateNewThreadSafeModule(em.mod, tsc);
    s = of_llvm(LLVMOrcLLJITAddLLVMIRModule(
                    cg->jit, LLVMOrcLLJITGetMainJITDylib(cg->jit), tsm),
                "LLVM JIT");
  }
  LLVMOrcDisposeThreadSafeContext(tsc);
  for (int32_t i = 0; i < n && !s; i++)
    if (fresh[i]) s = look_up(cg, ks[i], fps[i]);
  return s;
}

lw_status lw_codegen_compile(lw_codegen *cg, lw_kernel *const *ks, int32_t n,
                             lw_kernel_code *codes) {
  uint64_t *fps = LW_NEW_ARRAY(cg->arena, uint64_t, n + 1);
  bool *fresh = LW_NEW_ARRAY(cg->arena, bool, n + 1), any = false;
  lw_map here = {0};
  for (int32_t i = 0; i < n; i++) {
    fps[i] = lw_kernel_fingerprint(ks[i]);
    uint64_t *slot = lw_map_put(&here, fps[i]);
    fresh[i] = !*slot && !lw_map_get(&cg->done, fps[i]);
    *slot = 1;
    any |= fresh[i];
  }
  lw_map_free(&here);
  if (any) LW_TRY(compile_fresh(cg, ks, fps, fresh, n));
  for (int32_t i = 0; i < n; i++)
    codes[i] = *(const lw_kernel_code *)(uintptr_t)*lw_map_get(&cg->done, fps[i]);
  return NULL;
}

const char *lw_codegen_llvm(const lw_codegen *cg) {
  return cg->opt.keep_llvm ? lw_buf_cstr((lw_buf *)&cg->llvm) : NULL;
}
const char *lw_codegen_asm(const lw_codegen *cg) {
  return cg->opt.keep_asm ? lw_buf_cstr((lw_buf *)&cg->assembly) : NULL;
}

const char *lw_codegen_version(void) {
  static char text[32];
  unsigned a, b, c;
  LLVMGetVersion(&a, &b, &c);
  snprintf(text, sizeof text, "LLVM %u.%u.%u", a, b, c);
  return text;
}

const char *lw_codegen_host_cpu(void) {
  static char text[64];
  char *s = LLVMGetHostCPUName();
  snprintf(text, sizeof text, "%s", s);
  LLVMDisposeMessage(s);
  return text;
}
