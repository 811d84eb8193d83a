/* Bisection (bisect.h).
 *
 * The question that is asked again and again: does the output of a program,
 * compiled with the pass and without it, differ in a bit? First of the whole
 * program with ever less fuel for the pass, which gives the number of the
 * rewrite. Then of ever smaller programs: some instruction becomes the root,
 * some instruction becomes a parameter, and what nobody needs any more goes.
 * The smallest that still says yes is taken, until none does. Candidates are
 * compiled a batch at a time, since starting a compiler costs more than a
 * compile.
 */
#include "lab/bisect.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "driver/driver.h"
#include "hlo/check.h"
#include "hlo/print.h"
#include "lab/ablate_impl.h"
#include "lab/arrays.h"
#include "lab/subject_jobs.h"

enum { BATCH = 8, MAX_BATCHES = 64, MAX_FUEL = 1 << 20 };

/* A program: what the root needs, less what the cut instructions need. */
typedef struct {
  lw_inst *root;
  bool *cut; /* by place in the order */
  int64_t size;
} program;

typedef struct {
  const lw_ablate_options *o;
  const lw_ablate_row *row;
  const lw_module *m;
  uint64_t seed;
  lw_arena *a;
  lw_bisection *out;
  lw_subject with, without;
  int32_t n; /* of the entry's instructions, operands first */
  lw_inst **order;
  lw_map place; /* instruction -> place + 1 */
  int32_t folder, batches;
} bisecting;

/* ---- subjects ---- */

static const char **extended(lw_arena *a, const char *const *v, int32_t n,
                             const char *word) {
  const char **w = LW_NEW_ARRAY(a, const char *, n + 1);
  for (int32_t k = 0; k < n; k++) w[k] = v[k];
  w[n] = word;
  return w;
}

static lw_subject with_option(lw_arena *a, lw_subject s, const char *word) {
  s.options = extended(a, s.options, s.n_options, word);
  s.n_options++;
  return s;
}

static lw_subject without_it(const bisecting *x) {
  lw_subject s = x->o->subject;
  if (x->o->edges) return with_option(x->a, s, x->row->word);
  s.disable = extended(x->a, s.disable, s.n_disable, x->row->name);
  s.n_disable++;
  return s;
}

/* ---- programs ---- */

static int32_t place_of(const bisecting *x, const lw_inst *i) {
  uint64_t *v = lw_map_get(&x->place, (uintptr_t)i);
  return (int32_t)*v - 1;
}

static bool is_leaf(const program *p, const lw_inst *i, int32_t place) {
  return i->opcode == LW_OP_PARAMETER || p->cut[place];
}

/* Which instructions the program has; the count of those it computes. */
static int64_t find_live(const bisecting *x, const program *p, bool *live) {
  int64_t size = 0;
  memset(live, 0, sizeof *live * (size_t)x->n);
  live[place_of(x, p->root)] = true;
  for (int32_t k = x->n - 1; k >= 0; k--) {
    const lw_inst *i = x->order[k];
    if (!live[k] || is_leaf(p, i, k)) continue;
    size++;
    for (int32_t op = 0; op < i->n_operands; op++)
      live[place_of(x, lw_inst_operand(i, op))] = true;
  }
  return size;
}

static lw_inst *copy_inst(lw_comp *entry, const lw_inst *i, lw_map *comps,
                          const lw_map *insts, lw_arena *scratch) {
  lw_inst **operands = LW_NEW_ARRAY(scratch, lw_inst *, i->n_operands + 1);
  for (int32_t k = 0; k < i->n_operands; k++)
    operands[k] = lw_map_ptr(insts, lw_inst_operand(i, k));
  lw_inst *copy = lw_inst_clone(entry, i, operands, i->name);
  for (int32_t k = 0; k < lw_inst_called_count(copy); k++)
    lw_inst_set_called(copy, k, lw_map_ptr(comps, lw_inst_called(i, k)));
  return copy;
}

