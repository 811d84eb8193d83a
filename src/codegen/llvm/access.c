/* Memory: buffers, vectors of consecutive elements, gathers and scatters. */
#include "codegen/llvm/emit.h"

#include <string.h>

/* ---- addresses ---- */

LLVMValueRef lw_buffer(lw_fn *f, int32_t n) {
  if (f->buffer_ptrs[n]) return f->buffer_ptrs[n];
  LLVMBasicBlockRef at = LLVMGetInsertBlock(f->b);
  LLVMPositionBuilderBefore(f->b, LLVMGetBasicBlockTerminator(f->entry));
  LLVMValueRef i = LLVMConstInt(f->em->i64, (unsigned)n, 0);
  LLVMValueRef p = LLVMBuildGEP2(f->b, f->em->ptr, f->buffers, &i, 1, "");
  p = LLVMBuildLoad2(f->b, f->em->ptr, p, "buf");
  LLVMPositionBuilderAtEnd(f->b, at);
  return f->buffer_ptrs[n] = p;
}

LLVMValueRef lw_at(lw_fn *f, LLVMValueRef base, LLVMValueRef index,
                   int64_t bytes) {
  if (bytes != 1) index = LLVMBuildNSWMul(f->b, index, lw_i64(f, bytes), "");
  return LLVMBuildGEP2(f->b, f->em->i8, base, &index, 1, "");
}

static LLVMValueRef dest_base(lw_fn *f, const lw_dest *d, const lw_shape *s) {
  if (d->kind != LW_DEST_THREAD_SCRATCH) return lw_buffer(f, d->buffer);
  LLVMValueRef off = lw_i64(f, d->offset_bytes);
  int64_t n = f->phase->n_points > 0 ? f->phase->n_points : 1;
  if (n > 1) { /* the tile's first point is at the start */
    int64_t row = s->elements / n * lw_prim_bytes(s->type);
    LLVMValueRef back = LLVMBuildMul(f->b, f->p0, lw_i64(f, row), "");
    off = LLVMBuildSub(f->b, off, back, "");
  }
  return LLVMBuildGEP2(f->b, f->em->i8, f->scratch, &off, 1, "");
}

LLVMValueRef lw_dest_base(lw_fn *f, const lw_stage *s, int32_t result) {
  return dest_base(f, &s->dests[result], s->shapes[result]);
}

LLVMValueRef lw_array_base(lw_fn *f, lw_value v) {
  const lw_place *p = lw_kernel_place(f->k, v.inst);
  switch (p->kind) {
    case LW_PLACE_PARAM:
      return lw_buffer(f, p->buffer + v.leaf);
    case LW_PLACE_CONST:
      return p->buffer < 0 ? NULL : lw_buffer(f, p->buffer);
    case LW_PLACE_STAGED:
      return lw_dest_base(f, &f->k->stages[p->stage], v.leaf);
    case LW_PLACE_INLINE:
      return NULL;
  }
  return NULL;
}

/* ---- plain accesses ---- */

static LLVMTypeRef mem_type(lw_fn *f, lw_prim t, int width) {
  int old = lw_width(f, width);
  LLVMTypeRef m = lw_mathgen_mem_type(&f->g, lw_prim_part(t));
  lw_width(f, old);
  return m;
}

static bool is_vector(LLVMValueRef v) {
  return LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind;
}

static LLVMValueRef vector_mask(lw_fn *f, LLVMValueRef mask, int width) {
  return is_vector(mask) ? mask : lw_splat(f, mask, width);
}

static LLVMValueRef zero_home(lw_fn *f) {
  LLVMValueRef g = LLVMGetNamedGlobal(f->em->mod, "lw.zero");
  if (g) return g;
  LLVMTypeRef t = LLVMArrayType2(f->em->i8, 64);
  g = LLVMAddGlobal(f->em->mod, t, "lw.zero");
  LLVMSetInitializer(g, LLVMConstNull(t));
  LLVMSetGlobalConstant(g, 1);
  LLVMSetLinkage(g, LLVMPrivateLinkage);
  LLVMSetAlignment(g, 64);
  return g;
}

/* Has the machine masked vector accesses of these elements? LLVM would make a
 * branch a lane of the others: lanes that do not count read zeros and write to
 * nowhere instead. */
static bool masked_legal(lw_fn *f, unsigned bytes) {
  return f->em->has_avx512 || (f->em->has_avx2 && bytes >= 4);
}

static LLVMValueRef lane_no(lw_fn *f, int l) {
  return LLVMConstInt(f->em->i32, (unsigned)l, 0);
}

