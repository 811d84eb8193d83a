/* Finding the files that come with the binary. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "lab/setup.h"

static bool take(const char *folder, const char *inside, const char *file,
                 lw_buf *tried, char **path) {
  lw_buf b = {0};
  lw_buf_printf(&b, "%s%s/%s", folder, inside, file);
  if (lw_file_exists(lw_buf_cstr(&b))) {
    *path = b.data;
    return true;
  }
  lw_buf_printf(tried, "\n  %s", lw_buf_cstr(&b));
  lw_buf_free(&b);
  return false;
}

/* The folder of the running program, or "". */
static void own_folder(char *out, size_t size) {
  ssize_t n = readlink("/proc/self/exe", out, size - 1);
  out[n > 0 ? n : 0] = '\0';
  char *slash = strrchr(out, '/');
  if (slash) *slash = '\0';
}

lw_status lw_share_path(const char *file, char **path) {
  lw_buf tried = {0};
  *path = NULL;
  const char *given = getenv("LAWSON_SHARE");
  char own[4096];
  own_folder(own, sizeof own);
  bool found = given && *given
                   ? take(given, "", file, &tried, path)
                   : take(own, "/share/lawson", file, &tried, path) ||
                         take(own, "/../share/lawson", file, &tried, path);
  lw_status st =
      found ? NULL
            : lw_error(LW_NOT_FOUND,
                       "Lawson's own file %s is missing; looked for:%s", file,
                       lw_buf_cstr(&tried));
  lw_buf_free(&tried);
  return st;
}
