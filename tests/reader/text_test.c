/* The text reader and printer: round trips, messages, hostile input. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "hlo/print.h"
#include "reader/reader.h"
#include "reader/text_lex.h"

/* ---- helpers ---- */

static lw_status read_in(lw_context *ctx, const char *text, lw_module **m) {
  return lw_read_text(ctx, text, strlen(text), "t.hlo", NULL, m);
}

/* The print of the parse; fails the test with the message otherwise. */
static char *format(const char *text, const lw_print_options *o) {
  lw_context *ctx = lw_context_new();
  lw_module *m;
  lw_status st = read_in(ctx, text, &m);
  if (st) fail_msg("%s", lw_status_message(st));
  lw_buf b = {0};
  lw_module_print(&b, m, o);
  lw_module_free(m);
  lw_context_free(ctx);
  return b.data;
}

/* Reading must fail and say this. */
static void expect_error(const char *text, const char *message) {
  lw_context *ctx = lw_context_new();
  lw_module *m;
  lw_status st = read_in(ctx, text, &m);
  assert_non_null(st);
  assert_null(m);
  assert_int_equal(lw_status_code(st), LW_INVALID_ARGUMENT);
  if (!strstr(lw_status_message(st), message))
    fail_msg("expected: %s\ngot: %s", message, lw_status_message(st));
  lw_status_free(st);
  lw_context_free(ctx);
}

/* A one-computation module around these lines. */
static char *module_of(const char *lines) {
  size_t n = strlen(lines) + 64;
  char *s = malloc(n);
  assert_non_null(s);
  snprintf(s, n, "HloModule m\n\nENTRY %%e {\n%s\n}\n", lines);
  return s;
}

/* The printed module has this line, blanks before it aside. */
static void expect_line(const char *lines, const char *want) {
  char *text = module_of(lines);
  char *out = format(text, &lw_print_default);
  if (!strstr(out, want)) fail_msg("expected: %s\nin: %s", want, out);
  char *again = format(out, &lw_print_default);
  assert_string_equal(again, out);
  free(text);
  free(out);
  free(again);
}

static void expect_error_in(const char *lines, const char *message) {
  char *text = module_of(lines);
  expect_error(text, message);
  free(text);
}

/* ---- the lexer ---- */

static lw_token first_token(const char *s) {
  lw_lexer lx;
  lw_lex_init(&lx, s, strlen(s));
  lw_lex(&lx);
  return lx.tok;
}

static void tokens(void **state) {
  (void)state;
  assert_int_equal(first_token("1x2x3").kind, TOK_DXD);
  assert_int_equal(first_token("0_1x-2_3").kind, TOK_PAD);
  assert_int_equal(first_token("1_2_3").kind, TOK_PAD);
  assert_int_equal(first_token("b01f_01io->b01f").kind, TOK_DIM_LABELS);
  assert_int_equal(first_token("01bf_01io->01bf").kind, TOK_DIM_LABELS);
  assert_int_equal(first_token("?b0f_0io->b0f").kind, TOK_DIM_LABELS);
  assert_int_equal(first_token("?,").kind, TOK_QUESTION);
  assert_int_equal(first_token("-5").kind, TOK_INT);
  assert_int_equal(first_token("->").kind, TOK_ARROW);
  assert_int_equal(first_token("- 5").kind, TOK_ERROR);
  assert_int_equal(first_token("1.").kind, TOK_FLOAT);
  assert_int_equal(first_token("-.5e-3").kind, TOK_FLOAT);
  assert_int_equal(first_token("1e5").kind, TOK_FLOAT);
  assert_int_equal(first_token("-inf").kind, TOK_FLOAT);
  assert_int_equal(first_token("nan(0x12)").payload, 0x12);
  assert_int_equal(first_token("nan(0x0)").kind, TOK_ERROR);
  assert_int_equal(first_token("f32").kind, TOK_TYPE);
  assert_int_equal(first_token("tuple").kind, TOK_IDENT);
  assert_int_equal(first_token("%f32").kind, TOK_NAME);
  assert_int_equal(first_token("x: y").kind, TOK_NAME);
  assert_int_equal(first_token("x=").kind, TOK_ATTR);
  assert_int_equal(first_token("x =").kind, TOK_IDENT);
  assert_int_equal(first_token("/* a */ // b\n  ...").kind, TOK_DOTS);
  assert_int_equal(first_token("/* a").kind, TOK_ERROR);
  assert_int_equal(first_token("\"a\\\"b\"").len, 4);
  assert_int_equal(first_token("\"a").kind, TOK_ERROR);
  assert_int_equal(first_token("99999999999999999999").kind, TOK_ERROR);
  assert_true(first_token("18446744073709551615").big);
  assert_int_equal(first_token("-9223372036854775808").i, INT64_MIN);
}

