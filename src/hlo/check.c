/* Structure: what must hold before anything else can be asked.
 *
 * Order as in XLA's verifier: the module, its computations' lists and uses,
 * cycles among instructions and among computations; then, where an instruction
 * is sound, its attributes and shape; then what spans the module. A computation
 * with a broken list is reported and its instructions still looked at one by
 * one, so that one run shows all there is. */
#include "hlo/check.h"

#include <string.h>

#include "hlo/check_impl.h"
#include "hlo/infer.h"

/* ---- reporting ---- */

static void add(check *c, int32_t line, int32_t column, const char *who,
                const char *fmt, va_list ap) {
  lw_buf b = {0};
  if (who) lw_buf_printf(&b, "%s: ", who);
  lw_buf_vprintf(&b, fmt, ap);
  lw_diag_add(c->d, line, column, "%s", lw_buf_cstr(&b));
  lw_buf_free(&b);
}

void check_inst_error(check *c, const lw_inst *i, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  add(c, i->line, i->column, i->name, fmt, ap);
  va_end(ap);
}

void check_comp_error(check *c, const lw_comp *k, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  add(c, k->line, k->column, k->name, fmt, ap);
  va_end(ap);
}

void check_module_error(check *c, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  add(c, 0, 0, NULL, fmt, ap);
  va_end(ap);
}

/* ---- shapes ---- */

static const char *layout_fault(const lw_shape *s) {
  const lw_layout *l = s->layout;
  bool seen[LW_MAX_RANK] = {false};
  if (l->rank != s->rank) return "has a layout of another rank";
  for (int32_t i = 0; i < l->rank; i++) {
    int64_t d = l->minor_to_major[i];
    if (d < 0 || d >= s->rank || seen[d])
      return "has a layout that is not a permutation of its dimensions";
    seen[d] = true;
  }
  return NULL;
}

/* Arrays only: tuples are checked through the instructions that make them. */
static const char *shape_fault(const lw_shape *s) {
  if (!lw_shape_is_array(s)) return NULL;
  if (s->rank > LW_MAX_RANK) return "has too many dimensions";
  for (int32_t i = 0; i < s->rank; i++)
    if (s->dims[i] < 0 && s->dims[i] != LW_UNBOUNDED)
      return "has a negative dimension";
  return s->layout ? layout_fault(s) : NULL;
}

/* ---- one computation ---- */

bool check_is_sound(const lw_inst *i) {
  if ((unsigned)i->opcode >= LW_OPCODE_COUNT || !i->shape) return false;
  for (int32_t k = 0; k < i->n_operands; k++)
    if (!i->operands[k].def || !i->operands[k].def->shape) return false;
  return true;
}

static void check_operand(check *c, const lw_inst *i, int32_t k) {
  const lw_use *u = &i->operands[k];
  if (!u->def) {
    check_inst_error(c, i, "operand %d is missing", k);
    return;
  }
  if (u->def->parent != i->parent)
    check_inst_error(c, i, "operand %d, %s, is not in the same computation", k,
                     u->def->name);
  if (u->user != i || u->slot != k)
    check_inst_error(c, i, "operand %d has a broken use record", k);
}

static void check_uses(check *c, const lw_inst *i) {
  int64_t n = 0;
  for (const lw_use *u = i->uses; u && n <= i->n_uses; u = u->next, n++)
    if (u->def != i) {
      check_inst_error(c, i, "its list of uses holds a use of something else");
      return;
    }
  if (n != i->n_uses)
    check_inst_error(c, i, "its list of uses has %lld entries, not %d",
                     (long long)n, i->n_uses);
}

static void check_links(check *c, const lw_comp *k, const lw_inst *i) {
  if (i->parent != k)
    check_inst_error(c, i, "is listed in %s but belongs elsewhere", k->name);
  if (!i->shape) check_inst_error(c, i, "has no shape");
  const char *fault = i->shape ? shape_fault(i->shape) : NULL;
  if (fault)
    check_inst_error(c, i, "its shape %s %s",
                     lw_infer_shape_str(c->ctx, i->shape), fault);
  for (int32_t o = 0; o < i->n_operands; o++) check_operand(c, i, o);
  check_uses(c, i);
  for (int32_t p = 0; p < i->n_control_preds; p++) {
    const lw_inst *pred = i->control_preds[p];
    if (!pred || pred->parent != k)
      check_inst_error(c, i,
                       "control predecessor %s is not in the same "
                       "computation",
                       pred ? pred->name : "(none)");
    else if (pred == i)
      check_inst_error(c, i, "is its own control predecessor");
  }
}

