/* Plans of small modules: what shares a place, what is copied, and that the
 * checker agrees (and disagrees with plans that were tampered with). */
#include <string.h>

#include "../unit.h"
#include "fake_kernel.h"
#include "reader/reader.h"

typedef struct {
  lw_context *ctx;
  lw_module *m;
  lw_arena *a;
  lw_plan *p;
} fixture;

#define ADD                                      \
  "%add (a: f32[64], b: f32[64]) -> f32[64] {\n" \
  "  %a = f32[64] parameter(0)\n"                \
  "  %b = f32[64] parameter(1)\n"                \
  "  ROOT %r = f32[64] add(%a, %b)\n"            \
  "}\n"
#define NEG                            \
  "%neg (na: f32[64]) -> f32[64] {\n"  \
  "  %na = f32[64] parameter(0)\n"     \
  "  ROOT %nr = f32[64] negate(%na)\n" \
  "}\n"
#define INC                             \
  "%inc (ia: s32[]) -> s32[] {\n"       \
  "  %ia = s32[] parameter(0)\n"        \
  "  %one = s32[] constant(1)\n"        \
  "  ROOT %ir = s32[] add(%ia, %one)\n" \
  "}\n"
#define LESS                                               \
  "%less (la: s32[]) -> pred[] {\n"                        \
  "  %la = s32[] parameter(0)\n"                           \
  "  %ten = s32[] constant(10)\n"                          \
  "  ROOT %lr = pred[] compare(%la, %ten), direction=LT\n" \
  "}\n"

static void build_with(fixture *f, const char *text, bool no_alias) {
  f->ctx = lw_context_new();
  f->a = lw_arena_new();
  lw_status st = lw_read_text(f->ctx, text, strlen(text), "test", NULL, &f->m);
  if (st) fail_msg("%s", lw_status_message(st));
  lw_plan_options o = {.no_alias = no_alias, .build_kernel = fake_kernel_build};
  st = lw_plan_build(f->a, f->m, &o, &f->p);
  if (st) fail_msg("%s", lw_status_message(st));
  st = lw_plan_check(f->p);
  if (st) {
    lw_buf b = {0};
    lw_plan_print(&b, f->p);
    fail_msg("%s\n%s", lw_status_message(st), lw_buf_cstr(&b));
  }
}

static void build(fixture *f, const char *text) { build_with(f, text, false); }

static void done(fixture *f) {
  lw_arena_free(f->a);
  lw_module_free(f->m);
  lw_context_free(f->ctx);
}

static int count(const lw_node *n, lw_node_kind kind) {
  int total = n->kind == kind;
  for (int32_t k = 0; k < n->n_children; k++) {
    total += count(n->children[k], kind);
  }
  return total;
}

static const lw_node *find(const lw_node *n, lw_node_kind kind) {
  if (n->kind == kind) return n;
  for (int32_t k = 0; k < n->n_children; k++) {
    const lw_node *r = find(n->children[k], kind);
    if (r) return r;
  }
  return NULL;
}

static const lw_node *kernel_named(const lw_node *n, const char *name) {
  if (n->kind == LW_NODE_KERNEL && !strcmp(n->inst->name, name)) return n;
  for (int32_t k = 0; k < n->n_children; k++) {
    const lw_node *r = kernel_named(n->children[k], name);
    if (r) return r;
  }
  return NULL;
}

static void test_chain(void **state) {
  (void)state;
  fixture f;
  build(&f, "HloModule chain\n" NEG
            "ENTRY %e (x: f32[64]) -> f32[64] {\n"
            "  %x = f32[64] parameter(0)\n"
            "  %n1 = f32[64] fusion(%x), kind=kLoop, calls=%neg\n"
            "  %n2 = f32[64] fusion(%n1), kind=kLoop, calls=%neg\n"
            "  ROOT %n3 = f32[64] fusion(%n2), kind=kLoop, calls=%neg\n"
            "}\n");
  /* Everything is computed in the output's buffer. */
  assert_int_equal(f.p->temp_bytes, 0);
  assert_int_equal(count(f.p->root, LW_NODE_COPY), 0);
  assert_int_equal(f.p->n_slices, 2);
  done(&f);
}

