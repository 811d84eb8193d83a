/* priority-fusion: the default strategy.
 *
 * Every producer is ranked by the time that fusing it into all its readers
 * saves, by the target's cost model: the kernels apart, less the kernels with
 * the producer computed inside. The best is fused, what it touched is ranked
 * again, and so on until nothing is legal and saves time. A producer with
 * several readers is computed in each (duplication); the model charges for the
 * arithmetic and for what each reads in its place.
 *
 * Greedy, and deterministic: equal savings are taken from the end of the
 * computation (the higher position in its post order), so that chains grow
 * towards their producers, which also is the cheapest order to work in. A
 * saving is only trusted when it is looked at: a popped entry is ranked again,
 * and goes back when something better waits.
 *
 * Fusibility is asked first, for each reader: the target's is_fusible on each
 * edge, then what one kernel can hold: a reduce only at the kernel's own
 * element, no read of a buffer at another place than the one the kernel updates
 * there, a bound on how often one value is emitted.
 *
 * Values that something else reads from memory anyway (a dot, a loop, a tuple)
 * stay; instruction-fusion looks at them next.
 */
#include <stdlib.h>

#include "fusion/fuse.h"
#include "fusion/fusion.h"
#include "fusion/groups.h"

enum { MAX_READS = 256 };
#define MAX_CODE 20000.0

/* Emitting a value at more indices than this is code, not speed. */
static const double max_emitted = 16;

typedef struct {
  double saved;
  int32_t pos;
  uint32_t stamp;
} entry;

typedef struct {
  lw_pass_env *env;
  lw_groups *g;
  LW_VEC(entry) heap;
  uint32_t *stamp;       /* by position: of the entry that counts */
  uint16_t *last_reason; /* by position: refusal recorded last, + 1 */
  int32_t *readers;      /* scratch */
  int64_t fused;
} run;

/* ---- the heap ---- */

static bool before(const entry *a, const entry *b) {
  if (a->saved > b->saved) return true;
  return a->saved == b->saved && a->pos > b->pos;
}

static void heap_push(run *r, entry e) {
  lw_vec_push(&r->heap, e);
  size_t k = r->heap.len - 1;
  while (k > 0 && before(&e, &r->heap.data[(k - 1) / 2])) {
    r->heap.data[k] = r->heap.data[(k - 1) / 2];
    k = (k - 1) / 2;
  }
  r->heap.data[k] = e;
}

static entry heap_pop(run *r) {
  entry top = r->heap.data[0], last = lw_vec_pop(&r->heap);
  size_t n = r->heap.len, k = 0;
  if (n == 0) return top;
  for (;;) {
    size_t c = 2 * k + 1;
    if (c >= n) break;
    if (c + 1 < n && before(&r->heap.data[c + 1], &r->heap.data[c])) c++;
    if (!before(&r->heap.data[c], &last)) break;
    r->heap.data[k] = r->heap.data[c];
    k = c;
  }
  r->heap.data[k] = last;
  return top;
}

/* ---- fusibility ---- */

/* The edges themselves: every user must take it, and be a kernel of ours. */
static lw_verdict edges_allow(const run *r, int32_t pos, const lw_inst **user) {
  const lw_groups *g = r->g;
  const lw_inst *p = g->insts[pos];
  for (const lw_use *u = p->uses; u; u = u->next) {
    *user = u->user;
    if (g->pinned[p->id] || g->pinned[u->user->id])
      return lw_verdict_no(LW_REASON_CONTROL_EDGE);
    lw_fusible f = g->target->backend->is_fusible(p, u->user, g->target);
    if (!f.yes) return lw_verdict_no(f.reason);
  }
  if (lw_inst_is_root(p)) return lw_verdict_no(LW_REASON_PRODUCER_IS_ROOT);
  return lw_verdict_yes(LW_REASON_FUSIBLE);
}

static bool same_value(const lw_inst *a, const lw_inst *b) {
  if (a == b) return true;
  return a->opcode == LW_OP_CONSTANT && b->opcode == LW_OP_CONSTANT &&
         lw_literal_equal(lw_inst_literal(a), lw_inst_literal(b));
}

