/* layout-normalization: every array is row-major.
 *
 * Lawson's buffers hold the logical array in row-major order, and an HLO
 * instruction's meaning does not depend on layouts; with one exception: bitcast
 * re-reads memory. It is spelled out as transpose (into the operand's physical
 * order), reshape and transpose (out of the result's). After that layouts say
 * nothing, so all become {rank-1, ..., 0}. What the caller lays out otherwise
 * stays a fact of entry_computation_layout, and custom calls get their operand
 * layouts from src/lib.
 */
#include "passes/passes.h"
#include "passes/rewrite.h"

/* ---- shapes ---- */

static const lw_shape *plain(lw_module *m, const lw_shape *s) {
  if (lw_shape_is_tuple(s)) {
    const lw_shape **v = LW_NEW_ARRAY(m->arena, const lw_shape *, s->n_elems);
    bool same = true;
    for (int32_t k = 0; k < s->n_elems; k++) {
      v[k] = plain(m, s->elems[k]);
      same = same && v[k] == s->elems[k];
    }
    return same ? s : lw_shape_tuple(m->ctx, s->n_elems, v);
  }
  if (!lw_shape_is_array(s) || !s->layout) return s;
  return lw_shape_with_layout(m->ctx, s, lw_layout_descending(m->ctx, s->rank));
}

/* ---- bitcast ---- */

/* perm[k]: the logical dim that is k-th from the slow end in memory. */
static void physical_order(const lw_shape *s, int64_t *perm) {
  for (int32_t k = 0; k < s->rank; k++)
    perm[k] = s->layout ? s->layout->minor_to_major[s->rank - 1 - k] : k;
}

static lw_inst *bitcast(lw_rw *r, lw_inst *i) {
  lw_inst *x = lw_op(i, 0);
  const lw_shape *s = i->shape;
  int64_t in[LW_MAX_RANK], out[LW_MAX_RANK], back[LW_MAX_RANK];
  int64_t dims[LW_MAX_RANK];
  lw_prim to = s->type, from = x->shape->type;
  bool same_width = lw_prim_bytes(to) == lw_prim_bytes(from);
  if (!lw_shape_is_array(s) || s->elements != x->shape->elements) return NULL;
  if (!same_width || !lw_rw_go(r, "bitcasts")) return NULL;
  physical_order(x->shape, in);
  physical_order(s, out);
  for (int32_t k = 0; k < s->rank; k++) {
    dims[k] = s->dims[out[k]];
    back[out[k]] = k;
  }
  lw_inst *v = lw_rw_transpose(r, x, in);
  v = lw_rw_reshape(r, v, lw_mk_array(r->m, from, s->rank, dims));
  v = lw_rw_transpose(r, v, back);
  if (to == from) return v;
  const lw_shape *t = lw_mk_array(r->m, to, s->rank, s->dims);
  return lw_rw_un(r, LW_OP_BITCAST_CONVERT, t, v);
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  static const lw_rule rules[LW_OPCODE_COUNT] = {[LW_OP_BITCAST] = bitcast};
  LW_TRY(lw_rewrite(m, env, rules, changed));
  for (lw_comp *c = m->first_comp; c; c = c->next)
    for (lw_inst *i = c->first; i; i = i->next) {
      const lw_shape *s = plain(m, i->shape);
      if (s == i->shape) continue;
      if (i->opcode == LW_OP_BITCAST) continue; /* could not be spelled out */
      if (!lw_pass_fuel(env)) return NULL;
      i->shape = s;
      lw_pass_count(env, "layouts", 1);
      *changed = true;
    }
  return NULL;
}

const lw_pass lw_pass_layout_normalization = {
    "layout-normalization", "makes every array row-major", NULL, run};
