/* Instructions: making, use lists, attributes. */
#include <string.h>

#include "hlo/hlo.h"

/* ---- use lists ---- */

static void use_link(lw_use *u, lw_inst *def) {
  u->def = def;
  u->prev = def->last_use;
  u->next = NULL;
  if (def->last_use)
    def->last_use->next = u;
  else
    def->uses = u;
  def->last_use = u;
  def->n_uses++;
}

static void use_unlink(lw_use *u) {
  lw_inst *def = u->def;
  if (u->prev)
    u->prev->next = u->next;
  else
    def->uses = u->next;
  if (u->next)
    u->next->prev = u->prev;
  else
    def->last_use = u->prev;
  def->n_uses--;
  u->def = NULL;
}

/* Operand arrays may move (append): their records are relinked in place. */
static void use_moved(lw_use *u) {
  if (u->prev)
    u->prev->next = u;
  else
    u->def->uses = u;
  if (u->next)
    u->next->prev = u;
  else
    u->def->last_use = u;
}

/* ---- the computation's list ---- */

static void list_append(lw_comp *c, lw_inst *i) {
  i->parent = c;
  i->prev = c->last;
  i->next = NULL;
  if (c->last)
    c->last->next = i;
  else
    c->first = i;
  c->last = i;
  c->n_insts++;
}

static void list_unlink(lw_inst *i) {
  lw_comp *c = i->parent;
  if (i->prev)
    i->prev->next = i->next;
  else
    c->first = i->next;
  if (i->next)
    i->next->prev = i->prev;
  else
    c->last = i->prev;
  c->n_insts--;
  i->prev = i->next = NULL;
}

void lw_inst_move_before(lw_inst *i, lw_inst *pos) {
  if (i == pos) return;
  lw_comp *c = pos->parent;
  list_unlink(i);
  c->n_insts++;
  i->prev = pos->prev;
  i->next = pos;
  if (pos->prev)
    pos->prev->next = i;
  else
    c->first = i;
  pos->prev = i;
}

/* ---- names ---- */

const char *lw_module_take_name(lw_module *m, const char *want) {
  return lw_name_unique(m->ctx, &m->names, want);
}

/* ---- making ---- */

static lw_inst *make(lw_comp *c, lw_opcode op, const lw_shape *shape,
                     const char *name, int32_t n_operands,
                     lw_inst *const *operands) {
  lw_module *m = c->module;
  lw_inst *i = LW_NEW(m->arena, lw_inst);
  i->opcode = op;
  i->shape = shape;
  i->name = lw_context_cstr(m->ctx, name);
  i->id = m->n_inst_ids++;
  i->unique_id = i->id;
  i->n_operands = i->cap_operands = n_operands;
  i->operands = LW_NEW_ARRAY(m->arena, lw_use, n_operands);
  for (int32_t k = 0; k < n_operands; k++) {
    i->operands[k].user = i;
    i->operands[k].slot = k;
    if (operands[k]) use_link(&i->operands[k], operands[k]);
  }
  list_append(c, i);
  return i;
}

lw_inst *lw_inst_new_named(lw_comp *c, lw_opcode op, const lw_shape *shape,
                           const char *name, int32_t n_operands,
                           lw_inst *const *operands) {
  (void)lw_module_take_name(c->module, name);
  return make(c, op, shape, name, n_operands, operands);
}

lw_inst *lw_inst_new(lw_comp *c, lw_opcode op, const lw_shape *shape,
                     const char *name, int32_t n_operands,
                     lw_inst *const *operands) {
  if (!name) name = lw_opcode_name(op);
  name = lw_module_take_name(c->module, name);
  return make(c, op, shape, name, n_operands, operands);
}

lw_inst *lw_inst_parameter(lw_comp *c, int64_t number, const lw_shape *shape,
                           const char *name) {
  lw_inst *i = lw_inst_new(c, LW_OP_PARAMETER, shape, name, 0, NULL);
  lw_inst_set_i64(i, LW_ATTR_PARAMETER_NUMBER, number);
  while ((int64_t)c->params.len <= number) lw_vec_push(&c->params, NULL);
  c->params.data[number] = i;
  return i;
}

