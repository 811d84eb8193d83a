/* Any bytes are a module or an error. A module the checker accepts is written
 * as a proto that reads back, and that is written the same. */
#include "fuzz/fuzz.h"
#include "hlo/print.h"
#include "reader/proto.h"

static void write_again(lw_context *ctx, const lw_module *m) {
  lw_buf text = {0}, a = {0}, b = {0};
  lw_module_print(&text, m, &lw_print_default);
  lw_buf_free(&text);
  if (!fuzz_is_clean(m)) return;
  lw_module *again;
  lw_status st = lw_write_proto(m, false, &a);
  if (st) fuzz_fail("a clean module is not written", lw_status_message(st));
  st = lw_read_proto(ctx, a.data, a.len, &again);
  if (st) fuzz_fail("what is written does not read", lw_status_message(st));
  st = lw_write_proto(again, false, &b);
  if (st) fuzz_fail("is not written again", lw_status_message(st));
  fuzz_same_bytes("write, read, write", &a, &b);
  lw_module_free(again);
  lw_buf_free(&a);
  lw_buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lw_context *ctx = lw_context_new();
  lw_snapshot s = {0};
  lw_status st = lw_read_snapshot(ctx, data, size, &s);
  if (!st) write_again(ctx, s.module);
  lw_status_free(st);
  lw_module_free(s.module);
  lw_context_free(ctx);
  return 0;
}
