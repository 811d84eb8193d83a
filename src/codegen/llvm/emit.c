/* Blocks, levels and loops of a phase function. */
#include "codegen/llvm/emit.h"

#include <string.h>

void lw_fn_fail(lw_fn *f, lw_status s) {
  if (!f->error)
    f->error = s;
  else
    lw_status_free(s);
}

int lw_width(lw_fn *f, int width) {
  int old = f->g.width;
  f->g.width = width;
  return old;
}

LLVMTypeRef lw_vec_type(LLVMTypeRef elem, int width) {
  return width == 1 ? elem : LLVMVectorType(elem, (unsigned)width);
}

LLVMValueRef lw_local(lw_fn *f, LLVMTypeRef t, const char *name) {
  LLVMBasicBlockRef at = LLVMGetInsertBlock(f->b);
  LLVMPositionBuilderBefore(f->b, LLVMGetBasicBlockTerminator(f->entry));
  LLVMValueRef v = LLVMBuildAlloca(f->b, t, name);
  LLVMPositionBuilderAtEnd(f->b, at);
  return v;
}

LLVMValueRef lw_splat(lw_fn *f, LLVMValueRef x, int width) {
  if (width == 1) return x;
  LLVMTypeRef vt = LLVMVectorType(LLVMTypeOf(x), (unsigned)width);
  LLVMTypeRef mt = LLVMVectorType(f->em->i32, (unsigned)width);
  LLVMValueRef v = LLVMBuildInsertElement(f->b, LLVMGetPoison(vt), x,
                                          LLVMConstInt(f->em->i32, 0, 0), "");
  return LLVMBuildShuffleVector(f->b, v, LLVMGetPoison(vt), LLVMConstNull(mt),
                                "");
}

LLVMValueRef lw_lanes(lw_fn *f, LLVMTypeRef t, int width) {
  (void)f;
  LLVMValueRef v[64];
  for (int i = 0; i < width; i++) v[i] = LLVMConstInt(t, (unsigned)i, 0);
  return width == 1 ? v[0] : LLVMConstVector(v, (unsigned)width);
}

LLVMValueRef lw_mask_first(lw_fn *f, int64_t n, int width) {
  LLVMValueRef bits[64];
  for (int i = 0; i < width; i++) bits[i] = LLVMConstInt(f->em->i1, i < n, 0);
  return width == 1 ? bits[0] : LLVMConstVector(bits, (unsigned)width);
}

LLVMValueRef lw_mask_below(lw_fn *f, LLVMValueRef lin, LLVMValueRef end,
                           int width) {
  LLVMValueRef left = lw_splat(f, LLVMBuildSub(f->b, end, lin, ""), width);
  return LLVMBuildICmp(f->b, LLVMIntSLT, lw_lanes(f, f->em->i64, width), left,
                       "");
}

LLVMValueRef lw_add(lw_fn *f, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildAdd(f->b, a, b, "");
}

LLVMValueRef lw_mul_const(lw_fn *f, LLVMValueRef v, int64_t c) {
  if (c == 1) return v;
  LLVMTypeRef t = LLVMTypeOf(v);
  LLVMValueRef k = lw_i64(f, c);
  if (LLVMGetTypeKind(t) == LLVMVectorTypeKind)
    k = lw_splat(f, k, (int)LLVMGetVectorSize(t));
  return LLVMBuildMul(f->b, v, k, "");
}

LLVMValueRef lw_intrinsic(lw_fn *f, const char *name, LLVMTypeRef *over,
                          int n_over, LLVMValueRef *args, int n_args) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMValueRef fn =
      LLVMGetIntrinsicDeclaration(f->em->mod, id, over, (size_t)n_over);
  return LLVMBuildCall2(f->b, LLVMGlobalGetValueType(fn), fn, args,
                        (unsigned)n_args, "");
}

LLVMValueRef lw_min_max(lw_fn *f, const char *name, LLVMValueRef a,
                        LLVMValueRef b) {
  LLVMTypeRef t = LLVMTypeOf(a);
  LLVMValueRef args[2] = {a, b};
  return lw_intrinsic(f, name, &t, 1, args, 2);
}

/* ---- levels ---- */

static void push_level(lw_fn *f, LLVMBasicBlockRef pre) {
  LW_ASSERT(f->n_levels < LW_MAX_LEVELS);
  f->levels[f->n_levels - 1].pre = pre;
  f->levels[f->n_levels - 1].open = false;
  lw_level *l = &f->levels[f->n_levels++];
  memset(l, 0, sizeof *l);
  l->open = true;
}

