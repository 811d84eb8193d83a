/* Shared by explain.c and wall.c. */
#ifndef LW_DRIVER_EXPLAIN_IMPL_H
#define LW_DRIVER_EXPLAIN_IMPL_H

#include "driver/explain.h"
#include "fusion/report.h"
#include "target/cost.h"

enum { MAX_READERS = 64 }; /* listed of one value */

typedef struct {
  lw_explain *e;
  const lw_trace *trace;
  const lw_target *target;
  bool cpu, flush_denormals;
  lw_map sources;  /* hash of a name -> lw_explain_source */
  lw_map refusals; /* hash of a name -> lw_decision */
} explaining;

lw_explain_source explain_source(const explaining *x, const char *name);
/* Kernels that read a value, by whatever name; at most max. */
int32_t explain_readers(const lw_inst *v, const lw_inst **list, int32_t max);
/* Where a value of that size is found: "L1" to "DRAM". */
const char *explain_level(const lw_target *t, double bytes);

/* Adds the wall that v is, if it is one. */
bool explain_wall_of(explaining *x, const lw_inst *v, const lw_inst **readers,
                     int32_t n, const char *shape);
/* Adds those that a kernel holds inside. */
void explain_walls_inside(explaining *x, const lw_inst *fusion);

#endif
