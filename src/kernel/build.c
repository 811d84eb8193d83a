/* From a fusion's body to stages.
 *
 * What is a stage: every root leaf; every operation that is not a map of
 * elements (reduces, windows, dots, sorts ...); whatever those need in memory;
 * and every value that would otherwise be computed too often. The last is
 * found by dry runs (walk.c): a stage's code is walked with the index
 * expressions the emitter will use, and a value that comes up at several
 * indices, or that loops under a broadcast would repeat, becomes a stage when
 * repeating costs more than keeping. The walk is then done again, until nothing
 * is left to decide. A value is visited once an index, so walking is linear in
 * the code that would be emitted, and that is bounded by the same rule.
 */
#include "kernel/kernel_impl.h"

/* Repeating this many additions an element costs as much as memory. */
#define REPEAT_COST 8.0
#define MOST_VISITS 16
/* A reduce becomes its blocks and their fold from this many elements on, while
 * it has too few results for the threads (columns: vectors of results). */
enum { PARTS_WORK = 65536, PARTS_ROWS = 16, PARTS_COLUMNS = 4096 };
#define IMMEDIATE_BYTES 64

static lw_place *place(lw_builder *b, const lw_inst *i) {
  return &b->k->places[lw_b_at(b, i)];
}

/* ---- the body ---- */

static void collect_order(lw_builder *b) {
  const lw_comp *c = b->k->body;
  int32_t n;
  lw_inst **all = lw_comp_post_order(c, b->a, &n);
  bool *live = LW_NEW_ARRAY(b->a, bool, b->k->n_places);
  live[lw_b_at(b, c->root)] = true;
  for (int32_t i = n; i-- > 0;)
    if (live[lw_b_at(b, all[i])])
      for (int32_t j = 0; j < all[i]->n_operands; j++)
        live[lw_b_at(b, lw_inst_operand(all[i], j))] = true;
  b->order = LW_NEW_ARRAY(b->a, const lw_inst *, n + 1);
  for (int32_t i = 0; i < n; i++)
    if (live[lw_b_at(b, all[i])]) b->order[b->n_order++] = all[i];
}

static void place_base(lw_kernel *k) {
  int32_t lo = INT32_MAX, hi = 0;
  for (const lw_inst *i = k->body->first; i; i = i->next) {
    if (i->id < lo) lo = i->id;
    if (i->id > hi) hi = i->id;
  }
  k->place_base = lo;
  k->n_places = hi - lo + 1;
}

static bool is_value_source(const lw_inst *i) {
  switch ((int)i->opcode) {
    case LW_OP_TUPLE:
    case LW_OP_GET_TUPLE_ELEMENT:
    case LW_OP_OPT_BARRIER:
    case LW_OP_ADD_DEPENDENCY:
    case LW_OP_DOMAIN:
    case LW_OP_AFTER_ALL:
    case LW_OP_GET_DIMENSION_SIZE:
    case LW_OP_IOTA:
    case LW_OP_PARTITION_ID:
    case LW_OP_REPLICA_ID:
      return true;
    default:
      return lw_index_maps(i) || lw_always_staged(i);
  }
}

static lw_status check_inst(const lw_inst *i) {
  if (i->opcode == LW_OP_PARAMETER || i->opcode == LW_OP_CONSTANT) return NULL;
  if (!is_value_source(i) || i->opcode == LW_OP_SCALED_DOT ||
      i->opcode == LW_OP_RAGGED_DOT) /* their expanders left them */
    return lw_error(LW_UNIMPLEMENTED, "%s: no code for %s inside a fusion",
                    i->name, lw_opcode_name(i->opcode));
  if (lw_shape_has_dynamic(i->shape))
    return lw_error(LW_UNIMPLEMENTED, "%s: no code for dynamic dimensions",
                    i->name);
  return NULL;
}

static void place_params(lw_builder *b) {
  lw_kernel *k = b->k;
  int32_t *first = LW_NEW_ARRAY(b->a, int32_t, k->body->params.len + 1);
  int32_t n = 0;
  for (size_t p = 0; p < k->body->params.len; p++) {
    first[p] = n;
    n += (int32_t)lw_shape_leaf_count(k->body->params.data[p]->shape);
  }
  k->n_params = n;
  k->param_shapes = LW_NEW_ARRAY(b->a, const lw_shape *, n + 1);
  for (size_t p = 0; p < k->body->params.len; p++) {
    const lw_inst *i = k->body->params.data[p];
    int32_t leaves = (int32_t)lw_shape_leaf_count(i->shape);
    for (int32_t l = 0; l < leaves; l++)
      k->param_shapes[first[p] + l] = lw_shape_leaf(i->shape, l);
    *place(b, i) = (lw_place){.kind = LW_PLACE_PARAM, .buffer = first[p]};
  }
}