static void test_no_alias(void **state) {
  (void)state;
  fixture f;
  build_with(&f,
             "HloModule chain\n" NEG
             "ENTRY %e (x: f32[64]) -> f32[64] {\n"
             "  %x = f32[64] parameter(0)\n"
             "  %n1 = f32[64] fusion(%x), kind=kLoop, calls=%neg\n"
             "  ROOT %n2 = f32[64] fusion(%n1), kind=kLoop, calls=%neg\n"
             "}\n",
             true);
  assert_int_equal(f.p->temp_bytes, 512);
  assert_int_equal(count(f.p->root, LW_NODE_COPY), 1);
  done(&f);
}

static void test_value_live_past_alias(void **state) {
  (void)state;
  fixture f;
  build(&f, "HloModule m\n" NEG ADD
            "ENTRY %e (x: f32[64]) -> f32[64] {\n"
            "  %x = f32[64] parameter(0)\n"
            "  %n1 = f32[64] fusion(%x), kind=kLoop, calls=%neg\n"
            "  %n2 = f32[64] fusion(%n1), kind=kLoop, calls=%neg\n"
            "  ROOT %s = f32[64] fusion(%n1, %n2), kind=kLoop, calls=%add\n"
            "}\n");
  const lw_node *n2 = kernel_named(f.p->root, "n2");
  assert_int_not_equal(n2->slices[0], n2->slices[1]);
  assert_int_equal(f.p->temp_bytes, 256);
  done(&f);
}

static void test_outputs_parameter_and_twice(void **state) {
  (void)state;
  fixture f;
  build(&f, "HloModule m\n" NEG
            "ENTRY %e (x: f32[64]) -> (f32[64], f32[64], f32[64], f32[2]) {\n"
            "  %x = f32[64] parameter(0)\n"
            "  %n = f32[64] fusion(%x), kind=kLoop, calls=%neg\n"
            "  %c = f32[2] constant({1, 2})\n"
            "  ROOT %t = (f32[64], f32[64], f32[64], f32[2]) "
            "tuple(%x, %n, %n, %c)\n"
            "}\n");
  /* x, the second n, and the constant. */
  assert_int_equal(count(f.p->root, LW_NODE_COPY), 3);
  assert_int_equal(f.p->n_constants, 1);
  done(&f);
}

static void test_donated(void **state) {
  (void)state;
  fixture f;
  build(&f, "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n" NEG
            "ENTRY %e (x: f32[64]) -> f32[64] {\n"
            "  %x = f32[64] parameter(0)\n"
            "  ROOT %n = f32[64] fusion(%x), kind=kLoop, calls=%neg\n"
            "}\n");
  assert_int_equal(f.p->output_alias[0], 0);
  assert_int_equal(f.p->n_slices, 1);
  assert_int_equal(count(f.p->root, LW_NODE_COPY), 0);
  done(&f);
}

static void test_donated_swap(void **state) {
  (void)state;
  fixture f;
  build(&f,
        "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: "
        "(1, {}, may-alias) }\n"
        "ENTRY %e (x: f32[64], y: f32[64]) -> (f32[64], f32[64]) {\n"
        "  %x = f32[64] parameter(0)\n"
        "  %y = f32[64] parameter(1)\n"
        "  ROOT %t = (f32[64], f32[64]) tuple(%y, %x)\n"
        "}\n");
  assert_int_equal(count(f.p->root, LW_NODE_COPY), 3);
  done(&f);
}

