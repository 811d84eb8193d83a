/* Single decisions that the user takes. */
#include "trace/override.h"

#include <string.h>

#include "base/diag.h"

static const char *option_of(bool force) {
  return force ? "--force-edge" : "--forbid-edge";
}

static const char *name_of(lw_overrides *o, const char *s, const char *end) {
  if (s < end && *s == '%') s++;
  return lw_arena_strdup(o->arena, s, (size_t)(end - s));
}

lw_status lw_overrides_add(lw_overrides *o, const char *list, bool force) {
  for (const char *s = list; s && *s;) {
    size_t len = strcspn(s, ";");
    const char *end = s + len, *comma = memchr(s, ',', len);
    if (!comma || comma == s || comma + 1 == end ||
        memchr(comma + 1, ',', (size_t)(end - comma - 1)))
      return lw_error(LW_INVALID_ARGUMENT,
                      "%s=%.*s: two names are needed, PRODUCER,CONSUMER",
                      option_of(force), (int)len, s);
    lw_override e = {.producer = name_of(o, s, comma),
                     .consumer = name_of(o, comma + 1, end),
                     .force = force};
    const lw_override *twin = lw_overrides_find(o, e.producer, e.consumer);
    if (twin && twin->force != force)
      return lw_error(LW_INVALID_ARGUMENT, "%s,%s is both forced and forbidden",
                      e.producer, e.consumer);
    if (!twin) lw_vec_push(&o->list, e);
    s = *end ? end + 1 : end;
  }
  return NULL;
}

lw_override *lw_overrides_find(const lw_overrides *o, const char *producer,
                               const char *consumer) {
  for (size_t k = 0; o && k < o->list.len; k++) {
    lw_override *e = &o->list.data[k];
    if (!strcmp(e->producer, producer) && !strcmp(e->consumer, consumer))
      return e;
  }
  return NULL;
}

static bool is_producer(const lw_decision *d, const char *name) {
  return !strcmp(d->producer, name) || !strcmp(d->value, name);
}

/* An edge that was asked about, to suggest: of the same producer, else of the
 * nearest one. */
static lw_status never_asked(const lw_override *e, const lw_trace *t) {
  LW_VEC(const char *) names = {0};
  const lw_decision *same = NULL;
  for (size_t k = 0; k < lw_trace_count(t); k++) {
    const lw_decision *d = lw_trace_at(t, k);
    if (is_producer(d, e->producer)) same = d;
    lw_vec_push(&names, d->producer);
  }
  const char *near = lw_nearest_name(e->producer, names.data, names.len);
  lw_vec_free(&names);
  if (same)
    return lw_error(LW_NOT_FOUND,
                    "%s=%s,%s: no gate was asked about this edge; %s was asked "
                    "about with %s",
                    option_of(e->force), e->producer, e->consumer,
                    same->producer, same->consumer);
  return lw_error(LW_NOT_FOUND,
                  "%s=%s,%s: no gate was asked about this edge%s%s%s",
                  option_of(e->force), e->producer, e->consumer,
                  near ? "; did you mean " : "", near ? near : "",
                  near ? "?" : " (lawson explain lists them)");
}

lw_status lw_overrides_status(const lw_overrides *o, const lw_trace *t) {
  for (size_t k = 0; k < o->list.len; k++) {
    const lw_override *e = &o->list.data[k];
    if (e->obeyed) continue;
    if (!e->asked) return never_asked(e, t);
    if (!e->force || !e->refused) continue; /* it is apart, as was asked */
    const lw_reason_info *r = &lw_reason_table[e->refusal];
    return lw_error(
        LW_PERMISSION_DENIED,
        "--force-edge=%s,%s: the fusibility gate refuses this edge, "
        "and legality is not overridden: %s: %s (lawson help %s)",
        e->producer, e->consumer, r->code, r->line, r->code);
  }
  return NULL;
}

void lw_overrides_free(lw_overrides *o) { lw_vec_free(&o->list); }
