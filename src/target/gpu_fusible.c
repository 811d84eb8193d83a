/* What a kernel may hold (service/gpu/gpu_fusible.cc): which ops each emitter
 * takes, how much shared memory and how many parameters there are, and which
 * results one multi-output kernel can write. */
#include <string.h>

#include "target/gpu_impl.h"

/* ---- reductions ---- */

/* f on each root and its hero. */
static bool any_hero(lw_gpu_model *m, const lw_inst *fusion,
                     bool (*f)(lw_gpu_model *, const lw_inst *,
                               const lw_inst *)) {
  lw_arena *arena = lw_arena_new();
  gpu_adaptor a = lw_gpu_adaptor(NULL, fusion);
  int32_t n;
  bool yes = false;
  const lw_inst **roots = lw_gpu_roots_of(fusion, arena, &n);
  for (int32_t k = 0; k < n && !yes; k++)
    yes = f(m, roots[k], lw_gpu_hero(m, &a, roots[k], arena));
  lw_arena_free(arena);
  return yes;
}

static bool is_reduction_root(lw_gpu_model *m, const lw_inst *root,
                              const lw_inst *hero) {
  return lw_gpu_is_real_reduction(&m->d, root, hero);
}

bool lw_gpu_is_reduction_fusible(const lw_gpu_model *m, const lw_inst *i) {
  if (lw_gpu_is_fusion(i))
    return any_hero((lw_gpu_model *)(uintptr_t)m, i, is_reduction_root);
  return lw_gpu_is_unnested_reduction(&m->d, i);
}

/* ---- ops ---- */

/* Which ops that are not elementwise a loop computes as part of a larger one,
 * and which priority fusion takes. */
enum { LOOP = 1, PRIORITY = 2, BOTH = LOOP | PRIORITY };
static const uint8_t takes[LW_OPCODE_COUNT] = {
    [LW_OP_BROADCAST] = BOTH,     [LW_OP_CONCATENATE] = BOTH,
    [LW_OP_DYNAMIC_SLICE] = BOTH, [LW_OP_DYNAMIC_UPDATE_SLICE] = BOTH,
    [LW_OP_GATHER] = BOTH,        [LW_OP_IOTA] = PRIORITY,
    [LW_OP_PAD] = BOTH,           [LW_OP_REDUCE] = PRIORITY,
    [LW_OP_REDUCE_WINDOW] = BOTH, [LW_OP_RESHAPE] = BOTH,
    [LW_OP_REVERSE] = BOTH,       [LW_OP_SCATTER] = PRIORITY,
    [LW_OP_SLICE] = BOTH,         [LW_OP_TRANSPOSE] = BOTH,
};

bool lw_gpu_is_fusible_bitcast(const lw_inst *i) {
  return i->opcode == LW_OP_BITCAST &&
         lw_prim_table[i->shape->type].bits ==
             lw_prim_table[lw_inst_operand(i, 0)->shape->type].bits;
}

/* ---- loops ---- */

static bool universally_loop_fusible(const lw_inst *i) {
  if (i->opcode == LW_OP_COPY) return true; /* never a tiled transpose */
  if (lw_inst_is_elementwise(i) && i->n_operands > 0) return true;
  if (i->opcode == LW_OP_FUSION)
    return lw_inst_i64(i, LW_ATTR_KIND, LW_FUSION_LOOP) == LW_FUSION_LOOP;
  return takes[i->opcode] & LOOP || lw_gpu_is_fusible_bitcast(i);
}

bool lw_gpu_loop_fusible(const lw_inst *i, bool as_producer) {
  if (!as_producer) return universally_loop_fusible(i);
  if (!lw_gpu_inst_is_fusible(i)) return false;
  if (i->opcode == LW_OP_IOTA || i->opcode == LW_OP_CONSTANT) return true;
  if (i->opcode == LW_OP_REDUCE) return !lw_shape_is_tuple(i->shape);
  return universally_loop_fusible(i);
}

bool lw_gpu_physically_transposing(const lw_inst *i) {
  if (lw_gpu_is_fusion(i))
    for (const lw_inst *f = lw_gpu_body(i)->first; f; f = f->next)
      if (lw_gpu_physically_transposing(f)) return true;
  return i->opcode == LW_OP_COPY ||
         (i->opcode == LW_OP_TRANSPOSE && !lw_gpu_transpose_is_bitcast(i));
}

bool lw_gpu_input_fusible_scatter(const lw_inst *i) {
  if (i->opcode == LW_OP_SCATTER) return true;
  return lw_gpu_is_fusion(i) &&
         lw_inst_i64(i, LW_ATTR_KIND, LW_FUSION_LOOP) == LW_FUSION_INPUT &&
         lw_gpu_body(i)->root->opcode == LW_OP_SCATTER;
}

