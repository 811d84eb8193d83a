/* Logs of passes (passlog.h).
 *
 * A dump names only the passes that changed something, so that an experiment
 * that takes the dumps for the list calls a real pass misspelt. The log names
 * all that ran. A name that did not run for one program may still be a pass:
 * it is looked for in the logs of a few programs of other kinds before it is
 * called unknown.
 */
#include "lab/passlog.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "driver/driver.h"
#include "fusion/fusion.h"
#include "lab/scratch.h"
#include "lab/subject_jobs.h"
#include "passes/passes.h"

/* ---- names ---- */

static int plain(char c) {
  return c == ' ' || c == '-' ? '_' : tolower((unsigned char)c);
}

static bool starts_with(const char *name, const char *part) {
  while (*part && *name && plain(*name) == plain(*part)) {
    name++;
    part++;
  }
  return !*part;
}

bool lw_pass_name_has(const char *name, const char *part) {
  do {
    if (starts_with(name, part)) return true;
  } while (*name++);
  return false;
}

bool lw_pass_name_is(const char *name, const char *wanted) {
  return strlen(name) == strlen(wanted) && starts_with(name, wanted);
}

const lw_pass_row *lw_pass_log_find(const lw_pass_log *log, const char *name) {
  const lw_pass_row *near = NULL;
  for (size_t k = 0; k < log->rows.len; k++) {
    const lw_pass_row *r = &log->rows.data[k];
    if (!strcmp(r->name, name)) return r;
    if (!near && lw_pass_name_is(r->name, name)) near = r;
  }
  return near;
}

/* ---- the file ---- */

/* Cuts the line's next field off; "" at its end. */
static char *field(char **line) {
  char *start = *line, *tab = strchr(start, '\t');
  if (tab) *tab = '\0';
  *line = tab ? tab + 1 : start + strlen(start);
  return start;
}

static void read_row(lw_pass_log *log, char *line) {
  lw_pass_row r = {0};
  r.order = strtoll(field(&line), NULL, 10);
  r.depth = (int32_t)strtol(field(&line), NULL, 10);
  r.pipeline = !strcmp(field(&line), "pipeline");
  r.name = field(&line);
  r.changed = !strcmp(field(&line), "yes");
  const char *ms = field(&line);
  r.ms = *ms ? strtod(ms, NULL) : -1;
  if (*r.name) lw_vec_push(&log->rows, r);
}

lw_status lw_pass_log_read(const char *folder, lw_pass_log *log) {
  *log = (lw_pass_log){.arena = lw_arena_new()};
  lw_buf path = {0};
  lw_buf_printf(&path, "%s/passes.tsv", folder);
  char *data;
  size_t len;
  lw_status st = lw_file_read(lw_buf_cstr(&path), &data, &len);
  lw_buf_free(&path);
  if (st) return st;
  char *text = lw_arena_strdup(log->arena, data, len), *end;
  free(data);
  for (bool head = true; *text; head = false) {
    end = strchr(text, '\n');
    char *next = end ? end + 1 : text + strlen(text);
    if (end) *end = '\0';
    if (!head) read_row(log, text);
    text = next;
  }
  return NULL;
}

void lw_pass_log_free(lw_pass_log *log) {
  lw_vec_free(&log->rows);
  if (log->arena) lw_arena_free(log->arena);
  *log = (lw_pass_log){0};
}

/* ---- programs of many kinds ---- */

const char lw_pass_probe_attention[] =
    "HloModule attention\n"
    "larger { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
    "  ROOT m = f32[] maximum(a, b) }\n"
    "plus { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
    "  ROOT s = f32[] add(a, b) }\n"
    "ENTRY attend {\n"
    "  q = f32[64,64] parameter(0)\n"
    "  k = f32[64,64] parameter(1)\n"
    "  v = f32[64,64] parameter(2)\n"
    "  least = f32[] constant(-inf)\n"
    "  zero = f32[] constant(0)\n"
    "  scores = f32[64,64] dot(q, k), lhs_contracting_dims={1},"
    " rhs_contracting_dims={1}\n"
    "  top = f32[64] reduce(scores, least), dimensions={1}, to_apply=larger\n"
    "  tops = f32[64,64] broadcast(top), dimensions={0}\n"
    "  low = f32[64,64] subtract(scores, tops)\n"
    "  e = f32[64,64] exponential(low)\n"
    "  sum = f32[64] reduce(e, zero), dimensions={1}, to_apply=plus\n"
    "  sums = f32[64,64] broadcast(sum), dimensions={0}\n"
    "  p = f32[64,64] divide(e, sums)\n"
    "  ROOT o = f32[64,64] dot(p, v), lhs_contracting_dims={1},"
    " rhs_contracting_dims={0}\n"
    "}\n";

