/* Modules, computations and instructions from protos.
 *
 * Two passes over the instructions: the first makes them all, so that operands,
 * control predecessors and called computations may be given by id in any order;
 * the second fills them in. The order in the proto is kept as text order; a
 * schedule reorders it. */
#include <string.h>

#include "base/diag.h"
#include "reader/proto_impl.h"

enum {
  MODULE_NAME = 1,
  MODULE_ENTRY_NAME = 2,
  MODULE_COMPUTATIONS = 3,
  MODULE_PROGRAM_SHAPE = 4,
  MODULE_ID = 5,
  MODULE_ENTRY_ID = 6,
  MODULE_SCHEDULE = 7,
  MODULE_ALIAS = 8,
  MODULE_IS_DYNAMIC = 11,
  MODULE_DEVICES = 15,
  MODULE_STACK_FRAMES = 17,
  MODULE_DONORS = 18,
  MODULE_FRONTEND = 19,

  COMP_NAME = 1,
  COMP_INSTRUCTIONS = 2,
  COMP_ID = 5,
  COMP_ROOT = 6,
  COMP_THREAD = 8,

  INST_NAME = 1,
  INST_OPCODE = 2,
  INST_SHAPE = 3,
  INST_METADATA = 7,
  INST_ID = 35,
  INST_OPERANDS = 36,
  INST_CONTROL = 37,
  INST_SHARDING = 40,
  INST_BACKEND_CONFIG = 43,
  INST_FRONTEND = 68,
  INST_CONFIG_PAYLOAD = 99
};

typedef struct {
  pb_msg msg;
  lw_comp *comp;
  int64_t id;
  lw_map ids; /* instruction id -> lw_inst* */
} comp_in;

typedef LW_VEC(comp_in) comps_in;

/* ---- instructions ---- */

/* Names come from anywhere: only printable bytes go into messages. */
static void unknown_opcode(proto_in *in, pb_msg m, pb_msg s) {
  char name[48] = {0};
  const char *known[LW_OPCODE_COUNT];
  for (size_t k = 0; k < pb_size(s) && k + 1 < sizeof name; k++)
    name[k] = s.p[k] >= ' ' && s.p[k] < 127 ? (char)s.p[k] : '?';
  for (int k = 0; k < LW_OPCODE_COUNT; k++)
    known[k] = lw_opcode_name((lw_opcode)k);
  const char *near = lw_nearest_name(name, known, LW_OPCODE_COUNT);
  proto_fail(in, m, "unknown opcode \"%s\"%s%s%s", name,
             near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static lw_opcode read_opcode(proto_in *in, pb_msg m) {
  pb_msg s = pb_bytes(m, INST_OPCODE);
  lw_opcode op = pb_size(s) ? lw_opcode_from_name((const char *)s.p, pb_size(s))
                            : LW_OPCODE_COUNT;
  if (op == LW_OPCODE_COUNT) unknown_opcode(in, m, s);
  return op;
}

static void make_inst(proto_in *in, comp_in *c, pb_msg m) {
  lw_opcode op = read_opcode(in, m);
  pb_msg sm = proto_sub(in, m, INST_SHAPE);
  const lw_shape *shape = in->err ? NULL : proto_read_shape(in, sm, 0);
  int32_t n;
  proto_i64s(in, m, INST_OPERANDS, &n);
  if (in->err) return;
  lw_inst **none = LW_NEW_ARRAY(in->arena, lw_inst *, n);
  lw_inst *i = lw_inst_new_named(
      c->comp, op, shape, proto_str_or(in, m, INST_NAME, lw_opcode_name(op)), n,
      none);
  i->unique_id = pb_i64(m, INST_ID, 0);
  if (lw_map_get(&c->ids, (uint64_t)i->unique_id))
    proto_fail(in, m, "two instructions of %s have the id %lld", c->comp->name,
               (long long)i->unique_id);
  *lw_map_put(&c->ids, (uint64_t)i->unique_id) = (uintptr_t)i;
}

static lw_inst *find_inst(proto_in *in, comp_in *c, pb_msg m, int64_t id) {
  uint64_t *v = lw_map_get(&c->ids, (uint64_t)id);
  if (!v && id == (int64_t)(int32_t)id) /* local ids are the lower half */
    v = lw_map_get(&c->ids, (uint64_t)c->id << 32 | (uint64_t)id);
  if (v) return (lw_inst *)(uintptr_t)*v;
  proto_fail(in, m, "%s has no instruction of id %lld", c->comp->name,
             (long long)id);
  return NULL;
}

static void fill_inst(proto_in *in, comp_in *c, lw_inst *i, pb_msg m) {
  int32_t n;
  const int64_t *ids = proto_i64s(in, m, INST_OPERANDS, &n);
  for (int32_t k = 0; k < n && !in->err; k++) {
    lw_inst *def = find_inst(in, c, m, ids[k]);
    if (def) lw_inst_set_operand(i, k, def);
  }
  ids = proto_i64s(in, m, INST_CONTROL, &n);
  for (int32_t k = 0; k < n && !in->err; k++) {
    lw_inst *pred = find_inst(in, c, m, ids[k]);
    if (pred) lw_inst_add_control_pred(i, pred);
  }
  i->metadata = proto_read_metadata(in, proto_sub(in, m, INST_METADATA));
  if (pb_has(m, INST_SHARDING))
    i->sharding = proto_read_sharding(in, proto_sub(in, m, INST_SHARDING), 0);
  i->frontend_attrs = proto_read_frontend(in, proto_sub(in, m, INST_FRONTEND));
  i->backend_config = proto_str(in, m, INST_BACKEND_CONFIG);
  if (!i->backend_config && pb_has(m, INST_CONFIG_PAYLOAD))
    i->backend_config = proto_payload(in, m, INST_CONFIG_PAYLOAD);
  if (!in->err) proto_read_attrs(in, m, i);
}

/* ---- computations ---- */

static void make_comp(proto_in *in, pb_msg m, comps_in *all) {
  comp_in c = {.msg = m, .id = pb_i64(m, COMP_ID, 0)};
  c.comp = lw_comp_new(in->module, proto_str_or(in, m, COMP_NAME, "comp"));
  const char *thread = proto_str(in, m, COMP_THREAD);
  if (thread && strcmp(thread, "main")) c.comp->execution_thread = thread;
  if (lw_map_get(&in->comps, (uint64_t)c.id))
    proto_fail(in, m, "two computations have the id %lld", (long long)c.id);
  *lw_map_put(&in->comps, (uint64_t)c.id) = (uintptr_t)c.comp;
  pb_msg im;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, COMP_INSTRUCTIONS, &im);)
    make_inst(in, &c, im);
  lw_vec_push(all, c);
}