/* ---- what priority fusion takes at all ---- */

static bool priority_fusible(const lw_inst *i) {
  if (!lw_gpu_inst_is_fusible(i)) return false;
  if (i->opcode == LW_OP_FUSION)
    return lw_inst_i64(i, LW_ATTR_KIND, LW_FUSION_LOOP) != LW_FUSION_CUSTOM ||
           lw_gpu_is_triton(i) || lw_inst_is_elementwise(i);
  return lw_inst_is_elementwise(i) || takes[i->opcode] & PRIORITY ||
         lw_gpu_is_fusible_bitcast(i);
}

bool lw_gpu_is_triton(const lw_inst *i) {
  return lw_gpu_is_fusion(i) && i->backend_config &&
         lw_inst_i64(i, LW_ATTR_KIND, LW_FUSION_LOOP) == LW_FUSION_CUSTOM &&
         strstr(i->backend_config, "\"kind\":\"__triton\"");
}

bool lw_gpu_priority_fusible(const lw_inst *i) { return priority_fusible(i); }

lw_fusible lw_gpu_is_fusible(const lw_inst *producer, const lw_inst *consumer,
                             const lw_target *target) {
  (void)target;
  if (lw_inst_is_root(producer))
    return (lw_fusible){false, LW_REASON_PRODUCER_IS_ROOT};
  if (!priority_fusible(producer))
    return (lw_fusible){false, LW_REASON_PRODUCER_KIND};
  if (!priority_fusible(consumer))
    return (lw_fusible){false, LW_REASON_CONSUMER_KIND};
  return (lw_fusible){true, LW_REASON_FUSIBLE};
}

/* ---- budgets ---- */

enum {
  MAX_REDUCTIONS = 8,
  MAX_PARAMETERS = 96, /* and results, of one kernel */
  MAX_IR_SIZE = 10000
};

static int64_t reduction_shared(const lw_inst *i) {
  int64_t bytes = 0;
  for (int32_t k = 0; k < i->n_operands / 2; k++)
    bytes += lw_prim_bytes(lw_inst_operand(i, k)->shape->type);
  return bytes * (lw_gpu_reduction_of(i).is_row ? 32 : 32 * (4 * 32 + 1));
}

static int64_t count_shared(lw_gpu_model *m, const lw_inst *i) {
  if (lw_gpu_is_fusion(i)) {
    int64_t sum = 0;
    for (const lw_inst *f = lw_gpu_body(i)->first; f; f = f->next)
      sum += count_shared(m, f);
    return sum;
  }
  if (lw_gpu_is_unnested_reduction(&m->d, i)) return reduction_shared(i);
  gpu_transpose t;
  return lw_gpu_tiled_transpose(i, &t) ? t.shared_bytes : 0;
}

static int64_t count_reductions(lw_gpu_model *m, const lw_inst *i) {
  if (!lw_gpu_is_fusion(i)) return lw_gpu_is_unnested_reduction(&m->d, i);
  int64_t sum = 0;
  for (const lw_inst *f = lw_gpu_body(i)->first; f; f = f->next)
    sum += count_reductions(m, f);
  return sum;
}

static int64_t shared_of(lw_gpu_model *m, const lw_inst *i) {
  gpu_state *s = lw_gpu_state(m, i);
  if (!s->has_shared)
    s->shared = lw_gpu_traits(m, i) & (GPU_OWN_REDUCTION | GPU_TILED_TRANSPOSE)
                    ? count_shared(m, i)
                    : 0;
  s->has_shared = true;
  return s->shared;
}

static int64_t reductions_of(lw_gpu_model *m, const lw_inst *i) {
  gpu_state *s = lw_gpu_state(m, i);
  if (!s->has_reductions)
    s->reductions =
        lw_gpu_traits(m, i) & GPU_OWN_REDUCTION ? count_reductions(m, i) : 0;
  s->has_reductions = true;
  return s->reductions;
}

static int64_t subshapes(const lw_shape *s) {
  int64_t n = 1;
  for (int32_t k = 0; lw_shape_is_tuple(s) && k < s->n_elems; k++)
    n += subshapes(s->elems[k]);
  return n;
}

