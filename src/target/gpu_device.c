/* A GPU as the model sees it, read from a target file; the table of op costs;
 * small facts about shapes and instructions that several files need. */
#include <stdlib.h>
#include <string.h>

#include "target/gpu_impl.h"

/* ---- devices ---- */

/* XLA picks its 8-fold unrolling for compute capability 10.x alone. */
static bool is_blackwell(const char *isa) { return !strncmp(isa, "sm_10", 5); }

lw_status lw_gpu_device_of(const lw_target *t, lw_gpu_device *out) {
  if (strcmp(t->backend_name, "gpu"))
    return lw_error(LW_INVALID_ARGUMENT, "target %s is of backend %s, not gpu",
                    t->name, t->backend_name);
  *out = (lw_gpu_device){
      .core_count = (int64_t)t->gpu.core_count,
      .fpus_per_core = (int64_t)t->gpu.fpus_per_core,
      .threads_per_warp = (int64_t)t->gpu.threads_per_warp,
      .threads_per_block_limit = (int64_t)t->gpu.threads_per_block_limit,
      .threads_per_core_limit = (int64_t)t->gpu.threads_per_core_limit,
      .shared_memory_per_block = (int64_t)t->gpu.shared_memory_per_block,
      .shared_memory_per_core = (int64_t)t->gpu.shared_memory_per_core,
      .block_dim_limit_x = (int64_t)t->gpu.block_dim_limit_x,
      .block_dim_limit_y = (int64_t)t->gpu.block_dim_limit_y,
      .block_dim_limit_z = (int64_t)t->gpu.block_dim_limit_z,
      .l2_cache_bytes = (int64_t)t->gpu.l2_cache_bytes,
      .l1_cache_bytes_per_core = (int64_t)t->gpu.l1_cache_bytes_per_core,
      .clock_ghz = t->gpu.clock_ghz,
      .memory_bandwidth = t->gpu.memory_bandwidth,
      .dram_to_l2_transaction_bytes =
          (int64_t)t->gpu.dram_to_l2_transaction_bytes,
      .transactions_per_clock = (int64_t)t->gpu.transactions_per_clock,
      .vector_bits = (int64_t)t->gpu.vector_bits,
      .op_profile = t->isa,
      .is_amd = !strncmp(t->isa, "gfx", 3),
      .is_blackwell = is_blackwell(t->isa)};
  return NULL;
}

/* ---- op costs ---- */

static const struct {
  const char *profile;
  uint16_t opcode;
  uint8_t type;
  int32_t cycles;
} costs[] = {
#define C(profile, op, type, cycles) {#profile, LW_OP_##op, LW_##type, cycles},
#include "target/gpu_cycles.def"
#undef C
};

enum { N_COSTS = sizeof costs / sizeof *costs, DEFAULT_CYCLES = 3 };

static bool has_profile(const char *name) {
  for (int i = 0; i < N_COSTS; i++)
    if (!strcmp(costs[i].profile, name)) return true;
  return false;
}

/* Cycles one element of an elementwise op takes, by its result's type. What no
 * table names takes 3; a device without a table gets that of sm_86. */
void lw_gpu_cycles_init(lw_gpu_model *m) {
  const char *name = has_profile(m->d.op_profile) ? m->d.op_profile : "sm_86";
  for (int op = 0; op < LW_OPCODE_COUNT; op++)
    for (int t = 0; t < LW_PRIM_COUNT; t++) m->cycles[op][t] = DEFAULT_CYCLES;
  for (int i = 0; i < N_COSTS; i++)
    if (!strcmp(costs[i].profile, name))
      m->cycles[costs[i].opcode][costs[i].type] = costs[i].cycles;
}

/* ---- names ---- */

const char *lw_gpu_emitter_name(lw_gpu_emitter e) {
  switch (e) {
    case LW_GPU_LOOP:
      return "loop";
    case LW_GPU_REDUCTION:
      return "reduction";
    case LW_GPU_TRANSPOSE:
      return "transpose";
    case LW_GPU_CONCATENATE:
      return "concatenate";
    case LW_GPU_SCATTER:
      return "scatter";
    case LW_GPU_TRITON:
      return "triton";
    case LW_GPU_CUSTOM:
      return "custom";
    case LW_GPU_SORT:
      return "sort";
  }
  return "?";
}

/* ---- shapes ---- */

int lw_gpu_bits(lw_prim t) { return t == LW_PRED ? 8 : lw_prim_table[t].bits; }

/* Pointers take 8 bytes; a dynamic array carries its sizes behind it; sub-byte
 * elements are packed when the layout says so. */
int64_t lw_gpu_shape_size(const lw_shape *s) {
  if (lw_shape_is_tuple(s)) return 8 * (int64_t)s->n_elems;
  if (s->type == LW_OPAQUE) return 8;
  if (s->type == LW_BUFFER) return lw_gpu_shape_size(s->elems[0]);
  if (!lw_shape_is_array(s)) return 0;
  int64_t size = s->elements * lw_prim_bytes(s->type);
  if (s->layout && s->layout->element_size_bits)
    size = lw_gpu_ceil_div(s->elements * s->layout->element_size_bits, 8);
  return size + (s->dynamic ? 4 * (int64_t)s->rank : 0);
}

int64_t lw_gpu_elements(const lw_shape *s) {
  if (!lw_shape_is_tuple(s)) return s->elements;
  int64_t n = 0;
  for (int32_t k = 0; k < s->n_elems; k++) n += lw_gpu_elements(s->elems[k]);
  return n;
}

