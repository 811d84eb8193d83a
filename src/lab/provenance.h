/* Where a number comes from: machine, system, versions, now. */
#ifndef LW_LAB_PROVENANCE_H
#define LW_LAB_PROVENANCE_H

#include <cjson/cJSON.h>

#include "base/status.h"

/* machine, cpu, cores, memory, kernel, governor, turbo, aslr, virtual, load,
 * lawson, llvm, target, time, environment. What the system does not say is
 * null. version: of Lawson. */
cJSON *lw_provenance_now(const char *version);

/* What must be equal for more samples to belong to the same run: names of
 * those that differ, in a list separated by commas; "" when none does. The
 * caller frees it. */
char *lw_provenance_moved(const cJSON *then, const cJSON *now);

#endif
