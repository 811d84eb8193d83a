/* How long a kernel takes (gpu_performance_model.cc, _base.cc).
 *
 * time = compute + memory - 0.95 min(compute, memory): the two overlap. The
 * first read of a buffer comes from memory, repeats from the cache it fits in
 * (2.5 times as fast from L2, 20 times from L1); no more than 32 bytes a clock
 * and block; a read that does not coalesce uses one element of each
 * transaction. Arithmetic takes cycles over 2 x clock x busy lanes, a whole
 * number of operations a nanosecond.
 *
 * A pair is priced without being built: the producer's cycles times how often
 * the consumer reads it, and for each buffer both sides' bytes, less what an
 * elementwise pair reads together.
 *
 * XLA's durations are multiples of a quarter nanosecond. Every product and
 * quotient is rounded here where it is there, in float where it is there, so
 * that what ties there ties here.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "target/gpu_impl.h"

#define TICKS_PER_SECOND 4e9
#define LAUNCH_TICKS 4000 /* 1 us */

/* ---- durations ---- */

static lw_ticks ticks_of_seconds(double s) {
  if (!(s < 9e8)) return LW_TICKS_INF;
  double whole = floor(s);
  return (lw_ticks)(whole * TICKS_PER_SECOND) +
         (lw_ticks)round((s - whole) * TICKS_PER_SECOND);
}

/* A duration times a factor, rounded as absl does: seconds and rest apart. */
static lw_ticks ticks_times(lw_ticks t, double factor) {
  double per = TICKS_PER_SECOND, seconds;
  double hi = (double)(t / (lw_ticks)4000000000) * factor;
  double lo = (double)(t % (lw_ticks)4000000000) * factor;
  double hi_rest = modf(hi, &seconds);
  lo = lo / per + hi_rest;
  double carry, rest = modf(lo, &carry);
  if (!(fabs(seconds + carry) < 2e9)) return LW_TICKS_INF;
  return (lw_ticks)((seconds + carry) * per) + (lw_ticks)round(rest * per);
}

static lw_ticks ticks_of_ns(double ns) { return ticks_times(4, ns); }

static lw_ticks add(lw_ticks a, lw_ticks b) {
  if (a == LW_TICKS_INF || b == LW_TICKS_INF) return LW_TICKS_INF;
  return a + b;
}

/* ---- memory ---- */

static float cap_bandwidth(const lw_gpu_device *d, float bandwidth,
                           int64_t blocks) {
  float per_block =
      (float)d->clock_ghz * 1.0e9f * (float)d->transactions_per_clock;
  float most = (float)blocks * per_block;
  return most < bandwidth ? most : bandwidth;
}

typedef struct {
  int64_t size, total; /* of the buffer; bytes read in all */
  double utilization;  /* of what memory hands over */
} gpu_read;

static lw_ticks read_ticks(const lw_gpu_device *d, int64_t blocks, gpu_read r) {
  int64_t net = r.size < r.total ? r.size : r.total;
  float all = (float)d->memory_bandwidth;
  float dram = (float)(d->memory_bandwidth * r.utilization), rest = all;
  if (net < d->l2_cache_bytes) {
    rest *= 2.5f;
    if (net < d->l1_cache_bytes_per_core * d->core_count) rest *= 8.0f;
  } else {
    rest = (float)((double)rest * r.utilization);
  }
  dram = cap_bandwidth(d, dram, blocks);
  rest = cap_bandwidth(d, rest, blocks);
  return add(ticks_of_seconds((float)net / dram),
             ticks_of_seconds((float)(r.total - net) / rest));
}

static lw_ticks write_ticks(const lw_gpu_device *d, int64_t bytes) {
  return ticks_of_seconds((float)bytes / (float)d->memory_bandwidth);
}

/* One element of each transaction is used when reads are scattered. */
static double utilization_of(const lw_gpu_device *d, const lw_shape *s,
                             bool coalesced) {
  if (coalesced) return 1;
  int bytes = lw_shape_is_array(s) ? lw_prim_bytes(s->type) : 4;
  return 1.0 * bytes / (double)d->dram_to_l2_transaction_bytes;
}

/* ---- coalescing ---- */

static bool comes_from_broadcast(const lw_inst *i) {
  for (;;) {
    if (i->opcode == LW_OP_BROADCAST || i->opcode == LW_OP_IOTA) return true;
    if (i->n_operands != 1) return false;
    if (i->opcode != LW_OP_BITCAST && !lw_inst_is_elementwise(i)) return false;
    i = lw_inst_operand(i, 0);
  }
}

static bool scatters_reads(const lw_inst *i) {
  return lw_gpu_transposes_minor(i) &&
         !comes_from_broadcast(lw_inst_operand(i, 0));
}

