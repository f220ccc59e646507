/* The filters of dy2static_winograd.h, transformed: of each panel of channels of the result the 16 forms, one behind the other, and these of
   `TOGETHER` panels beside each other. */
#ifndef DY2STATIC_WINOGRAD_PANELS_H
#define DY2STATIC_WINOGRAD_PANELS_H

#include "dy2static_winograd_transforms.h"

enum {
    FORMS = 16,                                         /* numbers that a filter becomes; the last row and column may be for two spots */
    TOGETHER = 64 / PANEL,                              /* panels */
    LINE = 16                                           /* elements: what is a power of two apart falls into one set of a cache */
};

/* How many panels from `first` on are computed together: what x has of a spot stays in the first cache for all of them. */
static int64_t panels_together(const int64_t first, const int64_t panels) { return least(TOGETHER, panels - first); }

/* Filters to be transformed; groups: of one slice; slices: taps along the third axis; side: of squares; flipped: they are (in, out,
   slices, 3, 3), and the last tap is the first. */
typedef struct {
    const channel_groups *groups;
    const DY_T *filters;
    int64_t panels, side, slices, flipped;
    DY_T *to;
} transformed;

/* Channels of x that a filter becomes numbers for, and from one form of a panel to the next. */
static int64_t channels_of_taps(const int64_t in, const int64_t slices) { return slices > 1 ? slices * in_whole(in) : in; }
static int64_t forms_apart(const transformed *f) { return channels_of_taps(f->groups->in, f->slices) * PANEL + LINE; }

/* to[tap][o] of a panel, of all `taps`, for channels of x from `first` to `end` of one group. */
static void flip_filters(const channel_groups *g, DY_T *to, const DY_T *filters, const panel_place *p, const int64_t taps,
                         const int64_t first, const int64_t end)
{
    const int64_t there = least(p->channels, g->out - p->out);
    for (int64_t l = first; l < end; l++, to += taps * PANEL) {
        const DY_T *const from = filters + (l * g->out + p->out) * taps;
        for (int64_t o = 0; o < there; o++)
            for (int64_t t = 0; t < taps; t++)
                to[t * PANEL + o] = from[o * taps + taps - 1 - t];
        for (int64_t t = 0; t < taps; t++)
            for (int64_t o = there; o < p->channels; o++)
                to[t * PANEL + o] = 0;
    }
}

/* Transforms a panel of filters; its forms are `apart` from each other. */
static void transform_panel(const transformed *f, const int64_t panel, DY_T *to, const int64_t apart)
{
    const int64_t in = f->groups->in, taps = 9 * f->slices, some = PIECE / taps, next = in_whole(in) * PANEL;
    const panel_place here = place_of_panel(f->groups, panel);
    DY_T *const turned = at_hand(own_filters);
    for (int64_t c = 0; c < in; c += some) {
        const int64_t until = least(in, c + some);
        if (f->flipped)
            flip_filters(f->groups, turned, f->filters, &here, taps, c, until);
        else
            turn_filters(f->groups, turned, f->filters, &here, taps, c * taps, (until - c) * taps);
        for (int64_t l = c; l < until; l++)
            for (int64_t k = 0; k < f->slices; k++)
                for (int64_t v = 0; v < here.channels; v += WIDTH) {
                    const DY_T *const from = turned + ((l - c) * taps + 9 * k) * PANEL + v;
                    if (ONLY_SUMS || f->side == 4)
                        transform_filter(4, from, PANEL, to + k * next + l * PANEL + v, apart);
                    else
                        transform_filter(5, from, PANEL, to + k * next + l * PANEL + v, apart);
                }
    }
    for (int64_t k = 0; f->slices > 1 && k < f->slices * FORMS; k++)     /* what fills the last block of channels */
        memset(to + k % FORMS * apart + k / FORMS * next + in * PANEL, 0, (in_whole(in) - in) * PANEL * sizeof(DY_T));
}

/* Those panels from `first` on that are computed together. */
static void transform_together(const transformed *f, const int64_t first, DY_T *to)
{
    const int64_t apart = forms_apart(f), together = panels_together(first, f->panels);
    for (int64_t k = 0; k < together; k++)
        transform_panel(f, first + k, to + k * apart, together * apart);
}

static void transform_filters(const void *given, int64_t begin, int64_t end)
{
    const transformed *const f = given;
    for (int64_t first = begin * TOGETHER; first < least(f->panels, end * TOGETHER); first += TOGETHER)
        transform_together(f, first, f->to + first * FORMS * forms_apart(f));
}

static void transform_all(const void *given, void *to)
{
    transformed all = *(const transformed *)given;
    all.to = to;
    dy_share(transform_filters, &all, (all.panels + TOGETHER - 1) / TOGETHER, 1);
}

#endif
