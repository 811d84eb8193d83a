/* cases.hlo, every case at every type and size it names, on every ISA this
 * machine has, against the interpreter. A case is
 *   ### name [t=f32,bf16,...] [n=1,2,...]
 * and a module's computations, in which $T and $N are replaced. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "unit.h"

#ifndef CASES
#define CASES "cases.hlo"
#endif

static char *read_file(const char *path) {
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  lw_buf b = {0};
  char part[4096];
  size_t n;
  while ((n = fread(part, 1, sizeof part, f)) > 0) lw_buf_add(&b, part, n);
  fclose(f);
  lw_buf_cstr(&b);
  return b.data;
}

/* The list after "key=" in a header; "" once when there is none. */
static size_t list(const char *header, const char *key, char out[][16]) {
  const char *p = strstr(header, key);
  size_t n = 0, len = 0;
  out[0][0] = 0;
  if (!p) return 1;
  for (p += strlen(key); *p && *p != ' ' && n < 31; p++) {
    if (*p == ',') {
      out[n++][len] = 0;
      len = 0;
    } else if (len < 15) {
      out[n][len++] = *p;
    }
  }
  out[n++][len] = 0;
  return n;
}

static void expand(lw_buf *b, const char *body, const char *t, const char *n) {
  lw_buf_str(b, "HloModule m\n\n");
  for (const char *p = body; *p; p++) {
    if (p[0] == '$' && (p[1] == 'T' || p[1] == 'N'))
      lw_buf_str(b, *++p == 'T' ? t : n);
    else
      lw_buf_chr(b, *p);
  }
}

static int run_case(const char *header, const char *body, uint64_t seed) {
  char ts[32][16], ns[32][16];
  size_t nt = list(header, " t=", ts), nn = list(header, " n=", ns);
  int bad = 0;
  for (size_t t = 0; t < nt; t++)
    for (size_t n = 0; n < nn; n++) {
      lw_buf b = {0};
      expand(&b, body, ts[t], ns[n]);
      lw_status e = lw_check_text(lw_buf_cstr(&b), seed);
      if (e) {
        printf("%s (%s %s): %s\n", header, ts[t], ns[n], lw_status_message(e));
        bad++;
      }
      lw_status_free(e);
      lw_buf_free(&b);
    }
  return bad;
}

static void all_cases(void **state) {
  (void)state;
  char *text = read_file(CASES);
  int bad = 0, cases = 0;
  char *p = strstr(text, "### ");
  while (p) {
    char *header = p + 4, *body = strchr(header, '\n');
    assert_non_null(body);
    *body++ = 0;
    p = strstr(body, "### ");
    if (p) p[-1] = 0;
    bad += run_case(header, body, 1 + (uint64_t)cases);
    cases++;
  }
  free(text);
  assert_true(cases > 40);
  assert_int_equal(bad, 0);
}

/* An unknown ISA is refused. */
static void refuses_unknown_isa(void **state) {
  (void)state;
  lw_codegen *cg = NULL;
  lw_codegen_options opt = {.isa = "no-such-isa", .opt_level = 2};
  lw_status s = lw_codegen_new(&opt, &cg);
  assert_non_null(s);
  assert_null(cg);
  lw_status_free(s);
  assert_true(lw_codegen_has_isa("baseline"));
  assert_non_null(strstr(lw_codegen_version(), "LLVM"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_cases),
                                     cmocka_unit_test(refuses_unknown_isa)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
