/* The two instantiations give the same bits: every elementwise opcode on every
 * combination of types that lw_elem_resolve accepts, emitted as vector code,
 * compiled and run on random and special inputs, against the scalar loops.
 *
 *   test_math_llvm          each operation at one width and machine, by turns
 *   test_math_llvm --all    each at every width and machine
 *
 * Narrow floats are also checked in a chain, where the operand arrives WIDE.
 */
#include <llvm-c/Core.h>
#include <llvm-c/ExecutionEngine.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/llvm/emit_math.h"
#include "math/elementwise.h"

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { N = 256, MAX_OPS = 8000 };

typedef struct {
  const char *cpu, *features;
  bool avx2, avx512, f16c, fma;
} machine;

typedef struct {
  lw_elem_op op;
  bool chained; /* op(a + b, b) for a narrow float */
} item;

static item items[MAX_OPS];
static int item_count;
static bool all;

/* ---- the operations ---- */

static const lw_prim arrays[] = {
#define P(e, name, num, bits, cls, eb, mb) LW_##e,
#include "hlo/prim_types.def"
#undef P
};
enum { TYPES = sizeof arrays / sizeof *arrays };

static void add_item(lw_elem_op op) {
  lw_elem_fn fn;
  lw_status s = lw_elem_resolve(&op, &fn);
  if (s) {
    lw_status_free(s);
    return;
  }
  assert_true(item_count + 2 < MAX_OPS);
  op.canonical_nan = true;
  items[item_count++] = (item){op, false};
  lw_prim t = op.in[0];
  bool narrow = lw_prim_is_float(t) && lw_prim_bytes(t) < 4;
  if (narrow && op.op != LW_OP_CONVERT) items[item_count++] = (item){op, true};
}

static void add_variants(lw_elem_op op) {
  if (op.op == LW_OP_COMPARE) {
    for (int d = LW_CMP_EQ; d <= LW_CMP_LT; d++)
      for (int total = 0; total < 2; total++) {
        op.dir = (lw_cmp_dir)d;
        op.total_order = total && lw_prim_is_float(op.in[0]);
        if (total == op.total_order) add_item(op);
      }
    return;
  }
  if (op.op == LW_OP_REDUCE_PRECISION) {
    static const int formats[][2] = {{8, 7},   {5, 10}, {5, 2}, {4, 3},
                                     {11, 52}, {8, 23}, {2, 0}, {1, 1}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
      op.exponent_bits = formats[i][0];
      op.mantissa_bits = formats[i][1];
      add_item(op);
    }
    return;
  }
  add_item(op);
  op.flush_denormals = true;
  lw_prim t = op.in[0];
  if (t == LW_F32 || t == LW_F64 || t == LW_C64 || t == LW_BF16) add_item(op);
}

/* Every operand and result type that the opcode might take: all operands of
 * one type, with the result of that type or any other; select's predicate and
 * stochastic-convert's random bits. */
static void add_opcode(lw_opcode op) {
  for (int i = 0; i < TYPES; i++)
    for (int j = 0; j < TYPES; j++) {
      lw_prim a = arrays[i], b = arrays[j];
      if (op == LW_OP_SELECT) {
        if (i == j) add_variants(lw_elem_make(op, LW_PRED, a, a, a));
      } else if (op == LW_OP_STOCHASTIC_CONVERT) {
        for (int k = 0; k < TYPES; k++)
          add_item(lw_elem_make(op, a, b, LW_PRIM_INVALID, arrays[k]));
      } else {
        add_variants(lw_elem_make(op, a, a, a, b));
      }
    }
}

/* ---- inputs ---- */

static uint64_t state = 88172645463325252;
static uint64_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static double special(void) {
  static const double v[] = {
      0,      -0.0,    1,     -1,           2,        0.5,      -0.5,      3,
      1e-40,  -1e-310, 448,   465,          0x1p-149, INFINITY, -INFINITY, NAN,
      3.4e38, -1e308,  709.5, 88.6,         -103.9,   -745.1,   M_PI_2,    1e22,
      65520,  1.5,     -2.5,  2147483648.0, -0x1p63,  0x1p64};
  return v[next() % (sizeof v / sizeof *v)];
}

