/* The checker: a wrong module for each rule, with the place and the message it
 * must give; hostile modules; speed. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hlo/check.h"
#include "hlo/infer.h"
#include "reader/reader.h"
#include "unit.h"

#define ADD                                                   \
  "add {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n" \
  " ROOT z = f32[] add(x, y)\n}\n"
#define ENTRY "ENTRY e {\n p = f32[2,3] parameter(0)\n"

typedef struct {
  const char *text;
  int line, column; /* 0: without a place */
  const char *message;
} wrong;

/* Everything below is accepted by the parser: its shapes are given. */
static const wrong cases[] = {
    {"HloModule m\n" ENTRY " ROOT r = f32[2,4] negate(p)\n}\n", 4, 7,
     "r: negate gives f32[2,3], but the shape written is f32[2,4]"},
    {"HloModule m\n" ENTRY " q = f32[3] constant({1,2,3})\n"
     " ROOT r = f32[2,3] add(p, q)\n}\n",
     5, 7, "there is no implicit broadcast; add a broadcast instruction"},
    {"HloModule m\n" ENTRY " q = s32[2,3] convert(p)\n"
     " ROOT r = f32[2,3] add(p, q)\n}\n",
     5, 7, "same element type; got f32[2,3] and s32[2,3] (add a convert)"},
    {"HloModule m\n" ENTRY " q = bf16[2,3] convert(p)\n"
     " ROOT r = f32[2,3] add(p, q)\n}\n",
     5, 7, "mixes f32 and bf16; add a convert"},
    {"HloModule m\n" ENTRY " ROOT r = f32[3,2] broadcast(p), "
     "dimensions={0,1}\n}\n",
     4, 7, "operand dimension 0 of f32[2,3] is mapped to dimension 0"},
    {"HloModule m\n" ENTRY " ROOT r = f32[2,3,4] broadcast(p), "
     "dimensions={0,3}\n}\n",
     4, 7, "dimensions names dimension 3, but the shape has 3 dimensions"},
    {"HloModule m\n" ENTRY " ROOT r = f32[7] reshape(p)\n}\n", 4, 7,
     "the element counts of f32[2,3] (6) and f32[7] (7) differ"},
    {"HloModule m\n" ENTRY " ROOT r = f32[2,2] slice(p), "
     "slice={[0:2], [2:4]}\n}\n",
     4, 7, "slice [2:4] of dimension 1 is out of bounds for f32[2,3]"},
    {"HloModule m\n" ENTRY " ROOT r = f32[2,2] slice(p), "
     "slice={[0:2], [0:3]}\n}\n",
     4, 7, "slice [0:3:1] of dimension 1 has 3 elements"},
    {"HloModule m\n" ENTRY " i = s32[] constant(0)\n"
     " ROOT r = f32[2,9] dynamic-slice(p, i, i), "
     "dynamic_slice_sizes={2,9}\n}\n",
     5, 7, "slice size 9 of dimension 1 is out of bounds"},
    {"HloModule m\n" ENTRY " i = s32[] constant(0)\n"
     " ROOT r = f32[2,3] dynamic-update-slice(p, p, i)\n}\n",
     5, 7, "needs one start index for each of 2 dimensions; got 1"},
    {"HloModule m\n" ENTRY " ROOT r = s64[2,3] bitcast-convert(p)\n}\n", 4, 7,
     "do not have the same bits in matching dimensions"},
    {"HloModule m\n" ENTRY " ROOT r = f32[2,3] iota(), iota_dimension=2\n}\n",
     4, 7, "iota_dimension 2 is out of range"},
    {"HloModule m\n" ENTRY " ROOT r = f32[2,3] reduce-precision(p), "
     "exponent_bits=0, mantissa_bits=2\n}\n",
     4, 7, "exponent_bits must be at least 1"},
    {"HloModule m\n" ENTRY " ROOT r = pred[2,3] compare(p, p), direction=LT, "
     "type=SIGNED\n}\n",
     4, 7, "type=SIGNED does not compare f32 values"},
    {"HloModule m\n" ADD ENTRY " z0 = f32[] constant(0)\n"
     " ROOT r = f32[2] reduce(p, z0), dimensions={2}, to_apply=add\n}\n",
     10, 7, "dimensions names dimension 2"},
    {"HloModule m\nneg {\n x = f32[] parameter(0)\n"
     " ROOT z = f32[] negate(x)\n}\n" ENTRY " z0 = f32[] constant(0)\n"
     " ROOT r = f32[2] reduce(p, z0), dimensions={1}, to_apply=neg\n}\n",
     9, 7, "to_apply=neg must have 2 parameters; it has 1"},
    {"HloModule m\n" ENTRY " q = f32[4,5] constant({...})\n", 4, 0, NULL},
    {"HloModule m\n" ENTRY " ROOT r = f32[2,2] dot(p, p), "
     "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n",
     4, 7, "contracting dimensions 1 and 0 of f32[2,3] and f32[2,3] differ"},
    {"HloModule m\n" ENTRY " ROOT r = f32[3,2] transpose(p), "
     "dimensions={0,0}\n}\n",
     4, 7, "dimensions names dimension 0 twice"},
    {"HloModule m\n" ENTRY " t = (f32[2,3], f32[2,3]) tuple(p, p)\n"
     " ROOT r = f32[2,3] get-tuple-element(t), index=2\n}\n",
     5, 7, "index 2 is out of range"},
    {"HloModule m\n" ENTRY " ROOT r = (f32[2,3], f32[2,4]) tuple(p, p)\n}\n", 4,
     7,
     "tuple gives f32[2,3] in element 1, but the shape written has f32[2,4]"},
    /* fusions, calls */
    {"HloModule m\nf {\n a = f32[2,3] parameter(0)\n"
     " ROOT n = f32[2,3] negate(a)\n}\n" ENTRY
     " q = f32[2,3] fusion(p), kind=kLoop, calls=f\n"
     " ROOT r = f32[2,3] fusion(q), kind=kLoop, calls=f\n}\n",
     9, 7, "calls=f is already the body of q"},
    {"HloModule m\nf {\n a = f32[2,3] parameter(0)\n"
     " u = f32[2,3] exponential(a)\n ROOT n = f32[2,3] negate(a)\n}\n" ENTRY
     " ROOT r = f32[2,3] fusion(p), kind=kLoop, calls=f\n}\n",
     4, 2, "u: is in the body of r, but nothing uses it; drop it"},
    {"HloModule m\nf {\n a = f32[2,4] parameter(0)\n"
     " ROOT n = f32[2,4] negate(a)\n}\n" ENTRY
     " ROOT r = f32[2,3] fusion(p), kind=kLoop, calls=f\n}\n",
     8, 7, "parameter 0 of calls=f is f32[2,4], but gets f32[2,3]"},
    {"HloModule m\nf {\n a = f32[2,3] parameter(0)\n"
     " ROOT n = f32[2,3] negate(a)\n}\n" ENTRY
     " q = f32[2,3] fusion(p), kind=kLoop, calls=f\n"
     " ROOT r = f32[2,3] call(q), to_apply=f\n}\n",
     9, 7, "calls f, which is the body of a fusion"},
    {"HloModule m\nf {\n a = f32[2,3] parameter(0)\n"
     " ROOT n = f32[2,3] negate(a)\n}\n" ENTRY
     " ROOT r = f32[2,3] fusion(p), kind=kLoop, calls=f, "
     "output_to_operand_aliasing={{}: (1, {})}\n}\n",
     8, 7, "output_to_operand_aliasing names operand 1 of 1"},
    {"HloModule m\nc {\n a = f32[2,3] parameter(0)\n"
     " ROOT n = s32[] constant(1)\n}\nb {\n"
     " ROOT d = f32[2,3] parameter(0)\n}\n" ENTRY
     " ROOT r = f32[2,3] while(p), condition=c, body=b\n}\n",
     11, 7, "condition=c must return pred[]; it returns s32[]"},
    {"HloModule m\nb {\n a = f32[2,3] parameter(0)\n"
     " ROOT n = f32[3,2] reshape(a)\n}\n" ENTRY " i = s32[] constant(0)\n"
     " ROOT r = f32[2,3] conditional(i, p, p), "
     "branch_computations={b, b}\n}\n",
     9, 7, "conditional gives f32[3,2], but the shape written is f32[2,3]"},
    /* collectives */
    {"HloModule m\n" ADD ENTRY " ROOT r = f32[2,3] all-reduce(p), "
     "replica_groups={{0,1},{1,2}}, to_apply=add\n}\n",
     9, 7, "device 1 is in two replica groups"},
    {"HloModule m\n" ADD ENTRY " ROOT r = f32[2,3] all-reduce(p), "
     "replica_groups={{0},{1,2}}, to_apply=add\n}\n",
     9, 7, "replica groups must have one size"},
    {"HloModule m\n" ADD ENTRY " ROOT r = f32[2,3] all-reduce(p), "
     "replica_groups={}, use_global_device_ids=true, to_apply=add\n}\n",
     9, 7, "use_global_device_ids needs a channel_id"},
    {"HloModule m\n" ENTRY " ROOT r = f32[2,3] collective-permute(p), "
     "source_target_pairs={{0,1},{0,2}}\n}\n",
     4, 7, "device 0 is the source of two pairs"},
    {"HloModule m\n" ENTRY " ROOT r = f32[5,3] all-gather(p), "
     "dimensions={0}, replica_groups={{0,1}}\n}\n",
     4, 7, "times the group size 2"},
    {"HloModule m\n" ENTRY " ROOT r = f32[2,3] custom-call(p), "
     "custom_call_target=\"t\", "
     "operand_layout_constraints={f32[2,3]{1,0}, f32[2]{0}}\n}\n",
     4, 7, "operand_layout_constraints has 2 shapes for 1 operands"},
    {"HloModule m\n" ENTRY " ROOT r = f32[3,2] custom-call(p), "
     "custom_call_target=\"t\", "
     "output_to_operand_aliasing={{}: (0, {})}\n}\n",
     4, 7, "pairs f32[3,2] with f32[2,3], which differ"},
    {"HloModule m\n" ENTRY " t = (f32[2,3], f32[2,3], u32[]) copy-start(p)\n"
     " u = f32[2,3] copy-done(t)\n"
     " ROOT r = (f32[2,3], f32[2,3]) tuple(u, u)\n v = f32[2,3] "
     "copy-done(t)\n}\n",
     4, 2, "copy-start must have exactly one user, its -done"},
    {"HloModule m\n" ENTRY " t = (f32[2,3], f32[2,3]) tuple(p, p)\n"
     " ROOT u = f32[2,3] copy-done(t)\n}\n",
     5, 7, "copy-done must take a copy-start"},
    {"HloModule m\n" ENTRY " k = token[] after-all()\n"
     " s = (f32[2,3], u32[], token[]) send(p, k), channel_id=1\n"
     " ROOT d = token[] send-done(s), channel_id=2\n}\n",
     6, 7, "d: its channel_id 2 is not that of s, 1"},
    {"HloModule m\n" ENTRY " k = token[] after-all()\n"
     " s = (f32[2,3], u32[], token[]) send(p, k), channel_id=1, "
     "is_host_transfer=true\n d = token[] send-done(s), channel_id=1, "
     "is_host_transfer=true\n"
     " v = (f32[2], u32[], token[]) recv(d), channel_id=1, "
     "is_host_transfer=true\n ROOT w = (f32[2], token[]) recv-done(v), "
     "channel_id=1, is_host_transfer=true\n}\n",
     7, 2, "shares channel 1 with s, which transfers something else"},
    /* shardings */
    {"HloModule m\n" ENTRY " ROOT r = f32[2,3] negate(p), "
     "sharding={devices=[2,1,1]0,1}\n}\n",
     4, 7, "its sharding tiles 3 dimensions, but f32[2,3] has 2"},
    {"HloModule m\n" ENTRY " ROOT r = (f32[2,3]) tuple(p), "
     "sharding={{replicated}, {replicated}}\n}\n",
     4, 7, "its sharding has 2 elements for 1 leaves"},
    /* header */
    {"HloModule m, "
     "entry_computation_layout={(f32[2,4]{1,0})->f32[2,3]{1,0}}\n" ENTRY
     " ROOT r = f32[2,3] negate(p)\n}\n",
     3, 2, "p: is f32[2,3], but entry_computation_layout says f32[2,4]"},
    {"HloModule m, input_output_alias={ {}: (1, {}, may-alias) }\n" ENTRY
     " ROOT r = f32[2,3] negate(p)\n}\n",
     0, 0, "input_output_alias names parameter 1; the entry has 1"},
    {"HloModule m, input_output_alias={ {3}: (0, {}, may-alias) }\n" ENTRY
     " ROOT r = f32[2,3] negate(p)\n}\n",
     0, 0, "input_output_alias names an output that is not there"},
    {"HloModule m, input_output_alias={ {}: (0, {}, may-alias) }, "
     "buffer_donor={ (0, {}) }\n" ENTRY " ROOT r = f32[2,3] negate(p)\n}\n",
     0, 0, "parameter 0 is donated and aliased; drop one"},
};

