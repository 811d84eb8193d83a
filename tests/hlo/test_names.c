/* The numbers in names, case by case as XLA gives them (docs/names.md). */
#include "hlo/hlo.h"
#include "unit.h"

typedef struct {
  const char *want, *given;
} ask;

static void expect(const ask *asks, size_t n) {
  lw_context *ctx = lw_context_new();
  lw_map registry = {0};
  for (size_t k = 0; k < n; k++)
    assert_string_equal(lw_name_unique(ctx, &registry, asks[k].want),
                        asks[k].given);
  lw_map_free(&registry);
  lw_context_free(ctx);
}

#define EXPECT(...)                             \
  do {                                          \
    const ask asks[] = {__VA_ARGS__};           \
    expect(asks, sizeof asks / sizeof asks[0]); \
  } while (0)

static void first_come(void **state) {
  (void)state;
  EXPECT({"add", "add"}, {"add", "add.1"}, {"add", "add.2"});
  EXPECT({"add.7", "add.7"}, {"add", "add"}, {"add", "add.1"});
}

/* Whoever asked with a number is given one: 0, when it is free. */
static void zero_is_the_first_number(void **state) {
  (void)state;
  EXPECT({"add.3", "add.3"}, {"add.3", "add.0"}, {"add.3", "add.1"});
  EXPECT({"add", "add"}, {"add.0", "add.1"}, {"add.1", "add.2"});
}

static void taken_numbers_are_passed_over(void **state) {
  (void)state;
  EXPECT({"p.1", "p.1"}, {"p.2", "p.2"}, {"p", "p"}, {"p", "p.3"});
}

/* Only an integer behind the last point, with something before it. */
static void what_a_number_is(void **state) {
  (void)state;
  EXPECT({"a.clone", "a.clone"}, {"a.clone", "a.clone.1"},
         {"a.clone.1", "a.clone.2"});
  EXPECT({"a.", "a."}, {"a.", "a..1"});
  EXPECT({"a.007", "a.7"}, {"a.7", "a.0"});
  EXPECT({"a.99999999999999999999", "a.99999999999999999999"},
         {"a.99999999999999999999", "a.99999999999999999999.1"});
  EXPECT({"a.5", "a.5"}, {"a.5.0", "a.5.0"}, {"a.5.0", "a.5.1"});
}

static void a_copy_goes_on_counting(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_map one = {0}, two = {0};
  for (int k = 0; k < 3; k++) (void)lw_name_unique(ctx, &one, "add");
  lw_names_copy(&two, &one);
  assert_string_equal(lw_name_unique(ctx, &two, "add"), "add.3");
  lw_map_free(&one);
  lw_map_free(&two);
  lw_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(first_come),
      cmocka_unit_test(zero_is_the_first_number),
      cmocka_unit_test(taken_numbers_are_passed_over),
      cmocka_unit_test(what_a_number_is),
      cmocka_unit_test(a_copy_goes_on_counting),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
