/* .npz round trips, foreign layouts and damaged files. */
#include "lib/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

#include "../unit.h"

typedef struct {
  lw_context *ctx;
  lw_arena *a;
  char path[64];
} box;

static int setup(void **state) {
  box *b = calloc(1, sizeof *b);
  b->ctx = lw_context_new();
  b->a = lw_arena_new();
  snprintf(b->path, sizeof b->path, "/tmp/lw_npz_%d.npz", (int)getpid());
  *state = b;
  return 0;
}

static int teardown(void **state) {
  box *b = *state;
  unlink(b->path);
  lw_arena_free(b->a);
  lw_context_free(b->ctx);
  free(b);
  return 0;
}

static lw_literal *make(box *b, lw_prim t, int32_t rank, const int64_t *dims) {
  lw_literal *l = NULL;
  assert_null(lw_literal_new(b->a, lw_shape_array(b->ctx, t, rank, dims), &l));
  return l;
}

static void round_trip(void **state) {
  box *b = *state;
  static const lw_prim types[] = {
      LW_PRED, LW_S8,   LW_U8,   LW_S16, LW_U16,    LW_S32,
      LW_U32,  LW_S64,  LW_U64,  LW_F16, LW_F32,    LW_F64,
      LW_C64,  LW_C128, LW_BF16, LW_S4,  LW_F8E5M2, LW_F4E2M1FN};
  enum { N = sizeof types / sizeof *types };
  const lw_literal *arrays[N];
  const char *keys[N];
  int64_t dims[2] = {2, 3};
  for (int k = 0; k < N; k++) {
    lw_literal *l = make(b, types[k], 2, dims);
    for (int64_t i = 0; i < 6; i++)
      lw_literal_set_f64(
          l, i, 0,
          types[k] == LW_PRED ? (double)(i & 1) : (double)(i - (i == 5)));
    arrays[k] = l;
    keys[k] = lw_arena_printf(b->a, "k%d", k);
  }
  assert_null(lw_npz_write(b->path, N, keys, arrays));
  lw_npz *z = NULL;
  assert_null(lw_npz_open(b->path, &z));
  assert_int_equal(lw_npz_count(z), N);
  assert_string_equal(lw_npz_key(z, 3), "k3");
  for (int k = 0; k < N; k++) {
    lw_literal *l = NULL;
    assert_null(lw_npz_read(z, keys[k], arrays[k]->shape, b->a, &l));
    assert_true(lw_literal_equal(l, arrays[k]));
  }
  lw_npz_close(z);
}

static void scalars_and_empties(void **state) {
  box *b = *state;
  int64_t none[2] = {0, 4};
  lw_literal *s = make(b, LW_F32, 0, NULL), *e = make(b, LW_S32, 2, none);
  *(float *)s->data = 2.5f;
  const lw_literal *arrays[2] = {s, e};
  const char *keys[2] = {"s", "e"};
  assert_null(lw_npz_write(b->path, 2, keys, arrays));
  lw_npz *z = NULL;
  lw_literal *l = NULL;
  assert_null(lw_npz_open(b->path, &z));
  assert_null(lw_npz_read(z, "s", s->shape, b->a, &l));
  assert_true(*(float *)l->data == 2.5f);
  assert_null(lw_npz_read_any(z, "e", b->ctx, b->a, &l));
  assert_int_equal(l->shape->dims[1], 4);
  lw_npz_close(z);
}

/* Writes one raw .npy entry. */
static void put_raw(const char *path, const char *header, const void *data,
                    size_t n, bool stored) {
  unlink(path);
  int err;
  zip_t *zip = zip_open(path, ZIP_CREATE, &err);
  size_t len = strlen(header);
  char *p = malloc(10 + len + n);
  memcpy(p, "\x93NUMPY\x01\x00", 8);
  p[8] = (char)(len & 255);
  p[9] = (char)(len >> 8);
  memcpy(p + 10, header, len);
  memcpy(p + 10 + len, data, n);
  zip_source_t *s = zip_source_buffer(zip, p, 10 + len + n, 1);
  zip_int64_t at = zip_file_add(zip, "x.npy", s, 0);
  if (stored) zip_set_file_compression(zip, (zip_uint64_t)at, ZIP_CM_STORE, 0);
  assert_int_equal(zip_close(zip), 0);
}

