/* The order of elements, and the few smallest or largest of many.  What cannot be told from one another is told to the
   caller, because NumPy does not say in which order it leaves it. */
#ifndef DY2STATIC_ORDERS_H
#define DY2STATIC_ORDERS_H

#include <stdint.h>
#include <string.h>

/* Without Python behind it a function decides: equal elements stay in their order, and what is not a number comes last. */
#ifdef DY_STANDALONE
#define DY_UNCLEAR(question) ((question) && 0)
#define DY_BEHIND(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))
#else
#define DY_UNCLEAR(question) (question)
#define DY_BEHIND(a, b) ((a) > (b))
#endif

/* dy_argsort_T: order holds the places of x from the smallest to the largest, equal ones as they stand; spare: as long.
   0; 1: some are equal; 2: there is something that is not a number.
   Runs of eight are sorted by insertion, and merged. */
#define DY_ARGSORT(NAME, T)                                                                                              \
static int dy_argsort_##NAME(const T *x, const int64_t n, int64_t *order, int64_t *spare)                                \
{                                                                                                                        \
    for (int64_t i = 0; i < n; i++)                                                                                      \
        if (DY_UNCLEAR(x[i] != x[i]))                                                                                    \
            return 2;                                                                                                    \
    for (int64_t begin = 0; begin < n; begin += 8)                                                                       \
        for (int64_t i = begin; i < begin + 8 && i < n; i++) {                                                           \
            int64_t j = i;                                                                                               \
            for (; j > begin && DY_BEHIND(x[order[j - 1]], x[i]); j--)                                                   \
                order[j] = order[j - 1];                                                                                 \
            order[j] = i;                                                                                                \
        }                                                                                                                \
    int64_t *from = order, *to = spare;                                                                                  \
    for (int64_t width = 8; width < n; width *= 2) {                                                                     \
        for (int64_t begin = 0; begin < n; begin += 2 * width) {                                                         \
            const int64_t middle = begin + width < n ? begin + width : n, end = begin + 2 * width < n ? begin + 2 * width : n; \
            int64_t i = begin, j = middle;                                                                               \
            for (int64_t k = begin; k < end; k++)                                                                        \
                to[k] = j >= end || (i < middle && !DY_BEHIND(x[from[i]], x[from[j]])) ? from[i++] : from[j++];          \
        }                                                                                                                \
        int64_t *const other = from;                                                                                     \
        from = to;                                                                                                       \
        to = other;                                                                                                      \
    }                                                                                                                    \
    if (from != order)                                                                                                   \
        memcpy(order, from, n * sizeof(int64_t));                                                                        \
    for (int64_t i = 1; i < n; i++)                                                                                      \
        if (DY_UNCLEAR(x[order[i - 1]] == x[order[i]]))                                                                  \
            return 1;                                                                                                    \
    return 0;                                                                                                            \
}

/* dy_sort_T: y holds the n elements of x from the smallest to the largest; spare: as long.  1 if the order can be seen: there is
   something that is not a number, or zeros of both signs.
   The bits become unsigned numbers U, and signed ones S, in the same order.  Of few each finds its place by counting, many are sorted
   byte by byte from the lowest one. */
