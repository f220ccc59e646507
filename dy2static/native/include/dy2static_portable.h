/* What gcc and clang have built in, for other compilers of C11. */
#ifndef DY2STATIC_PORTABLE_H
#define DY2STATIC_PORTABLE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#ifndef __GNUC__
#define __attribute__(attributes)
#define __builtin_expect(test, expected) (test)
#define __builtin_sqrt sqrt
#define __builtin_sqrtf sqrtf
#define __builtin_fabs fabs
#define __builtin_fabsf fabsf
#define __builtin_inf() INFINITY
#define __builtin_inff() INFINITY
#define __builtin_islessequal(a, b) islessequal(a, b)
#define __atomic_store_n(to, value, order) (*(to) = (value))
#ifdef __TINYC__
#define _Pragma(text)                           /* it has none */
#endif
#define __builtin_add_overflow dy_add_overflow
#define __builtin_sub_overflow dy_sub_overflow
#define __builtin_mul_overflow dy_mul_overflow

/* The sum of 64 bits; true where it has more. */
static inline bool dy_add_overflow(int64_t a, int64_t b, int64_t *y)
{
    *y = (int64_t)((uint64_t)a + (uint64_t)b);
    return b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b;
}

static inline bool dy_sub_overflow(int64_t a, int64_t b, int64_t *y)
{
    *y = (int64_t)((uint64_t)a - (uint64_t)b);
    return b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b;
}

static inline bool dy_mul_overflow(int64_t a, int64_t b, int64_t *y)
{
    *y = (int64_t)((uint64_t)a * (uint64_t)b);
    return b != 0 && ((a == INT64_MIN && b == -1) || (b == INT64_MIN && a == -1) || *y / b != a);
}
#endif

#endif
