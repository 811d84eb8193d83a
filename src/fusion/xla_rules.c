/* XLA:CPU's rules for a fusion edge, jaxlib 0.10.2, oddities included.
 *
 * Sources of the facts: xla/service/instruction_fusion.cc,
 * xla/service/cpu/cpu_instruction_fusion.cc, fusion_node_indexing_evaluation.cc
 * as of XLA 5a9e73cbd925. Fusibility takes what no cost can change (kinds,
 * roots, in-place updates, emission limits of the emitter); profitability what
 * XLA calls expensive or duplicated. XLA mixes the two in one list; since every
 * test but the output fusion refuses, the verdict is the same.
 *
 * Two questions need memory of how a fusion was built. `reused`: is an operand
 * read several times for one output element. `indexing users`: the instructions
 * that compute an index of their own for an operand; the sum of their own
 * counts says how often the operand's code would be emitted.
 */
#include "fusion/xla_rules.h"

#include "fusion/fuse.h"
#include "target/gpu.h"

enum { MAX_REDUCES = 5, MAX_EMITTED = 15, MAX_CONCAT = 8, DOT_BYTES = 16384 };
enum { MAX_DEPTH = 20000 }; /* of paths: the stack's bound, not XLA's rule */
/* Copies of producers that stay, in a module: XLA has no such bound, and runs
 * out of memory on a chain of cheap ops each of which is a result. */
enum { MAX_DUPLICATES = 1000000 };

typedef struct {
  bool reused;
  LW_VEC(const lw_inst *) users; /* indexing users, a set */
} operand_use;

typedef struct {
  lw_map operands; /* def outside -> operand_use */
  int32_t n_reduces;
} fusion_info;

struct xla_rules {
  lw_arena *arena;
  lw_map fusions; /* fusion -> fusion_info */
  lw_map counts;  /* indexing user -> times emitted */
  lw_map unique;  /* producer -> 1: not to be duplicated */
  int64_t duplicates;
};

xla_rules *xla_rules_new(lw_arena *a) {
  xla_rules *x = LW_NEW(a, xla_rules);
  x->arena = a;
  return x;
}

void xla_rules_free(xla_rules *x) {
  for (size_t k = 0; k < x->fusions.len; k++) {
    fusion_info *f = (fusion_info *)(uintptr_t)x->fusions.values[k];
    for (size_t j = 0; j < f->operands.len; j++) {
      operand_use *u = (operand_use *)(uintptr_t)f->operands.values[j];
      if (u) lw_vec_free(&u->users);
    }
    lw_map_free(&f->operands);
  }
  lw_map_free(&x->fusions);
  lw_map_free(&x->counts);
  lw_map_free(&x->unique);
}

/* ---- facts about single instructions ---- */

bool xla_is_fusible(const lw_inst *i) {
  /* an rng's values need the run's seed: a step of its own */
  return i->opcode != LW_OP_RNG && lw_gpu_inst_is_fusible(i);
}

static bool is_loop_fusible(const lw_inst *i) {
  switch ((int)i->opcode) {
    case LW_OP_BITCAST:
    case LW_OP_BROADCAST:
    case LW_OP_CONCATENATE:
    case LW_OP_DYNAMIC_SLICE:
    case LW_OP_DYNAMIC_UPDATE_SLICE:
    case LW_OP_GATHER:
    case LW_OP_IOTA:
    case LW_OP_PAD:
    case LW_OP_REDUCE:
    case LW_OP_RESHAPE:
    case LW_OP_REVERSE:
    case LW_OP_SLICE:
    case LW_OP_TRANSPOSE:
      return true;
    default:
      return lw_inst_is_elementwise(i);
  }
}

static bool is_scalar_like(const lw_inst *i) {
  if (i->opcode == LW_OP_CONSTANT)
    return lw_shape_is_effective_scalar(i->shape);
  return i->opcode == LW_OP_BROADCAST && is_scalar_like(lw_inst_operand(i, 0));
}

/* The CPU pass looks at the dividend here (reference 1.26); kept. */
static bool cheap_division(const lw_inst *i) {
  return lw_prim_is_int(i->shape->type) &&
         is_scalar_like(lw_inst_operand(i, 0));
}

