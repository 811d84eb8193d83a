/* What commands share: messages, loading, options, output. */
#ifndef LW_CLI_COMMON_H
#define LW_CLI_COMMON_H

#include <cjson/cJSON.h>

#include "driver/driver.h"
#include "table.h"

/* ---- messages, on standard error ---- */
void cli_color_mode(const char *mode); /* auto, always, never or NULL */
/* "lawson: error: ..." */
void cli_error(const char *fmt, ...) LW_PRINTF(1, 2);
void cli_note(const char *fmt, ...) LW_PRINTF(1, 2);
/* Escape codes, or "" without colour. stream 1 or 2. */
const char *cli_red(int stream), *cli_green(int stream), *cli_bold(int stream),
    *cli_plain(int stream);
/* One line that the next one replaces; on a terminal only. "" clears it. */
void cli_progress(const char *fmt, ...) LW_PRINTF(1, 2);
/* Prints and frees the status; returns the exit code its code stands for. */
int cli_fail(lw_status st);
/* The same for a status of the compile road. */
int cli_fail_compile(const cli_args *a, lw_status st);

/* ---- input ---- */
typedef struct {
  lw_context *ctx;
  lw_arena *arena; /* the command's own */
  lw_module *module;
} cli_input;

/* Loads positional k (and checks it when check). CLI_YES, or the exit code
 * after a message. */
int cli_load(const cli_args *a, int k, bool check, cli_input *in);
void cli_close(cli_input *in);
/* --compiler and --target; CLI_YES or an exit code after a message. */
int cli_check_compiler(const cli_args *a);
/* --inputs or random ones; what was random is said on standard error and, when
 * report is given, listed there. */
int cli_inputs(const cli_args *a, cli_input *in, lw_literal ***args, int32_t *n,
               cJSON *report);
/* A whole number option. */
int cli_number(const cli_args *a, cli_option_id id, int64_t low, int64_t high,
               int64_t dflt, int64_t *out);
lw_compile_options cli_compile_options(const cli_args *a);
/* The least precise float type of the module; LW_PRIM_INVALID: it has none. */
lw_prim cli_narrowest_float(const lw_module *m);

/* ---- output ---- */
void cli_out(const char *text);
/* To -o FILE, else standard output. */
int cli_product(const cli_args *a, const void *data, size_t len);
/* {"schema": "lawson.<command>/1"}, or NULL without --json. */
cJSON *cli_json(const cli_args *a);
/* Prints and frees it. */
void cli_json_print(cJSON *j);

#endif
