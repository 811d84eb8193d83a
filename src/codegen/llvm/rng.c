/* rng-bit-generator (docs/numerics.md 9): ThreeFry-2x32-20 and Philox-4x32-10,
 * 16 blocks at a time. Where the words of a block go: src/lib/rng.c, which the
 * interpreter runs. */
#include "codegen/llvm/emit.h"
#include "hlo/fold.h"

enum { W = 16 };

typedef struct {
  lw_fn *f;
  LLVMTypeRef v32, v64;
  LLVMValueRef key0, key1;    /* i32 */
  LLVMValueRef counter, high; /* i64 words of the state */
  LLVMValueRef out;
  lw_prim type; /* unsigned integer of the result's width */
  const lw_shape *shape;
} rng;

static LLVMValueRef add(rng *r, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildAdd(r->f->b, a, b, "");
}
static LLVMValueRef bit_xor(rng *r, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildXor(r->f->b, a, b, "");
}
static LLVMValueRef c32(rng *r, uint32_t v) {
  return lw_splat(r->f, LLVMConstInt(r->f->em->i32, v, 0), W);
}
static LLVMValueRef c64(rng *r, int64_t v) {
  return lw_splat(r->f, lw_i64(r->f, v), W);
}
static LLVMValueRef low(rng *r, LLVMValueRef v) {
  return LLVMBuildTrunc(r->f->b, v, r->v32, "");
}
static LLVMValueRef high(rng *r, LLVMValueRef v) {
  return low(r, LLVMBuildLShr(r->f->b, v, c64(r, 32), ""));
}

static LLVMValueRef rotate(rng *r, LLVMValueRef v, uint32_t by) {
  LLVMValueRef args[3] = {v, v, c32(r, by)};
  return lw_intrinsic(r->f, "llvm.fshl", &r->v32, 1, args, 3);
}

/* Salmon et al. (2011); x[0], x[1] in place. */
static void threefry(rng *r, LLVMValueRef *x) {
  static const uint32_t turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  LLVMValueRef k[3] = {lw_splat(r->f, r->key0, W), lw_splat(r->f, r->key1, W)};
  k[2] = bit_xor(r, bit_xor(r, k[0], k[1]), c32(r, 0x1bd11bda));
  x[0] = add(r, x[0], k[0]);
  x[1] = add(r, x[1], k[1]);
  for (uint32_t i = 0; i < 5; i++) {
    for (int j = 0; j < 4; j++) {
      x[0] = add(r, x[0], x[1]);
      x[1] = bit_xor(r, rotate(r, x[1], turns[i % 2][j]), x[0]);
    }
    x[0] = add(r, x[0], k[(i + 1) % 3]);
    x[1] = add(r, x[1], add(r, k[(i + 2) % 3], c32(r, i + 1)));
  }
}

static LLVMValueRef wide_product(rng *r, LLVMValueRef a, uint32_t m) {
  LLVMValueRef w = LLVMBuildZExt(r->f->b, a, r->v64, "");
  return LLVMBuildMul(r->f->b, w, c64(r, (int64_t)m), "");
}

static void philox(rng *r, LLVMValueRef *x) {
  LLVMValueRef k0 = lw_splat(r->f, r->key0, W), k1 = lw_splat(r->f, r->key1, W);
  for (int i = 0; i < 10; i++) {
    LLVMValueRef p0 = wide_product(r, x[0], 0xd2511f53u);
    LLVMValueRef p1 = wide_product(r, x[2], 0xcd9e8d57u);
    LLVMValueRef y0 = bit_xor(r, bit_xor(r, high(r, p1), x[1]), k0);
    LLVMValueRef y2 = bit_xor(r, bit_xor(r, high(r, p0), x[3]), k1);
    x[1] = low(r, p1);
    x[3] = low(r, p0);
    x[0] = y0;
    x[2] = y2;
    k0 = add(r, k0, c32(r, 0x9e3779b9u));
    k1 = add(r, k1, c32(r, 0xbb67ae85u));
  }
}

