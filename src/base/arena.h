/* Arena: bump allocation, freed as a whole. Nothing allocated here is freed
 * alone. Never returns NULL (lw_oom otherwise); memory is zeroed. */
#ifndef LW_BASE_ARENA_H
#define LW_BASE_ARENA_H

#include "base/status.h"

typedef struct lw_arena lw_arena;

lw_arena *lw_arena_new(void);
void lw_arena_free(lw_arena *a);
void *lw_arena_alloc(lw_arena *a, size_t bytes);
char *lw_arena_strdup(lw_arena *a, const char *s, size_t len);
void *lw_arena_memdup(lw_arena *a, const void *p, size_t bytes);
/* printf into the arena. */
char *lw_arena_printf(lw_arena *a, const char *fmt, ...) LW_PRINTF(2, 3);
/* A status-checked block for sizes that come from input (literals). The arena
 * owns it. */
LW_MUST_USE lw_status lw_arena_alloc_large(lw_arena *a, size_t bytes,
                                           void **out);

#define LW_NEW(a, T) ((T *)lw_arena_alloc((a), sizeof(T)))
#define LW_NEW_ARRAY(a, T, n) \
  ((T *)lw_arena_alloc((a), lw_array_bytes((size_t)(n), sizeof(T))))

/* n * size, stopping by lw_oom on overflow. */
size_t lw_array_bytes(size_t n, size_t size);

#endif