/* Where lane l of a masked access goes. */
static LLVMValueRef lane_at(lw_fn *f, LLVMValueRef p, LLVMValueRef index,
                            LLVMTypeRef elem, LLVMValueRef mask, int l,
                            LLVMValueRef nowhere) {
  LLVMValueRef at = LLVMBuildGEP2(f->b, elem, p, &index, 1, "");
  if (!mask) return at;
  LLVMValueRef on = LLVMBuildExtractElement(f->b, mask, lane_no(f, l), "");
  return LLVMBuildSelect(f->b, on, at, nowhere, "");
}

static LLVMValueRef load_lanes(lw_fn *f, LLVMTypeRef t, LLVMValueRef p,
                               LLVMValueRef offsets, unsigned align,
                               LLVMValueRef mask) {
  LLVMTypeRef e = LLVMGetElementType(t);
  LLVMValueRef v = LLVMGetPoison(t), zero = zero_home(f);
  for (int l = 0; l < (int)LLVMGetVectorSize(t); l++) {
    LLVMValueRef i = lane_no(f, l);
    if (offsets) i = LLVMBuildExtractElement(f->b, offsets, i, "");
    LLVMValueRef x =
        LLVMBuildLoad2(f->b, e, lane_at(f, p, i, e, mask, l, zero), "");
    LLVMSetAlignment(x, align);
    v = LLVMBuildInsertElement(f->b, v, x, lane_no(f, l), "");
  }
  return v;
}

static void store_lanes_each(lw_fn *f, LLVMValueRef v, LLVMValueRef p,
                             LLVMValueRef offsets, unsigned align,
                             LLVMValueRef mask) {
  LLVMTypeRef t = LLVMTypeOf(v), e = LLVMGetElementType(t);
  LLVMBasicBlockRef at = LLVMGetInsertBlock(f->b);
  LLVMPositionBuilderBefore(f->b, LLVMGetBasicBlockTerminator(f->entry));
  LLVMValueRef nowhere = LLVMBuildAlloca(f->b, f->em->i64, "nowhere");
  LLVMPositionBuilderAtEnd(f->b, at);
  for (int l = 0; l < (int)LLVMGetVectorSize(t); l++) {
    LLVMValueRef i = lane_no(f, l);
    if (offsets) i = LLVMBuildExtractElement(f->b, offsets, i, "");
    LLVMValueRef x = LLVMBuildExtractElement(f->b, v, lane_no(f, l), "");
    LLVMSetAlignment(
        LLVMBuildStore(f->b, x, lane_at(f, p, i, e, mask, l, nowhere)), align);
  }
}

static LLVMValueRef load_part(lw_fn *f, LLVMTypeRef t, LLVMValueRef p,
                              unsigned align, LLVMValueRef mask) {
  bool vec = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
  if (!mask || !vec) {
    if (mask) p = LLVMBuildSelect(f->b, mask, p, zero_home(f), "");
    LLVMValueRef v = LLVMBuildLoad2(f->b, t, p, "");
    LLVMSetAlignment(v, align);
    return v;
  }
  mask = vector_mask(f, mask, (int)LLVMGetVectorSize(t));
  if (!masked_legal(f, align)) return load_lanes(f, t, p, NULL, align, mask);
  LLVMTypeRef over[2] = {t, f->em->ptr};
  LLVMValueRef args[4] = {p, LLVMConstInt(f->em->i32, align, 0), mask,
                          LLVMConstNull(t)};
  return lw_intrinsic(f, "llvm.masked.load", over, 2, args, 4);
}

static void store_part(lw_fn *f, LLVMValueRef v, LLVMValueRef p, unsigned align,
                       LLVMValueRef mask) {
  LLVMTypeRef t = LLVMTypeOf(v);
  bool vec = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
  if (mask && !vec) {
    lw_if i = lw_if_begin(f, mask);
    LLVMSetAlignment(LLVMBuildStore(f->b, v, p), align);
    lw_if_end(f, &i);
    return;
  }
  if (!mask) {
    LLVMSetAlignment(LLVMBuildStore(f->b, v, p), align);
    return;
  }
  mask = vector_mask(f, mask, (int)LLVMGetVectorSize(t));
  if (!masked_legal(f, align)) {
    store_lanes_each(f, v, p, NULL, align, mask);
    return;
  }
  LLVMTypeRef over[2] = {t, f->em->ptr};
  LLVMValueRef args[4] = {v, p, LLVMConstInt(f->em->i32, align, 0), mask};
  lw_intrinsic(f, "llvm.masked.store", over, 2, args, 4);
}

