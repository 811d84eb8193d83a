/* Results as static pages (results_page.h). */
#include "lab/results_page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "lab/results_plot.h"

struct lw_results_page {
  char *folder;
  lw_buf rows; /* of the index */
};

static const char style[] =
    ":root{color-scheme:light "
    "dark;--a:#0060b9;--b:#b84600;--c:#6b6b6b;--bg:#fff;--fg:#1a1a1a}\n"
    "@media(prefers-color-scheme:dark){:root{--a:#74b6ff;--b:#ffa05c;"
    "--c:#a8a8a8;--bg:#15171a;--fg:#ececec}}\n"
    "body{background:var(--bg);color:var(--fg);font:16px/1.5 "
    "system-ui,sans-serif;max-width:62rem;margin:0 auto;"
    "padding:1rem}\n"
    "h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.15rem;"
    "margin-top:2rem}\n"
    "table{border-collapse:collapse}caption{text-align:left;font-weight:600;"
    "padding:.3rem 0}\n"
    "th,td{border:1px solid color-mix(in srgb,currentColor 30%,transparent);"
    "padding:.2rem .6rem;text-align:left}td.n{text-align:right;"
    "font-variant-numeric:tabular-nums}\n"
    ".scroll{overflow-x:auto}.verdict{font-size:1.3rem;font-weight:700}\n"
    "a{color:var(--a)}a:focus-visible,summary:focus-visible,"
    ".scroll:focus-visible{outline:3px solid var(--b);outline-offset:2px}\n"
    "svg{width:100%;height:auto}.tick{font-size:12px;fill:currentColor}\n"
    ".grid{stroke:currentColor;opacity:.15}.one{stroke:currentColor;"
    "stroke-dasharray:4 3}.margin{fill:currentColor;opacity:.1}\n"
    ".range{stroke-width:3}.range.a{stroke:var(--a)}.range.b{stroke:var(--b)}"
    ".range.c{stroke:var(--c)}\n"
    ".a,.dot.a{fill:var(--a)}.b,.dot.b{fill:var(--b)}.c,.dot.c{fill:var(--c)}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem}"
    "dt{font-weight:600}dd{margin:0;overflow-wrap:anywhere}\n"
    ".when{white-space:nowrap}.skip{position:absolute;left:-999rem}.skip:focus{"
    "position:static}\n";

void lw_html_escape(lw_buf *b, const char *s) {
  for (; *s; s++) {
    switch (*s) {
      case '&':
        lw_buf_str(b, "&amp;");
        break;
      case '<':
        lw_buf_str(b, "&lt;");
        break;
      case '>':
        lw_buf_str(b, "&gt;");
        break;
      case '"':
        lw_buf_str(b, "&quot;");
        break;
      case '\'':
        lw_buf_str(b, "&#39;");
        break;
      default: /* control characters have no place in HTML */
        if ((unsigned char)*s >= 32 || *s == '\n' || *s == '\t')
          lw_buf_chr(b, *s);
    }
  }
}

static void open_page(lw_buf *b, const char *title) {
  lw_buf_str(b,
             "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\""
             "utf-8\">\n<meta name=\"viewport\" content=\"width=device-width,"
             "initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n"
             "<title>");
  lw_html_escape(b, title);
  lw_buf_printf(b,
                "</title>\n<style>\n%s</style>\n</head>\n<body>\n<a class=\""
                "skip\" href=\"#main\">To the content</a>\n<main id=\"main\">"
                "\n<h1>",
                style);
  lw_html_escape(b, title);
  lw_buf_str(b, "</h1>\n");
}

static void close_page(lw_buf *b) {
  lw_buf_str(b, "</main>\n</body>\n</html>\n");
}

/* ---- numbers ---- */

static void link_number(lw_buf *b, const char *to, const char *fmt, double v) {
  lw_buf_printf(b, "<a href=\"#%s\">", to);
  char text[64];
  snprintf(text, sizeof text, fmt, v);
  lw_buf_printf(b, "%s</a>", text);
}

static void cell(lw_buf *b, const char *to, const char *fmt, double v) {
  lw_buf_str(b, "<td class=\"n\">");
  link_number(b, to, fmt, v);
  lw_buf_str(b, "</td>");
}

