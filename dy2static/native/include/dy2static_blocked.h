/* Kernels for arrays in blocks of channels (dy2static_channel_blocks.h): the functions of the library that channel_blocks.py builds.

   A vector holds neighbouring channels of the result, a tile some neighbouring places of a row.  For each tap of the filters a
   tile reads one number of x for each place, at an offset from a table, and the numbers of the filters for its channels.  These
   are turned in memory right before they are used, for a panel of channels and a piece of the taps at a time, which then lie
   in the second cache: nothing has to be known about filters between calls, and memory is read once.

   Before the include: DY_T, which is float, and DY_PIECE.  The result may stand where the residual stands if there is one piece. */
#ifndef DY2STATIC_BLOCKED_H
#define DY2STATIC_BLOCKED_H

#include <pthread.h>
#include <stdlib.h>
#include "dy2static_tiles.h"
#include "dy2static_shares.h"
#include "dy2static_channel_blocks.h"
#include "dy2static_pools.h"

enum {
    BLOCK = 16,                                         /* channels */
    PANEL = 2 * WIDTH > BLOCK ? 2 * WIDTH : BLOCK,      /* channels of a tile */
    VECTORS = PANEL / WIDTH,
    IN_BLOCK = BLOCK / WIDTH,                           /* vectors */
#if DY_BYTES == 64
    PLACES = 14,                                        /* 28 of 32 registers hold the tile */
#elif defined(__aarch64__)
    PLACES = 6,
#else
    PLACES = VECTORS == 2 ? 6 : 2,
#endif
    PIECE = DY_PIECE,                                   /* taps: a panel of 1152 is 147 KiB */
    NEAR = 96 * 1024,                                   /* elements of x that stay in the second cache */
    REPAYING = 192,                                     /* places for which it pays to turn a panel of filters */
    SHARED_WORK = 1 << 20,                              /* multiplications of a share */
    COPIED = 1 << 19                                    /* elements that are copied, with their padding, before they are read */
};

static __thread DY_T own_filters[PIECE * PANEL] __attribute__((aligned(64)));

static inline int64_t least(const int64_t a, const int64_t b) { return a < b ? a : b; }
static inline int64_t most(const int64_t a, const int64_t b) { return a > b ? a : b; }

/* Memory of a thread: what is for one convolution, and what is for one share; it grows to what is needed. */
static pthread_key_t room_key, share_key;
static int has_rooms;
static __attribute__((constructor)) void make_rooms(void)
{
    has_rooms = !pthread_key_create(&room_key, free) && !pthread_key_create(&share_key, free);
}

static void *room(const pthread_key_t key, const int64_t bytes)
{
    int64_t *held = has_rooms ? pthread_getspecific(key) : 0;
    if (!has_rooms || (held && *held >= bytes))
        return has_rooms ? (char *)held + 64 : 0;
    free(held);
    pthread_setspecific(key, 0);
    const int64_t size = (bytes + 64 + 4095) / 4096 * 4096;
    held = aligned_alloc(64, size);
    if (!held || pthread_setspecific(key, held)) {
        free(held);
        return 0;
    }
    *held = size - 64;
    return (char *)held + 64;
}

/* Sixteen rows of sixteen numbers to columns ------------------------------------------------------------------------- */

