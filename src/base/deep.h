/* Deep recursion: over a fusion of many thousand instructions, the walks that
 * follow operands go as deep as the longest chain. They stay plain recursion,
 * on a stack made for it. */
#ifndef LW_BASE_DEEP_H
#define LW_BASE_DEEP_H

#include "base/status.h"

/* Of address space; pages that are never touched cost nothing. */
#define LW_DEEP_STACK_BYTES (4ull << 30)

/* Calls work(arg) on such a stack and returns what it returned; on the
 * caller's own stack where the system grants none. Nested calls stay on the
 * stack they are on. */
LW_MUST_USE lw_status lw_run_deep(lw_status (*work)(void *arg), void *arg);

#endif
