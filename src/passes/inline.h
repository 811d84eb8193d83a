/* Putting a computation's body in the place of an instruction that calls it;
 * and copies of control computations. */
#ifndef LW_PASSES_INLINE_H
#define LW_PASSES_INLINE_H

#include "hlo/hlo.h"

/* Clones callee's instructions right before site, its parameters being args
 * (instructions of site's computation); returns the clone of the root (or one
 * of args). Called computations are shared with the callee. Control
 * predecessors of site hold for every cloned instruction. */
lw_inst *lw_inline_body(lw_inst *site, const lw_comp *callee,
                        lw_inst *const *args, int32_t n_args);
/* lw_inline_body, then site is replaced by the result and removed. Control
 * edges are looked for only when the module has any (a search each call would
 * make inlining quadratic). */
void lw_inline_at(lw_inst *site, const lw_comp *callee, lw_inst *const *args,
                  int32_t n_args, bool control_edges);
bool lw_module_has_control_edges(const lw_module *m);
/* Every fusion in c gets a copy of its body (which no two fusions share),
 * nested ones too. For computations and instructions that were copied. */
void lw_copy_fusion_bodies(lw_comp *c);
/* A value's elements: the tuple's operand, else a get-tuple-element placed
 * right before site. */
lw_inst *lw_tuple_element(lw_inst *tuple, int32_t k, lw_inst *site);

#endif
