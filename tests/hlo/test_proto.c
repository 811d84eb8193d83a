/* The proto reader and writer on their own: a module with one of everything
 * survives; every truncation and many byte flips are errors or modules, never
 * crashes. XLA's word is in tests/xla/proto_roundtrip.py. */
#include <stdlib.h>
#include <string.h>

#include "hlo/fingerprint.h"
#include "hlo/print.h"
#include "reader/proto.h"
#include "reader/proto_wire.h"
#include "reader/reader.h"
#include "unit.h"

static const char text[] =
    "HloModule everything, is_scheduled=true, "
    "input_output_alias={ {0}: (0, {}, may-alias) }, "
    "buffer_donor={ (1, {}) }, "
    "entry_computation_layout={(f32[2,3]{0,1}, f32[2,3]{1,0})->"
    "(f32[2,3]{0,1}, s32[])}, frontend_attributes={a=\"b\"}\n"
    "add { \n x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
    " ROOT z = f32[] add(x, y) \n}\n"
    "body { \n bp = (f32[2,3]{0,1}, s32[]) parameter(0)\n"
    " b0 = f32[2,3]{0,1} get-tuple-element(bp), index=0\n"
    " b1 = s32[] get-tuple-element(bp), index=1\n"
    " bc = s32[] constant(-1)\n bn = s32[] add(b1, bc)\n"
    " ROOT bt = (f32[2,3]{0,1}, s32[]) tuple(b0, bn) \n}\n"
    "cond { \n cp = (f32[2,3]{0,1}, s32[]) parameter(0)\n"
    " c1 = s32[] get-tuple-element(cp), index=1\n"
    " cc = s32[] constant(0)\n"
    " ROOT cr = pred[] compare(c1, cc), direction=GT \n}\n"
    "fused { \n fp = f32[2,3]{0,1} parameter(0)\n"
    " ROOT fe = f32[2,3]{0,1} exponential(fp), "
    "result_accuracy={tolerance={atol=0.5,rtol=0.25,ulps=3}} \n}\n"
    "ENTRY e {\n"
    " p = f32[2,3]{0,1} parameter(0), sharding={devices=[2,1,2]<=[4] "
    "last_tile_dim_replicate}, metadata={op_name=\"a/b\" stack_frame_id=1}\n"
    " q = f32[2,3]{1,0} parameter(1), sharding={devices=[2,2]3,1,0,2}\n"
    " k = f32[2,3]{0,1} constant({{1, -2.5, 3}, {nan, inf, -0}})\n"
    " i4 = s4[3]{0} constant({-8, 7, -1})\n"
    " c = c64[2]{0} constant({(1, 2), (-3, 4)})\n"
    " f8 = f8e4m3fn[2]{0} constant({448, -1})\n"
    " u64c = u64[1]{0} constant({18446744073709551615})\n"
    " z = f32[] constant(0)\n n = s32[] constant(5)\n"
    " t = (f32[2,3]{0,1}, s32[]) tuple(p, n)\n"
    " w = (f32[2,3]{0,1}, s32[]) while(t), condition=cond, body=body, "
    "backend_config={\"known_trip_count\":{\"n\":\"5\"}}\n"
    " g = f32[2,3]{0,1} get-tuple-element(w), index=0\n"
    " f = f32[2,3]{0,1} fusion(g), kind=kLoop, calls=fused\n"
    " r = f32[2]{0} reduce(f, z), dimensions={1}, to_apply=add\n"
    " d = f32[3,3]{1,0} dot(p, q), lhs_contracting_dims={0}, "
    "rhs_contracting_dims={0}, operand_precision={highest,default}, "
    "algorithm=dot_bf16_bf16_f32_x3\n"
    " pd = f32[5,4]{1,0} pad(d, z), padding=1_1x0_1\n"
    " rw = f32[2,2]{1,0} reduce-window(pd, z), window={size=2x2 stride=2x2 "
    "pad=0_0x0_1 rhs_dilate=2x1}, to_apply=add\n"
    " ar = f32[2]{0} all-reduce(r), replica_groups={{0,1},{2,3}}, "
    "channel_id=1, use_global_device_ids=true, to_apply=add\n"
    " ar2 = f32[2]{0} all-reduce(ar), replica_groups=[2,2]<=[2,2]T(1,0), "
    "to_apply=add, control-predecessors={rw}\n"
    " cu = (f32[2]{0}, f32[]) custom-call(ar2), custom_call_target=\"foo\", "
    "operand_layout_constraints={f32[2]{0}}, "
    "output_to_operand_aliasing={{0}: (0, {})}, "
    "custom_call_has_side_effect=true, api_version=API_VERSION_TYPED_FFI, "
    "backend_config=\"raw \\\"quoted\\\"\"\n"
    " ROOT out = (f32[2,3]{0,1}, s32[]) tuple(f, n), origin={({\"a\"}, {})}\n"
    "}\n";

