/* lawson diff and lawson extract. */
#include <stdio.h>
#include <string.h>

#include "hlo/diff.h"
#include "hlo/print.h"
#include "lab.h"
#include "lab/fusion_diff.h"
#include "lab/scratch.h"
#include "reader/proto.h"

/* ---- diff ---- */

static const char *const kinds[] = {"added", "removed", "changed"};

static void json_side(cJSON *j, const char *name, const lw_diff_side *s) {
  cJSON *o = cJSON_AddObjectToObject(j, name);
  cJSON_AddNumberToObject(o, "computations", (double)s->computations);
  cJSON_AddNumberToObject(o, "instructions", (double)s->instructions);
  cJSON_AddNumberToObject(o, "fusions", (double)s->fusions);
  cJSON_AddNumberToObject(o, "custom_calls", (double)s->custom_calls);
  if (s->root) cJSON_AddStringToObject(o, "root", s->root->name);
}

static void print_json(cJSON *j, const lw_diff *d) {
  cJSON_AddStringToObject(j, "verdict", d->moved ? "MOVED" : "SAME");
  json_side(j, "a", &d->a);
  json_side(j, "b", &d->b);
  cJSON *list = cJSON_AddArrayToObject(j, "items");
  for (size_t k = 0; k < d->items.len; k++) {
    const lw_diff_item *i = &d->items.data[k];
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "kind", kinds[i->kind]);
    if (i->a) cJSON_AddStringToObject(o, "a", i->a->name);
    if (i->b) cJSON_AddStringToObject(o, "b", i->b->name);
    if (i->what) cJSON_AddStringToObject(o, "what", i->what);
    cJSON_AddItemToArray(list, o);
  }
  cli_json_print(j);
}

enum { SHOWN_ITEMS = 200 };

static cJSON *json_names(const lw_inst *const *v, int32_t n) {
  cJSON *list = cJSON_CreateArray();
  for (int32_t k = 0; k < n; k++)
    cJSON_AddItemToArray(list, cJSON_CreateString(v[k]->name));
  return list;
}

static void json_fusions(cJSON *j, const lw_fusion_diff *f) {
  cJSON *list = cJSON_AddArrayToObject(j, "fusions");
  cJSON_AddNumberToObject(j, "anchors", (double)f->anchors);
  cJSON_AddStringToObject(j, "matched_by", f->by_op_name ? "op_name" : "name");
  for (size_t k = 0; k < f->parts.len; k++) {
    const lw_fusion_part *p = &f->parts.data[k];
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "change", lw_fusion_change_name(p->change));
    cJSON_AddItemToObject(o, "a", json_names(p->a, p->n_a));
    cJSON_AddItemToObject(o, "b", json_names(p->b, p->n_b));
    cJSON_AddNumberToObject(o, "anchors", p->anchors);
    cJSON_AddItemToArray(list, o);
  }
}

static int compare(const cli_args *a, const lw_module *x, const lw_module *y) {
  lw_diff *d = lw_diff_modules(x, y, LW_FP_ALL);
  lw_fusion_diff f;
  lw_fusion_diff_of(x, y, &f);
  cJSON *j = cli_json(a);
  if (j) {
    json_fusions(j, &f);
    print_json(j, d);
  } else {
    lw_buf b = {0};
    lw_diff_print(&b, d, SHOWN_ITEMS);
    if (d->moved && f.parts.len) lw_fusion_diff_print(&b, &f);
    cli_out(lw_buf_cstr(&b));
    lw_buf_free(&b);
  }
  int code = d->moved ? CLI_NO : CLI_YES;
  lw_fusion_diff_free(&f);
  lw_diff_free(d);
  return code;
}

static int diff_files(const cli_args *a) {
  cli_input x, y;
  int code = cli_load(a, 0, false, &x);
  if (code) return code;
  code = cli_load(a, 1, false, &y);
  if (!code) {
    code = compare(a, x.module, y.module);
    cli_close(&y);
  }
  cli_close(&x);
  return code;
}

/* ---- one module, two compilers ---- */

static int compile_sides(const cli_args *a, lw_arena *arena,
                         const char *scratch) {
  lw_subject s[2];
  lw_subject_job jobs[2] = {0};
  int code = cli_side(a, 'a', a->value[OPT_A], arena, &s[0]);
  if (!code) code = cli_side(a, 'b', a->value[OPT_B], arena, &s[1]);
  if (code) return code;
  for (int k = 0; k < 2; k++)
    jobs[k] = (lw_subject_job){
        .subject = &s[k],
        .module_path = a->positional[0],
        .which = a->value[OPT_MODULE],
        .out_dir = lw_arena_printf(arena, "%s/%c", scratch, "ab"[k])};
  lw_status st = lw_subject_compile_all(jobs, 2);
  for (int k = 0; k < 2 && !st; k++) {
    st = jobs[k].status;
    jobs[k].status = NULL;
  }
  lw_subject_jobs_free(jobs, 2);
  return st ? cli_fail_subject(st) : CLI_YES;
}

