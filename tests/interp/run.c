#include "run.h"

#include <stdio.h>
#include <string.h>

void program_read(program *p, const char *text) {
  p->ctx = lw_context_new();
  p->arena = lw_arena_new();
  lw_status s = lw_read_text(p->ctx, text, strlen(text), "test", NULL, &p->m);
  if (s) fail_msg("%s\n%s", lw_status_message(s), text);
}

void program_free(program *p) {
  lw_module_free(p->m);
  lw_arena_free(p->arena);
  lw_context_free(p->ctx);
}

lw_literal *program_run(program *p, const lw_literal *const *args, int n,
                        const lw_interp_options *opts) {
  lw_literal *result = NULL;
  lw_status s = lw_interp_run(p->m, args, n, opts, p->arena, &result);
  if (s) fail_msg("%s", lw_status_message(s));
  return result;
}

void program_fails(program *p, const lw_interp_options *opts, lw_code code,
                   const char *words) {
  lw_literal *result = NULL;
  lw_status s = lw_interp_run(p->m, NULL, 0, opts, p->arena, &result);
  assert_non_null(s);
  assert_int_equal(lw_status_code(s), code);
  if (!strstr(lw_status_message(s), words))
    fail_msg("\"%s\" does not hold \"%s\"", lw_status_message(s), words);
  lw_status_free(s);
}

lw_literal *floats(program *p, int32_t rank, const int64_t *dims,
                   uint64_t seed) {
  lw_literal *l = NULL;
  const lw_shape *s = lw_shape_array(p->ctx, LW_F32, rank, dims);
  assert_null(lw_literal_new(p->arena, s, &l));
  uint64_t x = seed * 2654435761u + 88172645463325252u;
  for (int64_t k = 0; k < s->elements; k++) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    double v = (double)(x >> 11) * 0x1p-53 * 2 - 1;
    ((float *)l->data)[k] = (float)(x % 7 ? v : v * 1e-4);
  }
  return l;
}
