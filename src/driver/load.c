/* Modules from files, standard input and folders of dumps. */
#include <ctype.h>
#include <dirent.h>
#include <string.h>

#include "base/file.h"
#include "driver/driver.h"
#include "reader/proto.h"
#include "reader/reader.h"

static bool ends_with(const char *s, const char *end) {
  size_t n = strlen(s), m = strlen(end);
  return n >= m && !strcmp(s + n - m, end);
}

/* ---- what is it? ---- */

static bool is_bytecode(const char *data, size_t len) {
  return len >= 4 && !memcmp(data, "ML\xefR", 4);
}

/* Protos hold control characters early on (tags, lengths); text does not. */
static bool is_proto(const char *path, const char *data, size_t len) {
  static const char header[] = "HloModule ";
  if (ends_with(path, ".pb")) return true;
  size_t n = len < 4096 ? len : 4096, at = strspn(data, " \t\r\n");
  if (len - at >= sizeof header &&
      !memcmp(data + at, header, sizeof header - 1))
    return false;
  for (size_t k = 0; k < n; k++) {
    unsigned char c = (unsigned char)data[k];
    if (c < 32 && c != '\n' && c != '\t' && c != '\r' && c != '\f') return true;
  }
  return false;
}

/* ---- log prefixes ---- */

/* "I0000 00:00:1700000000.123456   12345 file.cc:123] " -> its length, or 0. */
static size_t log_prefix(const char *s, size_t len) {
  if (len < 8 || !strchr("IWEF", s[0])) return 0;
  for (int k = 1; k < 5; k++) {
    if (!isdigit((unsigned char)s[k])) return 0;
  }
  if (s[5] != ' ') return 0;
  for (size_t k = 6; k + 1 < len && s[k] != '\n'; k++) {
    if (s[k] == ']' && s[k + 1] == ' ') {
      return isdigit((unsigned char)s[k - 1]) ? k + 2 : 0;
    }
  }
  return 0;
}

/* "2026-01-02 03:04:05.678901: I file.cc:12] " likewise. */
static size_t dated_prefix(const char *s, size_t len) {
  static const char form[] = "dddd-dd-dd dd:dd:dd.dddddd: ";
  size_t n = sizeof form - 1;
  if (len < n + 4) return 0;
  for (size_t k = 0; k < n; k++) {
    bool digit = isdigit((unsigned char)s[k]) != 0;
    if (form[k] == 'd' ? !digit : s[k] != form[k]) return 0;
  }
  for (size_t k = n; k + 1 < len && s[k] != '\n'; k++) {
    if (s[k] == ']' && s[k + 1] == ' ') return k + 2;
  }
  return 0;
}

/* Drops the prefixes in place; returns the new length. */
static size_t drop_prefixes(char *s, size_t len) {
  size_t out = 0, k = 0;
  while (k < len) {
    size_t p = log_prefix(s + k, len - k);
    k += p ? p : dated_prefix(s + k, len - k);
    while (k < len) {
      char c = s[k++];
      s[out++] = c;
      if (c == '\n') break;
    }
  }
  s[out] = '\0';
  return out;
}

/* ---- one file ---- */

static lw_status parse(lw_context *ctx, const char *path, char *data,
                       size_t len, lw_diags *diags, lw_module **out) {
  const char *shown = strcmp(path, "-") ? path : "<stdin>";
  if (is_bytecode(data, len)) {
    return lw_error(LW_UNIMPLEMENTED,
                    "%s: StableHLO bytecode is not read; use the HLO text or "
                    "HloModuleProto that jax.jit(f).lower(...).as_text('hlo') "
                    "or XLA_FLAGS=--xla_dump_to gives",
                    shown);
  }
  if (is_proto(path, data, len)) {
    return lw_status_annotate(lw_read_proto(ctx, data, len, out), "%s", shown);
  }
  len = drop_prefixes(data, len);
  char *text = lw_arena_strdup(lw_context_arena(ctx), data, len);
  return lw_read_text(ctx, text, len, shown, diags, out);
}

