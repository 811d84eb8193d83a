/* The project's first law, on random modules: interpreter, unfused and fused
 * code, one thread and many, every instruction set of this machine give the
 * same bits. On the way: the checker accepts the module, print and parse are
 * inverse, the proto keeps the fingerprint.
 *
 *   property [--from=SEED] [--count=N] [--pairs | --faults] [--flush]
 *            [--threads=N] [--every=N] [--quiet]
 *   --pairs: instead of random walks, every producer x consumer opcode pair
 *            that some type makes legal (--every: each Nth module of them)
 *   --faults: plants every fault of kernel/fault.h and wants it caught within
 *             count modules (--faults=K: just the Kth of them)
 *   --flush: subnormals are flushed, in the interpreter and in code
 * Prints its coverage; exit 1 with the seed and the module of the first
 * failures.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"
#include "gen/gen.h"
#include "hlo/check.h"
#include "hlo/fingerprint.h"
#include "hlo/print.h"
#include "reader/reader.h"

enum { MAX_SHOWN = 3 };

typedef struct {
  uint64_t from;
  long count;
  bool pairs, faults, flush, quiet;
  int threads;
  int fault; /* of --faults: just this one; 0: all */
  long modules, failed, with_fusion, roads, not_tested;
  long pair_hits, made, every;
  bool *pair; /* [producer * LW_OPCODE_COUNT + consumer] */
  long legal;
} state;

static void show(const state *s, const lw_module *m, const char *seed,
                 const char *why) {
  fprintf(stderr, "FAILED %s: %s\n", seed, why);
  if (s->failed > MAX_SHOWN) return;
  lw_buf b = {0};
  lw_module_print(&b, m, &lw_print_default);
  fputs(lw_buf_cstr(&b), stderr);
  lw_buf_free(&b);
}

/* ---- coverage ---- */

static void count_pairs(state *s, const lw_module *m) {
  for (const lw_comp *c = m->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next)
      for (int32_t k = 0; k < i->n_operands; k++) {
        bool *p =
            &s->pair[(int)lw_inst_operand(i, k)->opcode * LW_OPCODE_COUNT +
                     (int)i->opcode];
        if (!*p) s->pair_hits++;
        *p = true;
      }
}

static bool has_real_fusion(const lw_module *m) {
  lw_compile_options o = {.fusion = "priority"};
  lw_compiled *c = NULL;
  lw_status st = lw_optimize(m, &o, &c);
  bool found = false;
  const lw_module *opt = st ? NULL : lw_compiled_module(c);
  for (const lw_comp *d = opt ? opt->first_comp : NULL; d; d = d->next)
    for (const lw_inst *i = d->first; i; i = i->next) {
      if (i->opcode != LW_OP_FUSION) continue;
      int ops = 0;
      const lw_comp *body = lw_inst_comp(i, LW_ATTR_CALLS);
      for (const lw_inst *j = body->first; j; j = j->next)
        ops += j->opcode != LW_OP_PARAMETER && j->opcode != LW_OP_CONSTANT &&
               j->opcode != LW_OP_TUPLE;
      found |= ops >= 3;
    }
  lw_status_free(st);
  lw_compiled_free(c);
  return found;
}

/* ---- what must hold ---- */

/* Reads what m prints; NULL when it does not parse. */
static lw_module *reread(lw_context *ctx, const lw_module *m, lw_buf *text) {
  lw_module_print(text, m, &lw_print_default);
  lw_diags d = {.file = "random", .text = text->data, .text_len = text->len};
  lw_module *again = NULL;
  lw_status st = lw_read_text(ctx, text->data, text->len, "random", &d, &again);
  lw_status_free(st);
  lw_diags_free(&d);
  return again;
}

/* The reader adds what a built module leaves open (the entry's layout), so the
 * fixpoint is that of the text read once. */
