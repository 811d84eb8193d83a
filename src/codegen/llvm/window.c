/* Windows in window order (numerics.md 6): vectorised along the result's
 * elements, one window position after the other. Positions outside the operand
 * or in the holes of its dilation are skipped lane by lane: a simple reducer
 * takes its neutral element there, another keeps a mask of lanes that have
 * begun. Small windows are written out, so that what a position needs is known
 * when it is emitted.
 */
#include "codegen/llvm/emit.h"
#include "codegen/llvm/stages.h"
#include "hlo/fold.h"

#include <string.h>

enum { UNROLL = 16, MOST_OPERANDS = 32 };

typedef struct {
  const lw_stage *s;
  const lw_inst *i;
  const lw_window *w;
  const lw_comp *f;
  int32_t n;
  const lw_shape *in, *out;
  bool neutral;
  bool unroll;
  lw_slot acc[MOST_OPERANDS];
  LLVMValueRef begun; /* <W x i1> slot, without a neutral element */
} win;

/* Index and conditions of one window position; false: never inside. */
static bool position(lw_fn *f, const win *w, const lw_expr *const *at,
                     const lw_expr *const *pos, const lw_expr **idx,
                     lw_cond *conds, int32_t *n) {
  *n = 0;
  for (int32_t d = 0; d < w->in->rank; d++) {
    const lw_window_dim *x = &w->w->dims[d];
    const lw_expr *k = pos[d];
    if (x->reversed)
      k = lw_ex_addc(f->ix, lw_ex_mul(f->ix, k, -1), x->size - 1);
    const lw_expr *e = lw_ex_add(f->ix, lw_ex_mul(f->ix, at[d], x->stride),
                                 lw_ex_mul(f->ix, k, x->rhs_dilation));
    e = lw_ex_addc(f->ix, e, -x->pad_lo);
    int64_t last = (w->in->dims[d] - 1) * x->lhs_dilation;
    if (e->hi < 0 || e->lo > last) return false;
    if (lw_ex_is_const(e) && e->c % x->lhs_dilation) return false;
    if (e->lo < 0 || e->hi > last ||
        (x->lhs_dilation > 1 && !lw_ex_is_const(e)))
      conds[(*n)++] = (lw_cond){e, 0, last, x->lhs_dilation};
    idx[d] = lw_ex_div(f->ix, e, x->lhs_dilation);
  }
  return true;
}

static lw_cgval neutral_value(lw_fn *f, const win *w) {
  uint64_t bits[2];
  lw_neutral(lw_comp_binary_op(w->f), w->in->type, bits);
  int old = lw_width(f, f->width);
  lw_cgval v = lw_mathgen_const(&f->g, w->in->type, bits);
  lw_width(f, old);
  return v;
}

static lw_cgval chosen(lw_fn *f, LLVMValueRef c, lw_cgval a, lw_cgval b) {
  if (!c) return a;
  int old = lw_width(f, f->width);
  lw_cgval v = lw_cg_select(f, c, a, b);
  lw_width(f, old);
  return v;
}

static void take(lw_fn *f, const win *w, const lw_expr *const *at,
                 const lw_expr *const *pos) {
  const lw_expr *idx[LW_MAX_RANK];
  lw_cond conds[LW_MAX_RANK];
  int32_t n;
  if (!position(f, w, at, pos, idx, conds, &n)) return;
  lw_cgval args[2 * MOST_OPERANDS], y[MOST_OPERANDS];
  LLVMValueRef where = NULL;
  for (int32_t j = 0; j < w->n; j++) {
    lw_ev x =
        lw_emit_where(f, lw_value_operand(w->i, j), idx, n, conds, &where);
    args[j] = lw_slot_get(f, &w->acc[j]);
    args[w->n + j] = x.v;
  }
  if (w->neutral) {
    args[1] = chosen(f, where, args[1], neutral_value(f, w));
    lw_emit_comp(f, w->f, args, f->width, y);
    lw_slot_set(f, &w->acc[0], y[0]);
    return;
  }
  LLVMTypeRef mt = lw_vec_type(f->em->i1, f->width);
  lw_emit_comp(f, w->f, args, f->width, y);
  LLVMValueRef begun = LLVMBuildLoad2(f->b, mt, w->begun, "");
  for (int32_t j = 0; j < w->n; j++) {
    lw_cgval v = chosen(f, begun, y[j], args[w->n + j]);
    lw_slot_set(f, &w->acc[j], chosen(f, where, v, args[j]));
  }
  LLVMValueRef now =
      where ? LLVMBuildOr(f->b, begun, where, "") : LLVMConstAllOnes(mt);
  LLVMBuildStore(f->b, now, w->begun);
}