static void check_text(const wrong *w, lw_context *ctx) {
  lw_module *m = NULL;
  lw_diags d = {.file = "t"};
  lw_status s = lw_read_text(ctx, w->text, strlen(w->text), "t", NULL, &m);
  if (!w->message) { /* the reader's business */
    assert_non_null(s);
    lw_status_free(s);
    return;
  }
  if (s) fail_msg("%s\n%s", w->text, lw_status_message(s));
  lw_check_module(m, (lw_check_options){0}, &d);
  bool found = false;
  for (size_t i = 0; i < d.list.len && !found; i++)
    found = strstr(d.list.data[i].message, w->message) &&
            d.list.data[i].line == w->line &&
            d.list.data[i].column == w->column;
  if (!found) {
    lw_buf b = {0};
    lw_diags_render(&d, &b);
    fail_msg("expected %d:%d: %s\nin\n%s\ngot\n%s", w->line, w->column,
             w->message, w->text, lw_buf_cstr(&b));
  }
  lw_diags_free(&d);
  lw_module_free(m);
}

static void finds_each(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    check_text(&cases[i], ctx);
  lw_context_free(ctx);
}

static void reports_all(void **state) {
  (void)state;
  static const char text[] = "HloModule m\n" ENTRY
                             " a = f32[3] negate(p)\n b = s32[2,3] negate(p)\n"
                             " ROOT c = f32[9] reshape(p)\n}\n";
  lw_context *ctx = lw_context_new();
  lw_module *m;
  lw_diags d = {.file = "t", .text = text, .text_len = sizeof text - 1};
  assert_null(lw_read_text(ctx, text, sizeof text - 1, "t", NULL, &m));
  lw_check_module(m, (lw_check_options){0}, &d);
  assert_int_equal(d.count, 3);
  lw_status s = lw_diags_status(&d);
  assert_non_null(
      strstr(lw_status_message(s), "t:4:2: error: a: negate gives"));
  assert_non_null(strstr(lw_status_message(s), "\n   ^"));
  lw_status_free(s);
  lw_diags_free(&d);
  lw_module_free(m);
  lw_context_free(ctx);
}

