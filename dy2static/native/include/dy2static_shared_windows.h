/* Convolutions cut into shares for threads: images, or groups or channels where images are few.

   Sums over images are made by shares where there are many places for each filter, on one thread, too, so that they are the
   same for any number of threads.  Whatever else is cut, each element is computed in the same way. */
#include "dy2static_shares.h"
#include "dy2static_added_windows.h"
#include "dy2static_finite_filters.h"

enum {
    SHARED = 1 << 21,                           /* multiplications for which it is worth to call others */
    SUMMED_PLACES = 2048,                       /* fewer do not repay that a share has sums of its own */
    LEAST_CHANNELS = 32, TURNED_CHANNELS = 64,  /* fewer do not repay that a share copies images for itself */
    ADDED_CHANNELS = 12,                        /* of x: each share lays y into panels for itself */
    PACKING = 64,                               /* multiplications in the time in which one element is packed */
    MOST_SUMS = 8,
    ADDED_AT_ONCE = 1 << 14                     /* elements of sums that a share adds */
};

typedef int convolution(const dy_windows *, const DY_T *, const DY_T *, DY_T *, const dy_after *);
typedef int channels_of_x(const dy_windows *, const DY_T *, const DY_T *, DY_T *, int64_t begin, int64_t end, const dy_after *);

typedef struct {
    convolution *function;
    channels_of_x *channels;
    const dy_windows *windows;
    const DY_T *a, *b;                          /* the other operands, in the order of the function */
    DY_T *result;
    int64_t next_a, next_b, next_result;        /* from one image, group or channel to the next */
    int *failed;
    const dy_after *after;
} shared_windows;

static int64_t image_of(const dy_windows *w) { return w->in * count(w->image); }
static int64_t result_of(const dy_windows *w) { return w->out * count(w->spots); }

static int64_t work_of(const dy_windows *w) { return w->batch * w->groups * filters_of(w) * count(w->spots); }

/* How many shares: two for each thread, if there is so much work. */
static int64_t shares_of(const dy_windows *w, const int64_t most_shares)
{
    return dy_team ? least(least(2 * dy_team->threads, most_shares), work_of(w) / (SHARED / 2)) : 1;
}

static void fail(const shared_windows *s) { __atomic_store_n(s->failed, 1, __ATOMIC_RELAXED); }

/* The part of the windows that begins with this image, group or channel. */
static void compute(const shared_windows *s, const dy_windows *part, const int64_t begin, const dy_after *after)
{
    if (s->function(part, s->a + begin * s->next_a, s->b + begin * s->next_b, s->result + begin * s->next_result, after))
        fail(s);
}

static void some_images(const void *given, int64_t begin, int64_t end)
{
    const shared_windows *const s = given;
    dy_windows part = *s->windows;
    const dy_after after = s->after ? (dy_after){s->after->all, s->after->count, begin} : (dy_after){0};
    part.batch = end - begin;
    compute(s, &part, begin, &after);
}

static int share_images(convolution *function, const dy_windows *w, const int64_t shares, const DY_T *a, const int64_t next_a,
                        const DY_T *filters, DY_T *result, const int64_t next_result, const dy_after *after)
{
    int failed = 0;
    const shared_windows all = {function, 0, w, a, filters, result, w->groups * next_a, 0, w->groups * next_result, &failed, after};
    dy_share_freely(some_images, &all, w->batch, (w->batch + shares - 1) / shares);
    return failed;
}

static void some_groups(const void *given, int64_t begin, int64_t end)
{
    const shared_windows *const s = given;
    dy_windows part = *s->windows;
    part.groups = end - begin;
    part.next_x = step_of_x(s->windows);
    part.next_y = step_of_y(s->windows);
    compute(s, &part, begin, 0);
}

/* Channels of y. */
static void some_channels(const void *given, int64_t begin, int64_t end)
{
    const shared_windows *const s = given;
    dy_windows part = *s->windows;
    part.out = end - begin;
    part.next_y = step_of_y(s->windows);
    compute(s, &part, begin, 0);
}

/* Channels of x: what is summed over those of y, or filters. */
static void some_read_channels(const void *given, int64_t begin, int64_t end)
{
    const shared_windows *const s = given;
    if (s->channels(s->windows, s->a, s->b, s->result, begin, end, 0))
        fail(s);
}

/* What comes after shares of groups or channels, none of which has made an image as a whole. */
static int finish_shared(const int failed, const dy_after *after)
{
    for (int64_t k = 0; !failed && after && k < after->count; k++)
        dy_share(after->all[k].body, after->all[k].given, after->all[k].count, after->all[k].step);
    return failed;
}

