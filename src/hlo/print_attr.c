/* Attributes, metadata, shardings in XLA's form. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/print.h"

/* ---- strings ---- */

/* absl::CEscape: printable ASCII stays, the rest is \n or octal. */
void lw_print_quoted(lw_buf *b, const char *s) {
  lw_buf_chr(b, '"');
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '\n')
      lw_buf_str(b, "\\n");
    else if (c == '\r')
      lw_buf_str(b, "\\r");
    else if (c == '\t')
      lw_buf_str(b, "\\t");
    else if (c == '"' || c == '\'' || c == '\\')
      lw_buf_printf(b, "\\%c", c);
    else if (c < 0x20 || c >= 0x7f)
      lw_buf_printf(b, "\\%03o", c);
    else
      lw_buf_chr(b, (char)c);
  }
  lw_buf_chr(b, '"');
}

/* The byte behind a double-quoted string, NULL when it does not end. */
static const char *behind_string(const char *s) {
  for (s++; *s; s++) {
    if (*s == '"') return s + 1;
    if (*s == '\\' && !*++s) break;
  }
  return NULL;
}

/* One pair of braces around everything, strings respected. */
static bool reads_as_braces(const char *s) {
  int64_t depth = 1;
  if (*s != '{') return false;
  for (s++; *s && depth;) {
    if (*s == '"') {
      s = behind_string(s);
      if (!s) return false;
      continue;
    }
    depth += *s == '{' ? 1 : *s == '}' ? -1 : 0;
    s++;
  }
  return depth == 0 && !*s;
}

void lw_print_config(lw_buf *b, const char *s) {
  if (reads_as_braces(s))
    lw_buf_str(b, s);
  else
    lw_print_quoted(b, s);
}

/* ---- lists ---- */

static void ints(lw_buf *b, int32_t n, const int64_t *v, const char *sep) {
  for (int32_t i = 0; i < n; i++) {
    if (i) lw_buf_str(b, sep);
    lw_buf_i64(b, v[i]);
  }
}

static void braced(lw_buf *b, int32_t n, const int64_t *v) {
  lw_buf_chr(b, '{');
  ints(b, n, v, ",");
  lw_buf_chr(b, '}');
}

/* [8]T(0) of an iota device order; one dimension needs no T. */
static void iota(lw_buf *b, int32_t n, const int64_t *dims,
                 const int32_t *perm) {
  lw_buf_chr(b, '[');
  ints(b, n, dims, ",");
  lw_buf_chr(b, ']');
  if (n < 2) return;
  lw_buf_str(b, "T(");
  for (int32_t i = 0; i < n; i++) {
    if (i) lw_buf_chr(b, ',');
    lw_buf_i64(b, perm ? perm[i] : i);
  }
  lw_buf_chr(b, ')');
}

/* ---- metadata ---- */

static void field_sep(lw_buf *b, size_t start) {
  if (b->len > start) lw_buf_chr(b, ' ');
}

static void str_field(lw_buf *b, size_t start, const char *name,
                      const char *value) {
  if (!value || !*value) return;
  field_sep(b, start);
  lw_buf_printf(b, "%s=", name);
  lw_print_quoted(b, value);
}

static void int_field(lw_buf *b, size_t start, const char *name, int64_t v) {
  if (!v) return;
  field_sep(b, start);
  lw_buf_printf(b, "%s=%lld", name, (long long)v);
}

void lw_metadata_print(lw_buf *b, const lw_metadata *m) {
  size_t at = b->len;
  str_field(b, at, "op_type", m->op_type);
  str_field(b, at, "op_name", m->op_name);
  str_field(b, at, "source_file", m->source_file);
  int_field(b, at, "source_line", m->source_line);
  int_field(b, at, "source_end_line", m->source_end_line);
  int_field(b, at, "source_column", m->source_column);
  int_field(b, at, "source_end_column", m->source_end_column);
  if (m->n_profile_types) {
    field_sep(b, at);
    lw_buf_str(b, "profile_type=");
    braced(b, m->n_profile_types, m->profile_types);
  }
  str_field(b, at, "deduplicated_name", m->deduplicated_name);
  str_field(b, at, "scheduling_name", m->scheduling_name);
  int_field(b, at, "stack_frame_id", m->stack_frame_id);
  if (m->payload) {
    field_sep(b, at);
    lw_buf_str(b, "metadata_payload=");
    lw_print_quoted(b, m->payload);
  }
}

