/* Products of filters and planes as they are: rows of the matrix of patches are the planes themselves at some offset.

   Places that are between the end of one row of windows and the start of the next are computed and dropped.

   Before the include: DY_T. */
#ifndef DY2STATIC_TAPPED_PRODUCTS_H
#define DY2STATIC_TAPPED_PRODUCTS_H

#include "dy2static_planes.h"

DY_TILES(tapped_tile, 1)

/* Few rows of few taps: so many vectors at a time that additions need not wait for each other. */
enum { THIN_ROWS = 2, THIN_DEPTH = 128, THIN = 8 };

static int is_thin(const int64_t rows, const int64_t depth) { return rows <= THIN_ROWS && depth <= THIN_DEPTH; }

DY_INLINE void thin_tile(const int vectors, const int64_t depth, const DY_T *filter, const int64_t *where, const DY_T *planes, DY_T *to)
{
    dy_vector sum[THIN];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++)
        sum[v] = (dy_vector){0};
    for (int64_t l = 0; l < depth; l++) {
        const DY_T left = filter[l], *const tap = planes + where[l];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[v] += left * load(tap + v * WIDTH);
    }
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++)
        store(to + v * WIDTH, sum[v]);
}

static void thin_product(const int64_t rows, const int64_t depth, const DY_T *filters, const int64_t *where, const DY_T *planes,
                         const places *at, DY_T *result, DY_T *strip)
{
    const int64_t span = span_of(at), columns = at->grid[2];
    for (int64_t r = 0; r < rows; r++, filters += STRIDE) {
        int64_t u = 0;
        for (; span - u > (THIN - 1) * WIDTH; u += THIN * WIDTH)
            thin_tile(THIN, depth, filters, where, planes + u, strip + u);
        for (; span - u > 3 * WIDTH; u += 4 * WIDTH)
            thin_tile(4, depth, filters, where, planes + u, strip + u);
        for (; span - u > 0; u += WIDTH)
            thin_tile(1, depth, filters, where, planes + u, strip + u);
        for (int64_t q0 = 0; q0 < at->grid[0]; q0++)
            for (int64_t q1 = 0; q1 < at->grid[1]; q1++, result += columns)
                copy(result, strip + (q0 * at->plane[1] + q1) * at->plane[2], columns);
    }
}

/* `rows` rows of the result, from filters packed in blocks of DEPTH, a table of taps, and planes. */
static void tapped_product(const int64_t rows, const int64_t depth, const DY_T *filters, const int64_t *where, const DY_T *planes,
                           const places *at, DY_T *result, DY_T *strip)
{
    const int64_t row = at->plane[2], slice = at->plane[1] * row, each = count(at->grid), columns = at->grid[2];
    const int64_t span = span_of(at);
    if (is_thin(rows, depth)) {
        thin_product(rows, depth, filters, where, planes, at, result, strip);
        return;
    }
    if (columns % COLUMNS == 0) {                   /* rows that fill tiles go where they belong */
        for (int64_t q = 0; q < at->grid[0] * at->grid[1]; q++)
            for (int64_t j = 0; j < columns; j += COLUMNS) {
                const DY_T *const from = planes + q / at->grid[1] * slice + q % at->grid[1] * row + j;
                DY_T *const to = result + q * columns + j;
                for (int64_t l = 0; l < depth; l += DEPTH)
                    for (int64_t r = 0, height; r < rows; r += height) {
                        height = tile_rows(rows - r);
                        tapped_tile(height, 2, least(DEPTH, depth - l), filters + (l / DEPTH * rows + r) * STRIDE, from, 0,
                                    where + l, to + r * each, each, 1, l ? 1 : 0);
                    }
            }
        return;
    }
    for (int64_t u = 0; u < span; u += COLUMNS) {
        const int vectors = span - u > WIDTH ? 2 : 1;
        const int64_t until = least(span, u + vectors * WIDTH);
        if (u % row >= columns && u % row + (until - u) <= row)
            continue;                               /* nothing that counts */
        for (int64_t l = 0; l < depth; l += DEPTH)
            for (int64_t r = 0, height; r < rows; r += height) {
                height = tile_rows(rows - r);
                tapped_tile(height, vectors, least(DEPTH, depth - l), filters + (l / DEPTH * rows + r) * STRIDE, planes + u, 0,
                            where + l, strip + r * COLUMNS, COLUMNS, 1, l ? 1 : 0);
            }
        for (int64_t v = u; v < until;) {
            const int64_t q0 = v / slice, q1 = v % slice / row, q2 = v % row;
            const int64_t end = least(until, v - q2 + row), length = least(columns, q2 + end - v) - q2;
            const DY_T *source = strip + v - u;
            DY_T *target = result + (q0 * at->grid[1] + q1) * columns + q2;
            if (q1 < at->grid[1] && length == COLUMNS)
                for (int64_t r = 0; r < rows; r++, source += COLUMNS, target += each)
                    copy(target, source, COLUMNS);
            else if (q1 < at->grid[1] && length > 0)
                for (int64_t r = 0; r < rows; r++, source += COLUMNS, target += each)
                    copy(target, source, length);
            v = end;
        }
    }
}

#endif