/* So many channels of a share, of `channels`. */
static int64_t channels_of_share(const int64_t channels, const int64_t shares) { return (channels / shares + 3) / 4 * 4; }

/* Shares of images pack the filters for themselves: not so many that this takes an eighth of the time. */
static int64_t image_shares(const dy_windows *w)
{
    return shares_of(w, least(w->batch, work_of(w) / (8 * PACKING * w->groups * filters_of(w))));
}

/* The same where nothing else can be shared: not so many that it takes half of the time. */
static int64_t more_image_shares(const dy_windows *w)
{
    const int64_t shares = shares_of(w, least(w->batch, work_of(w) / (PACKING * w->groups * filters_of(w))));
    return dy_team ? least(shares, dy_team->threads) : shares;
}

/* The same where filters are not packed, but each share of channels would gather images for itself: one for each thread. */
static int64_t gathered_image_shares(const dy_windows *w)
{
    return dy_team ? least(shares_of(w, w->batch), dy_team->threads) : 1;
}

static int gathers_forward(const dy_windows *windows)
{
    const dy_windows flat = flattened(windows), *const w = &flat;
    const places at = places_of(lay_out(w).plane, w->spots);
    return forward_gathers(w, &at);
}

/* Shares of groups if there are several, else of channels, with `least_channels` of them at least. */
static int64_t part_shares(const dy_windows *w, const int64_t channels, const int64_t least_channels)
{
    return shares_of(w, w->groups > 1 ? w->groups : channels / least_channels);
}

static int share_groups(convolution *function, const dy_windows *w, const int64_t shares, const DY_T *a, const int64_t next_a,
                        const DY_T *b, const int64_t next_b, DY_T *result, const int64_t next_result)
{
    int failed = 0;
    const shared_windows all = {function, 0, w, a, b, result, next_a, next_b, next_result, &failed, 0};
    dy_share_freely(some_groups, &all, w->groups, (w->groups + shares - 1) / shares);
    return failed;
}

/* Channels of y: with their filters they are results, or with y they give filters; next_b, next_result: from one to the next. */
static int share_channels(convolution *function, const dy_windows *w, const int64_t shares, const DY_T *a, const DY_T *b,
                          const int64_t next_b, DY_T *result, const int64_t next_result)
{
    int failed = 0;
    const shared_windows all = {function, 0, w, a, b, result, 0, next_b, next_result, &failed, 0};
    dy_share_freely(some_channels, &all, w->out, channels_of_share(w->out, shares));
    return failed;
}

static int share_read_channels(channels_of_x *channels, const dy_windows *w, const int64_t shares, const DY_T *a, const DY_T *b,
                               DY_T *result)
{
    int failed = 0;
    const shared_windows all = {0, channels, w, a, b, result, 0, 0, 0, &failed, 0};
    dy_share_freely(some_read_channels, &all, w->in, channels_of_share(w->in, shares));
    return failed;
}

static int shared_forward(const dy_windows *w, const DY_T *x, const DY_T *filters, DY_T *y, const dy_after *after)
{
    if (!w->batch)
        return 0;
    const int64_t parts = part_shares(w, w->out, LEAST_CHANNELS);
    const int64_t images = gathers_forward(w) ? gathered_image_shares(w) : parts < 2 ? more_image_shares(w) : image_shares(w);
    if (images < 2 && parts < 2)
        return forward(w, x, filters, y, after);
    if (images >= least(parts, dy_team->threads))
        return share_images(forward, w, images, x, image_of(w), filters, y, result_of(w), after);
    if (w->groups > 1)
        return finish_shared(share_groups(forward, w, parts, x, image_of(w), filters, filters_of(w), y, result_of(w)), after);
    return finish_shared(share_channels(forward, w, parts, x, filters, filters_of(w) / w->out, y, count(w->spots)), after);
}

/* A filter that is not finite fails where it is multiplied by the zeros around y, too: these products are not part of the sum. */
static int shared_transposed(const dy_windows *w, const DY_T *y, const DY_T *filters, DY_T *x, const dy_after *after)
{
    if (!w->batch)
        return 0;
    const int adds = adds_windows(w);
    if (!adds && !are_filters_finite(w, filters))
        return 1;
    convolution *const whole = adds ? added_windows : transposed;
    const int64_t parts = part_shares(w, w->in, adds ? ADDED_CHANNELS : LEAST_CHANNELS);
    const int64_t images = parts < 2 ? more_image_shares(w) : image_shares(w);
    if (images < 2 && parts < 2)
        return whole(w, y, filters, x, after);
    if (images >= least(parts, dy_team->threads))
        return share_images(whole, w, images, y, result_of(w), filters, x, image_of(w), after);
    if (w->groups > 1)
        return finish_shared(share_groups(whole, w, parts, y, result_of(w), filters, filters_of(w), x, image_of(w)), after);
    return finish_shared(share_read_channels(adds ? added_channels : transposed_channels, w, parts, y, filters, x), after);
}

