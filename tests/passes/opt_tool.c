/* test_opt: passes over a module, printed. The flags of lawson opt:
 *   test_opt [--pipeline=NAME] [--passes=a,b] [--disable=a,b] [--fuel=a=3]
 *            [--pass-option=a.b=c] [--dump-passes=DIR] [--allow-inexact=a,b]
 *            [--report] [--no-print] [--verify] [--keep-fusions] FILE
 */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "hlo/print.h"
#include "passes/manager.h"
#include "reader/reader.h"

typedef struct {
  lw_pipeline_options o;
  const char *file, *pipeline;
  bool report, quiet;
} flags;

static bool value(const char *arg, const char *name, const char **out) {
  size_t n = strlen(name);
  if (strncmp(arg, name, n) || arg[n] != '=') return false;
  *out = arg + n + 1;
  return true;
}

static bool parse(flags *f, int argc, char **argv) {
  f->pipeline = "clean-up";
  for (int k = 1; k < argc; k++) {
    const char *a = argv[k];
    if (!strcmp(a, "--report"))
      f->report = true;
    else if (!strcmp(a, "--no-print"))
      f->quiet = true;
    else if (!strcmp(a, "--verify"))
      f->o.verify_each = true;
    else if (!strcmp(a, "--keep-fusions"))
      f->o.keep_fusions = true;
    else if (!value(a, "--passes", &f->o.passes) &&
             !value(a, "--disable", &f->o.disable) &&
             !value(a, "--fuel", &f->o.fuel) &&
             !value(a, "--pass-option", &f->o.pass_options) &&
             !value(a, "--dump-passes", &f->o.dump_dir) &&
             !value(a, "--allow-inexact", &f->o.allow_inexact) &&
             !value(a, "--pipeline", &f->pipeline)) {
      if (a[0] == '-' && a[1]) return false;
      f->file = a;
    }
  }
  return f->file && lw_pipeline_find(f->pipeline);
}

static lw_status opt(const flags *f, lw_context *ctx, const char *text,
                     size_t len) {
  lw_module *m;
  lw_pipeline_report r;
  lw_arena *a = lw_arena_new();
  lw_status s = lw_read_text(ctx, text, len, f->file, NULL, &m);
  if (!s) {
    s = lw_pipeline_run(m, lw_pipeline_find(f->pipeline), &f->o, a, &r);
    lw_buf out = {0};
    if (!s && !f->quiet) lw_module_print(&out, m, &lw_print_short);
    if (f->report) lw_pipeline_report_print(&out, &r);
    fputs(lw_buf_cstr(&out), stdout);
    lw_buf_free(&out);
    lw_module_free(m);
  }
  lw_arena_free(a);
  return s;
}

int main(int argc, char **argv) {
  flags f = {0};
  char *text;
  size_t len;
  if (!parse(&f, argc, argv)) {
    fprintf(stderr, "usage: test_opt [flags] FILE\n");
    return 2;
  }
  lw_status s = lw_file_read(f.file, &text, &len);
  if (!s) {
    lw_context *ctx = lw_context_new();
    s = opt(&f, ctx, text, len);
    lw_context_free(ctx);
    free(text);
  }
  if (!s) return 0;
  fprintf(stderr, "error: %s\n", lw_status_message(s));
  lw_status_free(s);
  return 1;
}
