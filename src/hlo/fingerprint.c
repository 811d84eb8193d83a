/* Three hashes an instruction:
 *   local  opcode, shape, attributes, called computations' fingerprints
 *   up     local and the ups of operands (in order) and control predecessors
 *   down   local and, over its uses, the users' downs and slots
 * A computation's fingerprint is the root's up and the sum over instructions of
 * mix(up, down). The sum makes it independent of the order of definition, sees
 * dead code, and tells two equal instructions from one used twice; down tells
 * apart who uses which copy. Callees are hashed before callers.
 *
 * What an attribute's absence means and the same thing written out hash alike,
 * since text, protos and passes write defaults differently. */
#include "hlo/fingerprint.h"

#include <string.h>

#include "hlo/infer.h"

struct lw_fp {
  const lw_module *m;
  unsigned levels;
  uint64_t *local, *up, *down; /* by instruction id */
  uint64_t *comp;              /* by computation id */
  uint64_t module;
  lw_map shapes; /* lw_shape* -> hash */
};

static uint64_t hash_str(const char *s, uint64_t h) {
  return s ? lw_hash_bytes(s, strlen(s), h) : lw_hash_mix(h, 17);
}

/* Text forms, where blanks say nothing. */
static uint64_t hash_text(const char *s, uint64_t h) {
  uint64_t n = 0;
  for (; s && *s; s++)
    if (*s != ' ') {
      h = lw_hash_mix(h, (unsigned char)*s);
      n++;
    }
  return lw_hash_mix(h, n);
}

static uint64_t hash_i64s(const int64_t *v, int64_t n, uint64_t h) {
  h = lw_hash_mix(h, (uint64_t)n);
  return n ? lw_hash_bytes(v, (size_t)n * sizeof *v, h) : h;
}

/* ---- shapes ---- */

static uint64_t hash_shape(lw_fp *f, const lw_shape *s);

static uint64_t hash_layout(lw_fp *f, const lw_layout *l) {
  if (!l) return 3;
  uint64_t h = hash_i64s(l->minor_to_major, l->rank, 5);
  for (int32_t i = 0; i < l->n_tiles; i++)
    h = hash_i64s(l->tiles[i].dims, l->tiles[i].rank, h);
  if (l->n_levels) h = hash_str(l->dim_levels, h);
  h = lw_hash_mix(h, (uint64_t)l->index_type << 8 | (uint64_t)l->pointer_type);
  h = lw_hash_mix(h, (uint64_t)l->tail_padding_elements);
  h = lw_hash_mix(h, (uint64_t)l->element_size_bits);
  h = lw_hash_mix(h, (uint64_t)l->memory_space);
  for (int32_t i = 0; i < l->n_splits; i++)
    h = hash_i64s(l->splits[i].indices, l->splits[i].n,
                  lw_hash_mix(h, (uint64_t)l->splits[i].dim));
  if (l->physical_shape) h = lw_hash_mix(h, hash_shape(f, l->physical_shape));
  return lw_hash_mix(h, (uint64_t)l->metadata_prefix_bytes);
}

static uint64_t hash_shape(lw_fp *f, const lw_shape *s) {
  if (!s) return 1;
  if (!(f->levels & LW_FP_LAYOUT) && s->no_layout) s = s->no_layout;
  uint64_t *known = lw_map_get(&f->shapes, (uintptr_t)s);
  if (known) return *known;
  uint64_t h = lw_hash_mix(11, (uint64_t)s->type);
  h = hash_i64s(s->dims, s->rank, h);
  for (int32_t i = 0; s->dynamic && i < s->rank; i++)
    h = lw_hash_mix(h, s->dynamic[i]);
  if (f->levels & LW_FP_LAYOUT && lw_shape_is_array(s))
    h = lw_hash_mix(h, hash_layout(f, s->layout));
  for (int32_t i = 0; i < s->n_elems; i++)
    h = lw_hash_mix(h, hash_shape(f, s->elems[i]));
  *lw_map_put(&f->shapes, (uintptr_t)s) = h;
  return h;
}

/* ---- shardings ---- */

