/* Plots (results_plot.h). Sides differ in shape as well as in colour. */
#include "lab/results_plot.h"

#include <math.h>
#include <string.h>

static const int WIDTH = 760, LEFT = 70, RIGHT = 740, TICKS = 5;

static void open_svg(lw_buf *b, const char *id, int height, const char *title,
                     const char *text) {
  lw_buf_printf(b,
                "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\""
                "%s-t %s-d\">\n<title id=\"%s-t\">%s</title>\n<desc id=\""
                "%s-d\">%s</desc>\n",
                WIDTH, height, id, id, id, title, id, text);
}

/* ---- intervals ---- */

typedef struct {
  double low, high; /* logs at the left and the right edge */
} log_axis;

static double x_of(const log_axis *a, double v) {
  double at = (v - a->low) / (a->high - a->low);
  at = at < 0 ? 0 : at > 1 ? 1 : at;
  return LEFT + at * (RIGHT - LEFT);
}

static log_axis axis_of(const lw_run_data *d, const lw_run_results *r) {
  double m = 1.5 * log1p(r->margin);
  log_axis a = {-m, m};
  for (size_t k = 0; k < d->looks.len; k++) {
    a.low = fmin(a.low, d->looks.data[k].low);
    a.high = fmax(a.high, d->looks.data[k].high);
  }
  const lw_estimate *e[2] = {&r->main.estimate, &r->control.estimate};
  for (int k = 0; k < 2; k++) {
    if (e[k]->processes < 2) continue;
    a.low = fmin(a.low, e[k]->low);
    a.high = fmax(a.high, e[k]->high);
  }
  double room = 0.05 * (a.high - a.low);
  return (log_axis){a.low - room, a.high + room};
}

static void draw_frame(lw_buf *b, const log_axis *a, double margin,
                       int bottom) {
  double m = log1p(margin);
  lw_buf_printf(b,
                "<rect class=\"margin\" x=\"%.1f\" y=\"10\" width=\"%.1f\" "
                "height=\"%d\"/>\n",
                x_of(a, -m), x_of(a, m) - x_of(a, -m), bottom - 10);
  lw_buf_printf(b,
                "<line class=\"one\" x1=\"%.1f\" x2=\"%.1f\" y1=\"10\" "
                "y2=\"%d\"/>\n",
                x_of(a, 0), x_of(a, 0), bottom);
  for (int k = 0; k <= TICKS; k++) {
    double v = a->low + (a->high - a->low) * k / TICKS;
    lw_buf_printf(b,
                  "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" "
                  "y=\"%d\">%.3f</text>\n",
                  x_of(a, v), bottom + 16, exp(v));
  }
  lw_buf_printf(b,
                "<text class=\"tick\" text-anchor=\"middle\" x=\"%d\" "
                "y=\"%d\">time of b over time of a</text>\n",
                (LEFT + RIGHT) / 2, bottom + 34);
}

static void draw_interval(lw_buf *b, const log_axis *a, int y, double center,
                          double low, double high, const char *kind,
                          const char *name) {
  lw_buf_printf(b,
                "<text class=\"tick\" text-anchor=\"end\" x=\"%d\" "
                "y=\"%d\">%s</text>\n",
                LEFT - 6, y + 4, name);
  lw_buf_printf(b,
                "<line class=\"range %s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" "
                "y2=\"%d\"><title>%s: %.4f, %.4f to %.4f</title></line>\n",
                kind, x_of(a, low), x_of(a, high), y, y, name, exp(center),
                exp(low), exp(high));
  lw_buf_printf(b, "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%d\" r=\"4\"/>\n",
                kind, x_of(a, center), y);
}

void lw_plot_intervals(lw_buf *b, const lw_run_data *d,
                       const lw_run_results *r) {
  const lw_estimate *e = &r->main.estimate, *c = &r->control.estimate;
  if (e->processes < 2) return;
  int rows = (int)d->looks.len + 1 + (c->processes > 1);
  int bottom = 22 + 22 * rows, y = 26;
  log_axis a = axis_of(d, r);
  lw_buf text = {0};
  lw_buf_printf(&text,
                "The ratio of b's time to a's is %.4f, with an interval from "
                "%.4f to %.4f. The shaded band is the margin of %g %%.",
                exp(e->center), exp(e->low), exp(e->high), 100 * r->margin);
  open_svg(b, "iv", bottom + 42, "Ratio and interval, look by look",
           lw_buf_cstr(&text));
  lw_buf_free(&text);
  draw_frame(b, &a, r->margin, bottom);
  for (size_t k = 0; k < d->looks.len; k++, y += 22) {
    const lw_look_record *l = &d->looks.data[k];
    lw_buf name = {0};
    lw_buf_printf(&name, "after %d", l->rounds);
    draw_interval(b, &a, y, l->center, l->low, l->high, "b",
                  lw_buf_cstr(&name));
    lw_buf_free(&name);
  }
  bool shown = d->looks.len && r->at_look;
  if (!shown) {
    draw_interval(b, &a, y, e->center, e->low, e->high, "b", "all");
    y += 22;
  }
  if (c->processes > 1)
    draw_interval(b, &a, y, c->center, c->low, c->high, "c", "control");
  lw_buf_str(b, "</svg>\n");
}

