/* Convolutions whose filters take one channel each, for arrays in blocks of channels.

   A vector holds neighbouring channels, a tile some neighbouring places of a row.  Taps above and below the image are left out; of
   filters of three by three those beside it, too.  For other filters rows are copied with what is beside them, each once, into as
   many as one row of the result reads: these stay in the first cache.  Where taps are left out, a filter that is not finite fails:
   its products with the zeros beside the image would be NaN.

   Before the include: DY_T, which is float, and DY_PIECE. */
#ifndef DY2STATIC_BLOCKED_DEPTHWISE_H
#define DY2STATIC_BLOCKED_DEPTHWISE_H

#include "dy2static_blocked_nine.h"

/* Places that are `step` apart in x, from `at` of each row on; the `right` taps of a row are `across` apart. */
DY_INLINE void each_tile(const int places, const int64_t right, const int64_t across, const int64_t step, const each_window *window,
                         const int64_t at, DY_T *y, const after_each *a)
{
    dy_vector sum[EACH_PLACES];
#pragma GCC unroll 8
    for (int p = 0; p < places; p++)
        sum[p] = (dy_vector){0};
    for (int64_t i = 0; i < window->down; i++) {
        const DY_T *const from = window->rows[i] + at, *const filters = window->filters[i];
        for (int64_t j = 0; j < right; j++) {
            const dy_vector left = load(filters + j * BLOCK);
#pragma GCC unroll 8
            for (int p = 0; p < places; p++)
                sum[p] += left * load(from + j * across + p * step);
        }
    }
    finish_each(places, sum, y, a);
}

/* Functions by how many places there are. */
#define EACH(P)                                                                                                         \
    static void each_##P(const dy_blocks *w, const each_window *window, int64_t at, each_edge edge, DY_T *y,            \
                         const after_each *a)                                                                           \
    {                                                                                                                   \
        (void)edge;                                                                                                     \
        each_tile(P, w->kernel[1], w->dilate[1] * BLOCK, w->stride[1] * BLOCK, window, at, y, a);                       \
    }
EACH(1) EACH(2) EACH(3) EACH(4) EACH(5) EACH(6) EACH(7) EACH(8)
static each_tiles *const each_of[] = {0, each_1, each_2, each_3, each_4, each_5, each_6, each_7, each_8};

/* One row of the result for a vector of channels.  soon: rows to be fetched meanwhile, or null. */
static void each_row(const each_channel *e, const each_window *window, const DY_T *soon, DY_T *y, const after_each *a)
{
    const dy_blocks *const w = e->w;
    const int64_t count = e->tiles.count;
    const int first = w->pad[1] > 0, last = overhang(w) > 0;
    for (int64_t t = 0, p = 0, q; t < count; t++, p = q) {
        q = p + places_of_tile(&e->tiles, t);
        if (soon)
            fetch_rows(w, soon, p, q);
        e->of[q - p](w, window, p * w->stride[1] * BLOCK, (each_edge){first && !t, last && t == count - 1}, y + p * BLOCK, a);
    }
}

/* A block of an image, whose place in the result is `y`. */
static void place_block(const each_channel *e, image_rows *source, const each_block *block, DY_T *y)
{
    const dy_blocks *const w = e->w;
    for (int64_t i = 0; i < w->spots[0]; i++) {
        each_window window;
        window.down = 0;
        for (int64_t r = 0, at = i * w->stride[0] - w->pad[0]; r < w->kernel[0]; r++, at += w->dilate[0])
            if (at >= 0 && at < w->image[0]) {
                window.rows[window.down] = image_row(source, at);
                window.filters[window.down++] = block->filters + r * e->depth * w->kernel[1] * BLOCK;
            }
        const DY_T *const soon = row_after(source, i * w->stride[0] - w->pad[0] + reach(w, 0) + 1, w);
        for (int v = 0; v < BLOCK; v += WIDTH) {
            const after_each a = after_of(e, block, v);
            each_row(e, &window, v ? 0 : soon, y + i * w->spots[1] * BLOCK + v, &a);
            for (int64_t r = 0; r < window.down; r++)
                window.rows[r] += WIDTH, window.filters[r] += WIDTH;
        }
    }
}

/* A power of two. */
static int64_t held_rows(const dy_blocks *w)
{
    int64_t count = 1;
    while (count < reach(w, 0) + 1)
        count *= 2;
    return count;
}

/* How many elements `image_rows` holds. */
static int64_t held_elements(const each_channel *e)
{
    return is_padded(e->w) && !e->edged ? held_rows(e->w) * extent(e->w, 1) * BLOCK : 0;
}

static image_rows begin_rows(const each_channel *e, DY_T *memory)
{
    const dy_blocks *const w = e->w;
    return (image_rows){0, 0, held_elements(e) ? memory : 0, w->image[1], w->pad[1], extent(w, 1), held_rows(w), 0};
}