static bool is_expensive(const lw_inst *i) {
  lw_prim t = i->shape->type;
  switch ((int)i->opcode) {
    case LW_OP_ADD:
    case LW_OP_AND:
    case LW_OP_BITCAST:
    case LW_OP_BITCAST_CONVERT:
    case LW_OP_BROADCAST:
    case LW_OP_CEIL:
    case LW_OP_CLAMP:
    case LW_OP_CLZ:
    case LW_OP_COMPARE:
    case LW_OP_COMPLEX:
    case LW_OP_CONCATENATE:
    case LW_OP_CONSTANT:
    case LW_OP_COPY:
    case LW_OP_COPY_DONE:
    case LW_OP_COPY_START:
    case LW_OP_DYNAMIC_SLICE:
    case LW_OP_DYNAMIC_UPDATE_SLICE:
    case LW_OP_FLOOR:
    case LW_OP_GET_TUPLE_ELEMENT:
    case LW_OP_IMAG:
    case LW_OP_INFEED:
    case LW_OP_IOTA:
    case LW_OP_IS_FINITE:
    case LW_OP_MAXIMUM:
    case LW_OP_MINIMUM:
    case LW_OP_MULTIPLY:
    case LW_OP_MULHI:
    case LW_OP_NEGATE:
    case LW_OP_NOT:
    case LW_OP_OPT_BARRIER:
    case LW_OP_OR:
    case LW_OP_XOR:
    case LW_OP_OUTFEED:
    case LW_OP_PAD:
    case LW_OP_PARTITION_ID:
    case LW_OP_POPCNT:
    case LW_OP_REAL:
    case LW_OP_REDUCE_PRECISION:
    case LW_OP_REPLICA_ID:
    case LW_OP_RESHAPE:
    case LW_OP_DYNAMIC_RESHAPE:
    case LW_OP_REVERSE:
    case LW_OP_ROUND_AFZ:
    case LW_OP_ROUND_EVEN:
    case LW_OP_SELECT:
    case LW_OP_SHIFT_LEFT:
    case LW_OP_SHIFT_RIGHT_ARITHMETIC:
    case LW_OP_SHIFT_RIGHT_LOGICAL:
    case LW_OP_SLICE:
    case LW_OP_STOCHASTIC_CONVERT:
    case LW_OP_SUBTRACT:
    case LW_OP_TRANSPOSE:
    case LW_OP_TUPLE:
      return false;
    case LW_OP_CONVERT:
      return lw_inst_operand(i, 0)->shape->type == LW_F32 && t == LW_BF16;
    case LW_OP_ABS:
    case LW_OP_SIGN:
    case LW_OP_COSINE:
    case LW_OP_SINE:
    case LW_OP_TAN:
      return lw_prim_is_complex(t);
    case LW_OP_DIVIDE:
    case LW_OP_REMAINDER:
      return !cheap_division(i);
    default:
      return true;
  }
}

/* Is operand k read several times for one element of the result? */
static bool reuses_operand(const lw_inst *i, int32_t k) {
  switch ((int)i->opcode) {
    case LW_OP_BITCAST:
    case LW_OP_CONCATENATE:
    case LW_OP_RESHAPE:
    case LW_OP_REVERSE:
    case LW_OP_SLICE:
    case LW_OP_TRANSPOSE:
    case LW_OP_GATHER:
      return false;
    case LW_OP_PAD:
      return k > 0;
    case LW_OP_REDUCE:
      return k >= i->n_operands / 2;
    case LW_OP_DYNAMIC_UPDATE_SLICE:
      return k > 1;
    case LW_OP_DOT:
      return !(i->shape->rank <= 1 &&
               lw_inst_operand(i, 1 - k)->shape->rank <= 1);
    default:
      return !lw_inst_is_elementwise(i);
  }
}

static bool same_index(const lw_inst *reader, const lw_shape *s) {
  const lw_shape *r = reader->shape;
  return reader->opcode == LW_OP_TRANSPOSE ||
         (lw_shape_is_array(r) && lw_shape_is_array(s) &&
          r->layout == s->layout && lw_shape_same_dims(r, s));
}

