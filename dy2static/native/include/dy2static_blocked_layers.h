/* Maxima and means of windows of arrays in blocks of channels, and the other functions of their library.

   Before the include: DY_T, which is float, and DY_PIECE. */
#include "dy2static_blocked_joins.h"
#include "dy2static_blocked_turns.h"

/* Maxima of windows -------------------------------------------------------------------------------------------------- */

typedef struct {
    const dy_blocks *w;
    const DY_T *x;
    DY_T *y;
} pooled;

/* The part of a window that is within the image, as its first and last rows and columns; the last ones do not count. */
typedef struct {
    int64_t top, bottom, left, right;
} window_part;

static window_part part_of_window(const dy_blocks *w, const int64_t i, const int64_t j)
{
    const int64_t top = i * w->stride[0] - w->pad[0], left = j * w->stride[1] - w->pad[1];
    return (window_part){most(0, top), least(w->image[0], top + w->kernel[0]), most(0, left), least(w->image[1], left + w->kernel[1])};
}

/* The first of several, and the first NaN before all; the padding is minus infinity.  Windows of one row of the result, from `begin` on. */
static void maxima(const dy_blocks *w, const DY_T *x, const int64_t i, const int64_t begin, const int64_t end, DY_T *to)
{
    for (int64_t j = begin; j < end; j++) {
        const window_part here = part_of_window(w, i, j);
        dy_vector best[IN_BLOCK];
#pragma GCC unroll 4
        for (int v = 0; v < IN_BLOCK; v++)
            best[v] = (dy_vector){0} - __builtin_inff();
        for (int64_t r = here.top; r < here.bottom; r++)
            for (int64_t c = here.left; c < here.right; c++)
#pragma GCC unroll 4
                for (int v = 0; v < IN_BLOCK; v++) {
                    const dy_vector item = load(x + (r * w->image[1] + c) * BLOCK + v * WIDTH);
                    best[v] = choose((dy_bits)(best[v] == best[v]) & ~(dy_bits)(item <= best[v]), item, best[v]);
                }
#pragma GCC unroll 4
        for (int v = 0; v < IN_BLOCK; v++)
            store(to + j * BLOCK + v * WIDTH, best[v]);
    }
}

/* The item if it is larger than the best one, which stays if one of them is NaN. */
DY_INLINE dy_vector larger(const dy_vector item, const dy_vector best)
{
#if DY_BYTES == 64
    return greater(item, best);
#elif DY_BYTES == 32
    return __builtin_ia32_maxps256(item, best);
#else
    return choose((dy_bits)(item > best), item, best);
#endif
}

/* The same for `count` windows within the image, `columns` wide, unless something is NaN: gives whether sums say that nothing is. */
DY_INLINE int ordered_maxima(const dy_blocks *w, const int64_t columns, const int64_t rows, const DY_T *from, const int64_t count, DY_T *to)
{
    dy_vector all[IN_BLOCK] = {{0}};
    for (int64_t j = 0; j < count; j++, from += w->stride[1] * BLOCK, to += BLOCK) {
        dy_vector best[IN_BLOCK], sum[IN_BLOCK];
#pragma GCC unroll 4
        for (int v = 0; v < IN_BLOCK; v++)
            best[v] = (dy_vector){0} - __builtin_inff(), sum[v] = (dy_vector){0};
        for (int64_t r = 0; r < rows; r++)
#pragma GCC unroll 3
            for (int64_t c = 0; c < columns; c++)
#pragma GCC unroll 4
                for (int v = 0; v < IN_BLOCK; v++) {
                    const dy_vector item = load(from + (r * w->image[1] + c) * BLOCK + v * WIDTH);
                    best[v] = larger(item, best[v]);
                    sum[v] += item;
                }
#pragma GCC unroll 4
        for (int v = 0; v < IN_BLOCK; v++) {
            store(to + v * WIDTH, best[v]);
            all[v] += sum[v];
        }
    }
    int ordered = 1;
    for (int64_t t = 0; t < BLOCK; t++)
        ordered &= all[t / WIDTH][t % WIDTH] == all[t / WIDTH][t % WIDTH];
    return ordered;
}

