/* Fusions of two modules, compared (fusion_diff.h).
 *
 * The connected parts are found with a disjoint-set forest over the kernels of
 * both sides, numbered A's first.
 */
#include "lab/fusion_diff.h"

#include <string.h>

#include "base/map.h"

const char *lw_fusion_change_name(lw_fusion_change c) {
  static const char *const names[] = {"SAME", "CHANGED", "SPLIT", "MERGED",
                                      "MOVED"};
  return names[c];
}

/* ---- operations ---- */

typedef struct {
  uint64_t key;
  int32_t kernel;
} operation;

typedef struct {
  LW_VEC(operation) ops;
  LW_VEC(const lw_inst *) kernels;
  bool has_op_name;
} side;

/* What every kernel may hold copies of, or no kernel computes. */
static bool is_bystander(const lw_inst *i) {
  switch (i->opcode) {
    case LW_OP_PARAMETER:
    case LW_OP_CONSTANT:
    case LW_OP_TUPLE:
    case LW_OP_GET_TUPLE_ELEMENT:
    case LW_OP_BITCAST:
    case LW_OP_COPY:
    case LW_OP_FUSION:
    case LW_OP_CALL:
    case LW_OP_WHILE:
    case LW_OP_CONDITIONAL:
      return true;
    default:
      return false;
  }
}

/* "exp.1.clone.2" -> 5, the length of "exp.1". */
static size_t base_length(const char *name) {
  const char *clone = strstr(name, ".clone");
  return clone ? (size_t)(clone - name) : strlen(name);
}

static uint64_t key_of(const lw_inst *i, side *s) {
  const char *op = i->metadata ? i->metadata->op_name : NULL;
  uint64_t h = (uint64_t)i->opcode;
  if (op && *op) {
    h = lw_hash_bytes(op, strlen(op), h);
    s->has_op_name = true;
  } else {
    h = lw_hash_bytes(i->name, base_length(i->name), ~h);
  }
  for (int32_t d = 0; d < i->shape->rank; d++)
    h = lw_hash_mix(h, (uint64_t)i->shape->dims[d]);
  return h;
}

static void add_operation(side *s, const lw_inst *i, int32_t kernel) {
  if (is_bystander(i)) return;
  operation o = {key_of(i, s), kernel};
  lw_vec_push(&s->ops, o);
}

static void collect_fused(side *s, const lw_comp *c, int32_t kernel) {
  for (const lw_inst *i = c->first; i; i = i->next) {
    if (i->opcode == LW_OP_FUSION)
      collect_fused(s, lw_inst_called(i, 0), kernel);
    add_operation(s, i, kernel);
  }
}

/* Bodies of fusions, and what reduces and sorts apply: they run no kernels. */
static void find_bodies(const lw_module *m, lw_map *bodies) {
  for (const lw_comp *c = m->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next) {
      if (i->opcode == LW_OP_CALL || i->opcode == LW_OP_WHILE ||
          i->opcode == LW_OP_CONDITIONAL)
        continue;
      for (int32_t n = 0; n < lw_inst_called_count(i); n++)
        lw_map_set_ptr(bodies, lw_inst_called(i, n), i);
    }
}

static void collect_comp(side *s, const lw_comp *c) {
  for (const lw_inst *i = c->first; i; i = i->next) {
    bool fusion = i->opcode == LW_OP_FUSION;
    if (!fusion && is_bystander(i)) continue;
    int32_t kernel = (int32_t)s->kernels.len;
    lw_vec_push(&s->kernels, i);
    if (fusion)
      collect_fused(s, lw_inst_called(i, 0), kernel);
    else
      add_operation(s, i, kernel);
  }
}

static void collect(side *s, const lw_module *m) {
  lw_map bodies = {0};
  find_bodies(m, &bodies);
  for (const lw_comp *c = m->first_comp; c; c = c->next)
    if (!lw_map_ptr(&bodies, c)) collect_comp(s, c);
  lw_map_free(&bodies);
}

/* ---- anchors ---- */

enum { SEVERAL = -1 };

/* key -> kernel + 2, or SEVERAL + 2. */
static void index_keys(const side *s, lw_map *m) {
  for (size_t k = 0; k < s->ops.len; k++) {
    const operation *o = &s->ops.data[k];
    uint64_t *v = lw_map_put(m, o->key | 1);
    *v = (uint64_t)(*v ? SEVERAL + 2 : o->kernel + 2);
  }
}

typedef struct {
  int32_t *parent;
  int32_t *anchors; /* of a kernel */
} forest;

static int32_t root_of(forest *f, int32_t k) {
  while (f->parent[k] != k) {
    f->parent[k] = f->parent[f->parent[k]];
    k = f->parent[k];
  }
  return k;
}

static int32_t only_kernel(const lw_map *m, uint64_t key) {
  const uint64_t *v = lw_map_get(m, key | 1);
  return v && *v >= 2 ? (int32_t)(*v - 2) : SEVERAL;
}

static void join_anchors(const side *a, const lw_map *in_a, const lw_map *in_b,
                         forest *f, lw_fusion_diff *out) {
  int32_t n_a = (int32_t)a->kernels.len;
  for (size_t k = 0; k < a->ops.len; k++) {
    int32_t x = only_kernel(in_a, a->ops.data[k].key);
    int32_t y = only_kernel(in_b, a->ops.data[k].key);
    if (x == SEVERAL || y == SEVERAL) continue;
    out->anchors++;
    f->anchors[x]++;
    f->anchors[n_a + y]++;
    f->parent[root_of(f, n_a + y)] = root_of(f, x);
  }
}