static bool can_output_fuse(const lw_inst *dot) {
  int32_t n;
  if (dot->opcode != LW_OP_DOT || lw_prim_is_complex(dot->shape->type) ||
      dot->shape->rank > 1)
    return false;
  (void)lw_inst_i64s(dot, LW_ATTR_LHS_BATCH_DIMS, &n);
  return n == 0;
}

bool xla_is_output_fusion(const lw_inst *producer, const lw_inst *consumer) {
  return consumer->opcode == LW_OP_ADD && can_output_fuse(producer) &&
         producer->n_uses == 1;
}

static bool could_take_output(const lw_inst *i) {
  for (int32_t k = 0; k < i->n_operands; k++)
    if (xla_is_output_fusion(lw_inst_operand(i, k), i)) return true;
  return false;
}

/* ---- how operands of fusions are read ---- */

static fusion_info *info_of(const xla_rules *x, const lw_inst *fusion) {
  return lw_map_ptr(&x->fusions, fusion);
}

static uint64_t emitted(const xla_rules *x, const operand_use *u) {
  uint64_t n = 0;
  for (size_t k = 0; u && k < u->users.len; k++) {
    uint64_t *c = lw_map_get(&x->counts, (uintptr_t)u->users.data[k]);
    if (c) n += *c;
  }
  return n > 1u << 30 ? 1u << 30 : n;
}

static void add_user(operand_use *u, const lw_inst *user) {
  for (size_t k = 0; k < u->users.len; k++)
    if (u->users.data[k] == user) return;
  lw_vec_push(&u->users, user);
}

static operand_use *use_of(xla_rules *x, fusion_info *f, const lw_inst *def) {
  operand_use *u = lw_map_ptr(&f->operands, def);
  if (u) return u;
  u = LW_NEW(x->arena, operand_use);
  lw_map_set_ptr(&f->operands, def, u);
  return u;
}

/* clone (in the body) reads the operands of src (outside); its own index comes
 * from `from`. */
static void note_operands(xla_rules *x, fusion_info *f, const lw_inst *src,
                          const lw_inst *clone, const operand_use *from,
                          bool reused) {
  for (int32_t k = 0; k < src->n_operands; k++) {
    const lw_inst *def = lw_inst_operand(src, k);
    operand_use *u = use_of(x, f, def);
    u->reused |= reused || reuses_operand(src, k);
    if (same_index(src, def->shape))
      for (size_t j = 0; j < from->users.len; j++)
        add_user(u, from->users.data[j]);
    else
      add_user(u, clone);
  }
}

void xla_rules_created(xla_rules *x, const lw_inst *fusion) {
  fusion_info *f = LW_NEW(x->arena, fusion_info);
  const lw_inst *root = lw_fusion_body(fusion)->root;
  lw_map_set_ptr(&x->fusions, fusion, f);
  *lw_map_put(&x->counts, (uintptr_t)fusion) = 1;
  *lw_map_put(&x->counts, (uintptr_t)root) = 1;
  operand_use self = {0};
  lw_vec_push(&self.users, fusion);
  f->n_reduces = root->opcode == LW_OP_REDUCE;
  for (int32_t k = 0; k < root->n_operands; k++) {
    const lw_inst *p = lw_inst_operand(root, k);
    const lw_inst *def =
        lw_inst_operand(fusion, (int32_t)lw_inst_param_number(p));
    operand_use *u = use_of(x, f, def);
    u->reused |= reuses_operand(root, k);
    add_user(u, same_index(root, def->shape) ? fusion : root);
  }
  lw_vec_free(&self.users);
}

void xla_rules_taken(xla_rules *x, const lw_inst *fusion,
                     const lw_inst *producer, const lw_inst *clone) {
  fusion_info *f = info_of(x, fusion);
  if (!f) return;
  operand_use *u = lw_map_ptr(&f->operands, producer);
  operand_use mine = {0};
  if (u) mine = *u;
  lw_map_set_ptr(&f->operands, producer, NULL);
  *lw_map_put(&x->counts, (uintptr_t)clone) = emitted(x, &mine);
  f->n_reduces += producer->opcode == LW_OP_REDUCE;
  x->duplicates += producer->n_uses > 0;
  note_operands(x, f, producer, clone, &mine, mine.reused);
  lw_vec_free(&mine.users);
}

