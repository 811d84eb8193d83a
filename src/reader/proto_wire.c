#include "reader/proto_wire.h"

#include <string.h>

enum { MAX_GROUP_DEPTH = 64 };

/* ---- reading ---- */

static bool get_varint(pb_msg *m, uint64_t *out) {
  uint64_t v = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (m->p >= m->end) return false;
    uint8_t c = *m->p++;
    m->at++;
    if (shift < 64) v |= (uint64_t)(c & 127) << shift;
    if (c < 128) {
      *out = v;
      return true;
    }
  }
  return false;
}

static bool get_fixed(pb_msg *m, size_t n, uint64_t *out) {
  if (pb_size(*m) < n) return false;
  *out = 0;
  memcpy(out, m->p, n); /* little-endian machines only, as everywhere */
  m->p += n;
  m->at += n;
  return true;
}

static bool get_tag(pb_msg *m, uint32_t *number, uint32_t *wire) {
  uint64_t tag;
  if (!get_varint(m, &tag) || tag > UINT32_MAX || tag >> 3 == 0) return false;
  *number = (uint32_t)(tag >> 3);
  *wire = (uint32_t)(tag & 7);
  return true;
}

static bool skip_group(pb_msg *m, uint32_t number, int depth);

static bool get_value(pb_iter *it, int depth) {
  pb_msg *m = &it->rest;
  uint64_t n;
  it->value = 0;
  it->bytes = (pb_msg){0};
  switch (it->wire) {
    case PB_VARINT:
      return get_varint(m, &it->value);
    case PB_I64:
      return get_fixed(m, 8, &it->value);
    case PB_I32:
      return get_fixed(m, 4, &it->value);
    case PB_LEN:
      if (!get_varint(m, &n) || n > pb_size(*m)) return false;
      it->bytes = (pb_msg){m->p, m->p + n, m->at};
      m->p += n;
      m->at += n;
      return true;
    case PB_GROUP:
      return skip_group(m, it->number, depth);
    default:
      return false;
  }
}

static bool skip_group(pb_msg *m, uint32_t number, int depth) {
  if (depth >= MAX_GROUP_DEPTH) return false;
  for (;;) {
    pb_iter it = {.rest = *m};
    if (!get_tag(&it.rest, &it.number, &it.wire)) return false;
    bool end = it.wire == 4;
    if (end ? it.number != number : !get_value(&it, depth + 1)) return false;
    *m = it.rest;
    if (end) return true;
  }
}

bool pb_next(pb_iter *it) {
  return it->rest.p && it->rest.p < it->rest.end &&
         get_tag(&it->rest, &it->number, &it->wire) && get_value(it, 0);
}

bool pb_each(pb_iter *it, uint32_t number, uint32_t wire) {
  while (pb_next(it))
    if (it->number == number && it->wire == wire) return true;
  return false;
}

lw_status pb_check(pb_msg m) {
  pb_iter it = pb_begin(m);
  while (it.rest.p < it.rest.end) {
    size_t at = it.rest.at;
    if (!pb_next(&it))
      return lw_error(LW_INVALID_ARGUMENT,
                      "malformed or truncated protobuf field at byte %zu", at);
  }
  return NULL;
}

static bool last(pb_msg m, uint32_t number, uint32_t wire, pb_iter *out) {
  bool found = false;
  for (pb_iter it = pb_begin(m); pb_each(&it, number, wire); found = true)
    *out = it;
  return found;
}

int64_t pb_i64(pb_msg m, uint32_t number, int64_t dflt) {
  pb_iter it;
  return last(m, number, PB_VARINT, &it) ? (int64_t)it.value : dflt;
}

double pb_f64(pb_msg m, uint32_t number) {
  pb_iter it;
  double v = 0;
  if (last(m, number, PB_I64, &it)) memcpy(&v, &it.value, sizeof v);
  return v;
}

double pb_f32(pb_msg m, uint32_t number) {
  pb_iter it;
  float v = 0;
  if (last(m, number, PB_I32, &it)) memcpy(&v, &it.value, sizeof v);
  return (double)v;
}

pb_msg pb_bytes(pb_msg m, uint32_t number) {
  pb_iter it;
  return last(m, number, PB_LEN, &it) ? it.bytes : (pb_msg){0};
}

bool pb_has(pb_msg m, uint32_t number) {
  pb_iter it = pb_begin(m);
  while (pb_next(&it))
    if (it.number == number) return true;
  return false;
}

void pb_get_i64s(pb_msg m, uint32_t number, pb_i64s *out) {
  pb_iter it = pb_begin(m);
  while (pb_next(&it)) {
    if (it.number != number) continue;
    if (it.wire == PB_VARINT) lw_vec_push(out, (int64_t)it.value);
    if (it.wire != PB_LEN) continue;
    uint64_t v;
    while (it.bytes.p < it.bytes.end && get_varint(&it.bytes, &v))
      lw_vec_push(out, (int64_t)v);
  }
}

/* ---- writing ---- */

void pb_put_varint(lw_buf *b, uint64_t v) {
  char tmp[10];
  int n = 0;
  for (; v > 127; v >>= 7) tmp[n++] = (char)(v | 128);
  tmp[n++] = (char)v;
  lw_buf_add(b, tmp, (size_t)n);
}

static void put_tag(lw_buf *b, uint32_t number, uint32_t wire) {
  pb_put_varint(b, (uint64_t)number << 3 | wire);
}

void pb_put_i64_always(lw_buf *b, uint32_t number, int64_t v) {
  put_tag(b, number, PB_VARINT);
  pb_put_varint(b, (uint64_t)v);
}

void pb_put_i64(lw_buf *b, uint32_t number, int64_t v) {
  if (v) pb_put_i64_always(b, number, v);
}

void pb_put_f64(lw_buf *b, uint32_t number, double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  if (!bits) return;
  put_tag(b, number, PB_I64);
  lw_buf_add(b, &v, sizeof v);
}

void pb_put_f32(lw_buf *b, uint32_t number, float v) {
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  if (!bits) return;
  put_tag(b, number, PB_I32);
  lw_buf_add(b, &v, sizeof v);
}

void pb_put_bytes(lw_buf *b, uint32_t number, const void *p, size_t n) {
  put_tag(b, number, PB_LEN);
  pb_put_varint(b, n);
  lw_buf_add(b, p, n);
}

void pb_put_str(lw_buf *b, uint32_t number, const char *s) {
  if (s && *s) pb_put_bytes(b, number, s, strlen(s));
}

void pb_put_i64s(lw_buf *b, uint32_t number, const int64_t *v, int64_t n) {
  lw_buf packed = {0};
  for (int64_t i = 0; i < n; i++) pb_put_varint(&packed, (uint64_t)v[i]);
  if (n) pb_put_bytes(b, number, packed.data, packed.len);
  lw_buf_free(&packed);
}

void pb_put_i32s(lw_buf *b, uint32_t number, const int32_t *v, int64_t n) {
  lw_buf packed = {0};
  for (int64_t i = 0; i < n; i++)
    pb_put_varint(&packed, (uint64_t)(int64_t)v[i]);
  if (n) pb_put_bytes(b, number, packed.data, packed.len);
  lw_buf_free(&packed);
}

void pb_put_msg(lw_buf *b, uint32_t number, lw_buf *sub) {
  pb_put_bytes(b, number, sub->data, sub->len);
  lw_buf_free(sub);
}
