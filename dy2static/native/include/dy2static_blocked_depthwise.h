/* Convolutions whose filters take one channel each, for arrays in blocks of channels.

   A vector holds neighbouring channels, a tile some neighbouring places of a row.  Nothing is copied: what lies beyond the
   image is read from a row of zeros.

   Before the include: dy2static_blocked.h. */

enum { EACH_PLACES = 8, EACH_TAPS = 128 };      /* places of a tile; taps of a filter */

typedef struct {
    const dy_blocks *w;
    const DY_T *x, *filters, *scale, *shift, *residual;
    DY_T *y, *zeros;
} each_channel;

/* What follows the sums of a vector of channels. */
typedef struct {
    dy_vector scale, shift;
    const DY_T *residual;                       /* beside the first place of the tile; or null */
    int64_t relu;
    DY_T cap;
} after_each;

/* Places that are `step` apart in x.  from: what each tap meets at the first of them.  filters: a vector of channels for each tap,
   BLOCK apart. */
DY_INLINE void each_tile(const int places, const int64_t step, const int64_t taps, const DY_T *const *from, const DY_T *filters,
                         DY_T *y, const after_each *a)
{
    dy_vector sum[EACH_PLACES];
#pragma GCC unroll 8
    for (int p = 0; p < places; p++)
        sum[p] = (dy_vector){0};
    for (int64_t k = 0; k < taps; k++) {
        const dy_vector left = load(filters + k * BLOCK);
        const DY_T *const tap = from[k];
#pragma GCC unroll 8
        for (int p = 0; p < places; p++)
            sum[p] += left * load(tap + p * step);
    }
#pragma GCC unroll 8
    for (int p = 0; p < places; p++) {
        dy_vector value = sum[p] * a->scale + a->shift;
        if (a->residual)
            value += load(a->residual + p * BLOCK);
        store(y + p * BLOCK, a->relu ? limited(value, a->cap) : value);
    }
}

/* Where the taps find what they meet in the window at place `column`, whose rows are given: in `zeros` beyond the sides. */
static void find_each(const DY_T **from, const dy_blocks *w, const DY_T *const *rows, const DY_T *zeros, const int64_t column)
{
    const int64_t first = column * w->stride[1] - w->pad[1];
    for (int64_t i = 0; i < w->kernel[0]; i++)
        for (int64_t j = 0; j < w->kernel[1]; j++) {
            const int64_t at = first + j * w->dilate[1];
            *from++ = at >= 0 && at < w->image[1] ? rows[i] + at * BLOCK : zeros;
        }
}

/* One row of a block.  inside, outside: the first place whose window is within the image, and the first one behind them. */
static void each_row(const dy_blocks *w, const DY_T *const *rows, const DY_T *zeros, const DY_T *filters, DY_T *y, const int64_t inside,
                     const int64_t outside, after_each a)
{
    const int64_t taps = w->kernel[0] * w->kernel[1], step = w->stride[1] * BLOCK;
    const DY_T *from[EACH_TAPS], *const residual = a.residual;
    for (int64_t j = 0, some; j < w->spots[1]; j += some) {
        const int64_t left = j < inside ? 1 : outside - j;
        some = left >= EACH_PLACES ? EACH_PLACES : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        find_each(from, w, rows, zeros, j);
        a.residual = residual ? residual + j * BLOCK : 0;
        switch (some) {
        case EACH_PLACES: each_tile(EACH_PLACES, step, taps, from, filters, y + j * BLOCK, &a); break;
        case 4: each_tile(4, step, taps, from, filters, y + j * BLOCK, &a); break;
        case 2: each_tile(2, step, taps, from, filters, y + j * BLOCK, &a); break;
        default: each_tile(1, step, taps, from, filters, y + j * BLOCK, &a); break;
        }
    }
}

static void some_each(const void *given, int64_t begin, int64_t end)
{
    const each_channel *const e = given;
    const dy_blocks *const w = e->w;
    const int64_t taps = w->kernel[0] * w->kernel[1], blocks = w->in / BLOCK, columns = w->spots[1];
    const int64_t row = w->image[1] * BLOCK, reaches = reach(w, 1);
    const int64_t inside = (w->pad[1] + w->stride[1] - 1) / w->stride[1];
    const int64_t last = w->image[1] - 1 - reaches + w->pad[1], outside = last < 0 ? 0 : least(columns, last / w->stride[1] + 1);
    DY_T filters[EACH_TAPS * BLOCK] __attribute__((aligned(64)));
    for (int64_t k = begin; k < end; k++) {
        const int64_t c = k % blocks * BLOCK;
        const DY_T *const x = e->x + k * w->image[0] * row;
        for (int64_t t = 0; t < taps; t++)
            for (int64_t o = 0; o < BLOCK; o++)
                filters[t * BLOCK + o] = e->filters[(c + o) * taps + t];
        for (int64_t i = 0; i < w->spots[0]; i++) {
            const DY_T *rows[EACH_TAPS];
            for (int64_t r = 0; r < w->kernel[0]; r++) {
                const int64_t at = i * w->stride[0] - w->pad[0] + r * w->dilate[0];
                rows[r] = at >= 0 && at < w->image[0] ? x + at * row : e->zeros;
            }
            for (int v = 0; v < BLOCK; v += WIDTH) {
                const int64_t to = (k * w->spots[0] + i) * columns * BLOCK + v;
                const DY_T *shifted[EACH_TAPS];
                for (int64_t r = 0; r < w->kernel[0]; r++)
                    shifted[r] = rows[r] + v;
                each_row(w, shifted, e->zeros, filters + v, e->y + to, inside, outside,
                         (after_each){e->scale ? load(e->scale + c + v) : (dy_vector){0} + 1,
                                      e->shift ? load(e->shift + c + v) : (dy_vector){0},
                                      e->residual ? e->residual + to : 0, w->relu, w->cap});
            }
        }
    }
}

/* A filter of each channel: `y = limit(scale * conv(x, filters) + shift + residual)`. */
static int blocks_depthwise(const dy_blocks *w, const DY_T *x, const DY_T *filters, const DY_T *scale, const DY_T *shift,
                            const DY_T *residual, DY_T *y)
{
    const int64_t zeros = w->image[1] * BLOCK + EACH_PLACES * w->stride[1] * BLOCK;
    each_channel all = {w, x, filters, scale, shift, residual, y, room(room_key, zeros * sizeof(DY_T))};
    if (!all.zeros)
        return 1;
    memset(all.zeros, 0, zeros * sizeof(DY_T));
    const int64_t work = w->spots[0] * w->spots[1] * w->kernel[0] * w->kernel[1] * BLOCK;
    dy_share(some_each, &all, w->batch * w->in / BLOCK, most(1, SHARED_WORK / 4 / work));
    return 0;
}
