/* constant-folding: what depends on constants alone is computed now.
 *
 * The interpreter evaluates it: it defines the bits (docs/numerics.md), so the
 * folded value is the one the program would have computed.
 *
 * Not folded: side effects, random numbers, calls and control flow, library
 * calls, collectives; broadcasts and iotas, which say in a few bytes what a
 * constant says in many. A result may have `limit` bytes, and a module grows
 * by at most 1 MiB a run. Results larger than their constant sources have at
 * most 1 KiB, and 64 bytes where all sources are broadcasts and iotas:
 * computing those in a kernel is cheaper than reading them.
 */
#include <stdlib.h>

#include "interp/interp.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

enum { GROW_LIMIT = 1 << 20, SOURCE_LIMIT = 1 << 18, SMALL = 1024, TINY = 64 };

static const lw_pass_option options[] = {
    {"limit", "65536", "bytes of the largest result"},
    {NULL, NULL, NULL},
};

typedef struct {
  lw_module *m;
  lw_pass_env *env;
  int64_t limit, grown;
} folder;

static bool is_foldable(const lw_inst *i) {
  unsigned flags = lw_opcode_table[i->opcode].flags;
  if (flags & (LW_OPF_SIDE | LW_OPF_COLL | LW_OPF_ASYNC)) return false;
  if (i->n_operands == 0 || !lw_shape_is_array(i->shape)) return false;
  if (i->n_control_preds || lw_shape_has_dynamic(i->shape)) return false;
  switch ((int)i->opcode) {
    case LW_OP_BROADCAST:
    case LW_OP_BITCAST:
    case LW_OP_CALL:
    case LW_OP_FUSION:
    case LW_OP_WHILE:
    case LW_OP_CONDITIONAL:
    case LW_OP_CUSTOM_CALL:
    case LW_OP_FFT:
    case LW_OP_CHOLESKY:
    case LW_OP_TRIANGULAR_SOLVE:
    case LW_OP_RNG_BIT_GENERATOR:
    case LW_OP_GET_TUPLE_ELEMENT:
    case LW_OP_OPT_BARRIER:
    case LW_OP_DOMAIN:
    case LW_OP_ADD_DEPENDENCY:
    case LW_OP_GET_DIMENSION_SIZE:
    case LW_OP_SET_DIMENSION_SIZE:
    case LW_OP_CONVOLUTION:
      return false;
    default:
      return true;
  }
}

static bool is_known(const lw_inst *x) {
  return lw_shape_is_array(x->shape) && !lw_shape_has_dynamic(x->shape) &&
         lw_shape_bytes(x->shape) <= SOURCE_LIMIT;
}

/* A constant, or cheap to make from one: an iota, a broadcast of either. */
static bool is_source(const lw_inst *x) {
  for (int depth = 0; depth < 8 && x->opcode == LW_OP_BROADCAST; depth++) {
    if (!is_known(x)) return false;
    x = lw_op(x, 0);
  }
  if (!is_known(x)) return false;
  return x->opcode == LW_OP_IOTA ||
         (x->opcode == LW_OP_CONSTANT && lw_inst_literal(x));
}

/* Work of the operation, in elements: a dot of large broadcasts is not for
 * compile time. */
static bool is_small_work(const lw_inst *i) {
  int64_t work = i->shape->elements;
  if (i->opcode == LW_OP_DOT || i->opcode == LW_OP_REDUCE_WINDOW) {
    int64_t ops = lw_op(i, 0)->shape->elements;
    if (__builtin_mul_overflow(work, ops, &work)) return false;
  }
  return work <= GROW_LIMIT;
}

static bool worthwhile(const folder *f, const lw_inst *i) {
  int64_t bytes = lw_shape_bytes(i->shape), stored = 0;
  bool any = false;
  for (int32_t k = 0; k < i->n_operands; k++) {
    const lw_inst *x = lw_op(i, k);
    if (x->opcode != LW_OP_CONSTANT) continue;
    stored += lw_shape_bytes(x->shape);
    any = true;
  }
  if (bytes > f->limit || f->grown + bytes > GROW_LIMIT) return false;
  return bytes <= (any ? SMALL : TINY) || bytes <= stored;
}

static lw_status value_of(folder *f, const lw_inst *x, lw_literal **out) {
  if (x->opcode == LW_OP_CONSTANT) {
    *out = (lw_literal *)lw_inst_literal(x);
    return NULL;
  }
  const lw_literal *op = NULL;
  lw_literal *v = NULL;
  if (x->n_operands) LW_TRY(value_of(f, lw_op(x, 0), &v));
  op = v;
  lw_interp_options o = {.flush_denormals = f->env->flush_denormals};
  return lw_interp_eval_inst(x, &op, &o, f->env->scratch, out);
}

static lw_status evaluate(folder *f, lw_inst *i, lw_literal **out) {
  const lw_literal **ops =
      LW_NEW_ARRAY(f->env->scratch, const lw_literal *, i->n_operands);
  for (int32_t k = 0; k < i->n_operands; k++) {
    lw_literal *v;
    LW_TRY(value_of(f, lw_op(i, k), &v));
    ops[k] = v;
  }
  lw_interp_options o = {.flush_denormals = f->env->flush_denormals};
  return lw_interp_eval_inst(i, ops, &o, f->m->arena, out);
}

/* An operation the interpreter refuses stays as it is: whoever runs it says
 * why. */
static void fold(folder *f, lw_inst *i, bool *changed) {
  lw_literal *v;
  lw_status s = evaluate(f, i, &v);
  if (s) {
    lw_status_free(s);
    return;
  }
  lw_literal *own = LW_NEW(f->m->arena, lw_literal);
  *own = *v;
  own->shape = i->shape;
  lw_inst *c = lw_inst_constant(i->parent, own);
  c->metadata = i->metadata;
  lw_inst_move_before(c, i);
  f->grown += lw_shape_bytes(i->shape);
  lw_inst_replace_uses(i, c);
  lw_inst_remove(i);
  lw_pass_count(f->env, "folded", 1);
  *changed = true;
}

static bool all_sources(const lw_inst *i) {
  for (int32_t k = 0; k < i->n_operands; k++)
    if (!is_source(lw_op(i, k))) return false;
  return true;
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  folder f = {.m = m, .env = env};
  f.limit = strtoll(lw_pass_option_value(env, "limit"), NULL, 10);
  int32_t n;
  lw_comp **comps = lw_control_comps(m, env->scratch, &n);
  for (int32_t k = 0; k < n; k++)
    for (lw_inst *i = comps[k]->first, *next; i; i = next) {
      next = i->next;
      if (!is_foldable(i) || !all_sources(i)) continue;
      if (i->n_uses == 0 && !lw_inst_is_root(i)) continue;
      if (lw_inst_has_side_effect(i)) continue;
      if (!worthwhile(&f, i) || !is_small_work(i)) continue;
      if (!lw_pass_fuel(env)) return NULL;
      fold(&f, i, changed);
    }
  return NULL;
}

const lw_pass lw_pass_constant_folding = {
    "constant-folding", "computes what depends on constants alone", options,
    run};
