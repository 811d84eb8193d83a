/* Inside the LLVM emitter: a module being made, a phase function being made,
 * loops, values, loads and stores.
 *
 * Code is made already vectorised. A stage has one vector width W and one
 * vector variable; a value whose index does not depend on it is a scalar
 * (width 1) and is emitted once, in the deepest loop its index needs: each
 * open loop is a level with its own insertion point and its own memo table.
 * Nothing in a value's code branches; lanes that must not be computed are
 * masked (tails, pads, concatenates), which only loads and stores notice.
 */
#ifndef LW_CODEGEN_LLVM_EMIT_H
#define LW_CODEGEN_LLVM_EMIT_H

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>

#include "codegen/codegen.h"
#include "codegen/llvm/emit_math.h"
#include "kernel/index.h"

/* One module being made. */
typedef struct {
  LLVMContextRef ctx;
  LLVMModuleRef mod;
  LLVMTypeRef i1, i8, i32, i64, f32, f64, ptr, void_t;
  int vec_bytes; /* of the registers in use: 64, 32 or 16 */
  bool has_avx2, has_avx512, has_f16c, has_fma;
  const char *cpu, *features; /* function attributes */
} lw_emit;

/* A value in registers: width 1 when !vec, else the stage's width. */
typedef struct {
  lw_cgval v;
  bool vec;
  int level; /* where its code is */
} lw_ev;

/* Lanes that count. s: uniform condition (i1), v: per lane; NULL: all do. */
typedef struct {
  LLVMValueRef s;
  int s_level;
  LLVMValueRef v;
} lw_mask;

typedef struct {
  LLVMBasicBlockRef pre; /* code of this level goes before its terminator... */
  bool open;             /* ...or, innermost level, at the builder */
  lw_map memo;           /* of values, expressions, conditions */
} lw_level;

typedef struct {
  LLVMValueRef base; /* i64; lane l has base + l */
  int level;
  bool vec;
} lw_var;

enum { LW_MAX_LEVELS = 128, LW_MAX_VARS = 80 };

/* One phase function being made. */
typedef struct lw_fn {
  lw_emit *em;
  lw_mathgen g; /* g.b is the builder; set g.width with lw_width */
  LLVMBuilderRef b;
  LLVMValueRef fn;
  const lw_kernel *k;
  const lw_phase *phase;
  lw_arena *arena;
  lw_index *ix;
  LLVMValueRef args, buffers, scratch; /* pointers */
  LLVMValueRef *buffer_ptrs;           /* by buffer, loaded in the entry */
  LLVMValueRef p0, p1;                 /* the tile's points [p0, p1), i64 */
  LLVMBasicBlockRef entry;
  int width; /* W of the stage being emitted */
  int n_levels;
  LLVMBasicBlockRef cur; /* the innermost block while values are emitted */
  int depth;
  int stage_level; /* level the stage began at: its reads of values of the same
                      phase go no higher */
  int least_level; /* of the load being made */
  lw_level levels[LW_MAX_LEVELS];
  lw_var vars[LW_MAX_VARS];
  lw_mask mask;
  bool flush;
  bool canonical; /* NaN bits are observed */
  int32_t stage;  /* being emitted */
  /* First stage of the map group being emitted (-1: none) and its lanes: what
   * the group made before is read from registers, whatever the mask. */
  int32_t group_first;
  lw_mask group_mask;
  lw_status error; /* the first one; emission goes on with undef */
} lw_fn;

/* ---- emit.c: blocks and loops ---- */
static inline LLVMValueRef lw_i64(lw_fn *f, int64_t v) {
  return LLVMConstInt(f->em->i64, (unsigned long long)v, 1);
}
/* A slot in the entry block, for values that live across iterations (the
 * pipeline promotes them to registers). */
LLVMValueRef lw_local(lw_fn *f, LLVMTypeRef t, const char *name);
/* for (iv = lo; iv < hi; iv += step): begin opens a level; the builder is in
 * the body until end. carry: loops may nest and follow each other freely. */
typedef struct {
  LLVMBasicBlockRef body, exit;
  LLVMValueRef iv, hi, step;
} lw_loop;
lw_loop lw_loop_begin(lw_fn *f, LLVMValueRef lo, LLVMValueRef hi, int64_t step,
                      const char *name);
