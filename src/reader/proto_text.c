/* Attributes the IR keeps as text in XLA's form, to and from their messages:
 * origin, result_accuracy, statistics, sparsity_config, domain, and the mesh
 * forms of shardings and replica groups. Each language is a few tokens, read by
 * the little scanner below; text it does not understand is an error on writing
 * (text the reader accepted, but XLA would not). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/print.h"
#include "reader/proto_impl.h"
#include "reader/text_parser.h"

/* ---- a scanner ---- */

typedef struct {
  const char *p;
  bool ok;
} scan;

static void blanks(scan *s) {
  while (*s->p == ' ' || *s->p == '\n' || *s->p == '\t') s->p++;
}

static bool eat(scan *s, const char *text) {
  blanks(s);
  size_t n = strlen(text);
  if (!s->ok || strncmp(s->p, text, n)) return false;
  s->p += n;
  return true;
}

static void expect(scan *s, const char *text) {
  if (!eat(s, text)) s->ok = false;
}

static int64_t number(scan *s) {
  blanks(s);
  char *end;
  int64_t v = strtoll(s->p, &end, 10);
  if (end == s->p) s->ok = false;
  s->p = end;
  return v;
}

static double real(scan *s) {
  blanks(s);
  char *end;
  double v = strtod(s->p, &end);
  if (end == s->p) s->ok = false;
  s->p = end;
  return v;
}

/* 'a' or "a", without escapes. */
static void quoted(scan *s, lw_buf *out) {
  blanks(s);
  char q = *s->p;
  const char *end = q == '"' || q == '\'' ? strchr(s->p + 1, q) : NULL;
  if (!end) {
    s->ok = false;
    return;
  }
  lw_buf_add(out, s->p + 1, (size_t)(end - s->p - 1));
  s->p = end + 1;
}

/* {1,2} into v; the opening text has been eaten. */
static void numbers(scan *s, pb_i64s *v, const char *close) {
  while (s->ok && !eat(s, close)) {
    if (v->len) expect(s, ",");
    int64_t x = number(s);
    if (s->ok) lw_vec_push(v, x);
  }
}

static lw_status done(scan *s, const char *what, const char *text) {
  blanks(s);
  if (s->ok && !*s->p) return NULL;
  return lw_error(LW_INVALID_ARGUMENT, "cannot write %s=%s as a proto", what,
                  text);
}

static const char *keep(proto_in *in, lw_buf *b) {
  const char *s = lw_arena_strdup(in->arena, lw_buf_cstr(b), b->len);
  lw_buf_free(b);
  return s;
}

/* The shortest decimal that reads back as v. */
static void put_real(lw_buf *b, double v) {
  char tmp[40];
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(tmp, sizeof tmp, "%.*g", digits, v);
    if (strtod(tmp, NULL) == v) break;
  }
  lw_buf_str(b, tmp);
}

static void put_list(lw_buf *b, const int64_t *v, int32_t n) {
  for (int32_t i = 0; i < n; i++) {
    if (i) lw_buf_chr(b, ',');
    lw_buf_i64(b, v[i]);
  }
}

/* ---- result_accuracy={mode=highest} or {tolerance={atol=...}} ---- */

const char *proto_accuracy_text(proto_in *in, pb_msg m) {
  if (!pb_size(m)) return NULL;
  lw_buf b = {0};
  pb_msg t = proto_sub(in, m, 2);
  if (t.p) {
    lw_buf_str(&b, "{tolerance={atol=");
    put_real(&b, pb_f64(t, 1));
    lw_buf_str(&b, ",rtol=");
    put_real(&b, pb_f64(t, 2));
    lw_buf_printf(&b, ",ulps=%lld}}", (long long)pb_i64(t, 3, 0));
  } else if (pb_i64(m, 1, 0) == 1) {
    lw_buf_str(&b, "{mode=highest}");
  } else {
    return NULL;
  }
  return keep(in, &b);
}

