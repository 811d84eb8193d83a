/* Making and finding Python environments (setup.h).
 *
 * pip does the work; nothing is compiled and no device or driver is needed.
 * XLA:GPU wants libdevice and ptxas, which NVIDIA's wheels hold, and no CUDA
 * toolkit; it loads without libcuda. All versions are pinned, so that two
 * machines see the same compiler.
 */
#include "lab/setup.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/file.h"
#include "lab/process.h"

typedef struct {
  const char *backend;
  const char *pinned[6];     /* ends with NULL */
  const char *of_version[6]; /* for a given jax; %s is its version */
} recipe;

static const recipe recipes[] = {
    {"cpu", {"jax==0.10.2"}, {"jax==%s"}},
    {"gpu",
     {"jax==0.10.2", "jax-cuda13-pjrt==0.10.2", "jax-cuda13-plugin==0.10.2",
      "nvidia-nvvm==13.5.37", "nvidia-cuda-nvcc==13.5.37"},
     {"jax==%s", "jax-cuda13-pjrt==%s", "jax-cuda13-plugin==%s",
      "nvidia-nvvm==13.5.37", "nvidia-cuda-nvcc==13.5.37"}},
    {"tpu", {"jax==0.10.2", "libtpu==0.0.52"}, {"jax[tpu]==%s"}},
};
enum { N_RECIPES = sizeof recipes / sizeof *recipes };
static const char pinned_version[] = "0.10.2";

/* ---- names ---- */

char *lw_setup_name(const char *backend, const char *version) {
  lw_buf b = {0};
  lw_buf_printf(&b, "xla-%s", backend);
  if (version && strcmp(version, pinned_version))
    lw_buf_printf(&b, "@%s", version);
  return b.data;
}

static const recipe *recipe_of(const char *backend, size_t len) {
  for (int k = 0; k < N_RECIPES; k++)
    if (strlen(recipes[k].backend) == len &&
        !memcmp(recipes[k].backend, backend, len))
      return &recipes[k];
  return NULL;
}

/* It becomes part of a path and of pip's command line. */
static bool is_version(const char *s) {
  if (!isdigit((unsigned char)*s) || strlen(s) > 32) return false;
  for (; *s; s++)
    if (!isalnum((unsigned char)*s) && *s != '.') return false;
  return true;
}

/* "xla-gpu@0.9.2" or "xla@0.9.2": recipe and version (NULL without). */
static const recipe *parse_name(const char *name, const char **version) {
  const char *at = strchr(name, '@');
  size_t len = at ? (size_t)(at - name) : strlen(name);
  *version = at ? at + 1 : NULL;
  if (at && !is_version(at + 1)) return NULL;
  if (len == 3 && at && !memcmp(name, "xla", 3)) return recipe_of("cpu", 3);
  if (len < 5 || memcmp(name, "xla-", 4)) return NULL;
  return recipe_of(name + 4, len - 4);
}

lw_status lw_setup_resolve(const char *name, char **kept) {
  static const char *const names[] = {"xla-cpu", "xla-gpu", "xla-tpu",
                                      "xla@0.9.2"};
  const char *version;
  const recipe *r = parse_name(name, &version);
  *kept = NULL;
  if (r) {
    *kept = lw_setup_name(r->backend, version);
    return NULL;
  }
  const char *near = lw_nearest_name(name, names, 4);
  return lw_error(LW_NOT_FOUND,
                  "unknown setup \"%s\"%s%s%s (xla-cpu, xla-gpu, xla-tpu, "
                  "xla@VERSION)",
                  name, near ? "; did you mean \"" : "", near ? near : "",
                  near ? "\"?" : "");
}

/* ---- folders ---- */

static lw_status data_folder(lw_buf *b) {
  const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
  if (data && *data == '/')
    lw_buf_printf(b, "%s/lawson", data);
  else if (home && *home)
    lw_buf_printf(b, "%s/.local/share/lawson", home);
  else
    return lw_error(LW_FAILED_PRECONDITION,
                    "neither XDG_DATA_HOME nor HOME is set");
  return NULL;
}

static lw_status folder_of(const char *kept, lw_buf *b) {
  LW_TRY(data_folder(b));
  lw_buf_printf(b, "/%s", kept);
  return NULL;
}

