/* One instruction: its attributes, its shape against inference, the rules of
 * fusions, of called computations, of asynchronous pairs, and of shardings.
 * Only sound instructions come here (check_is_sound). */
#include <string.h>

#include "hlo/check_impl.h"
#include "hlo/fold.h"
#include "hlo/infer.h"

/* ---- attributes: there and allowed ---- */

static bool has_any_comp(const lw_inst *i) {
  return lw_inst_called_count(i) > 0;
}

/* What may stand in for a required attribute. */
static bool required_is_met(const lw_inst *i, lw_attr_id id) {
  if (lw_inst_attr(i, id)) return true;
  return id == LW_ATTR_CALLS && has_any_comp(i);
}

static void check_required(check *c, const lw_inst *i) {
  int n;
  const lw_op_attr *list = lw_op_attrs(i->opcode, &n);
  for (int k = 0; k < n; k++)
    if (list[k].required && !required_is_met(i, list[k].id))
      check_inst_error(c, i, "%s needs the attribute %s",
                       lw_opcode_name(i->opcode),
                       lw_attr_table[list[k].id].name);
}

static bool is_allowed(const lw_inst *i, lw_attr_id id) {
  int n;
  const lw_op_attr *list = lw_op_attrs(i->opcode, &n);
  for (int k = 0; k < n; k++)
    if (list[k].id == id) return true;
  return id == LW_ATTR_PARAMETER_REPLICATION || id == LW_ATTR_STATISTICS ||
         id == LW_ATTR_ORIGIN ||
         (id == LW_ATTR_RESULT_ACCURACY &&
          lw_opcode_table[i->opcode].flags & LW_OPF_UN);
}

static void check_allowed(check *c, const lw_inst *i) {
  for (int32_t k = 0; k < i->n_attrs; k++)
    if (!is_allowed(i, i->attrs[k].id))
      check_inst_error(c, i, "%s does not take the attribute %s",
                       lw_opcode_name(i->opcode),
                       lw_attr_table[i->attrs[k].id].name);
}

/* ---- attributes: values ---- */

static void check_compare(check *c, const lw_inst *i) {
  int64_t type = lw_inst_i64(i, LW_ATTR_COMPARE_TYPE, LW_CT_NONE);
  int64_t dir = lw_inst_i64(i, LW_ATTR_DIRECTION, LW_CMP_EQ);
  if (i->n_operands < 1) return;
  lw_class cls = lw_prim_class(lw_inst_operand(i, 0)->shape->type);
  bool ok = true;
  switch (type) {
    case LW_CT_FLOAT:
      ok = cls == LW_CLASS_FLOAT || cls == LW_CLASS_COMPLEX;
      break;
    case LW_CT_TOTALORDER:
      ok = cls == LW_CLASS_FLOAT;
      break;
    case LW_CT_SIGNED:
      ok = cls == LW_CLASS_SINT;
      break;
    case LW_CT_UNSIGNED:
      ok = cls == LW_CLASS_UINT || cls == LW_CLASS_PRED;
      break;
    default:
      break;
  }
  if (!ok)
    check_inst_error(c, i, "type=%s does not compare %s values",
                     lw_enum_name(LW_AK_ENUM_COMPARE_TYPE, type),
                     lw_prim_name(lw_inst_operand(i, 0)->shape->type));
  if (cls == LW_CLASS_COMPLEX && dir != LW_CMP_EQ && dir != LW_CMP_NE)
    check_inst_error(c, i, "complex values can only be compared EQ or NE");
}

static void check_precision(check *c, const lw_inst *i) {
  int32_t n;
  lw_inst_i64s(i, LW_ATTR_OPERAND_PRECISION, &n);
  if (n && n != i->n_operands && i->opcode != LW_OP_CUSTOM_CALL && n != 2)
    check_inst_error(c, i, "operand_precision has %d entries for %d operands",
                     n, i->n_operands);
}

static void check_fold(check *c, const lw_inst *i) {
  int32_t n, n_dims;
  const int64_t *v = lw_inst_i64s(i, LW_ATTR_FOLD, &n);
  if (!n) return;
  const int64_t *dims = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n_dims);
  const lw_shape *s = i->n_operands ? lw_inst_operand(i, 0)->shape : NULL;
  if (n != 2 || v[0] < LW_FOLD_ROW || v[0] > LW_FOLD_SEQ || v[1] < 1) {
    check_inst_error(c, i,
                     "lawson.fold must be \"rule,run\": a rule of 0 "
                     "(row), 1 (column) or 2 (sequence) and a positive run");
    return;
  }
  int64_t total = 1;
  for (int32_t k = 0; s && k < n_dims; k++)
    if (dims[k] < 0 || dims[k] >= s->rank || s->dims[dims[k]] < 0 ||
        __builtin_mul_overflow(total, s->dims[dims[k]], &total))
      return;
  if (v[0] == LW_FOLD_ROW && total % v[1])
    check_inst_error(c, i,
                     "lawson.fold's run %lld does not divide the %lld "
                     "elements that are reduced",
                     (long long)v[1], (long long)total);
}