static void settle_at(lw_fn *f, LLVMBasicBlockRef b) {
  LLVMPositionBuilderAtEnd(f->b, b);
  f->cur = b;
}

static void pop_level(lw_fn *f) {
  lw_map_free(&f->levels[--f->n_levels].memo);
  f->levels[f->n_levels - 1].open = true;
}

static LLVMBasicBlockRef block(lw_fn *f, const char *name) {
  return LLVMAppendBasicBlockInContext(f->em->ctx, f->fn, name);
}

lw_loop lw_loop_begin(lw_fn *f, LLVMValueRef lo, LLVMValueRef hi, int64_t step,
                      const char *name) {
  lw_loop l = {.body = block(f, name),
               .exit = block(f, "end"),
               .hi = hi,
               .step = lw_i64(f, step)};
  LLVMBasicBlockRef pre = LLVMGetInsertBlock(f->b);
  LLVMValueRef any = LLVMBuildICmp(f->b, LLVMIntSLT, lo, hi, "");
  LLVMBuildCondBr(f->b, any, l.body, l.exit);
  push_level(f, pre);
  settle_at(f, l.body);
  l.iv = LLVMBuildPhi(f->b, f->em->i64, "i");
  LLVMAddIncoming(l.iv, &lo, &pre, 1);
  return l;
}

void lw_loop_end(lw_fn *f, lw_loop *l) {
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(f->b);
  LLVMValueRef next = LLVMBuildNSWAdd(f->b, l->iv, l->step, "");
  LLVMAddIncoming(l->iv, &next, &latch, 1);
  LLVMValueRef more = LLVMBuildICmp(f->b, LLVMIntSLT, next, l->hi, "");
  LLVMBuildCondBr(f->b, more, l->body, l->exit);
  LLVMMoveBasicBlockAfter(l->exit, latch);
  settle_at(f, l->exit);
  pop_level(f);
}

lw_if lw_if_begin(lw_fn *f, LLVMValueRef cond) {
  LLVMBasicBlockRef then = block(f, "then"), pre = LLVMGetInsertBlock(f->b);
  lw_if i = {block(f, "end")};
  LLVMBuildCondBr(f->b, cond, then, i.exit);
  push_level(f, pre);
  settle_at(f, then);
  return i;
}

void lw_if_end(lw_fn *f, lw_if *i) {
  LLVMBasicBlockRef at = LLVMGetInsertBlock(f->b);
  LLVMBuildBr(f->b, i->exit);
  LLVMMoveBasicBlockAfter(i->exit, at);
  settle_at(f, i->exit);
  pop_level(f);
}

/* ---- loops over elements ---- */

static bool const_of(LLVMValueRef v, int64_t *out) {
  if (!LLVMIsAConstantInt(v)) return false;
  *out = LLVMConstIntGetSExtValue(v);
  return true;
}

static void tail(lw_fn *f, int32_t var, int64_t extent, LLVMValueRef at,
                 LLVMValueRef hi, lw_body_fn body, void *ctx) {
  int w = f->width;
  lw_mask old = f->mask;
  const lw_expr *e = lw_bind(f, var, at, extent, true);
  LLVMTypeRef it = f->em->i32;
  LLVMValueRef left = LLVMBuildSub(f->b, hi, at, "");
  left = LLVMBuildTrunc(f->b, left, it, "");
  LLVMValueRef m = LLVMBuildICmp(f->b, LLVMIntULT, lw_lanes(f, it, w),
                                 lw_splat(f, left, w), "tail");
  f->mask.v = old.v ? LLVMBuildAnd(f->b, m, old.v, "") : m;
  body(f, ctx, e);
  f->mask = old;
}

/* Calls body for [lo, hi) in steps of the stage's width: whole vectors, then a
 * masked rest. whole: hi - lo is known to be a multiple of the width. */
