/* Unique names, number for number as XLA's NameUniquer gives them.
 *
 * A name is a root and a number: a trailing ".N" that is an integer, else 0.
 * The first to ask for a pair gets it. Later ones get the root with the lowest
 * number that nobody has had, counted from 0: a name that was asked for with a
 * number may so become "root.0", one without is then just "root". Numbers are
 * never given back, also when the instruction goes: that is why the numbers in
 * a module depend on all that was ever in it (docs/names.md).
 *
 * The registry holds both tables. Under a pair's key (the root for number 0,
 * "root.N" else) bit 0 says that the pair is taken; under a root the other bits
 * hold the next number to try, so that a thousand names of one root cost a
 * thousand steps. */
#include <string.h>

#include "hlo/hlo.h"

typedef struct {
  size_t root_len;
  bool numbered;
  int64_t number;
} split_name;

/* -?[0-9]+ that fits. */
static bool parse_number(const char *s, int64_t *out) {
  bool neg = *s == '-';
  int64_t v = 0;
  if (!*(s += neg)) return false;
  for (; *s; s++)
    if (*s < '0' || *s > '9' || __builtin_mul_overflow(v, 10, &v) ||
        __builtin_add_overflow(v, *s - '0', &v))
      return false;
  *out = neg ? -v : v;
  return true;
}

static split_name split(const char *name) {
  split_name n = {.root_len = strlen(name)};
  const char *dot = strrchr(name, '.');
  if (dot && dot > name && dot[1] && parse_number(dot + 1, &n.number)) {
    n.numbered = true;
    n.root_len = (size_t)(dot - name);
  }
  return n;
}

static const char *join(lw_context *ctx, const char *root, size_t len,
                        int64_t number, bool always) {
  if (number == 0 && !always) return lw_context_str(ctx, root, len);
  lw_buf b = {0};
  lw_buf_add(&b, root, len);
  lw_buf_chr(&b, '.');
  lw_buf_i64(&b, number);
  const char *s = lw_context_str(ctx, b.data, b.len);
  lw_buf_free(&b);
  return s;
}

/* The pair's key. Number 0 of a root that ends in a number itself ("a.5.0") is
 * not number 5 of "a". */
static const char *key_of(lw_context *ctx, const char *root, int64_t number) {
  return join(ctx, root, strlen(root), number, split(root).numbered);
}

/* True when the pair was free; it is taken then. */
static bool claim(lw_context *ctx, lw_map *registry, const char *root,
                  int64_t number) {
  const char *key = key_of(ctx, root, number);
  uint64_t *slot = lw_map_put(registry, (uintptr_t)key);
  bool is_free = !(*slot & 1);
  *slot |= 1;
  return is_free;
}

const char *lw_name_unique(lw_context *ctx, lw_map *registry,
                           const char *want) {
  split_name n = split(want);
  const char *root = lw_context_str(ctx, want, n.root_len);
  int64_t number = n.number;
  if (!claim(ctx, registry, root, number)) {
    number = (int64_t)(*lw_map_put(registry, (uintptr_t)root) >> 1);
    while (!claim(ctx, registry, root, number)) number++;
    uint64_t *next = lw_map_put(registry, (uintptr_t)root);
    *next = (*next & 1) | ((uint64_t)number + 1) << 1;
  }
  const char *given = join(ctx, root, n.root_len, number, n.numbered);
  (void)lw_map_put(registry, (uintptr_t)given); /* its text is known, too */
  return given;
}

void lw_names_copy(lw_map *to, const lw_map *from) {
  for (size_t k = 0; k < from->len; k++)
    *lw_map_put(to, from->keys[k]) |= from->values[k];
}
