/* Modules, computations and instructions as text.
 *
 * Definitions come before uses, since XLA's parser wants that: lists are
 * printed as they stand if they do, else in XLA's post orders (lw_print_order).
 * The attributes come in the order of op_attributes.def, then sharding,
 * frontend attributes, control predecessors and the rest, as in XLA; those that
 * have their default are left out where XLA leaves them out.
 */
#include "hlo/print.h"

#include <stdlib.h>
#include <string.h>

const lw_print_options lw_print_default = {
    .metadata = true,
    .large_constants = true,
    .backend_config = true,
    .frontend_attrs = true,
    .control_deps = true,
    .layouts = true,
    .result_shapes = true,
    .operand_names = true,
    .index_comments = true,
    .percent = true,
    .program_shape = true,
    .extra_attributes = true,
    .ids = true,
    .async_sugar = true,
};

const lw_print_options lw_print_short = {
    .large_constants = true,
    .backend_config = true,
    .frontend_attrs = true,
    .layouts = true,
    .result_shapes = true,
    .operand_names = true,
    .extra_attributes = true,
    .ids = true,
    .async_sugar = true,
};

const lw_print_options lw_print_canonical = {
    .large_constants = true,
    .frontend_attrs = true,
    .layouts = true,
    .result_shapes = true,
    .operand_shapes = true,
    .extra_attributes = true,
    .ids = true,
    .async_sugar = true,
    .nested_bodies = true,
    .canonical_names = true,
    .order = LW_ORDER_XLA,
};

/* ---- names ---- */

static bool letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool name_char(char c) {
  return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-';
}

static bool is_type_name(const char *s) {
  lw_prim t = lw_prim_from_name(s, strlen(s));
  return t != LW_PRIM_INVALID && t != LW_TUPLE && t != LW_BUFFER;
}

/* One word to the lexer. */
static bool is_word(const char *s) {
  if (!letter(*s)) return false;
  for (const char *p = s; *p; p++)
    if (!name_char(*p)) return false;
  return true;
}

static bool is_legal(const char *s) {
  if (!is_word(s)) return false;
  if (s[0] == '_' && s[1] == '_' && strncmp(s, "__xla_", 6)) return false;
  return !is_type_name(s);
}

const char *lw_name_legal(lw_context *ctx, const char *name) {
  if (is_legal(name)) return name;
  lw_buf b = {0};
  lw_buf_str(&b, *name ? name : "_");
  if (!letter(b.data[0])) b.data[0] = '_';
  for (size_t i = 1; i < b.len; i++)
    if (!name_char(b.data[i])) b.data[i] = '_';
  if (is_type_name(b.data)) lw_buf_chr(&b, '_');
  if (!strncmp(b.data, "__", 2) && strncmp(b.data, "__xla_", 6))
    b.data[0] = 'a';
  const char *s = lw_context_str(ctx, b.data, b.len);
  lw_buf_free(&b);
  return s;
}

