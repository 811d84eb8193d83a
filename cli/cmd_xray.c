/* lawson xray: the fusion x-ray as a page, an SVG, JSON or a few lines. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "lab.h"
#include "lab/scratch.h"
#include "pages.h"
#include "xray.h"

const char *cli_reason_page(const char *code) {
  for (const cli_page *p = cli_pages; p->name; p++)
    if (!strcmp(p->kind, "reasons") && !strcmp(p->name, code)) return p->text;
  return NULL;
}

void cli_xray_free(cli_xray *x) {
  lw_xray_free(x->xray);
  cli_close(&x->a);
  cli_close(&x->b);
  *x = (cli_xray){0};
}

/* A file that is not among the command's arguments. */
static int load_file(const cli_args *a, const char *path, cli_input *in) {
  cli_args one = *a;
  one.positional[0] = path;
  return cli_load(&one, 0, true, in);
}

/* ---- a pair ---- */

static bool is_known_target(const char *name) {
  lw_target *t = NULL;
  lw_status st = lw_target_load(name, &t);
  bool known = st == NULL;
  if (!st) lw_target_free(t);
  lw_status_free(st);
  return known;
}

static int of_pair(const cli_args *a, const char *before, const char *after,
                   const char *decisions, cli_xray *x) {
  const char *target = a->value[OPT_TARGET];
  lw_xray_pair p = {.compiler = a->value[OPT_COMPILER],
                    .target = target,
                    .decisions = decisions};
  if (target && !is_known_target(target)) {
    p.target = "cpu-generic";
    p.foreign_target = target;
  }
  int code = load_file(a, before, &x->a);
  if (!code) code = load_file(a, after, &x->b);
  if (code) return code;
  lw_status st = lw_xray_of_pair(x->a.module, x->b.module, &p, &x->xray);
  return st ? cli_fail_compile(a, st) : CLI_YES;
}

/* ---- XLA ---- */

static bool same_text(const char *path_a, const char *path_b) {
  char *a = NULL, *b = NULL;
  size_t n = 0, m = 0;
  lw_status st = lw_file_read(path_a, &a, &n);
  if (!st) st = lw_file_read(path_b, &b, &m);
  bool same = !st && n == m && !memcmp(a, b, n);
  lw_status_free(st);
  free(a);
  free(b);
  return same;
}

/* The folder that a subject left. */
static int of_folder(const cli_args *a, const char *dir, cli_xray *x) {
  lw_buf before = {0}, after = {0}, path = {0};
  char *decisions = NULL;
  size_t len;
  lw_buf_printf(&before, "%s/fusion_in.hlo", dir);
  lw_buf_printf(&after, "%s/after.hlo", dir);
  lw_buf_printf(&path, "%s/decisions.tsv", dir);
  if (same_text(lw_buf_cstr(&before), lw_buf_cstr(&after))) {
    before.len = 0;
    lw_buf_printf(&before, "%s/before.hlo", dir);
  }
  lw_status st = lw_file_exists(lw_buf_cstr(&path))
                     ? lw_file_read(lw_buf_cstr(&path), &decisions, &len)
                     : NULL;
  int code =
      st ? cli_fail(st)
         : of_pair(a, lw_buf_cstr(&before), lw_buf_cstr(&after), decisions, x);
  free(decisions);
  lw_buf_free(&before);
  lw_buf_free(&after);
  lw_buf_free(&path);
  return code;
}

static int of_xla(const cli_args *a, const char *module, cli_xray *x) {
  char *dir;
  lw_status st = lw_scratch_new(&dir);
  if (st) return cli_fail(st);
  lw_arena *arena = lw_arena_new();
  lw_subject s = cli_subject(a, arena);
  cli_progress("%s compiles %s", s.compiler, module);
  st = lw_subject_compile(&s, module, dir);
  cli_progress("%s", "");
  int code = st ? cli_fail_subject(st) : of_folder(a, dir, x);
  lw_scratch_free(dir);
  lw_arena_free(arena);
  return code;
}

/* ---- Lawson ---- */

static int of_lawson(const cli_args *a, const char *module, cli_xray *x) {
  int code = load_file(a, module, &x->a);
  if (code) return code;
  lw_compile_options o = cli_compile_options(a);
  lw_status st = lw_xray_lawson(x->a.module, &o, &x->xray);
  return st ? cli_fail_compile(a, st) : CLI_YES;
}

/* --before and --after, with XLA:GPU's record when --decisions names it. */
static int of_files(const cli_args *a, cli_xray *x) {
  const char *record = a->value[OPT_DECISIONS];
  char *text = NULL;
  size_t len;
  lw_status st = record && *record ? lw_file_read(record, &text, &len) : NULL;
  int code =
      st ? cli_fail(st)
         : of_pair(a, a->value[OPT_BEFORE], a->value[OPT_AFTER], text, x);
  free(text);
  return code;
}

int cli_xray_of(const cli_args *a, const char *module, cli_xray *x) {
  *x = (cli_xray){0};
  if (!module) return of_files(a, x);
  return lw_subject_is_xla(a->value[OPT_COMPILER]) ? of_xla(a, module, x)
                                                   : of_lawson(a, module, x);
}