static bool holds_bad_transpose(lw_gpu_model *m, const lw_inst *i) {
  if (!(lw_gpu_traits(m, i) & GPU_MINOR_TRANSPOSE)) return false;
  if (!lw_gpu_is_fusion(i)) return scatters_reads(i);
  for (const lw_inst *f = lw_gpu_body(i)->first; f; f = f->next)
    if (scatters_reads(f)) return true;
  return false;
}

/* One answer for all reads of the kernel. */
static bool coalesces(lw_gpu_model *m, const gpu_analysis *x) {
  if (x->emitter != LW_GPU_TRANSPOSE)
    for (int32_t k = 0; k < x->a.n; k++)
      if (holds_bad_transpose(m, x->a.inst[k])) return false;
  return !(x->emitter == LW_GPU_REDUCTION && x->a.n == 2 &&
           lw_gpu_is_reduction_fusible(m, x->a.inst[0]) &&
           lw_gpu_is_reduction_fusible(m, x->a.inst[1]));
}

/* ---- arithmetic ---- */

static lw_ticks compute_ticks(const lw_gpu_device *d, int64_t flops,
                              gpu_launch l) {
  int64_t lanes = l.threads < d->fpus_per_core ? l.threads : d->fpus_per_core;
  int64_t cores = l.blocks < d->core_count ? l.blocks : d->core_count;
  double per_lane = (float)d->clock_ghz * 2;
  int64_t per_ns = (int64_t)(per_lane * (double)(cores * lanes));
  if (per_ns < 1) per_ns = 1;
  return ticks_of_ns((float)flops / (float)per_ns);
}

static lw_ticks overlapped(lw_ticks compute, lw_ticks memory) {
  if (compute == LW_TICKS_INF || memory == LW_TICKS_INF) return LW_TICKS_INF;
  lw_ticks less = compute < memory ? compute : memory;
  return compute + memory - ticks_times(less, 0.95);
}

/* ---- one instruction ---- */

static int64_t bytes_of(lw_gpu_model *m, const lw_inst *user,
                        const lw_inst *operand) {
  int32_t k = lw_gpu_operand_index(user, operand);
  return k < 0 ? 0 : lw_gpu_saturate(lw_gpu_cost(m, user)->operand_bytes[k]);
}

static const gpu_runtime *runtime_of(lw_gpu_model *m, const lw_inst *i) {
  gpu_state *s = lw_gpu_state(m, i);
  if (s->has_runtime) return &s->runtime;
  const gpu_cost *c = lw_gpu_cost(m, i);
  lw_arena *arena = lw_arena_new();
  gpu_analysis x;
  lw_gpu_analyze(m, NULL, i, arena, &x);
  gpu_launch l = lw_gpu_launch(m, &x, arena);
  bool coalesced = coalesces(m, &x);
  gpu_runtime *r = &s->runtime;
  r->flops = lw_gpu_saturate(c->flops);
  r->written = lw_gpu_saturate(c->out_bytes);
  r->write = write_ticks(&m->d, r->written);
  lw_ticks memory = 0;
  for (int32_t k = 0; k < i->n_operands; k++) {
    const lw_inst *o = lw_inst_operand(i, k);
    gpu_read read = {lw_gpu_shape_size(o->shape), bytes_of(m, i, o),
                     utilization_of(&m->d, o->shape, coalesced)};
    memory = add(memory, read_ticks(&m->d, l.blocks, read));
  }
  r->exec =
      overlapped(compute_ticks(&m->d, r->flops, l), add(memory, r->write));
  s->has_runtime = true;
  lw_arena_free(arena);
  return r;
}

lw_ticks lw_gpu_exec(lw_gpu_model *m, const lw_inst *i) {
  return runtime_of(m, i)->exec;
}

/* ---- a pair ---- */

/* Is operand k of the consumer the producer, or an element of it? */
static bool takes(const lw_inst *consumer, int32_t k, const lw_inst *producer,
                  bool elements_too) {
  const lw_inst *o = lw_inst_operand(consumer, k);
  return o == producer ||
         (elements_too && o->opcode == LW_OP_GET_TUPLE_ELEMENT &&
          lw_inst_operand(o, 0) == producer);
}

/* How often the consumer computes the producer, every slot counted. */
static float all_utilization(lw_gpu_model *m, const lw_inst *producer,
                             const lw_inst *consumer) {
  const gpu_cost *c = lw_gpu_cost(m, consumer);
  float sum = 0;
  for (int32_t k = 0; k < consumer->n_operands; k++)
    if (takes(consumer, k, producer, true)) sum += c->operand_util[k];
  return sum;
}

