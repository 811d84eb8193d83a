/* The index page of a folder of x-rays. */
#include <string.h>

#include "base/file.h"
#include "lab/results_page.h"
#include "xray.h"

void cli_index_add(cli_index *i, const char *page, const char *text,
                   lw_xray_head h) {
  lw_buf *b = &i->rows;
  lw_buf_str(b, "<tr><td><a href=\"");
  lw_html_escape(b, page);
  lw_buf_str(b, "\">");
  lw_html_escape(b, text ? text : page);
  lw_buf_str(b, "</a></td><td>");
  lw_html_escape(b, h.module);
  lw_buf_str(b, "</td><td>");
  lw_html_escape(b, h.compiler);
  lw_buf_str(b, ", ");
  lw_html_escape(b, h.target);
  lw_buf_printf(b,
                "</td><td>%s</td><td>%lld → %lld</td><td>%lld</td>"
                "<td>%d</td></tr>\n",
                h.label, (long long)h.kernels_before,
                (long long)h.kernels_after, (long long)h.left_bytes, h.walls);
}

static const char style[] =
    ":root{color-scheme:light dark}"
    "body{font:15px/1.5 \"DejaVu Sans\",system-ui,sans-serif;max-width:110ch;"
    "margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse}"
    "th,td{text-align:left;padding:4px 14px 4px 0;border-bottom:1px solid "
    "#8888;vertical-align:top}"
    "code{font-family:\"DejaVu Sans Mono\",monospace;font-size:13px}";

int cli_index_write(const cli_index *i, const char *title, const char *html,
                    const char *dir) {
  lw_buf b = {0}, path = {0};
  lw_buf_printf(&b,
                "<!doctype html>\n<html lang=\"en\"><head>"
                "<meta charset=\"utf-8\"><meta name=\"viewport\" "
                "content=\"width=device-width\"><title>%s</title>"
                "<link rel=\"icon\" href=\"data:,\">"
                "<style>%s</style></head>\n<body><main>\n<h1>%s</h1>\n",
                title, style, title);
  lw_buf_str(&b,
             "<table><thead><tr><th>page</th><th>module</th><th>compiler"
             "</th><th>verdicts</th><th>kernels</th><th>bytes between kernels"
             "</th><th>walls</th></tr></thead><tbody>\n");
  lw_buf_str(&b, i->rows.data ? i->rows.data : "");
  lw_buf_str(&b, "</tbody></table>\n");
  if (html) lw_buf_str(&b, html);
  lw_buf_str(&b, "</main></body></html>\n");
  lw_buf_printf(&path, "%s/index.html", dir);
  lw_status st = lw_file_write(lw_buf_cstr(&path), lw_buf_cstr(&b), b.len);
  if (!st) cli_note("%s", lw_buf_cstr(&path));
  lw_buf_free(&b);
  lw_buf_free(&path);
  return st ? cli_fail(st) : CLI_YES;
}