static void check_custom_call(check *c, const lw_inst *i) {
  const lw_attr *a = lw_inst_attr(i, LW_ATTR_OPERAND_LAYOUT_CONSTRAINTS);
  if (!a) return;
  if (a->u.shapes.n != i->n_operands) {
    check_inst_error(c, i,
                     "operand_layout_constraints has %d shapes for %d "
                     "operands",
                     a->u.shapes.n, i->n_operands);
    return;
  }
  for (int32_t k = 0; k < i->n_operands; k++)
    if (!lw_shape_compatible(a->u.shapes.v[k], lw_inst_operand(i, k)->shape))
      check_inst_error(c, i,
                       "operand_layout_constraints of operand %d is "
                       "another shape than the operand's",
                       k);
}

/* ---- collectives ---- */

static void check_group_list(check *c, const lw_inst *i,
                             const lw_replica_groups *g) {
  lw_map seen = {0};
  const int64_t *id = g->ids;
  for (int32_t k = 0; k < g->n_groups; k++) {
    if (g->group_sizes[k] < 1)
      check_inst_error(c, i, "replica group %d is empty", k);
    else if (g->group_sizes[k] != g->group_sizes[0])
      check_inst_error(c, i, "replica groups must have one size");
    for (int32_t j = 0; j < g->group_sizes[k]; j++, id++) {
      uint64_t *slot = lw_map_put(&seen, (uint64_t)*id);
      if (*slot)
        check_inst_error(c, i, "device %lld is in two replica groups",
                         (long long)*id);
      if (*id < 0)
        check_inst_error(c, i, "replica groups name the device %lld",
                         (long long)*id);
      *slot = 1;
    }
  }
  lw_map_free(&seen);
}

static void check_group_iota(check *c, const lw_inst *i,
                             const lw_replica_groups *g) {
  int64_t n = 1, want;
  bool ok = g->iota_groups > 0 && g->iota_group_size > 0 &&
            !__builtin_mul_overflow(g->iota_groups, g->iota_group_size, &want);
  for (int32_t k = 0; ok && k < g->n_reshape; k++)
    ok = g->reshape_dims[k] > 0 &&
         !__builtin_mul_overflow(n, g->reshape_dims[k], &n);
  if (!ok || n != want)
    check_inst_error(c, i,
                     "replica groups [%lld,%lld] do not number the "
                     "devices they are reshaped from",
                     (long long)g->iota_groups, (long long)g->iota_group_size);
}

static void check_collective(check *c, const lw_inst *i) {
  const lw_attr *a = lw_inst_attr(i, LW_ATTR_REPLICA_GROUPS);
  if (a && a->u.groups->kind == LW_RG_LISTS)
    check_group_list(c, i, a->u.groups);
  if (a && a->u.groups->kind == LW_RG_IOTA) check_group_iota(c, i, a->u.groups);
  if (lw_inst_i64(i, LW_ATTR_USE_GLOBAL_DEVICE_IDS, 0) &&
      lw_inst_i64(i, LW_ATTR_CHANNEL_ID, 0) <= 0)
    check_inst_error(c, i, "use_global_device_ids needs a channel_id");
  int32_t n;
  const int64_t *p = lw_inst_i64s(i, LW_ATTR_SOURCE_TARGET_PAIRS, &n);
  lw_map seen[2] = {{0}, {0}};
  for (int32_t k = 0; k < n; k++) {
    uint64_t *slot = lw_map_put(&seen[k % 2], (uint64_t)p[k]);
    if (*slot)
      check_inst_error(c, i, "device %lld is the %s of two pairs",
                       (long long)p[k], k % 2 ? "target" : "source");
    if (p[k] < 0)
      check_inst_error(c, i, "source_target_pairs name the device %lld",
                       (long long)p[k]);
    *slot = 1;
  }
  lw_map_free(&seen[0]);
  lw_map_free(&seen[1]);
}

