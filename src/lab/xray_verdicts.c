/* Verdicts of a pair: read off the two modules, with the reasons of our rules
 * where they say the same; and XLA:GPU's own record, when it kept one. */
#include <stdio.h>
#include <string.h>

#include "fusion/fuse.h"
#include "lab/xray_impl.h"

/* ---- what happened ---- */

typedef LW_VEC(int32_t) int_list;

/* The fusions that each value was computed in. */
static void note_body(lw_xray *x, const lw_comp *body, int32_t fusion,
                      int_list *of_value) {
  for (const lw_inst *i = body->first; i; i = i->next) {
    const uint64_t *v = lw_map_get(&x->origin, (uintptr_t)i);
    if (v && i->opcode != LW_OP_PARAMETER)
      lw_vec_push(&of_value[*v - 1], fusion);
  }
}

static int_list *find_places(lw_xray *x) {
  int_list *of_value = LW_NEW_ARRAY(x->arena, int_list, x->values.len + 1);
  int32_t n, fusion = 0;
  lw_comp **comps = lw_comps_to_fuse(x->after, x->arena, &n);
  for (int32_t k = 0; k < n; k++)
    for (const lw_inst *i = comps[k]->first; i; i = i->next) {
      fusion++;
      const uint64_t *v = lw_map_get(&x->origin, (uintptr_t)i);
      if (v) lw_vec_push(&of_value[*v - 1], fusion);
      if (lw_inst_is_fusion(i))
        note_body(x, lw_fusion_body(i), fusion, of_value);
    }
  return of_value;
}

static bool share_one(const int_list *a, const int_list *b) {
  for (size_t k = 0; k < a->len; k++)
    for (size_t j = 0; j < b->len; j++)
      if (a->data[k] == b->data[j]) return true;
  return false;
}

/* ---- the names of fusions ---- */

/* Fusions get names on the way; a name is followed to what it computes and to
 * the values that it holds. */
typedef struct {
  lw_xray *x;
  lw_map root;    /* hash of a name -> value + 1 */
  lw_map members; /* hash of a name -> lists' index + 1 */
  LW_VEC(int_list) lists;
} names;

static int32_t root_of(const names *r, const char *name) {
  const uint64_t *v = lw_map_get(&r->root, xray_hash(name));
  return v ? (int32_t)*v - 1 : xray_value_named(r->x, name);
}

static int_list *members_of(names *r, const char *name) {
  uint64_t *slot = lw_map_put(&r->members, xray_hash(name));
  if (!*slot) {
    int_list l = {0};
    int32_t v = xray_value_named(r->x, name);
    if (v >= 0) lw_vec_push(&l, v);
    lw_vec_push(&r->lists, l);
    *slot = r->lists.len;
  }
  return &r->lists.data[*slot - 1];
}

static bool holds(const int_list *l, int32_t v) {
  for (size_t k = 0; k < l->len; k++)
    if (l->data[k] == v) return true;
  return false;
}

/* consumer, with producer in it, is called fusion now. */
static void name_fusion(names *r, const char *producer, const char *consumer,
                        const char *fusion) {
  int_list all = {0};
  int_list *part = members_of(r, consumer);
  for (size_t k = 0; k < part->len; k++) lw_vec_push(&all, part->data[k]);
  part = members_of(r, producer);
  for (size_t k = 0; k < part->len; k++)
    if (!holds(&all, part->data[k])) lw_vec_push(&all, part->data[k]);
  int32_t root = root_of(r, consumer);
  if (root >= 0) *lw_map_put(&r->root, xray_hash(fusion)) = (uint64_t)root + 1;
  int_list *now = members_of(r, fusion);
  lw_vec_free(now);
  *now = all;
}

static void free_names(names *r) {
  for (size_t k = 0; k < r->lists.len; k++) lw_vec_free(&r->lists.data[k]);
  lw_vec_free(&r->lists);
  lw_map_free(&r->root);
  lw_map_free(&r->members);
}

/* The instruction of the consumer that reads the value; the consumer's root
 * when none does (siblings that were joined). */
static const char *reader_in(names *n, int32_t value, const char *consumer) {
  const lw_xray *x = n->x;
  const lw_inst *v = value >= 0 ? x->values.data[value].inst : NULL;
  const int_list *in = members_of(n, consumer);
  for (const lw_use *u = v ? v->uses : NULL; u; u = u->next) {
    const uint64_t *to = lw_map_get(&x->value_of, (uintptr_t)u->user);
    if (to && holds(in, (int32_t)*to - 1)) return u->user->name;
  }
  int32_t root = root_of(n, consumer);
  return root >= 0 ? x->values.data[root].inst->name : consumer;
}

