#include "hlo/types.h"

#include <string.h>

const lw_prim_info lw_prim_table[LW_PRIM_COUNT] = {
    [LW_PRIM_INVALID] = {"invalid", 0, 0, LW_CLASS_OTHER, 0, 0},
#define P(e, name, num, bits, cls, eb, mb) \
  [num] = {name, bits, (bits + 7) / 8, LW_CLASS_##cls, eb, mb},
#include "hlo/prim_types.def"
#undef P
};

#define V -1
#define UN LW_OPF_UN
#define BIN LW_OPF_BIN
#define TERN LW_OPF_TERN
#define MOVE LW_OPF_MOVE
#define SIDE LW_OPF_SIDE
#define COLL LW_OPF_COLL
#define CALLS LW_OPF_CALLS
#define SHAPE LW_OPF_SHAPE
#define TRANS LW_OPF_TRANS
#define ASYNC LW_OPF_ASYNC
const lw_opcode_info lw_opcode_table[LW_OPCODE_COUNT] = {
#define O(e, name, arity, flags) [LW_OP_##e] = {name, arity, flags},
#include "hlo/opcodes.def"
#undef O
};

lw_prim lw_prim_part(lw_prim t) {
  if (t == LW_C64) return LW_F32;
  return t == LW_C128 ? LW_F64 : t;
}

lw_prim lw_prim_from_name(const char *s, size_t len) {
  for (int i = 1; i < LW_PRIM_COUNT; i++)
    if (strlen(lw_prim_table[i].name) == len &&
        !memcmp(lw_prim_table[i].name, s, len))
      return (lw_prim)i;
  return LW_PRIM_INVALID;
}

/* The table is in alphabetical order but for a few prefixes ('-' sorts before
 * letters), so the search is linear over equal first letters. */
lw_opcode lw_opcode_from_name(const char *s, size_t len) {
  for (int i = 0; i < LW_OPCODE_COUNT; i++) {
    const char *n = lw_opcode_table[i].name;
    if (n[0] == s[0] && strlen(n) == len && !memcmp(n, s, len))
      return (lw_opcode)i;
  }
  return LW_OPCODE_COUNT;
}
