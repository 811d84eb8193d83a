/* The plots of a results page, as SVG elements with a title and a
 * description. */
#ifndef LW_LAB_RESULTS_PLOT_H
#define LW_LAB_RESULTS_PLOT_H

#include "lab/bench.h"

/* The interval as it narrowed, and the control's. */
void lw_plot_intervals(lw_buf *b, const lw_run_data *d,
                       const lw_run_results *r);
/* Every sample in the order it was taken, with each side's median and range. */
void lw_plot_samples(lw_buf *b, const lw_run_data *d, double scale,
                     const char *unit);

#endif
