/* sort and topk: bottom-up merge sorts of index arrays, a line at a time, lines
 * in parallel. A later element goes first only when it is strictly less, so
 * the order is stable. The merges are those of the interpreter, one for one:
 * comparators that are no order (NaN under LT) give its bits as well. */
#include "codegen/llvm/emit.h"

typedef struct {
  lw_fn *f;
  const lw_stage *s;
  int64_t n;               /* length of a line */
  LLVMValueRef order, tmp; /* i64[n] each */
  LLVMValueRef result;     /* where the sorted order ended: one of the two */
  void (*less)(void *ctx, LLVMValueRef a, LLVMValueRef b, LLVMValueRef *out);
  void *ctx;
} sorter;

static LLVMValueRef i64_at(lw_fn *f, LLVMValueRef base, LLVMValueRef i) {
  return LLVMBuildLoad2(f->b, f->em->i64, lw_at(f, base, i, 8), "");
}
static LLVMValueRef lt(lw_fn *f, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildICmp(f->b, LLVMIntSLT, a, b, "");
}

/* Merges [lo, mid) and [mid, hi) of src into dst: one counted loop; both sides'
 * heads are compared every time, clamped into their runs. */
static void merge(sorter *s, LLVMValueRef src, LLVMValueRef dst,
                  LLVMValueRef lo, LLVMValueRef mid, LLVMValueRef hi,
                  LLVMValueRef pa, LLVMValueRef pb) {
  lw_fn *f = s->f;
  LLVMBuildStore(f->b, lo, pa);
  LLVMBuildStore(f->b, mid, pb);
  lw_loop l = lw_loop_begin(f, lo, hi, 1, "merge");
  LLVMValueRef one = lw_i64(f, 1), less = NULL;
  LLVMValueRef a = LLVMBuildLoad2(f->b, f->em->i64, pa, "");
  LLVMValueRef b = LLVMBuildLoad2(f->b, f->em->i64, pb, "");
  LLVMValueRef a_in =
      lw_min_max(f, "llvm.smin", a, LLVMBuildSub(f->b, mid, one, ""));
  LLVMValueRef b_in =
      lw_min_max(f, "llvm.smin", b, LLVMBuildSub(f->b, hi, one, ""));
  LLVMValueRef ea = i64_at(f, src, a_in), eb = i64_at(f, src, b_in);
  s->less(s->ctx, eb, ea, &less);
  LLVMValueRef a_done = LLVMBuildNot(f->b, lt(f, a, mid), "");
  LLVMValueRef take_b =
      LLVMBuildAnd(f->b, lt(f, b, hi), LLVMBuildOr(f->b, a_done, less, ""), "");
  LLVMBuildStore(f->b, LLVMBuildSelect(f->b, take_b, eb, ea, ""),
                 lw_at(f, dst, l.iv, 8));
  LLVMBuildStore(f->b, LLVMBuildSelect(f->b, take_b, a, lw_add(f, a, one), ""),
                 pa);
  LLVMBuildStore(f->b, LLVMBuildSelect(f->b, take_b, lw_add(f, b, one), b, ""),
                 pb);
  lw_loop_end(f, &l);
}

static void sort_line(sorter *s) {
  lw_fn *f = s->f;
  LLVMValueRef n = lw_i64(f, s->n), zero = lw_i64(f, 0), one = lw_i64(f, 1);
  lw_loop init = lw_loop_begin(f, zero, n, 1, "order");
  LLVMBuildStore(f->b, init.iv, lw_at(f, s->order, init.iv, 8));
  lw_loop_end(f, &init);
  int64_t rounds = 0;
  while (((int64_t)1 << rounds) < s->n) rounds++;
  LLVMValueRef pa = lw_local(f, f->em->i64, "a"),
               pb = lw_local(f, f->em->i64, "b");
  lw_loop r = lw_loop_begin(f, zero, lw_i64(f, rounds), 1, "round");
  LLVMValueRef odd = LLVMBuildTrunc(f->b, r.iv, f->em->i1, "");
  LLVMValueRef src = LLVMBuildSelect(f->b, odd, s->tmp, s->order, "");
  LLVMValueRef dst = LLVMBuildSelect(f->b, odd, s->order, s->tmp, "");
  LLVMValueRef width = LLVMBuildShl(f->b, one, r.iv, "");
  LLVMValueRef two = LLVMBuildShl(f->b, width, one, "");
  LLVMValueRef blocks = LLVMBuildUDiv(
      f->b, lw_add(f, n, LLVMBuildSub(f->b, two, one, "")), two, "");
  lw_loop b = lw_loop_begin(f, zero, blocks, 1, "block");
  LLVMValueRef lo = LLVMBuildMul(f->b, b.iv, two, "");
  LLVMValueRef mid = lw_min_max(f, "llvm.smin", lw_add(f, lo, width), n);
  LLVMValueRef hi = lw_min_max(f, "llvm.smin", lw_add(f, lo, two), n);
  merge(s, src, dst, lo, mid, hi, pa, pb);
  lw_loop_end(f, &b);
  lw_loop_end(f, &r);
  s->result = rounds % 2 ? s->tmp : s->order;
}

