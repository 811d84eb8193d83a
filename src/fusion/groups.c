/* Groups: see groups.h. */
#include "fusion/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fusion/fuse.h"

/* ---- facts about single instructions ---- */

bool lw_is_immediate(const lw_inst *i) {
  return i->opcode == LW_OP_CONSTANT && lw_shape_is_array(i->shape) &&
         (i->shape->elements == 1 || lw_literal_is_uniform(lw_inst_literal(i)));
}

static double elements_of(const lw_inst *i) {
  const lw_shape *s = lw_shape_is_tuple(i->shape) && i->shape->n_elems > 0
                          ? i->shape->elems[0]
                          : i->shape;
  return lw_shape_is_array(s) ? (double)s->elements : 0;
}

/* Reads its operand at its own element number: elementwise, what changes dims
 * only, and whatever has but one element on both sides. */
static bool same_element(const lw_inst *i, int32_t slot) {
  int64_t mine = i->shape->elements,
          its = lw_inst_operand(i, slot)->shape->elements;
  if (mine == 1 && its == 1 && lw_shape_is_array(i->shape)) return true;
  if (mine != its) return false;
  switch ((int)i->opcode) {
    case LW_OP_RESHAPE:
    case LW_OP_BITCAST:
      return true;
    case LW_OP_BROADCAST:
      return true;
    case LW_OP_DYNAMIC_UPDATE_SLICE:
      return slot == 0;
    default:
      return lw_inst_is_elementwise(i);
  }
}

/* The operand's dims are the result's leading ones: its value stays the same
 * over the inner loop and is computed outside it. */
static bool broadcasts_inner(const lw_inst *i) {
  int32_t n;
  const int64_t *d = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  for (int32_t k = 0; k < n; k++)
    if (d[k] != k) return false;
  return true;
}

/* Elements of operand slot that one evaluated element of i needs. */
static double evals_per_element(const lw_inst *i, int32_t slot) {
  double mine = elements_of(i), its = elements_of(lw_inst_operand(i, slot));
  if (mine <= 0) return 0;
  switch ((int)i->opcode) {
    case LW_OP_BROADCAST:
      return broadcasts_inner(i) ? its / mine : 1;
    case LW_OP_CONCATENATE:
    case LW_OP_DOT:
    case LW_OP_CONVOLUTION:
    case LW_OP_REDUCE_WINDOW:
    case LW_OP_SCATTER:
      return its / mine;
    case LW_OP_PAD:
    case LW_OP_GATHER:
      return fmin(1, its / mine);
    case LW_OP_DYNAMIC_UPDATE_SLICE:
      return slot == 0 ? 1 : its / mine;
    case LW_OP_REDUCE:
      return slot < i->n_operands / 2 ? its / mine : 1 / mine;
    default:
      return 1;
  }
}

static int32_t equal_prefix(const lw_shape *a, const lw_shape *b) {
  int32_t k = 0;
  while (k < a->rank && k < b->rank && a->dims[k] == b->dims[k]) k++;
  return k;
}

static int32_t least_dim(const lw_inst *i) {
  int32_t n, least = LW_MAX_RANK;
  const int64_t *d = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  for (int32_t k = 0; k < n; k++)
    if (d[k] < least) least = (int32_t)d[k];
  return least;
}

/* Leading dims in which an operand is read at the reader's own index. */
static int32_t aligned_dims(const lw_inst *i, int32_t slot) {
  const lw_shape *o = lw_inst_operand(i, slot)->shape;
  int32_t n, k = 0;
  const int64_t *d;
  if (!lw_shape_is_array(o)) return 0;
  switch ((int)i->opcode) {
    case LW_OP_REDUCE:
      return slot < i->n_operands / 2 ? least_dim(i) : 0;
    case LW_OP_BROADCAST:
    case LW_OP_TRANSPOSE:
      d = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
      while (k < n && d[k] == k && o->dims[k] == i->shape->dims[k]) k++;
      return k;
    case LW_OP_REVERSE:
    case LW_OP_CONCATENATE:
      k = least_dim(i);
      return k < o->rank ? k : o->rank;
    case LW_OP_SLICE:
    case LW_OP_PAD:
    case LW_OP_DYNAMIC_SLICE:
      if (slot > 0) return 0;
      return equal_prefix(o, i->shape);
    case LW_OP_DYNAMIC_UPDATE_SLICE:
      return slot <= 1 ? equal_prefix(o, i->shape) : 0;
    case LW_OP_RESHAPE:
    case LW_OP_BITCAST:
      return equal_prefix(o, i->shape);
    case LW_OP_GATHER:
      return 0;
    default:
      return lw_inst_is_elementwise(i) ? equal_prefix(o, i->shape) : 0;
  }
}

