/* Stages: the small loop IR between fusion and machine code.
 *
 * A kernel is made from one fusion instruction (after the fusion-wrapper pass
 * every computing instruction is one). Its fused computation's instructions
 * are placed:
 *   INLINE   computed in registers where it is read, at the reader's index;
 *   STAGED   computed once by a stage of its own, into an output buffer,
 *            thread scratch (a tile's worth) or kernel scratch (whole);
 *   PARAM    a buffer; CONST a literal: scalar immediates or a buffer.
 *
 * Stages are grouped into phases. A phase is one parallel loop over a tile
 * domain: the product of the first n_tile_dims dims of its tile shape, cut into
 * tiles of grain consecutive points; every stage of the phase runs tile by
 * tile. Between two phases all threads meet. One fusion is one kernel; a
 * kernel that Lawson's own fusion makes has one phase, a fusion decided by
 * XLA's rules may need more (a reduce in the middle), and the phase count is
 * reported.
 *
 * Stages carry no vector width and no LLVM type.
 */
#ifndef LW_KERNEL_KERNEL_H
#define LW_KERNEL_KERNEL_H

#include "hlo/hlo.h"
#include "kernel/fault.h"

typedef enum {
  LW_STAGE_MAP,     /* elementwise + index maps; any shape */
  LW_STAGE_REDUCE,  /* reduce (variadic too), by hlo/fold.h */
  LW_STAGE_WINDOW,  /* reduce-window, window order */
  LW_STAGE_SCAN,    /* reduce-window that is a scan; HLO scan op */
  LW_STAGE_DOT,     /* dot, ragged-dot, scaled-dot */
  LW_STAGE_CONV,    /* convolution */
  LW_STAGE_SCATTER, /* scatter: copy of operand (or in place) + updates */
  LW_STAGE_SELECT_SCATTER, /* select-and-scatter */
  LW_STAGE_SORT,           /* sort, variadic, stable */
  LW_STAGE_TOPK,
  LW_STAGE_UPDATE_SLICE, /* dynamic-update-slice in place: writes the window */
  LW_STAGE_RNG_BITS,     /* rng-bit-generator */
  LW_STAGE_RNG,          /* rng, rng-get-and-update-state */
  /* A reduce to few elements, in two: the fold blocks of numerics.md 5 in any
   * order, then the fold of the blocks. */
  LW_STAGE_REDUCE_PART, /* domain [kept.., blocks] (row) or [blocks, kept..] */
  LW_STAGE_REDUCE_FOLD
} lw_stage_kind;

typedef enum {
  LW_PLACE_INLINE,
  LW_PLACE_STAGED,
  LW_PLACE_PARAM, /* index: buffer */
  LW_PLACE_CONST /* scalar or uniform: immediate; else index: constant buffer */
} lw_place_kind;

typedef enum {
  LW_DEST_OUTPUT,         /* index: buffer of the kernel */
  LW_DEST_KERNEL_SCRATCH, /* index: buffer of the kernel (after the outputs) */
  LW_DEST_THREAD_SCRATCH  /* offset: bytes in args->scratch; one tile's worth */
} lw_dest_kind;

typedef struct {
  lw_dest_kind kind;
  int32_t buffer;
  int64_t offset_bytes;
} lw_dest;

typedef struct {
  lw_place_kind kind;
  int32_t buffer; /* PARAM, CONST with data */
  int32_t stage;  /* STAGED */
  int32_t result; /* STAGED: which result of the stage (variadic ops) */
} lw_place;

typedef struct {
  lw_stage_kind kind;
  const lw_inst *inst; /* the value; variadic: all its results */
  int32_t n_results;
  const lw_shape **shapes; /* result shapes, array leaves */
  lw_dest *dests;          /* a result may have a second home: see copies */
  int32_t n_copies;        /* roots that repeat a staged value: extra outputs */
  struct {
    int32_t result, buffer;
  } *copies;
  bool in_place; /* SCATTER, UPDATE_SLICE: output buffer is the operand's; a
                    SCATTER without finds its operand already in its result */
  /* What its points count: the result's shape, or the update's, or a part's.
   * A phase's point p covers the row-major elements [p, p + 1) *
   * (domain->elements / n_points) of it. */
  const lw_shape *domain;
  /* Length of the innermost loop, in elements of the domain: inside such a run
   * every read is affine (or it is too short to bother). */
  int64_t inner;
  bool strided;  /* a read that is contiguous from run to run, not along one
                    (a transpose): loops go over blocks of both */
  int32_t group; /* MAP: how many stages from here on share one loop; 0: it
                    belongs to a group before it */
  int32_t part;  /* REDUCE_FOLD: its REDUCE_PART stage */
  int32_t leaf;  /* MAP of a value with several leaves: which */
  int32_t home, home_result; /* MAP that fills result home_result of stage home
                                (a scatter's operand); home is -1 otherwise */
  int64_t work_bytes, work_offset; /* its own room in the thread scratch */
  double flops;                    /* of the whole stage */
} lw_stage;

typedef struct {
  int32_t first_stage, n_stages;
  int32_t n_tile_dims; /* leading dims of every stage's result it runs over */
  int64_t *tile_dims;  /* their extents */
  int64_t n_points;    /* product */
  int64_t grain;       /* tile = grain consecutive points (one call's unit) */
  int64_t n_tiles;     /* ceil(n_points / grain) */
  bool flat; /* one 1-D loop over all elements, tile_dims = {elements} */
  int64_t thread_scratch_bytes;
  double flops, bytes; /* of the whole phase, for grain and thread choices */
} lw_phase;

typedef struct {
  int64_t l1_bytes, l2_bytes; /* per core */
  bool observe_nans;          /* canonicalise (numerics.md 1) */
  bool flush_denormals;
  lw_fault fault; /* planted by tests; 0: none */
} lw_kernel_options;

typedef struct lw_kernel {
  lw_kernel_options options; /* it was built with */
  const lw_inst *inst;       /* the fusion */
  const lw_comp *body;
  int32_t n_params, n_outputs, n_scratch, n_consts; /* buffers, in this order */
  const lw_shape **param_shapes;                    /* array leaves */
  const lw_shape **output_shapes;
  int64_t *scratch_bytes; /* kernel scratch */
  const lw_literal **consts;
  lw_place *places; /* by instruction id - place_base */
  int32_t place_base, n_places;
  int32_t n_stages;
  lw_stage *stages;
  int32_t n_phases;
  lw_phase *phases;
  /* may_alias[param * n_outputs + output]: that output may be written into that
   * parameter's buffer: every read of it happens at the index written, or
   * before anything is written there. must_alias likewise when a stage is
   * in_place. */
  bool *may_alias, *must_alias;
} lw_kernel;

/* Builds the kernel of a fusion instruction, in the arena. Fails with
 * LW_UNIMPLEMENTED and the instruction's name for what has no code. */
LW_MUST_USE lw_status lw_kernel_build(lw_arena *a, const lw_inst *fusion,
                                      const lw_kernel_options *options,
                                      lw_kernel **out);
static inline const lw_place *lw_kernel_place(const lw_kernel *k,
                                              const lw_inst *i) {
  return &k->places[i->id - k->place_base];
}
/* One line a phase and stage; docs/codegen.md explains the form. */
void lw_kernel_print(lw_buf *b, const lw_kernel *k);
/* Structure, shapes, attributes, placement: kernels with equal fingerprints
 * compile to the same code. */
uint64_t lw_kernel_fingerprint(const lw_kernel *k);

#endif
