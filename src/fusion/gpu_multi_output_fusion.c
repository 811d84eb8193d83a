/* gpu-multi-output-fusion: what XLA:GPU's multi_output_fusion of jaxlib 0.10.2
 * does after priority fusion.
 *
 * Instructions are visited from the last to the first. Readers of one value
 * that do not depend on each other become one kernel with several results (the
 * value is read once); then the instruction itself may join one of its readers,
 * which then writes the instruction's result as well as its own (it is not read
 * back). Both need threads that run over one space: the heroes or the loops
 * agree. Joining a reader is asked of the cost model, joining siblings always
 * pays.
 */
#include <string.h>

#include "fusion/fusion.h"
#include "fusion/gpu_fuse.h"
#include "fusion/gpu_rules.h"

enum { SMALL_BYTES = 1024 };

typedef struct {
  gpu_graph g;
  lw_gpu_model *model;
  lw_pass_env *env;
  LW_VEC(int32_t) levels; /* by id */
  bool changed;
} run;

/* ---- reachability ----
 * Each instruction has a level, greater than those of its operands. One reaches
 * only what has a greater level, so that a walk is cut off early: siblings are
 * mostly on one level, and need no walk at all. */

static int32_t *level_at(run *r, const lw_inst *i) {
  while (r->levels.len <= (size_t)i->id) lw_vec_push(&r->levels, 0);
  return &r->levels.data[i->id];
}

/* 0: not known yet. */
static int32_t level_above_operands(run *r, const lw_inst *i) {
  int32_t level = 1;
  for (int32_t k = 0; k < i->n_operands; k++) {
    int32_t below = *level_at(r, lw_inst_operand(i, k));
    if (below >= level) level = below + 1;
  }
  return level;
}

/* After a change of i's operands or readers: levels grow as far as needed. */
static void raise_levels(run *r, const lw_inst *i, int32_t least) {
  LW_VEC(const lw_inst *) stack = {0};
  if (*level_at(r, i) < least) *level_at(r, i) = least;
  lw_vec_push(&stack, i);
  while (stack.len) {
    const lw_inst *j = lw_vec_pop(&stack);
    int32_t level = level_above_operands(r, j);
    if (*level_at(r, j) < level) *level_at(r, j) = level;
    level = *level_at(r, j);
    for (const lw_use *u = j->uses; u; u = u->next)
      if (*level_at(r, u->user) <= level) lw_vec_push(&stack, u->user);
  }
  lw_vec_free(&stack);
}

static void set_levels(run *r, lw_inst *const *order, int32_t n) {
  for (int32_t k = 0; k < n; k++)
    *level_at(r, order[k]) = level_above_operands(r, order[k]);
}

static bool reaches(run *r, const lw_inst *from, const lw_inst *to) {
  if (from == to) return true;
  int32_t limit = *level_at(r, to);
  LW_VEC(const lw_inst *) stack = {0};
  lw_map seen = {0};
  bool found = false;
  if (*level_at(r, from) < limit) lw_vec_push(&stack, from);
  while (stack.len && !found) {
    const lw_inst *i = lw_vec_pop(&stack);
    for (const lw_use *u = i->uses; u && !found; u = u->next) {
      found = u->user == to;
      if (*level_at(r, u->user) >= limit) continue;
      uint64_t *s = lw_map_put(&seen, (uintptr_t)u->user);
      if (!*s) lw_vec_push(&stack, u->user);
      *s = 1;
    }
  }
  lw_vec_free(&stack);
  lw_map_free(&seen);
  return found;
}

/* ---- siblings ---- */

static int rank_of(const lw_inst *i) {
  return gpu_is_multi_output(i) ? 2 : i->opcode == LW_OP_FUSION;
}

static const lw_inst *root_of(const lw_inst *i) {
  return i->opcode == LW_OP_FUSION ? lw_fusion_body(i)->root : i;
}

