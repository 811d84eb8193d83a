/* The page: three files of src/lab/page, built in, around the model; and the
 * graph alone as SVG. */
#include <string.h>

#include "fusion/fuse.h"
#include "lab/page/page.h"
#include "lab/xray_impl.h"

/* ---- escaping ---- */

/* Valid UTF-8 only, and nothing that XML forbids: what is not becomes U+FFFD.
 * The length of the character at s, 0 when there is none. */
static int character(const unsigned char *s) {
  static const struct {
    unsigned char mask, lead, low, high;
    int n;
  } kinds[] = {{0xE0, 0xC0, 0x80, 0xBF, 2},
               {0xF0, 0xE0, 0x80, 0xBF, 3},
               {0xF8, 0xF0, 0x80, 0xBF, 4}};
  if (*s < 0x80) return *s >= 0x20 || *s == '\n' || *s == '\t' ? 1 : 0;
  if (*s < 0xC2 || *s > 0xF4) return 0;
  for (size_t k = 0; k < 3; k++) {
    if ((*s & kinds[k].mask) != kinds[k].lead) continue;
    for (int j = 1; j < kinds[k].n; j++)
      if (s[j] < 0x80 || s[j] > 0xBF) return 0;
    bool bad = (*s == 0xE0 && s[1] < 0xA0) || (*s == 0xED && s[1] > 0x9F) ||
               (*s == 0xF0 && s[1] < 0x90) || (*s == 0xF4 && s[1] > 0x8F);
    return bad ? 0 : kinds[k].n;
  }
  return 0;
}

static void text_upto(lw_buf *b, const char *s, size_t most) {
  size_t shown = 0;
  while (*s && shown++ < most) {
    int n = character((const unsigned char *)s);
    const char *as = *s == '<'   ? "&lt;"
                     : *s == '>' ? "&gt;"
                     : *s == '&' ? "&amp;"
                     : *s == '"' ? "&quot;"
                     : n == 0    ? "\xEF\xBF\xBD"
                                 : NULL;
    if (as)
      lw_buf_str(b, as);
    else
      lw_buf_add(b, s, (size_t)n);
    s += n ? n : 1;
  }
  if (*s) lw_buf_str(b, "\xE2\x80\xA6");
}

static void text(lw_buf *b, const char *s) { text_upto(b, s, SIZE_MAX); }

/* JSON inside a script element: no "<" that could end it, no broken UTF-8. */
static void script_json(lw_buf *b, const char *s) {
  while (*s) {
    int n = character((const unsigned char *)s);
    if (*s == '<')
      lw_buf_str(b, "\\u003c");
    else if (n == 0)
      lw_buf_str(b, "\\ufffd");
    else
      lw_buf_add(b, s, (size_t)n);
    s += n ? n : 1;
  }
}

/* ---- the page ---- */

static void fill(lw_buf *b, const lw_xray *x, lw_xray_page_of pages,
                 const char *key, size_t n) {
  if (!strncmp(key, "title", n)) {
    text(b, x->after->name);
  } else if (!strncmp(key, "style", n)) {
    lw_buf_str(b, lw_page_css);
  } else if (!strncmp(key, "script", n)) {
    lw_buf_str(b, lw_page_js);
  } else if (!strncmp(key, "model", n)) {
    lw_buf json = {0};
    lw_xray_json(&json, x, pages);
    script_json(b, lw_buf_cstr(&json));
    lw_buf_free(&json);
  }
}

/* The template's {{key}} are filled; what is filled in is not looked at. */
void lw_xray_html(lw_buf *b, const lw_xray *x, lw_xray_page_of pages) {
  const char *p = lw_page_html, *at;
  while ((at = strstr(p, "{{"))) {
    const char *end = strstr(at, "}}");
    if (!end) break;
    lw_buf_add(b, p, (size_t)(at - p));
    fill(b, x, pages, at + 2, (size_t)(end - at - 2));
    p = end + 2;
  }
  lw_buf_str(b, p);
}

/* ---- SVG ---- */

/* As thick as its bytes: 1 px to 9 px, by the logarithm between 64 B and
 * 64 MB. base.js has the same rule. */
static double thickness(int64_t bytes) {
  double w = 1;
  for (int64_t v = 64; v < bytes && w < 9; v *= 4) w += 0.8;
  return w;
}

typedef struct {
  int64_t bytes;
  bool wall, runs;
} flow;

