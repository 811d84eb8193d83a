/* What the gpu_*.c files share. Nothing outside this folder includes it.
 *
 * Vocabulary: an adaptor is one instruction, or a producer-consumer pair, seen
 * through as one kernel: fusions open, their parameters replaced by what they
 * stand for. Roots are what it writes, heroes the ops that shape its threads.
 */
#ifndef LW_TARGET_GPU_IMPL_H
#define LW_TARGET_GPU_IMPL_H

#include "base/map.h"
#include "target/gpu.h"

/* ---- costs (gpu_cost.c, gpu_utilization.c) ----
 * XLA keeps these as floats, and truncates when it reads them: so do we. */
typedef struct {
  bool ok;
  float flops, ir_size, out_bytes;
  float utilization; /* of a fused instruction, by its fusion */
  float *operand_bytes, *operand_util;
  int32_t cap;
  /* The values that this one is read elementwise from (fused instructions),
   * and what it carries itself when it is such a value. */
  const lw_inst **ew_roots;
  int32_t n_ew_roots, cap_ew_roots;
  float root_util;
  int64_t root_ir;
} gpu_cost;

typedef struct {
  int64_t flops, written;
  lw_ticks write, exec;
} gpu_runtime;

typedef struct {
  gpu_cost cost;
  uint32_t version; /* grows with each update */
  bool has_runtime, has_shared, has_reductions, has_traits;
  uint32_t traits;      /* of gpu_trait */
  const lw_inst *climb; /* gpu_hero.c: how far the climb came, in its body */
  gpu_runtime runtime;
  int64_t shared, reductions;
} gpu_state;

typedef struct {
  int32_t producer, consumer;
  uint32_t producer_version, consumer_version;
  lw_ticks exec;
} gpu_pair;

typedef LW_VEC(const lw_inst *) gpu_inst_list;

struct lw_gpu_model {
  const lw_comp *comp;
  lw_gpu_device d;
  lw_arena *arena;
  LW_VEC(gpu_state *) states; /* by instruction id */
  LW_VEC(uint32_t) stamps;    /* by instruction id; visited when == stamp */
  uint32_t stamp;
  gpu_inst_list order, stack; /* gpu_utilization.c: of one body */
  int32_t pricing; /* bodies in hand: one, and what is nested in it */
  int64_t walked;  /* instructions that bodies were priced anew for */
  lw_map pair_of;  /* producer id << 32 | consumer id -> index + 1 */
  LW_VEC(gpu_pair) pairs;
  int32_t cycles[LW_OPCODE_COUNT][LW_PRIM_COUNT];
  const char *shared_memory_text; /* NULL: nobody asked yet */
};

/* ---- traits (gpu_traits.c): of an op, or the union over a fusion's ---- */
typedef enum {
  GPU_DISLIKES_UNROLLING = 1,
  GPU_SIGNIFICANT_REDUCE = 2,
  GPU_MINOR_TRANSPOSE = 4, /* lw_gpu_transposes_minor */
  GPU_TILED_TRANSPOSE = 8,
  GPU_CONCATENATES = 16,
  GPU_REDUCES = 32,
  GPU_PADS = 64,
  GPU_TRANSPOSES = 128,
  GPU_OWN_REDUCTION = 256, /* lw_gpu_is_unnested_reduction */
  GPU_MOVES = 512          /* is not elementwise */
} gpu_trait;

uint32_t lw_gpu_traits(lw_gpu_model *m, const lw_inst *i);

gpu_state *lw_gpu_state(lw_gpu_model *m, const lw_inst *i);
/* The instruction's own cost, its fused instructions' too. */
const gpu_cost *lw_gpu_cost(lw_gpu_model *m, const lw_inst *i);
/* gpu_cost.c: the cost of an instruction that is no fusion. */
void lw_gpu_cost_plain(lw_gpu_model *m, const lw_inst *i, gpu_cost *c);
/* gpu_utilization.c */
void lw_gpu_cost_fusion(lw_gpu_model *m, const lw_inst *i, gpu_cost *c);
float lw_gpu_common_utilization(lw_gpu_model *m, const lw_inst *a,
                                const lw_inst *b);
void lw_gpu_cycles_init(lw_gpu_model *m);

/* Bytes as XLA:GPU counts them: a tuple is its table of pointers. */
int64_t lw_gpu_shape_size(const lw_shape *s);
int64_t lw_gpu_elements(const lw_shape *s); /* tuples: summed */
int64_t lw_gpu_saturate(float v);
int lw_gpu_bits(lw_prim t); /* PRED: 8 */
/* Dims from minor to major, layout or not. */
int64_t lw_gpu_minor(const lw_shape *s, int32_t k);
bool lw_gpu_layout_equal(const lw_shape *a, const lw_shape *b);
/* Dims and layout, not the type. */
bool lw_gpu_equal_but_type(const lw_shape *a, const lw_shape *b);
bool lw_gpu_transpose_is_bitcast(const lw_inst *i);
bool lw_gpu_reshape_is_bitcast(const lw_shape *a, const lw_shape *b,
                               bool ignore_type);