static void fill_comp(proto_in *in, comp_in *c) {
  lw_inst *i = c->comp->first;
  pb_msg im;
  for (pb_iter it = pb_begin(c->msg);
       i && proto_next(in, &it, COMP_INSTRUCTIONS, &im); i = i->next)
    fill_inst(in, c, i, im);
  if (in->err) return;
  if (!c->comp->first) {
    proto_fail(in, c->msg, "computation %s is empty", c->comp->name);
    return;
  }
  lw_inst *root = find_inst(in, c, c->msg, pb_i64(c->msg, COMP_ROOT, 0));
  if (root) lw_inst_set_root(c->comp, root);
}

/* ---- the module's own ---- */

static void read_program_shape(proto_in *in, pb_msg m) {
  if (!pb_size(m)) return;
  LW_VEC(const lw_shape *) v = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, 1, &e);) {
    const lw_shape *s = proto_read_shape(in, e, 0);
    lw_vec_push(&v, s);
  }
  pb_msg result = proto_sub(in, m, 2);
  if (result.p) in->module->entry_result = proto_read_shape(in, result, 0);
  in->module->n_entry_params = (int32_t)v.len;
  in->module->entry_params =
      lw_arena_memdup(in->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
}

static void read_aliases(proto_in *in, pb_msg m) {
  LW_VEC(lw_io_alias) v = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, 1, &e);) {
    lw_io_alias a = {.param = pb_i64(e, 2, 0),
                     .must_alias = pb_i64(e, 4, 0) == 2};
    a.output_index = proto_i64s(in, e, 1, &a.n_output_index);
    a.param_index = proto_i64s(in, e, 3, &a.n_param_index);
    lw_vec_push(&v, a);
  }
  in->module->n_aliases = (int32_t)v.len;
  in->module->aliases =
      lw_arena_memdup(in->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
}

static void read_donors(proto_in *in, pb_msg m) {
  LW_VEC(lw_donor) v = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, 1, &e);) {
    lw_donor d = {.param = pb_i64(e, 1, 0)};
    d.index = proto_i64s(in, e, 2, &d.n_index);
    lw_vec_push(&v, d);
  }
  in->module->n_donors = (int32_t)v.len;
  in->module->donors =
      lw_arena_memdup(in->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
}