/* ---- modules only a wrong pass can make ---- */

static lw_module *small(lw_context *ctx) {
  static const char text[] =
      "HloModule m\nb {\n w = f32[2,3] parameter(0)\n"
      " ROOT v = f32[2,3] negate(w)\n}\n" ENTRY
      " n = f32[2,3] negate(p)\n k = f32[2,3] call(n), to_apply=b\n"
      " ROOT r = f32[2,3] exponential(k)\n}\n";
  lw_module *m;
  lw_status s = lw_read_text(ctx, text, sizeof text - 1, "t", NULL, &m);
  if (s) fail_msg("%s", lw_status_message(s));
  return m;
}

static void expect_message(const lw_module *m, const char *want) {
  lw_status s = lw_check_status(m, (lw_check_options){0}, "after pass x");
  assert_non_null(s);
  if (!strstr(lw_status_message(s), want) ||
      strncmp(lw_status_message(s), "after pass x: ", 14))
    fail_msg("%s is not in\n%s", want, lw_status_message(s));
  lw_status_free(s);
}

static void finds_cycles(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_module *m = small(ctx);
  lw_inst *n = m->entry->first->next;
  lw_inst_set_operand(n, 0, m->entry->root);
  expect_message(m, "depends on itself");
  lw_inst_set_operand(n, 0, n);
  expect_message(m, "n: depends on itself: it uses n");
  lw_module_free(m);
  m = small(ctx);
  lw_inst_add_control_pred(m->entry->first->next, m->entry->root);
  expect_message(m, "depends on itself");
  lw_module_free(m);
  lw_context_free(ctx);
}

