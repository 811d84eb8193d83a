/* codegen_tool FILE...: checks each HLO text file's entry, as one fusion,
 * against the interpreter. LW_ISA=avx512|avx2|baseline (default: all), LW_SEED,
 * LW_VERBOSE=1 stages and times, 2 LLVM IR, 3 assembly. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "harness.h"

static char *slurp(const char *path) {
  FILE *f = fopen(path, "r");
  if (!f) return NULL;
  lw_buf b = {0};
  char part[4096];
  size_t n;
  while ((n = fread(part, 1, sizeof part, f)) > 0) lw_buf_add(&b, part, n);
  fclose(f);
  lw_buf_cstr(&b);
  return b.data;
}

int main(int argc, char **argv) {
  const char *isa = getenv("LW_ISA"), *seed = getenv("LW_SEED");
  const char *verbose = getenv("LW_VERBOSE");
  uint64_t s = seed ? strtoull(seed, NULL, 10) : 1;
  int bad = 0;
  lw_harness_verbose = verbose ? atoi(verbose) : 0;
  for (int i = 1; i < argc; i++) {
    char *text = slurp(argv[i]);
    if (!text) {
      printf("%s: cannot read\n", argv[i]);
      return 2;
    }
    lw_status e =
        isa ? lw_check_text_isa(text, s, isa) : lw_check_text(text, s);
    printf("%s: %s\n", argv[i], e ? lw_status_message(e) : "ok");
    bad += e != NULL;
    lw_status_free(e);
    free(text);
  }
  return bad != 0;
}
