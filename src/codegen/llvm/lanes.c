/* Values in registers, whatever their width: forms, slots, the elementwise
 * operations (by emit_math.c), and scalar computations inlined on lanes.
 */
#include <string.h>

#include "codegen/llvm/emit.h"

/* ---- registers ---- */

lw_cgval lw_cg_splat(lw_fn *f, lw_cgval v, int width) {
  v.re = lw_splat(f, v.re, width);
  if (v.im) v.im = lw_splat(f, v.im, width);
  return v;
}

lw_cgval lw_cg_as(lw_fn *f, lw_cgval v, lw_rep rep) {
  return rep == LW_REP_WIDE ? lw_mathgen_widen(&f->g, v)
                            : lw_mathgen_narrow(&f->g, v);
}

lw_cgval lw_cg_select(lw_fn *f, LLVMValueRef c, lw_cgval a, lw_cgval b) {
  if (a.rep != b.rep) {
    a = lw_mathgen_narrow(&f->g, a);
    b = lw_mathgen_narrow(&f->g, b);
  }
  a.re = LLVMBuildSelect(f->b, c, a.re, b.re, "");
  if (a.im) a.im = LLVMBuildSelect(f->b, c, a.im, b.im, "");
  return a;
}

static bool is_narrow(lw_prim t) {
  return lw_prim_is_float(t) && lw_prim_bytes(t) < 4;
}

LLVMTypeRef lw_cg_type(lw_fn *f, lw_prim t, lw_rep rep, int width) {
  int old = lw_width(f, width);
  LLVMTypeRef x = lw_mathgen_reg_type(&f->g, lw_prim_part(t), rep);
  lw_width(f, old);
  return x;
}

lw_slot lw_slot_new(lw_fn *f, lw_prim t, int width) {
  lw_slot s = {.type = t, .width = width};
  s.rep = is_narrow(t) ? LW_REP_WIDE : LW_REP_BITS;
  LLVMTypeRef rt = lw_cg_type(f, t, s.rep, width);
  s.re = lw_local(f, rt, "acc");
  if (lw_prim_is_complex(t)) s.im = lw_local(f, rt, "acc.im");
  return s;
}

void lw_slot_set(lw_fn *f, const lw_slot *s, lw_cgval v) {
  int old = lw_width(f, s->width);
  v = lw_cg_as(f, v, s->rep);
  lw_width(f, old);
  LLVMBuildStore(f->b, v.re, s->re);
  if (s->im) LLVMBuildStore(f->b, v.im, s->im);
}

lw_cgval lw_slot_get(lw_fn *f, const lw_slot *s) {
  LLVMTypeRef t = lw_cg_type(f, s->type, s->rep, s->width);
  lw_cgval v = {.type = s->type, .rep = s->rep};
  v.re = LLVMBuildLoad2(f->b, t, s->re, "");
  if (s->im) v.im = LLVMBuildLoad2(f->b, t, s->im, "");
  return v;
}

/* ---- elementwise ---- */

static lw_elem_op elem_op(lw_fn *f, const lw_inst *i, const lw_cgval *ops) {
  lw_prim t[3] = {LW_PRIM_INVALID, LW_PRIM_INVALID, LW_PRIM_INVALID};
  for (int32_t j = 0; j < i->n_operands && j < 3; j++) t[j] = ops[j].type;
  lw_elem_op op = lw_elem_make(i->opcode, t[0], t[1], t[2], i->shape->type);
  op.dir = (lw_cmp_dir)lw_inst_i64(i, LW_ATTR_DIRECTION, 0);
  op.total_order =
      lw_inst_i64(i, LW_ATTR_COMPARE_TYPE, LW_CT_NONE) == LW_CT_TOTALORDER;
  op.exponent_bits = (int)lw_inst_i64(i, LW_ATTR_EXPONENT_BITS, 0);
  op.mantissa_bits = (int)lw_inst_i64(i, LW_ATTR_MANTISSA_BITS, 0);
  op.flush_denormals = f->flush;
  op.canonical_nan = f->canonical;
  return op;
}

lw_cgval lw_emit_elem(lw_fn *f, const lw_inst *i, const lw_cgval *ops,
                      int width) {
  lw_elem_op op = elem_op(f, i, ops);
  lw_elem_fn fn;
  lw_status s = lw_elem_resolve(&op, &fn);
  int old = lw_width(f, width);
  f->g.masked = f->mask.v != NULL;
  lw_cgval none = {0}, r;
  if (s) {
    lw_fn_fail(f, lw_status_annotate(s, "%s", i->name));
    lw_rep rep = is_narrow(i->shape->type) ? LW_REP_WIDE : LW_REP_BITS;
    LLVMTypeRef t = lw_cg_type(f, i->shape->type, rep, width);
    r = (lw_cgval){LLVMGetUndef(t), LLVMGetUndef(t), i->shape->type, rep};
    if (!lw_prim_is_complex(i->shape->type)) r.im = NULL;
  } else {
    r = lw_mathgen_elem(&f->g, &op, ops[0], i->n_operands > 1 ? ops[1] : none,
                        i->n_operands > 2 ? ops[2] : none);
  }
  lw_width(f, old);
  return r;
}

