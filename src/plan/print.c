/* The plan as text (docs/plan.md explains the form). */
#include "plan/plan.h"

static void print_slice(lw_buf *b, const lw_plan *p, int32_t s) {
  const lw_slice *l = &p->slices[s];
  switch (l->kind) {
    case LW_ALLOC_PARAM:
      lw_buf_printf(b, "param%d", l->index);
      break;
    case LW_ALLOC_OUTPUT:
      lw_buf_printf(b, "out%d", l->index);
      break;
    case LW_ALLOC_CONSTANT:
      lw_buf_printf(b, "const%d", l->index);
      break;
    case LW_ALLOC_TEMP:
      if (l->bytes == 0) {
        lw_buf_str(b, "empty");
      } else {
        lw_buf_printf(b, "temp+%lld", (long long)l->offset);
      }
      break;
  }
}

static void print_list(lw_buf *b, const lw_plan *p, const lw_node *n,
                       int32_t first, int32_t count) {
  for (int32_t k = 0; k < count; k++) {
    if (k) lw_buf_str(b, ", ");
    print_slice(b, p, n->slices[first + k]);
  }
}

static void indent(lw_buf *b, int depth) {
  for (int k = 0; k < depth; k++) lw_buf_str(b, "  ");
}

static void print_kernel(lw_buf *b, const lw_plan *p, const lw_node *n) {
  const lw_kernel *k = p->kernels[n->kernel];
  lw_buf_printf(b, "kernel %d %%%s (", n->kernel, n->inst->name);
  print_list(b, p, n, 0, k->n_params);
  lw_buf_str(b, ") -> (");
  print_list(b, p, n, k->n_params, k->n_outputs);
  lw_buf_chr(b, ')');
  if (k->n_scratch) {
    lw_buf_str(b, " scratch (");
    print_list(b, p, n, k->n_params + k->n_outputs, k->n_scratch);
    lw_buf_chr(b, ')');
  }
  if (k->n_phases > 1) lw_buf_printf(b, " phases %d", k->n_phases);
  lw_buf_chr(b, '\n');
}

static void print_library(lw_buf *b, const lw_plan *p, const lw_node *n) {
  int32_t outs = lw_plan_array_leaves(n->inst->shape);
  lw_buf_printf(b, "library %s %%%s (", lw_opcode_name(n->inst->opcode),
                n->inst->name);
  print_list(b, p, n, 0, n->n_slices - outs);
  lw_buf_str(b, ") -> (");
  print_list(b, p, n, n->n_slices - outs, outs);
  lw_buf_str(b, ")\n");
}

static void print_node(lw_buf *b, const lw_plan *p, const lw_node *n,
                       int depth) {
  indent(b, depth);
  switch (n->kind) {
    case LW_NODE_SEQ:
      lw_buf_str(b, "seq");
      if (n->inst) lw_buf_printf(b, " %%%s", n->inst->name);
      lw_buf_chr(b, '\n');
      break;
    case LW_NODE_KERNEL:
      print_kernel(b, p, n);
      break;
    case LW_NODE_LIBRARY:
      print_library(b, p, n);
      break;
    case LW_NODE_COPY:
      lw_buf_str(b, "copy ");
      print_list(b, p, n, 0, 1);
      lw_buf_str(b, " -> ");
      print_list(b, p, n, 1, 1);
      lw_buf_printf(b, " %lld bytes (%s)\n",
                    (long long)p->slices[n->slices[1]].bytes, n->reason);
      break;
    case LW_NODE_WHILE:
      lw_buf_printf(b, "while %%%s ", n->inst->name);
      if (n->trip_count >= 0) {
        lw_buf_printf(b, "%lld times", (long long)n->trip_count);
      } else {
        lw_buf_str(b, "on ");
        print_list(b, p, n, 0, 1);
      }
      lw_buf_chr(b, '\n');
      break;
    case LW_NODE_CONDITIONAL:
      lw_buf_printf(b, "conditional %%%s on ", n->inst->name);
      print_list(b, p, n, 0, 1);
      lw_buf_chr(b, '\n');
      break;
  }
  for (int32_t k = 0; k < n->n_children; k++) {
    print_node(b, p, n->children[k], depth + 1);
  }
}

void lw_plan_print(lw_buf *b, const lw_plan *p) {
  lw_buf_printf(b,
                "plan %s: %d kernels, %lld temp bytes, %d constants, "
                "%d parameters, %d outputs\n",
                p->module->name, p->n_kernels, (long long)p->temp_bytes,
                p->n_constants, p->n_params, p->n_outputs);
  for (int32_t k = 0; k < p->n_outputs; k++) {
    if (p->output_alias[k] >= 0) {
      lw_buf_printf(b, "out%d is param%d, donated\n", k, p->output_alias[k]);
    }
  }
  print_node(b, p, p->root, 0);
  lw_buf_str(b, "live ranges (steps):\n");
  for (int32_t k = 0; k < p->n_live; k++) {
    const lw_live_range *l = &p->live[k];
    lw_buf_printf(b, "  %5d..%-5d ", l->first, l->last);
    print_slice(b, p, l->slice);
    lw_buf_printf(b, " %lld bytes %%%s", (long long)p->slices[l->slice].bytes,
                  l->inst->name);
    if (!lw_shape_is_array(l->inst->shape)) lw_buf_printf(b, "{%d}", l->leaf);
    lw_buf_chr(b, '\n');
  }
}
