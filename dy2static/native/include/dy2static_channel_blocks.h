/* Arrays in blocks of channels for generated code: (batch, blocks, rows, columns, 16), of float32.  The last block may be a part of
   one: what its other places hold means nothing, but is finite where the operands are.

   dy_blocks_conv: a convolution, and what follows it element by element: `y = limit(scale * conv(x, filters) + shift + residual)`.
   dy_blocks_transposed: the transpose of a convolution, whose x is what that one makes: `image` and `in` are those of x here, `spots` and
   `out` those of y, and the filters are (in, out, rows, columns); without a residual.  It needs at least as many taps as the stride along
   each axis, and windows that begin beside the image, or at its edge.
   dy_blocks_depthwise: the same as dy_blocks_conv where filters take one channel each.  dy_blocks_max, dy_blocks_mean: maxima and means of windows,
   as `max_pool` and `average_pool`.  dy_blocks_join: channels of several images, in any order.  dy_blocks_of,
   dy_blocks_back: from and to (batch, channels, rows, columns).  dy_blocks_groups_4, dy_blocks_groups_8: dy_blocks_conv for groups of
   so many channels.  dy_blocks_pair: dy_blocks_conv with filters of one tap, and dy_blocks_depthwise of its result, for so many channels
   of an image at a time that these stay near.  dy_blocks_winograd: a convolution of plain arrays, or its derivative by the image, with
   filters of three by three and a stride of one; dy_blocks_winograd_filters: its derivative by the filters.  Both need DY_WINDOWS_F32,
   too.

   They are in several libraries, so that what a text does not call is not compiled.  A text says which ones it calls before the
   include: DY_BLOCKS_CONV, DY_BLOCKS_PLAIN, DY_BLOCKS_DEPTHWISE, DY_BLOCKS_GROUPS_4, DY_BLOCKS_GROUPS_8 (with DY_BLOCKS_CONV),
   DY_BLOCKS_LAYERS.
   channel_blocks.py builds them, and sets their tables when the library of the text is loaded. */
#ifndef DY2STATIC_CHANNEL_BLOCKS_H
#define DY2STATIC_CHANNEL_BLOCKS_H

#include <stdint.h>

#include "dy2static_windows.h"

typedef struct {
    int64_t batch, in, out;                             /* channels; of x as well, where there are no filters */
    int64_t groups;                                     /* of channels: if there are several, `in` and `out` fill blocks */
    int64_t image[2], kernel[2], spots[2], stride[2], pad[2], dilate[2];
    int64_t plain;                                      /* x is (batch, channels, rows, columns) */
    int64_t relu;                                       /* what is below zero becomes zero, what is above `cap` becomes that */
    float cap;
    int64_t algorithm;                                  /* one of these, if it is for these windows; the first: by rules */
} dy_blocks;

enum { DY_BLOCKS_BY_RULES, DY_BLOCKS_DIRECT, DY_BLOCKS_WINOGRAD, DY_BLOCKS_GROUPED };

/* The last three operands may be null.  Above zero: not enough memory, or the result does not count; below: it is not for such windows. */
typedef int dy_blocks_function(const dy_blocks *, const float *x, const float *filters, const float *scale, const float *shift,
                               const float *residual, float *y);

typedef struct {
    dy_blocks_function *conv;
    void (*expect)(const float *filters, int64_t count);    /* those of the convolution after the next one, which fetches them */
    dy_blocks_function *transposed;
} dy_blocks_dense;

typedef struct {
    int (*winograd)(const dy_windows *, int transposed, dy_convolution_f32 *direct, const float *x, const float *filters, float *y,
                    const dy_after *);
    int (*winograd_filters)(const dy_windows *, dy_filters_f32 *direct, const float *x, const float *y, float *filters);
} dy_blocks_plain;

/* The operands of a convolution besides x: the last two may be null. */
typedef struct {
    const float *filters, *scale, *shift;
} dy_blocks_factors;

typedef struct {
    dy_blocks_function *each;
    int (*pair)(dy_blocks_function *conv, const dy_blocks *first, const dy_blocks *second, int64_t channels, const float *x,
                dy_blocks_factors of_first, dy_blocks_factors of_second, float *y);
} dy_blocks_each;

typedef struct {
    void (*max)(const dy_blocks *, const float *x, float *y);
    void (*mean)(const dy_blocks *, const float *x, float *y);
    void (*join)(const int32_t *channels, const float *const *xs, int64_t count, const int32_t *order, int64_t batch, int64_t places,
                 float *y);
    void (*of)(int64_t batch, int64_t channels, int64_t places, const float *x, float *y);
    void (*back)(int64_t batch, int64_t channels, int64_t places, const float *x, float *y);
} dy_blocks_layers;

