/* The Python that runs an XLA.
 *
 * LAWSON_PYTHON stands for the pinned environments, and for one of a version
 * that is not set up (subject.py looks whether it is that version).
 */
#include <stdlib.h>
#include <string.h>

#include "lab/subject_impl.h"

static lw_status not_set_up(const char *compiler, const char *target,
                            const char *kept) {
  return lw_error(LW_UNAVAILABLE,
                  "%s for %s is not set up here; make it ready with: lawson "
                  "setup %s",
                  compiler, target ? target : "cpu", kept);
}

lw_status lw_subject_python(const char *compiler, const char *target,
                            char **path) {
  *path = NULL;
  if (!lw_subject_is_xla(compiler))
    return lw_error(LW_NOT_FOUND, "%s runs in no Python",
                    compiler ? compiler : "lawson");
  LW_TRY(lw_subject_check(compiler, target));
  const char *given = getenv("LAWSON_PYTHON");
  bool overrides = given && *given;
  const char *version = lw_subject_version(compiler);
  lw_xla_target t;
  LW_TRY(lw_xla_target_of(target, &t));
  char *kept = lw_setup_name(t.backend, version);
  lw_xla_target_free(&t);
  if (!overrides || version) *path = lw_setup_python(kept);
  if (!*path && overrides) *path = strdup(given);
  lw_status st = *path ? NULL : not_set_up(compiler, target, kept);
  free(kept);
  return st;
}
