#include "table.h"

#include <string.h>

#include "base/diag.h"
#include "base/vec.h"

const cli_option cli_options[OPT_COUNT] = {
#define O(e, name, letter, value, help) {name, letter, value, help},
#include "options.def"
#undef O
};

#define C(fn, name, arguments, min, max, summary, ...)                \
  int cli_run_##fn(const cli_args *a);                                \
  static const int options_##fn[] = {__VA_ARGS__, -1};                \
  static const cli_command command_##fn = {                           \
      name, arguments, min, max, summary, options_##fn, cli_run_##fn, \
  };
#include "commands.def"
#undef C

const cli_command *const cli_commands[] = {
#define C(fn, ...) &command_##fn,
#include "commands.def"
#undef C
    NULL};

const cli_command *cli_find(const char *name) {
  for (const cli_command *const *c = cli_commands; *c; c++) {
    if (!strcmp((*c)->name, name)) return *c;
  }
  return NULL;
}

/* ---- parsing ---- */

static int find_option(const cli_command *c, const char *name, size_t len) {
  for (const int *o = c->options; *o >= 0; o++) {
    const char *n = cli_options[*o].name;
    if (strlen(n) == len && !memcmp(n, name, len)) return *o;
  }
  return -1;
}

static int find_letter(const cli_command *c, char letter) {
  for (const int *o = c->options; *o >= 0; o++) {
    if (cli_options[*o].letter == letter) return *o;
  }
  return -1;
}

static bool unknown(const cli_command *c, const char *name, size_t len,
                    lw_buf *error) {
  const char *names[OPT_COUNT];
  size_t n = 0;
  for (const int *o = c->options; *o >= 0; o++) {
    names[n++] = cli_options[*o].name;
  }
  char copy[64] = "";
  memcpy(copy, name, len < 63 ? len : 63);
  const char *near = lw_nearest_name(copy, names, n);
  lw_buf_printf(error, "lawson %s has no option --%s", c->name, copy);
  if (near) lw_buf_printf(error, "; did you mean --%s?", near);
  return false;
}

/* Values written a|b|c are all there are. */
static bool allowed(const cli_option *o, const char *value) {
  if (!strchr(o->value, '|') || strstr(o->value, "FILE")) return true;
  size_t len = strlen(value);
  for (const char *p = o->value; p;) {
    const char *bar = strchr(p, '|');
    size_t n = bar ? (size_t)(bar - p) : strlen(p);
    if (n == len && !memcmp(p, value, n)) return true;
    p = bar ? bar + 1 : NULL;
  }
  return false;
}

/* The buffer of an option that may be given several times, or NULL. */
static char *repeats(cli_args *out, int id) {
  if (id == OPT_FORCE_EDGE) return out->joined[0];
  return id == OPT_FORBID_EDGE ? out->joined[1] : NULL;
}

static bool add_value(cli_args *out, int id, const char *value, char *all,
                      lw_buf *error) {
  size_t at = strlen(all), room = sizeof out->joined[0];
  if (at + strlen(value) + 2 > room) {
    lw_buf_printf(error, "--%s is given too often", cli_options[id].name);
    return false;
  }
  if (at) all[at++] = ';';
  memcpy(all + at, value, strlen(value) + 1);
  out->value[id] = all;
  return true;
}

static bool take_value(cli_args *out, int id, const char *value,
                       lw_buf *error) {
  const cli_option *o = &cli_options[id];
  if (!allowed(o, value)) {
    lw_buf_printf(error, "--%s=%s: the values are %s", o->name, value,
                  o->value);
    return false;
  }
  char *all = repeats(out, id);
  if (all) return add_value(out, id, value, all, error);
  out->value[id] = value;
  return true;
}

