/* The names of a module that was read as text: as when XLA's parser adds the
 * computations to the module. Instructions of different computations may have
 * one name in the text; in a module they may not (hlo/names.c has the rule). */
#include "reader/text_parser.h"

static void name_comp(lw_module *m, lw_comp *c) {
  c->name = lw_name_unique(m->ctx, &m->comp_names, c->name);
  for (lw_inst *i = c->first; i; i = i->next)
    i->name = lw_name_unique(m->ctx, &m->names, i->name);
}

/* What parsing registered, in its own order, counts no more. */
void lw_text_make_unique(lw_module *m, lw_comp *first) {
  lw_map_free(&m->names);
  lw_map_free(&m->comp_names);
  if (first) name_comp(m, first);
  for (lw_comp *c = m->first_comp; c; c = c->next)
    if (c != first) name_comp(m, c);
}
