/* The packed road of dots (docs/numerics.md 7, standard rule).
 *
 * The block of 256 that the numerics ask for is also the cache block of a fast
 * kernel, so this is the classical one: pack LW_DOT_ROWS rows of the lhs and a
 * panel of the rhs for one block, run a register tile of 8 x 3 vectors (6 x 2
 * without AVX-512: the accumulators, the rhs vectors and one broadcast fill the
 * 32 or 16 registers) over them, add the tile to the running sums, write out
 * once at the end.
 */
#include "codegen/llvm/dot.h"

enum { BLOCK = LW_FOLD_DOT_BLOCK };

/* A block of the lhs: row r, position k at [r * 256 + k]. A panel of the rhs:
 * register-tile columns together, position k at [panel * 256 + k * tile]. */
typedef struct {
  LLVMValueRef a, b, c; /* the three work areas */
  int tile_rows, tile_vecs, tile_cols, width;
  LLVMValueRef m0, rows, n0, cols, k0, kc; /* of the block at hand, i64 */
  LLVMValueRef lhs0, rhs0;
  bool direct; /* the rhs is read where it is */
} packed;

static LLVMValueRef work_at(lw_dot *d, LLVMValueRef base, LLVMValueRef index) {
  return lw_at(d->f, base, index, lw_prim_bytes(d->acc));
}

static void work_store(lw_dot *d, LLVMValueRef v, LLVMValueRef p) {
  LLVMSetAlignment(LLVMBuildStore(d->f->b, v, p),
                   (unsigned)lw_prim_bytes(d->acc));
}

static LLVMValueRef work_load(lw_dot *d, LLVMValueRef p, int width) {
  LLVMValueRef v = LLVMBuildLoad2(d->f->b, lw_dot_acc_type(d, width), p, "");
  LLVMSetAlignment(v, (unsigned)lw_prim_bytes(d->acc));
  return v;
}

/* In-register transpose of width vectors: log2(width) rounds of exchanging
 * halves between rows that differ in one bit of their number. */
static void transpose(lw_fn *f, LLVMValueRef *v, int width) {
  for (int bit = 1; bit < width; bit *= 2)
    for (int i = 0; i < width; i++) {
      if (i & bit) continue;
      LLVMValueRef lo[64], hi[64];
      for (int l = 0; l < width; l++) {
        lo[l] = LLVMConstInt(f->em->i32,
                             (unsigned)(l & bit ? width + l - bit : l), 0);
        hi[l] = LLVMConstInt(f->em->i32,
                             (unsigned)(l & bit ? width + l : l + bit), 0);
      }
      LLVMValueRef a = v[i], b = v[i | bit];
      v[i] = LLVMBuildShuffleVector(f->b, a, b,
                                    LLVMConstVector(lo, (unsigned)width), "");
      v[i | bit] = LLVMBuildShuffleVector(
          f->b, a, b, LLVMConstVector(hi, (unsigned)width), "");
    }
}

static LLVMValueRef clamp_below(lw_fn *f, LLVMValueRef v, int64_t n) {
  return lw_min_max(f, "llvm.smin", v, lw_i64(f, n - 1));
}

/* Rows of the lhs when its rows are contiguous along k. */
static void pack_a_rows(lw_dot *d, packed *p) {
  lw_fn *f = d->f;
  lw_loop r = lw_loop_begin(f, lw_i64(f, 0), p->rows, 1, "pa");
  LLVMValueRef row = lw_axis_offset(f, &d->plan.lhs_m, lw_add(f, p->m0, r.iv));
  LLVMValueRef fixed = lw_add(f, p->lhs0, row),
               to = lw_mul_const(f, r.iv, BLOCK);
  lw_loop k = lw_loop_begin(f, lw_i64(f, 0), p->kc, p->width, "pak");
  LLVMValueRef mask = lw_mask_below(f, k.iv, p->kc, p->width);
  lw_operand v = lw_dot_lanes(d, 0, fixed, &d->plan.lhs_k,
                              lw_add(f, p->k0, k.iv), p->width, mask);
  work_store(d, v.re, work_at(d, p->a, lw_add(f, to, k.iv)));
  lw_loop_end(f, &k);
  lw_loop_end(f, &r);
}

