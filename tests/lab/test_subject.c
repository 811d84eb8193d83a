/* Subjects: Lawson's answer as files; who there is; what is not set up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "driver/driver.h"
#include "lab/arrays.h"
#include "lab/setup.h"
#include "lab/subject_jobs.h"

static const char chain[] =
    "HloModule chain\n"
    "ENTRY e {\n"
    "  x = f32[64] parameter(0)\n"
    "  a = f32[64] add(x, x)\n"
    "  b = f32[64] multiply(a, x)\n"
    "  ROOT c = f32[64] exponential(b)\n"
    "}\n";

static char scratch[64];

static const char *in_scratch(const char *name) {
  static char path[2][256];
  static int turn;
  turn = !turn;
  snprintf(path[turn], sizeof path[turn], "%s/%s", scratch, name);
  return path[turn];
}

static char *read_text(const char *name) {
  char *text;
  size_t len;
  lw_status st = lw_file_read(in_scratch(name), &text, &len);
  if (st) fail_msg("%s", lw_status_message(st));
  return text;
}

static int set_up(void **state) {
  (void)state;
  strcpy(scratch, "/tmp/lawson-subject-XXXXXX");
  if (!mkdtemp(scratch)) return -1;
  lw_status st =
      lw_file_write(in_scratch("chain.hlo"), chain, sizeof chain - 1);
  setenv("XDG_DATA_HOME", in_scratch("data"), 1);
  unsetenv("LAWSON_PYTHON");
  return st != NULL;
}

static int tear_down(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", scratch);
  return system(command);
}

static void is_status(lw_status st, lw_code code, const char *words) {
  assert_int_equal(lw_status_code(st), code);
  if (!strstr(lw_status_message(st), words))
    fail_msg("\"%s\" lacks \"%s\"", lw_status_message(st), words);
  lw_status_free(st);
}

static void lawson_files(void **state) {
  (void)state;
  lw_subject s = {.compiler = "lawson", .target = "cpu"};
  assert_null(lw_subject_compile(&s, in_scratch("chain.hlo"), in_scratch("a")));
  static const struct {
    const char *name, *holds;
  } files[] = {{"a/before.hlo", "multiply("},
               {"a/fusion_in.hlo", "multiply("},
               {"a/after.hlo", "fusion("},
               {"a/passes.tsv", "\tpriority-fusion\tyes\t"},
               {"a/decisions.json", "lawson.explain/1"},
               {"a/meta.json", "lawson.subject/1"}};
  for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
    char *text = read_text(files[k].name);
    if (!strstr(text, files[k].holds))
      fail_msg("%s lacks %s", files[k].name, files[k].holds);
    free(text);
  }
  char *in = read_text("a/fusion_in.hlo");
  assert_null(strstr(in, " fusion("));
  free(in);
  assert_false(lw_dir_exists(in_scratch("a/dumps")));
}

static void nothing_fused(void **state) {
  (void)state;
  const char *options[] = {"--fusion=none"}, *off[] = {"fusion-wrapper"};
  lw_subject s = {
      .options = options, .n_options = 1, .disable = off, .n_disable = 1};
  assert_null(lw_subject_compile(&s, in_scratch("chain.hlo"), in_scratch("n")));
  char *in = read_text("n/fusion_in.hlo"), *out = read_text("n/after.hlo");
  assert_string_equal(in, out);
  assert_null(strstr(out, " fusion("));
  free(in);
  free(out);
}

static void write_inputs(const char *path) {
  lw_context *ctx = lw_context_new();
  lw_arena *a = lw_arena_new();
  lw_module *m;
  lw_literal **args;
  int32_t n;
  assert_null(lw_load_text(ctx, chain, sizeof chain - 1, &m));
  assert_null(lw_random_inputs(m, 1, a, &args, &n, NULL, NULL));
  assert_null(lw_arrays_write(path, 'p', (const lw_literal *const *)args, n));
  lw_module_free(m);
  lw_arena_free(a);
  lw_context_free(ctx);
}

/* Two jobs at once, fused and not: the same outputs, byte for byte. */
static void outputs(void **state) {
  (void)state;
  const char *none[] = {"--fusion=none"};
  lw_subject s[2] = {{.compiler = "lawson"}, {.options = none, .n_options = 1}};
  write_inputs(in_scratch("in.npz"));
  char module[128], inputs[128], dir[2][128];
  snprintf(module, sizeof module, "%s", in_scratch("chain.hlo"));
  snprintf(inputs, sizeof inputs, "%s", in_scratch("in.npz"));
  lw_subject_job jobs[2] = {0};
  for (int k = 0; k < 2; k++) {
    snprintf(dir[k], sizeof dir[k], "%s/o%d", scratch, k);
    jobs[k] = (lw_subject_job){.subject = &s[k],
                               .module_path = module,
                               .out_dir = dir[k],
                               .inputs = inputs};
  }
  assert_null(lw_subject_compile_all(jobs, 2));
  char *data[2];
  size_t len[2];
  for (int k = 0; k < 2; k++) {
    assert_null(jobs[k].status);
    assert_null(jobs[k].run_error);
    char path[160];
    snprintf(path, sizeof path, "%s/outputs.npz", dir[k]);
    assert_null(lw_file_read(path, &data[k], &len[k]));
  }
  assert_int_equal(len[0], len[1]);
  assert_memory_equal(data[0], data[1], len[0]);
  free(data[0]);
  free(data[1]);
  lw_subject_jobs_free(jobs, 2);
}

