/* Structural sameness of attributes and computations, for cse and for branches
 * that do the same. */
#ifndef LW_PASSES_SAME_H
#define LW_PASSES_SAME_H

#include "hlo/hlo.h"

bool lw_attr_same(const lw_attr *a, const lw_attr *b);
uint64_t lw_attr_hash(const lw_attr *a, uint64_t seed);
/* Same attributes in any order, FOLD and frontend ones included; metadata
 * apart. */
bool lw_inst_attrs_same(const lw_inst *a, const lw_inst *b);
/* Same instructions in the same order, operands by position, parameters by
 * number; called computations likewise. Names do not count. */
bool lw_comp_same(const lw_comp *a, const lw_comp *b);

#endif