/* ---- parts ---- */

static lw_fusion_change change_of(const lw_fusion_part *p, bool lacks) {
  if (p->n_a > 1) return p->n_b > 1 ? LW_FUSION_MOVED : LW_FUSION_MERGED;
  if (p->n_b > 1) return LW_FUSION_SPLIT;
  return lacks ? LW_FUSION_CHANGED : LW_FUSION_SAME;
}

static bool has_fusion(const lw_fusion_part *p) {
  for (int32_t k = 0; k < p->n_a; k++)
    if (p->a[k]->opcode == LW_OP_FUSION) return true;
  for (int32_t k = 0; k < p->n_b; k++)
    if (p->b[k]->opcode == LW_OP_FUSION) return true;
  return false;
}

/* Operations of the part's kernels that are no anchors on one side: a key that
 * the other module does not have at all. */
static bool lacks_some(const side *s, const lw_map *other, forest *f,
                       int32_t first, int32_t root) {
  for (size_t k = 0; k < s->ops.len; k++)
    if (root_of(f, first + s->ops.data[k].kernel) == root &&
        !lw_map_get(other, s->ops.data[k].key | 1))
      return true;
  return false;
}

static lw_fusion_part part_of(const side *a, const side *b, forest *f,
                              int32_t root, lw_arena *arena) {
  int32_t n_a = (int32_t)a->kernels.len, n_b = (int32_t)b->kernels.len;
  lw_fusion_part p = {.a = LW_NEW_ARRAY(arena, const lw_inst *, n_a + 1),
                      .b = LW_NEW_ARRAY(arena, const lw_inst *, n_b + 1)};
  for (int32_t k = 0; k < n_a; k++)
    if (root_of(f, k) == root) {
      p.anchors += f->anchors[k];
      p.a[p.n_a++] = a->kernels.data[k];
    }
  for (int32_t k = 0; k < n_b; k++)
    if (root_of(f, n_a + k) == root) p.b[p.n_b++] = b->kernels.data[k];
  return p;
}

static void find_parts(const side *a, const side *b, const lw_map *in_a,
                       const lw_map *in_b, forest *f, lw_fusion_diff *out) {
  int32_t n_a = (int32_t)a->kernels.len;
  lw_map seen = {0};
  for (int32_t k = 0; k < n_a; k++) {
    int32_t root = root_of(f, k);
    uint64_t *v = lw_map_put(&seen, (uint64_t)root + 1);
    if ((*v)++ || !f->anchors[k]) continue;
    lw_fusion_part p = part_of(a, b, f, root, out->arena);
    if (!has_fusion(&p)) continue;
    p.change = change_of(&p, lacks_some(a, in_b, f, 0, root) ||
                                 lacks_some(b, in_a, f, n_a, root));
    lw_vec_push(&out->parts, p);
  }
  lw_map_free(&seen);
}

void lw_fusion_diff_of(const lw_module *a, const lw_module *b,
                       lw_fusion_diff *out) {
  *out = (lw_fusion_diff){.arena = lw_arena_new()};
  side x = {0}, y = {0};
  lw_map in_a = {0}, in_b = {0};
  collect(&x, a);
  collect(&y, b);
  index_keys(&x, &in_a);
  index_keys(&y, &in_b);
  size_t n = x.kernels.len + y.kernels.len;
  forest f = {LW_NEW_ARRAY(out->arena, int32_t, n + 1),
              LW_NEW_ARRAY(out->arena, int32_t, n + 1)};
  for (size_t k = 0; k < n; k++) f.parent[k] = (int32_t)k;
  join_anchors(&x, &in_a, &in_b, &f, out);
  find_parts(&x, &y, &in_a, &in_b, &f, out);
  out->operations_a = (int64_t)x.ops.len;
  out->operations_b = (int64_t)y.ops.len;
  out->by_op_name = x.has_op_name;
  lw_map_free(&in_a);
  lw_map_free(&in_b);
  lw_vec_free(&x.ops);
  lw_vec_free(&x.kernels);
  lw_vec_free(&y.ops);
  lw_vec_free(&y.kernels);
}

void lw_fusion_diff_free(lw_fusion_diff *d) {
  lw_vec_free(&d->parts);
  if (d->arena) lw_arena_free(d->arena);
  *d = (lw_fusion_diff){0};
}

static void print_names(lw_buf *b, const lw_inst *const *v, int32_t n) {
  for (int32_t k = 0; k < n; k++)
    lw_buf_printf(b, "%s%s", k ? ", " : "", v[k]->name);
}

void lw_fusion_diff_print(lw_buf *b, const lw_fusion_diff *d) {
  int64_t same = 0;
  for (size_t k = 0; k < d->parts.len; k++)
    same += d->parts.data[k].change == LW_FUSION_SAME;
  lw_buf_printf(b,
                "fusions: %lld the same, %lld not (%lld of %lld operations "
                "matched by %s)\n",
                (long long)same, (long long)d->parts.len - same,
                (long long)d->anchors, (long long)d->operations_a,
                d->by_op_name ? "op_name" : "name");
  for (size_t k = 0; k < d->parts.len; k++) {
    const lw_fusion_part *p = &d->parts.data[k];
    if (p->change == LW_FUSION_SAME) continue;
    lw_buf_printf(b, "%-8s ", lw_fusion_change_name(p->change));
    print_names(b, p->a, p->n_a);
    lw_buf_str(b, " > ");
    print_names(b, p->b, p->n_b);
    lw_buf_chr(b, '\n');
  }
}
