/* greed_tool TARGET FILE | TARGET --random FIRST COUNT: what greed costs.
 *
 * For a module in which priority-fusion asked about at most MOST producers:
 * every one of the 2^n ways to fuse them (each into all its readers or not at
 * all, by --force-edge and --forbid-edge; the passes behind it as ever), its
 * modelled time, the best of them and the greedy one's. One line a module:
 *
 *   name producers legal greedy_ns best_ns gap_percent [best leaves: ...]
 *
 * Modules with more producers, or none, are passed over. COUNT 1 prints the
 * module too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "driver/choose.h"
#include "driver/driver.h"
#include "gen/gen.h"
#include "hlo/print.h"

enum { MOST = 12 };

typedef struct {
  const lw_module *m;
  const char *target;
  lw_arena *a;
  int32_t n;
  const char *producer[MOST + 1], *reader[MOST + 1];
} search;

/* The unguarded strategy with these overrides; false: not legal. */
static bool time_of(const search *s, const char *force, const char *forbid,
                    lw_compiled **keep, double *ns) {
  lw_compile_options o = {.fusion = "priority",
                          .target = s->target,
                          .force_edges = force,
                          .forbid_edges = forbid,
                          .unguarded = true};
  lw_compiled *c = NULL;
  lw_worth w;
  lw_status st = lw_optimize(s->m, &o, &c);
  if (!st) {
    const lw_target *t = lw_compiled_target(c);
    lw_plan_options plan = {.kernel = {.l1_bytes = (int64_t)t->v.l1_bytes,
                                       .l2_bytes = (int64_t)t->v.l2_bytes}};
    st = lw_worth_of(lw_compiled_module(c), t, &plan, &w);
  }
  bool ok = st == NULL;
  if (ok) *ns = w.time_ns;
  lw_status_free(st);
  if (keep && ok)
    *keep = c;
  else
    lw_compiled_free(c);
  return ok;
}

/* The producers that the gates asked about, one reader each. */
static bool find_producers(search *s, const lw_trace *t) {
  for (size_t k = 0; k < lw_trace_count(t); k++) {
    const lw_decision *d = lw_trace_at(t, k);
    if (strcmp(d->pass, "priority-fusion") || d->gate != LW_GATE_PROFITABILITY)
      continue;
    bool seen = false;
    for (int32_t i = 0; i < s->n; i++)
      seen |= !strcmp(s->producer[i], d->producer);
    if (seen) continue;
    if (s->n == MOST) return false;
    s->producer[s->n] = lw_arena_printf(s->a, "%s", d->producer);
    s->reader[s->n++] = lw_arena_printf(s->a, "%s", d->consumer);
  }
  return s->n > 0;
}

static void edges(const search *s, unsigned set, lw_buf *force,
                  lw_buf *forbid) {
  for (int32_t k = 0; k < s->n; k++) {
    lw_buf *b = set >> k & 1 ? force : forbid;
    lw_buf_printf(b, "%s%s,%s", b->len ? ";" : "", s->producer[k],
                  s->reader[k]);
  }
}

static void print_left(const search *s, unsigned set) {
  printf(" best leaves:");
  for (int32_t k = 0; k < s->n; k++)
    if (!(set >> k & 1)) printf(" %s", s->producer[k]);
}

static void report(const char *name, const lw_module *m, const char *target) {
  search s = {.m = m, .target = target, .a = lw_arena_new()};
  lw_compiled *c = NULL;
  double greedy, best;
  int legal = 0;
  unsigned best_set = 0;
  if (time_of(&s, NULL, NULL, &c, &greedy) &&
      find_producers(&s, lw_compiled_trace(c))) {
    best = greedy;
    for (unsigned set = 0; set < 1u << s.n; set++) {
      lw_buf force = {0}, forbid = {0};
      double ns;
      edges(&s, set, &force, &forbid);
      if (time_of(&s, force.len ? lw_buf_cstr(&force) : NULL,
                  forbid.len ? lw_buf_cstr(&forbid) : NULL, NULL, &ns)) {
        legal++;
        if (ns < best) {
          best = ns;
          best_set = set;
        }
      }
      lw_buf_free(&force);
      lw_buf_free(&forbid);
    }
    printf("%s %d %d %.1f %.1f %.2f", name, s.n, legal, greedy, best,
           best > 0 ? (greedy / best - 1) * 100 : 0);
    if (best < greedy) print_left(&s, best_set);
    puts("");
    fflush(stdout);
  }
  lw_compiled_free(c);
  lw_arena_free(s.a);
}

static void report_random(const char *target, uint64_t first, long count) {
  lw_gen_options o = {.max_steps = 14};
  for (long k = 0; k < count; k++) {
    lw_context *ctx = lw_context_new();
    lw_rand r = {.state = first + (uint64_t)k};
    lw_module *m = lw_gen_module(ctx, &r, &o);
    char name[32];
    snprintf(name, sizeof name, "random-%llu",
             (unsigned long long)(first + (uint64_t)k));
    if (count == 1) {
      lw_buf text = {0};
      lw_module_print(&text, m, &lw_print_default);
      puts(lw_buf_cstr(&text));
      lw_buf_free(&text);
    }
    report(name, m, target);
    lw_module_free(m);
    lw_context_free(ctx);
  }
}

int main(int argc, char **argv) {
  if (argc == 5 && !strcmp(argv[2], "--random")) {
    report_random(argv[1], strtoull(argv[3], NULL, 10), atol(argv[4]));
    return 0;
  }
  if (argc != 3) return 2;
  lw_context *ctx = lw_context_new();
  lw_module *m = NULL;
  lw_status st = lw_load_module(ctx, argv[2], NULL, NULL, &m);
  if (!st) report(argv[2], m, argv[1]);
  if (st) fprintf(stderr, "%s\n", lw_status_message(st));
  int code = st != NULL;
  lw_status_free(st);
  if (m) lw_module_free(m);
  lw_context_free(ctx);
  return code;
}
