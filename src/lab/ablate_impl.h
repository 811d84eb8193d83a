/* What ablate.c and bisect.c share. */
#ifndef LW_LAB_ABLATE_IMPL_H
#define LW_LAB_ABLATE_IMPL_H

#include "hlo/diff.h"
#include "lab/ablate.h"

/* A module read from FOLDER/NAME. */
typedef struct {
  lw_context *ctx;
  lw_module *module;
} lw_read_module;

LW_MUST_USE lw_status lw_read_module_of(const char *folder, const char *name,
                                        lw_read_module *out);
void lw_read_module_free(lw_read_module *r);

/* outputs.npz of two folders, as the root of m says. *text (in the arena):
 * where they differ, or why nobody knows. */
lw_bits lw_compare_outputs(const lw_module *m, const char *folder_a,
                           const char *folder_b, lw_arena *a,
                           const char **text);

#endif
