/* Writes what is made from the table: gen man|bash|zsh|fish. */
#include <stdio.h>
#include <string.h>

#include "table.h"

static void quote_man(lw_buf *b, const char *s) {
  for (; *s; s++) {
    if (*s == '-') lw_buf_chr(b, '\\');
    lw_buf_chr(b, *s);
  }
}

static void man_option(lw_buf *b, const cli_option *o) {
  lw_buf_str(b, ".TP\n.B ");
  if (o->letter) lw_buf_printf(b, "\\-%c, ", o->letter);
  lw_buf_str(b, "\\-\\-");
  quote_man(b, o->name);
  if (o->value) {
    lw_buf_str(b, "=");
    quote_man(b, o->value);
  }
  lw_buf_chr(b, '\n');
  quote_man(b, o->help);
  lw_buf_chr(b, '\n');
}

static void print_man(lw_buf *b) {
  lw_buf_str(
      b,
      ".TH LAWSON 1\n.SH NAME\nlawson \\- a fusing compiler for XLA "
      "programs\n.SH SYNOPSIS\n.B lawson\n.I COMMAND\n[OPTIONS] ...\n"
      ".SH DESCRIPTION\nReads the programs that XLA compiles, fuses "
      "producers and consumers into kernels, compiles those for this "
      "machine and runs them. Fusion never changes a result by a bit, "
      "and every edge that was not fused has a reason.\n.PP\n"
      ".I MODULE\nis a file of HLO text or an HLO proto (HloModuleProto, "
      "HloProto, HloSnapshot), a folder of dumps (choose with "
      "\\-\\-module), or \\- for standard input. Products go to standard "
      "output, everything else to standard error.\n"
      ".SH COMMANDS\n");
  for (const cli_command *const *c = cli_commands; *c; c++) {
    lw_buf_printf(b, ".TP\n.B %s ", (*c)->name);
    quote_man(b, (*c)->arguments);
    lw_buf_chr(b, '\n');
    quote_man(b, (*c)->summary);
    if (b->data[b->len - 1] != '?') lw_buf_chr(b, '.');
    lw_buf_str(b, "\nOptions:");
    for (const int *k = (*c)->options; *k >= 0; k++) {
      lw_buf_str(b, " \\-\\-");
      quote_man(b, cli_options[*k].name);
    }
    lw_buf_str(b, ".\n");
  }
  lw_buf_str(b, ".SH OPTIONS\n");
  for (int k = 0; k < OPT_COUNT; k++) man_option(b, &cli_options[k]);
  lw_buf_str(
      b,
      ".SH EXIT STATUS\n0 yes; 1 bad or unsupported input; 2 wrong "
      "usage; 3 the answer is no; 4 a compiler or device is missing; "
      "70 internal error.\n.SH ENVIRONMENT\n.TP\n.B NO_COLOR\nno "
      "colour, whatever the terminal.\n.TP\n.B LAWSON_DB\nthe database of "
      "results, when \\-\\-db does not name one.\n.SH EXAMPLES\n.nf\n"
      "lawson run model.hlo \\-\\-inputs=in.npz \\-\\-expect=out.npz\n"
      "lawson opt model.hlo \\-\\-fusion=xla \\-o fused.hlo\n"
      "lawson verify model.hlo\nlawson help cycle\n.fi\n");
}

