/* Times for what an ablation moved: bench's business, since it has the controls
 * and the stop rule. It is asked as anyone would ask it, on its command line,
 * so that the run is in the results store too. */
#include <cjson/cJSON.h>
#include <string.h>

#include "lab/ablate.h"
#include "lab/process.h"

/* A word of --a or --b as a shell writes it. */
static void add_word(lw_buf *b, const char *word) {
  if (b->len) lw_buf_chr(b, ' ');
  lw_buf_chr(b, '\'');
  for (; *word; word++) {
    if (*word == '\'')
      lw_buf_str(b, "'\\''");
    else
      lw_buf_chr(b, *word);
  }
  lw_buf_chr(b, '\'');
}

static void add_pair(lw_buf *b, const char *name, const char *value) {
  lw_buf word = {0};
  lw_buf_printf(&word, "--%s=%s", name, value);
  add_word(b, lw_buf_cstr(&word));
  lw_buf_free(&word);
}

/* What the full compile was told. */
static void add_subject(lw_buf *b, const lw_subject *s) {
  if (s->compiler) add_pair(b, "compiler", s->compiler);
  if (s->target) add_pair(b, "target", s->target);
  for (int32_t k = 0; k < s->n_options; k++) add_word(b, s->options[k]);
}

static double number_of(const cJSON *o, const char *key) {
  const cJSON *v = cJSON_GetObjectItem(o, key);
  return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

static void take_answer(lw_ablation *a, lw_ablate_row *r,
                        lw_process_result *p) {
  cJSON *j = cJSON_ParseWithLength(lw_buf_cstr(&p->out), p->out.len);
  const cJSON *result = cJSON_GetObjectItem(j, "result");
  const cJSON *ratio =
      cJSON_GetObjectItem(cJSON_GetObjectItem(result, "steady"), "b_over_a");
  const char *verdict =
      cJSON_GetStringValue(cJSON_GetObjectItem(result, "verdict"));
  if (verdict && ratio) {
    r->time_verdict = lw_arena_printf(a->arena, "%s", verdict);
    r->ratio = number_of(ratio, "ratio");
    r->ratio_low = number_of(ratio, "low");
    r->ratio_high = number_of(ratio, "high");
  } else {
    r->time_error = lw_arena_printf(a->arena, "bench ended with status %d: %s",
                                    p->exit_code, lw_buf_cstr(&p->err));
  }
  cJSON_Delete(j);
}

static lw_status time_row(const lw_ablate_options *o, lw_ablation *a,
                          lw_ablate_row *r, const char *program,
                          int64_t pairs) {
  lw_buf x = {0}, y = {0};
  add_subject(&x, &o->subject);
  add_subject(&y, &o->subject);
  add_word(&y, r->word);
  const char *argv[12] = {
      program,
      "bench",
      o->module_path,
      lw_arena_printf(a->arena, "--a=%s", lw_buf_cstr(&x)),
      lw_arena_printf(a->arena, "--b=%s", lw_buf_cstr(&y)),
      lw_arena_printf(a->arena, "--pairs=%lld", (long long)pairs),
      "--json"};
  int n = 7;
  if (o->inputs)
    argv[n++] = lw_arena_printf(a->arena, "--inputs=%s", o->inputs);
  if (o->which) argv[n++] = lw_arena_printf(a->arena, "--module=%s", o->which);
  lw_process_result p;
  lw_status st = lw_process_run(&(lw_process){.argv = argv}, &p);
  if (!st) take_answer(a, r, &p);
  lw_process_result_free(&p);
  lw_buf_free(&x);
  lw_buf_free(&y);
  return st;
}

lw_status lw_ablate_time(const lw_ablate_options *o, lw_ablation *a,
                         const char *program, int64_t pairs,
                         void (*say)(const char *name)) {
  for (size_t k = 0; k < a->rows.len; k++) {
    lw_ablate_row *r = &a->rows.data[k];
    if (r->verdict != LW_ABLATE_MOVED) continue;
    if (say) say(r->name);
    LW_TRY(time_row(o, a, r, program, pairs));
  }
  return NULL;
}
