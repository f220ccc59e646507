/* The sums of what the taps of a filter meet in planes (dy2static_flat_planes.h), place by place, and over all places.

   Before the include: dy2static_convolutions.h. */
#include "dy2static_flat_planes.h"

DY_INLINE dy_bits load_mask(const DY_T *mask) { return *(const dy_bits_unaligned *)mask; }

/* A vector with zeros where the mask says so, whatever was there. */
DY_INLINE dy_vector load_kept(const DY_T *from, const dy_bits mask)
{
    return (dy_vector)(*(const dy_bits_unaligned *)from & mask);
}

/* Some vectors of places, and `together` columns; `whole`: the first of them is not shifted; `first`: there are no sums yet. */
DY_INLINE void flat_columns(const int first, const int vectors, const int together, const int64_t depth, const int whole,
                            const DY_T *taps, const int64_t *down, const int64_t *across, const DY_T *planes, const DY_T *masks,
                            const int64_t apart, dy_vector *sum)
{
    dy_bits mask[3][FLAT];
#pragma GCC unroll 3
    for (int c = whole; c < together; c++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            mask[c][v] = load_mask(masks + c * apart + v * WIDTH);
#pragma GCC unroll 3
    for (int64_t i = 0; i < depth; i++) {
        const DY_T *const row = at_hand((DY_T *)planes + down[i]);
#pragma GCC unroll 3
        for (int c = 0; c < together; c++) {
            const dy_vector left = taps[c * depth + i] - (dy_vector){0};
            const DY_T *const tap = row + across[c];
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) {
                const dy_vector met = whole && !c ? load(tap + v * WIDTH) : load_kept(tap + v * WIDTH, mask[c][v]);
                sum[v] = first && !i && !c ? left * met : sum[v] + left * met;
            }
        }
    }
}

DY_INLINE void flat_tile(const int vectors, const int64_t columns, const int together, const int64_t depth, const int whole,
                         const DY_T *taps, const int64_t *down, const int64_t *across, const DY_T *planes, const DY_T *masks,
                         const int64_t apart, DY_T *to)
{
    dy_vector sum[FLAT];
    flat_columns(1, vectors, together, depth, whole, taps, down, across, planes, masks, apart, sum);
    for (int64_t j = together; j < columns; j += together)
        flat_columns(0, vectors, together, depth, 0, taps + j * depth, down, across + j, planes, masks + j * apart, apart, sum);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        store(to + v * WIDTH, sum[v]);
}

DY_INLINE void flat_sweep(const flat_filter *f, const int64_t columns, const int together, const int64_t depth, const int whole,
                          const int64_t span, const DY_T *taps, const DY_T *planes, const int64_t pitch, DY_T *to)
{
    const int64_t apart = mask_length(pitch), step = FLAT * WIDTH % pitch;
    const DY_T *const masks = f->masks;
    int64_t u = 0, phase = 0;
    for (; u + FLAT * WIDTH <= span; u += FLAT * WIDTH) {
        flat_tile(FLAT, columns, together, depth, whole, taps, f->down, f->across, planes + u, masks + phase, apart, to + u);
        phase += step;
        phase -= phase < pitch ? 0 : pitch;
    }
    for (; u + WIDTH <= span; u += WIDTH)
        flat_tile(1, columns, together, depth, whole, taps, f->down, f->across, planes + u, masks + u % pitch, apart, to + u);
    if (u < span) {
        DY_T rest[WIDTH];
        flat_tile(1, columns, together, depth, whole, taps, f->down, f->across, planes + u, masks + u % pitch, apart, rest);
        copy(to + u, rest, span - u);
    }
}

/* A vector of places in each of some neighbouring rows, which meet the same elements with other taps of a column. */
DY_INLINE void rows_columns(const int first, const int together, const int depth, const int whole, const DY_T *taps,
                            const int64_t *across, const DY_T *planes, const DY_T *masks, const int64_t apart, const int64_t pitch,
                            dy_vector *sum)
{
    dy_vector left[9];
    dy_bits mask[3];
    const DY_T *row = planes;
#pragma GCC unroll 9
    for (int k = 0; k < together * depth; k++)
        left[k] = taps[k] - (dy_vector){0};
#pragma GCC unroll 3
    for (int c = whole; c < together; c++)
        mask[c] = load_mask(masks + c * apart);
#pragma GCC unroll 10
    for (int s = 0; s < ROWS + depth - 1; s++, row = at_hand((DY_T *)row + pitch))
#pragma GCC unroll 3
        for (int c = 0; c < together; c++) {
            const dy_vector met = whole && !c ? load(row + across[c]) : load_kept(row + across[c], mask[c]);
#pragma GCC unroll 4
            for (int r = 0; r < ROWS; r++)
                if (first && s == r && !c)
                    sum[r] = left[0] * met;
                else if (s >= r && s - r < depth)
                    sum[r] += left[c * depth + s - r] * met;
        }
}

DY_INLINE void rows_tile(const int64_t columns, const int together, const int depth, const int whole, const DY_T *taps,
                         const int64_t *across, const DY_T *planes, const DY_T *masks, const int64_t apart, const int64_t pitch,
                         DY_T *to)
{
    dy_vector sum[FLAT];
    rows_columns(1, together, depth, whole, taps, across, planes, masks, apart, pitch, sum);
#pragma GCC unroll 2
    for (int64_t j = together; j < columns; j += together)
        rows_columns(0, together, depth, 0, taps + j * depth, across + j, planes, masks + j * apart, apart, pitch, sum);
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; r++)
        store(to + r * pitch, sum[r]);
}

