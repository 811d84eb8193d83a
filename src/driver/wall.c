/* The wall: a value that is needed again once a whole run of it was folded.
 *
 * Softmax needs the row's maximum before the first exponential and the row's
 * sum before the first division. Whatever a fusion does, the row must be there
 * twice: the arithmetic is the same, only where the value lives changes. Two
 * forms, both read off the fused module:
 *
 * In memory: one kernel folds the value, another one, which waits for the
 * fold's result, reads the value again. All of it is written and read back, at
 * the level of the memory that holds it.
 *
 * In a kernel: the fold and the second use are stages of one kernel. Rows go
 * through one block at a time; nothing crosses to memory until a block outgrows
 * the core's L2. The extent says from which run length that is so; beyond it
 * only another algorithm helps (docs/wall.md).
 */
#include <string.h>

#include "driver/explain_impl.h"
#include "fusion/fuse.h"
#include "kernel/kernel.h"

typedef LW_VEC(const lw_inst *) inst_list;

/* Everything that i's result flows into, i not among it; stop is not passed. */
static void flow(const lw_inst *i, const lw_inst *stop, lw_map *into) {
  inst_list todo = {0};
  lw_vec_push(&todo, i);
  while (todo.len) {
    const lw_inst *v = lw_vec_pop(&todo);
    for (const lw_use *u = v->uses; u; u = u->next) {
      if (u->user == stop || lw_map_ptr(into, u->user)) continue;
      lw_map_set_ptr(into, u->user, u->user);
      lw_vec_push(&todo, u->user);
    }
  }
  lw_vec_free(&todo);
}

static bool folds_operand(const lw_use *u) {
  return u->user->opcode == LW_OP_REDUCE && u->slot < u->user->n_operands / 2;
}

static int64_t run_of(const lw_inst *reduce) {
  const lw_shape *out = lw_shape_leaf(reduce->shape, 0);
  int64_t in = lw_inst_operand(reduce, 0)->shape->elements;
  return out->elements > 0 ? in / out->elements : 0;
}

/* The reduce that folds a value of that size in what flows from it, or NULL. */
static const lw_inst *fold_below(const lw_inst *v, int64_t elements) {
  lw_map into = {0};
  const lw_inst *found = NULL;
  lw_map_set_ptr(&into, v, v);
  flow(v, NULL, &into);
  for (size_t k = 0; k < into.len && !found; k++) {
    const lw_inst *i = (const lw_inst *)(uintptr_t)into.values[k];
    for (const lw_use *u = i->uses; u && !found; u = u->next)
      if (folds_operand(u) && i->shape->elements == elements &&
          run_of(u->user) > 1)
        found = u->user;
  }
  lw_map_free(&into);
  return found;
}

/* The parameter of a kernel's body that stands for v, by whatever name. */
static const lw_inst *stands_for(const lw_inst *kernel, const lw_inst *v) {
  for (int32_t k = 0; k < kernel->n_operands; k++) {
    const lw_inst *o = lw_inst_operand(kernel, k);
    while (o != v &&
           (o->opcode == LW_OP_BITCAST || o->opcode == LW_OP_OPT_BARRIER))
      o = lw_inst_operand(o, 0);
    if (o != v) continue;
    const lw_comp *body =
        lw_inst_is_fusion(kernel) ? lw_fusion_body(kernel) : NULL;
    return body && (size_t)k < body->params.len ? body->params.data[k] : v;
  }
  return NULL;
}

/* The reduce by which a kernel folds v. */
static const lw_inst *fold_in(const lw_inst *kernel, const lw_inst *v) {
  if (kernel->opcode == LW_OP_REDUCE)
    return lw_inst_operand(kernel, 0)->shape->elements == v->shape->elements &&
                   run_of(kernel) > 1
               ? kernel
               : NULL;
  const lw_inst *p = lw_inst_is_fusion(kernel) ? stands_for(kernel, v) : NULL;
  return p ? fold_below(p, v->shape->elements) : NULL;
}