/* Word (<W x i32>, or <W x i64>) to elements at[], where mask. */
static void put(rng *r, LLVMValueRef word, LLVMValueRef at, LLVMValueRef mask) {
  lw_fn *f = r->f;
  LLVMTypeRef t = LLVMVectorType(
      LLVMIntTypeInContext(f->em->ctx, lw_prim_bytes(r->type) * 8u), W);
  if (LLVMTypeOf(word) != t) word = LLVMBuildTrunc(f->b, word, t, "");
  lw_cgval v = {.re = word, .type = r->type};
  lw_store_scatter(f, v, r->out, at, W, mask);
}

static LLVMValueRef join(rng *r, LLVMValueRef lo, LLVMValueRef hi) {
  LLVMBuilderRef b = r->f->b;
  LLVMValueRef h =
      LLVMBuildShl(b, LLVMBuildZExt(b, hi, r->v64, ""), c64(r, 32), "");
  return LLVMBuildOr(b, LLVMBuildZExt(b, lo, r->v64, ""), h, "");
}

static LLVMValueRef below(rng *r, LLVMValueRef v, int64_t n) {
  return LLVMBuildICmp(r->f->b, LLVMIntULT, v, c64(r, n), "");
}

static void threefry_block(rng *r, LLVMValueRef block, LLVMValueRef *x) {
  LLVMValueRef at = add(r, lw_splat(r->f, r->counter, W), block);
  x[0] = low(r, at);
  x[1] = high(r, at);
  threefry(r, x);
}

static LLVMValueRef block_lanes(rng *r, LLVMValueRef iv) {
  return add(r, lw_splat(r->f, iv, W), lw_lanes(r->f, r->f->em->i64, W));
}

static int64_t threefry_narrow(rng *r) {
  const lw_shape *s = r->shape;
  LLVMBuilderRef b = r->f->b;
  int32_t dim = lw_threefry_dim(s);
  int64_t extent = s->rank ? s->dims[dim] : 1, half = (extent + 1) / 2;
  int64_t inner = 1, outer = 1;
  for (int32_t d = 0; d < s->rank; d++)
    if (d != dim) *(d < dim ? &outer : &inner) *= s->dims[d];
  int64_t blocks = outer * half * inner;
  lw_loop l =
      lw_loop_begin(r->f, lw_i64(r->f, 0), lw_i64(r->f, blocks), W, "rng");
  LLVMValueRef x[2], lanes = block_lanes(r, l.iv);
  threefry_block(r, lanes, x);
  LLVMValueRef i = LLVMBuildURem(b, lanes, c64(r, inner), "");
  LLVMValueRef t = LLVMBuildUDiv(b, lanes, c64(r, inner), "");
  LLVMValueRef h = LLVMBuildURem(b, t, c64(r, half), "");
  LLVMValueRef o = LLVMBuildUDiv(b, t, c64(r, half), "");
  LLVMValueRef row = LLVMBuildMul(b, h, c64(r, 2), "");
  LLVMValueRef at = add(r, LLVMBuildMul(b, o, c64(r, extent), ""), row);
  at = add(r, LLVMBuildMul(b, at, c64(r, inner), ""), i);
  LLVMValueRef live = below(r, lanes, blocks);
  LLVMValueRef second = below(r, add(r, row, c64(r, 1)), extent);
  put(r, x[0], at, live);
  put(r, x[1], add(r, at, c64(r, inner)), LLVMBuildAnd(b, live, second, ""));
  lw_loop_end(r->f, &l);
  return blocks;
}

static int64_t threefry_wide(rng *r) {
  int64_t n = r->shape->elements;
  lw_loop l = lw_loop_begin(r->f, lw_i64(r->f, 0), lw_i64(r->f, n), W, "rng");
  LLVMValueRef x[2], lanes = block_lanes(r, l.iv);
  threefry_block(r, lanes, x);
  put(r, join(r, x[0], x[1]), lanes, below(r, lanes, n));
  lw_loop_end(r->f, &l);
  return n;
}

