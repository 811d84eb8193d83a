/* What bodies become, without LLVM: stages, phases, homes and aliases, read off
 * the printed form. */
#include <stdlib.h>
#include <string.h>

#include "kernel/index.h"
#include "kernel/kernel.h"
#include "reader/reader.h"
#include "unit.h"

static lw_inst *wrap(lw_module *m) {
  lw_comp *body = m->entry, *c = lw_comp_new(m, "wrapped");
  int32_t n = (int32_t)body->params.len;
  lw_inst **ps = calloc((size_t)n + 1, sizeof *ps);
  for (int32_t i = 0; i < n; i++)
    ps[i] = lw_inst_parameter(c, i, body->params.data[i]->shape, NULL);
  lw_inst *f = lw_inst_new(c, LW_OP_FUSION, body->root->shape, "fused", n, ps);
  lw_inst_set_i64(f, LW_ATTR_KIND, LW_FUSION_LOOP);
  lw_inst_set_comp(f, LW_ATTR_CALLS, body);
  free(ps);
  return f;
}

typedef struct {
  lw_context *ctx;
  lw_module *m;
  lw_arena *a;
  lw_kernel *k;
  lw_buf text;
} built;

#define REDUCERS                                                      \
  "add { a=f32[] parameter(0) b=f32[] parameter(1) ROOT r=f32[] "     \
  "add(a,b) }\n mx { a=f32[] parameter(0) b=f32[] parameter(1) ROOT " \
  "r=f32[] maximum(a,b) }\n"

static void build(built *b, const char *entry) {
  memset(b, 0, sizeof *b);
  lw_buf t = {0};
  lw_buf_printf(&t, "HloModule m\n\n%sENTRY e {\n%s\n}\n", REDUCERS, entry);
  b->ctx = lw_context_new();
  b->a = lw_arena_new();
  lw_status s = lw_read_text(b->ctx, t.data, t.len, "t", NULL, &b->m);
  if (s) fail_msg("%s", lw_status_message(s));
  s = lw_kernel_build(b->a, wrap(b->m), NULL, &b->k);
  if (s) fail_msg("%s", lw_status_message(s));
  lw_kernel_print(&b->text, b->k);
  lw_buf_free(&t);
}

static void drop(built *b) {
  lw_buf_free(&b->text);
  lw_module_free(b->m);
  lw_arena_free(b->a);
  lw_context_free(b->ctx);
}

static void has(const built *b, const char *what) {
  if (!strstr(b->text.data, what))
    fail_msg("no \"%s\" in\n%s", what, b->text.data);
}
static void has_not(const built *b, const char *what) {
  if (strstr(b->text.data, what)) fail_msg("\"%s\" in\n%s", what, b->text.data);
}

#define SOFTMAX(B, R)                                               \
  "x=f32[" B "," R                                                  \
  "] parameter(0)\n ninf=f32[] constant(-inf)\n"                    \
  "z=f32[] constant(0)\n m=f32[" B                                  \
  "] reduce(x,ninf),dimensions={1},to_apply=mx\n mb=f32[" B "," R   \
  "] broadcast(m),dimensions={0}\n s=f32[" B "," R                  \
  "] subtract(x,mb)\n e=f32[" B "," R "] exponential(s)\n d=f32[" B \
  "] reduce(e,z),dimensions={1},to_apply=add\n db=f32[" B "," R     \
  "] broadcast(d),dimensions={0}\n ROOT r=f32[" B "," R "] divide(e,db)"

static void softmax_is_one_phase(void **state) {
  (void)state;
  built b;
  build(&b, SOFTMAX("256", "1000"));
  assert_int_equal(b.k->n_phases, 1);
  assert_int_equal(b.k->phases[0].n_points, 256);
  assert_int_equal(b.k->n_scratch, 0);
  has(&b, "reduce m f32[256] -> tile+");
  has(&b, "map e f32[256,1000] -> tile+");
  has(&b, "map r.2 f32[256,1000] -> out#1");
  has(&b, "may alias: param#0 = out#1");
  drop(&b);
}

static void small_kernels_are_one_point(void **state) {
  (void)state;
  built b;
  build(&b, SOFTMAX("4", "8"));
  assert_int_equal(b.k->n_phases, 1);
  assert_int_equal(b.k->phases[0].n_points, 1);
  drop(&b);
}

static void elementwise_is_flat(void **state) {
  (void)state;
  built b;
  build(&b,
        "x=f32[8,100,30] parameter(0)\n y=f32[8,100,30] parameter(1)\n"
        "a=f32[8,100,30] add(x,y)\n b=f32[8,100,30] exponential(a)\n"
        "ROOT t=(f32[8,100,30],f32[8,100,30]) tuple(a,b)");
  assert_int_equal(b.k->n_phases, 1);
  assert_true(b.k->phases[0].flat);
  assert_int_equal(b.k->phases[0].n_points, 24000);
  assert_int_equal(b.k->stages[0].group, 2);
  has(&b, "& map b.2");
  has(&b, "may alias: param#0 = out#2");
  drop(&b);
}