static sorter sorter_new(lw_fn *f, const lw_stage *s, int64_t n) {
  sorter r = {.f = f, .s = s, .n = n};
  r.order = lw_at(f, f->scratch, lw_i64(f, s->work_offset), 1);
  r.tmp = lw_at(f, r.order, lw_i64(f, n), 8);
  return r;
}

/* ---- sort ---- */

enum { MAX_SORT = 64 };

typedef struct {
  lw_fn *f;
  const lw_stage *s;
  int64_t stride;
  LLVMValueRef line; /* element number of the line's first element */
  LLVMValueRef in[MAX_SORT], out[MAX_SORT];
} sort;

static LLVMValueRef line_at(sort *c, LLVMValueRef base, int32_t r,
                            LLVMValueRef e) {
  lw_fn *f = c->f;
  LLVMValueRef at = LLVMBuildMul(f->b, e, lw_i64(f, c->stride), "");
  return lw_at(f, base, lw_add(f, c->line, at),
               lw_prim_bytes(c->s->shapes[r]->type));
}

static void sort_less(void *ctx, LLVMValueRef a, LLVMValueRef b,
                      LLVMValueRef *out) {
  sort *c = ctx;
  lw_cgval args[2 * MAX_SORT], r;
  for (int32_t k = 0; k < c->s->n_results; k++) {
    lw_prim t = c->s->shapes[k]->type;
    args[2 * k] = lw_load(c->f, t, line_at(c, c->in[k], k, a), 1, NULL);
    args[2 * k + 1] = lw_load(c->f, t, line_at(c, c->in[k], k, b), 1, NULL);
  }
  lw_emit_comp(c->f, lw_inst_comp(c->s->inst, LW_ATTR_TO_APPLY), args, 1, &r);
  *out = r.re;
}

static void permute(sort *c, const sorter *s) {
  lw_fn *f = c->f;
  lw_loop l = lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, s->n), 1, "permute");
  LLVMValueRef from = i64_at(f, s->result, l.iv);
  for (int32_t k = 0; k < c->s->n_results; k++) {
    lw_cgval v = lw_load(f, c->s->shapes[k]->type,
                         line_at(c, c->in[k], k, from), 1, NULL);
    lw_store(f, v, line_at(c, c->out[k], k, l.iv), 1, NULL);
  }
  lw_loop_end(f, &l);
}

/* Lines [from, to) of the tile: a point is a number of whole (line, stride)
 * blocks, since points are leading dims before the sorted one. */
