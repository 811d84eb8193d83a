/* The worker pool: every part once, from any thread, created and destroyed in
 * every state; meant to run under TSan as well. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "../unit.h"
#include "runtime/runtime.h"

typedef struct {
  int64_t *out; /* one a part, written without atomics on purpose */
  int64_t round;
} work;

static void write_part(void *ctx, int part, int thread) {
  work *w = ctx;
  bool known = thread >= 0 && thread < 4;
  w->out[part] = known ? w->round * 100 + part : -2;
}

static void test_every_part_once(void **state) {
  (void)state;
  lw_pool *p;
  assert_null(lw_pool_new(4, &p));
  assert_int_equal(lw_pool_threads(p), 4);
  int64_t out[4] = {0};
  for (int64_t round = 1; round <= 3000; round++) {
    work w = {out, round};
    int parts = 1 + (int)(round % 4);
    for (int k = 0; k < 4; k++) out[k] = -1;
    assert_true(lw_pool_run(p, write_part, &w, parts, 4));
    for (int k = 0; k < 4; k++) {
      assert_int_equal(out[k], k < parts ? round * 100 + k : -1);
    }
  }
  lw_pool_free(p);
}

/* More parts than threads: each once, whoever takes it. */
static void count_part(void *ctx, int part, int thread) {
  (void)thread;
  atomic_fetch_add((_Atomic int *)ctx + part, 1);
}

static void test_many_parts(void **state) {
  (void)state;
  lw_pool *p;
  assert_null(lw_pool_new(3, &p));
  for (int n = 0; n <= 64; n++) {
    _Atomic int seen[64] = {0};
    for (int round = 1; round <= 20; round++) {
      assert_true(lw_pool_run(p, count_part, seen, n, 1 + round % 4));
      for (int k = 0; k < 64; k++) {
        assert_int_equal(atomic_load(&seen[k]), k < n ? round : 0);
      }
    }
  }
  lw_pool_free(p);
}

static void test_after_parking(void **state) {
  (void)state;
  lw_pool *p;
  assert_null(lw_pool_new(3, &p));
  int64_t out[3];
  for (int64_t round = 1; round <= 20; round++) {
    usleep(round % 2 ? 0 : 2000);
    work w = {out, round};
    assert_true(lw_pool_run(p, write_part, &w, 3, 3));
    for (int k = 0; k < 3; k++) assert_int_equal(out[k], round * 100 + k);
  }
  lw_pool_free(p);
}

static void test_create_and_destroy(void **state) {
  (void)state;
  for (int k = 0; k < 100; k++) {
    lw_pool *p;
    assert_null(lw_pool_new(1 + k % 4, &p));
    int64_t out[4];
    work w = {out, k};
    if (k % 3) assert_true(lw_pool_run(p, write_part, &w, 1 + k % 4, 4));
    lw_pool_free(p);
  }
}

static void test_thread_counts(void **state) {
  (void)state;
  lw_pool *p;
  lw_status st = lw_pool_new(-1, &p);
  assert_int_equal(lw_status_code(st), LW_INVALID_ARGUMENT);
  lw_status_free(st);
  assert_null(lw_pool_new(0, &p));
  assert_int_equal(lw_pool_threads(p), lw_core_count());
  lw_pool_free(p);
  assert_int_equal(lw_pool_threads(NULL), 1);
}

/* Two threads share a pool: one gets it, the other is told to do without. */
typedef struct {
  lw_pool *pool;
  _Atomic int64_t *sum;
} sharer;

static void add_one(void *ctx, int part, int thread) {
  (void)part;
  (void)thread;
  atomic_fetch_add((_Atomic int64_t *)ctx, 1);
}

static void *share(void *arg) {
  sharer *s = arg;
  for (int k = 0; k < 500; k++) {
    if (lw_pool_run(s->pool, add_one, s->sum, 2, 2)) continue;
    add_one(s->sum, 0, 0);
    add_one(s->sum, 1, 0);
  }
  return NULL;
}

static void test_two_users(void **state) {
  (void)state;
  lw_pool *p;
  assert_null(lw_pool_new(2, &p));
  _Atomic int64_t sum = 0;
  sharer s = {p, &sum};
  pthread_t t[2];
  for (int k = 0; k < 2; k++) {
    assert_int_equal(pthread_create(&t[k], NULL, share, &s), 0);
  }
  for (int k = 0; k < 2; k++) pthread_join(t[k], NULL);
  assert_int_equal(atomic_load(&sum), 2000);
  lw_pool_free(p);
}

static void test_buffers(void **state) {
  (void)state;
  static const int64_t sizes[] = {
      0, 1, 63, 64, 4096, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 9 << 20};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    for (int again = 0; again < 2; again++) {
      char *p = lw_buffer_alloc(sizes[k]);
      assert_non_null(p);
      assert_int_equal((uintptr_t)p % 64, 0);
      if (sizes[k]) {
        p[0] = 1;
        p[sizes[k] - 1] = 2;
      }
      lw_buffer_free(p, sizes[k]);
    }
  }
  assert_null(lw_buffer_alloc(-1));
  assert_null(lw_buffer_alloc(INT64_MAX));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_part_once),
      cmocka_unit_test(test_many_parts),
      cmocka_unit_test(test_after_parking),
      cmocka_unit_test(test_create_and_destroy),
      cmocka_unit_test(test_thread_counts),
      cmocka_unit_test(test_two_users),
      cmocka_unit_test(test_buffers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
