/* The statistics keep their word on simulated machines. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/judge.h"
#include "noise.h"
#include "unit.h"

static const lw_stop_rule rule = {0.05, 0.03, 60, 4};

static void quantiles(void **state) {
  (void)state;
  assert_float_equal((float)lw_normal_quantile(0.975), 1.959964f, 1e-5f);
  assert_float_equal((float)lw_student_quantile(0.975, 5), 2.570582f, 1e-5f);
  assert_float_equal((float)lw_student_quantile(0.995, 3), 5.840909f, 1e-5f);
  assert_float_equal((float)lw_student_quantile(0.05, 1), -6.313752f, 1e-4f);
}

/* Walks of many steps cross the looks' bounds as often as the rule says. */
static void looks_spend_alpha(void **state) {
  (void)state;
  lw_look looks[LW_MAX_LOOKS];
  int32_t n = lw_stop_looks(&rule, 1, looks);
  assert_int_equal(looks[n - 1].processes, 2 * rule.max_processes);
  enum { WALKS = 20000 };
  int32_t crossed = 0;
  lw_rng64 g = {5};
  for (int w = 0; w < WALKS; w++) {
    double at = 0, time = 0;
    for (int32_t k = 0; k < n; k++) {
      at += sqrt(looks[k].processes - time) * lw_rng64_normal(&g);
      time = looks[k].processes;
      double z = -lw_normal_quantile(looks[k].alpha / 2);
      if (fabs(at) > z * sqrt(time)) {
        crossed++;
        break;
      }
    }
  }
  /* Two stages spend 4/5 and 4/25 of 0.05; 3 sd of the count are 0.0044. */
  assert_true(fabs((double)crossed / (double)WALKS - 0.048) < 0.0044);
}

static void few_false_calls(void **state) {
  (void)state;
  int32_t calls = 0;
  for (uint64_t s = 1; s <= 200; s++) {
    lw_verdict v = noise_compare(&noise_shared, &rule, 0, s).verdict;
    calls += v == LW_FASTER || v == LW_SLOWER;
  }
  print_message("false calls: %d of 200\n", calls);
  assert_true(calls <= 18);
}

/* Without a margin that takes small ones for SAME. */
static void few_false_calls_without_a_margin(void **state) {
  (void)state;
  static const lw_stop_rule strict = {0.05, 0.0001, 40, 4};
  int32_t calls = 0;
  for (uint64_t s = 1; s <= 200; s++) {
    lw_verdict v = noise_compare(&noise_quiet, &strict, 0, s).verdict;
    calls += v == LW_FASTER || v == LW_SLOWER;
  }
  print_message("false calls without a margin: %d of 200\n", calls);
  assert_true(calls <= 18);
}

static void finds_three_percent(void **state) {
  (void)state;
  int32_t found = 0;
  for (uint64_t s = 1; s <= 20; s++) {
    noise_outcome o = noise_compare(&noise_shared, &rule, 0.03, s);
    found += o.verdict == LW_SLOWER;
    assert_true(o.pairs <= 480);
  }
  print_message("found: %d of 20\n", found);
  assert_true(found >= 18);
}

static void says_same(void **state) {
  (void)state;
  int32_t same = 0;
  for (uint64_t s = 1; s <= 20; s++)
    same += noise_compare(&noise_quiet, &rule, 0, s).verdict == LW_SAME;
  assert_true(same >= 19);
}

/* Six values with this least, median and largest; the rest anywhere between. */
static void draw_six(lw_rng64 *g, double min, double median, double max,
                     double *x) {
  double room = fmin(median - min, max - median) * lw_rng64_unit(g);
  x[0] = min;
  x[1] = median - room;
  x[2] = median + room;
  x[3] = max;
  x[4] = min + (x[1] - min) * lw_rng64_unit(g);
  x[5] = x[2] + (max - x[2]) * lw_rng64_unit(g);
  for (int k = 5; k > 0; k--) {
    int j = lw_rng64_below(g, k + 1);
    double v = x[k];
    x[k] = x[j];
    x[j] = v;
  }
}

static void six_pairs(lw_rng64 *g, lw_timings *t) {
  double a[6], b[6];
  int ahead;
  do { /* fused (a) was ahead in five of six */
    draw_six(g, 137.2, 153.4, 191.9, a);
    draw_six(g, 151.2, 165.5, 201.7, b);
    ahead = 0;
    for (int k = 0; k < 6; k++) ahead += a[k] < b[k];
  } while (ahead != 5);
  t->len = 0;
  for (int k = 0; k < 6; k++)
    for (int s = 0; s < 2; s++) {
      int side = k % 2 ? !s : s;
      lw_timing x = {k, k, k, side, side ? b[k] : a[k]};
      lw_vec_push(t, x);
    }
}

