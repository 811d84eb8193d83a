/* Values: index expressions and instructions as code.
 *
 * A value is found in the memo of the level its index needs, loaded (what is
 * in memory), or computed from its operands there. Masks narrow on the way
 * down through pads, concatenates and updates; they are part of the memo's
 * key.
 */
#include "codegen/llvm/emit.h"

#include <string.h>

static lw_ev value_at(lw_fn *f, lw_value v, const lw_expr *const *idx);

/* ---- where code goes ---- */

void lw_enter(lw_fn *f) {
  if (f->depth++ == 0) f->cur = LLVMGetInsertBlock(f->b);
}

void lw_leave(lw_fn *f) {
  if (--f->depth == 0) LLVMPositionBuilderAtEnd(f->b, f->cur);
}

void lw_seek(lw_fn *f, int level) {
  if (level >= f->n_levels - 1) {
    if (f->depth) LLVMPositionBuilderAtEnd(f->b, f->cur);
    return;
  }
  LLVMPositionBuilderBefore(f->b,
                            LLVMGetBasicBlockTerminator(f->levels[level].pre));
}

typedef struct memo {
  const void *key;
  int32_t leaf, n;
  LLVMValueRef s, v; /* the mask */
  lw_ev ev;
  struct memo *next;
  const lw_expr *idx[];
} memo;

static uint64_t memo_hash(const void *key, int32_t leaf, int32_t n,
                          const lw_expr *const *idx, LLVMValueRef s,
                          LLVMValueRef v) {
  uint64_t h = lw_hash_mix((uint64_t)(uintptr_t)key, (uint64_t)leaf);
  for (int32_t i = 0; i < n; i++)
    h = lw_hash_mix(h, (uint64_t)(uintptr_t)idx[i]);
  h = lw_hash_mix(h, (uint64_t)(uintptr_t)s);
  return lw_hash_mix(h, (uint64_t)(uintptr_t)v);
}

static memo *memo_find(lw_fn *f, int level, const void *key, int32_t leaf,
                       int32_t n, const lw_expr *const *idx, LLVMValueRef s,
                       LLVMValueRef v) {
  uint64_t h = memo_hash(key, leaf, n, idx, s, v);
  uint64_t *slot = lw_map_get(&f->levels[level].memo, h);
  memo *m = slot ? (memo *)(uintptr_t)*slot : NULL;
  for (; m; m = m->next)
    if (m->key == key && m->leaf == leaf && m->n == n && m->s == s &&
        m->v == v && (n == 0 || !memcmp(m->idx, idx, (size_t)n * sizeof *idx)))
      return m;
  return NULL;
}

static void memo_add(lw_fn *f, int level, const void *key, int32_t leaf,
                     int32_t n, const lw_expr *const *idx, LLVMValueRef s,
                     LLVMValueRef v, lw_ev ev) {
  memo *m = lw_arena_alloc(f->arena, sizeof *m + (size_t)n * sizeof *idx);
  m->key = key;
  m->leaf = leaf;
  m->n = n;
  m->s = s;
  m->v = v;
  m->ev = ev;
  if (n) memcpy(m->idx, idx, (size_t)n * sizeof *idx);
  uint64_t h = memo_hash(key, leaf, n, idx, s, v);
  uint64_t *slot = lw_map_put(&f->levels[level].memo, h);
  m->next = (memo *)(uintptr_t)*slot;
  *slot = (uint64_t)(uintptr_t)m;
}

/* ---- index expressions ---- */

const lw_expr *lw_bind(lw_fn *f, int32_t var, LLVMValueRef base, int64_t extent,
                       bool vec) {
  LW_ASSERT(var < LW_MAX_VARS);
  f->vars[var] = (lw_var){base, f->n_levels - 1, vec && f->width > 1};
  return lw_ex_var(f->ix, var, extent);
}

typedef struct {
  int level;
  bool vec, value, wide; /* wide: needs 64-bit lanes */
} facts;

