/* Transposed convolutions in blocks of channels.  With a stride of s, the places of the result are s phases along an axis, each of which
   meets every s-th tap: a convolution with a stride of one for each pair of phases.  Their results are written beside each other, and
   then interleaved, for some images at a time, while they are in the cache.

   Before the include: DY_T, which is float, and DY_PIECE. */
#ifndef DY2STATIC_BLOCKED_TRANSPOSED_H
#define DY2STATIC_BLOCKED_TRANSPOSED_H

#include "dy2static_blocked.h"

enum {
    KEPT_TRANSPOSED = 17,                               /* the form of filters: no algorithm has this number */
    MOST_STRIDE = 8,
    MOST_TAPS = PIECE,                                  /* of a filter of one channel */
    AT_A_TIME = 1 << 17                                 /* elements of x and y, if an image has not more */
};

/* The places `first`, `first` + stride and so on of the result along an axis, which meet `taps` taps, `tap` the first of them. */
typedef struct {
    int64_t first, count, tap, taps, pad;
} phase;

static phase phase_of(const dy_blocks *w, const int axis, const int64_t first)
{
    const int64_t stride = w->stride[axis], tap = (first + w->pad[axis]) % stride;
    const int64_t count = (w->spots[axis] - first + stride - 1) / stride, taps = (w->kernel[axis] - tap + stride - 1) / stride;
    return (phase){first, count, tap, taps, taps - 1 - (first + w->pad[axis]) / stride};
}

/* Whether every phase has places and taps, and its windows do not begin inside of the image. */
static int may_transpose(const dy_blocks *w)
{
    int can = w->groups == 1 && !w->plain && w->kernel[0] * w->kernel[1] <= MOST_TAPS;
    for (int axis = 0; axis < 2; axis++) {
        can = can && w->dilate[axis] == 1 && w->stride[axis] <= MOST_STRIDE
            && w->stride[axis] <= least(w->spots[axis], w->kernel[axis]);
        for (int64_t first = 0; can && first < w->stride[axis]; first++)
            can = phase_of(w, axis, first).pad >= 0;
    }
    return can;
}

/* Filters (in, out, rows, columns) of all phases, one behind the other, in the order in which their convolutions read them. */
typedef struct {
    const dy_blocks *w;
    channel_groups groups;
    const DY_T *filters;
    int64_t panels;
} transposed_filters;

/* to[tap][o] of a panel, for one channel of x. */
static void turn_channel(const transposed_filters *f, const panel_place *p, const int64_t c, DY_T *to)
{
    const int64_t taps = f->w->kernel[0] * f->w->kernel[1], there = least(p->channels, f->groups.out - p->out);
    const DY_T *const from = f->filters + (c * f->groups.out + p->out) * taps;
    const int64_t whole = there / BLOCK * BLOCK;
    turn(to, PANEL, from, taps, whole, taps);
    for (int64_t t = 0; t < taps; t++)
        for (int64_t o = whole; o < p->channels; o++)
            to[t * PANEL + o] = o < there ? from[o * taps + t] : 0;
}

static void turn_transposed(const void *given, void *to)
{
    const transposed_filters *const f = given;
    const dy_blocks *const w = f->w;
    DY_T *const turned = at_hand(own_filters);
    for (int64_t panel = 0; panel < f->panels; panel++) {
        const panel_place here = place_of_panel(&f->groups, panel);
        for (int64_t c = 0; c < w->in; c++) {
            turn_channel(f, &here, c, turned);
            DY_T *all = to;
            for (int64_t k = 0; k < w->stride[0] * w->stride[1]; k++) {
                const phase down = phase_of(w, 0, k / w->stride[1]), right = phase_of(w, 1, k % w->stride[1]);
                DY_T *one = all + (panel * w->in + c) * down.taps * right.taps * PANEL;
                for (int64_t i = down.taps - 1; i >= 0; i--)
                    for (int64_t j = right.taps - 1; j >= 0; j--, one += PANEL)
                        memcpy(one, turned + ((down.tap + i * w->stride[0]) * w->kernel[1] + right.tap + j * w->stride[1]) * PANEL,
                               here.channels * sizeof(DY_T));
                all += f->panels * w->in * down.taps * right.taps * PANEL;
            }
        }
    }
}

