/* Instruction attributes: tagged values, driven by attributes.def. */
#ifndef LW_HLO_ATTR_H
#define LW_HLO_ATTR_H

#include "hlo/literal.h"

typedef enum {
#define A(e, name, kind) LW_ATTR_##e,
#include "hlo/attributes.def"
#undef A
  LW_ATTR_COUNT
} lw_attr_id;

typedef enum {
  LW_AK_I64,
  LW_AK_BOOL,
  LW_AK_F64,
  LW_AK_STR,      /* quoted */
  LW_AK_STR_BARE, /* identifier */
  LW_AK_RAW,      /* {...} kept verbatim, braces included */
  LW_AK_I64S,     /* {1,2} */
  LW_AK_BOOLS,    /* {true,false}; stored as list of 0/1 */
  LW_AK_SLICE,    /* {[a:b:s], ...}; list: start,limit,stride a dim */
  LW_AK_PADDING,  /* lo_hi_int x ...; list: low,high,interior a dim */
  LW_AK_WINDOW,
  LW_AK_DIM_LABELS,
  LW_AK_COMP,
  LW_AK_COMPS,
  LW_AK_ALIASING,
  LW_AK_SHAPE,
  LW_AK_SHAPES,
  LW_AK_LITERAL,
  LW_AK_REPLICA_GROUPS,
  LW_AK_PAIRS,            /* {{0,1},{1,0}}; list: a0,b0,a1,b1 */
  LW_AK_SLICE_SIZES_LIST, /* {{..},{..}} kept as list of lists: RAW text */
  LW_AK_CMP_DIR,          /* i: lw_cmp_dir */
  LW_AK_ENUM_COMPARE_TYPE,
  LW_AK_ENUM_FUSION_KIND,
  LW_AK_ENUM_FFT_TYPE,
  LW_AK_ENUM_TRANSPOSE,
  LW_AK_ENUM_DISTRIBUTION,
  LW_AK_ENUM_RNG_ALGORITHM,
  LW_AK_ENUM_API_VERSION,
  LW_AK_ENUM_CUSTOM_CALL_SCHEDULE,
  LW_AK_ENUM_PADDING_TYPE,
  LW_AK_ENUM_TRISTATE,
  LW_AK_ENUMS_PRECISION /* {highest,default}; list of lw_precision */
} lw_attr_kind;

/* Values of the enum kinds (attribute i), in proto numbering. */
typedef enum {
  LW_CT_NONE,
  LW_CT_FLOAT,
  LW_CT_TOTALORDER,
  LW_CT_SIGNED,
  LW_CT_UNSIGNED
} lw_compare_type;
typedef enum {
  LW_FUSION_LOOP,
  LW_FUSION_INPUT,
  LW_FUSION_OUTPUT,
  LW_FUSION_CUSTOM
} lw_fusion_kind;
typedef enum { LW_FFT, LW_IFFT, LW_RFFT, LW_IRFFT } lw_fft_type;
typedef enum {
  LW_TR_INVALID,
  LW_TR_NO,
  LW_TR_TRANSPOSE,
  LW_TR_ADJOINT
} lw_transpose_a;
typedef enum { LW_RNG_INVALID, LW_RNG_UNIFORM, LW_RNG_NORMAL } lw_distribution;
typedef enum {
  LW_RNG_DEFAULT,
  LW_RNG_THREE_FRY,
  LW_RNG_PHILOX
} lw_rng_algorithm;
typedef enum {
  LW_PREC_DEFAULT,
  LW_PREC_HIGH,
  LW_PREC_HIGHEST,
  LW_PREC_PACKED_NIBBLE
} lw_precision;

/* The text of an enum value ("kLoop", "IFFT", "GE", ...), NULL out of range. */
const char *lw_enum_name(lw_attr_kind kind, int64_t value);
/* false when the text is not a value of that enum. */
bool lw_enum_value(lw_attr_kind kind, const char *s, size_t len, int64_t *out);

typedef struct {
  int64_t size, stride, pad_lo, pad_hi, lhs_dilation, rhs_dilation;
  bool reversed;
} lw_window_dim;

typedef struct {
  int32_t rank;
  const lw_window_dim *dims;
} lw_window;

/* Convolution dimension numbers: dim index of each role. */
typedef struct {
  int32_t n_spatial;
  int64_t input_batch, input_feature;
  int64_t kernel_input_feature, kernel_output_feature;
  int64_t output_batch, output_feature;
  const int64_t *input_spatial, *kernel_spatial, *output_spatial;
} lw_dim_labels;

/* output_to_operand_aliasing={{0}: (1, {2}), ...} */
typedef struct {
  int32_t n_output_index, n_operand_index;
  const int64_t *output_index, *operand_index;
  int64_t operand;
} lw_alias;

/* {{0,1},{2,3}} (LISTS), [2,2]<=[4]T(1,0) (IOTA) or the mesh form (RAW text).
 */
typedef struct {
  enum { LW_RG_LISTS, LW_RG_IOTA, LW_RG_MESH } kind;
  int32_t n_groups;
  const int32_t *group_sizes;
  const int64_t *ids; /* LISTS: concatenated */
  int64_t iota_groups, iota_group_size;
  int32_t n_reshape;
  const int64_t *reshape_dims;
  const int32_t *transpose_perm; /* NULL: identity */
  const char *mesh_text;
} lw_replica_groups;

typedef struct lw_comp lw_comp;

typedef struct {
  lw_attr_id id;
  union {
    int64_t i; /* I64, BOOL, CMP_DIR, ENUM_* */
    double f;
    const char *s;
    struct {
      int32_t n;
      const int64_t *v;
    } list; /* I64S, BOOLS, SLICE, PADDING, PAIRS, ENUMS_PRECISION */
    lw_comp *comp;
    struct {
      int32_t n;
      lw_comp **v;
    } comps;
    const lw_window *window;
    const lw_dim_labels *dim_labels;
    struct {
      int32_t n;
      const lw_alias *v;
    } aliasing;
    const lw_shape *shape;
    struct {
      int32_t n;
      const lw_shape *const *v;
    } shapes;
    const lw_literal *literal;
    const lw_replica_groups *groups;
  } u;
} lw_attr;

typedef struct {
  const char *name;
  lw_attr_kind kind;
} lw_attr_info;
extern const lw_attr_info lw_attr_table[LW_ATTR_COUNT];

/* Which attributes an opcode takes, in print order. */
typedef struct {
  lw_attr_id id;
  bool required;
} lw_op_attr;
/* The list ends at *n. */
const lw_op_attr *lw_op_attrs(lw_opcode op, int *n);

#endif
