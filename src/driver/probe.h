/* Measures the machine it runs on into a target file. */
#ifndef LW_DRIVER_PROBE_H
#define LW_DRIVER_PROBE_H

#include "base/buf.h"

typedef struct {
  const char *command; /* for the file's head: how it was made */
  int batches;         /* a number's measurements; 0: 15 */
  /* Called before each measurement; may be NULL. */
  void (*progress)(const char *what);
} lw_probe_options;

/* Every number is the median of the batches, least and most behind it as a
 * comment. Takes a few seconds; other load on the machine shows in the spread.
 * The text is a target file that lw_target_parse has accepted. */
LW_MUST_USE lw_status lw_probe_machine(const lw_probe_options *o, lw_buf *out);

#endif
