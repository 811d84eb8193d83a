/* The custom-call table and the small parser of backend_config. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "lib/lapack.h"
#include "lib/lib.h"

static const lw_lib_entry table[] = {
#define E(target, fn, what) {target, fn, what},
#define E4(name, fn, what)            \
  E("lapack_c" name "_ffi", fn, what) \
  E("lapack_d" name "_ffi", fn, what) \
  E("lapack_s" name "_ffi", fn, what) E("lapack_z" name "_ffi", fn, what)
#define E2(real, cplx, fn, what)      \
  E("lapack_s" real "_ffi", fn, what) \
  E("lapack_d" real "_ffi", fn, what) \
  E("lapack_c" cplx "_ffi", fn, what) E("lapack_z" cplx "_ffi", fn, what)
    E4("gees", lw_lapack_gees, "Schur decomposition") E4(
        "geev", lw_lapack_geev, "eigenvalues and vectors")
        E4("gehrd", lw_lapack_gehrd, "Hessenberg reduction") E4(
            "geqp3", lw_lapack_geqp3, "QR with column pivoting")
            E4("geqrf", lw_lapack_geqrf, "QR, Householder form") E4(
                "gesdd", lw_lapack_gesdd, "singular values, divide and conquer")
                E4("gesvd", lw_lapack_gesvd, "singular values, QR iteration")
                    E4("getrf", lw_lapack_getrf, "LU with partial pivoting")
                        E4("gtsv", lw_lapack_gtsv, "tridiagonal solve")
                            E2("orgqr", "ungqr", lw_lapack_orgqr,
                               "Q from Householder form") E2("ormqr", "unmqr",
                                                             lw_lapack_ormqr,
                                                             "product with Q")
                                E4("potrf", lw_lapack_potrf, "Cholesky")
                                    E2("syevd", "heevd", lw_lapack_syevd,
                                       "symmetric eigenvalues and vectors")
                                        E2("sytrd", "hetrd", lw_lapack_sytrd,
                                           "tridiagonal reduction")
                                            E4("trsm", lw_lapack_trsm,
                                               "triangular solve")
#undef E4
#undef E2
#undef E
};

enum { TABLE_LEN = sizeof table / sizeof *table };

const lw_lib_entry *lw_lib_entries(int *n) {
  *n = TABLE_LEN;
  return table;
}

const lw_lib_entry *lw_lib_find(const char *target) {
  for (int i = 0; i < TABLE_LEN; i++)
    if (!strcmp(table[i].target, target)) return &table[i];
  return NULL;
}

bool lw_lib_is_identity(const char *target) {
  static const char *const names[] = {
      "AssumeGatherIndicesInBound",
      "LayoutConstraint",
      "Sharding",
      "SPMDFullToShardShape",
      "SPMDShardToFullShape",
      "annotate_device_placement",
      "xla.sdy.FuncResultSharding",
      "xla.sdy.GlobalToLocalShape",
      "xla.sdy.LocalToGlobalShape",
      "xla.sdy.PropagationBarrier",
      "xla.sdy.Sharding",
      "xla.sdy.ShardingGroup",
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(names[i], target)) return true;
  return false;
}

lw_status lw_lib_unknown(const char *target) {
  const char *names[TABLE_LEN];
  for (int i = 0; i < TABLE_LEN; i++) names[i] = table[i].target;
  const char *near = lw_nearest_name(target, names, TABLE_LEN);
  if (near)
    return lw_error(LW_UNIMPLEMENTED,
                    "custom call \"%s\" is unknown; did you mean \"%s\"?",
                    target, near);
  return lw_error(LW_UNIMPLEMENTED,
                  "custom call \"%s\" is unknown: Lawson knows JAX's "
                  "lapack_*_ffi targets and the sharding annotations",
                  target);
}

lw_status lw_lib_run(const lw_lib_call *call) {
  const lw_lib_entry *entry = lw_lib_find(call->target);
  if (!entry) return lw_lib_unknown(call->target);
  return entry->fn(call);
}

/* ---- backend_config ---- */

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* After a key: its value's first character, or NULL when it was no key. */
static const char *value_after(const char *p) {
  if (*p == '"') p++;
  while (*p == ' ') p++;
  if (*p != '=' && *p != ':') return NULL;
  p++;
  while (*p == ' ' || *p == '"') p++;
  return p;
}

int64_t lw_lib_attr(const char *config, const char *key, int64_t dflt) {
  size_t len = strlen(key);
  for (const char *p = config; p && (p = strstr(p, key)); p += len) {
    if ((p > config && is_word(p[-1])) || is_word(p[len])) continue;
    const char *v = value_after(p + len);
    if (!v) continue;
    if (!strncmp(v, "true", 4)) return 1;
    if (!strncmp(v, "false", 5)) return 0;
    char *end;
    long long n = strtoll(v, &end, 10);
    return end == v ? dflt : n;
  }
  return dflt;
}
