/* The scalar instantiation: loops over arrays for every operation and type.
 *
 * Integer, f32 and f64 operations (and complex ones of them) have a loop of
 * their own, which the compiler may vectorise. Narrow floats, and any float
 * when subnormals are flushed, go through blocks: operands are widened to f32,
 * the f32 loop runs, and the result is rounded to the type. Conversions go
 * through blocks of 64-bit integers, f32 or f64.
 *
 * This file is compiled once for each lw_elem_variant. No operation depends on
 * the instruction set: fma is exact either way and contraction is off.
 */
#include "math/lists.h"
#include "math/narrow.h"
#include "math/scalar_ops.h"
#include "math/variant.h"

#ifndef LW_VARIANT
#define LW_VARIANT lw_elem_base
#endif

#ifdef __clang__
#define IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define IVDEP _Pragma("GCC ivdep")
#endif

/* gcc 12 turns vectorised complex products into vfmaddsub, contraction or not;
 * so complex loops are not vectorised (CMakeLists.txt has the block form). */
#if defined __GNUC__ && !defined __clang__
#define NO_VECTOR __attribute__((optimize("no-tree-vectorize")))
#else
#define NO_VECTOR
#endif

#define COMPARE_LOOP(cmp)                                      \
  IVDEP for (int64_t i = 0; i < n; i++) o[i] = (uint8_t)(cmp); \
  break;
#define COMPARE_LOOPS(dir, x, y) \
  switch (dir) {                 \
    case LW_CMP_EQ:              \
      COMPARE_LOOP((x) == (y))   \
    case LW_CMP_NE:              \
      COMPARE_LOOP((x) != (y))   \
    case LW_CMP_GE:              \
      COMPARE_LOOP((x) >= (y))   \
    case LW_CMP_GT:              \
      COMPARE_LOOP((x) > (y))    \
    case LW_CMP_LE:              \
      COMPARE_LOOP((x) <= (y))   \
    case LW_CMP_LT:              \
      COMPARE_LOOP((x) < (y))    \
  }

// clang-format off: the order matters
#include "math/coef.inc"
#include "math/f64.inc"
#include "math/f32.inc"
#include "math/narrow.inc"
#include "math/convert.inc"
#include "math/real_f32.h"
#include "math/real_loops.inc"
#include "math/real_f64.h"
#include "math/real_loops.inc"
// clang-format on
#undef N

/* The fourteen integer types: lane, its variants, widths, name. */
#define T int8_t
#define UT uint8_t
#define ST int8_t
#define WT int32_t
#define LANE 8
#define BITS 8
#define SGN 1
#define N(f) f##_s8
#include "math/int_loops.inc"

#define T uint8_t
#define UT uint8_t
#define ST int8_t
#define WT uint32_t
#define LANE 8
#define BITS 8
#define SGN 0
#define N(f) f##_u8
#include "math/int_loops.inc"

#define T int8_t
#define UT uint8_t
#define ST int8_t
#define WT int32_t
#define LANE 8
#define BITS 4
#define SGN 1
#define N(f) f##_s4
#include "math/int_loops.inc"

#define T uint8_t
#define UT uint8_t
#define ST int8_t
#define WT uint32_t
#define LANE 8
#define BITS 4
#define SGN 0
#define N(f) f##_u4
#include "math/int_loops.inc"

#define T int8_t
#define UT uint8_t
#define ST int8_t
#define WT int32_t
#define LANE 8
#define BITS 2
#define SGN 1
#define N(f) f##_s2
#include "math/int_loops.inc"

#define T uint8_t
#define UT uint8_t
#define ST int8_t
#define WT uint32_t
#define LANE 8
#define BITS 2
#define SGN 0
#define N(f) f##_u2
#include "math/int_loops.inc"

#define T int8_t
#define UT uint8_t
#define ST int8_t
#define WT int32_t
#define LANE 8
#define BITS 1
#define SGN 1
#define N(f) f##_s1
#include "math/int_loops.inc"

