/* Index maps of the operations that move elements (XLA's
 * indexing, written for lw_expr), and of the elementwise ones. */
#include "kernel/index.h"

lw_value lw_value_of(const lw_inst *inst, int32_t leaf) {
  for (;;) {
    switch ((int)inst->opcode) {
      case LW_OP_GET_TUPLE_ELEMENT: {
        const lw_inst *src = lw_inst_operand(inst, 0);
        int64_t n = lw_inst_i64(inst, LW_ATTR_INDEX, 0);
        for (int64_t i = 0; i < n; i++)
          leaf += (int32_t)lw_shape_leaf_count(src->shape->elems[i]);
        inst = src;
        continue;
      }
      case LW_OP_TUPLE: {
        int32_t i = 0;
        for (;; i++) {
          int32_t n =
              (int32_t)lw_shape_leaf_count(lw_inst_operand(inst, i)->shape);
          if (leaf < n) break;
          leaf -= n;
        }
        inst = lw_inst_operand(inst, i);
        continue;
      }
      case LW_OP_OPT_BARRIER:
      case LW_OP_ADD_DEPENDENCY:
      case LW_OP_DOMAIN:
        inst = lw_inst_operand(inst, 0);
        continue;
      default:
        return (lw_value){inst, leaf};
    }
  }
}

bool lw_index_maps(const lw_inst *inst) {
  if (lw_opcode_is_elementwise(inst->opcode)) return true;
  switch ((int)inst->opcode) {
    case LW_OP_BROADCAST:
    case LW_OP_RESHAPE:
    case LW_OP_BITCAST:
    case LW_OP_COPY:
    case LW_OP_TRANSPOSE:
    case LW_OP_SLICE:
    case LW_OP_REVERSE:
    case LW_OP_PAD:
    case LW_OP_CONCATENATE:
    case LW_OP_DYNAMIC_SLICE:
    case LW_OP_DYNAMIC_UPDATE_SLICE:
    case LW_OP_GATHER:
    case LW_OP_MAP:
      return true;
    default:
      return false;
  }
}

static const lw_shape *operand_shape(const lw_inst *i, int32_t slot) {
  return lw_value_shape(lw_value_operand(i, slot));
}

/* Adds a condition; false when it can never hold. */
static bool add_cond(lw_cond *conds, int32_t *n, const lw_expr *e, int64_t lo,
                     int64_t hi, int64_t mod) {
  if (e->hi < lo || e->lo > hi) return false;
  if (e->lo >= lo && e->hi <= hi && (mod <= 1 || lo == hi)) return true;
  conds[(*n)++] = (lw_cond){e, lo, hi, mod};
  return true;
}

static void map_broadcast(const lw_inst *i, const lw_expr *const *idx,
                          const lw_expr **out) {
  int32_t n;
  const int64_t *dims = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  for (int32_t d = 0; d < n; d++) out[d] = idx[dims[d]];
}

static void map_transpose(const lw_inst *i, const lw_expr *const *idx,
                          const lw_expr **out) {
  int32_t n;
  const int64_t *perm = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  for (int32_t d = 0; d < n; d++) out[perm[d]] = idx[d];
}

static void map_reshape(lw_index *ix, const lw_inst *i, const lw_shape *s,
                        const lw_expr *const *idx, const lw_expr **out) {
  const lw_expr *lin = lw_ex_linear(ix, i->shape->rank, i->shape->dims, idx);
  lw_ex_delinear(ix, lin, s->rank, s->dims, out);
}

/* Dims from slowest to fastest in memory. */
static int64_t physical_dim(const lw_shape *s, int32_t k) {
  return s->layout ? s->layout->minor_to_major[s->rank - 1 - k] : k;
}

/* The same bytes in the order of the layouts. */
static void map_bitcast(lw_index *ix, const lw_inst *i, const lw_shape *s,
                        const lw_expr *const *idx, const lw_expr **out) {
  const lw_shape *to = i->shape;
  int64_t dims[LW_MAX_RANK];
  const lw_expr *phys[LW_MAX_RANK];
  for (int32_t k = 0; k < to->rank; k++) {
    dims[k] = to->dims[physical_dim(to, k)];
    phys[k] = idx[physical_dim(to, k)];
  }
  const lw_expr *lin = lw_ex_linear(ix, to->rank, dims, phys);
  for (int32_t k = 0; k < s->rank; k++) dims[k] = s->dims[physical_dim(s, k)];
  lw_ex_delinear(ix, lin, s->rank, dims, phys);
  for (int32_t k = 0; k < s->rank; k++) out[physical_dim(s, k)] = phys[k];
}

