#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void reserve(lw_buf *b, size_t more) {
  if (b->cap - b->len > more) return;
  size_t cap = b->cap ? b->cap : 64;
  while (cap - b->len <= more) {
    if (cap > SIZE_MAX / 2) lw_oom(cap);
    cap *= 2;
  }
  char *p = realloc(b->data, cap);
  if (!p) lw_oom(cap);
  b->data = p;
  b->cap = cap;
}

void lw_buf_add(lw_buf *b, const void *p, size_t n) {
  reserve(b, n);
  if (n) memcpy(b->data + b->len, p, n);
  b->len += n;
  b->data[b->len] = 0;
}

void lw_buf_str(lw_buf *b, const char *s) { lw_buf_add(b, s, strlen(s)); }

void lw_buf_chr(lw_buf *b, char c) { lw_buf_add(b, &c, 1); }

void lw_buf_i64(lw_buf *b, int64_t v) {
  char tmp[24], *end = tmp + sizeof tmp, *p = end;
  uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
  do {
    *--p = (char)('0' + rest % 10);
  } while (rest /= 10);
  if (v < 0) *--p = '-';
  lw_buf_add(b, p, (size_t)(end - p));
}

void lw_buf_vprintf(lw_buf *b, const char *fmt, va_list ap) {
  va_list again;
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, again);
  va_end(again);
  if (n < 0) return;
  reserve(b, (size_t)n + 1);
  vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
  b->len += (size_t)n;
}

void lw_buf_printf(lw_buf *b, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  lw_buf_vprintf(b, fmt, ap);
  va_end(ap);
}

const char *lw_buf_cstr(lw_buf *b) { return b->data ? b->data : ""; }

void lw_buf_free(lw_buf *b) {
  free(b->data);
  *b = (lw_buf){0};
}

bool lw_str_listed(const char *list, const char *name) {
  size_t len = strlen(name);
  for (const char *p = list; p && *p;) {
    const char *end = strchr(p, ',');
    size_t n = end ? (size_t)(end - p) : strlen(p);
    if (n == len && !memcmp(p, name, n)) return true;
    p = end ? end + 1 : NULL;
  }
  return false;
}
