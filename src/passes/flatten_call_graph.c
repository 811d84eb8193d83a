/* flatten-call-graph: every body, condition, branch and callee gets a caller of
 * its own.
 *
 * Inlining a function that holds a loop leaves two loops sharing one body. The
 * passes that reshape loops and the buffer plan want to change or place one
 * without the other, so shared control computations are copied. Reducers and
 * fusion bodies have no state of their own and stay shared.
 */
#include "passes/inline.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

static bool is_control(const lw_inst *i) {
  return i->opcode == LW_OP_CALL || i->opcode == LW_OP_WHILE ||
         i->opcode == LW_OP_CONDITIONAL;
}

typedef struct {
  lw_module *m;
  lw_pass_env *env;
  lw_map seen; /* computation -> 1 */
  bool changed;
  LW_VEC(lw_comp *) work;
} flattener;

static void visit_callee(flattener *f, lw_inst *i, int32_t k) {
  lw_comp *c = lw_inst_called(i, k);
  if (lw_map_get(&f->seen, (uintptr_t)c)) {
    if (!lw_pass_fuel(f->env)) return;
    c = lw_comp_clone(f->m, c, NULL, NULL, NULL);
    lw_copy_fusion_bodies(c);
    lw_inst_set_called(i, k, c);
    lw_pass_count(f->env, "computations copied", 1);
    f->changed = true;
  }
  lw_map_set_ptr(&f->seen, c, c);
  lw_vec_push(&f->work, c);
}

static lw_status run(lw_module *m, lw_pass_env *env, bool *changed) {
  flattener f = {.m = m, .env = env};
  if (!m->entry) return NULL;
  lw_vec_push(&f.work, m->entry);
  while (f.work.len) {
    lw_comp *c = lw_vec_pop(&f.work);
    for (lw_inst *i = c->first; i; i = i->next)
      for (int32_t k = 0; is_control(i) && k < lw_inst_called_count(i); k++)
        visit_callee(&f, i, k);
  }
  *changed = f.changed;
  lw_vec_free(&f.work);
  lw_map_free(&f.seen);
  return NULL;
}

const lw_pass lw_pass_flatten_call_graph = {
    "flatten-call-graph", "gives every loop body and branch its own copy", NULL,
    run};
