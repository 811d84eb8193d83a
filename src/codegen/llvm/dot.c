/* Dots (docs/numerics.md 7).
 *
 * The contracting index runs in blocks of 256; a block is one chain of fused
 * multiply-adds from +0 and block sums are added in order (skinny dots: 16
 * lanes a block and a fixed tree). The block that the numerics ask for is also
 * the cache block of a fast kernel, so the packed road below is the classical
 * one: pack 96 rows of the lhs and a panel of the rhs for one block, run a
 * register tile of 8 x 3 vectors (6 x 2 without AVX-512) over them, add the
 * tile to the running sums, write out once at the end. Small dots skip the
 * packing; skinny ones put their lanes where memory is contiguous. Every road
 * performs the same operations on each element: only the order in which
 * elements are visited differs.
 *
 * Integers accumulate in the result type with multiply and add. A complex
 * product is four real chains (re re, im im, re im, im re) that are combined at
 * the end.
 */
#include "codegen/llvm/dot.h"

#include <string.h>

enum { BLOCK = LW_FOLD_DOT_BLOCK, LANES = LW_FOLD_SKINNY_LANES };

/* ---- accumulators ---- */

static LLVMTypeRef acc_type(lw_dot *d, int width) {
  lw_fn *f = d->f;
  LLVMTypeRef t;
  if (d->acc == LW_F32)
    t = f->em->f32;
  else if (d->acc == LW_F64)
    t = f->em->f64;
  else
    t = LLVMIntTypeInContext(f->em->ctx, lw_prim_bytes(d->acc) * 8u);
  return lw_vec_type(t, width);
}

static bool acc_is_float(const lw_dot *d) {
  return d->acc == LW_F32 || d->acc == LW_F64;
}

/* A real value of type t in registers, as a value of the accumulator type:
 * exact, since the accumulator is at least as wide. */
static LLVMValueRef to_acc(lw_dot *d, lw_prim t, lw_cgval v, LLVMValueRef part,
                           int width) {
  lw_fn *f = d->f;
  LLVMTypeRef to = acc_type(d, width);
  if (lw_prim_class(t) == LW_CLASS_FLOAT && t != LW_F32 && t != LW_F64) {
    part = lw_mathgen_widen(&f->g, v).re;
    t = LW_F32;
  }
  if (acc_is_float(d)) {
    bool widen = d->acc == LW_F64 && lw_prim_part(t) == LW_F32;
    if (lw_prim_is_float(t) || lw_prim_is_complex(t))
      return widen ? LLVMBuildFPExt(f->b, part, to, "") : part;
    return lw_prim_is_signed(t) ? LLVMBuildSIToFP(f->b, part, to, "")
                                : LLVMBuildUIToFP(f->b, part, to, "");
  }
  return LLVMBuildIntCast2(f->b, part, to, lw_prim_is_signed(t), "");
}

lw_operand lw_dot_operand(lw_dot *d, lw_prim t, lw_cgval v, int width) {
  lw_operand o = {to_acc(d, t, v, v.re, width), NULL};
  if (d->n_chains == 4)
    o.im =
        v.im ? to_acc(d, t, v, v.im, width) : LLVMConstNull(acc_type(d, width));
  return o;
}

static lw_acc acc_zero(lw_dot *d, int width) {
  lw_acc a;
  for (int i = 0; i < d->n_chains; i++)
    a.v[i] = LLVMConstNull(acc_type(d, width));
  return a;
}

static LLVMValueRef madd(lw_dot *d, LLVMValueRef a, LLVMValueRef b,
                         LLVMValueRef s) {
  lw_fn *f = d->f;
  if (!acc_is_float(d))
    return LLVMBuildAdd(f->b, LLVMBuildMul(f->b, a, b, ""), s, "");
  LLVMTypeRef t = LLVMTypeOf(s);
  return lw_intrinsic(f, "llvm.fma", &t, 1, (LLVMValueRef[]){a, b, s}, 3);
}

static LLVMValueRef plus(lw_dot *d, LLVMValueRef a, LLVMValueRef b) {
  return acc_is_float(d) ? LLVMBuildFAdd(d->f->b, a, b, "")
                         : LLVMBuildAdd(d->f->b, a, b, "");
}

lw_acc lw_acc_madd(lw_dot *d, lw_operand a, lw_operand b, lw_acc s) {
  if (d->n_chains == 1) return (lw_acc){{madd(d, a.re, b.re, s.v[0])}};
  return (lw_acc){{madd(d, a.re, b.re, s.v[0]), madd(d, a.im, b.im, s.v[1]),
                   madd(d, a.re, b.im, s.v[2]), madd(d, a.im, b.re, s.v[3])}};
}

static lw_acc acc_plus(lw_dot *d, lw_acc a, lw_acc b) {
  for (int i = 0; i < d->n_chains; i++) a.v[i] = plus(d, a.v[i], b.v[i]);
  return a;
}

