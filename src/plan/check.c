/* The plan checker: runs the tree over tags instead of numbers.
 *
 * A slice holds a set of tags, each naming a value (invocation, instruction,
 * leaf). A node that reads a slice must find the tag of the value the module
 * says its operand is; a node that writes a slice wipes every slice that
 * overlaps it, then tags its own. A loop's head keeps only what the body does
 * not disturb, plus the state leaves that hold the operand on entry and the
 * root at the end of a step that starts from just that: if the body is right
 * under that assumption, every step is.
 * Nothing of liveness or coalescing is used, so their mistakes show. */
#include "plan/plan_impl.h"

typedef struct env env;
struct env {
  uint64_t id;
  const env *caller;   /* branches and calls: where operands are looked up */
  const lw_inst *call; /* the conditional or call, or NULL */
  int32_t first_operand;
};

typedef struct {
  LW_VEC(uint64_t) tags;
} place;

typedef struct {
  const lw_plan *p;
  builder names; /* for plan_resolve */
  uint64_t next_env;
  place *places; /* by slice */
  bool *written; /* by slice, since it was last cleared */
  bool quiet;    /* a trial run */
} checker;

enum { CONSTANT_ENV = 0 };

static uint64_t tag_of(uint64_t id, uint64_t inst, int32_t leaf) {
  uint64_t h = lw_hash_mix(lw_hash_mix(0x9d5c, id), inst);
  return lw_hash_mix(h, (uint64_t)(uint32_t)leaf);
}

static env *new_env(checker *c, const env *caller, const lw_inst *call,
                    int32_t first_operand) {
  env *e = LW_NEW(c->names.arena, env);
  e->id = ++c->next_env;
  e->caller = caller;
  e->call = call;
  e->first_operand = first_operand;
  return e;
}

static const lw_literal *literal_leaf(const lw_literal *l, int32_t *leaf) {
  if (!lw_shape_is_tuple(l->shape)) return (*leaf)-- == 0 ? l : NULL;
  for (int32_t k = 0; k < l->n_elems; k++) {
    const lw_literal *r = literal_leaf(l->elems[k], leaf);
    if (r) return r;
  }
  return NULL;
}

static uint64_t constant_tag(const checker *c, const lw_inst *i, int32_t leaf) {
  const lw_literal *l = literal_leaf(lw_inst_literal(i), &leaf);
  for (int32_t k = 0; l && k < c->p->n_constants; k++) {
    if (lw_literal_equal(c->p->constants[k], l)) {
      return tag_of(CONSTANT_ENV, (uint64_t)k, 0);
    }
  }
  return tag_of(CONSTANT_ENV, UINT64_MAX, 0);
}

/* The value an instruction's leaf stands for. */
static uint64_t value_tag(checker *c, const env *e, const lw_inst *i,
                          int32_t leaf) {
  for (;;) {
    leaf_ref r = plan_resolve(&c->names, i, leaf);
    i = r.inst;
    leaf = r.leaf;
    if (i->opcode == LW_OP_CONSTANT) return constant_tag(c, i, leaf);
    if (i->opcode != LW_OP_PARAMETER || !e->call) break;
    int32_t k = e->first_operand + (int32_t)lw_inst_param_number(i);
    i = lw_inst_operand(e->call, k);
    e = e->caller;
  }
  return tag_of(e->id, (uint64_t)(uint32_t)i->id, leaf);
}

/* ---- places ---- */

static bool holds(const place *p, uint64_t tag) {
  for (size_t k = 0; k < p->tags.len; k++) {
    if (p->tags.data[k] == tag) return true;
  }
  return false;
}

static void add_tag(place *p, uint64_t tag) {
  if (!holds(p, tag)) lw_vec_push(&p->tags, tag);
}

/* Wherever one value is, the other name is right too. */
static void rename_value(checker *c, uint64_t from, uint64_t to) {
  for (int32_t s = 0; s < c->p->n_slices; s++) {
    if (holds(&c->places[s], from)) add_tag(&c->places[s], to);
  }
}