lw_inst *lw_inst_constant(lw_comp *c, const lw_literal *value) {
  lw_inst *i = lw_inst_new(c, LW_OP_CONSTANT, value->shape, NULL, 0, NULL);
  lw_attr a = {.id = LW_ATTR_LITERAL, .u.literal = value};
  lw_inst_set_attr(i, &a);
  return i;
}

void lw_inst_copy_source(lw_inst *dst, const lw_inst *src) {
  dst->metadata = src->metadata;
  dst->sharding = src->sharding;
  dst->frontend_attrs = src->frontend_attrs;
  dst->line = src->line;
  dst->column = src->column;
}

lw_inst *lw_inst_clone(lw_comp *c, const lw_inst *src, lw_inst *const *operands,
                       const char *name) {
  lw_inst **own = NULL;
  if (!operands && src->n_operands) {
    own = LW_NEW_ARRAY(c->module->arena, lw_inst *, src->n_operands);
    for (int32_t k = 0; k < src->n_operands; k++) own[k] = src->operands[k].def;
    operands = own;
  }
  lw_inst *i = lw_inst_new(c, src->opcode, src->shape, name ? name : src->name,
                           src->n_operands, operands);
  for (int32_t k = 0; k < src->n_attrs; k++)
    lw_inst_set_attr(i, &src->attrs[k]);
  lw_inst_copy_source(i, src);
  i->backend_config = src->backend_config;
  if (src->opcode == LW_OP_PARAMETER) {
    int64_t number = lw_inst_param_number(i);
    while ((int64_t)c->params.len <= number) lw_vec_push(&c->params, NULL);
    c->params.data[number] = i;
  }
  return i;
}

/* ---- changing ---- */

void lw_inst_set_operand(lw_inst *user, int32_t slot, lw_inst *def) {
  lw_use *u = &user->operands[slot];
  if (u->def == def) return;
  if (u->def) use_unlink(u);
  use_link(u, def);
}

void lw_inst_replace_uses(lw_inst *old, lw_inst *def) {
  if (old == def) return;
  for (lw_use *u = old->uses, *next; u; u = next) {
    next = u->next;
    if (u->user == def) continue; /* def may be built upon old */
    use_unlink(u);
    use_link(u, def);
  }
  if (lw_inst_is_root(old)) old->parent->root = def;
}

void lw_inst_remove(lw_inst *i) {
  LW_ASSERT(i->n_uses == 0 && !lw_inst_is_root(i));
  for (int32_t k = 0; k < i->n_operands; k++)
    if (i->operands[k].def) use_unlink(&i->operands[k]);
  if (i->opcode == LW_OP_PARAMETER) {
    int64_t n = lw_inst_param_number(i);
    if (n >= 0 && n < (int64_t)i->parent->params.len &&
        i->parent->params.data[n] == i)
      i->parent->params.data[n] = NULL;
  }
  i->n_control_preds = 0;
  list_unlink(i);
  i->parent = NULL;
}

void lw_inst_drop_operand(lw_inst *i, int32_t slot) {
  use_unlink(&i->operands[slot]);
  for (int32_t k = slot; k + 1 < i->n_operands; k++) {
    i->operands[k] = i->operands[k + 1];
    i->operands[k].slot = k;
    use_moved(&i->operands[k]);
  }
  i->n_operands--;
}

static void more_operands(lw_inst *i) {
  int32_t n = i->n_operands, cap = n + n / 2 + 1;
  lw_use *ops = LW_NEW_ARRAY(i->parent->module->arena, lw_use, cap);
  for (int32_t k = 0; k < n; k++) {
    ops[k] = i->operands[k];
    use_moved(&ops[k]);
  }
  i->operands = ops;
  i->cap_operands = cap;
}

