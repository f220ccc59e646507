/* Maxima and means of windows, and what spreads numbers over windows, for generated code, of arrays (batch, channels, *sizes), with windows that are constants of the text, so that the
   compiler knows strides and sizes.  `batch` of the windows counts all channels.  Each tap is applied to a row of windows at
   once, on a copy of the image's row with its padding; all loops have lengths that fill vectors.  `omp simd` keeps the
   compiler from unrolling the short ones before it makes vectors. */
#ifndef DY2STATIC_POOLS_H
#define DY2STATIC_POOLS_H

#include <stdint.h>
#include <string.h>
#include "dy2static_windows.h"

#define DY_POOL static inline __attribute__((always_inline, unused))

/* Comparisons with NaN set a flag that NumPy's maxima do not, in vectors even those that C calls quiet (gcc 12). */
#if defined(__x86_64__) && defined(__GNUC__)
typedef unsigned dy_float_state;
DY_POOL dy_float_state dy_save_float_state(void) { return __builtin_ia32_stmxcsr(); }
DY_POOL void dy_restore_float_state(const dy_float_state state) { __builtin_ia32_ldmxcsr(state); }
#else
#include <fenv.h>
typedef fenv_t dy_float_state;
DY_POOL dy_float_state dy_save_float_state(void)
{
    fenv_t state;
    fegetenv(&state);
    return state;
}
DY_POOL void dy_restore_float_state(const dy_float_state state) { fesetenv(&state); }
#endif

enum { DY_LINE = 512, DY_LANES = 16 };

/* So many windows of a row are computed at once: their part of the image's row fits into a line. */
DY_POOL int64_t dy_windows_at_once(const dy_windows *w)
{
    const int64_t most = (DY_LINE - w->kernel[2]) / w->stride[2] / DY_LANES * DY_LANES;
    const int64_t all = (w->spots[2] + DY_LANES - 1) / DY_LANES * DY_LANES;
    return all < most ? all : most;
}

/* Bodies that see each part of a row of windows: those from `start`, `count` of them, which begin at element `out`. */
#define DY_PARTS_OF_ROWS(W, AT_ONCE)                                                                     \
    for (int64_t m = 0, out = 0; m < (W)->batch; m++)                                                    \
        for (int64_t o0 = 0; o0 < (W)->spots[0]; o0++)                                                   \
            for (int64_t o1 = 0; o1 < (W)->spots[1]; o1++)                                               \
                for (int64_t start = 0, count; start < (W)->spots[2]; start += AT_ONCE, out += count)    \
                    if ((count = (W)->spots[2] - start < AT_ONCE ? (W)->spots[2] - start : AT_ONCE))