static void expr_facts(lw_fn *f, const lw_expr *e, facts *x) {
  if (e->hi > INT32_MAX || e->lo < INT32_MIN) x->wide = true;
  for (int32_t i = 0; i < e->n; i++) {
    const lw_atom *a = e->t[i].a;
    if (e->t[i].k > INT32_MAX || e->t[i].k < INT32_MIN) x->wide = true;
    if (a->extent > INT32_MAX) x->wide = true;
    if (a->kind == LW_ATOM_VAR) {
      const lw_var *v = &f->vars[a->var];
      if (v->level > x->level) x->level = v->level;
      x->vec |= v->vec;
    } else if (a->kind == LW_ATOM_DIGIT) {
      if (a->div > INT32_MAX || a->mod > INT32_MAX) x->wide = true;
      expr_facts(f, a->e, x);
    } else {
      x->value = true;
      for (int32_t j = 0; j < a->n_idx; j++) expr_facts(f, a->idx[j], x);
    }
  }
}

bool lw_expr_is_vec(lw_fn *f, const lw_expr *e) {
  facts x = {0};
  expr_facts(f, e, &x);
  return x.vec;
}

static int facts_level(lw_fn *f, const facts *x) {
  int level = x->vec ? f->n_levels - 1 : x->level;
  if (!x->value) return level;
  if (level < f->stage_level) level = f->stage_level;
  if (f->mask.s && f->mask.s_level > level) level = f->mask.s_level;
  return level;
}

int lw_expr_level(lw_fn *f, const lw_expr *e) {
  facts x = {0};
  expr_facts(f, e, &x);
  return facts_level(f, &x);
}

/* An integer element of a value, clamped to [0, extent - 1]: i64 lanes. */
static LLVMValueRef clamped(lw_fn *f, const lw_atom *a, lw_ev v) {
  LLVMTypeRef t = lw_vec_type(f->em->i64, v.vec ? f->width : 1);
  bool sgn = lw_prim_is_signed(v.v.type);
  LLVMValueRef x = v.v.re;
  if (LLVMTypeOf(x) != t)
    x = sgn ? LLVMBuildSExt(f->b, x, t, "") : LLVMBuildZExt(f->b, x, t, "");
  LLVMValueRef hi = lw_splat(f, lw_i64(f, a->extent - 1), v.vec ? f->width : 1);
  if (!sgn) return lw_min_max(f, "llvm.umin", x, hi);
  x = lw_min_max(f, "llvm.smax", x, LLVMConstNull(t));
  return lw_min_max(f, "llvm.smin", x, hi);
}

static LLVMValueRef expr_code(lw_fn *f, const lw_expr *e, bool vec, bool wide);

static LLVMValueRef atom_code(lw_fn *f, const lw_atom *a, bool vec, bool wide,
                              int level) {
  LLVMTypeRef et = wide ? f->em->i64 : f->em->i32;
  int w = vec ? f->width : 1;
  if (a->kind == LW_ATOM_VAR) {
    lw_seek(f, level);
    LLVMValueRef base = f->vars[a->var].base;
    if (!wide) base = LLVMBuildTrunc(f->b, base, et, "");
    if (!vec) return base;
    return LLVMBuildAdd(f->b, lw_splat(f, base, w), lw_lanes(f, et, w), "");
  }
  if (a->kind == LW_ATOM_DIGIT) {
    LLVMValueRef x = expr_code(f, a->e, vec, wide);
    lw_seek(f, level);
    LLVMValueRef d = lw_splat(f, LLVMConstInt(et, (uint64_t)a->div, 0), w);
    LLVMValueRef m = lw_splat(f, LLVMConstInt(et, (uint64_t)a->mod, 0), w);
    if (a->div > 1) x = LLVMBuildUDiv(f->b, x, d, "");
    if (a->mod) x = LLVMBuildURem(f->b, x, m, "");
    return x;
  }
  lw_ev v = value_at(f, (lw_value){a->inst, a->leaf}, a->idx);
  lw_seek(f, level);
  LLVMValueRef x = clamped(f, a, v);
  if (!wide) x = LLVMBuildTrunc(f->b, x, lw_vec_type(et, v.vec ? w : 1), "");
  if (vec && !v.vec) x = lw_splat(f, x, w);
  return x;
}

