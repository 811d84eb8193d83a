#include "lib/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/fold.h"

/* ---- the two block functions ---- */

static uint32_t rotate(uint32_t v, int by) {
  return (v << by) | (v >> (32 - by));
}

/* Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). */
void lw_threefry(const uint32_t key[2], uint32_t x[2]) {
  static const int turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  uint32_t k[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1bd11bdau};
  x[0] += k[0];
  x[1] += k[1];
  for (uint32_t r = 0; r < 5; r++) {
    for (int j = 0; j < 4; j++) {
      x[0] += x[1];
      x[1] = rotate(x[1], turns[r % 2][j]) ^ x[0];
    }
    x[0] += k[(r + 1) % 3];
    x[1] += k[(r + 2) % 3] + r + 1;
  }
}

void lw_philox(const uint32_t key[2], uint32_t x[4]) {
  uint32_t k0 = key[0], k1 = key[1];
  for (int r = 0; r < 10; r++) {
    uint64_t p0 = (uint64_t)x[0] * 0xd2511f53u;
    uint64_t p1 = (uint64_t)x[2] * 0xcd9e8d57u;
    uint32_t y0 = (uint32_t)(p1 >> 32) ^ x[1] ^ k0, y1 = (uint32_t)p1;
    uint32_t y2 = (uint32_t)(p0 >> 32) ^ x[3] ^ k1, y3 = (uint32_t)p0;
    x[0] = y0;
    x[1] = y1;
    x[2] = y2;
    x[3] = y3;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
}

/* ---- rng-bit-generator ---- */

static void put(lw_prim t, void *out, int64_t i, uint64_t v) {
  switch (lw_prim_bytes(t)) {
    case 1:
      ((uint8_t *)out)[i] = (uint8_t)v;
      break;
    case 2:
      ((uint16_t *)out)[i] = (uint16_t)v;
      break;
    case 4:
      ((uint32_t *)out)[i] = (uint32_t)v;
      break;
    default:
      ((uint64_t *)out)[i] = v;
  }
}

static void threefry_block(const uint32_t key[2], uint64_t counter,
                           uint32_t x[2]) {
  x[0] = (uint32_t)counter;
  x[1] = (uint32_t)(counter >> 32);
  lw_threefry(key, x);
}

/* 32 bits and less: element 2j and 2j+1 of the paired dimension are the two
 * words of one block; blocks are counted row-major over the halved shape. */
static uint64_t threefry_narrow(const uint32_t key[2], uint64_t counter,
                                const lw_shape *s, void *out) {
  int32_t dim = lw_threefry_dim(s);
  int64_t extent = s->rank ? s->dims[dim] : 1, half = (extent + 1) / 2;
  int64_t inner = 1, outer = 1;
  for (int32_t d = 0; d < s->rank; d++)
    if (d != dim) *(d < dim ? &outer : &inner) *= s->dims[d];
  uint64_t block = counter;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t h = 0; h < half; h++)
      for (int64_t i = 0; i < inner; i++, block++) {
        uint32_t x[2];
        threefry_block(key, block, x);
        for (int64_t w = 0; w < 2 && 2 * h + w < extent; w++)
          put(s->type, out, (o * extent + 2 * h + w) * inner + i, x[w]);
      }
  return block;
}

static uint64_t threefry_wide(const uint32_t key[2], uint64_t counter,
                              const lw_shape *s, void *out) {
  for (int64_t i = 0; i < s->elements; i++) {
    uint32_t x[2];
    threefry_block(key, counter + (uint64_t)i, x);
    ((uint64_t *)out)[i] = x[0] | (uint64_t)x[1] << 32;
  }
  return counter + (uint64_t)s->elements;
}

/* Blocks of four words; 64-bit elements take two words, low first. */
static void philox_bits(const uint32_t key[2], uint64_t counter[2],
                        const lw_shape *s, void *out) {
  bool wide = lw_prim_bytes(s->type) == 8;
  int64_t words = s->elements * (wide ? 2 : 1);
  for (int64_t w = 0; w < words; w += 4) {
    uint32_t x[4] = {(uint32_t)counter[0], (uint32_t)(counter[0] >> 32),
                     (uint32_t)counter[1], (uint32_t)(counter[1] >> 32)};
    lw_philox(key, x);
    for (int64_t k = 0; k < 4 && w + k < words; k++) {
      if (!wide)
        put(s->type, out, w + k, x[k]);
      else if (k % 2 == 0)
        ((uint64_t *)out)[(w + k) / 2] = x[k] | (uint64_t)x[k + 1] << 32;
    }
    if (++counter[0] == 0) counter[1]++;
  }
}

lw_status lw_rng_bits(lw_rng_algorithm algorithm, int64_t n_state,
                      const uint64_t *state, uint64_t *new_state,
                      const lw_shape *s, void *out) {
  bool philox = algorithm != LW_RNG_THREE_FRY;
  int width = lw_prim_table[s->type].bits;
  if (n_state < 2 || n_state > (philox ? 3 : 2))
    return lw_error(LW_INVALID_ARGUMENT,
                    "a state of %lld words does not fit the algorithm",
                    (long long)n_state);
  if (!lw_shape_is_array(s) || width < 8 || lw_prim_is_complex(s->type))
    return lw_error(LW_INVALID_ARGUMENT, "random bits of type %s",
                    lw_prim_name(s->type));
  uint32_t key[2] = {(uint32_t)state[0], (uint32_t)(state[0] >> 32)};
  new_state[0] = state[0];
  if (!philox) {
    new_state[1] =
        (width == 64 ? threefry_wide : threefry_narrow)(key, state[1], s, out);
    return NULL;
  }
  /* A state of two words takes the key as the counter's high half. */
  uint64_t counter[2] = {state[1], n_state > 2 ? state[2] : state[0]};
  philox_bits(key, counter, s, out);
  new_state[1] = counter[0];
  if (n_state > 2) new_state[2] = counter[1];
  return NULL;
}