static const char *round_trip(lw_context *ctx, const lw_module *m) {
  lw_buf a = {0}, b = {0}, c = {0};
  lw_module *first = reread(ctx, m, &a);
  lw_module *second = first ? reread(ctx, first, &b) : NULL;
  const char *why = NULL;
  if (!second) {
    why = "its text does not parse";
  } else {
    lw_module_print(&c, second, &lw_print_default);
    if (b.len != c.len || memcmp(b.data, c.data, b.len))
      why = "print and parse are not inverse";
    else if (lw_module_fingerprint(first, LW_FP_ALL) !=
             lw_module_fingerprint(second, LW_FP_ALL))
      why = "text changes the fingerprint";
    else if (lw_module_fingerprint(m, LW_FP_STRUCTURE | LW_FP_CONSTANTS) !=
             lw_module_fingerprint(first, LW_FP_STRUCTURE | LW_FP_CONSTANTS))
      why = "text changes the structure";
  }
  lw_buf_free(&a);
  lw_buf_free(&b);
  lw_buf_free(&c);
  lw_module_free(first);
  lw_module_free(second);
  return why;
}

static const char *bits(state *s, const lw_module *m, uint64_t seed,
                        lw_arena *a) {
  lw_literal **args = NULL;
  int32_t n = 0;
  lw_status st = lw_random_inputs(m, seed, a, &args, &n, NULL, NULL);
  lw_verify_report r = {0};
  lw_verify_options o = {
      .seed = seed, .threads = s->threads, .flush_denormals = s->flush};
  if (!st) st = lw_verify(m, (const lw_literal *const *)args, n, &o, a, &r);
  if (st) {
    const char *why = lw_arena_printf(a, "%s", lw_status_message(st));
    lw_status_free(st);
    return why;
  }
  for (int32_t k = 0; k < r.n; k++) {
    s->roads += r.roads[k].verdict != LW_ROAD_NOT_TESTED;
    s->not_tested += r.roads[k].verdict == LW_ROAD_NOT_TESTED;
    if (r.roads[k].verdict == LW_ROAD_DIFFERS ||
        r.roads[k].verdict == LW_ROAD_FAILED)
      return lw_arena_printf(a, "%s: %s", r.roads[k].name,
                             r.roads[k].detail ? r.roads[k].detail : "?");
  }
  return NULL;
}

static const char *check(const lw_module *m, lw_arena *a) {
  lw_diags d = {.file = "random"};
  lw_check_module(m, (lw_check_options){0}, &d);
  const char *why = NULL;
  if (d.count)
    why = lw_arena_printf(a, "the checker objects: %s", d.list.data[0].message);
  lw_diags_free(&d);
  return why;
}

static void one(state *s, lw_context *ctx, lw_module *m, uint64_t seed,
                const char *label) {
  lw_arena *a = lw_arena_new();
  s->modules++;
  count_pairs(s, m);
  const char *why = check(m, a);
  if (!why) why = round_trip(ctx, m);
  if (!why) why = bits(s, m, seed, a);
  if (!why && has_real_fusion(m)) s->with_fusion++;
  if (why) {
    s->failed++;
    show(s, m, label, why);
  }
  lw_arena_free(a);
}

static lw_module *module_of(lw_context *ctx, uint64_t seed) {
  lw_rand r = {.state = seed};
  lw_gen_options o = {.control_flow = true, .heavy = true};
  return lw_gen_module(ctx, &r, &o);
}

static void random_modules(state *s) {
  for (long k = 0; k < s->count; k++) {
    uint64_t seed = s->from + (uint64_t)k;
    lw_context *ctx = lw_context_new();
    lw_module *m = module_of(ctx, seed);
    char label[48];
    snprintf(label, sizeof label, "seed %llu", (unsigned long long)seed);
    one(s, ctx, m, seed, label);
    lw_module_free(m);
    lw_context_free(ctx);
    if (!s->quiet && k % 100 == 99) fprintf(stderr, "%ld modules\n", k + 1);
  }
}

/* ---- pairs ---- */

enum { PIECE = 16 };