/* Memoised sum; scalars are always i64. */
static LLVMValueRef expr_code(lw_fn *f, const lw_expr *e, bool vec, bool wide) {
  facts x = {0};
  expr_facts(f, e, &x);
  if (vec && !x.vec) { /* a uniform part of a vector expression */
    LLVMValueRef s = expr_code(f, e, false, true);
    lw_seek(f, f->n_levels - 1);
    if (!wide) s = LLVMBuildTrunc(f->b, s, f->em->i32, "");
    return lw_splat(f, s, f->width);
  }
  LLVMTypeRef et = wide ? f->em->i64 : f->em->i32;
  int w = vec ? f->width : 1;
  if (e->n == 0) return lw_splat(f, LLVMConstInt(et, (uint64_t)e->c, 1), w);
  int level = vec ? f->n_levels - 1 : facts_level(f, &x);
  LLVMValueRef ms = x.value ? f->mask.s : NULL, mv = x.value ? f->mask.v : NULL;
  if (!vec) mv = NULL;
  int32_t kind = (vec ? 1 : 0) | (wide ? 2 : 0) | 4;
  memo *m = memo_find(f, level, e, kind, 0, NULL, ms, mv);
  if (m) return m->ev.v.re;
  const lw_expr *uniform = lw_ex_const(f->ix, e->c);
  LLVMValueRef sum = NULL;
  for (int32_t i = 0; i < e->n; i++) {
    const lw_expr *one = lw_expr_of_atom(f->ix, e->t[i].a);
    if (vec && !lw_expr_is_vec(f, one)) {
      uniform = lw_ex_add(f->ix, uniform, lw_ex_mul(f->ix, one, e->t[i].k));
      continue;
    }
    LLVMValueRef a = atom_code(f, e->t[i].a, vec, wide, level);
    lw_seek(f, level);
    if (e->t[i].k != 1)
      a = LLVMBuildMul(f->b, a,
                       lw_splat(f, LLVMConstInt(et, (uint64_t)e->t[i].k, 1), w),
                       "");
    sum = sum ? LLVMBuildAdd(f->b, sum, a, "") : a;
  }
  if (uniform->n || uniform->c) {
    LLVMValueRef u = vec ? expr_code(f, uniform, true, wide)
                         : LLVMConstInt(et, (uint64_t)uniform->c, 1);
    lw_seek(f, level);
    sum = sum ? LLVMBuildAdd(f->b, sum, u, "") : u;
  }
  memo_add(f, level, e, kind, 0, NULL, ms, mv,
           (lw_ev){.v = {.re = sum}, .vec = vec});
  return sum;
}

LLVMValueRef lw_expr_scalar(lw_fn *f, const lw_expr *e) {
  lw_enter(f);
  LLVMValueRef v = expr_code(f, e, false, true);
  lw_leave(f);
  return v;
}

static bool needs_wide(lw_fn *f, const lw_expr *e) {
  facts x = {0};
  expr_facts(f, e, &x);
  return x.wide;
}

LLVMValueRef lw_expr_vector(lw_fn *f, const lw_expr *e) {
  lw_enter(f);
  LLVMValueRef v = expr_code(f, e, true, needs_wide(f, e));
  lw_leave(f);
  return v;
}

/* ---- conditions and masks ---- */

static LLVMValueRef compare(lw_fn *f, LLVMIntPredicate p, LLVMValueRef x,
                            int64_t c, LLVMTypeRef et, int w) {
  return LLVMBuildICmp(f->b, p, x,
                       lw_splat(f, LLVMConstInt(et, (uint64_t)c, 1), w), "");
}

