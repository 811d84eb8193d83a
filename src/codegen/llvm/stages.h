/* Helpers that stages share. */
#ifndef LW_CODEGEN_LLVM_STAGES_H
#define LW_CODEGEN_LLVM_STAGES_H

#include "codegen/llvm/emit.h"

/* Stores at element lin of a result, in all its homes. */
void lw_store_result(lw_fn *f, const lw_stage *s, int32_t result, lw_ev v,
                     const lw_expr *lin);

/* lw_stage_width, less where the domain has fewer elements: for stages whose
 * lanes are elements of the domain. */
int lw_domain_width(const lw_fn *f, const lw_stage *s);

/* The element e with op(e, x) = x bit for bit (literal format, 16 bytes);
 * false when the type has none. */
bool lw_neutral(lw_opcode op, lw_prim t, void *out);

#endif
