/* The derivatives of convolutions by the filters.

   Before the include: DY_T. */
#ifndef DY2STATIC_FILTER_GRADIENTS_H
#define DY2STATIC_FILTER_GRADIENTS_H

#include "dy2static_thread_memory.h"
#include "dy2static_gathered_products.h"

/* sums[j] += vectors of the products of a row of y, spread as the places of the planes, with what tap j meets */
DY_INLINE void dot_some(const int taps, const int64_t depth, const DY_T *row, const DY_T *planes, const int64_t *where, DY_T *sums)
{
    dy_vector sum[THIN];
#pragma GCC unroll 8
    for (int j = 0; j < taps; j++)
        sum[j] = load(sums + j * WIDTH);
    for (int64_t l = 0; l < depth; l += WIDTH) {
        const dy_vector left = load(row + l);
#pragma GCC unroll 8
        for (int j = 0; j < taps; j++)
            sum[j] += left * load(planes + where[j] + l);
    }
#pragma GCC unroll 8
    for (int j = 0; j < taps; j++)
        store(sums + j * WIDTH, sum[j]);
}

static void dot_taps(const int64_t depth, const int64_t taps, const DY_T *row, const DY_T *planes, const int64_t *where, DY_T *sums)
{
    int64_t j = 0;
    for (; j + THIN <= taps; j += THIN)
        dot_some(THIN, depth, row, planes, where + j, sums + j * WIDTH);
    if (j + 4 <= taps) {
        dot_some(4, depth, row, planes, where + j, sums + j * WIDTH);
        j += 4;
    }
    for (; j < taps; j++)
        dot_some(1, depth, row, planes, where + j, sums + j * WIDTH);
}

/* Rows of `block`: channels of y, spread as the places of the planes from u on, with zeros between rows of windows and behind,
   until the vector is full. */
static void spread_rows(const dy_windows *w, const layout *l, const DY_T *y, const int64_t channels, const int64_t u,
                        const int64_t depth)
{
    DY_T *const block = at_hand(own_block);
    const int64_t row = l->plane[2], slice = l->plane[1] * row, columns = w->spots[2];
    for (int64_t i = 0; i < channels; i++)
        memset(block + i * STRIDE, 0, (depth + WIDTH - 1) / WIDTH * WIDTH * sizeof(DY_T));
    for (int64_t v = u; v < u + depth;) {
        const int64_t q0 = v / slice, q1 = v % slice / row, q2 = v % row;
        const int64_t end = least(u + depth, v - q2 + row), length = least(columns - q2, end - v);
        if (q1 < w->spots[1] && length > 0)
            for (int64_t i = 0; i < channels; i++)
                copy(block + i * STRIDE + v - u, y + ((i * w->spots[0] + q0) * w->spots[1] + q1) * columns + q2, length);
        v = end;
    }
}

static int64_t turned_width(const int64_t channels) { return (channels + WIDTH - 1) / WIDTH * WIDTH; }

/* to[l][o] = y[o][u + l] for channels of several images, zero from `channels` on to `width`; `next` lies between images, `ld` between
   rows of the result. */
static void turn_rows(DY_T *to, const int64_t ld, const int64_t width, const DY_T *y, const int64_t channels, const int64_t useful, const int64_t next,
                      const int64_t u, const int64_t depth)
{
    for (int64_t l = 0, length; l < depth; l += length) {
        const DY_T *const from = y + (u + l) / useful * next + (u + l) % useful;
        length = least(depth - l, useful - (u + l) % useful);
        for (int64_t begin = 0; begin < length; begin += 16) {              /* squares whose lines stay in the cache */
            const int64_t end = least(length, begin + 16);
            int64_t o = 0;
            for (; o + 4 <= channels; o += 4) {
                int64_t t = begin;
                for (; t + 4 <= end; t += 4)
                    transpose(from + o * useful + t, useful, to + (l + t) * ld + o, ld);
                for (; t < end; t++)
                    for (int64_t s = 0; s < 4; s++)
                        to[(l + t) * ld + o + s] = from[(o + s) * useful + t];
            }
            for (; o < width; o++)
                for (int64_t t = begin; t < end; t++)
                    to[(l + t) * ld + o] = o < channels ? from[o * useful + t] : 0;
        }
    }
}

/* sums[j][o] += for all channels of y, whose places from u on are turned into panels: the taps are the rows of this product,
   because copying what they meet is cheaper than turning it. */