/* lo <= e <= hi and (e - lo) mod m = 0, as i1 or <W x i1>. */
static LLVMValueRef cond_code(lw_fn *f, const lw_cond *c, bool vec, int level) {
  bool wide = !vec || needs_wide(f, c->e);
  LLVMValueRef x = expr_code(f, c->e, vec, wide);
  LLVMTypeRef et = wide ? f->em->i64 : f->em->i32;
  int w = vec ? f->width : 1;
  lw_seek(f, level);
  LLVMValueRef r = NULL;
  if (c->e->lo < c->lo) r = compare(f, LLVMIntSGE, x, c->lo, et, w);
  if (c->e->hi > c->hi) {
    LLVMValueRef h = compare(f, LLVMIntSLE, x, c->hi, et, w);
    r = r ? LLVMBuildAnd(f->b, r, h, "") : h;
  }
  if (c->mod > 1) {
    LLVMValueRef d = LLVMBuildSub(
        f->b, x, lw_splat(f, LLVMConstInt(et, (uint64_t)c->lo, 1), w), "");
    d = LLVMBuildURem(
        f->b, d, lw_splat(f, LLVMConstInt(et, (uint64_t)c->mod, 0), w), "");
    LLVMValueRef z = compare(f, LLVMIntEQ, d, 0, et, w);
    r = r ? LLVMBuildAnd(f->b, r, z, "") : z;
  }
  return r ? r : lw_splat(f, LLVMConstInt(f->em->i1, 1, 0), w);
}

/* Conditions joined: a uniform part and a lane part (NULL: true). */
typedef struct {
  LLVMValueRef s, v;
  int s_level;
} joined;

static LLVMValueRef both(lw_fn *f, LLVMValueRef a, LLVMValueRef b, int level) {
  if (!a || a == b) return b;
  if (!b) return a;
  memo *m = memo_find(f, level, a, 9, 0, NULL, b, NULL);
  if (m) return m->ev.v.re;
  lw_seek(f, level);
  LLVMValueRef r = LLVMBuildAnd(f->b, a, b, "");
  memo_add(f, level, a, 9, 0, NULL, b, NULL, (lw_ev){.v = {.re = r}});
  return r;
}

static joined join_conds(lw_fn *f, int32_t n, const lw_cond *conds) {
  joined j = {0};
  for (int32_t i = 0; i < n; i++) {
    facts x = {0};
    expr_facts(f, conds[i].e, &x);
    int level = facts_level(f, &x);
    const lw_expr *key[3] = {conds[i].e, lw_ex_const(f->ix, conds[i].lo),
                             lw_ex_const(f->ix, conds[i].hi)};
    LLVMValueRef ms = x.value ? f->mask.s : NULL;
    LLVMValueRef mv = x.value && x.vec ? f->mask.v : NULL;
    memo *m = memo_find(f, level, conds[i].e, (int32_t)(16 + conds[i].mod), 3,
                        key, ms, mv);
    LLVMValueRef c = m ? m->ev.v.re : cond_code(f, &conds[i], x.vec, level);
    if (!m)
      memo_add(f, level, conds[i].e, (int32_t)(16 + conds[i].mod), 3, key, ms,
               mv, (lw_ev){.v = {.re = c}});
    if (x.vec) {
      j.v = both(f, j.v, c, f->n_levels - 1);
    } else {
      int at = level > j.s_level ? level : j.s_level;
      j.s = both(f, j.s, c, at);
      j.s_level = at;
    }
  }
  return j;
}

static lw_mask narrowed(lw_fn *f, const joined *j) {
  lw_mask m = f->mask;
  if (j->s) {
    int at = m.s && m.s_level > j->s_level ? m.s_level : j->s_level;
    m.s = both(f, m.s, j->s, at);
    m.s_level = at;
  }
  if (j->v) m.v = both(f, m.v, j->v, f->n_levels - 1);
  return m;
}

/* ---- instructions ---- */

static lw_ev splatted(lw_fn *f, lw_ev v) {
  if (v.vec) return v;
  return (lw_ev){lw_cg_splat(f, v.v, f->width), true, f->n_levels - 1};
}

static int deepest(int level, lw_ev a) {
  return a.level > level ? a.level : level;
}

/* One register form for values that meet in a select. */
static lw_ev pick_one(lw_fn *f, const joined *j, lw_ev a, lw_ev b, int level) {
  bool vec = a.vec || b.vec || j->v;
  level = vec ? f->n_levels - 1 : deepest(deepest(level, a), b);
  lw_seek(f, level);
  if (vec) {
    a = splatted(f, a);
    b = splatted(f, b);
  }
  int old = lw_width(f, vec ? f->width : 1);
  lw_ev r = {.vec = vec, .level = level};
  LLVMValueRef c = j->v;
  if (c && j->s)
    c = LLVMBuildAnd(f->b, c, lw_splat(f, j->s, f->width), "");
  else if (!c)
    c = j->s;
  r.v = c ? lw_cg_select(f, c, a.v, b.v) : a.v;
  lw_width(f, old);
  return r;
}

