/* Fold orders against a second, independent reading of docs/numerics.md 5-7:
 * plain scalar loops, written without the interpreter's code. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

static uint32_t bits_of(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

static void same_floats(const char *what, const lw_literal *got,
                        const float *want) {
  for (int64_t k = 0; k < got->shape->elements; k++) {
    float g = ((float *)got->data)[k];
    if (bits_of(g) != bits_of(want[k]))
      fail_msg("%s: element %lld is %.9g, not %.9g", what, (long long)k,
               (double)g, (double)want[k]);
  }
}

/* ---- reduces ---- */

/* The row rule's lanes, as a sparse set with explicit presence. */
typedef struct {
  float v[64];
  bool have[64];
} lanes;

static float halve(lanes *l) {
  for (int w = 32; w >= 1; w /= 2)
    for (int k = 0; k < w; k++)
      if (l->have[k + w]) {
        l->v[k] = l->v[k] + l->v[k + w];
        l->have[k + w] = false;
      }
  return l->v[0];
}

static float row_sum(const float *x, int64_t outer, int64_t run, float init) {
  float acc = 0;
  bool any = false;
  int64_t total = outer * run;
  for (int64_t i = 0; i < total;) {
    /* the block that element i opens */
    int64_t o = i / run, t = i % run, end;
    if (run > 4096)
      end = o * run + (t + 4096 < run ? t + 4096 : run);
    else
      end = (o + 256 < outer ? o + 256 : outer) * run;
    lanes l = {0};
    for (; i < end; i++) {
      int lane = (int)(i % run % 64);
      l.v[lane] = l.have[lane] ? l.v[lane] + x[i] : x[i];
      l.have[lane] = true;
    }
    float b = halve(&l);
    acc = any ? acc + b : b;
    any = true;
  }
  return any ? init + acc : init;
}

static float column_sum(const float *x, int64_t n, int64_t stride, float init) {
  float acc = 0, block = 0;
  for (int64_t i = 0; i < n; i++) {
    float v = x[i * stride];
    block = i % 256 == 0 ? v : block + v;
    if (i % 256 == 255 || i + 1 == n) acc = i < 256 ? block : acc + block;
  }
  return n ? init + acc : init;
}

static lw_literal *run_reduce(program *p, const char *shape, const char *out,
                              const char *dims, lw_literal *x) {
  char text[1024];
  snprintf(text, sizeof text,
           "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] "
           "parameter(1)\n ROOT s = f32[] add(a, b) }\nENTRY e { x = f32[%s] "
           "parameter(0)\n z = f32[] constant(0.125)\n ROOT r = f32[%s] "
           "reduce(x, z), dimensions={%s}, to_apply=add }\n",
           shape, out, dims);
  lw_status s = lw_read_text(p->ctx, text, strlen(text), "t", NULL, &p->m);
  if (s) fail_msg("%s", lw_status_message(s));
  return program_run(p, (const lw_literal *const *)&x, 1, NULL);
}

static void start(program *p) {
  p->ctx = lw_context_new();
  p->arena = lw_arena_new();
}

static void rows(void **state) {
  (void)state;
  static const int64_t runs[] = {1, 3, 63, 64, 65, 130, 1000, 4096, 4097, 9000};
  for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
    program p;
    start(&p);
    int64_t dims[2] = {3, runs[k]};
    lw_literal *x = floats(&p, 2, dims, k + 1);
    char shape[64];
    snprintf(shape, sizeof shape, "3,%lld", (long long)runs[k]);
    lw_literal *r = run_reduce(&p, shape, "3", "1", x);
    float want[3];
    for (int i = 0; i < 3; i++)
      want[i] = row_sum((float *)x->data + i * runs[k], 1, runs[k], 0.125f);
    same_floats(shape, r, want);
    program_free(&p);
  }
}

/* Outer reduced dims before a trailing run, with a kept dim between. */
static void outer_rows(void **state) {
  (void)state;
  program p;
  start(&p);
  enum { O = 300, K = 2, T = 70 };
  int64_t dims[3] = {O, K, T};
  lw_literal *x = floats(&p, 3, dims, 5);
  lw_literal *r = run_reduce(&p, "300,2,70", "2", "2,0", x);
  float *seq = malloc(sizeof(float) * O * T), want[K];
  for (int k = 0; k < K; k++) {
    for (int o = 0; o < O; o++)
      memcpy(seq + o * T, (float *)x->data + (o * K + k) * T,
             sizeof(float) * T);
    want[k] = row_sum(seq, O, T, 0.125f);
  }
  same_floats("300,2,70 over 0 and 2", r, want);
  free(seq);
  program_free(&p);
}

