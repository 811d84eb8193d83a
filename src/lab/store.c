/* The results store on SQLite (store.h).
 *
 * The journal is a write-ahead log with full synchronisation: what a
 * transaction wrote is there after a kill -9 or a power cut, and readers never
 * wait for writers. Writers begin IMMEDIATE, so that two of them queue up (the
 * busy timeout) instead of failing halfway. Triggers refuse to change or to
 * delete samples, blocks, processes and looks; a run's row changes in status,
 * summary and stage only.
 */
#include "lab/store.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/file.h"

enum { APPLICATION = 0x4c77526e, BUSY_MS = 30000 };

struct lw_store {
  sqlite3 *db;
  char *path;
};

/* Step k brings a database from version k to k + 1. */
static const char *const migrations[] = {
    "CREATE TABLE run ("
    " id INTEGER PRIMARY KEY, uid TEXT NOT NULL UNIQUE,"
    " kind TEXT NOT NULL, created TEXT NOT NULL, status TEXT NOT NULL,"
    " title TEXT NOT NULL, config TEXT NOT NULL, provenance TEXT NOT NULL,"
    " summary TEXT);"
    "CREATE TABLE process ("
    " run INTEGER NOT NULL REFERENCES run(id), round INTEGER NOT NULL,"
    " side TEXT NOT NULL, position INTEGER NOT NULL, load_ms REAL,"
    " compile_ms REAL, first_ms REAL, steady_ms REAL, info TEXT,"
    " PRIMARY KEY (run, round, side)) WITHOUT ROWID;"
    "CREATE TABLE block ("
    " id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run(id),"
    " round INTEGER NOT NULL, number INTEGER NOT NULL,"
    " started TEXT NOT NULL, load REAL, UNIQUE (run, round, number));"
    "CREATE TABLE sample ("
    " block INTEGER NOT NULL REFERENCES block(id), slot INTEGER NOT NULL,"
    " side TEXT NOT NULL, median_ns REAL NOT NULL, min_ns REAL NOT NULL,"
    " max_ns REAL NOT NULL, runs INTEGER NOT NULL,"
    " PRIMARY KEY (block, slot)) WITHOUT ROWID;"
    "CREATE TABLE look ("
    " run INTEGER NOT NULL REFERENCES run(id), rounds INTEGER NOT NULL,"
    " alpha REAL NOT NULL, center REAL NOT NULL, low REAL NOT NULL,"
    " high REAL NOT NULL, verdict TEXT NOT NULL,"
    " PRIMARY KEY (run, rounds)) WITHOUT ROWID;",
    /* Version 2: what was measured stays as it is. */
    "CREATE TRIGGER run_kept BEFORE DELETE ON run BEGIN"
    " SELECT RAISE(ABORT, 'results are never deleted'); END;"
    "CREATE TRIGGER run_fixed BEFORE UPDATE OF id, uid, kind, created, title,"
    " config, provenance ON run BEGIN"
    " SELECT RAISE(ABORT, 'results are never overwritten'); END;"
    "CREATE TRIGGER process_kept BEFORE DELETE ON process BEGIN"
    " SELECT RAISE(ABORT, 'results are never deleted'); END;"
    "CREATE TRIGGER process_fixed BEFORE UPDATE ON process BEGIN"
    " SELECT RAISE(ABORT, 'results are never overwritten'); END;"
    "CREATE TRIGGER block_kept BEFORE DELETE ON block BEGIN"
    " SELECT RAISE(ABORT, 'results are never deleted'); END;"
    "CREATE TRIGGER block_fixed BEFORE UPDATE ON block BEGIN"
    " SELECT RAISE(ABORT, 'results are never overwritten'); END;"
    "CREATE TRIGGER sample_kept BEFORE DELETE ON sample BEGIN"
    " SELECT RAISE(ABORT, 'results are never deleted'); END;"
    "CREATE TRIGGER sample_fixed BEFORE UPDATE ON sample BEGIN"
    " SELECT RAISE(ABORT, 'results are never overwritten'); END;"
    "CREATE TRIGGER look_kept BEFORE DELETE ON look BEGIN"
    " SELECT RAISE(ABORT, 'results are never deleted'); END;"
    "CREATE TRIGGER look_fixed BEFORE UPDATE ON look BEGIN"
    " SELECT RAISE(ABORT, 'results are never overwritten'); END;",
};
enum { VERSION = sizeof migrations / sizeof *migrations };

