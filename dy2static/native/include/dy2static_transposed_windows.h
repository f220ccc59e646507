/* Transposed convolutions, which are the derivatives by the image: a product for each remainder by the stride.

   Before the include: DY_T. */
#ifndef DY2STATIC_TRANSPOSED_WINDOWS_H
#define DY2STATIC_TRANSPOSED_WINDOWS_H

#include "dy2static_thread_memory.h"
#include "dy2static_gathered_products.h"

enum { CHANNELS = 64 };

/* The elements of x fall into classes by their remainder by the stride: each is a product of its own with the taps that
   meet it, which step by one through y. */
typedef struct {
    int64_t found, where, rows;                     /* taps; where their offsets, and the packed filters, begin */
    int64_t begin, parts;                           /* where the places, and the results of an image, begin */
    int64_t first[3];                               /* of axis: the first element of x */
    places at;
} class;

/* Fills in a class, and the tables of its taps; lowest: the place of the planes' first element, in steps of the stride. */
static void find_class(class *c, const dy_windows *w, const int64_t *plane, const int64_t *lowest, const int64_t *reach,
                       const int64_t *r, int64_t *where, int64_t *met)
{
    int64_t shift = 0, grid[3];
    for (int axis = 0; axis < 3; axis++) {
        const int64_t from = -floor_div(r[axis] - w->pad[axis], w->stride[axis]);
        grid[axis] = most(0, floor_div(w->image[axis] - 1 + w->pad[axis] - r[axis], w->stride[axis]) - from + 1);
        c->first[axis] = from * w->stride[axis] + r[axis] - w->pad[axis];
        shift = shift * plane[axis] + from - lowest[axis] + reach[axis];
    }
    c->at = places_of(plane, grid);
    c->found = 0;
    for (int64_t k = 0; k < count(w->kernel) && count(grid); k++) {
        const int64_t at[3] = {k / (w->kernel[1] * w->kernel[2]) * w->dilate[0], k / w->kernel[2] % w->kernel[1] * w->dilate[1],
                               k % w->kernel[2] * w->dilate[2]};
        int64_t offset = 0;
        int meets = 1;
        for (int axis = 0; axis < 3; axis++) {
            meets &= at[axis] % w->stride[axis] == r[axis];
            offset = offset * plane[axis] + (at[axis] - r[axis]) / w->stride[axis];
        }
        if (meets) {
            met[c->found] = k;
            where[c->found++] = shift - offset;
        }
    }
    for (int64_t o = 1; o < w->out; o++)
        for (int64_t t = 0; t < c->found; t++)
            where[o * c->found + t] = where[t] + o * count(plane);
}

/* Filters with channels turned, packed in blocks of DEPTH; some channels at a time, so that lines are read once.  next: from the
   filters of one channel of y to the next. */
static void pack_class(DY_T *rows, const class *c, const dy_windows *w, const DY_T *filters, const int64_t next, const int64_t *met)
{
    const int64_t taps = count(w->kernel), whole = c->found == taps;
    for (int64_t begin = 0, end; begin < w->in; begin = end) {
        end = least(w->in, begin + CHANNELS);
        for (int64_t o = 0; o < w->out; o++) {
            const int64_t first = o * c->found, block = first / DEPTH * w->in * STRIDE + first % DEPTH;
            const DY_T *const from = filters + o * next;
            if (taps == 1 && o % 4 == 0 && o + 4 <= w->out && (end - begin) % 4 == 0) {
                for (int64_t i = begin; i < end; i += 4)
                    transpose(from + i, next, rows + block + i * STRIDE, STRIDE);
                o += 3;
            } else if (whole && first % DEPTH + taps <= DEPTH)
                for (int64_t i = begin; i < end; i++)
                    copy(rows + block + i * STRIDE, from + i * taps, taps);
            else
                for (int64_t t = 0, s = first; t < c->found; t++, s++)
                    for (int64_t i = begin; i < end; i++)
                        rows[(s / DEPTH * w->in + i) * STRIDE + s % DEPTH] = from[i * taps + met[t]];
        }
    }
}

