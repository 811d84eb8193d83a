/* MXCSR: generated code runs in the default mode (all exceptions masked, round
 * to nearest, subnormals kept), or with subnormals flushed when that was asked
 * for; the caller's mode comes back afterwards. */
#include "runtime/runtime_impl.h"

#if defined(__x86_64__)
#include <xmmintrin.h>

enum { MXCSR_DEFAULT = 0x1f80, FLUSH_TO_ZERO = 0x8000, DENORMALS_ZERO = 0x40 };

unsigned lw_fp_enter(bool flush_denormals) {
  unsigned saved = _mm_getcsr();
  unsigned mode = MXCSR_DEFAULT;
  if (flush_denormals) mode |= FLUSH_TO_ZERO | DENORMALS_ZERO;
  _mm_setcsr(mode);
  return saved;
}

void lw_fp_leave(unsigned saved) { _mm_setcsr(saved); }

#else

unsigned lw_fp_enter(bool flush_denormals) {
  (void)flush_denormals;
  return 0;
}

void lw_fp_leave(unsigned saved) { (void)saved; }

#endif
