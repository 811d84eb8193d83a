/* Kernels as text, and their fingerprints. */
#include "kernel/kernel_impl.h"

static const char *const stage_names[] = {
    "map",          "reduce",   "window",      "scan",        "dot",
    "conv",         "scatter",  "sel-scatter", "sort",        "topk",
    "update-slice", "rng-bits", "rng",         "reduce-part", "reduce-fold"};

static void print_dest(lw_buf *b, const lw_dest *d) {
  switch (d->kind) {
    case LW_DEST_OUTPUT:
      lw_buf_printf(b, "out#%d", d->buffer);
      return;
    case LW_DEST_KERNEL_SCRATCH:
      lw_buf_printf(b, "kernel#%d", d->buffer);
      return;
    case LW_DEST_THREAD_SCRATCH:
      lw_buf_printf(b, "tile+%lld", (long long)d->offset_bytes);
      return;
  }
}

static void print_stage(lw_buf *b, const lw_stage *s) {
  lw_buf_printf(b, "    %s%s %s ", s->group == 0 ? "& " : "",
                stage_names[s->kind], s->inst->name);
  for (int32_t r = 0; r < s->n_results; r++) {
    lw_shape_print(b, s->shapes[r]->no_layout, false);
    lw_buf_str(b, " -> ");
    print_dest(b, &s->dests[r]);
    lw_buf_str(b, r + 1 < s->n_results ? ", " : "");
  }
  for (int32_t c = 0; c < s->n_copies; c++)
    lw_buf_printf(b, " = out#%d", s->copies[c].buffer);
  if (s->in_place) lw_buf_str(b, " in-place");
  if (s->inner != s->domain->elements)
    lw_buf_printf(b, " inner=%lld", (long long)s->inner);
  if (s->strided) lw_buf_str(b, " strided");
  lw_buf_chr(b, '\n');
}

void lw_kernel_print(lw_buf *b, const lw_kernel *k) {
  lw_buf_printf(b, "kernel %s: %d params, %d outputs, %d scratch, %d consts\n",
                k->inst->name, k->n_params, k->n_outputs, k->n_scratch,
                k->n_consts);
  for (int32_t p = 0; p < k->n_phases; p++) {
    const lw_phase *ph = &k->phases[p];
    lw_buf_printf(b, "  phase %d: %s%lld points, grain %lld, %lld tiles", p,
                  ph->flat ? "flat " : "", (long long)ph->n_points,
                  (long long)ph->grain, (long long)ph->n_tiles);
    if (ph->thread_scratch_bytes)
      lw_buf_printf(b, ", tile %lld B", (long long)ph->thread_scratch_bytes);
    lw_buf_chr(b, '\n');
    for (int32_t s = 0; s < ph->n_stages; s++)
      print_stage(b, &k->stages[ph->first_stage + s]);
  }
  for (int32_t i = 0; i < k->n_params; i++)
    for (int32_t o = 0; o < k->n_outputs; o++)
      if (k->may_alias[i * k->n_outputs + o])
        lw_buf_printf(b, "  %s alias: param#%d = out#%d\n",
                      k->must_alias[i * k->n_outputs + o] ? "must" : "may", i,
                      k->n_params + o);
}

/* ---- fingerprint ---- */

static uint64_t hash_comp(uint64_t h, const lw_comp *c, lw_arena *a, int depth);

static uint64_t hash_shape(uint64_t h, const lw_shape *s) {
  h = lw_hash_mix(h, (uint64_t)s->type);
  h = lw_hash_mix(h, (uint64_t)s->rank);
  for (int32_t d = 0; d < s->rank; d++)
    h = lw_hash_mix(h, (uint64_t)s->dims[d]);
  if (s->layout && !lw_layout_is_descending(s->layout))
    for (int32_t d = 0; d < s->layout->rank; d++)
      h = lw_hash_mix(h, (uint64_t)s->layout->minor_to_major[d] + 1);
  for (int32_t e = 0; e < s->n_elems; e++) h = hash_shape(h, s->elems[e]);
  return h;
}

static uint64_t hash_str(uint64_t h, const char *s) {
  return s ? lw_hash_mix(h, lw_hash_bytes(s, strlen(s), 1)) : h;
}

static uint64_t hash_dim_labels(uint64_t h, const lw_dim_labels *l) {
  const int64_t v[] = {l->n_spatial,
                       l->input_batch,
                       l->input_feature,
                       l->kernel_input_feature,
                       l->kernel_output_feature,
                       l->output_batch,
                       l->output_feature};
  h = lw_hash_mix(h, lw_hash_bytes(v, sizeof v, 3));
  size_t n = (size_t)l->n_spatial * sizeof(int64_t);
  h = lw_hash_mix(h, lw_hash_bytes(l->input_spatial, n, 4));
  h = lw_hash_mix(h, lw_hash_bytes(l->kernel_spatial, n, 5));
  return lw_hash_mix(h, lw_hash_bytes(l->output_spatial, n, 6));
}

