/* Literals in, literals out: a compiled module with its inputs in aligned
 * buffers. Donated inputs are written by the run, so theirs are copies that
 * are made anew each time. */
#include <string.h>
#include <time.h>

#include "driver/driver.h"

struct lw_bound {
  lw_compiled *c;
  int32_t n_params, n_outputs;
  const lw_literal **leaves; /* the arguments' arrays, flattened */
  void **params;
  int64_t *param_bytes;
  bool *donated;
  void **outputs;
};

static void *zeroed(size_t n, size_t size) {
  void *p = calloc(n + 1, size);
  if (!p) lw_oom(n * size);
  return p;
}

static void flatten(const lw_literal *l, const lw_literal **out, int32_t *n) {
  if (!lw_shape_is_tuple(l->shape)) {
    out[(*n)++] = l;
    return;
  }
  for (int32_t k = 0; k < l->n_elems; k++) flatten(l->elems[k], out, n);
}

/* Equal but for layouts, and for bounds that were dynamic dimensions. */
static bool takes(const lw_shape *want, const lw_shape *have) {
  if (lw_shape_compatible(want, have)) return true;
  if (want->type != have->type || want->n_elems != have->n_elems) return false;
  for (int32_t k = 0; k < want->n_elems; k++)
    if (!takes(want->elems[k], have->elems[k])) return false;
  return lw_shape_same_dims(want, have);
}

static lw_status check_args(const lw_module *m, const lw_literal *const *args,
                            int32_t n_args) {
  const lw_comp *e = m->entry;
  if ((size_t)n_args != e->params.len) {
    return lw_error(LW_INVALID_ARGUMENT, "%d arguments for %zu parameters",
                    n_args, e->params.len);
  }
  for (int32_t k = 0; k < n_args; k++) {
    const lw_shape *want = e->params.data[k]->shape, *have = args[k]->shape;
    if (takes(want, have)) continue;
    return lw_error(LW_INVALID_ARGUMENT, "argument %d is %s, the parameter %s",
                    k, lw_shape_str(m->ctx, have->no_layout),
                    lw_shape_str(m->ctx, want->no_layout));
  }
  return NULL;
}

static void mark_donated(lw_bound *b, const lw_plan *p) {
  for (int32_t k = 0; k < p->n_outputs; k++) {
    if (p->output_alias[k] >= 0) b->donated[p->output_alias[k]] = true;
  }
}

static lw_status fill_params(lw_bound *b) {
  for (int32_t k = 0; k < b->n_params; k++) {
    int64_t bytes = lw_literal_bytes(b->leaves[k]);
    b->param_bytes[k] = bytes;
    b->params[k] = lw_buffer_alloc(bytes);
    if (!b->params[k]) {
      return lw_error(LW_RESOURCE_EXHAUSTED, "no memory for %lld input bytes",
                      (long long)bytes);
    }
    if (bytes) memcpy(b->params[k], b->leaves[k]->data, (size_t)bytes);
  }
  return NULL;
}

lw_status lw_bound_new(lw_compiled *c, const lw_literal *const *args,
                       int32_t n_args, lw_bound **out) {
  *out = NULL;
  const lw_plan *p = lw_compiled_plan(c);
  LW_TRY(check_args(p->module, args, n_args));
  lw_bound *b = zeroed(1, sizeof *b);
  b->c = c;
  b->n_params = p->n_params;
  b->n_outputs = p->n_outputs;
  b->leaves = zeroed((size_t)p->n_params, sizeof *b->leaves);
  b->params = zeroed((size_t)p->n_params, sizeof *b->params);
  b->param_bytes = zeroed((size_t)p->n_params, sizeof *b->param_bytes);
  b->donated = zeroed((size_t)p->n_params, sizeof *b->donated);
  b->outputs = zeroed((size_t)p->n_outputs, sizeof *b->outputs);
  int32_t n = 0;
  for (int32_t k = 0; k < n_args; k++) flatten(args[k], b->leaves, &n);
  LW_ASSERT(n == p->n_params);
  mark_donated(b, p);
  lw_status st = fill_params(b);
  if (st) {
    lw_bound_free(b);
  } else {
    *out = b;
  }
  return st;
}

static void drop_outputs(lw_bound *b) {
  const lw_plan *p = lw_compiled_plan(b->c);
  for (int32_t k = 0; k < b->n_outputs; k++) {
    if (p->output_alias[k] < 0) {
      lw_buffer_free(b->outputs[k], lw_shape_bytes(p->output_shapes[k]));
    }
    b->outputs[k] = NULL;
  }
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

lw_status lw_bound_run(lw_bound *b, const lw_run_options *options,
                       lw_run_stats *stats, int64_t *time_ns) {
  drop_outputs(b);
  for (int32_t k = 0; k < b->n_params; k++) {
    if (b->donated[k] && b->param_bytes[k]) {
      memcpy(b->params[k], b->leaves[k]->data, (size_t)b->param_bytes[k]);
    }
  }
  int64_t start = now_ns();
  lw_status st = lw_executable_run(lw_compiled_executable(b->c), b->params,
                                   b->outputs, options, stats);
  if (time_ns) *time_ns = now_ns() - start;
  return st;
}

static void fill_literal(lw_literal *l, void *const *outputs, int32_t *n) {
  if (lw_shape_is_tuple(l->shape)) {
    for (int32_t k = 0; k < l->n_elems; k++) {
      fill_literal(l->elems[k], outputs, n);
    }
    return;
  }
  int64_t bytes = lw_shape_is_array(l->shape) ? lw_literal_bytes(l) : 0;
  if (bytes > 0) memcpy(l->data, outputs[*n], (size_t)bytes);
  ++*n;
}

lw_status lw_bound_result(const lw_bound *b, lw_arena *a, lw_literal **result) {
  LW_TRY(lw_literal_new(a, lw_compiled_result_shape(b->c), result));
  int32_t n = 0;
  fill_literal(*result, b->outputs, &n);
  return NULL;
}

void lw_bound_free(lw_bound *b) {
  if (!b) return;
  drop_outputs(b);
  for (int32_t k = 0; k < b->n_params; k++) {
    lw_buffer_free(b->params[k], b->param_bytes[k]);
  }
  free(b->leaves);
  free(b->params);
  free(b->param_bytes);
  free(b->donated);
  free(b->outputs);
  free(b);
}

lw_status lw_compiled_run(lw_compiled *c, const lw_literal *const *args,
                          int32_t n_args, const lw_run_options *options,
                          lw_arena *out_arena, lw_literal **result,
                          lw_run_stats *stats) {
  lw_bound *b;
  LW_TRY(lw_bound_new(c, args, n_args, &b));
  lw_status st = lw_bound_run(b, options, stats, NULL);
  if (!st) st = lw_bound_result(b, out_arena, result);
  lw_bound_free(b);
  return st;
}