static void finds_recursion(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_module *m = small(ctx);
  lw_comp *b = m->first_comp;
  lw_inst *call =
      lw_inst_new(b, LW_OP_CALL, b->root->shape, "again", 1, &b->root);
  lw_inst_set_comp(call, LW_ATTR_TO_APPLY, b);
  expect_message(m, "computations cannot be recursive (use while)");
  lw_module_free(m);
  lw_context_free(ctx);
}

static void finds_broken_structure(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_module *m = small(ctx);
  lw_comp *b = m->first_comp;
  lw_inst_set_operand(m->entry->first->next, 0, b->root);
  expect_message(m, "operand 0, v, is not in the same computation");
  lw_module_free(m);

  m = small(ctx);
  m->entry->root = m->first_comp->root;
  expect_message(m, "its root v is not in it");
  m->entry->root = NULL;
  expect_message(m, "e: has no root; mark one instruction ROOT");
  m->entry = NULL;
  expect_message(m, "no entry computation; mark one ENTRY");
  lw_module_free(m);

  m = small(ctx);
  lw_inst_remove_attr(m->entry->root->operands[0].def, LW_ATTR_TO_APPLY);
  expect_message(m, "call needs the attribute to_apply");
  lw_inst_set_i64(m->entry->root, LW_ATTR_K, 3);
  expect_message(m, "exponential does not take the attribute k");
  lw_module_free(m);

  m = small(ctx);
  m->entry->root->name = m->first_comp->root->name;
  expect_message(m, "v: the name is already used in line 4");
  m->entry->root->name = "";
  expect_message(m, "has no name");
  lw_module_free(m);

  m = small(ctx);
  lw_inst *p = m->entry->params.data[0];
  lw_inst_set_i64(p, LW_ATTR_PARAMETER_NUMBER, 7);
  expect_message(m, "parameter number 7 is out of range");
  m->entry->params.data[0] = NULL;
  expect_message(m, "has 1 parameters, but none numbered 0");
  lw_module_free(m);

  m = small(ctx);
  m->is_scheduled = true;
  lw_inst_move_before(m->entry->root, m->entry->first);
  expect_message(m, "r: is scheduled before its operand k");
  lw_module_free(m);

  m = small(ctx);
  lw_module_remove_comp(m, m->first_comp);
  expect_message(m, "calls b, which is not in the module");
  lw_module_free(m);
  lw_context_free(ctx);
}

