/* Double-precision complex FFT lines over KissFFT's C++ header. */
#ifndef LW_LIB_FFT_LINE_H
#define LW_LIB_FFT_LINE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lw_fft_double lw_fft_double;
/* NULL when there is no memory. */
lw_fft_double *lw_fft_double_new(int64_t n, bool inverse);
void lw_fft_double_free(lw_fft_double *p);
/* n complex numbers (re, im) each; not scaled; in and out differ. */
void lw_fft_double_run(const lw_fft_double *p, const void *in, void *out);

#ifdef __cplusplus
}
#endif

#endif
