/* One instruction: [shape] opcode(operands), attributes. */
#include <string.h>

#include "hlo/infer.h"
#include "reader/text_parser.h"

/* A tuple may not unfold to more leaves than this: t1 = tuple(t, t), t2 =
 * tuple(t1, t1), ... doubles with each line. */
enum { MAX_LEAVES = 1 << 18 };

/* ---- opcodes and async sugar ---- */

typedef struct {
  lw_opcode op;
  lw_opcode wrapped; /* of sugar such as all-to-all-start, else OPCODE_COUNT */
} opcode_word;

/* These have start and done opcodes of their own. */
static bool no_sugar(lw_opcode op) {
  return op == LW_OP_ALL_GATHER || op == LW_OP_ALL_REDUCE ||
         op == LW_OP_COLLECTIVE_PERMUTE || op == LW_OP_COPY ||
         op == LW_OP_RECV || op == LW_OP_SEND;
}

static bool sugar(const char *s, size_t len, const char *suffix, lw_opcode op,
                  opcode_word *out) {
  size_t n = strlen(suffix);
  if (len <= n || memcmp(s + len - n, suffix, n)) return false;
  lw_opcode wrapped = lw_opcode_from_name(s, len - n);
  if (wrapped == LW_OPCODE_COUNT || no_sugar(wrapped)) return false;
  *out = (opcode_word){op, wrapped};
  return true;
}

static bool unknown_opcode(lw_text_parser *ps, const lw_token *t) {
  const char *names[LW_OPCODE_COUNT];
  for (int i = 0; i < LW_OPCODE_COUNT; i++) names[i] = lw_opcode_name(i);
  char *word = lw_arena_strdup(ps->arena, t->text, t->len);
  const char *near = lw_nearest_name(word, names, LW_OPCODE_COUNT);
  if (near)
    return lw_text_error_at(ps, t, "unknown opcode '%s'; did you mean '%s'?",
                            word, near);
  return lw_text_error_at(ps, t, "unknown opcode '%s'", word);
}

static bool opcode(lw_text_parser *ps, opcode_word *out) {
  lw_token t = ps->lx.tok;
  if (t.kind != TOK_IDENT)
    return lw_text_error(ps, "expected an opcode, found %s",
                         lw_tok_describe(&t));
  *out = (opcode_word){lw_opcode_from_name(t.text, t.len), LW_OPCODE_COUNT};
  if (out->op == LW_OPCODE_COUNT &&
      !sugar(t.text, t.len, "-start", LW_OP_ASYNC_START, out) &&
      !sugar(t.text, t.len, "-update", LW_OP_ASYNC_UPDATE, out) &&
      !sugar(t.text, t.len, "-done", LW_OP_ASYNC_DONE, out))
    return unknown_opcode(ps, &t);
  lw_lex(&ps->lx);
  return true;
}

/* ---- operands ---- */

typedef LW_VEC(lw_inst *) insts;

static void set_place(lw_inst *i, const lw_token *at) {
  i->line = at->line;
  i->column = at->column;
}

static void unnamed(lw_text_parser *ps, lw_inst *i, const char *base) {
  lw_text_unnamed u = {i, base};
  lw_vec_push(&ps->unnamed, u);
}

/* Parameters of a lone instruction: f32[2] x, or f32[2] alone. */
static lw_inst *missing_param(lw_text_parser *ps, const lw_token *at,
                              const char *name, const lw_shape *shape) {
  lw_comp *c = ps->scope->comp;
  int64_t number = (int64_t)c->params.len;
  if (!name)
    name = lw_context_cstr(
        ps->ctx, lw_arena_printf(ps->arena, "_%lld", (long long)number));
  lw_inst *p = lw_inst_new_named(c, LW_OP_PARAMETER, shape, name, 0, NULL);
  lw_inst_set_i64(p, LW_ATTR_PARAMETER_NUMBER, number);
  lw_vec_push(&c->params, p);
  set_place(p, at);
  *lw_map_put(&ps->scope->names, (uintptr_t)name) = (uintptr_t)p;
  return p;
}

