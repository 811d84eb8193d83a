/* The worker pool: fork-join, nothing else.
 *
 * A job is announced by raising epoch. Workers watch it for some microseconds
 * (a fork-join then costs a cache line's travel) and park on a condition
 * variable after that; so does the caller while it waits for the last worker.
 * Whoever parks counts itself first and looks again under the lock, whoever
 * wakes changes the value first and looks at the count then: with sequential
 * consistency one of the two sees the other. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <hwloc.h>

#include "runtime/runtime_impl.h"

enum { SPINS = 4000, MAX_THREADS = 1024 };

struct lw_pool {
  int n;
  int started; /* workers with a thread */
  pthread_t *threads;
  _Atomic uint32_t epoch;
  _Atomic int busy;    /* a fork-join is going on */
  _Atomic int pending; /* workers not done with this epoch */
  _Atomic int parked;
  _Atomic int caller_parked;
  _Atomic bool stop;
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  /* The job; written before epoch is raised. */
  lw_pool_fn fn;
  void *ctx;
  int n_parts;
};

typedef struct {
  lw_pool *pool;
  int index;
} worker_start;

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  atomic_signal_fence(memory_order_seq_cst);
#endif
}

static uint32_t wait_for_work(lw_pool *p, uint32_t seen) {
  for (int k = 0; k < SPINS; k++) {
    uint32_t e = atomic_load(&p->epoch);
    if (e != seen) return e;
    relax();
  }
  pthread_mutex_lock(&p->lock);
  atomic_fetch_add(&p->parked, 1);
  uint32_t e;
  while ((e = atomic_load(&p->epoch)) == seen) {
    pthread_cond_wait(&p->work, &p->lock);
  }
  atomic_fetch_sub(&p->parked, 1);
  pthread_mutex_unlock(&p->lock);
  return e;
}

static void finish_part(lw_pool *p) {
  if (atomic_fetch_sub(&p->pending, 1) != 1) return;
  if (!atomic_load(&p->caller_parked)) return;
  pthread_mutex_lock(&p->lock);
  pthread_cond_signal(&p->done);
  pthread_mutex_unlock(&p->lock);
}

static void *worker(void *arg) {
  worker_start start = *(worker_start *)arg;
  free(arg);
  lw_pool *p = start.pool;
  uint32_t seen = 0;
  for (;;) {
    seen = wait_for_work(p, seen);
    if (atomic_load(&p->stop)) return NULL;
    if (start.index < p->n_parts) p->fn(p->ctx, start.index);
    finish_part(p);
  }
}

static void raise_epoch(lw_pool *p) {
  atomic_fetch_add(&p->epoch, 1);
  if (atomic_load(&p->parked) == 0) return;
  pthread_mutex_lock(&p->lock);
  pthread_cond_broadcast(&p->work);
  pthread_mutex_unlock(&p->lock);
}

static void wait_for_workers(lw_pool *p) {
  for (int k = 0; k < SPINS; k++) {
    if (atomic_load(&p->pending) == 0) return;
    relax();
  }
  pthread_mutex_lock(&p->lock);
  atomic_store(&p->caller_parked, 1);
  while (atomic_load(&p->pending) != 0) {
    pthread_cond_wait(&p->done, &p->lock);
  }
  atomic_store(&p->caller_parked, 0);
  pthread_mutex_unlock(&p->lock);
}

bool lw_pool_run(lw_pool *p, lw_pool_fn fn, void *ctx, int n_parts) {
  if (atomic_exchange(&p->busy, 1)) return false;
  LW_ASSERT(n_parts <= p->n);
  p->fn = fn;
  p->ctx = ctx;
  p->n_parts = n_parts;
  atomic_store(&p->pending, p->n - 1);
  if (p->n > 1) raise_epoch(p);
  if (n_parts > 0) fn(ctx, 0);
  wait_for_workers(p);
  atomic_store(&p->busy, 0);
  return true;
}

int lw_core_count(void) {
  int cores = 0;
  hwloc_topology_t t;
  if (hwloc_topology_init(&t) == 0) {
    (void)hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE);
    (void)hwloc_topology_set_type_filter(t, HWLOC_OBJ_CORE,
                                         HWLOC_TYPE_FILTER_KEEP_ALL);
    if (hwloc_topology_load(t) == 0) {
      hwloc_bitmap_t set = hwloc_bitmap_alloc();
      if (set && hwloc_get_cpubind(t, set, HWLOC_CPUBIND_PROCESS) == 0) {
        int n = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE);
        for (int k = 0; k < n; k++) {
          hwloc_obj_t core = hwloc_get_obj_by_type(t, HWLOC_OBJ_CORE, k);
          cores += hwloc_bitmap_intersects(core->cpuset, set);
        }
      }
      hwloc_bitmap_free(set);
    }
    hwloc_topology_destroy(t);
  }
  return cores > 0 ? cores : 1;
}

static lw_status start_workers(lw_pool *p) {
  for (int k = 1; k < p->n; k++) {
    worker_start *s = malloc(sizeof *s);
    if (!s) lw_oom(sizeof *s);
    *s = (worker_start){p, k};
    if (pthread_create(&p->threads[k], NULL, worker, s)) {
      free(s);
      return lw_error(LW_RESOURCE_EXHAUSTED, "cannot start thread %d of %d", k,
                      p->n);
    }
    p->started = k;
  }
  return NULL;
}

lw_status lw_pool_new(int n_threads, lw_pool **out) {
  *out = NULL;
  if (n_threads < 0 || n_threads > MAX_THREADS) {
    return lw_error(LW_INVALID_ARGUMENT, "%d threads; at most %d", n_threads,
                    MAX_THREADS);
  }
  if (n_threads == 0) n_threads = lw_core_count();
  lw_pool *p = calloc(1, sizeof *p);
  if (!p) lw_oom(sizeof *p);
  p->n = n_threads;
  p->threads = calloc((size_t)n_threads, sizeof *p->threads);
  if (!p->threads) lw_oom((size_t)n_threads * sizeof *p->threads);
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->work, NULL);
  pthread_cond_init(&p->done, NULL);
  lw_status st = start_workers(p);
  if (st) {
    lw_pool_free(p);
  } else {
    *out = p;
  }
  return st;
}

void lw_pool_free(lw_pool *p) {
  if (!p) return;
  atomic_store(&p->stop, true);
  raise_epoch(p);
  for (int k = 1; k <= p->started; k++) pthread_join(p->threads[k], NULL);
  pthread_mutex_destroy(&p->lock);
  pthread_cond_destroy(&p->work);
  pthread_cond_destroy(&p->done);
  free(p->threads);
  free(p);
}

int lw_pool_threads(const lw_pool *p) { return p ? p->n : 1; }