/* x from the results of all classes for one image: its rows, put together of those of the classes of the last axis. */
static void join_classes(DY_T *x, const class *classes, const dy_windows *w, const DY_T *parts)
{
    for (int64_t i0 = 0; i0 < w->image[0]; i0++)
        for (int64_t i1 = 0; i1 < w->image[1]; i1++) {
            const int64_t s = w->stride[2], r0 = (i0 + w->pad[0]) % w->stride[0], r1 = (i1 + w->pad[1]) % w->stride[1];
            const class *const c = classes + (r0 * w->stride[1] + r1) * s;
            DY_T *const to = x + (i0 * w->image[1] + i1) * w->image[2];
            for (int64_t r2 = 0; r2 < s; r2++) {
                if (!c[r2].found)
                    continue;
                const int64_t *const grid = c[r2].at.grid, each = count(grid);
                const int64_t q0 = (i0 - c[r2].first[0]) / w->stride[0], q1 = (i1 - c[r2].first[1]) / w->stride[1];
                const DY_T *const from = parts + c[r2].parts + (q0 * grid[1] + q1) * grid[2];
                for (int64_t i = 0; i < w->in; i++) {
                    DY_T *const row = to + i * count(w->image) + c[r2].first[2];
                    for (int64_t q = 0; q < grid[2]; q++)
                        row[s * q] = from[i * each + q];
                }
            }
        }
}

/* The planes of y, and the places of the class that has most. */
static places places_of_classes(const dy_windows *w)
{
    places at;
    for (int axis = 0; axis < 3; axis++) {
        const int64_t reach = (w->kernel[axis] - 1) * w->dilate[axis] / w->stride[axis];
        at.grid[axis] = (w->image[axis] + w->stride[axis] - 1) / w->stride[axis];
        at.plane[axis] = floor_div(w->image[axis] - 1 + w->pad[axis], w->stride[axis]) - floor_div(w->pad[axis], w->stride[axis])
                         + 1 + reach;
    }
    return at;
}