static void checks_folds(void **state) {
  (void)state;
  static const char text[] =
      "HloModule m\n" ADD ENTRY
      " z0 = f32[] constant(0)\n"
      " ROOT r = f32[2] reduce(p, z0), dimensions={1}, to_apply=add\n}\n";
  lw_context *ctx = lw_context_new();
  lw_module *m;
  assert_null(lw_read_text(ctx, text, sizeof text - 1, "t", NULL, &m));
  int64_t v[2] = {0, 3};
  lw_inst_set_i64s(m->entry->root, LW_ATTR_FOLD, 2, v);
  assert_null(lw_check_status(m, (lw_check_options){0}, NULL));
  v[1] = 2;
  lw_inst_set_i64s(m->entry->root, LW_ATTR_FOLD, 2, v);
  expect_message(m, "run 2 does not divide the 3 elements");
  v[0] = 5;
  lw_inst_set_i64s(m->entry->root, LW_ATTR_FOLD, 2, v);
  expect_message(m, "lawson.fold must be");
  lw_module_free(m);
  lw_context_free(ctx);
}

static void keeps_layouts(void **state) {
  (void)state;
  static const char text[] =
      "HloModule m\n" ENTRY " ROOT r = f32[2,3]{0,1} negate(p)\n}\n";
  lw_context *ctx = lw_context_new();
  lw_module *m;
  assert_null(lw_read_text(ctx, text, sizeof text - 1, "t", NULL, &m));
  assert_null(lw_check_status(m, (lw_check_options){0}, NULL));
  lw_status s =
      lw_check_status(m, (lw_check_options){.layout_sensitive = true}, NULL);
  assert_non_null(strstr(lw_status_message(s), "cannot change the layout"));
  lw_status_free(s);
  lw_module_free(m);
  lw_context_free(ctx);
}

/* ---- hostile ---- */

/* tuple(t, t), sixty times over: 2^60 leaves in sixty atoms. */
static void survives_shared_tuples(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_module *m = lw_module_new(ctx, "m");
  lw_comp *c = lw_comp_new(m, "e");
  int64_t two = 2;
  lw_inst *t =
      lw_inst_parameter(c, 0, lw_shape_array(ctx, LW_F32, 1, &two), "p");
  for (int k = 0; k < 60; k++) {
    const lw_shape *elems[2] = {t->shape, t->shape};
    lw_inst *ops[2] = {t, t};
    t = lw_inst_new(c, LW_OP_TUPLE, lw_shape_tuple(ctx, 2, elems), NULL, 2,
                    ops);
  }
  c->root = t;
  m->entry = c;
  assert_null(lw_check_status(m, (lw_check_options){0}, NULL));
  lw_sharding leaf = {.type = LW_SH_REPLICATED};
  const lw_sharding *one = &leaf;
  lw_sharding sh = {.type = LW_SH_TUPLE, .n_elems = 1, .elems = &one};
  t->sharding = &sh;
  expect_message(m, "its sharding has 1 elements");
  lw_inst *bad = lw_inst_new(c, LW_OP_NEGATE, t->shape, NULL, 1, &t);
  c->root = bad;
  expect_message(m, "operand 0 must be an array; it is ((((");
  lw_module_free(m);
  lw_context_free(ctx);
}