#define T uint8_t
#define UT uint8_t
#define ST int8_t
#define WT uint32_t
#define LANE 8
#define BITS 1
#define SGN 0
#define N(f) f##_u1
#include "math/int_loops.inc"

#define T int16_t
#define UT uint16_t
#define ST int16_t
#define WT int32_t
#define LANE 16
#define BITS 16
#define SGN 1
#define N(f) f##_s16
#include "math/int_loops.inc"

#define T uint16_t
#define UT uint16_t
#define ST int16_t
#define WT uint32_t
#define LANE 16
#define BITS 16
#define SGN 0
#define N(f) f##_u16
#include "math/int_loops.inc"

#define T int32_t
#define UT uint32_t
#define ST int32_t
#define WT int64_t
#define LANE 32
#define BITS 32
#define SGN 1
#define N(f) f##_s32
#include "math/int_loops.inc"

#define T uint32_t
#define UT uint32_t
#define ST int32_t
#define WT uint64_t
#define LANE 32
#define BITS 32
#define SGN 0
#define N(f) f##_u32
#include "math/int_loops.inc"

#define T int64_t
#define UT uint64_t
#define ST int64_t
#define WT __int128
#define LANE 64
#define BITS 64
#define SGN 1
#define N(f) f##_s64
#include "math/int_loops.inc"

#define T uint64_t
#define UT uint64_t
#define ST int64_t
#define WT unsigned __int128
#define LANE 64
#define BITS 64
#define SGN 0
#define N(f) f##_u64
#include "math/int_loops.inc"

static lw_elem_fn pick_int(lw_prim t, lw_opcode op) {
  switch ((int)t) {
    case LW_S1:
      return pick_s1(op);
    case LW_S2:
      return pick_s2(op);
    case LW_S4:
      return pick_s4(op);
    case LW_S8:
      return pick_s8(op);
    case LW_S16:
      return pick_s16(op);
    case LW_S32:
      return pick_s32(op);
    case LW_S64:
      return pick_s64(op);
    case LW_U1:
      return pick_u1(op);
    case LW_U2:
      return pick_u2(op);
    case LW_U4:
      return pick_u4(op);
    case LW_U8:
      return pick_u8(op);
    case LW_U16:
      return pick_u16(op);
    case LW_U32:
      return pick_u32(op);
    case LW_U64:
      return pick_u64(op);
  }
  return NULL;
}

/* ---- pred ---- */

#define PRED_LOOP(name, expr)                                       \
  static void name(const lw_elem_op *op, int64_t n, const void *va, \
                   const void *vb, const void *vc, void *vo) {      \
    (void)op, (void)vb, (void)vc;                                   \
    const uint8_t *a = va, *b = vb;                                 \
    uint8_t *o = vo;                                                \
    (void)b;                                                        \
    IVDEP for (int64_t i = 0; i < n; i++) o[i] = (uint8_t)(expr);   \
  }
PRED_LOOP(pred_and, a[i] & b[i])
PRED_LOOP(pred_or, a[i] | b[i])
PRED_LOOP(pred_xor, a[i] ^ b[i])
PRED_LOOP(pred_not, a[i] ^ 1)

static void pred_clamp(const lw_elem_op *op, int64_t n, const void *va,
                       const void *vb, const void *vc, void *vo) {
  (void)op;
  const uint8_t *lo = va, *x = vb, *hi = vc;
  uint8_t *o = vo;
  for (int64_t i = 0; i < n; i++) o[i] = (x[i] | lo[i]) & hi[i];
}