/* Operand slot where its conditions hold, else `other` (NULL: never asked). */
static bool operand_where(lw_fn *f, const lw_inst *i, int32_t slot,
                          const lw_expr *const *idx, const lw_ev *other,
                          int level, lw_ev *out) {
  const lw_expr *at[LW_MAX_RANK];
  lw_cond conds[2 * LW_MAX_RANK];
  int32_t n;
  if (!lw_index_map(f->ix, i, slot, idx, at, conds, &n)) return false;
  joined j = join_conds(f, n, conds);
  lw_mask old = f->mask;
  f->mask = narrowed(f, &j);
  lw_ev v = value_at(f, lw_value_operand(i, slot), at);
  f->mask = old;
  if (j.s && j.s_level > level) level = j.s_level;
  *out = other && n ? pick_one(f, &j, v, *other, level) : v;
  return true;
}

static lw_ev moved(lw_fn *f, const lw_inst *i, int32_t slot,
                   const lw_expr *const *idx) {
  lw_ev v = {0};
  bool ok = operand_where(f, i, slot, idx, NULL, 0, &v);
  LW_ASSERT(ok);
  return v;
}

static lw_ev emit_concat(lw_fn *f, const lw_inst *i, const lw_expr *const *idx,
                         int level) {
  lw_ev v = {0};
  bool have = false;
  for (int32_t j = i->n_operands; j-- > 0;) {
    lw_ev x;
    if (operand_where(f, i, j, idx, have ? &v : NULL, level, &x)) {
      v = x;
      have = true;
    }
  }
  LW_ASSERT(have);
  return v;
}

static lw_ev emit_pad(lw_fn *f, const lw_inst *i, const lw_expr *const *idx,
                      int level) {
  lw_ev pad = moved(f, i, 1, idx), v;
  return operand_where(f, i, 0, idx, &pad, level, &v) ? v : pad;
}

static lw_ev emit_update(lw_fn *f, const lw_inst *i, const lw_expr *const *idx,
                         int level) {
  lw_ev old = moved(f, i, 0, idx), v;
  return operand_where(f, i, 1, idx, &old, level, &v) ? v : old;
}

static lw_ev emit_iota(lw_fn *f, const lw_inst *i, const lw_expr *const *idx,
                       int level) {
  const lw_expr *e = idx[lw_inst_i64(i, LW_ATTR_IOTA_DIMENSION, 0)];
  bool vec = lw_expr_is_vec(f, e), wide = !vec || needs_wide(f, e);
  LLVMValueRef x = expr_code(f, e, vec, wide);
  int own = lw_expr_level(f, e);
  if (own > level) level = own;
  lw_seek(f, level);
  lw_cgval v = {.re = x, .type = wide ? LW_S64 : LW_S32};
  lw_elem_op op = lw_elem_make(LW_OP_CONVERT, v.type, LW_PRIM_INVALID,
                               LW_PRIM_INVALID, i->shape->type);
  if (v.type == i->shape->type) return (lw_ev){v, vec, level};
  int old = lw_width(f, vec ? f->width : 1);
  lw_cgval none = {0};
  v = lw_mathgen_elem(&f->g, &op, v, none, none);
  lw_width(f, old);
  return (lw_ev){v, vec, level};
}

/* ---- bitcast-convert between widths ---- */

static LLVMTypeRef int_type(lw_fn *f, int bits, int width) {
  return lw_vec_type(LLVMIntTypeInContext(f->em->ctx, (unsigned)bits), width);
}

/* The bits of v as integers of so many bits; sub-byte types fill a byte. */
static LLVMValueRef as_bits(lw_fn *f, lw_cgval v, int bits, int width) {
  LLVMTypeRef t = int_type(f, bits, width);
  LLVMValueRef x = lw_mathgen_to_mem(&f->g, v).re;
  if (LLVMTypeOf(x) == t) return x;
  return LLVMTypeOf(x) == int_type(f, 8, width)
             ? LLVMBuildTrunc(f->b, x, t, "")
             : LLVMBuildBitCast(f->b, x, t, "");
}

