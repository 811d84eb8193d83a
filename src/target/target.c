/* Targets: the built-in files, the choice by CPUID, backends, printing. */
#include "target/target.h"

__attribute__((weak)) lw_fusible lw_gpu_is_fusible(const lw_inst *producer,
                                                   const lw_inst *consumer,
                                                   const lw_target *target) {
  (void)producer, (void)consumer, (void)target;
  return (lw_fusible){.yes = false};
}

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static const struct {
  const char *name, *text;
} builtins[] = {
#define T(name, text) {name, text},
#include "builtin_targets.inc"
#undef T
};

enum { N_BUILTINS = sizeof builtins / sizeof *builtins };

int lw_target_builtin_count(void) { return N_BUILTINS; }
const char *lw_target_builtin_name(int i) { return builtins[i].name; }

/* ---- which CPU ---- */

#if defined(__x86_64__)
#include <cpuid.h>

typedef struct {
  char vendor[13];
  unsigned family, model;
  bool avx512f;
} cpu_id;

static cpu_id read_cpuid(void) {
  cpu_id id = {0};
  unsigned a, b, c, d;
  if (!__get_cpuid(0, &a, &b, &c, &d)) return id;
  memcpy(id.vendor, &b, 4);
  memcpy(id.vendor + 4, &d, 4);
  memcpy(id.vendor + 8, &c, 4);
  if (!__get_cpuid(1, &a, &b, &c, &d)) return id;
  id.family = (a >> 8) & 15;
  id.model = (a >> 4) & 15;
  if (id.family == 15) id.family += (a >> 20) & 255;
  if (id.family >= 6) id.model |= ((a >> 16) & 15) << 4;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) id.avx512f = (b >> 16) & 1;
  return id;
}

/* An AVX-512 Xeon takes the Ice Lake file, the nearest that is measured; so
 * does any AMD core with AVX-512 the Zen 4 one. */
const char *lw_target_host_name(void) {
  cpu_id id = read_cpuid();
  if (!id.avx512f) return "cpu-generic";
  if (!strcmp(id.vendor, "GenuineIntel")) return "cpu-icelake-server";
  if (!strcmp(id.vendor, "AuthenticAMD")) return "cpu-zen4";
  return "cpu-generic";
}
#else
const char *lw_target_host_name(void) { return "cpu-generic"; }
#endif

/* ---- backends ---- */

enum { MAX_BACKENDS = 16 };

static lw_backend backends[MAX_BACKENDS] = {
    {"cpu", "native code on this machine's cores", lw_cpu_is_fusible},
    {"gpu", "XLA:GPU's decisions, without the device", lw_gpu_is_fusible}};
static int n_backends = 2;

bool lw_backend_register(const lw_backend *b) {
  for (int i = 0; i < n_backends; i++)
    if (!strcmp(backends[i].name, b->name)) {
      backends[i] = *b;
      return true;
    }
  if (n_backends == MAX_BACKENDS) return false;
  backends[n_backends++] = *b;
  return true;
}

const lw_backend *lw_backend_find(const char *name) {
  for (int i = 0; i < n_backends; i++)
    if (!strcmp(backends[i].name, name)) return &backends[i];
  return NULL;
}

/* ---- loading ---- */

static lw_status load_builtin(const char *name, lw_target **out) {
  for (int i = 0; i < N_BUILTINS; i++)
    if (!strcmp(builtins[i].name, name)) {
      LW_TRY(lw_target_parse(builtins[i].text, strlen(builtins[i].text), name,
                             out));
      free((char *)(uintptr_t)(*out)->source);
      (*out)->source = strdup("built in");
      return NULL;
    }
  return lw_error(LW_NOT_FOUND, "no built-in target %s", name);
}

static bool is_builtin(const char *name) {
  for (int i = 0; i < N_BUILTINS; i++)
    if (!strcmp(builtins[i].name, name)) return true;
  return false;
}

static lw_status unknown_target(const char *name) {
  const char *known[N_BUILTINS + 1];
  known[0] = "cpu";
  for (int i = 0; i < N_BUILTINS; i++) known[i + 1] = builtins[i].name;
  const char *near = lw_nearest_name(name, known, N_BUILTINS + 1);
  return lw_error(LW_NOT_FOUND, "no target or target file %s%s%s%s", name,
                  near ? " (did you mean " : "", near ? near : "",
                  near ? "?)" : "");
}

lw_status lw_target_load(const char *name, lw_target **out) {
  *out = NULL;
  if (!name || !strcmp(name, "cpu")) name = lw_target_host_name();
  if (is_builtin(name)) return load_builtin(name, out);
  if (!lw_file_exists(name)) return unknown_target(name);
  char *text;
  size_t len;
  LW_TRY(lw_file_read(name, &text, &len));
  lw_status s = lw_target_parse(text, len, name, out);
  free(text);
  return s;
}

void lw_target_free(lw_target *t) {
  if (!t) return;
  free((char *)(uintptr_t)t->name);
  free((char *)(uintptr_t)t->backend_name);
  free((char *)(uintptr_t)t->isa);
  free((char *)(uintptr_t)t->source);
  free(t);
}

static void print_number(lw_buf *b, const char *key, double v,
                         const char *unit) {
  lw_buf_printf(b, "%s = %.17g # %s\n", key, v, unit);
}

void lw_target_print(lw_buf *b, const lw_target *t) {
  lw_buf_printf(b, "# %s, hash %016llx\n", t->source,
                (unsigned long long)t->hash);
  lw_buf_printf(b, "name = %s\nbackend = %s\nisa = %s\n", t->name,
                t->backend_name, t->isa);
  if (!strcmp(t->backend_name, "gpu")) {
#define N(key, low, high, unit) print_number(b, #key, t->gpu.key, unit);
#include "target/gpu_fields.def"
#undef N
    return;
  }
#define N(key, low, high, unit) print_number(b, #key, t->v.key, unit);
#include "target/fields.def"
#undef N
}