static lw_elem_fn pick_pred(lw_opcode op) {
  switch ((int)op) {
    case LW_OP_AND:
    case LW_OP_MULTIPLY:
    case LW_OP_MINIMUM:
      return pred_and;
    case LW_OP_OR:
    case LW_OP_ADD:
    case LW_OP_MAXIMUM:
      return pred_or;
    case LW_OP_XOR:
      return pred_xor;
    case LW_OP_NOT:
      return pred_not;
    case LW_OP_CLAMP:
      return pred_clamp;
    case LW_OP_COMPARE:
      return loop_compare_u8;
  }
  return NULL;
}

/* ---- select and bit copies, by element size ---- */

typedef struct {
  uint64_t w[2];
} pair64;

#define SELECT_LOOP(name, T)                                         \
  static void name(const lw_elem_op *op, int64_t n, const void *va,  \
                   const void *vb, const void *vc, void *vo) {       \
    (void)op;                                                        \
    const uint8_t *p = va;                                           \
    const T *a = vb, *b = vc;                                        \
    T *o = vo;                                                       \
    IVDEP for (int64_t i = 0; i < n; i++) o[i] = p[i] ? a[i] : b[i]; \
  }
SELECT_LOOP(select_8, uint8_t)
SELECT_LOOP(select_16, uint16_t)
SELECT_LOOP(select_32, uint32_t)
SELECT_LOOP(select_64, uint64_t)
SELECT_LOOP(select_128, pair64)

static lw_elem_fn pick_select(lw_prim t) {
  switch (lw_prim_bytes(t)) {
    case 1:
      return select_8;
    case 2:
      return select_16;
    case 4:
      return select_32;
    case 8:
      return select_64;
    case 16:
      return select_128;
  }
  return NULL;
}

static void copy_bits(const lw_elem_op *op, int64_t n, const void *a,
                      const void *b, const void *c, void *o) {
  (void)b, (void)c;
  memmove(o, a, (size_t)n * (size_t)lw_prim_bytes(op->in[0]));
}

static void fill_zero(const lw_elem_op *op, int64_t n, const void *a,
                      const void *b, const void *c, void *o) {
  (void)a, (void)b, (void)c;
  memset(o, 0, (size_t)n * (size_t)lw_prim_bytes(op->out));
}

static void bits_to_pred(const lw_elem_op *op, int64_t n, const void *va,
                         const void *b, const void *c, void *vo) {
  (void)op, (void)b, (void)c;
  const uint8_t *a = va;
  uint8_t *o = vo;
  for (int64_t i = 0; i < n; i++) o[i] = a[i] != 0;
}

/* Sub-byte types: the payload's bits, extended as the result's type says. */
static void copy_sub_byte(const lw_elem_op *op, int64_t n, const void *va,
                          const void *b, const void *c, void *vo) {
  (void)b, (void)c;
  const uint8_t *a = va;
  uint8_t *o = vo;
  int drop = 8 - lw_prim_table[op->out].bits;
  bool sign = lw_prim_is_signed(op->out);
  for (int64_t i = 0; i < n; i++) {
    uint8_t top = (uint8_t)(a[i] << drop);
    o[i] = sign ? (uint8_t)((int8_t)top >> drop) : (uint8_t)(top >> drop);
  }
}

/* ---- blocks ---- */

enum { BLOCK = 256 };
typedef enum { WIDE_S64, WIDE_U64, WIDE_F32, WIDE_F64 } wide_kind;
typedef union {
  int64_t i[BLOCK];
  float f[BLOCK];
  double d[BLOCK];
} wide_block;

static bool is_narrow(lw_prim t) {
  lw_narrow_format f;
  return lw_narrow_get(t, &f);
}

static wide_kind wide_of(lw_prim t) {
  if (lw_prim_part(t) == LW_F64) return WIDE_F64;
  if (lw_prim_is_float(t) || lw_prim_is_complex(t)) return WIDE_F32;
  return lw_prim_is_signed(t) ? WIDE_S64 : WIDE_U64;
}

#define LOAD_LOOP(T, dst) \
  for (int k = 0; k < n; k++) w->dst[k] = ((const T *)a)[k];

