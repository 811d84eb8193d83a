/* Options that judge, bench and results share. */
#ifndef LW_CLI_JUDGE_OPTIONS_H
#define LW_CLI_JUDGE_OPTIONS_H

#include "common.h"
#include "lab/stats.h"

/* A share, as 0.03 or 3%. */
int cli_fraction(const cli_args *a, cli_option_id id, double dflt, double most,
                 double *out);
/* --fail-if; CLI_YES, or CLI_USAGE after a message. */
int cli_check_fail_if(const cli_args *a);
/* CLI_NO when --fail-if names this verdict. */
int cli_verdict_code(const cli_args *a, lw_verdict v);

#endif
