/* A program under test in a process of its own, which answers when asked.
 *
 * It says "ready {JSON}" once compiled, called once and warmed up: load_ms,
 * compile_ms, first_ms, steady_ms and what else it knows of itself. Then, a
 * line a question:
 *   sample N       N timed calls   -> sample MEDIAN_NS MIN_NS MAX_NS N
 *   module FILE    -> module       the optimised module, as text
 *   save FILE      -> save         the outputs as o0, o1, ... in an .npz
 * It ends at the end of its input. Written twice: cli/bench_worker.c for
 * Lawson, python/lawson/worker.py for XLA.
 */
#ifndef LW_LAB_WORKER_H
#define LW_LAB_WORKER_H

#include "base/buf.h"

typedef struct lw_worker lw_worker;

/* argv and env as in process.h. Waits until it is ready; *ready is its JSON.
 * UNAVAILABLE: no such program, or it ended with 4 (a compiler is missing);
 * NOT_FOUND: it ended with 2 (a name it does not know); INVALID_ARGUMENT: it
 * ended before it was ready; with its words. */
LW_MUST_USE lw_status lw_worker_start(const char *const *argv,
                                      const char *const *env,
                                      int64_t timeout_ms, lw_worker **out,
                                      lw_buf *ready);
/* Asks, and waits for an answer that starts with the question's first word;
 * *answer is the rest of it. */
LW_MUST_USE lw_status lw_worker_ask(lw_worker *w, const char *question,
                                    int64_t timeout_ms, lw_buf *answer);
/* Lets it end, waits, frees. */
void lw_worker_stop(lw_worker *w);

#endif
