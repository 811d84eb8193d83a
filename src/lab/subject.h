/* A subject: some compiler for some target, asked to compile one module, its
 * answer laid out as files in a folder that every command of the laboratory
 * reads in the same way:
 *
 *   before.hlo      the module as it was handed over
 *   fusion_in.hlo   right before the first fusion pass that changed something;
 *                   equal to after.hlo when none did
 *   after.hlo       the optimised module
 *   passes.tsv      order, depth, kind (pass | pipeline), name, changed (yes |
 *                   no | unknown), ms; one line each, a header line first
 *   decisions.tsv   XLA:GPU's own record of its priority fusion, when it kept
 *                   one; Lawson's records are decisions.json (lawson.explain)
 *   meta.json       compiler, version, target, options, what it could not keep
 */
#ifndef LW_LAB_SUBJECT_H
#define LW_LAB_SUBJECT_H

#include <stdint.h>

#include "base/status.h"

typedef struct {
  const char *compiler;       /* "lawson", "xla" or "xla@VERSION" */
  const char *target;         /* "cpu", "h100", "v6e", a target file */
  const char *const *disable; /* passes to leave out */
  int32_t n_disable;
  const char *const *options; /* Lawson: options of `opt`; XLA: XLA_FLAGS */
  int32_t n_options;
} lw_subject;

/* Compiles module_path; out_dir is made and receives the files above.
 * UNAVAILABLE: the compiler is not set up (the message holds the `lawson setup`
 * command); NOT_FOUND: an unknown compiler, target or pass, with the nearest
 * names; INVALID_ARGUMENT: the compiler refused the module, with its words. */
LW_MUST_USE lw_status lw_subject_compile(const lw_subject *s,
                                         const char *module_path,
                                         const char *out_dir);

/* The Python that runs this compiler (the caller frees *path): LAWSON_PYTHON,
 * else what `lawson setup` made. UNAVAILABLE as above. */
LW_MUST_USE lw_status lw_subject_python(const char *compiler,
                                        const char *target, char **path);

#endif
