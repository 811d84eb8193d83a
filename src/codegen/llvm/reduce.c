/* Reduces, by the fold orders of numerics.md 5 (hlo/fold.h).
 *
 * Row rule: the 64 lanes are one wide vector (LLVM splits it into registers),
 * or, when what is folded is long code, 64 elements of memory that native
 * vectors go over; either way lane l takes t mod 64 = l and the halving is
 * shuffles. Lanes that do not exist start as the reducer's neutral element,
 * which f(neutral, x) = x bit by bit (-0 for add); complex multiply has none
 * and its first elements are selected instead.
 * Column and sequence rules: the vector runs along the kept elements.
 */
#include "codegen/llvm/emit.h"
#include "codegen/llvm/stages.h"
#include "hlo/fold.h"

#include <string.h>

typedef struct {
  const lw_stage *s;
  const lw_inst *i;
  lw_fold fold;
  const lw_comp *f;
  int32_t n; /* operands = results */
  const lw_shape *in, *out;
  int64_t kept, blocks;
  int32_t n_red;
  int64_t red[LW_MAX_RANK]; /* extents of the reduced dims */
  bool is_red[LW_MAX_RANK];
  bool neutral; /* of a row rule */
  int lanes;    /* that can exist: a power of two <= 64 */
  bool in_memory;
  /* where */
  const lw_expr *kept_lin;
} red;

/* ---- neutral elements ---- */

static bool neutral(lw_opcode op, lw_prim t, void *out) {
  memset(out, 0, 16);
  lw_class c = lw_prim_class(t);
  if (op == LW_OP_ADD && c == LW_CLASS_FLOAT) {
    double v = -0.0;
    lw_elem_from_f64(t, v, out);
    return true;
  }
  if (op == LW_OP_ADD && c == LW_CLASS_COMPLEX) {
    lw_prim p = lw_prim_part(t);
    lw_elem_from_f64(p, -0.0, out);
    lw_elem_from_f64(p, -0.0, (char *)out + lw_prim_bytes(p));
    return true;
  }
  if (op == LW_OP_MULTIPLY && c == LW_CLASS_COMPLEX) return false;
  if (op == LW_OP_ADD || op == LW_OP_XOR || op == LW_OP_OR) return true;
  if (op == LW_OP_MULTIPLY) {
    if (c == LW_CLASS_FLOAT)
      lw_elem_from_f64(t, 1.0, out);
    else
      memset(out, 1, 1);
    return true;
  }
  bool max = op == LW_OP_MAXIMUM;
  int bits = lw_prim_table[t].bits;
  if (op == LW_OP_AND || (op == LW_OP_MINIMUM && c == LW_CLASS_UINT)) {
    memset(out, 0xff, (size_t)lw_prim_bytes(t));
    if (c == LW_CLASS_PRED) memset(out, 1, 1);
    if (bits < 8 && c == LW_CLASS_UINT) memset(out, (1 << bits) - 1, 1);
    return true;
  }
  if (c == LW_CLASS_PRED) { /* max is or, min is and */
    memset(out, max ? 0 : 1, 1);
    return true;
  }
  if (c == LW_CLASS_UINT) return true; /* max: 0 */
  if (c == LW_CLASS_SINT) {
    int64_t v = bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1));
    if (!max) v = -(v + 1);
    memcpy(out, &v, (size_t)lw_prim_bytes(t));
    return true;
  }
  return false; /* float max, min: a type may lack infinities or zero */
}

static bool float_extreme(lw_opcode op, lw_prim t, void *out) {
  memset(out, 0, 16);
  if (t != LW_F16 && t != LW_BF16 && t != LW_F32 && t != LW_F64) return false;
  double inf = 1.0 / (op == LW_OP_MAXIMUM ? -0.0 : 0.0);
  lw_elem_from_f64(t, inf, out);
  return true;
}

bool lw_neutral(lw_opcode op, lw_prim t, void *out) {
  if (neutral(op, t, out)) return true;
  if ((op == LW_OP_MAXIMUM || op == LW_OP_MINIMUM) && lw_prim_is_float(t))
    return float_extreme(op, t, out);
  return false;
}

/* ---- shared ---- */

