/* Python environments that hold a real XLA: made from PyPI by `lawson setup`,
 * kept under XDG_DATA_HOME/lawson (~/.local/share/lawson), one a name:
 *
 *   xla-cpu, xla-gpu, xla-tpu          the versions pinned in setup.c
 *   xla-cpu@V, xla-gpu@V, xla-tpu@V    jax V and what belongs to it
 *   xla@V                              xla-cpu@V
 *
 * An environment counts once its file `ready` is there, which is written last;
 * one without it is the rest of an interrupted setup and is made anew. */
#ifndef LW_LAB_SETUP_H
#define LW_LAB_SETUP_H

#include "base/buf.h"
#include "base/vec.h"

typedef struct {
  char *name, *folder;
  bool ready;
  char *packages; /* as pip was told, on one line */
} lw_setup_entry;

typedef LW_VEC(lw_setup_entry) lw_setup_list;

/* The environment that a compiler needs for a backend ("cpu", "gpu", "tpu"):
 * its name, malloc'ed. */
char *lw_setup_name(const char *backend, const char *version);
/* A name as it is kept ("xla@1" is "xla-cpu@1"). NOT_FOUND with the nearest. */
LW_MUST_USE lw_status lw_setup_resolve(const char *name, char **kept);

/* Makes it, unless it is ready. say is told what happens; may be NULL.
 * UNAVAILABLE: Python, the network or a package is missing, with pip's words.
 * Two at a time wait for each other. */
LW_MUST_USE lw_status lw_setup_make(const char *kept,
                                    void (*say)(const char *));
LW_MUST_USE lw_status lw_setup_remove(const char *kept);
/* What there is, and the three pinned ones in any case. */
LW_MUST_USE lw_status lw_setup_find_all(lw_setup_list *list);
void lw_setup_list_free(lw_setup_list *list);
/* Its Python, malloc'ed, or NULL when it is not ready. */
char *lw_setup_python(const char *kept);

/* The files that come with the binary: LAWSON_SHARE, share/lawson beside it,
 * or ../share/lawson. malloc'ed. NOT_FOUND names the places. */
LW_MUST_USE lw_status lw_share_path(const char *file, char **path);

#endif