#define DY_DEFINE_POOLS(T, NAME, WIDE)                                                                                 \
    /* A row of the image behind its padding, as windows from `start` on see it; 0 where that row is padding itself. */ \
    DY_POOL int dy_take_line_##NAME(const dy_windows *w, const int64_t m, const int64_t i0, const int64_t i1,          \
                                    const int64_t start, const int64_t length, const T fill, const T *x, T *line)      \
    {                                                                                                                  \
        if (i0 < 0 || i0 >= w->image[0] || i1 < 0 || i1 >= w->image[1])                                                \
            return 0;                                                                                                  \
        const T *const row = x + ((m * w->image[0] + i0) * w->image[1] + i1) * w->image[2];                            \
        const int64_t first = start * w->stride[2] - w->pad[2], left = w->image[2] - first;                            \
        const int64_t from = first < 0 ? -first : 0, until = left < length ? left : length;                            \
        for (int64_t t = 0; t < from; t++)                                                                             \
            line[t] = fill;                                                                                            \
        if (from < until)                                                                                              \
            memcpy(line + from, row + first + from, (until - from) * sizeof(T));                                       \
        for (int64_t t = until < from ? from : until; t < length; t++)                                                 \
            line[t] = fill;                                                                                            \
        return 1;                                                                                                      \
    }                                                                                                                  \
                                                                                                                       \
    /* Every second element; `count`: of each half, which fill vectors. */                                             \
    DY_POOL void dy_halve_##NAME(const T *line, const int64_t count, T *even, T *odd)                                  \
    {                                                                                                                  \
        _Pragma("omp simd")                                                                                            \
        for (int64_t o = 0; o < count; o++) {                                                                          \
            even[o] = line[2 * o];                                                                                     \
            odd[o] = line[2 * o + 1];                                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    /* The first maximum of each window, or its first NaN, and its place; the padding is minus infinity. */            \
    DY_POOL void dy_find_maxima_##NAME(const dy_windows *w, const int64_t m, const int64_t o0, const int64_t o1,       \
                                       const int64_t start, const T *x, T *best, WIDE *found)                          \
    {                                                                                                                  \
        const int64_t at_once = dy_windows_at_once(w), length = (at_once - 1) * w->stride[2] + w->kernel[2];           \
        T line[DY_LINE], halves[2][DY_LINE / 2 + DY_LANES];                                                            \
        const int by_two = w->stride[2] == 2 && w->kernel[2] <= 2 * DY_LANES;                                          \
        _Pragma("omp simd")                                                                                            \
        for (int64_t o = 0; o < at_once; o++) {                                                                        \
            best[o] = (T)-__builtin_inf();                                                                             \
            found[o] = 0;                                                                                              \
        }                                                                                                              \
        for (int64_t k0 = 0; k0 < w->kernel[0]; k0++)                                                                  \
            for (int64_t k1 = 0; k1 < w->kernel[1]; k1++) {                                                            \
                const int64_t i0 = o0 * w->stride[0] - w->pad[0] + k0, i1 = o1 * w->stride[1] - w->pad[1] + k1;        \
                if (!dy_take_line_##NAME(w, m, i0, i1, start, length, (T)-__builtin_inf(), x, line))                   \
                    continue;                                                                                          \
                if (by_two)             /* so that what a tap meets lies side by side */                               \
                    dy_halve_##NAME(line, at_once + DY_LANES, halves[0], halves[1]);                                   \
                for (int64_t k2 = 0; k2 < w->kernel[2]; k2++) {                                                        \
                    const WIDE tap = (WIDE)((k0 * w->kernel[1] + k1) * w->kernel[2] + k2);                             \
                    _Pragma("omp simd")                                                                                \
                    for (int64_t o = 0; o < at_once; o++) {                                                            \
                        const T item = by_two ? halves[k2 % 2][o + k2 / 2] : line[o * w->stride[2] + k2];              \
                        const T last = best[o];                                                                        \
                        const int better = !__builtin_islessequal(item, last) & (last == last);                        \
                        best[o] = better ? item : last;                                                                \
                        found[o] = better ? tap : found[o];                                                            \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
    }                                                                                                                  \
                                                                                                                       \
    /* The mean of each window; the padding is zeros.  Rows are added up first. */                                     \
    DY_POOL void dy_average_pool_##NAME(const dy_windows *w, const T *x, T *y)                                         \
    {                                                                                                                  \
        const int64_t at_once = dy_windows_at_once(w);                                                                 \
        const int64_t length = ((at_once - 1) * w->stride[2] + w->kernel[2] + DY_LANES - 1) / DY_LANES * DY_LANES;     \
        const int by_two = w->stride[2] == 2 && w->kernel[2] <= 2 * DY_LANES;                                          \
        const T taps = (T)(w->kernel[0] * w->kernel[1] * w->kernel[2]);                                                \
        DY_PARTS_OF_ROWS(w, at_once) {                                                                                 \
            T line[DY_LINE], sums[DY_LINE], halves[2][DY_LINE / 2 + DY_LANES], means[DY_LINE];                         \
            memset(sums, 0, length * sizeof(T));                                                                       \
            for (int64_t k0 = 0; k0 < w->kernel[0]; k0++)                                                              \
                for (int64_t k1 = 0; k1 < w->kernel[1]; k1++) {                                                        \
                    const int64_t i0 = o0 * w->stride[0] - w->pad[0] + k0, i1 = o1 * w->stride[1] - w->pad[1] + k1;    \
                    if (!dy_take_line_##NAME(w, m, i0, i1, start, length, 0, x, line))                                 \
                        continue;                                                                                      \
                    _Pragma("omp simd")                                                                                \
                    for (int64_t t = 0; t < length; t++)                                                               \
                        sums[t] += line[t];                                                                            \
                }                                                                                                      \
            if (by_two)                                                                                                \
                dy_halve_##NAME(sums, at_once + DY_LANES, halves[0], halves[1]);                                       \
            _Pragma("omp simd")                                                                                        \
            for (int64_t o = 0; o < at_once; o++) {                                                                    \
                T total = 0;                                                                                           \
                for (int64_t k2 = 0; k2 < w->kernel[2]; k2++)                                                          \
                    total += by_two ? halves[k2 % 2][o + k2 / 2] : sums[o * w->stride[2] + k2];                        \
                means[o] = total / taps;                                                                               \
            }                                                                                                          \
            memcpy(y + out, means, count * sizeof(T));                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    /* Images, from one number for each window, which is added to all of its elements.  A row is made of the sum of the rows of \
       windows that see it, `parts` of it at a time; `wide` has that sum with zeros between windows. */                \
    DY_POOL void dy_spread_windows_##NAME(const dy_windows *w, const T *g, T *x)                                       \
    {                                                                                                                  \
        enum { PARTS = DY_LINE / 2 };                                                                                  \
        for (int64_t m = 0; m < w->batch; m++)                                                                         \
            for (int64_t i0 = 0; i0 < w->image[0]; i0++)                                                               \
                for (int64_t i1 = 0; i1 < w->image[1]; i1++)                                                           \
                    for (int64_t i2 = 0; i2 < w->image[2]; i2 += PARTS) {                                              \
                        const int64_t count = w->image[2] - i2 < PARTS ? w->image[2] - i2 : PARTS, last = w->kernel[2] - 1; \
                        const int64_t before = i2 + w->pad[2] - last, end = i2 + w->pad[2] + count;                    \
                        const int64_t first = before <= 0 ? 0 : (before + w->stride[2] - 1) / w->stride[2];            \
                        const int64_t behind = (end + w->stride[2] - 1) / w->stride[2];                                \
                        const int64_t windows = (behind < w->spots[2] ? behind : w->spots[2]) - first;                 \
                        T sums[DY_LINE], wide[DY_LINE];                                                                \
                        T *const row = x + ((m * w->image[0] + i0) * w->image[1] + i1) * w->image[2] + i2;             \
                        memset(sums, 0, windows * sizeof(T));                                                          \
                        memset(wide, 0, (count + last) * sizeof(T));                                                   \
                        for (int64_t k0 = 0; k0 < w->kernel[0]; k0++)                                                  \
                            for (int64_t k1 = 0; k1 < w->kernel[1]; k1++) {                                            \
                                const int64_t t0 = i0 + w->pad[0] - k0, t1 = i1 + w->pad[1] - k1;                      \
                                const int64_t o0 = t0 / w->stride[0], o1 = t1 / w->stride[1];                          \
                                if (t0 < 0 || t1 < 0 || t0 % w->stride[0] || t1 % w->stride[1] || o0 >= w->spots[0] || o1 >= w->spots[1]) \
                                    continue;                                                                          \
                                const T *const from = g + ((m * w->spots[0] + o0) * w->spots[1] + o1) * w->spots[2] + first; \
                                _Pragma("omp simd")                                                                    \
                                for (int64_t o = 0; o < windows; o++)                                                  \
                                    sums[o] += from[o];                                                                \
                            }                                                                                          \
                        for (int64_t o = 0; o < windows; o++)                                                          \
                            wide[(first + o) * w->stride[2] - before] = sums[o];                                       \
                        _Pragma("omp simd")                                                                            \
                        for (int64_t i = 0; i < count; i++) {                                                          \
                            T total = 0;                                                                               \
                            for (int64_t k = 0; k <= last; k++)                                                        \
                                total += wide[i + k];                                                                  \
                            row[i] = total;                                                                            \
                        }                                                                                              \
                    }                                                                                                  \
    }

#define DY_DEFINE_PLACES(T, NAME, WIDE, I, PLACES)                                                                     \
    DY_POOL void dy_max_pool_##NAME##_##PLACES(const dy_windows *w, const T *x, T *y, I *places)                       \
    {                                                                                                                  \
        const int64_t at_once = dy_windows_at_once(w);                                                                 \
        const dy_float_state state = dy_save_float_state();                                                            \
        DY_PARTS_OF_ROWS(w, at_once) {                                                                                 \
            T best[DY_LINE];                                                                                           \
            WIDE found[DY_LINE];                                                                                       \
            I narrow[DY_LINE];                                                                                         \
            dy_find_maxima_##NAME(w, m, o0, o1, start, x, best, found);                                                \
            _Pragma("omp simd")                                                                                        \
            for (int64_t o = 0; o < at_once; o++)                                                                      \
                narrow[o] = (I)found[o];                                                                               \
            memcpy(y + out, best, count * sizeof(T));                                                                  \
            if (places)         /* a constant of the text: null where nobody wants them */                             \
                memcpy(places + out, narrow, count * sizeof(I));                                                       \
        }                                                                                                              \
        dy_restore_float_state(state);                                                                                 \
    }

DY_DEFINE_POOLS(float, f32, int32_t)
DY_DEFINE_POOLS(double, f64, int64_t)
DY_DEFINE_PLACES(float, f32, int32_t, uint8_t, u8)
DY_DEFINE_PLACES(float, f32, int32_t, int32_t, i32)
DY_DEFINE_PLACES(double, f64, int64_t, uint8_t, u8)
DY_DEFINE_PLACES(double, f64, int64_t, int32_t, i32)

#endif
