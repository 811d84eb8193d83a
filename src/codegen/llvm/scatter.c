/* scatter and select-and-scatter (docs/numerics.md 6): updates in order, on one
 * thread. The result's buffer holds the operand already (in place, or copied
 * by the stage before). */
#include "codegen/llvm/emit.h"

enum { MAX_SCATTER = 32 };

static bool has(const int64_t *v, int32_t n, int64_t x) {
  for (int32_t i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

/* Element e of an operand: an array, or a scalar that may be inline. */
static lw_cgval element(lw_fn *f, lw_value v, LLVMValueRef e, int width,
                        LLVMValueRef mask) {
  const lw_shape *s = lw_value_shape(v);
  LLVMValueRef base = lw_array_base(f, v);
  if (!base) return lw_emit_value(f, v, NULL).v;
  return lw_load(f, s->type, lw_at(f, base, e, lw_prim_bytes(s->type)), width,
                 mask);
}

/* ---- scatter ---- */

typedef struct {
  lw_fn *f;
  const lw_stage *s;
  int32_t n; /* operands */
  const lw_shape *whole, *indices, *updates;
  int64_t whole_stride[LW_MAX_RANK], index_stride[LW_MAX_RANK];
  int64_t update_stride[LW_MAX_RANK];
  const int64_t *window_dims, *inserted, *map, *batching, *index_batching;
  int32_t n_window, n_inserted, n_map, n_batching, n_index_batching;
  int64_t vector_dim;
  int64_t window[LW_MAX_RANK]; /* extents by operand dim */
  int32_t n_batch;
  int64_t batch[LW_MAX_RANK], batch_update[LW_MAX_RANK]; /* extent, stride */
  int64_t batch_index[LW_MAX_RANK], n_updates;
  LLVMValueRef base[MAX_SCATTER], update[MAX_SCATTER];
  int width;
} scatter;

static void scatter_dims(scatter *c, const lw_inst *i) {
  c->window_dims = lw_inst_i64s(i, LW_ATTR_UPDATE_WINDOW_DIMS, &c->n_window);
  c->inserted = lw_inst_i64s(i, LW_ATTR_INSERTED_WINDOW_DIMS, &c->n_inserted);
  c->map = lw_inst_i64s(i, LW_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, &c->n_map);
  c->batching = lw_inst_i64s(i, LW_ATTR_INPUT_BATCHING_DIMS, &c->n_batching);
  c->index_batching = lw_inst_i64s(i, LW_ATTR_SCATTER_INDICES_BATCHING_DIMS,
                                   &c->n_index_batching);
  c->vector_dim = lw_inst_i64(i, LW_ATTR_INDEX_VECTOR_DIM, c->indices->rank);
  lw_shape_strides(c->whole, c->whole_stride);
  lw_shape_strides(c->indices, c->index_stride);
  lw_shape_strides(c->updates, c->update_stride);
  for (int32_t d = 0, k = 0; d < c->whole->rank; d++) {
    bool skip = has(c->inserted, c->n_inserted, d) ||
                has(c->batching, c->n_batching, d);
    c->window[d] = skip ? 1 : c->updates->dims[c->window_dims[k++]];
  }
  c->n_updates = 1;
  for (int32_t d = 0, u = 0; d < c->indices->rank; d++) {
    if (d == c->vector_dim) continue;
    while (has(c->window_dims, c->n_window, u)) u++;
    c->batch[c->n_batch] = c->indices->dims[d];
    c->batch_index[c->n_batch] = c->index_stride[d];
    c->batch_update[c->n_batch++] = c->update_stride[u++];
    c->n_updates *= c->indices->dims[d];
  }
}

/* The start along operand dims, and whether the window fits. Unsigned indices
 * beyond 2^63 are negative here: out of bounds either way. */
static LLVMValueRef starts(scatter *c, LLVMValueRef *digit,
                           LLVMValueRef *start) {
  lw_fn *f = c->f;
  lw_value v = lw_value_operand(c->s->inst, c->n);
  bool sign = lw_prim_is_signed(c->indices->type);
  LLVMValueRef at = lw_i64(f, 0), fits = LLVMConstInt(f->em->i1, 1, 0);
  for (int32_t k = 0; k < c->n_batch; k++)
    at = lw_add(f, at, lw_mul_const(f, digit[k], c->batch_index[k]));
  for (int32_t d = 0; d < c->whole->rank; d++) start[d] = lw_i64(f, 0);
  for (int32_t k = 0; k < c->n_map; k++) {
    int64_t step =
        c->vector_dim < c->indices->rank ? c->index_stride[c->vector_dim] : 0;
    lw_cgval x = element(f, v, lw_add(f, at, lw_i64(f, k * step)), 1, NULL);
    start[c->map[k]] = LLVMBuildIntCast2(f->b, x.re, f->em->i64, sign, "");
  }
  for (int32_t k = 0; k < c->n_batching; k++) {
    int64_t d = c->index_batching[k];
    start[c->batching[k]] = digit[d - (d > c->vector_dim)];
  }
  for (int32_t d = 0; d < c->whole->rank; d++) {
    int64_t room = c->whole->dims[d] - c->window[d];
    LLVMValueRef lo =
        LLVMBuildICmp(f->b, LLVMIntSGE, start[d], lw_i64(f, 0), "");
    LLVMValueRef hi =
        LLVMBuildICmp(f->b, LLVMIntSLE, start[d], lw_i64(f, room), "");
    fits = LLVMBuildAnd(f->b, fits, LLVMBuildAnd(f->b, lo, hi, ""), "");
  }
  return fits;
}

/* target = combiner(target..., update...) for width elements from there on. */
static void combine(scatter *c, LLVMValueRef whole_at, LLVMValueRef update_at,
                    int width, LLVMValueRef mask) {
  lw_fn *f = c->f;
  lw_cgval args[2 * MAX_SCATTER], results[MAX_SCATTER];
  int old = lw_width(f, width);
  for (int32_t k = 0; k < c->n; k++) {
    lw_prim t = c->s->shapes[k]->type;
    args[k] = lw_load(f, t, lw_at(f, c->base[k], whole_at, lw_prim_bytes(t)),
                      width, mask);
    lw_value v = lw_value_operand(c->s->inst, c->n + 1 + k);
    args[c->n + k] = element(f, v, update_at, width, mask);
  }
  lw_emit_comp(f, lw_inst_comp(c->s->inst, LW_ATTR_TO_APPLY), args, width,
               results);
  for (int32_t k = 0; k < c->n; k++) {
    lw_prim t = c->s->shapes[k]->type;
    lw_store(f, results[k], lw_at(f, c->base[k], whole_at, lw_prim_bytes(t)),
             width, mask);
  }
  lw_width(f, old);
}

/* A run of n elements that are consecutive in both. */
static void run(scatter *c, LLVMValueRef whole_at, LLVMValueRef update_at,
                int64_t n) {
  lw_fn *f = c->f;
  int width = c->width;
  while (width > 1 && width / 2 >= n) width /= 2;
  int64_t whole = n / width * width;
  if (whole) {
    lw_loop l = lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, whole), width, "run");
    combine(c, lw_add(f, whole_at, l.iv), lw_add(f, update_at, l.iv), width,
            NULL);
    lw_loop_end(f, &l);
  }
  if (whole < n)
    combine(c, lw_add(f, whole_at, lw_i64(f, whole)),
            lw_add(f, update_at, lw_i64(f, whole)), width,
            lw_mask_first(f, n - whole, width));
}