static lw_cgval of_bits(lw_fn *f, LLVMValueRef x, lw_prim t) {
  LLVMTypeRef mem = lw_mathgen_mem_type(&f->g, t);
  if (LLVMTypeOf(x) != mem && lw_prim_table[t].bits >= 8)
    x = LLVMBuildBitCast(f->b, x, mem, "");
  else if (LLVMTypeOf(x) != mem)
    x = LLVMBuildIntCast2(f->b, x, mem, lw_prim_is_signed(t), "");
  return lw_mathgen_from_mem(&f->g, t, x, NULL);
}

/* One element from several: the operand's last dim, little end first. */
static lw_ev emit_joined(lw_fn *f, const lw_inst *i, const lw_expr *const *idx,
                         int level) {
  lw_value src = lw_value_operand(i, 0);
  const lw_shape *s = lw_value_shape(src);
  int from = lw_prim_table[s->type].bits,
      to = lw_prim_table[i->shape->type].bits;
  const lw_expr *at[LW_MAX_RANK];
  lw_ev parts[64]; /* 128 bits from pairs: the most there is */
  bool vec = false;
  for (int32_t d = 0; d < i->shape->rank; d++) at[d] = idx[d];
  for (int p = 0; p < to / from; p++) {
    at[s->rank - 1] = lw_ex_const(f->ix, p);
    parts[p] = value_at(f, src, at);
    vec |= parts[p].vec;
    level = deepest(level, parts[p]);
  }
  if (vec) level = f->n_levels - 1;
  lw_seek(f, level);
  int w = vec ? f->width : 1, old = lw_width(f, w);
  LLVMValueRef all = NULL;
  for (int p = 0; p < to / from; p++) {
    lw_ev x = vec ? splatted(f, parts[p]) : parts[p];
    LLVMValueRef bits =
        LLVMBuildZExt(f->b, as_bits(f, x.v, from, w), int_type(f, to, w), "");
    LLVMValueRef by = LLVMConstInt(int_type(f, to, 1), (unsigned)(p * from), 0);
    if (p) bits = LLVMBuildShl(f->b, bits, lw_splat(f, by, w), "");
    all = all ? LLVMBuildOr(f->b, all, bits, "") : bits;
  }
  lw_ev r = {of_bits(f, all, i->shape->type), vec, level};
  lw_width(f, old);
  return r;
}

/* A part of an element: the result's last dim says which. */
static lw_ev emit_part(lw_fn *f, const lw_inst *i, const lw_expr *const *idx,
                       int level) {
  lw_value src = lw_value_operand(i, 0);
  int from = lw_prim_table[lw_value_shape(src)->type].bits,
      to = lw_prim_table[i->shape->type].bits;
  const lw_expr *which = idx[i->shape->rank - 1];
  lw_ev x = value_at(f, src, idx);
  bool which_vec = lw_expr_is_vec(f, which), vec = x.vec || which_vec;
  LLVMValueRef k = expr_code(f, which, which_vec, true);
  level = deepest(level, x);
  if (lw_expr_level(f, which) > level) level = lw_expr_level(f, which);
  if (vec) level = f->n_levels - 1;
  lw_seek(f, level);
  int w = vec ? f->width : 1, old = lw_width(f, w);
  if (vec && !which_vec) k = lw_splat(f, k, w);
  if (vec) x = splatted(f, x);
  k = LLVMBuildIntCast2(f->b, lw_mul_const(f, k, to), int_type(f, from, w), 0,
                        "");
  LLVMValueRef bits = LLVMBuildLShr(f->b, as_bits(f, x.v, from, w), k, "");
  bits = LLVMBuildTrunc(f->b, bits, int_type(f, to, w), "");
  lw_ev r = {of_bits(f, bits, i->shape->type), vec, level};
  lw_width(f, old);
  return r;
}

/* ---- the other instructions ---- */