static void positions(lw_fn *f, const win *w, const lw_expr *const *at,
                      const lw_expr **pos, int32_t d) {
  if (d == w->in->rank) {
    take(f, w, at, pos);
    return;
  }
  int64_t size = w->w->dims[d].size;
  if (w->unroll || size == 1) {
    for (int64_t k = 0; k < size; k++) {
      pos[d] = lw_ex_const(f->ix, k);
      positions(f, w, at, pos, d + 1);
    }
    return;
  }
  lw_loop l = lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, size), 1, "window");
  pos[d] = lw_bind(f, LW_CV_WINDOW + d, l.iv, size, false);
  positions(f, w, at, pos, d + 1);
  lw_loop_end(f, &l);
}

static void start(lw_fn *f, const win *w) {
  for (int32_t j = 0; j < w->n; j++) {
    if (w->neutral) {
      lw_slot_set(f, &w->acc[j], neutral_value(f, w));
      continue;
    }
    LLVMTypeRef t = LLVMGetAllocatedType(w->acc[j].re);
    LLVMBuildStore(f->b, LLVMConstNull(t), w->acc[j].re);
    if (w->acc[j].im) LLVMBuildStore(f->b, LLVMConstNull(t), w->acc[j].im);
  }
  if (!w->neutral)
    LLVMBuildStore(f->b, LLVMConstNull(lw_vec_type(f->em->i1, f->width)),
                   w->begun);
}

static void window_element(lw_fn *f, void *ctx, const lw_expr *g) {
  const win *w = ctx;
  const lw_expr *at[LW_MAX_RANK], *pos[LW_MAX_RANK];
  lw_ex_delinear(f->ix, g, w->out->rank, w->out->dims, at);
  start(f, w);
  if (w->in->elements) positions(f, w, at, pos, 0);
  lw_cgval args[2 * MOST_OPERANDS], y[MOST_OPERANDS];
  for (int32_t j = 0; j < w->n; j++) {
    lw_ev v = lw_emit_value(f, lw_value_operand(w->i, w->n + j), NULL);
    args[j] = f->width > 1 ? lw_cg_splat(f, v.v, f->width) : v.v;
    args[w->n + j] = lw_slot_get(f, &w->acc[j]);
  }
  lw_emit_comp(f, w->f, args, f->width, y);
  LLVMValueRef begun = NULL;
  if (!w->neutral)
    begun =
        LLVMBuildLoad2(f->b, lw_vec_type(f->em->i1, f->width), w->begun, "");
  for (int32_t j = 0; j < w->n; j++) {
    lw_cgval v = chosen(f, begun, y[j], args[j]);
    lw_store_result(f, w->s, j, (lw_ev){v, f->width > 1, f->n_levels - 1}, g);
  }
}

lw_status lw_emit_window_stage(lw_fn *f, const lw_stage *s) {
  static const lw_window none = {0};
  win w = {.s = s, .i = s->inst, .n = s->inst->n_operands / 2};
  if (w.n > MOST_OPERANDS)
    return lw_error(LW_UNIMPLEMENTED, "%s: more than %d operands",
                    s->inst->name, MOST_OPERANDS);
  w.w = lw_inst_window(s->inst);
  w.f = lw_inst_comp(s->inst, LW_ATTR_TO_APPLY);
  w.in = lw_value_shape(lw_value_operand(s->inst, 0));
  w.out = s->shapes[0];
  if (!w.w && w.in->rank == 0) w.w = &none;
  if (!w.w || w.w->rank != w.in->rank)
    return lw_error(LW_INVALID_ARGUMENT, "the window does not fit the operand");
  lw_opcode op = lw_comp_binary_op(w.f);
  uint64_t bits[2];
  w.neutral = w.n == 1 && op != LW_OPCODE_COUNT && lw_fold_op_is_simple(op) &&
              lw_neutral(op, w.in->type, bits);
  int64_t total = 1;
  for (int32_t d = 0; d < w.in->rank && total <= UNROLL; d++)
    total *= w.w->dims[d].size;
  w.unroll = total <= UNROLL;
  f->width = lw_domain_width(f, s);
  for (int32_t j = 0; j < w.n; j++)
    w.acc[j] = lw_slot_new(f, s->shapes[j]->type, f->width);
  if (!w.neutral)
    w.begun = lw_local(f, lw_vec_type(f->em->i1, f->width), "begun");
  lw_domain_loop(f, s->domain->elements, s->inner, window_element, &w);
  return NULL;
}
