/* The ways into the IR: HLO text, and the protos (proto_*.c). */
#ifndef LW_READER_READER_H
#define LW_READER_READER_H

#include "base/diag.h"
#include "hlo/hlo.h"

/* Reads one module, a run of bare computations or a single instruction, as
 * XLA's parser accepts them (docs/ir.md says where we are wider or stricter).
 *
 * All problems found are added to diags (NULL: kept to ourselves), which then
 * points at the text; so text, and filename, must live as long as diags does.
 * On error *out is NULL and the status holds every rendered message. The text
 * need not end in NUL. filename is for messages only. */
LW_MUST_USE lw_status lw_read_text(lw_context *ctx, const char *text,
                                   size_t len, const char *filename,
                                   lw_diags *diags, lw_module **out);

#endif