static double leading_points(const lw_shape *s, int32_t k) {
  double n = 1;
  while (lw_shape_is_tuple(s) && s->n_elems > 0) s = s->elems[0];
  for (int32_t d = 0; d < k && d < s->rank; d++) n *= (double)s->dims[d];
  return n;
}

/* ns of one evaluated element of i itself. */
static double own_ns(const lw_groups *g, const lw_inst *i) {
  if (i->opcode == LW_OP_REDUCE || lw_inst_is_lone_stage(i)) {
    double n = elements_of(i);
    return n > 0 ? lw_cost_compute_ns(g->target, i) / n : 0;
  }
  return lw_cost_element_ns(g->target, i);
}

static double element_bytes(const lw_inst *i) {
  double n = elements_of(i);
  return n > 0 ? (double)lw_shape_bytes(i->shape) / n : 0;
}

/* ---- nodes ---- */

lw_group_node *lw_group_node_of(const lw_group *k, int32_t pos) {
  uint64_t *at = lw_map_get(&k->index, (uint64_t)pos + 1);
  return at && *at ? &k->nodes.data[*at - 1] : NULL;
}

static lw_group_node *node_for(lw_group *k, int32_t pos) {
  lw_group_node *n = lw_group_node_of(k, pos);
  if (n) return n;
  lw_vec_push(&k->nodes, ((lw_group_node){.pos = pos}));
  *lw_map_put(&k->index, (uint64_t)pos + 1) = k->nodes.len;
  return &k->nodes.data[k->nodes.len - 1];
}

static void add_class(lw_group_node *n, int32_t cls) {
  int32_t k = 0;
  if (n->n_cls > LW_MAX_CLASSES) return;
  while (k < n->n_cls && n->cls[k] < cls) k++;
  if (k < n->n_cls && n->cls[k] == cls) return;
  if (n->n_cls == LW_MAX_CLASSES) {
    n->n_cls++;
    return;
  }
  for (int32_t j = n->n_cls++; j > k; j--) n->cls[j] = n->cls[j - 1];
  n->cls[k] = cls;
}

/* A group whose root writes a window of a buffer that it reads nowhere else. */
static bool updates_in_place(const lw_groups *g, const lw_group *k) {
  const lw_inst *root = g->insts[k->root];
  if (root->opcode != LW_OP_DYNAMIC_UPDATE_SLICE) return false;
  const lw_inst *buffer = lw_inst_operand(root, 0);
  const lw_group_node *n = lw_group_node_of(k, g->pos[buffer->id]);
  bool fresh = buffer->opcode != LW_OP_CONSTANT &&
               !(buffer->opcode == LW_OP_PARAMETER &&
                 buffer->parent == buffer->parent->module->entry);
  return fresh && (!n || !n->inside);
}

static double read_ns(const lw_groups *g, const lw_group_node *n) {
  const lw_inst *i = g->insts[n->pos];
  double whole = (double)lw_shape_bytes(i->shape);
  return lw_cost_value_ns(g->target, fmin(whole, n->evals * element_bytes(i)),
                          whole);
}

static void count_node(const lw_groups *g, lw_group *k, const lw_group_node *n,
                       double sign) {
  const lw_inst *i = g->insts[n->pos];
  int32_t one = sign > 0 ? 1 : -1;
  if (n->inside) {
    k->cost.compute_ns += sign * n->evals * own_ns(g, i);
    k->code += sign * n->count;
    k->n_inside += one;
    k->n_reduces += i->opcode == LW_OP_REDUCE ? one : 0;
    k->n_lone += lw_inst_is_lone_stage(i) ? one : 0;
    if (i->opcode == LW_OP_REDUCE && sign > 0 && n->align < k->tile_dims)
      k->tile_dims = n->align;
  } else {
    k->cost.memory_ns += sign * read_ns(g, n);
    k->words += sign * (double)lw_shape_bytes(i->shape) / 4;
    k->n_read += one;
  }
}

/* One reader inside: a class it adds, or one that is there and then costs
 * nothing more. Evals are summed over classes; with room for a tile of it
 * (enough aligned points) the value is kept there and the most counts. */
