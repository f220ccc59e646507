/* The first place of the largest or the smallest number of a row; the first NaN is both.

   Vectors of 256 bits hold the best numbers so far and where they were found.  Comparisons raise nothing for NaN.  What is left of a row is a
   whole vector that reads some numbers again, which are no better than themselves. */
#ifndef DY2STATIC_ARGUMENTS_H
#define DY2STATIC_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DY_ARGUMENT static inline __attribute__((unused))

#define DY_NO_NAN(x) 0
#define DY_IS_NAN(x) ((x) != (x))
#define DY_ABOVE(a, b) ((a) > (b))
#define DY_UNDER(a, b) ((a) < (b))

/* Element by element. */
#define DY_DEFINE_ARGUMENT_ONE(NAME, T, IS_NAN, BETTER) \
    DY_ARGUMENT int64_t NAME(const T *x, int64_t n)     \
    {                                                   \
        int64_t at = 0;                                 \
        T most = x[0];                                  \
        for (int64_t k = 0; k < n; ++k) {               \
            if (IS_NAN(x[k])) return k;                 \
            const bool better = BETTER(x[k], most);     \
            most = better ? x[k] : most;                \
            at = better ? k : at;                       \
        }                                               \
        return at;                                      \
    }

#ifdef __AVX2__

typedef float dy_numbers_f32 __attribute__((vector_size(32), aligned(4), may_alias));
typedef double dy_numbers_f64 __attribute__((vector_size(32), aligned(8), may_alias));
typedef int32_t dy_numbers_i32 __attribute__((vector_size(32), aligned(4), may_alias));
typedef long long dy_numbers_i64 __attribute__((vector_size(32), aligned(8), may_alias));

#define DY_ABOVE_f32(a, b) (dy_numbers_i32)__builtin_ia32_cmpps256(a, b, 30)
#define DY_UNDER_f32(a, b) (dy_numbers_i32)__builtin_ia32_cmpps256(a, b, 17)
#define DY_ABOVE_f64(a, b) (dy_numbers_i64)__builtin_ia32_cmppd256(a, b, 30)
#define DY_UNDER_f64(a, b) (dy_numbers_i64)__builtin_ia32_cmppd256(a, b, 17)
#define DY_ABOVE_i32(a, b) ((a) > (b))
#define DY_UNDER_i32(a, b) ((a) < (b))
#define DY_ABOVE_i64(a, b) ((a) > (b))
#define DY_UNDER_i64(a, b) ((a) < (b))
#define DY_NO_NANS(x) ((x) ^ (x))
#define DY_ARE_NAN(x) ((x) != (x))

typedef char dy_bytes __attribute__((vector_size(32), may_alias));
#define DY_CHOSEN(V, no, yes, is) (V) __builtin_ia32_pblendvb256((dy_bytes)(no), (dy_bytes)(yes), (dy_bytes)(is))

#define DY_ARGUMENT_STEP(V, P, x, best, found, ARE_NAN, BETTERS) \
    {                                                            \
        const V y = *(const V *)(x);                             \
        const P better = BETTERS(y, best);                       \
        nan |= ARE_NAN(y);                                       \
        best = DY_CHOSEN(V, best, y, better);                    \
        found = DY_CHOSEN(P, found, at, better);                 \
    }

#define DY_ARGUMENT_JOIN(V, P, other, place, BETTERS)                                     \
    {                                                                                     \
        const P better = BETTERS(other, best) | ((P)(other == best) & ((place) < found)); \
        best = DY_CHOSEN(V, best, other, better);                                         \
        found = DY_CHOSEN(P, found, place, better);                                       \
    }

/* One vector at a time, or four. */
#define DY_DEFINE_ARGUMENT_OF_FEW(NAME, ONE, T, I, V, P, LANES, BETTER, ARE_NAN, BETTERS)      \
    DY_ARGUMENT int64_t NAME(const T *x, int64_t n)                                            \
    {                                                                                          \
        V best = *(const V *)x;                                                                \
        P found = {0}, nan = ARE_NAN(best);                                                    \
        for (int64_t k = LANES; k < n; k += LANES) {                                           \
            const int64_t here = k + LANES <= n ? k : n - LANES;                               \
            const P at = (I)here - (P){0};                                                     \
            DY_ARGUMENT_STEP(V, P, x + here, best, found, ARE_NAN, BETTERS)                    \
        }                                                                                      \
        I is_nan = 0;                                                                          \
        for (int j = 0; j < LANES; ++j) is_nan |= nan[j];                                      \
        if (is_nan) return ONE(x, n);                                                          \
        T most = best[0];                                                                      \
        int64_t place = found[0];                                                              \
        for (int j = 1; j < LANES; ++j) {                                                      \
            const int64_t where = (int64_t)found[j] + j;                                       \
            const bool better = BETTER(best[j], most) | ((best[j] == most) & (where < place)); \
            most = better ? best[j] : most;                                                    \
            place = better ? where : place;                                                    \
        }                                                                                      \
        return place;                                                                          \
    }