/* ---- products ---- */

int cli_xray_write(const lw_xray *x, bool svg, const char *path) {
  lw_buf b = {0};
  if (svg)
    lw_xray_svg(&b, x);
  else
    lw_xray_html(&b, x, cli_reason_page);
  lw_status st = NULL;
  if (!strcmp(path, "-"))
    fwrite(lw_buf_cstr(&b), 1, b.len, stdout);
  else
    st = lw_file_write(path, lw_buf_cstr(&b), b.len);
  if (!st && strcmp(path, "-")) cli_note("%s: %zu bytes", path, b.len);
  lw_buf_free(&b);
  return st ? cli_fail(st) : CLI_YES;
}

static void print_model(const lw_xray *x) {
  lw_buf b = {0};
  lw_xray_json(&b, x, cli_reason_page);
  lw_buf_chr(&b, '\n');
  cli_out(lw_buf_cstr(&b));
  lw_buf_free(&b);
}

static int show(const cli_args *a, cli_xray *x, const char *path) {
  bool drawn = path || a->value[OPT_SVG] || a->value[OPT_JSON];
  lw_status st = drawn ? lw_xray_layout(x->xray) : NULL;
  if (st) return cli_fail(st);
  bool out = path && !strcmp(path, "-");
  int code = CLI_YES;
  if (path) code = cli_xray_write(x->xray, a->value[OPT_SVG] != NULL, path);
  if (code || out) return code;
  if (a->value[OPT_JSON]) {
    print_model(x->xray);
  } else {
    lw_buf b = {0};
    lw_xray_summary(&b, x->xray);
    cli_out(lw_buf_cstr(&b));
    lw_buf_free(&b);
  }
  return CLI_YES;
}

/* ---- several modules: a folder ---- */

/* "a/b/attn.before.hlo" -> "b-attn.before", in a page's name. */
static void name_page(lw_buf *b, const char *module, int k, bool svg) {
  const char *slash = strrchr(module, '/');
  size_t from = 0;
  for (const char *p = module; slash && p < slash; p++)
    if (*p == '/') from = (size_t)(p - module) + 1;
  lw_buf_printf(b, "%02d-", k + 1);
  for (const char *p = module + from; *p; p++) {
    if (*p == '.' && !strchr(p + 1, '.') && !strchr(p, '/')) break;
    bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                 (*p >= '0' && *p <= '9') || *p == '_' || *p == '.';
    lw_buf_chr(b, plain ? *p : '-');
  }
  lw_buf_str(b, svg ? ".svg" : ".html");
}

static int one_of_many(const cli_args *a, int k, const char *dir,
                       cli_index *index) {
  lw_buf name = {0}, path = {0};
  cli_xray x;
  name_page(&name, a->positional[k], k, a->value[OPT_SVG] != NULL);
  lw_buf_printf(&path, "%s/%s", dir, lw_buf_cstr(&name));
  int code = cli_xray_of(a, a->positional[k], &x);
  if (!code) code = show(a, &x, lw_buf_cstr(&path));
  if (!code)
    cli_index_add(index, lw_buf_cstr(&name), NULL, lw_xray_head_of(x.xray));
  cli_xray_free(&x);
  lw_buf_free(&name);
  lw_buf_free(&path);
  return code;
}

static int many(const cli_args *a, const char *dir) {
  lw_status st = lw_dir_make(dir);
  if (st) return cli_fail(st);
  cli_index index = {0};
  int code = CLI_YES;
  for (int k = 0; k < a->n_positional && !code; k++)
    code = one_of_many(a, k, dir, &index);
  if (!code) code = cli_index_write(&index, "Fusion x-rays", NULL, dir);
  lw_buf_free(&index.rows);
  return code;
}

/* ---- the command ---- */

static int check_arguments(const cli_args *a) {
  bool before = a->value[OPT_BEFORE], after = a->value[OPT_AFTER];
  if (before != after)
    cli_error("--before and --after go together");
  else if (before == (a->n_positional > 0))
    cli_error("a MODULE is needed, or --before=A.hlo --after=B.hlo");
  else if (a->n_positional > 1 && !a->value[OPT_OUTPUT])
    cli_error("several modules: -o DIR is needed");
  else if (a->n_positional > 1 && a->value[OPT_JSON])
    cli_error("--json is about one module");
  else if (a->value[OPT_SVG] && !a->value[OPT_OUTPUT])
    cli_error("--svg: -o FILE.svg is needed (-: standard output)");
  else
    return CLI_YES;
  return CLI_USAGE;
}

int cli_run_xray(const cli_args *a) {
  int code = check_arguments(a);
  if (code) return code;
  if (a->n_positional > 1) return many(a, a->value[OPT_OUTPUT]);
  cli_xray x;
  code = cli_xray_of(a, a->n_positional ? a->positional[0] : NULL, &x);
  if (!code) code = show(a, &x, a->value[OPT_OUTPUT]);
  cli_xray_free(&x);
  return code;
}