#define LOOP_TYPES "(s32[], f32[64], f32[64])"
#define LOOP(ROOT_B, ROOT_C)                                   \
  "%cond (cp: " LOOP_TYPES                                     \
  ") -> pred[] {\n"                                            \
  "  %cp = " LOOP_TYPES                                        \
  " parameter(0)\n"                                            \
  "  %ci = s32[] get-tuple-element(%cp), index=0\n"            \
  "  ROOT %cl = pred[] fusion(%ci), kind=kLoop, calls=%less\n" \
  "}\n"                                                        \
  "%body (bp: " LOOP_TYPES ") -> " LOOP_TYPES                  \
  " {\n"                                                       \
  "  %bp = " LOOP_TYPES                                        \
  " parameter(0)\n"                                            \
  "  %bi = s32[] get-tuple-element(%bp), index=0\n"            \
  "  %bx = f32[64] get-tuple-element(%bp), index=1\n"          \
  "  %by = f32[64] get-tuple-element(%bp), index=2\n"          \
  "  %bn = s32[] fusion(%bi), kind=kLoop, calls=%inc\n"        \
  "  %bs = f32[64] fusion(%bx, %by), kind=kLoop, calls=%add\n" \
  "  ROOT %bt = " LOOP_TYPES " tuple(%bn, " ROOT_B ", " ROOT_C \
  ")\n"                                                        \
  "}\n"                                                        \
  "ENTRY %e (x: f32[64], y: f32[64]) -> f32[64] {\n"           \
  "  %x = f32[64] parameter(0)\n"                              \
  "  %y = f32[64] parameter(1)\n"                              \
  "  %zero = s32[] constant(0)\n"                              \
  "  %init = " LOOP_TYPES                                      \
  " tuple(%zero, %x, %y)\n"                                    \
  "  %w = " LOOP_TYPES                                         \
  " while(%init), condition=%cond, body=%body\n"               \
  "  ROOT %g = f32[64] get-tuple-element(%w), index=1\n"       \
  "}\n"

static void test_while_in_place(void **state) {
  (void)state;
  fixture f;
  build(&f, "HloModule m\n" ADD INC LESS LOOP("%bs", "%by"));
  const lw_node *w = find(f.p->root, LW_NODE_WHILE);
  /* No copy in the loop; y is never copied; x and the counter are, before. */
  assert_int_equal(count(w, LW_NODE_COPY), 0);
  assert_int_equal(count(f.p->root, LW_NODE_COPY), 2);
  const lw_node *bs = kernel_named(w, "bs");
  assert_int_equal(bs->slices[0], bs->slices[2]);
  assert_int_equal(f.p->slices[bs->slices[1]].kind, LW_ALLOC_PARAM);
  assert_int_equal(f.p->slices[bs->slices[2]].kind, LW_ALLOC_OUTPUT);
  done(&f);
}

static void test_while_rotates(void **state) {
  (void)state;
  fixture f;
  /* x' = x + y, y' = x: the old x is needed after the new one is made, or the
   * sum is made where y was. Either way: one copy a step at most. */
  build(&f, "HloModule m\n" ADD INC LESS LOOP("%bs", "%bx"));
  const lw_node *w = find(f.p->root, LW_NODE_WHILE);
  assert_in_range(count(w, LW_NODE_COPY), 1, 2);
  done(&f);
}

static void test_while_swaps(void **state) {
  (void)state;
  fixture f;
  build(&f, "HloModule m\n" ADD INC LESS LOOP("%by", "%bx"));
  const lw_node *w = find(f.p->root, LW_NODE_WHILE);
  assert_int_equal(count(w, LW_NODE_COPY), 3);
  done(&f);
}

