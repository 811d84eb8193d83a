#include "interp/chain.h"

#include <math.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define HAVE_X86 1
#endif

lw_acc lw_acc_of(lw_prim t) {
  return t == LW_F64 ? LW_ACC_F64 : t == LW_F32 ? LW_ACC_F32 : LW_ACC_INT;
}

size_t lw_acc_size(lw_acc acc) { return acc == LW_ACC_F32 ? 4 : 8; }

lw_status lw_acc_check(lw_acc acc, const lw_val *a, const lw_val *b,
                       lw_prim result) {
  lw_prim ta = a->lit.shape->type, tb = b->lit.shape->type;
  bool c = lw_prim_is_complex(result);
  bool ok = lw_prim_is_complex(ta) == c && lw_prim_is_complex(tb) == c;
  if (acc == LW_ACC_INT)
    ok = ok && !lw_prim_is_float(ta) && !lw_prim_is_float(tb);
  if (ok) return NULL;
  return lw_error(LW_INVALID_ARGUMENT, "%s by %s cannot give %s",
                  lw_prim_name(ta), lw_prim_name(tb), lw_prim_name(result));
}

/* ---- steps ---- */

static inline __attribute__((always_inline)) void step_body(
    lw_acc acc, int64_t n, const void *a, const void *b, void *s) {
  if (acc == LW_ACC_F32) {
    const float x = *(const float *)a, *y = b;
    float *z = s;
    for (int64_t j = 0; j < n; j++) z[j] = __builtin_fmaf(x, y[j], z[j]);
  } else if (acc == LW_ACC_F64) {
    const double x = *(const double *)a, *y = b;
    double *z = s;
    for (int64_t j = 0; j < n; j++) z[j] = __builtin_fma(x, y[j], z[j]);
  } else {
    const uint64_t x = *(const uint64_t *)a, *y = b;
    uint64_t *z = s;
    for (int64_t j = 0; j < n; j++) z[j] += x * y[j];
  }
}

static inline __attribute__((always_inline)) void row_body(lw_acc acc,
                                                           int64_t k, int64_t n,
                                                           const void *a,
                                                           const void *b,
                                                           void *c, void *s) {
  size_t size = lw_acc_size(acc);
  memset(s, 0, (size_t)n * size);
  if (k == 0) memset(c, 0, (size_t)n * size);
  for (int64_t i = 0; i < k; i++) {
    step_body(acc, n, (const char *)a + (size_t)i * size,
              (const char *)b + (size_t)(i * n) * size, s);
    if ((i + 1) % LW_FOLD_DOT_BLOCK == 0 || i + 1 == k)
      lw_chain_end_block(acc, n, i < LW_FOLD_DOT_BLOCK, s, c);
  }
}

#if HAVE_X86
/* The same operations where the machine has FMA instructions; elsewhere fma()
 * of the C library gives the same bits. */
__attribute__((target("avx2,fma"))) static void row_fma(lw_acc acc, int64_t k,
                                                        int64_t n,
                                                        const void *a,
                                                        const void *b, void *c,
                                                        void *s) {
  if (acc == LW_ACC_F32)
    row_body(LW_ACC_F32, k, n, a, b, c, s);
  else if (acc == LW_ACC_F64)
    row_body(LW_ACC_F64, k, n, a, b, c, s);
  else
    row_body(LW_ACC_INT, k, n, a, b, c, s);
}
__attribute__((target("avx2,fma"))) static void step_fma(lw_acc acc, int64_t n,
                                                         const void *a,
                                                         const void *b,
                                                         void *s) {
  step_body(acc, n, a, b, s);
}
static bool has_fma(void) {
  return __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2");
}
#endif

void lw_chain_step(lw_acc acc, int64_t n, const void *a, const void *b,
                   void *s) {
#if HAVE_X86
  if (has_fma()) {
    step_fma(acc, n, a, b, s);
    return;
  }
#endif
  step_body(acc, n, a, b, s);
}

void lw_chain_row(lw_acc acc, int64_t k, int64_t n, const void *a,
                  const void *b, void *c, void *s) {
#if HAVE_X86
  if (has_fma()) {
    row_fma(acc, k, n, a, b, c, s);
    return;
  }
#endif
  row_body(acc, k, n, a, b, c, s);
}

void lw_chain_end_block(lw_acc acc, int64_t n, bool first, void *s, void *sum) {
  size_t bytes = (size_t)n * lw_acc_size(acc);
  if (first)
    memcpy(sum, s, bytes);
  else
    lw_acc_add(acc, n, sum, s);
  memset(s, 0, bytes);
}

/* "Inside a block 16 lanes, lane l holds the FMA chain from +0 over k mod 16 =
 * l; lanes are combined by halving, missing lanes are skipped." */
void lw_chain_skinny(lw_acc acc, int64_t k, const void *a, const void *b,
                     int64_t b_stride, void *c) {
  size_t size = lw_acc_size(acc);
  double lanes[LW_FOLD_SKINNY_LANES]; /* room for any accumulator */
  memset(c, 0, size);
  for (int64_t at = 0; at < k; at += LW_FOLD_DOT_BLOCK) {
    int64_t n = k - at < LW_FOLD_DOT_BLOCK ? k - at : LW_FOLD_DOT_BLOCK;
    memset(lanes, 0, sizeof lanes);
    for (int64_t i = at; i < at + n; i++) {
      char *lane = (char *)lanes + (size_t)(i % LW_FOLD_SKINNY_LANES) * size;
      lw_chain_step(acc, 1, (const char *)a + (size_t)i * size,
                    (const char *)b + (size_t)(i * b_stride) * size, lane);
    }
    int64_t count = n < LW_FOLD_SKINNY_LANES ? n : LW_FOLD_SKINNY_LANES;
    for (int64_t w = LW_FOLD_SKINNY_LANES / 2; w > 0; w /= 2) {
      int64_t m = count - w < w ? count - w : w;
      if (m <= 0) continue;
      lw_acc_add(acc, m, lanes, (char *)lanes + (size_t)w * size);
      count = w;
    }
    if (at == 0)
      memcpy(c, lanes, size);
    else
      lw_acc_add(acc, 1, c, lanes);
  }
}

