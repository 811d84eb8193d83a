#include "passes/same.h"

#include <string.h>

static bool i64s_same(int32_t na, const int64_t *a, int32_t nb,
                      const int64_t *b) {
  return na == nb && (na == 0 || !memcmp(a, b, (size_t)na * sizeof *a));
}

static bool window_same(const lw_window *a, const lw_window *b) {
  if (a == b) return true;
  if (!a || !b || a->rank != b->rank) return false;
  for (int32_t d = 0; d < a->rank; d++) {
    const lw_window_dim *x = &a->dims[d], *y = &b->dims[d];
    if (x->size != y->size || x->stride != y->stride ||
        x->pad_lo != y->pad_lo || x->pad_hi != y->pad_hi ||
        x->lhs_dilation != y->lhs_dilation ||
        x->rhs_dilation != y->rhs_dilation || x->reversed != y->reversed)
      return false;
  }
  return true;
}

static bool labels_same(const lw_dim_labels *a, const lw_dim_labels *b) {
  int32_t n = a->n_spatial;
  return n == b->n_spatial && a->input_batch == b->input_batch &&
         a->input_feature == b->input_feature &&
         a->kernel_input_feature == b->kernel_input_feature &&
         a->kernel_output_feature == b->kernel_output_feature &&
         a->output_batch == b->output_batch &&
         a->output_feature == b->output_feature &&
         i64s_same(n, a->input_spatial, n, b->input_spatial) &&
         i64s_same(n, a->kernel_spatial, n, b->kernel_spatial) &&
         i64s_same(n, a->output_spatial, n, b->output_spatial);
}

static bool comps_same(int32_t na, lw_comp **a, int32_t nb, lw_comp **b) {
  if (na != nb) return false;
  for (int32_t k = 0; k < na; k++)
    if (!lw_comp_same(a[k], b[k])) return false;
  return true;
}

static bool str_same(const char *a, const char *b) {
  return a == b || (a && b && !strcmp(a, b));
}

bool lw_attr_same(const lw_attr *a, const lw_attr *b) {
  if (a->id != b->id) return false;
  switch (lw_attr_table[a->id].kind) {
    case LW_AK_F64:
      return !memcmp(&a->u.f, &b->u.f, sizeof a->u.f);
    case LW_AK_STR:
    case LW_AK_STR_BARE:
    case LW_AK_RAW:
    case LW_AK_SLICE_SIZES_LIST:
      return str_same(a->u.s, b->u.s);
    case LW_AK_I64S:
    case LW_AK_BOOLS:
    case LW_AK_SLICE:
    case LW_AK_PADDING:
    case LW_AK_PAIRS:
    case LW_AK_ENUMS_PRECISION:
      return i64s_same(a->u.list.n, a->u.list.v, b->u.list.n, b->u.list.v);
    case LW_AK_WINDOW:
      return window_same(a->u.window, b->u.window);
    case LW_AK_DIM_LABELS:
      return labels_same(a->u.dim_labels, b->u.dim_labels);
    case LW_AK_COMP:
      return lw_comp_same(a->u.comp, b->u.comp);
    case LW_AK_COMPS:
      return comps_same(a->u.comps.n, a->u.comps.v, b->u.comps.n, b->u.comps.v);
    case LW_AK_LITERAL:
      return a->u.literal == b->u.literal ||
             lw_literal_equal(a->u.literal, b->u.literal);
    case LW_AK_SHAPE:
      return a->u.shape == b->u.shape;
    case LW_AK_SHAPES:
    case LW_AK_ALIASING:
    case LW_AK_REPLICA_GROUPS:
      return false; /* custom calls and collectives are not merged */
    case LW_AK_I64:
    case LW_AK_BOOL:
    case LW_AK_CMP_DIR:
    case LW_AK_ENUM_COMPARE_TYPE:
    case LW_AK_ENUM_FUSION_KIND:
    case LW_AK_ENUM_FFT_TYPE:
    case LW_AK_ENUM_TRANSPOSE:
    case LW_AK_ENUM_DISTRIBUTION:
    case LW_AK_ENUM_RNG_ALGORITHM:
    case LW_AK_ENUM_API_VERSION:
    case LW_AK_ENUM_CUSTOM_CALL_SCHEDULE:
    case LW_AK_ENUM_PADDING_TYPE:
    case LW_AK_ENUM_TRISTATE:
      return a->u.i == b->u.i;
  }
  return false;
}

uint64_t lw_attr_hash(const lw_attr *a, uint64_t seed) {
  uint64_t h = lw_hash_mix(seed, (uint64_t)a->id);
  switch ((int)lw_attr_table[a->id].kind) {
    case LW_AK_LITERAL:
      return lw_literal_hash(a->u.literal, h);
    case LW_AK_I64S:
    case LW_AK_BOOLS:
    case LW_AK_SLICE:
    case LW_AK_PADDING:
    case LW_AK_PAIRS:
      return lw_hash_bytes(a->u.list.v, (size_t)a->u.list.n * 8, h);
    case LW_AK_COMP:
      return lw_hash_mix(h, (uint64_t)a->u.comp->n_insts);
    case LW_AK_I64:
    case LW_AK_BOOL:
    case LW_AK_CMP_DIR:
      return lw_hash_mix(h, (uint64_t)a->u.i);
    default:
      return h;
  }
}

bool lw_inst_attrs_same(const lw_inst *a, const lw_inst *b) {
  if (a->n_attrs != b->n_attrs) return false;
  for (int32_t k = 0; k < a->n_attrs; k++) {
    const lw_attr *x = &a->attrs[k], *y = lw_inst_attr(b, x->id);
    if (x->id == LW_ATTR_ORIGIN) continue;
    if (!y || !lw_attr_same(x, y)) return false;
  }
  return str_same(a->backend_config, b->backend_config);
}

static bool inst_same(const lw_inst *a, const lw_inst *b, const lw_map *map) {
  if (a->opcode != b->opcode || a->n_operands != b->n_operands) return false;
  if (!lw_shape_compatible(a->shape, b->shape)) return false;
  if (a->n_control_preds || b->n_control_preds) return false;
  for (int32_t k = 0; k < a->n_operands; k++)
    if (lw_map_ptr(map, a->operands[k].def) != b->operands[k].def) return false;
  return lw_inst_attrs_same(a, b);
}

bool lw_comp_same(const lw_comp *a, const lw_comp *b) {
  if (a == b) return true;
  if (!a || !b || a->n_insts != b->n_insts) return false;
  lw_map map = {0};
  bool same = true;
  const lw_inst *y = b->first;
  for (const lw_inst *x = a->first; x && same; x = x->next, y = y->next) {
    same = inst_same(x, y, &map);
    lw_map_set_ptr(&map, x, y);
  }
  same = same && lw_map_ptr(&map, a->root) == b->root;
  lw_map_free(&map);
  return same;
}
