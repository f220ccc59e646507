/* Convolutions cut into shares for threads: images, or channels of the result where images are few.

   Sums over images are made by shares where there are many places for each filter, on one thread, too, so that they are the
   same for any number of threads.  Whatever else is cut, each element is computed in the same way. */
#include "dy2static_depthwise.h"
#include "dy2static_added_windows.h"

enum {
    SHARED = 1 << 21,                           /* multiplications for which it is worth to call others */
    SUMMED_PLACES = 2048,                       /* fewer do not repay that a share has sums of its own */
    LEAST_CHANNELS = 32, TURNED_CHANNELS = 128, /* fewer do not repay that a share copies images for itself */
    ADDED_CHANNELS = 12,                        /* of x: each share lays y into panels for itself */
    PACKING = 64,                               /* multiplications in the time in which one element is packed */
    MOST_SUMS = 8
};

typedef int convolution(const dy_windows *, const DY_T *, const DY_T *, DY_T *, const dy_after *);

typedef struct {
    convolution *function;
    const dy_windows *windows;
    const DY_T *a, *b;                          /* the other operands, in the order of the function */
    DY_T *result, *sums;
    int64_t apart, next_a, next_result;         /* from one image, or channel, to the next */
    int *failed;
    const dy_after *after;
} shared_windows;

static int64_t work_of(const dy_windows *w)
{
    return w->batch * w->groups * w->out * w->in * count(w->kernel) * count(w->spots);
}

/* How many shares: two for each thread, if there is so much work. */
static int64_t shares_of(const dy_windows *w, const int64_t most_shares)
{
    return dy_team ? least(least(2 * dy_team->threads, most_shares), work_of(w) / (SHARED / 2)) : 1;
}

static void fail(const shared_windows *s) { __atomic_store_n(s->failed, 1, __ATOMIC_RELAXED); }

static void some_images(const void *given, int64_t begin, int64_t end)
{
    const shared_windows *const s = given;
    dy_windows part = *s->windows;
    const dy_after after = s->after ? (dy_after){s->after->all, s->after->count, begin} : (dy_after){0};
    part.batch = end - begin;
    if (s->function(&part, s->a + begin * s->next_a, s->b, s->result + begin * s->next_result, &after))
        fail(s);
}

static int share_images(convolution *function, const dy_windows *w, const int64_t shares, const DY_T *a, const int64_t next_a,
                        const DY_T *filters, DY_T *result, const int64_t next_result, const dy_after *after)
{
    int failed = 0;
    const shared_windows all = {function, w, a, filters, result, 0, 0, next_a, next_result, &failed, after};
    dy_share_freely(some_images, &all, w->batch, (w->batch + shares - 1) / shares);
    return failed;
}

/* Channels of y: with their filters they are results, or, where there is no function, with y they give filters. */
static void some_channels(const void *given, int64_t begin, int64_t end)
{
    const shared_windows *const s = given;
    const int64_t useful = count(s->windows->spots), filter = s->windows->in * count(s->windows->kernel);
    dy_windows part = *s->windows;
    part.out = end - begin;
    part.next_y = s->windows->out * useful;
    if (s->function ? s->function(&part, s->a, s->b + begin * filter, s->result + begin * useful, 0)
                    : grad_weight(&part, s->a, s->b + begin * useful, s->result + begin * filter))
        fail(s);
}

static int share_channels(convolution *function, const dy_windows *w, const int64_t shares, const DY_T *a, const DY_T *b, DY_T *result)
{
    int failed = 0;
    const shared_windows all = {function, w, a, b, result, 0, 0, 0, 0, &failed, 0};
    const int64_t step = (w->out / shares + 3) / 4 * 4;
    dy_share_freely(some_channels, &all, w->out, step);
    return failed;
}

/* Shares of images pack the filters, `filters` elements, each for itself: not so many that this takes an eighth of the time. */
static int64_t image_shares(const dy_windows *w)
{
    const int64_t filters = w->groups * w->out * w->in * count(w->kernel);
    return shares_of(w, least(w->batch, work_of(w) / (8 * PACKING * filters)));
}

static int64_t channel_shares(const dy_windows *w, const int64_t least_channels)
{
    return w->groups > 1 ? 1 : shares_of(w, w->out / least_channels);
}

/* What comes after shares of channels, none of which has made an image as a whole. */
static void finish_shared(const int failed, const dy_after *after)
{
    for (int64_t k = 0; !failed && after && k < after->count; k++)
        dy_share(after->all[k].body, after->all[k].given, after->all[k].count, after->all[k].step);
}

static int shared_forward(const dy_windows *w, const DY_T *x, const DY_T *filters, DY_T *y, const dy_after *after)
{
    if (!w->batch)
        return 0;
    if (is_depthwise(w))
        return share_depthwise(depthwise_forward, 0, w, x, filters, y, after);
    const int64_t images = image_shares(w), channels = channel_shares(w, LEAST_CHANNELS);
    if (images < 2 && channels < 2)
        return forward(w, x, filters, y, after);
    if (images >= least(channels, dy_team->threads))
        return share_images(forward, w, images, x, w->groups * w->in * count(w->image), filters, y,
                            w->groups * w->out * count(w->spots), after);
    const int failed = share_channels(forward, w, channels, x, filters, y);
    finish_shared(failed, after);
    return failed;
}

/* Channels of x. */
static void some_added(const void *given, int64_t begin, int64_t end)
{
    const shared_windows *const s = given;
    if (added_channels(s->windows, s->a, s->b, s->result, begin, end, 0))
        fail(s);
}

