/* pb_tool MODE FILE...: what tests/xla/proto_roundtrip.py asks of the readers.
 *   rewrite IN OUT  proto in, proto out (HloProto when IN was one)
 *   totext IN       proto in, text out
 *   toproto IN OUT  text in, HloModuleProto out
 *   fp IN...        "fingerprint  path" of each text or .pb
 *   infer IN...     every instruction's shape re-inferred; differences printed
 *   check IN...     the checker's messages
 *   diff A B */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "hlo/check.h"
#include "hlo/diff.h"
#include "hlo/fingerprint.h"
#include "hlo/infer.h"
#include "hlo/print.h"
#include "reader/proto.h"
#include "reader/reader.h"

static bool is_pb(const char *path) {
  size_t n = strlen(path);
  return n > 3 && !strcmp(path + n - 3, ".pb");
}

static int report(lw_status s) {
  if (!s) return 0;
  fprintf(stderr, "%s\n", lw_status_message(s));
  lw_status_free(s);
  return 1;
}

static lw_status load(lw_context *ctx, const char *path, lw_snapshot *out,
                      char **data) {
  size_t len;
  *out = (lw_snapshot){0};
  LW_TRY(lw_file_read(path, data, &len));
  if (is_pb(path)) return lw_read_snapshot(ctx, *data, len, out);
  return lw_read_text(ctx, *data, len, path, NULL, &out->module);
}

static lw_status save(const lw_module *m, bool wrap, const char *path) {
  lw_buf b = {0};
  lw_status s = lw_write_proto(m, wrap, &b);
  if (!s) s = lw_file_write(path, b.data, b.len);
  lw_buf_free(&b);
  return s;
}

static lw_status infer_all(const lw_module *m, const char *path) {
  for (lw_comp *c = m->first_comp; c; c = c->next)
    for (lw_inst *i = c->first; i; i = i->next) {
      const lw_shape *s;
      lw_status st = lw_infer_shape(m->ctx, i, &s);
      if (st)
        printf("%s: %s: %s\n", path, i->name, lw_status_message(st));
      else if (!lw_shape_compatible(s, i->shape))
        printf("%s: %s %s: inferred %s, given %s\n", path,
               lw_opcode_name(i->opcode), i->name, lw_shape_str(m->ctx, s),
               lw_shape_str(m->ctx, i->shape));
      lw_status_free(st);
    }
  return NULL;
}

static lw_status check_one(const lw_module *m, const char *path) {
  lw_diags d = {.file = path};
  lw_check_module(m, (lw_check_options){0}, &d);
  lw_status s = lw_diags_status(&d);
  lw_diags_free(&d);
  return s;
}

static lw_status run_one(const char *mode, const char *path, const char *out) {
  lw_context *ctx = lw_context_new();
  lw_snapshot in;
  char *data = NULL;
  lw_status s = load(ctx, path, &in, &data);
  if (!s) {
    lw_buf b = {0};
    if (!strcmp(mode, "rewrite"))
      s = save(in.module, in.kind == LW_PROTO_HLO, out);
    else if (!strcmp(mode, "toproto"))
      s = save(in.module, false, out);
    else if (!strcmp(mode, "totext"))
      lw_module_print(&b, in.module, &lw_print_default);
    else if (!strcmp(mode, "infer"))
      s = infer_all(in.module, path);
    else if (!strcmp(mode, "check"))
      s = check_one(in.module, path);
    else if (!strcmp(mode, "fp"))
      printf("%016llx  %s\n",
             (unsigned long long)lw_module_fingerprint(in.module, LW_FP_ALL),
             path);
    if (b.len) fwrite(b.data, 1, b.len, stdout);
    lw_buf_free(&b);
  }
  lw_module_free(in.module);
  lw_context_free(ctx);
  free(data);
  return lw_status_annotate(s, "%s", path);
}

static lw_status run_diff(const char *a, const char *b) {
  lw_context *ctx = lw_context_new();
  lw_snapshot x, y = {0};
  char *da = NULL, *db = NULL;
  lw_status s = load(ctx, a, &x, &da);
  if (!s) s = load(ctx, b, &y, &db);
  if (!s) {
    lw_buf out = {0};
    lw_diff *d = lw_diff_modules(x.module, y.module, LW_FP_ALL);
    lw_diff_print(&out, d, 40);
    fwrite(out.data, 1, out.len, stdout);
    lw_buf_free(&out);
    lw_diff_free(d);
  }
  lw_module_free(x.module);
  lw_module_free(y.module);
  lw_context_free(ctx);
  free(da);
  free(db);
  return s;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: pb_tool MODE FILE...\n");
    return 2;
  }
  const char *mode = argv[1];
  if (!strcmp(mode, "rewrite") || !strcmp(mode, "toproto"))
    return argc == 4 ? report(run_one(mode, argv[2], argv[3])) : 2;
  if (!strcmp(mode, "diff"))
    return argc == 4 ? report(run_diff(argv[2], argv[3])) : 2;
  int failed = 0;
  for (int i = 2; i < argc; i++) failed |= report(run_one(mode, argv[i], NULL));
  return failed;
}