lw_status proto_write_accuracy(lw_buf *b, uint32_t field, const char *text) {
  scan s = {text, true};
  lw_buf m = {0}, t = {0};
  expect(&s, "{");
  if (eat(&s, "mode=")) {
    if (eat(&s, "highest"))
      pb_put_i64_always(&m, 1, 1);
    else
      expect(&s, "default");
  } else {
    expect(&s, "tolerance={");
    while (s.ok && !eat(&s, "}")) {
      if (eat(&s, "atol="))
        pb_put_f64(&t, 1, real(&s));
      else if (eat(&s, "rtol="))
        pb_put_f64(&t, 2, real(&s));
      else if (eat(&s, "ulps="))
        pb_put_i64(&t, 3, number(&s));
      else
        s.ok = false;
      eat(&s, ",");
    }
    pb_put_msg(&m, 2, &t);
  }
  expect(&s, "}");
  pb_put_msg(b, field, &m);
  return done(&s, "result_accuracy", text);
}

/* ---- statistics={visualizing_index=1,a=1.5} ---- */

const char *proto_statistics_text(proto_in *in, pb_msg m) {
  lw_buf b = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, 2, &e);) {
    if (!b.len)
      lw_buf_printf(&b, "{visualizing_index=%lld", (long long)pb_i64(m, 1, 0));
    lw_buf_printf(&b, ",%s=", proto_str_or(in, e, 1, ""));
    put_real(&b, pb_f64(e, 2));
  }
  if (!b.len) return NULL;
  lw_buf_chr(&b, '}');
  return keep(in, &b);
}

lw_status proto_write_statistics(lw_buf *b, uint32_t field, const char *text) {
  scan s = {text, true};
  lw_buf m = {0};
  expect(&s, "{");
  expect(&s, "visualizing_index=");
  pb_put_i64(&m, 1, number(&s));
  while (s.ok && eat(&s, ",")) {
    lw_buf e = {0};
    blanks(&s);
    size_t n = strcspn(s.p, "=,}");
    pb_put_bytes(&e, 1, s.p, n);
    s.p += n;
    expect(&s, "=");
    pb_put_f64(&e, 2, real(&s));
    pb_put_msg(&m, 2, &e);
  }
  expect(&s, "}");
  pb_put_msg(b, field, &m);
  return done(&s, "statistics", text);
}

/* ---- sparsity_config={lhs={num_non_zero=2,...},rhs={...}} ---- */

static const char *const sparsity_fields[] = {
    NULL, "num_non_zero", "block_size", "dimension", "stride"};

const char *proto_sparsity_text(proto_in *in, pb_msg m) {
  lw_buf b = {0};
  for (uint32_t side = 1; side <= 2; side++) {
    pb_msg t = proto_sub(in, m, side);
    if (!t.p) continue;
    lw_buf_str(&b, b.len ? "," : "{");
    lw_buf_str(&b, side == 1 ? "lhs={" : "rhs={");
    bool any = false;
    for (uint32_t k = 1; k <= 4; k++) {
      if (!pb_i64(t, k, 0)) continue;
      lw_buf_printf(&b, "%s%s=%lld", any ? "," : "", sparsity_fields[k],
                    (long long)pb_i64(t, k, 0));
      any = true;
    }
    lw_buf_chr(&b, '}');
  }
  if (!b.len) return NULL;
  lw_buf_chr(&b, '}');
  return keep(in, &b);
}

static void sparsity_side(scan *s, lw_buf *m, uint32_t side) {
  lw_buf t = {0};
  while (s->ok && !eat(s, "}")) {
    uint32_t k = 1;
    while (k <= 4 && !eat(s, sparsity_fields[k])) k++;
    expect(s, "=");
    if (k > 4) s->ok = false;
    if (s->ok) pb_put_i64(&t, k, number(s));
    eat(s, ",");
  }
  pb_put_msg(m, side, &t);
}

lw_status proto_write_sparsity(lw_buf *b, uint32_t field, const char *text) {
  scan s = {text, true};
  lw_buf m = {0};
  expect(&s, "{");
  if (eat(&s, "lhs={")) sparsity_side(&s, &m, 1);
  eat(&s, ",");
  if (eat(&s, "rhs={")) sparsity_side(&s, &m, 2);
  expect(&s, "}");
  pb_put_msg(b, field, &m);
  return done(&s, "sparsity_config", text);
}

/* ---- origin={({"a"}, ({"b" {3,4}}, {}))} ---- */

