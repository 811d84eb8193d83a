/* Child processes: the laboratory's programs under test, a compiler in Python,
 * Graphviz. No shell is involved; arguments arrive as they are given.
 */
#ifndef LW_LAB_PROCESS_H
#define LW_LAB_PROCESS_H

#include "base/buf.h"
#include "base/status.h"

typedef struct {
  const char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH */
  const char *const *env;  /* NULL-terminated "NAME=value" added to ours */
  const char *input;       /* fed to standard input; NULL: none */
  size_t input_len;
  const char *error_path; /* standard error goes there; NULL: captured */
  int64_t timeout_ms;     /* 0: none; then the child is killed */
} lw_process;

typedef struct {
  lw_buf out, err;
  int exit_code; /* 128 + signal when it was killed */
  bool timed_out;
  double wall_ms, cpu_ms; /* of the child and its own children */
} lw_process_result;

/* Runs it to its end. NOT_FOUND: no such program; a child that fails is a
 * result, not an error. The result is the caller's to free, also after an
 * error. */
LW_MUST_USE lw_status lw_process_run(const lw_process *p, lw_process_result *r);
void lw_process_result_free(lw_process_result *r);

/* Our environment with env's entries in place of ours of the same names, for a
 * child (env may be NULL). The array is the caller's to free, its strings are
 * not; NULL: no memory. */
char **lw_process_env(const char *const *env);

#endif