static void print_bash(lw_buf *b) {
  lw_buf_str(b,
             "_lawson() {\n  local cur=${COMP_WORDS[COMP_CWORD]} words=\n"
             "  if [ \"$COMP_CWORD\" = 1 ]; then words=\"");
  for (const cli_command *const *c = cli_commands; *c; c++) {
    lw_buf_printf(b, "%s ", (*c)->name);
  }
  lw_buf_str(b, "--version --help\"\n  else case ${COMP_WORDS[1]} in\n");
  for (const cli_command *const *c = cli_commands; *c; c++) {
    lw_buf_printf(b, "    %s) words=\"", (*c)->name);
    for (const int *k = (*c)->options; *k >= 0; k++) {
      const cli_option *o = &cli_options[*k];
      lw_buf_printf(b, "--%s%s ", o->name, o->value ? "=" : "");
    }
    lw_buf_str(b, "\" ;;\n");
  }
  lw_buf_str(b,
             "  esac; fi\n"
             "  case $cur in -*|'') ;; *) [ \"$COMP_CWORD\" -gt 1 ] && "
             "words= ;; esac\n"
             "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
             "  [ ${#COMPREPLY[@]} = 0 ] && COMPREPLY=($(compgen -f -- "
             "\"$cur\"))\n"
             "  case ${COMPREPLY[0]} in *=) compopt -o nospace ;; esac\n}\n"
             "complete -o filenames -F _lawson lawson\n");
}

static void quote_shell(lw_buf *b, const char *s) {
  for (; *s; s++) {
    if (strchr("[]:'\\", *s)) {
      lw_buf_str(b, *s == '\'' ? "'\\'" : "\\");
    }
    lw_buf_chr(b, *s);
  }
}

static void print_zsh(lw_buf *b) {
  lw_buf_str(b,
             "#compdef lawson\n_lawson() {\n  if (( CURRENT == 2 )); then\n"
             "    local -a commands=(\n");
  for (const cli_command *const *c = cli_commands; *c; c++) {
    lw_buf_printf(b, "      '%s:", (*c)->name);
    quote_shell(b, (*c)->summary);
    lw_buf_str(b, "'\n");
  }
  lw_buf_str(b,
             "    )\n    _describe command commands\n    return\n  fi\n"
             "  case $words[2] in\n");
  for (const cli_command *const *c = cli_commands; *c; c++) {
    lw_buf_printf(b, "    %s) _arguments", (*c)->name);
    for (const int *k = (*c)->options; *k >= 0; k++) {
      const cli_option *o = &cli_options[*k];
      lw_buf_printf(b, " '--%s%s[", o->name, o->value ? "=" : "");
      quote_shell(b, o->help);
      lw_buf_chr(b, ']');
      if (o->value) {
        lw_buf_str(b, ":value:");
        if (strstr(o->value, "FILE")) lw_buf_str(b, "_files");
      }
      lw_buf_chr(b, '\'');
    }
    lw_buf_str(b, " '*:module:_files' ;;\n");
  }
  lw_buf_str(b, "  esac\n}\n_lawson \"$@\"\n");
}

static void print_fish(lw_buf *b) {
  for (const cli_command *const *c = cli_commands; *c; c++) {
    lw_buf_printf(b, "complete -c lawson -n __fish_use_subcommand -a %s -d '",
                  (*c)->name);
    quote_shell(b, (*c)->summary);
    lw_buf_str(b, "'\n");
    for (const int *k = (*c)->options; *k >= 0; k++) {
      const cli_option *o = &cli_options[*k];
      lw_buf_printf(b,
                    "complete -c lawson -n '__fish_seen_subcommand_from %s' "
                    "-l %s%s -d '",
                    (*c)->name, o->name, o->value ? " -r" : "");
      quote_shell(b, o->help);
      lw_buf_str(b, "'\n");
    }
  }
}

/* The table points at the commands; this program runs none. */
#define C(fn, ...)                     \
  int cli_run_##fn(const cli_args *a); \
  int cli_run_##fn(const cli_args *a) { return a ? CLI_INTERNAL : 0; }
#include "commands.def"
#undef C

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*print)(lw_buf *b);
  } kinds[] = {{"man", print_man},
               {"bash", print_bash},
               {"zsh", print_zsh},
               {"fish", print_fish}};
  for (size_t k = 0; argc == 2 && k < sizeof kinds / sizeof *kinds; k++) {
    if (strcmp(argv[1], kinds[k].name)) continue;
    lw_buf b = {0};
    kinds[k].print(&b);
    fputs(lw_buf_cstr(&b), stdout);
    lw_buf_free(&b);
    return 0;
  }
  fprintf(stderr, "usage: gen man|bash|zsh|fish\n");
  return 2;
}