static lw_module *build(const bisecting *x, const program *p) {
  lw_module *to = lw_module_new(x->m->ctx, x->m->name);
  lw_arena *scratch = lw_arena_new();
  bool *live = LW_NEW_ARRAY(scratch, bool, x->n);
  lw_map comps = {0}, insts = {0};
  find_live(x, p, live);
  for (int32_t k = 0; k < x->n; k++)
    if (live[k] && !is_leaf(p, x->order[k], k))
      lw_module_adopt_callees(to, x->order[k], &comps);
  lw_comp *entry = lw_comp_new(to, "main");
  int64_t number = 0;
  for (int32_t k = 0; k < x->n; k++) {
    const lw_inst *i = x->order[k];
    if (!live[k]) continue;
    lw_inst *copy = is_leaf(p, i, k)
                        ? lw_inst_parameter(entry, number++, i->shape, i->name)
                        : copy_inst(entry, i, &comps, &insts, scratch);
    lw_map_set_ptr(&insts, i, copy);
  }
  lw_inst_set_root(entry, lw_map_ptr(&insts, p->root));
  to->entry = entry;
  lw_map_free(&comps);
  lw_map_free(&insts);
  lw_arena_free(scratch);
  return to;
}

/* ---- the question ---- */

typedef struct {
  char *module, *inputs, *dir[2];
  bool ready; /* the files are there */
} question;

static lw_status write_question(const bisecting *x, const lw_module *m,
                                question *q) {
  lw_arena *a = lw_arena_new();
  lw_buf text = {0};
  lw_literal **args;
  int32_t n;
  lw_status st = lw_check_status(m, (lw_check_options){0}, NULL);
  lw_module_print(&text, m, &lw_print_default);
  if (!st) st = lw_file_write(q->module, lw_buf_cstr(&text), text.len);
  if (!st) st = lw_random_inputs(m, x->seed, a, &args, &n, NULL, NULL);
  if (!st)
    st = lw_arrays_write(q->inputs, 'p', (const lw_literal *const *)args, n);
  lw_buf_free(&text);
  lw_arena_free(a);
  return st;
}

/* A program that cannot be asked about is no smaller example. */
static void prepare(bisecting *x, const lw_module *m, question *q) {
  const char *s = x->o->scratch;
  int32_t f = x->folder++;
  q->module = lw_arena_printf(x->a, "%s/small%d.hlo", s, f);
  q->inputs = lw_arena_printf(x->a, "%s/small%d.npz", s, f);
  for (int k = 0; k < 2; k++)
    q->dir[k] = lw_arena_printf(x->a, "%s/small%d%c", s, f, "ab"[k]);
  lw_status st = write_question(x, m, q);
  q->ready = !st;
  lw_status_free(st);
}

static bool differs(const bisecting *x, const lw_module *m, const question *q,
                    const lw_subject_job *jobs) {
  for (int k = 0; k < 2; k++)
    if (jobs[k].status || jobs[k].run_error) return false;
  const char *text;
  return lw_compare_outputs(m, q->dir[0], q->dir[1], x->a, &text) ==
         LW_BITS_DIFFER;
}

/* The first of n modules whose output differs between the two subjects; -1:
 * none. */
static lw_status ask(bisecting *x, lw_module *const *modules, int32_t n,
                     const lw_subject *with, const lw_subject *without,
                     int32_t *first) {
  question q[BATCH] = {0};
  lw_subject_job jobs[2 * BATCH] = {0};
  int32_t count = 0, at[BATCH];
  for (int32_t k = 0; k < n; k++) {
    prepare(x, modules[k], &q[k]);
    if (!q[k].ready) continue;
    at[count / 2] = k;
    for (int s = 0; s < 2; s++)
      jobs[count++] = (lw_subject_job){.subject = s ? without : with,
                                       .module_path = q[k].module,
                                       .out_dir = q[k].dir[s],
                                       .inputs = q[k].inputs};
  }
  *first = -1;
  x->batches++;
  x->out->compiles += count;
  lw_status st = lw_subject_compile_all(jobs, count);
  for (int32_t k = 0; k < count && !st && *first < 0; k += 2)
    if (differs(x, modules[at[k / 2]], &q[at[k / 2]], &jobs[k]))
      *first = at[k / 2];
  lw_subject_jobs_free(jobs, count);
  return st;
}

