/* Instruction attributes from HloInstructionProto.
 *
 * The opcode's attribute list (op_attributes.def) is gone through in print
 * order, and what XLA's printer would print is set: required attributes always,
 * optional ones when they differ from what their absence means. */
#include <stdlib.h>
#include <string.h>

#include "hlo/infer.h"
#include "reader/proto_fields.h"
#include "reader/proto_impl.h"

/* ---- setting ---- */

typedef struct {
  proto_in *in;
  pb_msg m;
  lw_inst *inst;
  lw_attr_id id;
} attr_in;

static void set_i64(attr_in *a, int64_t v) {
  lw_inst_set_i64(a->inst, a->id, v);
}

static void set_nonzero(attr_in *a, uint32_t number) {
  int64_t v = pb_i64(a->m, number, 0);
  if (v) set_i64(a, v);
}

static void set_list(attr_in *a, pb_msg m, uint32_t number, bool always) {
  int32_t n;
  const int64_t *v = proto_i64s(a->in, m, number, &n);
  if (n || always) lw_inst_set_i64s(a->inst, a->id, n, v);
}

static void set_str(attr_in *a, const char *s) {
  if (!s) return;
  lw_attr v = {.id = a->id, .u.s = s};
  lw_inst_set_attr(a->inst, &v);
}

static void set_enum(attr_in *a, const char *s, bool required) {
  int64_t v;
  if (s && lw_enum_value(lw_attr_table[a->id].kind, s, strlen(s), &v))
    set_i64(a, v);
  else if (s || required)
    proto_fail(a->in, a->m, "%s: \"%s\" is not a value of %s", a->inst->name,
               s ? s : "", lw_attr_table[a->id].name);
}

/* A number that must be one of the enum's. */
static void set_enum_number(attr_in *a, uint32_t number, bool always) {
  int64_t v = pb_i64(a->m, number, 0);
  if (!v && !always) return;
  if (!lw_enum_name(lw_attr_table[a->id].kind, v))
    proto_fail(a->in, a->m, "%s: %lld is not a value of %s", a->inst->name,
               (long long)v, lw_attr_table[a->id].name);
  else
    set_i64(a, v);
}

/* ---- lists of messages ---- */

/* Three numbers a message: slice and padding. */
static void set_triples(attr_in *a, pb_msg m, uint32_t number,
                        int64_t third_default) {
  pb_i64s v = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(m); proto_next(a->in, &it, number, &e);) {
    lw_vec_push(&v, pb_i64(e, 1, 0));
    lw_vec_push(&v, pb_i64(e, 2, 0));
    int64_t third = pb_i64(e, 3, third_default);
    lw_vec_push(&v, third ? third : third_default);
  }
  lw_inst_set_i64s(a->inst, a->id, (int32_t)v.len, v.data);
  lw_vec_free(&v);
}

static void set_pairs(attr_in *a) {
  pb_i64s v = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(a->m); proto_next(a->in, &it, F_PAIRS, &e);) {
    lw_vec_push(&v, pb_i64(e, 1, 0));
    lw_vec_push(&v, pb_i64(e, 2, 0));
  }
  lw_inst_set_i64s(a->inst, a->id, (int32_t)v.len, v.data);
  lw_vec_free(&v);
}

static void set_window(attr_in *a) {
  pb_msg w = proto_sub(a->in, a->m, F_WINDOW), e;
  LW_VEC(lw_window_dim) v = {0};
  for (pb_iter it = pb_begin(w); proto_next(a->in, &it, 1, &e);) {
    lw_window_dim d = {.size = pb_i64(e, 1, 0),
                       .stride = pb_i64(e, 2, 0),
                       .pad_lo = pb_i64(e, 3, 0),
                       .pad_hi = pb_i64(e, 4, 0),
                       .rhs_dilation = pb_i64(e, 5, 0),
                       .lhs_dilation = pb_i64(e, 6, 0),
                       .reversed = pb_i64(e, 7, 0) != 0};
    lw_vec_push(&v, d);
  }
  if (v.len) {
    lw_window *out = LW_NEW(a->in->arena, lw_window);
    out->rank = (int32_t)v.len;
    out->dims = lw_arena_memdup(a->in->arena, v.data, v.len * sizeof *v.data);
    lw_attr t = {.id = a->id, .u.window = out};
    lw_inst_set_attr(a->inst, &t);
  }
  lw_vec_free(&v);
}