static void token_places(void **state) {
  (void)state;
  lw_token t = first_token("\n /* \n */  %abc");
  assert_int_equal(t.line, 3);
  assert_int_equal(t.column, 6);
  assert_int_equal(t.len, 3);
}

static void escapes(void **state) {
  (void)state;
  lw_arena *a = lw_arena_new();
  size_t n;
  const char *in = "a\\n\\t\\\"\\x41\\101\\u00e9";
  assert_string_equal(lw_text_unescape(a, in, strlen(in), &n),
                      "a\n\t\"AA\xc3\xa9");
  assert_null(lw_text_unescape(a, "\\q", 2, &n));
  assert_null(lw_text_unescape(a, "\\", 1, &n));
  lw_arena_free(a);
}

/* ---- round trips ---- */

/* Every text of tests/data/text: our print of our print is the same, in every
 * form, and the short form is the same module. */
static void stable_files(void **state) {
  (void)state;
  static const char *const files[] = {
      "async", "bare", "collectives", "constants", "control", "elementwise",
      "forms", "lone", "ops",         "scheduled", "shapes",  "sharding"};
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    char path[512];
    char *text;
    size_t len;
    snprintf(path, sizeof path, "%s/text/%s.hlo", LW_TEST_DATA, files[i]);
    lw_status st = lw_file_read(path, &text, &len);
    if (st) fail_msg("%s", lw_status_message(st));
    char *full = format(text, &lw_print_default);
    char *again = format(full, &lw_print_default);
    assert_string_equal(full, again);
    lw_print_options o = lw_print_short;
    o.control_deps = true;
    char *brief = format(text, &o);
    char *canonical = format(text, &lw_print_canonical);
    char *from_brief = format(brief, &lw_print_canonical);
    assert_string_equal(canonical, from_brief);
    free(text);
    free(full);
    free(again);
    free(brief);
    free(canonical);
    free(from_brief);
  }
}

static void attributes_print_back(void **state) {
  (void)state;
  expect_line("  x = f32[4]{0:T(8,128)(2,1)S(1)} parameter(0)",
              "%x = f32[4]{0:T(8,128)(2,1)S(1)} parameter(0)");
  expect_line(
      "  x = f32[4,2] parameter(0)\n  y = transpose(x), "
      "dimensions={1,0}",
      "%y = f32[2,4]{0,1} transpose(%x), dimensions={1,0}");
  expect_line(
      "  x = f32[4] parameter(0)\n  y = pad(x, f32[] constant(0)), "
      "padding=1_2_3",
      "pad(%x, %constant.anon), padding=1_2_3");
  expect_line(
      "  x = f32[4] parameter(0)\n  ROOT y = f32[2] slice(x), "
      "slice={[0:4:2]}",
      "slice={[0:4:2]}");
  expect_line("  x = f32[4] parameter(0), backend_config={\"a\": {\"b\":1}}",
              "backend_config={\"a\": {\"b\":1}}");
  expect_line("  x = f32[4] parameter(0), backend_config=\"it's \\\"x\\\"\"",
              "backend_config=\"it\\'s \\\"x\\\"\"");
  expect_line("  x = f32[4] parameter(0), frontend_attributes={b=\"2\",a={}}",
              "frontend_attributes={a={},b=\"2\"}");
  expect_line(
      "  x = f32[4] parameter(0), metadata={source_line=7, "
      "source_file=\"f.py\"}",
      "metadata={source_file=\"f.py\" source_line=7}");
  expect_line(
      "  x = f32[4] parameter(0), "
      "sharding={devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
      "sharding={devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}");
  expect_line("  x = f32[<=4,?] parameter(0)", "%x = f32[<=4,?]{1,0}");
}

