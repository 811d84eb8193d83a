/* What spans a module: entry, entry layout, aliasing, donors, schedule; and
 * shardings, which speak of the devices it runs on. */
#include <string.h>

#include "hlo/check_impl.h"
#include "hlo/infer.h"

/* ---- shardings ---- */

enum { MAX_LEAVES = 1 << 20 };

/* Leaves of a shape, counted no further than limit (shared tuples may have more
 * than there are atoms). */
static int64_t count_leaves(const lw_shape *s, int64_t limit) {
  if (!lw_shape_is_tuple(s) || limit <= 0) return 1;
  int64_t n = 0;
  for (int32_t k = 0; k < s->n_elems && n <= limit; k++)
    n += count_leaves(s->elems[k], limit - n);
  return n;
}

static bool product(const int64_t *v, int32_t n, int64_t *out) {
  *out = 1;
  for (int32_t k = 0; k < n; k++)
    if (v[k] < 1 || __builtin_mul_overflow(*out, v[k], out)) return false;
  return true;
}

static void check_devices(check *c, const lw_inst *i, const lw_sharding *s,
                          int64_t n) {
  if (n != s->n_devices) {
    check_inst_error(c, i, "its sharding tiles over %lld devices, but lists %d",
                     (long long)n, s->n_devices);
    return;
  }
  lw_map seen = {0};
  for (int32_t k = 0; k < s->n_devices; k++) {
    uint64_t *slot = lw_map_put(&seen, (uint64_t)s->devices[k]);
    if (*slot || s->devices[k] < 0)
      check_inst_error(c, i, "its sharding names device %lld %s",
                       (long long)s->devices[k],
                       *slot ? "twice" : "(negative)");
    *slot = 1;
  }
  lw_map_free(&seen);
}

static void check_tiled(check *c, const lw_inst *i, const lw_sharding *s,
                        const lw_shape *shape) {
  int64_t n, iota;
  if (!product(s->tile_dims, s->n_tile_dims, &n)) {
    check_inst_error(c, i,
                     "its sharding has a tile count below 1 or too many "
                     "devices");
    return;
  }
  int32_t extra =
      s->n_last_tile_types + (s->replicate_on_last_tile_dim ? 1 : 0);
  if (lw_shape_is_array(shape) && s->n_tile_dims - extra != shape->rank)
    check_inst_error(c, i, "its sharding tiles %d dimensions, but %s has %d",
                     s->n_tile_dims - extra, lw_infer_shape_str(c->ctx, shape),
                     shape->rank);
  if (s->n_devices)
    check_devices(c, i, s, n);
  else if (!product(s->iota_dims, s->n_iota_dims, &iota) || iota != n)
    check_inst_error(c, i,
                     "its sharding tiles over %lld devices, but numbers "
                     "another count",
                     (long long)n);
}

static void check_one_sharding(check *c, const lw_inst *i, const lw_sharding *s,
                               const lw_shape *shape) {
  if (s->type == LW_SH_MAXIMAL && s->maximal_device < 0)
    check_inst_error(c, i, "its sharding names device %lld",
                     (long long)s->maximal_device);
  if (s->type == LW_SH_TILED) check_tiled(c, i, s, shape);
}

/* The leaves of shape against the elements, in order. */
static void check_leaves(check *c, const lw_inst *i, const lw_sharding *s,
                         const lw_shape *shape, int32_t *at) {
  if (!lw_shape_is_tuple(shape)) {
    if (*at < s->n_elems) check_one_sharding(c, i, s->elems[(*at)++], shape);
    return;
  }
  for (int32_t k = 0; k < shape->n_elems && *at < s->n_elems; k++)
    check_leaves(c, i, s, shape->elems[k], at);
}