/* A row broadcast breaks the flat loop at its length, nowhere else. */
static void broadcasts_give_the_inner_loop(void **state) {
  (void)state;
  built b;
  build(&b,
        "x=f32[80,100,30] parameter(0)\n y=f32[30] parameter(1)\n"
        "k=f32[80,100,30] broadcast(y),dimensions={2}\n"
        "ROOT a=f32[80,100,30] add(x,k)");
  assert_int_equal(b.k->stages[0].inner, 30);
  assert_int_equal(b.k->phases[0].n_points, 8000);
  drop(&b);
  build(&b,
        "x=f32[80,100,30] parameter(0)\n y=f32[80] parameter(1)\n"
        "k=f32[80,100,30] broadcast(y),dimensions={0}\n"
        "ROOT a=f32[80,100,30] add(x,k)");
  assert_int_equal(b.k->stages[0].inner, 3000);
  drop(&b);
}

/* Dear values under a broadcast that would repeat them are kept. */
static void repeated_values_become_stages(void **state) {
  (void)state;
  built b;
  build(&b,
        "x=f32[640,480] parameter(0)\n y=f32[480] parameter(1)\n"
        "t=f32[480] tanh(y)\n k=f32[640,480] broadcast(t),dimensions={1}\n"
        "ROOT a=f32[640,480] add(x,k)");
  assert_int_equal(b.k->n_phases, 2);
  has(&b, "map t f32[480] -> kernel#");
  drop(&b);
  build(&b, /* along the rows it is computed once a row where it is */
        "x=f32[640,480] parameter(0)\n y=f32[640] parameter(1)\n"
        "t=f32[640] tanh(y)\n k=f32[640,480] broadcast(t),dimensions={0}\n"
        "ROOT a=f32[640,480] add(x,k)");
  assert_int_equal(b.k->n_stages, 1);
  drop(&b);
}

/* A chain that reads its producer at two places each step would double its
 * code each step. */
static void no_exponential_growth(void **state) {
  (void)state;
  lw_buf t = {0};
  lw_buf_str(&t, "x0=f32[4096] parameter(0)\n");
  for (int i = 1; i <= 24; i++)
    lw_buf_printf(&t,
                  "a%d=f32[4096] reverse(x%d),dimensions={0}\n"
                  "p%d=f32[4096] exponential(a%d)\n"
                  "%sx%d=f32[4096] add(x%d,p%d)\n",
                  i, i - 1, i, i, i == 24 ? "ROOT " : "", i, i - 1, i);
  built b;
  build(&b, t.data);
  assert_true(b.k->n_stages > 1);
  assert_true(b.k->n_stages <= 48);
  lw_buf_free(&t);
  drop(&b);
}

static void full_reductions_are_cut(void **state) {
  (void)state;
  built b;
  build(&b,
        "x=f32[1000,1000] parameter(0)\n z=f32[] parameter(1)\n"
        "ROOT r=f32[] reduce(x,z),dimensions={0,1},to_apply=add");
  has(&b, "reduce-part r.2 f32[245] -> kernel#");
  has(&b, "reduce-fold r.2");
  assert_int_equal(b.k->n_phases, 2);
  drop(&b);
}

static void updates_in_place(void **state) {
  (void)state;
  built b;
  build(&b,
        "x=f32[20,30] parameter(0)\n u=f32[5,30] parameter(1)\n"
        "i=s32[] parameter(2)\n z=s32[] constant(0)\n"
        "o=f32[5,30] dynamic-slice(x,i,z),dynamic_slice_sizes={5,30}\n"
        "n=f32[5,30] add(u,o)\n"
        "ROOT d=f32[20,30] dynamic-update-slice(x,n,i,z)");
  has(&b, "update-slice d");
  has(&b, "must alias: param#0 = out#3");
  drop(&b);
  build(&b, /* rows move over each other: not in place */
        "x=f32[20,30] parameter(0)\n i=s32[] parameter(1)\n"
        "z=s32[] constant(0)\n u=f32[5,30] slice(x),slice={[1:6],[0:30]}\n"
        "ROOT d=f32[20,30] dynamic-update-slice(x,u,i,z)");
  has(&b, "map d");
  has_not(&b, "alias");
  drop(&b);
}

