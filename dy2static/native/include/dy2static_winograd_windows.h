/* Convolutions of plain arrays (batch, channels, rows, columns), or (batch, channels, slices, rows, columns), by Winograd's algorithm,
   some images at a time: they are turned to blocks of channels, and their results back, while they are in the cache.  The derivative
   by the image is such a convolution, too, with flipped filters. */
#ifndef DY2STATIC_WINOGRAD_WINDOWS_H
#define DY2STATIC_WINOGRAD_WINDOWS_H

#include "dy2static_blocked_turns.h"
#include "dy2static_winograd.h"

enum { IMAGES = 1 << 17 };                              /* elements of x and y that are turned at a time, if an image has not more */

/* blocks: the windows of one image, with the channels of all its taps; in: channels of one slice.  windows, direct, filters: of the function to call where a result is not finite.  turned: the
   transformed filters.  together: images at a time. */
typedef struct {
    const dy_blocks *blocks;
    const slices *deep;
    int64_t in;
    const dy_windows *windows;
    dy_convolution_f32 *direct;
    const DY_T *x, *filters, *turned;
    DY_T *y;
    const dy_after *after;
    int64_t together;
    int *failed;
} plain_images;

static int64_t places_of_image(const dy_blocks *w, const slices *d) { return d->image * w->image[0] * w->image[1]; }
static int64_t places_of_result(const dy_blocks *w, const slices *d) { return d->spots * w->spots[0] * w->spots[1]; }

/* `count` of the images from `first` on. */
static int turned_images(const plain_images *p, const int64_t first, const int64_t count)
{
    dy_blocks w = *p->blocks;
    const int64_t read = places_of_image(&w, p->deep), made = places_of_result(&w, p->deep);
    const DY_T *const x = p->x + first * p->in * read;
    DY_T *const y = p->y + first * w.out * made;
    DY_T *const own = room(images_key, p->together * (in_whole(p->in) * read + in_whole(w.out) * made) * sizeof(DY_T));
    w.batch = count * p->deep->spots;
    if (own) {
        DY_T *const result = own + count * in_whole(p->in) * read;
        blocks_of(count, p->in, read, x, own);
        if (!winograd(&w, p->deep, own, p->filters, p->turned, 0, 0, 0, result)) {
            blocks_back(count, w.out, made, result, y);
            return 0;
        }
    }
    dy_windows some = *p->windows;
    some.batch = count;
    return p->direct(&some, x, p->filters, y, 0);
}

static void some_images(const void *given, int64_t begin, int64_t end)
{
    const plain_images *const p = given;
    for (int64_t n = begin; n < end; n += p->together) {
        const int64_t count = least(p->together, end - n);
        if (turned_images(p, n, count)) {
            __atomic_store_n(p->failed, 1, __ATOMIC_RELAXED);
            return;
        }
        for (int64_t k = 0; p->after && k < p->after->count; k++) {
            const dy_finish *const f = p->after->all + k;
            for (int64_t i = n; i < n + count; i++)
                f->body(f->given, i * f->unit, (i + 1) * f->unit);
        }
    }
}

/* The slices of an image; of the derivative by the image, x and y change places. */
static slices slices_of_windows(const dy_windows *w, const int transposed)
{
    const int64_t taps = w->kernel[0];
    return transposed ? (slices){taps, w->spots[0], w->image[0], taps - 1 - w->pad[0]} : (slices){taps, w->image[0], w->spots[0], w->pad[0]};
}

/* The windows of one image, with the channels of all taps. */
static dy_blocks blocks_of_windows(const dy_windows *w, const int transposed)
{
    const int64_t in = channels_of_taps(transposed ? w->out : w->in, w->kernel[0]);
    dy_blocks b = {transposed ? w->image[0] : w->spots[0], in, transposed ? w->in : w->out, 1, {0}, {3, 3}, {0}, {1, 1}, {0}, {0}, 0, 0,
                   __builtin_inff(), DY_BLOCKS_WINOGRAD};
    for (int axis = 0; axis < 2; axis++) {
        b.image[axis] = (transposed ? w->spots : w->image)[axis + 1];
        b.spots[axis] = (transposed ? w->image : w->spots)[axis + 1];
        b.dilate[axis] = w->dilate[axis + 1];
        b.pad[axis] = transposed ? 2 * b.dilate[axis] - w->pad[axis + 1] : w->pad[axis + 1];
    }
    return b;
}

/* x, y: what is read and written, in the order of `direct`, which takes what this does not.  Nonzero if there is not enough memory. */
static int winograd_windows(const dy_windows *w, const int transposed, dy_convolution_f32 *direct, const DY_T *x, const DY_T *filters,
                            DY_T *y, const dy_after *after)
{
    const dy_blocks b = blocks_of_windows(w, transposed);
    const slices deep = slices_of_windows(w, transposed);
    dy_blocks slice = b;
    slice.in = transposed ? w->out : w->in;
    slice.kernel[0] *= deep.taps;                       /* filters are kept with all their taps */
    const channel_groups groups = groups_of(&slice);
    const int64_t panels = panels_of(&slice, &groups);
    const transformed all = {&groups, filters, panels, 4, deep.taps, transposed, 0};
    const int64_t elements = panels * FORMS * forms_apart(&all);
    const DY_T *const kept = transposed ? 0 : kept_filters(&slice, filters, DY_BLOCKS_WINOGRAD, elements, transform_all, &all);
    DY_T *const own = kept ? 0 : room(filters_key, elements * sizeof(DY_T));
    if (!kept && !own)
        return direct(w, x, filters, y, after);
    if (!kept)
        transform_all(&all, own);
    const int64_t image = slice.in * places_of_image(&b, &deep) + b.out * places_of_result(&b, &deep);
    const int64_t threads = dy_team ? dy_team->threads : 1;
    const int64_t squares = w->batch * deep.spots * pairs_of(&b, 0) * pairs_of(&b, 1);
    const int64_t shares = threads > 1 ? most(1, least(2 * threads, squares / MANY_SQUARES)) : 1;     /* of few, each reads all filters */
    const int64_t share = (w->batch + shares - 1) / shares;
    int failed = 0;
    const plain_images p = {&b, &deep, slice.in, w, direct, x, filters, kept ? kept : own, y, after, least(share, most(1, IMAGES / image)), &failed};
    dy_share_freely(some_images, &p, w->batch, share);
    return failed;
}

#endif
