/* Instruction attributes to HloInstructionProto, with the defaults XLA always
 * writes: group counts of 1, DEFAULT precisions, comparison types. */
#include <stdlib.h>
#include <string.h>

#include "hlo/infer.h"
#include "reader/proto_fields.h"
#include "reader/proto_impl.h"

static int64_t index_of(const char *const *names, int64_t n, const char *s) {
  for (int64_t i = 1; i < n; i++)
    if (s && !strcmp(names[i], s)) return i;
  return 0;
}

static void put_list(lw_buf *b, uint32_t number, const lw_inst *i,
                     lw_attr_id id) {
  int32_t n;
  const int64_t *v = lw_inst_i64s(i, id, &n);
  pb_put_i64s(b, number, v, n);
}

static void put_members(lw_buf *b, const lw_inst *i, const member *t,
                        int64_t n) {
  for (int64_t k = 0; k < n; k++) put_list(b, t[k].field, i, t[k].id);
}

static void put_triples(lw_buf *b, uint32_t number, const int64_t *v,
                        int32_t n) {
  for (int32_t i = 0; i + 2 < n; i += 3) {
    lw_buf e = {0};
    for (uint32_t k = 0; k < 3; k++) pb_put_i64(&e, k + 1, v[i + (int)k]);
    pb_put_msg(b, number, &e);
  }
}

static void put_window(lw_buf *b, const lw_window *w) {
  lw_buf m = {0};
  for (int32_t i = 0; i < w->rank; i++) {
    const lw_window_dim *d = &w->dims[i];
    lw_buf e = {0};
    pb_put_i64(&e, 1, d->size);
    pb_put_i64(&e, 2, d->stride);
    pb_put_i64(&e, 3, d->pad_lo);
    pb_put_i64(&e, 4, d->pad_hi);
    pb_put_i64(&e, 5, d->rhs_dilation);
    pb_put_i64(&e, 6, d->lhs_dilation);
    pb_put_i64(&e, 7, d->reversed);
    pb_put_msg(&m, 1, &e);
  }
  pb_put_msg(b, F_WINDOW, &m);
}

static void put_dim_labels(lw_buf *b, const lw_dim_labels *l) {
  lw_buf m = {0};
  pb_put_i64(&m, 3, l->kernel_input_feature);
  pb_put_i64(&m, 4, l->kernel_output_feature);
  pb_put_i64s(&m, 6, l->kernel_spatial, l->n_spatial);
  pb_put_i64(&m, 7, l->input_batch);
  pb_put_i64(&m, 8, l->input_feature);
  pb_put_i64(&m, 9, l->output_batch);
  pb_put_i64(&m, 10, l->output_feature);
  pb_put_i64s(&m, 11, l->input_spatial, l->n_spatial);
  pb_put_i64s(&m, 12, l->output_spatial, l->n_spatial);
  pb_put_msg(b, F_CONV_DIMS, &m);
}

static void put_aliasing(lw_buf *b, const lw_attr *a) {
  for (int32_t i = 0; i < a->u.aliasing.n; i++) {
    const lw_alias *al = &a->u.aliasing.v[i];
    lw_buf e = {0};
    pb_put_i64s(&e, 1, al->output_index, al->n_output_index);
    pb_put_i64(&e, 2, al->operand);
    pb_put_i64s(&e, 3, al->operand_index, al->n_operand_index);
    pb_put_msg(b, F_ALIASING, &e);
  }
}

static void put_group_iota(lw_buf *b, const lw_replica_groups *g) {
  lw_buf m = {0};
  pb_put_i64(&m, 1, g->iota_groups);
  pb_put_i64(&m, 2, g->iota_group_size);
  pb_put_i64s(&m, 3, g->reshape_dims, g->n_reshape);
  if (g->transpose_perm) {
    pb_put_i32s(&m, 4, g->transpose_perm, g->n_reshape);
  } else {
    pb_i64s perm = {0};
    for (int32_t i = 0; i < g->n_reshape; i++) lw_vec_push(&perm, (int64_t)i);
    pb_put_i64s(&m, 4, perm.data, g->n_reshape);
    lw_vec_free(&perm);
  }
  pb_put_msg(b, F_GROUP_IOTA, &m);
}

static lw_status put_groups(lw_buf *b, const lw_replica_groups *g) {
  if (g->kind == LW_RG_MESH)
    return proto_write_mesh_groups(b, F_GROUP_MESH, g->mesh_text);
  if (g->kind == LW_RG_IOTA) {
    put_group_iota(b, g);
    return NULL;
  }
  lw_buf m = {0};
  const int64_t *ids = g->ids;
  for (int32_t i = 0; i < g->n_groups; i++) {
    lw_buf e = {0};
    pb_put_i64s(&e, 1, ids, g->group_sizes[i]);
    ids += g->group_sizes[i];
    pb_put_msg(&m, 1, &e);
  }
  pb_put_msg(b, F_GROUP_LISTS, &m);
  return NULL;
}