static lw_acc acc_select(lw_dot *d, LLVMValueRef mask, lw_acc a, lw_acc b) {
  for (int i = 0; i < d->n_chains; i++)
    a.v[i] = LLVMBuildSelect(d->f->b, mask, a.v[i], b.v[i], "");
  return a;
}

lw_acc_slot lw_acc_slot_new(lw_dot *d, int width) {
  lw_acc_slot s;
  for (int i = 0; i < d->n_chains; i++)
    s.p[i] = lw_local(d->f, acc_type(d, width), "acc");
  s.width = width;
  return s;
}

void lw_acc_set(lw_dot *d, const lw_acc_slot *s, lw_acc a) {
  for (int i = 0; i < d->n_chains; i++)
    LLVMBuildStore(d->f->b, a.v[i], s->p[i]);
}

lw_acc lw_acc_get(lw_dot *d, const lw_acc_slot *s) {
  lw_acc a;
  for (int i = 0; i < d->n_chains; i++)
    a.v[i] = LLVMBuildLoad2(d->f->b, acc_type(d, s->width), s->p[i], "");
  return a;
}

void lw_acc_clear(lw_dot *d, const lw_acc_slot *s) {
  lw_acc_set(d, s, acc_zero(d, s->width));
}

/* total = first ? block : total + block. first NULL: never the first. */
void lw_acc_add_block(lw_dot *d, const lw_acc_slot *total, lw_acc block,
                      LLVMValueRef first) {
  lw_acc sum = acc_plus(d, lw_acc_get(d, total), block);
  if (first) sum = acc_select(d, first, block, sum);
  lw_acc_set(d, total, sum);
}

/* ---- results ---- */

/* Rounds once to the result type and stores width elements at p. */
void lw_dot_store(lw_dot *d, lw_acc a, LLVMValueRef p, int width,
                  LLVMValueRef mask) {
  lw_fn *f = d->f;
  int old = lw_width(f, width);
  lw_prim t = d->result;
  lw_cgval v = {.re = a.v[0], .type = d->acc};
  if (d->n_chains == 4) {
    v.re = LLVMBuildFSub(f->b, a.v[0], a.v[1], "");
    v.im = LLVMBuildFAdd(f->b, a.v[2], a.v[3], "");
    v.type = d->acc == LW_F32 ? LW_C64 : LW_C128;
  }
  if (v.type == t && t == LW_PRED)
    v.re = LLVMBuildTrunc(f->b, v.re, lw_vec_type(f->em->i1, width), "");
  if (v.type != t) {
    lw_elem_op op = {
        .op = LW_OP_CONVERT, .in = {v.type}, .out = t, .canonical_nan = true};
    v = lw_mathgen_elem(&f->g, &op, v, v, v);
  } else if (f->canonical &&
             (lw_prim_is_float(t) || lw_prim_is_complex(t))) {
    v = lw_mathgen_canonical(&f->g, v);
  }
  lw_store(f, v, p, width, mask);
  lw_width(f, old);
}

LLVMValueRef lw_dot_out(lw_dot *d, LLVMValueRef element) {
  return lw_at(d->f, d->dest, element, lw_prim_bytes(d->result));
}

/* ---- addressing ---- */

static LLVMValueRef mul_c(lw_fn *f, LLVMValueRef v, int64_t c) {
  if (c == 1) return v;
  LLVMTypeRef t = LLVMTypeOf(v);
  LLVMValueRef k = LLVMConstInt(f->em->i64, (unsigned long long)c, 1);
  if (LLVMGetTypeKind(t) == LLVMVectorTypeKind)
    k = lw_splat(f, k, (int)LLVMGetVectorSize(t));
  return LLVMBuildMul(f->b, v, k, "");
}

/* Element offset of linear position lin (i64, or a vector of them) of an axis.
 */
static LLVMValueRef axis_offset(lw_fn *f, const lw_axis *a, LLVMValueRef lin) {
  if (a->n == 0) return LLVMConstNull(LLVMTypeOf(lin));
  LLVMValueRef sum = NULL;
  for (int32_t i = a->n - 1; i >= 0; i--) {
    LLVMValueRef digit = lin;
    if (i > 0) {
      LLVMValueRef e = lw_i64(f, a->extent[i]);
      if (LLVMGetTypeKind(LLVMTypeOf(lin)) == LLVMVectorTypeKind)
        e = lw_splat(f, e, (int)LLVMGetVectorSize(LLVMTypeOf(lin)));
      digit = LLVMBuildURem(f->b, lin, e, "");
      lin = LLVMBuildUDiv(f->b, lin, e, "");
    }
    LLVMValueRef o = mul_c(f, digit, a->stride[i]);
    sum = sum ? LLVMBuildAdd(f->b, sum, o, "") : o;
  }
  return sum;
}