void check_sharding(check *c, const lw_inst *i) {
  const lw_sharding *s = i->sharding;
  if (s->type != LW_SH_TUPLE) {
    if (!lw_shape_is_tuple(i->shape)) check_one_sharding(c, i, s, i->shape);
    return;
  }
  int64_t leaves = count_leaves(i->shape, MAX_LEAVES);
  bool empty = lw_shape_is_tuple(i->shape) && !leaves && s->n_elems == 1;
  if (!lw_shape_is_tuple(i->shape) && i->opcode != LW_OP_OUTFEED)
    check_inst_error(c, i, "has the sharding of a tuple, but the shape %s",
                     lw_infer_shape_str(c->ctx, i->shape));
  else if (leaves != s->n_elems && !empty && i->opcode != LW_OP_OUTFEED)
    check_inst_error(c, i,
                     "its sharding has %d elements for %lld leaves of the "
                     "shape",
                     s->n_elems, (long long)leaves);
  int32_t at = 0;
  check_leaves(c, i, s, i->shape, &at);
}

/* ---- the header ---- */

static const lw_inst *entry_param(const lw_module *m, int64_t k) {
  return k >= 0 && k < (int64_t)m->entry->params.len ? m->entry->params.data[k]
                                                     : NULL;
}

static void check_entry_layout(check *c) {
  const lw_module *m = c->m;
  const lw_comp *e = m->entry;
  if (!m->entry_result) return;
  if ((size_t)m->n_entry_params != e->params.len) {
    check_module_error(c,
                       "entry_computation_layout has %d parameters, the "
                       "entry %s has %zu",
                       m->n_entry_params, e->name, e->params.len);
    return;
  }
  for (int32_t k = 0; k < m->n_entry_params; k++) {
    const lw_inst *p = entry_param(m, k);
    if (p && p->shape && !lw_shape_compatible(p->shape, m->entry_params[k]))
      check_inst_error(c, p, "is %s, but entry_computation_layout says %s",
                       lw_infer_shape_str(c->ctx, p->shape),
                       lw_infer_shape_str(c->ctx, m->entry_params[k]));
  }
  if (e->root && e->root->shape &&
      !lw_shape_compatible(e->root->shape, m->entry_result))
    check_inst_error(c, e->root,
                     "is %s, but entry_computation_layout says the "
                     "result is %s",
                     lw_infer_shape_str(c->ctx, e->root->shape),
                     lw_infer_shape_str(c->ctx, m->entry_result));
}

static const lw_shape *param_part(check *c, int64_t param, const int64_t *index,
                                  int32_t n, const char *what) {
  const lw_inst *p = entry_param(c->m, param);
  if (!p || !p->shape) {
    check_module_error(c, "%s names parameter %lld; the entry has %zu", what,
                       (long long)param, c->m->entry->params.len);
    return NULL;
  }
  const lw_shape *s = check_subshape(p->shape, index, n);
  if (!s)
    check_module_error(c, "%s names a part of parameter %lld that is not there",
                       what, (long long)param);
  return s;
}

static uint64_t index_key(uint64_t seed, const int64_t *v, int32_t n) {
  uint64_t h = lw_hash_mix(seed, (uint64_t)n);
  return n ? lw_hash_bytes(v, (size_t)n * sizeof *v, h) : h;
}

static void check_aliases(check *c, lw_map *params) {
  const lw_module *m = c->m;
  lw_map outputs = {0};
  for (int32_t k = 0; k < m->n_aliases; k++) {
    const lw_io_alias *a = &m->aliases[k];
    const lw_shape *in = param_part(c, a->param, a->param_index,
                                    a->n_param_index, "input_output_alias");
    const lw_shape *out =
        m->entry->root && m->entry->root->shape
            ? check_subshape(m->entry->root->shape, a->output_index,
                             a->n_output_index)
            : NULL;
    if (!out)
      check_module_error(c,
                         "input_output_alias names an output that is not "
                         "there");
    if (in && out && lw_shape_is_array(in) && lw_shape_is_array(out) &&
        lw_shape_bytes(in) != lw_shape_bytes(out))
      check_module_error(c,
                         "input_output_alias pairs %s with %s, which differ "
                         "in size",
                         lw_infer_shape_str(c->ctx, in),
                         lw_infer_shape_str(c->ctx, out));
    uint64_t *o =
        lw_map_put(&outputs, index_key(1, a->output_index, a->n_output_index));
    uint64_t *p = lw_map_put(
        params,
        index_key((uint64_t)a->param + 2, a->param_index, a->n_param_index));
    if (*o) check_module_error(c, "an output is aliased twice");
    if (*p)
      check_module_error(c, "parameter %lld is aliased twice",
                         (long long)a->param);
    *o = *p = 1;
  }
  lw_map_free(&outputs);
}

