/* Convolutions whose filters take one channel each (depthwise), over one or two axes, and their derivatives: the functions of a library
   of their own, which takes no other windows.

   Threads share images, or channels where images are few; the sums of `grad_weight` are over all images of a channel, in
   the same order on any number of threads. */
#include "dy2static_flat.h"
#include "dy2static_shares.h"
#include "dy2static_finite_filters.h"

enum {
    DEPTHWISE_SHARE = 1 << 19,                  /* multiplications for which it is worth to call another thread */
    DEPTHWISE_EACH = 512                        /* those in the time that a plane takes besides */
};

/* As `Windows.is_depthwise` of convolutions.py. */
static int is_depthwise(const dy_windows *w)
{
    return w->in == 1 && w->groups > 1
           && w->image[0] == 1 && w->kernel[0] == 1 && w->spots[0] == 1 && !w->pad[0]
           && w->kernel[1] <= MOST_ALONG && w->kernel[2] <= MOST_ALONG && w->out * count(w->kernel) <= MOST_TAPS
           && w->stride[1] * w->stride[2] <= MOST_KINDS;
}

/* What a share does with some channels of some images. */
typedef struct depthwise {
    const dy_windows *windows;
    const DY_T *a, *b;                              /* the other operands, in the order of the function */
    DY_T *result;
    const dy_after *after;
    int64_t image, images;                          /* those of this share */
    int (*function)(const struct depthwise *, int64_t, int64_t);
    int *failed;
} depthwise;

static int depthwise_forward(const depthwise *d, const int64_t begin, const int64_t end)
{
    const dy_windows *const w = d->windows;
    const int64_t useful = count(w->spots), taps = count(w->kernel), kinds = w->stride[1] * w->stride[2], each = count(w->image);
    const line down = line_of_window(w, 1), across = line_of_window(w, 2);
    const int64_t pitch = most(w->spots[2], alike(w->image[2], 0, w->stride[2])), direct = pitch == w->spots[2];
    const flat_planes p = lay_flat(pitch, alike(w->image[1], 0, w->stride[1]), w->spots[1], &down, &across, 1);
    const int64_t span = (w->spots[1] - 1) * pitch + w->spots[2];
    const int64_t tables = w->kernel[2] * mask_length(pitch), strips = rounded(span) + strip_rows(pitch);
    flat_filter f;
    DY_T own[MOST_TAPS], *const planes = memory((kinds * p.each + tables + strips) * sizeof(DY_T));
    if (!planes)
        return 1;
    find_flat(&f, w, &p, &down, &across, w->stride[2], 1);
    memset(planes, 0, kinds * p.each * sizeof(DY_T));
    DY_T *const last = fill_masks(&f, pitch, w->spots[1], pitch, planes + kinds * p.each), *const strip = last + strip_rows(pitch);
    for (int64_t n = d->image; n < d->image + d->images; n++) {
        for (int64_t g = begin; g < end; g++) {
            fill_flat(planes, &p, w, d->a + (n * w->groups + g) * each);
            for (int64_t c = g * w->out; c < (g + 1) * w->out; c++) {
                DY_T *const to = d->result + (n * w->groups * w->out + c) * useful;
                take_taps(own, &f, d->b + c * taps);
                flat_product(&f, pitch, span, own, planes, direct ? to : strip, last);
                if (!direct)
                    copy_rows(to, w->spots[2], strip, pitch, w->spots[1], w->spots[2]);
            }
        }
        finish(d->after, n, n + 1);
    }
    return 0;
}

