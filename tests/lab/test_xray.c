/* The x-ray's model: what it says agrees with the reports, what it points to is
 * there, and no name can break out of the page. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/file.h"
#include "lab/xray.h"
#include "unit.h"

#define assert_ok(expr)                              \
  do {                                               \
    lw_status ok_ = (expr);                          \
    if (ok_) fail_msg("%s", lw_status_message(ok_)); \
  } while (0)

typedef struct {
  lw_context *ctx;
  lw_module *m, *after;
  lw_xray *x;
} fixture;

static lw_module *load(lw_context *ctx, const char *path) {
  char full[512];
  lw_module *m;
  snprintf(full, sizeof full, "%s/%s", LW_TEST_DATA, path);
  assert_ok(lw_load_module(ctx, full, NULL, NULL, &m));
  return m;
}

static fixture xray_of(const char *path, lw_compile_options o) {
  fixture f = {.ctx = lw_context_new()};
  f.m = load(f.ctx, path);
  assert_ok(lw_xray_lawson(f.m, &o, &f.x));
  return f;
}

static void end(fixture *f) {
  lw_xray_free(f->x);
  if (f->after) lw_module_free(f->after);
  lw_module_free(f->m);
  lw_context_free(f->ctx);
}

static cJSON *model_of(const lw_xray *x) {
  lw_buf b = {0};
  lw_xray_json(&b, x, NULL);
  cJSON *j = cJSON_Parse(lw_buf_cstr(&b));
  assert_non_null(j);
  lw_buf_free(&b);
  return j;
}

static cJSON *at(const cJSON *j, const char *key) {
  cJSON *v = cJSON_GetObjectItemCaseSensitive(j, key);
  assert_non_null(v);
  return v;
}

static double number_at(const cJSON *j, const char *key) {
  return at(j, key)->valuedouble;
}

static const char *text_at(const cJSON *j, const char *key) {
  return at(j, key)->valuestring;
}

static const char *attention = "corpus/attn_f32_64x64/before.hlo";
static const lw_compile_options xla_cpu = {.fusion = "xla",
                                           .target = "cpu-generic"};

static cJSON *decision_on(const cJSON *j, const char *value,
                          const char *reader) {
  cJSON *d;
  cJSON_ArrayForEach(d, at(j, "decisions")) {
    if (!strcmp(text_at(d, "value"), value) &&
        !strcmp(text_at(d, "reader"), reader))
      return d;
  }
  return NULL;
}

/* ---- what it says ---- */

static void test_head(void **state) {
  (void)state;
  fixture f = xray_of(attention, xla_cpu);
  lw_xray_head h = lw_xray_head_of(f.x);
  assert_string_equal(h.module, "jit_attend");
  assert_string_equal(h.label, "RECORDED");
  assert_int_equal(h.kernels_before, 11);
  assert_int_equal(h.kernels_after, 6);
  assert_int_equal(h.left_bytes, 49664);
  assert_int_equal(h.walls, 2);
  end(&f);
}

static void test_decisions(void **state) {
  (void)state;
  fixture f = xray_of(attention, xla_cpu);
  cJSON *j = model_of(f.x);
  cJSON *d = decision_on(j, "exp.1", "reduce_sum.7");
  assert_non_null(d);
  assert_true(cJSON_IsFalse(at(d, "fused")));
  assert_string_equal(text_at(d, "reason"), "expensive-duplicated");
  assert_string_equal(text_at(d, "gate"), "profitability");
  assert_string_equal(text_at(d, "support"), "recorded");
  assert_string_equal(text_at(d, "flip"), "--force-edge=exp.1,reduce_sum.7");
  d = decision_on(j, "sub.7", "exp.1");
  assert_non_null(d);
  assert_true(cJSON_IsTrue(at(d, "fused")));
  cJSON_Delete(j);
  end(&f);
}

static void check_index(const cJSON *o, const char *key, int n) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
  if (v) assert_in_range(v->valueint, 0, n - 1);
}

static void check_pointers(const cJSON *j) {
  int nodes = cJSON_GetArraySize(at(j, "nodes")),
      boxes = cJSON_GetArraySize(at(j, "boxes")),
      values = cJSON_GetArraySize(at(j, "values")),
      decisions = cJSON_GetArraySize(at(j, "decisions"));
  const cJSON *o;
  cJSON_ArrayForEach(o, at(j, "nodes")) {
    check_index(o, "box", boxes);
    check_index(o, "value", values);
    check_index(o, "left", cJSON_GetArraySize(at(j, "left")));
    check_index(o, "wall", cJSON_GetArraySize(at(j, "walls")));
  }
  cJSON_ArrayForEach(o, at(j, "edges")) {
    check_index(o, "from", nodes);
    check_index(o, "to", nodes);
    check_index(o, "decision", decisions);
  }
  cJSON_ArrayForEach(o, at(j, "decisions")) {
    check_index(o, "from", values);
    check_index(o, "to", values);
  }
  cJSON_ArrayForEach(o, at(j, "boxes"))
      assert_true(number_at(o, "first") + number_at(o, "count") <= nodes);
  cJSON_ArrayForEach(o, at(at(j, "text"), "after")) {
    check_index(o, "value", values);
    check_index(o, "box", boxes);
  }
}