static LLVMValueRef add(lw_fn *f, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildAdd(f->b, a, b, "");
}

/* width elements of operand s: fixed element offset plus positions lin, lin+1,
 * ... of the axis that runs along the lanes. */
static lw_operand load_lanes(lw_dot *d, int s, LLVMValueRef fixed,
                             const lw_axis *along, LLVMValueRef lin, int width,
                             LLVMValueRef mask) {
  lw_fn *f = d->f;
  int64_t stride, bytes = lw_prim_bytes(d->type[s]);
  if (!d->base[s]) { /* a scalar in registers: broadcast */
    lw_operand o = lw_dot_operand(d, d->type[s], d->scalar[s], 1);
    o.re = lw_splat(f, o.re, width);
    if (o.im) o.im = lw_splat(f, o.im, width);
    return o;
  }
  int old = lw_width(f, width);
  lw_cgval v;
  if (lw_axis_is_linear(along, &stride) && (stride == 1 || width == 1)) {
    LLVMValueRef at = add(f, fixed, axis_offset(f, along, lin));
    v = lw_load(f, d->type[s], lw_at(f, d->base[s], at, bytes), width, mask);
  } else {
    LLVMValueRef lanes =
        add(f, lw_splat(f, lin, width), lw_lanes(f, f->em->i64, width));
    if (mask) /* lanes that do not count may not leave the axis either */
      lanes = LLVMBuildSelect(f->b, mask, lanes,
                              LLVMConstNull(LLVMTypeOf(lanes)), "");
    LLVMValueRef at =
        add(f, lw_splat(f, fixed, width), axis_offset(f, along, lanes));
    v = lw_load_gather(f, d->type[s], d->base[s], at, width, mask);
  }
  lw_operand o = lw_dot_operand(d, d->type[s], v, width);
  lw_width(f, old);
  return o;
}

static lw_operand load_splat(lw_dot *d, int s, LLVMValueRef at, int width) {
  static const lw_axis point = {.total = 1};
  lw_operand o = load_lanes(d, s, at, &point, lw_i64(d->f, 0), 1, NULL);
  if (width > 1) {
    o.re = lw_splat(d->f, o.re, width);
    if (o.im) o.im = lw_splat(d->f, o.im, width);
  }
  return o;
}

/* ---- blocks of the contracting index ----
 * body(d, k0, length, first) is emitted once for all full blocks, in a loop,
 * and once for the short last one: length is a constant either way. */

typedef void (*block_fn)(lw_dot *d, void *ctx, LLVMValueRef k0, int64_t length,
                         LLVMValueRef first);

static void each_block(lw_dot *d, block_fn body, void *ctx) {
  lw_fn *f = d->f;
  int64_t k = d->plan.fold.k, full = k / BLOCK, rest = k % BLOCK;
  LLVMValueRef yes = LLVMConstInt(f->em->i1, 1, 0),
               no = LLVMConstNull(f->em->i1);
  if (full == 1) body(d, ctx, lw_i64(f, 0), BLOCK, yes);
  if (full > 1) {
    lw_loop l =
        lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, full * BLOCK), BLOCK, "block");
    body(d, ctx, l.iv, BLOCK,
         LLVMBuildICmp(f->b, LLVMIntEQ, l.iv, lw_i64(f, 0), ""));
    lw_loop_end(f, &l);
  }
  if (rest) body(d, ctx, lw_i64(f, full * BLOCK), rest, full ? no : yes);
}

/* ---- chunks: what a road computes at once ---- */

typedef struct {
  LLVMValueRef lhs0, rhs0; /* element offsets of batch and row (or column) */
  LLVMValueRef lin;        /* position along the lanes' axis */
  LLVMValueRef mask;
  int width;
  lw_acc_slot total, part[LANES];
} chunk;

/* Lanes along n, one chain. */
static void chain_block(lw_dot *d, void *ctx, LLVMValueRef k0, int64_t length,
                        LLVMValueRef first) {
  chunk *c = ctx;
  lw_fn *f = d->f;
  lw_acc_clear(d, &c->part[0]);
  lw_loop l = lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, length), 1, "k");
  LLVMValueRef k = add(f, k0, l.iv);
  LLVMValueRef ka = add(f, c->lhs0, axis_offset(f, &d->plan.lhs_k, k));
  LLVMValueRef kb = add(f, c->rhs0, axis_offset(f, &d->plan.rhs_k, k));
  lw_operand a = load_splat(d, 0, ka, c->width);
  lw_operand b =
      load_lanes(d, 1, kb, &d->plan.rhs_n, c->lin, c->width, c->mask);
  lw_acc_set(d, &c->part[0], lw_acc_madd(d, a, b, lw_acc_get(d, &c->part[0])));
  lw_loop_end(f, &l);
  lw_acc_add_block(d, &c->total, lw_acc_get(d, &c->part[0]), first);
}