static void fold_order_is_a_frontend_attribute(void **state) {
  (void)state;
  static const char text[] =
      "HloModule m\nadd {\n  a = f32[] parameter(0)\n  b = f32[] "
      "parameter(1)\n  ROOT s = add(a, b)\n}\nENTRY e {\n  x = f32[4,4] "
      "parameter(0)\n  z = f32[] constant(0)\n  ROOT r = reduce(x, z), "
      "dimensions={1}, to_apply=add, "
      "frontend_attributes={zz=\"1\",lawson.fold=\"3,4\"}\n}\n";
  lw_context *ctx = lw_context_new();
  lw_module *m;
  assert_null(read_in(ctx, text, &m));
  int32_t n;
  const int64_t *v = lw_inst_i64s(m->entry->root, LW_ATTR_FOLD, &n);
  assert_int_equal(n, 2);
  assert_int_equal(v[0], 3);
  assert_int_equal(v[1], 4);
  assert_int_equal(m->entry->root->frontend_attrs.n, 1);
  lw_buf b = {0};
  lw_inst_print(&b, m->entry->root, &lw_print_default);
  assert_non_null(
      strstr(b.data, "frontend_attributes={lawson.fold=\"3,4\",zz=\"1\"}"));
  lw_buf_free(&b);
  lw_module_free(m);
  lw_context_free(ctx);
}

static void numbers_print_exactly(void **state) {
  (void)state;
  expect_line("  c = f32[3] constant({0.1, 16777217, -0})",
              "constant({0.1, 16777216, -0})");
  expect_line("  c = f64[] constant(-0.30000000000000004)",
              "constant(-0.30000000000000004)");
  expect_line("  c = bf16[2] constant({0.1, 1e30})",
              "constant({0.1001, 1e+30})");
  expect_line("  c = f32[2] constant({nan(0x1), -nan})",
              "constant({nan(0x1), -nan})");
  expect_line("  c = u64[] constant(18446744073709551615)",
              "constant(18446744073709551615)");
  expect_line("  c = pred[2] constant({true, 0})", "constant({1, 0})");
  expect_line("  c = s4[2] constant({-8, 7})", "constant({-8, 7})");
  expect_line("  c = c64[] constant((1, -0.5))", "constant((1, -0.5))");
  expect_line("  c = f32[2,0] constant({{},{}})", "constant({ {}, {} })");
}

static void names(void **state) {
  (void)state;
  /* Type names are legal to us; XLA takes them with an underscore only. */
  expect_line("  s1 = f32[] parameter(0)\n  ROOT u4 = add(s1, s1)",
              "ROOT %u4_ = f32[] add(%s1_, %s1_)");
  expect_line("  %s1 = f32[] parameter(0)\n  s1_ = negate(%s1)",
              "%s1_ = f32[] negate(%s1__)");
  char *text = module_of("  %nan = f32[] parameter(0)\n  x = negate(%nan)");
  char *out = format(text, &lw_print_short);
  assert_non_null(strstr(out, "x = f32[] negate(%nan)"));
  free(text);
  free(out);
}

static void compact_tuples(void **state) {
  (void)state;
  char *text = module_of(
      "  t = (f32[2], (s32[], f32[3])) parameter(0)\n"
      "  a = add(%t#0, %t#0)\n  b = negate(%t#1#1)\n  ROOT r = tuple(a, b)");
  char *out = format(text, &lw_print_default);
  assert_non_null(strstr(out,
                         "%get-tuple-element = f32[2]{0} "
                         "get-tuple-element(%t), index=0"));
  assert_non_null(strstr(out, "add(%get-tuple-element, %get-tuple-element)"));
  lw_print_options o = lw_print_default;
  o.compact_gte = true;
  char *compact = format(out, &o);
  assert_non_null(strstr(compact, "add(%t#0, %t#0)"));
  assert_non_null(strstr(compact, "negate(%t#1#1)"));
  free(text);
  free(out);
  free(compact);
}

