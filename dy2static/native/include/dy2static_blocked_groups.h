/* Convolutions with small groups of channels, for arrays in blocks of channels: a vector holds the channels of one group, or of several.

   Nothing is multiplied with zeros, as it is where several groups are computed as one.  The scheme is that of
   dy2static_blocked_depthwise.h.  With filters of three by three, each number of x is read once for all columns of filters that it
   meets.

   Before the include: DY_T, which is float, DY_PIECE, and DY_GROUPS_4, DY_GROUPS_8 or both: for groups of so many channels. */
#ifndef DY2STATIC_BLOCKED_GROUPS_H
#define DY2STATIC_BLOCKED_GROUPS_H

#include "dy2static_blocked_depthwise.h"

enum { GROUP_PLACES = DY_BYTES == 64 ? 16 : 11 };      /* of a tile, at most: registers hold them, and 3 vectors of filters */

/* What of x meets a vector of filters: one channel of the group at x, or of each of several groups. */
typedef struct {
    dy_vector each;
    DY_T one;
} group_left;

#if DY_BYTES >= 32
typedef int group_lanes __attribute__((vector_size(DY_BYTES)));
#endif

DY_INLINE group_left left_of(const int size, const DY_T *x, const int64_t c)
{
    group_left left = {{0}, 0};
#if DY_BYTES == 64
    const group_lanes lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    left.each = permuted(load(x), lane / size * size + (int)c);
#elif DY_BYTES == 32
    if (size < WIDTH) {
        left.each = __builtin_ia32_vpermilvarps256(load(x), (group_lanes){0} + (int)c);
        return left;
    }
#endif
    left.one = x[c];
    return left;
}

DY_INLINE dy_vector times(const int size, const group_left left, const dy_vector right)
{
    return size < WIDTH ? left.each * right : left.one * right;
}

/* One channel of each group, one row of filters of three columns: they meet places that are `step` blocks apart. */
DY_INLINE void add_three(const int places, const int size, const int step, const DY_T *from, const int64_t c, const DY_T *filters,
                         const each_edge edge, dy_vector sum[GROUP_PLACES])
{
    dy_vector right[3];
#pragma GCC unroll 3
    for (int j = 0; j < 3; j++) {
        right[j] = load(filters + j * BLOCK);
        IN_REGISTER(right[j]);
    }
    const int last = (places - 1) * step + 2;
#pragma GCC unroll 33
    for (int q = 0; q <= last; q++) {
        if ((q == 0 && edge.first) || (q == last && edge.last))
            continue;
        const group_left left = left_of(size, from + q * BLOCK, c);
#pragma GCC unroll 3
        for (int j = 0; j < 3; j++)
            if (q >= j && (q - j) % step == 0 && (q - j) / step < places)
                sum[(q - j) / step] += times(size, left, right[j]);
    }
}

/* The same for filters of any columns. */
DY_INLINE void add_columns(const int places, const int size, const dy_blocks *w, const DY_T *from, const int64_t c,
                           const DY_T *filters, dy_vector sum[GROUP_PLACES])
{
    const int64_t step = w->stride[1] * BLOCK, across = w->dilate[1] * BLOCK;
    for (int64_t j = 0; j < w->kernel[1]; j++, from += across, filters += BLOCK) {
        dy_vector right = load(filters);
        IN_REGISTER(right);
#pragma GCC unroll 16
        for (int p = 0; p < places; p++)
            sum[p] += times(size, left_of(size, from + p * step, c), right);
    }
}

