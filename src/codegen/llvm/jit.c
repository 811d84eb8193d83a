/* From kernels to addresses: a batch is cut into modules of a few kernels,
 * which threads make into object files (emission, a short pipeline without
 * anything that changes arithmetic, instruction selection), each in a context
 * of its own; ORC's LLJIT links them. How a batch is cut depends on nothing but
 * its length.
 */
#include <llvm-c/Analysis.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "codegen/llvm/module.h"

struct lw_codegen {
  lw_codegen_options opt;
  lw_isa isa;
  LLVMOrcLLJITRef jit;
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
  LLVMCodeGenOptLevel l = level == 0   ? LLVMCodeGenLevelNone
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
  lw_map_free(&cg->done);
  lw_buf_free(&cg->llvm);
  lw_buf_free(&cg->assembly);
  lw_arena_free(cg->arena);
  free(cg);
}

/* ---- a module ---- */

/* Made by one thread. */
typedef struct {
  const lw_codegen *cg;
  lw_kernel *const *ks; /* of the batch */
  const uint64_t *fps;
  const int32_t *which; /* indices of its kernels */
  int32_t n, number;
  LLVMTargetMachineRef tm;
  LLVMMemoryBufferRef object;
  lw_buf llvm, assembly;
  lw_status status;
} job;

static void open_module(const job *j, lw_emit *em, LLVMContextRef ctx) {
  const lw_isa *isa = &j->cg->isa;
  char name[32];
  snprintf(name, sizeof name, "lw.%d", j->number);
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
                  .vec_bytes = isa->vec_bytes,
                  .has_avx2 = isa->avx2,
                  .has_avx512 = isa->avx512,
                  .has_f16c = isa->avx2,
                  .has_fma = isa->avx2,
                  .cpu = isa->cpu,
                  .features = isa->features};
  LLVMSetTarget(em->mod, "x86_64-unknown-linux-gnu");
  LLVMTargetDataRef td = LLVMCreateTargetDataLayout(j->tm);
  LLVMSetModuleDataLayout(em->mod, td);
  LLVMDisposeTargetData(td);
}

/* Nothing here reassociates or contracts: the arithmetic stays as written. */
static const char *pipeline(int level) {
  if (level == 0) return "function(mem2reg)";
  if (level == 1) return "function(mem2reg,early-cse,instsimplify,simplifycfg)";
  return "function(mem2reg,instcombine<no-verify-fixpoint>,"
         "early-cse<memssa>,simplifycfg,loop-mssa(licm),"
         "instcombine<no-verify-fixpoint>,simplifycfg)";
}

static lw_status optimise(const job *j, LLVMModuleRef m) {
  char *msg = NULL;
  if (LLVMVerifyModule(m, LLVMReturnStatusAction, &msg)) {
    lw_status s =
        lw_error(LW_INTERNAL, "generated code does not verify: %s", msg);
    LLVMDisposeMessage(msg);
    return s;
  }
  LLVMDisposeMessage(msg);
  LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
  lw_status s =
      of_llvm(LLVMRunPasses(m, pipeline(j->cg->opt.opt_level), j->tm, o),
              "LLVM passes");
  LLVMDisposePassBuilderOptions(o);
  return s;
}

static lw_status to_buffer(const job *j, LLVMModuleRef m,
                           LLVMCodeGenFileType type, LLVMMemoryBufferRef *out) {
  char *msg = NULL;
  if (!LLVMTargetMachineEmitToMemoryBuffer(j->tm, m, type, &msg, out))
    return NULL;
  lw_status s = lw_error(LW_INTERNAL, "LLVM: %s", msg);
  LLVMDisposeMessage(msg);
  return s;
}

static lw_status keep_texts(job *j, LLVMModuleRef m) {
  if (j->cg->opt.keep_llvm) {
    char *t = LLVMPrintModuleToString(m);
    lw_buf_str(&j->llvm, t);
    LLVMDisposeMessage(t);
  }
  if (!j->cg->opt.keep_asm) return NULL;
  LLVMModuleRef copy = LLVMCloneModule(m);
  LLVMMemoryBufferRef out;
  lw_status s = to_buffer(j, copy, LLVMAssemblyFile, &out);
  if (!s) {
    lw_buf_add(&j->assembly, LLVMGetBufferStart(out), LLVMGetBufferSize(out));
    LLVMDisposeMemoryBuffer(out);
  }
  LLVMDisposeModule(copy);
  return s;
}

static void phase_name(char *out, size_t n, uint64_t fp, int32_t p) {
  snprintf(out, n, "lw_%016llx_%d", (unsigned long long)fp, p);
}

