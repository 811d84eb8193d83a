/* How often loops run, by their text: every direction, both operand orders,
 * steps up and down, wrapping, and what must stay unknown. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "hlo/trip_count.h"
#include "reader/reader.h"

typedef struct {
  const char *type, *start, *next, *cond;
  int64_t want;
} row;

/* i: the counter; k: a constant step; n: an element handed through (10);
 * m: one that changes. */
static const row rows[] = {
    {"s32", "0", "add(i, k1)", "compare(i, k10), direction=LT", 10},
    {"s32", "0", "add(i, k1)", "compare(i, k10), direction=LE", 11},
    {"s32", "0", "add(k3, i)", "compare(i, k10), direction=LT", 4},
    {"s32", "0", "add(i, k1)", "compare(k10, i), direction=GT", 10},
    {"s32", "0", "add(i, k1)", "compare(i, n), direction=LT", 10},
    {"s32", "0", "add(i, k1)", "compare(i, m), direction=LT", -1},
    {"s32", "10", "subtract(i, k3)", "compare(i, k1), direction=GE", 4},
    {"s32", "10", "subtract(i, k3)", "compare(i, k1), direction=GT", 3},
    {"s32", "4", "add(i, k3)", "compare(i, k10), direction=NE", 2},
    {"s32", "0", "add(i, k3)", "compare(i, k10), direction=NE", -1},
    {"s32", "10", "add(i, k3)", "compare(i, k10), direction=EQ", 1},
    {"s32", "10", "add(i, k1)", "compare(i, k10), direction=LT", 0},
    {"s32", "0", "subtract(i, k1)", "compare(i, k10), direction=LT", -1},
    {"s32", "0", "multiply(i, k3)", "compare(i, k10), direction=LT", -1},
    {"u8", "250", "add(i, k3)", "compare(i, k10), direction=GE", -1},
    {"s8", "100", "add(i, k10)", "compare(i, k10), direction=GE", -1},
};

static int64_t trips(const row *r) {
  char text[2048];
  snprintf(text, sizeof text,
           "HloModule m\n"
           "body {\n"
           "  p = (%1$s[], %1$s[], %1$s[]) parameter(0)\n"
           "  i = %1$s[] get-tuple-element(p), index=0\n"
           "  n = %1$s[] get-tuple-element(p), index=1\n"
           "  m = %1$s[] get-tuple-element(p), index=2\n"
           "  k1 = %1$s[] constant(1)\n  k3 = %1$s[] constant(3)\n"
           "  k10 = %1$s[] constant(10)\n"
           "  next = %1$s[] %2$s\n  mm = %1$s[] add(m, n)\n"
           "  ROOT t = (%1$s[], %1$s[], %1$s[]) tuple(next, n, mm)\n}\n"
           "cond {\n"
           "  p = (%1$s[], %1$s[], %1$s[]) parameter(0)\n"
           "  i = %1$s[] get-tuple-element(p), index=0\n"
           "  n = %1$s[] get-tuple-element(p), index=1\n"
           "  m = %1$s[] get-tuple-element(p), index=2\n"
           "  k1 = %1$s[] constant(1)\n  k10 = %1$s[] constant(10)\n"
           "  ROOT c = pred[] %3$s\n}\n"
           "ENTRY e {\n"
           "  s = %1$s[] constant(%4$s)\n  ten = %1$s[] constant(10)\n"
           "  t = (%1$s[], %1$s[], %1$s[]) tuple(s, ten, ten)\n"
           "  ROOT w = (%1$s[], %1$s[], %1$s[]) while(t), condition=cond, "
           "body=body\n}\n",
           r->type, r->next, r->cond, r->start);
  lw_context *ctx = lw_context_new();
  lw_module *m;
  lw_status s = lw_read_text(ctx, text, strlen(text), "loop", NULL, &m);
  if (s) fail_msg("%s", lw_status_message(s));
  int64_t n = lw_while_trip_count(m->entry->root);
  lw_module_free(m);
  lw_context_free(ctx);
  return n;
}

static void test_rows(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    int64_t got = trips(&rows[k]);
    if (got != rows[k].want)
      fail_msg("%s from %s, %s, while %s: %lld, not %lld", rows[k].type,
               rows[k].start, rows[k].next, rows[k].cond, (long long)got,
               (long long)rows[k].want);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
