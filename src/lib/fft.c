/* The fft opcode on KissFFT (BSD): complex lines of one length at a time.
 *
 * Real transforms run as complex ones: RFFT drops the redundant half of the
 * last dimension first, IRFFT rebuilds it last. The float library comes as C,
 * the double one as the same project's C++ header (fft_double.cc).
 */
#include "lib/fft_line.h"

#include <kissfft/kiss_fft.h>
#include <stdlib.h>
#include <string.h>

#include "lib/lib.h"

/* ---- one length ---- */

typedef struct {
  bool wide;
  int64_t n;
  kiss_fft_cfg narrow_plan;
  lw_fft_double *wide_plan;
} line_plan;

static lw_status plan_make(bool wide, int64_t n, bool inverse, line_plan *p) {
  *p = (line_plan){.wide = wide, .n = n};
  if (n < 1 || n > (int64_t)1 << 28)
    return lw_error(LW_INVALID_ARGUMENT, "fft of length %lld", (long long)n);
  if (wide)
    p->wide_plan = lw_fft_double_new(n, inverse);
  else
    p->narrow_plan = kiss_fft_alloc((int)n, inverse, NULL, NULL);
  if (!p->wide_plan && !p->narrow_plan)
    return lw_error(LW_RESOURCE_EXHAUSTED,
                    "no memory for an fft of length %lld", (long long)n);
  return NULL;
}

static void plan_free(line_plan *p) {
  kiss_fft_free(p->narrow_plan);
  lw_fft_double_free(p->wide_plan);
}

static void plan_run(const line_plan *p, const void *in, void *out) {
  if (p->wide)
    lw_fft_double_run(p->wide_plan, in, out);
  else
    kiss_fft(p->narrow_plan, in, out);
}

/* ---- along a dimension ---- */

/* An array of complex numbers; scale divides by the length (inverses). */
typedef struct {
  bool wide;
  size_t size; /* bytes of a complex */
  int32_t rank;
  int64_t dims[LW_MAX_RANK];
  char *data;
} grid;

static int64_t grid_count(const grid *g) {
  int64_t n = 1;
  for (int32_t d = 0; d < g->rank; d++) n *= g->dims[d];
  return n;
}

static void scale_line(const grid *g, int64_t n, void *line) {
  for (int64_t k = 0; k < 2 * n; k++) {
    if (g->wide)
      ((double *)line)[k] /= (double)n;
    else
      ((float *)line)[k] /= (float)n;
  }
}

static lw_status transform_dim(grid *g, int32_t dim, bool inverse) {
  int64_t n = g->dims[dim], inner = 1;
  for (int32_t d = dim + 1; d < g->rank; d++) inner *= g->dims[d];
  int64_t lines = grid_count(g) / n;
  line_plan p;
  LW_TRY(plan_make(g->wide, n, inverse, &p));
  char *in = malloc(2 * (size_t)n * g->size);
  if (!in) {
    plan_free(&p);
    return lw_error(LW_RESOURCE_EXHAUSTED, "no memory for an fft");
  }
  char *out = in + (size_t)n * g->size;
  for (int64_t l = 0; l < lines; l++) {
    char *first =
        g->data + (size_t)(l / inner * n * inner + l % inner) * g->size;
    for (int64_t k = 0; k < n; k++)
      memcpy(in + (size_t)k * g->size, first + (size_t)(k * inner) * g->size,
             g->size);
    plan_run(&p, in, out);
    if (inverse) scale_line(g, n, out);
    for (int64_t k = 0; k < n; k++)
      memcpy(first + (size_t)(k * inner) * g->size, out + (size_t)k * g->size,
             g->size);
  }
  free(in);
  plan_free(&p);
  return NULL;
}

/* ---- real and half-complex ends ---- */

static void from_real(const grid *g, const void *in) {
  int64_t n = grid_count(g);
  for (int64_t k = 0; k < n; k++) {
    if (g->wide)
      ((double *)g->data)[2 * k] = ((const double *)in)[k];
    else
      ((float *)g->data)[2 * k] = ((const float *)in)[k];
  }
}

static void to_real(const grid *g, void *out) {
  int64_t n = grid_count(g);
  for (int64_t k = 0; k < n; k++) {
    if (g->wide)
      ((double *)out)[k] = ((const double *)g->data)[2 * k];
    else
      ((float *)out)[k] = ((const float *)g->data)[2 * k];
  }
}

/* Keeps the first `keep` complex numbers of each row of the last dimension. */
static void cut_rows(const grid *g, int64_t keep, char *out) {
  int64_t n = g->dims[g->rank - 1], count = grid_count(g) / n;
  for (int64_t r = 0; r < count; r++)
    memcpy(out + (size_t)(r * keep) * g->size,
           g->data + (size_t)(r * n) * g->size, (size_t)keep * g->size);
}

