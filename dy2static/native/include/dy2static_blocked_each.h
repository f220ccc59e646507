/* What convolutions with filters of one channel and of small groups of channels share, for arrays in blocks of channels: windows, the rows
   of images that they read, the filters of a block, what follows the sums.

   Before the include: DY_T, which is float, and DY_PIECE. */
#ifndef DY2STATIC_BLOCKED_EACH_H
#define DY2STATIC_BLOCKED_EACH_H

#include "dy2static_blocked.h"

enum { EACH_PLACES = 8, EACH_TAPS = 400 };      /* places of a tile, at most; taps of a filter, a multiple of 16 */

/* What follows the sums of a vector of channels. */
typedef struct {
    dy_vector scale, shift, caps;
    int64_t adds, residual, relu;               /* whether there is a residual, and how far from the result */
} after_each;

/* What meets the taps of the windows of one row: for each row of the image that there is, its place and that of its filters. */
typedef struct {
    const DY_T *rows[EACH_TAPS], *filters[EACH_TAPS];
    int64_t down;
} each_window;

/* Whether the first tap of the first place of a tile, and the last one of its last place, are beside the image. */
typedef struct {
    int first, last;
} each_edge;

/* What follows the sums, and the places of the result. */
DY_INLINE void finish_each(const int places, dy_vector *sum, DY_T *y, const after_each *a)
{
#pragma GCC unroll 16
    for (int p = 0; p < places; p++)
        sum[p] = sum[p] * a->scale + a->shift;
    if (a->adds)
#pragma GCC unroll 16
        for (int p = 0; p < places; p++)
            sum[p] += load(y + a->residual + p * BLOCK);
    if (a->relu)
#pragma GCC unroll 16
        for (int p = 0; p < places; p++)
            sum[p] = limited(sum[p], a->caps);
#pragma GCC unroll 16
    for (int p = 0; p < places; p++)
        store(y + p * BLOCK, sum[p]);
}

typedef void each_tiles(const dy_blocks *w, const each_window *window, int64_t at, each_edge edge, DY_T *y, const after_each *a);

/* How far windows reach beyond the right side of the image, in places. */
static int64_t overhang(const dy_blocks *w) { return extent(w, 1) - w->pad[1] - w->image[1]; }

/* Filters of three by three that miss one column of the image at most on each side. */
static int is_nine(const dy_blocks *w)
{
    return w->kernel[0] == 3 && w->kernel[1] == 3 && w->dilate[1] == 1 && w->stride[1] <= 2 && w->pad[1] <= 1 && overhang(w) <= 1;
}

/* The rows of a block of an image, as windows see them.  held: the memory for a power of two of them, at least `reach + 1`; null where
   they can be read in the image.  next: the first one that has not been copied.  following: the same block of the next image, or null. */
typedef struct {
    const DY_T *x, *following;
    DY_T *held;
    int64_t width, left, columns, count, next;
} image_rows;

static void copy_blocks(const DY_T *from, DY_T *to, const int64_t count)
{
    for (int64_t k = 0; k < count * BLOCK; k += WIDTH)
        store(to + k, from ? load(from + k) : (dy_vector){0});
}

DY_INLINE const DY_T *image_row(image_rows *r, const int64_t at)
{
    const int64_t row = r->columns * BLOCK, end = least(r->columns, r->width + r->left);
    if (!r->held)
        return r->x + (at * r->width - r->left) * BLOCK;
    for (; r->next <= at; r->next++) {
        DY_T *const to = r->held + (r->next & (r->count - 1)) * row;
        copy_blocks(0, to, least(r->left, end));
        copy_blocks(r->x + r->next * r->width * BLOCK, to + r->left * BLOCK, end - r->left);
        copy_blocks(0, to + end * BLOCK, r->columns - end);
    }
    return r->held + (at & (r->count - 1)) * row;
}

/* What is computed: the tiles for it, of which so many are a row, and the channels that a filter takes.  of: null where rows are not
   tiles (dy2static_blocked_nine.h); edged: whether what is beside the image is left out, so that rows are not copied. */
typedef struct {
    const dy_blocks *w;
    each_tiles *const *of;
    even_tiles tiles;
    int64_t depth;
    int edged;
    const DY_T *x, *filters, *scale, *shift, *residual;
    DY_T *y;
    int *failed;
} each_channel;

/* Filters of (channels, rows, columns) as (rows, channels, columns). */
static void exchange_axes(DY_T *to, const DY_T *from, const int64_t filters, const int64_t channels, const int64_t rows, const int64_t columns)
{
    for (int64_t k = 0; k < filters; k++, to += channels * rows * columns)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t i = 0; i < rows; i++, from += columns)
                memcpy(to + (i * channels + c) * columns, from, columns * sizeof(DY_T));
}

/* The filters of a block, those of one tap side by side. */
static void turn_each(DY_T *to, const each_channel *e, const DY_T *filters, const int64_t taps, const int64_t channels)
{
    DY_T own[EACH_TAPS * BLOCK + 16];               /* squares reach behind the last one */
    if (e->depth == 1)
        memcpy(own, filters, taps * channels * sizeof(DY_T));
    else
        exchange_axes(own, filters, channels, e->depth, e->w->kernel[0], e->w->kernel[1]);
    memset(own + taps * channels, 0, (taps * (BLOCK - channels) + 16) * sizeof(DY_T));
    for (int64_t k = 0; k < taps; k += 16)
        turn_square(own + k, taps, to + k * BLOCK, BLOCK);
}

/* What is needed of a block of channels. */
typedef struct {
    DY_T filters[EACH_TAPS * BLOCK] __attribute__((aligned(64))), scale[BLOCK], shift[BLOCK];
} each_block;

/* Gives whether the filters are finite. */
static int take_block(const each_channel *e, const int64_t c, each_block *to)
{
    const int64_t taps = e->depth * e->w->kernel[0] * e->w->kernel[1], channels = least(BLOCK, e->w->in - c);
    turn_each(to->filters, e, e->filters + c * taps, taps, channels);
    for (int64_t o = 0; o < BLOCK; o++) {
        to->scale[o] = e->scale && o < channels ? e->scale[c + o] : 1;
        to->shift[o] = e->shift && o < channels ? e->shift[c + o] : 0;
    }
    return are_finite(to->filters, taps * BLOCK);
}

/* What follows the sums of the channels of a block from `v` on. */
DY_INLINE after_each after_of(const each_channel *e, const each_block *block, const int v)
{
    return (after_each){load(block->scale + v), load(block->shift + v), (dy_vector){0} + e->w->cap, e->residual != 0,
                        e->residual ? e->residual - e->y : 0, e->w->relu};
}

/* Fetch what the next row of the result reads first, as far as the places from `p` to `q` of this row go. */
static inline void fetch_rows(const dy_blocks *w, const DY_T *soon, const int64_t p, const int64_t q)
{
    for (int64_t r = 0; r < w->stride[0]; r++, soon += w->image[1] * BLOCK)
        for (int64_t s = p * w->stride[1]; s < q * w->stride[1]; s++)
            __builtin_prefetch(soon + s * BLOCK);
}

/* The rows of x that come with the next row of the result, from `row` on, which may be those of the next image; null if there are none,
   or with a stride of one, where there is more to do for each line of the cache, which then comes by itself. */
static const DY_T *row_after(const image_rows *source, const int64_t row, const dy_blocks *w)
{
    const DY_T *const from = row < w->image[0] ? source->x : source->following;
    return from && row >= 0 && w->stride[0] > 1 ? from + row % w->image[0] * w->image[1] * BLOCK : 0;
}

#endif