static void chapters_pairs_stay_undecided(void **state) {
  (void)state;
  int32_t undecided = 0;
  lw_timings t = {0};
  for (uint64_t s = 1; s <= 1000; s++) {
    lw_rng64 g = {s};
    six_pairs(&g, &t);
    lw_judgement j;
    assert_null(lw_judge(&t, 0.05, 0.03, &j));
    undecided += j.verdict == LW_UNDECIDED && j.pairs_needed > 6;
  }
  lw_vec_free(&t);
  print_message("undecided, with a count: %d of 1000\n", undecided);
  assert_true(undecided >= 950);
}

static void chapters_six_processes(void **state) {
  (void)state;
  static const char csv[] =
      "pair,side,value\n1,a,170.2\n2,a,147.6\n3,a,147.6\n4,a,182.7\n"
      "5,a,166.5\n6,a,200.4\n";
  lw_timings t;
  assert_null(lw_timings_parse(csv, "six", &t));
  lw_judgement j;
  assert_null(lw_judge(&t, 0.05, 0.03, &j));
  assert_int_equal(j.verdict, LW_NO_COMPARISON);
  const lw_spread *s = &j.side[0];
  assert_float_equal((float)s->over_min, 0.3577f, 1e-3f);
  assert_float_equal((float)s->over_median, 0.3136f, 1e-3f);
  assert_float_equal((float)s->first_off, 0.0222f, 1e-3f);
  assert_true(s->trend_p > 0.1);
  assert_true(s->resolves > 0.15 && s->resolves < 0.4);
  lw_vec_free(&t);
}

/* Blocks of one process are no repetitions: without their processes' names
 * the same samples would give an interval far too short. */
static void processes_count(void **state) {
  (void)state;
  noise_machine m = {0.05, 0.005, 0, 0, 0, 0};
  noise_state s = {0, {3}};
  double ratio[60];
  noise_blocks(&m, &s, 6, 10, 0, ratio);
  int32_t first[61];
  for (int k = 0; k <= 60; k++) first[k] = k;
  lw_estimate alone, grouped;
  lw_log_ratios r = {60, first, ratio};
  lw_estimate_of(&r, 0.05, 1, &alone);
  for (int k = 0; k <= 6; k++) first[k] = 10 * k;
  r.n = 6;
  lw_estimate_of(&r, 0.05, 1, &grouped);
  assert_true(grouped.high - grouped.low > 2 * (alone.high - alone.low));
  assert_true(grouped.process_sd > 5 * grouped.block_sd);
}

static void bad_lines_are_named(void **state) {
  (void)state;
  lw_timings t;
  lw_status st = lw_timings_parse(
      "pair,side,value\n1,a,5\n1,c,5\nx,b,5\n2,a,-1\n2,a\n3,b,nan\n", "f.csv",
      &t);
  assert_int_equal(lw_status_code(st), LW_INVALID_ARGUMENT);
  const char *m = lw_status_message(st);
  const char *want[] = {
      "f.csv:3: error: 'c' is no side", "f.csv:4: error: 'x' is no pair",
      "f.csv:5: error: '-1' is no time", "f.csv:6: error: too few fields",
      "f.csv:7: error: 'nan' is no time"};
  for (size_t k = 0; k < sizeof want / sizeof *want; k++)
    assert_non_null(strstr(m, want[k]));
  lw_status_free(st);
  lw_vec_free(&t);
  assert_null(lw_timings_parse("1,a,2\n1,b,2\n2,a,2\n", "f", &t));
  lw_judgement j;
  st = lw_judge(&t, 0.05, 0.03, &j);
  assert_string_equal(lw_status_message(st), "pair 2 has no side b");
  lw_status_free(st);
  lw_vec_free(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(quantiles),
      cmocka_unit_test(looks_spend_alpha),
      cmocka_unit_test(few_false_calls),
      cmocka_unit_test(few_false_calls_without_a_margin),
      cmocka_unit_test(finds_three_percent),
      cmocka_unit_test(says_same),
      cmocka_unit_test(chapters_pairs_stay_undecided),
      cmocka_unit_test(chapters_six_processes),
      cmocka_unit_test(processes_count),
      cmocka_unit_test(bad_lines_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
