/* Field numbers and tables of HloInstructionProto's attributes; for
 * proto_attr_read.c and proto_attr_write.c. */
#ifndef LW_READER_PROTO_FIELDS_H
#define LW_READER_PROTO_FIELDS_H

#include "hlo/hlo.h"

enum {
  F_LITERAL = 8,
  F_PARAMETER_NUMBER = 9,
  F_FUSION_KIND = 11,
  F_TUPLE_INDEX = 13,
  F_DIMENSIONS = 14,
  F_WINDOW = 15,
  F_CONV_DIMS = 16,
  F_SLICE = 17,
  F_EXPONENT_BITS = 18,
  F_MANTISSA_BITS = 19,
  F_DYNAMIC_SLICE_SIZES = 20,
  F_PADDING = 21,
  F_OUTFEED_CONFIG = 22,
  F_DISTRIBUTION = 23,
  F_EPSILON = 24,
  F_FEATURE_INDEX = 25,
  F_CHANNEL_ID = 26,
  F_INFEED_CONFIG = 27,
  F_TARGET = 28,
  F_OUTFEED_SHAPE = 29,
  F_DOT_DIMS = 30,
  F_FFT_TYPE = 31,
  F_FFT_LENGTH = 32,
  F_GATHER_DIMS = 33,
  F_GATHER_SIZES = 34,
  F_CALLED = 38,
  F_HOST_TRANSFER = 47,
  F_SCATTER_DIMS = 48,
  F_OLD_GROUPS = 49,
  F_FEATURE_GROUPS = 50,
  F_PRECISION = 51,
  F_PAIRS = 52,
  F_DOMAIN_ENTRY = 54,
  F_DOMAIN_EXIT = 55,
  F_CONSTRAIN_LAYOUT = 56,
  F_OPERAND_LAYOUTS = 57,
  F_BATCH_GROUPS = 58,
  F_TRIANGULAR = 59,
  F_IS_STABLE = 60,
  F_PARAM_REPLICATION = 61,
  F_CHOLESKY = 62,
  F_DIRECTION = 63,
  F_SIDE_EFFECT = 65,
  F_DELTA = 66,
  F_SORTED = 67,
  F_UNIQUE = 69,
  F_RNG_ALGORITHM = 70,
  F_GLOBAL_IDS = 71,
  F_COMPARE_TYPE = 72,
  F_ALIASING = 74,
  F_PADDING_TYPE = 75,
  F_SCHEDULE = 76,
  F_API_VERSION = 77,
  F_THREAD = 79,
  F_PREFETCH = 80,
  F_K = 81,
  F_STATISTICS = 82,
  F_LARGEST = 85,
  F_GROUP_LISTS = 87,
  F_ORIGIN = 88,
  F_COMPOSITE = 89,
  F_RAGGED_DIMS = 90,
  F_ACCURACY = 91,
  F_GROUP_IOTA = 92,
  F_GROUP_MESH = 93,
  F_REVERSE = 94,
  F_CARRIES = 95,
  F_ASSOCIATIVE = 96,
  F_CONV_KIND = 97,
  F_SPARSITY = 98
};

static const char *const algorithms[] = {NULL,
                                         "dot_any_f8_any_f8_f32",
                                         "dot_any_f8_any_f8_f32_fast_accum",
                                         "dot_f16_f16_f16",
                                         "dot_f16_f16_f32",
                                         "dot_bf16_bf16_bf16",
                                         "dot_bf16_bf16_f32",
                                         "dot_bf16_bf16_f32_x3",
                                         "dot_bf16_bf16_f32_x6",
                                         "dot_tf32_tf32_f32",
                                         "dot_tf32_tf32_f32_x3",
                                         "dot_f32_f32_f32",
                                         "dot_f64_f64_f64",
                                         "dot_bf16_bf16_f32_x9"};
static const char *const conv_kinds[] = {NULL, "fprop", "dgrad", "wgrad"};

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof *(a)))

/* Dimension numbers, by attribute: which field of their message. */
typedef struct {
  lw_attr_id id;
  uint32_t field;
} member;

static const member dot_members[] = {{LW_ATTR_LHS_CONTRACTING_DIMS, 1},
                                     {LW_ATTR_RHS_CONTRACTING_DIMS, 2},
                                     {LW_ATTR_LHS_BATCH_DIMS, 3},
                                     {LW_ATTR_RHS_BATCH_DIMS, 4}};
static const member gather_members[] = {
    {LW_ATTR_OFFSET_DIMS, 1},
    {LW_ATTR_COLLAPSED_SLICE_DIMS, 2},
    {LW_ATTR_START_INDEX_MAP, 3},
    {LW_ATTR_OPERAND_BATCHING_DIMS, 5},
    {LW_ATTR_START_INDICES_BATCHING_DIMS, 6}};
static const member scatter_members[] = {
    {LW_ATTR_UPDATE_WINDOW_DIMS, 1},
    {LW_ATTR_INSERTED_WINDOW_DIMS, 2},
    {LW_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, 3},
    {LW_ATTR_INPUT_BATCHING_DIMS, 5},
    {LW_ATTR_SCATTER_INDICES_BATCHING_DIMS, 6}};

/* The place of a called computation in the proto: a while's body comes first
 * there. */
static inline int called_slot(lw_attr_id id) {
  switch ((int)id) {
    case LW_ATTR_CONDITION:
    case LW_ATTR_SCATTER:
    case LW_ATTR_FALSE_COMPUTATION:
      return 1;
    default:
      return 0;
  }
}

#endif