void xray_follow_names(lw_xray *x) {
  names n = {.x = x};
  for (size_t k = 0; k < x->e.edges.len; k++) {
    lw_explain_edge *e = &x->e.edges.data[k];
    lw_decision *d = LW_NEW(x->arena, lw_decision);
    *d = *e->d;
    int32_t value = root_of(&n, d->producer);
    if (value >= 0) d->value = x->values.data[value].inst->name;
    bool all = !*d->consumer || strchr(d->consumer, ',');
    d->reader = all ? "" : reader_in(&n, value, d->consumer);
    if (d->yes && !all)
      name_fusion(&n, d->producer, d->consumer,
                  d->text && *d->text ? d->text : d->consumer);
    e->d = d;
  }
  free_names(&n);
}

/* ---- what our rules say ---- */

static uint64_t pair_key(int32_t value, int32_t reader) {
  return lw_hash_mix((uint64_t)value + 1, (uint64_t)reader + 2);
}

static const lw_explain_edge *rule_on(const lw_map *rules, const lw_xray *x,
                                      int32_t value, int32_t reader) {
  const uint64_t *k = lw_map_get(rules, pair_key(value, reader));
  if (!k) k = lw_map_get(rules, pair_key(value, -1));
  return k ? &x->rules_explain.edges.data[*k - 1] : NULL;
}

/* A verdict speaks of all readers in the consumer; of all there are when it
 * names none. On a CPU a fusion's name leads back to its root's. */
static void index_rule(names *n, lw_map *rules, size_t k) {
  lw_xray *x = n->x;
  const lw_decision *d = x->rules_explain.edges.data[k].d;
  int32_t value = root_of(n, d->value), reader = root_of(n, d->reader);
  if (value < 0) return;
  const char *in = d->consumer;
  if (!lw_map_get(&n->members, xray_hash(in)) && xray_value_named(x, in) < 0)
    in = lw_trace_origin(lw_compiled_trace(x->rules), in);
  const lw_inst *v = x->values.data[value].inst;
  if (reader >= 0 || !*d->reader || strchr(d->reader, ','))
    *lw_map_put(rules, pair_key(value, reader)) = k + 1;
  for (const lw_use *u = v->uses; u; u = u->next) {
    const uint64_t *to = lw_map_get(&x->value_of, (uintptr_t)u->user);
    if (to && holds(members_of(n, in), (int32_t)*to - 1))
      *lw_map_put(rules, pair_key(value, (int32_t)*to - 1)) = k + 1;
  }
  if (d->yes)
    name_fusion(n, d->text && *d->text ? d->producer : d->value, in,
                d->text && *d->text ? d->text : in);
}

static lw_map index_rules(lw_xray *x) {
  lw_map rules = {0};
  names n = {.x = x};
  for (size_t k = 0; k < x->rules_explain.edges.len; k++)
    index_rule(&n, &rules, k);
  free_names(&n);
  return rules;
}

static void add_edge(lw_xray *x, const lw_inst *from, const lw_inst *to,
                     bool fused, const lw_explain_edge *rule) {
  lw_decision *d = LW_NEW(x->arena, lw_decision);
  if (rule) *d = *rule->d;
  bool agrees = rule && rule->d->yes == fused;
  if (!rule || !agrees) {
    d->reason = fused ? LW_REASON_RULE_ALLOWS : LW_REASON_SAVES_NOTHING;
    d->gate = LW_GATE_PROFITABILITY;
    d->flip = "";
  }
  d->pass = "read off the pair";
  d->computation = from->parent->name;
  d->producer = d->value = from->name;
  d->consumer = d->reader = to->name;
  d->yes = fused;
  d->bytes = lw_shape_bytes(from->shape);
  d->text = "";
  d->seq = (int64_t)x->e.edges.len;
  lw_explain_edge e = {.order = d->seq, .asked = 1, .d = d};
  e.producer = lw_source_of(x->before, from->metadata);
  e.consumer = lw_source_of(x->before, to->metadata);
  if (agrees) {
    e.modelled = rule->modelled;
    e.unfused_ns = rule->unfused_ns;
    e.fused_ns = rule->fused_ns;
    e.saved_ns = rule->saved_ns;
  }
  x->support[x->e.edges.len] = !rule    ? XRAY_SILENT
                               : agrees ? XRAY_AGREES
                                        : XRAY_DIFFERS;
  lw_vec_push(&x->e.edges, e);
}

