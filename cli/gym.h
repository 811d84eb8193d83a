/* The programs of share/gym, built in. */
#ifndef LW_CLI_GYM_H
#define LW_CLI_GYM_H

typedef struct {
  const char *name; /* "03-softmax-wall" */
  /* A title, a line of options, an empty line, the lesson in paragraphs. */
  const char *text;
  const char *hlo;
} cli_gym_program;
extern const cli_gym_program cli_gym[]; /* ends with a NULL name */

#endif
