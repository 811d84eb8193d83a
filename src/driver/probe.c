/* Measuring this machine.
 *
 * The kernels are Lawson's own wherever the cost model speaks of kernels: a
 * level's bandwidth is that of a copying kernel (bytes read plus bytes
 * written), a function's cost is what four of them add to a kernel of four
 * additions, its data in L1. Kernels are called through the ABI directly, in
 * batches of about a millisecond, so that neither the clock nor the executor is
 * in the number; what one core does is timed by the thread's own CPU clock,
 * what all do by the wall's. Only the rate of fused multiply-adds is plain C:
 * no kernel of ours is allowed to contract.
 *
 * Each number is the median of its batches. The least and the most stand behind
 * it: on a machine that others use as well they are far apart, and then the
 * file says so.
 */
#include "driver/probe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "driver/driver.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { MAX_BATCHES = 63, MAX_BUFFERS = 8, CHAIN = 4, LONG_CHAIN = 32 };
enum {
  SMALL = 2048,
  LAUNCHES = 16,
  PAGES = 4096,
  FMA_CHAINS = 12,
  SPIN = 10000
};
#define BATCH_NS 1e6

typedef struct {
  double median, least, most;
} reading;

typedef struct {
  const lw_probe_options *o;
  lw_context *ctx;
  lw_pool *pool;
  int batches, cores;
  int64_t l1, l2, l3;
  lw_buf *out;
} prober;

