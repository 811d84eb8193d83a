/* The IR: modules, computations, instructions.
 *
 * Objects live in the module's arena and are never freed alone. Ids are dense
 * (side tables are arrays indexed by them). Operand slots are use records,
 * linked into the used instruction's list in the order they were made. Order
 * in a computation is insertion order = text order.
 */
#ifndef LW_HLO_HLO_H
#define LW_HLO_HLO_H

#include "base/vec.h"
#include "hlo/attr.h"

typedef struct lw_inst lw_inst;
typedef struct lw_module lw_module;

typedef struct lw_use {
  lw_inst *def, *user;
  int32_t slot;               /* operand index in user */
  struct lw_use *prev, *next; /* the def's list */
} lw_use;

/* OpMetadata of XLA's xla_data.proto. Strings are NULL when absent. */
typedef struct {
  const char *op_type, *op_name, *source_file;
  int64_t source_line, source_end_line, source_column, source_end_column;
  int64_t stack_frame_id;
  int32_t n_profile_types;
  const int64_t *profile_types;
  int64_t size_of_generated_code_bytes, size_of_memory_working_set_bytes;
  const char *deduplicated_name, *scheduling_name;
  const char *payload; /* metadata_payload, raw text */
} lw_metadata;

typedef struct {
  const char *key, *value;
} lw_kv;

/* Sorted by key. */
typedef struct {
  int32_t n;
  const lw_kv *v;
} lw_frontend_attrs;

/* OpSharding. TUPLE holds elems; TILED either explicit devices or the iota
 * form; NAMED keeps the text of the mesh form. */
typedef struct lw_sharding {
  enum {
    LW_SH_REPLICATED,
    LW_SH_MAXIMAL,
    LW_SH_TUPLE,
    LW_SH_TILED,
    LW_SH_MANUAL,
    LW_SH_UNKNOWN,
    LW_SH_UNREDUCED,
    LW_SH_NAMED
  } type;
  int32_t n_elems;
  const struct lw_sharding *const *elems;
  int64_t maximal_device;
  int32_t n_tile_dims;
  const int64_t *tile_dims;
  int32_t n_devices; /* explicit list when > 0 */
  const int64_t *devices;
  int32_t n_iota_dims;
  const int64_t *iota_dims;
  const int32_t *iota_perm; /* NULL: identity */
  bool replicate_on_last_tile_dim;
  int32_t n_last_tile_types;
  const int32_t *last_tile_types; /* enum values above */
  enum { LW_SHARD_NONE, LW_SHARD_AS, LW_SHARD_LIKE } group;
  int64_t group_id;
  int32_t n_metadata;
  const lw_metadata *metadata;
  const char *named_text;
} lw_sharding;

struct lw_inst {
  lw_opcode opcode;
  int32_t id;        /* dense in the module */
  int64_t unique_id; /* XLA's proto id where read from one, else id */
  const char *name;  /* without % */
  const lw_shape *shape;
  lw_comp *parent; /* NULL once removed */
  lw_inst *prev, *next;
  int32_t n_operands, cap_operands;
  lw_use *operands;
  lw_use *uses, *last_use;
  int32_t n_uses; /* slots; see lw_inst_user_count for distinct users */
  int32_t n_attrs;
  lw_attr *attrs;
  const lw_metadata *metadata;
  const lw_sharding *sharding;
  lw_frontend_attrs frontend_attrs;
  const char *backend_config; /* verbatim; NULL when absent */
  int32_t n_control_preds;
  lw_inst **control_preds;
  int32_t line, column; /* in the text it was read from; 0 when none */
};

struct lw_comp {
  int32_t id;
  const char *name;
  lw_module *module;
  lw_inst *first, *last;
  int32_t n_insts;
  lw_inst *root;
  LW_VEC(lw_inst *) params;     /* by parameter number */
  const char *execution_thread; /* NULL: main */
  lw_comp *next;                /* in the module, insertion order */
  int32_t line, column;
};

/* {output index}: (parameter, {parameter index}, kind) */
typedef struct {
  int32_t n_output_index, n_param_index;
  const int64_t *output_index, *param_index;
  int64_t param;
  bool must_alias;
} lw_io_alias;

typedef struct {
  int64_t param;
  int32_t n_index;
  const int64_t *index;
} lw_donor;

