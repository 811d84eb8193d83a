/* How many blocks of how many threads a kernel is launched with, which is what
 * bounds its bandwidth and its arithmetic (backends/gpu/codegen/emitters).
 *
 * Loops: a thread an element, or every few elements once there is work for the
 * whole device; four warps a block. Reductions: rows of a power of two that
 * fit a warp share it (the multi-row form), other rows take up to 1024 threads;
 * columns take a 32 x 32 tile, or 128 threads when the kept dim divides a warp.
 * Groups of roots that share nothing run side by side along z. Transposes take
 * a block a tile. A scatter runs over its updates.
 */
#include <limits.h>
#include <string.h>

#include "target/gpu_impl.h"

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t t = a % b;
    a = b;
    b = t;
  }
  return a;
}

/* ---- unrolling ---- */

static bool short_minor_transpose(const lw_inst *i, void *factor) {
  if (i->opcode != LW_OP_TRANSPOSE) return false;
  int64_t unroll = *(int64_t *)factor;
  gpu_transpose t;
  if (lw_gpu_normalize_transpose(i, &t)) return t.dims[t.rank - 1] < unroll;
  return i->shape->rank && i->shape->dims[i->shape->rank - 1] < unroll;
}

static int64_t widest_bits(const gpu_analysis *x) {
  int64_t bits = 8;
  for (int32_t k = 0; k < x->n_params; k++)
    bits = max64(bits, lw_prim_table[x->params[k]->shape->type].bits);
  for (int32_t k = 0; k < x->n_roots; k++)
    bits = max64(bits, lw_prim_table[x->roots[k]->shape->type].bits);
  return bits;
}

enum {
  UNROLL = 4,
  MAX_UNROLL = 32
}; /* xla_gpu_experimental_max_unroll_factor
    */

/* Blackwell fills its wide loads with narrow types. */
static int64_t max_unroll(lw_gpu_model *m, const gpu_analysis *x) {
  bool streams = x->emitter == LW_GPU_LOOP || x->emitter == LW_GPU_TRANSPOSE ||
                 x->emitter == LW_GPU_CONCATENATE;
  if (!m->d.is_blackwell || !streams || x->n_roots > 1 ||
      x->smallest_out_bits >= m->d.vector_bits / UNROLL ||
      lw_gpu_holds(m, &x->a, GPU_REDUCES))
    return UNROLL;
  int64_t most = min64(MAX_UNROLL, m->d.vector_bits / widest_bits(x)), f = 1;
  while (2 * f <= most) f *= 2;
  if (lw_gpu_holds(m, &x->a, GPU_PADS)) f = min64(f, 8);
  while (f > UNROLL && lw_gpu_holds(m, &x->a, GPU_TRANSPOSES) &&
         lw_gpu_any(&x->a, short_minor_transpose, &f))
    f /= 2;
  return max64(f, 8);
}

static int64_t unroll_of(lw_gpu_model *m, const gpu_analysis *x,
                         const lw_shape *s) {
  int64_t n = s->elements, f = 1;
  if (n >= m->d.threads_per_core_limit * m->d.core_count &&
      !lw_gpu_holds(m, &x->a, GPU_DISLIKES_UNROLLING))
    f = gcd(n, max_unroll(m, x));
  /* One thread writes whole bytes. */
  return max64(f, lw_gpu_ceil_div(8, x->smallest_out_bits));
}

/* ---- loops ---- */

static gpu_launch launch_over(const lw_gpu_device *d, const lw_shape *s,
                              int64_t unroll) {
  if (s->elements <= 1) return (gpu_launch){1, 1};
  int64_t n = lw_gpu_ceil_div(s->elements, unroll);
  int64_t threads = min64(4 * d->threads_per_warp, n);
  int64_t total = lw_gpu_ceil_div(n, threads);
  int64_t y = lw_gpu_ceil_div(total, d->block_dim_limit_x);
  return (gpu_launch){lw_gpu_ceil_div(total, y) * y, threads};
}

static bool grid_fits(const lw_gpu_device *d, int64_t x, int64_t threads) {
  return x <= d->block_dim_limit_x &&
         (!d->is_amd || x <= (int64_t)UINT32_MAX / threads);
}

