/* Text in, fused module, trace and counts out. */
#ifndef LW_TESTS_FUSION_UNIT_H
#define LW_TESTS_FUSION_UNIT_H

#include "fusion/fusion.h"
#include "fusion/report.h"
#include "target/target.h"
#include "trace/override.h"
#include "trace/trace.h"

typedef struct {
  lw_context *ctx;
  lw_module *m;
  lw_trace *trace;
  lw_target *target;
  lw_fusion_report report;
  lw_arena *arena; /* of the overrides */
  lw_overrides overrides;
  bool moved;
} fused;

/* passes: a strategy's name, or pass names joined by commas. Fails the test on
 * any error. */
fused fuse_text(const char *text, const char *passes, const char *target);
/* With --force-edge and --forbid-edge lists (NULL: none). */
fused fuse_edges(const char *text, const char *passes, const char *target,
                 const char *force, const char *forbid);
void fused_free(fused *f);
bool has_reason(const lw_trace *t, const char *code);
/* The module's text; the caller frees the buffer. */
lw_buf fused_print(const fused *f);
/* Runs both by the interpreter on seeded values: the bits are the same. */
void assert_same_bits(const char *text, const fused *f);

#endif