void lw_vector_loop(lw_fn *f, int32_t var, int64_t extent, LLVMValueRef lo,
                    LLVMValueRef hi, bool whole, lw_body_fn body, void *ctx) {
  int w = f->width;
  int64_t clo, chi;
  bool fixed = const_of(lo, &clo) && const_of(hi, &chi);
  if (w == 1) {
    lw_loop l = lw_loop_begin(f, lo, hi, 1, "each");
    body(f, ctx, lw_bind(f, var, l.iv, extent, false));
    lw_loop_end(f, &l);
    return;
  }
  LLVMValueRef mid = hi;
  if (fixed) {
    mid = lw_i64(f, clo + (chi - clo) / w * w);
    whole = (chi - clo) % w == 0;
  } else if (!whole) {
    LLVMValueRef n = LLVMBuildSub(f->b, hi, lo, "");
    n = LLVMBuildAnd(f->b, n, lw_i64(f, -(int64_t)w), "");
    mid = LLVMBuildAdd(f->b, lo, n, "");
  }
  if (!fixed || chi - clo >= w) {
    lw_loop l = lw_loop_begin(f, lo, mid, w, "vec");
    body(f, ctx, lw_bind(f, var, l.iv, extent, true));
    lw_loop_end(f, &l);
  }
  if (whole) return;
  lw_if i = lw_if_begin(f, LLVMBuildICmp(f->b, LLVMIntSLT, mid, hi, ""));
  tail(f, var, extent, mid, hi, body, ctx);
  lw_if_end(f, &i);
}

typedef struct {
  lw_body_fn body;
  void *ctx;
  const lw_expr *base;
} shifted;

static void shifted_body(lw_fn *f, void *ctx, const lw_expr *e) {
  shifted *s = ctx;
  s->body(f, s->ctx, lw_ex_add(f->ix, s->base, e));
}

typedef struct {
  lw_body_fn body;
  void *ctx;
  int64_t per, n;
  LLVMValueRef lo, hi;
} blocked;

static void blocked_body(lw_fn *f, void *ctx, const lw_expr *v) {
  blocked *b = ctx;
  lw_loop l = lw_loop_begin(f, b->lo, b->hi, 1, "point");
  const lw_expr *p = lw_bind(f, LW_CV_POINT, l.iv, b->n, false);
  b->body(f, b->ctx, lw_ex_add(f->ix, lw_ex_mul(f->ix, p, b->per), v));
  lw_loop_end(f, &l);
}

/* Blocks of points times vectors, the points innermost: what a gather fetches
 * for one point serves the next ones. */
static void blocked_loop(lw_fn *f, int64_t per, int64_t n, lw_body_fn body,
                         void *ctx) {
  enum { BLOCK = 16 };
  lw_loop l = lw_loop_begin(f, f->p0, f->p1, BLOCK, "block");
  LLVMValueRef hi = LLVMBuildNSWAdd(f->b, l.iv, lw_i64(f, BLOCK), "");
  blocked b = {body, ctx, per, n, l.iv, lw_min_max(f, "llvm.smin", hi, f->p1)};
  lw_vector_loop(f, LW_CV_IN, per, lw_i64(f, 0), lw_i64(f, per), false,
                 blocked_body, &b);
  lw_loop_end(f, &l);
}

/* Every element of the tile's points; inner: the innermost loop's length. */
void lw_domain_loop(lw_fn *f, int64_t elements, int64_t inner, lw_body_fn body,
                    void *ctx) {
  const lw_phase *p = f->phase;
  int64_t n = p->n_points > 0 ? p->n_points : 1;
  int64_t per = elements / n;
  if (per == 0) return;
  if (per == 1) {
    bool whole = p->grain % f->width == 0 && n % f->width == 0;
    lw_vector_loop(f, LW_CV_IN, n, f->p0, f->p1, whole, body, ctx);
    return;
  }
  if (inner >= per || inner < 2 || per % inner) inner = per;
  if (f->k->stages[f->stage].strided && inner == per && n > 1) {
    blocked_loop(f, per, n, body, ctx);
    return;
  }
  lw_loop lp = lw_loop_begin(f, f->p0, f->p1, 1, "point");
  const lw_expr *pe = lw_bind(f, LW_CV_POINT, lp.iv, n, false);
  pe = lw_ex_mul(f->ix, pe, per);
  lw_loop lm = {0};
  if (inner < per) {
    lm = lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, per / inner), 1, "run");
    const lw_expr *m = lw_bind(f, LW_CV_MID, lm.iv, per / inner, false);
    pe = lw_ex_add(f->ix, pe, lw_ex_mul(f->ix, m, inner));
  }
  shifted s = {body, ctx, pe};
  lw_vector_loop(f, LW_CV_IN, inner, lw_i64(f, 0), lw_i64(f, inner), false,
                 shifted_body, &s);
  if (inner < per) lw_loop_end(f, &lm);
  lw_loop_end(f, &lp);
}