static void place_consts(lw_builder *b) {
  lw_kernel *k = b->k;
  k->consts = LW_NEW_ARRAY(b->a, const lw_literal *, b->n_order + 1);
  for (int32_t i = 0; i < b->n_order; i++) {
    const lw_inst *c = b->order[i];
    if (c->opcode != LW_OP_CONSTANT || !lw_shape_is_array(c->shape)) continue;
    lw_place p = {.kind = LW_PLACE_CONST, .buffer = -1};
    const lw_literal *l = lw_inst_literal(c);
    if (c->shape->elements > 1 && !lw_literal_is_uniform(l)) {
      p.buffer = k->n_consts; /* made absolute once scratch is known */
      k->consts[k->n_consts++] = l;
    }
    *place(b, c) = p;
  }
}

/* ---- roots ---- */

/* Looks through what leaves the bytes as they are. */
static lw_value strip(lw_value v) {
  for (;;) {
    const lw_inst *i = v.inst;
    bool same = i->opcode == LW_OP_RESHAPE || i->opcode == LW_OP_COPY;
    if (i->opcode == LW_OP_BITCAST) {
      const lw_shape *s = lw_inst_operand(i, 0)->shape;
      same = s->type == i->shape->type && lw_layout_is_descending(s->layout) &&
             lw_layout_is_descending(i->shape->layout);
    }
    if (!same) return v;
    v = lw_value_operand(i, 0);
  }
}

static void find_roots(lw_builder *b) {
  lw_kernel *k = b->k;
  const lw_inst *root = k->body->root;
  b->n_outputs = k->n_outputs = (int32_t)lw_shape_leaf_count(root->shape);
  k->output_shapes = LW_NEW_ARRAY(b->a, const lw_shape *, k->n_outputs + 1);
  b->roots = LW_NEW_ARRAY(b->a, lw_value, k->n_outputs + 1);
  for (int32_t i = 0; i < k->n_outputs; i++) {
    k->output_shapes[i] = lw_shape_leaf(root->shape, i);
    lw_value v = lw_value_of(root, i);
    b->roots[i] = lw_shape_is_array(k->output_shapes[i]) ? strip(v) : v;
  }
}

/* ---- which values are stages ---- */

static void stage_it(lw_builder *b, const lw_inst *i) {
  lw_place_kind kind = place(b, i)->kind;
  if (kind == LW_PLACE_PARAM || kind == LW_PLACE_CONST) return;
  b->staged[lw_b_at(b, i)] = true;
}

/* Operands that the stage's code addresses as arrays. */
static void stage_operands(lw_builder *b, const lw_inst *i) {
  switch ((int)i->opcode) {
    case LW_OP_REDUCE:
    case LW_OP_REDUCE_WINDOW:
      return;
    default:
      break;
  }
  for (int32_t j = 0; j < i->n_operands; j++) {
    if (i->opcode == LW_OP_SCATTER && j < (i->n_operands - 1) / 2) continue;
    lw_value v = lw_value_operand(i, j);
    const lw_shape *s = lw_value_shape(v);
    if (!lw_shape_is_array(s)) continue;
    if (place(b, v.inst)->kind == LW_PLACE_CONST && s->elements > 1 &&
        place(b, v.inst)->buffer < 0)
      b->staged[lw_b_at(b, v.inst)] = true; /* a splat that must be an array */
    if (s->rank > 0) stage_it(b, v.inst);
  }
}

static void cone_costs(lw_builder *b) {
  for (int32_t i = 0; i < b->n_order; i++) {
    const lw_inst *x = b->order[i];
    double c = lw_op_cost(x);
    for (int32_t j = 0; j < x->n_operands; j++) {
      lw_value v = lw_value_operand(x, j);
      if (place(b, v.inst)->kind == LW_PLACE_INLINE &&
          lw_value_shape(v)->elements > 1)
        c += b->cone[lw_b_at(b, v.inst)];
    }
    b->cone[lw_b_at(b, x)] = c > 1e6 ? 1e6 : c;
  }
}

