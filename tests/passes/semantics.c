/* Passes keep every bit: runs programs in the interpreter before and after the
 * clean-up pipeline, and after each pass alone, and compares the results bit
 * for bit (NaN equals NaN).
 *
 *   passes_semantics [DIR [PROGRAM ...] | --random SEED]
 *
 * DIR holds folders with before.hlo and, with data, inputs.npz (p0, p1 ...);
 * default: the corpus in tests/data, tests/passes/exact and 100 random modules.
 * Large programs are checked with the whole pipeline alone. Exit status 1 when
 * bits differ.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "gen/gen.h"
#include "hlo/print.h"
#include "interp/interp.h"
#include "lib/npz.h"
#include "lib/rng.h"
#include "passes/manager.h"
#include "passes/passes.h"
#include "reader/reader.h"

typedef struct {
  const char *name;
  lw_context *ctx;
  char *text;
  size_t len;
  lw_literal **args;
  int n_args;
  lw_literal *want, *want_flushed;
  lw_arena *arena;
  int64_t elements; /* of all arrays of the text */
} program;

enum { SMALL_TEXT = 12000, SMALL_DATA = 300000 }; /* bytes, elements */

static int n_ran, n_compared, n_failed;

/* ---- arguments ---- */

static lw_status seeded(lw_literal *l, int64_t number) {
  lw_prim t = l->shape->type;
  if (lw_prim_is_complex(t)) {
    for (int64_t k = 0; k < l->shape->elements; k++) {
      lw_literal_set_f64(l, k, 0, (double)(k % 7) - 3);
      lw_literal_set_f64(l, k, 1, (double)(k % 5) * 0.5);
    }
    return NULL;
  }
  char lo[16] = {0}, hi[16] = {0};
  lw_shape one = {.type = t, .elements = 1};
  lw_literal a = {.shape = &one, .data = lo}, b = {.shape = &one, .data = hi};
  if (lw_prim_is_float(t)) {
    lw_literal_set_f64(&a, 0, 0, -1);
    lw_literal_set_f64(&b, 0, 0, 1);
  } else {
    lw_literal_set_int(&b, 0, t == LW_PRED ? 2 : 4);
  }
  return lw_rng_fill(1, number, LW_RNG_UNIFORM, t, l->shape->elements, lo, hi,
                     l->data);
}

/* -0, infinities, NaN and subnormals at the front: what identities get wrong.
 */
static void spice(lw_literal *l) {
  static const double odd[] = {-0.0,       0.0,       1.0 / 0.0,
                               -1.0 / 0.0, 0.0 / 0.0, 1e-40};
  if (!lw_prim_is_float(l->shape->type)) return;
  for (int64_t k = 0; k < 6 && k < l->shape->elements / 4; k++)
    lw_literal_set_f64(l, k, 0, odd[k]);
}

static lw_status argument(program *p, lw_npz *in, lw_literal **slot, int leaf) {
  char key[32];
  snprintf(key, sizeof key, "p%d", leaf);
  if (!lw_shape_is_array((*slot)->shape)) return NULL;
  if (in && lw_npz_has(in, key))
    return lw_npz_read(in, key, (*slot)->shape, p->arena, slot);
  LW_TRY(seeded(*slot, leaf));
  spice(*slot);
  return NULL;
}

static lw_status make_args(program *p, const lw_module *m, lw_npz *in) {
  p->n_args = (int)m->entry->params.len;
  p->args = LW_NEW_ARRAY(p->arena, lw_literal *, p->n_args + 1);
  for (int k = 0, leaf = 0; k < p->n_args; k++) {
    const lw_shape *s = m->entry->params.data[k]->shape;
    LW_TRY(lw_literal_new(p->arena, s, &p->args[k]));
    if (!lw_shape_is_tuple(s))
      LW_TRY(argument(p, in, &p->args[k], leaf++));
    else
      for (int32_t e = 0; e < s->n_elems; e++)
        LW_TRY(argument(p, in, &p->args[k]->elems[e], leaf++));
  }
  return NULL;
}

/* ---- comparing ---- */

static bool both_nan(const lw_literal *a, const lw_literal *b, int64_t k) {
  int parts = lw_prim_is_complex(a->shape->type) ? 2 : 1;
  if (parts == 1 && !lw_prim_is_float(a->shape->type)) return false;
  for (int p = 0; p < parts; p++) {
    double x = lw_literal_get_f64(a, k, p), y = lw_literal_get_f64(b, k, p);
    if (x != x && y != y) continue;
    if (memcmp(&x, &y, sizeof x)) return false;
  }
  return true;
}

static bool same(const lw_literal *a, const lw_literal *b) {
  if (a->n_elems != b->n_elems) return false;
  for (int32_t k = 0; k < a->n_elems; k++)
    if (!same(a->elems[k], b->elems[k])) return false;
  if (!lw_shape_is_array(a->shape)) return true;
  if (!lw_shape_compatible(a->shape, b->shape)) return false;
  int size = lw_prim_bytes(a->shape->type);
  const char *x = a->data, *y = b->data;
  for (int64_t k = 0; k < a->shape->elements; k++)
    if (memcmp(x + k * size, y + k * size, (size_t)size) && !both_nan(a, b, k))
      return false;
  return true;
}

static lw_status interpret(program *p, const lw_module *m, bool flush,
                           lw_arena *a, lw_literal **out) {
  lw_interp_options o = {.max_steps = 2000000, .flush_denormals = flush};
  return lw_interp_run(m, (const lw_literal *const *)p->args, p->n_args, &o, a,
                       out);
}

