/* Prints random modules as HLO text, for peers and for looking.
 *   gen_tool SEED [COUNT] [--xla] [--steps=N]   modules separated by a line
 *                                               "// -----"
 *   gen_tool --pair PRODUCER CONSUMER SEED
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/gen.h"
#include "hlo/check.h"
#include "hlo/print.h"

static int print_module(const lw_module *m) {
  lw_diags d = {.file = "random"};
  lw_check_module(m, (lw_check_options){0}, &d);
  lw_buf b = {0};
  lw_module_print(&b, m, &lw_print_default);
  fputs(lw_buf_cstr(&b), stdout);
  lw_buf_free(&b);
  b = (lw_buf){0};
  lw_diags_render(&d, &b);
  fputs(lw_buf_cstr(&b), stderr);
  int bad = d.count != 0;
  lw_buf_free(&b);
  lw_diags_free(&d);
  return bad;
}

static int pair(const char *p, const char *c, uint64_t seed) {
  lw_opcode po = lw_opcode_from_name(p, strlen(p));
  lw_opcode co = lw_opcode_from_name(c, strlen(c));
  if (po == LW_OPCODE_COUNT || co == LW_OPCODE_COUNT) {
    fprintf(stderr, "gen_tool: unknown opcode\n");
    return 2;
  }
  lw_context *ctx = lw_context_new();
  lw_rand r = {.state = seed};
  bool made;
  lw_module *m = lw_gen_pairs(ctx, po, &co, 1, &made, &r);
  int bad = m ? print_module(m) : 3;
  lw_module_free(m);
  lw_context_free(ctx);
  return bad;
}

int main(int argc, char **argv) {
  if (argc == 5 && !strcmp(argv[1], "--pair"))
    return pair(argv[2], argv[3], strtoull(argv[4], NULL, 0));
  uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
  long count = argc > 2 && argv[2][0] != '-' ? strtol(argv[2], NULL, 0) : 1;
  lw_gen_options o = {.control_flow = true, .heavy = true};
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--xla")) o.xla_runnable = true;
    if (!strncmp(argv[i], "--steps=", 8)) o.max_steps = atoi(argv[i] + 8);
  }
  int bad = 0;
  for (long i = 0; i < count; i++) {
    lw_context *ctx = lw_context_new();
    lw_rand r = {.state = seed + (uint64_t)i};
    lw_module *m = lw_gen_module(ctx, &r, &o);
    if (i) puts("// -----");
    bad |= print_module(m);
    lw_module_free(m);
    lw_context_free(ctx);
  }
  return bad;
}
