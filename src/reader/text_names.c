/* Unique names, as XLA's NameUniquer gives them when its parser adds the
 * computations to the module. Instructions of different computations may have
 * one name in the text; in a module they may not.
 *
 * A name is a root and a number (a trailing ".N", else 0). The first to ask for
 * a pair gets it; later ones get the root with the lowest number that was never
 * given out to a name that had to change.
 */
#include <string.h>

#include "reader/text_parser.h"

typedef struct {
  lw_context *ctx;
  lw_map *registry; /* the module's: every name in it */
  lw_map taken;     /* interned "root" or "root.N" -> 1 */
  lw_map next;      /* interned root -> the next number to try */
} uniquer;

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

static const char *join(uniquer *u, const char *root, size_t len,
                        int64_t number, bool always) {
  if (number == 0 && !always) return lw_context_str(u->ctx, root, len);
  lw_buf b = {0};
  lw_buf_add(&b, root, len);
  lw_buf_printf(&b, ".%lld", (long long)number);
  const char *s = lw_context_str(u->ctx, b.data, b.len);
  lw_buf_free(&b);
  return s;
}

/* True when the pair was free; it is taken then. */
static bool claim(uniquer *u, const char *root, size_t len, int64_t number) {
  uint64_t *slot =
      lw_map_put(&u->taken, (uintptr_t)join(u, root, len, number, false));
  bool is_free = !*slot;
  *slot = 1;
  return is_free;
}

static const char *unique(uniquer *u, const char *name) {
  split_name n = split(name);
  int64_t number = n.number;
  if (!claim(u, name, n.root_len, number)) {
    const char *root = lw_context_str(u->ctx, name, n.root_len);
    int64_t next = (int64_t)*lw_map_put(&u->next, (uintptr_t)root);
    while (!claim(u, root, n.root_len, next)) next++;
    *lw_map_put(&u->next, (uintptr_t)root) = (uint64_t)next + 1;
    number = next;
  }
  const char *given = join(u, name, n.root_len, number, n.numbered);
  *lw_map_put(u->registry, (uintptr_t)given) = 1;
  return given;
}

static void name_comp(uniquer *comps, uniquer *insts, lw_comp *c) {
  c->name = unique(comps, c->name);
  for (lw_inst *i = c->first; i; i = i->next) i->name = unique(insts, i->name);
}

void lw_text_make_unique(lw_module *m, lw_comp *first) {
  uniquer insts = {.ctx = m->ctx, .registry = &m->names};
  uniquer comps = {.ctx = m->ctx, .registry = &m->comp_names};
  if (first) name_comp(&comps, &insts, first);
  for (lw_comp *c = m->first_comp; c; c = c->next)
    if (c != first) name_comp(&comps, &insts, c);
  lw_map_free(&insts.taken);
  lw_map_free(&insts.next);
  lw_map_free(&comps.taken);
  lw_map_free(&comps.next);
}