/* The fragment of a published chapter: one computation, operand shapes, the old
 * source_file; no module around it. */
static void bare_fragment(void **state) {
  (void)state;
  static const char text[] =
      "%fused_computation (param_0: f32[64,64], param_1.1: f32[64]) -> "
      "f32[64,64] {\n"
      "  %param_0 = f32[64,64]{1,0} parameter(0)\n"
      "  %param_1.1 = f32[64]{0} parameter(1)\n"
      "  %broadcast.3 = f32[64,64]{1,0} broadcast(f32[64]{0} %param_1.1), "
      "dimensions={0}, metadata={op_name=\"jit(attend)/jit(main)/div\" "
      "source_file=\"/x/attend.py\" source_line=12}\n"
      "  ROOT %divide.0 = f32[64,64]{1,0} divide(f32[64,64]{1,0} %param_0, "
      "f32[64,64]{1,0} %broadcast.3), metadata={op_name=\"jit(attend)/"
      "jit(main)/div\" source_file=\"/x/attend.py\" source_line=12}\n"
      "}\n";
  lw_print_options o = lw_print_default;
  o.operand_shapes = true;
  char *out = format(text, &o);
  assert_non_null(strstr(out, "HloModule module_fused_computation, "));
  const char *body = strstr(out, "ENTRY ");
  assert_non_null(body);
  assert_memory_equal(body + 6, text, strlen(text));
  free(out);
}

static void log_lines_lose_their_prefix(void **state) {
  (void)state;
  char *out = format(
      "I0614 10:20:30.123456   77 dump.cc:12] HloModule m\n"
      "I0614 10:20:30.123456   77 dump.cc:12] ENTRY e {\n"
      "W0614 10:20:30.123457   77 dump.cc:12]   x = f32[] parameter(0)\n"
      "I0614 10:20:30.123458   77 dump.cc:12] }\n",
      &lw_print_default);
  assert_non_null(strstr(out, "ROOT %x = f32[] parameter(0)"));
  free(out);
}

static void places_are_kept(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_module *m;
  assert_null(read_in(ctx,
                      "HloModule m\n\nENTRY %e {\n   ROOT %x = f32[] "
                      "parameter(0)\n}\n",
                      &m));
  assert_int_equal(m->entry->line, 3);
  assert_int_equal(m->entry->column, 7);
  assert_int_equal(m->entry->root->line, 4);
  assert_int_equal(m->entry->root->column, 9);
  lw_module_free(m);
  lw_context_free(ctx);
}

/* After passes the lists may be out of order; the text never is. */
static void definitions_print_before_uses(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_module *m;
  assert_null(read_in(ctx,
                      "HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n"
                      "  y = negate(x)\n  ROOT z = abs(y)\n}\n",
                      &m));
  lw_inst *x = m->entry->params.data[0];
  lw_inst *late = lw_inst_new(m->entry, LW_OP_SQRT, x->shape, "late", 1, &x);
  lw_inst_set_operand(x->next, 0, late);
  lw_buf b = {0};
  lw_module_print(&b, m, &lw_print_default);
  lw_module *again;
  lw_status st = read_in(ctx, b.data, &again);
  if (st) fail_msg("%s", lw_status_message(st));
  lw_module_free(again);
  lw_buf_free(&b);
  lw_module_free(m);
  lw_context_free(ctx);
}

/* ---- messages ---- */

