#include "hlo/diff.h"

#include <string.h>

#include "hlo/infer.h"
#include "hlo/print.h"

/* ---- matching ---- */

typedef struct {
  const lw_comp *a, *b;
} comp_pair;

typedef struct {
  lw_diff *d;
  const lw_module *a, *b;
  lw_fp *fa, *fb;
  unsigned levels;
  const lw_inst **to_b, **to_a; /* partners, by id */
  int32_t *next;                /* chains of B's instructions with one key */
  uint8_t *seen_a, *seen_b;     /* computations, by id */
  LW_VEC(comp_pair) queue;
} matcher;

typedef uint64_t key_fn(const lw_fp *f, const lw_inst *i);

static uint64_t key_deep(const lw_fp *f, const lw_inst *i) {
  return lw_fp_inst(f, i);
}

static uint64_t key_source(const lw_fp *f, const lw_inst *i) {
  (void)f;
  const char *name = i->metadata ? i->metadata->op_name : NULL;
  if (!name || !i->shape) return 0;
  uint64_t h = lw_hash_bytes(name, strlen(name), (uint64_t)i->opcode);
  return lw_hash_mix(h, lw_shape_fingerprint(i->shape, LW_FP_STRUCTURE));
}

static uint64_t key_local(const lw_fp *f, const lw_inst *i) {
  return lw_fp_local(f, i);
}

static uint64_t key_name(const lw_fp *f, const lw_inst *i) {
  (void)f;
  return lw_hash_bytes(i->name, strlen(i->name), (uint64_t)i->opcode);
}

static uint64_t key_parameter(const lw_fp *f, const lw_inst *i) {
  (void)f;
  if (i->opcode != LW_OP_PARAMETER) return 0;
  return (uint64_t)lw_inst_param_number(i) + 1;
}

static void pair(matcher *w, const lw_inst *a, const lw_inst *b) {
  w->to_b[a->id] = b;
  w->to_a[b->id] = a;
}

/* Pairs what has equal keys, first with first. Keys of 0 do not match. */
static void match_by(matcher *w, comp_pair p, key_fn *key) {
  lw_map heads = {0}, tails = {0};
  LW_VEC(const lw_inst *) list = {0};
  for (const lw_inst *j = p.b->first; j; j = j->next) {
    uint64_t k = w->to_a[j->id] ? 0 : key(w->fb, j);
    if (!k) continue;
    lw_vec_push(&list, j);
    w->next[j->id] = 0;
    uint64_t *tail = lw_map_put(&tails, k);
    if (*tail)
      w->next[list.data[*tail - 1]->id] = (int32_t)list.len;
    else
      *lw_map_put(&heads, k) = list.len;
    *tail = list.len;
  }
  for (const lw_inst *i = p.a->first; i && list.len; i = i->next) {
    uint64_t k = w->to_b[i->id] ? 0 : key(w->fa, i);
    uint64_t *head = k ? lw_map_get(&heads, k) : NULL;
    if (!head || !*head) continue;
    const lw_inst *j = list.data[*head - 1];
    *head = (uint64_t)w->next[j->id];
    pair(w, i, j);
  }
  lw_vec_free(&list);
  lw_map_free(&heads);
  lw_map_free(&tails);
}

static void push_comps(matcher *w, const lw_comp *a, const lw_comp *b) {
  if (!a || !b || w->seen_a[a->id] || w->seen_b[b->id]) return;
  w->seen_a[a->id] = w->seen_b[b->id] = 1;
  lw_vec_push(&w->queue, ((comp_pair){a, b}));
}

static void match_comps(matcher *w, comp_pair p) {
  match_by(w, p, key_deep);
  match_by(w, p, key_parameter);
  match_by(w, p, key_source);
  match_by(w, p, key_local);
  match_by(w, p, key_name);
  if (p.a->root && p.b->root && !w->to_b[p.a->root->id] &&
      !w->to_a[p.b->root->id] && p.a->root->opcode == p.b->root->opcode)
    pair(w, p.a->root, p.b->root);
  for (const lw_inst *i = p.a->first; i; i = i->next) {
    const lw_inst *j = w->to_b[i->id];
    int32_t n = j ? lw_inst_called_count(i) : 0;
    for (int32_t k = 0; k < n && k < lw_inst_called_count(j); k++)
      push_comps(w, lw_inst_called(i, k), lw_inst_called(j, k));
  }
}

