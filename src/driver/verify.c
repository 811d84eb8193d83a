/* The bits question (docs/numerics.md): the interpreter's result against every
 * way this machine can compile and run the module. */
#include <string.h>

#include "driver/driver.h"
#include "hlo/print.h"
#include "interp/interp.h"

/* ---- same bits, NaN aside ---- */

static bool is_nan_at(const lw_literal *l, int64_t k, int part) {
  double v = lw_literal_get_f64(l, k, part);
  return v != v;
}

static bool same_element(const lw_literal *a, const lw_literal *b, int64_t k) {
  size_t w = (size_t)lw_prim_bytes(a->shape->type);
  const char *pa = (const char *)a->data + (size_t)k * w;
  const char *pb = (const char *)b->data + (size_t)k * w;
  if (!memcmp(pa, pb, w)) return true;
  lw_prim t = a->shape->type;
  if (lw_prim_is_float(t)) return is_nan_at(a, k, 0) && is_nan_at(b, k, 0);
  if (!lw_prim_is_complex(t)) return false;
  for (int part = 0; part < 2; part++) {
    size_t h = w / 2, o = (size_t)part * h;
    if (memcmp(pa + o, pb + o, h) &&
        !(is_nan_at(a, k, part) && is_nan_at(b, k, part))) {
      return false;
    }
  }
  return true;
}

static const char *describe(const lw_literal *a, const lw_literal *b, int leaf,
                            int64_t first, int64_t differing, lw_arena *arena) {
  lw_buf t = {0};
  lw_buf_printf(
      &t, "output %d: %lld of %lld elements differ, first at %lld: ", leaf,
      (long long)differing, (long long)a->shape->elements, (long long)first);
  lw_literal_print_value(&t, b, first);
  lw_buf_str(&t, " instead of ");
  lw_literal_print_value(&t, a, first);
  const char *s = lw_arena_strdup(arena, lw_buf_cstr(&t), t.len);
  lw_buf_free(&t);
  return s;
}

static bool same_leaves(const lw_literal *a, const lw_literal *b, int *leaf,
                        lw_arena *arena, const char **where) {
  if (lw_shape_is_tuple(a->shape)) {
    for (int32_t k = 0; k < a->n_elems; k++) {
      if (!same_leaves(a->elems[k], b->elems[k], leaf, arena, where)) {
        return false;
      }
    }
    return true;
  }
  int number = (*leaf)++;
  if (!lw_shape_is_array(a->shape)) return true;
  int64_t bytes = lw_literal_bytes(a), first = -1, differing = 0;
  if (bytes == 0 || !memcmp(a->data, b->data, (size_t)bytes)) return true;
  for (int64_t k = 0; k < a->shape->elements; k++) {
    if (same_element(a, b, k)) continue;
    if (first < 0) first = k;
    differing++;
  }
  if (first < 0) return true;
  if (where) *where = describe(a, b, number, first, differing, arena);
  return false;
}

bool lw_literal_same_bits(const lw_literal *a, const lw_literal *b,
                          lw_arena *arena, const char **where) {
  int leaf = 0;
  if (!lw_shape_compatible(a->shape, b->shape)) {
    if (where) *where = "the shapes differ";
    return false;
  }
  return same_leaves(a, b, &leaf, arena, where);
}

/* ---- roads ---- */

/* level: of the machine code. 2 is the usual one; 0 is another pipeline,
 * another instruction selection and register allocation, cheap to make: the
 * same bits all the same. */
typedef struct {
  const char *fusion, *isa;
  bool many_threads, no_alias;
  int level;
} road_plan;

static const road_plan plans[] = {
    {"none", "native", false, false, 2},
    {"none", "native", true, false, 2},
    {"xla", "native", false, false, 2},
    {"xla", "native", true, false, 2},
    {"priority", "native", false, false, 2},
    {"priority", "native", true, false, 2},
    {"priority", "native", false, true, 2},
    {"priority", "avx512", false, false, 2},
    {"priority", "avx2", false, false, 2},
    {"none", "avx2", false, false, 0},
    {"priority", "baseline", false, false, 0},
};
enum { N_PLANS = sizeof plans / sizeof *plans };

typedef struct {
  const lw_module *m;
  const lw_literal *const *args;
  int32_t n_args;
  const lw_verify_options *o;
  const lw_literal *truth;
  lw_pool *pool;
  lw_arena *arena;
  /* The last road's code: the next one may differ in threads alone. */
  lw_compiled *compiled;
  const road_plan *compiled_for;
  /* Machine code by ISA and level: most of a module's kernels are the same
   * fused or not, and all are without aliasing. */
  lw_codegen *code[N_PLANS];
} verifier;

static bool same_code(const road_plan *a, const road_plan *b) {
  return a && !strcmp(a->fusion, b->fusion) && !strcmp(a->isa, b->isa) &&
         a->no_alias == b->no_alias && a->level == b->level;
}

static void drop_compiled(verifier *v) {
  lw_compiled_free(v->compiled);
  v->compiled = NULL;
  v->compiled_for = NULL;
}

static void drop_all(verifier *v) {
  drop_compiled(v);
  for (int k = 0; k < N_PLANS; k++) lw_codegen_free(v->code[k]);
}

/* The ISA that "native" stands for. */
static const char *isa_of(const road_plan *p) {
  if (strcmp(p->isa, "native")) return p->isa;
  if (lw_codegen_has_isa("avx512")) return "avx512";
  return lw_codegen_has_isa("avx2") ? "avx2" : "baseline";
}

static bool same_machine(const road_plan *a, const road_plan *b) {
  return !strcmp(isa_of(a), isa_of(b)) && a->level == b->level;
}