static bool consumer_reuses(const xla_rules *x, const lw_inst *consumer,
                            int32_t slot) {
  fusion_info *f = info_of(x, consumer);
  if (!f) return reuses_operand(consumer, slot);
  operand_use *u = lw_map_ptr(&f->operands, lw_inst_operand(consumer, slot));
  return u && u->reused;
}

static int64_t real_users(const lw_inst *producer) {
  int64_t n = 0;
  for (const lw_use *u = producer->uses; u; u = u->next) {
    if (u->user->opcode == LW_OP_FUSION)
      n += lw_inst_user_count(lw_fusion_body(u->user)->params.data[u->slot]);
    else
      n++;
  }
  return n;
}

/* Ops whose emitted values are not kept for a second reading. */
static bool invalidates_cache(lw_opcode op) {
  return op == LW_OP_CONCATENATE || op == LW_OP_DOT || op == LW_OP_PAD ||
         op == LW_OP_DYNAMIC_UPDATE_SLICE || op == LW_OP_REDUCE ||
         op == LW_OP_REDUCE_WINDOW;
}

static bool duplicates_code(const xla_rules *x, const lw_inst *producer,
                            const lw_inst *consumer) {
  fusion_info *f = info_of(x, consumer);
  if (!f || producer->opcode == LW_OP_BROADCAST) return false;
  uint64_t n = emitted(x, lw_map_ptr(&f->operands, producer));
  if (n > MAX_EMITTED) return true;
  return invalidates_cache(producer->opcode) &&
         (n > 1 || real_users(producer) > 1);
}

/* ---- the gates ---- */

static bool awkward_concat(const lw_inst *i) {
  if (i->opcode != LW_OP_CONCATENATE) return false;
  if (i->n_operands > MAX_CONCAT) return true;
  int32_t n;
  const int64_t *d = lw_inst_i64s(i, LW_ATTR_DIMENSIONS, &n);
  const lw_shape *s = i->shape;
  if (s->rank < 2 || n < 1) return false;
  int64_t minor = s->layout ? s->layout->minor_to_major[0] : s->rank - 1;
  return d[0] == minor && s->dims[minor] >= 128;
}

static bool small_vector(const lw_inst *i) {
  return i->shape->rank == 1 && lw_shape_bytes(i->shape) < DOT_BYTES;
}

static bool takes_operand(const lw_inst *consumer, int32_t slot) {
  if (consumer->opcode == LW_OP_DOT && consumer->shape->rank <= 1 &&
      small_vector(lw_inst_operand(consumer, 1 - slot)))
    return true;
  if (consumer->opcode == LW_OP_FUSION)
    return lw_inst_i64(consumer, LW_ATTR_KIND, -1) == LW_FUSION_LOOP ||
           is_loop_fusible(consumer);
  return is_loop_fusible(consumer);
}

static bool is_custom(const lw_inst *i) {
  return i->opcode == LW_OP_FUSION &&
         lw_inst_i64(i, LW_ATTR_KIND, 0) == LW_FUSION_CUSTOM;
}