void lw_acc_add(lw_acc acc, int64_t n, void *x, const void *y) {
  for (int64_t j = 0; j < n; j++) {
    if (acc == LW_ACC_F32)
      ((float *)x)[j] += ((const float *)y)[j];
    else if (acc == LW_ACC_F64)
      ((double *)x)[j] += ((const double *)y)[j];
    else
      ((uint64_t *)x)[j] += ((const uint64_t *)y)[j];
  }
}

void lw_acc_sub(lw_acc acc, int64_t n, void *x, const void *y) {
  for (int64_t j = 0; j < n; j++) {
    if (acc == LW_ACC_F32)
      ((float *)x)[j] -= ((const float *)y)[j];
    else if (acc == LW_ACC_F64)
      ((double *)x)[j] -= ((const double *)y)[j];
    else
      ((uint64_t *)x)[j] -= ((const uint64_t *)y)[j];
  }
}

/* ---- conversions ---- */

static void load_part(lw_acc acc, const lw_val *v, int part, void *out) {
  for (int64_t k = 0; k < lw_elems(v); k++) {
    double x = lw_literal_get_f64(&v->lit, k, part);
    if (acc == LW_ACC_F32)
      ((float *)out)[k] = (float)x;
    else
      ((double *)out)[k] = x;
  }
}

lw_status lw_acc_load(lw_eval *e, lw_acc acc, const lw_val *v, int part,
                      void *out) {
  lw_prim t = v->lit.shape->type, want = acc == LW_ACC_F32 ? LW_F32 : LW_F64;
  int64_t n = lw_elems(v);
  if (acc == LW_ACC_INT) {
    for (int64_t k = 0; k < n; k++)
      ((int64_t *)out)[k] = lw_literal_get_int(&v->lit, k);
    return NULL;
  }
  if (lw_prim_is_complex(t)) {
    load_part(acc, v, part, out);
    return NULL;
  }
  if (t == want) {
    memcpy(out, v->lit.data, (size_t)n * lw_acc_size(acc));
    return NULL;
  }
  return lw_elem_apply(e, LW_OP_CONVERT, t, want, n, v->lit.data, NULL, out);
}

/* "An arithmetic op whose result is NaN yields the canonical quiet NaN." */
static void canonical(lw_acc acc, int64_t n, void *x) {
  static const uint32_t nan32 = 0x7fc00000;
  static const uint64_t nan64 = 0x7ff8000000000000;
  for (int64_t k = 0; k < n; k++) {
    if (acc == LW_ACC_F32 && isnan(((float *)x)[k]))
      memcpy((float *)x + k, &nan32, 4);
    else if (acc == LW_ACC_F64 && isnan(((double *)x)[k]))
      memcpy((double *)x + k, &nan64, 8);
  }
}

static void store_complex(lw_acc acc, const void *re, const void *im,
                          lw_val *out) {
  for (int64_t k = 0; k < lw_elems(out); k++)
    for (int part = 0; part < 2; part++) {
      const void *p = part ? im : re;
      double v = acc == LW_ACC_F32 ? (double)((const float *)p)[k]
                                   : ((const double *)p)[k];
      lw_literal_set_f64(&out->lit, k, part, v);
    }
  canonical(
      lw_prim_part(out->lit.shape->type) == LW_F32 ? LW_ACC_F32 : LW_ACC_F64,
      2 * lw_elems(out), out->lit.data);
}

lw_status lw_acc_store(lw_eval *e, lw_acc acc, const void *re, const void *im,
                       lw_val *out) {
  lw_prim t = out->lit.shape->type, from = acc == LW_ACC_F32 ? LW_F32 : LW_F64;
  int64_t n = lw_elems(out);
  if (acc == LW_ACC_INT) {
    for (int64_t k = 0; k < n; k++)
      lw_literal_set_int(&out->lit, k, ((const int64_t *)re)[k]);
    return NULL;
  }
  if (im) {
    store_complex(acc, re, im, out);
    return NULL;
  }
  if (t == from) {
    memcpy(out->lit.data, re, (size_t)n * lw_acc_size(acc));
    canonical(acc, n, out->lit.data);
    return NULL;
  }
  return lw_elem_apply(e, LW_OP_CONVERT, from, t, n, re, NULL, out->lit.data);
}

/* ---- subnormals ---- */

lw_flush_state lw_flush_begin(const lw_eval *e) {
#if HAVE_X86
  unsigned old = _mm_getcsr();
  if (e->opt.flush_denormals) _mm_setcsr(old | 0x8040); /* FTZ, DAZ */
  return old;
#else
  (void)e;
  return 0;
#endif
}

void lw_flush_end(lw_flush_state s) {
#if HAVE_X86
  _mm_setcsr(s);
#else
  (void)s;
#endif
}