static bool stage_windows_operand(lw_builder *b, const lw_inst *i) {
  if (i->opcode != LW_OP_REDUCE_WINDOW) return false;
  bool any = false;
  for (int32_t j = 0; j < i->n_operands / 2; j++) {
    lw_value v = lw_value_operand(i, j);
    if (place(b, v.inst)->kind != LW_PLACE_INLINE) continue;
    if (b->cone[lw_b_at(b, v.inst)] <= 2) continue;
    b->staged[lw_b_at(b, v.inst)] = any = true;
  }
  return any;
}

static void first_stages(lw_builder *b) {
  for (int32_t i = 0; i < b->n_outputs; i++) stage_it(b, b->roots[i].inst);
  for (int32_t i = 0; i < b->n_order; i++)
    if (lw_always_staged(b->order[i])) {
      b->staged[lw_b_at(b, b->order[i])] = true;
      int32_t d;
      bool r;
      if (b->order[i]->opcode != LW_OP_REDUCE_WINDOW ||
          lw_window_is_scan(b->order[i], &d, &r)) {
        stage_operands(b, b->order[i]);
        if (b->order[i]->opcode == LW_OP_REDUCE_WINDOW)
          stage_it(b, lw_value_operand(b->order[i], 0).inst);
      }
    }
}

/* ---- stages ---- */

static lw_stage *new_stage(lw_builder *b, lw_stage_kind kind,
                           const lw_inst *i) {
  lw_stage s = {.kind = kind, .inst = i, .group = 1, .part = -1, .home = -1};
  s.n_results = (int32_t)lw_shape_leaf_count(i->shape);
  s.shapes = LW_NEW_ARRAY(b->a, const lw_shape *, s.n_results + 1);
  s.dests = LW_NEW_ARRAY(b->a, lw_dest, s.n_results + 1);
  for (int32_t l = 0; l < s.n_results; l++) {
    s.shapes[l] = lw_shape_leaf(i->shape, l);
    s.dests[l].kind = LW_DEST_THREAD_SCRATCH;
    s.dests[l].buffer = -1;
  }
  s.domain = s.shapes[0];
  if (kind == LW_STAGE_UPDATE_SLICE) {
    s.domain = lw_value_shape(lw_value_operand(i, 1));
    s.in_place = true;
  }
  lw_vec_push(&b->stages, s);
  return &b->stages.data[b->stages.len - 1];
}

/* The root update that may write into its operand's buffer. */
static bool wants_in_place(lw_builder *b, const lw_inst *i) {
  if (i->opcode != LW_OP_DYNAMIC_UPDATE_SLICE || b->no_in_place[lw_b_at(b, i)])
    return false;
  lw_value op = strip(lw_value_operand(i, 0));
  bool root = false;
  for (int32_t r = 0; r < b->n_outputs; r++) root |= b->roots[r].inst == i;
  return root && place(b, op.inst)->kind == LW_PLACE_PARAM;
}

static bool scatter_in_place(lw_builder *b, const lw_inst *i) {
  if (b->no_in_place[lw_b_at(b, i)]) return false;
  int32_t n = (i->n_operands - 1) / 2;
  for (int32_t j = 0; j < n; j++) {
    lw_value op = strip(lw_value_operand(i, j));
    bool root = false;
    for (int32_t r = 0; r < b->n_outputs; r++)
      root |= b->roots[r].inst == i && b->roots[r].leaf == j;
    if (!root || place(b, op.inst)->kind != LW_PLACE_PARAM) return false;
  }
  return true;
}

/* The fold of few outputs over much is cut into its blocks. */
static bool wants_parts(const lw_inst *i, int64_t *blocks) {
  lw_fold f = lw_reduce_fold(i);
  int64_t kept = lw_shape_leaf(i->shape, 0)->elements;
  if (kept <= 0 || f.n <= 0) return false;
  if (f.rule != LW_FOLD_ROW)
    *blocks = (f.n + LW_FOLD_SEQ_BLOCK - 1) / LW_FOLD_SEQ_BLOCK;
  else if (f.run > LW_FOLD_ROW_BLOCK)
    *blocks = f.outer * ((f.run + LW_FOLD_ROW_BLOCK - 1) / LW_FOLD_ROW_BLOCK);
  else
    *blocks = (f.outer + LW_FOLD_OUTER_BLOCK - 1) / LW_FOLD_OUTER_BLOCK;
  double work = (double)kept * (double)f.n;
  if (*blocks < 2 || work < (double)PARTS_WORK) return false;
  return f.rule == LW_FOLD_ROW ? kept < PARTS_ROWS : kept < PARTS_COLUMNS;
}