/* One step of the skinny roads: k position of lane l. Lanes along n or m. */
static void skinny_step(lw_dot *d, chunk *c, LLVMValueRef k, int lane) {
  lw_fn *f = d->f;
  LLVMValueRef ka = add(f, c->lhs0, axis_offset(f, &d->plan.lhs_k, k));
  LLVMValueRef kb = add(f, c->rhs0, axis_offset(f, &d->plan.rhs_k, k));
  lw_operand a, b;
  if (d->plan.road == LW_DOT_SKINNY_M) {
    a = load_lanes(d, 0, ka, &d->plan.lhs_m, c->lin, c->width, c->mask);
    b = load_splat(d, 1, kb, c->width);
  } else {
    a = load_splat(d, 0, ka, c->width);
    b = load_lanes(d, 1, kb, &d->plan.rhs_n, c->lin, c->width, c->mask);
  }
  lw_acc s = lw_acc_get(d, &c->part[lane]);
  lw_acc_set(d, &c->part[lane], lw_acc_madd(d, a, b, s));
}

/* The 16 lanes of a block are 16 accumulators. */
static void skinny_block(lw_dot *d, void *ctx, LLVMValueRef k0, int64_t length,
                         LLVMValueRef first) {
  chunk *c = ctx;
  lw_fn *f = d->f;
  int64_t lanes = length < LANES ? length : LANES, whole = length / LANES;
  for (int i = 0; i < lanes; i++) lw_acc_clear(d, &c->part[i]);
  if (whole) {
    lw_loop l =
        lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, whole * LANES), LANES, "k");
    for (int i = 0; i < LANES; i++)
      skinny_step(d, c, add(f, k0, add(f, l.iv, lw_i64(f, i))), i);
    lw_loop_end(f, &l);
  }
  for (int i = 0; i < length % LANES; i++)
    skinny_step(d, c, add(f, k0, lw_i64(f, whole * LANES + i)), i);
  lw_acc v[LANES];
  for (int i = 0; i < lanes; i++) v[i] = lw_acc_get(d, &c->part[i]);
  for (int w = LANES / 2; w; w /= 2)
    for (int i = 0; i < w && i + w < lanes; i++)
      v[i] = acc_plus(d, v[i], v[i + w]);
  lw_acc_add_block(d, &c->total, v[0], first);
}

/* ---- lanes along k: the 16 lanes are one vector ---- */

static LLVMValueRef const_mask(lw_fn *f, int64_t n, int width) {
  LLVMValueRef bits[64];
  for (int i = 0; i < width; i++) bits[i] = LLVMConstInt(f->em->i1, i < n, 0);
  return LLVMConstVector(bits, (unsigned)width);
}

/* v[l] += v[l+w] for the lanes that exist; the sum ends in lane 0. */
static LLVMValueRef tree(lw_dot *d, LLVMValueRef v, int64_t lanes) {
  lw_fn *f = d->f;
  for (int w = LANES / 2; w; w /= 2) {
    if (w >= lanes) continue;
    LLVMValueRef order[LANES];
    for (int i = 0; i < LANES; i++)
      order[i] = LLVMConstInt(f->em->i32, (unsigned)((i + w) % LANES), 0);
    LLVMValueRef up =
        LLVMBuildShuffleVector(f->b, v, LLVMGetPoison(LLVMTypeOf(v)),
                               LLVMConstVector(order, LANES), "");
    int64_t pairs = lanes - w < w ? lanes - w : w;
    v = LLVMBuildSelect(f->b, const_mask(f, pairs, LANES), plus(d, v, up), v,
                        "");
    lanes = w;
  }
  return LLVMBuildExtractElement(f->b, v, lw_i64(f, 0), "");
}

static void k_step(lw_dot *d, chunk *c, LLVMValueRef k, int64_t live) {
  lw_fn *f = d->f;
  LLVMValueRef mask = live < LANES ? const_mask(f, live, LANES) : NULL;
  lw_operand a = load_lanes(d, 0, c->lhs0, &d->plan.lhs_k, k, LANES, mask);
  lw_operand b = load_lanes(d, 1, c->rhs0, &d->plan.rhs_k, k, LANES, mask);
  lw_acc old = lw_acc_get(d, &c->part[0]), s = lw_acc_madd(d, a, b, old);
  lw_acc_set(d, &c->part[0], mask ? acc_select(d, mask, s, old) : s);
}