typedef struct {
  pb_i64s path, index; /* place in the shape; index in the named value */
  const char *name;    /* NULL: none */
} origin;
typedef LW_VEC(origin) origins;

static void free_origins(origins *v) {
  for (size_t i = 0; i < v->len; i++) {
    lw_vec_free(&v->data[i].path);
    lw_vec_free(&v->data[i].index);
  }
  lw_vec_free(v);
}

static void origin_tree(lw_buf *b, const origin *v, size_t n, size_t depth) {
  if (depth > PROTO_MAX_DEPTH || (n && v[0].path.len <= depth)) {
    lw_buf_chr(b, '{');
    if (v[0].name) lw_buf_printf(b, "\"%s\"", v[0].name);
    if (v[0].index.len) {
      lw_buf_str(b, " {");
      put_list(b, v[0].index.data, (int32_t)v[0].index.len);
      lw_buf_chr(b, '}');
    }
    lw_buf_chr(b, '}');
    return;
  }
  lw_buf_chr(b, '(');
  for (size_t i = 0, j; i < n; i = j) {
    for (j = i + 1; j < n && v[j].path.len > depth &&
                    v[j].path.data[depth] == v[i].path.data[depth];)
      j++;
    if (i) lw_buf_str(b, ", ");
    origin_tree(b, v + i, j - i, depth + 1);
  }
  lw_buf_chr(b, ')');
}

const char *proto_origin_text(proto_in *in, pb_msg m) {
  origins v = {0};
  pb_msg e;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, 1, &e);) {
    origin o = {0};
    pb_get_i64s(e, 1, &o.path);
    pb_msg a = proto_sub(in, e, 2);
    if (a.p) {
      o.name = proto_str_or(in, a, 1, "");
      pb_get_i64s(a, 2, &o.index);
    }
    lw_vec_push(&v, o);
  }
  lw_buf b = {0};
  lw_buf_chr(&b, '{');
  if (pb_i64(m, 2, 0)) lw_buf_str(&b, "[synthetic_call]");
  if (v.len) origin_tree(&b, v.data, v.len, 0);
  lw_buf_chr(&b, '}');
  free_origins(&v);
  return keep(in, &b);
}

static void write_origin_leaf(scan *s, lw_buf *m, const pb_i64s *path) {
  lw_buf e = {0};
  pb_put_i64s(&e, 1, path->data, (int64_t)path->len);
  if (!eat(s, "}")) {
    lw_buf a = {0}, name = {0};
    pb_i64s index = {0};
    quoted(s, &name);
    pb_put_bytes(&a, 1, name.data, name.len);
    if (eat(s, "{")) numbers(s, &index, "}");
    pb_put_i64s(&a, 2, index.data, (int64_t)index.len);
    pb_put_msg(&e, 2, &a);
    lw_buf_free(&name);
    lw_vec_free(&index);
    expect(s, "}");
  }
  pb_put_msg(m, 1, &e);
}

static void write_origin_tree(scan *s, lw_buf *m, pb_i64s *path) {
  if (path->len > PROTO_MAX_DEPTH) s->ok = false;
  if (eat(s, "{")) {
    write_origin_leaf(s, m, path);
    return;
  }
  expect(s, "(");
  for (int64_t k = 0; s->ok && !eat(s, ")"); k++) {
    if (k) expect(s, ",");
    lw_vec_push(path, k);
    write_origin_tree(s, m, path);
    path->len--;
  }
}

lw_status proto_write_origin(lw_buf *b, uint32_t field, const char *text) {
  scan s = {text, true};
  lw_buf m = {0};
  pb_i64s path = {0};
  expect(&s, "{");
  bool synthetic = eat(&s, "[synthetic_call]");
  if (!eat(&s, "}")) {
    write_origin_tree(&s, &m, &path);
    expect(&s, "}");
  }
  pb_put_i64(&m, 2, synthetic);
  pb_put_msg(b, field, &m);
  lw_vec_free(&path);
  return done(&s, "origin", text);
}

/* ---- domain={kind="sharding", entry={...}, exit={...}} ----
 * The printer's "entry" is the message's exit sharding: XLA names them from the
 * user's and from the operand's side. */

static void put_sharding_text(proto_in *in, lw_buf *b, pb_msg m) {
  const lw_sharding *s = m.p ? proto_read_sharding(in, m, 0) : NULL;
  if (s)
    lw_sharding_print(b, s, true);
  else
    lw_buf_str(b, "{}");
}