static void put_pairs(lw_buf *b, const lw_attr *a) {
  for (int32_t i = 0; i + 1 < a->u.list.n; i += 2) {
    lw_buf e = {0};
    pb_put_i64(&e, 1, a->u.list.v[i]);
    pb_put_i64(&e, 2, a->u.list.v[i + 1]);
    pb_put_msg(b, F_PAIRS, &e);
  }
}

/* precision_config: one entry an operand, DEFAULT where nothing is said. */
static void put_precision(lw_buf *b, const lw_inst *i) {
  int32_t n, want = i->n_operands;
  const int64_t *v = lw_inst_i64s(i, LW_ATTR_OPERAND_PRECISION, &n);
  pb_i64s all = {0};
  for (int32_t k = 0; k < want || k < n; k++)
    lw_vec_push(&all, k < n ? v[k] : (int64_t)LW_PREC_DEFAULT);
  lw_buf m = {0};
  pb_put_i64s(&m, 1, all.data, (int64_t)all.len);
  pb_put_i64(&m, 2,
             index_of(algorithms, COUNT(algorithms),
                      lw_inst_str(i, LW_ATTR_ALGORITHM)));
  pb_put_msg(b, F_PRECISION, &m);
  lw_vec_free(&all);
}

static void put_index_dims(lw_buf *b, uint32_t number, const lw_inst *i,
                           const member *t, int64_t n) {
  lw_buf m = {0};
  put_members(&m, i, t, n);
  pb_put_i64(&m, 4, lw_inst_i64(i, LW_ATTR_INDEX_VECTOR_DIM, 0));
  pb_put_msg(b, number, &m);
}

static void put_ragged(lw_buf *b, const lw_inst *i) {
  lw_buf m = {0}, d = {0};
  put_members(&d, i, dot_members, COUNT(dot_members));
  pb_put_msg(&m, 1, &d);
  put_list(&m, 2, i, LW_ATTR_LHS_RAGGED_DIMS);
  put_list(&m, 3, i, LW_ATTR_RHS_GROUP_DIMS);
  pb_put_msg(b, F_RAGGED_DIMS, &m);
}

static void put_triangular(lw_buf *b, const lw_inst *i) {
  lw_buf m = {0};
  pb_put_i64(&m, 1, lw_inst_i64(i, LW_ATTR_LEFT_SIDE, 0));
  pb_put_i64(&m, 2, lw_inst_i64(i, LW_ATTR_LOWER, 0));
  pb_put_i64(&m, 3, lw_inst_i64(i, LW_ATTR_UNIT_DIAGONAL, 0));
  pb_put_i64(&m, 4, lw_inst_i64(i, LW_ATTR_TRANSPOSE_A, 0));
  pb_put_msg(b, F_TRIANGULAR, &m);
}

/* What several attributes share, or what is there without an attribute. */
static void put_by_opcode(lw_buf *b, const lw_inst *i) {
  lw_buf m = {0};
  switch ((int)i->opcode) {
    case LW_OP_DOT:
    case LW_OP_SCALED_DOT:
      put_members(&m, i, dot_members, COUNT(dot_members));
      pb_put_msg(b, F_DOT_DIMS, &m);
      put_precision(b, i);
      break;
    case LW_OP_RAGGED_DOT:
      put_ragged(b, i);
      put_precision(b, i);
      break;
    case LW_OP_CONVOLUTION:
    case LW_OP_CUSTOM_CALL:
      put_precision(b, i);
      pb_put_i64(b, F_FEATURE_GROUPS,
                 lw_inst_i64(i, LW_ATTR_FEATURE_GROUP_COUNT, 1));
      pb_put_i64(b, F_BATCH_GROUPS,
                 lw_inst_i64(i, LW_ATTR_BATCH_GROUP_COUNT, 1));
      if (i->opcode == LW_OP_CUSTOM_CALL)
        pb_put_i64(b, F_API_VERSION, lw_inst_i64(i, LW_ATTR_API_VERSION, 1));
      break;
    case LW_OP_GATHER:
      put_index_dims(b, F_GATHER_DIMS, i, gather_members,
                     COUNT(gather_members));
      break;
    case LW_OP_SCATTER:
      put_index_dims(b, F_SCATTER_DIMS, i, scatter_members,
                     COUNT(scatter_members));
      break;
    case LW_OP_TRIANGULAR_SOLVE:
      put_triangular(b, i);
      break;
    case LW_OP_CHOLESKY:
      pb_put_i64(&m, 1, lw_inst_i64(i, LW_ATTR_LOWER, 0));
      pb_put_msg(b, F_CHOLESKY, &m);
      break;
    case LW_OP_COMPARE: {
      int64_t t = lw_inst_i64(i, LW_ATTR_COMPARE_TYPE,
                              (int64_t)lw_default_compare_type(i));
      pb_put_str(b, F_COMPARE_TYPE, lw_enum_name(LW_AK_ENUM_COMPARE_TYPE, t));
      break;
    }
    default:
      break;
  }
}

