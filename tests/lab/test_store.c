/* The results store: what is in stays, whoever opens it. */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "lab/results_json.h"
#include "lab/results_page.h"
#include "lab/scratch.h"
#include "unit.h"

typedef struct {
  char *folder, path[300];
  lw_arena *arena;
  lw_store *store;
} fixture;

static const char config[] =
    "{\"rule\":{\"alpha\":0.05,\"margin\":0.03,\"max_processes\":2,"
    "\"blocks_a_process\":1}}";

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  *state = f;
  f->arena = lw_arena_new();
  if (!f || lw_scratch_new(&f->folder)) return -1;
  snprintf(f->path, sizeof f->path, "%s/deep/er/results.db", f->folder);
  return lw_store_open(f->path, &f->store) ? -1 : 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  lw_store_close(f->store);
  lw_scratch_free(f->folder);
  lw_arena_free(f->arena);
  free(f);
  return 0;
}

static lw_run a_run(const char *uid) {
  return (lw_run){.uid = uid,
                  .kind = "compare",
                  .created = "2026-12-01T00:00:00Z",
                  .status = "running",
                  .title = "x \"<&>' y",
                  .config = config,
                  .provenance = "{\"machine\":\"m\"}"};
}

static void fill(lw_arena *a, lw_run_data *d, const char *uid) {
  *d = (lw_run_data){.run = a_run(uid)};
  static const char sides[] = "abccba";
  for (int32_t round = 1; round <= 2; round++) {
    for (int k = 0; k < 3; k++) {
      lw_run_process p = {round, "abc"[k], k, NAN, 2.5 + k, 1, 0.5, "{}"};
      lw_vec_push(&d->processes, p);
    }
    lw_block b = {round, 1, "2026-12-01T00:00:01Z", 0.25, 6, NULL};
    b.samples = LW_NEW_ARRAY(a, lw_sample, 6);
    for (int32_t k = 0; k < 6; k++)
      b.samples[k] =
          (lw_sample){k, sides[k], 1000 + 7 * k + 13 * round, 900, 1200, 5};
    lw_vec_push(&d->blocks, b);
  }
  lw_look_record l = {2, 0.04, 0.01, -0.2, 0.2, "UNDECIDED"};
  lw_vec_push(&d->looks, l);
}

static char *text_of(const lw_run_data *d) {
  cJSON *j = lw_run_to_json(d);
  cJSON_DeleteItemFromObject(j, "id");
  char *text = cJSON_Print(j);
  cJSON_Delete(j);
  return text;
}

static void comes_back_whole(void **state) {
  fixture *f = *state;
  lw_run_data in, out, back;
  fill(f->arena, &in, "u1");
  int64_t id, found;
  assert_null(lw_store_add_all(f->store, &in, &id));
  assert_null(lw_store_find(f->store, "u1", &found));
  assert_int_equal(found, id);
  assert_null(lw_store_load(f->store, id, f->arena, &out));
  char *x = text_of(&in), *y = text_of(&out);
  assert_string_equal(x, y);
  /* and through JSON */
  cJSON *j = cJSON_Parse(x);
  assert_null(lw_run_from_json(j, f->arena, &back));
  char *z = text_of(&back);
  assert_string_equal(x, z);
  cJSON_Delete(j);
  cJSON_free(x);
  cJSON_free(y);
  cJSON_free(z);
  lw_run_data_free(&in);
  lw_run_data_free(&out);
  lw_run_data_free(&back);
}

static void the_same_run_twice(void **state) {
  fixture *f = *state;
  lw_run_data d;
  fill(f->arena, &d, "u1");
  int64_t id;
  assert_null(lw_store_add_all(f->store, &d, &id));
  lw_status st = lw_store_add_all(f->store, &d, &id);
  assert_int_equal(lw_status_code(st), LW_ALREADY_EXISTS);
  lw_status_free(st);
  /* A block of that number is another's: nothing of it is kept. */
  st = lw_store_add_block(f->store, id, &d.blocks.data[0]);
  assert_int_equal(lw_status_code(st), LW_ALREADY_EXISTS);
  lw_status_free(st);
  lw_run_data_free(&d);
  lw_runs runs = {0};
  assert_null(lw_store_list(f->store, f->arena, &runs));
  assert_int_equal(runs.len, 1);
  lw_vec_free(&runs);
}

static int raw(const fixture *f, const char *sql) {
  sqlite3 *db;
  assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
  int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  sqlite3_close(db);
  return rc;
}

static void nothing_is_overwritten(void **state) {
  fixture *f = *state;
  lw_run_data d;
  fill(f->arena, &d, "u1");
  int64_t id;
  assert_null(lw_store_add_all(f->store, &d, &id));
  lw_run_data_free(&d);
  static const char *const crimes[] = {
      "UPDATE sample SET median_ns=1", "DELETE FROM sample",
      "UPDATE block SET load=1",       "DELETE FROM block",
      "UPDATE look SET verdict='x'",   "DELETE FROM look",
      "UPDATE process SET first_ms=1", "DELETE FROM process",
      "UPDATE run SET config='{}'",    "DELETE FROM run"};
  for (size_t k = 0; k < sizeof crimes / sizeof *crimes; k++)
    assert_int_equal(raw(f, crimes[k]) & 0xff, SQLITE_CONSTRAINT);
  assert_null(lw_store_finish(f->store, id, "decided", "{}"));
}

