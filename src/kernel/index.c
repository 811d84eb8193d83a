/* Interned index expressions.
 *
 * The normal form: terms sorted by atom, no zero coefficients, like terms
 * collected, and digits merged: k*m * digit(e, d*m, M) + k * digit(e, d, m) is
 * k * digit(e, d, m*M), and digit(e, 1, all of e) is e itself. Division splits
 * off what the divisor divides: floor((s*q + r) / s) = q + floor(r / s), which
 * holds for r >= 0. All values are int64; the shapes that lead here were
 * checked to have element counts below 2^63.
 */
#include "kernel/index.h"

#include <string.h>

void lw_index_init(lw_index *ix, lw_arena *a) {
  memset(ix, 0, sizeof *ix);
  ix->arena = a;
}

void lw_index_free(lw_index *ix) {
  lw_map_free(&ix->exprs);
  lw_map_free(&ix->atoms);
}

/* ---- interning ---- */

static int64_t sat_mul(int64_t a, int64_t b) {
  int64_t r;
  if (!__builtin_mul_overflow(a, b, &r)) return r;
  return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}
static int64_t sat_add(int64_t a, int64_t b) {
  int64_t r;
  if (!__builtin_add_overflow(a, b, &r)) return r;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

static bool same_terms(const lw_expr *e, int64_t c, int32_t n,
                       const lw_term *t) {
  if (e->c != c || e->n != n) return false;
  for (int32_t i = 0; i < n; i++)
    if (e->t[i].k != t[i].k || e->t[i].a != t[i].a) return false;
  return true;
}

static const lw_expr *intern(lw_index *ix, int64_t c, int32_t n,
                             const lw_term *t) {
  uint64_t h = lw_hash_mix(77, (uint64_t)c);
  for (int32_t i = 0; i < n; i++) {
    h = lw_hash_mix(h, (uint64_t)t[i].k);
    h = lw_hash_mix(h, (uint64_t)t[i].a->id);
  }
  uint64_t *slot = lw_map_put(&ix->exprs, h);
  for (const lw_expr *e = (const lw_expr *)(uintptr_t)*slot; e; e = e->next)
    if (same_terms(e, c, n, t)) return e;
  lw_expr *e =
      lw_arena_alloc(ix->arena, sizeof(lw_expr) + (size_t)n * sizeof(lw_term));
  e->c = e->lo = e->hi = c;
  e->n = n;
  e->hash = h;
  for (int32_t i = 0; i < n; i++) {
    e->t[i] = t[i];
    int64_t end = sat_mul(t[i].k, t[i].a->extent - 1);
    if (end > 0) e->hi = sat_add(e->hi, end);
    if (end < 0) e->lo = sat_add(e->lo, end);
  }
  e->next = (const lw_expr *)(uintptr_t)*slot;
  *slot = (uint64_t)(uintptr_t)e;
  return e;
}

typedef struct atom_node {
  lw_atom a;
  struct atom_node *next;
} atom_node;

static bool same_atom(const lw_atom *a, const lw_atom *b) {
  if (a->kind != b->kind || a->extent != b->extent) return false;
  if (a->kind == LW_ATOM_VAR) return a->var == b->var;
  if (a->kind == LW_ATOM_DIGIT)
    return a->e == b->e && a->div == b->div && a->mod == b->mod;
  return a->inst == b->inst && a->leaf == b->leaf && a->n_idx == b->n_idx &&
         (a->n_idx == 0 ||
          memcmp(a->idx, b->idx, (size_t)a->n_idx * sizeof *a->idx) == 0);
}

static const lw_atom *atom(lw_index *ix, const lw_atom *proto) {
  uint64_t h = lw_hash_mix((uint64_t)proto->kind, (uint64_t)proto->extent);
  h = lw_hash_mix(h, (uint64_t)proto->var);
  h = lw_hash_mix(h, (uint64_t)(uintptr_t)proto->e);
  h = lw_hash_mix(h, (uint64_t)proto->div);
  h = lw_hash_mix(h, (uint64_t)proto->mod);
  h = lw_hash_mix(h, (uint64_t)(uintptr_t)proto->inst);
  for (int32_t i = 0; i < proto->n_idx; i++)
    h = lw_hash_mix(h, (uint64_t)(uintptr_t)proto->idx[i]);
  uint64_t *slot = lw_map_put(&ix->atoms, h);
  for (atom_node *p = (atom_node *)(uintptr_t)*slot; p; p = p->next)
    if (same_atom(&p->a, proto)) return &p->a;
  atom_node *p = LW_NEW(ix->arena, atom_node);
  p->a = *proto;
  p->a.id = ix->n_atoms++;
  if (proto->n_idx)
    p->a.idx = lw_arena_memdup(ix->arena, proto->idx,
                               (size_t)proto->n_idx * sizeof *proto->idx);
  p->next = (atom_node *)(uintptr_t)*slot;
  *slot = (uint64_t)(uintptr_t)p;
  return &p->a;
}

/* ---- sums ---- */

typedef struct {
  int64_t c;
  int32_t n, cap;
  lw_term *t, small[16];
} sum;

static void sum_init(sum *s) {
  s->c = 0;
  s->n = 0;
  s->cap = 16;
  s->t = s->small;
}
static void sum_push(lw_index *ix, sum *s, int64_t k, const lw_atom *a) {
  if (s->n == s->cap) {
    lw_term *t = LW_NEW_ARRAY(ix->arena, lw_term, 2 * s->cap);
    memcpy(t, s->t, (size_t)s->n * sizeof *t);
    s->t = t;
    s->cap *= 2;
  }
  s->t[s->n++] = (lw_term){k, a};
}
static void sum_add(lw_index *ix, sum *s, const lw_expr *e, int64_t k) {
  s->c += e->c * k;
  for (int32_t i = 0; i < e->n; i++) sum_push(ix, s, e->t[i].k * k, e->t[i].a);
}

static void sum_collect(sum *s) {
  for (int32_t i = 1; i < s->n; i++)
    for (int32_t j = i; j > 0 && s->t[j].a->id < s->t[j - 1].a->id; j--) {
      lw_term x = s->t[j];
      s->t[j] = s->t[j - 1];
      s->t[j - 1] = x;
    }
  int32_t n = 0;
  for (int32_t i = 0; i < s->n; i++) {
    if (n && s->t[n - 1].a == s->t[i].a)
      s->t[n - 1].k += s->t[i].k;
    else
      s->t[n++] = s->t[i];
    if (s->t[n - 1].k == 0) n--;
  }
  s->n = n;
}

static const lw_expr *digit(lw_index *ix, const lw_expr *e, int64_t div,
                            int64_t mod);

/* One merge of two digits of one expression; false when there is none. */
static bool sum_merge(lw_index *ix, sum *s) {
  for (int32_t i = 0; i < s->n; i++)
    for (int32_t j = 0; j < s->n; j++) {
      const lw_atom *hi = s->t[i].a, *lo = s->t[j].a;
      if (i == j || hi->kind != LW_ATOM_DIGIT || lo->kind != LW_ATOM_DIGIT ||
          hi->e != lo->e || !lo->mod || hi->div != lo->div * lo->mod ||
          s->t[i].k != s->t[j].k * lo->mod)
        continue;
      int64_t k = s->t[j].k;
      const lw_expr *m =
          digit(ix, lo->e, lo->div, hi->mod ? hi->mod * lo->mod : 0);
      s->t[i].k = s->t[j].k = 0;
      int32_t n = 0;
      for (int32_t x = 0; x < s->n; x++)
        if (s->t[x].k) s->t[n++] = s->t[x];
      s->n = n;
      sum_add(ix, s, m, k);
      return true;
    }
  return false;
}

static const lw_expr *sum_done(lw_index *ix, sum *s) {
  do sum_collect(s);
  while (sum_merge(ix, s));
  return intern(ix, s->c, s->n, s->t);
}

/* ---- constructors ---- */

const lw_expr *lw_ex_const(lw_index *ix, int64_t c) {
  return intern(ix, c, 0, NULL);
}

static const lw_expr *of_atom(lw_index *ix, const lw_atom *proto) {
  if (proto->extent <= 1) return lw_ex_const(ix, 0);
  lw_term t = {1, atom(ix, proto)};
  return intern(ix, 0, 1, &t);
}

const lw_expr *lw_ex_var(lw_index *ix, int32_t var, int64_t extent) {
  return of_atom(ix,
                 &(lw_atom){.kind = LW_ATOM_VAR, .var = var, .extent = extent});
}

const lw_expr *lw_ex_value(lw_index *ix, const lw_inst *inst, int32_t leaf,
                           int32_t n_idx, const lw_expr *const *idx,
                           int64_t extent) {
  return of_atom(ix, &(lw_atom){.kind = LW_ATOM_VALUE,
                                .inst = inst,
                                .leaf = leaf,
                                .n_idx = n_idx,
                                .idx = idx,
                                .extent = extent});
}

const lw_expr *lw_expr_of_atom(lw_index *ix, const lw_atom *a) {
  lw_term t = {1, a};
  return intern(ix, 0, 1, &t);
}

const lw_expr *lw_ex_add(lw_index *ix, const lw_expr *a, const lw_expr *b) {
  sum s;
  sum_init(&s);
  sum_add(ix, &s, a, 1);
  sum_add(ix, &s, b, 1);
  return sum_done(ix, &s);
}

const lw_expr *lw_ex_addc(lw_index *ix, const lw_expr *a, int64_t c) {
  return intern(ix, a->c + c, a->n, a->t);
}

const lw_expr *lw_ex_mul(lw_index *ix, const lw_expr *a, int64_t k) {
  sum s;
  sum_init(&s);
  if (k) sum_add(ix, &s, a, k);
  return sum_done(ix, &s);
}

/* e >= 0. mod 0: none. */
static const lw_expr *digit(lw_index *ix, const lw_expr *e, int64_t div,
                            int64_t mod) {
  int64_t top = e->hi < 0 ? 0 : e->hi / div;
  if (mod && top < mod) mod = 0;
  if (div == 1 && !mod && e->lo >= 0) return e;
  const lw_atom *in =
      e->n == 1 && e->c == 0 && e->t[0].k == 1 ? e->t[0].a : NULL;
  if (in && in->kind == LW_ATOM_DIGIT) {
    if (!in->mod) return digit(ix, in->e, in->div * div, mod);
    if (in->mod % div == 0) {
      int64_t rest = in->mod / div;
      if (!mod || mod >= rest) return digit(ix, in->e, in->div * div, rest);
      if (rest % mod == 0) return digit(ix, in->e, in->div * div, mod);
    }
  }
  return of_atom(ix, &(lw_atom){.kind = LW_ATOM_DIGIT,
                                .e = e,
                                .div = div,
                                .mod = mod,
                                .extent = mod ? mod : top + 1});
}

static int64_t gcd64(int64_t a, int64_t b) {
  a = a < 0 ? -a : a;
  while (b) {
    int64_t t = a % b;
    a = b;
    b = t;
  }
  return a;
}

static int64_t floor_mod(int64_t a, int64_t s) {
  int64_t r = a % s;
  return r < 0 ? r + s : r;
}

/* e = s * q + r with r free of multiples of s. */
static const lw_expr *split(lw_index *ix, const lw_expr *e, int64_t s,
                            const lw_expr **r) {
  sum q, rest;
  sum_init(&q);
  sum_init(&rest);
  rest.c = floor_mod(e->c, s);
  q.c = (e->c - rest.c) / s;
  for (int32_t i = 0; i < e->n; i++) {
    if (e->t[i].k % s == 0)
      sum_push(ix, &q, e->t[i].k / s, e->t[i].a);
    else
      sum_push(ix, &rest, e->t[i].k, e->t[i].a);
  }
  *r = sum_done(ix, &rest);
  if ((*r)->lo < 0) { /* a negative rest: keep the whole together */
    *r = e;
    return lw_ex_const(ix, 0);
  }
  return sum_done(ix, &q);
}

/* floor(r / s) or r mod s of a rest, its common factor taken out. */
static const lw_expr *rest_digit(lw_index *ix, const lw_expr *r, int64_t s,
                                 bool quotient) {
  if (r->lo >= 0 && r->hi < s) return quotient ? lw_ex_const(ix, 0) : r;
  int64_t g = s;
  for (int32_t i = 0; i < r->n; i++) g = gcd64(r->t[i].k, g);
  if (g > 1 && r->lo >= 0) {
    sum x;
    sum_init(&x);
    int64_t low = floor_mod(r->c, g);
    x.c = (r->c - low) / g;
    for (int32_t i = 0; i < r->n; i++)
      sum_push(ix, &x, r->t[i].k / g, r->t[i].a);
    const lw_expr *d = sum_done(ix, &x);
    if (quotient) return digit(ix, d, s / g, 0);
    d = s / g == 1 ? lw_ex_const(ix, 0) : digit(ix, d, 1, s / g);
    return lw_ex_addc(ix, lw_ex_mul(ix, d, g), low);
  }
  return quotient ? digit(ix, r, s, 0) : digit(ix, r, 1, s);
}

const lw_expr *lw_ex_div(lw_index *ix, const lw_expr *e, int64_t s) {
  if (s == 1) return e;
  const lw_expr *r, *q = split(ix, e, s, &r);
  return lw_ex_add(ix, q, rest_digit(ix, r, s, true));
}

const lw_expr *lw_ex_mod(lw_index *ix, const lw_expr *e, int64_t s) {
  if (s == 1) return lw_ex_const(ix, 0);
  const lw_expr *r;
  split(ix, e, s, &r);
  return rest_digit(ix, r, s, false);
}

const lw_expr *lw_ex_linear(lw_index *ix, int32_t rank, const int64_t *dims,
                            const lw_expr *const *idx) {
  sum s;
  sum_init(&s);
  int64_t stride = 1;
  for (int32_t d = rank; d-- > 0;) {
    sum_add(ix, &s, idx[d], stride);
    stride *= dims[d];
  }
  return sum_done(ix, &s);
}

void lw_ex_delinear(lw_index *ix, const lw_expr *lin, int32_t rank,
                    const int64_t *dims, const lw_expr **idx) {
  for (int32_t d = rank; d-- > 0;) {
    if (dims[d] <= 1) {
      idx[d] = lw_ex_const(ix, 0);
      continue;
    }
    idx[d] = lw_ex_mod(ix, lin, dims[d]);
    lin = lw_ex_div(ix, lin, dims[d]);
  }
}

const lw_expr *lw_ex_subst(lw_index *ix, const lw_expr *e, int32_t var,
                           const lw_expr *r) {
  if (!lw_ex_uses_var(e, var)) return e;
  const lw_expr *out = lw_ex_const(ix, e->c);
  for (int32_t i = 0; i < e->n; i++) {
    const lw_atom *a = e->t[i].a;
    const lw_expr *x;
    if (a->kind == LW_ATOM_VAR) {
      x = a->var == var ? r : lw_ex_var(ix, a->var, a->extent);
    } else if (a->kind == LW_ATOM_DIGIT) {
      x = lw_ex_div(ix, lw_ex_subst(ix, a->e, var, r), a->div);
      if (a->mod) x = lw_ex_mod(ix, x, a->mod);
    } else {
      const lw_expr *idx[LW_MAX_RANK];
      for (int32_t j = 0; j < a->n_idx; j++)
        idx[j] = lw_ex_subst(ix, a->idx[j], var, r);
      x = lw_ex_value(ix, a->inst, a->leaf, a->n_idx, idx, a->extent);
    }
    out = lw_ex_add(ix, out, lw_ex_mul(ix, x, e->t[i].k));
  }
  return out;
}

bool lw_ex_uses_var(const lw_expr *e, int32_t var) {
  for (int32_t i = 0; i < e->n; i++) {
    const lw_atom *a = e->t[i].a;
    if (a->kind == LW_ATOM_VAR && a->var == var) return true;
    if (a->kind == LW_ATOM_DIGIT && lw_ex_uses_var(a->e, var)) return true;
    if (a->kind == LW_ATOM_VALUE)
      for (int32_t j = 0; j < a->n_idx; j++)
        if (lw_ex_uses_var(a->idx[j], var)) return true;
  }
  return false;
}

static void print_atom(lw_buf *b, const lw_atom *a) {
  switch (a->kind) {
    case LW_ATOM_VAR:
      lw_buf_printf(b, "v%d", a->var);
      return;
    case LW_ATOM_DIGIT:
      lw_buf_chr(b, '(');
      lw_ex_print(b, a->e);
      lw_buf_chr(b, ')');
      if (a->div > 1) lw_buf_printf(b, "/%lld", (long long)a->div);
      if (a->mod) lw_buf_printf(b, "%%%lld", (long long)a->mod);
      return;
    case LW_ATOM_VALUE:
      lw_buf_printf(b, "%s[", a->inst->name);
      for (int32_t i = 0; i < a->n_idx; i++) {
        if (i) lw_buf_chr(b, ',');
        lw_ex_print(b, a->idx[i]);
      }
      lw_buf_chr(b, ']');
      return;
  }
}

void lw_ex_print(lw_buf *b, const lw_expr *e) {
  for (int32_t i = 0; i < e->n; i++) {
    if (i) lw_buf_chr(b, '+');
    if (e->t[i].k != 1) lw_buf_printf(b, "%lld*", (long long)e->t[i].k);
    print_atom(b, e->t[i].a);
  }
  if (e->c || !e->n) lw_buf_printf(b, e->n ? "%+lld" : "%lld", (long long)e->c);
}