static void messages(void **state) {
  (void)state;
  expect_error("", "t.hlo:1:1: error: the text is empty");
  expect_error(
      "HloModule m, is_schedules=true\nENTRY e { ROOT x = f32[] "
      "parameter(0) }",
      "t.hlo:1:14: error: a module has no attribute 'is_schedules'; "
      "did you mean 'is_scheduled'?");
  expect_error_in("  x = f32[] parameter(0)\n  y = f32[] negat(x)",
                  "t.hlo:5:13: error: unknown opcode 'negat'; did you mean "
                  "'negate'?\n    y = f32[] negat(x)\n              ^");
  expect_error_in(
      "  x = f32[4] parameter(0)\n  y = transpose(x), "
      "dimension={0}",
      "t.hlo:5:21: error: transpose has no attribute 'dimension'; "
      "did you mean 'dimensions'?");
  expect_error_in("  x = f32[4] parameter(0)\n  y = transpose(x)",
                  "t.hlo:5:3: error: transpose needs the attribute "
                  "'dimensions'");
  expect_error_in("  x = f32[4] parameter(0), metadata={}, metadata={}",
                  "attribute 'metadata' is given twice");
  expect_error_in("  c = f32[300] constant({...})",
                  "t.hlo:4:25: error: the values of this constant were left "
                  "out of the text ({...}), so the program cannot be run");
  expect_error_in("  c = f32[3] constant({1,2})",
                  "expected 3 elements in dimension 0, found 2");
  expect_error_in("  c = f32[3] constant(1)",
                  "this element stands in 0 braces, but a f32[3] literal has "
                  "1");
  expect_error_in("  c = s8[1] constant({300})", "300 is out of range for s8");
  expect_error_in("  c = f32[] constant(1e39)", "1e39 is out of range for f32");
  expect_error_in("  x = f32[] parameter(0)\n  y = f32[] add(x)",
                  "add takes 2 operands, but has 1");
  expect_error_in("  x = f32[] parameter(0)\n  y = f32[] parameter(0)",
                  "parameter(0) is there already: 'x'");
  expect_error_in("  x = f32[] parameter(1)", "no parameter(0)");
  expect_error_in("  x = f32[] parameter(0)\n  x = f32[] negate(x)",
                  "instruction 'x' is defined twice; the first time in line 4");
  expect_error_in("  x = f32[2] parameter(0)\n  y = f32[2] negate(f32[3] x)",
                  "the operand is written as f32[3]{0}, but 'x' is f32[2]{0}");
  expect_error_in("  x = f32[2]{1} parameter(0)", "not a permutation");
  expect_error_in("  x = f32[2] parameter(0)\n  y = f32[] get-tuple-element(x)",
                  "get-tuple-element needs the attribute 'index'");
  expect_error_in("  x = f32[2] parameter(0)\n  y = slice(x), slice={[0:1]}",
                  "slice needs its result shape before the opcode");
  expect_error_in("  ROOT x = f32[] parameter(0)\n  ROOT y = f32[] negate(x)",
                  "a second ROOT");
}

static void other_texts(void **state) {
  (void)state;
  expect_error("module @jit_f attributes {} {\n}\n", "this is MLIR");
  expect_error(
      "HloModule a\nENTRY e {\n  x = f32[] parameter(0)\n}\n\n"
      "HloModule b\nENTRY e {\n  x = f32[] parameter(0)\n}\n",
      "t.hlo:6:1: error: a second HloModule");
}

static void all_problems_are_reported(void **state) {
  (void)state;
  static const char text[] =
      "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  a = f32[4] bad(x)\n"
      "  b = f32[4] negate(a)\n  c = f32[4] worse(b)\n  d = f32[4] "
      "negate(q)\n}";
  lw_context *ctx = lw_context_new();
  lw_diags d = {0};
  lw_module *m;
  lw_status st = lw_read_text(ctx, text, strlen(text), "t", &d, &m);
  assert_non_null(st);
  /* b fails with a, silently; q is unknown. */
  assert_int_equal(d.count, 3);
  assert_int_equal(d.list.data[0].line, 4);
  assert_int_equal(d.list.data[1].line, 6);
  assert_int_equal(d.list.data[2].line, 7);
  lw_status_free(st);
  lw_diags_free(&d);
  lw_context_free(ctx);
}