/* The code of the first road with this ISA and level. */
static lw_status codegen_for(verifier *v, const road_plan *p,
                             lw_codegen **out) {
  int k = 0;
  while (!same_machine(&plans[k], p)) k++;
  lw_codegen_options o = {.isa = p->isa, .opt_level = p->level};
  if (!v->code[k]) LW_TRY(lw_codegen_new(&o, &v->code[k]));
  *out = v->code[k];
  return NULL;
}

static lw_status compile_road(verifier *v, const road_plan *p) {
  if (same_code(v->compiled_for, p)) return NULL;
  drop_compiled(v);
  lw_compile_options o = {.fusion = p->fusion,
                          .isa = p->isa,
                          .target = v->o->target,
                          .flush_denormals = v->o->flush_denormals,
                          .no_alias = p->no_alias,
                          .planted_fault = v->o->planted_fault};
  LW_TRY(codegen_for(v, p, &o.codegen));
  LW_TRY(lw_compile(v->m, &o, &v->compiled));
  LW_TRY(lw_plan_check(lw_compiled_plan(v->compiled)));
  v->compiled_for = p;
  return NULL;
}

static lw_status compile_and_run(verifier *v, const road_plan *p,
                                 lw_arena *scratch, lw_literal **result) {
  lw_run_options r = {.seed = v->o->seed,
                      .flush_denormals = v->o->flush_denormals,
                      .pool = p->many_threads ? v->pool : NULL};
  LW_TRY(compile_road(v, p));
  return lw_compiled_run(v->compiled, v->args, v->n_args, &r, scratch, result,
                         NULL);
}

static void take_road(verifier *v, const road_plan *p, lw_road *out) {
  if (strcmp(p->isa, "native") && !lw_codegen_has_isa(p->isa)) {
    out->verdict = LW_ROAD_NOT_TESTED;
    out->detail = "this CPU lacks it";
    return;
  }
  lw_arena *scratch = lw_arena_new();
  lw_literal *result;
  lw_status st = compile_and_run(v, p, scratch, &result);
  if (st) {
    const char *s = lw_status_message(st);
    out->verdict = LW_ROAD_FAILED;
    out->detail = lw_arena_strdup(v->arena, s, strlen(s));
    lw_status_free(st);
  } else if (!lw_literal_same_bits(v->truth, result, v->arena, &out->detail)) {
    out->verdict = LW_ROAD_DIFFERS;
  }
  lw_arena_free(scratch);
}

static void find_library(const lw_module *m, lw_arena *a,
                         lw_verify_report *out) {
  int32_t n;
  lw_comp **comps = lw_module_post_order(m, a, &n, true);
  LW_VEC(const char *) names = {0};
  for (int32_t k = 0; k < n; k++) {
    for (const lw_inst *i = comps[k]->first; i; i = i->next) {
      const char *target = lw_inst_str(i, LW_ATTR_CUSTOM_CALL_TARGET);
      if (i->opcode == LW_OP_CUSTOM_CALL && target) {
        lw_vec_push(&names, lw_arena_printf(a, "%s (%s)", i->name, target));
      } else if (i->opcode == LW_OP_FFT || i->opcode == LW_OP_CHOLESKY ||
                 i->opcode == LW_OP_TRIANGULAR_SOLVE) {
        lw_vec_push(&names, lw_arena_printf(a, "%s (%s)", i->name,
                                            lw_opcode_name(i->opcode)));
      }
    }
  }
  out->n_library = (int32_t)names.len;
  out->library = lw_arena_memdup(a, names.data, names.len * sizeof *names.data);
  lw_vec_free(&names);
}

static const char *road_name(const verifier *v, const road_plan *p) {
  return lw_arena_printf(v->arena, "fusion=%s threads=%d isa=%s%s", p->fusion,
                         p->many_threads ? lw_pool_threads(v->pool) : 1, p->isa,
                         p->no_alias ? " no-alias" : "");
}

static void say(const lw_verify_options *o, int32_t k, const char *name) {
  if (o->progress) o->progress(o->progress_ctx, k, N_PLANS + 1, name);
}

static void take_all(verifier *v, lw_verify_report *out) {
  for (int32_t k = 0; k < N_PLANS && (out->same || !v->o->first_only); k++) {
    lw_road *r = &out->roads[k + 1];
    r->name = road_name(v, &plans[k]);
    say(v->o, k + 1, r->name);
    take_road(v, &plans[k], r);
    bool fine = r->verdict == LW_ROAD_SAME || r->verdict == LW_ROAD_NOT_TESTED;
    out->same = out->same && fine;
    if (!fine && v->o->first_only) out->n = k + 2;
  }
}

lw_status lw_verify(const lw_module *m, const lw_literal *const *args,
                    int32_t n_args, const lw_verify_options *options,
                    lw_arena *a, lw_verify_report *out) {
  static const lw_verify_options defaults = {0};
  verifier v = {.m = m, .args = args, .n_args = n_args, .arena = a};
  v.o = options ? options : &defaults;
  *out = (lw_verify_report){.n = N_PLANS + 1, .same = true};
  out->roads = LW_NEW_ARRAY(a, lw_road, out->n);
  out->roads[0].name = "interpreter";
  find_library(m, a, out);
  lw_interp_options io = {.flush_denormals = v.o->flush_denormals,
                          .rng_seed = v.o->seed};
  lw_literal *truth;
  say(v.o, 0, "interpreter");
  LW_TRY(lw_interp_run(m, args, n_args, &io, a, &truth));
  v.truth = truth;
  int threads = v.o->threads ? v.o->threads : lw_core_count();
  LW_TRY(lw_pool_new(threads < 2 ? 2 : threads, &v.pool));
  take_all(&v, out);
  drop_all(&v);
  lw_pool_free(v.pool);
  return NULL;
}