static bool is_ready(const char *folder) {
  lw_buf b = {0};
  lw_buf_printf(&b, "%s/ready", folder);
  bool ready = lw_file_exists(lw_buf_cstr(&b));
  lw_buf_free(&b);
  return ready;
}

char *lw_setup_python(const char *kept) {
  lw_buf b = {0};
  lw_status st = folder_of(kept, &b);
  bool ready = !st && is_ready(lw_buf_cstr(&b));
  lw_status_free(st);
  if (!ready) {
    lw_buf_free(&b);
    return NULL;
  }
  lw_buf_str(&b, "/bin/python");
  return b.data;
}

static lw_status run_quietly(const char *const *argv, const char *what) {
  lw_process_result r;
  lw_status st = lw_process_run(&(lw_process){.argv = argv}, &r);
  if (!st && r.exit_code) {
    const char *said = lw_buf_cstr(r.err.len ? &r.err : &r.out);
    size_t n = strlen(said);
    st = lw_error(LW_UNAVAILABLE, "%s: %s", what,
                  n > 1500 ? said + n - 1500 : said);
  } else if (st) {
    lw_code code = lw_status_code(st);
    lw_status other = lw_error(code == LW_NOT_FOUND ? LW_UNAVAILABLE : code,
                               "%s: %s", what, lw_status_message(st));
    lw_status_free(st);
    st = other;
  }
  lw_process_result_free(&r);
  return st;
}

static lw_status remove_folder(const char *folder) {
  const char *argv[] = {"rm", "-rf", "--", folder, NULL};
  return run_quietly(argv, "removing the folder");
}

/* ---- making ---- */

static void tell(void (*say)(const char *), const char *fmt, ...)
    LW_PRINTF(2, 3);
static void tell(void (*say)(const char *), const char *fmt, ...) {
  if (!say) return;
  lw_buf b = {0};
  va_list ap;
  va_start(ap, fmt);
  lw_buf_vprintf(&b, fmt, ap);
  va_end(ap);
  say(lw_buf_cstr(&b));
  lw_buf_free(&b);
}

typedef struct {
  lw_buf words[6];
  int n;
} package_list;

static package_list packages_of(const char *kept) {
  package_list p = {0};
  const char *version;
  const recipe *r = parse_name(kept, &version);
  for (; r && p.n < 6; p.n++) {
    const char *w = version ? r->of_version[p.n] : r->pinned[p.n];
    if (!w) break;
    const char *hole = strstr(w, "%s");
    if (hole)
      lw_buf_printf(&p.words[p.n], "%.*s%s", (int)(hole - w), w, version);
    else
      lw_buf_str(&p.words[p.n], w);
  }
  return p;
}

static void join_packages(const package_list *p, lw_buf *b) {
  for (int k = 0; k < p->n; k++)
    lw_buf_printf(b, "%s%s", k ? " " : "", p->words[k].data);
}

static void free_packages(package_list *p) {
  for (int k = 0; k < p->n; k++) lw_buf_free(&p->words[k]);
}

static lw_status install(const char *folder, const package_list *p) {
  lw_buf python = {0};
  lw_buf_printf(&python, "%s/bin/python", folder);
  const char *argv[16] = {
      lw_buf_cstr(&python),         "-m", "pip", "install", "--quiet",
      "--disable-pip-version-check"};
  int n = 6;
  for (int k = 0; k < p->n; k++) argv[n++] = p->words[k].data;
  argv[n] = NULL;
  lw_status st = run_quietly(argv, "pip");
  lw_buf_free(&python);
  return st;
}

static lw_status mark_ready(const char *folder, lw_buf *packages) {
  lw_buf path = {0};
  lw_buf_printf(&path, "%s/ready", folder);
  lw_status st =
      lw_file_write(lw_buf_cstr(&path), lw_buf_cstr(packages), packages->len);
  lw_buf_free(&path);
  return st;
}

