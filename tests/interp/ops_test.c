/* Every opcode family on small programs (ops_cases.inc). */
#include <stdio.h>
#include <string.h>

#include "lib/compare.h"
#include "run.h"

typedef struct {
  const char *name, *comps, *body, *expected;
} op_case;

static const op_case cases[] = {
#define CASE(name, comps, body, expected) {#name, comps, body, expected},
#include "ops_cases.inc"
#undef CASE
};

/* Bits equal, NaN equal to NaN. */
static void one_case(void **state) {
  const op_case *c = *state;
  char text[4096];
  program p, q;
  snprintf(text, sizeof text, "HloModule m\n%s\nENTRY e { %s }\n", c->comps,
           c->body);
  program_read(&p, text);
  snprintf(text, sizeof text, "HloModule m\nENTRY e { ROOT r = %s }\n",
           c->expected);
  program_read(&q, text);
  lw_literal *got = program_run(&p, NULL, 0, NULL);
  lw_literal *want = program_run(&q, NULL, 0, NULL);
  lw_value_diff d;
  lw_literal as_array = *got; /* bounds of a dynamic result are sizes here */
  as_array.shape = lw_shape_array(p.ctx, got->shape->type, got->shape->rank,
                                  got->shape->dims);
  lw_status s = lw_literal_diff(&as_array, want, true, &d);
  if (s) fail_msg("%s", lw_status_message(s));
  lw_buf b = {0};
  lw_value_diff_print(&b, got, want, &d);
  if (d.different) fail_msg("%s: %s", c->name, lw_buf_cstr(&b));
  lw_buf_free(&b);
  program_free(&p);
  program_free(&q);
}

int main(void) {
  enum { N = sizeof cases / sizeof *cases };
  static struct CMUnitTest tests[N];
  for (int k = 0; k < N; k++)
    tests[k] = (struct CMUnitTest){cases[k].name, one_case, NULL, NULL,
                                   (void *)(uintptr_t)&cases[k]};
  return cmocka_run_group_tests_name("interp ops", tests, NULL, NULL);
}
