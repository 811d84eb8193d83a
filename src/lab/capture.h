/* The modules that a program's own XLA compiles: run it with XLA's dump flags
 * set, then list the folder. */
#ifndef LW_LAB_CAPTURE_H
#define LW_LAB_CAPTURE_H

#include "base/buf.h"
#include "base/vec.h"

typedef struct {
  int64_t number; /* XLA's, in the order of compiling */
  char *name;     /* "jit_step" */
  char *file;     /* its module before optimisation, within the folder */
  char *after;    /* after it; NULL: XLA did not finish, or took another road */
  int64_t instructions, instructions_after, fusions_after;
  char *error; /* Lawson cannot read it; else NULL */
} lw_captured;

typedef LW_VEC(lw_captured) lw_capture_list;

/* Runs argv (NULL-terminated) with our standard streams and XLA_FLAGS extended
 * by flags that dump into folder (absolute; made when it is not there); the
 * program's own XLA_FLAGS hold too. Compiled programs are not taken from a
 * cache. *exit_code as in process.h. NOT_FOUND: no such program. */
LW_MUST_USE lw_status lw_capture_run(const char *const *argv,
                                     const char *folder, int *exit_code);
/* By number. */
LW_MUST_USE lw_status lw_capture_find(const char *folder,
                                      lw_capture_list *list);
void lw_capture_list_free(lw_capture_list *list);

#endif