const char *proto_domain_text(proto_in *in, pb_msg entry, pb_msg exit_) {
  lw_buf b = {0};
  lw_buf_str(&b, "{kind=\"sharding\", entry=");
  put_sharding_text(in, &b, exit_);
  lw_buf_str(&b, ", exit=");
  put_sharding_text(in, &b, entry);
  lw_buf_chr(&b, '}');
  return keep(in, &b);
}

/* Reads one sharding with the text parser and writes it. */
static void domain_side(scan *s, lw_buf *b, uint32_t field) {
  blanks(s);
  lw_context *ctx = lw_context_new();
  lw_module *m = lw_module_new(ctx, "domain");
  lw_diags diags = {0};
  lw_text_parser ps = {.ctx = ctx, .diags = &diags, .module = m};
  ps.arena = m->arena;
  lw_lex_init(&ps.lx, s->p, strlen(s->p));
  const lw_sharding *sh = NULL;
  if (!ps.lx.tok.start) lw_lex(&ps.lx);
  if (lw_text_sharding(&ps, &sh)) {
    proto_write_sharding(b, field, sh);
    s->p = ps.lx.tok.start;
  } else {
    s->ok = false;
  }
  lw_diags_free(&diags);
  lw_module_free(m);
  lw_context_free(ctx);
}

lw_status proto_write_domain(lw_buf *b, uint32_t entry, uint32_t exit_,
                             const char *text) {
  scan s = {text, true};
  expect(&s, "{");
  expect(&s, "kind=");
  expect(&s, "\"sharding\"");
  expect(&s, ",");
  expect(&s, "entry=");
  if (s.ok) domain_side(&s, b, exit_);
  expect(&s, ",");
  expect(&s, "exit=");
  if (s.ok) domain_side(&s, b, entry);
  expect(&s, "}");
  return done(&s, "domain", text);
}

/* ---- meshes: mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) ---- */

typedef LW_VEC(const char *) axis_names;

static void read_mesh(proto_in *in, pb_msg m, axis_names *names, lw_buf *b) {
  pb_msg e;
  int32_t n;
  lw_buf_str(b, "mesh[");
  for (pb_iter it = pb_begin(m); proto_next(in, &it, 1, &e);) {
    const char *name = proto_str_or(in, e, 1, "");
    lw_buf_printf(b, "%s'%s'=%lld", names->len ? "," : "", name,
                  (long long)pb_i64(e, 2, 0));
    lw_vec_push(names, name);
  }
  lw_buf_chr(b, ']');
  const int64_t *ids = proto_i64s(in, m, 2, &n);
  pb_msg iota = proto_sub(in, m, 3);
  if (n) {
    lw_buf_str(b, ", device_ids=(");
    put_list(b, ids, n);
    lw_buf_chr(b, ')');
  } else if (iota.p) {
    const int64_t *dims = proto_i64s(in, iota, 1, &n);
    lw_buf_str(b, ", device_ids=([");
    put_list(b, dims, n);
    lw_buf_chr(b, ']');
    const int64_t *perm = proto_i64s(in, iota, 2, &n);
    if (n) {
      lw_buf_str(b, "T(");
      put_list(b, perm, n);
      lw_buf_chr(b, ')');
    }
    lw_buf_chr(b, ')');
  }
}

/* 'x' or 'y':(1)2 */
static void read_axis(proto_in *in, pb_msg m, const axis_names *names,
                      lw_buf *b) {
  int64_t k = pb_i64(m, 1, 0);
  if (k < 0 || k >= (int64_t)names->len) {
    proto_fail(in, m, "a sharding names mesh axis %lld of %zu", (long long)k,
               names->len);
    return;
  }
  lw_buf_printf(b, "'%s'", names->data[k]);
  pb_msg sub = proto_sub(in, m, 2);
  if (sub.p)
    lw_buf_printf(b, ":(%lld)%lld", (long long)pb_i64(sub, 1, 0),
                  (long long)pb_i64(sub, 2, 0));
}