static void map_slice(lw_index *ix, const lw_inst *i, const lw_expr *const *idx,
                      const lw_expr **out) {
  int32_t n;
  const int64_t *v = lw_inst_i64s(i, LW_ATTR_SLICE, &n);
  for (int32_t d = 0; d < i->shape->rank; d++)
    out[d] = lw_ex_addc(ix, lw_ex_mul(ix, idx[d], v[3 * d + 2]), v[3 * d]);
}

static void map_reverse(lw_index *ix, const lw_inst *i,
                        const lw_expr *const *idx, const lw_expr **out) {
  int32_t n;
  const int64_t *dims = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  for (int32_t d = 0; d < i->shape->rank; d++) out[d] = idx[d];
  for (int32_t k = 0; k < n; k++) {
    int64_t d = dims[k];
    out[d] = lw_ex_addc(ix, lw_ex_mul(ix, idx[d], -1), i->shape->dims[d] - 1);
  }
}

static bool map_pad(lw_index *ix, const lw_inst *i, const lw_shape *s,
                    const lw_expr *const *idx, const lw_expr **out,
                    lw_cond *conds, int32_t *n_conds) {
  int32_t n;
  const int64_t *v = lw_inst_i64s(i, LW_ATTR_PADDING, &n);
  if (s->elements == 0) return false;
  for (int32_t d = 0; d < s->rank; d++) {
    int64_t low = v[3 * d], step = v[3 * d + 2] + 1;
    const lw_expr *e = lw_ex_addc(ix, idx[d], -low);
    int64_t last = (s->dims[d] - 1) * step;
    if (!add_cond(conds, n_conds, e, 0, last, step)) return false;
    if (lw_ex_is_const(e) && e->c % step != 0) return false;
    out[d] = lw_ex_div(ix, e, step);
  }
  return true;
}

static bool map_concat(lw_index *ix, const lw_inst *i, int32_t slot,
                       const lw_expr *const *idx, const lw_expr **out,
                       lw_cond *conds, int32_t *n_conds) {
  int32_t n;
  int64_t d = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n)[0], at = 0;
  for (int32_t k = 0; k < slot; k++) at += operand_shape(i, k)->dims[d];
  int64_t size = operand_shape(i, slot)->dims[d];
  if (size == 0) return false;
  for (int32_t k = 0; k < i->shape->rank; k++) out[k] = idx[k];
  out[d] = lw_ex_addc(ix, idx[d], -at);
  return add_cond(conds, n_conds, out[d], 0, size - 1, 1);
}

/* The clamped start of dimension d: operand first + d, or element d of the one
 * vector operand of the old form. */
static const lw_expr *start_of(lw_index *ix, const lw_inst *i, int32_t first,
                               int32_t d, int64_t extent) {
  lw_value v = lw_value_operand(i, first);
  if (lw_value_shape(v)->rank == 1) {
    const lw_expr *idx = lw_ex_const(ix, d);
    return lw_ex_value(ix, v.inst, v.leaf, 1, &idx, extent);
  }
  v = lw_value_operand(i, first + d);
  return lw_ex_value(ix, v.inst, v.leaf, 0, NULL, extent);
}

static void map_dynamic_slice(lw_index *ix, const lw_inst *i, const lw_shape *s,
                              const lw_expr *const *idx, const lw_expr **out) {
  for (int32_t d = 0; d < s->rank; d++) {
    int64_t room = s->dims[d] - i->shape->dims[d] + 1;
    out[d] = lw_ex_add(ix, idx[d], start_of(ix, i, 1, d, room));
  }
}

static bool map_update(lw_index *ix, const lw_inst *i, int32_t slot,
                       const lw_expr *const *idx, const lw_expr **out,
                       lw_cond *conds, int32_t *n_conds) {
  const lw_shape *u = operand_shape(i, 1);
  for (int32_t d = 0; d < i->shape->rank; d++) out[d] = idx[d];
  if (slot == 0) return true;
  if (u->elements == 0) return false;
  for (int32_t d = 0; d < u->rank; d++) {
    int64_t room = i->shape->dims[d] - u->dims[d] + 1;
    const lw_expr *start = start_of(ix, i, 2, d, room);
    out[d] = lw_ex_add(ix, idx[d], lw_ex_mul(ix, start, -1));
    if (!add_cond(conds, n_conds, out[d], 0, u->dims[d] - 1, 1)) return false;
  }
  return true;
}