static const char *first_use(const explaining *x, const lw_inst *kernel,
                             const lw_inst *v) {
  const lw_inst *p = stands_for(kernel, v);
  const lw_use *u = p && p != v ? p->uses : NULL;
  return lw_trace_origin(x->trace, u ? u->user->name : kernel->name);
}

static const char *needs_text(explaining *x, const lw_inst *reduce,
                              const char *again) {
  return lw_arena_printf(x->e->arena,
                         "all %lld elements of a run, for %s, before %s",
                         (long long)run_of(reduce),
                         lw_trace_origin(x->trace, reduce->name), again);
}

/* The run from which bytes no longer fit, other dims as they are. */
static int64_t extent_of(double fits, double bytes, int64_t run) {
  if (bytes <= 0 || run <= 0) return 0;
  return (int64_t)(fits / (bytes / (double)run)) + 1;
}

static double last_level_bytes(const explaining *x) {
  return x->cpu ? x->target->v.l3_bytes : x->target->gpu.l2_cache_bytes;
}

static void add_in_memory(explaining *x, const lw_inst *v, const char *shape,
                          const lw_inst *reduce, const char *again) {
  int64_t bytes = lw_shape_bytes(v->shape), run = run_of(reduce);
  lw_explain_wall w = {
      .value = lw_trace_origin(x->trace, v->name),
      .name = v->name,
      .shape = shape,
      .bytes = bytes,
      .needs = needs_text(x, reduce, again),
      .crosses = explain_level(x->target, (double)bytes),
      .strategy = x->e->strategy,
      .in_memory = true,
      .input = v->opcode == LW_OP_PARAMETER,
      .run = run,
      .extent = extent_of(last_level_bytes(x) / 2, (double)bytes, run),
      .source = explain_source(x, v->name)};
  lw_vec_push(&x->e->walls, w);
}

bool explain_wall_of(explaining *x, const lw_inst *v, const lw_inst **readers,
                     int32_t n, const char *shape) {
  for (int32_t k = 0; k < n; k++) {
    const lw_inst *reduce = n > 1 ? fold_in(readers[k], v) : NULL;
    if (!reduce) continue;
    lw_map into = {0};
    const lw_inst *again = NULL;
    flow(readers[k], NULL, &into);
    for (int32_t j = 0; j < n && !again; j++)
      if (j != k && lw_map_ptr(&into, readers[j])) again = readers[j];
    lw_map_free(&into);
    if (!again) continue;
    add_in_memory(x, v, shape, reduce, first_use(x, again, v));
    return true;
  }
  return false;
}

/* ---- inside a kernel ---- */

/* What waits for the reduce and reads v, or what comes of v, as well. */
static const lw_inst *second_use(const lw_inst *v, const lw_inst *reduce) {
  lw_map of_v = {0}, of_reduce = {0};
  const lw_inst *found = NULL;
  lw_map_set_ptr(&of_v, v, v);
  flow(v, reduce, &of_v);
  lw_map_set_ptr(&of_reduce, reduce, reduce);
  flow(reduce, NULL, &of_reduce);
  for (const lw_inst *i = reduce->next; i && !found; i = i->next) {
    if (!lw_map_ptr(&of_reduce, i) || i->opcode == LW_OP_TUPLE) continue;
    for (int32_t k = 0; k < i->n_operands && !found; k++) {
      const lw_inst *o = lw_inst_operand(i, k);
      if (lw_map_ptr(&of_v, o) && !lw_map_ptr(&of_reduce, o)) found = i;
    }
  }
  lw_map_free(&of_v);
  lw_map_free(&of_reduce);
  return found;
}

/* The nearest value of the reduce's size, going up from its operand, that is
 * used again. */