void lw_loop_end(lw_fn *f, lw_loop *l);
/* if (cond) { ... }: a level as well. */
typedef struct {
  LLVMBasicBlockRef exit;
} lw_if;
lw_if lw_if_begin(lw_fn *f, LLVMValueRef cond);
void lw_if_end(lw_fn *f, lw_if *i);
/* Loop variables of the index expressions. */
enum {
  LW_CV_POINT,
  LW_CV_MID,
  LW_CV_IN,    /* the vector variable of maps */
  LW_CV_OUTER, /* o and t of numerics.md 5 */
  LW_CV_RUN,
  LW_CV_BLOCK,
  LW_CV_WINDOW, /* and on: one a dim, or whatever a stage needs */
  LW_CV_FREE = 40
};
typedef void (*lw_body_fn)(lw_fn *f, void *ctx, const lw_expr *e);
void lw_vector_loop(lw_fn *f, int32_t var, int64_t extent, LLVMValueRef lo,
                    LLVMValueRef hi, bool whole, lw_body_fn body, void *ctx);
/* Over all elements of a domain that lie in the tile's points: body gets the
 * row-major element number, vectorised by f->width. */
void lw_domain_loop(lw_fn *f, int64_t elements, int64_t inner, lw_body_fn body,
                    void *ctx);
/* Sets the math generator's width and returns the old one. */
int lw_width(lw_fn *f, int width);
LLVMTypeRef lw_vec_type(LLVMTypeRef elem, int width); /* elem when width 1 */
LLVMValueRef lw_splat(lw_fn *f, LLVMValueRef scalar, int width);
LLVMValueRef lw_lanes(lw_fn *f, LLVMTypeRef int_type, int width); /* 0,1,2... */
/* The first n of width lanes; those with lin + lane < end (i64). */
LLVMValueRef lw_mask_first(lw_fn *f, int64_t n, int width);
LLVMValueRef lw_mask_below(lw_fn *f, LLVMValueRef lin, LLVMValueRef end,
                           int width);
