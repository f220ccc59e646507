/* The order of elements, and the few smallest or largest of many.  What cannot be told from one another is told to the
   caller, because NumPy does not say in which order it leaves it. */
#ifndef DY2STATIC_ORDERS_H
#define DY2STATIC_ORDERS_H

#include <stdint.h>
#include <string.h>

/* dy_argsort_T: order holds the places of x from the smallest to the largest, equal ones as they stand; spare: as long.
   0; 1: some are equal; 2: there is something that is not a number.
   Runs of eight are sorted by insertion, and merged. */
#define DY_ARGSORT(NAME, T)                                                                                              \
static int dy_argsort_##NAME(const T *x, const int64_t n, int64_t *order, int64_t *spare)                                \
{                                                                                                                        \
    for (int64_t i = 0; i < n; i++)                                                                                      \
        if (x[i] != x[i])                                                                                                \
            return 2;                                                                                                    \
    for (int64_t begin = 0; begin < n; begin += 8)                                                                       \
        for (int64_t i = begin; i < begin + 8 && i < n; i++) {                                                           \
            int64_t j = i;                                                                                               \
            for (; j > begin && x[order[j - 1]] > x[i]; j--)                                                             \
                order[j] = order[j - 1];                                                                                 \
            order[j] = i;                                                                                                \
        }                                                                                                                \
    int64_t *from = order, *to = spare;                                                                                  \
    for (int64_t width = 8; width < n; width *= 2) {                                                                     \
        for (int64_t begin = 0; begin < n; begin += 2 * width) {                                                         \
            const int64_t middle = begin + width < n ? begin + width : n, end = begin + 2 * width < n ? begin + 2 * width : n; \
            int64_t i = begin, j = middle;                                                                               \
            for (int64_t k = begin; k < end; k++)                                                                        \
                to[k] = j >= end || (i < middle && !(x[from[j]] < x[from[i]])) ? from[i++] : from[j++];                  \
        }                                                                                                                \
        int64_t *const other = from;                                                                                     \
        from = to;                                                                                                       \
        to = other;                                                                                                      \
    }                                                                                                                    \
    if (from != order)                                                                                                   \
        memcpy(order, from, n * sizeof(int64_t));                                                                        \
    for (int64_t i = 1; i < n; i++)                                                                                      \
        if (x[order[i - 1]] == x[order[i]])                                                                              \
            return 1;                                                                                                    \
    return 0;                                                                                                            \
}

/* dy_smallest_T, dy_largest_T: where the `count` smallest elements are, sorted; 1 if others are equal to one of them, or
   there is something that is not a number.  A block goes by at once while nothing in it is below the bound. */
#define DY_SELECT(NAME, T, BELOW)                                                                                        \
static int dy_##NAME(const T *x, const int64_t n, const int64_t count, int64_t *found)                                   \
{                                                                                                                        \
    int64_t filled = 0;                                                                                                  \
    int has_twin = 0;                                                                                                    \
    T bound = 0, twin = 0;                                                                                               \
    for (int64_t begin = 0; begin < n; begin += 64) {                                                                    \
        const int64_t end = begin + 64 < n ? begin + 64 : n;                                                             \
        int any = filled < count;                                                                                        \
        if (!any) {                                                                                                      \
            _Pragma("omp simd reduction(|:any)")                                                                         \
            for (int64_t i = begin; i < end; i++)                                                                        \
                any |= !(bound BELOW x[i]);                                                                              \
        }                                                                                                                \
        if (!any)                                                                                                        \
            continue;                                                                                                    \
        for (int64_t i = begin; i < end; i++) {                                                                          \
            const T item = x[i];                                                                                         \
            if (item != item)                                                                                            \
                return 1;                                                                                                \
            if (filled == count && !(item BELOW bound)) {                                                                \
                if (item == bound) {                                                                                     \
                    twin = item;                                                                                         \
                    has_twin = 1;                                                                                        \
                }                                                                                                        \
                continue;                                                                                                \
            }                                                                                                            \
            const T gone = bound;                                                                                        \
            const int full = filled == count;                                                                            \
            int64_t j = full ? count - 1 : filled++;                                                                     \
            for (; j > 0 && item BELOW x[found[j - 1]]; j--)                                                             \
                found[j] = found[j - 1];                                                                                 \
            found[j] = i;                                                                                                \
            bound = x[found[filled - 1]];                                                                                \
            if (full && gone == bound) {                                                                                 \
                twin = gone;                                                                                             \
                has_twin = 1;                                                                                            \
            }                                                                                                            \
        }                                                                                                                \
    }                                                                                                                    \
    return filled < count || (has_twin && twin == bound);                                                                \
}

DY_ARGSORT(f32, float)
DY_ARGSORT(f64, double)
DY_ARGSORT(i32, int32_t)
DY_ARGSORT(i64, int64_t)
DY_ARGSORT(u32, uint32_t)
DY_ARGSORT(u64, uint64_t)
DY_SELECT(smallest_f32, float, <)
DY_SELECT(smallest_f64, double, <)
DY_SELECT(largest_f32, float, >)
DY_SELECT(largest_f64, double, >)

#endif