static lw_ev emit_lanes(lw_fn *f, const lw_inst *i, const lw_expr *const *idx,
                        int level) {
  lw_ev ops[64];
  lw_cgval args[64], out[1];
  bool vec = false;
  int32_t n = i->n_operands;
  if (n > 64) {
    lw_fn_fail(
        f, lw_error(LW_UNIMPLEMENTED, "%s: more than 64 operands", i->name));
    n = 64;
  }
  for (int32_t j = 0; j < n; j++) {
    ops[j] = moved(f, i, j, idx);
    vec |= ops[j].vec;
    level = deepest(level, ops[j]);
  }
  if (vec) level = f->n_levels - 1;
  lw_seek(f, level);
  for (int32_t j = 0; j < n; j++)
    args[j] = vec ? splatted(f, ops[j]).v : ops[j].v;
  int w = vec ? f->width : 1;
  if (i->opcode == LW_OP_MAP)
    lw_emit_comp(f, lw_inst_comp(i, LW_ATTR_TO_APPLY), args, w, out);
  else
    out[0] = lw_emit_elem(f, i, args, w);
  return (lw_ev){out[0], vec, level};
}

static lw_ev emit_bitcast(lw_fn *f, const lw_inst *i, const lw_expr *const *idx,
                          int level) {
  lw_ev v = moved(f, i, 0, idx);
  if (v.v.type == i->shape->type) return v;
  v.level = v.vec ? f->n_levels - 1 : deepest(level, v);
  lw_seek(f, v.level);
  lw_elem_op op = lw_elem_make(LW_OP_BITCAST_CONVERT, v.v.type, LW_PRIM_INVALID,
                               LW_PRIM_INVALID, i->shape->type);
  int old = lw_width(f, v.vec ? f->width : 1);
  lw_cgval none = {0};
  v.v = lw_mathgen_elem(&f->g, &op, v.v, none, none);
  lw_width(f, old);
  return v;
}

static LLVMValueRef arg_field(lw_fn *f, int64_t offset, LLVMTypeRef t) {
  LLVMValueRef off = lw_i64(f, offset);
  LLVMValueRef p = LLVMBuildGEP2(f->b, f->em->i8, f->args, &off, 1, "");
  return LLVMBuildLoad2(f->b, t, p, "");
}

static lw_ev emit_id(lw_fn *f, const lw_inst *i) {
  lw_seek(f, 0);
  size_t at = i->opcode == LW_OP_REPLICA_ID
                  ? offsetof(lw_kernel_args, replica_id)
                  : offsetof(lw_kernel_args, partition_id);
  LLVMValueRef v = arg_field(f, (int64_t)at, f->em->i64);
  v = LLVMBuildTrunc(f->b, v, f->em->i32, "");
  return (lw_ev){{.re = v, .type = LW_U32}, false, 0};
}

static lw_ev emit_dimension_size(lw_fn *f, const lw_inst *i) {
  int32_t n;
  int64_t d = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n)[0];
  LLVMValueRef v = LLVMConstInt(
      f->em->i32, (uint64_t)lw_inst_operand(i, 0)->shape->dims[d], 1);
  return (lw_ev){{.re = v, .type = LW_S32}, false, 0};
}

static lw_ev compute(lw_fn *f, const lw_inst *i, const lw_expr *const *idx,
                     int level) {
  switch ((int)i->opcode) {
    case LW_OP_CONSTANT:
      lw_seek(f, 0);
      return (lw_ev){lw_cg_const(f, lw_inst_literal(i), 1), false, 0};
    case LW_OP_IOTA:
      return emit_iota(f, i, idx, level);
    case LW_OP_CONCATENATE:
      return emit_concat(f, i, idx, level);
    case LW_OP_PAD:
      return emit_pad(f, i, idx, level);
    case LW_OP_DYNAMIC_UPDATE_SLICE:
      return emit_update(f, i, idx, level);
    case LW_OP_BITCAST:
      return emit_bitcast(f, i, idx, level);
    case LW_OP_PARTITION_ID:
    case LW_OP_REPLICA_ID:
      return emit_id(f, i);
    case LW_OP_GET_DIMENSION_SIZE:
      return emit_dimension_size(f, i);
    case LW_OP_BITCAST_CONVERT:
      if (i->shape->rank < lw_inst_operand(i, 0)->shape->rank)
        return emit_joined(f, i, idx, level);
      if (i->shape->rank > lw_inst_operand(i, 0)->shape->rank)
        return emit_part(f, i, idx, level);
      return emit_lanes(f, i, idx, level);
    case LW_OP_BROADCAST:
    case LW_OP_RESHAPE:
    case LW_OP_COPY:
    case LW_OP_TRANSPOSE:
    case LW_OP_SLICE:
    case LW_OP_REVERSE:
    case LW_OP_DYNAMIC_SLICE:
    case LW_OP_GATHER:
      return moved(f, i, 0, idx);
    default:
      return emit_lanes(f, i, idx, level);
  }
}

