/* What the laboratory's commands share. */
#ifndef LW_CLI_LAB_H
#define LW_CLI_LAB_H

#include "common.h"
#include "lab/subject_jobs.h"
#include "passes/pass.h"

/* The subject that the command line describes, but for --disable. Its lists
 * are the arena's. */
lw_subject cli_subject(const cli_args *a, lw_arena *arena);
/* The same from --a='OPTIONS' (text NULL: none), on top of the command's own
 * --compiler and --target. CLI_YES, or the exit code after a message. */
int cli_side(const cli_args *a, char letter, const char *text, lw_arena *arena,
             lw_subject *s);
/* Exit codes of a subject's status: NOT_FOUND is wrong usage. Frees it. */
int cli_fail_subject(lw_status st);

/* cmd_info.c: Lawson's passes. */
int cli_pass_count(void);
const lw_pass *cli_pass_at(int k);
void cli_print_pass(const lw_pass *p);

#endif
