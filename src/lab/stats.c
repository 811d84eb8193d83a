/* Statistics of timings (stats.h).
 *
 * The interval. Blocks share their processes, and a process keeps what it was
 * dealt at its start (addresses, pages, threads' places): the process is what
 * must be repeated. The estimate is the 20 % trimmed mean of the processes'
 * mean log ratios. Its interval is a bootstrap over processes, then over the
 * blocks inside each. Drawing both levels as they stand counts the blocks'
 * noise twice (it is in the processes' means already), so processes' means are
 * drawn in towards the centre by what the blocks of the median process add; the
 * spread of the whole is then that of the means. Few processes make a bootstrap
 * too narrow: the draws' distances from the centre are widened by
 * sqrt(m/(m-1)), m being the processes that are not trimmed away, and by
 * Student's quantile over the normal one. tests/lab/test_stats.c checks the
 * error rates of the whole on simulated machines, tests/lab/curves.c draws
 * them.
 */
#include "lab/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* ---- numbers ---- */

uint64_t lw_rng64_next(lw_rng64 *r) {
  uint64_t z = r->state += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

double lw_rng64_unit(lw_rng64 *r) {
  return ((double)(lw_rng64_next(r) >> 12) + 0.5) * 0x1p-52;
}

int32_t lw_rng64_below(lw_rng64 *r, int32_t n) {
  return (int32_t)(((lw_rng64_next(r) >> 32) * (uint64_t)n) >> 32);
}

double lw_rng64_normal(lw_rng64 *r) {
  double radius = sqrt(-2 * log(lw_rng64_unit(r)));
  return radius * cos(6.283185307179586 * lw_rng64_unit(r));
}

double lw_normal_cdf(double z) { return 0.5 * erfc(-z * 0.7071067811865476); }

/* The root of a rising function. */
static double solve(double (*f)(double x, double a), double a, double want,
                    double low, double high) {
  for (int k = 0; k < 100; k++) {
    double mid = 0.5 * (low + high);
    if (f(mid, a) < want) {
      low = mid;
    } else {
      high = mid;
    }
  }
  return 0.5 * (low + high);
}

static double normal_of(double z, double unused) {
  (void)unused;
  return lw_normal_cdf(z);
}

double lw_normal_quantile(double p) {
  if (p > 0.5) return -lw_normal_quantile(1 - p);
  return solve(normal_of, 0, p, -38, 0);
}

/* The incomplete beta function's continued fraction, by Lentz's method
 * (NIST DLMF 8.17.22). */
static double beta_fraction(double a, double b, double x) {
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
  double h = d;
  for (int m = 1; m < 500; m++) {
    for (int odd = 0; odd < 2; odd++) {
      double t =
          odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
              : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
      d = 1 + t * d;
      c = 1 + t / c;
      d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
      if (fabs(c) < 1e-300) c = 1e-300;
      h *= d * c;
    }
    if (fabs(d * c - 1) < 1e-15) break;
  }
  return h;
}

static double beta_inc(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  double front =
      exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

static double student_cdf(double t, double v) {
  double tail = 0.5 * beta_inc(0.5 * v, 0.5, v / (v + t * t));
  return t < 0 ? tail : 1 - tail;
}

double lw_student_quantile(double p, double v) {
  if (p > 0.5) return -lw_student_quantile(1 - p, v);
  double low = -2;
  while (student_cdf(low, v) > p && low > -1e15) low *= 2;
  return solve(student_cdf, v, p, low, 0);
}

/* Shell's: the arrays are short, and a call a comparison would cost most. */
void lw_sort_doubles(double *x, int32_t n) {
  static const int32_t gaps[] = {3905, 1750, 701, 301, 132, 57, 23, 10, 4, 1};
  for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
    for (int32_t i = gaps[g]; i < n; i++) {
      double v = x[i];
      int32_t j = i;
      for (; j >= gaps[g] && x[j - gaps[g]] > v; j -= gaps[g])
        x[j] = x[j - gaps[g]];
      x[j] = v;
    }
  }
}

static void *allocate(size_t n, size_t size) {
  void *p = calloc(n + 1, size);
  if (!p) lw_oom(n * size);
  return p;
}

static double sorted_median(const double *x, int32_t n) {
  return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

double lw_median_of(const double *x, int32_t n) {
  double *copy = allocate((size_t)n, sizeof *copy);
  memcpy(copy, x, (size_t)n * sizeof *copy);
  lw_sort_doubles(copy, n);
  double m = sorted_median(copy, n);
  free(copy);
  return m;
}

/* ---- the interval ---- */

enum { RESAMPLES = 2000 };

static int32_t trimmed_away(int32_t n) { return n / 5; }

/* Sorts x. */
static double trimmed_mean(double *x, int32_t n) {
  int32_t g = trimmed_away(n);
  lw_sort_doubles(x, n);
  double sum = 0;
  for (int32_t k = g; k < n - g; k++) sum += x[k];
  return sum / (double)(n - 2 * g);
}

typedef struct {
  const lw_log_ratios *r;
  double *mean;   /* of each process */
  double *draw;   /* scratch of n */
  double between; /* spread of the means, squared, as drawn */
  double within;  /* what drawing blocks adds to it */
  double pull;    /* towards the centre, see above */
} two_levels;

static int32_t blocks_in(const lw_log_ratios *r, int32_t i) {
  return r->first[i + 1] - r->first[i];
}

/* Own spread of process i: the variance that drawing its blocks gives to its
 * mean; *squares gets the sum it was made from. */
static double drawn_variance(const two_levels *t, int32_t i, double *squares) {
  const lw_log_ratios *r = t->r;
  double own = 0, m = blocks_in(r, i);
  for (int32_t k = r->first[i]; k < r->first[i + 1]; k++) {
    double d = r->ratio[k] - t->mean[i];
    own += d * d;
  }
  *squares += own;
  return own / (m * m);
}

/* The median process says how much drawing blocks adds: a burst of load in a
 * few must not draw in the means of all. */
static void measure_levels(two_levels *t, lw_estimate *e) {
  const lw_log_ratios *r = t->r;
  double grand = 0, squares = 0;
  for (int32_t i = 0; i < r->n; i++) {
    for (int32_t k = r->first[i]; k < r->first[i + 1]; k++)
      t->mean[i] += r->ratio[k] / blocks_in(r, i);
    t->draw[i] = drawn_variance(t, i, &squares);
    grand += t->mean[i] / r->n;
  }
  t->within = lw_median_of(t->draw, r->n);
  for (int32_t i = 0; i < r->n; i++) {
    double d = t->mean[i] - grand;
    t->between += d * d / r->n;
  }
  int32_t spare = e->blocks - r->n;
  if (r->n > 1) e->process_sd = sqrt(t->between * r->n / (r->n - 1));
  e->block_sd = spare > 0 ? sqrt(squares / spare) : 0;
  double left = t->between > 0 ? 1 - t->within / t->between : 0;
  t->pull = left > 0 ? sqrt(left) : 0;
}

static double draw_center(two_levels *t, double center, lw_rng64 *g) {
  const lw_log_ratios *r = t->r;
  for (int32_t k = 0; k < r->n; k++) {
    int32_t i = lw_rng64_below(g, r->n), m = blocks_in(r, i);
    double x = center + t->pull * (t->mean[i] - center);
    if (m > 1) {
      double sum = 0;
      for (int32_t b = 0; b < m; b++)
        sum += r->ratio[r->first[i] + lw_rng64_below(g, m)];
      x += sum / m - t->mean[i];
    }
    t->draw[k] = x;
  }
  return trimmed_mean(t->draw, r->n);
}

static double quantile(const double *sorted, int32_t n, double p) {
  double at = p * (n - 1);
  int32_t k = (int32_t)at;
  if (k >= n - 1) return sorted[n - 1];
  return sorted[k] + (at - k) * (sorted[k + 1] - sorted[k]);
}

/* Freedom of the trimmed mean's spread: what was not trimmed away, less one. */
static double freedom_of(int32_t n) { return n - 2 * trimmed_away(n) - 1; }

static void bootstrap(two_levels *t, uint64_t seed, lw_estimate *e) {
  double *all = allocate(RESAMPLES, sizeof *all);
  lw_rng64 g = {seed};
  for (int k = 0; k < RESAMPLES; k++) all[k] = draw_center(t, e->center, &g);
  lw_sort_doubles(all, RESAMPLES);
  double freedom = freedom_of(t->r->n), half = e->alpha / 2;
  double widen = sqrt((freedom + 1) / freedom) *
                 lw_student_quantile(half, freedom) / lw_normal_quantile(half);
  e->low = e->center + widen * (quantile(all, RESAMPLES, half) - e->center);
  e->high =
      e->center + widen * (quantile(all, RESAMPLES, 1 - half) - e->center);
  free(all);
}

bool lw_estimate_of(const lw_log_ratios *r, double alpha, uint64_t seed,
                    lw_estimate *out) {
  *out = (lw_estimate){.alpha = alpha, .processes = r->n};
  if (r->n < 1) return false;
  out->blocks = r->first[r->n] - r->first[0];
  two_levels t = {.r = r,
                  .mean = allocate((size_t)r->n, sizeof(double)),
                  .draw = allocate((size_t)r->n, sizeof(double))};
  measure_levels(&t, out);
  memcpy(t.draw, t.mean, (size_t)r->n * sizeof(double));
  out->center = trimmed_mean(t.draw, r->n);
  out->low = out->high = out->center;
  if (r->n > 1) bootstrap(&t, seed, out);
  free(t.mean);
  free(t.draw);
  return r->n > 1;
}

/* ---- verdicts ---- */

const char *lw_verdict_name(lw_verdict v) {
  static const char *const names[] = {"FASTER", "SLOWER", "SAME", "UNDECIDED",
                                      "NO COMPARISON"};
  return names[v];
}

lw_verdict lw_verdict_of(const lw_estimate *e, double margin) {
  double m = log1p(margin);
  if (e->processes < 2) return LW_UNDECIDED;
  if (e->low >= -m && e->high <= m) return LW_SAME;
  if (e->high < 0) return LW_FASTER;
  return e->low > 0 ? LW_SLOWER : LW_UNDECIDED;
}

/* An interval decides when it is short enough either to leave out 0 or to lie
 * within the margin: whichever is easier from where the estimate is. */
int64_t lw_processes_needed(const lw_estimate *e, double margin, double alpha) {
  if (e->processes < 2 || !(e->high > e->low)) return 0;
  double m = log1p(margin), off = fabs(e->center);
  double reach = off > m - off ? off : m - off;
  double se = 0.5 * (e->high - e->low) /
              -lw_student_quantile(e->alpha / 2, freedom_of(e->processes));
  double z = -lw_normal_quantile(alpha / 2) + lw_normal_quantile(0.8);
  double n = e->processes * (se * z / reach) * (se * z / reach);
  int64_t most = (int64_t)1 << 40;
  int64_t whole = n < (double)most ? (int64_t)ceil(n) : most;
  return whole > e->processes ? whole : e->processes + 1;
}

/* ---- one program alone ---- */

/* Ranks, ties sharing the mean of theirs. */
static void rank(const double *x, int32_t n, double *out) {
  for (int32_t i = 0; i < n; i++) {
    double below = 0, equal = 0;
    for (int32_t j = 0; j < n; j++) {
      below += x[j] < x[i];
      equal += x[j] == x[i];
    }
    out[i] = below + 0.5 * (equal - 1);
  }
}

static double correlation(const double *x, const double *y, int32_t n) {
  double mx = 0, my = 0, xy = 0, xx = 0, yy = 0;
  for (int32_t i = 0; i < n; i++) {
    mx += x[i] / n;
    my += y[i] / n;
  }
  for (int32_t i = 0; i < n; i++) {
    xy += (x[i] - mx) * (y[i] - my);
    xx += (x[i] - mx) * (x[i] - mx);
    yy += (y[i] - my) * (y[i] - my);
  }
  return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}

/* Rank correlation with position, and how rare it is among random orders. */
static void find_trend(const double *x, int32_t n, lw_spread *s) {
  enum { ORDERS = 2000, MOST = 2000 };
  s->trend_p = 1;
  if (n < 3 || n > MOST) return;
  double *r = allocate((size_t)n, sizeof *r);
  double *at = allocate((size_t)n, sizeof *at);
  rank(x, n, r);
  for (int32_t k = 0; k < n; k++) at[k] = k;
  s->trend = correlation(r, at, n);
  lw_rng64 g = {1};
  int32_t as_strong = 1;
  for (int32_t o = 0; o < ORDERS; o++) {
    for (int32_t k = n - 1; k > 0; k--) {
      int32_t j = lw_rng64_below(&g, k + 1);
      double v = at[k];
      at[k] = at[j];
      at[j] = v;
    }
    as_strong += fabs(correlation(r, at, n)) >= fabs(s->trend) - 1e-12;
  }
  s->trend_p = as_strong / ((double)ORDERS + 1);
  free(r);
  free(at);
}

static double log_sd(const double *x, int32_t n) {
  double mean = 0, sum = 0;
  for (int32_t k = 0; k < n; k++) mean += log(x[k]) / n;
  for (int32_t k = 0; k < n; k++)
    sum += (log(x[k]) - mean) * (log(x[k]) - mean);
  return n > 1 ? sqrt(sum / (n - 1)) : 0;
}

void lw_spread_of(const double *x, int32_t n, lw_spread *out) {
  *out = (lw_spread){.n = n, .trend_p = 1};
  if (n < 1) return;
  out->min = out->max = x[0];
  for (int32_t k = 1; k < n; k++) {
    out->min = fmin(out->min, x[k]);
    out->max = fmax(out->max, x[k]);
  }
  out->median = lw_median_of(x, n);
  out->over_min = (out->max - out->min) / out->min;
  out->over_median = (out->max - out->min) / out->median;
  if (n < 2) return;
  out->log_sd = log_sd(x, n);
  out->first_off = x[0] / lw_median_of(x + 1, n - 1) - 1;
  double freedom = 2 * n - 2;
  double t =
      -lw_student_quantile(0.025, freedom) + lw_student_quantile(0.8, freedom);
  out->resolves = expm1(t * out->log_sd * sqrt(2.0 / n));
  find_trend(x, n, out);
}