/* ---- shardings ---- */

static const char *sharding_word(int type) {
  static const char *const words[] = {"replicated", "maximal", "tuple",
                                      "tiled",      "manual",  "unknown",
                                      "unreduced",  "named"};
  return words[type];
}

static void print_tiles(lw_buf *b, const lw_sharding *s) {
  lw_buf_str(b, "devices=[");
  ints(b, s->n_tile_dims, s->tile_dims, ",");
  lw_buf_chr(b, ']');
  if (s->n_iota_dims) {
    lw_buf_str(b, "<=");
    iota(b, s->n_iota_dims, s->iota_dims, s->iota_perm);
  } else {
    ints(b, s->n_devices, s->devices, ",");
  }
  if (s->replicate_on_last_tile_dim) lw_buf_str(b, " last_tile_dim_replicate");
  if (!s->n_last_tile_types) return;
  lw_buf_str(b, " last_tile_dims={");
  for (int32_t i = 0; i < s->n_last_tile_types; i++)
    lw_buf_printf(b, "%s%s", i ? ", " : "",
                  sharding_word(s->last_tile_types[i]));
  lw_buf_chr(b, '}');
}

static void print_group(lw_buf *b, const lw_sharding *s) {
  if (s->group == LW_SHARD_NONE) return;
  lw_buf_printf(b, " %s %lld",
                s->group == LW_SHARD_AS ? "shard_as" : "shard_like",
                (long long)s->group_id);
}

static void print_sharding_metadata(lw_buf *b, const lw_sharding *s) {
  if (!s->n_metadata) return;
  lw_buf_str(b, " metadata={");
  for (int32_t i = 0; i < s->n_metadata; i++) {
    if (i) lw_buf_str(b, ", ");
    if (s->n_metadata > 1) lw_buf_chr(b, '{');
    lw_metadata_print(b, &s->metadata[i]);
    if (s->n_metadata > 1) lw_buf_chr(b, '}');
  }
  lw_buf_chr(b, '}');
}

static void print_tuple_sharding(lw_buf *b, const lw_sharding *s,
                                 bool metadata) {
  lw_buf_chr(b, '{');
  for (int32_t i = 0; i < s->n_elems; i++) {
    if (i) lw_buf_str(b, ", ");
    if (i && i % 5 == 0) lw_buf_printf(b, "/*index=%d*/", i);
    lw_sharding_print(b, s->elems[i], metadata);
  }
  lw_buf_chr(b, '}');
}

void lw_sharding_print(lw_buf *b, const lw_sharding *s, bool metadata) {
  if (s->type == LW_SH_TUPLE) {
    print_tuple_sharding(b, s, metadata);
    return;
  }
  if (s->type == LW_SH_NAMED) {
    lw_buf_str(b, s->named_text);
    return;
  }
  lw_buf_chr(b, '{');
  if (s->type == LW_SH_TILED)
    print_tiles(b, s);
  else
    lw_buf_str(b, sharding_word(s->type));
  if (s->type == LW_SH_MAXIMAL)
    lw_buf_printf(b, " device=%lld", (long long)s->maximal_device);
  print_group(b, s);
  if (metadata) print_sharding_metadata(b, s);
  lw_buf_chr(b, '}');
}

void lw_frontend_attrs_print(lw_buf *b, const lw_frontend_attrs *f) {
  lw_buf_chr(b, '{');
  for (int32_t i = 0; i < f->n; i++) {
    lw_buf_printf(b, "%s%s=", i ? "," : "", f->v[i].key);
    lw_print_config(b, f->v[i].value);
  }
  lw_buf_chr(b, '}');
}

/* ---- windows, labels, slices ---- */

typedef int64_t (*window_get)(const lw_window_dim *d);