static void add_reader(const lw_groups *g, const lw_group *k, lw_group_node *n,
                       const lw_group_node *r, const lw_inst *user,
                       int32_t slot) {
  bool same = same_element(user, slot);
  int32_t classes = n->n_cls, align = aligned_dims(user, slot);
  double evals = r->evals * evals_per_element(user, slot);
  if (r->align < align) align = r->align;
  if (align < n->align) n->align = align;
  if (same)
    for (int32_t c = 0; c < r->n_cls && c < LW_MAX_CLASSES; c++)
      add_class(n, r->cls[c]);
  else
    add_class(n, r->pos);
  bool tile =
      leading_points(g->insts[k->root]->shape, n->align) >= LW_LEAST_POINTS;
  if (n->n_cls == classes || (tile && classes > 0)) {
    n->evals = fmax(n->evals, evals);
    n->count = fmax(n->count, tile ? 1 : r->count);
  } else {
    n->evals += evals;
    n->count += r->count;
  }
}

/* One element is computed once, before the loop. */
static void cap_node(const lw_groups *g, lw_group_node *n) {
  const lw_inst *i = g->insts[n->pos];
  if (!lw_shape_is_array(i->shape) || i->shape->elements != 1) return;
  n->evals = fmin(n->evals, 1);
  n->count = 1;
}

/* Classes, count and evals of a node from its readers inside. */
static void place_node(const lw_groups *g, lw_group *k, lw_group_node *n) {
  n->n_cls = 0;
  n->count = n->evals = 0;
  n->align = LW_MAX_RANK;
  for (const lw_use *u = g->insts[n->pos]->uses; u; u = u->next) {
    int32_t at = g->pos[u->user->id];
    const lw_group_node *r = at >= 0 ? lw_group_node_of(k, at) : NULL;
    if (r && r->inside) add_reader(g, k, n, r, u->user, u->slot);
  }
  cap_node(g, n);
}

/* The same when only the members of p are new readers: a value that thousands
 * read is not asked about all of them each time. */
static void place_more(const lw_groups *g, lw_group *k, lw_group_node *n,
                       const lw_group *p) {
  const lw_inst *i = g->insts[n->pos];
  for (size_t j = 0; j < p->nodes.len; j++) {
    const lw_inst *m = g->insts[p->nodes.data[j].pos];
    if (!p->nodes.data[j].inside) continue;
    const lw_group_node *r = lw_group_node_of(k, p->nodes.data[j].pos);
    for (int32_t s = 0; r && s < m->n_operands; s++)
      if (lw_inst_operand(m, s) == i) add_reader(g, k, n, r, m, s);
  }
  cap_node(g, n);
}

/* ---- building the singletons ---- */

/* What costs nothing by itself: only the name of the bytes changes. */
static bool is_renaming(const lw_inst *i) {
  return i->opcode == LW_OP_BITCAST || i->opcode == LW_OP_RESHAPE;
}

static bool makes_kernel(const lw_inst *i) {
  if (i->opcode == LW_OP_CONSTANT) return false;
  return i->opcode == LW_OP_REDUCE || lw_inst_is_loop(i) ||
         lw_inst_is_lone_stage(i);
}

static void write_root(lw_groups *g, lw_group *k, double sign) {
  const lw_inst *root = g->insts[k->root];
  double whole = (double)lw_shape_bytes(root->shape), bytes = whole;
  if (updates_in_place(g, k))
    bytes = (double)lw_shape_bytes(lw_inst_operand(root, 1)->shape);
  k->cost.memory_ns += sign * lw_cost_value_ns(g->target, bytes, whole);
}

static lw_group *singleton(lw_groups *g, int32_t pos) {
  lw_group *k = LW_NEW(g->arena, lw_group);
  const lw_inst *i = g->insts[pos];
  k->root = pos;
  lw_group_node *root = node_for(k, pos);
  root->inside = true;
  root->n_cls = 1;
  root->cls[0] = LW_CLASS_ROOT;
  root->align = k->tile_dims = LW_MAX_RANK;
  if (lw_shape_is_array(i->shape)) root->align = k->tile_dims = i->shape->rank;
  root->count = 1;
  root->evals = elements_of(i);
  count_node(g, k, root, 1);
  write_root(g, k, 1);
  k->words += (double)lw_shape_bytes(i->shape) / 4;
  for (int32_t s = 0; s < i->n_operands; s++) {
    const lw_inst *o = lw_inst_operand(i, s);
    int32_t at = g->pos[o->id];
    if (lw_is_immediate(o) || lw_group_node_of(k, at)) continue;
    lw_group_node *n = node_for(k, at);
    n->align = LW_MAX_RANK;
    place_more(g, k, n, k);
    if (s == 0 && updates_in_place(g, k)) n->evals = 0;
    count_node(g, k, n, 1);
    lw_vec_push(&g->readers[at], pos);
  }
  return k;
}

