#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static lw_status io_error(const char *verb, const char *path) {
  lw_code code = errno == ENOENT ? LW_NOT_FOUND : LW_UNKNOWN;
  return lw_error(code, "cannot %s %s: %s", verb, path, strerror(errno));
}

static lw_status read_fd(int fd, const char *path, char **data, size_t *len) {
  size_t cap = 1 << 16, n = 0;
  struct stat st;
  if (!fstat(fd, &st)) {
    if (S_ISDIR(st.st_mode))
      return lw_error(LW_INVALID_ARGUMENT, "%s is a directory", path);
    if (st.st_size > 0) cap = (size_t)st.st_size + 1;
  }
  char *p = malloc(cap + 1);
  for (;;) {
    if (!p) return lw_error(LW_RESOURCE_EXHAUSTED, "%s is too large", path);
    ssize_t got = read(fd, p + n, cap - n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      free(p);
      return io_error("read", path);
    }
    if (got == 0) break;
    n += (size_t)got;
    if (n < cap) continue;
    char *q = cap > SIZE_MAX / 4 ? NULL : realloc(p, cap * 2 + 1);
    if (!q) free(p);
    p = q;
    cap *= 2;
  }
  p[n] = 0;
  *data = p;
  *len = n;
  return NULL;
}

lw_status lw_file_read(const char *path, char **data, size_t *len) {
  if (!strcmp(path, "-")) return read_fd(0, "standard input", data, len);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return io_error("open", path);
  lw_status s = read_fd(fd, path, data, len);
  close(fd);
  return s;
}

static bool write_all(int fd, const char *p, size_t n) {
  while (n) {
    ssize_t put = write(fd, p, n);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    p += put;
    n -= (size_t)put;
  }
  return true;
}

lw_status lw_file_write(const char *path, const void *data, size_t len) {
  lw_buf tmp = {0};
  lw_buf_printf(&tmp, "%s.tmp.%ld", path, (long)getpid());
  lw_status s = NULL;
  int fd = open(tmp.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    s = io_error("write", path);
  } else {
    bool ok = write_all(fd, data, len);
    if (close(fd)) ok = false;
    if (!ok || rename(tmp.data, path)) {
      s = io_error("write", path);
      unlink(tmp.data);
    }
  }
  lw_buf_free(&tmp);
  return s;
}

lw_status lw_dir_make(const char *path) {
  lw_buf b = {0};
  lw_status s = NULL;
  for (const char *p = path; !s; p++) {
    if (*p && *p != '/') continue;
    b.len = 0;
    lw_buf_add(&b, path, (size_t)(p - path));
    if (b.len && mkdir(b.data, 0777) && errno != EEXIST)
      s = io_error("make directory", b.data);
    if (!*p) break;
  }
  lw_buf_free(&b);
  return s;
}

bool lw_file_exists(const char *path) {
  struct stat st;
  return !stat(path, &st) && !S_ISDIR(st.st_mode);
}

bool lw_dir_exists(const char *path) {
  struct stat st;
  return !stat(path, &st) && S_ISDIR(st.st_mode);
}