static uint64_t hash_attr(uint64_t h, const lw_attr *a, lw_arena *ar,
                          int depth) {
  h = lw_hash_mix(h, (uint64_t)a->id);
  switch ((int)lw_attr_table[a->id].kind) {
    case LW_AK_F64:
      return lw_hash_mix(h, lw_hash_bytes(&a->u.f, sizeof a->u.f, 2));
    case LW_AK_STR:
    case LW_AK_STR_BARE:
    case LW_AK_RAW:
    case LW_AK_SLICE_SIZES_LIST:
      return hash_str(h, a->u.s);
    case LW_AK_I64S:
    case LW_AK_BOOLS:
    case LW_AK_SLICE:
    case LW_AK_PADDING:
    case LW_AK_PAIRS:
    case LW_AK_ENUMS_PRECISION:
      for (int32_t i = 0; i < a->u.list.n; i++)
        h = lw_hash_mix(h, (uint64_t)a->u.list.v[i]);
      return lw_hash_mix(h, (uint64_t)a->u.list.n);
    case LW_AK_WINDOW:
      return lw_hash_mix(
          h,
          lw_hash_bytes(a->u.window->dims,
                        (size_t)a->u.window->rank * sizeof(lw_window_dim), 7));
    case LW_AK_DIM_LABELS:
      return hash_dim_labels(h, a->u.dim_labels);
    case LW_AK_COMP:
      return hash_comp(h, a->u.comp, ar, depth + 1);
    case LW_AK_COMPS:
      for (int32_t i = 0; i < a->u.comps.n; i++)
        h = hash_comp(h, a->u.comps.v[i], ar, depth + 1);
      return h;
    case LW_AK_LITERAL:
      return lw_literal_hash(a->u.literal, h);
    case LW_AK_SHAPE:
      return hash_shape(h, a->u.shape);
    case LW_AK_SHAPES:
    case LW_AK_ALIASING:
    case LW_AK_REPLICA_GROUPS:
      return h; /* of instructions that are never inside a kernel */
    default:
      return lw_hash_mix(h, (uint64_t)a->u.i);
  }
}

/* Big constants are data, not code: only their place counts. */
static bool is_data(const lw_inst *i) {
  return i->opcode == LW_OP_CONSTANT && lw_shape_is_array(i->shape) &&
         i->shape->elements > 1 && !lw_literal_is_uniform(lw_inst_literal(i));
}

static uint64_t hash_comp(uint64_t h, const lw_comp *c, lw_arena *a,
                          int depth) {
  if (depth > 16) return h;
  int32_t n;
  lw_inst **order = lw_comp_post_order(c, a, &n);
  lw_map pos = {0};
  for (int32_t i = 0; i < n; i++) {
    const lw_inst *x = order[i];
    *lw_map_put(&pos, (uint64_t)(uintptr_t)x) = (uint64_t)i + 1;
    h = hash_shape(lw_hash_mix(h, (uint64_t)x->opcode), x->shape);
    for (int32_t j = 0; j < x->n_operands; j++)
      h = lw_hash_mix(
          h, *lw_map_put(&pos, (uint64_t)(uintptr_t)lw_inst_operand(x, j)));
    for (int32_t j = 0; j < x->n_attrs && !is_data(x); j++)
      h = hash_attr(h, &x->attrs[j], a, depth);
  }
  h = lw_hash_mix(h, *lw_map_put(&pos, (uint64_t)(uintptr_t)c->root));
  lw_map_free(&pos);
  return h;
}

uint64_t lw_kernel_fingerprint(const lw_kernel *k) {
  lw_arena *a = lw_arena_new();
  uint64_t h = hash_comp(0x4c77u, k->body, a, 0);
  h = lw_hash_mix(h, (uint64_t)k->options.observe_nans << 1 |
                         (uint64_t)k->options.flush_denormals |
                         (uint64_t)k->options.fault << 2);
  for (int32_t p = 0; p < k->n_phases; p++) {
    const lw_phase *ph = &k->phases[p];
    h = lw_hash_mix(h, (uint64_t)ph->n_points);
    h = lw_hash_mix(h, (uint64_t)ph->grain);
    h = lw_hash_mix(h, (uint64_t)ph->n_stages);
  }
  for (int32_t s = 0; s < k->n_stages; s++) {
    const lw_stage *st = &k->stages[s];
    h = lw_hash_mix(h, (uint64_t)st->kind);
    h = lw_hash_mix(h, (uint64_t)st->inner);
    h = lw_hash_mix(h, (uint64_t)st->group);
    h = lw_hash_mix(h, (uint64_t)st->in_place);
    for (int32_t r = 0; r < st->n_results; r++) {
      h = lw_hash_mix(h, (uint64_t)st->dests[r].kind);
      h = lw_hash_mix(h, (uint64_t)st->dests[r].buffer);
      h = lw_hash_mix(h, (uint64_t)st->dests[r].offset_bytes);
    }
  }
  lw_arena_free(a);
  return h;
}