static void cycles(void **state) {
  (void)state;
  expect_error_in("  a = f32[] negate(b)\n  b = f32[] negate(a)",
                  "t.hlo:4:20: error: 'b' is used before it is defined (line "
                  "5)");
  expect_error_in("  a = f32[] negate(a)", "no instruction 'a'");
  expect_error(
      "f {\n  p = f32[] parameter(0)\n  c = f32[] call(p), "
      "to_apply=f\n}\n",
      "no computation 'f' is defined above");
}

/* ---- hostile input ---- */

static char *repeat(const char *head, const char *s, size_t n) {
  size_t h = strlen(head), k = strlen(s);
  char *out = malloc(h + n * k + 1);
  assert_non_null(out);
  memcpy(out, head, h);
  for (size_t i = 0; i < n; i++) memcpy(out + h + i * k, s, k);
  out[h + n * k] = 0;
  return out;
}

static void deep_nesting(void **state) {
  (void)state;
  static const char *const units[] = {
      "(", "negate(", "{", "[", "x(", "b(", "call(x), to_apply={ x = "};
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
    char *text = repeat("HloModule m\nENTRY e {\n  a = ", units[i], 100000);
    expect_error(text, "t.hlo:3:");
    free(text);
  }
  char *text =
      repeat("HloModule m\nENTRY e {\n  a = f32[] constant(", "{", 100000);
  expect_error(text, "too many braces for rank 0");
  free(text);
}

static void lying_sizes(void **state) {
  (void)state;
  expect_error_in("  a = f32[1000000000000] constant({1})", "needs");
  expect_error_in("  a = f32[] parameter(999999999999)", "between 0 and");
  expect_error_in("  a = f32[99999999999999999999] parameter(0)",
                  "out of range");
}

static void nul_bytes(void **state) {
  (void)state;
  static const char text[] =
      "HloModule m\nENTRY e { ROOT p = f32[] parameter(0), "
      "metadata={op_name=\"a\0b\"} }";
  lw_context *ctx = lw_context_new();
  lw_module *m = NULL;
  lw_status st = lw_read_text(ctx, text, sizeof text - 1, "t.hlo", NULL, &m);
  assert_non_null(st);
  assert_non_null(
      strstr(lw_status_message(st), "t.hlo:2:60: error: a NUL byte"));
  lw_status_free(st);
  lw_context_free(ctx);
}

/* t1 = tuple(t0, t0), t2 = tuple(t1, t1), ... */
static void doubling_tuples(void **state) {
  (void)state;
  lw_buf b = {0};
  lw_buf_str(&b, "  t0 = f32[] parameter(0)\n");
  for (int i = 0; i < 64; i++)
    lw_buf_printf(&b, "  t%d = tuple(t%d, t%d)\n", i + 1, i, i);
  expect_error_in(b.data, "leaves");
  lw_buf_free(&b);
}

/* Every prefix of real texts: an error or a module, never a crash. */
static void truncation(void **state) {
  (void)state;
  static const char *const files[] = {"ops",       "control",   "async",
                                      "scheduled", "constants", "shapes",
                                      "sharding"};
  for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
    char path[512];
    char *text;
    size_t len;
    snprintf(path, sizeof path, "%s/text/%s.hlo", LW_TEST_DATA, files[f]);
    lw_status st = lw_file_read(path, &text, &len);
    if (st) fail_msg("%s", lw_status_message(st));
    lw_context *ctx = lw_context_new();
    for (size_t n = 0; n < len; n += 1) {
      char *part = malloc(n ? n : 1); /* so that sanitizers see the end */
      assert_non_null(part);
      memcpy(part, text, n);
      lw_module *m;
      lw_diags d = {0};
      st = lw_read_text(ctx, part, n, "t", &d, &m);
      assert_true(st ? !m : m != NULL);
      lw_status_free(st);
      lw_diags_free(&d);
      lw_module_free(m);
      free(part);
    }
    lw_context_free(ctx);
    free(text);
  }
}