static int depthwise_transposed(const depthwise *d, const int64_t begin, const int64_t end)
{
    const dy_windows *const w = d->windows;
    const int64_t useful = count(w->spots), taps = count(w->kernel), each = count(w->image);
    const int64_t kinds = w->stride[1] * w->stride[2], rows = alike(w->image[1], 0, w->stride[1]);
    const int64_t pitch = most(w->spots[2], alike(w->image[2], 0, w->stride[2])), direct = kinds == 1 && pitch == w->image[2];
    const int64_t apart = rounded(rows * pitch);
    line down[MOST_KINDS], across[MOST_KINDS];
    for (int64_t k = 0; k < kinds; k++) {
        down[k] = line_of_element(w, 1, k / w->stride[2]);
        across[k] = line_of_element(w, 2, k % w->stride[2]);
    }
    const flat_planes p = lay_flat(pitch, w->spots[1], rows, down, across, kinds);
    const int64_t tables = w->stride[1] * w->kernel[2] * mask_length(pitch), strips = kinds * apart + strip_rows(pitch);
    const int64_t held = (kinds * sizeof(flat_filter) + 63) / 64 * 64;
    flat_filter *const filters = memory(held + (w->out * p.each + tables + strips) * sizeof(DY_T));
    if (!filters)
        return 1;
    DY_T own[MOST_TAPS], *const planes = (DY_T *)((char *)filters + held);
    DY_T *parts = planes + w->out * p.each;
    for (int64_t k = 0; k < kinds; k++) {
        find_flat(filters + k, w, &p, down + k, across + k, 1, w->out);
        parts = fill_masks(filters + k, pitch, rows, pitch, parts);
    }
    DY_T *const last = parts + kinds * apart;
    memset(planes, 0, w->out * p.each * sizeof(DY_T));
    for (int64_t n = d->image; n < d->image + d->images; n++) {
        for (int64_t g = begin; g < end; g++) {
            const DY_T *const y = d->a + (n * w->groups + g) * w->out * useful;
            DY_T *const x = d->result + (n * w->groups + g) * each;
            for (int64_t c = 0; c < w->out; c++)
                copy_rows(planes + c * p.each + p.front, pitch, y + c * useful, w->spots[2], w->spots[1], w->spots[2]);
            for (int64_t k = 0; k < kinds; k++) {
                const int64_t span = alike(w->image[1], k / w->stride[2], w->stride[1]) * pitch;
                take_taps(own, filters + k, d->b + g * w->out * taps);
                flat_product(filters + k, pitch, span, own, planes, direct ? x : parts + k * apart, last);
            }
            if (!direct)
                join_flat(x, w, parts, pitch, apart);
        }
        finish(d->after, n, n + 1);
    }
    return 0;
}

static int depthwise_grad_weight(const depthwise *d, const int64_t begin, const int64_t end)
{
    const dy_windows *const w = d->windows;
    const int64_t useful = count(w->spots), taps = count(w->kernel), kinds = w->stride[1] * w->stride[2], each = count(w->image);
    const line down = line_of_window(w, 1), across = line_of_window(w, 2);
    const int64_t pitch = most(w->spots[2], alike(w->image[2], 0, w->stride[2]));
    const flat_planes p = lay_flat(pitch, alike(w->image[1], 0, w->stride[1]), w->spots[1], &down, &across, 1);
    const int64_t span = w->spots[1] * pitch, held = rounded(span + WIDTH), direct = pitch == w->spots[2] && span % WIDTH == 0;
    flat_filter f;
    const int64_t tables = w->kernel[2] * mask_length(pitch), vectors = w->out * taps * WIDTH;
    DY_T *const planes = memory((kinds * p.each + tables + held + vectors) * sizeof(DY_T));
    if (!planes)
        return 1;
    find_flat(&f, w, &p, &down, &across, w->stride[2], 1);
    memset(planes, 0, kinds * p.each * sizeof(DY_T));
    DY_T *const row = fill_masks(&f, pitch, w->spots[1], w->spots[2], planes + kinds * p.each), *const sums = row + held;
    memset(row, 0, held * sizeof(DY_T));
    for (int64_t g = begin; g < end; g++) {
        memset(sums, 0, vectors * sizeof(DY_T));
        for (int64_t n = 0; n < w->batch; n++) {
            fill_flat(planes, &p, w, d->a + (n * w->groups + g) * each);
            for (int64_t c = 0; c < w->out; c++) {
                const DY_T *const y = d->b + ((n * w->groups + g) * w->out + c) * useful;
                if (!direct)
                    copy_rows(row, pitch, y, w->spots[2], w->spots[1], w->spots[2]);
                flat_dots(&f, pitch, span, direct ? y : row, planes, sums + c * taps * WIDTH);
            }
        }
        for (int64_t c = 0; c < w->out; c++)
            for (int64_t k = 0; k < taps; k++)
                d->result[(g * w->out + c) * taps + f.met[k]] = total(sums + (c * taps + k) * WIDTH);
    }
    return 0;
}

