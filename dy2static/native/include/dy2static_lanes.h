/* Accumulators of loops that reduce: one for each element of a vector, put together by halves.

   With a reduction of OpenMP, compilers put the parts of a sum of floats together one by one, which for a short row takes as long as
   the row. */
#ifndef DY2STATIC_LANES_H
#define DY2STATIC_LANES_H

#include <stdint.h>

#if defined(__AVX512F__)
enum { DY_LANES_f32 = 16 };
#elif defined(__AVX__)
enum { DY_LANES_f32 = 8 };
#else
enum { DY_LANES_f32 = 4 };
#endif
enum { DY_LANES_f64 = DY_LANES_f32 / 2 };

#define DY_ADDED(a, b) ((a) + (b))
#define DY_MULTIPLIED(a, b) ((a) * (b))
#define DY_GREATER(a, b) ((a) > (b) ? (a) : (b))
#define DY_LESS(a, b) ((a) < (b) ? (a) : (b))
#define DY_EITHER(a, b) ((a) | (b))

#define DY_DEFINE_JOINED(NAME, T, LANES, JOIN)                                          \
    static inline __attribute__((always_inline, unused)) T NAME(const T *lanes)         \
    {                                                                                   \
        T part[LANES / 2];                                                              \
        for (int k = 0; k < LANES / 2; ++k) part[k] = JOIN(lanes[k], lanes[k + LANES / 2]); \
        if (LANES >= 16)                                                                \
            for (int k = 0; k < 4; ++k) part[k] = JOIN(part[k], part[k + 4]);           \
        if (LANES >= 8)                                                                 \
            for (int k = 0; k < 2; ++k) part[k] = JOIN(part[k], part[k + 2]);           \
        return LANES >= 4 ? JOIN(part[0], part[1]) : part[0];                           \
    }

#define DY_DEFINE_LANES(T, INT, NAME)                                                   \
    DY_DEFINE_JOINED(dy_joined_sum_##NAME, T, DY_LANES_##NAME, DY_ADDED)                \
    DY_DEFINE_JOINED(dy_joined_prod_##NAME, T, DY_LANES_##NAME, DY_MULTIPLIED)          \
    DY_DEFINE_JOINED(dy_joined_max_##NAME, T, DY_LANES_##NAME, DY_GREATER)              \
    DY_DEFINE_JOINED(dy_joined_min_##NAME, T, DY_LANES_##NAME, DY_LESS)                 \
    DY_DEFINE_JOINED(dy_joined_nan_##NAME, INT, DY_LANES_##NAME, DY_EITHER)

DY_DEFINE_LANES(float, int32_t, f32)
DY_DEFINE_LANES(double, int64_t, f64)

#endif