/* ... when they are contiguous along m: width x width blocks, transposed. */
static void pack_a_blocks(lw_dot *d, packed *p) {
  lw_fn *f = d->f;
  int w = p->width;
  LLVMValueRef v[64];
  lw_loop r = lw_loop_begin(f, lw_i64(f, 0), p->rows, w, "pa");
  LLVMValueRef mask = lw_mask_below(f, r.iv, p->rows, w);
  lw_loop k = lw_loop_begin(f, lw_i64(f, 0), p->kc, w, "pak");
  for (int i = 0; i < w; i++) {
    LLVMValueRef at = clamp_below(
        f, lw_add(f, p->k0, lw_add(f, k.iv, lw_i64(f, i))), d->plan.fold.k);
    LLVMValueRef fixed =
        lw_add(f, p->lhs0, lw_axis_offset(f, &d->plan.lhs_k, at));
    v[i] = lw_dot_lanes(d, 0, fixed, &d->plan.lhs_m, lw_add(f, p->m0, r.iv), w,
                        mask)
               .re;
  }
  transpose(f, v, w);
  for (int i = 0; i < w; i++) {
    LLVMValueRef to =
        lw_add(f, lw_mul_const(f, lw_add(f, r.iv, lw_i64(f, i)), BLOCK), k.iv);
    work_store(d, v[i], work_at(d, p->a, to));
  }
  lw_loop_end(f, &k);
  lw_loop_end(f, &r);
}

/* Columns of the rhs when they are contiguous along n (or strided: gathers). */
static void pack_b_rows(lw_dot *d, packed *p) {
  lw_fn *f = d->f;
  LLVMValueRef n_end = lw_i64(f, d->plan.fold.n);
  lw_loop j = lw_loop_begin(f, lw_i64(f, 0), p->cols, p->tile_cols, "pb");
  lw_loop k = lw_loop_begin(f, lw_i64(f, 0), p->kc, 1, "pbk");
  LLVMValueRef fixed = lw_add(
      f, p->rhs0, lw_axis_offset(f, &d->plan.rhs_k, lw_add(f, p->k0, k.iv)));
  LLVMValueRef to = lw_add(f, lw_mul_const(f, j.iv, BLOCK),
                           lw_mul_const(f, k.iv, p->tile_cols));
  for (int i = 0; i < p->tile_vecs; i++) {
    LLVMValueRef off = lw_i64(f, (int64_t)i * p->width);
    LLVMValueRef n = lw_add(f, p->n0, lw_add(f, j.iv, off));
    LLVMValueRef mask = lw_mask_below(f, n, n_end, p->width);
    lw_operand v = lw_dot_lanes(d, 1, fixed, &d->plan.rhs_n, n, p->width, mask);
    work_store(d, v.re, work_at(d, p->b, lw_add(f, to, off)));
  }
  lw_loop_end(f, &k);
  lw_loop_end(f, &j);
}

/* ... when they are contiguous along k: transposed blocks. */
static void pack_b_blocks(lw_dot *d, packed *p) {
  lw_fn *f = d->f;
  int w = p->width;
  LLVMValueRef v[64];
  lw_loop j = lw_loop_begin(f, lw_i64(f, 0), p->cols, p->tile_cols, "pb");
  lw_loop i = lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, p->tile_cols), w, "pbi");
  lw_loop k = lw_loop_begin(f, lw_i64(f, 0), p->kc, w, "pbk");
  LLVMValueRef mask = lw_mask_below(f, k.iv, p->kc, w);
  for (int l = 0; l < w; l++) {
    LLVMValueRef n =
        lw_add(f, p->n0, lw_add(f, j.iv, lw_add(f, i.iv, lw_i64(f, l))));
    LLVMValueRef col =
        lw_axis_offset(f, &d->plan.rhs_n, clamp_below(f, n, d->plan.fold.n));
    v[l] = lw_dot_lanes(d, 1, lw_add(f, p->rhs0, col), &d->plan.rhs_k,
                        lw_add(f, p->k0, k.iv), w, mask)
               .re;
  }
  transpose(f, v, w);
  for (int l = 0; l < w; l++) { /* rows past kc are inside the panel: unread */
    LLVMValueRef kk =
        lw_mul_const(f, lw_add(f, k.iv, lw_i64(f, l)), p->tile_cols);
    work_store(
        d, v[l],
        work_at(d, p->b,
                lw_add(f, lw_add(f, lw_mul_const(f, j.iv, BLOCK), kk), i.iv)));
  }
  lw_loop_end(f, &k);
  lw_loop_end(f, &i);
  lw_loop_end(f, &j);
}