/* The consumers that some result of the producer is an operand of. */
static int legal_consumers(const lw_gen_kinds *gives, const lw_gen_kinds *takes,
                           const lw_opcode *ops, int n, lw_opcode *out) {
  int k = 0;
  for (int c = 0; c < n; c++)
    if (lw_gen_pair_is_legal(gives, &takes[c])) out[k++] = ops[c];
  return k;
}

static void one_piece(state *s, lw_opcode p, const lw_opcode *consumers, int n,
                      uint64_t seed) {
  lw_context *ctx = lw_context_new();
  lw_rand r = {.state = seed};
  bool made[PIECE];
  lw_module *m = lw_gen_pairs(ctx, p, consumers, n, made, &r);
  for (int k = 0; k < n; k++) {
    s->legal++;
    s->made += made[k];
    if (!made[k])
      fprintf(stderr, "not made: %s -> %s\n", lw_opcode_name(p),
              lw_opcode_name(consumers[k]));
  }
  char label[96];
  snprintf(label, sizeof label, "producer %s, consumers from %s",
           lw_opcode_name(p), lw_opcode_name(consumers[0]));
  if (m) one(s, ctx, m, seed, label);
  lw_module_free(m);
  lw_context_free(ctx);
}

/* A module a producer and a few consumers. */
static void all_pairs(state *s) {
  int n;
  const lw_opcode *ops = lw_gen_opcodes(&n);
  lw_gen_kinds *gives = calloc((size_t)n, sizeof *gives);
  lw_gen_kinds *takes = calloc((size_t)n, sizeof *takes);
  lw_opcode *legal = calloc((size_t)n, sizeof *legal);
  long piece = 0;
  for (int p = 0; p < n; p++) {
    lw_context *ctx = lw_context_new();
    lw_gen_opcode_kinds(ctx, ops[p], &gives[p], &takes[p]);
    lw_context_free(ctx);
  }
  for (int p = 0; p < n; p++) {
    int k = legal_consumers(&gives[p], takes, ops, n, legal);
    for (int c = 0; c < k; c += PIECE, piece++)
      if (s->every <= 1 || piece % s->every == (long)s->from % s->every)
        one_piece(s, ops[p], legal + c, k - c < PIECE ? k - c : PIECE,
                  s->from + (uint64_t)(p * n + c));
  }
  free(gives);
  free(takes);
  free(legal);
}

/* ---- planted faults ---- */

/* NULL: nothing differs. */
static const char *road_that_differs(const lw_verify_report *r, lw_arena *a) {
  for (int32_t k = 1; k < r->n; k++)
    if (r->roads[k].verdict == LW_ROAD_DIFFERS ||
        r->roads[k].verdict == LW_ROAD_FAILED)
      return lw_arena_printf(a, "%s: %s", r->roads[k].name,
                             r->roads[k].detail ? r->roads[k].detail : "?");
  return NULL;
}

static const char *with_fault(const state *s, lw_fault fault, uint64_t seed,
                              lw_arena *a) {
  lw_context *ctx = lw_context_new();
  lw_module *m = module_of(ctx, seed);
  lw_literal **args = NULL;
  int32_t n = 0;
  lw_verify_report r = {0};
  lw_verify_options o = {.seed = seed,
                         .threads = s->threads,
                         .first_only = true,
                         .planted_fault = fault};
  lw_status st = lw_random_inputs(m, seed, a, &args, &n, NULL, NULL);
  if (!st) st = lw_verify(m, (const lw_literal *const *)args, n, &o, a, &r);
  const char *why = st ? NULL : road_that_differs(&r, a);
  lw_status_free(st);
  lw_module_free(m);
  lw_context_free(ctx);
  return why;
}

static void show_seed(uint64_t seed, const char *why) {
  printf("seed %llu fails without any fault: %s\n", (unsigned long long)seed,
         why);
}