/* The line of "name =" further down, 0 when there is none. */
static int32_t defined_below(const lw_text_parser *ps, const char *name) {
  size_t n = strlen(name);
  const char *p = ps->lx.p, *end = ps->lx.end;
  int32_t line = ps->lx.line;
  for (; p < end; p++) {
    const char *next = memchr(p, '\n', (size_t)(end - p));
    const char *stop = next ? next : end, *q = p;
    while (q < stop && (*q == ' ' || *q == '\t')) q++;
    if (stop - q > 5 && !memcmp(q, "ROOT ", 5)) q += 5;
    if (q < stop && *q == '%') q++;
    if (q < stop && *q == '}') return 0;
    if ((size_t)(stop - q) > n + 2 && !memcmp(q, name, n) &&
        !memcmp(q + n, " =", 2))
      return line;
    line++;
    p = stop;
  }
  return 0;
}

static bool no_such_inst(lw_text_parser *ps, const lw_token *at,
                         const char *name) {
  const lw_map *m = &ps->scope->names;
  bool few = ps->diags->count < 20;
  int32_t below = few ? defined_below(ps, name) : 0;
  if (below)
    return lw_text_error_at(ps, at,
                            "'%s' is used before it is defined (line "
                            "%d); operands come first in HLO text",
                            name, below);
  const char *near =
      few && m->len && m->len < 100000
          ? lw_nearest_name(name, (const char *const *)m->keys, m->len)
          : NULL;
  if (near)
    return lw_text_error_at(ps, at,
                            "no instruction '%s' in this computation; "
                            "did you mean '%s'?",
                            name, near);
  return lw_text_error_at(ps, at, "no instruction '%s' in this computation",
                          name);
}

bool lw_text_find_inst(lw_text_parser *ps, const lw_token *at, const char *name,
                       lw_inst **out) {
  uint64_t *slot = lw_map_get(&ps->scope->names, (uintptr_t)name);
  if (!slot) return no_such_inst(ps, at, name);
  if (*slot == LW_TEXT_POISON) {
    ps->failed = true; /* reported where it is defined */
    return false;
  }
  *out = (lw_inst *)(uintptr_t)*slot;
  return true;
}

/* %t#2: the get-tuple-element, one for each tuple and index. */
static bool compact_gte(lw_text_parser *ps, lw_inst **inst) {
  while (ps->lx.tok.kind == TOK_HASH) {
    lw_lex(&ps->lx);
    lw_token at = ps->lx.tok;
    int64_t i;
    if (!lw_text_int(ps, &i)) return false;
    const lw_shape *s = (*inst)->shape;
    if (!lw_shape_is_tuple(s) || i < 0 || i >= s->n_elems)
      return lw_text_error_at(ps, &at, "'%s' is %s; it has no element %lld",
                              (*inst)->name, lw_shape_str(ps->ctx, s),
                              (long long)i);
    uint64_t key = (uint64_t)(uint32_t)(*inst)->id << 32 | (uint64_t)i;
    uint64_t *slot = lw_map_put(&ps->scope->gtes, key);
    if (!*slot) {
      lw_inst *g = lw_inst_new_named(ps->scope->comp, LW_OP_GET_TUPLE_ELEMENT,
                                     s->elems[i], "", 1, inst);
      lw_inst_set_i64(g, LW_ATTR_INDEX, i);
      set_place(g, &at);
      unnamed(ps, g, "get-tuple-element");
      *slot = (uintptr_t)g;
    }
    *inst = (lw_inst *)(uintptr_t)*slot;
  }
  return true;
}

