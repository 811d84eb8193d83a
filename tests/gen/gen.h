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
/* Types and ranks: bit r of ranks[t]. */
typedef struct {
  uint8_t ranks[LW_PRIM_COUNT];
} lw_gen_kinds;
/* Adds what results opcode o gives and what operands it takes here. An opcode
 * that is not made gives nothing. */
void lw_gen_opcode_kinds(lw_context *ctx, lw_opcode o, lw_gen_kinds *gives,
                         lw_gen_kinds *takes);
/* Some result of the producer is an operand of the consumer. */
bool lw_gen_pair_is_legal(const lw_gen_kinds *gives, const lw_gen_kinds *takes);
/* A module in which, for each consumer of the list, an instruction of opcode
 * producer is consumed (itself or in a tuple) by one of that opcode; made[k]
 * says which were managed. NULL when none was. */
lw_module *lw_gen_pairs(lw_context *ctx, lw_opcode producer,
                        const lw_opcode *consumers, int n, bool *made,
                        lw_rand *r);
/* Opcodes the generator can make. */
const lw_opcode *lw_gen_opcodes(int *n);

#endif
