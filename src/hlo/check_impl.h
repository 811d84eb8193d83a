/* Shared by the check_*.c files only. */
#ifndef LW_HLO_CHECK_IMPL_H
#define LW_HLO_CHECK_IMPL_H

#include "hlo/check.h"

typedef struct {
  const lw_module *m;
  lw_context *ctx;
  lw_check_options o;
  lw_diags *d;
  lw_map fusion_of; /* fused computation -> its fusion */
  lw_map is_comp;   /* computations of this module -> 1 */
} check;

/* At an instruction: "name: message". */
void check_inst_error(check *c, const lw_inst *i, const char *fmt, ...)
    LW_PRINTF(3, 4);
void check_comp_error(check *c, const lw_comp *k, const char *fmt, ...)
    LW_PRINTF(3, 4);
void check_module_error(check *c, const char *fmt, ...) LW_PRINTF(2, 3);

/* Operands and shapes are all there, so that more can be asked. */
bool check_is_sound(const lw_inst *i);

void check_structure(check *c);                     /* check.c */
void check_instruction(check *c, const lw_inst *i); /* check_inst.c */
void check_sharding(check *c, const lw_inst *i);
void check_fusion(check *c, const lw_inst *i);
void check_header(check *c); /* check_module.c */
void check_schedules(check *c);
void check_channels(check *c);

/* The subshape at an index; NULL when there is none. */
const lw_shape *check_subshape(const lw_shape *s, const int64_t *index,
                               int32_t n);

#endif
