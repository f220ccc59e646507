/* Tiles of convolutions in blocks of channels, their filters turned in memory, and the memory of a thread: for dy2static_blocked.h.

   Before the include: DY_T, which is float, and DY_PIECE. */
#ifndef DY2STATIC_BLOCKED_TILES_H
#define DY2STATIC_BLOCKED_TILES_H

#include <pthread.h>
#include <stdlib.h>
#include "dy2static_tiles.h"
#include "dy2static_x86_vectors.h"

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
#if DY_BYTES == 32
    HALF_PLACES = 12,                                   /* where half a block of channels is left */
#else
    HALF_PLACES = 0,
#endif
    MOST_PLACES = PLACES > HALF_PLACES ? PLACES : HALF_PLACES,
    PIECE = DY_PIECE,                                   /* taps: a panel of 1152 is 147 KiB */
    NEAR = 96 * 1024,                                   /* elements of x that stay in the second cache */
    REPAYING = 192,                                     /* places for which it pays to turn a panel of filters */
    REREAD = 1024,                                      /* channels of a result for which x is put side by side */
    SHARED_WORK = 1 << 20,                              /* multiplications of a share */
    COPIED = 1 << 19,                                   /* elements that are copied, with their padding, before they are read */
#ifdef DY_PLAIN_IMAGES
    ONLY_SUMS = 1                                       /* tiles sum all taps at once, and nothing follows */
#else
    ONLY_SUMS = 0
#endif
};

static __thread DY_T own_filters[PIECE * PANEL] __attribute__((aligned(64)));

static inline int64_t least(const int64_t a, const int64_t b) { return a < b ? a : b; }
static inline int64_t most(const int64_t a, const int64_t b) { return a > b ? a : b; }

/* Places in tiles of about one size.  count: tiles; each: places of the first ones; longer: the first tile with one more. */
typedef struct {
    int64_t count, each, longer;
} even_tiles;

/* Once for many rows: to divide takes as long as many multiplications. */
static even_tiles cut_evenly(const int64_t places, const int64_t fit)
{
    const int64_t count = (places + fit - 1) / fit, each = count ? places / count : 0;
    return (even_tiles){count, each, count - (places - each * count)};
}

static inline int64_t places_of_tile(const even_tiles *tiles, const int64_t t) { return tiles->each + (t >= tiles->longer); }

/* Memory of a thread: what is for one convolution, for one share, for some images of a plain array, and for their filters; it grows to
   what is needed. */
