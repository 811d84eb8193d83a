/* What stands before the computations: the HloModule line with its attributes,
 * and the stack tables. */
#include <string.h>

#include "reader/text_parser.h"

/* ---- stack tables ---- */

static bool at_word(const lw_text_parser *ps, const char *word) {
  return lw_tok_is(&ps->lx.tok, word);
}

static bool string_table(lw_text_parser *ps, int32_t *n, const char ***out) {
  LW_VEC(const char *) v = {0};
  bool ok = true;
  lw_lex(&ps->lx); /* FileNames or FunctionNames */
  while (ok && lw_text_eat(ps, TOK_INT)) {
    const char *s = NULL;
    ok = lw_text_string(ps, &s);
    lw_vec_push(&v, s);
  }
  *n = (int32_t)v.len;
  *out = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok;
}

/* {a=1 b=2}: the named fields, each once. */
static bool fields(lw_text_parser *ps, const char *const *names, int n,
                   int64_t *values) {
  unsigned seen = 0;
  if (!lw_text_expect(ps, TOK_LBRACE, "in a stack table")) return false;
  while (ps->lx.tok.kind != TOK_RBRACE) {
    (void)lw_text_eat(ps, TOK_COMMA);
    const lw_token *t = &ps->lx.tok;
    int k = 0;
    while (k < n && !(t->kind == TOK_ATTR && strlen(names[k]) == t->len &&
                      !memcmp(names[k], t->text, t->len)))
      k++;
    if (k == n || seen >> k & 1)
      return lw_text_error(ps, "unexpected %s in a stack table",
                           lw_tok_describe(t));
    seen |= 1u << k;
    lw_lex(&ps->lx);
    if (!lw_text_int(ps, &values[k])) return false;
  }
  if (seen != (1u << n) - 1)
    return lw_text_error(ps, "a field is missing in this stack table entry");
  lw_lex(&ps->lx);
  return true;
}

static bool file_locations(lw_text_parser *ps) {
  static const char *const names[] = {"file_name_id", "function_name_id",
                                      "line",         "end_line",
                                      "column",       "end_column"};
  LW_VEC(lw_file_location) v = {0};
  bool ok = true;
  lw_lex(&ps->lx);
  while (ok && lw_text_eat(ps, TOK_INT)) {
    int64_t f[6] = {0};
    ok = fields(ps, names, 6, f);
    lw_file_location l = {f[0], f[1], f[2], f[3], f[4], f[5]};
    lw_vec_push(&v, l);
  }
  ps->module->n_file_locations = (int32_t)v.len;
  ps->module->file_locations =
      lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok;
}

static bool stack_frames(lw_text_parser *ps) {
  static const char *const names[] = {"file_location_id", "parent_frame_id"};
  LW_VEC(lw_stack_frame) v = {0};
  bool ok = true;
  lw_lex(&ps->lx);
  while (ok && lw_text_eat(ps, TOK_INT)) {
    int64_t f[2] = {0};
    ok = fields(ps, names, 2, f);
    lw_stack_frame s = {f[0], f[1]};
    lw_vec_push(&v, s);
  }
  ps->module->n_stack_frames = (int32_t)v.len;
  ps->module->stack_frames =
      lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok;
}

static bool stack_tables(lw_text_parser *ps) {
  lw_module *m = ps->module;
  if (!at_word(ps, "FileNames")) return true;
  if (!string_table(ps, &m->n_file_names, &m->file_names)) return false;
  if (!at_word(ps, "FunctionNames"))
    return lw_text_error(ps, "expected the table FunctionNames");
  if (!string_table(ps, &m->n_function_names, &m->function_names)) return false;
  if (!at_word(ps, "FileLocations"))
    return lw_text_error(ps, "expected the table FileLocations");
  if (!file_locations(ps)) return false;
  if (!at_word(ps, "StackFrames"))
    return lw_text_error(ps, "expected the table StackFrames");
  return stack_frames(ps);
}

/* ---- the header's attributes ---- */