static const char **read_strings(proto_in *in, pb_msg m, uint32_t number,
                                 int32_t *n) {
  LW_VEC(const char *) v = {0};
  for (pb_iter it = pb_begin(m); pb_each(&it, number, PB_LEN);)
    lw_vec_push(&v, lw_context_str(in->ctx, (const char *)it.bytes.p,
                                   pb_size(it.bytes)));
  *n = (int32_t)v.len;
  const char **r = lw_arena_memdup(in->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return r;
}

static void read_stack_frames(proto_in *in, pb_msg m) {
  lw_module *mod = in->module;
  mod->file_names = read_strings(in, m, 1, &mod->n_file_names);
  mod->function_names = read_strings(in, m, 2, &mod->n_function_names);
  LW_VEC(lw_file_location) loc = {0};
  LW_VEC(lw_stack_frame) frames = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, 3, &e);) {
    lw_file_location l = {.file_name_id = pb_i64(e, 1, 0),
                          .function_name_id = pb_i64(e, 2, 0),
                          .line = pb_i64(e, 3, 0),
                          .column = pb_i64(e, 4, 0),
                          .end_line = pb_i64(e, 5, 0),
                          .end_column = pb_i64(e, 6, 0)};
    lw_vec_push(&loc, l);
  }
  for (pb_iter it = pb_begin(m); proto_next(in, &it, 4, &e);) {
    /* Tables print parent_frame_id one higher, 1 for none. */
    lw_stack_frame f = {pb_i64(e, 1, 0), pb_i64(e, 2, 0) + 1};
    lw_vec_push(&frames, f);
  }
  mod->n_file_locations = (int32_t)loc.len;
  mod->file_locations =
      lw_arena_memdup(in->arena, loc.data, loc.len * sizeof *loc.data);
  mod->n_stack_frames = (int32_t)frames.len;
  mod->stack_frames =
      lw_arena_memdup(in->arena, frames.data, frames.len * sizeof *frames.data);
  lw_vec_free(&loc);
  lw_vec_free(&frames);
}

static comp_in *comp_of_id(comps_in *all, int64_t id) {
  for (size_t i = 0; i < all->len; i++)
    if (all->data[i].id == id) return &all->data[i];
  return NULL;
}

/* Text order becomes the schedule's; instructions it leaves out follow. */
static void apply_sequence(proto_in *in, comp_in *c, pb_msg seq) {
  int32_t n;
  const int64_t *ids = proto_i64s(in, seq, 1, &n);
  for (int32_t k = n - 1; k >= 0 && !in->err; k--) {
    lw_inst *i = find_inst(in, c, seq, ids[k]);
    if (i && c->comp->first) lw_inst_move_before(i, c->comp->first);
  }
}

static void read_schedule(proto_in *in, pb_msg m, comps_in *all) {
  pb_msg e;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, 1, &e);) {
    comp_in *c = comp_of_id(all, pb_i64(e, 1, 0));
    pb_msg seq = proto_sub(in, e, 2);
    if (!c)
      proto_fail(in, e,
                 "the schedule names computation %lld, which is not "
                 "there",
                 (long long)pb_i64(e, 1, 0));
    else
      apply_sequence(in, c, seq);
    in->module->is_scheduled = true;
  }
}

/* Replica and partition counts are only in the device assignment. */
static void read_devices(proto_in *in, pb_msg m) {
  if (!pb_size(m)) return;
  lw_module *mod = in->module;
  int64_t replicas = pb_i64(m, 1, 0), partitions = pb_i64(m, 2, 0);
  pb_i64s ids = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, 3, &e);)
    pb_get_i64s(e, 1, &ids);
  int64_t want;
  if (replicas < 1 || partitions < 1 ||
      __builtin_mul_overflow(replicas, partitions, &want) ||
      want != (int64_t)ids.len) {
    proto_fail(in, m, "the device assignment of %lld x %lld has %zu devices",
               (long long)replicas, (long long)partitions, ids.len);
  } else {
    mod->replica_count = replicas;
    mod->num_partitions = partitions;
    mod->use_spmd_partitioning = partitions > 1;
    mod->n_devices = (int32_t)ids.len;
    mod->devices =
        lw_arena_memdup(in->arena, ids.data, ids.len * sizeof *ids.data);
  }
  lw_vec_free(&ids);
}

static void find_entry(proto_in *in, pb_msg m, comps_in *all) {
  comp_in *c = comp_of_id(all, pb_i64(m, MODULE_ENTRY_ID, 0));
  const char *name = proto_str(in, m, MODULE_ENTRY_NAME);
  if (!pb_has(m, MODULE_ENTRY_ID) && name)
    for (size_t i = 0; i < all->len; i++)
      if (all->data[i].comp->name == name) c = &all->data[i];
  if (c)
    in->module->entry = c->comp;
  else
    proto_fail(in, m, "the entry computation is missing");
}

