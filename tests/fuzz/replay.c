/* Runs files, and folders of them, through a fuzz target without libFuzzer:
 * every input that was ever worth keeping, in every build.
 *   replay_TARGET [--suffix=.hlo] FILE|DIR ...
 * A suffix leaves out the files of folders that have another. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "fuzz/fuzz.h"

enum { MAX_BYTES = 1 << 20 };

static const char *suffix = "";
static char current[4096];
static int count;

/* Names the input that broke. */
static void on_abort(int signal) {
  (void)signal;
  static const char in[] = "replay: in ";
  ssize_t n = write(STDERR_FILENO, in, sizeof in - 1);
  n += write(STDERR_FILENO, current, strlen(current));
  if (write(STDERR_FILENO, "\n", 1) + n < 0) _exit(70);
}

static bool has_suffix(const char *name) {
  size_t n = strlen(name), s = strlen(suffix);
  return n >= s && !strcmp(name + n - s, suffix);
}

static int file(const char *path) {
  char *data;
  size_t len;
  lw_status st = lw_file_read(path, &data, &len);
  if (st) {
    fprintf(stderr, "replay: %s\n", lw_status_message(st));
    lw_status_free(st);
    return 1;
  }
  snprintf(current, sizeof current, "%s", path);
  if (getenv("LW_REPLAY_VERBOSE")) on_abort(0);
  /* A copy of just this size: reads past its end are found under ASan. */
  if (len <= MAX_BYTES) {
    uint8_t *copy = malloc(len ? len : 1);
    if (copy) {
      memcpy(copy, data, len);
      LLVMFuzzerTestOneInput(copy, len);
      count++;
    }
    free(copy);
  }
  free(data);
  return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static int tree(const char *path, bool named) {
  struct dirent **list;
  int n = scandir(path, &list, NULL, by_name);
  if (n < 0) return named || has_suffix(path) ? file(path) : 0;
  int bad = 0;
  for (int k = 0; k < n; k++) {
    char sub[4096];
    snprintf(sub, sizeof sub, "%s/%s", path, list[k]->d_name);
    if (list[k]->d_name[0] != '.') bad |= tree(sub, false);
    free(list[k]);
  }
  free(list);
  return bad;
}

int main(int argc, char **argv) {
  int bad = 0;
  signal(SIGABRT, on_abort);
  for (int k = 1; k < argc; k++) {
    if (!strncmp(argv[k], "--suffix=", 9))
      suffix = argv[k] + 9;
    else
      bad |= tree(argv[k], true);
  }
  printf("%d inputs replayed\n", count);
  return bad || !count;
}
