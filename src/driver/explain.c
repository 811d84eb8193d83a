/* Edges and values with their reasons; see explain.h. The wall has a file of
 * its own, wall.c. */
#include "driver/explain.h"
#include "fusion/report.h"

#include <string.h>

#include "driver/explain_impl.h"
#include "fusion/fuse.h"

const char *lw_left_class_name(lw_left_class c) {
  static const char *const names[] = {"refused-by-rule", "not-worth-it", "wall",
                                      "library", "not-asked"};
  return names[c];
}

/* ---- sources ---- */

lw_explain_source lw_source_of(const lw_module *m, const lw_metadata *md) {
  lw_explain_source s = {"", "", 0};
  if (!md) return s;
  if (md->op_name) s.op_name = md->op_name;
  if (md->source_file && *md->source_file) {
    s.file = md->source_file;
    s.line = md->source_line;
    return s;
  }
  int64_t frame = md->stack_frame_id;
  if (frame < 1 || frame > m->n_stack_frames) return s;
  int64_t at = m->stack_frames[frame - 1].file_location_id;
  if (at < 1 || at > m->n_file_locations) return s;
  const lw_file_location *l = &m->file_locations[at - 1];
  if (l->file_name_id < 1 || l->file_name_id > m->n_file_names) return s;
  s.file = m->file_names[l->file_name_id - 1];
  s.line = l->line;
  return s;
}

static uint64_t key_of(const char *name) {
  return lw_hash_bytes(name, strlen(name), 7);
}

static const char *keep(explaining *x, const char *s) {
  return lw_arena_strdup(x->e->arena, s, strlen(s));
}

/* Every instruction by name; earlier entries stay. */
static void learn_sources(explaining *x, const lw_module *m) {
  for (const lw_comp *c = m->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next) {
      uint64_t *slot = lw_map_put(&x->sources, key_of(i->name));
      if (*slot) continue;
      lw_explain_source *s = LW_NEW(x->e->arena, lw_explain_source);
      *s = lw_source_of(m, i->metadata);
      s->op_name = keep(x, s->op_name);
      s->file = keep(x, s->file);
      *slot = (uintptr_t)s;
    }
}

lw_explain_source explain_source(const explaining *x, const char *name) {
  const uint64_t *s =
      lw_map_get(&x->sources, key_of(lw_trace_origin(x->trace, name)));
  if (!s) s = lw_map_get(&x->sources, key_of(name));
  if (s) return *(const lw_explain_source *)(uintptr_t)*s;
  return (lw_explain_source){"", "", 0};
}

/* The module as it is right before the fusion passes: the edges' names are
 * from there. */
static void learn_unfused(explaining *x, const lw_module *m,
                          const lw_compile_options *o) {
  lw_compile_options plain = *o;
  lw_compiled *c = NULL;
  plain.fusion = "none";
  plain.disable =
      lw_arena_printf(x->e->arena, "fusion-wrapper%s%s", o->disable ? "," : "",
                      o->disable ? o->disable : "");
  plain.fuel = plain.dump_passes = NULL;
  plain.force_edges = plain.forbid_edges = NULL;
  lw_status st = lw_optimize(m, &plain, &c);
  if (!st) learn_sources(x, lw_compiled_module(c));
  lw_status_free(st);
  lw_compiled_free(c);
}

/* ---- edges ---- */

typedef struct {
  lw_map rows;  /* pass, producer, consumer -> edge + 1 */
  lw_map ranks; /* producer -> its last ranking */
} edge_index;

static uint64_t edge_key(const lw_decision *d) {
  uint64_t h = lw_hash_mix(key_of(d->pass), key_of(d->producer));
  return lw_hash_mix(h, key_of(d->consumer));
}

/* XLA:GPU's queue ranks a producer before it is taken: that record speaks of
 * all its edges, and its numbers are theirs. */
static bool is_ranking(const lw_decision *d) {
  return d->yes && d->reason == LW_REASON_SAVES_TIME &&
         !strcmp(d->pass, "gpu-priority-fusion");
}