/* Operands of either, those of both once, neither of the two themselves. */
static int64_t distinct_operands(lw_gpu_model *m, const lw_inst *a,
                                 const lw_inst *b) {
  int64_t n = 0;
  lw_gpu_visit_begin(m);
  lw_gpu_visit(m, a);
  lw_gpu_visit(m, b);
  for (int32_t k = 0; k < a->n_operands; k++)
    n += lw_gpu_visit(m, lw_inst_operand(a, k));
  for (int32_t k = 0; k < b->n_operands; k++)
    n += lw_gpu_visit(m, lw_inst_operand(b, k));
  return n;
}

static bool fits_parameters(lw_gpu_model *m, const lw_inst *a, const lw_inst *b,
                            bool consumer_producer) {
  int64_t results = subshapes(a->shape) + subshapes(b->shape);
  if (a->n_operands + b->n_operands - 1 + results <= MAX_PARAMETERS)
    return true;
  int64_t n = distinct_operands(m, a, b);
  return (consumer_producer && n <= a->n_operands) ||
         n + results <= MAX_PARAMETERS;
}

lw_gpu_budget lw_gpu_budget_of(lw_gpu_model *m, const lw_inst *a,
                               const lw_inst *b, bool consumer_producer) {
  if (shared_of(m, a) + shared_of(m, b) > m->d.shared_memory_per_block)
    return LW_GPU_OVER_SHARED_MEMORY;
  if (reductions_of(m, a) + reductions_of(m, b) > MAX_REDUCTIONS)
    return LW_GPU_OVER_REDUCTIONS;
  return fits_parameters(m, a, b, consumer_producer) ? LW_GPU_FITS
                                                     : LW_GPU_OVER_PARAMETERS;
}

const char *lw_gpu_shared_memory_text(lw_gpu_model *m) {
  if (!m->shared_memory_text)
    m->shared_memory_text = lw_arena_printf(
        m->arena, "shared memory usage would be over the budget of %lldB",
        (long long)m->d.shared_memory_per_block);
  return m->shared_memory_text;
}

bool lw_gpu_fits_budget(lw_gpu_model *m, const lw_inst *a, const lw_inst *b,
                        bool consumer_producer) {
  return lw_gpu_budget_of(m, a, b, consumer_producer) == LW_GPU_FITS;
}

bool lw_gpu_merged_too_large(lw_gpu_model *m, const lw_inst *producer,
                             const lw_inst *consumer) {
  const gpu_cost *p = lw_gpu_cost(m, producer), *c = lw_gpu_cost(m, consumer);
  int64_t times = 1;
  if (lw_gpu_is_fusion(consumer)) {
    int32_t k = lw_gpu_operand_index(consumer, producer);
    if (k >= 0)
      times = (int64_t)lw_gpu_state(m, lw_gpu_body(consumer)->params.data[k])
                  ->cost.ir_size;
  }
  return lw_gpu_saturate(p->ir_size * (float)times + c->ir_size) > MAX_IR_SIZE;
}

/* ---- multi-output kernels ---- */

static bool is_transpose_root(lw_gpu_model *m, const lw_inst *root,
                              const lw_inst *hero) {
  (void)m;
  (void)root;
  return lw_gpu_is_tiled_transpose(hero);
}

static bool is_custom_fusion(const lw_inst *i) {
  return lw_gpu_is_fusion(i) &&
         lw_inst_i64(i, LW_ATTR_KIND, LW_FUSION_LOOP) == LW_FUSION_CUSTOM;
}

static bool transpose_fusible(lw_gpu_model *m, const lw_inst *i) {
  if (i->opcode == LW_OP_BITCAST || is_custom_fusion(i)) return false;
  if (lw_gpu_is_fusion(i)) return any_hero(m, i, is_transpose_root);
  return lw_gpu_is_tiled_transpose(i);
}

bool lw_gpu_input_fusible(lw_gpu_model *m, const lw_inst *i) {
  return lw_gpu_inst_is_fusible(i) &&
         (lw_gpu_is_reduction_fusible(m, i) ||
          lw_gpu_input_fusible_scatter(i) || transpose_fusible(m, i));
}

bool lw_gpu_mof_root_able(lw_gpu_model *m, const lw_inst *i) {
  if (!lw_gpu_inst_is_fusible(i) || is_custom_fusion(i)) return false;
  bool loop = lw_gpu_is_fusion(i) &&
              lw_inst_i64(i, LW_ATTR_KIND, LW_FUSION_LOOP) == LW_FUSION_LOOP;
  return lw_gpu_is_reduction_fusible(m, i) || transpose_fusible(m, i) || loop ||
         lw_inst_is_elementwise(i);
}

