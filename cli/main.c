/* lawson: one command, its subcommands in files of their own. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common.h"
#include "version.h"

static int usage_error(const char *command, lw_buf *error) {
  cli_error("%s", lw_buf_cstr(error));
  if (command) {
    fprintf(stderr, "try: lawson %s --help\n", command);
  } else {
    fprintf(stderr, "try: lawson --help\n");
  }
  lw_buf_free(error);
  return CLI_USAGE;
}

static int unknown_command(const char *name) {
  const char *names[32];
  size_t n = 0;
  for (const cli_command *const *c = cli_commands; *c; c++) {
    names[n++] = (*c)->name;
  }
  const char *near = lw_nearest_name(name, names, n);
  lw_buf b = {0};
  lw_buf_printf(&b, "unknown command '%s'", name);
  if (near) lw_buf_printf(&b, "; did you mean '%s'?", near);
  return usage_error(NULL, &b);
}

static int print_usage(void) {
  lw_buf b = {0};
  cli_print_usage(&b);
  cli_out(lw_buf_cstr(&b));
  lw_buf_free(&b);
  return CLI_YES;
}

static int print_version(void) {
  const char *file = lw_target_host_name();
  lw_target *t = NULL;
  printf("lawson %s\n%s\nCPU %s\n", LW_VERSION, lw_codegen_version(),
         lw_codegen_host_cpu());
  lw_status st = lw_target_load("cpu", &t);
  if (!st) {
    printf("target %s (%s, hash %016llx)\n", file ? file : t->name, t->source,
           (unsigned long long)t->hash);
  }
  lw_status_free(st);
  if (t) lw_target_free(t);
  return CLI_YES;
}

static int run_command(const cli_command *c, int argc, char **argv) {
  cli_args args;
  lw_buf error = {0};
  if (!cli_parse(c, argc, argv, &args, &error)) {
    return usage_error(c->name, &error);
  }
  cli_color_mode(args.value[OPT_COLOR]);
  if (args.value[OPT_HELP]) {
    lw_buf b = {0};
    cli_print_command(&b, c);
    cli_out(lw_buf_cstr(&b));
    lw_buf_free(&b);
    return CLI_YES;
  }
  int code = cli_check_compiler(&args);
  return code ? code : c->run(&args);
}

static int dispatch(int argc, char **argv) {
  if (argc < 2) {
    lw_buf b = {0};
    cli_print_usage(&b);
    fputs(lw_buf_cstr(&b), stderr);
    lw_buf_free(&b);
    return CLI_USAGE;
  }
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
    return print_usage();
  }
  if (!strcmp(argv[1], "--version")) return print_version();
  const cli_command *c = cli_find(argv[1]);
  if (!c) return unknown_command(argv[1]);
  return run_command(c, argc - 2, argv + 2);
}

/* A reader that went away is not an error of ours; a full disk is. */
static int finish(int code) {
  cli_progress("%s", "");
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return code;
  if (errno == EPIPE) return code;
  cli_error("standard output: %s", strerror(errno ? errno : EIO));
  return code ? code : CLI_BAD_INPUT;
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
  return finish(dispatch(argc, argv));
}
