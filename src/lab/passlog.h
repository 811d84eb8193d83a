/* What ran in a compile, by the compiler's own log (passes.tsv of a subject),
 * and which names a compiler knows at all. */
#ifndef LW_LAB_PASSLOG_H
#define LW_LAB_PASSLOG_H

#include "base/arena.h"
#include "base/vec.h"
#include "lab/subject.h"

typedef struct {
  int64_t order;
  int32_t depth; /* pipelines around it */
  bool pipeline;
  bool changed; /* by its own claim */
  double ms;    /* < 0: not known */
  const char *name;
} lw_pass_row;

typedef struct {
  lw_arena *arena;
  LW_VEC(lw_pass_row) rows; /* in the order that they started */
} lw_pass_log;

/* FOLDER/passes.tsv. log is the caller's to free, also after an error. */
LW_MUST_USE lw_status lw_pass_log_read(const char *folder, lw_pass_log *log);
void lw_pass_log_free(lw_pass_log *log);

/* XLA writes "Main fusion" in its log and Main_fusion in file names: equal
 * names but for case, and for blanks, - and _ being one. */
bool lw_pass_name_is(const char *name, const char *wanted);
/* The same for a part of it. "" is part of all. */
bool lw_pass_name_has(const char *name, const char *part);
/* The first row of that name, letter by letter first; NULL without one. */
const lw_pass_row *lw_pass_log_find(const lw_pass_log *log, const char *name);

/* All names that this compiler is seen to know: Lawson's registry; the passes
 * that XLA runs for programs of many kinds, compiled for the purpose. They live
 * in the arena. */
typedef LW_VEC(const char *) lw_name_list;
LW_MUST_USE lw_status lw_pass_names_known(const lw_subject *s, lw_arena *a,
                                          lw_name_list *names);

/* The program that stands for all when none is named: attention. Its text. */
extern const char lw_pass_probe_attention[];

#endif