static void fill_real(lw_prim t, char *p) {
  uint64_t r = next(), bits = next();
  int size = lw_prim_bytes(t), width = lw_prim_table[t].bits;
  if (lw_prim_is_float(t) && r % 8 < 5) {
    double u = (double)(int64_t)next() * 0x1p-63;
    double v = r % 8 == 0 ? special() : r % 8 < 3 ? u * 30 : u * 4;
    if (r % 64 == 4) v = rint(u * 20);
    if (r % 64 == 12) v = u * 110;
    lw_elem_from_f64(t, v, p);
    return;
  }
  if (lw_prim_is_int(t) && r % 4 == 0)
    bits = (uint64_t)((int64_t)(bits % 11) - 5);
  if (lw_prim_is_int(t) && r % 16 == 1) bits = (uint64_t)1 << (width - 1);
  int64_t x = (int64_t)(bits << (64 - width));
  x = lw_prim_is_signed(t) ? x >> (64 - width)
                           : (int64_t)((uint64_t)x >> (64 - width));
  if (t == LW_PRED) x &= 1;
  memcpy(p, &x, (size_t)size);
}

static void fill(lw_prim t, char *p) {
  lw_prim part = lw_prim_part(t);
  int size = lw_prim_bytes(part);
  int n = lw_prim_is_complex(t) ? 2 * N : N;
  for (int i = 0; i < n; i++) fill_real(part, p + i * size);
}

/* ---- code: void f(a, b, c, out), a loop over N by the width ---- */

static LLVMValueRef address(lw_mathgen *g, LLVMValueRef base, LLVMValueRef i,
                            int bytes) {
  LLVMTypeRef i64 = LLVMInt64TypeInContext(g->ctx);
  LLVMTypeRef i8 = LLVMInt8TypeInContext(g->ctx);
  LLVMValueRef off =
      LLVMBuildMul(g->b, i, LLVMConstInt(i64, (uint64_t)bytes, 0), "");
  return LLVMBuildGEP2(g->b, i8, base, &off, 1, "");
}

static LLVMValueRef shuffle(lw_mathgen *g, LLVMValueRef a, LLVMValueRef b,
                            int n, int start, int step, int wrap) {
  LLVMValueRef idx[128];
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx);
  for (int i = 0; i < n; i++) {
    int k = wrap ? (i % 2) * wrap + i / 2 : start + step * i;
    idx[i] = LLVMConstInt(i32, (uint64_t)k, 0);
  }
  return LLVMBuildShuffleVector(g->b, a, b, LLVMConstVector(idx, (unsigned)n),
                                "");
}

static lw_cgval load(lw_mathgen *g, lw_prim t, LLVMValueRef p) {
  LLVMTypeRef mem = lw_mathgen_mem_type(g, t);
  LLVMValueRef re, im = NULL;
  if (!lw_prim_is_complex(t)) {
    re = LLVMBuildLoad2(g->b, mem, p, "");
    LLVMSetAlignment(re, 1);
    return lw_mathgen_from_mem(g, t, re, NULL);
  }
  LLVMTypeRef e = g->width == 1 ? mem : LLVMGetElementType(mem);
  LLVMTypeRef pair = LLVMVectorType(e, (unsigned)(2 * g->width));
  LLVMValueRef v = LLVMBuildLoad2(g->b, pair, p, "");
  LLVMSetAlignment(v, 1);
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx);
  if (g->width == 1) {
    re = LLVMBuildExtractElement(g->b, v, LLVMConstInt(i32, 0, 0), "");
    im = LLVMBuildExtractElement(g->b, v, LLVMConstInt(i32, 1, 0), "");
  } else {
    re = shuffle(g, v, v, g->width, 0, 2, 0);
    im = shuffle(g, v, v, g->width, 1, 2, 0);
  }
  return lw_mathgen_from_mem(g, t, re, im);
}

