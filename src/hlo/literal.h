/* Literals: values of a shape, dense, in logical row-major order whatever the
 * layout; lw_prim_bytes(type) bytes an element (sub-byte integers one byte
 * each, sign- or zero-extended; f4/f6 codes in the low bits). */
#ifndef LW_HLO_LITERAL_H
#define LW_HLO_LITERAL_H

#include "hlo/shape.h"

typedef struct lw_literal {
  const lw_shape *shape;
  void *data; /* arrays */
  int32_t n_elems;
  struct lw_literal **elems; /* tuples */
} lw_literal;

/* Zero-filled; fails when too large for memory. Owned by the arena. */
LW_MUST_USE lw_status lw_literal_new(lw_arena *a, const lw_shape *shape,
                                     lw_literal **out);
LW_MUST_USE lw_status lw_literal_clone(lw_arena *a, const lw_literal *src,
                                       lw_literal **out);
/* Same shape (layouts ignored) and same bytes. */
bool lw_literal_equal(const lw_literal *a, const lw_literal *b);
uint64_t lw_literal_hash(const lw_literal *l, uint64_t seed);
int64_t lw_literal_bytes(const lw_literal *l); /* one array's data */

/* Element access by linear row-major index. Integers and PRED. */
int64_t lw_literal_get_int(const lw_literal *l, int64_t i);
void lw_literal_set_int(lw_literal *l, int64_t i, int64_t v);
/* Any real type, floats of every width converted exactly to double; set rounds
 * once to the type (nearest even). Complex: part 0 re, 1 im. */
double lw_literal_get_f64(const lw_literal *l, int64_t i, int part);
void lw_literal_set_f64(lw_literal *l, int64_t i, int part, double v);
/* Every element has the same bits as element 0 (and there is one). */
bool lw_literal_is_uniform(const lw_literal *l);

/* Exact conversions of one narrow float code (bf16, f16, f8*, f6*, f4*) and
 * rounding from double, nearest even, the type's overflow rule (numerics.md).
 */
double lw_float_decode(lw_prim type, uint32_t bits);
uint32_t lw_float_encode(lw_prim type, double v);

#endif
