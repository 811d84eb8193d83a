/* LAPACK through LAPACKE, reference BLAS, one thread.
 *
 * Every entry has the same form: check the leaves, then for each batch element
 * turn the matrices to columns, call, and turn the results back. Failures of a
 * factorisation are data (the info result), as jaxlib leaves them.
 */
#include "lib/lapack.h"

#include <complex.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- reference BLAS (Fortran; character lengths come last) ---- */

#define TRSM(name)                                                           \
  void name(const char *side, const char *uplo, const char *trans,           \
            const char *diag, const int *m, const int *n, const void *alpha, \
            const void *a, const int *lda, void *b, const int *ldb, size_t,  \
            size_t, size_t, size_t)
TRSM(strsm_);
TRSM(dtrsm_);
TRSM(ctrsm_);
TRSM(ztrsm_);
#undef TRSM

/* The routine of four by element type. */
#define BY_TYPE(t, s, d, c, z, ...) \
  ((t) == LW_F32   ? s(__VA_ARGS__) \
   : (t) == LW_F64 ? d(__VA_ARGS__) \
   : (t) == LW_C64 ? c(__VA_ARGS__) \
                   : z(__VA_ARGS__))
#define COL LAPACK_COL_MAJOR

/* ---- matrices of a call ---- */

typedef struct {
  const lw_lib_call *c;
  lw_prim type;
  int64_t batch;
  size_t size; /* bytes an element */
} job;

static int rows(const lw_lib_buffer *b) {
  return (int)b->shape->dims[b->shape->rank - 2];
}
static int cols(const lw_lib_buffer *b) {
  return (int)b->shape->dims[b->shape->rank - 1];
}
static int lead(int n) { return n > 0 ? n : 1; }

/* Element b of a batch of matrices (rank 2) or vectors (1) or scalars (0). */
static void *at(const lw_lib_buffer *v, int rank, int64_t b) {
  int64_t n = 1;
  for (int k = 0; k < rank; k++) n *= v->shape->dims[v->shape->rank - 1 - k];
  return (char *)v->data +
         (size_t)(b * n) * (size_t)lw_prim_bytes(v->shape->type);
}

static void turn(const void *from, void *to, int r, int c, size_t size) {
  for (int i = 0; i < r; i++)
    for (int j = 0; j < c; j++)
      memcpy((char *)to + ((size_t)j * (size_t)r + (size_t)i) * size,
             (const char *)from + ((size_t)i * (size_t)c + (size_t)j) * size,
             size);
}

/* A fresh column-major matrix, rounded up so that it is never empty. */
static void *room(const lw_lib_buffer *b) {
  size_t n = (size_t)lead(rows(b)) * (size_t)lead(cols(b));
  void *p = calloc(n, (size_t)lw_prim_bytes(b->shape->type));
  if (!p) lw_oom(n);
  return p;
}

static void *load(const lw_lib_buffer *b, int64_t k) {
  void *p = room(b);
  turn(at(b, 2, k), p, rows(b), cols(b), (size_t)lw_prim_bytes(b->shape->type));
  return p;
}

/* Writes a column-major matrix to a result and frees it. */
static void store(const lw_lib_buffer *b, int64_t k, void *m) {
  turn(m, at(b, 2, k), cols(b), rows(b), (size_t)lw_prim_bytes(b->shape->type));
  free(m);
}

static void set_info(const lw_lib_buffer *b, int64_t k, int info) {
  ((int32_t *)b->data)[k] = info;
}

/* ---- checking ---- */

/* ranks: one character a leaf, operands then results: 2 matrix, 1 vector, 0
 * scalar, of a common batch. */