static bool named_operand(lw_text_parser *ps, const lw_token *at,
                          const lw_shape *shape, lw_inst **out) {
  const char *name = NULL;
  bool comma = ps->lx.tok.kind == TOK_COMMA || ps->lx.tok.kind == TOK_RPAREN;
  bool lone = ps->make_missing && !ps->scope->outer && shape;
  if (!(lone && comma) && !lw_text_name(ps, &name)) return false;
  if (lone && (!name || !lw_map_get(&ps->scope->names, (uintptr_t)name))) {
    *out = missing_param(ps, at, name, shape);
    return true;
  }
  if (ps->make_missing && !shape && !ps->scope->outer &&
      !lw_map_get(&ps->scope->names, (uintptr_t)name))
    return lw_text_error_at(ps, at,
                            "a lone instruction needs its operands' "
                            "shapes, as in negate(f32[3] %s)",
                            name);
  if (!lw_text_find_inst(ps, at, name, out) || !compact_gte(ps, out))
    return false;
  if (shape && !lw_shape_compatible((*out)->shape, shape))
    return lw_text_error_at(ps, at,
                            "the operand is written as %s, but '%s' is "
                            "%s",
                            lw_shape_str(ps->ctx, shape), (*out)->name,
                            lw_shape_str(ps->ctx, (*out)->shape));
  return true;
}

/* [shape] name {#i}, or [shape] opcode(...) in place */
static bool operand(lw_text_parser *ps, lw_inst **out) {
  lw_lexer before = ps->lx;
  lw_token at = ps->lx.tok;
  const lw_shape *shape = NULL;
  /* A type without '[' is an instruction of that name (s1, u4). */
  bool shaped = lw_text_can_be_shape(ps) &&
                (at.kind != TOK_TYPE || lw_lex_peek(&ps->lx) == TOK_LSQUARE);
  if (shaped && !lw_text_shape(ps, &shape)) return false;
  if (ps->lx.tok.kind != TOK_IDENT || lw_lex_peek(&ps->lx) != TOK_LPAREN)
    return named_operand(ps, &at, shape, out);
  ps->lx = before;
  if (!lw_text_enter(ps)) return false;
  bool ok = lw_text_inst_rest(ps, &at, NULL, out);
  lw_text_leave(ps);
  return ok;
}

static bool operands(lw_text_parser *ps, insts *out) {
  if (!lw_text_expect(ps, TOK_LPAREN, "before the operands")) return false;
  while (ps->lx.tok.kind != TOK_RPAREN) {
    lw_inst *i = NULL;
    if (!operand(ps, &i)) return false;
    lw_vec_push(out, i);
    if (!lw_text_eat(ps, TOK_COMMA)) break;
  }
  return lw_text_expect(ps, TOK_RPAREN, "after the operands");
}

/* ---- what an instruction is made from ---- */

typedef struct {
  lw_token at;
  const char *name; /* NULL: written in place */
  const lw_shape *shape;
  opcode_word word;
  insts ops;
  lw_text_attrs attrs;
  int64_t number;      /* parameter */
  lw_literal *literal; /* constant */
} draft;

static bool parameter_number(lw_text_parser *ps, draft *d) {
  if (!lw_text_expect(ps, TOK_LPAREN, "before the parameter number"))
    return false;
  lw_token at = ps->lx.tok;
  if (!lw_text_int(ps, &d->number)) return false;
  const lw_comp *c = ps->scope->comp;
  if (d->number < 0 || d->number >= LW_TEXT_MAX_PARAMS)
    return lw_text_error_at(ps, &at, "a parameter number is between 0 and %d",
                            LW_TEXT_MAX_PARAMS - 1);
  if (d->number < (int64_t)c->params.len && c->params.data[d->number])
    return lw_text_error_at(ps, &at, "parameter(%lld) is there already: '%s'",
                            (long long)d->number,
                            c->params.data[d->number]->name);
  return lw_text_expect(ps, TOK_RPAREN, "after the parameter number");
}

static bool constant_value(lw_text_parser *ps, draft *d) {
  return lw_text_expect(ps, TOK_LPAREN, "before the constant") &&
         lw_text_literal(ps, d->shape, &d->literal) &&
         lw_text_expect(ps, TOK_RPAREN, "after the constant");
}