static void apply(lw_fn *f, const red *r, const lw_cgval *a, const lw_cgval *b,
                  int width, lw_cgval *out) {
  lw_cgval args[2 * 64];
  for (int32_t j = 0; j < r->n; j++) {
    args[j] = a[j];
    args[r->n + j] = b[j];
  }
  lw_emit_comp(f, r->f, args, width, out);
}

static lw_cgval apply1(lw_fn *f, const red *r, lw_cgval a, lw_cgval b,
                       int width) {
  lw_cgval out[1];
  apply(f, r, &a, &b, width, out);
  return out[0];
}

static lw_status setup(const lw_stage *s, red *r) {
  memset(r, 0, sizeof *r);
  r->s = s;
  r->i = s->inst;
  r->fold = lw_reduce_fold(r->i);
  r->f = lw_inst_comp(r->i, LW_ATTR_TO_APPLY);
  r->n = r->i->n_operands / 2;
  if (r->n > 64)
    return lw_error(LW_UNIMPLEMENTED, "%s: more than 64 operands", r->i->name);
  r->in = lw_value_shape(lw_value_operand(r->i, 0));
  r->out = lw_shape_leaf(r->i->shape, 0);
  r->kept = r->out->elements;
  int32_t n_dims;
  const int64_t *dims = lw_inst_i64s(r->i, LW_ATTR_DIMENSIONS, &n_dims);
  for (int32_t k = 0; k < n_dims; k++) r->is_red[dims[k]] = true;
  for (int32_t d = 0; d < r->in->rank; d++)
    if (r->is_red[d]) r->red[r->n_red++] = r->in->dims[d];
  const lw_fold *o = &r->fold;
  if (o->rule != LW_FOLD_ROW)
    r->blocks = (o->n + LW_FOLD_SEQ_BLOCK - 1) / LW_FOLD_SEQ_BLOCK;
  else if (o->run > LW_FOLD_ROW_BLOCK)
    r->blocks =
        o->outer * ((o->run + LW_FOLD_ROW_BLOCK - 1) / LW_FOLD_ROW_BLOCK);
  else
    r->blocks = (o->outer + LW_FOLD_OUTER_BLOCK - 1) / LW_FOLD_OUTER_BLOCK;
  return NULL;
}

/* The operand's index from the kept element and the reduced linear index. */
static void operand_index(lw_fn *f, const red *r, const lw_expr *kept,
                          const lw_expr *lin, const lw_expr **idx) {
  const lw_expr *k[LW_MAX_RANK], *x[LW_MAX_RANK];
  lw_ex_delinear(f->ix, kept, r->out->rank, r->out->dims, k);
  lw_ex_delinear(f->ix, lin, r->n_red, r->red, x);
  int32_t nk = 0, nx = 0;
  for (int32_t d = 0; d < r->in->rank; d++)
    idx[d] = r->is_red[d] ? x[nx++] : k[nk++];
}

static void operands(lw_fn *f, const red *r, const lw_expr *const *idx,
                     lw_cgval *out, int width) {
  for (int32_t j = 0; j < r->n; j++) {
    lw_ev v = lw_emit_value(f, lw_value_operand(r->i, j), idx);
    out[j] = v.vec || width == 1 ? v.v : lw_cg_splat(f, v.v, width);
  }
}

static void inits(lw_fn *f, const red *r, lw_cgval *out, int width) {
  for (int32_t j = 0; j < r->n; j++) {
    lw_ev v = lw_emit_value(f, lw_value_operand(r->i, r->n + j), NULL);
    out[j] = width == 1 ? v.v : lw_cg_splat(f, v.v, width);
  }
}

static void store_all(lw_fn *f, const red *r, const lw_cgval *v, bool vec,
                      const lw_expr *at) {
  for (int32_t j = 0; j < r->n; j++)
    lw_store_result(f, r->s, j, (lw_ev){v[j], vec, f->n_levels - 1}, at);
}

static void select_all(lw_fn *f, int32_t n, LLVMValueRef c, const lw_cgval *a,
                       const lw_cgval *b, int width, lw_cgval *out) {
  int old = lw_width(f, width);
  for (int32_t j = 0; j < n; j++) out[j] = lw_cg_select(f, c, a[j], b[j]);
  lw_width(f, old);
}