/* Lanes from, from + step, ... of v (2 * width lanes wide). */
static LLVMValueRef pick(lw_fn *f, LLVMValueRef v, int from, int step,
                         int width) {
  if (width == 1)
    return LLVMBuildExtractElement(f->b, v, LLVMConstInt(f->em->i32, from, 0),
                                   "");
  LLVMValueRef m[64];
  for (int i = 0; i < width; i++)
    m[i] = LLVMConstInt(f->em->i32, (unsigned)(from + i * step), 0);
  return LLVMBuildShuffleVector(f->b, v, LLVMGetPoison(LLVMTypeOf(v)),
                                LLVMConstVector(m, (unsigned)width), "");
}

/* a0 b0 a1 b1 ... */
static LLVMValueRef zip(lw_fn *f, LLVMValueRef a, LLVMValueRef b, int width) {
  LLVMValueRef m[128];
  if (width == 1) {
    LLVMTypeRef t = LLVMVectorType(LLVMTypeOf(a), 2);
    LLVMValueRef v = LLVMBuildInsertElement(f->b, LLVMGetPoison(t), a,
                                            LLVMConstInt(f->em->i32, 0, 0), "");
    return LLVMBuildInsertElement(f->b, v, b, LLVMConstInt(f->em->i32, 1, 0),
                                  "");
  }
  for (int i = 0; i < 2 * width; i++)
    m[i] = LLVMConstInt(f->em->i32, (unsigned)(i / 2 + (i & 1) * width), 0);
  return LLVMBuildShuffleVector(f->b, a, b,
                                LLVMConstVector(m, (unsigned)(2 * width)), "");
}

static lw_cgval from_mem(lw_fn *f, lw_prim t, LLVMValueRef re, LLVMValueRef im,
                         int width) {
  int old = lw_width(f, width);
  lw_cgval v = lw_mathgen_from_mem(&f->g, t, re, im);
  lw_width(f, old);
  return v;
}

lw_cgval lw_load(lw_fn *f, lw_prim t, LLVMValueRef p, int width,
                 LLVMValueRef mask) {
  unsigned part = (unsigned)lw_prim_bytes(lw_prim_part(t));
  if (!lw_prim_is_complex(t)) {
    LLVMValueRef v = load_part(f, mem_type(f, t, width), p, part, mask);
    return from_mem(f, t, v, NULL, width);
  }
  LLVMTypeRef two = LLVMVectorType(mem_type(f, t, 1), (unsigned)(2 * width));
  if (mask && is_vector(mask)) mask = zip(f, mask, mask, width);
  LLVMValueRef v = load_part(f, two, p, part, mask);
  return from_mem(f, t, pick(f, v, 0, 2, width), pick(f, v, 1, 2, width),
                  width);
}

void lw_store(lw_fn *f, lw_cgval v, LLVMValueRef p, int width,
              LLVMValueRef mask) {
  int old = lw_width(f, width);
  v = lw_mathgen_to_mem(&f->g, v);
  lw_width(f, old);
  unsigned part = (unsigned)lw_prim_bytes(lw_prim_part(v.type));
  if (!lw_prim_is_complex(v.type)) {
    store_part(f, v.re, p, part, mask);
    return;
  }
  if (mask && is_vector(mask)) mask = zip(f, mask, mask, width);
  if (mask && !is_vector(mask) && width == 1) mask = lw_splat(f, mask, 2);
  store_part(f, zip(f, v.re, v.im, width), p, part, mask);
}

/* ---- gathers ---- */

static LLVMValueRef pointers(lw_fn *f, LLVMValueRef base, LLVMTypeRef elem,
                             LLVMValueRef offsets) {
  return LLVMBuildGEP2(f->b, elem, base, &offsets, 1, "");
}

static LLVMValueRef all_true(lw_fn *f, int width) {
  return LLVMConstAllOnes(LLVMVectorType(f->em->i1, (unsigned)width));
}

static LLVMValueRef gather_part(lw_fn *f, LLVMTypeRef elem, LLVMValueRef base,
                                LLVMValueRef offsets, int width, unsigned align,
                                LLVMValueRef mask) {
  LLVMTypeRef t = LLVMVectorType(elem, (unsigned)width);
  if (align < 4 || !f->em->has_avx2)
    return load_lanes(f, t, base, offsets, align,
                      mask ? vector_mask(f, mask, width) : NULL);
  LLVMValueRef ps = pointers(f, base, elem, offsets);
  LLVMTypeRef over[2] = {t, LLVMTypeOf(ps)};
  LLVMValueRef m = mask ? vector_mask(f, mask, width) : all_true(f, width);
  LLVMValueRef args[4] = {ps, LLVMConstInt(f->em->i32, align, 0), m,
                          LLVMConstNull(t)};
  return lw_intrinsic(f, "llvm.masked.gather", over, 2, args, 4);
}