static void store(lw_mathgen *g, lw_cgval v, LLVMValueRef p) {
  lw_cgval m = lw_mathgen_to_mem(g, v);
  LLVMValueRef x = m.re;
  if (m.im && g->width > 1) {
    x = shuffle(g, m.re, m.im, 2 * g->width, 0, 0, g->width);
  } else if (m.im) {
    LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx);
    LLVMTypeRef t = LLVMVectorType(LLVMTypeOf(m.re), 2);
    x = LLVMBuildInsertElement(g->b, LLVMGetUndef(t), m.re,
                               LLVMConstInt(i32, 0, 0), "");
    x = LLVMBuildInsertElement(g->b, x, m.im, LLVMConstInt(i32, 1, 0), "");
  }
  LLVMSetAlignment(LLVMBuildStore(g->b, x, p), 1);
}

static void attribute(LLVMContextRef ctx, LLVMValueRef f, const char *k,
                      const char *v) {
  LLVMAttributeRef a = LLVMCreateStringAttribute(ctx, k, (unsigned)strlen(k), v,
                                                 (unsigned)strlen(v));
  LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, a);
}

static void emit_body(lw_mathgen *g, const item *it, LLVMValueRef f,
                      LLVMValueRef i) {
  lw_cgval x[3] = {{0}};
  for (int k = 0; k < 3; k++)
    if (it->op.in[k] != LW_PRIM_INVALID)
      x[k] = load(g, it->op.in[k],
                  address(g, LLVMGetParam(f, (unsigned)k), i,
                          lw_prim_bytes(it->op.in[k])));
  if (it->chained) {
    lw_prim t = it->op.in[0];
    lw_elem_op add = lw_elem_make(LW_OP_ADD, t, t, 0, t);
    add.canonical_nan = true;
    x[0] = lw_mathgen_elem(g, &add, x[0], x[0], x[2]);
  }
  lw_cgval r = lw_mathgen_elem(g, &it->op, x[0], x[1], x[2]);
  store(g, r, address(g, LLVMGetParam(f, 3), i, lw_prim_bytes(it->op.out)));
}

static void emit_function(lw_mathgen *g, const item *it, const char *name) {
  LLVMTypeRef ptr = LLVMPointerTypeInContext(g->ctx, 0);
  LLVMTypeRef params[4] = {ptr, ptr, ptr, ptr};
  LLVMTypeRef i64 = LLVMInt64TypeInContext(g->ctx);
  LLVMTypeRef ft =
      LLVMFunctionType(LLVMVoidTypeInContext(g->ctx), params, 4, 0);
  LLVMValueRef f = LLVMAddFunction(g->mod, name, ft);
  attribute(g->ctx, f, "target-cpu", g->target_cpu);
  attribute(g->ctx, f, "target-features", g->target_features);
  LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(g->ctx, f, "entry");
  LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(g->ctx, f, "body");
  LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(g->ctx, f, "done");
  LLVMPositionBuilderAtEnd(g->b, entry);
  LLVMBuildBr(g->b, body);
  LLVMPositionBuilderAtEnd(g->b, body);
  LLVMValueRef i = LLVMBuildPhi(g->b, i64, "i");
  emit_body(g, it, f, i);
  assert_ptr_equal(LLVMGetInsertBlock(g->b), body);
  LLVMValueRef step = LLVMConstInt(i64, (uint64_t)g->width, 0);
  LLVMValueRef next_i = LLVMBuildAdd(g->b, i, step, "");
  LLVMValueRef vals[2] = {LLVMConstInt(i64, 0, 0), next_i};
  LLVMBasicBlockRef from[2] = {entry, body};
  LLVMAddIncoming(i, vals, from, 2);
  LLVMValueRef more =
      LLVMBuildICmp(g->b, LLVMIntULT, next_i, LLVMConstInt(i64, N, 0), "");
  LLVMBuildCondBr(g->b, more, body, done);
  LLVMPositionBuilderAtEnd(g->b, done);
  LLVMBuildRetVoid(g->b);
}