static lw_status begin(const lw_lib_call *c, const char *ranks, job *j) {
  int n = (int)strlen(ranks);
  if (c->n_operands + c->n_results != n || c->n_operands < 1)
    return lw_error(LW_INVALID_ARGUMENT, "%s takes and returns %d arrays",
                    c->target, n);
  *j = (job){.c = c, .type = c->operands[0].shape->type, .batch = 1};
  LAPACKE_set_nancheck(0);
  j->size = (size_t)lw_prim_bytes(j->type);
  static const char letters[] = "sdcz";
  static const lw_prim types[] = {LW_F32, LW_F64, LW_C64, LW_C128};
  const char *letter = strchr(letters, c->target[7]);
  if (!letter || types[letter - letters] != j->type)
    return lw_error(LW_INVALID_ARGUMENT, "%s on %s", c->target,
                    lw_prim_name(j->type));
  for (int k = 0; k < n; k++) {
    const lw_lib_buffer *b =
        k < c->n_operands ? &c->operands[k] : &c->results[k - c->n_operands];
    int rank = ranks[k] - '0';
    if (!lw_shape_is_array(b->shape) || b->shape->rank < rank)
      return lw_error(LW_INVALID_ARGUMENT, "%s: array %d needs rank %d",
                      c->target, k, rank);
    int64_t batch = 1;
    for (int d = 0; d < b->shape->rank - rank; d++) batch *= b->shape->dims[d];
    if (k == 0) j->batch = batch;
    if (batch != j->batch)
      return lw_error(LW_INVALID_ARGUMENT, "%s: batch sizes differ", c->target);
    for (int d = 0; d < rank; d++)
      if (b->shape->dims[b->shape->rank - 1 - d] > INT32_MAX / 2)
        return lw_error(LW_INVALID_ARGUMENT, "%s: a matrix is too large",
                        c->target);
  }
  return NULL;
}

/* Leaf k must be of type t (and, for matrices and vectors, these dims; -1:
 * any). */
static bool is(const lw_lib_buffer *b, lw_prim t, int64_t r, int64_t c) {
  int rank = b->shape->rank;
  if (b->shape->type != t) return false;
  if (c >= 0 && b->shape->dims[rank - 1] != c) return false;
  return r < 0 || b->shape->dims[rank - 2] == r;
}

static lw_status misfit(const lw_lib_call *c) {
  return lw_error(LW_INVALID_ARGUMENT, "%s: shapes do not fit", c->target);
}

static char chr(const lw_lib_call *c, const char *key, char dflt) {
  return (char)lw_lib_attr(c->config, key, dflt);
}

/* ---- factorisations ---- */

lw_status lw_lapack_potrf(const lw_lib_call *c) {
  job j;
  LW_TRY(begin(c, "220", &j));
  int n = rows(&c->operands[0]);
  if (!is(&c->operands[0], j.type, n, n) || !is(&c->results[0], j.type, n, n) ||
      c->results[1].shape->type != LW_S32)
    return misfit(c);
  char uplo = chr(c, "uplo", 'L');
  for (int64_t k = 0; k < j.batch; k++) {
    void *a = load(&c->operands[0], k);
    int info = BY_TYPE(j.type, LAPACKE_spotrf, LAPACKE_dpotrf, LAPACKE_cpotrf,
                       LAPACKE_zpotrf, COL, uplo, n, a, lead(n));
    store(&c->results[0], k, a);
    set_info(&c->results[1], k, info);
  }
  return NULL;
}

lw_status lw_lapack_getrf(const lw_lib_call *c) {
  job j;
  LW_TRY(begin(c, "2210", &j));
  int m = rows(&c->operands[0]), n = cols(&c->operands[0]);
  int min = m < n ? m : n;
  if (!is(&c->results[0], j.type, m, n) ||
      !is(&c->results[1], LW_S32, -1, min) ||
      c->results[2].shape->type != LW_S32)
    return misfit(c);
  for (int64_t k = 0; k < j.batch; k++) {
    void *a = load(&c->operands[0], k);
    int *pivots = at(&c->results[1], 1, k);
    int info = BY_TYPE(j.type, LAPACKE_sgetrf, LAPACKE_dgetrf, LAPACKE_cgetrf,
                       LAPACKE_zgetrf, COL, m, n, a, lead(m), pivots);
    store(&c->results[0], k, a);
    set_info(&c->results[2], k, info);
  }
  return NULL;
}

lw_status lw_lapack_geqrf(const lw_lib_call *c) {
  job j;
  LW_TRY(begin(c, "221", &j));
  int m = rows(&c->operands[0]), n = cols(&c->operands[0]);
  if (!is(&c->results[0], j.type, m, n) ||
      !is(&c->results[1], j.type, -1, m < n ? m : n))
    return misfit(c);
  for (int64_t k = 0; k < j.batch; k++) {
    void *a = load(&c->operands[0], k), *tau = at(&c->results[1], 1, k);
    int info = BY_TYPE(j.type, LAPACKE_sgeqrf, LAPACKE_dgeqrf, LAPACKE_cgeqrf,
                       LAPACKE_zgeqrf, COL, m, n, a, lead(m), tau);
    store(&c->results[0], k, a);
    if (info < 0) return misfit(c);
  }
  return NULL;
}