static bool has(const int64_t *v, int32_t n, int64_t x) {
  for (int32_t i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

static void map_gather(lw_index *ix, const lw_inst *i, const lw_shape *s,
                       const lw_expr *const *idx, const lw_expr **out) {
  int32_t n_off, n_coll, n_map, n_sizes, n_ob, n_ib;
  const int64_t *off = lw_inst_i64s(i, LW_ATTR_OFFSET_DIMS, &n_off);
  const int64_t *coll = lw_inst_i64s(i, LW_ATTR_COLLAPSED_SLICE_DIMS, &n_coll);
  const int64_t *map = lw_inst_i64s(i, LW_ATTR_START_INDEX_MAP, &n_map);
  const int64_t *sizes = lw_inst_i64s(i, LW_ATTR_SLICE_SIZES, &n_sizes);
  const int64_t *ob = lw_inst_i64s(i, LW_ATTR_OPERAND_BATCHING_DIMS, &n_ob);
  const int64_t *ib =
      lw_inst_i64s(i, LW_ATTR_START_INDICES_BATCHING_DIMS, &n_ib);
  int64_t ivd = lw_inst_i64(i, LW_ATTR_INDEX_VECTOR_DIM, 0);
  lw_value start = lw_value_operand(i, 1);
  int32_t irank = lw_value_shape(start)->rank;
  const lw_expr *at[LW_MAX_RANK]; /* the index vector's position */
  int32_t next = 0;
  for (int32_t d = 0; d < irank; d++) {
    if (d == ivd) continue;
    while (has(off, n_off, next)) next++;
    at[d] = idx[next++];
  }
  int32_t window = 0;
  for (int32_t d = 0; d < s->rank; d++) {
    bool gone = has(coll, n_coll, d) || has(ob, n_ob, d);
    out[d] = gone ? lw_ex_const(ix, 0) : idx[off[window++]];
  }
  for (int32_t k = 0; k < n_map; k++) {
    if (ivd < irank) at[ivd] = lw_ex_const(ix, k);
    const lw_expr *v = lw_ex_value(ix, start.inst, start.leaf, irank, at,
                                   s->dims[map[k]] - sizes[map[k]] + 1);
    out[map[k]] = lw_ex_add(ix, out[map[k]], v);
  }
  for (int32_t k = 0; k < n_ob; k++)
    out[ob[k]] = lw_ex_add(ix, out[ob[k]], at[ib[k]]);
}

bool lw_index_map(lw_index *ix, const lw_inst *i, int32_t slot,
                  const lw_expr *const *idx, const lw_expr **out,
                  lw_cond *conds, int32_t *n_conds) {
  *n_conds = 0;
  const lw_shape *s = operand_shape(i, slot);
  switch ((int)i->opcode) {
    case LW_OP_BROADCAST:
      return map_broadcast(i, idx, out), true;
    case LW_OP_TRANSPOSE:
      return map_transpose(i, idx, out), true;
    case LW_OP_RESHAPE:
      return map_reshape(ix, i, s, idx, out), true;
    case LW_OP_BITCAST:
      return map_bitcast(ix, i, s, idx, out), true;
    case LW_OP_SLICE:
      return map_slice(ix, i, idx, out), true;
    case LW_OP_REVERSE:
      return map_reverse(ix, i, idx, out), true;
    case LW_OP_PAD:
      return slot == 1 || map_pad(ix, i, s, idx, out, conds, n_conds);
    case LW_OP_CONCATENATE:
      return map_concat(ix, i, slot, idx, out, conds, n_conds);
    case LW_OP_DYNAMIC_SLICE:
      return map_dynamic_slice(ix, i, s, idx, out), true;
    case LW_OP_DYNAMIC_UPDATE_SLICE:
      return map_update(ix, i, slot, idx, out, conds, n_conds);
    case LW_OP_GATHER:
      return map_gather(ix, i, s, idx, out), true;
    default: /* elementwise, map, copy; scalar operands of clamp and select; a
                bitcast-convert to a wider type: the first of its elements */
      for (int32_t d = 0; d < s->rank; d++)
        out[d] = d < i->shape->rank ? idx[d] : lw_ex_const(ix, 0);
      return true;
  }
}