static LLVMValueRef zero(lw_fn *f) { return lw_i64(f, 0); }

static LLVMValueRef smin(lw_fn *f, LLVMValueRef a, int64_t b) {
  return lw_min_max(f, "llvm.smin", a, lw_i64(f, b));
}

/* ---- folding slots over a sequence ---- */

typedef struct {
  lw_slot s[64];
  int32_t n;
  int width;
} accs;

static void accs_new(lw_fn *f, const red *r, accs *a, int width) {
  a->n = r->n;
  a->width = width;
  for (int32_t j = 0; j < r->n; j++)
    a->s[j] = lw_slot_new(f, lw_shape_leaf(r->i->shape, j)->type, width);
}
static void accs_get(lw_fn *f, const accs *a, lw_cgval *v) {
  for (int32_t j = 0; j < a->n; j++) v[j] = lw_slot_get(f, &a->s[j]);
}
static void accs_set(lw_fn *f, const accs *a, const lw_cgval *v) {
  for (int32_t j = 0; j < a->n; j++) lw_slot_set(f, &a->s[j], v[j]);
}
static void accs_zero(lw_fn *f, const accs *a) {
  for (int32_t j = 0; j < a->n; j++) {
    LLVMTypeRef t = LLVMGetAllocatedType(a->s[j].re);
    LLVMBuildStore(f->b, LLVMConstNull(t), a->s[j].re);
    if (a->s[j].im) LLVMBuildStore(f->b, LLVMConstNull(t), a->s[j].im);
  }
}

/* acc = first ? x : f(acc, x). */
static void fold_in(lw_fn *f, const red *r, const accs *a, LLVMValueRef first,
                    const lw_cgval *x) {
  lw_cgval old[64], y[64];
  accs_get(f, a, old);
  apply(f, r, old, x, a->width, y);
  if (first) select_all(f, r->n, first, x, y, a->width, y);
  accs_set(f, a, y);
}

/* ---- row rule ---- */

static int pow2_above(int64_t n) {
  int p = 1;
  while (p < n && p < LW_FOLD_LANES) p *= 2;
  return p;
}

static lw_cgval shuffle(lw_fn *f, lw_cgval v, int from, int n) {
  LLVMValueRef m[64];
  for (int k = 0; k < n; k++)
    m[k] = LLVMConstInt(f->em->i32, (unsigned)(from + k), 0);
  for (int part = 0; part < 2; part++) {
    LLVMValueRef *p = part ? &v.im : &v.re;
    if (!*p) continue;
    if (n == 1)
      *p = LLVMBuildExtractElement(f->b, *p, m[0], "");
    else
      *p = LLVMBuildShuffleVector(f->b, *p, LLVMGetPoison(LLVMTypeOf(*p)),
                                  LLVMConstVector(m, (unsigned)n), "");
  }
  return v;
}

/* Lanes [from, from + n) that exist, as a constant mask. */
static LLVMValueRef exist_mask(lw_fn *f, int from, int n, int64_t exist) {
  LLVMValueRef m[64];
  for (int k = 0; k < n; k++)
    m[k] = LLVMConstInt(f->em->i1, from + k < exist, 0);
  return n == 1 ? m[0] : LLVMConstVector(m, (unsigned)n);
}

/* LW_FAULT_ROW_ORDER: even lanes first, so that neighbours meet. */
static lw_cgval neighbours_meet(lw_fn *f, lw_cgval v, int w) {
  LLVMValueRef m[64];
  for (int k = 0; k < 2 * w; k++)
    m[k] = LLVMConstInt(f->em->i32, (unsigned)(k < w ? 2 * k : 2 * (k - w) + 1),
                        0);
  for (int part = 0; part < 2; part++) {
    LLVMValueRef *p = part ? &v.im : &v.re;
    if (*p)
      *p = LLVMBuildShuffleVector(f->b, *p, LLVMGetPoison(LLVMTypeOf(*p)),
                                  LLVMConstVector(m, (unsigned)(2 * w)), "");
  }
  return v;
}