static void some_each(const void *given, int64_t begin, int64_t end)
{
    const each_channel *const e = given;
    const dy_blocks *const w = e->w;
    const int64_t blocks = in_whole(w->in) / BLOCK, plane = w->image[0] * w->image[1] * BLOCK;
    DY_T *const memory = room(share_key, held_elements(e) * sizeof(DY_T));
    if (!memory) {
        __atomic_store_n(e->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    const int padded = is_padded(w);
    each_block block;
    image_rows source = begin_rows(e, memory);
    for (int64_t s = begin; s < end; s++) {                 /* the images of a block of channels follow each other */
        const int64_t c = s / w->batch, k = s % w->batch * blocks + c;
        if ((s == begin || s % w->batch == 0) && !take_block(e, c * BLOCK, &block) && padded)
            __atomic_store_n(e->failed, 1, __ATOMIC_RELAXED);
        source.x = e->x + k * plane;
        source.following = s + 1 < end && (s + 1) % w->batch ? source.x + blocks * plane : 0;
        source.next = 0;
        (e->of ? place_block : nine_block)(e, &source, &block, e->y + k * w->spots[0] * w->spots[1] * BLOCK);
    }
}

/* `y = limit(scale * conv(x, filters) + shift + residual)` with these tiles, or null, and so many channels that a filter takes. */
static int compute_each(const dy_blocks *w, each_tiles *const *of, const int64_t places, const int64_t depth, const int edged,
                        const DY_T *x, const DY_T *filters, const DY_T *scale, const DY_T *shift, const DY_T *residual, DY_T *y)
{
    int failed = 0;
    const each_channel all = {w, of, cut_evenly(w->spots[1], places), depth, edged, x, filters, scale, shift, residual, y, &failed};
    const int64_t work = w->spots[0] * w->spots[1] * w->kernel[0] * w->kernel[1] * depth * BLOCK;
    dy_share(some_each, &all, w->batch * in_whole(w->in) / BLOCK, most(1, SHARED_WORK / 4 / work));
    return failed;
}

/* A filter of each channel. */
static int blocks_depthwise(const dy_blocks *w, const DY_T *x, const DY_T *filters, const DY_T *scale, const DY_T *shift,
                            const DY_T *residual, DY_T *y)
{
    const int near = is_near(w);
    return compute_each(w, near ? 0 : each_of, EACH_PLACES, 1, near, x, filters, scale, shift, residual, y);
}

/* A convolution with filters of one tap, and a depthwise one of its result, some channels of an image at a time. */
typedef struct {
    dy_blocks_function *conv;
    dy_blocks first, second;                            /* of one image, and these channels */
    int64_t parts, taken, made;                         /* of an image: parts of its channels, elements of x and of the result */
    const DY_T *x;
    dy_blocks_factors of_first, of_second;
    DY_T *y;
    int *failed;
} channel_pairs;

static dy_blocks_factors factors_at(const dy_blocks_factors all, const int64_t channel, const int64_t taps)
{
    return (dy_blocks_factors){all.filters + channel * taps, all.scale ? all.scale + channel : 0, all.shift ? all.shift + channel : 0};
}

static void some_pairs(const void *given, int64_t begin, int64_t end)
{
    const channel_pairs *const p = given;
    const dy_blocks *const a = &p->first, *const b = &p->second;
    DY_T *const middle = room(images_key, a->out * a->spots[0] * a->spots[1] * sizeof(DY_T));
    int failed = !middle;
    for (int64_t k = begin; k < end && !failed; k++) {
        const int64_t n = k / p->parts, channel = k % p->parts * a->out;
        const dy_blocks_factors f = factors_at(p->of_first, channel, a->in);
        const dy_blocks_factors g = factors_at(p->of_second, channel, b->kernel[0] * b->kernel[1]);
        failed = p->conv(a, p->x + n * p->taken, f.filters, f.scale, f.shift, 0, middle)
            || blocks_depthwise(b, middle, g.filters, g.scale, g.shift, 0, p->y + n * p->made + channel * b->spots[0] * b->spots[1]);
    }
    if (failed)
        __atomic_store_n(p->failed, 1, __ATOMIC_RELAXED);
}

/* channels: whole blocks, of which the result has a multiple. */
static int blocks_pair(dy_blocks_function *conv, const dy_blocks *first, const dy_blocks *second, int64_t channels, const DY_T *x,
                       dy_blocks_factors of_first, dy_blocks_factors of_second, DY_T *y)
{
    int failed = 0;
    channel_pairs all = {conv, *first, *second, first->out / channels, in_whole(first->in) * first->image[0] * first->image[1],
                         first->out * second->spots[0] * second->spots[1], x, of_first, of_second, y, &failed};
    all.first.batch = all.second.batch = 1;
    all.first.out = all.second.in = all.second.out = all.second.groups = channels;
    dy_share(some_pairs, &all, first->batch * all.parts, 1);
    return failed;
}

#endif
