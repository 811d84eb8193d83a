// The one C++ file: Debian's KissFFT comes for double precision as a template.
// Exceptions stop here.
#include "lib/fft_line.h"

#include <kissfft/kissfft.hh>

#include <new>

struct lw_fft_double {
  kissfft<double> plan;
  lw_fft_double(int64_t n, bool inverse)
      : plan(static_cast<std::size_t>(n), inverse) {}
};

lw_fft_double *lw_fft_double_new(int64_t n, bool inverse) {
  try {
    return new lw_fft_double(n, inverse);
  } catch (...) {
    return nullptr;
  }
}

void lw_fft_double_free(lw_fft_double *p) { delete p; }

void lw_fft_double_run(const lw_fft_double *p, const void *in, void *out) {
  p->plan.transform(static_cast<const std::complex<double> *>(in),
                    static_cast<std::complex<double> *>(out));
}