/* ---- errors ---- */

static lw_code code_of(int rc) {
  switch (rc & 0xff) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return LW_INVALID_ARGUMENT;
    case SQLITE_CONSTRAINT:
      return LW_ALREADY_EXISTS;
    case SQLITE_FULL:
      return LW_RESOURCE_EXHAUSTED;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return LW_PERMISSION_DENIED;
    default:
      return LW_ABORTED;
  }
}

static lw_status failure(lw_store *s, int rc) {
  return lw_error(code_of(rc), "%s: %s", s->path,
                  s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc));
}

static lw_status execute(lw_store *s, const char *sql) {
  int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
  return rc == SQLITE_OK ? NULL : failure(s, rc);
}

static lw_status prepare(lw_store *s, const char *sql, sqlite3_stmt **out) {
  int rc = sqlite3_prepare_v2(s->db, sql, -1, out, NULL);
  return rc == SQLITE_OK ? NULL : failure(s, rc);
}

/* Runs a statement that gives no rows, and drops it. */
static lw_status finish_statement(lw_store *s, sqlite3_stmt *q) {
  int rc = sqlite3_step(q);
  lw_status st = rc == SQLITE_DONE ? NULL : failure(s, rc);
  sqlite3_finalize(q);
  return st;
}

static lw_status end(lw_store *s, lw_status st) {
  if (!st) st = execute(s, "COMMIT");
  if (st) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
  return st;
}

static void bind_text(sqlite3_stmt *q, int at, const char *text) {
  sqlite3_bind_text(q, at, text, -1, SQLITE_TRANSIENT);
}

static void bind_side(sqlite3_stmt *q, int at, char side) {
  sqlite3_bind_text(q, at, &side, 1, SQLITE_TRANSIENT);
}

/* NaN stands for what was not measured. */
static void bind_real(sqlite3_stmt *q, int at, double v) {
  if (isnan(v)) {
    sqlite3_bind_null(q, at);
  } else {
    sqlite3_bind_double(q, at, v);
  }
}

/* ---- opening ---- */

lw_status lw_store_path(const char *db, lw_buf *out) {
  const char *env = getenv("LAWSON_DB"), *data = getenv("XDG_DATA_HOME");
  const char *home = getenv("HOME");
  if (db && *db) {
    lw_buf_str(out, db);
  } else if (env && *env) {
    lw_buf_str(out, env);
  } else if (data && *data == '/') { /* relative ones are to be ignored */
    lw_buf_printf(out, "%s/lawson/results.db", data);
  } else if (home && *home) {
    lw_buf_printf(out, "%s/.local/share/lawson/results.db", home);
  } else {
    return lw_error(LW_INVALID_ARGUMENT,
                    "no HOME to keep results in: give --db=FILE");
  }
  return NULL;
}

static lw_status pragma(lw_store *s, const char *sql, int64_t *out) {
  sqlite3_stmt *q;
  LW_TRY(prepare(s, sql, &q));
  int rc = sqlite3_step(q);
  if (rc == SQLITE_ROW) *out = sqlite3_column_int64(q, 0);
  lw_status st = rc == SQLITE_ROW ? NULL : failure(s, rc);
  sqlite3_finalize(q);
  return st;
}

static lw_status check_owner(lw_store *s, int64_t version) {
  int64_t owner = 0, tables = 0;
  LW_TRY(pragma(s, "PRAGMA application_id", &owner));
  LW_TRY(pragma(s, "SELECT count(*) FROM sqlite_master", &tables));
  if (version > VERSION)
    return lw_error(LW_FAILED_PRECONDITION,
                    "%s: made by a newer Lawson (schema %lld, this one knows "
                    "%d)",
                    s->path, (long long)version, VERSION);
  if (tables && owner != APPLICATION)
    return lw_error(LW_INVALID_ARGUMENT,
                    "%s: a database, but not one of Lawson's results", s->path);
  return NULL;
}