static pthread_key_t room_key, share_key, images_key, filters_key;
static int has_rooms;
static __attribute__((constructor)) void make_rooms(void)
{
    has_rooms = !pthread_key_create(&room_key, free) && !pthread_key_create(&share_key, free) && !pthread_key_create(&images_key, free)
        && !pthread_key_create(&filters_key, free);
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

#ifndef DY_SQUARES
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
   ahead, apart, lines: so many rows of filters that are needed soon, and how far from each other; soon: what the next tile reads of x.
   at: where the places of a tile across several rows are in x. */
typedef struct {
    const DY_T *scale, *shift;
    int64_t next, adds, residual, first, last, relu;
    DY_T cap;
    const DY_T *ahead, *soon;
    int64_t apart, lines, at[PLACES];
} around;

typedef uint32_t dy_bits __attribute__((vector_size(DY_BYTES)));

DY_INLINE dy_vector choose(const dy_bits where, const dy_vector a, const dy_vector b)
{
    return (dy_vector)(((dy_bits)a & where) | ((dy_bits)b & ~where));
}

/* Zero, -0 too, stands for what is below it, and the cap for what is above that; a NaN stays. */
#if DY_BYTES == 64
DY_INLINE dy_vector limited(const dy_vector value, const dy_vector caps)
{
    return lesser(caps, positive(value));
}
#elif DY_BYTES == 32
DY_INLINE dy_vector limited(const dy_vector value, const dy_vector caps)
{
    const dy_bits above = (dy_bits)__builtin_ia32_cmpps256(value, (dy_vector){0}, 0x16);         /* not less or equal, and quiet */
    return __builtin_ia32_minps256(caps, (dy_vector)(above & (dy_bits)value));
}
#else
DY_INLINE dy_vector limited(const dy_vector value, const dy_vector caps)
{
    const dy_vector above = (dy_vector)((dy_bits)value & ~(dy_bits)(value <= 0));
    return choose((dy_bits)(above > caps), caps, above);
}
#endif

DY_INLINE dy_vector scale_of(const around *a, const int v) { return a->scale ? load(a->scale + v * WIDTH) : (dy_vector){0} + 1; }
DY_INLINE dy_vector shift_of(const around *a, const int v) { return a->shift ? load(a->shift + v * WIDTH) : (dy_vector){0}; }

/* One tap of all sums: `from` is its number for the first place.  place: null, or each of the places, if they are not `step` apart,
   and then the tap is `tap` behind them. */
DY_INLINE void add_tap(const int places, const int vectors, const int64_t step, const DY_T *from, const DY_T *const *place,
                       const int64_t tap, const DY_T *filters, dy_vector sum[MOST_PLACES][VECTORS])
{
    dy_vector right[VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        right[v] = load(filters + v * WIDTH);
        IN_REGISTER(right[v]);
    }
#pragma GCC unroll 14
    for (int p = 0; p < places; p++) {
        const DY_T left = place ? place[p][tap] : from[p * step];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sum[p][v] += left * right[v];
    }
}

/* Two taps at a time: prefetches and addresses are for both.  With more of them gcc runs out of registers.

   Sums of `places` neighbours, which are `step` apart in x, for `vectors` of channels; what these leave of a block becomes zero.
   together: whether the numbers of a whole block of taps lie side by side in x; scattered: whether places are where `at` says. */
DY_INLINE void block_tile(const int places, const int vectors, const int together, const int scattered, const int64_t step,
                          const int64_t taps, const DY_T *x, const int32_t *where, const DY_T *filters, DY_T *y, const around *a)
{
    const DY_T *each[PLACES], *const *const place = scattered ? each : 0;
#pragma GCC unroll 14
    for (int p = 0; scattered && p < places; p++)
        each[p] = x + a->at[p];
    dy_vector sum[MOST_PLACES][VECTORS];
    const DY_T *ahead = a->ahead, *const soon = a->soon;
    const int64_t apart = a->apart, lines = a->lines;
    const int fetched = (places + 7) / 8;               /* places of the next tile that are fetched with two taps */
    if (ONLY_SUMS || a->first)
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
    int64_t k = 0;
    for (; k + BLOCK <= taps; ahead += BLOCK) {
        const DY_T *block = x + where[k], *near = soon + where[k];
        for (int64_t i = 0; i < lines; i++)
            __builtin_prefetch(ahead + i * apart, 0, 2);
#pragma GCC unroll 1
        for (const int64_t end = k + BLOCK; k < end; k += 2, block += 2, near += fetched * step, filters += 2 * PANEL)
#pragma GCC unroll 2
            for (int j = 0; j < 2; j++) {
                if (j < fetched && !scattered)
                    __builtin_prefetch(near + j * step, 0, 2);
                add_tap(places, vectors, step, together ? block + j : x + where[k + j], place, where[k + j], filters + j * PANEL, sum);
            }
    }
    for (; k < taps; k++, filters += PANEL)
        add_tap(places, vectors, step, x + where[k], place, where[k], filters, sum);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        DY_T *const to = y + v / IN_BLOCK * a->next + v % IN_BLOCK * WIDTH;
        if (!ONLY_SUMS && a->last) {
            const dy_vector scale = scale_of(a, v), shift = shift_of(a, v), caps = (dy_vector){0} + a->cap;
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
                    sum[p][v] = limited(sum[p][v], caps);
        }
#pragma GCC unroll 14
        for (int p = 0; p < places; p++)
            store(to + p * BLOCK, sum[p][v]);
    }
    if (vectors < IN_BLOCK)
#pragma GCC unroll 14
        for (int p = 0; p < places; p++)
            store(y + p * BLOCK + WIDTH, (dy_vector){0});
}

