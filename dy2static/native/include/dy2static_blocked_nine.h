/* Depthwise filters of three by three for arrays in blocks of channels: the filters of a vector of channels stay in registers for
   a whole image, and each number of x is read once for each row of the result.  It is added to all sums that it is a part of: those of
   the place at hand, of the next one, and of the one behind that.  Sums at the sides leave out what is beside the image. */
#ifndef DY2STATIC_BLOCKED_NINE_H
#define DY2STATIC_BLOCKED_NINE_H

#include "dy2static_blocked_each.h"

/* Whether windows miss one row and one column of the image at most on each side, and never two rows. */
static int is_near(const dy_blocks *w)
{
    return is_nine(w) && w->dilate[0] == 1 && w->pad[0] <= 1 && w->image[0] >= 2 && extent(w, 0) - w->pad[0] - w->image[0] <= 1;
}

/* What a row of the result reads: `row` is where the first column of the windows would be in each row of x.  soon: rows to be fetched
   meanwhile, or null. */
typedef struct {
    const DY_T *row[3], *soon;
} nine_window;

/* A row of the result for filters of which the rows from `top` to `bottom` meet the image. */
DY_INLINE void nine_row(const int top, const int bottom, const int stride, const dy_blocks *w, const nine_window *x, const dy_vector f[9],
                        DY_T *y, const after_each *a)
{
    const int64_t spots = w->spots[1], first = w->pad[1], end = first + w->image[1];        /* columns of the image */
    const int64_t inside = least(spots, (end - 3 + stride) / stride);
    dy_vector sum = {0}, next = {0};
    for (int j = 0; j < 3 - stride; j++)
        if (j >= first && j < end)
#pragma GCC unroll 3
            for (int r = top; r < bottom; r++) {
                const dy_vector left = load(x->row[r] + j * BLOCK);
                sum += (j ? f[3 * r + 1] : f[3 * r]) * left;
                if (j)
                    next += f[3 * r] * left;
            }
    const DY_T *const soon = x->soon;
    const int64_t row = w->image[1] * BLOCK;
    int64_t q = 0;
    for (; q < inside; q++) {
        dy_vector here = sum, last = {0};
        sum = next;
#pragma GCC unroll 3
        for (int r = top; r < bottom; r++) {
            const DY_T *const from = x->row[r] + (q * stride + 2) * BLOCK;
            dy_vector left = load(from);
            IN_REGISTER(left);
            if (stride == 2)
                here += f[3 * r + 1] * load(from - BLOCK);
            here += f[3 * r + 2] * left;
            if (stride == 1)
                sum += f[3 * r + 1] * left;
            last += f[3 * r] * left;
        }
        next = stride == 1 ? last : next;
        sum = stride == 1 ? sum : last;
        if (stride == 2 && soon)
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++)
                __builtin_prefetch(soon + k / 2 * row + (2 * q + k % 2) * BLOCK);
        finish_each(1, &here, y + q * BLOCK, a);
    }
    if (q < spots) {
        if (stride == 2)
#pragma GCC unroll 3
            for (int r = top; r < bottom; r++)
                sum += f[3 * r + 1] * load(x->row[r] + (q * stride + 1) * BLOCK);
        finish_each(1, &sum, y + q * BLOCK, a);
    }
}

/* A block of an image, whose place in the result is `y`. */
DY_INLINE void nine_rows(const int stride, const each_channel *e, const image_rows *source, const each_block *block, DY_T *y)
{
    const dy_blocks *const w = e->w;
    const int64_t row = w->image[1] * BLOCK;
    dy_vector f[IN_BLOCK][9];
    after_each a[IN_BLOCK];
#pragma GCC unroll 4
    for (int v = 0; v < IN_BLOCK; v++) {
        a[v] = after_of(e, block, v * WIDTH);
#pragma GCC unroll 9
        for (int j = 0; j < 9; j++)
            f[v][j] = load(block->filters + j * BLOCK + v * WIDTH);
    }
    for (int64_t i = 0; i < w->spots[0]; i++) {
        const int64_t at = i * w->stride[0] - w->pad[0];
        const DY_T *const from = source->x + at * row - w->pad[1] * BLOCK;
        const DY_T *const soon = row_after(source, at + 3, w);
#pragma GCC unroll 4
        for (int v = 0; v < IN_BLOCK; v++) {
            const DY_T *const here = from + v * WIDTH;
            const nine_window window = {{here, here + row, here + 2 * row}, v ? 0 : soon};
            DY_T *const to = y + i * w->spots[1] * BLOCK + v * WIDTH;
            if (at < 0)
                nine_row(1, 3, stride, w, &window, f[v], to, &a[v]);
            else if (at + 3 > w->image[0])
                nine_row(0, 2, stride, w, &window, f[v], to, &a[v]);
            else
                nine_row(0, 3, stride, w, &window, f[v], to, &a[v]);
        }
    }
}

static void nine_block(const each_channel *e, image_rows *source, const each_block *block, DY_T *y)
{
    if (e->w->stride[1] == 1)
        nine_rows(1, e, source, block, y);
    else
        nine_rows(2, e, source, block, y);
}

#endif
