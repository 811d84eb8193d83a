/* What lawson xray and lawson gym share. */
#ifndef LW_CLI_XRAY_H
#define LW_CLI_XRAY_H

#include "common.h"
#include "lab/xray.h"

/* An x-ray with the modules that it speaks of. */
typedef struct {
  cli_input a, b;
  lw_xray *xray;
} cli_xray;

/* By --compiler and --target; module NULL: of --before and --after. An exit
 * code after a message; free it in any case. */
int cli_xray_of(const cli_args *a, const char *module, cli_xray *x);
void cli_xray_free(cli_xray *x);
/* The page (or SVG) into a file. */
int cli_xray_write(const lw_xray *x, bool svg, const char *path);
/* The built-in page of a reason code, or NULL. */
const char *cli_reason_page(const char *code);

/* An index.html of pages; zero-initialise, free rows. */
typedef struct {
  lw_buf rows;
} cli_index;
/* text: a line below the link; NULL: none. */
void cli_index_add(cli_index *i, const char *page, const char *text,
                   lw_xray_head h);
/* html: more below the table, or NULL. */
int cli_index_write(const cli_index *i, const char *title, const char *html,
                    const char *dir);

#endif
