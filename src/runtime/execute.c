/* Executables: a plan with its code, run as often and from as many threads as
 * the caller likes.
 *
 * Each run has a frame of its own (the arena of intermediates, scratch for
 * each thread, and the pointer tables); a few frames are kept from run to run,
 * because fresh pages cost as much as the work. Pointers of all nodes are laid
 * out once a run, so that a loop's iteration costs a call a kernel and nothing
 * else. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/lib.h"
#include "lib/rng.h"
#include "runtime/runtime_impl.h"

enum { KEPT_FRAMES = 4, ALIGNMENT = 64, PARTS_PER_THREAD = 4 };
/* A fork-join and its cache misses are paid back from here on. */
static const double PARALLEL_NS = 4000, PART_NS = 1500;
static const double FLOPS_PER_NS = 8, BYTES_PER_NS = 8;
static const int64_t PARALLEL_COPY_BYTES = 1 << 20;

/* A node and where its pointers are in the frame. */
typedef struct step step;
struct step {
  const lw_node *node;
  int32_t first;
  step *children;
  /* KERNEL with one phase that is never worth a second thread: its code, so
   * that small kernels in loops cost a call and no more. */
  lw_phase_fn alone;
  int64_t n_tiles;
};

typedef struct {
  int threads;
  char *arena;
  char *scratch; /* threads * scratch_stride */
  void **slices;
  void **buffers; /* every node's, one after the other */
} frame;

struct lw_executable {
  const lw_plan *plan;
  const lw_kernel_code *code;
  lw_arena *memory; /* steps */
  step *root;
  int64_t n_buffers, arena_bytes, scratch_stride, constant_bytes;
  void **constants;
  pthread_mutex_t lock;
  frame *kept[KEPT_FRAMES];
};

typedef struct {
  lw_executable *e;
  const lw_run_options *options;
  frame *f;
  lw_kernel_args args; /* of small kernels, on the caller's thread */
  int64_t launched;
  uint64_t rng_state[2]; /* rng-get-and-update-state, low word first */
} run;

/* ---- making one ---- */

static double phase_ns(const lw_phase *p) {
  double by_flops = p->flops / FLOPS_PER_NS, by_bytes = p->bytes / BYTES_PER_NS;
  return by_flops > by_bytes ? by_flops : by_bytes;
}

static int threads_for(const lw_phase *p, int threads) {
  double ns = phase_ns(p);
  if (threads <= 1 || p->n_tiles <= 1 || ns < PARALLEL_NS) return 1;
  double most = ns / PART_NS;
  int n = most < threads ? (int)most : threads;
  return p->n_tiles < n ? (int)p->n_tiles : n;
}

/* Whatever the number of threads. */
static void find_small(const lw_executable *e, step *s) {
  if (s->node->kind != LW_NODE_KERNEL) return;
  const lw_kernel *k = e->plan->kernels[s->node->kernel];
  if (k->n_phases != 1 || k->phases[0].n_tiles <= 0) return;
  if (threads_for(&k->phases[0], INT32_MAX) != 1) return;
  s->alone = e->code[s->node->kernel].phases[0];
  s->n_tiles = k->phases[0].n_tiles;
}

static step *add_step(lw_executable *e, const lw_node *n, step *s) {
  s->node = n;
  s->first = (int32_t)e->n_buffers;
  e->n_buffers += n->n_slices;
  find_small(e, s);
  s->children = LW_NEW_ARRAY(e->memory, step, n->n_children + 1);
  for (int32_t k = 0; k < n->n_children; k++) {
    add_step(e, n->children[k], &s->children[k]);
  }
  return s;
}

static lw_status check_code(const lw_plan *p, const lw_kernel_code *code) {
  for (int32_t k = 0; k < p->n_kernels; k++) {
    if (code[k].n_phases != p->kernels[k]->n_phases) {
      return lw_error(LW_INTERNAL, "kernel %d has %d phases, its code %d", k,
                      p->kernels[k]->n_phases, code[k].n_phases);
    }
  }
  return NULL;
}

