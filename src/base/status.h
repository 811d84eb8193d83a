/* Status: one pointer, NULL is success. Codes are absl's, so that a PJRT
 * error code is the same integer.
 *
 * A function that can fail returns lw_status and its result must be used.
 * Whoever stops an error frees it with lw_status_free.
 */
#ifndef LW_BASE_STATUS_H
#define LW_BASE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
  LW_OK = 0,
  LW_CANCELLED = 1,
  LW_UNKNOWN = 2,
  LW_INVALID_ARGUMENT = 3,
  LW_DEADLINE_EXCEEDED = 4,
  LW_NOT_FOUND = 5,
  LW_ALREADY_EXISTS = 6,
  LW_PERMISSION_DENIED = 7,
  LW_RESOURCE_EXHAUSTED = 8,
  LW_FAILED_PRECONDITION = 9,
  LW_ABORTED = 10,
  LW_OUT_OF_RANGE = 11,
  LW_UNIMPLEMENTED = 12,
  LW_INTERNAL = 13,
  LW_UNAVAILABLE = 14,
  LW_DATA_LOSS = 15
} lw_code;

typedef struct lw_status_s *lw_status;

#define LW_MUST_USE __attribute__((warn_unused_result))
#define LW_PRINTF(a, b) __attribute__((format(printf, a, b)))

/* A new error with a printf message (no trailing newline). Never NULL. */
lw_status lw_error(lw_code code, const char *fmt, ...) LW_PRINTF(2, 3);
/* Prefix the message ("while reading x: ..."); NULL stays NULL. */
lw_status lw_status_annotate(lw_status s, const char *fmt, ...) LW_PRINTF(2, 3);
lw_code lw_status_code(lw_status s);
const char *lw_status_message(lw_status s); /* "" on success */
void lw_status_free(lw_status s);

#define LW_TRY(expr)             \
  do {                           \
    lw_status lw_try_ = (expr);  \
    if (lw_try_) return lw_try_; \
  } while (0)

/* Out of memory in a small allocation (arena, string, map): prints a line and
 * stops the process with status 70. Buffers whose size comes from the input are
 * never allocated this way; they are status-checked (docs/decisions/0003). */
_Noreturn void lw_oom(size_t bytes);

/* An internal invariant. Kept in release builds: an internal error is exit 70
 * with file and line, never silent corruption. */
_Noreturn void lw_panic(const char *file, int line, const char *what);
#define LW_ASSERT(cond) ((cond) ? (void)0 : lw_panic(__FILE__, __LINE__, #cond))

#endif