static int64_t get_size(const lw_window_dim *d) { return d->size; }
static int64_t get_stride(const lw_window_dim *d) { return d->stride; }
static int64_t get_lhs(const lw_window_dim *d) { return d->lhs_dilation; }
static int64_t get_rhs(const lw_window_dim *d) { return d->rhs_dilation; }
static int64_t get_reversed(const lw_window_dim *d) { return d->reversed; }

/* " stride=2x1", unless every dimension has the default. */
static void window_part(lw_buf *b, const lw_window *w, const char *name,
                        window_get get, int64_t dflt) {
  bool all = true;
  for (int32_t i = 0; i < w->rank; i++) all &= get(&w->dims[i]) == dflt;
  if (all) return;
  lw_buf_str(b, name);
  for (int32_t i = 0; i < w->rank; i++) {
    if (i) lw_buf_chr(b, 'x');
    lw_buf_i64(b, get(&w->dims[i]));
  }
}

static void window_pad(lw_buf *b, const lw_window *w) {
  bool any = false;
  for (int32_t i = 0; i < w->rank; i++)
    any |= w->dims[i].pad_lo || w->dims[i].pad_hi;
  if (!any) return;
  lw_buf_str(b, " pad=");
  for (int32_t i = 0; i < w->rank; i++)
    lw_buf_printf(b, "%s%lld_%lld", i ? "x" : "", (long long)w->dims[i].pad_lo,
                  (long long)w->dims[i].pad_hi);
}

static void print_window(lw_buf *b, const lw_window *w) {
  lw_buf_chr(b, '{');
  window_part(b, w, "size=", get_size, INT64_MIN);
  window_part(b, w, " stride=", get_stride, 1);
  window_pad(b, w);
  window_part(b, w, " lhs_dilate=", get_lhs, 1);
  window_part(b, w, " rhs_dilate=", get_rhs, 1);
  window_part(b, w, " rhs_reversal=", get_reversed, 0);
  lw_buf_chr(b, '}');
}

/* One of the three words; dimensions nothing names print as '?'. */
static void print_labels(lw_buf *b, int64_t first, int64_t second, char c1,
                         char c2, int32_t n, const int64_t *spatial) {
  int64_t last = first > second ? first : second;
  for (int32_t i = 0; i < n; i++)
    if (spatial[i] > last) last = spatial[i];
  for (int64_t d = 0; d <= last; d++) {
    char c = d == first ? c1 : d == second ? c2 : '?';
    for (int32_t i = 0; i < n; i++)
      if (spatial[i] == d) c = (char)('0' + i);
    lw_buf_chr(b, c);
  }
}

static void print_dim_labels(lw_buf *b, const lw_dim_labels *d) {
  print_labels(b, d->input_batch, d->input_feature, 'b', 'f', d->n_spatial,
               d->input_spatial);
  lw_buf_chr(b, '_');
  print_labels(b, d->kernel_input_feature, d->kernel_output_feature, 'i', 'o',
               d->n_spatial, d->kernel_spatial);
  lw_buf_str(b, "->");
  print_labels(b, d->output_batch, d->output_feature, 'b', 'f', d->n_spatial,
               d->output_spatial);
}

static void print_slice(lw_buf *b, int32_t n, const int64_t *v) {
  bool strided = false;
  for (int32_t i = 2; i < n; i += 3) strided |= v[i] != 1;
  lw_buf_chr(b, '{');
  for (int32_t i = 0; i + 2 < n; i += 3) {
    lw_buf_printf(b, "%s[%lld:%lld", i ? ", " : "", (long long)v[i],
                  (long long)v[i + 1]);
    if (strided) lw_buf_printf(b, ":%lld", (long long)v[i + 2]);
    lw_buf_chr(b, ']');
  }
  lw_buf_chr(b, '}');
}

static void print_padding(lw_buf *b, int32_t n, const int64_t *v) {
  bool interior = false;
  for (int32_t i = 2; i < n; i += 3) interior |= v[i] != 0;
  for (int32_t i = 0; i + 2 < n; i += 3) {
    lw_buf_printf(b, "%s%lld_%lld", i ? "x" : "", (long long)v[i],
                  (long long)v[i + 1]);
    if (interior) lw_buf_printf(b, "_%lld", (long long)v[i + 2]);
  }
}

