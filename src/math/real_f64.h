/* Names and constants for including real.inc and complex.inc for f64. */
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
#define R D
#define RC(x) DC(x)
#define N(f) f##_d
#define B L
#define BC(x) LC(x)
#define BR(x) BD(x)
#define RB(x) DB(x)
#define R_SIGN INT64_MIN
#define R_QNAN 0x7ff8000000000000
#define R_INF 0x7ff0000000000000
#define R_MIN 0x1p-1022
#define R_SHIFT 52
#define R_BITS 64
#define R_BIG1 0x1p54
#define R_BIG2 0x1p108
#define R_LOGMAX 709.0
#define R_TANHMAX 40.0
