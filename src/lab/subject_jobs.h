/* Several compiles at once: one start of a subject's Python serves them all. */
#ifndef LW_LAB_SUBJECT_JOBS_H
#define LW_LAB_SUBJECT_JOBS_H

#include "base/buf.h"
#include "lab/subject.h"

typedef struct {
  const lw_subject *subject;
  const char *module_path;
  const char *which;   /* of a folder of dumps; NULL when there is one */
  const char *out_dir; /* receives what subject.h lists */
  /* Arrays p0, p1, ...: the program is run on them and out_dir/outputs.npz
   * holds o0, o1, .... NULL: it is not. Lawson and XLA:CPU only. */
  const char *inputs;
  lw_status status; /* the answer; the caller's to free */
  char *run_error;  /* why a compiled program did not run; malloc'ed */
} lw_subject_job;

/* Every job has its answer in its own status. An error of the call itself
 * (UNAVAILABLE, NOT_FOUND: see subject.h) leaves them all undone. */
LW_MUST_USE lw_status lw_subject_compile_all(lw_subject_job *jobs, int32_t n);
void lw_subject_jobs_free(lw_subject_job *jobs, int32_t n);

/* Is there such a compiler, and such a target of it? NOT_FOUND with the
 * nearest name. Nothing is started. */
LW_MUST_USE lw_status lw_subject_check(const char *compiler,
                                       const char *target);
bool lw_subject_is_xla(const char *compiler);
/* "0.9.2" of "xla@0.9.2"; NULL without one. */
const char *lw_subject_version(const char *compiler);

#endif