typedef void block_tiles(int64_t step, int64_t taps, const DY_T *x, const int32_t *where, const DY_T *filters, DY_T *y, const around *a);

/* Functions by what is constant in them: places, channels, how far apart the places are (0: not constant), and whether taps lie
   together.  Each takes the C compiler 20 ms.  x86 addresses places whose distance is not constant in no more instructions, so it is a
   constant only where taps lie together, and nothing else is loaded. */
#define TILE(P, V, S, T)                                                                                                \
    static void tile_##P##_##V##_##S##_##T(int64_t step, int64_t taps, const DY_T *x, const int32_t *where,             \
                                           const DY_T *filters, DY_T *y, const around *a)                               \
    {                                                                                                                   \
        block_tile(P, V, T, 0, S ? S : step, taps, x, where, filters, y, a);                                            \
    }
#if DY_BYTES == 64
#define EACH_TILE(V, S, T)                                                                                              \
    TILE(2, V, S, T) TILE(3, V, S, T) TILE(4, V, S, T) TILE(5, V, S, T) TILE(6, V, S, T)                                \
    LONG_TILES(V, S, T, S, T)
/* Only images of two places and a few more have shorter tiles: those for any distance do. */
#define LONG_TILES(V, S, T, SHORT_S, SHORT_T)                                                                           \
    TILE(7, V, S, T) TILE(8, V, S, T) TILE(9, V, S, T) TILE(10, V, S, T) TILE(11, V, S, T) TILE(12, V, S, T)            \
    TILE(1, V, S, T) TILE(13, V, S, T) TILE(14, V, S, T)                                                                \
    static block_tiles *const tiles_##V##_##S##_##T[] = {                                                               \
        0, tile_1_##V##_##S##_##T, tile_2_##V##_##SHORT_S##_##SHORT_T, tile_3_##V##_##SHORT_S##_##SHORT_T,  \
        tile_4_##V##_##SHORT_S##_##SHORT_T, tile_5_##V##_##SHORT_S##_##SHORT_T, tile_6_##V##_##SHORT_S##_##SHORT_T,     \
        tile_7_##V##_##S##_##T, tile_8_##V##_##S##_##T, tile_9_##V##_##S##_##T, tile_10_##V##_##S##_##T,                \
        tile_11_##V##_##S##_##T, tile_12_##V##_##S##_##T, tile_13_##V##_##S##_##T, tile_14_##V##_##S##_##T};
EACH_TILE(1, 0, 0) LONG_TILES(1, 16, 1, 0, 0)
EACH_TILE(2, 0, 0) LONG_TILES(2, 16, 1, 0, 0)
#else
#define EACH_TILE(V, S, T) TILE(2, V, S, T) TILE(3, V, S, T) LONG_TILES(V, S, T, S, T)
/* Only images of two places and a few more have shorter tiles: those for any distance do. */
#define LONG_TILES(V, S, T, SHORT_S, SHORT_T)                                                                           \
    TILE(1, V, S, T) TILE(4, V, S, T) TILE(5, V, S, T) TILE(6, V, S, T)                                                 \
    static block_tiles *const tiles_##V##_##S##_##T[] = {                                                               \
        0, tile_1_##V##_##S##_##T, tile_2_##V##_##SHORT_S##_##SHORT_T, tile_3_##V##_##SHORT_S##_##SHORT_T,  \
        tile_4_##V##_##S##_##T, tile_5_##V##_##S##_##T, tile_6_##V##_##S##_##T};
