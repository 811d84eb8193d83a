/* The modules' texts, line by line, each line with the value and the box that
 * it speaks of: what joins the two sides of the HLO tab. */
#include <string.h>

#include "fusion/fuse.h"
#include "hlo/print.h"
#include "lab/xray_impl.h"

static lw_print_options text_options(void) {
  lw_print_options o = lw_print_default;
  o.metadata = false;
  o.large_constants = false;
  o.backend_config = false;
  return o;
}

/* "  ROOT %name = ..." -> name; NULL when the line defines nothing. */
static const char *name_on(const char *line, size_t len, size_t *n) {
  const char *end = line + len;
  while (line < end && *line == ' ') line++;
  if (end - line > 5 && !strncmp(line, "ROOT ", 5)) line += 5;
  if (line < end && *line == '%') line++;
  const char *stop = line;
  while (stop < end && *stop != ' ') stop++;
  if (stop == line || end - stop < 3 || strncmp(stop, " = ", 3)) return NULL;
  *n = (size_t)(stop - line);
  return line;
}

/* Instructions of the module by computation and name. */
static uint64_t key_of(const char *comp, size_t n_comp, const char *name,
                       size_t n) {
  return lw_hash_mix(lw_hash_bytes(comp, n_comp, 3), lw_hash_bytes(name, n, 5));
}

static lw_map index_module(const lw_module *m) {
  lw_map map = {0};
  for (const lw_comp *c = m->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next)
      *lw_map_put(&map, key_of(c->name, strlen(c->name), i->name,
                               strlen(i->name))) = (uintptr_t)i;
  return map;
}

/* "%name (" or "ENTRY %name (" at the margin. */
static const char *comp_on(const char *line, size_t len, size_t *n) {
  const char *end = line + len;
  if (!len || *line == ' ') return NULL;
  if (len > 6 && !strncmp(line, "ENTRY ", 6)) line += 6;
  if (line == end || *line != '%') return NULL;
  const char *stop = ++line;
  while (stop < end && *stop != ' ') stop++;
  *n = (size_t)(stop - line);
  return line;
}

static void note_before(lw_xray *x, const lw_inst *i, xray_line *l) {
  const uint64_t *v = lw_map_get(&x->value_of, (uintptr_t)i);
  if (!v) return;
  l->value = (int32_t)*v - 1;
  x->values.data[l->value].line = (int32_t)x->text_before.len;
}

static void note_after(lw_xray *x, const lw_inst *i, xray_line *l) {
  const uint64_t *n = lw_map_get(&x->node_of, (uintptr_t)i);
  const uint64_t *b = lw_map_get(&x->box_of, (uintptr_t)i);
  const lw_inst *fusion = lw_map_ptr(&x->caller, i->parent);
  if (n) l->value = x->nodes.data[*n - 1].value;
  if (b) {
    l->box = (int32_t)*b - 1;
    x->boxes.data[l->box].line = (int32_t)x->text_after.len;
  } else if (fusion) {
    b = lw_map_get(&x->box_of, (uintptr_t)fusion);
    if (b) l->box = (int32_t)*b - 1;
  }
}

static void split(lw_xray *x, const lw_module *m, bool before) {
  lw_buf b = {0};
  lw_print_options o = text_options();
  lw_module_print(&b, m, &o);
  const char *comp = "", *text = lw_buf_cstr(&b);
  size_t n_comp = 0, n;
  lw_map at = index_module(m);
  while (*text) {
    size_t len = strcspn(text, "\n");
    xray_line l = {lw_arena_strdup(x->arena, text, len), -1, -1};
    const char *c = comp_on(text, len, &n);
    const char *name = c ? NULL : name_on(text, len, &n);
    if (c) comp = c, n_comp = n;
    const lw_inst *i =
        name ? (const lw_inst *)lw_map_ptr(
                   &at, (const void *)(uintptr_t)key_of(comp, n_comp, name, n))
             : NULL;
    if (i && before) note_before(x, i, &l);
    if (i && !before) note_after(x, i, &l);
    if (before)
      lw_vec_push(&x->text_before, l);
    else
      lw_vec_push(&x->text_after, l);
    text += len + (text[len] == '\n');
  }
  lw_map_free(&at);
  lw_buf_free(&b);
}

void xray_list_lines(lw_xray *x) {
  split(x, x->before, true);
  split(x, x->after, false);
}