static int gradient(const dy_windows *w, const DY_T *x, const DY_T *y, DY_T *filters, const dy_after *after)
{
    (void)after;
    return grad_weight(w, x, y, filters);
}

static int turned_channels(const dy_windows *w, const DY_T *x, const DY_T *y, DY_T *filters, const int64_t begin, const int64_t end,
                           const dy_after *after)
{
    const dy_windows flat = flattened(w);
    (void)after;
    return grad_weight_turned(&flat, x, y, filters, begin, end);
}

/* Shares of `each` images with sums of their own: the first one writes to the result, the others to `sums`, `size` elements each. */
typedef struct {
    shared_windows of_images;
    DY_T *sums;
    int64_t each, size;
} summed_images;

static void some_summed(const void *given, int64_t begin, int64_t end)
{
    const summed_images *const s = given;
    shared_windows some = s->of_images;
    some.result = begin ? s->sums + (begin / s->each - 1) * s->size : some.result;
    some_images(&some, begin, end);
}

/* Adds sums to the result, those of all shares. */
static void add_sums(const void *given, int64_t begin, int64_t end)
{
    const summed_images *const s = given;
    const int64_t others = (s->of_images.windows->batch + s->each - 1) / s->each - 1;
    for (int64_t k = 0; k < others; k++)
        for (int64_t i = begin; i < end; i++)
            s->of_images.result[i] += s->sums[k * s->size + i];
}

static int shared_grad_weight(const dy_windows *w, const DY_T *x, const DY_T *y, DY_T *filters)
{
    const int64_t useful = count(w->spots), size = w->groups * filters_of(w);
    if (!w->batch) {
        memset(filters, 0, size * sizeof(DY_T));
        return 0;
    }
    const int64_t summed = least(least(MOST_SUMS, w->batch), least(w->batch * useful / SUMMED_PLACES, work_of(w) / (SHARED / 2)));
    const int turned = w->groups == 1 && w->in > w->out && way_of_grad_weight(w) == DY_TURNED;      /* the larger side is cut */
    const int64_t wanted = part_shares(w, turned ? w->in : w->out, TURNED_CHANNELS);
    const int copies = w->groups == 1 && (turned || !is_plane(w));      /* each share turns y, or fills planes */
    const int64_t parts = copies && wanted > 1 ? least(wanted, dy_team->threads) : wanted;
    if (summed < 2 && parts < 2)
        return grad_weight(w, x, y, filters);
    if (summed < 2 && w->groups > 1)
        return share_groups(gradient, w, parts, x, image_of(w), y, result_of(w), filters, filters_of(w));
    if (summed < 2 && turned)
        return share_read_channels(turned_channels, w, parts, x, y, filters);
    if (summed < 2)
        return share_channels(gradient, w, parts, x, y, useful, filters, filters_of(w) / w->out);
    const int64_t each = (w->batch + summed - 1) / summed, others = (w->batch + each - 1) / each - 1;
    DY_T *const sums = memory_of(sums_key, others * size * sizeof(DY_T));
    if (!sums)
        return 1;
    int failed = 0;
    const shared_windows images = {gradient, 0, w, x, y, filters, w->groups * image_of(w), w->groups * result_of(w), 0, &failed, 0};
    const summed_images all = {images, sums, each, size};
    dy_share(some_summed, &all, w->batch, each);
    dy_share(add_sums, &all, size, ADDED_AT_ONCE);
    return failed;
}

enum { FORWARD, TRANSPOSED, GRAD_WEIGHT };      /* the functions, as in the table of convolutions.py */

/* The algorithm that rules choose for windows as a whole. */
static int64_t rules_for(const int64_t function, const dy_windows *windows)
{
    const dy_windows flat = flattened(windows), *const w = &flat;
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
    const int is[] = {0, function != GRAD_WEIGHT, function != GRAD_WEIGHT, function == TRANSPOSED && may_add_windows(&w), 0,
                      function == GRAD_WEIGHT && w.out <= HEIGHT, function == GRAD_WEIGHT,
                      function == GRAD_WEIGHT && w.batch * count(w.spots) <= DEPTH};
    int64_t count = 0;
    found[count++] = first;
    for (int64_t k = DY_IN_PLACE; k <= DY_PANELS; k++)
        if (is[k] && k != first)
            found[count++] = k;
    return count;
}