static void note_edge(explaining *x, edge_index *ix, const lw_decision *d) {
  if (is_ranking(d)) {
    lw_map_set_ptr(&ix->ranks, (const void *)(uintptr_t)key_of(d->producer), d);
    return;
  }
  if (d->yes && d->gate == LW_GATE_FUSIBILITY) return;
  uint64_t *row = lw_map_put(&ix->rows, edge_key(d));
  if (!*row) {
    lw_vec_push(&x->e->edges, (lw_explain_edge){0});
    *row = x->e->edges.len;
  }
  lw_explain_edge *e = &x->e->edges.data[*row - 1];
  const lw_decision *n = d;
  if (d->yes && d->unfused_ns == 0) {
    const lw_decision *r =
        lw_map_ptr(&ix->ranks, (const void *)(uintptr_t)key_of(d->producer));
    if (r) n = r;
  }
  e->d = d;
  e->order = d->seq;
  e->asked++;
  e->unfused_ns = n->unfused_ns;
  e->fused_ns = n->fused_ns;
  e->saved_ns = n->saved_ns;
  e->modelled = n->unfused_ns != 0 || n->saved_ns != 0;
}

static int by_order(const void *a, const void *b) {
  int64_t x = ((const lw_explain_edge *)a)->order,
          y = ((const lw_explain_edge *)b)->order;
  return x < y ? -1 : x > y;
}

static void list_edges(explaining *x) {
  edge_index ix = {0};
  lw_explain *e = x->e;
  for (size_t k = 0; k < lw_trace_count(x->trace); k++)
    note_edge(x, &ix, lw_trace_at(x->trace, k));
  if (e->edges.len)
    qsort(e->edges.data, e->edges.len, sizeof *e->edges.data, by_order);
  int64_t fused = 0;
  for (size_t k = 0; k < e->edges.len; k++) {
    lw_explain_edge *r = &e->edges.data[k];
    if (r->d->yes) r->fused = ++fused;
    r->producer = explain_source(x, r->d->value);
    r->consumer = explain_source(x, r->d->reader);
  }
  lw_map_free(&ix.rows);
  lw_map_free(&ix.ranks);
}

/* ---- values that stay in memory ---- */

static bool renames(const lw_inst *i) {
  return i->opcode == LW_OP_GET_TUPLE_ELEMENT || i->opcode == LW_OP_BITCAST ||
         i->opcode == LW_OP_OPT_BARRIER;
}

static bool has_reader(const lw_inst **list, int32_t n, const lw_inst *i) {
  while (n-- > 0)
    if (list[n] == i) return true;
  return false;
}

static void add_readers(const lw_inst *v, const lw_inst **list, int32_t max,
                        int32_t *n, int depth) {
  for (const lw_use *u = v->uses; u && *n < max; u = u->next) {
    if (renames(u->user)) {
      if (depth < 64) add_readers(u->user, list, max, n, depth + 1);
    } else if (!lw_runs_nothing(u->user) && !has_reader(list, *n, u->user)) {
      list[(*n)++] = u->user;
    }
  }
}

int32_t explain_readers(const lw_inst *v, const lw_inst **list, int32_t max) {
  int32_t n = 0;
  add_readers(v, list, max, &n, 0);
  return n;
}

static bool is_library(const lw_inst *i) {
  if (i->opcode == LW_OP_GET_TUPLE_ELEMENT) i = lw_inst_operand(i, 0);
  return i->opcode == LW_OP_FFT || i->opcode == LW_OP_CUSTOM_CALL ||
         i->opcode == LW_OP_CHOLESKY || i->opcode == LW_OP_TRIANGULAR_SOLVE;
}

/* The last refusal of each value, by its name before fusing and by that in the
 * record. */
static void index_refusals(explaining *x) {
  for (size_t k = 0; k < lw_trace_count(x->trace); k++) {
    const lw_decision *d = lw_trace_at(x->trace, k);
    if (d->yes) continue;
    *lw_map_put(&x->refusals, key_of(d->value)) = (uintptr_t)d;
    *lw_map_put(&x->refusals, key_of(d->producer)) = (uintptr_t)d;
  }
}

static const lw_decision *refusal_of(const explaining *x, const char *name) {
  const uint64_t *d =
      lw_map_get(&x->refusals, key_of(lw_trace_origin(x->trace, name)));
  if (!d) d = lw_map_get(&x->refusals, key_of(name));
  return d ? (const lw_decision *)(uintptr_t)*d : NULL;
}

const char *explain_level(const lw_target *t, double bytes) {
  if (!strcmp(t->backend_name, "gpu"))
    return 2 * bytes <= t->gpu.l2_cache_bytes ? "L2" : "DRAM";
  return lw_level_name(lw_cost_level(t, bytes));
}

/* Written once, read by n kernels. */
static double trip_ns(const lw_target *t, double bytes, int32_t n) {
  double one = strcmp(t->backend_name, "gpu")
                   ? lw_cost_value_ns(t, bytes, bytes)
                   : bytes / t->gpu.memory_bandwidth * 1e9;
  return one * (1 + n);
}

