/* Capturing modules (capture.h). The program keeps our terminal and our process
 * group, so that it behaves as if it had been started by hand. */
#include "lab/capture.h"

#include <dirent.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "driver/driver.h"
#include "fusion/report.h"

extern char **environ;

/* ---- running ---- */

/* Ours come last: of two equal flags XLA takes the later one. Protos, since the
 * text leaves large constants out. */
static void set_flags(const char *folder) {
  const char *own = getenv("XLA_FLAGS");
  lw_buf b = {0};
  lw_buf_printf(&b, "%s%s--xla_dump_to=%s --xla_dump_hlo_as_proto",
                own ? own : "", own && *own ? " " : "", folder);
  setenv("XLA_FLAGS", lw_buf_cstr(&b), 1);
  lw_buf_free(&b);
  setenv("JAX_ENABLE_COMPILATION_CACHE", "false", 1);
}

static char *own_value(const char *name) {
  const char *v = getenv(name);
  return v ? strdup(v) : NULL;
}

static void restore(const char *name, char *was) {
  if (was)
    setenv(name, was, 1);
  else
    unsetenv(name);
  free(was);
}

static lw_status run_here(const char *const *argv, int *exit_code) {
  pid_t pid;
  int e = posix_spawnp(&pid, argv[0], NULL, NULL, (char **)argv, environ);
  if (e)
    return lw_error(e == ENOENT ? LW_NOT_FOUND : LW_INTERNAL,
                    "cannot run %s: %s", argv[0], strerror(e));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  *exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return NULL;
}

lw_status lw_capture_run(const char *const *argv, const char *folder,
                         int *exit_code) {
  if (strpbrk(folder, " \t\n"))
    return lw_error(LW_INVALID_ARGUMENT,
                    "%s: XLA takes no folder with blanks in its name", folder);
  LW_TRY(lw_dir_make(folder));
  char *flags = own_value("XLA_FLAGS");
  char *cache = own_value("JAX_ENABLE_COMPILATION_CACHE");
  set_flags(folder);
  lw_status st = run_here(argv, exit_code);
  restore("XLA_FLAGS", flags);
  restore("JAX_ENABLE_COMPILATION_CACHE", cache);
  return st;
}

/* ---- listing ---- */

static const char before_end[] = "before_optimizations.hlo.pb";
static const char after_end[] = "after_optimizations.hlo.pb";

static bool ends_with(const char *s, const char *end) {
  size_t n = strlen(s), m = strlen(end);
  return n >= m && !strcmp(s + n - m, end);
}

/* "module_0003.jit_step.before_optimizations.hlo.pb" */
static bool parse_name(const char *file, lw_captured *c) {
  long long number;
  int used = 0;
  if (!ends_with(file, before_end)) return false;
  if (sscanf(file, "module_%lld.%n", &number, &used) != 1 || !used)
    return false;
  size_t len = strlen(file) - sizeof before_end + 1;
  if (len <= (size_t)used) return false;
  lw_buf name = {0};
  lw_buf_add(&name, file + used, len - (size_t)used);
  if (name.len && name.data[name.len - 1] == '.') name.data[--name.len] = '\0';
  *c = (lw_captured){.number = number, .name = name.data, .file = strdup(file)};
  return true;
}

static void find_after(const char *folder, lw_captured *c) {
  char prefix[32];
  snprintf(prefix, sizeof prefix, "module_%04lld.", (long long)c->number);
  DIR *d = opendir(folder);
  for (struct dirent *e; d && (e = readdir(d));) {
    if (strncmp(e->d_name, prefix, strlen(prefix)) ||
        !ends_with(e->d_name, after_end) || c->after)
      continue;
    c->after = strdup(e->d_name);
  }
  if (d) closedir(d);
}

static lw_status measure(const char *folder, const char *file,
                         lw_fusion_report *r) {
  lw_context *ctx = lw_context_new();
  lw_module *m = NULL;
  lw_buf path = {0};
  lw_buf_printf(&path, "%s/%s", folder, file);
  lw_status st = lw_load_module(ctx, lw_buf_cstr(&path), NULL, NULL, &m);
  if (!st) {
    *r = lw_fusion_report_of(m);
    r->instructions = lw_module_inst_count(m); /* of reducers too */
    lw_module_free(m);
  }
  lw_buf_free(&path);
  lw_context_free(ctx);
  return st;
}

static void measure_both(const char *folder, lw_captured *c) {
  lw_fusion_report r = {0};
  lw_status st = measure(folder, c->file, &r);
  c->instructions = r.instructions;
  if (!st && c->after) {
    r = (lw_fusion_report){0};
    st = measure(folder, c->after, &r);
    c->instructions_after = r.instructions;
    c->fusions_after = r.fusions;
  }
  if (st) c->error = strdup(lw_status_message(st));
  lw_status_free(st);
}

static int by_number(const void *a, const void *b) {
  const lw_captured *x = a, *y = b;
  return x->number < y->number ? -1 : x->number > y->number;
}

lw_status lw_capture_find(const char *folder, lw_capture_list *list) {
  DIR *d = opendir(folder);
  if (!d) return lw_error(LW_NOT_FOUND, "%s: cannot be opened", folder);
  for (struct dirent *e; (e = readdir(d));) {
    lw_captured c;
    if (!parse_name(e->d_name, &c)) continue;
    find_after(folder, &c);
    measure_both(folder, &c);
    lw_vec_push(list, c);
  }
  closedir(d);
  if (list->len) qsort(list->data, list->len, sizeof *list->data, by_number);
  return NULL;
}

void lw_capture_list_free(lw_capture_list *list) {
  for (size_t k = 0; k < list->len; k++) {
    free(list->data[k].name);
    free(list->data[k].file);
    free(list->data[k].after);
    free(list->data[k].error);
  }
  lw_vec_free(list);
}