/* One way through the passes; passes NULL: the pipeline. */
static lw_status check(program *p, const char *passes, bool flush) {
  lw_module *m;
  lw_literal *got;
  LW_TRY(lw_read_text(p->ctx, p->text, p->len, p->name, NULL, &m));
  lw_arena *a = lw_arena_new();
  lw_pipeline_options o = {
      .passes = passes, .verify_each = true, .flush_denormals = flush};
  lw_status s = lw_pipeline_run(m, lw_pipeline_find("clean-up"), &o, a, NULL);
  if (!s) s = interpret(p, m, flush, a, &got);
  if (!s) {
    n_compared++;
    if (!same(flush ? p->want_flushed : p->want, got))
      s = lw_error(LW_INTERNAL, "other bits");
  }
  lw_arena_free(a);
  lw_module_free(m);
  return s;
}

static void report(program *p, const char *passes, lw_status s) {
  if (!s) return;
  n_failed++;
  printf("%s [%s]: %s\n", p->name, passes ? passes : "pipeline",
         lw_status_message(s));
  lw_status_free(s);
}

static bool is_small(const program *p) {
  return p->len <= SMALL_TEXT && p->elements <= SMALL_DATA;
}

static void count_elements(program *p, const lw_module *m) {
  for (const lw_comp *c = m->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next)
      p->elements += i->shape->elements;
}

static void check_all(program *p) {
  report(p, NULL, check(p, NULL, false));
  report(p, "flushed", check(p, NULL, true));
  for (int k = 0; is_small(p) && k < lw_clean_up_pass_count; k++) {
    lw_buf b = {0};
    lw_buf_printf(&b, "call-inliner,layout-normalization,%s",
                  lw_clean_up_passes[k]->name);
    report(p, b.data, check(p, b.data, false));
    lw_buf_free(&b);
  }
}

/* ---- programs ---- */

static lw_status prepare(program *p, const char *dir) {
  lw_module *m;
  lw_npz *in = NULL;
  char *path = lw_arena_printf(p->arena, "%s/%s/inputs.npz", dir, p->name);
  LW_TRY(lw_read_text(p->ctx, p->text, p->len, p->name, NULL, &m));
  count_elements(p, m);
  lw_status s = lw_file_exists(path) ? lw_npz_open(path, &in) : NULL;
  if (!s) s = make_args(p, m, in);
  if (!s) s = interpret(p, m, false, p->arena, &p->want);
  if (!s) s = interpret(p, m, true, p->arena, &p->want_flushed);
  if (in) lw_npz_close(in);
  lw_module_free(m);
  return s;
}

static void run(const char *dir, const char *name) {
  program p = {.name = name, .ctx = lw_context_new(), .arena = lw_arena_new()};
  char *path = lw_arena_printf(p.arena, "%s/%s/before.hlo", dir, name);
  lw_status s = lw_file_exists(path) ? lw_file_read(path, &p.text, &p.len)
                                     : lw_error(LW_NOT_FOUND, "none");
  if (!s) s = prepare(&p, dir);
  if (!s) {
    n_ran++;
    check_all(&p);
  }
  /* What the interpreter refuses is its own tests'; what does not read, or is
   * wrong, is an error here. */
  bool refused = lw_status_code(s) == LW_UNIMPLEMENTED ||
                 lw_status_code(s) == LW_DEADLINE_EXCEEDED;
  if (refused) printf("%s: not run: %s\n", name, lw_status_message(s));
  if (refused) lw_status_free(s);
  report(&p, "before", refused ? NULL : s);
  free(p.text);
  lw_context_free(p.ctx);
  lw_arena_free(p.arena);
}

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static void run_all(const char *dir) {
  struct dirent **list;
  int n = scandir(dir, &list, NULL, by_name);
  for (int k = 0; k < n; k++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/before.hlo", dir, list[k]->d_name);
    if (lw_file_exists(path)) run(dir, list[k]->d_name);
    free(list[k]);
  }
  if (n > 0) free(list);
}

/* ---- random modules ---- */

static void run_random(uint64_t seed) {
  program p = {.ctx = lw_context_new(), .arena = lw_arena_new()};
  lw_rand r = {.state = seed};
  lw_gen_options o = {
      .max_elements = 600, .control_flow = true, .heavy = seed % 2 == 0};
  lw_module *m = lw_gen_module(p.ctx, &r, &o);
  lw_buf text = {0};
  lw_module_print(&text, m, &lw_print_default);
  p.name = lw_arena_printf(p.arena, "random %llu", (unsigned long long)seed);
  p.text = text.data;
  p.len = text.len;
  lw_status s = make_args(&p, m, NULL);
  if (!s) s = interpret(&p, m, false, p.arena, &p.want);
  if (!s) s = interpret(&p, m, true, p.arena, &p.want_flushed);
  lw_module_free(m);
  n_ran++;
  if (!s) check_all(&p);
  bool refused = lw_status_code(s) == LW_UNIMPLEMENTED;
  if (refused) lw_status_free(s);
  report(&p, "before", refused ? NULL : s);
  lw_buf_free(&text);
  lw_context_free(p.ctx);
  lw_arena_free(p.arena);
}

int main(int argc, char **argv) {
  if (argc == 3 && !strcmp(argv[1], "--random"))
    run_random(strtoull(argv[2], NULL, 10));
  else
    for (int k = 2; k < argc; k++) run(argv[1], argv[k]);
  if (argc == 2) run_all(argv[1]);
  if (argc < 2) {
    run_all(LW_TEST_DATA "/corpus");
    run_all(LW_TEST_DATA "/corpus/tricky");
    for (uint64_t seed = 1; seed <= 100; seed++) run_random(seed);
    run_all(LW_TEST_DATA "/../passes/exact"); /* corners of every rule */
  }
  printf("%d programs, %d comparisons, %d failures\n", n_ran, n_compared,
         n_failed);
  return n_failed || !n_ran;
}
