/* A folder under TMPDIR that is gone afterwards. */
#ifndef LW_LAB_SCRATCH_H
#define LW_LAB_SCRATCH_H

#include "base/status.h"

LW_MUST_USE lw_status lw_scratch_new(char **folder);
/* With all that is in it; NULL: nothing. */
void lw_scratch_free(char *folder);

#endif