#define DY_DEFINE_ARGUMENT_OF_MANY(NAME, ONE, T, I, V, P, LANES, BETTER, ARE_NAN, BETTERS)                                                 \
    DY_ARGUMENT int64_t NAME(const T *x, int64_t n)                                                                                        \
    {                                                                                                                                      \
        V best = *(const V *)x, best1 = *(const V *)(x + LANES), best2 = *(const V *)(x + 2 * LANES), best3 = *(const V *)(x + 3 * LANES); \
        P found = {0}, found1 = {0}, found2 = {0}, found3 = {0};                                                                           \
        P nan = ARE_NAN(best) | ARE_NAN(best1) | ARE_NAN(best2) | ARE_NAN(best3);                                                          \
        for (int64_t k = 4 * LANES; k < n; k += 4 * LANES) {                                                                               \
            const int64_t here = k + 4 * LANES <= n ? k : n - 4 * LANES;                                                                   \
            const P at = (I)here - (P){0};                                                                                                 \
            DY_ARGUMENT_STEP(V, P, x + here, best, found, ARE_NAN, BETTERS)                                                                \
            DY_ARGUMENT_STEP(V, P, x + here + LANES, best1, found1, ARE_NAN, BETTERS)                                                      \
            DY_ARGUMENT_STEP(V, P, x + here + 2 * LANES, best2, found2, ARE_NAN, BETTERS)                                                  \
            DY_ARGUMENT_STEP(V, P, x + here + 3 * LANES, best3, found3, ARE_NAN, BETTERS)                                                  \
        }                                                                                                                                  \
        DY_ARGUMENT_JOIN(V, P, best1, found1 + LANES, BETTERS)                                                                             \
        DY_ARGUMENT_JOIN(V, P, best2, found2 + 2 * LANES, BETTERS)                                                                         \
        DY_ARGUMENT_JOIN(V, P, best3, found3 + 3 * LANES, BETTERS)                                                                         \
        I is_nan = 0;                                                                                                                      \
        for (int j = 0; j < LANES; ++j) is_nan |= nan[j];                                                                                  \
        if (is_nan) return ONE(x, n);                                                                                                      \
        T most = best[0];                                                                                                                  \
        int64_t place = found[0];                                                                                                          \
        for (int j = 1; j < LANES; ++j) {                                                                                                  \
            const int64_t where = (int64_t)found[j] + j;                                                                                   \
            const bool better = BETTER(best[j], most) | ((best[j] == most) & (where < place));                                             \
            most = better ? best[j] : most;                                                                                                \
            place = better ? where : place;                                                                                                \
        }                                                                                                                                  \
        return place;                                                                                                                      \
    }

#define DY_DEFINE_ARGUMENT(NAME, T, I, s, p, LANES, LIMIT, IS_NAN, BETTER, ARE_NAN)                                                 \
    DY_DEFINE_ARGUMENT_ONE(NAME##_one, T, IS_NAN, BETTER)                                                                           \
    DY_DEFINE_ARGUMENT_OF_FEW(NAME##_few, NAME##_one, T, I, dy_numbers_##s, dy_numbers_##p, LANES, BETTER, ARE_NAN, BETTER##_##s)   \
    DY_DEFINE_ARGUMENT_OF_MANY(NAME##_many, NAME##_one, T, I, dy_numbers_##s, dy_numbers_##p, LANES, BETTER, ARE_NAN, BETTER##_##s) \
    DY_ARGUMENT int64_t NAME(const T *x, int64_t n)                                                                                 \
    {                                                                                                                               \
        if (n < LANES || n > LIMIT) return NAME##_one(x, n);                                                                        \
        return n < 4 * LANES ? NAME##_few(x, n) : NAME##_many(x, n);                                                                \
    }

#define DY_DEFINE_ARGUMENTS(T, I, s, p, LANES, LIMIT, IS_NAN, ARE_NAN)                                  \
    DY_DEFINE_ARGUMENT(dy_argmax_##s, T, I, s, p, LANES, LIMIT, IS_NAN, DY_ABOVE, ARE_NAN)                     \
    DY_DEFINE_ARGUMENT(dy_argmin_##s, T, I, s, p, LANES, LIMIT, IS_NAN, DY_UNDER, ARE_NAN)

DY_DEFINE_ARGUMENTS(float, int32_t, f32, i32, 8, INT32_MAX, DY_IS_NAN, DY_ARE_NAN)
DY_DEFINE_ARGUMENTS(double, int64_t, f64, i64, 4, INT64_MAX, DY_IS_NAN, DY_ARE_NAN)
DY_DEFINE_ARGUMENTS(int32_t, int32_t, i32, i32, 8, INT32_MAX, DY_NO_NAN, DY_NO_NANS)
DY_DEFINE_ARGUMENTS(int64_t, int64_t, i64, i64, 4, INT64_MAX, DY_NO_NAN, DY_NO_NANS)

#endif

/* Of bools: the first one that is true, or that is false; eight at a time. */
#define DY_DEFINE_ARGUMENT_OF_BOOLS(NAME, HAS, IS)                                              \
    DY_ARGUMENT int64_t NAME(const bool *row, int64_t n)                                        \
    {                                                                                           \
        const uint8_t *x = (const uint8_t *)row;                                                \
        int64_t k = 0;                                                                          \
        for (; k + 8 <= n; k += 8) {                                                            \
            uint64_t word;                                                                      \
            memcpy(&word, x + k, 8);                                                            \
            if (HAS(word)) break;                                                               \
        }                                                                                       \
        for (; k < n; ++k)                                                                      \
            if (IS(x[k])) return k;                                                             \
        return 0;                                                                               \
    }

#define DY_HAS_ANY(word) (word)
#define DY_HAS_ZERO(word) (((word) - 0x0101010101010101u) & ~(word) & 0x8080808080808080u)
DY_DEFINE_ARGUMENT_OF_BOOLS(dy_argmax_b8, DY_HAS_ANY, )
DY_DEFINE_ARGUMENT_OF_BOOLS(dy_argmin_b8, DY_HAS_ZERO, !)

#endif
