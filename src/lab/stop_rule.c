/* The stop rule (stop_rule.h): a group sequential design.
 *
 * alpha is spent as the number of processes grows (Lan and DeMets): stage 0
 * spends 4/5 of it, evenly; each further stage, twice as long as all before,
 * 4/5 of what is left. What a look may spend is turned into the alpha of its
 * interval by the joint law of the estimates: their sums behave like a Brownian
 * path seen at the looks, and the bound at each look is the one that a path
 * that stayed inside so far crosses with just the spent probability (Armitage,
 * McPherson and Rowe's recursive integration). Equal to "repeated confidence
 * intervals" (Jennison and Turnbull): all of a run's intervals hold the truth
 * at once with probability 1 - alpha, so SAME is as safe as FASTER.
 */
#include "lab/stop_rule.h"

#include <math.h>
#include <string.h>

#include "lab/stats.h"

enum {
  LOOKS = 6,       /* of stage 0, when it is long enough */
  LATER_LOOKS = 4, /* of each further stage */
  LEAST_STEP = 4,  /* processes between looks */
  GRID = 401       /* points of the density between the bounds; odd */
};

/* ---- when ---- */

static void add_stage(int32_t from, int32_t to, int32_t stage, int32_t want,
                      lw_look *out, int32_t *n) {
  int32_t most = (to - from) / LEAST_STEP;
  int32_t looks = most < 1 ? 1 : most < want ? most : want;
  for (int32_t k = 1; k <= looks && *n < LW_MAX_LOOKS; k++) {
    int64_t at = from + (int64_t)(to - from) * k / looks;
    out[(*n)++] = (lw_look){.processes = (int32_t)at, .stage = stage};
  }
}

/* ---- what may be spent by then ---- */

static double spent(const lw_stop_rule *r, int32_t processes) {
  double left = r->alpha, from = 0, to = r->max_processes;
  while (processes > to) {
    left *= 0.2;
    from = to;
    to *= 2;
  }
  double stage = 0.8 * left * (processes - from) / (to - from);
  return r->alpha - left + stage;
}

/* ---- the bounds ---- */

typedef struct {
  double bound;         /* paths inside +-bound went on */
  double density[GRID]; /* of where they are, at even steps */
  double time;
} front;

static double grid_at(const front *f, int k) {
  return f->bound * (2.0 * k / (GRID - 1) - 1);
}

static double simpson(int k) {
  return k == 0 || k == GRID - 1 ? 1 : k % 2 ? 4 : 2;
}

static double normal_density(double x, double sd) {
  double z = x / sd;
  return exp(-0.5 * z * z) * 0.3989422804014327 / sd;
}

/* The chance to be inside so far and beyond +-c at this look. */
static double crossing(const front *f, double sd, double c) {
  double sum = 0, step = 2 * f->bound / (GRID - 1);
  for (int k = 0; k < GRID; k++) {
    double x = grid_at(f, k);
    double beyond = lw_normal_cdf((x - c) / sd) + lw_normal_cdf((-c - x) / sd);
    sum += simpson(k) * f->density[k] * beyond;
  }
  return sum * step / 3;
}

static double first_crossing(double sd, double c) {
  return 2 * lw_normal_cdf(-c / sd);
}

static void advance(front *f, bool is_first, double sd, double c, double now) {
  front next = {.bound = c, .time = now};
  double step = is_first ? 0 : 2 * f->bound / (GRID - 1);
  for (int j = 0; j < GRID; j++) {
    double y = grid_at(&next, j), sum = 0;
    if (is_first) {
      next.density[j] = normal_density(y, sd);
      continue;
    }
    for (int k = 0; k < GRID; k++)
      sum += simpson(k) * f->density[k] * normal_density(y - grid_at(f, k), sd);
    next.density[j] = sum * step / 3;
  }
  *f = next;
}

static double find_bound(const front *f, bool is_first, double sd, double now,
                         double spend) {
  double low = 0, high = 9 * sqrt(now);
  for (int k = 0; k < 60; k++) {
    double mid = 0.5 * (low + high);
    double p = is_first ? first_crossing(sd, mid) : crossing(f, sd, mid);
    if (p > spend) {
      low = mid;
    } else {
      high = mid;
    }
  }
  return high;
}

int32_t lw_stop_looks(const lw_stop_rule *r, int32_t last_stage, lw_look *out) {
  int32_t n = 0, from = 0, to = r->max_processes;
  for (int32_t s = 0; s <= last_stage && to < (1 << 29); s++) {
    add_stage(from, to, s, s ? LATER_LOOKS : LOOKS, out, &n);
    from = to;
    to *= 2;
  }
  front f = {0};
  double before = 0;
  for (int32_t k = 0; k < n; k++) {
    double now = (double)out[k].processes / r->max_processes;
    double by_now = spent(r, out[k].processes), sd = sqrt(now - f.time);
    double c = find_bound(&f, k == 0, sd, now, by_now - before);
    out[k].alpha = 2 * lw_normal_cdf(-c / sqrt(now));
    advance(&f, k == 0, sd, c, now);
    before = by_now;
  }
  return n;
}