/* One loop a type, so that the format is a constant in it. */
static bool load_narrow(lw_prim t, int n, const void *a, float *o) {
  switch ((int)t) {
#define X(E, lane, ...)                                    \
  case LW_##E: {                                           \
    const lw_narrow_format f = {__VA_ARGS__};              \
    const lane *x = a;                                     \
    for (int k = 0; k < n; k++) o[k] = nf_widen(&f, x[k]); \
    return true;                                           \
  }
    LW_NARROW_TYPES(X)
#undef X
  }
  return false;
}

/* n <= BLOCK elements of a real type t (or parts of a complex one). */
static void load_block(lw_prim t, int n, const void *a, wide_block *w) {
  if (load_narrow(t, n, a, w->f)) return;
  switch ((int)t) {
    case LW_F32:
      LOAD_LOOP(float, f) return;
    case LW_F64:
      LOAD_LOOP(double, d) return;
    case LW_S16:
      LOAD_LOOP(int16_t, i) return;
    case LW_S32:
      LOAD_LOOP(int32_t, i) return;
    case LW_S64:
    case LW_U64:
      LOAD_LOOP(int64_t, i) return;
    case LW_U16:
      LOAD_LOOP(uint16_t, i) return;
    case LW_U32:
      LOAD_LOOP(uint32_t, i) return;
    case LW_S1:
    case LW_S2:
    case LW_S4:
    case LW_S8:
      LOAD_LOOP(int8_t, i) return;
  }
  LOAD_LOOP(uint8_t, i) /* pred and small unsigned */
}

#define STORE_LOOP(T, expr) \
  for (int k = 0; k < n; k++) ((T *)o)[k] = (T)(expr);

static void store_narrow(lw_prim t, int n, const float *a, void *o) {
  switch ((int)t) {
#define X(E, lane, ...)                                 \
  case LW_##E: {                                        \
    const lw_narrow_format f = {__VA_ARGS__};           \
    STORE_LOOP(lane, nf_narrow(&f, nf_round(&f, a[k]))) \
    return;                                             \
  }
    LW_NARROW_TYPES(X)
#undef X
  }
}

/* Integers, wrapped to the type. */
static void store_int(lw_prim t, int n, const int64_t *a, void *o) {
  int drop = 64 - lw_prim_table[t].bits;
  switch (lw_prim_bytes(t)) {
    case 2:
      STORE_LOOP(uint16_t, a[k]) return;
    case 4:
      STORE_LOOP(uint32_t, a[k]) return;
    case 8:
      STORE_LOOP(uint64_t, a[k]) return;
  }
  if (lw_prim_is_signed(t)) {
    STORE_LOOP(uint8_t, SAR(SHL(a[k], drop), drop))
  } else {
    STORE_LOOP(uint8_t, lw_shr_l(SHL(a[k], drop), drop))
  }
}

/* Each lane of w, of kind from, as f32 for rounding to a narrower type. */
static void round_odd(wide_kind from, int n, wide_block *w) {
  float o[BLOCK];
  for (int k = 0; k < n; k++) {
    D x = from == WIDE_F64   ? w->d[k]
          : from == WIDE_S64 ? L2D(nf_sticky(w->i[k], true))
                             : U2D(nf_sticky(w->i[k], false));
    o[k] = nf_odd(x);
  }
  memcpy(w->f, o, (size_t)n * sizeof *o);
}

static void store_f32(wide_kind from, int n, const wide_block *w, float *o) {
  for (int k = 0; k < n; k++)
    o[k] = from == WIDE_F32   ? canon_f(w->f[k])
           : from == WIDE_F64 ? canon_f(D2F(w->d[k]))
           : from == WIDE_S64 ? (float)w->i[k]
                              : (float)(uint64_t)w->i[k];
}

