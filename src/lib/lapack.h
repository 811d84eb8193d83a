/* JAX's lapack_*_ffi custom calls (lapack.c). Matrices come and go row-major
 * and are turned for LAPACK, which wants columns; leading dims are a batch. */
#ifndef LW_LIB_LAPACK_H
#define LW_LIB_LAPACK_H

#include "lib/lib.h"

lw_status lw_lapack_gees(const lw_lib_call *c);
lw_status lw_lapack_geev(const lw_lib_call *c);
lw_status lw_lapack_gehrd(const lw_lib_call *c);
lw_status lw_lapack_geqp3(const lw_lib_call *c);
lw_status lw_lapack_geqrf(const lw_lib_call *c);
lw_status lw_lapack_gesdd(const lw_lib_call *c);
lw_status lw_lapack_gesvd(const lw_lib_call *c);
lw_status lw_lapack_getrf(const lw_lib_call *c);
lw_status lw_lapack_gtsv(const lw_lib_call *c);
lw_status lw_lapack_orgqr(const lw_lib_call *c);
lw_status lw_lapack_ormqr(const lw_lib_call *c);
lw_status lw_lapack_potrf(const lw_lib_call *c);
lw_status lw_lapack_syevd(const lw_lib_call *c);
lw_status lw_lapack_sytrd(const lw_lib_call *c);
lw_status lw_lapack_trsm(const lw_lib_call *c);

#endif
