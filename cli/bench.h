/* What the files of `lawson bench` share. */
#ifndef LW_CLI_BENCH_H
#define LW_CLI_BENCH_H

#include "common.h"
#include "lab/bench.h"

/* One side of a comparison: a module, options, who compiles. */
typedef struct {
  char letter;
  const char *module;             /* as given, made absolute */
  LW_VEC(const char *) words;     /* its options: of both sides, then its own */
  LW_VEC(const char *) xla_flags; /* those of the words that XLA reads */
  cli_args *args;                 /* the other words, parsed */
  LW_VEC(const char *) argv;      /* of its worker; ends with NULL */
  char *python;                   /* owned; NULL: Lawson */
  char *script;                   /* owned */
  char file_hash[24], fingerprint[24];
  const char *ready;   /* JSON: what its first worker said */
  const char *outputs; /* .npz of its outputs */
  int64_t runs;        /* calls in a sample */
} bench_side;

/* cli/bench_worker.c: serves the protocol of lab/worker.h. */
int cli_bench_worker(const cli_args *a);

/* ---- bench_side.c ---- */

/* The options that stand on the command itself and hold for both sides. */
void bench_common_words(const cli_args *a, lw_arena *arena, bench_side *s);
/* Adds OPTS, cut as a shell cuts words. CLI_YES or an exit code. */
int bench_split_words(const char *opts, lw_arena *arena, bench_side *s);
/* Checks the words and makes the worker's command. inputs: an .npz; text: the
 * module as HLO text for XLA, written to folder. */
int bench_prepare(bench_side *s, const char *inputs, const char *folder,
                  lw_arena *arena);
/* Starts it once: its optimised module, outputs, calls a sample. */
int bench_try(bench_side *s, const char *folder, double sample_ms,
              lw_arena *arena);
/* Do both compile to one and the same program? */
bool bench_same_program(const bench_side *a, const bench_side *b);
void bench_side_free(bench_side *s);
bool bench_is_xla(const bench_side *s);
/* 16 hex digits of a file's bytes. */
int bench_hash_file(const char *path, char out[24]);

enum { BENCH_TIMEOUT_MS = 600000 };

#endif