/* The window, row-major; its last dim as a run where it is one. */
static void window(scatter *c, LLVMValueRef whole_at, LLVMValueRef update_at) {
  lw_fn *f = c->f;
  lw_loop loops[LW_MAX_RANK];
  int32_t n = 0, k = 0, dims[LW_MAX_RANK];
  for (int32_t d = 0; d < c->whole->rank; d++)
    if (!has(c->inserted, c->n_inserted, d) &&
        !has(c->batching, c->n_batching, d))
      dims[n++] = d;
  bool runs = n > 0 && c->whole_stride[dims[n - 1]] == 1 &&
              c->update_stride[c->window_dims[n - 1]] == 1;
  for (; k < n - (runs ? 1 : 0); k++) {
    loops[k] =
        lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, c->window[dims[k]]), 1, "win");
    whole_at = lw_add(f, whole_at,
                      lw_mul_const(f, loops[k].iv, c->whole_stride[dims[k]]));
    update_at = lw_add(
        f, update_at,
        lw_mul_const(f, loops[k].iv, c->update_stride[c->window_dims[k]]));
  }
  if (runs)
    run(c, whole_at, update_at, c->window[dims[n - 1]]);
  else
    combine(c, whole_at, update_at, 1, NULL);
  while (k-- > 0) lw_loop_end(f, &loops[k]);
}