static lw_status compile_chain(const lw_subject *s) {
  return lw_subject_compile(s, in_scratch("chain.hlo"), in_scratch("x"));
}

static void unknown(void **state) {
  (void)state;
  const char *pass[] = {"priority-fusin"}, *option[] = {"--no-such"};
  is_status(compile_chain(&(lw_subject){.compiler = "xlaa"}), LW_NOT_FOUND,
            "did you mean \"xla\"?");
  is_status(compile_chain(&(lw_subject){.compiler = "xla@../x"}), LW_NOT_FOUND,
            "unknown setup");
  is_status(compile_chain(&(lw_subject){.compiler = "xla", .target = "v6f"}),
            LW_NOT_FOUND, "did you mean \"v6e\"?");
  is_status(compile_chain(&(lw_subject){.compiler = "xla", .target = "mi200"}),
            LW_NOT_FOUND, "NVIDIA");
  is_status(compile_chain(&(lw_subject){.disable = pass, .n_disable = 1}),
            LW_NOT_FOUND, "did you mean \"priority-fusion\"?");
  is_status(compile_chain(&(lw_subject){.options = option, .n_options = 1}),
            LW_INVALID_ARGUMENT, "--no-such is no option");
}

static void not_set_up(void **state) {
  (void)state;
  static const struct {
    const char *compiler, *target, *command;
  } cases[] = {{"xla", "cpu", "lawson setup xla-cpu"},
               {"xla", "h100", "lawson setup xla-gpu"},
               {"xla", "v6e", "lawson setup xla-tpu"},
               {"xla@0.9.2", NULL, "lawson setup xla-cpu@0.9.2"}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
    is_status(compile_chain(&(lw_subject){.compiler = cases[k].compiler,
                                          .target = cases[k].target}),
              LW_UNAVAILABLE, cases[k].command);
  setenv("LAWSON_PYTHON", "/no/such/python", 1);
  is_status(compile_chain(&(lw_subject){.compiler = "xla"}), LW_UNAVAILABLE,
            "/no/such/python");
  unsetenv("LAWSON_PYTHON");
}

static void setup_names(void **state) {
  (void)state;
  static const char *const names[][2] = {{"xla-cpu", "xla-cpu"},
                                         {"xla@0.10.2", "xla-cpu"},
                                         {"xla@0.9.2", "xla-cpu@0.9.2"},
                                         {"xla-gpu@0.9.2", "xla-gpu@0.9.2"}};
  char *kept;
  for (size_t k = 0; k < 4; k++) {
    assert_null(lw_setup_resolve(names[k][0], &kept));
    assert_string_equal(kept, names[k][1]);
    free(kept);
  }
  static const char *const wrong[] = {
      "", "xla", "xla-", "xla-fpu", "xla@0.9;rm", "xla@/x", "cpu", "xla-cpu@"};
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
    is_status(lw_setup_resolve(wrong[k], &kept), LW_NOT_FOUND, "unknown setup");
  is_status(lw_setup_resolve("xla-cp", &kept), LW_NOT_FOUND,
            "did you mean \"xla-cpu\"?");
}

/* An environment counts by its file `ready`, written last. */
static void setup_ready(void **state) {
  (void)state;
  assert_null(lw_dir_make(in_scratch("data/lawson/xla-tpu/bin")));
  assert_null(lw_setup_python("xla-tpu"));
  assert_null(lw_file_write(in_scratch("data/lawson/xla-tpu/ready"), "", 0));
  char *python = lw_setup_python("xla-tpu");
  assert_non_null(python);
  assert_non_null(strstr(python, "xla-tpu/bin/python"));
  free(python);
  lw_setup_list list = {0};
  assert_null(lw_setup_find_all(&list));
  assert_int_equal(list.len, 3);
  assert_true(list.data[2].ready);
  assert_false(list.data[0].ready);
  lw_setup_list_free(&list);
  assert_null(lw_setup_remove("xla-tpu"));
  assert_null(lw_setup_python("xla-tpu"));
  is_status(lw_setup_remove("xla-tpu"), LW_NOT_FOUND, "not set up");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lawson_files), cmocka_unit_test(nothing_fused),
      cmocka_unit_test(outputs),      cmocka_unit_test(unknown),
      cmocka_unit_test(not_set_up),   cmocka_unit_test(setup_names),
      cmocka_unit_test(setup_ready)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