static void survives_huge_dims(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_module *m = lw_module_new(ctx, "m");
  lw_comp *c = lw_comp_new(m, "e");
  int64_t big[2] = {INT64_MAX / 2, INT64_MAX / 2};
  const lw_shape *s = lw_shape_array(ctx, LW_F32, 2, big);
  lw_inst *p = lw_inst_parameter(c, 0, s, "p");
  lw_inst *three[3] = {p, p, p};
  lw_inst *cat = lw_inst_new(c, LW_OP_CONCATENATE, s, NULL, 3, three);
  int64_t zero = 0;
  lw_inst_set_i64s(cat, LW_ATTR_DIMENSIONS, 1, &zero);
  c->root = cat;
  m->entry = c;
  expect_message(m, "dimension 0 overflows");
  lw_module_free(m);
  lw_context_free(ctx);
}

static void survives_high_rank(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_module *m = lw_module_new(ctx, "m");
  lw_comp *c = lw_comp_new(m, "e");
  int64_t ones[65];
  for (int k = 0; k < 65; k++) ones[k] = 1;
  const lw_shape *s = lw_shape_array(ctx, LW_F32, 65, ones);
  lw_inst *p = lw_inst_parameter(c, 0, s, "p");
  c->root = lw_inst_new(c, LW_OP_NEGATE, s, NULL, 1, &p);
  m->entry = c;
  expect_message(m, "has too many dimensions");
  lw_module_free(m);
  lw_context_free(ctx);
}

/* Each computation calls the next twice: 2^30 paths. */
static void survives_call_ladders(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_module *m = lw_module_new(ctx, "m");
  int64_t two = 2;
  const lw_shape *s = lw_shape_array(ctx, LW_F32, 1, &two);
  lw_comp *below = NULL;
  for (int k = 0; k < 30; k++) {
    lw_comp *c = lw_comp_new(m, "c");
    lw_inst *v = lw_inst_parameter(c, 0, s, NULL);
    for (int j = 0; below && j < 2; j++) {
      v = lw_inst_new(c, LW_OP_CALL, s, NULL, 1, &v);
      lw_inst_set_comp(v, LW_ATTR_TO_APPLY, below);
    }
    c->root = v;
    below = c;
  }
  m->entry = below;
  assert_null(lw_check_status(m, (lw_check_options){0}, NULL));
  lw_module_free(m);
  lw_context_free(ctx);
}

/* A chain of 200,000: no recursion, near-linear time. */
static void is_fast(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_module *m = lw_module_new(ctx, "m");
  lw_comp *c = lw_comp_new(m, "e");
  int64_t dims[2] = {64, 64};
  const lw_shape *s =
      lw_shape_fill_layouts(ctx, lw_shape_array(ctx, LW_F32, 2, dims));
  lw_inst *v = lw_inst_parameter(c, 0, s, "p");
  for (int k = 0; k < 200000; k++) {
    lw_inst *ops[2] = {v, v};
    v = lw_inst_new(c, LW_OP_ADD, s, NULL, 2, ops);
  }
  c->root = v;
  m->entry = c;
  clock_t t = clock();
  assert_null(lw_check_status(m, (lw_check_options){0}, NULL));
  double seconds = (double)(clock() - t) / CLOCKS_PER_SEC;
  print_message("200,000 instructions checked in %.3f s\n", seconds);
  assert_true(seconds < 5); /* 0.1 s or so; sanitizers are slow */
  lw_module_free(m);
  lw_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(finds_each),
                                     cmocka_unit_test(reports_all),
                                     cmocka_unit_test(finds_cycles),
                                     cmocka_unit_test(finds_recursion),
                                     cmocka_unit_test(finds_broken_structure),
                                     cmocka_unit_test(checks_folds),
                                     cmocka_unit_test(keeps_layouts),
                                     cmocka_unit_test(survives_shared_tuples),
                                     cmocka_unit_test(survives_huge_dims),
                                     cmocka_unit_test(survives_high_rank),
                                     cmocka_unit_test(survives_call_ladders),
                                     cmocka_unit_test(is_fast)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
