/* lawson opt: the optimised module, or what became of it further on. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "common.h"
#include "driver/approximate.h"
#include "fusion/gpu_decisions.h"
#include "fusion/report.h"
#include "hlo/print.h"
#include "reader/proto.h"

/* ---- Graphviz ---- */

static void dot_name(lw_buf *b, const lw_comp *c, const lw_inst *i) {
  lw_buf_printf(b, "\"%d.%d\"", c->id, i->id);
}

static void dot_text(lw_buf *b, const char *s) {
  for (; *s; s++) {
    if (strchr("\"\\{}<>|", *s)) lw_buf_chr(b, '\\');
    lw_buf_chr(b, *s);
  }
}

static const char *dot_color(const lw_inst *i) {
  if (i->opcode == LW_OP_FUSION) return "lightgoldenrod";
  if (i->opcode == LW_OP_PARAMETER) return "lightsteelblue";
  if (i->opcode == LW_OP_CONSTANT) return "gray90";
  if (lw_inst_called_count(i)) return "lightpink";
  return "white";
}

static void dot_comp(lw_buf *b, const lw_comp *c) {
  lw_buf_printf(b, "subgraph \"cluster_%d\" {\nlabel=\"", c->id);
  dot_text(b, c->name);
  lw_buf_str(b, "\";\n");
  for (const lw_inst *i = c->first; i; i = i->next) {
    dot_name(b, c, i);
    lw_buf_printf(b, " [shape=box,style=filled,fillcolor=%s%s,label=\"",
                  dot_color(i), lw_inst_is_root(i) ? ",penwidth=3" : "");
    dot_text(b, i->name);
    lw_buf_printf(b, "\\n%s ", lw_opcode_name(i->opcode));
    lw_buf shape = {0};
    lw_shape_print(&shape, i->shape, false);
    dot_text(b, lw_buf_cstr(&shape));
    lw_buf_free(&shape);
    lw_buf_str(b, "\"];\n");
  }
  lw_buf_str(b, "}\n");
  for (const lw_inst *i = c->first; i; i = i->next) {
    for (int32_t k = 0; k < i->n_operands; k++) {
      dot_name(b, c, lw_inst_operand(i, k));
      lw_buf_str(b, " -> ");
      dot_name(b, c, i);
      lw_buf_str(b, ";\n");
    }
    for (int32_t k = 0; k < lw_inst_called_count(i); k++) {
      const lw_comp *callee = lw_inst_called(i, k);
      if (!callee->root) continue;
      dot_name(b, callee, callee->root);
      lw_buf_str(b, " -> ");
      dot_name(b, c, i);
      lw_buf_str(b, " [style=dotted];\n");
    }
  }
}

static void print_dot(lw_buf *b, const lw_module *m) {
  lw_buf_str(b, "digraph \"");
  dot_text(b, m->name);
  lw_buf_str(b, "\" {\nnode [fontname=monospace,fontsize=10];\n");
  for (const lw_comp *c = m->first_comp; c; c = c->next) dot_comp(b, c);
  lw_buf_str(b, "}\n");
}

/* ---- the pass table ---- */

/* What the disabled passes would have done: a second optimisation without
 * --disable, for the report only. */
static void report_disabled(const cli_args *a, const cli_input *in) {
  const char *list = a->value[OPT_DISABLE];
  lw_compile_options o = cli_compile_options(a);
  lw_compiled *c;
  o.disable = NULL;
  o.dump_passes = NULL;
  lw_status st = lw_optimize(in->module, &o, &c);
  if (st) {
    lw_status_free(st);
    return;
  }
  const lw_pipeline_report *r = lw_compiled_report(c);
  for (int32_t k = 0; k < r->n; k++) {
    const lw_pass_result *p = &r->v[k];
    if (!lw_str_listed(list, p->pass->name)) continue;
    cli_note(
        "disabled: %s (would have run %d times, changed the module in "
        "%d, instructions %+lld)",
        p->pass->name, p->runs, p->moved_runs, (long long)p->inst_delta);
  }
  lw_compiled_free(c);
}

static void report_passes(const cli_args *a, const cli_input *in,
                          const lw_compiled *c) {
  lw_buf b = {0};
  lw_pipeline_report_print(&b, lw_compiled_report(c));
  fputs(lw_buf_cstr(&b), stderr);
  lw_buf_free(&b);
  if (a->value[OPT_DISABLE]) report_disabled(a, in);
}

