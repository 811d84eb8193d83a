/* Machine code for kernels. The only folder behind it that knows LLVM is
 * codegen/llvm. */
#ifndef LW_CODEGEN_CODEGEN_H
#define LW_CODEGEN_CODEGEN_H

#include "kernel/kernel.h"
#include "lawson/kernel_abi.h"

typedef struct lw_codegen lw_codegen; /* owns the machine code it made */

typedef struct {
  const char *isa;          /* "native", "avx512", "avx2", "baseline" */
  int opt_level;            /* 0..3, default 2 */
  bool keep_llvm, keep_asm; /* texts kept for the dumps */
} lw_codegen_options;

/* LW_FAILED_PRECONDITION when this CPU lacks the ISA asked for. */
LW_MUST_USE lw_status lw_codegen_new(const lw_codegen_options *options,
                                     lw_codegen **out);
/* Compiles n kernels (equal fingerprints once). codes[i].phases are owned by
 * the codegen object and live as long as it does. */
LW_MUST_USE lw_status lw_codegen_compile(lw_codegen *cg, lw_kernel *const *ks,
                                         int32_t n, lw_kernel_code *codes);
const char *lw_codegen_llvm(const lw_codegen *cg); /* NULL unless kept */
const char *lw_codegen_asm(const lw_codegen *cg);
void lw_codegen_free(lw_codegen *cg);
/* "LLVM 19.1.7", host CPU name, ISA in use. */
const char *lw_codegen_version(void);
const char *lw_codegen_host_cpu(void);
bool lw_codegen_has_isa(const char *isa);

#endif