typedef struct {
  int64_t file_name_id, function_name_id, line, end_line, column, end_column;
} lw_file_location;

typedef struct {
  int64_t file_location_id, parent_frame_id; /* as printed */
} lw_stack_frame;

struct lw_module {
  lw_context *ctx;
  lw_arena *arena;
  const char *name;
  int64_t id;
  lw_comp *first_comp, *last_comp;
  lw_comp *entry;
  int32_t n_inst_ids, n_comp_ids; /* ids handed out so far */
  lw_map names;                   /* registry of names.c: instructions */
  lw_map comp_names;
  bool is_scheduled;
  int64_t replica_count, num_partitions; /* 1 when not given */
  bool use_spmd_partitioning;
  /* A proto's device assignment: replica_count ids for each partition. */
  int32_t n_devices;
  const int64_t *devices;
  bool is_dynamic; /* protos only: XLA's dynamic padder has run */
  int32_t n_aliases;
  lw_io_alias *aliases;
  int32_t n_donors;
  lw_donor *donors;
  const lw_shape *entry_result; /* entry_computation_layout or NULL */
  int32_t n_entry_params;
  const lw_shape *const *entry_params;
  int32_t n_prop_params, n_prop_output; /* allow_spmd_sharding_propagation_* */
  const bool *prop_params, *prop_output;
  lw_frontend_attrs frontend_attrs;
  bool alias_passthrough_params;
  const char *origin_recovery_table, *debug_attributes; /* raw text */
  int32_t n_file_names, n_function_names, n_file_locations, n_stack_frames;
  const char **file_names, **function_names;
  lw_file_location *file_locations;
  lw_stack_frame *stack_frames;
};

/* ---- modules ---- */
lw_module *lw_module_new(lw_context *ctx, const char *name);
void lw_module_free(lw_module *m);
/* A deep copy, names and ids kept. */
LW_MUST_USE lw_status lw_module_clone(const lw_module *m, lw_module **out);
/* Callees first; only reachable computations, and the entry last, when
 * reachable_only, else those that nobody calls as well, in insertion order. In
 * the arena given. Order is XLA's MakeComputationPostOrder. */
lw_comp **lw_module_post_order(const lw_module *m, lw_arena *a, int32_t *n,
                               bool reachable_only);
/* Takes a computation out of the module (its instructions with it). */
void lw_module_remove_comp(lw_module *m, lw_comp *c);
/* A name that registry never gave, as XLA numbers it (names.c): want itself, or
 * its root with the next free number. Interned. */
const char *lw_name_unique(lw_context *ctx, lw_map *registry, const char *want);
void lw_names_copy(lw_map *to, const lw_map *from);
/* Uses an instruction name up, as making one of that name would; the name it
 * would have got. */
const char *lw_module_take_name(lw_module *m, const char *want);

/* ---- computations ---- */
/* name is made unique in the module (XLA's rule: a trailing .N is split). */
lw_comp *lw_comp_new(lw_module *m, const char *name);
/* Operands (and control predecessors) before users; XLA's order (insertion
 * order roots, DFS). */
lw_inst **lw_comp_post_order(const lw_comp *c, lw_arena *a, int32_t *n);
/* A copy of c in module m (callees are mapped through comp_map when given,
 * else shared). inst_map: lw_inst* -> lw_inst* when not NULL. */
lw_comp *lw_comp_clone(lw_module *m, const lw_comp *c, const char *name,
                       lw_map *comp_map, lw_map *inst_map);
/* What i of another module calls, copied into `to`, callees first, each once:
 * comps (lw_comp* -> lw_comp*) holds those that were. */
void lw_module_adopt_callees(lw_module *to, const lw_inst *i, lw_map *comps);
/* Users of this computation: the first instruction that calls it, or NULL. */
lw_inst *lw_comp_first_caller(const lw_comp *c);

/* ---- instructions: making ---- */
/* Appends a new instruction to c. Operands must be in c. name NULL: the
 * opcode's name; made unique in the module. */
lw_inst *lw_inst_new(lw_comp *c, lw_opcode op, const lw_shape *shape,
                     const char *name, int32_t n_operands,
                     lw_inst *const *operands);
/* Readers: keeps the given name exactly (duplicates are the checker's). */
lw_inst *lw_inst_new_named(lw_comp *c, lw_opcode op, const lw_shape *shape,
                           const char *name, int32_t n_operands,
                           lw_inst *const *operands);
