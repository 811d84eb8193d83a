/* Running small HLO texts in tests. */
#ifndef LW_TESTS_INTERP_RUN_H
#define LW_TESTS_INTERP_RUN_H

#include "../unit.h"
#include "interp/interp.h"
#include "reader/reader.h"

typedef struct {
  lw_context *ctx;
  lw_arena *arena;
  lw_module *m;
} program;

/* Parses; fails the test with the reader's message. */
void program_read(program *p, const char *text);
void program_free(program *p);
/* Runs the entry on these arguments. */
lw_literal *program_run(program *p, const lw_literal *const *args, int n,
                        const lw_interp_options *opts);
/* Expects an error of this code whose message holds the words. */
void program_fails(program *p, const lw_interp_options *opts, lw_code code,
                   const char *words);
/* f32 array argument with deterministic values in [-1, 1) of mixed size. */
lw_literal *floats(program *p, int32_t rank, const int64_t *dims,
                   uint64_t seed);

#endif