lw_status lw_lapack_geqp3(const lw_lib_call *c) {
  job j;
  LW_TRY(begin(c, "21211", &j));
  int m = rows(&c->operands[0]), n = cols(&c->operands[0]);
  if (!is(&c->operands[1], LW_S32, -1, n) ||
      !is(&c->results[0], j.type, m, n) || !is(&c->results[1], LW_S32, -1, n) ||
      !is(&c->results[2], j.type, -1, m < n ? m : n))
    return misfit(c);
  for (int64_t k = 0; k < j.batch; k++) {
    void *a = load(&c->operands[0], k), *tau = at(&c->results[2], 1, k);
    int *pivots = at(&c->results[1], 1, k);
    memcpy(pivots, at(&c->operands[1], 1, k), (size_t)n * sizeof *pivots);
    int info = BY_TYPE(j.type, LAPACKE_sgeqp3, LAPACKE_dgeqp3, LAPACKE_cgeqp3,
                       LAPACKE_zgeqp3, COL, m, n, a, lead(m), pivots, tau);
    store(&c->results[0], k, a);
    if (info < 0) return misfit(c);
  }
  return NULL;
}

lw_status lw_lapack_orgqr(const lw_lib_call *c) {
  job j;
  LW_TRY(begin(c, "212", &j));
  int m = rows(&c->operands[0]), n = cols(&c->operands[0]);
  int r = (int)c->operands[1].shape->dims[c->operands[1].shape->rank - 1];
  if (!is(&c->results[0], j.type, m, n) ||
      !is(&c->operands[1], j.type, -1, r) || n > m || r > n)
    return misfit(c);
  for (int64_t k = 0; k < j.batch; k++) {
    void *a = load(&c->operands[0], k), *tau = at(&c->operands[1], 1, k);
    int info = BY_TYPE(j.type, LAPACKE_sorgqr, LAPACKE_dorgqr, LAPACKE_cungqr,
                       LAPACKE_zungqr, COL, m, n, r, a, lead(m), tau);
    store(&c->results[0], k, a);
    if (info < 0) return misfit(c);
  }
  return NULL;
}

lw_status lw_lapack_ormqr(const lw_lib_call *c) {
  job j;
  LW_TRY(begin(c, "2122", &j));
  bool left = lw_lib_attr(c->config, "left", 1) != 0;
  bool turned = lw_lib_attr(c->config, "transpose", 0) != 0;
  int m = rows(&c->operands[2]), n = cols(&c->operands[2]);
  int r = (int)c->operands[1].shape->dims[c->operands[1].shape->rank - 1];
  int q = left ? m : n;
  if (!is(&c->results[0], j.type, m, n) ||
      !is(&c->operands[1], j.type, -1, r) ||
      !is(&c->operands[0], j.type, q, -1) || cols(&c->operands[0]) < r ||
      r > q || c->operands[2].shape->type != j.type)
    return misfit(c);
  char trans = !turned ? 'N' : lw_prim_is_complex(j.type) ? 'C' : 'T';
  for (int64_t k = 0; k < j.batch; k++) {
    void *a = load(&c->operands[0], k), *tau = at(&c->operands[1], 1, k);
    void *x = load(&c->operands[2], k);
    int info = BY_TYPE(j.type, LAPACKE_sormqr, LAPACKE_dormqr, LAPACKE_cunmqr,
                       LAPACKE_zunmqr, COL, left ? 'L' : 'R', trans, m, n, r, a,
                       lead(q), tau, x, lead(m));
    store(&c->results[0], k, x);
    free(a);
    if (info < 0) return misfit(c);
  }
  return NULL;
}

/* ---- singular values ---- */

