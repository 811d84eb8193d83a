#include "hlo/attr.h"

#include <string.h>

const lw_attr_info lw_attr_table[LW_ATTR_COUNT] = {
#define A(e, name, kind) [LW_ATTR_##e] = {name, LW_AK_##kind},
#include "hlo/attributes.def"
#undef A
};

/* ---- enum texts, by proto value ---- */

static const char *const compare_types[] = {NULL, "FLOAT", "TOTALORDER",
                                            "SIGNED", "UNSIGNED"};
static const char *const cmp_dirs[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
static const char *const fusion_kinds[] = {"kLoop", "kInput", "kOutput",
                                           "kCustom"};
static const char *const fft_types[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
static const char *const transposes[] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE",
                                         "TRANSPOSE", "ADJOINT"};
static const char *const distributions[] = {"rng_invalid", "rng_uniform",
                                            "rng_normal"};
static const char *const rng_algorithms[] = {"rng_default", "rng_three_fry",
                                             "rng_philox"};
static const char *const precisions[] = {"default", "high", "highest",
                                         "packed_nibble"};
static const char *const api_versions[] = {
    "API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI"};
static const char *const schedules[] = {"SCHEDULE_NONE", "SCHEDULE_LATEST",
                                        "SCHEDULE_EARLIEST"};
static const char *const padding_types[] = {"PADDING_INVALID", "PADDING_VALID",
                                            "PADDING_SAME"};
static const char *const tristates[] = {"TRI_STATE_UNSPECIFIED",
                                        "TRI_STATE_TRUE", "TRI_STATE_FALSE"};

typedef struct {
  lw_attr_kind kind;
  const char *const *names;
  int n;
} enum_table;

#define T(kind, names) {kind, names, (int)(sizeof names / sizeof names[0])}
static const enum_table enum_tables[] = {
    T(LW_AK_CMP_DIR, cmp_dirs),
    T(LW_AK_ENUM_COMPARE_TYPE, compare_types),
    T(LW_AK_ENUM_FUSION_KIND, fusion_kinds),
    T(LW_AK_ENUM_FFT_TYPE, fft_types),
    T(LW_AK_ENUM_TRANSPOSE, transposes),
    T(LW_AK_ENUM_DISTRIBUTION, distributions),
    T(LW_AK_ENUM_RNG_ALGORITHM, rng_algorithms),
    T(LW_AK_ENUM_API_VERSION, api_versions),
    T(LW_AK_ENUM_CUSTOM_CALL_SCHEDULE, schedules),
    T(LW_AK_ENUM_PADDING_TYPE, padding_types),
    T(LW_AK_ENUM_TRISTATE, tristates),
    T(LW_AK_ENUMS_PRECISION, precisions),
};
#undef T

static const enum_table *find_table(lw_attr_kind kind) {
  for (size_t i = 0; i < sizeof enum_tables / sizeof enum_tables[0]; i++)
    if (enum_tables[i].kind == kind) return &enum_tables[i];
  return NULL;
}

const char *lw_enum_name(lw_attr_kind kind, int64_t value) {
  const enum_table *t = find_table(kind);
  return t && value >= 0 && value < t->n ? t->names[value] : NULL;
}

bool lw_enum_value(lw_attr_kind kind, const char *s, size_t len, int64_t *out) {
  const enum_table *t = find_table(kind);
  for (int i = 0; t && i < t->n; i++) {
    if (!t->names[i] || strlen(t->names[i]) != len ||
        memcmp(t->names[i], s, len))
      continue;
    *out = i;
    return true;
  }
  return false;
}

/* ---- which opcode takes which ---- */

#define R(x) {LW_ATTR_##x, true}
#define Q(x) {LW_ATTR_##x, false}
#define OP(op, ...) static const lw_op_attr attrs_##op[] = {__VA_ARGS__};
#include "hlo/op_attributes.def"
#undef OP

static const struct {
  const lw_op_attr *v;
  int n;
} op_attrs[LW_OPCODE_COUNT] = {
#define OP(op, ...) \
  [LW_OP_##op] = {attrs_##op, (int)(sizeof attrs_##op / sizeof(lw_op_attr))},
#include "hlo/op_attributes.def"
#undef OP
};

const lw_op_attr *lw_op_attrs(lw_opcode op, int *n) {
  *n = op_attrs[op].n;
  return op_attrs[op].v;
}
