#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"

void *lw_vec_grow_(void *data, size_t *cap, size_t need, size_t size) {
  size_t n = *cap ? *cap * 2 : 8;
  if (n < need) n = need;
  void *p = realloc(data, lw_array_bytes(n, size));
  if (!p) lw_oom(n * size);
  *cap = n;
  return p;
}

uint64_t lw_hash_bytes(const void *p, size_t n, uint64_t seed) {
  const unsigned char *s = p;
  uint64_t h = seed ^ (0x9e3779b97f4a7c15ull * (n + 1));
  for (; n >= 8; n -= 8, s += 8) {
    uint64_t w;
    memcpy(&w, s, 8);
    h = lw_hash_mix(h, w);
  }
  uint64_t w = 0;
  if (n) memcpy(&w, s, n);
  return lw_hash_mix(h, w ^ ((uint64_t)n << 56));
}

static size_t slot_of(const lw_map *m, uint64_t key) {
  size_t mask = m->slot_cap - 1;
  size_t i = (size_t)lw_hash_mix(0, key) & mask;
  while (m->slots[i] && m->keys[m->slots[i] - 1] != key) i = (i + 1) & mask;
  return i;
}

uint64_t *lw_map_get(const lw_map *m, uint64_t key) {
  if (!m->slot_cap) return NULL;
  uint32_t e = m->slots[slot_of(m, key)];
  return e ? &m->values[e - 1] : NULL;
}

static void grow(lw_map *m) {
  size_t cap = m->cap ? m->cap * 2 : 16;
  if (cap > UINT32_MAX / 4) lw_oom(cap);
  m->keys = realloc(m->keys, cap * sizeof *m->keys);
  m->values = realloc(m->values, cap * sizeof *m->values);
  free(m->slots);
  m->slots = calloc(cap * 2, sizeof *m->slots);
  if (!m->keys || !m->values || !m->slots) lw_oom(cap * 24);
  m->cap = cap;
  m->slot_cap = cap * 2;
  for (size_t i = 0; i < m->len; i++)
    m->slots[slot_of(m, m->keys[i])] = (uint32_t)i + 1;
}

uint64_t *lw_map_put(lw_map *m, uint64_t key) {
  if (m->len == m->cap) {
    uint64_t *found = lw_map_get(m, key);
    if (found) return found;
    grow(m);
  }
  size_t i = slot_of(m, key);
  if (!m->slots[i]) {
    m->keys[m->len] = key;
    m->values[m->len] = 0;
    m->slots[i] = (uint32_t)++m->len;
  }
  return &m->values[m->slots[i] - 1];
}

void lw_map_free(lw_map *m) {
  free(m->keys);
  free(m->values);
  free(m->slots);
  *m = (lw_map){0};
}

/* Hashes stand beside the strings, so that a probe reads no string but the one
 * it finds, and growing none at all. */
struct lw_intern {
  lw_arena *arena;
  const char **slots;
  uint64_t *hashes;
  size_t len, cap;
};

lw_intern *lw_intern_new(lw_arena *a) {
  lw_intern *t = calloc(1, sizeof *t);
  if (!t) lw_oom(sizeof *t);
  t->arena = a;
  return t;
}

/* Strings are stored behind their length, so that NULs may occur. */
static size_t str_len(const char *s) {
  size_t n;
  memcpy(&n, s - sizeof n, sizeof n);
  return n;
}

static bool intern_is(const lw_intern *t, size_t i, uint64_t hash,
                      const char *s, size_t len) {
  return t->hashes[i] == hash && str_len(t->slots[i]) == len &&
         !memcmp(t->slots[i], s, len);
}

static size_t intern_slot(const lw_intern *t, uint64_t hash, const char *s,
                          size_t len) {
  size_t mask = t->cap - 1, i = (size_t)hash & mask;
  while (t->slots[i] && !intern_is(t, i, hash, s, len)) i = (i + 1) & mask;
  return i;
}

static void intern_grow(lw_intern *t) {
  lw_intern old = *t;
  t->cap = old.cap ? old.cap * 2 : 256;
  t->slots = calloc(t->cap, sizeof *t->slots);
  t->hashes = calloc(t->cap, sizeof *t->hashes);
  if (!t->slots || !t->hashes) lw_oom(t->cap * sizeof *t->slots);
  for (size_t k = 0; k < old.cap; k++) {
    if (!old.slots[k]) continue;
    size_t i = (size_t)old.hashes[k] & (t->cap - 1);
    while (t->slots[i]) i = (i + 1) & (t->cap - 1);
    t->slots[i] = old.slots[k];
    t->hashes[i] = old.hashes[k];
  }
  free(old.slots);
  free(old.hashes);
}

const char *lw_intern_str(lw_intern *t, const char *s, size_t len) {
  if (t->len * 2 >= t->cap) intern_grow(t);
  uint64_t hash = lw_hash_bytes(s, len, 1);
  size_t i = intern_slot(t, hash, s, len);
  if (!t->slots[i]) {
    char *p = lw_arena_alloc(t->arena, sizeof len + len + 1);
    memcpy(p, &len, sizeof len);
    if (len) memcpy(p + sizeof len, s, len);
    t->slots[i] = p + sizeof len;
    t->hashes[i] = hash;
    t->len++;
  }
  return t->slots[i];
}

void lw_intern_free(lw_intern *t) {
  if (!t) return;
  free(t->slots);
  free(t->hashes);
  free(t);
}