static const lw_inst *held_value(const lw_inst *reduce, const lw_inst **again) {
  const lw_inst *v = lw_inst_operand(reduce, 0);
  int64_t elements = v->shape->elements;
  for (int depth = 0; depth < 64; depth++) {
    *again = second_use(v, reduce);
    if (*again) return v;
    const lw_inst *up = NULL;
    for (int32_t k = 0; k < v->n_operands && !up; k++)
      if (lw_inst_operand(v, k)->shape->elements == elements)
        up = lw_inst_operand(v, k);
    if (!up) return NULL;
    v = up;
  }
  return NULL;
}

/* Bytes of one row in all stages of the kernel; *whole: the value has a buffer
 * between phases, all of it. */
static int64_t row_bytes(const lw_kernel *k, const lw_inst *v, bool *whole) {
  const lw_place *p = lw_kernel_place(k, v);
  int64_t most = 0;
  *whole = p->kind == LW_PLACE_STAGED &&
           k->stages[p->stage].dests[p->result].kind == LW_DEST_KERNEL_SCRATCH;
  for (int32_t s = 0; s < k->n_phases; s++) {
    const lw_phase *ph = &k->phases[s];
    int64_t points = ph->n_points > 0 ? ph->n_points : 1;
    int64_t grain = ph->grain > 0 ? ph->grain : 1;
    int64_t bytes = ph->thread_scratch_bytes / grain;
    int64_t own = lw_shape_bytes(v->shape) / points;
    if (bytes < own) bytes = own;
    if (bytes > most) most = bytes;
  }
  return most;
}

static void add_inside(explaining *x, const lw_inst *fusion, const lw_kernel *k,
                       const lw_inst *reduce, const lw_inst *v,
                       const lw_inst *again) {
  bool whole = false, input = v->opcode == LW_OP_PARAMETER;
  const lw_inst *outside =
      input ? lw_inst_operand(fusion, (int32_t)lw_inst_param_number(v)) : v;
  lw_buf shape = {0};
  lw_shape_print(&shape, v->shape, false);
  int64_t bytes = lw_shape_bytes(v->shape), run = run_of(reduce);
  lw_explain_wall w = {
      .value = lw_trace_origin(x->trace, outside->name),
      .name = fusion->name,
      .shape = lw_arena_strdup(x->e->arena, lw_buf_cstr(&shape), shape.len),
      .bytes = bytes,
      .needs = needs_text(x, reduce, lw_trace_origin(x->trace, again->name)),
      .crosses = "nothing",
      .strategy = x->e->strategy,
      .run = run,
      .source = explain_source(x, outside->name)};
  lw_buf_free(&shape);
  if (k) {
    w.row_bytes = row_bytes(k, v, &whole);
    w.extent = extent_of(x->target->v.l2_bytes, (double)w.row_bytes, run);
    if ((double)w.row_bytes > x->target->v.l2_bytes) /* a row a core */
      w.crosses =
          2 * (double)w.row_bytes * x->target->v.cores <= x->target->v.l3_bytes
              ? "L3"
              : "DRAM";
  }
  if (whole) {
    w.in_memory = true;
    w.crosses = explain_level(x->target, (double)bytes);
    w.extent = extent_of(last_level_bytes(x) / 2, (double)bytes, run);
  }
  lw_vec_push(&x->e->walls, w);
}

void explain_walls_inside(explaining *x, const lw_inst *fusion) {
  lw_kernel *k = NULL;
  bool built = !x->cpu;
  for (const lw_inst *i = lw_fusion_body(fusion)->first; i; i = i->next) {
    const lw_inst *again;
    if (i->opcode != LW_OP_REDUCE || run_of(i) <= 1) continue;
    const lw_inst *v = held_value(i, &again);
    if (!v) continue;
    if (!built) {
      lw_kernel_options o = {.l1_bytes = (int64_t)x->target->v.l1_bytes,
                             .l2_bytes = (int64_t)x->target->v.l2_bytes,
                             .flush_denormals = x->flush_denormals};
      lw_status st = lw_kernel_build(x->e->arena, fusion, &o, &k);
      if (st) k = NULL; /* no code for it: the wall is there all the same */
      lw_status_free(st);
      built = true;
    }
    add_inside(x, fusion, k, i, v, again);
  }
}
