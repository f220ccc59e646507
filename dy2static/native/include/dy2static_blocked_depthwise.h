/* Convolutions whose filters take one channel each, for arrays in blocks of channels.

   A vector holds neighbouring channels, a tile some neighbouring places of a row.  Where windows reach beyond the image, its rows
   are copied with their padding, each once, into as many as one row of the result reads: these stay in the first cache.

   Before the include: dy2static_blocked.h. */

enum { EACH_PLACES = 8, EACH_TAPS = 128 };      /* places of a tile; taps of a filter, a multiple of 16 */

typedef struct {
    const dy_blocks *w;
    const DY_T *x, *filters, *scale, *shift, *residual;
    DY_T *y;
    int *failed;
} each_channel;

/* What follows the sums of a vector of channels. */
typedef struct {
    dy_vector scale, shift, caps;
    int64_t adds, residual, relu;               /* whether there is a residual, and how far from the result */
} after_each;

/* Places that are `step` apart in x; the taps of a row are `across` apart.  rows: what the first taps meet, `at` behind these.
   filters: a vector of channels for each tap, BLOCK apart. */
DY_INLINE void each_tile(const int places, const int64_t down, const int64_t right, const int64_t across, const int64_t step,
                         const DY_T *const *rows, const int64_t at, const DY_T *filters, DY_T *y, const after_each *a)
{
    dy_vector sum[EACH_PLACES];
#pragma GCC unroll 8
    for (int p = 0; p < places; p++)
        sum[p] = (dy_vector){0};
#pragma GCC unroll 3
    for (int64_t i = 0; i < down; i++) {
        const DY_T *const from = rows[i] + at;
#pragma GCC unroll 3
        for (int64_t j = 0; j < right; j++) {
            const dy_vector left = load(filters + (i * right + j) * BLOCK);
#pragma GCC unroll 8
            for (int p = 0; p < places; p++)
                sum[p] += left * load(from + j * across + p * step);
        }
    }
#pragma GCC unroll 8
    for (int p = 0; p < places; p++)
        sum[p] = sum[p] * a->scale + a->shift;
    if (a->adds)
#pragma GCC unroll 8
        for (int p = 0; p < places; p++)
            sum[p] += load(y + a->residual + p * BLOCK);
    if (a->relu)
#pragma GCC unroll 8
        for (int p = 0; p < places; p++)
            sum[p] = limited(sum[p], a->caps);
#pragma GCC unroll 8
    for (int p = 0; p < places; p++)
        store(y + p * BLOCK, sum[p]);
}

typedef void each_tiles(const dy_blocks *w, const DY_T *const *rows, int64_t at, const DY_T *filters, DY_T *y, const after_each *a);

/* Functions by what is constant in them: places, and for filters of three by three how far apart the places are. */
#define EACH(P)                                                                                                         \
    static void each_##P##_0(const dy_blocks *w, const DY_T *const *rows, int64_t at, const DY_T *filters, DY_T *y,     \
                             const after_each *a)                                                                       \
    {                                                                                                                   \
        each_tile(P, w->kernel[0], w->kernel[1], w->dilate[1] * BLOCK, w->stride[1] * BLOCK, rows, at, filters, y, a);  \
    }                                                                                                                   \
    EACH_NINE(P, 1) EACH_NINE(P, 2)
#define EACH_NINE(P, S)                                                                                                 \
    static void each_##P##_##S(const dy_blocks *w, const DY_T *const *rows, int64_t at, const DY_T *filters, DY_T *y,   \
                               const after_each *a)                                                                     \
    {                                                                                                                   \
        (void)w;                                                                                                        \
        each_tile(P, 3, 3, BLOCK, S * BLOCK, rows, at, filters, y, a);                                                  \
    }
EACH(1) EACH(2) EACH(3) EACH(4) EACH(5) EACH(6) EACH(7) EACH(8)
#define EACH_OF(S)                                                                                                      \
    static each_tiles *const each_of_##S[] = {0, each_1_##S, each_2_##S, each_3_##S, each_4_##S, each_5_##S,            \
        each_6_##S, each_7_##S, each_8_##S};
EACH_OF(0) EACH_OF(1) EACH_OF(2)

static each_tiles *const *each_tiles_of(const dy_blocks *w)
{
    if (w->kernel[0] != 3 || w->kernel[1] != 3 || w->dilate[1] != 1 || w->stride[1] > 2)
        return each_of_0;
    return w->stride[1] == 1 ? each_of_1 : each_of_2;
}

/* The rows of a block of an image, as windows see them.  held: the memory for `reach + 1` of them, and for one of zeros behind these;
   null where they can be read in the image.  next: the first one that has not been copied. */
typedef struct {
    const dy_blocks *w;
    const DY_T *x;
    DY_T *held;
    int64_t columns, next;
} image_rows;

static void copy_blocks(const DY_T *from, DY_T *to, const int64_t count)
{
    for (int64_t k = 0; k < count * BLOCK; k += WIDTH)
        store(to + k, from ? load(from + k) : (dy_vector){0});
}