/* Computations nobody reached: by content, then by name. */
static void match_rest(matcher *w) {
  lw_map by_fp = {0}, by_name = {0};
  for (const lw_comp *c = w->b->first_comp; c; c = c->next)
    if (!w->seen_b[c->id]) {
      lw_map_set_ptr(&by_name, c->name, c);
      *lw_map_put(&by_fp, lw_fp_comp(w->fb, c)) = (uintptr_t)c;
    }
  for (const lw_comp *c = w->a->first_comp; c; c = c->next) {
    if (w->seen_a[c->id]) continue;
    uint64_t *v = lw_map_get(&by_fp, lw_fp_comp(w->fa, c));
    const lw_comp *same = v ? (const lw_comp *)(uintptr_t)*v : NULL;
    if (!same || w->seen_b[same->id])
      same = w->a->ctx == w->b->ctx ? lw_map_ptr(&by_name, c->name) : NULL;
    push_comps(w, c, same);
  }
  lw_map_free(&by_fp);
  lw_map_free(&by_name);
}

/* ---- what changed in a pair ---- */

static void attr_text(lw_buf *b, const lw_inst *i, const lw_attr *a) {
  if (lw_attr_table[a->id].kind == LW_AK_LITERAL ||
      lw_attr_table[a->id].kind == LW_AK_COMP ||
      lw_attr_table[a->id].kind == LW_AK_COMPS)
    return; /* compared by content, not by text */
  lw_attr_print(b, i, a, &lw_print_default);
}

static bool same_attr(const lw_inst *i, const lw_inst *j, const lw_attr *a) {
  const lw_attr *b = lw_inst_attr(j, a->id);
  if (!b) return false;
  lw_buf x = {0}, y = {0};
  attr_text(&x, i, a);
  attr_text(&y, j, b);
  bool same = !strcmp(lw_buf_cstr(&x), lw_buf_cstr(&y));
  if (lw_attr_table[a->id].kind == LW_AK_LITERAL)
    same = lw_literal_equal(a->u.literal, b->u.literal);
  lw_buf_free(&x);
  lw_buf_free(&y);
  return same;
}

static void say(lw_buf *b, const char *s) {
  if (b->len) lw_buf_str(b, "; ");
  lw_buf_str(b, s);
}

static bool same_text(const char *a, const char *b) {
  return a && b ? !strcmp(a, b) : !a && !b;
}

static void say_attrs(lw_buf *b, const lw_inst *i, const lw_inst *j) {
  for (int32_t k = 0; k < i->n_attrs; k++)
    if (!same_attr(i, j, &i->attrs[k]))
      say(b, lw_attr_table[i->attrs[k].id].name);
  for (int32_t k = 0; k < j->n_attrs; k++)
    if (!lw_inst_attr(i, j->attrs[k].id))
      say(b, lw_attr_table[j->attrs[k].id].name);
}

static void say_shape(lw_buf *b, matcher *w, const lw_inst *i,
                      const lw_inst *j) {
  if (!i->shape || !j->shape) return;
  bool layouts = w->levels & LW_FP_LAYOUT;
  unsigned l = layouts ? LW_FP_LAYOUT : LW_FP_STRUCTURE;
  if (lw_shape_fingerprint(i->shape, l) == lw_shape_fingerprint(j->shape, l))
    return;
  lw_buf_printf(b, "shape %s -> %s", lw_infer_shape_str(w->a->ctx, i->shape),
                lw_infer_shape_str(w->b->ctx, j->shape));
  if (lw_shape_fingerprint(i->shape, LW_FP_STRUCTURE) ==
      lw_shape_fingerprint(j->shape, LW_FP_STRUCTURE)) {
    b->len = 0;
    lw_buf_str(b, "layout");
  }
}