static void plant_faults(state *s) {
  static const char *const names[LW_FAULT_COUNT] = {
#define F(fault, text) [LW_FAULT_##fault] = text
      F(NONE, "none"),
      F(CONTRACT, "contraction"),
      F(NARROW, "bf16 rounding dropped"),
      F(ROW_ORDER, "row lanes in another order"),
      F(COLUMN_ORDER, "column blocks backwards"),
      F(DOT_ORDER, "dot blocks backwards"),
      F(DOT_PRODUCT, "dot products rounded"),
      F(TAIL, "tail by another path"),
      F(NAN, "NaN not canonical"),
      F(ALIAS, "output over a parameter in use"),
      F(UPDATE, "update over what is read"),
      F(LOOP_COPY, "loop state without copies"),
#undef F
  };
  int n_caught = 0;
  for (int f = 1; f < LW_FAULT_COUNT; f++) {
    if (s->fault && s->fault != f) continue;
    bool caught = false;
    for (long k = 0; k < s->count && !caught; k++) {
      lw_arena *a = lw_arena_new();
      uint64_t seed = s->from + (uint64_t)k;
      const char *why = with_fault(s, (lw_fault)f, seed, a);
      s->modules++;
      /* a module that fails without the fault catches nothing */
      const char *bare = why ? with_fault(s, LW_FAULT_NONE, seed, a) : NULL;
      if (bare) {
        show_seed(seed, bare);
        s->failed++;
        why = NULL;
      }
      if (why) printf("%-32s caught by module %ld\n", names[f], k + 1);
      if (why && !s->quiet) printf("  %s\n", why);
      caught = why != NULL;
      lw_arena_free(a);
    }
    if (!caught) printf("%-32s NOT caught by %ld\n", names[f], s->count);
    s->failed += !caught;
    n_caught += caught;
    fflush(stdout);
  }
  printf("%d faults planted, %d caught\n", s->fault ? 1 : LW_FAULT_COUNT - 1,
         n_caught);
}

int main(int argc, char **argv) {
  state s = {.count = 100};
  for (int i = 1; i < argc; i++) {
    if (!strncmp(argv[i], "--from=", 7))
      s.from = strtoull(argv[i] + 7, NULL, 0);
    if (!strncmp(argv[i], "--count=", 8))
      s.count = strtol(argv[i] + 8, NULL, 0);
    if (!strncmp(argv[i], "--threads=", 10)) s.threads = atoi(argv[i] + 10);
    if (!strncmp(argv[i], "--every=", 8))
      s.every = strtol(argv[i] + 8, NULL, 0);
    if (!strcmp(argv[i], "--pairs")) s.pairs = true;
    if (!strcmp(argv[i], "--faults")) s.faults = true;
    if (!strncmp(argv[i], "--faults=", 9)) {
      s.faults = true;
      s.fault = atoi(argv[i] + 9);
    }
    if (!strcmp(argv[i], "--flush")) s.flush = true;
    if (!strcmp(argv[i], "--quiet")) s.quiet = true;
  }
  if (s.faults) {
    plant_faults(&s);
    return s.failed ? 1 : 0;
  }
  s.pair = calloc((size_t)LW_OPCODE_COUNT * LW_OPCODE_COUNT, sizeof *s.pair);
  if (!s.pair) return 70;
  if (s.pairs)
    all_pairs(&s);
  else
    random_modules(&s);
  printf("random modules: %ld, roads run: %ld", s.modules, s.roads);
  if (s.not_tested) printf(" (%ld not tested: no such ISA here)", s.not_tested);
  printf("\nwith a fusion of 3 or more ops: %.1f %%\n",
         100.0 * (double)s.with_fusion / (double)(s.modules ? s.modules : 1));
  printf("producer x consumer opcode pairs hit: %ld", s.pair_hits);
  if (s.pairs) printf("; legal %ld, made and tested %ld", s.legal, s.made);
  printf("\n%ld passed, %ld failed\n", s.modules - s.failed, s.failed);
  free(s.pair);
  return s.failed || s.made < s.legal ? 1 : 0;
}