static int diff_sides(const cli_args *a) {
  char *scratch;
  lw_arena *arena = lw_arena_new();
  lw_status st = lw_scratch_new(&scratch);
  int code = st ? cli_fail(st) : compile_sides(a, arena, scratch);
  if (!code) {
    cli_args files = *a;
    files.positional[0] = lw_arena_printf(arena, "%s/a/after.hlo", scratch);
    files.positional[1] = lw_arena_printf(arena, "%s/b/after.hlo", scratch);
    files.value[OPT_MODULE] = NULL;
    code = diff_files(&files);
  }
  lw_scratch_free(scratch);
  lw_arena_free(arena);
  return code;
}

int cli_run_diff(const cli_args *a) {
  bool sides = a->value[OPT_A] || a->value[OPT_B];
  if (sides != (a->n_positional == 1)) {
    cli_error(
        "lawson diff needs two modules, or one with --a='OPTIONS' and "
        "--b='OPTIONS'");
    return CLI_USAGE;
  }
  return sides ? diff_sides(a) : diff_files(a);
}

/* ---- extract ---- */

static const char *plain_name(const char *s) { return s + (*s == '%'); }

static lw_inst *find_inst(const lw_module *m, const char *name) {
  for (lw_comp *c = m->first_comp; c; c = c->next) {
    for (lw_inst *i = c->first; i; i = i->next) {
      if (!strcmp(i->name, name)) return i;
    }
  }
  return NULL;
}

static lw_comp *find_comp(const lw_module *m, const char *name) {
  for (lw_comp *c = m->first_comp; c; c = c->next) {
    if (!strcmp(c->name, name)) return c;
  }
  return NULL;
}

/* The instruction over parameters in place of its operands. */
static lw_module *extract_inst(const lw_module *m, const lw_inst *i) {
  lw_module *to = lw_module_new(m->ctx, i->name);
  lw_map comps = {0};
  lw_module_adopt_callees(to, i, &comps);
  lw_comp *entry = lw_comp_new(to, "main");
  lw_inst **operands = LW_NEW_ARRAY(to->arena, lw_inst *, i->n_operands + 1);
  for (int32_t k = 0; k < i->n_operands; k++) {
    const lw_inst *op = lw_inst_operand(i, k);
    operands[k] = lw_inst_parameter(entry, k, op->shape, op->name);
  }
  lw_inst *copy = lw_inst_clone(entry, i, operands, i->name);
  for (int32_t k = 0; k < lw_inst_called_count(copy); k++) {
    lw_inst_set_called(copy, k, lw_map_ptr(&comps, lw_inst_called(i, k)));
  }
  lw_inst_set_root(entry, copy);
  to->entry = entry;
  lw_map_free(&comps);
  return to;
}

static lw_module *extract_comp(const lw_module *m, lw_comp *c) {
  lw_module *to = lw_module_new(m->ctx, c->name);
  lw_map comps = {0};
  for (const lw_inst *i = c->first; i; i = i->next) {
    lw_module_adopt_callees(to, i, &comps);
  }
  to->entry = lw_comp_clone(to, c, c->name, &comps, NULL);
  lw_map_free(&comps);
  return to;
}

static int no_such_name(const lw_module *m, const char *name) {
  LW_VEC(const char *) names = {0};
  for (lw_comp *c = m->first_comp; c; c = c->next) {
    lw_vec_push(&names, c->name);
    for (lw_inst *i = c->first; i; i = i->next) lw_vec_push(&names, i->name);
  }
  const char *near = lw_nearest_name(name, names.data, names.len);
  if (near) {
    cli_error("%s has no instruction or computation %s; did you mean %s?",
              m->name, name, near);
  } else {
    cli_error("%s has no instruction or computation %s", m->name, name);
  }
  lw_vec_free(&names);
  return CLI_BAD_INPUT;
}

static int print_extract(const cli_args *a, const lw_module *m) {
  lw_buf b = {0};
  int code = CLI_YES;
  cJSON *j = cli_json(a);
  if (a->value[OPT_PROTO]) {
    lw_status st = lw_write_proto(m, false, &b);
    if (st) code = cli_fail(st);
  } else {
    lw_module_print(&b, m, &lw_print_default);
  }
  bool to_file = a->value[OPT_OUTPUT] && strcmp(a->value[OPT_OUTPUT], "-");
  if (!code && (to_file || !j)) {
    code = cli_product(a, b.data ? b.data : "", b.len);
  }
  if (j) {
    cJSON_AddStringToObject(j, "module", m->name);
    if (!a->value[OPT_PROTO])
      cJSON_AddStringToObject(j, "hlo", lw_buf_cstr(&b));
    cli_json_print(j);
  }
  lw_buf_free(&b);
  return code;
}

int cli_run_extract(const cli_args *a) {
  cli_input in;
  int code = cli_load(a, 0, true, &in);
  if (code) return code;
  const char *name = plain_name(a->positional[1]);
  lw_inst *i = find_inst(in.module, name);
  lw_comp *c = i ? NULL : find_comp(in.module, name);
  if (i && i->opcode == LW_OP_PARAMETER) {
    cli_error("%s is a parameter; there is nothing to extract", name);
    code = CLI_BAD_INPUT;
  } else if (!i && !c) {
    code = no_such_name(in.module, name);
  } else {
    lw_module *out =
        i ? extract_inst(in.module, i) : extract_comp(in.module, c);
    code = print_extract(a, out);
    lw_module_free(out);
  }
  cli_close(&in);
  return code;
}
