/* A growable byte string. Zero-initialise to start; lw_buf_free to end. */
#ifndef LW_BASE_BUF_H
#define LW_BASE_BUF_H

#include "base/status.h"

typedef struct {
  char *data; /* NUL-terminated once anything was appended */
  size_t len, cap;
} lw_buf;

void lw_buf_add(lw_buf *b, const void *p, size_t n);
void lw_buf_str(lw_buf *b, const char *s);
void lw_buf_chr(lw_buf *b, char c);
void lw_buf_i64(lw_buf *b, int64_t v);
void lw_buf_printf(lw_buf *b, const char *fmt, ...) LW_PRINTF(2, 3);
void lw_buf_vprintf(lw_buf *b, const char *fmt, va_list ap);
const char *lw_buf_cstr(lw_buf *b); /* never NULL */
void lw_buf_free(lw_buf *b);

/* Is name one of a list "a,b,c"? A NULL list has none. */
bool lw_str_listed(const char *list, const char *name);

#endif