/* ---- the stateful rng ---- */

static const char order_key[] = "lawson.rng";

static bool noted_order(const lw_inst *rng, int64_t *order) {
  const lw_frontend_attrs *f = &rng->frontend_attrs;
  for (int32_t k = 0; k < f->n; k++) {
    if (strcmp(f->v[k].key, order_key)) continue;
    char *end;
    *order = strtoll(f->v[k].value, &end, 10);
    return end != f->v[k].value && !*end;
  }
  return false;
}

int64_t lw_rng_order(const lw_inst *rng) {
  int64_t order = 0;
  const lw_module *m = rng->parent->module;
  if (noted_order(rng, &order)) return order;
  order = 0;
  for (const lw_comp *c = m->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next) {
      if (i == rng) return order;
      order += i->opcode == LW_OP_RNG;
    }
  return order;
}

/* Frontend attributes are sorted by key. */
static void note_order(lw_module *m, lw_inst *rng, int64_t order) {
  lw_frontend_attrs *f = &rng->frontend_attrs;
  lw_kv *v = LW_NEW_ARRAY(m->arena, lw_kv, f->n + 1);
  char text[24];
  snprintf(text, sizeof text, "%lld", (long long)order);
  int32_t at = 0, n = 0;
  while (at < f->n && strcmp(f->v[at].key, order_key) < 0) v[n++] = f->v[at++];
  v[n++] = (lw_kv){order_key, lw_context_cstr(m->ctx, text)};
  if (at < f->n && !strcmp(f->v[at].key, order_key)) at++;
  while (at < f->n) v[n++] = f->v[at++];
  f->v = v;
  f->n = n;
}

void lw_rng_number(lw_module *m) {
  int64_t order = 0;
  for (lw_comp *c = m->first_comp; c; c = c->next)
    for (lw_inst *i = c->first; i; i = i->next) {
      if (i->opcode != LW_OP_RNG) continue;
      int64_t noted;
      if (!noted_order(i, &noted)) note_order(m, i, order);
      order++;
    }
}

static uint64_t word(uint64_t seed, int64_t order, uint64_t i) {
  uint32_t key[2] = {(uint32_t)seed ^ (uint32_t)(seed >> 32), (uint32_t)order};
  uint32_t x[2];
  threefry_block(key, i, x);
  return x[0] | (uint64_t)x[1] << 32;
}

/* In [0, 1), 53 bits. */
static double unit(uint64_t bits) { return (double)(bits >> 11) * 0x1p-53; }

/* Box and Muller's method on two draws; 1 - u keeps the logarithm finite. */
static double normal(uint64_t a, uint64_t b) {
  double r = sqrt(-2 * log(1 - unit(a)));
  return r * cos(6.283185307179586 * unit(b));
}

static void fill_int(lw_literal *l, uint64_t seed, int64_t order, int64_t a,
                     int64_t b, int64_t n) {
  uint64_t span = (uint64_t)b - (uint64_t)a;
  for (int64_t i = 0; i < n; i++) {
    uint64_t v = word(seed, order, (uint64_t)i);
    lw_literal_set_int(l, i, a + (int64_t)(span ? v % span : 0));
  }
}

/* Rounding may reach b; the next draw of the element is taken then. */
static double uniform(uint64_t seed, int64_t order, uint64_t i, lw_literal *one,
                      double a, double b) {
  for (uint64_t turn = 0;; turn++) {
    double v = a + unit(word(seed, order, i + (turn << 48))) * (b - a);
    lw_literal_set_f64(one, 0, 0, v);
    if (lw_literal_get_f64(one, 0, 0) < b || !(a < b) || turn > 64) return v;
  }
}

lw_status lw_rng_fill(uint64_t seed, int64_t order, lw_distribution dist,
                      lw_prim t, int64_t n, const void *a, const void *b,
                      void *out) {
  char one_data[16] = {0};
  lw_shape s = {.type = t, .elements = n}, scalar = {.type = t, .elements = 1};
  lw_literal l = {.shape = &s, .data = out};
  lw_literal la = {.shape = &scalar, .data = (void *)(uintptr_t)a};
  lw_literal lb = {.shape = &scalar, .data = (void *)(uintptr_t)b};
  lw_literal one = {.shape = &scalar, .data = one_data};
  bool real = lw_prim_is_float(t);
  if (!(real || (dist == LW_RNG_UNIFORM && !lw_prim_is_complex(t))))
    return lw_error(LW_UNIMPLEMENTED, "rng of type %s", lw_prim_name(t));
  if (!real) {
    fill_int(&l, seed, order, lw_literal_get_int(&la, 0),
             lw_literal_get_int(&lb, 0), n);
    return NULL;
  }
  double x = lw_literal_get_f64(&la, 0, 0), y = lw_literal_get_f64(&lb, 0, 0);
  for (int64_t i = 0; i < n; i++) {
    uint64_t at = (uint64_t)i;
    double v = dist == LW_RNG_NORMAL
                   ? x + y * normal(word(seed, order, 2 * at),
                                    word(seed, order, 2 * at + 1))
                   : uniform(seed, order, at, &one, x, y);
    lw_literal_set_f64(&l, i, 0, v);
  }
  return NULL;
}
