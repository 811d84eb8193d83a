/* Dots (docs/numerics.md 7).
 *
 * The contracting index runs in blocks of 256; a block is one chain of fused
 * multiply-adds from +0 and block sums are added in order (skinny dots: 16
 * lanes a block and a fixed tree). Large dots take the packed road
 * (dot_packed.c). Small ones skip the packing; skinny ones put their lanes
 * where memory is contiguous. Every road performs the same operations on each
 * element: only the order in which elements are visited differs.
 *
 * Integers accumulate in the result type with multiply and add. A complex
 * product is four real chains (re re, im im, re im, im re) that are combined at
 * the end.
 */
#include "codegen/llvm/dot.h"

#include <string.h>

enum { BLOCK = LW_FOLD_DOT_BLOCK, LANES = LW_FOLD_SKINNY_LANES };

/* ---- accumulators ---- */

LLVMTypeRef lw_dot_acc_type(lw_dot *d, int width) {
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
  LLVMTypeRef to = lw_dot_acc_type(d, width);
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
    o.im = v.im ? to_acc(d, t, v, v.im, width)
                : LLVMConstNull(lw_dot_acc_type(d, width));
  return o;
}

static lw_acc acc_zero(lw_dot *d, int width) {
  lw_acc a;
  for (int i = 0; i < d->n_chains; i++)
    a.v[i] = LLVMConstNull(lw_dot_acc_type(d, width));
  return a;
}

LLVMValueRef lw_dot_madd(lw_dot *d, LLVMValueRef a, LLVMValueRef b,
                         LLVMValueRef s) {
  lw_fn *f = d->f;
  if (!acc_is_float(d)) {
    LLVMValueRef v = d->acc == LW_PRED ? LLVMBuildAnd(f->b, a, b, "")
                                       : LLVMBuildMul(f->b, a, b, "");
    return lw_dot_plus(d, v, s);
  }
  if (f->g.fault == LW_FAULT_DOT_PRODUCT)
    return LLVMBuildFAdd(f->b, LLVMBuildFMul(f->b, a, b, ""), s, "");
  LLVMTypeRef t = LLVMTypeOf(s);
  return lw_intrinsic(f, "llvm.fma", &t, 1, (LLVMValueRef[]){a, b, s}, 3);
}

LLVMValueRef lw_dot_plus(lw_dot *d, LLVMValueRef a, LLVMValueRef b) {
  if (acc_is_float(d)) return LLVMBuildFAdd(d->f->b, a, b, "");
  return d->acc == LW_PRED ? LLVMBuildOr(d->f->b, a, b, "")
                           : LLVMBuildAdd(d->f->b, a, b, "");
}

lw_acc lw_acc_madd(lw_dot *d, lw_operand a, lw_operand b, lw_acc s) {
  if (d->n_chains == 1) return (lw_acc){{lw_dot_madd(d, a.re, b.re, s.v[0])}};
  return (lw_acc){
      {lw_dot_madd(d, a.re, b.re, s.v[0]), lw_dot_madd(d, a.im, b.im, s.v[1]),
       lw_dot_madd(d, a.re, b.im, s.v[2]), lw_dot_madd(d, a.im, b.re, s.v[3])}};
}

static lw_acc acc_plus(lw_dot *d, lw_acc a, lw_acc b) {
  for (int i = 0; i < d->n_chains; i++) a.v[i] = lw_dot_plus(d, a.v[i], b.v[i]);
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
    s.p[i] = lw_local(d->f, lw_dot_acc_type(d, width), "acc");
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
    a.v[i] = LLVMBuildLoad2(d->f->b, lw_dot_acc_type(d, s->width), s->p[i], "");
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
  } else if (f->canonical && (lw_prim_is_float(t) || lw_prim_is_complex(t))) {
    v = lw_mathgen_canonical(&f->g, v);
  }
  lw_store(f, v, p, width, mask);
  lw_width(f, old);
}