/* One row of the result.  Windows from `begin` to `end` do not reach beyond the sides of the image. */
static void row_of_maxima(const dy_blocks *w, const DY_T *x, const int64_t i, DY_T *to)
{
    const int64_t last = w->image[1] - w->kernel[1] + w->pad[1], spots = w->spots[1];
    const int64_t begin = least(spots, (w->pad[1] + w->stride[1] - 1) / w->stride[1]);
    const int64_t end = last < 0 ? begin : most(begin, least(spots, last / w->stride[1] + 1));
    const window_part here = part_of_window(w, i, begin);
    const DY_T *const from = x + (here.top * w->image[1] + here.left) * BLOCK;
    const int64_t rows = here.bottom - here.top, count = end - begin;
    DY_T *const inner = to + begin * BLOCK;
    const int ordered = w->kernel[1] == 1   ? ordered_maxima(w, 1, rows, from, count, inner)
                        : w->kernel[1] == 2 ? ordered_maxima(w, 2, rows, from, count, inner)
                        : w->kernel[1] == 3 ? ordered_maxima(w, 3, rows, from, count, inner)
                                            : ordered_maxima(w, w->kernel[1], rows, from, count, inner);
    maxima(w, x, i, 0, ordered ? begin : end, to);
    maxima(w, x, i, end, spots, to);
}

/* Whether maxima of rows, and then of columns of these, take clearly fewer comparisons. */
static int is_by_axes(const dy_blocks *w)
{
    return 3 * (w->stride[0] * w->kernel[1] + w->kernel[0]) < 2 * w->kernel[0] * w->kernel[1];
}

/* The windows along one axis alone. */
static dy_blocks along(const dy_blocks *w, const int axis)
{
    dy_blocks a = *w;
    a.image[1 - axis] = a.spots[1 - axis] = axis ? w->image[0] : w->spots[1];
    a.kernel[1 - axis] = a.stride[1 - axis] = 1;
    a.pad[1 - axis] = 0;
    return a;
}

static void image_of_maxima(const dy_blocks *w, const DY_T *x, DY_T *y)
{
    for (int64_t i = 0; i < w->spots[0]; i++)
        row_of_maxima(w, x, i, y + i * w->spots[1] * BLOCK);
}

/* The first maximum of the first row that has one is the first of the window, and so is the first NaN. */
static void some_maxima(const void *given, int64_t begin, int64_t end)
{
    const pooled *const p = given;
    const dy_blocks *const w = p->w, of_rows = along(w, 1), of_columns = along(w, 0);
    const int64_t size = w->image[0] * w->image[1] * BLOCK, made = w->spots[0] * w->spots[1] * BLOCK;
    DY_T *const rows = is_by_axes(w) ? room(share_key, w->image[0] * w->spots[1] * BLOCK * sizeof(DY_T)) : 0;
    const dy_float_state state = dy_save_float_state();
    for (int64_t k = begin; k < end; k++) {
        if (rows)
            image_of_maxima(&of_rows, p->x + k * size, rows);
        image_of_maxima(rows ? &of_columns : w, rows ? rows : p->x + k * size, p->y + k * made);
    }
    dy_restore_float_state(state);
}

static void blocks_max(const dy_blocks *w, const DY_T *x, DY_T *y)
{
    const pooled all = {w, x, y};
    const int64_t each = w->spots[0] * w->spots[1] * w->kernel[0] * w->kernel[1] * BLOCK;
    dy_share(some_maxima, &all, w->batch * in_whole(w->in) / BLOCK, most(1, (1 << 15) / each));
}

/* Means of windows; the padding is zero. */
static void some_means(const void *given, int64_t begin, int64_t end)
{
    const pooled *const p = given;
    const dy_blocks *const w = p->w;
    const int64_t size = w->image[0] * w->image[1] * BLOCK;
    const dy_vector count = (dy_vector){0} + (DY_T)(w->kernel[0] * w->kernel[1]);
    DY_T *to = p->y + begin * w->spots[0] * w->spots[1] * BLOCK;
    for (int64_t k = begin; k < end; k++)
        for (int64_t i = 0; i < w->spots[0]; i++)
            for (int64_t j = 0; j < w->spots[1]; j++, to += BLOCK) {
                const window_part here = part_of_window(w, i, j);
                dy_vector sum[IN_BLOCK];
#pragma GCC unroll 4
                for (int v = 0; v < IN_BLOCK; v++)
                    sum[v] = (dy_vector){0};
                for (int64_t r = here.top; r < here.bottom; r++)
                    for (int64_t c = here.left; c < here.right; c++) {
                        const DY_T *const from = p->x + k * size + (r * w->image[1] + c) * BLOCK;
#pragma GCC unroll 4
                        for (int v = 0; v < IN_BLOCK; v++)
                            sum[v] += load(from + v * WIDTH);
                    }
#pragma GCC unroll 4
                for (int v = 0; v < IN_BLOCK; v++)
                    store(to + v * WIDTH, sum[v] / count);
            }
}

static void blocks_mean(const dy_blocks *w, const DY_T *x, DY_T *y)
{
    const pooled all = {w, x, y};
    const int64_t each = w->spots[0] * w->spots[1] * w->kernel[0] * w->kernel[1] * BLOCK;
    dy_share(some_means, &all, w->batch * in_whole(w->in) / BLOCK, most(1, (1 << 15) / each));
}
