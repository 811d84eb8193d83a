/* Folders for a while (scratch.h). */
#define _XOPEN_SOURCE 700 /* nftw */
#include "lab/scratch.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

lw_status lw_scratch_new(char **folder) {
  const char *tmp = getenv("TMPDIR");
  lw_buf b = {0};
  lw_buf_printf(&b, "%s/lawson-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  *folder = NULL;
  if (!mkdtemp(b.data)) {
    lw_status st = lw_error(LW_PERMISSION_DENIED, "no folder %s: %s", b.data,
                            strerror(errno));
    lw_buf_free(&b);
    return st;
  }
  *folder = b.data;
  return NULL;
}

static int remove_one(const char *path, const struct stat *s, int type,
                      struct FTW *f) {
  (void)s;
  (void)type;
  (void)f;
  return remove(path);
}

void lw_scratch_free(char *folder) {
  if (!folder) return;
  nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  free(folder);
}