lw_status lw_emit_sort_stage(lw_fn *f, const lw_stage *s) {
  const lw_shape *shape = s->shapes[0];
  int32_t n_dims;
  const int64_t *dims = lw_inst_i64s(s->inst, LW_ATTR_DIMENSIONS, &n_dims);
  int64_t dim = n_dims ? dims[0] : shape->rank - 1;
  if (s->n_results > MAX_SORT)
    return lw_error(LW_UNIMPLEMENTED, "%s: sort of %d operands", s->inst->name,
                    s->n_results);
  if (!shape->elements) return f->error;
  sort c = {.f = f, .s = s, .stride = 1};
  for (int32_t d = (int32_t)dim + 1; d < shape->rank; d++)
    c.stride *= shape->dims[d];
  for (int32_t k = 0; k < s->n_results; k++) {
    c.in[k] = lw_array_base(f, lw_value_operand(s->inst, k));
    c.out[k] = lw_dest_base(f, s, k);
  }
  sorter w = sorter_new(f, s, shape->dims[dim]);
  w.less = sort_less;
  w.ctx = &c;
  int old = lw_width(f, 1);
  int64_t lines = shape->elements / w.n / f->phase->n_points;
  LLVMValueRef per = lw_i64(f, lines), stride = lw_i64(f, c.stride);
  lw_loop l = lw_loop_begin(f, LLVMBuildMul(f->b, f->p0, per, ""),
                            LLVMBuildMul(f->b, f->p1, per, ""), 1, "line");
  LLVMValueRef outer = LLVMBuildUDiv(f->b, l.iv, stride, "");
  LLVMValueRef inner = LLVMBuildURem(f->b, l.iv, stride, "");
  c.line = lw_add(f, LLVMBuildMul(f->b, outer, lw_i64(f, w.n * c.stride), ""),
                  inner);
  sort_line(&w);
  permute(&c, &w);
  lw_loop_end(f, &l);
  lw_width(f, old);
  return f->error;
}

/* ---- topk ---- */

typedef struct {
  lw_fn *f;
  lw_prim type;
  bool largest;
  LLVMValueRef base, row; /* the operand; element number of the row's start */
} topk;

static lw_cgval row_value(topk *c, LLVMValueRef e) {
  LLVMValueRef p =
      lw_at(c->f, c->base, lw_add(c->f, c->row, e), lw_prim_bytes(c->type));
  return lw_load(c->f, c->type, p, 1, NULL);
}

/* Total order, so that NaNs have a place. */
static void topk_less(void *ctx, LLVMValueRef a, LLVMValueRef b,
                      LLVMValueRef *out) {
  topk *c = ctx;
  lw_elem_op op = {.op = LW_OP_COMPARE,
                   .in = {c->type, c->type},
                   .out = LW_PRED,
                   .dir = c->largest ? LW_CMP_GT : LW_CMP_LT,
                   .total_order = lw_prim_is_float(c->type)};
  lw_cgval x = row_value(c, a), y = row_value(c, b);
  *out = lw_mathgen_elem(&c->f->g, &op, x, y, y).re;
}

lw_status lw_emit_topk_stage(lw_fn *f, const lw_stage *s) {
  lw_value v = lw_value_operand(s->inst, 0);
  const lw_shape *in = lw_value_shape(v);
  int64_t n = in->dims[in->rank - 1], k = lw_inst_i64(s->inst, LW_ATTR_K, 0);
  if (!in->elements || !k) return f->error;
  topk c = {.f = f, .type = in->type, .base = lw_array_base(f, v)};
  c.largest = lw_inst_i64(s->inst, LW_ATTR_LARGEST, 1) != 0;
  sorter w = sorter_new(f, s, n);
  w.less = topk_less;
  w.ctx = &c;
  int old = lw_width(f, 1);
  LLVMValueRef per = lw_i64(f, in->elements / n / f->phase->n_points);
  LLVMValueRef values = lw_dest_base(f, s, 0), places = lw_dest_base(f, s, 1);
  lw_loop l = lw_loop_begin(f, LLVMBuildMul(f->b, f->p0, per, ""),
                            LLVMBuildMul(f->b, f->p1, per, ""), 1, "row");
  c.row = LLVMBuildMul(f->b, l.iv, lw_i64(f, n), "");
  sort_line(&w);
  lw_loop o = lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, k), 1, "out");
  LLVMValueRef from = i64_at(f, w.result, o.iv);
  LLVMValueRef to = lw_add(f, LLVMBuildMul(f->b, l.iv, lw_i64(f, k), ""), o.iv);
  lw_store(f, row_value(&c, from), lw_at(f, values, to, lw_prim_bytes(c.type)),
           1, NULL);
  lw_prim it = s->shapes[1]->type;
  LLVMTypeRef int_type =
      LLVMIntTypeInContext(f->em->ctx, lw_prim_bytes(it) * 8u);
  lw_cgval index = {.re = LLVMBuildIntCast2(f->b, from, int_type, 1, ""),
                    .type = it};
  lw_store(f, index, lw_at(f, places, to, lw_prim_bytes(it)), 1, NULL);
  lw_loop_end(f, &o);
  lw_loop_end(f, &l);
  lw_width(f, old);
  return f->error;
}
