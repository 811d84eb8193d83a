/* Which transposes go through shared memory (service/gpu/ir_emission_utils.cc).
 *
 * Dims of size 1 are dropped and neighbours that stay neighbours are merged;
 * what is left of the permutation decides. Narrow types use the packed form,
 * whose tile is made of 32-bit words, when rows and columns fill ten words and
 * divide. Else a minor dim that stays is tiled along when it is short and the
 * tile is not tiny, and a minor dim that moves when both dims are long enough.
 * Everything else is read by the loop, in an order that does not coalesce.
 */
#include <string.h>

#include "target/gpu_impl.h"

enum {
  BANKS = 32,
  BANK_BITS = 32,
  MIN_TILED = 16,
  MIN_TILED_2 = 8,
  MIN_TILED_TOTAL = 64 * 128,
  MAX_MINOR_BITS = 64
};

static bool descending(const lw_shape *s) {
  for (int32_t k = 0; k < s->rank; k++)
    if (lw_gpu_minor(s, k) != s->rank - 1 - k) return false;
  return true;
}

/* Rank of the dim among those kept: degenerate ones before it drop out. */
static int32_t kept_index(const lw_shape *in, int64_t dim) {
  int32_t at = 0;
  for (int64_t d = 0; d < dim; d++) at += in->dims[d] != 1;
  return at;
}

/* Merges runs of source dims; source[k] is where result dim k comes from. */
static void merge_runs(gpu_transpose *t, int32_t n, const int32_t *source,
                       const int64_t *size) {
  int32_t start[GPU_MAX_RANK], n_runs = 0;
  bool begins[GPU_MAX_RANK] = {false};
  for (int32_t k = 0; k < n; k++) {
    if (k == 0 || source[k] != source[k - 1] + 1) {
      start[n_runs] = source[k];
      t->dims[n_runs++] = 1;
      begins[source[k]] = true;
    }
    t->dims[n_runs - 1] *= size[k];
  }
  t->rank = n_runs;
  for (int32_t r = 0; r < n_runs; r++) {
    t->perm[r] = 0;
    for (int32_t k = 0; k < start[r]; k++) t->perm[r] += begins[k];
  }
}

bool lw_gpu_normalize_transpose(const lw_inst *i, gpu_transpose *t) {
  const lw_shape *in = lw_inst_operand(i, 0)->shape, *out = i->shape;
  if (!descending(in) || !descending(out)) return false;
  int32_t n, kept = 0, source[GPU_MAX_RANK];
  int64_t size[GPU_MAX_RANK];
  const int64_t *dims = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  for (int32_t k = 0; k < n && k < out->rank; k++) {
    if (out->dims[k] == 1) continue;
    source[kept] = kept_index(in, dims[k]);
    size[kept++] = out->dims[k];
  }
  t->inst = i;
  t->shared_bytes = 0;
  merge_runs(t, kept, source, size);
  if (t->rank == 0) {
    t->rank = 1;
    t->dims[0] = 1;
    t->perm[0] = 0;
  }
  return true;
}

/* ---- the packed form ---- */

typedef struct {
  int32_t rank;
  int64_t out[GPU_MAX_RANK], in[GPU_MAX_RANK];
  int32_t perm[GPU_MAX_RANK], inverse[GPU_MAX_RANK];
} canonical;

/* <... T2 ... A x T1 x B> becomes <... T1 ... A x T2 x B>: A and B of size 1
 * are put in where there are none. */
static canonical canonical_of(const gpu_transpose *t) {
  canonical c = {.rank = t->rank};
  memcpy(c.out, t->dims, sizeof c.out);
  memcpy(c.perm, t->perm, sizeof c.perm);
  if (c.perm[c.rank - 1] != c.rank - 1) {
    c.perm[c.rank] = c.rank;
    c.out[c.rank++] = 1;
  }
  int32_t r = c.rank;
  if (c.perm[r - 3] != r - 3) {
    for (int32_t k = 0; k < r; k++) c.perm[k] += c.perm[k] > r - 3;
    for (int32_t k = r; k > r - 2; k--) {
      c.perm[k] = c.perm[k - 1];
      c.out[k] = c.out[k - 1];
    }
    c.perm[r - 2] = r - 2;
    c.out[r - 2] = 1;
    c.rank++;
  }
  for (int32_t k = 0; k < c.rank; k++) c.inverse[c.perm[k]] = k;
  for (int32_t k = 0; k < c.rank; k++) c.in[k] = c.out[c.inverse[k]];
  return c;
}

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t lw_gpu_packed_blocks(const gpu_transpose *t) {
  int bits = lw_gpu_bits(lw_inst_operand(t->inst, 0)->shape->type);
  if (bits >= BANK_BITS || t->rank < 2) return 0;
  canonical c = canonical_of(t);
  int32_t id_a = c.rank - 3, in_t1 = c.rank - 2, out_t2 = c.rank - 2;
  int32_t out_t1 = c.inverse[c.rank - 2], in_t2 = c.perm[c.rank - 2];
  int64_t vec = BANK_BITS / bits, side = BANKS * vec;
  int64_t t1 = min64(c.in[in_t1], side);
  int64_t a = min64(c.in[id_a], side / t1);
  int64_t t2 = min64(c.in[in_t2], side);
  int64_t rows = t2, cols = a * t1;
  if (cols < 10 * vec || rows < 10 * vec) return 0;
  if (c.in[c.rank - 1] != 1 || rows % vec || cols % vec ||
      c.in[in_t2] % t2 % vec)
    return 0;
  int64_t tile[GPU_MAX_RANK], blocks = 1;
  for (int32_t k = 0; k < c.rank; k++) tile[k] = 1;
  tile[out_t1] = t1;
  tile[out_t2] = t2;
  tile[id_a] = a;
  for (int32_t k = 0; k < c.rank; k++)
    blocks *= lw_gpu_ceil_div(c.out[k], tile[k]);
  return blocks;
}