static void k_block(lw_dot *d, void *ctx, LLVMValueRef k0, int64_t length,
                    LLVMValueRef first) {
  chunk *c = ctx;
  lw_fn *f = d->f;
  int64_t whole = length / LANES * LANES;
  lw_acc_clear(d, &c->part[0]);
  if (whole) {
    lw_loop l = lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, whole), LANES, "k");
    k_step(d, c, add(f, k0, l.iv), LANES);
    lw_loop_end(f, &l);
  }
  if (length > whole)
    k_step(d, c, add(f, k0, lw_i64(f, whole)), length - whole);
  lw_acc v = lw_acc_get(d, &c->part[0]), sum;
  for (int i = 0; i < d->n_chains; i++)
    sum.v[i] = tree(d, v.v[i], length < LANES ? length : LANES);
  lw_acc_add_block(d, &c->total, sum, first);
}

/* ---- roads over rows ---- */

static chunk chunk_new(lw_dot *d, int width, int parts) {
  chunk c = {.width = width};
  int total_width = d->plan.road == LW_DOT_SKINNY_K ? 1 : width;
  c.total = lw_acc_slot_new(d, total_width);
  for (int i = 0; i < parts; i++) c.part[i] = lw_acc_slot_new(d, width);
  return c;
}

static lw_acc run_blocks(lw_dot *d, chunk *c, block_fn body) {
  lw_acc_clear(d, &c->total); /* K = 0 gives 0 */
  each_block(d, body, c);
  return lw_acc_get(d, &c->total);
}

/* Rows [row0, row1), and in each all columns, width at a time. */
static void rows_by_columns(lw_dot *d, block_fn body, int parts) {
  lw_fn *f = d->f;
  int64_t n = d->plan.fold.n, m = d->plan.fold.m;
  int width = d->width;
  while (width > 1 && width / 2 >= n) width /= 2;
  chunk c = chunk_new(d, width, parts);
  lw_loop row = lw_loop_begin(f, d->row0, d->row1, 1, "row");
  LLVMValueRef batch = LLVMBuildUDiv(f->b, row.iv, lw_i64(f, m), "");
  LLVMValueRef r = LLVMBuildURem(f->b, row.iv, lw_i64(f, m), "");
  c.lhs0 = add(f, axis_offset(f, &d->plan.lhs_batch, batch),
               axis_offset(f, &d->plan.lhs_m, r));
  c.rhs0 = axis_offset(f, &d->plan.rhs_batch, batch);
  LLVMValueRef out = mul_c(f, row.iv, n);
  int64_t whole = n / width * width;
  if (whole) {
    lw_loop l = lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, whole), width, "col");
    c.lin = l.iv;
    c.mask = NULL;
    lw_acc a = run_blocks(d, &c, body);
    lw_dot_store(d, a, lw_dot_out(d, add(f, out, l.iv)), width, NULL);
    lw_loop_end(f, &l);
  }
  if (whole < n) {
    c.lin = lw_i64(f, whole);
    c.mask = const_mask(f, n - whole, width);
    lw_acc a = run_blocks(d, &c, body);
    lw_dot_store(d, a, lw_dot_out(d, add(f, out, c.lin)), width, c.mask);
  }
  lw_loop_end(f, &row);
}

/* One element at a time, the lanes run along k. */
static void elements(lw_dot *d) {
  lw_fn *f = d->f;
  int64_t n = d->plan.fold.n, m = d->plan.fold.m;
  chunk c = chunk_new(d, LANES, 1);
  lw_loop row = lw_loop_begin(f, d->row0, d->row1, 1, "row");
  LLVMValueRef batch = LLVMBuildUDiv(f->b, row.iv, lw_i64(f, m), "");
  LLVMValueRef r = LLVMBuildURem(f->b, row.iv, lw_i64(f, m), "");
  c.lhs0 = add(f, axis_offset(f, &d->plan.lhs_batch, batch),
               axis_offset(f, &d->plan.lhs_m, r));
  LLVMValueRef rhs0 = axis_offset(f, &d->plan.rhs_batch, batch);
  lw_loop col = lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, n), 1, "col");
  c.rhs0 = add(f, rhs0, axis_offset(f, &d->plan.rhs_n, col.iv));
  lw_acc a = run_blocks(d, &c, k_block);
  lw_dot_store(d, a, lw_dot_out(d, add(f, mul_c(f, row.iv, n), col.iv)), 1,
               NULL);
  lw_loop_end(f, &col);
  lw_loop_end(f, &row);
}

/* Batches that the rows [row0, row1) touch; in each its rows [*lo, *hi). */
static lw_loop batches_begin(lw_dot *d, LLVMValueRef *lo, LLVMValueRef *hi) {
  lw_fn *f = d->f;
  LLVMValueRef m = lw_i64(f, d->plan.fold.m);
  LLVMValueRef last = LLVMBuildSub(f->b, d->row1, lw_i64(f, 1), "");
  LLVMValueRef end = add(f, LLVMBuildUDiv(f->b, last, m, ""), lw_i64(f, 1));
  lw_loop l =
      lw_loop_begin(f, LLVMBuildUDiv(f->b, d->row0, m, ""), end, 1, "batch");
  LLVMValueRef from = LLVMBuildMul(f->b, l.iv, m, "");
  *lo = lw_min_max(f, "llvm.smax", LLVMBuildSub(f->b, d->row0, from, ""),
                   lw_i64(f, 0));
  *hi = lw_min_max(f, "llvm.smin", LLVMBuildSub(f->b, d->row1, from, ""), m);
  return l;
}

