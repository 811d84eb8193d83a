/* Workers (worker.h): a child, two pipes, its standard error in a file. */
#define _GNU_SOURCE /* pipe2 */
#include "lab/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lab/process.h"

struct lw_worker {
  pid_t pid; /* 0: reaped */
  int to, from;
  FILE *errors;
  lw_buf unread;
  int status;
};

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int spawn(lw_worker *w, const char *const *argv, const char *const *env,
                 int in, int out) {
  char **all = lw_process_env(env);
  if (!all) return ENOMEM;
  posix_spawn_file_actions_t fa;
  posix_spawn_file_actions_init(&fa);
  posix_spawn_file_actions_adddup2(&fa, in, 0);
  posix_spawn_file_actions_adddup2(&fa, out, 1);
  posix_spawn_file_actions_adddup2(&fa, fileno(w->errors), 2);
  int e = posix_spawnp(&w->pid, argv[0], &fa, NULL, (char **)argv, all);
  free(all);
  posix_spawn_file_actions_destroy(&fa);
  if (e) w->pid = 0;
  return e;
}

static void reap(lw_worker *w) {
  if (!w->pid) return;
  while (waitpid(w->pid, &w->status, 0) < 0 && errno == EINTR) {
  }
  w->pid = 0;
}

/* The end of what it wrote to standard error, without a last newline. */
static void last_words(lw_worker *w, lw_buf *out) {
  char text[2048];
  fseek(w->errors, 0, SEEK_END);
  long size = ftell(w->errors), from = size - (long)sizeof text + 1;
  fseek(w->errors, from > 0 ? from : 0, SEEK_SET);
  size_t n = fread(text, 1, sizeof text - 1, w->errors);
  while (n && (text[n - 1] == '\n' || text[n - 1] == ' ')) n--;
  text[n] = 0;
  lw_buf_str(out, text);
}

static const char *without_prefix(const char *s) {
  static const char prefix[] = "lawson: error: ";
  const char *at = strstr(s, prefix);
  return at ? at + sizeof prefix - 1 : s;
}

static lw_status ended(lw_worker *w) {
  reap(w);
  lw_buf words = {0};
  last_words(w, &words);
  int status = WIFEXITED(w->status) ? WEXITSTATUS(w->status) : 0;
  lw_code code = status == 4   ? LW_UNAVAILABLE
                 : status == 2 ? LW_NOT_FOUND
                               : LW_INVALID_ARGUMENT;
  lw_status st;
  if (words.len) {
    st = lw_error(code, "%s", without_prefix(lw_buf_cstr(&words)));
  } else if (WIFSIGNALED(w->status)) {
    st = lw_error(LW_INVALID_ARGUMENT, "the worker was ended by signal %d (%s)",
                  WTERMSIG(w->status), strsignal(WTERMSIG(w->status)));
  } else {
    st = lw_error(LW_INVALID_ARGUMENT, "the worker ended with status %d",
                  WEXITSTATUS(w->status));
  }
  lw_buf_free(&words);
  return st;
}

static lw_status wait_for_more(lw_worker *w, double until) {
  struct pollfd f = {w->from, POLLIN, 0};
  double left = until - now_ms();
  int n = poll(&f, 1, left < 0 ? 0 : left > 1e9 ? 1000000000 : (int)left + 1);
  if (n < 0 && errno == EINTR) return NULL;
  if (n <= 0) {
    kill(w->pid, SIGKILL);
    reap(w);
    return lw_error(LW_DEADLINE_EXCEEDED, "the worker did not answer in time");
  }
  char part[4096];
  ssize_t got = read(w->from, part, sizeof part);
  if (got > 0) lw_buf_add(&w->unread, part, (size_t)got);
  if (got == 0) return ended(w);
  return NULL;
}

/* The next line that starts with this word; others are its chatter. */
static lw_status read_answer(lw_worker *w, const char *word, size_t len,
                             int64_t timeout_ms, lw_buf *out) {
  double until = now_ms() + (double)timeout_ms;
  for (;;) {
    char *eol = w->unread.len ? memchr(w->unread.data, '\n', w->unread.len) : 0;
    if (!eol) {
      LW_TRY(wait_for_more(w, until));
      continue;
    }
    const char *line = w->unread.data;
    size_t n = (size_t)(eol - line);
    bool ours =
        n >= len && !memcmp(line, word, len) && (n == len || line[len] == ' ');
    if (ours && out && n > len) lw_buf_add(out, line + len + 1, n - len - 1);
    w->unread.len -= n + 1;
    memmove(w->unread.data, eol + 1, w->unread.len);
    if (ours) return NULL;
  }
}

static lw_status start(lw_worker *w, const char *const *argv,
                       const char *const *env) {
  w->errors = tmpfile();
  if (!w->errors)
    return lw_error(LW_RESOURCE_EXHAUSTED, "no temporary file: %s",
                    strerror(errno));
  fcntl(fileno(w->errors), F_SETFD, FD_CLOEXEC);
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC))
    return lw_error(LW_RESOURCE_EXHAUSTED, "no pipe: %s", strerror(errno));
  w->to = in[1];
  if (pipe2(out, O_CLOEXEC)) {
    close(in[0]);
    return lw_error(LW_RESOURCE_EXHAUSTED, "no pipe: %s", strerror(errno));
  }
  w->from = out[0];
  int e = spawn(w, argv, env, in[0], out[1]);
  close(in[0]);
  close(out[1]);
  if (!e) return NULL;
  return lw_error(e == ENOENT ? LW_UNAVAILABLE : LW_INTERNAL,
                  "cannot run %s: %s", argv[0], strerror(e));
}

lw_status lw_worker_start(const char *const *argv, const char *const *env,
                          int64_t timeout_ms, lw_worker **out, lw_buf *ready) {
  *out = NULL;
  lw_worker *w = calloc(1, sizeof *w);
  if (!w) lw_oom(sizeof *w);
  w->to = w->from = -1;
  lw_status st = start(w, argv, env);
  if (!st) st = read_answer(w, "ready", 5, timeout_ms, ready);
  if (st) {
    lw_worker_stop(w);
  } else {
    *out = w;
  }
  return st;
}

lw_status lw_worker_ask(lw_worker *w, const char *question, int64_t timeout_ms,
                        lw_buf *answer) {
  lw_buf line = {0};
  lw_buf_printf(&line, "%s\n", question);
  size_t done = 0;
  lw_status st = NULL;
  while (!st && done < line.len) {
    ssize_t n = write(w->to, line.data + done, line.len - done);
    if (n > 0) done += (size_t)n;
    if (n < 0 && errno != EINTR) st = ended(w);
  }
  lw_buf_free(&line);
  if (st) return st;
  return read_answer(w, question, strcspn(question, " "), timeout_ms, answer);
}

void lw_worker_stop(lw_worker *w) {
  if (!w) return;
  if (w->to >= 0) close(w->to);
  if (w->pid && w->from >= 0) {
    /* It ends at the end of its input; one that does not is ended. */
    struct pollfd f = {w->from, POLLIN, 0};
    char rest[4096];
    double until = now_ms() + 5000;
    ssize_t n = 1;
    while (n > 0 && now_ms() < until && poll(&f, 1, 5000) > 0)
      n = read(w->from, rest, sizeof rest);
    if (n != 0) kill(w->pid, SIGKILL);
  }
  reap(w);
  if (w->from >= 0) close(w->from);
  if (w->errors) fclose(w->errors);
  lw_buf_free(&w->unread);
  free(w);
}
