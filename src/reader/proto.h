/* XLA's protos (xla/service/hlo.proto, xla/xla_data.proto) in and out:
 * HloModuleProto, HloProto and HloSnapshot.
 *
 * Field numbers are XLA's as of jaxlib 0.10.2. Unknown fields are skipped.
 * Truncated or hostile input gives an error with a byte offset; nesting is
 * bounded. What an instruction cannot hold (profile data, payloads,
 * cross-program prefetches) is dropped on reading. */
#ifndef LW_READER_PROTO_H
#define LW_READER_PROTO_H

#include "base/buf.h"
#include "hlo/hlo.h"

typedef enum { LW_PROTO_MODULE, LW_PROTO_HLO, LW_PROTO_SNAPSHOT } lw_proto_kind;

/* HloSnapshot: a module with the inputs and the output of one run. The
 * literals live in the module's arena. */
typedef struct {
  lw_module *module;
  lw_proto_kind kind;
  int32_t n_arguments;
  lw_literal **arguments;
  lw_literal *result; /* NULL when absent */
  const char *platform;
} lw_snapshot;

/* Reads whichever of the three it is: the first, in XLA's order (HloSnapshot,
 * HloProto, HloModuleProto), that holds a module with computations. */
LW_MUST_USE lw_status lw_read_proto(lw_context *ctx, const void *data,
                                    size_t len, lw_module **out);
LW_MUST_USE lw_status lw_read_snapshot(lw_context *ctx, const void *data,
                                       size_t len, lw_snapshot *out);

/* Appends the module as HloModuleProto, or as HloProto around it. Unique ids
 * are kept where they are XLA's (computation id in the upper half) and given
 * anew otherwise. */
LW_MUST_USE lw_status lw_write_proto(const lw_module *m, bool as_hlo_proto,
                                     lw_buf *out);

#endif
