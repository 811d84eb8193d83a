/* Launch dimensions of reductions (backends/gpu/codegen/emitters/reduction.cc
 * and reduction_base.cc); gpu_launch.c has the overview. */
#include <limits.h>
#include <string.h>

#include "target/gpu_impl.h"

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- vectors ---- */

static bool reads_complex(const gpu_analysis *x) {
  for (int32_t k = 0; k < x->n_roots; k++) {
    const lw_inst *h = x->heroes[k];
    for (int32_t o = 0; o < h->n_operands; o++) {
      const lw_inst *i = lw_gpu_resolve(&x->a, lw_inst_operand(h, o));
      if (lw_prim_is_complex(i->shape->type)) return true;
    }
  }
  return false;
}

/* Elements a thread loads at once. */
static int64_t vector_of(const gpu_analysis *x, int64_t minor,
                         int64_t threads) {
  if (minor % 2 || 2 * threads > minor || reads_complex(x)) return 1;
  if (x->smallest_in_bits >= 64) return 1;
  if (x->smallest_in_bits >= 32 || 4 * threads > minor) return 2;
  return minor % 4 == 0 ? 4 : 2;
}

/* ---- rows ---- */

enum { TARGET_THREADS = 256, ROW_THREADS = 1024, PER_THREAD = 16 };

static int64_t threads_kept(int64_t kept, int64_t reduced) {
  return kept * reduced <= TARGET_THREADS ? kept : TARGET_THREADS / reduced;
}

static int64_t multi_row_blocks(const gpu_reduction *r, int64_t vec) {
  return lw_gpu_ceil_div(r->dims[1],
                         threads_kept(r->dims[1], r->dims[2] / vec));
}

/* The vector length by which several rows share a warp; 0 when they cannot. */
static int64_t multi_row_vector(lw_gpu_model *m, const gpu_analysis *x,
                                const gpu_reduction *r) {
  int64_t n = r->dims[2];
  if (n & (n - 1)) return 0;
  int in = x->smallest_in_bits, out = x->smallest_out_bits;
  int small = in < out ? in : out, large = in > out ? in : out;
  if (large == INT_MAX) large = out;
  int64_t vec = min64((int)n, 64 / small);
  if (large >= 32) vec = min64(128 / large, vec);
  if (n > m->d.threads_per_warp * vec) return 0;
  while (vec > 1 && multi_row_blocks(r, vec) < m->d.core_count) vec /= 2;
  return n > m->d.threads_per_warp * vec ? 0 : vec;
}

static gpu_launch launch_multi_row(const gpu_reduction *r, int64_t vec) {
  int64_t reduced = r->dims[2] / vec, kept = threads_kept(r->dims[1], reduced);
  return (gpu_launch){lw_gpu_ceil_div(r->dims[1], kept), kept * reduced};
}

static gpu_launch launch_row(lw_gpu_model *m, const gpu_analysis *x,
                             const gpu_reduction *r) {
  int64_t warp = m->d.threads_per_warp, n = r->dims[2];
  int64_t reduced =
      lw_gpu_ceil_div(lw_gpu_ceil_div(n, PER_THREAD), warp) * warp;
  reduced = min64(ROW_THREADS, reduced);
  int64_t kept =
      2 * reduced <= TARGET_THREADS ? threads_kept(r->dims[1], reduced) : 1;
  int64_t vec = vector_of(x, n, reduced);
  int64_t tile = min64(PER_THREAD / vec, lw_gpu_ceil_div(n / vec, reduced));
  int64_t blocks = lw_gpu_ceil_div(r->dims[1], kept) *
                   lw_gpu_ceil_div(n / vec, tile * reduced);
  return (gpu_launch){blocks, kept * reduced};
}

/* ---- columns ---- */

static gpu_launch launch_small_column(const gpu_analysis *x,
                                      const gpu_reduction *r) {
  int64_t vec = vector_of(x, r->dims[1] * r->dims[2], 32), threads = 128;
  int64_t rows = vec * threads / r->dims[2];
  while (rows > 32 && vec > 1) {
    vec /= 2;
    rows /= 2;
  }
  if (rows > 32) threads /= rows / 32;
  return (gpu_launch){r->dims[0], threads};
}

static gpu_launch launch_column(const gpu_analysis *x, const gpu_reduction *r) {
  int64_t vec = vector_of(x, r->dims[2], 32);
  return (gpu_launch){r->dims[0] * lw_gpu_ceil_div(r->dims[2], 32 * vec),
                      32 * 32};
}

/* ---- groups of roots ----
 * Roots that read a common value run in the same blocks; scalars and
 * broadcasts of them are computed twice rather than tie two reductions. Roots
 * that reduce nothing stay together. */

typedef struct {
  int32_t n, words;
  int32_t *parent;    /* union-find, by root */
  bool *is_reduction; /* by root */
  uint64_t **reach;   /* by instruction id: roots that read it */
  size_t n_reach;
  LW_VEC(const lw_inst *) seen;
  lw_arena *arena;
} grouping;

static int32_t find(grouping *g, int32_t k) {
  while (g->parent[k] != k) k = g->parent[k] = g->parent[g->parent[k]];
  return k;
}

static void merge(grouping *g, int32_t a, int32_t b) {
  g->parent[find(g, b)] = find(g, a);
}

