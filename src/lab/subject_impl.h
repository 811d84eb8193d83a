/* What the files of a subject share. */
#ifndef LW_LAB_SUBJECT_IMPL_H
#define LW_LAB_SUBJECT_IMPL_H

#include "lab/setup.h"
#include "lab/subject_jobs.h"

/* Where XLA compiles for a target. */
typedef struct {
  const char *backend; /* "cpu", "gpu", "tpu" */
  lw_buf device;       /* what its Python asks for; "" on the CPU */
} lw_xla_target;

/* NULL and "cpu": this machine. NOT_FOUND with the nearest name. */
LW_MUST_USE lw_status lw_xla_target_of(const char *target, lw_xla_target *t);
void lw_xla_target_free(lw_xla_target *t);

/* subject_lawson.c and subject_xla.c: before.hlo is there. Each job's status
 * is set; the result is an error of all of them together. */
LW_MUST_USE lw_status lw_subject_lawson(lw_subject_job *jobs, int32_t n);
LW_MUST_USE lw_status lw_subject_xla(lw_subject_job *jobs, int32_t n);

/* DIR/meta.json. version: of the compiler. lost: a comma list. */
LW_MUST_USE lw_status lw_subject_write_meta(const lw_subject_job *job,
                                            const char *version,
                                            double compile_ms,
                                            const char *lost);

#endif
