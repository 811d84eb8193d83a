/* Where a number comes from (provenance.h). */
#define _GNU_SOURCE
#include "lab/provenance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "codegen/codegen.h"
#include "lab/store.h"
#include "target/target.h"

/* The first line of a small file; NULL when it is not there. */
static const char *first_line(const char *path, char *out, size_t size) {
  FILE *f = fopen(path, "re");
  if (!f) return NULL;
  char *line = fgets(out, (int)size, f);
  fclose(f);
  if (!line) return NULL;
  line[strcspn(line, "\n")] = 0;
  return line;
}

/* The value of the first line "name : value". */
static const char *field_of(const char *path, const char *name, char *out,
                            size_t size) {
  FILE *f = fopen(path, "re");
  if (!f) return NULL;
  const char *found = NULL;
  while (!found && fgets(out, (int)size, f)) {
    char *colon = strchr(out, ':');
    if (!colon || strncmp(out, name, strlen(name))) continue;
    out[strcspn(out, "\n")] = 0;
    found = colon + 1 + strspn(colon + 1, " \t");
  }
  fclose(f);
  return found;
}

static void add_text(cJSON *o, const char *name, const char *value) {
  if (value) {
    cJSON_AddStringToObject(o, name, value);
  } else {
    cJSON_AddNullToObject(o, name);
  }
}

static void add_system(cJSON *o) {
  struct utsname u;
  char line[4096];
  bool known = uname(&u) == 0;
  add_text(o, "machine", known ? u.nodename : NULL);
  add_text(o, "cpu",
           field_of("/proc/cpuinfo", "model name", line, sizeof line));
  cJSON_AddNumberToObject(o, "cores", (double)sysconf(_SC_NPROCESSORS_ONLN));
  add_text(o, "memory",
           field_of("/proc/meminfo", "MemTotal", line, sizeof line));
  lw_buf kernel = {0};
  if (known)
    lw_buf_printf(&kernel, "%s %s %s", u.sysname, u.release, u.machine);
  add_text(o, "kernel", known ? lw_buf_cstr(&kernel) : NULL);
  lw_buf_free(&kernel);
}

static void add_settings(cJSON *o) {
  static const struct {
    const char *name, *path;
  } files[] = {
      {"governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"},
      {"no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo"},
      {"smt", "/sys/devices/system/cpu/smt/active"},
      {"aslr", "/proc/sys/kernel/randomize_va_space"},
      {"huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled"},
      {"load", "/proc/loadavg"},
  };
  char line[4096];
  for (size_t k = 0; k < sizeof files / sizeof *files; k++)
    add_text(o, files[k].name, first_line(files[k].path, line, sizeof line));
  const char *flags = field_of("/proc/cpuinfo", "flags", line, sizeof line);
  if (flags)
    cJSON_AddBoolToObject(o, "virtual", !!strstr(flags, " hypervisor"));
}

/* Which build of a version: its program's bytes. */
static void add_build(cJSON *o) {
  char *data, text[24];
  size_t len;
  lw_status st = lw_file_read("/proc/self/exe", &data, &len);
  if (st) {
    lw_status_free(st);
    return;
  }
  snprintf(text, sizeof text, "%016llx",
           (unsigned long long)lw_hash_bytes(data, len, 0));
  cJSON_AddStringToObject(o, "lawson_build", text);
  free(data);
}

static void add_lawson(cJSON *o, const char *version) {
  cJSON_AddStringToObject(o, "lawson", version);
  add_build(o);
  cJSON_AddStringToObject(o, "llvm", lw_codegen_version());
  lw_target *t = NULL;
  lw_status st = lw_target_load("cpu", &t);
  if (!st) {
    char hash[24];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)t->hash);
    cJSON_AddStringToObject(o, "target", t->name);
    cJSON_AddStringToObject(o, "target_hash", hash);
    lw_target_free(t);
  }
  lw_status_free(st);
}

/* Variables that change what is measured. */
static void add_environment(cJSON *o) {
  static const char *const names[] = {"XLA_FLAGS",        "OMP_NUM_THREADS",
                                      "JAX_PLATFORMS",    "LD_PRELOAD",
                                      "MALLOC_ARENA_MAX", "LAWSON_SHARE"};
  cJSON *e = cJSON_AddObjectToObject(o, "environment");
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (getenv(names[k]))
      cJSON_AddStringToObject(e, names[k], getenv(names[k]));
}

cJSON *lw_provenance_now(const char *version) {
  cJSON *o = cJSON_CreateObject();
  char now[32];
  lw_now_text(now);
  cJSON_AddStringToObject(o, "time", now);
  add_system(o);
  add_settings(o);
  add_lawson(o, version);
  add_environment(o);
  return o;
}

char *lw_provenance_moved(const cJSON *then, const cJSON *now) {
  static const char *const names[] = {"machine", "cpu",        "cores",
                                      "kernel",  "lawson",     "lawson_build",
                                      "llvm",    "target_hash"};
  lw_buf b = {0};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(then, names[k]);
    const cJSON *y = cJSON_GetObjectItemCaseSensitive(now, names[k]);
    if (cJSON_Compare(x, y, true) || (!x && !y)) continue;
    if (b.len) lw_buf_str(&b, ", ");
    lw_buf_str(&b, names[k]);
  }
  if (!b.data) b.data = calloc(1, 1);
  return b.data;
}