static lw_status emit_kernels(const job *j, lw_emit *em) {
  for (int32_t i = 0; i < j->n; i++) {
    const lw_kernel *k = j->ks[j->which[i]];
    for (int32_t p = 0; p < k->n_phases; p++) {
      char name[40];
      phase_name(name, sizeof name, j->fps[j->which[i]], p);
      lw_status s = lw_emit_phase(em, k, p, name);
      if (s) return lw_status_annotate(s, "%s", k->inst->name);
    }
  }
  return NULL;
}

static void run_job(job *j) {
  LLVMContextRef ctx = LLVMContextCreate();
  lw_emit em = {0};
  lw_status s = make_machine(&j->cg->isa, j->cg->opt.opt_level, &j->tm);
  if (!s) {
    open_module(j, &em, ctx);
    s = emit_kernels(j, &em);
  }
  if (!s) s = optimise(j, em.mod);
  if (!s) s = keep_texts(j, em.mod);
  if (!s) s = to_buffer(j, em.mod, LLVMObjectFile, &j->object);
  if (em.mod) LLVMDisposeModule(em.mod);
  if (j->tm) LLVMDisposeTargetMachine(j->tm);
  LLVMContextDispose(ctx);
  j->status = s;
}

/* ---- jobs on threads ---- */

enum { KERNELS_A_JOB = 4, MOST_THREADS = 16 };

typedef struct {
  job *jobs;
  int32_t n;
  _Atomic int32_t next;
} queue;

static void *worker(void *p) {
  queue *q = p;
  for (int32_t i; (i = q->next++) < q->n;) run_job(&q->jobs[i]);
  return NULL;
}

static void run_jobs(queue *q) {
  pthread_t t[MOST_THREADS];
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  int32_t want = q->n - 1, n = 0;
  if (want > cpus - 1) want = (int32_t)cpus - 1;
  if (want > MOST_THREADS) want = MOST_THREADS;
  while (n < want && !pthread_create(&t[n], NULL, worker, q)) n++;
  worker(q);
  while (n > 0) pthread_join(t[--n], NULL);
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

static lw_status link_jobs(lw_codegen *cg, queue *q) {
  lw_status s = NULL;
  for (int32_t i = 0; i < q->n; i++) {
    job *j = &q->jobs[i];
    if (j->llvm.len) lw_buf_add(&cg->llvm, j->llvm.data, j->llvm.len);
    if (j->assembly.len)
      lw_buf_add(&cg->assembly, j->assembly.data, j->assembly.len);
    lw_buf_free(&j->llvm);
    lw_buf_free(&j->assembly);
    if (s || j->status) { /* the first error stands */
      if (s)
        lw_status_free(j->status);
      else
        s = j->status;
      if (j->object) LLVMDisposeMemoryBuffer(j->object);
      continue;
    }
    s = of_llvm(LLVMOrcLLJITAddObjectFile(
                    cg->jit, LLVMOrcLLJITGetMainJITDylib(cg->jit), j->object),
                "LLVM JIT");
  }
  return s;
}

static lw_status compile_fresh(lw_codegen *cg, lw_kernel *const *ks,
                               const uint64_t *fps, const int32_t *which,
                               int32_t n) {
  queue q = {.n = (n + KERNELS_A_JOB - 1) / KERNELS_A_JOB};
  q.jobs = LW_NEW_ARRAY(cg->arena, job, q.n);
  for (int32_t i = 0; i < q.n; i++) {
    int32_t first = i * KERNELS_A_JOB, rest = n - first;
    q.jobs[i] = (job){.cg = cg,
                      .ks = ks,
                      .fps = fps,
                      .which = which + first,
                      .n = rest < KERNELS_A_JOB ? rest : KERNELS_A_JOB,
                      .number = cg->n_modules++};
  }
  run_jobs(&q);
  LW_TRY(link_jobs(cg, &q));
  for (int32_t i = 0; i < n; i++)
    LW_TRY(look_up(cg, ks[which[i]], fps[which[i]]));
  return NULL;
}

lw_status lw_codegen_compile(lw_codegen *cg, lw_kernel *const *ks, int32_t n,
                             lw_kernel_code *codes) {
  uint64_t *fps = LW_NEW_ARRAY(cg->arena, uint64_t, n + 1);
  int32_t *fresh = LW_NEW_ARRAY(cg->arena, int32_t, n + 1), n_fresh = 0;
  lw_map here = {0};
  for (int32_t i = 0; i < n; i++) {
    fps[i] = lw_kernel_fingerprint(ks[i]);
    uint64_t *slot = lw_map_put(&here, fps[i]);
    if (!*slot && !lw_map_get(&cg->done, fps[i])) fresh[n_fresh++] = i;
    *slot = 1;
  }
  lw_map_free(&here);
  if (n_fresh) LW_TRY(compile_fresh(cg, ks, fps, fresh, n_fresh));
  for (int32_t i = 0; i < n; i++)
    codes[i] =
        *(const lw_kernel_code *)(uintptr_t)*lw_map_get(&cg->done, fps[i]);
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