static void an_old_database_is_brought_up(void **state) {
  fixture *f = *state;
  lw_store_close(f->store);
  f->store = NULL;
  /* Version 1 had no triggers. */
  static const char *const names[] = {"run", "process", "block", "sample",
                                      "look"};
  for (size_t k = 0; k < 5; k++) {
    char sql[128];
    snprintf(sql, sizeof sql, "DROP TRIGGER %s_kept; DROP TRIGGER %s_fixed",
             names[k], names[k]);
    assert_int_equal(raw(f, sql), SQLITE_OK);
  }
  assert_int_equal(raw(f, "PRAGMA user_version=1"), SQLITE_OK);
  assert_null(lw_store_open(f->path, &f->store));
  lw_run_data d;
  fill(f->arena, &d, "u1");
  int64_t id;
  assert_null(lw_store_add_all(f->store, &d, &id));
  lw_run_data_free(&d);
  assert_int_equal(raw(f, "DELETE FROM sample") & 0xff, SQLITE_CONSTRAINT);
}

static void not_ours(void **state) {
  fixture *f = *state;
  lw_store *s;
  assert_int_equal(raw(f, "PRAGMA user_version=99"), SQLITE_OK);
  lw_status st = lw_store_open(f->path, &s);
  assert_int_equal(lw_status_code(st), LW_FAILED_PRECONDITION);
  lw_status_free(st);
  char path[400];
  snprintf(path, sizeof path, "%s/text", f->folder);
  assert_null(
      lw_file_write(path, "this is a text, not a database........", 38));
  st = lw_store_open(path, &s);
  assert_int_equal(lw_status_code(st), LW_INVALID_ARGUMENT);
  lw_status_free(st);
  fixture other = *f;
  snprintf(other.path, sizeof other.path, "%s/other.db", f->folder);
  assert_int_equal(raw(&other, "CREATE TABLE t(x)"), SQLITE_OK);
  st = lw_store_open(other.path, &s);
  assert_int_equal(lw_status_code(st), LW_INVALID_ARGUMENT);
  lw_status_free(st);
}

static void bad_json_is_refused(void **state) {
  fixture *f = *state;
  lw_run_data in, out;
  fill(f->arena, &in, "u1");
  static const char *const drop[] = {"uid", "kind", "config", "blocks",
                                     "looks"};
  for (size_t k = 0; k < sizeof drop / sizeof *drop; k++) {
    cJSON *j = lw_run_to_json(&in);
    cJSON_DeleteItemFromObject(j, drop[k]);
    lw_status st = lw_run_from_json(j, f->arena, &out);
    assert_int_equal(lw_status_code(st), LW_INVALID_ARGUMENT);
    assert_non_null(strstr(lw_status_message(st), drop[k]));
    lw_status_free(st);
    lw_run_data_free(&out);
    cJSON_Delete(j);
  }
  in.blocks.data[0].samples[0].median_ns = -1;
  cJSON *j = lw_run_to_json(&in);
  lw_status st = lw_run_from_json(j, f->arena, &out);
  assert_int_equal(lw_status_code(st), LW_INVALID_ARGUMENT);
  lw_status_free(st);
  lw_run_data_free(&out);
  cJSON_Delete(j);
  lw_run_data_free(&in);
}

/* A title, or a uid, of an imported run is no HTML and no path. */
static void pages_are_safe(void **state) {
  fixture *f = *state;
  lw_run_data d;
  fill(f->arena, &d, "../../evil");
  d.run.title = "</title><script>alert(1)</script>";
  d.run.provenance = "{\"<b>\":\"\\\" onload='x'\",\"in\":{\"<i>\":1}}";
  char folder[400], path[512];
  snprintf(folder, sizeof folder, "%s/pages", f->folder);
  lw_results_page *p;
  assert_null(lw_results_page_new(folder, &p));
  assert_null(lw_results_page_add(p, &d));
  assert_null(lw_results_page_end(p));
  lw_results_page_free(p);
  lw_run_data_free(&d);
  snprintf(path, sizeof path, "%s/index.html", folder);
  char *html;
  size_t len;
  assert_null(lw_file_read(path, &html, &len));
  assert_null(strstr(html, "<script"));
  assert_non_null(strstr(html, "&lt;script&gt;"));
  char *link = strstr(html, "href=\"run-");
  assert_non_null(link);
  link += 6;
  link[strcspn(link, "\"#")] = 0;
  assert_null(strchr(link, '/'));
  snprintf(path, sizeof path, "%s/%s", folder, link);
  free(html);
  assert_null(lw_file_read(path, &html, &len));
  assert_null(strstr(html, "<script"));
  assert_null(strstr(html, "<b>"));
  assert_null(strstr(html, "<i>"));
  assert_non_null(strstr(html, "id=\"provenance\""));
  assert_non_null(strstr(html, "class=\"verdict\""));
  free(html);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(comes_back_whole, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_same_run_twice, set_up, tear_down),
      cmocka_unit_test_setup_teardown(nothing_is_overwritten, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(an_old_database_is_brought_up, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(not_ours, set_up, tear_down),
      cmocka_unit_test_setup_teardown(bad_json_is_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(pages_are_safe, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