/* A read of the window that the update writes: same starts, same sizes. */
static bool reads_window(const lw_inst *i, const lw_inst *update) {
  if (i->opcode != LW_OP_DYNAMIC_SLICE ||
      !lw_shape_same_dims(i->shape, lw_inst_operand(update, 1)->shape) ||
      i->n_operands + 1 != update->n_operands)
    return false;
  for (int32_t k = 1; k < i->n_operands; k++)
    if (!same_value(lw_inst_operand(i, k), lw_inst_operand(update, k + 1)))
      return false;
  return true;
}

/* The kernel of k updates a buffer in place; with p inside it would read that
 * buffer elsewhere. */
static bool in_place_conflict(const lw_groups *g, const lw_group *k,
                              const lw_group *p) {
  const lw_inst *update = g->insts[k->root];
  if (update->opcode != LW_OP_DYNAMIC_UPDATE_SLICE) return false;
  const lw_inst *buffer = lw_inst_operand(update, 0);
  if (!lw_group_node_of(p, g->pos[buffer->id])) return false;
  if (p->root == g->pos[buffer->id]) return false;
  for (const lw_use *u = buffer->uses; u; u = u->next) {
    int32_t at = g->pos[u->user->id];
    const lw_group_node *n = at >= 0 ? lw_group_node_of(p, at) : NULL;
    if (n && n->inside && !reads_window(u->user, update)) return true;
  }
  return false;
}

static bool at_root_element(const lw_group_node *n) {
  return n->n_cls == 1 && n->cls[0] == LW_CLASS_ROOT;
}

static bool is_small(const lw_groups *g, const lw_group *k, const lw_group *p) {
  return lw_group_work(g, k) + lw_group_work(g, p) < g->small_work;
}

/* A reduce inside is a stage: its readers wait for the whole run it folds. They
 * share a kernel when both can be cut along enough leading dims (a row goes
 * through all stages while it is hot), when they are at the same element, or
 * when all of it is too little to cut. */
static bool reduce_fits(const lw_groups *g, const lw_group *k,
                        const lw_group *p) {
  const lw_group_node *n = lw_group_node_of(k, p->root);
  if (at_root_element(n) && k->n_reduces + p->n_reduces < 16) return true;
  if (lw_group_points_with(g, k, p) >= LW_LEAST_POINTS) return true;
  return is_small(g, k, p);
}

static lw_verdict kernel_allows(const lw_groups *g, const lw_group *k,
                                const lw_group *p) {
  const lw_group_node *n = lw_group_node_of(k, p->root);
  if ((p->n_lone || k->n_lone) && !is_small(g, k, p)) {
    lw_verdict v = lw_verdict_no(LW_REASON_KERNEL_PHASES);
    v.flip = "--pass-option=priority-fusion.small-work=N, N above its work";
    return v;
  }
  if (p->n_reduces && !reduce_fits(g, k, p))
    return lw_verdict_no(LW_REASON_REDUCE_READ_MOVED);
  if (in_place_conflict(g, k, p))
    return lw_verdict_no(LW_REASON_IN_PLACE_CONFLICT);
  if (n->n_cls > LW_MAX_CLASSES || (n->count > max_emitted && p->code > 1))
    return lw_verdict_no(LW_REASON_CODE_DUPLICATION);
  if (k->n_read + p->n_read - 1 > MAX_READS ||
      k->code + n->count * p->code > MAX_CODE) {
    lw_verdict v = lw_verdict_no(LW_REASON_KERNEL_TOO_LARGE);
    v.flip = "a smaller kernel: fewer operands or operations";
    return v;
  }
  return lw_verdict_yes(LW_REASON_FUSIBLE);
}

static void note_refusal(run *r, int32_t pos, const lw_inst *consumer,
                         lw_verdict v) {
  if (r->last_reason[pos] == v.reason + 1) return;
  r->last_reason[pos] = (uint16_t)(v.reason + 1);
  lw_gate_record(r->env->trace, "priority-fusion", r->g->insts[pos], consumer,
                 v);
}

