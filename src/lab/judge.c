/* Timings to verdict (judge.h). */
#include "lab/judge.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"

/* ---- reading ---- */

typedef struct {
  const char *name;
  int line;
  int errors;
  lw_buf messages;
} reader;

enum { MOST_ERRORS = 20 };

static void complain(reader *r, const char *fmt, ...) LW_PRINTF(2, 3);
static void complain(reader *r, const char *fmt, ...) {
  if (r->errors++ >= MOST_ERRORS) return;
  lw_buf_printf(&r->messages, "%s:%d: error: ", r->name, r->line);
  va_list ap;
  va_start(ap, fmt);
  lw_buf_vprintf(&r->messages, fmt, ap);
  va_end(ap);
  lw_buf_chr(&r->messages, '\n');
}

/* Cuts a line at its commas, in place; blanks around a field go. */
static int split(char *line, char **field, int most) {
  int n = 0;
  for (char *p = line; p && n < most; n++) {
    char *comma = strchr(p, ',');
    if (comma) *comma = 0;
    while (isspace((unsigned char)*p)) p++;
    field[n] = p;
    char *end = p + strlen(p);
    while (end > p && isspace((unsigned char)end[-1])) *--end = 0;
    p = comma ? comma + 1 : NULL;
    if (n == most - 1 && p) return most + 1;
  }
  return n;
}

static bool read_whole(reader *r, const char *s, const char *what,
                       int64_t *out) {
  char *end;
  errno = 0;
  *out = strtoll(s, &end, 10);
  if (!errno && end != s && !*end) return true;
  complain(r, "'%.40s' is no %s: a whole number is needed", s, what);
  return false;
}

static bool read_side(reader *r, const char *s, int *out) {
  *out = tolower((unsigned char)s[0]) - 'a';
  if (s[0] && !s[1] && (*out == 0 || *out == 1)) return true;
  complain(r, "'%.40s' is no side: a or b is needed", s);
  return false;
}

static bool read_value(reader *r, const char *s, double *out) {
  char *end;
  *out = strtod(s, &end);
  if (end != s && !*end && *out > 0 && isfinite(*out)) return true;
  complain(r, "'%.40s' is no time: a number above 0 is needed", s);
  return false;
}

static void read_line(reader *r, char *line, lw_timings *out) {
  char *f[4];
  int n = split(line, f, 4);
  if (n == 1 && !*f[0]) return;
  if (n < 3 || n > 4) {
    complain(r, "%s fields; pair,side,value[,process] are needed",
             n > 4 ? "too many" : "too few");
    return;
  }
  lw_timing t = {0};
  if (!read_whole(r, f[0], "pair", &t.pair)) return;
  if (!read_side(r, f[1], &t.side)) return;
  if (!read_value(r, f[2], &t.value)) return;
  t.process = t.block = t.pair;
  if (n == 4 && !read_whole(r, f[3], "process", &t.process)) return;
  lw_vec_push(out, t);
}

static bool is_header(const char *line) {
  while (isspace((unsigned char)*line)) line++;
  return !strncasecmp(line, "pair", 4);
}

lw_status lw_timings_parse(const char *text, const char *name,
                           lw_timings *out) {
  *out = (lw_timings){0};
  reader r = {.name = name};
  if (!strncmp(text, "\xef\xbb\xbf", 3)) text += 3;
  bool may_be_header = true;
  while (*text) {
    size_t len = strcspn(text, "\n");
    char line[512];
    r.line++;
    if (len >= sizeof line) {
      complain(&r, "a line of %zu bytes", len);
    } else if (text[0] != '#') {
      memcpy(line, text, len);
      line[len] = 0;
      if (!(may_be_header && is_header(line))) read_line(&r, line, out);
      may_be_header = false;
    }
    text += len + (text[len] == '\n');
  }
  if (r.errors > MOST_ERRORS)
    lw_buf_printf(&r.messages, "%s: error: %d more bad lines\n", name,
                  r.errors - MOST_ERRORS);
  lw_status st =
      r.errors ? lw_error(LW_INVALID_ARGUMENT, "%s", lw_buf_cstr(&r.messages))
               : NULL;
  lw_buf_free(&r.messages);
  return st;
}

/* ---- pairing ---- */

typedef struct {
  int64_t id, process;
  double sum[2];
  int32_t n[2];
  int first_side;
} pair_sum;

typedef LW_VEC(pair_sum) pair_sums;

static void sum_up(const lw_timings *t, bool by_block, pair_sums *out) {
  lw_map at = {0};
  for (size_t k = 0; k < t->len; k++) {
    const lw_timing *x = &t->data[k];
    int64_t id = by_block ? x->block : x->pair;
    uint64_t *slot = lw_map_put(&at, (uint64_t)id);
    if (!*slot) {
      pair_sum p = {.id = id, .process = x->process, .first_side = x->side};
      lw_vec_push(out, p);
      *slot = out->len;
    }
    pair_sum *p = &out->data[*slot - 1];
    p->sum[x->side] += log(x->value);
    p->n[x->side]++;
  }
  lw_map_free(&at);
}

