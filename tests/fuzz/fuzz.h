/* What the fuzz targets share. Each target is one function, linked either
 * with libFuzzer (the preset fuzz) or with replay.c, which runs a folder of
 * inputs through it (every build, ctest's fuzz_*). */
#ifndef LW_TESTS_FUZZ_H
#define LW_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "hlo/hlo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Says what broke and aborts: the fuzzer keeps the input. */
void fuzz_fail(const char *what, const char *detail);
bool fuzz_is_clean(const lw_module *m);
/* Aborts unless the two are equal byte for byte; what names the claim. */
void fuzz_same_bytes(const char *what, const lw_buf *a, const lw_buf *b);

#endif