void lw_inst_append_operand(lw_inst *i, lw_inst *def) {
  int32_t n = i->n_operands;
  if (n == i->cap_operands) more_operands(i);
  i->operands[n] = (lw_use){.user = i, .slot = n};
  i->n_operands = n + 1;
  use_link(&i->operands[n], def);
}

void lw_inst_set_root(lw_comp *c, lw_inst *root) { c->root = root; }

void lw_inst_add_control_pred(lw_inst *i, lw_inst *pred) {
  for (int32_t k = 0; k < i->n_control_preds; k++)
    if (i->control_preds[k] == pred) return;
  int32_t n = i->n_control_preds;
  lw_inst **v = LW_NEW_ARRAY(i->parent->module->arena, lw_inst *, n + 1);
  for (int32_t k = 0; k < n; k++) v[k] = i->control_preds[k];
  v[n] = pred;
  i->control_preds = v;
  i->n_control_preds = n + 1;
}

void lw_inst_rename(lw_inst *i, const char *name) {
  lw_module *m = i->parent->module;
  if (strcmp(i->name, name)) i->name = lw_module_take_name(m, name);
}

/* ---- asking ---- */

/* The first use of a user is the one whose slot is its smallest for this def;
 * counting those counts users without a set. Uses made by set_operand may be
 * out of slot order, hence the scan over the user's operands. */
static bool first_slot(const lw_use *u) {
  for (int32_t k = 0; k < u->slot; k++)
    if (u->user->operands[k].def == u->def) return false;
  return true;
}

int32_t lw_inst_user_count(const lw_inst *i) {
  if (i->n_uses < 2) return i->n_uses;
  int32_t n = 0;
  for (const lw_use *u = i->uses; u; u = u->next) n += first_slot(u);
  return n;
}

lw_inst **lw_inst_users(const lw_inst *i, lw_arena *a, int32_t *n) {
  lw_inst **v = LW_NEW_ARRAY(a, lw_inst *, i->n_uses);
  *n = 0;
  for (const lw_use *u = i->uses; u; u = u->next)
    if (first_slot(u)) v[(*n)++] = u->user;
  return v;
}

static bool channel_side_effect(const lw_inst *i) {
  return lw_inst_i64(i, LW_ATTR_CONSTRAIN_LAYOUT, 0) != 0 ||
         (lw_inst_attr(i, LW_ATTR_CHANNEL_ID) &&
          !i->parent->module->use_spmd_partitioning);
}

static bool side_effect(const lw_inst *i, int depth) {
  if (lw_opcode_table[i->opcode].flags & LW_OPF_SIDE) return true;
  switch ((int)i->opcode) {
    case LW_OP_ALL_REDUCE_START:
    case LW_OP_ALL_REDUCE_DONE:
    case LW_OP_ALL_GATHER_START:
    case LW_OP_ALL_GATHER_DONE:
    case LW_OP_COLLECTIVE_PERMUTE_START:
    case LW_OP_COLLECTIVE_PERMUTE_DONE:
      return true;
    case LW_OP_ALL_TO_ALL:
    case LW_OP_ALL_GATHER:
    case LW_OP_ALL_REDUCE:
    case LW_OP_REDUCE_SCATTER:
    case LW_OP_COLLECTIVE_PERMUTE:
      return channel_side_effect(i);
    case LW_OP_CUSTOM_CALL:
      if (lw_inst_i64(i, LW_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT, 0)) return true;
      break;
    default:
      break;
  }
  if (depth > 64) return true;
  for (int32_t k = 0; k < lw_inst_called_count(i); k++) {
    lw_comp *c = lw_inst_called(i, k);
    for (lw_inst *j = c ? c->first : NULL; j; j = j->next)
      if (side_effect(j, depth + 1)) return true;
  }
  return false;
}

bool lw_inst_has_side_effect(const lw_inst *i) { return side_effect(i, 0); }

