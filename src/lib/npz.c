/* .npz on libzip; the .npy header by hand (NumPy's format description,
 * versions 1 to 3). Sizes are checked against the wanted shape before anything
 * is unpacked, so that a small file cannot ask for much memory. */
#include "lib/npz.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

struct lw_npz {
  char *path;
  zip_t *zip;
  int n;
  char **keys;
  zip_uint64_t *index;
};

enum { MAX_HEADER = 1 << 16 };

/* ---- opening ---- */

static void collect_keys(lw_npz *z) {
  zip_int64_t n = zip_get_num_entries(z->zip, 0);
  z->keys = calloc((size_t)n + 1, sizeof *z->keys);
  z->index = calloc((size_t)n + 1, sizeof *z->index);
  if (!z->keys || !z->index) lw_oom((size_t)n);
  for (zip_int64_t i = 0; i < n; i++) {
    const char *name = zip_get_name(z->zip, (zip_uint64_t)i, 0);
    if (!name) continue;
    size_t len = strlen(name);
    if (len < 5 || strcmp(name + len - 4, ".npy")) continue;
    z->keys[z->n] = strndup(name, len - 4);
    if (!z->keys[z->n]) lw_oom(len);
    z->index[z->n++] = (zip_uint64_t)i;
  }
}

lw_status lw_npz_open(const char *path, lw_npz **out) {
  int err = 0;
  zip_t *zip = zip_open(path, ZIP_RDONLY, &err);
  if (!zip) {
    zip_error_t e;
    zip_error_init_with_code(&e, err);
    lw_status s =
        lw_error(err == ZIP_ER_NOENT ? LW_NOT_FOUND : LW_INVALID_ARGUMENT,
                 "%s: %s", path, zip_error_strerror(&e));
    zip_error_fini(&e);
    return s;
  }
  lw_npz *z = calloc(1, sizeof *z);
  if (!z) lw_oom(sizeof *z);
  z->zip = zip;
  z->path = strdup(path);
  collect_keys(z);
  *out = z;
  return NULL;
}

void lw_npz_close(lw_npz *z) {
  if (!z) return;
  zip_discard(z->zip);
  for (int i = 0; i < z->n; i++) free(z->keys[i]);
  free(z->keys);
  free(z->index);
  free(z->path);
  free(z);
}

int lw_npz_count(const lw_npz *z) { return z->n; }

const char *lw_npz_key(const lw_npz *z, int i) {
  return i >= 0 && i < z->n ? z->keys[i] : NULL;
}

static int find_key(const lw_npz *z, const char *key) {
  for (int i = 0; i < z->n; i++)
    if (!strcmp(z->keys[i], key)) return i;
  return -1;
}

bool lw_npz_has(const lw_npz *z, const char *key) {
  return find_key(z, key) >= 0;
}

/* ---- the header ---- */

typedef struct {
  char kind; /* b i u f c */
  int size;  /* bytes an element */
  bool big_endian, fortran;
  int32_t rank;
  int64_t dims[LW_MAX_RANK];
} npy;

/* The text after 'key': in the header's dictionary. */
static const char *field(const char *header, const char *key) {
  const char *p = strstr(header, key);
  if (!p) return NULL;
  p = strchr(p, ':');
  if (!p) return NULL;
  p++;
  while (*p == ' ') p++;
  return p;
}

static bool parse_descr(const char *p, npy *h) {
  if (!p || (*p != '\'' && *p != '"')) return false;
  p++;
  if (*p == '<' || *p == '>' || *p == '|' || *p == '=') {
    h->big_endian = *p == '>';
    p++;
  }
  h->kind = *p++;
  h->size = atoi(p);
  return strchr("biufc", h->kind) && h->size >= 1 && h->size <= 16;
}

static bool parse_dims(const char *p, npy *h) {
  if (!p || *p != '(') return false;
  p++;
  for (;;) {
    while (*p == ' ' || *p == ',') p++;
    if (*p == ')') return true;
    char *end;
    long long v = strtoll(p, &end, 10);
    if (end == p || v < 0 || h->rank >= LW_MAX_RANK) return false;
    h->dims[h->rank++] = v;
    p = *end == 'L' ? end + 1 : end;
  }
}