static void check_donors(check *c, const lw_map *aliased) {
  const lw_module *m = c->m;
  for (int32_t k = 0; k < m->n_donors; k++) {
    const lw_donor *d = &m->donors[k];
    if (!param_part(c, d->param, d->index, d->n_index, "buffer_donor"))
      continue;
    if (lw_map_get(aliased,
                   index_key((uint64_t)d->param + 2, d->index, d->n_index)))
      check_module_error(c, "parameter %lld is donated and aliased; drop one",
                         (long long)d->param);
  }
}

void check_header(check *c) {
  const lw_module *m = c->m;
  if (!m->entry) {
    check_module_error(c,
                       "the module has no entry computation; mark one "
                       "ENTRY");
    return;
  }
  if (!lw_map_get(&c->is_comp, (uintptr_t)m->entry))
    check_module_error(c, "the entry computation is not in the module");
  if (m->entry->execution_thread && strcmp(m->entry->execution_thread, "main"))
    check_comp_error(c, m->entry, "the entry must run on the main thread");
  check_entry_layout(c);
  lw_map aliased = {0};
  check_aliases(c, &aliased);
  check_donors(c, &aliased);
  lw_map_free(&aliased);
}

/* ---- channels ---- */

/* Host transfers that share a channel must do the same. */
static void check_host_transfer(check *c, const lw_inst *i, lw_map *first) {
  int64_t channel = lw_inst_i64(i, LW_ATTR_CHANNEL_ID, 0);
  if (channel <= 0 || !lw_inst_i64(i, LW_ATTR_IS_HOST_TRANSFER, 0)) return;
  uint64_t *slot = lw_map_put(first, (uint64_t)channel);
  const lw_inst *other = (const lw_inst *)(uintptr_t)*slot;
  if (!other)
    *slot = (uintptr_t)i;
  else if (other->opcode != i->opcode || other->shape != i->shape)
    check_inst_error(c, i,
                     "shares channel %lld with %s, which transfers "
                     "something else",
                     (long long)channel, other->name);
}

void check_channels(check *c) {
  lw_map first = {0};
  for (const lw_comp *k = c->m->first_comp; k; k = k->next)
    for (const lw_inst *i = k->first; i; i = i->next)
      if (i->opcode == LW_OP_SEND || i->opcode == LW_OP_RECV)
        check_host_transfer(c, i, &first);
  lw_map_free(&first);
}

/* ---- schedules ---- */

static void check_order(check *c, const lw_comp *k, uint8_t *seen) {
  for (const lw_inst *i = k->first; i; i = i->next) {
    for (int32_t o = 0; o < i->n_operands; o++) {
      const lw_inst *d = i->operands[o].def;
      if (d && d->parent == k && !seen[d->id])
        check_inst_error(c, i, "is scheduled before its operand %s", d->name);
    }
    for (int32_t p = 0; p < i->n_control_preds; p++) {
      const lw_inst *d = i->control_preds[p];
      if (d && d->parent == k && !seen[d->id])
        check_inst_error(c, i, "is scheduled before its control predecessor %s",
                         d->name);
    }
    seen[i->id] = 1;
  }
}

void check_schedules(check *c) {
  if (!c->m->is_scheduled) return;
  uint8_t *seen = calloc((size_t)c->m->n_inst_ids + 1, 1);
  if (!seen) lw_oom((size_t)c->m->n_inst_ids);
  for (const lw_comp *k = c->m->first_comp; k; k = k->next)
    if (!lw_map_get(&c->fusion_of, (uintptr_t)k)) check_order(c, k, seen);
  free(seen);
}
