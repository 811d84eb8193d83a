/* Runs every program of a corpus directory in the interpreter and compares.
 *
 *   interp_corpus DIR [-v] [PROGRAM ...]
 *
 * A program is a folder with before.hlo; inputs.npz holds p0, p1 ... (without
 * it: seeded values), outputs.npz XLA:CPU's results o0 ... and float64
 * references r0 ... The rule is docs/numerics.md, "Against XLA". Exit status 0
 * when every program with data holds, 3 otherwise.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "interp/interp.h"
#include "lib/compare.h"
#include "lib/npz.h"
#include "lib/rng.h"
#include "reader/reader.h"

typedef struct {
  bool verbose;
  int programs, ran, held, refused, near_ties;
  double log_ratio; /* of rms errors, ours over XLA's */
  int64_t ratios;
  lw_prim narrowest; /* float type of the program at hand */
} report;

/* Outputs that differ from XLA's for a reason that is no error. */
static const struct {
  const char *program;
  int output;
  const char *why;
} known[] = {
    {"cholesky_trisolve", 0, "an ill-conditioned solve: terms cancel"},
    {"cholesky_trisolve", 2, "an ill-conditioned solve: terms cancel"},
    {"op_rng", 0, "rng has no prescribed stream"},
    {"ops_fp8", 0, "the bits of a NaN: ours is canonical"},
    {"ops_sort_topk", 4, "a sort with subnormals, which XLA reads as zeros"},
    {"ops_sort_topk", 7, "sorted by GT with a NaN: no strict weak order"},
    {"ops_sort_topk", 8, "sorted by GT with a NaN: no strict weak order"},
};

static const char *known_reason(const char *program, int output) {
  for (size_t k = 0; k < sizeof known / sizeof *known; k++)
    if (!strcmp(known[k].program, program) && known[k].output == output)
      return known[k].why;
  return NULL;
}