LLVMValueRef lw_dot_out(lw_dot *d, LLVMValueRef element) {
  return lw_at(d->f, d->dest, element, lw_prim_bytes(d->result));
}

/* ---- addressing ---- */

LLVMValueRef lw_axis_offset(lw_fn *f, const lw_axis *a, LLVMValueRef lin) {
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
    LLVMValueRef o = lw_mul_const(f, digit, a->stride[i]);
    sum = sum ? LLVMBuildAdd(f->b, sum, o, "") : o;
  }
  return sum;
}

lw_operand lw_dot_lanes(lw_dot *d, int s, LLVMValueRef fixed,
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
    LLVMValueRef at = lw_add(f, fixed, lw_axis_offset(f, along, lin));
    v = lw_load(f, d->type[s], lw_at(f, d->base[s], at, bytes), width, mask);
  } else {
    LLVMValueRef lanes =
        lw_add(f, lw_splat(f, lin, width), lw_lanes(f, f->em->i64, width));
    if (mask) /* lanes that do not count may not leave the axis either */
      lanes = LLVMBuildSelect(f->b, mask, lanes,
                              LLVMConstNull(LLVMTypeOf(lanes)), "");
    LLVMValueRef at =
        lw_add(f, lw_splat(f, fixed, width), lw_axis_offset(f, along, lanes));
    v = lw_load_gather(f, d->type[s], d->base[s], at, width, mask);
  }
  lw_operand o = lw_dot_operand(d, d->type[s], v, width);
  lw_width(f, old);
  return o;
}

static lw_operand load_splat(lw_dot *d, int s, LLVMValueRef at, int width) {
  static const lw_axis point = {.total = 1};
  lw_operand o = lw_dot_lanes(d, s, at, &point, lw_i64(d->f, 0), 1, NULL);
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

/* LW_FAULT_DOT_ORDER. */
static void reversed_blocks(lw_dot *d, block_fn body, void *ctx, int64_t full,
                            int64_t rest) {
  lw_fn *f = d->f;
  LLVMValueRef none = LLVMConstInt(f->em->i1, rest == 0, 0);
  if (rest)
    body(d, ctx, lw_i64(f, full * BLOCK), rest, LLVMConstInt(f->em->i1, 1, 0));
  lw_loop l =
      lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, full * BLOCK), BLOCK, "block");
  LLVMValueRef first = LLVMBuildICmp(f->b, LLVMIntEQ, l.iv, lw_i64(f, 0), "");
  body(d, ctx, LLVMBuildSub(f->b, lw_i64(f, (full - 1) * BLOCK), l.iv, ""),
       BLOCK, LLVMBuildAnd(f->b, first, none, ""));
  lw_loop_end(f, &l);
}

static void each_block(lw_dot *d, block_fn body, void *ctx) {
  lw_fn *f = d->f;
  int64_t k = d->plan.fold.k, full = k / BLOCK, rest = k % BLOCK;
  LLVMValueRef yes = LLVMConstInt(f->em->i1, 1, 0),
               no = LLVMConstNull(f->em->i1);
  if (f->g.fault == LW_FAULT_DOT_ORDER && full > 1) {
    reversed_blocks(d, body, ctx, full, rest);
    return;
  }
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
  LLVMValueRef k = lw_add(f, k0, l.iv);
  LLVMValueRef ka = lw_add(f, c->lhs0, lw_axis_offset(f, &d->plan.lhs_k, k));
  LLVMValueRef kb = lw_add(f, c->rhs0, lw_axis_offset(f, &d->plan.rhs_k, k));
  lw_operand a = load_splat(d, 0, ka, c->width);
  lw_operand b =
      lw_dot_lanes(d, 1, kb, &d->plan.rhs_n, c->lin, c->width, c->mask);
  lw_acc_set(d, &c->part[0], lw_acc_madd(d, a, b, lw_acc_get(d, &c->part[0])));
  lw_loop_end(f, &l);
  lw_acc_add_block(d, &c->total, lw_acc_get(d, &c->part[0]), first);
}