static lw_cgval halve(lw_fn *f, const red *r, lw_cgval v) {
  int64_t exist = r->fold.run;
  for (int w = r->lanes / 2; w >= 1; w /= 2) {
    if (f->g.fault == LW_FAULT_ROW_ORDER && r->neutral)
      v = neighbours_meet(f, v, w);
    lw_cgval lo = shuffle(f, v, 0, w), hi = shuffle(f, v, w, w);
    lw_cgval y = apply1(f, r, lo, hi, w);
    if (!r->neutral && exist < 2 * w)
      select_all(f, 1, exist_mask(f, w, w, exist), &y, &lo, w, &y);
    v = y;
  }
  return v;
}

static lw_cgval neutral_lanes(lw_fn *f, const red *r, int width) {
  uint64_t bits[2];
  lw_neutral(r->fold.op, r->in->type, bits);
  int old = lw_width(f, width);
  lw_cgval v = lw_mathgen_const(&f->g, r->in->type, bits);
  lw_width(f, old);
  return v;
}

/* Bound loop variables of a row's block. */
typedef struct {
  const red *r;
  const accs *acc;
  const lw_expr *kept, *outer;
  LLVMValueRef first;    /* of the block: no lane holds anything yet */
  LLVMValueRef in_block; /* i8 slot: any chunk done (no neutral element) */
} row;

static void row_chunk(lw_fn *f, void *ctx, const lw_expr *t) {
  row *w = ctx;
  const red *r = w->r;
  const lw_expr *idx[LW_MAX_RANK];
  const lw_expr *lin =
      lw_ex_add(f->ix, lw_ex_mul(f->ix, w->outer, r->fold.run), t);
  operand_index(f, r, w->kept, lin, idx);
  lw_cgval x, old, y;
  operands(f, r, idx, &x, f->width);
  if (r->in_memory) {
    LLVMValueRef lane = LLVMBuildAnd(f->b, f->vars[LW_CV_RUN].base,
                                     lw_i64(f, LW_FOLD_LANES - 1), "");
    lw_slot part = w->acc->s[0];
    LLVMTypeRef et = lw_cg_type(f, part.type, part.rep, 1);
    part.re = LLVMBuildGEP2(f->b, et, part.re, &lane, 1, "");
    if (part.im) part.im = LLVMBuildGEP2(f->b, et, part.im, &lane, 1, "");
    part.width = f->width;
    old = lw_slot_get(f, &part);
    y = apply1(f, r, old, x, f->width);
    if (f->mask.v) select_all(f, 1, f->mask.v, &y, &old, f->width, &y);
    lw_slot_set(f, &part, y);
    return;
  }
  accs_get(f, w->acc, &old);
  y = apply1(f, r, old, x, f->width);
  if (w->in_block) {
    LLVMValueRef had = LLVMBuildLoad2(f->b, f->em->i1, w->in_block, "");
    select_all(f, 1, had, &y, &x, f->width, &y);
    LLVMBuildStore(f->b, LLVMConstInt(f->em->i1, 1, 0), w->in_block);
  }
  if (f->mask.v) {
    int was = lw_width(f, f->width);
    y = lw_cg_as(f, y, old.rep);
    lw_width(f, was);
    select_all(f, 1, f->mask.v, &y, &old, f->width, &y);
  }
  accs_set(f, w->acc, &y);
}

