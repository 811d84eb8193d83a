/* A thread of its own is the portable way to a larger stack; it inherits the
 * caller's signal mask and floating-point modes. */
#include "base/deep.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct {
  lw_status (*work)(void *arg);
  void *arg;
  lw_status status;
} call;

static _Thread_local bool is_deep;

static void *run(void *p) {
  call *c = p;
  is_deep = true;
  c->status = c->work(c->arg);
  return NULL;
}

static bool start(pthread_t *thread, call *c) {
  pthread_attr_t a;
  if (pthread_attr_init(&a)) return false;
  bool ok = false;
  for (size_t bytes = LW_DEEP_STACK_BYTES; !ok && bytes >= (64u << 20);
       bytes /= 4)
    ok = !pthread_attr_setstacksize(&a, bytes) &&
         !pthread_create(thread, &a, run, c);
  pthread_attr_destroy(&a);
  return ok;
}

lw_status lw_run_deep(lw_status (*work)(void *arg), void *arg) {
  call c = {work, arg, NULL};
  pthread_t thread;
  if (is_deep || !start(&thread, &c)) return work(arg);
  pthread_join(thread, NULL);
  return c.status;
}
