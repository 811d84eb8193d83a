/* What generated code and the runtime share. Plain C, no other headers of
 * ours: the code generator mirrors these layouts as LLVM types.
 */
#ifndef LAWSON_KERNEL_ABI_H
#define LAWSON_KERNEL_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Handed to every phase function. */
typedef struct lw_kernel_args {
  /* The kernel's buffers in lw_kernel order: parameters (leaves), then outputs
   * (leaves), then kernel scratch (shared by all threads of the kernel). Each
   * is 64-byte aligned. */
  void *const *buffers;
  /* This thread's scratch, lw_phase.thread_scratch_bytes long, 64-byte aligned.
   */
  void *scratch;
  /* Values the run carries: for rng, ids. */
  uint64_t run_seed;
  int64_t replica_id, partition_id;
  int32_t thread; /* 0 .. n_threads-1 */
  int32_t n_threads;
} lw_kernel_args;

/* Runs tiles [begin, end) of a phase. Tiles may run in any order on any
 * thread; results do not depend on it. */
typedef void (*lw_phase_fn)(const lw_kernel_args *args, int64_t begin,
                            int64_t end);

/* The machine code of one kernel: its phases in order. */
typedef struct lw_kernel_code {
  int32_t n_phases;
  const lw_phase_fn *phases;
} lw_kernel_code;

#ifdef __cplusplus
}
#endif
#endif