/* ---- groups, aliases ---- */

static void print_groups(lw_buf *b, const lw_replica_groups *g) {
  switch (g->kind) {
    case LW_RG_MESH:
      lw_buf_str(b, g->mesh_text);
      return;
    case LW_RG_IOTA:
      lw_buf_printf(b, "[%lld,%lld]<=", (long long)g->iota_groups,
                    (long long)g->iota_group_size);
      iota(b, g->n_reshape, g->reshape_dims, g->transpose_perm);
      return;
    case LW_RG_LISTS:
      break;
  }
  const int64_t *ids = g->ids;
  lw_buf_chr(b, '{');
  for (int32_t i = 0; i < g->n_groups; i++) {
    if (i) lw_buf_chr(b, ',');
    braced(b, g->group_sizes[i], ids);
    ids += g->group_sizes[i];
  }
  lw_buf_chr(b, '}');
}

static void print_pairs(lw_buf *b, int32_t n, const int64_t *v) {
  lw_buf_chr(b, '{');
  for (int32_t i = 0; i + 1 < n; i += 2) {
    if (i) lw_buf_chr(b, ',');
    braced(b, 2, v + i);
  }
  lw_buf_chr(b, '}');
}

static void print_aliasing(lw_buf *b, int32_t n, const lw_alias *v) {
  lw_buf_chr(b, '{');
  for (int32_t i = 0; i < n; i++) {
    if (i) lw_buf_str(b, ", ");
    braced(b, v[i].n_output_index, v[i].output_index);
    lw_buf_printf(b, ": (%lld, ", (long long)v[i].operand);
    braced(b, v[i].n_operand_index, v[i].operand_index);
    lw_buf_chr(b, ')');
  }
  lw_buf_chr(b, '}');
}

static void print_shapes(lw_buf *b, int32_t n, const lw_shape *const *v) {
  lw_buf_chr(b, '{');
  for (int32_t i = 0; i < n; i++) {
    if (i) lw_buf_str(b, ", ");
    lw_shape_print(b, v[i], true);
  }
  lw_buf_chr(b, '}');
}

static void print_bools(lw_buf *b, int32_t n, const int64_t *v) {
  lw_buf_chr(b, '{');
  for (int32_t i = 0; i < n; i++)
    lw_buf_printf(b, "%s%s", i ? "," : "", v[i] ? "true" : "false");
  lw_buf_chr(b, '}');
}

static void print_precisions(lw_buf *b, int32_t n, const int64_t *v) {
  lw_buf_chr(b, '{');
  for (int32_t i = 0; i < n; i++)
    lw_buf_printf(b, "%s%s", i ? "," : "",
                  lw_enum_name(LW_AK_ENUMS_PRECISION, v[i]));
  lw_buf_chr(b, '}');
}

/* The literal of a custom-call comes with its shape. */
static void print_typed_literal(lw_buf *b, const lw_literal *l) {
  if (!lw_shape_is_tuple(l->shape)) {
    lw_shape_print(b, l->shape, true);
    lw_buf_chr(b, ' ');
    lw_literal_print(b, l);
    return;
  }
  lw_buf_str(b, "( ");
  for (int32_t i = 0; i < l->n_elems; i++) {
    if (i) lw_buf_str(b, ", ");
    print_typed_literal(b, l->elems[i]);
  }
  lw_buf_str(b, " )");
}

/* epsilon is a float in XLA's protos, printed with six digits. */
static void print_double(lw_buf *b, double v) {
  char s[40];
  snprintf(s, sizeof s, "%.6g", v);
  double back = strtod(s, NULL);
  if ((float)back != (float)v) snprintf(s, sizeof s, "%.9g", v);
  lw_buf_str(b, s);
}

/* ---- one attribute ---- */

/* By name, or as a body from the next line on. */
static void print_comp(lw_buf *b, const lw_comp *c, const lw_print_options *o) {
  if (!o->nested_bodies) {
    lw_print_name(b, c->module->ctx, c->name, o);
    return;
  }
  lw_print_options nested = *o;
  nested.in_place = true;
  lw_comp_print(b, c, &nested);
}