/* Places from `at` of each row on.  size: channels of a group; step: how far places are apart if filters are of three by three, else 0. */
DY_INLINE void group_tile(const int places, const int size, const int step, const dy_blocks *w, const each_window *window,
                          const int64_t at, const each_edge edge, DY_T *y, const after_each *a)
{
    dy_vector sum[GROUP_PLACES];
#pragma GCC unroll 16
    for (int p = 0; p < places; p++)
        sum[p] = (dy_vector){0};
    const int64_t right = step ? 3 : w->kernel[1], channels = w->in / w->groups;    /* not a constant: code for one is enough */
    for (int64_t i = 0; i < window->down; i++) {
        const DY_T *from = window->rows[i] + at, *filters = window->filters[i];
        for (int64_t c = 0; c < channels; c++, filters += right * BLOCK) {
            __asm__("" : "+r"(from));                      /* else x is read once for all channels, into more registers than there are */
            if (step)
                add_three(places, size, step, from, c, filters, edge, sum);
            else
                add_columns(places, size, w, from, c, filters, sum);
        }
    }
    finish_each(places, sum, y, a);
}

#define GROUP(P, N, S)                                                                                                  \
    static void group_##P##_##N##_##S(const dy_blocks *w, const each_window *window, int64_t at, each_edge edge,        \
                                      DY_T *y, const after_each *a)                                                     \
    {                                                                                                                   \
        group_tile(P, N, S, w, window, at, edge, y, a);                                                                 \
    }
#define GROUPS(N, S)                                                                                                    \
    GROUP(1, N, S) GROUP(2, N, S) GROUP(3, N, S) GROUP(4, N, S) GROUP(5, N, S) GROUP(6, N, S) GROUP(7, N, S)            \
    GROUP(8, N, S) GROUP(9, N, S) GROUP(10, N, S) GROUP(11, N, S) MORE_GROUPS(N, S)                                     \
    static each_tiles *const groups_##N##_##S[] = {0, group_1_##N##_##S, group_2_##N##_##S, group_3_##N##_##S,          \
        group_4_##N##_##S, group_5_##N##_##S, group_6_##N##_##S, group_7_##N##_##S, group_8_##N##_##S, group_9_##N##_##S, \
        group_10_##N##_##S, group_11_##N##_##S, NAMES_OF_MORE(N, S)};
#if DY_BYTES == 64
#define MORE_GROUPS(N, S) GROUP(12, N, S) GROUP(13, N, S) GROUP(14, N, S) GROUP(15, N, S) GROUP(16, N, S)
#define NAMES_OF_MORE(N, S) group_12_##N##_##S, group_13_##N##_##S, group_14_##N##_##S, group_15_##N##_##S, group_16_##N##_##S
#else
#define MORE_GROUPS(N, S)
#define NAMES_OF_MORE(N, S)
#endif

#if defined(DY_GROUPS_4)
GROUPS(4, 0) GROUPS(4, 1) GROUPS(4, 2)
#endif
#if DY_BYTES >= 32 && defined(DY_GROUPS_8)
GROUPS(8, 0) GROUPS(8, 1) GROUPS(8, 2)
#endif

/* The tiles for groups of so many channels, those of the result as many; null if there are none. */
static each_tiles *const *group_tiles_of(const dy_blocks *w)
{
    const int64_t size = w->in / w->groups;
    const int step = is_nine(w) ? (int)w->stride[1] : 0;
    (void)step;
    if (w->plain || w->groups == 1 || w->in != w->out || w->in % BLOCK || size * w->kernel[0] * w->kernel[1] > EACH_TAPS)
        return 0;
#if defined(DY_GROUPS_4)
    if (size == 4)
        return step == 1 ? groups_4_1 : step == 2 ? groups_4_2 : groups_4_0;
#endif
#if DY_BYTES >= 32 && defined(DY_GROUPS_8)
    if (size == 8)
        return step == 1 ? groups_8_1 : step == 2 ? groups_8_2 : groups_8_0;
#endif
    return 0;
}

/* Whether there are tiles for these windows. */
int takes(const dy_blocks *w) { return group_tiles_of(w) != 0; }

static int blocks_groups(const dy_blocks *w, const DY_T *x, const DY_T *filters, const DY_T *scale, const DY_T *shift,
                         const DY_T *residual, DY_T *y)
{
    each_tiles *const *const of = group_tiles_of(w);
    return of ? compute_each(w, of, GROUP_PLACES, w->in / w->groups, is_nine(w), x, filters, scale, shift, residual, y) : -1;
}

#endif