/* cases/17: one element of the state is updated a step, others are read. */
#define UPDATE_LOOP(EXTRA, INDEX)                                            \
  "%upd (ub: f32[1000], uv: f32[1], ui: s32[]) -> f32[1000] {\n"             \
  "  %ub = f32[1000] parameter(0)\n"                                         \
  "  %uv = f32[1] parameter(1)\n"                                            \
  "  %ui = s32[] parameter(2)\n"                                             \
  "  ROOT %ur = f32[1000] dynamic-update-slice(%ub, %uv, %ui)\n"             \
  "}\n"                                                                      \
  "%get (gb: f32[1000], gi: s32[]) -> f32[1] {\n"                            \
  "  %gb = f32[1000] parameter(0)\n"                                         \
  "  %gi = s32[] parameter(1)\n"                                             \
  "  ROOT %gr = f32[1] dynamic-slice(%gb, %gi), dynamic_slice_sizes={1}\n"   \
  "}\n"                                                                      \
  "%cond (cp: (s32[], f32[1000], f32[1])) -> pred[] {\n"                     \
  "  %cp = (s32[], f32[1000], f32[1]) parameter(0)\n"                        \
  "  %ci = s32[] get-tuple-element(%cp), index=0\n"                          \
  "  ROOT %cl = pred[] fusion(%ci), kind=kLoop, calls=%less\n"               \
  "}\n"                                                                      \
  "%body (bp: (s32[], f32[1000], f32[1])) -> (s32[], f32[1000], f32[1]) {\n" \
  "  %bp = (s32[], f32[1000], f32[1]) parameter(0)\n"                        \
  "  %bi = s32[] get-tuple-element(%bp), index=0\n"                          \
  "  %bb = f32[1000] get-tuple-element(%bp), index=1\n"                      \
  "  %v = f32[1] fusion(%bb, %bi), kind=kLoop, calls=%get\n"                 \
  "  %u = f32[1000] fusion(%bb, %v, %bi), kind=kLoop, calls=%upd\n" EXTRA    \
  "  %bn = s32[] fusion(%bi), kind=kLoop, calls=%inc\n"                      \
  "  ROOT %bt = (s32[], f32[1000], f32[1]) tuple(%bn, %u, " INDEX            \
  ")\n"                                                                      \
  "}\n"                                                                      \
  "ENTRY %e (x: f32[1000], y: f32[1]) -> (f32[1000], f32[1]) {\n"            \
  "  %x = f32[1000] parameter(0)\n"                                          \
  "  %y = f32[1] parameter(1)\n"                                             \
  "  %zero = s32[] constant(0)\n"                                            \
  "  %init = (s32[], f32[1000], f32[1]) tuple(%zero, %x, %y)\n"              \
  "  %w = (s32[], f32[1000], f32[1]) while(%init), condition=%cond, "        \
  "body=%body\n"                                                             \
  "  %a = f32[1000] get-tuple-element(%w), index=1\n"                        \
  "  %b = f32[1] get-tuple-element(%w), index=2\n"                           \
  "  ROOT %t = (f32[1000], f32[1]) tuple(%a, %b)\n"                          \
  "}\n"

static void test_while_update_in_place(void **state) {
  (void)state;
  fixture f;
  build(&f, "HloModule m\n" INC LESS UPDATE_LOOP("", "%v"));
  const lw_node *w = find(f.p->root, LW_NODE_WHILE);
  assert_int_equal(count(w, LW_NODE_COPY), 0);
  done(&f);
}

static void test_while_reader_goes_first(void **state) {
  (void)state;
  fixture f;
  /* %late reads the old buffer and comes after the update in post order. */
  build(&f, "HloModule m\n" INC LESS UPDATE_LOOP(
                "  %late = f32[1] fusion(%bb, %bi), kind=kLoop, calls=%get\n",
                "%late"));
  const lw_node *w = find(f.p->root, LW_NODE_WHILE);
  assert_int_equal(count(w, LW_NODE_COPY), 0);
  done(&f);
}