/* Of the thread alone, or of the wall. */
static double now_ns(bool wall) {
  struct timespec t;
  clock_gettime(wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- batches ---- */

typedef void (*work_fn)(void *ctx, int64_t times);

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static reading summary(double *v, int n) {
  qsort(v, (size_t)n, sizeof *v, by_value);
  double mid = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
  return (reading){mid, v[0], v[n - 1]};
}

/* How often the work fits into a batch; warms it up as well. */
static int64_t calibrate(work_fn work, void *ctx, bool wall) {
  for (int64_t n = 1;; n *= 4) {
    double t = now_ns(wall);
    work(ctx, n);
    t = now_ns(wall) - t;
    if (t >= BATCH_NS / 4 || n > (int64_t)1 << 40) {
      double fit = (double)n * BATCH_NS / (t > 1 ? t : 1);
      return fit < 1 ? 1 : (int64_t)fit;
    }
  }
}

/* ns of one time. */
static reading measure(const prober *p, work_fn work, void *ctx, bool wall) {
  double v[MAX_BATCHES];
  int64_t n = calibrate(work, ctx, wall);
  for (int k = 0; k < p->batches; k++) {
    double t = now_ns(wall);
    work(ctx, n);
    v[k] = (now_ns(wall) - t) / (double)n;
  }
  return summary(v, p->batches);
}

/* What the second costs more than the first, batch by batch, in turn. */
static reading measure_difference(const prober *p, work_fn work, void *less,
                                  void *more, double scale) {
  double v[MAX_BATCHES];
  int64_t n = calibrate(work, less, false);
  int64_t m = calibrate(work, more, false);
  for (int k = 0; k < p->batches; k++) {
    double t = now_ns(false);
    work(less, n);
    double a = (now_ns(false) - t) / (double)n;
    t = now_ns(false);
    work(more, m);
    v[k] = ((now_ns(false) - t) / (double)m - a) * scale;
  }
  return summary(v, p->batches);
}

/* ---- kernels ---- */

typedef struct {
  lw_module *module;
  lw_compiled *compiled;
  lw_codegen *codegen;
  const lw_kernel *kernel;
  lw_kernel_code code;
  void *buffers[MAX_BUFFERS];
  int64_t bytes[MAX_BUFFERS];
  int n_buffers;
  void *scratch;
  int64_t scratch_bytes;
} bench;

static void bench_free(bench *b) {
  for (int k = 0; k < b->n_buffers; k++)
    lw_buffer_free(b->buffers[k], b->bytes[k]);
  if (b->scratch) lw_buffer_free(b->scratch, b->scratch_bytes);
  if (b->codegen) lw_codegen_free(b->codegen);
  lw_compiled_free(b->compiled);
  if (b->module) lw_module_free(b->module);
  *b = (bench){0};
}

/* Floats near one, whole numbers from 1 to 7: no function leaves its ordinary
 * path, no index its range. */
static void fill(void *data, const lw_shape *s) {
  float *f = data;
  int32_t *i = data;
  for (int64_t k = 0; k < s->elements; k++) {
    if (s->type == LW_F32)
      f[k] = 0.5f + (float)(k * 37 % 1000) / 1000.0f;
    else
      i[k] = 1 + (int32_t)(k * 37 % 7);
  }
}

static lw_status add_buffer(bench *b, const lw_shape *s, bool input) {
  int64_t bytes = lw_shape_bytes(s);
  if (b->n_buffers == MAX_BUFFERS)
    return lw_error(LW_INTERNAL, "a probe has too many buffers");
  void *data = lw_buffer_alloc(bytes);
  if (!data)
    return lw_error(LW_RESOURCE_EXHAUSTED, "no memory for %lld bytes",
                    (long long)bytes);
  if (input)
    fill(data, s);
  else
    memset(data, 0, (size_t)bytes);
  b->bytes[b->n_buffers] = bytes;
  b->buffers[b->n_buffers++] = data;
  return NULL;
}

static lw_status add_buffers(bench *b) {
  const lw_kernel *k = b->kernel;
  for (int32_t i = 0; i < k->n_params; i++)
    LW_TRY(add_buffer(b, k->param_shapes[i], true));
  for (int32_t i = 0; i < k->n_outputs; i++)
    LW_TRY(add_buffer(b, k->output_shapes[i], false));
  for (int32_t i = 0; i < k->n_phases; i++)
    if (k->phases[i].thread_scratch_bytes > b->scratch_bytes)
      b->scratch_bytes = k->phases[i].thread_scratch_bytes;
  if (b->scratch_bytes) b->scratch = lw_buffer_alloc(b->scratch_bytes);
  return NULL;
}

/* text: an ENTRY that becomes one kernel. */
static lw_status bench_new(const prober *p, const char *text, bench *b) {
  *b = (bench){0};
  lw_codegen_options g = {.isa = "native", .opt_level = 2};
  LW_TRY(lw_load_text(p->ctx, text, strlen(text), &b->module));
  LW_TRY(lw_compile_to_plan(b->module, NULL, &b->compiled));
  const lw_plan *plan = lw_compiled_plan(b->compiled);
  if (plan->n_kernels != 1 || plan->kernels[0]->n_scratch)
    return lw_error(LW_INTERNAL, "a probe is not one plain kernel");
  b->kernel = plan->kernels[0];
  LW_TRY(lw_codegen_new(&g, &b->codegen));
  LW_TRY(lw_codegen_compile(b->codegen, plan->kernels, 1, &b->code));
  return add_buffers(b);
}

static void bench_work(void *ctx, int64_t times) {
  bench *b = ctx;
  lw_kernel_args args = {
      .buffers = b->buffers, .scratch = b->scratch, .n_threads = 1};
  while (times-- > 0)
    for (int32_t k = 0; k < b->code.n_phases; k++)
      b->code.phases[k](&args, 0, b->kernel->phases[k].n_tiles);
}

/* ---- the file ---- */

static void say(const prober *p, const char *what) {
  if (p->o->progress) p->o->progress(what);
}

static void put(const prober *p, const char *key, reading r, int digits) {
  lw_buf_printf(p->out, "%s = %.*g # median of %d; %.*g to %.*g\n", key, digits,
                r.median, p->batches, digits, r.least, digits, r.most);
}

static reading clamped(reading r, double low) {
  return (reading){fmax(r.median, low), fmax(r.least, low), fmax(r.most, low)};
}

/* ---- bandwidth ---- */

typedef struct {
  bench *benches;
  int64_t times;
} crowd;

static void crowd_part(void *ctx, int part, int thread) {
  crowd *c = ctx;
  (void)thread;
  bench_work(&c->benches[part], c->times);
}

typedef struct {
  const prober *p;
  bench *benches;
  int n;
} everybody;

static void everybody_work(void *ctx, int64_t times) {
  everybody *e = ctx;
  crowd c = {e->benches, times};
  if (e->n > 1 && lw_pool_run(e->p->pool, crowd_part, &c, e->n, e->n)) return;
  for (int k = 0; k < e->n; k++) crowd_part(&c, k, 0);
}

/* A copy whose operand and result together take that many bytes, a core. */
static lw_status copies(const prober *p, int64_t bytes, bench *b, int n) {
  char text[256];
  snprintf(text, sizeof text,
           "HloModule copy\nENTRY e {\n  x = f32[%lld] parameter(0)\n"
           "  ROOT y = f32[%lld] negate(x)\n}\n",
           (long long)(bytes / 8), (long long)(bytes / 8));
  for (int k = 0; k < n; k++) LW_TRY(bench_new(p, text, &b[k]));
  return NULL;
}

static reading as_rate(reading ns, double amount) {
  return (reading){amount / ns.median, amount / ns.most, amount / ns.least};
}

/* All cores together cannot be slower than one of them alone. */
static void note_load(const prober *p, reading one, reading all) {
  if (all.median < one.median)
    lw_buf_str(p->out,
               "# Less than one core's: others had the cores. Measure again "
               "when they are idle.\n");
}

static lw_status bandwidth(const prober *p, const char *level, int64_t one,
                           int64_t each) {
  char key[32];
  reading alone = {0}, all = {0};
  bench *b = calloc((size_t)p->cores, sizeof *b);
  if (!b) lw_oom((size_t)p->cores);
  say(p, level);
  lw_status st = copies(p, one, b, 1);
  if (!st) {
    everybody e = {p, b, 1};
    alone = as_rate(measure(p, everybody_work, &e, false), (double)one);
    snprintf(key, sizeof key, "%s_gbps", level);
    put(p, key, alone, 4);
  }
  bench_free(&b[0]);
  if (!st) st = copies(p, each, b, p->cores);
  if (!st) {
    everybody e = {p, b, p->cores};
    all =
        as_rate(measure(p, everybody_work, &e, true), (double)each * p->cores);
    snprintf(key, sizeof key, "%s_gbps_total", level);
    put(p, key, all, 4);
    note_load(p, alone, all);
  }
  for (int k = 0; k < p->cores; k++) bench_free(&b[k]);
  free(b);
  return st;
}

static int64_t whole(int64_t bytes) { return bytes / 512 * 512; }

static lw_status bandwidths(const prober *p) {
  int64_t memory = 4 * p->l3 > (int64_t)1 << 29 ? (int64_t)1 << 29 : 4 * p->l3;
  lw_buf_str(p->out,
             "\n# GB/s of a copying kernel, bytes read plus bytes written; "
             "operand and result\n# take half the level (four times the last "
             "one for memory).\n");
  LW_TRY(bandwidth(p, "l1", whole(p->l1 / 2), whole(p->l1 / 2)));
  LW_TRY(bandwidth(p, "l2", whole(p->l2 / 2), whole(p->l2 / 2)));
  LW_TRY(bandwidth(p, "l3", whole(p->l3 / 2), whole(p->l3 / 2 / p->cores)));
  return bandwidth(p, "dram", whole(memory), whole(memory / p->cores));
}

/* ---- fused multiply-adds ---- */

#if defined(__x86_64__)
#define FMA_LOOP(vec, set, fma, lanes)                               \
  vec acc[FMA_CHAINS], m = set(0.999f), a = set(0.001f);             \
  for (int k = 0; k < FMA_CHAINS; k++) acc[k] = set((float)k);       \
  for (int64_t t = 0; t < times; t++)                                \
    for (int k = 0; k < FMA_CHAINS; k++) acc[k] = fma(acc[k], m, a); \
  float sum = 0;                                                     \
  for (int k = 0; k < FMA_CHAINS; k++) {                             \
    float v[lanes];                                                  \
    memcpy(v, &acc[k], sizeof v);                                    \
    sum += v[0];                                                     \
  }                                                                  \
  *(volatile float *)ctx = sum

__attribute__((target("avx512f"))) static void fma_512(void *ctx,
                                                       int64_t times) {
  FMA_LOOP(__m512, _mm512_set1_ps, _mm512_fmadd_ps, 16);
}

__attribute__((target("avx2,fma"))) static void fma_256(void *ctx,
                                                        int64_t times) {
  FMA_LOOP(__m256, _mm256_set1_ps, _mm256_fmadd_ps, 8);
}
#endif

/* Without vector multiply-adds: what a product of matrices reaches. */
static lw_status product_rate(const prober *p) {
  bench b;
  lw_status st =
      bench_new(p,
                "HloModule d\nENTRY e {\n  x = f32[256,256] parameter(0)\n"
                "  y = f32[256,256] parameter(1)\n"
                "  ROOT z = f32[256,256] dot(x, y), lhs_contracting_dims={1}, "
                "rhs_contracting_dims={0}\n}\n",
                &b);
  if (!st) {
    lw_buf_str(p->out, "\n# GFLOP/s of one core, a product of matrices.\n");
    reading r = measure(p, bench_work, &b, false);
    put(p, "fma_gflops", as_rate(r, 2.0 * 256 * 256 * 256), 4);
  }
  bench_free(&b);
  return st;
}

static lw_status fma_rate(const prober *p) {
  say(p, "multiply-adds");
#if defined(__x86_64__)
  float sink;
  bool wide = lw_codegen_has_isa("avx512");
  if (wide || lw_codegen_has_isa("avx2")) {
    int lanes = wide ? 16 : 8;
    reading r = measure(p, wide ? fma_512 : fma_256, &sink, false);
    lw_buf_printf(p->out,
                  "\n# GFLOP/s of one core: %d chains of %d lanes, a "
                  "multiply-add is two.\n",
                  (int)FMA_CHAINS, lanes);
    put(p, "fma_gflops", as_rate(r, 2.0 * (double)FMA_CHAINS * lanes), 4);
    return NULL;
  }
#endif
  return product_rate(p);
}

/* ---- what functions cost ---- */

/* A sum of four terms in x and y, each through the function, or as it is. op
 * holds one %s for the argument and may read y; NULL: no function. */
static char *chain_text(const char *type, const char *op) {
  lw_buf b = {0};
  lw_buf_printf(&b,
                "HloModule c\nENTRY e {\n  x = %s[%d] parameter(0)\n"
                "  y = %s[%d] parameter(1)\n  s0 = %s[%d] add(x, y)\n",
                type, (int)SMALL, type, (int)SMALL, type, (int)SMALL);
  for (int k = 0; k < CHAIN; k++) {
    char arg[16];
    snprintf(arg, sizeof arg, "a%d", k);
    lw_buf_printf(&b,
                  "  c%d = %s[] constant(%d)\n"
                  "  b%d = %s[%d] broadcast(c%d), dimensions={}\n"
                  "  a%d = %s[%d] add(x, b%d)\n",
                  k, type, k + 1, k, type, (int)SMALL, k, k, type, (int)SMALL,
                  k);
    if (op) {
      lw_buf_printf(&b, "  f%d = %s[%d] ", k, type, (int)SMALL);
      for (const char *s = op; *s; s++) {
        if (*s == '$')
          lw_buf_str(&b, arg);
        else
          lw_buf_chr(&b, *s);
      }
      lw_buf_chr(&b, '\n');
    }
    lw_buf_printf(&b, "  %ss%d = %s[%d] add(s%d, %c%d)\n",
                  k + 1 == CHAIN ? "ROOT " : "", k + 1, type, (int)SMALL, k,
                  op ? 'f' : 'a', k);
  }
  lw_buf_str(&b, "}\n");
  char *text = strdup(lw_buf_cstr(&b));
  lw_buf_free(&b);
  return text;
}

static lw_status bench_of_text(const prober *p, char *text, bench *b) {
  lw_status st = bench_new(p, text, b);
  free(text);
  return st;
}

/* ns an element; more - less, over `ops` operations. */
static lw_status cost_between(const prober *p, const char *key, char *less,
                              char *more, double ops) {
  bench a = {0}, b = {0};
  lw_status st = bench_of_text(p, less, &a);
  if (st)
    free(more);
  else
    st = bench_of_text(p, more, &b);
  if (!st) {
    reading r =
        measure_difference(p, bench_work, &a, &b, 1 / (ops * (double)SMALL));
    put(p, key, clamped(r, 0.001), 3);
  }
  bench_free(&a);
  bench_free(&b);
  return st;
}

static lw_status function_cost(const prober *p, const char *key,
                               const char *type, const char *op, double ops) {
  say(p, key);
  return cost_between(p, key, chain_text(type, NULL), chain_text(type, op),
                      ops);
}

/* n multiplications and additions in turn. */
static char *long_chain(int n) {
  lw_buf b = {0};
  lw_buf_printf(&b,
                "HloModule c\nENTRY e {\n  x = f32[%d] parameter(0)\n"
                "  y = f32[%d] parameter(1)\n  s0 = f32[%d] add(x, y)\n",
                (int)SMALL, (int)SMALL, (int)SMALL);
  for (int k = 0; k < n; k++)
    lw_buf_printf(&b, "  %ss%d = f32[%d] %s(s%d, %c)\n",
                  k + 1 == n ? "ROOT " : "", k + 1, (int)SMALL,
                  k % 2 ? "add" : "multiply", k, k % 2 ? 'x' : 'y');
  lw_buf_str(&b, "}\n");
  char *text = strdup(lw_buf_cstr(&b));
  lw_buf_free(&b);
  return text;
}

static char *gather_text(bool gather) {
  char text[512];
  snprintf(text, sizeof text,
           "HloModule g\nENTRY e {\n  x = f32[%d] parameter(0)\n"
           "  i = s32[%d,1] parameter(1)\n  %s\n}\n",
           (int)SMALL, (int)SMALL,
           gather ? "ROOT g = f32[2048] gather(x, i), offset_dims={}, "
                    "collapsed_slice_dims={0}, start_index_map={0}, "
                    "index_vector_dim=1, slice_sizes={1}"
                  : "r = s32[2048] reshape(i)\n  c = f32[2048] convert(r)\n"
                    "  ROOT s = f32[2048] add(x, c)");
  return strdup(text);
}

static lw_status functions(const prober *p) {
  static const struct {
    const char *key, *type, *op;
    double ops;
  } list[] = {
      {"divide_ns", "f32", "divide($, y)", CHAIN},
      {"sqrt_ns", "f32", "sqrt($)", CHAIN},
      {"exp_ns", "f32", "exponential($)", CHAIN},
      {"log_ns", "f32", "log($)", CHAIN},
      {"trig_ns", "f32", "sine($)", CHAIN},
      {"tanh_ns", "f32", "tanh($)", CHAIN},
      {"power_ns", "f32", "power($, y)", CHAIN},
      {"integer_divide_ns", "s32", "divide($, y)", CHAIN},
      {"convert_ns", "f32",
       "reduce-precision($), exponent_bits=8, "
       "mantissa_bits=7",
       CHAIN},
  };
  lw_buf_printf(p->out,
                "\n# ns an element: what the operation adds to a kernel over "
                "%d elements in L1.\n",
                (int)SMALL);
  say(p, "simple_ns");
  LW_TRY(cost_between(p, "simple_ns", long_chain(2), long_chain(LONG_CHAIN + 2),
                      LONG_CHAIN));
  for (size_t k = 0; k < sizeof list / sizeof *list; k++)
    LW_TRY(
        function_cost(p, list[k].key, list[k].type, list[k].op, list[k].ops));
  say(p, "gather_ns");
  return cost_between(p, "gather_ns", gather_text(false), gather_text(true), 1);
}

/* ---- starting work ---- */

/* A few microseconds, so that the other threads have time to take their part
 * before the caller does. */
static void spin(void *ctx, int part, int thread) {
  (void)ctx;
  (void)part;
  (void)thread;
  for (volatile int k = 0; k < SPIN; k++) continue;
}

static void fork_work(void *ctx, int64_t times) {
  const prober *p = ctx;
  while (times-- > 0)
    if (!lw_pool_run(p->pool, spin, NULL, p->cores, p->cores)) return;
}

static void spin_work(void *ctx, int64_t times) {
  while (times-- > 0) spin(ctx, 0, 0);
}

static reading fork_join(const prober *p) {
  void *ctx = (void *)(uintptr_t)p;
  reading alone = measure(p, spin_work, ctx, true);
  reading all = measure(p, fork_work, ctx, true);
  reading r = {all.median - alone.median, all.least - alone.least,
               all.most - alone.least};
  return clamped(r, 0);
}

typedef struct {
  lw_module *module;
  lw_compiled *compiled;
  lw_bound *bound;
  lw_status st;
} program;

static void program_work(void *ctx, int64_t times) {
  program *g = ctx;
  while (times-- > 0 && !g->st)
    g->st = lw_bound_run(g->bound, NULL, NULL, NULL);
}

/* n kernels in a row, one element each. */
static lw_status program_new(const prober *p, int n, lw_arena *a, program *g) {
  lw_buf b = {0};
  lw_compile_options o = {.fusion = "none"};
  lw_literal **args;
  int32_t n_args;
  *g = (program){0};
  lw_buf_str(&b, "HloModule l\nENTRY e {\n  s0 = f32[4] parameter(0)\n");
  for (int k = 0; k < n; k++)
    lw_buf_printf(&b, "  %ss%d = f32[4] %s(s%d)\n", k + 1 == n ? "ROOT " : "",
                  k + 1, k % 2 ? "abs" : "sine", k);
  lw_buf_str(&b, "}\n");
  lw_status st = lw_load_text(p->ctx, lw_buf_cstr(&b), b.len, &g->module);
  lw_buf_free(&b);
  if (!st) st = lw_random_inputs(g->module, 1, a, &args, &n_args, NULL, NULL);
  if (!st) st = lw_compile(g->module, &o, &g->compiled);
  if (!st)
    st = lw_bound_new(g->compiled, (const lw_literal *const *)args, n_args,
                      &g->bound);
  return st;
}

static void program_free(program *g) {
  if (g->bound) lw_bound_free(g->bound);
  lw_compiled_free(g->compiled);
  if (g->module) lw_module_free(g->module);
}

static lw_status launch_cost(const prober *p) {
  program one = {0}, many = {0};
  lw_arena *a = lw_arena_new();
  lw_status st = program_new(p, 2, a, &one);
  if (!st) st = program_new(p, 2 + LAUNCHES, a, &many);
  if (!st) {
    reading r = measure_difference(p, program_work, &one, &many,
                                   1.0 / (double)LAUNCHES);
    put(p, "launch_ns", clamped(r, 1), 3);
    st = one.st ? one.st : many.st;
  }
  program_free(&one);
  program_free(&many);
  lw_arena_free(a);
  return st;
}

/* First touches of fresh pages; small pages, since a huge one is luck. */
static lw_status page_cost(const prober *p) {
  double v[MAX_BATCHES];
  size_t page = (size_t)sysconf(_SC_PAGESIZE), all = page * PAGES;
  for (int k = 0; k < p->batches; k++) {
    char *m = mmap(NULL, all, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED)
      return lw_error(LW_RESOURCE_EXHAUSTED, "no memory for %zu bytes", all);
    (void)madvise(m, all, MADV_NOHUGEPAGE);
    double t = now_ns(false);
    for (size_t i = 0; i < PAGES; i++) ((volatile char *)m)[i * page] = 1;
    v[k] = (now_ns(false) - t) / (double)PAGES;
    (void)munmap(m, all);
  }
  put(p, "page_ns", summary(v, p->batches), 4);
  lw_buf_printf(p->out, "page_bytes = %zu\n", page);
  return NULL;
}

static lw_status starts(const prober *p) {
  reading none = {0, 0, 0};
  say(p, "starting work");
  lw_buf_str(p->out,
             "\n# ns to start and join the pool, to start one more kernel on "
             "the calling thread,\n# and to touch a fresh page.\n");
  put(p, "fork_join_ns", p->cores > 1 ? fork_join(p) : none, 4);
  LW_TRY(launch_cost(p));
  return page_cost(p);
}

/* ---- the whole ---- */

/* Of one core's data, by the system's own files; the level's size in the host's
 * target file where there are none. */
static int64_t cache_bytes(int level, double otherwise) {
  for (int k = 0; k < 8; k++) {
    char text[3][64] = {"", "", ""};
    static const char *const what[] = {"level", "type", "size"};
    for (int i = 0; i < 3; i++) {
      char path[96];
      snprintf(path, sizeof path,
               "/sys/devices/system/cpu/cpu0/cache/index%d/%s", k, what[i]);
      FILE *f = fopen(path, "r");
      if (f && !fgets(text[i], sizeof text[i], f)) text[i][0] = 0;
      if (f) fclose(f);
    }
    char *end;
    long long size = strtoll(text[2], &end, 10);
    if (atoi(text[0]) != level || !strncmp(text[1], "Instr", 5) || size <= 0)
      continue;
    return size * (*end == 'K' ? 1024 : *end == 'M' ? 1048576 : 1);
  }
  return (int64_t)otherwise;
}

static void model_name(char *out, size_t n) {
  char line[256];
  FILE *f = fopen("/proc/cpuinfo", "r");
  snprintf(out, n, "unknown model");
  while (f && fgets(line, sizeof line, f)) {
    char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) || !colon) continue;
    snprintf(out, n, "%s", colon + 2);
    out[strcspn(out, "\n")] = 0;
    break;
  }
  if (f) fclose(f);
}

