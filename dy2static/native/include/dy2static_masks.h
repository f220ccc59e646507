/* Rows of products of which a mask drops columns, as attention has them: which columns need not be computed. */
#ifndef DY2STATIC_MASKS_H
#define DY2STATIC_MASKS_H

#include <stdint.h>
#include <string.h>

#include "dy2static_lanes.h"

/* Columns of a multiple of this: loops that read bytes of a mask do so many elements at a time, and what is left one by one. */
#ifdef __AVX512BW__
enum { DY_KEPT_TOGETHER = 64 };
#else
enum { DY_KEPT_TOGETHER = 32 };
#endif

/* Rows, which are apart in memory, that are fetched early. */
enum { DY_ROWS_EARLY = 8 };

/* A number whose highest bit is set where the magnitude of x has more bits than `most`. */
#define DY_BEYOND(T, BITS, x, most) ((most) - (((union { T number; BITS bits; }){x}).bits & (((BITS)1 << (8 * sizeof(BITS) - 1)) - 1)))

/* Whether none of these numbers is NaN, infinite or so large that a sum of products could be.  Bits are compared: that raises no flags. */
#define DY_DEFINE_MODERATE(T, BITS, LIMIT, NAME)                                                                        \
    static inline int dy_moderate_##NAME(const T *x, const int64_t rows, const int64_t columns, const int64_t distance) \
    {                                                                                                                   \
        const T limit = LIMIT;                                                                                          \
        BITS most, beyond[DY_LANES_##NAME] __attribute__((aligned(64))) = {0}, rest = 0;                                \
        memcpy(&most, &limit, sizeof most);                                                                             \
        for (int64_t i = 0; i < rows; i++, x += distance) {                                                             \
            int64_t j = 0;                                                                                              \
            for (; j + DY_LANES_##NAME <= columns; j += DY_LANES_##NAME) {                                              \
                __builtin_prefetch(x + (i + DY_ROWS_EARLY < rows ? DY_ROWS_EARLY * distance : 0) + j);                  \
                _Pragma("omp simd")                                                                                     \
                for (int lane = 0; lane < DY_LANES_##NAME; lane++)                                                      \
                    beyond[lane] |= DY_BEYOND(T, BITS, x[j + lane], most);                                              \
            }                                                                                                           \
            for (; j < columns; j++)                                                                                    \
                rest |= DY_BEYOND(T, BITS, x[j], most);                                                                 \
        }                                                                                                               \
        for (int lane = 0; lane < DY_LANES_##NAME; lane++)                                                              \
            rest |= beyond[lane];                                                                                       \
        return !(rest >> (8 * sizeof(BITS) - 1));                                                                       \
    }
DY_DEFINE_MODERATE(float, uint32_t, 1e15f, f32)
DY_DEFINE_MODERATE(double, uint64_t, 1e140, f64)

/* Whether the numbers of a column are all zero. */
#define DY_DEFINE_ZEROS(T, NAME)                                                             \
    static inline int dy_zeros_##NAME(const T *x, const int64_t rows, const int64_t distance) \
    {                                                                                        \
        for (int64_t i = 0; i < rows; i++)                                                   \
            if (x[i * distance] != 0)                                                        \
                return 0;                                                                    \
        return 1;                                                                            \
    }
DY_DEFINE_ZEROS(float, f32)
DY_DEFINE_ZEROS(double, f64)

/* Whether the mask drops eight elements from here on. */
static inline int dy_drops_eight(const uint8_t *mask, const int keeps)
{
    uint64_t eight;
    memcpy(&eight, mask, sizeof eight);
    return eight == (keeps ? 0 : UINT64_C(0x0101010101010101));
}

/* Columns of a block of rows: all that a row keeps are from `left` to `right`.  dropped: one of those that no row keeps; -1 if there are
   none. */
typedef struct {
    int64_t left, right, dropped;
} dy_columns;

/* The columns that have to be computed of a block of rows, `distance` apart in the mask: with one that is dropped, in whole vectors.
   keeps: what the mask has where it keeps an element. */
static inline dy_columns dy_kept_columns(const uint8_t *mask, const int64_t distance, const int64_t rows, const int64_t columns,
                                         const int keeps)
{
    const dy_columns all = {0, columns, -1};
    int64_t first = columns, end = 0;
    for (int64_t i = 0; i < (distance ? rows : 1); i++) {
        const uint8_t *const row = mask + i * distance;
        int64_t low = 0, high = columns;
        while (high >= 8 && dy_drops_eight(row + high - 8, keeps))
            high -= 8;
        while (high > 0 && (row[high - 1] != 0) != keeps)
            high--;
        if (!high)                              /* softmax makes all columns of such a row alike */
            return all;
        while (low + 8 <= high && dy_drops_eight(row + low, keeps))
            low += 8;
        while ((row[low] != 0) != keeps)
            low++;
        first = low < first ? low : first;
        end = high > end ? high : end;
    }
    const int64_t dropped = end < columns ? end : first - 1;
    const int64_t low = dropped >= 0 && dropped < first ? dropped : first, high = dropped < end ? end : dropped + 1;
    const int64_t left = low / DY_KEPT_TOGETHER * DY_KEPT_TOGETHER;
    const int64_t whole = (high + DY_KEPT_TOGETHER - 1) / DY_KEPT_TOGETHER * DY_KEPT_TOGETHER, right = whole < columns ? whole : columns;
    return dropped >= 0 && right - left < columns ? (dy_columns){left, right, dropped} : all;
}

#endif
