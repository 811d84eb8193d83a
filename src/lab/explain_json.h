/* Decision records as JSON; docs/trace-format.md describes it. */
#ifndef LW_LAB_EXPLAIN_JSON_H
#define LW_LAB_EXPLAIN_JSON_H

#include <cjson/cJSON.h>

#include "driver/explain.h"

cJSON *lw_explain_edge_json(const lw_explain_edge *e);
cJSON *lw_explain_left_json(const lw_explain_left *l);
cJSON *lw_explain_wall_json(const lw_explain_wall *w);
/* All of it: {"schema": "lawson.explain/1", ...}. */
cJSON *lw_explain_json(const lw_explain *e);

#endif