static bool fusion_is_elementwise(const lw_inst *i) {
  if (lw_inst_i64(i, LW_ATTR_KIND, 0) != LW_FUSION_LOOP) return false;
  lw_comp *c = lw_inst_comp(i, LW_ATTR_CALLS);
  for (lw_inst *j = c ? c->first : NULL; j; j = j->next)
    if (j->opcode != LW_OP_PARAMETER && !lw_inst_is_elementwise(j))
      return false;
  return c != NULL;
}

bool lw_inst_is_elementwise(const lw_inst *i) {
  switch ((int)i->opcode) {
    case LW_OP_CONSTANT:
    case LW_OP_COPY:
      return true;
    case LW_OP_BITCAST_CONVERT:
      return lw_shape_same_dims(i->shape, lw_inst_operand(i, 0)->shape);
    case LW_OP_FUSION:
      return fusion_is_elementwise(i);
    case LW_OP_RNG:
    case LW_OP_MAP:
      return true;
    default:
      return lw_opcode_is_elementwise(i->opcode);
  }
}

/* ---- called computations ---- */

/* XLA's order: the order of the attributes, but a while's body comes before its
 * condition. */
static lw_comp **called_slot(const lw_inst *i, int32_t k) {
  if (i->opcode == LW_OP_WHILE && k < 2) k = 1 - k;
  for (int32_t j = 0; j < i->n_attrs; j++) {
    lw_attr *a = &i->attrs[j];
    lw_attr_kind kind = lw_attr_table[a->id].kind;
    if (kind == LW_AK_COMP) {
      if (k-- == 0) return &a->u.comp;
    } else if (kind == LW_AK_COMPS) {
      if (k < a->u.comps.n) return &a->u.comps.v[k];
      k -= a->u.comps.n;
    }
  }
  return NULL;
}

int32_t lw_inst_called_count(const lw_inst *i) {
  if (!(lw_opcode_table[i->opcode].flags & LW_OPF_CALLS)) return 0;
  int32_t n = 0;
  for (int32_t j = 0; j < i->n_attrs; j++) {
    lw_attr_kind kind = lw_attr_table[i->attrs[j].id].kind;
    if (kind == LW_AK_COMP) n++;
    if (kind == LW_AK_COMPS) n += i->attrs[j].u.comps.n;
  }
  return n;
}

lw_comp *lw_inst_called(const lw_inst *i, int32_t k) {
  lw_comp **slot = called_slot(i, k);
  return slot ? *slot : NULL;
}

void lw_inst_set_called(lw_inst *i, int32_t k, lw_comp *c) {
  lw_comp **slot = called_slot(i, k);
  LW_ASSERT(slot);
  *slot = c;
}

/* ---- attributes ---- */

const lw_attr *lw_inst_attr(const lw_inst *i, lw_attr_id id) {
  for (int32_t k = 0; k < i->n_attrs; k++)
    if (i->attrs[k].id == id) return &i->attrs[k];
  return NULL;
}

/* Lists are copied, so that callers may pass stack arrays; structs (window,
 * dim_labels, groups, literal) and interned things are shared. */
static void own_lists(lw_arena *arena, lw_attr *a) {
  switch ((int)lw_attr_table[a->id].kind) {
    case LW_AK_I64S:
    case LW_AK_BOOLS:
    case LW_AK_SLICE:
    case LW_AK_PADDING:
    case LW_AK_PAIRS:
    case LW_AK_ENUMS_PRECISION:
      a->u.list.v = lw_arena_memdup(arena, a->u.list.v,
                                    (size_t)a->u.list.n * sizeof(int64_t));
      break;
    case LW_AK_COMPS:
      a->u.comps.v = lw_arena_memdup(arena, a->u.comps.v,
                                     (size_t)a->u.comps.n * sizeof(lw_comp *));
      break;
    case LW_AK_SHAPES:
      a->u.shapes.v = lw_arena_memdup(
          arena, a->u.shapes.v, (size_t)a->u.shapes.n * sizeof(lw_shape *));
      break;
    case LW_AK_ALIASING:
      a->u.aliasing.v = lw_arena_memdup(
          arena, a->u.aliasing.v, (size_t)a->u.aliasing.n * sizeof(lw_alias));
      break;
    case LW_AK_WINDOW: {
      lw_window *w = lw_arena_memdup(arena, a->u.window, sizeof *w);
      w->dims = lw_arena_memdup(arena, w->dims,
                                (size_t)w->rank * sizeof(lw_window_dim));
      a->u.window = w;
      break;
    }
    default:
      break;
  }
}