static lw_status migrate_steps(lw_store *s) {
  int64_t version = 0;
  LW_TRY(pragma(s, "PRAGMA user_version", &version));
  LW_TRY(check_owner(s, version));
  char sql[96];
  for (; version < VERSION; version++) LW_TRY(execute(s, migrations[version]));
  snprintf(sql, sizeof sql, "PRAGMA application_id=%d; PRAGMA user_version=%d",
           APPLICATION, VERSION);
  return execute(s, sql);
}

static lw_status migrate(lw_store *s) {
  int64_t version = 0;
  LW_TRY(pragma(s, "PRAGMA user_version", &version));
  LW_TRY(check_owner(s, version));
  if (version == VERSION) return NULL;
  LW_TRY(execute(s, "BEGIN IMMEDIATE"));
  return end(s, migrate_steps(s));
}

/* Entering the log mode needs the file alone, and no timeout covers that. */
static lw_status use_log(lw_store *s) {
  for (int k = 0;; k++) {
    int rc = sqlite3_exec(s->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL);
    if (rc == SQLITE_OK) return NULL;
    if ((rc & 0xff) != SQLITE_BUSY || k == BUSY_MS / 10) return failure(s, rc);
    nanosleep(&(struct timespec){0, 10000000}, NULL);
  }
}

static lw_status make_folder(const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash || slash == path) return NULL;
  lw_buf folder = {0};
  lw_buf_add(&folder, path, (size_t)(slash - path));
  lw_status st = lw_dir_make(lw_buf_cstr(&folder));
  lw_buf_free(&folder);
  return st;
}

lw_status lw_store_open(const char *path, lw_store **out) {
  *out = NULL;
  LW_TRY(make_folder(path));
  lw_store *s = calloc(1, sizeof *s);
  if (!s) lw_oom(sizeof *s);
  s->path = strdup(path);
  if (!s->path) lw_oom(strlen(path));
  int rc = sqlite3_open_v2(path, &s->db,
                           SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
  lw_status st = rc == SQLITE_OK ? NULL : failure(s, rc);
  if (!st) {
    sqlite3_busy_timeout(s->db, BUSY_MS);
    st = migrate(s);
  }
  if (!st) st = use_log(s);
  if (!st) st = execute(s, "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON");
  if (st) {
    lw_store_close(s);
  } else {
    *out = s;
  }
  return st;
}

void lw_store_close(lw_store *s) {
  if (!s) return;
  sqlite3_close(s->db);
  free(s->path);
  free(s);
}

/* ---- writing ---- */

static void make_uid(char out[LW_UID_LEN + 1]) {
  unsigned char raw[LW_UID_LEN / 2];
  if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    memcpy(raw, &t.tv_nsec, sizeof raw);
  }
  for (size_t k = 0; k < sizeof raw; k++) sprintf(out + 2 * k, "%02x", raw[k]);
}

lw_status lw_store_add_run(lw_store *s, const lw_run *r, int64_t *id) {
  char uid[LW_UID_LEN + 1];
  make_uid(uid);
  sqlite3_stmt *q;
  LW_TRY(prepare(s,
                 "INSERT INTO run(uid, kind, created, status, title, config,"
                 " provenance, summary) VALUES(?,?,?,?,?,?,?,?)",
                 &q));
  bind_text(q, 1, r->uid ? r->uid : uid);
  bind_text(q, 2, r->kind);
  bind_text(q, 3, r->created);
  bind_text(q, 4, r->status);
  bind_text(q, 5, r->title);
  bind_text(q, 6, r->config);
  bind_text(q, 7, r->provenance);
  bind_text(q, 8, r->summary);
  LW_TRY(finish_statement(s, q));
  *id = sqlite3_last_insert_rowid(s->db);
  return NULL;
}