/* The fold of block number `block` (i64) of one kept element. */
static lw_cgval row_block(lw_fn *f, const red *r, const accs *lanes,
                          const lw_expr *kept, LLVMValueRef block,
                          LLVMValueRef flag) {
  const lw_fold *o = &r->fold;
  LLVMValueRef o0, o1, t0, t1;
  if (o->run > LW_FOLD_ROW_BLOCK) {
    int64_t per = (o->run + LW_FOLD_ROW_BLOCK - 1) / LW_FOLD_ROW_BLOCK;
    o0 = LLVMBuildUDiv(f->b, block, lw_i64(f, per), "");
    o1 = LLVMBuildAdd(f->b, o0, lw_i64(f, 1), "");
    LLVMValueRef tb = LLVMBuildURem(f->b, block, lw_i64(f, per), "");
    t0 = LLVMBuildNSWMul(f->b, tb, lw_i64(f, LW_FOLD_ROW_BLOCK), "");
    t1 = smin(f, LLVMBuildAdd(f->b, t0, lw_i64(f, LW_FOLD_ROW_BLOCK), ""),
              o->run);
  } else {
    o0 = LLVMBuildNSWMul(f->b, block, lw_i64(f, LW_FOLD_OUTER_BLOCK), "");
    o1 = smin(f, LLVMBuildAdd(f->b, o0, lw_i64(f, LW_FOLD_OUTER_BLOCK), ""),
              o->outer);
    t0 = zero(f);
    t1 = lw_i64(f, o->run);
  }
  lw_cgval start = {0};
  if (r->in_memory) {
    lw_slot s = lanes->s[0];
    s.width = f->width;
    start = neutral_lanes(f, r, f->width);
    LLVMTypeRef et = lw_cg_type(f, s.type, s.rep, 1);
    for (int l = 0; l < LW_FOLD_LANES; l += f->width) {
      lw_slot p = s;
      LLVMValueRef at = lw_i64(f, l);
      p.re = LLVMBuildGEP2(f->b, et, s.re, &at, 1, "");
      if (s.im) p.im = LLVMBuildGEP2(f->b, et, s.im, &at, 1, "");
      lw_slot_set(f, &p, start);
    }
  } else if (r->neutral) {
    start = neutral_lanes(f, r, f->width);
    accs_set(f, lanes, &start);
  } else {
    accs_zero(f, lanes);
    LLVMBuildStore(f->b, LLVMConstNull(f->em->i1), flag);
  }
  row w = {.r = r, .acc = lanes, .kept = kept};
  if (!r->neutral) w.in_block = flag;
  lw_loop lo = {0};
  w.outer = lw_ex_const(f->ix, 0);
  if (o->outer > 1) {
    lo = lw_loop_begin(f, o0, o1, 1, "outer");
    w.outer = lw_bind(f, LW_CV_OUTER, lo.iv, o->outer, false);
  }
  bool whole = o->run % f->width == 0;
  lw_vector_loop(f, LW_CV_RUN, o->run, t0, t1, whole, row_chunk, &w);
  if (o->outer > 1) lw_loop_end(f, &lo);
  lw_slot all = lanes->s[0];
  all.width = r->lanes;
  return halve(f, r, lw_slot_get(f, &all));
}

static bool heavy(lw_fn *f, lw_value v, int depth) {
  const lw_place *p = lw_kernel_place(f->k, v.inst);
  if (p->kind != LW_PLACE_INLINE || lw_value_shape(v)->elements <= 1)
    return false;
  if (depth > 6 || (lw_opcode_table[v.inst->opcode].flags & LW_OPF_TRANS))
    return true;
  for (int32_t j = 0; j < v.inst->n_operands; j++)
    if (heavy(f, lw_value_operand(v.inst, j), depth + 1)) return true;
  return false;
}

typedef struct {
  const red *r;
  const accs *lanes, *acc;
  LLVMValueRef flag;
} row_ctx;

static void row_element(lw_fn *f, void *ctx, const lw_expr *g) {
  const row_ctx *c = ctx;
  const red *r = c->r;
  int scalar = f->width;
  int lanes_width = c->lanes->width < r->lanes ? c->lanes->width : r->lanes;
  if (r->s->kind == LW_STAGE_REDUCE_PART) {
    const lw_expr *kept = lw_ex_div(f->ix, g, r->blocks);
    LLVMValueRef b = lw_expr_scalar(f, lw_ex_mod(f->ix, g, r->blocks));
    f->width = lanes_width;
    lw_cgval v = row_block(f, r, c->lanes, kept, b, c->flag);
    f->width = scalar;
    store_all(f, r, &v, false, g);
    return;
  }
  lw_cgval init, v;
  if (r->blocks == 1) {
    f->width = lanes_width;
    v = row_block(f, r, c->lanes, g, zero(f), c->flag);
    f->width = scalar;
  } else {
    accs_zero(f, c->acc);
    lw_loop l = lw_loop_begin(f, zero(f), lw_i64(f, r->blocks), 1, "block");
    f->width = lanes_width;
    v = row_block(f, r, c->lanes, g, l.iv, c->flag);
    f->width = scalar;
    LLVMValueRef first = LLVMBuildICmp(f->b, LLVMIntEQ, l.iv, zero(f), "");
    fold_in(f, r, c->acc, first, &v);
    lw_loop_end(f, &l);
    accs_get(f, c->acc, &v);
  }
  inits(f, r, &init, 1);
  v = apply1(f, r, init, v, 1);
  store_all(f, r, &v, false, g);
}