bool lw_gpu_trivially_reshaped(const lw_shape *a, const lw_shape *b);
static inline int64_t lw_gpu_ceil_div(int64_t a, int64_t b) {
  return b > 0 ? a / b + (a % b > 0) : 0;
}
static inline lw_comp *lw_gpu_body(const lw_inst *fusion) {
  return lw_inst_comp(fusion, LW_ATTR_CALLS);
}
static inline bool lw_gpu_is_fusion(const lw_inst *i) {
  return i->opcode == LW_OP_FUSION;
}
bool lw_gpu_is_mof(const lw_inst *i); /* a fusion whose root is a tuple */
bool lw_gpu_uses(const lw_inst *user, const lw_inst *def);
int32_t lw_gpu_operand_index(const lw_inst *user, const lw_inst *def);

/* ---- reductions (gpu_reduction.c) ---- */
typedef struct {
  bool is_row;
  int64_t
      dims[3]; /* row: reduced, kept, reduced; column: kept, reduced, kept */
} gpu_reduction;

gpu_reduction lw_gpu_reduction_of(const lw_inst *reduce);
bool lw_gpu_reduction_equal(const lw_inst *a, const lw_inst *b);
/* A reduce that a kernel of its own serves better than a loop. */
bool lw_gpu_is_unnested_reduction(const lw_gpu_device *d, const lw_inst *i);
bool lw_gpu_is_real_reduction(const lw_gpu_device *d, const lw_inst *root,
                              const lw_inst *hero);

/* ---- transposes (gpu_transpose.c) ---- */
enum { GPU_MAX_RANK = LW_MAX_RANK + 2 };
typedef struct {
  const lw_inst *inst; /* NULL: no tiled transpose */
  int32_t rank;
  int64_t dims[GPU_MAX_RANK]; /* of the result, normalised */
  int32_t perm[GPU_MAX_RANK];
  int64_t shared_bytes;
} gpu_transpose;

/* Normalised dims and permutation; false when layouts are not descending. */
bool lw_gpu_normalize_transpose(const lw_inst *i, gpu_transpose *t);
bool lw_gpu_tiled_transpose(const lw_inst *i, gpu_transpose *t);
bool lw_gpu_is_tiled_transpose(const lw_inst *i);
bool lw_gpu_transpose_equal(const gpu_transpose *a, const gpu_transpose *b);
/* Blocks of the packed form; 0 when it does not apply. */
int64_t lw_gpu_packed_blocks(const gpu_transpose *t);
bool lw_gpu_transposes_minor(const lw_inst *i);

/* ---- adaptors and heroes (gpu_hero.c) ---- */
typedef struct {
  int32_t n;
  const lw_inst *inst[2]; /* producer, consumer */
  const lw_comp *body[2]; /* of a fusion, else NULL */
} gpu_adaptor;

typedef struct {
  gpu_adaptor a;
  lw_gpu_emitter emitter;
  int32_t n_roots, n_params;
  const lw_inst **roots, **heroes, **params;
  gpu_transpose transpose;
  int smallest_in_bits, smallest_out_bits; /* INT_MAX: none */
} gpu_analysis;

bool lw_gpu_is_intermediate(const lw_inst *i, int32_t max_operands);
gpu_adaptor lw_gpu_adaptor(const lw_inst *producer, const lw_inst *consumer);
bool lw_gpu_contains(const gpu_adaptor *a, const lw_inst *i);
const lw_inst *lw_gpu_resolve(const gpu_adaptor *a, const lw_inst *operand);
const lw_inst *lw_gpu_hero(lw_gpu_model *m, const gpu_adaptor *a,
                           const lw_inst *root, lw_arena *arena);
/* Distinct users inside the adaptor; in the arena. */
const lw_inst **lw_gpu_users(const gpu_adaptor *a, const lw_inst *i,
                             lw_arena *arena, int32_t *n);
void lw_gpu_analyze(lw_gpu_model *m, const lw_inst *producer,
                    const lw_inst *consumer, lw_arena *arena,
                    gpu_analysis *out);
/* Roots of a fusion's body, tuples opened, or the instruction itself. */
const lw_inst **lw_gpu_roots_of(const lw_inst *i, lw_arena *arena, int32_t *n);
/* Calls f for each op that computes something; stops and says true when f
 * does. */
bool lw_gpu_any(const gpu_adaptor *a, bool (*f)(const lw_inst *, void *),
                void *data);
/* Any of the traits, on either side. */
bool lw_gpu_holds(lw_gpu_model *m, const gpu_adaptor *a, uint32_t traits);
/* lw_inst_is_elementwise, without walking fusions. */
bool lw_gpu_is_elementwise(lw_gpu_model *m, const lw_inst *i);
void lw_gpu_visit_begin(lw_gpu_model *m);
bool lw_gpu_visit(lw_gpu_model *m, const lw_inst *i); /* true the first time */

/* ---- launch (gpu_launch.c) ---- */
typedef struct {
  int64_t blocks, threads;
} gpu_launch;

gpu_launch lw_gpu_launch(lw_gpu_model *m, const gpu_analysis *a,
                         lw_arena *arena);
gpu_launch lw_gpu_launch_reduction(lw_gpu_model *m, const gpu_analysis *a,
                                   lw_arena *arena);
int64_t lw_gpu_split_grid(const lw_gpu_device *d, int64_t threads,
                          int64_t blocks);

#endif