/* ---- scalar computations on lanes ---- */

typedef struct {
  const lw_cgval *args; /* leaves of the parameters */
  int width;
  lw_map done; /* inst -> lw_cgval* per leaf */
} comp_run;

static const lw_cgval *comp_value(lw_fn *f, comp_run *r, lw_value v);

lw_cgval lw_cg_const(lw_fn *f, const lw_literal *l, int width) {
  int old = lw_width(f, width);
  lw_cgval v = lw_mathgen_const(&f->g, l->shape->type, l->data);
  lw_width(f, old);
  return v;
}

static void comp_call(lw_fn *f, comp_run *r, const lw_inst *i, lw_cgval *out) {
  int64_t n = 0;
  for (int32_t j = 0; j < i->n_operands; j++)
    n += lw_shape_leaf_count(lw_inst_operand(i, j)->shape);
  lw_cgval *args = LW_NEW_ARRAY(f->arena, lw_cgval, n + 1);
  n = 0;
  for (int32_t j = 0; j < i->n_operands; j++) {
    const lw_inst *o = lw_inst_operand(i, j);
    for (int32_t l = 0; l < lw_shape_leaf_count(o->shape); l++)
      args[n++] = *comp_value(f, r, lw_value_of(o, l));
  }
  lw_emit_comp(f, lw_inst_called(i, 0), args, r->width, out);
}

/* An error, and undef for emission to go on with. */
static void comp_unknown(lw_fn *f, comp_run *r, const lw_inst *i,
                         lw_cgval *out) {
  lw_fn_fail(f, lw_error(LW_UNIMPLEMENTED,
                         "%s: no code for %s in a scalar computation", i->name,
                         lw_opcode_name(i->opcode)));
  for (int64_t l = 0; l < lw_shape_leaf_count(i->shape); l++) {
    lw_prim t = lw_shape_leaf(i->shape, l)->type;
    LLVMTypeRef x = lw_cg_type(f, t, LW_REP_BITS, r->width);
    out[l] = (lw_cgval){.re = LLVMGetUndef(x), .type = t};
    if (lw_prim_is_complex(t)) out[l].im = LLVMGetUndef(x);
  }
}

static void comp_inst(lw_fn *f, comp_run *r, const lw_inst *i, lw_cgval *out) {
  lw_cgval ops[3] = {{0}};
  if (i->opcode == LW_OP_PARAMETER) {
    const lw_comp *c = i->parent;
    int32_t first = 0;
    for (int64_t p = 0; p < lw_inst_param_number(i); p++)
      first += (int32_t)lw_shape_leaf_count(c->params.data[p]->shape);
    int32_t n = (int32_t)lw_shape_leaf_count(i->shape);
    for (int32_t l = 0; l < n; l++) out[l] = r->args[first + l];
  } else if (i->opcode == LW_OP_CONSTANT) {
    out[0] = lw_cg_const(f, lw_inst_literal(i), r->width);
  } else if (lw_opcode_is_elementwise(i->opcode)) {
    for (int32_t j = 0; j < i->n_operands && j < 3; j++)
      ops[j] = *comp_value(f, r, lw_value_operand(i, j));
    out[0] = lw_emit_elem(f, i, ops, r->width);
  } else if (i->opcode == LW_OP_BROADCAST || i->opcode == LW_OP_RESHAPE ||
             i->opcode == LW_OP_BITCAST || i->opcode == LW_OP_COPY ||
             i->opcode == LW_OP_TRANSPOSE) {
    out[0] = *comp_value(f, r, lw_value_operand(i, 0));
  } else if (i->opcode == LW_OP_CALL || i->opcode == LW_OP_FUSION ||
             i->opcode == LW_OP_MAP) {
    comp_call(f, r, i, out);
  } else {
    comp_unknown(f, r, i, out);
  }
}

static const lw_cgval *comp_value(lw_fn *f, comp_run *r, lw_value v) {
  lw_cgval *out = lw_map_ptr(&r->done, v.inst);
  if (!out) {
    out = LW_NEW_ARRAY(f->arena, lw_cgval,
                       lw_shape_leaf_count(v.inst->shape) + 1);
    comp_inst(f, r, v.inst, out);
    lw_map_set_ptr(&r->done, v.inst, out);
  }
  return &out[v.leaf];
}

void lw_emit_comp(lw_fn *f, const lw_comp *c, const lw_cgval *args, int width,
                  lw_cgval *results) {
  comp_run r = {.args = args, .width = width};
  int32_t n = (int32_t)lw_shape_leaf_count(c->root->shape);
  for (int32_t l = 0; l < n; l++)
    results[l] = *comp_value(f, &r, lw_value_of(c->root, l));
  lw_map_free(&r.done);
}