void lw_inst_set_attr(lw_inst *i, const lw_attr *a) {
  lw_arena *arena = i->parent->module->arena;
  lw_attr copy = *a;
  own_lists(arena, &copy);
  for (int32_t k = 0; k < i->n_attrs; k++)
    if (i->attrs[k].id == a->id) {
      i->attrs[k] = copy;
      return;
    }
  /* Capacity grows by powers of two: n is full when it is one. */
  int32_t n = i->n_attrs;
  if ((n & (n - 1)) == 0) {
    lw_attr *v = LW_NEW_ARRAY(arena, lw_attr, n ? n * 2 : 1);
    if (n) memcpy(v, i->attrs, (size_t)n * sizeof *v);
    i->attrs = v;
  }
  i->attrs[i->n_attrs++] = copy;
}

void lw_inst_remove_attr(lw_inst *i, lw_attr_id id) {
  int32_t n = 0;
  lw_attr *v = LW_NEW_ARRAY(i->parent->module->arena, lw_attr,
                            i->n_attrs ? i->n_attrs * 2 : 1);
  for (int32_t k = 0; k < i->n_attrs; k++)
    if (i->attrs[k].id != id) v[n++] = i->attrs[k];
  if (n == i->n_attrs) return;
  i->n_attrs = 0;
  i->attrs = NULL;
  for (int32_t k = 0; k < n; k++) lw_inst_set_attr(i, &v[k]);
}

void lw_inst_set_i64(lw_inst *i, lw_attr_id id, int64_t v) {
  lw_attr a = {.id = id, .u.i = v};
  lw_inst_set_attr(i, &a);
}

void lw_inst_set_i64s(lw_inst *i, lw_attr_id id, int32_t n, const int64_t *v) {
  lw_attr a = {.id = id, .u.list = {n, v}};
  lw_inst_set_attr(i, &a);
}

void lw_inst_set_comp(lw_inst *i, lw_attr_id id, lw_comp *c) {
  lw_attr a = {.id = id, .u.comp = c};
  lw_inst_set_attr(i, &a);
}

int64_t lw_inst_i64(const lw_inst *i, lw_attr_id id, int64_t dflt) {
  const lw_attr *a = lw_inst_attr(i, id);
  return a ? a->u.i : dflt;
}

const int64_t *lw_inst_i64s(const lw_inst *i, lw_attr_id id, int32_t *n) {
  const lw_attr *a = lw_inst_attr(i, id);
  *n = a ? a->u.list.n : 0;
  return a ? a->u.list.v : NULL;
}

const char *lw_inst_str(const lw_inst *i, lw_attr_id id) {
  const lw_attr *a = lw_inst_attr(i, id);
  return a ? a->u.s : NULL;
}

lw_comp *lw_inst_comp(const lw_inst *i, lw_attr_id id) {
  const lw_attr *a = lw_inst_attr(i, id);
  return a ? a->u.comp : NULL;
}

const lw_literal *lw_inst_literal(const lw_inst *i) {
  const lw_attr *a = lw_inst_attr(i, LW_ATTR_LITERAL);
  return a ? a->u.literal : NULL;
}

const lw_window *lw_inst_window(const lw_inst *i) {
  const lw_attr *a = lw_inst_attr(i, LW_ATTR_WINDOW);
  return a ? a->u.window : NULL;
}
