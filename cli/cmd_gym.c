/* lawson gym: programs where the ranking made an instructive call, an x-ray
 * and a short lesson each. Seven are Lawson's own; three are compiled by XLA
 * for a TPU where that is set up. */
#include "gym.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "lab.h"
#include "lab/scratch.h"
#include "xray.h"

typedef struct {
  const cli_args *a;
  const char *dir;
  cli_index index;
  lw_arena *arena;
} gym;

/* ---- a program's text ---- */

typedef struct {
  const char *title, *options, *lesson;
} lesson;

static lesson read_lesson(lw_arena *a, const char *text) {
  lesson l = {0};
  const char *end = strchr(text, '\n');
  l.title = lw_arena_strdup(a, text, (size_t)(end - text));
  text = end + 1;
  end = strchr(text, '\n');
  l.options = lw_arena_strdup(a, text, (size_t)(end - text));
  l.lesson = end + 1;
  while (*l.lesson == '\n') l.lesson++;
  return l;
}

/* The value behind --name= in a line of options, or NULL. */
static const char *option(lw_arena *a, const char *line, const char *name) {
  size_t n = strlen(name);
  for (const char *p = strstr(line, name); p; p = strstr(p + 1, name))
    if (p[n] == '=')
      return lw_arena_strdup(a, p + n + 1, strcspn(p + n + 1, " "));
  return NULL;
}

/* ---- pages ---- */

static int finish(gym *g, const char *name, const lesson *l, lw_xray *x) {
  lw_buf page = {0}, path = {0};
  lw_xray_lesson(x, l->title, l->lesson);
  lw_buf_printf(&page, "%s.html", name);
  lw_buf_printf(&path, "%s/%s", g->dir, lw_buf_cstr(&page));
  lw_status st = lw_xray_layout(x);
  int code = st ? cli_fail(st) : cli_xray_write(x, false, lw_buf_cstr(&path));
  if (!code)
    cli_index_add(&g->index, lw_buf_cstr(&page), l->title, lw_xray_head_of(x));
  lw_buf_free(&page);
  lw_buf_free(&path);
  return code;
}

static int make_page(gym *g, const cli_gym_program *p) {
  lesson l = read_lesson(g->arena, p->text);
  lw_context *ctx = lw_context_new();
  lw_module *m = NULL;
  lw_xray *x = NULL;
  lw_compile_options o = {
      .fusion = option(g->arena, l.options, "--fusion"),
      .target = option(g->arena, l.options, "--target"),
      .only_fusion = strstr(l.options, "--only-fusion") != NULL};
  lw_status st = lw_load_text(ctx, p->hlo, strlen(p->hlo), &m);
  if (!st) st = lw_xray_lawson(m, &o, &x);
  int code = st ? cli_fail(st) : finish(g, p->name, &l, x);
  lw_xray_free(x);
  if (m) lw_module_free(m);
  lw_context_free(ctx);
  return code;
}

/* ---- the three of a TPU ---- */

#define TPU_HEAD                                                               \
  "Compiled by XLA for a TPU v6e, without one. The verdicts are read off the " \
  "modules before fusion and after everything (INFERRED). A copy-start and "   \
  "its copy-done bring a value into fast memory while something else "         \
  "runs.\n\n"

