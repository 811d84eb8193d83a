/* The one table of commands and options, and the parser of command lines. */
#ifndef LW_CLI_TABLE_H
#define LW_CLI_TABLE_H

#include "base/buf.h"

typedef enum {
#define O(e, name, letter, value, help) OPT_##e,
#include "options.def"
#undef O
  OPT_COUNT
} cli_option_id;

typedef struct {
  const char *name;
  char letter;
  const char *value, *help;
} cli_option;
extern const cli_option cli_options[OPT_COUNT];

typedef struct cli_args cli_args;

typedef struct {
  const char *name, *arguments;
  int min, max; /* positional arguments */
  const char *summary;
  const int *options; /* ends with -1 */
  int (*run)(const cli_args *a);
} cli_command;
extern const cli_command *const cli_commands[]; /* ends with NULL */

struct cli_args {
  const cli_command *command;
  /* NULL: not given; flags: ""; what repeats: joined by ; in its buffer. */
  const char *value[OPT_COUNT];
  char joined[2][4096];
  const char *positional[64];
  int n_positional;
};

enum {
  CLI_YES = 0,
  CLI_BAD_INPUT = 1,
  CLI_USAGE = 2,
  CLI_NO = 3,
  CLI_MISSING = 4,
  CLI_INTERNAL = 70
};

const cli_command *cli_find(const char *name);
/* argv past the command's name. On error the message is in *error. */
bool cli_parse(const cli_command *c, int argc, char **argv, cli_args *out,
               lw_buf *error);
void cli_print_usage(lw_buf *b);
void cli_print_command(lw_buf *b, const cli_command *c);

#endif
