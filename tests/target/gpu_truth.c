/* The GPU model against what XLA:GPU wrote down.
 *
 *   test_gpu_truth [-v] [--target=h100] FOLDER...
 *
 * Each folder holds a module as it stands before XLA's fusion pipeline
 * (fusion_in.pb, else fusion_in.hlo) and decisions.tsv, whose priority lines
 * give the times of a producer with its consumers, fused and not. Lines from
 * before the first fusion in their computation speak of the module as it
 * stands; all of those must agree to the printed digit. Without folders, those
 * of tests/data/gpu_model/<target> are read.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "reader/proto.h"
#include "reader/reader.h"
#include "target/gpu.h"

typedef struct {
  int same, total, verbose;
  double worst;
  const char *target;
} tally;

typedef struct {
  lw_module *module;
  lw_map by_name; /* interned pointer hash -> instruction */
  lw_map models;  /* computation -> model */
  lw_map changed; /* computation -> 1 */
  lw_gpu_device device;
} bench;

static lw_status read_module(lw_context *ctx, const char *folder,
                             lw_module **out) {
  char path[4096], *text;
  size_t len;
  snprintf(path, sizeof path, "%s/fusion_in.pb", folder);
  bool proto = lw_file_exists(path);
  if (!proto) snprintf(path, sizeof path, "%s/fusion_in.hlo", folder);
  LW_TRY(lw_file_read(path, &text, &len));
  lw_status s = proto ? lw_read_proto(ctx, text, len, out)
                      : lw_read_text(ctx, text, len, path, NULL, out);
  free(text);
  return s;
}

static uint64_t key_of(const char *name) {
  return lw_hash_bytes(name, strlen(name), 7);
}

static void index_names(bench *b) {
  for (lw_comp *c = b->module->first_comp; c; c = c->next)
    for (lw_inst *i = c->first; i; i = i->next)
      *lw_map_put(&b->by_name, key_of(i->name)) = (uint64_t)(uintptr_t)i;
}

static const lw_inst *find(bench *b, const char *name) {
  uint64_t *v = lw_map_get(&b->by_name, key_of(name));
  return v ? (const lw_inst *)(uintptr_t)*v : NULL;
}

static lw_gpu_model *model_of(bench *b, const lw_comp *c) {
  lw_gpu_model *m = lw_map_ptr(&b->models, c);
  if (!m) {
    m = lw_gpu_model_new(c, &b->device);
    lw_map_set_ptr(&b->models, c, m);
  }
  return m;
}

/* XLA's dump holds floats, and prints what tells them apart. */
static bool same_digits(double ours, double theirs) {
  return (float)ours == (float)theirs;
}

static double off_by(double ours, double theirs) {
  return theirs != 0 ? fabs(ours - theirs) / theirs : fabs(ours);
}

static void count(tally *t, bench *b, const lw_inst *p, int n,
                  const lw_inst **consumers, double fused, double unfused,
                  const char *line) {
  lw_gpu_model *m = model_of(b, p->parent);
  lw_gpu_times ours = lw_gpu_run_times(m, p, n, consumers);
  double f = lw_ticks_us(ours.fused), u = lw_ticks_us(ours.unfused);
  double off = fmax(off_by(f, fused), off_by(u, unfused));
  bool same = same_digits(f, fused) && same_digits(u, unfused);
  t->same += same;
  t->total++;
  if (off > t->worst) t->worst = off;
  if (same || !t->verbose) return;
  printf("  %s\n    ours %.7g %.7g\n", line, f, u);
  if (t->verbose < 2) return;
  lw_arena *a = lw_arena_new();
  lw_gpu_kernel k = lw_gpu_kernel_of(m, NULL, p, a);
  printf("    %s %s %lld x %lld, %.7g us\n", p->name,
         lw_gpu_emitter_name(k.emitter), (long long)k.blocks,
         (long long)k.threads, lw_ticks_us(lw_gpu_exec(m, p)));
  for (int c = 0; c < n; c++) {
    k = lw_gpu_kernel_of(m, NULL, consumers[c], a);
    printf("    %s %s %lld x %lld, %.7g us;", consumers[c]->name,
           lw_gpu_emitter_name(k.emitter), (long long)k.blocks,
           (long long)k.threads, lw_ticks_us(lw_gpu_exec(m, consumers[c])));
    k = lw_gpu_kernel_of(m, p, consumers[c], a);
    printf(" fused %s %lld x %lld, %.7g us\n", lw_gpu_emitter_name(k.emitter),
           (long long)k.blocks, (long long)k.threads,
           lw_ticks_us(lw_gpu_exec_fused(m, p, consumers[c])));
  }
  lw_arena_free(a);
}