static const struct {
  const char *program, *name, *title, *lesson;
} tpu[] = {
    {"04-attention", "08-tpu-attention", "Attention on a TPU: not by fusion",
     TPU_HEAD
     "Look at the HLO tab first. Before any fusion pass ran, softmax and the "
     "second product were gone: a pass knew the pattern and put a custom call "
     "in their place, a streaming algorithm. The scores are still written and "
     "read, once each. What is gone is the second reading, the wall, and "
     "fusion "
     "had no part in it.\n\nA time of this module says little about fusion: "
     "the algorithm is another one. Compare program 4, where it stayed."},
    {"03-softmax-wall", "09-tpu-softmax", "The wall on a TPU: computed again",
     TPU_HEAD
     "The same softmax as program 3, decided otherwise. Where XLA:CPU's rules "
     "keep the exponentials in memory, this compiler computes them twice: once "
     "in the kernel that sums them, once in the kernel that divides. Our rules "
     "differ there, and the page says so instead of making up a reason.\n\n"
     "The wall has not gone. It stands at the input, whose rows are needed "
     "again after they were folded; only what is between has moved."},
    {"01-two-readers", "10-tpu-two-readers", "Two readers on a TPU",
     TPU_HEAD
     "Program 1 again: one dear value, two readers. Here it ends as one kernel "
     "with two results, and nothing is between kernels. XLA:CPU's rules refuse "
     "both edges (an expensive producer with other readers), so the page marks "
     "them as differing: the module shows what happened, and no record says "
     "why."},
};

static const cli_gym_program *find(const char *name) {
  const cli_gym_program *p = cli_gym;
  while (p->name && strcmp(p->name, name)) p++;
  return p->name ? p : NULL;
}

static int make_tpu_page(gym *g, const char *folder, int k) {
  const cli_gym_program *p = find(tpu[k].program);
  lesson l = {.title = tpu[k].title, .lesson = tpu[k].lesson};
  lw_buf path = {0};
  cli_xray x = {0};
  cli_args a = *g->a;
  a.value[OPT_COMPILER] = "xla";
  a.value[OPT_TARGET] = "v6e";
  lw_buf_printf(&path, "%s/%s.hlo", folder, tpu[k].name);
  lw_status st = lw_file_write(lw_buf_cstr(&path), p->hlo, strlen(p->hlo));
  int code = st ? cli_fail(st) : cli_xray_of(&a, lw_buf_cstr(&path), &x);
  if (!code) code = finish(g, tpu[k].name, &l, x.xray);
  cli_xray_free(&x);
  lw_buf_free(&path);
  return code;
}

static const int n_tpu = sizeof tpu / sizeof *tpu;

static int make_tpu_pages(gym *g) {
  char *folder;
  lw_status st = lw_scratch_new(&folder);
  if (st) return cli_fail(st);
  int code = CLI_YES;
  for (int k = 0; k < n_tpu && !code; k++) code = make_tpu_page(g, folder, k);
  lw_scratch_free(folder);
  return code;
}

static bool has_tpu(void) {
  char *python = NULL;
  lw_status st = lw_subject_python("xla", "v6e", &python);
  bool has = st == NULL;
  lw_status_free(st);
  free(python);
  return has;
}

static const char how_html[] =
    "<h2>Three more, by a TPU's compiler</h2>\n<p>Attention, the wall and two "
    "readers, as XLA compiles them for a TPU v6e, are made once its compiler "
    "is "
    "set up (no TPU is needed): <code>lawson setup xla-tpu</code>, then this "
    "command again.</p>\n";

/* ---- the command ---- */

static int make_all(gym *g) {
  int code = CLI_YES;
  bool more = has_tpu();
  for (const cli_gym_program *p = cli_gym; p->name && !code; p++)
    code = make_page(g, p);
  if (!code && more) code = make_tpu_pages(g);
  if (!code && !more)
    cli_note("three TPU pairs wait for: lawson setup xla-tpu");
  if (code) return code;
  return cli_index_write(&g->index, "The gym: check your intuition",
                         more ? NULL : how_html, g->dir);
}

int cli_run_gym(const cli_args *a) {
  if (!a->value[OPT_OUTPUT]) {
    cli_error("-o DIR is needed: where the pages go");
    return CLI_USAGE;
  }
  lw_status st = lw_dir_make(a->value[OPT_OUTPUT]);
  if (st) return cli_fail(st);
  gym g = {.a = a, .dir = a->value[OPT_OUTPUT], .arena = lw_arena_new()};
  int code = make_all(&g);
  lw_buf_free(&g.index.rows);
  lw_arena_free(g.arena);
  return code;
}