/* A reduce of several values that a loop computes. */
static bool is_nested_variadic(const run *r, const lw_inst *i) {
  if (!lw_shape_is_tuple(i->shape) || root_of(i)->opcode != LW_OP_REDUCE)
    return false;
  if (i->opcode == LW_OP_FUSION)
    return lw_inst_i64(i, LW_ATTR_KIND, LW_FUSION_LOOP) == LW_FUSION_LOOP;
  return !lw_gpu_is_reduction_fusible(r->model, i);
}

static bool is_candidate(const run *r, const lw_inst *i) {
  int32_t n;
  lw_inst *const *users = gpu_users(&r->g, i, &n);
  if (n == 0 || !lw_gpu_mof_root_able(r->model, i) || is_nested_variadic(r, i))
    return false;
  for (int32_t k = 0; k < n && gpu_is_multi_output(i); k++)
    if (users[k]->opcode != LW_OP_GET_TUPLE_ELEMENT) return false;
  return true;
}

/* The slice through which a reader sees the value, when it is the only use. */
static const lw_inst *only_slice(const lw_inst *parent, const lw_inst *i) {
  if (i->opcode == LW_OP_SLICE) return i;
  if (i->opcode != LW_OP_FUSION) return NULL;
  int32_t slot = lw_fusion_slot(i, parent);
  if (slot < 0) return NULL;
  const lw_inst *p = lw_fusion_body(i)->params.data[slot];
  if (lw_inst_user_count(p) != 1) return NULL;
  return only_slice(p, p->uses->user);
}

static bool slices_apart(const lw_inst *parent, const lw_inst *a,
                         const lw_inst *b) {
  if (lw_shape_is_tuple(parent->shape) ||
      lw_shape_bytes(parent->shape) < SMALL_BYTES)
    return false;
  const lw_inst *s = only_slice(parent, a), *t = only_slice(parent, b);
  if (!s || !t) return false;
  int32_t n, m;
  const int64_t *v = lw_inst_i64s(s, LW_ATTR_SLICE, &n);
  const int64_t *w = lw_inst_i64s(t, LW_ATTR_SLICE, &m);
  for (int32_t k = 0; k + 2 < n && k + 2 < m; k += 3)
    if (v[k] >= w[k + 1] || w[k] >= v[k + 1]) return true;
  return false;
}

static bool updates_in_place(const lw_inst *i) {
  return i->opcode == LW_OP_FUSION &&
         root_of(i)->opcode == LW_OP_DYNAMIC_UPDATE_SLICE;
}

static lw_reason sibling_reason(run *r, const lw_inst *parent, const lw_inst *a,
                                const lw_inst *b) {
  if (reaches(r, a, b) || reaches(r, b, a)) return LW_REASON_CYCLE;
  if (!lw_gpu_shapes_compatible(r->model, a, b)) return LW_REASON_SPACES_DIFFER;
  if (slices_apart(parent, a, b)) return LW_REASON_SPACES_DIFFER;
  if (updates_in_place(a) || updates_in_place(b))
    return LW_REASON_IN_PLACE_CONFLICT;
  if (!lw_gpu_fits_budget(r->model, a, b, false))
    return LW_REASON_KERNEL_TOO_LARGE;
  return LW_REASON_FUSIBLE;
}

static void note(const run *r, const lw_inst *a, const lw_inst *b,
                 lw_verdict v) {
  lw_gate_record(r->env->trace, "gpu-multi-output-fusion", a, b, v);
}

/* What the user makes of a verdict on b reading, or standing beside, a. */
static lw_verdict overridden(const run *r, const lw_inst *a, const lw_inst *b,
                             lw_verdict v) {
  lw_override *e = lw_override_on(r->env->overrides, r->env->trace, a, b,
                                  lw_fusion_slot(b, a));
  if (lw_reason_table[v.reason].gate == LW_GATE_PROFITABILITY)
    v.flip = lw_flip_edge(r->env->scratch, v.flip, v.yes, a, b);
  return lw_override_verdict(e, v);
}

