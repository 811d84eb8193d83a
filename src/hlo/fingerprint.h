/* Fingerprints: 64-bit hashes of what a module says, equal over processes and
 * machines.
 *
 * Names, ids, metadata, origins, statistics and the order of definition do not
 * count; the instruction order counts in scheduled modules. Computations count
 * by content. Replica and partition counts do not count (protos lack them).
 * Linear in the size of the module (and of its constants, when they count).
 */
#ifndef LW_HLO_FINGERPRINT_H
#define LW_HLO_FINGERPRINT_H

#include "hlo/hlo.h"

enum {
  LW_FP_STRUCTURE = 1, /* opcodes, operands, dims, types, attributes; always */
  LW_FP_LAYOUT = 2,
  LW_FP_SHARDING = 4,       /* and parameter_replication */
  LW_FP_BACKEND_CONFIG = 8, /* and frontend attributes */
  LW_FP_CONSTANTS = 16,     /* values */
  LW_FP_ALL = 31
};

uint64_t lw_module_fingerprint(const lw_module *m, unsigned levels);
/* The instruction with everything it is computed from. */
uint64_t lw_inst_fingerprint(const lw_inst *i, unsigned levels);
uint64_t lw_shape_fingerprint(const lw_shape *s, unsigned levels);

/* All fingerprints of a module, computed once. The module must not change
 * between lw_fp_new and the questions. */
typedef struct lw_fp lw_fp;
lw_fp *lw_fp_new(const lw_module *m, unsigned levels);
void lw_fp_free(lw_fp *f);
uint64_t lw_fp_module(const lw_fp *f);
uint64_t lw_fp_comp(const lw_fp *f, const lw_comp *c);
/* With operands. */
uint64_t lw_fp_inst(const lw_fp *f, const lw_inst *i);
/* Without operands. */
uint64_t lw_fp_local(const lw_fp *f, const lw_inst *i);

#endif