lw_inst *lw_inst_parameter(lw_comp *c, int64_t number, const lw_shape *shape,
                           const char *name);
/* The literal is used as it is (same arena or longer-lived). */
lw_inst *lw_inst_constant(lw_comp *c, const lw_literal *value);
/* Same opcode, shape, attributes, metadata, sharding, frontend attributes and
 * backend_config in computation c, with other operands (NULL: its own). */
lw_inst *lw_inst_clone(lw_comp *c, const lw_inst *src, lw_inst *const *operands,
                       const char *name);
/* Metadata, sharding and frontend attributes of src onto dst. */
void lw_inst_copy_source(lw_inst *dst, const lw_inst *src);

/* ---- instructions: changing ---- */
void lw_inst_set_operand(lw_inst *user, int32_t slot, lw_inst *def);
/* Every use of old becomes a use of def; the root moves as well. */
void lw_inst_replace_uses(lw_inst *old, lw_inst *def);
/* No uses, not the root. Drops its operand uses and control edges. */
void lw_inst_remove(lw_inst *inst);
void lw_inst_drop_operand(lw_inst *inst, int32_t slot);
void lw_inst_append_operand(lw_inst *inst, lw_inst *def);
void lw_inst_set_root(lw_comp *c, lw_inst *root);
/* Moves inst in its computation's list right before/after another. */
void lw_inst_move_before(lw_inst *inst, lw_inst *pos);
void lw_inst_add_control_pred(lw_inst *inst, lw_inst *pred);
void lw_inst_rename(lw_inst *inst, const char *name); /* made unique */

/* ---- instructions: asking ---- */
static inline lw_inst *lw_inst_operand(const lw_inst *i, int32_t slot) {
  return i->operands[slot].def;
}
static inline bool lw_inst_is_root(const lw_inst *i) {
  return i->parent && i->parent->root == i;
}
/* Distinct users. */
int32_t lw_inst_user_count(const lw_inst *i);
/* Distinct users in the order they were added. */
lw_inst **lw_inst_users(const lw_inst *i, lw_arena *a, int32_t *n);
bool lw_inst_has_side_effect(const lw_inst *i);
/* Elementwise in XLA's sense (hlo_instruction.cc IsElementwise), fusions by
 * their bodies. */
bool lw_inst_is_elementwise(const lw_inst *i);
int32_t lw_inst_called_count(const lw_inst *i);
lw_comp *lw_inst_called(const lw_inst *i, int32_t k);
void lw_inst_set_called(lw_inst *i, int32_t k, lw_comp *c);

/* ---- attributes ---- */
const lw_attr *lw_inst_attr(const lw_inst *i, lw_attr_id id); /* or NULL */
/* Sets or replaces. Lists and structs are copied into the module's arena. */
void lw_inst_set_attr(lw_inst *i, const lw_attr *a);
void lw_inst_remove_attr(lw_inst *i, lw_attr_id id);
void lw_inst_set_i64(lw_inst *i, lw_attr_id id, int64_t v);
void lw_inst_set_i64s(lw_inst *i, lw_attr_id id, int32_t n, const int64_t *v);
void lw_inst_set_comp(lw_inst *i, lw_attr_id id, lw_comp *c);
/* i64/bool/enum attribute, or dflt when absent. */
int64_t lw_inst_i64(const lw_inst *i, lw_attr_id id, int64_t dflt);
/* List attribute; *n = 0 when absent. */
const int64_t *lw_inst_i64s(const lw_inst *i, lw_attr_id id, int32_t *n);
const char *lw_inst_str(const lw_inst *i, lw_attr_id id); /* or NULL */
lw_comp *lw_inst_comp(const lw_inst *i, lw_attr_id id);   /* or NULL */
const lw_literal *lw_inst_literal(const lw_inst *i);      /* constants */
static inline int64_t lw_inst_param_number(const lw_inst *i) {
  return lw_inst_i64(i, LW_ATTR_PARAMETER_NUMBER, -1);
}
const lw_window *lw_inst_window(const lw_inst *i); /* or NULL */

/* The reducer of a to_apply computation when it is one binary op of its two
 * parameters (in either order; scalars of one type): the opcode, else
 * LW_OPCODE_COUNT. */
lw_opcode lw_comp_binary_op(const lw_comp *c);

#endif