static lw_reason refusal(const xla_rules *x, const lw_inst *producer,
                         const lw_inst *consumer, int32_t slot) {
  if (is_custom(consumer)) return LW_REASON_SKIPPED_COMPUTATION;
  if (producer->opcode == LW_OP_CONSTANT &&
      !lw_shape_is_effective_scalar(producer->shape))
    return LW_REASON_LARGE_CONSTANT;
  if (xla_is_output_fusion(producer, consumer)) return LW_REASON_FUSIBLE;
  if (could_take_output(producer)) return LW_REASON_OUTPUT_FUSION_FIRST;
  if (producer->opcode != LW_OP_FUSION && !is_loop_fusible(producer))
    return LW_REASON_PRODUCER_KIND;
  if (awkward_concat(producer) || awkward_concat(consumer))
    return LW_REASON_CONCAT_SHAPE;
  if (lw_inst_is_root(producer)) return LW_REASON_PRODUCER_IS_ROOT;
  if (!lw_gate_in_place(producer, consumer).yes)
    return LW_REASON_IN_PLACE_CONFLICT;
  fusion_info *f = info_of(x, consumer);
  if (f && producer->opcode == LW_OP_REDUCE && f->n_reduces > MAX_REDUCES)
    return LW_REASON_REDUCE_COUNT;
  if (producer->opcode == LW_OP_CONSTANT && consumer->opcode != LW_OP_FUSION)
    return LW_REASON_LONE_CONSTANT;
  if (producer->opcode == LW_OP_FUSION) return LW_REASON_PRODUCER_IS_FUSION;
  if (duplicates_code(x, producer, consumer)) return LW_REASON_CODE_DUPLICATION;
  if (x->duplicates >= MAX_DUPLICATES && lw_inst_user_count(producer) > 1)
    return LW_REASON_CODE_DUPLICATION;
  if (!takes_operand(consumer, slot)) return LW_REASON_CONSUMER_KIND;
  return LW_REASON_FUSIBLE;
}

lw_verdict xla_fusibility(void *rules, const lw_inst *consumer, int32_t slot) {
  const lw_inst *producer = lw_inst_operand(consumer, slot);
  lw_reason r = refusal(rules, producer, consumer, slot);
  return r == LW_REASON_FUSIBLE ? lw_verdict_yes(r) : lw_verdict_no(r);
}

/* Broadcasts, and conversions to a wider type, are recomputed rather than
 * stored. */
static bool always_duplicable(const lw_inst *i) {
  if (i->opcode == LW_OP_BROADCAST) return true;
  return i->opcode == LW_OP_CONVERT &&
         lw_shape_bytes(lw_inst_operand(i, 0)->shape) <
             lw_shape_bytes(i->shape);
}

lw_verdict xla_profitability(void *rules, const lw_inst *consumer,
                             int32_t slot) {
  const xla_rules *x = rules;
  const lw_inst *producer = lw_inst_operand(consumer, slot);
  if (lw_map_get(&x->unique, (uintptr_t)producer) &&
      *lw_map_get(&x->unique, (uintptr_t)producer))
    return lw_verdict_no(LW_REASON_WIDE_DUPLICATED);
  if (xla_is_output_fusion(producer, consumer))
    return lw_verdict_yes(LW_REASON_RULE_ALLOWS);
  bool expensive = is_expensive(producer);
  if (expensive && consumer_reuses(x, consumer, slot))
    return lw_verdict_no(LW_REASON_EXPENSIVE_REUSED);
  if (expensive && lw_inst_user_count(producer) != 1 &&
      !always_duplicable(producer))
    return lw_verdict_no(LW_REASON_EXPENSIVE_DUPLICATED);
  return lw_verdict_yes(LW_REASON_RULE_ALLOWS);
}

/* ---- ComputeGloballyUnfusible ---- */

static int32_t true_rank(const lw_shape *s) {
  int32_t n = 0;
  if (lw_shape_is_tuple(s)) {
    for (int32_t k = 0; k < s->n_elems; k++) {
      int32_t r = true_rank(s->elems[k]);
      if (r > n) n = r;
    }
    return n;
  }
  for (int32_t d = 0; d < s->rank; d++) n += s->dims[d] != 1;
  return n;
}

static double element_count(const lw_shape *s) {
  if (!lw_shape_is_tuple(s))
    return lw_shape_is_array(s) ? (double)s->elements : 0;
  double n = 0;
  for (int32_t k = 0; k < s->n_elems; k++) n += element_count(s->elems[k]);
  return n;
}

static bool at_most_unary(const lw_inst *i) {
  int32_t rank = true_rank(i->shape), n = 0;
  for (int32_t k = 0; k < i->n_operands; k++) {
    const lw_inst *o = lw_inst_operand(i, k);
    if (o->opcode == LW_OP_BROADCAST || o->opcode == LW_OP_IOTA) continue;
    if (o->opcode == LW_OP_CONSTANT && lw_shape_is_effective_scalar(o->shape))
      continue;
    n += true_rank(o->shape) >= rank;
  }
  return n <= 1;
}