/* A producer is fused into all its readers or none: an entry on any of its
 * edges decides for all of them. */
static lw_override *override_on(const run *r, int32_t pos, int32_t n_readers) {
  const lw_overrides *o = r->env->overrides;
  const lw_inst *p = r->g->insts[pos];
  if (!o || !o->list.len) return NULL;
  for (const lw_use *u = p->uses; u; u = u->next) {
    lw_override *e = lw_override_on(o, r->env->trace, p, u->user, -1);
    if (e) return e;
  }
  for (int32_t k = 0; k < n_readers; k++) {
    const lw_inst *reader = r->g->insts[r->readers[k]];
    lw_override *e = lw_override_on(o, r->env->trace, p, reader, -1);
    if (e) return e;
  }
  return NULL;
}

/* May the value be inline in all its readers? readers: how many. */
static bool fusibility(run *r, int32_t pos, int32_t *n_readers) {
  lw_groups *g = r->g;
  const lw_inst *user = g->insts[pos];
  if (!g->groups[pos] || g->is_inline[pos] || !g->insts[pos]->n_uses)
    return false;
  lw_verdict v = edges_allow(r, pos, &user);
  if (v.yes) {
    *n_readers = lw_groups_readers_of(g, pos, r->readers, g->n);
    for (int32_t k = 0; v.yes && k < *n_readers; k++) {
      user = g->insts[r->readers[k]];
      v = kernel_allows(g, g->groups[r->readers[k]], g->groups[pos]);
    }
  }
  (void)lw_override_verdict(override_on(r, pos, v.yes ? *n_readers : 0), v);
  if (!v.yes) note_refusal(r, pos, user, v);
  return v.yes && *n_readers > 0;
}

/* ---- profitability ---- */

static lw_verdict profitability(const run *r, int32_t pos, int32_t n_readers) {
  const lw_groups *g = r->g;
  const lw_group *p = g->groups[pos];
  lw_verdict v = {0};
  v.unfused_ns = lw_group_ns(g, p);
  for (int32_t k = 0; k < n_readers; k++) {
    const lw_group *reader = g->groups[r->readers[k]];
    v.unfused_ns += lw_group_ns(g, reader);
    v.fused_ns += lw_group_ns_with(g, reader, p);
  }
  v.saved_ns = v.unfused_ns - v.fused_ns;
  if (lw_group_ns(g, p) == 0) v.threshold = -1; /* a name: never in the way */
  v.yes = v.saved_ns > v.threshold;
  v.reason = LW_REASON_SAVES_TIME;
  if (!v.yes) {
    v.reason =
        n_readers > 1 ? LW_REASON_RECOMPUTE_LOSES : LW_REASON_SAVES_NOTHING;
    const lw_group_node *n = lw_group_node_of(g->groups[r->readers[0]], pos);
    if (n->evals > (double)g->insts[pos]->shape->elements)
      v.reason = LW_REASON_RECOMPUTE_LOSES;
    v.flip = lw_arena_printf(
        r->env->scratch, "a launch that costs %.0f ns more, a slower memory",
        -v.saved_ns / n_readers + 1);
  } else {
    v.flip =
        lw_arena_printf(r->env->scratch, "a saving below %.0f ns", v.threshold);
  }
  v.flip = lw_flip_edge(r->env->scratch, v.flip, v.yes, g->insts[pos],
                        g->insts[r->readers[0]]);
  return lw_override_verdict(override_on(r, pos, n_readers), v);
}

static void rank(run *r, int32_t pos) {
  int32_t n;
  if (!fusibility(r, pos, &n)) return;
  lw_verdict v = profitability(r, pos, n);
  if (!v.yes) {
    if (r->last_reason[pos] != v.reason + 1)
      lw_gate_record(r->env->trace, "priority-fusion", r->g->insts[pos],
                     r->g->insts[r->readers[0]],
                     lw_verdict_yes(LW_REASON_FUSIBLE));
    note_refusal(r, pos, r->g->insts[r->readers[0]], v);
    return;
  }
  heap_push(r, (entry){v.saved_ns, pos, ++r->stamp[pos]});
}