static void set_dim_labels(attr_in *a) {
  pb_msg m = proto_sub(a->in, a->m, F_CONV_DIMS);
  if (!m.p) return;
  lw_dim_labels *l = LW_NEW(a->in->arena, lw_dim_labels);
  int32_t nk, no;
  l->input_batch = pb_i64(m, 7, 0);
  l->input_feature = pb_i64(m, 8, 0);
  l->input_spatial = proto_i64s(a->in, m, 11, &l->n_spatial);
  l->kernel_input_feature = pb_i64(m, 3, 0);
  l->kernel_output_feature = pb_i64(m, 4, 0);
  l->kernel_spatial = proto_i64s(a->in, m, 6, &nk);
  l->output_batch = pb_i64(m, 9, 0);
  l->output_feature = pb_i64(m, 10, 0);
  l->output_spatial = proto_i64s(a->in, m, 12, &no);
  if (nk != l->n_spatial || no != l->n_spatial) {
    proto_fail(a->in, m,
               "%s: dimension numbers list %d, %d and %d spatial "
               "dimensions",
               a->inst->name, l->n_spatial, nk, no);
    return;
  }
  lw_attr t = {.id = a->id, .u.dim_labels = l};
  lw_inst_set_attr(a->inst, &t);
}

static void set_aliasing(attr_in *a) {
  LW_VEC(lw_alias) v = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(a->m); proto_next(a->in, &it, F_ALIASING, &e);) {
    lw_alias al = {.operand = pb_i64(e, 2, 0)};
    al.output_index = proto_i64s(a->in, e, 1, &al.n_output_index);
    al.operand_index = proto_i64s(a->in, e, 3, &al.n_operand_index);
    lw_vec_push(&v, al);
  }
  if (v.len) {
    lw_attr t = {.id = a->id};
    t.u.aliasing.n = (int32_t)v.len;
    t.u.aliasing.v =
        lw_arena_memdup(a->in->arena, v.data, v.len * sizeof *v.data);
    lw_inst_set_attr(a->inst, &t);
  }
  lw_vec_free(&v);
}

static void set_operand_layouts(attr_in *a) {
  if (!pb_i64(a->m, F_CONSTRAIN_LAYOUT, 0)) return;
  LW_VEC(const lw_shape *) v = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(a->m);
       proto_next(a->in, &it, F_OPERAND_LAYOUTS, &e);) {
    const lw_shape *s = proto_read_shape(a->in, e, 0);
    lw_vec_push(&v, s);
  }
  if (!a->in->err) {
    lw_attr t = {.id = a->id};
    t.u.shapes.n = (int32_t)v.len;
    t.u.shapes.v =
        lw_arena_memdup(a->in->arena, v.data, v.len * sizeof *v.data);
    lw_inst_set_attr(a->inst, &t);
  }
  lw_vec_free(&v);
}

static void set_shape(attr_in *a, uint32_t number) {
  pb_msg m = proto_sub(a->in, a->m, number);
  if (!pb_size(m)) return;
  lw_attr t = {.id = a->id, .u.shape = proto_read_shape(a->in, m, 0)};
  if (t.u.shape) lw_inst_set_attr(a->inst, &t);
}

static void set_literal(attr_in *a) {
  pb_msg m = proto_sub(a->in, a->m, F_LITERAL);
  if (!m.p) return;
  lw_attr t = {.id = a->id, .u.literal = proto_read_literal(a->in, m, 0)};
  if (t.u.literal) lw_inst_set_attr(a->inst, &t);
}

/* ---- replica groups ---- */

static void group_lists(proto_in *in, pb_msg m, uint32_t number,
                        lw_replica_groups *g) {
  LW_VEC(int32_t) sizes = {0};
  pb_i64s ids = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, number, &e);) {
    size_t before = ids.len;
    pb_get_i64s(e, 1, &ids);
    lw_vec_push(&sizes, (int32_t)(ids.len - before));
  }
  g->n_groups = (int32_t)sizes.len;
  g->group_sizes =
      lw_arena_memdup(in->arena, sizes.data, sizes.len * sizeof *sizes.data);
  g->ids = lw_arena_memdup(in->arena, ids.data, ids.len * sizeof *ids.data);
  lw_vec_free(&sizes);
  lw_vec_free(&ids);
}