/* ---- samples ---- */

static const int TOP = 16, BOTTOM = 260, PLOT_RIGHT = 600;

typedef struct {
  double low, high; /* logs of values */
  size_t n;
} sample_axis;

static sample_axis samples_axis(const lw_run_data *d) {
  sample_axis a = {INFINITY, -INFINITY, 0};
  for (size_t k = 0; k < d->blocks.len; k++)
    for (int32_t i = 0; i < d->blocks.data[k].n; i++, a.n++) {
      double v = log(d->blocks.data[k].samples[i].median_ns);
      a.low = fmin(a.low, v);
      a.high = fmax(a.high, v);
    }
  double room = 0.05 * (a.high - a.low) + 1e-3;
  a.low -= room;
  a.high += room;
  return a;
}

static double y_of(const sample_axis *a, double value) {
  double at = (log(value) - a->low) / (a->high - a->low);
  return BOTTOM - at * (BOTTOM - TOP);
}

static void draw_mark(lw_buf *b, char side, double x, double y) {
  if (side == 'a') {
    lw_buf_printf(b, "<circle class=\"a\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>",
                  x, y);
  } else if (side == 'b') {
    lw_buf_printf(b,
                  "<rect class=\"b\" x=\"%.1f\" y=\"%.1f\" width=\"5\" "
                  "height=\"5\"/>",
                  x - 2.5, y - 2.5);
  } else {
    lw_buf_printf(b, "<path class=\"c\" d=\"M%.1f %.1fl3 5h-6z\"/>", x,
                  y - 2.5);
  }
}

static void draw_samples(lw_buf *b, const lw_run_data *d,
                         const sample_axis *a) {
  size_t at = 0;
  double step = (double)(PLOT_RIGHT - LEFT) / (double)(a->n ? a->n : 1);
  for (size_t k = 0; k < d->blocks.len; k++) {
    for (int32_t i = 0; i < d->blocks.data[k].n; i++, at++) {
      const lw_sample *s = &d->blocks.data[k].samples[i];
      draw_mark(b, s->side, LEFT + step * ((double)at + 0.5),
                y_of(a, s->median_ns));
    }
    lw_buf_chr(b, '\n');
  }
}

static void draw_side(lw_buf *b, const lw_run_data *d, const sample_axis *a,
                      char side, double x, double scale, const char *unit) {
  LW_VEC(double) v = {0};
  for (size_t k = 0; k < d->blocks.len; k++)
    for (int32_t i = 0; i < d->blocks.data[k].n; i++)
      if (d->blocks.data[k].samples[i].side == side)
        lw_vec_push(&v, d->blocks.data[k].samples[i].median_ns);
  if (v.len) {
    lw_sort_doubles(v.data, (int32_t)v.len);
    double low = v.data[0], high = v.data[v.len - 1];
    double median = lw_median_of(v.data, (int32_t)v.len);
    lw_buf_printf(b,
                  "<line class=\"range %c\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\""
                  " y2=\"%.1f\"><title>%c: median %.6g %s, %.6g to %.6g"
                  "</title></line>\n",
                  side, x, x, y_of(a, low), y_of(a, high), side, median * scale,
                  unit, low * scale, high * scale);
    draw_mark(b, side, x, y_of(a, median));
    lw_buf_printf(b,
                  "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" "
                  "y=\"%d\">%s</text>\n",
                  x, BOTTOM + 16,
                  side == 'a'   ? "a"
                  : side == 'b' ? "b"
                                : "control");
  }
  lw_vec_free(&v);
}

void lw_plot_samples(lw_buf *b, const lw_run_data *d, double scale,
                     const char *unit) {
  sample_axis a = samples_axis(d);
  if (!a.n) return;
  open_svg(b, "sm", BOTTOM + 44, "Every sample, in the order it was taken",
           "Circles are a, squares are b, triangles the control. At the right, "
           "each side's median and range. The table below has the numbers.");
  for (int k = 0; k <= TICKS; k++) {
    double v = exp(a.low + (a.high - a.low) * k / TICKS);
    lw_buf_printf(b,
                  "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" "
                  "y2=\"%.1f\"/><text class=\"tick\" text-anchor=\"end\" "
                  "x=\"%d\" y=\"%.1f\">%.4g</text>\n",
                  LEFT, PLOT_RIGHT, y_of(&a, v), y_of(&a, v), LEFT - 6,
                  y_of(&a, v) + 4, v * scale);
  }
  draw_samples(b, d, &a);
  for (int k = 0; k < 3; k++)
    draw_side(b, d, &a, (char)('a' + k), PLOT_RIGHT + 40 + 45 * k, scale, unit);
  lw_buf_printf(b,
                "<text class=\"tick\" text-anchor=\"middle\" x=\"%d\" "
                "y=\"%d\">samples in order of time (%s, log scale)</text>\n"
                "</svg>\n",
                (LEFT + PLOT_RIGHT) / 2, BOTTOM + 34, *unit ? unit : "value");
}