/* The computation of a reducing collective takes two scalars to one. */
static void check_collective_reducer(check *c, const lw_inst *i) {
  const lw_comp *k = lw_inst_comp(i, LW_ATTR_TO_APPLY);
  if (!k || !i->n_operands) return;
  if (k->params.len != 2 || !k->root || !k->root->shape ||
      !lw_shape_is_scalar(k->root->shape))
    check_inst_error(c, i, "to_apply=%s must take two scalars and return one",
                     k->name);
}

/* ---- aliasing of fusions and calls ---- */

const lw_shape *check_subshape(const lw_shape *s, const int64_t *index,
                               int32_t n) {
  for (int32_t k = 0; s && k < n; k++)
    s = lw_shape_is_tuple(s) && index[k] >= 0 && index[k] < s->n_elems
            ? s->elems[index[k]]
            : NULL;
  return s;
}

/* Custom calls must alias equal shapes, unless they say otherwise. */
static bool same_alias_shapes(const lw_inst *i, const lw_shape *a,
                              const lw_shape *b) {
  if (!lw_shape_is_array(a) || !lw_shape_is_array(b)) return true;
  if (i->opcode != LW_OP_CUSTOM_CALL)
    return lw_shape_bytes(a) == lw_shape_bytes(b);
  for (int32_t k = 0; k < i->frontend_attrs.n; k++)
    if (!strcmp(i->frontend_attrs.v[k].key,
                "xla_skip_custom_call_alias_shape_check"))
      return true;
  return a->type == b->type && lw_shape_same_dims(a, b);
}

static void check_output_alias(check *c, const lw_inst *i) {
  const lw_attr *a = lw_inst_attr(i, LW_ATTR_OUTPUT_TO_OPERAND_ALIASING);
  for (int32_t k = 0; a && k < a->u.aliasing.n; k++) {
    const lw_alias *al = &a->u.aliasing.v[k];
    const lw_shape *out =
        check_subshape(i->shape, al->output_index, al->n_output_index);
    if (!out)
      check_inst_error(c, i,
                       "output_to_operand_aliasing names an output that "
                       "is not there");
    if (al->operand < 0 || al->operand >= i->n_operands) {
      check_inst_error(c, i,
                       "output_to_operand_aliasing names operand %lld of "
                       "%d",
                       (long long)al->operand, i->n_operands);
      continue;
    }
    const lw_shape *in =
        check_subshape(lw_inst_operand(i, (int32_t)al->operand)->shape,
                       al->operand_index, al->n_operand_index);
    if (!in)
      check_inst_error(c, i,
                       "output_to_operand_aliasing names a part of "
                       "operand %lld that is not there",
                       (long long)al->operand);
    else if (out && !same_alias_shapes(i, in, out))
      check_inst_error(c, i,
                       "output_to_operand_aliasing pairs %s with %s, which "
                       "differ",
                       lw_infer_shape_str(c->ctx, out),
                       lw_infer_shape_str(c->ctx, in));
  }
}

/* ---- fusions ---- */

static bool side_effect_by_itself(const lw_inst *i) {
  return lw_opcode_table[i->opcode].flags & LW_OPF_SIDE ||
         lw_inst_i64(i, LW_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT, 0);
}

void check_fusion(check *c, const lw_inst *i) {
  const lw_comp *k = lw_inst_comp(i, LW_ATTR_CALLS);
  if (!k) return;
  if (k == c->m->entry)
    check_inst_error(c, i, "the body of a fusion cannot be the entry");
  if (k->root && k->root->n_uses)
    check_inst_error(c, i, "the root of its body, %s, has users",
                     k->root->name);
  for (const lw_inst *j = k->first; j; j = j->next) {
    if ((unsigned)j->opcode >= LW_OPCODE_COUNT) continue;
    if (j != k->root && !j->n_uses && !side_effect_by_itself(j))
      check_inst_error(c, j,
                       "is in the body of %s, but nothing uses it; drop "
                       "it%s",
                       i->name,
                       j->opcode == LW_OP_PARAMETER ? " and the operand" : "");
  }
}

/* ---- asynchronous pairs ---- */

static bool is_async_start(lw_opcode op) {
  return op == LW_OP_ALL_REDUCE_START || op == LW_OP_ALL_GATHER_START ||
         op == LW_OP_COLLECTIVE_PERMUTE_START || op == LW_OP_COPY_START;
}

static lw_opcode start_of(lw_opcode done) {
  switch ((int)done) {
    case LW_OP_ALL_REDUCE_DONE:
      return LW_OP_ALL_REDUCE_START;
    case LW_OP_ALL_GATHER_DONE:
      return LW_OP_ALL_GATHER_START;
    case LW_OP_COLLECTIVE_PERMUTE_DONE:
      return LW_OP_COLLECTIVE_PERMUTE_START;
    case LW_OP_COPY_DONE:
      return LW_OP_COPY_START;
    default:
      return LW_OPCODE_COUNT;
  }
}