static bool arguments(lw_text_parser *ps, draft *d) {
  if (d->word.op == LW_OP_PARAMETER) return parameter_number(ps, d);
  if (d->word.op == LW_OP_CONSTANT) return constant_value(ps, d);
  if (!operands(ps, &d->ops)) return false;
  lw_opcode op =
      d->word.wrapped != LW_OPCODE_COUNT && d->word.op == LW_OP_ASYNC_START
          ? d->word.wrapped
          : d->word.op;
  int arity = lw_opcode_table[op].arity;
  if (op == LW_OP_TUPLE && d->shape && lw_shape_is_tuple(d->shape))
    arity = d->shape->n_elems;
  if (op == LW_OP_ASYNC_UPDATE || op == LW_OP_ASYNC_DONE) arity = 1;
  if (arity >= 0 && (size_t)arity != d->ops.len)
    return lw_text_error_at(ps, &d->at, "%s takes %d operand%s, but has %zu",
                            lw_opcode_name(op), arity, arity == 1 ? "" : "s",
                            d->ops.len);
  return true;
}

/* Required attributes, those that depend on the operands included. */
static bool complete(lw_text_parser *ps, const draft *d) {
  lw_opcode op = d->attrs.op;
  int n = 0;
  const lw_op_attr *list = d->attrs.async_rest ? NULL : lw_op_attrs(op, &n);
  bool by_pred = d->ops.len && d->ops.data[0]->shape->type == LW_PRED;
  for (int i = 0; i < n; i++) {
    lw_attr_id id = list[i].id;
    bool required = list[i].required;
    if (id == LW_ATTR_PARAMETER_NUMBER || op == LW_OP_CONSTANT) continue;
    if (id == LW_ATTR_TRUE_COMPUTATION || id == LW_ATTR_FALSE_COMPUTATION)
      required = by_pred;
    if (id == LW_ATTR_BRANCH_COMPUTATIONS) required = !by_pred;
    if (op == LW_OP_BROADCAST && id == LW_ATTR_DIMENSIONS)
      required = d->ops.len && !lw_shape_is_scalar(d->ops.data[0]->shape);
    if (required && !lw_text_attrs_get(&d->attrs, id))
      return lw_text_error_at(ps, &d->at, "%s needs the attribute '%s'",
                              lw_opcode_name(op), lw_attr_table[id].name);
  }
  return true;
}

/* ---- defaults that XLA's parser writes down ---- */

static void set_default(draft *d, lw_attr value) {
  if (!lw_text_attrs_get(&d->attrs, value.id))
    lw_vec_push(&d->attrs.attrs, value);
}

/* to_apply of a custom-call is its one called computation. */
static void custom_call_comps(lw_text_parser *ps, draft *d) {
  for (size_t i = 0; i < d->attrs.attrs.len; i++) {
    lw_attr *a = &d->attrs.attrs.data[i];
    if (a->id != LW_ATTR_TO_APPLY) continue;
    lw_comp **v = LW_NEW(ps->arena, lw_comp *);
    *v = a->u.comp;
    a->id = LW_ATTR_CALLED_COMPUTATIONS;
    a->u.comps.n = 1;
    a->u.comps.v = v;
  }
}

static void defaults(lw_text_parser *ps, draft *d) {
  lw_opcode op = d->attrs.op;
  if (d->attrs.async_rest) return;
  if (op == LW_OP_BROADCAST)
    set_default(d, (lw_attr){.id = LW_ATTR_DIMENSIONS});
  if (op == LW_OP_TOPK)
    set_default(d, (lw_attr){.id = LW_ATTR_LARGEST, .u.i = true});
  if (op == LW_OP_SCAN) {
    int64_t no = 0;
    (void)lw_enum_value(LW_AK_ENUM_TRISTATE, "TRI_STATE_FALSE", 15, &no);
    set_default(d, (lw_attr){.id = LW_ATTR_IS_ASSOCIATIVE, .u.i = no});
  }
  if (op == LW_OP_CUSTOM_CALL) custom_call_comps(ps, d);
}

/* ---- making it ---- */

/* In the order of the tables, whatever the text's: lw_inst_called counts on
 * it. */