static void group_iota(proto_in *in, pb_msg m, lw_replica_groups *g) {
  int32_t n;
  g->kind = LW_RG_IOTA;
  g->iota_groups = pb_i64(m, 1, 0);
  g->iota_group_size = pb_i64(m, 2, 0);
  g->reshape_dims = proto_i64s(in, m, 3, &g->n_reshape);
  const int32_t *perm = proto_i32s(in, m, 4, &n);
  bool identity = true;
  for (int32_t i = 0; i < n; i++) identity &= perm[i] == i;
  if (n && n != g->n_reshape)
    proto_fail(in, m,
               "replica groups: the transposition has %d of %d "
               "dimensions",
               n, g->n_reshape);
  g->transpose_perm = identity ? NULL : perm;
}

static void set_replica_groups(attr_in *a) {
  lw_replica_groups *g = LW_NEW(a->in->arena, lw_replica_groups);
  pb_msg lists = proto_sub(a->in, a->m, F_GROUP_LISTS);
  pb_msg iota = proto_sub(a->in, a->m, F_GROUP_IOTA);
  pb_msg mesh = proto_sub(a->in, a->m, F_GROUP_MESH);
  if (mesh.p) {
    g->kind = LW_RG_MESH;
    g->mesh_text = proto_mesh_groups_text(a->in, mesh);
  } else if (iota.p) {
    group_iota(a->in, iota, g);
  } else if (lists.p) {
    group_lists(a->in, lists, 1, g);
  } else {
    group_lists(a->in, a->m, F_OLD_GROUPS, g);
  }
  lw_attr t = {.id = a->id, .u.groups = g};
  if (!a->in->err) lw_inst_set_attr(a->inst, &t);
}

/* ---- called computations ---- */

static lw_comp *find_comp(attr_in *a, int64_t id) {
  uint64_t *v = lw_map_get(&a->in->comps, (uint64_t)id);
  if (v) return (lw_comp *)(uintptr_t)*v;
  proto_fail(a->in, a->m, "%s calls computation %lld, which is not there",
             a->inst->name, (long long)id);
  return NULL;
}

static void set_comp(attr_in *a) {
  int32_t n, k = called_slot(a->id);
  const int64_t *ids = proto_i64s(a->in, a->m, F_CALLED, &n);
  if (a->inst->opcode == LW_OP_CUSTOM_CALL) return; /* called_computations */
  if (a->inst->opcode == LW_OP_CONDITIONAL) {
    const lw_inst *p = a->inst->n_operands ? lw_inst_operand(a->inst, 0) : NULL;
    if (n != 2 || !p || !p->shape || p->shape->type != LW_PRED) return;
  }
  if (k >= n) return;
  lw_comp *c = find_comp(a, ids[k]);
  if (c) lw_inst_set_comp(a->inst, a->id, c);
}

static void set_comps(attr_in *a) {
  int32_t n;
  const int64_t *ids = proto_i64s(a->in, a->m, F_CALLED, &n);
  if (a->inst->opcode == LW_OP_CONDITIONAL &&
      lw_inst_attr(a->inst, LW_ATTR_TRUE_COMPUTATION))
    return;
  if (!n) return;
  lw_comp **v = LW_NEW_ARRAY(a->in->arena, lw_comp *, n);
  for (int32_t i = 0; i < n; i++)
    if (!(v[i] = find_comp(a, ids[i]))) return;
  lw_attr t = {.id = a->id};
  t.u.comps.n = n;
  t.u.comps.v = v;
  lw_inst_set_attr(a->inst, &t);
}

/* ---- scalars with a rule of their own ---- */

static void set_compare_type(attr_in *a) {
  const char *s = proto_str(a->in, a->m, F_COMPARE_TYPE);
  int64_t v;
  if (s && lw_enum_value(LW_AK_ENUM_COMPARE_TYPE, s, strlen(s), &v) &&
      v == (int64_t)lw_default_compare_type(a->inst))
    return;
  set_enum(a, s, false);
}

static void set_precision(attr_in *a) {
  int32_t n;
  pb_msg m = proto_sub(a->in, a->m, F_PRECISION);
  const int64_t *v = proto_i64s(a->in, m, 1, &n);
  bool any = false;
  for (int32_t i = 0; i < n; i++) {
    any |= v[i] != 0;
    if (!lw_enum_name(LW_AK_ENUMS_PRECISION, v[i]))
      proto_fail(a->in, m, "%s: unknown precision", a->inst->name);
  }
  if (any) lw_inst_set_i64s(a->inst, a->id, n, v);
}