static int64_t aligned(int64_t bytes) {
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void size_scratch(lw_executable *e) {
  int64_t most = 0;
  for (int32_t k = 0; k < e->plan->n_kernels; k++) {
    const lw_kernel *kernel = e->plan->kernels[k];
    for (int32_t p = 0; p < kernel->n_phases; p++) {
      int64_t bytes = kernel->phases[p].thread_scratch_bytes;
      if (bytes > most) most = bytes;
    }
  }
  e->scratch_stride = aligned(most) + ALIGNMENT;
}

/* Code expects 64-byte alignment; literals that have it are used in place. */
static lw_status place_constants(lw_executable *e) {
  const lw_plan *p = e->plan;
  e->constants = calloc((size_t)p->n_constants + 1, sizeof *e->constants);
  if (!e->constants) lw_oom((size_t)p->n_constants * sizeof *e->constants);
  for (int32_t k = 0; k < p->n_constants; k++) {
    const lw_literal *l = p->constants[k];
    int64_t bytes = lw_literal_bytes(l);
    e->constant_bytes += bytes;
    if ((uintptr_t)l->data % ALIGNMENT == 0 && l->data) {
      e->constants[k] = l->data;
      continue;
    }
    e->constants[k] = lw_buffer_alloc(bytes);
    if (!e->constants[k]) {
      return lw_error(LW_RESOURCE_EXHAUSTED,
                      "no memory for %lld constant bytes", (long long)bytes);
    }
    if (bytes) memcpy(e->constants[k], l->data, (size_t)bytes);
  }
  return NULL;
}

lw_status lw_executable_new(const lw_plan *plan, const lw_kernel_code *code,
                            lw_executable **out) {
  *out = NULL;
  LW_TRY(check_code(plan, code));
  lw_executable *e = calloc(1, sizeof *e);
  if (!e) lw_oom(sizeof *e);
  e->plan = plan;
  e->code = code;
  e->memory = lw_arena_new();
  pthread_mutex_init(&e->lock, NULL);
  e->root = add_step(e, plan->root, LW_NEW(e->memory, step));
  e->arena_bytes = plan->temp_bytes + ALIGNMENT;
  size_scratch(e);
  lw_status st = place_constants(e);
  if (st) {
    lw_executable_free(e);
  } else {
    *out = e;
  }
  return st;
}

/* ---- frames ---- */

static void frame_free(lw_executable *e, frame *f) {
  if (!f) return;
  lw_buffer_free(f->arena, e->arena_bytes);
  lw_buffer_free(f->scratch, e->scratch_stride * f->threads);
  free(f->slices);
  free(f->buffers);
  free(f);
}

static lw_status frame_new(lw_executable *e, int threads, frame **out) {
  frame *f = calloc(1, sizeof *f);
  if (!f) lw_oom(sizeof *f);
  f->threads = threads;
  f->arena = lw_buffer_alloc(e->arena_bytes);
  f->scratch = lw_buffer_alloc(e->scratch_stride * threads);
  f->slices = calloc((size_t)e->plan->n_slices + 1, sizeof *f->slices);
  f->buffers = calloc((size_t)e->n_buffers + 1, sizeof *f->buffers);
  if (!f->arena || !f->scratch || !f->slices || !f->buffers) {
    frame_free(e, f);
    return lw_error(LW_RESOURCE_EXHAUSTED,
                    "no memory for %lld bytes of intermediates",
                    (long long)e->arena_bytes);
  }
  *out = f;
  return NULL;
}

static lw_status frame_take(lw_executable *e, int threads, frame **out) {
  *out = NULL;
  pthread_mutex_lock(&e->lock);
  for (int k = 0; k < KEPT_FRAMES && !*out; k++) {
    if (!e->kept[k] || e->kept[k]->threads != threads) continue;
    *out = e->kept[k];
    e->kept[k] = NULL;
  }
  pthread_mutex_unlock(&e->lock);
  return *out ? NULL : frame_new(e, threads, out);
}

static void frame_give(lw_executable *e, frame *f) {
  pthread_mutex_lock(&e->lock);
  for (int k = 0; k < KEPT_FRAMES && f; k++) {
    if (e->kept[k]) continue;
    e->kept[k] = f;
    f = NULL;
  }
  pthread_mutex_unlock(&e->lock);
  frame_free(e, f);
}

void lw_executable_free(lw_executable *e) {
  if (!e) return;
  for (int k = 0; k < KEPT_FRAMES; k++) frame_free(e, e->kept[k]);
  for (int32_t k = 0; e->constants && k < e->plan->n_constants; k++) {
    const lw_literal *l = e->plan->constants[k];
    if (e->constants[k] != l->data) {
      lw_buffer_free(e->constants[k], lw_literal_bytes(l));
    }
  }
  free(e->constants);
  pthread_mutex_destroy(&e->lock);
  lw_arena_free(e->memory);
  free(e);
}

static void fill_step(frame *f, const step *s) {
  for (int32_t k = 0; k < s->node->n_slices; k++) {
    f->buffers[s->first + k] = f->slices[s->node->slices[k]];
  }
  for (int32_t k = 0; k < s->node->n_children; k++) {
    fill_step(f, &s->children[k]);
  }
}

static void fill_frame(lw_executable *e, frame *f, void *const *params,
                       void *const *outputs) {
  for (int32_t k = 0; k < e->plan->n_slices; k++) {
    const lw_slice *s = &e->plan->slices[k];
    switch (s->kind) {
      case LW_ALLOC_PARAM:
        f->slices[k] = params[s->index];
        break;
      case LW_ALLOC_OUTPUT:
        f->slices[k] = outputs[s->index];
        break;
      case LW_ALLOC_CONSTANT:
        f->slices[k] = e->constants[s->index];
        break;
      case LW_ALLOC_TEMP:
        f->slices[k] = f->arena + s->offset;
        break;
    }
  }
  fill_step(f, e->root);
}

/* ---- kernels ---- */

typedef struct {
  const run *r;
  lw_phase_fn fn;
  void *const *buffers;
  int64_t n_tiles;
  int parts;
} job;

static lw_kernel_args args_of(const run *r, int thread, int threads) {
  return (lw_kernel_args){
      .scratch = r->f->scratch + r->e->scratch_stride * thread,
      .run_seed = r->options->seed,
      .replica_id = r->options->replica_id,
      .partition_id = r->options->partition_id,
      .thread = thread,
      .n_threads = threads,
  };
}

static void run_part(void *ctx, int part, int thread) {
  const job *j = ctx;
  const run *r = j->r;
  unsigned saved = lw_fp_enter(r->options->flush_denormals);
  lw_kernel_args args = args_of(r, thread, r->f->threads);
  args.buffers = j->buffers;
  int64_t each = j->n_tiles / j->parts, more = j->n_tiles % j->parts;
  int64_t begin = each * part + (part < more ? part : more);
  j->fn(&args, begin, begin + each + (part < more));
  lw_fp_leave(saved);
}

static void fork_join(const run *r, lw_pool_fn fn, void *ctx, int parts,
                      int threads) {
  if (threads > 1 && lw_pool_run(r->options->pool, fn, ctx, parts, threads)) {
    return;
  }
  for (int k = 0; k < parts; k++) fn(ctx, k, 0);
}

/* Several parts a thread, so that others can take what one does not get to. */
static int split(const lw_phase *p, int threads) {
  int64_t parts = threads > 1 ? (int64_t)threads * PARTS_PER_THREAD : 1;
  int64_t most = (int64_t)(phase_ns(p) / PART_NS);
  if (parts > most) parts = most;
  if (parts > p->n_tiles) parts = p->n_tiles;
  return parts < threads ? threads : (int)parts;
}

static void run_kernel(run *r, const step *s) {
  const lw_kernel *k = r->e->plan->kernels[s->node->kernel];
  const lw_kernel_code *code = &r->e->code[s->node->kernel];
  r->launched++;
  if (s->alone) {
    r->args.buffers = r->f->buffers + s->first;
    s->alone(&r->args, 0, s->n_tiles);
    return;
  }
  for (int32_t p = 0; p < k->n_phases; p++) {
    const lw_phase *phase = &k->phases[p];
    if (phase->n_tiles <= 0) continue;
    job j = {r, code->phases[p], r->f->buffers + s->first, phase->n_tiles, 1};
    int threads = threads_for(phase, r->f->threads);
    j.parts = split(phase, threads);
    fork_join(r, run_part, &j, j.parts, threads);
  }
}

/* ---- copies ---- */

typedef struct {
  char *to;
  const char *from;
  int64_t bytes;
  int parts;
} copy_job;

static void copy_part(void *ctx, int part, int thread) {
  (void)thread;
  const copy_job *c = ctx;
  int64_t each = aligned(c->bytes / c->parts + 1), begin = each * part;
  int64_t end = begin + each < c->bytes ? begin + each : c->bytes;
  if (begin < end)
    memcpy(c->to + begin, c->from + begin, (size_t)(end - begin));
}

static void run_copy(run *r, const step *s) {
  copy_job c = {r->f->buffers[s->first + 1], r->f->buffers[s->first],
                r->e->plan->slices[s->node->slices[1]].bytes, r->f->threads};
  if (c.bytes < PARALLEL_COPY_BYTES) {
    memcpy(c.to, c.from, (size_t)c.bytes);
  } else {
    fork_join(r, copy_part, &c, c.parts, c.parts);
  }
}

/* ---- library nodes ---- */

static int32_t fill_leaves(const lw_shape *s, void *const **data,
                           lw_lib_buffer *out) {
  int32_t n = (int32_t)lw_shape_leaf_count(s);
  for (int32_t k = 0; k < n; k++) {
    out[k].shape = lw_shape_leaf(s, k);
    out[k].data = lw_shape_is_array(out[k].shape) ? *(*data)++ : NULL;
  }
  return n;
}

static void copy_leaves(const lw_lib_call *call) {
  for (int32_t k = 0; k < call->n_results && k < call->n_operands; k++) {
    int64_t n = lw_shape_bytes(call->results[k].shape);
    if (call->results[k].data && call->operands[k].data && n > 0) {
      memcpy(call->results[k].data, call->operands[k].data, (size_t)n);
    }
  }
}

static lw_status run_custom_call(const lw_inst *i, void *const *data) {
  int64_t n = lw_shape_leaf_count(i->shape);
  for (int32_t k = 0; k < i->n_operands; k++) {
    n += lw_shape_leaf_count(lw_inst_operand(i, k)->shape);
  }
  lw_lib_buffer *all = calloc((size_t)n + 1, sizeof *all);
  if (!all) lw_oom((size_t)n * sizeof *all);
  lw_lib_call call = {.target = lw_inst_str(i, LW_ATTR_CUSTOM_CALL_TARGET),
                      .config = i->backend_config,
                      .operands = all};
  for (int32_t k = 0; k < i->n_operands; k++) {
    call.n_operands +=
        fill_leaves(lw_inst_operand(i, k)->shape, &data, all + call.n_operands);
  }
  call.results = all + call.n_operands;
  call.n_results = fill_leaves(i->shape, &data, call.results);
  lw_status st = NULL;
  if (call.target && lw_lib_is_identity(call.target)) {
    copy_leaves(&call);
  } else {
    st = lw_lib_run(&call);
  }
  free(all);
  return st;
}

static lw_status run_fft(const lw_inst *i, void *const *data) {
  int32_t n;
  const int64_t *length = lw_inst_i64s(i, LW_ATTR_FFT_LENGTH, &n);
  lw_fft_type type = (lw_fft_type)lw_inst_i64(i, LW_ATTR_FFT_TYPE, LW_FFT);
  return lw_lib_fft(type, n, length, lw_inst_operand(i, 0)->shape, data[0],
                    i->shape, data[1]);
}

static lw_status run_triangular(const lw_inst *i, void *const *data) {
  lw_triangular t = {
      .left_side = lw_inst_i64(i, LW_ATTR_LEFT_SIDE, 0) != 0,
      .lower = lw_inst_i64(i, LW_ATTR_LOWER, 0) != 0,
      .unit_diagonal = lw_inst_i64(i, LW_ATTR_UNIT_DIAGONAL, 0) != 0,
      .transpose_a =
          (lw_transpose_a)lw_inst_i64(i, LW_ATTR_TRANSPOSE_A, LW_TR_NO),
  };
  return lw_lib_triangular_solve(lw_inst_operand(i, 0)->shape, data[0],
                                 lw_inst_operand(i, 1)->shape, data[1], &t,
                                 data[2]);
}

static lw_status run_rng(const run *r, const lw_inst *i, void *const *data) {
  lw_distribution dist =
      (lw_distribution)lw_inst_i64(i, LW_ATTR_DISTRIBUTION, LW_RNG_INVALID);
  return lw_rng_fill(r->options->seed, lw_rng_order(i), dist, i->shape->type,
                     i->shape->elements, data[0], data[1], data[2]);
}

/* The old state, which then grows by delta. */
static void run_rng_state(run *r, const lw_inst *i, void *const *data) {
  uint64_t delta = (uint64_t)lw_inst_i64(i, LW_ATTR_DELTA, 0);
  memcpy(data[0], r->rng_state, sizeof r->rng_state);
  r->rng_state[0] += delta;
  if (r->rng_state[0] < delta) r->rng_state[1]++;
}

static lw_status run_library(run *r, const step *s) {
  const lw_inst *i = s->node->inst;
  void *const *data = r->f->buffers + s->first;
  lw_status st;
  r->launched++;
  if (i->opcode == LW_OP_FFT) {
    st = run_fft(i, data);
  } else if (i->opcode == LW_OP_CHOLESKY) {
    st = lw_lib_cholesky(i->shape, lw_inst_i64(i, LW_ATTR_LOWER, 0) != 0,
                         data[0], data[1]);
  } else if (i->opcode == LW_OP_RNG) {
    st = run_rng(r, i, data);
  } else if (i->opcode == LW_OP_RNG_GET_AND_UPDATE_STATE) {
    st = NULL;
    run_rng_state(r, i, data);
  } else if (i->opcode == LW_OP_TRIANGULAR_SOLVE) {
    st = run_triangular(i, data);
  } else {
    st = run_custom_call(i, data);
  }
  return lw_status_annotate(st, "%s", i->name);
}

/* ---- the tree ---- */

static lw_status run_step(run *r, const step *s);

static lw_status run_while(run *r, const step *s) {
  int64_t left = s->node->trip_count;
  const char *go_on = r->f->buffers[s->first];
  for (;;) {
    if (s->node->trip_count >= 0) {
      if (left-- <= 0) return NULL;
    } else {
      LW_TRY(run_step(r, &s->children[0]));
      if (!*go_on) return NULL;
    }
    LW_TRY(run_step(r, &s->children[1]));
  }
}

static lw_status run_conditional(run *r, const step *s) {
  const void *p = r->f->buffers[s->first];
  int32_t last = s->node->n_children - 1, branch = last;
  if (s->node->predicated) {
    branch = *(const char *)p ? 0 : 1;
  } else {
    int32_t k;
    memcpy(&k, p, sizeof k);
    if (k >= 0 && k < last) branch = k;
  }
  return run_step(r, &s->children[branch]);
}

static lw_status run_step(run *r, const step *s) {
  switch (s->node->kind) {
    case LW_NODE_SEQ:
      for (int32_t k = 0; k < s->node->n_children; k++) {
        LW_TRY(run_step(r, &s->children[k]));
      }
      return NULL;
    case LW_NODE_KERNEL:
      run_kernel(r, s);
      return NULL;
    case LW_NODE_COPY:
      run_copy(r, s);
      return NULL;
    case LW_NODE_LIBRARY:
      return run_library(r, s);
    case LW_NODE_WHILE:
      return run_while(r, s);
    case LW_NODE_CONDITIONAL:
      return run_conditional(r, s);
  }
  return NULL;
}

/* ---- a run ---- */

static void free_outputs(const lw_plan *p, void **outputs) {
  for (int32_t k = 0; k < p->n_outputs; k++) {
    if (p->output_alias[k] < 0) {
      lw_buffer_free(outputs[k], lw_shape_bytes(p->output_shapes[k]));
    }
    outputs[k] = NULL;
  }
}

static lw_status make_outputs(const lw_plan *p, void *const *params,
                              void **outputs, int64_t *fresh) {
  for (int32_t k = 0; k < p->n_outputs; k++) outputs[k] = NULL;
  for (int32_t k = 0; k < p->n_outputs; k++) {
    int64_t bytes = lw_shape_bytes(p->output_shapes[k]);
    if (p->output_alias[k] >= 0) {
      outputs[k] = params[p->output_alias[k]];
      continue;
    }
    *fresh += bytes;
    outputs[k] = lw_buffer_alloc(bytes);
    if (!outputs[k]) {
      free_outputs(p, outputs);
      return lw_error(LW_RESOURCE_EXHAUSTED, "no memory for %lld output bytes",
                      (long long)bytes);
    }
  }
  return NULL;
}

lw_status lw_executable_run(lw_executable *e, void *const *params,
                            void **outputs, const lw_run_options *options,
                            lw_run_stats *stats) {
  static const lw_run_options defaults = {0};
  run r = {.e = e,
           .options = options ? options : &defaults,
           .rng_state = {LW_RNG_STATE_LOW, LW_RNG_STATE_HIGH}};
  int64_t fresh = 0;
  LW_TRY(make_outputs(e->plan, params, outputs, &fresh));
  lw_status st = frame_take(e, lw_pool_threads(r.options->pool), &r.f);
  if (!st) {
    fill_frame(e, r.f, params, outputs);
    r.args = args_of(&r, 0, 1);
    unsigned saved = lw_fp_enter(r.options->flush_denormals);
    st = run_step(&r, e->root);
    lw_fp_leave(saved);
    frame_give(e, r.f);
  }
  if (st) free_outputs(e->plan, outputs);
  if (stats) {
    *stats = (lw_run_stats){.temp_bytes = e->plan->temp_bytes,
                            .output_bytes = fresh,
                            .constant_bytes = e->constant_bytes,
                            .kernels_launched = r.launched};
  }
  return st;
}
