/* Modules to protos.
 *
 * XLA reads instructions in order, so operands must precede users and callees
 * callers: text order is kept where it is such an order, else post order is
 * taken. Ids are (computation id << 32) + a number in the computation; those an
 * instruction was read with are kept when they have that form and nobody else
 * has them. */
#include <string.h>

#include "reader/proto_impl.h"

typedef struct {
  const lw_module *m;
  lw_arena *arena;
  lw_map comp_ids; /* lw_comp* -> id */
  lw_map inst_ids; /* lw_inst* -> id */
  lw_map fused;    /* lw_comp* of fusions -> 1 */
} proto_out;

/* ---- ids ---- */

/* The upper half of its root's id: what it was read with, or 0, which the
 * first such computation gets. */
static int64_t old_comp_id(const lw_comp *c) {
  if (!c->root) return -1;
  int64_t id = c->root->unique_id >> 32;
  return id >= 0 && id < INT32_MAX ? id : -1;
}

static void number_comps(proto_out *o, lw_comp **order, int32_t n) {
  lw_map taken = {0};
  for (int32_t k = 0; k < n; k++) {
    int64_t id = old_comp_id(order[k]);
    if (id < 0) continue;
    uint64_t *slot = lw_map_put(&taken, (uint64_t)id);
    if (*slot) continue;
    *slot = 1;
    lw_map_set_ptr(&o->comp_ids, order[k], (void *)(uintptr_t)id);
  }
  int64_t next = 1;
  for (int32_t k = 0; k < n; k++) {
    if (lw_map_get(&o->comp_ids, (uintptr_t)order[k])) continue;
    while (lw_map_get(&taken, (uint64_t)next)) next++;
    *lw_map_put(&o->comp_ids, (uintptr_t)order[k]) = (uint64_t)next++;
  }
  lw_map_free(&taken);
}

static void number_insts(proto_out *o, const lw_comp *c) {
  int64_t comp = (int64_t)*lw_map_get(&o->comp_ids, (uintptr_t)c);
  lw_map taken = {0};
  for (lw_inst *i = c->first; i; i = i->next) {
    if (i->unique_id >> 32 != comp) continue;
    uint64_t *slot = lw_map_put(&taken, (uint64_t)i->unique_id);
    if (*slot) continue;
    *slot = 1;
    *lw_map_put(&o->inst_ids, (uintptr_t)i) = (uint64_t)i->unique_id;
  }
  int64_t next = comp << 32;
  for (lw_inst *i = c->first; i; i = i->next) {
    if (lw_map_get(&o->inst_ids, (uintptr_t)i)) continue;
    while (lw_map_get(&taken, (uint64_t)next)) next++;
    *lw_map_put(&o->inst_ids, (uintptr_t)i) = (uint64_t)next++;
  }
  lw_map_free(&taken);
}

static int64_t id_of(const proto_out *o, const lw_inst *i) {
  uint64_t *v = lw_map_get(&o->inst_ids, (uintptr_t)i);
  return v ? (int64_t)*v : 0;
}

/* ---- order ---- */

static bool precedes_users(const lw_comp *c) {
  uint8_t *seen = calloc((size_t)c->module->n_inst_ids + 1, 1);
  if (!seen) lw_oom((size_t)c->module->n_inst_ids);
  bool ok = true;
  for (const lw_inst *i = c->first; i && ok; i = i->next) {
    for (int32_t k = 0; k < i->n_operands; k++)
      ok &= i->operands[k].def && seen[i->operands[k].def->id];
    for (int32_t k = 0; k < i->n_control_preds; k++)
      ok &= seen[i->control_preds[k]->id];
    seen[i->id] = 1;
  }
  free(seen);
  return ok;
}

static lw_inst **inst_order(const proto_out *o, const lw_comp *c, int32_t *n) {
  if (!precedes_users(c)) return lw_comp_post_order(c, o->arena, n);
  lw_inst **v = LW_NEW_ARRAY(o->arena, lw_inst *, c->n_insts);
  *n = 0;
  for (lw_inst *i = c->first; i; i = i->next) v[(*n)++] = i;
  return v;
}

/* Text order of computations, when callees precede callers; else post order. */
static lw_comp **comp_order(const proto_out *o, int32_t *n) {
  const lw_module *m = o->m;
  uint8_t *seen = calloc((size_t)m->n_comp_ids + 1, 1);
  if (!seen) lw_oom((size_t)m->n_comp_ids);
  bool ok = true;
  lw_comp **v = LW_NEW_ARRAY(o->arena, lw_comp *, m->n_comp_ids);
  *n = 0;
  for (lw_comp *c = m->first_comp; c; c = c->next) {
    for (lw_inst *i = c->first; i; i = i->next)
      for (int32_t k = 0; k < lw_inst_called_count(i); k++) {
        lw_comp *callee = lw_inst_called(i, k);
        ok &= callee && seen[callee->id];
      }
    seen[c->id] = 1;
    v[(*n)++] = c;
  }
  free(seen);
  return ok ? v : lw_module_post_order(m, o->arena, n, false);
}

/* ---- messages ---- */