static lw_left_class class_of(const lw_inst *v, const lw_explain_left *l,
                              const lw_inst **readers) {
  bool library = is_library(v);
  for (int32_t k = 0; k < l->n_readers; k++) library |= is_library(readers[k]);
  if (library) return LW_LEFT_LIBRARY;
  if (!l->d) return LW_LEFT_UNASKED;
  return l->d->gate == LW_GATE_FUSIBILITY ? LW_LEFT_RULE : LW_LEFT_NOT_WORTH;
}

static const char *shape_text(explaining *x, const lw_shape *s) {
  lw_buf b = {0};
  lw_shape_print(&b, s, false);
  const char *text = keep(x, lw_buf_cstr(&b));
  lw_buf_free(&b);
  return text;
}

static void list_value(explaining *x, const lw_inst *v) {
  const lw_inst *readers[MAX_READERS];
  if (!lw_shape_is_array(v->shape)) return;
  int32_t n = explain_readers(v, readers, MAX_READERS);
  if (n == 0) return;
  int64_t bytes = lw_shape_bytes(v->shape);
  lw_explain_left l = {.name = v->name,
                       .value = lw_trace_origin(x->trace, v->name),
                       .shape = shape_text(x, v->shape),
                       .bytes = bytes,
                       .level = explain_level(x->target, (double)bytes),
                       .trip_ns = trip_ns(x->target, (double)bytes, n),
                       .n_readers = n,
                       .d = refusal_of(x, v->name),
                       .source = explain_source(x, v->name)};
  const char **names = LW_NEW_ARRAY(x->e->arena, const char *, n);
  for (int32_t k = 0; k < n; k++) names[k] = readers[k]->name;
  l.readers = names;
  l.class = class_of(v, &l, readers);
  if (explain_wall_of(x, v, readers, n, l.shape)) l.class = LW_LEFT_WALL;
  lw_vec_push(&x->e->left, l);
}

/* Inputs are not left in memory, they come from there; but they can be what
 * must be read again. */
static void list_input(explaining *x, const lw_inst *v) {
  const lw_inst *readers[MAX_READERS];
  if (!lw_shape_is_array(v->shape)) return;
  int32_t n = explain_readers(v, readers, MAX_READERS);
  if (n > 1) (void)explain_wall_of(x, v, readers, n, shape_text(x, v->shape));
}

static void list_values(explaining *x, const lw_module *m) {
  int32_t n;
  lw_arena *a = lw_arena_new();
  lw_comp **comps = lw_comps_to_fuse(m, a, &n);
  for (int32_t k = 0; k < n; k++)
    for (const lw_inst *i = comps[k]->first; i; i = i->next) {
      const lw_inst *from =
          i->opcode == LW_OP_GET_TUPLE_ELEMENT ? lw_inst_operand(i, 0) : i;
      bool input = from->opcode == LW_OP_PARAMETER;
      if (input)
        list_input(x, i);
      else if (!lw_runs_nothing(from))
        list_value(x, i);
      if (lw_inst_is_fusion(i)) explain_walls_inside(x, i);
    }
  lw_arena_free(a);
}

/* ---- the whole ---- */

lw_status lw_explain_module(const lw_module *m, const lw_compile_options *o,
                            lw_compiled **c, lw_explain *e) {
  *e = (lw_explain){.arena = lw_arena_new()};
  *c = NULL;
  lw_status st = lw_optimize(m, o, c);
  if (st) return st;
  explaining x = {.e = e,
                  .trace = lw_compiled_trace(*c),
                  .target = lw_compiled_target(*c),
                  .flush_denormals = o->flush_denormals};
  e->module = lw_compiled_module(*c)->name;
  e->strategy = o->fusion ? o->fusion : "priority";
  e->target = x.target->name;
  x.cpu = strcmp(x.target->backend_name, "gpu") != 0;
  if (x.cpu && !o->only_fusion) learn_unfused(&x, m, o);
  learn_sources(&x, m);
  learn_sources(&x, lw_compiled_module(*c));
  index_refusals(&x);
  list_edges(&x);
  list_values(&x, lw_compiled_module(*c));
  lw_map_free(&x.sources);
  lw_map_free(&x.refusals);
  return NULL;
}

void lw_explain_free(lw_explain *e) {
  lw_vec_free(&e->edges);
  lw_vec_free(&e->left);
  lw_vec_free(&e->walls);
  if (e->arena) lw_arena_free(e->arena);
  *e = (lw_explain){0};
}