static cJSON *json_passes(const lw_pipeline_report *r) {
  cJSON *list = cJSON_CreateArray();
  for (int32_t k = 0; k < r->n; k++) {
    const lw_pass_result *p = &r->v[k];
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "pass", p->pass->name);
    cJSON_AddStringToObject(o, "verdict", lw_pass_verdict_name(p->verdict));
    cJSON_AddNumberToObject(o, "runs", p->runs);
    cJSON_AddNumberToObject(o, "instructions", (double)p->inst_delta);
    cJSON_AddNumberToObject(o, "ms", (double)p->time_ns / 1e6);
    cJSON_AddItemToArray(list, o);
  }
  return list;
}

/* ---- what is printed ---- */

static bool wants_plan(const cli_args *a) {
  return a->value[OPT_DUMP_KERNELS] || a->value[OPT_DUMP_PLAN];
}

static bool wants_code(const cli_args *a) {
  return a->value[OPT_DUMP_LLVM] || a->value[OPT_DUMP_ASM];
}

static void print_decisions(lw_buf *b, const lw_compiled *c) {
  if (!strcmp(lw_compiled_target(c)->backend_name, "gpu"))
    lw_gpu_decisions_print(b, lw_compiled_trace(c));
  else
    lw_trace_print(b, lw_compiled_trace(c));
}

/* --decisions=FILE */
static int write_decisions(const cli_args *a, const lw_compiled *c) {
  const char *path = a->value[OPT_DECISIONS];
  if (!path || !*path) return CLI_YES;
  lw_buf b = {0};
  print_decisions(&b, c);
  lw_status st = lw_file_write(path, lw_buf_cstr(&b), b.len);
  lw_buf_free(&b);
  return st ? cli_fail(st) : CLI_YES;
}

static void print_dumps(const cli_args *a, const lw_compiled *c, lw_buf *b) {
  const lw_plan *p = lw_compiled_plan(c);
  const char *decisions = a->value[OPT_DECISIONS];
  if (decisions && !*decisions) print_decisions(b, c);
  for (int32_t k = 0; a->value[OPT_DUMP_KERNELS] && k < p->n_kernels; k++) {
    lw_kernel_print(b, p->kernels[k]);
  }
  if (a->value[OPT_DUMP_PLAN]) lw_plan_print(b, p);
  if (a->value[OPT_DUMP_LLVM]) {
    lw_buf_str(b, lw_codegen_llvm(lw_compiled_codegen(c)));
  }
  if (a->value[OPT_DUMP_ASM]) {
    lw_buf_str(b, lw_codegen_asm(lw_compiled_codegen(c)));
  }
  if (a->value[OPT_DOT]) print_dot(b, lw_compiled_module(c));
}

/* What fusing did, against the module with every operation on its own. */
static int print_report(const cli_args *a, const cli_input *in,
                        const lw_compiled *c, lw_buf *b) {
  lw_compile_options o = cli_compile_options(a);
  o.fusion = "none";
  o.dump_passes = o.passes = NULL;
  lw_compiled *unfused;
  lw_status st = lw_optimize(in->module, &o, &unfused);
  if (st) return cli_fail_compile(a, st);
  lw_fusion_report before = lw_fusion_report_of(in->module);
  lw_fusion_report none = lw_fusion_report_of(lw_compiled_module(unfused));
  lw_fusion_report now = lw_fusion_report_of(lw_compiled_module(c));
  lw_buf_printf(b, "instructions read        %lld\n",
                (long long)before.instructions);
  lw_buf_printf(b, "kernels, nothing fused   %lld, %lld intermediate bytes\n",
                (long long)none.kernels, (long long)none.intermediate_bytes);
  lw_buf_printf(b,
                "kernels, fused           %lld (%lld fusions), %lld "
                "intermediate bytes\n",
                (long long)now.kernels, (long long)now.fusions,
                (long long)now.intermediate_bytes);
  lw_buf_printf(b, "bytes kept off memory    %lld\n",
                (long long)(none.intermediate_bytes - now.intermediate_bytes));
  lw_compiled_free(unfused);
  return CLI_YES;
}

