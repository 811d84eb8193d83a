/* Which instruction of the module before is computed where in the module after:
 * for pairs that some other compiler made, whose passes left no names.
 *
 * Both modules are walked, operands before users. First by value numbers: an
 * instruction after is a value before when it does the same (fingerprint
 * without operands) to the same values. What other passes touched is found by
 * evidence: same opcode and shape of the result, then the same name, the same
 * op_name, an operand that is known already; one point each, the first of the
 * best. A copy in a second fusion may take the same value.
 */
#include <string.h>

#include "fusion/fuse.h"
#include "hlo/fingerprint.h"
#include "lab/xray_impl.h"

typedef struct {
  lw_xray *x;
  lw_fp *before, *after;
  lw_map numbered; /* value number -> value + 1 */
  lw_map kinds;    /* opcode and shape -> first value + 1 */
  int32_t *next;   /* the next value of that kind + 1 */
  uint8_t *taken;
  lw_map caller; /* body -> fusion, of after */
  int32_t found;
} matching;

static uint64_t kind_of(const lw_inst *i) {
  return lw_hash_mix((uint64_t)i->opcode,
                     lw_shape_fingerprint(i->shape, LW_FP_STRUCTURE));
}

/* What an instruction after stands for: a value + 1, 0 when unknown. */
static uint64_t known(const matching *m, const lw_inst *i, int depth) {
  const uint64_t *v = lw_map_get(&m->x->origin, (uintptr_t)i);
  if (v) return *v;
  if (depth > 64) return 0;
  const lw_inst *caller = lw_map_ptr(&m->caller, i->parent);
  if (caller && i->opcode == LW_OP_PARAMETER) {
    int64_t k = lw_inst_param_number(i);
    return k >= 0 && k < caller->n_operands
               ? known(m, lw_inst_operand(caller, (int32_t)k), depth + 1)
               : 0;
  }
  if (lw_inst_is_fusion(i)) return known(m, lw_fusion_body(i)->root, depth + 1);
  if (i->opcode == LW_OP_GET_TUPLE_ELEMENT &&
      lw_inst_is_fusion(lw_inst_operand(i, 0))) {
    const lw_inst *root = lw_fusion_body(lw_inst_operand(i, 0))->root;
    int64_t k = lw_inst_i64(i, LW_ATTR_INDEX, 0);
    return root->opcode == LW_OP_TUPLE && k < root->n_operands
               ? known(m, lw_inst_operand(root, (int32_t)k), depth + 1)
               : 0;
  }
  return 0;
}

static uint64_t number_before(const matching *m, const lw_inst *i) {
  uint64_t h = lw_fp_local(m->before, i);
  for (int32_t k = 0; k < i->n_operands; k++) {
    const uint64_t *v =
        lw_map_get(&m->x->value_of, (uintptr_t)lw_inst_operand(i, k));
    h = lw_hash_mix(h, v ? *v : 0);
  }
  return h;
}

/* 0: an operand is unknown. */
static uint64_t number_after(const matching *m, const lw_inst *i) {
  uint64_t h = lw_fp_local(m->after, i);
  for (int32_t k = 0; k < i->n_operands; k++) {
    uint64_t v = known(m, lw_inst_operand(i, k), 0);
    if (!v) return 0;
    h = lw_hash_mix(h, v);
  }
  return h;
}

static void index_values(matching *m) {
  lw_xray *x = m->x;
  m->next = LW_NEW_ARRAY(x->arena, int32_t, x->values.len + 1);
  m->taken = LW_NEW_ARRAY(x->arena, uint8_t, x->values.len + 1);
  for (size_t k = x->values.len; k-- > 0;) {
    const lw_inst *i = x->values.data[k].inst;
    uint64_t *kind = lw_map_put(&m->kinds, kind_of(i));
    m->next[k] = (int32_t)*kind;
    *kind = k + 1;
    if (i->opcode != LW_OP_PARAMETER)
      *lw_map_put(&m->numbered, number_before(m, i)) = k + 1;
  }
}

/* "multiply.12.clone" and "multiply.3" are both "multiply". */
static size_t stem(const char *name) {
  size_t n = strlen(name);
  for (;;) {
    size_t k = n;
    while (k > 0 && name[k - 1] >= '0' && name[k - 1] <= '9') k--;
    if (k > 1 && k < n && name[k - 1] == '.')
      n = k - 1;
    else if (n > 6 && !strncmp(name + n - 6, ".clone", 6))
      n -= 6;
    else
      return n;
  }
}

static bool same_stem(const char *a, const char *b) {
  size_t n = stem(a);
  return n == stem(b) && !strncmp(a, b, n);
}

/* XLA's copies count in the last place: "add.762.0" is copied as "add.762.3".
 * A name of one place says nothing. */
static bool same_but_last(const char *a, const char *b) {
  const char *x = strrchr(a, '.'), *y = strrchr(b, '.');
  size_t n = x ? (size_t)(x - a) : 0;
  return x && y && n == (size_t)(y - b) && !strncmp(a, b, n) &&
         memchr(a, '.', n);
}

static const char *op_name(const lw_inst *i) {
  return i->metadata && i->metadata->op_name ? i->metadata->op_name : "";
}