static lw_status row_reduce(lw_fn *f, red *r) {
  uint64_t bits[2];
  lw_prim t = r->in->type;
  r->neutral = lw_neutral(r->fold.op, t, bits);
  r->lanes = pow2_above(r->fold.run);
  int w = lw_stage_width(f, r->s);
  r->in_memory = r->neutral && t != LW_PRED && r->lanes == LW_FOLD_LANES &&
                 heavy(f, lw_value_operand(r->i, 0), 0) && w < 64;
  accs lanes, acc;
  f->width = 1;
  accs_new(f, r, &lanes, r->lanes);
  if (r->in_memory) lanes.width = w;
  accs_new(f, r, &acc, 1);
  row_ctx c = {r, &lanes, &acc, NULL};
  if (!r->neutral) c.flag = lw_local(f, f->em->i1, "any");
  lw_domain_loop(f, r->s->domain->elements, r->s->domain->elements, row_element,
                 &c);
  return NULL;
}

/* ---- column and sequence rules ---- */

typedef struct {
  const red *r;
  const accs *blk, *acc;
} col_ctx;

static lw_cgval *col_block(lw_fn *f, const col_ctx *c, const lw_expr *kept,
                           LLVMValueRef block, lw_cgval *out) {
  const red *r = c->r;
  LLVMValueRef lo =
      LLVMBuildNSWMul(f->b, block, lw_i64(f, LW_FOLD_SEQ_BLOCK), "");
  LLVMValueRef hi = smin(
      f, LLVMBuildAdd(f->b, lo, lw_i64(f, LW_FOLD_SEQ_BLOCK), ""), r->fold.n);
  if (r->fold.init_first) {
    lw_cgval init[64];
    inits(f, r, init, f->width);
    accs_set(f, c->blk, init);
  } else {
    accs_zero(f, c->blk);
  }
  lw_loop l = lw_loop_begin(f, lo, hi, 1, "fold");
  LLVMValueRef at = l.iv;
  if (f->g.fault == LW_FAULT_COLUMN_ORDER)
    at = LLVMBuildSub(
        f->b,
        LLVMBuildAdd(f->b, lo, LLVMBuildSub(f->b, hi, lw_i64(f, 1), ""), ""),
        at, "");
  const lw_expr *i = lw_bind(f, LW_CV_RUN, at, r->fold.n, false);
  const lw_expr *idx[LW_MAX_RANK];
  operand_index(f, r, kept, i, idx);
  lw_cgval x[64];
  operands(f, r, idx, x, f->width);
  LLVMValueRef first = LLVMBuildICmp(f->b, LLVMIntEQ, l.iv, lo, "");
  if (r->fold.init_first) /* block 0 has an element before its first: init */
    first = LLVMBuildAnd(
        f->b, first, LLVMBuildICmp(f->b, LLVMIntNE, block, zero(f), ""), "");
  fold_in(f, r, c->blk, first, x);
  lw_loop_end(f, &l);
  accs_get(f, c->blk, out);
  return out;
}

static void col_element(lw_fn *f, void *ctx, const lw_expr *g) {
  const col_ctx *c = ctx;
  const red *r = c->r;
  lw_cgval v[64], init[64];
  bool vec = f->width > 1;
  if (r->s->kind == LW_STAGE_REDUCE_PART) {
    LLVMValueRef b = lw_expr_scalar(f, lw_ex_div(f->ix, g, r->kept));
    col_block(f, c, lw_ex_mod(f->ix, g, r->kept), b, v);
    store_all(f, r, v, vec, g);
    return;
  }
  if (r->blocks == 1) {
    col_block(f, c, g, zero(f), v);
  } else {
    accs_zero(f, c->acc);
    lw_loop l = lw_loop_begin(f, zero(f), lw_i64(f, r->blocks), 1, "block");
    col_block(f, c, g, l.iv, v);
    fold_in(f, r, c->acc, LLVMBuildICmp(f->b, LLVMIntEQ, l.iv, zero(f), ""), v);
    lw_loop_end(f, &l);
    accs_get(f, c->acc, v);
  }
  if (!r->fold.init_first) {
    inits(f, r, init, f->width);
    apply(f, r, init, v, f->width, v);
  }
  store_all(f, r, v, vec, g);
}