/* mask of lanes with lin + lane < end */
static LLVMValueRef below_mask(lw_fn *f, LLVMValueRef lin, LLVMValueRef end,
                               int width) {
  LLVMValueRef left = lw_splat(f, LLVMBuildSub(f->b, end, lin, ""), width);
  return LLVMBuildICmp(f->b, LLVMIntSLT, lw_lanes(f, f->em->i64, width), left,
                       "");
}

/* Lanes run along the rows; the columns are few. */
static void columns_by_rows(lw_dot *d) {
  lw_fn *f = d->f;
  int64_t n = d->plan.fold.n;
  int width = d->width;
  chunk c = chunk_new(d, width, LANES);
  LLVMValueRef lo, hi;
  lw_loop batch = batches_begin(d, &lo, &hi);
  c.lhs0 = axis_offset(f, &d->plan.lhs_batch, batch.iv);
  LLVMValueRef rhs0 = axis_offset(f, &d->plan.rhs_batch, batch.iv);
  LLVMValueRef row0 = mul_c(f, batch.iv, d->plan.fold.m);
  lw_loop row = lw_loop_begin(f, lo, hi, width, "rows");
  c.lin = row.iv;
  c.mask = below_mask(f, row.iv, hi, width);
  lw_loop col = lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, n), 1, "col");
  c.rhs0 = add(f, rhs0, axis_offset(f, &d->plan.rhs_n, col.iv));
  lw_acc a = run_blocks(d, &c, skinny_block);
  LLVMValueRef first = add(f, mul_c(f, add(f, row0, row.iv), n), col.iv);
  lw_dot_store_strided(d, a, first, n, width, c.mask);
  lw_loop_end(f, &col);
  lw_loop_end(f, &row);
  lw_loop_end(f, &batch);
}

/* Lanes n elements apart in the result. */
void lw_dot_store_strided(lw_dot *d, lw_acc a, LLVMValueRef first,
                          int64_t stride, int width, LLVMValueRef mask) {
  lw_fn *f = d->f;
  if (stride == 1) {
    lw_dot_store(d, a, lw_dot_out(d, first), width, mask);
    return;
  }
  for (int i = 0; i < width; i++) {
    LLVMValueRef at = lw_i64(f, i);
    lw_if branch = lw_if_begin(f, LLVMBuildExtractElement(f->b, mask, at, ""));
    lw_acc one;
    for (int j = 0; j < d->n_chains; j++)
      one.v[j] = LLVMBuildExtractElement(f->b, a.v[j], at, "");
    lw_dot_store(d, one, lw_dot_out(d, add(f, first, lw_i64(f, i * stride))), 1,
                 NULL);
    lw_if_end(f, &branch);
  }
}

/* ---- packed ---- */

/* A block of the lhs: row r, position k at [r * 256 + k]. A panel of the rhs:
 * register-tile columns together, position k at [panel * 256 + k * tile]. */
typedef struct {
  LLVMValueRef a, b, c; /* the three work areas */
  int tile_rows, tile_vecs, tile_cols, width;
  LLVMValueRef m0, rows, n0, cols, k0, kc; /* of the block at hand, i64 */
  LLVMValueRef lhs0, rhs0;
} packed;

static LLVMValueRef work_at(lw_dot *d, LLVMValueRef base, LLVMValueRef index) {
  return lw_at(d->f, base, index, lw_prim_bytes(d->acc));
}

static void work_store(lw_dot *d, LLVMValueRef v, LLVMValueRef p) {
  LLVMSetAlignment(LLVMBuildStore(d->f->b, v, p),
                   (unsigned)lw_prim_bytes(d->acc));
}

static LLVMValueRef work_load(lw_dot *d, LLVMValueRef p, int width) {
  LLVMValueRef v = LLVMBuildLoad2(d->f->b, acc_type(d, width), p, "");
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
  LLVMValueRef row = axis_offset(f, &d->plan.lhs_m, add(f, p->m0, r.iv));
  LLVMValueRef fixed = add(f, p->lhs0, row), to = mul_c(f, r.iv, BLOCK);
  lw_loop k = lw_loop_begin(f, lw_i64(f, 0), p->kc, p->width, "pak");
  LLVMValueRef mask = below_mask(f, k.iv, p->kc, p->width);
  lw_operand v = load_lanes(d, 0, fixed, &d->plan.lhs_k, add(f, p->k0, k.iv),
                            p->width, mask);
  work_store(d, v.re, work_at(d, p->a, add(f, to, k.iv)));
  lw_loop_end(f, &k);
  lw_loop_end(f, &r);
}