static void set_named(attr_in *a, int64_t v, const char *const *names,
                      int64_t n) {
  if (v < 0 || v >= n)
    proto_fail(a->in, a->m, "%s: unknown %s %lld", a->inst->name,
               lw_attr_table[a->id].name, (long long)v);
  else
    set_str(a, names[v]);
}

static void set_first(attr_in *a, bool required) {
  int32_t n;
  const int64_t *v = proto_i64s(a->in, a->m, F_DIMENSIONS, &n);
  if (n)
    set_i64(a, v[0]);
  else if (required)
    proto_fail(a->in, a->m, "%s has no dimension", a->inst->name);
}

static void set_group_count(attr_in *a, uint32_t number) {
  int64_t v = pb_i64(a->m, number, 1);
  if (v && v != 1) set_i64(a, v);
}

static void set_epsilon(attr_in *a) {
  lw_attr t = {.id = a->id, .u.f = pb_f32(a->m, F_EPSILON)};
  lw_inst_set_attr(a->inst, &t);
}

static void set_parameter_number(attr_in *a) {
  int64_t n = pb_i64(a->m, F_PARAMETER_NUMBER, 0);
  lw_comp *c = a->inst->parent;
  if (n < 0 || n > (1 << 20)) {
    proto_fail(a->in, a->m, "%s: parameter number %lld is out of range",
               a->inst->name, (long long)n);
    return;
  }
  set_i64(a, n);
  while ((int64_t)c->params.len <= n) lw_vec_push(&c->params, NULL);
  if (!c->params.data[n]) c->params.data[n] = a->inst;
}

static bool optional_dims(lw_opcode op) {
  return op == LW_OP_ALL_TO_ALL || op == LW_OP_RAGGED_ALL_TO_ALL;
}

/* ---- dimension numbers, by attribute: where in which message ---- */

static void set_member(attr_in *a, pb_msg m, const member *t, int64_t n,
                       bool always) {
  for (int64_t i = 0; i < n; i++)
    if (t[i].id == a->id) set_list(a, m, t[i].field, always);
}

static pb_msg dot_message(attr_in *a) {
  if (a->inst->opcode != LW_OP_RAGGED_DOT)
    return proto_sub(a->in, a->m, F_DOT_DIMS);
  return proto_sub(a->in, proto_sub(a->in, a->m, F_RAGGED_DIMS), 1);
}

static void set_index_vector_dim(attr_in *a) {
  bool gather = a->inst->opcode == LW_OP_GATHER;
  pb_msg m = proto_sub(a->in, a->m, gather ? F_GATHER_DIMS : F_SCATTER_DIMS);
  set_i64(a, pb_i64(m, 4, 0));
}

/* ---- one attribute ---- */

static void read_text_attr(attr_in *a) {
  proto_in *in = a->in;
  switch ((int)a->id) {
    case LW_ATTR_DOMAIN:
      set_str(a, proto_domain_text(in, proto_sub(in, a->m, F_DOMAIN_ENTRY),
                                   proto_sub(in, a->m, F_DOMAIN_EXIT)));
      break;
    case LW_ATTR_STATISTICS:
      set_str(a, proto_statistics_text(in, proto_sub(in, a->m, F_STATISTICS)));
      break;
    case LW_ATTR_RESULT_ACCURACY:
      set_str(a, proto_accuracy_text(in, proto_sub(in, a->m, F_ACCURACY)));
      break;
    case LW_ATTR_ORIGIN:
      if (pb_has(a->m, F_ORIGIN))
        set_str(a, proto_origin_text(in, proto_sub(in, a->m, F_ORIGIN)));
      break;
    case LW_ATTR_SPARSITY_CONFIG:
      set_str(a, proto_sparsity_text(in, proto_sub(in, a->m, F_SPARSITY)));
      break;
    default:
      break;
  }
}