/* Words the lexer takes for something else unless a % stands before them. */
static bool needs_percent(const char *s) {
  static const char *const words[] = {"true",
                                      "false",
                                      "inf",
                                      "nan",
                                      "HloModule",
                                      "ENTRY",
                                      "ROOT",
                                      "FileLocations",
                                      "FileNames",
                                      "StackFrames",
                                      "maximal",
                                      "replicated",
                                      "FunctionNames",
                                      "manual",
                                      "shard_as",
                                      "shard_like",
                                      "unknown",
                                      "unreduced",
                                      "last_tile_dim_replicate"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (!strcmp(s, words[i])) return true;
  return false;
}

static const char *printed_name(lw_context *ctx, const char *name,
                                const lw_print_options *o) {
  const char *to = o->renames ? lw_map_ptr(o->renames, name) : NULL;
  return to ? to : lw_name_legal(ctx, name);
}

void lw_print_name(lw_buf *b, lw_context *ctx, const char *name,
                   const lw_print_options *o) {
  name = printed_name(ctx, name, o);
  if (o->percent || needs_percent(name)) lw_buf_chr(b, '%');
  lw_buf_str(b, name);
}

/* Illegal names get legal ones that no other name of the module has. */
static void add_rename(const lw_module *m, const char *name, lw_map *renames,
                       lw_map *given) {
  if (is_legal(name) || lw_map_get(renames, (uintptr_t)name)) return;
  const char *to = lw_name_legal(m->ctx, name);
  while (lw_map_get(&m->names, (uintptr_t)to) ||
         lw_map_get(&m->comp_names, (uintptr_t)to) ||
         lw_map_get(given, (uintptr_t)to)) {
    lw_buf b = {0};
    lw_buf_printf(&b, "%s_", to);
    to = lw_context_str(m->ctx, b.data, b.len);
    lw_buf_free(&b);
  }
  *lw_map_put(given, (uintptr_t)to) = 1;
  lw_map_set_ptr(renames, name, to);
}

static void collect_renames(const lw_module *m, lw_map *renames) {
  lw_map given = {0};
  for (const lw_comp *c = m->first_comp; c; c = c->next) {
    add_rename(m, c->name, renames, &given);
    for (const lw_inst *i = c->first; i; i = i->next)
      add_rename(m, i->name, renames, &given);
  }
  lw_map_free(&given);
}

/* ---- operands ---- */

typedef struct {
  lw_buf *b;
  const lw_print_options *o;
  lw_map *canonical; /* inst -> number + 1; NULL outside computations */
} printer;

static lw_context *context_of(const lw_inst *i) {
  return i->parent->module->ctx;
}

static void print_inst_name(const printer *p, const lw_inst *i) {
  if (!p->o->canonical_names) {
    lw_print_name(p->b, context_of(i), i->name, p->o);
    return;
  }
  uint64_t *slot = lw_map_put(p->canonical, (uintptr_t)i);
  if (!*slot) *slot = p->canonical->len;
  lw_buf_printf(p->b, "tmp_%llu", (unsigned long long)*slot - 1);
}

/* %t#0#1: the instruction below a chain of get-tuple-elements, then indices. */
static void print_compact(const printer *p, const lw_inst *i) {
  if (i->opcode != LW_OP_GET_TUPLE_ELEMENT || !p->o->compact_gte) {
    print_inst_name(p, i);
    return;
  }
  print_compact(p, lw_inst_operand(i, 0));
  lw_buf_printf(p->b, "#%lld", (long long)lw_inst_i64(i, LW_ATTR_INDEX, 0));
}

static void print_operand(const printer *p, const lw_inst *i) {
  bool named =
      p->o->canonical_names ? p->canonical != NULL : p->o->operand_names;
  if (p->o->operand_shapes) {
    lw_shape_print(p->b, i->shape, p->o->layouts);
    if (named) lw_buf_chr(p->b, ' ');
  }
  if (named) print_compact(p, i);
}

static void print_operands(const printer *p, const lw_inst *i) {
  for (int32_t k = 0; k < i->n_operands; k++) {
    if (k) lw_buf_str(p->b, ", ");
    if (k && k % 5 == 0 && p->o->index_comments)
      lw_buf_printf(p->b, "/*index=%d*/", k);
    print_operand(p, lw_inst_operand(i, k));
  }
}

static void print_constant(const printer *p, const lw_literal *l) {
  bool small = l && lw_shape_is_array(l->shape) && l->shape->elements <= 10;
  if (l && (small || p->o->large_constants))
    lw_literal_print(p->b, l);
  else
    lw_buf_str(p->b, "{...}");
}

static void print_arguments(const printer *p, const lw_inst *i) {
  if (i->opcode == LW_OP_PARAMETER)
    lw_buf_i64(p->b, lw_inst_param_number(i));
  else if (i->opcode == LW_OP_CONSTANT)
    print_constant(p, lw_inst_literal(i));
  else
    print_operands(p, i);
}

/* ---- async sugar ---- */

static bool expands_to_one(const lw_comp *c) {
  for (const lw_inst *i = c->first; i; i = i->next)
    if (i != c->root && i->opcode != LW_OP_PARAMETER) return false;
  return true;
}

/* The computation an async instruction wraps, along its chain. */
static const lw_comp *wrapped_comp(const lw_inst *i) {
  while (i->opcode == LW_OP_ASYNC_UPDATE || i->opcode == LW_OP_ASYNC_DONE) {
    if (i->n_operands != 1) return NULL;
    i = lw_inst_operand(i, 0);
  }
  return i->opcode == LW_OP_ASYNC_START ? lw_inst_comp(i, LW_ATTR_CALLS) : NULL;
}

/* The wrapped instruction when it is printed in place of the async one. */
static const lw_inst *sugared(const lw_inst *i, const lw_print_options *o) {
  if (!o->async_sugar) return NULL;
  const lw_comp *c = wrapped_comp(i);
  return c && c->root && expands_to_one(c) ? c->root : NULL;
}

static void print_opcode(const printer *p, const lw_inst *i) {
  const lw_inst *inner = sugared(i, p->o);
  if (!inner) {
    lw_buf_str(p->b, lw_opcode_name(i->opcode));
    return;
  }
  lw_buf_printf(p->b, "%s%s", lw_opcode_name(inner->opcode),
                i->opcode == LW_OP_ASYNC_START    ? "-start"
                : i->opcode == LW_OP_ASYNC_UPDATE ? "-update"
                                                  : "-done");
}

/* ---- which attributes print ---- */

static bool all_default(const lw_attr *a) {
  for (int32_t i = 0; i < a->u.list.n; i++)
    if (a->u.list.v[i] != LW_PREC_DEFAULT) return false;
  return true;
}

static lw_compare_type default_compare_type(const lw_inst *i) {
  if (!i->n_operands) return LW_CT_NONE;
  lw_prim t = lw_inst_operand(i, 0)->shape->type;
  if (lw_prim_is_float(t) || lw_prim_is_complex(t)) return LW_CT_FLOAT;
  return lw_prim_is_signed(t) ? LW_CT_SIGNED : LW_CT_UNSIGNED;
}

/* Values XLA does not print. */
static bool is_default(const lw_inst *i, const lw_attr *a) {
  lw_attr_kind kind = lw_attr_table[a->id].kind;
  switch ((int)a->id) {
    case LW_ATTR_PARAMETER_NUMBER:
    case LW_ATTR_FOLD:
      return true;
    case LW_ATTR_LITERAL:
      return i->opcode == LW_OP_CONSTANT;
    case LW_ATTR_LARGEST:
      return false;
    case LW_ATTR_FEATURE_GROUP_COUNT:
    case LW_ATTR_BATCH_GROUP_COUNT:
      return a->u.i == 1;
    case LW_ATTR_INFERRED_DIMENSION:
      return a->u.i == -1;
    case LW_ATTR_WINDOW:
      return a->u.window->rank == 0 && i->opcode != LW_OP_CUSTOM_CALL;
    case LW_ATTR_COMPARE_TYPE:
      return a->u.i == (int64_t)default_compare_type(i);
    case LW_ATTR_LHS_BATCH_DIMS:
    case LW_ATTR_RHS_BATCH_DIMS:
    case LW_ATTR_LHS_RAGGED_DIMS:
    case LW_ATTR_RHS_GROUP_DIMS:
    case LW_ATTR_OPERAND_BATCHING_DIMS:
    case LW_ATTR_START_INDICES_BATCHING_DIMS:
    case LW_ATTR_INPUT_BATCHING_DIMS:
    case LW_ATTR_SCATTER_INDICES_BATCHING_DIMS:
      return a->u.list.n == 0;
    case LW_ATTR_API_VERSION:
      return a->u.i == 1; /* API_VERSION_ORIGINAL */
    case LW_ATTR_CONVOLUTION_KIND:
    case LW_ATTR_ALGORITHM:
      return !strcmp(a->u.s, "unset");
    case LW_ATTR_ASYNC_EXECUTION_THREAD:
      return !strcmp(a->u.s, "main");
    case LW_ATTR_INFEED_CONFIG:
    case LW_ATTR_OUTFEED_CONFIG:
      return !*a->u.s;
    case LW_ATTR_SPARSITY_CONFIG:
      return !strcmp(a->u.s, "{}");
    case LW_ATTR_OUTPUT_TO_OPERAND_ALIASING:
      return a->u.aliasing.n == 0;
    case LW_ATTR_CALLED_COMPUTATIONS:
      return a->u.comps.n == 0;
    case LW_ATTR_SCHEDULE:
    case LW_ATTR_PADDING_TYPE:
    case LW_ATTR_TRANSPOSE_A:
    case LW_ATTR_IS_ASSOCIATIVE:
      return a->u.i == 0;
  }
  if (kind == LW_AK_BOOL) return !a->u.i;
  return kind == LW_AK_ENUMS_PRECISION && all_default(a);
}

/* Lists XLA prints even when nothing was given: what stands for them. */
static bool prints_empty(const lw_inst *i, lw_attr_id id) {
  if (id == LW_ATTR_REPLICA_GROUPS) return true;
  bool dot = i->opcode == LW_OP_DOT || i->opcode == LW_OP_RAGGED_DOT ||
             i->opcode == LW_OP_SCALED_DOT;
  return dot && (id == LW_ATTR_LHS_CONTRACTING_DIMS ||
                 id == LW_ATTR_RHS_CONTRACTING_DIMS);
}

static bool is_comp_attr(lw_attr_id id) {
  lw_attr_kind kind = lw_attr_table[id].kind;
  return kind == LW_AK_COMP || kind == LW_AK_COMPS;
}

static void print_op_attrs(const printer *p, const lw_inst *i);

static void print_attr(const printer *p, const lw_inst *i, lw_attr_id id) {
  const lw_attr *a = lw_inst_attr(i, id);
  if (!is_comp_attr(id) && !p->o->extra_attributes) return;
  if (a && !is_default(i, a)) {
    lw_buf_str(p->b, ", ");
    lw_attr_print(p->b, i, a, p->o);
  } else if (!a && prints_empty(i, id)) {
    lw_buf_printf(p->b, ", %s={}", lw_attr_table[id].name);
  }
}

/* An async start in sugar: its thread, what the wrapped instruction has, its
 * aliasing; the computation it calls is not named. */
static void print_sugared_attrs(const printer *p, const lw_inst *i,
                                const lw_inst *inner) {
  if (i->opcode != LW_OP_ASYNC_START) return;
  print_attr(p, i, LW_ATTR_ASYNC_EXECUTION_THREAD);
  print_op_attrs(p, inner);
  print_attr(p, inner, LW_ATTR_RESULT_ACCURACY);
  print_attr(p, i, LW_ATTR_OUTPUT_TO_OPERAND_ALIASING);
}

static void print_op_attrs(const printer *p, const lw_inst *i) {
  int n;
  const lw_op_attr *list = lw_op_attrs(i->opcode, &n);
  for (int k = 0; k < n; k++) print_attr(p, i, list[k].id);
}

/* ---- what every instruction may have ---- */

/* lawson.fold goes among the frontend attributes, in their order. */
static void print_frontend(const printer *p, const lw_inst *i) {
  const lw_attr *fold = lw_inst_attr(i, LW_ATTR_FOLD);
  lw_frontend_attrs f = i->frontend_attrs;
  if (!fold && !f.n) return;
  lw_buf_str(p->b, ", frontend_attributes=");
  if (!fold) {
    lw_frontend_attrs_print(p->b, &f);
    return;
  }
  const char *key = lw_attr_table[LW_ATTR_FOLD].name;
  const char *sep = "";
  bool done = false;
  lw_buf_chr(p->b, '{');
  for (int32_t k = 0; k <= f.n; k++) {
    if (!done && (k == f.n || strcmp(key, f.v[k].key) < 0)) {
      lw_buf_printf(p->b, "%s%s=\"%lld,%lld\"", sep, key,
                    (long long)fold->u.list.v[0],
                    (long long)(fold->u.list.n > 1 ? fold->u.list.v[1] : 0));
      done = true;
      sep = ",";
    }
    if (k == f.n) break;
    lw_buf_printf(p->b, "%s%s=", sep, f.v[k].key);
    lw_print_config(p->b, f.v[k].value);
    sep = ",";
  }
  lw_buf_chr(p->b, '}');
}

static void print_control_preds(const printer *p, const lw_inst *i) {
  if (!i->n_control_preds) return;
  lw_buf_str(p->b, ", control-predecessors={");
  for (int32_t k = 0; k < i->n_control_preds; k++) {
    if (k) lw_buf_str(p->b, ", ");
    lw_print_name(p->b, context_of(i), i->control_preds[k]->name, p->o);
  }
  lw_buf_chr(p->b, '}');
}

static bool says_something(const lw_metadata *m) {
  return (m->op_type && *m->op_type) || (m->op_name && *m->op_name) ||
         (m->source_file && *m->source_file) ||
         (m->scheduling_name && *m->scheduling_name) || m->stack_frame_id ||
         m->payload;
}

static void print_common(const printer *p, const lw_inst *i) {
  if (i->sharding) {
    lw_buf_str(p->b, ", sharding=");
    lw_sharding_print(p->b, i->sharding, p->o->metadata);
  }
  if (p->o->frontend_attrs) print_frontend(p, i);
  if (p->o->control_deps) print_control_preds(p, i);
  print_attr(p, i, LW_ATTR_STATISTICS);
  if (!sugared(i, p->o)) print_attr(p, i, LW_ATTR_RESULT_ACCURACY);
  print_attr(p, i, LW_ATTR_ORIGIN);
  if (p->o->metadata && i->metadata && says_something(i->metadata)) {
    lw_buf_str(p->b, ", metadata={");
    lw_metadata_print(p->b, i->metadata);
    lw_buf_chr(p->b, '}');
  }
  if (p->o->backend_config && i->backend_config && *i->backend_config) {
    lw_buf_str(p->b, ", backend_config=");
    lw_print_config(p->b, i->backend_config);
  }
}

static void print_inst(const printer *p, const lw_inst *i) {
  if (!p->o->canonical_names || p->canonical) {
    print_inst_name(p, i);
    lw_buf_str(p->b, " = ");
  }
  if (p->o->result_shapes) {
    lw_shape_print(p->b, i->shape, p->o->layouts);
    lw_buf_chr(p->b, ' ');
  }
  print_opcode(p, i);
  lw_buf_chr(p->b, '(');
  print_arguments(p, i);
  lw_buf_chr(p->b, ')');
  if (p->o->ids) print_attr(p, i, LW_ATTR_PARAMETER_REPLICATION);
  const lw_inst *inner = sugared(i, p->o);
  if (inner)
    print_sugared_attrs(p, i, inner);
  else
    print_op_attrs(p, i);
  print_common(p, i);
}

void lw_inst_print(lw_buf *b, const lw_inst *i, const lw_print_options *o) {
  printer p = {b, o, NULL};
  print_inst(&p, i);
}

/* ---- computations ---- */

static void print_program_shape(lw_buf *b, const lw_comp *c,
                                const lw_print_options *o) {
  lw_buf_chr(b, '(');
  for (size_t k = 0; k < c->params.len; k++) {
    const lw_inst *param = c->params.data[k];
    if (k) lw_buf_str(b, ", ");
    if (!param) continue;
    lw_buf_printf(b, "%s: ", printed_name(c->module->ctx, param->name, o));
    lw_shape_print(b, param->shape, false);
  }
  lw_buf_str(b, ") -> ");
  if (c->root) lw_shape_print(b, c->root->shape, false);
  lw_buf_chr(b, ' ');
}

static void indent(lw_buf *b, int levels) {
  for (int i = 0; i < levels; i++) lw_buf_str(b, "  ");
}

static void print_line(printer *p, const lw_inst *i, int level) {
  bool root = lw_inst_is_root(i);
  if (p->o->compact_gte && i->opcode == LW_OP_GET_TUPLE_ELEMENT && !root)
    return;
  indent(p->b, level + 1);
  if (root) lw_buf_str(p->b, "ROOT ");
  print_inst(p, i);
  lw_buf_chr(p->b, '\n');
}

/* Operands and control predecessors stand before their users in the list. */
static bool list_is_ordered(const lw_comp *c) {
  uint8_t *seen = calloc((size_t)c->module->n_inst_ids + 1, 1);
  if (!seen) lw_oom((size_t)c->module->n_inst_ids);
  bool ok = true;
  for (const lw_inst *i = c->first; i && ok; i = i->next) {
    for (int32_t k = 0; k < i->n_operands; k++)
      ok &= seen[lw_inst_operand(i, k)->id];
    for (int32_t k = 0; k < i->n_control_preds; k++)
      ok &= seen[i->control_preds[k]->id];
    seen[i->id] = 1;
  }
  free(seen);
  return ok;
}

/* scheduled: the list is the order, whatever o says. */
static void print_comp(lw_buf *b, const lw_comp *c, const lw_print_options *o,
                       bool scheduled) {
  bool post = !scheduled && (o->order == LW_ORDER_XLA || !list_is_ordered(c));
  int level = o->indent;
  lw_print_options inner = *o;
  inner.indent = level + 1;
  lw_map canonical = {0};
  printer p = {b, &inner, &canonical};
  indent(b, level);
  if (!o->in_place) {
    if (c->module->entry == c) lw_buf_str(b, "ENTRY ");
    lw_print_name(b, c->module->ctx, c->name, o);
    lw_buf_chr(b, ' ');
  }
  if (o->program_shape) print_program_shape(b, c, o);
  lw_buf_str(b, "{\n");
  if (post) {
    lw_arena *a = lw_arena_new();
    int32_t n;
    lw_inst **order = lw_comp_post_order(c, a, &n);
    for (int32_t k = 0; k < n; k++) print_line(&p, order[k], level);
    lw_arena_free(a);
  } else {
    for (const lw_inst *i = c->first; i; i = i->next) print_line(&p, i, level);
  }
  indent(b, level);
  lw_buf_chr(b, '}');
  if (o->ids && c->execution_thread) {
    lw_buf_str(b, ", execution_thread=");
    lw_print_quoted(b, c->execution_thread);
  }
  lw_map_free(&canonical);
}

void lw_comp_print(lw_buf *b, const lw_comp *c, const lw_print_options *o) {
  print_comp(b, c, o, c->module->is_scheduled && !o->in_place);
}

/* ---- modules ---- */

static void print_index(lw_buf *b, int32_t n, const int64_t *v) {
  lw_buf_chr(b, '{');
  for (int32_t i = 0; i < n; i++) {
    if (i) lw_buf_chr(b, ',');
    lw_buf_i64(b, v[i]);
  }
  lw_buf_chr(b, '}');
}

static void print_aliases(lw_buf *b, const lw_module *m) {
  if (m->n_aliases) lw_buf_str(b, ", input_output_alias={ ");
  for (int32_t i = 0; i < m->n_aliases; i++) {
    const lw_io_alias *a = &m->aliases[i];
    if (i) lw_buf_str(b, ", ");
    print_index(b, a->n_output_index, a->output_index);
    lw_buf_printf(b, ": (%lld, ", (long long)a->param);
    print_index(b, a->n_param_index, a->param_index);
    lw_buf_str(b, a->must_alias ? ", must-alias)" : ", may-alias)");
  }
  if (m->n_aliases) lw_buf_str(b, " }");
  if (m->n_donors) lw_buf_str(b, ", buffer_donor={ ");
  for (int32_t i = 0; i < m->n_donors; i++) {
    const lw_donor *d = &m->donors[i];
    lw_buf_printf(b, "%s(%lld, ", i ? ", " : "", (long long)d->param);
    print_index(b, d->n_index, d->index);
    lw_buf_chr(b, ')');
  }
  if (m->n_donors) lw_buf_str(b, " }");
}

static void print_entry_layout(lw_buf *b, const lw_module *m) {
  if (!m->entry_result) return;
  lw_buf_str(b, ", entry_computation_layout={(");
  for (int32_t i = 0; i < m->n_entry_params; i++) {
    if (i) lw_buf_str(b, ", ");
    if (i && i % 5 == 0) lw_buf_printf(b, "/*index=%d*/", i);
    lw_shape_print(b, m->entry_params[i], true);
  }
  lw_buf_str(b, ")->");
  lw_shape_print(b, m->entry_result, true);
  lw_buf_chr(b, '}');
}

/* A single false is what an absent list means. */
static void print_propagation(lw_buf *b, const char *to, int32_t n,
                              const bool *v) {
  if (n == 0 || (n == 1 && !v[0])) return;
  lw_buf_printf(b, ", allow_spmd_sharding_propagation_to_%s={", to);
  for (int32_t i = 0; i < n; i++)
    lw_buf_printf(b, "%s%s", i ? "," : "", v[i] ? "true" : "false");
  lw_buf_chr(b, '}');
}

static void print_header(lw_buf *b, const lw_module *m,
                         const lw_print_options *o) {
  lw_buf_str(b, "HloModule ");
  bool plain = is_word(m->name) && !is_type_name(m->name);
  if (o->ids) lw_buf_str(b, plain ? m->name : lw_name_legal(m->ctx, m->name));
  if (m->is_scheduled) lw_buf_str(b, ", is_scheduled=true");
  print_aliases(b, m);
  if (m->alias_passthrough_params)
    lw_buf_str(b, ", alias_passthrough_params=true");
  print_entry_layout(b, m);
  print_propagation(b, "parameters", m->n_prop_params, m->prop_params);
  print_propagation(b, "output", m->n_prop_output, m->prop_output);
  if (m->replica_count != 1)
    lw_buf_printf(b, ", replica_count=%lld", (long long)m->replica_count);
  if (m->num_partitions != 1)
    lw_buf_printf(b, ", num_partitions=%lld", (long long)m->num_partitions);
  if (m->frontend_attrs.n) {
    lw_buf_str(b, ", frontend_attributes=");
    lw_frontend_attrs_print(b, &m->frontend_attrs);
  }
  if (m->origin_recovery_table)
    lw_buf_printf(b, ", origin_recovery_table=%s", m->origin_recovery_table);
  if (m->debug_attributes)
    lw_buf_printf(b, ", debug_attributes=%s", m->debug_attributes);
}

static void print_strings(lw_buf *b, const char *title, int32_t n,
                          const char *const *v) {
  lw_buf_printf(b, "\n%s\n", title);
  for (int32_t i = 0; i < n; i++) {
    lw_buf_printf(b, "%d ", i + 1);
    lw_print_quoted(b, v[i]);
    lw_buf_chr(b, '\n');
  }
}

static void print_stack_tables(lw_buf *b, const lw_module *m) {
  lw_buf_chr(b, '\n');
  print_strings(b, "FileNames", m->n_file_names, m->file_names);
  print_strings(b, "FunctionNames", m->n_function_names, m->function_names);
  lw_buf_str(b, "\nFileLocations\n");
  for (int32_t i = 0; i < m->n_file_locations; i++) {
    const lw_file_location *l = &m->file_locations[i];
    lw_buf_printf(b,
                  "%d {file_name_id=%lld function_name_id=%lld line=%lld "
                  "end_line=%lld column=%lld end_column=%lld}\n",
                  i + 1, (long long)l->file_name_id,
                  (long long)l->function_name_id, (long long)l->line,
                  (long long)l->end_line, (long long)l->column,
                  (long long)l->end_column);
  }
  lw_buf_str(b, "\nStackFrames\n");
  for (int32_t i = 0; i < m->n_stack_frames; i++)
    lw_buf_printf(b, "%d {file_location_id=%lld parent_frame_id=%lld}\n", i + 1,
                  (long long)m->stack_frames[i].file_location_id,
                  (long long)m->stack_frames[i].parent_frame_id);
}

/* By computation id: called by a fusion / by an async-start. */
enum { BY_FUSION = 1, BY_ASYNC = 2 };

static uint8_t *called_by(const lw_module *m, lw_arena *a) {
  uint8_t *by = lw_arena_alloc(a, (size_t)m->n_comp_ids + 1);
  for (const lw_comp *c = m->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next) {
      uint8_t flag = i->opcode == LW_OP_FUSION        ? BY_FUSION
                     : i->opcode == LW_OP_ASYNC_START ? BY_ASYNC
                                                      : 0;
      const lw_comp *to = flag ? lw_inst_comp(i, LW_ATTR_CALLS) : NULL;
      if (to) by[to->id] |= flag;
    }
  return by;
}

/* Every computation stands before its callers in the list. */
static bool comps_are_ordered(const lw_module *m, lw_arena *a) {
  bool *seen = lw_arena_alloc(a, (size_t)m->n_comp_ids + 1);
  for (const lw_comp *c = m->first_comp; c; c = c->next) {
    for (const lw_inst *i = c->first; i; i = i->next)
      for (int32_t k = 0; k < lw_inst_called_count(i); k++)
        if (lw_inst_called(i, k) && !seen[lw_inst_called(i, k)->id])
          return false;
    seen[c->id] = true;
  }
  return true;
}

static lw_comp **comp_order(const lw_module *m, lw_arena *a, int32_t *n,
                            lw_print_order order) {
  if (order == LW_ORDER_XLA || !comps_are_ordered(m, a))
    return lw_module_post_order(m, a, n, false);
  lw_comp **v = LW_NEW_ARRAY(a, lw_comp *, m->n_comp_ids);
  *n = 0;
  for (lw_comp *c = m->first_comp; c; c = c->next) v[(*n)++] = c;
  return v;
}

static void print_comps(lw_buf *b, const lw_module *m,
                        const lw_print_options *o) {
  lw_arena *a = lw_arena_new();
  int32_t n;
  lw_comp **order = comp_order(m, a, &n, o->order);
  uint8_t *by = called_by(m, a);
  for (int32_t k = 0; k < n; k++) {
    const lw_comp *c = order[k];
    uint8_t flags = by[c->id];
    if (o->async_sugar && (flags & BY_ASYNC) && expands_to_one(c)) continue;
    print_comp(b, c, o, m->is_scheduled && !(flags & BY_FUSION));
    lw_buf_str(b, "\n\n");
  }
  lw_arena_free(a);
}

void lw_module_print(lw_buf *b, const lw_module *m,
                     const lw_print_options *options) {
  lw_print_options o = *options;
  lw_map renames = {0};
  collect_renames(m, &renames);
  o.renames = renames.len ? &renames : NULL;
  print_header(b, m, &o);
  bool tables = m->n_stack_frames || m->n_file_names;
  if (o.metadata && tables) print_stack_tables(b, m);
  lw_buf_str(b, "\n\n");
  print_comps(b, m, &o);
  lw_map_free(&renames);
}