static void add_judgement_row(lw_buf *b, const char *name, const char *to,
                              const lw_judgement *j, double scale) {
  const lw_estimate *e = &j->estimate;
  if (e->processes < 2) return;
  lw_buf_printf(b, "<tr><th scope=\"row\">%s</th>", name);
  for (int s = 0; s < 2; s++) {
    cell(b, to, "%.5g", j->side[s].median * scale);
    lw_buf_str(b, "<td class=\"n\">");
    link_number(b, to, "%.5g", j->side[s].min * scale);
    lw_buf_str(b, "&nbsp;to&nbsp;");
    link_number(b, to, "%.5g", j->side[s].max * scale);
    lw_buf_str(b, "</td>");
  }
  cell(b, to, "%.4f", exp(e->center));
  lw_buf_str(b, "<td class=\"n\">");
  link_number(b, to, "%.4f", exp(e->low));
  lw_buf_str(b, "&nbsp;to&nbsp;");
  link_number(b, to, "%.4f", exp(e->high));
  lw_buf_str(b, "</td>");
  cell(b, to, "%.4g&nbsp;%%", 100 * (1 - e->alpha));
  cell(b, to, "%.0f", (double)j->pairs);
  lw_buf_str(b, "</tr>\n");
}

static void add_numbers(lw_buf *b, const lw_run_results *r, bool elsewhere) {
  lw_buf_printf(b,
                "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                "aria-label=\"Numbers\"><table>\n<caption>Times%s; each number "
                "leads to what it was made from</caption>\n<tr><td></td>"
                "<th scope=\"col\">a: median</th><th scope=\"col\">range</th>"
                "<th scope=\"col\">b: median</th><th scope=\"col\">range</th>"
                "<th scope=\"col\">b/a</th><th scope=\"col\">interval</th>"
                "<th scope=\"col\">level</th><th scope=\"col\">pairs</th></tr>"
                "\n",
                elsewhere ? "" : " in ms");
  add_judgement_row(b, "steady", "samples", &r->main, elsewhere ? 1 : 1e-6);
  add_judgement_row(b, "control: a and a again", "samples", &r->control, 1e-6);
  add_judgement_row(b, "compile", "processes", &r->compile, 1);
  add_judgement_row(b, "first call", "processes", &r->first, 1);
  lw_buf_str(b, "</table></div>\n");
}

static void add_spread(lw_buf *b, const lw_spread *s, double scale,
                       const char *unit) {
  if (!s->n) return;
  lw_buf_str(b, "<ul>\n<li>");
  link_number(b, "samples", "%.0f", s->n);
  lw_buf_str(b, " runs, median ");
  link_number(b, "samples", "%.5g", s->median * scale);
  lw_buf_printf(b, " %s, ", unit);
  link_number(b, "samples", "%.5g", s->min * scale);
  lw_buf_str(b, " to ");
  link_number(b, "samples", "%.5g", s->max * scale);
  lw_buf_str(b, "</li>\n<li>spread ");
  link_number(b, "samples", "%.1f&nbsp;%%", 100 * s->over_min);
  lw_buf_str(b, " as (max−min)/min, ");
  link_number(b, "samples", "%.1f&nbsp;%%", 100 * s->over_median);
  lw_buf_str(b, " over the median</li>\n");
  if (s->n > 1) {
    lw_buf_str(b, "<li>the first is ");
    link_number(b, "samples", "%+.1f&nbsp;%%", 100 * s->first_off);
    lw_buf_str(b,
               " from the rest’s median</li>\n<li>so many runs a side could "
               "tell programs apart that differ by ");
    link_number(b, "samples", "%.0f&nbsp;%%", 100 * s->resolves);
    lw_buf_str(b, "</li>\n");
  }
  lw_buf_str(b, "</ul>\n");
}

/* ---- raw data ---- */

static void add_samples(lw_buf *b, const lw_run_data *d, bool elsewhere) {
  lw_buf_printf(
      b,
      "<h2 id=\"samples\">Samples</h2>\n<p>Where they come from: <a "
      "href=\"#provenance\">provenance</a>.</p>\n<details><summary>All "
      "samples, "
      "in order</summary>\n<table><caption>Values%s</caption>\n<tr><th "
      "scope=\"col\">process</th><th scope=\"col\">block</th><th scope=\"col\">"
      "side</th><th scope=\"col\">median</th><th scope=\"col\">least</th><th "
      "scope=\"col\">largest</th><th scope=\"col\">calls</th><th "
      "scope=\"col\">load</th><th scope=\"col\">at</th></tr>\n",
      elsewhere ? "" : " in ms");
  double scale = elsewhere ? 1 : 1e-6;
  for (size_t k = 0; k < d->blocks.len; k++) {
    const lw_block *x = &d->blocks.data[k];
    for (int32_t i = 0; i < x->n; i++) {
      const lw_sample *s = &x->samples[i];
      lw_buf_printf(b,
                    "<tr id=\"s%zu-%d\"><td class=\"n\">%d</td><td class=\"n\">"
                    "%d</td><td>%c</td><td class=\"n\">%.6g</td><td class=\""
                    "n\">%.6g</td><td class=\"n\">%.6g</td><td class=\"n\">"
                    "%lld</td><td class=\"n\">",
                    k, i, x->round, x->number, s->side, s->median_ns * scale,
                    s->min_ns * scale, s->max_ns * scale, (long long)s->runs);
      if (!isnan(x->load)) lw_buf_printf(b, "%.2f", x->load);
      lw_buf_str(b, "</td><td>");
      lw_html_escape(b, x->started);
      lw_buf_str(b, "</td></tr>\n");
    }
  }
  lw_buf_str(b, "</table></details>\n");
}