/* One step of the skinny roads: k position of lane l. Lanes along n or m. */
static void skinny_step(lw_dot *d, chunk *c, LLVMValueRef k, int lane) {
  lw_fn *f = d->f;
  LLVMValueRef ka = lw_add(f, c->lhs0, lw_axis_offset(f, &d->plan.lhs_k, k));
  LLVMValueRef kb = lw_add(f, c->rhs0, lw_axis_offset(f, &d->plan.rhs_k, k));
  lw_operand a, b;
  if (d->plan.road == LW_DOT_SKINNY_M) {
    a = lw_dot_lanes(d, 0, ka, &d->plan.lhs_m, c->lin, c->width, c->mask);
    b = load_splat(d, 1, kb, c->width);
  } else {
    a = load_splat(d, 0, ka, c->width);
    b = lw_dot_lanes(d, 1, kb, &d->plan.rhs_n, c->lin, c->width, c->mask);
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
      skinny_step(d, c, lw_add(f, k0, lw_add(f, l.iv, lw_i64(f, i))), i);
    lw_loop_end(f, &l);
  }
  for (int i = 0; i < length % LANES; i++)
    skinny_step(d, c, lw_add(f, k0, lw_i64(f, whole * LANES + i)), i);
  lw_acc v[LANES];
  for (int i = 0; i < lanes; i++) v[i] = lw_acc_get(d, &c->part[i]);
  for (int w = LANES / 2; w; w /= 2)
    for (int i = 0; i < w && i + w < lanes; i++)
      v[i] = acc_plus(d, v[i], v[i + w]);
  lw_acc_add_block(d, &c->total, v[0], first);
}

/* ---- lanes along k: the 16 lanes are one vector ---- */

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
    v = LLVMBuildSelect(f->b, lw_mask_first(f, pairs, LANES),
                        lw_dot_plus(d, v, up), v, "");
    lanes = w;
  }
  return LLVMBuildExtractElement(f->b, v, lw_i64(f, 0), "");
}

static void k_step(lw_dot *d, chunk *c, LLVMValueRef k, int64_t live) {
  lw_fn *f = d->f;
  LLVMValueRef mask = live < LANES ? lw_mask_first(f, live, LANES) : NULL;
  lw_operand a = lw_dot_lanes(d, 0, c->lhs0, &d->plan.lhs_k, k, LANES, mask);
  lw_operand b = lw_dot_lanes(d, 1, c->rhs0, &d->plan.rhs_k, k, LANES, mask);
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
    k_step(d, c, lw_add(f, k0, l.iv), LANES);
    lw_loop_end(f, &l);
  }
  if (length > whole)
    k_step(d, c, lw_add(f, k0, lw_i64(f, whole)), length - whole);
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
  c.lhs0 = lw_add(f, lw_axis_offset(f, &d->plan.lhs_batch, batch),
                  lw_axis_offset(f, &d->plan.lhs_m, r));
  c.rhs0 = lw_axis_offset(f, &d->plan.rhs_batch, batch);
  LLVMValueRef out = lw_mul_const(f, row.iv, n);
  int64_t whole = n / width * width;
  if (whole) {
    lw_loop l = lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, whole), width, "col");
    c.lin = l.iv;
    c.mask = NULL;
    lw_acc a = run_blocks(d, &c, body);
    lw_dot_store(d, a, lw_dot_out(d, lw_add(f, out, l.iv)), width, NULL);
    lw_loop_end(f, &l);
  }
  if (whole < n) {
    c.lin = lw_i64(f, whole);
    c.mask = lw_mask_first(f, n - whole, width);
    lw_acc a = run_blocks(d, &c, body);
    lw_dot_store(d, a, lw_dot_out(d, lw_add(f, out, c.lin)), width, c.mask);
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
  c.lhs0 = lw_add(f, lw_axis_offset(f, &d->plan.lhs_batch, batch),
                  lw_axis_offset(f, &d->plan.lhs_m, r));
  LLVMValueRef rhs0 = lw_axis_offset(f, &d->plan.rhs_batch, batch);
  lw_loop col = lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, n), 1, "col");
  c.rhs0 = lw_add(f, rhs0, lw_axis_offset(f, &d->plan.rhs_n, col.iv));
  lw_acc a = run_blocks(d, &c, k_block);
  lw_dot_store(d, a,
               lw_dot_out(d, lw_add(f, lw_mul_const(f, row.iv, n), col.iv)), 1,
               NULL);
  lw_loop_end(f, &col);
  lw_loop_end(f, &row);
}