/* The state of async-start may travel through tuples, loops and calls. */
static bool passes_state(lw_opcode op) {
  switch ((int)op) {
    case LW_OP_ASYNC_START:
    case LW_OP_ASYNC_UPDATE:
    case LW_OP_CALL:
    case LW_OP_CONDITIONAL:
    case LW_OP_DOMAIN:
    case LW_OP_GET_TUPLE_ELEMENT:
    case LW_OP_OPT_BARRIER:
    case LW_OP_PARAMETER:
    case LW_OP_WHILE:
      return true;
    default:
      return false;
  }
}

static void check_async_body(check *c, const lw_inst *i) {
  const lw_comp *k = lw_inst_comp(i, LW_ATTR_CALLS);
  for (const lw_inst *j = k ? k->first : NULL; j; j = j->next)
    if (j != k->root && j->opcode != LW_OP_PARAMETER &&
        !i->frontend_attrs.n) /* marked groups of collectives hold several */
      check_inst_error(c, j,
                       "an asynchronous computation holds one operation "
                       "and its parameters");
}

static void check_async(check *c, const lw_inst *i) {
  lw_opcode start = start_of(i->opcode);
  lw_opcode have =
      i->n_operands ? lw_inst_operand(i, 0)->opcode : LW_OPCODE_COUNT;
  if (start != LW_OPCODE_COUNT && have != start)
    check_inst_error(c, i, "%s must take a %s", lw_opcode_name(i->opcode),
                     lw_opcode_name(start));
  if ((i->opcode == LW_OP_ASYNC_DONE || i->opcode == LW_OP_ASYNC_UPDATE) &&
      !passes_state(have))
    check_inst_error(c, i, "%s must take an async-start or async-update",
                     lw_opcode_name(i->opcode));
  if (is_async_start(i->opcode) && lw_inst_user_count(i) != 1)
    check_inst_error(c, i, "%s must have exactly one user, its -done",
                     lw_opcode_name(i->opcode));
  if (i->opcode == LW_OP_ASYNC_START) check_async_body(c, i);
}

/* ---- channels ---- */

/* A send or recv of a channel has one user; if that is its -done, both speak
 * of one channel. */
static void check_channel(check *c, const lw_inst *i) {
  int64_t channel = lw_inst_i64(i, LW_ATTR_CHANNEL_ID, 0);
  bool host = lw_inst_i64(i, LW_ATTR_IS_HOST_TRANSFER, 0);
  if (channel < 0)
    check_inst_error(c, i, "channel_id %lld is negative", (long long)channel);
  if (channel <= 0) return;
  if (lw_inst_user_count(i) != 1 && !lw_inst_is_root(i)) {
    check_inst_error(c, i, "%s must have exactly one user, its -done",
                     lw_opcode_name(i->opcode));
    return;
  }
  const lw_inst *done = i->uses ? i->uses->user : NULL;
  lw_opcode want = i->opcode == LW_OP_SEND ? LW_OP_SEND_DONE : LW_OP_RECV_DONE;
  if (!done || done->opcode != want) return;
  int64_t other = lw_inst_i64(done, LW_ATTR_CHANNEL_ID, 0);
  if (other != channel)
    check_inst_error(c, done, "its channel_id %lld is not that of %s, %lld",
                     (long long)other, i->name, (long long)channel);
  if (lw_inst_i64(done, LW_ATTR_IS_HOST_TRANSFER, 0) != host)
    check_inst_error(c, done, "is_host_transfer differs from that of %s",
                     i->name);
}

/* ---- types and layouts ---- */

/* Opcodes that pass data on, group it, or widen by definition may mix. */
static bool wants_one_precision(lw_opcode op) {
  unsigned flags = lw_opcode_table[op].flags;
  if (flags & (LW_OPF_COLL | LW_OPF_ASYNC)) return false;
  switch ((int)op) {
    case LW_OP_CALL:
    case LW_OP_CONDITIONAL:
    case LW_OP_CONVOLUTION:
    case LW_OP_CUSTOM_CALL:
    case LW_OP_DOMAIN:
    case LW_OP_DOT:
    case LW_OP_FUSION:
    case LW_OP_RAGGED_DOT:
    case LW_OP_REDUCE_WINDOW:
    case LW_OP_SCALED_DOT:
    case LW_OP_SORT:
    case LW_OP_TUPLE:
    case LW_OP_WHILE:
      return false;
    default:
      return true;
  }
}