/* Modules with loops, calls, tuples, several outputs, sorts. */
static void test_pointers(void **state) {
  (void)state;
  static const char *const names[] = {
      "lstm_scan",        "adam",
      "kalman_filter",    "fuse_diamond_multiout",
      "beam_search_step", "resnet_stem"};
  static const char *const strategies[] = {"xla", "priority", "none"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    for (int s = 0; s < 3; s++) {
      char path[128];
      snprintf(path, sizeof path, "corpus/%s/before.hlo",
               strcmp(names[k], "adam") ? names[k] : "opt_adam");
      fixture f = xray_of(path, (lw_compile_options){.fusion = strategies[s],
                                                     .target = "cpu-generic"});
      cJSON *j = model_of(f.x);
      check_pointers(j);
      int kernels = (int)number_at(at(j, "head"), "kernels_after"), runs = 0;
      const cJSON *o;
      cJSON_ArrayForEach(o, at(j, "boxes")) runs +=
          cJSON_HasObjectItem(o, "runs");
      assert_int_equal(runs, kernels);
      cJSON_Delete(j);
      end(&f);
    }
}

/* The kernel that holds a row of the wall, and its node. */
static void test_wall_inside(void **state) {
  (void)state;
  fixture f = xray_of(attention, (lw_compile_options){.fusion = "priority",
                                                      .target = "cpu-generic"});
  cJSON *j = model_of(f.x);
  int boxes = 0, nodes = 0;
  const cJSON *o;
  cJSON_ArrayForEach(o, at(j, "boxes")) boxes += cJSON_HasObjectItem(o, "wall");
  cJSON_ArrayForEach(o, at(j, "nodes")) nodes += cJSON_HasObjectItem(o, "wall");
  assert_int_equal(boxes, 1);
  assert_int_equal(nodes, 2);
  assert_int_equal(number_at(at(j, "memory"), "temp_bytes"), 16384);
  cJSON_Delete(j);
  end(&f);
}

/* ---- pairs ---- */

static fixture pair_of(const char *before, const char *after,
                       const lw_xray_pair *p) {
  fixture f = {.ctx = lw_context_new()};
  f.m = load(f.ctx, before);
  f.after = load(f.ctx, after);
  assert_ok(lw_xray_of_pair(f.m, f.after, p, &f.x));
  return f;
}

static void count_support(const cJSON *j, const char *support, int *fused,
                          int *apart) {
  const cJSON *d;
  *fused = *apart = 0;
  cJSON_ArrayForEach(d, at(j, "decisions")) {
    if (strcmp(text_at(d, "support"), support)) continue;
    *(cJSON_IsTrue(at(d, "fused")) ? fused : apart) += 1;
  }
}

/* What --fusion=xla makes, taken for a stranger's module, must be read as what
 * its own records say. */
static void test_pair_agrees(void **state) {
  (void)state;
  fixture f = pair_of("corpus/attn_f32_64x64/classic.fusion_in.hlo",
                      "corpus/attn_f32_64x64/classic.fusion_out.hlo",
                      &(lw_xray_pair){.target = "cpu-generic"});
  cJSON *j = model_of(f.x);
  int fused, apart;
  assert_string_equal(text_at(j, "label"), "INFERRED");
  check_pointers(j);
  count_support(j, "agrees", &fused, &apart);
  assert_true(fused >= 4);
  assert_true(apart >= 4);
  count_support(j, "differs", &fused, &apart);
  assert_int_equal(fused + apart, 0);
  cJSON_Delete(j);
  end(&f);
}

static void test_gpu_record(void **state) {
  (void)state;
  char path[512];
  char *text;
  size_t len;
  snprintf(path, sizeof path, "%s/gpu/attn_f32_64x64/gpu_plain/decisions.tsv",
           LW_TEST_DATA);
  assert_ok(lw_file_read(path, &text, &len));
  fixture f = pair_of(
      "gpu/attn_f32_64x64/gpu_plain/fusion_in.pb",
      "gpu/attn_f32_64x64/gpu_plain/fusion_out.hlo",
      &(lw_xray_pair){.compiler = "xla", .target = "h100", .decisions = text});
  cJSON *j = model_of(f.x);
  assert_string_equal(text_at(j, "label"), "RECORDED");
  int fused, apart;
  count_support(j, "recorded", &fused, &apart);
  assert_int_equal(fused, 5);
  assert_int_equal(apart, 3);
  cJSON *d = decision_on(j, "sub.3.0", "exp.1.0");
  assert_non_null(d);
  assert_float_equal((float)number_at(d, "saved_us"), 1.019f, 1e-3f);
  d = decision_on(j, "reduce_max.7.0", "sub.2.0");
  assert_non_null(d);
  assert_string_equal(
      text_at(d, "text"),
      "fusion into output of a reduce fusion would create a loop fusion");
  cJSON_Delete(j);
  free(text);
  end(&f);
}

static void test_strangers(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_module *a = load(ctx, "corpus/softmax/before.hlo"), *b;
  static const char other[] =
      "HloModule other\n\nENTRY e {\n  ROOT z = u8[7]{0} iota(), "
      "iota_dimension=0\n}\n";
  assert_ok(lw_load_text(ctx, other, strlen(other), &b));
  lw_xray *x;
  lw_status st = lw_xray_of_pair(a, b, &(lw_xray_pair){0}, &x);
  assert_int_equal(lw_status_code(st), LW_INVALID_ARGUMENT);
  assert_null(x);
  lw_status_free(st);
  lw_module_free(a);
  lw_module_free(b);
  lw_context_free(ctx);
}

/* ---- the page ---- */

static int count(const char *text, const char *what) {
  int n = 0;
  for (const char *p = strstr(text, what); p; p = strstr(p + 1, what)) n++;
  return n;
}

static const char hostile[] =
    "</script><script>alert(1)</"
    "script>\"'&<!--\xff\xc3\x28\xed\xa0\x80{{model}}";

static void test_hostile_names(void **state) {
  (void)state;
  fixture f = {.ctx = lw_context_new()};
  f.m = load(f.ctx, "corpus/softmax/before.hlo");
  f.m->name = hostile;
  for (lw_comp *c = f.m->first_comp; c; c = c->next)
    for (lw_inst *i = c->first; i; i = i->next) {
      lw_metadata *md = LW_NEW(f.m->arena, lw_metadata);
      md->op_name = md->source_file = hostile;
      i->metadata = md;
      if (c == f.m->entry) lw_inst_rename(i, hostile);
    }
  assert_ok(lw_xray_lawson(f.m, &xla_cpu, &f.x));
  assert_ok(lw_xray_layout(f.x));
  lw_buf page = {0}, svg = {0};
  lw_xray_html(&page, f.x, NULL);
  lw_xray_svg(&svg, f.x);
  const char *text = lw_buf_cstr(&page);
  assert_int_equal(count(text, "</script"), 2); /* the model's, the page's */
  assert_int_equal(count(text, "alert(1)</script"), 0);
  assert_int_equal(count(text, "\xff"), 0);
  assert_int_equal(count(lw_buf_cstr(&svg), "<script"), 0);
  const char *start = strstr(text, "id=\"model\">") + strlen("id=\"model\">");
  const char *stop = strstr(start, "</script");
  cJSON *j = cJSON_ParseWithLength(start, (size_t)(stop - start));
  assert_non_null(j);
  assert_memory_equal(text_at(j, "module"), hostile, 40);
  cJSON_Delete(j);
  lw_buf_free(&page);
  lw_buf_free(&svg);
  end(&f);
}

static void test_needs_graphviz(void **state) {
  (void)state;
  fixture f = xray_of(attention, xla_cpu);
  char *old = strdup(getenv("PATH"));
  setenv("PATH", "/nowhere", 1);
  lw_status st = lw_xray_layout(f.x);
  setenv("PATH", old, 1);
  assert_int_equal(lw_status_code(st), LW_UNAVAILABLE);
  assert_non_null(strstr(lw_status_message(st), "graphviz"));
  lw_status_free(st);
  free(old);
  end(&f);
}

static void test_svg(void **state) {
  (void)state;
  fixture f = xray_of(attention, xla_cpu);
  assert_ok(lw_xray_layout(f.x));
  lw_buf b = {0};
  lw_xray_svg(&b, f.x);
  const char *svg = lw_buf_cstr(&b);
  assert_int_equal(count(svg, "the wall</title>"), 4);
  assert_int_equal(count(svg, ">subtract_exponential_fusion</text>"), 1);
  assert_int_equal(count(svg, "<script"), 0);
  lw_buf_free(&b);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_head),
      cmocka_unit_test(test_decisions),
      cmocka_unit_test(test_pointers),
      cmocka_unit_test(test_wall_inside),
      cmocka_unit_test(test_pair_agrees),
      cmocka_unit_test(test_gpu_record),
      cmocka_unit_test(test_strangers),
      cmocka_unit_test(test_hostile_names),
      cmocka_unit_test(test_needs_graphviz),
      cmocka_unit_test(test_svg),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