static uint64_t hash_sharding(const lw_sharding *s, int depth) {
  uint64_t h = lw_hash_mix(23, (uint64_t)s->type);
  if (depth > 200) return h;
  for (int32_t i = 0; i < s->n_elems; i++)
    h = lw_hash_mix(h, hash_sharding(s->elems[i], depth + 1));
  h = lw_hash_mix(h, (uint64_t)s->maximal_device);
  h = hash_i64s(s->tile_dims, s->n_tile_dims, h);
  h = hash_i64s(s->devices, s->n_devices, h);
  h = hash_i64s(s->iota_dims, s->n_iota_dims, h);
  for (int32_t i = 0; s->iota_perm && i < s->n_iota_dims; i++)
    h = lw_hash_mix(h, (uint64_t)s->iota_perm[i]);
  h = lw_hash_mix(h, s->replicate_on_last_tile_dim);
  for (int32_t i = 0; i < s->n_last_tile_types; i++)
    h = lw_hash_mix(h, (uint64_t)s->last_tile_types[i]);
  h = lw_hash_mix(h, (uint64_t)s->group << 32 ^ (uint64_t)s->group_id);
  return s->named_text ? hash_text(s->named_text, h) : h;
}

/* ---- attributes ---- */

static bool all_zero(const lw_attr *a) {
  for (int32_t k = 0; k < a->u.list.n; k++)
    if (a->u.list.v[k]) return false;
  return true;
}

/* Says the same as not being there. */
static bool is_default(const lw_inst *i, const lw_attr *a) {
  switch ((int)a->id) {
    case LW_ATTR_ORIGIN:
    case LW_ATTR_STATISTICS:
      return true;
    case LW_ATTR_FEATURE_GROUP_COUNT:
    case LW_ATTR_BATCH_GROUP_COUNT:
      return a->u.i == 1;
    case LW_ATTR_API_VERSION:
      return a->u.i <= 1;
    case LW_ATTR_COMPARE_TYPE:
      return a->u.i == (int64_t)lw_default_compare_type(i) ||
             a->u.i == LW_CT_NONE;
    case LW_ATTR_REPLICA_GROUPS:
      return a->u.groups->kind == LW_RG_LISTS && !a->u.groups->n_groups;
    case LW_ATTR_WINDOW:
      return a->u.window->rank == 0;
    case LW_ATTR_OPERAND_PRECISION:
      return all_zero(a);
    default:
      break;
  }
  lw_attr_kind k = lw_attr_table[a->id].kind;
  if (k == LW_AK_I64S || k == LW_AK_BOOLS) return a->u.list.n == 0;
  if (k == LW_AK_ALIASING) return a->u.aliasing.n == 0;
  return a->u.i == 0 &&
         (k == LW_AK_BOOL || (k >= LW_AK_CMP_DIR && k < LW_AK_ENUMS_PRECISION));
}

static uint64_t hash_window(const lw_window *w) {
  uint64_t h = 29;
  for (int32_t i = 0; i < w->rank; i++) {
    const lw_window_dim *d = &w->dims[i];
    int64_t v[7] = {d->size,         d->stride,       d->pad_lo,  d->pad_hi,
                    d->lhs_dilation, d->rhs_dilation, d->reversed};
    h = hash_i64s(v, 7, h);
  }
  return h;
}

static uint64_t hash_dim_labels(const lw_dim_labels *l) {
  int64_t v[6] = {l->input_batch,          l->input_feature,
                  l->kernel_input_feature, l->kernel_output_feature,
                  l->output_batch,         l->output_feature};
  uint64_t h = hash_i64s(v, 6, 31);
  h = hash_i64s(l->input_spatial, l->n_spatial, h);
  h = hash_i64s(l->kernel_spatial, l->n_spatial, h);
  return hash_i64s(l->output_spatial, l->n_spatial, h);
}