static void test_update_of_live_value_is_copied(void **state) {
  (void)state;
  fixture f;
  build(&f,
        "HloModule m\n"
        "%upd (ub: f32[64], uv: f32[1], ui: s32[]) -> f32[64] {\n"
        "  %ub = f32[64] parameter(0)\n"
        "  %uv = f32[1] parameter(1)\n"
        "  %ui = s32[] parameter(2)\n"
        "  ROOT %ur = f32[64] dynamic-update-slice(%ub, %uv, %ui)\n"
        "}\n" NEG ADD
        "ENTRY %e (x: f32[64], v: f32[1], i: s32[]) -> f32[64] {\n"
        "  %x = f32[64] parameter(0)\n"
        "  %v = f32[1] parameter(1)\n"
        "  %i = s32[] parameter(2)\n"
        "  %n = f32[64] fusion(%x), kind=kLoop, calls=%neg\n"
        "  %u = f32[64] fusion(%n, %v, %i), kind=kLoop, calls=%upd\n"
        "  ROOT %s = f32[64] fusion(%n, %u), kind=kLoop, calls=%add\n"
        "}\n");
  assert_int_equal(count(f.p->root, LW_NODE_COPY), 1);
  const lw_node *c = find(f.p->root, LW_NODE_COPY);
  assert_non_null(strstr(c->reason, "in-place update"));
  const lw_node *u = kernel_named(f.p->root, "u");
  assert_int_equal(u->slices[0], u->slices[3]);
  done(&f);
}

#define CONDITIONAL(SELECT, TYPE, FORM)                        \
  "%t (ta: f32[64]) -> f32[64] {\n"                            \
  "  %ta = f32[64] parameter(0)\n"                             \
  "  ROOT %tr = f32[64] fusion(%ta), kind=kLoop, calls=%neg\n" \
  "}\n"                                                        \
  "%f (fa: f32[64]) -> f32[64] {\n"                            \
  "  ROOT %fa = f32[64] parameter(0)\n"                        \
  "}\n"                                                        \
  "ENTRY %e (p: " TYPE                                         \
  ", x: f32[64]) -> f32[64] {\n"                               \
  "  %p = " TYPE                                               \
  " parameter(0)\n"                                            \
  "  %x = f32[64] parameter(1)\n"                              \
  "  %n = f32[64] fusion(%x), kind=kLoop, calls=%neg\n"        \
  "  %c = f32[64] conditional(%p, %n, %n), " FORM              \
  "\n"                                                         \
  "  ROOT %m = f32[64] fusion(%c), kind=kLoop, calls=%neg\n"   \
  "}\n"

static void test_conditional(void **state) {
  (void)state;
  fixture f;
  build(&f, "HloModule m\n" NEG CONDITIONAL(
                "p", "pred[]", "true_computation=%t, false_computation=%f"));
  const lw_node *c = find(f.p->root, LW_NODE_CONDITIONAL);
  assert_true(c->predicated);
  /* The operand dies in both branches: one place for all, no copy. */
  assert_int_equal(count(f.p->root, LW_NODE_COPY), 0);
  assert_int_equal(f.p->temp_bytes, 0);
  done(&f);
  build(&f, "HloModule m\n" NEG CONDITIONAL("p", "s32[]",
                                            "branch_computations={%t, %f}"));
  assert_false(find(f.p->root, LW_NODE_CONDITIONAL)->predicated);
  done(&f);
}

static void test_shared_body_and_calls(void **state) {
  (void)state;
  fixture f;
  build(&f, "HloModule m\n" NEG
            "%g (ga: f32[64]) -> f32[64] {\n"
            "  %ga = f32[64] parameter(0)\n"
            "  ROOT %gr = f32[64] fusion(%ga), kind=kLoop, calls=%neg\n"
            "}\n"
            "ENTRY %e (x: f32[64]) -> (f32[64], f32[64]) {\n"
            "  %x = f32[64] parameter(0)\n"
            "  %c1 = f32[64] call(%x), to_apply=%g\n"
            "  %c2 = f32[64] call(%c1), to_apply=%g\n"
            "  ROOT %t = (f32[64], f32[64]) tuple(%c1, %c2)\n"
            "}\n");
  assert_int_equal(f.p->n_kernels, 1);
  assert_int_equal(count(f.p->root, LW_NODE_KERNEL), 2);
  assert_int_equal(count(f.p->root, LW_NODE_COPY), 0);
  done(&f);
}