/* Vector lanes along the kept elements must not straddle what the part's block
 * number is taken from. */
static int col_width(lw_fn *f, const red *r) {
  int w = lw_domain_width(f, r->s);
  bool part = r->s->kind == LW_STAGE_REDUCE_PART;
  int64_t per = r->s->domain->elements /
                (f->phase->n_points > 0 ? f->phase->n_points : 1);
  if (part && (per == 1 || per > r->kept)) return 1;
  if (!part && r->kept == 1) return 1;
  return w;
}

static lw_status col_reduce(lw_fn *f, red *r) {
  accs blk, acc;
  f->width = col_width(f, r);
  accs_new(f, r, &blk, f->width);
  accs_new(f, r, &acc, f->width);
  col_ctx c = {r, &blk, &acc};
  lw_domain_loop(f, r->s->domain->elements, r->s->inner, col_element, &c);
  return NULL;
}

/* ---- the fold of parts ---- */

static void fold_element(lw_fn *f, void *ctx, const lw_expr *g) {
  const col_ctx *c = ctx;
  const red *r = c->r;
  const lw_stage *part = &f->k->stages[r->s->part];
  lw_cgval v[64], init[64];
  accs_zero(f, c->acc);
  lw_loop l = lw_loop_begin(f, zero(f), lw_i64(f, r->blocks), 1, "block");
  const lw_expr *b = lw_bind(f, LW_CV_BLOCK, l.iv, r->blocks, false);
  const lw_expr *at = r->fold.rule == LW_FOLD_ROW
                          ? lw_ex_add(f->ix, lw_ex_mul(f->ix, g, r->blocks), b)
                          : lw_ex_add(f->ix, lw_ex_mul(f->ix, b, r->kept), g);
  f->least_level = f->stage_level;
  for (int32_t j = 0; j < r->n; j++) {
    lw_ev x =
        lw_load_at(f, part->shapes[j]->type, lw_dest_base(f, part, j), at);
    v[j] = x.vec || f->width == 1 ? x.v : lw_cg_splat(f, x.v, f->width);
  }
  f->least_level = 0;
  fold_in(f, r, c->acc, LLVMBuildICmp(f->b, LLVMIntEQ, l.iv, zero(f), ""), v);
  lw_loop_end(f, &l);
  accs_get(f, c->acc, v);
  if (!r->fold.init_first) {
    inits(f, r, init, f->width);
    apply(f, r, init, v, f->width, v);
  }
  store_all(f, r, v, f->width > 1, g);
}

static lw_status fold_parts(lw_fn *f, red *r) {
  accs acc;
  f->width = r->fold.rule == LW_FOLD_ROW ? 1 : lw_domain_width(f, r->s);
  accs_new(f, r, &acc, f->width);
  col_ctx c = {r, NULL, &acc};
  lw_domain_loop(f, r->s->domain->elements, r->s->domain->elements,
                 fold_element, &c);
  return NULL;
}

/* ---- nothing to fold ---- */

static void init_element(lw_fn *f, void *ctx, const lw_expr *g) {
  const red *r = ctx;
  lw_cgval v[64];
  inits(f, r, v, f->width);
  store_all(f, r, v, f->width > 1, g);
}

lw_status lw_emit_reduce_stage(lw_fn *f, const lw_stage *s) {
  red *r = LW_NEW(f->arena, red);
  LW_TRY(setup(s, r));
  if (r->fold.n == 0) {
    f->width = lw_domain_width(f, s);
    lw_domain_loop(f, s->domain->elements, s->inner, init_element, r);
    return NULL;
  }
  if (s->kind == LW_STAGE_REDUCE_FOLD) return fold_parts(f, r);
  if (r->fold.rule == LW_FOLD_ROW) return row_reduce(f, r);
  return col_reduce(f, r);
}