static bool same_operands(const matcher *w, const lw_inst *i,
                          const lw_inst *j) {
  if (i->n_operands != j->n_operands) return false;
  for (int32_t k = 0; k < i->n_operands; k++) {
    const lw_inst *x = i->operands[k].def, *y = j->operands[k].def;
    /* Equal values may have been paired with another copy of themselves. */
    if (x && y && w->to_b[x->id] != y &&
        lw_fp_inst(w->fa, x) != lw_fp_inst(w->fb, y))
      return false;
  }
  return true;
}

/* NULL when the pair says the same. */
static const char *changes(matcher *w, const lw_inst *i, const lw_inst *j) {
  bool operands = same_operands(w, i, j);
  if (operands && lw_fp_local(w->fa, i) == lw_fp_local(w->fb, j)) return NULL;
  lw_buf b = {0};
  if (i->opcode != j->opcode)
    lw_buf_printf(&b, "%s -> %s", lw_opcode_name(i->opcode),
                  lw_opcode_name(j->opcode));
  else
    say_shape(&b, w, i, j);
  if (!operands) say(&b, "operands");
  if (lw_fp_local(w->fa, i) != lw_fp_local(w->fb, j)) {
    say_attrs(&b, i, j);
    if (!same_text(i->backend_config, j->backend_config))
      say(&b, "backend_config");
    if (!b.len)
      say(&b, lw_inst_called_count(i) ? "called computations"
                                      : "sharding or attributes");
  }
  const char *s = lw_arena_strdup(w->d->arena, lw_buf_cstr(&b), b.len);
  lw_buf_free(&b);
  return s;
}

/* ---- the result ---- */

static void add_item(lw_diff *d, lw_diff_kind kind, const lw_inst *a,
                     const lw_inst *b, const char *what) {
  lw_diff_item item = {kind, a, b, what};
  lw_vec_push(&d->items, item);
  int64_t *n = kind == LW_DIFF_ADDED     ? &d->added
               : kind == LW_DIFF_REMOVED ? &d->removed
                                         : &d->changed;
  ++*n;
}

static void collect(matcher *w) {
  for (const lw_comp *c = w->a->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next) {
      const lw_inst *j = w->to_b[i->id];
      const char *what = j ? changes(w, i, j) : NULL;
      if (!j) add_item(w->d, LW_DIFF_REMOVED, i, NULL, NULL);
      if (what) add_item(w->d, LW_DIFF_CHANGED, i, j, what);
    }
  for (const lw_comp *c = w->b->first_comp; c; c = c->next)
    for (const lw_inst *j = c->first; j; j = j->next)
      if (!w->to_a[j->id]) add_item(w->d, LW_DIFF_ADDED, NULL, j, NULL);
}

static lw_diff_side describe(const lw_module *m) {
  lw_diff_side s = {.root = m->entry ? m->entry->root : NULL};
  for (const lw_comp *c = m->first_comp; c; c = c->next) {
    s.computations++;
    for (const lw_inst *i = c->first; i; i = i->next) {
      s.instructions++;
      s.fusions += i->opcode == LW_OP_FUSION;
      s.custom_calls += i->opcode == LW_OP_CUSTOM_CALL;
    }
  }
  return s;
}

static void *table(int64_t n, size_t size) {
  void *p = calloc((size_t)n + 1, size);
  if (!p) lw_oom((size_t)n * size);
  return p;
}