static const char *fold_text(const proto_out *o, const lw_inst *i) {
  int32_t n;
  const int64_t *v = lw_inst_i64s(i, LW_ATTR_FOLD, &n);
  if (n != 2) return NULL;
  return lw_arena_printf(o->arena, "%lld,%lld", (long long)v[0],
                         (long long)v[1]);
}

static lw_status write_inst(proto_out *o, lw_buf *b, const lw_inst *i) {
  lw_buf m = {0};
  pb_put_str(&m, 1, i->name);
  pb_put_str(&m, 2, lw_opcode_name(i->opcode));
  proto_write_shape(&m, 3, i->shape);
  proto_write_metadata(&m, 7, i->metadata);
  lw_status st = proto_write_attrs(&m, i, &o->comp_ids);
  pb_put_i64(&m, 35, id_of(o, i));
  pb_i64s ids = {0};
  for (int32_t k = 0; k < i->n_operands; k++)
    lw_vec_push(&ids, id_of(o, i->operands[k].def));
  pb_put_i64s(&m, 36, ids.data, (int64_t)ids.len);
  ids.len = 0;
  for (int32_t k = 0; k < i->n_control_preds; k++)
    lw_vec_push(&ids, id_of(o, i->control_preds[k]));
  pb_put_i64s(&m, 37, ids.data, (int64_t)ids.len);
  lw_vec_free(&ids);
  if (i->sharding) proto_write_sharding(&m, 40, i->sharding);
  if (i->backend_config) pb_put_str(&m, 43, i->backend_config);
  const char *fold = fold_text(o, i);
  proto_write_frontend(&m, 68, &i->frontend_attrs,
                       fold ? lw_attr_table[LW_ATTR_FOLD].name : NULL, fold);
  pb_put_msg(b, 2, &m);
  return st;
}

/* Parameters, result, names. Shapes of the computation unless given. */
static void write_program_shape(lw_buf *b, uint32_t number, const lw_comp *c,
                                const lw_module *m) {
  lw_buf s = {0};
  for (size_t k = 0; k < c->params.len; k++) {
    bool given = m && m->entry_params && (int32_t)k < m->n_entry_params;
    const lw_inst *p = c->params.data[k];
    if (given || p)
      proto_write_shape(&s, 1, given ? m->entry_params[k] : p->shape);
  }
  if (m && m->entry_result)
    proto_write_shape(&s, 2, m->entry_result);
  else if (c->root)
    proto_write_shape(&s, 2, c->root->shape);
  for (size_t k = 0; k < c->params.len; k++)
    if (c->params.data[k]) {
      const char *name = c->params.data[k]->name;
      pb_put_bytes(&s, 3, name, strlen(name));
    }
  pb_put_msg(b, number, &s);
}

static lw_status write_comp(proto_out *o, lw_buf *b, const lw_comp *c) {
  lw_buf m = {0};
  pb_put_str(&m, 1, c->name);
  int32_t n;
  lw_inst **order = inst_order(o, c, &n);
  lw_status st = NULL;
  for (int32_t k = 0; k < n && !st; k++) st = write_inst(o, &m, order[k]);
  write_program_shape(&m, 4, c, NULL);
  pb_put_i64(&m, 5, (int64_t)*lw_map_get(&o->comp_ids, (uintptr_t)c));
  if (c->root) pb_put_i64(&m, 6, id_of(o, c->root));
  if (lw_map_get(&o->fused, (uintptr_t)c)) pb_put_i64(&m, 7, 1);
  pb_put_str(&m, 8, c->execution_thread);
  pb_put_msg(b, 3, &m);
  return st;
}

static void write_schedule(proto_out *o, lw_buf *b) {
  lw_buf m = {0};
  for (const lw_comp *c = o->m->first_comp; c; c = c->next) {
    if (lw_map_get(&o->fused, (uintptr_t)c)) continue;
    lw_buf entry = {0}, seq = {0};
    pb_i64s ids = {0};
    for (const lw_inst *i = c->first; i; i = i->next)
      lw_vec_push(&ids, id_of(o, i));
    pb_put_i64s(&seq, 1, ids.data, (int64_t)ids.len);
    lw_vec_free(&ids);
    pb_put_i64(&entry, 1, (int64_t)*lw_map_get(&o->comp_ids, (uintptr_t)c));
    pb_put_msg(&entry, 2, &seq);
    pb_put_msg(&m, 1, &entry);
  }
  pb_put_msg(b, 7, &m);
}

static void write_aliases(const lw_module *mod, lw_buf *b) {
  lw_buf m = {0};
  for (int32_t i = 0; i < mod->n_aliases; i++) {
    const lw_io_alias *a = &mod->aliases[i];
    lw_buf e = {0};
    pb_put_i64s(&e, 1, a->output_index, a->n_output_index);
    pb_put_i64(&e, 2, a->param);
    pb_put_i64s(&e, 3, a->param_index, a->n_param_index);
    pb_put_i64(&e, 4, a->must_alias ? 2 : 1);
    pb_put_msg(&m, 1, &e);
  }
  pb_put_msg(b, 8, &m);
}

