/* What counts in a fingerprint and what does not; what a diff says. */
#include <string.h>

#include "hlo/diff.h"
#include "hlo/fingerprint.h"
#include "reader/reader.h"
#include "unit.h"

static lw_module *read_text(lw_context *ctx, const char *text) {
  lw_module *m;
  lw_status s = lw_read_text(ctx, text, strlen(text), "t", NULL, &m);
  if (s) fail_msg("%s\n%s", lw_status_message(s), text);
  return m;
}

static uint64_t fp(const char *text, unsigned levels) {
  lw_context *ctx = lw_context_new();
  lw_module *m = read_text(ctx, text);
  uint64_t h = lw_module_fingerprint(m, levels);
  lw_module_free(m);
  lw_context_free(ctx);
  return h;
}

#define BASE                                                               \
  "HloModule m\nadd {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n" \
  " ROOT z = f32[] add(x, y)\n}\nENTRY e {\n"                              \
  " p = f32[2,3]{1,0} parameter(0)\n k = f32[] constant(1)\n"              \
  " ROOT r = f32[2]{0} reduce(p, k), dimensions={1}, to_apply=add\n}\n"

static void ignores_names_and_order(void **state) {
  (void)state;
  assert_true(
      fp(BASE, LW_FP_ALL) ==
      fp("HloModule other\nplus {\n b = f32[] parameter(1)\n"
         " a = f32[] parameter(0)\n ROOT c = f32[] add(a, b), "
         "metadata={op_name=\"x\"}\n}\nENTRY main {\n one = f32[] constant(1)\n"
         " in = f32[2,3]{1,0} parameter(0)\n ROOT out = f32[2]{0} "
         "reduce(in, one), dimensions={1}, to_apply=plus, "
         "origin={{\"q\"}}\n}\n",
         LW_FP_ALL));
}

typedef struct {
  const char *from, *to;
  unsigned level; /* the one that sees it; 0: none */
} edit;

static void replaced(char *out, size_t n, const char *from, const char *to) {
  const char *at = strstr(BASE, from);
  assert_non_null(at);
  lw_buf b = {0};
  lw_buf_add(&b, BASE, (size_t)(at - BASE));
  lw_buf_str(&b, to);
  lw_buf_str(&b, at + strlen(from));
  assert_true(b.len < n);
  memcpy(out, b.data, b.len + 1);
  lw_buf_free(&b);
}

static void levels_see_their_own(void **state) {
  (void)state;
  static const edit edits[] = {
      {"add(x, y)", "multiply(x, y)", LW_FP_STRUCTURE},
      {"add(x, y)", "add(y, x)", LW_FP_STRUCTURE},
      {"f32[2]{0} reduce(p, k), dimensions={1}",
       "f32[3]{0} reduce(p, k), dimensions={0}", LW_FP_STRUCTURE},
      {"{1,0} parameter(0)", "{0,1} parameter(0)", LW_FP_LAYOUT},
      {"constant(1)", "constant(2)", LW_FP_CONSTANTS},
      {"constant(1)", "constant(-0)", LW_FP_CONSTANTS},
      {"to_apply=add", "to_apply=add, sharding={replicated}", LW_FP_SHARDING},
      {"to_apply=add", "to_apply=add, backend_config={\"a\":1}",
       LW_FP_BACKEND_CONFIG},
      {"to_apply=add", "to_apply=add, frontend_attributes={a=\"1\"}",
       LW_FP_BACKEND_CONFIG},
      {"to_apply=add", "to_apply=add, metadata={op_name=\"n\"}", 0},
      {" k = ", " dead = f32[2,3]{1,0} negate(p)\n k = ", LW_FP_STRUCTURE}};
  for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
    char text[1000];
    replaced(text, sizeof text, edits[i].from, edits[i].to);
    for (unsigned l = 1; l <= LW_FP_CONSTANTS; l *= 2) {
      bool seen = fp(BASE, l) != fp(text, l);
      bool want = edits[i].level == l || edits[i].level == LW_FP_STRUCTURE;
      if (seen != want)
        fail_msg("%s -> %s: level %u %s it", edits[i].from, edits[i].to, l,
                 seen ? "sees" : "misses");
    }
    bool all = fp(BASE, LW_FP_ALL) != fp(text, LW_FP_ALL);
    assert_int_equal(all, edits[i].level != 0);
  }
}

/* One value used twice, against two equal ones; and who uses which. */
static void tells_copies_apart(void **state) {
  (void)state;
#define HEAD "HloModule m\nENTRY e {\n p = f32[2] parameter(0)\n"
  uint64_t once = fp(HEAD
                     " n = f32[2] negate(p)\n"
                     " ROOT r = f32[2] add(n, n)\n}\n",
                     1);
  uint64_t twice = fp(HEAD
                      " n = f32[2] negate(p)\n o = f32[2] negate(p)\n"
                      " ROOT r = f32[2] add(n, o)\n}\n",
                      1);
  assert_true(once != twice);
  uint64_t split = fp(HEAD
                      " n = f32[2] negate(p)\n o = f32[2] negate(p)\n"
                      " a = f32[2] exponential(n)\n b = f32[2] sine(o)\n"
                      " ROOT r = f32[2] add(a, b)\n}\n",
                      1);
  uint64_t merged = fp(HEAD
                       " n = f32[2] negate(p)\n o = f32[2] negate(p)\n"
                       " a = f32[2] exponential(n)\n b = f32[2] sine(n)\n"
                       " ROOT r = f32[2] add(a, b)\n}\n",
                       1);
  assert_true(split != merged);
}