static lw_status check_svd(const lw_lib_call *c, const job *j) {
  int m = rows(&c->operands[0]), n = cols(&c->operands[0]);
  if (!is(&c->results[0], j->type, m, n) ||
      !is(&c->results[1], lw_prim_part(j->type), -1, m < n ? m : n) ||
      !is(&c->results[2], j->type, m, -1) ||
      !is(&c->results[3], j->type, -1, n) ||
      c->results[4].shape->type != LW_S32)
    return misfit(c);
  char mode = chr(c, "mode", 'A');
  int min = m < n ? m : n, side = mode == 'A' ? 1 : 0;
  if (mode != 'N' && (cols(&c->results[2]) < (side ? m : min) ||
                      rows(&c->results[3]) < (side ? n : min)))
    return misfit(c);
  return NULL;
}

static lw_status svd(const lw_lib_call *c, bool divide) {
  job j;
  LW_TRY(begin(c, "221220", &j));
  LW_TRY(check_svd(c, &j));
  int m = rows(&c->operands[0]), n = cols(&c->operands[0]);
  char mode = chr(c, "mode", 'A');
  int ldv = lead(rows(&c->results[3]));
  for (int64_t k = 0; k < j.batch; k++) {
    void *a = load(&c->operands[0], k), *s = at(&c->results[1], 1, k);
    void *u = room(&c->results[2]), *vt = room(&c->results[3]);
    void *superb = calloc((size_t)(lead(m) + lead(n)), 16);
    if (!superb) lw_oom(16);
    int info = divide
                   ? BY_TYPE(j.type, LAPACKE_sgesdd, LAPACKE_dgesdd,
                             LAPACKE_cgesdd, LAPACKE_zgesdd, COL, mode, m, n, a,
                             lead(m), s, u, lead(m), vt, ldv)
                   : BY_TYPE(j.type, LAPACKE_sgesvd, LAPACKE_dgesvd,
                             LAPACKE_cgesvd, LAPACKE_zgesvd, COL, mode, mode, m,
                             n, a, lead(m), s, u, lead(m), vt, ldv, superb);
    free(superb);
    store(&c->results[0], k, a);
    store(&c->results[2], k, u);
    store(&c->results[3], k, vt);
    set_info(&c->results[4], k, info);
  }
  return NULL;
}

lw_status lw_lapack_gesdd(const lw_lib_call *c) { return svd(c, true); }
lw_status lw_lapack_gesvd(const lw_lib_call *c) { return svd(c, false); }

/* ---- eigenvalues ---- */

lw_status lw_lapack_syevd(const lw_lib_call *c) {
  job j;
  LW_TRY(begin(c, "2210", &j));
  int n = rows(&c->operands[0]);
  if (!is(&c->operands[0], j.type, n, n) || !is(&c->results[0], j.type, n, n) ||
      !is(&c->results[1], lw_prim_part(j.type), -1, n) ||
      c->results[2].shape->type != LW_S32)
    return misfit(c);
  char mode = chr(c, "mode", 'V'), uplo = chr(c, "uplo", 'L');
  for (int64_t k = 0; k < j.batch; k++) {
    void *a = load(&c->operands[0], k), *w = at(&c->results[1], 1, k);
    int info = BY_TYPE(j.type, LAPACKE_ssyevd, LAPACKE_dsyevd, LAPACKE_cheevd,
                       LAPACKE_zheevd, COL, mode, uplo, n, a, lead(n), w);
    store(&c->results[0], k, a);
    set_info(&c->results[2], k, info);
  }
  return NULL;
}

/* LAPACK's real geev keeps a conjugate pair's vectors as two real columns; the
 * results are complex. */
static void unpack_vectors(const lw_lib_buffer *b, int64_t k, bool wide, int n,
                           const void *wi, void *v) {
  void *out = room(b);
  for (int i = 0; i < n; i++) {
    double im = wide ? ((const double *)wi)[i] : ((const float *)wi)[i];
    for (int r = 0; r < n; r++) {
      int re_at = i * n + r, im_at = (i + 1) * n + r, last = (i - 1) * n + r;
#define PUT(T, C)                                      \
  do {                                                 \
    const T *x = v;                                    \
    C *y = out;                                        \
    T *p = (T *)&y[re_at];                             \
    p[0] = im < 0 ? x[last] : x[re_at];                \
    p[1] = im > 0 ? x[im_at] : im < 0 ? -x[re_at] : 0; \
  } while (0)
      if (wide)
        PUT(double, lapack_complex_double);
      else
        PUT(float, lapack_complex_float);
#undef PUT
    }
  }
  free(v);
  store(b, k, out);
}