static const lw_shape *part_shape(const lw_inst *i, const lw_shape *out,
                                  int64_t blocks) {
  int64_t dims[LW_MAX_RANK + 1];
  lw_fold f = lw_reduce_fold(i);
  int32_t at = f.rule == LW_FOLD_ROW ? out->rank : 0, n = 0;
  for (int32_t d = 0; d <= out->rank; d++)
    dims[d] = d == at ? blocks : out->dims[n++];
  return lw_shape_array(i->parent->module->ctx, out->type, out->rank + 1, dims);
}

static void add_reduce(lw_builder *b, const lw_inst *i) {
  int64_t blocks;
  if (!wants_parts(i, &blocks) ||
      lw_shape_leaf(i->shape, 0)->rank + 1 > LW_MAX_RANK) {
    new_stage(b, LW_STAGE_REDUCE, i);
    return;
  }
  lw_stage *p = new_stage(b, LW_STAGE_REDUCE_PART, i);
  for (int32_t l = 0; l < p->n_results; l++)
    p->shapes[l] = part_shape(i, p->shapes[l], blocks);
  p->domain = p->shapes[0];
  int32_t part = (int32_t)b->stages.len - 1;
  new_stage(b, LW_STAGE_REDUCE_FOLD, i)->part = part;
}

static void add_scatter(lw_builder *b, const lw_inst *i) {
  bool in_place = scatter_in_place(b, i);
  int32_t n = (i->n_operands - 1) / 2, first = (int32_t)b->stages.len;
  if (!in_place)
    for (int32_t j = 0; j < n; j++) { /* the operand, into the result's home */
      lw_value v = lw_value_operand(i, j);
      lw_stage *s = new_stage(b, LW_STAGE_MAP, v.inst);
      s->n_results = 1;
      s->shapes[0] = s->domain = lw_value_shape(v);
      s->leaf = v.leaf;
      s->home = first + n;
      s->home_result = j;
    }
  new_stage(b, LW_STAGE_SCATTER, i)->in_place = in_place;
}

/* Makes the list of stages in the order of the body. */
static void list_stages(lw_builder *b) {
  b->stages.len = 0;
  for (int32_t n = 0; n < b->n_order; n++) {
    const lw_inst *i = b->order[n];
    lw_place *p = place(b, i);
    if (!b->staged[lw_b_at(b, i)]) {
      if (p->kind == LW_PLACE_STAGED) p->kind = LW_PLACE_INLINE;
      continue;
    }
    lw_stage_kind kind = lw_stage_kind_of(i);
    if (wants_in_place(b, i)) kind = LW_STAGE_UPDATE_SLICE;
    if (kind == LW_STAGE_REDUCE)
      add_reduce(b, i);
    else if (kind == LW_STAGE_SCATTER)
      add_scatter(b, i);
    else
      new_stage(b, kind, i);
    *p = (lw_place){.kind = LW_PLACE_STAGED,
                    .buffer = -1,
                    .stage = (int32_t)b->stages.len - 1};
  }
  for (int32_t r = 0; r < b->n_outputs; r++) {
    /* a parameter or constant returned as it is, once an output */
    lw_place *p = place(b, b->roots[r].inst);
    if (p->kind == LW_PLACE_STAGED ||
        !lw_shape_is_array(b->k->output_shapes[r]))
      continue;
    lw_stage *s = new_stage(b, LW_STAGE_MAP, b->roots[r].inst);
    s->n_results = 1;
    s->shapes[0] = s->domain = lw_value_shape(b->roots[r]);
    s->leaf = b->roots[r].leaf;
    s->dests[0] = (lw_dest){LW_DEST_OUTPUT, b->k->n_params + r, 0};
  }
}

static void walk_all(lw_builder *b) {
  lw_map_free(&b->seen);
  b->reads.len = 0;
  memset(b->visits, 0, (size_t)b->k->n_places * sizeof *b->visits);
  memset(b->executions, 0, (size_t)b->k->n_places * sizeof *b->executions);
  for (int32_t s = 0; s < (int32_t)b->stages.len; s++) lw_walk_stage(b, s);
}

