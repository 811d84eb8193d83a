/* The worker pool: fork-join, nothing else.
 *
 * A job is opened by storing a new epoch in state. Workers watch it for some
 * microseconds (a fork-join then costs a cache line's travel) and park on a
 * condition variable after that. A worker joins by counting itself in state;
 * then it takes parts, first of its own share, then of the others'. When no
 * part is left the caller closes the job, in the same word, and waits for
 * those who joined: a worker that the system did not get round to running
 * finds the job closed, and nobody waited for it.
 *
 * Whoever parks counts itself first and looks again under the lock, whoever
 * wakes changes the value first and looks at the count then: with sequential
 * consistency one of the two sees the other. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <hwloc.h>

#include "runtime/runtime_impl.h"

enum { SPINS = 4000, MAX_THREADS = 1024 };
/* state: epoch in the upper half, CLOSED, and how many workers joined. */
static const uint64_t CLOSED = 1ull << 31;
static const uint64_t JOINED = CLOSED - 1;

typedef struct {
  _Alignas(64) _Atomic int next; /* of the share of one thread */
  int end;
} share;

struct lw_pool {
  int n;
  int started; /* workers with a thread */
  pthread_t *threads;
  share *shares;
  _Atomic uint64_t state;
  _Atomic int busy;  /* a fork-join is going on */
  _Atomic int width; /* threads of the job */
  _Atomic int done;  /* workers that joined and are through */
  _Atomic int parked;
  _Atomic int caller_parked;
  _Atomic bool stop;
  pthread_mutex_t lock;
  pthread_cond_t work, all_done;
  /* The job; written before state. */
  lw_pool_fn fn;
  void *ctx;
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

static uint32_t epoch_of(uint64_t state) { return (uint32_t)(state >> 32); }

/* Returns a state with another epoch than seen. */
static uint64_t wait_for_work(lw_pool *p, uint32_t seen) {
  for (int k = 0; k < SPINS; k++) {
    uint64_t s = atomic_load(&p->state);
    if (epoch_of(s) != seen) return s;
    relax();
  }
  pthread_mutex_lock(&p->lock);
  atomic_fetch_add(&p->parked, 1);
  uint64_t s;
  while (epoch_of(s = atomic_load(&p->state)) == seen) {
    pthread_cond_wait(&p->work, &p->lock);
  }
  atomic_fetch_sub(&p->parked, 1);
  pthread_mutex_unlock(&p->lock);
  return s;
}

/* Counts the worker in, while the job that state s announces is open. */
static bool join_job(lw_pool *p, uint64_t s, int index) {
  uint32_t epoch = epoch_of(s);
  if (index >= atomic_load(&p->width)) return false;
  while (epoch_of(s) == epoch && !(s & CLOSED)) {
    if (atomic_compare_exchange_weak(&p->state, &s, s + 1)) return true;
  }
  return false;
}

static void take_parts(lw_pool *p, int thread, int width) {
  for (int k = 0; k < width; k++) {
    share *s = &p->shares[(thread + k) % width];
    while (atomic_load(&s->next) < s->end) {
      int part = atomic_fetch_add(&s->next, 1);
      if (part < s->end) p->fn(p->ctx, part, thread);
    }
  }
}

static void leave_job(lw_pool *p) {
  atomic_fetch_add(&p->done, 1);
  if (!atomic_load(&p->caller_parked)) return;
  pthread_mutex_lock(&p->lock);
  pthread_cond_signal(&p->all_done);
  pthread_mutex_unlock(&p->lock);
}

static void *worker(void *arg) {
  worker_start start = *(worker_start *)arg;
  free(arg);
  lw_pool *p = start.pool;
  uint32_t seen = 0;
  for (;;) {
    uint64_t s = wait_for_work(p, seen);
    seen = epoch_of(s);
    if (atomic_load(&p->stop)) return NULL;
    if (!join_job(p, s, start.index)) continue;
    take_parts(p, start.index, atomic_load(&p->width));
    leave_job(p);
  }
}

static void open_job(lw_pool *p) {
  uint64_t epoch = (uint64_t)epoch_of(atomic_load(&p->state)) + 1;
  atomic_store(&p->state, epoch << 32);
  if (atomic_load(&p->parked) == 0) return;
  pthread_mutex_lock(&p->lock);
  pthread_cond_broadcast(&p->work);
  pthread_mutex_unlock(&p->lock);
}

static void close_job(lw_pool *p) {
  int joined = (int)(atomic_fetch_or(&p->state, CLOSED) & JOINED);
  for (int k = 0; k < SPINS; k++) {
    if (atomic_load(&p->done) == joined) return;
    relax();
  }
  pthread_mutex_lock(&p->lock);
  atomic_store(&p->caller_parked, 1);
  while (atomic_load(&p->done) != joined) {
    pthread_cond_wait(&p->all_done, &p->lock);
  }
  atomic_store(&p->caller_parked, 0);
  pthread_mutex_unlock(&p->lock);
}

bool lw_pool_run(lw_pool *p, lw_pool_fn fn, void *ctx, int n_parts,
                 int n_threads) {
  if (atomic_exchange(&p->busy, 1)) return false;
  int width = n_threads < p->n ? n_threads : p->n;
  if (width > n_parts) width = n_parts > 0 ? n_parts : 1;
  p->fn = fn;
  p->ctx = ctx;
  for (int k = 0; k < width; k++) {
    atomic_store(&p->shares[k].next, (int)((int64_t)n_parts * k / width));
    p->shares[k].end = (int)((int64_t)n_parts * (k + 1) / width);
  }
  atomic_store(&p->width, width);
  atomic_store(&p->done, 0);
  if (width > 1) open_job(p);
  take_parts(p, 0, width);
  if (width > 1) close_job(p);
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
  pthread_cond_init(&p->all_done, NULL);
  size_t bytes = (size_t)n_threads * sizeof *p->shares;
  p->shares = aligned_alloc(_Alignof(share), bytes);
  if (!p->shares) lw_oom(bytes);
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
  open_job(p);
  for (int k = 1; k <= p->started; k++) pthread_join(p->threads[k], NULL);
  pthread_mutex_destroy(&p->lock);
  pthread_cond_destroy(&p->work);
  pthread_cond_destroy(&p->all_done);
  free(p->threads);
  free(p->shares);
  free(p);
}

int lw_pool_threads(const lw_pool *p) { return p ? p->n : 1; }