/* The result whose kernel is the most particular. */
static const lw_inst *mof_hero(lw_gpu_model *m, const lw_inst *i,
                               lw_arena *arena) {
  if (!lw_gpu_is_fusion(i)) return i;
  const lw_inst *root = lw_gpu_body(i)->root;
  gpu_adaptor a = lw_gpu_adaptor(NULL, i);
  bool mof = root->opcode == LW_OP_TUPLE;
  int32_t n = mof ? root->n_operands : 1;
  for (int32_t k = 0; k < n; k++) {
    const lw_inst *r = mof ? lw_inst_operand(root, k) : root;
    const lw_inst *h = lw_gpu_hero(m, &a, r, arena);
    if (lw_gpu_is_real_reduction(&m->d, r, h) || lw_gpu_is_tiled_transpose(h))
      return h;
  }
  return mof && n ? lw_inst_operand(root, 0) : root;
}

/* From a parameter to the root by intermediates alone. */
static bool intermediates_out(const lw_inst *p, lw_arena *arena) {
  int32_t n;
  lw_inst **u = lw_inst_users(p, arena, &n);
  if (n != 1) return false;
  while (lw_inst_user_count(u[0]) > 0) {
    if (!lw_gpu_is_intermediate(u[0], 1)) return false;
    u = lw_inst_users(u[0], arena, &n);
  }
  return true;
}

typedef struct {
  const lw_inst *fusion; /* or a plain instruction */
  const lw_inst *hero;
  bool reduces, transposes, nested_transpose;
  gpu_transpose t;
} mof_side;

static void describe(lw_gpu_model *m, const lw_inst *i, mof_side *s,
                     lw_arena *arena) {
  s->fusion = lw_gpu_is_fusion(i) ? i : NULL;
  s->hero = mof_hero(m, i, arena);
  s->reduces = lw_gpu_is_unnested_reduction(&m->d, s->hero);
  s->transposes = lw_gpu_tiled_transpose(s->hero, &s->t);
  s->nested_transpose = s->hero->opcode == LW_OP_TRANSPOSE && !s->transposes;
}

/* A transpose stays tiled when the other side follows it element by element. */
static bool stays_tiled(const mof_side *a, const mof_side *b, lw_arena *arena) {
  if (!a->fusion || !b->fusion) return true;
  int32_t k = a->transposes ? lw_gpu_operand_index(b->fusion, a->fusion) : -1;
  if (k >= 0)
    return intermediates_out(lw_gpu_body(b->fusion)->params.data[k], arena);
  k = b->transposes ? lw_gpu_operand_index(a->fusion, b->fusion) : -1;
  if (k >= 0)
    return intermediates_out(lw_gpu_body(a->fusion)->params.data[k], arena);
  return true;
}

static bool heroes_compatible(const mof_side *a, const mof_side *b,
                              lw_arena *arena) {
  bool a_own = a->transposes || a->reduces, b_own = b->transposes || b->reduces;
  if (a->reduces && b->reduces && !lw_gpu_reduction_equal(b->hero, a->hero))
    return false;
  if (a->transposes && b->transposes && !lw_gpu_transpose_equal(&a->t, &b->t))
    return false;
  if ((a_own && b->nested_transpose) || (a->nested_transpose && b_own))
    return false;
  if ((a->transposes && b->reduces) || (a->reduces && b->transposes))
    return false;
  return stays_tiled(a, b, arena);
}

/* What the kernel loops over: the operand, for ops that read in tiles. */
static const lw_shape *loop_shape(lw_gpu_model *m, const mof_side *s,
                                  lw_arena *arena) {
  const lw_inst *hero = s->hero;
  if (s->fusion) {
    gpu_adaptor a = lw_gpu_adaptor(NULL, s->fusion);
    hero = lw_gpu_hero(m, &a, s->hero, arena);
  }
  if (s->reduces || lw_gpu_is_tiled_transpose(hero))
    return lw_inst_operand(hero, 0)->shape;
  return s->hero->shape;
}

bool lw_gpu_shapes_compatible(lw_gpu_model *m, const lw_inst *a,
                              const lw_inst *b) {
  lw_arena *arena = lw_arena_new();
  mof_side sides[2];
  describe(m, a, &sides[0], arena);
  describe(m, b, &sides[1], arena);
  bool yes = heroes_compatible(&sides[0], &sides[1], arena);
  if (yes) {
    const lw_shape *x = loop_shape(m, &sides[0], arena);
    const lw_shape *y = loop_shape(m, &sides[1], arena);
    bool tuples = lw_shape_is_tuple(x) || lw_shape_is_tuple(y);
    yes = lw_gpu_equal_but_type(x, y) ||
          (!tuples && lw_gpu_trivially_reshaped(x, y));
  }
  lw_arena_free(arena);
  return yes;
}
