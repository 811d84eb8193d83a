/* Maps and in-place updates: one loop over the domain, a value and a store a
 * stage. */
#include "codegen/llvm/emit.h"
#include "codegen/llvm/stages.h"

typedef struct {
  int32_t first, n;
} group;

void lw_store_result(lw_fn *f, const lw_stage *s, int32_t result, lw_ev v,
                     const lw_expr *lin) {
  lw_store_at(f, v, lw_dest_base(f, s, result), lin);
  for (int32_t c = 0; c < s->n_copies; c++)
    if (s->copies[c].result == result)
      lw_store_at(f, v, lw_buffer(f, s->copies[c].buffer), lin);
}

/* All values first, then the stores: an output may lie in the buffer of a
 * parameter that a later stage of the group reads at the same element
 * (docs/decisions/0008). */
static void map_body(lw_fn *f, void *ctx, const lw_expr *g) {
  const group *gr = ctx;
  lw_ev *x = LW_NEW_ARRAY(f->arena, lw_ev, gr->n);
  f->group_first = gr->first;
  f->group_mask = f->mask;
  for (int32_t k = 0; k < gr->n; k++) {
    const lw_stage *s = &f->k->stages[gr->first + k];
    const lw_expr *idx[LW_MAX_RANK];
    f->stage = gr->first + k;
    lw_ex_delinear(f->ix, g, s->domain->rank, s->domain->dims, idx);
    x[k] = lw_emit_value(f, (lw_value){s->inst, s->leaf}, idx);
  }
  for (int32_t k = 0; k < gr->n; k++)
    lw_store_result(f, &f->k->stages[gr->first + k], 0, x[k], g);
  f->group_first = -1;
}

static int widest(lw_fn *f, int32_t first, int32_t n) {
  int w = 64;
  for (int32_t k = 0; k < n; k++) {
    int x = lw_domain_width(f, &f->k->stages[first + k]);
    if (x < w) w = x;
  }
  return w;
}

lw_status lw_emit_map_group(lw_fn *f, int32_t first, int32_t n) {
  const lw_stage *s = &f->k->stages[first];
  group g = {first, n};
  f->width = widest(f, first, n);
  lw_domain_loop(f, s->domain->elements, s->inner, map_body, &g);
  return NULL;
}

/* ---- in-place updates ---- */

static void update_body(lw_fn *f, void *ctx, const lw_expr *g) {
  const lw_stage *s = ctx;
  const lw_inst *i = s->inst;
  const lw_expr *u[LW_MAX_RANK], *at[LW_MAX_RANK];
  lw_ex_delinear(f->ix, g, s->domain->rank, s->domain->dims, u);
  for (int32_t d = 0; d < s->domain->rank; d++) {
    lw_value v = lw_value_operand(i, 2);
    const lw_expr *k = lw_ex_const(f->ix, d);
    int32_t n = lw_value_shape(v)->rank == 1;
    if (!n) v = lw_value_operand(i, 2 + d);
    int64_t room = i->shape->dims[d] - s->domain->dims[d] + 1;
    at[d] =
        lw_ex_add(f->ix, u[d], lw_ex_value(f->ix, v.inst, v.leaf, n, &k, room));
  }
  lw_ev x = lw_emit_value(f, lw_value_operand(i, 1), u);
  lw_store_at(f, x, lw_dest_base(f, s, 0),
              lw_ex_linear(f->ix, i->shape->rank, i->shape->dims, at));
}

lw_status lw_emit_update_stage(lw_fn *f, const lw_stage *s) {
  f->width = lw_domain_width(f, s);
  lw_domain_loop(f, s->domain->elements, s->inner, update_body, (void *)s);
  return NULL;
}

/* ---- widths ---- */

static int type_bytes(lw_prim t) {
  if (t == LW_PRED) return 1;
  if (lw_prim_is_float(t) && lw_prim_bytes(t) < 4) return 4;
  if (lw_prim_is_complex(t)) return lw_prim_bytes(t) / 2;
  return lw_prim_bytes(t);
}

static int cone_bytes(lw_fn *f, lw_value v, lw_map *seen, int depth) {
  const lw_place *p = lw_kernel_place(f->k, v.inst);
  int most = type_bytes(lw_value_shape(v)->type);
  if (depth && p->kind != LW_PLACE_INLINE) return most;
  if (lw_value_shape(v)->elements == 1 && depth) return most;
  uint64_t *slot = lw_map_put(seen, (uint64_t)(uintptr_t)v.inst);
  if (*slot) return most;
  *slot = 1;
  bool starts = v.inst->opcode == LW_OP_DYNAMIC_SLICE ||
                v.inst->opcode == LW_OP_GATHER ||
                v.inst->opcode == LW_OP_DYNAMIC_UPDATE_SLICE;
  for (int32_t j = 0; j < v.inst->n_operands; j++) {
    lw_value o = lw_value_operand(v.inst, j);
    if (!lw_shape_is_array(lw_value_shape(o))) continue;
    if (starts && j >= (v.inst->opcode == LW_OP_DYNAMIC_UPDATE_SLICE ? 2 : 1))
      continue;
    int b = cone_bytes(f, o, seen, depth + 1);
    if (b > most) most = b;
  }
  return most;
}

int lw_stage_width(const lw_fn *cf, const lw_stage *s) {
  lw_fn *f = (lw_fn *)cf;
  lw_map seen = {0};
  int most = 1;
  if (s->kind == LW_STAGE_MAP) {
    most = cone_bytes(f, (lw_value){s->inst, s->leaf}, &seen, 0);
  } else {
    for (int32_t r = 0; r < s->n_results; r++)
      if (type_bytes(s->shapes[r]->type) > most)
        most = type_bytes(s->shapes[r]->type);
    for (int32_t j = 0; j < s->inst->n_operands; j++) {
      lw_value o = lw_value_operand(s->inst, j);
      if (!lw_shape_is_array(lw_value_shape(o))) continue;
      if (s->kind == LW_STAGE_UPDATE_SLICE && j != 1) continue;
      int b = cone_bytes(f, o, &seen, 1);
      if (b > most) most = b;
    }
  }
  lw_map_free(&seen);
  int w = f->em->vec_bytes / most;
  return w < 1 ? 1 : w > 64 ? 64 : w;
}

int lw_domain_width(const lw_fn *f, const lw_stage *s) {
  int w = lw_stage_width(f, s);
  while (w > 1 && w / 2 >= s->domain->elements) w /= 2;
  return w;
}