static void set_attrs(lw_inst *i, const lw_text_attrs *a) {
  int n;
  const lw_op_attr *list = lw_op_attrs(i->opcode, &n);
  for (int j = 0; j < n; j++) {
    const lw_attr *v = lw_text_attrs_get(a, list[j].id);
    if (v) lw_inst_set_attr(i, v);
  }
  for (size_t k = 0; k < a->attrs.len; k++)
    if (!lw_inst_attr(i, a->attrs.data[k].id))
      lw_inst_set_attr(i, &a->attrs.data[k]);
}

static void set_common(lw_inst *i, const lw_text_attrs *a) {
  i->metadata = a->metadata;
  i->frontend_attrs = a->frontend;
  i->backend_config = a->backend_config;
}

/* A plain sharding on a tuple stands for every leaf. */
static const lw_sharding *normal_sharding(lw_text_parser *ps,
                                          const lw_sharding *s,
                                          const lw_shape *shape) {
  if (!s || s->type == LW_SH_TUPLE || !lw_shape_is_tuple(shape)) return s;
  int64_t n = lw_shape_leaf_count(shape);
  if (n < 1) n = 1;
  const lw_sharding **v = LW_NEW_ARRAY(ps->arena, const lw_sharding *, n);
  for (int64_t i = 0; i < n; i++) v[i] = s;
  lw_sharding *t = LW_NEW(ps->arena, lw_sharding);
  t->type = LW_SH_TUPLE;
  t->n_elems = (int32_t)n;
  t->elems = v;
  return t;
}

static bool check_replication(lw_text_parser *ps, const draft *d,
                              const lw_inst *i) {
  int32_t n;
  if (!lw_inst_attr(i, LW_ATTR_PARAMETER_REPLICATION)) return true;
  (void)lw_inst_i64s(i, LW_ATTR_PARAMETER_REPLICATION, &n);
  int64_t leaves = lw_shape_leaf_count(i->shape);
  if (n == leaves) return true;
  return lw_text_error_at(ps, &d->at,
                          "parameter_replication has %d values, but "
                          "the shape has %lld leaves",
                          n, (long long)leaves);
}

static bool infer(lw_text_parser *ps, const draft *d, lw_inst *i) {
  if (i->opcode == LW_OP_TUPLE) {
    int64_t leaves = 0;
    for (int32_t k = 0; k < i->n_operands; k++)
      leaves += lw_shape_leaf_count(lw_inst_operand(i, k)->shape);
    if (leaves > MAX_LEAVES)
      return lw_text_error_at(ps, &d->at, "this tuple has more than %d leaves",
                              MAX_LEAVES);
  }
  const lw_shape *s = NULL;
  lw_status st = lw_infer_shape(ps->ctx, i, &s);
  if (st) {
    lw_text_error_at(ps, &d->at, "the shape of this %s cannot be inferred: %s",
                     lw_opcode_name(i->opcode), lw_status_message(st));
    lw_status_free(st);
    return false;
  }
  i->shape = lw_shape_fill_layouts(ps->ctx, s);
  return true;
}

static void add_param(lw_comp *c, lw_inst *i, int64_t number) {
  lw_inst_set_i64(i, LW_ATTR_PARAMETER_NUMBER, number);
  while ((int64_t)c->params.len <= number) lw_vec_push(&c->params, NULL);
  c->params.data[number] = i;
}

static lw_inst *new_inst(lw_text_parser *ps, const draft *d) {
  lw_comp *c = ps->scope->comp;
  lw_inst *i =
      lw_inst_new_named(c, d->word.op, d->shape, d->name ? d->name : "",
                        (int32_t)d->ops.len, d->ops.data);
  set_place(i, &d->at);
  if (!d->name)
    unnamed(ps, i,
            lw_arena_printf(ps->arena, "%s.anon", lw_opcode_name(d->word.op)));
  if (d->word.op == LW_OP_PARAMETER) add_param(c, i, d->number);
  if (d->literal) {
    lw_attr a = {.id = LW_ATTR_LITERAL, .u.literal = d->literal};
    lw_inst_set_attr(i, &a);
  }
  return i;
}

/* ---- async ---- */

static bool is_async(const lw_inst *i) {
  return i->opcode == LW_OP_ASYNC_START || i->opcode == LW_OP_ASYNC_UPDATE;
}