#if DY_BYTES == 32
EACH_TILE(2, 0, 0) LONG_TILES(2, 16, 1, 0, 0)
#define HALF_TILES(S, T, SHORT_S, SHORT_T)                                                                              \
    TILE(1, 1, S, T) TILE(8, 1, S, T) TILE(9, 1, S, T) TILE(10, 1, S, T) TILE(11, 1, S, T) TILE(12, 1, S, T)            \
    static block_tiles *const half_tiles_##S##_##T[] = {                                                                \
        0, tile_1_1_##S##_##T, tile_2_1_##SHORT_S##_##SHORT_T, tile_3_1_##SHORT_S##_##SHORT_T,              \
        tile_4_1_##SHORT_S##_##SHORT_T, tile_5_1_##SHORT_S##_##SHORT_T, tile_6_1_##SHORT_S##_##SHORT_T,                 \
        tile_7_1_##SHORT_S##_##SHORT_T, tile_8_1_##S##_##T, tile_9_1_##S##_##T, tile_10_1_##S##_##T,                    \
        tile_11_1_##S##_##T, tile_12_1_##S##_##T};
TILE(2, 1, 0, 0) TILE(3, 1, 0, 0) TILE(4, 1, 0, 0) TILE(5, 1, 0, 0) TILE(6, 1, 0, 0) TILE(7, 1, 0, 0)
HALF_TILES(0, 0, 0, 0) HALF_TILES(16, 1, 0, 0)
#define SCATTERED_TILE(P)                                                                                               \
    static void scattered_##P(int64_t step, int64_t taps, const DY_T *x, const int32_t *where, const DY_T *filters,     \
                              DY_T *y, const around *a)                                                                 \
    {                                                                                                                   \
        block_tile(P, 2, 0, 1, step, taps, x, where, filters, y, a);                                                    \
    }
SCATTERED_TILE(1) SCATTERED_TILE(2) SCATTERED_TILE(3) SCATTERED_TILE(4) SCATTERED_TILE(5) SCATTERED_TILE(6)
static block_tiles *const scattered_tiles[] = {0, scattered_1, scattered_2, scattered_3, scattered_4, scattered_5, scattered_6};
#else
EACH_TILE(4, 0, 0) EACH_TILE(4, 16, 0) EACH_TILE(4, 32, 0) EACH_TILE(4, 16, 1)
#endif
#endif

/* Tiles for half a block of channels; null if a vector holds another part of one. */
static block_tiles *const *half_tiles_of(const int64_t step, const int together)
{
#if DY_BYTES == 32
    return step == 16 && together ? half_tiles_16_1 : half_tiles_0_0;
#else
    (void)step, (void)together;
    return 0;
#endif
}

/* Tiles of places in several rows, for rows of so many columns that leave tiles half empty; null for others.  With AVX2 a tile of
   four places takes nearly as long as one of six; registers are too few for places of longer tiles. */
static block_tiles *const *scattered_tiles_of(const int64_t columns)
{
#if DY_BYTES == 32
    return columns <= 4 * ((columns + PLACES - 1) / PLACES) ? scattered_tiles : 0;
#else
    (void)columns;
    return 0;
#endif
}

static block_tiles *const *tiles_of(const int64_t channels, const int64_t step, const int together)
{
#if DY_BYTES == 64
    if (channels == BLOCK)
        return step == 16 && together ? tiles_1_16_1 : tiles_1_0_0;
#endif
#if DY_BYTES >= 32
    return step == 16 && together ? tiles_2_16_1 : tiles_2_0_0;
#else
    return step == 16 ? (together ? tiles_4_16_1 : tiles_4_16_0) : step == 32 ? tiles_4_32_0 : tiles_4_0_0;
#endif
}

/* The same for products of matrices: no other tiles are compiled where all convolutions are such products. */
static block_tiles *const *tiles_of_product(const int64_t channels)
{
#if DY_BYTES == 64
    return channels == BLOCK ? tiles_1_16_1 : tiles_2_16_1;
#elif DY_BYTES == 32
    (void)channels;
    return tiles_2_16_1;
#else
    (void)channels;
    return tiles_4_16_1;
#endif
}

#endif