static void add_turned(const int64_t depth, const int64_t wide, const int64_t taps, const DY_T *planes, const int64_t *where,
                       const int64_t *from, run *runs, const DY_T *panels, DY_T *sums, const DY_T beta)
{
    const int64_t found = find_runs(depth, from, DEPTH, runs);
    DY_T *const rows = at_hand(own_block);
    for (int64_t j = 0, some; j < taps; j += some) {
        some = tile_rows(taps - j);
        for (int64_t r = 0; r < some; r++) {
            const DY_T *const tap = planes + where[j + r];
            for (int64_t t = 0; t < found; t++) {
                DY_T *const to = rows + r * STRIDE + runs[t].at;
                for (int64_t s = 0; s < runs[t].length; s += WIDTH)     /* what is too much is overwritten, or not read */
                    store(to + s, load(tap + runs[t].from + s));
            }
        }
        for (int64_t o = 0, width; o < wide; o += width) {
            width = least(COLUMNS, wide - o);
            plain_tile(some, width / WIDTH, depth, rows, panels + o * DEPTH, width, 0, sums + j * wide + o, wide, 1, beta);
        }
    }
}

/* The filters of the channels of x in each group from `begin` to `end`. */
static int grad_weight_turned(const dy_windows *windows, const DY_T *x, const DY_T *y, DY_T *filters, const int64_t begin,
                              const int64_t end)
{
    dy_windows part = *windows;
    part.in = end - begin;
    const dy_windows *const w = &part;
    const layout l = lay_out(w);
    const int64_t next_filter = windows->in * count(w->kernel), group = windows->in * count(w->image);
    const int64_t taps = w->in * count(w->kernel), useful = count(w->spots), wide = turned_width(w->out);
    const int64_t next_x = step_of_x(windows), next_y = step_of_y(w);
    const places at = places_of(l.plane, w->spots);
    const int plane = is_plane(w);
    const int64_t images = images_together(w, DEPTH), columns = rounded(images * useful);
    int64_t *const where = memory((rounded(taps) + 2 * columns) * 8 + DEPTH * sizeof(run)
                                  + (l.total * images + wide * (DEPTH + taps)) * sizeof(DY_T));
    if (!where)
        return 1;
    int64_t *const from = where + rounded(taps), *const to = from + columns;
    run *const runs = (run *)(to + columns);
    DY_T *const planes = (DY_T *)(runs + DEPTH), *const panels = planes + l.total * images, *const sums = panels + wide * DEPTH;
    find_taps(where, &l, w);
    find_places(&at, images, from, plane ? next_x : l.total, to, next_y);
    x += begin * count(w->image);
    filters += begin * count(w->kernel);
    for (int64_t g = 0; g < w->groups; g++, filters += w->out * next_filter) {
        for (int64_t n = 0; n < w->batch; n += images) {
            const int64_t here = least(images, w->batch - n);
            const DY_T *const rows = y + n * next_y + g * w->out * useful;
            for (int64_t i = 0; i < here && !plane; i++)
                fill_planes(planes + i * l.total, &l, w, x + (n + i) * next_x + g * group);
            for (int64_t u = 0; u < here * useful; u += DEPTH) {
                const int64_t depth = least(DEPTH, here * useful - u);
                for (int64_t o = 0; o < wide; o += COLUMNS)
                    turn_rows(panels + o * DEPTH, least(COLUMNS, wide - o), least(COLUMNS, wide - o), rows + o * useful,
                              least(COLUMNS, w->out - o), useful, next_y, u, depth);
                add_turned(depth, wide, taps, plane ? x + n * next_x + g * group : planes, where, from + u, runs, panels, sums, n || u);
            }
        }
        turn_rows(filters, next_filter, taps, sums, taps, wide, 0, 0, w->out);
    }
    return 0;
}

static int grad_weight_few(const dy_windows *w, const DY_T *x, const DY_T *y, DY_T *filters)
{
    const DY_T *const block = at_hand(own_block);
    const layout l = lay_out(w);
    const int64_t taps = w->in * count(w->kernel), useful = count(w->spots);
    const int64_t next_x = step_of_x(w), next_y = step_of_y(w);
    const places at = places_of(l.plane, w->spots);
    const int64_t span = span_of(&at), summed = w->out * taps * WIDTH;
    int64_t *const where = memory(rounded(taps) * 8 + (l.total + summed) * sizeof(DY_T));
    if (!where)
        return 1;
    DY_T *const planes = (DY_T *)(where + rounded(taps)), *const sums = planes + l.total;
    find_taps(where, &l, w);
    for (int64_t g = 0; g < w->groups; g++) {
        memset(sums, 0, summed * sizeof(DY_T));
        for (int64_t n = 0; n < w->batch; n++) {
            fill_planes(planes, &l, w, x + n * next_x + g * w->in * count(w->image));
            for (int64_t u = 0; u < span; u += DEPTH) {
                const int64_t depth = least(DEPTH, span - u);
                spread_rows(w, &l, y + n * next_y + g * w->out * useful, w->out, u, depth);
                for (int64_t o = 0; o < w->out; o++)
                    dot_taps(depth, taps, block + o * STRIDE, planes + u, where, sums + o * taps * WIDTH);
            }
        }
        for (int64_t j = 0; j < w->out * taps; j++, filters++) {
            DY_T total = 0;
            for (int64_t t = 0; t < WIDTH; t++)
                total += sums[j * WIDTH + t];
            *filters = total;
        }
    }
    return 0;
}