lw_status lw_emit_scatter_stage(lw_fn *f, const lw_stage *s) {
  scatter c = {.f = f, .s = s, .n = (s->inst->n_operands - 1) / 2};
  if (c.n > MAX_SCATTER)
    return lw_error(LW_UNIMPLEMENTED, "%s: scatter of %d operands",
                    s->inst->name, c.n);
  c.whole = lw_value_shape(lw_value_operand(s->inst, 0));
  c.indices = lw_value_shape(lw_value_operand(s->inst, c.n));
  c.updates = lw_value_shape(lw_value_operand(s->inst, c.n + 1));
  scatter_dims(&c, s->inst);
  if (!c.updates->elements || !c.whole->elements) return f->error;
  c.width = lw_stage_width(f, s);
  for (int32_t k = 0; k < c.n; k++) c.base[k] = lw_dest_base(f, s, k);
  LLVMValueRef digit[LW_MAX_RANK], start[LW_MAX_RANK];
  lw_loop l =
      lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, c.n_updates), 1, "update");
  LLVMValueRef rest = l.iv, update_at = lw_i64(f, 0), whole_at = lw_i64(f, 0);
  for (int32_t k = c.n_batch - 1; k >= 0; k--) {
    digit[k] = LLVMBuildURem(f->b, rest, lw_i64(f, c.batch[k]), "");
    rest = LLVMBuildUDiv(f->b, rest, lw_i64(f, c.batch[k]), "");
    update_at =
        lw_add(f, update_at, lw_mul_const(f, digit[k], c.batch_update[k]));
  }
  lw_if fits = lw_if_begin(f, starts(&c, digit, start));
  for (int32_t d = 0; d < c.whole->rank; d++)
    whole_at =
        lw_add(f, whole_at, lw_mul_const(f, start[d], c.whole_stride[d]));
  window(&c, whole_at, update_at);
  lw_if_end(f, &fits);
  lw_loop_end(f, &l);
  return f->error;
}

/* ---- select-and-scatter ---- */

typedef struct {
  lw_fn *f;
  const lw_inst *inst;
  const lw_window *w;
  const lw_shape *in, *src;
  int64_t in_stride[LW_MAX_RANK];
  LLVMValueRef out, chosen; /* chosen: slot of the element number or -1 */
  lw_slot current;
} chooser;

static void fill(lw_fn *f, const lw_stage *s, LLVMValueRef out) {
  const lw_shape *shape = s->shapes[0];
  lw_cgval init = lw_emit_value(f, lw_value_operand(s->inst, 2), NULL).v;
  lw_loop l =
      lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, shape->elements), 1, "fill");
  lw_store(f, init, lw_at(f, out, l.iv, lw_prim_bytes(shape->type)), 1, NULL);
  lw_loop_end(f, &l);
}

/* One window element: the new candidate replaces the current one when there is
 * none or select(current, new) is false. */
static void candidate(chooser *c, LLVMValueRef at) {
  lw_fn *f = c->f;
  lw_cgval x = element(f, lw_value_operand(c->inst, 0), at, 1, NULL), keep;
  lw_cgval args[2] = {lw_slot_get(f, &c->current), x};
  lw_emit_comp(f, lw_inst_comp(c->inst, LW_ATTR_SELECT), args, 1, &keep);
  LLVMValueRef old = LLVMBuildLoad2(f->b, f->em->i64, c->chosen, "");
  LLVMValueRef any = LLVMBuildICmp(f->b, LLVMIntSGE, old, lw_i64(f, 0), "");
  LLVMValueRef stay = LLVMBuildAnd(f->b, any, keep.re, "");
  LLVMBuildStore(f->b, LLVMBuildSelect(f->b, stay, old, at, ""), c->chosen);
  lw_slot_set(f, &c->current,
              lw_cg_select(f, stay, args[0], lw_cg_as(f, x, c->current.rep)));
}