/* Lawson's own passes stand where XLA:GPU runs its own. */
static bool is_approximate(const cli_args *a, const lw_compiled *c) {
  const char *fusion = a->value[OPT_FUSION];
  return !a->value[OPT_ONLY_FUSION] && fusion && !strcmp(fusion, "xla") &&
         !strcmp(lw_compiled_target(c)->backend_name, "gpu");
}

static cJSON *json_approximate(const lw_module *m) {
  const char *names[LW_APPROXIMATE_MAX];
  int32_t n = lw_approximate_steps(m, names);
  return cJSON_CreateStringArray(names, n);
}

static int print_module(const cli_args *a, const cli_input *in,
                        const lw_compiled *c) {
  const lw_module *m = lw_compiled_module(c);
  lw_buf b = {0};
  int code = CLI_YES;
  if (a->value[OPT_PROTO]) {
    lw_status st = lw_write_proto(m, false, &b);
    if (st) code = cli_fail(st);
  } else {
    if (is_approximate(a, c)) lw_approximate_print(&b, in->module);
    lw_module_print(&b, m, &lw_print_default);
  }
  if (!code) code = cli_product(a, b.data ? b.data : "", b.len);
  lw_buf_free(&b);
  return code;
}

static bool dumps_only(const cli_args *a) {
  return wants_plan(a) || wants_code(a) || a->value[OPT_DOT] ||
         (a->value[OPT_DECISIONS] && !*a->value[OPT_DECISIONS]) ||
         a->value[OPT_REPORT];
}

static int print_all(const cli_args *a, const cli_input *in,
                     const lw_compiled *c) {
  lw_buf b = {0};
  const lw_module *m = lw_compiled_module(c);
  print_dumps(a, c, &b);
  int code = write_decisions(a, c);
  if (!code && a->value[OPT_REPORT]) code = print_report(a, in, c, &b);
  cJSON *j = cli_json(a);
  if (j) {
    cJSON_AddStringToObject(j, "module", m->name);
    lw_fusion_report r = lw_fusion_report_of(m);
    cJSON_AddNumberToObject(j, "instructions", (double)r.instructions);
    cJSON_AddNumberToObject(j, "kernels", (double)r.kernels);
    cJSON_AddNumberToObject(j, "fusions", (double)r.fusions);
    cJSON_AddNumberToObject(j, "intermediate_bytes",
                            (double)r.intermediate_bytes);
    cJSON_AddItemToObject(j, "passes", json_passes(lw_compiled_report(c)));
    if (is_approximate(a, c))
      cJSON_AddItemToObject(j, "approximate", json_approximate(in->module));
    lw_buf text = {0};
    lw_module_print(&text, m, &lw_print_default);
    cJSON_AddStringToObject(j, "hlo", lw_buf_cstr(&text));
    lw_buf_free(&text);
    if (b.len) cJSON_AddStringToObject(j, "dump", lw_buf_cstr(&b));
  } else {
    cli_out(lw_buf_cstr(&b));
  }
  lw_buf_free(&b);
  bool module = a->value[OPT_OUTPUT] || (!dumps_only(a) && !j);
  if (!code && module) code = print_module(a, in, c);
  if (j) cli_json_print(j);
  return code;
}

int cli_run_opt(const cli_args *a) {
  cli_input in;
  const char *out = a->value[OPT_OUTPUT];
  if (a->value[OPT_JSON] && out && !strcmp(out, "-")) {
    cli_error("--json and -o - both want standard output");
    return CLI_USAGE;
  }
  int code = cli_load(a, 0, true, &in);
  if (code) return code;
  lw_compile_options o = cli_compile_options(a);
  o.keep_llvm = a->value[OPT_DUMP_LLVM] != NULL;
  o.keep_asm = a->value[OPT_DUMP_ASM] != NULL;
  lw_compiled *c;
  lw_status st = wants_code(a)   ? lw_compile(in.module, &o, &c)
                 : wants_plan(a) ? lw_compile_to_plan(in.module, &o, &c)
                                 : lw_optimize(in.module, &o, &c);
  if (st) {
    code = cli_fail_compile(a, st);
  } else {
    code = print_all(a, &in, c);
    report_passes(a, &in, c);
    lw_compiled_free(c);
  }
  cli_close(&in);
  return code;
}