static void read_list_attr(attr_in *a) {
  pb_msg m = a->m;
  switch ((int)a->id) {
    case LW_ATTR_DIMENSIONS:
      set_list(a, m, F_DIMENSIONS, !optional_dims(a->inst->opcode));
      break;
    case LW_ATTR_DYNAMIC_SLICE_SIZES:
      set_list(a, m, F_DYNAMIC_SLICE_SIZES, true);
      break;
    case LW_ATTR_SLICE_SIZES:
      set_list(a, m, F_GATHER_SIZES, true);
      break;
    case LW_ATTR_FFT_LENGTH:
      set_list(a, m, F_FFT_LENGTH, true);
      break;
    case LW_ATTR_SLICE:
      set_triples(a, m, F_SLICE, 1);
      break;
    case LW_ATTR_PADDING:
      set_triples(a, proto_sub(a->in, m, F_PADDING), 1, 0);
      break;
    case LW_ATTR_SOURCE_TARGET_PAIRS:
      set_pairs(a);
      break;
    case LW_ATTR_LHS_RAGGED_DIMS:
      set_list(a, proto_sub(a->in, m, F_RAGGED_DIMS), 2, false);
      break;
    case LW_ATTR_RHS_GROUP_DIMS:
      set_list(a, proto_sub(a->in, m, F_RAGGED_DIMS), 3, false);
      break;
    case LW_ATTR_PARAMETER_REPLICATION:
      set_list(a, proto_sub(a->in, m, F_PARAM_REPLICATION), 1, false);
      break;
    case LW_ATTR_LHS_BATCH_DIMS:
    case LW_ATTR_LHS_CONTRACTING_DIMS:
    case LW_ATTR_RHS_BATCH_DIMS:
    case LW_ATTR_RHS_CONTRACTING_DIMS:
      set_member(a, dot_message(a), dot_members, COUNT(dot_members), false);
      break;
    case LW_ATTR_OFFSET_DIMS:
    case LW_ATTR_COLLAPSED_SLICE_DIMS:
    case LW_ATTR_START_INDEX_MAP:
      set_member(a, proto_sub(a->in, m, F_GATHER_DIMS), gather_members,
                 COUNT(gather_members), true);
      break;
    case LW_ATTR_OPERAND_BATCHING_DIMS:
    case LW_ATTR_START_INDICES_BATCHING_DIMS:
      set_member(a, proto_sub(a->in, m, F_GATHER_DIMS), gather_members,
                 COUNT(gather_members), false);
      break;
    case LW_ATTR_UPDATE_WINDOW_DIMS:
    case LW_ATTR_INSERTED_WINDOW_DIMS:
    case LW_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS:
      set_member(a, proto_sub(a->in, m, F_SCATTER_DIMS), scatter_members,
                 COUNT(scatter_members), true);
      break;
    case LW_ATTR_INPUT_BATCHING_DIMS:
    case LW_ATTR_SCATTER_INDICES_BATCHING_DIMS:
      set_member(a, proto_sub(a->in, m, F_SCATTER_DIMS), scatter_members,
                 COUNT(scatter_members), false);
      break;
    default:
      read_text_attr(a);
  }
}

static void read_struct_attr(attr_in *a) {
  switch ((int)a->id) {
    case LW_ATTR_LITERAL:
      set_literal(a);
      break;
    case LW_ATTR_WINDOW:
      set_window(a);
      break;
    case LW_ATTR_DIM_LABELS:
      set_dim_labels(a);
      break;
    case LW_ATTR_OUTPUT_TO_OPERAND_ALIASING:
      set_aliasing(a);
      break;
    case LW_ATTR_OPERAND_LAYOUT_CONSTRAINTS:
      set_operand_layouts(a);
      break;
    case LW_ATTR_REPLICA_GROUPS:
      set_replica_groups(a);
      break;
    case LW_ATTR_OUTFEED_SHAPE:
      set_shape(a, F_OUTFEED_SHAPE);
      break;
    case LW_ATTR_OPERAND_PRECISION:
      set_precision(a);
      break;
    case LW_ATTR_CALLS:
    case LW_ATTR_TO_APPLY:
    case LW_ATTR_CONDITION:
    case LW_ATTR_BODY:
    case LW_ATTR_SELECT:
    case LW_ATTR_SCATTER:
    case LW_ATTR_TRUE_COMPUTATION:
    case LW_ATTR_FALSE_COMPUTATION:
      set_comp(a);
      break;
    case LW_ATTR_BRANCH_COMPUTATIONS:
    case LW_ATTR_CALLED_COMPUTATIONS:
      set_comps(a);
      break;
    default:
      read_list_attr(a);
  }
}