static void put_head(const prober *p) {
  char model[200], date[40];
  time_t t = time(NULL);
  struct tm tm;
  double load = 0;
  model_name(model, sizeof model);
  strftime(date, sizeof date, "%d %B %Y, %H:%M UTC", gmtime_r(&t, &tm));
  if (getloadavg(&load, 1) != 1) load = 0;
  lw_buf_printf(
      p->out,
      "# %s (%s), %d cores.\n# Measured %s by: %s\n"
      "# %s; load average %.1f when it began.\n"
      "# Medians of %d batches, least and most behind them: one core by "
      "its thread's\n# CPU clock, all cores by the wall's. Cache "
      "sizes are the system's.\n",
      model, lw_codegen_host_cpu(), p->cores, date,
      p->o->command ? p->o->command : "lw_probe_machine", lw_codegen_version(),
      load, p->batches);
  const char *isa = lw_codegen_has_isa("avx512") ? "avx512"
                    : lw_codegen_has_isa("avx2") ? "avx2"
                                                 : "baseline";
  lw_buf_printf(p->out,
                "name = probed-%s\nbackend = cpu\nisa = %s\ncores = %d\n\n"
                "l1_bytes = %lld\nl2_bytes = %lld\nl3_bytes = %lld\n",
                lw_codegen_host_cpu(), isa, p->cores, (long long)p->l1,
                (long long)p->l2, (long long)p->l3);
}

