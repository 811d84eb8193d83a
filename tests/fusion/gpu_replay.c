/* gpu_replay FUSION_IN DECISIONS.tsv PRIORITY_OUT.hlo: priority fusion's queue
 * and mechanics alone. What an edge costs, and whether it may be fused, is read
 * from a recorded run of XLA (and each kernel's kind from its result); the
 * order in which producers are taken, the questions that are asked, and every
 * name must then be XLA's. Prints the module; the first difference goes to
 * standard error, with exit status 3. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "fusion/fusion.h"
#include "fusion/gpu_queue.h"
#include "hlo/print.h"
#include "reader/proto.h"
#include "reader/reader.h"

typedef struct {
  char *kind, *producer, *consumer, *third, *fourth;
  int round; /* fusion lines before it */
  bool seen;
} line;

typedef struct {
  LW_VEC(line) lines;
  lw_trace *trace;
  lw_arena *arena;
  int failed;
} recorded;

static char *field(char **rest) {
  char *s = *rest, *tab = s ? strchr(s, '\t') : NULL;
  if (tab) *tab = '\0';
  *rest = tab ? tab + 1 : NULL;
  return s;
}

static void parse(recorded *r, char *text) {
  int round = 0;
  for (char *p = text; p && *p;) {
    char *end = strchr(p, '\n'), *rest = p;
    if (end) *end = '\0';
    line l = {.round = round};
    l.kind = field(&rest);
    l.producer = field(&rest);
    l.consumer = field(&rest);
    l.third = field(&rest);
    l.fourth = field(&rest);
    round += !strcmp(l.kind, "fusion");
    lw_vec_push(&r->lines, l);
    p = end ? end + 1 : NULL;
  }
}

static int fusions_so_far(const recorded *r) {
  int n = 0;
  for (size_t k = 0; k < lw_trace_count(r->trace); k++)
    n += lw_trace_at(r->trace, k)->text[0] && lw_trace_at(r->trace, k)->yes;
  return n;
}

static gpu_refusal can_fuse(void *state, const lw_inst *producer,
                            const lw_inst *consumer) {
  (void)state;
  (void)producer;
  (void)consumer;
  return (gpu_refusal){LW_REASON_FUSIBLE, NULL};
}
static lw_ticks no_time(void *state, const lw_inst *i) {
  (void)state;
  (void)i;
  return 0;
}
static lw_ticks no_edge_time(void *state, const lw_inst *p, const lw_inst *c) {
  (void)state;
  (void)p;
  (void)c;
  return 0;
}
static lw_fusion_kind some_kind(void *state, const lw_inst *p,
                                const lw_inst *c) {
  (void)state;
  (void)p;
  (void)c;
  return LW_FUSION_LOOP;
}
static void note(void *state, const lw_inst *i) {
  (void)state;
  (void)i;
}

static gpu_refusal judge(void *state, const lw_inst *producer,
                         lw_gpu_times *t) {
  recorded *r = state;
  int round = fusions_so_far(r);
  for (size_t k = 0; k < r->lines.len; k++) {
    line *l = &r->lines.data[k];
    if (l->round != round || !strcmp(l->kind, "fusion") ||
        strcmp(l->producer, producer->name))
      continue;
    l->seen = true;
    if (!strcmp(l->kind, "refused"))
      return (gpu_refusal){LW_REASON_CONSUMER_KIND, l->consumer};
    t->fused = (lw_ticks)(strtod(l->third, NULL) * 4000 +
                          (l->third[0] == '-' ? -0.5 : 0.5));
    t->unfused = (lw_ticks)(strtod(l->fourth, NULL) * 4000 +
                            (l->fourth[0] == '-' ? -0.5 : 0.5));
    return (gpu_refusal){LW_REASON_FUSIBLE, NULL};
  }
  if (!r->failed++)
    fprintf(stderr, "round %d: XLA does not ask about %s\n", round,
            producer->name);
  return (gpu_refusal){LW_REASON_CONSUMER_KIND, "not asked"};
}