static void read_enum_attr(attr_in *a) {
  proto_in *in = a->in;
  pb_msg m = a->m;
  switch ((int)a->id) {
    case LW_ATTR_DIRECTION:
      set_enum(a, proto_str(in, m, F_DIRECTION), true);
      break;
    case LW_ATTR_COMPARE_TYPE:
      set_compare_type(a);
      break;
    case LW_ATTR_KIND:
      set_enum(a, proto_str(in, m, F_FUSION_KIND), true);
      break;
    case LW_ATTR_FFT_TYPE:
      set_enum_number(a, F_FFT_TYPE, true);
      break;
    case LW_ATTR_TRANSPOSE_A: {
      attr_in sub = *a;
      sub.m = proto_sub(in, m, F_TRIANGULAR);
      set_enum_number(&sub, 4, false);
      break;
    }
    case LW_ATTR_DISTRIBUTION:
      set_enum_number(a, F_DISTRIBUTION, true);
      break;
    case LW_ATTR_RNG_ALGORITHM:
      set_enum_number(a, F_RNG_ALGORITHM, true);
      break;
    case LW_ATTR_API_VERSION:
      if (pb_i64(m, F_API_VERSION, 1) > 1)
        set_enum_number(a, F_API_VERSION, false);
      break;
    case LW_ATTR_SCHEDULE:
      set_enum_number(a, F_SCHEDULE, false);
      break;
    case LW_ATTR_PADDING_TYPE:
      set_enum_number(a, F_PADDING_TYPE, false);
      break;
    case LW_ATTR_IS_ASSOCIATIVE:
      set_enum_number(a, F_ASSOCIATIVE, false);
      break;
    case LW_ATTR_ALGORITHM:
      set_named(a, pb_i64(proto_sub(in, m, F_PRECISION), 2, 0), algorithms,
                COUNT(algorithms));
      break;
    case LW_ATTR_CONVOLUTION_KIND:
      set_named(a, pb_i64(m, F_CONV_KIND, 0), conv_kinds, COUNT(conv_kinds));
      break;
    default:
      read_struct_attr(a);
  }
}

/* Attributes that are one number of the instruction's message. */
static const struct {
  lw_attr_id id;
  uint32_t field;
  bool unless_zero; /* 0 is the same as absent */
} numbers[] = {
    {LW_ATTR_INDEX, F_TUPLE_INDEX, false},
    {LW_ATTR_INDICES_ARE_SORTED, F_SORTED, true},
    {LW_ATTR_UNIQUE_INDICES, F_UNIQUE, true},
    {LW_ATTR_IS_STABLE, F_IS_STABLE, true},
    {LW_ATTR_IS_COMPOSITE, F_COMPOSITE, true},
    {LW_ATTR_K, F_K, false},
    {LW_ATTR_LARGEST, F_LARGEST, false},
    {LW_ATTR_NUM_CARRIES, F_CARRIES, false},
    {LW_ATTR_IS_REVERSE, F_REVERSE, true},
    {LW_ATTR_FEATURE_INDEX, F_FEATURE_INDEX, false},
    {LW_ATTR_EXPONENT_BITS, F_EXPONENT_BITS, false},
    {LW_ATTR_MANTISSA_BITS, F_MANTISSA_BITS, false},
    {LW_ATTR_DELTA, F_DELTA, false},
    {LW_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT, F_SIDE_EFFECT, true},
    {LW_ATTR_CHANNEL_ID, F_CHANNEL_ID, true},
    {LW_ATTR_CONSTRAIN_LAYOUT, F_CONSTRAIN_LAYOUT, true},
    {LW_ATTR_USE_GLOBAL_DEVICE_IDS, F_GLOBAL_IDS, true},
    {LW_ATTR_IS_HOST_TRANSFER, F_HOST_TRANSFER, true},
};

static bool read_number(attr_in *a) {
  for (int64_t k = 0; k < COUNT(numbers); k++) {
    if (numbers[k].id != a->id) continue;
    if (numbers[k].unless_zero)
      set_nonzero(a, numbers[k].field);
    else if (a->id == LW_ATTR_LARGEST)
      set_i64(a, pb_i64(a->m, F_LARGEST, 0) != 0);
    else
      set_i64(a, pb_i64(a->m, numbers[k].field, 0));
    return true;
  }
  return false;
}

