#include "noise.h"

#include <math.h>

const noise_machine noise_quiet = {0.008, 0.01, 0.001, 0, 0.01, 0.2};
const noise_machine noise_shared = {0.02, 0.03, 0.005, 0.03, 0.03, 0.4};
const noise_machine noise_rough = {0.05, 0.06, 0.02, 0.1, 0.1, 0.7};

static double sample(const noise_machine *m, noise_state *s, double log_time) {
  lw_rng64 *g = &s->rng;
  s->drift += m->drift_sd * lw_rng64_normal(g);
  double t = log_time + s->drift + m->sample_sd * lw_rng64_normal(g);
  if (lw_rng64_unit(g) < m->burst) t -= m->burst_size * log(lw_rng64_unit(g));
  return t;
}

static double deal(const noise_machine *m, lw_rng64 *g) {
  double t = m->process_sd * lw_rng64_normal(g);
  if (lw_rng64_unit(g) < m->slow_start) t += 0.15 + 0.3 * lw_rng64_unit(g);
  return t;
}

static double block(const noise_machine *m, noise_state *s, double a,
                    double b) {
  bool mirrored = lw_rng64_unit(&s->rng) < 0.5;
  double sum = 0;
  for (int k = 0; k < 4; k++) {
    bool is_b = (k == 1 || k == 2) != mirrored;
    double t = sample(m, s, is_b ? b : a);
    sum += is_b ? t : -t;
  }
  return sum / 2;
}

void noise_blocks(const noise_machine *m, noise_state *s, int32_t n,
                  int32_t blocks, double effect, double *ratio) {
  for (int32_t i = 0; i < n; i++) {
    double a = deal(m, &s->rng);
    double b = deal(m, &s->rng) + log1p(effect);
    for (int32_t k = 0; k < blocks; k++)
      ratio[i * blocks + k] = block(m, s, a, b);
  }
}

enum { MOST = 4096 };

noise_outcome noise_compare(const noise_machine *m, const lw_stop_rule *rule,
                            double effect, uint64_t seed) {
  static double ratio[MOST];
  static int32_t first[MOST + 1];
  noise_state s = {0, {seed * 7919 + 13}};
  lw_look looks[LW_MAX_LOOKS];
  int32_t n_looks = lw_stop_looks(rule, 0, looks), done = 0;
  int32_t blocks = rule->blocks_a_process;
  for (int32_t i = 0; i <= rule->max_processes; i++) first[i] = i * blocks;
  noise_outcome o = {.verdict = LW_UNDECIDED};
  for (int32_t k = 0; k < n_looks && o.verdict == LW_UNDECIDED; k++) {
    noise_blocks(m, &s, looks[k].processes - done, blocks, effect,
                 ratio + done * blocks);
    done = looks[k].processes;
    lw_log_ratios r = {done, first, ratio};
    lw_estimate_of(&r, looks[k].alpha, seed, &o.estimate);
    o.verdict = lw_verdict_of(&o.estimate, rule->margin);
    o.pairs = 2 * done * blocks;
  }
  return o;
}