static double wide_f64(wide_kind from, const wide_block *w, int k) {
  return from == WIDE_F32   ? F2D(w->f[k])
         : from == WIDE_F64 ? w->d[k]
         : from == WIDE_S64 ? (double)w->i[k]
                            : (double)(uint64_t)w->i[k];
}

static void store_pred(wide_kind from, int n, const wide_block *w, uint8_t *o) {
  for (int k = 0; k < n; k++)
    o[k] = from == WIDE_F32   ? w->f[k] != 0
           : from == WIDE_F64 ? w->d[k] != 0
                              : w->i[k] != 0;
}

/* w is overwritten. */
static void store_block(wide_kind from, lw_prim t, int n, wide_block *w,
                        void *o) {
  if (is_narrow(t)) {
    if (from != WIDE_F32) round_odd(from, n, w);
    store_narrow(t, n, w->f, o);
  } else if (t == LW_F32) {
    store_f32(from, n, w, o);
  } else if (t == LW_F64) {
    STORE_LOOP(double, canon_d(wide_f64(from, w, k)))
  } else if (t == LW_PRED) {
    store_pred(from, n, w, o);
  } else {
    int bits = lw_prim_table[t].bits;
    bool sign = lw_prim_is_signed(t);
    int64_t v[BLOCK];
    bool real = from == WIDE_F32 || from == WIDE_F64;
    for (int k = 0; real && k < n; k++)
      v[k] = cv_saturate(wide_f64(from, w, k), bits, sign);
    store_int(t, n, real ? v : w->i, o);
  }
}

static void flush_block(wide_kind kind, int n, wide_block *w) {
  if (kind == WIDE_F32)
    for (int k = 0; k < n; k++) w->f[k] = flush_f(w->f[k]);
  if (kind == WIDE_F64)
    for (int k = 0; k < n; k++) w->d[k] = flush_d(w->d[k]);
}

/* f64 to f32, as the result (last) or for one more rounding. */
static void narrow_f64(bool last, int n, wide_block *w) {
  float v[BLOCK];
  if (!last) {
    round_odd(WIDE_F64, n, w);
    return;
  }
  store_f32(WIDE_F64, n, w, v);
  memcpy(w->f, v, (size_t)n * sizeof *v);
}

static void convert_real(lw_prim from, lw_prim to, bool flush, int64_t n,
                         const char *a, char *o) {
  int in = lw_prim_bytes(from), out = lw_prim_bytes(to);
  wide_kind kind = wide_of(from);
  for (int64_t i = 0; i < n; i += BLOCK) {
    int m = (int)(n - i < BLOCK ? n - i : BLOCK);
    wide_block w;
    load_block(from, m, a + i * in, &w);
    if (flush) flush_block(kind, m, &w);
    if (flush && kind == WIDE_F64 && to != LW_F64 && lw_prim_is_float(to)) {
      narrow_f64(to == LW_F32, m, &w);
      flush_block(WIDE_F32, m, &w);
      store_block(WIDE_F32, to, m, &w, o + i * out);
      continue;
    }
    store_block(kind, to, m, &w, o + i * out);
  }
}

static void convert(const lw_elem_op *op, int64_t n, const void *a,
                    const void *b, const void *c, void *o) {
  (void)b, (void)c;
  if (op->in[0] == op->out) {
    copy_bits(op, n, a, b, c, o);
    return;
  }
  convert_real(op->in[0], op->out, op->flush_denormals, n, a, o);
}

/* Complex to complex, part by part; complex to real takes the real part; real
 * to complex has a zero imaginary part. */