/* What goes from one box to another. */
static flow flow_between(const lw_xray *x, int32_t from, int32_t to) {
  flow f = {0};
  lw_map seen = {0};
  for (size_t k = 0; k < x->edges.len; k++) {
    const xray_edge *e = &x->edges.data[k];
    const xray_node *n = &x->nodes.data[e->from];
    if (n->box != from || x->nodes.data[e->to].box != to) continue;
    uint64_t *had = lw_map_put(&seen, (uint64_t)e->from);
    if (!*had) f.bytes += e->bytes;
    *had = 1;
    f.wall |= n->wall >= 0 && x->e.walls.data[n->wall].in_memory;
  }
  lw_map_free(&seen);
  f.runs = x->boxes.data[from].runs && x->boxes.data[to].runs;
  return f;
}

static void svg_curve(lw_buf *b, const lw_xray *x, const xray_curve *c) {
  flow f = flow_between(x, c->from, c->to);
  lw_buf_printf(b,
                "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" "
                "d=\"M%.1f %.1fC",
                f.wall   ? "#c62828"
                : f.runs ? "#37474f"
                         : "#b0bec5",
                f.runs || f.wall ? thickness(f.bytes) : 1.0, c->xy[0],
                c->xy[1]);
  for (int32_t k = 1; k < c->n; k++)
    lw_buf_printf(b, " %.1f %.1f", c->xy[2 * k], c->xy[2 * k + 1]);
  lw_buf_str(b, "\"><title>");
  text(b, x->boxes.data[c->from].inst->name);
  lw_buf_str(b, " to ");
  text(b, x->boxes.data[c->to].inst->name);
  lw_buf_printf(b, ", %lld bytes%s</title></path>\n", (long long)f.bytes,
                f.wall ? ", the wall" : "");
}

static void svg_label(lw_buf *b, double x, double y, const char *s,
                      const char *fill, size_t most) {
  lw_buf_printf(b, "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">", x, y, fill);
  text_upto(b, s, most);
  lw_buf_str(b, "</text>\n");
}

static void svg_box(lw_buf *b, const lw_xray *x, size_t k) {
  const xray_box *box = &x->boxes.data[k];
  const xray_place *p = &x->by_box.places[k];
  if (p->w <= 0) return;
  bool fusion = lw_inst_is_fusion(box->inst);
  size_t most = (size_t)((p->w - 12) / 6.7);
  lw_buf_printf(
      b,
      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"5\" "
      "fill=\"%s\" stroke=\"%s\" stroke-width=\"%s\"/>\n",
      p->x - p->w / 2, p->y - p->h / 2, p->w, p->h,
      fusion      ? "#fff3d6"
      : box->runs ? "#e3edf7"
                  : "#f5f5f5",
      box->wall >= 0 ? "#c62828" : "#607d8b", fusion ? "1.6" : "1");
  if (!box->runs) {
    svg_label(b, p->x, p->y + 4, box->inst->name, "#455a64", most);
    return;
  }
  svg_label(b, p->x, p->y - 3, box->inst->name, "#102027", most);
  svg_label(b, p->x, p->y + 11, xray_shape((lw_xray *)x, box->inst->shape),
            "#455a64", most);
}

void lw_xray_svg(lw_buf *b, const lw_xray *x) {
  const xray_layout *l = &x->by_box;
  lw_buf_printf(b,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
                "viewBox=\"-8 -8 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
                "font-family=\"DejaVu Sans Mono, monospace\" font-size=\"11\" "
                "text-anchor=\"middle\">\n<title>",
                l->w + 16, l->h + 16, l->w + 16, l->h + 16);
  text(b, x->after->name);
  lw_buf_printf(b, ": %lld kernels after fusion</title>\n",
                (long long)x->report_after.kernels);
  lw_buf_printf(b,
                "<rect x=\"-8\" y=\"-8\" width=\"%.0f\" height=\"%.0f\" "
                "fill=\"#fff\"/>\n",
                l->w + 16, l->h + 16);
  for (size_t k = 0; k < l->curves.len; k++) {
    const xray_curve *c = &l->curves.data[k];
    bool known = c->from >= 0 && c->to >= 0 && c->from < l->n && c->to < l->n;
    if (known) svg_curve(b, x, c);
  }
  for (size_t k = 0; k < x->boxes.len && (int32_t)k < l->n; k++)
    svg_box(b, x, k);
  lw_buf_str(b, "</svg>\n");
}