static lw_status geev_real(const lw_lib_call *c, char left, char right) {
  job j;
  LW_TRY(begin(c, "211220", &j));
  int n = rows(&c->operands[0]);
  bool wide = j.type == LW_F64;
  lw_prim cplx = wide ? LW_C128 : LW_C64;
  if (!is(&c->operands[0], j.type, n, n) ||
      !is(&c->results[0], j.type, -1, n) ||
      !is(&c->results[1], j.type, -1, n) || !is(&c->results[2], cplx, n, n) ||
      !is(&c->results[3], cplx, n, n) || c->results[4].shape->type != LW_S32)
    return misfit(c);
  for (int64_t k = 0; k < j.batch; k++) {
    void *a = load(&c->operands[0], k);
    void *wr = at(&c->results[0], 1, k), *wi = at(&c->results[1], 1, k);
    void *vl = room(&c->operands[0]), *vr = room(&c->operands[0]);
    int info = wide ? LAPACKE_dgeev(COL, left, right, n, a, lead(n), wr, wi, vl,
                                    lead(n), vr, lead(n))
                    : LAPACKE_sgeev(COL, left, right, n, a, lead(n), wr, wi, vl,
                                    lead(n), vr, lead(n));
    free(a);
    if (info > 0) memset(wi, 0, (size_t)n * j.size);
    unpack_vectors(&c->results[2], k, wide, n, wi, vl);
    unpack_vectors(&c->results[3], k, wide, n, wi, vr);
    set_info(&c->results[4], k, info);
  }
  return NULL;
}

static lw_status geev_complex(const lw_lib_call *c, char left, char right) {
  job j;
  LW_TRY(begin(c, "21220", &j));
  int n = rows(&c->operands[0]);
  if (!is(&c->operands[0], j.type, n, n) ||
      !is(&c->results[0], j.type, -1, n) || !is(&c->results[1], j.type, n, n) ||
      !is(&c->results[2], j.type, n, n) || c->results[3].shape->type != LW_S32)
    return misfit(c);
  for (int64_t k = 0; k < j.batch; k++) {
    void *a = load(&c->operands[0], k), *w = at(&c->results[0], 1, k);
    void *vl = room(&c->results[1]), *vr = room(&c->results[2]);
    int info = j.type == LW_C128
                   ? LAPACKE_zgeev(COL, left, right, n, a, lead(n), w, vl,
                                   lead(n), vr, lead(n))
                   : LAPACKE_cgeev(COL, left, right, n, a, lead(n), w, vl,
                                   lead(n), vr, lead(n));
    free(a);
    store(&c->results[1], k, vl);
    store(&c->results[2], k, vr);
    set_info(&c->results[3], k, info);
  }
  return NULL;
}

lw_status lw_lapack_geev(const lw_lib_call *c) {
  char left = chr(c, "compute_left", 'V'), right = chr(c, "compute_right", 'V');
  bool real = c->target[7] == 's' || c->target[7] == 'd';
  return (real ? geev_real : geev_complex)(c, left, right);
}

lw_status lw_lapack_gees(const lw_lib_call *c) {
  job j;
  bool real = c->target[7] == 's' || c->target[7] == 'd';
  LW_TRY(begin(c, real ? "2221100" : "222100", &j));
  int n = rows(&c->operands[0]), last = c->n_results - 1;
  for (int k = 0; k < 2; k++)
    if (!is(&c->results[k], j.type, n, n)) return misfit(c);
  if (!is(&c->operands[0], j.type, n, n) ||
      !is(&c->results[2], j.type, -1, n) ||
      (real && !is(&c->results[3], j.type, -1, n)) ||
      c->results[last].shape->type != LW_S32 ||
      c->results[last - 1].shape->type != LW_S32)
    return misfit(c);
  if (chr(c, "sort", 'N') != 'N')
    return lw_error(LW_UNIMPLEMENTED, "%s with a selector", c->target);
  char mode = chr(c, "mode", 'V');
  for (int64_t k = 0; k < j.batch; k++) {
    void *a = load(&c->operands[0], k), *vs = room(&c->results[1]);
    void *wr = at(&c->results[2], 1, k);
    void *wi = real ? at(&c->results[3], 1, k) : NULL;
    int sdim = 0, info;
    if (j.type == LW_F32)
      info = LAPACKE_sgees(COL, mode, 'N', NULL, n, a, lead(n), &sdim, wr, wi,
                           vs, lead(n));
    else if (j.type == LW_F64)
      info = LAPACKE_dgees(COL, mode, 'N', NULL, n, a, lead(n), &sdim, wr, wi,
                           vs, lead(n));
    else if (j.type == LW_C64)
      info = LAPACKE_cgees(COL, mode, 'N', NULL, n, a, lead(n), &sdim, wr, vs,
                           lead(n));
    else
      info = LAPACKE_zgees(COL, mode, 'N', NULL, n, a, lead(n), &sdim, wr, vs,
                           lead(n));
    store(&c->results[0], k, a);
    store(&c->results[1], k, vs);
    set_info(&c->results[last - 1], k, sdim);
    set_info(&c->results[last], k, info);
  }
  return NULL;
}

