/* Buffers. Fresh pages cost as much as the arithmetic on big arrays (a page
 * fault zeroes them), so big blocks are mapped, advised to be huge pages, and
 * a few that were freed are kept for the next one of their size. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/runtime_impl.h"

enum { ALIGNMENT = 64, KEPT_BLOCKS = 16 };
static const int64_t HUGE_BYTES = 2 << 20;     /* from here on: mapped */
static const int64_t KEPT_BYTES = 512ll << 20; /* of all kept blocks */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  void *p;
  int64_t bytes;
} kept[KEPT_BLOCKS];
static int64_t kept_bytes;

/* What is really allocated: whole 64-byte lines, whole huge pages when big. */
static int64_t rounded(int64_t bytes) {
  int64_t unit = bytes >= HUGE_BYTES ? HUGE_BYTES : ALIGNMENT;
  if (bytes < 1) bytes = 1;
  int64_t sum;
  if (__builtin_add_overflow(bytes, unit - 1, &sum)) return -1;
  return sum / unit * unit;
}

static void *take_kept(int64_t bytes) {
  void *p = NULL;
  pthread_mutex_lock(&lock);
  for (int k = 0; k < KEPT_BLOCKS && !p; k++) {
    if (!kept[k].p || kept[k].bytes != bytes) continue;
    p = kept[k].p;
    kept[k].p = NULL;
    kept_bytes -= bytes;
  }
  pthread_mutex_unlock(&lock);
  return p;
}

static bool keep(void *p, int64_t bytes) {
  bool done = false;
  pthread_mutex_lock(&lock);
  for (int k = 0; k < KEPT_BLOCKS && !done; k++) {
    if (kept[k].p || kept_bytes + bytes > KEPT_BYTES) continue;
    kept[k].p = p;
    kept[k].bytes = bytes;
    kept_bytes += bytes;
    done = true;
  }
  pthread_mutex_unlock(&lock);
  return done;
}

/* A huge-page aligned mapping: the ends that stick out are given back. */
static void *map_huge(int64_t bytes) {
  size_t total = (size_t)bytes + (size_t)HUGE_BYTES;
  char *p = mmap(NULL, total, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return NULL;
  uintptr_t at = (uintptr_t)p;
  size_t before =
      (size_t)((uintptr_t)HUGE_BYTES - at % HUGE_BYTES) % HUGE_BYTES;
  size_t after = total - before - (size_t)bytes;
  if (before) munmap(p, before);
  if (after) munmap(p + before + bytes, after);
  (void)madvise(p + before, (size_t)bytes, MADV_HUGEPAGE);
  return p + before;
}

void *lw_buffer_alloc(int64_t bytes) {
  int64_t size = rounded(bytes);
  if (bytes < 0 || size < 0 || size > (int64_t)1 << 46) return NULL;
  if (size < HUGE_BYTES) return aligned_alloc(ALIGNMENT, (size_t)size);
  void *p = take_kept(size);
  return p ? p : map_huge(size);
}

void lw_buffer_free(void *p, int64_t bytes) {
  if (!p) return;
  int64_t size = rounded(bytes);
  if (size < HUGE_BYTES) {
    free(p);
  } else if (!keep(p, size)) {
    munmap(p, (size_t)size);
  }
}