static void priority_line(tally *t, bench *b, char *line) {
  char shown[512], *part[5], *next;
  snprintf(shown, sizeof shown, "%.500s", line);
  int n_parts = 0;
  for (char *s = line; n_parts < 5 && s; s = next) {
    next = strchr(s, '\t');
    if (next) *next++ = 0;
    part[n_parts++] = s;
  }
  if (n_parts < 5) return;
  const lw_inst *p = find(b, part[1]), *users[256];
  if (!p || lw_map_get(&b->changed, (uint64_t)(uintptr_t)p->parent)) return;
  int n = 0;
  for (char *s = part[2]; s; s = next) {
    next = strchr(s, ',');
    if (next) *next++ = 0;
    const lw_inst *u = find(b, s);
    if (!u || n == 256) return;
    users[n++] = u;
  }
  count(t, b, p, n, users, atof(part[3]), atof(part[4]), shown);
}

static void fusion_line(bench *b, char *line) {
  char *name = strchr(line, '\t') + 1;
  name[strcspn(name, "\t")] = 0;
  const lw_inst *p = find(b, name);
  if (p) *lw_map_put(&b->changed, (uint64_t)(uintptr_t)p->parent) = 1;
}

static void decisions(tally *t, bench *b, const char *folder) {
  char path[4096], *text, *next;
  size_t len;
  snprintf(path, sizeof path, "%s/decisions.tsv", folder);
  lw_status s = lw_file_read(path, &text, &len);
  if (s) {
    fprintf(stderr, "%s\n", lw_status_message(s));
    exit(2);
  }
  for (char *line = text; line && *line; line = next) {
    next = strchr(line, '\n');
    if (next) *next++ = 0;
    if (!strncmp(line, "priority\t", 9)) priority_line(t, b, line);
    if (!strncmp(line, "fusion\t", 7)) fusion_line(b, line);
  }
  free(text);
}

static void free_bench(bench *b) {
  for (size_t k = 0; k < b->models.len; k++)
    lw_gpu_model_free((lw_gpu_model *)(uintptr_t)b->models.values[k]);
  lw_map_free(&b->models);
  lw_map_free(&b->by_name);
  lw_map_free(&b->changed);
  lw_module_free(b->module);
}

static void run_folder(tally *all, const char *folder) {
  tally t = {.verbose = all->verbose, .target = all->target};
  bench b = {0};
  lw_context *ctx = lw_context_new();
  lw_target *target;
  lw_status s = lw_target_load(t.target, &target);
  if (!s) s = lw_gpu_device_of(target, &b.device);
  if (!s) s = read_module(ctx, folder, &b.module);
  if (s) {
    fprintf(stderr, "%s: %s\n", folder, lw_status_message(s));
    exit(2);
  }
  index_names(&b);
  decisions(&t, &b, folder);
  if (t.verbose || t.same != t.total)
    printf("%s: %d / %d, worst %.2g\n", folder, t.same, t.total, t.worst);
  all->same += t.same;
  all->total += t.total;
  all->worst = fmax(all->worst, t.worst);
  free_bench(&b);
  lw_target_free(target);
  lw_context_free(ctx);
}

/* tests/data/gpu_model/<target>/<module> */
static void run_target(tally *t, const char *root, const char *target) {
  char path[4096];
  struct dirent *e;
  snprintf(path, sizeof path, "%s/%s", root, target);
  DIR *d = opendir(path);
  t->target = target;
  while (d && (e = readdir(d))) {
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s/%s", root, target, e->d_name);
    run_folder(t, path);
  }
  if (d) closedir(d);
}

static void run_data(tally *t) {
  const char *root = LW_TEST_DATA "/gpu_model";
  DIR *d = opendir(root);
  struct dirent *e;
  while (d && (e = readdir(d)))
    if (e->d_name[0] != '.') run_target(t, root, e->d_name);
  if (d) closedir(d);
}

int main(int argc, char **argv) {
  tally t = {.target = "h100"};
  int folders = 0;
  for (int k = 1; k < argc; k++) {
    if (!strcmp(argv[k], "-v")) {
      t.verbose++;
    } else if (!strncmp(argv[k], "--target=", 9)) {
      t.target = argv[k] + 9;
    } else {
      run_folder(&t, argv[k]);
      folders++;
    }
  }
  if (!folders) run_data(&t);
  printf("%d of %d initial priorities to the digit, largest difference %.2g\n",
         t.same, t.total, t.worst);
  return t.same == t.total && t.total ? 0 : 1;
}