/* ---- values ---- */

static lw_ev from_memory(lw_fn *f, lw_value v, const lw_expr *const *idx,
                         const lw_place *p, int level) {
  const lw_shape *s = lw_value_shape(v);
  bool own = p->kind == LW_PLACE_STAGED && p->stage >= f->phase->first_stage &&
             p->stage < f->phase->first_stage + f->phase->n_stages;
  if (own && level < f->stage_level) level = f->stage_level;
  lw_seek(f, own ? f->stage_level : 0);
  LLVMValueRef base = lw_array_base(f, v);
  const lw_expr *lin = lw_ex_linear(f->ix, s->rank, s->dims, idx);
  int old = f->least_level;
  f->least_level = level;
  lw_ev r = lw_load_at(f, s->type, base, lin);
  f->least_level = old;
  return r;
}

static lw_ev value_at(lw_fn *f, lw_value v, const lw_expr *const *idx) {
  const lw_place *p = lw_kernel_place(f->k, v.inst);
  bool own = p->kind == LW_PLACE_STAGED && p->stage == f->stage;
  int32_t rank = lw_value_shape(v)->rank;
  facts x = {0};
  for (int32_t d = 0; d < rank; d++) expr_facts(f, idx[d], &x);
  int level = x.vec ? f->n_levels - 1 : x.level;
  bool imm = p->kind == LW_PLACE_CONST && p->buffer < 0;
  if (imm) {
    level = 0;
    rank = 0;
    x.vec = false;
  }
  bool mate = p->kind == LW_PLACE_STAGED && f->group_first >= 0 &&
              p->stage >= f->group_first && p->stage <= f->stage;
  const lw_mask *mask = mate ? &f->group_mask : &f->mask;
  LLVMValueRef ms = imm ? NULL : mask->s, mv = x.vec ? mask->v : NULL;
  for (int l = level; l < f->n_levels; l++) {
    memo *m = memo_find(f, l, v.inst, v.leaf, rank, idx, ms, mv);
    if (m) return m->ev;
  }
  if (ms && mask->s_level > level) level = mask->s_level;
  lw_ev r;
  if (imm || own || p->kind == LW_PLACE_INLINE)
    r = compute(f, v.inst, idx, level);
  else
    r = from_memory(f, v, idx, p, level);
  if (r.vec) r.level = f->n_levels - 1;
  /* found from the level of the index on, be its code higher */
  memo_add(f, r.level > level ? r.level : level, v.inst, v.leaf, rank, idx, ms,
           mv, r);
  return r;
}

lw_ev lw_emit_where(lw_fn *f, lw_value v, const lw_expr *const *idx, int32_t n,
                    const lw_cond *conds, LLVMValueRef *where) {
  lw_enter(f);
  joined j = join_conds(f, n, conds);
  lw_mask old = f->mask;
  f->mask = narrowed(f, &j);
  lw_ev r = value_at(f, v, idx);
  f->mask = old;
  lw_seek(f, f->n_levels - 1);
  LLVMValueRef s = j.s ? lw_splat(f, j.s, f->width) : NULL;
  *where = s && j.v ? LLVMBuildAnd(f->b, s, j.v, "") : s ? s : j.v;
  r = f->width > 1 ? splatted(f, r) : r;
  lw_leave(f);
  return r;
}

lw_ev lw_emit_value(lw_fn *f, lw_value v, const lw_expr *const *idx) {
  lw_enter(f);
  lw_ev r = value_at(f, v, idx);
  lw_leave(f);
  return r;
}