/* The async-start a chain of updates hangs on; NULL when it is broken. */
static const lw_inst *chain_start(const lw_inst *i) {
  while (i->opcode == LW_OP_ASYNC_UPDATE) i = lw_inst_operand(i, 0);
  return i->opcode == LW_OP_ASYNC_START ? i : NULL;
}

static bool start_shape_ok(const lw_shape *s) {
  return lw_shape_is_tuple(s) && s->n_elems >= 2 &&
         lw_shape_is_tuple(s->elems[0]);
}

/* op-start(x), ...: the computation that holds op alone. */
static lw_comp *wrapped_comp(lw_text_parser *ps, const draft *d) {
  lw_comp *c = lw_comp_new(ps->module, "async_wrapped");
  c->name = lw_context_cstr(ps->ctx, "async_wrapped");
  insts params = {0};
  for (size_t k = 0; k < d->ops.len; k++) {
    lw_inst *p = lw_inst_new_named(c, LW_OP_PARAMETER, d->ops.data[k]->shape,
                                   "", 0, NULL);
    add_param(c, p, (int64_t)k);
    set_place(p, &d->at);
    unnamed(ps, p, "async_param");
    lw_vec_push(&params, p);
  }
  lw_inst *root = lw_inst_new_named(c, d->word.wrapped, d->shape->elems[1], "",
                                    (int32_t)params.len, params.data);
  lw_vec_free(&params);
  set_place(root, &d->at);
  unnamed(ps, root, "async_op");
  set_common(root, &d->attrs);
  for (size_t k = 0; k < d->attrs.attrs.len; k++) {
    const lw_attr *a = &d->attrs.attrs.data[k];
    bool outer = a->id == LW_ATTR_ASYNC_EXECUTION_THREAD ||
                 (a->id == LW_ATTR_OUTPUT_TO_OPERAND_ALIASING &&
                  d->word.wrapped != LW_OP_CUSTOM_CALL &&
                  d->word.wrapped != LW_OP_FUSION);
    if (!outer) lw_inst_set_attr(root, a);
  }
  c->root = root;
  c->line = d->at.line;
  c->column = d->at.column;
  return c;
}

static void keep_outer_attrs(draft *d) {
  size_t n = 0;
  for (size_t k = 0; k < d->attrs.attrs.len; k++) {
    const lw_attr a = d->attrs.attrs.data[k];
    if (a.id == LW_ATTR_ASYNC_EXECUTION_THREAD ||
        (a.id == LW_ATTR_OUTPUT_TO_OPERAND_ALIASING &&
         d->word.wrapped != LW_OP_CUSTOM_CALL &&
         d->word.wrapped != LW_OP_FUSION))
      d->attrs.attrs.data[n++] = a;
  }
  d->attrs.attrs.len = n;
}

static bool async_start(lw_text_parser *ps, draft *d) {
  if (!start_shape_ok(d->shape))
    return lw_text_error_at(ps, &d->at,
                            "an async start has the shape "
                            "((operands), results, state...)");
  if (d->word.wrapped != LW_OPCODE_COUNT) {
    lw_comp *c = wrapped_comp(ps, d);
    keep_outer_attrs(d);
    set_default(d, (lw_attr){.id = LW_ATTR_CALLS, .u.comp = c});
  }
  const lw_attr *calls = lw_text_attrs_get(&d->attrs, LW_ATTR_CALLS);
  const lw_attr *thread =
      lw_text_attrs_get(&d->attrs, LW_ATTR_ASYNC_EXECUTION_THREAD);
  if (thread && strcmp(thread->u.s, "main"))
    calls->u.comp->execution_thread = thread->u.s;
  return true;
}

/* -update and -done repeat what the start said; it must agree and is then
 * dropped, since the chain carries it. */
