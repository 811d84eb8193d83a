/* libFuzzer: any bytes are a module or an error, and what parses prints as a
 * text that parses again. Built with -DLW_SANITIZE=address,undefined,fuzzer-no-link. */
#include <stdio.h>
#include <stdlib.h>

#include "hlo/print.h"
#include "reader/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lw_context *ctx = lw_context_new();
  lw_module *m, *again;
  lw_status st = lw_read_text(ctx, (const char *)data, size, "fuzz", NULL, &m);
  if (!st) {
    lw_buf b = {0};
    lw_module_print(&b, m, &lw_print_default);
    lw_status back = lw_read_text(ctx, b.data, b.len, "print", NULL, &again);
    if (back) {
      fprintf(stderr, "%s\n", lw_status_message(back));
      abort();
    }
    lw_module_free(again);
    lw_buf_free(&b);
  }
  lw_status_free(st);
  lw_module_free(m);
  lw_context_free(ctx);
  return 0;
}