static void optional_cell(lw_buf *b, double v) {
  lw_buf_str(b, "<td class=\"n\">");
  if (!isnan(v)) lw_buf_printf(b, "%.5g", v);
  lw_buf_str(b, "</td>");
}

static void add_processes(lw_buf *b, const lw_run_data *d) {
  lw_buf_str(b,
             "<h2 id=\"processes\">Processes</h2>\n<details><summary>All "
             "processes, in order</summary>\n<table><caption>Times in ms"
             "</caption>\n<tr><th scope=\"col\">process</th><th scope=\"col\">"
             "side</th><th scope=\"col\">started as</th><th scope=\"col\">load"
             "</th><th scope=\"col\">compile</th><th scope=\"col\">first call"
             "</th><th scope=\"col\">warm</th></tr>\n");
  for (size_t k = 0; k < d->processes.len; k++) {
    const lw_run_process *p = &d->processes.data[k];
    lw_buf_printf(b,
                  "<tr><td class=\"n\">%d</td><td>%c</td><td class=\"n\">%d"
                  "</td>",
                  p->round, p->side, p->position + 1);
    optional_cell(b, p->load_ms);
    optional_cell(b, p->compile_ms);
    optional_cell(b, p->first_ms);
    optional_cell(b, p->steady_ms);
    lw_buf_str(b, "</tr>\n");
  }
  lw_buf_str(b, "</table></details>\n");
}

static void add_json(lw_buf *b, const cJSON *o, int depth) {
  lw_buf_str(b, "<dl>\n");
  const cJSON *v;
  cJSON_ArrayForEach(v, o) {
    lw_buf_str(b, "<dt>");
    lw_html_escape(b, v->string ? v->string : "");
    lw_buf_str(b, "</dt><dd>");
    if (cJSON_IsObject(v) && depth < 8) {
      add_json(b, v, depth + 1);
    } else if (cJSON_IsString(v)) {
      lw_html_escape(b, v->valuestring);
    } else {
      char *text = cJSON_PrintUnformatted(v);
      lw_html_escape(b, text ? text : "");
      cJSON_free(text);
    }
    lw_buf_str(b, "</dd>\n");
  }
  lw_buf_str(b, "</dl>\n");
}

static void add_text_json(lw_buf *b, const char *text) {
  cJSON *j = cJSON_Parse(text);
  add_json(b, j, 0);
  cJSON_Delete(j);
}

/* ---- a run ---- */

