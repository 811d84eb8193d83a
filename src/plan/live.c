/* Liveness and coalescing.
 *
 * The tree is laid out on one line (loops: condition, then body), so a value's
 * life is a list of segments of half steps. A use in a nested block makes the
 * value live from that block's start, and through the whole loop when the
 * block is a loop's. Loop state has a hole in the body between its last read
 * and the copy that makes its next value: that hole is where the next value is
 * computed when both share a place.
 *
 * Copies are coalesced deepest loop first, then larger ones, then in order;
 * after them outputs of kernels are put into the buffers of operands that die
 * there, where the kernel allows it. Two classes merge when their segments do
 * not overlap and no step that reads one and writes the other forbids it. */
#include "plan/plan_impl.h"

int32_t plan_class(builder *b, int32_t v) {
  val *vals = b->vals.data;
  while (vals[v].parent != v) {
    vals[v].parent = vals[vals[v].parent].parent;
    v = vals[v].parent;
  }
  return v;
}

void plan_force_merge(builder *b, int32_t a, int32_t c) {
  a = plan_class(b, a);
  c = plan_class(b, c);
  b->vals.data[c].parent = a;
}

/* ---- segments ---- */

static void add_use_segments(builder *b, const use *u) {
  val *v = &b->vals.data[u->val];
  if (v->kind == VAL_NONE || v->kind == VAL_CONST) return;
  block *k = u->where;
  segment s = {0, 2 * u->position};
  for (; k != v->home; k = k->parent) {
    LW_ASSERT(k->parent != NULL);
    if (k->kind == BLOCK_BRANCH) {
      s.first = 2 * k->first;
      lw_vec_push(&v->segments, s);
    } else {
      segment whole = {2 * k->owner_first, 2 * k->owner_last + 1};
      lw_vec_push(&v->segments, whole);
    }
    s.last = 2 * k->owner_first;
  }
  s.first = v->def;
  if (s.last < s.first) s.last = s.first;
  lw_vec_push(&v->segments, s);
}

static int by_start(const void *x, const void *y) {
  const segment *a = x, *c = y;
  if (a->first != c->first) return a->first < c->first ? -1 : 1;
  return a->last < c->last ? -1 : a->last > c->last;
}

static void normalise(segment_list *l) {
  if (l->len == 0) return;
  qsort(l->data, l->len, sizeof *l->data, by_start);
  size_t n = 0;
  for (size_t k = 1; k < l->len; k++) {
    if (l->data[k].first <= l->data[n].last + 1) {
      if (l->data[k].last > l->data[n].last) l->data[n].last = l->data[k].last;
    } else {
      l->data[++n] = l->data[k];
    }
  }
  l->len = n + 1;
}

static void append(segment_list *to, const segment_list *from) {
  for (size_t k = 0; k < from->len; k++) lw_vec_push(to, from->data[k]);
}

void plan_liveness(builder *b) {
  for (size_t k = 0; k < b->uses.len; k++)
    add_use_segments(b, &b->uses.data[k]);
  for (size_t k = 0; k < b->vals.len; k++) {
    b->vals.data[k].class_kind = b->vals.data[k].kind;
    b->vals.data[k].class_index = b->vals.data[k].index;
  }
  for (size_t k = 0; k < b->vals.len; k++) {
    val *v = &b->vals.data[k], *c = &b->vals.data[plan_class(b, (int32_t)k)];
    normalise(&v->segments);
    append(&c->class_segments, &v->segments);
    if (v->bytes > c->class_bytes) c->class_bytes = v->bytes;
    if (v->kind == VAL_OUTPUT) {
      c->class_kind = VAL_OUTPUT;
      c->class_index = v->index;
    }
  }
  for (size_t k = 0; k < b->vals.len; k++) {
    normalise(&b->vals.data[k].class_segments);
  }
}

/* ---- may two classes be one? ---- */

/* The step at this position reads class r and writes class w. */
static bool step_allows(builder *b, int32_t position, int32_t r, int32_t w) {
  const lw_node *n = b->steps.data[position];
  if (!n || n->kind == LW_NODE_COPY) return true;
  if (n->kind != LW_NODE_KERNEL) return false;
  const lw_kernel *k = b->kernels.data[n->kernel];
  for (int32_t o = 0; o < k->n_outputs; o++) {
    if (plan_class(b, n->slices[k->n_params + o]) != w) continue;
    for (int32_t p = 0; p < k->n_params; p++) {
      if (plan_class(b, n->slices[p]) != r) continue;
      int32_t e = p * k->n_outputs + o;
      bool ok = (k->may_alias && k->may_alias[e]) ||
                (k->must_alias && k->must_alias[e]);
      if (!ok) return false;
    }
  }
  return true;
}

/* r ends with a read where w begins with a write. */
static bool meets(builder *b, segment r, segment w, int32_t cr, int32_t cw) {
  if (r.last + 1 != w.first || (r.last & 1)) return true;
  return step_allows(b, r.last / 2, cr, cw);
}