/* Fields of TriangularSolveOptions and CholeskyOptions. */
static void read_solve_option(attr_in *a) {
  attr_in sub = *a;
  bool tri = a->inst->opcode == LW_OP_TRIANGULAR_SOLVE;
  sub.m = proto_sub(a->in, a->m, tri ? F_TRIANGULAR : F_CHOLESKY);
  uint32_t field = 1;
  if (tri && a->id == LW_ATTR_LOWER) field = 2;
  if (tri && a->id == LW_ATTR_UNIT_DIAGONAL) field = 3;
  set_nonzero(&sub, field);
}

static void read_thread(attr_in *a) {
  const char *s = proto_str(a->in, a->m, F_THREAD);
  if (s && strcmp(s, "main")) set_str(a, s);
}

static void read_attr(attr_in *a) {
  proto_in *in = a->in;
  pb_msg m = a->m;
  if (read_number(a)) return;
  switch ((int)a->id) {
    case LW_ATTR_PARAMETER_NUMBER:
      set_parameter_number(a);
      break;
    case LW_ATTR_IOTA_DIMENSION:
      set_first(a, true);
      break;
    case LW_ATTR_INFERRED_DIMENSION:
      set_first(a, false);
      break;
    case LW_ATTR_FEATURE_GROUP_COUNT:
      set_group_count(a, F_FEATURE_GROUPS);
      break;
    case LW_ATTR_BATCH_GROUP_COUNT:
      set_group_count(a, F_BATCH_GROUPS);
      break;
    case LW_ATTR_INDEX_VECTOR_DIM:
      set_index_vector_dim(a);
      break;
    case LW_ATTR_EPSILON:
      set_epsilon(a);
      break;
    case LW_ATTR_CUSTOM_CALL_TARGET:
      set_str(a, proto_str_or(in, m, F_TARGET, ""));
      break;
    case LW_ATTR_CROSS_PROGRAM_PREFETCH_INDEX:
      if (pb_has(m, F_PREFETCH)) set_i64(a, pb_i64(m, F_PREFETCH, 0));
      break;
    case LW_ATTR_ASYNC_EXECUTION_THREAD:
      read_thread(a);
      break;
    case LW_ATTR_INFEED_CONFIG:
      set_str(a, proto_str(in, m, F_INFEED_CONFIG));
      break;
    case LW_ATTR_OUTFEED_CONFIG:
      set_str(a, proto_str(in, m, F_OUTFEED_CONFIG));
      break;
    case LW_ATTR_LEFT_SIDE:
    case LW_ATTR_UNIT_DIAGONAL:
    case LW_ATTR_LOWER:
      read_solve_option(a);
      break;
    default:
      read_enum_attr(a);
  }
}

static void read_fold(lw_inst *inst) {
  lw_frontend_attrs *f = &inst->frontend_attrs;
  for (int32_t i = 0; i < f->n; i++) {
    if (strcmp(f->v[i].key, lw_attr_table[LW_ATTR_FOLD].name)) continue;
    char *end;
    int64_t v[2] = {strtoll(f->v[i].value, &end, 10), 0};
    if (*end == ',') v[1] = strtoll(end + 1, &end, 10);
    lw_inst_set_i64s(inst, LW_ATTR_FOLD, 2, v);
    lw_kv *rest = (lw_kv *)f->v;
    memmove(rest + i, rest + i + 1, (size_t)(f->n - i - 1) * sizeof *rest);
    f->n--;
    return;
  }
}

void proto_read_attrs(proto_in *in, pb_msg m, lw_inst *inst) {
  int n;
  const lw_op_attr *list = lw_op_attrs(inst->opcode, &n);
  attr_in a = {in, m, inst, LW_ATTR_FOLD};
  for (int i = 0; i < n && !in->err; i++) {
    a.id = list[i].id;
    if (a.id != LW_ATTR_FOLD) read_attr(&a);
  }
  static const lw_attr_id any[] = {LW_ATTR_PARAMETER_REPLICATION,
                                   LW_ATTR_STATISTICS, LW_ATTR_ORIGIN,
                                   LW_ATTR_RESULT_ACCURACY};
  for (int i = 0; i < COUNT(any) && !in->err; i++) {
    a.id = any[i];
    read_attr(&a);
  }
  if (inst->opcode == LW_OP_REDUCE) read_fold(inst);
}
