/* Over tests/data/corpus and cases: every program checks clean; every proto
 * survives being written and read, and says what the text next to it says. */
#define _GNU_SOURCE
#include <ftw.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "hlo/check.h"
#include "hlo/fingerprint.h"
#include "reader/proto.h"
#include "reader/reader.h"
#include "unit.h"

static char **paths;
static size_t n_paths;

static bool ends_with(const char *s, const char *tail) {
  size_t n = strlen(s), k = strlen(tail);
  return n >= k && !strcmp(s + n - k, tail);
}

static int visit(const char *path, const struct stat *st, int type,
                 struct FTW *f) {
  (void)st;
  (void)f;
  bool program = strstr(path, "/corpus/") || strstr(path, "/cases/");
  if (type != FTW_F || !program ||
      !(ends_with(path, ".hlo") || ends_with(path, ".pb")))
    return 0;
  paths = realloc(paths, (n_paths + 1) * sizeof *paths);
  paths[n_paths++] = strdup(path);
  return 0;
}

static lw_status load(lw_context *ctx, const char *path, lw_module **out) {
  char *data;
  size_t len;
  LW_TRY(lw_file_read(path, &data, &len));
  lw_status s = ends_with(path, ".pb")
                    ? lw_read_proto(ctx, data, len, out)
                    : lw_read_text(ctx, data, len, path, NULL, out);
  free(data);
  return s;
}

static void checks_clean(void **state) {
  (void)state;
  for (size_t i = 0; i < n_paths; i++) {
    lw_context *ctx = lw_context_new();
    lw_module *m = NULL;
    lw_status s = load(ctx, paths[i], &m);
    if (s && strstr(lw_status_message(s), "left out of the text")) {
      lw_status_free(s); /* constants elided by whoever dumped it */
      lw_context_free(ctx);
      continue;
    }
    if (!s) s = lw_check_status(m, (lw_check_options){0}, paths[i]);
    if (s) fail_msg("%s: %s", paths[i], lw_status_message(s));
    lw_module_free(m);
    lw_context_free(ctx);
  }
}

static void rewrites(lw_context *ctx, const lw_module *m, uint64_t want,
                     const char *path) {
  lw_buf b = {0};
  lw_module *back = NULL;
  lw_status s = lw_write_proto(m, true, &b);
  if (!s) s = lw_read_proto(ctx, b.data, b.len, &back);
  if (s) fail_msg("%s: %s", path, lw_status_message(s));
  if (lw_module_fingerprint(back, LW_FP_ALL) != want)
    fail_msg("%s changes when written and read", path);
  lw_module_free(back);
  lw_buf_free(&b);
}

static void protos_agree_with_texts(void **state) {
  (void)state;
  size_t n = 0;
  for (size_t i = 0; i < n_paths; i++) {
    if (!ends_with(paths[i], ".pb")) continue;
    lw_context *ctx = lw_context_new();
    lw_module *m, *t = NULL;
    lw_status s = load(ctx, paths[i], &m);
    if (s) fail_msg("%s: %s", paths[i], lw_status_message(s));
    uint64_t want = lw_module_fingerprint(m, LW_FP_ALL);
    rewrites(ctx, m, want, paths[i]);
    char *text = malloc(strlen(paths[i]) + 2);
    strcpy(text, paths[i]);
    strcpy(text + strlen(text) - 3, ".hlo");
    s = lw_file_exists(text) ? load(ctx, text, &t) : NULL;
    if (t && lw_module_fingerprint(t, LW_FP_ALL) != want)
      fail_msg("%s and its text have different fingerprints", paths[i]);
    lw_status_free(s);
    free(text);
    lw_module_free(t);
    lw_module_free(m);
    lw_context_free(ctx);
    n++;
  }
  print_message("%zu protos\n", n);
}

int main(void) {
  if (nftw(LW_TEST_DATA, visit, 16, FTW_PHYS) || !n_paths) {
    print_message("no programs under %s\n", LW_TEST_DATA);
    return 1;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(checks_clean),
                                     cmocka_unit_test(protos_agree_with_texts)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  for (size_t i = 0; i < n_paths; i++) free(paths[i]);
  free(paths);
  return failed;
}
