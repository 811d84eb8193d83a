/* XLA:GPU's performance model (jaxlib 0.10.2), for deciding what it would fuse
 * without the device: what kernel a set of instructions becomes (emitter,
 * heroes, launch dimensions), what it reads, computes and writes, and how long
 * that takes. Times are in quarter nanoseconds, rounded where XLA rounds, so
 * that equal priorities tie as they do there.
 *
 * Source of the formulas: service/gpu/model and backends/gpu (the sections
 * of each are named at the functions).
 */
#ifndef LW_TARGET_GPU_H
#define LW_TARGET_GPU_H

#include "hlo/hlo.h"
#include "target/target.h"

typedef int64_t lw_ticks; /* 1/4 ns; LW_TICKS_INF where XLA has infinity */
#define LW_TICKS_INF INT64_MAX

/* Numbers of a GPU target file (backend = gpu). */
typedef struct {
  int64_t core_count, fpus_per_core, threads_per_warp;
  int64_t threads_per_block_limit, threads_per_core_limit;
  int64_t shared_memory_per_block, shared_memory_per_core;
  int64_t block_dim_limit_x, block_dim_limit_y, block_dim_limit_z;
  int64_t l2_cache_bytes, l1_cache_bytes_per_core;
  double clock_ghz, memory_bandwidth; /* bytes a second */
  int64_t dram_to_l2_transaction_bytes, transactions_per_clock;
  int64_t vector_bits;    /* widest load */
  const char *op_profile; /* "sm_90", "sm_80", ...: cycles a transcendental */
  bool is_amd, is_blackwell;
} lw_gpu_device;

LW_MUST_USE lw_status lw_gpu_device_of(const lw_target *t, lw_gpu_device *out);

typedef enum {
  LW_GPU_LOOP,
  LW_GPU_REDUCTION,
  LW_GPU_TRANSPOSE,
  LW_GPU_CONCATENATE,
  LW_GPU_SCATTER,
  LW_GPU_TRITON,
  LW_GPU_CUSTOM,
  LW_GPU_SORT
} lw_gpu_emitter;
const char *lw_gpu_emitter_name(lw_gpu_emitter e);

/* What one fusion, op, or producer-consumer pair becomes. */
typedef struct {
  lw_gpu_emitter emitter;
  int64_t blocks, threads; /* per block */
  int32_t n_roots;
  const lw_inst **roots, **heroes;
} lw_gpu_kernel;

/* The analyses of one computation, cached by instruction; the passes tell it
 * what they change. */
typedef struct lw_gpu_model lw_gpu_model;
lw_gpu_model *lw_gpu_model_new(const lw_comp *c, const lw_gpu_device *d);
void lw_gpu_model_free(lw_gpu_model *m);
/* The instruction was made or changed (fused into), or is going away. */
void lw_gpu_model_update(lw_gpu_model *m, const lw_inst *i);
/* An update: the fusion (the consumer it was made of before) now holds a
 * copy of all of the producer besides. What is known of both is put together,
 * where it can be, instead of being found again by a walk. */
void lw_gpu_model_took(lw_gpu_model *m, const lw_inst *fusion,
                       const lw_inst *producer, const lw_inst *consumer);
/* How many instructions inside fusions have been priced so far: the work that
 * grows with kernels and not with edges. */
int64_t lw_gpu_model_walked(const lw_gpu_model *m);
void lw_gpu_model_remove(lw_gpu_model *m, const lw_inst *i);

/* Analysis of producer and consumer as one kernel; producer NULL: the consumer
 * as it stands. In the arena. */
lw_gpu_kernel lw_gpu_kernel_of(lw_gpu_model *m, const lw_inst *producer,
                               const lw_inst *consumer, lw_arena *a);
lw_ticks lw_gpu_exec(lw_gpu_model *m, const lw_inst *i); /* without launch */
lw_ticks lw_gpu_exec_fused(lw_gpu_model *m, const lw_inst *producer,
                           const lw_inst *consumer);
/* EstimateRunTimes: 1 us a launch included. */
typedef struct {
  lw_ticks unfused, fused;
} lw_gpu_times;
lw_gpu_times lw_gpu_run_times(lw_gpu_model *m, const lw_inst *producer,
                              int32_t n, const lw_inst *const *consumers);
/* Multi-output form: the producer's result is written as well. */
lw_gpu_times lw_gpu_run_times_mof(lw_gpu_model *m, const lw_inst *producer,
                                  const lw_inst *consumer);
/* As decisions.tsv prints them. */
static inline double lw_ticks_us(lw_ticks t) { return (double)t / 4000.0; }

/* ---- gpu_fusible: structure ---- */
bool lw_gpu_is_reduction_fusible(const lw_gpu_model *m, const lw_inst *i);
/* Folds 16 elements or more into one; or a fusion that holds such a one. */
bool lw_gpu_holds_significant_reduce(lw_gpu_model *m, const lw_inst *i);
bool lw_gpu_loop_fusible(const lw_inst *i, bool as_producer);
bool lw_gpu_physically_transposing(const lw_inst *i);
bool lw_gpu_input_fusible_scatter(const lw_inst *i);
/* A reduction, transpose or scatter that has a kernel of its own. */
bool lw_gpu_input_fusible(lw_gpu_model *m, const lw_inst *i);
/* PriorityFusion's own IsFusible; the generic Triton fusions among them. */
bool lw_gpu_priority_fusible(const lw_inst *i);
/* A bitcast between types of one width. */
bool lw_gpu_is_fusible_bitcast(const lw_inst *i);
bool lw_gpu_is_triton(const lw_inst *i);
/* HloInstruction::IsFusible: no side effect, no control flow. */
bool lw_gpu_inst_is_fusible(const lw_inst *i);
typedef enum {
  LW_GPU_FITS,
  LW_GPU_OVER_SHARED_MEMORY,
  LW_GPU_OVER_REDUCTIONS,
  LW_GPU_OVER_PARAMETERS
} lw_gpu_budget;
/* Which budget the pair breaks. */
lw_gpu_budget lw_gpu_budget_of(lw_gpu_model *m, const lw_inst *a,
                               const lw_inst *b, bool consumer_producer);
/* XLA's words for LW_GPU_OVER_SHARED_MEMORY; the model's. */
const char *lw_gpu_shared_memory_text(lw_gpu_model *m);
/* Shared memory, unnested reductions, 96 parameters and outputs. */
bool lw_gpu_fits_budget(lw_gpu_model *m, const lw_inst *a, const lw_inst *b,
                        bool consumer_producer);
bool lw_gpu_merged_too_large(lw_gpu_model *m, const lw_inst *producer,
                             const lw_inst *consumer);
/* Heroes or loop shapes that one multi-output kernel can serve. */
bool lw_gpu_shapes_compatible(lw_gpu_model *m, const lw_inst *a,
                              const lw_inst *b);
bool lw_gpu_mof_root_able(lw_gpu_model *m, const lw_inst *i);

#endif
