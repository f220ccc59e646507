/* The transforms of dy2static_winograd.h.  In one dimension, for two results of three taps g:

   with stride 1, of four numbers d:  (d0 - d2) g0, (d1 + d2) (g0 + g1 + g2) / 2, (d2 - d1) (g0 - g1 + g2) / 2, (d1 - d3) g2
   with stride 2, of five:  (d0 - d2) g0, d2 (g0 + g2), (d4 - d2) g2, d1 g1, d3 g1

   The last two of these have one number of the filter.  `side`: 4 or 5, how many there are. */
#ifndef DY2STATIC_WINOGRAD_TRANSFORMS_H
#define DY2STATIC_WINOGRAD_TRANSFORMS_H

#include "dy2static_blocked.h"

enum { MOST_SIDE = 5 };

DY_INLINE void transform_taps(const int side, const dy_vector a, const dy_vector b, const dy_vector c, dy_vector to[4])
{
    to[0] = a;
    to[1] = side == 4 ? (a + c + b) * (DY_T)0.5 : a + c;
    to[2] = side == 4 ? (a + c - b) * (DY_T)0.5 : c;
    to[3] = side == 4 ? c : b;
}

/* From nine taps, `apart`, to four by four numbers, `next`. */
DY_INLINE void transform_filter(const int side, const DY_T *g, const int64_t apart, DY_T *to, const int64_t next)
{
    dy_vector half[3][4], whole[4];
#pragma GCC unroll 3
    for (int j = 0; j < 3; j++)
        transform_taps(side, load(g + j * apart), load(g + (3 + j) * apart), load(g + (6 + j) * apart), half[j]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        transform_taps(side, half[0][i], half[1][i], half[2][i], whole);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            store(to + (4 * i + j) * next, whole[j]);
    }
}

DY_INLINE void transform_line(const int side, const dy_vector *d, dy_vector *to)
{
    to[0] = d[0] - d[2];
    to[1] = side == 4 ? d[1] + d[2] : d[2];
    to[2] = side == 4 ? d[2] - d[1] : d[4] - d[2];
    to[3] = side == 4 ? d[1] - d[3] : d[1];
    if (side == 5)
        to[4] = d[3];
}

/* From `side` by `side` vectors, `column` and `row` from each other, to as many, `next`. */
DY_INLINE void transform_square(const int side, const DY_T *x, const int64_t row, const int64_t column, DY_T *to, const int64_t next)
{
    dy_vector half[MOST_SIDE][MOST_SIDE], line[MOST_SIDE], whole[MOST_SIDE];
#pragma GCC unroll 5
    for (int j = 0; j < side; j++) {
#pragma GCC unroll 5
        for (int i = 0; i < side; i++)
            line[i] = load(x + i * row + j * column);
        transform_line(side, line, whole);
#pragma GCC unroll 5
        for (int i = 0; i < side; i++)
            half[i][j] = whole[i];
    }
#pragma GCC unroll 5
    for (int i = 0; i < side; i++) {
        transform_line(side, half[i], whole);
#pragma GCC unroll 5
        for (int j = 0; j < side; j++)
            store(to + (side * i + j) * next, whole[j]);
    }
}

DY_INLINE void transform_line_back(const int side, const dy_vector *m, dy_vector to[2])
{
    to[0] = side == 4 ? m[0] + m[1] + m[2] : m[0] + m[1] + m[3];
    to[1] = side == 4 ? m[1] - m[2] - m[3] : m[1] + m[2] + m[4];
}

/* Two by two places, `column` and `row` from each other, of which those that there are come to the result; what is not finite leaves a
   NaN in `trace`. */
DY_INLINE void transform_back(const int side, const DY_T *m, const int64_t next, const around *a, const int v, const int64_t rows,
                              const int64_t columns, const int64_t row, const int64_t column, DY_T *y, dy_vector *trace)
{
    dy_vector half[2][MOST_SIDE], line[MOST_SIDE], sum[2];
#pragma GCC unroll 5
    for (int j = 0; j < side; j++) {
#pragma GCC unroll 5
        for (int i = 0; i < side; i++)
            line[i] = load(m + (side * i + j) * next);
        transform_line_back(side, line, sum);
        half[0][j] = sum[0];
        half[1][j] = sum[1];
    }
    const dy_vector scale = scale_of(a, v), shift = shift_of(a, v), caps = (dy_vector){0} + a->cap;
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        transform_line_back(side, half[i], sum);
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++)
            if (i < rows && j < columns) {
                DY_T *const to = y + i * row + j * column;
                *trace += sum[j] * 0;
                sum[j] = sum[j] * scale + shift;
                if (a->adds)
                    sum[j] += load(to + a->residual);
                store(to, a->relu ? limited(sum[j], caps) : sum[j]);
            }
    }
}

#endif
