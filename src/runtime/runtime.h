/* Running a compiled plan: memory, threads, execution. */
#ifndef LW_RUNTIME_RUNTIME_H
#define LW_RUNTIME_RUNTIME_H

#include "lawson/kernel_abi.h"
#include "plan/plan.h"

typedef struct lw_pool lw_pool; /* worker threads; spin, then park */
/* n_threads counts the caller's own thread; 0: one a core this process may
 * use. */
LW_MUST_USE lw_status lw_pool_new(int n_threads, lw_pool **out);
void lw_pool_free(lw_pool *p);
int lw_pool_threads(const lw_pool *p);
/* Calls fn(ctx, part, thread) once for every part in [0, n_parts) on at most
 * n_threads threads, the caller's being 0; returns when all are done. Parts are
 * split evenly; a thread that is done with its own takes others', so that
 * nobody waits for a thread that the system does not run. false, and nothing
 * was called, when another thread is using the pool: then the caller does the
 * work alone. */
typedef void (*lw_pool_fn)(void *ctx, int part, int thread);
bool lw_pool_run(lw_pool *p, lw_pool_fn fn, void *ctx, int n_parts,
                 int n_threads);
/* Physical cores this process may use, at least 1. */
int lw_core_count(void);

/* 64-byte aligned; huge-page advised when large. NULL when out of memory. */
void *lw_buffer_alloc(int64_t bytes);
void lw_buffer_free(void *p, int64_t bytes);

typedef struct lw_executable lw_executable;
/* The plan and the code must outlive the executable. code[k] belongs to
 * plan->kernels[k]. */
LW_MUST_USE lw_status lw_executable_new(const lw_plan *plan,
                                        const lw_kernel_code *code,
                                        lw_executable **out);
void lw_executable_free(lw_executable *e);

typedef struct {
  lw_pool *pool; /* NULL: one thread, the caller's */
  uint64_t seed;
  bool flush_denormals;
  int64_t replica_id, partition_id;
} lw_run_options;

typedef struct {
  int64_t temp_bytes, output_bytes, constant_bytes, kernels_launched;
} lw_run_stats;

/* params[i]: parameter leaves, row-major dense in literal element format,
 * 64-byte aligned; donated ones (plan->output_alias) are overwritten and
 * become outputs. outputs[i]: set to buffers from lw_buffer_alloc that the
 * caller frees (an aliased one is the parameter's own buffer). */
LW_MUST_USE lw_status lw_executable_run(lw_executable *e, void *const *params,
                                        void **outputs,
                                        const lw_run_options *options,
                                        lw_run_stats *stats);

#endif