static lw_status put_called(lw_buf *b, const lw_inst *i,
                            const lw_map *comp_ids) {
  if (!lw_inst_called_count(i)) return NULL;
  lw_comp *two[2] = {NULL, NULL};
  pb_i64s v = {0};
  lw_status st = NULL;
  for (int32_t k = 0; k < i->n_attrs; k++)
    if (lw_attr_table[i->attrs[k].id].kind == LW_AK_COMP)
      two[called_slot(i->attrs[k].id)] = i->attrs[k].u.comp;
  for (int32_t k = 0; k < lw_inst_called_count(i) && !st; k++) {
    lw_comp *c = k < 2 && two[k] ? two[k] : lw_inst_called(i, k);
    uint64_t *id = lw_map_get(comp_ids, (uintptr_t)c);
    if (c && id)
      lw_vec_push(&v, (int64_t)*id);
    else
      st =
          lw_error(LW_INVALID_ARGUMENT,
                   "%s calls a computation that is not in the module", i->name);
  }
  pb_put_i64s(b, F_CALLED, v.data, (int64_t)v.len);
  lw_vec_free(&v);
  return st;
}

static void put_shapes(lw_buf *b, const lw_attr *a) {
  pb_put_i64(b, F_CONSTRAIN_LAYOUT, 1);
  for (int32_t i = 0; i < a->u.shapes.n; i++)
    proto_write_shape(b, F_OPERAND_LAYOUTS, a->u.shapes.v[i]);
}

static void put_param_replication(lw_buf *b, const lw_attr *a) {
  lw_buf m = {0};
  pb_put_i64s(&m, 1, a->u.list.v, a->u.list.n);
  pb_put_msg(b, F_PARAM_REPLICATION, &m);
}

static lw_status put_struct_attr(lw_buf *b, const lw_attr *a) {
  switch ((int)a->id) {
    case LW_ATTR_LITERAL:
      return proto_write_literal(b, F_LITERAL, a->u.literal);
    case LW_ATTR_SLICE:
      put_triples(b, F_SLICE, a->u.list.v, a->u.list.n);
      break;
    case LW_ATTR_PADDING: {
      lw_buf m = {0};
      put_triples(&m, 1, a->u.list.v, a->u.list.n);
      pb_put_msg(b, F_PADDING, &m);
      break;
    }
    case LW_ATTR_WINDOW:
      put_window(b, a->u.window);
      break;
    case LW_ATTR_DIM_LABELS:
      put_dim_labels(b, a->u.dim_labels);
      break;
    case LW_ATTR_OUTPUT_TO_OPERAND_ALIASING:
      put_aliasing(b, a);
      break;
    case LW_ATTR_OPERAND_LAYOUT_CONSTRAINTS:
      put_shapes(b, a);
      break;
    case LW_ATTR_REPLICA_GROUPS:
      return put_groups(b, a->u.groups);
    case LW_ATTR_SOURCE_TARGET_PAIRS:
      put_pairs(b, a);
      break;
    case LW_ATTR_OUTFEED_SHAPE:
      proto_write_shape(b, F_OUTFEED_SHAPE, a->u.shape);
      break;
    case LW_ATTR_PARAMETER_REPLICATION:
      put_param_replication(b, a);
      break;
    case LW_ATTR_STATISTICS:
      return proto_write_statistics(b, F_STATISTICS, a->u.s);
    case LW_ATTR_RESULT_ACCURACY:
      return proto_write_accuracy(b, F_ACCURACY, a->u.s);
    case LW_ATTR_ORIGIN:
      return proto_write_origin(b, F_ORIGIN, a->u.s);
    case LW_ATTR_SPARSITY_CONFIG:
      return proto_write_sparsity(b, F_SPARSITY, a->u.s);
    case LW_ATTR_DOMAIN:
      return proto_write_domain(b, F_DOMAIN_ENTRY, F_DOMAIN_EXIT, a->u.s);
    case LW_ATTR_CONVOLUTION_KIND:
      pb_put_i64(b, F_CONV_KIND,
                 index_of(conv_kinds, COUNT(conv_kinds), a->u.s));
      break;
    default:
      break; /* written with the opcode, or with no place in the proto */
  }
  return NULL;
}

static uint32_t list_field(lw_attr_id id) {
  switch ((int)id) {
    case LW_ATTR_DIMENSIONS:
      return F_DIMENSIONS;
    case LW_ATTR_DYNAMIC_SLICE_SIZES:
      return F_DYNAMIC_SLICE_SIZES;
    case LW_ATTR_SLICE_SIZES:
      return F_GATHER_SIZES;
    case LW_ATTR_FFT_LENGTH:
      return F_FFT_LENGTH;
    default:
      return 0;
  }
}