#define DY_SORT(NAME, T, S, U, KEY, VALUE, IS_ZERO, ISNAN)                                                               \
static int dy_sort_##NAME(const T *x, const int64_t n, T *y, T *spare)                                                   \
{                                                                                                                        \
    enum { BYTES = sizeof(T) };                                                                                          \
    const U top = (U)1 << (8 * BYTES - 1);                                                                               \
    U *from = (U *)y, *to = (U *)spare;                                                                                  \
    int unclear = 0, zeros = 0, negative_zeros = 0;                                                                      \
    for (int64_t i = 0; i < n; i++) {                                                                                    \
        U bits;                                                                                                          \
        memcpy(&bits, x + i, BYTES);                                                                                     \
        unclear |= DY_UNCLEAR(ISNAN(x[i]));                                                                              \
        zeros |= IS_ZERO(bits == 0);                                                                                     \
        negative_zeros |= IS_ZERO(bits == top);                                                                          \
        if (ISNAN(x[i]))                                                                                                 \
            bits = top - 1;                                                                                              \
        from[i] = KEY(bits);                                                                                             \
    }                                                                                                                    \
    if (unclear || DY_UNCLEAR(zeros && negative_zeros))                                                                  \
        return 1;                                                                                                        \
    if (n <= 256) {                                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                                \
            const S item = (S)(from[i] ^ top);                                                                           \
            S place = 0;                                                                                                 \
            _Pragma("omp simd reduction(+:place)")                                                                       \
            for (int64_t j = 0; j < i; j++)                                                                              \
                place += (S)(from[j] ^ top) <= item;                                                                     \
            _Pragma("omp simd reduction(+:place)")                                                                       \
            for (int64_t j = i + 1; j < n; j++)                                                                          \
                place += (S)(from[j] ^ top) < item;                                                                      \
            to[place] = from[i];                                                                                         \
        }                                                                                                                \
        from = to;                                                                                                       \
    } else {                                                                                                             \
        int64_t counts[BYTES][256];                                                                                      \
        memset(counts, 0, sizeof counts);                                                                                \
        for (int64_t i = 0; i < n; i++)                                                                                  \
            for (int b = 0; b < BYTES; b++)                                                                              \
                counts[b][(from[i] >> (8 * b)) & 255]++;                                                                 \
        for (int b = 0; b < BYTES; b++) {                                                                                \
            if (counts[b][(from[0] >> (8 * b)) & 255] == n)                                                              \
                continue;                                                                                                \
            int64_t next[256], before = 0;                                                                               \
            for (int d = 0; d < 256; d++) {                                                                              \
                next[d] = before;                                                                                        \
                before += counts[b][d];                                                                                  \
            }                                                                                                            \
            for (int64_t i = 0; i < n; i++)                                                                              \
                to[next[(from[i] >> (8 * b)) & 255]++] = from[i];                                                        \
            U *const other = from;                                                                                       \
            from = to;                                                                                                   \
            to = other;                                                                                                  \
        }                                                                                                                \
    }                                                                                                                    \
    for (int64_t i = 0; i < n; i++) {                                                                                    \
        const U bits = VALUE(from[i]);                                                                                   \
        memcpy(y + i, &bits, BYTES);                                                                                     \
    }                                                                                                                    \
    return 0;                                                                                                            \
}

#define DY_KEY_OF_FLOAT(bits) ((bits) & top ? ~(bits) : (bits) | top)
#define DY_FLOAT_OF_KEY(key) ((key) & top ? (key) ^ top : ~(key))
#define DY_TURNED(bits) ((bits) ^ top)
#define DY_AS_IT_IS(bits) (bits)
#define DY_IS_NAN(x) ((x) != (x))
#define DY_NEVER(x) 0

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
    return filled < count || DY_UNCLEAR(has_twin && twin == bound);                                                      \
}

DY_SORT(f32, float, int32_t, uint32_t, DY_KEY_OF_FLOAT, DY_FLOAT_OF_KEY, DY_AS_IT_IS, DY_IS_NAN)
DY_SORT(f64, double, int64_t, uint64_t, DY_KEY_OF_FLOAT, DY_FLOAT_OF_KEY, DY_AS_IT_IS, DY_IS_NAN)
DY_SORT(i32, int32_t, int32_t, uint32_t, DY_TURNED, DY_TURNED, DY_NEVER, DY_NEVER)
DY_SORT(i64, int64_t, int64_t, uint64_t, DY_TURNED, DY_TURNED, DY_NEVER, DY_NEVER)
DY_SORT(u32, uint32_t, int32_t, uint32_t, DY_AS_IT_IS, DY_AS_IT_IS, DY_NEVER, DY_NEVER)
DY_SORT(u64, uint64_t, int64_t, uint64_t, DY_AS_IT_IS, DY_AS_IT_IS, DY_NEVER, DY_NEVER)
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