/* ---- reductions to simpler form ---- */

lw_status lw_lapack_gehrd(const lw_lib_call *c) {
  job j;
  LW_TRY(begin(c, "2210", &j));
  int n = rows(&c->operands[0]);
  int low = (int)lw_lib_attr(c->config, "low", 1);
  int high = (int)lw_lib_attr(c->config, "high", n);
  if (!is(&c->operands[0], j.type, n, n) || !is(&c->results[0], j.type, n, n) ||
      !is(&c->results[1], j.type, -1, n - 1) ||
      c->results[2].shape->type != LW_S32)
    return misfit(c);
  for (int64_t k = 0; k < j.batch; k++) {
    void *a = load(&c->operands[0], k), *tau = at(&c->results[1], 1, k);
    int info = BY_TYPE(j.type, LAPACKE_sgehrd, LAPACKE_dgehrd, LAPACKE_cgehrd,
                       LAPACKE_zgehrd, COL, n, low, high, a, lead(n), tau);
    store(&c->results[0], k, a);
    set_info(&c->results[2], k, info);
  }
  return NULL;
}

lw_status lw_lapack_sytrd(const lw_lib_call *c) {
  job j;
  LW_TRY(begin(c, "221110", &j));
  int n = rows(&c->operands[0]);
  lw_prim part = lw_prim_part(j.type);
  if (!is(&c->operands[0], j.type, n, n) || !is(&c->results[0], j.type, n, n) ||
      !is(&c->results[1], part, -1, n) ||
      !is(&c->results[2], part, -1, n - 1) ||
      !is(&c->results[3], j.type, -1, n - 1) ||
      c->results[4].shape->type != LW_S32)
    return misfit(c);
  char uplo = chr(c, "uplo", 'L');
  for (int64_t k = 0; k < j.batch; k++) {
    void *a = load(&c->operands[0], k), *d = at(&c->results[1], 1, k);
    void *off = at(&c->results[2], 1, k), *tau = at(&c->results[3], 1, k);
    int info = BY_TYPE(j.type, LAPACKE_ssytrd, LAPACKE_dsytrd, LAPACKE_chetrd,
                       LAPACKE_zhetrd, COL, uplo, n, a, lead(n), d, off, tau);
    store(&c->results[0], k, a);
    set_info(&c->results[4], k, info);
  }
  return NULL;
}

/* ---- solves ---- */

/* The lower diagonal has n elements of which the first is unused; LAPACK wants
 * the n - 1 others. */
lw_status lw_lapack_gtsv(const lw_lib_call *c) {
  job j;
  LW_TRY(begin(c, "111211120", &j));
  int n = rows(&c->operands[3]), nrhs = cols(&c->operands[3]);
  for (int k = 0; k < 3; k++)
    if (!is(&c->operands[k], j.type, -1, n) ||
        !is(&c->results[k], j.type, -1, n))
      return misfit(c);
  if (!is(&c->operands[3], j.type, n, nrhs) ||
      !is(&c->results[3], j.type, n, nrhs) ||
      c->results[4].shape->type != LW_S32)
    return misfit(c);
  for (int64_t k = 0; k < j.batch; k++) {
    void *b = load(&c->operands[3], k), *d[3];
    for (int i = 0; i < 3; i++) {
      d[i] = at(&c->results[i], 1, k);
      memcpy(d[i], at(&c->operands[i], 1, k), (size_t)n * j.size);
    }
    void *dl = (char *)d[0] + (n > 0 ? j.size : 0);
    int info = BY_TYPE(j.type, LAPACKE_sgtsv, LAPACKE_dgtsv, LAPACKE_cgtsv,
                       LAPACKE_zgtsv, COL, n, nrhs, dl, d[1], d[2], b, lead(n));
    store(&c->results[3], k, b);
    set_info(&c->results[4], k, info);
  }
  return NULL;
}