/* The same for reads: of a plain producer, its first slot. */
static float read_utilization(lw_gpu_model *m, const lw_inst *producer,
                              const lw_inst *consumer) {
  const gpu_cost *c = lw_gpu_cost(m, consumer);
  if (!lw_gpu_is_mof(producer)) {
    int32_t k = lw_gpu_operand_index(consumer, producer);
    return k < 0 ? 0 : c->operand_util[k];
  }
  float sum = 0;
  for (int32_t k = 0; k < consumer->n_operands; k++)
    if (lw_inst_operand(consumer, k) != producer &&
        takes(consumer, k, producer, true))
      sum += c->operand_util[k];
  return sum;
}

static const lw_inst *param(const lw_inst *fusion, int32_t k) {
  return lw_gpu_body(fusion)->params.data[k];
}

/* Does the producer read the operand at the index it writes? */
static bool reads_in_place(lw_gpu_model *m, const lw_inst *producer,
                           int32_t k) {
  if (lw_gpu_is_elementwise(m, producer)) return true;
  if (!lw_gpu_is_fusion(producer)) return false;
  lw_gpu_cost(m, producer);
  return lw_gpu_common_utilization(m, param(producer, k),
                                   lw_gpu_body(producer)->root) == 1;
}

/* How often the consumer reads the operand beside the producer anyway. */
static float common_reads(lw_gpu_model *m, const lw_inst *producer, int32_t k,
                          const lw_inst *consumer) {
  const lw_inst *operand = lw_inst_operand(producer, k);
  int32_t own = lw_gpu_operand_index(consumer, operand);
  if (own < 0 || !reads_in_place(m, producer, k)) return 0;
  if (!lw_gpu_is_fusion(consumer)) return lw_inst_is_elementwise(consumer);
  lw_gpu_cost(m, consumer);
  float sum = 0;
  bool mof = lw_gpu_is_mof(producer);
  for (int32_t s = 0; s < consumer->n_operands; s++) {
    if (mof ? !takes(consumer, s, producer, true)
            : !takes(consumer, s, producer, false))
      continue;
    sum +=
        lw_gpu_common_utilization(m, param(consumer, own), param(consumer, s));
    if (!mof) break;
  }
  return sum;
}

/* Bytes of one buffer that the pair reads. */
static int64_t pair_bytes(lw_gpu_model *m, const lw_inst *producer,
                          const lw_inst *consumer, const lw_inst *operand) {
  float util = read_utilization(m, producer, consumer);
  int64_t by_producer = bytes_of(m, producer, operand);
  int64_t by_consumer = bytes_of(m, consumer, operand);
  int32_t k = lw_gpu_operand_index(producer, operand);
  float common = k < 0 ? 0 : common_reads(m, producer, k, consumer);
  int64_t size = lw_gpu_shape_size(operand->shape);
  return llroundf((float)by_producer * util) + by_consumer -
         llroundf((float)size * common);
}

static lw_ticks pair_ticks(lw_gpu_model *m, const lw_inst *producer,
                           const lw_inst *consumer, bool keep_producer) {
  const gpu_runtime *p = runtime_of(m, producer), *c = runtime_of(m, consumer);
  lw_arena *arena = lw_arena_new();
  gpu_analysis x;
  lw_gpu_analyze(m, producer, consumer, arena, &x);
  gpu_launch l = lw_gpu_launch(m, &x, arena);
  bool coalesced = coalesces(m, &x);
  float util = all_utilization(m, producer, consumer);
  int64_t flops = lw_gpu_saturate((float)p->flops * util + (float)c->flops);
  lw_ticks memory = 0;
  for (int32_t k = 0; k < x.n_params; k++) {
    const lw_inst *o = x.params[k];
    gpu_read read = {lw_gpu_shape_size(o->shape),
                     pair_bytes(m, producer, consumer, o),
                     utilization_of(&m->d, o->shape, coalesced)};
    memory = add(memory, read_ticks(&m->d, l.blocks, read));
  }
  lw_ticks write = add(c->write, keep_producer ? p->write : 0);
  lw_arena_free(arena);
  return overlapped(compute_ticks(&m->d, flops, l), add(memory, write));
}