static void columns(void **state) {
  (void)state;
  static const int64_t counts[] = {1, 2, 255, 256, 257, 1000};
  for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
    program p;
    start(&p);
    int64_t dims[2] = {counts[k], 5};
    lw_literal *x = floats(&p, 2, dims, k + 9);
    char shape[64];
    snprintf(shape, sizeof shape, "%lld,5", (long long)counts[k]);
    lw_literal *r = run_reduce(&p, shape, "5", "0", x);
    float want[5];
    for (int j = 0; j < 5; j++)
      want[j] = column_sum((float *)x->data + j, counts[k], 5, 0.125f);
    same_floats(shape, r, want);
    program_free(&p);
  }
}

/* A reducer that is no single op: blocks of 256, init first. */
static void sequences(void **state) {
  (void)state;
  program p;
  start(&p);
  int64_t dims[1] = {600};
  lw_literal *x = floats(&p, 1, dims, 77);
  static const char text[] =
      "HloModule m\nf { a = f32[] parameter(0)\n b = f32[] parameter(1)\n h = "
      "f32[] constant(0.5)\n c = f32[] multiply(a, h)\n ROOT s = f32[] add(c, "
      "b) }\nENTRY e { x = f32[600] parameter(0)\n z = f32[] constant(3)\n "
      "ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=f }\n";
  assert_null(lw_read_text(p.ctx, text, strlen(text), "t", NULL, &p.m));
  lw_literal *r = program_run(&p, (const lw_literal *const *)&x, 1, NULL);
  float acc = 3, block = 0;
  for (int i = 0; i < 600; i++) {
    float v = ((float *)x->data)[i];
    if (i < 256) {
      acc = acc * 0.5f + v;
      continue;
    }
    block = i % 256 == 0 ? v : block * 0.5f + v;
    if (i % 256 == 255 || i == 599) acc = acc * 0.5f + block;
  }
  same_floats("user-defined reducer", r, &acc);
  program_free(&p);
}

/* A pinned rule wins over the shape's own. */
static void pinned(void **state) {
  (void)state;
  program p;
  start(&p);
  int64_t dims[2] = {300, 1};
  lw_literal *x = floats(&p, 2, dims, 3);
  run_reduce(&p, "300,1", "1", "0", x);
  lw_inst *reduce = p.m->entry->root;
  int64_t row[2] = {0, 300};
  lw_inst_set_i64s(reduce, LW_ATTR_FOLD, 2, row);
  lw_literal *r = program_run(&p, (const lw_literal *const *)&x, 1, NULL);
  float want = row_sum(x->data, 1, 300, 0.125f);
  same_floats("pinned row rule", r, &want);
  program_free(&p);
}

/* ---- scans ---- */

static void scans(void **state) {
  (void)state;
  static const int n = 2500;
  program p;
  start(&p);
  int64_t dims[1] = {n};
  lw_literal *x = floats(&p, 1, dims, 21);
  static const char text[] =
      "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n "
      "ROOT s = f32[] add(a, b) }\nENTRY e { x = f32[2500] parameter(0)\n z = "
      "f32[] constant(0.5)\n ROOT r = f32[2500] reduce-window(x, z), "
      "window={size=2500 pad=0_2499}, to_apply=add }\n";
  assert_null(lw_read_text(p.ctx, text, strlen(text), "t", NULL, &p.m));
  lw_literal *r = program_run(&p, (const lw_literal *const *)&x, 1, NULL);
  float *want = malloc(sizeof(float) * (size_t)n), part = 0, carry = 0;
  for (int j = 0; j < n; j++) { /* j counts from the end */
    float v = ((float *)x->data)[n - 1 - j];
    if (j % 1024 == 0 && j > 0) carry = j == 1024 ? part : carry + part;
    part = j % 1024 == 0 ? v : part + v;
    float all = j < 1024 ? part : carry + part;
    want[n - 1 - j] = 0.5f + all;
  }
  same_floats("suffix sums", r, want);
  free(want);
  program_free(&p);
}