static bool is_judged(const lw_inst *i) {
  return i->opcode != LW_OP_PARAMETER && i->opcode != LW_OP_CONSTANT &&
         i->opcode != LW_OP_TUPLE && i->opcode != LW_OP_GET_TUPLE_ELEMENT &&
         i->opcode != LW_OP_BITCAST;
}

static int32_t count_edges(const lw_xray *x) {
  int32_t n = 0;
  for (size_t k = 0; k < x->values.len; k++)
    n += x->values.data[k].inst->n_operands;
  return n;
}

/* Passes before fusion drop what only moves (reshapes, copies, converts to
 * itself); the edge goes on above it. */
static const lw_inst *above_dropped(const lw_xray *x, const int_list *of_value,
                                    const lw_inst *p) {
  for (int depth = 0; depth < 32; depth++) {
    const uint64_t *v = lw_map_get(&x->value_of, (uintptr_t)p);
    bool there = v && of_value[*v - 1].len;
    if (there || p->n_operands != 1 || p->opcode == LW_OP_REDUCE ||
        lw_inst_called_count(p) || p->opcode == LW_OP_GET_TUPLE_ELEMENT)
      return p;
    p = lw_inst_operand(p, 0);
  }
  return p;
}

/* An edge whose ends both are in the module after has a verdict; the others
 * went with what some other pass did. */
static void judge_operands(lw_xray *x, const int_list *of_value,
                           const lw_map *rules, int32_t to) {
  const lw_inst *reader = x->values.data[to].inst;
  for (int32_t s = 0; s < reader->n_operands; s++) {
    const lw_inst *p = above_dropped(x, of_value, lw_inst_operand(reader, s));
    const uint64_t *from = lw_map_get(&x->value_of, (uintptr_t)p);
    bool again = false;
    for (int32_t j = 0; j < s; j++) again |= lw_inst_operand(reader, j) == p;
    if (again || !from || !is_judged(p) || !is_judged(reader)) continue;
    const int_list *a = &of_value[*from - 1], *b = &of_value[to];
    if (a->len && b->len)
      add_edge(x, p, reader, share_one(a, b),
               rule_on(rules, x, (int32_t)*from - 1, to));
  }
}

void xray_infer(lw_xray *x) {
  int_list *of_value = find_places(x);
  lw_map rules = index_rules(x);
  x->support = LW_NEW_ARRAY(x->arena, xray_support, (size_t)count_edges(x) + 1);
  x->e.edges.len = 0; /* the module after was asked nothing */
  for (size_t k = 0; k < x->values.len; k++)
    judge_operands(x, of_value, &rules, (int32_t)k);
  int64_t fused = 0;
  for (size_t k = 0; k < x->e.edges.len; k++)
    if (x->e.edges.data[k].d->yes) x->e.edges.data[k].fused = ++fused;
  for (size_t k = 0; k < x->values.len; k++) lw_vec_free(&of_value[k]);
  lw_map_free(&rules);
}

/* ---- XLA:GPU's own record ---- */

/* The form is that of fusion/gpu_decisions.h. */
typedef struct {
  names n;
  lw_xray *x;
  lw_map edge_at;  /* (value, reader) -> edge + 1 */
  lw_map ranking;  /* hash of a producer -> line + 1 */
  double *numbers; /* of rankings: fused us, unfused us, a line */
  int64_t line;
} record;