typedef struct {
  lw_context *ctx;
  lw_module *m;
  lw_buf pb;
} fixture;

static void open_fixture(fixture *f) {
  *f = (fixture){.ctx = lw_context_new()};
  lw_status s =
      lw_read_text(f->ctx, text, sizeof text - 1, "text", NULL, &f->m);
  if (s) fail_msg("%s", lw_status_message(s));
  s = lw_write_proto(f->m, false, &f->pb);
  if (s) fail_msg("%s", lw_status_message(s));
}

static void close_fixture(fixture *f) {
  lw_buf_free(&f->pb);
  lw_module_free(f->m);
  lw_context_free(f->ctx);
}

static void keeps_everything(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  lw_module *back;
  lw_status s = lw_read_proto(f.ctx, f.pb.data, f.pb.len, &back);
  if (s) fail_msg("%s", lw_status_message(s));
  lw_buf a = {0}, b = {0};
  lw_module_print(&a, f.m, &lw_print_default);
  lw_module_print(&b, back, &lw_print_default);
  assert_string_equal(lw_buf_cstr(&a), lw_buf_cstr(&b));
  assert_true(lw_module_fingerprint(f.m, LW_FP_ALL) ==
              lw_module_fingerprint(back, LW_FP_ALL));
  lw_buf again = {0};
  assert_null(lw_write_proto(back, false, &again));
  assert_int_equal(again.len, f.pb.len);
  lw_buf_free(&a);
  lw_buf_free(&b);
  lw_buf_free(&again);
  lw_module_free(back);
  close_fixture(&f);
}

/* HloProto and HloSnapshot around it; the snapshot's literals come along. */
static void knows_the_three(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  lw_buf hlo = {0}, snap = {0}, copy = {0}, lit = {0}, shape = {0};
  assert_null(lw_write_proto(f.m, true, &hlo));
  lw_snapshot s;
  assert_null(lw_read_snapshot(f.ctx, f.pb.data, f.pb.len, &s));
  assert_int_equal(s.kind, LW_PROTO_MODULE);
  lw_module_free(s.module);
  assert_null(lw_read_snapshot(f.ctx, hlo.data, hlo.len, &s));
  assert_int_equal(s.kind, LW_PROTO_HLO);
  lw_module_free(s.module);
  lw_buf_add(&copy, hlo.data, hlo.len);
  pb_put_msg(&snap, 1, &copy);
  pb_put_i64(&shape, 2, LW_S32);
  pb_put_msg(&lit, 1, &shape);
  int64_t seven = 7;
  pb_put_i64s(&lit, 4, &seven, 1);
  pb_put_msg(&snap, 2, &lit);
  pb_put_str(&snap, 4, "Host");
  assert_null(lw_read_snapshot(f.ctx, snap.data, snap.len, &s));
  assert_int_equal(s.kind, LW_PROTO_SNAPSHOT);
  assert_int_equal(s.n_arguments, 1);
  assert_int_equal(lw_literal_get_int(s.arguments[0], 0), 7);
  assert_null(s.result);
  assert_string_equal(s.platform, "Host");
  lw_module_free(s.module);
  lw_buf_free(&hlo);
  lw_buf_free(&snap);
  close_fixture(&f);
}