static int evidence(const matching *m, const lw_inst *i, int32_t value) {
  const lw_inst *v = m->x->values.data[value].inst;
  int points = !m->taken[value];
  if (!strcmp(i->name, v->name))
    points += 4;
  else if (same_but_last(i->name, v->name))
    points += 3;
  else if (same_stem(i->name, v->name))
    points += 1;
  if (*op_name(i) && !strcmp(op_name(i), op_name(v))) points += 3;
  if (lw_fp_local(m->after, i) == lw_fp_local(m->before, v)) points += 1;
  for (int32_t k = 0; k < i->n_operands && k < v->n_operands; k++) {
    uint64_t a = known(m, lw_inst_operand(i, k), 0);
    const uint64_t *b =
        lw_map_get(&m->x->value_of, (uintptr_t)lw_inst_operand(v, k));
    if (a && b && a == *b) points += 2;
  }
  return points;
}

/* A guess needs more than its shape and being free. */
static int32_t best_guess(const matching *m, const lw_inst *i) {
  const uint64_t *first = lw_map_get(&m->kinds, kind_of(i));
  int best = 2, seen = 0;
  int32_t value = -1;
  for (int32_t k = first ? (int32_t)*first : 0; k && seen < 512;
       k = m->next[k - 1], seen++) {
    int points = evidence(m, i, k - 1);
    if (points > best) best = points, value = k - 1;
  }
  return value;
}

static void match_one(matching *m, const lw_inst *i) {
  uint64_t number = number_after(m, i);
  const uint64_t *v = number && i->opcode != LW_OP_PARAMETER
                          ? lw_map_get(&m->numbered, number)
                          : NULL;
  int32_t value = v ? (int32_t)*v - 1 : best_guess(m, i);
  if (value < 0) return;
  *lw_map_put(&m->x->origin, (uintptr_t)i) = (uint64_t)value + 1;
  m->taken[value] = 1;
  m->found += i->opcode != LW_OP_PARAMETER && i->opcode != LW_OP_CONSTANT;
}

/* The parameters of the entries are each other's, by number. */
static void match_parameters(matching *m) {
  const lw_comp *a = m->x->before->entry, *b = m->x->after->entry;
  for (size_t k = 0; k < a->params.len && k < b->params.len; k++) {
    const uint64_t *v =
        lw_map_get(&m->x->value_of, (uintptr_t)a->params.data[k]);
    if (v) *lw_map_put(&m->x->origin, (uintptr_t)b->params.data[k]) = *v;
  }
}

/* The value that a fusion was before, body and all, or -1: name, kind and
 * size. (Fingerprints differ where only one module is scheduled.) */
static int32_t given_fusion(const matching *m, const lw_inst *i) {
  int32_t v = xray_value_named(m->x, i->name);
  const lw_inst *was = v >= 0 ? m->x->values.data[v].inst : NULL;
  if (!was || !lw_inst_is_fusion(was)) return -1;
  bool same =
      lw_inst_i64(was, LW_ATTR_KIND, -1) == lw_inst_i64(i, LW_ATTR_KIND, -1) &&
      lw_fusion_body(was)->n_insts == lw_fusion_body(i)->n_insts;
  return same ? v : -1;
}

static void match_fusion(matching *m, const lw_inst *fusion) {
  const lw_comp *body = lw_fusion_body(fusion);
  int32_t n, given = given_fusion(m, fusion);
  lw_map_set_ptr(&m->caller, body, fusion);
  if (given >= 0) {
    *lw_map_put(&m->x->origin, (uintptr_t)fusion) = (uint64_t)given + 1;
    *lw_map_put(&m->x->origin, (uintptr_t)body->root) = (uint64_t)given + 1;
    m->found++;
    return;
  }
  lw_inst **order = lw_comp_post_order(body, m->x->arena, &n);
  for (int32_t k = 0; k < n; k++)
    if (order[k]->opcode != LW_OP_PARAMETER) match_one(m, order[k]);
}

static void match_comp(matching *m, const lw_comp *c) {
  int32_t n;
  lw_inst **order = lw_comp_post_order(c, m->x->arena, &n);
  for (int32_t k = 0; k < n; k++) {
    if (lw_inst_is_fusion(order[k]))
      match_fusion(m, order[k]);
    else if (!lw_map_get(&m->x->origin, (uintptr_t)order[k]))
      match_one(m, order[k]);
  }
}

int32_t xray_match(lw_xray *x) {
  const unsigned levels = LW_FP_STRUCTURE | LW_FP_CONSTANTS;
  matching m = {.x = x,
                .before = lw_fp_new(x->before, levels),
                .after = lw_fp_new(x->after, levels)};
  index_values(&m);
  match_parameters(&m);
  int32_t n;
  lw_comp **comps = lw_comps_to_fuse(x->after, x->arena, &n);
  for (int32_t k = 0; k < n; k++) match_comp(&m, comps[k]);
  lw_map_free(&m.numbered);
  lw_map_free(&m.kinds);
  lw_map_free(&m.caller);
  lw_fp_free(m.before);
  lw_fp_free(m.after);
  return m.found;
}