/* The results of all phases, one behind the other, of some images; y: of those images. */
typedef struct {
    const dy_blocks *w;
    const DY_T *phases;
    DY_T *y;
    int64_t planes;
} interleaved;

static void interleave_planes(const void *given, int64_t begin, int64_t end)
{
    const interleaved *const all = given;
    const dy_blocks *const w = all->w;
    const int64_t row = w->spots[1] * BLOCK, right = w->stride[1] * BLOCK;
    for (int64_t plane = begin; plane < end; plane++) {
        const DY_T *of_phase = all->phases;
        for (int64_t k = 0; k < w->stride[0] * w->stride[1]; k++) {
            const phase a = phase_of(w, 0, k / w->stride[1]), b = phase_of(w, 1, k % w->stride[1]);
            const DY_T *from = of_phase + plane * a.count * b.count * BLOCK;
            for (int64_t i = 0; i < a.count; i++) {
                DY_T *to = all->y + (plane * w->spots[0] + a.first + i * w->stride[0]) * row + b.first * BLOCK;
                for (int64_t j = 0; j < b.count; j++, from += BLOCK, to += right)
#pragma GCC unroll 4
                    for (int v = 0; v < BLOCK; v += WIDTH)
                        store(to + v, load(from + v));
            }
            of_phase += all->planes * a.count * b.count * BLOCK;
        }
    }
}

/* Some images: `w` has their number. */
static int transposed_images(const dy_blocks *w, const DY_T *x, const DY_T *turned, const DY_T *scale, const DY_T *shift, DY_T *phases,
                             DY_T *y)
{
    const int64_t planes = w->batch * in_whole(w->out) / BLOCK;
    const channel_groups groups = groups_of(w);
    const int64_t channels = panels_of(w, &groups) * w->in * PANEL;
    int failed = 0;
    DY_T *to = phases;
    for (int64_t k = 0; k < w->stride[0] * w->stride[1] && !failed; k++) {
        const phase a = phase_of(w, 0, k / w->stride[1]), b = phase_of(w, 1, k % w->stride[1]);
        dy_blocks one = *w;
        for (int axis = 0; axis < 2; axis++) {
            const phase *const p = axis ? &b : &a;
            one.kernel[axis] = p->taps;
            one.spots[axis] = p->count;
            one.pad[axis] = p->pad;
            one.stride[axis] = 1;
        }
        failed = turned_conv(&one, x, 0, turned, scale, shift, 0, to);
        to += planes * a.count * b.count * BLOCK;
        turned += channels * a.taps * b.taps;
    }
    const interleaved all = {w, phases, y, planes};
    if (!failed)
        dy_share(interleave_planes, &all, planes, most(1, (1 << 15) / (w->spots[0] * w->spots[1] * BLOCK)));
    return failed;
}

/* windows: of the convolution that this transposes, whose image is the result: `image` and `in` are those of x, `spots` and `out` those
   of the result.  Filters are (in, out, rows, columns).  There is no residual. */
static int blocks_transposed(const dy_blocks *w, const DY_T *x, const DY_T *filters, const DY_T *scale, const DY_T *shift,
                             const DY_T *residual, DY_T *y)
{
    if (!may_transpose(w) || residual)
        return -1;
    const channel_groups groups = groups_of(w);
    const int64_t panels = panels_of(w, &groups), elements = panels * w->in * w->kernel[0] * w->kernel[1] * PANEL;
    const int64_t read = in_whole(w->in) * w->image[0] * w->image[1], made = in_whole(w->out) * w->spots[0] * w->spots[1];
    const int64_t images = least(w->batch, most(1, AT_A_TIME / (read + made)));
    const transposed_filters all = {w, groups, filters, panels};
    const DY_T *const kept = kept_filters(w, filters, KEPT_TRANSPOSED, elements, turn_transposed, &all);
    DY_T *const phases = room(images_key, images * made * sizeof(DY_T)), *const own = kept ? 0 : room(filters_key, elements * sizeof(DY_T));
    if (!phases || !(kept || own))
        return 1;
    if (!kept)
        turn_transposed(&all, own);
    int failed = 0;
    dy_blocks some = *w;
    for (int64_t n = 0; n < w->batch && !failed; n += images) {
        some.batch = least(images, w->batch - n);
        failed = transposed_images(&some, x + n * read, kept ? kept : own, scale, shift, phases, y + n * made);
    }
    return failed;
}

#endif