static int read_axes(proto_in *in, pb_msg m, uint32_t field, const char *sep,
                     const axis_names *names, lw_buf *b) {
  pb_msg e;
  int n = 0;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, field, &e); n++) {
    if (n) lw_buf_str(b, sep);
    read_axis(in, e, names, b);
  }
  return n;
}

static void axis_group(proto_in *in, pb_msg m, uint32_t field, const char *name,
                       const axis_names *names, lw_buf *b) {
  lw_buf list = {0};
  if (read_axes(in, m, field, ", ", names, &list))
    lw_buf_printf(b, ", %s={%s}", name, lw_buf_cstr(&list));
  lw_buf_free(&list);
}

static void named_metadata(proto_in *in, pb_msg m, lw_buf *b) {
  pb_msg e;
  bool any = false;
  for (pb_iter it = pb_begin(m); proto_next(in, &it, 6, &e); any = true) {
    const lw_metadata *d = proto_read_metadata(in, e);
    lw_buf_str(b, any ? ", {" : ", metadata={{");
    if (d) lw_metadata_print(b, d);
    lw_buf_chr(b, '}');
  }
  if (any) lw_buf_chr(b, '}');
}

const char *proto_named_sharding_text(proto_in *in, pb_msg m) {
  axis_names names = {0};
  lw_buf b = {0}, dims = {0};
  pb_msg mesh = proto_sub(in, m, 2), e;
  int32_t n_ids;
  const int64_t *ids = proto_i64s(in, mesh, 2, &n_ids);
  lw_buf_chr(&b, '{');
  if (n_ids == 1 && !pb_has(mesh, 1)) {
    lw_buf_printf(&b, "maximal_mesh[device_id=%lld]", (long long)ids[0]);
  } else {
    read_mesh(in, mesh, &names, &b);
    for (pb_iter it = pb_begin(m); proto_next(in, &it, 3, &e);) {
      lw_buf_str(&dims, dims.len ? ", {" : "{");
      int n = read_axes(in, e, 1, ", ", &names, &dims);
      if (!pb_i64(e, 2, 0)) lw_buf_str(&dims, n ? ", ?" : "?");
      lw_buf_chr(&dims, '}');
    }
    size_t before = b.len;
    if (dims.len) lw_buf_printf(&b, ", [%s]", lw_buf_cstr(&dims));
    axis_group(in, m, 4, "replicated", &names, &b);
    axis_group(in, m, 5, "unreduced", &names, &b);
    axis_group(in, m, 7, "manual", &names, &b);
    if (b.len == before) lw_buf_str(&b, ", replicated");
  }
  named_metadata(in, m, &b);
  lw_buf_chr(&b, '}');
  lw_buf_free(&dims);
  lw_vec_free(&names);
  return keep(in, &b);
}

const char *proto_mesh_groups_text(proto_in *in, pb_msg m) {
  axis_names names = {0};
  lw_buf b = {0};
  read_mesh(in, proto_sub(in, m, 1), &names, &b);
  lw_buf_str(&b, " {");
  read_axes(in, m, 2, ",", &names, &b);
  lw_buf_chr(&b, '}');
  lw_vec_free(&names);
  return keep(in, &b);
}

/* ---- writing meshes ---- */

typedef struct {
  lw_buf names; /* each with its NUL */
  int64_t n;
} axis_list;

static int64_t axis_index(const axis_list *a, const char *name) {
  const char *p = a->names.data;
  for (int64_t i = 0; i < a->n; i++, p += strlen(p) + 1)
    if (!strcmp(p, name)) return i;
  return -1;
}

static void write_device_ids(scan *s, lw_buf *m) {
  pb_i64s v = {0};
  if (!eat(s, "[")) {
    numbers(s, &v, ")");
    pb_put_i64s(m, 2, v.data, (int64_t)v.len);
  } else {
    lw_buf iota = {0};
    numbers(s, &v, "]");
    pb_put_i64s(&iota, 1, v.data, (int64_t)v.len);
    v.len = 0;
    if (eat(s, "T(")) numbers(s, &v, ")");
    pb_put_i64s(&iota, 2, v.data, (int64_t)v.len);
    pb_put_msg(m, 3, &iota);
    expect(s, ")");
  }
  lw_vec_free(&v);
}