static void record_verdict(record *r, int32_t value, int32_t reader, bool yes,
                           const char *producer, const char *consumer,
                           const char *text) {
  const uint64_t *at = lw_map_get(&r->edge_at, pair_key(value, reader));
  if (!at) return;
  lw_explain_edge *e = &r->x->e.edges.data[*at - 1];
  lw_decision *d = LW_NEW(r->x->arena, lw_decision);
  *d = *e->d;
  if (d->yes != yes) return; /* a later line says what the module shows */
  d->pass = "gpu-priority-fusion";
  d->producer = xray_keep(r->x, producer);
  d->consumer = xray_keep(r->x, consumer);
  d->text = xray_keep(r->x, text);
  d->seq = e->order = r->line;
  e->asked++;
  const uint64_t *rank = lw_map_get(&r->ranking, xray_hash(producer));
  if (yes && rank && !e->modelled) {
    e->modelled = true;
    e->fused_ns = d->fused_ns = 1e3 * r->numbers[2 * *rank - 2];
    e->unfused_ns = d->unfused_ns = 1e3 * r->numbers[2 * *rank - 1];
    e->saved_ns = d->saved_ns = d->unfused_ns - d->fused_ns;
  }
  xray_support had = r->x->support[*at - 1];
  if (yes)
    d->reason = LW_REASON_SAVES_TIME;
  else if (had == XRAY_DIFFERS || had == XRAY_SILENT)
    d->reason = LW_REASON_TARGET_REFUSES;
  d->gate = lw_reason_table[d->reason].gate;
  r->x->support[*at - 1] = XRAY_RECORDED;
  e->d = d;
}

static void record_readers(record *r, const char *producer,
                           const char *consumer, bool yes, const char *text) {
  int32_t value = root_of(&r->n, producer);
  if (value < 0) return;
  const lw_inst *v = r->x->values.data[value].inst;
  for (const lw_use *u = v->uses; u; u = u->next) {
    const uint64_t *reader = lw_map_get(&r->x->value_of, (uintptr_t)u->user);
    if (!reader) continue;
    int32_t to = (int32_t)*reader - 1;
    if (*consumer && !holds(members_of(&r->n, consumer), to)) continue;
    record_verdict(r, value, to, yes, producer, consumer, text);
  }
}

static void record_line(record *r, char *line) {
  char *f[6] = {0};
  int n = 0;
  for (char *p = line; p && n < 6; n++) {
    f[n] = p;
    p = strchr(p, '\t');
    if (p) *p++ = 0;
  }
  r->line++;
  if (n == 5 && !strcmp(f[0], "priority")) {
    r->numbers[2 * r->line - 2] = strtod(f[3], NULL);
    r->numbers[2 * r->line - 1] = strtod(f[4], NULL);
    *lw_map_put(&r->ranking, xray_hash(f[1])) = (uint64_t)r->line;
  } else if (n == 4 && !strcmp(f[0], "fusion")) {
    record_readers(r, f[1], f[2], true, f[3]);
    name_fusion(&r->n, f[1], f[2], f[3]);
  } else if (n == 3 && !strcmp(f[0], "refused")) {
    record_readers(r, f[1], "", false, f[2]);
  }
}

/* Recorded edges in the record's order, then what only the pair tells. The
 * support list goes along. */
static void sort_edges(lw_xray *x) {
  size_t n = x->e.edges.len;
  for (size_t k = 0; k < n; k++)
    if (x->support[k] != XRAY_RECORDED)
      x->e.edges.data[k].order += (int64_t)1 << 40;
  for (size_t k = 1; k < n; k++) {
    lw_explain_edge e = x->e.edges.data[k];
    xray_support s = x->support[k];
    size_t j = k;
    for (; j > 0 && x->e.edges.data[j - 1].order > e.order; j--) {
      x->e.edges.data[j] = x->e.edges.data[j - 1];
      x->support[j] = x->support[j - 1];
    }
    x->e.edges.data[j] = e;
    x->support[j] = s;
  }
  int64_t fused = 0;
  for (size_t k = 0; k < n; k++) {
    lw_explain_edge *e = &x->e.edges.data[k];
    e->fused = e->d->yes ? ++fused : 0;
  }
}

void xray_read_decisions(lw_xray *x, const char *text) {
  record r = {.n = {.x = x}, .x = x};
  size_t len = strlen(text), lines = 1;
  for (const char *p = text; *p; p++) lines += *p == '\n';
  r.numbers = LW_NEW_ARRAY(x->arena, double, 2 * lines + 2);
  for (size_t k = 0; k < x->e.edges.len; k++) {
    const lw_decision *d = x->e.edges.data[k].d;
    *lw_map_put(&r.edge_at, pair_key(xray_value_named(x, d->value),
                                     xray_value_named(x, d->reader))) = k + 1;
  }
  char *copy = lw_arena_strdup(x->arena, text, len);
  for (char *line = copy; line && *line;) {
    char *end = strchr(line, '\n');
    if (end) *end++ = 0;
    record_line(&r, line);
    line = end;
  }
  sort_edges(x);
  free_names(&r.n);
  lw_map_free(&r.edge_at);
  lw_map_free(&r.ranking);
}
