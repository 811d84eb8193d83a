/* text -> module -> text, for tests against XLA's own parser and printer:
 *   test_fmt FILE [short|canonical] [option=0|1 ...]
 * Option names are lw_print_options' fields. Exit 1 and the diagnostics on
 * standard error when the text does not parse. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "hlo/print.h"
#include "reader/reader.h"

typedef struct {
  const char *name;
  size_t offset;
} option;

#define O(f) {#f, offsetof(lw_print_options, f)}
static const option options[] = {
    O(metadata),         O(large_constants),
    O(backend_config),   O(frontend_attrs),
    O(control_deps),     O(layouts),
    O(result_shapes),    O(operand_shapes),
    O(operand_names),    O(index_comments),
    O(percent),          O(program_shape),
    O(extra_attributes), O(ids),
    O(async_sugar),      O(compact_gte),
    O(nested_bodies),    O(canonical_names),
};

static bool set_option(lw_print_options *o, const char *arg) {
  if (!strcmp(arg, "xla_order")) {
    o->order = LW_ORDER_XLA;
    return true;
  }
  const char *eq = strchr(arg, '=');
  for (size_t i = 0; eq && i < sizeof options / sizeof options[0]; i++) {
    if (strncmp(options[i].name, arg, (size_t)(eq - arg)) ||
        options[i].name[eq - arg])
      continue;
    *(bool *)((char *)o + options[i].offset) = eq[1] == '1';
    return true;
  }
  return false;
}

static int format(const char *path, const lw_print_options *o) {
  char *text;
  size_t len;
  lw_context *ctx = lw_context_new();
  lw_module *m = NULL;
  lw_status st = lw_file_read(path, &text, &len);
  if (!st) st = lw_read_text(ctx, text, len, path, NULL, &m);
  if (st) {
    fprintf(stderr, "%s\n", lw_status_message(st));
    return 1;
  }
  lw_buf b = {0};
  lw_module_print(&b, m, o);
  fwrite(b.data, 1, b.len, stdout);
  lw_buf_free(&b);
  lw_module_free(m);
  lw_context_free(ctx);
  free(text);
  return 0;
}

int main(int argc, char **argv) {
  lw_print_options o = lw_print_default;
  if (argc < 2) return 2;
  for (int i = 2; i < argc; i++) {
    if (!strcmp(argv[i], "short"))
      o = lw_print_short;
    else if (!strcmp(argv[i], "canonical"))
      o = lw_print_canonical;
    else if (!set_option(&o, argv[i]))
      return 2;
  }
  return format(argv[1], &o);
}