static bool async_rest(lw_text_parser *ps, draft *d) {
  lw_inst *operand = d->ops.data[0];
  if (!is_async(operand))
    return lw_text_error_at(ps, &d->at,
                            "the operand of %s must be an async "
                            "start or update",
                            lw_opcode_name(d->word.op));
  const lw_inst *start = chain_start(operand);
  const lw_comp *c = start ? lw_inst_comp(start, LW_ATTR_CALLS) : NULL;
  if (!c) return lw_text_error_at(ps, &d->at, "this chain has no async start");
  if (d->word.wrapped != LW_OPCODE_COUNT && c->root->opcode != d->word.wrapped)
    return lw_text_error_at(ps, &d->at, "the start wraps %s, not %s",
                            lw_opcode_name(c->root->opcode),
                            lw_opcode_name(d->word.wrapped));
  const lw_attr *calls = lw_text_attrs_get(&d->attrs, LW_ATTR_CALLS);
  if (calls && calls->u.comp != c)
    return lw_text_error_at(ps, &d->at, "the start calls '%s', not '%s'",
                            c->name, calls->u.comp->name);
  const lw_attr *thread =
      lw_text_attrs_get(&d->attrs, LW_ATTR_ASYNC_EXECUTION_THREAD);
  const char *runs_on = lw_inst_str(start, LW_ATTR_ASYNC_EXECUTION_THREAD);
  if (thread && strcmp(thread->u.s, runs_on ? runs_on : "main"))
    return lw_text_error_at(ps, &d->at, "the start runs on thread \"%s\"",
                            runs_on ? runs_on : "main");
  if (d->word.op == LW_OP_ASYNC_UPDATE && operand->shape != d->shape)
    return lw_text_error_at(ps, &d->at,
                            "an update has its operand's shape, "
                            "%s",
                            lw_shape_str(ps->ctx, operand->shape));
  d->attrs.attrs.len = 0;
  return true;
}

static bool async(lw_text_parser *ps, draft *d) {
  switch ((int)d->word.op) {
    case LW_OP_ASYNC_START:
      return async_start(ps, d);
    case LW_OP_ASYNC_UPDATE:
    case LW_OP_ASYNC_DONE:
      return async_rest(ps, d);
  }
  return true;
}

/* ---- the whole ---- */

static void attrs_for(draft *d) {
  bool sugared = d->word.wrapped != LW_OPCODE_COUNT;
  bool start = d->word.op == LW_OP_ASYNC_START;
  d->attrs.op = sugared && start ? d->word.wrapped : d->word.op;
  d->attrs.async_start = sugared && start;
  d->attrs.async_rest = sugared && !start;
}

static bool read_draft(lw_text_parser *ps, draft *d) {
  if (lw_text_can_be_shape(ps) && !lw_text_shape(ps, &d->shape)) return false;
  lw_token op_at = ps->lx.tok;
  if (!opcode(ps, &d->word)) return false;
  if (!d->shape && (lw_opcode_table[d->word.op].flags & LW_OPF_SHAPE))
    return lw_text_error_at(ps, &op_at,
                            "%s needs its result shape before the "
                            "opcode",
                            lw_opcode_name(d->word.op));
  attrs_for(d);
  if (!arguments(ps, d)) return false;
  if (d->name && !lw_text_attributes(ps, &d->attrs)) return false;
  if (!complete(ps, d)) return false;
  defaults(ps, d);
  return async(ps, d);
}

static bool make(lw_text_parser *ps, draft *d, lw_inst **out) {
  lw_inst *i = new_inst(ps, d);
  set_attrs(i, &d->attrs);
  set_common(i, &d->attrs);
  if (!i->shape && !infer(ps, d, i)) return false;
  i->sharding = normal_sharding(ps, d->attrs.sharding, i->shape);
  for (size_t k = 0; k < d->attrs.preds.len; k++)
    lw_inst_add_control_pred(i, d->attrs.preds.data[k]);
  *out = i;
  return check_replication(ps, d, i);
}

bool lw_text_inst_rest(lw_text_parser *ps, const lw_token *at, const char *name,
                       lw_inst **out) {
  draft d = {.at = *at, .name = name};
  bool ok = read_draft(ps, &d) && make(ps, &d, out);
  lw_vec_free(&d.ops);
  lw_text_attrs_free(&d.attrs);
  if (!ok) ps->failed = true;
  return ok;
}