lw_groups *lw_groups_new(lw_comp *c, const lw_target *t, double small_work,
                         lw_arena *a) {
  lw_groups *g = LW_NEW(a, lw_groups);
  int32_t ids = c->module->n_inst_ids;
  g->comp = c;
  g->target = t;
  g->small_work = small_work;
  g->arena = a;
  g->insts = LW_NEW_ARRAY(a, lw_inst *, c->n_insts + 1);
  g->pos = LW_NEW_ARRAY(a, int32_t, ids + 1);
  for (int32_t k = 0; k < ids; k++) g->pos[k] = -1;
  g->insts = lw_comp_post_order(c, a, &g->n);
  for (int32_t k = 0; k < g->n; k++) g->pos[g->insts[k]->id] = k;
  g->pinned = lw_control_touched(c, a);
  g->groups = LW_NEW_ARRAY(a, lw_group *, g->n + 1);
  g->is_inline = LW_NEW_ARRAY(a, bool, g->n + 1);
  g->readers = LW_NEW_ARRAY(a, lw_groups_readers, g->n + 1);
  for (int32_t k = 0; k < g->n; k++)
    if (makes_kernel(g->insts[k])) g->groups[k] = singleton(g, k);
  return g;
}

static void free_group(lw_group *k) {
  if (!k) return;
  lw_vec_free(&k->nodes);
  lw_map_free(&k->index);
}

void lw_groups_free(lw_groups *g) {
  for (int32_t k = 0; k < g->n; k++) {
    free_group(g->groups[k]);
    lw_vec_free(&g->readers[k]);
  }
}

/* ---- asking ---- */

