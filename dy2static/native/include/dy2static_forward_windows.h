/* Convolutions forward: products of filters and planes, or of filters and what is gathered from planes or images.

   Before the include: DY_T. */
#ifndef DY2STATIC_FORWARD_WINDOWS_H
#define DY2STATIC_FORWARD_WINDOWS_H

#include "dy2static_thread_memory.h"
#include "dy2static_gathered_products.h"
#include "dy2static_patches.h"

/* Whether the product reads filters as they are, and what is gathered for it. */
static int forward_gathers(const dy_windows *w, const places *at)
{
    return (w->algorithm != DY_IN_PLACE && are_patches(w)) || gathers(w, at, w->out);
}

static int forward(const dy_windows *windows, const DY_T *x, const DY_T *filters, DY_T *y, const dy_after *after)
{
    const dy_windows flat = flattened(windows), *const w = &flat;
    const layout l = lay_out(w);
    const int64_t depth = w->in * count(w->kernel), useful = count(w->spots);
    const int64_t next_x = step_of_x(w), next_y = step_of_y(w);
    const places at = places_of(l.plane, w->spots);
    const int patches = w->algorithm != DY_IN_PLACE && are_patches(w), sparse = forward_gathers(w, &at);
    const int plane = patches || !sparse && is_plane(w);
    const int64_t images = sparse ? least(w->batch, most(1, GATHERED / useful)) : 1, columns = rounded(images * useful);
    const int64_t packed = sparse ? 0 : packed_rows(depth) * w->out, strips = strip_size(sparse, w->out, columns, &at);
    const int64_t filled = plane ? 0 : l.total * images;
    int64_t *const where = memory((rounded(depth) + 2 * columns) * 8
                                  + (filled + packed + strips + panels_size(sparse)) * sizeof(DY_T));
    if (!where)
        return 1;
    int64_t *const from = where + rounded(depth), *const to = from + columns;
    DY_T *const planes = (DY_T *)(to + columns), *const rows = planes + filled, *const strip = rows + packed;
    if (patches) {
        find_patches(w, images, where, from, to, next_y);
    } else {
        find_taps(where, &l, w);
        if (sparse)
            find_places(&at, images, from, l.total, to, next_y);
    }
    for (int64_t g = 0; g < w->groups; g++, filters += w->out * depth) {
        for (int64_t i = 0; !sparse && i < w->out; i++)
            for (int64_t s = 0; s < depth; s += DEPTH)
                memcpy(rows + (s / DEPTH * w->out + i) * STRIDE, filters + i * depth + s, least(DEPTH, depth - s) * sizeof(DY_T));
        for (int64_t n = 0; n < w->batch; n += images) {
            const int64_t here = least(images, w->batch - n);
            DY_T *const result = y + n * next_y + g * w->out * useful;
            const DY_T *const image = x + n * next_x + g * w->in * count(w->image), *const read = plane ? image : planes;
            for (int64_t i = 0; i < here && !plane; i++)
                fill_planes(planes + i * l.total, &l, w, image + i * next_x);
            for (int64_t u = 0; sparse && u < here * useful; u += GATHERED)
                gathered_product(w->out, depth, filters, 1, where, read, least(GATHERED, here * useful - u), from + u, to + u,
                                 useful, result, strip, strip + strips);
            if (!sparse)
                tapped_product(w->out, depth, rows, where, read, &at, result, strip);
            if (g == w->groups - 1)
                finish(after, n, n + here);
        }
    }
    return 0;
}

#endif