static bool may_join_siblings(run *r, const lw_inst *parent, const lw_inst *a,
                              const lw_inst *b) {
  lw_reason reason = sibling_reason(r, parent, a, b);
  if (reason != LW_REASON_FUSIBLE) {
    note(r, b, a, overridden(r, b, a, lw_verdict_no(reason)));
    return false;
  }
  note(r, b, a, lw_verdict_yes(reason));
  lw_verdict v = lw_verdict_yes(LW_REASON_RULE_ALLOWS);
  v = overridden(r, b, a, v);
  note(r, b, a, v);
  return v.yes;
}

static void join(run *r, lw_inst *fusion, lw_inst *other) {
  bool input = other->opcode == LW_OP_FUSION &&
               lw_inst_i64(other, LW_ATTR_KIND, 0) == LW_FUSION_INPUT;
  int32_t level = *level_at(r, other);
  lw_gpu_model_remove(r->model, other);
  gpu_fuse_outputs(&r->g, fusion, other);
  raise_levels(r, fusion, level);
  if (input) lw_inst_set_i64(fusion, LW_ATTR_KIND, LW_FUSION_INPUT);
  lw_gpu_model_update(r->model, fusion);
  lw_pass_count(r->env, "joined", 1);
  r->changed = true;
}

static lw_inst **siblings_of(run *r, const lw_inst *parent, int32_t *n) {
  int32_t n_users, at = 0;
  lw_inst *const *users = gpu_users(&r->g, parent, &n_users);
  lw_inst **list = LW_NEW_ARRAY(r->env->scratch, lw_inst *, n_users);
  for (int rank = 2; rank >= 0; rank--)
    for (int32_t k = 0; k < n_users; k++)
      if (rank_of(users[k]) == rank && is_candidate(r, users[k]))
        list[at++] = users[k];
  *n = at;
  return list;
}

static void join_siblings(run *r, lw_inst *parent) {
  int32_t n;
  if (lw_shape_is_effective_scalar(parent->shape)) return;
  lw_inst **list = siblings_of(r, parent, &n);
  for (int32_t i = 0; i < n; i++) {
    if (list[i]->opcode != LW_OP_FUSION) continue;
    for (int32_t j = i + 1; j < n;) {
      if (!may_join_siblings(r, parent, list[i], list[j]) ||
          !lw_pass_fuel(r->env)) {
        j++;
        continue;
      }
      join(r, list[i], list[j]);
      memmove(list + j, list + j + 1, (size_t)(n - j - 1) * sizeof *list);
      n--;
    }
  }
}

/* ---- a producer and a reader ---- */

static bool writes_in_place(const lw_inst *i) {
  lw_opcode op = root_of(i)->opcode;
  return op == LW_OP_DYNAMIC_UPDATE_SLICE || op == LW_OP_SCATTER;
}

static bool may_be_output(const lw_inst *i) {
  return !gpu_is_multi_output(i) && !writes_in_place(i) &&
         lw_gpu_loop_fusible(i, true) && !lw_gpu_physically_transposing(i);
}

static bool makes_cycle(run *r, const lw_inst *producer,
                        const lw_inst *consumer) {
  for (int32_t k = 0; k < consumer->n_operands; k++) {
    const lw_inst *o = lw_inst_operand(consumer, k);
    if (o != producer && reaches(r, producer, o)) return true;
  }
  return false;
}