/* Functions, not macros: names of members may be names of arrays in generated code, which can be macros. */
#define DY_BLOCKS_INLINE static inline __attribute__((always_inline, unused))
#define DY_BLOCKS_CALLED(NAME, TABLE)                                                                                   \
    static TABLE *dy_blocks_table_##NAME;                                                                               \
    void dy2static_set_blocks_##NAME(const void *table) { dy_blocks_table_##NAME = table; }
#define DY_BLOCKS_OPERANDS                                                                                              \
    const dy_blocks *w, const float *x, const float *filters, const float *scale, const float *shift, const float *residual, float *y

#ifdef DY_BLOCKS_CONV
DY_BLOCKS_CALLED(conv, const dy_blocks_dense)

DY_BLOCKS_INLINE int dy_blocks_conv(DY_BLOCKS_OPERANDS)
{
    return dy_blocks_table_conv->conv(w, x, filters, scale, shift, residual, y);
}

DY_BLOCKS_INLINE int dy_blocks_transposed(DY_BLOCKS_OPERANDS)
{
    return dy_blocks_table_conv->transposed(w, x, filters, scale, shift, residual, y);
}

DY_BLOCKS_INLINE void dy_blocks_expect(const float *filters, int64_t count) { dy_blocks_table_conv->expect(filters, count); }
#endif

#ifdef DY_BLOCKS_PLAIN
DY_BLOCKS_CALLED(plain, const dy_blocks_plain)

#ifdef DY_WINDOWS_F32
DY_BLOCKS_INLINE int dy_blocks_winograd(const dy_windows *w, int transposed, const float *x, const float *filters, float *y,
                                        const dy_after *after)
{
    dy_convolution_f32 *const direct = transposed ? dy_any_convolutions_f32->transpose : dy_any_convolutions_f32->forward;
    return dy_blocks_table_plain->winograd(w, transposed, direct, x, filters, y, after);
}

DY_BLOCKS_INLINE int dy_blocks_winograd_filters(const dy_windows *w, const float *x, const float *y, float *filters)
{
    return dy_blocks_table_plain->winograd_filters(w, dy_any_convolutions_f32->grad_weight, x, y, filters);
}
#endif
#endif

#ifdef DY_BLOCKS_DEPTHWISE
DY_BLOCKS_CALLED(depthwise, const dy_blocks_each)

DY_BLOCKS_INLINE int dy_blocks_depthwise(DY_BLOCKS_OPERANDS)
{
    return dy_blocks_table_depthwise->each(w, x, filters, scale, shift, residual, y);
}

#ifdef DY_BLOCKS_CONV
DY_BLOCKS_INLINE int dy_blocks_pair(const dy_blocks *first, const dy_blocks *second, int64_t channels, const float *x,
                                    dy_blocks_factors of_first, dy_blocks_factors of_second, float *y)
{
    return dy_blocks_table_depthwise->pair(dy_blocks_table_conv->conv, first, second, channels, x, of_first, of_second, y);
}
#endif
#endif

#define DY_BLOCKS_SMALL_GROUPS(SIZE)                                                                                    \
    DY_BLOCKS_CALLED(groups_##SIZE, dy_blocks_function *const)                                                          \
    DY_BLOCKS_INLINE int dy_blocks_groups_##SIZE(DY_BLOCKS_OPERANDS)                                                    \
    {                                                                                                                   \
        const int status = (*dy_blocks_table_groups_##SIZE)(w, x, filters, scale, shift, residual, y);                  \
        return status < 0 ? dy_blocks_conv(w, x, filters, scale, shift, residual, y) : status;                          \
    }
#ifdef DY_BLOCKS_GROUPS_4
DY_BLOCKS_SMALL_GROUPS(4)
#endif
#ifdef DY_BLOCKS_GROUPS_8
DY_BLOCKS_SMALL_GROUPS(8)
#endif

#ifdef DY_BLOCKS_LAYERS
DY_BLOCKS_CALLED(layers, const dy_blocks_layers)

DY_BLOCKS_INLINE void dy_blocks_max(const dy_blocks *w, const float *x, float *y) { dy_blocks_table_layers->max(w, x, y); }
DY_BLOCKS_INLINE void dy_blocks_mean(const dy_blocks *w, const float *x, float *y) { dy_blocks_table_layers->mean(w, x, y); }

DY_BLOCKS_INLINE void dy_blocks_join(const int32_t *channels, const float *const *xs, int64_t count, const int32_t *order,
                                     int64_t batch, int64_t places, float *y)
{
    dy_blocks_table_layers->join(channels, xs, count, order, batch, places, y);
}

DY_BLOCKS_INLINE void dy_blocks_of(int64_t batch, int64_t channels, int64_t places, const float *x, float *y)
{
    dy_blocks_table_layers->of(batch, channels, places, x, y);
}

DY_BLOCKS_INLINE void dy_blocks_back(int64_t batch, int64_t channels, int64_t places, const float *x, float *y)
{
    dy_blocks_table_layers->back(batch, channels, places, x, y);
}
#endif

#endif
