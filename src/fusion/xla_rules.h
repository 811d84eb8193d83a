/* XLA:CPU's rules for a fusion edge (jaxlib 0.10.2), as two gates. */
#ifndef LW_FUSION_XLA_RULES_H
#define LW_FUSION_XLA_RULES_H

#include "fusion/gates.h"

typedef struct xla_rules xla_rules;

xla_rules *xla_rules_new(lw_arena *a);
void xla_rules_free(xla_rules *x);

lw_verdict xla_fusibility(void *rules, const lw_inst *consumer, int32_t slot);
lw_verdict xla_profitability(void *rules, const lw_inst *consumer,
                             int32_t slot);

/* Producers that must not be duplicated (ComputeGloballyUnfusible), for one
 * computation; order is its post order. */
void xla_rules_find_unique(xla_rules *x, lw_inst **order, int32_t n,
                           const lw_gates *gates);
/* An instruction is gone, or became part of a fusion. */
void xla_rules_forget(xla_rules *x, const lw_inst *i);

/* Bookkeeping of what each fused value is read as; call both around each
 * fusion. created: just made from its consumer. taken: before the producer is
 * taken; taken_as after, with the clone. */
void xla_rules_created(xla_rules *x, const lw_inst *fusion);
void xla_rules_taken(xla_rules *x, const lw_inst *fusion,
                     const lw_inst *producer, const lw_inst *clone);

bool xla_is_output_fusion(const lw_inst *producer, const lw_inst *consumer);
/* HloInstruction::IsFusible. */
bool xla_is_fusible(const lw_inst *i);

#endif
