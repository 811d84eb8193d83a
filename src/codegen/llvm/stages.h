/* Helpers that stages share. */
#ifndef LW_CODEGEN_LLVM_STAGES_H
#define LW_CODEGEN_LLVM_STAGES_H

#include "codegen/llvm/emit.h"

/* Stores at element lin of a result, in all its homes. */
void lw_store_result(lw_fn *f, const lw_stage *s, int32_t result, lw_ev v,
                     const lw_expr *lin);

/* The element e with op(e, x) = x bit for bit (literal format, 16 bytes);
 * false when the type has none. */
bool lw_neutral(lw_opcode op, lw_prim t, void *out);

#endif
