/* The bits question over files: two outputs.npz of one program. */
#include "driver/driver.h"
#include "lab/ablate_impl.h"
#include "lib/npz.h"

lw_status lw_read_module_of(const char *folder, const char *name,
                            lw_read_module *out) {
  lw_buf path = {0};
  lw_buf_printf(&path, "%s/%s", folder, name);
  *out = (lw_read_module){.ctx = lw_context_new()};
  lw_status st =
      lw_load_module(out->ctx, lw_buf_cstr(&path), NULL, NULL, &out->module);
  lw_buf_free(&path);
  if (st) lw_read_module_free(out);
  return st;
}

void lw_read_module_free(lw_read_module *r) {
  if (r->module) lw_module_free(r->module);
  if (r->ctx) lw_context_free(r->ctx);
  *r = (lw_read_module){0};
}

typedef struct {
  lw_npz *a, *b;
  lw_arena *arena;
  int number;
  bool same;
  const char *text;
} comparison;

static lw_status compare_leaf(comparison *c, const lw_shape *s) {
  char *key = lw_arena_printf(c->arena, "o%d", c->number++);
  lw_literal *x, *y;
  LW_TRY(lw_npz_read(c->a, key, s, c->arena, &x));
  LW_TRY(lw_npz_read(c->b, key, s, c->arena, &y));
  const char *where = NULL;
  if (c->same && !lw_literal_same_bits(x, y, c->arena, &where)) {
    c->same = false;
    c->text = lw_arena_printf(c->arena, "%s: %s", key, where ? where : "");
  }
  return NULL;
}

static lw_status compare_leaves(comparison *c, const lw_shape *s) {
  if (lw_shape_is_array(s)) return compare_leaf(c, s);
  for (int32_t k = 0; k < s->n_elems; k++)
    LW_TRY(compare_leaves(c, s->elems[k]));
  return NULL;
}

static lw_status open_both(comparison *c, const char *folder_a,
                           const char *folder_b) {
  char *a = lw_arena_printf(c->arena, "%s/outputs.npz", folder_a);
  char *b = lw_arena_printf(c->arena, "%s/outputs.npz", folder_b);
  LW_TRY(lw_npz_open(a, &c->a));
  return lw_npz_open(b, &c->b);
}

lw_bits lw_compare_outputs(const lw_module *m, const char *folder_a,
                           const char *folder_b, lw_arena *a,
                           const char **text) {
  comparison c = {.arena = a, .same = true};
  lw_status st = open_both(&c, folder_a, folder_b);
  if (!st) st = compare_leaves(&c, m->entry->root->shape);
  if (c.a) lw_npz_close(c.a);
  if (c.b) lw_npz_close(c.b);
  *text = c.text;
  if (!st) return c.same ? LW_BITS_SAME : LW_BITS_DIFFER;
  *text = lw_arena_printf(a, "%s", lw_status_message(st));
  lw_status_free(st);
  return LW_BITS_UNKNOWN;
}
