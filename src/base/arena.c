#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct chunk {
  struct chunk *next;
  size_t size, used;
  char data[] __attribute__((aligned(16)));
} chunk;

struct lw_arena {
  chunk *head;
};

enum { FIRST_CHUNK = 4096, MAX_CHUNK = 1 << 20 };

lw_arena *lw_arena_new(void) {
  lw_arena *a = calloc(1, sizeof *a);
  if (!a) lw_oom(sizeof *a);
  return a;
}

void lw_arena_free(lw_arena *a) {
  if (!a) return;
  for (chunk *c = a->head; c;) {
    chunk *next = c->next;
    free(c);
    c = next;
  }
  free(a);
}

/* calloc, so that untouched pages of big chunks cost nothing. */
static chunk *new_chunk(size_t bytes) {
  chunk *c = calloc(1, sizeof(chunk) + bytes);
  if (!c) return NULL;
  c->size = bytes;
  return c;
}

void *lw_arena_alloc(lw_arena *a, size_t bytes) {
  size_t need = (bytes + 15) & ~(size_t)15;
  if (need < bytes) lw_oom(bytes);
  chunk *c = a->head;
  if (!c || c->size - c->used < need) {
    size_t size = c ? c->size * 2 : FIRST_CHUNK;
    if (size > MAX_CHUNK) size = MAX_CHUNK;
    bool big = need > size / 2 && c;
    if (need > size || big) size = need;
    chunk *fresh = new_chunk(size);
    if (!fresh) lw_oom(size);
    if (big) { /* keep filling the current chunk afterwards */
      fresh->next = c->next;
      c->next = fresh;
    } else {
      fresh->next = c;
      a->head = fresh;
    }
    c = fresh;
  }
  void *p = c->data + c->used;
  c->used += need;
  return p;
}

lw_status lw_arena_alloc_large(lw_arena *a, size_t bytes, void **out) {
  chunk *c = bytes > SIZE_MAX / 2 ? NULL : new_chunk(bytes ? bytes : 1);
  if (!c)
    return lw_error(LW_RESOURCE_EXHAUSTED, "cannot allocate %zu bytes", bytes);
  c->used = c->size;
  if (a->head) {
    c->next = a->head->next;
    a->head->next = c;
  } else {
    a->head = c;
  }
  *out = c->data;
  return NULL;
}

char *lw_arena_strdup(lw_arena *a, const char *s, size_t len) {
  char *p = lw_arena_alloc(a, len + 1);
  if (len) memcpy(p, s, len);
  return p;
}

void *lw_arena_memdup(lw_arena *a, const void *src, size_t bytes) {
  void *p = lw_arena_alloc(a, bytes);
  if (bytes) memcpy(p, src, bytes);
  return p;
}

char *lw_arena_printf(lw_arena *a, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  char *p = lw_arena_alloc(a, (size_t)(n < 0 ? 0 : n) + 1);
  va_start(ap, fmt);
  vsnprintf(p, (size_t)(n < 0 ? 0 : n) + 1, fmt, ap);
  va_end(ap);
  return p;
}

size_t lw_array_bytes(size_t n, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(n, size, &bytes)) lw_oom(SIZE_MAX);
  return bytes;
}