lw_status lw_store_add_process(lw_store *s, int64_t run,
                               const lw_run_process *p) {
  sqlite3_stmt *q;
  LW_TRY(prepare(s, "INSERT INTO process VALUES(?,?,?,?,?,?,?,?,?)", &q));
  sqlite3_bind_int64(q, 1, run);
  sqlite3_bind_int(q, 2, p->round);
  bind_side(q, 3, p->side);
  sqlite3_bind_int(q, 4, p->position);
  bind_real(q, 5, p->load_ms);
  bind_real(q, 6, p->compile_ms);
  bind_real(q, 7, p->first_ms);
  bind_real(q, 8, p->steady_ms);
  bind_text(q, 9, p->info);
  return finish_statement(s, q);
}

static lw_status insert_sample(lw_store *s, int64_t block, const lw_sample *x) {
  sqlite3_stmt *q;
  LW_TRY(prepare(s, "INSERT INTO sample VALUES(?,?,?,?,?,?,?)", &q));
  sqlite3_bind_int64(q, 1, block);
  sqlite3_bind_int(q, 2, x->slot);
  bind_side(q, 3, x->side);
  sqlite3_bind_double(q, 4, x->median_ns);
  sqlite3_bind_double(q, 5, x->min_ns);
  sqlite3_bind_double(q, 6, x->max_ns);
  sqlite3_bind_int64(q, 7, x->runs);
  return finish_statement(s, q);
}

static lw_status insert_block(lw_store *s, int64_t run, const lw_block *b) {
  sqlite3_stmt *q;
  LW_TRY(prepare(s,
                 "INSERT INTO block(run, round, number, started, load)"
                 " VALUES(?,?,?,?,?)",
                 &q));
  sqlite3_bind_int64(q, 1, run);
  sqlite3_bind_int(q, 2, b->round);
  sqlite3_bind_int(q, 3, b->number);
  bind_text(q, 4, b->started);
  bind_real(q, 5, b->load);
  LW_TRY(finish_statement(s, q));
  int64_t id = sqlite3_last_insert_rowid(s->db);
  for (int32_t k = 0; k < b->n; k++)
    LW_TRY(insert_sample(s, id, &b->samples[k]));
  return NULL;
}

lw_status lw_store_add_block(lw_store *s, int64_t run, const lw_block *b) {
  LW_TRY(execute(s, "BEGIN IMMEDIATE"));
  return end(s, insert_block(s, run, b));
}

lw_status lw_store_add_look(lw_store *s, int64_t run, const lw_look_record *l) {
  sqlite3_stmt *q;
  LW_TRY(prepare(s, "INSERT INTO look VALUES(?,?,?,?,?,?,?)", &q));
  sqlite3_bind_int64(q, 1, run);
  sqlite3_bind_int(q, 2, l->rounds);
  sqlite3_bind_double(q, 3, l->alpha);
  sqlite3_bind_double(q, 4, l->center);
  sqlite3_bind_double(q, 5, l->low);
  sqlite3_bind_double(q, 6, l->high);
  bind_text(q, 7, l->verdict);
  return finish_statement(s, q);
}

lw_status lw_store_finish(lw_store *s, int64_t run, const char *status,
                          const char *summary) {
  sqlite3_stmt *q;
  LW_TRY(prepare(s, "UPDATE run SET status=?, summary=? WHERE id=?", &q));
  bind_text(q, 1, status);
  bind_text(q, 2, summary);
  sqlite3_bind_int64(q, 3, run);
  return finish_statement(s, q);
}

static lw_status insert_all(lw_store *s, const lw_run_data *d, int64_t *id) {
  LW_TRY(lw_store_add_run(s, &d->run, id));
  for (size_t k = 0; k < d->processes.len; k++)
    LW_TRY(lw_store_add_process(s, *id, &d->processes.data[k]));
  for (size_t k = 0; k < d->blocks.len; k++)
    LW_TRY(insert_block(s, *id, &d->blocks.data[k]));
  for (size_t k = 0; k < d->looks.len; k++)
    LW_TRY(lw_store_add_look(s, *id, &d->looks.data[k]));
  return NULL;
}

lw_status lw_store_add_all(lw_store *s, const lw_run_data *d, int64_t *id) {
  LW_TRY(execute(s, "BEGIN IMMEDIATE"));
  return end(s, insert_all(s, d, id));
}

/* ---- reading ---- */

static const char *text_at(sqlite3_stmt *q, int at, lw_arena *a) {
  const char *t = (const char *)sqlite3_column_text(q, at);
  return t ? lw_arena_strdup(a, t, (size_t)sqlite3_column_bytes(q, at)) : NULL;
}