/* Channels of each group from `begin` to `end` of x. */
static int transposed_channels(const dy_windows *windows, const DY_T *y, const DY_T *filters, DY_T *x, const int64_t begin,
                               const int64_t end, const dy_after *after)
{
    dy_windows flat = flattened(windows);
    flat.in = end - begin;
    const dy_windows *const w = &flat;
    const int64_t one[3] = {1, 1, 1}, taps = count(w->kernel), kinds = count(w->stride), each = count(w->image);
    const places largest = places_of_classes(w);
    const int64_t *const plane = largest.plane, *const grid = largest.grid;
    int64_t lowest[3], reach[3], first[3];
    int empty = 0;
    for (int axis = 0; axis < 3; axis++) {
        lowest[axis] = floor_div(w->pad[axis], w->stride[axis]);
        reach[axis] = (w->kernel[axis] - 1) * w->dilate[axis] / w->stride[axis];
        first[axis] = lowest[axis] - reach[axis];
        empty |= (w->kernel[axis] - 1) * w->dilate[axis] + 1 < w->stride[axis] || w->dilate[axis] > 1;
    }
    const int64_t depth = w->out * taps, packed = (depth / DEPTH + kinds) * STRIDE * w->in;
    const int64_t total = rounded(count(plane) * w->out + SLACK), next_group = windows->in * each, next_x = step_of_x(windows);
    const int64_t next_filter = windows->in * taps, next_y = step_of_y(w);
    const int sparse = gathers(w, &largest, w->in), is = !sparse && is_plane(w);
    const int64_t images = sparse ? least(w->batch, most(1, GATHERED / count(grid))) : 1, columns = rounded(images * each);
    const int64_t strips = strip_size(sparse, w->in, images * count(grid), &largest);
    const int64_t parts_size = kinds > 1 ? rounded(images * w->in * each) : 0;
    class *const classes = memory(kinds * sizeof(class) + 64 + (2 * rounded(depth) + 2 * columns) * 8
                                  + (total * images + packed + parts_size + strips + panels_size(sparse)) * sizeof(DY_T));
    if (!classes)
        return 1;
    int64_t *const where = (int64_t *)classes + (kinds * sizeof(class) + 63) / 64 * 8, *const met = where + rounded(depth);
    int64_t *const from = met + rounded(depth), *const to = from + columns;
    DY_T *const planes = (DY_T *)(to + columns), *const rows = planes + total * images, *const parts = rows + packed;
    DY_T *const strip = parts + parts_size;
    class sizes = {0};
    for (int64_t k = 0; k < kinds; k++) {
        const int64_t r[3] = {k / (w->stride[1] * w->stride[2]), k / w->stride[2] % w->stride[1], k % w->stride[2]};
        class *const c = classes + k;
        *c = sizes;
        find_class(c, w, plane, lowest, reach, r, where + sizes.where, met + sizes.where);
        if (sparse)
            find_places(&c->at, images, from + sizes.begin, total, to + sizes.begin, kinds > 1 ? w->in * each : next_x);
        sizes.where += c->found * w->out;
        sizes.rows += packed_rows(c->found * w->out) * w->in;
        sizes.begin += images * count(c->at.grid);
        sizes.parts += w->in * count(c->at.grid);
    }
    x += begin * each;
    filters += begin * taps;
    for (int64_t k = 0; empty && k < w->batch * w->groups; k++)         /* elements that no tap meets */
        memset(x + k / w->groups * next_x + k % w->groups * next_group, 0, w->in * each * sizeof(DY_T));
    for (int64_t g = 0; g < w->groups; g++) {
        for (const class *c = classes; c < classes + kinds; c++)
            pack_class(rows + c->rows, c, w, filters + g * w->out * next_filter, next_filter, met + c->where);
        for (int64_t n = 0; n < w->batch; n += images) {
            const int64_t here = least(images, w->batch - n);
            DY_T *const result = x + n * next_x + g * next_group;
            for (int64_t i = 0; i < here && !is; i++) {
                const DY_T *const image = y + (n + i) * next_y + g * w->out * count(w->spots);
                DY_T *const target = planes + i * total;
                for (int64_t o = 0; o < w->out; o++)
                    fill_plane(target + o * count(plane), plane, image + o * count(w->spots), w->spots, one, first);
                memset(target + w->out * count(plane), 0, SLACK * sizeof(DY_T));
            }
            for (const class *c = classes; c < classes + kinds; c++) {
                const int64_t useful = here * count(c->at.grid), used = c->found * w->out;
                DY_T *const target = kinds > 1 ? parts + c->parts : result;
                for (int64_t u = 0; sparse && c->found && u < useful; u += GATHERED)
                    gathered_product(w->in, used, rows + c->rows, 0, where + c->where, planes, least(GATHERED, useful - u),
                                     from + c->begin + u, to + c->begin + u, count(c->at.grid), target, strip, strip + strips);
                if (!sparse && c->found)
                    tapped_product(w->in, used, rows + c->rows, where + c->where,
                                   is ? y + n * next_y + g * w->out * each : planes, &c->at, target, strip);
            }
            for (int64_t i = 0; kinds > 1 && i < here; i++)
                join_classes(result + i * next_x, classes, w, parts + i * w->in * each);
            if (g == w->groups - 1)
                finish(after, n, n + here);
        }
    }
    return 0;
}

static int transposed(const dy_windows *w, const DY_T *y, const DY_T *filters, DY_T *x, const dy_after *after)
{
    return transposed_channels(w, y, filters, x, 0, w->in, after);
}

#endif