/* ---- comparing ---- */

typedef void (*kernel)(const void *, const void *, const void *, void *);

static void describe(const item *it, int width, const machine *m) {
  const lw_elem_op *o = &it->op;
  printf("%s%s", it->chained ? "chained " : "", lw_opcode_name(o->op));
  for (int k = 0; k < 3; k++)
    if (o->in[k]) printf(" %s", lw_prim_name(o->in[k]));
  printf(" -> %s dir %d%s e%dm%d%s, width %d, %s: ", lw_prim_name(o->out),
         (int)o->dir, o->total_order ? " total" : "", o->exponent_bits,
         o->mantissa_bits, o->flush_denormals ? " flush" : "", width, m->cpu);
}

static void print_bytes(const char *label, const char *p, int n) {
  printf(" %s=", label);
  for (int i = n - 1; i >= 0; i--) printf("%02x", (unsigned char)p[i]);
}

static bool same(const item *it, kernel k, int width, const machine *m) {
  static _Alignas(64) char in[3][N * 16], want[N * 16], got[N * 16],
      sum[N * 16];
  const lw_elem_op *o = &it->op;
  for (int i = 0; i < 3; i++)
    if (o->in[i]) fill(o->in[i], in[i]);
  lw_elem_fn fn;
  const void *first = in[0];
  if (it->chained) {
    lw_elem_op add = lw_elem_make(LW_OP_ADD, o->in[0], o->in[0], 0, o->in[0]);
    assert_null(lw_elem_resolve(&add, &fn));
    fn(&add, N, in[0], in[0], NULL, sum);
    first = sum;
  }
  assert_null(lw_elem_resolve(o, &fn));
  int size = lw_prim_bytes(o->out);
  memset(want, 0xaa, sizeof want);
  memset(got, 0xaa, sizeof got);
  fn(o, N, first, in[1], in[2], want);
  k(in[0], in[1], in[2], got);
  for (int i = 0; i < N; i++)
    if (memcmp(want + i * size, got + i * size, (size_t)size)) {
      describe(it, width, m);
      for (int j = 0; j < 3; j++)
        if (o->in[j])
          print_bytes(
              "in",
              (j ? in[j] : (const char *)first) + i * lw_prim_bytes(o->in[j]),
              lw_prim_bytes(o->in[j]));
      print_bytes("scalar", want + i * size, size);
      print_bytes("vector", got + i * size, size);
      printf("\n");
      return false;
    }
  return memcmp(want, got, sizeof want) == 0;
}

/* Items [from, to) whose turn it is, at one width on one machine. */
static int run(int from, int to, int turn, int turns, int width,
               const machine *m, const char *passes) {
  lw_mathgen g = {.ctx = LLVMContextCreate(),
                  .width = width,
                  .has_avx2 = m->avx2,
                  .has_avx512 = m->avx512,
                  .has_f16c = m->f16c,
                  .has_fma = m->fma,
                  .target_cpu = m->cpu,
                  .target_features = m->features};
  g.mod = LLVMModuleCreateWithNameInContext("t", g.ctx);
  g.b = LLVMCreateBuilderInContext(g.ctx);
  char name[32], *error = NULL;
  for (int i = from; i < to; i++) {
    if (!all && i % turns != turn) continue;
    snprintf(name, sizeof name, "k%d", i);
    emit_function(&g, &items[i], name);
  }
  LLVMExecutionEngineRef engine;
  struct LLVMMCJITCompilerOptions options;
  LLVMInitializeMCJITCompilerOptions(&options, sizeof options);
  options.OptLevel = 1;
  assert_int_equal(LLVMCreateMCJITCompilerForModule(&engine, g.mod, &options,
                                                    sizeof options, &error),
                   0);
  if (passes) {
    LLVMPassBuilderOptionsRef po = LLVMCreatePassBuilderOptions();
    LLVMErrorRef e = LLVMRunPasses(
        g.mod, passes, LLVMGetExecutionEngineTargetMachine(engine), po);
    assert_null(e);
    LLVMDisposePassBuilderOptions(po);
  }
  int bad = 0;
  for (int i = from; i < to; i++) {
    if (!all && i % turns != turn) continue;
    snprintf(name, sizeof name, "k%d", i);
    uint64_t at = LLVMGetFunctionAddress(engine, name);
    assert_true(at != 0);
    kernel k;
    memcpy(&k, &at, sizeof k);
    bad += !same(&items[i], k, width, m);
  }
  LLVMDisposeBuilder(g.b);
  LLVMDisposeExecutionEngine(engine);
  LLVMContextDispose(g.ctx);
  return bad;
}