/* argv[*k] is an option; a value may be the next word. */
static bool take_option(const cli_command *c, int argc, char **argv, int *k,
                        cli_args *out, lw_buf *error) {
  const char *word = argv[*k];
  bool is_long = word[1] == '-';
  const char *eq = is_long ? strchr(word, '=') : NULL;
  size_t len = eq ? (size_t)(eq - word) - 2 : strlen(word) - 2;
  int id = is_long ? find_option(c, word + 2, len) : find_letter(c, word[1]);
  if (id < 0) {
    if (is_long) return unknown(c, word + 2, len, error);
    return unknown(c, word + 1, strlen(word) - 1, error);
  }
  const cli_option *o = &cli_options[id];
  if (!o->value) {
    if (eq || (!is_long && word[2])) {
      lw_buf_printf(error, "--%s takes no value", o->name);
      return false;
    }
    out->value[id] = "";
    return true;
  }
  if (eq) return take_value(out, id, eq + 1, error);
  if (o->value[0] == '[') { /* the value may be left out */
    out->value[id] = "";
    return true;
  }
  if (!is_long && word[2]) return take_value(out, id, word + 2, error);
  if (*k + 1 >= argc) {
    lw_buf_printf(error, "--%s needs a value: %s", o->name, o->value);
    return false;
  }
  return take_value(out, id, argv[++*k], error);
}

static bool check_count(const cli_command *c, const cli_args *a,
                        lw_buf *error) {
  if (a->value[OPT_HELP]) return true;
  if (a->n_positional >= c->min && a->n_positional <= c->max) return true;
  if (a->n_positional < c->min) {
    lw_buf_printf(error, "lawson %s needs %s", c->name, c->arguments);
  } else {
    lw_buf_printf(error, "lawson %s: unexpected argument '%s'", c->name,
                  a->positional[c->max]);
  }
  return false;
}

bool cli_parse(const cli_command *c, int argc, char **argv, cli_args *out,
               lw_buf *error) {
  bool options = true;
  *out = (cli_args){.command = c};
  for (int k = 0; k < argc; k++) {
    if (options && !strcmp(argv[k], "--")) {
      options = false;
    } else if (options && argv[k][0] == '-' && argv[k][1]) {
      if (!take_option(c, argc, argv, &k, out, error)) return false;
    } else if (out->n_positional == 64) {
      lw_buf_printf(error, "too many arguments");
      return false;
    } else {
      out->positional[out->n_positional++] = argv[k];
    }
  }
  return check_count(c, out, error);
}

/* ---- help ---- */

void cli_print_usage(lw_buf *b) {
  lw_buf_str(b,
             "usage: lawson COMMAND [OPTIONS] ...\n\n"
             "Lawson reads XLA programs, fuses them, compiles them for this "
             "machine and runs them.\n\ncommands:\n");
  for (const cli_command *const *c = cli_commands; *c; c++) {
    lw_buf_printf(b, "  %-9s%s\n", (*c)->name, (*c)->summary);
  }
  lw_buf_str(
      b,
      "\nMODULE is a file of HLO text or proto, - for standard input, "
      "or a folder of dumps.\n"
      "lawson COMMAND --help   the command's options\n"
      "lawson help NAME        a command, a pass, or a refusal's reason\n"
      "lawson --version        LLVM, CPU and target file\n"
      "\nexit status: 0 yes; 1 bad or unsupported input; 2 wrong usage; "
      "3 the answer is no;\n4 a compiler or device is missing; 70 "
      "internal error\n");
}

void cli_print_command(lw_buf *b, const cli_command *c) {
  lw_buf_printf(b, "usage: lawson %s [OPTIONS] %s\n\n%s\n\noptions:\n", c->name,
                c->arguments, c->summary);
  for (const int *k = c->options; *k >= 0; k++) {
    const cli_option *o = &cli_options[*k];
    lw_buf left = {0};
    if (o->letter) lw_buf_printf(&left, "-%c, ", o->letter);
    lw_buf_printf(&left, "--%s", o->name);
    if (o->value) lw_buf_printf(&left, "=%s", o->value);
    lw_buf_printf(b, "  %-33s %s\n", lw_buf_cstr(&left), o->help);
    lw_buf_free(&left);
  }
}
