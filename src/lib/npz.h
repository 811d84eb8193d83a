/* NumPy's .npz and .npy: arrays in and out of literals. Narrow floats and
 * sub-byte integers have no NumPy type: bf16 travels as uint16, f8/f6/f4 and
 * s4/u4/s2/u2/s1/u1 as uint8 (signed ones also as int8), bits as they are. */
#ifndef LW_LIB_NPZ_H
#define LW_LIB_NPZ_H

#include "hlo/literal.h"

typedef struct lw_npz lw_npz;

/* Opens for reading. Errors name the file. */
LW_MUST_USE lw_status lw_npz_open(const char *path, lw_npz **out);
void lw_npz_close(lw_npz *z);
int lw_npz_count(const lw_npz *z);
/* Key i ("p0"), without ".npy"; NULL out of range. */
const char *lw_npz_key(const lw_npz *z, int i);
bool lw_npz_has(const lw_npz *z, const char *key);

/* Reads an array that must have this shape's type and dims; the literal lives
 * in a. NOT_FOUND names the key and lists those there are; INVALID_ARGUMENT
 * says what was expected and what was found. */
LW_MUST_USE lw_status lw_npz_read(lw_npz *z, const char *key,
                                  const lw_shape *shape, lw_arena *a,
                                  lw_literal **out);
/* The array as the file describes it (uint16 is U16: the file cannot say
 * bf16). */
LW_MUST_USE lw_status lw_npz_read_any(lw_npz *z, const char *key,
                                      lw_context *ctx, lw_arena *a,
                                      lw_literal **out);

/* Writes arrays (no tuples) under these keys, deflated, through a temporary
 * file. The same arrays give the same bytes. */
LW_MUST_USE lw_status lw_npz_write(const char *path, int n,
                                   const char *const *keys,
                                   const lw_literal *const *arrays);

#endif