lw_diff *lw_diff_modules(const lw_module *a, const lw_module *b,
                         unsigned levels) {
  lw_diff *d = table(0, sizeof *d);
  d->arena = lw_arena_new();
  matcher w = {.d = d, .a = a, .b = b, .levels = levels};
  w.fa = lw_fp_new(a, levels);
  w.fb = lw_fp_new(b, levels);
  w.to_b = table(a->n_inst_ids, sizeof *w.to_b);
  w.to_a = table(b->n_inst_ids, sizeof *w.to_a);
  w.next = table(b->n_inst_ids, sizeof *w.next);
  w.seen_a = table(a->n_comp_ids, 1);
  w.seen_b = table(b->n_comp_ids, 1);
  push_comps(&w, a->entry, b->entry);
  for (size_t k = 0; k < w.queue.len; k++) match_comps(&w, w.queue.data[k]);
  size_t done = w.queue.len;
  match_rest(&w);
  for (size_t k = done; k < w.queue.len; k++) match_comps(&w, w.queue.data[k]);
  d->fingerprint_a = lw_fp_module(w.fa);
  d->fingerprint_b = lw_fp_module(w.fb);
  d->moved = d->fingerprint_a != d->fingerprint_b;
  d->a = describe(a);
  d->b = describe(b);
  if (d->moved) collect(&w);
  lw_fp_free(w.fa);
  lw_fp_free(w.fb);
  free(w.to_a);
  free(w.to_b);
  free(w.next);
  free(w.seen_a);
  free(w.seen_b);
  lw_vec_free(&w.queue);
  return d;
}

void lw_diff_free(lw_diff *d) {
  if (!d) return;
  lw_vec_free(&d->items);
  lw_arena_free(d->arena);
  free(d);
}

/* ---- printing ---- */

static void print_counts(lw_buf *out, const char *what, int64_t a, int64_t b) {
  lw_buf_printf(out, "%-14s %lld", what, (long long)a);
  if (a != b) lw_buf_printf(out, " -> %lld", (long long)b);
  lw_buf_chr(out, '\n');
}

static void print_inst(lw_buf *out, char sign, const lw_inst *i) {
  lw_buf_printf(out, "%c %s: ", sign, i->parent ? i->parent->name : "?");
  lw_inst_print(out, i, &lw_print_short);
  lw_buf_chr(out, '\n');
}

static void print_item(lw_buf *out, const lw_diff_item *it) {
  switch (it->kind) {
    case LW_DIFF_ADDED:
      print_inst(out, '+', it->b);
      break;
    case LW_DIFF_REMOVED:
      print_inst(out, '-', it->a);
      break;
    case LW_DIFF_CHANGED:
      lw_buf_printf(out, "~ %s: %s %s: %s",
                    it->a->parent ? it->a->parent->name : "?",
                    lw_opcode_name(it->a->opcode), it->a->name, it->what);
      if (strcmp(it->a->name, it->b->name))
        lw_buf_printf(out, " (now %s)", it->b->name);
      lw_buf_chr(out, '\n');
      break;
  }
}

static void print_root(lw_buf *out, const lw_diff *d) {
  const lw_inst *a = d->a.root, *b = d->b.root;
  lw_buf_printf(out, "%-14s %s", "root", a ? lw_opcode_name(a->opcode) : "-");
  if (a && a->shape)
    lw_buf_printf(out, " %s",
                  lw_infer_shape_str(a->parent->module->ctx, a->shape));
  if (a && b && a->opcode != b->opcode)
    lw_buf_printf(out, " -> %s", lw_opcode_name(b->opcode));
  lw_buf_chr(out, '\n');
}

void lw_diff_print(lw_buf *out, const lw_diff *d, int64_t max) {
  lw_buf_printf(out, "%s\n", d->moved ? "MOVED" : "SAME");
  print_counts(out, "computations", d->a.computations, d->b.computations);
  print_counts(out, "instructions", d->a.instructions, d->b.instructions);
  print_counts(out, "fusions", d->a.fusions, d->b.fusions);
  print_counts(out, "custom calls", d->a.custom_calls, d->b.custom_calls);
  print_root(out, d);
  if (!d->moved) return;
  lw_buf_printf(out, "%lld removed, %lld added, %lld changed\n",
                (long long)d->removed, (long long)d->added,
                (long long)d->changed);
  for (size_t k = 0; k < d->items.len; k++) {
    if (max && (int64_t)k >= max) {
      lw_buf_printf(out, "... and %zu more\n", d->items.len - k);
      return;
    }
    print_item(out, &d->items.data[k]);
  }
  if (!d->items.len)
    lw_buf_str(out,
               "the difference is in the order, the header or who uses "
               "which copy of a value\n");
}