static LLVMValueRef twice(lw_fn *f, LLVMValueRef offsets, int add, int width) {
  LLVMTypeRef t = LLVMTypeOf(offsets);
  LLVMTypeRef e = is_vector(offsets) ? LLVMGetElementType(t) : t;
  LLVMValueRef two = lw_splat(f, LLVMConstInt(e, 2, 0), width);
  LLVMValueRef one = lw_splat(f, LLVMConstInt(e, (unsigned)add, 0), width);
  return LLVMBuildAdd(f->b, LLVMBuildMul(f->b, offsets, two, ""), one, "");
}

static LLVMValueRef widen64(lw_fn *f, LLVMValueRef offsets, int width) {
  return LLVMBuildSExt(f->b, offsets, lw_vec_type(f->em->i64, width), "");
}

lw_cgval lw_load_gather(lw_fn *f, lw_prim t, LLVMValueRef base,
                        LLVMValueRef offsets, int width, LLVMValueRef mask) {
  LLVMTypeRef e = mem_type(f, t, 1);
  unsigned align = (unsigned)lw_prim_bytes(lw_prim_part(t));
  if (!lw_prim_is_complex(t))
    return from_mem(f, t, gather_part(f, e, base, offsets, width, align, mask),
                    NULL, width);
  offsets = widen64(f, offsets, width);
  LLVMValueRef re =
      gather_part(f, e, base, twice(f, offsets, 0, width), width, align, mask);
  LLVMValueRef im =
      gather_part(f, e, base, twice(f, offsets, 1, width), width, align, mask);
  return from_mem(f, t, re, im, width);
}

static void scatter_part(lw_fn *f, LLVMValueRef v, LLVMValueRef base,
                         LLVMValueRef offsets, int width, unsigned align,
                         LLVMValueRef mask) {
  LLVMTypeRef t = LLVMTypeOf(v);
  if (align < 4 || !f->em->has_avx512) {
    store_lanes_each(f, v, base, offsets, align,
                     mask ? vector_mask(f, mask, width) : NULL);
    return;
  }
  LLVMValueRef ps = pointers(f, base, LLVMGetElementType(t), offsets);
  LLVMTypeRef over[2] = {t, LLVMTypeOf(ps)};
  LLVMValueRef m = mask ? vector_mask(f, mask, width) : all_true(f, width);
  LLVMValueRef args[4] = {v, ps, LLVMConstInt(f->em->i32, align, 0), m};
  lw_intrinsic(f, "llvm.masked.scatter", over, 2, args, 4);
}

void lw_store_scatter(lw_fn *f, lw_cgval v, LLVMValueRef base,
                      LLVMValueRef offsets, int width, LLVMValueRef mask) {
  int old = lw_width(f, width);
  v = lw_mathgen_to_mem(&f->g, v);
  lw_width(f, old);
  unsigned align = (unsigned)lw_prim_bytes(lw_prim_part(v.type));
  if (!lw_prim_is_complex(v.type)) {
    scatter_part(f, v.re, base, offsets, width, align, mask);
    return;
  }
  offsets = widen64(f, offsets, width);
  scatter_part(f, v.re, base, twice(f, offsets, 0, width), width, align, mask);
  scatter_part(f, v.im, base, twice(f, offsets, 1, width), width, align, mask);
}

/* ---- at index expressions ---- */

static LLVMValueRef whole_mask(lw_fn *f) {
  if (!f->mask.v) return f->mask.s;
  if (!f->mask.s) return f->mask.v;
  return LLVMBuildAnd(f->b, f->mask.v, lw_splat(f, f->mask.s, f->width), "");
}

/* e = uniform + k * (the vector variable)? */
static bool affine(lw_fn *f, const lw_expr *e, const lw_expr **uniform,
                   int64_t *k, int32_t *var) {
  const lw_expr *u = lw_ex_const(f->ix, e->c);
  *k = 0;
  for (int32_t i = 0; i < e->n; i++) {
    lw_term t = e->t[i];
    const lw_expr *one = lw_ex_mul(f->ix, lw_expr_of_atom(f->ix, t.a), t.k);
    if (!lw_expr_is_vec(f, one)) {
      u = lw_ex_add(f->ix, u, one);
    } else if (t.a->kind == LW_ATOM_VAR && *k == 0) {
      *k = t.k;
      *var = t.a->var;
    } else {
      return false;
    }
  }
  *uniform = u;
  return true;
}