/* The narrowest float type that any instruction computes in. */
static lw_prim narrowest_float(const lw_module *m) {
  lw_prim best = LW_PRIM_INVALID;
  for (const lw_comp *c = m->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next) {
      lw_prim t = lw_prim_part(i->shape->type);
      if (!lw_prim_is_float(t)) continue;
      if (best == LW_PRIM_INVALID ||
          lw_prim_table[t].man_bits < lw_prim_table[best].man_bits)
        best = t;
    }
  return best;
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- arguments ---- */

/* Deterministic values for a parameter without data: reals in [-1, 1),
 * integers in [0, 4). */
static lw_status seeded(lw_literal *l, int64_t number) {
  lw_prim t = l->shape->type;
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

static lw_status make_args(const lw_module *m, lw_npz *in, lw_arena *a,
                           lw_literal ***args, int *n) {
  *n = (int)m->entry->params.len;
  *args = LW_NEW_ARRAY(a, lw_literal *, *n + 1);
  for (int k = 0, leaf = 0; k < *n; k++) {
    const lw_shape *s = m->entry->params.data[k]->shape;
    LW_TRY(lw_literal_new(a, s, &(*args)[k]));
    int64_t leaves = lw_shape_leaf_count(s);
    for (int64_t l = 0; l < leaves; l++, leaf++) {
      lw_literal **slot =
          lw_shape_is_tuple(s) ? &(*args)[k]->elems[l] : &(*args)[k];
      char key[32];
      snprintf(key, sizeof key, "p%d", leaf);
      if (!lw_shape_is_array((*slot)->shape)) continue;
      if (in)
        LW_TRY(lw_npz_read(in, key, (*slot)->shape, a, slot));
      else
        LW_TRY(seeded(*slot, leaf));
    }
  }
  return NULL;
}

/* ---- comparing ---- */

static void say(const char *name, int k, const lw_literal *x,
                const char *what) {
  printf("  %s o%d %s: %s\n", name, k, lw_prim_name(x->shape->type), what);
}

/* Against the reference where there is one. */
static bool by_reference(report *r, const char *name, int k,
                         const lw_literal *x, const lw_literal *xla,
                         const lw_literal *ref) {
  lw_ref_error ours, theirs;
  lw_status s = lw_literal_error(x, ref, &ours);
  if (!s) s = lw_literal_error(xla, ref, &theirs);
  if (s) {
    say(name, k, x, lw_status_message(s));
    lw_status_free(s);
    return false;
  }
  bool ok = lw_close_to_reference(x->shape->type, &ours, &theirs);
  char text[200];
  snprintf(text, sizeof text,
           "%s rms %.3g (XLA %.3g) max %.3g (XLA %.3g) scale %.3g%s",
           ok ? "close" : "FAR", ours.rms, theirs.rms, ours.max, theirs.max,
           ours.scale, ours.specials > theirs.specials ? " new NaN/inf" : "");
  if (r->verbose || !ok) say(name, k, x, text);
  if (ours.rms > 0 && theirs.rms > 0) {
    r->log_ratio += log(ours.rms / theirs.rms);
    r->ratios++;
  }
  return ok;
}

static bool by_peer(report *r, const char *name, int k, const lw_literal *x,
                    const lw_literal *xla) {
  lw_value_diff d;
  lw_status s = lw_literal_diff(x, xla, false, &d);
  if (s) {
    say(name, k, x, lw_status_message(s));
    lw_status_free(s);
    return false;
  }
  lw_prim t = x->shape->type;
  bool ok = lw_close_to_peer(
      t, r->narrowest == LW_PRIM_INVALID ? t : r->narrowest, &d);
  lw_buf b = {0};
  lw_value_diff_print(&b, x, xla, &d);
  if (r->verbose || !ok) say(name, k, x, lw_buf_cstr(&b));
  lw_buf_free(&b);
  return ok;
}

static bool compare_leaf(report *r, const char *name, lw_npz *out, int k,
                         const lw_literal *x, lw_arena *a, lw_context *ctx) {
  char key[32];
  lw_literal *xla = NULL, *ref = NULL;
  snprintf(key, sizeof key, "o%d", k);
  lw_status s = lw_npz_read(out, key, x->shape, a, &xla);
  lw_prim t = x->shape->type;
  bool real = lw_prim_is_float(t) || lw_prim_is_complex(t);
  snprintf(key, sizeof key, "r%d", k);
  if (!s && real && lw_npz_has(out, key)) {
    const lw_shape *wide = lw_shape_with_type(
        ctx, x->shape, lw_prim_is_complex(t) ? LW_C128 : LW_F64);
    lw_status none = lw_npz_read(out, key, wide, a, &ref);
    lw_status_free(none); /* a reference of another kind: by the peer */
  }
  if (s) {
    say(name, k, x, lw_status_message(s));
    lw_status_free(s);
    return false;
  }
  bool ok =
      ref ? by_reference(r, name, k, x, xla, ref) : by_peer(r, name, k, x, xla);
  const char *why = known_reason(name, k);
  if (ok || !why) return ok;
  say(name, k, x, why);
  r->near_ties++;
  return true;
}

static bool compare(report *r, const char *name, lw_npz *out,
                    const lw_literal *x, int *leaf, lw_arena *a,
                    lw_context *ctx) {
  if (lw_shape_is_array(x->shape))
    return compare_leaf(r, name, out, (*leaf)++, x, a, ctx);
  bool ok = true;
  for (int32_t k = 0; k < x->n_elems; k++)
    ok &= compare(r, name, out, x->elems[k], leaf, a, ctx);
  return ok;
}

/* ---- one program ---- */

typedef struct {
  lw_context *ctx;
  lw_arena *arena;
  lw_module *m;
  lw_npz *in, *out;
} job;

static lw_status open_optional(const char *dir, const char *file,
                               lw_npz **out) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", dir, file);
  return lw_file_exists(path) ? lw_npz_open(path, out) : NULL;
}

static lw_status run(job *j, const char *dir, lw_literal **result) {
  char path[4096], *text = NULL;
  size_t len;
  snprintf(path, sizeof path, "%s/before.hlo", dir);
  LW_TRY(lw_file_read(path, &text, &len));
  lw_status s = lw_read_text(j->ctx, text, len, path, NULL, &j->m);
  free(text);
  if (s) return s;
  LW_TRY(open_optional(dir, "inputs.npz", &j->in));
  LW_TRY(open_optional(dir, "outputs.npz", &j->out));
  lw_literal **args = NULL;
  int n = 0;
  LW_TRY(make_args(j->m, j->in, j->arena, &args, &n));
  lw_interp_options opt = {.max_steps = 20000000, .max_bytes = 4ll << 30};
  return lw_interp_run(j->m, (const lw_literal *const *)args, n, &opt, j->arena,
                       result);
}

static void program(report *r, const char *dir, const char *name) {
  job j = {.ctx = lw_context_new(), .arena = lw_arena_new()};
  lw_literal *result = NULL;
  double start = now_ms();
  lw_status s = run(&j, dir, &result);
  double ms = now_ms() - start;
  int leaf = 0;
  r->programs++;
  if (s) {
    r->refused++;
    printf("%-28s REFUSED %s\n", name, lw_status_message(s));
  } else {
    r->narrowest = narrowest_float(j.m);
    bool ok = !j.out || compare(r, name, j.out, result, &leaf, j.arena, j.ctx);
    r->ran++;
    r->held += ok;
    printf("%-28s %s %.1f ms%s\n", name, ok ? "ok" : "DIFFERS", ms,
           j.out ? "" : " (no outputs to compare)");
  }
  lw_status_free(s);
  lw_npz_close(j.in);
  lw_npz_close(j.out);
  if (j.m) lw_module_free(j.m);
  lw_arena_free(j.arena);
  lw_context_free(j.ctx);
}

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static void folder(report *r, const char *root) {
  struct dirent **list = NULL;
  int n = scandir(root, &list, NULL, by_name);
  for (int k = 0; k < n; k++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/before.hlo", root, list[k]->d_name);
    if (list[k]->d_name[0] != '.' && lw_file_exists(path)) {
      snprintf(path, sizeof path, "%s/%s", root, list[k]->d_name);
      program(r, path, list[k]->d_name);
    }
    free(list[k]);
  }
  free(list);
}

int main(int argc, char **argv) {
  report r = {0};
  setvbuf(stdout, NULL, _IOLBF, 0);
  const char *root = NULL;
  int named = 0;
  for (int k = 1; k < argc; k++) {
    char path[4096];
    if (!strcmp(argv[k], "-v")) {
      r.verbose = true;
    } else if (!root) {
      root = argv[k];
    } else {
      snprintf(path, sizeof path, "%s/%s", root, argv[k]);
      program(&r, path, argv[k]);
      named++;
    }
  }
  if (!root) {
    fprintf(stderr, "usage: interp_corpus DIR [-v] [PROGRAM ...]\n");
    return 2;
  }
  if (!named) folder(&r, root);
  printf(
      "%d programs: %d ran, %d hold (%d outputs by a named reason), %d "
      "refused; geometric mean of rms ratios %.3f over %lld outputs\n",
      r.programs, r.ran, r.held, r.near_ties, r.refused,
      r.ratios ? exp(r.log_ratio / (double)r.ratios) : 1, (long long)r.ratios);
  return r.ran == r.held ? 0 : 3;
}
