/* What a kernel holds, as bits: the questions that a walk over all of its
 * instructions would answer, asked once an instruction.
 *
 * A kernel's traits are the union of its instructions'. Fusing adds
 * instructions and takes none away, so the union is kept up to date in no time
 * (lw_gpu_model_took), and walks are left for the few kernels that do hold what
 * is looked for.
 */
#include "target/gpu_impl.h"

/* Ops whose loops one thread runs whole: unrolling would cost parallelism, or
 * registers. */
static bool dislikes_unrolling(const lw_inst *i) {
  switch ((int)i->opcode) {
    case LW_OP_REDUCE_WINDOW: {
      const lw_window *w = lw_inst_window(i);
      int64_t size = 1;
      for (int32_t k = 0; w && k < w->rank; k++) size *= w->dims[k].size;
      return size > 8;
    }
    case LW_OP_SORT:
    case LW_OP_DOT:
      return true;
    case LW_OP_CONCATENATE:
      return i->n_operands > 10;
    case LW_OP_REDUCE:
      return lw_shape_is_tuple(i->shape) && i->shape->n_elems > 1;
    default:
      return false;
  }
}

/* Folds 16 elements or more into one: small ones run as loops anyway. */
static bool is_significant_reduce(const lw_inst *i) {
  if (i->opcode != LW_OP_REDUCE || !lw_shape_is_array(i->shape)) return false;
  int64_t out = i->shape->elements;
  return out > 0 && lw_inst_operand(i, 0)->shape->elements / out >= 16;
}

static uint32_t bit(bool yes, gpu_trait t) { return yes ? t : 0; }

static uint32_t traits_of_op(const lw_gpu_model *m, const lw_inst *i) {
  uint32_t t = bit(dislikes_unrolling(i), GPU_DISLIKES_UNROLLING) |
               bit(is_significant_reduce(i), GPU_SIGNIFICANT_REDUCE) |
               bit(lw_gpu_transposes_minor(i), GPU_MINOR_TRANSPOSE) |
               bit(i->opcode == LW_OP_CONCATENATE, GPU_CONCATENATES) |
               bit(i->opcode == LW_OP_REDUCE, GPU_REDUCES) |
               bit(i->opcode == LW_OP_PAD, GPU_PADS) |
               bit(i->opcode == LW_OP_TRANSPOSE, GPU_TRANSPOSES) |
               bit(lw_gpu_is_unnested_reduction(&m->d, i), GPU_OWN_REDUCTION);
  bool tiled = lw_gpu_is_tiled_transpose(i);
  bool moves = i->opcode != LW_OP_PARAMETER && !lw_inst_is_elementwise(i);
  return t | bit(tiled, GPU_TILED_TRANSPOSE) | bit(moves, GPU_MOVES);
}

uint32_t lw_gpu_traits(lw_gpu_model *m, const lw_inst *i) {
  gpu_state *s = lw_gpu_state(m, i);
  if (s->has_traits) return s->traits;
  uint32_t t = 0;
  if (!lw_gpu_is_fusion(i)) {
    t = traits_of_op(m, i);
  } else {
    for (const lw_inst *f = lw_gpu_body(i)->first; f; f = f->next)
      t |= lw_gpu_traits(m, f);
  }
  s = lw_gpu_state(m, i);
  s->has_traits = true;
  return s->traits = t;
}

bool lw_gpu_holds(lw_gpu_model *m, const gpu_adaptor *a, uint32_t traits) {
  for (int32_t k = 0; k < a->n; k++)
    if (lw_gpu_traits(m, a->inst[k]) & traits) return true;
  return false;
}

bool lw_gpu_holds_significant_reduce(lw_gpu_model *m, const lw_inst *i) {
  return (lw_gpu_traits(m, i) & GPU_SIGNIFICANT_REDUCE) != 0;
}

/* XLA calls a fusion elementwise when it is a loop of nothing else. */
bool lw_gpu_is_elementwise(lw_gpu_model *m, const lw_inst *i) {
  if (!lw_gpu_is_fusion(i)) return lw_inst_is_elementwise(i);
  return lw_inst_i64(i, LW_ATTR_KIND, 0) == LW_FUSION_LOOP &&
         !(lw_gpu_traits(m, i) & GPU_MOVES);
}