static void print_comps(lw_buf *b, const lw_attr *a,
                        const lw_print_options *o) {
  lw_buf_chr(b, '{');
  for (int32_t i = 0; i < a->u.comps.n; i++) {
    if (i) lw_buf_chr(b, ',');
    if (o->nested_bodies)
      lw_buf_chr(b, '\n');
    else if (i)
      lw_buf_chr(b, ' ');
    print_comp(b, a->u.comps.v[i], o);
  }
  lw_buf_str(b, o->nested_bodies ? "\n}" : "}");
}

static void print_value(lw_buf *b, const lw_attr *a,
                        const lw_print_options *o) {
  lw_attr_kind kind = lw_attr_table[a->id].kind;
  switch (kind) {
    case LW_AK_I64:
      lw_buf_i64(b, a->u.i);
      return;
    case LW_AK_BOOL:
      lw_buf_str(b, a->u.i ? "true" : "false");
      return;
    case LW_AK_F64:
      print_double(b, a->u.f);
      return;
    case LW_AK_STR:
      lw_print_quoted(b, a->u.s);
      return;
    case LW_AK_STR_BARE:
    case LW_AK_RAW:
    case LW_AK_SLICE_SIZES_LIST:
      lw_buf_str(b, a->u.s);
      return;
    case LW_AK_I64S:
      braced(b, a->u.list.n, a->u.list.v);
      return;
    case LW_AK_BOOLS:
      print_bools(b, a->u.list.n, a->u.list.v);
      return;
    case LW_AK_SLICE:
      print_slice(b, a->u.list.n, a->u.list.v);
      return;
    case LW_AK_PADDING:
      print_padding(b, a->u.list.n, a->u.list.v);
      return;
    case LW_AK_WINDOW:
      print_window(b, a->u.window);
      return;
    case LW_AK_DIM_LABELS:
      print_dim_labels(b, a->u.dim_labels);
      return;
    case LW_AK_COMP:
      if (o->nested_bodies) lw_buf_chr(b, '\n');
      print_comp(b, a->u.comp, o);
      return;
    case LW_AK_COMPS:
      print_comps(b, a, o);
      return;
    case LW_AK_ALIASING:
      print_aliasing(b, a->u.aliasing.n, a->u.aliasing.v);
      return;
    case LW_AK_SHAPE:
      lw_shape_print(b, a->u.shape, true);
      return;
    case LW_AK_SHAPES:
      print_shapes(b, a->u.shapes.n, a->u.shapes.v);
      return;
    case LW_AK_LITERAL:
      print_typed_literal(b, a->u.literal);
      return;
    case LW_AK_REPLICA_GROUPS:
      print_groups(b, a->u.groups);
      return;
    case LW_AK_PAIRS:
      print_pairs(b, a->u.list.n, a->u.list.v);
      return;
    case LW_AK_ENUMS_PRECISION:
      print_precisions(b, a->u.list.n, a->u.list.v);
      return;
    case LW_AK_ENUM_TRISTATE:
      lw_buf_str(b, strcmp(lw_enum_name(kind, a->u.i), "TRI_STATE_TRUE")
                        ? "false"
                        : "true");
      return;
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
      lw_buf_str(b, lw_enum_name(kind, a->u.i));
      return;
  }
}

/* With bodies in place XLA calls the to_apply of these two "calls". */
static const char *attr_name(const lw_inst *i, lw_attr_id id,
                             const lw_print_options *o) {
  bool renamed = o->nested_bodies && id == LW_ATTR_TO_APPLY &&
                 (i->opcode == LW_OP_REDUCE_SCATTER || i->opcode == LW_OP_SCAN);
  return renamed ? "calls" : lw_attr_table[id].name;
}

void lw_attr_print(lw_buf *b, const lw_inst *i, const lw_attr *a,
                   const lw_print_options *o) {
  lw_buf_printf(b, "%s=", attr_name(i, a->id, o));
  print_value(b, a, o);
}