static int share_added(const dy_windows *w, const int64_t shares, const DY_T *y, const DY_T *filters, DY_T *x, const dy_after *after)
{
    int failed = 0;
    const shared_windows all = {0, w, y, filters, x, 0, 0, 0, 0, &failed, 0};
    dy_share_freely(some_added, &all, w->in, (w->in + shares - 1) / shares);
    finish_shared(failed, after);
    return failed;
}

/* A filter that is not finite fails where it is multiplied by the zeros around y, too: these products are not part of the sum. */
static int shared_transposed(const dy_windows *w, const DY_T *y, const DY_T *filters, DY_T *x, const dy_after *after)
{
    if (!w->batch)
        return 0;
    const int adds = adds_windows(w), depthwise = is_depthwise(w);
    if ((depthwise || !adds) && !are_finite(filters, w->groups * w->out * w->in * count(w->kernel)))
        return 1;
    if (depthwise)
        return share_depthwise(depthwise_transposed, 0, w, y, filters, x, after);
    const int64_t shares = image_shares(w), channels = adds && w->groups == 1 ? shares_of(w, w->in / ADDED_CHANNELS) : 1;
    if (shares < 2 && channels < 2)
        return (adds ? added_windows : transposed)(w, y, filters, x, after);
    if (shares < least(channels, dy_team->threads))
        return share_added(w, channels, y, filters, x, after);
    return share_images(adds ? added_windows : transposed, w, shares, y, w->groups * w->out * count(w->spots), filters, x,
                        w->groups * w->in * count(w->image), after);
}

/* The first share writes to the result, the others to `sums`. */
static void some_summed(const void *given, int64_t begin, int64_t end)
{
    const shared_windows *const s = given;
    const int64_t size = s->windows->groups * s->windows->out * s->windows->in * count(s->windows->kernel);
    dy_windows part = *s->windows;
    part.batch = end - begin;
    if (grad_weight(&part, s->a + begin * s->next_a, s->b + begin * s->next_result,
                    begin ? s->sums + (begin / s->apart - 1) * size : s->result))
        fail(s);
}

static int shared_grad_weight(const dy_windows *w, const DY_T *x, const DY_T *y, DY_T *filters)
{
    if (is_depthwise(w))
        return share_depthwise(depthwise_grad_weight, 1, w, x, y, filters, 0);
    const int64_t useful = count(w->spots), size = w->groups * w->out * w->in * count(w->kernel);
    if (!w->batch) {
        memset(filters, 0, size * sizeof(DY_T));
        return 0;
    }
    const int64_t summed = least(least(MOST_SUMS, w->batch), least(w->batch * useful / SUMMED_PLACES, work_of(w) / (SHARED / 2)));
    const int64_t channels = channel_shares(w, TURNED_CHANNELS);
    if (summed < 2)
        return channels > 1 ? share_channels(0, w, channels, x, y, filters) : grad_weight(w, x, y, filters);
    const int64_t apart = (w->batch + summed - 1) / summed, others = (w->batch + apart - 1) / apart - 1;
    DY_T *const sums = memory_of(sums_key, others * size * sizeof(DY_T));
    if (!sums)
        return 1;
    int failed = 0;
    const shared_windows all = {0, w, x, y, filters, sums, apart, w->groups * w->in * count(w->image),
                                w->groups * w->out * useful, &failed, 0};
    dy_share(some_summed, &all, w->batch, apart);
    for (int64_t k = 0; k < others; k++)
        for (int64_t i = 0; i < size; i++)
            filters[i] += sums[k * size + i];
    return failed;
}

enum { FORWARD, TRANSPOSED, GRAD_WEIGHT };      /* the functions, as in the table of convolutions.py */

/* The algorithm that rules choose for windows as a whole. */
static int64_t rules_for(const int64_t function, const dy_windows *windows)
{
    const dy_windows flat = flattened(windows), *const w = &flat;
    if (is_depthwise(windows))
        return DY_DEPTHWISE;
    if (function == GRAD_WEIGHT)
        return way_of_grad_weight(w);
    if (function == TRANSPOSED && adds_windows(windows))
        return DY_ADDED;
    if (function == FORWARD && are_patches(w))
        return DY_GATHERED;
    const layout l = lay_out(w);
    const places at = function == FORWARD ? places_of(l.plane, w->spots) : places_of_classes(w);
    return is_sparse(&at, function == FORWARD ? w->out : w->in) ? DY_GATHERED : DY_IN_PLACE;
}

/* The algorithms for these windows, the one that rules choose first; returns how many. */
int64_t algorithms(const int64_t function, const dy_windows *windows, int64_t *found)
{
    dy_windows w = *windows;
    w.algorithm = DY_BY_RULES;
    const int64_t first = rules_for(function, &w);
    const int is[] = {0, function != GRAD_WEIGHT, function != GRAD_WEIGHT, function == TRANSPOSED && may_add_windows(&w), is_depthwise(&w),
                      function == GRAD_WEIGHT && w.out <= HEIGHT, function == GRAD_WEIGHT,
                      function == GRAD_WEIGHT && w.batch * count(w.spots) <= DEPTH};
    int64_t count = 0;
    found[count++] = first;
    for (int64_t k = DY_IN_PLACE; k <= DY_PANELS; k++)
        if (is[k] && k != first)
            found[count++] = k;
    return count;
}