static void mark(grouping *g, const lw_inst *i, int32_t root) {
  if (!g->reach[i->id]) {
    g->reach[i->id] = LW_NEW_ARRAY(g->arena, uint64_t, g->words);
    lw_vec_push(&g->seen, i);
  }
  g->reach[i->id][root / 64] |= (uint64_t)1 << (root % 64);
}

static void mark_reached(lw_gpu_model *m, const gpu_analysis *x, grouping *g,
                         int32_t root) {
  LW_VEC(const lw_inst *) q = {0};
  lw_gpu_visit_begin(m);
  lw_gpu_visit(m, x->roots[root]);
  lw_vec_push(&q, x->roots[root]);
  for (size_t at = 0; at < q.len; at++) {
    const lw_inst *i = q.data[at];
    mark(g, i, root);
    if (i->opcode == LW_OP_PARAMETER) continue;
    for (int32_t k = 0; k < i->n_operands; k++) {
      const lw_inst *o = lw_gpu_resolve(&x->a, lw_inst_operand(i, k));
      if (!lw_gpu_visit(m, o)) continue;
      if (lw_gpu_contains(&x->a, o))
        lw_vec_push(&q, o);
      else
        mark(g, o, root);
    }
  }
  lw_vec_free(&q);
}

static bool is_parameter(const gpu_analysis *x, const lw_inst *i) {
  for (int32_t k = 0; k < x->n_params; k++)
    if (x->params[k] == i) return true;
  return lw_gpu_contains(&x->a, i);
}

static bool is_scalar_like(const lw_inst *i) {
  if (i->opcode == LW_OP_CONSTANT || lw_shape_is_scalar(i->shape)) return true;
  if (i->opcode != LW_OP_BROADCAST) return false;
  const lw_inst *o = lw_inst_operand(i, 0);
  return o->opcode == LW_OP_CONSTANT || lw_shape_is_scalar(o->shape);
}

static void merge_readers(grouping *g, const lw_inst *i) {
  bool cheap = is_scalar_like(i), reduces = false;
  int32_t first = -1;
  for (int32_t r = 0; r < g->n; r++) {
    if (g->is_reduction[r] && cheap && reduces) continue;
    if (!(g->reach[i->id][r / 64] >> (r % 64) & 1)) continue;
    if (first < 0)
      first = r;
    else
      merge(g, first, r);
    reduces |= g->is_reduction[r];
  }
}

static void group_begin(lw_gpu_model *m, const gpu_analysis *x, grouping *g) {
  int32_t plain = -1;
  g->words = (g->n + 63) / 64;
  g->parent = LW_NEW_ARRAY(g->arena, int32_t, g->n);
  g->is_reduction = LW_NEW_ARRAY(g->arena, bool, g->n);
  g->n_reach = (size_t)m->comp->module->n_inst_ids;
  g->reach = LW_NEW_ARRAY(g->arena, uint64_t *, g->n_reach);
  for (int32_t r = 0; r < g->n; r++) g->parent[r] = r;
  for (int32_t r = 0; r < g->n; r++) {
    g->is_reduction[r] =
        lw_gpu_is_real_reduction(&m->d, x->roots[r], x->heroes[r]);
    if (g->is_reduction[r]) continue;
    if (plain >= 0) merge(g, plain, r);
    plain = plain < 0 ? r : plain;
  }
}

static int64_t count_groups(lw_gpu_model *m, const gpu_analysis *x,
                            lw_arena *arena) {
  if (x->n_roots == 1) return 1;
  grouping g = {.n = x->n_roots, .arena = arena};
  int64_t groups = 0;
  group_begin(m, x, &g);
  for (int32_t r = 0; r < g.n; r++) mark_reached(m, x, &g, r);
  for (size_t k = 0; k < g.seen.len; k++)
    if (is_parameter(x, g.seen.data[k])) merge_readers(&g, g.seen.data[k]);
  for (int32_t r = 0; r < g.n; r++) groups += find(&g, r) == r;
  lw_vec_free(&g.seen);
  return groups;
}

/* ---- all ---- */

static const lw_inst *first_reduction(lw_gpu_model *m, const gpu_analysis *x) {
  for (int32_t k = 0; k < x->n_roots; k++)
    if (lw_gpu_is_real_reduction(&m->d, x->roots[k], x->heroes[k]))
      return x->heroes[k];
  return NULL;
}

gpu_launch lw_gpu_launch_reduction(lw_gpu_model *m, const gpu_analysis *x,
                                   lw_arena *arena) {
  const lw_inst *hero = first_reduction(m, x);
  LW_ASSERT(hero);
  gpu_reduction r = lw_gpu_reduction_of(hero);
  gpu_launch l;
  if (r.is_row) {
    int64_t vec = multi_row_vector(m, x, &r);
    l = vec ? launch_multi_row(&r, vec) : launch_row(m, x, &r);
  } else if (r.dims[2] && m->d.threads_per_warp % r.dims[2] == 0) {
    l = launch_small_column(x, &r);
  } else {
    l = launch_column(x, &r);
  }
  l.blocks =
      lw_gpu_split_grid(&m->d, l.threads, l.blocks) * count_groups(m, x, arena);
  return l;
}
