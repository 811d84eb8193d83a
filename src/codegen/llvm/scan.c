/* Windows that are scans (numerics.md 6): prefixes in blocks of 1,024 with a
 * carry. Lines are independent: the vector runs along the dims after the
 * scanned one, or a line is scalar code when there are none. */
#include "codegen/llvm/emit.h"
#include "codegen/llvm/stages.h"
#include "hlo/fold.h"

typedef struct {
  const lw_stage *s;
  const lw_inst *i;
  const lw_comp *f;
  const lw_shape *shape;
  int64_t extent, blocks, post;
  bool reverse;
  lw_slot p, carry;
  const lw_expr *line; /* first element of the line block */
} scan;

static lw_cgval apply(lw_fn *f, const scan *s, lw_cgval a, lw_cgval b) {
  lw_cgval args[2] = {a, b}, y[1];
  lw_emit_comp(f, s->f, args, f->width, y);
  return y[0];
}

static lw_cgval pick(lw_fn *f, LLVMValueRef c, lw_cgval a, lw_cgval b) {
  int old = lw_width(f, f->width);
  lw_cgval v = lw_cg_select(f, c, a, b);
  lw_width(f, old);
  return v;
}

static lw_cgval wide(lw_fn *f, lw_ev v) {
  return v.vec || f->width == 1 ? v.v : lw_cg_splat(f, v.v, f->width);
}

/* Element j of the scan's order (not of memory) of the lanes at v. */
static void scan_step(lw_fn *f, const scan *s, const lw_expr *v,
                      const lw_expr *j, LLVMValueRef first,
                      LLVMValueRef later_block) {
  const lw_expr *at = j, *idx[LW_MAX_RANK];
  if (s->reverse)
    at = lw_ex_addc(f->ix, lw_ex_mul(f->ix, j, -1), s->extent - 1);
  const lw_expr *lin = lw_ex_add(
      f->ix, s->line, lw_ex_add(f->ix, lw_ex_mul(f->ix, at, s->post), v));
  lw_ex_delinear(f->ix, lin, s->shape->rank, s->shape->dims, idx);
  lw_cgval x = wide(f, lw_emit_value(f, lw_value_operand(s->i, 0), idx));
  lw_cgval init = wide(f, lw_emit_value(f, lw_value_operand(s->i, 1), NULL));
  lw_cgval p = pick(f, first, x, apply(f, s, lw_slot_get(f, &s->p), x));
  lw_slot_set(f, &s->p, p);
  lw_cgval y = p;
  if (later_block) {
    y = apply(f, s, lw_slot_get(f, &s->carry), p);
    y = pick(f, later_block, y, p);
  }
  y = apply(f, s, init, y);
  lw_store_result(f, s->s, 0, (lw_ev){y, f->width > 1, f->n_levels - 1}, lin);
}

static void scan_line(lw_fn *f, void *ctx, const lw_expr *v) {
  const scan *s = ctx;
  LLVMValueRef zero = lw_i64(f, 0);
  LLVMTypeRef t = LLVMGetAllocatedType(s->p.re);
  const lw_slot *slots[2] = {&s->p, &s->carry};
  for (int k = 0; k < 2; k++) {
    LLVMBuildStore(f->b, LLVMConstNull(t), slots[k]->re);
    if (slots[k]->im) LLVMBuildStore(f->b, LLVMConstNull(t), slots[k]->im);
  }
  lw_loop lb = lw_loop_begin(f, zero, lw_i64(f, s->blocks), 1, "block");
  LLVMValueRef later = NULL;
  if (s->blocks > 1) {
    later = LLVMBuildICmp(f->b, LLVMIntNE, lb.iv, zero, "");
    lw_cgval p = lw_slot_get(f, &s->p), c = lw_slot_get(f, &s->carry);
    LLVMValueRef one = LLVMBuildICmp(f->b, LLVMIntEQ, lb.iv, lw_i64(f, 1), "");
    lw_slot_set(f, &s->carry, pick(f, one, p, apply(f, s, c, p)));
  }
  LLVMValueRef lo =
      LLVMBuildNSWMul(f->b, lb.iv, lw_i64(f, LW_FOLD_SCAN_BLOCK), "");
  LLVMValueRef hi = lw_min_max(
      f, "llvm.smin", LLVMBuildAdd(f->b, lo, lw_i64(f, LW_FOLD_SCAN_BLOCK), ""),
      lw_i64(f, s->extent));
  lw_loop lj = lw_loop_begin(f, lo, hi, 1, "scan");
  const lw_expr *j = lw_bind(f, LW_CV_RUN, lj.iv, s->extent, false);
  LLVMValueRef first = LLVMBuildICmp(f->b, LLVMIntEQ, lj.iv, lo, "");
  scan_step(f, s, v, j, first, later);
  lw_loop_end(f, &lj);
  lw_loop_end(f, &lb);
}

lw_status lw_emit_scan_stage(lw_fn *f, const lw_stage *st) {
  int32_t dim = 0;
  scan s = {.s = st, .i = st->inst, .shape = st->shapes[0]};
  if (!lw_window_is_scan(st->inst, &dim, &s.reverse))
    return lw_error(LW_INTERNAL, "%s is no scan", st->inst->name);
  s.f = lw_inst_comp(st->inst, LW_ATTR_TO_APPLY);
  s.extent = s.shape->dims[dim];
  s.blocks = (s.extent + LW_FOLD_SCAN_BLOCK - 1) / LW_FOLD_SCAN_BLOCK;
  s.post = 1;
  for (int32_t d = dim + 1; d < s.shape->rank; d++) s.post *= s.shape->dims[d];
  f->width = s.post == 1 ? 1 : lw_stage_width(f, st);
  s.p = lw_slot_new(f, s.shape->type, f->width);
  s.carry = lw_slot_new(f, s.shape->type, f->width);
  int64_t n = f->phase->n_points > 0 ? f->phase->n_points : 1;
  int64_t block = s.extent * s.post, lines = s.shape->elements / block / n;
  lw_loop lp = lw_loop_begin(f, f->p0, f->p1, 1, "point");
  const lw_expr *p = lw_bind(f, LW_CV_POINT, lp.iv, n, false);
  lw_loop lq = lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, lines), 1, "line");
  const lw_expr *q = lw_bind(f, LW_CV_MID, lq.iv, lines, false);
  s.line =
      lw_ex_mul(f->ix, lw_ex_add(f->ix, lw_ex_mul(f->ix, p, lines), q), block);
  lw_vector_loop(f, LW_CV_IN, s.post, lw_i64(f, 0), lw_i64(f, s.post), false,
                 scan_line, &s);
  lw_loop_end(f, &lq);
  lw_loop_end(f, &lp);
  return NULL;
}