static void skip_cone(lw_builder *b, const lw_inst *i, bool *skip) {
  for (int32_t j = 0; j < i->n_operands; j++) {
    const lw_inst *x = lw_value_operand(i, j).inst;
    int32_t at = lw_b_at(b, x);
    if (skip[at] || b->k->places[at].kind != LW_PLACE_INLINE) continue;
    skip[at] = true;
    skip_cone(b, x, skip);
  }
}

static bool too_often(lw_builder *b, const lw_inst *i) {
  int32_t at = lw_b_at(b, i);
  if (!lw_may_be_staged(i)) return false;
  double c = b->cone[at];
  if (b->visits[at] > MOST_VISITS) return true;
  if (b->visits[at] > 1 && (b->visits[at] - 1) * c > REPEAT_COST) return true;
  double per = b->executions[at] / (double)i->shape->elements;
  return per >= 4 && c >= 2 * REPEAT_COST;
}

/* One round of decisions, readers first; false when there was none. */
static bool stage_repeated(lw_builder *b) {
  bool any = false;
  bool *skip = LW_NEW_ARRAY(b->a, bool, b->k->n_places);
  for (int32_t n = b->n_order; n-- > 0;) {
    const lw_inst *i = b->order[n];
    int32_t at = lw_b_at(b, i);
    if (b->k->places[at].kind != LW_PLACE_INLINE || skip[at]) continue;
    if (stage_windows_operand(b, i)) any = true;
    if (!too_often(b, i)) continue;
    b->staged[at] = any = true;
    skip_cone(b, i, skip);
  }
  for (int32_t n = 0; n < b->n_order; n++)
    if (b->order[n]->opcode == LW_OP_REDUCE_WINDOW)
      any |= stage_windows_operand(b, b->order[n]);
  return any;
}

/* ---- in place ---- */

static lw_value in_place_operand(const lw_inst *i, int32_t j) {
  return strip(lw_value_operand(i, j));
}

/* The linear element an update writes for the domain's element. */
static const lw_expr *written(lw_builder *b, const lw_stage *s) {
  const lw_inst *i = s->inst;
  const lw_expr **u = lw_domain_index(b, s->domain), *at[LW_MAX_RANK];
  for (int32_t d = 0; d < s->domain->rank; d++) {
    lw_value v = lw_value_operand(i, 2);
    const lw_expr *k = lw_ex_const(&b->ix, d);
    int32_t n = lw_value_shape(v)->rank == 1;
    if (!n) v = lw_value_operand(i, 2 + d);
    int64_t room = i->shape->dims[d] - s->domain->dims[d] + 1;
    at[d] = lw_ex_add(&b->ix, u[d],
                      lw_ex_value(&b->ix, v.inst, v.leaf, n, &k, room));
  }
  return lw_ex_linear(&b->ix, i->shape->rank, i->shape->dims, at);
}

/* numerics and case "update overlaps": other reads of the buffer only at the
 * element written, or in stages before. */
static bool reads_allow(lw_builder *b, int32_t stage) {
  lw_stage *s = &b->stages.data[stage];
  int32_t n = s->kind == LW_STAGE_SCATTER ? (s->inst->n_operands - 1) / 2 : 1;
  for (int32_t j = 0; j < n; j++) {
    lw_value op = in_place_operand(s->inst, j);
    for (size_t r = 0; r < b->reads.len; r++) {
      const lw_read *rd = &b->reads.data[r];
      if (rd->value.inst != op.inst || rd->value.leaf != op.leaf) continue;
      if (rd->stage < stage) continue; /* its phase ends before: phase.c */
      if (rd->stage > stage || s->kind == LW_STAGE_SCATTER || !rd->idx)
        return false;
      const lw_shape *sh = lw_value_shape(rd->value);
      if (lw_ex_linear(&b->ix, sh->rank, sh->dims, rd->idx) != written(b, s))
        return false;
    }
    /* two in-place stages on one buffer, or the parameter returned as well */
    for (int32_t t = 0; t < (int32_t)b->stages.len; t++) {
      const lw_stage *o = &b->stages.data[t];
      if (t == stage) continue;
      bool update = o->kind == LW_STAGE_UPDATE_SLICE ||
                    (o->kind == LW_STAGE_SCATTER && o->in_place);
      int32_t m = !update ? 0
                  : o->kind == LW_STAGE_UPDATE_SLICE
                      ? 1
                      : (o->inst->n_operands - 1) / 2;
      for (int32_t x = 0; x < m; x++) {
        lw_value v = in_place_operand(o->inst, x);
        if (v.inst == op.inst && v.leaf == op.leaf) return false;
      }
    }
  }
  return true;
}

