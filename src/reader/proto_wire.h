/* The protobuf wire format: fields of one message, read in place, and written
 * into a buffer. No schema: callers know field numbers and types.
 *
 * Reading never fails half-way: pb_check walks a message once and reports the
 * first malformed byte; getters treat anything malformed as absent. Unknown
 * fields are skipped. Nested messages are checked by whoever enters them. */
#ifndef LW_READER_PROTO_WIRE_H
#define LW_READER_PROTO_WIRE_H

#include "base/buf.h"
#include "base/vec.h"

enum { PB_VARINT = 0, PB_I64 = 1, PB_LEN = 2, PB_GROUP = 3, PB_I32 = 5 };

/* A message, string or packed list inside the input; p NULL: absent. */
typedef struct {
  const uint8_t *p, *end;
  size_t at; /* offset of p in the whole input, for messages */
} pb_msg;

typedef struct {
  pb_msg rest;
  uint32_t number, wire;
  uint64_t value; /* PB_VARINT, PB_I64, PB_I32 */
  pb_msg bytes;   /* PB_LEN */
} pb_iter;

typedef LW_VEC(int64_t) pb_i64s;

static inline pb_iter pb_begin(pb_msg m) { return (pb_iter){.rest = m}; }
static inline size_t pb_size(pb_msg m) {
  return m.p ? (size_t)(m.end - m.p) : 0;
}
/* The next field; false at the end and at malformed bytes. */
bool pb_next(pb_iter *it);
/* The next field of that number and wire type. */
bool pb_each(pb_iter *it, uint32_t number, uint32_t wire);
/* The first malformed byte as a status. */
LW_MUST_USE lw_status pb_check(pb_msg m);

/* The last occurrence of a singular field, or the default. */
int64_t pb_i64(pb_msg m, uint32_t number, int64_t dflt);
double pb_f64(pb_msg m, uint32_t number); /* double */
double pb_f32(pb_msg m, uint32_t number); /* float */
pb_msg pb_bytes(pb_msg m, uint32_t number);
bool pb_has(pb_msg m, uint32_t number);
/* Appends a repeated varint field, packed or not. */
void pb_get_i64s(pb_msg m, uint32_t number, pb_i64s *out);

/* Writing. Zero and empty values of singular fields are left out (proto3). */
void pb_put_varint(lw_buf *b, uint64_t v);
void pb_put_i64(lw_buf *b, uint32_t number, int64_t v);
void pb_put_i64_always(lw_buf *b, uint32_t number, int64_t v);
void pb_put_f64(lw_buf *b, uint32_t number, double v);
void pb_put_f32(lw_buf *b, uint32_t number, float v);
void pb_put_bytes(lw_buf *b, uint32_t number, const void *p, size_t n);
void pb_put_str(lw_buf *b, uint32_t number, const char *s); /* NULL: nothing */
void pb_put_i64s(lw_buf *b, uint32_t number, const int64_t *v, int64_t n);
void pb_put_i32s(lw_buf *b, uint32_t number, const int32_t *v, int64_t n);
/* Appends sub as a message field, even when empty, and frees it. */
void pb_put_msg(lw_buf *b, uint32_t number, lw_buf *sub);

#endif