static bool reads_more_than_it_makes(const lw_inst *i) {
  double in = 0;
  for (int32_t k = 0; k < i->n_operands; k++) {
    bool first = true;
    for (int32_t j = 0; j < k; j++)
      first &= lw_inst_operand(i, j) != lw_inst_operand(i, k);
    if (first) in += element_count(lw_inst_operand(i, k)->shape);
  }
  return in > element_count(i->shape);
}

typedef struct {
  xla_rules *x;
  const lw_gates *gates;
  int32_t *index; /* post order position by id */
  int32_t *reach; /* by id: stamp when reachable from the producer */
  int32_t *seen;  /* by id: stamp * 2 + verdict */
  int32_t stamp, depth;
} paths;

/* Marks everything reachable from `from` whose position is below limit. */
static void mark_reachable(paths *p, const lw_inst *from, int32_t limit) {
  LW_VEC(const lw_inst *) stack = {0};
  lw_vec_push(&stack, from);
  p->reach[from->id] = p->stamp;
  while (stack.len) {
    const lw_inst *i = lw_vec_pop(&stack);
    for (const lw_use *u = i->uses; u; u = u->next)
      if (p->reach[u->user->id] != p->stamp && p->index[u->user->id] <= limit) {
        p->reach[u->user->id] = p->stamp;
        lw_vec_push(&stack, u->user);
      }
  }
  lw_vec_free(&stack);
}

static bool fuses_on_all_paths(paths *p, const lw_inst *producer,
                               const lw_inst *consumer) {
  if (consumer == producer) return true;
  if (!xla_is_fusible(consumer)) return false;
  if (p->seen[consumer->id] / 2 == p->stamp)
    return p->seen[consumer->id] % 2 != 0;
  bool ok = ++p->depth < MAX_DEPTH;
  for (int32_t k = 0; ok && k < consumer->n_operands; k++) {
    const lw_inst *o = lw_inst_operand(consumer, k);
    if (p->reach[o->id] != p->stamp) continue;
    ok = lw_gates_peek(p->gates, consumer, k) &&
         fuses_on_all_paths(p, producer, o);
  }
  p->depth--;
  p->seen[consumer->id] = 2 * p->stamp + ok;
  return ok;
}

static bool all_users_take(paths *p, const lw_inst *producer) {
  int32_t limit = 0;
  p->stamp++;
  for (const lw_use *u = producer->uses; u; u = u->next)
    if (p->index[u->user->id] > limit) limit = p->index[u->user->id];
  mark_reachable(p, producer, limit);
  for (const lw_use *u = producer->uses; u; u = u->next)
    if (!fuses_on_all_paths(p, producer, u->user)) return false;
  return true;
}

void xla_rules_find_unique(xla_rules *x, lw_inst **order, int32_t n,
                           const lw_gates *gates) {
  if (n == 0) return;
  size_t ids = (size_t)order[0]->parent->module->n_inst_ids + 1;
  paths p = {.x = x, .gates = gates};
  p.index = LW_NEW_ARRAY(x->arena, int32_t, ids);
  p.reach = LW_NEW_ARRAY(x->arena, int32_t, ids);
  p.seen = LW_NEW_ARRAY(x->arena, int32_t, ids);
  for (int32_t k = 0; k < n; k++) p.index[order[k]->id] = k;
  for (int32_t k = n; k-- > 0;) {
    const lw_inst *i = order[k];
    if (at_most_unary(i) || !reads_more_than_it_makes(i)) continue;
    if (xla_is_fusible(i) && all_users_take(&p, i)) continue;
    *lw_map_put(&x->unique, (uintptr_t)i) = 1;
  }
}

void xla_rules_forget(xla_rules *x, const lw_inst *i) {
  if (lw_map_get(&x->unique, (uintptr_t)i))
    *lw_map_put(&x->unique, (uintptr_t)i) = 0;
}