static bool parse_header(const char *text, npy *h) {
  const char *f = field(text, "'fortran_order'");
  *h = (npy){0};
  if (!f) return false;
  h->fortran = !strncmp(f, "True", 4);
  return parse_descr(field(text, "'descr'"), h) &&
         parse_dims(field(text, "'shape'"), h);
}

static bool read_all(zip_file_t *f, void *p, size_t n) {
  char *at = p;
  while (n > 0) {
    zip_int64_t got = zip_fread(f, at, n);
    if (got <= 0) return false;
    at += got;
    n -= (size_t)got;
  }
  return true;
}

/* Leaves f at the first element. */
static lw_status read_header(const lw_npz *z, const char *key, zip_file_t *f,
                             npy *h) {
  unsigned char pre[12];
  size_t len;
  bool ok = read_all(f, pre, 10) && !memcmp(pre, "\x93NUMPY", 6) &&
            pre[6] >= 1 && pre[6] <= 3;
  if (ok && pre[6] > 1) {
    ok = read_all(f, pre + 10, 2);
    len = pre[8] | (size_t)pre[9] << 8 | (size_t)pre[10] << 16 |
          (size_t)pre[11] << 24;
  } else {
    len = pre[8] | (size_t)pre[9] << 8;
  }
  if (ok && len <= MAX_HEADER) {
    char *text = calloc(len + 1, 1);
    if (!text) lw_oom(len);
    ok = read_all(f, text, len) && parse_header(text, h);
    free(text);
  } else {
    ok = false;
  }
  if (ok) return NULL;
  return lw_error(LW_INVALID_ARGUMENT, "%s: %s is no NumPy array", z->path,
                  key);
}

/* ---- types ---- */

static lw_prim prim_of(const npy *h) {
  static const struct {
    char kind;
    int size;
    lw_prim t;
  } map[] = {{'b', 1, LW_PRED}, {'i', 1, LW_S8},   {'i', 2, LW_S16},
             {'i', 4, LW_S32},  {'i', 8, LW_S64},  {'u', 1, LW_U8},
             {'u', 2, LW_U16},  {'u', 4, LW_U32},  {'u', 8, LW_U64},
             {'f', 2, LW_F16},  {'f', 4, LW_F32},  {'f', 8, LW_F64},
             {'c', 8, LW_C64},  {'c', 16, LW_C128}};
  for (size_t i = 0; i < sizeof map / sizeof *map; i++)
    if (map[i].kind == h->kind && map[i].size == h->size) return map[i].t;
  return LW_PRIM_INVALID;
}

/* What a type travels as. */
static lw_prim carrier(lw_prim t) {
  if (t == LW_BF16) return LW_U16;
  bool exotic = lw_prim_bytes(t) == 1 && t != LW_PRED && t != LW_S8;
  return exotic ? LW_U8 : t;
}

static bool fits(lw_prim t, lw_prim found) {
  return found == carrier(t) ||
         (lw_prim_is_signed(t) && lw_prim_bytes(t) == 1 && found == LW_S8);
}

static void describe(char *b, size_t n, lw_prim t, int32_t rank,
                     const int64_t *dims) {
  int at = snprintf(b, n, "%s[", t == LW_PRIM_INVALID ? "?" : lw_prim_name(t));
  for (int32_t d = 0; d < rank && at < (int)n - 24; d++)
    at += snprintf(b + at, n - (size_t)at, "%s%lld", d ? "," : "",
                   (long long)dims[d]);
  snprintf(b + at, n - (size_t)at, "]");
}

/* ---- elements ---- */

static void swap_bytes(char *p, size_t n, int size) {
  for (; n > 0; n -= (size_t)size, p += size)
    for (int i = 0; i < size / 2; i++) {
      char c = p[i];
      p[i] = p[size - 1 - i];
      p[size - 1 - i] = c;
    }
}

static void from_fortran(const npy *h, const char *src, char *dst) {
  int64_t idx[LW_MAX_RANK] = {0}, strides[LW_MAX_RANK], n = 1;
  for (int32_t d = 0; d < h->rank; d++) {
    strides[d] = n;
    n *= h->dims[d];
  }
  for (int64_t k = 0; k < n; k++) {
    int64_t at = 0;
    for (int32_t d = 0; d < h->rank; d++) at += idx[d] * strides[d];
    memcpy(dst + k * h->size, src + at * h->size, (size_t)h->size);
    for (int32_t d = h->rank; d-- > 0 && ++idx[d] == h->dims[d];) idx[d] = 0;
  }
}