static uint64_t hash_aliasing(const lw_attr *a) {
  uint64_t h = 37;
  for (int32_t i = 0; i < a->u.aliasing.n; i++) {
    const lw_alias *al = &a->u.aliasing.v[i];
    h = hash_i64s(al->output_index, al->n_output_index, h);
    h = hash_i64s(al->operand_index, al->n_operand_index, h);
    h = lw_hash_mix(h, (uint64_t)al->operand);
  }
  return h;
}

static uint64_t hash_groups(const lw_replica_groups *g) {
  uint64_t h = lw_hash_mix(41, (uint64_t)g->kind);
  if (g->kind == LW_RG_MESH) return hash_text(g->mesh_text, h);
  if (g->kind == LW_RG_IOTA) {
    h = lw_hash_mix(h, (uint64_t)g->iota_groups);
    h = lw_hash_mix(h, (uint64_t)g->iota_group_size);
    h = hash_i64s(g->reshape_dims, g->n_reshape, h);
    for (int32_t i = 0; g->transpose_perm && i < g->n_reshape; i++)
      h = lw_hash_mix(h, (uint64_t)g->transpose_perm[i]);
    return h;
  }
  const int64_t *ids = g->ids;
  for (int32_t i = 0; i < g->n_groups; ids += g->group_sizes[i++])
    h = hash_i64s(ids, g->group_sizes[i], h);
  return h;
}

static uint64_t comp_hash(const lw_fp *f, const lw_comp *c) {
  return c ? f->comp[c->id] : 43;
}

static uint64_t hash_comps(const lw_fp *f, const lw_attr *a) {
  uint64_t h = 47;
  for (int32_t i = 0; i < a->u.comps.n; i++)
    h = lw_hash_mix(h, comp_hash(f, a->u.comps.v[i]));
  return h;
}

static uint64_t hash_literal(lw_fp *f, const lw_literal *l) {
  uint64_t h = hash_shape(f, l->shape);
  return f->levels & LW_FP_CONSTANTS ? lw_literal_hash(l, h) : h;
}

static uint64_t hash_attr_value(lw_fp *f, const lw_attr *a) {
  switch (lw_attr_table[a->id].kind) {
    case LW_AK_F64: { /* protos keep a float */
      float v = (float)a->u.f;
      return lw_hash_bytes(&v, sizeof v, 53);
    }
    case LW_AK_STR:
    case LW_AK_STR_BARE:
      return hash_str(a->u.s, 59);
    case LW_AK_RAW:
    case LW_AK_SLICE_SIZES_LIST:
      return hash_text(a->u.s, 59);
    case LW_AK_I64S:
    case LW_AK_BOOLS:
    case LW_AK_SLICE:
    case LW_AK_PADDING:
    case LW_AK_PAIRS:
    case LW_AK_ENUMS_PRECISION:
      return hash_i64s(a->u.list.v, a->u.list.n, 61);
    case LW_AK_WINDOW:
      return hash_window(a->u.window);
    case LW_AK_DIM_LABELS:
      return hash_dim_labels(a->u.dim_labels);
    case LW_AK_COMP: /* as a list of one: custom-call has both forms */
      return lw_hash_mix(47, comp_hash(f, a->u.comp));
    case LW_AK_COMPS:
      return hash_comps(f, a);
    case LW_AK_ALIASING:
      return hash_aliasing(a);
    case LW_AK_SHAPE:
      return hash_shape(f, a->u.shape);
    case LW_AK_SHAPES: {
      uint64_t h = 67;
      for (int32_t i = 0; i < a->u.shapes.n; i++)
        h = lw_hash_mix(h, hash_shape(f, a->u.shapes.v[i]));
      return h;
    }
    case LW_AK_LITERAL:
      return hash_literal(f, a->u.literal);
    case LW_AK_REPLICA_GROUPS:
      return hash_groups(a->u.groups);
    case LW_AK_I64:
    case LW_AK_BOOL:
    case LW_AK_CMP_DIR:
    case LW_AK_ENUM_COMPARE_TYPE:
    case LW_AK_ENUM_FUSION_KIND:
    case LW_AK_ENUM_FFT_TYPE:
    case LW_AK_ENUM_TRANSPOSE:
    case LW_AK_ENUM_DISTRIBUTION:
    case LW_AK_ENUM_RNG_ALGORITHM:
    case LW_AK_ENUM_API_VERSION:
    case LW_AK_ENUM_CUSTOM_CALL_SCHEDULE:
    case LW_AK_ENUM_PADDING_TYPE:
    case LW_AK_ENUM_TRISTATE:
      return (uint64_t)a->u.i;
  }
  return 0;
}