/* All window elements of source element o, in row-major window order. */
static void choose(chooser *c, const LLVMValueRef *o) {
  lw_fn *f = c->f;
  lw_loop loops[LW_MAX_RANK];
  LLVMValueRef at = lw_i64(f, 0), inside = LLVMConstInt(f->em->i1, 1, 0);
  for (int32_t d = 0; d < c->w->rank; d++)
    loops[d] =
        lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, c->w->dims[d].size), 1, "win");
  for (int32_t d = 0; d < c->w->rank; d++) {
    const lw_window_dim *w = &c->w->dims[d];
    LLVMValueRef k = loops[d].iv, zero = lw_i64(f, 0);
    if (w->reversed) k = LLVMBuildSub(f->b, lw_i64(f, w->size - 1), k, "");
    LLVMValueRef p = lw_add(f, lw_mul_const(f, o[d], w->stride),
                            lw_mul_const(f, k, w->rhs_dilation));
    p = LLVMBuildSub(f->b, p, lw_i64(f, w->pad_lo), "");
    LLVMValueRef end = lw_i64(f, (c->in->dims[d] - 1) * w->lhs_dilation + 1);
    LLVMValueRef ok =
        LLVMBuildAnd(f->b, LLVMBuildICmp(f->b, LLVMIntSGE, p, zero, ""),
                     LLVMBuildICmp(f->b, LLVMIntSLT, p, end, ""), "");
    if (w->lhs_dilation > 1) {
      LLVMValueRef by = lw_i64(f, w->lhs_dilation);
      LLVMValueRef hole = LLVMBuildSRem(f->b, p, by, "");
      ok = LLVMBuildAnd(f->b, ok,
                        LLVMBuildICmp(f->b, LLVMIntEQ, hole, zero, ""), "");
      p = LLVMBuildSDiv(f->b, p, by, "");
    }
    inside = LLVMBuildAnd(f->b, inside, ok, "");
    at = lw_add(f, at, lw_mul_const(f, p, c->in_stride[d]));
  }
  lw_if in = lw_if_begin(f, inside);
  candidate(c, at);
  lw_if_end(f, &in);
  for (int32_t d = c->w->rank - 1; d >= 0; d--) lw_loop_end(f, &loops[d]);
}

lw_status lw_emit_select_scatter_stage(lw_fn *f, const lw_stage *s) {
  chooser c = {.f = f, .inst = s->inst, .w = lw_inst_window(s->inst)};
  c.in = lw_value_shape(lw_value_operand(s->inst, 0));
  c.src = lw_value_shape(lw_value_operand(s->inst, 1));
  lw_shape_strides(c.in, c.in_stride);
  c.out = lw_dest_base(f, s, 0);
  int old = lw_width(f, 1);
  fill(f, s, c.out);
  if (c.src->elements && c.in->elements) {
    int64_t bytes = lw_prim_bytes(c.in->type);
    c.chosen = lw_local(f, f->em->i64, "chosen");
    c.current = lw_slot_new(f, c.in->type, 1);
    LLVMValueRef o[LW_MAX_RANK];
    lw_loop l =
        lw_loop_begin(f, lw_i64(f, 0), lw_i64(f, c.src->elements), 1, "src");
    LLVMValueRef rest = l.iv;
    for (int32_t d = c.src->rank - 1; d >= 0; d--) {
      o[d] = LLVMBuildURem(f->b, rest, lw_i64(f, c.src->dims[d]), "");
      rest = LLVMBuildUDiv(f->b, rest, lw_i64(f, c.src->dims[d]), "");
    }
    LLVMBuildStore(f->b, lw_i64(f, -1), c.chosen);
    lw_cgval first =
        element(f, lw_value_operand(s->inst, 0), lw_i64(f, 0), 1, NULL);
    lw_slot_set(f, &c.current, lw_cg_as(f, first, c.current.rep));
    choose(&c, o);
    LLVMValueRef at = LLVMBuildLoad2(f->b, f->em->i64, c.chosen, "");
    lw_if any =
        lw_if_begin(f, LLVMBuildICmp(f->b, LLVMIntSGE, at, lw_i64(f, 0), ""));
    LLVMValueRef p = lw_at(f, c.out, at, bytes);
    lw_cgval args[2] = {lw_load(f, c.in->type, p, 1, NULL),
                        element(f, lw_value_operand(s->inst, 1), l.iv, 1,
                                NULL)},
             r;
    lw_emit_comp(f, lw_inst_comp(s->inst, LW_ATTR_SCATTER), args, 1, &r);
    lw_store(f, r, p, 1, NULL);
    lw_if_end(f, &any);
    lw_loop_end(f, &l);
  }
  lw_width(f, old);
  return f->error;
}