static lw_verdict judge(run *r, const lw_inst *producer,
                        const lw_inst *consumer) {
  if (!lw_gpu_mof_root_able(r->model, consumer))
    return lw_verdict_no(LW_REASON_CONSUMER_KIND);
  if (!lw_gpu_shapes_compatible(r->model, consumer, producer))
    return lw_verdict_no(LW_REASON_SPACES_DIFFER);
  if (makes_cycle(r, producer, consumer)) return lw_verdict_no(LW_REASON_CYCLE);
  if (!lw_gpu_fits_budget(r->model, producer, consumer, false))
    return lw_verdict_no(LW_REASON_KERNEL_TOO_LARGE);
  if (lw_gpu_merged_too_large(r->model, producer, consumer))
    return lw_verdict_no(LW_REASON_CODE_DUPLICATION);
  lw_gpu_times t = lw_gpu_run_times_mof(r->model, producer, consumer);
  lw_verdict v = lw_verdict_yes(LW_REASON_SAVES_TIME);
  v.unfused_ns = (double)t.unfused / 4;
  v.fused_ns = (double)t.fused / 4;
  v.saved_ns = v.unfused_ns - v.fused_ns;
  v.yes = t.fused <= t.unfused;
  if (!v.yes) v.reason = LW_REASON_SAVES_NOTHING;
  return v;
}

static lw_inst *reader_for(run *r, const lw_inst *producer) {
  int32_t n;
  lw_inst *const *users = gpu_users(&r->g, producer, &n);
  if (!may_be_output(producer)) return NULL;
  if (n == 1 && !gpu_is_multi_output(users[0])) return NULL;
  lw_inst *found = NULL;
  for (int32_t k = 0; k < n; k++) {
    lw_verdict v = judge(r, producer, users[k]);
    v = overridden(r, producer, users[k], v);
    note(r, producer, users[k], v);
    if (v.yes && (!found || rank_of(users[k]) > rank_of(found)))
      found = users[k];
  }
  return found;
}

static void join_reader(run *r, lw_inst *producer) {
  lw_inst *consumer = reader_for(r, producer);
  if (!consumer || !lw_pass_fuel(r->env)) return;
  if (consumer->opcode != LW_OP_FUSION) {
    bool input = lw_gpu_input_fusible(r->model, consumer) ||
                 lw_gpu_input_fusible(r->model, producer);
    lw_gpu_model_remove(r->model, consumer);
    consumer = gpu_fusion_of(&r->g, consumer,
                             input ? LW_FUSION_INPUT : LW_FUSION_LOOP);
  }
  int64_t kind = lw_inst_i64(consumer, LW_ATTR_KIND, 0);
  join(r, consumer, producer);
  lw_inst_set_i64(consumer, LW_ATTR_KIND, kind);
}

/* ---- a computation ---- */

static void visit(run *r, lw_comp *c) {
  int32_t n;
  lw_inst **order = lw_comp_post_order(c, r->env->scratch, &n);
  set_levels(r, order, n);
  for (int32_t k = n; k-- > 0;) {
    lw_inst *i = order[k];
    if (!i->parent || i->opcode == LW_OP_CONSTANT || gpu_is_custom_fusion(i))
      continue;
    join_siblings(r, i);
    join_reader(r, i);
  }
}

static lw_status run_pass(lw_module *m, lw_pass_env *env, bool *changed) {
  lw_gpu_device d;
  LW_TRY(lw_gpu_device_of(env->target, &d));
  int32_t n;
  lw_comp **comps = gpu_comps_to_fuse(m, env->scratch, &n);
  for (int32_t k = 0; k < n; k++) {
    run r = {.env = env, .model = lw_gpu_model_new(comps[k], &d)};
    gpu_graph_init_kept(&r.g, comps[k], env->scratch);
    r.g.trace = env->trace;
    visit(&r, comps[k]);
    if (r.changed) {
      gpu_graph_sort(&r.g);
      gpu_graph_settle(&r.g);
    }
    *changed |= r.changed;
    gpu_graph_free(&r.g);
    lw_vec_free(&r.levels);
    lw_gpu_model_free(r.model);
  }
  return NULL;
}

const lw_pass lw_pass_gpu_multi_output_fusion = {
    "gpu-multi-output-fusion", "multi-output fusion as XLA:GPU 0.10.2 does it",
    NULL, run_pass};