/* Sub-byte integers come in any extension of their bits; pred as any byte. */
static void normalise(lw_literal *l) {
  lw_prim t = l->shape->type;
  int bits = lw_prim_table[t].bits;
  uint8_t *p = l->data;
  if (t != LW_PRED && bits >= 8) return;
  for (int64_t k = 0; k < l->shape->elements; k++) {
    if (t == LW_PRED) {
      p[k] = p[k] != 0;
      continue;
    }
    p[k] &= (uint8_t)((1u << bits) - 1);
    if (lw_prim_is_signed(t) && (p[k] >> (bits - 1)))
      p[k] |= (uint8_t)(0xffu << bits);
  }
}

static lw_status read_data(const lw_npz *z, const char *key, zip_file_t *f,
                           const npy *h, lw_literal *l) {
  size_t bytes = (size_t)lw_literal_bytes(l);
  char *tmp = NULL, *to = l->data;
  if (h->fortran && h->rank > 1) {
    tmp = to = malloc(bytes + 1);
    if (!tmp)
      return lw_error(LW_RESOURCE_EXHAUSTED, "%s: no memory for %s", z->path,
                      key);
  }
  bool ok = read_all(f, to, bytes);
  int part = h->kind == 'c' ? h->size / 2 : h->size;
  if (ok && h->big_endian && part > 1) swap_bytes(to, bytes, part);
  if (ok && tmp) from_fortran(h, tmp, l->data);
  free(tmp);
  if (!ok)
    return lw_error(LW_DATA_LOSS, "%s: %s ends early or is damaged", z->path,
                    key);
  normalise(l);
  return NULL;
}

/* ---- reading ---- */

static lw_status missing(const lw_npz *z, const char *key) {
  lw_buf b = {0};
  for (int i = 0; i < z->n && i < 20; i++)
    lw_buf_printf(&b, "%s%s", i ? ", " : "", z->keys[i]);
  if (z->n > 20) lw_buf_str(&b, ", ...");
  lw_status s = lw_error(LW_NOT_FOUND, "%s has no array %s; it holds: %s",
                         z->path, key, z->n ? lw_buf_cstr(&b) : "nothing");
  lw_buf_free(&b);
  return s;
}

static lw_status open_key(lw_npz *z, const char *key, zip_file_t **f, npy *h) {
  int k = find_key(z, key);
  if (k < 0) return missing(z, key);
  *f = zip_fopen_index(z->zip, z->index[k], 0);
  if (!*f)
    return lw_error(LW_INVALID_ARGUMENT, "%s: %s: %s", z->path, key,
                    zip_strerror(z->zip));
  lw_status s = read_header(z, key, *f, h);
  if (s) zip_fclose(*f);
  return s;
}

static lw_status check_shape(const lw_npz *z, const char *key, const npy *h,
                             const lw_shape *s) {
  bool same = h->rank == s->rank, one = s->rank == 0;
  for (int32_t d = 0; same && d < s->rank; d++) same = h->dims[d] == s->dims[d];
  for (int32_t d = 0; one && d < h->rank; d++) one = h->dims[d] == 1;
  same |= one; /* NumPy gives a viewed scalar the shape (1,) */
  if (same && fits(s->type, prim_of(h))) return NULL;
  char want[512], have[512];
  describe(want, sizeof want, s->type, s->rank, s->dims);
  describe(have, sizeof have, prim_of(h), h->rank, h->dims);
  return lw_error(
      LW_INVALID_ARGUMENT, "%s: %s is %s (%c%d), but %s was expected%s%s",
      z->path, key, have, h->kind, h->size, want,
      carrier(s->type) == s->type ? "" : ", carried as ",
      carrier(s->type) == s->type ? "" : lw_prim_name(carrier(s->type)));
}

lw_status lw_npz_read(lw_npz *z, const char *key, const lw_shape *shape,
                      lw_arena *a, lw_literal **out) {
  zip_file_t *f = NULL;
  npy h;
  LW_TRY(open_key(z, key, &f, &h));
  lw_status s = check_shape(z, key, &h, shape);
  if (!s) s = lw_literal_new(a, shape, out);
  if (!s) s = read_data(z, key, f, &h, *out);
  zip_fclose(f);
  return s;
}

