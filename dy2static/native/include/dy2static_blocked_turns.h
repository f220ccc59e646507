/* Arrays in blocks of channels from and to plain arrays (batch, channels, rows, columns).

   Before the include: DY_T, which is float, and DY_PIECE. */
#ifndef DY2STATIC_BLOCKED_TURNS_H
#define DY2STATIC_BLOCKED_TURNS_H

#include "dy2static_blocked.h"

/* blocks: of an image; last: the channels of the last one of them. */
typedef struct {
    const DY_T *x;
    DY_T *y;
    int64_t channels, places, blocks, last;
} turned;

/* Where a block begins in a plain array, and how many channels it has there. */
static int64_t plain_place(const turned *t, const int64_t block, int64_t *channels)
{
    *channels = block % t->blocks == t->blocks - 1 ? t->last : BLOCK;
    return (block / t->blocks * t->channels + block % t->blocks * BLOCK) * t->places;
}

static void some_blocks(const void *given, int64_t begin, int64_t end)
{
    const turned *const t = given;
    for (int64_t k = begin, channels; k < end; k++) {
        const DY_T *const from = t->x + plain_place(t, k, &channels);
        DY_T *const to = t->y + k * BLOCK * t->places;
        if (channels == BLOCK)
            turn(to, BLOCK, from, t->places, BLOCK, t->places);
        else
            for (int64_t p = 0; p < t->places; p++)
                for (int64_t c = 0; c < BLOCK; c++)
                    to[p * BLOCK + c] = c < channels ? from[c * t->places + p] : 0;
    }
}

static void some_back(const void *given, int64_t begin, int64_t end)
{
    const turned *const t = given;
    for (int64_t k = begin, channels; k < end; k++) {
        const DY_T *const from = t->x + k * BLOCK * t->places;
        DY_T *const to = t->y + plain_place(t, k, &channels);
        int64_t p = 0;
        for (; channels == BLOCK && p + BLOCK <= t->places; p += BLOCK)
            turn_square(from + p * BLOCK, BLOCK, to + p, t->places);
        for (; p < t->places; p++)
            for (int64_t c = 0; c < channels; c++)
                to[c * t->places + p] = from[p * BLOCK + c];
    }
}

static void in_blocks(dy_body *body, const int64_t batch, const int64_t channels, const int64_t places, const DY_T *x, DY_T *y)
{
    const int64_t blocks = in_whole(channels) / BLOCK;
    const turned all = {x, y, channels, places, blocks, channels - (blocks - 1) * BLOCK};
    dy_share(body, &all, batch * blocks, most(1, (1 << 15) / (BLOCK * places)));
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