static bool disjoint(builder *b, int32_t x, int32_t y) {
  const segment_list *a = &b->vals.data[x].class_segments;
  const segment_list *c = &b->vals.data[y].class_segments;
  size_t i = 0, j = 0;
  while (i < a->len && j < c->len) {
    segment s = a->data[i], t = c->data[j];
    if (s.first <= t.last && t.first <= s.last) return false;
    if (!meets(b, s, t, x, y) || !meets(b, t, s, y, x)) return false;
    if (s.last < t.last) {
      i++;
    } else {
      j++;
    }
  }
  return true;
}

static bool can_merge(builder *b, int32_t x, int32_t y) {
  const val *a = &b->vals.data[x], *c = &b->vals.data[y];
  if (a->class_kind == VAL_OUTPUT && c->class_kind == VAL_OUTPUT) return false;
  bool plain_a = a->class_kind == VAL_TEMP || a->class_kind == VAL_OUTPUT;
  bool plain_c = c->class_kind == VAL_TEMP || c->class_kind == VAL_OUTPUT;
  if (!plain_a || !plain_c) return false;
  return a->class_bytes == c->class_bytes && disjoint(b, x, y);
}

static bool try_merge(builder *b, int32_t x, int32_t y) {
  x = plan_class(b, x);
  y = plan_class(b, y);
  if (x == y) return true;
  if (!can_merge(b, x, y)) return false;
  val *a = &b->vals.data[x], *c = &b->vals.data[y];
  c->parent = x;
  append(&a->class_segments, &c->class_segments);
  normalise(&a->class_segments);
  lw_vec_free(&c->class_segments);
  if (c->class_kind == VAL_OUTPUT) {
    a->class_kind = VAL_OUTPUT;
    a->class_index = c->class_index;
  }
  return true;
}

/* ---- in what order ---- */

static int by_cost(const void *x, const void *y) {
  const copy_step *a = *(const copy_step *const *)x;
  const copy_step *c = *(const copy_step *const *)y;
  if (a->depth != c->depth) return a->depth > c->depth ? -1 : 1;
  if (a->bytes != c->bytes) return a->bytes > c->bytes ? -1 : 1;
  return a->position < c->position ? -1 : 1;
}

static const char *role_text(copy_role r) {
  switch (r) {
    case COPY_LOOP_START:
      return "loop start";
    case COPY_LOOP_NEXT:
      return "loop step";
    case COPY_BRANCH_RESULT:
      return "branch result";
    case COPY_OUTPUT:
      return "output";
    case COPY_IN_PLACE:
      return "in-place update";
    case COPY_PARALLEL_TEMP:
      return "loop state moves";
  }
  return "";
}

static const char *cause(builder *b, const copy_step *c) {
  const val *s = &b->vals.data[plan_class(b, c->src)];
  const val *d = &b->vals.data[plan_class(b, c->dst)];
  if (b->options->no_alias) return "aliasing is off";
  if (s->class_kind == VAL_PARAM) return "the value is an entry parameter";
  if (s->class_kind == VAL_CONST) return "the value is a constant";
  if (s->class_kind == VAL_OUTPUT && d->class_kind == VAL_OUTPUT) {
    return "the value is another output as well";
  }
  return "the value or its place is still needed";
}

static void coalesce_copies(builder *b) {
  size_t n = b->copies.len;
  const copy_step **order = LW_NEW_ARRAY(b->arena, const copy_step *, n + 1);
  for (size_t k = 0; k < n; k++) order[k] = &b->copies.data[k];
  qsort(order, n, sizeof *order, by_cost);
  for (size_t k = 0; k < n && !b->options->no_alias; k++) {
    (void)try_merge(b, order[k]->dst, order[k]->src);
  }
}

static void alias_outputs(builder *b, const lw_node *n, const lw_kernel *k) {
  for (int32_t o = 0; k->may_alias && o < k->n_outputs; o++) {
    for (int32_t p = 0; p < k->n_params; p++) {
      if (k->may_alias[p * k->n_outputs + o] &&
          try_merge(b, n->slices[p], n->slices[k->n_params + o])) {
        break;
      }
    }
  }
}

void plan_coalesce(builder *b) {
  coalesce_copies(b);
  for (size_t p = 0; p < b->steps.len && !b->options->no_alias; p++) {
    const lw_node *n = b->steps.data[p];
    if (n && n->kind == LW_NODE_KERNEL) {
      alias_outputs(b, n, b->kernels.data[n->kernel]);
    }
  }
  for (size_t k = 0; k < b->copies.len; k++) {
    const copy_step *c = &b->copies.data[k];
    if (plan_class(b, c->src) == plan_class(b, c->dst)) {
      c->node->reason = NULL; /* dropped when the tree is finished */
    } else {
      c->node->reason =
          lw_arena_printf(b->arena, "%s: %s", role_text(c->role), cause(b, c));
    }
  }
}
