/* From an earlier module than XLA's fusion pipeline sees, a GPU's decisions are
 * approximate: Lawson's clean-up passes stand where XLA:GPU runs its own. This
 * table names what those do beyond ours, each with the instructions it could
 * have touched, so that a module with no dot is not told of gemms. XLA's order
 * and pass names: jaxlib 0.10.2's log of the passes that ran. */
#include "driver/approximate.h"

typedef bool (*touches_fn)(const lw_inst *i);

static bool is_float_array(const lw_inst *i) {
  return lw_prim_is_float(i->shape->type);
}

static bool is_scatter(const lw_inst *i) { return i->opcode == LW_OP_SCATTER; }
static bool is_sort(const lw_inst *i) { return i->opcode == LW_OP_SORT; }
static bool is_topk(const lw_inst *i) { return i->opcode == LW_OP_TOPK; }
static bool is_fft(const lw_inst *i) { return i->opcode == LW_OP_FFT; }
static bool is_reduce(const lw_inst *i) { return i->opcode == LW_OP_REDUCE; }
static bool is_loop(const lw_inst *i) { return i->opcode == LW_OP_WHILE; }
static bool is_convolution(const lw_inst *i) {
  return i->opcode == LW_OP_CONVOLUTION;
}
static bool is_windowed(const lw_inst *i) {
  return i->opcode == LW_OP_REDUCE_WINDOW ||
         i->opcode == LW_OP_SELECT_AND_SCATTER;
}

static bool is_dot(const lw_inst *i) {
  return i->opcode == LW_OP_DOT || i->opcode == LW_OP_RAGGED_DOT ||
         i->opcode == LW_OP_SCALED_DOT;
}

static bool is_solver(const lw_inst *i) {
  return i->opcode == LW_OP_CHOLESKY || i->opcode == LW_OP_TRIANGULAR_SOLVE;
}

static bool is_random(const lw_inst *i) {
  return i->opcode == LW_OP_RNG || i->opcode == LW_OP_RNG_BIT_GENERATOR;
}

static bool is_collective(const lw_inst *i) {
  switch ((int)i->opcode) {
    case LW_OP_ALL_GATHER:
    case LW_OP_ALL_REDUCE:
    case LW_OP_ALL_TO_ALL:
    case LW_OP_COLLECTIVE_BROADCAST:
    case LW_OP_COLLECTIVE_PERMUTE:
    case LW_OP_RAGGED_ALL_TO_ALL:
    case LW_OP_REDUCE_SCATTER:
      return true;
    default:
      return false;
  }
}

/* Rewrites that change bits, which Lawson makes only on request: x / c into
 * x * (1/c), sums regrouped around constants, powers into products. */
static bool is_inexact(const lw_inst *i) {
  switch ((int)i->opcode) {
    case LW_OP_ADD:
    case LW_OP_SUBTRACT:
    case LW_OP_MULTIPLY:
    case LW_OP_DIVIDE:
    case LW_OP_POWER:
    case LW_OP_SQRT:
    case LW_OP_RSQRT:
    case LW_OP_EXPONENTIAL:
    case LW_OP_LOG:
      return is_float_array(i);
    default:
      return false;
  }
}

/* Arithmetic in a type narrower than f32 is widened, convert by convert. */
static bool is_narrow(const lw_inst *i) {
  return is_float_array(i) && lw_prim_bytes(i->shape->type) <= 2 &&
         i->shape->type != LW_F16 && i->opcode != LW_OP_PARAMETER;
}

/* Where another order of the dims in memory could have been chosen. */
static bool has_layout_choice(const lw_inst *i) {
  return lw_shape_is_array(i->shape) && i->shape->rank >= 2 &&
         (is_dot(i) || is_convolution(i) || is_reduce(i) || is_solver(i) ||
          is_fft(i) || i->opcode == LW_OP_TRANSPOSE ||
          i->opcode == LW_OP_CUSTOM_CALL || i->opcode == LW_OP_RESHAPE);
}

static const struct {
  const char *text;
  touches_fn touches;
} steps[] = {
    {"the algebraic simplifier's inexact rewrites (algsimp)", is_inexact},
    {"scatter expanders (gpu_scatter_expander, scatter_simplifier)",
     is_scatter},
    {"sorts into CUB calls (stable-sort-expander, sort-rewriter)", is_sort},
    {"top-k split and specialised (topk-splitter, topk-specializer)", is_topk},
    {"random bits expanded (rng-bit-generator-expander)", is_random},
    {"loops' constants and trip counts (while-loop-constant-sinking)", is_loop},
    {"collectives combined and made asynchronous", is_collective},
    {"convolutions into cuDNN calls (conv-rewriter)", is_convolution},
    {"layout assignment and normalization: every array here is row-major",
     has_layout_choice},
    {"gemm rewriting into cuBLAS calls (cublas-gemm-rewriter)", is_dot},
    {"gemm fusions in Triton (triton-gemm-rewriter), dot autotuning", is_dot},
    {"softmax fusions in Triton (triton-softmax-rewriter)", is_reduce},
    {"reductions: degenerate dims, layout, dimension grouping, splitting "
     "(reduction-splitter, tree-reduction-rewriter)",
     is_reduce},
    {"window reductions (reduce-window-rewriter)", is_windowed},
    {"factorisations and solves into cuSOLVER and cuBLAS calls", is_solver},
    {"float normalization (float-normalization-bf16, -f8*)", is_narrow},
};
enum { N_STEPS = sizeof steps / sizeof *steps };
_Static_assert((int)N_STEPS <= (int)LW_APPROXIMATE_MAX, "names holds them");

static bool touches_module(const lw_module *m, touches_fn touches) {
  for (const lw_comp *c = m->first_comp; c; c = c->next)
    for (const lw_inst *i = c->first; i; i = i->next)
      if (touches(i)) return true;
  return false;
}

int32_t lw_approximate_steps(const lw_module *m,
                             const char *names[LW_APPROXIMATE_MAX]) {
  int32_t n = 0;
  for (int k = 0; k < N_STEPS; k++)
    if (touches_module(m, steps[k].touches)) names[n++] = steps[k].text;
  return n;
}

void lw_approximate_print(lw_buf *b, const lw_module *m) {
  const char *names[LW_APPROXIMATE_MAX];
  int32_t n = lw_approximate_steps(m, names);
  lw_buf_str(b,
             "// APPROXIMATE: XLA:GPU's fusion pipeline on a module that "
             "Lawson's own passes prepared.\n");
  lw_buf_str(b, n ? "// XLA does this before it, and Lawson does not:\n"
                  : "// Nothing that XLA does before it and Lawson does not "
                    "could touch this module.\n");
  for (int32_t k = 0; k < n; k++) lw_buf_printf(b, "//   %s\n", names[k]);
}