lw_ticks lw_gpu_exec_fused(lw_gpu_model *m, const lw_inst *producer,
                           const lw_inst *consumer) {
  uint64_t key =
      (uint64_t)(uint32_t)producer->id << 32 | (uint32_t)consumer->id;
  uint32_t vp = lw_gpu_state(m, producer)->version;
  uint32_t vc = lw_gpu_state(m, consumer)->version;
  uint64_t at = *lw_map_put(&m->pair_of, key);
  if (!at) {
    gpu_pair fresh = {0};
    lw_vec_push(&m->pairs, fresh);
    at = *lw_map_put(&m->pair_of, key) = m->pairs.len;
    m->pairs.data[at - 1].producer = -1;
  }
  const gpu_pair *p = &m->pairs.data[at - 1];
  if (p->producer == producer->id && p->producer_version == vp &&
      p->consumer_version == vc)
    return p->exec;
  lw_ticks t = pair_ticks(m, producer, consumer, false);
  m->pairs.data[at - 1] = (gpu_pair){producer->id, consumer->id, vp, vc, t};
  return t;
}

/* ---- decisions ---- */

lw_gpu_times lw_gpu_run_times(lw_gpu_model *m, const lw_inst *producer,
                              int32_t n, const lw_inst *const *consumers) {
  lw_gpu_times t = {(lw_ticks)LAUNCH_TICKS * (n + 1),
                    (lw_ticks)LAUNCH_TICKS * n};
  t.unfused = add(t.unfused, lw_gpu_exec(m, producer));
  for (int32_t k = 0; k < n; k++) {
    t.unfused = add(t.unfused, lw_gpu_exec(m, consumers[k]));
    t.fused = add(t.fused, lw_gpu_exec_fused(m, producer, consumers[k]));
  }
  return t;
}

lw_gpu_times lw_gpu_run_times_mof(lw_gpu_model *m, const lw_inst *producer,
                                  const lw_inst *consumer) {
  lw_gpu_times t = {2 * LAUNCH_TICKS, LAUNCH_TICKS};
  t.unfused =
      add(add(t.unfused, lw_gpu_exec(m, producer)), lw_gpu_exec(m, consumer));
  t.fused = add(t.fused, pair_ticks(m, producer, consumer, true));
  return t;
}

lw_gpu_kernel lw_gpu_kernel_of(lw_gpu_model *m, const lw_inst *producer,
                               const lw_inst *consumer, lw_arena *a) {
  gpu_analysis x;
  lw_gpu_analyze(m, producer, consumer, a, &x);
  gpu_launch l = lw_gpu_launch(m, &x, a);
  return (lw_gpu_kernel){.emitter = x.emitter,
                         .blocks = l.blocks,
                         .threads = l.threads,
                         .n_roots = x.n_roots,
                         .roots = x.roots,
                         .heroes = x.heroes};
}

/* ---- the model ---- */

lw_gpu_model *lw_gpu_model_new(const lw_comp *c, const lw_gpu_device *d) {
  lw_gpu_model *m = calloc(1, sizeof *m);
  if (!m) lw_oom(sizeof *m);
  m->comp = c;
  m->d = *d;
  m->arena = lw_arena_new();
  lw_gpu_cycles_init(m);
  return m;
}

void lw_gpu_model_free(lw_gpu_model *m) {
  if (!m) return;
  lw_arena_free(m->arena);
  lw_vec_free(&m->states);
  lw_vec_free(&m->stamps);
  lw_vec_free(&m->order);
  lw_vec_free(&m->stack);
  lw_map_free(&m->pair_of);
  lw_vec_free(&m->pairs);
  free(m);
}

void lw_gpu_model_update(lw_gpu_model *m, const lw_inst *i) {
  gpu_state *s = lw_gpu_state(m, i);
  s->version++;
  s->cost.ok = s->has_runtime = s->has_shared = s->has_reductions = false;
  s->has_traits = false;
}

/* A producer whose body only hands a parameter on adds nothing. */
static bool adds_all(const lw_inst *producer) {
  return !lw_gpu_is_fusion(producer) ||
         lw_gpu_body(producer)->root->opcode != LW_OP_PARAMETER;
}

void lw_gpu_model_took(lw_gpu_model *m, const lw_inst *fusion,
                       const lw_inst *producer, const lw_inst *consumer) {
  const gpu_state p = *lw_gpu_state(m, producer);
  const gpu_state c = *lw_gpu_state(m, consumer); /* as it was */
  lw_gpu_model_update(m, fusion);
  if (!adds_all(producer)) return;
  gpu_state *f = lw_gpu_state(m, fusion);
  f->has_traits = p.has_traits && c.has_traits;
  f->traits = p.traits | c.traits;
  f->has_shared = p.has_shared && c.has_shared;
  f->shared = p.shared + c.shared;
  f->has_reductions = p.has_reductions && c.has_reductions;
  f->reductions = p.reductions + c.reductions;
}

void lw_gpu_model_remove(lw_gpu_model *m, const lw_inst *i) {
  lw_gpu_model_update(m, i);
}
