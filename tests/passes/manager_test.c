/* The manager: names, options, fuel, verdicts, lies, dumps, fixpoints. */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "passes/manager.h"
#include "reader/reader.h"

static const char text[] =
    "HloModule m\n"
    "ENTRY e {\n"
    "  x = f32[4] parameter(0)\n"
    "  a = f32[4] negate(x)\n"
    "  b = f32[4] negate(a)\n"
    "  c = f32[4] negate(b)\n"
    "  ROOT d = f32[4] negate(c)\n"
    "}\n";

typedef struct {
  lw_context *ctx;
  lw_module *m;
  lw_arena *a;
  lw_pipeline_report r;
} fixture;

static void begin(fixture *f) {
  f->ctx = lw_context_new();
  f->a = lw_arena_new();
  assert_null(lw_read_text(f->ctx, text, strlen(text), "m", NULL, &f->m));
}

static void end(fixture *f) {
  lw_module_free(f->m);
  lw_arena_free(f->a);
  lw_context_free(f->ctx);
}

static lw_status run(fixture *f, const lw_pipeline_options *o) {
  return lw_pipeline_run(f->m, lw_pipeline_find("clean-up"), o, f->a, &f->r);
}

static const lw_pass_result *result(const fixture *f, const char *name) {
  for (int32_t k = 0; k < f->r.n; k++)
    if (!strcmp(f->r.v[k].pass->name, name)) return &f->r.v[k];
  return NULL;
}

static void expect_error(fixture *f, const lw_pipeline_options *o, lw_code code,
                         const char *part) {
  lw_status s = run(f, o);
  assert_int_equal(lw_status_code(s), code);
  if (!strstr(lw_status_message(s), part)) fail_msg("%s", lw_status_message(s));
  lw_status_free(s);
}

static void test_unknown_names(void **state) {
  (void)state;
  fixture f;
  begin(&f);
  expect_error(&f, &(lw_pipeline_options){.passes = "call-inliner,dec"},
               LW_NOT_FOUND, "did you mean \"dce\"");
  assert_int_equal(f.m->entry->n_insts, 5); /* nothing ran */
  expect_error(&f, &(lw_pipeline_options){.disable = "algebraic-simplifer"},
               LW_NOT_FOUND, "did you mean \"algebraic-simplifier\"");
  expect_error(&f, &(lw_pipeline_options){.fuel = "cse=many"},
               LW_INVALID_ARGUMENT, "count of rewrites");
  expect_error(&f, &(lw_pipeline_options){.fuel = "cse"}, LW_INVALID_ARGUMENT,
               "PASS=N");
  expect_error(&f, &(lw_pipeline_options){.pass_options = "cse.x=1"},
               LW_NOT_FOUND, "has no options");
  expect_error(
      &f, &(lw_pipeline_options){.pass_options = "constant-folding.limt=1"},
      LW_NOT_FOUND, "did you mean \"limit\"");
  expect_error(&f, &(lw_pipeline_options){.allow_inexact = "reciprocl"},
               LW_NOT_FOUND, "did you mean \"reciprocal\"");
  end(&f);
}

static void test_verdicts(void **state) {
  (void)state;
  fixture f;
  begin(&f);
  assert_null(run(&f, &(lw_pipeline_options){.disable = "cse"}));
  assert_int_equal(result(&f, "cse")->verdict, LW_PASS_NOT_RUN);
  assert_int_equal(result(&f, "call-inliner")->verdict, LW_PASS_RAN);
  const lw_pass_result *a = result(&f, "algebraic-simplifier");
  assert_int_equal(a->verdict, LW_PASS_MOVED);
  assert_int_equal(a->inst_delta, -4);
  assert_int_equal(a->n_stats, 1);
  assert_string_equal(a->stats[0].name, "-(-x)");
  assert_int_equal(a->stats[0].count, 2);
  assert_int_equal(f.r.insts_before, 5);
  assert_int_equal(f.r.insts_after, 1);
  assert_int_equal(f.r.rounds, 2);
  lw_buf b = {0};
  lw_pipeline_report_print(&b, &f.r);
  assert_non_null(strstr(b.data, "NOT RUN"));
  assert_non_null(strstr(b.data, "RAN and moved nothing"));
  lw_buf_free(&b);
  end(&f);
}

static void test_fuel(void **state) {
  (void)state;
  for (int n = 0; n <= 2; n++) {
    fixture f;
    begin(&f);
    char fuel[64];
    snprintf(fuel, sizeof fuel, "algebraic-simplifier=%d", n);
    assert_null(run(&f, &(lw_pipeline_options){.fuel = fuel}));
    assert_int_equal(f.m->entry->n_insts, 5 - 2 * n);
    end(&f);
  }
}

static lw_status changes_quietly(lw_module *m, lw_pass_env *env,
                                 bool *changed) {
  (void)env;
  (void)changed;
  lw_inst_set_root(m->entry, lw_inst_operand(m->entry->root, 0));
  return NULL;
}

static lw_status boasts(lw_module *m, lw_pass_env *env, bool *changed) {
  (void)m;
  (void)env;
  *changed = true;
  return NULL;
}

static const lw_pass quiet = {"quiet", "", NULL, changes_quietly};
static const lw_pass boaster = {"boaster", "", NULL, boasts};
static const lw_pass *const liars[] = {&quiet, &boaster};

static void test_lies(void **state) {
  (void)state;
  fixture f;
  begin(&f);
  lw_pipeline_options o = {.extra = liars, .n_extra = 2, .passes = "quiet"};
  expect_error(&f, &o, LW_INTERNAL, "changed the module and says it did not");
  o.passes = "boaster";
  expect_error(&f, &o, LW_INTERNAL, "says it changed the module and did not");
  end(&f);
}

static int fusion_runs;
static lw_status counts(lw_module *m, lw_pass_env *env, bool *changed) {
  (void)m;
  (void)env;
  (void)changed;
  fusion_runs++;
  return NULL;
}
static const lw_pass counter = {"counter", "", NULL, counts};
static const lw_pass *const extra[] = {&counter};
static const char *const fusion_steps[] = {"counter", NULL};

static void test_fusion_steps(void **state) {
  (void)state;
  fixture f;
  begin(&f);
  lw_pipeline_options o = {
      .extra = extra, .n_extra = 1, .fusion_steps = fusion_steps};
  assert_null(lw_pipeline_run(f.m, &lw_pipeline_cpu, &o, f.a, &f.r));
  assert_int_equal(fusion_runs, 1);
  assert_int_equal(result(&f, "counter")->verdict, LW_PASS_RAN);
  end(&f);
}

static void test_dumps(void **state) {
  (void)state;
  fixture f;
  begin(&f);
  char dir[] = "/tmp/lw_dumps_XXXXXX", path[256];
  assert_non_null(mkdtemp(dir));
  assert_null(run(&f, &(lw_pipeline_options){.dump_dir = dir}));
  snprintf(path, sizeof path, "%s/0000.clean-up.before.hlo", dir);
  assert_true(lw_file_exists(path));
  unlink(path);
  snprintf(path, sizeof path, "%s/0001.clean-up.after_algebraic-simplifier.hlo",
           dir);
  assert_true(lw_file_exists(path));
  unlink(path);
  assert_int_equal(rmdir(dir), 0); /* nothing else was written */
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_unknown_names), cmocka_unit_test(test_verdicts),
      cmocka_unit_test(test_fuel),          cmocka_unit_test(test_lies),
      cmocka_unit_test(test_fusion_steps),  cmocka_unit_test(test_dumps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