static void check_param(check *c, const lw_comp *k, const lw_inst *i) {
  int64_t n = lw_inst_param_number(i);
  if (n < 0 || n >= (int64_t)k->params.len)
    check_inst_error(c, i, "parameter number %lld is out of range",
                     (long long)n);
  else if (k->params.data[n] != i)
    check_inst_error(c, i, "parameter number %lld is already taken by %s",
                     (long long)n,
                     k->params.data[n] ? k->params.data[n]->name : "nothing");
}

static void check_comp(check *c, const lw_comp *k) {
  int64_t n = 0;
  for (const lw_inst *i = k->first; i; i = i->next, n++) {
    if ((unsigned)i->opcode >= LW_OPCODE_COUNT) {
      check_inst_error(c, i, "has an unknown opcode");
      continue;
    }
    check_links(c, k, i);
    if (i->opcode == LW_OP_PARAMETER) check_param(c, k, i);
  }
  if (n != k->n_insts)
    check_comp_error(c, k, "lists %lld instructions but counts %d",
                     (long long)n, k->n_insts);
  if (!n) check_comp_error(c, k, "is empty; a computation needs a root");
  if (!k->root)
    check_comp_error(c, k, "has no root; mark one instruction ROOT");
  else if (k->root->parent != k)
    check_comp_error(c, k, "its root %s is not in it", k->root->name);
  for (size_t p = 0; p < k->params.len; p++)
    if (!k->params.data[p])
      check_comp_error(c, k, "has %zu parameters, but none numbered %zu",
                       k->params.len, p);
}

/* ---- names ---- */

static void check_name(check *c, const lw_inst *i, lw_map *names) {
  if (!i->name || !*i->name) {
    check_inst_error(c, i, "has no name");
    return;
  }
  uint64_t *slot = lw_map_put(names, (uintptr_t)i->name);
  if (!*slot) {
    *slot = (uintptr_t)i;
    return;
  }
  const lw_inst *other = (const lw_inst *)(uintptr_t)*slot;
  if (other->line)
    check_inst_error(c, i,
                     "the name is already used in line %d; instruction "
                     "names are unique in a module",
                     other->line);
  else
    check_inst_error(c, i,
                     "the name is already used in %s; instruction names "
                     "are unique in a module",
                     other->parent ? other->parent->name : "the module");
}

/* Names are interned, so equal ones are one pointer. */
static void check_names(check *c) {
  lw_map names = {0}, comps = {0};
  for (const lw_comp *k = c->m->first_comp; k; k = k->next) {
    uint64_t *slot = lw_map_put(&comps, (uintptr_t)k->name);
    if (*slot)
      check_comp_error(c, k, "there are two computations of this name");
    *slot = 1;
    for (const lw_inst *i = k->first; i; i = i->next) check_name(c, i, &names);
  }
  lw_map_free(&names);
  lw_map_free(&comps);
}

/* ---- cycles among instructions ----
 * A depth-first walk with an explicit stack: chains are as long as modules. */

enum { WHITE, GREY, BLACK };

typedef struct {
  const lw_inst *i;
  int32_t at; /* next operand, then control predecessor */
} step;

static const lw_inst *next_dep(step *s) {
  const lw_inst *i = s->i;
  while (s->at < i->n_operands + i->n_control_preds) {
    int32_t k = s->at++;
    const lw_inst *d = k < i->n_operands ? i->operands[k].def
                                         : i->control_preds[k - i->n_operands];
    if (d && d->parent == i->parent) return d;
  }
  return NULL;
}

static void find_cycle(check *c, const lw_inst *start, uint8_t *color) {
  LW_VEC(step) stack = {0};
  if (color[start->id] != WHITE) return;
  color[start->id] = GREY;
  lw_vec_push(&stack, ((step){start, 0}));
  while (stack.len) {
    step *top = &stack.data[stack.len - 1];
    const lw_inst *d = next_dep(top);
    if (!d) {
      color[top->i->id] = BLACK;
      stack.len--;
    } else if (color[d->id] == GREY) {
      check_inst_error(c, top->i,
                       "depends on itself: it uses %s, which is "
                       "computed from it",
                       d->name);
    } else if (color[d->id] == WHITE) {
      color[d->id] = GREY;
      lw_vec_push(&stack, ((step){d, 0}));
    }
  }
  lw_vec_free(&stack);
}

static void check_cycles(check *c) {
  uint8_t *color = calloc((size_t)c->m->n_inst_ids + 1, 1);
  if (!color) lw_oom((size_t)c->m->n_inst_ids);
  for (const lw_comp *k = c->m->first_comp; k; k = k->next)
    for (const lw_inst *i = k->first; i; i = i->next) find_cycle(c, i, color);
  free(color);
}

