/* Passes: const records, one file each, one line in passes.def each.
 *
 * A pass's name is its file, its docs page (docs/passes/NAME.md) and its test
 * folder. It reports whether it changed the module; the manager checks the
 * claim against the module's fingerprint and fails on a lie.
 */
#ifndef LW_PASSES_PASS_H
#define LW_PASSES_PASS_H

#include "hlo/hlo.h"

struct lw_trace;     /* src/trace/trace.h */
struct lw_overrides; /* src/trace/override.h */
struct lw_target;    /* src/target/target.h */

typedef struct {
  const char *name, *dflt, *summary;
} lw_pass_option;

typedef struct lw_pass_env {
  const struct lw_target *target;
  struct lw_trace *trace;           /* NULL: nobody listens */
  struct lw_overrides *overrides;   /* --force-edge; NULL: none */
  lw_arena *scratch;                /* freed after the run */
  int64_t fuel;                     /* rewrites left; < 0: no limit */
  const char *const *option_values; /* parallel to the pass's options */
  const char *allow_inexact;        /* comma list, may be NULL */
  lw_map *stats;                    /* const char* name -> count */
  const struct lw_pass *pass;
  bool flush_denormals; /* arithmetic reads and writes subnormals as zero */
} lw_pass_env;

/* One rewrite is about to happen: false when the fuel is used up. Every pass
 * asks before each rewrite. */
bool lw_pass_fuel(lw_pass_env *env);
/* Adds to a named statistic ("inlined"). The name must be a literal. */
void lw_pass_count(lw_pass_env *env, const char *stat, int64_t n);
const char *lw_pass_option_value(const lw_pass_env *env, const char *name);
bool lw_pass_allows_inexact(const lw_pass_env *env, const char *name);

typedef struct lw_pass {
  const char *name, *summary;
  const lw_pass_option *options; /* ends with a NULL name; may be NULL */
  lw_status (*run)(lw_module *m, lw_pass_env *env, bool *changed);
} lw_pass;

#endif