static bool refuse_in_place(lw_builder *b) {
  bool any = false;
  for (int32_t s = 0; s < (int32_t)b->stages.len; s++) {
    const lw_stage *st = &b->stages.data[s];
    bool update = st->kind == LW_STAGE_UPDATE_SLICE ||
                  (st->kind == LW_STAGE_SCATTER && st->in_place);
    if (!update || reads_allow(b, s) || b->opt.fault == LW_FAULT_UPDATE)
      continue;
    b->no_in_place[lw_b_at(b, st->inst)] = any = true;
  }
  return any;
}

static void settle(lw_builder *b) {
  for (int round = 0;; round++) {
    list_stages(b);
    cone_costs(b);
    walk_all(b);
    bool again = refuse_in_place(b);
    if (round < b->n_order + 8) again |= stage_repeated(b);
    if (!again) return;
  }
}

/* ---- homes ---- */

static void give_outputs(lw_builder *b) {
  lw_kernel *k = b->k;
  for (int32_t r = 0; r < k->n_outputs; r++) {
    if (!lw_shape_is_array(k->output_shapes[r])) continue;
    lw_value v = b->roots[r];
    lw_place *p = place(b, v.inst);
    if (p->kind != LW_PLACE_STAGED) continue;
    lw_stage *s = &b->stages.data[p->stage];
    int32_t buffer = k->n_params + r;
    if (s->dests[v.leaf].kind != LW_DEST_OUTPUT) {
      s->dests[v.leaf] = (lw_dest){LW_DEST_OUTPUT, buffer, 0};
      continue;
    }
    if (!s->copies)
      s->copies =
          lw_arena_alloc(b->a, sizeof *s->copies * (size_t)(k->n_outputs + 1));
    s->copies[s->n_copies].result = v.leaf;
    s->copies[s->n_copies++].buffer = buffer;
  }
}

static lw_status begin(lw_builder *b, const lw_inst *fusion) {
  lw_kernel *k = b->k;
  k->inst = fusion;
  k->body = lw_inst_comp(fusion, LW_ATTR_CALLS);
  if (!k->body || !k->body->root)
    return lw_error(LW_INVALID_ARGUMENT, "%s: a fusion without a body",
                    fusion->name);
  place_base(k);
  k->places = LW_NEW_ARRAY(b->a, lw_place, k->n_places);
  b->staged = LW_NEW_ARRAY(b->a, bool, k->n_places);
  b->no_in_place = LW_NEW_ARRAY(b->a, bool, k->n_places);
  b->visits = LW_NEW_ARRAY(b->a, int32_t, k->n_places);
  b->executions = LW_NEW_ARRAY(b->a, double, k->n_places);
  b->cone = LW_NEW_ARRAY(b->a, double, k->n_places);
  collect_order(b);
  for (int32_t i = 0; i < b->n_order; i++) LW_TRY(check_inst(b->order[i]));
  return NULL;
}

lw_status lw_kernel_build(lw_arena *a, const lw_inst *fusion,
                          const lw_kernel_options *options, lw_kernel **out) {
  static const lw_kernel_options dflt = {.l1_bytes = 32768,
                                         .l2_bytes = 1 << 20};
  lw_builder b = {.a = a, .opt = options ? *options : dflt};
  if (b.opt.l2_bytes <= 0) b.opt.l2_bytes = dflt.l2_bytes;
  b.k = LW_NEW(a, lw_kernel);
  b.k->options = b.opt;
  lw_index_init(&b.ix, a);
  lw_status s = begin(&b, fusion);
  if (!s) {
    place_params(&b);
    place_consts(&b);
    find_roots(&b);
    first_stages(&b);
    settle(&b);
    give_outputs(&b);
    s = lw_make_phases(&b);
  }
  if (!s) lw_find_aliases(&b);
  lw_index_free(&b.ix);
  lw_map_free(&b.seen);
  lw_vec_free(&b.stages);
  lw_vec_free(&b.reads);
  lw_vec_free(&b.bounds);
  *out = b.k;
  return s;
}