static int by_value(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

/* The list may hold groups that are gone or read it no longer; it is cleaned
 * here. */
int32_t lw_groups_readers_of(lw_groups *g, int32_t pos, int32_t *out,
                             int32_t max) {
  lw_groups_readers *r = &g->readers[pos];
  size_t n = 0;
  if (r->len) qsort(r->data, r->len, sizeof *r->data, by_value);
  for (size_t k = 0; k < r->len; k++) {
    int32_t root = r->data[k];
    if (n && r->data[n - 1] == root) continue;
    const lw_group_node *node =
        g->groups[root] ? lw_group_node_of(g->groups[root], pos) : NULL;
    if (node && !node->inside) r->data[n++] = root;
  }
  r->len = n;
  int32_t m = (int32_t)n < max ? (int32_t)n : max;
  for (int32_t k = 0; k < m; k++) out[k] = r->data[k];
  return (int32_t)n;
}

double lw_group_ns(const lw_groups *g, const lw_group *k) {
  if (k->n_inside == 1 && is_renaming(g->insts[k->root])) return 0;
  return lw_cost_kernel_ns(g->target, k->cost);
}

double lw_group_points_with(const lw_groups *g, const lw_group *k,
                            const lw_group *producer) {
  const lw_group_node *n = lw_group_node_of(k, producer->root);
  int32_t dims = n->align;
  if (producer->tile_dims < dims) dims = producer->tile_dims;
  if (k->n_reduces && k->tile_dims < dims) dims = k->tile_dims;
  return leading_points(g->insts[k->root]->shape, dims);
}

double lw_group_work(const lw_groups *g, const lw_group *k) {
  return k->cost.compute_ns / fmax(1e-6, g->target->v.simple_ns) + k->words;
}

/* In a kernel of one point every value can be kept: none is computed again. */
static bool is_small_with(const lw_groups *g, const lw_group *k,
                          const lw_group *p) {
  return lw_group_work(g, k) + lw_group_work(g, p) < g->small_work;
}

/* Compute grows by the producer's, times how often it is needed here; its value
 * is no longer read, what it reads is, unless it is read or computed already.
 */
double lw_group_ns_with(const lw_groups *g, const lw_group *k,
                        const lw_group *producer) {
  const lw_group_node *n = lw_group_node_of(k, producer->root);
  const lw_inst *p = g->insts[producer->root];
  double share = n->evals / fmax(1, elements_of(p));
  if (share > 1 && is_small_with(g, k, producer)) share = 1;
  lw_cost c = k->cost;
  c.memory_ns -= read_ns(g, n);
  c.compute_ns += producer->cost.compute_ns * share;
  if (g->insts[k->root]->opcode == LW_OP_DYNAMIC_UPDATE_SLICE &&
      lw_inst_operand(g->insts[k->root], 0) == p)
    c.memory_ns += lw_cost_value_ns(g->target, (double)lw_shape_bytes(p->shape),
                                    (double)lw_shape_bytes(p->shape));
  for (size_t j = 0; j < producer->nodes.len; j++) {
    lw_group_node r = producer->nodes.data[j];
    if (r.inside || lw_group_node_of(k, r.pos)) continue;
    r.evals *= share;
    c.memory_ns += read_ns(g, &r);
  }
  return lw_cost_kernel_ns(g->target, c);
}

/* ---- merging ---- */

static int by_pos_down(const void *a, const void *b) { return by_value(b, a); }

static void merge_into(lw_groups *g, lw_group *k, const lw_group *p) {
  int32_t n = (int32_t)p->nodes.len;
  int32_t *order = malloc(sizeof *order * (size_t)n);
  if (!order) lw_oom((size_t)n);
  for (int32_t j = 0; j < n; j++) order[j] = p->nodes.data[j].pos;
  qsort(order, (size_t)n, sizeof *order, by_pos_down);
  bool small = is_small_with(g, k, p);
  write_root(g, k, -1);
  for (int32_t j = 0; j < n; j++) {
    const lw_group_node *src = lw_group_node_of(p, order[j]);
    bool known = lw_group_node_of(k, order[j]) != NULL;
    lw_group_node *node = node_for(k, order[j]);
    if (known) count_node(g, k, node, -1);
    if (src->inside) node->inside = true;
    if (known && !node->inside && p->n_inside < g->insts[order[j]]->n_uses)
      place_more(g, k, node, p);
    else
      place_node(g, k, node);
    if (small)
      node->evals = fmin(node->evals, elements_of(g->insts[node->pos]));
    count_node(g, k, node, 1);
    if (!known && !node->inside) lw_vec_push(&g->readers[node->pos], k->root);
  }
  write_root(g, k, 1);
  free(order);
}

void lw_groups_inline(lw_groups *g, int32_t pos) {
  lw_group *p = g->groups[pos];
  int32_t n = lw_groups_readers_of(g, pos, NULL, 0);
  for (int32_t k = 0; k < n; k++)
    merge_into(g, g->groups[g->readers[pos].data[k]], p);
  g->readers[pos].len = 0;
  g->groups[pos] = NULL;
  g->is_inline[pos] = true;
  free_group(p);
}

/* ---- rewriting ---- */

static int32_t first_immediate(const lw_inst *f) {
  for (int32_t s = 0; s < f->n_operands; s++)
    if (lw_is_immediate(lw_inst_operand(f, s))) return s;
  return -1;
}

static bool build_one(lw_groups *g, lw_group *k, lw_trace *trace) {
  lw_inst *root = g->insts[k->root];
  if (k->n_inside < 2 && first_immediate(root) < 0) return false;
  if (is_renaming(root) && k->n_inside < 2) return false;
  int32_t n = 0, *order = malloc(sizeof *order * (k->nodes.len + 1));
  if (!order) lw_oom(k->nodes.len);
  for (size_t j = 0; j < k->nodes.len; j++)
    if (k->nodes.data[j].inside && k->nodes.data[j].pos != k->root)
      order[n++] = k->nodes.data[j].pos;
  qsort(order, (size_t)n, sizeof *order, by_pos_down);
  const char *name =
      lw_arena_printf(g->arena, "%s%s%s_fusion",
                      n ? lw_opcode_name(g->insts[order[0]]->opcode) : "",
                      n ? "_" : "", lw_opcode_name(root->opcode));
  lw_fusion_kind kind = k->n_reduces ? LW_FUSION_INPUT : LW_FUSION_LOOP;
  const char *was = root->name;
  lw_inst *f = lw_fusion_new(root, kind, name, "fused_computation");
  lw_trace_rename(trace, f->name, was);
  lw_trace_rename(trace, lw_fusion_body(f)->root->name, was);
  for (int32_t j = 0; j < n; j++)
    if (lw_fusion_slot(f, g->insts[order[j]]) >= 0)
      lw_trace_rename(trace, lw_fusion_take(f, g->insts[order[j]])->name,
                      g->insts[order[j]]->name);
  for (int32_t s; (s = first_immediate(f)) >= 0;)
    lw_fusion_take(f, lw_inst_operand(f, s));
  free(order);
  return true;
}

/* From the end: a group's inline values are only read by groups behind it. */
int32_t lw_groups_build(lw_groups *g, lw_trace *trace) {
  int32_t made = 0;
  for (int32_t k = g->n; k-- > 0;)
    if (g->groups[k]) made += build_one(g, g->groups[k], trace);
  for (int32_t k = g->n; k-- > 0;) {
    lw_inst *i = g->insts[k];
    if (!i->parent || i->n_uses || lw_inst_is_root(i)) continue;
    if (g->is_inline[k] || i->opcode == LW_OP_CONSTANT) lw_inst_remove(i);
  }
  return made;
}
