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

/* The last `rest` elements of a row, fewer than a vector: `to` has the first of them in the other lanes.  And such a vector with
   another number in these lanes.  Built-in functions of the compilers load some elements only: a loop that does so was moved out of the loop
   around it by gcc 12, past what wrote these elements. */
#ifdef __AVX__

#define DY_DEFINE_LAST(T, INT, NAME, ...)                                                                               \
    typedef T dy_lanes_##NAME __attribute__((vector_size(sizeof(T) * DY_LANES_##NAME), aligned(sizeof(T)), may_alias)); \
    typedef INT dy_mask_##NAME __attribute__((vector_size(sizeof(T) * DY_LANES_##NAME), aligned(sizeof(T)), may_alias)); \
    static const INT dy_ramp_##NAME[2 * DY_LANES_##NAME] __attribute__((unused)) = {__VA_ARGS__};                       \
    static inline __attribute__((always_inline, unused)) void dy_last_##NAME(T *to, const T *from, const int rest)      \
    {                                                                                                                   \
        const dy_mask_##NAME is = *(const dy_mask_##NAME *)(dy_ramp_##NAME + DY_LANES_##NAME - rest);                   \
        const dy_lanes_##NAME first = *from - (dy_lanes_##NAME){0};                                                     \
        *(dy_lanes_##NAME *)to = DY_LOADED_##NAME(from, is, first, rest);                                               \
    }                                                                                                                   \
    static inline __attribute__((always_inline, unused)) void dy_only_##NAME(T *part, const int rest, const T other)    \
    {                                                                                                                   \
        const dy_mask_##NAME is = *(const dy_mask_##NAME *)(dy_ramp_##NAME + DY_LANES_##NAME - rest);                   \
        const dy_lanes_##NAME others = other - (dy_lanes_##NAME){0};                                                    \
        *(dy_mask_##NAME *)part = *(const dy_mask_##NAME *)part & is | (dy_mask_##NAME)others & ~is;                    \
    }

#ifdef __AVX512F__
#define DY_LOADED_f32(from, is, first, rest) __builtin_ia32_loadups512_mask((const void *)(from), first, (uint16_t)((1u << (rest)) - 1))
#define DY_LOADED_f64(from, is, first, rest) __builtin_ia32_loadupd512_mask((const void *)(from), first, (uint8_t)((1u << (rest)) - 1))
DY_DEFINE_LAST(float, int32_t, f32, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1)
DY_DEFINE_LAST(double, long long, f64, -1, -1, -1, -1, -1, -1, -1, -1)
#else
#define DY_LOADED_f32(from, is, first, rest) \
    (dy_lanes_f32)((dy_mask_f32)__builtin_ia32_maskloadps256((const void *)(from), is) | (dy_mask_f32)first & ~is)
#define DY_LOADED_f64(from, is, first, rest) \
    (dy_lanes_f64)((dy_mask_f64)__builtin_ia32_maskloadpd256((const void *)(from), is) | (dy_mask_f64)first & ~is)
DY_DEFINE_LAST(float, int32_t, f32, -1, -1, -1, -1, -1, -1, -1, -1)
DY_DEFINE_LAST(double, long long, f64, -1, -1, -1, -1)
#endif
#endif

#endif