static void transposed_reads_do_not_alias(void **state) {
  (void)state;
  built b;
  build(&b,
        "x=f32[20,20] parameter(0)\n y=f32[20,20] parameter(1)\n"
        "t=f32[20,20] transpose(x),dimensions={1,0}\n"
        "ROOT a=f32[20,20] add(t,y)");
  has_not(&b, "alias: param#0");
  has(&b, "may alias: param#1 = out#2");
  drop(&b);
}

static void fingerprints(void **state) {
  (void)state;
  built a, b, c;
  build(&a, "x=f32[20] parameter(0)\n ROOT r=f32[20] tanh(x)");
  build(&b, "other=f32[20] parameter(0)\n ROOT q=f32[20] tanh(other)");
  build(&c, "x=f32[21] parameter(0)\n ROOT r=f32[21] tanh(x)");
  assert_true(lw_kernel_fingerprint(a.k) == lw_kernel_fingerprint(b.k));
  assert_true(lw_kernel_fingerprint(a.k) != lw_kernel_fingerprint(c.k));
  drop(&a);
  drop(&b);
  drop(&c);
}

/* ---- index expressions ---- */

static void reshapes_divide_away(void **state) {
  (void)state;
  lw_arena *a = lw_arena_new();
  lw_index ix;
  lw_index_init(&ix, a);
  const lw_expr *g = lw_ex_var(&ix, 0, 210), *idx[3];
  const int64_t d2[2] = {10, 21}, d3[3] = {2, 5, 21};
  lw_ex_delinear(&ix, g, 2, d2, idx);
  assert_ptr_equal(lw_ex_linear(&ix, 2, d2, idx), g);
  lw_ex_delinear(&ix, g, 3, d3, idx);
  assert_ptr_equal(lw_ex_linear(&ix, 3, d3, idx), g);
  /* 21 * i + j with j < 21 splits without a division */
  const lw_expr *i = lw_ex_var(&ix, 1, 10), *j = lw_ex_var(&ix, 2, 21);
  const lw_expr *e = lw_ex_add(&ix, lw_ex_mul(&ix, i, 21), j);
  assert_ptr_equal(lw_ex_div(&ix, e, 21), i);
  assert_ptr_equal(lw_ex_mod(&ix, e, 21), j);
  lw_index_free(&ix);
  lw_arena_free(a);
}

static int64_t value(const lw_expr *e, const int64_t *vars) {
  int64_t v = e->c;
  for (int32_t i = 0; i < e->n; i++) {
    const lw_atom *a = e->t[i].a;
    int64_t x =
        a->kind == LW_ATOM_VAR ? vars[a->var] : value(a->e, vars) / a->div;
    if (a->kind == LW_ATOM_DIGIT && a->mod) x %= a->mod;
    v += e->t[i].k * x;
  }
  return v;
}

static void division_is_division(void **state) {
  (void)state;
  lw_arena *a = lw_arena_new();
  lw_index ix;
  lw_index_init(&ix, a);
  const lw_expr *i = lw_ex_var(&ix, 0, 12), *j = lw_ex_var(&ix, 1, 35);
  for (int64_t k = 1; k < 40; k += 3)
    for (int64_t m = 1; m < 30; m++)
      for (int64_t s = 1; s < 50; s += 7) {
        const lw_expr *e = lw_ex_addc(
            &ix, lw_ex_add(&ix, lw_ex_mul(&ix, i, k), lw_ex_mul(&ix, j, m)),
            k % 5);
        const lw_expr *q = lw_ex_div(&ix, e, s), *r = lw_ex_mod(&ix, e, s);
        const lw_expr *q2 = lw_ex_div(&ix, q, 3);
        for (int64_t x = 0; x < 12; x += 5)
          for (int64_t y = 0; y < 35; y += 11) {
            int64_t v[2] = {x, y}, n = k * x + m * y + k % 5;
            assert_int_equal(value(q, v), n / s);
            assert_int_equal(value(r, v), n % s);
            assert_int_equal(value(q2, v), n / s / 3);
            assert_in_range(value(q, v), q->lo, q->hi);
          }
      }
  lw_index_free(&ix);
  lw_arena_free(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(softmax_is_one_phase),
      cmocka_unit_test(small_kernels_are_one_point),
      cmocka_unit_test(elementwise_is_flat),
      cmocka_unit_test(broadcasts_give_the_inner_loop),
      cmocka_unit_test(repeated_values_become_stages),
      cmocka_unit_test(no_exponential_growth),
      cmocka_unit_test(full_reductions_are_cut),
      cmocka_unit_test(updates_in_place),
      cmocka_unit_test(transposed_reads_do_not_alias),
      cmocka_unit_test(fingerprints),
      cmocka_unit_test(reshapes_divide_away),
      cmocka_unit_test(division_is_division)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
