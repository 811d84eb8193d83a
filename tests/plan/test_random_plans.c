/* Random modules through passes and plan, checked symbolically: no code is
 * made, so many can be tried. */
#include "../unit.h"
#include "driver/driver.h"
#include "gen/gen.h"
#include "hlo/print.h"

enum { MODULES = 150 };

static const char *const strategies[] = {"none", "xla", "priority"};

/* True when the module has code on this target. */
static bool check_one(uint64_t seed, const char *strategy, bool no_alias) {
  lw_context *ctx = lw_context_new();
  lw_rand r = {.state = seed};
  lw_gen_options g = {.control_flow = true, .heavy = true};
  lw_module *m = lw_gen_module(ctx, &r, &g);
  lw_compile_options o = {.fusion = strategy, .no_alias = no_alias};
  lw_compiled *c;
  lw_status st = lw_compile_to_plan(m, &o, &c);
  bool planned = lw_status_code(st) != LW_UNIMPLEMENTED;
  if (!planned) {
    lw_status_free(st);
  } else {
    if (!st) st = lw_plan_check(lw_compiled_plan(c));
    if (st) {
      fail_msg("seed %llu, fusion %s: %s", (unsigned long long)seed, strategy,
               lw_status_message(st));
    }
    lw_compiled_free(c);
  }
  lw_module_free(m);
  lw_context_free(ctx);
  return planned;
}

static void test_random_plans(void **state) {
  (void)state;
  int planned = 0;
  for (uint64_t seed = 0; seed < MODULES; seed++) {
    planned += check_one(seed, strategies[seed % 3], seed % 5 == 4);
  }
  assert_true(planned > MODULES * 9 / 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_plans)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