/* ---- the tiled form ---- */

/* The operand's dim k. */
static int64_t operand_dim(const gpu_transpose *t, int32_t k) {
  for (int32_t r = 0; r < t->rank; r++)
    if (t->perm[r] == k) return t->dims[r];
  return 1;
}

static bool tiled_minor_stays(gpu_transpose *t, int bits) {
  int32_t r = t->rank;
  int64_t minor = t->dims[r - 1], second = t->dims[r - 2];
  int64_t shorter = min64(operand_dim(t, r - 2), second);
  if (bits * minor > MAX_MINOR_BITS || bits * minor * shorter < 8 * MIN_TILED)
    return false;
  t->shared_bytes = lw_gpu_ceil_div(BANKS * (BANKS + 1) * bits * minor, 8);
  return true;
}

static bool tiled_minor_moves(gpu_transpose *t, int bits) {
  int64_t in = operand_dim(t, t->rank - 1), out = t->dims[t->rank - 1];
  bool both = in >= MIN_TILED && out >= MIN_TILED;
  bool large =
      in >= MIN_TILED_2 && out >= MIN_TILED_2 && in * out >= MIN_TILED_TOTAL;
  if ((!both && !large) || bits == 4) return false;
  t->shared_bytes = lw_gpu_ceil_div(BANKS * (BANKS + 1) * bits, 8);
  return true;
}

bool lw_gpu_tiled_transpose(const lw_inst *i, gpu_transpose *t) {
  t->inst = NULL;
  if (i->opcode != LW_OP_TRANSPOSE || !lw_gpu_normalize_transpose(i, t))
    return false;
  int bits = lw_gpu_bits(i->shape->type);
  bool yes = t->rank >= 2;
  if (yes && lw_gpu_packed_blocks(t))
    t->shared_bytes = BANKS * (BANK_BITS / 8) * BANKS * (BANK_BITS / bits);
  else if (yes && t->perm[t->rank - 1] == t->rank - 1)
    yes = tiled_minor_stays(t, bits);
  else if (yes)
    yes = tiled_minor_moves(t, bits);
  if (!yes) t->inst = NULL;
  return yes;
}

bool lw_gpu_is_tiled_transpose(const lw_inst *i) {
  if (i->opcode != LW_OP_TRANSPOSE) return false;
  gpu_transpose t;
  return lw_gpu_tiled_transpose(i, &t);
}

bool lw_gpu_transpose_equal(const gpu_transpose *a, const gpu_transpose *b) {
  size_t n = (size_t)a->rank;
  return a->rank == b->rank && !memcmp(a->dims, b->dims, n * sizeof *a->dims) &&
         !memcmp(a->perm, b->perm, n * sizeof *a->perm) &&
         lw_gpu_bits(a->inst->shape->type) == lw_gpu_bits(b->inst->shape->type);
}

/* ---- reads that do not coalesce ---- */

/* Position, from the minor end, of the first dim that is longer than 1. */
static int32_t first_long(const lw_shape *s) {
  int32_t k = 0;
  while (k < s->rank && s->dims[lw_gpu_minor(s, k)] <= 1) k++;
  return k;
}

static int64_t first_long_dim(const lw_shape *s) {
  int32_t k = first_long(s);
  return k < s->rank ? lw_gpu_minor(s, k) : -1;
}

static int32_t position_of(const lw_shape *s, int64_t dim) {
  int32_t k = 0;
  while (k < s->rank && lw_gpu_minor(s, k) != dim) k++;
  return k;
}

static bool moves_minor(const lw_inst *i) {
  const lw_shape *in = lw_inst_operand(i, 0)->shape, *out = i->shape;
  int32_t n, k = first_long(out);
  const int64_t *dims = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  if (k == out->rank) return false;
  return position_of(in, dims[lw_gpu_minor(out, k)]) > first_long(in);
}

bool lw_gpu_transposes_minor(const lw_inst *i) {
  if (i->opcode == LW_OP_TRANSPOSE) return moves_minor(i);
  if (i->opcode == LW_OP_COPY && lw_shape_is_array(i->shape))
    return first_long_dim(lw_inst_operand(i, 0)->shape) !=
           first_long_dim(i->shape);
  return false;
}