static const DY_T *image_row(image_rows *r, const int64_t at)
{
    const dy_blocks *const w = r->w;
    const int64_t count = reach(w, 0) + 1, row = w->image[1] * BLOCK, left = w->pad[1];
    if (!r->held)
        return r->x + at * row;
    if (at < 0 || at >= w->image[0])
        return r->held + count * r->columns * BLOCK;
    for (; r->next <= at; r->next++) {
        DY_T *const to = r->held + r->next % count * r->columns * BLOCK;
        const int64_t end = least(r->columns, w->image[1] + left);
        copy_blocks(0, to, least(left, end));
        if (end > left)
            copy_blocks(r->x + r->next * row, to + left * BLOCK, end - left);
        copy_blocks(0, to + end * BLOCK, r->columns - end);
    }
    return r->held + at % count * r->columns * BLOCK;
}

/* One row of the result for a vector of channels. */
static void each_row(const dy_blocks *w, each_tiles *const *of, const DY_T *const *rows, const DY_T *filters, DY_T *y, const after_each *a)
{
    const int64_t columns = w->spots[1], tiles = (columns + EACH_PLACES - 1) / EACH_PLACES;
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t p = columns * t / tiles, q = columns * (t + 1) / tiles;
        of[q - p](w, rows, p * w->stride[1] * BLOCK, filters, y + p * BLOCK, a);
    }
}

/* The filters of a block, those of one tap side by side. */
static void turn_each(DY_T *to, const DY_T *filters, const int64_t taps, const int64_t channels)
{
    DY_T own[EACH_TAPS * BLOCK + 16];               /* squares reach behind the last one */
    memcpy(own, filters, taps * channels * sizeof(DY_T));
    memset(own + taps * channels, 0, (taps * (BLOCK - channels) + 16) * sizeof(DY_T));
    for (int64_t k = 0; k < taps; k += 16)
        turn_square(own + k, taps, to + k * BLOCK, BLOCK);
}

static void some_each(const void *given, int64_t begin, int64_t end)
{
    const each_channel *const e = given;
    const dy_blocks *const w = e->w;
    const int64_t taps = w->kernel[0] * w->kernel[1], blocks = in_whole(w->in) / BLOCK, row = extent(w, 1) * BLOCK, count = reach(w, 0) + 1;
    each_tiles *const *const of = each_tiles_of(w);
    const channel_groups all = {w->in, w->in, 0, 0, 1};
    DY_T filters[EACH_TAPS * BLOCK] __attribute__((aligned(64))), scales[BLOCK], shifts[BLOCK];
    image_rows source = {w, 0, 0, extent(w, 1), 0};
    if (is_padded(w)) {
        source.held = room(share_key, (count + 1) * row * sizeof(DY_T));
        if (!source.held) {
            __atomic_store_n(e->failed, 1, __ATOMIC_RELAXED);
            return;
        }
        memset(source.held + count * row, 0, row * sizeof(DY_T));
    }
    for (int64_t s = begin; s < end; s++) {                 /* the images of a block of channels follow each other */
        const int64_t c = s / w->batch * BLOCK, k = s % w->batch * blocks + s / w->batch;
        const panel_place here = {c, BLOCK, c};
        const DY_T *const scale = of_panel(e->scale, &all, &here, scales), *const shift = of_panel(e->shift, &all, &here, shifts);
        source.x = e->x + k * w->image[0] * w->image[1] * BLOCK;
        source.next = 0;
        if (s == begin || s % w->batch == 0)
            turn_each(filters, e->filters + c * taps, taps, least(BLOCK, w->in - c));
        for (int64_t i = 0; i < w->spots[0]; i++) {
            const DY_T *rows[EACH_TAPS];
            for (int64_t r = 0; r < w->kernel[0]; r++)
                rows[r] = image_row(&source, i * w->stride[0] - w->pad[0] + r * w->dilate[0]);
            for (int v = 0; v < BLOCK; v += WIDTH) {
                const DY_T *shifted[EACH_TAPS];
                for (int64_t r = 0; r < w->kernel[0]; r++)
                    shifted[r] = rows[r] + v;
                const after_each a = {scale ? load(scale + v) : (dy_vector){0} + 1, shift ? load(shift + v) : (dy_vector){0},
                                      (dy_vector){0} + w->cap,
                                      e->residual != 0, e->residual ? e->residual - e->y : 0, w->relu};
                each_row(w, of, shifted, filters + v, e->y + (k * w->spots[0] + i) * w->spots[1] * BLOCK + v, &a);
            }
        }
    }
}

/* A filter of each channel: `y = limit(scale * conv(x, filters) + shift + residual)`. */
static int blocks_depthwise(const dy_blocks *w, const DY_T *x, const DY_T *filters, const DY_T *scale, const DY_T *shift,
                            const DY_T *residual, DY_T *y)
{
    int failed = 0;
    const each_channel all = {w, x, filters, scale, shift, residual, y, &failed};
    const int64_t work = w->spots[0] * w->spots[1] * w->kernel[0] * w->kernel[1] * BLOCK;
    dy_share(some_each, &all, w->batch * in_whole(w->in) / BLOCK, most(1, SHARED_WORK / 4 / work));
    return failed;
}
