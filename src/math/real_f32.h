/* Names and constants for including real.inc and complex.inc for f32. */
#undef R
#undef RC
#undef N
#undef B
#undef BC
#undef BR
#undef RB
#undef R_SIGN
#undef R_QNAN
#undef R_INF
#undef R_MIN
#undef R_SHIFT
#undef R_BITS
#undef R_BIG1
#undef R_BIG2
#undef R_LOGMAX
#undef R_TANHMAX
#define R F
#define RC(x) FC(x)
#define N(f) f##_f
#define B I
#define BC(x) IC(x)
#define BR(x) BF(x)
#define RB(x) FB(x)
#define R_SIGN ((int32_t)(-2147483647 - 1))
#define R_QNAN 0x7fc00000
#define R_INF 0x7f800000
#define R_MIN 0x1p-126
#define R_SHIFT 23
#define R_BITS 32
#define R_BIG1 0x1p24
#define R_BIG2 0x1p48
#define R_LOGMAX 88.0
#define R_TANHMAX 20.0