/* A file's name from a uid, which an import may have made anything. */
static void file_name(const lw_run *r, lw_buf *out) {
  static const char fine[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  size_t len = strlen(r->uid);
  if (len <= 64 && strspn(r->uid, fine) == len) {
    lw_buf_printf(out, "run-%s.html", r->uid);
  } else {
    lw_buf_printf(out, "run-%016llx.html",
                  (unsigned long long)lw_hash_bytes(r->uid, len, 0));
  }
}

static void add_verdict(lw_buf *b, const lw_run_data *d,
                        const lw_run_results *r) {
  lw_buf_printf(b, "<p class=\"verdict\">%s</p>\n", lw_run_verdict(d, r));
  const lw_estimate *e = &r->main.estimate;
  if (e->processes > 1) {
    lw_buf_str(b, "<p>b takes ");
    link_number(b, "samples", "%.4f", exp(e->center));
    lw_buf_str(b, " times the time of a; the interval is ");
    link_number(b, "samples", "%.4f", exp(e->low));
    lw_buf_str(b, " to ");
    link_number(b, "samples", "%.4f", exp(e->high));
    lw_buf_printf(b, ", SAME would be within %g&nbsp;%%.</p>\n",
                  100 * r->margin);
  }
  if (r->main.pairs_needed) {
    lw_buf_str(b, "<p>About ");
    link_number(b, "samples", "%.0f", (double)r->main.pairs_needed);
    lw_buf_str(b, " pairs would decide, in four of five cases.</p>\n");
  }
  bool off = r->control.verdict == LW_FASTER || r->control.verdict == LW_SLOWER;
  if (off)
    lw_buf_str(b,
               "<p><strong>The control, a against itself, shows a "
               "difference: do not trust this run.</strong></p>\n");
}

static void add_body(lw_buf *b, const lw_run_data *d, const lw_run_results *r) {
  bool elsewhere = !strcmp(d->run.kind, "samples");
  bool same = !strcmp(d->run.kind, "same");
  double scale = elsewhere ? 1 : 1e-6;
  add_verdict(b, d, r);
  if (same) {
    add_spread(b, &r->lone, 1e-6, "ms");
  } else if (r->main.verdict == LW_NO_COMPARISON) {
    add_spread(b, &r->main.side[r->main.side[0].n ? 0 : 1], scale, "");
  } else {
    add_numbers(b, r, elsewhere);
    lw_buf_str(b, "<h2>Interval</h2>\n");
    lw_plot_intervals(b, d, r);
  }
  lw_buf_str(b, "<h2>Times</h2>\n");
  lw_plot_samples(b, d, scale, elsewhere ? "" : "ms");
  add_samples(b, d, elsewhere);
  if (d->processes.len) add_processes(b, d);
  lw_buf_str(b, "<h2 id=\"settings\">Settings</h2>\n");
  add_text_json(b, d->run.config);
  lw_buf_str(b, "<h2 id=\"provenance\">Provenance</h2>\n");
  add_text_json(b, d->run.provenance);
}

static void add_index_row(lw_results_page *p, const lw_run_data *d,
                          const lw_run_results *r, const char *file) {
  lw_buf *b = &p->rows;
  lw_buf_printf(b, "<tr><td class=\"n\">%lld</td><td class=\"when\">",
                (long long)d->run.id);
  lw_html_escape(b, d->run.created);
  lw_buf_printf(b, "</td><td>%s</td><td class=\"n\">", lw_run_verdict(d, r));
  const lw_estimate *e = &r->main.estimate;
  if (e->processes > 1)
    lw_buf_printf(b, "<a href=\"%s#samples\">%.4f</a> (%.4f to %.4f)", file,
                  exp(e->center), exp(e->low), exp(e->high));
  lw_buf_printf(b, "</td><td><a href=\"%s\">", file);
  lw_html_escape(b, d->run.title);
  lw_buf_str(b, "</a></td></tr>\n");
}

static lw_status write_page(lw_results_page *p, const char *file, lw_buf *b) {
  close_page(b);
  lw_buf path = {0};
  lw_buf_printf(&path, "%s/%s", p->folder, file);
  lw_status st = lw_file_write(lw_buf_cstr(&path), lw_buf_cstr(b), b->len);
  lw_buf_free(&path);
  return st;
}

lw_status lw_results_page_add(lw_results_page *p, const lw_run_data *d) {
  lw_run_results r;
  LW_TRY(lw_run_results_of(d, &r));
  lw_buf b = {0}, file = {0};
  file_name(&d->run, &file);
  open_page(&b, d->run.title);
  lw_buf_printf(&b, "<p><a href=\"index.html\">All runs</a>. Run %lld, ",
                (long long)d->run.id);
  lw_html_escape(&b, d->run.created);
  lw_buf_str(&b, ", ");
  lw_html_escape(&b, d->run.status);
  lw_buf_str(&b, ". <a href=\"#provenance\">Where it comes from</a>.</p>\n");
  add_body(&b, d, &r);
  lw_status st = write_page(p, lw_buf_cstr(&file), &b);
  if (!st) add_index_row(p, d, &r, lw_buf_cstr(&file));
  lw_buf_free(&b);
  lw_buf_free(&file);
  return st;
}

lw_status lw_results_page_new(const char *folder, lw_results_page **out) {
  *out = NULL;
  LW_TRY(lw_dir_make(folder));
  lw_results_page *p = calloc(1, sizeof *p);
  if (!p) lw_oom(sizeof *p);
  p->folder = strdup(folder);
  if (!p->folder) lw_oom(strlen(folder));
  *out = p;
  return NULL;
}

lw_status lw_results_page_end(lw_results_page *p) {
  lw_buf b = {0};
  open_page(&b, "Lawson: results");
  lw_buf_printf(&b,
                "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                "aria-label=\"Runs\"><table>\n<caption>Runs</caption>\n<tr><th "
                "scope=\"col\">run</th><th scope=\"col\">begun</th><th "
                "scope=\"col\">verdict on b</th><th scope=\"col\">b/a</th><th "
                "scope=\"col\">what</th></tr>\n%s</table></div>\n",
                lw_buf_cstr(&p->rows));
  lw_status st = write_page(p, "index.html", &b);
  lw_buf_free(&b);
  return st;
}

void lw_results_page_free(lw_results_page *p) {
  lw_buf_free(&p->rows);
  free(p->folder);
  free(p);
}
