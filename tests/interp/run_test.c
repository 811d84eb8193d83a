/* Control flow, memory and errors of whole runs. */
#include <string.h>

#include "run.h"

#define LOOP(n, len)                                                      \
  "HloModule m\n"                                                         \
  "c { p = (s32[], f32[" len                                              \
  "]) parameter(0)\n"                                                     \
  " i = s32[] get-tuple-element(p), index=0\n n = s32[] constant(" n      \
  ")\n"                                                                   \
  " ROOT t = pred[] compare(i, n), direction=LT }\n"                      \
  "b { p = (s32[], f32[" len                                              \
  "]) parameter(0)\n"                                                     \
  " i = s32[] get-tuple-element(p), index=0\n"                            \
  " x = f32[" len                                                         \
  "] get-tuple-element(p), index=1\n"                                     \
  " s = f32[1] dynamic-slice(x, i), dynamic_slice_sizes={1}\n"            \
  " d = f32[1] add(s, s)\n o = s32[] constant(1)\n j = s32[] add(i, o)\n" \
  " y = f32[" len                                                         \
  "] dynamic-update-slice(x, d, j)\n"                                     \
  " ROOT t = (s32[], f32[" len                                            \
  "]) tuple(j, y) }\n"                                                    \
  "ENTRY e { z = s32[] constant(0)\n v = f32[] constant(1)\n"             \
  " x = f32[" len                                                         \
  "] broadcast(v), dimensions={}\n"                                       \
  " s = (s32[], f32[" len                                                 \
  "]) tuple(z, x)\n"                                                      \
  " w = (s32[], f32[" len                                                 \
  "]) while(s), condition=c, body=b\n"                                    \
  " ROOT r = f32[" len "] get-tuple-element(w), index=1 }\n"

/* 100,000 updates of a 400 KB array: 40 GB if each one copied. The memory
 * limit holds two arrays and the result. */
static void loop_in_place(void **state) {
  (void)state;
  program p;
  program_read(&p, LOOP("100000", "100000"));
  lw_interp_options opt = {.max_bytes = 1 << 20};
  lw_literal *r = program_run(&p, NULL, 0, &opt);
  assert_true(((float *)r->data)[10] == 1024.0f);
  program_free(&p);
}

static void step_limit(void **state) {
  (void)state;
  program p;
  program_read(&p, LOOP("100000", "4"));
  lw_interp_options opt = {.max_steps = 1000};
  program_fails(&p, &opt, LW_DEADLINE_EXCEEDED, "1000");
  program_free(&p);
}

static void memory_limit(void **state) {
  (void)state;
  program p;
  program_read(&p,
               "HloModule m\nENTRY e { v = f32[] constant(1)\n ROOT x = "
               "f32[1000000,1000000] broadcast(v), dimensions={} }\n");
  program_fails(&p, NULL, LW_RESOURCE_EXHAUSTED, "x (broadcast, line 3)");
  program_free(&p);
}

static void unknown_custom_call(void **state) {
  (void)state;
  program p;
  program_read(&p,
               "HloModule m\nENTRY e { x = f32[2,2] constant({{1,2},{3,4}})\n "
               "ROOT c = f32[2,2] custom-call(x), "
               "custom_call_target=\"lapack_spotrf_ff\" }\n");
  program_fails(&p, NULL, LW_UNIMPLEMENTED,
                "c (custom-call, line 3): custom call \"lapack_spotrf_ff\" is "
                "unknown; did you mean \"lapack_spotrf_ffi\"?");
  program_free(&p);
}

static void needs_host(void **state) {
  (void)state;
  program p;
  program_read(&p,
               "HloModule m\nENTRY e { t = token[] after-all()\n ROOT i = "
               "(f32[3], token[]) infeed(t) }\n");
  program_fails(&p, NULL, LW_UNIMPLEMENTED, "needs a host");
  program_free(&p);
}

static void many_devices(void **state) {
  (void)state;
  program p;
  program_read(&p,
               "HloModule m\nENTRY e { x = f32[2] constant({1,2})\n ROOT g = "
               "f32[4] all-gather(x), replica_groups={{0,1}}, dimensions={0} "
               "}\n");
  program_fails(&p, NULL, LW_UNIMPLEMENTED, "several devices");
  program_free(&p);
}