static lw_status check_pairs(const pair_sums *p, const lw_judgement *j) {
  if (!j->side[0].n || !j->side[1].n) return NULL;
  for (size_t k = 0; k < p->len; k++)
    for (int s = 0; s < 2; s++)
      if (!p->data[k].n[s])
        return lw_error(LW_INVALID_ARGUMENT, "pair %lld has no side %c",
                        (long long)p->data[k].id, 'a' + s);
  return NULL;
}

/* Blocks of one process stand together, in order of first appearance. */
static void estimate_pairs(const pair_sums *p, bool by_position, double alpha,
                           lw_estimate *out) {
  lw_map at = {0};
  LW_VEC(int32_t) owner = {0};
  int32_t n = 0, count = (int32_t)p->len;
  for (int32_t k = 0; k < count; k++) {
    uint64_t *slot = lw_map_put(&at, (uint64_t)p->data[k].process);
    if (!*slot) *slot = (uint64_t)++n;
    lw_vec_push(&owner, (int32_t)*slot - 1);
  }
  LW_VEC(int32_t) first = {0};
  LW_VEC(double) ratio = {0};
  for (int32_t i = 0; i < n; i++) {
    lw_vec_push(&first, (int32_t)ratio.len);
    for (int32_t k = 0; k < count; k++) {
      const pair_sum *x = &p->data[k];
      if (owner.data[k] != i) continue;
      double d = x->sum[1] / x->n[1] - x->sum[0] / x->n[0];
      if (by_position) d = x->first_side ? d : -d;
      lw_vec_push(&ratio, d);
    }
  }
  lw_vec_push(&first, (int32_t)ratio.len);
  lw_log_ratios r = {n, first.data, ratio.data};
  (void)lw_estimate_of(&r, alpha, 1, out);
  lw_map_free(&at);
  lw_vec_free(&owner);
  lw_vec_free(&first);
  lw_vec_free(&ratio);
}

static void spread_of_side(const lw_timings *t, int side, lw_spread *out) {
  LW_VEC(double) x = {0};
  for (size_t k = 0; k < t->len; k++)
    if (t->data[k].side == side) lw_vec_push(&x, t->data[k].value);
  lw_spread_of(x.data, (int32_t)x.len, out);
  lw_vec_free(&x);
}

static bool both_went_first(const pair_sums *p) {
  for (size_t k = 1; k < p->len; k++)
    if (p->data[k].first_side != p->data[0].first_side) return true;
  return false;
}

lw_status lw_judge(const lw_timings *t, double alpha, double margin,
                   lw_judgement *out) {
  *out = (lw_judgement){.verdict = LW_NO_COMPARISON, .margin = margin};
  if (!t->len) return lw_error(LW_INVALID_ARGUMENT, "no timings");
  for (int s = 0; s < 2; s++) spread_of_side(t, s, &out->side[s]);
  pair_sums p = {0};
  pair_sums blocks = {0};
  sum_up(t, false, &p);
  sum_up(t, true, &blocks);
  lw_status st = check_pairs(&p, out);
  if (!st && out->side[0].n && out->side[1].n) {
    out->pairs = (int64_t)p.len;
    estimate_pairs(&blocks, false, alpha, &out->estimate);
    out->has_position = both_went_first(&p);
    if (out->has_position) estimate_pairs(&p, true, alpha, &out->position);
    out->verdict = lw_verdict_of(&out->estimate, margin);
    const lw_estimate *e = &out->estimate;
    if (out->verdict == LW_UNDECIDED)
      out->pairs_needed =
          lw_processes_needed(e, margin, alpha) * out->pairs / e->processes;
  }
  lw_vec_free(&p);
  lw_vec_free(&blocks);
  return st;
}

/* ---- showing ---- */

static double percent(double ratio) { return 100 * (ratio - 1); }

static void print_side(lw_buf *b, char name, const lw_spread *s, double scale,
                       const char *unit) {
  lw_buf_printf(b, "  %c: median %.6g%s%s, %.6g..%.6g (%d)\n", name,
                s->median * scale, *unit ? " " : "", unit, s->min * scale,
                s->max * scale, s->n);
}

