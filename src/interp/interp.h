/* The reference evaluator: plain, and right by inspection. It defines the bits
 * of every result (docs/numerics.md); all other ways to run a module are
 * compared with it. */
#ifndef LW_INTERP_INTERP_H
#define LW_INTERP_INTERP_H

#include "hlo/hlo.h"

typedef struct {
  bool flush_denormals; /* subnormals are read and written as signed zero */
  int64_t replica_id, partition_id;
  int64_t max_steps; /* instructions evaluated before giving up; 0: no limit */
  uint64_t rng_seed; /* of the rng opcode's stream */
  int64_t max_bytes; /* of live intermediates; 0: 3/4 of RAM */
} lw_interp_options;

/* Runs m's entry computation. Arguments are checked against the parameters'
 * shapes (layouts ignored). The result lives in out_arena. opts may be NULL.
 * A dynamic dimension of the result is padded with zeros up to its bound.
 *
 * Errors name the instruction and its line: INVALID_ARGUMENT for arguments or
 * modules that make no sense, UNIMPLEMENTED for what needs a host or more
 * devices and for unknown custom calls, RESOURCE_EXHAUSTED for sizes beyond
 * memory, DEADLINE_EXCEEDED past max_steps. */
LW_MUST_USE lw_status lw_interp_run(const lw_module *m,
                                    const lw_literal *const *args, int n_args,
                                    const lw_interp_options *opts,
                                    lw_arena *out_arena, lw_literal **result);

/* Evaluates one instruction on literal operands (one an operand slot), with
 * the computations it calls. Parameters are refused. */
LW_MUST_USE lw_status lw_interp_eval_inst(const lw_inst *inst,
                                          const lw_literal *const *operands,
                                          const lw_interp_options *opts,
                                          lw_arena *out_arena,
                                          lw_literal **result);

#endif