static lw_status load_file(lw_context *ctx, const char *path, lw_diags *diags,
                           lw_module **out) {
  char *data;
  size_t len;
  LW_TRY(lw_file_read(path, &data, &len));
  lw_status st = parse(ctx, path, data, len, diags, out);
  free(data);
  return st;
}

/* ---- folders ---- */

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A dump holds much besides modules: memory reports, schedules, options. */
static bool may_be_module(const char *name) {
  static const char *const other[] = {"buffer-assignment",
                                      "memory-usage",
                                      "live-range",
                                      "debug_options",
                                      "flagfile",
                                      "thunk",
                                      "execution_",
                                      ".ll",
                                      ".s",
                                      ".ptx",
                                      "inputs",
                                      "outputs"};
  for (size_t k = 0; k < sizeof other / sizeof *other; k++) {
    if (strstr(name, other[k])) return false;
  }
  return ends_with(name, ".hlo") || ends_with(name, ".pb") ||
         ends_with(name, ".txt");
}

typedef LW_VEC(char *) name_list;

static lw_status list_folder(lw_context *ctx, const char *path,
                             const char *which, name_list *names) {
  DIR *d = opendir(path);
  if (!d) return lw_error(LW_NOT_FOUND, "%s: cannot be opened", path);
  for (struct dirent *e; (e = readdir(d));) {
    if (!may_be_module(e->d_name)) continue;
    if (which && !strstr(e->d_name, which)) continue;
    char *s =
        lw_arena_strdup(lw_context_arena(ctx), e->d_name, strlen(e->d_name));
    lw_vec_push(names, s);
  }
  closedir(d);
  if (names->len) {
    qsort(names->data, names->len, sizeof *names->data, by_name);
  }
  return NULL;
}

/* The one name that ends so; NULL without one or with several. */
static const char *only_one(const name_list *names, const char *end) {
  const char *one = NULL;
  for (size_t k = 0; k < names->len; k++) {
    if (!ends_with(names->data[k], end)) continue;
    if (one) return NULL;
    one = names->data[k];
  }
  return one;
}

/* The name itself, when it is one, beats the names it is part of. Of one
 * module's dumps it is the first: what XLA was given. */
static const char *pick(const name_list *names, const char *which) {
  for (size_t k = 0; which && k < names->len; k++) {
    if (!strcmp(names->data[k], which)) return names->data[k];
  }
  if (names->len == 1) return names->data[0];
  const char *text = only_one(names, ".before_optimizations.txt");
  return text ? text : only_one(names, ".before_optimizations.hlo.pb");
}

static lw_status no_choice(const char *path, const char *which,
                           const name_list *names) {
  if (names->len == 0) {
    return lw_error(LW_NOT_FOUND, "%s: no module%s%s in this folder", path,
                    which ? " matches --module=" : "", which ? which : "");
  }
  lw_buf b = {0};
  for (size_t k = 0; k < names->len; k++) {
    lw_buf_printf(&b, "\n  %s", names->data[k]);
  }
  lw_status st = lw_error(LW_FAILED_PRECONDITION,
                          "%s: %zu modules; choose one with --module=NAME:%s",
                          path, names->len, lw_buf_cstr(&b));
  lw_buf_free(&b);
  return st;
}

static lw_status load_folder(lw_context *ctx, const char *path,
                             const char *which, lw_diags *diags,
                             lw_module **out) {
  name_list names = {0};
  lw_status st = list_folder(ctx, path, which, &names);
  const char *one = st ? NULL : pick(&names, which);
  if (!st && !one) st = no_choice(path, which, &names);
  if (!st) {
    const char *full =
        lw_arena_printf(lw_context_arena(ctx), "%s/%s", path, one);
    st = load_file(ctx, full, diags, out);
  }
  lw_vec_free(&names);
  return st;
}

lw_status lw_load_module(lw_context *ctx, const char *path, const char *which,
                         lw_diags *diags, lw_module **out) {
  *out = NULL;
  if (strcmp(path, "-") && lw_dir_exists(path)) {
    return load_folder(ctx, path, which, diags, out);
  }
  return load_file(ctx, path, diags, out);
}

lw_status lw_load_text(lw_context *ctx, const char *text, size_t len,
                       lw_module **out) {
  return lw_read_text(ctx, text, len, "<text>", NULL, out);
}
