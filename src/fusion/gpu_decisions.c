/* Decision records of gpu-priority-fusion in the corpus' form. */
#include "fusion/gpu_decisions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* XLA's record is a protobuf text of floats: six digits where they read back as
 * the same float, else nine. */
static void print_us(lw_buf *b, double ns) {
  char text[40];
  float us = (float)(ns / 1000);
  snprintf(text, sizeof text, "%.6g", (double)us);
  if (strtof(text, NULL) != us) snprintf(text, sizeof text, "%.9g", (double)us);
  lw_buf_str(b, text);
}

static void print_one(lw_buf *b, const lw_decision *d) {
  if (!d->yes && d->gate == LW_GATE_FUSIBILITY) {
    lw_buf_printf(b, "refused\t%s\t%s\n", d->producer, d->text);
  } else if (d->text[0]) {
    lw_buf_printf(b, "fusion\t%s\t%s\t%s\n", d->producer, d->consumer, d->text);
  } else {
    lw_buf_printf(b, "priority\t%s\t%s\t", d->producer, d->consumer);
    print_us(b, d->fused_ns);
    lw_buf_chr(b, '\t');
    print_us(b, d->unfused_ns);
    lw_buf_chr(b, '\n');
  }
}

void lw_gpu_decisions_print(lw_buf *b, const lw_trace *t) {
  for (size_t k = 0; k < lw_trace_count(t); k++) {
    const lw_decision *d = lw_trace_at(t, k);
    if (!strcmp(d->pass, "gpu-priority-fusion")) print_one(b, d);
  }
}