/* A sum, since the order of attributes says nothing. */
static uint64_t hash_attrs(lw_fp *f, const lw_inst *i) {
  uint64_t sum = 0;
  for (int32_t k = 0; k < i->n_attrs; k++) {
    const lw_attr *a = &i->attrs[k];
    if (is_default(i, a)) continue;
    if (a->id == LW_ATTR_PARAMETER_REPLICATION && !(f->levels & LW_FP_SHARDING))
      continue;
    lw_attr_id id = a->id;
    if (i->opcode == LW_OP_CUSTOM_CALL && id == LW_ATTR_TO_APPLY)
      id = LW_ATTR_CALLED_COMPUTATIONS;
    sum += lw_hash_mix(hash_attr_value(f, a),
                       hash_str(lw_attr_table[id].name, id));
  }
  return sum;
}

static uint64_t hash_frontend(const lw_frontend_attrs *a) {
  uint64_t h = 71;
  for (int32_t i = 0; i < a->n; i++)
    h = hash_str(a->v[i].value, hash_str(a->v[i].key, h));
  return h;
}

static uint64_t hash_local(lw_fp *f, const lw_inst *i) {
  uint64_t h = hash_str(lw_opcode_name(i->opcode), 73);
  h = lw_hash_mix(h, hash_shape(f, i->shape));
  h = lw_hash_mix(h, hash_attrs(f, i));
  if (f->levels & LW_FP_SHARDING && i->sharding)
    h = lw_hash_mix(h, hash_sharding(i->sharding, 0));
  if (f->levels & LW_FP_BACKEND_CONFIG) {
    if (i->backend_config && *i->backend_config)
      h = hash_str(i->backend_config, h);
    if (i->frontend_attrs.n)
      h = lw_hash_mix(h, hash_frontend(&i->frontend_attrs));
  }
  return h;
}

/* ---- computations ---- */

static void hash_up(lw_fp *f, const lw_inst *i) {
  uint64_t h = lw_hash_mix(f->local[i->id], (uint64_t)i->n_operands);
  for (int32_t k = 0; k < i->n_operands; k++) {
    const lw_inst *d = i->operands[k].def;
    h = lw_hash_mix(h, d ? f->up[d->id] : 79);
  }
  uint64_t preds = 0;
  for (int32_t k = 0; k < i->n_control_preds; k++)
    preds += lw_hash_mix(83, f->up[i->control_preds[k]->id]);
  f->up[i->id] = preds ? lw_hash_mix(h, preds) : h;
}

static void hash_down(lw_fp *f, const lw_inst *i) {
  uint64_t sum = 0;
  for (const lw_use *u = i->uses; u; u = u->next)
    sum += lw_hash_mix(f->down[u->user->id] ^ f->up[u->user->id],
                       (uint64_t)u->slot);
  if (lw_inst_is_root(i)) sum += 89;
  f->down[i->id] = lw_hash_mix(f->local[i->id], sum);
}

static void hash_comp(lw_fp *f, const lw_comp *c, lw_arena *scratch) {
  int32_t n;
  lw_inst **order = lw_comp_post_order(c, scratch, &n);
  for (int32_t k = 0; k < n; k++) {
    f->local[order[k]->id] = hash_local(f, order[k]);
    hash_up(f, order[k]);
  }
  uint64_t sum = 0;
  for (int32_t k = n - 1; k >= 0; k--) {
    const lw_inst *i = order[k];
    hash_down(f, i);
    sum += lw_hash_mix(f->up[i->id], f->down[i->id]);
  }
  uint64_t h = lw_hash_mix(c->root ? f->up[c->root->id] : 97, sum);
  if (f->m->is_scheduled)
    for (const lw_inst *i = c->first; i; i = i->next)
      h = lw_hash_mix(h, f->up[i->id]);
  if (c->execution_thread) h = hash_str(c->execution_thread, h);
  f->comp[c->id] = h;
}