static lw_status make(const char *kept, const char *folder,
                      void (*say)(const char *)) {
  if (is_ready(folder)) {
    tell(say, "%s is ready: %s", kept, folder);
    return NULL;
  }
  if (lw_dir_exists(folder)) {
    tell(say, "%s: an interrupted setup is made anew", kept);
    LW_TRY(remove_folder(folder));
  }
  package_list p = packages_of(kept);
  lw_buf words = {0};
  join_packages(&p, &words);
  tell(say, "%s: installing %s", kept, lw_buf_cstr(&words));
  const char *venv[] = {"python3", "-m", "venv", folder, NULL};
  lw_status st = run_quietly(venv, "python3 -m venv");
  if (!st) st = install(folder, &p);
  if (!st) st = mark_ready(folder, &words);
  if (!st) tell(say, "%s is ready: %s", kept, folder);
  lw_buf_free(&words);
  free_packages(&p);
  return st;
}

/* Holds folder.lock while it works. */
static lw_status make_locked(const char *kept, const char *folder,
                             void (*say)(const char *)) {
  lw_buf lock = {0};
  lw_buf_printf(&lock, "%s.lock", folder);
  int fd = open(lw_buf_cstr(&lock), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  lw_buf_free(&lock);
  if (fd < 0)
    return lw_error(LW_PERMISSION_DENIED, "%s: %s", folder, strerror(errno));
  while (flock(fd, LOCK_EX) && errno == EINTR) {
  }
  lw_status st = make(kept, folder, say);
  close(fd);
  return st;
}

lw_status lw_setup_make(const char *kept, void (*say)(const char *)) {
  lw_buf folder = {0};
  lw_status st = data_folder(&folder);
  if (!st) st = lw_dir_make(lw_buf_cstr(&folder));
  if (!st) {
    lw_buf_printf(&folder, "/%s", kept);
    st = make_locked(kept, lw_buf_cstr(&folder), say);
  }
  lw_buf_free(&folder);
  return st ? lw_status_annotate(st, "setup %s", kept) : NULL;
}

lw_status lw_setup_remove(const char *kept) {
  lw_buf folder = {0};
  lw_status st = folder_of(kept, &folder);
  if (!st && !lw_dir_exists(lw_buf_cstr(&folder)))
    st = lw_error(LW_NOT_FOUND, "%s is not set up", kept);
  if (!st) st = remove_folder(lw_buf_cstr(&folder));
  if (!st) {
    lw_buf_str(&folder, ".lock");
    unlink(lw_buf_cstr(&folder));
  }
  lw_buf_free(&folder);
  return st;
}

/* ---- listing ---- */

static void add_entry(lw_setup_list *list, const char *data, const char *kept) {
  for (size_t k = 0; k < list->len; k++)
    if (!strcmp(list->data[k].name, kept)) return;
  lw_buf name = {0}, folder = {0}, packages = {0};
  lw_buf_str(&name, kept);
  lw_buf_printf(&folder, "%s/%s", data, kept);
  package_list p = packages_of(kept);
  join_packages(&p, &packages);
  free_packages(&p);
  lw_setup_entry e = {name.data, folder.data, is_ready(folder.data),
                      packages.data};
  lw_vec_push(list, e);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const lw_setup_entry *)a)->name,
                ((const lw_setup_entry *)b)->name);
}

lw_status lw_setup_find_all(lw_setup_list *list) {
  lw_buf data = {0};
  LW_TRY(data_folder(&data));
  for (int k = 0; k < N_RECIPES; k++) {
    char *kept = lw_setup_name(recipes[k].backend, NULL);
    add_entry(list, lw_buf_cstr(&data), kept);
    free(kept);
  }
  DIR *d = opendir(lw_buf_cstr(&data));
  for (struct dirent *e; d && (e = readdir(d));) {
    const char *version;
    if (parse_name(e->d_name, &version) && !strstr(e->d_name, ".lock"))
      add_entry(list, lw_buf_cstr(&data), e->d_name);
  }
  if (d) closedir(d);
  if (list->len) qsort(list->data, list->len, sizeof *list->data, by_name);
  lw_buf_free(&data);
  return NULL;
}

void lw_setup_list_free(lw_setup_list *list) {
  for (size_t k = 0; k < list->len; k++) {
    free(list->data[k].name);
    free(list->data[k].folder);
    free(list->data[k].packages);
  }
  lw_vec_free(list);
}