/* ---- dots ---- */

static float chain(const float *a, const float *b, int k, int stride) {
  float acc = 0;
  for (int at = 0; at < k; at += 256) {
    float s = 0;
    for (int i = at; i < k && i < at + 256; i++)
      s = fmaf(a[i], b[i * stride], s);
    acc = at ? acc + s : s;
  }
  return acc;
}

static float skinny(const float *a, const float *b, int k, int stride) {
  float acc = 0;
  for (int at = 0; at < k; at += 256) {
    float l[16] = {0};
    int end = k < at + 256 ? k : at + 256;
    for (int i = at; i < end; i++)
      l[i % 16] = fmaf(a[i], b[i * stride], l[i % 16]);
    int have = end - at < 16 ? end - at : 16;
    for (int w = 8; w >= 1; w /= 2)
      for (int j = 0; j < w; j++)
        if (j + w < have) l[j] = l[j] + l[j + w];
    acc = at ? acc + l[0] : l[0];
  }
  return acc;
}

static void dot_case(int m, int n, int k) {
  program p;
  start(&p);
  int64_t ad[2] = {m, k}, bd[2] = {k, n};
  lw_literal *args[2] = {floats(&p, 2, ad, 4), floats(&p, 2, bd, 6)};
  char text[512];
  snprintf(text, sizeof text,
           "HloModule m\nENTRY e { a = f32[%d,%d] parameter(0)\n b = "
           "f32[%d,%d] parameter(1)\n ROOT r = f32[%d,%d] dot(a, b), "
           "lhs_contracting_dims={1}, rhs_contracting_dims={0} }\n",
           m, k, k, n, m, n);
  assert_null(lw_read_text(p.ctx, text, strlen(text), "t", NULL, &p.m));
  lw_literal *r = program_run(&p, (const lw_literal *const *)args, 2, NULL);
  float *want = malloc(sizeof(float) * (size_t)(m * n));
  bool thin = m < 4 || n < 4;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++)
      want[i * n + j] = (thin ? skinny : chain)(
          (float *)args[0]->data + i * k, (float *)args[1]->data + j, k, n);
  same_floats(text, r, want);
  free(want);
  program_free(&p);
}

static void dots(void **state) {
  (void)state;
  dot_case(4, 5, 1);
  dot_case(4, 4, 256);
  dot_case(5, 7, 700);
  dot_case(1, 9, 7);
  dot_case(3, 6, 300);
  dot_case(8, 1, 1000);
}

/* One-dimensional convolution with padding: skipped terms, blocks by k. */
static void convolutions(void **state) {
  (void)state;
  enum { L = 5, F = 100, O = 4, S = 3 };
  program p;
  start(&p);
  int64_t xd[3] = {1, L, F}, kd[3] = {S, F, O};
  lw_literal *args[2] = {floats(&p, 3, xd, 31), floats(&p, 3, kd, 32)};
  static const char text[] =
      "HloModule m\nENTRY e { x = f32[1,5,100] parameter(0)\n k = "
      "f32[3,100,4] parameter(1)\n ROOT r = f32[1,5,4] convolution(x, k), "
      "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f }\n";
  assert_null(lw_read_text(p.ctx, text, strlen(text), "t", NULL, &p.m));
  lw_literal *r = program_run(&p, (const lw_literal *const *)args, 2, NULL);
  const float *x = args[0]->data, *w = args[1]->data;
  float want[L * O];
  for (int at = 0; at < L; at++)
    for (int o = 0; o < O; o++) {
      float acc = 0, s = 0;
      for (int k = 0; k < S * F; k++) {
        int pos = at + k / F - 1;
        if (pos >= 0 && pos < L) s = fmaf(x[pos * F + k % F], w[k * O + o], s);
        if (k % 256 == 255 || k + 1 == S * F) {
          acc = k < 256 ? s : acc + s;
          s = 0;
        }
      }
      want[at * O + o] = acc;
    }
  same_floats("convolution", r, want);
  program_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows),    cmocka_unit_test(outer_rows),
      cmocka_unit_test(columns), cmocka_unit_test(sequences),
      cmocka_unit_test(pinned),  cmocka_unit_test(scans),
      cmocka_unit_test(dots),    cmocka_unit_test(convolutions),
  };
  return cmocka_run_group_tests_name("interp fold", tests, NULL, NULL);
}