static LLVMValueRef first_offset(lw_fn *f, const lw_expr *u, int64_t k,
                                 int32_t var) {
  LLVMValueRef at = lw_expr_scalar(f, u);
  lw_seek(f, f->n_levels - 1);
  LLVMValueRef v = f->vars[var].base;
  if (k != 1) v = LLVMBuildNSWMul(f->b, v, lw_i64(f, k), "");
  return LLVMBuildNSWAdd(f->b, at, v, "");
}

static lw_cgval reversed(lw_fn *f, lw_cgval v, int width) {
  LLVMValueRef m[64];
  for (int i = 0; i < width; i++)
    m[i] = LLVMConstInt(f->em->i32, (unsigned)(width - 1 - i), 0);
  LLVMValueRef cm = LLVMConstVector(m, (unsigned)width);
  v.re = LLVMBuildShuffleVector(f->b, v.re, LLVMGetPoison(LLVMTypeOf(v.re)), cm,
                                "");
  if (v.im)
    v.im = LLVMBuildShuffleVector(f->b, v.im, LLVMGetPoison(LLVMTypeOf(v.im)),
                                  cm, "");
  return v;
}

static LLVMValueRef reversed_mask(lw_fn *f, LLVMValueRef m, int width) {
  if (!m || !is_vector(m)) return m;
  return reversed(f, (lw_cgval){.re = m}, width).re;
}

lw_ev lw_load_at(lw_fn *f, lw_prim t, LLVMValueRef base, const lw_expr *lin) {
  int64_t bytes = lw_prim_bytes(t), k;
  int32_t var = 0;
  const lw_expr *u;
  lw_enter(f);
  lw_ev r = {.vec = lw_expr_is_vec(f, lin), .level = f->n_levels - 1};
  int w = f->width;
  if (!r.vec) {
    int level = lw_expr_level(f, lin);
    if (f->mask.s && f->mask.s_level > level) level = f->mask.s_level;
    if (f->least_level > level) level = f->least_level;
    LLVMValueRef at = lw_expr_scalar(f, lin);
    lw_seek(f, level);
    r.v = lw_load(f, t, lw_at(f, base, at, bytes), 1, f->mask.s);
    r.level = level;
  } else if (affine(f, lin, &u, &k, &var) && (k == 1 || k == -1)) {
    LLVMValueRef at = first_offset(f, u, k, var), m = whole_mask(f);
    if (k == -1) {
      at = LLVMBuildSub(f->b, at, lw_i64(f, w - 1), "");
      m = reversed_mask(f, m, w);
    }
    r.v = lw_load(f, t, lw_at(f, base, at, bytes), w, m);
    if (k == -1) r.v = reversed(f, r.v, w);
  } else {
    LLVMValueRef off = lw_expr_vector(f, lin);
    lw_seek(f, f->n_levels - 1);
    r.v = lw_load_gather(f, t, base, off, w, whole_mask(f));
  }
  lw_leave(f);
  return r;
}

static void store_lanes(lw_fn *f, lw_cgval v, LLVMValueRef base,
                        const lw_expr *lin) {
  const lw_expr *u;
  int64_t k;
  int32_t var = 0;
  if (affine(f, lin, &u, &k, &var) && k == 1) {
    LLVMValueRef at = first_offset(f, u, k, var);
    lw_store(f, v, lw_at(f, base, at, lw_prim_bytes(v.type)), f->width,
             whole_mask(f));
    return;
  }
  LLVMValueRef off = lw_expr_vector(f, lin);
  lw_seek(f, f->n_levels - 1);
  lw_store_scatter(f, v, base, off, f->width, whole_mask(f));
}

void lw_store_at(lw_fn *f, lw_ev v, LLVMValueRef base, const lw_expr *lin) {
  lw_enter(f);
  if (!lw_expr_is_vec(f, lin)) {
    LLVMValueRef at = lw_expr_scalar(f, lin);
    lw_seek(f, f->n_levels - 1);
    if (v.vec) lw_fn_fail(f, lw_error(LW_INTERNAL, "vector to one element"));
    lw_store(f, v.v, lw_at(f, base, at, lw_prim_bytes(v.v.type)), 1, f->mask.s);
  } else {
    lw_seek(f, f->n_levels - 1);
    if (!v.vec) v.v = lw_cg_splat(f, v.v, f->width);
    store_lanes(f, v.v, base, lin);
  }
  lw_leave(f);
}