static void write_donors(const lw_module *mod, lw_buf *b) {
  lw_buf m = {0};
  for (int32_t i = 0; i < mod->n_donors; i++) {
    lw_buf e = {0};
    pb_put_i64(&e, 1, mod->donors[i].param);
    pb_put_i64s(&e, 2, mod->donors[i].index, mod->donors[i].n_index);
    pb_put_msg(&m, 1, &e);
  }
  pb_put_msg(b, 18, &m);
}

static void write_strings(lw_buf *b, uint32_t number, const char **v,
                          int32_t n) {
  for (int32_t i = 0; i < n; i++) pb_put_bytes(b, number, v[i], strlen(v[i]));
}

static void write_stack_frames(const lw_module *mod, lw_buf *b) {
  if (!mod->n_file_names && !mod->n_stack_frames) return;
  lw_buf m = {0};
  write_strings(&m, 1, mod->file_names, mod->n_file_names);
  write_strings(&m, 2, mod->function_names, mod->n_function_names);
  for (int32_t i = 0; i < mod->n_file_locations; i++) {
    const lw_file_location *l = &mod->file_locations[i];
    lw_buf e = {0};
    pb_put_i64(&e, 1, l->file_name_id);
    pb_put_i64(&e, 2, l->function_name_id);
    pb_put_i64(&e, 3, l->line);
    pb_put_i64(&e, 4, l->column);
    pb_put_i64(&e, 5, l->end_line);
    pb_put_i64(&e, 6, l->end_column);
    pb_put_msg(&m, 3, &e);
  }
  for (int32_t i = 0; i < mod->n_stack_frames; i++) {
    lw_buf e = {0};
    int64_t parent = mod->stack_frames[i].parent_frame_id;
    pb_put_i64(&e, 1, mod->stack_frames[i].file_location_id);
    pb_put_i64(&e, 2, parent > 0 ? parent - 1 : 0);
    pb_put_msg(&m, 4, &e);
  }
  pb_put_msg(b, 17, &m);
}

static void write_devices(const lw_module *mod, lw_buf *b) {
  int64_t r = mod->replica_count, p = mod->num_partitions;
  if (!mod->n_devices || r * p != mod->n_devices) return;
  lw_buf m = {0};
  pb_put_i64(&m, 1, r);
  pb_put_i64(&m, 2, p);
  for (int64_t k = 0; k < p; k++) {
    lw_buf e = {0};
    pb_put_i64s(&e, 1, mod->devices + k * r, r);
    pb_put_msg(&m, 3, &e);
  }
  pb_put_msg(b, 15, &m);
}

static lw_status write_module(proto_out *o, lw_buf *b) {
  const lw_module *m = o->m;
  int32_t n;
  lw_comp **order = comp_order(o, &n);
  number_comps(o, order, n);
  for (int32_t k = 0; k < n; k++) number_insts(o, order[k]);
  for (int32_t k = 0; k < n; k++)
    for (lw_inst *i = order[k]->first; i; i = i->next)
      if (i->opcode == LW_OP_FUSION && lw_inst_comp(i, LW_ATTR_CALLS))
        *lw_map_put(&o->fused, (uintptr_t)lw_inst_comp(i, LW_ATTR_CALLS)) = 1;
  pb_put_str(b, 1, m->name);
  pb_put_str(b, 2, m->entry->name);
  for (int32_t k = 0; k < n; k++) LW_TRY(write_comp(o, b, order[k]));
  write_program_shape(b, 4, m->entry, m);
  pb_put_i64(b, 5, m->id);
  pb_put_i64(b, 6, (int64_t)*lw_map_get(&o->comp_ids, (uintptr_t)m->entry));
  if (m->is_scheduled) write_schedule(o, b);
  write_aliases(m, b);
  pb_put_i64(b, 11, m->is_dynamic);
  write_devices(m, b);
  write_stack_frames(m, b);
  write_donors(m, b);
  proto_write_frontend(b, 19, &m->frontend_attrs, NULL, NULL);
  return NULL;
}

static lw_status can_write(const lw_module *m) {
  if (!m->entry)
    return lw_error(LW_INVALID_ARGUMENT, "the module has no entry computation");
  for (const lw_comp *c = m->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next)
      for (int32_t k = -1; k < i->n_operands; k++)
        if (k < 0 ? !i->shape : !i->operands[k].def)
          return lw_error(LW_INVALID_ARGUMENT, "%s lacks a shape or operand",
                          i->name);
  return NULL;
}

lw_status lw_write_proto(const lw_module *m, bool as_hlo_proto, lw_buf *out) {
  LW_TRY(can_write(m));
  proto_out o = {.m = m, .arena = lw_arena_new()};
  lw_buf b = {0};
  lw_status st = write_module(&o, &b);
  if (!st && as_hlo_proto)
    pb_put_msg(out, 1, &b);
  else if (!st)
    lw_buf_add(out, b.data, b.len);
  lw_buf_free(&b);
  lw_map_free(&o.comp_ids);
  lw_map_free(&o.inst_ids);
  lw_map_free(&o.fused);
  lw_arena_free(o.arena);
  return st;
}