lw_loop lw_dot_batches(lw_dot *d, LLVMValueRef *lo, LLVMValueRef *hi) {
  lw_fn *f = d->f;
  LLVMValueRef m = lw_i64(f, d->plan.fold.m);
  LLVMValueRef last = LLVMBuildSub(f->b, d->row1, lw_i64(f, 1), "");
  LLVMValueRef end = lw_add(f, LLVMBuildUDiv(f->b, last, m, ""), lw_i64(f, 1));
  lw_loop l =
      lw_loop_begin(f, LLVMBuildUDiv(f->b, d->row0, m, ""), end, 1, "batch");
  LLVMValueRef from = LLVMBuildMul(f->b, l.iv, m, "");
  *lo = lw_min_max(f, "llvm.smax", LLVMBuildSub(f->b, d->row0, from, ""),
                   lw_i64(f, 0));
  *hi = lw_min_max(f, "llvm.smin", LLVMBuildSub(f->b, d->row1, from, ""), m);
  return l;
}

/* Lanes run along the rows; the columns are few. */
static void columns_by_rows(lw_dot *d) {
  lw_fn *f = d->f;
  int64_t n = d->plan.fold.n;
  int width = d->width;
  chunk c = chunk_new(d, width, LANES);
  LLVMValueRef lo, hi;
  lw_loop batch = lw_dot_batches(d, &lo, &hi);
  c.lhs0 = lw_axis_offset(f, &d->plan.lhs_batch, batch.iv);
  LLVMValueRef rhs0 = lw_axis_offset(f, &d->plan.rhs_batch, batch.iv);
  LLVMValueRef row0 = lw_mul_const(f, batch.iv, d->plan.fold.m);
  lw_loop row = lw_loop_begin(f, lo, hi, width, "rows");
  c.lin = row.iv;
  c.mask = lw_mask_below(f, row.iv, hi, width);
  lw_loop col = lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, n), 1, "col");
  c.rhs0 = lw_add(f, rhs0, lw_axis_offset(f, &d->plan.rhs_n, col.iv));
  lw_acc a = run_blocks(d, &c, skinny_block);
  LLVMValueRef first =
      lw_add(f, lw_mul_const(f, lw_add(f, row0, row.iv), n), col.iv);
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
    lw_if branch = {0};
    if (mask)
      branch = lw_if_begin(f, LLVMBuildExtractElement(f->b, mask, at, ""));
    lw_acc one;
    for (int j = 0; j < d->n_chains; j++)
      one.v[j] = LLVMBuildExtractElement(f->b, a.v[j], at, "");
    lw_dot_store(d, one, lw_dot_out(d, lw_add(f, first, lw_i64(f, i * stride))),
                 1, NULL);
    if (mask) lw_if_end(f, &branch);
  }
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
  d.row0 = lw_mul_const(f, f->p0, per_point);
  d.row1 = lw_mul_const(f, f->p1, per_point);
  if (s->inst->shape->elements == 0) return f->error;
  switch (d.plan.road) {
    case LW_DOT_CHAIN:
      rows_by_columns(&d, chain_block, 1);
      break;
    case LW_DOT_PACKED:
      lw_dot_packed(&d);
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