/* Sum, and product with a constant, of i64 or vectors of them. */
LLVMValueRef lw_add(lw_fn *f, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef lw_mul_const(lw_fn *f, LLVMValueRef v, int64_t c);
/* Calls an overloaded LLVM intrinsic ("llvm.smax") of these types. */
LLVMValueRef lw_intrinsic(lw_fn *f, const char *name, LLVMTypeRef *over,
                          int n_over, LLVMValueRef *args, int n_args);
LLVMValueRef lw_min_max(lw_fn *f, const char *name, LLVMValueRef a,
                        LLVMValueRef b);
/* Remembers the first error. */
void lw_fn_fail(lw_fn *f, lw_status s);

/* ---- access.c: memory ---- */
/* The base pointer of an addressable value (parameter, constant buffer, staged
 * value), such that its row-major element e is at base + e * bytes (thread
 * scratch: e counted in the whole array, as everywhere). NULL when the value
 * is inline. Staged values with several homes give the first. */
LLVMValueRef lw_array_base(lw_fn *f, lw_value v);
LLVMValueRef lw_dest_base(lw_fn *f, const lw_stage *s, int32_t result);
LLVMValueRef lw_buffer(lw_fn *f, int32_t buffer);
/* base + index * bytes (index i64 in elements of size bytes). */
LLVMValueRef lw_at(lw_fn *f, LLVMValueRef base, LLVMValueRef index,
                   int64_t bytes);
/* W consecutive elements of type t at p (lanes where mask, i1 or <W x i1>,
 * NULL: all), in BITS form. Complex elements are interleaved in memory. */
lw_cgval lw_load(lw_fn *f, lw_prim t, LLVMValueRef p, int width,
                 LLVMValueRef mask);
void lw_store(lw_fn *f, lw_cgval v, LLVMValueRef p, int width,
              LLVMValueRef mask);
/* Elements base[offsets[l]], offsets <W x i32> or <W x i64> in elements. */
lw_cgval lw_load_gather(lw_fn *f, lw_prim t, LLVMValueRef base,
                        LLVMValueRef offsets, int width, LLVMValueRef mask);
void lw_store_scatter(lw_fn *f, lw_cgval v, LLVMValueRef base,
                      LLVMValueRef offsets, int width, LLVMValueRef mask);
/* Load and store at a linear index expression, under the current mask. */
lw_ev lw_load_at(lw_fn *f, lw_prim t, LLVMValueRef base, const lw_expr *lin);
void lw_store_at(lw_fn *f, lw_ev v, LLVMValueRef base, const lw_expr *lin);

/* ---- value.c ---- */
/* Binds a loop variable: atoms of var then have this value. The level is the
 * current one. */
const lw_expr *lw_bind(lw_fn *f, int32_t var, LLVMValueRef base, int64_t extent,
                       bool vec);
/* Uniform expressions as i64; others as {base, stride} or as <W x i32/i64>. */
LLVMValueRef lw_expr_scalar(lw_fn *f, const lw_expr *e);
LLVMValueRef lw_expr_vector(lw_fn *f, const lw_expr *e);
bool lw_expr_is_vec(lw_fn *f, const lw_expr *e);
/* The deepest level among its variables. */
int lw_expr_level(lw_fn *f, const lw_expr *e);
/* Puts the builder where code of a level goes. Value emission leaves it
 * anywhere inside; lw_emit_value and the accesses end at the innermost. */
void lw_seek(lw_fn *f, int level);
/* Around code that seeks: enter takes the builder's block for the innermost. */
void lw_enter(lw_fn *f);
void lw_leave(lw_fn *f);
/* The element(s) of a value at idx (one expression a dim), under f->mask. */
lw_ev lw_emit_value(lw_fn *f, lw_value v, const lw_expr *const *idx);
/* The same where n conditions hold (elsewhere the lanes are anything and
 * nothing is read); *where: the lanes that count, NULL: all. Always f->width
 * lanes. */
lw_ev lw_emit_where(lw_fn *f, lw_value v, const lw_expr *const *idx, int32_t n,
                    const lw_cond *conds, LLVMValueRef *where);

/* ---- lanes.c ---- */
/* The elementwise operation of inst on values of its operands. */
lw_cgval lw_emit_elem(lw_fn *f, const lw_inst *inst, const lw_cgval *ops,
                      int width);
/* A scalar computation (reducer, comparator, map body) inlined on lanes:
 * args in parameter order, results in leaf order. */
void lw_emit_comp(lw_fn *f, const lw_comp *c, const lw_cgval *args, int width,
                  lw_cgval *results);
lw_cgval lw_cg_const(lw_fn *f, const lw_literal *scalar, int width);
lw_cgval lw_cg_splat(lw_fn *f, lw_cgval v, int width);
lw_cgval lw_cg_select(lw_fn *f, LLVMValueRef mask, lw_cgval a, lw_cgval b);
/* Both parts in the form a slot or a phi wants: narrow floats stay WIDE, the
 * others as they are. */
lw_cgval lw_cg_as(lw_fn *f, lw_cgval v, lw_rep rep);
LLVMTypeRef lw_cg_type(lw_fn *f, lw_prim t, lw_rep rep, int width);
/* Slots for values: two allocas for complex. */
typedef struct {
  LLVMValueRef re, im;
  lw_prim type;
  lw_rep rep;
  int width;
} lw_slot;
lw_slot lw_slot_new(lw_fn *f, lw_prim t, int width);
void lw_slot_set(lw_fn *f, const lw_slot *s, lw_cgval v);
lw_cgval lw_slot_get(lw_fn *f, const lw_slot *s);
/* The widest element a stage computes with, in bytes; W = vec_bytes / it. */
int lw_stage_width(const lw_fn *f, const lw_stage *s);

/* ---- stages ---- */
/* Each emits the stage's work for the tile's points [f->p0, f->p1). */
lw_status lw_emit_map_group(lw_fn *f, int32_t first, int32_t n);
lw_status lw_emit_reduce_stage(lw_fn *f, const lw_stage *s);
lw_status lw_emit_window_stage(lw_fn *f, const lw_stage *s);
lw_status lw_emit_scan_stage(lw_fn *f, const lw_stage *s);
lw_status lw_emit_update_stage(lw_fn *f, const lw_stage *s);
/* scatter.c, sort.c (with topk), rng.c. */
lw_status lw_emit_scatter_stage(lw_fn *f, const lw_stage *s);
lw_status lw_emit_select_scatter_stage(lw_fn *f, const lw_stage *s);
lw_status lw_emit_sort_stage(lw_fn *f, const lw_stage *s);
lw_status lw_emit_topk_stage(lw_fn *f, const lw_stage *s);
lw_status lw_emit_rng_stage(lw_fn *f, const lw_stage *s);
/* dot.c, conv.c. Operands are addressable (lw_array_base): parameters, constant
 * buffers or staged values, row-major. The stage's points are the linear index
 * over all leading dims of the result that come from batch and lhs free dims
 * (conv: over the output batch), each with elements / points result elements
 * in a row; write lw_dest_base(f, s, 0) for points [f->p0, f->p1). */
lw_status lw_emit_dot_stage(lw_fn *f, const lw_stage *s);
lw_status lw_emit_conv_stage(lw_fn *f, const lw_stage *s);

#endif