/* ---- smaller programs ---- */

typedef LW_VEC(program) program_list;

static program copy_program(const bisecting *x, const program *p) {
  program c = *p;
  c.cut = LW_NEW_ARRAY(x->a, bool, x->n);
  memcpy(c.cut, p->cut, sizeof *c.cut * (size_t)x->n);
  return c;
}

/* With another root, or with one instruction less to compute. */
static void list_smaller(const bisecting *x, const program *p,
                         program_list *list) {
  lw_arena *scratch = lw_arena_new();
  bool *live = LW_NEW_ARRAY(scratch, bool, x->n);
  bool *then = LW_NEW_ARRAY(scratch, bool, x->n);
  int64_t size = find_live(x, p, live);
  for (int32_t k = 0; k < x->n; k++) {
    if (!live[k] || is_leaf(p, x->order[k], k)) continue;
    for (int way = 0; way < 2; way++) {
      program c = copy_program(x, p);
      if (way)
        c.cut[k] = true;
      else
        c.root = x->order[k];
      if (c.cut[place_of(x, c.root)]) continue;
      c.size = find_live(x, &c, then);
      if (c.size > 0 && c.size < size) lw_vec_push(list, c);
    }
  }
  lw_arena_free(scratch);
}

static int by_size(const void *a, const void *b) {
  const program *x = a, *y = b;
  return x->size < y->size ? -1 : x->size > y->size;
}

static lw_status try_batch(bisecting *x, const program *v, int32_t n,
                           int32_t *first) {
  lw_module *modules[BATCH];
  for (int32_t k = 0; k < n; k++) modules[k] = build(x, &v[k]);
  lw_status st = ask(x, modules, n, &x->with, &x->without, first);
  for (int32_t k = 0; k < n; k++) lw_module_free(modules[k]);
  return st;
}

/* Takes the smallest program that still differs; *found is false without. */
static lw_status shrink_once(bisecting *x, program *p, bool *found) {
  program_list list = {0};
  list_smaller(x, p, &list);
  *found = false;
  if (list.len) qsort(list.data, list.len, sizeof *list.data, by_size);
  lw_status st = NULL;
  for (size_t k = 0; k < list.len && !st && !*found; k += BATCH) {
    if (x->batches >= MAX_BATCHES) break;
    size_t left = list.len - k;
    int32_t first;
    st = try_batch(x, list.data + k, (int32_t)(left < BATCH ? left : BATCH),
                   &first);
    if (st || first < 0) continue;
    *p = list.data[k + (size_t)first];
    *found = true;
  }
  lw_vec_free(&list);
  return st;
}

static lw_status shrink(bisecting *x, program *p) {
  bool found = true;
  while (found) LW_TRY(shrink_once(x, p, &found));
  lw_module *m = build(x, p);
  lw_buf text = {0};
  lw_module_print(&text, m, &lw_print_default);
  x->out->text = lw_arena_printf(x->a, "%s", lw_buf_cstr(&text));
  x->out->instructions = p->size;
  lw_buf_free(&text);
  lw_module_free(m);
  return NULL;
}

/* ---- fuel ---- */

static lw_subject with_fuel(const bisecting *x, int64_t n) {
  const char *flag =
      lw_subject_is_xla(x->o->subject.compiler) ? "--xla_fuel" : "--fuel";
  return with_option(
      x->a, x->o->subject,
      lw_arena_printf(x->a, "%s=%s=%lld", flag, x->row->name, (long long)n));
}

