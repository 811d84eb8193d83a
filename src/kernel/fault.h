/* Planted faults: known ways to break docs/numerics.md, planted on purpose by
 * the property test (`property --faults`), which must catch each. Nothing else
 * sets them; the program's options do not reach them. */
#ifndef LW_KERNEL_FAULT_H
#define LW_KERNEL_FAULT_H

typedef enum {
  LW_FAULT_NONE,
  LW_FAULT_CONTRACT,     /* multiply and add of two instructions become fma */
  LW_FAULT_NARROW,       /* bf16 results stay f32 until they are stored */
  LW_FAULT_ROW_ORDER,    /* a row's lanes combine by neighbours, not halves */
  LW_FAULT_COLUMN_ORDER, /* a column's blocks fold last to first */
  LW_FAULT_DOT_ORDER,    /* a dot's blocks are added last to first */
  LW_FAULT_DOT_PRODUCT,  /* a dot's products are rounded */
  LW_FAULT_TAIL,      /* masked lanes: functions by way of f64, reciprocals */
  LW_FAULT_NAN,       /* arithmetic NaNs keep the machine's sign and bits */
  LW_FAULT_ALIAS,     /* outputs over parameters that are read elsewhere */
  LW_FAULT_UPDATE,    /* updates in place though others read the operand */
  LW_FAULT_LOOP_COPY, /* loop state handed on without its temporaries */
  LW_FAULT_COUNT
} lw_fault;

#endif