int64_t lw_gpu_saturate(float v) {
  if (v != v) return 0;
  if (v >= 9223372036854775808.0f) return INT64_MAX;
  if (v <= -9223372036854775808.0f) return INT64_MIN;
  return (int64_t)v;
}

int64_t lw_gpu_minor(const lw_shape *s, int32_t k) {
  return s->layout ? s->layout->minor_to_major[k] : s->rank - 1 - k;
}

bool lw_gpu_layout_equal(const lw_shape *a, const lw_shape *b) {
  if (a->rank != b->rank) return false;
  for (int32_t k = 0; k < a->rank; k++)
    if (lw_gpu_minor(a, k) != lw_gpu_minor(b, k)) return false;
  return true;
}

bool lw_gpu_equal_but_type(const lw_shape *a, const lw_shape *b) {
  if (lw_shape_is_tuple(a) != lw_shape_is_tuple(b)) return false;
  if (lw_shape_is_tuple(a)) {
    if (a->n_elems != b->n_elems) return false;
    for (int32_t k = 0; k < a->n_elems; k++)
      if (!lw_gpu_equal_but_type(a->elems[k], b->elems[k])) return false;
    return true;
  }
  return lw_shape_same_dims(a, b) && lw_gpu_layout_equal(a, b);
}

/* Physical distance of neighbours along each dim, in elements. */
static void physical_strides(const lw_shape *s, int64_t *stride) {
  int64_t at = 1;
  for (int32_t k = 0; k < s->rank; k++) {
    int64_t d = lw_gpu_minor(s, k);
    stride[d] = at;
    at *= s->dims[d];
  }
}

/* Does each unit index of a lie where the element of b with the same row-major
 * number lies? Asked both ways, that makes the reshape a bitcast. */
static bool units_stay(const lw_shape *a, const lw_shape *b) {
  int64_t pa[LW_MAX_RANK], pb[LW_MAX_RANK], la[LW_MAX_RANK];
  physical_strides(a, pa);
  physical_strides(b, pb);
  lw_shape_strides(a, la);
  for (int32_t d = 0; d < a->rank; d++) {
    if (a->dims[d] <= 1) continue;
    int64_t left = la[d], at = 0;
    for (int32_t k = b->rank - 1; k >= 0; k--) {
      at += left % b->dims[k] * pb[k];
      left /= b->dims[k];
    }
    if (at != pa[d]) return false;
  }
  return true;
}

bool lw_gpu_reshape_is_bitcast(const lw_shape *a, const lw_shape *b,
                               bool ignore_type) {
  if (!ignore_type && a->type != b->type) return false;
  if (a->elements != b->elements) return false;
  return a->elements == 0 || (units_stay(a, b) && units_stay(b, a));
}

/* Same dims in memory order, whatever they are called. XLA asks for the
 * permutation between them the wrong way round, so that only those count that
 * are their own inverses: two dims change places, three never go round. */
static bool transposed_in_place(const lw_shape *a, const lw_shape *b) {
  int64_t to_a[LW_MAX_RANK];
  if (a->rank != b->rank) return false;
  for (int32_t k = 0; k < a->rank; k++) {
    if (a->dims[lw_gpu_minor(a, k)] != b->dims[lw_gpu_minor(b, k)])
      return false;
    to_a[lw_gpu_minor(b, k)] = lw_gpu_minor(a, k);
  }
  for (int32_t k = 0; k < a->rank; k++)
    if (to_a[lw_gpu_minor(a, k)] != lw_gpu_minor(b, k)) return false;
  return true;
}

bool lw_gpu_trivially_reshaped(const lw_shape *a, const lw_shape *b) {
  return lw_gpu_equal_but_type(a, b) || lw_gpu_reshape_is_bitcast(a, b, true) ||
         transposed_in_place(a, b);
}

bool lw_gpu_transpose_is_bitcast(const lw_inst *i) {
  const lw_shape *in = lw_inst_operand(i, 0)->shape, *out = i->shape;
  int32_t n;
  const int64_t *dims = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  if (in->type != out->type || n != out->rank) return false;
  for (int32_t k = 0; k < n; k++)
    if (dims[lw_gpu_minor(out, k)] != lw_gpu_minor(in, k)) return false;
  return true;
}

/* ---- instructions ---- */

bool lw_gpu_is_mof(const lw_inst *i) {
  return lw_gpu_is_fusion(i) && lw_gpu_body(i)->root->opcode == LW_OP_TUPLE;
}

int32_t lw_gpu_operand_index(const lw_inst *user, const lw_inst *def) {
  for (int32_t k = 0; k < user->n_operands; k++)
    if (lw_inst_operand(user, k) == def) return k;
  return -1;
}

bool lw_gpu_uses(const lw_inst *user, const lw_inst *def) {
  return lw_gpu_operand_index(user, def) >= 0;
}

bool lw_gpu_inst_is_fusible(const lw_inst *i) {
  switch ((int)i->opcode) {
    case LW_OP_DOMAIN:
    case LW_OP_PARAMETER:
    case LW_OP_WHILE:
    case LW_OP_CONDITIONAL:
    case LW_OP_CALL:
      return false;
    case LW_OP_FUSION:
    case LW_OP_MAP:
    case LW_OP_REDUCE:
    case LW_OP_REDUCE_WINDOW:
      return true;
    case LW_OP_RNG:
      return lw_inst_user_count(i) <= 1;
    default:
      return !lw_inst_has_side_effect(i);
  }
}