static void sweep(const lw_opcode *ops, int n) {
  static const int widths[] = {1, 8, 16};
  char *name = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
  machine host = {name,
                  features,
                  strstr(features, "+avx2") != NULL,
                  strstr(features, "+avx512f") != NULL,
                  strstr(features, "+f16c") != NULL,
                  strstr(features, "+fma") != NULL};
  machine v3 = {"x86-64-v3", "+avx2,+fma,+f16c,-avx512f", true, false, true,
                true};
  machine base = {"x86-64", "", false, false, false, false};
  machine machines[3] = {host, v3, base};
  int count = host.avx2 && host.fma ? 3 : 1;
  item_count = 0;
  for (int i = 0; i < n; i++) add_opcode(ops[i]);
  int bad = 0, turn = 0, turns = 3 * count;
  for (int w = 0; w < 3; w++)
    for (int m = 0; m < count; m++, turn++)
      bad += run(
          0, item_count, turn, turns, widths[w], &machines[m],
          turn % 2 ? "function(mem2reg,instcombine,gvn,simplifycfg)" : NULL);
  LLVMDisposeMessage(name);
  LLVMDisposeMessage(features);
  assert_true(item_count > 0);
  assert_int_equal(bad, 0);
}

static lw_opcode group_ops[LW_OPCODE_COUNT];

/* Opcodes from opcodes.def with an elementwise flag, so that none is missed. */
static void test_group(void **state_) {
  int part = *(const int *)*state_, n = 0, k = 0;
  for (int o = 0; o < LW_OPCODE_COUNT; o++)
    if (lw_opcode_is_elementwise((lw_opcode)o) && k++ % 4 == part)
      group_ops[n++] = (lw_opcode)o;
  sweep(group_ops, n);
}

static const char *only;
static void test_only(void **state_) {
  (void)state_;
  lw_opcode op = lw_opcode_from_name(only, strlen(only));
  assert_true(op < LW_OPCODE_COUNT);
  sweep(&op, 1);
}

/* Every elementwise opcode has at least one type. */
static void test_complete(void **state_) {
  (void)state_;
  for (int o = 0; o < LW_OPCODE_COUNT; o++) {
    if (!lw_opcode_is_elementwise((lw_opcode)o)) continue;
    item_count = 0;
    add_opcode((lw_opcode)o);
    if (!item_count) printf("no types for %s\n", lw_opcode_name((lw_opcode)o));
    assert_true(item_count > 0);
  }
}

int main(int argc, char **argv) {
  LLVMLinkInMCJIT();
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();
  all = argc > 1 && !strcmp(argv[1], "--all");
  if (argc > 1 && !all) {
    only = argv[1];
    all = true;
    const struct CMUnitTest one[] = {cmocka_unit_test(test_only)};
    return cmocka_run_group_tests(one, NULL, NULL);
  }
  static int part[4] = {0, 1, 2, 3};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_complete),
      cmocka_unit_test_prestate(test_group, &part[0]),
      cmocka_unit_test_prestate(test_group, &part[1]),
      cmocka_unit_test_prestate(test_group, &part[2]),
      cmocka_unit_test_prestate(test_group, &part[3])};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
