/* lawson verify: the bits question. */
#include <stdio.h>

#include "common.h"

static void progress(void *ctx, int32_t k, int32_t n, const char *name) {
  (void)ctx;
  cli_progress("[%d/%d] %s", k + 1, n, name);
}

static const char *const verdicts[] = {"same", "DIFFERS", "FAILED",
                                       "not tested"};

static const char *color_of(lw_road_verdict v) {
  if (v == LW_ROAD_SAME) return cli_green(1);
  return v == LW_ROAD_NOT_TESTED ? "" : cli_red(1);
}

static void print_text(const lw_verify_report *r) {
  for (int32_t k = 0; k < r->n; k++) {
    const lw_road *d = &r->roads[k];
    printf("%-44s %s%s%s", d->name, color_of(d->verdict),
           k ? verdicts[d->verdict] : "reference", cli_plain(1));
    printf(d->detail ? ": %s\n" : "%s\n", d->detail ? d->detail : "");
  }
  for (int32_t k = 0; k < r->n_library; k++) {
    printf("library: %s has this machine's bits\n", r->library[k]);
  }
  printf("%s\n", r->same ? "the bits are the same" : "the bits DIFFER");
}

static void print_json(cJSON *j, const lw_verify_report *r) {
  cJSON *list = cJSON_AddArrayToObject(j, "roads");
  for (int32_t k = 0; k < r->n; k++) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "road", r->roads[k].name);
    cJSON_AddStringToObject(o, "verdict", verdicts[r->roads[k].verdict]);
    if (r->roads[k].detail) {
      cJSON_AddStringToObject(o, "detail", r->roads[k].detail);
    }
    cJSON_AddItemToArray(list, o);
  }
  cJSON *lib = cJSON_AddArrayToObject(j, "library");
  for (int32_t k = 0; k < r->n_library; k++) {
    cJSON_AddItemToArray(lib, cJSON_CreateString(r->library[k]));
  }
  cJSON_AddBoolToObject(j, "same", r->same);
  cli_json_print(j);
}

/* A road that cannot be compiled is unsupported input, not a difference. */
static int verdict(const lw_verify_report *r) {
  if (r->same) return CLI_YES;
  for (int32_t k = 0; k < r->n; k++) {
    if (r->roads[k].verdict == LW_ROAD_DIFFERS) return CLI_NO;
  }
  return CLI_BAD_INPUT;
}

static int verify(const cli_args *a, cli_input *in, lw_verify_options *o) {
  lw_literal **args;
  int32_t n;
  cJSON *j = cli_json(a);
  cJSON *inputs = NULL;
  if (j && !a->value[OPT_INPUTS]) inputs = cJSON_AddArrayToObject(j, "inputs");
  int code = cli_inputs(a, in, &args, &n, inputs);
  if (!code) {
    lw_verify_report r;
    lw_status st = lw_verify(in->module, (const lw_literal *const *)args, n, o,
                             in->arena, &r);
    cli_progress("%s", "");
    if (st) {
      code = cli_fail(st);
    } else {
      code = verdict(&r);
      if (j) {
        print_json(j, &r);
        return code;
      }
      print_text(&r);
    }
  }
  cJSON_Delete(j);
  return code;
}

int cli_run_verify(const cli_args *a) {
  int64_t seed, threads;
  int code = cli_number(a, OPT_SEED, 0, INT64_MAX, 0, &seed);
  if (!code) code = cli_number(a, OPT_THREADS, 0, 1024, 0, &threads);
  cli_input in;
  if (!code) code = cli_load(a, 0, true, &in);
  if (code) return code;
  lw_verify_options o = {.seed = (uint64_t)seed,
                         .threads = (int)threads,
                         .target = a->value[OPT_TARGET],
                         .progress = progress};
  o.flush_denormals = cli_compile_options(a).flush_denormals;
  code = verify(a, &in, &o);
  cli_close(&in);
  return code;
}
