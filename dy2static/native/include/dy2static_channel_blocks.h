/* Arrays in blocks of channels for generated code: (batch, blocks, rows, columns, 16), of float32.  The last block may be a part of
   one: what its other places hold means nothing, but is finite where the operands are.

   dy_blocks_conv: a convolution, and what follows it element by element: `y = limit(scale * conv(x, filters) + shift + residual)`.
   dy_blocks_depthwise: the same where filters take one channel each.  dy_blocks_max, dy_blocks_mean: maxima and means of windows,
   as `max_pool` and `average_pool`.  dy_blocks_join: images one behind the other along the channels.  dy_blocks_of,
   dy_blocks_back: from and to (batch, channels, rows, columns).
   channel_blocks.py sets the table when the library is loaded. */
#ifndef DY2STATIC_CHANNEL_BLOCKS_H
#define DY2STATIC_CHANNEL_BLOCKS_H

#include <stdint.h>

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

typedef struct {
    int (*conv)(const dy_blocks *, const float *x, const float *filters, const float *scale, const float *shift,
                const float *residual, float *y);       /* the last three operands may be null; nonzero: not enough memory */
    int (*depthwise)(const dy_blocks *, const float *x, const float *filters, const float *scale, const float *shift,
                     const float *residual, float *y);
    void (*expect)(const float *filters, int64_t count);    /* those of the convolution after the next one, which fetches them */
    void (*max)(const dy_blocks *, const float *x, float *y);
    void (*mean)(const dy_blocks *, const float *x, float *y);
    void (*join)(int64_t count, const int64_t *channels, const float *const *xs, int64_t batch, int64_t places, float *y);
    void (*of)(int64_t batch, int64_t channels, int64_t places, const float *x, float *y);
    void (*back)(int64_t batch, int64_t channels, int64_t places, const float *x, float *y);
} dy_blocks_table;

#ifndef DY2STATIC_BLOCKED_H          /* the library of these functions has no need of itself */
static const dy_blocks_table *dy_blocks_functions __attribute__((unused));
void dy2static_set_channel_blocks(const void *table) { dy_blocks_functions = table; }

/* Functions, not macros: names of members may be names of arrays in generated code, which can be macros. */
#define DY_BLOCKS_INLINE static inline __attribute__((always_inline, unused))

DY_BLOCKS_INLINE int dy_blocks_conv(const dy_blocks *w, const float *x, const float *filters, const float *scale, const float *shift,
                                    const float *residual, float *y)
{
    return dy_blocks_functions->conv(w, x, filters, scale, shift, residual, y);
}

DY_BLOCKS_INLINE int dy_blocks_depthwise(const dy_blocks *w, const float *x, const float *filters, const float *scale,
                                         const float *shift, const float *residual, float *y)
{
    return dy_blocks_functions->depthwise(w, x, filters, scale, shift, residual, y);
}

DY_BLOCKS_INLINE void dy_blocks_expect(const float *filters, int64_t count) { dy_blocks_functions->expect(filters, count); }
DY_BLOCKS_INLINE void dy_blocks_max(const dy_blocks *w, const float *x, float *y) { dy_blocks_functions->max(w, x, y); }
DY_BLOCKS_INLINE void dy_blocks_mean(const dy_blocks *w, const float *x, float *y) { dy_blocks_functions->mean(w, x, y); }

DY_BLOCKS_INLINE void dy_blocks_join(int64_t count, const int64_t *channels, const float *const *xs, int64_t batch, int64_t places,
                                     float *y)
{
    dy_blocks_functions->join(count, channels, xs, batch, places, y);
}

DY_BLOCKS_INLINE void dy_blocks_of(int64_t batch, int64_t channels, int64_t places, const float *x, float *y)
{
    dy_blocks_functions->of(batch, channels, places, x, y);
}

DY_BLOCKS_INLINE void dy_blocks_back(int64_t batch, int64_t channels, int64_t places, const float *x, float *y)
{
    dy_blocks_functions->back(batch, channels, places, x, y);
}
#endif

#endif
