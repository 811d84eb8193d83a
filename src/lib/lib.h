/* Library ops: FFT, factorisations, random bits and the custom-call table. The
 * interpreter and the runtime call the same entries, so that their results
 * have the same bits (docs/numerics.md 9, 10). All data is dense and row-major
 * in literal format; all calls run on the calling thread alone. */
#ifndef LW_LIB_LIB_H
#define LW_LIB_LIB_H

#include "hlo/hlo.h"

/* ---- custom calls ---- */

/* One array. For results, data is uninitialised room for the shape. */
typedef struct {
  const lw_shape *shape;
  void *data;
} lw_lib_buffer;

/* Operands and results are the leaves of the operands' and the result's
 * shapes, in order (tokens included, with NULL data). */
typedef struct {
  const char *target;
  const char *config; /* backend_config as it stands, or NULL */
  int32_t n_operands, n_results;
  const lw_lib_buffer *operands;
  lw_lib_buffer *results;
} lw_lib_call;

typedef lw_status (*lw_lib_fn)(const lw_lib_call *call);

typedef struct {
  const char *target;
  lw_lib_fn fn;
  const char *description;
} lw_lib_entry;

/* The entry of a target name, or NULL. */
const lw_lib_entry *lw_lib_find(const char *target);
/* All entries, in order of names, for listings. */
const lw_lib_entry *lw_lib_entries(int *n);
/* Calls the target; UNIMPLEMENTED names an unknown one and its neighbours. */
LW_MUST_USE lw_status lw_lib_run(const lw_lib_call *call);
/* True for targets that only carry shardings or barriers: on one device the
 * results are the operands (Sharding, SPMD*Shape, xla.sdy.*, ...). */
bool lw_lib_is_identity(const char *target);
/* UNIMPLEMENTED: "custom call 'x' is unknown; did you mean 'y'?". */
lw_status lw_lib_unknown(const char *target);

/* An attribute of a backend_config: an MLIR dictionary ({uplo = 76 : ui8}) or
 * JSON ({"uplo": 76}). Booleans are 0 and 1; dflt when absent or no integer. */
int64_t lw_lib_attr(const char *config, const char *key, int64_t dflt);

/* ---- fft ---- */

/* The fft opcode over the last n_length dims. in: the operand's type and dims
 * (complex for FFT, IFFT, IRFFT; real for RFFT). out: room for the result. */
LW_MUST_USE lw_status lw_lib_fft(lw_fft_type type, int32_t n_length,
                                 const int64_t *length,
                                 const lw_shape *in_shape, const void *in,
                                 const lw_shape *out_shape, void *out);

/* ---- cholesky, triangular-solve ---- */

/* The cholesky opcode: the factor's triangle, zeros in the other; NaN
 * throughout when a matrix is not positive definite. */
LW_MUST_USE lw_status lw_lib_cholesky(const lw_shape *shape, bool lower,
                                      const void *in, void *out);
typedef struct {
  bool left_side, lower, unit_diagonal;
  lw_transpose_a transpose_a;
} lw_triangular;
/* The triangular-solve opcode; out may be b. */
LW_MUST_USE lw_status lw_lib_triangular_solve(
    const lw_shape *a_shape, const void *a, const lw_shape *b_shape,
    const void *b, const lw_triangular *opt, void *out);

#endif