static lw_status find_caches(prober *p) {
  lw_target *t;
  LW_TRY(lw_target_load("cpu", &t));
  p->l1 = cache_bytes(1, t->v.l1_bytes);
  p->l2 = cache_bytes(2, t->v.l2_bytes);
  p->l3 = cache_bytes(3, t->v.l3_bytes);
  lw_target_free(t);
  return NULL;
}

static lw_status probe(prober *p) {
  LW_TRY(find_caches(p));
  LW_TRY(lw_pool_new(0, &p->pool));
  p->cores = lw_pool_threads(p->pool);
  put_head(p);
  LW_TRY(bandwidths(p));
  LW_TRY(fma_rate(p));
  LW_TRY(functions(p));
  LW_TRY(starts(p));
  lw_target *t;
  LW_TRY(lw_target_parse(p->out->data, p->out->len, "the probe's file", &t));
  lw_target_free(t);
  return NULL;
}

lw_status lw_probe_machine(const lw_probe_options *o, lw_buf *out) {
  prober p = {.o = o, .ctx = lw_context_new(), .out = out};
  p.batches = o->batches > 0 ? o->batches : 15;
  if (p.batches > MAX_BATCHES) p.batches = MAX_BATCHES;
  lw_status st = probe(&p);
  lw_pool_free(p.pool);
  lw_context_free(p.ctx);
  return st;
}