enum {
    FEW_FILTERS = 4, MORE_FILTERS = 8,          /* of a group: turning the places of their gradients takes longer than multiplying */
    READ_CHANNELS = 64,                         /* of x, for which that is so with more filters */
    FEW_PLACES = 25, MORE_PLACES = 36,          /* of an image, for which that is so: what is computed between short rows is dropped */
    PANEL_DEPTH = 128                           /* places of all images: with fewer, turning them takes longer than laying them into panels */
};

/* How the derivative by the filters is computed: as the windows say, if that is for them, or by rules. */
static int64_t way_of_grad_weight(const dy_windows *w)
{
    const int64_t depth = w->batch * count(w->spots);
    if (w->algorithm == DY_TURNED || (w->algorithm == DY_PANELS && depth <= DEPTH)
        || (w->algorithm == DY_FEW_FILTERS && w->out <= HEIGHT))
        return w->algorithm;
    const int few = w->out <= FEW_FILTERS && count(w->spots) >= FEW_PLACES
        || w->out <= MORE_FILTERS && w->in < READ_CHANNELS && count(w->spots) >= MORE_PLACES;
    return few ? DY_FEW_FILTERS : depth >= PANEL_DEPTH ? DY_TURNED : DY_PANELS;
}

static int grad_weight(const dy_windows *windows, const DY_T *x, const DY_T *y, DY_T *filters)
{
    DY_T *const block = at_hand(own_block), *const panel = at_hand(own_panel);
    const dy_windows flat = flattened(windows), *const w = &flat;
    const layout l = lay_out(w);
    const int64_t taps = w->in * count(w->kernel), useful = count(w->spots);
    const int64_t next_x = step_of_x(w), next_y = step_of_y(w);
    const int64_t way = way_of_grad_weight(w);
    if (way == DY_FEW_FILTERS) {
        if (grad_weight_few(w, x, y, filters))
            return 1;
        if (are_finite(filters, w->groups * w->out * taps))
            return 0;                       /* if not: places between rows may be at fault, which count as zero times what is there */
    }
    if (way == DY_TURNED || w->batch * useful >= 2 * COLUMNS && way != DY_PANELS)
        return grad_weight_turned(w, x, y, filters, 0, w->in);
    /* So few places that the filters are most of the work: the places are the rows of panels, and the taps the columns. */
    const places at = places_of(l.plane, w->spots);
    const int64_t depth = w->batch * useful;
    int64_t *const where = memory((rounded(taps) + 2 * rounded(depth)) * 8 + l.total * w->batch * sizeof(DY_T));
    if (!where)
        return 1;
    int64_t *const from = where + rounded(taps), *const to = from + rounded(depth);
    DY_T *const planes = (DY_T *)(to + rounded(depth));
    find_taps(where, &l, w);
    find_places(&at, w->batch, from, l.total, to, next_y);
    for (int64_t g = 0; g < w->groups; g++, filters += w->out * taps) {
        for (int64_t n = 0; n < w->batch; n++)
            fill_planes(planes + n * l.total, &l, w, x + n * next_x + g * w->in * count(w->image));
        for (int64_t o = 0; o < w->out; o += HEIGHT) {
            const int64_t height = least(HEIGHT, w->out - o);
            for (int64_t r = 0; r < height; r++)
                for (int64_t n = 0; n < w->batch; n++)
                    copy(block + r * STRIDE + n * useful, y + n * next_y + (g * w->out + o + r) * useful, useful);
            for (int64_t j = 0; j < taps; j += COLUMNS) {
                const int64_t some = least(COLUMNS, taps - j);
                gather_panel(panel, depth, some, planes, from, where + j);
                for (int64_t r = 0, rows; r < height; r += rows) {
                    DY_T edge[DY_ROWS * COLUMNS] __attribute__((aligned(64)));
                    DY_T *const target = filters + (o + r) * taps + j;
                    rows = tile_rows(height - r);
                    plain_tile(rows, 2, depth, block + r * STRIDE, panel, COLUMNS, 0, some < COLUMNS ? edge : target,
                               some < COLUMNS ? COLUMNS : taps, 1, 0);
                    for (int64_t i = 0; some < COLUMNS && i < rows; i++)
                        copy(target + i * taps, edge + i * COLUMNS, some);
                }
            }
        }
    }
    return 0;
}

#endif