/* A grid too long for x is folded by a power of two, rounded up. */
int64_t lw_gpu_split_grid(const lw_gpu_device *d, int64_t threads,
                          int64_t blocks) {
  if (grid_fits(d, blocks, threads)) return blocks;
  for (int k = 1; k < 62; k++) {
    int64_t y = (int64_t)1 << k;
    if (y > d->block_dim_limit_y) {
      y = d->block_dim_limit_y;
      return lw_gpu_ceil_div(blocks, y) * y;
    }
    int64_t x = lw_gpu_ceil_div(blocks, y);
    if (grid_fits(d, x, threads)) return x * y;
  }
  return blocks;
}

static const lw_shape *first_array(const lw_shape *s) {
  while (lw_shape_is_tuple(s) && s->n_elems) s = s->elems[0];
  return s;
}

/* ---- updates in place ---- */

static const lw_inst *operand_in(const gpu_analysis *x, const lw_inst *i,
                                 int32_t k) {
  return lw_gpu_resolve(&x->a, lw_inst_operand(i, k));
}

/* The update a root is, perhaps under bitcasts; or NULL. */
static const lw_inst *update_of_root(const gpu_analysis *x,
                                     const lw_inst *root) {
  const lw_inst *i = root;
  if (i->opcode == LW_OP_BITCAST) i = operand_in(x, i, 0);
  if (i->opcode != LW_OP_DYNAMIC_UPDATE_SLICE) return NULL;
  return i;
}

/* dus, then at most bitcasts, then nothing. */
static bool goes_straight_out(const gpu_analysis *x, const lw_inst *dus,
                              lw_arena *arena) {
  int32_t n;
  const lw_inst **u = lw_gpu_users(&x->a, dus, arena, &n);
  while (n) {
    if (n > 1 || u[0]->opcode != LW_OP_BITCAST) return false;
    u = lw_gpu_users(&x->a, u[0], arena, &n);
  }
  return true;
}

static bool same_starts(const lw_inst *dus, const lw_inst *slice) {
  if (dus->n_operands - 2 != slice->n_operands - 1) return false;
  for (int32_t k = 1; k < slice->n_operands; k++)
    if (lw_inst_operand(slice, k) != lw_inst_operand(dus, k + 1)) return false;
  return true;
}

static bool reads_in_step(const gpu_analysis *x, const lw_inst *dus,
                          const lw_inst *user) {
  const lw_shape *update = operand_in(x, dus, 1)->shape;
  if (user->opcode == LW_OP_DYNAMIC_SLICE &&
      operand_in(x, dus, 0) == operand_in(x, user, 0) && update == user->shape)
    return update->elements == 1 || same_starts(dus, user);
  if (user == dus) return true;
  if (user->opcode == LW_OP_DYNAMIC_UPDATE_SLICE) return false;
  return lw_inst_is_elementwise(user) || user->opcode == LW_OP_BITCAST ||
         user->opcode == LW_OP_TUPLE;
}

/* Is the updated value read at the same elements only, by everyone? */
static bool updated_in_step(lw_gpu_model *m, const gpu_analysis *x,
                            const lw_inst *dus, const lw_inst *target,
                            lw_arena *arena) {
  LW_VEC(const lw_inst *) q = {0};
  bool good = true;
  lw_gpu_visit_begin(m);
  lw_gpu_visit(m, target);
  lw_gpu_visit(m, dus);
  lw_vec_push(&q, target);
  for (size_t at = 0; good && at < q.len; at++) {
    int32_t n;
    const lw_inst **u = lw_gpu_users(&x->a, q.data[at], arena, &n);
    for (int32_t k = 0; good && k < n; k++) {
      good = reads_in_step(x, dus, u[k]);
      if (good && lw_gpu_visit(m, u[k])) lw_vec_push(&q, u[k]);
    }
  }
  lw_vec_free(&q);
  return good;
}