static double real_at(sqlite3_stmt *q, int at) {
  return sqlite3_column_type(q, at) == SQLITE_NULL
             ? NAN
             : sqlite3_column_double(q, at);
}

static char side_at(sqlite3_stmt *q, int at) {
  const char *t = (const char *)sqlite3_column_text(q, at);
  return t ? t[0] : '?';
}

static lw_run run_at(sqlite3_stmt *q, lw_arena *a) {
  lw_run r = {.id = sqlite3_column_int64(q, 0)};
  r.uid = text_at(q, 1, a);
  r.kind = text_at(q, 2, a);
  r.created = text_at(q, 3, a);
  r.status = text_at(q, 4, a);
  r.title = text_at(q, 5, a);
  r.config = text_at(q, 6, a);
  r.provenance = text_at(q, 7, a);
  r.summary = text_at(q, 8, a);
  return r;
}

#define RUN_COLUMNS \
  "id, uid, kind, created, status, title, config, provenance, summary"

/* Steps q to its end; each row goes to take. */
static lw_status each_row(lw_store *s, sqlite3_stmt *q, lw_arena *a,
                          void (*take)(sqlite3_stmt *q, lw_arena *a, void *to),
                          void *to) {
  int rc;
  while ((rc = sqlite3_step(q)) == SQLITE_ROW) take(q, a, to);
  lw_status st = rc == SQLITE_DONE ? NULL : failure(s, rc);
  sqlite3_finalize(q);
  return st;
}

static void take_run(sqlite3_stmt *q, lw_arena *a, void *to) {
  lw_vec_push((lw_runs *)to, run_at(q, a));
}

lw_status lw_store_list(lw_store *s, lw_arena *a, lw_runs *out) {
  sqlite3_stmt *q;
  LW_TRY(prepare(s, "SELECT " RUN_COLUMNS " FROM run ORDER BY id", &q));
  return each_row(s, q, a, take_run, out);
}

lw_status lw_store_find(lw_store *s, const char *name, int64_t *id) {
  sqlite3_stmt *q;
  bool number = strlen(name) < 10 && !name[strspn(name, "0123456789")];
  LW_TRY(prepare(s,
                 number
                     ? "SELECT id FROM run WHERE id=?"
                     : "SELECT id FROM run WHERE substr(uid,1,length(?1))=?1",
                 &q));
  bind_text(q, 1, name);
  int32_t found = 0;
  int rc;
  while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
    found++;
    *id = sqlite3_column_int64(q, 0);
  }
  lw_status st = rc == SQLITE_DONE ? NULL : failure(s, rc);
  sqlite3_finalize(q);
  if (!st && found != 1)
    st = lw_error(LW_NOT_FOUND, "%s: %s run '%s' (lawson results list)",
                  s->path, found ? "several runs for" : "no", name);
  return st;
}

static void take_process(sqlite3_stmt *q, lw_arena *a, void *to) {
  lw_run_process p = {.round = sqlite3_column_int(q, 0),
                      .side = side_at(q, 1),
                      .position = sqlite3_column_int(q, 2),
                      .load_ms = real_at(q, 3),
                      .compile_ms = real_at(q, 4),
                      .first_ms = real_at(q, 5),
                      .steady_ms = real_at(q, 6),
                      .info = text_at(q, 7, a)};
  lw_vec_push(&((lw_run_data *)to)->processes, p);
}

enum { MOST_SLOTS = 4096 };

/* One row a sample, in order: a new block starts where the id changes. */
typedef struct {
  lw_run_data *d;
  int64_t id;
  size_t cap;
} block_reader;

