/* Random modules: the producer behind the property test and the fuzz targets.
 *
 * Everything is built from one operation: "consume value a by opcode op",
 * making the other operands that it needs. So a random module is a random walk,
 * and the module of a producer/consumer pair is two such steps.
 */
#ifndef LW_TESTS_GEN_H
#define LW_TESTS_GEN_H

#include "hlo/hlo.h"

/* A source of choices: the bytes first (fuzzers), then a generator seeded with
 * them. */
typedef struct {
  const uint8_t *data;
  size_t len;
  uint64_t state;
} lw_rand;

uint64_t lw_rand_next(lw_rand *r);
/* In [0, n). */
int64_t lw_rand_below(lw_rand *r, int64_t n);

typedef struct {
  int max_steps;            /* ops wanted; 0: 24 */
  int64_t max_elements;     /* of any value; 0: 20000 */
  bool control_flow, heavy; /* while/conditional; dot, conv, sort, window ... */
  bool xla_runnable; /* only what XLA:CPU compiles too (no narrow ints, f4 ...)
                      */
} lw_gen_options;

/* A module that the checker accepts. */
lw_module *lw_gen_module(lw_context *ctx, lw_rand *r,
                         const lw_gen_options *options);
/* A module in which, for each consumer of the list that some type and shape
 * make legal, an instruction of opcode producer is consumed directly by one of
 * that opcode; made[k] says which. NULL when there is none. */
lw_module *lw_gen_pairs(lw_context *ctx, lw_opcode producer,
                        const lw_opcode *consumers, int n, bool *made,
                        lw_rand *r);
/* Opcodes the generator can make. */
const lw_opcode *lw_gen_opcodes(int *n);

#endif