static void test_tokens_and_empty(void **state) {
  (void)state;
  fixture f;
  build(&f, "HloModule m\n" NEG
            "ENTRY %e (x: f32[64], z: f32[0]) -> (f32[64], token[], f32[0]) {\n"
            "  %x = f32[64] parameter(0)\n"
            "  %z = f32[0] parameter(1)\n"
            "  %k = token[] after-all()\n"
            "  %d = f32[64] add-dependency(%x, %k)\n"
            "  %n = f32[64] fusion(%d), kind=kLoop, calls=%neg\n"
            "  ROOT %t = (f32[64], token[], f32[0]) tuple(%n, %k, %z)\n"
            "}\n");
  assert_int_equal(count(f.p->root, LW_NODE_COPY), 0);
  done(&f);
}

static void test_checker_sees_tampering(void **state) {
  (void)state;
  fixture f;
  build(&f, "HloModule m\n" NEG ADD
            "ENTRY %e (x: f32[64]) -> f32[64] {\n"
            "  %x = f32[64] parameter(0)\n"
            "  %n1 = f32[64] fusion(%x), kind=kLoop, calls=%neg\n"
            "  %n2 = f32[64] fusion(%n1), kind=kLoop, calls=%neg\n"
            "  ROOT %s = f32[64] fusion(%n1, %n2), kind=kLoop, calls=%add\n"
            "}\n");
  lw_node *n2 = (lw_node *)(uintptr_t)kernel_named(f.p->root, "n2");
  int32_t right = n2->slices[1];
  n2->slices[1] = n2->slices[0]; /* n1 is still needed */
  lw_status st = lw_plan_check(f.p);
  assert_int_equal(lw_status_code(st), LW_INTERNAL);
  lw_status_free(st);
  n2->slices[1] = right;
  n2->slices[0] = right; /* reads what was never written */
  st = lw_plan_check(f.p);
  assert_int_equal(lw_status_code(st), LW_INTERNAL);
  lw_status_free(st);
  done(&f);
}

static void test_checker_sees_lost_state(void **state) {
  (void)state;
  fixture f;
  build(&f, "HloModule m\n" ADD INC LESS LOOP("%by", "%bx"));
  lw_node *w = (lw_node *)(uintptr_t)find(f.p->root, LW_NODE_WHILE);
  w->children[1]->n_children--; /* the last copy of the swap */
  lw_status st = lw_plan_check(f.p);
  assert_int_equal(lw_status_code(st), LW_INTERNAL);
  lw_status_free(st);
  done(&f);
}

static void test_print_is_stable(void **state) {
  (void)state;
  lw_buf b[2] = {{0}, {0}};
  for (int k = 0; k < 2; k++) {
    fixture f;
    build(&f, "HloModule m\n" ADD INC LESS LOOP("%bs", "%bx"));
    lw_plan_print(&b[k], f.p);
    done(&f);
  }
  assert_string_equal(b[0].data, b[1].data);
  assert_non_null(strstr(b[0].data, "while %w"));
  lw_buf_free(&b[0]);
  lw_buf_free(&b[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_chain),
      cmocka_unit_test(test_no_alias),
      cmocka_unit_test(test_value_live_past_alias),
      cmocka_unit_test(test_outputs_parameter_and_twice),
      cmocka_unit_test(test_donated),
      cmocka_unit_test(test_donated_swap),
      cmocka_unit_test(test_while_in_place),
      cmocka_unit_test(test_while_rotates),
      cmocka_unit_test(test_while_swaps),
      cmocka_unit_test(test_while_update_in_place),
      cmocka_unit_test(test_while_reader_goes_first),
      cmocka_unit_test(test_update_of_live_value_is_copied),
      cmocka_unit_test(test_conditional),
      cmocka_unit_test(test_shared_body_and_calls),
      cmocka_unit_test(test_tokens_and_empty),
      cmocka_unit_test(test_checker_sees_tampering),
      cmocka_unit_test(test_checker_sees_lost_state),
      cmocka_unit_test(test_print_is_stable),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