#if DY_BYTES == 64 && (defined(__clang__) || __GNUC__ >= 12)
#define MIX __builtin_shufflevector
DY_INLINE void turn_square(const DY_T *from, const int64_t ld, DY_T *to, const int64_t width)
{
    dy_vector a[16], b[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        a[i] = load(from + i * ld);
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {                   /* pairs of rows */
        b[i] = MIX(a[i], a[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
        b[i + 1] = MIX(a[i], a[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {                   /* four rows: a[i + j] has the columns j, 4 + j, 8 + j, 12 + j of them */
        a[i] = MIX(b[i], b[i + 2], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        a[i + 1] = MIX(b[i], b[i + 2], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        a[i + 2] = MIX(b[i + 1], b[i + 3], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        a[i + 3] = MIX(b[i + 1], b[i + 3], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 16; i += 8)
#pragma GCC unroll 4
        for (int j = i; j < i + 4; j++) {               /* eight rows: b[j] has the columns j and 8 + j, b[4 + j] the others */
            b[j] = MIX(a[j], a[4 + j], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
            b[4 + j] = MIX(a[j], a[4 + j], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
        }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        store(to + j * width, MIX(b[j], b[8 + j], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27));
        store(to + (8 + j) * width, MIX(b[j], b[8 + j], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31));
        store(to + (4 + j) * width, MIX(b[4 + j], b[12 + j], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27));
        store(to + (12 + j) * width, MIX(b[4 + j], b[12 + j], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31));
    }
}
#undef MIX
#else
DY_INLINE void turn_square(const DY_T *from, const int64_t ld, DY_T *to, const int64_t width)
{
    for (int i = 0; i < 16; i += 4)
#pragma GCC unroll 4
        for (int j = 0; j < 16; j += 4)
            transpose(from + i * ld + j, ld, to + j * width + i, width);
}
#endif

/* to[k][o] = from[o][k] for `channels`, a multiple of 16, and `taps` */
static __attribute__((noinline)) void turn(DY_T *to, const int64_t width, const DY_T *from, const int64_t ld, const int64_t channels,
                                           const int64_t taps)
{
    int64_t k = 0;
    for (; k + 16 <= taps; k += 16)
        for (int64_t o = 0; o < channels; o += 16)
            turn_square(from + o * ld + k, ld, to + k * width + o, width);
    for (; k < taps; k++)
        for (int64_t o = 0; o < channels; o++)
            to[k * width + o] = from[o * ld + k];
}

/* Tiles -------------------------------------------------------------------------------------------------------------- */

/* What comes with a tile.  next: from one block of the result to the next.  adds, residual: whether there is one, and how far from
   the result.  first, last: whether the sums begin, and end here.
   ahead, apart: sixteen rows of filters that are needed soon; soon: what the next tile reads of x. */
typedef struct {
    const DY_T *scale, *shift;
    int64_t next, adds, residual, first, last, relu;
    DY_T cap;
    const DY_T *ahead, *soon;
    int64_t apart;
} around;

typedef uint32_t dy_bits __attribute__((vector_size(DY_BYTES)));

DY_INLINE dy_vector choose(const dy_bits where, const dy_vector a, const dy_vector b)
{
    return (dy_vector)(((dy_bits)a & where) | ((dy_bits)b & ~where));
}

/* Zero, -0 too, stands for what is below it; a NaN stays. */
DY_INLINE dy_vector limited(const dy_vector value, const DY_T cap)
{
    const dy_vector above = (dy_vector)((dy_bits)value & ~(dy_bits)(value <= 0));
    if (cap == __builtin_inff())
        return above;
    const dy_vector caps = (dy_vector){0} + cap;
    return choose((dy_bits)(above > caps), caps, above);
}

DY_INLINE dy_vector scale_of(const around *a, const int v) { return a->scale ? load(a->scale + v * WIDTH) : (dy_vector){0} + 1; }
DY_INLINE dy_vector shift_of(const around *a, const int v) { return a->shift ? load(a->shift + v * WIDTH) : (dy_vector){0}; }

/* Sums of `places` neighbours, which are `step` apart in x, for `vectors` of channels. */
DY_INLINE void block_tile(const int places, const int vectors, const int64_t step, const int64_t taps, const DY_T *x,
                          const int32_t *where, const DY_T *filters, DY_T *y, const around *a)
{
    dy_vector sum[PLACES][VECTORS];
    const DY_T *const ahead = a->ahead, *const soon = a->soon;
    const int64_t apart = a->apart;
    if (a->first)
#pragma GCC unroll 14
        for (int p = 0; p < places; p++)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                sum[p][v] = (dy_vector){0};
    else
#pragma GCC unroll 14
        for (int p = 0; p < places; p++)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                sum[p][v] = load(y + v / IN_BLOCK * a->next + p * BLOCK + v % IN_BLOCK * WIDTH);
    for (int64_t k = 0; k < taps; k++, filters += PANEL) {
        const DY_T *const from = x + where[k];
        dy_vector right[VECTORS];
        __builtin_prefetch(ahead + (k & 15) * apart + (k & -16), 0, 2);
        __builtin_prefetch(soon + where[k] + (k & 15) * step, 0, 2);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            right[v] = load(filters + v * WIDTH);
#pragma GCC unroll 14
        for (int p = 0; p < places; p++) {
            const DY_T left = from[p * step];
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                sum[p][v] += left * right[v];
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        DY_T *const to = y + v / IN_BLOCK * a->next + v % IN_BLOCK * WIDTH;
        if (a->last) {
            const dy_vector scale = scale_of(a, v), shift = shift_of(a, v);
#pragma GCC unroll 14
            for (int p = 0; p < places; p++)
                sum[p][v] = sum[p][v] * scale + shift;
            if (a->adds)
#pragma GCC unroll 14
                for (int p = 0; p < places; p++)
                    sum[p][v] += load(to + a->residual + p * BLOCK);
            if (a->relu)
#pragma GCC unroll 14
                for (int p = 0; p < places; p++)
                    sum[p][v] = limited(sum[p][v], a->cap);
        }
#pragma GCC unroll 14
        for (int p = 0; p < places; p++)
            store(to + p * BLOCK, sum[p][v]);
    }
}

typedef void block_tiles(int64_t step, int64_t taps, const DY_T *x, const int32_t *where, const DY_T *filters, DY_T *y, const around *a);

/* Functions by what is constant in them: places, channels, and how far apart the places are (0: not constant). */
#define TILE(P, V, S)                                                                                                   \
    static void tile_##P##_##V##_##S(int64_t step, int64_t taps, const DY_T *x, const int32_t *where,                   \
                                     const DY_T *filters, DY_T *y, const around *a)                                     \
    {                                                                                                                   \
        block_tile(P, V, S ? S : step, taps, x, where, filters, y, a);                                                  \
    }
#if DY_BYTES == 64
#define EACH_TILE(V, S)                                                                                                 \
    TILE(1, V, S) TILE(2, V, S) TILE(3, V, S) TILE(4, V, S) TILE(5, V, S) TILE(6, V, S) TILE(7, V, S) TILE(8, V, S)     \
    TILE(9, V, S) TILE(10, V, S) TILE(11, V, S) TILE(12, V, S) TILE(13, V, S) TILE(14, V, S)                            \
    static block_tiles *const tiles_##V##_##S[] = {                                                                     \
        0, tile_1_##V##_##S, tile_2_##V##_##S, tile_3_##V##_##S, tile_4_##V##_##S, tile_5_##V##_##S, tile_6_##V##_##S,  \
        tile_7_##V##_##S, tile_8_##V##_##S, tile_9_##V##_##S, tile_10_##V##_##S, tile_11_##V##_##S, tile_12_##V##_##S,  \
        tile_13_##V##_##S, tile_14_##V##_##S};
EACH_TILE(1, 0) EACH_TILE(1, 16) EACH_TILE(2, 0) EACH_TILE(2, 16) EACH_TILE(2, 32)
#else
#define EACH_TILE(V, S)                                                                                                 \
    TILE(1, V, S) TILE(2, V, S) TILE(3, V, S) TILE(4, V, S) TILE(5, V, S) TILE(6, V, S)                                 \
    static block_tiles *const tiles_##V##_##S[] = {0, tile_1_##V##_##S, tile_2_##V##_##S, tile_3_##V##_##S,             \
                                                   tile_4_##V##_##S, tile_5_##V##_##S, tile_6_##V##_##S};
#if DY_BYTES == 32
EACH_TILE(2, 0) EACH_TILE(2, 16) EACH_TILE(2, 32)
#else
EACH_TILE(4, 0) EACH_TILE(4, 16) EACH_TILE(4, 32)
#endif
#endif

static block_tiles *const *tiles_of(const int64_t channels, const int64_t step)
{
#if DY_BYTES == 64
    if (channels == BLOCK)
        return step == 16 ? tiles_1_16 : tiles_1_0;
#endif
#if DY_BYTES >= 32
    return step == 16 ? tiles_2_16 : step == 32 ? tiles_2_32 : tiles_2_0;
#else
    return step == 16 ? tiles_4_16 : step == 32 ? tiles_4_32 : tiles_4_0;
#endif
}

/* Convolutions ------------------------------------------------------------------------------------------------------- */

/* Filters that are needed after those at hand: while products are computed, memory is idle. */
typedef struct {
    const DY_T *filters;
    int64_t count;
} expected;

static __thread expected coming;

static void blocks_expect(const DY_T *filters, int64_t count) { coming = (expected){filters, count}; }

static expected take_expected(void)
{
    const expected found = coming;
    coming = (expected){0, 0};
    return found;
}

/* A part of them, between two shares of `count`. */
static expected some_expected(const expected all, const int64_t begin, const int64_t end, const int64_t count)
{
    const int64_t from = all.count * begin / count, until = all.count * end / count;
    return (expected){all.filters + from, until - from};
}

/* Let a tile of `taps` fetch the next of them, one line for each tap; else lines that are there. */
static void fetch_expected(around *a, expected *left, const int64_t taps, const DY_T *there)
{
    a->ahead = left->count > 0 ? left->filters : there;
    a->apart = left->count > 0 ? taps : 0;
    left->filters += 16 * taps;
    left->count -= 16 * taps;
}

/* plane, row: elements of a block (or channel) of x, of a row of it; deep: numbers of one place that lie together; rows, columns: of
   the result, as one long row where windows are single elements.  parts: of the rows; panels: of the channels. */
typedef struct {
    const dy_blocks *w;
    const DY_T *x, *filters, *scale, *shift, *residual;
    DY_T *y;
    int32_t *where;
    int64_t plane, row, deep, taps, rows, columns, parts, panels;
    expected coming;
} blocked_windows;

/* The last tap behind the first one, and what windows reach from the first to the last, along an axis. */
static int64_t reach(const dy_blocks *w, const int axis) { return (w->kernel[axis] - 1) * w->dilate[axis]; }
static int64_t extent(const dy_blocks *w, const int axis) { return (w->spots[axis] - 1) * w->stride[axis] + reach(w, axis) + 1; }

static int is_padded(const dy_blocks *w)
{
    int padded = 0;
    for (int axis = 0; axis < 2; axis++)
        padded |= w->pad[axis] || extent(w, axis) > w->image[axis];
    return padded;
}

/* Copies of the planes of x: with their padding, or of windows of one element only what these read. */
typedef struct {
    const dy_blocks *w;
    const DY_T *x;
    DY_T *to;
    int64_t deep, rows, columns, down, right;           /* steps */
} copies;

/* Numbers from `begin` to `end` are what a row of the image has, the others are zeros. */
static void copy_row(const copies *c, const DY_T *from, DY_T *to)
{
    const int64_t left = c->w->pad[1], deep = c->deep;
    const int64_t begin = least(c->columns, (left + c->right - 1) / c->right);
    const int64_t end = most(begin, least(c->columns, (c->w->image[1] - 1 + left) / c->right + 1));
    memset(to, 0, begin * deep * sizeof(DY_T));
    from += (begin * c->right - left) * deep;
    if (c->right == 1)
        memcpy(to + begin * deep, from, (end - begin) * deep * sizeof(DY_T));
    else
        for (int64_t j = begin; j < end; j++, from += c->right * deep)
            for (int64_t t = 0; t < deep; t++)
                to[j * deep + t] = from[t];
    memset(to + end * deep, 0, (c->columns - end) * deep * sizeof(DY_T));
}

static void copy_planes(const void *given, int64_t begin, int64_t end)
{
    const copies *const c = given;
    const dy_blocks *const w = c->w;
    const int64_t row = c->columns * c->deep;
    for (int64_t k = begin; k < end; k++)
        for (int64_t i = 0; i < c->rows; i++) {
            const int64_t from = i * c->down - w->pad[0];
            DY_T *const to = c->to + (k * c->rows + i) * row;
            if (from < 0 || from >= w->image[0])
                memset(to, 0, row * sizeof(DY_T));
            else
                copy_row(c, c->x + (k * w->image[0] + from) * w->image[1] * c->deep, to);
        }
}

static void find_places(const blocked_windows *b)
{
    const dy_blocks *const w = b->w;
    int32_t *where = b->where;
    for (int64_t c = 0; c < w->in; c++)
        for (int64_t i = 0; i < w->kernel[0]; i++)
            for (int64_t j = 0; j < w->kernel[1]; j++)
                *where++ = (int32_t)(c / b->deep * b->plane + i * w->dilate[0] * b->row + j * w->dilate[1] * b->deep + c % b->deep);
}

/* The first element that the windows of one row of all images read. */
static const DY_T *row_of(const blocked_windows *b, const int64_t r)
{
    return b->x + r / b->rows * (b->w->in / b->deep * b->plane) + r % b->rows * b->w->stride[0] * b->row;
}

/* One panel of channels of some rows of some images. */
static void panel_of(const blocked_windows *b, const int64_t panel, const int64_t begin, const int64_t end, expected coming)
{
    const dy_blocks *const w = b->w;
    DY_T *const filters = at_hand(own_filters);
    const int64_t o = panel * PANEL, channels = least(PANEL, w->out - o), step = w->stride[1] * b->deep;
    const int64_t tiles = (b->columns + PLACES - 1) / PLACES, next = w->spots[0] * w->spots[1] * BLOCK;
    block_tiles *const *const of = tiles_of(channels, step);
    around a = {b->scale ? b->scale + o : 0, b->shift ? b->shift + o : 0, next, b->residual != 0, b->residual ? b->residual - b->y : 0, 0, 0,
                w->relu, w->cap};
    for (int64_t l = 0; l < b->taps; l += PIECE) {
        const int64_t some = least(PIECE, b->taps - l), behind = l + some < b->taps ? l + some : 0, panels = behind ? o : o + PANEL;
        int64_t ahead = panels + channels > w->out || some < 256 ? 0 : channels / 16;      /* squares of rows to be read soon */
        turn(filters, PANEL, b->filters + o * b->taps + l, b->taps, channels, some);
        a.first = l == 0;
        a.last = l + some == b->taps;
        const DY_T *from = row_of(b, begin);
        for (int64_t r = begin; r < end; r++) {
            const int64_t n = r / b->rows, i = r % b->rows;
            const DY_T *const below = row_of(b, r + 1 < end ? r + 1 : begin);
            DY_T *const to = b->y + (n * w->out + o) * w->spots[0] * w->spots[1] + i * b->columns * BLOCK;
            for (int64_t t = 0; t < tiles; t++) {
                const int64_t p = b->columns * t / tiles, q = b->columns * (t + 1) / tiles;
                if (ahead) {
                    a.ahead = b->filters + (panels + 16 * --ahead) * b->taps + behind;
                    a.apart = b->taps;
                } else
                    fetch_expected(&a, &coming, some, filters);
                for (int64_t c = 0; a.last && b->residual && c < channels; c += BLOCK)
                    for (int64_t s = p; s < q; s++)
                        __builtin_prefetch(to + a.residual + c / BLOCK * next + s * BLOCK, 0, 2);
                a.soon = t + 1 < tiles ? from + q * step : below;
                of[q - p](step, some, from + p * step, b->where + l, filters, to + p * BLOCK, &a);
            }
            from = below;
        }
    }
}

static void some_panels(const void *given, int64_t begin, int64_t end)
{
    const blocked_windows *const b = given;
    const int64_t rows = b->rows * b->w->batch;
    for (int64_t k = begin; k < end; k++) {
        const int64_t part = k / b->panels;
        panel_of(b, k % b->panels, rows * part / b->parts, rows * (part + 1) / b->parts,
                 some_expected(b->coming, k, k + 1, b->panels * b->parts));
    }
}

/* Rows in parts whose part of x stays near, and so many that every thread has something to do. */
static int64_t parts_of(const blocked_windows *b)
{
    const dy_blocks *const w = b->w;
    const int64_t rows = b->rows * w->batch, threads = dy_team ? dy_team->threads : 1;
    const int64_t read = w->batch * w->in / b->deep * b->plane, work = rows * b->columns * b->taps * w->out;
    const int64_t near = b->panels > 1 ? least((read + NEAR - 1) / NEAR, rows * b->columns / REPAYING) : 1;
    const int64_t wanted = least((4 * threads + b->panels - 1) / b->panels, work / SHARED_WORK / b->panels);
    return most(1, least(rows, most(near, threads > 1 ? wanted : 1)));
}

static int blocks_conv(const dy_blocks *windows, const DY_T *x, const DY_T *filters, const DY_T *scale, const DY_T *shift,
                       const DY_T *residual, DY_T *y)
{
    dy_blocks own = *windows, *const w = &own;
    const int64_t deep = w->plain ? 1 : BLOCK, taps = w->in * w->kernel[0] * w->kernel[1], planes = w->batch * w->in / deep;
    const int single = w->kernel[0] == 1 && w->kernel[1] == 1;
    const int sparse = single && w->spots[1] < PLACES && (w->stride[0] > 1 || w->stride[1] > 1);      /* rows fill no tile */
    const int copied = sparse || is_padded(w);
    const int64_t table = (taps * 4 + 63) / 64 * 64, down = sparse ? w->stride[0] : 1, right = sparse ? w->stride[1] : 1;
    for (int axis = 0; axis < 2; axis++) {
        own.stride[axis] = sparse ? 1 : w->stride[axis];
        own.image[axis] = copied ? extent(w, axis) : w->image[axis];
    }
    const int64_t row = w->image[1] * deep, plane = w->image[0] * row;
    char *const memory = room(room_key, table + (copied ? planes * plane * sizeof(DY_T) : 0));
    if (!memory)
        return 1;
    if (copied) {
        const copies all = {windows, x, (DY_T *)(memory + table), deep, w->image[0], w->image[1], down, right};
        dy_share(copy_planes, &all, planes, most(1, (1 << 15) / plane));
        x = all.to;
    }
    const int flat = single && w->image[1] == w->spots[1] && w->stride[0] == 1 && w->stride[1] == 1;
    blocked_windows b = {w, x, filters, scale, shift, residual, y, (int32_t *)memory, plane, row, deep, taps,
                         flat ? 1 : w->spots[0], flat ? w->spots[0] * w->spots[1] : w->spots[1]};
    b.panels = (w->out + PANEL - 1) / PANEL;
    b.parts = parts_of(&b);
    b.coming = take_expected();
    find_places(&b);
    dy_share(some_panels, &b, b.panels * b.parts, 1);
    return 0;
}

/* Maxima of windows -------------------------------------------------------------------------------------------------- */

typedef struct {
    const dy_blocks *w;
    const DY_T *x;
    DY_T *y;
} pooled;

/* The first of several, and the first NaN before all; the padding is minus infinity. */
static void some_maxima(const void *given, int64_t begin, int64_t end)
{
    const pooled *const p = given;
    const dy_blocks *const w = p->w;
    const int64_t size = w->image[0] * w->image[1] * BLOCK;
    DY_T *to = p->y + begin * w->spots[0] * w->spots[1] * BLOCK;
    const dy_float_state state = dy_save_float_state();
    for (int64_t k = begin; k < end; k++)
        for (int64_t i = 0; i < w->spots[0]; i++)
            for (int64_t j = 0; j < w->spots[1]; j++, to += BLOCK) {
                const int64_t top = i * w->stride[0] - w->pad[0], left = j * w->stride[1] - w->pad[1];
                dy_vector best[IN_BLOCK];
#pragma GCC unroll 4
                for (int v = 0; v < IN_BLOCK; v++)
                    best[v] = (dy_vector){0} - __builtin_inff();
                for (int64_t r = most(0, top); r < least(w->image[0], top + w->kernel[0]); r++)
                    for (int64_t c = most(0, left); c < least(w->image[1], left + w->kernel[1]); c++) {
                        const DY_T *const from = p->x + k * size + (r * w->image[1] + c) * BLOCK;
#pragma GCC unroll 4
                        for (int v = 0; v < IN_BLOCK; v++) {
                            const dy_vector item = load(from + v * WIDTH);
                            best[v] = choose((dy_bits)(best[v] == best[v]) & ~(dy_bits)(item <= best[v]), item, best[v]);
                        }
                    }
#pragma GCC unroll 4
                for (int v = 0; v < IN_BLOCK; v++)
                    store(to + v * WIDTH, best[v]);
            }
    dy_restore_float_state(state);
}

static void blocks_max(const dy_blocks *w, const DY_T *x, DY_T *y)
{
    const pooled all = {w, x, y};
    const int64_t each = w->spots[0] * w->spots[1] * w->kernel[0] * w->kernel[1] * BLOCK;
    dy_share(some_maxima, &all, w->batch * w->in / BLOCK, most(1, (1 << 15) / each));
}

/* From and to plain arrays ------------------------------------------------------------------------------------------- */

typedef struct {
    const DY_T *x;
    DY_T *y;
    int64_t places;
} turned;

static void some_blocks(const void *given, int64_t begin, int64_t end)
{
    const turned *const t = given;
    for (int64_t k = begin; k < end; k++)
        turn(t->y + k * BLOCK * t->places, BLOCK, t->x + k * BLOCK * t->places, t->places, BLOCK, t->places);
}

static void some_back(const void *given, int64_t begin, int64_t end)
{
    const turned *const t = given;
    for (int64_t k = begin; k < end; k++) {
        const DY_T *const from = t->x + k * BLOCK * t->places;
        DY_T *const to = t->y + k * BLOCK * t->places;
        int64_t p = 0;
        for (; p + BLOCK <= t->places; p += BLOCK)
            turn_square(from + p * BLOCK, BLOCK, to + p, t->places);
        for (; p < t->places; p++)
            for (int64_t c = 0; c < BLOCK; c++)
                to[c * t->places + p] = from[p * BLOCK + c];
    }
}

static void in_blocks(dy_body *body, const int64_t batch, const int64_t channels, const int64_t places, const DY_T *x, DY_T *y)
{
    const turned all = {x, y, places};
    dy_share(body, &all, batch * channels / BLOCK, most(1, (1 << 15) / (BLOCK * places)));
}

static void blocks_of(int64_t batch, int64_t channels, int64_t places, const DY_T *x, DY_T *y)
{
    in_blocks(some_blocks, batch, channels, places, x, y);
}

static void blocks_back(int64_t batch, int64_t channels, int64_t places, const DY_T *x, DY_T *y)
{
    in_blocks(some_back, batch, channels, places, x, y);
}

#endif
