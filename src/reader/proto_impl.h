/* Shared by the proto_*.c files only.
 *
 *   proto_wire.c     the wire format
 *   proto_types.c    shapes, layouts, shardings, metadata, small messages
 *   proto_literal.c  literals
 *   proto_attr_*.c   instruction attributes, one by one
 *   proto_text.c     attributes the IR keeps as text (origin, statistics ...)
 *   proto_read.c     modules, computations, instructions in
 *   proto_write.c    and out
 *
 * Reading keeps the first error and goes on with empty values; lw_read_proto
 * returns that error. */
#ifndef LW_READER_PROTO_IMPL_H
#define LW_READER_PROTO_IMPL_H

#include "reader/proto.h"
#include "reader/proto_wire.h"

enum { PROTO_MAX_DEPTH = 100 };

typedef struct {
  lw_context *ctx;
  lw_module *module;
  lw_arena *arena;
  lw_status err;
  lw_map comps;    /* computation id -> lw_comp* */
  pb_msg payloads; /* the module: its field 22 lists payloads by id */
} proto_in;

void proto_fail(proto_in *in, pb_msg at, const char *fmt, ...) LW_PRINTF(3, 4);
/* The submessage, checked; p NULL when absent. */
pb_msg proto_sub(proto_in *in, pb_msg m, uint32_t number);
/* The next submessage of a repeated field, checked. */
bool proto_next(proto_in *in, pb_iter *it, uint32_t number, pb_msg *out);
/* Interned; NULL when absent or empty. Stops at an embedded NUL. */
const char *proto_str(proto_in *in, pb_msg m, uint32_t number);
/* As a NUL-terminated copy, "" for an absent one. */
const char *proto_str_or(proto_in *in, pb_msg m, uint32_t number,
                         const char *dflt);
/* A repeated varint field in the arena. */
const int64_t *proto_i64s(proto_in *in, pb_msg m, uint32_t number, int32_t *n);
const int32_t *proto_i32s(proto_in *in, pb_msg m, uint32_t number, int32_t *n);

/* A Payload's bytes: its own, or those of the module's table. */
const char *proto_payload(proto_in *in, pb_msg m, uint32_t number);

const lw_shape *proto_read_shape(proto_in *in, pb_msg m, int depth);
void proto_write_shape(lw_buf *b, uint32_t number, const lw_shape *s);
const lw_sharding *proto_read_sharding(proto_in *in, pb_msg m, int depth);
void proto_write_sharding(lw_buf *b, uint32_t number, const lw_sharding *s);
const lw_metadata *proto_read_metadata(proto_in *in, pb_msg m);
void proto_write_metadata(lw_buf *b, uint32_t number, const lw_metadata *m);
lw_frontend_attrs proto_read_frontend(proto_in *in, pb_msg m);
/* extra_key NULL: none. */
void proto_write_frontend(lw_buf *b, uint32_t number,
                          const lw_frontend_attrs *f, const char *extra_key,
                          const char *extra_value);

lw_literal *proto_read_literal(proto_in *in, pb_msg m, int depth);
lw_status proto_write_literal(lw_buf *b, uint32_t number, const lw_literal *l);

/* Sets what the opcode takes from an HloInstructionProto. */
void proto_read_attrs(proto_in *in, pb_msg m, lw_inst *inst);
/* comp_ids: lw_comp* -> id in the proto. */
lw_status proto_write_attrs(lw_buf *b, const lw_inst *inst,
                            const lw_map *comp_ids);

/* Text forms. Reading gives text in the arena (NULL: nothing to say); writing
 * appends the message, or fails on text it does not understand. */
const char *proto_origin_text(proto_in *in, pb_msg m);
lw_status proto_write_origin(lw_buf *b, uint32_t number, const char *text);
const char *proto_accuracy_text(proto_in *in, pb_msg m);
lw_status proto_write_accuracy(lw_buf *b, uint32_t number, const char *text);
const char *proto_statistics_text(proto_in *in, pb_msg m);
lw_status proto_write_statistics(lw_buf *b, uint32_t number, const char *text);
const char *proto_sparsity_text(proto_in *in, pb_msg m);
lw_status proto_write_sparsity(lw_buf *b, uint32_t number, const char *text);
const char *proto_domain_text(proto_in *in, pb_msg entry, pb_msg exit);
lw_status proto_write_domain(lw_buf *b, uint32_t entry, uint32_t exit,
                             const char *text);
const char *proto_named_sharding_text(proto_in *in, pb_msg m);
lw_status proto_write_named_sharding(lw_buf *b, uint32_t number,
                                     const char *text);
const char *proto_mesh_groups_text(proto_in *in, pb_msg m);
lw_status proto_write_mesh_groups(lw_buf *b, uint32_t number, const char *text);

#endif
