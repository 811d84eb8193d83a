/* The pages of docs/passes and docs/reasons, built in. */
#ifndef LW_CLI_PAGES_H
#define LW_CLI_PAGES_H

typedef struct {
  const char *kind, *name, *text; /* "passes", "dce", the page */
} cli_page;
extern const cli_page cli_pages[]; /* ends with a NULL name */

#endif