/* Bytes of a real text changed at random, with a fixed seed. */
static void mutation(void **state) {
  (void)state;
  char path[512];
  char *text;
  size_t len;
  snprintf(path, sizeof path, "%s/text/ops.hlo", LW_TEST_DATA);
  lw_status st = lw_file_read(path, &text, &len);
  if (st) fail_msg("%s", lw_status_message(st));
  lw_context *ctx = lw_context_new();
  char *copy = malloc(len);
  assert_non_null(copy);
  uint64_t seed = 1;
  static const char bytes[] = "{}()[]=,:%\"'#*<>-0123456789abefx._ \n\\?~";
  for (int round = 0; round < 2000; round++) {
    memcpy(copy, text, len);
    for (int k = 0; k < 1 + round % 4; k++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      copy[(seed >> 33) % len] = bytes[(seed >> 20) % (sizeof bytes - 1)];
    }
    lw_module *m;
    st = lw_read_text(ctx, copy, len, "t", NULL, &m);
    if (m) {
      lw_buf b = {0};
      lw_module_print(&b, m, &lw_print_default);
      lw_buf_free(&b);
    }
    lw_status_free(st);
    lw_module_free(m);
  }
  free(copy);
  free(text);
  lw_context_free(ctx);
}

/* ---- async ---- */

static void async_sugar(void **state) {
  (void)state;
  static const char lines[] =
      "  x = f32[8] parameter(0)\n"
      "  s = ((f32[8]), f32[4], s32[]) slice-start(x), slice={[0:4]}, "
      "async_execution_thread=\"other\"\n"
      "  d = f32[4] slice-done(s), async_execution_thread=\"other\"";
  expect_line(lines,
              "slice-start(%x), async_execution_thread=\"other\", "
              "slice={[0:4]}");
  expect_line(lines, "ROOT %d = f32[4]{0} slice-done(%s)");
  char *text = module_of(lines);
  lw_print_options o = lw_print_default;
  o.async_sugar = false;
  char *out = format(text, &o);
  assert_non_null(strstr(out,
                         "async-start(%x), async_execution_thread="
                         "\"other\", calls=%async_wrapped"));
  assert_non_null(strstr(out,
                         "ROOT %async_op = f32[4]{0} slice(%async_param), "
                         "slice={[0:4]}"));
  char *back = format(out, &lw_print_default);
  char *direct = format(text, &lw_print_default);
  assert_string_equal(back, direct);
  free(text);
  free(out);
  free(back);
  free(direct);
  expect_error_in(
      "  x = f32[8] parameter(0)\n"
      "  s = ((f32[8]), f32[8], s32[]) negate-start(x)\n"
      "  d = f32[8] abs-done(s)",
      "the start wraps negate, not abs");
  expect_error_in("  x = f32[8] parameter(0)\n  s = f32[8] copy-update(x)",
                  "unknown opcode 'copy-update'");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tokens),
      cmocka_unit_test(token_places),
      cmocka_unit_test(escapes),
      cmocka_unit_test(stable_files),
      cmocka_unit_test(attributes_print_back),
      cmocka_unit_test(fold_order_is_a_frontend_attribute),
      cmocka_unit_test(numbers_print_exactly),
      cmocka_unit_test(names),
      cmocka_unit_test(compact_tuples),
      cmocka_unit_test(bare_fragment),
      cmocka_unit_test(log_lines_lose_their_prefix),
      cmocka_unit_test(places_are_kept),
      cmocka_unit_test(definitions_print_before_uses),
      cmocka_unit_test(messages),
      cmocka_unit_test(other_texts),
      cmocka_unit_test(all_problems_are_reported),
      cmocka_unit_test(cycles),
      cmocka_unit_test(deep_nesting),
      cmocka_unit_test(lying_sizes),
      cmocka_unit_test(nul_bytes),
      cmocka_unit_test(doubling_tuples),
      cmocka_unit_test(truncation),
      cmocka_unit_test(mutation),
      cmocka_unit_test(async_sugar),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
