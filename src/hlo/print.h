/* HLO text from the IR, as XLA's printer (jaxlib 0.10.2) writes it. */
#ifndef LW_HLO_PRINT_H
#define LW_HLO_PRINT_H

#include "hlo/hlo.h"

/* The order of computations in the module, and of instructions in them. */
typedef enum {
  /* As they were read or made, wherever that defines everything before its use
   * (always so in what a text gave); else XLA's. Reading a text and printing it
   * keeps its order, which XLA's own printer does not: it walks depth-first
   * over lists that its parser made in the order of the last such walk. */
  LW_ORDER_KEEP,
  LW_ORDER_XLA /* post orders; lists only where the module is scheduled */
} lw_print_order;

/* XLA's HloPrintOptions, by the same names. */
typedef struct {
  bool metadata;        /* and the stack tables */
  bool large_constants; /* else more than 10 elements print as {...} */
  bool backend_config;
  bool frontend_attrs;
  bool control_deps;
  bool layouts; /* in shapes */
  bool result_shapes;
  bool operand_shapes;
  bool operand_names;
  bool index_comments; /* a comment each 5 operands: index=5 */
  bool percent;
  bool program_shape;    /* (a: f32[]) -> f32[] */
  bool extra_attributes; /* those that the opcode has */
  bool ids;              /* names of computations; parameter_replication */
  bool async_sugar;      /* all-to-all-start instead of async-start */
  bool compact_gte;      /* %t#0 */
  bool nested_bodies;    /* called computations in place, not by name */
  bool canonical_names;  /* tmp_0, tmp_1, ... in each computation */
  lw_print_order order;
  int indent;    /* levels of two blanks */
  bool in_place; /* the printer's own: a body in an attribute, without a name */
  const lw_map *renames; /* lw_module_print's own: old name -> printed name */
} lw_print_options;

/* What HloModule::ToString prints, with every constant written out: the text
 * form that reads back as the same module. */
extern const lw_print_options lw_print_default;
/* HloPrintOptions::ShortParsable: no metadata, percent, program shapes. */
extern const lw_print_options lw_print_short;
/* HloPrintOptions::Canonical plus constants: equal for modules that differ in
 * names alone. Does not read back. */
extern const lw_print_options lw_print_canonical;

void lw_module_print(lw_buf *b, const lw_module *m, const lw_print_options *o);
void lw_comp_print(lw_buf *b, const lw_comp *c, const lw_print_options *o);
/* Without indentation, ROOT and newline. */
void lw_inst_print(lw_buf *b, const lw_inst *i, const lw_print_options *o);
/* One line without the shape: {1, 2}, { { 1 }, { 2 } }. Floats print with the
 * fewest digits XLA's rule gives that read back exactly. */
void lw_literal_print(lw_buf *b, const lw_literal *l);
/* One value of any array type: "1.5", "nan(0x1)", "(1, 2)", "true". */
void lw_literal_print_value(lw_buf *b, const lw_literal *l, int64_t index);
/* name=value of one attribute. */
void lw_attr_print(lw_buf *b, const lw_inst *i, const lw_attr *a,
                   const lw_print_options *o);
void lw_metadata_print(lw_buf *b, const lw_metadata *m); /* without braces */
void lw_sharding_print(lw_buf *b, const lw_sharding *s, bool metadata);
void lw_frontend_attrs_print(lw_buf *b, const lw_frontend_attrs *f);
/* A name XLA's parser takes: bad characters become '_', type names get one
 * more, a leading __ becomes a_. Returns the name itself when it is fine. */
const char *lw_name_legal(lw_context *ctx, const char *name);

/* The name as it is printed: legal, with % where asked for or needed. */
void lw_print_name(lw_buf *b, lw_context *ctx, const char *name,
                   const lw_print_options *o);
/* "..." with C escapes. */
void lw_print_quoted(lw_buf *b, const char *s);
/* As {...} when it reads back so, else quoted. */
void lw_print_config(lw_buf *b, const char *s);

#endif
