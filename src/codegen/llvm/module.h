/* Making a module of phase functions, and what it is made for. */
#ifndef LW_CODEGEN_LLVM_MODULE_H
#define LW_CODEGEN_LLVM_MODULE_H

#include <llvm-c/TargetMachine.h>
#include <stdlib.h>

#include "codegen/llvm/emit.h"

/* The ISA a name stands for, on this machine. */
typedef struct {
  const char *name;     /* "avx512", "avx2", "baseline" */
  const char *cpu;      /* LLVM's CPU name */
  const char *features; /* "+avx2,+fma,..." */
  int vec_bytes;
  bool avx2, avx512;
} lw_isa;
LW_MUST_USE lw_status lw_isa_find(const char *name, lw_isa *out);

/* Adds phase `phase` of k to the module as an external function. */
LW_MUST_USE lw_status lw_emit_phase(lw_emit *em, const lw_kernel *k,
                                    int32_t phase, const char *name);

#endif