/* mesh[...] and device_ids, when they follow. */
static void write_mesh(scan *s, axis_list *axes, lw_buf *b, uint32_t field) {
  lw_buf m = {0};
  expect(s, "mesh[");
  while (s->ok && !eat(s, "]")) {
    lw_buf e = {0}, name = {0};
    if (axes->n) expect(s, ",");
    quoted(s, &name);
    lw_buf_add(&axes->names, lw_buf_cstr(&name), name.len + 1);
    axes->n++;
    expect(s, "=");
    pb_put_bytes(&e, 1, name.data, name.len);
    pb_put_i64(&e, 2, number(s));
    pb_put_msg(&m, 1, &e);
    lw_buf_free(&name);
  }
  scan before = *s;
  if (eat(s, ",") && eat(s, "device_ids=("))
    write_device_ids(s, &m);
  else
    *s = before;
  pb_put_msg(b, field, &m);
}

static void write_axis(scan *s, const axis_list *axes, lw_buf *b,
                       uint32_t field) {
  lw_buf e = {0}, name = {0};
  quoted(s, &name);
  int64_t k = s->ok ? axis_index(axes, lw_buf_cstr(&name)) : -1;
  if (k < 0) s->ok = false;
  pb_put_i64(&e, 1, k);
  if (eat(s, ":(")) {
    lw_buf sub = {0};
    pb_put_i64(&sub, 1, number(s));
    expect(s, ")");
    pb_put_i64(&sub, 2, number(s));
    pb_put_msg(&e, 2, &sub);
  }
  pb_put_msg(b, field, &e);
  lw_buf_free(&name);
}

/* 'x', 'y' up to '}'; true when a '?' stood among them. */
static bool write_axes(scan *s, const axis_list *axes, lw_buf *b,
                       uint32_t field) {
  bool open = false;
  for (int n = 0; s->ok && !eat(s, "}"); n++) {
    if (n) expect(s, ",");
    if (eat(s, "?"))
      open = true;
    else
      write_axis(s, axes, b, field);
  }
  return open;
}

static void write_dim_shardings(scan *s, const axis_list *axes, lw_buf *b) {
  for (int n = 0; s->ok && !eat(s, "]"); n++) {
    lw_buf d = {0};
    if (n) expect(s, ",");
    expect(s, "{");
    bool open = write_axes(s, axes, &d, 1);
    pb_put_i64(&d, 2, !open);
    pb_put_msg(b, 3, &d);
  }
}

lw_status proto_write_named_sharding(lw_buf *b, uint32_t field,
                                     const char *text) {
  scan s = {text ? text : "", true};
  lw_buf m = {0};
  axis_list axes = {0};
  expect(&s, "{");
  if (eat(&s, "maximal_mesh[device_id=")) {
    lw_buf mesh = {0};
    int64_t id = number(&s);
    pb_put_i64s(&mesh, 2, &id, 1);
    pb_put_msg(&m, 2, &mesh);
    expect(&s, "]");
  } else {
    write_mesh(&s, &axes, &m, 2);
  }
  while (s.ok && eat(&s, ",")) {
    if (eat(&s, "["))
      write_dim_shardings(&s, &axes, &m);
    else if (eat(&s, "replicated={"))
      write_axes(&s, &axes, &m, 4);
    else if (eat(&s, "unreduced={"))
      write_axes(&s, &axes, &m, 5);
    else if (eat(&s, "manual={"))
      write_axes(&s, &axes, &m, 7);
    else if (eat(&s, "metadata="))
      break; /* says nothing about the sharding itself */
    else
      expect(&s, "replicated");
  }
  pb_put_msg(b, field, &m);
  lw_buf_free(&axes.names);
  if (s.ok) return NULL;
  return lw_error(LW_INVALID_ARGUMENT, "cannot write sharding=%s as a proto",
                  text ? text : "");
}

lw_status proto_write_mesh_groups(lw_buf *b, uint32_t field, const char *text) {
  scan s = {text ? text : "", true};
  lw_buf m = {0};
  axis_list axes = {0};
  write_mesh(&s, &axes, &m, 1);
  expect(&s, "{");
  write_axes(&s, &axes, &m, 2);
  pb_put_msg(b, field, &m);
  lw_buf_free(&axes.names);
  return done(&s, "replica_groups", text ? text : "");
}