static void compare(recorded *r) {
  size_t at = 0;
  for (size_t k = 0; k < lw_trace_count(r->trace) && !r->failed; k++) {
    const lw_decision *d = lw_trace_at(r->trace, k);
    if (!d->text[0] || !d->yes) continue;
    while (at < r->lines.len && strcmp(r->lines.data[at].kind, "fusion")) at++;
    const line *l = at < r->lines.len ? &r->lines.data[at++] : NULL;
    if (!l || strcmp(l->producer, d->producer) ||
        strcmp(l->consumer, d->consumer) || strcmp(l->third, d->text)) {
      fprintf(stderr, "round %d: %s into %s as %s; XLA: %s into %s as %s\n",
              l ? l->round : -1, d->producer, d->consumer, d->text,
              l ? l->producer : "", l ? l->consumer : "", l ? l->third : "");
      r->failed++;
    }
  }
  for (size_t k = 0; k < r->lines.len && !r->failed; k++) {
    const line *l = &r->lines.data[k];
    if (l->seen || !strcmp(l->kind, "fusion")) continue;
    fprintf(stderr, "round %d: XLA asks about %s\n", l->round, l->producer);
    r->failed++;
  }
}

static void set_kinds(lw_module *m, const lw_module *truth) {
  lw_map kinds = {0};
  for (const lw_comp *c = truth->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next)
      if (i->opcode == LW_OP_FUSION)
        *lw_map_put(&kinds, lw_hash_bytes(i->name, strlen(i->name), 1)) =
            (uint64_t)lw_inst_i64(i, LW_ATTR_KIND, 0);
  for (lw_comp *c = m->first_comp; c; c = c->next)
    for (lw_inst *i = c->first; i; i = i->next) {
      uint64_t *v =
          lw_map_get(&kinds, lw_hash_bytes(i->name, strlen(i->name), 1));
      if (i->opcode == LW_OP_FUSION && v)
        lw_inst_set_i64(i, LW_ATTR_KIND, (int64_t)*v);
    }
  lw_map_free(&kinds);
}

static lw_status run_sorts(lw_module *m, lw_pass_env *env) {
  bool changed;
  LW_TRY(lw_pass_variadic_op_splitter.run(m, env, &changed));
  return lw_pass_sort_iota_fusion.run(m, env, &changed);
}

static lw_status work(char **argv, int *code) {
  char *text, *tsv, *truth_text;
  size_t len, tsv_len, truth_len;
  lw_module *m, *truth;
  lw_context *ctx = lw_context_new();
  LW_TRY(lw_file_read(argv[1], &text, &len));
  LW_TRY(lw_file_read(argv[2], &tsv, &tsv_len));
  LW_TRY(lw_file_read(argv[3], &truth_text, &truth_len));
  LW_TRY(lw_read_proto(ctx, text, len, &m));
  LW_TRY(lw_read_text(ctx, truth_text, truth_len, argv[3], NULL, &truth));
  recorded r = {.trace = lw_trace_new()};
  lw_map stats = {0};
  parse(&r, tsv);
  lw_pass_env env = {
      .trace = r.trace, .scratch = lw_arena_new(), .fuel = -1, .stats = &stats};
  LW_TRY(run_sorts(m, &env));
  gpu_oracle o = {&r,        can_fuse, no_time, no_edge_time,
                  some_kind, note,     note,    judge};
  int32_t n;
  lw_comp **comps = gpu_comps_to_fuse(m, env.scratch, &n);
  for (int32_t k = 0; k < n; k++) gpu_queue_run(comps[k], &env, &o);
  compare(&r);
  set_kinds(m, truth);
  lw_buf b = {0};
  lw_module_print(&b, m, &lw_print_default);
  fputs(lw_buf_cstr(&b), stdout);
  *code = r.failed ? 3 : 0;
  return NULL;
}

int main(int argc, char **argv) {
  int code = 0;
  if (argc != 4) return 2;
  lw_status s = work(argv, &code);
  if (s) fprintf(stderr, "%s\n", lw_status_message(s));
  return s ? 1 : code;
}
