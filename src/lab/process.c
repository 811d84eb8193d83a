/* Child processes (process.h): spawn, feed, listen, reap.
 *
 * One poll loop serves the three pipes, so that neither side can wait for the
 * other. SIGPIPE is ignored while a child is fed: a child that does not read
 * is its own business.
 */
#define _GNU_SOURCE /* pipe2 */
#include "lab/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

typedef struct {
  int in[2], out[2], err[2]; /* pipes: [0] to read from, [1] to write to */
  size_t fed;
} pipes;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void close_fd(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

static void close_all(pipes *p) {
  for (int k = 0; k < 2; k++) {
    close_fd(&p->in[k]);
    close_fd(&p->out[k]);
    close_fd(&p->err[k]);
  }
}

static bool open_all(pipes *p) {
  *p = (pipes){{-1, -1}, {-1, -1}, {-1, -1}, 0};
  return !pipe2(p->in, O_CLOEXEC) && !pipe2(p->out, O_CLOEXEC) &&
         !pipe2(p->err, O_CLOEXEC);
}

/* A name of env replaces ours. */
static bool is_replaced(const char *ours, const char *const *env) {
  size_t n = strcspn(ours, "=");
  for (; env && *env; env++)
    if (!strncmp(*env, ours, n + 1)) return true;
  return false;
}

char **lw_process_env(const char *const *env) {
  size_t n = 0, extra = 0;
  while (environ[n]) n++;
  while (env && env[extra]) extra++;
  char **all = malloc((n + extra + 1) * sizeof *all);
  if (!all) return NULL;
  size_t k = 0;
  for (size_t i = 0; i < n; i++)
    if (!is_replaced(environ[i], env)) all[k++] = environ[i];
  for (size_t i = 0; i < extra; i++) all[k++] = (char *)env[i];
  all[k] = NULL;
  return all;
}

static int spawn(const lw_process *p, pipes *q, pid_t *pid) {
  char **env = lw_process_env(p->env);
  if (!env) return ENOMEM;
  posix_spawn_file_actions_t fa;
  posix_spawn_file_actions_init(&fa);
  posix_spawn_file_actions_adddup2(&fa, q->in[0], 0);
  posix_spawn_file_actions_adddup2(&fa, q->out[1], 1);
  if (p->error_path)
    posix_spawn_file_actions_addopen(&fa, 2, p->error_path,
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
  else
    posix_spawn_file_actions_adddup2(&fa, q->err[1], 2);
  /* A group of its own: a timeout ends the child's children as well. */
  posix_spawnattr_t at;
  posix_spawnattr_init(&at);
  posix_spawnattr_setflags(&at, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&at, 0);
  int e = posix_spawnp(pid, p->argv[0], &fa, &at, (char **)p->argv, env);
  posix_spawnattr_destroy(&at);
  posix_spawn_file_actions_destroy(&fa);
  free(env);
  return e;
}

static void feed(const lw_process *p, pipes *q) {
  ssize_t n = write(q->in[1], p->input + q->fed, p->input_len - q->fed);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n > 0) q->fed += (size_t)n;
  if (n < 0 || q->fed == p->input_len) close_fd(&q->in[1]);
}

static void listen_to(int *fd, lw_buf *to) {
  char part[65536];
  ssize_t n = read(*fd, part, sizeof part);
  if (n > 0) lw_buf_add(to, part, (size_t)n);
  if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) close_fd(fd);
}

/* Until both ends of its output are closed, or time is up. */
static void serve(const lw_process *p, pipes *q, lw_process_result *r,
                  pid_t pid, double start) {
  while (q->out[0] >= 0 || q->err[0] >= 0) {
    struct pollfd f[3] = {
        {q->in[1], POLLOUT, 0}, {q->out[0], POLLIN, 0}, {q->err[0], POLLIN, 0}};
    int wait = -1;
    if (p->timeout_ms > 0 && !r->timed_out) {
      double left = (double)p->timeout_ms - (now_ms() - start);
      wait = left < 0 ? 0 : left > 1e9 ? 1000000000 : (int)left + 1;
    }
    int n = poll(f, 3, wait);
    if (n < 0 && errno != EINTR) break;
    if (n == 0 && !r->timed_out) {
      r->timed_out = true;
      kill(-pid, SIGKILL);
    }
    if (n <= 0) continue;
    if (f[0].revents) feed(p, q);
    if (f[1].revents) listen_to(&q->out[0], &r->out);
    if (f[2].revents) listen_to(&q->err[0], &r->err);
  }
}

static double cpu_of(const struct rusage *u) {
  return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1e3 +
         (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1e3;
}

static void reap(pid_t pid, lw_process_result *r) {
  int status = 0;
  struct rusage u = {0};
  while (wait4(pid, &status, 0, &u) < 0 && errno == EINTR) {
  }
  r->exit_code =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  r->cpu_ms = cpu_of(&u);
}

lw_status lw_process_run(const lw_process *p, lw_process_result *r) {
  *r = (lw_process_result){0};
  pipes q;
  if (!open_all(&q)) {
    close_all(&q);
    return lw_error(LW_RESOURCE_EXHAUSTED, "no pipe: %s", strerror(errno));
  }
  pid_t pid;
  double start = now_ms();
  int e = spawn(p, &q, &pid);
  if (e) {
    close_all(&q);
    return lw_error(e == ENOENT ? LW_NOT_FOUND : LW_INTERNAL,
                    "cannot run %s: %s", p->argv[0], strerror(e));
  }
  close_fd(&q.in[0]);
  close_fd(&q.out[1]);
  close_fd(&q.err[1]);
  if (p->error_path) close_fd(&q.err[0]);
  if (!p->input || p->input_len == 0) close_fd(&q.in[1]);
  if (q.in[1] >= 0) fcntl(q.in[1], F_SETFL, O_NONBLOCK);
  struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
  sigaction(SIGPIPE, &ignore, &before);
  serve(p, &q, r, pid, start);
  sigaction(SIGPIPE, &before, NULL);
  close_all(&q);
  reap(pid, r);
  r->wall_ms = now_ms() - start;
  return NULL;
}

void lw_process_result_free(lw_process_result *r) {
  lw_buf_free(&r->out);
  lw_buf_free(&r->err);
}