static bool can_update_in_place(lw_gpu_model *m, const gpu_analysis *x,
                                lw_arena *arena) {
  const lw_inst *first = NULL;
  for (int32_t k = 0; k < x->n_roots; k++) {
    const lw_inst *dus = update_of_root(x, x->roots[k]);
    if (!dus) return false;
    if (!first) first = dus;
    if (!goes_straight_out(x, dus, arena)) return false;
    const lw_inst *target = operand_in(x, dus, 0);
    if (lw_gpu_contains(&x->a, target) && target->opcode == LW_OP_BITCAST)
      target = operand_in(x, target, 0);
    if (lw_gpu_contains(&x->a, target)) return false;
    if (!updated_in_step(m, x, dus, target, arena)) return false;
    if (operand_in(x, dus, 1)->shape != operand_in(x, first, 1)->shape)
      return false;
  }
  return first != NULL;
}

static gpu_launch launch_loop(lw_gpu_model *m, const gpu_analysis *x,
                              lw_arena *arena) {
  const lw_shape *s = first_array(x->roots[0]->shape);
  if (can_update_in_place(m, x, arena)) {
    const lw_inst *dus = update_of_root(x, x->roots[0]);
    s = lw_inst_operand(dus, 1)->shape;
    return launch_over(&m->d, s, unroll_of(m, x, s));
  }
  gpu_launch l = launch_over(&m->d, s, unroll_of(m, x, s));
  if (!grid_fits(&m->d, l.blocks, l.threads))
    l.blocks = lw_gpu_split_grid(&m->d, l.threads, l.blocks);
  return l;
}

/* ---- concatenates ---- */

/* One loop over the longest operand. */
static gpu_launch launch_concatenate(lw_gpu_model *m, const gpu_analysis *x) {
  const lw_inst *cat = x->heroes[0];
  int32_t n;
  const int64_t *dims = lw_inst_i64s(cat, LW_ATTR_DIMENSIONS, &n);
  int64_t dim = n ? dims[0] : 0;
  const lw_shape *longest = lw_inst_operand(cat, 0)->shape;
  for (int32_t k = 1; k < cat->n_operands; k++) {
    const lw_shape *s = lw_inst_operand(cat, k)->shape;
    if (s->dims[dim] > longest->dims[dim]) longest = s;
  }
  int64_t unroll = unroll_of(m, x, longest);
  for (int32_t k = 0; k < cat->n_operands && unroll != 1; k++)
    unroll = gcd(unroll, lw_inst_operand(cat, k)->shape->dims[dim]);
  return launch_over(&m->d, longest, unroll);
}

/* ---- scatters ---- */

static int64_t slice_elements(const lw_shape *update) {
  int64_t n = 1;
  for (int32_t k = 1; k < update->rank; k++) n *= update->dims[k];
  return n;
}

static int64_t possible_indices(const lw_shape *update, const lw_shape *out,
                                int64_t length) {
  int64_t n = 1;
  for (int64_t k = 0; k < length && k + 1 < update->rank && k < out->rank; k++)
    n *= out->dims[k] - update->dims[k + 1] + 1;
  return n;
}

static gpu_launch launch_scatter(lw_gpu_model *m, const gpu_analysis *x) {
  enum { WARPS = 4 };
  const lw_inst *s = x->heroes[0];
  int32_t operands = s->n_operands / 2;
  const lw_shape *indices = lw_inst_operand(s, operands)->shape;
  const lw_shape *update = lw_inst_operand(s, operands + 1)->shape;
  const lw_shape *out = lw_inst_operand(s, 0)->shape;
  int64_t slices = indices->rank ? indices->dims[0] : 1;
  int64_t length = indices->rank > 1 ? indices->dims[1] : 1;
  int64_t warps = WARPS * m->d.core_count;
  bool sorted = lw_inst_i64(s, LW_ATTR_INDICES_ARE_SORTED, 0) &&
                !lw_inst_i64(s, LW_ATTR_UNIQUE_INDICES, 0);
  if (sorted && slices > warps) {
    int64_t each = lw_gpu_ceil_div(
        slices, max64(warps, possible_indices(update, out, length)));
    int64_t vec = 128 / lw_gpu_bits(indices->type);
    if (length == 1 && each > vec) each = lw_gpu_ceil_div(each, vec) * vec;
    return (gpu_launch){lw_gpu_ceil_div(slices, each * WARPS),
                        WARPS * m->d.threads_per_warp};
  }
  int64_t vec = gcd(slice_elements(update), unroll_of(m, x, update));
  gpu_launch l = launch_over(&m->d, update, vec);
  l.threads =
      lw_gpu_ceil_div(l.threads, m->d.threads_per_warp) * m->d.threads_per_warp;
  return l;
}