static void wrong_arguments(void **state) {
  (void)state;
  program p;
  program_read(&p, "HloModule m\nENTRY e { ROOT x = f32[3] parameter(0) }\n");
  program_fails(&p, NULL, LW_INVALID_ARGUMENT, "takes 1 arguments");
  int64_t dims[1] = {4};
  lw_literal *x = floats(&p, 1, dims, 1), *r = NULL;
  lw_status s =
      lw_interp_run(p.m, (const lw_literal *const *)&x, 1, NULL, p.arena, &r);
  assert_int_equal(lw_status_code(s), LW_INVALID_ARGUMENT);
  assert_non_null(strstr(lw_status_message(s), "f32[4]"));
  lw_status_free(s);
  program_free(&p);
}

/* The caller's literal is never written, whatever the module does to it. */
static void arguments_stay(void **state) {
  (void)state;
  program p;
  program_read(&p,
               "HloModule m\nENTRY e { x = f32[3] parameter(0)\n u = f32[1] "
               "constant({9})\n i = s32[] constant(0)\n ROOT r = f32[3] "
               "dynamic-update-slice(x, u, i) }\n");
  int64_t dims[1] = {3};
  lw_literal *x = floats(&p, 1, dims, 1);
  float before = ((float *)x->data)[0];
  lw_literal *r = program_run(&p, (const lw_literal *const *)&x, 1, NULL);
  assert_true(((float *)r->data)[0] == 9);
  assert_true(((float *)x->data)[0] == before);
  program_free(&p);
}

/* A value with a later reader is not updated in place. */
static void shared_values_stay(void **state) {
  (void)state;
  program p;
  program_read(
      &p,
      "HloModule m\nENTRY e { v = f32[] constant(1)\n x = f32[2] "
      "broadcast(v), dimensions={}\n c = f32[1,2] reshape(x)\n u = f32[1] "
      "constant({9})\n i = s32[] constant(0)\n y = f32[2] "
      "dynamic-update-slice(x, u, i)\n z = f32[2] reshape(c)\n ROOT r = "
      "f32[2] subtract(y, z) }\n");
  lw_literal *r = program_run(&p, NULL, 0, NULL);
  assert_true(((float *)r->data)[0] == 8);
  program_free(&p);
}

static void one_instruction(void **state) {
  (void)state;
  program p;
  program_read(&p,
               "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] "
               "parameter(1)\n ROOT s = f32[] add(a, b) }\nENTRY e { x = "
               "f32[3] constant({1,2,3})\n z = f32[] constant(0)\n ROOT r = "
               "f32[] reduce(x, z), dimensions={0}, to_apply=add }\n");
  const lw_inst *root = p.m->entry->root;
  const lw_literal *ops[2] = {lw_inst_literal(lw_inst_operand(root, 0)),
                              lw_inst_literal(lw_inst_operand(root, 1))};
  lw_literal *r = NULL;
  assert_null(lw_interp_eval_inst(root, ops, NULL, p.arena, &r));
  assert_true(*(float *)r->data == 6);
  program_free(&p);
}

static void denormals(void **state) {
  (void)state;
  program p;
  program_read(&p,
               "HloModule m\nENTRY e { x = f32[4,1] constant({{1e-40},{1e-40},"
               "{1e-40},{1e-40}})\n y = f32[1,4] constant({{1,1,1,1}})\n ROOT "
               "r = f32[4,4] dot(x, y), lhs_contracting_dims={1}, "
               "rhs_contracting_dims={0} }\n");
  lw_interp_options flush = {.flush_denormals = true};
  assert_true(*(float *)program_run(&p, NULL, 0, NULL)->data > 0);
  assert_true(*(float *)program_run(&p, NULL, 0, &flush)->data == 0);
  program_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loop_in_place),
      cmocka_unit_test(step_limit),
      cmocka_unit_test(memory_limit),
      cmocka_unit_test(unknown_custom_call),
      cmocka_unit_test(needs_host),
      cmocka_unit_test(many_devices),
      cmocka_unit_test(wrong_arguments),
      cmocka_unit_test(arguments_stay),
      cmocka_unit_test(shared_values_stay),
      cmocka_unit_test(one_instruction),
      cmocka_unit_test(denormals),
  };
  return cmocka_run_group_tests_name("interp run", tests, NULL, NULL);
}
