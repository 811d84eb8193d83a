/* Files, whole. */
#ifndef LW_BASE_FILE_H
#define LW_BASE_FILE_H

#include "base/buf.h"

/* Reads a whole file ("-" is standard input) into a malloc'ed NUL-terminated
 * block. Errors name the file. */
LW_MUST_USE lw_status lw_file_read(const char *path, char **data, size_t *len);
/* Writes through a temporary file and a rename, so that no reader sees half. */
LW_MUST_USE lw_status lw_file_write(const char *path, const void *data,
                                    size_t len);
LW_MUST_USE lw_status lw_dir_make(const char *path); /* and its parents */
bool lw_file_exists(const char *path);
bool lw_dir_exists(const char *path);

#endif