static const char loops[] =
    "HloModule loops\n"
    "less { c = (s32[], f32[256]) parameter(0)\n"
    "  n = s32[] get-tuple-element(c), index=0\n"
    "  most = s32[] constant(7)\n"
    "  ROOT l = pred[] compare(n, most), direction=LT }\n"
    "step { c = (s32[], f32[256]) parameter(0)\n"
    "  n = s32[] get-tuple-element(c), index=0\n"
    "  x = f32[256] get-tuple-element(c), index=1\n"
    "  one = s32[] constant(1)\n"
    "  m = s32[] add(n, one)\n"
    "  y = f32[256] sine(x)\n"
    "  ROOT t = (s32[], f32[256]) tuple(m, y) }\n"
    "up { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
    "  ROOT l = pred[] compare(a, b), direction=LT }\n"
    "double { a = f32[256] parameter(0)\n"
    "  ROOT d = f32[256] add(a, a) }\n"
    "negative { a = f32[256] parameter(0)\n"
    "  ROOT d = f32[256] negate(a) }\n"
    "ENTRY e {\n"
    "  x = f32[256] parameter(0)\n"
    "  yes = pred[] parameter(1)\n"
    "  zero = s32[] constant(0)\n"
    "  t = (s32[], f32[256]) tuple(zero, x)\n"
    "  w = (s32[], f32[256]) while(t), condition=less, body=step\n"
    "  y = f32[256] get-tuple-element(w), index=1\n"
    "  c = f32[256] conditional(yes, y, y), true_computation=double,"
    " false_computation=negative\n"
    "  ROOT s = f32[256] sort(c), dimensions={0}, to_apply=up\n"
    "}\n";

static const char tables[] =
    "HloModule tables\n"
    "plus { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
    "  ROOT s = f32[] add(a, b) }\n"
    "ENTRY e {\n"
    "  table = f32[2048,256] parameter(0)\n"
    "  ids = s32[512,1] parameter(1)\n"
    "  rows = f32[512,256] gather(table, ids), offset_dims={1},"
    " collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,"
    " slice_sizes={1,256}\n"
    "  more = f32[512,256] tanh(rows)\n"
    "  ROOT s = f32[2048,256] scatter(table, ids, more),"
    " update_window_dims={1}, inserted_window_dims={0},"
    " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=plus\n"
    "}\n";

static const char images[] =
    "HloModule images\n"
    "ENTRY e {\n"
    "  x = bf16[8,32,32,16] parameter(0)\n"
    "  k = bf16[3,3,16,32] parameter(1)\n"
    "  y = bf16[8,32,32,32] convolution(x, k), window={size=3x3 pad=1_1x1_1},"
    " dim_labels=b01f_01io->b01f\n"
    "  ROOT z = bf16[8,32,32,32] logistic(y)\n"
    "}\n";

static const char *const probes[] = {lw_pass_probe_attention, loops, tables,
                                     images};
enum { N_PROBES = sizeof probes / sizeof *probes };

/* ---- what is known ---- */

static void add_name(lw_name_list *names, lw_arena *a, const char *name) {
  for (size_t k = 0; k < names->len; k++)
    if (!strcmp(names->data[k], name)) return;
  const char *copy = lw_arena_strdup(a, name, strlen(name));
  lw_vec_push(names, copy);
}

static void lawson_names(lw_arena *a, lw_name_list *names) {
  int n;
  const lw_pass *const *fusion = lw_fusion_passes(&n);
  for (int k = 0; k < lw_clean_up_pass_count; k++)
    add_name(names, a, lw_clean_up_passes[k]->name);
  for (int k = 0; k < n; k++) add_name(names, a, fusion[k]->name);
}

static lw_status take_names(const lw_subject_job *jobs, lw_arena *a,
                            lw_name_list *names) {
  bool any = false;
  for (int k = 0; k < N_PROBES; k++) {
    if (jobs[k].status) continue; /* a backend need not take them all */
    any = true;
    lw_pass_log log;
    lw_status st = lw_pass_log_read(jobs[k].out_dir, &log);
    for (size_t i = 0; i < log.rows.len; i++)
      add_name(names, a, log.rows.data[i].name);
    lw_pass_log_free(&log);
    if (st) return st;
  }
  if (any) return NULL;
  return lw_error(LW_INTERNAL, "%s", lw_status_message(jobs[0].status));
}

static lw_status probe(const lw_subject *s, const char *scratch, lw_arena *a,
                       lw_name_list *names) {
  lw_subject plain = {.compiler = s->compiler, .target = s->target};
  lw_subject_job jobs[N_PROBES] = {0};
  for (int k = 0; k < N_PROBES; k++) {
    char *path = lw_arena_printf(a, "%s/%d.hlo", scratch, k);
    LW_TRY(lw_file_write(path, probes[k], strlen(probes[k])));
    jobs[k] = (lw_subject_job){
        .subject = &plain,
        .module_path = path,
        .out_dir = lw_arena_printf(a, "%s/%d", scratch, k),
    };
  }
  lw_status st = lw_subject_compile_all(jobs, N_PROBES);
  if (!st) st = take_names(jobs, a, names);
  lw_subject_jobs_free(jobs, N_PROBES);
  return st;
}

lw_status lw_pass_names_known(const lw_subject *s, lw_arena *a,
                              lw_name_list *names) {
  if (!lw_subject_is_xla(s->compiler)) {
    lawson_names(a, names);
    return NULL;
  }
  char *scratch;
  LW_TRY(lw_scratch_new(&scratch));
  lw_status st = probe(s, scratch, a, names);
  lw_scratch_free(scratch);
  return st;
}