static void some_depthwise_channels(const void *given, int64_t begin, int64_t end)
{
    const depthwise *const d = given;
    if (d->function(d, begin, end))
        __atomic_store_n(d->failed, 1, __ATOMIC_RELAXED);
}

static void some_depthwise_images(const void *given, int64_t begin, int64_t end)
{
    depthwise d = *(const depthwise *)given;
    d.image = begin;
    d.images = end - begin;
    some_depthwise_channels(&d, 0, d.windows->groups);
}

/* Windows along one axis are put upright: in rows of one element nothing reaches beyond a side. */
static dy_windows upright(const dy_windows *w)
{
    dy_windows turned = *w;
    if (w->image[1] != 1 || w->kernel[1] != 1 || w->spots[1] != 1 || w->pad[1])
        return turned;
    turned.image[1] = w->image[2], turned.kernel[1] = w->kernel[2], turned.spots[1] = w->spots[2];
    turned.stride[1] = w->stride[2], turned.pad[1] = w->pad[2], turned.dilate[1] = w->dilate[2];
    turned.image[2] = turned.kernel[2] = turned.spots[2] = turned.stride[2] = turned.dilate[2] = 1;
    turned.pad[2] = 0;
    return turned;
}

/* One of the three functions; `whole`: all images of a channel are to be in one share. */
static int share_depthwise(int (*function)(const depthwise *, int64_t, int64_t), const int whole, const dy_windows *windows,
                           const DY_T *a, const DY_T *b, DY_T *result, const dy_after *after)
{
    int failed = 0;
    const dy_windows turned = upright(windows), *const w = &turned;
    const int64_t work = w->batch * w->groups * w->out * (count(w->kernel) * count(w->spots) + DEPTHWISE_EACH);
    const int64_t shares = dy_team ? least(2 * dy_team->threads, work / DEPTHWISE_SHARE) : 1;
    const int64_t images = whole ? 1 : most(1, least(shares, w->batch));
    depthwise all = {w, a, b, result, after, 0, w->batch, function, &failed};
    if (shares < 2 || images >= dy_team->threads) {
        dy_share_freely(some_depthwise_images, &all, w->batch, (w->batch + images - 1) / images);
        return failed;
    }
    all.after = 0;
    dy_share_freely(some_depthwise_channels, &all, w->groups, (w->groups + shares - 1) / shares);
    for (int64_t k = 0; !failed && after && k < after->count; k++)
        dy_share(after->all[k].body, after->all[k].given, after->all[k].count, after->all[k].step);
    return failed;
}

static int shared_forward(const dy_windows *w, const DY_T *x, const DY_T *filters, DY_T *y, const dy_after *after)
{
    if (!is_depthwise(w))
        return 1;
    return w->batch ? share_depthwise(depthwise_forward, 0, w, x, filters, y, after) : 0;
}

/* A filter that is not finite fails where it is multiplied by the zeros around y, too: these products are not part of the sum. */
static int shared_transposed(const dy_windows *w, const DY_T *y, const DY_T *filters, DY_T *x, const dy_after *after)
{
    if (!is_depthwise(w))
        return 1;
    if (!w->batch)
        return 0;
    return are_filters_finite(w, filters) ? share_depthwise(depthwise_transposed, 0, w, y, filters, x, after) : 1;
}

static int shared_grad_weight(const dy_windows *w, const DY_T *x, const DY_T *y, DY_T *filters)
{
    return is_depthwise(w) ? share_depthwise(depthwise_grad_weight, 1, w, x, y, filters, 0) : 1;
}
