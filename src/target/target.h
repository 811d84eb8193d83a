/* Devices as data: a text file with provenance, and a table of backends.
 *
 * A target file is lines of `key = value`, # starts a comment. Keys: name,
 * backend, isa (words) and the numbers of fields.def (of gpu_fields.def when
 * the backend is gpu), each exactly once. The
 * files under targets/ are compiled into the library; "cpu" takes one of them
 * by CPUID. Nothing is measured at compile time.
 *
 * A backend is code: its is_fusible is asked for each edge before any cost is
 * thought of (docs/howto/add-a-target.md).
 */
#ifndef LW_TARGET_TARGET_H
#define LW_TARGET_TARGET_H

#include "base/diag.h"
#include "hlo/hlo.h"
#include "trace/trace.h"

typedef struct lw_target lw_target;

typedef struct {
  bool yes;
  lw_reason reason; /* a fusibility code; read when yes is false */
} lw_fusible;

/* May the producer be computed inside the consumer's kernel? Opcodes and
 * shapes only; what groups and buffers allow is the pass's business. */
typedef lw_fusible (*lw_is_fusible_fn)(const lw_inst *producer,
                                       const lw_inst *consumer,
                                       const lw_target *target);

typedef struct {
  const char *name; /* the `backend` key of target files */
  const char *summary;
  lw_is_fusible_fn is_fusible;
} lw_backend;

struct lw_target {
  const char *name, *backend_name, *isa;
  const lw_backend *backend;
  const char *source; /* the file it was read from, or "built in" */
  uint64_t hash;      /* of the file's text */
  struct {
#define N(key, low, high, unit) double key;
#include "target/fields.def"
#undef N
  } v; /* 0 when the backend is gpu */
  struct {
#define N(key, low, high, unit) double key;
#include "target/gpu_fields.def"
#undef N
  } gpu; /* 0 when it is not */
};

/* Backends by name; "cpu" is there from the start. Registering a name again
 * replaces it (not while compiles run). At most 16; false when full. */
bool lw_backend_register(const lw_backend *b);
const lw_backend *lw_backend_find(const char *name);
/* A loop over its result, each element computed from operands read at computed
 * indices: elementwise ops and movers. */
bool lw_inst_is_loop(const lw_inst *i);
/* A stage of its own in a kernel (src/kernel): it reads its operands as arrays
 * and leaves one, yet may share a kernel that is small enough to run as a
 * whole. Reduces are not among them: they fit into tiles. */
bool lw_inst_is_lone_stage(const lw_inst *i);
/* The CPU's own rule: loops, reduces as producers at their own index. */
lw_fusible lw_cpu_is_fusible(const lw_inst *producer, const lw_inst *consumer,
                             const lw_target *target);

/* What XLA:GPU's priority fusion takes at all (target/gpu.h has the rest). */
lw_fusible lw_gpu_is_fusible(const lw_inst *producer, const lw_inst *consumer,
                             const lw_target *target);

/* "cpu" (NULL too): by CPUID. A built-in file's name. Else a path. Errors give
 * file, line and column; an unknown name suggests the nearest. The result
 * lives until lw_target_free. */
LW_MUST_USE lw_status lw_target_load(const char *name, lw_target **out);
/* The same from text; filename is for messages. */
LW_MUST_USE lw_status lw_target_parse(const char *text, size_t len,
                                      const char *filename, lw_target **out);
void lw_target_free(lw_target *t);
/* The built-in file that CPUID chooses here. */
const char *lw_target_host_name(void);
/* Built-in files, in a fixed order. */
int lw_target_builtin_count(void);
const char *lw_target_builtin_name(int i);
/* As a target file, units as comments: reading it again gives the same. */
void lw_target_print(lw_buf *b, const lw_target *t);

#endif