/* alpha A X = B, column-major, in place. */
static void trsm(lw_prim t, const char *flags, int m, int n, const void *a,
                 int lda, void *b) {
  static const float one_s = 1;
  static const double one_d = 1;
  static const float one_c[2] = {1, 0};
  static const double one_z[2] = {1, 0};
  int ldb = lead(m);
  const void *alpha = t == LW_F32   ? (const void *)&one_s
                      : t == LW_F64 ? (const void *)&one_d
                      : t == LW_C64 ? (const void *)one_c
                                    : (const void *)one_z;
  BY_TYPE(t, strsm_, dtrsm_, ctrsm_, ztrsm_, &flags[0], &flags[1], &flags[2],
          &flags[3], &m, &n, alpha, a, &lda, b, &ldb, 1, 1, 1, 1);
}

lw_status lw_lapack_trsm(const lw_lib_call *c) {
  job j;
  LW_TRY(begin(c, "222", &j));
  char flags[4] = {chr(c, "side", 'L'), chr(c, "uplo", 'L'),
                   chr(c, "trans_x", 'N'), chr(c, "diag", 'N')};
  int m = rows(&c->operands[1]), n = cols(&c->operands[1]);
  int q = flags[0] == 'L' ? m : n;
  if (!is(&c->operands[0], j.type, q, q) ||
      !is(&c->operands[1], j.type, m, n) || !is(&c->results[0], j.type, m, n))
    return misfit(c);
  for (int64_t k = 0; k < j.batch; k++) {
    void *a = load(&c->operands[0], k), *b = load(&c->operands[1], k);
    trsm(j.type, flags, m, n, a, lead(q), b);
    free(a);
    store(&c->results[0], k, b);
  }
  return NULL;
}

/* ---- the cholesky and triangular-solve opcodes ---- */

/* f32 for the narrow types, which LAPACK does not have. */
static lw_prim work_type(lw_prim t) {
  return t == LW_F64 || lw_prim_is_complex(t) ? t : LW_F32;
}

static void widen(lw_prim t, const void *in, int64_t n, void *out) {
  if (t == work_type(t)) {
    memcpy(out, in, (size_t)n * (size_t)lw_prim_bytes(t));
    return;
  }
  for (int64_t k = 0; k < n; k++)
    ((float *)out)[k] = (float)lw_float_decode(
        t, lw_prim_bytes(t) == 2 ? ((const uint16_t *)in)[k]
                                 : ((const uint8_t *)in)[k]);
}

static void narrow(lw_prim t, const void *in, int64_t n, void *out) {
  if (t == work_type(t)) {
    memcpy(out, in, (size_t)n * (size_t)lw_prim_bytes(t));
    return;
  }
  for (int64_t k = 0; k < n; k++) {
    uint32_t bits = lw_float_encode(t, ((const float *)in)[k]);
    if (lw_prim_bytes(t) == 2)
      ((uint16_t *)out)[k] = (uint16_t)bits;
    else
      ((uint8_t *)out)[k] = (uint8_t)bits;
  }
}

/* Column-major n x n: zeros outside the triangle, or NaN when it failed. */
static void finish_factor(lw_prim t, void *a, int n, bool lower, bool failed) {
  size_t size = (size_t)lw_prim_bytes(t);
  bool wide = lw_prim_part(t) == LW_F64;
  int parts = lw_prim_is_complex(t) ? 2 : 1;
  for (int c = 0; c < n; c++)
    for (int r = 0; r < n; r++) {
      char *p = (char *)a + ((size_t)c * (size_t)n + (size_t)r) * size;
      if (lower ? r < c : r > c) memset(p, 0, size);
      for (int k = 0; failed && k < parts; k++) {
        if (wide)
          ((double *)p)[k] = NAN;
        else
          ((float *)p)[k] = NAN;
      }
    }
}