static uint32_t number_field(lw_attr_id id) {
  switch ((int)id) {
    case LW_ATTR_PARAMETER_NUMBER:
      return F_PARAMETER_NUMBER;
    case LW_ATTR_INDEX:
      return F_TUPLE_INDEX;
    case LW_ATTR_INDICES_ARE_SORTED:
      return F_SORTED;
    case LW_ATTR_UNIQUE_INDICES:
      return F_UNIQUE;
    case LW_ATTR_IS_STABLE:
      return F_IS_STABLE;
    case LW_ATTR_IS_COMPOSITE:
      return F_COMPOSITE;
    case LW_ATTR_K:
      return F_K;
    case LW_ATTR_LARGEST:
      return F_LARGEST;
    case LW_ATTR_NUM_CARRIES:
      return F_CARRIES;
    case LW_ATTR_IS_REVERSE:
      return F_REVERSE;
    case LW_ATTR_IS_ASSOCIATIVE:
      return F_ASSOCIATIVE;
    case LW_ATTR_FFT_TYPE:
      return F_FFT_TYPE;
    case LW_ATTR_FEATURE_INDEX:
      return F_FEATURE_INDEX;
    case LW_ATTR_EXPONENT_BITS:
      return F_EXPONENT_BITS;
    case LW_ATTR_MANTISSA_BITS:
      return F_MANTISSA_BITS;
    case LW_ATTR_DISTRIBUTION:
      return F_DISTRIBUTION;
    case LW_ATTR_RNG_ALGORITHM:
      return F_RNG_ALGORITHM;
    case LW_ATTR_DELTA:
      return F_DELTA;
    case LW_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT:
      return F_SIDE_EFFECT;
    case LW_ATTR_SCHEDULE:
      return F_SCHEDULE;
    case LW_ATTR_PADDING_TYPE:
      return F_PADDING_TYPE;
    case LW_ATTR_CHANNEL_ID:
      return F_CHANNEL_ID;
    case LW_ATTR_CONSTRAIN_LAYOUT:
      return F_CONSTRAIN_LAYOUT;
    case LW_ATTR_USE_GLOBAL_DEVICE_IDS:
      return F_GLOBAL_IDS;
    case LW_ATTR_IS_HOST_TRANSFER:
      return F_HOST_TRANSFER;
    default:
      return 0;
  }
}

static uint32_t string_field(lw_attr_id id) {
  switch ((int)id) {
    case LW_ATTR_CUSTOM_CALL_TARGET:
      return F_TARGET;
    case LW_ATTR_ASYNC_EXECUTION_THREAD:
      return F_THREAD;
    case LW_ATTR_INFEED_CONFIG:
      return F_INFEED_CONFIG;
    case LW_ATTR_OUTFEED_CONFIG:
      return F_OUTFEED_CONFIG;
    default:
      return 0;
  }
}

static lw_status put_attr(lw_buf *b, const lw_attr *a) {
  uint32_t f;
  if ((f = number_field(a->id))) {
    pb_put_i64(b, f, a->u.i);
  } else if ((f = string_field(a->id))) {
    pb_put_str(b, f, a->u.s);
  } else if ((f = list_field(a->id))) {
    pb_put_i64s(b, f, a->u.list.v, a->u.list.n);
  } else if (a->id == LW_ATTR_IOTA_DIMENSION ||
             a->id == LW_ATTR_INFERRED_DIMENSION) {
    pb_put_i64s(b, F_DIMENSIONS, &a->u.i, 1);
  } else if (a->id == LW_ATTR_DIRECTION) {
    pb_put_str(b, F_DIRECTION, lw_enum_name(LW_AK_CMP_DIR, a->u.i));
  } else if (a->id == LW_ATTR_KIND) {
    pb_put_str(b, F_FUSION_KIND, lw_enum_name(LW_AK_ENUM_FUSION_KIND, a->u.i));
  } else if (a->id == LW_ATTR_EPSILON) {
    pb_put_f32(b, F_EPSILON, (float)a->u.f);
  } else if (a->id == LW_ATTR_CROSS_PROGRAM_PREFETCH_INDEX) {
    pb_put_i64_always(b, F_PREFETCH, a->u.i);
  } else {
    return put_struct_attr(b, a);
  }
  return NULL;
}

lw_status proto_write_attrs(lw_buf *b, const lw_inst *i,
                            const lw_map *comp_ids) {
  for (int32_t k = 0; k < i->n_attrs; k++) LW_TRY(put_attr(b, &i->attrs[k]));
  put_by_opcode(b, i);
  return put_called(b, i, comp_ids);
}