/* strip: memory for the last rows. */
DY_INLINE void rows_sweep(const flat_filter *f, const int64_t columns, const int together, const int depth, const int whole,
                          const int64_t span, const DY_T *given, const DY_T *planes, const int64_t pitch, DY_T *to, DY_T *strip)
{
    const int64_t apart = mask_length(pitch);
    int64_t across[MOST_ALONG];
    DY_T taps[MOST_TAPS];                           /* what the compiler knows that no store changes */
    for (int64_t j = 0; j < columns; j++)
        across[j] = f->across[j];
    for (int64_t k = 0; k < columns * depth; k++)
        taps[k] = given[k];
    planes += f->down[0];
    for (int64_t u = 0; u < span; u += ROWS * pitch) {
        const int last = u + ROWS * pitch + WIDTH > span;
        DY_T *const result = last ? strip : to + u;
        for (int64_t p = 0; p < pitch; p += WIDTH)
            rows_tile(columns, together, depth, whole, taps, across, planes + u + p, f->masks + p, apart, pitch, result + p);
        if (last)
            copy(to + u, strip, least(span - u, ROWS * pitch));
    }
}

/* to[p] = the sum of what all taps meet at place p, for `span` places.  taps: of the filter, column by column. */
static void flat_product(const flat_filter *f, const int64_t pitch, const int64_t span, const DY_T *taps, const DY_T *planes,
                         DY_T *to, DY_T *strip)
{
    const int64_t columns = f->columns, depth = f->depth;
    const int whole = !f->shift[0], rows = whole && f->is_dense && fills_rows(pitch);
    if (!columns || !depth)
        memset(to, 0, span * sizeof(DY_T));
    else if (rows && columns == 3 && depth == 3)
        rows_sweep(f, 3, 3, 3, 1, span, taps, planes, pitch, to, strip);
    else if (rows && depth == 5)
        rows_sweep(f, columns, 1, 5, 1, span, taps, planes, pitch, to, strip);
    else if (rows && depth == 7)
        rows_sweep(f, columns, 1, 7, 1, span, taps, planes, pitch, to, strip);
    else if (whole && columns == 3 && depth == 3)
        flat_sweep(f, 3, 3, 3, 1, span, taps, planes, pitch, to);
    else if (whole)
        flat_sweep(f, columns, 1, depth, 1, span, taps, planes, pitch, to);
    else
        flat_sweep(f, columns, 1, depth, 0, span, taps, planes, pitch, to);
}

/* sums[k] += vectors of the products of rows of y with what tap k meets, for whole vectors of places; taps of some columns. */
DY_INLINE void dot_tile(const int together, const int depth, const int64_t span, const DY_T *y, const DY_T *planes,
                        const int64_t *down, const int64_t *across, const DY_T *masks, const int64_t apart, const int64_t pitch,
                        DY_T *sums, const int64_t next)
{
    dy_vector sum[9];
    const int64_t step = WIDTH % pitch;
#pragma GCC unroll 3
    for (int c = 0; c < together; c++)
#pragma GCC unroll 5
        for (int i = 0; i < depth; i++)
            sum[c * depth + i] = load(sums + (c * next + i) * WIDTH);
    for (int64_t u = 0, phase = 0; u < span; u += WIDTH) {
        const DY_T *const counted = u + WIDTH <= span ? masks + phase : masks + apart - WIDTH;
        const dy_vector left = load(y + u);
        dy_bits mask[3];
#pragma GCC unroll 3
        for (int c = 0; c < together; c++)
            mask[c] = load_mask(counted + c * apart);
#pragma GCC unroll 5
        for (int i = 0; i < depth; i++) {
            const DY_T *const row = at_hand((DY_T *)planes + down[i] + u);
#pragma GCC unroll 3
            for (int c = 0; c < together; c++)
                sum[c * depth + i] += left * load_kept(row + across[c], mask[c]);
        }
        phase += step;
        phase -= phase < pitch ? 0 : pitch;
    }
#pragma GCC unroll 3
    for (int c = 0; c < together; c++)
#pragma GCC unroll 5
        for (int i = 0; i < depth; i++)
            store(sums + (c * next + i) * WIDTH, sum[c * depth + i]);
}

static void flat_dots(const flat_filter *f, const int64_t pitch, const int64_t span, const DY_T *y, const DY_T *planes, DY_T *sums)
{
    const int64_t apart = mask_length(pitch), depth = f->depth;
    if (f->columns == 3 && depth == 3) {
        dot_tile(3, 3, span, y, planes, f->down, f->across, f->masks, apart, pitch, sums, depth);
        return;
    }
    for (int64_t j = 0; j < f->columns; j++)
        for (int64_t i = 0, some; i < depth; i += some) {
            const DY_T *const masks = f->masks + j * apart;
            DY_T *const to = sums + (j * depth + i) * WIDTH;
            some = depth - i >= 5 ? 5 : depth - i >= 3 ? 3 : 1;
            if (some == 5)
                dot_tile(1, 5, span, y, planes, f->down + i, f->across + j, masks, apart, pitch, to, depth);
            else if (some == 3)
                dot_tile(1, 3, span, y, planes, f->down + i, f->across + j, masks, apart, pitch, to, depth);
            else
                dot_tile(1, 1, span, y, planes, f->down + i, f->across + j, masks, apart, pitch, to, depth);
        }
}

static inline DY_T total(const DY_T *vector)
{
    if (WIDTH < 4)
        return vector[0] + vector[1];
    dy_quad sum = {0};
#pragma GCC unroll 4
    for (int v = 0; v < WIDTH; v += 4)
        sum += *(const dy_quad_unaligned *)(vector + v);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}