/* The entry's unpacked size bounds what the header may claim. */
static bool size_is_honest(lw_npz *z, const char *key, const npy *h) {
  zip_stat_t st;
  int k = find_key(z, key);
  if (zip_stat_index(z->zip, z->index[k], 0, &st) ||
      !(st.valid & ZIP_STAT_SIZE))
    return false;
  uint64_t n = (uint64_t)h->size;
  for (int32_t d = 0; d < h->rank; d++)
    if (__builtin_mul_overflow(n, (uint64_t)h->dims[d], &n)) return false;
  return n <= st.size;
}

lw_status lw_npz_read_any(lw_npz *z, const char *key, lw_context *ctx,
                          lw_arena *a, lw_literal **out) {
  zip_file_t *f = NULL;
  npy h;
  LW_TRY(open_key(z, key, &f, &h));
  lw_status s = NULL;
  lw_prim t = prim_of(&h);
  if (t == LW_PRIM_INVALID || !size_is_honest(z, key, &h))
    s = lw_error(LW_INVALID_ARGUMENT, "%s: %s has type %c%d%s", z->path, key,
                 h.kind, h.size,
                 t == LW_PRIM_INVALID ? ", which HLO does not have"
                                      : " and a wrong size");
  if (!s) s = lw_literal_new(a, lw_shape_array(ctx, t, h.rank, h.dims), out);
  if (!s) s = read_data(z, key, f, &h, *out);
  zip_fclose(f);
  return s;
}

/* ---- writing ---- */

static void header_text(const lw_shape *s, lw_buf *b) {
  lw_prim t = carrier(s->type);
  int size = lw_prim_bytes(t);
  char kind = t == LW_PRED            ? 'b'
              : lw_prim_is_complex(t) ? 'c'
              : lw_prim_is_float(t)   ? 'f'
              : lw_prim_is_signed(t)  ? 'i'
                                      : 'u';
  lw_buf text = {0};
  lw_buf_printf(&text, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (",
                size > 1 ? '<' : '|', kind, size);
  for (int32_t d = 0; d < s->rank; d++)
    lw_buf_printf(&text, "%s%lld", d ? ", " : "", (long long)s->dims[d]);
  lw_buf_str(&text, s->rank == 1 ? ",), }" : "), }");
  while ((10 + text.len + 1) % 64) lw_buf_chr(&text, ' ');
  lw_buf_chr(&text, '\n');
  lw_buf_add(b, "\x93NUMPY\x01\x00", 8);
  lw_buf_chr(b, (char)(text.len & 255));
  lw_buf_chr(b, (char)(text.len >> 8));
  lw_buf_add(b, text.data, text.len);
  lw_buf_free(&text);
}

static lw_status add_array(zip_t *zip, const char *path, const char *key,
                           const lw_literal *l) {
  if (!lw_shape_is_array(l->shape))
    return lw_error(LW_INVALID_ARGUMENT, "%s: %s is no array", path, key);
  lw_buf b = {0}, name = {0};
  header_text(l->shape, &b);
  lw_buf_add(&b, l->data, (size_t)lw_literal_bytes(l));
  lw_buf_printf(&name, "%s.npy", key);
  lw_status s = NULL;
  zip_source_t *src = zip_source_buffer(zip, b.data, b.len, 1);
  zip_int64_t at =
      src ? zip_file_add(zip, name.data, src, ZIP_FL_ENC_UTF_8) : -1;
  if (at < 0) {
    s = lw_error(LW_INTERNAL, "%s: %s", path, zip_strerror(zip));
    if (src)
      zip_source_free(src);
    else
      lw_buf_free(&b);
  } else {
    zip_file_set_mtime(zip, (zip_uint64_t)at, 315532800, 0); /* 1980: fixed */
  }
  lw_buf_free(&name);
  return s;
}

lw_status lw_npz_write(const char *path, int n, const char *const *keys,
                       const lw_literal *const *arrays) {
  int err = 0;
  zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &err);
  if (!zip) return lw_error(LW_INVALID_ARGUMENT, "%s: cannot be written", path);
  lw_status s = NULL;
  for (int i = 0; i < n && !s; i++)
    s = add_array(zip, path, keys[i], arrays[i]);
  if (s) {
    zip_discard(zip);
    return s;
  }
  if (zip_close(zip)) {
    s = lw_error(LW_INTERNAL, "%s: %s", path, zip_strerror(zip));
    zip_discard(zip);
  }
  return s;
}