void lw_spread_print(lw_buf *b, const lw_spread *s, double scale,
                     const char *unit) {
  const char *gap = *unit ? " " : "";
  lw_buf_printf(b, "  %d runs: median %.6g%s%s, %.6g..%.6g\n", s->n,
                s->median * scale, gap, unit, s->min * scale, s->max * scale);
  lw_buf_printf(b,
                "  spread: %.1f %% as (max-min)/min, %.1f %% over the median\n",
                100 * s->over_min, 100 * s->over_median);
  if (s->n < 2) return;
  lw_buf_printf(b, "  position: the first is %+.1f %% from the rest's median",
                100 * s->first_off);
  if (s->n >= 3)
    lw_buf_printf(b, "; rank trend %+.2f (p %.2f)", s->trend, s->trend_p);
  lw_buf_printf(b,
                "\n  %d such runs a side could tell programs apart that differ "
                "by %.0f %% or more\n",
                s->n, 100 * s->resolves);
}

static void print_interval(lw_buf *b, const lw_estimate *e) {
  lw_buf_printf(b, "%.4f (%+.2f %%), %.4g %% interval %.4f..%.4f",
                exp(e->center), percent(exp(e->center)), 100 * (1 - e->alpha),
                exp(e->low), exp(e->high));
}

void lw_judgement_print(lw_buf *b, const lw_judgement *j, double scale,
                        const char *unit) {
  if (j->verdict == LW_NO_COMPARISON) {
    int s = j->side[0].n ? 0 : 1;
    lw_buf_printf(b, "NO COMPARISON: side %c alone\n", 'a' + s);
    lw_spread_print(b, &j->side[s], scale, unit);
    return;
  }
  lw_buf_printf(b, "%s: b/a ", lw_verdict_name(j->verdict));
  if (j->estimate.processes < 2) {
    lw_buf_printf(b, "%.4f; one process a side has no interval\n",
                  exp(j->estimate.center));
  } else {
    print_interval(b, &j->estimate);
    lw_buf_printf(b, "; %lld pairs, margin %g %%\n", (long long)j->pairs,
                  100 * j->margin);
  }
  print_side(b, 'a', &j->side[0], scale, unit);
  print_side(b, 'b', &j->side[1], scale, unit);
  if (j->pairs_needed)
    lw_buf_printf(b, "  about %lld pairs would decide (in 4 of 5 cases)\n",
                  (long long)j->pairs_needed);
  if (j->has_position) {
    lw_buf_str(b, "  first against second of a pair: ");
    print_interval(b, &j->position);
    lw_buf_chr(b, '\n');
  } else {
    lw_buf_str(b,
               "  one side went first in every pair: its position and its "
               "speed cannot be told apart\n");
  }
}

cJSON *lw_spread_json(const lw_spread *s) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddNumberToObject(o, "n", s->n);
  cJSON_AddNumberToObject(o, "min", s->min);
  cJSON_AddNumberToObject(o, "median", s->median);
  cJSON_AddNumberToObject(o, "max", s->max);
  cJSON_AddNumberToObject(o, "spread_over_min", s->over_min);
  cJSON_AddNumberToObject(o, "spread_over_median", s->over_median);
  cJSON_AddNumberToObject(o, "log_sd", s->log_sd);
  if (s->n < 2) return o;
  cJSON_AddNumberToObject(o, "first_off", s->first_off);
  cJSON_AddNumberToObject(o, "trend", s->trend);
  cJSON_AddNumberToObject(o, "trend_p", s->trend_p);
  cJSON_AddNumberToObject(o, "resolves", s->resolves);
  return o;
}

cJSON *lw_estimate_json(const lw_estimate *e) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddNumberToObject(o, "ratio", exp(e->center));
  if (e->processes > 1) {
    cJSON_AddNumberToObject(o, "low", exp(e->low));
    cJSON_AddNumberToObject(o, "high", exp(e->high));
  }
  cJSON_AddNumberToObject(o, "alpha", e->alpha);
  cJSON_AddNumberToObject(o, "processes", e->processes);
  cJSON_AddNumberToObject(o, "blocks", e->blocks);
  cJSON_AddNumberToObject(o, "process_sd", e->process_sd);
  cJSON_AddNumberToObject(o, "block_sd", e->block_sd);
  return o;
}

void lw_judgement_json(const lw_judgement *j, cJSON *into) {
  cJSON_AddStringToObject(into, "verdict", lw_verdict_name(j->verdict));
  cJSON_AddNumberToObject(into, "margin", j->margin);
  cJSON_AddNumberToObject(into, "pairs", (double)j->pairs);
  if (j->pairs_needed)
    cJSON_AddNumberToObject(into, "pairs_needed", (double)j->pairs_needed);
  if (j->estimate.processes)
    cJSON_AddItemToObject(into, "b_over_a", lw_estimate_json(&j->estimate));
  if (j->has_position)
    cJSON_AddItemToObject(into, "first_over_second",
                          lw_estimate_json(&j->position));
  for (int s = 0; s < 2; s++)
    if (j->side[s].n)
      cJSON_AddItemToObject(into, s ? "b" : "a", lw_spread_json(&j->side[s]));
}
