/* cmocka with what it needs before it, in the order it needs it. */
#ifndef LW_TESTS_UNIT_H
#define LW_TESTS_UNIT_H
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#endif