static void fortran_and_big_endian(void **state) {
  box *b = *state;
  static const unsigned char be[12] = {0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6};
  put_raw(b->path,
          "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n", be,
          sizeof be, true);
  lw_npz *z = NULL;
  lw_literal *l = NULL;
  assert_null(lw_npz_open(b->path, &z));
  assert_null(lw_npz_read_any(z, "x", b->ctx, b->a, &l));
  static const int16_t want[6] = {1, 2, 3, 4, 5, 6};
  assert_memory_equal(l->data, want, sizeof want);
  lw_npz_close(z);
}

static void expect(lw_status s, lw_code code, const char *words) {
  assert_non_null(s);
  assert_int_equal(lw_status_code(s), code);
  if (!strstr(lw_status_message(s), words))
    fail_msg("\"%s\" does not hold \"%s\"", lw_status_message(s), words);
  lw_status_free(s);
}

static void errors(void **state) {
  box *b = *state;
  lw_npz *z = NULL;
  lw_literal *l = NULL;
  expect(lw_npz_open("/nonexistent/x.npz", &z), LW_NOT_FOUND, "/nonexistent");
  float data[2] = {1, 2};
  put_raw(b->path, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
          data, sizeof data, false);
  assert_null(lw_npz_open(b->path, &z));
  int64_t dims[1] = {3};
  expect(lw_npz_read(z, "x", lw_shape_array(b->ctx, LW_F32, 1, dims), b->a, &l),
         LW_INVALID_ARGUMENT, "x is f32[2] (f4), but f32[3] was expected");
  dims[0] = 2;
  expect(
      lw_npz_read(z, "x", lw_shape_array(b->ctx, LW_BF16, 1, dims), b->a, &l),
      LW_INVALID_ARGUMENT, "bf16[2] was expected, carried as u16");
  expect(lw_npz_read(z, "y", lw_shape_array(b->ctx, LW_F32, 1, dims), b->a, &l),
         LW_NOT_FOUND, "it holds: x");
  lw_npz_close(z);
}

/* A header that promises a terabyte over eight bytes. */
static void dishonest(void **state) {
  box *b = *state;
  lw_npz *z = NULL;
  lw_literal *l = NULL;
  float data[2] = {1, 2};
  put_raw(b->path,
          "{'descr': '<f4', 'fortran_order': False, 'shape': (262144, "
          "1048576), }",
          data, sizeof data, true);
  assert_null(lw_npz_open(b->path, &z));
  expect(lw_npz_read_any(z, "x", b->ctx, b->a, &l), LW_INVALID_ARGUMENT,
         "wrong size");
  lw_npz_close(z);
  put_raw(b->path, "{'descr': '<f4', 'shape': (2", data, sizeof data, true);
  assert_null(lw_npz_open(b->path, &z));
  expect(lw_npz_read_any(z, "x", b->ctx, b->a, &l), LW_INVALID_ARGUMENT,
         "no NumPy array");
  lw_npz_close(z);
  put_raw(b->path, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }",
          data, sizeof data, true);
  int64_t dims[1] = {4};
  assert_null(lw_npz_open(b->path, &z));
  expect(lw_npz_read(z, "x", lw_shape_array(b->ctx, LW_F32, 1, dims), b->a, &l),
         LW_DATA_LOSS, "ends early");
  lw_npz_close(z);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(round_trip), T(scalars_and_empties), T(fortran_and_big_endian),
      T(errors),     T(dishonest),
  };
  return cmocka_run_group_tests_name("npz", tests, NULL, NULL);
}
