/* Primitive types and opcodes: enums and facts, from prim_types.def and
 * opcodes.def. */
#ifndef LW_HLO_TYPES_H
#define LW_HLO_TYPES_H

#include "base/status.h"

typedef enum {
  LW_PRIM_INVALID = 0,
#define P(e, name, num, bits, cls, eb, mb) LW_##e = num,
#include "hlo/prim_types.def"
#undef P
  LW_PRIM_COUNT = 37
} lw_prim;

typedef enum {
  LW_CLASS_OTHER,
  LW_CLASS_PRED,
  LW_CLASS_SINT,
  LW_CLASS_UINT,
  LW_CLASS_FLOAT,
  LW_CLASS_COMPLEX
} lw_class;

typedef struct {
  const char *name;
  uint8_t bits;  /* of one element; complex: both parts */
  uint8_t bytes; /* in literals and buffers: sub-byte types take 1 */
  lw_class cls;
  uint8_t exp_bits, man_bits;
} lw_prim_info;

extern const lw_prim_info lw_prim_table[LW_PRIM_COUNT];

static inline const char *lw_prim_name(lw_prim t) {
  return lw_prim_table[t].name;
}
static inline int lw_prim_bytes(lw_prim t) { return lw_prim_table[t].bytes; }
static inline lw_class lw_prim_class(lw_prim t) { return lw_prim_table[t].cls; }
static inline bool lw_prim_is_float(lw_prim t) {
  return lw_prim_table[t].cls == LW_CLASS_FLOAT;
}
static inline bool lw_prim_is_complex(lw_prim t) {
  return lw_prim_table[t].cls == LW_CLASS_COMPLEX;
}
/* Signed or unsigned integers; PRED is not one. */
static inline bool lw_prim_is_int(lw_prim t) {
  return lw_prim_table[t].cls == LW_CLASS_SINT ||
         lw_prim_table[t].cls == LW_CLASS_UINT;
}
static inline bool lw_prim_is_signed(lw_prim t) {
  return lw_prim_table[t].cls == LW_CLASS_SINT;
}
static inline bool lw_prim_is_array(lw_prim t) {
  return lw_prim_table[t].cls != LW_CLASS_OTHER && t != LW_PRIM_INVALID;
}
/* The real type of a complex type's parts; other types map to themselves. */
lw_prim lw_prim_part(lw_prim t);
/* By text name; LW_PRIM_INVALID when unknown. */
lw_prim lw_prim_from_name(const char *s, size_t len);

typedef enum {
#define O(e, name, arity, flags) LW_OP_##e,
#include "hlo/opcodes.def"
#undef O
  LW_OPCODE_COUNT
} lw_opcode;

enum {
  LW_OPF_UN = 1,
  LW_OPF_BIN = 2,
  LW_OPF_TERN = 4,
  LW_OPF_ELEMENTWISE = 7, /* UN | BIN | TERN */
  LW_OPF_MOVE = 8,
  LW_OPF_SIDE = 16,
  LW_OPF_COLL = 32,
  LW_OPF_CALLS = 64,
  LW_OPF_SHAPE = 128,
  LW_OPF_TRANS = 256,
  LW_OPF_ASYNC = 512
};

typedef struct {
  const char *name;
  int arity; /* -1: any number */
  unsigned flags;
} lw_opcode_info;

extern const lw_opcode_info lw_opcode_table[LW_OPCODE_COUNT];

static inline const char *lw_opcode_name(lw_opcode op) {
  return lw_opcode_table[op].name;
}
/* Elementwise by opcode alone (all operands and the result have equal dims).
 * PRED-selecting select with a scalar predicate is not: see
 * lw_inst_is_elementwise. */
static inline bool lw_opcode_is_elementwise(lw_opcode op) {
  return (lw_opcode_table[op].flags & LW_OPF_ELEMENTWISE) != 0;
}
/* LW_OPCODE_COUNT when unknown. */
lw_opcode lw_opcode_from_name(const char *s, size_t len);

typedef enum {
  LW_CMP_EQ,
  LW_CMP_NE,
  LW_CMP_GE,
  LW_CMP_GT,
  LW_CMP_LE,
  LW_CMP_LT
} lw_cmp_dir;

#endif
