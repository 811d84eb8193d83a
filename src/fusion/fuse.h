/* The mechanics of fusions: making one, taking a producer in, several outputs.
 * They decide nothing.
 *
 * Lists stay topological: a fusion stands where its root stood, a taken
 * producer where the parameter stood that it replaces. Operand order,
 * parameter names and the naming of fusions are XLA's (so that --fusion=xla
 * prints what XLA prints). */
#ifndef LW_FUSION_FUSE_H
#define LW_FUSION_FUSE_H

#include "hlo/hlo.h"

static inline lw_comp *lw_fusion_body(const lw_inst *fusion) {
  return lw_inst_comp(fusion, LW_ATTR_CALLS);
}
static inline bool lw_inst_is_fusion(const lw_inst *i) {
  return i->opcode == LW_OP_FUSION;
}

/* A fusion whose body is one clone of root, in root's place; root is removed.
 * name and body_name are made unique. Source info is root's, sharding not. */
lw_inst *lw_fusion_new(lw_inst *root, lw_fusion_kind kind, const char *name,
                       const char *body_name);
/* Takes a copy of an operand into the fusion: operand and parameter go, the
 * producer's own operands come (those that are there already are shared, new
 * ones are appended). A producer that is a fusion has its body taken, root
 * first. The producer itself stays, one user poorer. Returns the clone of the
 * producer (of its root). */
lw_inst *lw_fusion_take(lw_inst *fusion, lw_inst *producer);
/* The slot of def among the operands, or -1. */
int32_t lw_fusion_slot(const lw_inst *fusion, const lw_inst *def);

/* Makes one fusion of two that do not depend on each other's results except
 * b reading a's (then a's root takes the place of b's parameter): outputs are
 * a's then b's, a tuple; users read them through get-tuple-elements. At least
 * one side is a fusion; both in one computation, b not reachable from a except
 * directly. Returns the new fusion. */
lw_inst *lw_fusion_join(lw_inst *a, lw_inst *b, const char *name);

/* Instructions of a computation that a control edge touches, as a byte an id
 * (in the arena): fusing passes leave them alone. */
uint8_t *lw_control_touched(const lw_comp *c, lw_arena *a);

/* The computations that run as code of their own (entry, loop bodies and
 * conditions, branches, calls), callees first; not those that an instruction
 * applies to elements, nor fusions' bodies. */
lw_comp **lw_comps_to_fuse(const lw_module *m, lw_arena *a, int32_t *n);

/* Every computation in XLA's order: as the module lists them where that has
 * callees first (XLA keeps computations in the order in which they were added,
 * and its dumps list them so), else callees first by a walk. */
lw_comp **lw_fusion_listed_order(const lw_module *m, lw_arena *a, int32_t *n);

#endif
