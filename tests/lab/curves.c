/* Error rates and power of the statistics on simulated machines, as tables and
 * plots: what docs/measurement.md shows.
 *
 *   lab_curves [--seeds=N] [--svg=FILE] [--few]
 *
 * --few: only the table of comparisons with few processes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "noise.h"

static const lw_stop_rule rule = {0.05, 0.03, 60, 4};
static const struct {
  const char *name, *color;
  const noise_machine *machine;
} machines[] = {{"quiet", "#0060b9", &noise_quiet},
                {"shared", "#b84600", &noise_shared},
                {"rough", "#6b6b6b", &noise_rough}};
static const double effects[] = {0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.08, 0.12};

enum { MACHINES = 3, EFFECTS = sizeof effects / sizeof *effects };

typedef struct {
  int32_t count[5];
  double pairs;
} tally;

static tally run(const noise_machine *m, double effect, int seeds) {
  tally t = {{0}, 0};
  for (int s = 1; s <= seeds; s++) {
    noise_outcome o = noise_compare(m, &rule, effect, (uint64_t)s);
    t.count[o.verdict]++;
    t.pairs += (double)o.pairs / seeds;
  }
  return t;
}

/* The same samples, read in ways that are wrong. */
typedef struct {
  int32_t blocks_alone, peeking;
} wrong_ways;

static wrong_ways run_wrong(const noise_machine *m, int seeds) {
  enum { N = 60, BLOCKS = 4 };
  static double ratio[N * BLOCKS];
  static int32_t by_block[N * BLOCKS + 1], by_process[N + 1];
  wrong_ways w = {0, 0};
  for (int k = 0; k <= N * BLOCKS; k++) by_block[k] = k;
  for (int k = 0; k <= N; k++) by_process[k] = k * BLOCKS;
  for (int s = 1; s <= seeds; s++) {
    noise_state state = {0, {(uint64_t)s * 7919 + 13}};
    noise_blocks(m, &state, N, BLOCKS, 0, ratio);
    lw_estimate e;
    lw_log_ratios alone = {N * BLOCKS, by_block, ratio};
    lw_estimate_of(&alone, 0.05, 1, &e);
    w.blocks_alone += e.low > 0 || e.high < 0;
    bool called = false;
    for (int32_t n = 10; n <= N && !called; n += 10) {
      lw_log_ratios r = {n, by_process, ratio};
      lw_estimate_of(&r, 0.05, 1, &e);
      called = e.low > 0 || e.high < 0;
    }
    w.peeking += called;
  }
  return w;
}

/* The percentile interval is the one here without its widening, which normal
 * noise needs when there are few processes. */
static void print_few(int seeds) {
  enum { N = 6, BLOCKS = 4, FREEDOM = N - 2 * (N / 5) - 1 };
  int32_t first[N + 1];
  double ratio[N * BLOCKS];
  double widen = sqrt(((double)FREEDOM + 1) / (double)FREEDOM) *
                 lw_student_quantile(0.025, FREEDOM) /
                 lw_normal_quantile(0.025);
  for (int k = 0; k <= N; k++) first[k] = k * BLOCKS;
  printf("| machine | percentile | widened |\n|---|---|---|\n");
  for (int m = 0; m < MACHINES; m++) {
    int32_t plain = 0, wide = 0;
    for (int s = 1; s <= seeds; s++) {
      noise_state state = {0, {(uint64_t)s * 104729 + 1}};
      noise_blocks(machines[m].machine, &state, N, BLOCKS, 0, ratio);
      lw_estimate e;
      lw_log_ratios r = {N, first, ratio};
      lw_estimate_of(&r, 0.05, 1, &e);
      wide += e.low > 0 || e.high < 0;
      plain += e.center + (e.low - e.center) / widen > 0 ||
               e.center + (e.high - e.center) / widen < 0;
    }
    printf("| %s | %.1f %% | %.1f %% |\n", machines[m].name,
           100.0 * plain / seeds, 100.0 * wide / seeds);
  }
}

static void draw(FILE *f, const tally t[MACHINES][EFFECTS], int seeds) {
  fprintf(f,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 340\" "
          "font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n"
          "<title>How often a slowdown is found</title>\n<rect width=\"640\" "
          "height=\"340\" fill=\"#fff\"/>\n");
  for (int k = 0; k <= 5; k++)
    fprintf(f,
            "<path d=\"M60 %dH620\" stroke=\"#ccc\"/><text x=\"52\" y=\"%d\" "
            "text-anchor=\"end\">%d %%</text>\n",
            290 - 52 * k, 294 - 52 * k, 20 * k);
  for (int e = 0; e <= 12; e += 2)
    fprintf(f,
            "<text x=\"%.0f\" y=\"308\" text-anchor=\"middle\">%d "
            "%%</text>\n",
            60 + 560 * e / 12.0, e);
  fprintf(f,
          "<text x=\"340\" y=\"328\" text-anchor=\"middle\">b is really "
          "slower by</text>\n");
  for (int m = 0; m < MACHINES; m++) {
    fprintf(f,
            "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"%s\" "
            "points=\"",
            machines[m].color);
    for (int e = 0; e < EFFECTS; e++)
      fprintf(f, "%.1f,%.1f ", 60 + 560 * effects[e] / 0.12,
              290 - 260.0 * t[m][e].count[LW_SLOWER] / seeds);
    fprintf(f, "\"/>\n<text x=\"70\" y=\"%d\" fill=\"%s\">%s</text>\n",
            44 + 18 * m, machines[m].color, machines[m].name);
  }
  fprintf(f, "</svg>\n");
}

int main(int argc, char **argv) {
  int seeds = 200;
  bool few = false;
  const char *svg = NULL;
  for (int k = 1; k < argc; k++) {
    if (!strncmp(argv[k], "--seeds=", 8)) seeds = atoi(argv[k] + 8);
    if (!strncmp(argv[k], "--svg=", 6)) svg = argv[k] + 6;
    if (!strcmp(argv[k], "--few")) few = true;
  }
  if (seeds < 1) return 2;
  if (few) {
    print_few(seeds);
    return 0;
  }
  static tally t[MACHINES][EFFECTS];
  printf(
      "| machine | b slower by | SLOWER | FASTER | SAME | UNDECIDED | pairs "
      "|\n|---|---|---|---|---|---|---|\n");
  for (int m = 0; m < MACHINES; m++)
    for (int e = 0; e < EFFECTS; e++) {
      t[m][e] = run(machines[m].machine, effects[e], seeds);
      const int32_t *c = t[m][e].count;
      double p = 100.0 / seeds;
      printf("| %s | %g %% | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.0f |\n",
             machines[m].name, 100 * effects[e], p * c[LW_SLOWER],
             p * c[LW_FASTER], p * c[LW_SAME], p * c[LW_UNDECIDED],
             t[m][e].pairs);
      fflush(stdout);
    }
  printf(
      "\nFalse calls at a stated 5 %% when the samples are read wrongly:\n\n"
      "| machine | blocks without their processes | looking six times "
      "|\n|---|---|---|\n");
  for (int m = 0; m < MACHINES; m++) {
    wrong_ways w = run_wrong(machines[m].machine, seeds);
    printf("| %s | %.1f %% | %.1f %% |\n", machines[m].name,
           100.0 * w.blocks_alone / seeds, 100.0 * w.peeking / seeds);
  }
  if (!svg) return 0;
  FILE *f = fopen(svg, "we");
  if (!f) return 1;
  draw(f, t, seeds);
  return fclose(f) ? 1 : 0;
}
