/* The results store: an SQLite database of runs, their raw samples and where
 * they come from. docs/results-schema.md describes the tables.
 *
 * A finished block is one transaction and is never changed again. Several
 * processes may write at once.
 */
#ifndef LW_LAB_STORE_H
#define LW_LAB_STORE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"

typedef struct lw_store lw_store;

/* db, else LAWSON_DB, else lawson/results.db in XDG_DATA_HOME (or
 * ~/.local/share). */
LW_MUST_USE lw_status lw_store_path(const char *db, lw_buf *out);
/* Makes the file, its folder and its tables as needed. FAILED_PRECONDITION: a
 * newer Lawson's database; INVALID_ARGUMENT: not a database of ours. */
LW_MUST_USE lw_status lw_store_open(const char *path, lw_store **out);
void lw_store_close(lw_store *s);

enum { LW_UID_LEN = 16 };

/* Texts are JSON where the schema says so; NULL where there are none yet. */
typedef struct {
  int64_t id;
  const char *uid;     /* the same in every database it is copied to */
  const char *kind;    /* "compare", "same", "samples" */
  const char *created; /* UTC, 2026-12-01T02:03:04Z */
  const char *status;  /* "running", "decided", "undecided", "done" */
  const char *title;
  const char *config, *provenance, *summary; /* JSON */
} lw_run;

typedef struct {
  int32_t round; /* from 1 */
  char side;     /* a, b; c: the control, a's program once more */
  int32_t position;
  double load_ms, compile_ms, first_ms, steady_ms;
  const char *info; /* JSON: what the worker said of itself */
} lw_run_process;

typedef struct {
  int32_t slot; /* from 0, in order of time */
  char side;
  double median_ns, min_ns, max_ns;
  int64_t runs;
} lw_sample;

typedef struct {
  int32_t round, number; /* both from 1 */
  const char *started;
  double load; /* the machine's, one minute */
  int32_t n;
  lw_sample *samples;
} lw_block;

/* An interval as it stood after so many rounds. */
typedef struct {
  int32_t rounds;
  double alpha, center, low, high; /* logs */
  const char *verdict;
} lw_look_record;

typedef struct {
  lw_run run;
  LW_VEC(lw_run_process) processes;
  LW_VEC(lw_block) blocks;
  LW_VEC(lw_look_record) looks;
} lw_run_data;

/* Adds a run (uid is made when it is NULL); sets *id. ALREADY_EXISTS: that
 * uid. */
LW_MUST_USE lw_status lw_store_add_run(lw_store *s, const lw_run *r,
                                       int64_t *id);
LW_MUST_USE lw_status lw_store_add_process(lw_store *s, int64_t run,
                                           const lw_run_process *p);
/* ALREADY_EXISTS: somebody else continues this run. */
LW_MUST_USE lw_status lw_store_add_block(lw_store *s, int64_t run,
                                         const lw_block *b);
LW_MUST_USE lw_status lw_store_add_look(lw_store *s, int64_t run,
                                        const lw_look_record *l);
LW_MUST_USE lw_status lw_store_finish(lw_store *s, int64_t run,
                                      const char *status, const char *summary);
/* A whole run as one transaction. */
LW_MUST_USE lw_status lw_store_add_all(lw_store *s, const lw_run_data *d,
                                       int64_t *id);

typedef LW_VEC(lw_run) lw_runs;
/* Oldest first, texts in the arena. */
LW_MUST_USE lw_status lw_store_list(lw_store *s, lw_arena *a, lw_runs *out);
/* name: an id, or the start of one uid. NOT_FOUND says so. */
LW_MUST_USE lw_status lw_store_find(lw_store *s, const char *name, int64_t *id);
LW_MUST_USE lw_status lw_store_load(lw_store *s, int64_t id, lw_arena *a,
                                    lw_run_data *out);
void lw_run_data_free(lw_run_data *d);

/* Now, in UTC, and the one-minute load average. */
void lw_now_text(char out[32]);
double lw_load_now(void);

#endif
