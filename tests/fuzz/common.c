/* What the fuzz targets share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "hlo/check.h"

void fuzz_fail(const char *what, const char *detail) {
  fprintf(stderr, "fuzz: %s: %s\n", what, detail);
  abort();
}

bool fuzz_is_clean(const lw_module *m) {
  lw_diags d = {.file = "fuzz"};
  lw_check_module(m, (lw_check_options){0}, &d);
  bool clean = d.count == 0;
  lw_buf b = {0};
  lw_diags_render(&d, &b);
  lw_buf_free(&b);
  lw_diags_free(&d);
  return clean;
}

void fuzz_same_bytes(const char *what, const lw_buf *a, const lw_buf *b) {
  size_t n = a->len < b->len ? a->len : b->len, k = 0;
  while (k < n && a->data[k] == b->data[k]) k++;
  if (a->len == b->len && k == n) return;
  size_t from = k > 40 ? k - 40 : 0;
  char detail[400];
  snprintf(detail, sizeof detail, "at byte %zu:\n  %.*s\n  %.*s", k,
           (int)(a->len - from > 120 ? 120 : a->len - from), a->data + from,
           (int)(b->len - from > 120 ? 120 : b->len - from), b->data + from);
  fuzz_fail(what, detail);
}