/* The register tile: rows i.., columns j.. of the block, over kc steps. */
static void micro(lw_dot *d, packed *p, LLVMValueRef i, LLVMValueRef j,
                  LLVMValueRef first) {
  lw_fn *f = d->f;
  LLVMValueRef acc[8][3];
  for (int r = 0; r < p->tile_rows; r++)
    for (int v = 0; v < p->tile_vecs; v++) {
      acc[r][v] = lw_local(f, lw_dot_acc_type(d, p->width), "t");
      LLVMBuildStore(f->b, LLVMConstNull(lw_dot_acc_type(d, p->width)),
                     acc[r][v]);
    }
  LLVMValueRef a0 = lw_mul_const(f, i, BLOCK), b0 = lw_mul_const(f, j, BLOCK);
  LLVMValueRef b[3], n[3], mask[3] = {NULL, NULL, NULL};
  for (int v = 0; v < p->tile_vecs && p->direct; v++) {
    n[v] = lw_add(f, p->n0, lw_add(f, j, lw_i64(f, (int64_t)v * p->width)));
    if (d->plan.fold.n % p->tile_cols)
      mask[v] = lw_mask_below(f, n[v], lw_i64(f, d->plan.fold.n), p->width);
  }
  lw_loop k = lw_loop_begin(f, lw_i64(f, 0), p->kc, 1, "kk");
  LLVMValueRef at = lw_add(f, b0, lw_mul_const(f, k.iv, p->tile_cols));
  LLVMValueRef fixed = lw_add(
      f, p->rhs0, lw_axis_offset(f, &d->plan.rhs_k, lw_add(f, p->k0, k.iv)));
  for (int v = 0; v < p->tile_vecs; v++)
    b[v] =
        p->direct
            ? lw_dot_lanes(d, 1, fixed, &d->plan.rhs_n, n[v], p->width, mask[v])
                  .re
            : work_load(
                  d,
                  work_at(d, p->b,
                          lw_add(f, at, lw_i64(f, (int64_t)v * p->width))),
                  p->width);
  for (int r = 0; r < p->tile_rows; r++) {
    LLVMValueRef ra =
        lw_add(f, lw_add(f, a0, lw_i64(f, (int64_t)r * BLOCK)), k.iv);
    LLVMValueRef a =
        lw_splat(f, work_load(d, work_at(d, p->a, ra), 1), p->width);
    for (int v = 0; v < p->tile_vecs; v++) {
      LLVMValueRef s =
          LLVMBuildLoad2(f->b, lw_dot_acc_type(d, p->width), acc[r][v], "");
      LLVMBuildStore(f->b, lw_dot_madd(d, a, b[v], s), acc[r][v]);
    }
  }
  lw_loop_end(f, &k);
  for (int r = 0; r < p->tile_rows; r++)
    for (int v = 0; v < p->tile_vecs; v++) {
      LLVMValueRef row =
          lw_mul_const(f, lw_add(f, i, lw_i64(f, r)), d->plan.cols);
      LLVMValueRef to = work_at(
          d, p->c,
          lw_add(f, row, lw_add(f, j, lw_i64(f, (int64_t)v * p->width))));
      LLVMValueRef s =
          LLVMBuildLoad2(f->b, lw_dot_acc_type(d, p->width), acc[r][v], "");
      LLVMValueRef old = work_load(d, to, p->width);
      work_store(d, LLVMBuildSelect(f->b, first, s, lw_dot_plus(d, old, s), ""),
                 to);
    }
}

static void write_out(lw_dot *d, packed *p, LLVMValueRef batch) {
  lw_fn *f = d->f;
  lw_loop r = lw_loop_begin(f, lw_i64(f, 0), p->rows, 1, "wr");
  LLVMValueRef row =
      lw_add(f, lw_mul_const(f, batch, d->plan.fold.m), lw_add(f, p->m0, r.iv));
  LLVMValueRef out = lw_add(f, lw_mul_const(f, row, d->plan.fold.n), p->n0);
  lw_loop c = lw_loop_begin(f, lw_i64(f, 0), p->cols, p->width, "wc");
  LLVMValueRef from = lw_add(f, lw_mul_const(f, r.iv, d->plan.cols), c.iv);
  lw_acc a = {{work_load(d, work_at(d, p->c, from), p->width)}};
  LLVMValueRef mask = lw_mask_below(f, c.iv, p->cols, p->width);
  lw_dot_store(d, a, lw_dot_out(d, lw_add(f, out, c.iv)), p->width, mask);
  lw_loop_end(f, &c);
  lw_loop_end(f, &r);
}

