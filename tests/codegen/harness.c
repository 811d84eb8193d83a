#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hlo/infer.h"
#include "interp/interp.h"
#include "reader/reader.h"

int lw_harness_verbose;

typedef struct {
  uint64_t s;
} rng;
static uint64_t next(rng *r) {
  uint64_t z = (r->s += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

static double some_double(rng *r) {
  uint64_t k = next(r);
  if (k % 64 == 0) {
    static const double odd[] = {0.0,   -0.0, INFINITY, -INFINITY, NAN,
                                 1e-40, 1.0,  -1.0,     0.5,       3e38};
    return odd[next(r) % 10];
  }
  double u = (double)(next(r) >> 11) * 0x1p-53;
  return k % 4 == 0 ? (u - 0.5) * 40 : (u - 0.5) * 4;
}

static void fill(rng *r, lw_literal *l) {
  if (lw_shape_is_tuple(l->shape)) {
    for (int32_t i = 0; i < l->n_elems; i++) fill(r, l->elems[i]);
    return;
  }
  lw_prim t = l->shape->type;
  for (int64_t i = 0; i < l->shape->elements; i++) {
    if (t == LW_PRED)
      lw_literal_set_int(l, i, (int64_t)(next(r) & 1));
    else if (lw_prim_is_int(t))
      lw_literal_set_int(
          l, i, next(r) % 4 ? (int64_t)(next(r) % 16) - 3 : (int64_t)next(r));
    else
      for (int p = 0; p <= lw_prim_is_complex(t); p++)
        lw_literal_set_f64(l, i, p, some_double(r));
  }
}

static bool both_nan(const lw_literal *a, const lw_literal *b, int64_t i) {
  lw_prim t = a->shape->type;
  if (!lw_prim_is_float(t) && !lw_prim_is_complex(t)) return false;
  size_t part = (size_t)lw_prim_bytes(lw_prim_part(t));
  for (int p = 0; p <= lw_prim_is_complex(t); p++) {
    size_t at = (size_t)i * (size_t)lw_prim_bytes(t) + (size_t)p * part;
    if (!memcmp((char *)a->data + at, (char *)b->data + at, part)) continue;
    if (!isnan(lw_literal_get_f64(a, i, p)) ||
        !isnan(lw_literal_get_f64(b, i, p)))
      return false;
  }
  return true;
}

static lw_status compare(const lw_literal *want, const lw_literal *got,
                         int leaf) {
  size_t n = (size_t)lw_prim_bytes(want->shape->type);
  for (int64_t i = 0; i < want->shape->elements; i++) {
    const char *a = (char *)want->data + (size_t)i * n;
    const char *b = (char *)got->data + (size_t)i * n;
    if (!memcmp(a, b, n) || both_nan(want, got, i)) continue;
    if (lw_prim_is_float(want->shape->type))
      return lw_error(LW_INTERNAL, "output %d element %lld: %.17g, not %.17g",
                      leaf, (long long)i, lw_literal_get_f64(got, i, 0),
                      lw_literal_get_f64(want, i, 0));
    uint64_t x = 0, y = 0;
    memcpy(&x, a, n < 8 ? n : 8);
    memcpy(&y, b, n < 8 ? n : 8);
    return lw_error(LW_INTERNAL, "output %d element %lld: %llx, not %llx", leaf,
                    (long long)i, (unsigned long long)y, (unsigned long long)x);
  }
  return NULL;
}

static lw_inst *wrap(lw_module *m) {
  lw_comp *body = m->entry;
  if (body->root->opcode == LW_OP_FUSION) return body->root; /* `extract`ed */
  lw_comp *c = lw_comp_new(m, "wrapped");
  int32_t n = (int32_t)body->params.len;
  lw_inst **ps = calloc((size_t)n + 1, sizeof *ps);
  for (int32_t i = 0; i < n; i++)
    ps[i] = lw_inst_parameter(c, i, body->params.data[i]->shape, NULL);
  lw_inst *f = lw_inst_new(c, LW_OP_FUSION, body->root->shape, "fused", n, ps);
  lw_inst_set_i64(f, LW_ATTR_KIND, LW_FUSION_LOOP);
  lw_inst_set_comp(f, LW_ATTR_CALLS, body);
  free(ps);
  return f;
}

static const lw_literal *leaf_of(const lw_literal *l, int64_t i) {
  if (!lw_shape_is_tuple(l->shape)) return l;
  for (int32_t e = 0; e < l->n_elems; e++) {
    int64_t n = lw_shape_leaf_count(l->elems[e]->shape);
    if (i < n) return leaf_of(l->elems[e], i);
    i -= n;
  }
  return NULL;
}

static void *block(int64_t bytes, int fillbyte) {
  size_t n = ((size_t)bytes + 127) / 64 * 64;
  void *p = aligned_alloc(64, n);
  memset(p, fillbyte, n);
  return p;
}

static void run_phase(const lw_phase *p, lw_phase_fn fn, lw_kernel_args *args,
                      rng *r) {
  args->scratch = block(p->thread_scratch_bytes, 0xa5);
  int64_t at = 0;
  while (at < p->n_tiles) {
    int64_t n = 1 + (int64_t)(next(r) % 3), end = at + n;
    if (end > p->n_tiles || p->n_tiles > 64) end = p->n_tiles;
    fn(args, at, end);
    at = end;
  }
  free(args->scratch);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

typedef struct {
  lw_context *ctx;
  lw_module *m;
  lw_arena *a;
  lw_kernel *k;
  const lw_literal **args;
  int32_t n_args;
} subject;

static lw_status load(const char *text, uint64_t seed, subject *s) {
  memset(s, 0, sizeof *s);
  s->ctx = lw_context_new();
  s->a = lw_arena_new();
  LW_TRY(lw_read_text(s->ctx, text, strlen(text), "test", NULL, &s->m));
  rng r = {seed};
  s->n_args = (int32_t)s->m->entry->params.len;
  s->args = LW_NEW_ARRAY(s->a, const lw_literal *, s->n_args + 1);
  for (int32_t i = 0; i < s->n_args; i++) {
    lw_literal *l;
    LW_TRY(lw_literal_new(s->a, s->m->entry->params.data[i]->shape, &l));
    fill(&r, l);
    s->args[i] = l;
  }
  return NULL;
}

static void unload(subject *s) {
  if (s->m) lw_module_free(s->m);
  lw_arena_free(s->a);
  lw_context_free(s->ctx);
}

static lw_status run_native(subject *s, const lw_kernel_code *code,
                            const lw_literal *want, rng *r) {
  const lw_kernel *k = s->k;
  int32_t n = k->n_params + k->n_outputs + k->n_scratch + k->n_consts, b = 0;
  void **buf = LW_NEW_ARRAY(s->a, void *, n + 1);
  for (int32_t i = 0; i < s->n_args; i++)
    for (int64_t l = 0; l < lw_shape_leaf_count(s->args[i]->shape); l++) {
      const lw_literal *x = leaf_of(s->args[i], l);
      buf[b] = block(lw_literal_bytes(x), 0);
      memcpy(buf[b++], x->data, (size_t)lw_literal_bytes(x));
    }
  bool *alias = LW_NEW_ARRAY(s->a, bool, n + 1);
  bool *taken = LW_NEW_ARRAY(s->a, bool, n + 1);
  for (int32_t o = 0; o < k->n_outputs; o++) {
    for (int pass = 0; pass < 2; pass++)
      for (int32_t p = 0; p < k->n_params; p++) {
        int at = p * k->n_outputs + o;
        if (alias[b] || taken[p]) continue;
        if (pass ? k->may_alias[at] && next(r) % 2 : k->must_alias[at]) {
          buf[b] = buf[p];
          alias[b] = taken[p] = true;
        }
      }
    if (!alias[b]) buf[b] = block(lw_shape_bytes(k->output_shapes[o]), 0xa5);
    b++;
  }
  for (int32_t i = 0; i < k->n_scratch; i++)
    buf[b++] = block(k->scratch_bytes[i], 0xa5);
  for (int32_t i = 0; i < k->n_consts; i++) {
    buf[b] = block(lw_literal_bytes(k->consts[i]), 0);
    memcpy(buf[b++], k->consts[i]->data,
           (size_t)lw_literal_bytes(k->consts[i]));
  }
  lw_kernel_args args = {.buffers = buf, .n_threads = 1};
  double t0 = now();
  for (int32_t p = 0; p < k->n_phases; p++)
    run_phase(&k->phases[p], code->phases[p], &args, r);
  if (lw_harness_verbose) printf("  run %.3f ms\n", now() - t0);
  lw_status e = NULL;
  for (int32_t o = 0; o < k->n_outputs && !e; o++) {
    const lw_literal *w = leaf_of(want, o);
    if (!lw_shape_is_array(w->shape)) continue;
    lw_literal got = *w;
    got.data = buf[k->n_params + o];
    e = compare(w, &got, o);
  }
  for (int32_t i = 0; i < n; i++)
    if (!alias[i]) free(buf[i]);
  return e;
}

static lw_status check(subject *s, uint64_t seed, const char *isa) {
  lw_literal *want = NULL;
  LW_TRY(lw_interp_run(s->m, s->args, s->n_args, NULL, s->a, &want));
  LW_TRY(lw_kernel_build(s->a, wrap(s->m), NULL, &s->k));
  lw_codegen *cg = NULL;
  lw_codegen_options opt = {.isa = isa,
                            .opt_level = 2,
                            .keep_llvm = lw_harness_verbose > 1,
                            .keep_asm = lw_harness_verbose > 2};
  LW_TRY(lw_codegen_new(&opt, &cg));
  lw_kernel_code code;
  double t0 = now();
  lw_status e = lw_codegen_compile(cg, &s->k, 1, &code);
  if (lw_harness_verbose) {
    lw_buf b = {0};
    lw_kernel_print(&b, s->k);
    printf("%s  compile %.2f ms\n", lw_buf_cstr(&b), now() - t0);
    lw_buf_free(&b);
    if (!e && lw_codegen_llvm(cg)) puts(lw_codegen_llvm(cg));
    if (!e && lw_codegen_asm(cg)) puts(lw_codegen_asm(cg));
  }
  rng r = {seed * 31 + 7};
  if (!e) e = run_native(s, &code, want, &r);
  lw_codegen_free(cg);
  return e;
}

lw_status lw_check_text_isa(const char *text, uint64_t seed, const char *isa) {
  subject s;
  lw_status e = load(text, seed, &s);
  if (!e) e = check(&s, seed, isa);
  if (e) {
    lw_buf b = {0};
    if (s.k) lw_kernel_print(&b, s.k);
    e = lw_status_annotate(e, "%s\n%s\n%s", isa, text, lw_buf_cstr(&b));
    lw_buf_free(&b);
  }
  unload(&s);
  return e;
}

lw_status lw_check_text(const char *text, uint64_t seed) {
  static const char *const isas[] = {"avx512", "avx2", "baseline"};
  for (int i = 0; i < 3; i++)
    if (lw_codegen_has_isa(isas[i]))
      LW_TRY(lw_check_text_isa(text, seed, isas[i]));
  return NULL;
}

lw_status lw_kernel_text(const char *text, lw_buf *out) {
  subject s;
  lw_status e = load(text, 1, &s);
  if (!e) e = lw_kernel_build(s.a, wrap(s.m), NULL, &s.k);
  if (!e) lw_kernel_print(out, s.k);
  unload(&s);
  return e;
}
