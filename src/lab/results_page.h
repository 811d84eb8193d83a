/* Results as static pages: index.html and a page a run, each complete in
 * itself (no script, nothing from elsewhere). Every number links to the samples
 * it was made from, and those to where they come from. */
#ifndef LW_LAB_RESULTS_PAGE_H
#define LW_LAB_RESULTS_PAGE_H

#include "lab/bench.h"

typedef struct lw_results_page lw_results_page;

/* Makes the folder. */
LW_MUST_USE lw_status lw_results_page_new(const char *folder,
                                          lw_results_page **out);
LW_MUST_USE lw_status lw_results_page_add(lw_results_page *p,
                                          const lw_run_data *d);
LW_MUST_USE lw_status lw_results_page_end(lw_results_page *p); /* the index */
void lw_results_page_free(lw_results_page *p);

/* Text for HTML, in elements and in quoted attributes alike. */
void lw_html_escape(lw_buf *b, const char *s);

#endif
