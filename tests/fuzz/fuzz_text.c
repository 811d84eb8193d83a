/* Any bytes are a module or an error. A module the checker accepts prints as a
 * text that reads back, and that prints the same. */
#include "fuzz/fuzz.h"
#include "hlo/print.h"
#include "reader/reader.h"

static void print_again(lw_context *ctx, const lw_module *m) {
  lw_buf a = {0}, b = {0};
  lw_module *again;
  bool clean = fuzz_is_clean(m);
  lw_module_print(&a, m, &lw_print_default);
  lw_module_print(&b, m, &lw_print_short);
  lw_buf_free(&b);
  b = (lw_buf){0};
  if (clean) {
    lw_status st = lw_read_text(ctx, a.data, a.len, "print", NULL, &again);
    if (st) fuzz_fail("what prints does not read", lw_status_message(st));
    lw_module_print(&b, again, &lw_print_default);
    fuzz_same_bytes("print, read, print", &a, &b);
    lw_module_free(again);
  }
  lw_buf_free(&a);
  lw_buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lw_context *ctx = lw_context_new();
  lw_module *m;
  lw_diags d = {.file = "fuzz", .text = (const char *)data, .text_len = size};
  lw_status st = lw_read_text(ctx, (const char *)data, size, "fuzz", &d, &m);
  if (!st) print_again(ctx, m);
  lw_status_free(st);
  lw_diags_free(&d);
  lw_module_free(m);
  lw_context_free(ctx);
  return 0;
}