static void convert_complex(const lw_elem_op *op, int64_t n, const void *a,
                            const void *b, const void *c, void *o) {
  lw_prim from = lw_prim_part(op->in[0]), to = lw_prim_part(op->out);
  bool cin = lw_prim_is_complex(op->in[0]), cout = lw_prim_is_complex(op->out);
  if (op->in[0] == op->out) {
    copy_bits(op, n, a, b, c, o);
    return;
  }
  if (cin && cout) {
    convert_real(from, to, op->flush_denormals, 2 * n, a, o);
    return;
  }
  int in = lw_prim_bytes(op->in[0]), out = lw_prim_bytes(op->out);
  for (int64_t i = 0; i < n; i++) {
    char *r = (char *)o + i * out;
    const char *x = (const char *)a + i * in;
    if (cout) memset(r + out / 2, 0, (size_t)out / 2);
    convert_real(from, to, op->flush_denormals, 1, x, r);
  }
}

static void stochastic(const lw_elem_op *op, int64_t n, const void *va,
                       const void *vb, const void *c, void *vo) {
  (void)c;
  const char *a = va, *b = vb;
  int in = lw_prim_bytes(op->in[0]), out = lw_prim_bytes(op->out);
  int rbits = in * 8, bits = lw_prim_table[op->out].bits;
  wide_kind kind = wide_of(op->in[0]);
  for (int64_t i = 0; i < n; i++) {
    wide_block x, r;
    load_block(op->in[0], 1, a + i * in, &x);
    load_block(op->in[1], 1, b + i * in, &r);
    r.i[0] = cv_stochastic(wide_f64(kind, &x, 0), r.i[0], rbits, bits);
    store_int(op->out, 1, r.i, (char *)vo + i * out);
  }
}

/* ---- narrow floats, and flushed subnormals, through blocks ---- */

static lw_elem_fn pick(const lw_elem_op *op);

static lw_prim widened(lw_prim t) { return is_narrow(t) ? LW_F32 : t; }

typedef union {
  wide_block w;
  double z[2 * BLOCK]; /* complex parts */
} operand_block;

static void stage_operand(lw_prim t, bool flush, int n, const char *a,
                          operand_block *o) {
  lw_prim part = lw_prim_part(t);
  int bytes = lw_prim_bytes(t);
  if (is_narrow(t)) {
    load_block(t, n, a, &o->w);
  } else {
    memcpy(o, a, (size_t)n * (size_t)bytes);
  }
  if (!flush) return;
  int parts = lw_prim_is_complex(t) ? 2 * n : n;
  if (part == LW_F64) {
    for (int k = 0; k < parts; k++) o->z[k] = flush_d(o->z[k]);
  } else if (lw_prim_is_float(t) || part == LW_F32) {
    float *f = (float *)o;
    for (int k = 0; k < parts; k++) f[k] = flush_f(f[k]);
  }
}

static void unstage_result(lw_prim t, bool flush, int n, operand_block *r,
                           char *o) {
  int parts = lw_prim_is_complex(t) ? 2 * n : n;
  if (flush && lw_prim_part(t) == LW_F64)
    for (int k = 0; k < parts; k++) r->z[k] = flush_d(r->z[k]);
  else if (flush && (lw_prim_is_float(t) || lw_prim_is_complex(t)))
    for (int k = 0; k < parts; k++) ((float *)r)[k] = flush_f(((float *)r)[k]);
  if (is_narrow(t))
    store_block(WIDE_F32, t, n, &r->w, o);
  else
    memcpy(o, r, (size_t)n * (size_t)lw_prim_bytes(t));
}

static void staged(const lw_elem_op *op, int64_t n, const void *a,
                   const void *b, const void *c, void *o) {
  lw_elem_op in = *op;
  in.flush_denormals = false;
  in.out = widened(op->out);
  for (int k = 0; k < 3; k++) in.in[k] = widened(op->in[k]);
  lw_elem_fn fn = pick(&in);
  const char *src[3] = {a, b, c};
  for (int64_t i = 0; i < n; i += BLOCK) {
    int m = (int)(n - i < BLOCK ? n - i : BLOCK);
    operand_block x[3], r;
    for (int k = 0; k < 3; k++)
      if (op->in[k] != LW_PRIM_INVALID)
        stage_operand(op->in[k], op->flush_denormals, m,
                      src[k] + i * lw_prim_bytes(op->in[k]), &x[k]);
    fn(&in, m, &x[0], &x[1], &x[2], &r);
    unstage_result(op->out, op->flush_denormals, m, &r,
                   (char *)o + i * lw_prim_bytes(op->out));
  }
}