static void check_mixed(check *c, const lw_inst *i) {
  if (c->o.allow_mixed_precision || !wants_one_precision(i->opcode)) return;
  lw_prim first = LW_PRIM_INVALID;
  for (int32_t k = 0; k < i->n_operands; k++) {
    lw_prim t = lw_inst_operand(i, k)->shape->type;
    if (!lw_prim_is_float(t)) continue;
    if (first == LW_PRIM_INVALID) first = t;
    if (t != first) {
      check_inst_error(c, i, "mixes %s and %s; add a convert",
                       lw_prim_name(first), lw_prim_name(t));
      return;
    }
  }
}

static bool same_order(const lw_shape *a, const lw_shape *b) {
  if (!a->layout || !b->layout || a->rank != b->rank) return true;
  return !a->rank ||
         !memcmp(a->layout->minor_to_major, b->layout->minor_to_major,
                 (size_t)a->rank * sizeof(int64_t));
}

static void check_layouts(check *c, const lw_inst *i) {
  if (!c->o.layout_sensitive || !lw_opcode_is_elementwise(i->opcode)) return;
  for (int32_t k = 0; k < i->n_operands; k++) {
    const lw_shape *s = lw_inst_operand(i, k)->shape;
    if (lw_shape_is_array(s) && !same_order(s, i->shape))
      check_inst_error(c, i,
                       "operand %d is %s, but the result %s: an "
                       "elementwise operation cannot change the layout",
                       k, lw_shape_str(c->ctx, s),
                       lw_shape_str(c->ctx, i->shape));
  }
}

/* Where two tuples of one size first differ: *a and *b become the elements. */
static int32_t first_difference(const lw_shape **a, const lw_shape **b) {
  if (!lw_shape_is_tuple(*a) || !lw_shape_is_tuple(*b) ||
      (*a)->n_elems != (*b)->n_elems)
    return -1;
  for (int32_t k = 0; k < (*a)->n_elems; k++) {
    if (lw_shape_compatible((*a)->elems[k], (*b)->elems[k])) continue;
    *a = (*a)->elems[k];
    *b = (*b)->elems[k];
    return k;
  }
  return -1;
}

static void report_shape(check *c, const lw_inst *i, const lw_shape *s) {
  const lw_shape *written = i->shape;
  const char *op = lw_opcode_name(i->opcode);
  int32_t k = first_difference(&s, &written);
  const char *gives = lw_infer_shape_str(c->ctx, s);
  const char *has = lw_infer_shape_str(c->ctx, written);
  if (k >= 0)
    check_inst_error(c, i,
                     "%s gives %s in element %d, but the shape written "
                     "has %s there",
                     op, gives, k, has);
  else
    check_inst_error(c, i, "%s gives %s, but the shape written is %s", op,
                     gives, has);
}

static void check_shape(check *c, const lw_inst *i) {
  const lw_shape *s = NULL;
  lw_status st = lw_infer_shape(c->ctx, i, &s);
  bool mixed = c->o.allow_mixed_precision;
  if (st)
    check_inst_error(c, i, "%s", lw_status_message(st));
  else if (s != i->shape && !lw_shape_compatible(s, i->shape) &&
           !(mixed && lw_shape_compatible_mixed(s, i->shape)))
    report_shape(c, i, s);
  lw_status_free(st);
}

void check_instruction(check *c, const lw_inst *i) {
  check_required(c, i);
  if (i->n_attrs) check_allowed(c, i);
  size_t before = c->d->count;
  check_shape(c, i);
  if (c->d->count == before) { /* these would only repeat it */
    check_mixed(c, i);
    check_layouts(c, i);
  }
  unsigned flags = lw_opcode_table[i->opcode].flags;
  if (flags & LW_OPF_COLL) {
    check_collective(c, i);
    if (flags & LW_OPF_CALLS) check_collective_reducer(c, i);
  }
  if (flags & LW_OPF_ASYNC) check_async(c, i);
  switch ((int)i->opcode) {
    case LW_OP_SEND:
    case LW_OP_RECV:
      check_channel(c, i);
      break;
    case LW_OP_COMPARE:
      check_compare(c, i);
      break;
    case LW_OP_REDUCE:
      check_fold(c, i);
      break;
    case LW_OP_CUSTOM_CALL:
      check_custom_call(c, i);
      check_output_alias(c, i);
      break;
    case LW_OP_FUSION:
      check_fusion(c, i);
      check_output_alias(c, i);
      break;
    case LW_OP_DOT:
    case LW_OP_CONVOLUTION:
      check_precision(c, i);
      break;
    default:
      break;
  }
  if (i->sharding) check_sharding(c, i);
}