/* ---- recursion among computations ---- */

typedef struct {
  const lw_comp *comp;
  const lw_inst *at;
  int32_t k;
} frame;

/* The next callee; *from is who calls it. */
static const lw_comp *next_callee(frame *f, const lw_inst **from) {
  for (; f->at; f->at = f->at->next, f->k = 0) {
    if ((unsigned)f->at->opcode >= LW_OPCODE_COUNT) continue;
    if (f->k >= lw_inst_called_count(f->at)) continue;
    *from = f->at;
    return lw_inst_called(f->at, f->k++);
  }
  return NULL;
}

static void find_recursion(check *c, const lw_comp *start, uint8_t *color) {
  LW_VEC(frame) stack = {0};
  if (color[start->id] != WHITE) return;
  color[start->id] = GREY;
  lw_vec_push(&stack, ((frame){start, start->first, 0}));
  while (stack.len) {
    frame *top = &stack.data[stack.len - 1];
    const lw_inst *from = NULL;
    const lw_comp *d = next_callee(top, &from);
    if (from && !d) continue; /* a missing computation: reported elsewhere */
    if (!d) {
      color[top->comp->id] = BLACK;
      stack.len--;
    } else if (!lw_map_get(&c->is_comp, (uintptr_t)d)) {
      check_inst_error(c, from, "calls %s, which is not in the module",
                       d->name);
    } else if (color[d->id] == GREY) {
      check_inst_error(c, from,
                       "calls %s, which leads back here; computations "
                       "cannot be recursive (use while)",
                       d->name);
    } else if (color[d->id] == WHITE) {
      color[d->id] = GREY;
      lw_vec_push(&stack, ((frame){d, d->first, 0}));
    }
  }
  lw_vec_free(&stack);
}

static void check_recursion(check *c) {
  uint8_t *color = calloc((size_t)c->m->n_comp_ids + 1, 1);
  if (!color) lw_oom((size_t)c->m->n_comp_ids);
  for (const lw_comp *k = c->m->first_comp; k; k = k->next)
    find_recursion(c, k, color);
  free(color);
}

/* ---- who calls what ---- */

static void note_fusions(check *c) {
  for (const lw_comp *k = c->m->first_comp; k; k = k->next)
    for (const lw_inst *i = k->first; i; i = i->next) {
      const lw_comp *body =
          i->opcode == LW_OP_FUSION ? lw_inst_comp(i, LW_ATTR_CALLS) : NULL;
      if (!body) continue;
      uint64_t *slot = lw_map_put(&c->fusion_of, (uintptr_t)body);
      if (*slot)
        check_inst_error(c, i,
                         "calls=%s is already the body of %s; a fusion "
                         "needs a body of its own",
                         body->name, ((const lw_inst *)(uintptr_t)*slot)->name);
      else
        *slot = (uintptr_t)i;
    }
}

static void check_called_once(check *c, const lw_inst *i) {
  for (int32_t k = 0; k < lw_inst_called_count(i); k++) {
    const lw_comp *d = lw_inst_called(i, k);
    if (i->opcode != LW_OP_FUSION && d &&
        lw_map_get(&c->fusion_of, (uintptr_t)d))
      check_inst_error(c, i, "calls %s, which is the body of a fusion",
                       d->name);
  }
}

void check_structure(check *c) {
  for (const lw_comp *k = c->m->first_comp; k; k = k->next)
    *lw_map_put(&c->is_comp, (uintptr_t)k) = 1;
  for (const lw_comp *k = c->m->first_comp; k; k = k->next) check_comp(c, k);
  check_names(c);
  check_cycles(c);
  check_recursion(c);
  note_fusions(c);
}

/* ---- the whole ---- */

void lw_check_module(const lw_module *m, lw_check_options o, lw_diags *d) {
  check c = {.m = m, .ctx = m->ctx, .o = o, .d = d};
  check_structure(&c);
  for (const lw_comp *k = m->first_comp; k; k = k->next)
    for (const lw_inst *i = k->first; i; i = i->next) {
      if (!check_is_sound(i)) continue;
      check_instruction(&c, i);
      check_called_once(&c, i);
    }
  check_header(&c);
  check_schedules(&c);
  check_channels(&c);
  lw_map_free(&c.fusion_of);
  lw_map_free(&c.is_comp);
}

lw_status lw_check_status(const lw_module *m, lw_check_options o,
                          const char *what) {
  lw_diags d = {.file = m->name};
  lw_check_module(m, o, &d);
  lw_status s = lw_diags_status(&d);
  lw_diags_free(&d);
  return what ? lw_status_annotate(s, "%s", what) : s;
}