/* Exact-size copies, so that a sanitizer sees a read past the end. */
static void try_bytes(const char *data, size_t len) {
  lw_context *ctx = lw_context_new();
  char *copy = malloc(len ? len : 1);
  memcpy(copy, data, len);
  lw_module *m = NULL;
  lw_status s = lw_read_proto(ctx, copy, len, &m);
  assert_true(!s == !!m);
  if (m) {
    lw_buf out = {0};
    lw_status_free(lw_write_proto(m, false, &out));
    lw_buf_free(&out);
  }
  lw_status_free(s);
  lw_module_free(m);
  lw_context_free(ctx);
  free(copy);
}

static void survives_truncation(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  for (size_t n = 0; n < f.pb.len; n++) try_bytes(f.pb.data, n);
  close_fixture(&f);
}

static void survives_flips(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  uint64_t seed = 12345;
  for (int round = 0; round < 4000; round++) {
    char *copy = malloc(f.pb.len);
    memcpy(copy, f.pb.data, f.pb.len);
    for (int k = 0; k < 1 + round % 4; k++) {
      seed = lw_hash_mix(seed, (uint64_t)round + 1);
      copy[seed % f.pb.len] = (char)(seed >> 40);
    }
    try_bytes(copy, f.pb.len);
    free(copy);
  }
  close_fixture(&f);
}

static void names_the_byte(void **state) {
  (void)state;
  lw_context *ctx = lw_context_new();
  lw_module *m;
  lw_status s = lw_read_proto(ctx, "\x0a\x7f", 2, &m);
  assert_non_null(strstr(lw_status_message(s), "at byte 0"));
  lw_status_free(s);
  s = lw_read_proto(ctx, "", 0, &m);
  assert_non_null(strstr(lw_status_message(s), "no computations"));
  lw_status_free(s);
  lw_context_free(ctx);
}

/* A tuple shape nested past the limit. */
static void bounds_depth(void **state) {
  (void)state;
  lw_buf shape = {0};
  pb_put_i64(&shape, 2, LW_F32);
  for (int k = 0; k < 300; k++) {
    lw_buf outer = {0};
    pb_put_i64(&outer, 2, LW_TUPLE);
    pb_put_msg(&outer, 4, &shape);
    shape = outer;
  }
  lw_buf inst = {0}, comp = {0}, module = {0};
  pb_put_str(&inst, 2, "parameter");
  pb_put_msg(&inst, 3, &shape);
  pb_put_msg(&comp, 2, &inst);
  pb_put_msg(&module, 3, &comp);
  lw_context *ctx = lw_context_new();
  lw_module *m;
  lw_status s = lw_read_proto(ctx, module.data, module.len, &m);
  assert_non_null(s);
  assert_non_null(strstr(lw_status_message(s), "nested"));
  lw_status_free(s);
  lw_buf_free(&module);
  lw_context_free(ctx);
}

static void skips_unknown_fields(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  lw_buf more = {0};
  pb_put_i64(&more, 4000, 17);
  pb_put_str(&more, 4001, "something new");
  lw_buf_add(&more, "\xa3\x06\x08\x01\xa4\x06", 6); /* a group */
  lw_buf_add(&more, f.pb.data, f.pb.len);
  lw_module *m;
  lw_status s = lw_read_proto(f.ctx, more.data, more.len, &m);
  if (s) fail_msg("%s", lw_status_message(s));
  assert_true(lw_module_fingerprint(m, LW_FP_ALL) ==
              lw_module_fingerprint(f.m, LW_FP_ALL));
  lw_module_free(m);
  lw_buf_free(&more);
  close_fixture(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keeps_everything),    cmocka_unit_test(knows_the_three),
      cmocka_unit_test(survives_truncation), cmocka_unit_test(survives_flips),
      cmocka_unit_test(names_the_byte),      cmocka_unit_test(bounds_depth),
      cmocka_unit_test(skips_unknown_fields)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