static uint64_t hash_module_header(lw_fp *f) {
  const lw_module *m = f->m;
  uint64_t h = lw_hash_mix(101, m->is_scheduled), sum = 0;
  for (int32_t i = 0; i < m->n_aliases; i++) {
    const lw_io_alias *a = &m->aliases[i];
    uint64_t v = hash_i64s(a->output_index, a->n_output_index, 103);
    v = hash_i64s(a->param_index, a->n_param_index, v);
    sum += lw_hash_mix(v, (uint64_t)a->param << 1 | a->must_alias);
  }
  for (int32_t i = 0; i < m->n_donors; i++)
    sum += lw_hash_mix(hash_i64s(m->donors[i].index, m->donors[i].n_index, 107),
                       (uint64_t)m->donors[i].param);
  h = lw_hash_mix(h, sum);
  if (f->levels & LW_FP_LAYOUT && m->entry_result) {
    h = lw_hash_mix(h, hash_shape(f, m->entry_result));
    for (int32_t i = 0; i < m->n_entry_params; i++)
      h = lw_hash_mix(h, hash_shape(f, m->entry_params[i]));
  }
  if (f->levels & LW_FP_BACKEND_CONFIG && m->frontend_attrs.n)
    h = lw_hash_mix(h, hash_frontend(&m->frontend_attrs));
  return h;
}

/* ---- the table ---- */

lw_fp *lw_fp_new(const lw_module *m, unsigned levels) {
  lw_fp *f = calloc(1, sizeof *f);
  if (!f) lw_oom(sizeof *f);
  f->m = m;
  f->levels = levels;
  size_t n = (size_t)m->n_inst_ids + 1;
  f->local = calloc(3 * n, sizeof *f->local);
  f->comp = calloc((size_t)m->n_comp_ids + 1, sizeof *f->comp);
  if (!f->local || !f->comp) lw_oom(3 * n * sizeof *f->local);
  f->up = f->local + n;
  f->down = f->up + n;
  lw_arena *scratch = lw_arena_new();
  int32_t n_comps;
  lw_comp **order = lw_module_post_order(m, scratch, &n_comps, false);
  uint64_t sum = 0;
  for (int32_t k = 0; k < n_comps; k++) {
    hash_comp(f, order[k], scratch);
    sum += lw_hash_mix(109, f->comp[order[k]->id]);
  }
  f->module = lw_hash_mix(hash_module_header(f), sum);
  f->module = lw_hash_mix(f->module, comp_hash(f, m->entry));
  lw_arena_free(scratch);
  return f;
}

void lw_fp_free(lw_fp *f) {
  if (!f) return;
  free(f->local);
  free(f->comp);
  lw_map_free(&f->shapes);
  free(f);
}

uint64_t lw_fp_module(const lw_fp *f) { return f->module; }
uint64_t lw_fp_comp(const lw_fp *f, const lw_comp *c) { return f->comp[c->id]; }
uint64_t lw_fp_inst(const lw_fp *f, const lw_inst *i) { return f->up[i->id]; }
uint64_t lw_fp_local(const lw_fp *f, const lw_inst *i) {
  return f->local[i->id];
}

uint64_t lw_module_fingerprint(const lw_module *m, unsigned levels) {
  lw_fp *f = lw_fp_new(m, levels);
  uint64_t h = f->module;
  lw_fp_free(f);
  return h;
}

uint64_t lw_inst_fingerprint(const lw_inst *i, unsigned levels) {
  lw_fp *f = lw_fp_new(i->parent->module, levels);
  uint64_t h = lw_fp_inst(f, i);
  lw_fp_free(f);
  return h;
}

uint64_t lw_shape_fingerprint(const lw_shape *s, unsigned levels) {
  lw_fp f = {.levels = levels};
  uint64_t h = hash_shape(&f, s);
  lw_map_free(&f.shapes);
  return h;
}