/* ... when they are contiguous along m: width x width blocks, transposed. */
static void pack_a_blocks(lw_dot *d, packed *p) {
  lw_fn *f = d->f;
  int w = p->width;
  LLVMValueRef v[64];
  lw_loop r = lw_loop_begin(f, lw_i64(f, 0), p->rows, w, "pa");
  LLVMValueRef mask = below_mask(f, r.iv, p->rows, w);
  lw_loop k = lw_loop_begin(f, lw_i64(f, 0), p->kc, w, "pak");
  for (int i = 0; i < w; i++) {
    LLVMValueRef at = clamp_below(f, add(f, p->k0, add(f, k.iv, lw_i64(f, i))),
                                  d->plan.fold.k);
    LLVMValueRef fixed = add(f, p->lhs0, axis_offset(f, &d->plan.lhs_k, at));
    v[i] = load_lanes(d, 0, fixed, &d->plan.lhs_m, add(f, p->m0, r.iv), w, mask)
               .re;
  }
  transpose(f, v, w);
  for (int i = 0; i < w; i++) {
    LLVMValueRef to = add(f, mul_c(f, add(f, r.iv, lw_i64(f, i)), BLOCK), k.iv);
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
  LLVMValueRef fixed =
      add(f, p->rhs0, axis_offset(f, &d->plan.rhs_k, add(f, p->k0, k.iv)));
  LLVMValueRef to = add(f, mul_c(f, j.iv, BLOCK), mul_c(f, k.iv, p->tile_cols));
  for (int i = 0; i < p->tile_vecs; i++) {
    LLVMValueRef off = lw_i64(f, (int64_t)i * p->width);
    LLVMValueRef n = add(f, p->n0, add(f, j.iv, off));
    LLVMValueRef mask = below_mask(f, n, n_end, p->width);
    lw_operand v = load_lanes(d, 1, fixed, &d->plan.rhs_n, n, p->width, mask);
    work_store(d, v.re, work_at(d, p->b, add(f, to, off)));
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
  LLVMValueRef mask = below_mask(f, k.iv, p->kc, w);
  for (int l = 0; l < w; l++) {
    LLVMValueRef n = add(f, p->n0, add(f, j.iv, add(f, i.iv, lw_i64(f, l))));
    LLVMValueRef col =
        axis_offset(f, &d->plan.rhs_n, clamp_below(f, n, d->plan.fold.n));
    v[l] = load_lanes(d, 1, add(f, p->rhs0, col), &d->plan.rhs_k,
                      add(f, p->k0, k.iv), w, mask)
               .re;
  }
  transpose(f, v, w);
  for (int l = 0; l < w; l++) { /* rows past kc are inside the panel: unread */
    LLVMValueRef kk = mul_c(f, add(f, k.iv, lw_i64(f, l)), p->tile_cols);
    work_store(
        d, v[l],
        work_at(d, p->b, add(f, add(f, mul_c(f, j.iv, BLOCK), kk), i.iv)));
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
      acc[r][v] = lw_local(f, acc_type(d, p->width), "t");
      LLVMBuildStore(f->b, LLVMConstNull(acc_type(d, p->width)), acc[r][v]);
    }
  LLVMValueRef a0 = mul_c(f, i, BLOCK), b0 = mul_c(f, j, BLOCK);
  lw_loop k = lw_loop_begin(f, lw_i64(f, 0), p->kc, 1, "kk");
  LLVMValueRef b[3], at = add(f, b0, mul_c(f, k.iv, p->tile_cols));
  for (int v = 0; v < p->tile_vecs; v++)
    b[v] = work_load(
        d, work_at(d, p->b, add(f, at, lw_i64(f, (int64_t)v * p->width))),
        p->width);
  for (int r = 0; r < p->tile_rows; r++) {
    LLVMValueRef ra = add(f, add(f, a0, lw_i64(f, (int64_t)r * BLOCK)), k.iv);
    LLVMValueRef a =
        lw_splat(f, work_load(d, work_at(d, p->a, ra), 1), p->width);
    for (int v = 0; v < p->tile_vecs; v++) {
      LLVMValueRef s =
          LLVMBuildLoad2(f->b, acc_type(d, p->width), acc[r][v], "");
      LLVMBuildStore(f->b, madd(d, a, b[v], s), acc[r][v]);
    }
  }
  lw_loop_end(f, &k);
  for (int r = 0; r < p->tile_rows; r++)
    for (int v = 0; v < p->tile_vecs; v++) {
      LLVMValueRef row = mul_c(f, add(f, i, lw_i64(f, r)), d->plan.cols);
      LLVMValueRef to = work_at(
          d, p->c, add(f, row, add(f, j, lw_i64(f, (int64_t)v * p->width))));
      LLVMValueRef s =
          LLVMBuildLoad2(f->b, acc_type(d, p->width), acc[r][v], "");
      LLVMValueRef old = work_load(d, to, p->width);
      work_store(d, LLVMBuildSelect(f->b, first, s, plus(d, old, s), ""), to);
    }
}

static void write_out(lw_dot *d, packed *p, LLVMValueRef batch) {
  lw_fn *f = d->f;
  lw_loop r = lw_loop_begin(f, lw_i64(f, 0), p->rows, 1, "wr");
  LLVMValueRef row =
      add(f, mul_c(f, batch, d->plan.fold.m), add(f, p->m0, r.iv));
  LLVMValueRef out = add(f, mul_c(f, row, d->plan.fold.n), p->n0);
  lw_loop c = lw_loop_begin(f, lw_i64(f, 0), p->cols, p->width, "wc");
  LLVMValueRef from = add(f, mul_c(f, r.iv, d->plan.cols), c.iv);
  lw_acc a = {{work_load(d, work_at(d, p->c, from), p->width)}};
  LLVMValueRef mask = below_mask(f, c.iv, p->cols, p->width);
  lw_dot_store(d, a, lw_dot_out(d, add(f, out, c.iv)), p->width, mask);
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

static void pack(lw_dot *d, packed *p) {
  if (!contiguous(&d->plan.lhs_k) && contiguous(&d->plan.lhs_m))
    pack_a_blocks(d, p);
  else
    pack_a_rows(d, p);
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
  p.a = lw_at(f, f->scratch, lw_i64(f, d->work_offset), 1);
  p.b = lw_at(f, p.a, lw_i64(f, size * LW_DOT_ROWS * BLOCK), 1);
  p.c = lw_at(f, p.b, lw_i64(f, size * BLOCK * d->plan.cols), 1);
  return p;
}

static void packed_dot(lw_dot *d) {
  lw_fn *f = d->f;
  packed p = packed_new(d);
  LLVMValueRef lo, hi, zero = lw_i64(f, 0);
  lw_loop batch = batches_begin(d, &lo, &hi);
  p.lhs0 = axis_offset(f, &d->plan.lhs_batch, batch.iv);
  p.rhs0 = axis_offset(f, &d->plan.rhs_batch, batch.iv);
  lw_loop m = blocks_begin(f, lo, hi, LW_DOT_ROWS, &p.rows, "m0");
  p.m0 = m.iv;
  lw_loop n = blocks_begin(f, zero, lw_i64(f, d->plan.fold.n), d->plan.cols,
                           &p.cols, "n0");
  p.n0 = n.iv;
  lw_loop k =
      blocks_begin(f, zero, lw_i64(f, d->plan.fold.k), BLOCK, &p.kc, "k0");
  p.k0 = k.iv;
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

/* ---- entry ---- */

lw_status lw_emit_dot_stage(lw_fn *f, const lw_stage *s) {
  lw_dot d = {.f = f, .plan = lw_dot_plan_of(s->inst)};
  d.acc = d.plan.fold.accumulator;
  d.result = s->inst->shape->type;
  d.n_chains = d.plan.complex ? 4 : 1;
  d.work_offset = s->work_offset;
  d.width = f->em->vec_bytes / lw_prim_bytes(d.acc);
  if (d.width > 32) d.width = 32;
  for (int i = 0; i < 2; i++) {
    lw_value v = lw_value_operand(s->inst, i);
    d.type[i] = lw_value_shape(v)->type;
    d.base[i] = lw_array_base(f, v);
    if (!d.base[i]) d.scalar[i] = lw_emit_value(f, v, NULL).v;
  }
  d.dest = lw_dest_base(f, s, 0);
  /* a point is one row (a batch's row of the lhs) or several */
  int64_t rows = d.plan.fold.batch * d.plan.fold.m;
  int64_t per_point = f->phase->n_points ? rows / f->phase->n_points : 0;
  d.row0 = mul_c(f, f->p0, per_point);
  d.row1 = mul_c(f, f->p1, per_point);
  if (s->inst->shape->elements == 0) return f->error;
  switch (d.plan.road) {
    case LW_DOT_CHAIN:
      rows_by_columns(&d, chain_block, 1);
      break;
    case LW_DOT_PACKED:
      packed_dot(&d);
      break;
    case LW_DOT_SKINNY_K:
      elements(&d);
      break;
    case LW_DOT_SKINNY_M:
      columns_by_rows(&d);
      break;
    case LW_DOT_SKINNY_N:
      rows_by_columns(&d, skinny_block, LANES);
      break;
  }
  return f->error;
}