static void conjugate(bool wide, void *c) {
  if (wide)
    ((double *)c)[1] = -((double *)c)[1];
  else
    ((float *)c)[1] = -((float *)c)[1];
}

static void make_real(bool wide, void *c) {
  if (wide)
    ((double *)c)[1] = 0;
  else
    ((float *)c)[1] = 0;
}

/* Rows of n from their first n/2+1 elements: x(n-k) = conj x(k). The imaginary
 * parts of x(0) and, for even n, of x(n/2) do not count. */
static void mirror_rows(const grid *g, const char *half, int64_t have) {
  int64_t n = g->dims[g->rank - 1], count = grid_count(g) / n;
  for (int64_t r = 0; r < count; r++) {
    char *row = g->data + (size_t)(r * n) * g->size;
    memcpy(row, half + (size_t)(r * have) * g->size, (size_t)have * g->size);
    make_real(g->wide, row);
    if (n % 2 == 0) make_real(g->wide, row + (size_t)(n / 2) * g->size);
    for (int64_t k = have; k < n; k++) {
      memcpy(row + (size_t)k * g->size, row + (size_t)(n - k) * g->size,
             g->size);
      conjugate(g->wide, row + (size_t)k * g->size);
    }
  }
}

/* ---- the opcode ---- */

static lw_status check(lw_fft_type type, int32_t n_length,
                       const int64_t *length, const lw_shape *in,
                       const lw_shape *out) {
  bool real_in = type == LW_RFFT, real_out = type == LW_IRFFT;
  bool ok =
      n_length >= 1 && in->rank >= n_length && in->rank == out->rank &&
      lw_prim_part(in->type) == lw_prim_part(out->type) &&
      lw_prim_is_complex(in->type) == !real_in &&
      lw_prim_is_complex(out->type) == !real_out &&
      (lw_prim_part(in->type) == LW_F32 || lw_prim_part(in->type) == LW_F64);
  for (int32_t k = 0; ok && k < in->rank; k++) {
    int32_t l = k - (in->rank - n_length);
    int64_t want_in = l < 0 ? in->dims[k] : length[l], want_out = want_in;
    if (real_in && k == in->rank - 1) want_out = want_in / 2 + 1;
    if (real_out && k == in->rank - 1) want_in = want_in / 2 + 1;
    ok = in->dims[k] == want_in && out->dims[k] == want_out;
  }
  return ok ? NULL
            : lw_error(LW_INVALID_ARGUMENT,
                       "fft_length does not fit operand and result");
}

static lw_status run(lw_fft_type type, int32_t n_length, grid *g,
                     const lw_shape *in_shape, const void *in, void *out) {
  int32_t first = g->rank - n_length, last = g->rank - 1;
  size_t bytes = (size_t)grid_count(g) * g->size;
  if (type == LW_RFFT)
    from_real(g, in);
  else if (type != LW_IRFFT)
    memcpy(g->data, in, bytes);
  if (type == LW_IRFFT) { /* the other dims first, on the half rows */
    grid half = *g;
    half.dims[last] = in_shape->dims[last];
    half.data = malloc((size_t)grid_count(&half) * g->size);
    if (!half.data)
      return lw_error(LW_RESOURCE_EXHAUSTED, "no memory for an fft");
    memcpy(half.data, in, (size_t)grid_count(&half) * g->size);
    lw_status s = NULL;
    for (int32_t d = first; d < last && !s; d++)
      s = transform_dim(&half, d, true);
    mirror_rows(g, half.data, half.dims[last]);
    free(half.data);
    if (!s) s = transform_dim(g, last, true);
    if (!s) to_real(g, out);
    return s;
  }
  for (int32_t d = last; d >= first; d--)
    LW_TRY(transform_dim(g, d, type == LW_IFFT));
  if (type == LW_RFFT)
    cut_rows(g, g->dims[last] / 2 + 1, out);
  else
    memcpy(out, g->data, bytes);
  return NULL;
}

lw_status lw_lib_fft(lw_fft_type type, int32_t n_length, const int64_t *length,
                     const lw_shape *in_shape, const void *in,
                     const lw_shape *out_shape, void *out) {
  LW_TRY(check(type, n_length, length, in_shape, out_shape));
  bool wide = lw_prim_part(in_shape->type) == LW_F64;
  grid g = {.wide = wide, .size = wide ? 16 : 8, .rank = in_shape->rank};
  const lw_shape *full = type == LW_IRFFT ? out_shape : in_shape;
  memcpy(g.dims, full->dims, (size_t)g.rank * sizeof *g.dims);
  if (!in_shape->elements || !out_shape->elements) return NULL;
  g.data = calloc((size_t)grid_count(&g), g.size);
  if (!g.data) return lw_error(LW_RESOURCE_EXHAUSTED, "no memory for an fft");
  lw_status s = run(type, n_length, &g, in_shape, in, out);
  free(g.data);
  return s;
}