static void read_module(proto_in *in, pb_msg m) {
  comps_in all = {0};
  pb_msg cm;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, MODULE_COMPUTATIONS, &cm);)
    make_comp(in, cm, &all);
  for (size_t i = 0; i < all.len && !in->err; i++) fill_comp(in, &all.data[i]);
  find_entry(in, m, &all);
  in->module->id = pb_i64(m, MODULE_ID, 0);
  in->module->is_dynamic = pb_i64(m, MODULE_IS_DYNAMIC, 0) != 0;
  read_program_shape(in, proto_sub(in, m, MODULE_PROGRAM_SHAPE));
  read_aliases(in, proto_sub(in, m, MODULE_ALIAS));
  read_donors(in, proto_sub(in, m, MODULE_DONORS));
  read_devices(in, proto_sub(in, m, MODULE_DEVICES));
  read_stack_frames(in, proto_sub(in, m, MODULE_STACK_FRAMES));
  in->module->frontend_attrs =
      proto_read_frontend(in, proto_sub(in, m, MODULE_FRONTEND));
  read_schedule(in, proto_sub(in, m, MODULE_SCHEDULE), &all);
  for (size_t i = 0; i < all.len; i++) lw_map_free(&all.data[i].ids);
  lw_vec_free(&all);
}

static lw_status read_at(lw_context *ctx, pb_msg m, lw_module **out) {
  proto_in in = {.ctx = ctx, .payloads = m};
  *out = NULL;
  LW_TRY(pb_check(m));
  pb_msg name = pb_bytes(m, MODULE_NAME);
  size_t len = pb_size(name) ? strnlen((const char *)name.p, pb_size(name)) : 0;
  const char *text =
      len ? lw_context_str(ctx, (const char *)name.p, len) : "module";
  in.module = lw_module_new(ctx, text);
  in.arena = in.module->arena;
  read_module(&in, m);
  lw_map_free(&in.comps);
  if (in.err)
    lw_module_free(in.module);
  else
    *out = in.module;
  return in.err;
}

/* ---- which of the three ---- */

/* Holds a computation whose first instruction has a known opcode. */
static bool is_module(pb_msg m) {
  pb_iter it = pb_begin(m);
  if (!m.p || !pb_each(&it, MODULE_COMPUTATIONS, PB_LEN)) return false;
  pb_iter i = pb_begin(it.bytes);
  if (!pb_each(&i, COMP_INSTRUCTIONS, PB_LEN)) return false;
  pb_msg s = pb_bytes(i.bytes, INST_OPCODE);
  return pb_size(s) &&
         lw_opcode_from_name((const char *)s.p, pb_size(s)) != LW_OPCODE_COUNT;
}

static bool detect(pb_msg m, pb_msg *module, lw_proto_kind *kind) {
  pb_msg one = pb_bytes(m, 1), two = one.p ? pb_bytes(one, 1) : one;
  *kind = is_module(two)   ? LW_PROTO_SNAPSHOT
          : is_module(one) ? LW_PROTO_HLO
                           : LW_PROTO_MODULE;
  *module = *kind == LW_PROTO_SNAPSHOT ? two : *kind == LW_PROTO_HLO ? one : m;
  return is_module(*module);
}

static lw_status read_literals(lw_context *ctx, pb_msg m, lw_snapshot *s) {
  proto_in in = {.ctx = ctx, .module = s->module, .arena = s->module->arena};
  LW_VEC(lw_literal *) v = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(m); proto_next(&in, &it, 2, &e);) {
    lw_literal *l = proto_read_literal(&in, e, 0);
    lw_vec_push(&v, l);
  }
  pb_msg result = proto_sub(&in, m, 3);
  if (result.p) s->result = proto_read_literal(&in, result, 0);
  s->platform = proto_str(&in, m, 4);
  s->n_arguments = (int32_t)v.len;
  s->arguments = lw_arena_memdup(in.arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return in.err;
}

lw_status lw_read_snapshot(lw_context *ctx, const void *data, size_t len,
                           lw_snapshot *out) {
  *out = (lw_snapshot){0};
  pb_msg all = {data, (const uint8_t *)data + len, 0}, module;
  LW_TRY(pb_check(all));
  if (!detect(all, &module, &out->kind)) {
    /* A module whose beginning is damaged, or something else altogether. */
    lw_status st = lw_error(LW_INVALID_ARGUMENT,
                            "not an HloModuleProto, HloProto or HloSnapshot: "
                            "no computations found");
    return st;
  }
  LW_TRY(read_at(ctx, module, &out->module));
  if (out->kind != LW_PROTO_SNAPSHOT) return NULL;
  lw_status st = read_literals(ctx, all, out);
  if (st) {
    lw_module_free(out->module);
    *out = (lw_snapshot){0};
  }
  return st;
}

lw_status lw_read_proto(lw_context *ctx, const void *data, size_t len,
                        lw_module **out) {
  lw_snapshot s;
  lw_status st = lw_read_snapshot(ctx, data, len, &s);
  *out = st ? NULL : s.module;
  return st;
}