static void knows_defaults(void **state) {
  (void)state;
  assert_true(
      fp(HEAD " ROOT r = pred[2] compare(p, p), direction=LT\n}\n", 31) ==
      fp(HEAD " ROOT r = pred[2] compare(p, p), direction=LT, "
              "type=FLOAT\n}\n",
         31));
  assert_true(
      fp(HEAD " ROOT r = pred[2] compare(p, p), direction=LT\n}\n", 31) !=
      fp(HEAD " ROOT r = pred[2] compare(p, p), direction=LT, "
              "type=TOTALORDER\n}\n",
         31));
}

static void order_counts_when_scheduled(void **state) {
  (void)state;
#define BODY1 " a = f32[2] negate(p)\n b = f32[2] sine(p)\n"
#define BODY2 " b = f32[2] sine(p)\n a = f32[2] negate(p)\n"
#define TAIL " ROOT r = f32[2] add(a, b)\n}\n"
#define SCHED                                   \
  "HloModule m, is_scheduled=true\nENTRY e {\n" \
  " p = f32[2] parameter(0)\n"
  assert_true(fp(HEAD BODY1 TAIL, 1) == fp(HEAD BODY2 TAIL, 1));
  assert_true(fp(SCHED BODY1 TAIL, 1) != fp(SCHED BODY2 TAIL, 1));
  assert_true(fp(SCHED BODY1 TAIL, 1) != fp(HEAD BODY1 TAIL, 1));
}

static void stable_value(void **state) {
  (void)state;
  /* Equal on every machine and run: stored results depend on it. */
  assert_true(fp(BASE, LW_FP_ALL) == fp(BASE, LW_FP_ALL));
  lw_context *ctx = lw_context_new();
  lw_module *m = read_text(ctx, BASE);
  assert_true(lw_inst_fingerprint(m->entry->root, 1) !=
              lw_inst_fingerprint(m->entry->first, 1));
  lw_module *copy;
  assert_null(lw_module_clone(m, &copy));
  assert_true(lw_module_fingerprint(copy, LW_FP_ALL) ==
              lw_module_fingerprint(m, LW_FP_ALL));
  lw_module_free(copy);
  lw_module_free(m);
  lw_context_free(ctx);
}

/* ---- diff ---- */

static void says_what_changed(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_module *a = read_text(ctx, HEAD
                           " n = f32[2] negate(p)\n s = f32[2] sine(n)\n"
                           " ROOT r = f32[2] add(s, p)\n}\n");
  lw_module *b = read_text(ctx,
                           "HloModule m\nENTRY e {\n q = f32[2] parameter(0)\n"
                           " m2 = f32[2] negate(q)\n c = f32[2] cosine(m2)\n"
                           " ROOT r = f32[2] add(c, q)\n}\n");
  lw_diff *d = lw_diff_modules(a, b, LW_FP_ALL);
  assert_true(d->moved);
  assert_int_equal(d->removed, 1);
  assert_int_equal(d->added, 1);
  assert_int_equal(d->changed, 1);
  lw_buf out = {0};
  lw_diff_print(&out, d, 0);
  assert_non_null(strstr(out.data, "MOVED\n"));
  assert_non_null(strstr(out.data, "- e: s = f32[2]{0} sine(n)"));
  assert_non_null(strstr(out.data, "+ e: c = f32[2]{0} cosine(m2)"));
  assert_non_null(strstr(out.data, "~ e: add r: operands"));
  lw_buf_free(&out);
  lw_diff_free(d);
  d = lw_diff_modules(a, a, LW_FP_ALL);
  assert_false(d->moved);
  assert_int_equal(d->items.len, 0);
  assert_int_equal(d->a.instructions, 4);
  lw_diff_free(d);
  lw_module_free(a);
  lw_module_free(b);
  lw_context_free(ctx);
}

/* op_name pairs what no longer computes the same. */
static void matches_by_source(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_module *a = read_text(ctx, HEAD
                           " s = f32[2] sine(p), metadata={op_name=\"f\"}\n"
                           " ROOT r = f32[2] add(s, p)\n}\n");
  lw_module *b = read_text(ctx, HEAD
                           " n = f32[2] negate(p)\n"
                           " t = f32[2] sine(n), metadata={op_name=\"f\"}\n"
                           " ROOT r = f32[2] add(t, p)\n}\n");
  lw_diff *d = lw_diff_modules(a, b, LW_FP_ALL);
  assert_int_equal(d->removed, 0);
  assert_int_equal(d->added, 1);
  assert_int_equal(d->changed, 1);
  for (size_t i = 0; i < d->items.len; i++)
    if (d->items.data[i].kind == LW_DIFF_CHANGED) {
      assert_string_equal(d->items.data[i].a->name, "s");
      assert_string_equal(d->items.data[i].b->name, "t");
      assert_string_equal(d->items.data[i].what, "operands");
    }
  lw_diff_free(d);
  lw_module_free(a);
  lw_module_free(b);
  lw_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ignores_names_and_order),
      cmocka_unit_test(levels_see_their_own),
      cmocka_unit_test(tells_copies_apart),
      cmocka_unit_test(knows_defaults),
      cmocka_unit_test(order_counts_when_scheduled),
      cmocka_unit_test(stable_value),
      cmocka_unit_test(says_what_changed),
      cmocka_unit_test(matches_by_source)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
