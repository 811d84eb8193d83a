#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lw_status_s {
  lw_code code;
  char message[];
};

/* The one error that cannot fail to exist: returned when malloc fails. */
static struct lw_status_s out_of_memory = {.code = LW_RESOURCE_EXHAUSTED,
                                           .message = {""}};

static lw_status make(lw_code code, const char *prefix, const char *fmt,
                      va_list ap) {
  va_list again;
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, again);
  va_end(again);
  if (n < 0) n = 0;
  size_t tail = prefix ? strlen(prefix) + 2 : 0;
  lw_status s = malloc(sizeof *s + (size_t)n + tail + 1);
  if (!s) return &out_of_memory;
  s->code = code;
  vsnprintf(s->message, (size_t)n + 1, fmt, ap);
  if (prefix) {
    memcpy(s->message + n, ": ", 2);
    memcpy(s->message + n + 2, prefix, tail - 1);
  }
  return s;
}

lw_status lw_error(lw_code code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  lw_status s = make(code, NULL, fmt, ap);
  va_end(ap);
  return s;
}

lw_status lw_status_annotate(lw_status old, const char *fmt, ...) {
  if (!old) return NULL;
  va_list ap;
  va_start(ap, fmt);
  lw_status s = make(old->code, old->message, fmt, ap);
  va_end(ap);
  lw_status_free(old);
  return s;
}

lw_code lw_status_code(lw_status s) { return s ? s->code : LW_OK; }

const char *lw_status_message(lw_status s) {
  if (!s) return "";
  return s == &out_of_memory ? "out of memory" : s->message;
}

void lw_status_free(lw_status s) {
  if (s && s != &out_of_memory) free(s);
}

void lw_oom(size_t bytes) {
  fprintf(stderr, "lawson: out of memory (%zu bytes)\n", bytes);
  _Exit(70);
}

void lw_panic(const char *file, int line, const char *what) {
  fprintf(stderr, "lawson: internal error at %s:%d: %s\n", file, line, what);
  _Exit(70);
}