static void take_sample(sqlite3_stmt *q, lw_arena *a, void *to) {
  block_reader *r = to;
  int64_t id = sqlite3_column_int64(q, 0);
  if (id != r->id) {
    lw_block b = {.round = sqlite3_column_int(q, 1),
                  .number = sqlite3_column_int(q, 2),
                  .started = text_at(q, 3, a),
                  .load = real_at(q, 4)};
    int64_t n = sqlite3_column_int64(q, 5);
    r->cap = (size_t)(n < 0 ? 0 : n > MOST_SLOTS ? MOST_SLOTS : n);
    b.samples = LW_NEW_ARRAY(a, lw_sample, r->cap + 1);
    lw_vec_push(&r->d->blocks, b);
    r->id = id;
  }
  lw_block *b = &r->d->blocks.data[r->d->blocks.len - 1];
  if ((size_t)b->n == r->cap || sqlite3_column_type(q, 6) == SQLITE_NULL)
    return;
  b->samples[b->n++] = (lw_sample){.slot = sqlite3_column_int(q, 6),
                                   .side = side_at(q, 7),
                                   .median_ns = sqlite3_column_double(q, 8),
                                   .min_ns = sqlite3_column_double(q, 9),
                                   .max_ns = sqlite3_column_double(q, 10),
                                   .runs = sqlite3_column_int64(q, 11)};
}

static void take_look(sqlite3_stmt *q, lw_arena *a, void *to) {
  lw_look_record l = {.rounds = sqlite3_column_int(q, 0),
                      .alpha = sqlite3_column_double(q, 1),
                      .center = sqlite3_column_double(q, 2),
                      .low = sqlite3_column_double(q, 3),
                      .high = sqlite3_column_double(q, 4),
                      .verdict = text_at(q, 5, a)};
  lw_vec_push(&((lw_run_data *)to)->looks, l);
}

static lw_status read_rows(lw_store *s, const char *sql, int64_t id,
                           lw_arena *a,
                           void (*take)(sqlite3_stmt *q, lw_arena *a, void *to),
                           void *to) {
  sqlite3_stmt *q;
  LW_TRY(prepare(s, sql, &q));
  sqlite3_bind_int64(q, 1, id);
  return each_row(s, q, a, take, to);
}

static lw_status load_rows(lw_store *s, int64_t id, lw_arena *a,
                           lw_run_data *out) {
  lw_runs runs = {0};
  lw_status st = read_rows(s, "SELECT " RUN_COLUMNS " FROM run WHERE id=?", id,
                           a, take_run, &runs);
  if (!st && !runs.len) st = lw_error(LW_NOT_FOUND, "no such run");
  if (!st) out->run = runs.data[0];
  lw_vec_free(&runs);
  if (st) return st;
  LW_TRY(read_rows(s,
                   "SELECT round, side, position, load_ms, compile_ms,"
                   " first_ms, steady_ms, info FROM process WHERE run=?"
                   " ORDER BY round, position",
                   id, a, take_process, out));
  block_reader r = {.d = out, .id = -1};
  LW_TRY(read_rows(s,
                   "SELECT b.id, b.round, b.number, b.started, b.load,"
                   " (SELECT count(*) FROM sample WHERE block=b.id), s.slot,"
                   " s.side, s.median_ns, s.min_ns, s.max_ns, s.runs"
                   " FROM block b LEFT JOIN sample s ON s.block=b.id"
                   " WHERE b.run=? ORDER BY b.round, b.number, s.slot",
                   id, a, take_sample, &r));
  return read_rows(s,
                   "SELECT rounds, alpha, center, low, high, verdict"
                   " FROM look WHERE run=? ORDER BY rounds",
                   id, a, take_look, out);
}

/* All of it as of one moment, whoever writes meanwhile. */
lw_status lw_store_load(lw_store *s, int64_t id, lw_arena *a,
                        lw_run_data *out) {
  *out = (lw_run_data){0};
  LW_TRY(execute(s, "BEGIN"));
  lw_status st = end(s, load_rows(s, id, a, out));
  if (st) lw_run_data_free(out);
  return st;
}

void lw_run_data_free(lw_run_data *d) {
  lw_vec_free(&d->processes);
  lw_vec_free(&d->blocks);
  lw_vec_free(&d->looks);
}

/* ---- the moment ---- */

void lw_now_text(char out[32]) {
  time_t now = time(NULL);
  struct tm t;
  gmtime_r(&now, &t);
  strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &t);
}

double lw_load_now(void) {
  double load[1];
  return getloadavg(load, 1) == 1 ? load[0] : NAN;
}
