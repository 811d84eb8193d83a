/* lawson judge: a verdict on timings made anywhere. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "judge_options.h"
#include "lab/judge.h"

int cli_fraction(const cli_args *a, cli_option_id id, double dflt, double most,
                 double *out) {
  *out = dflt;
  const char *s = a->value[id];
  if (!s) return CLI_YES;
  char *end;
  double v = strtod(s, &end);
  if (end != s && *end == '%') {
    v /= 100;
    end++;
  }
  if (end == s || *end || !(v > 0) || v > most) {
    cli_error("--%s=%s: a share above 0 and up to %g is needed, as 0.03 or 3%%",
              cli_options[id].name, s, most);
    return CLI_USAGE;
  }
  *out = v;
  return CLI_YES;
}

int cli_check_fail_if(const cli_args *a) {
  const char *p = a->value[OPT_FAIL_IF];
  while (p) {
    size_t n = strcspn(p, ",");
    bool known = (n == 6 && !strncmp(p, "slower", n)) ||
                 (n == 6 && !strncmp(p, "faster", n)) ||
                 (n == 9 && !strncmp(p, "undecided", n));
    if (!known) {
      cli_error("--fail-if=%s: a list of slower, faster, undecided is needed",
                a->value[OPT_FAIL_IF]);
      return CLI_USAGE;
    }
    p = p[n] ? p + n + 1 : NULL;
  }
  return CLI_YES;
}

int cli_verdict_code(const cli_args *a, lw_verdict v) {
  const char *list = a->value[OPT_FAIL_IF];
  bool undecided = v == LW_UNDECIDED || v == LW_NO_COMPARISON;
  bool bad = (v == LW_SLOWER && lw_str_listed(list, "slower")) ||
             (v == LW_FASTER && lw_str_listed(list, "faster")) ||
             (undecided && lw_str_listed(list, "undecided"));
  return bad ? CLI_NO : CLI_YES;
}

static int show(const cli_args *a, const lw_judgement *v) {
  cJSON *j = cli_json(a);
  if (j) {
    lw_judgement_json(v, j);
    cli_json_print(j);
  } else {
    lw_buf b = {0};
    lw_judgement_print(&b, v, 1, "");
    cli_out(lw_buf_cstr(&b));
    lw_buf_free(&b);
  }
  return cli_verdict_code(a, v->verdict);
}

int cli_run_judge(const cli_args *a) {
  double margin, alpha;
  int code = cli_fraction(a, OPT_MARGIN, 0.03, 0.99, &margin);
  if (!code) code = cli_fraction(a, OPT_ALPHA, 0.05, 0.5, &alpha);
  if (!code) code = cli_check_fail_if(a);
  if (code) return code;
  const char *path = a->positional[0];
  const char *name = strcmp(path, "-") ? path : "<stdin>";
  char *text;
  size_t len;
  lw_status st = lw_file_read(path, &text, &len);
  if (st) return cli_fail(st);
  lw_timings t;
  lw_judgement v;
  st = lw_timings_parse(text, name, &t);
  if (!st) {
    st = lw_judge(&t, alpha, margin, &v);
    if (st) st = lw_status_annotate(st, "%s", name);
  }
  lw_vec_free(&t);
  free(text);
  return st ? cli_fail(st) : show(a, &v);
}