lw_status lw_lib_cholesky(const lw_shape *s, bool lower, const void *in,
                          void *out) {
  lw_prim t = s->type, w = work_type(t);
  if (s->rank < 2 || s->dims[s->rank - 1] != s->dims[s->rank - 2] ||
      s->dims[s->rank - 1] > INT32_MAX / 2 ||
      !(lw_prim_is_float(t) || lw_prim_is_complex(t)))
    return lw_error(LW_INVALID_ARGUMENT, "cholesky needs square matrices");
  int n = (int)s->dims[s->rank - 1];
  int64_t per = (int64_t)n * n;
  if (!s->elements) return NULL;
  size_t bytes = (size_t)per * (size_t)lw_prim_bytes(w);
  char *row = malloc(2 * bytes);
  if (!row) return lw_error(LW_RESOURCE_EXHAUSTED, "no memory for a matrix");
  char *a = row + bytes;
  LAPACKE_set_nancheck(0);
  for (int64_t k = 0; k < s->elements / per; k++) {
    size_t off = (size_t)(k * per) * (size_t)lw_prim_bytes(t);
    widen(t, (const char *)in + off, per, row);
    turn(row, a, n, n, (size_t)lw_prim_bytes(w));
    int info = BY_TYPE(w, LAPACKE_spotrf, LAPACKE_dpotrf, LAPACKE_cpotrf,
                       LAPACKE_zpotrf, COL, lower ? 'L' : 'U', n, (void *)a, n);
    finish_factor(w, a, n, lower, info != 0);
    turn(a, row, n, n, (size_t)lw_prim_bytes(w));
    narrow(t, row, per, (char *)out + off);
  }
  free(row);
  return NULL;
}

lw_status lw_lib_triangular_solve(const lw_shape *sa, const void *a,
                                  const lw_shape *sb, const void *b,
                                  const lw_triangular *opt, void *out) {
  lw_prim t = sb->type, w = work_type(t);
  if (sa->rank < 2 || sb->rank != sa->rank || sa->type != t ||
      !(lw_prim_is_float(t) || lw_prim_is_complex(t)) ||
      sa->dims[sa->rank - 1] > INT32_MAX / 2 ||
      sb->dims[sb->rank - 1] > INT32_MAX / 2)
    return lw_error(LW_INVALID_ARGUMENT, "triangular-solve: shapes do not fit");
  int m = (int)sb->dims[sb->rank - 2], n = (int)sb->dims[sb->rank - 1];
  int q = opt->left_side ? m : n;
  bool fits = sa->dims[sa->rank - 1] == q && sa->dims[sa->rank - 2] == q;
  for (int32_t d = 0; d < sa->rank - 2; d++)
    fits = fits && sa->dims[d] == sb->dims[d];
  if (!fits)
    return lw_error(LW_INVALID_ARGUMENT, "triangular-solve: shapes do not fit");
  if (!sb->elements) return NULL;
  char flags[4] = {opt->left_side ? 'L' : 'R', opt->lower ? 'L' : 'U',
                   opt->transpose_a == LW_TR_TRANSPOSE ? 'T'
                   : opt->transpose_a == LW_TR_ADJOINT ? 'C'
                                                       : 'N',
                   opt->unit_diagonal ? 'U' : 'N'};
  int64_t na = (int64_t)q * q, nb = (int64_t)m * n;
  size_t ws = (size_t)lw_prim_bytes(w), ts = (size_t)lw_prim_bytes(t);
  char *buf = malloc(2 * (size_t)(na + nb) * ws);
  if (!buf) return lw_error(LW_RESOURCE_EXHAUSTED, "no memory for a matrix");
  char *ra = buf, *ca = ra + (size_t)na * ws, *rb = ca + (size_t)na * ws,
       *cb = rb + (size_t)nb * ws;
  for (int64_t k = 0; k < sb->elements / nb; k++) {
    widen(t, (const char *)a + (size_t)(k * na) * ts, na, ra);
    widen(t, (const char *)b + (size_t)(k * nb) * ts, nb, rb);
    turn(ra, ca, q, q, ws);
    turn(rb, cb, m, n, ws);
    trsm(w, flags, m, n, ca, q, cb);
    turn(cb, rb, n, m, ws);
    narrow(t, rb, nb, (char *)out + (size_t)(k * nb) * ts);
  }
  free(buf);
  return NULL;
}
