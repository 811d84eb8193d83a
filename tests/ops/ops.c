/* Every opcode, natively: tests/data/ops/OPCODE.hlo holds its cases.
 *
 *   ops [FILE...]      the given files, or all of the folder and the check that
 *   ops --shard=K/N    every opcode has one; only every N-th file from K on
 *
 * A file is a list of cases,
 *   // case NAME [t=TYPE,TYPE,...]
 *   // error MESSAGE        (optional: it is refused, with these words)
 *   module text, in which $T is each type in turn
 * and each must give the interpreter's bits on every road of lw_verify.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "driver/driver.h"

#ifndef LW_TEST_OPS
#define LW_TEST_OPS "tests/data/ops"
#endif

typedef struct {
  const char *file;
  char name[64], type[24], error[512];
  int cases, failures;
} tally;

static void fail(tally *t, const char *what) {
  t->failures++;
  printf("FAIL %s: %s %s: %s\n", t->file, t->name, t->type, what);
}

/* ---- one module ---- */

static lw_status run_module(lw_context *ctx, lw_arena *a, const char *text,
                            size_t len, const char **where) {
  lw_module *m = NULL;
  lw_literal **args;
  int32_t n_args;
  lw_verify_report r;
  LW_TRY(lw_load_text(ctx, text, len, &m));
  lw_verify_options o = {.first_only = true};
  lw_status st = lw_random_inputs(m, 7, a, &args, &n_args, NULL, NULL);
  if (!st)
    st = lw_verify(m, (const lw_literal *const *)args, n_args, &o, a, &r);
  for (int32_t k = 0; !st && k < r.n; k++) {
    const lw_road *w = &r.roads[k];
    if (w->verdict == LW_ROAD_DIFFERS || w->verdict == LW_ROAD_FAILED)
      *where = lw_arena_printf(a, "%s: %s", w->name, w->detail);
  }
  lw_module_free(m);
  return st;
}

static void judge(tally *t, lw_status st, const char *where) {
  const char *got = st ? lw_status_message(st) : where;
  if (!t->error[0] && got) fail(t, got);
  if (t->error[0] && !got) fail(t, "is not refused");
  if (t->error[0] && got && !strstr(got, t->error)) fail(t, got);
  lw_status_free(st);
}

static void run_text(tally *t, const char *text, size_t len) {
  lw_context *ctx = lw_context_new();
  lw_arena *a = lw_arena_new();
  const char *where = NULL;
  lw_status st = run_module(ctx, a, text, len, &where);
  t->cases++;
  judge(t, st, where);
  lw_arena_free(a);
  lw_context_free(ctx);
}

/* ---- one case ---- */

static void with_type(tally *t, const char *text, size_t len) {
  lw_buf b = {0};
  for (size_t k = 0; k < len; k++) {
    if (k + 1 < len && text[k] == '$' && text[k + 1] == 'T') {
      lw_buf_str(&b, t->type);
      k++;
    } else {
      lw_buf_chr(&b, text[k]);
    }
  }
  size_t n = b.len;
  run_text(t, lw_buf_cstr(&b), n);
  lw_buf_free(&b);
}

/* The line after a marker, into a buffer. */
static void take_line(const char *p, char *out, size_t room) {
  size_t n = strcspn(p, "\n");
  if (n >= room) n = room - 1;
  memcpy(out, p, n);
  out[n] = 0;
}

static void run_case(tally *t, const char *head, size_t len) {
  static const char error_mark[] = "// error ";
  char line[512], *types, *at;
  take_line(head, line, sizeof line);
  types = strstr(line, " t=");
  snprintf(t->name, sizeof t->name, "%.*s", (int)strcspn(line, " "), line);
  const char *body = memchr(head, '\n', len);
  if (!body) return;
  body++;
  t->error[0] = 0;
  if (!strncmp(body, error_mark, sizeof error_mark - 1))
    take_line(body + sizeof error_mark - 1, t->error, sizeof t->error);
  size_t rest = len - (size_t)(body - head);
  if (!types) {
    t->type[0] = 0;
    with_type(t, body, rest);
    return;
  }
  for (char *w = strtok_r(types + 3, ",", &at); w;
       w = strtok_r(NULL, ",", &at)) {
    snprintf(t->type, sizeof t->type, "%s", w);
    with_type(t, body, rest);
  }
}

static void run_file(tally *t, const char *path) {
  static const char mark[] = "// case ";
  char *text;
  size_t len;
  lw_status st = lw_file_read(path, &text, &len);
  t->file = path;
  t->name[0] = t->type[0] = 0;
  if (st) {
    fail(t, lw_status_message(st));
    lw_status_free(st);
    return;
  }
  int before = t->cases;
  for (char *p = strstr(text, mark), *next; p; p = next) {
    p += sizeof mark - 1;
    next = strstr(p, mark);
    run_case(t, p, next ? (size_t)(next - p) : strlen(p));
  }
  if (t->cases == before) fail(t, "has no cases");
  free(text);
}

/* ---- the folder ---- */

static void run_all(tally *t, int shard, int shards) {
  for (int op = 0; op < LW_OPCODE_COUNT; op++) {
    char path[512];
    if (op % shards != shard) continue;
    snprintf(path, sizeof path, "%s/%s.hlo", LW_TEST_OPS,
             lw_opcode_name((lw_opcode)op));
    run_file(t, path);
  }
}

/* A file that is no opcode's would never run. */
static void check_names(tally *t) {
  DIR *d = opendir(LW_TEST_OPS);
  for (struct dirent *f; d && (f = readdir(d));) {
    bool known = f->d_name[0] == '.';
    for (int op = 0; op < LW_OPCODE_COUNT && !known; op++) {
      const char *name = lw_opcode_name((lw_opcode)op);
      size_t n = strlen(name);
      known = !strncmp(f->d_name, name, n) && !strcmp(f->d_name + n, ".hlo");
    }
    t->file = f->d_name;
    if (!known) fail(t, "is named after no opcode");
  }
  if (d) closedir(d);
}

int main(int argc, char **argv) {
  tally t = {0};
  int shard = 0, shards = 1, files = 0;
  for (int k = 1; k < argc; k++) {
    if (sscanf(argv[k], "--shard=%d/%d", &shard, &shards) == 2) continue;
    files++;
    run_file(&t, argv[k]);
  }
  if (shards < 1) shards = 1;
  if (!files) run_all(&t, shard, shards);
  if (!files && shard == 0) check_names(&t);
  printf("%d cases, %d failures\n", t.cases, t.failures);
  return t.failures || !t.cases ? 1 : 0;
}
