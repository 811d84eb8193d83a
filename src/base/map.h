/* Hash maps. Iteration order is insertion order (nothing iterates a hash table
 * into output by accident). Deletion is by setting the value. */
#ifndef LW_BASE_MAP_H
#define LW_BASE_MAP_H

#include "base/status.h"

/* uint64 -> uint64 (pointers are cast). Zero-initialise to start. */
typedef struct {
  uint64_t *keys, *values; /* entries in insertion order */
  uint32_t *slots;         /* open addressing: entry + 1, 0 = empty */
  size_t len, cap, slot_cap;
} lw_map;

uint64_t *lw_map_get(const lw_map *m, uint64_t key); /* NULL when absent */
/* The value slot of key, created as 0 when absent. Valid until the next put. */
uint64_t *lw_map_put(lw_map *m, uint64_t key);
void lw_map_free(lw_map *m);

static inline void *lw_map_ptr(const lw_map *m, const void *key) {
  uint64_t *v = lw_map_get(m, (uint64_t)(uintptr_t)key);
  return v ? (void *)(uintptr_t)*v : NULL;
}
static inline void lw_map_set_ptr(lw_map *m, const void *key, const void *v) {
  *lw_map_put(m, (uint64_t)(uintptr_t)key) = (uint64_t)(uintptr_t)v;
}

/* Interned strings: equal strings are the same pointer for a table's life. */
typedef struct lw_intern lw_intern;
typedef struct lw_arena lw_arena;

lw_intern *lw_intern_new(lw_arena *a);
const char *lw_intern_str(lw_intern *t, const char *s, size_t len);
void lw_intern_free(lw_intern *t);

/* 64-bit mixing hash, stable over processes and machines. */
uint64_t lw_hash_bytes(const void *p, size_t n, uint64_t seed);
static inline uint64_t lw_hash_mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdull;
  return h ^ (h >> 32);
}

#endif