/* Does the output with that much fuel differ from the one without the pass? */
static lw_status differs_with(bisecting *x, lw_module *m, int64_t fuel,
                              bool *yes) {
  lw_subject s = with_fuel(x, fuel);
  int32_t first;
  LW_TRY(ask(x, &m, 1, &s, &x->without, &first));
  *yes = first == 0;
  return NULL;
}

/* The smallest fuel whose output differs. */
static lw_status find_rewrite(bisecting *x, lw_module *m) {
  bool yes;
  LW_TRY(differs_with(x, m, 0, &yes));
  if (yes) {
    x->out->no_fuel = "it takes no fuel: with none its output is the same";
    return NULL;
  }
  int64_t low = 0, high = 1;
  for (; high <= MAX_FUEL; low = high, high *= 2) {
    LW_TRY(differs_with(x, m, high, &yes));
    if (yes) break;
  }
  if (!yes) {
    x->out->no_fuel = "no amount of fuel gives the full output";
    return NULL;
  }
  while (high - low > 1) {
    int64_t mid = low + (high - low) / 2;
    LW_TRY(differs_with(x, m, mid, &yes));
    if (yes)
      high = mid;
    else
      low = mid;
  }
  x->out->rewrite = high;
  return NULL;
}

/* XLA:CPU 0.10.2 ends at a failed check when its fusion pass runs out: then no
 * amount gives an answer, and the search would be in vain. */
static lw_status try_fuel(bisecting *x, lw_module *m) {
  if (x->o->edges) {
    x->out->no_fuel = "an edge is a single decision";
    return NULL;
  }
  lw_subject s = with_fuel(x, 0);
  question q = {0};
  prepare(x, m, &q);
  lw_subject_job job = {.subject = &s,
                        .module_path = q.module,
                        .out_dir = q.dir[0],
                        .inputs = q.inputs};
  lw_status st = lw_subject_compile_all(&job, 1);
  x->out->compiles++;
  bool fails = !st && job.status;
  if (fails)
    x->out->no_fuel =
        lw_arena_printf(x->a, "the compiler fails when the pass runs out: %s",
                        lw_status_message(job.status));
  lw_subject_jobs_free(&job, 1);
  if (st || fails) return st;
  return find_rewrite(x, m);
}

/* ---- all ---- */

static lw_status bisect(bisecting *x, program *p) {
  lw_module *m = build(x, p);
  int32_t first;
  lw_status st = ask(x, &m, 1, &x->with, &x->without, &first);
  if (!st && first < 0)
    st = lw_error(LW_NOT_FOUND,
                  "on random inputs of seed %llu the output does not differ "
                  "without %s",
                  (unsigned long long)x->seed, x->row->name);
  if (!st) st = try_fuel(x, m);
  lw_module_free(m);
  x->batches = 0;
  return st ? st : shrink(x, p);
}

lw_status lw_bisect(const lw_ablate_options *o, const lw_ablate_row *row,
                    const lw_module *m, uint64_t seed, lw_arena *a,
                    lw_bisection *out) {
  *out = (lw_bisection){0};
  bisecting x = {.o = o, .row = row, .m = m, .seed = seed, .a = a, .out = out};
  x.with = o->subject;
  x.without = without_it(&x);
  x.order = lw_comp_post_order(m->entry, a, &x.n);
  for (int32_t k = 0; k < x.n; k++)
    *lw_map_put(&x.place, (uintptr_t)x.order[k]) = (uint64_t)k + 1;
  program p = {.root = m->entry->root, .cut = LW_NEW_ARRAY(a, bool, x.n)};
  bool *live = LW_NEW_ARRAY(a, bool, x.n);
  p.size = out->instructions_was = find_live(&x, &p, live);
  lw_status st = bisect(&x, &p);
  lw_map_free(&x.place);
  return st;
}