/* Blocks of four words; 64-bit elements take two words, low first. */
static int64_t philox_all(rng *r) {
  LLVMBuilderRef b = r->f->b;
  bool wide = lw_prim_bytes(r->type) == 8;
  int64_t n = r->shape->elements, per = wide ? 2 : 4,
          blocks = (n + per - 1) / per;
  lw_loop l =
      lw_loop_begin(r->f, lw_i64(r->f, 0), lw_i64(r->f, blocks), W, "rng");
  LLVMValueRef lanes = block_lanes(r, l.iv), c0 = lw_splat(r->f, r->counter, W);
  LLVMValueRef at = add(r, c0, lanes);
  LLVMValueRef carry =
      LLVMBuildZExt(b, LLVMBuildICmp(b, LLVMIntULT, at, c0, ""), r->v64, "");
  LLVMValueRef top = add(r, lw_splat(r->f, r->high, W), carry);
  LLVMValueRef x[4] = {low(r, at), high(r, at), low(r, top), high(r, top)};
  philox(r, x);
  for (int64_t k = 0; k < per; k++) {
    LLVMValueRef e = add(r, LLVMBuildMul(b, lanes, c64(r, per), ""), c64(r, k));
    LLVMValueRef v = wide ? join(r, x[2 * k], x[2 * k + 1]) : x[k];
    put(r, v, e, below(r, e, n));
  }
  lw_loop_end(r->f, &l);
  return blocks;
}

static LLVMValueRef word(rng *r, LLVMValueRef base, int64_t i) {
  LLVMValueRef v = LLVMBuildLoad2(r->f->b, r->f->em->i64,
                                  lw_at(r->f, base, lw_i64(r->f, i), 8), "");
  LLVMSetAlignment(v, 4);
  return v;
}

static void put_word(rng *r, LLVMValueRef base, int64_t i, LLVMValueRef v) {
  LLVMValueRef p = lw_at(r->f, base, lw_i64(r->f, i), 8);
  LLVMSetAlignment(LLVMBuildStore(r->f->b, v, p), 4);
}

static lw_prim unsigned_of(lw_prim t) {
  switch (lw_prim_bytes(t)) {
    case 1:
      return LW_U8;
    case 2:
      return LW_U16;
    case 4:
      return LW_U32;
    default:
      return LW_U64;
  }
}

lw_status lw_emit_rng_stage(lw_fn *f, const lw_stage *s) {
  const lw_inst *i = s->inst;
  lw_value state = lw_value_operand(i, 0);
  int64_t words = lw_shape_bytes(lw_value_shape(state)) / 8;
  int32_t bits = s->n_results - 1; /* {state, bits}, or the bits alone */
  bool philox =
      lw_inst_i64(i, LW_ATTR_RNG_ALGORITHM, LW_RNG_DEFAULT) != LW_RNG_THREE_FRY;
  LLVMValueRef from = lw_array_base(f, state);
  if (i->opcode != LW_OP_RNG_BIT_GENERATOR || words < 2 || words > 3 || !from)
    return lw_error(LW_UNIMPLEMENTED, "%s: no code for %s of this state",
                    i->name, lw_opcode_name(i->opcode));
  rng r = {.f = f, .shape = s->shapes[bits], .out = lw_dest_base(f, s, bits)};
  r.v32 = LLVMVectorType(f->em->i32, W);
  r.v64 = LLVMVectorType(f->em->i64, W);
  r.type = unsigned_of(r.shape->type);
  LLVMValueRef key = word(&r, from, 0);
  r.key0 = LLVMBuildTrunc(f->b, key, f->em->i32, "");
  r.key1 = LLVMBuildTrunc(f->b, LLVMBuildLShr(f->b, key, lw_i64(f, 32), ""),
                          f->em->i32, "");
  r.counter = word(&r, from, 1);
  r.high = words > 2 ? word(&r, from, 2) : key;
  int old = lw_width(f, W);
  int64_t blocks;
  if (philox)
    blocks = philox_all(&r);
  else
    blocks =
        lw_prim_bytes(r.type) == 8 ? threefry_wide(&r) : threefry_narrow(&r);
  lw_width(f, old);
  if (bits == 0) return f->error;
  LLVMValueRef to = lw_dest_base(f, s, 0),
               next = add(&r, r.counter, lw_i64(f, blocks));
  put_word(&r, to, 0, key);
  put_word(&r, to, 1, next);
  if (words > 2) {
    LLVMValueRef carry = LLVMBuildICmp(f->b, LLVMIntULT, next, r.counter, "");
    put_word(&r, to, 2,
             add(&r, r.high, LLVMBuildZExt(f->b, carry, f->em->i64, "")));
  }
  return f->error;
}
