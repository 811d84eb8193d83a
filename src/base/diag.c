#include "base/diag.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_MAX = 100, MAX_SHOWN_LINE = 160 };

void lw_diag_add(lw_diags *d, int32_t line, int32_t column, const char *fmt,
                 ...) {
  d->count++;
  if (d->list.len >= (d->max ? d->max : DEFAULT_MAX)) return;
  lw_buf b = {0};
  va_list ap;
  va_start(ap, fmt);
  lw_buf_vprintf(&b, fmt, ap);
  va_end(ap);
  lw_buf_str(&b, "");
  lw_diag g = {line, column, b.data};
  lw_vec_push(&d->list, g);
}

/* The text of line n (1-based), without its newline. */
static const char *line_text(const lw_diags *d, int32_t n, size_t *len) {
  const char *p = d->text, *end = d->text + d->text_len;
  for (int32_t i = 1; i < n && p < end; i++) {
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    p = nl ? nl + 1 : end;
  }
  const char *nl = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
  *len = (size_t)((nl ? nl : end) - p);
  return p;
}

/* The source line, cut to a window around the column, and a caret below. */
static void render_place(const lw_diags *d, const lw_diag *g, lw_buf *out) {
  size_t len, col = g->column > 0 ? (size_t)g->column - 1 : 0, from = 0;
  const char *s = line_text(d, g->line, &len);
  if (col > len) col = len;
  if (len > MAX_SHOWN_LINE) {
    from = col > MAX_SHOWN_LINE / 2 ? col - MAX_SHOWN_LINE / 2 : 0;
    if (len - from > MAX_SHOWN_LINE) len = from + MAX_SHOWN_LINE;
  }
  lw_buf_str(out, "  ");
  for (size_t i = from; i < len; i++)
    lw_buf_chr(out, (unsigned char)s[i] < ' ' ? ' ' : s[i]);
  lw_buf_str(out, "\n  ");
  for (size_t i = from; i < col; i++) lw_buf_chr(out, ' ');
  lw_buf_str(out, "^\n");
}

void lw_diags_render(const lw_diags *d, lw_buf *out) {
  for (size_t i = 0; i < d->list.len; i++) {
    const lw_diag *g = &d->list.data[i];
    const char *file = d->file ? d->file : "<input>";
    if (g->line > 0)
      lw_buf_printf(out, "%s:%d:%d: error: %s\n", file, g->line, g->column,
                    g->message);
    else
      lw_buf_printf(out, "%s: error: %s\n", file, g->message);
    if (g->line > 0 && d->text) render_place(d, g, out);
  }
  if (d->count > d->list.len)
    lw_buf_printf(out, "... and %zu more\n", d->count - d->list.len);
}

lw_status lw_diags_status(const lw_diags *d) {
  if (!d->count) return NULL;
  lw_buf b = {0};
  lw_diags_render(d, &b);
  if (b.len && b.data[b.len - 1] == '\n') b.data[--b.len] = 0;
  lw_status s = lw_error(LW_INVALID_ARGUMENT, "%s", lw_buf_cstr(&b));
  lw_buf_free(&b);
  return s;
}

void lw_diags_free(lw_diags *d) {
  for (size_t i = 0; i < d->list.len; i++) free(d->list.data[i].message);
  lw_vec_free(&d->list);
}

enum { MAX_NAME = 64, NEAR = 3 };

static int edit_distance(const char *a, const char *b) {
  size_t n = strlen(a), m = strlen(b);
  if (n > MAX_NAME || m > MAX_NAME) return MAX_NAME;
  int row[MAX_NAME + 1];
  for (size_t j = 0; j <= m; j++) row[j] = (int)j;
  for (size_t i = 1; i <= n; i++) {
    int diag = row[0];
    row[0] = (int)i;
    for (size_t j = 1; j <= m; j++) {
      int best = diag + (a[i - 1] != b[j - 1]);
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      diag = row[j];
      row[j] = best;
    }
  }
  return row[m];
}

const char *lw_nearest_name(const char *s, const char *const *names, size_t n) {
  const char *best = NULL;
  int best_d = NEAR + 1;
  for (size_t i = 0; i < n; i++) {
    int d = edit_distance(s, names[i]);
    if (d < best_d && d < (int)strlen(s)) {
      best_d = d;
      best = names[i];
    }
  }
  return best;
}