/* Blocked index space [0, n) by step: the loop, and *left = min(step, n - iv).
 */
static lw_loop blocks_begin(lw_fn *f, LLVMValueRef lo, LLVMValueRef hi,
                            int64_t step, LLVMValueRef *left,
                            const char *name) {
  lw_loop l = lw_loop_begin(f, lo, hi, step, name);
  *left = lw_min_max(f, "llvm.smin", LLVMBuildSub(f->b, hi, l.iv, ""),
                     lw_i64(f, step));
  return l;
}

static bool contiguous(const lw_axis *a) {
  int64_t stride;
  return lw_axis_is_linear(a, &stride) && stride == 1;
}

/* A panel that few register tiles read is not worth packing. */
static bool reads_directly(const lw_dot *d) {
  return contiguous(&d->plan.rhs_n) && d->type[1] == d->acc && d->base[1] &&
         d->plan.fold.m <= LW_DOT_DIRECT_ROWS;
}

static void pack(lw_dot *d, packed *p) {
  if (!contiguous(&d->plan.lhs_k) && contiguous(&d->plan.lhs_m))
    pack_a_blocks(d, p);
  else
    pack_a_rows(d, p);
  if (p->direct) return;
  if (!contiguous(&d->plan.rhs_n) && contiguous(&d->plan.rhs_k))
    pack_b_blocks(d, p);
  else
    pack_b_rows(d, p);
}

static packed packed_new(lw_dot *d) {
  lw_fn *f = d->f;
  int64_t size = lw_prim_bytes(d->acc);
  packed p = {.tile_rows = f->em->has_avx512 ? 8 : 6,
              .tile_vecs = f->em->has_avx512 ? 3 : 2,
              .width = f->em->vec_bytes / (int)size};
  p.tile_cols = p.tile_vecs * p.width;
  p.direct = reads_directly(d);
  p.a = lw_at(f, f->scratch, lw_i64(f, d->work_offset), 1);
  p.b = lw_at(f, p.a, lw_i64(f, size * LW_DOT_ROWS * BLOCK), 1);
  p.c = lw_at(f, p.b, lw_i64(f, size * BLOCK * d->plan.cols), 1);
  return p;
}

/* LW_FAULT_DOT_ORDER. */
static void mirror_block(lw_dot *d, packed *p) {
  lw_fn *f = d->f;
  int64_t k = d->plan.fold.k, last = (k - 1) / BLOCK * BLOCK;
  p->k0 = LLVMBuildSub(f->b, lw_i64(f, last), p->k0, "");
  p->kc =
      lw_min_max(f, "llvm.smin", LLVMBuildSub(f->b, lw_i64(f, k), p->k0, ""),
                 lw_i64(f, BLOCK));
}

void lw_dot_packed(lw_dot *d) {
  lw_fn *f = d->f;
  packed p = packed_new(d);
  LLVMValueRef lo, hi, zero = lw_i64(f, 0);
  lw_loop batch = lw_dot_batches(d, &lo, &hi);
  p.lhs0 = lw_axis_offset(f, &d->plan.lhs_batch, batch.iv);
  p.rhs0 = lw_axis_offset(f, &d->plan.rhs_batch, batch.iv);
  lw_loop m = blocks_begin(f, lo, hi, LW_DOT_ROWS, &p.rows, "m0");
  p.m0 = m.iv;
  lw_loop n = blocks_begin(f, zero, lw_i64(f, d->plan.fold.n), d->plan.cols,
                           &p.cols, "n0");
  p.n0 = n.iv;
  lw_loop k =
      blocks_begin(f, zero, lw_i64(f, d->plan.fold.k), BLOCK, &p.kc, "k0");
  p.k0 = k.iv;
  if (f->g.fault == LW_FAULT_DOT_ORDER) mirror_block(d, &p);
  LLVMValueRef first = LLVMBuildICmp(f->b, LLVMIntEQ, k.iv, zero, "");
  pack(d, &p);
  lw_loop j = lw_loop_begin(f, zero, p.cols, p.tile_cols, "j");
  lw_loop i = lw_loop_begin(f, zero, p.rows, p.tile_rows, "i");
  micro(d, &p, i.iv, j.iv, first);
  lw_loop_end(f, &i);
  lw_loop_end(f, &j);
  lw_loop_end(f, &k);
  write_out(d, &p, batch.iv);
  lw_loop_end(f, &n);
  lw_loop_end(f, &m);
  lw_loop_end(f, &batch);
}
