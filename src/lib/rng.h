/* Random bits (docs/numerics.md 9): ThreeFry-2x32-20 and Philox-4x32-10 as
 * XLA's rng-bit-generator runs them, and the values of the stateful rng. */
#ifndef LW_LIB_RNG_H
#define LW_LIB_RNG_H

#include "hlo/hlo.h"

/* rng-bit-generator. state: n_state u64 words (key first; ThreeFry 2, Philox 2
 * or 3, default is Philox). new_state gets as many words, out the bits of
 * `shape` (integers of 8 to 64 bits, narrower ones from their low bits). */
LW_MUST_USE lw_status lw_rng_bits(lw_rng_algorithm algorithm, int64_t n_state,
                                  const uint64_t *state, uint64_t *new_state,
                                  const lw_shape *shape, void *out);

/* The words of rng-get-and-update-state before the first call, low first. */
#define LW_RNG_STATE_LOW 0x7012395ull
#define LW_RNG_STATE_HIGH 0ull

/* The number of an rng instruction in its module: its frontend attribute
 * lawson.rng when it has one, else how many rng instructions come before it,
 * computations and instructions in module order. */
int64_t lw_rng_order(const lw_inst *rng);
/* Writes every number down as lawson.rng: passes that inline, copy or remove
 * code then change none of them. */
void lw_rng_number(lw_module *m);
/* Fills out with n values of type t. a, b: bounds [a, b) or mean and standard
 * deviation, one element of type t each. Element i depends only on seed,
 * order and i. */
LW_MUST_USE lw_status lw_rng_fill(uint64_t seed, int64_t order,
                                  lw_distribution dist, lw_prim t, int64_t n,
                                  const void *a, const void *b, void *out);

/* ThreeFry-2x32, 20 rounds, and Philox-4x32, 10 rounds; x in place. */
void lw_threefry(const uint32_t key[2], uint32_t x[2]);
void lw_philox(const uint32_t key[2], uint32_t x[4]);

#endif