/* Sign-bit operations on payloads. */
static void narrow_sign(const lw_elem_op *op, int64_t n, const void *a,
                        const void *b, const void *c, void *o) {
  (void)b, (void)c;
  lw_narrow_format f;
  bool neg = op->op == LW_OP_NEGATE, ok = lw_narrow_get(op->out, &f);
  if (ok && lw_prim_bytes(op->out) == 2) {
    const uint16_t *x = a;
    for (int64_t k = 0; k < n; k++)
      ((uint16_t *)o)[k] =
          (uint16_t)(neg ? nf_neg(&f, x[k]) : nf_abs(&f, x[k]));
  } else if (ok) {
    const uint8_t *x = a;
    for (int64_t k = 0; k < n; k++)
      ((uint8_t *)o)[k] = (uint8_t)(neg ? nf_neg(&f, x[k]) : nf_abs(&f, x[k]));
  }
}

/* Total order of a narrow type is that of its values in f32, but for NaNs,
 * whose sign decides and whose payload widening keeps. */
static lw_elem_fn pick_plain(const lw_elem_op *op) {
  lw_prim t = op->in[0];
  lw_prim part = lw_prim_part(t);
  if (lw_prim_is_complex(t) || op->op == LW_OP_COMPLEX)
    return part == LW_F32 ? pick_complex_f(op) : pick_complex_d(op);
  if (t == LW_F32) return pick_f(op->op);
  if (t == LW_F64) return pick_d(op->op);
  if (t == LW_PRED) return pick_pred(op->op);
  return pick_int(t, op->op);
}

static bool any_narrow(const lw_elem_op *op) {
  return is_narrow(op->in[0]) || is_narrow(op->out);
}

/* Does the operation do float arithmetic, where flushing applies? */
static bool flushes(const lw_elem_op *op) {
  lw_class cls = lw_prim_class(op->in[0]);
  if (cls != LW_CLASS_FLOAT && cls != LW_CLASS_COMPLEX) return false;
  if (op->op == LW_OP_COMPARE) return !op->total_order;
  bool moves = op->op == LW_OP_NEGATE || op->op == LW_OP_REAL ||
               op->op == LW_OP_IMAG || op->op == LW_OP_COMPLEX ||
               (op->op == LW_OP_ABS && cls == LW_CLASS_FLOAT);
  return !moves;
}

static lw_elem_fn pick(const lw_elem_op *op) {
  switch ((int)op->op) {
    case LW_OP_SELECT:
      return pick_select(op->out);
    case LW_OP_CONVERT:
      return lw_prim_is_complex(op->in[0]) || lw_prim_is_complex(op->out)
                 ? convert_complex
                 : convert;
    case LW_OP_BITCAST_CONVERT:
      if (op->out == LW_PRED) return bits_to_pred;
      return lw_prim_table[op->out].bits < 8 ? copy_sub_byte : copy_bits;
    case LW_OP_STOCHASTIC_CONVERT:
      return stochastic;
    case LW_OP_REAL:
    case LW_OP_IMAG:
      if (lw_prim_is_complex(op->in[0])) break;
      return op->op == LW_OP_REAL ? copy_bits : fill_zero;
  }
  bool sign = op->op == LW_OP_ABS || op->op == LW_OP_NEGATE;
  if (sign && is_narrow(op->in[0])) return narrow_sign;
  if (any_narrow(op) || (op->flush_denormals && flushes(op))) return staged;
  return pick_plain(op);
}

const lw_elem_variant LW_VARIANT = {pick};