static place *copy_places(const checker *c, const place *from) {
  place *to = calloc((size_t)c->p->n_slices + 1, sizeof *to);
  if (!to) lw_oom((size_t)c->p->n_slices * sizeof *to);
  for (int32_t s = 0; s < c->p->n_slices; s++) {
    for (size_t k = 0; k < from[s].tags.len; k++) {
      lw_vec_push(&to[s].tags, from[s].tags.data[k]);
    }
  }
  return to;
}

static void free_places(const checker *c, place *p) {
  for (int32_t s = 0; p && s < c->p->n_slices; s++) lw_vec_free(&p[s].tags);
  free(p);
}

static void set_places(checker *c, place *p) {
  free_places(c, c->places);
  c->places = p;
}

static bool overlap(const lw_slice *a, const lw_slice *b) {
  if (a->kind != b->kind || a->bytes == 0 || b->bytes == 0) return false;
  if (a->kind != LW_ALLOC_TEMP) return a->index == b->index;
  return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static void wipe(checker *c, int32_t slice) {
  for (int32_t s = 0; s < c->p->n_slices; s++) {
    if (!overlap(&c->p->slices[s], &c->p->slices[slice])) continue;
    c->places[s].tags.len = 0;
    c->written[s] = true;
  }
}

static lw_status wrong(const lw_node *n, const char *what, const char *name,
                       int32_t leaf, int32_t slice) {
  return lw_error(LW_INTERNAL, "plan: %s: %s %s{%d} (slice %d)",
                  n->inst ? n->inst->name : "end", what, name, leaf, slice);
}

static lw_status read_value(checker *c, const lw_node *n, const env *e,
                            const lw_inst *i, int32_t leaf, int32_t slice) {
  if (c->quiet || c->p->slices[slice].bytes == 0) return NULL;
  if (holds(&c->places[slice], value_tag(c, e, i, leaf))) return NULL;
  return wrong(n, "the slice does not hold", i->name, leaf, slice);
}

static lw_status write_slice(checker *c, const lw_node *n, int32_t slice) {
  lw_alloc_kind k = c->p->slices[slice].kind;
  if (k == LW_ALLOC_PARAM || k == LW_ALLOC_CONSTANT) {
    return wrong(n, "writes what is read only:", "slice", 0, slice);
  }
  wipe(c, slice);
  return NULL;
}

/* ---- nodes ---- */

static lw_status run_node(checker *c, const env *e, const lw_node *n);

static lw_status read_operands(checker *c, const env *e, const lw_node *n,
                               int32_t *count) {
  *count = 0;
  for (int32_t k = 0; k < n->inst->n_operands; k++) {
    const lw_inst *op = lw_inst_operand(n->inst, k);
    int64_t leaves = lw_shape_leaf_count(op->shape);
    for (int32_t l = 0; l < leaves; l++) {
      if (!lw_shape_is_array(lw_shape_leaf(op->shape, l))) continue;
      LW_TRY(read_value(c, n, e, op, l, n->slices[(*count)++]));
    }
  }
  return NULL;
}

static lw_status write_results(checker *c, const env *e, const lw_node *n,
                               int32_t first) {
  int32_t at = first;
  int64_t leaves = lw_shape_leaf_count(n->inst->shape);
  for (int32_t l = 0; l < leaves; l++) {
    if (!lw_shape_is_array(lw_shape_leaf(n->inst->shape, l))) continue;
    LW_TRY(write_slice(c, n, n->slices[at++]));
  }
  at = first;
  for (int32_t l = 0; l < leaves; l++) {
    if (!lw_shape_is_array(lw_shape_leaf(n->inst->shape, l))) continue;
    add_tag(&c->places[n->slices[at++]],
            tag_of(e->id, (uint64_t)(uint32_t)n->inst->id, l));
  }
  return NULL;
}

/* An output may be in an operand's place only where the kernel says so, and
 * must be where it says that. */
static lw_status check_sharing(checker *c, const lw_node *n) {
  const lw_kernel *k = c->p->kernels[n->kernel];
  const lw_slice *s = c->p->slices;
  int32_t first = k->n_params, end = first + k->n_outputs + k->n_scratch;
  for (int32_t o = first; o < end; o++) {
    for (int32_t p = 0; p < o; p++) {
      int32_t a = n->slices[p], b = n->slices[o];
      bool out_of_param = p < first && o < first + k->n_outputs;
      int32_t e = p * k->n_outputs + (o - first);
      bool must = out_of_param && k->must_alias && k->must_alias[e];
      bool may = out_of_param && k->may_alias && k->may_alias[e];
      if (must && a != b && s[a].bytes) {
        return wrong(n, "must update in place:", "operand", p, a);
      }
      if (overlap(&s[a], &s[b]) && !((must || may) && a == b)) {
        return wrong(n, "may not write into", "operand", p, a);
      }
    }
  }
  return NULL;
}

static lw_status run_kernel(checker *c, const env *e, const lw_node *n) {
  int32_t count;
  const lw_kernel *k = c->p->kernels[n->kernel];
  LW_TRY(read_operands(c, e, n, &count));
  LW_TRY(check_sharing(c, n));
  for (int32_t s = 0; s < k->n_scratch; s++) {
    int32_t slice = n->slices[k->n_params + k->n_outputs + s];
    LW_TRY(write_slice(c, n, slice));
  }
  return write_results(c, e, n, count);
}

static lw_status run_library(checker *c, const env *e, const lw_node *n) {
  int32_t count;
  LW_TRY(read_operands(c, e, n, &count));
  for (int32_t o = count; o < n->n_slices; o++) {
    for (int32_t p = 0; p < o; p++) {
      if (overlap(&c->p->slices[n->slices[p]], &c->p->slices[n->slices[o]])) {
        return wrong(n, "may not write into", "operand", p, n->slices[p]);
      }
    }
  }
  return write_results(c, e, n, count);
}

static lw_status run_copy(checker *c, const lw_node *n) {
  int32_t src = n->slices[0], dst = n->slices[1];
  if (src != dst && overlap(&c->p->slices[src], &c->p->slices[dst])) {
    return wrong(n, "copies between overlapping", "slices", src, dst);
  }
  place keep = {0};
  for (size_t k = 0; k < c->places[src].tags.len; k++) {
    lw_vec_push(&keep.tags, c->places[src].tags.data[k]);
  }
  lw_status st = write_slice(c, n, dst);
  for (size_t k = 0; k < keep.tags.len; k++) {
    add_tag(&c->places[dst], keep.tags.data[k]);
  }
  lw_vec_free(&keep.tags);
  return st;
}

/* ---- while ---- */

typedef struct {
  const lw_node *n;
  const lw_inst *loop, *body_param, *cond_param;
  const env *outer;
  env *cond, *body;
  int32_t leaves;
} loop;

static uint64_t state_tag(const env *e, const lw_inst *param, int32_t leaf) {
  return tag_of(e->id, (uint64_t)(uint32_t)param->id, leaf);
}

static void name_state(checker *c, const loop *l) {
  const lw_inst *operand = lw_inst_operand(l->loop, 0);
  for (int32_t k = 0; k < l->leaves; k++) {
    uint64_t from = value_tag(c, l->outer, operand, k);
    rename_value(c, from, state_tag(l->body, l->body_param, k));
    rename_value(c, from, state_tag(l->cond, l->cond_param, k));
  }
}

static lw_status run_condition(checker *c, const loop *l) {
  const lw_node *n = l->n;
  if (n->trip_count >= 0) return NULL;
  LW_TRY(run_node(c, l->cond, n->children[0]));
  const lw_comp *cond = lw_inst_comp(l->loop, LW_ATTR_CONDITION);
  return read_value(c, n, l->cond, cond->root, 0, n->slices[0]);
}

/* What is true at the loop's head every time: entry's tags, without those that
 * the loop disturbs. state[k] of slice s stays when the end has the root
 * there. */
static place *head_of(checker *c, const loop *l, place *entry) {
  place *head = copy_places(c, entry);
  const lw_comp *body = lw_inst_comp(l->loop, LW_ATTR_BODY);
  for (int32_t s = 0; s < c->p->n_slices; s++) {
    if (c->written[s]) head[s].tags.len = 0;
    for (int32_t k = 0; k < l->leaves; k++) {
      uint64_t b = state_tag(l->body, l->body_param, k);
      uint64_t q = state_tag(l->cond, l->cond_param, k);
      if (!holds(&entry[s], b)) continue;
      bool stays = holds(&c->places[s], value_tag(c, l->body, body->root, k));
      size_t len = 0;
      for (size_t t = 0; t < head[s].tags.len; t++) {
        uint64_t tag = head[s].tags.data[t];
        if (tag != b && tag != q) head[s].tags.data[len++] = tag;
      }
      head[s].tags.len = len;
      if (stays) {
        add_tag(&head[s], b);
        add_tag(&head[s], q);
      }
    }
  }
  return head;
}

/* A trial run finds what the loop disturbs; written is left as their union. */
static place *trial(checker *c, const loop *l) {
  size_t n = (size_t)c->p->n_slices;
  bool *before = lw_arena_memdup(c->names.arena, c->written, n);
  place *entry = copy_places(c, c->places);
  bool quiet = c->quiet;
  c->quiet = true;
  for (size_t s = 0; s < n; s++) c->written[s] = false;
  lw_status_free(run_condition(c, l));
  lw_status_free(run_node(c, l->body, l->n->children[1]));
  c->quiet = quiet;
  place *head = head_of(c, l, entry);
  for (size_t s = 0; s < n; s++) c->written[s] = c->written[s] || before[s];
  free_places(c, entry);
  return head;
}

static size_t tag_count(const checker *c) {
  size_t n = 0;
  for (int32_t s = 0; s < c->p->n_slices; s++) n += c->places[s].tags.len;
  return n;
}

/* Until the head holds nothing but what a step that starts from it keeps: two
 * state leaves may begin as one value and part later. */
static void settle_head(checker *c, const loop *l) {
  size_t before;
  do {
    before = tag_count(c);
    set_places(c, trial(c, l));
  } while (tag_count(c) != before);
}

static lw_status run_while(checker *c, const env *e, const lw_node *n) {
  loop l = {.n = n, .loop = n->inst, .outer = e};
  l.leaves = (int32_t)lw_shape_leaf_count(n->inst->shape);
  l.body_param = lw_inst_comp(n->inst, LW_ATTR_BODY)->params.data[0];
  l.cond_param = lw_inst_comp(n->inst, LW_ATTR_CONDITION)->params.data[0];
  l.cond = new_env(c, NULL, NULL, 0);
  l.body = new_env(c, NULL, NULL, 0);
  name_state(c, &l);
  settle_head(c, &l);
  lw_status st = run_condition(c, &l);
  place *after = copy_places(c, c->places);
  if (!st) st = run_node(c, l.body, n->children[1]);
  set_places(c, after);
  for (int32_t k = 0; k < l.leaves && !st; k++) {
    rename_value(c, state_tag(l.body, l.body_param, k),
                 state_tag(e, n->inst, k));
  }
  return st;
}

/* ---- conditional, call ---- */

static const lw_comp *branch_of(const lw_inst *i, int32_t k) {
  const lw_attr *a = lw_inst_attr(i, LW_ATTR_BRANCH_COMPUTATIONS);
  if (a) return a->u.comps.v[k];
  return lw_inst_comp(
      i, k == 0 ? LW_ATTR_TRUE_COMPUTATION : LW_ATTR_FALSE_COMPUTATION);
}

static void name_results(checker *c, const env *in, const lw_comp *callee,
                         const env *e, const lw_inst *i) {
  int64_t n = lw_shape_leaf_count(i->shape);
  for (int32_t k = 0; k < n; k++) {
    rename_value(c, value_tag(c, in, callee->root, k),
                 tag_of(e->id, (uint64_t)(uint32_t)i->id, k));
  }
}

/* Keeps the tags that both have. */
static void meet(const checker *c, place *a, const place *b) {
  for (int32_t s = 0; s < c->p->n_slices; s++) {
    size_t len = 0;
    for (size_t k = 0; k < a[s].tags.len; k++) {
      uint64_t t = a[s].tags.data[k];
      if (holds(&b[s], t)) a[s].tags.data[len++] = t;
    }
    a[s].tags.len = len;
  }
}

static lw_status run_conditional(checker *c, const env *e, const lw_node *n) {
  LW_TRY(read_value(c, n, e, lw_inst_operand(n->inst, 0), 0, n->slices[0]));
  place *before = copy_places(c, c->places), *result = NULL;
  lw_status st = NULL;
  for (int32_t k = 0; k < n->n_children && !st; k++) {
    set_places(c, copy_places(c, before));
    env *in = new_env(c, e, n->inst, k + 1);
    st = run_node(c, in, n->children[k]);
    name_results(c, in, branch_of(n->inst, k), e, n->inst);
    if (!result) {
      result = copy_places(c, c->places);
    } else {
      meet(c, result, c->places);
    }
  }
  free_places(c, before);
  if (result) set_places(c, result);
  return st;
}

static lw_status run_seq(checker *c, const env *e, const lw_node *n) {
  const env *in = e;
  if (n->inst) in = new_env(c, e, n->inst, 0);
  for (int32_t k = 0; k < n->n_children; k++) {
    LW_TRY(run_node(c, in, n->children[k]));
  }
  if (n->inst) {
    name_results(c, in, lw_inst_comp(n->inst, LW_ATTR_TO_APPLY), e, n->inst);
  }
  return NULL;
}

static lw_status run_node(checker *c, const env *e, const lw_node *n) {
  switch (n->kind) {
    case LW_NODE_SEQ:
      return run_seq(c, e, n);
    case LW_NODE_KERNEL:
      return run_kernel(c, e, n);
    case LW_NODE_LIBRARY:
      return run_library(c, e, n);
    case LW_NODE_COPY:
      return run_copy(c, n);
    case LW_NODE_WHILE:
      return run_while(c, e, n);
    case LW_NODE_CONDITIONAL:
      return run_conditional(c, e, n);
  }
  return NULL;
}

/* ---- the whole ---- */

/* What slices hold before the first node: parameters and constants. */
static void start(checker *c, const env *e) {
  const lw_plan *p = c->p;
  const lw_comp *entry = p->module->entry;
  for (int32_t s = 0; s < p->n_slices; s++) {
    const lw_slice *l = &p->slices[s];
    int32_t number = l->kind == LW_ALLOC_PARAM ? l->index : -1;
    if (l->kind == LW_ALLOC_OUTPUT) number = p->output_alias[l->index];
    if (l->kind == LW_ALLOC_CONSTANT) {
      add_tag(&c->places[s], tag_of(CONSTANT_ENV, (uint64_t)l->index, 0));
    }
    for (size_t k = 0; number >= 0 && k < entry->params.len; k++) {
      const lw_inst *i = entry->params.data[k];
      int32_t n = (int32_t)lw_shape_leaf_count(i->shape);
      if (number < n) {
        add_tag(&c->places[s], value_tag(c, e, i, number));
        break;
      }
      number -= n;
    }
  }
}

static lw_status check_outputs(checker *c, const env *e) {
  const lw_plan *p = c->p;
  static const lw_node end = {0};
  for (int32_t o = 0; o < p->n_outputs; o++) {
    if (lw_shape_bytes(p->output_shapes[o]) == 0) continue;
    bool found = false;
    for (int32_t s = 0; s < p->n_slices; s++) {
      if (p->slices[s].kind != LW_ALLOC_OUTPUT || p->slices[s].index != o) {
        continue;
      }
      found = true;
      LW_TRY(read_value(c, &end, e, p->module->entry->root, o, s));
    }
    if (!found) return wrong(&end, "nothing writes", "output", o, -1);
  }
  return NULL;
}

lw_status lw_plan_check(const lw_plan *p) {
  checker c = {.p = p};
  c.names.arena = lw_arena_new();
  c.places = calloc((size_t)p->n_slices + 1, sizeof *c.places);
  c.written = calloc((size_t)p->n_slices + 1, sizeof *c.written);
  if (!c.places || !c.written) lw_oom((size_t)p->n_slices * sizeof *c.places);
  env *e = new_env(&c, NULL, NULL, 0);
  start(&c, e);
  lw_status st = run_node(&c, e, p->root);
  if (!st) st = check_outputs(&c, e);
  free_places(&c, c.places);
  free(c.written);
  lw_map_free(&c.names.invariants);
  lw_arena_free(c.names.arena);
  return st;
}
