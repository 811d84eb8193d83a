/* The scalar loops for machines with AVX2 and FMA; flags in CMakeLists.txt. */
#define LW_VARIANT lw_elem_v3
#include "math/loops.c"