/* ---- the loop ---- */

static void record_fused(run *r, int32_t pos, int32_t n, lw_verdict v) {
  for (int32_t k = 0; k < n; k++) {
    const lw_inst *consumer = r->g->insts[r->readers[k]];
    lw_gate_record(r->env->trace, "priority-fusion", r->g->insts[pos], consumer,
                   lw_verdict_yes(LW_REASON_FUSIBLE));
    lw_gate_record(r->env->trace, "priority-fusion", r->g->insts[pos], consumer,
                   v);
  }
}

/* The values the producer read have other readers now, and the readers are
 * bigger producers. */
static void fuse(run *r, int32_t pos, int32_t n) {
  lw_groups *g = r->g;
  int32_t n_again = 0;
  const lw_group *p = g->groups[pos];
  int32_t *again =
      LW_NEW_ARRAY(r->env->scratch, int32_t, (size_t)n + p->nodes.len);
  for (int32_t k = 0; k < n; k++) again[n_again++] = r->readers[k];
  for (size_t j = 0; j < p->nodes.len; j++)
    if (!p->nodes.data[j].inside) again[n_again++] = p->nodes.data[j].pos;
  lw_groups_inline(g, pos);
  for (int32_t k = 0; k < n_again; k++) rank(r, again[k]);
  r->fused++;
  lw_pass_count(r->env, "fused", 1);
  if (n > 1) lw_pass_count(r->env, "duplicated", n - 1);
}

static void fuse_all(run *r) {
  while (r->heap.len) {
    entry e = heap_pop(r);
    if (e.stamp != r->stamp[e.pos]) continue;
    int32_t n;
    if (!fusibility(r, e.pos, &n)) continue;
    lw_verdict v = profitability(r, e.pos, n);
    if (v.saved_ns < e.saved && r->heap.len &&
        v.saved_ns < r->heap.data[0].saved) {
      rank(r, e.pos);
      continue;
    }
    if (!v.yes) {
      rank(r, e.pos); /* leaves the record of the refusal */
      continue;
    }
    if (!lw_pass_fuel(r->env)) return;
    record_fused(r, e.pos, n, v);
    fuse(r, e.pos, n);
  }
}

static bool fuse_computation(lw_comp *c, lw_pass_env *env) {
  const char *small = lw_pass_option_value(env, "small-work");
  run r = {
      .env = env,
      .g = lw_groups_new(c, env->target, strtod(small, NULL), env->scratch)};
  r.stamp = LW_NEW_ARRAY(env->scratch, uint32_t, r.g->n + 1);
  r.last_reason = LW_NEW_ARRAY(env->scratch, uint16_t, r.g->n + 1);
  r.readers = LW_NEW_ARRAY(env->scratch, int32_t, r.g->n + 1);
  for (int32_t k = r.g->n; k-- > 0;) rank(&r, k);
  fuse_all(&r);
  int32_t made = lw_groups_build(r.g, env->trace);
  lw_pass_count(env, "fusions", made);
  lw_groups_free(r.g);
  lw_vec_free(&r.heap);
  return made > 0;
}

static lw_status run_pass(lw_module *m, lw_pass_env *env, bool *changed) {
  int32_t n;
  lw_comp **comps = lw_comps_to_fuse(m, env->scratch, &n);
  for (int32_t k = 0; k < n; k++) *changed |= fuse_computation(comps[k], env);
  return NULL;
}

static const lw_pass_option options[] = {
    {"small-work", "10000",
     "simple operations and words below which a kernel runs as one point"},
    {NULL, NULL, NULL}};

const lw_pass lw_pass_priority_fusion = {
    "priority-fusion",
    "fuses producers into all their readers, the best saving first", options,
    run_pass};
