/* Instruction sets by name, found by CPUID. */
#include <string.h>

#include "codegen/llvm/module.h"

static bool cpu_has_avx2(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

static bool cpu_has_avx512(void) {
#if defined(__x86_64__)
  return cpu_has_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

static const lw_isa isas[] = {
    {"avx512", "x86-64-v4", "", 64, true, true},
    {"avx2", "x86-64-v3", "+fast-gather", 32, true, false},
    {"baseline", "x86-64", "", 16, false, false},
};

bool lw_codegen_has_isa(const char *isa) {
  if (!strcmp(isa, "avx512")) return cpu_has_avx512();
  if (!strcmp(isa, "avx2")) return cpu_has_avx2();
  return !strcmp(isa, "baseline") || !strcmp(isa, "native");
}

lw_status lw_isa_find(const char *name, lw_isa *out) {
  if (!name || !strcmp(name, "native"))
    name = cpu_has_avx512() ? "avx512" : cpu_has_avx2() ? "avx2" : "baseline";
  for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
    if (strcmp(isas[i].name, name)) continue;
    if (!lw_codegen_has_isa(name))
      return lw_error(LW_FAILED_PRECONDITION, "this CPU does not have %s",
                      name);
    *out = isas[i];
    return NULL;
  }
  return lw_error(LW_INVALID_ARGUMENT,
                  "unknown ISA %s (native, avx512, avx2, baseline)", name);
}