/* ---- transposes ---- */

typedef struct {
  int64_t in[GPU_MAX_RANK], block[GPU_MAX_RANK];
  bool minor_stays;
} tiling;

static int64_t tile_blocks(const gpu_transpose *t, tiling *g, int64_t vec) {
  int32_t r = t->rank;
  int64_t blocks = 1;
  for (int32_t k = 0; k < r; k++) g->block[k] = 1;
  if (g->minor_stays) {
    g->block[r - 1] = vec;
    g->block[r - 2] = 32;
    g->block[t->perm[r - 2]] = 32;
  } else {
    g->block[r - 1] = 32 * vec;
    g->block[t->perm[r - 1]] = 32 * vec;
  }
  for (int32_t k = 0; k < r; k++)
    blocks *= lw_gpu_ceil_div(g->in[k], g->block[k]);
  return blocks;
}

/* Vectors need work for all threads, shared memory, and dims they divide. */
static int64_t vectorised_blocks(lw_gpu_model *m, const gpu_analysis *x,
                                 tiling *g, int64_t threads) {
  const gpu_transpose *t = &x->transpose;
  int64_t blocks = tile_blocks(t, g, 1), shared = 0, widest = 1;
  for (int32_t k = 0; k < x->n_roots; k++) {
    if (!lw_gpu_is_tiled_transpose(x->heroes[k])) continue;
    int64_t size = lw_prim_bytes(x->heroes[k]->shape->type);
    widest = max64(widest, size);
    shared += 32 * 33 * size;
  }
  int64_t last = g->in[t->rank - 1], other = g->in[t->perm[t->rank - 1]];
  for (int64_t v = (m->d.is_amd ? 16 : 4) / widest; v > 1; v /= 2) {
    bool work = blocks * threads >=
                v * v * m->d.core_count * m->d.threads_per_core_limit;
    if (work && shared * v * v <= m->d.shared_memory_per_block &&
        last % v == 0 && other % v == 0)
      return tile_blocks(t, g, v);
  }
  return blocks;
}

static gpu_launch launch_transpose(lw_gpu_model *m, const gpu_analysis *x) {
  const gpu_transpose *t = &x->transpose;
  int64_t threads = m->d.is_amd ? 256 : 128;
  int64_t packed = lw_gpu_packed_blocks(t);
  if (packed) return (gpu_launch){packed, threads};
  tiling g = {.minor_stays = t->perm[t->rank - 1] == t->rank - 1};
  for (int32_t k = 0; k < t->rank; k++) g.in[t->perm[k]] = t->dims[k];
  int64_t blocks = g.minor_stays ? tile_blocks(t, &g, g.in[t->rank - 1])
                                 : vectorised_blocks(m, x, &g, threads);
  return (gpu_launch){blocks, threads};
}

/* ---- any other ---- */

static gpu_launch launch_unknown(const gpu_analysis *x) {
  return (gpu_launch){lw_gpu_ceil_div(lw_gpu_elements(x->roots[0]->shape), 128),
                      128};
}

gpu_launch lw_gpu_launch(lw_gpu_model *m, const gpu_analysis *x,
                         lw_arena *arena) {
  if (x->n_roots == 0) return (gpu_launch){1, 1};
  switch (x->emitter) {
    case LW_GPU_LOOP:
      return launch_loop(m, x, arena);
    case LW_GPU_REDUCTION:
      return lw_gpu_launch_reduction(m, x, arena);
    case LW_GPU_TRANSPOSE:
      return launch_transpose(m, x);
    case LW_GPU_CONCATENATE:
      return launch_concatenate(m, x);
    case LW_GPU_SCATTER:
      return launch_scatter(m, x);
    case LW_GPU_TRITON:
    case LW_GPU_CUSTOM:
    case LW_GPU_SORT:
      break;
  }
  return launch_unknown(x);
}
