/* Constants in XLA's one-line form. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/print.h"

/* ---- numbers ---- */

/* max_digits10 of a float type: 2 + mantissa digits * log10(2), upwards of the
 * decimals any value needs. */
static int all_digits(lw_prim t) {
  int digits = lw_prim_table[t].man_bits + 1;
  return (int)ceil(1 + digits * 0.30102999566398119521);
}

static bool has_nan_payload(lw_prim t) {
  switch ((int)t) {
    case LW_F16:
    case LW_BF16:
    case LW_F32:
    case LW_F64:
    case LW_F8E5M2:
    case LW_F8E4M3:
    case LW_F8E3M4:
      return true;
  }
  return false;
}

/* The bits of a real value, or of one part of a complex one. */
static uint64_t raw_bits(const lw_literal *l, int64_t i, int part) {
  lw_prim t = l->shape->type;
  bool complex = lw_prim_is_complex(t);
  size_t size = (size_t)lw_prim_bytes(t) / (complex ? 2 : 1);
  uint64_t bits = 0;
  memcpy(&bits,
         (const char *)l->data +
             ((size_t)i * (complex ? 2 : 1) + (size_t)part) * size,
         size);
  return bits;
}

static void print_nan(lw_buf *b, const lw_literal *l, int64_t i, int part) {
  lw_prim t = lw_prim_part(l->shape->type);
  const lw_prim_info *info = &lw_prim_table[t];
  uint64_t bits = raw_bits(l, i, part);
  bool negative = bits >> (info->bits - 1) & 1;
  if (t == LW_F8E8M0FNU) negative = false;
  lw_buf_str(b, negative ? "-nan" : "nan");
  if (!has_nan_payload(t)) return;
  uint64_t payload = bits & (((uint64_t)1 << info->man_bits) - 1);
  if (payload != (uint64_t)1 << (info->man_bits - 1))
    lw_buf_printf(b, "(0x%llx)", (unsigned long long)payload);
}

/* f32 and f64 try the digits that always survive first (6 and 15). */
static void print_finite(lw_buf *b, lw_prim t, double v) {
  char s[40];
  int digits = t == LW_F32 ? 6 : t == LW_F64 ? 15 : all_digits(t);
  snprintf(s, sizeof s, "%.*g", digits, v);
  bool exact = t == LW_F32   ? strtof(s, NULL) == (float)v
               : t == LW_F64 ? strtod(s, NULL) == v
                             : true;
  if (!exact) snprintf(s, sizeof s, "%.*g", all_digits(t), v);
  lw_buf_str(b, s);
}

static void print_float(lw_buf *b, const lw_literal *l, int64_t i, int part) {
  double v = lw_literal_get_f64(l, i, part);
  if (isnan(v))
    print_nan(b, l, i, part);
  else if (isinf(v))
    lw_buf_str(b, v < 0 ? "-inf" : "inf");
  else
    print_finite(b, lw_prim_part(l->shape->type), v);
}

void lw_literal_print_value(lw_buf *b, const lw_literal *l, int64_t i) {
  lw_prim t = l->shape->type;
  if (t == LW_PRED) {
    bool v = lw_literal_get_int(l, i) != 0;
    lw_buf_str(b, l->shape->rank ? (v ? "1" : "0") : (v ? "true" : "false"));
  } else if (t == LW_U64) {
    lw_buf_printf(b, "%llu", (unsigned long long)lw_literal_get_int(l, i));
  } else if (lw_prim_is_int(t)) {
    lw_buf_i64(b, lw_literal_get_int(l, i));
  } else if (lw_prim_is_float(t)) {
    print_float(b, l, i, 0);
  } else {
    lw_buf_chr(b, '(');
    print_float(b, l, i, 0);
    lw_buf_str(b, ", ");
    print_float(b, l, i, 1);
    lw_buf_chr(b, ')');
  }
}

/* ---- the nest of braces ---- */

typedef struct {
  lw_buf *b;
  const lw_literal *lit;
  int64_t next;               /* linear index */
  int64_t outer[LW_MAX_RANK]; /* index in each open dimension */
} nest;

/* Ranks above 3 say where they are: an index comment behind the brace. */
static void open_brace(nest *n, int32_t dim) {
  const lw_shape *s = n->lit->shape;
  bool innermost = dim == s->rank - 1;
  lw_buf_chr(n->b, '{');
  if (s->rank == 1) return;
  if (innermost) {
    if (s->dims[dim] > 1) lw_buf_chr(n->b, ' ');
    return;
  }
  if (s->rank > 3 && dim > 0) {
    lw_buf_printf(n->b, " /*i%d=%lld*/", dim - 1, (long long)n->outer[dim - 1]);
    if (s->dims[dim] > 0) lw_buf_chr(n->b, ' ');
    return;
  }
  lw_buf_chr(n->b, ' ');
}

static void close_brace(nest *n, int32_t dim) {
  const lw_shape *s = n->lit->shape;
  bool innermost = dim == s->rank - 1;
  bool tight = s->rank == 1 || (innermost && s->dims[dim] <= 1);
  lw_buf_str(n->b, tight ? "}" : " }");
}

/* Recursion is as deep as the rank, at most LW_MAX_RANK. */
static void print_dim(nest *n, int32_t dim) {
  const lw_shape *s = n->lit->shape;
  if (dim == s->rank) {
    lw_literal_print_value(n->b, n->lit, n->next++);
    return;
  }
  open_brace(n, dim);
  for (int64_t i = 0; i < s->dims[dim]; i++) {
    if (i) lw_buf_str(n->b, ", ");
    n->outer[dim] = i;
    print_dim(n, dim + 1);
  }
  close_brace(n, dim);
}

void lw_literal_print(lw_buf *b, const lw_literal *l) {
  if (!lw_shape_is_tuple(l->shape)) {
    nest n = {.b = b, .lit = l};
    print_dim(&n, 0);
    return;
  }
  lw_buf_str(b, "( ");
  for (int32_t i = 0; i < l->n_elems; i++) {
    if (i) lw_buf_str(b, ", ");
    lw_literal_print(b, l->elems[i]);
  }
  lw_buf_str(b, " )");
}