static bool io_aliases(lw_text_parser *ps, lw_module *m) {
  LW_VEC(lw_io_alias) v = {0};
  static const char form[] = "in {output}: (parameter, {index}, may-alias)";
  bool ok = lw_text_expect(ps, TOK_LBRACE, "before aliases");
  while (ok && ps->lx.tok.kind != TOK_RBRACE) {
    lw_io_alias a = {0};
    ok = lw_text_shape_index(ps, &a.n_output_index, &a.output_index) &&
         lw_text_expect(ps, TOK_COLON, form) &&
         lw_text_expect(ps, TOK_LPAREN, form) && lw_text_int(ps, &a.param) &&
         lw_text_expect(ps, TOK_COMMA, form) &&
         lw_text_shape_index(ps, &a.n_param_index, &a.param_index);
    if (ok && lw_text_eat(ps, TOK_COMMA)) {
      a.must_alias = lw_text_eat_word(ps, "must-alias");
      if (!a.must_alias && !lw_text_eat_word(ps, "may-alias"))
        ok = lw_text_error(ps, "expected may-alias or must-alias");
    }
    ok = ok && lw_text_expect(ps, TOK_RPAREN, form);
    lw_vec_push(&v, a);
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  m->n_aliases = (int32_t)v.len;
  m->aliases = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok && lw_text_expect(ps, TOK_RBRACE, "after aliases");
}

static bool donors(lw_text_parser *ps, lw_module *m) {
  LW_VEC(lw_donor) v = {0};
  bool ok = lw_text_expect(ps, TOK_LBRACE, "before buffer donors");
  while (ok && ps->lx.tok.kind != TOK_RBRACE) {
    lw_donor d = {0};
    ok = lw_text_expect(ps, TOK_LPAREN, "in (parameter, {index})") &&
         lw_text_int(ps, &d.param) &&
         lw_text_expect(ps, TOK_COMMA, "in (parameter, {index})") &&
         lw_text_shape_index(ps, &d.n_index, &d.index) &&
         lw_text_expect(ps, TOK_RPAREN, "in (parameter, {index})");
    lw_vec_push(&v, d);
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  m->n_donors = (int32_t)v.len;
  m->donors = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok && lw_text_expect(ps, TOK_RBRACE, "after buffer donors");
}

/* {(f32[2]{0}, s32[])->f32[2]{0}} */
static bool entry_layout(lw_text_parser *ps, lw_module *m) {
  LW_VEC(const lw_shape *) v = {0};
  static const char form[] = "in entry_computation_layout={(...)->...}";
  bool ok = lw_text_expect(ps, TOK_LBRACE, form) &&
            lw_text_expect(ps, TOK_LPAREN, form);
  while (ok && ps->lx.tok.kind != TOK_RPAREN) {
    const lw_shape *s = NULL;
    ok = lw_text_shape(ps, &s);
    lw_vec_push(&v, s);
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  ok = ok && lw_text_expect(ps, TOK_RPAREN, form) &&
       lw_text_expect(ps, TOK_ARROW, form) &&
       lw_text_shape(ps, &m->entry_result) &&
       lw_text_expect(ps, TOK_RBRACE, form);
  m->n_entry_params = (int32_t)v.len;
  m->entry_params = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok;
}

/* true, or {true,false} */
static bool bool_list(lw_text_parser *ps, int32_t *n, const bool **out) {
  LW_VEC(bool) v = {0};
  bool many = lw_text_eat(ps, TOK_LBRACE), ok = true;
  while (ok && !(many && ps->lx.tok.kind == TOK_RBRACE)) {
    bool b = false;
    ok = lw_text_bool(ps, &b);
    lw_vec_push(&v, b);
    if (!many || !lw_text_eat(ps, TOK_COMMA)) break;
  }
  *n = (int32_t)v.len;
  *out = lw_arena_memdup(ps->arena, v.data, v.len * sizeof *v.data);
  lw_vec_free(&v);
  return ok && (!many || lw_text_expect(ps, TOK_RBRACE, "after booleans"));
}

enum {
  H_SCHEDULED,
  H_REPLICAS,
  H_PARTITIONS,
  H_ALIAS,
  H_DONOR,
  H_PASSTHROUGH,
  H_LAYOUT,
  H_FRONTEND,
  H_PROP_PARAMS,
  H_PROP_OUTPUT,
  H_RECOVERY,
  H_DEBUG,
  N_HEADER
};

static const char *const header_names[N_HEADER] = {
    "is_scheduled",
    "replica_count",
    "num_partitions",
    "input_output_alias",
    "buffer_donor",
    "alias_passthrough_params",
    "entry_computation_layout",
    "frontend_attributes",
    "allow_spmd_sharding_propagation_to_parameters",
    "allow_spmd_sharding_propagation_to_output",
    "origin_recovery_table",
    "debug_attributes"};

static bool header_value(lw_text_parser *ps, lw_module *m, int which) {
  switch (which) {
    case H_SCHEDULED:
      return lw_text_bool(ps, &m->is_scheduled);
    case H_REPLICAS:
      return lw_text_int(ps, &m->replica_count);
    case H_PARTITIONS:
      if (!lw_text_int(ps, &m->num_partitions)) return false;
      m->use_spmd_partitioning = m->num_partitions != 1;
      return true;
    case H_ALIAS:
      return io_aliases(ps, m);
    case H_DONOR:
      return donors(ps, m);
    case H_PASSTHROUGH:
      return lw_text_bool(ps, &m->alias_passthrough_params);
    case H_LAYOUT:
      return entry_layout(ps, m);
    case H_FRONTEND:
      return lw_text_frontend(ps, &m->frontend_attrs);
    case H_PROP_PARAMS:
      return bool_list(ps, &m->n_prop_params, &m->prop_params);
    case H_PROP_OUTPUT:
      return bool_list(ps, &m->n_prop_output, &m->prop_output);
    case H_RECOVERY:
      return lw_text_raw_braces(ps, &m->origin_recovery_table);
    default:
      return lw_text_raw_braces(ps, &m->debug_attributes);
  }
}

static bool header_attr(lw_text_parser *ps, unsigned *seen) {
  lw_token t = ps->lx.tok;
  if (t.kind != TOK_ATTR)
    return lw_text_error(ps, "expected an attribute of the module, found %s",
                         lw_tok_describe(&t));
  char *name = lw_arena_strdup(ps->arena, t.text, t.len);
  int k = 0;
  while (k < N_HEADER && strcmp(header_names[k], name)) k++;
  if (k == N_HEADER) {
    const char *near = lw_nearest_name(name, header_names, N_HEADER);
    return near ? lw_text_error(ps,
                                "a module has no attribute '%s'; did you "
                                "mean '%s'?",
                                name, near)
                : lw_text_error(ps, "a module has no attribute '%s'", name);
  }
  if (*seen >> k & 1)
    return lw_text_error(ps, "attribute '%s' is given twice", name);
  *seen |= 1u << k;
  lw_lex(&ps->lx);
  return header_value(ps, ps->module, k);
}

/* To the end of the line the header begins in: it is one line in practice. */
static void skip_header(lw_text_parser *ps) {
  while (ps->lx.tok.kind != TOK_END && !(lw_text_first_on_line(&ps->lx) &&
                                         (lw_tok_is(&ps->lx.tok, "ENTRY") ||
                                          lw_tok_is(&ps->lx.tok, "FileNames") ||
                                          ps->lx.tok.kind == TOK_NAME)))
    lw_lex(&ps->lx);
}

void lw_text_module_header(lw_text_parser *ps) {
  unsigned seen = 0;
  const char *name = NULL;
  lw_lex(&ps->lx); /* HloModule */
  bool ok = lw_text_name(ps, &name);
  if (ok) ps->module->name = name;
  while (ok && lw_text_eat(ps, TOK_COMMA)) ok = header_attr(ps, &seen);
  ok = ok && stack_tables(ps);
  if (!ok) skip_header(ps);
}
